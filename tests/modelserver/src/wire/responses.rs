//! OpenAI's Responses.

use serde_json::{Value as Json, json};

use super::{
    Answer, Asked, Checked, Refusal, check_name, check_strict, list, named, need, only, signature, text,
};

const TOP: [&str; 24] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "temperature",
    "top_p",
    "reasoning",
    "include",
    "text",
    "store",
    "stream",
    "stream_options",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "truncation",
    "user",
    "max_tool_calls",
];

pub(crate) fn check(body: &Json, asked: &mut Asked) -> Checked {
    only(body, &TOP, "body")?;
    need(!text(body, "model").is_empty(), "you must provide a model parameter")?;
    asked.model = text(body, "model").to_owned();
    asked.stream = body["stream"] == true;
    asked.include_usage = true;
    asked.all.push_str(text(body, "instructions"));
    let max = body.get("max_output_tokens").and_then(Json::as_u64);
    need(max.is_none_or(|max| max >= 16), "max_output_tokens: at least 16")?;
    for tool in list(body, "tools") {
        only(tool, &["type", "name", "description", "parameters", "strict"], "tools")?;
        check_name(text(tool, "name"), 64)?;
        need(tool["parameters"]["properties"].is_object(), "tools: an object schema needs properties")?;
        if tool["strict"] != false {
            check_strict(&tool["parameters"], true)?;
        }
    }
    let format = &body["text"]["format"];
    if format["type"] == "json_schema" {
        check_name(text(format, "name"), 64)?;
        need(format["schema"]["type"] == "object", "text.format: the schema must be of an object")?;
        if format["strict"] == true {
            check_strict(&format["schema"], true)?;
        }
    }
    let mut open: Vec<String> = Vec::new();
    // What the model said in one go, as it stands between what others said.
    let mut speaking = false;
    for item in list(body, "input") {
        let by_model = is_of_model(item);
        let says = item_said(item, body["store"] == false, &mut open)?;
        if by_model {
            if !std::mem::replace(&mut speaking, true) {
                asked.heard("assistant", &says);
            }
        } else {
            speaking = false;
            let role = if item["type"] == "function_call_output" { "tool" } else { "user" };
            need(
                role == "tool" || open.is_empty(),
                format!("no tool output found for function call {open:?}"),
            )?;
            asked.heard(role, &says);
        }
    }
    need(!asked.last_role.is_empty(), "input: at least one is needed")?;
    need(open.is_empty(), format!("no tool output found for function call {open:?}"))
}

fn is_of_model(item: &Json) -> bool {
    matches!(text(item, "type"), "function_call" | "reasoning") || text(item, "role") == "assistant"
}

fn item_said(item: &Json, is_stateless: bool, open: &mut Vec<String>) -> Checked<String> {
    match (text(item, "type"), text(item, "role")) {
        ("message" | "", "user" | "system" | "developer" | "assistant") => {
            only(item, &["type", "role", "content", "id", "status", "phase"], "input")?;
            Ok(match &item["content"] {
                Json::String(text) => text.clone(),
                content => content.as_array().into_iter().flatten().map(|part| text(part, "text")).collect(),
            })
        }
        ("reasoning", _) => {
            let encrypted = text(item, "encrypted_content");
            let known = encrypted == signature(text(&item["summary"][0], "text"));
            need(
                known || !is_stateless,
                "reasoning: the item is not persisted, and its encrypted content is not ours",
            )?;
            Ok(String::new())
        }
        ("function_call", _) => {
            only(item, &["type", "id", "call_id", "name", "arguments", "status"], "input")?;
            check_name(text(item, "name"), 64)?;
            need(item["arguments"].is_string(), "function_call: arguments are a text")?;
            open.push(text(item, "call_id").to_owned());
            Ok(String::new())
        }
        ("function_call_output", _) => {
            only(item, &["type", "id", "call_id", "output", "status"], "input")?;
            let id = text(item, "call_id");
            let at = open.iter().position(|call| call == id);
            let at = at.ok_or_else(|| Refusal::invalid(format!("no tool call found for call_id {id}")))?;
            open.remove(at);
            Ok(match &item["output"] {
                Json::String(text) => text.clone(),
                parts => parts.as_array().into_iter().flatten().map(|part| text(part, "text")).collect(),
            })
        }
        (kind, role) => Err(Refusal::invalid(format!("input: there is no item `{kind}` of role `{role}`"))),
    }
}

