//! What may become true. Events are stored, streamed and replayed; they alone change a run, and a stored
//! event's meaning is frozen: `tests/golden/` is only ever added to. Inputs are not stored.
//!
//! Nodes and transitions are named by ref, not by index, so that a log can be read by people and replayed
//! on another version of its definition (`fork`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::command::Overrides;
use crate::cost::{Allowance, Spend};
use crate::def::{Name, is_default};
use crate::error::Failure;
use crate::graph::Mutation;
use crate::input::StartRun;
use crate::path::Target;
use crate::time::Time;
use crate::value::Value;

/// A token: one visit of one node. Small integers, minted in order.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct TokenId(pub u64);

/// One firing of a fan-out.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct GroupId(pub u64);

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct GateId(pub u64);

macro_rules! shown_as_number {
    ($($id:ty),*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
shown_as_number!(TokenId, GroupId, GateId);

/// One branch of a group.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct BranchRef {
    pub group: GroupId,
    pub branch: u32,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Time,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// How often a lineage took each bounded transition, by ref.
pub type Counts = BTreeMap<Name, u32>;

/// What a worker said about an attempt, beside its outcome.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Report {
    #[serde(skip_serializing_if = "is_default")]
    pub spend: Spend,
    #[serde(skip_serializing_if = "is_default")]
    pub tries: u32,
}

/// One write into the context, made where the token is: in its branch, or in the run's state or output.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Patch {
    pub to: Target,
    #[serde(flatten)]
    pub value: PatchValue,
}

/// A result is stored once: a patch that takes a part of it says which.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchValue {
    Value(Value),
    /// The path within the result of the event that holds this patch.
    Result(Vec<Name>),
}

/// What comes after a token's work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// Successors, in the events that follow.
    Routes,
    /// Nothing: the node is terminal.
    Ends,
    /// It waits at the fan-in of this group.
    Arrives(GroupId),
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutType {
    Workflow,
    Task,
    Execution,
    Synchronization,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPolicy {
    HumanGate,
    CancelAll,
    Fail,
    Retry,
    ProceedWithAvailable,
    Default,
    Escalate,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clocked {
    Workflow,
    FanIn(GroupId),
    Gate(GateId),
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// A `human_gate` node.
    Node,
    /// An escalated node: `{action: retry|skip|cancel, input?, output?}`.
    Review,
    /// The workflow's time is over: `{action: extend|abort, by?}`.
    Timeout,
    /// The budget is spent: `{action: raise|abort, usd?}`.
    Budget,
    /// A task with effect `once` was lost: `{action: done|again|fail, output?}`.
    Outcome,
}

/// A gate as it was opened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GateRecord {
    pub kind: GateKind,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A JSON Schema that an answer must fit; null takes anything.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub form: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignees: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_every_ms: Option<u64>,
    /// Whom to ask next when the time is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalate: Vec<Name>,
    /// The failure that led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// Its fan-in fired without it.
    EarlyComplete,
    /// A branch failed, and with it the fan-in or the rest of the branch.
    BranchFailed,
    /// It was abandoned or late, and its task has now reported.
    Straggler,
    RunCancelled,
}

/// Why a run stands still. It goes on when the last reason is gone.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    Operator,
    /// The workflow's timeout asks.
    Timeout(GateId),
    /// The budget asks.
    Budget(GateId),
    /// An `on_error` said `pause`.
    Response(GateId),
}

/// Which rule answered a failure: the node's, the workflow's, or a default.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleRef {
    /// `TaskDef.retry`.
    Task,
    Node(u32),
    Workflow(u32),
    Default(u32),
}

/// A change to how a run goes on; counted against `mutations_max`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunChange {
    SwitchModel { model: Name },
    StricterPrompt,
    Change,
    Feedback,
    Downgrade,
    Graph(Mutation),
}

