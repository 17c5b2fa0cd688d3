//! A conversation in our neutral form: what people write in `messages:` and what a reply's `message` is.
//!
//! ```yaml
//! - {role: user, content: "What is on this picture?"}
//! - role: user
//!   content:
//!     - {type: text, text: "And on this?"}
//!     - {type: image, media_type: image/png, data: "iVBORw0…"}     # or {type: image, url: "https://…"}
//! - role: assistant
//!   content:
//!     - {type: reasoning, text: "…", item: {origin: …, value: …}}
//!     - {type: tool_call, id: c1, tool: files/read, arguments: {path: a.txt}}
//! - role: tool
//!   content: [{type: tool_result, id: c1, tool: files/read, content: "…", is_error: false}]
//! ```
//!
//! An `item` is what a provider said beside the canonical part, kept as it came: signed reasoning, ids, phases.
//! It goes back unchanged to where it came from, and to nobody else.

use std::sync::Arc;

use wonder_lang::value::Map;
use wonder_lang::{Value, def::Name};

use crate::problem::Problem;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    User,
    Assistant,
    Tool,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text {
        text: Name,
        item: Option<Item>,
    },
    Image(Image),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// What a model thought, as far as it says so; or something that only its provider understands.
    Reasoning {
        text: Name,
        item: Option<Item>,
    },
}

/// What a provider said, as it said it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The format and the server it came from.
    pub origin: Name,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Image {
    /// Base64.
    Data {
        media_type: Name,
        data: Name,
    },
    Url {
        url: Name,
        media_type: Option<Name>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub id: Name,
    /// Our name of the tool.
    pub tool: Name,
    pub arguments: Arguments,
    pub item: Option<Item>,
}

/// What a model wants to call a tool with. Never repaired: what cannot be read is kept and can be told to the
/// model.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// A map.
    Read(Value),
    Unreadable {
        raw: Name,
        error: Name,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call that it answers.
    pub id: Name,
    pub tool: Name,
    /// Texts and images.
    pub content: Vec<Part>,
    pub is_error: bool,
}

impl Message {
    pub fn user(text: impl Into<Name>) -> Message {
        Message { role: Role::User, content: vec![Part::text(text)] }
    }

    pub fn assistant(text: impl Into<Name>) -> Message {
        Message { role: Role::Assistant, content: vec![Part::text(text)] }
    }

    pub fn tool_result(call: &ToolCall, content: impl Into<Name>, is_error: bool) -> Message {
        let (id, tool) = (call.id.clone(), call.tool.clone());
        let result = ToolResult { id, tool, content: vec![Part::text(content)], is_error };
        Message { role: Role::Tool, content: vec![Part::ToolResult(result)] }
    }

    /// All its text, without reasoning.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(&**text),
            _ => None,
        });
        texts.collect()
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    pub fn to_value(&self) -> Value {
        let content = match &*self.content {
            [Part::Text { text, item: None }] => Value::String(text.clone()),
            parts => Value::list(parts.iter().map(Part::to_value)),
        };
        Value::map([("role", Value::str(self.role.as_str())), ("content", content)])
    }

    /// Reads one message; `place` is how a problem names it.
    pub fn from_value(value: &Value, place: &str) -> Result<Message, Problem> {
        let map = map_of(value, place, &["role", "content"])?;
        let role = match map.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            Some("system" | "developer") => {
                let message = "what the system says stands in the field `system`, not among the messages";
                return Err(Problem::new(format!("{place}.role"), message));
            }
            _ => return Err(Problem::new(format!("{place}.role"), "is one of user, assistant, tool")),
        };
        let here = format!("{place}.content");
        let content = match map.get("content") {
            Some(Value::String(text)) if role != Role::Tool => {
                vec![Part::Text { text: text.clone(), item: None }]
            }
            Some(Value::List(parts)) => {
                let parts = parts.iter().enumerate();
                parts
                    .map(|(at, part)| part_of(part, role, &format!("{here}[{at}]")))
                    .collect::<Result<_, _>>()?
            }
            _ if role == Role::Tool => {
                return Err(Problem::new(here, "is a list of `{type: tool_result, id, tool, content}`"));
            }
            _ => return Err(Problem::new(here, "is a text or a list of parts")),
        };
        Ok(Message { role, content })
    }

    /// Reads a conversation, as `messages` gives it.
    pub fn list_from_value(value: &Value) -> Result<Vec<Message>, Problem> {
        let Some(list) = value.as_list() else {
            let message = format!("is a list of `{{role, content}}`, not a {}", value.type_name());
            return Err(Problem::new("messages", message));
        };
        let each = list.iter().enumerate();
        each.map(|(at, message)| Message::from_value(message, &format!("messages[{at}]"))).collect()
    }
}

