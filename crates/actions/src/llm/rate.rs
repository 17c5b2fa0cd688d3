//! How much may be asked of a model in a minute, by all runs of a process. Whoever has to wait stands in line, which
//! costs no try, and leaves the line when its action has to stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wonder_core::def::{Name, Rate};

use super::ask::Asked;
use crate::context::ActionContext;
use crate::handler::TryError;
use crate::job::Stream;

/// A minute, in the unit that buckets fill by.
const MINUTE_MS: u64 = 60_000;

/// The rates that were met so far.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<BTreeMap<Whose, Arc<Gate>>>);

/// Profiles that say the same share a rate, whichever file they stand in.
type Whose = (Name, Option<Name>, Name, (Option<u64>, Option<u64>));

#[derive(Debug)]
struct Gate {
    /// The first in it waits for the buckets, the others for the first.
    line: tokio::sync::Mutex<()>,
    buckets: Mutex<Buckets>,
    since: Instant,
}

#[derive(Debug)]
struct Buckets {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

/// A call that may go out.
#[derive(Debug)]
pub(super) struct Passed(Option<(Arc<Gate>, u64)>);

impl Passed {
    /// What it really used, in place of what it was taken to use.
    pub(super) fn settle(self, tokens: u64) {
        let Some((gate, taken)) = self.0 else { return };
        if let Some(bucket) = &mut gate.buckets().tokens {
            bucket.settle(taken, tokens);
        }
    }
}

impl Rates {
    /// Waits until a call of so many tokens may go out.
    pub(super) async fn pass(
        &self,
        context: &ActionContext<'_>,
        asked: &Asked<'_>,
        tokens: u64,
    ) -> Result<Passed, TryError> {
        let Some(rate) = asked.profile.rate else { return Ok(Passed(None)) };
        let gate = self.gate(asked, rate);
        let mut said = false;
        let mut say = |text: String| {
            if !std::mem::replace(&mut said, true) {
                context.waits_for_rate(Some(&asked.name));
                context.line(Stream::Note, format!("model profile `{}`: {text}", asked.name));
            }
        };
        let _first = match gate.line.try_lock() {
            Ok(first) => first,
            Err(_) => {
                say("waits in line for its `rate`".to_owned());
                gate.line.lock().await
            }
        };
        loop {
            let wait_ms = gate.buckets().take(gate.now_ms(), tokens);
            if wait_ms == 0 {
                context.waits_for_rate(None);
                return Ok(Passed(Some((gate.clone(), tokens))));
            }
            say(format!("waits {wait_ms} ms for its `rate`"));
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    fn gate(&self, asked: &Asked<'_>, rate: Rate) -> Arc<Gate> {
        let profile = asked.profile;
        let base_url = profile.base_url.as_ref().map(|url| url.text.clone());
        let provider = Name::from(asked.target.provider.as_str());
        let whose = (provider, base_url, profile.model.clone(), (rate.rpm, rate.tpm));
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates.entry(whose).or_insert_with(|| {
            let (requests, tokens) = (rate.rpm.map(Bucket::full), rate.tpm.map(Bucket::full));
            let buckets = Mutex::new(Buckets { requests, tokens });
            Arc::new(Gate { line: tokio::sync::Mutex::default(), buckets, since: Instant::now() })
        });
        gate.clone()
    }
}

impl Gate {
    fn buckets(&self) -> std::sync::MutexGuard<'_, Buckets> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Buckets {
    /// Takes a request of so many tokens; if that is too much now, nothing, and says how long to wait.
    fn take(&mut self, now_ms: u64, tokens: u64) -> u64 {
        let wait = |bucket: &mut Option<Bucket>, amount| {
            bucket.as_mut().map_or(0, |bucket| bucket.wait_ms(now_ms, amount))
        };
        let wait_ms = wait(&mut self.requests, 1).max(wait(&mut self.tokens, tokens));
        if wait_ms == 0 {
            self.requests.iter_mut().for_each(|bucket| bucket.take(1));
            self.tokens.iter_mut().for_each(|bucket| bucket.take(tokens));
        }
        wait_ms
    }
}

/// Fills evenly, up to what a minute allows. It has no clock: whoever asks says what time it is.
#[derive(Debug)]
struct Bucket {
    per_minute: u64,
    /// In parts: what comes in a millisecond is `per_minute` of them. Below nothing after what was more than expected.
    level: i128,
    at_ms: u64,
}

impl Bucket {
    fn full(per_minute: u64) -> Bucket {
        let per_minute = per_minute.max(1);
        Bucket { per_minute, level: parts(per_minute), at_ms: 0 }
    }

    /// How long until so much is there. More than the bucket can hold goes when it is full.
    fn wait_ms(&mut self, now_ms: u64, amount: u64) -> u64 {
        let passed = i128::from(now_ms.saturating_sub(self.at_ms));
        self.at_ms = self.at_ms.max(now_ms);
        self.level = (self.level + passed * i128::from(self.per_minute)).min(parts(self.per_minute));
        let lacks = parts(amount.min(self.per_minute)) - self.level;
        let per_ms = i128::from(self.per_minute);
        u64::try_from((lacks.max(0) + per_ms - 1) / per_ms).unwrap_or(u64::MAX)
    }

    fn take(&mut self, amount: u64) {
        self.level -= parts(amount.min(self.per_minute));
    }

    fn settle(&mut self, taken: u64, used: u64) {
        let back = parts(taken.min(self.per_minute)) - parts(used);
        self.level = (self.level + back).min(parts(self.per_minute));
    }
}

fn parts(amount: u64) -> i128 {
    i128::from(amount) * i128::from(MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_a_minute_allows_and_then_evenly() {
        let mut bucket = Bucket::full(60);
        for _ in 0..60 {
            assert_eq!(bucket.wait_ms(5, 1), 0);
            bucket.take(1);
        }
        assert_eq!(bucket.wait_ms(5, 1), 1_000);
        assert_eq!(bucket.wait_ms(505, 1), 500);
        assert_eq!(bucket.wait_ms(400, 1), 500, "time that goes back gives nothing");
        assert_eq!(bucket.wait_ms(1_005, 1), 0);
        assert_eq!(bucket.wait_ms(10_000_000, 60), 0);
        assert_eq!(bucket.level, parts(60), "it holds no more than a minute");
    }

    #[test]
    fn more_than_a_minute_allows_goes_when_the_bucket_is_full() {
        let mut bucket = Bucket::full(1_000);
        assert_eq!(bucket.wait_ms(0, 5_000), 0);
        bucket.take(5_000);
        assert_eq!(bucket.wait_ms(0, 1_000), 60_000);
        bucket.settle(5_000, 3_000);
        assert_eq!(bucket.wait_ms(0, 1_000), 180_000, "what was used counts, not what was expected");
        let mut bucket = Bucket::full(1_000);
        bucket.take(800);
        bucket.settle(800, 100);
        assert_eq!(bucket.wait_ms(0, 900), 0);
    }

    #[test]
    fn a_call_takes_of_both_or_of_none() {
        let mut buckets = Buckets { requests: Some(Bucket::full(10)), tokens: Some(Bucket::full(100)) };
        assert_eq!(buckets.take(0, 90), 0);
        assert_eq!(buckets.take(0, 20), 6_000);
        assert_eq!(buckets.requests.as_ref().unwrap().level, parts(9));
        assert_eq!(buckets.take(6_000, 20), 0);
    }
}
