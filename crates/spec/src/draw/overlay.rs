//! What a run lays over the picture of its graph: where it stands, and what it added. It says how that looks;
//! where a node stands follows from its last visit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use wonder_core::TokenStatus;
use wonder_core::graph::Graph;

use super::{Box, Picture, dot_shape};

/// How a run stands in its graph.
#[derive(Debug)]
pub struct Overlay<'g> {
    /// The graph before the run added to it.
    pub before: &'g Graph,
    /// By ref of the node, in a dag of the unit; nodes without one have never been reached.
    pub marks: BTreeMap<String, Mark>,
}

#[derive(Clone, Debug)]
pub struct Mark {
    pub stand: Stand,
    /// Written below the node.
    pub note: String,
}

/// What became of a node when it was last visited.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Stand {
    Completed,
    Failed,
    Skipped,
    Cancelled,
    Running,
    Waiting,
    Unreached,
}

pub(super) const DOT_ADDED_EDGE: &str = ", style=dashed, color=\"#1971c2\", fontcolor=\"#1971c2\"";
const ADDED_CLASS: &str = "stroke:#1971c2,stroke-width:3px,stroke-dasharray:6 4";
const ADDED_LINK: &str = "stroke:#1971c2,stroke-width:2px,stroke-dasharray:6 4";

impl Stand {
    /// Of a node by the status of its last visit.
    pub fn of(status: Option<TokenStatus>) -> Stand {
        let Some(status) = status else { return Stand::Unreached };
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

    pub fn as_str(self) -> &'static str {
        match self {
            Stand::Completed => "completed",
            Stand::Failed => "failed",
            Stand::Skipped => "skipped",
            Stand::Cancelled => "cancelled",
            Stand::Running => "running",
            Stand::Waiting => "waiting",
            Stand::Unreached => "unreached",
        }
    }

    /// Fill, border and text: readable on a light page and on a dark one.
    fn colours(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Stand::Completed => ("#d3f9d8", "#2f9e44", "#1b1b1b"),
            Stand::Failed => ("#ffe3e3", "#e03131", "#1b1b1b"),
            Stand::Skipped => ("#f1f3f5", "#868e96", "#495057"),
            Stand::Cancelled => ("#e9ecef", "#495057", "#495057"),
            Stand::Running => ("#d0ebff", "#1971c2", "#1b1b1b"),
            Stand::Waiting => ("#fff3bf", "#f08c00", "#1b1b1b"),
            Stand::Unreached => ("#ffffff", "#ced4da", "#868e96"),
        }
    }
}

impl Picture {
    /// The same picture with the run in it. What a run adds comes after all that was there.
    pub(super) fn with(mut self, run: &Overlay<'_>) -> Picture {
        let known: BTreeSet<&str> = match run.before.is_dag() {
            true => run.before.units.iter().map(|unit| &*unit.reference).collect(),
            false => run.before.nodes.iter().map(|node| &*node.reference).collect(),
        };
        // Two transitions may lead the same way: the first of them were there.
        let mut before: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for edge in &Picture::of(run.before).edges {
            *before.entry((edge.from, edge.to)).or_default() += 1;
        }
        for node in &mut self.boxes {
            node.added = !known.contains(node.title.as_str());
            let mark = run.marks.get(&node.title);
            node.stand = Some(mark.map_or(Stand::Unreached, |mark| mark.stand));
            node.notes.extend(mark.map(|mark| mark.note.clone()).filter(|note| !note.is_empty()));
        }
        for edge in &mut self.edges {
            match before.get_mut(&(edge.from, edge.to)).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => edge.added = true,
            }
        }
        self
    }

    /// Classes of nodes and the look of added links; nothing without a run.
    pub(super) fn mermaid_classes(&self) -> String {
        let mut out = String::new();
        let mut by_stand: BTreeMap<Stand, Vec<String>> = BTreeMap::new();
        for node in &self.boxes {
            if let Some(stand) = node.stand {
                by_stand.entry(stand).or_default().push(format!("n{}", node.id));
            }
        }
        for (stand, nodes) in by_stand {
            let (fill, stroke, color) = stand.colours();
            let name = stand.as_str();
            let _ = writeln!(out, "  classDef {name} fill:{fill},stroke:{stroke},color:{color}");
            let _ = writeln!(out, "  class {} {name}", nodes.join(","));
        }
        let added = self.boxes.iter().filter(|node| node.added).map(|node| format!("n{}", node.id));
        let added: Vec<String> = added.collect();
        if !added.is_empty() {
            let _ = writeln!(out, "  classDef added {ADDED_CLASS}\n  class {} added", added.join(","));
        }
        // Links are numbered as they are written, those of the starts first.
        let links = self.edges.iter().enumerate().filter(|(_, edge)| edge.added);
        let links: Vec<String> = links.map(|(at, _)| (at + self.starts.len()).to_string()).collect();
        if !links.is_empty() {
            let _ = writeln!(out, "  linkStyle {} {ADDED_LINK}", links.join(","));
        }
        out
    }
}

impl Box {
    pub(super) fn dot_look(&self) -> String {
        let (shape, style) = dot_shape(self.work);
        let Some(stand) = self.stand else {
            return if style.is_empty() { shape.to_owned() } else { format!("{shape}, style={style}") };
        };
        let (fill, border, text) = stand.colours();
        let styles: Vec<&str> = [style, "filled", if self.added { "dashed" } else { "" }]
            .into_iter()
            .filter(|style| !style.is_empty())
            .collect();
        let width = if self.added { ", penwidth=2" } else { "" };
        let border = if self.added { "#1971c2" } else { border };
        format!(
            "{shape}, style=\"{}\", fillcolor=\"{fill}\", color=\"{border}\", fontcolor=\"{text}\"{width}",
            styles.join(",")
        )
    }
}
