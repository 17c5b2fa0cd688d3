//! What a dispatch may cost at worst: what is reserved for it, in integers.

use crate::cost::{Allowance, price_usd_micros};
use crate::def::{Implementation, LlmCall};
use crate::event::TokenId;
use crate::graph::{Graph, Task};
use crate::limits::{MODEL_TURNS_MAX, OUTPUT_TOKENS_RESERVED};
use crate::state::Token;
use crate::value::Value;

use super::Decision;

impl Decision<'_> {
    /// The most that the calls of a task can cost. A prompt has at most as many tokens as bytes.
    pub(super) fn worst_case(&self, id: TokenId, task: &Task, input: &Value) -> Allowance {
        let mut worst = Allowance::default();
        for step in &task.steps {
            match &step.action.def.implementation {
                Implementation::LlmCall(call) => worst.add(&self.worst_call(id, call, input)),
                Implementation::Mock(mock) => worst.add(&crate::mock::worst(mock)),
                _ => {}
            }
        }
        worst
    }

    fn worst_call(&self, id: TokenId, call: &LlmCall, input: &Value) -> Allowance {
        let graph = self.run.graph();
        let overrides = &self.token(id).overrides;
        let written = overrides.model.clone().or_else(|| call.model.as_ref().map(|m| m.text.clone()));
        let model = written.map(|name| graph.cheaper(&name, self.state().downgrades as usize));
        let profile = model.as_ref().and_then(|name| graph.models.get(name));
        let start = self.state().start.as_ref();
        let prices = model.as_ref().and_then(|name| start?.prices.get(name)).copied().unwrap_or_default();
        let turns =
            if call.tools.is_empty() { 1 } else { u64::from(call.max_turns.unwrap_or(MODEL_TURNS_MAX)) };
        let answer =
            call.max_tokens.or(profile.and_then(|p| p.max_output_tokens)).unwrap_or(OUTPUT_TOKENS_RESERVED);
        let prompt = prompt_bytes(graph, call, self.token(id)) + input.size() as u64;
        // Each turn of a tool loop sends what came before it again.
        let sent = prompt
            .saturating_mul(turns)
            .saturating_add(answer.saturating_mul(turns.saturating_mul(turns - 1) / 2));
        let answered = answer.saturating_mul(turns);
        Allowance {
            usd_micros: price_usd_micros(&prices, sent, 0, answered),
            tokens: sent.saturating_add(answered),
            calls: turns,
        }
    }
}

/// Everything a call sends beside its input: one token per byte is more than any model counts.
fn prompt_bytes(graph: &Graph, call: &LlmCall, token: &Token) -> u64 {
    let text = |text: &Option<crate::def::Text>| text.as_ref().map_or(0, |t| t.text.len());
    let spec = call.prompt_spec.as_ref().and_then(|name| graph.bundle.prompts.get(&name.text));
    let by_name = spec.map_or(0, |spec| {
        let examples: usize = spec.examples.iter().map(Value::size).sum();
        spec.template.text.len() + text(&spec.system) + examples
    });
    let json = |tree: &crate::def::Tree| serde_json::to_string(tree).map_or(0, |text| text.len());
    let messages = call.messages.as_ref().map_or(0, json);
    let schema = call.output_schema.as_ref().map_or(0, |schema| schema.doc.size());
    let over = &token.overrides;
    let added =
        over.append.iter().map(|t| t.len()).sum::<usize>() + over.system.as_ref().map_or(0, |s| s.len());
    let written = text(&call.prompt) + text(&call.system) + by_name + messages + schema;
    let feedback = if token.feedback.is_null() { 0 } else { token.feedback.size() };
    (written + added + feedback) as u64
}
