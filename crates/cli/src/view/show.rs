//! One run on one page: how it stands, the tree of its visits with bars that show when, the walks of those that
//! did not go straight, what the run changed, its gates, what came out. What an attempt cost is for `cost`.

use std::sync::Arc;

use wonder_core::graph::Graph;
use wonder_core::state::Metrics;
use wonder_engine::json::{budget_micros, changes};
use wonder_engine::timeline::Timeline;
use wonder_engine::{GateView, RunView};

use super::list::{Page, history, is_interrupted, place};
use super::paint::{Paint, Tone, run_mark, run_tone, spoken};
use super::result::{answer_line, failure, takes_line};
use super::row::{Columns, Span, line};
use super::tree::{Background, Row, SIBLINGS_MAX, rows};
use super::walk;
use super::words::{ago, brief, cost, count, dollars, duration, shell_word, until, wrapped};
use crate::args::INTERRUPTED;
use crate::text::{Text, text};
use wonder_engine::run_tree::RunTree;

/// Where nothing tells how wide a page is.
const WIDTH: usize = 100;

/// `graph`: the run's definition, for what lies ahead of it.
pub(crate) fn page(
    view: &RunView,
    run_tree: &RunTree,
    graph: Option<&Arc<Graph>>,
    gates: &[GateView],
    page: Page,
) -> Text {
    let width = page.width.unwrap_or(WIDTH);
    let sized = Page { width: Some(width), ..page };
    let mut out = head(view, run_tree, page);
    // The failure has a section of its own, with its causes.
    let (graph, told) = (graph.cloned(), view.error.clone());
    let all = rows(run_tree, &Background { graph, told, ..Background::default() }, page.now, SIBLINGS_MAX);
    if !all.is_empty() {
        out.push(tree(&all, run_tree.root(), sized));
    }
    let parts =
        [("walks", walk::lines(run_tree, sized)), ("changes to how it goes on", changed(run_tree, sized))];
    for (title, lines) in parts.iter().filter(|(_, lines)| !lines.is_empty()) {
        out.push(section(title, lines, page.paint));
    }
    let history = gate_history(run_tree, page);
    if !history.is_empty() {
        out.push(section("gates", &history, page.paint));
    }
    if !gates.is_empty() {
        let lines: Vec<Text> = gates.iter().flat_map(|gate| gate_lines(gate, page)).collect();
        out.push(section("open gates", &lines, page.paint));
    }
    if view.error.is_some() {
        out.push(section("error", &failure(view), page.paint));
    }
    if let Some(output) = &view.output {
        let text = serde_json::to_string_pretty(output).unwrap_or_default();
        let lines: Vec<Text> = text.lines().map(Text::from).collect();
        out.push(section("output", &lines, page.paint));
    }
    out
}

fn head(view: &RunView, run_tree: &RunTree, page: Page) -> Text {
    let (row, paint, timeline) = (&view.row, page.paint, run_tree.root());
    // With what the runs have spent that it has not heard the end of.
    let spend = run_tree.spend(&run_tree.root);
    let mut lines: Vec<(&str, Text)> =
        vec![("run", Text::from(&row.run)), ("workflow", text!("{}, version {}", row.workflow, row.version))];
    if let Some(parent) = &row.parent {
        lines.push(("called by", Text::from(parent)));
    }
    if let Some(forked) = &row.forked {
        lines.push(("forked", text!("from {}; what was copied is no part of what it took", forked.from)));
    }
    let status = match is_interrupted(row) {
        true => {
            let mark = paint.tone(Tone::Attention, format!("! {INTERRUPTED}"));
            text!("{} · nobody carries it on: wonder resume {}", mark, shell_word(&row.run))
        }
        false => paint.tone(run_tone(row.status), format!("{} {}", run_mark(row.status), spoken(row.status))),
    };
    lines.push(("status", status));
    lines.push(("started", text!("{} ({})", row.started_at, ago(row.started_at, page.now))));
    let mut took = vec![duration(view.duration_ms)];
    took.extend(cost(spend.usd_micros, spend.unpriced_calls));
    took.extend((spend.tokens() > 0).then(|| count(spend.tokens(), "model token")));
    let idle = |ms: u64| format!("without {} between its end and its retry", duration(ms));
    took.extend(Some(row.closed_ms).filter(|ms| *ms > 0).map(idle));
    lines.push(("took", Text::joined(took, " · ")));
    lines.push(("metrics", metrics(&view.metrics).into()));
    lines.extend(budget_line(view, timeline, spend.usd_micros).map(|text| ("budget", text.into())));
    if !row.labels.is_empty() {
        let labels: Vec<String> = row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        lines.push(("labels", Text::joined(labels, " ")));
    }
    if view.input.as_map().is_none_or(|map| !map.is_empty()) {
        lines.push(("input", brief(&view.input.to_string(), 200).into()));
    }
    Text::of_lines(lines.iter().map(|(name, text)| text!("{} {}", paint.dim(format!("{name:<9}")), text)))
}

