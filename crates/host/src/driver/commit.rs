//! Committing a turn, and what happens when that fails.
//!
//! A transaction that failed is tried again as it is: nothing of it was answered, published or performed, so
//! nothing has happened yet. Until it succeeds requests are refused with the reason, and what tasks report
//! waits. Another owner, later, finds the runs as they were before.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use wonder_engine::EngineError;

use super::{Driver, HostEvent};

const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_MOST: Duration = Duration::from_secs(2);

impl Driver {
    /// False if the host is to close with the turn not committed.
    pub(super) fn commit(&mut self) -> bool {
        let lines_due = !self.settling.is_empty() || self.lines_due.is_some_and(|due| Instant::now() >= due);
        if self.batch.is_empty() && !lines_due && self.leaving.is_none() {
            return true;
        }
        self.batch.append(&mut self.lines);
        self.lines_due = None;
        if self.batch.is_empty() {
            return true;
        }
        let mut pause = AGAIN_FIRST;
        while let Err(error) = self.store.commit(&self.batch) {
            self.stall(&error);
            if !self.hold(pause, &error) {
                return false;
            }
            pause = (pause * 2).min(AGAIN_MOST);
        }
        if self.shared.stalled().is_some() {
            self.shared.stall(None);
        }
        self.batch.clear();
        true
    }

    /// Whoever waits for an answer is told that there is none.
    fn stall(&mut self, error: &EngineError) {
        self.shared.stall(Some(error.clone()));
        for (reply, _) in std::mem::take(&mut self.replies) {
            drop(reply.send(Err(error.clone())));
        }
        for (_, waiters) in std::mem::take(&mut self.waiters) {
            waiters.into_iter().for_each(|waiter| drop(waiter.reply.send(Err(error.clone()))));
        }
        self.shared.publish(&self.touched);
    }

    /// Waits a while; what happens meanwhile waits too. False if the host is to close.
    fn hold(&mut self, pause: Duration, error: &EngineError) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.inbox.wait(until.saturating_duration_since(Instant::now())) {
                Ok(HostEvent::Ask(_, reply)) => drop(reply.send(Err(error.clone()))),
                Ok(HostEvent::Close { leaving, done }) => {
                    self.leave(leaving, done);
                    self.executor.stop_all();
                    return false;
                }
                Ok(event) => self.backlog.push_back(event),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}
