//! What may become true. Events are stored, streamed and replayed; they alone change a run, and a stored
//! event's meaning is frozen: `tests/golden/` is only ever added to. Inputs are not stored.
//!
//! Nodes and transitions are named by ref, not by index, so that a log can be read by people and replayed
//! on another version of its definition (`fork`).

mod new;
mod parts;

pub use new::*;
pub use parts::*;
use serde::{Deserialize, Serialize};

use crate::command::Overrides;
use crate::cost::{Allowance, Spend};
use crate::def::{Name, is_default};
use crate::error::Failure;
use crate::input::StartRun;
use crate::time::Time;
use crate::value::Value;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Time,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Every kind, flat: the file format.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    RunQueued {
        workflow: Name,
        version: u32,
        #[serde(flatten)]
        start: Box<StartRun>,
    },
    RunStarted {
        workflow: Name,
        version: u32,
        #[serde(flatten)]
        start: Box<StartRun>,
    },
    RunReleased,
    /// One input led to more moves than a step may have: the run wants to be woken at once.
    RunYielded,
    RunContinued,
    TokenCreated(NewToken),
    TaskDispatched {
        token: TokenId,
        attempt: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        generation: u32,
        /// Without what is taken from the context.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taken: Vec<TakenPart>,
        #[serde(default, skip_serializing_if = "is_default")]
        reserved: Allowance,
    },
    TaskRetrying(TaskRetry),
    TaskCompleted {
        token: TokenId,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        patches: Vec<Patch>,
        then: Then,
        /// In a branch: readable there as `state.<ref>`, for nothing was mapped.
        #[serde(default, skip_serializing_if = "is_default")]
        unmapped: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    },
    /// A step failed, and by its `on_failure: continue` the task went on.
    StepFailed {
        token: TokenId,
        attempt: u32,
        step: Name,
        failure: Failure,
    },
    /// `handled`: a failure transition goes on from here.
    TaskFailed {
        token: TokenId,
        failure: Failure,
        #[serde(default, skip_serializing_if = "is_default")]
        timed_out: bool,
        #[serde(default, skip_serializing_if = "is_default")]
        handled: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    },
    TokenSkipped {
        token: TokenId,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        output: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        patches: Vec<Patch>,
        then: Then,
        #[serde(default, skip_serializing_if = "is_default")]
        unmapped: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    },
    TokenCancelled {
        token: TokenId,
        reason: CancelReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    },
    /// Told to finish its task and go no further.
    TokenAbandoned {
        token: TokenId,
        late: bool,
    },
    /// A deadline passed. Says so; what becomes of the token is another event, unless `ends`.
    TokenTimedOut {
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "token_id")]
        token: Option<TokenId>,
        workflow_run_id: Name,
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "node_id")]
        node: Option<Name>,
        timeout_type: TimeoutType,
        timeout_duration_ms: u64,
        policy_applied: TimeoutPolicy,
        #[serde(default, skip_serializing_if = "is_default")]
        ends: bool,
    },
    TimeoutWarning {
        of: Clocked,
        elapsed_ms: u64,
        timeout_ms: u64,
    },
    /// Late word of a task whose token has ended: changes cost only.
    LateReport {
        token: TokenId,
        attempt: u32,
        report: Report,
    },
    ContextUpdated {
        token: TokenId,
        patches: Vec<Patch>,
    },
    SleepStarted {
        token: TokenId,
        until: Time,
        /// When the time that its node gives it is over, if that comes first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened_with: Option<OpenedWith>,
    },
    EventAwaited(EventWait),
    /// `token`: who takes it; nobody: it is kept.
    EventReceived {
        event: Name,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        key: Value,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
    },
    /// A kept event, by the `seq` of its `event_received`, meets the wait that it came before.
    EventTaken {
        token: TokenId,
        received: u64,
    },
    FanOut(NewGroup),
    /// A token of this branch has come to the fan-in; `within`: from a branch further in.
    BranchArrived {
        token: TokenId,
        group: GroupId,
        branch: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<BranchRef>,
    },
    FanIn {
        group: GroupId,
        node: Name,
        arrived: u32,
        total: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        patches: Vec<Patch>,
    },
    FanInFailed {
        group: GroupId,
        failure: Failure,
        handled: bool,
    },
    /// An inner group that ends with the branch it is in. `kept`: a `retry` may want it back.
    GroupClosed {
        group: GroupId,
        kept: bool,
    },
    GateOpened {
        gate: GateId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
        record: Box<GateRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened_with: Option<OpenedWith>,
    },
    GateAnswered {
        gate: GateId,
        by: Name,
        answer: Value,
        closes: bool,
    },
    /// Closed without an answer.
    GateClosed {
        gate: GateId,
        by: Name,
    },
    GateReminded {
        gate: GateId,
    },
    GateReassigned {
        gate: GateId,
        assignees: Vec<Name>,
    },
    /// A review said `retry`, an unknown outcome is known or may be tried again: the token goes on.
    TokenReleased {
        token: TokenId,
        #[serde(default, skip_serializing_if = "is_default")]
        generation: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        overrides: Overrides,
        /// The attempt that was out counts as out again, for its outcome is now told.
        #[serde(default, skip_serializing_if = "is_default")]
        resumed: bool,
    },
    ChildStarted(NewChild),
    ChildCompleted {
        token: TokenId,
        attempt: u32,
        child: Name,
        outcome: Name,
        spend: Spend,
    },
    RunMutated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
        reason: String,
        what: RunChange,
    },
    BudgetWarning {
        /// A node's budget; else the run's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Name>,
        spent: Spend,
    },
    BudgetExceeded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Name>,
        message: String,
    },
    /// `whole`: every bound by what was written, not only the dollars.
    BudgetRaised {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Name>,
        usd_micros: u64,
        #[serde(default, skip_serializing_if = "is_default")]
        tokens: u64,
        #[serde(default, skip_serializing_if = "is_default")]
        calls: u64,
        whole: bool,
        /// What the parent run allows, not a budget of this one.
        #[serde(default, skip_serializing_if = "is_default")]
        of_parent: bool,
    },
    WorkflowExtended {
        by_ms: u64,
    },
    RunPaused {
        reason: PauseReason,
        by: Name,
    },
    RunResumed {
        reason: PauseReason,
        by: Name,
    },
    RunCancelling {
        reason: String,
        deadline: Time,
    },
    RunCompleted {
        output: Value,
    },
    RunFailed {
        failure: Failure,
    },
    RunCancelled {
        reason: String,
    },
    RunTimedOut {
        failure: Failure,
    },
    RunRetried {
        by: Name,
        /// The version of its definition that it goes on with; absent: the one it had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
    },
    RunForked(NewFork),
}

