//! What a workflow will do, before it does anything: batches and the critical path, what it costs and how
//! long it takes, as expected and at worst, what it waits for, and what it would not find.
//!
//! Pure: a checked graph and what is known go in, a [`Plan`] comes out. It reads no file, no clock and no
//! environment; whether a secret or a program is there is asked of [`Around`]. It performs nothing and has no
//! opinion of its own about a run: what is expected is what the engine does on a clock that jumps
//! ([`play`]), with assumptions in the place of what only a run can know ([`assume`]). Only what can happen at
//! worst is counted from the graph ([`bound`]).

mod assume;
mod bound;
mod fan_outs;
mod missing;
mod play;
mod report;
mod reserve;
#[cfg(test)]
mod tests;
mod walk;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

pub use report::{
    Branches, BudgetPlan, CallPlan, Callee, ChoicePlan, CostPlan, CriticalPath, DurationPlan, FanInPlan,
    FanOutPlan, Guess, LoopPlan, Missing, Need, Origin, Outline, Plan, PlannedNode, Total, WaitKind,
    WaitPlan,
};
use wonder_core::cost::over;
use wonder_core::def::{Budget, Estimate, Implementation, Name, Prices};
use wonder_core::graph::{Graph, Node, NodeIx, Response, Rule, UnitIx};
use wonder_core::limits::Limits;
use wonder_core::schedule::{batches, ready_order};
use wonder_core::{StartRun, Value};

use assume::Assumed;
use bound::Bounds;
use fan_outs::{fan_outs, worker_of};
use missing::Search;
use play::{Play, Played, Prepared};
use reserve::{INPUT_BYTES_ASSUMED, Priced};
use walk::Walk;
use work::{Setting, Work, calls_itself};

/// What is known before a run.
#[derive(Clone, Debug)]
pub struct Known<'k> {
    /// From past runs of the workflow, by node; what its file says wins.
    pub estimates: BTreeMap<Name, Estimate>,
    /// Beyond what model profiles say.
    pub prices: BTreeMap<Name, Prices>,
    /// The workflows that can be called, by name.
    pub callable: BTreeMap<Name, &'k Graph>,
    pub limits: Limits,
    pub around: &'k dyn Around,
}

/// What a run would find around it. Asked whether, never what.
pub trait Around: fmt::Debug {
    /// A secret or a provider's key by that name is set.
    fn has_variable(&self, name: &str) -> bool;
    /// A program by that name can be started.
    fn has_program(&self, name: &str) -> bool;
    /// A worker here performs such actions.
    fn can_perform(&self, implementation: &Implementation) -> bool;
}

pub fn plan(graph: &Graph, known: &Known<'_>) -> Plan {
    let mut planner = Planner { known, callers: Vec::new(), called: Vec::new(), prepared: BTreeMap::new() };
    let outline = planner.outline(graph, &known.estimates);
    let mut search = Search::new(known);
    search.graph(graph, &outline, None);
    for child in &planner.called {
        if let Some(graph) = known.callable.get(&child.workflow) {
            search.graph(graph, child, Some(child.workflow.clone()));
        }
    }
    let missing = search.found();
    Plan { outline, called: planner.called, missing, input_bytes_assumed: INPUT_BYTES_ASSUMED }
}

struct Planner<'p> {
    known: &'p Known<'p>,
    /// The workflows being planned, each called by the one before it.
    callers: Vec<Name>,
    called: Vec<Outline>,
    /// What can be called in a play.
    prepared: BTreeMap<Name, Rc<Prepared>>,
}

