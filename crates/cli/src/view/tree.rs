//! A run as rows of a tree: visits in the order they came, the branches of a fan-out below the visit that
//! fanned out, a child run below the visit that called it.
//!
//! It says what is to be shown, not how: the live frame and `show` draw these rows.

use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;

use wonder_core::cost::Spend;
use wonder_core::def::{Estimate, Name};
use wonder_core::error::Failure;
use wonder_core::event::{GroupId, TokenId};
use wonder_core::graph::Graph;
use wonder_core::{Time, TokenStatus, Value};
use wonder_engine::ahead::ahead;
use wonder_engine::timeline::{Axis, GroupView, Timeline, Visit};

use super::streaming::Place;
use super::words::{brief, brief_value, cost, count, dollars, duration, short_id, tokens};
use wonder_engine::run_tree::{RunTree, is_gather, item_of, node_name, visit_label};

/// More siblings of one node than this are one row.
pub(crate) const SIBLINGS_MAX: usize = 20;
/// Characters of an item that a row shows.
const ITEM_CHARS_MAX: usize = 32;
/// Names of what runs among many siblings.
const NAMES_MAX: usize = 4;

/// What is known of a run beside its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background {
    /// Its definition: with it, what lies ahead is shown.
    pub graph: Option<Arc<Graph>>,
    /// What past runs taught of its nodes.
    pub learnt: BTreeMap<Name, Estimate>,
    /// A failure that is told whole elsewhere, with its causes: its rows only name its kind.
    pub told: Option<Failure>,
}

impl Background {
    fn is_told(&self, failure: &Failure) -> bool {
        let mut causes = std::iter::successors(self.told.as_ref(), |failure| failure.cause.as_deref());
        causes.any(|told| told.kind == failure.kind && told.message == failure.message)
    }

    /// How often the node's task is tried at most, by what its author wrote.
    fn attempts_max(&self, node: &str) -> Option<u32> {
        let graph = self.graph.as_ref()?;
        graph.node(graph.find_node(node)?).task()?.retry.as_ref().map(|retry| retry.max_attempts)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub depth: usize,
    pub mark: Mark,
    pub label: String,
    /// What the branch works on, if that is short.
    pub item: String,
    /// When its work began and ended; absent for what has not begun.
    pub began: Option<Time>,
    pub ended: Option<Time>,
    /// How long that took, as far as the run was open.
    pub took_ms: Option<u64>,
    pub usd_micros: u64,
    pub note: String,
    /// The visit that it shows, if that is one.
    pub visit: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mark {
    Token(TokenStatus),
    /// A node that the run may still come to.
    Ahead,
    /// Turns of a loop before those that are shown.
    Earlier,
    /// A group: how many of its branches are done, and how many of those failed.
    Group {
        done: u32,
        failed: u32,
        total: u32,
        closed: bool,
    },
}

impl Mark {
    /// Nothing more will come of it, and nothing went wrong.
    pub(crate) fn is_settled(self) -> bool {
        match self {
            Mark::Token(status) => matches!(
                status,
                TokenStatus::Completed
                    | TokenStatus::WaitingForSiblings
                    | TokenStatus::Skipped
                    | TokenStatus::Cancelled
            ),
            Mark::Group { closed, .. } => closed,
            Mark::Earlier => true,
            Mark::Ahead => false,
        }
    }
}

impl Row {
    /// Of what has not begun.
    fn named(depth: usize, mark: Mark, label: String) -> Row {
        Row {
            depth,
            mark,
            label,
            item: String::new(),
            began: None,
            ended: None,
            took_ms: None,
            usd_micros: 0,
            note: String::new(),
            visit: None,
        }
    }
}

/// The whole run_tree, from its root, and what lies ahead of it. Of a loop so many turns, the last ones.
pub(crate) fn rows(run_tree: &RunTree, background: &Background, now: Time, turns_max: usize) -> Vec<Row> {
    let axis = run_tree.root().axis();
    let mut tree = Tree { run_tree, background, axis, now, turns_max, rows: Vec::new() };
    tree.run(&run_tree.root, 0);
    tree.ahead();
    tree.rows
}

struct Tree<'f> {
    run_tree: &'f RunTree,
    background: &'f Background,
    axis: Axis,
    now: Time,
    turns_max: usize,
    rows: Vec<Row>,
}

/// One run's visits, sorted into the lists they are shown in.
struct Lists<'t> {
    run: &'t str,
    timeline: &'t Timeline,
    top: Vec<&'t Visit>,
    within: BTreeMap<GroupId, Vec<&'t Visit>>,
    /// Groups by the token that fanned out.
    groups: BTreeMap<TokenId, Vec<GroupId>>,
    /// Branches in which something is still live, those around them included.
    live: BTreeSet<(GroupId, u32)>,
}

