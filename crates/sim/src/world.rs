//! A root run and its children on virtual time, in one thread. The clock jumps to the next thing that
//! happens: a task's report, a deadline, an input from outside. What a host would make durable goes into a log per
//! run; what it would perform is performed at once or put into the queue.
//!
//! After every input the [`Monitor`] looks at the run. The world stops at the first violation, so that the
//! evidence stands at the end of the trace.

mod commands;
mod conditions;
mod crash;
mod fork;

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::Run;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::{Bundle, Name};
use wonder_core::error::ErrorKind;
use wonder_core::event::{Event, EventKind, GateId, TokenId};
use wonder_core::graph::Graph;
use wonder_core::input::{ChildOutcome, Input, StartRun, TaskReport};
use wonder_core::run::RunStatus;
use wonder_core::state::Timer;
use wonder_core::time::Time;
use wonder_core::value::Value;

use crate::executor::{Performance, Tries};
use crate::host::{Handled, HostInput, Memory, ScenarioHost};
use crate::inputs::{OutsideInput, ScriptedInput};
use crate::monitor::{Monitor, Walked};
use crate::names::Names;
use crate::outcomes::Outcomes;
use crate::rng::{Rng, salt};
use crate::trace;

pub use crash::difference;

/// When every simulated run starts: 2026-01-01T00:00:00Z.
pub const START: Time = Time(1_767_225_600_000);
/// The root run's id.
pub const ROOT: &str = "run";
/// Inputs of one world; a run that needs more does not end.
const INPUTS_MAX: usize = 50_000;
/// Reminders in a row with nothing between them: nobody will come.
const REMINDERS_MAX: u32 = 20;

/// Workflows that can be started by name.
pub type Library = BTreeMap<Name, Definition>;

/// A workflow as it is stored, and compiled.
#[derive(Clone, Debug)]
pub struct Definition {
    pub bundle: Arc<Bundle>,
    pub graph: Arc<Graph>,
}

/// Every run of a world by its id: the root and its children.
pub type Runs = BTreeMap<Name, Hosted>;

/// What stays the same while a world goes on.
#[derive(Clone, Debug)]
pub struct Setting {
    pub library: Library,
    pub workflow: Name,
    pub start: StartRun,
    pub outcomes: Arc<dyn Outcomes>,
    pub inputs: Vec<ScriptedInput>,
    /// Shuffle what happens at the same time by this seed, instead of first come, first served.
    pub shuffle: Option<u64>,
    /// Deliver every report and answer twice: the second must be refused and change nothing.
    pub repeat: bool,
    /// This attempt fails, whatever its script says.
    pub failing: Option<Failing>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Failing {
    pub task: TaskKey,
    pub kind: ErrorKind,
}

/// One attempt of one token of one run.
pub type TaskKey = (Name, TokenId, u32);

#[derive(Clone, Debug)]
pub struct World<H = Memory> {
    host: H,
    setting: Arc<Setting>,
    now: Time,
    runs: Runs,
    queue: BTreeMap<QueuePosition, QueueItem>,
    /// When deadlines last fired: nothing from outside comes between those of one moment.
    waking: Option<Time>,
    /// Numbers what goes into the queue.
    order: u64,
    tasks: BTreeMap<TaskKey, TaskOut>,
    tries: Tries,
    conditions: Vec<conditions::Condition>,
    journal: Vec<Line>,
    inputs_handled: usize,
    /// Reminders since anything else happened.
    reminders: u32,
    /// What came from outside and was not taken, and why.
    refusals: Vec<String>,
    violations: Vec<String>,
    /// While it comes back from a crash: what was lost, and where in the queue it stood.
    lost: Vec<(QueuePosition, QueueItem)>,
}

/// When something happens, and its turn among all that happens then: what runs tell each other goes first,
/// for a real host delivers that in the same step; the rest in the order it was asked for.
type QueuePosition = (Time, Rank, u64);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    BetweenRuns,
    FromOutside,
}

/// A run as its host keeps it.
#[derive(Clone, Debug)]
pub struct Hosted {
    pub run: Run,
    /// The graph it started with.
    pub graph: Arc<Graph>,
    pub log: Vec<Event>,
    /// Lengths of the log after each step: where a real host's transactions end.
    pub boundaries: Vec<usize>,
    pub names: Names,
    pub monitor: Monitor,
    parent: Option<(Name, TokenId, u32)>,
    /// Its end has been reported to its parent.
    end_reported: bool,
}

