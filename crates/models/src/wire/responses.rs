//! OpenAI's Responses. Nothing is stored there: the conversation is ours, and reasoning travels with it encrypted.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use wonder_lang::Value;

use super::{
    Body, Deltas, End, Fold, Said, arguments_map, count, image_url, images, list, marked_text, owned,
    parameters, rest_of, text, whole_item,
};
use crate::arguments;
use crate::call::Asked;
use crate::decode::Reading;
use crate::facts;
use crate::message::{Arguments, Image, Item, Message, Part, Role, ToolCall, ToolResult};
use crate::problem::Problem;
use crate::provider::Provider;
use crate::reply::Usage;
use crate::request::{Tool, ToolChoice};
use crate::schema::{self, Shape};

pub(crate) fn body(asked: &Asked<'_>) -> Result<Body, Problem> {
    let request = asked.request;
    if !request.stop.is_empty() {
        return Err(Problem::new(
            "stop",
            "Responses knows no texts to stop at: say `wire: chat` in the profile",
        ));
    }
    let mut body = Body::new("input", json!({ "model": request.model, "store": false }));
    for message in asked.messages.iter() {
        items(asked, message).iter().for_each(|item| body.say(item));
    }
    let mut put = |key: &str, value: Json| body.put(key, value);
    if let Some(system) = &asked.system {
        put("instructions", json!(system));
    }
    if !request.tools.is_empty() {
        put("tools", request.tools.iter().map(|offered| tool(asked, offered)).collect());
        put("tool_choice", tool_choice(asked));
    }
    if let Some(max) = request.max_tokens {
        put("max_output_tokens", json!(max));
    }
    if let Some(degree) = request.temperature {
        put("temperature", json!(degree));
    }
    if let Some(effort) = request.reasoning {
        put("reasoning", json!({ "effort": effort.as_str() }));
    }
    if asked.provider == Provider::OpenAi && !facts::openai_does_not_reason(&request.model) {
        put("include", json!(["reasoning.encrypted_content"]));
    }
    if let Shape::Strict(schema) | Shape::Loose(schema) = &asked.shape {
        let strict = matches!(asked.shape, Shape::Strict(_));
        let format = json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": strict });
        put("text", json!({ "format": format }));
    }
    if request.stream {
        put("stream", json!(true));
    }
    Ok(body)
}

fn items(asked: &Asked<'_>, message: &Message) -> Vec<Json> {
    if message.role == Role::User {
        let parts = message.content.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(json!({ "type": "input_text", "text": &**text })),
            Part::Image(image) => Some(picture(image)),
            _ => None,
        });
        let parts: Vec<Json> = parts.collect();
        return vec![json!({ "type": "message", "role": "user", "content": parts })];
    }
    message.content.iter().filter_map(|part| item(asked, part)).collect()
}

fn item(asked: &Asked<'_>, part: &Part) -> Option<Json> {
    match part {
        Part::Text { text, .. } if text.is_empty() => None,
        Part::Text { text, item } => Some(match asked.own(item) {
            Some(own) => {
                let content = json!([{ "type": "output_text", "text": &**text, "annotations": [] }]);
                whole_item(Some(own), json!({ "type": "message", "role": "assistant", "content": content }))
            }
            None => json!({ "role": "assistant", "content": &**text }),
        }),
        // Reasoning that did not come encrypted lies with OpenAI or nowhere, and cannot be referred to.
        Part::Reasoning { item, .. } => {
            let own = asked.own(item)?.to_json();
            let is_whole = own["type"] != "reasoning" || own["encrypted_content"].is_string();
            is_whole.then_some(own)
        }
        Part::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::Unreadable { raw, .. } => raw.to_string(),
                arguments => arguments_map(arguments).to_string(),
            };
            let canonical = json!({
                "type": "function_call", "call_id": &*call.id, "name": asked.names.outer(&call.tool),
                "arguments": arguments,
            });
            Some(whole_item(asked.own(&call.item), canonical))
        }
        Part::ToolResult(result) => Some(json!({
            "type": "function_call_output", "call_id": &*result.id, "output": output(result),
        })),
        Part::Image(_) => None,
    }
}

fn output(result: &ToolResult) -> Json {
    let told = marked_text(result);
    let mut pictures = images(result).map(picture).peekable();
    if pictures.peek().is_none() {
        return Json::String(told);
    }
    let words = (!told.is_empty()).then(|| json!({ "type": "input_text", "text": told }));
    Json::Array(words.into_iter().chain(pictures).collect())
}

fn picture(image: &Image) -> Json {
    json!({ "type": "input_image", "image_url": image_url(image), "detail": "auto" })
}

fn tool(asked: &Asked<'_>, tool: &Tool) -> Json {
    let schema = parameters(tool);
    let narrowed = schema::narrowed(&schema, &schema::OPENAI);
    let strict = narrowed.is_some();
    let schema = narrowed.unwrap_or(schema);
    let name = asked.names.outer(&tool.name);
    let mut sent = json!({ "type": "function", "name": name, "parameters": schema, "strict": strict });
    if let Some(description) = &tool.description {
        sent["description"] = json!(&**description);
    }
    sent
}

