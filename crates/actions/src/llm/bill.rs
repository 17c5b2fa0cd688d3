//! What an answer cost, whether it was of use or not: refusals, filters and cut answers are paid for too.

use wonder_core::cost::{Spend, TokenCounts, price_usd_micros};
use wonder_core::def::Prices;
use wonder_models::{CallFailure, FailureKind, Reply, Usage};

/// Bytes of an answer that count as a token where nobody counted.
const BYTES_PER_TOKEN: usize = 3;

/// Adds what was used. Where a provider answers and does not say, an estimate counts, for a budget that counts nothing
/// bounds nothing; then there is a note for people.
pub(super) fn count(
    spend: &mut Spend,
    answer: &Result<Reply, CallFailure>,
    prices: Option<Prices>,
    estimate: u64,
) -> Option<String> {
    let (usage, said) = match answer {
        Ok(reply) => (reply.usage, Some(reply)),
        Err(failure) => (failure.usage, failure.reply.as_deref().filter(|_| is_answer(failure.kind))),
    };
    // Some imitations say that everything was nothing.
    let usage = usage.filter(|usage| usage.input_tokens > 0 || usage.output_tokens > 0);
    let guessed = said.filter(|_| usage.is_none()).map(|reply| Usage {
        input_tokens: estimate,
        output_tokens: reply.text.len().div_ceil(BYTES_PER_TOKEN) as u64,
        ..Usage::default()
    });
    let used = usage.or(guessed)?;
    spend.input_tokens = used.input_tokens;
    spend.output_tokens = used.output_tokens;
    spend.cached_tokens = used.cached_input_tokens;
    spend.unpriced_calls = u64::from(prices.is_none());
    let prices = prices.unwrap_or_default();
    let counts = TokenCounts {
        input: used.input_tokens,
        cached: used.cached_input_tokens,
        cache_write: used.cache_write_tokens,
        output: used.output_tokens,
    };
    spend.usd_micros = price_usd_micros(&prices, counts);
    guessed.map(|_| format!("the provider does not say what it used: about {} tokens count", spend.tokens()))
}

fn is_answer(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::ModelRefused
            | FailureKind::ContentFiltered
            | FailureKind::ContractViolation
            | FailureKind::OutputTruncated
    )
}
