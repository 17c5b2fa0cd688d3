//! What goes first and how long it is given: the ready order of a dag under `max_parallel`, the estimates it
//! goes by, and the time of a fan-in. The run, its plan and the simulator all ask here.
//!
//! The ready order is: longest estimated path to a sink first, then most units unblocked, then lowest
//! estimated cost, then as written. A graph has cycles, so there it is as they come.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use wonder_lang::def::{Estimate, Name};
use wonder_lang::limits::FAN_IN_TIMEOUT_MS_MAX;

use crate::{Graph, JoinTimeout, Unit, UnitIx};

/// What a node is taken to last when nobody knows.
pub const DURATION_MS_UNKNOWN: u64 = 1_000;

/// What a node is expected to take and cost. What the file says wins, figure by figure: who writes a price
/// has said nothing about time.
pub fn estimate(written: Option<Estimate>, learnt: Option<&Estimate>) -> Estimate {
    let (written, learnt) = (written.unwrap_or_default(), learnt.copied().unwrap_or_default());
    Estimate {
        usd_micros: written.usd_micros.or(learnt.usd_micros),
        duration_ms: written.duration_ms.or(learnt.duration_ms),
    }
}

/// The units of a dag, those first that go first when places are short.
pub fn ready_order(graph: &Graph, learnt: &BTreeMap<Name, Estimate>) -> Vec<UnitIx> {
    let estimate = |unit: &Unit| estimate(graph.node(unit.head).estimate, learnt.get(&unit.reference));
    let path = longest_paths(graph, |unit| estimate(unit).duration_ms.unwrap_or(DURATION_MS_UNKNOWN));
    let mut order: Vec<UnitIx> = (0..graph.units.len()).map(|ix| UnitIx(ix as u32)).collect();
    order.sort_by_key(|ix| {
        let unit = graph.unit(*ix);
        let cost = estimate(unit).usd_micros.unwrap_or(0);
        (Reverse(path[ix.0 as usize]), Reverse(unit.dependents.len()), cost, *ix)
    });
    order
}

/// The place of each node in the ready order. Empty for a graph.
pub fn ranks(graph: &Graph, learnt: Option<&BTreeMap<Name, Estimate>>) -> Vec<u32> {
    if graph.units.is_empty() {
        return Vec::new();
    }
    let nothing = BTreeMap::new();
    let mut rank_of_unit = vec![0; graph.units.len()];
    for (rank, ix) in ready_order(graph, learnt.unwrap_or(&nothing)).iter().enumerate() {
        rank_of_unit[ix.0 as usize] = rank as u32;
    }
    graph.nodes.iter().map(|node| node.unit.map_or(0, |unit| rank_of_unit[unit.0 as usize])).collect()
}

/// How long a fan-in of so many branches waits after the first has arrived. None: for ever.
pub fn fan_in_timeout_ms(timeout: JoinTimeout, branches: u64) -> Option<u64> {
    match timeout {
        JoinTimeout::Fixed(ms) => Some(ms),
        JoinTimeout::Never => None,
        JoinTimeout::Computed { longest_action_ms } => {
            let serial =
                longest_action_ms.map(|longest| longest.saturating_mul(branches).saturating_mul(3) / 2);
            Some(serial.map_or(FAN_IN_TIMEOUT_MS_MAX, |ms| ms.min(FAN_IN_TIMEOUT_MS_MAX)))
        }
    }
}

/// For each unit the longest time from its start to the end of a sink, itself included.
pub fn longest_paths(graph: &Graph, duration_ms: impl Fn(&Unit) -> u64) -> Vec<u64> {
    let mut longest = vec![0; graph.units.len()];
    for ix in batches(graph).concat().into_iter().rev() {
        let unit = graph.unit(ix);
        let behind = unit.dependents.iter().map(|d| longest[d.0 as usize]).max().unwrap_or(0);
        longest[ix.0 as usize] = duration_ms(unit).saturating_add(behind);
    }
    longest
}

/// Kahn's batches: each can run as one once those before it are done.
pub fn batches(graph: &Graph) -> Vec<Vec<UnitIx>> {
    let mut missing: Vec<usize> = graph.units.iter().map(|unit| unit.needs.len()).collect();
    let all = (0..graph.units.len()).map(|ix| UnitIx(ix as u32));
    let mut batch: Vec<UnitIx> = all.filter(|ix| missing[ix.0 as usize] == 0).collect();
    let mut batches = Vec::new();
    while !batch.is_empty() {
        let mut next = Vec::new();
        for ix in &batch {
            for dependent in &graph.unit(*ix).dependents {
                missing[dependent.0 as usize] -= 1;
                if missing[dependent.0 as usize] == 0 {
                    next.push(*dependent);
                }
            }
        }
        batches.push(std::mem::replace(&mut batch, next));
    }
    batches
}
