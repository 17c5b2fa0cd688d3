//! A workflow as a picture: Mermaid and Graphviz text.
//!
//! Nodes are drawn by what they do. A thick arrow fans out, a dashed one is for failures, and a fan-in says
//! how many it waits for. What a dag's `foreach` is made of inside is not drawn. How a run stands in its graph
//! can be laid over it; what that is, is for others to say.

mod overlay;

use std::collections::BTreeMap;
use std::fmt::Write;

pub use overlay::{Mark, Overlay, Stand};

use wonder_core::def::{On, Strategy};
use wonder_core::graph::names::items_of;
use wonder_core::graph::{Graph, Join, Node, Perform, Response, Rule, Source, Spread, Transition, UnitIx};
use wonder_core::visible;

/// How many characters of an expression a label shows.
const LABEL_CHARS_MAX: usize = 48;

#[derive(Clone, Copy, PartialEq)]
enum Line {
    Plain,
    /// Fans out.
    Thick,
    /// For failures and responses to them.
    Dashed,
}

struct Box {
    id: usize,
    title: String,
    /// What it does, and under which condition.
    notes: Vec<String>,
    work: &'static str,
    stand: Option<Stand>,
    /// By a run, not in its definition.
    added: bool,
}

struct Edge {
    from: usize,
    to: usize,
    label: Vec<String>,
    line: Line,
    added: bool,
}

struct Picture {
    name: String,
    boxes: Vec<Box>,
    edges: Vec<Edge>,
    /// Where a run begins.
    starts: Vec<usize>,
}

/// As a Mermaid flowchart.
pub fn mermaid(graph: &Graph) -> String {
    Picture::of(graph).mermaid()
}

/// As a Graphviz digraph.
pub fn dot(graph: &Graph) -> String {
    Picture::of(graph).dot()
}

/// As a Mermaid flowchart, with how a run stands in it.
pub fn mermaid_of_run(graph: &Graph, run: &Overlay<'_>) -> String {
    Picture::of(graph).with(run).mermaid()
}

/// As a Graphviz digraph, with how a run stands in it.
pub fn dot_of_run(graph: &Graph, run: &Overlay<'_>) -> String {
    Picture::of(graph).with(run).dot()
}

impl Picture {
    fn mermaid(&self) -> String {
        let mut out = String::from("flowchart TD\n");
        for (at, start) in self.starts.iter().enumerate() {
            let _ = writeln!(out, "  s{at}(( )) --> n{start}");
        }
        for node in &self.boxes {
            let (open, close) = mermaid_shape(node.work);
            let mut text = format!("{}{}", mark_of(node.added), mermaid_text(&node.title));
            for note in &node.notes {
                let _ = write!(text, "<br/><small>{}</small>", mermaid_text(note));
            }
            let _ = writeln!(out, "  n{}{open}\"{text}\"{close}", node.id);
        }
        for edge in &self.edges {
            let arrow = match edge.line {
                Line::Plain => "-->",
                Line::Thick => "==>",
                Line::Dashed => "-.->",
            };
            let label = edge.label.iter().map(|part| mermaid_text(part)).collect::<Vec<_>>().join("<br/>");
            let label = format!("{}{label}", mark_of(edge.added));
            let label = if label.is_empty() { label } else { format!("|\"{}\"|", label.trim_end()) };
            let _ = writeln!(out, "  n{} {arrow}{label} n{}", edge.from, edge.to);
        }
        out.push_str(&self.mermaid_classes());
        out
    }

    fn dot(&self) -> String {
        let name = dot_text(&self.name);
        let mut out = format!("digraph \"{name}\" {{\n  node [shape=box, fontname=\"sans-serif\"];\n");
        for (at, start) in self.starts.iter().enumerate() {
            let _ = writeln!(out, "  s{at} [shape=point, width=0.15, label=\"\"];\n  s{at} -> n{start};");
        }
        for node in &self.boxes {
            let notes = node.notes.iter().map(|note| format!("\\n{}", dot_text(note))).collect::<String>();
            let title = format!("{}{}", mark_of(node.added), dot_text(&node.title));
            let _ = writeln!(out, "  n{} [label=\"{title}{notes}\", {}];", node.id, node.dot_look());
        }
        for edge in &self.edges {
            let label = edge.label.iter().map(|part| dot_text(part)).collect::<Vec<_>>().join("\\n");
            let label = format!("{}{label}", mark_of(edge.added));
            let style = match (edge.added, edge.line) {
                (true, _) => overlay::DOT_ADDED_EDGE,
                (false, Line::Plain) => "",
                (false, Line::Thick) => ", style=bold",
                (false, Line::Dashed) => ", style=dashed",
            };
            let label = label.trim_end();
            let _ = writeln!(out, "  n{} -> n{} [label=\"{label}\"{style}];", edge.from, edge.to);
        }
        out.push_str("}\n");
        out
    }