impl<'t> Lists<'t> {
    fn of(run: &'t str, timeline: &'t Timeline) -> Lists<'t> {
        let mut lists = Lists {
            run,
            timeline,
            top: Vec::new(),
            within: BTreeMap::new(),
            groups: BTreeMap::new(),
            live: BTreeSet::new(),
        };
        for visit in timeline.visits.values() {
            if visit.ended_at.is_none() {
                lists.mark_live(visit);
            }
            let hidden = is_gather(&visit.node) && Mark::Token(visit.status).is_settled();
            match visit.branch {
                _ if hidden => {}
                None => lists.top.push(visit),
                Some(at) => lists.within.entry(at.group).or_default().push(visit),
            }
        }
        for visits in lists.within.values_mut() {
            visits.sort_by_key(|visit| (visit.branch.map(|at| at.branch), visit.token));
        }
        for (id, group) in &timeline.groups {
            lists.groups.entry(group.origin).or_default().push(*id);
        }
        lists
    }

    fn mark_live(&mut self, visit: &Visit) {
        let mut next = visit.branch;
        while let Some(at) = next {
            if !self.live.insert((at.group, at.branch)) {
                return;
            }
            let origin =
                self.timeline.groups.get(&at.group).and_then(|group| self.timeline.visits.get(&group.origin));
            next = origin.and_then(|origin| origin.branch);
        }
    }

    /// A dag's node with `foreach` is the node that fans out and all that it fans out to: it is done when its
    /// items are.
    fn spread(&self, visit: &Visit) -> Option<(TokenStatus, Option<Time>)> {
        let id = self.groups.get(&visit.token)?.first()?;
        let group = &self.timeline.groups[id];
        if !group.joins_at.as_deref().is_some_and(is_gather) {
            return None;
        }
        let ends = self.within.get(id).into_iter().flatten().filter_map(|visit| visit.ended_at);
        match group.closed {
            true => Some((visit.status, ends.max().or(visit.ended_at))),
            false => Some((TokenStatus::Dispatched, None)),
        }
    }

    /// How far a group is. A branch is done when nothing in it is live.
    fn progress(&self, id: GroupId, group: &GroupView) -> Mark {
        let visits = self.within.get(&id).map_or(&[][..], Vec::as_slice);
        let (mut done, mut failed) = (0, 0);
        if group.closed && group.joins_at.is_some() {
            done = group.arrived;
        }
        for branch in visits.chunk_by(|a, b| a.branch == b.branch) {
            let Some(at) = branch[0].branch else { continue };
            if group.closed || !self.live.contains(&(id, at.branch)) {
                done += u32::from(!group.closed || group.joins_at.is_none());
                let broke =
                    |visit: &&Visit| matches!(visit.status, TokenStatus::Failed | TokenStatus::TimedOut);
                failed += u32::from(branch.last().is_some_and(broke));
            }
        }
        Mark::Group { done, failed, total: group.total, closed: group.closed }
    }
}

