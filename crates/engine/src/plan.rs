//! What a workflow will do, before it does anything: batches and the critical path, what it costs and how
//! long it takes, as expected and at worst, what it waits for, and what it would not find.
//!
//! Pure: a checked graph and what is known go in, a [`Plan`] comes out. It reads no file, no clock and no
//! environment; whether a secret or a program is there is asked of [`Around`]. It runs nothing, and decides
//! nothing about a run: the core does, later, by the same estimates and the same reservations.

mod dag;
mod fold;
mod graph;
mod missing;
mod parts;
mod report;
mod reserve;
#[cfg(test)]
mod tests;
mod units;
mod ways;
mod work;

use std::collections::BTreeMap;
use std::fmt;

pub use report::{
    Branches, BudgetPlan, CallPlan, Callee, CostPlan, CriticalPath, DurationPlan, FanInPlan, FanOutPlan,
    Guess, LoopPlan, Missing, Need, Origin, Outline, Plan, PlannedNode, Total, WaitKind, WaitPlan,
};
use wonder_core::def::{Estimate, Implementation, Name, Prices};
use wonder_core::graph::{Graph, Node, UnitIx};
use wonder_core::limits::Limits;

use graph::Layout;
use missing::Search;
use parts::{RowOf, Sums, Timing, row};
use reserve::{INPUT_BYTES_ASSUMED, Priced};
use units::{Units, worker_of};
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
    let mut planner = Planner { known, callers: Vec::new(), called: Vec::new() };
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
}

impl Planner<'_> {
    fn outline(&mut self, graph: &Graph, learnt: &BTreeMap<Name, Estimate>) -> Outline {
        self.callers.push(graph.name.clone());
        let outline = if graph.is_dag() { self.dag(graph, learnt) } else { self.graph(graph, learnt) };
        self.callers.pop();
        settle(outline)
    }

    fn graph(&mut self, graph: &Graph, learnt: &BTreeMap<Name, Estimate>) -> Outline {
        let works: Vec<Work> =
            graph.nodes.iter().map(|node| self.work(graph, learnt, (node, &node.reference))).collect();
        let layout = Layout::of(graph, &works, &self.known.limits);
        let (timing, batch_of) = (layout.timing(), layout.batch_of());
        let rows = graph.nodes.iter().zip(layout.needs()).enumerate();
        let rows = rows.map(|(at, (node, needs))| {
            let node = node.reference.clone();
            row(RowOf { node, batch: batch_of[at], needs, at }, &works[at], &timing)
        });
        let mut outline = whole(graph, &works, rows.collect(), (&timing, layout.sums()));
        outline.fan_outs = layout.fan_outs();
        outline.loops = layout.loops();
        outline
    }

    fn dag(&mut self, graph: &Graph, learnt: &BTreeMap<Name, Estimate>) -> Outline {
        let works: Vec<Work> = (0..graph.units.len())
            .map(|at| {
                let unit = UnitIx(at as u32);
                self.work(graph, learnt, (worker_of(graph, unit), &graph.unit(unit).reference))
            })
            .collect();
        let units = Units::of(graph, &works, learnt, &self.known.limits);
        let (timing, batch_of) = (units.timing(), dag::batch_of(graph));
        let name = |unit: &UnitIx| graph.unit(*unit).reference.clone();
        let rows = graph.units.iter().enumerate().map(|(at, unit)| {
            let needs = unit.needs.iter().map(name).collect();
            row(RowOf { node: unit.reference.clone(), batch: batch_of[at], needs, at }, &works[at], &timing)
        });
        let mut outline = whole(graph, &works, rows.collect(), (&timing, units.sums()));
        outline.fan_outs = units.fan_outs();
        outline.ready_order = units.order.iter().map(|at| name(&UnitIx(*at as u32))).collect();
        outline
    }

    /// One node, and first of all whom it calls.
    fn work(
        &mut self,
        graph: &Graph,
        learnt: &BTreeMap<Name, Estimate>,
        (node, reference): (&Node, &Name),
    ) -> Work {
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

/// Everything but what only one kind of workflow has.
fn whole(graph: &Graph, works: &[Work], nodes: Vec<PlannedNode>, (timing, sums): (&Timing, Sums)) -> Outline {
    let duration = parts::duration(graph, timing, &sums);
    let own = |at: usize| match graph.is_dag() {
        true => worker_of(graph, UnitIx(at as u32)).budget,
        false => graph.nodes[at].budget,
    };
    let stuck = |at: &usize| parts::cannot_start(&works[*at], [graph.budget, own(*at)]);
    let cannot_start = (0..works.len()).filter(stuck).map(|at| nodes[at].node.clone()).collect();
    let cost = CostPlan {
        expected_usd_micros: sums.expected_usd,
        worst_usd_micros: sums.usd,
        worst_tokens: sums.tokens,
        worst_calls: sums.calls,
        cannot_start,
    };
    let mut batches = vec![Vec::new(); nodes.iter().map(|node| node.batch as usize).max().unwrap_or(0)];
    nodes.iter().for_each(|node| batches[node.batch as usize - 1].push(node.node.clone()));
    let path = timing.path.iter().map(|at| nodes[*at].node.clone()).collect();
    Outline {
        workflow: graph.name.clone(),
        version: graph.version,
        kind: graph.kind,
        max_parallel: graph.max_parallel,
        batches,
        ready_order: Vec::new(),
        critical_path: CriticalPath { nodes: path, duration_ms: timing.path_ms },
        fan_outs: Vec::new(),
        loops: Vec::new(),
        waits: works.iter().filter_map(|work| work.wait.clone()).collect(),
        calls: works.iter().filter_map(|work| work.call.clone()).collect(),
        budget: graph.budget.map(|budget| parts::budget(budget, &cost, &duration)),
        duration,
        cost,
        nodes,
    }
}