pub(crate) fn whole(answer: &Answer<'_>) -> Json {
    let turn = answer.turn;
    let mut output = Vec::new();
    if !turn.reasoning.is_empty() {
        output.push(json!({ "type": "reasoning", "id": format!("rs_{}", answer.number),
            "summary": [{ "type": "summary_text", "text": turn.reasoning }],
            "encrypted_content": signature(&turn.reasoning) }));
    }
    let mut content = Vec::new();
    if !answer.text.is_empty() {
        content
            .push(json!({ "type": "output_text", "text": answer.text, "annotations": [], "logprobs": [] }));
    }
    if let Some(refusal) = &turn.refusal {
        content.push(json!({ "type": "refusal", "refusal": refusal }));
    }
    if !content.is_empty() {
        output.push(json!({ "type": "message", "id": format!("msg_{}", answer.number), "role": "assistant",
            "status": "completed", "content": content }));
    }
    for (at, call) in turn.tool_calls.iter().enumerate() {
        output.push(json!({ "type": "function_call", "id": format!("fc_{}_{at}", answer.number),
            "call_id": answer.call_id(at, call), "name": call.name(), "arguments": call.written(),
            "status": "completed" }));
    }
    let (status, details) = match turn.finish.as_deref() {
        None => ("completed", Json::Null),
        Some("length") => ("incomplete", json!({ "reason": "max_output_tokens" })),
        Some("content_filter") => ("incomplete", json!({ "reason": "content_filter" })),
        Some(other) => (other, Json::Null),
    };
    let usage = answer.usage;
    json!({
        "id": format!("resp_{}", answer.number), "object": "response", "created_at": 1, "status": status, "error": null,
        "incomplete_details": details, "model": answer.asked.model, "output": output, "store": false,
        "usage": { "input_tokens": usage.input_tokens,
            "input_tokens_details": { "cached_tokens": usage.cached_input_tokens, "cache_write_tokens": usage.cache_write_tokens },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
            "total_tokens": usage.input_tokens + usage.output_tokens },
    })
}

pub(crate) fn events(answer: &Answer<'_>) -> Vec<String> {
    let whole = whole(answer);
    let mut begun = whole.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Json::Null;
    let mut events = vec![json!({ "type": "response.created", "response": begun })];
    for (at, item) in list(&whole, "output").iter().enumerate() {
        let (kind, said) = match text(item, "type") {
            "reasoning" => ("reasoning_summary_text", text(&item["summary"][0], "text")),
            "function_call" => ("function_call_arguments", text(item, "arguments")),
            _ if item["content"][0]["type"] == "refusal" => ("refusal", text(&item["content"][0], "refusal")),
            _ => ("output_text", text(&item["content"][0], "text")),
        };
        let mut added = item.clone();
        if kind == "function_call_arguments" {
            added["arguments"] = json!("");
        }
        events.push(json!({ "type": "response.output_item.added", "output_index": at, "item": added }));
        for part in answer.chunks(said) {
            events.push(json!({ "type": format!("response.{kind}.delta"), "item_id": item["id"],
                "output_index": at, "content_index": 0, "delta": part }));
        }
        events.push(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    let last = match text(&whole, "status") {
        "completed" => "response.completed",
        "failed" => "response.failed",
        _ => "response.incomplete",
    };
    events.push(json!({ "type": last, "response": whole }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(named).collect()
}
