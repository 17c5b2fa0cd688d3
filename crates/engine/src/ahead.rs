//! What a run has not come to yet and may still come to, by its graph; and how long that takes, by what past runs
//! taught. A guess for people: nothing is decided by it.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::def::{Estimate, Name, On};
use wonder_core::graph::schedule::{estimate, longest_paths};
use wonder_core::graph::{Graph, NodeIx};
use wonder_core::{Time, TokenStatus};

use crate::run_tree::node_name;
use crate::timeline::{Timeline, Visit};

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

/// How long a dag still takes: the longest way from where it stands, as past runs of its nodes went. None without
/// any of them.
pub fn left_ms(
    graph: &Graph,
    timeline: &Timeline,
    learnt: &BTreeMap<Name, Estimate>,
    now: Time,
) -> Option<u64> {
    let is_known = |name: &Name| learnt.get(name).is_some_and(|known| known.duration_ms.is_some());
    if !graph.is_dag() || !graph.units.iter().any(|unit| is_known(&unit.reference)) {
        return None;
    }
    let written = |head: NodeIx| graph.node(head).estimate;
    let duration =
        |head: NodeIx, name: &Name| estimate(written(head), learnt.get(name)).duration_ms.unwrap_or(0);
    let paths = longest_paths(graph, |unit| duration(unit.head, &unit.reference));
    let axis = timeline.axis();
    let unit = |visit: &Visit| graph.node(graph.find_node(&visit.node)?).unit;
    let left = stands(timeline).filter(|visit| visit.status != TokenStatus::WaitingForSiblings);
    let left = left.filter_map(|visit| {
        let unit = unit(visit)?;
        let known = &graph.units[unit.0 as usize];
        let own = duration(known.head, &known.reference);
        let spent = visit.started_at.map_or(0, |_| axis.took_ms(visit, now)).min(own);
        Some(paths[unit.0 as usize].saturating_sub(spent))
    });
    left.max()
}
