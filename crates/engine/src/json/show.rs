//! One run for programs: what `run -o json` says, and everything else that is known of it.

use serde::Serialize;
use wonder_core::{Time, TokenStatus, Value};

use super::changes::{self, ChangeJson};
use super::{Outcome, dollars_as_number};
use crate::run_tree::{RunTree, visit_label};
use crate::timeline::{FailedStep, Move, Timeline, Visit};
use crate::{GateDetails, GateView, RunView};

/// `show -o json`: what `run -o json` says, and the rest.
#[derive(Debug, Serialize)]
pub struct ShowJson<'v> {
    #[serde(flatten)]
    outcome: Outcome<'v>,
    root: &'v str,
    parent: Option<&'v str>,
    forked_from: Option<&'v str>,
    project: &'v str,
    started_at: Time,
    ended_at: Option<Time>,
    driven: bool,
    quiet: bool,
    labels: &'v std::collections::BTreeMap<String, String>,
    seq: u64,
    input: &'v Value,
    state: &'v Value,
    metrics: &'v wonder_core::state::Metrics,
    /// As it is now: raised by people, perhaps more than once.
    budget_usd: Option<f64>,
    children: &'v [String],
    /// Those that are open.
    gates: &'v [GateView],
    /// All that were ever opened, those of child runs included: who was asked, who answered when and what.
    gate_history: Vec<GateDetails>,
    nodes: Vec<NodeJson<'v>>,
    mutations: Vec<ChangeJson<'v>>,
}

/// One visit of one node.
#[derive(Debug, Serialize)]
pub struct NodeJson<'v> {
    token: u64,
    node: String,
    /// With its branch: `judge[2]`.
    label: String,
    parent: Option<u64>,
    branch: Option<u32>,
    /// The how manieth visit of its node in its branch: more than 1 in a loop.
    turn: u32,
    status: TokenStatus,
    attempts: u32,
    tries: u32,
    started_at: Option<Time>,
    ended_at: Option<Time>,
    cost_usd: f64,
    tokens: u64,
    child: Option<String>,
    failure: Option<&'v str>,
    /// Steps that failed and whose `on_failure: continue` let the task go on.
    #[serde(skip_serializing_if = "<[FailedStep]>::is_empty")]
    steps_failed: &'v [FailedStep],
    /// Of its latest attempt.
    #[serde(skip_serializing_if = "Value::is_null")]
    input: &'v Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    result: &'v Value,
    walk: Vec<MoveJson<'v>>,
}

impl<'v> ShowJson<'v> {
    pub fn of(view: &'v RunView, run_tree: &'v RunTree, gates: &'v [GateView]) -> ShowJson<'v> {
        let timeline = run_tree.root();
        ShowJson {
            outcome: Outcome::of(view),
            root: &view.row.root,
            parent: view.row.parent.as_deref(),
            forked_from: view.row.forked.as_ref().map(|forked| forked.from.as_str()),
            project: &view.row.project,
            started_at: view.row.started_at,
            ended_at: view.row.ended_at,
            driven: view.row.driven,
            quiet: view.quiet,
            labels: &view.row.labels,
            seq: view.seq,
            input: &view.input,
            state: &view.state,
            metrics: &view.metrics,
            budget_usd: budget_micros(view, timeline).map(dollars_as_number),
            children: &view.children,
            gates,
            gate_history: gate_history(&view.row.root, run_tree),
            nodes: visits(&view.row.run, timeline),
            mutations: changes::json(timeline),
        }
    }
}

/// The visits of one run: `nodes` of `show -o json`.
pub fn visits<'v>(run: &str, timeline: &'v Timeline) -> Vec<NodeJson<'v>> {
    timeline.visits.values().map(|visit| node(run, timeline, visit)).collect()
}

/// The dollars that a run may spend, with what people added.
pub fn budget_micros(view: &RunView, timeline: &Timeline) -> Option<u64> {
    Some(view.budget_usd_micros?.saturating_add(timeline.run_budget.raised.usd_micros))
}

fn gate_history(root: &str, run_tree: &RunTree) -> Vec<GateDetails> {
    let runs = run_tree.runs.iter();
    let gates =
        runs.flat_map(|(run, timeline)| timeline.gates.keys().map(move |gate| (run, timeline, *gate)));
    gates.filter_map(|(run, timeline, gate)| GateDetails::of(run, root, timeline, gate)).collect()
}

fn node<'v>(run: &str, timeline: &Timeline, visit: &'v Visit) -> NodeJson<'v> {
    NodeJson {
        token: visit.token.0,
        node: visit.node.to_string(),
        label: visit_label(timeline, visit),
        parent: visit.parent.map(|token| token.0),
        branch: visit.branch.map(|at| at.branch),
        turn: visit.turn,
        status: visit.status,
        attempts: visit.attempts,
        tries: visit.tries,
        started_at: visit.started_at,
        ended_at: visit.ended_at,
        cost_usd: dollars_as_number(visit.spend.usd_micros),
        tokens: visit.spend.tokens(),
        child: visit.child.as_ref().map(ToString::to_string),
        failure: visit.failure.as_deref(),
        steps_failed: &visit.steps_failed,
        input: visit.input(),
        result: &visit.result,
        walk: moves(run, visit),
    }
}

/// One move, for programs.
#[derive(Debug, Serialize)]
struct MoveJson<'t> {
    event: u64,
    at: Time,
    status: TokenStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wakes_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<&'t str>,
}

fn moves<'t>(run: &str, visit: &'t Visit) -> Vec<MoveJson<'t>> {
    let one = |step: &'t Move| MoveJson {
        event: step.seq,
        at: step.at,
        status: step.to,
        attempt: step.attempt,
        failure: step.failure.as_deref(),
        wakes_at: step.wakes_at,
        gate: step.gate.map(|gate| format!("{run}:{gate}")),
        answered_by: step.by.as_deref(),
    };
    visit.walk.iter().map(one).collect()
}
