//! Why an engine refused or could not do something: a stable code, a sentence, what to do now, and the cause as
//! data. The sentences are the same on every host. Nothing here knows a command line or a page: whoever shows
//! an error adds the way out that it offers, by the [`Cause`].

use std::fmt;

use serde::{Deserialize, Serialize};
use wonder_core::RunStatus;
use wonder_core::input::{Operation, Rejection};

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EngineError {
    pub code: ErrorCode,
    pub message: String,
    /// What to do now, wherever it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Cause>>,
}

/// What exactly it was, where a reader can do something about it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Cause {
    /// The engine has no run at all.
    NoRunYet,
    NoSuchRun {
        run: String,
    },
    /// A shortened id fits several runs.
    SeveralRuns {
        run: String,
        fits: Vec<String>,
    },
    /// `gate`: as it was asked for.
    NoSuchGate {
        gate: String,
    },
    NoOpenGate {
        run: String,
    },
    SeveralGates {
        run: String,
        gates: Vec<String>,
    },
    /// The run has no such visit.
    NoSuchVisit {
        run: String,
        token: u64,
    },
    /// Neither the run nor one that it called has such an artifact.
    NoSuchArtifact {
        run: String,
        artifact: String,
    },
    /// The run's log has no such event: it begins with 1 and ends with `last`.
    NoSuchEvent {
        run: String,
        seq: u64,
        last: u64,
    },
    /// The input does not fit the workflow's schema.
    BadRunInput {
        violations: Vec<String>,
    },
    /// The answer does not fit the gate's form.
    BadAnswer {
        violations: Vec<String>,
    },
    GateClosed {
        by: String,
    },
    AnsweredAlready {
        by: String,
    },
    /// Nobody waits for this event, and it was not to be kept.
    NobodyWaits {
        event: String,
    },
    /// Neither the run nor a live one below it takes messages.
    TakesNoMessage {
        run: String,
    },
    /// Several runs below it take messages: the node that called each, and its id.
    SeveralTakeMessages {
        run: String,
        takers: Vec<(String, String)>,
    },
    /// The run has called nobody at this node who is still at work.
    NobodyCalledAt {
        run: String,
        node: String,
    },
    /// What was typed has a secret in it, and would be stored as it is.
    SecretTyped {
        what: String,
    },
    /// The operation does not fit the run's status.
    WrongStatus {
        operation: Operation,
        status: RunStatus,
    },
    CannotFork,
    /// What happened in the run does not fit the definition that was brought along.
    LogDoesNotFit,
    /// A definition that was brought along belongs to another workflow.
    OtherWorkflow {
        brought: String,
        wanted: String,
    },
    /// The definition does not pass the checks.
    DefinitionRefused {
        workflow: String,
    },
    /// A stored run is set aside.
    SetAside {
        run: String,
    },
    /// Another process owns the storage and does not answer.
    OwnerSilent {
        process: Option<u32>,
    },
    /// Something else was asked under the same id before.
    RequestReused {
        id: String,
    },
    /// It may have been recorded, or will be: asking for the run tells.
    OutcomeUnknown {
        run: String,
    },
    /// Two processes of different versions met.
    OtherVersion,
    /// The storage is not one of ours, was written by a newer version, or cannot be reached here.
    StorageUnusable,
    DiskFull,
    /// What is stored is damaged: waiting does not help.
    StorageDamaged,
    /// The directory of the storage was deleted or replaced while it was in use.
    StorageGone,
}

/// Stable: programs branch on these words.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// No run, gate or definition has this name.
    NotFound,
    /// A shortened id fits several.
    Ambiguous,
    /// The input, answer or event does not fit its schema or form.
    BadInput,
    /// The definition cannot be run here.
    BadDefinition,
    /// The operation does not fit the state that the run or gate is in.
    Conflict,
    /// This host has no such thing.
    Unsupported,
    /// The database cannot be read or written; nothing was acknowledged that is not there.
    Storage,
    /// The database was written by a newer version.
    NewerVersion,
    /// A stored run is damaged; it is set aside and the others go on.
    Quarantined,
    /// More is asked of the engine than it takes at once; the same may be asked again.
    Busy,
    /// The engine is closing; another owner will take over.
    Closing,
    /// The connection to the process that owns the database was lost.
    Disconnected,
    /// A mistake of ours.
    Internal,
}

