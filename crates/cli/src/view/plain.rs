//! What happened, one line each, for logs and for screens that cannot be redrawn. Says what a person cares
//! about and leaves out the rest: `wonder events` has all of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wonder_core::event::{
    CancelReason, Clocked, Event, EventKind, EventWait, GateRecord, NewChild, NewGroup, PauseReason,
    TaskRetry, TimeoutType,
};
use wonder_core::event::{GateId, TimeoutPolicy, TokenId};
use wonder_core::{Time, Value};
use wonder_engine::{LogLine, Updates};

use super::paint::{Paint, Tone};
use super::tree::{shown_item, tools_called};
use super::words::{brief, brief_value, cost, count, dollars, duration, offset, short_id, tokens};
use crate::text::{Text, text};
use wonder_engine::run_tree::{RunTree, is_gather, item_of, node_name};

const MESSAGE_CHARS_MAX: usize = 300;
/// Lines of what a model said.
const TEXT_LINES_MAX: usize = 40;

/// Turns events and output into lines.
#[derive(Debug)]
pub(crate) struct Narrator {
    pub run_tree: RunTree,
    /// Times are of_run since this; by default since the run's start.
    epoch: Option<Time>,
    /// What happened before is learnt and not of_run.
    since: Time,
    paint: Paint,
}

/// What is said about an event: who, and what.
struct Sentence {
    who: String,
    tone: Tone,
    what: String,
}

impl Narrator {
    pub(crate) fn new(run: &str, since: Option<Time>, paint: Paint) -> Narrator {
        let from = since.unwrap_or(Time(i64::MIN));
        Narrator { run_tree: RunTree::new(run), epoch: since, since: from, paint }
    }

    /// The lines for what is new, in the order it happened: what a task said comes before its end.
    pub(crate) fn lines(&mut self, updates: &Updates) -> Vec<Text> {
        updates.events.iter().for_each(|(run, event)| self.run_tree.learn(run, event));
        let mut logs: Vec<&LogLine> = updates.logs.iter().filter(|line| line.at >= self.since).collect();
        let spreads: BTreeSet<(&str, u64)> = spreads(&updates.events);
        let mut lines = Vec::new();
        // The end of one clock is one line, however many tokens it was over for.
        let mut expired = None;
        for (run, event) in in_order(&updates.events) {
            let clock = shared_clock(&event.kind).map(|clock| (run, clock));
            let again = clock.is_some() && clock == expired;
            expired = clock;
            if again || event.at < self.since || spreads.contains(&(run, event.seq)) {
                continue;
            }
            let Some(sentence) = self.describe(run, &event.kind, event.at) else { continue };
            let ends = ended_attempt(&event.kind);
            logs.retain(|line| {
                let own = line.run == run && ends == Some(TokenId(line.token));
                let earlier = line.at < event.at || (own && line.at == event.at);
                if earlier {
                    lines.push(self.output(line));
                }
                !earlier
            });
            lines.extend(self.text(run, event));
            lines.push(self.line(event.at, &sentence));
        }
        lines.extend(logs.into_iter().map(|line| self.output(line)));
        lines
    }

    fn line(&self, at: Time, sentence: &Sentence) -> Text {
        let time = self.paint.dim(format!("{:>9}", self.offset(at)));
        let what = self.paint.tone(sentence.tone, &sentence.what);
        let gap = if sentence.who.is_empty() { "" } else { " " };
        text!("{}  {}{}{}", time, self.paint.strong(&sentence.who), gap, what)
    }

    fn output(&self, line: &LogLine) -> Text {
        let time = self.paint.dim(format!("{:>9}", self.offset(line.at)));
        let who = self.run_tree.label(&line.run, TokenId(line.token));
        text!("{}  {} {}", time, self.paint.dim(format!("{who} |")), line.text).trim_end()
    }

