//! What a dispatch may cost at worst: what is reserved for it, in integers.

use crate::cost::Allowance;
use crate::def::LlmCall;
use crate::event::TokenId;
use crate::graph::Task;
use crate::reserve;
use crate::state::Token;
use crate::value::Value;

use super::Decision;

impl Decision<'_> {
    /// The most that the calls of a task can cost. A prompt has at most as many tokens as bytes.
    pub(super) fn worst_case(&self, id: TokenId, task: &Task, input: &Value) -> Allowance {
        reserve::worst_task(task, |call, more| self.worst_call(id, call, (input, more)))
    }

    fn worst_call(&self, id: TokenId, call: &LlmCall, (input, more): (&Value, u64)) -> Allowance {
        let graph = self.run.graph();
        let overrides = &self.token(id).overrides;
        let written = overrides.model.clone().or_else(|| call.model.as_ref().map(|m| m.text.clone()));
        let model = written.map(|name| graph.cheaper(&name, self.state().downgrades as usize));
        let profile = model.as_ref().and_then(|name| graph.models.get(name));
        let start = self.state().start.as_ref();
        let prices = model.as_ref().and_then(|name| start?.prices.get(name)).copied().unwrap_or_default();
        let bytes = reserve::written_bytes(graph, call) + added_bytes(self.token(id)) + input.size() as u64;
        let bytes = bytes.saturating_add(more);
        reserve::worst_call(call, profile, &prices, bytes)
    }
}

/// What responses put before or behind a prompt, and the judgement that it answers.
fn added_bytes(token: &Token) -> u64 {
    let over = &token.overrides;
    let added =
        over.append.iter().map(|t| t.len()).sum::<usize>() + over.system.as_ref().map_or(0, |s| s.len());
    let feedback = if token.feedback.is_null() { 0 } else { token.feedback.size() };
    (added + feedback) as u64
}