    fn of(graph: &Graph) -> Picture {
        if graph.is_dag() { Picture::of_dag(graph) } else { Picture::of_graph(graph) }
    }

    fn of_graph(graph: &Graph) -> Picture {
        let boxes = graph.nodes.iter().enumerate().map(|(id, node)| to_box(id, &node.reference, node));
        let mut edges: Vec<Edge> =
            graph.transitions.iter().flat_map(|transition| to_edges(graph, transition)).collect();
        for (from, node) in graph.nodes.iter().enumerate() {
            edges.extend(node.on_error.iter().filter_map(|rule| jump(from, rule)));
            edges.extend(node.behind.map(|behind| Edge::plain(from, behind.0 as usize)));
        }
        let name = graph.name.to_string();
        Picture { name, boxes: boxes.collect(), edges, starts: vec![graph.initial.0 as usize] }
    }

    fn of_dag(graph: &Graph) -> Picture {
        let name = graph.name.to_string();
        let mut picture = Picture { name, boxes: Vec::new(), edges: Vec::new(), starts: Vec::new() };
        let exits = Exits::of(graph);
        for (id, unit) in graph.units.iter().enumerate() {
            // What a run put behind a unit is its tail, and no `foreach`.
            let items = graph.find_node(&items_of(&unit.reference));
            let mut node = to_box(id, &unit.reference, graph.node(items.unwrap_or(unit.head)));
            if items.is_some() {
                node.notes.push("once per item".to_owned());
            }
            if let Some(when) = &unit.when {
                node.notes.push(format!("when {}", brief(when.text())));
            }
            if let Some(join) = strategy(unit.join) {
                node.notes.push(format!("needs {join}"));
            }
            picture.boxes.push(node);
            picture.edges.extend(unit.needs.iter().map(|need| Edge::plain(exits.of_unit(*need), id)));
            if unit.needs.is_empty() {
                picture.starts.push(id);
            }
        }
        for (id, from, node) in exits.checks {
            picture.boxes.push(to_box(id, &node.reference, node));
            picture.edges.push(Edge::plain(from, id));
        }
        picture
    }
}

/// Where units are left: by what a run put behind them, if it did.
struct Exits<'g> {
    /// Box, the box it stands behind, and the node.
    checks: Vec<(usize, usize, &'g Node)>,
    by_unit: BTreeMap<UnitIx, usize>,
}

impl<'g> Exits<'g> {
    fn of(graph: &'g Graph) -> Exits<'g> {
        let mut exits = Exits { checks: Vec::new(), by_unit: BTreeMap::new() };
        for node in graph.nodes.iter().filter(|node| node.stands_for.is_some()) {
            let Some(unit) = node.unit else { continue };
            let (id, from) = (graph.units.len() + exits.checks.len(), exits.of_unit(unit));
            exits.checks.push((id, from, node));
            exits.by_unit.insert(unit, id);
        }
        exits
    }

    fn of_unit(&self, unit: UnitIx) -> usize {
        self.by_unit.get(&unit).copied().unwrap_or(unit.0 as usize)
    }
}

impl Edge {
    fn plain(from: usize, to: usize) -> Edge {
        Edge { from, to, label: Vec::new(), line: Line::Plain, added: false }
    }
}

fn mark_of(added: bool) -> &'static str {
    if added { "+ " } else { "" }
}

fn to_box(id: usize, title: &str, node: &Node) -> Box {
    let (work, note) = match &node.perform {
        Perform::Worker(task) | Perform::Coordinator { task, .. } => match task.steps.as_slice() {
            [only] => {
                let kind = only.action.def.implementation.kind();
                (kind, kind.to_owned())
            }
            steps => ("task", format!("{} steps", steps.len())),
        },
        Perform::Pass => ("pass", String::new()),
        Perform::Review => ("human_gate", "review".to_owned()),
    };
    let notes = if note.is_empty() { Vec::new() } else { vec![note] };
    Box { id, title: title.to_owned(), notes, work, stand: None, added: false }
}