    /// What a model said, when it has said all of it.
    fn text(&self, run: &str, event: &Event) -> Vec<Text> {
        let EventKind::TaskCompleted { token, result, report, .. } = &event.kind else { return Vec::new() };
        let by_model = report.as_ref().is_some_and(|report| report.spend.output_tokens > 0);
        let Some(said) = result.get("text").and_then(Value::as_str).filter(|_| by_model) else {
            return Vec::new();
        };
        let said: Vec<&str> = said.trim().lines().collect();
        let mut lines: Vec<String> =
            said.iter().take(TEXT_LINES_MAX).map(|line| (*line).to_owned()).collect();
        if said.len() > TEXT_LINES_MAX {
            let more = count((said.len() - TEXT_LINES_MAX) as u64, "more line");
            lines.push(format!("… {more}: wonder show {} -o json has all", short_id(run)));
        }
        let time = self.paint.dim(format!("{:>9}", self.offset(event.at)));
        let who = self.paint.dim(format!("{} >", self.run_tree.label(run, *token)));
        lines.iter().map(|line| text!("{}  {} {}", time, who, line).trim_end()).collect()
    }

    fn offset(&self, at: Time) -> String {
        offset(at.since(self.epoch.unwrap_or(self.run_tree.root().started_at)))
    }