impl ErrorCode {
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::NotFound => "not_found",
            ErrorCode::Ambiguous => "ambiguous",
            ErrorCode::BadInput => "bad_input",
            ErrorCode::BadDefinition => "bad_definition",
            ErrorCode::Conflict => "conflict",
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Storage => "storage",
            ErrorCode::NewerVersion => "newer_version",
            ErrorCode::Quarantined => "quarantined",
            ErrorCode::Busy => "busy",
            ErrorCode::Closing => "closing",
            ErrorCode::Disconnected => "disconnected",
            ErrorCode::Internal => "internal",
        }
    }

    /// The engine or its storage is at fault, not what was asked of it.
    pub fn is_engine_fault(self) -> bool {
        matches!(
            self,
            ErrorCode::Storage
                | ErrorCode::NewerVersion
                | ErrorCode::Quarantined
                | ErrorCode::Busy
                | ErrorCode::Closing
                | ErrorCode::Disconnected
                | ErrorCode::Internal
        )
    }
}

impl EngineError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> EngineError {
        EngineError { code, message: message.into(), help: None, cause: None }
    }

    pub fn internal(message: impl Into<String>) -> EngineError {
        EngineError::new(ErrorCode::Internal, message)
    }

    /// What to do now.
    pub fn help(mut self, help: impl Into<String>) -> EngineError {
        self.help = Some(help.into());
        self
    }

    /// The same with its cause as data.
    pub fn because(mut self, cause: Cause) -> EngineError {
        self.cause = Some(Box::new(cause));
        self
    }
}

/// The refusals that every host has, in the same words.
impl EngineError {
    pub fn no_run_yet() -> EngineError {
        EngineError::new(ErrorCode::NotFound, "there is no run yet").because(Cause::NoRunYet)
    }

    pub fn no_such_run(run: &str) -> EngineError {
        EngineError::new(ErrorCode::NotFound, format!("there is no run {run}"))
            .because(Cause::NoSuchRun { run: run.to_owned() })
    }

    pub fn several_runs(run: &str, fits: Vec<String>) -> EngineError {
        let message = format!("{run} fits more than one run: {}", fits.join(", "));
        EngineError::new(ErrorCode::Ambiguous, message)
            .help("Give more of the id.")
            .because(Cause::SeveralRuns { run: run.to_owned(), fits })
    }

    pub fn no_such_gate(gate: &str) -> EngineError {
        EngineError::new(ErrorCode::NotFound, format!("there is no gate {gate}"))
            .because(Cause::NoSuchGate { gate: gate.to_owned() })
    }

    pub fn no_open_gate(run: &str) -> EngineError {
        EngineError::new(ErrorCode::NotFound, format!("run {run} has no open gate"))
            .because(Cause::NoOpenGate { run: run.to_owned() })
    }

    pub fn several_gates(run: &str, gates: Vec<String>) -> EngineError {
        let message = format!("run {run} has several open gates: {}", gates.join(", "));
        EngineError::new(ErrorCode::Ambiguous, message)
            .help("Name one of them.")
            .because(Cause::SeveralGates { run: run.to_owned(), gates })
    }

    pub fn no_such_visit(run: &str, token: u64) -> EngineError {
        EngineError::new(ErrorCode::NotFound, format!("run {run} has made no visit {token}"))
            .because(Cause::NoSuchVisit { run: run.to_owned(), token })
    }

    pub fn no_such_artifact(run: &str, artifact: &str) -> EngineError {
        EngineError::new(ErrorCode::NotFound, format!("run {run} has no artifact {artifact}"))
            .because(Cause::NoSuchArtifact { run: run.to_owned(), artifact: artifact.to_owned() })
    }

    pub fn no_such_event(run: &str, seq: u64, last: u64) -> EngineError {
        let message = format!("run {run} has no event {seq}: it has events 1 to {last}");
        EngineError::new(ErrorCode::NotFound, message).because(Cause::NoSuchEvent {
            run: run.to_owned(),
            seq,
            last,
        })
    }

    /// `problem`: the first of those that were found.
    pub fn definition_refused(workflow: &str, problem: &str) -> EngineError {
        let message = format!("the definition does not pass the checks: {problem}");
        EngineError::new(ErrorCode::BadDefinition, message)
            .because(Cause::DefinitionRefused { workflow: workflow.to_owned() })
    }

    pub fn other_workflow(brought: &str, wanted: &str) -> EngineError {
        let message = format!("the definition is of {brought}, the run of {wanted}");
        EngineError::new(ErrorCode::BadInput, message)
            .help("Bring another version of the same workflow. Nothing was changed.")
            .because(Cause::OtherWorkflow { brought: brought.to_owned(), wanted: wanted.to_owned() })
    }

    /// The process that owns the storage took the question and gave no answer.
    pub fn owner_silent(process: Option<u32>, seconds: u64) -> EngineError {
        let who = process.map_or_else(|| "the owner".to_owned(), |process| format!("process {process}"));
        let message = format!("{who} has not answered for {seconds} s; whether it was done is not known");
        EngineError::new(ErrorCode::Storage, message)
            .help("If it is stopped, let it go on or end it; its runs are safe.")
            .because(Cause::OwnerSilent { process })
    }

