//! The list of runs and the list of gates.

use serde::Serialize;
use std::collections::BTreeMap;
use wonder_core::Time;
use wonder_core::event::GateKind;
use wonder_engine::timeline::GateAnswer;
use wonder_engine::{GateDetails, GateView, RunRow, Status};

use super::paint::{Paint, Tone, run_mark, run_tone, spoken};
use super::table::Table;
use super::words::{ago, brief, brief_value, clean, dollars, dollars_as_number, duration, short_id};

/// One run of `list -o json`.
#[derive(Debug, Serialize)]
pub(crate) struct RunJson<'r> {
    run: &'r str,
    workflow: &'r str,
    version: u32,
    status: Status,
    root: &'r str,
    parent: Option<&'r str>,
    started_at: Time,
    ended_at: Option<Time>,
    cost_usd: f64,
    tokens: u64,
    project: &'r str,
    driven: bool,
    labels: &'r BTreeMap<String, String>,
}

impl<'r> RunJson<'r> {
    pub(crate) fn of(row: &'r RunRow) -> RunJson<'r> {
        RunJson {
            run: &row.run,
            workflow: &row.workflow,
            version: row.version,
            status: row.status,
            root: &row.root,
            parent: row.parent.as_deref(),
            started_at: row.started_at,
            ended_at: row.ended_at,
            cost_usd: dollars_as_number(row.usd_micros),
            tokens: row.tokens,
            project: &row.project,
            driven: row.driven,
            labels: &row.labels,
        }
    }
}

/// How a list is to be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub now: Time,
    /// Of the screen; none: nothing is cut.
    pub width: Option<usize>,
    pub paint: Paint,
}

/// Runs, the newest first. Ids are whole where there is room, else their last characters, which do as well.
pub(crate) fn runs(rows: &[RunRow], gates: &[GateView], page: Page) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let whole = runs_table(rows, gates, page.now, false);
    let table = match page.width {
        Some(width) if whole.width() > width => runs_table(rows, gates, page.now, true),
        _ => whole,
    };
    table.render(page.paint, page.width)
}

fn runs_table(rows: &[RunRow], gates: &[GateView], now: Time, short: bool) -> Table {
    let mut table = Table::new(&["RUN", "WORKFLOW", "STATUS", "STARTED", "TOOK", "COST", ""]);
    for row in rows {
        let id = if short { short_id(&row.run) } else { &row.run };
        let took = row.ended_at.unwrap_or(now).since(row.started_at);
        let cost = if row.usd_micros > 0 { dollars(row.usd_micros) } else { "-".to_owned() };
        let status = format!("{} {}", run_mark(row.status), spoken(row.status));
        table.row(vec![
            (Tone::Plain, id.to_owned()),
            (Tone::Strong, row.workflow.clone()),
            (run_tone(row.status), status),
            (Tone::Dim, ago(row.started_at, now)),
            (Tone::Plain, duration(took)),
            (Tone::Dim, cost),
            (Tone::Dim, note(row, gates, short)),
        ]);
    }
    table
}

fn note(row: &RunRow, gates: &[GateView], short: bool) -> String {
    let open = gates.iter().filter(|gate| gate.run == row.run || gate.root == row.run).count();
    let id = short_id(&row.run);
    match row.status {
        _ if open == 1 => "waits for 1 gate".to_owned(),
        _ if open > 1 => format!("waits for {open} gates"),
        Status::Waiting => format!("waits: wonder why {id}"),
        Status::Paused => format!("wonder resume {id}"),
        Status::Quarantined => "damaged, set aside".to_owned(),
        status if !status.is_end() && !row.driven && short => "interrupted: resume it".to_owned(),
        status if !status.is_end() && !row.driven => format!("interrupted: wonder resume {id}"),
        _ => String::new(),
    }
}

/// Open gates, the oldest first.
pub(crate) fn gates(gates: &[GateView], page: Page) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let whole = gates_table(gates, page.now, false);
    let table = match page.width {
        Some(width) if whole.width() > width => gates_table(gates, page.now, true),
        _ => whole,
    };
    table.render(page.paint, page.width)
}

fn gates_table(gates: &[GateView], now: Time, short: bool) -> Table {
    let mut table = Table::new(&["GATE", "WORKFLOW", "NODE", "KIND", "OPENED", "TITLE"]);
    for gate in gates {
        let asked = match gate.assignees.as_slice() {
            [] => String::new(),
            people => format!(" (for {})", people.join(", ")),
        };
        let title = format!("{}{asked}", brief(&gate.title, 120));
        table.row(vec![
            (Tone::Plain, if short { short_id(&gate.id) } else { &gate.id }.to_owned()),
            (Tone::Plain, gate.workflow.clone()),
            (Tone::Plain, gate.node.clone().unwrap_or_else(|| "-".to_owned())),
            (Tone::Dim, kind(gate.kind).to_owned()),
            (Tone::Dim, ago(gate.opened_at, now)),
            (Tone::Strong, title),
        ]);
    }
    table
}

fn kind(kind: GateKind) -> &'static str {
    match kind {
        GateKind::Node => "node",
        GateKind::Review => "review",
        GateKind::Timeout => "timeout",
        GateKind::Budget => "budget",
        GateKind::Outcome => "outcome",
    }
}

/// One gate with its history, one line for each thing that happened to it.
pub(crate) fn gate(details: &GateDetails, page: Page) -> String {
    let (paint, gate) = (page.paint, &details.gate);
    let at = details.at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
    let status = if details.open { "open" } else { "closed" };
    let mut lines = vec![
        format!("{} {}", paint.strong(&clean(&gate.title)), paint.dim(&format!("({}{at})", details.id))),
        format!("{} gate of {}, {status}", kind(gate.kind), details.workflow),
    ];
    lines.extend(gate.body.iter().flat_map(|body| body.lines().map(clean)));
    let mut history: Vec<(Time, String)> = vec![(gate.opened_at, "opened".to_owned())];
    let answered =
        |answer: &GateAnswer| format!("{} answered {}", answer.by, brief_value(&answer.answer, 200));
    history.extend(gate.answers.iter().map(|answer| (answer.at, answered(answer))));
    history.extend(gate.reminded_at.iter().map(|at| (*at, "reminded".to_owned())));
    history.extend(gate.passed_on.iter().map(|(at, to)| (*at, format!("passed on to {}", to.join(", ")))));
    if let Some(end) = gate.closed.as_ref().filter(|end| !end.answered) {
        history.push((end.at, format!("closed by {} without an answer", end.by)));
    }
    history.sort_by_key(|(at, _)| *at);
    lines.extend(history.iter().map(|(at, what)| format!("  {} {what}", paint.dim(&at.to_string()))));
    if details.open {
        let asked = if gate.assignees.is_empty() { "anybody".to_owned() } else { gate.assignees.join(", ") };
        let until = gate.deadline.map_or(String::new(), |at| format!(" until {at}"));
        lines.push(format!("  waits for {asked}{until}: wonder answer {}", details.id));
    }
    lines.join("\n") + "\n"
}