fn tool_choice(asked: &Asked<'_>) -> Json {
    match &asked.request.tool_choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({ "type": "function", "name": asked.names.outer(name) }),
    }
}

/// Events, of which the last has the whole response in it.
#[derive(Debug, Default)]
pub(crate) struct Events {
    response: Option<Json>,
    /// Items as they were done, by their place, for servers that leave them out of the last event.
    done: BTreeMap<u64, Json>,
    /// The ids of calls as they came, in order.
    calls: Vec<String>,
}

impl Fold for Events {
    fn event(&mut self, mut event: Json, deltas: &mut Deltas<'_>) -> Option<Json> {
        if self.response.is_some() {
            return None;
        }
        match text(&event, "type") {
            "error" => return Some(event),
            "response.output_text.delta" => deltas.text(text(&event, "delta")),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.reasoning(text(&event, "delta"));
            }
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                deltas.tool_call(self.calls.len(), text(&event["item"], "name"));
                self.calls.push(text(&event["item"], "id").to_owned());
            }
            "response.function_call_arguments.delta" => {
                let id = text(&event, "item_id");
                if let Some(index) = self.calls.iter().position(|call| call == id) {
                    deltas.arguments(index, text(&event, "delta"));
                }
            }
            "response.output_item.done" => {
                let place =
                    event.get("output_index").and_then(Json::as_u64).unwrap_or(self.done.len() as u64);
                self.done.insert(place, event["item"].take());
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response = Some(event["response"].take());
            }
            _ => {}
        }
        None
    }

    fn whole(&mut self) -> Option<Json> {
        let mut response = self.response.take()?;
        if response.is_object() && list(&response, "output").is_empty() {
            response["output"] = std::mem::take(&mut self.done).into_values().collect();
        }
        Some(response)
    }

    fn is_complete(&self) -> bool {
        self.response.is_some()
    }

    fn usage(&self) -> Option<Usage> {
        self.response.as_ref().and_then(|response| usage(response.get("usage")?))
    }
}

pub(crate) fn said(reply: &Json, reading: &Reading) -> Said {
    let mut parts = Vec::new();
    let mut refusal = String::new();
    for item in list(reply, "output") {
        match text(item, "type") {
            "message" => parts.extend(message(item, reading, &mut refusal)),
            "function_call" => parts.push(Part::ToolCall(called(item, reading))),
            // Reasoning, and whatever only OpenAI understands, stays as it is.
            _ => parts
                .push(Part::Reasoning { text: summary(item).into(), item: Some(kept(reading, item, &[])) }),
        }
    }
    let end = match text(reply, "status") {
        "failed" => End::Error(reply.clone()),
        _ if !refusal.is_empty() => End::Refused(refusal.clone()),
        "completed" => End::Stop,
        "incomplete" => match reply["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens") => End::Length,
            Some("content_filter") => {
                End::Filtered("the provider's content filter cut the answer".to_owned())
            }
            other => End::Unknown(format!("it is incomplete by {other:?}, which is not known")),
        },
        "" => End::Unknown("it does not say whether it is complete".to_owned()),
        other => End::Unknown(format!("its status is `{other}`, which is no end")),
    };
    if !refusal.is_empty() && parts.is_empty() {
        parts.push(Part::text(refusal));
    }
    let usage = reply.get("usage").and_then(usage);
    Said { parts, usage, model: owned(reply, "model"), id: owned(reply, "id"), end }
}

fn message(item: &Json, reading: &Reading, refusal: &mut String) -> Option<Part> {
    let mut spoken = String::new();
    for content in list(item, "content") {
        match text(content, "type") {
            "refusal" => refusal.push_str(text(content, "refusal")),
            _ => spoken.push_str(text(content, "text")),
        }
    }
    let item = kept(reading, item, &["type", "role", "content"]);
    (!spoken.is_empty()).then(|| Part::Text { text: spoken.into(), item: Some(item) })
}

fn called(item: &Json, reading: &Reading) -> ToolCall {
    ToolCall {
        id: text(item, "call_id").into(),
        tool: reading.names.inner(text(item, "name")),
        arguments: arguments::read(text(item, "arguments")),
        item: Some(kept(reading, item, &["type", "call_id", "name", "arguments"])),
    }
}

fn summary(item: &Json) -> String {
    let texts = list(item, "summary").iter().chain(list(item, "content")).map(|part| text(part, "text"));
    texts.collect::<Vec<_>>().join("\n")
}

fn kept(reading: &Reading, item: &Json, without: &[&str]) -> Item {
    let value = if without.is_empty() { Value::from_json(item) } else { rest_of(item, without) };
    Item { origin: reading.origin.clone(), value }
}

fn usage(usage: &Json) -> Option<Usage> {
    usage.get("input_tokens")?;
    Some(Usage {
        input_tokens: count(usage, "/input_tokens"),
        cached_input_tokens: count(usage, "/input_tokens_details/cached_tokens"),
        cache_write_tokens: count(usage, "/input_tokens_details/cache_write_tokens"),
        output_tokens: count(usage, "/output_tokens"),
        reasoning_tokens: count(usage, "/output_tokens_details/reasoning_tokens"),
    })
}
