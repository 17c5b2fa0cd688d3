//! Text of tasks on its way to those who listen, in this process and over the socket: bounded, never stored, and gone
//! where nobody listens. Whoever says something never waits for whoever listens; a listener that is slower than the
//! text loses the oldest of it, and sees that by the numbers of the pieces.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wonder_core::is_within;
use wonder_engine::{Heard, TextPiece};

/// What is held for the listeners of one run between two of their questions.
const PIECES_MAX: usize = 4_096;
const BYTES_MAX: usize = 256 << 10;
/// Runs that are listened to at once; beyond, the one that was asked for longest ago is not held any more.
const RUNS_MAX: usize = 256;
/// Who has not asked for so long listens no more.
const KEPT: Duration = Duration::from_secs(30);
/// How long one question is held at most.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Cheap to clone; one per host.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveText(Arc<Mutex<Vec<Ear>>>);

/// A run that somebody listens to, with those it calls.
#[derive(Debug)]
struct Ear {
    run: String,
    pieces: VecDeque<TextPiece>,
    bytes: usize,
    /// How many pieces there were so far: the cursor behind the last.
    said: u64,
    asked_at: Instant,
    news: Arc<Notify>,
}

impl LiveText {
    /// Passes a piece on to those who listen. Never waits.
    pub(crate) fn say(&self, piece: TextPiece) {
        let mut ears = self.ears();
        if ears.is_empty() {
            return;
        }
        ears.retain(|ear| ear.asked_at.elapsed() < KEPT);
        for ear in ears.iter_mut().filter(|ear| is_within(&piece.run, &ear.run)) {
            ear.take(piece.clone());
        }
    }

    /// Whether somebody has listened to this run of late: then it is known under this very name.
    pub(crate) fn is_known(&self, run: &str) -> bool {
        self.ears().iter().any(|ear| ear.run == run)
    }

    /// What was said in a run, and in those it called, after this cursor; waits for the first of it.
    pub(crate) async fn listen(&self, run: &str, after: u64, wait: Duration) -> Heard {
        let until = Instant::now() + wait.min(WAIT_MAX);
        loop {
            let news = self.with_ear(run, |ear| ear.news.clone());
            let mut told = pin!(news.notified());
            // From here on nothing is missed.
            told.as_mut().enable();
            let heard = self.with_ear(run, |ear| ear.after(after));
            let left = until.saturating_duration_since(Instant::now());
            if !heard.pieces.is_empty() || left.is_zero() {
                return heard;
            }
            drop(tokio::time::timeout(left, told).await);
        }
    }

    fn ears(&self) -> MutexGuard<'_, Vec<Ear>> {
        // A piece more or less: nothing here can be half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ear for a run, which is there from now on.
    fn with_ear<T>(&self, run: &str, look: impl FnOnce(&mut Ear) -> T) -> T {
        let mut ears = self.ears();
        let at = ears.iter().position(|ear| ear.run == run).unwrap_or_else(|| {
            if ears.len() >= RUNS_MAX
                && let Some(oldest) = (0..ears.len()).min_by_key(|at| ears[*at].asked_at)
            {
                ears.swap_remove(oldest);
            }
            ears.push(Ear::new(run));
            ears.len() - 1
        });
        ears[at].asked_at = Instant::now();
        look(&mut ears[at])
    }
}

impl Ear {
    fn new(run: &str) -> Ear {
        Ear {
            run: run.to_owned(),
            pieces: VecDeque::new(),
            bytes: 0,
            said: 0,
            asked_at: Instant::now(),
            news: Arc::default(),
        }
    }

    fn take(&mut self, piece: TextPiece) {
        self.bytes += piece.text.len();
        self.said += 1;
        self.pieces.push_back(piece);
        while self.pieces.len() > PIECES_MAX || self.bytes > BYTES_MAX {
            let Some(lost) = self.pieces.pop_front() else { break };
            self.bytes -= lost.text.len();
        }
        self.news.notify_waiters();
    }

    /// A cursor that was never given out is of an owner before this one: all there is comes after it.
    fn after(&self, cursor: u64) -> Heard {
        let known = if cursor > self.said { 0 } else { cursor };
        let first = self.said - self.pieces.len() as u64;
        let skip = usize::try_from(known.saturating_sub(first)).unwrap_or(usize::MAX);
        Heard { pieces: self.pieces.iter().skip(skip).cloned().collect(), cursor: self.said }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(run: &str, number: u64, text: &str) -> TextPiece {
        TextPiece {
            run: run.to_owned(),
            node: "think".to_owned(),
            token: 1,
            attempt: 1,
            step: "think".to_owned(),
            tries_before: 0,
            number,
            text: text.to_owned(),
        }
    }

    async fn now(text: &LiveText, run: &str, after: u64) -> Heard {
        text.listen(run, after, Duration::ZERO).await
    }

    #[tokio::test]
    async fn who_listens_hears_the_run_and_what_it_called_and_nothing_else() {
        let text = LiveText::default();
        text.say(piece("R", 0, "nobody listens"));
        assert_eq!(now(&text, "R", 0).await, Heard::default());
        text.say(piece("R", 1, "own"));
        text.say(piece("R.3.1", 0, "child"));
        text.say(piece("R2", 0, "other"));
        let heard = now(&text, "R", 0).await;
        let texts: Vec<&str> = heard.pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!((texts, heard.cursor), (vec!["own", "child"], 2));
        assert!(now(&text, "R", heard.cursor).await.pieces.is_empty());
        assert!(!text.is_known("R2"));
    }

    #[tokio::test]
    async fn a_slow_listener_loses_the_oldest_and_sees_that() {
        let text = LiveText::default();
        now(&text, "R", 0).await;
        let long = "x".repeat(BYTES_MAX / 8);
        (0..100).for_each(|number| text.say(piece("R", number, &long)));
        let heard = now(&text, "R", 0).await;
        let numbers: Vec<u64> = heard.pieces.iter().map(|piece| piece.number).collect();
        assert_eq!(numbers, (92..100).collect::<Vec<u64>>());
        (0..2 * PIECES_MAX as u64).for_each(|number| text.say(piece("R", number, "")));
        assert_eq!(now(&text, "R", 0).await.pieces.len(), PIECES_MAX);
        // The cursor of an owner that is gone.
        assert_eq!(now(&text, "R", 1 << 40).await.pieces.len(), PIECES_MAX);
    }

    #[tokio::test]
    async fn it_holds_so_many_runs_and_no_more() {
        let text = LiveText::default();
        for run in 0..2 * RUNS_MAX {
            now(&text, &format!("R{run}"), 0).await;
        }
        assert_eq!(text.ears().len(), RUNS_MAX);
        assert!(text.is_known(&format!("R{}", 2 * RUNS_MAX - 1)) && !text.is_known("R0"));
    }
}
