//! Anthropic's messages.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map as JsonMap, Value as Json, json};

use super::{
    Body, Deltas, End, Fold, Said, append, arguments_map, count, images, list, owned, parameters, rest_of,
    result_text, text, whole_item,
};
use crate::arguments;
use crate::call::{Asked, begins_with_user};
use crate::decode::Reading;
use crate::facts;
use crate::message::{Image, Item, Message, Part, Role, ToolCall, ToolResult};
use crate::problem::Problem;
use crate::reply::Usage;
use crate::request::{Cache, Request, Tool, ToolChoice};
use crate::schema::Shape;

pub(crate) const VERSION: &str = "2023-06-01";
/// The least that a model can be told to think with.
const BUDGET_MIN: u64 = 1_024;
const FOR_CACHE: &str = "cache_control";

pub(crate) fn body(asked: &Asked<'_>) -> Result<Body, Problem> {
    let request = asked.request;
    begins_with_user(&asked.messages)?;
    let mut body = Body::new("messages", json!({ "model": request.model }));
    say_messages(asked, &mut body);
    let mut put = |key: &str, value: Json| body.put(key, value);
    let cached = request.cache == Cache::Auto;
    if let Some(system) = &asked.system {
        put("system", json!([marked(json!({ "type": "text", "text": system }), cached)]));
    }
    if let Some((last, others)) = request.tools.split_last() {
        let others = others.iter().map(|offered| tool(asked, offered));
        let last = marked(tool(asked, last), cached);
        put("tools", others.chain([last]).collect());
        put("tool_choice", tool_choice(asked));
    }
    let mut max_tokens = request.max_tokens_or_default();
    let mut output = JsonMap::new();
    if let Some(thinking) = thinking(asked, &mut max_tokens, &mut output)? {
        put("thinking", thinking);
    }
    put("max_tokens", json!(max_tokens));
    if let Some(degree) = request.temperature {
        put("temperature", json!(degree));
    }
    if !request.stop.is_empty() {
        put("stop_sequences", json!(request.stop));
    }
    if let Shape::Strict(schema) | Shape::Loose(schema) = &asked.shape {
        output.insert("format".to_owned(), json!({ "type": "json_schema", "schema": schema }));
    }
    if !output.is_empty() {
        put("output_config", Json::Object(output));
    }
    if request.stream {
        put("stream", json!(true));
    }
    Ok(body)
}

/// Thinking, as the model takes it. It cannot be had together with a tool that must be called.
fn thinking(
    asked: &Asked<'_>,
    max_tokens: &mut u64,
    output: &mut JsonMap<String, Json>,
) -> Result<Option<Json>, Problem> {
    let request = asked.request;
    let Some(effort) = request.reasoning else { return Ok(None) };
    if !facts::claude_thinks_by_budget(&request.model) {
        output.insert("effort".to_owned(), json!(effort.as_str()));
        return Ok((!request.tool_choice.is_forced()).then(|| json!({ "type": "adaptive" })));
    }
    if request.tool_choice.is_forced() || !thought_before_calling(asked) {
        return Ok(None);
    }
    let budget = match request.max_tokens {
        // The thinking is beside what an answer is usually given.
        None => {
            *max_tokens += effort.budget_tokens();
            effort.budget_tokens()
        }
        Some(max) => effort.budget_tokens().min(max / 4 * 3),
    };
    if budget < BUDGET_MIN {
        let message =
            format!("leaves too little to think: this model takes at least {BUDGET_MIN} tokens for it");
        return Err(Problem::new("max_tokens", message));
    }
    Ok(Some(json!({ "type": "enabled", "budget_tokens": budget })))
}

/// Models with a budget refuse to think on in a turn whose calls were made without: by another provider's model,
/// say.
fn thought_before_calling(asked: &Asked<'_>) -> bool {
    let turn = asked.messages.iter().rev().take_while(|message| message.role != Role::User);
    turn.filter(|message| message.tool_calls().next().is_some()).all(|message| {
        message.content.iter().any(|part| match part {
            Part::Reasoning { item, .. } => asked.own(item).is_some(),
            _ => false,
        })
    })
}