impl EventKind {
    /// The word that is stored, streamed and shown.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::RunQueued { .. } => "run_queued",
            EventKind::RunStarted { .. } => "run_started",
            EventKind::RunReleased => "run_released",
            EventKind::RunYielded => "run_yielded",
            EventKind::RunContinued => "run_continued",
            EventKind::TokenCreated(_) => "token_created",
            EventKind::TaskDispatched { .. } => "task_dispatched",
            EventKind::TaskRetrying(_) => "task_retrying",
            EventKind::TaskCompleted { .. } => "task_completed",
            EventKind::StepFailed { .. } => "step_failed",
            EventKind::TaskFailed { .. } => "task_failed",
            EventKind::TokenSkipped { .. } => "token_skipped",
            EventKind::TokenCancelled { .. } => "token_cancelled",
            EventKind::TokenAbandoned { .. } => "token_abandoned",
            EventKind::TokenTimedOut { .. } => "token_timed_out",
            EventKind::TimeoutWarning { .. } => "timeout_warning",
            EventKind::LateReport { .. } => "late_report",
            EventKind::ContextUpdated { .. } => "context_updated",
            EventKind::SleepStarted { .. } => "sleep_started",
            EventKind::EventAwaited(_) => "event_awaited",
            EventKind::EventReceived { .. } => "event_received",
            EventKind::EventTaken { .. } => "event_taken",
            EventKind::FanOut(_) => "fan_out",
            EventKind::BranchArrived { .. } => "branch_arrived",
            EventKind::FanIn { .. } => "fan_in",
            EventKind::FanInFailed { .. } => "fan_in_failed",
            EventKind::GroupClosed { .. } => "group_closed",
            EventKind::GateOpened { .. } => "gate_opened",
            EventKind::GateAnswered { .. } => "gate_answered",
            EventKind::GateClosed { .. } => "gate_closed",
            EventKind::GateReminded { .. } => "gate_reminded",
            EventKind::GateReassigned { .. } => "gate_reassigned",
            EventKind::TokenReleased { .. } => "token_released",
            EventKind::ChildStarted(_) => "child_started",
            EventKind::ChildCompleted { .. } => "child_completed",
            EventKind::RunMutated { .. } => "run_mutated",
            EventKind::BudgetWarning { .. } => "budget_warning",
            EventKind::BudgetExceeded { .. } => "budget_exceeded",
            EventKind::BudgetRaised { .. } => "budget_raised",
            EventKind::WorkflowExtended { .. } => "workflow_extended",
            EventKind::RunPaused { .. } => "run_paused",
            EventKind::RunResumed { .. } => "run_resumed",
            EventKind::RunCancelling { .. } => "run_cancelling",
            EventKind::RunCompleted { .. } => "run_completed",
            EventKind::RunFailed { .. } => "run_failed",
            EventKind::RunCancelled { .. } => "run_cancelled",
            EventKind::RunTimedOut { .. } => "run_timed_out",
            EventKind::RunRetried { .. } => "run_retried",
            EventKind::RunForked(_) => "run_forked",
        }
    }
}