impl Planner<'_> {
    fn outline(&mut self, graph: &Graph, learnt: &BTreeMap<Name, Estimate>) -> Outline {
        self.callers.push(graph.name.clone());
        let rows = if graph.is_dag() { graph.units.len() } else { graph.nodes.len() };
        let works: Vec<Work> = (0..rows).map(|at| self.work(graph, learnt, at)).collect();
        self.callers.pop();
        let duration_ms = |at: usize| works[Prepared::row(graph, NodeIx(at as u32))].duration.amount;
        let prepared = Rc::new(Prepared { assumed: Assumed::of(graph, &duration_ms), works });
        let play = |max_parallel: Option<u32>| {
            let mut start = StartRun::new("plan", Value::empty_map());
            (start.estimates, start.prices) = (learnt.clone(), self.known.prices.clone());
            (start.limits, start.max_parallel) = (self.known.limits, max_parallel);
            Play::of(&self.prepared, &prepared, start)
        };
        let played = play(None);
        // The longest way is the one with places for everybody.
        let free = graph.max_parallel.map(|_| play(Some(u32::MAX)));
        let free = free.as_ref().unwrap_or(&played);
        let outline = whole(graph, &prepared, (&played, free), (learnt, &self.known.limits));
        self.prepared.insert(graph.name.clone(), prepared);
        settle(outline)
    }

    /// One node, and first of all whom it calls.
    fn work(&mut self, graph: &Graph, learnt: &BTreeMap<Name, Estimate>, at: usize) -> Work {
        let (node, reference) = row_of(graph, at);
        let callee = work::callee(node).map(|name| match name {
            Ok(name) => (self.call(&name), Some(name)),
            Err(()) => (Callee::ByData, None),
        });
        let called = callee.map(|(callee, name)| {
            let child = name.filter(|_| callee == Callee::Planned);
            (callee, child.and_then(|name| self.called.iter().find(|child| child.workflow == name)))
        });
        let priced = Priced { graph, prices: &self.known.prices };
        Work::of(node, &Setting { priced, learnt, reference }, called)
    }

    /// Plans a workflow that is called, once.
    fn call(&mut self, name: &Name) -> Callee {
        if self.callers.contains(name) {
            return Callee::Recursive;
        }
        if self.called.iter().any(|child| child.workflow == *name) {
            return Callee::Planned;
        }
        let Some(graph) = self.known.callable.get(name).copied() else { return Callee::Unknown };
        if self.callers.len() > self.known.limits.child_depth_max as usize {
            return Callee::TooDeep;
        }
        let child = self.outline(graph, &BTreeMap::new());
        self.called.push(child);
        Callee::Planned
    }
}

/// A workflow that calls itself costs nothing however deep it goes, if one of it costs nothing; and what is
/// too large to count is no bound.
fn settle(mut outline: Outline) -> Outline {
    let itself = calls_itself(&outline.workflow);
    let cost = &mut outline.cost;
    let totals = [
        &mut cost.expected_usd_micros,
        &mut cost.worst_usd_micros,
        &mut cost.worst_tokens,
        &mut cost.worst_calls,
    ];
    for total in totals {
        if total.known == 0 && total.unbounded.iter().all(|why| why.ends_with(&itself)) {
            total.unbounded.clear();
        }
        if total.known == u64::MAX {
            total.unbounded.push("it is more than can be counted".to_owned());
        }
    }
    outline
}

/// The node that does the work of a row, and what its author calls it.
fn row_of(graph: &Graph, at: usize) -> (&Node, &Name) {
    if graph.is_dag() {
        let unit = UnitIx(at as u32);
        return (worker_of(graph, unit), &graph.unit(unit).reference);
    }
    (&graph.nodes[at], &graph.nodes[at].reference)
}

fn whole(
    graph: &Graph,
    prepared: &Prepared,
    (played, free): (&Played, &Played),
    (learnt, limits): (&BTreeMap<Name, Estimate>, &Limits),
) -> Outline {
    let works = &prepared.works;
    let bounds = Bounds::of(graph, works, played, limits);
    let name = |at: usize| row_of(graph, at).1.clone();
    let path_ms = free.ends_ms;
    // With joins of some a longer way may be cut short: what is expected is possible in any case.
    let lower_bound_ms = path_ms.max(shared_ms(graph, works, free)).min(played.ends_ms);
    let duration = bounds.duration(played.ends_ms, lower_bound_ms);
    // One attempt reserves more than a budget has in all.
    let stuck = |at: &usize| {
        let budgets = [graph.budget, row_of(graph, *at).0.budget].into_iter().flatten();
        let limits = |budget: Budget| [budget.usd_micros, budget.tokens, budget.calls];
        budgets.map(limits).any(|limits| over(limits, [0; 3], &works[*at].attempt).is_some())
    };
    let visited: BTreeSet<usize> = played.visits.iter().map(|visit| visit.row).collect();
    let open: BTreeSet<String> = visited.iter().flat_map(|at| works[*at].open.expected_usd.clone()).collect();
    let expected = Total { known: played.spend.usd_micros, unbounded: open.into_iter().collect() };
    let cost = bounds.cost(expected, (0..works.len()).filter(stuck).map(name).collect());
    let nodes = planned_nodes(graph, works, played);
    let mut batches = vec![Vec::new(); nodes.iter().map(|node| node.batch as usize).max().unwrap_or(0)];
    nodes.iter().for_each(|node| batches[node.batch as usize - 1].push(node.node.clone()));
    let mut sent = BTreeSet::new();
    let first_sent = played.dispatched.iter().filter(|at| sent.insert(**at));
    let order = if graph.is_dag() { ready_order(graph, learnt) } else { Vec::new() };
    Outline {
        workflow: graph.name.clone(),
        version: graph.version,
        kind: graph.kind,
        max_parallel: graph.max_parallel,
        batches,
        ready_order: order.into_iter().map(|unit| name(unit.0 as usize)).collect(),
        dispatch_order: first_sent.map(|at| name(*at)).collect(),
        critical_path: CriticalPath {
            nodes: free.path().into_iter().map(name).collect(),
            duration_ms: path_ms,
        },
        fan_outs: fan_outs(graph, limits),
        loops: bounds.loops(),
        choices: prepared.assumed.choices.clone(),
        waits: works.iter().filter_map(|work| work.wait.clone()).collect(),
        calls: works.iter().filter_map(|work| work.call.clone()).collect(),
        stops: played.stops.clone(),
        budget: graph.budget.map(|budget| enough(budget, &cost, &duration)),
        duration,
        cost,
        nodes,
    }
}