fn to_edges(graph: &Graph, transition: &Transition) -> Vec<Edge> {
    let mut label = Vec::new();
    match transition.on {
        On::Success => {}
        On::Failure => label.push("on failure".to_owned()),
        On::Any => label.push("on any end".to_owned()),
    }
    label.extend(transition.condition.as_ref().map(|condition| brief(condition.text())));
    label.extend(transition.spread.as_ref().map(|spread| match spread {
        Spread::Count(count) => format!("{count} tokens"),
        Spread::Each { items, .. } => format!("for each of {}", brief(items.text())),
    }));
    label.extend(transition.max_iterations.as_ref().map(|most| format!("at most {most} times")));
    label.extend(transition.sync.map(|sync| fan_in(graph, transition, sync.group)));
    let fans_out =
        transition.spread.is_some() || graph.node(transition.from).fan_out == wonder_core::def::FanOut::All;
    let line = match transition.on {
        On::Failure => Line::Dashed,
        _ if fans_out => Line::Thick,
        _ => Line::Plain,
    };
    let (from, to) = (transition.from.0 as usize, transition.to.0 as usize);
    // What a run put behind a node takes its successes from it, and goes on as it would have.
    let behind = graph.node(transition.from).behind.map(|behind| behind.0 as usize);
    let own = (behind.is_none() || transition.on != On::Success).then_some(from);
    let edge = |from: usize| Edge { from, to, label: label.clone(), line, added: false };
    own.into_iter().chain(behind).map(edge).collect()
}

fn fan_in(graph: &Graph, transition: &Transition, group: Option<Source>) -> String {
    let leads_here = |join: &&Join| join.target == transition.to;
    let join = match group {
        Some(source) => graph.joins.get(&source),
        None => graph.joins.values().find(leads_here),
    };
    match join.and_then(|join| strategy(join.strategy)) {
        Some(strategy) => format!("fan-in: {strategy}"),
        None => "fan-in: all".to_owned(),
    }
}

fn strategy(strategy: Strategy) -> Option<String> {
    match strategy {
        Strategy::All => None,
        Strategy::Any => Some("any".to_owned()),
        Strategy::MOfN(count) => Some(format!("{count} of them")),
    }
}

fn jump(from: usize, rule: &Rule) -> Option<Edge> {
    let (to, what) = match &rule.response {
        Response::Goto(to) => (to, "goto"),
        Response::LoopWithFeedback { to: Some(to) } => (to, "feedback"),
        _ => return None,
    };
    let when = rule.when.as_ref().map(|when| brief(when.text()));
    let label = std::iter::once(what.to_owned()).chain(when).collect();
    Some(Edge { from, to: to.0 as usize, label, line: Line::Dashed, added: false })
}

fn brief(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= LABEL_CHARS_MAX {
        return flat;
    }
    flat.chars().take(LABEL_CHARS_MAX - 3).chain("...".chars()).collect()
}

fn mermaid_shape(work: &str) -> (&'static str, &'static str) {
    match work {
        "llm_call" => ("([", "])"),
        "human_gate" => ("{{", "}}"),
        "workflow_call" => ("[[", "]]"),
        "wait_event" | "sleep" => (">", "]"),
        "update_context" | "assert" | "pass" => ("[/", "/]"),
        "artifact_write" | "artifact_read" => ("[(", ")]"),
        _ => ("[", "]"),
    }
}

/// Shape, and the style that belongs to it.
fn dot_shape(work: &str) -> (&'static str, &'static str) {
    match work {
        "llm_call" => ("shape=box", "rounded"),
        "human_gate" => ("shape=hexagon", ""),
        "workflow_call" => ("shape=box, peripheries=2", ""),
        "wait_event" | "sleep" => ("shape=cds", ""),
        "update_context" | "assert" | "pass" => ("shape=parallelogram", ""),
        "artifact_write" | "artifact_read" => ("shape=cylinder", ""),
        _ => ("shape=box", ""),
    }
}

/// Mermaid reads quotes, HTML and `#` in labels: all of them as entities.
fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible::line(text).chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '|' | '\\' | ';' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn dot_text(text: &str) -> String {
    visible::line(text).replace('\\', "\\\\").replace('"', "\\\"")
}
