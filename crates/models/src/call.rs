//! From a neutral request to the HTTP request of one provider, and to what is needed to read its answer.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wonder_lang::def::Name;
use wonder_lang::value::Value;

use crate::conversation;
use crate::decode::{Decoder, Reading};
use crate::facts;
use crate::message::{Item, Message, Part, Role};
use crate::names::Names;
use crate::problem::Problem;
use crate::provider::{KeyChoice, Provider, Wire};
use crate::request::{Request, ToolChoice};
use crate::schema::{self, Shape};
use crate::url::BaseUrl;
use crate::wire;

/// Whom a request is for.
#[derive(Clone, Debug)]
pub struct Target {
    pub provider: Provider,
    /// None: the provider's usual one, and another where that cannot say what is asked.
    pub wire: Option<Wire>,
    /// None: the provider's own.
    pub base_url: Option<String>,
    /// What [`crate::key_for`] decided.
    pub key: KeyChoice,
    /// Beside ours, or in place of them.
    pub headers: Vec<Header>,
}

/// A header. One with a secret in it does not show its value.
#[derive(Clone, Eq, PartialEq)]
pub struct Header {
    pub name: String,
    pub value: String,
    pub is_secret: bool,
}

impl Header {
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Header {
        Header { name: name.into(), value: value.into(), is_secret: false }
    }

    pub fn secret(name: impl Into<String>, value: impl Into<String>) -> Header {
        Header { is_secret: true, ..Header::new(name, value) }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.is_secret { ".." } else { &self.value };
        write!(f, "{}: {value}", self.name)
    }
}

/// What to send. No secret is in the URL or in the body.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpCall {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<Header>,
    /// JSON.
    pub body: Vec<u8>,
}

/// A request on its way: what to send, and how to read what comes back.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub call: HttpCall,
    pub wire: Wire,
    reading: Arc<Reading>,
}

impl Exchange {
    /// Reads the answer with this status and these headers, at most so many bytes of it.
    pub fn decoder<'h>(
        &self,
        status: u16,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        bytes_max: usize,
    ) -> Decoder {
        Decoder::new(self.reading.clone(), status, headers, bytes_max)
    }
}

/// A request as the codec of a format sees it: checked, with names and a schema that the provider allows.
pub(crate) struct Asked<'r> {
    pub(crate) request: &'r Request,
    pub(crate) provider: Provider,
    pub(crate) messages: Cow<'r, [Message]>,
    pub(crate) names: Names,
    pub(crate) origin: Name,
    pub(crate) system: Option<Cow<'r, str>>,
    pub(crate) shape: Shape,
}

impl Asked<'_> {
    /// What the provider said of a part, if this is the provider that said it.
    pub(crate) fn own<'i>(&self, item: &'i Option<Item>) -> Option<&'i Value> {
        item.as_ref().filter(|item| item.origin == self.origin).map(|item| &item.value)
    }
}

/// The HTTP request for a model call. Nothing is sent; a request that its provider would refuse in any case is
/// a problem here.
pub fn encode(request: &Request, target: &Target) -> Result<Exchange, Problem> {
    let provider = target.provider;
    let wire = wire_of(request, target);
    let base = base_of(target)?;
    check(request)?;
    let origin: Name = format!("{wire} {}", base.place()).into();
    let shape = shape_of(request, provider, wire);
    let asked = Asked {
        request,
        provider,
        messages: conversation::checked(&request.messages)?,
        names: names_of(request),
        origin: origin.clone(),
        system: system_of(request, &shape),
        shape,
    };
    let mut body = match wire {
        Wire::Chat => wire::chat::body(&asked)?,
        Wire::Responses => wire::responses::body(&asked)?,
        Wire::Anthropic => wire::anthropic::body(&asked)?,
        Wire::Gemini => wire::gemini::body(&asked)?,
    };
    lay_over(&mut body.fields, request)?;
    let call = HttpCall {
        method: "POST",
        url: url_of(&base, wire, request),
        headers: headers_of(request, target, wire)?,
        body: body.into_bytes(),
    };
    let reading = Reading {
        provider,
        wire,
        origin,
        names: asked.names,
        schema: request.output_schema.clone(),
        may_be_cut: request.may_be_cut(),
        stream: request.stream,
        key: target.key.clone(),
    };
    Ok(Exchange { call, wire, reading: Arc::new(reading) })
}

