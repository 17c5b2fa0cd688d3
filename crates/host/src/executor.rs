//! Tasks that are out: each on the async runtime, so many at once, each answered with one report.
//!
//! It decides nothing about runs. An order that is already under way is not begun again; one that finds no place
//! waits in a line; one that has not begun when the host leaves is let go, for it is still owed.

mod line;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use line::Line;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wonder_actions::{Job, OutputLine, Sink, Stream, TextDelta, Worker};
use wonder_core::command::TaskOrder;
use wonder_core::def::{Effect, Name};
use wonder_core::event::TokenId;
use wonder_core::graph::{Coordinated, Task, Work};
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::template::Template;
use wonder_engine::{LogLine, LogStream, TextPiece};

use crate::clock::Clock;
use crate::driver::{Go, HostEvent, Queue, TaskKey, unbegun};
use crate::performer::{OrderedTask, TaskPerformer};
use crate::shared::Shared;

/// Lines one attempt may say; what comes after is counted, not kept.
const LINES_MAX: u32 = 10_000;
/// Bytes of one line that are kept.
const LINE_BYTES_MAX: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct Executor {
    runtime: Handle,
    worker: Worker,
    places: usize,
    places_taken: usize,
    out: BTreeMap<TaskKey, Out>,
    /// Tasks that wait for a place; they are out too.
    line: Line,
    driver: Queue,
    queue_timeout: Option<Duration>,
    grace: Duration,
    leaving: bool,
    /// Commands of an owner before us may still live: what they do is not to be done twice at once.
    waits_for_commands: bool,
    clock: Clock,
    shared: Shared,
    /// Performs tasks instead of the worker.
    performer: Option<Arc<dyn TaskPerformer>>,
    /// Tasks with effect `once` for it, until it is recorded that they begin.
    kept_back: BTreeMap<TaskKey, OrderedTask>,
}

/// A task that has been ordered and not been reported.
#[derive(Debug)]
struct Out {
    cancel: CancellationToken,
    has_place: bool,
}

/// An order and what it needs to begin.
#[derive(Debug)]
struct Ordered {
    key: TaskKey,
    order: Box<TaskOrder>,
    task: Arc<Task>,
    workdir: Arc<PathBuf>,
    cancel: CancellationToken,
}

/// What an executor is made with.
#[derive(Debug)]
pub(crate) struct ExecutorSetup {
    pub(crate) runtime: Handle,
    pub(crate) worker: Worker,
    pub(crate) tasks_max: usize,
    pub(crate) queue_timeout: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) driver: Queue,
    pub(crate) clock: Clock,
    pub(crate) shared: Shared,
    pub(crate) performer: Option<Arc<dyn TaskPerformer>>,
    pub(crate) waits_for_commands: bool,
}

impl Executor {
    pub(crate) fn new(setup: ExecutorSetup) -> Executor {
        let ExecutorSetup { runtime, worker, tasks_max, queue_timeout, grace, driver, .. } = setup;
        let ExecutorSetup { clock, shared, performer, waits_for_commands, .. } = setup;
        Executor {
            runtime,
            worker,
            places: tasks_max.max(1),
            places_taken: 0,
            out: BTreeMap::new(),
            line: Line::default(),
            driver,
            queue_timeout,
            grace,
            leaving: false,
            waits_for_commands,
            clock,
            shared,
            performer,
            kept_back: BTreeMap::new(),
        }
    }

    /// Begins a task, or puts it in line. What can be done at once, without waiting for anything, is done at once,
    /// and its report given back: a no-op is cheaper than handing it to another thread.
    pub(crate) fn start(
        &mut self,
        order: Box<TaskOrder>,
        task: Arc<Task>,
        workdir: Arc<PathBuf>,
    ) -> Option<HostEvent> {
        let key = TaskKey::of(&order);
        if self.leaving || self.out.contains_key(&key) {
            return None;
        }
        let cancel = CancellationToken::new();
        self.out.insert(key.clone(), Out { cancel: cancel.clone(), has_place: false });
        if self.performer.is_some() {
            let once = task.effect == Effect::Once;
            let ordered = OrderedTask::new(order, task, workdir, cancel, self.driver.clone());
            self.kept_back.insert(key.clone(), ordered);
            if once {
                return Some(HostEvent::Starting { key, go: Go::Executor });
            }
            self.begin(&key);
            return None;
        }
        let ordered = Ordered { key, order, task, workdir, cancel };
        let free = !self.waits_for_commands && self.places_taken < self.places;
        if free && self.line.is_empty() {
            return self.take_place(ordered);
        }
        self.line.join(ordered, Instant::now());
        None
    }

