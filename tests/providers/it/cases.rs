//! The table: what providers do, and what it maps to in each of the formats. The page shows it, the test plays it.

use serde_json::{Value as Json, json};
use wonder_core::error::ErrorKind::{self, *};

/// What an answer maps to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Maps {
    /// A result, with this `finish_reason`.
    Ends(&'static str),
    /// A failure at once.
    Fails(ErrorKind),
    /// A failure that the worker tries again by itself first.
    FailsTwice(ErrorKind),
    /// Nobody who speaks the format says so.
    Never,
}

use Maps::{Ends, Fails, FailsTwice, Never};

impl Maps {
    pub(crate) fn kind(self) -> Option<ErrorKind> {
        match self {
            Fails(kind) | FailsTwice(kind) => Some(kind),
            Ends(_) | Never => None,
        }
    }

    /// As the page shows it.
    pub(crate) fn shown(self) -> String {
        match self {
            Ends(reason) => format!("`{reason}`"),
            Fails(kind) => format!("**{kind}**"),
            FailsTwice(kind) => format!("**{kind}** ↻"),
            Never => "–".to_owned(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Case {
    /// In paths and prompts.
    pub(crate) name: &'static str,
    /// What the provider does, for the page.
    pub(crate) about: &'static str,
    /// Of the call, beside its prompt.
    pub(crate) fields: &'static str,
    /// By column.
    pub(crate) maps: [Maps; 5],
    /// What a result has to have in it, as JSON.
    pub(crate) shows: &'static str,
    /// What the failure has to say of when to come back.
    pub(crate) retry_after_ms: Option<u64>,
    /// What aimock answers, as JSON; not asked where `replies` knows better.
    fixture: &'static str,
}

impl Case {
    pub(crate) const fn new(name: &'static str, about: &'static str, maps: [Maps; 5]) -> Case {
        Case { name, about, fields: "", maps, shows: "{}", retry_after_ms: None, fixture: "{}" }
    }

    const fn with(self, fields: &'static str) -> Case {
        Case { fields, ..self }
    }

    const fn shows(self, shows: &'static str) -> Case {
        Case { shows, ..self }
    }

    const fn aimock(self, fixture: &'static str) -> Case {
        Case { fixture, ..self }
    }

    const fn after_ms(self, ms: u64) -> Case {
        Case { retry_after_ms: Some(ms), ..self }
    }

    /// The fields of its call.
    pub(crate) fn call(&self) -> String {
        let prompt = match self.name {
            "tool_result" => "messages: '{{ input.history }}'".to_owned(),
            name => format!("prompt: 'This is [{name}].'"),
        };
        if self.fields.is_empty() { prompt } else { format!("{prompt}, {}", self.fields) }
    }
}

/// The fixtures of aimock, by what is in the prompt.
pub(crate) fn fixtures() -> Json {
    let of = |case: &Case| {
        let mut fixture: Json =
            serde_json::from_str(case.fixture).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        fixture.get("response")?;
        fixture["match"] = json!({ "userMessage": format!("[{}]", case.name) });
        Some(fixture)
    };
    json!({ "fixtures": CASES.iter().filter_map(of).collect::<Vec<_>>() })
}

const STOP: [Maps; 5] = [Ends("stop"); 5];
const CALLS: [Maps; 5] = [Ends("tool_calls"); 5];
const TEXT: &str = r#"{"text": "A small piece of text that comes in pieces."}"#;
const TOOL: &str = "tools: [weather], tool_choice: required";
const SCHEMA: &str = "output_schema: {type: object, required: [score], additionalProperties: false, \
                      properties: {score: {type: integer}}}";

#[rustfmt::skip]
pub(crate) const CASES: [Case; 29] = [
    Case::new("plain", "A whole reply, though a stream was asked for", STOP)
        .with("system: Be brief., max_tokens: 500")
        .shows(r#"{"text": "Fine.", "usage": {"input_tokens": 120, "cached_input_tokens": 100, "output_tokens": 5}, "request_id": "…"}"#),
    Case::new("streamed", "A stream, whole", STOP)
        .with("system: Be brief., temperature: 0.5, max_tokens: 900")
        .shows(TEXT)
        .aimock(r#"{"response": {"content": "A small piece of text that comes in pieces."}, "chunkSize": 5}"#),
    Case::new("slow_stream", "A stream with pauses", STOP)
        .shows(TEXT)
        .aimock(r#"{"response": {"content": "A small piece of text that comes in pieces."}, "latency": 30}"#),
    Case::new("structured", "JSON that fits `output_schema`", STOP)
        .with(SCHEMA)
        .shows(r#"{"json": {"score": 7}}"#)
        .aimock(r#"{"response": {"content": "{\"score\": 7}"}}"#),
    Case::new("unstructured", "Something else, where `output_schema` wants JSON", [Fails(ContractViolation); 5])
        .with(SCHEMA)
        .aimock(r#"{"response": {"content": "I would say seven."}}"#),
    Case::new("tool", "A call of a tool", CALLS)
        .with(TOOL)
        .shows(r#"{"tool_calls": [{"tool": "weather", "arguments": {"city": "Paris"}, "error": ""}]}"#)
        .aimock(r#"{"response": {"toolCalls": [{"name": "weather", "arguments": {"city": "Paris"}}]}}"#),
    Case::new("parallel_tools", "Several calls at once: all of them, in order", CALLS)
        .with("tools: [weather]")
        .shows(r#"{"tool_calls": [{"arguments": {"city": "Paris"}, "error": ""}, {"arguments": {"city": "Rome"}, "error": ""}]}"#)
        .aimock(r#"{"response": {"toolCalls": [{"name": "weather", "arguments": {"city": "Paris"}}, {"name": "weather", "arguments": {"city": "Rome"}}]}}"#),
    Case::new("tool_result", "An answer to a tool's result", STOP)
        .with("tools: [weather]")
        .shows(r#"{"text": "It is sunny."}"#)
        .aimock(r#"{"response": {"content": "It is sunny."}}"#),
    Case::new("wrong_arguments", "Arguments that do not fit the tool: the call has an `error`, for the model to read", CALLS)
        .with(TOOL)
        .shows(r#"{"tool_calls": [{"tool": "weather", "error": "…its arguments do not fit"}]}"#)
        .aimock(r#"{"response": {"toolCalls": [{"name": "weather", "arguments": {"town": "Paris"}}]}}"#),
    Case::new("unreadable_arguments", "Arguments that are no JSON: the same. Gemini does not show them",
        [Ends("tool_calls"), Ends("tool_calls"), Ends("tool_calls"), Fails(ContractViolation), Ends("tool_calls")])
        .with(TOOL)
        .shows(r#"{"tool_calls": [{"tool": "weather", "error": "…its arguments cannot be read"}]}"#)
        .aimock(r#"{"response": {"toolCalls": [{"name": "weather", "arguments": "{\"city\": Par"}]}}"#),
    Case::new("unknown_tool", "A tool that was not offered: the same", CALLS)
        .with(TOOL)
        .shows(r#"{"tool_calls": [{"tool": "wether", "error": "…did you mean `weather`?"}]}"#)
        .aimock(r#"{"response": {"toolCalls": [{"name": "wether", "arguments": {"city": "Paris"}}]}}"#),
    Case::new("refused", "The model declines",
        [Fails(ModelRefused), Fails(ModelRefused), Fails(ModelRefused), Never, Fails(ModelRefused)])
        .aimock(r#"{"response": {"content": "I would rather not.", "finishReason": "refusal"}}"#),
    Case::new("filtered_answer", "A filter holds the answer back", [Fails(ContentFiltered); 5])
        .aimock(r#"{"response": {"content": "Half of", "finishReason": "content_filter"}}"#),
    Case::new("filtered_question", "A filter does not let the question through", [Fails(ContentFiltered); 5]),
    Case::new("truncated", "A text cut at `max_tokens`", [Ends("length"); 5])
        .with("max_tokens: 900")
        .shows(r#"{"text": "Half of"}"#)
        .aimock(r#"{"response": {"content": "Half of", "finishReason": "length"}}"#),
    Case::new("truncated_document", "JSON cut at `max_tokens`", [Fails(OutputTruncated); 5])
        .with(SCHEMA)
        .aimock(r#"{"response": {"content": "{\"score\":", "finishReason": "length"}}"#),
    Case::new("context_too_long", "More was sent than the model reads", [Fails(ContextTooLong); 5]),
    Case::new("no_key", "401, or what the provider says instead", [Fails(Auth); 5])
        .aimock(r#"{"response": {"error": {"message": "the key is wrong", "type": "authentication_error"}, "status": 401}}"#),
    Case::new("no_money", "No credit is left; Gemini says it as a rate",
        [Fails(Auth), Fails(Auth), Fails(Auth), FailsTwice(RateLimited), Fails(Auth)]),
    Case::new("rate_limited", "429 with `Retry-After`, or Google's `RetryInfo`: waited for as asked", [FailsTwice(RateLimited); 5])
        .after_ms(1_000)
        .aimock(r#"{"response": {"error": {"message": "slower", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}}"#),
    Case::new("unknown_model", "404", [Fails(HttpStatus); 5])
        .aimock(r#"{"response": {"error": {"message": "there is no such model", "type": "not_found_error"}, "status": 404}}"#),
    Case::new("server_error", "500", [FailsTwice(HttpStatus); 5])
        .aimock(r#"{"response": {"error": {"message": "we broke", "type": "api_error"}, "status": 500}}"#),
    Case::new("overloaded", "529, or 503", [FailsTwice(Overloaded); 5])
        .aimock(r#"{"response": {"error": {"message": "too much to do", "type": "overloaded_error"}, "status": 529}}"#),
    Case::new("error_in_stream", "The same, told within a stream", [FailsTwice(Overloaded); 5]),
    Case::new("broken_stream", "A stream that ends before its end", [FailsTwice(Network); 5])
        .aimock(r#"{"response": {"content": "A small piece of text that comes in pieces."}, "latency": 1, "chunkSize": 5, "truncateAfterChunks": 3}"#),
    Case::new("malformed_reply", "A reply that is no JSON", [Fails(HttpStatus); 5])
        .aimock(r#"{"response": {"content": "Fine."}, "chaos": {"malformedRate": 1}}"#),
    Case::new("malformed_stream", "An event that is no JSON", [Fails(HttpStatus); 5]),
    Case::new("unknown_end", "An end that nobody has documented", [Fails(HttpStatus); 5]),
    Case::new("timeout", "Nothing more for longer than `timeout`", [Fails(Timeout); 5])
        .with("timeout: 300ms"),
];