fn wire_of(request: &Request, target: &Target) -> Wire {
    let usual = target.provider.wires()[0];
    // Responses knows no texts to stop at.
    let usual = if usual == Wire::Responses && !request.stop.is_empty() { Wire::Chat } else { usual };
    target.wire.unwrap_or(usual)
}

fn base_of(target: &Target) -> Result<BaseUrl, Problem> {
    let written = target.base_url.as_deref().or(target.provider.base_url()).ok_or_else(|| {
        Problem::new(
            "base_url",
            format!("{} is anywhere: say where, such as `https://host/v1`", target.provider),
        )
    })?;
    let base = BaseUrl::parse(written)?;
    Ok(match target.provider.version_path() {
        Some(version) => base.with_version(version),
        None => base,
    })
}

fn check(request: &Request) -> Result<(), Problem> {
    if request.model.trim().is_empty() {
        return Err(Problem::new("model", "is empty: say the provider's name of the model"));
    }
    if request.max_tokens == Some(0) {
        return Err(Problem::new("max_tokens", "is a number above 0"));
    }
    if request.temperature.is_some_and(|degree| !degree.is_finite() || degree < 0.0) {
        return Err(Problem::new("temperature", "is a number from 0 on"));
    }
    for (at, tool) in request.tools.iter().enumerate() {
        if request.tools[..at].iter().any(|other| other.name == tool.name) {
            return Err(Problem::new("tools", format!("`{}` is offered twice", tool.name)));
        }
        let is_map = tool.schema.get("type").is_none_or(|kind| kind.as_str() == Some("object"));
        if tool.schema.as_map().is_none() || !is_map {
            let place = format!("tools.{}", tool.name);
            return Err(Problem::new(place, "the schema of its arguments is one of `type: object`"));
        }
    }
    match &request.tool_choice {
        ToolChoice::Required if request.tools.is_empty() => {
            Err(Problem::new("tool_choice", "a tool is required, but none is offered"))
        }
        ToolChoice::Tool(name) if !request.tools.iter().any(|tool| tool.name == *name) => {
            Err(Problem::new("tool_choice", format!("`{name}` is not among the tools offered")))
        }
        _ => Ok(()),
    }
}

/// The names of all tools that a request speaks of, those of its past included.
fn names_of(request: &Request) -> Names {
    let parts = request.messages.iter().flat_map(|message| &message.content);
    let spoken_of = parts.filter_map(|part| match part {
        Part::ToolCall(call) => Some(&call.tool),
        Part::ToolResult(result) => Some(&result.tool),
        _ => None,
    });
    Names::new(request.tools.iter().map(|tool| &tool.name).chain(spoken_of))
}

/// How the output schema is put: the provider's own mechanism where it can say it, else in words.
fn shape_of(request: &Request, provider: Provider, wire: Wire) -> Shape {
    let Some(schema) = &request.output_schema else { return Shape::Free };
    let doc = schema.doc().to_json();
    let with_tools = !request.tools.is_empty();
    match wire {
        // Its grammar for the answer leaves no room for calls.
        Wire::Chat if provider == Provider::Ollama && with_tools => Shape::Told(doc),
        Wire::Chat | Wire::Responses => match schema::narrowed(&doc, &schema::OPENAI) {
            Some(strict) if schema::is_object(&strict) => Shape::Strict(strict),
            _ if schema::is_object(&doc) => Shape::Loose(doc),
            _ => Shape::Told(doc),
        },
        Wire::Anthropic => match schema::narrowed(&doc, &schema::ANTHROPIC) {
            Some(strict) => Shape::Strict(strict),
            None => Shape::Told(doc),
        },
        Wire::Gemini if with_tools && facts::gemini_is_before_3(&request.model) => Shape::Told(doc),
        Wire::Gemini => match schema::narrowed(&doc, &schema::GEMINI) {
            Some(strict) => Shape::Strict(strict),
            None => Shape::Told(doc),
        },
    }
}

