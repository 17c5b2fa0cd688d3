//! A run's events for whoever watches it. One task follows each run that is watched and encodes what happens once; the
//! watchers take it from a ring that all of them share, each at its own pace. Who is slower than the ring is long goes
//! back to the log, at its own cursor: nothing is buffered for anybody, and no event is lost or said twice.
//!
//! Log lines and text of models have no place in the log of events. They are said to those who are there when they
//! come; who was away finds lines in `…/logs` and texts in results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use wonder_core::Time;
use wonder_core::event::Event;
use wonder_engine::{Engine, ErrorCode, Follow, Heard, Listen, Reply, Updates};

use crate::access::Caller;
use crate::app::App;
use crate::guard::still_holds;

/// What a ring holds at most.
const RING_ENTRIES_MAX: usize = 4_096;
const RING_BYTES_MAX: usize = 1 << 20;
/// What a watcher takes at once: so many references into the ring, or so many events of the log.
const BATCH: usize = 64;
const PAGE: u32 = 256;
const FOLLOW_MS: u64 = 10_000;
/// A line that says nothing, so that whoever is between us does not hang up; and when a token is looked at again.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The feeds of runs that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<BTreeMap<String, Weak<Feed>>>);

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A ring is whole whatever a thread was doing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    /// `seq`: the last event that the run has, where a new feed begins.
    fn feed(&self, engine: &Arc<dyn Engine>, run: &str, seq: u64) -> Arc<Feed> {
        let mut feeds = held(&self.0);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let known = feeds.get(run).and_then(Weak::upgrade);
        // A run that had ended may have been retried since.
        if let Some(feed) = known.filter(|feed| !held(&feed.ring).ended) {
            return feed;
        }
        let stop = CancellationToken::new();
        let feed = Arc::new(Feed {
            ring: Mutex::new(Ring::after(seq)),
            changed: watch::channel(()).0,
            _stop: stop.clone().drop_guard(),
        });
        feeds.insert(run.to_owned(), Arc::downgrade(&feed));
        tokio::spawn(follow(engine.clone(), run.to_owned(), Arc::downgrade(&feed), stop));
        feed
    }
}

#[derive(Debug)]
struct Feed {
    ring: Mutex<Ring>,
    changed: watch::Sender<()>,
    /// Dropped with the last watcher, it ends the task that follows.
    _stop: DropGuard,
}

#[derive(Clone, Debug)]
struct Entry {
    /// None: no event of the log.
    seq: Option<u64>,
    bytes: Bytes,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    /// The number of the first entry, from 0 on.
    first: u64,
    bytes: usize,
    /// Every event after this one, up to the last that was told, is in the ring.
    whole_after: u64,
    /// Nothing more will come.
    ended: bool,
}

/// Where a watcher stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The last event it has.
    seq: u64,
    /// The entry it takes next; None while it reads the log.
    entry: Option<u64>,
}

enum Taken {
    Entries(VecDeque<Bytes>),
    /// It has all there is; and whether more can come.
    Nothing {
        ended: bool,
    },
    /// What it wants next is no longer in the ring.
    Behind,
}

impl Ring {
    fn after(seq: u64) -> Ring {
        Ring { entries: VecDeque::new(), first: 0, bytes: 0, whole_after: seq, ended: false }
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes.len();
        self.entries.push_back(entry);
        while self.entries.len() > RING_ENTRIES_MAX || (self.bytes > RING_BYTES_MAX && self.entries.len() > 1)
        {
            let Some(gone) = self.entries.pop_front() else { break };
            self.bytes -= gone.bytes.len();
            self.first += 1;
            self.whole_after = gone.seq.unwrap_or(self.whole_after);
        }
    }

    fn take(&self, place: &mut Place) -> Taken {
        let from = match place.entry.filter(|entry| *entry >= self.first) {
            Some(entry) => entry,
            // New here, or left behind: what it lacks of the log must be here whole.
            None if place.seq < self.whole_after => return Taken::Behind,
            None => {
                let next = self.entries.iter().position(|entry| entry.seq.is_some_and(|seq| seq > place.seq));
                self.first + next.unwrap_or(self.entries.len()) as u64
            }
        };
        let mut taken = VecDeque::new();
        let mut at = from;
        for entry in self.entries.iter().skip((from - self.first) as usize) {
            if taken.len() == BATCH {
                break;
            }
            at += 1;
            if entry.seq.is_some_and(|seq| seq <= place.seq) {
                continue;
            }
            place.seq = entry.seq.unwrap_or(place.seq);
            taken.push_back(entry.bytes.clone());
        }
        place.entry = Some(at);
        if taken.is_empty() { Taken::Nothing { ended: self.ended } } else { Taken::Entries(taken) }
    }
}

