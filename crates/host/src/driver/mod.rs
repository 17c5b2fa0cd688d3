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
mod budgets;
mod children;
mod commit;
mod concurrency;
mod definitions;
mod fork;
mod hosted;
mod orders;
mod queue;
mod redefine;
mod requests;
mod rows;
mod statistics;
mod tell;
mod timers;
mod turn;
mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wonder_core::command::TaskOrder;
use wonder_core::def::Name;
use wonder_core::event::TokenId;
use wonder_core::input::TaskReport;
use wonder_core::{Input, Rejection, Time};
use wonder_engine::{Act, EngineError, ErrorCode, LogLine, Reply, Request};

use crate::embedded::Embedded;
use crate::executor::Executor;
use crate::shared::Shared;
use crate::store::{Write, Writer};
use crate::{Clock, Leaving};

pub(crate) use budgets::ProjectBudgets;
use concurrency::ConcurrencyLimits;
pub(crate) use definitions::{Definitions, are_those_of, stored_bundle};
pub(crate) use hosted::{Hosted, load, not_loaded, refuse_quarantined};
pub(crate) use orders::unbegun;
use queue::Asker;
pub(crate) use queue::{Inbox, Queue, busy, queue};
pub(crate) use statistics::estimate;
use timers::Timers;
use turn::{RunMessage, Turn};
pub(crate) use views::{gates_and_events, quiet_alone, view};

/// Taken in one turn at most, so that a flood cannot keep a commit from happening.
const TURN_EVENTS_MAX: usize = 4096;
/// Lines that tasks print are committed with whatever else is, after so long at the latest.
const LINES_WAIT: Duration = Duration::from_millis(100);
/// The longest time to wait when there is nothing to wait for.
const IDLE: Duration = Duration::from_secs(3600);
/// How often to look at the clock while a deadline is ahead: the machine may have slept.
const CLOCK_CHECK: Duration = Duration::from_secs(5);
/// After so long without anything to do the store's log is written back.
const REST: Duration = Duration::from_millis(20);
/// How often to look whether a new day has made room, while budgets hold tasks.
const NEW_DAY_CHECK: Duration = Duration::from_secs(60);

/// One attempt of one token of one run.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TaskKey {
    pub(crate) run: Name,
    pub(crate) token: TokenId,
    pub(crate) attempt: u32,
}

impl TaskKey {
    pub(crate) fn of(order: &TaskOrder) -> TaskKey {
        TaskKey { run: order.run.clone(), token: order.token, attempt: order.attempt }
    }
}

/// Everything that can happen to the driver.
#[derive(Debug)]
pub(crate) enum HostEvent {
    Ask(Embedded, Asker),
    Report {
        key: TaskKey,
        report: TaskReport,
    },
    /// A worker is about to begin a task with effect `once`, and waits until that is recorded.
    Starting {
        key: TaskKey,
        go: Go,
    },
    /// An order that had not begun was let go, because the host is leaving.
    Dropped {
        key: TaskKey,
    },
    /// A task printed a line.
    Printed {
        key: TaskKey,
        line: Box<LogLine>,
    },
    /// What commands an owner before us left behind has ended.
    CommandsGone,
    /// A test has moved the clock.
    ClockMoved,
    /// Somebody wants to know when there is nothing more to do.
    Settle(oneshot::Sender<Settled>),
    Close {
        leaving: Leaving,
        done: oneshot::Sender<()>,
    },
}

/// Who begins a task with effect `once`, now that it is recorded that it begins.
#[derive(Debug)]
pub(crate) enum Go {
    /// A worker that waits for this.
    Worker(oneshot::Sender<()>),
    /// The executor, which has kept it back.
    Executor,
}

/// How a host stands when there is nothing more for it to do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Settled {
    /// When the next run wants to be woken.
    pub next_deadline: Option<Time>,
    /// Tasks that have not been reported.
    pub tasks_out: usize,
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
    pub(crate) inbox: Inbox,
    pub(crate) clock: Clock,
    pub(crate) definitions: Definitions,
    runs: BTreeMap<Name, Hosted>,
    timers: Timers,
    concurrency: ConcurrencyLimits,
    budgets: ProjectBudgets,
    waiters: BTreeMap<Name, Vec<Waiter>>,
    /// Ended runs that somebody may still ask about, the oldest first.
    ended_kept: VecDeque<Name>,
    /// To be taken before what the inbox holds.
    backlog: VecDeque<HostEvent>,
    /// Runs whose tasks printed lines that are not published yet.
    runs_with_lines: BTreeSet<Name>,
    lines: Vec<Write>,
    lines_due: Option<Instant>,
    next_run: i64,
    next_line: u64,
    /// How long a commit may fail before whoever waits for it is told.
    storage_patience: Duration,
    /// When ids of requests are forgotten next, in milliseconds since 1970.
    forget_at: i64,
    leaving: Option<(Leaving, Instant)>,
    closers: Vec<oneshot::Sender<()>>,
    /// Who wants to know when there is nothing more to do.
    settling: Vec<oneshot::Sender<Settled>>,
}