/// `$0.0200 of $0.0300 spent · raised by $0.0100, 50 model calls`
fn budget_line(view: &RunView, timeline: &Timeline, spent: u64) -> Option<String> {
    let raised = &timeline.run_budget.raised;
    let by: Vec<String> = [
        (raised.usd_micros > 0).then(|| dollars(raised.usd_micros)),
        (raised.tokens > 0).then(|| count(raised.tokens, "model token")),
        (raised.calls > 0).then(|| count(raised.calls, "model call")),
        (raised.times > 0).then(|| match raised.times {
            1 => "every bound by as much again".to_owned(),
            times => format!("every bound by as much again, {times} times"),
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let spent = budget_micros(view, timeline)
        .map(|budget| format!("{} of {} spent", dollars(spent), dollars(budget)));
    let raised = (!by.is_empty()).then(|| format!("raised by {}", by.join(", ")));
    let parts: Vec<String> = spent.into_iter().chain(raised).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Nodes by what became of them, and what it took: nothing is left out for being nothing.
fn metrics(metrics: &Metrics) -> String {
    let Metrics { nodes_completed, nodes_failed, nodes_skipped, retries, mutations_applied } = metrics;
    let nodes = count(*nodes_completed, "node");
    let (retries, mutations) = (count(*retries, "retry"), count((*mutations_applied).into(), "mutation"));
    format!("{nodes} completed, {nodes_failed} failed, {nodes_skipped} skipped · {retries} · {mutations}")
}

/// Of the run, and of its children under their names.
fn changed(run_tree: &RunTree, page: Page) -> Vec<Text> {
    let width = page.width.unwrap_or(WIDTH).saturating_sub(2);
    let mut lines = changes::lines(run_tree.root());
    for (run, timeline) in run_tree.runs.iter().filter(|(run, _)| **run != run_tree.root) {
        let label = run_tree.run_label(run);
        lines.extend(changes::lines(timeline).iter().map(|line| format!("{label}: {line}")));
    }
    lines.iter().flat_map(|line| wrapped(line, width, 4)).map(Text::from).collect()
}

fn tree(all: &[Row], root: &Timeline, page: Page) -> Text {
    let (width, paint) = (page.width.unwrap_or(WIDTH), page.paint);
    let span = Span { axis: root.axis(), to: root.ended_at.unwrap_or(page.now).max(root.last_at) };
    let columns = Columns::of(all, width - 2, paint).with_bars();
    let mut lines: Vec<Text> = all.iter().map(|row| line(row, &columns, Some(&span))).collect();
    if columns.bars > 0 {
        lines.insert(0, scale(&columns, &span));
    }
    section("nodes", &lines, paint)
}

/// The ends of the bars: `0s` and how long it took.
fn scale(columns: &Columns, span: &Span) -> Text {
    let end = Text::from(duration(span.whole_ms()));
    let gap = columns.bars.saturating_sub(end.width() + 1);
    columns.paint.dim(text!("{}0{}{}", Text::blanks(columns.bars_at()), Text::blanks(gap), end))
}

/// Gates that somebody answered or that closed without it, of the run and of those it called: who, when, what.
fn gate_history(run_tree: &RunTree, page: Page) -> Vec<Text> {
    let mut lines = Vec::new();
    for (run, timeline) in &run_tree.runs {
        for (id, gate) in
            timeline.gates.iter().filter(|(_, gate)| !gate.is_open() || !gate.answers.is_empty())
        {
            let at = gate.token.map_or(String::new(), |token| format!(" at {}", run_tree.label(run, token)));
            let place = page.paint.dim(format!("({run}:{id}{at})"));
            lines.push(text!("{} {}", page.paint.strong(&gate.title), place));
            let told = history(gate);
            lines
                .extend(told.iter().map(|(at, what)| text!("  {} {}", page.paint.dim(at.to_string()), what)));
        }
    }
    lines
}

fn gate_lines(gate: &GateView, page: Page) -> Vec<Text> {
    let node = place(gate).map_or(String::new(), |place| format!(" at {place}"));
    let until = gate.deadline.map_or(String::new(), |at| format!(", {}", until(at, page.now)));
    let when = format!("{}{until}", ago(gate.opened_at, page.now));
    let mut lines = vec![text!(
        "{} {}",
        page.paint.tone(Tone::Attention, &gate.title),
        page.paint.dim(format!("({}{node}, opened {when})", gate.id))
    )];
    lines.extend(gate.body.iter().flat_map(|body| body.lines().map(|line| text!("  {}", line))));
    lines.push(text!("  {}", answer_line(&gate.id, Some(gate))));
    lines.push(text!("  {}", page.paint.dim(takes_line(gate))));
    lines
}

pub(super) fn section(title: &str, lines: &[Text], paint: Paint) -> Text {
    let mut out = text!("\n{}\n", paint.strong(title));
    lines.iter().for_each(|line| out.push_line(text!("  {}", line).trim_end()));
    out
}