/// Whether a budget is enough.
fn enough(budget: Budget, cost: &CostPlan, duration: &DurationPlan) -> BudgetPlan {
    let within = |limit: Option<u64>, bound: Option<u64>| {
        limit.is_none_or(|limit| bound.is_some_and(|bound| bound <= limit))
    };
    BudgetPlan {
        expected_fits: within(budget.usd_micros, Some(cost.expected_usd_micros.known))
            && within(budget.wall_ms, Some(duration.expected_ms)),
        worst_fits: within(budget.usd_micros, cost.worst_usd_micros.bound())
            && within(budget.tokens, cost.worst_tokens.bound())
            && within(budget.calls, cost.worst_calls.bound())
            && within(budget.wall_ms, duration.worst.bound()),
        budget,
    }
}

/// The work for the places, at least: `max_parallel` counts tasks only.
fn shared_ms(graph: &Graph, works: &[Work], free: &Played) -> u64 {
    let Some(places) = graph.max_parallel else { return 0 };
    let tasks = free.visits.iter().filter(|visit| works[visit.row].is_task);
    let work = tasks.map(|visit| visit.ends_ms - visit.starts_ms).fold(0, u64::saturating_add);
    work.div_ceil(u64::from(places.max(1)))
}

fn planned_nodes(graph: &Graph, works: &[Work], played: &Played) -> Vec<PlannedNode> {
    let (batch_of, needs) = if graph.is_dag() { of_units(graph) } else { of_nodes(graph) };
    let mut times: Vec<(u64, Option<u64>, Option<u64>)> = vec![(0, None, None); works.len()];
    for visit in played.visits.iter().filter(|visit| visit.does && !visit.skipped) {
        let (visits, starts, ends) = &mut times[visit.row];
        *visits += 1;
        *starts = Some(starts.unwrap_or(u64::MAX).min(visit.starts_ms));
        *ends = (*ends).max(Some(visit.ends_ms));
    }
    let row = |((at, work), needs): ((usize, &Work), Vec<Name>)| PlannedNode {
        node: row_of(graph, at).1.clone(),
        batch: batch_of[at] + 1,
        needs,
        actions: work.actions.clone(),
        duration: work.duration,
        cost: work.cost,
        attempts_max: work.attempts_max,
        worst_usd_micros: work.open.usd.is_empty().then_some(work.worst.usd_micros),
        worst_ms: work.running_ms,
        visits: times[at].0,
        starts_ms: times[at].1,
        ends_ms: times[at].2,
    };
    works.iter().enumerate().zip(needs).map(row).collect()
}

/// Of each unit its batch, from 0, and what it needs.
fn of_units(graph: &Graph) -> (Vec<u32>, Vec<Vec<Name>>) {
    let mut batch_of = vec![0; graph.units.len()];
    for (number, batch) in batches(graph).iter().enumerate() {
        batch.iter().for_each(|unit| batch_of[unit.0 as usize] = number as u32);
    }
    let name = |unit: &UnitIx| graph.unit(*unit).reference.clone();
    (batch_of, graph.units.iter().map(|unit| unit.needs.iter().map(name).collect()).collect())
}

/// Of each node its distance from the first, and those that lead to it.
fn of_nodes(graph: &Graph) -> (Vec<u32>, Vec<Vec<Name>>) {
    let goes = |rule: &Rule| match &rule.response {
        Response::Goto(to) | Response::LoopWithFeedback { to: Some(to) } => Some(to.0 as usize),
        _ => None,
    };
    let mut needs = vec![BTreeSet::new(); graph.nodes.len()];
    let next = graph.nodes.iter().enumerate().map(|(at, node)| {
        let ways: Vec<usize> = node.out.iter().map(|ix| graph.transition(*ix).to.0 as usize).collect();
        ways.iter().for_each(|to| _ = needs[*to].insert(at));
        ways.into_iter().chain(graph.on_error.iter().chain(&node.on_error).filter_map(goes)).collect()
    });
    let next: Vec<Vec<usize>> = next.collect();
    let distances = Walk::of(graph.initial.0 as usize, &next).distances(&next);
    let names =
        |from: BTreeSet<usize>| from.into_iter().map(|at| graph.nodes[at].reference.clone()).collect();
    (distances, needs.into_iter().map(names).collect())
}
