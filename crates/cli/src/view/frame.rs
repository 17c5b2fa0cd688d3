//! One frame of the live screen: the tree of a run, as much of it as the screen holds, and the last lines
//! of what its running tasks say. A frame is lines; drawing them is somebody else's business.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wonder_core::event::TokenId;
use wonder_core::{RunStatus, Time, TokenStatus};
use wonder_engine::LogLine;
use wonder_engine::ahead::{ahead, left_ms};
use wonder_engine::timeline::Timeline;

use super::paint::Paint;
use super::row::{Columns, line};
use super::streaming::Streaming;
use super::tree::{Background, Mark, Row, rows};
use super::words::{cost, count, dollars, duration, short_id, tokens};
use crate::text::{Text, text};
use wonder_engine::run_tree::{RunTree, node_name};

/// Lines of output that are remembered, and how many of them a frame shows.
const OUTPUT_KEPT_MAX: usize = 200;
const OUTPUT_SHOWN_MAX: usize = 4;
/// Turns of a loop that a frame shows.
const TURNS_MAX: usize = 3;
/// What stands before a line of streamed text, at about the depth of an agent's turn.
const TEXT_INDENT: usize = 10;

/// The screen that a frame is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Canvas {
    pub width: usize,
    pub height: usize,
    pub now: Time,
    pub turn: Option<usize>,
    pub paint: Paint,
}

/// The last lines of output, of whichever tasks, and the text that models are producing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    lines: VecDeque<LogLine>,
    pub streaming: Streaming,
}

impl Output {
    pub(crate) fn push(&mut self, line: &LogLine) {
        if self.lines.len() == OUTPUT_KEPT_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line.clone());
    }

    /// The last of those whose tasks still run.
    fn last(&self, run_tree: &RunTree) -> Vec<&LogLine> {
        let runs = |line: &&LogLine| {
            let visit = run_tree.runs.get(&line.run).and_then(|t| t.visits.get(&TokenId(line.token)));
            visit.is_some_and(|visit| visit.status == TokenStatus::Dispatched)
        };
        let mut last: Vec<&LogLine> = self.lines.iter().rev().filter(runs).take(OUTPUT_SHOWN_MAX).collect();
        last.reverse();
        last
    }
}

pub(crate) fn frame(
    run_tree: &RunTree,
    background: &Background,
    output: &Output,
    canvas: Canvas,
) -> Vec<Text> {
    let Canvas { width, height, now, paint, .. } = canvas;
    let output_lines = output.last(run_tree);
    let texts = output.streaming.lines(height / 4, width.saturating_sub(TEXT_INDENT));
    let text_lines: usize = texts.values().map(Vec::len).sum::<usize>().min(height / 2);
    // One line for the head, one for the cursor below the frame.
    let room = height.saturating_sub(output_lines.len() + text_lines + 2).max(1);
    let all = rows(run_tree, background, now, TURNS_MAX);
    let columns = Columns::of(&all, width, paint).turning(canvas.turn);
    let mut lines = vec![head(run_tree, background, canvas)];
    let mut text_room = text_lines;
    for shown in fitting(&all, room) {
        let row = match shown {
            Shown::Row(row) => row,
            Shown::Done(number) => {
                lines.push(paint.dim(format!("… {number} more done")));
                continue;
            }
            Shown::Ahead(number) => {
                lines.push(paint.dim(format!("… {number} more ahead")));
                continue;
            }
            Shown::More(number) => {
                lines.push(paint.dim(format!("… and {number} more")));
                continue;
            }
        };
        lines.push(line(row, &columns, None));
        let text = row.visit.as_ref().and_then(|visit| texts.get(visit));
        for said in text.into_iter().flatten().take(text_room) {
            text_room -= 1;
            let indent = Text::blanks(2 * row.depth + 2);
            lines.push(text!("{}{} {}", indent, paint.dim("│"), said).fit(Some(width)));
        }
    }
    for said in output_lines {
        let label = run_tree.label(&said.run, TokenId(said.token));
        let line = text!("{} {}", paint.dim(format!("{label} |")), said.text);
        lines.push(line.trim_end().fit(Some(width)));
    }
    lines
}

fn head(run_tree: &RunTree, background: &Background, canvas: Canvas) -> Text {
    let (root, paint) = (run_tree.root(), canvas.paint);
    let name = root.workflow.as_deref().unwrap_or("");
    let took = root.axis().ms(root.ended_at.unwrap_or(canvas.now));
    let status = status(run_tree);
    let mut parts = vec![status.to_owned(), duration(took), progress(run_tree, background)];
    if status == RunStatus::Running.as_str() {
        parts.extend(time_left(root, background, canvas.now));
    }
    parts.extend(spent(run_tree, background));
    parts.push(format!("run {}", short_id(&run_tree.root)));
    text!("{} {}", paint.strong(name), paint.dim(format!("· {}", parts.join(" · ")))).fit(Some(canvas.width))
}

