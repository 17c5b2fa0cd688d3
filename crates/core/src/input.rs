//! What a host may say to a run, each with the time on it. One file per input under `decide/` says what
//! becomes of it; an input that does not fit is refused with a [`Rejection`] and changes nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::cost::{Allowance, Spend};
use crate::def::{Estimate, Name, OnExceeded, Prices, is_default};
use crate::error::Failure;
use crate::event::{GateId, TokenId};
use crate::limits::Limits;
use crate::time::Time;
use crate::value::Value;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    StartRun(Box<StartRun>),
    /// A queued run may begin.
    Release,
    /// A worker's one report on one attempt.
    TaskFinished {
        token: TokenId,
        attempt: u32,
        report: TaskReport,
    },
    /// It is (at least) the time that [`crate::Run::next_deadline`] asked to be woken at.
    Wake,
    GateAnswered {
        gate: GateId,
        answer: Value,
        by: Name,
    },
    /// `keep: false` is a transient event: lost, as a rejection, if nobody waits for it.
    EventArrived {
        name: Name,
        key: Value,
        payload: Value,
        keep: bool,
    },
    ChildFinished {
        token: TokenId,
        attempt: u32,
        outcome: ChildOutcome,
        spend: Spend,
    },
    /// Ends what is not out at once, and waits for the rest until `grace_ms` is over.
    Cancel {
        reason: String,
        grace_ms: Option<u64>,
    },
    /// Cancel without waiting.
    Kill {
        reason: String,
    },
    Pause {
        by: Name,
    },
    Resume {
        by: Name,
    },
    /// Reopens what failed, timed out or was cancelled because of it.
    Retry {
        by: Name,
        /// The version of its definition that the host has put under it; absent: the one it had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
    },
}

/// Everything a run is told once, and keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRun {
    pub id: Name,
    pub input: Value,
    /// For backoff jitter; the only randomness there is.
    pub seed: u64,
    /// Written by the first format and read by nobody: what replays a run applies its events and asks no rule.
    /// Kept so that its logs are written back as they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub behaviour: u32,
    #[serde(default)]
    pub limits: Limits,
    /// Learnt from past runs, by ref; what the file says wins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub estimates: BTreeMap<Name, Estimate>,
    /// Timeouts of `timeout: adaptive` nodes, resolved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timeouts_ms: BTreeMap<Name, u64>,
    /// Prices of profiles by name, pinned; those of the definition if absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<Name, Prices>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Budgets of the workflows this one may call, by name: what a call of one reserves at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub child_budgets: BTreeMap<Name, Allowance>,
    /// What a parent lets this run spend; a bound beside its own budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Allowance>,
    /// What the parent's budget says to do when that is spent; absent: fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exceeded: Option<OnExceeded>,
    /// Instead of the workflow's own timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Instead of the workflow's own `max_parallel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// Wait for [`Input::Release`].
    #[serde(default)]
    pub queued: bool,
}

impl StartRun {
    pub fn new(id: impl Into<Name>, input: Value) -> StartRun {
        StartRun {
            id: id.into(),
            input,
            seed: 0,
            behaviour: 0,
            limits: Limits::default(),
            estimates: BTreeMap::new(),
            timeouts_ms: BTreeMap::new(),
            prices: BTreeMap::new(),
            child_budgets: BTreeMap::new(),
            parent: None,
            allowance: None,
            on_exceeded: None,
            timeout_ms: None,
            max_parallel: None,
            queued: false,
        }
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Parent {
    pub run: Name,
    pub token: TokenId,
    pub attempt: u32,
    /// Of this run; a run that nobody called has depth 0.
    pub depth: u32,
    /// It reads the parent's artifacts by name too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inherit_artifacts: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TaskReport {
    pub outcome: TaskOutcome,
    pub spend: Spend,
    /// Tries of actions beyond the first, summed over the task.
    pub tries: u32,
    /// Steps that failed and whose `on_failure: continue` let the task go on, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<ContinuedStep>,
    /// What it kept, in order, if it completed: each is where artifacts are kept before this is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl TaskReport {
    /// Of a task that tried nothing twice and went on after no failure.
    pub fn new(outcome: TaskOutcome, spend: Spend) -> TaskReport {
        TaskReport { outcome, spend, tries: 0, continued: Vec::new(), artifacts: Vec::new() }
    }
}

/// A step that failed, and its task went on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ContinuedStep {
    pub step: Name,
    pub failure: Failure,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TaskOutcome {
    Completed {
        result: Value,
    },
    /// `retry`: the failed step says `on_failure: retry`. `step`: which one it was.
    Failed {
        failure: Failure,
        retry: bool,
        step: Option<Name>,
    },
    /// The task's own time was over.
    TimedOut {
        after_ms: u64,
    },
    /// No worker took it for so long that its host gave up (`queue_timeout`): nothing of it has begun.
    NotTaken {
        waited_ms: u64,
    },
    /// It ended because it was told to.
    Cancelled,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ChildOutcome {
    Completed { output: Value },
    Failed { failure: Failure },
    TimedOut,
    Cancelled,
}

/// What somebody wants done to a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Release,
    Cancel,
    Kill,
    Pause,
    Resume,
    /// What a gate paused, an answer to the gate resumes.
    ResumeAtGate,
    Retry,
    SendEvent,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Release => "release",
            Operation::Cancel => "cancel",
            Operation::Kill => "kill",
            Operation::Pause => "pause",
            Operation::Resume => "resume",
            Operation::ResumeAtGate => "resume (answer its gate instead)",
            Operation::Retry => "retry",
            Operation::SendEvent => "send an event to",
        })
    }
}

