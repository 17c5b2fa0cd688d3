//! From the bytes of an answer to a reply or a failure. A stream is folded into the unstreamed reply first, so
//! that there is one way to read a reply. Fail-closed: an end that is not known to be good is a failure, and so
//! is a stream that breaks off.

use std::sync::Arc;

use serde_json::Value as Json;
use wonder_lang::def::Name;
use wonder_lang::schema::Schema;
use wonder_lang::{Time, Value};

use crate::failure::{CallFailure, FailureKind, Headers};
use crate::message::{Message, Part, Role};
use crate::names::Names;
use crate::provider::{Key, KeyChoice, Provider, Wire};
use crate::reply::{Delta, FinishReason, Reply};
use crate::sse;
use crate::told;
use crate::wire::{self, Deltas, End, Fold, Said};

/// What is known of an answer before it comes.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) provider: Provider,
    pub(crate) wire: Wire,
    pub(crate) origin: Name,
    pub(crate) names: Names,
    pub(crate) schema: Option<Schema>,
    pub(crate) may_be_cut: bool,
    pub(crate) stream: bool,
    pub(crate) key: KeyChoice,
}

impl Reading {
    /// What a provider says, without the key that it may say with it. Before it is cut: half a key is one too.
    pub(crate) fn without_key(&self, text: &str) -> String {
        match self.key.key().map(Key::expose) {
            Some(key) if !key.is_empty() => text.replace(key, "[key]"),
            _ => text.to_owned(),
        }
    }
}

/// Takes an answer as it comes. Made by [`crate::Exchange::decoder`].
#[derive(Debug)]
pub struct Decoder {
    reading: Arc<Reading>,
    status: u16,
    headers: Headers,
    bytes_max: usize,
    taken: usize,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// The server does not say what it sends: the first byte tells.
    Unseen,
    Whole(Vec<u8>),
    Stream {
        events: sse::Events,
        fold: Box<dyn Fold>,
        broken: Option<CallFailure>,
    },
}

