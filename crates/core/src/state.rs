//! A run's state: what its events have made true so far. Plain data that serialises, compares and clones;
//! `apply` alone changes it, the rules in `decide` only read it.

mod pairs;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::Overrides;
use crate::cost::{Allowance, Spend};
use crate::def::{Name, is_default};
use crate::error::Failure;
use crate::event::{
    BranchRef, CancelReason, Counts, GateId, GateRecord, GroupId, NewChild, OpenedWith, PauseReason, RuleRef,
    TokenId,
};
use crate::graph::Mutation;
use crate::input::StartRun;
use crate::lifecycle::{RunStatus, TokenStatus};
use crate::time::Time;
use crate::value::Value;

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct State {
    /// Events applied; the next has this number plus one.
    pub seq: u64,
    /// The time of the last event; never goes back.
    pub now: Time,
    pub status: RunStatus,
    /// What the run was told at its start; absent before it.
    pub start: Option<Box<StartRun>>,
    pub started_at: Time,
    /// The run's own `state` and `output`; a branch keeps its own.
    pub state: Value,
    pub output: Value,
    pub context_bytes: u64,
    /// Live tokens, and ended ones that a `retry` could want back.
    pub tokens: BTreeMap<TokenId, Token>,
    pub groups: BTreeMap<GroupId, Group>,
    pub gates: BTreeMap<GateId, Gate>,
    pub gates_closed: BTreeMap<GateId, GateClosing>,
    /// Tasks and children that have not reported, those of ended tokens included.
    #[serde(with = "pairs")]
    pub out: BTreeMap<(TokenId, u32), Out>,
    /// How each child that is out was started, for a host that has to ask again.
    #[serde(with = "pairs")]
    pub child_orders: BTreeMap<(TokenId, u32), NewChild>,
    /// Pending tokens that need no worker, in the order they came.
    pub entering: BTreeSet<TokenId>,
    /// Pending tokens that call a child run, which may have to wait for the budget.
    pub calling: BTreeSet<TokenId>,
    /// Pending tokens that need a worker, the one to go first first.
    pub ready: BTreeSet<(u32, TokenId)>,
    pub timers: BTreeSet<(Time, Timer)>,
    pub clock: Clock,
    pub events_kept: VecDeque<KeptEvent>,
    pub pauses: BTreeSet<PauseReason>,
    /// By unit index; empty in a graph.
    pub units: Vec<UnitState>,
    /// Rank of each node for the ready order; empty: as they come.
    pub ranks: Vec<u32>,
    pub mutations: Vec<Mutation>,
    pub downgrades: u32,
    pub spend: Spend,
    pub reserved: Allowance,
    /// Of nodes that have a budget, by ref.
    pub node_spend: BTreeMap<Name, NodeSpend>,
    pub raised: Raised,
    /// What people added to what a parent allows.
    #[serde(default)]
    pub granted: Allowance,
    pub budget_warned: bool,
    pub metrics: Metrics,
    pub ends: Ends,
    #[serde(rename = "population")]
    pub token_counts: TokenCounts,
    pub tokens_minted: u64,
    pub groups_made: u64,
    pub gates_opened: u64,
    pub closing: Option<Closing>,
    /// In a dag: the first failure that nobody took care of. The run fails with it, at the latest when all else is
    /// done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_with: Option<Failure>,
}

/// How a run ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    Output(Value),
    Failure(Failure),
    Cancelled(String),
}

/// One visit of one node.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Token {
    pub id: TokenId,
    /// Index of its node in the graph.
    pub node: u32,
    pub parent: Option<TokenId>,
    pub via: Option<Name>,
    /// The innermost branch it is in.
    pub branch: Option<BranchRef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub counts: Counts,
    pub last_error: Option<Failure>,
    pub feedback: Value,
    pub carried: Value,
    /// Dispatches by decision so far.
    pub attempt: u32,
    pub generation: u32,
    /// Tries of its actions that attempts have reported, beyond the first of each.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tries: u32,
    pub overrides: Overrides,
    /// How often each rule has answered a failure of this token.
    #[serde(default, skip_serializing_if = "is_default", with = "pairs")]
    pub answered: BTreeMap<RuleRef, u32>,
    pub straggler: Option<Straggler>,
    pub created_at: Time,
    pub place: Place,
}

