//! Anthropic's messages.

use std::collections::BTreeSet;

use axum::http::HeaderMap;
use serde_json::{Value as Json, json};

use super::{
    Answer, Asked, Checked, Refusal, check_name, check_strict, list, named, need, only, signature, text,
};

const TOP: [&str; 17] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "thinking",
    "output_config",
    "stream",
    "metadata",
    "service_tier",
    "cache_control",
    "container",
];

pub(crate) fn check(body: &Json, headers: &HeaderMap, asked: &mut Asked) -> Checked {
    need(headers.contains_key("anthropic-version"), "anthropic-version: header is required")?;
    only(body, &TOP, "body")?;
    need(!text(body, "model").is_empty(), "model: Field required")?;
    asked.model = text(body, "model").to_owned();
    asked.stream = body["stream"] == true;
    asked.include_usage = true;
    let max_tokens = body.get("max_tokens").and_then(Json::as_u64);
    let max_tokens = max_tokens.ok_or_else(|| Refusal::invalid("max_tokens: Field required"))?;
    let marks = body.to_string().matches("\"cache_control\"").count();
    need(marks <= 4, format!("a maximum of 4 blocks with cache_control may be provided, found {marks}"))?;
    match &body["system"] {
        Json::String(words) => asked.all.push_str(words),
        blocks => {
            blocks.as_array().into_iter().flatten().for_each(|block| asked.all.push_str(text(block, "text")))
        }
    }
    options(body, max_tokens)?;
    turns(body, asked)
}

fn options(body: &Json, max_tokens: u64) -> Checked {
    for tool in list(body, "tools") {
        only(tool, &["name", "description", "input_schema", "cache_control", "strict"], "tools")?;
        check_name(text(tool, "name"), 128)?;
        need(tool["input_schema"]["type"] == "object", "tools.input_schema.type: Field required")?;
    }
    need(
        body.get("tool_choice").is_none() || !list(body, "tools").is_empty(),
        "tool_choice may only be specified while providing tools",
    )?;
    let thinking = &body["thinking"];
    let is_forced = matches!(text(&body["tool_choice"], "type"), "any" | "tool");
    let thinks = matches!(text(thinking, "type"), "enabled" | "adaptive");
    need(!(is_forced && thinks), "Thinking may not be enabled when tool_choice forces tool use")?;
    if thinking["type"] == "enabled" {
        let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
        need(budget >= 1024 && budget < max_tokens, "thinking.budget_tokens: from 1024 to below max_tokens")?;
    }
    if let Some(format) = body["output_config"].get("format") {
        need(format["type"] == "json_schema", "output_config.format.type: json_schema")?;
        check_strict(&format["schema"], false)?;
    }
    Ok(())
}

fn turns(body: &Json, asked: &mut Asked) -> Checked {
    let messages = list(body, "messages");
    need(!messages.is_empty(), "messages: at least one message is required")?;
    need(messages[0]["role"] == "user", "messages: first message must use the user role")?;
    let last = &messages[messages.len() - 1];
    need(last["role"] == "user", "this model does not support assistant message prefill")?;
    let mut open: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        only(message, &["role", "content"], "messages")?;
        let role = text(message, "role");
        need(matches!(role, "user" | "assistant"), format!("messages.{at}: there is no role `{role}`"))?;
        let whole;
        let blocks = match &message["content"] {
            Json::String(words) => {
                whole = [json!({ "type": "text", "text": words })];
                &whole[..]
            }
            _ => list(message, "content"),
        };
        need(!blocks.is_empty(), format!("messages.{at}: all messages must have non-empty content"))?;
        let (mut words, mut has_results) = (Vec::new(), false);
        for block in blocks {
            if block["type"] == "tool_use" {
                let id = text(block, "id").to_owned();
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                need(!id.is_empty() && id.chars().all(plain), "tool_use.id: String should match pattern")?;
                need(seen.insert(id.clone()), "messages: `tool_use` ids must be unique")?;
                need(block["input"].is_object(), "tool_use.input: Input should be a valid dictionary")?;
                check_name(text(block, "name"), 128)?;
                open.push(id);
                continue;
            }
            has_results |= block["type"] == "tool_result";
            words.push(block_said(block, role, &mut open)?);
        }
        let unanswered = role == "user" && !open.is_empty();
        need(
            !unanswered,
            format!("messages.{at}: `tool_use` ids were found without `tool_result` blocks: {open:?}"),
        )?;
        words.retain(|said| !said.is_empty());
        asked.heard(if has_results { "tool" } else { role }, &words.join("\n"));
    }
    Ok(())
}

