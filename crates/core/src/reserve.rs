//! What a task, an action and a model call cost at most: what is reserved before a dispatch, what a worker
//! stops at, and what a plan counts with.

use crate::cost::{Allowance, TokenCounts, price_usd_micros};
use crate::def::{Implementation, LlmCall, ModelProfile, Prices, Sampling, Text, Tree};
use crate::graph::{Action, Graph, Task, Work};
use crate::limits::{IMAGE_TOKENS_RESERVED, OUTPUT_TOKENS_RESERVED, SAMPLING_BYTES_MAX};
use crate::value::Value;

/// The most that one attempt of a task can cost. `of_call` tells it of a model call: whoever asks knows which
/// model it will be, and how much is sent.
///
/// `more` is what it sends beside what is written and its input.
pub fn worst_task(task: &Task, mut of_call: impl FnMut(&LlmCall, u64) -> Allowance) -> Allowance {
    let mut worst = Allowance::default();
    for step in &task.steps {
        worst.add(&worst_action(&step.action, &mut of_call));
    }
    worst
}

/// The most that one try of an action can cost. What takes no model and no script costs nothing.
pub fn worst_action(action: &Action, of_call: impl FnOnce(&LlmCall, u64) -> Allowance) -> Allowance {
    match (&action.def.implementation, &action.work) {
        (Implementation::LlmCall(call), _) => of_call(call, 0),
        (Implementation::Mock(mock), _) => crate::mock::worst(mock),
        (_, Some(Work::McpTool(call))) => worst_sampling(call.sampling(), of_call),
        _ => Allowance::default(),
    }
}

/// The most that a server can spend which may ask a model while it performs a call.
fn worst_sampling(
    sampling: Option<&Sampling>,
    of_call: impl FnOnce(&LlmCall, u64) -> Allowance,
) -> Allowance {
    let Some(sampling) = sampling else { return Allowance::default() };
    let one = of_call(&sampled_call(sampling), SAMPLING_BYTES_MAX);
    let times = u64::from(sampling.calls_max());
    Allowance {
        usd_micros: one.usd_micros.saturating_mul(times),
        tokens: one.tokens.saturating_mul(times),
        calls: one.calls.saturating_mul(times),
    }
}

/// What a server asks of a model, as far as it is known before it does.
pub fn sampled_call(sampling: &Sampling) -> LlmCall {
    let (model, max_tokens) = (Some(sampling.model.clone()), sampling.max_tokens);
    LlmCall { model, max_tokens, ..LlmCall::default() }
}

/// The same for whoever makes the try. A model call is bounded by its own profile.
pub fn worst_try(action: &Action) -> Allowance {
    worst_action(action, |_, _| Allowance::default())
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