impl Tree<'_> {
    fn run(&mut self, run: &str, depth: usize) {
        let Some(timeline) = self.run_tree.runs.get(run) else { return };
        let lists = Lists::of(run, timeline);
        self.siblings(&lists, &lists.top, depth);
        for (id, gate) in timeline.open_gates().filter(|(_, gate)| gate.token.is_none()) {
            let mark = Mark::Token(TokenStatus::WaitingForHuman);
            self.rows.push(Row {
                began: Some(gate.opened_at),
                took_ms: Some(self.axis.between(gate.opened_at, self.now)),
                note: format!("gate {id}: {}", gate.title),
                ..Row::named(depth, mark, "the run".to_owned())
            });
        }
    }

    /// Nodes that the run may still come to, with how long they take, if that is known.
    fn ahead(&mut self) {
        let root = self.run_tree.root();
        let Some(graph) = self.background.graph.as_ref().filter(|_| !root.status.is_end()) else { return };
        for name in ahead(graph, root) {
            let known = self.background.learnt.get(&*name).and_then(|known| known.duration_ms);
            let note = known.map_or(String::new(), |ms| format!("usually {}", duration(ms)));
            self.rows.push(Row { note, ..Row::named(0, Mark::Ahead, name) });
        }
    }

    fn siblings(&mut self, lists: &Lists<'_>, visits: &[&Visit], depth: usize) {
        let mut shown: Vec<&Visit> = Vec::new();
        let mut earlier: BTreeMap<TokenId, Row> = BTreeMap::new();
        for branch in visits.chunk_by(|a, b| a.branch == b.branch) {
            let folded = earlier_turns(lists, branch, self.turns_max);
            shown.extend(branch.iter().filter(|visit| !folded.contains(&visit.token)));
            if let Some(first) = branch.iter().find(|visit| folded.contains(&visit.token)) {
                let all: Vec<&Visit> =
                    branch.iter().filter(|visit| folded.contains(&visit.token)).copied().collect();
                let next =
                    branch.iter().find(|visit| visit.token > first.token && !folded.contains(&visit.token));
                let before = next.map_or(first.token, |next| next.token);
                earlier.insert(before, self.earlier(lists, &all, depth));
            }
        }
        let mut by_node: BTreeMap<&str, Vec<&Visit>> = BTreeMap::new();
        for visit in &shown {
            by_node.entry(&visit.node).or_default().push(visit);
        }
        for visit in shown.iter().copied() {
            self.rows.extend(earlier.remove(&visit.token));
            let alike = &by_node[&*visit.node];
            if alike.len() <= SIBLINGS_MAX {
                self.visit(lists, visit, depth);
            } else if alike[0].token == visit.token {
                self.many(lists.timeline, alike, depth);
                let broken =
                    |visit: &&&Visit| matches!(visit.status, TokenStatus::Failed | TokenStatus::TimedOut);
                alike.iter().filter(broken).take(SIBLINGS_MAX / 4).for_each(|visit| {
                    self.visit(lists, visit, depth + 1);
                });
            }
        }
    }

    /// What earlier turns of a loop came to, as one row.
    fn earlier(&self, lists: &Lists<'_>, visits: &[&Visit], depth: usize) -> Row {
        let turns = visits.iter().map(|visit| visit.turn).max().unwrap_or(0);
        let mut spend = Spend::default();
        visits.iter().for_each(|visit| self.add_spend(lists, visit, &mut spend));
        let began = visits.iter().filter_map(|visit| visit.started_at).min();
        let ended = visits.iter().filter_map(|visit| visit.ended_at).max();
        let note = if spend.tokens() > 0 { tokens(spend.tokens()) } else { String::new() };
        Row {
            began,
            ended,
            took_ms: began.zip(ended).map(|(began, ended)| self.axis.work_ms(began, ended)),
            usd_micros: spend.usd_micros,
            note,
            ..Row::named(depth, Mark::Earlier, count(turns.into(), "earlier turn"))
        }
    }

    /// Of a visit and of all that it fanned out to.
    fn add_spend(&self, lists: &Lists<'_>, visit: &Visit, spend: &mut Spend) {
        spend.add(&self.run_tree.spend_at(visit));
        let groups = lists.groups.get(&visit.token).into_iter().flatten();
        for inner in groups.filter_map(|group| lists.within.get(group)).flatten() {
            self.add_spend(lists, inner, spend);
        }
    }

    fn visit(&mut self, lists: &Lists<'_>, visit: &Visit, depth: usize) {
        let began = visit.started_at.filter(|_| visit.status != TokenStatus::Skipped);
        let (status, ended) = lists.spread(visit).unwrap_or((visit.status, visit.ended_at));
        self.rows.push(Row {
            depth,
            mark: Mark::Token(status),
            label: visit_label(lists.timeline, visit),
            item: shown_item(item_of(lists.timeline, visit)),
            began,
            ended,
            took_ms: began.map(|began| self.axis.work_ms(began, ended.unwrap_or(self.now))),
            usd_micros: self.run_tree.spend_at(visit).usd_micros,
            note: self.note(lists, visit),
            visit: Some((lists.run.to_owned(), visit.token)),
        });
        for id in lists.groups.get(&visit.token).into_iter().flatten() {
            self.group(lists, *id, depth + 1);
        }
        if let Some(child) = &visit.child {
            self.run(child, depth + 1);
        }
    }

    fn group(&mut self, lists: &Lists<'_>, id: GroupId, depth: usize) {
        let group = &lists.timeline.groups[&id];
        let mark = lists.progress(id, group);
        let what = if group.items.is_null() { "branch" } else { "item" };
        let joins = group.joins_at.as_deref().filter(|node| !is_gather(node));
        let mut note = joins.map_or(String::new(), |node| format!("to {}", node_name(node)));
        if let Mark::Group { failed: failed @ 1.., .. } = mark {
            note = if note.is_empty() {
                format!("{failed} failed")
            } else {
                format!("{note} · {failed} failed")
            };
        }
        self.rows.push(Row { note, ..Row::named(depth, mark, count(group.total.into(), what)) });
        if let Some(visits) = lists.within.get(&id) {
            self.siblings(lists, visits, depth + 1);
        }
    }

    /// Many visits of one node as one row, with what has become of them.
    fn many(&mut self, timeline: &Timeline, visits: &[&Visit], depth: usize) {
        let mut counts: BTreeMap<TokenStatus, u64> = BTreeMap::new();
        for visit in visits {
            // Having arrived at a fan-in is as good as done, to those who watch.
            let status = match visit.status {
                TokenStatus::WaitingForSiblings => TokenStatus::Completed,
                status => status,
            };
            *counts.entry(status).or_default() += 1;
        }
        let worst = [TokenStatus::Failed, TokenStatus::Dispatched, TokenStatus::WaitingForHuman];
        let shown = worst.into_iter().find(|status| counts.contains_key(status));
        let status = shown.or_else(|| counts.keys().next().copied()).unwrap_or(TokenStatus::Pending);
        let ended = visits.iter().all(|visit| visit.ended_at.is_some());
        let mut ordered: Vec<(TokenStatus, u64)> = counts.into_iter().collect();
        // What is done first, what has not begun last.
        ordered
            .sort_by_key(|(status, _)| (*status == TokenStatus::Pending, *status != TokenStatus::Completed));
        let mut note: Vec<String> =
            ordered.iter().map(|(status, number)| format!("{number} {}", spoken(*status))).collect();
        note.extend(ordered.iter().filter_map(|(status, _)| names(timeline, visits, *status)));
        let began = visits.iter().filter_map(|visit| visit.started_at).min();
        let ended = visits.iter().filter_map(|visit| visit.ended_at).max().filter(|_| ended);
        let label = format!("{} ×{}", node_name(&visits[0].node), visits.len());
        self.rows.push(Row {
            began,
            ended,
            took_ms: began.map(|began| self.axis.work_ms(began, ended.unwrap_or(self.now))),
            usd_micros: visits.iter().map(|visit| visit.spend.usd_micros).sum(),
            note: note.join(", "),
            ..Row::named(depth, Mark::Token(status), label)
        });
    }

    fn note(&self, lists: &Lists<'_>, visit: &Visit) -> String {
        let timeline = lists.timeline;
        let mut parts = Vec::new();
        if visit.ended_at.is_some_and(|ended_at| ended_at < self.axis.from) {
            parts.push("copied".to_owned());
        }
        if visit.attempts > 1 {
            let of =
                self.background.attempts_max(&visit.node).map_or(String::new(), |max| format!(" of {max}"));
            parts.push(format!("attempt {}{of}", visit.attempts));
        }
        if visit.tries > 0 {
            parts.push(count(u64::from(visit.tries) + 1, "try"));
        }
        parts.extend(self.state_note(timeline, visit));
        parts.extend(self.spend_note(lists, visit));
        parts.extend(tools_called(visit));
        parts.extend(call_result(timeline, visit));
        let failed = visit.steps_failed.iter();
        parts
            .extend(failed.map(|failed| format!("went on after {} failed: {}", failed.step, failed.failure)));
        parts.join(" · ")
    }

    /// What a model took, and what it may: `1.2k tokens`, `3.4k tokens of a budget of $2.5000`.
    fn spend_note(&self, lists: &Lists<'_>, visit: &Visit) -> Option<String> {
        let spend = self.run_tree.spend_at(visit);
        let used = (spend.tokens() > 0).then(|| tokens(spend.tokens()));
        let unknown = (spend.usd_micros == 0).then(|| cost(0, spend.unpriced_calls)).flatten();
        let graph = self.background.graph.as_ref().filter(|_| lists.run == self.run_tree.root);
        let node = graph.and_then(|graph| Some(graph.node(graph.find_node(&visit.node)?)));
        let budget = node.and_then(|node| node.budget).and_then(|budget| budget.usd_micros);
        let raised = lists.timeline.node_budgets.get(&visit.node).map_or(0, |state| state.raised.usd_micros);
        let budget = budget.map(|written| format!("budget {}", dollars(written.saturating_add(raised))));
        let parts: Vec<String> = used.into_iter().chain(unknown).chain(budget).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    fn state_note(&self, timeline: &Timeline, visit: &Visit) -> Option<String> {
        let left = || visit.wakes_at.map_or(0, |at| at.since(self.now));
        let failure = || visit.failure.clone().unwrap_or_default();
        match visit.status {
            TokenStatus::Retrying => Some(format!("again in {}: {}", duration(left()), failure())),
            TokenStatus::Sleeping => Some(format!("sleeps, {} left", duration(left()))),
            TokenStatus::WaitingForEvent => Some("waits for an event".to_owned()),
            // One that is pending has hit a bound of the run, which asks.
            TokenStatus::WaitingForHuman | TokenStatus::Escalated | TokenStatus::Pending => {
                let gate = visit.gate.and_then(|id| Some((id, timeline.gates.get(&id)?)));
                gate.map(|(id, gate)| format!("gate {id}: {}", gate.title))
            }
            TokenStatus::WaitingForSubworkflow => {
                visit.child.as_ref().map(|child| format!("child run {}", short_id(child)))
            }
            TokenStatus::Dispatched if visit.attempts > 1 => {
                visit.failure.as_ref().map(|failure| format!("after {failure}"))
            }
            TokenStatus::Failed | TokenStatus::TimedOut => Some(match &visit.broke_with {
                Some(failure) if self.background.is_told(failure) => failure.kind.to_string(),
                Some(failure) => failure.to_string(),
                None => spoken(visit.status).to_owned(),
            }),
            TokenStatus::Skipped => Some(match &visit.failure {
                Some(failure) => format!("skipped: {failure}"),
                None => "skipped".to_owned(),
            }),
            TokenStatus::Cancelled => Some("cancelled".to_owned()),
            _ => None,
        }
    }
}