/// A bound that an input may break.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    ResultBytesMax,
    EventsKeptMax,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::ResultBytesMax => "result_bytes_max",
            Limit::EventsKeptMax => "events_kept_max",
        })
    }
}

/// Why an input was refused. Nothing has changed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "rejection", rename_all = "snake_case")]
pub enum Rejection {
    AlreadyStarted,
    NotStarted,
    /// The run's input does not fit its schema.
    BadInput {
        violations: Vec<String>,
    },
    /// This token is not out, or not with this attempt: a repeated or stale report.
    NotOut {
        token: TokenId,
        attempt: u32,
    },
    NoSuchGate {
        gate: GateId,
    },
    GateClosed {
        gate: GateId,
        by: Name,
        at: Time,
    },
    /// The answer does not fit the form; the gate stays open.
    BadAnswer {
        gate: GateId,
        violations: Vec<String>,
    },
    /// This person has answered already; a quorum wants different ones.
    AnsweredAlready {
        gate: GateId,
        by: Name,
    },
    /// Nobody waits for this transient event.
    NobodyWaits {
        event: Name,
    },
    /// The operation does not fit the run's status.
    WrongStatus {
        status: crate::run::RunStatus,
        operation: Operation,
    },
    /// No deadline has passed.
    NothingDue {
        next: Option<Time>,
    },
    LimitExceeded {
        limit: Limit,
        max: u64,
    },
    /// A fork's point or definition does not fit.
    CannotFork {
        reason: String,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::AlreadyStarted => write!(f, "the run has already started"),
            Rejection::NotStarted => write!(f, "the run has not started"),
            Rejection::BadInput { violations } => {
                write!(f, "the input does not fit the workflow's input_schema: {}", violations.join("; "))
            }
            Rejection::NotOut { token, attempt } => {
                write!(f, "attempt {attempt} of token {token} is not out (reported already, or cancelled)")
            }
            Rejection::NoSuchGate { gate } => write!(f, "there is no gate {gate}"),
            Rejection::GateClosed { gate, by, at } => write!(f, "gate {gate} was closed by {by} at {at}"),
            Rejection::BadAnswer { gate, violations } => {
                write!(
                    f,
                    "the answer does not fit the form of gate {gate}: {}; the gate stays open",
                    violations.join("; ")
                )
            }
            Rejection::AnsweredAlready { gate, by } => write!(f, "{by} has already answered gate {gate}"),
            Rejection::NobodyWaits { event } => write!(f, "nobody waits for event {event}"),
            Rejection::WrongStatus { status, operation } => {
                write!(f, "cannot {operation} a run that is {status}")
            }
            Rejection::NothingDue { next: Some(next) } => write!(f, "nothing is due before {next}"),
            Rejection::NothingDue { next: None } => write!(f, "the run waits for no deadline"),
            Rejection::LimitExceeded { limit, max } => write!(f, "beyond the limit {limit} ({max})"),
            Rejection::CannotFork { reason } => write!(f, "cannot fork: {reason}"),
        }
    }
}

impl std::error::Error for Rejection {}
