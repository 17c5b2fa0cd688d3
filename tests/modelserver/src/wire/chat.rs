//! OpenAI's chat completions.

use serde_json::{Value as Json, json};

use super::{Answer, Asked, Checked, Refusal, check_name, check_strict, data, list, need, only, text};

const TOP: [&str; 32] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "stop",
    "reasoning_effort",
    "response_format",
    "stream",
    "stream_options",
    "seed",
    "user",
    "metadata",
    "store",
    "parallel_tool_calls",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "verbosity",
    "prediction",
    "modalities",
    "web_search_options",
];

pub(crate) fn check(body: &Json, asked: &mut Asked) -> Checked {
    only(body, &TOP, "body")?;
    need(!text(body, "model").is_empty(), "you must provide a model parameter")?;
    need(!list(body, "messages").is_empty(), "messages: at least one is needed")?;
    asked.model = text(body, "model").to_owned();
    asked.stream = body["stream"] == true;
    asked.include_usage = body["stream_options"]["include_usage"] == true;
    need(asked.stream || body.get("stream_options").is_none(), "stream_options needs stream")?;
    need(list(body, "stop").len() <= 4, "stop: at most 4")?;
    tools(body)?;
    if let Some(format) = body.get("response_format").filter(|format| format["type"] == "json_schema") {
        let schema = &format["json_schema"];
        check_name(text(schema, "name"), 64)?;
        need(schema["schema"]["type"] == "object", "response_format: the schema must be of an object")?;
        if schema["strict"] == true {
            check_strict(&schema["schema"], true)?;
        }
    }
    let mut open: Vec<String> = Vec::new();
    for message in list(body, "messages") {
        let role = text(message, "role");
        need(
            role == "tool" || open.is_empty(),
            format!("tool_call_ids without a response: {}", open.join(", ")),
        )?;
        said(message, role, &mut open, asked)?;
    }
    need(open.is_empty(), format!("tool_call_ids without a response: {}", open.join(", ")))
}

fn tools(body: &Json) -> Checked {
    let offered = list(body, "tools");
    need(!offered.is_empty() || body.get("tools").is_none(), "tools: at least one is needed")?;
    need(!offered.is_empty() || body.get("tool_choice").is_none(), "tool_choice needs tools")?;
    for tool in offered {
        let function = &tool["function"];
        need(tool["type"] == "function", "tools: only functions are known")?;
        only(function, &["name", "description", "parameters", "strict"], "tools.function")?;
        check_name(text(function, "name"), 64)?;
        need(function["parameters"]["properties"].is_object(), "tools: an object schema needs properties")?;
        if function["strict"] == true {
            check_strict(&function["parameters"], true)?;
        }
    }
    if let Some(choice) = body.get("tool_choice") {
        let name = text(&choice["function"], "name");
        let known = offered.iter().any(|tool| text(&tool["function"], "name") == name);
        let is_word = matches!(choice.as_str(), Some("auto" | "none" | "required"));
        need(is_word || known, format!("tool_choice: there is no tool `{name}`"))?;
    }
    Ok(())
}

fn said(message: &Json, role: &str, open: &mut Vec<String>, asked: &mut Asked) -> Checked {
    let words = words(&message["content"]);
    match role {
        "system" | "developer" => {
            asked.all.push_str(&words);
            return Ok(());
        }
        "user" => {
            only(message, &["role", "content", "name"], "messages")?;
            need(!message["content"].is_null(), "messages: content is needed")?;
        }
        "assistant" => {
            let known = [
                "role",
                "content",
                "refusal",
                "tool_calls",
                "reasoning_content",
                "reasoning",
                "reasoning_details",
            ];
            only(message, &known, "messages")?;
            let calls = list(message, "tool_calls");
            need(
                !message["content"].is_null() || !calls.is_empty(),
                "messages: content or tool_calls is needed",
            )?;
            for call in calls {
                need(call["type"] == "function", "tool_calls: the type is needed")?;
                check_name(text(&call["function"], "name"), 64)?;
                need(call["function"]["arguments"].is_string(), "tool_calls: arguments are a text")?;
                need(!text(call, "id").is_empty(), "tool_calls: an id is needed")?;
                open.push(text(call, "id").to_owned());
            }
        }
        "tool" => {
            only(message, &["role", "content", "tool_call_id"], "messages")?;
            let id = text(message, "tool_call_id");
            let at = open.iter().position(|call| call == id);
            let at =
                at.ok_or_else(|| Refusal::invalid(format!("no call before answers to tool_call_id `{id}`")))?;
            open.remove(at);
        }
        other => return Err(Refusal::invalid(format!("messages: there is no role `{other}`"))),
    }
    asked.heard(role, &words);
    Ok(())
}