    /// Begins a task for which there is a place.
    fn take_place(&mut self, ordered: Ordered) -> Option<HostEvent> {
        let light = is_light(&ordered.task);
        let key = ordered.key.clone();
        let (worker, clock, shared) = (self.worker.clone(), self.clock.clone(), self.shared.clone());
        let driver = self.driver.clone();
        let execution = TaskExecution { worker, driver: driver.clone(), clock, shared, ordered };
        if !light {
            self.hold_place(&key);
            self.runtime.spawn(async move { driver.send(execution.run().await) });
            return None;
        }
        let mut execution = Box::pin(execution.run());
        let runtime = self.runtime.enter();
        let first = execution.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(runtime);
        match first {
            Poll::Ready(event) => Some(event),
            Poll::Pending => {
                self.hold_place(&key);
                self.runtime.spawn(async move { driver.send(execution.await) });
                None
            }
        }
    }

    fn hold_place(&mut self, key: &TaskKey) {
        if let Some(out) = self.out.get_mut(key) {
            out.has_place = true;
            self.places_taken += 1;
        }
    }

    /// Hands a task that was kept back to what performs tasks.
    pub(crate) fn begin(&mut self, key: &TaskKey) {
        if let Some((performer, task)) = self.performer.as_ref().zip(self.kept_back.remove(key)) {
            performer.begin(task);
        }
    }

    /// False if nobody will report it: it is not out, or had not begun.
    pub(crate) fn cancel(&mut self, key: &TaskKey) -> bool {
        if self.line.remove(key).is_some() {
            self.out.remove(key);
            return false;
        }
        self.out.get(key).inspect(|out| out.cancel.cancel()).is_some()
    }

    /// A task is not out any more. Who has its place next is decided when its run has said what is ready now.
    pub(crate) fn ended(&mut self, key: &TaskKey) {
        if self.out.remove(key).is_some_and(|out| out.has_place) {
            self.places_taken -= 1;
        }
    }

    /// Free places go to those in line; what they do at once is reported.
    pub(crate) fn fill_places(&mut self, reports: &mut VecDeque<HostEvent>) {
        while !self.waits_for_commands
            && self.places_taken < self.places
            && let Some(next) = self.line.next()
        {
            reports.extend(self.take_place(next));
        }
    }

    /// The commands of owners before us are gone.
    pub(crate) fn commands_gone(&mut self) {
        self.waits_for_commands = false;
    }

    /// Tasks that have waited for a place as long as they may are given up.
    pub(crate) fn give_up_waiting(&mut self, now: Instant, reports: &mut VecDeque<HostEvent>) {
        while self.gives_up_at().is_some_and(|at| at <= now)
            && let Some((task, since)) = self.line.take_longest()
        {
            let waited_ms = now.saturating_duration_since(since).as_millis() as u64;
            let report = unbegun(TaskOutcome::NotTaken { waited_ms });
            reports.push_back(HostEvent::Report { key: task.key, report });
        }
    }

    /// When the next task has waited for a place as long as it may.
    pub(crate) fn gives_up_at(&self) -> Option<Instant> {
        self.line.longest_since()?.checked_add(self.queue_timeout?)
    }

