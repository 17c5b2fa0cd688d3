//! Tasks that are out: each on the async runtime, so many at once, each answered with one report.
//!
//! It decides nothing about runs. An order that is already under way is not begun again; one that has not
//! begun when the host leaves is let go, for it is still owed.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use wonder_actions::{Job, OutputLine, Sink, Stream, Worker};
use wonder_core::command::TaskOrder;
use wonder_core::def::{Effect, Implementation, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::TokenId;
use wonder_core::graph::Task;
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_engine::{LogLine, LogStream};

use crate::clock::Clock;
use crate::driver::{Go, HostEvent, Queue, TaskKey, unbegun};
use crate::performer::{OrderedTask, TaskPerformer};

/// Lines one attempt may say; what comes after is counted, not kept.
const LINES_MAX: u32 = 10_000;
/// Bytes of one line that are kept.
const LINE_BYTES_MAX: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct Executor {
    runtime: Handle,
    worker: Worker,
    places: Arc<Semaphore>,
    out: BTreeMap<TaskKey, CancellationToken>,
    driver: Queue,
    queue_timeout: Option<Duration>,
    grace: Duration,
    leaving: Arc<AtomicBool>,
    clock: Clock,
    /// Performs tasks instead of the worker.
    performer: Option<Arc<dyn TaskPerformer>>,
    /// Tasks with effect `once` for it, until it is recorded that they begin.
    kept_back: BTreeMap<TaskKey, OrderedTask>,
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
    pub(crate) performer: Option<Arc<dyn TaskPerformer>>,
}

impl Executor {
    pub(crate) fn new(setup: ExecutorSetup) -> Executor {
        let ExecutorSetup { runtime, worker, tasks_max, queue_timeout, grace, driver, clock, performer } =
            setup;
        Executor {
            runtime,
            worker,
            places: Arc::new(Semaphore::new(tasks_max.max(1))),
            out: BTreeMap::new(),
            driver,
            queue_timeout,
            grace,
            leaving: Arc::default(),
            clock,
            performer,
            kept_back: BTreeMap::new(),
        }
    }

    /// Begins a task. What can be done at once, without waiting for anything, is done at once, and its
    /// report given back: a no-op is cheaper than handing it to another thread.
    pub(crate) fn start(
        &mut self,
        order: Box<TaskOrder>,
        task: Arc<Task>,
        workdir: Arc<PathBuf>,
    ) -> Option<HostEvent> {
        let key = TaskKey::of(&order);
        if self.leaving.load(Ordering::Relaxed) || self.out.contains_key(&key) {
            return None;
        }
        let cancel = CancellationToken::new();
        self.out.insert(key.clone(), cancel.clone());
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
        let light = is_light(&task);
        let execution = TaskExecution {
            worker: self.worker.clone(),
            driver: self.driver.clone(),
            leaving: self.leaving.clone(),
            places: self.places.clone(),
            queue_timeout: self.queue_timeout,
            key,
            order,
            task,
            workdir,
            cancel,
            clock: self.clock.clone(),
        };
        let driver = self.driver.clone();
        if !light {
            self.runtime.spawn(async move { tell(&driver, execution.run().await) });
            return None;
        }
        let mut execution = Box::pin(execution.run());
        let runtime = self.runtime.enter();
        let first = execution.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(runtime);
        match first {
            Poll::Ready(event) => Some(event),
            Poll::Pending => {
                self.runtime.spawn(async move { tell(&driver, execution.await) });
                None
            }
        }
    }

    /// Hands a task that was kept back to what performs tasks.
    pub(crate) fn begin(&mut self, key: &TaskKey) {
        if let Some((performer, task)) = self.performer.as_ref().zip(self.kept_back.remove(key)) {
            performer.begin(task);
        }
    }

    /// False if it is not out.
    pub(crate) fn cancel(&mut self, key: &TaskKey) -> bool {
        self.out.get(key).inspect(|cancel| cancel.cancel()).is_some()
    }

    pub(crate) fn ended(&mut self, key: &TaskKey) {
        self.out.remove(key);
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

    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    pub(crate) fn begin_nothing_more(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop_all(&mut self) {
        self.out.values().for_each(CancellationToken::cancel);
        if self.performer.is_some() {
            // There is no process or connection to wait for.
            self.out.clear();
            self.kept_back.clear();
        }
    }
}

/// Whether beginning it takes no time worth mentioning: no process, no connection.
fn is_light(task: &Task) -> bool {
    task.steps.iter().all(|step| {
        let implementation = &step.action.def.implementation;
        matches!(implementation, Implementation::Mock(_)) || step.action.coordinated.is_some()
    })
}

/// The driver is gone only when the host is.
fn tell(driver: &Queue, event: HostEvent) {
    driver.send(event);
}

/// One ordered task, from waiting for a place to its report.
struct TaskExecution {
    worker: Worker,
    driver: Queue,
    leaving: Arc<AtomicBool>,
    places: Arc<Semaphore>,
    queue_timeout: Option<Duration>,
    key: TaskKey,
    order: Box<TaskOrder>,
    task: Arc<Task>,
    workdir: Arc<PathBuf>,
    cancel: CancellationToken,
    clock: Clock,
}

/// How waiting for a place among the tasks that are out ended.
enum Admission {
    Admitted(OwnedSemaphorePermit),
    Cancelled,
    TimedOut,
}

impl TaskExecution {
    async fn run(self) -> HostEvent {
        let key = self.key.clone();
        match self.admission().await {
            // What has not begun is still owed: the next owner begins it.
            _ if self.leaving.load(Ordering::Relaxed) => HostEvent::Dropped { key },
            Admission::Cancelled => HostEvent::Report { key, report: unbegun(TaskOutcome::Cancelled) },
            Admission::TimedOut => HostEvent::Report { key, report: unbegun(self.waited_too_long()) },
            Admission::Admitted(place) => {
                let report = self.perform().await;
                drop(place);
                match report {
                    Some(report) => HostEvent::Report { key, report },
                    None => HostEvent::Dropped { key },
                }
            }
        }
    }

    async fn admission(&self) -> Admission {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Admission::Admitted(place);
        }
        let timeout = async {
            match self.queue_timeout {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            place = self.places.clone().acquire_owned() => match place {
                Ok(place) => Admission::Admitted(place),
                Err(_) => Admission::Cancelled,
            },
            () = self.cancel.cancelled() => Admission::Cancelled,
            () = timeout => Admission::TimedOut,
        }
    }

    fn waited_too_long(&self) -> TaskOutcome {
        let waited = self.queue_timeout.unwrap_or_default().as_millis();
        let message = format!("no worker was free for {waited} ms (queue_timeout)");
        let failure = Failure::new(ErrorKind::Timeout, message);
        TaskOutcome::Failed { failure, retry: false, step: None }
    }

    /// None if the host left before it could begin.
    async fn perform(self) -> Option<TaskReport> {
        if self.task.effect == Effect::Once {
            let (go, recorded) = oneshot::channel();
            let go = Go::Worker(go);
            self.driver.send(HostEvent::Starting { key: self.key.clone(), go });
            recorded.await.ok()?;
        }
        let sink = Arc::new(LineSink {
            node: self.order.node.to_string(),
            key: self.key,
            driver: self.driver,
            clock: self.clock,
            said: AtomicU32::new(0),
        });
        let seed = self.order.token.0 ^ u64::from(self.order.attempt) << 48;
        let job = Job {
            order: self.order,
            task: self.task,
            workdir: self.workdir.to_path_buf(),
            cancel: self.cancel,
            sink,
            seed,
        };
        Some(self.worker.perform(job).await)
    }
}

/// What a task prints goes to the driver, which keeps it.
#[derive(Debug)]
struct LineSink {
    node: String,
    key: TaskKey,
    driver: Queue,
    clock: Clock,
    said: AtomicU32,
}

impl Sink for LineSink {
    fn line(&self, said: OutputLine) {
        let number = self.said.fetch_add(1, Ordering::Relaxed);
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
}

fn cut(mut text: String) -> String {
    if text.len() > LINE_BYTES_MAX {
        let end = (0..=LINE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