fn words(content: &Json) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(parts) => parts.iter().map(|part| text(part, "text")).collect(),
        _ => String::new(),
    }
}

fn usage(answer: &Answer<'_>) -> Json {
    let usage = answer.usage;
    json!({
        "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cached_input_tokens },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
    })
}

fn finish(answer: &Answer<'_>) -> Json {
    match answer.turn.finish.as_deref() {
        Some(word) => json!(word),
        None if answer.turn.tool_calls.is_empty() => json!("stop"),
        None => json!("tool_calls"),
    }
}

fn calls(answer: &Answer<'_>) -> Vec<Json> {
    let calls = answer.turn.tool_calls.iter().enumerate();
    calls
        .map(|(at, call)| {
            let function = json!({ "name": call.name(), "arguments": call.written() });
            json!({ "id": answer.call_id(at, call), "type": "function", "function": function })
        })
        .collect()
}

pub(crate) fn whole(answer: &Answer<'_>) -> Json {
    let mut message = json!({ "role": "assistant", "content": null, "refusal": answer.turn.refusal });
    if !answer.text.is_empty() {
        message["content"] = json!(answer.text);
    }
    if !answer.turn.reasoning.is_empty() {
        message["reasoning_content"] = json!(answer.turn.reasoning);
    }
    if !answer.turn.tool_calls.is_empty() {
        message["tool_calls"] = Json::Array(calls(answer));
    }
    json!({
        "id": format!("chatcmpl-{}", answer.number), "object": "chat.completion", "created": 1,
        "model": answer.asked.model, "usage": usage(answer),
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer) }],
    })
}

pub(crate) fn events(answer: &Answer<'_>) -> Vec<String> {
    let chunk = |choices: Json| {
        json!({ "id": format!("chatcmpl-{}", answer.number), "object": "chat.completion.chunk", "created": 1,
            "model": answer.asked.model, "choices": choices })
    };
    let delta = |delta: Json| data(&chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }])));
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }))];
    for part in answer.chunks(&answer.turn.reasoning) {
        events.push(delta(json!({ "reasoning_content": part })));
    }
    for part in answer.chunks(&answer.text) {
        events.push(delta(json!({ "content": part })));
    }
    for part in answer.chunks(answer.turn.refusal.as_deref().unwrap_or_default()) {
        events.push(delta(json!({ "refusal": part })));
    }
    for (index, call) in calls(answer).into_iter().enumerate() {
        let mut begun = call.clone();
        begun["index"] = json!(index);
        begun["function"]["arguments"] = json!("");
        events.push(delta(json!({ "tool_calls": [begun] })));
        for part in answer.chunks(text(&call["function"], "arguments")) {
            events.push(delta(
                json!({ "tool_calls": [{ "index": index, "function": { "arguments": part } }] }),
            ));
        }
    }
    events.push(data(&chunk(json!([{ "index": 0, "delta": {}, "finish_reason": finish(answer) }]))));
    if answer.asked.include_usage {
        let mut last = chunk(json!([]));
        last["usage"] = usage(answer);
        events.push(data(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
