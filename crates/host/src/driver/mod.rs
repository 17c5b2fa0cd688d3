//! The driver: one thread that owns every live run and the only connection that writes.
//!
//! Everything that happens becomes a [`HostEvent`] in its queue. A turn takes what is waiting, lets the core
//! decide on each, writes all that follows in one transaction, and only then answers, publishes and performs.
//! While a transaction waits for the disk the queue fills, so that busy runs share commits and an idle
//! engine adds no delay.
//!
//! What a run asks of other runs (start a child, tell the parent) is decided in the same turn and committed
//! with it: between two runs there is no message to lose.

mod adopt;
mod ask;
mod children;
mod commit;
mod definitions;
mod fork;
mod hosted;
mod lanes;
mod learn;
mod purses;
mod rows;
mod timers;
mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wonder_core::def::Name;
use wonder_core::event::TokenId;
use wonder_core::input::TaskReport;
use wonder_core::run::Step;
use wonder_core::{Command, Input, Rejection};
use wonder_engine::{EngineError, ErrorCode, LogLine, Reply, Request, Response};

use crate::executor::Executor;
use crate::shared::Shared;
use crate::store::{Write, Writer};
use crate::{Leaving, clock, failpoint};

pub(crate) use definitions::{Definitions, stored_bundle};
pub(crate) use hosted::{Hosted, load};
use lanes::Lanes;
pub(crate) use learn::estimate;
pub(crate) use purses::Purses;
use timers::Timers;
pub(crate) use views::{gates_and_events, quiet_alone, view};

/// Taken in one turn at most, so that a flood cannot keep a commit from happening.
const TURN_EVENTS_MAX: usize = 4096;
/// Lines that tasks say wait so long for a commit to go along with.
const LINES_WAIT: Duration = Duration::from_millis(100);
/// Nothing to wait for: look again after this.
const IDLE: Duration = Duration::from_secs(3600);
/// With a deadline ahead look at the clock so often: it may be set, or the machine may have slept.
const CLOCK_CHECK: Duration = Duration::from_secs(5);
/// Nobody has asked for anything so long: time for the store's housekeeping.
const REST: Duration = Duration::from_millis(20);
/// With tasks that their project's budget holds: a new day may make room.
const NEW_DAY_CHECK: Duration = Duration::from_secs(60);

/// One attempt of one token of one run.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TaskKey {
    pub(crate) run: Name,
    pub(crate) token: TokenId,
    pub(crate) attempt: u32,
}

/// Who asked. None for an answer: the run is not in memory, and whoever asks can read it.
type Asker = oneshot::Sender<Reply<Option<Response>>>;

/// Everything that can happen to the driver.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Ask(Request, Asker),
    Report {
        key: TaskKey,
        report: TaskReport,
    },
    /// A worker is about to begin a task with effect `once`, and waits until that is recorded.
    Starting {
        key: TaskKey,
        go: oneshot::Sender<()>,
    },
    /// An order that had not begun was let go, because the host is leaving.
    Dropped {
        key: TaskKey,
    },
    Said {
        key: TaskKey,
        line: Box<LogLine>,
    },
    Close {
        leaving: Leaving,
        done: oneshot::Sender<()>,
    },
}

/// What one run makes happen to another, within a turn.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few wait at once, and none for longer than a turn")]
enum Word {
    Start(Box<children::ChildStart>),
    Say { run: Name, input: Input },
}

#[derive(Debug)]
struct Waiter {
    until: Instant,
    reply: Asker,
}

pub(crate) struct Driver {
    pub(crate) store: Writer,
    pub(crate) executor: Executor,
    pub(crate) shared: Shared,
    pub(crate) inbox: Receiver<HostEvent>,
    pub(crate) definitions: Definitions,
    runs: BTreeMap<Name, Hosted>,
    timers: Timers,
    lanes: Lanes,
    purses: Purses,
    waiters: BTreeMap<Name, Vec<Waiter>>,
    /// Ended runs that somebody may still ask about, the oldest first.
    lingering: VecDeque<Name>,
    /// To be taken before what the inbox holds.
    backlog: VecDeque<HostEvent>,
    words: VecDeque<Word>,
    /// Of this turn: to be committed, then answered, then performed.
    batch: Vec<Write>,
    touched: BTreeSet<Name>,
    /// Who asked, and about which run the answer is.
    replies: Vec<(Asker, Reply<Name>)>,
    starting: Vec<oneshot::Sender<()>>,
    orders: Vec<(Name, Command)>,
    /// Runs whose tasks said something: their followers want to know.
    heard: BTreeSet<Name>,
    lines: Vec<Write>,
    lines_due: Option<Instant>,
    next_run: i64,
    next_line: u64,
    leaving: Option<(Leaving, Instant)>,
    leavers: Vec<oneshot::Sender<()>>,
}

