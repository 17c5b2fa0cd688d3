//! What the world answers: how each action ends, what a host reports in place of a lost worker, how
//! people answer gates. Pure functions of who asks, so that asking twice (after a crash) gives the same answer.

use std::fmt;

use wonder_core::command::{ChildOrder, TaskOrder};
use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::event::{GateId, GateRecord, TokenId};
use wonder_core::execution::{Delivery, ExecutionRules};
use wonder_core::graph::Action;
use wonder_core::input::{ChildOutcome, TaskOutcome};
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

/// One attempt of one task, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub workflow: &'a str,
    pub run: &'a str,
    pub node: &'a str,
    /// The nodes that called the workflow it is in, outermost first, then the node itself.
    pub route: &'a [Stop],
    pub token: TokenId,
    pub attempt: u32,
    /// Branch numbers, outermost first.
    pub path: &'a [u32],
    /// The innermost branch's item.
    pub item: &'a Value,
}

/// A node on the way to where something happens, and the branch that it is in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stop {
    pub node: Name,
    /// Branch numbers, outermost first.
    pub path: Vec<u32>,
}

/// A called workflow that is answered for, instead of run.
#[derive(Clone, Debug)]
pub struct ChildAnswer {
    pub outcome: ChildOutcome,
    pub delay_ms: u64,
    pub spend: Spend,
}

/// An action that a worker is about to perform.
#[derive(Clone, Copy, Debug)]
pub struct ActionRequest<'a> {
    pub at: At<'a>,
    pub step: &'a str,
    pub action: &'a Action,
    pub call: &'a ActionCall,
    pub order: &'a TaskOrder,
    /// How often this step was performed for this token before.
    pub try_number: u32,
    /// How many tries the token has made before, as a worker counts them.
    pub number: u32,
}

/// How an action goes.
#[derive(Clone, Debug)]
pub struct Act {
    /// Nothing: what its own `mock` says, or what such an action usually gives.
    pub result: Option<Result<Value, Failure>>,
    /// If it fails, how far it came.
    pub delivery: Delivery,
    pub delay_ms: u64,
    pub spend: Spend,
    /// A result is that of one try, which may be followed by another; else whatever tries there were are over.
    pub one_try: bool,
}

/// A gate that has just opened.
#[derive(Clone, Copy, Debug)]
pub struct GateRequest<'a> {
    pub run: &'a str,
    pub gate: GateId,
    /// The way to the node that asks, as in [`At::route`]; nothing for a gate of the run itself.
    pub route: Option<&'a [Stop]>,
    pub record: &'a GateRecord,
}

/// What a task does when it is told to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnCancel {
    /// It reports `cancelled` so long after.
    ReportsAfter(u64),
    /// It does not listen, and reports what it would have reported.
    Finishes,
    /// Nothing is heard of it again.
    Never,
}

/// A person's answer to a gate.
#[derive(Clone, Debug)]
pub struct GateAnswer {
    pub after_ms: u64,
    pub by: Name,
    pub answer: Value,
}

pub trait Outcomes: fmt::Debug + Send + Sync {
    /// How an action goes; nothing leaves all of it to what is usual.
    fn outcome(&self, request: &ActionRequest<'_>) -> Option<Act>;

    /// The host reports the task in place of its worker, so long after its start: the worker is lost, or the
    /// like.
    fn reported_by_host(&self, at: &At<'_>) -> Option<(u64, TaskOutcome)>;

    fn on_cancel(&self, at: &At<'_>) -> OnCancel;

    /// How people answer a gate that has just opened.
    fn gate_answers(&self, asked: &GateRequest<'_>) -> Vec<GateAnswer>;

    /// What a called workflow gives, if it is not to be run. `route` leads to the node that calls it.
    fn child(&self, _route: &[Stop], _order: &ChildOrder) -> Option<ChildAnswer> {
        None
    }

    /// How actions are tried.
    fn rules(&self, _order: &TaskOrder) -> ExecutionRules {
        crate::executor::rules()
    }
}
