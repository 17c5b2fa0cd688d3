//! One run on one page: how it stands, the tree of its visits with bars that show when, its gates, what
//! came out. And the same for programs, with everything the engine knows.

use console::measure_text_width;
use serde::Serialize;
use wonder_core::{Time, TokenStatus};
use wonder_engine::timeline::{Timeline, Visit};
use wonder_engine::{GateView, RunRow, RunView};

use super::family::{Family, visit_label};
use super::list::Page;
use super::paint::{Paint, Tone, run_mark, run_tone, spoken};
use super::result::{Outcome, answer_line, failure, numbers};
use super::row::{Columns, line};
use super::tree::{Row, rows};
use super::words::{ago, brief, clean, dollars, dollars_as_number, duration};

/// Where nothing tells how wide a page is.
const WIDTH: usize = 100;

pub(crate) fn page(view: &RunView, family: &Family, gates: &[GateView], page: Page) -> String {
    let width = page.width.unwrap_or(WIDTH);
    let mut out = head(&view.row, view, page);
    let all = rows(family, page.now);
    if !all.is_empty() {
        out.push_str(&tree(&all, family.root(), Page { width: Some(width), ..page }));
    }
    let mutations = &family.root().mutations;
    if !mutations.is_empty() {
        out.push_str(&section("changes to how it goes on", mutations, page.paint));
    }
    if !gates.is_empty() {
        let lines: Vec<String> = gates.iter().flat_map(|gate| gate_lines(gate, page)).collect();
        out.push_str(&section("open gates", &lines, page.paint));
    }
    if view.error.is_some() {
        let lines: Vec<String> = failure(view).iter().map(|line| line[2..].to_owned()).collect();
        out.push_str(&section("error", &lines, page.paint));
    }
    if let Some(output) = &view.output {
        let text = serde_json::to_string_pretty(output).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        out.push_str(&section("output", &lines, page.paint));
    }
    out
}

fn head(row: &RunRow, view: &RunView, page: Page) -> String {
    let paint = page.paint;
    let mut lines: Vec<(&str, String)> =
        vec![("run", row.run.clone()), ("workflow", format!("{}, version {}", row.workflow, row.version))];
    if let Some(parent) = &row.parent {
        lines.push(("called by", parent.clone()));
    }
    let mark = paint.tone(run_tone(row.status), &format!("{} {}", run_mark(row.status), spoken(row.status)));
    let interrupted = !row.status.is_end() && !row.driven && !view.quiet;
    let note = if interrupted {
        format!(" · nobody carries it on: wonder resume {}", row.run)
    } else {
        String::new()
    };
    lines.push(("status", format!("{mark}{note}")));
    lines.push(("started", format!("{} ({})", row.started_at, ago(row.started_at, page.now))));
    let took = format!("{} · {}", duration(view.duration_ms), numbers(view).join(" · "));
    lines.push(("took", took));
    if let Some(budget) = view.budget_usd_micros {
        lines.push(("budget", format!("{} of {} spent", dollars(row.usd_micros), dollars(budget))));
    }
    if !row.labels.is_empty() {
        let labels: Vec<String> = row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        lines.push(("labels", labels.join(" ")));
    }
    if view.input.as_map().is_none_or(|map| !map.is_empty()) {
        lines.push(("input", brief(&view.input.to_string(), 200)));
    }
    lines.iter().map(|(name, text)| format!("{} {text}\n", paint.dim(&format!("{name:<9}")))).collect()
}

fn tree(all: &[Row], root: &Timeline, page: Page) -> String {
    let (width, paint) = (page.width.unwrap_or(WIDTH), page.paint);
    let span = (root.started_at, root.ended_at.unwrap_or(page.now).max(root.last_at));
    let columns = Columns::of(all, width - 2, page.now, paint).with_bars();
    let mut lines: Vec<String> = all.iter().map(|row| line(row, &columns, Some(span))).collect();
    if columns.bars > 0 {
        lines.insert(0, scale(&columns, span));
    }
    section("nodes", &lines, paint)
}

