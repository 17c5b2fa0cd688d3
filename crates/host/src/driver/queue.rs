//! The driver's queue: everything that happens to it, in order.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::oneshot;
use wonder_engine::{Reply, Request, Response};

use super::{HostEvent, closing};

/// The end that those who tell the driver something hold.
#[derive(Clone, Debug)]
pub(crate) struct Queue(Sender<HostEvent>);

/// The driver's end.
#[derive(Debug)]
pub(crate) struct Inbox(Receiver<HostEvent>);

pub(crate) fn queue() -> (Queue, Inbox) {
    let (sender, receiver) = channel();
    (Queue(sender), Inbox(receiver))
}

impl Queue {
    /// False if the driver is gone, which it is only when the host is.
    pub(crate) fn send(&self, event: HostEvent) -> bool {
        self.0.send(event).is_ok()
    }

    /// Asks the driver and waits for its answer.
    pub(crate) async fn ask(&self, request: Request) -> Reply<Option<Response>> {
        let (reply, answer) = oneshot::channel();
        self.0.send(HostEvent::Ask(request, reply)).map_err(|_| closing())?;
        answer.await.map_err(|_| closing())?
    }
}

impl Inbox {
    pub(super) fn wait(&self, patience: Duration) -> Result<HostEvent, RecvTimeoutError> {
        self.0.recv_timeout(patience)
    }

    pub(super) fn next(&self) -> Option<HostEvent> {
        self.0.try_recv().ok()
    }
}
