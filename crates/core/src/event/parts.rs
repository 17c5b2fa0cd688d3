//! What events are made of: ids, and the facts that more than one event or the state holds.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::cost::Spend;
use crate::def::{Name, is_default};
use crate::error::Failure;
use crate::graph::Mutation;
use crate::path::Target;
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
    /// What it kept, in order; of tasks that completed and of no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
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

/// A large part of a task's input that the context holds already: it is not stored a second time, so that a turn of a
/// long conversation costs what is new in it. What stood there is what stands there when the event is applied.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TakenPart {
    /// Where it goes in the input.
    pub at: Vec<Name>,
    /// What is read: `["state", "messages"]`.
    pub from: Vec<Name>,
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
    /// The step's `on_failure: continue`.
    Continue,
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
    /// A task ended because it wants to know something (`input_required`), by a form of its own; then it runs again.
    Input,
}

/// What a wait was opened with, so that its answer meets the same: nothing is mapped a second time. Logs that
/// were written before this have none; then the input is mapped when the answer comes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct OpenedWith {
    /// The input of the node's task, as it was mapped.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
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
    /// The node whose budget it asks about; else the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_of: Option<Name>,
    /// It asks about what the parent run allows, not about a budget of this one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub of_parent: bool,
    /// The failure that led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl GateRecord {
    /// A gate that takes any answer, from anybody, at any time.
    pub fn new(kind: GateKind, title: impl Into<String>) -> GateRecord {
        GateRecord {
            kind,
            title: title.into(),
            body: None,
            form: Value::Null,
            assignees: Vec::new(),
            quorum: None,
            timeout_ms: None,
            remind_every_ms: None,
            escalate: Vec::new(),
            budget_of: None,
            of_parent: false,
            failure: None,
        }
    }
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
    /// `on_timeout: retry` of an action among the steps of a task.
    Action,
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

/// A run that goes on from another's events; those stand before this in its log.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NewFork {
    pub run: Name,
    pub from: Name,
    /// The fork of the run that called the other one, if that was forked too; else nobody called this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    pub node: Name,
    /// Laid over the input of the node.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    pub token: TokenId,
    /// Laid over the run's state.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub set: Value,
}
