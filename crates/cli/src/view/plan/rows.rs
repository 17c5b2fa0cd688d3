//! The upper part of a plan: a row for each node, or for each batch where there are many.

use std::collections::BTreeSet;

use console::measure_text_width;
use wonder_core::cost::dollars;
use wonder_plan::{Guess, Origin, Outline, PlannedNode};

use super::super::list::Page;
use super::super::paint::{Paint, Tone};
use super::super::table::{fit, pad, pad_left};
use super::super::words::{brief, duration};
use super::{WIDTH, shown_ms};

const GAP: &str = "  ";
const NAME_MAX: usize = 20;
const ACTIONS_MAX: usize = 16;
const BARS_MIN: usize = 10;
/// Batches that are shown of many: the first ones and the last ones.
const FIRST: usize = 12;
const LAST: usize = 4;
/// The widest bar of a batch.
const WIDEST: usize = 16;

/// One line of the table, but for its bar.
struct Row {
    batch: String,
    node: String,
    actions: String,
    time: String,
    cost: String,
    /// All attempts.
    worst: String,
    /// From and to, as shares of the whole in thousandths; none: it is not expected to run.
    span: Option<(u64, u64)>,
    critical: bool,
}

struct Widths {
    batch: usize,
    node: usize,
    actions: usize,
    time: usize,
    cost: usize,
    /// Nothing if it says no more than the cost does.
    worst: usize,
    bars: usize,
}

pub(super) fn nodes(outline: &Outline, page: Page) -> String {
    let end_ms = end_ms(outline);
    let critical: BTreeSet<&str> = outline.critical_path.nodes.iter().map(|node| &**node).collect();
    let mut sorted: Vec<&PlannedNode> = outline.nodes.iter().collect();
    sorted.sort_by_key(|node| node.batch);
    let mut rows: Vec<Row> = Vec::new();
    let mut batch = 0;
    for node in sorted {
        let is_first = std::mem::replace(&mut batch, node.batch) != node.batch;
        let number = if is_first { node.batch.to_string() } else { String::new() };
        rows.push(row(node, number, end_ms, critical.contains(&*node.node)));
    }
    let widths = Widths::of(&rows, page.width.unwrap_or(WIDTH));
    let mut out = format!("{}\n", fit(page.paint.dim(&title(&widths, end_ms)).trim_end(), page.width));
    for row in &rows {
        out.push_str(&fit(line(row, &widths, page.paint).trim_end(), page.width));
        out.push('\n');
    }
    out
}

/// Where the bars end: with the run. What a fan-in does not wait for may go on beyond.
fn end_ms(outline: &Outline) -> u64 {
    match outline.duration.expected_ms {
        0 => outline.nodes.iter().filter_map(|node| node.ends_ms).max().unwrap_or(0),
        expected => expected,
    }
}

fn row(node: &PlannedNode, batch: String, end_ms: u64, critical: bool) -> Row {
    let share = |ms: u64| (u128::from(ms) * 1_000 / u128::from(end_ms.max(1))) as u64;
    let mut actions = node.actions.to_vec();
    actions.dedup();
    Row {
        batch,
        node: shown_name(node),
        actions: brief(&actions.join(", "), ACTIONS_MAX),
        time: shown_ms(node.duration),
        cost: shown_cost(node.cost),
        worst: shown_worst(node),
        span: node.starts_ms.zip(node.ends_ms).map(|(from, to)| (share(from), share(to))),
        critical,
    }
}

/// `judge ×5`: how often it is expected to run, if it is more than once.
fn shown_name(node: &PlannedNode) -> String {
    match node.visits {
        0 | 1 => brief(&node.node, NAME_MAX),
        visits => {
            let times = format!(" ×{visits}");
            format!("{}{times}", brief(&node.node, NAME_MAX - times.chars().count().min(NAME_MAX / 2)))
        }
    }
}

fn shown_cost(cost: Guess) -> String {
    match cost.origin {
        Origin::Unknown => "?".to_owned(),
        _ if cost.amount == 0 => "-".to_owned(),
        Origin::Worst => format!("≤{}", dollars(cost.amount)),
        Origin::Learnt => format!("~{}", dollars(cost.amount)),
        _ => dollars(cost.amount),
    }
}

fn shown_worst(node: &PlannedNode) -> String {
    match node.worst_usd_micros {
        None => "?".to_owned(),
        Some(0) => "-".to_owned(),
        Some(worst) => dollars(worst),
    }
}