/// If it is a text or a number; of a call that a model wants made, what it gives.
pub(crate) fn shown_item(item: &Value) -> String {
    match (item, call_arguments(item)) {
        (Value::String(_) | Value::Int(_) | Value::Float(_), _) => brief_value(item, ITEM_CHARS_MAX),
        (_, Some(arguments)) => arguments,
        _ => String::new(),
    }
}

/// `path=a.rs limit=3`: what a tool is called with, if the branch is for a call as models make them.
fn call_arguments(item: &Value) -> Option<String> {
    item.get("tool")?;
    let given = item.get("arguments")?.as_map()?;
    let each = given.iter().map(|(name, value)| format!("{name}={}", brief_value(value, ITEM_CHARS_MAX)));
    Some(brief(&each.collect::<Vec<_>>().join(" "), ITEM_CHARS_MAX))
}

/// What came of such a call, in short; of a gate on the way to it, what was answered.
fn call_result(timeline: &Timeline, visit: &Visit) -> Option<String> {
    call_arguments(item_of(timeline, visit))?;
    if visit.ended_at.is_none() || visit.result.is_null() {
        return None;
    }
    let said = ["text", "stdout", "body", "content"].iter().find_map(|key| visit.result.get(key));
    let said = said.filter(|said| !said.is_null()).unwrap_or(&visit.result);
    Some(format!("→ {}", brief_value(said, 2 * ITEM_CHARS_MAX)))
}