/// `$0.0120 of $2.5000 · 12.3k tokens`: what was spent so far, here and in the runs that are still out.
fn spent(run_tree: &RunTree, background: &Background) -> Vec<String> {
    let spend = run_tree.spend(&run_tree.root);
    let written = background.graph.as_ref().and_then(|graph| graph.budget).and_then(|all| all.usd_micros);
    let raised = run_tree.root().run_budget.raised.usd_micros;
    let cost = cost(spend.usd_micros, spend.unpriced_calls);
    let cost = match written.map(|usd_micros| dollars(usd_micros.saturating_add(raised))) {
        Some(budget) => Some(format!("{} of {budget}", cost.unwrap_or_else(|| dollars(0)))),
        None => cost,
    };
    cost.into_iter().chain((spend.tokens() > 0).then(|| tokens(spend.tokens()))).collect()
}

/// `2/10 nodes`: those of the run itself that are done, of those it has come to or may still come to.
fn progress(run_tree: &RunTree, background: &Background) -> String {
    let root = run_tree.root();
    let mut done: BTreeMap<&str, bool> = BTreeMap::new();
    for visit in root.visits.values() {
        *done.entry(node_name(&visit.node)).or_insert(true) &= visit.ended_at.is_some();
    }
    let ended = done.values().filter(|done| **done).count();
    match &background.graph {
        Some(graph) if !root.status.is_end() => {
            format!("{ended}/{}", count((done.len() + ahead(graph, root).len()) as u64, "node"))
        }
        _ => format!("{} done", count(ended as u64, "node")),
    }
}

/// By what past runs taught.
fn time_left(root: &Timeline, background: &Background, now: Time) -> Option<String> {
    let left = left_ms(background.graph.as_ref()?, root, &background.learnt, now)?;
    Some(if left == 0 { "longer than usual".to_owned() } else { format!("about {} left", rounded(left)) })
}

/// A guess is not told to the millisecond.
fn rounded(ms: u64) -> String {
    match ms {
        0..1_000 => "1s".to_owned(),
        1_000..60_000 => format!("{}s", ms.div_ceil(1_000)),
        _ => duration(ms),
    }
}

/// The root's status; `waiting` if all that is live waits for people or events.
fn status(run_tree: &RunTree) -> &'static str {
    let root = run_tree.root().status;
    let mut live =
        run_tree.runs.values().flat_map(|run| run.visits.values()).filter(|v| v.ended_at.is_none());
    let waits = |status: TokenStatus| match status {
        TokenStatus::Sleeping => false,
        TokenStatus::WaitingForSubworkflow => true,
        status => status.is_idle(),
    };
    let waiting =
        root == RunStatus::Running && live.clone().next().is_some() && live.all(|v| waits(v.status));
    if waiting { "waiting" } else { root.as_str() }
}

enum Shown<'r> {
    Row(&'r Row),
    Done(usize),
    Ahead(usize),
    More(usize),
}

/// As many rows as there is room for. What lies ahead is left out first, the farthest before the rest.
fn fitting(all: &[Row], room: usize) -> Vec<Shown<'_>> {
    if all.len() <= room {
        return all.iter().map(Shown::Row).collect();
    }
    let come_to = all.iter().position(|row| row.mark == Mark::Ahead).unwrap_or(all.len());
    if come_to < room {
        let shown = all[..room - 1].iter().map(Shown::Row);
        return shown.chain([Shown::Ahead(all.len() + 1 - room)]).collect();
    }
    without_done(&all[..come_to], room)
}

/// What is done is left out first: the innermost before what it is part of, the oldest before the rest, and what
/// leads to something that is still going on last.
fn without_done(all: &[Row], room: usize) -> Vec<Shown<'_>> {
    if all.len() <= room {
        return all.iter().map(Shown::Row).collect();
    }
    let leads = leads_to_live(all);
    let mut settled: Vec<usize> = (0..all.len()).filter(|at| all[*at].mark.is_settled()).collect();
    settled.sort_by_key(|at| (leads.contains(at), Reverse(all[*at].depth), *at));
    let surplus = all.len() + 1 - room;
    let hidden: BTreeSet<usize> = settled.into_iter().take(surplus).collect();
    let is_token = |at: &&usize| matches!(all[**at].mark, Mark::Token(_));
    let done = hidden.iter().filter(is_token).count();
    let mut shown = Vec::new();
    if done > 0 {
        shown.push(Shown::Done(done));
    }
    shown.extend((0..all.len()).filter(|at| !hidden.contains(at)).map(|at| Shown::Row(&all[at])));
    if shown.len() > room {
        let more = shown.len() + 1 - room;
        shown.truncate(room - 1);
        shown.push(Shown::More(more));
    }
    shown
}

/// Rows below which something is going on.
fn leads_to_live(all: &[Row]) -> BTreeSet<usize> {
    let mut leads = BTreeSet::new();
    let mut open: Vec<usize> = Vec::new();
    for (at, row) in all.iter().enumerate() {
        while open.last().is_some_and(|above| all[*above].depth >= row.depth) {
            open.pop();
        }
        if !row.mark.is_settled() {
            leads.extend(open.iter().copied());
        }
        open.push(at);
    }
    leads
}
