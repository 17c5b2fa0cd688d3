//! A run as it is expected to go: the engine itself, on a clock that jumps. Tasks take and cost what is
//! estimated; mocks answer what they are written to; people and events come as soon as they are waited for,
//! or, where others could do without them, when nothing else goes on. Children are runs like their parent,
//! started as every host starts them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use wonder_core::backoff::TRIES;
use wonder_core::command::{ChildOrder, Command, TaskOrder};
use wonder_core::cost::Spend;
use wonder_core::def::{Name, Strategy};
use wonder_core::event::{Event, EventKind, GateKind, NewToken, TokenId};
use wonder_core::execution::{ExecutionRules, Next, TaskExecution, Try, TryFailure};
use wonder_core::graph::{Graph, NodeIx, Source, Spread, Work as ActionWork};
use wonder_core::input::{ChildOutcome, Input, StartRun, TaskOutcome, TaskReport};
use wonder_core::reserve::worst_try;
use wonder_core::schedule::DURATION_MS_UNKNOWN;
use wonder_core::{Run, RunStatus, Time, Value, child_start, mock};

use super::assume::{Assumed, NEVER_MS};
use super::work::Work;

/// Tokens beyond those that a workflow of its size may want: a loop that goes on for so long has no end.
const TOKENS_MAX: u64 = 20_000;

/// A workflow ready to be played.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) assumed: Assumed,
    /// By unit for a dag, by node for a graph.
    pub(super) works: Vec<Work>,
}

impl Prepared {
    /// Where a node's row is: of one that a response put behind another, where that is.
    pub(super) fn row(graph: &Graph, node: NodeIx) -> usize {
        let node = graph.node(node).stands_for.unwrap_or(node);
        graph.node(node).unit.map_or(node.0 as usize, |unit| unit.0 as usize)
    }
}

/// One visit of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Visit {
    pub(super) row: usize,
    pub(super) starts_ms: u64,
    pub(super) ends_ms: u64,
    /// The node does something: it is not there to spread or gather a dag's `foreach`.
    pub(super) does: bool,
    pub(super) skipped: bool,
    cancelled: bool,
    began: bool,
    /// The visit whose end let it start.
    after: Option<usize>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) visits: Vec<Visit>,
    pub(super) ends_ms: u64,
    pub(super) spend: Spend,
    /// Rows of worker's tasks in the order in which they were sent out first.
    pub(super) dispatched: Vec<usize>,
    /// Why it does not come to its end; none: it completes.
    pub(super) stops: Option<String>,
}

impl Played {
    /// Visits that were not skipped.
    pub(super) fn of_row(&self, row: usize) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(move |visit| visit.row == row && visit.does && !visit.skipped)
    }

    /// From a first visit to the one that ends last, each let go by the one before it; each row once.
    pub(super) fn path(&self) -> Vec<usize> {
        let done = |at: &usize| !self.visits[*at].skipped && !self.visits[*at].cancelled;
        let leads_on: BTreeSet<usize> = self.visits.iter().filter_map(|visit| visit.after).collect();
        let last = (0..self.visits.len())
            .filter(done)
            .max_by_key(|at| (self.visits[*at].ends_ms, !leads_on.contains(at), std::cmp::Reverse(*at)));
        let way = std::iter::successors(last, |at| self.visits[*at].after);
        let mut rows: Vec<usize> = way.map(|at| self.visits[at].row).collect();
        rows.reverse();
        let mut seen = BTreeSet::new();
        rows.retain(|row| seen.insert(*row));
        rows
    }
}

struct Hosted {
    run: Run,
    of: Rc<Prepared>,
    parent: Option<(Name, TokenId, u32)>,
    played: Played,
    visit_of: BTreeMap<TokenId, usize>,
}

/// A run and its children on virtual time.
pub(super) struct Play<'p> {
    prepared: &'p BTreeMap<Name, Rc<Prepared>>,
    runs: BTreeMap<Name, Hosted>,
    queue: BTreeMap<(u64, u64), (Name, Input)>,
    /// What comes only when nothing else does.
    last: Vec<(Name, Input)>,
    now_ms: u64,
    order: u64,
}