/// The ends of the bars: `0s` and how long it took.
fn scale(columns: &Columns, (from, to): (Time, Time)) -> String {
    let end = duration(to.since(from));
    let gap = columns.bars.saturating_sub(measure_text_width(&end) + 1);
    let text = format!("0{}{end}", " ".repeat(gap));
    columns.paint.dim(&format!("{}{text}", " ".repeat(columns.bars_at())))
}

fn gate_lines(gate: &GateView, page: Page) -> Vec<String> {
    let node = gate.node.as_ref().map_or(String::new(), |node| format!(" at {node}"));
    let when = ago(gate.opened_at, page.now);
    let mut lines = vec![format!(
        "{} {}",
        page.paint.tone(Tone::Attention, &clean(&gate.title)),
        page.paint.dim(&format!("({}{node}, opened {when})", gate.id))
    )];
    lines.extend(gate.body.iter().flat_map(|body| body.lines().map(|line| format!("  {}", clean(line)))));
    lines.push(format!("  {}", answer_line(&gate.id, Some(gate))));
    lines
}

fn section(title: &str, lines: &[String], paint: Paint) -> String {
    let mut out = format!("\n{}\n", paint.strong(title));
    for line in lines {
        out.push_str(format!("  {line}").trim_end());
        out.push('\n');
    }
    out
}

/// `show -o json`: what `run -o json` says, and the rest.
#[derive(Debug, Serialize)]
pub(crate) struct ShowJson<'v> {
    #[serde(flatten)]
    outcome: Outcome<'v>,
    root: &'v str,
    parent: Option<&'v str>,
    started_at: Time,
    ended_at: Option<Time>,
    driven: bool,
    quiet: bool,
    labels: &'v std::collections::BTreeMap<String, String>,
    seq: u64,
    input: &'v wonder_core::Value,
    state: &'v wonder_core::Value,
    metrics: &'v wonder_core::state::Metrics,
    budget_usd: Option<f64>,
    children: &'v [String],
    gates: &'v [GateView],
    nodes: Vec<NodeJson>,
}

/// One visit of one node.
#[derive(Debug, Serialize)]
struct NodeJson {
    token: u64,
    node: String,
    /// With its branch: `judge[2]`.
    label: String,
    parent: Option<u64>,
    branch: Option<u32>,
    status: TokenStatus,
    attempts: u32,
    tries: u32,
    started_at: Option<Time>,
    ended_at: Option<Time>,
    cost_usd: f64,
    tokens: u64,
    child: Option<String>,
    failure: Option<String>,
}

impl<'v> ShowJson<'v> {
    pub(crate) fn of(view: &'v RunView, family: &Family, gates: &'v [GateView]) -> ShowJson<'v> {
        let timeline = family.root();
        ShowJson {
            outcome: Outcome::of(view),
            root: &view.row.root,
            parent: view.row.parent.as_deref(),
            started_at: view.row.started_at,
            ended_at: view.row.ended_at,
            driven: view.row.driven,
            quiet: view.quiet,
            labels: &view.row.labels,
            seq: view.seq,
            input: &view.input,
            state: &view.state,
            metrics: &view.metrics,
            budget_usd: view.budget_usd_micros.map(dollars_as_number),
            children: &view.children,
            gates,
            nodes: timeline.visits.values().map(|visit| node(timeline, visit)).collect(),
        }
    }
}

fn node(timeline: &Timeline, visit: &Visit) -> NodeJson {
    NodeJson {
        token: visit.token.0,
        node: visit.node.to_string(),
        label: visit_label(timeline, visit),
        parent: visit.parent.map(|token| token.0),
        branch: visit.branch.map(|at| at.branch),
        status: visit.status,
        attempts: visit.attempts,
        tries: visit.tries,
        started_at: visit.started_at,
        ended_at: visit.ended_at,
        cost_usd: dollars_as_number(visit.spend.usd_micros),
        tokens: visit.spend.tokens(),
        child: visit.child.as_ref().map(ToString::to_string),
        failure: visit.failure.clone(),
    }
}