    /// One kind, one sentence or none: a flat table, so that a new kind cannot be forgotten here.
    fn describe(&self, run: &str, kind: &EventKind, at: Time) -> Option<Sentence> {
        let child = run != self.run_tree.root;
        let of_run =
            |tone: Tone, what: String| Some(Sentence { who: self.run_tree.run_label(run), tone, what });
        let at_gate =
            |gate: &GateId, tone: Tone, what: String| of_run(tone, format!("gate {run}:{gate} {what}"));
        match kind {
            EventKind::TaskDispatched { token, attempt: 1, .. } => {
                let timeline = self.run_tree.runs.get(run)?;
                let item = timeline.visits.get(token).map(|visit| item_of(timeline, visit));
                let call = item.filter(|item| item.as_map().is_some()).map(shown_item).unwrap_or_default();
                let with = if call.is_empty() { call } else { format!(": {call}") };
                self.of_visit(run, *token, Tone::Plain, format!("started{with}"))
            }
            EventKind::TaskDispatched { token, attempt, .. } => {
                self.of_visit(run, *token, Tone::Plain, format!("started attempt {attempt}"))
            }
            EventKind::TaskRetrying(TaskRetry { token, failure, wake_at, .. }) => {
                let wait = wake_at.since(at);
                let when = if wait == 0 { "at once".to_owned() } else { format!("in {}", duration(wait)) };
                let reason = brief(&failure.to_string(), MESSAGE_CHARS_MAX);
                self.of_visit(run, *token, Tone::Attention, format!("retrying {when}: {reason}"))
            }
            EventKind::TaskCompleted { token, report, .. } => {
                let visit = self.run_tree.runs.get(run)?.visits.get(token);
                let took = visit.map_or(0, |visit| self.run_tree.root().axis().took_ms(visit, at));
                let mut what = format!("completed in {}", duration(took));
                let spend = report.as_ref().map(|report| report.spend.clone()).unwrap_or_default();
                let used = (spend.tokens() > 0).then(|| tokens(spend.tokens()));
                let cost = cost(spend.usd_micros, spend.unpriced_calls);
                let calls = visit.and_then(tools_called);
                used.into_iter()
                    .chain(cost)
                    .chain(calls)
                    .for_each(|more| what.push_str(&format!(" · {more}")));
                self.of_visit(run, *token, Tone::Good, what)
            }
            EventKind::StepFailed { token, step, failure, .. } => {
                let reason = brief(&failure.to_string(), MESSAGE_CHARS_MAX);
                self.of_visit(run, *token, Tone::Attention, format!("goes on after {step} failed: {reason}"))
            }
            EventKind::TaskFailed { token, failure, handled, .. } => {
                let goes_on = if *handled { " (a failure transition goes on from here)" } else { "" };
                let reason = brief(&failure.to_string(), MESSAGE_CHARS_MAX);
                self.of_visit(run, *token, Tone::Bad, format!("failed: {reason}{goes_on}"))
            }
            EventKind::TokenSkipped { token, failure, .. } => {
                let reason =
                    failure.as_ref().map(|f| format!(": {}", brief(&f.to_string(), MESSAGE_CHARS_MAX)));
                self.of_visit(run, *token, Tone::Dim, format!("skipped{}", reason.unwrap_or_default()))
            }
            EventKind::TokenCancelled { token, reason, .. } => {
                // What had not begun ends without a word.
                let visit = self.run_tree.runs.get(run)?.visits.get(token)?;
                visit.started_at?;
                self.of_visit(run, *token, Tone::Dim, format!("cancelled: {}", cancel_reason(*reason)))
            }
            EventKind::TokenTimedOut {
                token,
                node,
                timeout_type,
                timeout_duration_ms,
                policy_applied,
                ..
            } => {
                let whose = timeout_of(*timeout_type);
                let after = duration(*timeout_duration_ms);
                let what = format!("{whose} timed out after {after}: {}", policy(*policy_applied));
                let who = match (timeout_type, token, node) {
                    (TimeoutType::Workflow, ..) => self.run_tree.run_label(run),
                    (TimeoutType::Synchronization, _, Some(node)) => self.run_tree.node_label(run, node),
                    (_, token, _) => token.map_or(String::new(), |token| self.run_tree.label(run, token)),
                };
                Some(Sentence { who, tone: Tone::Bad, what })
            }
            EventKind::SleepStarted { token, until, .. } => {
                let what = format!("sleeps for {}", duration(until.since(at)));
                self.of_visit(run, *token, Tone::Plain, what)
            }
            EventKind::EventAwaited(EventWait { token, event, key, .. }) => {
                let key = if key.is_null() { String::new() } else { format!(" with key {key}") };
                self.of_visit(run, *token, Tone::Attention, format!("waits for event {event}{key}"))
            }
            EventKind::EventReceived { event, payload, token, .. } => {
                let what = format!("event {event} came: {}", brief_value(payload, 80));
                match token {
                    Some(token) => self.of_visit(run, *token, Tone::Plain, what),
                    None => Some(Sentence {
                        who: String::new(),
                        tone: Tone::Plain,
                        what: format!("{what} (kept)"),
                    }),
                }
            }
            EventKind::ChildStarted(NewChild { token, child, workflow, .. }) => {
                let what = format!("started child run {} of {workflow}", short_id(child));
                self.of_visit(run, *token, Tone::Plain, what)
            }
            EventKind::ChildCompleted { token, outcome, spend, .. } => {
                let tone = if &**outcome == "completed" { Tone::Good } else { Tone::Bad };
                let cost = cost(spend.usd_micros, spend.unpriced_calls);
                let cost = cost.map_or(String::new(), |cost| format!(" · {cost}"));
                self.of_visit(run, *token, tone, format!("child run {outcome}{cost}"))
            }
            EventKind::FanOut(NewGroup { token, total, items, joins_at, .. }) => {
                let what = count((*total).into(), if items.is_null() { "branch" } else { "item" });
                let joins = joins_at.as_deref().filter(|node| !is_gather(node));
                let joins = joins.map_or(String::new(), |node| format!(", joined at {}", node_name(node)));
                self.of_visit(run, *token, Tone::Plain, format!("fans out: {what}{joins}"))
            }
            EventKind::FanIn { group, node, arrived, total, .. } => {
                let group = self.run_tree.runs.get(run)?.groups.get(group);
                let who = match group.filter(|_| is_gather(node)) {
                    Some(group) => self.run_tree.label(run, group.origin),
                    None => self.run_tree.node_label(run, node),
                };
                let what = format!("fan-in: {arrived} of {total} arrived");
                Some(Sentence { who, tone: Tone::Plain, what })
            }
            EventKind::FanInFailed { group, failure, .. } => {
                let origin = self.run_tree.runs.get(run)?.groups.get(group)?.origin;
                // The branch that failed has told its failure already.
                let what = match &failure.cause {
                    Some(_) => "fan-in failed: a branch failed".to_owned(),
                    None => format!("fan-in failed: {}", brief(&failure.message, MESSAGE_CHARS_MAX)),
                };
                self.of_visit(run, origin, Tone::Bad, what)
            }
            EventKind::GateOpened { gate, token, record, .. } => {
                let who = match token {
                    Some(token) => self.run_tree.label(run, *token),
                    None => self.run_tree.run_label(run),
                };
                Some(Sentence { who, tone: Tone::Attention, what: gate_opened(run, gate.0, record) })
            }
            EventKind::GateAnswered { gate, by, answer, closes } => {
                let more = if *closes { "" } else { " (more answers are wanted)" };
                let what = format!("answered by {by}: {}{more}", brief_value(answer, 80));
                at_gate(gate, Tone::Plain, what)
            }
            EventKind::GateClosed { gate, by } => at_gate(gate, Tone::Dim, format!("closed by {by}")),
            EventKind::GateReminded { gate } => at_gate(gate, Tone::Attention, "still waits".to_owned()),
            EventKind::GateReassigned { gate, assignees } => {
                at_gate(gate, Tone::Attention, format!("now asks {}", assignees.join(", ")))
            }
            // A child's start and end are of_run by its parent.
            EventKind::RunStarted { .. }
            | EventKind::RunCompleted { .. }
            | EventKind::RunCancelled { .. }
                if child =>
            {
                None
            }
            EventKind::RunQueued { workflow, .. } => {
                of_run(Tone::Plain, format!("run {run} of {workflow} queued"))
            }
            EventKind::RunStarted { workflow, .. } => {
                of_run(Tone::Plain, format!("run {run} of {workflow} started"))
            }
            EventKind::RunMutated { reason, .. } => of_run(Tone::Attention, format!("run changed: {reason}")),
            EventKind::TimeoutWarning { of, elapsed_ms, timeout_ms } => {
                let (spent, whole) = (duration(*elapsed_ms), duration(*timeout_ms));
                of_run(Tone::Attention, format!("{spent} of {whole} of {} are over", clock(*of)))
            }
            EventKind::BudgetWarning { node, spent } => {
                let of_node = node.as_ref().map_or(String::new(), |node| format!(" of {}", node_name(node)));
                let calls = (spent.calls > 0).then(|| format!(", {}", count(spent.calls, "model call")));
                let tokens =
                    (spent.tokens() > 0).then(|| format!(", {}", count(spent.tokens(), "model token")));
                let more: String = calls.into_iter().chain(tokens).collect();
                let what = format!("budget{of_node}: {}{more} spent so far", dollars(spent.usd_micros));
                of_run(Tone::Attention, what)
            }
            EventKind::BudgetExceeded { message, .. } => {
                of_run(Tone::Bad, format!("budget exceeded: {message}"))
            }
            EventKind::BudgetRaised { usd_micros, .. } => {
                of_run(Tone::Plain, format!("budget raised by {}", dollars(*usd_micros)))
            }
            EventKind::WorkflowExtended { by_ms } => {
                of_run(Tone::Plain, format!("time extended by {}", duration(*by_ms)))
            }
            EventKind::RunPaused { reason, by } => of_run(Tone::Attention, paused(*reason, by)),
            EventKind::RunResumed { by, .. } => of_run(Tone::Plain, format!("run resumed by {by}")),
            EventKind::RunRetried { by, version } => {
                let with = version.map(|version| format!(" with version {version} of its definition"));
                of_run(Tone::Plain, format!("run retried by {by}{}", with.unwrap_or_default()))
            }
            EventKind::RunCancelling { reason, .. } => {
                of_run(Tone::Attention, format!("run cancelling: {reason}"))
            }
            EventKind::RunCompleted { .. } => of_run(Tone::Good, "run completed".to_owned()),
            // Its failure, with its causes, is told at the end; here is whose it was.
            EventKind::RunFailed { failure } | EventKind::RunTimedOut { failure } => {
                let ends = if matches!(kind, EventKind::RunFailed { .. }) { "failed" } else { "timed out" };
                let at =
                    failure.node.as_ref().map_or(String::new(), |node| format!(" at {}", node_name(node)));
                of_run(Tone::Bad, format!("run {ends}{at}"))
            }
            EventKind::RunCancelled { reason } => of_run(Tone::Dim, format!("run cancelled: {reason}")),
            EventKind::RunForked(new) => of_run(Tone::Plain, format!("run {run} forked from {}", new.from)),
            // What moves a run on without being news to a person.
            EventKind::RunReleased
            | EventKind::RunYielded
            | EventKind::RunContinued
            | EventKind::TokenCreated(_)
            | EventKind::TokenAbandoned { .. }
            | EventKind::TokenReleased { .. }
            | EventKind::LateReport { .. }
            | EventKind::ContextUpdated { .. }
            | EventKind::EventTaken { .. }
            | EventKind::BranchArrived { .. }
            | EventKind::GroupClosed { .. } => None,
        }
    }

