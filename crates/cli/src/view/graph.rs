//! The graph as one run has it now: its definition, what the run added, and where the run stands in it. Below
//! the picture, as comments in the picture's own language, everything the run changed in how it goes on.

use std::collections::BTreeMap;

use serde::Serialize;
use wonder_core::TokenStatus;
use wonder_core::event::RunChange;
use wonder_core::graph::Graph;
use wonder_engine::RunView;
use wonder_engine::timeline::{Timeline, Visit};
use wonder_spec::{Mark, Overlay, Stand, dot_of_run, mermaid_of_run};

use super::changes::{self, ChangeJson};
use super::family::{is_gather, node_name};
use super::paint::spoken;
use super::words::{clean, count};
use crate::args::Drawing;

/// A run's graph, and the graph it started with.
#[derive(Debug)]
pub(crate) struct RunGraph<'t> {
    before: &'t Graph,
    now: Graph,
    timeline: &'t Timeline,
    stood: BTreeMap<String, Stood>,
}

/// What is known of one node.
#[derive(Debug, Default)]
struct Stood {
    visits: u64,
    by_stand: BTreeMap<Stand, u64>,
    /// Of its last visit.
    last: Option<Stand>,
}

impl<'t> RunGraph<'t> {
    /// None if a recorded change does not fit the graph: then the definition is not the run's.
    pub(crate) fn of(before: &'t Graph, timeline: &'t Timeline) -> Option<RunGraph<'t>> {
        let mut now = before.clone();
        for mutated in &timeline.mutations {
            if let RunChange::Graph(mutation) = &mutated.what {
                now = now.grown(mutation).ok()?;
            }
        }
        let mut graph = RunGraph { before, now, timeline, stood: BTreeMap::new() };
        timeline.visits.values().for_each(|visit| graph.stand(visit));
        Some(graph)
    }

    fn stand(&mut self, visit: &Visit) {
        let stand = stand_of(visit.status);
        let counts = self.counts(visit);
        let stood = self.stood.entry(self.title(&visit.node)).or_default();
        stood.last = Some(stand);
        if counts {
            stood.visits += 1;
            *stood.by_stand.entry(stand).or_default() += 1;
        }
    }

    /// The box a node is drawn as: in a dag its unit's, but for what the run put behind one.
    fn title(&self, node: &str) -> String {
        let added = self.now.find_node(node).is_some_and(|ix| self.now.node(ix).stands_for.is_some());
        let whole = added || !self.now.is_dag();
        if whole { node.to_owned() } else { node_name(node).to_owned() }
    }

    /// People count the items of a dag's `foreach`, not what spreads and gathers them.
    fn counts(&self, visit: &Visit) -> bool {
        let items = format!("{}[]", visit.node);
        !(self.now.is_dag() && (is_gather(&visit.node) || self.now.find_node(&items).is_some()))
    }

    fn overlay(&self) -> Overlay<'_> {
        let mark = |stood: &Stood| Mark { stand: stood.last.unwrap_or(Stand::Unreached), note: stood.note() };
        let marks = self.stood.iter().map(|(title, stood)| (title.clone(), mark(stood))).collect();
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
        text.push_str(&format!("{comment} run {} ({status}){changed}\n", view.row.run));
        for line in lines {
            text.push_str(&format!("{comment} {}\n", clean(&line)));
        }
        text
    }
}

impl Stood {
    /// `5 visits: 4 completed, 1 failed`
    fn note(&self) -> String {
        let visits = count(self.visits, "visit");
        if self.by_stand.len() < 2 {
            return visits;
        }
        let parts: Vec<String> =
            self.by_stand.iter().map(|(stand, number)| format!("{number} {}", stand.as_str())).collect();
        format!("{visits}: {}", parts.join(", "))
    }
}

fn stand_of(status: TokenStatus) -> Stand {
    match status {
        TokenStatus::Completed | TokenStatus::WaitingForSiblings => Stand::Completed,
        TokenStatus::Failed | TokenStatus::TimedOut => Stand::Failed,
        TokenStatus::Skipped => Stand::Skipped,
        TokenStatus::Cancelled => Stand::Cancelled,
        TokenStatus::Pending
        | TokenStatus::Dispatched
        | TokenStatus::Retrying
        | TokenStatus::WaitingForSubworkflow => Stand::Running,
        TokenStatus::Escalated
        | TokenStatus::WaitingForHuman
        | TokenStatus::WaitingForEvent
        | TokenStatus::Sleeping => Stand::Waiting,
    }
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
    nodes: Vec<NodeJson>,
    mutations: Vec<ChangeJson<'v>>,
}

#[derive(Debug, Serialize)]
struct NodeJson {
    node: String,
    /// Of its last visit; `unreached` without one.
    state: &'static str,
    visits: u64,
    /// By the run, not in its definition.
    added: bool,
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
            nodes: graph.nodes(),
            mutations: changes::json(graph.timeline),
        }
    }
}

impl RunGraph<'_> {
    fn nodes(&self) -> Vec<NodeJson> {
        let drawn = |node: &&wonder_core::graph::Node| self.title(&node.reference) == *node.reference;
        let one = |node: &wonder_core::graph::Node| {
            let stood = self.stood.get(&*node.reference);
            NodeJson {
                node: node.reference.to_string(),
                state: stood.and_then(|stood| stood.last).unwrap_or(Stand::Unreached).as_str(),
                visits: stood.map_or(0, |stood| stood.visits),
                added: self.before.find_node(&node.reference).is_none(),
            }
        };
        self.now.nodes.iter().filter(drawn).map(one).collect()
    }
}
