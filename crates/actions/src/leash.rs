//! What ends an action from outside: its task is cancelled, or the time of the task or of the action is
//! over. It only says so; how an action stops is the action's business.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Why an action has to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Halt {
    Cancelled,
    TaskTime,
    ActionTime,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Leash<'a> {
    cancel: &'a CancellationToken,
    task: Option<Instant>,
    action: Option<Instant>,
}

impl<'a> Leash<'a> {
    pub(crate) fn of_task(
        cancel: &'a CancellationToken,
        started: Instant,
        timeout_ms: Option<u64>,
    ) -> Leash<'a> {
        Leash { cancel, task: after(started, timeout_ms), action: None }
    }

    /// The same, for an action that starts now. Its time is capped by what the task has left, and then it
    /// is the task's time that ends it.
    pub(crate) fn of_action(&self, timeout_ms: Option<u64>) -> Leash<'a> {
        let own = timeout_ms.and_then(|_| after(Instant::now(), timeout_ms));
        let action = own.filter(|own| self.task.is_none_or(|task| *own < task));
        Leash { action, ..*self }
    }

    /// Whether there is reason to stop already.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        if self.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
        match self.next() {
            Some((at, halt)) if at <= Instant::now() => Err(halt),
            _ => Ok(()),
        }
    }

    /// Ready when the action has to stop.
    pub(crate) async fn pulled(&self) -> Halt {
        let Some((at, halt)) = self.next() else {
            self.cancel.cancelled().await;
            return Halt::Cancelled;
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Halt::Cancelled,
            () = sleep_until(at) => halt,
        }
    }

    /// Does `work`, which may be dropped at any point, unless there is reason to stop first.
    pub(crate) async fn hold<F: Future>(&self, work: F) -> Result<F::Output, Halt> {
        tokio::select! {
            biased;
            halt = self.pulled() => Err(halt),
            done = work => Ok(done),
        }
    }

    pub(crate) async fn wait(&self, ms: u64) -> Result<(), Halt> {
        if ms == 0 {
            // Others have their turn, however often we do this.
            tokio::task::yield_now().await;
            return self.check();
        }
        self.hold(tokio::time::sleep(Duration::from_millis(ms))).await
    }

    fn next(&self) -> Option<(Instant, Halt)> {
        match (self.action, self.task) {
            (Some(action), _) => Some((action, Halt::ActionTime)),
            (None, Some(task)) => Some((task, Halt::TaskTime)),
            (None, None) => None,
        }
    }
}

/// A time too far away to be a time is no limit.
fn after(start: Instant, ms: Option<u64>) -> Option<Instant> {
    start.checked_add(Duration::from_millis(ms?))
}
