//! The formats, one file each: a neutral request to a body, a stream folded into the unstreamed reply, and that
//! reply to what was said. Each has one way to read a reply, streamed or not.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod responses;

use serde_json::{Map as JsonMap, Value as Json, json};
use wonder_lang::Value;

use crate::message::{Arguments, Image, Part, ToolResult};
use crate::names::Names;
use crate::reply::{Delta, Usage};
use crate::request::Tool;

/// Puts the events of a stream together to the reply that would have come unstreamed.
pub(crate) trait Fold: std::fmt::Debug + Send + Sync {
    /// Takes the JSON of one event. An error that it tells is handed back.
    fn event(&mut self, event: Json, deltas: &mut Deltas<'_>) -> Option<Json>;
    /// The mark `[DONE]`, where the format has one.
    fn done_mark(&mut self) {}
    /// Whether all came, and what it is. None: the stream broke off.
    fn whole(&mut self) -> Option<Json>;
    /// Whether nothing that matters can come any more.
    fn is_complete(&self) -> bool;
    /// What was paid, as far as it was told.
    fn usage(&self) -> Option<Usage>;
}

/// What is new, for whoever watches.
pub(crate) struct Deltas<'n> {
    pub(crate) names: &'n Names,
    pub(crate) list: Vec<Delta>,
}

impl Deltas<'_> {
    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.list.push(Delta::Text(text.to_owned()));
        }
    }

    pub(crate) fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.list.push(Delta::Reasoning(text.to_owned()));
        }
    }

    pub(crate) fn tool_call(&mut self, index: usize, outer: &str) {
        self.list.push(Delta::ToolCall { index, tool: self.names.inner(outer) });
    }

    pub(crate) fn arguments(&mut self, index: usize, text: &str) {
        if !text.is_empty() {
            self.list.push(Delta::Arguments { index, text: text.to_owned() });
        }
    }
}

/// A request as it is sent: its conversation, written message by message as the codec goes through it, and all else.
/// A conversation is sent whole with every turn, and is by far the largest thing there is: it is never there twice.
#[derive(Debug)]
pub(crate) struct Body {
    text: Vec<u8>,
    is_empty: bool,
    pub(crate) fields: Json,
}

impl Body {
    /// `conversation`: the field that it stands in.
    pub(crate) fn new(conversation: &str, fields: Json) -> Body {
        Body { text: format!("{{{}:[", json!(conversation)).into_bytes(), is_empty: true, fields }
    }

    /// The next message of the conversation.
    pub(crate) fn say(&mut self, message: &Json) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.text.push(b',');
        }
        write_json(&mut self.text, message);
    }

    pub(crate) fn put(&mut self, key: &str, value: Json) {
        self.fields[key] = value;
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut text = self.text;
        text.push(b']');
        for (key, value) in self.fields.as_object().into_iter().flatten() {
            text.push(b',');
            write_json(&mut text, &json!(key));
            text.push(b':');
            write_json(&mut text, value);
        }
        text.push(b'}');
        text
    }
}

fn write_json(text: &mut Vec<u8>, json: &Json) {
    serde_json::to_writer(text, json).expect("JSON can be written, and memory takes it");
}

/// What a provider's reply says, before it is judged.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Option<Usage>,
    pub(crate) model: Option<String>,
    /// The provider's id of the reply.
    pub(crate) id: Option<String>,
    pub(crate) end: End,
}

/// How a reply ended. Whatever a provider may say that is not known here is no good end.
#[derive(Debug)]
pub(crate) enum End {
    Stop,
    ToolCalls,
    Length,
    Refused(String),
    Filtered(String),
    ContextTooLong(String),
    /// The model's own mistake: a call that cannot be read, and the like.
    Malformed(String),
    /// The provider's word for an error, with its body.
    Error(Json),
    /// An end that nobody has told us about.
    Unknown(String),
}

/// Adds a text to a field that may not be there yet.
pub(crate) fn append(map: &mut JsonMap<String, Json>, key: &str, more: &str) {
    match map.get_mut(key) {
        Some(Json::String(text)) => text.push_str(more),
        _ => {
            map.insert(key.to_owned(), Json::String(more.to_owned()));
        }
    }
}

/// A number among others; absent is none.
pub(crate) fn count(json: &Json, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Json::as_u64).unwrap_or(0)
}

pub(crate) fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json.get(key).and_then(Json::as_str).unwrap_or_default()
}

pub(crate) fn owned(json: &Json, key: &str) -> Option<String> {
    json.get(key).and_then(Json::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(crate) fn list<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    json.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

/// The schema of a tool's arguments, as every provider takes it: a map that says its properties.
pub(crate) fn parameters(tool: &Tool) -> Json {
    let mut schema = tool.schema.to_json();
    if let Json::Object(map) = &mut schema {
        map.entry("type").or_insert_with(|| json!("object"));
        map.entry("properties").or_insert_with(|| json!({}));
        map.remove("$schema");
    }
    schema
}

/// The arguments of a call for those who take nothing but a map. What could not be read goes back as a text, so
/// that the model sees what it wrote.
pub(crate) fn arguments_map(arguments: &Arguments) -> Json {
    match arguments {
        Arguments::Read(map) => map.to_json(),
        Arguments::Unreadable { raw, .. } => json!({ "unreadable_arguments": &**raw }),
    }
}

/// The text of a tool's result; images have a place of their own.
pub(crate) fn result_text(result: &ToolResult) -> String {
    let texts = result.content.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The same for providers that have no mark for errors.
pub(crate) fn marked_text(result: &ToolResult) -> String {
    let text = result_text(result);
    if result.is_error { format!("ERROR: {text}") } else { text }
}

pub(crate) fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    result.content.iter().filter_map(|part| match part {
        Part::Image(image) => Some(image),
        _ => None,
    })
}

/// An image as a URL, which may have all of it in it.
pub(crate) fn image_url(image: &Image) -> String {
    match image {
        Image::Data { media_type, data } => format!("data:{media_type};base64,{data}"),
        Image::Url { url, .. } => url.to_string(),
    }
}

/// A provider's item without the fields that the canonical part has already.
pub(crate) fn rest_of(item: &Json, without: &[&str]) -> Value {
    let mut rest = item.clone();
    if let Json::Object(map) = &mut rest {
        map.retain(|key, value| !without.contains(&&**key) && !value.is_null());
    }
    Value::from_json(&rest)
}

/// An item with what the canonical part says laid over it.
pub(crate) fn whole_item(rest: Option<&Value>, canonical: Json) -> Json {
    let mut item = rest.map_or_else(|| json!({}), Value::to_json);
    if let (Json::Object(item), Json::Object(canonical)) = (&mut item, canonical) {
        item.extend(canonical);
    }
    item
}