    /// About one visit; the node that gathers a dag's `foreach` is worth a word only when it breaks.
    fn of_visit(&self, run: &str, token: TokenId, tone: Tone, what: String) -> Option<Sentence> {
        let visit = self.run_tree.runs.get(run)?.visits.get(&token);
        if visit.is_some_and(|visit| is_gather(&visit.node)) && tone != Tone::Bad {
            return None;
        }
        Some(Sentence { who: self.run_tree.label(run, token), tone, what })
    }
}

/// The clock that was over for several tokens at once: the workflow's, or that of a fan-in.
fn shared_clock(kind: &EventKind) -> Option<(TimeoutType, Option<&str>)> {
    match kind {
        EventKind::TokenTimedOut { timeout_type: TimeoutType::Workflow, .. } => {
            Some((TimeoutType::Workflow, None))
        }
        EventKind::TokenTimedOut { timeout_type: TimeoutType::Synchronization, node, .. } => {
            Some((TimeoutType::Synchronization, node.as_deref()))
        }
        _ => None,
    }
}

/// The token whose attempt is over with this.
fn ended_attempt(kind: &EventKind) -> Option<TokenId> {
    match kind {
        EventKind::TaskRetrying(TaskRetry { token, .. })
        | EventKind::TaskCompleted { token, .. }
        | EventKind::TaskFailed { token, .. }
        | EventKind::TokenSkipped { token, .. }
        | EventKind::TokenCancelled { token, .. } => Some(*token),
        _ => None,
    }
}

