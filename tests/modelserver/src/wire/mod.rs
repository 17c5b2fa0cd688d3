//! The formats: what each refuses, and what each answers. Written from the providers' documentation, not from the
//! codecs that are tried against it.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::{Map, Value as Json, json};

use crate::answer_json;
use crate::script::{Call, Fault, Script, Turn, Usage, When};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wire {
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

/// A request that passed, as far as scripts look at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// One more than the model has answered.
    pub(crate) turn: usize,
    pub(crate) last: String,
    pub(crate) last_role: String,
    /// All that was said, one text after the other.
    pub(crate) all: String,
    pub(crate) include_usage: bool,
    bytes: usize,
}

/// Why a request is not answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    pub(crate) retry_after: Option<String>,
}

pub(crate) type Checked<T = ()> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), ..Refusal::default() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(400, message)
    }

    pub(crate) fn of(fault: &Fault) -> Refusal {
        let retry_after = fault.retry_after.as_ref().map(|after| match after {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        });
        let message = fault.message.clone().unwrap_or_else(|| "as the script says".to_owned());
        let status = if fault.status == 0 { 500 } else { fault.status };
        Refusal { status, message, code: fault.code.clone(), retry_after }
    }
}

/// Refuses unless it is so.
pub(crate) fn need(so: bool, message: impl Into<String>) -> Checked {
    if so { Ok(()) } else { Err(Refusal::invalid(message)) }
}

impl Asked {
    pub(crate) fn fits(&self, when: &When) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        let within = |wanted: &Option<String>, text: &str| {
            wanted.as_deref().is_none_or(|wanted| text.contains(wanted))
        };
        when.turn.is_none_or(|turn| turn == self.turn)
            && within(&when.contains, &self.all)
            && within(&when.last_contains, &self.last)
            && same(&when.last, &self.last_role)
            && same(&when.model, &self.model)
            && when.stream.is_none_or(|stream| stream == self.stream)
    }

    /// Notes what somebody said.
    pub(crate) fn heard(&mut self, role: &str, text: &str) {
        if role == "assistant" {
            self.turn += 1;
        }
        if self.last_role == role && role == "tool" {
            self.last.push('\n');
            self.last.push_str(text);
        } else {
            self.last = text.to_owned();
        }
        self.last_role = role.to_owned();
        self.all.push_str(text);
        self.all.push('\n');
    }
}

/// A turn of the script, as an answer to one request.
pub(crate) struct Answer<'s> {
    pub(crate) turn: &'s Turn,
    pub(crate) asked: Asked,
    pub(crate) number: u64,
    pub(crate) text: String,
    pub(crate) usage: Usage,
}

impl<'s> Answer<'s> {
    pub(crate) fn new(turn: &'s Turn, asked: Asked, number: u64) -> Answer<'s> {
        let text = match &turn.json {
            Some(json) => json.to_string(),
            None => turn.text.replace("{last}", &asked.last).replace("{turn}", &asked.turn.to_string()),
        };
        let usage = turn.usage.unwrap_or_else(|| Usage {
            input_tokens: asked.bytes as u64 / 4 + 1,
            output_tokens: text.len() as u64 / 4 + 1,
            ..Usage::default()
        });
        Answer { turn, asked, number, text, usage }
    }

    pub(crate) fn call_id(&self, at: usize, call: &Call) -> String {
        call.id.clone().unwrap_or_else(|| format!("call_{}_{at}", self.number))
    }

    pub(crate) fn chunks<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let size = self.turn.chunk_chars.unwrap_or(20).max(1);
        let mut chunks = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
            let (chunk, left) = rest.split_at(end);
            chunks.push(chunk);
            rest = left;
        }
        chunks
    }
}

