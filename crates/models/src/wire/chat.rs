//! OpenAI's chat completions, as OpenAI, Ollama's `/v1` and everybody else who imitates it speak it.

use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value as Json, json};

use super::{
    Body, Deltas, End, Fold, Said, append, arguments_map, count, image_url, images, list, marked_text, owned,
    parameters, rest_of, text, whole_item,
};
use crate::arguments;
use crate::call::Asked;
use crate::decode::Reading;
use crate::message::{Arguments, Image, Item, Message, Part, Role, ToolCall};
use crate::problem::Problem;
use crate::provider::Provider;
use crate::reply::Usage;
use crate::request::{Tool, ToolChoice};
use crate::schema::{self, Shape};

/// The fields in which servers show what a model thought.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

pub(crate) fn body(asked: &Asked<'_>) -> Result<Body, Problem> {
    let request = asked.request;
    let mut body = Body::new("messages", json!({ "model": request.model }));
    say_messages(asked, &mut body)?;
    let mut put = |key: &str, value: Json| body.put(key, value);
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(|offered| tool(asked, offered)).collect());
        put("tool_choice", tool_choice(asked));
    }
    if let Some(max) = request.max_tokens {
        // OpenAI's newer models refuse the old name, most imitations know no other.
        let name = if asked.provider == Provider::OpenAi { "max_completion_tokens" } else { "max_tokens" };
        put(name, json!(max));
    }
    if let Some(degree) = request.temperature {
        put("temperature", json!(degree));
    }
    if !request.stop.is_empty() {
        put("stop", json!(request.stop));
    }
    if let Some(effort) = request.reasoning {
        put("reasoning_effort", json!(effort.as_str()));
    }
    if let Shape::Strict(schema) | Shape::Loose(schema) = &asked.shape {
        let strict = matches!(asked.shape, Shape::Strict(_));
        let format = json!({ "name": "answer", "schema": schema, "strict": strict });
        put("response_format", json!({ "type": "json_schema", "json_schema": format }));
    }
    if request.stream {
        put("stream", json!(true));
        put("stream_options", json!({ "include_usage": true }));
    }
    Ok(body)
}

fn say_messages(asked: &Asked<'_>, body: &mut Body) -> Result<(), Problem> {
    if let Some(system) = &asked.system {
        body.say(&json!({ "role": "system", "content": system }));
    }
    // Results are texts here. Their images follow when all results are told.
    let mut pictures: Vec<&Image> = Vec::new();
    for (at, message) in asked.messages.iter().enumerate() {
        if message.role != Role::Tool && !pictures.is_empty() {
            body.say(&shown(asked, &std::mem::take(&mut pictures), at)?);
        }
        match message.role {
            Role::User => body.say(&json!({ "role": "user", "content": content(asked, message, at)? })),
            Role::Assistant => assistant(asked, message).iter().for_each(|said| body.say(said)),
            Role::Tool => {
                for part in &message.content {
                    let Part::ToolResult(result) = part else { continue };
                    pictures.extend(images(result));
                    body.say(&json!({
                        "role": "tool", "tool_call_id": &*result.id, "content": marked_text(result),
                    }));
                }
            }
        }
    }
    if !pictures.is_empty() {
        body.say(&shown(asked, &pictures, asked.messages.len())?);
    }
    Ok(())
}

fn shown(asked: &Asked<'_>, pictures: &[&Image], at: usize) -> Result<Json, Problem> {
    let mut parts = vec![json!({ "type": "text", "text": "The images of the tool results above:" })];
    for image in pictures {
        parts.push(picture(asked, image, at)?);
    }
    Ok(json!({ "role": "user", "content": parts }))
}

fn content(asked: &Asked<'_>, message: &Message, at: usize) -> Result<Json, Problem> {
    if let [Part::Text { text, .. }] = &*message.content {
        return Ok(json!(&**text));
    }
    let mut parts = Vec::new();
    for part in &message.content {
        match part {
            Part::Text { text, .. } => parts.push(json!({ "type": "text", "text": &**text })),
            Part::Image(image) => parts.push(picture(asked, image, at)?),
            _ => {}
        }
    }
    Ok(Json::Array(parts))
}

fn picture(asked: &Asked<'_>, image: &Image, at: usize) -> Result<Json, Problem> {
    if asked.provider == Provider::Ollama && matches!(image, Image::Url { .. }) {
        let message = "Ollama fetches no images: give `data` with `media_type`";
        return Err(Problem::new(format!("messages[{at}]"), message));
    }
    Ok(json!({ "type": "image_url", "image_url": { "url": image_url(image) } }))
}

