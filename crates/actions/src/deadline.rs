//! What ends an action from outside: its task is cancelled, or the time of the task or of the action is
//! over. It only says so; how an action stops is the action's business.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Why an action has to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stopped {
    Cancelled,
    TaskTimeout,
    ActionTimeout,
}

#[derive(Clone, Copy, Debug)]
pub struct Deadline<'a> {
    cancel: &'a CancellationToken,
    task: Option<Instant>,
    action: Option<Instant>,
}

impl<'a> Deadline<'a> {
    pub(crate) fn of_task(
        cancel: &'a CancellationToken,
        started: Instant,
        timeout_ms: Option<u64>,
    ) -> Deadline<'a> {
        Deadline { cancel, task: after(started, timeout_ms), action: None }
    }

    /// The same, for an action that starts now. Its time is capped by what the task has left, and then it
    /// is the task's time that ends it.
    pub(crate) fn of_action(&self, timeout_ms: Option<u64>) -> Deadline<'a> {
        let own = timeout_ms.and_then(|_| after(Instant::now(), timeout_ms));
        let action = own.filter(|own| self.task.is_none_or(|task| *own < task));
        Deadline { action, ..*self }
    }

    /// Whether there is reason to stop already.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.cancel.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        match self.next() {
            Some((at, stopped)) if at <= Instant::now() => Err(stopped),
            _ => Ok(()),
        }
    }

    /// Ready when the action has to stop.
    pub async fn reached(&self) -> Stopped {
        let Some((at, stopped)) = self.next() else {
            self.cancel.cancelled().await;
            return Stopped::Cancelled;
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Stopped::Cancelled,
            () = sleep_until(at) => stopped,
        }
    }

    /// Does `work`, which may be dropped at any point, unless there is reason to stop first.
    pub async fn limit<F: Future>(&self, work: F) -> Result<F::Output, Stopped> {
        tokio::select! {
            biased;
            stopped = self.reached() => Err(stopped),
            done = work => Ok(done),
        }
    }

    pub async fn wait(&self, ms: u64) -> Result<(), Stopped> {
        if ms == 0 {
            // Others have their turn, however often we do this.
            tokio::task::yield_now().await;
            return self.check();
        }
        self.limit(tokio::time::sleep(Duration::from_millis(ms))).await
    }

    fn next(&self) -> Option<(Instant, Stopped)> {
        match (self.action, self.task) {
            (Some(action), _) => Some((action, Stopped::ActionTimeout)),
            (None, Some(task)) => Some((task, Stopped::TaskTimeout)),
            (None, None) => None,
        }
    }
}

/// A time too far away to be a time is no limit.
fn after(start: Instant, ms: Option<u64>) -> Option<Instant> {
    start.checked_add(Duration::from_millis(ms?))
}