impl Decoder {
    pub(crate) fn new<'h>(
        reading: Arc<Reading>,
        status: u16,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        bytes_max: usize,
    ) -> Decoder {
        let headers = Headers::new(headers);
        let kind = headers.get("content-type").unwrap_or_default().to_ascii_lowercase();
        let body = if is_success(status) && kind.starts_with("text/event-stream") {
            stream(reading.wire)
        } else if !is_success(status) || kind.starts_with("application/json") || !reading.stream {
            Body::Whole(Vec::new())
        } else {
            Body::Unseen
        };
        Decoder { reading, status, headers, bytes_max, taken: 0, body }
    }

    /// Takes more of the answer and says what is new in it. Beyond the limit nothing is taken.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        self.taken = self.taken.saturating_add(bytes.len());
        if self.is_over() {
            return Vec::new();
        }
        if matches!(self.body, Body::Unseen) {
            match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => return Vec::new(),
                Some(b'{' | b'[') => self.body = Body::Whole(Vec::new()),
                Some(_) => self.body = stream(self.reading.wire),
            }
        }
        let reading = &self.reading;
        match &mut self.body {
            Body::Unseen => Vec::new(),
            Body::Whole(all) => {
                all.extend_from_slice(bytes);
                Vec::new()
            }
            Body::Stream { events, fold, broken } => {
                let mut deltas = Deltas { names: &reading.names, list: Vec::new() };
                events.push(bytes, |data| {
                    if broken.is_none() {
                        *broken = event(reading, fold.as_mut(), data, &mut deltas);
                    }
                });
                deltas.list
            }
        }
    }

    /// Whether nothing that matters can come any more, so that the rest need not be waited for.
    pub fn is_complete(&self) -> bool {
        match &self.body {
            Body::Stream { fold, broken, .. } => broken.is_some() || fold.is_complete() || self.is_over(),
            _ => self.is_over(),
        }
    }

    fn is_over(&self) -> bool {
        self.taken > self.bytes_max
    }

    /// What it was, all in all. `now` is for servers that name a time to come back at.
    pub fn finish(mut self, now: Time) -> Result<Reply, CallFailure> {
        let reply = self.read();
        reply.map_err(|mut failure| {
            failure.status = failure.status.or(Some(self.status));
            failure.request_id = self.headers.request_id().or(failure.request_id);
            failure.retry_after_ms = self.headers.retry_after_ms(now).or(failure.retry_after_ms);
            failure.message = self.reading.without_key(&failure.message);
            failure
        })
    }

    fn read(&mut self) -> Result<Reply, CallFailure> {
        let reading = self.reading.clone();
        self.take_rest();
        let who = reading.provider;
        if self.is_over() {
            let message = format!("{who} answered with more than {} bytes", self.bytes_max);
            return Err(CallFailure::new(FailureKind::OutputTruncated, message));
        }
        let whole = match &mut self.body {
            Body::Unseen => None,
            Body::Whole(bytes) if !is_success(self.status) => {
                return Err(told::failure(&reading, self.status, bytes));
            }
            Body::Whole(bytes) => parsed(&reading, self.status, bytes)?,
            Body::Stream { broken: Some(failure), fold, .. } => {
                let usage = failure.usage.or(fold.usage());
                return Err(CallFailure { usage, ..failure.clone() });
            }
            Body::Stream { fold, .. } => {
                let usage = fold.usage();
                match fold.whole() {
                    Some(whole) => Some(whole),
                    None => return Err(CallFailure { usage, ..broke_off(who) }),
                }
            }
        };
        let whole = whole.ok_or_else(|| broke_off(who))?;
        if whole.get("error").is_some_and(|error| !error.is_null()) && whole.get("status").is_none() {
            return Err(told::failure_of(&reading, None, &whole));
        }
        let said = match reading.wire {
            Wire::Chat => wire::chat::said(&whole, &reading),
            Wire::Responses => wire::responses::said(&whole, &reading),
            Wire::Anthropic => wire::anthropic::said(&whole, &reading),
            Wire::Gemini => wire::gemini::said(&whole, &reading),
        };
        judge(&reading, said, self.headers.request_id())
    }

    /// Some servers do not end the last line of a stream. What is whole there counts, half of it does not.
    fn take_rest(&mut self) {
        let Body::Stream { events, fold, broken: broken @ None } = &mut self.body else { return };
        let Some(data) = events.rest() else { return };
        if data.trim() == "[DONE]" || serde_json::from_str::<Json>(&data).is_ok() {
            let mut deltas = Deltas { names: &self.reading.names, list: Vec::new() };
            *broken = event(&self.reading, fold.as_mut(), &data, &mut deltas);
        }
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

fn stream(wire: Wire) -> Body {
    let fold: Box<dyn Fold> = match wire {
        Wire::Chat => Box::new(wire::chat::Chunks::default()),
        Wire::Responses => Box::new(wire::responses::Events::default()),
        Wire::Anthropic => Box::new(wire::anthropic::Events::default()),
        Wire::Gemini => Box::new(wire::gemini::Chunks::default()),
    };
    Body::Stream { events: sse::Events::default(), fold, broken: None }
}

/// Takes one event; what it tells of a failure is the end of it.
fn event(reading: &Reading, fold: &mut dyn Fold, data: &str, deltas: &mut Deltas<'_>) -> Option<CallFailure> {
    let data = data.trim();
    if data.is_empty() {
        return None;
    }
    if data == "[DONE]" {
        fold.done_mark();
        return None;
    }
    match serde_json::from_str::<Json>(data) {
        Ok(json) => fold.event(json, deltas).map(|error| told::failure_of(reading, None, &error)),
        Err(error) => {
            let message = format!("{} sent an event that is no JSON: {error}", reading.provider);
            Some(CallFailure::new(FailureKind::HttpStatus, message))
        }
    }
}

/// The whole body; None if it broke off.
fn parsed(reading: &Reading, status: u16, bytes: &[u8]) -> Result<Option<Json>, CallFailure> {
    match serde_json::from_slice(bytes) {
        Ok(whole @ Json::Object(_)) => Ok(Some(whole)),
        // Gemini without events: a list of chunks. Nothing here asks for that.
        Ok(_) => Err(not_a_reply(reading, status, "it is no JSON object")),
        Err(error) if error.is_eof() => Ok(None),
        Err(error) => Err(not_a_reply(reading, status, &error.to_string())),
    }
}

fn not_a_reply(reading: &Reading, status: u16, why: &str) -> CallFailure {
    let message = format!("{} answered {status} with something that is no reply: {why}", reading.provider);
    CallFailure::new(FailureKind::HttpStatus, message).with_status(status)
}

fn broke_off(who: Provider) -> CallFailure {
    CallFailure::new(FailureKind::Network, format!("the answer of {who} broke off before its end"))
}

/// What was said, judged: a reply, or why it is none.
fn judge(reading: &Reading, said: Said, request_id: Option<Name>) -> Result<Reply, CallFailure> {
    let Said { mut parts, usage, model, id, end } = said;
    let id: Option<Name> = id.map(Name::from);
    give_ids(&mut parts, id.as_deref());
    let message = Message { role: Role::Assistant, content: parts };
    let text = message.text();
    let calls = message.tool_calls().next().is_some();
    let finish_reason = match &end {
        End::Stop | End::ToolCalls if calls => FinishReason::ToolCalls,
        End::Length | End::ContextTooLong(_) => FinishReason::Length,
        End::Refused(_) => FinishReason::Refusal,
        End::Filtered(_) => FinishReason::ContentFilter,
        _ => FinishReason::Stop,
    };
    let model = model.map(Name::from);
    let mut reply =
        Reply { text, json: None, message, usage, model, finish_reason, request_id: request_id.or(id) };
    let failure = match end {
        End::Stop => None,
        End::ToolCalls if calls => None,
        End::ToolCalls => {
            failed(FailureKind::ContractViolation, "it says that it calls a tool, and calls none")
        }
        // A cut text can be of use; a cut call, a cut document or nothing at all cannot.
        End::Length if reading.may_be_cut && !calls && !reply.text.is_empty() => None,
        End::Length => {
            failed(FailureKind::OutputTruncated, "the answer was cut at its most tokens (`max_tokens`)")
        }
        End::Refused(why) => failed(FailureKind::ModelRefused, &why),
        End::Filtered(why) => failed(FailureKind::ContentFiltered, &why),
        End::ContextTooLong(why) => failed(FailureKind::ContextTooLong, &why),
        End::Malformed(why) => failed(FailureKind::ContractViolation, &why),
        End::Error(error) => return Err(told::failure_of(reading, None, &error).with_reply(reply)),
        End::Unknown(why) => failed(FailureKind::HttpStatus, &why),
    };
    let failure = failure.or_else(|| match (&reading.schema, reply.finish_reason) {
        (Some(schema), FinishReason::Stop) => match document(&reply.text, schema) {
            Ok(json) => {
                reply.json = Some(json);
                None
            }
            Err(why) => failed(FailureKind::ContractViolation, &why),
        },
        _ => None,
    });
    match failure {
        None => Ok(reply),
        Some(mut failure) => {
            failure.message = format!("{}: {}", reading.provider, failure.message);
            Err(failure.with_reply(reply))
        }
    }
}

fn failed(kind: FailureKind, message: &str) -> Option<CallFailure> {
    Some(CallFailure::new(kind, message))
}

/// Calls without an id, or with one that another has, get one of their own.
fn give_ids(parts: &mut [Part], reply_id: Option<&str>) {
    let mut given: Vec<Name> = Vec::new();
    for part in parts {
        let Part::ToolCall(call) = part else { continue };
        if call.id.is_empty() || given.contains(&call.id) {
            let reply_id = reply_id.map(|id| format!("{id}_")).unwrap_or_default();
            call.id = format!("call_{reply_id}{}", given.len()).into();
        }
        given.push(call.id.clone());
    }
}

/// The answer as JSON that fits its schema. Models like to put a fence around it, which is not part of it.
pub(crate) fn document(text: &str, schema: &Schema) -> Result<Value, String> {
    let bare = text.trim();
    let inside =
        bare.strip_prefix("```json").or(bare.strip_prefix("```")).and_then(|rest| rest.strip_suffix("```"));
    let json = Value::from_json_str(inside.unwrap_or(bare))
        .map_err(|why| format!("the answer is no JSON: {why}"))?;
    schema.check(&json).map_err(|violations| {
        let list = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        format!("the answer does not fit its schema: {list}")
    })?;
    Ok(json)
}