/// What a driver is made with.
pub(crate) struct DriverSetup {
    pub(crate) store: Writer,
    pub(crate) executor: Executor,
    pub(crate) shared: Shared,
    pub(crate) inbox: Inbox,
    pub(crate) budgets: ProjectBudgets,
    pub(crate) clock: Clock,
    pub(crate) storage_patience: Duration,
}

/// Why an input did not reach its run, or was refused by it.
#[derive(Debug)]
enum Refusal {
    Rejected(Rejection),
    Engine(EngineError),
}

impl Driver {
    pub(crate) fn new(setup: DriverSetup) -> Reply<Driver> {
        let DriverSetup { store, executor, shared, inbox, budgets, clock, storage_patience } = setup;
        let (run, definition, line) = store.reader().highest()?;
        let mut timers = Timers::default();
        for (at, run) in store.reader().timers(None)? {
            timers.set(&run, Some(at));
        }
        let definitions = Definitions::new(definition + 1).for_worker(executor.worker());
        Ok(Driver {
            store,
            executor,
            shared,
            inbox,
            clock,
            definitions,
            runs: BTreeMap::new(),
            timers,
            concurrency: ConcurrencyLimits::default(),
            budgets,
            waiters: BTreeMap::new(),
            ended_kept: VecDeque::new(),
            backlog: VecDeque::new(),
            runs_with_lines: BTreeSet::new(),
            lines: Vec::new(),
            lines_due: None,
            next_run: run + 1,
            next_line: line + 1,
            forget_at: i64::MIN,
            storage_patience,
            leaving: None,
            closers: Vec::new(),
            settling: Vec::new(),
        })
    }

    /// Takes turns until it is told to close, and has.
    pub(crate) fn drive(mut self) {
        // One value for all turns: each begins with what the last one left, and with its room.
        let mut turn = Turn::default();
        while !self.has_left() {
            self.gather(&mut turn);
            self.wake_due(&mut turn);
            self.settle(&mut turn);
            if !self.commit(&mut turn) {
                break;
            }
            self.perform(&mut turn);
            self.tell_settled(&turn);
            if self.store.is_far_behind() {
                self.store.write_back();
            }
        }
        for (_, waiters) in std::mem::take(&mut self.waiters) {
            waiters.into_iter().for_each(|waiter| waiter.reply.answer(Err(closing())));
        }
        self.store.close();
        self.closers.into_iter().for_each(|done| done.send(()).unwrap_or_default());
    }

    /// Overdue deadlines only, for somebody who came to look: what they lead to is left to the next owner.
    pub(crate) fn fire_overdue(&mut self) -> bool {
        let mut turn = Turn::default();
        self.wake_due(&mut turn);
        self.settle(&mut turn);
        self.commit(&mut turn)
    }

    fn has_left(&self) -> bool {
        let Some((_, until)) = self.leaving else { return false };
        let idle = self.executor.is_idle() && self.backlog.is_empty();
        idle || Instant::now() >= until
    }

    /// Takes what is waiting, or waits for something.
    fn gather(&mut self, turn: &mut Turn) {
        if self.backlog.is_empty() {
            let wait_time = self.wait_time(turn);
            let rests = self.store.is_behind() && wait_time > REST;
            match self.inbox.wait(if rests { REST } else { wait_time }) {
                Ok(event) => self.backlog.push_back(event),
                Err(RecvTimeoutError::Timeout) if rests => self.store.write_back(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.leaving.get_or_insert((Leaving::Now, Instant::now()));
                }
            }
        }
        self.executor.give_up_waiting(Instant::now(), &mut self.backlog);
        let mut taken = 0;
        while taken < TURN_EVENTS_MAX {
            let Some(event) = self.backlog.pop_front().or_else(|| self.inbox.next()) else { break };
            // It reads what a run has recorded: all of it has to be there.
            if reads_events(&event) && !turn.batch.is_empty() {
                self.backlog.push_front(event);
                break;
            }
            self.take(turn, event);
            taken += 1;
        }
        self.answer_late_waiters(turn);
    }

    /// How long to wait for something to happen.
    fn wait_time(&self, turn: &Turn) -> Duration {
        if !turn.touched.is_empty() || !turn.batch.is_empty() || !self.settling.is_empty() {
            return Duration::ZERO;
        }
        let timer = self.timers.first().and_then(|at| self.clock.wait_until(at));
        let timer = timer.map(|wait| wait.min(CLOCK_CHECK));
        let moment = |at: Instant| at.saturating_duration_since(Instant::now());
        let lines = self.lines_due.map(moment);
        let leaving = self.leaving.map(|(_, until)| moment(until));
        let waiters = self.waiters.values().flatten().map(|waiter| moment(waiter.until)).min();
        let day = self.budgets.holds_any().then_some(NEW_DAY_CHECK);
        let line = self.executor.gives_up_at().map(moment);
        [timer, lines, leaving, waiters, day, line].into_iter().flatten().min().unwrap_or(IDLE).min(IDLE)
    }

