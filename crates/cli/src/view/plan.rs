//! A plan on one page: batches with bars that show when, the longest way, what it costs and takes, what it
//! waits for, what is missing. Eighty columns do.

mod rows;
mod says;

use wonder_core::def::{Kind, Name};
use wonder_plan::{Origin, Outline, Plan};

use super::list::Page;
use super::paint::Tone;
use super::words::{brief, count, duration};
use crate::text::{Text, text};

/// Where nothing tells how wide a page is.
const WIDTH: usize = 80;
/// Of the names before the sections.
const LABEL: usize = 10;
/// More nodes than this are shown by batch.
const NODES_MAX: usize = 40;

pub(crate) fn page(plan: &Plan, page: Page) -> Text {
    let page = Page { width: Some(page.width.unwrap_or(WIDTH).clamp(40, 160)), ..page };
    let outline = &plan.outline;
    let mut out = text!("{}\n\n", head(outline, page).fit(page.width));
    out.push(match outline.nodes.len() {
        0..=NODES_MAX => rows::nodes(outline, page),
        _ => rows::batches(outline, page),
    });
    out.push_line("");
    for (label, tone, lines) in says::sections(plan) {
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            out.push(paragraph(label, (tone, line), page));
        }
    }
    if let Some(legend) = legend(plan) {
        out.push_line("");
        for line in wrap(&legend, page.width.unwrap_or(WIDTH)) {
            out.push_line(page.paint.dim(line));
        }
    }
    out
}

/// `release: a graph of 6 nodes in 5 batches`
fn head(outline: &Outline, page: Page) -> Text {
    let kind = match outline.kind {
        Kind::Dag => "dag",
        Kind::Graph => "graph",
    };
    let nodes = count(outline.nodes.len() as u64, "node");
    let batches = count(outline.batches.len() as u64, "batch");
    let widest = outline.batches.iter().map(Vec::len).max().unwrap_or(0);
    let name = page.paint.strong(brief(&outline.workflow, 60));
    text!("{}: a {} of {} in {}, at most {} wide", name, kind, nodes, batches, widest)
}

/// A label and a text that goes on beside it.
fn paragraph(label: &str, (tone, text): (Tone, &str), page: Page) -> Text {
    let width = page.width.unwrap_or(WIDTH).saturating_sub(LABEL + 1).max(20);
    let mut out = Text::EMPTY;
    for (at, line) in wrap(text, width).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        let label = page.paint.dim(format!("{label:<LABEL$}"));
        out.push_line(text!("{} {}", label, page.paint.tone(tone, line)).trim_end());
    }
    out
}

/// Lines of whole words, as far as words fit; what goes on is set in a little.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word = brief(word, width.saturating_sub(2));
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            None => lines.push(word),
            Some(_) => lines.push(format!("  {word}")),
        }
    }
    lines
}

/// What the marks mean, of those that are there.
fn legend(plan: &Plan) -> Option<String> {
    let nodes = || std::iter::once(&plan.outline).flat_map(|outline| &outline.nodes);
    let any =
        |origin: Origin| nodes().any(|node| node.duration.origin == origin || node.cost.origin == origin);
    let mut marks = Vec::new();
    if any(Origin::Unknown) {
        marks.push("? not known, taken as 1s".to_owned());
    }
    if any(Origin::Learnt) {
        marks.push("~ from past runs".to_owned());
    }
    if any(Origin::Worst) {
        let kib = plan.input_bytes_assumed / 1_024;
        marks.push(format!("≤ what an attempt reserves, with {kib} KiB of input to a call"));
    }
    let once = |name: &Name| nodes().any(|node| node.node == *name && node.visits == 1);
    let mut by_data = plan.outline.fan_outs.iter().filter(|fan_out| fan_out.branches.each_of.is_some());
    if by_data.any(|fan_out| fan_out.branches.exact.is_none() && fan_out.to.iter().any(once)) {
        marks.push("one branch is expected where data decides".to_owned());
    }
    (!marks.is_empty()).then(|| marks.join(" · "))
}

/// `1.2s?`, `~3.4s`, `waits`.
fn shown_ms(guess: wonder_plan::Guess) -> String {
    let time = duration(guess.amount);
    match guess.origin {
        Origin::Waits => "waits".to_owned(),
        Origin::Unknown => format!("{time}?"),
        Origin::Learnt => format!("~{time}"),
        _ if guess.amount == 0 => "-".to_owned(),
        _ => time,
    }
}
