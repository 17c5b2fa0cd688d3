//! What can be typed next, by what went wrong. Engines give causes; command lines are named here and nowhere
//! else.

use wonder_core::RunStatus;
use wonder_core::input::Operation;
use wonder_engine::{Cause, EngineError};

use crate::view::words::shell_word;

/// A way out on this command line, if there is one that the error itself does not say. `run`: the one that was
/// asked about, as it was typed.
pub(crate) fn hint(error: &EngineError, run: Option<&str>) -> Option<String> {
    let text = match error.cause.as_deref()? {
        Cause::NoRunYet => "wonder run FILE starts one.",
        Cause::NoSuchRun { .. } => "wonder list shows what there is; `last` is the newest.",
        Cause::NoSuchGate { .. } | Cause::NoOpenGate { .. } => "wonder gates shows those that are open.",
        Cause::NoSuchVisit { run, .. } => {
            return Some(format!("wonder show {} -o json has each visit as its `token`.", shell_word(run)));
        }
        Cause::NoSuchArtifact { run, .. } => {
            return Some(format!("wonder artifacts {} lists what it has kept.", shell_word(run)));
        }
        Cause::NoSuchEvent { run, .. } => {
            return Some(format!("wonder events {} lists them.", shell_word(run)));
        }
        Cause::BadAnswer { .. } => "wonder gates -o json shows the form.",
        Cause::NobodyWaits { .. } => "wonder why RUN says what it waits for.",
        Cause::TakesNoMessage { .. } => "wonder show RUN says how it stands.",
        Cause::NobodyCalledAt { .. } => "wonder show RUN lists the nodes it has been to.",
        Cause::LogDoesNotFit => {
            "wonder fork RUN --from NODE --definition FILE makes a new run that goes on from before that."
        }
        Cause::CannotFork => "wonder show RUN lists the nodes it has been to.",
        Cause::WrongStatus { operation, status } => wrong_status(*operation, *status),
        Cause::GateClosed { .. } | Cause::AnsweredAlready { .. } => "wonder show RUN says how it stands.",
        Cause::DefinitionRefused { .. } => "wonder validate FILE says where.",
        Cause::SetAside { run } => {
            return Some(format!("Please report it with `wonder events {}`.", shell_word(run)));
        }
        Cause::OwnerSilent { .. } | Cause::StorageUnusable => {
            "Another directory can be named: WONDER_HOME=DIR."
        }
        Cause::StorageDamaged | Cause::StorageGone => return None,
        Cause::DiskFull => "Then carry on: wonder resume RUN.",
        Cause::SeveralRuns { .. }
        | Cause::SeveralGates { .. }
        | Cause::SeveralTakeMessages { .. }
        | Cause::BadRunInput { .. }
        | Cause::OtherWorkflow { .. }
        | Cause::RequestReused { .. }
        | Cause::SecretTyped { .. }
        | Cause::OtherVersion => return None,
        Cause::OutcomeUnknown { run } => {
            return Some(format!("Once there is room: wonder show {run} tells whether it was recorded."));
        }
    };
    Some(text.replace("RUN", &run.map_or("RUN".to_owned(), shell_word)))
}

/// What fits the status that the run is in; never the verb that was just refused, nor one that would be.
fn wrong_status(operation: Operation, status: RunStatus) -> &'static str {
    match (operation, status) {
        (_, RunStatus::Completed) => {
            "It is done; wonder fork RUN --from NODE makes a new run from any of its nodes."
        }
        (
            Operation::Resume | Operation::Pause,
            RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled,
        ) => "wonder retry RUN tries again what failed or was cancelled.",
        (Operation::ResumeAtGate, _) => "wonder gates RUN shows what it asks.",
        (Operation::Retry, RunStatus::Paused) => {
            "Nothing in it has failed for good; wonder why RUN says what it waits for."
        }
        (Operation::Retry, _) => "Nothing in it has failed for good; wonder show RUN says how it stands.",
        _ => "wonder show RUN says how it stands.",
    }
}
