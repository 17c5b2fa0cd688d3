//! Committing a turn, and what happens when that fails.
//!
//! A transaction that failed is tried again as it is: nothing of it was answered, published or performed, so
//! nothing has happened yet. Until it succeeds requests are refused with the reason, and what tasks report
//! waits. Another owner, later, finds the runs as they were before.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use wonder_engine::EngineError;

use super::{Driver, HostEvent, Turn};

const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_MOST: Duration = Duration::from_secs(2);

impl Driver {
    /// False if the host is to close with the turn not committed.
    pub(super) fn commit(&mut self, turn: &mut Turn) -> bool {
        let lines_due = !self.settling.is_empty() || self.lines_due.is_some_and(|due| Instant::now() >= due);
        if turn.batch.is_empty() && !lines_due && self.leaving.is_none() {
            return true;
        }
        turn.batch.append(&mut self.lines);
        self.lines_due = None;
        if turn.batch.is_empty() {
            return true;
        }
        let mut pause = AGAIN_FIRST;
        while let Err(error) = self.store.commit(&turn.batch) {
            self.stall(turn, &error);
            if !self.wait_after_failure(pause, &error) {
                return false;
            }
            pause = (pause * 2).min(AGAIN_MOST);
        }
        if self.shared.stalled().is_some() {
            self.shared.stall(None);
        }
        turn.batch.clear();
        true
    }

    /// Whoever waits for an answer is told that there is none.
    fn stall(&mut self, turn: &mut Turn, error: &EngineError) {
        self.shared.stall(Some(error.clone()));
        for (reply, _) in std::mem::take(&mut turn.replies) {
            reply.answer(Err(error.clone()));
        }
        for (_, waiters) in std::mem::take(&mut self.waiters) {
            waiters.into_iter().for_each(|waiter| waiter.reply.answer(Err(error.clone())));
        }
        self.shared.publish(&turn.touched);
    }

    /// Waits a while; what happens meanwhile waits too. False if the host is to close.
    fn wait_after_failure(&mut self, pause: Duration, error: &EngineError) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.inbox.wait(until.saturating_duration_since(Instant::now())) {
                Ok(HostEvent::Ask(_, reply)) => reply.answer(Err(error.clone())),
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
