//! Gemini's generateContent and streamGenerateContent.

use std::collections::BTreeSet;

use serde_json::{Map as JsonMap, Value as Json, json};
use wonder_lang::Value;

use super::{
    Body, Deltas, End, Fold, Said, append, arguments_map, count, images, list, owned, parameters,
    result_text, text,
};
use crate::arguments;
use crate::call::{Asked, begins_with_user};
use crate::decode::Reading;
use crate::facts;
use crate::message::{Image, Item, Message, Part, Role, ToolCall, ToolResult};
use crate::problem::Problem;
use crate::reply::Usage;
use crate::request::{Request, Tool, ToolChoice};
use crate::schema::{self, Shape};
use crate::url::path_part;

/// What Google has one send for a call that no Gemini made: from the third generation on, a call without a
/// signature is refused.
const NOT_SIGNED: &str = "skip_thought_signature_validator";
const SIGNATURE: &str = "thoughtSignature";

/// Below the base URL. The key is not in it.
pub(crate) fn path(request: &Request) -> String {
    let (folder, name) = match request.model.split_once('/') {
        Some(("tunedModels", name)) => ("tunedModels", name),
        Some(("models", name)) => ("models", name),
        _ => ("models", &*request.model),
    };
    let method = if request.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("{folder}/{}:{method}", path_part(name))
}

pub(crate) fn body(asked: &Asked<'_>) -> Result<Body, Problem> {
    let request = asked.request;
    begins_with_user(&asked.messages)?;
    let mut body = Body::new("contents", json!({}));
    say_contents(asked, &mut body)?;
    if let Some(system) = &asked.system {
        body.put("systemInstruction", json!({ "parts": [{ "text": system }] }));
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Json> = request.tools.iter().map(|offered| tool(asked, offered)).collect();
        body.put("tools", json!([{ "functionDeclarations": declarations }]));
        body.put("toolConfig", json!({ "functionCallingConfig": tool_choice(asked) }));
    }
    let config = config(asked);
    if !config.is_empty() {
        body.put("generationConfig", Json::Object(config));
    }
    Ok(body)
}

fn config(asked: &Asked<'_>) -> JsonMap<String, Json> {
    let request = asked.request;
    let mut config = JsonMap::new();
    let mut put = |key: &str, value: Json| config.insert(key.to_owned(), value);
    if let Some(max) = request.max_tokens {
        put("maxOutputTokens", json!(max));
    }
    if let Some(degree) = request.temperature {
        put("temperature", json!(degree));
    }
    if !request.stop.is_empty() {
        put("stopSequences", json!(request.stop));
    }
    if let Some(effort) = request.reasoning {
        let mut thinking = json!({ "includeThoughts": true });
        if facts::gemini_is_before_3(&request.model) {
            thinking["thinkingBudget"] = json!(effort.budget_tokens());
        } else {
            thinking["thinkingLevel"] = json!(effort.as_str());
        }
        put("thinkingConfig", thinking);
    }
    if let Shape::Strict(schema) | Shape::Loose(schema) = &asked.shape {
        put("responseMimeType", json!("application/json"));
        put("responseJsonSchema", schema.clone());
    }
    config
}

/// Turns of user and model. Results of tools are the user's, in a turn of their own: there are as many in it as
/// there were calls.
fn say_contents(asked: &Asked<'_>, body: &mut Body) -> Result<(), Problem> {
    let role = |role: Role| if role == Role::Assistant { "model" } else { "user" };
    let say = |body: &mut Body, (of, parts): (Role, Vec<Json>)| {
        body.say(&json!({ "role": role(of), "parts": parts }));
    };
    // The one that may yet be added to.
    let mut turn: Option<(Role, Vec<Json>)> = None;
    // Calls that Gemini made without an id: their results have none either.
    let mut nameless = BTreeSet::new();
    let mut pictures = Vec::new();
    for (at, message) in asked.messages.iter().enumerate() {
        for call in message.tool_calls() {
            if asked.own(&call.item).is_some_and(|own| own.get("id").is_none()) {
                nameless.insert(call.id.clone());
            }
        }
        if message.role != Role::Tool {
            after_results(&mut turn, &mut pictures);
        }
        let parts = match message.role {
            Role::Assistant => model_parts(asked, message),
            Role::User => user_parts(message, at)?,
            Role::Tool => {
                pictures.extend(pictures_beside(asked, message, at)?);
                result_parts(asked, message, &nameless, at)?
            }
        };
        match &mut turn {
            _ if parts.is_empty() => {}
            Some((last, before)) if *last == message.role => before.extend(parts),
            turn => turn.replace((message.role, parts)).into_iter().for_each(|turn| say(body, turn)),
        }
    }
    after_results(&mut turn, &mut pictures);
    turn.into_iter().for_each(|turn| say(body, turn));
    Ok(())
}