/// Why an input did not reach its run, or was refused by it.
#[derive(Debug)]
enum Refusal {
    Rejected(Rejection),
    Engine(EngineError),
}

impl Driver {
    pub(crate) fn new(
        store: Writer,
        executor: Executor,
        shared: Shared,
        inbox: Receiver<HostEvent>,
        purses: Purses,
    ) -> Reply<Driver> {
        let (run, definition, line) = store.reader().highest()?;
        let mut timers = Timers::default();
        for (at, run) in store.reader().timers(None)? {
            timers.set(&run, Some(at));
        }
        Ok(Driver {
            store,
            executor,
            shared,
            inbox,
            definitions: Definitions::new(definition + 1),
            runs: BTreeMap::new(),
            timers,
            lanes: Lanes::default(),
            purses,
            waiters: BTreeMap::new(),
            lingering: VecDeque::new(),
            backlog: VecDeque::new(),
            words: VecDeque::new(),
            batch: Vec::new(),
            touched: BTreeSet::new(),
            replies: Vec::new(),
            starting: Vec::new(),
            orders: Vec::new(),
            heard: BTreeSet::new(),
            lines: Vec::new(),
            lines_due: None,
            next_run: run + 1,
            next_line: line + 1,
            leaving: None,
            leavers: Vec::new(),
        })
    }

    /// Until it is told to close, and has.
    pub(crate) fn drive(mut self) {
        while !self.has_left() {
            self.gather();
            self.wake_due();
            self.settle();
            if !self.commit() {
                break;
            }
            self.perform();
            if self.store.is_far_behind() {
                self.store.write_back();
            }
        }
        for (_, waiters) in std::mem::take(&mut self.waiters) {
            waiters.into_iter().for_each(|waiter| drop(waiter.reply.send(Err(closing()))));
        }
        self.store.close();
        self.leavers.into_iter().for_each(|done| done.send(()).unwrap_or_default());
    }

    /// Overdue deadlines only, for somebody who came to look: what they lead to is left to the next owner.
    pub(crate) fn fire_overdue(&mut self) -> bool {
        self.wake_due();
        self.settle();
        self.commit()
    }

    fn has_left(&self) -> bool {
        let Some((_, until)) = self.leaving else { return false };
        let idle = self.executor.is_idle() && self.backlog.is_empty();
        idle || Instant::now() >= until
    }

    fn gather(&mut self) {
        if self.backlog.is_empty() {
            let patience = self.patience();
            let rests = self.store.is_behind() && patience > REST;
            match self.inbox.recv_timeout(if rests { REST } else { patience }) {
                Ok(event) => self.backlog.push_back(event),
                Err(RecvTimeoutError::Timeout) if rests => self.store.write_back(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.leaving.get_or_insert((Leaving::Now, Instant::now()));
                }
            }
        }
        let mut taken = 0;
        while taken < TURN_EVENTS_MAX {
            let Some(event) = self.backlog.pop_front().or_else(|| self.inbox.try_recv().ok()) else { break };
            // A fork reads what its source has recorded: all of it has to be there.
            if is_fork(&event) && !self.batch.is_empty() {
                self.backlog.push_front(event);
                break;
            }
            self.take(event);
            taken += 1;
        }
        self.let_waiters_go();
    }

    /// How long to wait for something to happen.
    fn patience(&self) -> Duration {
        if !self.touched.is_empty() {
            return Duration::ZERO;
        }
        let now = clock::now();
        let timer = self.timers.first().map(|at| Duration::from_millis(at.since(now)).min(CLOCK_CHECK));
        let moment = |at: Instant| at.saturating_duration_since(Instant::now());
        let lines = self.lines_due.map(moment);
        let leaving = self.leaving.map(|(_, until)| moment(until));
        let waiters = self.waiters.values().flatten().map(|waiter| moment(waiter.until)).min();
        let day = self.purses.holds_any().then_some(NEW_DAY_CHECK);
        [timer, lines, leaving, waiters, day].into_iter().flatten().min().unwrap_or(IDLE).min(IDLE)
    }

