//! Runs, visits, gates and graphs as people and programs see them: plain data that serialises.

mod graph;
mod streamed;
mod visit;

use std::collections::BTreeMap;
use std::fmt;

pub use graph::{EdgeView, GraphView, NodeKind, NodeView, SpreadView, extended};
use serde::{Deserialize, Serialize};
pub use streamed::{Heard, TextPiece};
pub use visit::{GateDetails, VisitView};
use wonder_core::error::Failure;
use wonder_core::event::{Event, GateKind, TokenId};
use wonder_core::run::Waiting;
use wonder_core::state::{Closing, Metrics};
use wonder_core::{Run, RunStatus, Time, Value};

use crate::ahead::ahead;
use crate::run_tree::visit_label;
use crate::timeline::{Timeline, Visit};

/// Something that a run has kept.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ArtifactView {
    pub run: String,
    pub name: String,
    /// Of which type, if it was written as one.
    #[serde(rename = "type")]
    pub artifact_type: Option<String>,
    pub media_type: String,
    pub bytes: u64,
    /// `blake3:` and a hash: where what is in it is kept.
    pub artifact: String,
    /// The visit whose task kept it, with its branch.
    pub node: String,
    pub at: Time,
}

/// Some bytes of an artifact.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ArtifactPiece {
    pub artifact: ArtifactView,
    /// In base64; empty at its end.
    pub base64: String,
}

/// A run's status as it is shown: the core's, and `waiting`, which is derived.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Running,
    Waiting,
    Paused,
    Cancelling,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    /// Set aside: its stored events do not fit together, or a rule broke on it.
    Quarantined,
}

impl Status {
    pub const ALL: [Status; 10] = [
        Status::Queued,
        Status::Running,
        Status::Waiting,
        Status::Paused,
        Status::Cancelling,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
        Status::TimedOut,
        Status::Quarantined,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Paused => "paused",
            Status::Cancelling => "cancelling",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::TimedOut => "timed_out",
            Status::Quarantined => "quarantined",
        }
    }

    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Nothing will happen to it any more, unless somebody retries it.
    pub fn is_end(self) -> bool {
        matches!(
            self,
            Status::Completed | Status::Failed | Status::Cancelled | Status::TimedOut | Status::Quarantined
        )
    }

    pub fn of(status: RunStatus, waiting: bool) -> Status {
        match status {
            RunStatus::Running if waiting => Status::Waiting,
            RunStatus::Queued => Status::Queued,
            RunStatus::Running => Status::Running,
            RunStatus::Paused => Status::Paused,
            RunStatus::Cancelling => Status::Cancelling,
            RunStatus::Completed => Status::Completed,
            RunStatus::Failed => Status::Failed,
            RunStatus::Cancelled => Status::Cancelled,
            RunStatus::TimedOut => Status::TimedOut,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of a list of runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunRow {
    pub run: String,
    pub workflow: String,
    pub version: u32,
    pub status: Status,
    /// The run it belongs to: itself, or the one that nobody called.
    pub root: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub started_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    pub usd_micros: u64,
    pub tokens: u64,
    /// The run it was forked from, and what of the above was spent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Forked>,
    pub project: String,
    /// An engine carries it on now. False for a live run: it was interrupted, `resume` goes on.
    pub driven: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The file it was started from, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How long it lay ended before it was retried: no part of what it took.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub closed_ms: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RunRow {
    /// How long it has been at it, until it ended or until `now`; a fork counts from when it was forked.
    pub fn took_ms(&self, now: Time) -> u64 {
        self.ended_at.unwrap_or(now).since(self.started_at).saturating_sub(self.closed_ms)
    }
}

/// Where a fork comes from. What it copied counts in it, but was spent only once.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Forked {
    pub from: String,
    pub copied_usd_micros: u64,
    pub copied_tokens: u64,
}

/// One run, complete.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunView {
    #[serde(flatten)]
    pub row: RunRow,
    pub seq: u64,
    pub input: Value,
    /// Of the run's own scope, as it is now.
    pub state: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What the run and its children wait for from outside; empty unless nothing else is going on.
    pub waiting: Vec<WaitView>,
    /// It has ended, or nothing will happen until somebody says something: no task is out, nothing sleeps or
    /// backs off, here and in its children.
    pub quiet: bool,
    pub metrics: Metrics,
    pub duration_ms: u64,
    /// Calls of models that nobody knows the price of: what they cost is in no sum of dollars.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
    /// Its budget, if it has one, in micro-dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd_micros: Option<u64>,
    /// Child runs, in the order they were started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
}

/// One thing from outside that a run waits for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitView {
    Gate {
        gate: String,
        kind: GateKind,
        node: Option<String>,
        title: String,
    },
    Event {
        run: String,
        node: String,
        event: String,
        key: Value,
    },
    /// Its project has spent its budget.
    Project {
        run: String,
        project: String,
        message: String,
    },
    /// Somebody paused it.
    Resume {
        run: String,
    },
}

