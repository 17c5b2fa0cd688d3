//! Money and tokens as integers: what was spent, what a dispatch may spend, what a call costs.

use serde::{Deserialize, Serialize};

use crate::def::{Name, Prices, is_default};
use crate::error::Failure;

/// What one attempt, node or run spent. Dollars are millionths.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Spend {
    #[serde(skip_serializing_if = "is_default")]
    pub usd_micros: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub input_tokens: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub output_tokens: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub cached_tokens: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub calls: u64,
    /// Calls of models that nobody knows the price of: what they cost is in no sum of dollars.
    #[serde(skip_serializing_if = "is_default")]
    pub unpriced_calls: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_used: Option<Name>,
}

impl Spend {
    pub fn add(&mut self, other: &Spend) {
        self.usd_micros = self.usd_micros.saturating_add(other.usd_micros);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.calls = self.calls.saturating_add(other.calls);
        self.unpriced_calls = self.unpriced_calls.saturating_add(other.unpriced_calls);
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
        if other.model_used.is_some() {
            self.model_used.clone_from(&other.model_used);
        }
    }

    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// The most that something may spend: what a dispatch reserves and a worker stops at. Zero is no bound.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Allowance {
    #[serde(skip_serializing_if = "is_default")]
    pub usd_micros: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub tokens: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub calls: u64,
}

impl Allowance {
    /// What was spent, as a bound that it would just fit.
    pub fn of(spend: &Spend) -> Allowance {
        Allowance { usd_micros: spend.usd_micros, tokens: spend.tokens(), calls: spend.calls }
    }

    pub fn add(&mut self, other: &Allowance) {
        self.usd_micros = self.usd_micros.saturating_add(other.usd_micros);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.calls = self.calls.saturating_add(other.calls);
    }

    pub fn subtract(&mut self, other: &Allowance) {
        self.usd_micros = self.usd_micros.saturating_sub(other.usd_micros);
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.calls = self.calls.saturating_sub(other.calls);
    }

    /// A worker's word that it stops here: after what it spent, one more call may break this bound. None if
    /// the call fits. `cause` is the failure that would have been tried again.
    pub fn stops(&self, spent: &Spend, wanted: &Allowance, cause: Option<&Failure>) -> Option<Failure> {
        let told = |amount: u64| (amount > 0).then_some(amount);
        let limits = [told(self.usd_micros), told(self.tokens), told(self.calls)];
        let broken = over(limits, [spent.usd_micros, spent.tokens(), spent.calls], wanted)?;
        let message = format!("the task stops at what was reserved for it: {broken}");
        Some(Failure::stopped_at_allowance(message, cause))
    }
}

/// Which of the limits (dollars, tokens, calls) would be broken by what is wanted, in words; None if it fits.
pub fn over(limits: [Option<u64>; 3], used: [u64; 3], wanted: &Allowance) -> Option<String> {
    let units = [("", wanted.usd_micros), (" tokens", wanted.tokens), (" calls", wanted.calls)];
    units.into_iter().zip(limits).zip(used).find_map(|(((unit, wanted), limit), used)| {
        let limit = limit?;
        let breaks = wanted > 0 && used.saturating_add(wanted) > limit;
        let shown = |amount: u64| if unit.is_empty() { dollars(amount) } else { amount.to_string() };
        breaks.then(|| {
            let (used, limit, wanted) = (shown(used), shown(limit), shown(wanted));
            format!("{used} of {limit}{unit} are spent, and the next call may need {wanted}")
        })
    })
}

/// Tokens of a model call, as far as they have prices of their own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TokenCounts {
    /// All that went in, the next two included.
    pub input: u64,
    /// Of those, what the provider had in its cache.
    pub cached: u64,
    /// Of those, what it put there.
    pub cache_write: u64,
    pub output: u64,
}

/// What a model call cost, in micro-dollars, rounded up: a budget must not be overspent by rounding.
pub fn price_usd_micros(prices: &Prices, tokens: TokenCounts) -> u64 {
    let cached = tokens.cached.min(tokens.input);
    let written = tokens.cache_write.min(tokens.input - cached);
    let fresh = tokens.input - cached - written;
    let priced = [
        (fresh, prices.input),
        (cached, prices.cached_input.unwrap_or(prices.input)),
        (written, prices.cache_write.unwrap_or(prices.input)),
        (tokens.output, prices.output),
    ];
    let total: u128 = priced.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
    u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Prices {
    /// The most that a token may cost which goes in: nobody knows before a call what of it is cached.
    pub fn input_max(&self) -> u64 {
        self.input.max(self.cached_input.unwrap_or(0)).max(self.cache_write.unwrap_or(0))
    }
}

/// Micro-dollars as people read them: all that counts, and at least cents.
pub fn dollars(usd_micros: u64) -> String {
    let text = format!("${}.{:06}", usd_micros / 1_000_000, usd_micros % 1_000_000);
    let kept = text.trim_end_matches('0').len().max(text.len() - 4);
    text[..kept].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_round_up_and_cached_tokens_cost_their_own_price() {
        let prices = Prices {
            input: 3_000_000,
            output: 15_000_000,
            cached_input: Some(300_000),
            cache_write: Some(3_750_000),
        };
        let counts = |input, cached, output| TokenCounts { input, cached, output, ..TokenCounts::default() };
        assert_eq!(price_usd_micros(&prices, counts(1_000, 0, 100)), 4_500);
        assert_eq!(price_usd_micros(&prices, counts(1_000, 1_000, 0)), 300);
        assert_eq!(price_usd_micros(&Prices { input: 1, ..Prices::default() }, counts(1, 0, 0)), 1);
        let written = TokenCounts { cache_write: 400, ..counts(1_000, 200, 0) };
        assert_eq!(price_usd_micros(&prices, written), 400 * 3 + 200 * 3 / 10 + 400 * 15 / 4);
        let unwritten = Prices { cache_write: None, ..prices };
        assert_eq!(
            price_usd_micros(&unwritten, written),
            800 * 3 + 200 * 3 / 10,
            "else they cost what others do"
        );
    }

    #[test]
    fn dollars_show_all_that_counts_and_at_least_cents() {
        for (micros, text) in [(0, "$0.00"), (50_000, "$0.05"), (1_234_500, "$1.2345"), (1, "$0.000001")] {
            assert_eq!(dollars(micros), text);
        }
    }
}