/// What the model said before. None if there is nothing in it that can be sent.
fn assistant(asked: &Asked<'_>, message: &Message) -> Option<Json> {
    let said = message.text();
    let calls: Vec<Json> = message.tool_calls().map(|call| tool_call(asked, call)).collect();
    if said.is_empty() && calls.is_empty() {
        return None;
    }
    let mut sent = json!({ "role": "assistant" });
    sent["content"] = if said.is_empty() { Json::Null } else { Json::String(said) };
    if !calls.is_empty() {
        sent["tool_calls"] = Json::Array(calls);
    }
    for part in &message.content {
        let Part::Reasoning { text, item } = part else { continue };
        let Some(Json::Object(mut rest)) = asked.own(item).map(wonder_lang::Value::to_json) else { continue };
        // It goes back where it stood.
        if let Some(Json::String(field)) = rest.remove("text_in") {
            rest.insert(field, json!(&**text));
        }
        if let Json::Object(sent) = &mut sent {
            sent.extend(rest);
        }
    }
    Some(sent)
}

fn tool_call(asked: &Asked<'_>, call: &ToolCall) -> Json {
    let arguments = match &call.arguments {
        // OpenAI takes what its model wrote; imitations parse it, and fail if they cannot.
        Arguments::Unreadable { raw, .. } if asked.provider == Provider::OpenAi => raw.to_string(),
        arguments => arguments_map(arguments).to_string(),
    };
    let function = json!({ "name": asked.names.outer(&call.tool), "arguments": arguments });
    let canonical = json!({ "id": &*call.id, "type": "function", "function": function });
    whole_item(asked.own(&call.item), canonical)
}

fn tool(asked: &Asked<'_>, tool: &Tool) -> Json {
    let schema = parameters(tool);
    let mut function = json!({ "name": asked.names.outer(&tool.name), "parameters": schema });
    if asked.provider == Provider::OpenAi {
        let strict = schema::narrowed(&schema, &schema::OPENAI);
        function["strict"] = json!(strict.is_some());
        if let Some(strict) = strict {
            function["parameters"] = strict;
        }
    }
    if let Some(description) = &tool.description {
        function["description"] = json!(&**description);
    }
    json!({ "type": "function", "function": function })
}

fn tool_choice(asked: &Asked<'_>) -> Json {
    match &asked.request.tool_choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => {
            json!({ "type": "function", "function": { "name": asked.names.outer(name) } })
        }
    }
}

/// Chunks, put together to a completion.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    top: JsonMap<String, Json>,
    message: JsonMap<String, Json>,
    /// By the server's number of the call.
    calls: BTreeMap<u64, JsonMap<String, Json>>,
    finish_reason: Json,
    is_done: bool,
}

impl Chunks {
    fn call(&mut self, delta: &Json, deltas: &mut Deltas<'_>) {
        let id = text(delta, "id");
        // Servers that do not number their calls send each with its id.
        let last = self.calls.last_key_value();
        let number = delta.get("index").and_then(Json::as_u64).unwrap_or(match last {
            None => 0,
            Some((number, call)) if id.is_empty() || call.get("id") == Some(&json!(id)) => *number,
            Some((number, _)) => number.saturating_add(1),
        });
        let index = self.calls.range(..number).count();
        let is_new = !self.calls.contains_key(&number);
        let call = self.calls.entry(number).or_default();
        let known = call.get("id").and_then(Json::as_str).unwrap_or_default();
        if !id.is_empty() && known.is_empty() {
            call.insert("id".to_owned(), json!(id));
        }
        for (key, value) in delta.as_object().into_iter().flatten() {
            if !matches!(&**key, "id" | "index" | "function") && !value.is_null() {
                call.insert(key.clone(), value.clone());
            }
        }
        let Some(from) = delta.get("function") else { return };
        let name = text(from, "name");
        let function = call.entry("function").or_insert_with(|| json!({}));
        let Json::Object(function) = function else { return };
        // Most say the name once, some with every piece, and OpenAI may say it in pieces.
        if !name.is_empty() && function.get("name") != Some(&json!(name)) {
            append(function, "name", name);
        }
        if is_new {
            deltas.tool_call(index, name);
        }
        let more = match from.get("arguments") {
            Some(Json::String(more)) => more.clone(),
            Some(whole @ Json::Object(_)) => whole.to_string(),
            _ => return,
        };
        append(function, "arguments", &more);
        deltas.arguments(index, &more);
    }
}