/// A task that has been ordered. Kept after its report, so that a repeated order is recognised.
#[derive(Clone, Debug)]
struct TaskOut {
    started: Time,
    order: u64,
    performance: Performance,
    /// When its report comes, and its place in the queue; never, if nothing is heard of it again.
    due: Option<QueuePosition>,
    report: TaskReport,
    cancelled: bool,
    reported: bool,
    /// The host has been told that nothing will be heard of it.
    lost: bool,
}

#[derive(Clone, Debug)]
enum QueueItem {
    Report {
        task: TaskKey,
        report: TaskReport,
    },
    StartChild {
        child: Name,
        workflow: Name,
        start: Box<StartRun>,
    },
    ChildReport {
        parent: Name,
        token: TokenId,
        attempt: u32,
        outcome: ChildOutcome,
        spend: Spend,
    },
    /// A parent calls a child back, pauses or resumes it.
    TellChild {
        child: Name,
        input: Input,
    },
    /// `gate`: the one that was found to be open.
    Outside {
        run: Name,
        what: OutsideInput,
        gate: Option<GateId>,
    },
}

/// One line of the trace to be.
#[derive(Clone, Debug)]
struct Line {
    run: Name,
    at: Time,
    text: String,
    /// Which event of its run it tells of, by its place in the log.
    event: Option<usize>,
}

impl World {
    pub fn new(setting: Setting) -> World {
        World::on(Memory::default(), setting)
    }
}

impl<H: ScenarioHost> World<H> {
    /// A world whose runs this host has.
    pub fn on(host: H, setting: Setting) -> World<H> {
        let graph = setting.library.get(&setting.workflow).map(|definition| definition.graph.clone());
        let (root, mut start) = (setting.start.id.clone(), setting.start.clone());
        start.child_budgets = child_budgets(&setting.library);
        let missing = format!("there is no workflow {}", setting.workflow);
        let mut world = World::empty(host, setting, START);
        match graph {
            Some(graph) => {
                world.runs.insert(root.clone(), Hosted::new(graph, None));
                // What is refused stands in the trace.
                drop(world.deliver(&root, Input::StartRun(Box::new(start)), false));
            }
            None => world.violations.push(missing),
        }
        world
    }