/// One reason why a run does not go on, or not yet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Why {
    /// The run it is about: the one that was asked about, or one that it called.
    pub run: String,
    #[serde(flatten)]
    pub reason: WhyReason,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum WhyReason {
    /// By the run's own account: what one of its tokens, or the run itself, waits for.
    Run(Waiting),
    /// So many runs may be under way at once, and these are.
    Concurrency { holders: Vec<String> },
    /// Its project has spent its budget.
    Project { project: String, message: String },
    /// A task of it waits until the `rate` of a model profile lets its call go out.
    Rate { token: TokenId, profile: String },
    /// It has ended, and this failed: one visit of one node, or the run as a whole.
    Failed {
        /// With its branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        visit: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
        failure: Failure,
    },
    /// It was ended by somebody.
    Cancelled { reason: String },
    /// It has ended, and these nodes, which lay ahead, never began.
    NeverStarted { nodes: Vec<String> },
}

impl WhyReason {
    /// Why a run that has ended did not complete; nothing of one that did.
    pub fn of_end(run: &Run, timeline: &Timeline) -> Vec<WhyReason> {
        let mut reasons = match (&run.state().closing, run.status()) {
            (_, RunStatus::Completed) => return Vec::new(),
            (Some(Closing::Cancelled(reason)), _) => vec![WhyReason::Cancelled { reason: reason.clone() }],
            _ => failures(run, timeline),
        };
        let nodes = ahead(run.graph(), timeline);
        if !nodes.is_empty() {
            reasons.push(WhyReason::NeverStarted { nodes });
        }
        reasons
    }
}

/// What failed for good, in the order it did; the run's own failure if no visit is to blame.
fn failures(run: &Run, timeline: &Timeline) -> Vec<WhyReason> {
    let kept = timeline.reopenable().iter().filter_map(|token| timeline.visits.get(token));
    let broken = kept.filter_map(|visit| Some((visit, visit.broke_with.as_ref()?)));
    let mut broken: Vec<_> = broken.filter(|(visit, _)| visit.has_failed()).collect();
    broken.sort_by_key(|(visit, _)| visit.ended_at);
    let failed = |(visit, failure): (&Visit, &Failure)| WhyReason::Failed {
        visit: Some(visit_label(timeline, visit)),
        token: Some(visit.token),
        failure: failure.clone(),
    };
    let found: Vec<WhyReason> = broken.into_iter().map(failed).collect();
    let whole = || {
        run.failure().map(|failure| WhyReason::Failed { visit: None, token: None, failure: failure.clone() })
    };
    if found.is_empty() { whole().into_iter().collect() } else { found }
}

/// A gate as people see it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GateView {
    /// `RUN:NUMBER`.
    pub id: String,
    pub run: String,
    /// The run that nobody called.
    pub root: String,
    pub workflow: String,
    pub node: Option<String>,
    pub kind: GateKind,
    pub title: String,
    pub body: Option<String>,
    /// A JSON Schema; null takes anything.
    pub form: Value,
    pub assignees: Vec<String>,
    pub opened_at: Time,
    pub deadline: Option<Time>,
    /// The visit that waits there, with its branch: `review[2]`; absent at a gate of the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<String>,
    /// What the branch works on; null outside of a `foreach`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub item: Value,
}

/// What is new to a reader.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Updates {
    /// In order for each run.
    pub events: Vec<(String, Event)>,
    pub logs: Vec<LogLine>,
    /// How far the runs asked about are.
    pub runs: Vec<Progress>,
    /// Of all runs, if they were asked for: in the order in which they were committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StoredStep>,
    /// Where a reader of all runs goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

/// The events that one commit added to one run, as they are encoded: to be passed on without being read.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StoredStep {
    /// Its place among all steps of all runs.
    pub cursor: u64,
    pub run: String,
    /// The number of its first event.
    pub seq: u64,
    /// A JSON array of events.
    pub events: String,
}

impl StoredStep {
    pub fn decoded(&self) -> Result<Vec<Event>, serde_json::Error> {
        serde_json::from_str(&self.events)
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Progress {
    pub run: String,
    pub seq: u64,
    pub status: Status,
}

/// What a task said while it ran. Kept with the run; no part of its events.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LogLine {
    /// From 1, for the whole database.
    pub number: u64,
    pub run: String,
    pub at: Time,
    pub node: String,
    pub token: u64,
    pub attempt: u32,
    pub step: String,
    pub stream: LogStream,
    pub text: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    Stdout,
    Stderr,
    /// The worker's own words.
    Note,
}
