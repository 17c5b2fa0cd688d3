//! What performs tasks, if it is not the host's own worker: a test's script, say.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wonder_core::command::TaskOrder;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::Task;
use wonder_core::input::{TaskOutcome, TaskReport};

use crate::driver::{HostEvent, Queue, TaskKey};

/// Performs the tasks that runs order, instead of the host's own worker.
///
/// It is told of a task after everything that led to it is committed; of a task with effect `once`, after
/// that it begins is committed too. It is told of every task at once: how many it performs at a time is its
/// own affair.
pub trait TaskPerformer: fmt::Debug + Send + Sync {
    /// Begins a task. Called on the driver's thread, so it must not block; the report may come later, from
    /// any thread.
    fn begin(&self, task: OrderedTask);
}

/// One attempt of a task that a run has ordered, to be answered with one report.
#[derive(Debug)]
pub struct OrderedTask {
    pub order: Box<TaskOrder>,
    pub task: Arc<Task>,
    /// Where relative paths and commands start.
    pub workdir: Arc<PathBuf>,
    /// Cancelled when the run does not want the result any more, or the host leaves.
    pub cancelled: CancellationToken,
    reply: TaskReply,
}

impl OrderedTask {
    pub(crate) fn new(
        order: Box<TaskOrder>,
        task: Arc<Task>,
        workdir: Arc<PathBuf>,
        cancelled: CancellationToken,
        driver: Queue,
    ) -> OrderedTask {
        let key = TaskKey::of(&order);
        let reply = TaskReply { key: Some(key), driver, cancelled: cancelled.clone() };
        OrderedTask { order, task, workdir, cancelled, reply }
    }

    /// Nothing will be heard of it any more, as when a worker is cut off: the run goes by its own deadlines, and
    /// nobody waits for the report.
    pub fn lose(mut self) {
        if let Some(key) = self.reply.key.take() {
            self.reply.driver.send(HostEvent::Dropped { key });
        }
    }

    /// The task's one report. When this returns, it is in the driver's queue.
    pub fn report(mut self, report: TaskReport) {
        self.reply.send(report);
    }
}

/// Sends one report, whatever happens: a run would wait for ever for a task that was only forgotten.
struct TaskReply {
    key: Option<TaskKey>,
    driver: Queue,
    cancelled: CancellationToken,
}

impl TaskReply {
    fn send(&mut self, report: TaskReport) {
        if let Some(key) = self.key.take() {
            self.driver.send(HostEvent::Report { key, report });
        }
    }
}

impl fmt::Debug for TaskReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskReply").field(&self.key).finish()
    }
}

impl Drop for TaskReply {
    fn drop(&mut self) {
        let outcome = match self.cancelled.is_cancelled() {
            true => TaskOutcome::Cancelled,
            false => {
                let message = "what performed the task dropped it without a report";
                let failure = Failure::new(ErrorKind::Internal, message);
                TaskOutcome::Failed { failure, retry: false, step: None }
            }
        };
        self.send(TaskReport::new(outcome, Default::default()));
    }
}