    fn empty(host: H, setting: Setting, now: Time) -> World<H> {
        World {
            host,
            conditions: conditions::of(&setting.inputs),
            setting: Arc::new(setting),
            now,
            runs: BTreeMap::new(),
            queue: BTreeMap::new(),
            waking: None,
            order: 0,
            tasks: BTreeMap::new(),
            tries: Tries::default(),
            journal: Vec::new(),
            inputs_handled: 0,
            reminders: 0,
            refusals: Vec::new(),
            violations: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Until nothing happens any more, or something is wrong.
    pub fn run_on(&mut self) {
        while self.advance() {}
    }

    /// The next thing that happens; false if nothing does.
    pub fn advance(&mut self) -> bool {
        if !self.violations.is_empty() {
            return false;
        }
        if self.inputs_handled > INPUTS_MAX {
            self.violations.push(format!("more than {INPUTS_MAX} inputs and no end"));
            return false;
        }
        self.meet_conditions();
        let next = self.next().filter(|_| self.reminders < REMINDERS_MAX);
        let Some(next) = next else {
            return if self.idle_conditions() { true } else { self.check_idle() };
        };
        match next {
            Next::Queued(place) => {
                self.now = self.now.max(place.0);
                self.waking = self.waking.filter(|_| place.1 == Rank::BetweenRuns);
                let item = self.queue.remove(&place).expect("it was just found");
                self.take(item);
            }
            Next::Deadline(at, run) => {
                self.now = self.now.max(at);
                self.waking = Some(self.now);
                self.wake(&run);
            }
        }
        true
    }

    fn wake(&mut self, run: &Name) {
        let first = |world: &Self| world.runs[run].run.state().timers.first().copied();
        let before = first(self);
        let accepted = self.deliver(run, Input::Wake, false).is_ok();
        // A run that yields wants to be woken at once, as often as it takes.
        let yields = before.is_some_and(|(_, timer)| timer == Timer::Continue);
        if first(self) == before && !yields {
            let refused = if accepted { "" } else { " (it was refused)" };
            self.violations.push(format!("{run} wants to be woken again for the same deadline{refused}"));
        }
    }

    fn next(&self) -> Option<Next> {
        let reminder = |(_, timer): &(Time, Timer)| matches!(timer, Timer::Reminder(_));
        if self.queue.is_empty()
            && self.runs.values().all(|hosted| hosted.run.state().timers.iter().all(reminder))
        {
            // Nobody is left who could answer: reminding goes on for ever.
            return None;
        }
        let queued = self.queue.keys().next().copied();
        let deadline = self.runs.values().filter_map(|hosted| hosted.run.next_deadline()).min();
        let first = [queued.map(|place| place.0), deadline].into_iter().flatten().min()?;
        let moment = first.max(self.now);
        let late = self.runs.iter().filter_map(|(id, hosted)| {
            let at = hosted.run.next_deadline().filter(|at| *at <= moment)?;
            Some(Next::Deadline(at, id.clone()))
        });
        if let Some(seed) = self.setting.shuffle {
            let due = self.queue.keys().take_while(|place| place.0 <= moment);
            let due = due.filter(|place| self.is_in_turn(**place)).map(|place| Next::Queued(*place));
            return due.chain(late).min_by_key(|next| self.shuffle_key(seed, next));
        }
        let late = late.min();
        // What was reported in time has come in time: the queue goes before a deadline of the same moment.
        // Once they have begun to fire, all of them do, and what runs tell each other about it comes between.
        let fires = late.is_some() && self.waking == Some(moment);
        let comes = |place: &QueuePosition| place.0 <= moment && (place.1 == Rank::BetweenRuns || !fires);
        queued.filter(comes).map(Next::Queued).or(late)
    }

    /// What a parent asks of one child comes in the order it was asked.
    fn is_in_turn(&self, key: QueuePosition) -> bool {
        let child = |item: &QueueItem| match item {
            QueueItem::StartChild { child, .. } => Some(child.clone()),
            QueueItem::TellChild { child, .. } => Some(child.clone()),
            _ => None,
        };
        let Some(own) = child(&self.queue[&key]) else { return true };
        !self.queue.range(..key).any(|(_, before)| child(before).as_ref() == Some(&own))
    }

    /// From what it is, not from its turn: what a crash repeats does not change the order of the rest.
    fn shuffle_key(&self, seed: u64, next: &Next) -> (u64, u64) {
        match next {
            Next::Deadline(at, run) => (Rng::of(seed, &[at.0 as u64, salt(run)]).draw(), 0),
            Next::Queued(key) => {
                let (name, token) = match &self.queue[key] {
                    QueueItem::Report { task: (run, token, attempt), .. } => {
                        (run, token.0 * 100 + u64::from(*attempt))
                    }
                    QueueItem::ChildReport { parent, token, .. } => (parent, token.0),
                    QueueItem::StartChild { child, .. } => (child, 1),
                    QueueItem::TellChild { child, .. } => (child, 2),
                    QueueItem::Outside { run, gate, .. } => (run, gate.map_or(2, |gate| gate.0)),
                };
                (Rng::of(seed, &[key.0.0 as u64, salt(name), token]).draw(), key.2)
            }
        }
    }

    fn take(&mut self, item: QueueItem) {
        match item {
            QueueItem::Report { task, report } => {
                let known = self.tasks.get_mut(&task).expect("only tasks that were ordered report");
                known.reported = true;
                let cancelled = known.cancelled;
                let (run, token, attempt) = task;
                drop(self.deliver(&run, Input::TaskFinished { token, attempt, report }, cancelled));
                // It may have ended before, and waited for this.
                self.report_end(&run);
            }
            QueueItem::ChildReport { parent, token, attempt, outcome, spend } => {
                drop(self.deliver(&parent, Input::ChildFinished { token, attempt, outcome, spend }, true));
            }
            QueueItem::StartChild { child, workflow, start } => self.start_child(child, &workflow, *start),
            // A child that has ended, or was told the same before, refuses; that is fine.
            QueueItem::TellChild { child, input } => drop(self.deliver(&child, input, true)),
            QueueItem::Outside { mut run, what, gate } => {
                if let OutsideInput::Tell { .. } = &what {
                    match self.takers(&run).as_slice() {
                        [taker] => run = taker.clone(),
                        [] => return self.refuse(&run, "tell: no agent works that would take a message"),
                        _ => return self.refuse(&run, "tell: several agents work, and none is named"),
                    }
                }
                if let Some(input) = self.input_of(&run, what, gate) {
                    drop(self.deliver(&run, input, false));
                }
            }
        }
    }

    /// One input to one run, and what follows from it; or why it was refused.
    fn deliver(&mut self, id: &Name, input: Input, quiet: bool) -> Result<(), String> {
        self.inputs_handled += 1;
        let described = describe(&input);
        let again = (self.setting.repeat && is_report(&input)).then(|| input.clone());
        let handled = self.hand_to_host(id, input);
        let found = self.host.violations().into_iter();
        self.violations.extend(found.map(|what| format!("{id}, after {described}: {what}")));
        match handled {
            Ok(handled) => {
                self.follow(handled);
                self.report_end(id);
                if let Some(again) = again {
                    self.expect_refusal(id, again);
                }
                Ok(())
            }
            Err(why) => {
                if !quiet {
                    self.refusals.push(format!("{described}: {why}"));
                    self.note(id, format!("refused {described}: {}", trace::cut(&why)));
                }
                Err(why)
            }
        }
    }

    fn refuse(&mut self, run: &Name, why: &str) {
        self.refusals.push(why.to_owned());
        self.note(run, format!("refused {why}"));
    }

    /// Events into the log, commands performed.
    fn follow(&mut self, handled: Handled) {
        for (run, events) in &handled.steps {
            self.record(run, events);
            self.open_gates(run, events);
        }
        for (run, command) in handled.commands {
            self.perform(&run, command);
        }
        for (run, _) in &handled.steps {
            self.lose_tasks_of(run);
        }
    }

    fn hand_to_host(&mut self, run: &Name, input: Input) -> Result<Handled, String> {
        let setting = self.setting.clone();
        self.host.handle(&mut self.runs, HostInput { setting: &setting, run, input, now: self.now })
    }

    fn record(&mut self, id: &Name, events: &[Event]) {
        let reminds = events.iter().all(|event| matches!(event.kind, EventKind::GateReminded { .. }));
        self.reminders = if reminds && self.queue.is_empty() { self.reminders + 1 } else { 0 };
        let hosted = self.runs.get_mut(id).expect("it has just answered");
        for (at, event) in events.iter().enumerate() {
            hosted.names.learn(&event.kind);
            let text = trace::event(event, &hosted.names, START);
            let place = Some(hosted.log.len() + at);
            self.journal.push(Line { run: id.clone(), at: event.at, text, event: place });
        }
        hosted.log.extend_from_slice(events);
        hosted.boundaries.push(hosted.log.len());
    }

    fn note(&mut self, id: &Name, text: String) {
        self.journal.push(Line { run: id.clone(), at: self.now, text, event: None });
    }

    /// Delivered twice: refused, and nothing has changed.
    fn expect_refusal(&mut self, id: &Name, input: Input) {
        let reported =
            |token, attempt| self.tasks.get(&(id.clone(), token, attempt)).is_some_and(|out| out.reported);
        for again in repeats(&input, reported) {
            let before = self.runs[id].run.state().clone();
            let (described, taken) = (describe(&again), self.hand_to_host(id, again).is_ok());
            if taken {
                self.violations.push(format!("{id}: {described} was taken a second time"));
            } else if *self.runs[id].run.state() != before {
                self.violations.push(format!("{id}: refusing {described} changed the run"));
            }
        }
    }

    /// Nothing is scheduled: every run has ended or says what it waits for.
    fn check_idle(&mut self) -> bool {
        for (id, hosted) in &self.runs {
            let run = &hosted.run;
            if !run.status().is_end() && run.status() != RunStatus::Queued && run.why().is_empty() {
                self.violations.push(format!(
                    "{id} is {}, nothing is scheduled, and it waits for nothing",
                    run.status()
                ));
            }
        }
        false
    }

    /// The host, to ask it what it shows of the runs.
    pub fn host(&mut self) -> &mut H {
        &mut self.host
    }

    pub fn root(&self) -> &Hosted {
        &self.runs[&self.setting.start.id]
    }

    pub fn runs(&self) -> impl Iterator<Item = (&Name, &Hosted)> {
        self.runs.iter()
    }

    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// What came from outside and was not taken, and why.
    pub fn refusals(&self) -> &[String] {
        &self.refusals
    }

    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Inputs so far.
    pub fn inputs_handled(&self) -> usize {
        self.inputs_handled
    }

    /// Every attempt that was ordered so far, in order.
    pub fn ordered(&self) -> Vec<TaskKey> {
        let mut tasks: Vec<_> = self.tasks.iter().map(|(key, out)| (out.order, key)).collect();
        tasks.sort();
        tasks.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// How often each row of the lifecycle was walked, over all runs.
    pub fn walked(&self) -> Walked {
        let mut sum = Walked::default();
        self.runs.values().for_each(|hosted| sum.add(hosted.monitor.walked()));
        sum
    }

    /// Every event of every run, in the order in which they were recorded.
    pub fn history(&self) -> impl Iterator<Item = (&Name, &Event)> {
        let of = |line: &Line| self.runs.get(&line.run).zip(line.event);
        let lines = self.journal.iter().filter_map(move |line| Some((&line.run, of(line)?)));
        lines.filter_map(|(run, (hosted, at))| Some((run, hosted.log.get(at)?)))
    }

    pub fn trace(&self) -> String {
        self.lines(|_| true)
    }

    /// What is told of one run.
    pub fn trace_of(&self, run: &Name) -> String {
        self.lines(|line| line.run == *run)
    }

    fn lines(&self, which: impl Fn(&Line) -> bool) -> String {
        let root = &self.setting.start.id;
        let mut text = String::new();
        for line in self.journal.iter().filter(|line| which(line)) {
            let run = (line.run != *root).then_some(&*line.run);
            text.push_str(&trace::line(START, line.at, run, &line.text));
            text.push('\n');
        }
        text
    }
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Next {
    Queued(QueuePosition),
    Deadline(Time, Name),
}

impl Hosted {
    pub fn new(graph: Arc<Graph>, parent: Option<(Name, TokenId, u32)>) -> Hosted {
        Hosted {
            run: Run::new(graph.clone()),
            graph,
            log: Vec::new(),
            boundaries: Vec::new(),
            names: Names::default(),
            monitor: Monitor::default(),
            parent,
            end_reported: false,
        }
    }

    /// `completed`, `failed`, ..., or `waiting`, as people see it.
    pub fn status(&self) -> String {
        if self.run.is_waiting() { "waiting".to_owned() } else { self.run.status().to_string() }
    }
}

fn is_report(input: &Input) -> bool {
    matches!(input, Input::TaskFinished { .. } | Input::ChildFinished { .. } | Input::GateAnswered { .. })
}

/// The same input again, and the same report for the attempt before it, if that has reported.
fn repeats(input: &Input, reported: impl Fn(TokenId, u32) -> bool) -> Vec<Input> {
    let stale = match input.clone() {
        Input::TaskFinished { token, attempt, report } if attempt > 0 && reported(token, attempt - 1) => {
            Some(Input::TaskFinished { token, attempt: attempt - 1, report })
        }
        _ => None,
    };
    [Some(input.clone()), stale].into_iter().flatten().collect()
}

/// An input as a refusal or a violation names it.
fn describe(input: &Input) -> String {
    match input {
        Input::StartRun(_) => "start".to_owned(),
        Input::Release => "release".to_owned(),
        Input::TaskFinished { token, attempt, .. } => format!("report of attempt {attempt} of token {token}"),
        Input::Wake => "wake".to_owned(),
        Input::GateAnswered { gate, by, answer } => {
            format!("answer to gate {gate} by {by} {}", trace::brief(answer))
        }
        Input::EventArrived { name, key, .. } => {
            let key = if key.is_null() { String::new() } else { format!(" key={key}") };
            format!("event {name}{key}")
        }
        Input::ChildFinished { token, attempt, .. } => {
            format!("child report of attempt {attempt} of token {token}")
        }
        Input::Cancel { .. } => "cancel".to_owned(),
        Input::Kill { .. } => "kill".to_owned(),
        Input::Pause { .. } => "pause".to_owned(),
        Input::Resume { .. } => "resume".to_owned(),
        Input::Retry { .. } => "retry".to_owned(),
    }
}

/// What a host knows of the workflows that a run may call.
fn child_budgets(library: &Library) -> BTreeMap<Name, Allowance> {
    let bounded = library.iter().filter_map(|(name, known)| Some((name.clone(), known.graph.budget?)));
    bounded.map(|(name, budget)| (name, budget.allowance())).collect()
}

pub fn start_of(input: Value, seed: u64) -> StartRun {
    let mut start = StartRun { seed, ..StartRun::new(ROOT, input) };
    // What is simulated is small; a loop without an end meets this bound soon.
    start.limits.tokens_max = 2_000;
    start
}
