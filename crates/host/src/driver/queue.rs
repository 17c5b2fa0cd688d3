//! The driver's queue: everything that happens to it, in order.
//!
//! Requests are bounded: beyond that whoever asks is told that the engine is busy. What the host itself has to
//! say (what tasks report and print, closing) is always taken: tasks are bounded, and what each may print.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::oneshot;
use wonder_engine::{EngineError, ErrorCode, Reply, Response};

use super::{HostEvent, closing};
use crate::embedded::Embedded;

/// Requests that may be unanswered: in the queue, or waiting for a run.
const REQUESTS_MAX: usize = 20_000;

/// The end that those who tell the driver something hold.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: Sender<HostEvent>,
    requests: Arc<AtomicUsize>,
    requests_max: usize,
}

/// The driver's end.
#[derive(Debug)]
pub(crate) struct Inbox(Receiver<HostEvent>);

/// Who asked. It is counted among the requests until it is answered, or dropped.
#[derive(Debug)]
pub(crate) struct Asker {
    reply: oneshot::Sender<Answer>,
    counted: Counted,
}

/// None: the run is not in memory, and whoever asks can read it.
type Answer = Reply<Option<Response>>;

#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Asker {
    pub(super) fn answer(self, answer: Answer) {
        drop(self.counted);
        // Whoever asked may be gone.
        drop(self.reply.send(answer));
    }
}

pub(crate) fn queue() -> (Queue, Inbox) {
    bounded(REQUESTS_MAX)
}

fn bounded(requests_max: usize) -> (Queue, Inbox) {
    let (sender, receiver) = channel();
    let requests = Arc::new(AtomicUsize::new(0));
    (Queue { sender, requests, requests_max }, Inbox(receiver))
}

impl Queue {
    /// Tells the driver something that must not be lost. False if the driver is gone, which it is only when the
    /// host is.
    pub(crate) fn send(&self, event: HostEvent) -> bool {
        self.sender.send(event).is_ok()
    }

    /// Asks the driver and waits for its answer.
    pub(crate) async fn ask(&self, asked: Embedded) -> Answer {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(self.requests.clone());
        if before >= self.requests_max {
            return Err(busy(format!("{} requests wait for an answer", self.requests_max)));
        }
        let (reply, answer) = oneshot::channel();
        let asker = Asker { reply, counted };
        self.sender.send(HostEvent::Ask(asked, asker)).map_err(|_| closing())?;
        answer.await.map_err(|_| closing())?
    }
}

impl Inbox {
    pub(super) fn wait(&self, wait_time: Duration) -> Result<HostEvent, RecvTimeoutError> {
        self.0.recv_timeout(wait_time)
    }

    pub(super) fn next(&self) -> Option<HostEvent> {
        self.0.try_recv().ok()
    }
}

pub(crate) fn busy(why: String) -> EngineError {
    EngineError::new(ErrorCode::Busy, why).help("Nothing was changed. Ask again in a moment.")
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use wonder_engine::Request;

    use super::*;

    #[tokio::test]
    async fn more_requests_than_it_takes_are_refused_and_nothing_else_is() {
        let (queue, inbox) = bounded(2);
        let find = || Embedded::from(Request::Find { run: "run".to_owned() });
        let mut asked: Vec<_> = (0..2).map(|_| Box::pin(queue.ask(find()))).collect();
        for one in &mut asked {
            let polled = one.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending), "nobody has answered yet");
        }
        let refused = queue.ask(find()).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Busy);
        assert!(queue.send(HostEvent::ClockMoved), "what the host itself says is taken");
        let Some(HostEvent::Ask(_, asker)) = inbox.next() else { panic!("the first comes first") };
        assert_eq!(queue.ask(find()).await.unwrap_err().code, ErrorCode::Busy, "it is not answered yet");
        asker.answer(Ok(None));
        assert!(asked.remove(0).await.unwrap().is_none());
        let mut again = Box::pin(queue.ask(find()));
        assert!(
            again.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(),
            "there is room again"
        );
    }
}