fn after_results(turn: &mut Option<(Role, Vec<Json>)>, pictures: &mut Vec<Json>) {
    if let Some((Role::Tool, parts)) = turn {
        parts.append(pictures);
    }
}

fn user_parts(message: &Message, at: usize) -> Result<Vec<Json>, Problem> {
    let mut parts = Vec::new();
    for part in &message.content {
        match part {
            Part::Text { text, .. } => parts.push(json!({ "text": &**text })),
            Part::Image(image) => parts.push(picture(image, at)?),
            _ => {}
        }
    }
    Ok(parts)
}

fn results(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.content.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// Before the third generation, the images of results stand beside them.
fn pictures_beside(asked: &Asked<'_>, message: &Message, at: usize) -> Result<Vec<Json>, Problem> {
    if !facts::gemini_is_before_3(&asked.request.model) {
        return Ok(Vec::new());
    }
    results(message).flat_map(images).map(|image| picture(image, at)).collect()
}

fn result_parts(
    asked: &Asked<'_>,
    message: &Message,
    nameless: &BTreeSet<wonder_lang::def::Name>,
    at: usize,
) -> Result<Vec<Json>, Problem> {
    let mut parts = Vec::new();
    for result in results(message) {
        let mut sent = json!({ "name": asked.names.outer(&result.tool), "response": response(result) });
        if !nameless.contains(&result.id) {
            sent["id"] = json!(&*result.id);
        }
        let pictures: Vec<Json> = images(result).map(|image| picture(image, at)).collect::<Result<_, _>>()?;
        if !pictures.is_empty() && !facts::gemini_is_before_3(&asked.request.model) {
            sent["parts"] = Json::Array(pictures);
        }
        parts.push(json!({ "functionResponse": sent }));
    }
    Ok(parts)
}

fn response(result: &ToolResult) -> Json {
    let key = if result.is_error { "error" } else { "output" };
    json!({ key: result_text(result) })
}

fn model_parts(asked: &Asked<'_>, message: &Message) -> Vec<Json> {
    let mut parts = Vec::new();
    let signed = message.tool_calls().any(|call| asked.own(&call.item).is_some());
    let mut needs_signature = !signed && !facts::gemini_is_before_3(&asked.request.model);
    for part in &message.content {
        match part {
            Part::Text { text, item } => {
                let own = asked.own(item);
                if !text.is_empty() || own.is_some() {
                    parts.push(with_rest(own, json!({ "text": &**text })));
                }
            }
            Part::Reasoning { text, item } => {
                if let Some(own) = asked.own(item) {
                    // What is no thought is Gemini's own affair and has no text.
                    let is_thought = own.get("thought").is_some();
                    parts.push(with_rest(
                        Some(own),
                        if is_thought { json!({ "text": &**text }) } else { json!({}) },
                    ));
                }
            }
            Part::ToolCall(call) => {
                let own = asked.own(&call.item);
                let mut function = json!({
                    "name": asked.names.outer(&call.tool), "args": arguments_map(&call.arguments),
                });
                match own {
                    Some(own) => {
                        if let Some(id) = own.get("id") {
                            function["id"] = id.to_json();
                        }
                    }
                    None => function["id"] = json!(&*call.id),
                }
                let mut sent = json!({ "functionCall": function });
                if let Some(signature) = own.and_then(|own| own.get(SIGNATURE)) {
                    sent[SIGNATURE] = signature.to_json();
                } else if std::mem::take(&mut needs_signature) {
                    sent[SIGNATURE] = json!(NOT_SIGNED);
                }
                parts.push(sent);
            }
            _ => {}
        }
    }
    parts
}

fn with_rest(rest: Option<&Value>, canonical: Json) -> Json {
    super::whole_item(rest, canonical)
}

fn picture(image: &Image, at: usize) -> Result<Json, Problem> {
    match image {
        Image::Data { media_type, data } => {
            Ok(json!({ "inlineData": { "mimeType": &**media_type, "data": &**data } }))
        }
        Image::Url { url, media_type } => {
            let Some(media_type) = media_type.as_deref().or_else(|| by_ending(url)) else {
                let message = "Gemini has to be told what an image at a URL is: say its `media_type`";
                return Err(Problem::new(format!("messages[{at}]"), message));
            };
            Ok(json!({ "fileData": { "mimeType": media_type, "fileUri": &**url } }))
        }
    }
}

fn by_ending(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        _ => None,
    }
}