fn system_of<'r>(request: &'r Request, shape: &Shape) -> Option<Cow<'r, str>> {
    let system = request.system.as_deref().filter(|text| !text.trim().is_empty());
    let Shape::Told(schema) = shape else { return system.map(Cow::Borrowed) };
    let told = format!(
        "Your final answer is JSON and nothing else, without a code fence. It fits this JSON Schema:\n{schema}"
    );
    Some(Cow::Owned(match system {
        Some(system) => format!("{system}\n\n{told}"),
        None => told,
    }))
}

/// What is made from the call itself; a parameter of that name would undo it.
const MADE_HERE: [&str; 9] =
    ["model", "messages", "input", "contents", "stream", "system", "systemInstruction", "instructions", "n"];

/// Lays the profile's own fields over a body: maps and lists are joined, all else is replaced.
fn lay_over(body: &mut Json, request: &Request) -> Result<(), Problem> {
    fn join(under: &mut Json, over: Json) {
        match (under, over) {
            (Json::Object(under), Json::Object(over)) => {
                for (key, value) in over {
                    join(under.entry(key).or_insert(Json::Null), value);
                }
            }
            (Json::Array(under), Json::Array(over)) => under.extend(over),
            (under, over) => *under = over,
        }
    }
    for (name, value) in &request.parameters {
        if MADE_HERE.contains(&&**name) {
            let message = "is made from the call; leave it out of the profile's parameters";
            return Err(Problem::new(format!("parameters.{name}"), message));
        }
        join(body, json!({ &**name: value.to_json() }));
    }
    Ok(())
}

fn url_of(base: &BaseUrl, wire: Wire, request: &Request) -> String {
    match wire {
        Wire::Chat => base.join("chat/completions"),
        Wire::Responses => base.join("responses"),
        Wire::Anthropic => base.join("messages"),
        Wire::Gemini => base.join(&wire::gemini::path(request)),
    }
}

fn headers_of(request: &Request, target: &Target, wire: Wire) -> Result<Vec<Header>, Problem> {
    let accept = if request.stream { "text/event-stream" } else { "application/json" };
    let mut headers = vec![Header::new("content-type", "application/json"), Header::new("accept", accept)];
    if wire == Wire::Anthropic {
        headers.push(Header::new("anthropic-version", wire::anthropic::VERSION));
    }
    if let Some(key) = target.key.key() {
        let key = key.expose();
        headers.push(match wire {
            Wire::Chat | Wire::Responses => Header::secret("authorization", format!("Bearer {key}")),
            Wire::Anthropic => Header::secret("x-api-key", key),
            Wire::Gemini => Header::secret("x-goog-api-key", key),
        });
    }
    if let (Some(key), Provider::OpenAi) = (&request.idempotency_key, target.provider) {
        headers.push(Header::new("idempotency-key", key));
    }
    for header in &target.headers {
        let name = header.name.to_ascii_lowercase();
        headers.retain(|own| own.name != name);
        headers.push(Header { name, ..header.clone() });
    }
    match headers.iter().find(|header| !is_header(header)) {
        None => Ok(headers),
        Some(header) => {
            let message = "a header is one line of printable ASCII, and so is a key";
            Err(Problem::new(format!("headers.{}", header.name.escape_debug()), message))
        }
    }
}

fn is_header(header: &Header) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_value = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    !header.name.is_empty() && header.name.bytes().all(is_name) && header.value.bytes().all(is_value)
}

/// The first to speak, for providers who want that to be the user.
pub(crate) fn begins_with_user(messages: &[Message]) -> Result<(), Problem> {
    match messages.first() {
        Some(first) if first.role != Role::User => {
            Err(Problem::new("messages[0].role", "this provider wants a message of the user first"))
        }
        _ => Ok(()),
    }
}