/// A dag's node with `foreach` that has fanned out is not done: it completes with its items.
fn spreads(events: &[(String, Event)]) -> BTreeSet<(&str, u64)> {
    let is_spread = |(run, event): &(String, Event), (_, next): &(String, Event)| {
        let (
            EventKind::TaskCompleted { token, .. },
            EventKind::FanOut(NewGroup { token: origin, joins_at, .. }),
        ) = (&event.kind, &next.kind)
        else {
            return false;
        };
        origin == token && joins_at.as_deref().is_some_and(is_gather) && !run.is_empty()
    };
    let pairs = events.windows(2).filter(|pair| is_spread(&pair[0], &pair[1]));
    pairs.map(|pair| (pair[0].0.as_str(), pair[0].1.seq)).collect()
}

/// Events of several runs as one story: each run's in order, by time, a child after its start and before its
/// end is known to its parent.
fn in_order(events: &[(String, Event)]) -> Vec<(&str, &Event)> {
    let mut queues: BTreeMap<&str, VecDeque<&Event>> = BTreeMap::new();
    let mut not_begun: BTreeSet<&str> = BTreeSet::new();
    for (run, event) in events {
        queues.entry(run).or_default().push_back(event);
        if let EventKind::ChildStarted(NewChild { child, .. }) = &event.kind {
            not_begun.insert(child);
        }
    }
    let mut story = Vec::with_capacity(events.len());
    while let Some(run) = next_run(&queues, &not_begun) {
        let queue = queues.get_mut(run);
        let Some(event) = queue.and_then(VecDeque::pop_front) else { break };
        if let EventKind::ChildStarted(NewChild { child, .. }) = &event.kind {
            not_begun.remove(&**child);
        }
        if queues[run].is_empty() {
            queues.remove(run);
        }
        story.push((run, event));
    }
    story
}

