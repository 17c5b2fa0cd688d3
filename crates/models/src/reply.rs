//! What a model answered, in our neutral form.

use wonder_lang::Value;
use wonder_lang::def::Name;
use wonder_lang::schema::Schema;

use crate::decode::document;
use crate::message::{Message, Part, ToolCall};

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// All text, without reasoning.
    pub text: String,
    /// The text as JSON, if a schema was asked for and no tool is called.
    pub json: Option<Value>,
    /// To append to the conversation as it is. Its tool calls are the calls.
    pub message: Message,
    /// None if the provider did not say: then it is not known, which is not zero.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider says.
    pub model: Option<Name>,
    pub finish_reason: FinishReason,
    pub request_id: Option<Name>,
}

impl Reply {
    /// What a model that says this is taken to have answered: its end by whether it calls tools, and its text as the
    /// document that was asked for. Err: why it is not that document.
    pub fn said(message: Message, schema: Option<&Schema>) -> Result<Reply, String> {
        let calls = message.tool_calls().next().is_some();
        let text = message.text();
        let json = match schema.filter(|_| !calls) {
            Some(schema) => Some(document(&text, schema)?),
            None => None,
        };
        let finish_reason = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        Ok(Reply { text, json, message, usage: None, model: None, finish_reason, request_id: None })
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.tool_calls()
    }

    /// What it thought, as far as it says so.
    pub fn reasoning(&self) -> String {
        let texts = self.message.content.iter().filter_map(|part| match part {
            Part::Reasoning { text, .. } => Some(&**text),
            _ => None,
        });
        texts.collect()
    }

    /// The result of an `llm_call`, as expressions see it.
    pub fn to_value(&self) -> Value {
        let or_null = |text: &Option<Name>| text.clone().map_or(Value::Null, Value::String);
        Value::map([
            ("text", Value::str(self.text.as_str())),
            ("json", self.json.clone().unwrap_or_default()),
            ("tool_calls", Value::list(self.tool_calls().map(ToolCall::to_value))),
            ("message", self.message.to_value()),
            ("usage", self.usage.map_or(Value::Null, Usage::to_value)),
            ("model", or_null(&self.model)),
            ("finish_reason", Value::str(self.finish_reason.as_str())),
            ("request_id", or_null(&self.request_id)),
        ])
    }
}

/// Tokens, with one meaning for all providers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// All input: what was read from the provider's cache and what was written to it included.
    pub input_tokens: u64,
    /// The part of the input that came from the cache.
    pub cached_input_tokens: u64,
    /// The part of the input that was written to the cache.
    pub cache_write_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
}

impl Usage {
    pub fn to_value(self) -> Value {
        let count = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        Value::map([
            ("input_tokens", count(self.input_tokens)),
            ("cached_input_tokens", count(self.cached_input_tokens)),
            ("cache_write_tokens", count(self.cache_write_tokens)),
            ("output_tokens", count(self.output_tokens)),
            ("reasoning_tokens", count(self.reasoning_tokens)),
        ])
    }
}

/// Why a model stopped. Only the first three can be those of a reply that is no failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FinishReason {
    Stop,
    /// Plain text that reached `max_tokens`. Where anything hangs on the whole answer (a schema, tools that were
    /// offered, no text at all) this is the failure `output_truncated`.
    Length,
    ToolCalls,
    ContentFilter,
    Refusal,
}

impl FinishReason {
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::ContentFilter => "content_filter",
            FinishReason::Refusal => "refusal",
        }
    }
}

/// What is new while an answer comes in. For showing only: the reply is what counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The call with this number, in the order of the reply, is of this tool (our name).
    ToolCall {
        index: usize,
        tool: Name,
    },
    /// More of its arguments, as text.
    Arguments {
        index: usize,
        text: String,
    },
}
