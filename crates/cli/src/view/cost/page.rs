//! The bill of one run for people: its sum, its time, its budget, then tables by node, by model, by run, and by
//! attempt if that is asked for.

use wonder_core::cost::dollars;
use wonder_core::{Time, TokenStatus};
use wonder_engine::RunView;
use wonder_engine::cost::{AttemptBill, Bill, BudgetBill, RunBill, Sum, Whose};

use super::super::list::Page;
use super::super::paint::{Paint, Tone, run_mark, run_tone, spoken, token_tone};
use super::super::show::section;
use super::super::table::Table;
use super::super::tree;
use super::super::words::{count, duration, offset, short_id, wrapped};
use super::budget;
use super::{Cell, grouped, rendered, some, spend_cells};
use crate::text::{Text, text};

/// Where nothing tells how wide a page is.
const WIDTH: usize = 120;
/// Child runs that are listed.
const RUNS_MAX: usize = 20;

/// `ask`: for which page, and whether every attempt is to be listed.
pub(crate) fn page(view: &RunView, bill: &Bill, budgets: &[BudgetBill], ask: (Page, bool)) -> Text {
    let (page, attempts) = ask;
    let (width, paint) = (page.width.unwrap_or(WIDTH), page.paint);
    let mut out = head(view, bill, budgets, page);
    let mut sections = vec![
        ("budgets of nodes", node_budgets(view, budgets)),
        ("nodes", rendered(nodes(bill), paint, width)),
        ("models", if bill.has_models() { rendered(models(bill), paint, width) } else { Vec::new() }),
        ("runs", if bill.runs.len() > 1 { runs(bill, paint, width) } else { Vec::new() }),
    ];
    if attempts && !bill.attempts.is_empty() {
        sections.push(("attempts", rendered(attempt_table(bill, view.row.started_at), paint, width)));
    }
    for (title, lines) in sections.iter().filter(|(_, lines)| !lines.is_empty()) {
        out.push(section(title, lines, paint));
    }
    out
}

fn head(view: &RunView, bill: &Bill, budgets: &[BudgetBill], page: Page) -> Text {
    let (row, paint, width) = (&view.row, page.paint, page.width.unwrap_or(WIDTH));
    let broken = |line: String| Text::joined(wrapped(&line, width.saturating_sub(10), 12), "\n");
    let status = paint.tone(run_tone(row.status), format!("{} {}", run_mark(row.status), spoken(row.status)));
    let mut lines = vec![
        ("run", Text::from(&row.run)),
        ("workflow", text!("{}, version {}", row.workflow, row.version)),
        ("status", status),
        ("cost", cost(&bill.total, paint)),
    ];
    let spend = &bill.total.spend;
    if let Some(out) = spend.usd_micros.checked_sub(bill.settled.usd_micros).filter(|out| *out > 0) {
        lines.push((
            "",
            broken(format!("{} of it in child runs that the run has not heard the end of", dollars(out))),
        ));
    }
    if bill.copied.usd_micros > 0 {
        let copied = dollars(bill.copied.usd_micros);
        lines.push((
            "",
            broken(format!("{copied} of it copied from the run this was forked from, and counted there")),
        ));
    }
    let (wall, tasks) = (duration(bill.wall_ms), duration(spend.duration_ms));
    let at_once = bill.parallelism();
    lines.push((
        "time",
        broken(format!("{wall} on the clock · {tasks} of task time: {at_once:.1} at once on average")),
    ));
    for bill in budgets {
        let title = match bill.whose {
            Whose::Run => "budget",
            Whose::Parent => "allowed",
            Whose::Node(_) => continue,
        };
        let told = budget::lines(bill, row.started_at);
        let titles = std::iter::once(title).chain(std::iter::repeat(""));
        lines.extend(titles.zip(told.into_iter().map(broken)));
    }
    Text::of_lines(lines.iter().map(|(name, text)| text!("{} {}", paint.dim(format!("{name:<9}")), text)))
}

/// `$0.0032 · 600 tokens in (12 cached), 40 out · 11 calls`
fn cost(total: &Sum, paint: Paint) -> Text {
    let spend = &total.spend;
    let mut parts = vec![match (spend.usd_micros, spend.unpriced_calls) {
        (0, 1..) => paint.strong("not known: no prices are written"),
        (usd_micros, 0) => paint.strong(dollars(usd_micros)),
        (usd_micros, unpriced) => {
            let calls = count(unpriced, "call");
            text!("{} and what {} without prices cost", paint.strong(dollars(usd_micros)), calls)
        }
    }];
    if spend.tokens() > 0 {
        let (input, output) = (grouped(spend.input_tokens), grouped(spend.output_tokens));
        let cached = some(spend.cached_tokens);
        let cached = if cached.is_empty() { cached } else { format!(" ({cached} cached)") };
        parts.push(text!("{} tokens in{}, {} out", input, cached, output));
    }
    parts.push(Text::from(match spend.calls {
        0 => count(total.attempts, "attempt"),
        1 => "1 call".to_owned(),
        calls => format!("{} calls", grouped(calls)),
    }));
    Text::joined(parts, " · ")
}

