//! The graph as one run has it now: its definition, what the run added, and where the run stands in it. Below
//! the picture, as comments in the picture's own language, everything the run changed in how it goes on.

use std::collections::BTreeMap;

use serde::Serialize;
use wonder_core::graph::Graph;
use wonder_core::visible;
use wonder_engine::json::changes::{self, ChangeJson};
use wonder_engine::timeline::Timeline;
use wonder_engine::{EdgeView, GraphView, NodeView, RunView, extended};
use wonder_spec::{Mark, Overlay, Stand, dot_of_run, mermaid_of_run};

use super::paint::spoken;
use super::words::count;
use crate::args::Drawing;

/// A run's graph, and the graph it started with.
#[derive(Debug)]
pub(crate) struct RunGraph<'t> {
    before: &'t Graph,
    now: Graph,
    timeline: &'t Timeline,
    view: GraphView,
}

impl<'t> RunGraph<'t> {
    /// None if a recorded change does not fit the graph: then the definition is not the run's.
    pub(crate) fn of(before: &'t Graph, timeline: &'t Timeline) -> Option<RunGraph<'t>> {
        let now = extended(before, timeline)?;
        let view = GraphView::of_run(before, &now, timeline);
        Some(RunGraph { before, now, timeline, view })
    }

    fn overlay(&self) -> Overlay<'_> {
        let visited = self.view.nodes.iter().filter(|node| node.status.is_some());
        let mark = |node: &NodeView| Mark { stand: Stand::of(node.status), note: note(node) };
        let marks = visited.map(|node| (node.id.to_string(), mark(node))).collect();
        Overlay { before: self.before, marks }
    }

    pub(crate) fn text(&self, view: &RunView, format: Drawing) -> String {
        let overlay = self.overlay();
        let (mut text, comment) = match format {
            Drawing::Mermaid => (mermaid_of_run(&self.now, &overlay), "%%"),
            Drawing::Dot => (dot_of_run(&self.now, &overlay), "//"),
        };
        let lines = changes::lines(self.timeline);
        let status = spoken(view.row.status);
        let changed = if lines.is_empty() { ", as it was defined" } else { "; + added, ~ changed by it" };
        text.push_str(&format!("{comment} run {} ({status}){changed}\n", visible::line(&view.row.run)));
        for line in lines {
            text.push_str(&format!("{comment} {}\n", visible::line(&line)));
        }
        text
    }
}

/// `5 visits: 4 completed, 1 failed`
fn note(node: &NodeView) -> String {
    let visits = count(node.visits, "visit");
    let mut by_stand: BTreeMap<Stand, u64> = BTreeMap::new();
    for (status, number) in &node.by_status {
        *by_stand.entry(Stand::of(Some(*status))).or_default() += number;
    }
    if by_stand.len() < 2 {
        return visits;
    }
    let parts: Vec<String> =
        by_stand.iter().map(|(stand, number)| format!("{number} {}", stand.as_str())).collect();
    format!("{visits}: {}", parts.join(", "))
}

/// `show --graph -o json`.
#[derive(Debug, Serialize)]
pub(crate) struct GraphJson<'v> {
    run: &'v str,
    workflow: &'v str,
    version: u32,
    status: wonder_engine::Status,
    format: &'static str,
    text: String,
    nodes: Vec<NodeJson<'v>>,
    edges: &'v [EdgeView],
    mutations: Vec<ChangeJson<'v>>,
}

#[derive(Debug, Serialize)]
struct NodeJson<'v> {
    node: &'v str,
    /// Of its last visit; `unreached` without one.
    state: &'static str,
    #[serde(flatten)]
    view: &'v NodeView,
}

impl<'v> GraphJson<'v> {
    pub(crate) fn of(view: &'v RunView, graph: &'v RunGraph<'_>, format: Drawing) -> GraphJson<'v> {
        GraphJson {
            run: &view.row.run,
            workflow: &view.row.workflow,
            version: view.row.version,
            status: view.row.status,
            format: if format == Drawing::Dot { "dot" } else { "mermaid" },
            text: graph.text(view, format),
            nodes: graph.view.nodes.iter().map(NodeJson::of).collect(),
            edges: &graph.view.edges,
            mutations: changes::json(graph.timeline),
        }
    }
}

impl<'v> NodeJson<'v> {
    fn of(view: &'v NodeView) -> NodeJson<'v> {
        NodeJson { node: &view.id, state: Stand::of(view.status).as_str(), view }
    }
}