    fn take(&mut self, event: HostEvent) {
        match event {
            HostEvent::Ask(request, reply) => self.ask(request, reply),
            HostEvent::Report { key, report } => self.report(key, report),
            HostEvent::Starting { key, go } => {
                if let Some(hosted) = self.runs.get_mut(&key.run) {
                    hosted.started.insert((key.token.0, key.attempt));
                    let (run, token, attempt) = (hosted.no, key.token.0, key.attempt);
                    self.batch.push(Write::Started { run, token, attempt });
                }
                self.starting.push(go);
            }
            HostEvent::Dropped { key } => self.is_back(&key),
            HostEvent::Said { key, line } => self.said(&key, line),
            HostEvent::Close { leaving, done } => self.leave(leaving, done),
        }
    }

    /// A task is not out any more. A run that has ended may now say so, whatever becomes of the report.
    fn is_back(&mut self, key: &TaskKey) {
        self.executor.ended(key);
        self.give_back(key);
        if self.runs.get(&key.run).is_some_and(|hosted| hosted.run.status().is_end() && !hosted.told) {
            self.touched.insert(key.run.clone());
        }
    }

    fn report(&mut self, key: TaskKey, report: TaskReport) {
        self.is_back(&key);
        // What was stopped because the host leaves has not ended: the next owner runs it again.
        let stopped = matches!(report.outcome, wonder_core::input::TaskOutcome::Cancelled);
        if stopped && matches!(self.leaving, Some((Leaving::Now, _))) {
            return;
        }
        let spend = report.spend.clone();
        let input = Input::TaskFinished { token: key.token, attempt: key.attempt, report };
        // A report that comes too late, or twice, is refused and changes nothing.
        if self.deliver(&key.run, input).is_ok()
            && let Some(project) = self.runs.get(&key.run).map(|hosted| hosted.project.clone())
        {
            self.spend(&project, &spend);
        }
    }

    fn said(&mut self, key: &TaskKey, mut line: Box<LogLine>) {
        let Some(hosted) = self.runs.get(&key.run) else { return };
        line.number = self.next_line;
        self.next_line += 1;
        self.heard.extend([key.run.clone(), hosted.root.clone()]);
        self.lines.push(Write::Log { run: hosted.no, line });
        self.lines_due.get_or_insert_with(|| Instant::now() + LINES_WAIT);
    }

    fn leave(&mut self, leaving: Leaving, done: oneshot::Sender<()>) {
        let until = match leaving {
            Leaving::Drain => Instant::now() + Duration::from_secs(365 * 24 * 3600),
            Leaving::Now => Instant::now() + self.executor.grace() + Duration::from_secs(1),
        };
        if leaving == Leaving::Now {
            self.executor.begin_nothing_more();
            self.executor.stop_all();
        }
        // Leaving at once after leaving slowly is faster; the other way round changes nothing.
        let until = self.leaving.map_or(until, |(_, before)| before.min(until));
        self.leaving = Some((leaving, until));
        self.leavers.push(done);
    }

    /// Runs whose deadline has passed are told the time. Each once a turn: a run that yields is woken again
    /// in the next, so that others get their turn.
    fn wake_due(&mut self) {
        for run in self.timers.due(clock::now()) {
            if let Err(Refusal::Engine(_)) = self.deliver(&run, Input::Wake) {
                self.timers.set(&run, None);
            }
            // A time read from the database may be an old one: the run says its own.
            self.touched.insert(run);
        }
    }

    /// One input to one run.
    fn deliver(&mut self, id: &Name, input: Input) -> Result<(), Refusal> {
        self.hosted(id).map_err(Refusal::Engine)?;
        let hosted = self.runs.get_mut(id).expect("it was just loaded");
        // A run that breaks an invariant is set aside with its evidence; the others go on.
        let handled = catch_unwind(AssertUnwindSafe(|| hosted.run.handle(input, clock::now())));
        let step = match handled {
            Ok(Ok(step)) => step,
            Ok(Err(rejection)) => return Err(Refusal::Rejected(rejection)),
            Err(panic) => {
                let why = panic_text(&*panic);
                return Err(Refusal::Engine(self.quarantine(id, why)));
            }
        };
        self.follow_up(id, step);
        Ok(())
    }

    /// What a run decided: its events go into the batch, its commands wait for the commit.
    fn follow_up(&mut self, id: &Name, step: Step) {
        self.touched.insert(id.clone());
        self.record(id, &step.events);
        for command in step.commands {
            self.command(id, command);
        }
    }