/// `calls search, read_file`: what a model that has answered wants done.
pub(crate) fn tools_called(visit: &Visit) -> Option<String> {
    visit.ended_at?;
    let calls = visit.result.get("tool_calls").and_then(Value::as_list)?;
    let names = calls.iter().filter_map(|call| call.get("tool").and_then(Value::as_str));
    let names: Vec<&str> = names.take(NAMES_MAX + 1).collect();
    let more = if names.len() > NAMES_MAX { ", …" } else { "" };
    let names = &names[..names.len().min(NAMES_MAX)];
    (!names.is_empty()).then(|| format!("calls {}{more}", names.join(", ")))
}

/// Visits of a loop's turns before the last so many, in one branch. What is still going on is never among them, and one
/// turn is not worth hiding.
fn earlier_turns(lists: &Lists<'_>, visits: &[&Visit], turns_max: usize) -> BTreeSet<TokenId> {
    let turned = visits.iter().max_by_key(|visit| visit.turn);
    let Some(last) = turned.filter(|visit| visit.turn as usize > turns_max + 1) else {
        return BTreeSet::new();
    };
    let of_head = |turn: u32| visits.iter().position(|visit| visit.node == last.node && visit.turn == turn);
    let (first, kept) = (of_head(1), of_head(last.turn + 1 - turns_max as u32));
    let Some(turns) = first.zip(kept).and_then(|(first, kept)| visits.get(first..kept)) else {
        return BTreeSet::new();
    };
    let open = |id: &GroupId| lists.timeline.groups.get(id).is_some_and(|group| !group.closed);
    let goes_on = |visit: &Visit| {
        visit.ended_at.is_none() || lists.groups.get(&visit.token).into_iter().flatten().any(open)
    };
    turns.iter().filter(|visit| !goes_on(visit)).map(|visit| visit.token).collect()
}

