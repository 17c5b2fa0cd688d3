//! Where a host has its time from: the system's clock, or one that a test moves. Milliseconds since 1970, as
//! the core counts.
//!
//! The wall clock is asked once in the life of a process; from then on a clock counts that nobody can set, so that a
//! jump of the wall clock neither stretches a sleep nor fires a timeout.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use wonder_core::Time;

/// How often two clocks are held against each other.
const MEASURED: u32 = 8;

/// Handed to a host in its [`Options`](crate::Options).
#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    System,
    /// Stands still until a test moves it. The host never waits for real time to reach a deadline.
    Virtual(VirtualClock),
}

impl Clock {
    pub fn now(&self) -> Time {
        match self {
            Clock::System => system_now(),
            Clock::Virtual(clock) => clock.now(),
        }
    }

    /// Deadlines up to this time may fire.
    pub(crate) fn deadlines_until(&self) -> Time {
        match self {
            Clock::System => self.now(),
            Clock::Virtual(clock) => Time(clock.0.deadlines_until.load(Ordering::SeqCst)),
        }
    }

    /// How long to wait in real time for a deadline; None if only a test brings it nearer.
    pub(crate) fn wait_until(&self, at: Time) -> Option<Duration> {
        match self {
            Clock::System => Some(Duration::from_millis(at.since(self.now()))),
            Clock::Virtual(_) => (at <= self.deadlines_until()).then_some(Duration::ZERO),
        }
    }

    /// Calls this whenever a test has moved the clock. The system's clock moves without telling.
    pub(crate) fn on_move(&self, moved: impl Fn() + Send + 'static) {
        if let Clock::Virtual(clock) = self {
            clock.listeners().push(Box::new(moved));
        }
    }
}

/// What the wall clock said when it was first asked, and what has passed since, sleep of the machine included.
fn system_now() -> Time {
    static AHEAD: OnceLock<i128> = OnceLock::new();
    let now_ns = counted_ns() + AHEAD.get_or_init(ahead_ns);
    Time(i64::try_from(now_ns / 1_000_000).unwrap_or(i64::MAX))
}

/// How far the wall clock is ahead of the one that counts. Somebody else may have the processor between two
/// questions, and what is then measured is off for the life of the process: the closest of a few counts.
fn ahead_ns() -> i128 {
    let measured = (0..MEASURED).map(|_| {
        let (before, wall, after) = (counted_ns(), wall_ns(), counted_ns());
        (after - before, wall - after)
    });
    measured.min_by_key(|(took, _)| *took).map_or(0, |(_, ahead)| ahead)
}

fn wall_ns() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}

fn counted_ns() -> i128 {
    let now = clock_gettime(ClockId::Boottime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// A clock that a test moves. Clones are the same clock.
#[derive(Clone)]
pub struct VirtualClock(Arc<Virtual>);

type Listeners = Vec<Box<dyn Fn() + Send>>;

struct Virtual {
    now: AtomicI64,
    deadlines_until: AtomicI64,
    /// Told whenever the clock was moved.
    listeners: Mutex<Listeners>,
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VirtualClock").field(&self.now()).finish()
    }
}

impl VirtualClock {
    pub fn new(now: Time) -> VirtualClock {
        VirtualClock(Arc::new(Virtual {
            now: AtomicI64::new(now.0),
            deadlines_until: AtomicI64::new(now.0),
            listeners: Mutex::default(),
        }))
    }

    pub fn now(&self) -> Time {
        Time(self.0.now.load(Ordering::SeqCst))
    }

    /// It is `now`, and every deadline up to now fires.
    pub fn advance_to(&self, now: Time) {
        self.move_to(now, now);
    }

    /// It is `now`, but deadlines of this very moment are held back, so that a test can deliver first what
    /// else happens at it. [`VirtualClock::advance_to`] the same time lets them fire.
    pub fn advance_before_deadlines(&self, now: Time) {
        self.move_to(now, Time(now.0 - 1));
    }

    fn move_to(&self, now: Time, deadlines_until: Time) {
        assert!(now >= self.now(), "time does not go back");
        self.0.now.store(now.0, Ordering::SeqCst);
        self.0.deadlines_until.store(deadlines_until.0, Ordering::SeqCst);
        self.listeners().iter().for_each(|moved| moved());
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Listeners> {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
