//! How long to wait before another try: `none`, initial × k, or initial × 2^(k−1), at most the maximum,
//! times a seeded share between a half and one, so that a hundred failed branches do not come back at once.

use crate::def::{Backoff, BackoffKind, Retry};

/// Tries of an action whose file says nothing: 1 s, then 2 s between them, times a jitter.
pub const TRIES: Retry = Retry {
    max_attempts: 3,
    backoff: Backoff { kind: BackoffKind::Exponential, initial_delay_ms: 1_000, max_delay_ms: 60_000 },
};

/// The wait before try `k + 1`, where `k` counts from 1. The same seed and salt give the same wait.
pub fn delay_ms(backoff: &Backoff, k: u32, seed: u64, salt: u64) -> u64 {
    let whole = longest_ms(backoff, k);
    let half = whole / 2;
    half + mix(seed ^ salt.rotate_left(17) ^ u64::from(k)) % (whole - half + 1)
}

/// The same wait without the luck of a jitter.
pub fn longest_ms(backoff: &Backoff, k: u32) -> u64 {
    let whole = match backoff.kind {
        BackoffKind::None => return 0,
        BackoffKind::Linear => backoff.initial_delay_ms.saturating_mul(k.into()),
        BackoffKind::Exponential => {
            let doublings = k.saturating_sub(1).min(40);
            backoff.initial_delay_ms.saturating_mul(1 << doublings)
        }
    };
    whole.min(backoff.max_delay_ms)
}

/// SplitMix64's finaliser: spreads a counter over 64 bits. Not for secrets.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_by_kind_stay_under_the_maximum_and_repeat_for_a_seed() {
        let exponential =
            Backoff { kind: BackoffKind::Exponential, initial_delay_ms: 1_000, max_delay_ms: 5_000 };
        for (k, whole) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 5_000), (60, 5_000)] {
            let delay = delay_ms(&exponential, k, 7, 1);
            assert!((whole / 2..=whole).contains(&delay), "try {k}: {delay}");
            assert_eq!(delay, delay_ms(&exponential, k, 7, 1));
        }
        assert_eq!(delay_ms(&Backoff { kind: BackoffKind::None, ..exponential }, 3, 7, 1), 0);
        let linear = Backoff { kind: BackoffKind::Linear, ..exponential };
        assert!((1_500..=3_000).contains(&delay_ms(&linear, 3, 7, 1)));
    }
}
