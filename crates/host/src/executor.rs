//! Tasks that are out: each on the async runtime, so many at once, each answered with one report.
//!
//! It decides nothing about runs. An order that is already under way is not begun again; one that has not
//! begun when the host leaves is let go, for it is still owed.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Sender;
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

use crate::clock;
use crate::driver::{HostEvent, TaskKey};

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
    driver: Sender<HostEvent>,
    queue_timeout: Option<Duration>,
    grace: Duration,
    leaving: Arc<AtomicBool>,
}

/// What an executor is made with.
#[derive(Debug)]
pub(crate) struct Equipment {
    pub(crate) runtime: Handle,
    pub(crate) worker: Worker,
    pub(crate) tasks_max: usize,
    pub(crate) queue_timeout: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) driver: Sender<HostEvent>,
}

impl Executor {
    pub(crate) fn new(equipment: Equipment) -> Executor {
        let Equipment { runtime, worker, tasks_max, queue_timeout, grace, driver } = equipment;
        Executor {
            runtime,
            worker,
            places: Arc::new(Semaphore::new(tasks_max.max(1))),
            out: BTreeMap::new(),
            driver,
            queue_timeout,
            grace,
            leaving: Arc::default(),
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
        let key = TaskKey { run: order.run.clone(), token: order.token, attempt: order.attempt };
        if self.leaving.load(Ordering::Relaxed) || self.out.contains_key(&key) {
            return None;
        }
        let light = is_light(&task);
        let cancel = CancellationToken::new();
        self.out.insert(key.clone(), cancel.clone());
        let errand = Errand {
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
        };
        let driver = self.driver.clone();
        if !light {
            self.runtime.spawn(async move { tell(&driver, errand.run().await) });
            return None;
        }
        let mut errand = Box::pin(errand.run());
        let runtime = self.runtime.enter();
        let first = errand.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(runtime);
        match first {
            Poll::Ready(event) => Some(event),
            Poll::Pending => {
                self.runtime.spawn(async move { tell(&driver, errand.await) });
                None
            }
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

    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    pub(crate) fn begin_nothing_more(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop_all(&self) {
        self.out.values().for_each(CancellationToken::cancel);
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
fn tell(driver: &Sender<HostEvent>, event: HostEvent) {
    drop(driver.send(event));
}

/// One order, from its turn to its report.
struct Errand {
    worker: Worker,
    driver: Sender<HostEvent>,
    leaving: Arc<AtomicBool>,
    places: Arc<Semaphore>,
    queue_timeout: Option<Duration>,
    key: TaskKey,
    order: Box<TaskOrder>,
    task: Arc<Task>,
    workdir: Arc<PathBuf>,
    cancel: CancellationToken,
}

enum Turn {
    Mine(OwnedSemaphorePermit),
    Cancelled,
    TooLate,
}

impl Errand {
    async fn run(self) -> HostEvent {
        let key = self.key.clone();
        match self.turn().await {
            // What has not begun is still owed: the next owner begins it.
            _ if self.leaving.load(Ordering::Relaxed) => HostEvent::Dropped { key },
            Turn::Cancelled => HostEvent::Report { key, report: untried(TaskOutcome::Cancelled) },
            Turn::TooLate => HostEvent::Report { key, report: untried(self.waited_too_long()) },
            Turn::Mine(place) => {
                let report = self.perform().await;
                drop(place);
                match report {
                    Some(report) => HostEvent::Report { key, report },
                    None => HostEvent::Dropped { key },
                }
            }
        }
    }

    async fn turn(&self) -> Turn {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Turn::Mine(place);
        }
        let patience = async {
            match self.queue_timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            place = self.places.clone().acquire_owned() => match place {
                Ok(place) => Turn::Mine(place),
                Err(_) => Turn::Cancelled,
            },
            () = self.cancel.cancelled() => Turn::Cancelled,
            () = patience => Turn::TooLate,
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
            self.driver.send(HostEvent::Starting { key: self.key.clone(), go }).ok()?;
            recorded.await.ok()?;
        }
        let sink = Arc::new(Lines {
            node: self.order.node.to_string(),
            key: self.key,
            driver: self.driver,
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

fn untried(outcome: TaskOutcome) -> TaskReport {
    TaskReport { outcome, spend: Default::default(), tries: 0 }
}

/// What a task says goes to the driver, which keeps it.
#[derive(Debug)]
struct Lines {
    node: String,
    key: TaskKey,
    driver: Sender<HostEvent>,
    said: AtomicU32,
}

impl Sink for Lines {
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
            at: clock::now(),
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
        drop(self.driver.send(HostEvent::Said { key: self.key.clone(), line: Box::new(line) }));
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
