//! A graph as nodes and edges, for whoever draws one: without a layout, by ids that stay the same as long as the
//! definition does. Of a run, with what the run added and where it stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wonder_core::TokenStatus;
use wonder_core::def::{Effect, Name, On};
use wonder_core::event::RunChange;
use wonder_core::graph::names::items_of;
use wonder_core::graph::{Bound, Graph, Node, Perform, Spread, Transition};

use crate::run_tree::{is_gather, node_name};
use crate::timeline::{Timeline, Visit};

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GraphView {
    pub workflow: Name,
    pub version: u32,
    /// Nodes are started by what they need; else by transitions.
    pub dag: bool,
    pub nodes: Vec<NodeView>,
    pub edges: Vec<EdgeView>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NodeView {
    /// Its ref, which is unique in the graph.
    pub id: Name,
    pub kind: NodeKind,
    /// The task it executes, if that is written apart from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Name>,
    /// What its task does to the world.
    #[serde(default)]
    pub effect: Effect,
    /// A run begins here.
    pub initial: bool,
    /// By the run, not in its definition.
    pub added: bool,
    pub visits: u64,
    /// Of its last visit; absent if it was never visited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TokenStatus>,
    /// How many of its visits are so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_status: BTreeMap<TokenStatus, u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A worker executes its task.
    Task,
    /// The coordinator does: a gate, a sleep, an event, an update of the context.
    Coordinated,
    /// It calls another workflow.
    Call,
    /// Nothing is done: it only passes on.
    Pass,
    /// A gate that the run put behind a node.
    Review,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EdgeView {
    /// The ref of the transition; of a dag's need, and of what the run put behind a node, `FROM->TO`.
    pub id: Name,
    pub from: Name,
    pub to: Name,
    pub on: On,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// It makes a group: a branch for each item, or so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadView>,
    /// It leads to the fan-in of a group.
    pub joins: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// By the run, not in its definition.
    pub added: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpreadView {
    Count(u32),
    Each(String),
}

/// The graph as a run has it now: its definition and what the run added. None if a recorded change does not fit:
/// then the definition is not the run's.
pub fn extended(before: &Graph, timeline: &Timeline) -> Option<Graph> {
    let mut now = before.clone();
    for mutated in &timeline.mutations {
        if let RunChange::Graph(mutation) = &mutated.what {
            now = now.extended(mutation).ok()?;
        }
    }
    Some(now)
}

impl GraphView {
    /// A definition that no run stands in.
    pub fn of(graph: &Graph) -> GraphView {
        GraphView::of_run(graph, graph, &Timeline::default())
    }

    /// `now`: what [`extended`] made of `before`.
    pub fn of_run(before: &Graph, now: &Graph, timeline: &Timeline) -> GraphView {
        let mut stands: BTreeMap<String, Stands> = BTreeMap::new();
        for visit in timeline.visits.values() {
            stands.entry(box_of(now, &visit.node)).or_default().add(visit, is_counted(now, visit));
        }
        let drawn = now.nodes.iter().filter(|node| box_of(now, &node.reference) == *node.reference);
        let node = |node: &Node| {
            let stands = stands.remove(&*node.reference).unwrap_or_default();
            node_view(before, now, node, stands)
        };
        GraphView {
            workflow: now.name.clone(),
            version: now.version,
            dag: now.is_dag(),
            nodes: drawn.map(node).collect(),
            edges: edges(before, now),
        }
    }
}

/// What is known of the visits of one node.
#[derive(Default)]
struct Stands {
    visits: u64,
    by_status: BTreeMap<TokenStatus, u64>,
    last: Option<TokenStatus>,
}

impl Stands {
    fn add(&mut self, visit: &Visit, is_counted: bool) {
        self.last = Some(visit.status);
        if is_counted {
            self.visits += 1;
            *self.by_status.entry(visit.status).or_default() += 1;
        }
    }
}

/// The node that a node is shown as: in a dag its unit, but for what the run put behind one.
fn box_of(graph: &Graph, node: &str) -> String {
    let added = graph.find_node(node).is_some_and(|ix| graph.node(ix).stands_for.is_some());
    let whole = added || !graph.is_dag();
    if whole { node.to_owned() } else { node_name(node).to_owned() }
}

/// People count the items of a dag's `foreach`, not what spreads and gathers them.
fn is_counted(graph: &Graph, visit: &Visit) -> bool {
    !(graph.is_dag() && (is_gather(&visit.node) || graph.find_node(&items_of(&visit.node)).is_some()))
}

fn node_view(before: &Graph, now: &Graph, node: &Node, stands: Stands) -> NodeView {
    let kind = match &node.perform {
        Perform::Worker(_) => NodeKind::Task,
        Perform::Coordinator { .. } if node.calls_workflow() => NodeKind::Call,
        Perform::Coordinator { .. } => NodeKind::Coordinated,
        Perform::Pass => NodeKind::Pass,
        Perform::Review => NodeKind::Review,
    };
    let initial = match node.unit {
        Some(unit) => now.unit(unit).needs.is_empty(),
        None => now.node(now.initial).reference == node.reference,
    };
    NodeView {
        id: node.reference.clone(),
        kind,
        task: node.task().map(|task| task.name.clone()).filter(|name| now.tasks.contains_key(name)),
        effect: node.task().map(|task| task.effect).unwrap_or_default(),
        initial,
        added: before.find_node(&node.reference).is_none(),
        visits: stands.visits,
        status: stands.last,
        by_status: stands.by_status,
    }
}

fn edges(before: &Graph, now: &Graph) -> Vec<EdgeView> {
    let mut edges = needs(before, now);
    // What the run put behind a node is reached from it alone, and goes on as the node does.
    for node in &now.nodes {
        if let Some(behind) = node.behind.map(|ix| &now.node(ix).reference) {
            edges.push(EdgeView { added: true, ..plain(&node.reference, behind) });
        }
    }
    // Within a dag's unit transitions lead from its spread to its gather: not edges that anybody wrote.
    let written = now.transitions.iter().filter(|transition| {
        let (from, to) = (now.node(transition.from), now.node(transition.to));
        from.unit.is_none() || from.unit != to.unit
    });
    edges.extend(written.map(|transition| edge(before, now, transition)));
    edges
}

/// An edge that is no transition.
fn plain(from: &Name, to: &Name) -> EdgeView {
    EdgeView {
        id: format!("{from}->{to}").into(),
        from: from.clone(),
        to: to.clone(),
        on: On::Success,
        condition: None,
        spread: None,
        joins: false,
        max_iterations: None,
        added: false,
    }
}

/// Of a dag: from each unit to those that need it.
fn needs(before: &Graph, now: &Graph) -> Vec<EdgeView> {
    let mut edges = Vec::new();
    for unit in &now.units {
        for needed in &unit.needs {
            let (from, to) = (&now.unit(*needed).reference, &unit.reference);
            let known = |graph: &Graph| {
                let units = || graph.units.iter();
                units().any(|known| {
                    known.reference == *to && known.needs.iter().any(|ix| graph.unit(*ix).reference == *from)
                })
            };
            edges.push(EdgeView {
                condition: unit.when.as_ref().map(|when| when.text().to_owned()),
                joins: unit.needs.len() > 1,
                added: !known(before),
                ..plain(from, to)
            });
        }
    }
    edges
}

fn edge(before: &Graph, now: &Graph, transition: &Transition) -> EdgeView {
    let spread = transition.spread.as_ref().map(|spread| match spread {
        Spread::Count(count) => SpreadView::Count(*count),
        Spread::Each { items, .. } => SpreadView::Each(items.text().to_owned()),
    });
    EdgeView {
        id: transition.reference.clone(),
        from: now.node(transition.from).reference.clone(),
        to: now.node(transition.to).reference.clone(),
        on: transition.on,
        condition: transition.condition.as_ref().map(|condition| condition.text().to_owned()),
        spread,
        joins: transition.sync.is_some(),
        max_iterations: transition.max_iterations.as_ref().and_then(Bound::count),
        added: before.find_transition(&transition.reference).is_none(),
    }
}