fn marked(mut block: Json, cached: bool) -> Json {
    if cached {
        block[FOR_CACHE] = json!({ "type": "ephemeral" });
    }
    block
}

/// Turns of user and model, one after the other: results of tools are the user's here.
fn say_messages(asked: &Asked<'_>, body: &mut Body) {
    let say = |body: &mut Body, (role, blocks): (&str, Vec<Json>)| {
        body.say(&json!({ "role": role, "content": blocks }));
    };
    // Those that may yet be added to or marked: the last four have the last two of the user among them.
    let mut turns: VecDeque<(&str, Vec<Json>)> = VecDeque::new();
    for message in asked.messages.iter() {
        let blocks = blocks(asked, message);
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        match turns.back_mut() {
            _ if blocks.is_empty() => {}
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => turns.push_back((role, blocks)),
        }
        if turns.len() > 4 {
            turns.pop_front().into_iter().for_each(|turn| say(body, turn));
        }
    }
    mark_turns(asked.request, turns.make_contiguous());
    turns.into_iter().for_each(|turn| say(body, turn));
}

/// Marks the end of the conversation, and the end it had a turn ago, where the provider finds what it wrote then.
/// A question that stands alone is not marked: writing to the cache costs, and nobody would read it.
fn mark_turns(request: &Request, turns: &mut [(&str, Vec<Json>)]) {
    let goes_on = turns.len() > 1 || !request.tools.is_empty();
    if request.cache == Cache::Off || !goes_on {
        return;
    }
    let of_user = turns.iter_mut().rev().filter(|(role, _)| *role == "user").take(2);
    for (_, blocks) in of_user {
        if let Some(last) = blocks.last_mut() {
            *last = marked(last.take(), true);
        }
    }
}

fn blocks(asked: &Asked<'_>, message: &Message) -> Vec<Json> {
    let block = |part: &Part| match part {
        // Empty texts are refused.
        Part::Text { text, .. } if text.trim().is_empty() => None,
        Part::Text { text, item } => {
            Some(whole_item(asked.own(item), json!({ "type": "text", "text": &**text })))
        }
        Part::Image(image) => Some(picture(image)),
        Part::Reasoning { text, item } => {
            let own = asked.own(item)?;
            let has_text = own.get("type").and_then(wonder_lang::Value::as_str) == Some("thinking");
            Some(whole_item(Some(own), if has_text { json!({ "thinking": &**text }) } else { json!({}) }))
        }
        Part::ToolCall(call) => {
            let canonical = json!({
                "type": "tool_use", "id": plain_id(&call.id), "name": asked.names.outer(&call.tool),
                "input": arguments_map(&call.arguments),
            });
            Some(whole_item(asked.own(&call.item), canonical))
        }
        Part::ToolResult(result) => Some(tool_result(result)),
    };
    message.content.iter().filter_map(block).collect()
}

