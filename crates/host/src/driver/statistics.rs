//! What past runs tell of nodes: how long they took and what they cost, for the ready order of dags and for
//! `timeout: adaptive`. Only such workflows are watched; others pay nothing for it.

use std::collections::BTreeMap;

use wonder_core::def::{Estimate, Name};
use wonder_core::event::{Event, EventKind, TokenId};
use wonder_core::graph::names::dag_part;
use wonder_core::graph::{Graph, NodeIx};
use wonder_core::input::StartRun;
use wonder_engine::Reply;

use super::{Driver, Hosted, Turn};
use crate::store::{NodeSamples, Write};

/// Durations kept of each node: the last ones.
const KEPT: usize = 100;
/// An adaptive timeout wants at least so many.
const ENOUGH: usize = 20;
/// How many nodes of a run are counted at most.
const NODES_MAX: usize = 5_000;

/// What one run has shown of its nodes so far.
#[derive(Debug, Default)]
pub(crate) struct NodeStatistics {
    /// Anything would use it.
    watched: bool,
    out: BTreeMap<TokenId, u32>,
    seen: BTreeMap<Name, Vec<(u64, u64)>>,
}

impl NodeStatistics {
    pub(super) fn of(graph: &Graph) -> NodeStatistics {
        NodeStatistics { watched: is_watched(graph), ..NodeStatistics::default() }
    }
}

/// Whether anything would use its statistics: every node is looked at, so it is asked once for a run.
fn is_watched(graph: &Graph) -> bool {
    graph.is_dag() || graph.nodes.iter().any(|node| node.timeout_adaptive)
}

/// The inner node of a dag's `foreach` counts for the node that the author wrote.
fn written(reference: &str) -> &str {
    dag_part(reference).0
}

impl Hosted {
    /// Follows the tasks of a watched workflow.
    pub(super) fn observe(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TaskDispatched { token, .. } if self.statistics.watched => {
                if let Some(at) = self.run.state().tokens.get(token) {
                    self.statistics.out.insert(*token, at.node);
                }
            }
            EventKind::TaskCompleted { token, report: Some(report), .. } => {
                let Some(node) = self.statistics.out.remove(token) else { return };
                let reference = &self.run.graph().node(NodeIx(node)).reference;
                let seen = self.statistics.seen.entry(written(reference).into()).or_default();
                if seen.len() < KEPT {
                    seen.push((report.spend.duration_ms, report.spend.usd_micros));
                }
            }
            _ => {}
        }
    }
}

impl Driver {
    /// What a run that has ended has shown, to be written with its end.
    pub(super) fn keep_statistics(&mut self, turn: &mut Turn, id: &Name) -> Reply<()> {
        let Some(hosted) = self.runs.get_mut(id) else { return Ok(()) };
        if hosted.statistics.seen.is_empty() {
            return Ok(());
        }
        let seen = std::mem::take(&mut hosted.statistics.seen);
        let workflow = hosted.run.graph().name.clone();
        let mut known = self.store.reader().learnt(&workflow)?;
        for (node, seen) in seen.into_iter().take(NODES_MAX) {
            let mut learnt = known.remove(&node).unwrap_or_default();
            for (duration_ms, usd_micros) in seen {
                learnt.durations_ms.push(duration_ms);
                learnt.usd_micros.push(usd_micros);
            }
            learnt.keep_last(KEPT);
            turn.batch.push(Write::Learnt { workflow: workflow.clone(), node, learnt });
        }
        Ok(())
    }

    /// What a run is told of how its nodes did before.
    pub(super) fn add_estimates(&mut self, graph: &Graph, start: &mut StartRun) -> Reply<()> {
        if !is_watched(graph) {
            return Ok(());
        }
        let learnt = self.store.reader().learnt(&graph.name)?;
        for node in &graph.nodes {
            let Some(known) = learnt.get(written(&node.reference)) else { continue };
            let said = node.estimate.unwrap_or_default();
            if graph.is_dag() && (said.duration_ms.is_none() || said.usd_micros.is_none()) {
                start.estimates.insert(written(&node.reference).into(), estimate(known));
            }
            if node.timeout_adaptive && known.durations_ms.len() >= ENOUGH {
                let timeout_ms = (p99(&known.durations_ms) * 3).max(node.timeout_ms.unwrap_or(0)).max(1);
                start.timeouts_ms.insert(node.reference.clone(), timeout_ms);
            }
        }
        Ok(())
    }
}

pub(crate) fn estimate(known: &NodeSamples) -> Estimate {
    let mean = |all: &[u64]| (!all.is_empty()).then(|| all.iter().sum::<u64>() / all.len() as u64);
    Estimate { usd_micros: mean(&known.usd_micros), duration_ms: mean(&known.durations_ms) }
}

fn p99(durations_ms: &[u64]) -> u64 {
    let mut sorted = durations_ms.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}