impl Part {
    pub fn text(text: impl Into<Name>) -> Part {
        Part::Text { text: text.into(), item: None }
    }

    /// The type as people write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Part::Text { .. } => "text",
            Part::Image(_) => "image",
            Part::ToolCall(_) => "tool_call",
            Part::ToolResult(_) => "tool_result",
            Part::Reasoning { .. } => "reasoning",
        }
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.into(), value);
        put("type", self.kind().into());
        match self {
            Part::Text { text, item } | Part::Reasoning { text, item } => {
                put("text", text.clone().into());
                put_item(&mut put, item.as_ref());
            }
            Part::Image(Image::Data { media_type, data }) => {
                put("media_type", media_type.clone().into());
                put("data", data.clone().into());
            }
            Part::Image(Image::Url { url, media_type }) => {
                put("url", url.clone().into());
                if let Some(media_type) = media_type {
                    put("media_type", media_type.clone().into());
                }
            }
            Part::ToolCall(call) => {
                call.put(&mut put);
                put_item(&mut put, call.item.as_ref());
            }
            Part::ToolResult(result) => {
                put("id", result.id.clone().into());
                put("tool", result.tool.clone().into());
                let content = match &*result.content {
                    [Part::Text { text, .. }] => text.clone().into(),
                    parts => Value::list(parts.iter().map(Part::to_value)),
                };
                put("content", content);
                if result.is_error {
                    put("is_error", true.into());
                }
            }
        }
        Value::from(map)
    }
}

impl ToolCall {
    /// `{id, tool, arguments}`, or `{id, tool, raw, error}` if the arguments cannot be read.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        self.put(&mut |key, value| map.insert(key.into(), value));
        Value::from(map)
    }

    fn put(&self, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
        put("id", self.id.clone().into());
        put("tool", self.tool.clone().into());
        match &self.arguments {
            Arguments::Read(arguments) => put("arguments", arguments.clone()),
            Arguments::Unreadable { raw, error } => {
                put("raw", raw.clone().into());
                put("error", error.clone().into())
            }
        };
    }
}

fn put_item(put: &mut impl FnMut(&str, Value) -> Option<Value>, item: Option<&Item>) {
    if let Some(item) = item {
        let origin = Value::String(item.origin.clone());
        put("item", Value::map([("origin", origin), ("value", item.value.clone())]));
    }
}

fn part_of(value: &Value, role: Role, place: &str) -> Result<Part, Problem> {
    if let (Value::String(text), true) = (value, role != Role::Tool) {
        return Ok(Part::Text { text: text.clone(), item: None });
    }
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let part = match (role, kind) {
        (Role::User | Role::Assistant, "text") => {
            let map = map_of(value, place, &["type", "text", "item"])?;
            Part::Text { text: text_of(map, "text", place)?, item: item_of(map, place)? }
        }
        (Role::Assistant, "reasoning") => {
            let map = map_of(value, place, &["type", "text", "item"])?;
            let text = map.get("text").and_then(Value::as_str).unwrap_or_default().into();
            Part::Reasoning { text, item: item_of(map, place)? }
        }
        (Role::User, "image") => Part::Image(image_of(value, place)?),
        (Role::Assistant, "tool_call") => Part::ToolCall(call_of(value, place)?),
        (Role::Tool, "tool_result") => Part::ToolResult(result_of(value, place)?),
        _ => {
            let known = match role {
                Role::User => "text or image",
                Role::Assistant => "text, tool_call or reasoning",
                Role::Tool => "tool_result",
            };
            let message = format!("in a message of role `{}`, a part's type is {known}", role.as_str());
            return Err(Problem::new(format!("{place}.type"), message));
        }
    };
    Ok(part)
}