fn node_budgets(view: &RunView, budgets: &[BudgetBill]) -> Vec<Text> {
    let mut lines = Vec::new();
    for bill in budgets {
        let Whose::Node(node) = &bill.whose else { continue };
        let told = budget::lines(bill, view.row.started_at);
        lines.extend(told.iter().map(|line| text!("{}: {}", node, line)));
    }
    lines
}

fn nodes(bill: &Bill) -> Table {
    let head = ["NODE", "VISITS", "ATTEMPTS", "TRIES", "IN", "OUT", "CACHED", "COST", "TIME"];
    let mut table = Table::new(&head).with_numbers(1..head.len());
    let row = |name: &str, sum: &Sum, tone: Tone| -> Vec<Cell> {
        let mut cells = vec![(tone, name.to_owned())];
        cells.push((tone, some(sum.visits)));
        cells.extend(counts(sum, tone));
        cells.extend(spend_cells(sum, tone));
        cells
    };
    bill.nodes.iter().for_each(|(name, sum)| table.row(row(name, sum, Tone::Plain)));
    if !bill.nodes.is_empty() {
        table.row(row("total", &bill.total, Tone::Dim));
    }
    table
}

/// `ATTEMPTS TRIES`: tries are those beyond the first of each action.
fn counts(sum: &Sum, tone: Tone) -> [Cell; 2] {
    let tries = if sum.tries == 0 { String::new() } else { format!("+{}", grouped(sum.tries)) };
    [(tone, some(sum.attempts)), (tone, tries)]
}

fn models(bill: &Bill) -> Table {
    let head = ["MODEL", "ATTEMPTS", "TRIES", "IN", "OUT", "CACHED", "COST", "TIME"];
    let mut table = Table::new(&head).with_numbers(1..head.len());
    for (model, sum) in &bill.models {
        let mut cells = vec![(Tone::Plain, model.clone().unwrap_or_else(|| "no model".to_owned()))];
        cells.extend(counts(sum, Tone::Plain));
        cells.extend(spend_cells(sum, Tone::Plain));
        table.row(cells);
    }
    table
}

fn runs(bill: &Bill, paint: Paint, width: usize) -> Vec<Text> {
    let head = ["RUN", "WORKFLOW", "AT", "ATTEMPTS", "TRIES", "IN", "OUT", "CACHED", "COST", "TIME"];
    let mut table = Table::new(&head).with_numbers(3..head.len());
    let shown = &bill.runs[..bill.runs.len().min(RUNS_MAX)];
    for RunBill { run, called_at, workflow, sum } in shown {
        let mut cells = vec![
            (Tone::Plain, short_id(run).to_owned()),
            (Tone::Plain, workflow.clone()),
            (Tone::Dim, called_at.clone()),
        ];
        cells.extend(counts(sum, Tone::Plain));
        cells.extend(spend_cells(sum, Tone::Plain));
        table.row(cells);
    }
    let mut lines = rendered(table, paint, width);
    if bill.runs.len() > RUNS_MAX {
        lines.push(paint.dim(format!("… and {} more: -o json has all", bill.runs.len() - RUNS_MAX)));
    }
    lines
}

fn attempt_table(bill: &Bill, began: Time) -> Table {
    let head =
        ["NODE", "ATTEMPT", "BEGAN", "CAME TO", "MODEL", "TRIES", "IN", "OUT", "CACHED", "COST", "TIME"];
    let mut table = Table::new(&head).with_numbers([1, 2].into_iter().chain(5..head.len()));
    for attempt in &bill.attempts {
        let model = attempt.sum.spend.model_used.as_deref().unwrap_or_default();
        let [_, tries] = counts(&attempt.sum, Tone::Plain);
        let mut cells = vec![
            (Tone::Plain, attempt.label.clone()),
            (Tone::Plain, attempt.number.to_string()),
            (Tone::Dim, offset(attempt.began_at.since(began))),
            came_to(attempt),
            (Tone::Plain, model.to_owned()),
            tries,
        ];
        cells.extend(spend_cells(&attempt.sum, Tone::Plain));
        table.row(cells);
    }
    table
}

fn came_to(attempt: &AttemptBill) -> Cell {
    let text = match attempt.outcome {
        None if attempt.child.is_some() => "in a child run".to_owned(),
        None => "running".to_owned(),
        Some(TokenStatus::WaitingForSiblings) => "completed".to_owned(),
        Some(status) => tree::spoken(status).to_owned(),
    };
    let tone = token_tone(attempt.outcome.unwrap_or(TokenStatus::Dispatched));
    (tone, text)
}
