//! Connections that read: so many at once, kept for the next who reads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wonder_engine::Reply;

use crate::driver::busy;
use crate::store::{self, Reading};

/// Queries at once.
const READERS_MAX: usize = 32;
/// Queries that may wait for their turn.
const WAITING_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Readers {
    home: PathBuf,
    idle: Mutex<Vec<Reading>>,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Readers {
    pub(crate) fn new(home: &Path) -> Readers {
        Readers::bounded(home, READERS_MAX, WAITING_MAX)
    }

    fn bounded(home: &Path, readers_max: usize, waiting_max: usize) -> Readers {
        Readers {
            home: home.to_owned(),
            idle: Mutex::default(),
            turns: Arc::new(Semaphore::new(readers_max)),
            waiting: AtomicUsize::new(0),
            waiting_max,
        }
    }

    /// Waits for a turn to read; refused if too many wait already.
    pub(crate) async fn turn(&self) -> Reply<OwnedSemaphorePermit> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Ok(turn);
        }
        let waits = Waits::of(&self.waiting);
        if waits.before >= self.waiting_max {
            return Err(busy(format!("{} queries wait for the database", self.waiting_max)));
        }
        Ok(self.turns.clone().acquire_owned().await.expect("it is never closed"))
    }

    /// A connection; None if there is no database yet. Whoever is done with it gives it back.
    pub(crate) fn connection(&self) -> Reply<Option<Reading>> {
        let kept = self.idle().pop();
        match kept {
            Some(connection) => Ok(Some(connection)),
            None => store::open_reader(&self.home),
        }
    }

    pub(crate) fn give_back(&self, connection: Reading) {
        if !connection.is_snapshot {
            self.idle().push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reading>> {
        // Connections are whole whatever a thread was doing.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counted while it is there, also if whoever waits goes away.
struct Waits<'c> {
    count: &'c AtomicUsize,
    before: usize,
}

impl Waits<'_> {
    fn of(count: &AtomicUsize) -> Waits<'_> {
        Waits { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use wonder_engine::ErrorCode;

    use super::*;

    #[tokio::test]
    async fn more_who_read_than_there_is_room_for_are_refused() {
        let readers = Readers::bounded(Path::new("/nowhere"), 1, 1);
        let first = readers.turn().await.unwrap();
        let mut second = Box::pin(readers.turn());
        assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it waits");
        assert_eq!(readers.turn().await.unwrap_err().code, ErrorCode::Busy);
        drop(first);
        drop(second.await.unwrap());
        drop(readers.turn().await.unwrap());
    }
}