impl Widths {
    fn of(rows: &[Row], width: usize) -> Widths {
        let widest = |title: &str, of: fn(&Row) -> &String| {
            rows.iter().map(|row| measure_text_width(of(row))).max().unwrap_or(0).max(title.len())
        };
        let mut widths = Widths {
            batch: widest("BATCH", |row| &row.batch),
            node: widest("NODE", |row| &row.node),
            actions: widest("DOES", |row| &row.actions),
            time: widest("TIME", |row| &row.time),
            cost: widest("COST", |row| &row.cost),
            worst: widest("WORST", |row| &row.worst) + GAP.len(),
            bars: 0,
        };
        if rows.iter().all(|row| row.worst == row.cost) {
            widths.worst = 0;
        }
        let taken = widths.batch + widths.node + widths.actions + widths.time + widths.cost + widths.worst;
        let taken = taken + 5 * GAP.len();
        widths.bars = width.saturating_sub(taken);
        if widths.bars < BARS_MIN {
            widths.bars = 0;
        }
        widths
    }
}

fn title(widths: &Widths, end_ms: u64) -> String {
    let end = duration(end_ms);
    let gap = widths.bars.saturating_sub(end.len() + 1);
    let scale = if widths.bars > 0 { format!("0{}{end}  ", " ".repeat(gap)) } else { String::new() };
    format!(
        "{}  {}  {}  {scale}{}  {}{}",
        pad("BATCH", widths.batch),
        pad("NODE", widths.node),
        pad("DOES", widths.actions),
        pad_left("TIME", widths.time),
        pad_left("COST", widths.cost),
        last("WORST", widths.worst)
    )
}

fn line(row: &Row, widths: &Widths, paint: Paint) -> String {
    let bar = if widths.bars > 0 { format!("{}  ", bar(row, widths.bars, paint)) } else { String::new() };
    format!(
        "{}  {}  {}  {bar}{}  {}{}",
        paint.dim(&pad_left(&row.batch, widths.batch)),
        paint.strong(&pad(&row.node, widths.node)),
        paint.dim(&pad(&row.actions, widths.actions)),
        pad_left(&row.time, widths.time),
        pad_left(&row.cost, widths.cost),
        last(&row.worst, widths.worst)
    )
}

/// A column that may not be there.
fn last(text: &str, width: usize) -> String {
    if width > 0 { pad_left(text, width).into_owned() } else { String::new() }
}

/// What takes no time is a dot where it happens; what goes on beyond the end is cut there.
fn bar(row: &Row, width: usize, paint: Paint) -> String {
    let Some((from, to)) = row.span else { return " ".repeat(width) };
    let place = |share: u64| share as usize * width;
    let (start, end) = ((place(from) / 1_000).min(width - 1), place(to).div_ceil(1_000).min(width));
    let text = if from == to {
        "·".to_owned()
    } else if to > 1_000 {
        format!("{}›", "━".repeat(width - start - 1))
    } else {
        "━".repeat(end - start)
    };
    let gap = width - start - measure_text_width(&text);
    let tone = if row.critical { Tone::Attention } else { Tone::Active };
    format!("{}{}{}", " ".repeat(start), paint.tone(tone, &text), " ".repeat(gap))
}

/// Many nodes: how wide each batch is, and who is in it.
pub(super) fn batches(outline: &Outline, page: Page) -> String {
    let widest = outline.batches.iter().map(Vec::len).max().unwrap_or(1);
    let digits = widest.to_string().len();
    let mut out = format!("{}\n", page.paint.dim("BATCH  NODES"));
    let hidden = outline.batches.len().saturating_sub(FIRST + LAST);
    for (at, batch) in outline.batches.iter().enumerate() {
        if hidden > 1 && at == FIRST {
            out.push_str(&page.paint.dim(&format!("    …  {hidden} more batches\n")));
        }
        if hidden > 1 && (FIRST..FIRST + hidden).contains(&at) {
            continue;
        }
        let bar = "━".repeat((batch.len() * WIDEST).div_ceil(widest));
        let names: Vec<&str> = batch.iter().take(20).map(|node| &**node).collect();
        let more = if batch.len() > names.len() { ", …" } else { "" };
        let line = format!(
            "{}  {}  {}  {}{more}",
            page.paint.dim(&pad_left(&(at + 1).to_string(), 5)),
            pad_left(&batch.len().to_string(), digits),
            page.paint.tone(Tone::Active, &pad(&bar, WIDEST)),
            names.join(", ")
        );
        out.push_str(&fit(&line, page.width));
        out.push('\n');
    }
    out
}