    fn command(&mut self, id: &Name, command: Command) {
        match command {
            Command::RunTask(_) | Command::CancelTask { .. } => self.orders.push((id.clone(), command)),
            // Gates are rows that follow from events.
            Command::OpenGate { .. } | Command::CloseGate { .. } | Command::RemindGate { .. } => {}
            Command::StartChild(order) => self.order_child(id, *order),
            Command::CancelChild { child, .. } => {
                let reason = "its parent was cancelled".to_owned();
                self.words
                    .push_back(Word::Say { run: child, input: Input::Cancel { reason, grace_ms: None } });
            }
            Command::PauseChild { child, .. } => {
                let by = "its parent".into();
                self.words.push_back(Word::Say { run: child, input: Input::Pause { by } });
            }
            Command::ResumeChild { child, .. } => {
                let by = "its parent".into();
                self.words.push_back(Word::Say { run: child, input: Input::Resume { by } });
            }
        }
    }

    /// What runs say to each other, until nobody has anything to say; then the rows that follow from it.
    fn settle(&mut self) {
        loop {
            while let Some(word) = self.words.pop_front() {
                match word {
                    Word::Start(start) => self.start_child(*start),
                    // A child that has ended, or a word said twice, refuses; that is fine.
                    Word::Say { run, input } => drop(self.deliver(&run, input)),
                }
            }
            self.tell_ends();
            self.make_room();
            if self.words.is_empty() {
                break;
            }
        }
        self.write_rows();
    }

    /// Sets a run aside with its evidence.
    fn quarantine(&mut self, id: &Name, why: String) -> EngineError {
        if let Some(hosted) = self.runs.remove(id) {
            let (run, at) = (hosted.no, clock::now().0);
            self.batch.retain(|write| !matches!(write, Write::Events { run: of, .. } if *of == run));
            if hosted.stored.is_none() {
                let row = hosted.inserted(id, hosted.update(false));
                self.batch.push(Write::RunInsert(Box::new(row)));
            }
            self.batch.push(Write::Quarantine { run, evidence: why.clone(), at });
        }
        self.timers.set(id, None);
        self.touched.remove(id);
        quarantined(id, &why)
    }

    /// After the commit: answers, then news, then work.
    fn perform(&mut self) {
        for (reply, about) in std::mem::take(&mut self.replies) {
            // Whoever asked may be gone.
            drop(reply.send(about.map(|run| self.shown(&run))));
        }
        for go in std::mem::take(&mut self.starting) {
            go.send(()).unwrap_or_default();
        }
        failpoint::hit("answered");
        let touched = std::mem::take(&mut self.touched);
        self.shared.publish(&touched);
        if self.lines.is_empty() && !self.heard.is_empty() {
            self.shared.publish(&std::mem::take(&mut self.heard));
        }
        let mut orders = std::mem::take(&mut self.orders);
        for (run, command) in orders.drain(..) {
            self.order(&run, command);
            failpoint::hit("ordered");
        }
        // Its room is for the next turn.
        orders.append(&mut self.orders);
        self.orders = orders;
        self.release_held();
        self.answer_waiters(&touched);
        self.park(touched);
    }

    fn order(&mut self, id: &Name, command: Command) {
        let Some(hosted) = self.runs.get(id) else { return };
        let begins = matches!(command, Command::RunTask(_));
        if begins && !self.shared.is_driven(&hosted.root) {
            return;
        }
        let command = if begins { self.in_place(id, command) } else { Some(command) };
        let Some(command) = command else { return };
        match command {
            Command::RunTask(order) => {
                let Some(order) = self.within_budget(order) else { return };
                let Some(hosted) = self.runs.get(id) else { return };
                let Some(task) = hosted.run.graph().tasks.get(&order.task).cloned() else { return };
                let done = self.executor.start(order, task, hosted.workdir.clone());
                self.backlog.extend(done);
            }
            Command::CancelTask { token, attempt } => {
                let key = TaskKey { run: id.clone(), token, attempt };
                self.give_back(&key);
                if !self.executor.cancel(&key) {
                    // It is not running here, so it has ended: every dispatched task is answered.
                    let outcome = wonder_core::input::TaskOutcome::Cancelled;
                    let report = TaskReport { outcome, spend: Default::default(), tries: 0 };
                    self.backlog.push_back(HostEvent::Report { key, report });
                }
            }
            _ => unreachable!("only tasks are ordered after a commit"),
        }
    }
}

fn is_fork(event: &HostEvent) -> bool {
    matches!(event, HostEvent::Ask(Request::Fork(_), _))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a rule broke: {}", text.unwrap_or_else(|| "no message".to_owned()))
}

pub(crate) fn quarantined(id: &str, why: &str) -> EngineError {
    EngineError::new(ErrorCode::Quarantined, format!("run {id} is set aside: {why}"))
        .help("Its events are kept as they are; other runs go on. Please report it with `wonder events`.")
}

pub(crate) fn closing() -> EngineError {
    EngineError::new(ErrorCode::Closing, "the process that owns the database is leaving")
}