/// Where a token is in its life, with what exists only there.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Place {
    Pending,
    Dispatched {
        input: Value,
    },
    Retrying {
        wake_at: Time,
    },
    Escalated {
        gate: GateId,
        failure: Failure,
    },
    WaitingForSubworkflow {
        child: Name,
        deadline: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened_with: Option<OpenedWith>,
    },
    WaitingForHuman {
        gate: GateId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened_with: Option<OpenedWith>,
    },
    WaitingForEvent {
        event: Name,
        key: Value,
        deadline: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened_with: Option<OpenedWith>,
    },
    Sleeping {
        until: Time,
        /// When its time is over before it has slept enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened_with: Option<OpenedWith>,
    },
    WaitingForSiblings {
        group: GroupId,
    },
    /// Kept because `retry` may reopen it. `at`: the fan-in it waited at.
    Ended {
        as_status: TokenStatus,
        at: Option<GroupId>,
        failure: Option<Failure>,
        reason: Option<CancelReason>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Straggler {
    /// `on_early_complete: abandon`: the run stays open for it.
    Abandoned,
    /// Its fan-in timed out: cancelled when all else is done.
    Late,
}

/// One firing of a fan-out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Group {
    pub id: GroupId,
    pub origin: TokenId,
    /// Index of the node that fanned out.
    pub node: u32,
    /// The transition that made it; else the node did.
    pub transition: Option<Name>,
    pub outer: Option<BranchRef>,
    pub counts: Counts,
    pub last_error: Option<Failure>,
    pub items: Value,
    pub item_name: Option<Name>,
    pub total: u32,
    pub max_parallel: Option<u32>,
    /// Index of its fan-in's target node.
    pub target: Option<u32>,
    pub timeout_ms: Option<u64>,
    /// What lies outside, as it was when the group was made.
    pub base: Arc<Base>,
    /// Of those started; the rest wait for a place.
    pub branches: Vec<Branch>,
    /// Tokens at the fan-in.
    pub waiting: BTreeSet<TokenId>,
    pub arrived: u32,
    pub done: u32,
    pub failed: u32,
    /// The first failure, which decides for `all`.
    pub failure: Option<Failure>,
    /// The last one, which decides where a number of arrivals is wanted.
    pub last_failure: Option<Failure>,
    pub first_arrival: Option<Time>,
    pub warned: bool,
    /// Something in it has ended that a `retry` may reopen.
    pub kept: bool,
    pub closed: bool,
}

/// The scope around a group.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Base {
    pub state: Value,
    pub output: Value,
    pub up: Option<Arc<Base>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Branch {
    /// Live tokens whose innermost branch this is, those at a fan-in apart.
    pub tokens: Vec<TokenId>,
    /// Open groups directly within.
    pub groups: Vec<GroupId>,
    /// What mappings and `update_context` wrote.
    pub output: Option<Value>,
    /// The last result: the branch's output if nothing was written.
    pub last: Value,
    /// What `state` shows on top of what lies outside.
    pub local: Value,
    /// A token of it came to the fan-in.
    pub came: bool,
    /// Its place in the order of arrivals, from 1.
    pub arrival: Option<u32>,
    pub done: bool,
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Gate {
    pub record: GateRecord,
    pub token: Option<TokenId>,
    pub opened_at: Time,
    pub assignees: Vec<Name>,
    pub answers: Vec<(Name, Value)>,
    pub deadline: Option<Time>,
    /// It has been passed on to others once.
    pub escalated: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GateClosing {
    pub by: Name,
    pub at: Time,
}

/// A task or a child that has not reported yet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Out {
    pub node: u32,
    pub reserved: Allowance,
    pub child: Option<Name>,
    /// How far models were downgraded when it went out.
    pub downgrades: u32,
    /// What its node's budget left it of time.
    pub wall_left_ms: Option<u64>,
}

/// What a deadline is for. At one time: the workflow's first, then by token.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    Workflow,
    WorkflowWarning,
    Wall,
    WallWarning,
    CancelGrace,
    /// The run yielded in the middle of its moves.
    Continue,
    /// A backoff, a sleep, an event's or a child's timeout: its place says which.
    Token(TokenId),
    FanIn(GroupId),
    FanInWarning(GroupId),
    Gate(GateId),
    GateWarning(GateId),
    Reminder(GateId),
}

