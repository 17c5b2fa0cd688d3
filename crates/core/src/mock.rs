//! The `mock` action: scripted outcomes, for tests, examples and benchmarks. Pure, so every host plays the
//! same part; the host keeps the delay.

use crate::cost::{Allowance, Spend};
use crate::def::{Mock, MockUsage};
use crate::error::{ErrorKind, Failure};
use crate::graph::{MockOutcomeSpec, MockSpec};
use crate::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct MockAnswer {
    pub result: Result<Value, Failure>,
    pub delay_ms: u64,
    pub spend: Spend,
}

/// The outcome of try `number` (from 0); the last repeats. `scope` is what templates see.
pub fn outcome(mock: &MockSpec, number: u32, scope: &Value) -> MockAnswer {
    let last = MockOutcomeSpec::default();
    let scripted = mock.outcomes.get(number as usize).or(mock.outcomes.last()).unwrap_or(&last);
    let result = match (&scripted.error, &scripted.output) {
        (Some(error), _) => {
            let message = error.message.as_ref().map(|message| message.render(scope));
            let message = message.unwrap_or_else(|| Ok("as scripted".to_owned()));
            Err(Failure::new(error.kind, message.unwrap_or_else(|error| error.message)))
        }
        (None, None) => Ok(Value::empty_map()),
        (None, Some(tree)) => {
            tree.render(scope).map_err(|error| Failure::new(ErrorKind::ExpressionError, error.message))
        }
    };
    let spend = Spend {
        usd_micros: scripted.usage.usd_micros,
        input_tokens: scripted.usage.input_tokens,
        output_tokens: scripted.usage.output_tokens,
        calls: 1,
        ..Spend::default()
    };
    MockAnswer { result, delay_ms: scripted.delay_ms.unwrap_or(0), spend }
}

/// The most that one try of it can cost.
pub fn worst(mock: &Mock) -> Allowance {
    let of = |what: fn(&MockUsage) -> u64| mock.outcomes.iter().map(|o| what(&o.usage)).max().unwrap_or(0);
    Allowance {
        usd_micros: of(|usage| usage.usd_micros),
        tokens: of(|usage| usage.input_tokens + usage.output_tokens),
        calls: 1,
    }
}