impl Fold for Chunks {
    fn event(&mut self, mut event: Json, deltas: &mut Deltas<'_>) -> Option<Json> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Some(event);
        }
        for key in ["id", "model", "usage"] {
            match event.get_mut(key).map(Json::take) {
                None | Some(Json::Null) => {}
                Some(value) => {
                    self.top.insert(key.to_owned(), value);
                }
            }
        }
        let first = |choice: &&Json| choice.get("index").and_then(Json::as_u64).unwrap_or(0) == 0;
        let choice = list(&event, "choices").iter().find(first)?;
        if let Some(reason @ Json::String(_)) = choice.get("finish_reason") {
            self.finish_reason = reason.clone();
        }
        let delta = choice.get("delta")?;
        for key in ["content", "refusal", REASONING[0], REASONING[1]] {
            let Some(more) = delta.get(key).and_then(Json::as_str).filter(|more| !more.is_empty()) else {
                continue;
            };
            append(&mut self.message, key, more);
            match key {
                "content" => deltas.text(more),
                "refusal" => {}
                _ => deltas.reasoning(more),
            }
        }
        if let Some(Json::Array(more)) = delta.get("reasoning_details") {
            let details = self.message.entry("reasoning_details").or_insert_with(|| json!([]));
            if let Json::Array(details) = details {
                details.extend(more.iter().cloned());
            }
        }
        for call in list(delta, "tool_calls") {
            self.call(call, deltas);
        }
        None
    }

    fn done_mark(&mut self) {
        self.is_done = true;
    }

    fn whole(&mut self) -> Option<Json> {
        if !self.is_done {
            return None;
        }
        let mut message = std::mem::take(&mut self.message);
        let calls: Vec<Json> = std::mem::take(&mut self.calls).into_values().map(Json::Object).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Json::Array(calls));
        }
        let mut whole = std::mem::take(&mut self.top);
        let choice = json!({ "index": 0, "message": message, "finish_reason": self.finish_reason });
        whole.insert("choices".to_owned(), json!([choice]));
        Some(Json::Object(whole))
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn usage(&self) -> Option<Usage> {
        self.top.get("usage").and_then(usage)
    }
}

pub(crate) fn said(reply: &Json, reading: &Reading) -> Said {
    let choice = &reply["choices"][0];
    let message = &choice["message"];
    let mut parts = Vec::new();
    parts.extend(thoughts(message, reading));
    let spoken = content_text(message);
    if !spoken.is_empty() {
        parts.push(Part::text(spoken));
    }
    for call in list(message, "tool_calls") {
        parts.push(Part::ToolCall(called(call, reading)));
    }
    let refusal = text(message, "refusal");
    let end = match choice.get("finish_reason").and_then(Json::as_str) {
        _ if !refusal.is_empty() => End::Refused(refusal.to_owned()),
        Some("stop") => End::Stop,
        Some("tool_calls") => End::ToolCalls,
        Some("length") => End::Length,
        Some("content_filter") => End::Filtered("the provider's content filter cut the answer".to_owned()),
        Some("error") => End::Error(choice.clone()),
        Some(other) => End::Unknown(format!("it stopped by `{other}`, which is not known")),
        None => End::Unknown("it does not say why it stopped".to_owned()),
    };
    // A refusal is what was said: the conversation shows it.
    if !refusal.is_empty() && parts.is_empty() {
        parts.push(Part::text(refusal));
    }
    let usage = reply.get("usage").and_then(usage);
    Said { parts, usage, model: owned(reply, "model"), id: owned(reply, "id"), end }
}

/// The text of a reply: a string, or parts as some imitations send them.
fn content_text(message: &Json) -> String {
    match message.get("content") {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(parts)) => parts.iter().map(|part| text(part, "text")).collect(),
        _ => String::new(),
    }
}

fn thoughts(message: &Json, reading: &Reading) -> Option<Part> {
    let field = REASONING.into_iter().find(|field| !text(message, field).is_empty());
    let details = message
        .get("reasoning_details")
        .filter(|details| !list(message, "reasoning_details").is_empty() && !details.is_null());
    if field.is_none() && details.is_none() {
        return None;
    }
    let mut rest = json!({});
    if let Some(field) = field {
        rest["text_in"] = json!(field);
    }
    if let Some(details) = details {
        rest["reasoning_details"] = details.clone();
    }
    let item = Item { origin: reading.origin.clone(), value: wonder_lang::Value::from_json(&rest) };
    Some(Part::Reasoning { text: field.map_or("", |field| text(message, field)).into(), item: Some(item) })
}

fn called(call: &Json, reading: &Reading) -> ToolCall {
    let function = &call["function"];
    let arguments = match function.get("arguments") {
        Some(Json::String(written)) => arguments::read(written),
        None | Some(Json::Null) => arguments::read(""),
        Some(other) => arguments::read(&other.to_string()),
    };
    let rest = rest_of(call, &["id", "type", "function", "index"]);
    let has_more = rest.as_map().is_some_and(|rest| !rest.is_empty());
    let item = has_more.then(|| Item { origin: reading.origin.clone(), value: rest });
    ToolCall {
        id: text(call, "id").into(),
        tool: reading.names.inner(text(function, "name")),
        arguments,
        item,
    }
}

fn usage(usage: &Json) -> Option<Usage> {
    usage.get("prompt_tokens")?;
    let (input, output) = (count(usage, "/prompt_tokens"), count(usage, "/completion_tokens"));
    // Some count reasoning beside the completion; the total has all of it.
    let beside = count(usage, "/total_tokens").saturating_sub(input).max(output);
    Some(Usage {
        input_tokens: input,
        cached_input_tokens: count(usage, "/prompt_tokens_details/cached_tokens"),
        cache_write_tokens: count(usage, "/prompt_tokens_details/cache_write_tokens"),
        output_tokens: beside,
        reasoning_tokens: count(usage, "/completion_tokens_details/reasoning_tokens"),
    })
}
