//! Gemini's generateContent and streamGenerateContent.

use axum::http::Uri;
use serde_json::{Value as Json, json};

use super::{Answer, Asked, Checked, check_name, data, list, need, only, signature, text};

const PART: [&str; 7] =
    ["text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"];
const CONFIG: [&str; 14] = [
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "stopSequences",
    "responseMimeType",
    "responseJsonSchema",
    "responseSchema",
    "thinkingConfig",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "candidateCount",
    "responseModalities",
];

pub(crate) fn check(body: &Json, uri: &Uri, asked: &mut Asked) -> Checked {
    let path = uri.path().rsplit('/').next().unwrap_or_default();
    let (model, method) = path.split_once(':').unwrap_or((path, ""));
    asked.model = model.to_owned();
    asked.stream = method == "streamGenerateContent";
    asked.include_usage = true;
    need(!asked.stream || uri.query() == Some("alt=sse"), "only alt=sse is spoken here")?;
    let top = [
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
    ];
    only(body, &top, "Invalid JSON payload received")?;
    if let Some(config) = body.get("generationConfig") {
        only(config, &CONFIG, "generationConfig")?;
        let is_json = config["responseMimeType"] == "application/json";
        need(
            is_json || config.get("responseJsonSchema").is_none(),
            "responseJsonSchema needs responseMimeType",
        )?;
        let beside_tools = is_json && body.get("tools").is_some() && !is_new(model);
        need(!beside_tools, "Function calling with a response mime type: 'application/json' is unsupported")?;
    }
    asked.all.push_str(text(&body["systemInstruction"]["parts"][0], "text"));
    for tool in list(body, "tools") {
        for function in list(tool, "functionDeclarations") {
            only(
                function,
                &["name", "description", "parameters", "parametersJsonSchema"],
                "functionDeclarations",
            )?;
            check_name(text(function, "name"), 64)?;
        }
    }
    contents(body, asked)
}

fn is_new(model: &str) -> bool {
    !model.starts_with("gemini-2") && !model.starts_with("gemini-1")
}

fn contents(body: &Json, asked: &mut Asked) -> Checked {
    let contents = list(body, "contents");
    need(!contents.is_empty(), "contents is not specified")?;
    need(contents[0]["role"] == "user", "please ensure that the first turn is of the user")?;
    let mut calls: Vec<String> = Vec::new();
    for content in contents {
        only(content, &["role", "parts"], "contents")?;
        let role = text(content, "role");
        need(matches!(role, "user" | "model"), "please use a valid role: user, model")?;
        let parts = list(content, "parts");
        need(!parts.is_empty(), "contents.parts must not be empty")?;
        for part in parts {
            only(part, &PART, "contents.parts")?;
        }
        let names = |key: &str| -> Vec<String> {
            parts.iter().filter_map(|part| part.get(key)).map(|call| text(call, "name").to_owned()).collect()
        };
        let results = names("functionResponse");
        let what = "the number of function response parts is equal to the number of function call parts";
        need(results == calls, format!("please ensure that {what} of the function call turn"))?;
        calls = names("functionCall");
        need(calls.is_empty() || role == "model", "only the model calls functions")?;
        check_signatures(parts, asked)?;
        let said = parts.iter().filter(|part| part["thought"] != true).map(part_said);
        let said: Vec<String> = said.filter(|said| !said.is_empty()).collect();
        let role = match role {
            "model" => "assistant",
            _ if results.is_empty() => "user",
            _ => "tool",
        };
        asked.heard(role, &said.join("\n"));
    }
    need(calls.is_empty(), "please ensure that function call turn is followed by a function response turn")
}

fn part_said(part: &Json) -> String {
    let response = &part["functionResponse"]["response"];
    [text(part, "text"), text(response, "output"), text(response, "error")].concat()
}

/// The first call of a turn has to be signed, from the third generation on: by us, or by the word for others.
fn check_signatures(parts: &[Json], asked: &Asked) -> Checked {
    let Some(first) = parts.iter().find(|part| part.get("functionCall").is_some()) else { return Ok(()) };
    let signed = text(first, "thoughtSignature");
    let is_ours = signed == signature(text(&first["functionCall"], "name"));
    let is_known = is_ours || signed == "skip_thought_signature_validator";
    need(
        is_known || !is_new(&asked.model),
        "Function call is missing a thought_signature, or it is not valid",
    )
}

fn parts(answer: &Answer<'_>) -> Vec<Json> {
    let turn = answer.turn;
    let mut parts = Vec::new();
    if !turn.reasoning.is_empty() {
        parts.push(json!({ "text": turn.reasoning, "thought": true }));
    }
    if !answer.text.is_empty() {
        parts.push(json!({ "text": answer.text }));
    }
    for (at, call) in turn.tool_calls.iter().enumerate() {
        let args: Json = serde_json::from_str(&call.written()).unwrap_or_else(|_| json!({}));
        let mut part = json!({ "functionCall": { "name": call.name(), "args": args } });
        if let Some(id) = &call.id {
            part["functionCall"]["id"] = json!(id);
        }
        if at == 0 {
            part["thoughtSignature"] = json!(signature(&call.name()));
        }
        parts.push(part);
    }
    parts
}

fn reply(answer: &Answer<'_>, parts: Vec<Json>, is_last: bool) -> Json {
    let usage = answer.usage;
    let mut counts = json!({ "promptTokenCount": usage.input_tokens });
    if is_last {
        counts = json!({ "promptTokenCount": usage.input_tokens, "cachedContentTokenCount": usage.cached_input_tokens,
            "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens });
    }
    let mut reply = json!({ "usageMetadata": counts, "modelVersion": answer.asked.model,
        "responseId": format!("resp-{}", answer.number) });
    // Gemini has no word of its own for refusing: it holds back.
    let finish = match answer.turn.finish.as_deref() {
        Some("length") => "MAX_TOKENS",
        Some("content_filter") => "SAFETY",
        Some(word) => word,
        None if answer.turn.refusal.is_some() => "PROHIBITED_CONTENT",
        None => "STOP",
    };
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if is_last {
        candidate["finishReason"] = json!(finish);
        if let Some(why) = &answer.turn.refusal {
            candidate["finishMessage"] = json!(why);
        }
    }
    reply["candidates"] = json!([candidate]);
    reply
}

pub(crate) fn whole(answer: &Answer<'_>) -> Json {
    reply(answer, parts(answer), true)
}

pub(crate) fn events(answer: &Answer<'_>) -> Vec<String> {
    let mut pieces: Vec<Json> = Vec::new();
    for part in parts(answer) {
        match part.get("text").and_then(Json::as_str) {
            Some(words) => pieces.extend(answer.chunks(words).into_iter().map(|chunk| {
                let mut piece = part.clone();
                piece["text"] = json!(chunk);
                piece
            })),
            None => pieces.push(part),
        }
    }
    let last = pieces.pop();
    let mut events: Vec<String> =
        pieces.into_iter().map(|piece| data(&reply(answer, vec![piece], false))).collect();
    events.push(data(&reply(answer, last.into_iter().collect(), true)));
    events
}
