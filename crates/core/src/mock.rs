//! The `mock` action: scripted outcomes, for tests, examples and benchmarks. Pure, so every host plays the
//! same part; the host keeps the delay.

use crate::cost::{Allowance, Spend};
use crate::def::{Mock, MockOutcome, MockUsage, Tree};
use crate::error::{ErrorKind, Failure};
use crate::expr::EvalError;
use crate::template::Template;
use crate::value::{Map, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct MockAnswer {
    pub result: Result<Value, Failure>,
    pub delay_ms: u64,
    pub spend: Spend,
}

/// The outcome of try `number` (from 0); the last repeats. `scope` is what templates see.
pub fn outcome(mock: &Mock, number: u32, scope: &Value) -> MockAnswer {
    let last = MockOutcome::default();
    let scripted = mock.outcomes.get(number as usize).or(mock.outcomes.last()).unwrap_or(&last);
    let result = match &scripted.error {
        Some(error) => {
            let text = error.message.as_ref().map_or("as scripted", |m| m.as_str());
            let message = render(text, scope).unwrap_or_else(|e| e.message);
            Err(Failure::new(error.kind, message))
        }
        None => match &scripted.output {
            None => Ok(Value::empty_map()),
            Some(tree) => fill(tree, scope).map_err(|e| Failure::new(ErrorKind::ExpressionError, e.message)),
        },
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

/// JSON whose texts are templates, rendered. The one way to fill such a field, for workers too.
pub fn fill(tree: &Tree, scope: &Value) -> Result<Value, EvalError> {
    match tree {
        Tree::Text(text) => Ok(Value::from(render(text.as_str(), scope)?)),
        Tree::Literal(value) => Ok(value.clone()),
        Tree::List(items) => {
            Ok(Value::from(items.iter().map(|i| fill(i, scope)).collect::<Result<Vec<_>, _>>()?))
        }
        Tree::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                map.insert(key.clone(), fill(value, scope)?);
            }
            Ok(Value::from(map))
        }
    }
}

fn render(text: &str, scope: &Value) -> Result<String, EvalError> {
    if !text.contains('{') {
        return Ok(text.to_owned());
    }
    let template = Template::compile(text).map_err(|e| EvalError { message: e.message })?;
    template.render(scope)
}
