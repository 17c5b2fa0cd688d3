//! What a task, an action and a model call cost at most: what is reserved before a dispatch, what a worker
//! stops at, and what a plan counts with.

use crate::cost::{Allowance, TokenCounts, price_usd_micros};
use crate::def::{Implementation, LlmCall, ModelProfile, Prices, Text, Tree};
use crate::graph::{Action, Graph, Task};
use crate::limits::{IMAGE_TOKENS_RESERVED, OUTPUT_TOKENS_RESERVED};
use crate::value::Value;

/// The most that one attempt of a task can cost. `of_call` tells it of a model call: whoever asks knows which
/// model it will be, and how much is sent.
pub fn worst_task(task: &Task, mut of_call: impl FnMut(&LlmCall) -> Allowance) -> Allowance {
    let mut worst = Allowance::default();
    for step in &task.steps {
        worst.add(&worst_action(&step.action.def.implementation, &mut of_call));
    }
    worst
}

/// The most that one try of an action can cost. What takes no model and no script costs nothing.
pub fn worst_action(
    implementation: &Implementation,
    of_call: impl FnOnce(&LlmCall) -> Allowance,
) -> Allowance {
    match implementation {
        Implementation::LlmCall(call) => of_call(call),
        Implementation::Mock(mock) => crate::mock::worst(mock),
        _ => Allowance::default(),
    }
}

/// The same for whoever makes the try. A model call is bounded by its own profile.
pub fn worst_try(action: &Action) -> Allowance {
    worst_action(&action.def.implementation, |_| Allowance::default())
}

/// The most that a call can cost which sends so many bytes at first. A prompt has at most as many tokens as
/// bytes.
pub fn worst_call(call: &LlmCall, profile: Option<&ModelProfile>, prices: &Prices, bytes: u64) -> Allowance {
    let answer = answer_tokens(call, profile).unwrap_or(OUTPUT_TOKENS_RESERVED);
    let images = (call.images.len() as u64).saturating_mul(IMAGE_TOKENS_RESERVED);
    let bytes = bytes.saturating_add(images);
    // All of it may be put into the provider's cache.
    let dearest = Prices { input: prices.input_max(), ..*prices };
    let counts = TokenCounts { input: bytes, output: answer, ..TokenCounts::default() };
    Allowance {
        usd_micros: price_usd_micros(&dearest, counts),
        tokens: bytes.saturating_add(answer),
        calls: 1,
    }
}

/// The most tokens that a call may answer with, if anybody says so: it, else its profile.
pub fn answer_tokens(call: &LlmCall, profile: Option<&ModelProfile>) -> Option<u64> {
    call.max_tokens.or_else(|| profile.and_then(ModelProfile::answer_tokens))
}

/// Everything that a call is written to send, beside its input.
pub fn written_bytes(graph: &Graph, call: &LlmCall) -> u64 {
    let text = |text: &Option<Text>| text.as_ref().map_or(0, |text| text.text.len());
    let spec = call.prompt_spec.as_ref().and_then(|name| graph.bundle.prompts.get(&name.text));
    let by_name = spec.map_or(0, |spec| {
        let examples: usize = spec.examples.iter().map(Value::size).sum();
        spec.template.text.len() + text(&spec.system) + examples
    });
    let json = |tree: &Tree| serde_json::to_string(tree).map_or(0, |text| text.len());
    let messages = call.messages.as_ref().map_or(0, json);
    let schema = call.output_schema.as_ref().map_or(0, |schema| schema.doc.size());
    (text(&call.prompt) + text(&call.system) + by_name + messages + schema) as u64
}