fn tool_result(result: &ToolResult) -> Json {
    let told = result_text(result);
    let words = (!told.trim().is_empty()).then(|| json!({ "type": "text", "text": told }));
    let mut content: Vec<Json> = words.into_iter().chain(images(result).map(picture)).collect();
    // An error has to say something.
    if result.is_error && content.is_empty() {
        content.push(json!({ "type": "text", "text": "failed" }));
    }
    let mut block = json!({ "type": "tool_result", "tool_use_id": plain_id(&result.id), "content": content });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// An id with nothing in it but what is allowed here.
fn plain_id(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    id.chars().map(plain).collect()
}

fn picture(image: &Image) -> Json {
    let source = match image {
        Image::Data { media_type, data } => {
            json!({ "type": "base64", "media_type": &**media_type, "data": &**data })
        }
        Image::Url { url, .. } => json!({ "type": "url", "url": &**url }),
    };
    json!({ "type": "image", "source": source })
}

fn tool(asked: &Asked<'_>, tool: &Tool) -> Json {
    let mut sent = json!({ "name": asked.names.outer(&tool.name), "input_schema": parameters(tool) });
    if let Some(description) = &tool.description {
        sent["description"] = json!(&**description);
    }
    sent
}

fn tool_choice(asked: &Asked<'_>) -> Json {
    match &asked.request.tool_choice {
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::None => json!({ "type": "none" }),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Tool(name) => json!({ "type": "tool", "name": asked.names.outer(name) }),
    }
}

/// Events, put together to a message.
#[derive(Debug, Default)]
pub(crate) struct Events {
    message: JsonMap<String, Json>,
    blocks: BTreeMap<u64, JsonMap<String, Json>>,
    is_done: bool,
}

/// Where the text of a call's input is gathered until it can be read.
const INPUT_TEXT: &str = "input_text";

impl Events {
    fn delta(&mut self, event: &Json, deltas: &mut Deltas<'_>) {
        let number = event.get("index").and_then(Json::as_u64).unwrap_or(0);
        let is_call = |block: &JsonMap<String, Json>| block.get("type") == Some(&json!("tool_use"));
        let index = self.blocks.range(..number).filter(|(_, block)| is_call(block)).count();
        let Some(block) = self.blocks.get_mut(&number) else { return };
        let delta = &event["delta"];
        match text(delta, "type") {
            "text_delta" => {
                append(block, "text", text(delta, "text"));
                deltas.text(text(delta, "text"));
            }
            "input_json_delta" => {
                append(block, INPUT_TEXT, text(delta, "partial_json"));
                deltas.arguments(index, text(delta, "partial_json"));
            }
            "thinking_delta" => {
                append(block, "thinking", text(delta, "thinking"));
                deltas.reasoning(text(delta, "thinking"));
            }
            "signature_delta" => append(block, "signature", text(delta, "signature")),
            "citations_delta" => {
                let citations = block.entry("citations").or_insert_with(|| json!([]));
                if let Json::Array(citations) = citations {
                    citations.push(delta["citation"].clone());
                }
            }
            _ => {}
        }
    }

    /// Later numbers replace earlier ones; what is not said again stays.
    fn take(&mut self, from: &Json, keys: &[&str]) {
        for (key, value) in from.as_object().into_iter().flatten() {
            if value.is_null() || !(keys.is_empty() || keys.contains(&&**key)) {
                continue;
            }
            match (self.message.get_mut(key), value) {
                (Some(Json::Object(known)), Json::Object(new)) => {
                    let new = new.iter().filter(|(_, value)| !value.is_null());
                    known.extend(new.map(|(key, value)| (key.clone(), value.clone())));
                }
                _ => {
                    self.message.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

impl Fold for Events {
    fn event(&mut self, event: Json, deltas: &mut Deltas<'_>) -> Option<Json> {
        if self.is_done {
            return None;
        }
        match text(&event, "type") {
            "error" => return Some(event),
            "message_start" => self.take(&event["message"], &["id", "model", "usage"]),
            "content_block_start" => {
                let number = event.get("index").and_then(Json::as_u64).unwrap_or(0);
                if let Some(block) = event["content_block"].as_object() {
                    self.blocks.insert(number, block.clone());
                    let calls =
                        |block: &&JsonMap<String, Json>| block.get("type") == Some(&json!("tool_use"));
                    if calls(&block) {
                        let index = self.blocks.range(..number).map(|(_, block)| block).filter(calls).count();
                        deltas.tool_call(index, text(&event["content_block"], "name"));
                    }
                    deltas.text(text(&event["content_block"], "text"));
                }
            }
            "content_block_delta" => self.delta(&event, deltas),
            "message_delta" => {
                self.take(&event["delta"], &[]);
                self.take(&event, &["usage"]);
            }
            "message_stop" => self.is_done = true,
            _ => {}
        }
        None
    }

    fn whole(&mut self) -> Option<Json> {
        if !self.is_done {
            return None;
        }
        let mut message = std::mem::take(&mut self.message);
        let blocks = std::mem::take(&mut self.blocks).into_values().map(Json::Object);
        message.insert("content".to_owned(), blocks.collect());
        Some(Json::Object(message))
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn usage(&self) -> Option<Usage> {
        self.message.get("usage").and_then(usage)
    }
}

pub(crate) fn said(reply: &Json, reading: &Reading) -> Said {
    let parts: Vec<Part> = list(reply, "content").iter().filter_map(|block| part(block, reading)).collect();
    let end = match reply.get("stop_reason").and_then(Json::as_str) {
        Some("end_turn" | "stop_sequence") => End::Stop,
        Some("tool_use") => End::ToolCalls,
        Some("max_tokens") => End::Length,
        Some("refusal") => End::Refused(refusal(&reply["stop_details"])),
        Some("model_context_window_exceeded") => {
            End::ContextTooLong("the answer reached the end of the model's context window".to_owned())
        }
        Some("pause_turn") => End::Unknown(
            "it paused its turn (`pause_turn`), as only tools of the provider's own make it do".to_owned(),
        ),
        Some(other) => End::Unknown(format!("it stopped by `{other}`, which is not known")),
        None => End::Unknown("it does not say why it stopped".to_owned()),
    };
    let usage = reply.get("usage").and_then(usage);
    Said { parts, usage, model: owned(reply, "model"), id: owned(reply, "id"), end }
}

fn refusal(details: &Json) -> String {
    let explanation =
        owned(details, "explanation").unwrap_or_else(|| "the model declined to answer".to_owned());
    match owned(details, "category") {
        Some(category) => format!("{explanation} ({category})"),
        None => explanation,
    }
}

fn part(block: &Json, reading: &Reading) -> Option<Part> {
    let kept = |without: &[&str]| Item { origin: reading.origin.clone(), value: rest_of(block, without) };
    let if_more = |without: &[&str]| {
        let item = kept(without);
        item.value.as_map().is_some_and(|rest| !rest.is_empty()).then_some(item)
    };
    Some(match text(block, "type") {
        "text" if text(block, "text").is_empty() => return None,
        "text" => Part::Text { text: text(block, "text").into(), item: if_more(&["type", "text"]) },
        "tool_use" => {
            let arguments = match (block.get(INPUT_TEXT).and_then(Json::as_str), block.get("input")) {
                (Some(written), _) => arguments::read(written),
                (None, None | Some(Json::Null)) => arguments::read(""),
                (None, Some(input)) => arguments::read(&input.to_string()),
            };
            Part::ToolCall(ToolCall {
                id: text(block, "id").into(),
                tool: reading.names.inner(text(block, "name")),
                arguments,
                item: if_more(&["type", "id", "name", "input", INPUT_TEXT]),
            })
        }
        "thinking" => {
            Part::Reasoning { text: text(block, "thinking").into(), item: Some(kept(&["thinking"])) }
        }
        // Redacted thinking, and whatever only Anthropic understands, stays as it is.
        _ => Part::Reasoning { text: "".into(), item: Some(kept(&[])) },
    })
}

fn usage(usage: &Json) -> Option<Usage> {
    usage.get("input_tokens").or(usage.get("output_tokens"))?;
    let (read, written) =
        (count(usage, "/cache_read_input_tokens"), count(usage, "/cache_creation_input_tokens"));
    Some(Usage {
        // What the cache had and took is told apart here.
        input_tokens: count(usage, "/input_tokens").saturating_add(read).saturating_add(written),
        cached_input_tokens: read,
        cache_write_tokens: written,
        output_tokens: count(usage, "/output_tokens"),
        reasoning_tokens: count(usage, "/output_tokens_details/thinking_tokens"),
    })
}
