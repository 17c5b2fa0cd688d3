//! What a run has not come to yet and may still come to, by its graph; and how long that takes, by what past runs
//! taught. A guess for people: nothing is decided by it.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::def::{Estimate, Name, On};
use wonder_core::graph::schedule::{estimate, longest_paths};
use wonder_core::graph::{Graph, NodeIx, Unit};
use wonder_core::{Time, TokenStatus};

use crate::run_tree::node_name;
use crate::timeline::{Move, Timeline, Visit};

/// Nodes that were never visited and lie ahead of where the run stands, or stood when it ended, as written. Ways
/// that only a failure opens are left out.
pub fn ahead(graph: &Graph, timeline: &Timeline) -> Vec<String> {
    let visited: BTreeSet<&str> = timeline.visits.values().map(|visit| node_name(&visit.node)).collect();
    let reached = if graph.is_dag() { None } else { Some(reachable(graph, timeline)) };
    let mut names: Vec<String> = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let name = node_name(&node.reference);
        let lies_ahead = reached.as_ref().is_none_or(|reached| reached.contains(&(at as u32)));
        if lies_ahead && !visited.contains(name) && names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Where the run is: its live tokens, or those that a retry would open again.
fn stands(timeline: &Timeline) -> impl Iterator<Item = &Visit> {
    let stands = |visit: &&Visit| !visit.place().is_end() || timeline.reopenable().contains(&visit.token);
    timeline.visits.values().filter(stands)
}

fn reachable(graph: &Graph, timeline: &Timeline) -> BTreeSet<u32> {
    let mut open: Vec<NodeIx> = stands(timeline).filter_map(|visit| graph.find_node(&visit.node)).collect();
    let mut reached: BTreeSet<u32> = BTreeSet::new();
    while let Some(at) = open.pop() {
        let node = graph.node(at);
        let ways = node.out.iter().map(|way| graph.transition(*way)).filter(|way| way.on != On::Failure);
        let next = ways.map(|way| way.to).chain(node.behind).chain(node.stands_for);
        open.extend(next.filter(|to| reached.insert(to.0)));
    }
    reached
}

/// What one past run teaches of each node: how long it took from its first visit to its last, all turns and branches
/// together. What waited for people or outside events teaches nothing.
pub fn taught(past: &Timeline) -> BTreeMap<Name, Estimate> {
    let mut spans: BTreeMap<Name, (Time, Time)> = BTreeMap::new();
    let is_work = |visit: &&Visit| visit.gate.is_none() && !visit.walk.iter().any(waits_outside);
    for visit in past.visits.values().filter(is_work) {
        let (Some(began), Some(ended)) = (visit.started_at, visit.ended_at) else { continue };
        let span = spans.entry(node_name(&visit.node).into()).or_insert((began, ended));
        *span = (span.0.min(began), span.1.max(ended));
    }
    let axis = past.axis();
    let estimate =
        |(began, ended)| Estimate { duration_ms: Some(axis.work_ms(began, ended)), usd_micros: None };
    spans.into_iter().map(|(node, span)| (node, estimate(span))).collect()
}

fn waits_outside(step: &Move) -> bool {
    matches!(step.to, TokenStatus::WaitingForHuman | TokenStatus::WaitingForEvent)
}

/// How long a run still works, as it went in the past: of a dag the longest way to its end, of a graph what is left of
/// the nodes it is at, and then one after the other what lies ahead. None if the past has taught nothing.
pub fn left_ms(
    graph: &Graph,
    timeline: &Timeline,
    learnt: &BTreeMap<Name, Estimate>,
    now: Time,
) -> Option<u64> {
    if learnt.values().all(|known| known.duration_ms.is_none()) {
        return None;
    }
    if graph.is_dag() {
        return Some(longest_way_ms(graph, timeline, learnt, now));
    }
    let usual = |name: &str| learnt.get(name).and_then(|known| known.duration_ms).unwrap_or(0);
    let axis = timeline.axis();
    let here = stands(timeline).filter(|visit| visit.ended_at.is_none()).map(|visit| {
        let spent = axis.work_ms(first_of(timeline, visit), now);
        usual(node_name(&visit.node)).saturating_sub(spent)
    });
    let later: u64 = ahead(graph, timeline).iter().map(|name| usual(name)).sum();
    Some(here.max().unwrap_or(0).saturating_add(later))
}

/// When the first of its siblings began, or itself.
fn first_of(timeline: &Timeline, visit: &Visit) -> Time {
    let group = |visit: &Visit| visit.branch.map(|at| at.group);
    let alike =
        |other: &&Visit| other.node == visit.node && group(other) == group(visit) && other.turn == visit.turn;
    let began = timeline.visits.values().filter(alike).filter_map(|visit| visit.started_at).min();
    began.unwrap_or(timeline.last_at)
}

fn longest_way_ms(graph: &Graph, timeline: &Timeline, learnt: &BTreeMap<Name, Estimate>, now: Time) -> u64 {
    let usual = |unit: &Unit| {
        estimate(graph.node(unit.head).estimate, learnt.get(&unit.reference)).duration_ms.unwrap_or(0)
    };
    let paths = longest_paths(graph, usual);
    let axis = timeline.axis();
    let live = stands(timeline).filter(|visit| visit.ended_at.is_none());
    let left = live.filter_map(|visit| {
        let unit = graph.node(graph.find_node(&visit.node)?).unit?;
        let spent = visit.started_at.map_or(0, |_| axis.took_ms(visit, now)).min(usual(graph.unit(unit)));
        Some(paths[unit.0 as usize].saturating_sub(spent))
    });
    left.max().unwrap_or(0)
}
