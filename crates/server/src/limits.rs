//! How much is taken at once, and how fast. What is over a limit is refused at once, with when to come again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of one request.
    pub body_bytes_max: usize,
    /// Requests under way, those that wait for a run included; streams have places of their own.
    pub requests_max: usize,
    pub streams_max: usize,
    /// Of one token, a second on average.
    pub rate_per_second: f64,
    /// And so many at once.
    pub rate_burst: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes_max: 8 << 20,
            requests_max: 1_024,
            streams_max: 2_048,
            rate_per_second: 5_000.0,
            rate_burst: 10_000.0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// What each caller has left, and when that was so.
    left: Mutex<BTreeMap<String, (f64, Instant)>>,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Meter {
        Meter {
            limits,
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            left: Mutex::default(),
        }
    }

    pub(crate) fn request(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let most = self.limits.requests_max;
        self.requests.clone().try_acquire_owned().map_err(|_| Problem::full("requests", most))
    }

    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let most = self.limits.streams_max;
        self.streams.clone().try_acquire_owned().map_err(|_| Problem::full("streams", most))
    }

    /// A bucket for each caller: it fills with time, and each request takes one.
    pub(crate) fn rate(&self, caller: &str, now: Instant) -> Result<(), Problem> {
        let Limits { rate_per_second, rate_burst, .. } = self.limits;
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = left.entry(caller.to_owned()).or_insert((rate_burst, now));
        let came = now.saturating_duration_since(*since).as_secs_f64() * rate_per_second;
        (*left, *since) = ((*left + came).min(rate_burst), now);
        if *left >= 1.0 {
            *left -= 1.0;
            return Ok(());
        }
        let seconds = ((1.0 - *left) / rate_per_second).ceil().clamp(1.0, 3_600.0) as u64;
        Err(Problem::too_fast(caller, seconds))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_the_rate_holds() {
        let limits = Limits { rate_per_second: 2.0, rate_burst: 3.0, ..Limits::default() };
        let (meter, start) = (Meter::new(limits), Instant::now());
        for _ in 0..3 {
            assert!(meter.rate("ann", start).is_ok());
        }
        assert_eq!(meter.rate("ann", start).unwrap_err().retry_after, Some(1));
        assert!(meter.rate("bob", start).is_ok(), "each has a bucket of its own");
        let later = start + Duration::from_secs(1);
        assert!(meter.rate("ann", later).is_ok() && meter.rate("ann", later).is_ok());
        assert!(meter.rate("ann", later).is_err());
    }
}
