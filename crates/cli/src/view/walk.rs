//! The walks of tokens that did not go straight: tried again, or asked a human. One line for each move, with
//! the time since the run began. Straight ones are in the tree; all of them are in `show -o json`.

use std::collections::BTreeMap;

use wonder_core::TokenStatus;
use wonder_core::event::GateId;
use wonder_engine::timeline::{Axis, Move, Visit};

use super::list::Page;
use super::paint::token_tone;
use super::words::{brief, count, duration, offset, short_id};
use crate::text::{Text, text};
use wonder_engine::run_tree::RunTree;

/// Walks that are shown: of one node, and of all.
const OF_A_NODE_MAX: usize = 3;
const WALKS_MAX: usize = 20;
/// Moves of one walk: so many of the first and of the last.
const FIRST_MAX: usize = 6;
const LAST_MAX: usize = 12;
const TIME_WIDTH: usize = 10;

/// What a move needs of a line beside the failure it comes from.
const ROOM_MIN: usize = 50;

/// The seeds' words for states that have another name here; `executing` is shown while a worker is at it, and
/// not stored.
const LEGEND: &str = "scheduled = dispatched, running = executing, human review = escalated";

struct Walk<'t> {
    run: &'t str,
    visit: &'t Visit,
}

/// Nothing if every token went straight.
pub(crate) fn lines(run_tree: &RunTree, page: Page) -> Vec<Text> {
    let all = winding(run_tree);
    let shown = chosen(&all);
    let axis = run_tree.root().axis();
    let mut lines = Vec::new();
    for walk in &shown {
        let label = run_tree.label(walk.run, walk.visit.token);
        let tried = count(walk.visit.attempts.into(), "attempt");
        lines.push(text!("{} {}", page.paint.strong(label), page.paint.dim(tried)));
        lines.extend(own_lines(walk, &axis, page));
    }
    if all.len() > shown.len() {
        let more = format!("… and {} more: -o json has every walk", all.len() - shown.len());
        lines.push(page.paint.dim(more));
    }
    if !lines.is_empty() {
        lines.push(page.paint.dim(format!("({LEGEND})")));
    }
    let width = page.width.map(|width| width.saturating_sub(2));
    lines.iter().map(|line| line.fit(width)).collect()
}

fn winding(run_tree: &RunTree) -> Vec<Walk<'_>> {
    let winds = |step: &Move| matches!(step.to, TokenStatus::Retrying | TokenStatus::Escalated);
    let mut all = Vec::new();
    for (run, timeline) in &run_tree.runs {
        let visits = timeline.visits.values();
        let wound = visits.filter(|visit| visit.history.len() > 1 || visit.walk.iter().any(winds));
        all.extend(wound.map(|visit| Walk { run, visit }));
    }
    // The root first, then its children by their names.
    all.sort_by_key(|walk| *walk.run != run_tree.root);
    all
}

/// Those that went wrong, asked a human or are still under way before the rest; a few of each node.
fn chosen<'w, 't>(all: &'w [Walk<'t>]) -> Vec<&'w Walk<'t>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| all[*at].is_over());
    let mut of_node: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    order.retain(|at| {
        let taken = of_node.entry((all[*at].run, &all[*at].visit.node)).or_default();
        *taken += 1;
        *taken <= OF_A_NODE_MAX
    });
    order.truncate(WALKS_MAX);
    order.sort_unstable();
    order.into_iter().map(|at| &all[at]).collect()
}

impl Walk<'_> {
    /// It came to a good end, and nobody was asked.
    fn is_over(&self) -> bool {
        let good = matches!(
            self.visit.status,
            TokenStatus::Completed
                | TokenStatus::WaitingForSiblings
                | TokenStatus::Skipped
                | TokenStatus::Cancelled
        );
        good && !self.visit.was_escalated()
    }
}

fn own_lines(walk: &Walk<'_>, axis: &Axis, page: Page) -> Vec<Text> {
    let steps = &walk.visit.walk;
    let left_out = steps.len().saturating_sub(FIRST_MAX + LAST_MAX);
    let mut lines = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if left_out > 0 && at == FIRST_MAX {
            let gap = " ".repeat(TIME_WIDTH + 1);
            lines.push(page.paint.dim(format!("{gap}… {}", count(left_out as u64, "move"))));
        }
        if left_out == 0 || at < FIRST_MAX || at >= FIRST_MAX + left_out {
            let arrow = if at == 0 { " " } else { "→" };
            let time = if step.at < axis.from { "copied".to_owned() } else { offset(axis.ms(step.at)) };
            let time = Text::from(time).pad_left(TIME_WIDTH);
            lines.push(text!("{} {} {}", page.paint.dim(time), arrow, place(walk, step, page)));
        }
    }
    lines
}

/// `retrying (timeout: it took too long, in 200ms)`
fn place(walk: &Walk<'_>, step: &Move, page: Page) -> Text {
    let paint = page.paint;
    let status = paint.tone(token_tone(step.to), step.to.as_str());
    let why = cause(walk, step, page.width.unwrap_or(usize::MAX).saturating_sub(ROOM_MIN).clamp(16, 160));
    match why.is_empty() {
        true => status,
        false => text!("{} {}", status, paint.dim(format!("({})", why.join(", ")))),
    }
}

fn cause(walk: &Walk<'_>, step: &Move, chars_max: usize) -> Vec<String> {
    let gate = |gate: GateId| format!("gate {}", short_id(&format!("{}:{gate}", walk.run)));
    // What it ended with is told where it is shown; what it was tried again after is told here.
    let end =
        walk.visit.broke_with.as_ref().filter(|_| step.to.is_end()).map(|failure| failure.kind.to_string());
    let mut parts = Vec::new();
    parts.extend(step.by.as_ref().map(|by| format!("{by} answered")));
    parts.extend(step.attempt.map(|attempt| format!("attempt {attempt}")));
    parts.extend(step.failure.as_ref().map(|failure| end.unwrap_or_else(|| brief(failure, chars_max))));
    parts.extend(step.wakes_at.map(|at| format!("in {}", duration(at.since(step.at)))));
    parts.extend(step.gate.map(gate));
    parts
}