/// The workflow's clock: it stands while the run is paused or only waits for people, events or sleeps.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Clock {
    pub limit_ms: u64,
    pub used_ms: u64,
    /// Since when it runs; absent while it stands.
    pub since: Option<Time>,
    pub warned: bool,
    /// When a pause began; the fan-in clocks are put forward by its length.
    pub paused_at: Option<Time>,
    /// It has been paused before, and its children with it.
    pub was_paused: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct KeptEvent {
    pub seq: u64,
    pub event: Name,
    pub key: Value,
    pub payload: Value,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UnitState {
    pub status: UnitStatus,
    pub needs_completed: u32,
    pub needs_skipped: u32,
    /// Needs that failed, or never start because of a failure.
    #[serde(default)]
    pub needs_failed: u32,
    pub result: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitStatus {
    #[default]
    Waiting,
    Started,
    Completed,
    Skipped,
    Failed,
    /// It never starts: too few of what it needs can complete, because of a failure.
    Stopped,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NodeSpend {
    pub spend: Spend,
    pub reserved: Allowance,
    pub raised: Raised,
    pub warned: bool,
}

/// What people added to a budget.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Raised {
    pub usd_micros: u64,
    #[serde(default)]
    pub tokens: u64,
    #[serde(default)]
    pub calls: u64,
    /// How often all of it was raised: tokens, calls and time grow by their first amount each time.
    pub times: u64,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Metrics {
    pub nodes_completed: u64,
    pub nodes_failed: u64,
    pub nodes_skipped: u64,
    pub retries: u64,
    pub mutations_applied: u32,
}

/// Results of terminal nodes, for a run without an `output_mapping`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Ends {
    pub last: Value,
    /// Of terminal nodes within groups that no fan-in joins, by ref.
    pub by_ref: BTreeMap<Name, Value>,
}

/// How many tokens there are of each sort; kept, so that nothing has to count them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TokenCounts {
    pub live: u64,
    /// Live, and waiting for a human, an event or a time.
    pub idle: u64,
    pub at_fan_ins: u64,
    pub abandoned: u64,
    pub late: u64,
    /// Tasks that are out: what `max_parallel` bounds.
    pub tasks_out: u64,
}

impl State {
    /// The nearest branch outward that a fan-in will judge.
    pub fn judged_branch(&self, from: BranchRef) -> Option<BranchRef> {
        let mut next = Some(from);
        while let Some(at) = next {
            let group = self.groups.get(&at.group)?;
            if group.target.is_some() {
                return Some(at);
            }
            next = group.outer;
        }
        None
    }
}

impl Token {
    pub fn status(&self) -> TokenStatus {
        match &self.place {
            Place::Pending => TokenStatus::Pending,
            Place::Dispatched { .. } => TokenStatus::Dispatched,
            Place::Retrying { .. } => TokenStatus::Retrying,
            Place::Escalated { .. } => TokenStatus::Escalated,
            Place::WaitingForSubworkflow { .. } => TokenStatus::WaitingForSubworkflow,
            Place::WaitingForHuman { .. } => TokenStatus::WaitingForHuman,
            Place::WaitingForEvent { .. } => TokenStatus::WaitingForEvent,
            Place::Sleeping { .. } => TokenStatus::Sleeping,
            Place::WaitingForSiblings { .. } => TokenStatus::WaitingForSiblings,
            Place::Ended { as_status, .. } => *as_status,
        }
    }

    pub fn is_live(&self) -> bool {
        !matches!(self.place, Place::Ended { .. })
    }

    /// Waits for the report of just this attempt, of a task or a child.
    pub fn awaits(&self, attempt: u32) -> bool {
        let out = matches!(self.place, Place::Dispatched { .. } | Place::WaitingForSubworkflow { .. });
        out && self.attempt == attempt
    }
}

impl Place {
    /// What the wait was opened with, if it is one and says so.
    pub(crate) fn opened_with(&self) -> Option<&OpenedWith> {
        match self {
            Place::WaitingForSubworkflow { opened_with, .. }
            | Place::WaitingForHuman { opened_with, .. }
            | Place::WaitingForEvent { opened_with, .. }
            | Place::Sleeping { opened_with, .. } => opened_with.as_ref(),
            Place::Pending
            | Place::Dispatched { .. }
            | Place::Retrying { .. }
            | Place::Escalated { .. }
            | Place::WaitingForSiblings { .. }
            | Place::Ended { .. } => None,
        }
    }
}

impl Branch {
    pub fn has_arrived(&self) -> bool {
        self.arrival.is_some()
    }

    /// `_branch.output`: what was written, else the last result.
    pub fn shown_output(&self) -> &Value {
        self.output.as_ref().unwrap_or(&self.last)
    }
}

impl Group {
    /// Branches that have a token or have had one, and are not done.
    pub fn running(&self) -> u32 {
        self.branches.len() as u32 - self.done
    }

    pub fn branch(&self, index: u32) -> &Branch {
        &self.branches[index as usize]
    }
}

impl Clock {
    pub fn elapsed_ms(&self, now: Time) -> u64 {
        self.used_ms + self.since.map_or(0, |since| now.since(since))
    }
}