impl Wire {
    pub(crate) fn of_path(path: &str) -> Option<Wire> {
        match path.trim_end_matches('/') {
            path if path.ends_with("/chat/completions") => Some(Wire::Chat),
            path if path.ends_with("/responses") => Some(Wire::Responses),
            path if path.ends_with("/messages") => Some(Wire::Anthropic),
            path if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Some(Wire::Gemini)
            }
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
        }
    }

    pub(crate) fn id_header(self) -> &'static str {
        if self == Wire::Anthropic { "request-id" } else { "x-request-id" }
    }

    /// The request, if the provider would take it.
    pub(crate) fn asked(
        self,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Json,
        script: &Script,
    ) -> Checked<Asked> {
        self.check_key(uri, headers, script)?;
        let mut asked = Asked { turn: 1, bytes: body.to_string().len(), ..Asked::default() };
        match self {
            Wire::Chat => chat::check(body, &mut asked)?,
            Wire::Responses => responses::check(body, &mut asked)?,
            Wire::Anthropic => anthropic::check(body, headers, &mut asked)?,
            Wire::Gemini => gemini::check(body, uri, &mut asked)?,
        }
        Ok(asked)
    }

    fn check_key(self, uri: &Uri, headers: &HeaderMap, script: &Script) -> Checked {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let key = match self {
            Wire::Chat | Wire::Responses => {
                header("authorization").and_then(|key| key.strip_prefix("Bearer "))
            }
            Wire::Anthropic => header("x-api-key"),
            Wire::Gemini => header("x-goog-api-key"),
        };
        if uri.query().is_some_and(|query| query.contains("key=")) {
            return Err(Refusal::invalid("a key does not belong into a URL"));
        }
        match (key, &script.key) {
            (None | Some(""), _) => Err(Refusal::new(401, "there is no key")),
            (Some(key), Some(wanted)) if key != wanted => Err(Refusal::new(401, "the key is wrong")),
            _ => Ok(()),
        }
    }

    pub(crate) fn whole(self, answer: &Answer<'_>) -> Json {
        match self {
            Wire::Chat => chat::whole(answer),
            Wire::Responses => responses::whole(answer),
            Wire::Anthropic => anthropic::whole(answer),
            Wire::Gemini => gemini::whole(answer),
        }
    }

    /// The answer as events, each as it is sent.
    pub(crate) fn events(self, answer: &Answer<'_>) -> Vec<String> {
        match self {
            Wire::Chat => chat::events(answer),
            Wire::Responses => responses::events(answer),
            Wire::Anthropic => anthropic::events(answer),
            Wire::Gemini => gemini::events(answer),
        }
    }

    fn error_body(self, refusal: &Refusal, number: u64) -> Json {
        let Refusal { status, message, code, .. } = refusal;
        match self {
            Wire::Chat | Wire::Responses => {
                let kind = match status {
                    401 => "authentication_error",
                    429 => "rate_limit_exceeded",
                    400 => "invalid_request_error",
                    _ => "server_error",
                };
                let usual = if matches!(status, 503 | 529) { "server_is_overloaded" } else { kind };
                let code = code.clone().unwrap_or_else(|| usual.to_owned());
                json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
            }
            Wire::Anthropic => {
                let kind = match status {
                    400 => "invalid_request_error",
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                };
                let kind = code.clone().unwrap_or_else(|| kind.to_owned());
                let error = json!({ "type": kind, "message": message });
                json!({ "type": "error", "error": error, "request_id": format!("req_{number}") })
            }
            Wire::Gemini => {
                let word = match status {
                    400 => "INVALID_ARGUMENT",
                    401 => "UNAUTHENTICATED",
                    403 => "PERMISSION_DENIED",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    _ => "INTERNAL",
                };
                let word = code.clone().unwrap_or_else(|| word.to_owned());
                let mut error = json!({ "code": status, "message": message, "status": word });
                if let Some(after) = &refusal.retry_after {
                    let kind = "type.googleapis.com/google.rpc.RetryInfo";
                    error["details"] = json!([{ "@type": kind, "retryDelay": format!("{after}s") }]);
                }
                json!({ "error": error })
            }
        }
    }

    pub(crate) fn refuse(self, refusal: &Refusal, number: u64) -> Response {
        let id = format!("req_{number}");
        let mut headers = vec![(self.id_header(), &*id)];
        // Gemini says it in the body.
        if let Some(after) = refusal.retry_after.as_deref().filter(|_| self != Wire::Gemini) {
            headers.push(("retry-after", after));
        }
        answer_json(refusal.status, &headers, &self.error_body(refusal, number))
    }

    /// An error in the middle of a stream.
    pub(crate) fn fault_event(self, refusal: &Refusal) -> String {
        let body = self.error_body(refusal, 0);
        match self {
            Wire::Chat | Wire::Gemini => data(&body),
            Wire::Anthropic => named(&body),
            Wire::Responses => {
                let error = &body["error"];
                named(
                    &json!({ "type": "error", "code": error["code"], "message": error["message"], "param": null }),
                )
            }
        }
    }
}

pub(crate) fn data(event: &Json) -> String {
    format!("data: {event}\n\n")
}

pub(crate) fn named(event: &Json) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

/// Refuses fields that the provider does not know.
pub(crate) fn only(json: &Json, known: &[&str], place: &str) -> Checked {
    let Some(map) = json.as_object() else {
        return Err(Refusal::invalid(format!("{place} is no object")));
    };
    match map.keys().find(|key| !known.contains(&&***key)) {
        None => Ok(()),
        Some(key) => Err(Refusal::invalid(format!("{place}: `{key}` is not permitted"))),
    }
}

pub(crate) fn list<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    json.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json.get(key).and_then(Json::as_str).unwrap_or_default()
}

pub(crate) fn check_name(name: &str, length_max: usize) -> Checked {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_name = !name.is_empty() && name.len() <= length_max && name.chars().all(allowed);
    need(is_name, format!("`{name}` is no name of a tool"))
}

/// What strict schemas must have: every key required, nothing besides. Optional keys are allowed to some.
pub(crate) fn check_strict(schema: &Json, all_required: bool) -> Checked {
    let Json::Object(map) = schema else { return Ok(()) };
    let is_object = map
        .get("type")
        .is_some_and(|kind| kind == "object" || list(schema, "type").contains(&json!("object")));
    if is_object {
        need(map.get("additionalProperties") == Some(&json!(false)), "additionalProperties must be false")?;
        let empty = Map::new();
        let properties = map.get("properties").and_then(Json::as_object).unwrap_or(&empty);
        let required = list(schema, "required");
        let missing = properties.keys().find(|key| !required.contains(&json!(key)));
        if let Some(key) = missing.filter(|_| all_required) {
            return Err(Refusal::invalid(format!("`required` must have every key, and has no `{key}`")));
        }
    }
    for banned in ["minLength", "maxLength", "patternProperties", "oneOf", "not"] {
        need(!map.contains_key(banned), format!("`{banned}` is not permitted in a strict schema"))?;
    }
    for (key, part) in map {
        match (&**key, part) {
            ("properties" | "$defs", Json::Object(parts)) => {
                parts.values().try_for_each(|part| check_strict(part, all_required))?;
            }
            ("items", part) => check_strict(part, all_required)?,
            ("anyOf" | "allOf", Json::Array(parts)) => {
                parts.iter().try_for_each(|part| check_strict(part, all_required))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the server puts under what it wants back unchanged.
pub(crate) fn signature(of: &str) -> String {
    let hash = of.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("sig{hash:016x}=")
}