fn block_said(block: &Json, role: &str, open: &mut Vec<String>) -> Checked<String> {
    match text(block, "type") {
        "text" => {
            need(!text(block, "text").trim().is_empty(), "messages: text content blocks must be non-empty")?;
            need(role == "assistant" || open.is_empty(), "messages: tool_result blocks must come first")?;
            Ok(text(block, "text").to_owned())
        }
        "image" => Ok(String::new()),
        "thinking" if role == "assistant" => {
            let is_ours = text(block, "signature") == signature(text(block, "thinking"));
            need(is_ours, "messages: Invalid `signature` in `thinking` block")?;
            Ok(String::new())
        }
        "redacted_thinking" if role == "assistant" => Ok(String::new()),
        "tool_result" if role == "user" => {
            only(block, &["type", "tool_use_id", "content", "is_error", "cache_control"], "tool_result")?;
            let id = text(block, "tool_use_id");
            let at = open.iter().position(|call| call == id);
            let message = format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}");
            open.remove(at.ok_or_else(|| Refusal::invalid(message))?);
            Ok(match &block["content"] {
                Json::String(words) => words.clone(),
                parts => parts.as_array().into_iter().flatten().map(|part| text(part, "text")).collect(),
            })
        }
        other => Err(Refusal::invalid(format!("messages: there is no block `{other}` of the {role}"))),
    }
}

fn stop_reason(answer: &Answer<'_>) -> Json {
    match answer.turn.finish.as_deref() {
        Some("length") => json!("max_tokens"),
        Some("content_filter") => json!("refusal"),
        Some(word) => json!(word),
        None if answer.turn.refusal.is_some() => json!("refusal"),
        None if answer.turn.tool_calls.is_empty() => json!("end_turn"),
        None => json!("tool_use"),
    }
}

fn usage(answer: &Answer<'_>) -> Json {
    let usage = answer.usage;
    let beside = usage.cached_input_tokens + usage.cache_write_tokens;
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(beside),
        "cache_read_input_tokens": usage.cached_input_tokens, "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "thinking_tokens": usage.reasoning_tokens },
    })
}

pub(crate) fn whole(answer: &Answer<'_>) -> Json {
    let turn = answer.turn;
    let mut content = Vec::new();
    if !turn.reasoning.is_empty() {
        content.push(json!({ "type": "thinking", "thinking": turn.reasoning, "signature": signature(&turn.reasoning) }));
    }
    if !answer.text.is_empty() {
        content.push(json!({ "type": "text", "text": answer.text }));
    }
    for (at, call) in turn.tool_calls.iter().enumerate() {
        let input: Json = serde_json::from_str(&call.written()).unwrap_or_else(|_| json!({}));
        content.push(json!({ "type": "tool_use", "id": answer.call_id(at, call), "name": call.name(), "input": input }));
    }
    let details =
        turn.refusal.as_ref().map(|why| json!({ "type": "refusal", "explanation": why, "category": null }));
    json!({
        "id": format!("msg_{}", answer.number), "type": "message", "role": "assistant", "model": answer.asked.model,
        "content": content, "stop_reason": stop_reason(answer), "stop_sequence": null, "stop_details": details,
        "usage": usage(answer),
    })
}

pub(crate) fn events(answer: &Answer<'_>) -> Vec<String> {
    let whole = whole(answer);
    let mut message = whole.clone();
    message["content"] = json!([]);
    message["stop_reason"] = Json::Null;
    message["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })];
    let calls = &answer.turn.tool_calls;
    let first_call = list(&whole, "content").len() - calls.len();
    for (at, block) in list(&whole, "content").iter().enumerate() {
        let mut begun = block.clone();
        let delta = |delta: Json| json!({ "type": "content_block_delta", "index": at, "delta": delta });
        let mut deltas: Vec<Json> = Vec::new();
        match text(block, "type") {
            "thinking" => {
                begun["thinking"] = json!("");
                begun["signature"] = json!("");
                let parts = answer.chunks(text(block, "thinking"));
                deltas.extend(
                    parts.iter().map(|part| delta(json!({ "type": "thinking_delta", "thinking": part }))),
                );
                deltas.push(delta(json!({ "type": "signature_delta", "signature": block["signature"] })));
            }
            "tool_use" => {
                begun["input"] = json!({});
                let written = calls[at - first_call].written();
                let parts = answer.chunks(&written);
                let input = |part: &&str| delta(json!({ "type": "input_json_delta", "partial_json": part }));
                deltas.extend(parts.iter().map(input));
            }
            _ => {
                begun["text"] = json!("");
                let parts = answer.chunks(text(block, "text"));
                deltas.extend(parts.iter().map(|part| delta(json!({ "type": "text_delta", "text": part }))));
            }
        }
        events.push(json!({ "type": "content_block_start", "index": at, "content_block": begun }));
        events.extend(deltas);
        events.push(json!({ "type": "content_block_stop", "index": at }));
    }
    let last = json!({ "stop_reason": whole["stop_reason"], "stop_sequence": null, "stop_details": whole["stop_details"] });
    events.push(json!({ "type": "message_delta", "delta": last, "usage": whole["usage"] }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(named).collect()
}
