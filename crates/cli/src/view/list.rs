//! The list of runs and the list of gates.

use serde::Serialize;
use std::collections::BTreeMap;
use wonder_core::event::GateKind;
use wonder_core::{Time, Value};
use wonder_engine::timeline::{GateAnswer, GateHistory};
use wonder_engine::{GateDetails, GateView, RunRow, Status};

use super::paint::{Paint, Tone, run_mark, run_tone, spoken};
use super::result::takes_line;
use super::table::Table;
use super::words::{
    ago, brief, brief_value, dollars, dollars_as_number, duration, shell_word, short_id, until,
};
use crate::args::INTERRUPTED;
use crate::text::{Text, text};

/// Characters of an item that a row shows.
const ITEM_CHARS_MAX: usize = 32;

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
pub(crate) fn runs(rows: &[RunRow], gates: &[GateView], page: Page) -> Text {
    if rows.is_empty() {
        return Text::EMPTY;
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
        let took = row.took_ms(now);
        let cost = if row.usd_micros > 0 { dollars(row.usd_micros) } else { "-".to_owned() };
        let (tone, status) = match is_interrupted(row) {
            true => (Tone::Attention, format!("! {INTERRUPTED}")),
            false => (run_tone(row.status), format!("{} {}", run_mark(row.status), spoken(row.status))),
        };
        table.row(vec![
            (Tone::Plain, id.to_owned()),
            (Tone::Strong, row.workflow.clone()),
            (tone, status),
            (Tone::Dim, ago(row.started_at, now)),
            (Tone::Plain, duration(took)),
            (Tone::Dim, cost),
            (Tone::Dim, note(row, gates)),
        ]);
    }
    table
}

/// It is not over, waits for nobody, and no process carries it on.
pub(crate) fn is_interrupted(row: &RunRow) -> bool {
    !row.driven && matches!(row.status, Status::Queued | Status::Running | Status::Cancelling)
}

fn note(row: &RunRow, gates: &[GateView]) -> String {
    let open = gates.iter().filter(|gate| gate.run == row.run || gate.root == row.run).count();
    let id = shell_word(short_id(&row.run));
    match row.status {
        _ if open == 1 => "waits for 1 gate".to_owned(),
        _ if open > 1 => format!("waits for {open} gates"),
        Status::Waiting => format!("waits: wonder why {id}"),
        Status::Paused => format!("wonder resume {id}"),
        Status::Quarantined => "damaged, set aside".to_owned(),
        _ if is_interrupted(row) => format!("wonder resume {id}"),
        _ => String::new(),
    }
}

/// Open gates, the oldest first.
pub(crate) fn gates(gates: &[GateView], page: Page) -> Text {
    if gates.is_empty() {
        return Text::EMPTY;
    }
    // Where there is no room beside the rest, titles have lines of their own.
    let whole = gates_table(gates, page.now, false);
    let short = page.width.is_some_and(|width| whole.width() > width);
    let table = if short { gates_table(gates, page.now, true) } else { whole };
    let text = table.render(page.paint, page.width);
    let mut lines = text.lines();
    let mut out = text!("{}\n", lines.next().unwrap_or_default());
    for (line, gate) in lines.zip(gates) {
        out.push_line(line);
        if short {
            out.push_line(text!("  {}", page.paint.strong(asked(gate))).fit(page.width));
        }
        out.push_line(page.paint.dim(text!("  {}", takes_line(gate)).fit(page.width)));
    }
    out
}

/// Its title, and who is asked.
fn asked(gate: &GateView) -> String {
    let people = match gate.assignees.as_slice() {
        [] => String::new(),
        people => format!(" (for {})", people.join(", ")),
    };
    format!("{}{people}", brief(&gate.title, 120))
}

fn gates_table(gates: &[GateView], now: Time, short: bool) -> Table {
    let mut table = Table::new(&["GATE", "WORKFLOW", "AT", "KIND", "OPENED", "DEADLINE", "TITLE"]);
    for gate in gates {
        table.row(vec![
            (Tone::Plain, if short { short_id(&gate.id) } else { &gate.id }.to_owned()),
            (Tone::Plain, gate.workflow.clone()),
            (Tone::Plain, place(gate).unwrap_or_else(|| "-".to_owned())),
            (Tone::Dim, kind(gate.kind).to_owned()),
            (Tone::Dim, ago(gate.opened_at, now)),
            (Tone::Dim, gate.deadline.map_or("-".to_owned(), |at| until(at, now))),
            (Tone::Strong, if short { String::new() } else { asked(gate) }),
        ]);
    }
    table.without_empty()
}

/// The node with its branch, and what the branch works on.
pub(crate) fn place(gate: &GateView) -> Option<String> {
    let visit = gate.visit.as_ref().or(gate.node.as_ref())?;
    let item = match &gate.item {
        Value::Null => String::new(),
        item => format!(" {}", brief_value(item, ITEM_CHARS_MAX)),
    };
    Some(format!("{visit}{item}"))
}

fn kind(kind: GateKind) -> &'static str {
    match kind {
        GateKind::Node => "node",
        GateKind::Review => "review",
        GateKind::Timeout => "timeout",
        GateKind::Budget => "budget",
        GateKind::Outcome => "outcome",
        GateKind::Input => "input",
    }
}

/// One gate with its history, one line for each thing that happened to it.
pub(crate) fn gate(details: &GateDetails, page: Page) -> Text {
    let (paint, gate) = (page.paint, &details.gate);
    let at = details.at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
    let status = if details.open { "open" } else { "closed" };
    let mut lines = vec![
        text!("{} {}", paint.strong(&gate.title), paint.dim(format!("({}{at})", details.id))),
        text!("{} gate of {}, {}", kind(gate.kind), details.workflow, status),
    ];
    lines.extend(gate.body.iter().flat_map(|body| body.lines().map(|line| text!("  {}", line))));
    lines.extend(history(gate).iter().map(|(at, what)| text!("  {} {}", paint.dim(at.to_string()), what)));
    if details.open {
        let asked = if gate.assignees.is_empty() { "anybody".to_owned() } else { gate.assignees.join(", ") };
        let until = gate.deadline.map_or(String::new(), |at| format!(" until {at}"));
        lines.push(text!("  waits for {}{}: wonder answer {}", asked, until, shell_word(&details.id)));
    }
    Text::of_lines(lines)
}

/// What happened to a gate, one line each, in order.
pub(crate) fn history(gate: &GateHistory) -> Vec<(Time, String)> {
    let asked =
        if gate.asked.is_empty() { String::new() } else { format!(", for {}", gate.asked.join(", ")) };
    let mut history: Vec<(Time, String)> = vec![(gate.opened_at, format!("opened{asked}"))];
    let answered =
        |answer: &GateAnswer| format!("{} answered {}", answer.by, brief_value(&answer.answer, 200));
    history.extend(gate.answers.iter().map(|answer| (answer.at, answered(answer))));
    history.extend(gate.reminded_at.iter().map(|at| (*at, "reminded".to_owned())));
    history.extend(gate.passed_on.iter().map(|(at, to)| (*at, format!("passed on to {}", to.join(", ")))));
    if let Some(end) = gate.closed.as_ref().filter(|end| !end.answered) {
        history.push((end.at, format!("closed by {} without an answer", end.by)));
    }
    history.sort_by_key(|(at, _)| *at);
    history
}
