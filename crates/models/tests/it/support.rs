//! Requests, targets and answers for the other files.

use serde_json::Value as Json;
use wonder_lang::schema::Schema;
use wonder_lang::{Time, Value};
use wonder_models::{
    CallFailure, Delta, Exchange, Key, KeyChoice, Message, Provider, Reply, Request, Target, Tool, Wire,
    encode,
};

pub(crate) const KEY: &str = "sk-this-is-secret";
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// One provider for each format.
pub(crate) const ALL: [(Provider, Wire); 4] = [
    (Provider::OpenAiCompatible, Wire::Chat),
    (Provider::OpenAi, Wire::Responses),
    (Provider::Anthropic, Wire::Anthropic),
    (Provider::Gemini, Wire::Gemini),
];

pub(crate) fn target(provider: Provider, wire: Wire) -> Target {
    let base_url = (provider == Provider::OpenAiCompatible).then(|| "https://llm.example/v1".to_owned());
    let key = KeyChoice::OfProfile(Key::new(KEY));
    Target { provider, wire: Some(wire), base_url, key, headers: Vec::new() }
}

pub(crate) fn model(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "qwen3",
        Wire::Responses => "gpt-5.2",
        Wire::Anthropic => "claude-opus-4-8",
        Wire::Gemini => "gemini-3-pro",
    }
}

pub(crate) fn ask(wire: Wire) -> Request {
    Request {
        model: model(wire).to_owned(),
        messages: vec![Message::user("What is the weather in Paris?")],
        ..Request::default()
    }
}

pub(crate) fn value(json: &str) -> Value {
    Value::from_json_str(json).unwrap()
}

pub(crate) fn schema(json: &str) -> Schema {
    Schema::compile(&value(json)).unwrap()
}

pub(crate) fn tool(name: &str, schema: &str) -> Tool {
    Tool { name: name.into(), description: Some(format!("Does {name}.").into()), schema: value(schema) }
}

pub(crate) fn weather() -> Tool {
    tool("weather/now", r#"{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}"#)
}

pub(crate) fn exchange(request: &Request, (provider, wire): (Provider, Wire)) -> Exchange {
    encode(request, &target(provider, wire)).unwrap()
}

pub(crate) fn body(exchange: &Exchange) -> Json {
    serde_json::from_slice(&exchange.call.body).unwrap()
}

/// Reads an unstreamed answer.
pub(crate) fn answered(exchange: &Exchange, status: u16, body: &str) -> Result<Reply, CallFailure> {
    answered_with(exchange, status, &[], body)
}

pub(crate) fn answered_with(
    exchange: &Exchange,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Reply, CallFailure> {
    let json = [("content-type", "application/json")];
    let mut decoder = exchange.decoder(status, json.iter().chain(headers).copied(), BYTES_MAX);
    assert_eq!(decoder.push(body.as_bytes()), []);
    decoder.finish(Time(0))
}

/// Reads a streamed answer that comes in these pieces.
pub(crate) fn streamed<'p>(
    exchange: &Exchange,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Vec<Delta>, Result<Reply, CallFailure>) {
    let headers = [("content-type", "text/event-stream; charset=utf-8"), ("x-request-id", "req_7")];
    let mut decoder = exchange.decoder(200, headers, BYTES_MAX);
    let mut deltas = Vec::new();
    for piece in pieces {
        deltas.extend(decoder.push(piece));
    }
    (deltas, decoder.finish(Time(0)))
}

/// Events as a server sends them.
pub(crate) fn sse(events: &[Json]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}