/// `{run, seq, at, kind, …}`, as `events -o json`.
#[derive(Serialize)]
pub(crate) struct EventJson<'e> {
    pub run: &'e str,
    #[serde(flatten)]
    pub event: &'e Event,
}

fn encoded(run: &str, event: &Event) -> Entry {
    let data = serde_json::to_string(&EventJson { run, event }).unwrap_or_default();
    let bytes = Bytes::from(format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, event.kind.name()));
    Entry { seq: Some(event.seq), bytes }
}

fn unnumbered(name: &str, data: &impl Serialize) -> Entry {
    let data = serde_json::to_string(data).unwrap_or_default();
    Entry { seq: None, bytes: Bytes::from(format!("event: {name}\ndata: {data}\n\n")) }
}

/// Puts what happens to a run into its ring, until nobody watches or the run has ended.
async fn follow(engine: Arc<dyn Engine>, run: String, feed: Weak<Feed>, stop: CancellationToken) {
    let Some(mut seq) = feed.upgrade().map(|feed| held(&feed.ring).whole_after) else { return };
    let (since, mut line, mut heard) = (crate::now(), 0, 0);
    loop {
        let told = tokio::select! {
            told = news(&*engine, &run, (seq, line)) => Told::News(told),
            told = text(&*engine, &run, heard) => Told::Text(told),
            () = stop.cancelled() => return,
        };
        let Some(feed) = feed.upgrade() else { return };
        match told {
            Told::News(Ok(updates)) => {
                seq = updates.events.last().map_or(seq, |(_, event)| event.seq);
                line = updates.logs.last().map_or(line, |last| last.number);
                feed.tell(&run, &updates, since);
            }
            Told::News(Err(error)) if error.code == ErrorCode::Closing => feed.end(),
            Told::News(Err(_)) => tokio::time::sleep(AGAIN_AFTER).await,
            Told::Text(pieces) => {
                heard = pieces.cursor;
                let pieces = pieces.pieces.iter().map(|piece| unnumbered("text", piece)).collect();
                feed.push(pieces);
            }
        }
        if held(&feed.ring).ended {
            return;
        }
    }
}

enum Told {
    News(Reply<Updates>),
    Text(Heard),
}

async fn news(engine: &dyn Engine, run: &str, (seq, line): (u64, u64)) -> Reply<Updates> {
    let follow = Follow {
        events_after: vec![(run.to_owned(), seq)],
        logs_after: Some((run.to_owned(), line)),
        wait_ms: FOLLOW_MS,
        limit: Some(PAGE),
        ..Follow::default()
    };
    engine.follow(follow).await
}

/// The next of what models say; where nobody can be listened to there is none.
async fn text(engine: &dyn Engine, run: &str, after: u64) -> Heard {
    match engine.listen(Listen { run: run.to_owned(), after, wait_ms: FOLLOW_MS }).await {
        Ok(heard) => heard,
        Err(error) if error.code == ErrorCode::Unsupported => std::future::pending().await,
        Err(_) => {
            tokio::time::sleep(AGAIN_AFTER).await;
            Heard { cursor: after, ..Heard::default() }
        }
    }
}

impl Feed {
    fn tell(&self, run: &str, updates: &Updates, since: Time) {
        let events = updates.events.iter().map(|(_, event)| encoded(run, event));
        // Lines of before are in `…/logs`.
        let lines = updates.logs.iter().filter(|line| line.at >= since).map(|line| unnumbered("log", line));
        self.push(events.chain(lines).collect());
        let over = updates.runs.iter().all(|progress| progress.status.is_end());
        if over && updates.events.is_empty() && updates.logs.is_empty() {
            self.end();
        }
    }

    fn push(&self, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let mut ring = held(&self.ring);
        entries.into_iter().for_each(|entry| ring.push(entry));
        drop(ring);
        self.changed.send_replace(());
    }

    fn end(&self) {
        held(&self.ring).ended = true;
        self.changed.send_replace(());
    }
}

/// One connection that watches a run.
pub(crate) struct Watcher {
    app: Arc<App>,
    caller: Caller,
    run: String,
    feed: Arc<Feed>,
    changed: watch::Receiver<()>,
    place: Place,
    batch: VecDeque<Bytes>,
    _place_among_streams: OwnedSemaphorePermit,
}