/// Every kind, flat: the file format.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    RunQueued { workflow: Name, version: u32, #[serde(flatten)] start: Box<StartRun> },
    RunStarted { workflow: Name, version: u32, #[serde(flatten)] start: Box<StartRun> },
    RunReleased,
    TokenCreated {
        token: TokenId,
        node: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TokenId>,
        /// The transition that led here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<BranchRef>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counts: Counts,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_error: Option<Failure>,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        feedback: Value,
        /// A result handed on to a node that a mutation put in, or to the gather of a dag's `foreach`.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        carried: Value,
    },
    TaskDispatched {
        token: TokenId,
        attempt: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        generation: u32,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
        #[serde(default, skip_serializing_if = "is_default")]
        reserved: Allowance,
    },
    TaskRetrying {
        token: TokenId,
        failure: Failure,
        wake_at: Time,
        rule: RuleRef,
        #[serde(default, skip_serializing_if = "is_default")]
        generation: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        overrides: Overrides,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        feedback: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    },
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
    TokenAbandoned { token: TokenId, late: bool },
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
    TimeoutWarning { of: Clocked, elapsed_ms: u64, timeout_ms: u64 },
    /// Late word of a task whose token has ended: changes cost only.
    LateReport { token: TokenId, attempt: u32, report: Report },
    ContextUpdated { token: TokenId, patches: Vec<Patch> },
    SleepStarted { token: TokenId, until: Time },
    EventAwaited {
        token: TokenId,
        event: Name,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        key: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    },
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
    EventTaken { token: TokenId, received: u64 },
    FanOut {
        group: GroupId,
        /// The token that fanned out.
        token: TokenId,
        node: Name,
        /// The transition, if one made the group; else the node did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transition: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outer: Option<BranchRef>,
        total: u32,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        items: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item_name: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_parallel: Option<u32>,
        /// The target of its fan-in, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joins_at: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counts: Counts,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_error: Option<Failure>,
    },
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
    FanInFailed { group: GroupId, failure: Failure, handled: bool },
    /// An inner group that ends with the branch it is in. `kept`: a `retry` may want it back.
    GroupClosed { group: GroupId, kept: bool },
    GateOpened {
        gate: GateId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
        record: Box<GateRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    },
    GateAnswered { gate: GateId, by: Name, answer: Value, closes: bool },
    /// Closed without an answer.
    GateClosed { gate: GateId, by: Name },
    GateReminded { gate: GateId },
    GateReassigned { gate: GateId, assignees: Vec<Name> },
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
    ChildStarted {
        token: TokenId,
        attempt: u32,
        child: Name,
        workflow: Name,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowance: Option<Allowance>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "is_default")]
        inherit_artifacts: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    },
    ChildCompleted { token: TokenId, attempt: u32, child: Name, outcome: Name, spend: Spend },
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
    BudgetRaised { usd_micros: u64 },
    WorkflowExtended { by_ms: u64 },
    RunPaused { reason: PauseReason, by: Name },
    RunResumed { reason: PauseReason, by: Name },
    RunCancelling { reason: String, deadline: Time },
    RunCompleted { output: Value },
    RunFailed { failure: Failure },
    RunCancelled { reason: String },
    RunTimedOut { failure: Failure },
    RunRetried { by: Name },
    RunForked { run: Name, from: Name, node: Name, #[serde(default, skip_serializing_if = "Value::is_null")] input: Value, token: TokenId },
}

impl EventKind {
    /// The word that is stored, streamed and shown.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::RunQueued { .. } => "run_queued",
            EventKind::RunStarted { .. } => "run_started",
            EventKind::RunReleased => "run_released",
            EventKind::TokenCreated { .. } => "token_created",
            EventKind::TaskDispatched { .. } => "task_dispatched",
            EventKind::TaskRetrying { .. } => "task_retrying",
            EventKind::TaskCompleted { .. } => "task_completed",
            EventKind::TaskFailed { .. } => "task_failed",
            EventKind::TokenSkipped { .. } => "token_skipped",
            EventKind::TokenCancelled { .. } => "token_cancelled",
            EventKind::TokenAbandoned { .. } => "token_abandoned",
            EventKind::TokenTimedOut { .. } => "token_timed_out",
            EventKind::TimeoutWarning { .. } => "timeout_warning",
            EventKind::LateReport { .. } => "late_report",
            EventKind::ContextUpdated { .. } => "context_updated",
            EventKind::SleepStarted { .. } => "sleep_started",
            EventKind::EventAwaited { .. } => "event_awaited",
            EventKind::EventReceived { .. } => "event_received",
            EventKind::EventTaken { .. } => "event_taken",
            EventKind::FanOut { .. } => "fan_out",
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
            EventKind::ChildStarted { .. } => "child_started",
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
            EventKind::RunForked { .. } => "run_forked",
        }
    }
}
