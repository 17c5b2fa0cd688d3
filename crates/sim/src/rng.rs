//! Seeded numbers. The same seed gives the same numbers on every machine; nothing here is secret.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A generator of its own for something that has a name or a number: drawing from it does not disturb
    /// the draws of others, so that a change in one place leaves the rest of a seed's run as it was.
    pub fn of(seed: u64, salts: &[u64]) -> Rng {
        Rng(salts.iter().fold(mix(seed), |sum, salt| mix(sum ^ mix(*salt))))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finish(self.0)
    }

    /// A number under `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True so often in a hundred.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

fn mix(x: u64) -> u64 {
    finish(x.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

fn finish(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A text as a salt (FNV-1a): names keep their draws whatever stands beside them.
pub fn salt(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_numbers() {
        let draw = |mut rng: Rng| (0..8).map(|_| rng.draw()).collect::<Vec<_>>();
        assert_eq!(draw(Rng::new(7)), draw(Rng::new(7)));
        assert_ne!(draw(Rng::new(7)), draw(Rng::new(8)));
        assert_ne!(draw(Rng::of(7, &[1, 2])), draw(Rng::of(7, &[2, 1])));
        assert!((0..100).all(|_| Rng::new(3).between(2, 4) >= 2));
    }
}
