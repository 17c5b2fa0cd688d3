//! A workflow as a picture: Mermaid and Graphviz text.
//!
//! Nodes are drawn by what they do. A thick arrow fans out, a dashed one is for failures, and a fan-in says
//! how many it waits for. What a dag's `foreach` is made of inside is not drawn.

use std::fmt::Write;

use wonder_core::def::{On, Strategy};
use wonder_core::graph::{Graph, Join, Node, NodeIx, Perform, Response, Rule, Source, Spread, Transition};

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
}

struct Edge {
    from: usize,
    to: usize,
    label: Vec<String>,
    line: Line,
}

struct Picture {
    boxes: Vec<Box>,
    edges: Vec<Edge>,
    /// Where a run begins.
    starts: Vec<usize>,
}

/// As a Mermaid flowchart.
pub fn mermaid(graph: &Graph) -> String {
    let picture = Picture::of(graph);
    let mut out = String::from("flowchart TD\n");
    for (at, start) in picture.starts.iter().enumerate() {
        let _ = writeln!(out, "  s{at}(( )) --> n{start}");
    }
    for node in &picture.boxes {
        let (open, close) = mermaid_shape(node.work);
        let mut text = mermaid_text(&node.title);
        for note in &node.notes {
            let _ = write!(text, "<br/><small>{}</small>", mermaid_text(note));
        }
        let _ = writeln!(out, "  n{}{open}\"{text}\"{close}", node.id);
    }
    for edge in &picture.edges {
        let arrow = match edge.line {
            Line::Plain => "-->",
            Line::Thick => "==>",
            Line::Dashed => "-.->",
        };
        let label = edge.label.iter().map(|part| mermaid_text(part)).collect::<Vec<_>>().join("<br/>");
        let label = if label.is_empty() { label } else { format!("|\"{label}\"|") };
        let _ = writeln!(out, "  n{} {arrow}{label} n{}", edge.from, edge.to);
    }
    out
}

/// As a Graphviz digraph.
pub fn dot(graph: &Graph) -> String {
    let picture = Picture::of(graph);
    let mut out =
        format!("digraph \"{}\" {{\n  node [shape=box, fontname=\"sans-serif\"];\n", dot_text(&graph.name));
    for (at, start) in picture.starts.iter().enumerate() {
        let _ = writeln!(out, "  s{at} [shape=point, width=0.15, label=\"\"];\n  s{at} -> n{start};");
    }
    for node in &picture.boxes {
        let notes = node.notes.iter().map(|note| format!("\\n{}", dot_text(note))).collect::<String>();
        let (title, shape) = (dot_text(&node.title), dot_shape(node.work));
        let _ = writeln!(out, "  n{} [label=\"{title}{notes}\", {shape}];", node.id);
    }
    for edge in &picture.edges {
        let label = edge.label.iter().map(|part| dot_text(part)).collect::<Vec<_>>().join("\\n");
        let style = match edge.line {
            Line::Plain => "",
            Line::Thick => ", style=bold",
            Line::Dashed => ", style=dashed",
        };
        let _ = writeln!(out, "  n{} -> n{} [label=\"{label}\"{style}];", edge.from, edge.to);
    }
    out.push_str("}\n");
    out
}

impl Picture {
    fn of(graph: &Graph) -> Picture {
        if graph.is_dag() { Picture::of_dag(graph) } else { Picture::of_graph(graph) }
    }

    fn of_graph(graph: &Graph) -> Picture {
        let boxes = graph.nodes.iter().enumerate().map(|(id, node)| to_box(id, &node.reference, node));
        let mut edges: Vec<Edge> =
            graph.transitions.iter().map(|transition| to_edge(graph, transition)).collect();
        for (from, node) in graph.nodes.iter().enumerate() {
            edges.extend(node.on_error.iter().filter_map(|rule| jump(from, rule)));
        }
        Picture { boxes: boxes.collect(), edges, starts: vec![graph.initial.0 as usize] }
    }

    fn of_dag(graph: &Graph) -> Picture {
        let mut picture = Picture { boxes: Vec::new(), edges: Vec::new(), starts: Vec::new() };
        for (id, unit) in graph.units.iter().enumerate() {
            let inner = if unit.head == unit.tail { unit.head } else { NodeIx(unit.head.0 + 1) };
            let mut node = to_box(id, &unit.reference, graph.node(inner));
            if unit.head != unit.tail {
                node.notes.push("once per item".to_owned());
            }
            if let Some(when) = &unit.when {
                node.notes.push(format!("when {}", brief(when.text())));
            }
            if let Some(join) = strategy(unit.join) {
                node.notes.push(format!("needs {join}"));
            }
            picture.boxes.push(node);
            for need in &unit.needs {
                picture.edges.push(Edge {
                    from: need.0 as usize,
                    to: id,
                    label: Vec::new(),
                    line: Line::Plain,
                });
            }
            if unit.needs.is_empty() {
                picture.starts.push(id);
            }
        }
        picture
    }
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
    Box { id, title: title.to_owned(), notes, work }
}

fn to_edge(graph: &Graph, transition: &Transition) -> Edge {
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
    label.extend(transition.max_iterations.map(|most| format!("at most {most} times")));
    label.extend(transition.sync.map(|sync| fan_in(graph, transition, sync.group)));
    let fans_out =
        transition.spread.is_some() || graph.node(transition.from).fan_out == wonder_core::def::FanOut::All;
    let line = match transition.on {
        On::Failure => Line::Dashed,
        _ if fans_out => Line::Thick,
        _ => Line::Plain,
    };
    Edge { from: transition.from.0 as usize, to: transition.to.0 as usize, label, line }
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
    Some(Edge { from, to: to.0 as usize, label, line: Line::Dashed })
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

fn dot_shape(work: &str) -> &'static str {
    match work {
        "llm_call" => "shape=box, style=rounded",
        "human_gate" => "shape=hexagon",
        "workflow_call" => "shape=box, peripheries=2",
        "wait_event" | "sleep" => "shape=cds",
        "update_context" | "assert" | "pass" => "shape=parallelogram",
        "artifact_write" | "artifact_read" => "shape=cylinder",
        _ => "shape=box",
    }
}

/// Mermaid reads quotes, HTML and `#` in labels: all of them as entities.
fn mermaid_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '|' | '\\' | ';' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ")
}