fn tool(asked: &Asked<'_>, tool: &Tool) -> Json {
    let schema = parameters(tool);
    let schema = schema::narrowed(&schema, &schema::GEMINI).unwrap_or(schema);
    let mut sent = json!({ "name": asked.names.outer(&tool.name), "parametersJsonSchema": schema });
    if let Some(description) = &tool.description {
        sent["description"] = json!(&**description);
    }
    sent
}

fn tool_choice(asked: &Asked<'_>) -> Json {
    match &asked.request.tool_choice {
        ToolChoice::Auto => json!({ "mode": "AUTO" }),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [asked.names.outer(name)] })
        }
    }
}

/// Chunks, each a reply of its own, put together to one. There is no mark at the end but a reason to stop.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    top: JsonMap<String, Json>,
    parts: Vec<Json>,
    candidate: JsonMap<String, Json>,
    calls: usize,
}

impl Chunks {
    fn part(&mut self, part: &Json, deltas: &mut Deltas<'_>) {
        if let Some(call) = part.get("functionCall") {
            deltas.tool_call(self.calls, text(call, "name"));
            let args = call.get("args").filter(|args| !args.is_null());
            deltas.arguments(self.calls, &args.map_or_else(|| "{}".to_owned(), Json::to_string));
            self.calls += 1;
        }
        let is_thought = part["thought"] == true;
        if is_thought {
            deltas.reasoning(text(part, "text"));
        } else {
            deltas.text(text(part, "text"));
        }
        // Texts that are signed must stay as they are.
        let is_plain = |part: &Json| part.get("text").is_some() && part.get(SIGNATURE).is_none();
        match self.parts.last_mut() {
            Some(last) if is_plain(last) && is_plain(part) && (last["thought"] == true) == is_thought => {
                if let Json::Object(last) = last {
                    append(last, "text", text(part, "text"));
                }
            }
            _ => self.parts.push(part.clone()),
        }
    }
}

impl Fold for Chunks {
    fn event(&mut self, event: Json, deltas: &mut Deltas<'_>) -> Option<Json> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Some(event);
        }
        for key in ["usageMetadata", "modelVersion", "responseId", "promptFeedback"] {
            if let Some(value) = event.get(key).filter(|value| !value.is_null()) {
                self.top.insert(key.to_owned(), value.clone());
            }
        }
        let first = |candidate: &&Json| candidate.get("index").and_then(Json::as_u64).unwrap_or(0) == 0;
        let candidate = list(&event, "candidates").iter().find(first)?;
        for key in ["finishReason", "finishMessage"] {
            if let Some(value @ Json::String(_)) = candidate.get(key) {
                self.candidate.insert(key.to_owned(), value.clone());
            }
        }
        for part in list(&candidate["content"], "parts") {
            self.part(part, deltas);
        }
        None
    }

    fn whole(&mut self) -> Option<Json> {
        let has_end = self.candidate.contains_key("finishReason");
        let is_blocked =
            self.top.get("promptFeedback").is_some_and(|feedback| feedback["blockReason"].is_string());
        if !has_end && !is_blocked {
            return None;
        }
        let mut whole = std::mem::take(&mut self.top);
        if has_end {
            let mut candidate = std::mem::take(&mut self.candidate);
            let parts = std::mem::take(&mut self.parts);
            candidate.insert("content".to_owned(), json!({ "role": "model", "parts": parts }));
            whole.insert("candidates".to_owned(), json!([candidate]));
        }
        Some(Json::Object(whole))
    }

    /// What was paid may still come after the reason.
    fn is_complete(&self) -> bool {
        false
    }

    fn usage(&self) -> Option<Usage> {
        self.top.get("usageMetadata").and_then(usage)
    }
}