/// Which of many siblings are at work, waiting or tried again: `running: [3] a.rs [7] b.rs …`.
fn names(timeline: &Timeline, visits: &[&Visit], status: TokenStatus) -> Option<String> {
    let live =
        |visit: &&&Visit| visit.status == status && visit.ended_at.is_none() && visit.started_at.is_some();
    let mut live = visits.iter().filter(live);
    let name = |visit: &&Visit| {
        let branch = visit.branch.map_or(0, |at| at.branch);
        let item = shown_item(item_of(timeline, visit));
        format!("[{branch}] {item}").trim_end().to_owned()
    };
    let mut names: Vec<String> = live.by_ref().take(NAMES_MAX).map(name).collect();
    names.extend(live.next().map(|_| "…".to_owned()));
    (!names.is_empty()).then(|| format!("{}: {}", spoken(status), names.join(" ")))
}

/// A token's status in the words of a sentence.
pub(crate) fn spoken(status: TokenStatus) -> &'static str {
    match status {
        TokenStatus::Pending => "pending",
        TokenStatus::Dispatched => "running",
        TokenStatus::Retrying => "retrying",
        TokenStatus::Escalated => "in review",
        TokenStatus::WaitingForSubworkflow => "in a child run",
        TokenStatus::WaitingForHuman => "at a gate",
        TokenStatus::WaitingForEvent => "waiting for an event",
        TokenStatus::Sleeping => "sleeping",
        TokenStatus::WaitingForSiblings => "arrived",
        TokenStatus::Completed => "completed",
        TokenStatus::Failed => "failed",
        TokenStatus::TimedOut => "timed out",
        TokenStatus::Skipped => "skipped",
        TokenStatus::Cancelled => "cancelled",
    }
}