impl<'p> Play<'p> {
    /// Plays one of the workflows. Only those that are prepared can be called.
    pub(super) fn of(
        prepared: &'p BTreeMap<Name, Rc<Prepared>>,
        workflow: &Rc<Prepared>,
        mut start: StartRun,
    ) -> Played {
        let graph = &workflow.assumed.graph;
        let copies = graph.transitions.iter().filter_map(|transition| transition.spread.as_ref());
        let copies =
            copies.map(|spread| if let Spread::Count(count) = spread { u64::from(*count) } else { 0 });
        let wanted = 3 * (graph.nodes.len() as u64 + copies.sum::<u64>());
        start.limits.tokens_max = start.limits.tokens_max.min(TOKENS_MAX + wanted);
        let root = start.id.clone();
        let mut play = Play {
            prepared,
            runs: BTreeMap::new(),
            queue: BTreeMap::new(),
            last: vec![],
            now_ms: 0,
            order: 0,
        };
        play.insert(&root, workflow.clone(), None);
        play.deliver(&root, Input::StartRun(Box::new(start)));
        while play.advance() {}
        let hosted = play.runs.remove(&root).expect("the root run stays");
        let mut played = hosted.played;
        played.spend = hosted.run.spend().clone();
        if hosted.run.status() != RunStatus::Completed {
            let waits = hosted.run.why().first().map(ToString::to_string);
            let failure = hosted.run.failure().map(|failure| format!("it fails: {failure}"));
            let stops = failure.or(waits.map(|waits| format!("it stops: {waits}")));
            played.stops = Some(stops.unwrap_or_else(|| format!("it is {}", hosted.run.status())));
        }
        played
    }

    fn insert(&mut self, id: &Name, of: Rc<Prepared>, parent: Option<(Name, TokenId, u32)>) {
        let run = Run::new(of.assumed.graph.clone());
        let visit_of = BTreeMap::new();
        self.runs.insert(id.clone(), Hosted { run, of, parent, played: Played::default(), visit_of });
    }

    /// The next thing that happens; false if nothing does any more.
    fn advance(&mut self) -> bool {
        let never = Time(NEVER_MS as i64 / 2);
        let deadlines = self.runs.iter().filter_map(|(id, hosted)| Some((hosted.run.next_deadline()?, id)));
        let deadline =
            deadlines.filter(|(at, _)| *at < never).min().map(|(at, id)| (at.0.max(0) as u64, id.clone()));
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        match (queued, deadline) {
            (queued, Some((at, run))) if queued.is_none_or(|queued| at < queued) => {
                self.now_ms = self.now_ms.max(at);
                self.deliver(&run, Input::Wake);
            }
            (Some(at), _) => {
                self.now_ms = self.now_ms.max(at);
                if let Some((_, (run, input))) = self.queue.pop_first() {
                    self.deliver(&run, input);
                }
            }
            _ if self.last.is_empty() => return false,
            _ => {
                let (run, input) = self.last.remove(0);
                self.deliver(&run, input);
            }
        }
        true
    }

    fn enqueue(&mut self, after_ms: u64, run: &Name, input: Input) {
        self.order += 1;
        self.queue.insert((self.now_ms.saturating_add(after_ms), self.order), (run.clone(), input));
    }

    /// One input to one run. What is refused has come too late, and is no news.
    fn deliver(&mut self, id: &Name, input: Input) {
        let now = self.now_ms;
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let Ok(step) = hosted.run.handle(input, Time(now as i64)) else { return };
        hosted.note(&step.events, now);
        for command in step.commands {
            self.perform(id, command);
        }
        let hosted = &self.runs[id];
        if let (Some(outcome), Some((parent, token, attempt))) = (hosted.run.outcome(), hosted.parent.clone())
        {
            let spend = hosted.run.spend().clone();
            self.runs.remove(id);
            self.enqueue(0, &parent, Input::ChildFinished { token, attempt, outcome, spend });
        }
    }

