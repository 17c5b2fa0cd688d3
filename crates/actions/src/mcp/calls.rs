//! The calls that are under way at one server, and whose business it is what the server says meanwhile.
//!
//! Progress says whose it is, and over HTTP so does every request. Over a pipe nothing does: a line is for all of them,
//! and a question is held until only those that ask are left. From then on that server has one call at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
    ProgressToken, RequestId,
};
use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, mpsc, oneshot};

use crate::job::Stream;

/// What a call has not heard yet; lines beyond it are dropped.
const HEARD_MAX: usize = 4_096;
/// Lines that are kept for the next call when there is none.
const RECENT_MAX: usize = 50;

/// What a server says to a call of it.
#[derive(Debug)]
pub(super) enum Said {
    Line(Stream, String),
    /// It wants to know something from a person.
    Elicits(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
    /// It wants to know something from a model.
    Samples(Box<CreateMessageRequestParams>, oneshot::Sender<Result<CreateMessageResult, ErrorData>>),
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    changed: Notify,
    lane: std::sync::Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Questions of which nobody knows yet whose they are.
    asking: usize,
    /// One call at a time.
    alone: bool,
    recent: VecDeque<String>,
    /// Its tools are others now.
    tools_changed: bool,
}

#[derive(Debug)]
struct Open {
    heard: mpsc::Sender<Said>,
    request: Option<RequestId>,
    progress: Option<ProgressToken>,
    /// It was taken to be the one that asks.
    asks: bool,
}

/// A call under way; it is not any more when this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'c> {
    calls: &'c Calls,
    number: u64,
    pub(super) said: mpsc::Receiver<Said>,
    _lane: Lane,
}

#[derive(Debug)]
enum Lane {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Calls {
    /// Waits for its turn if the server can only be called by one at a time.
    pub(super) async fn begin(&self) -> UnderWay<'_> {
        let alone = self.state().alone;
        let lane = match alone {
            true => Lane::Alone { _guard: self.lane.clone().write_owned().await },
            false => Lane::Shared { _guard: self.lane.clone().read_owned().await },
        };
        let (heard, said) = mpsc::channel(HEARD_MAX);
        let mut state = self.state();
        for line in state.recent.drain(..) {
            let _ = heard.try_send(Said::Line(Stream::Stderr, line));
        }
        state.next += 1;
        let number = state.next;
        state.open.insert(number, Open { heard, request: None, progress: None, asks: false });
        UnderWay { calls: self, number, said, _lane: lane }
    }

    /// A line of the server itself.
    pub(super) fn line(&self, stream: Stream, line: &str) {
        let mut state = self.state();
        for open in state.open.values() {
            let _ = open.heard.try_send(Said::Line(stream, line.to_owned()));
        }
        if state.open.is_empty() {
            state.recent.push_back(line.to_owned());
            if state.recent.len() > RECENT_MAX {
                state.recent.pop_front();
            }
        }
    }

    /// The last line that nobody has heard: why it did not start, most likely.
    pub(super) fn last_line(&self) -> Option<String> {
        self.state().recent.iter().rev().find(|line| !line.trim().is_empty()).cloned()
    }

    pub(super) fn progress(&self, token: &ProgressToken, line: String) {
        let state = self.state();
        let own = state.open.values().find(|open| open.progress.as_ref() == Some(token));
        if let Some(open) = own {
            let _ = open.heard.try_send(Said::Line(Stream::Note, line));
        }
    }

    /// The call that a question is about. None: there is none.
    pub(super) async fn asker(&self, request: Option<&RequestId>) -> Option<mpsc::Sender<Said>> {
        if let Some(id) = request {
            let state = self.state();
            let own = state.open.values().find(|open| open.request.as_ref() == Some(id));
            return own.map(|open| open.heard.clone());
        }
        self.state().asking += 1;
        self.changed.notify_waiters();
        loop {
            let changed = self.changed.notified();
            if let Some(found) = self.settled() {
                return found;
            }
            changed.await;
        }
    }

    /// Whose a question is, once only those that ask are left.
    fn settled(&self) -> Option<Option<mpsc::Sender<Said>>> {
        let mut state = self.state();
        let waiting = state.open.values().filter(|open| !open.asks).count();
        if state.open.len() > 1 {
            state.alone = true;
        }
        if state.open.len() > 1 && state.asking < waiting {
            return None;
        }
        state.asking -= 1;
        let only_one = state.open.len() == 1;
        let own = state.open.values_mut().find(|open| only_one || !open.asks);
        Some(own.map(|open| {
            open.asks = true;
            open.heard.clone()
        }))
    }

    pub(super) fn tools_changed(&self) {
        self.state().tools_changed = true;
    }

    /// Whether its tools are others since this was asked last.
    pub(super) fn take_tools_changed(&self) -> bool {
        std::mem::take(&mut self.state().tools_changed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay<'_> {
    pub(super) fn is_known_as(&self, request: &RequestId, progress: &ProgressToken) {
        if let Some(open) = self.calls.state().open.get_mut(&self.number) {
            (open.request, open.progress) = (Some(request.clone()), Some(progress.clone()));
        }
    }

    /// What it was asked is answered.
    pub(super) fn answered(&self) {
        if let Some(open) = self.calls.state().open.get_mut(&self.number) {
            open.asks = false;
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.calls.state().open.remove(&self.number);
        self.calls.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_on_a_pipe_waits_until_it_is_clear_whose_it_is() {
        let calls = Calls::default();
        let quick = calls.begin().await;
        let mut slow = calls.begin().await;
        let mut asker = std::pin::pin!(calls.asker(None));
        let waits = tokio::select! { biased; _ = &mut asker => false, () = std::future::ready(()) => true };
        assert!(waits, "two calls are under way, and one asks");
        drop(quick);
        let heard = asker.await.unwrap();
        heard.try_send(Said::Line(Stream::Note, "you".into())).unwrap();
        assert!(matches!(slow.said.recv().await, Some(Said::Line(_, line)) if line == "you"));
        drop(slow);
        let first = calls.begin().await;
        let mut second = std::pin::pin!(calls.begin());
        let waits = tokio::select! { biased; _ = &mut second => false, () = std::future::ready(()) => true };
        assert!(waits, "from then on there is one call at a time");
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn two_that_both_ask_are_both_asked() {
        let calls = Calls::default();
        let (mut one, mut two) = (calls.begin().await, calls.begin().await);
        let (first, second) = tokio::join!(calls.asker(None), calls.asker(None));
        for heard in [first.unwrap(), second.unwrap()] {
            heard.try_send(Said::Line(Stream::Note, "?".into())).unwrap();
        }
        assert!(one.said.recv().await.is_some() && two.said.recv().await.is_some());
    }

    #[tokio::test]
    async fn what_is_said_before_a_call_is_told_to_the_next() {
        let calls = Calls::default();
        (0..60).for_each(|number| calls.line(Stream::Stderr, &format!("line {number}")));
        assert_eq!(calls.last_line().as_deref(), Some("line 59"));
        let mut call = calls.begin().await;
        let Some(Said::Line(Stream::Stderr, first)) = call.said.recv().await else { panic!() };
        assert_eq!(first, "line 10", "the last fifty of them");
    }
}
