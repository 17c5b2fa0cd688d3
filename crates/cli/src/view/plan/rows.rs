//! The upper part of a plan: a row for each node, or for each batch where there are many.

use std::collections::BTreeSet;

use wonder_core::cost::dollars;
use wonder_plan::{Guess, Origin, Outline, PlannedNode};

use super::super::list::Page;
use super::super::paint::{Paint, Tone};
use super::super::words::{brief, duration};
use super::{WIDTH, shown_ms};
use crate::text::{Text, text};

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
    batch: Text,
    node: Text,
    actions: Text,
    time: Text,
    cost: Text,
    /// All attempts.
    worst: Text,
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

pub(super) fn nodes(outline: &Outline, page: Page) -> Text {
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
    let mut out = text!("{}\n", page.paint.dim(title(&widths, end_ms)).trim_end().fit(page.width));
    rows.iter().for_each(|row| out.push_line(line(row, &widths, page.paint).trim_end().fit(page.width)));
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
        batch: batch.into(),
        node: shown_name(node).into(),
        actions: brief(&actions.join(", "), ACTIONS_MAX).into(),
        time: shown_ms(node.duration).into(),
        cost: shown_cost(node.cost).into(),
        worst: shown_worst(node).into(),
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
        let widest = |title: &str, of: fn(&Row) -> &Text| {
            rows.iter().map(|row| of(row).width()).max().unwrap_or(0).max(title.len())
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

fn title(widths: &Widths, end_ms: u64) -> Text {
    let end = duration(end_ms);
    let gap = widths.bars.saturating_sub(end.len() + 1);
    let scale = if widths.bars > 0 { format!("0{}{end}  ", " ".repeat(gap)) } else { String::new() };
    let title = |own: &'static str| Text::from(own);
    text!(
        "{}  {}  {}  {}{}  {}{}",
        title("BATCH").pad(widths.batch),
        title("NODE").pad(widths.node),
        title("DOES").pad(widths.actions),
        scale,
        title("TIME").pad_left(widths.time),
        title("COST").pad_left(widths.cost),
        last(&title("WORST"), widths.worst)
    )
}

fn line(row: &Row, widths: &Widths, paint: Paint) -> Text {
    let bar = if widths.bars > 0 { text!("{}  ", bar(row, widths.bars, paint)) } else { Text::EMPTY };
    text!(
        "{}  {}  {}  {}{}  {}{}",
        paint.dim(row.batch.pad_left(widths.batch)),
        paint.strong(row.node.pad(widths.node)),
        paint.dim(row.actions.pad(widths.actions)),
        bar,
        row.time.pad_left(widths.time),
        row.cost.pad_left(widths.cost),
        last(&row.worst, widths.worst)
    )
}

/// A column that may not be there.
fn last(text: &Text, width: usize) -> Text {
    if width > 0 { text.pad_left(width) } else { Text::EMPTY }
}

/// What takes no time is a dot where it happens; what goes on beyond the end is cut there.
fn bar(row: &Row, width: usize, paint: Paint) -> Text {
    let Some((from, to)) = row.span else { return Text::blanks(width) };
    let place = |share: u64| share as usize * width;
    let (start, end) = ((place(from) / 1_000).min(width - 1), place(to).div_ceil(1_000).min(width));
    let text = Text::from(if from == to {
        "·".to_owned()
    } else if to > 1_000 {
        format!("{}›", "━".repeat(width - start - 1))
    } else {
        "━".repeat(end - start)
    });
    let gap = width - start - text.width();
    let tone = if row.critical { Tone::Attention } else { Tone::Active };
    text!("{}{}{}", Text::blanks(start), paint.tone(tone, text), Text::blanks(gap))
}

/// Many nodes: how wide each batch is, and who is in it.
pub(super) fn batches(outline: &Outline, page: Page) -> Text {
    let widest = outline.batches.iter().map(Vec::len).max().unwrap_or(1);
    let digits = widest.to_string().len();
    let mut out = text!("{}\n", page.paint.dim("BATCH  NODES"));
    let hidden = outline.batches.len().saturating_sub(FIRST + LAST);
    for (at, batch) in outline.batches.iter().enumerate() {
        if hidden > 1 && at == FIRST {
            out.push_line(page.paint.dim(format!("    …  {hidden} more batches")));
        }
        if hidden > 1 && (FIRST..FIRST + hidden).contains(&at) {
            continue;
        }
        let bar = "━".repeat((batch.len() * WIDEST).div_ceil(widest));
        let names: Vec<&str> = batch.iter().take(20).map(|node| &**node).collect();
        let more = if batch.len() > names.len() { ", …" } else { "" };
        let line = text!(
            "{}  {}  {}  {}{}",
            page.paint.dim(format!("{:>5}", at + 1)),
            format!("{:>digits$}", batch.len()),
            page.paint.tone(Tone::Active, Text::from(bar).pad(WIDEST)),
            names.join(", "),
            more
        );
        out.push_line(line.fit(page.width));
    }
    out
}