    fn perform(&mut self, id: &Name, command: Command) {
        match command {
            Command::RunTask(order) => {
                let hosted = self.runs.get_mut(id).expect("a run that asks is there");
                let (after_ms, report) = hosted.task(&order);
                let (token, attempt) = (order.token, order.attempt);
                self.enqueue(after_ms, id, Input::TaskFinished { token, attempt, report });
            }
            Command::CancelTask { token, attempt } => {
                let hosted = &self.runs[id];
                // Nobody knows what it has cost until then: all of it.
                let spend = hosted
                    .visit_of
                    .get(&token)
                    .map(|visit| hosted.of.works[hosted.played.visits[*visit].row].spend());
                let spend = spend.unwrap_or_default();
                let report = TaskReport::new(TaskOutcome::Cancelled, spend);
                self.enqueue(0, id, Input::TaskFinished { token, attempt, report });
            }
            Command::OpenGate { gate } => {
                let hosted = &self.runs[id];
                let Some((_, open)) = hosted.run.gates().find(|(open, _)| *open == gate) else { return };
                // What people decide about failures is not for a plan to say.
                if let (GateKind::Node, Some(token)) = (open.record.kind, open.token) {
                    let answer = Value::map([("ok", Value::Bool(true))]);
                    let input = Input::GateAnswered { gate, answer, by: "somebody".into() };
                    match hosted.can_do_without(token) {
                        true => self.last.push((id.clone(), input)),
                        false => self.enqueue(0, id, input),
                    }
                }
            }
            Command::StartChild(order) => self.order_child(id, *order),
            Command::CancelChild { token, child } => {
                let Some(hosted) = self.runs.remove(&child) else { return };
                let attempt = hosted.parent.map_or(0, |(_, _, attempt)| attempt);
                let (outcome, spend) = (ChildOutcome::Cancelled, hosted.run.spend().clone());
                self.enqueue(0, id, Input::ChildFinished { token, attempt, outcome, spend });
            }
            Command::CloseGate { .. }
            | Command::RemindGate { .. }
            | Command::PauseChild { .. }
            | Command::ResumeChild { .. } => {}
        }
    }

    /// A workflow that is not known here, or that called this one, is somebody else's second.
    fn order_child(&mut self, parent: &Name, order: ChildOrder) {
        let above =
            std::iter::successors(self.runs.get(parent), |hosted| self.runs.get(&hosted.parent.as_ref()?.0));
        let calls_itself = above.into_iter().any(|hosted| hosted.of.assumed.graph.name == order.workflow);
        let (token, attempt, child) = (order.token, order.attempt, order.child.clone());
        if calls_itself || !self.prepared.contains_key(&order.workflow) {
            let outcome = ChildOutcome::Completed { output: Value::empty_map() };
            let spend = Spend::default();
            let input = Input::ChildFinished { token, attempt, outcome, spend };
            return self.enqueue(DURATION_MS_UNKNOWN, parent, input);
        }
        self.insert(&child, self.prepared[&order.workflow].clone(), Some((parent.clone(), token, attempt)));
        let start = Box::new(child_start(&self.runs[parent].run, order));
        self.enqueue(0, &child, Input::StartRun(start));
    }
}