fn next_run<'e>(queues: &BTreeMap<&'e str, VecDeque<&Event>>, not_begun: &BTreeSet<&str>) -> Option<&'e str> {
    let head = |queue: &VecDeque<&Event>| queue.front().map(|event| event.at);
    let waits = |run: &str, queue: &VecDeque<&Event>| match queue.front().map(|event| &event.kind) {
        _ if not_begun.contains(run) => true,
        Some(EventKind::ChildCompleted { child, .. }) => queues.contains_key(&**child),
        _ => false,
    };
    let ready = queues.iter().filter(|(run, queue)| !waits(run, queue));
    let first = ready.min_by_key(|(_, queue)| head(queue)).map(|(run, _)| *run);
    // A log with a hole must not keep the rest from being of_run.
    first.or_else(|| queues.keys().next().copied())
}

fn gate_opened(run: &str, gate: u64, record: &GateRecord) -> String {
    let asked = match record.assignees.as_slice() {
        [] => String::new(),
        people => format!(", for {}", people.join(", ")),
    };
    format!("gate {run}:{gate} opened: {}{asked}", record.title)
}

fn paused(reason: PauseReason, by: &str) -> String {
    match reason {
        PauseReason::Operator => format!("run paused by {by}"),
        PauseReason::Timeout(gate) => format!("run paused: its time is over, gate {gate} asks"),
        PauseReason::Budget(gate) => format!("run paused: its budget is spent, gate {gate} asks"),
        PauseReason::Response(gate) => format!("run paused by a rule: gate {gate} asks"),
    }
}

fn clock(of: Clocked) -> String {
    match of {
        Clocked::Workflow => "the workflow's time".to_owned(),
        Clocked::FanIn(_) => "a fan-in's time".to_owned(),
        Clocked::Gate(gate) => format!("the time of gate {gate}"),
    }
}

fn timeout_of(what: TimeoutType) -> &'static str {
    match what {
        TimeoutType::Workflow => "the workflow",
        TimeoutType::Task => "task",
        TimeoutType::Execution => "action",
        TimeoutType::Synchronization => "fan-in",
    }
}

fn policy(policy: TimeoutPolicy) -> &'static str {
    match policy {
        TimeoutPolicy::HumanGate => "a gate asks",
        TimeoutPolicy::CancelAll => "everything is cancelled",
        TimeoutPolicy::Fail => "it fails",
        TimeoutPolicy::Retry => "it is tried again",
        TimeoutPolicy::ProceedWithAvailable => "it goes on with what has arrived",
        TimeoutPolicy::Default => "the default is taken",
        TimeoutPolicy::Escalate => "others are asked",
        TimeoutPolicy::Continue => "its task goes on",
    }
}

fn cancel_reason(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::EarlyComplete => "its fan-in fired without it",
        CancelReason::BranchFailed => "a branch failed",
        CancelReason::Straggler => "it came too late",
        CancelReason::RunCancelled => "the run was cancelled",
    }
}
