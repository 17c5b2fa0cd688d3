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

/// What a model call cost, in micro-dollars, rounded up: a budget must not be overspent by rounding.
pub fn price_usd_micros(prices: &Prices, input: u64, cached: u64, output: u64) -> u64 {
    let fresh = u128::from(input.saturating_sub(cached));
    let cached = u128::from(cached.min(input));
    let cached_price = u128::from(prices.cached_input.unwrap_or(prices.input));
    let total = fresh * u128::from(prices.input)
        + cached * cached_price
        + u128::from(output) * u128::from(prices.output);
    u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
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
        let prices = Prices { input: 3_000_000, output: 15_000_000, cached_input: Some(300_000) };
        assert_eq!(price_usd_micros(&prices, 1_000, 0, 100), 4_500);
        assert_eq!(price_usd_micros(&prices, 1_000, 1_000, 0), 300);
        assert_eq!(price_usd_micros(&Prices { input: 1, ..Prices::default() }, 1, 0, 0), 1);
    }

    #[test]
    fn dollars_show_all_that_counts_and_at_least_cents() {
        for (micros, text) in [(0, "$0.00"), (50_000, "$0.05"), (1_234_500, "$1.2345"), (1, "$0.000001")] {
            assert_eq!(dollars(micros), text);
        }
    }
}