impl Hosted {
    /// Keeps what happened to each visit.
    fn note(&mut self, events: &[Event], now: u64) {
        let mut ended = None;
        for event in events {
            match &event.kind {
                EventKind::TokenCreated(NewToken { token, node, .. }) => {
                    let Some(node) = self.run.graph().find_node(node) else { continue };
                    let row = Prepared::row(self.run.graph(), node);
                    self.visit_of.insert(*token, self.played.visits.len());
                    let unit = self.run.graph().node(node).unit.map(|unit| self.run.graph().unit(unit));
                    let does = unit.is_none_or(|u| u.head == u.tail || (u.head != node && u.tail != node));
                    let (starts_ms, ends_ms, after) = (now, now, ended);
                    self.played.visits.push(Visit {
                        row,
                        starts_ms,
                        ends_ms,
                        does,
                        after,
                        ..Visit::default()
                    });
                }
                EventKind::TaskDispatched { token, .. } => {
                    let Some(visit) = self.visit(*token) else { continue };
                    if !std::mem::replace(&mut visit.began, true) {
                        visit.starts_ms = now;
                        let row = visit.row;
                        self.played.dispatched.push(row);
                    }
                }
                EventKind::TaskCompleted { token, .. }
                | EventKind::TaskFailed { token, .. }
                | EventKind::BranchArrived { token, .. } => ended = self.end(*token, now).or(ended),
                EventKind::TokenCancelled { token, .. } => {
                    self.end(*token, now);
                    if let Some(visit) = self.visit(*token) {
                        visit.cancelled = true;
                    }
                }
                EventKind::TokenSkipped { token, .. } => {
                    ended = self.end(*token, now).or(ended);
                    if let Some(visit) = self.visit(*token) {
                        visit.skipped = !visit.began;
                    }
                }
                _ => {}
            }
            self.played.ends_ms = now;
        }
    }

    fn visit(&mut self, token: TokenId) -> Option<&mut Visit> {
        self.visit_of.get(&token).map(|at| &mut self.played.visits[*at])
    }

    fn end(&mut self, token: TokenId, now: u64) -> Option<usize> {
        self.visit(token)?.ends_ms = now;
        self.visit_of.get(&token).copied()
    }

    /// Whether whoever waits for this token may go on without it: a join of some, not of all.
    fn can_do_without(&self, token: TokenId) -> bool {
        let (graph, state) = (self.run.graph(), self.run.state());
        let Some(token) = state.tokens.get(&token) else { return false };
        let unit = graph.node(NodeIx(token.node)).unit;
        let mut dependents = unit.into_iter().flat_map(|unit| &graph.unit(unit).dependents);
        let mut groups =
            std::iter::successors(token.branch.and_then(|at| state.groups.get(&at.group)), |group| {
                group.outer.and_then(|at| state.groups.get(&at.group))
            });
        dependents.any(|unit| graph.unit(*unit).join != Strategy::All)
            || groups.any(|group| {
                let by_transition = group.transition.as_ref().and_then(|name| graph.find_transition(name));
                let source = by_transition.map_or(Source::Node(NodeIx(group.node)), Source::Transition);
                graph.joins.get(&source).is_some_and(|join| join.strategy != Strategy::All)
            })
    }

    /// How long a task takes, and what it reports.
    fn task(&mut self, order: &TaskOrder) -> (u64, TaskReport) {
        let of = self.of.clone();
        let node = self.run.graph().find_node(&order.node).expect("an order names a node");
        let work = &of.works[Prepared::row(self.run.graph(), node)];
        let task = self.run.graph().node(node).task().expect("an order is for a task").clone();
        let known = of.assumed.known.get(node.0 as usize).copied().unwrap_or(false);
        if !known {
            let outcome = TaskOutcome::Completed { result: Value::empty_map() };
            return (work.duration.amount, TaskReport::new(outcome, work.spend()));
        }
        let rules = ExecutionRules { unwritten: TRIES, seed: 0, salt: 0, read_mutations: None };
        let mut execution = TaskExecution::start(order, task, rules);
        let mut after_ms = 0;
        let outcome = loop {
            let answer = match execution.next(|call| worst_try(&call.action)) {
                Next::Done(outcome) => break outcome,
                Next::Try(Try { call, number, .. }) => match &call.action.work {
                    Some(ActionWork::Mock(script)) => mock::outcome(script, number, &call.scope),
                    _ => break TaskOutcome::Completed { result: Value::empty_map() },
                },
            };
            after_ms += answer.delay_ms;
            let again = execution.tried(answer.result.map_err(TryFailure::answered), &answer.spend);
            after_ms += again.map_or(0, |again| again.delay_ms);
        };
        let mut report = execution.report(outcome, after_ms);
        report.spend.usd_micros = work.estimate.usd_micros.unwrap_or(report.spend.usd_micros);
        (work.estimate.duration_ms.unwrap_or(after_ms), report)
    }
}