fn image_of(value: &Value, place: &str) -> Result<Image, Problem> {
    let map = map_of(value, place, &["type", "media_type", "data", "url"])?;
    let media_type = map.get("media_type").and_then(Value::as_str);
    if let Some(wrong) = media_type.filter(|media_type| !media_type.starts_with("image/")) {
        return Err(Problem::new(format!("{place}.media_type"), format!("`{wrong}` is no image")));
    }
    match (map.get("data").and_then(Value::as_str), map.get("url").and_then(Value::as_str)) {
        (Some(data), None) => {
            let Some(media_type) = media_type else {
                return Err(Problem::new(place, "`data` needs a `media_type` such as image/png"));
            };
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
            if data.is_empty() || !data.bytes().all(is_base64) {
                return Err(Problem::new(format!("{place}.data"), "is not base64"));
            }
            Ok(Image::Data { media_type: media_type.into(), data: data.into() })
        }
        (None, Some(url)) => match data_url(url) {
            Some(image) => Ok(image),
            None if url.starts_with("https://") || url.starts_with("http://") => {
                Ok(Image::Url { url: url.into(), media_type: media_type.map(Name::from) })
            }
            None => Err(Problem::new(format!("{place}.url"), "begins with https://, http:// or data:image/")),
        },
        _ => Err(Problem::new(place, "an image has `data` with `media_type`, or a `url`")),
    }
}

fn data_url(url: &str) -> Option<Image> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_image = media_type.starts_with("image/") && !data.is_empty();
    is_image.then(|| Image::Data { media_type: media_type.into(), data: data.into() })
}

fn call_of(value: &Value, place: &str) -> Result<ToolCall, Problem> {
    let map = map_of(value, place, &["type", "id", "tool", "arguments", "raw", "error", "item"])?;
    let arguments = match (map.get("arguments"), map.get("raw").and_then(Value::as_str)) {
        (Some(arguments @ Value::Map(_)), None) => Arguments::Read(arguments.clone()),
        (None, Some(raw)) => {
            let error = map.get("error").and_then(Value::as_str).unwrap_or("they could not be read");
            Arguments::Unreadable { raw: raw.into(), error: error.into() }
        }
        _ => return Err(Problem::new(format!("{place}.arguments"), "is a map")),
    };
    let (id, tool) = (text_of(map, "id", place)?, text_of(map, "tool", place)?);
    Ok(ToolCall { id, tool, arguments, item: item_of(map, place)? })
}

fn result_of(value: &Value, place: &str) -> Result<ToolResult, Problem> {
    let map = map_of(value, place, &["type", "id", "tool", "content", "is_error"])?;
    let is_error = match map.get("is_error") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => return Err(Problem::new(format!("{place}.is_error"), "is true or false")),
    };
    let here = format!("{place}.content");
    let content = match map.get("content") {
        None => return Err(Problem::new(here, "is missing: what the tool gave back, or what went wrong")),
        Some(Value::String(text)) => vec![Part::Text { text: text.clone(), item: None }],
        Some(Value::List(parts)) if are_parts(parts) => {
            let parts = parts.iter().enumerate();
            parts
                .map(|(at, part)| part_of(part, Role::User, &format!("{here}[{at}]")))
                .collect::<Result<_, _>>()?
        }
        // Whatever else a tool gave is shown to the model as JSON.
        Some(other) => vec![Part::text(other.to_string())],
    };
    Ok(ToolResult { id: text_of(map, "id", place)?, tool: text_of(map, "tool", place)?, content, is_error })
}

fn are_parts(list: &[Value]) -> bool {
    let kind = |part: &Value| part.get("type").and_then(Value::as_str).map(str::to_owned);
    !list.is_empty() && list.iter().all(|part| matches!(kind(part).as_deref(), Some("text" | "image")))
}

fn item_of(map: &Map, place: &str) -> Result<Option<Item>, Problem> {
    let Some(item) = map.get("item") else { return Ok(None) };
    let here = format!("{place}.item");
    let item = map_of(item, &here, &["origin", "value"])?;
    let value = item.get("value").cloned().unwrap_or_default();
    Ok(Some(Item { origin: text_of(item, "origin", &here)?, value }))
}

fn text_of(map: &Map, key: &str, place: &str) -> Result<Arc<str>, Problem> {
    match map.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => {
            Err(Problem::new(format!("{place}.{key}"), format!("is a text, not a {}", other.type_name())))
        }
        None => Err(Problem::new(place, format!("has no `{key}`"))),
    }
}

fn map_of<'v>(value: &'v Value, place: &str, known: &[&str]) -> Result<&'v Map, Problem> {
    let Some(map) = value.as_map() else {
        return Err(Problem::new(place, format!("is a map, not a {}", value.type_name())));
    };
    match map.keys().find(|key| !known.contains(&&***key)) {
        None => Ok(map),
        Some(key) => {
            Err(Problem::new(place, format!("`{key}` is not known here; known are {}", known.join(", "))))
        }
    }
}