pub(crate) fn said(reply: &Json, reading: &Reading) -> Said {
    let candidate = &reply["candidates"][0];
    let parts = list(&candidate["content"], "parts").iter().filter_map(|part| canonical(part, reading));
    let parts: Vec<Part> = parts.collect();
    let message = owned(candidate, "finishMessage");
    let told = |what: &str| match &message {
        Some(message) => format!("{what}: {message}"),
        None => what.to_owned(),
    };
    let end = match candidate.get("finishReason").and_then(Json::as_str) {
        Some("STOP") => End::Stop,
        Some("MAX_TOKENS" | "CONTINUATION") => End::Length,
        Some(
            reason @ ("SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "MODEL_ARMOR"
            | "ESCALATION"),
        ) => End::Filtered(told(&format!("the answer was held back ({reason})"))),
        Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE")) => {
            End::Malformed(told(&format!("the model's call of a tool cannot be read ({reason})")))
        }
        Some(other) => End::Unknown(told(&format!("it stopped by `{other}`"))),
        None => match reply["promptFeedback"]["blockReason"].as_str() {
            Some(reason) => End::Filtered(format!("the question was held back ({reason})")),
            None => End::Unknown("there is neither an answer nor a reason why".to_owned()),
        },
    };
    let usage = reply.get("usageMetadata").and_then(usage);
    Said { parts, usage, model: owned(reply, "modelVersion"), id: owned(reply, "responseId"), end }
}

fn canonical(part: &Json, reading: &Reading) -> Option<Part> {
    let kept = |value: Value| Item { origin: reading.origin.clone(), value };
    if let Some(call) = part.get("functionCall") {
        let args = call.get("args").filter(|args| !args.is_null());
        let mut rest = json!({});
        for (key, value) in [("id", call.get("id")), (SIGNATURE, part.get(SIGNATURE))] {
            if let Some(value) = value {
                rest[key] = value.clone();
            }
        }
        return Some(Part::ToolCall(ToolCall {
            id: text(call, "id").into(),
            tool: reading.names.inner(text(call, "name")),
            arguments: arguments::read(&args.map_or_else(String::new, Json::to_string)),
            item: Some(kept(Value::from_json(&rest))),
        }));
    }
    let rest = super::rest_of(part, &["text"]);
    let has_rest = rest.as_map().is_some_and(|rest| !rest.is_empty());
    match part.get("text").and_then(Json::as_str) {
        Some(text) if part["thought"] == true => {
            Some(Part::Reasoning { text: text.into(), item: Some(kept(rest)) })
        }
        Some(text) if text.is_empty() && !has_rest => None,
        Some(text) => Some(Part::Text { text: text.into(), item: has_rest.then(|| kept(rest)) }),
        // What only Gemini understands stays as it is.
        None => has_rest.then(|| Part::Reasoning { text: "".into(), item: Some(kept(rest)) }),
    }
}

fn usage(usage: &Json) -> Option<Usage> {
    usage.get("promptTokenCount")?;
    let thoughts = count(usage, "/thoughtsTokenCount");
    Some(Usage {
        input_tokens: count(usage, "/promptTokenCount")
            .saturating_add(count(usage, "/toolUsePromptTokenCount")),
        cached_input_tokens: count(usage, "/cachedContentTokenCount"),
        cache_write_tokens: 0,
        output_tokens: count(usage, "/candidatesTokenCount").saturating_add(thoughts),
        reasoning_tokens: thoughts,
    })
}