    pub fn takes_no_message(run: &str) -> EngineError {
        let message = format!("run {run} takes no message, and no live run that it called does");
        EngineError::new(ErrorCode::Conflict, message)
            .help("Nothing was changed. A run takes messages while it is live and a node of its workflow awaits the event `tell`.")
            .because(Cause::TakesNoMessage { run: run.to_owned() })
    }

    pub fn several_take_messages(run: &str, takers: Vec<(String, String)>) -> EngineError {
        let each = takers.iter().map(|(node, id)| format!("{run}/{node} ({id})"));
        let message =
            format!("several runs below {run} take messages: {}", each.collect::<Vec<_>>().join(", "));
        EngineError::new(ErrorCode::Ambiguous, message)
            .help("Name one of them: RUN/node, or its id.")
            .because(Cause::SeveralTakeMessages { run: run.to_owned(), takers })
    }

    pub fn nobody_called_at(run: &str, node: &str, live: &[String]) -> EngineError {
        let known = match live {
            [] => "it has called no run that is still live".to_owned(),
            live => format!("live runs were called at {}", live.join(", ")),
        };
        EngineError::new(ErrorCode::NotFound, format!("run {run} has called nobody at {node}: {known}"))
            .because(Cause::NobodyCalledAt { run: run.to_owned(), node: node.to_owned() })
    }

    /// `what`: `the input`, `the answer`, `the event`.
    pub fn secret_typed(what: &str) -> EngineError {
        let message = format!("{what} has a secret in it, and would be stored as it is");
        EngineError::new(ErrorCode::BadInput, message)
            .help("Nothing was stored. Let the file name it where it is used: {{ secret.NAME }}.")
            .because(Cause::SecretTyped { what: what.to_owned() })
    }

    pub fn request_reused(id: &str) -> EngineError {
        let message = format!("something else was asked under the request id {id} before");
        EngineError::new(ErrorCode::Conflict, message)
            .help("Nothing was changed. An id is for one request: choose another for this one.")
            .because(Cause::RequestReused { id: id.to_owned() })
    }

    /// `why`: what of the run's past the new definition could not have done.
    pub fn log_does_not_fit(run: &str, why: &str) -> EngineError {
        let message = format!("what happened in run {run} does not fit the new definition: {why}");
        EngineError::new(ErrorCode::Conflict, message)
            .help("Nothing was changed.")
            .because(Cause::LogDoesNotFit)
    }

    /// A run whose stored events do not fit together, or on which a rule broke.
    pub fn set_aside(run: &str, why: &str) -> EngineError {
        EngineError::new(ErrorCode::Quarantined, format!("run {run} is set aside: {why}"))
            .help("Its events are kept as they are; other runs go on.")
            .because(Cause::SetAside { run: run.to_owned() })
    }

    /// The core refused an input; nothing has changed.
    pub fn rejected(rejection: &Rejection) -> EngineError {
        const UNCHANGED: &str = "Nothing was changed.";
        let (code, help, cause) = match rejection {
            Rejection::BadInput { violations } => (
                ErrorCode::BadInput,
                Some("Nothing was started."),
                Some(Cause::BadRunInput { violations: violations.clone() }),
            ),
            Rejection::BadAnswer { violations, .. } => {
                (ErrorCode::BadInput, None, Some(Cause::BadAnswer { violations: violations.clone() }))
            }
            Rejection::NoSuchGate { gate } => {
                (ErrorCode::NotFound, None, Some(Cause::NoSuchGate { gate: gate.to_string() }))
            }
            Rejection::GateClosed { by, .. } => {
                (ErrorCode::Conflict, Some(UNCHANGED), Some(Cause::GateClosed { by: by.to_string() }))
            }
            Rejection::AnsweredAlready { by, .. } => {
                (ErrorCode::Conflict, Some(UNCHANGED), Some(Cause::AnsweredAlready { by: by.to_string() }))
            }
            Rejection::NobodyWaits { event } => {
                (ErrorCode::Conflict, None, Some(Cause::NobodyWaits { event: event.to_string() }))
            }
            Rejection::WrongStatus { operation, status } => {
                let cause = Cause::WrongStatus { operation: *operation, status: *status };
                (ErrorCode::Conflict, Some(UNCHANGED), Some(cause))
            }
            Rejection::CannotFork { .. } => (ErrorCode::Conflict, Some(UNCHANGED), Some(Cause::CannotFork)),
            Rejection::LimitExceeded { .. } => (ErrorCode::BadInput, None, None),
            Rejection::AlreadyStarted
            | Rejection::NotStarted
            | Rejection::NotOut { .. }
            | Rejection::NothingDue { .. } => (ErrorCode::Conflict, Some(UNCHANGED), None),
        };
        let error = EngineError::new(code, rejection.to_string());
        EngineError { help: help.map(str::to_owned), cause: cause.map(Box::new), ..error }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n{help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EngineError {}
