//! Committing a turn, and what happens when that fails.
//!
//! A transaction that failed is tried again as it is: nothing of it was answered, published or performed, so
//! nothing has happened yet. For a while everybody simply waits, and whoever follows a run is told why; if it lasts,
//! whoever asked for something is told that it may or may not be recorded. What tasks report waits. It is tried as
//! long as the process lives; another owner, later, finds the runs as they were before.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use wonder_engine::{Cause, EngineError};

use super::{Asker, Driver, HostEvent, Turn};
use crate::shared::Trouble;
use crate::store::may_pass;

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
        let (since, mut pause) = (Instant::now(), AGAIN_FIRST);
        while let Err(error) = self.store.commit(&turn.batch) {
            let lasts = !may_pass(&error) || since.elapsed() >= self.storage_patience;
            self.shared.set_trouble(Some(Trouble { error: error.clone(), lasts }));
            self.shared.publish(&turn.touched);
            if error.cause.as_deref() == Some(&Cause::DiskFull) {
                self.store.give_back_room();
            }
            if lasts {
                self.tell_waiters(turn, &error);
            } else {
                pause = pause.min(self.storage_patience.saturating_sub(since.elapsed()));
            }
            if !self.wait_after_failure(pause, lasts.then_some(&error)) {
                return false;
            }
            pause = (pause * 2).clamp(AGAIN_FIRST, AGAIN_MOST);
        }
        if self.shared.trouble().is_some() {
            self.shared.set_trouble(None);
        }
        turn.batch.clear();
        true
    }

    /// Whoever waits for an answer is told that there is none.
    fn tell_waiters(&mut self, turn: &mut Turn, error: &EngineError) {
        for (reply, about) in std::mem::take(&mut turn.replies) {
            reply.answer(Err(about.map_or_else(|refused| refused, |run| unknown(error, &run))));
        }
        for (_, waiters) in std::mem::take(&mut self.waiters) {
            waiters.into_iter().for_each(|waiter| waiter.reply.answer(Err(error.clone())));
        }
        let (asks, rest) = std::mem::take(&mut self.backlog).into_iter().partition(is_ask);
        self.backlog = rest;
        for event in asks {
            if let HostEvent::Ask(_, reply) = event {
                refuse(reply, error);
            }
        }
    }

    /// Waits a while; what happens meanwhile waits too, or is refused with the error. False if the host is to close.
    fn wait_after_failure(&mut self, pause: Duration, refuses: Option<&EngineError>) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.inbox.wait(until.saturating_duration_since(Instant::now())) {
                Ok(HostEvent::Ask(asked, reply)) => match refuses {
                    Some(error) => refuse(reply, error),
                    None => self.backlog.push_back(HostEvent::Ask(asked, reply)),
                },
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

fn is_ask(event: &HostEvent) -> bool {
    matches!(event, HostEvent::Ask(..))
}

/// Nothing of it was looked at.
fn refuse(reply: Asker, error: &EngineError) {
    reply.answer(Err(error.clone()));
}

/// What was asked is decided and not on the disk: it is tried again while this process lives, and a disk that said no
/// may have written it all the same.
fn unknown(error: &EngineError, run: &str) -> EngineError {
    let message = format!("{}; whether it was recorded for run {run} is not known", error.message);
    EngineError { message, ..error.clone() }.because(Cause::OutcomeUnknown { run: run.to_owned() })
}