    pub(crate) fn has_tasks_of(&self, run: &Name) -> bool {
        let first = TaskKey { run: run.clone(), token: TokenId(0), attempt: 0 };
        self.out.range(first..).next().is_some_and(|(key, _)| key.run == *run)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn tasks_out(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// What has not begun is still owed: the next owner begins it.
    pub(crate) fn begin_nothing_more(&mut self, dropped: &mut VecDeque<HostEvent>) {
        self.leaving = true;
        while let Some((task, _)) = self.line.take_longest() {
            dropped.push_back(HostEvent::Dropped { key: task.key });
        }
    }

    pub(crate) fn stop_all(&mut self) {
        self.out.values().for_each(|out| out.cancel.cancel());
        if self.performer.is_some() {
            // There is no process or connection to wait for.
            self.out.clear();
            self.kept_back.clear();
        }
    }
}

/// Whether beginning it takes no time worth mentioning: no process, no connection, no text to render.
fn is_light(task: &Task) -> bool {
    task.steps.iter().all(|step| match (&step.action.work, &step.action.coordinated) {
        (Some(Work::Mock(mock)), _) => mock.is_plain(),
        (_, Some(Coordinated::Assert(assertion))) => {
            assertion.message.as_ref().is_none_or(Template::is_plain)
        }
        (_, coordinated) => coordinated.is_some(),
    })
}

/// One task, from its begin to its report.
struct TaskExecution {
    worker: Worker,
    driver: Queue,
    clock: Clock,
    shared: Shared,
    ordered: Ordered,
}

impl TaskExecution {
    async fn run(self) -> HostEvent {
        let key = self.ordered.key.clone();
        match self.perform().await {
            Some(report) => HostEvent::Report { key, report },
            None => HostEvent::Dropped { key },
        }
    }

    /// None if the host left before it could begin.
    async fn perform(self) -> Option<TaskReport> {
        let Ordered { key, order, task, workdir, cancel } = self.ordered;
        if task.effect == Effect::Once {
            let (go, recorded) = oneshot::channel();
            let go = Go::Worker(go);
            self.driver.send(HostEvent::Starting { key: key.clone(), go });
            recorded.await.ok()?;
        }
        let sink = Arc::new(TaskSink {
            node: order.node.to_string(),
            key,
            driver: self.driver,
            clock: self.clock,
            shared: self.shared,
            lines: AtomicU32::new(0),
            pieces: AtomicU64::new(0),
        });
        let seed = order.token.0 ^ u64::from(order.attempt) << 48;
        let job = Job { order, task, workdir: workdir.to_path_buf(), cancel, sink, seed };
        Some(self.worker.perform(job).await)
    }
}

/// What a task prints goes to the driver, which keeps it; text that it is still producing goes to those who listen.
#[derive(Debug)]
struct TaskSink {
    node: String,
    key: TaskKey,
    driver: Queue,
    clock: Clock,
    shared: Shared,
    lines: AtomicU32,
    pieces: AtomicU64,
}

impl Drop for TaskSink {
    fn drop(&mut self) {
        // Whatever it waited for, the task is over.
        self.shared.waits_for_rate(&self.key, None);
    }
}

impl Sink for TaskSink {
    fn line(&self, said: OutputLine) {
        let number = self.lines.fetch_add(1, Ordering::Relaxed);
        let text = match number {
            0..LINES_MAX => cut(said.text),
            LINES_MAX => format!("(more than {LINES_MAX} lines: the rest is not kept)"),
            _ => return,
        };
        let line = LogLine {
            number: 0,
            run: self.key.run.to_string(),
            at: self.clock.now(),
            node: self.node.clone(),
            token: self.key.token.0,
            attempt: self.key.attempt,
            step: said.step.to_string(),
            stream: match said.stream {
                Stream::Stdout => LogStream::Stdout,
                Stream::Stderr => LogStream::Stderr,
                Stream::Note => LogStream::Note,
            },
            text,
        };
        self.driver.send(HostEvent::Printed { key: self.key.clone(), line: Box::new(line) });
    }

    fn delta(&self, delta: TextDelta) {
        self.shared.text().say(TextPiece {
            run: self.key.run.to_string(),
            node: self.node.clone(),
            token: self.key.token.0,
            attempt: self.key.attempt,
            step: delta.step.to_string(),
            tries_before: delta.tries_before,
            number: self.pieces.fetch_add(1, Ordering::Relaxed),
            text: delta.text,
        });
    }

    fn waits_for_rate(&self, profile: Option<&Name>) {
        self.shared.waits_for_rate(&self.key, profile);
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LINE_BYTES_MAX {
        let end = (0..=LINE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
