//! What the world answers: how each action ends, what a host reports in place of a lost worker, how
//! people answer gates. Pure functions of who asks, so that asking twice (after a crash) gives the same answer.

use std::fmt;

use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::event::{GateId, GateRecord, TokenId};
use wonder_core::graph::Action;
use wonder_core::input::TaskOutcome;
use wonder_core::value::Value;

/// One attempt of one task, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub workflow: &'a str,
    pub run: &'a str,
    pub node: &'a str,
    pub token: TokenId,
    pub attempt: u32,
    /// Branch numbers, outermost first.
    pub path: &'a [u32],
    /// The innermost branch's item.
    pub item: &'a Value,
}

/// An action that a worker is about to perform.
#[derive(Clone, Copy, Debug)]
pub struct ActionRequest<'a> {
    pub at: At<'a>,
    pub step: &'a str,
    pub action: &'a Action,
    /// How often this step was performed for this token before.
    pub try_number: u32,
}

/// How an action goes.
#[derive(Clone, Debug)]
pub struct Act {
    /// Nothing: what its own `mock` says, or what such an action usually gives.
    pub result: Option<Result<Value, Failure>>,
    pub delay_ms: u64,
    pub spend: Spend,
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
    fn gate_answers(&self, run: &str, gate: GateId, record: &GateRecord) -> Vec<GateAnswer>;
}
