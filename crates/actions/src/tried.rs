//! One try of an action: how it can end, and whether another may help. The one place that decides what is
//! the world's fault; it knows nothing of shells or HTTP.

use wonder_core::backoff::{TRIES, delay_ms};
use wonder_core::def::{Effect, Retry};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::value::Value;

use crate::leash::Halt;

/// The longest `Retry-After` that is waited for.
const RETRY_AFTER_MS_MAX: u64 = 600_000;

pub(crate) type Tried = Result<Value, Broken>;

/// How a try ended without a result.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    Failed { failure: Failure, reach: Reach },
    Halted(Halt),
}

/// How far a failed try came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    /// Nothing went out: trying again cannot do anything twice.
    Nothing,
    /// It ended in a way that says what happened.
    Known,
    /// It went out, and what became of it is not known.
    Unclear,
}

impl Broken {
    pub(crate) fn known(failure: Failure) -> Broken {
        Broken::Failed { failure, reach: Reach::Known }
    }

    pub(crate) fn unclear(failure: Failure) -> Broken {
        Broken::Failed { failure, reach: Reach::Unclear }
    }
}

/// A failure before anything went out.
impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken::Failed { failure, reach: Reach::Nothing }
    }
}

impl From<Halt> for Broken {
    fn from(halt: Halt) -> Broken {
        Broken::Halted(halt)
    }
}

/// How an action is tried: how often, and what a second time would mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tries {
    retry: Retry,
    effect: Effect,
    seed: u64,
    salt: u64,
}

impl Tries {
    pub(crate) fn new(retry: Option<Retry>, effect: Effect, seed: u64, salt: u64) -> Tries {
        Tries { retry: retry.unwrap_or(TRIES), effect, seed, salt }
    }

    pub(crate) fn max(&self) -> u32 {
        self.retry.max_attempts
    }

    /// How long to wait before another try, after `made` of them; None: that was the last.
    pub(crate) fn again_after_ms(&self, failure: &Failure, reach: Reach, made: u32) -> Option<u64> {
        let twice = self.effect == Effect::Once && reach != Reach::Nothing;
        if made >= self.retry.max_attempts || twice || !failure.is_infrastructural() {
            return None;
        }
        let asked = failure.details.get("retry_after_ms").and_then(Value::as_i64).unwrap_or(0);
        let asked = u64::try_from(asked).unwrap_or(0).min(RETRY_AFTER_MS_MAX);
        Some(delay_ms(&self.retry.backoff, made, self.seed, self.salt).max(asked))
    }

    /// What to report: an effect that must happen once, and may have, is nobody's to repeat.
    pub(crate) fn verdict(&self, failure: Failure, reach: Reach) -> Failure {
        if self.effect != Effect::Once || reach != Reach::Unclear {
            return failure;
        }
        let message = format!("it may have taken effect before it broke: {}", failure.message);
        let details = Value::map([("cause", failure.to_value())]);
        Failure::new(ErrorKind::OutcomeUnknown, message).with_details(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: ErrorKind) -> Failure {
        Failure::new(kind, "it broke")
    }

    fn status(status: i64) -> Failure {
        failed(ErrorKind::HttpStatus).with_details(Value::map([("status", Value::Int(status))]))
    }

    #[test]
    fn only_the_worlds_faults_are_tried_again() {
        let again = [ErrorKind::Network, ErrorKind::RateLimited, ErrorKind::ProviderError];
        for kind in ErrorKind::ALL {
            assert_eq!(failed(kind).is_infrastructural(), again.contains(&kind), "{kind}");
        }
        for (code, expected) in
            [(400, false), (401, false), (403, false), (404, false), (500, true), (503, true)]
        {
            assert_eq!(status(code).is_infrastructural(), expected, "{code}");
        }
    }

    #[test]
    fn nothing_written_means_three_tries_a_second_and_two_apart() {
        let tries = Tries::new(None, Effect::None, 7, 1);
        let waits: Vec<Option<u64>> = (1..=3)
            .map(|made| tries.again_after_ms(&failed(ErrorKind::Network), Reach::Unclear, made))
            .collect();
        assert!(waits[0].is_some_and(|ms| (500..=1_000).contains(&ms)), "{waits:?}");
        assert!(waits[1].is_some_and(|ms| (1_000..=2_000).contains(&ms)), "{waits:?}");
        assert_eq!(waits[2], None);
    }

    #[test]
    fn a_server_that_says_when_is_heard_up_to_ten_minutes() {
        let tries = Tries::new(None, Effect::None, 7, 1);
        for (asked, waited) in [(30_000, 30_000), (3_600_000, 600_000)] {
            let details = Value::map([("retry_after_ms", Value::Int(asked))]);
            let failure = failed(ErrorKind::RateLimited).with_details(details);
            assert_eq!(tries.again_after_ms(&failure, Reach::Known, 1), Some(waited));
        }
    }

    #[test]
    fn what_must_happen_once_is_repeated_only_if_nothing_went_out() {
        let tries = Tries::new(None, Effect::Once, 7, 1);
        let failure = failed(ErrorKind::Network);
        assert!(tries.again_after_ms(&failure, Reach::Nothing, 1).is_some());
        assert_eq!(tries.again_after_ms(&failure, Reach::Known, 1), None);
        assert_eq!(tries.again_after_ms(&failure, Reach::Unclear, 1), None);
        assert_eq!(tries.verdict(failure.clone(), Reach::Nothing), failure);
        assert_eq!(tries.verdict(failure.clone(), Reach::Unclear).kind, ErrorKind::OutcomeUnknown);
        let idempotent = Tries::new(None, Effect::Idempotent, 7, 1);
        assert!(idempotent.again_after_ms(&failure, Reach::Unclear, 1).is_some());
    }
}