impl Watcher {
    /// `after`: the last event that it has; `last`: the last that there is.
    pub(crate) fn new(
        app: &Arc<App>,
        caller: Caller,
        (run, last): (String, u64),
        after: u64,
        permit: OwnedSemaphorePermit,
    ) -> Watcher {
        let feed = app.streams.feed(&app.options.engine, &run, last);
        let changed = feed.changed.subscribe();
        let batch = VecDeque::from([Bytes::from_static(b"retry: 1000\n\n")]);
        let place = Place { seq: after, entry: None };
        Watcher { app: app.clone(), caller, run, feed, changed, place, batch, _place_among_streams: permit }
    }

    /// What is to be sent next; None at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.batch.pop_front() {
                return Some(bytes);
            }
            if self.app.closing.is_cancelled() {
                return None;
            }
            self.changed.borrow_and_update();
            let taken = held(&self.feed.ring).take(&mut self.place);
            match taken {
                Taken::Entries(entries) => self.batch = entries,
                Taken::Behind => self.read().await?,
                Taken::Nothing { ended: true } => return None,
                Taken::Nothing { ended: false } => self.wait().await?,
            }
        }
    }

    /// The next events of the log. None if they cannot be read: the client comes again, at its cursor.
    async fn read(&mut self) -> Option<()> {
        let events_after = vec![(self.run.clone(), self.place.seq)];
        let page = Follow { events_after, limit: Some(PAGE), ..Follow::default() };
        let updates = self.app.engine().follow(page).await.ok()?;
        self.place.entry = None;
        self.place.seq = updates.events.last()?.1.seq;
        self.batch = updates.events.iter().map(|(run, event)| encoded(run, event).bytes).collect();
        Some(())
    }

    async fn wait(&mut self) -> Option<()> {
        tokio::select! {
            changed = self.changed.changed() => changed.ok(),
            () = self.app.closing.cancelled() => None,
            () = tokio::time::sleep(KEEP_ALIVE) => {
                self.batch.push_back(Bytes::from_static(b":\n\n"));
                still_holds(&self.app, &self.caller).then_some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64) -> Entry {
        Entry { seq: Some(seq), bytes: Bytes::from(seq.to_string()) }
    }

    fn said(taken: Taken) -> Vec<String> {
        let Taken::Entries(entries) = taken else { return Vec::new() };
        entries.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    #[test]
    fn a_watcher_goes_on_in_the_ring_where_its_log_ended() {
        let mut ring = Ring::after(3);
        ring.push(event(4));
        ring.push(Entry { seq: None, bytes: Bytes::from_static(b"line") });
        ring.push(event(5));
        let mut early = Place { seq: 1, entry: None };
        assert!(matches!(ring.take(&mut early), Taken::Behind), "2 and 3 are in the log alone");
        early.seq = 3;
        assert_eq!(said(ring.take(&mut early)), ["4", "line", "5"]);
        assert!(matches!(ring.take(&mut early), Taken::Nothing { ended: false }));
        let mut late = Place { seq: 4, entry: None };
        assert_eq!(said(ring.take(&mut late)), ["5"]);
        let mut ahead = Place { seq: 9, entry: None };
        assert!(matches!(ring.take(&mut ahead), Taken::Nothing { .. }));
        ring.push(event(6));
        assert_eq!(said(ring.take(&mut late)), ["6"]);
        assert!(said(ring.take(&mut ahead)).is_empty(), "it has 6 already");
    }

    #[test]
    fn who_falls_behind_goes_back_to_the_log_and_misses_nothing() {
        let mut ring = Ring::after(0);
        let mut slow = Place { seq: 0, entry: None };
        ring.push(event(1));
        assert_eq!(said(ring.take(&mut slow)), ["1"]);
        let last = RING_ENTRIES_MAX as u64 + 10;
        (2..=last).for_each(|seq| ring.push(event(seq)));
        assert_eq!(ring.entries.len(), RING_ENTRIES_MAX);
        assert!(matches!(ring.take(&mut slow), Taken::Behind));
        // It reads the log up to where the ring begins.
        slow = Place { seq: ring.whole_after, entry: None };
        let next = said(ring.take(&mut slow));
        assert_eq!((next.len(), next[0].as_str()), (BATCH, "11"));
    }
}