    fn take(&mut self, turn: &mut Turn, event: HostEvent) {
        match event {
            HostEvent::Ask(request, reply) => self.ask(turn, request, reply),
            HostEvent::Report { key, report } => self.report(turn, key, report),
            HostEvent::Starting { key, go } => {
                if let Some(hosted) = self.runs.get_mut(&key.run) {
                    hosted.started.insert((key.token.0, key.attempt));
                    let (run, token, attempt) = (hosted.no, key.token.0, key.attempt);
                    turn.batch.push(Write::Started { run, token, attempt });
                }
                turn.starting.push((key, go));
            }
            HostEvent::Dropped { key } => self.task_ended(turn, &key),
            HostEvent::Printed { key, line } => self.printed(&key, line),
            HostEvent::CommandsGone => self.executor.commands_gone(),
            HostEvent::ClockMoved => {}
            HostEvent::Settle(reply) => self.settling.push(reply),
            HostEvent::Close { leaving, done } => self.leave(leaving, done),
        }
    }

    /// A task is not out any more. A run that has ended may now say so, whatever becomes of the report.
    fn task_ended(&mut self, turn: &mut Turn, key: &TaskKey) {
        self.executor.ended(key);
        self.budgets.give_back(key);
        if self.runs.get(&key.run).is_some_and(|hosted| hosted.run.status().is_end() && !hosted.end_told) {
            turn.touched.insert(key.run.clone());
        }
    }

    fn report(&mut self, turn: &mut Turn, key: TaskKey, report: TaskReport) {
        self.task_ended(turn, &key);
        // What was stopped because the host leaves has not ended: the next owner runs it again.
        let stopped = matches!(report.outcome, wonder_core::input::TaskOutcome::Cancelled);
        if stopped && matches!(self.leaving, Some((Leaving::Now, _))) {
            return;
        }
        let spend = report.spend.clone();
        let input = Input::TaskFinished { token: key.token, attempt: key.attempt, report };
        // A report that comes too late, or twice, is refused and changes nothing.
        if self.deliver(turn, &key.run, input).is_ok()
            && let Some(project) = self.runs.get(&key.run).map(|hosted| hosted.project.clone())
        {
            self.spend(turn, &project, &spend);
        }
    }

    fn printed(&mut self, key: &TaskKey, mut line: Box<LogLine>) {
        let Some(hosted) = self.runs.get(&key.run) else { return };
        line.number = self.next_line;
        self.next_line += 1;
        self.runs_with_lines.extend([key.run.clone(), hosted.root.clone()]);
        self.lines.push(Write::Log { run: hosted.no, line });
        self.lines_due.get_or_insert_with(|| Instant::now() + LINES_WAIT);
    }

    fn leave(&mut self, leaving: Leaving, done: oneshot::Sender<()>) {
        let until = match leaving {
            Leaving::Drain => Instant::now() + Duration::from_secs(365 * 24 * 3600),
            Leaving::Now => Instant::now() + self.executor.grace() + Duration::from_secs(1),
        };
        if leaving == Leaving::Now {
            self.executor.begin_nothing_more(&mut self.backlog);
            self.executor.stop_all();
        }
        // Who was told to leave at once does not stay longer because somebody else may wait.
        let until = self.leaving.map_or(until, |(_, before)| before.min(until));
        self.leaving = Some((leaving, until));
        self.closers.push(done);
    }

    /// Runs whose deadline has passed are told the time. Each once a turn: a run that yields is woken again
    /// in the next, so that others get their turn.
    fn wake_due(&mut self, turn: &mut Turn) {
        for run in self.timers.due(self.clock.deadlines_until()) {
            if let Err(Refusal::Engine(_)) = self.deliver(turn, &run, Input::Wake) {
                self.timers.set(&run, None);
            }
            // A time read from the database may be an old one: the run says its own.
            turn.touched.insert(run);
            // What it says to other runs reaches them before their own deadlines of the same moment.
            self.pass_messages(turn);
        }
    }
}

/// Whether taking it means reading all events of a run: a fork, or a retry with another definition.
fn reads_events(event: &HostEvent) -> bool {
    let HostEvent::Ask(Embedded::Ask { request, .. }, _) = event else { return false };
    match request {
        Request::Fork(_) => true,
        Request::Act { act: Act::Retry { definition, .. }, .. } => !definition.is_empty(),
        _ => false,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a rule broke: {}", text.unwrap_or_else(|| "no message".to_owned()))
}

pub(crate) fn closing() -> EngineError {
    EngineError::new(ErrorCode::Closing, "the process that owns the database is leaving")
}
