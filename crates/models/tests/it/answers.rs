//! Answers as providers document them, streamed and not: the same reply either way.

use serde_json::{Value as Json, json};
use wonder_models::{Arguments, Delta, FinishReason, Part, Provider, Reply, Request, Usage, Wire};

use crate::support::{ALL, answered, ask, body, exchange, sse, streamed, value, weather};

/// A turn with reasoning, text and two calls, as one format says it: whole, and as a stream.
pub(crate) fn fixture(wire: Wire) -> (Json, String) {
    match wire {
        Wire::Chat => (chat_whole(), chat_stream()),
        Wire::Responses => (responses_whole(), responses_stream()),
        Wire::Anthropic => (anthropic_whole(), anthropic_stream()),
        Wire::Gemini => (gemini_whole(), gemini_stream()),
    }
}

fn chat_whole() -> Json {
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "weather__now", "arguments": arguments } });
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "qwen3-32b",
        "choices": [{ "index": 0, "logprobs": null, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Einen Moment: ☀", "refusal": null, "reasoning_content": "Both at once.",
            "tool_calls": [call("call_a", "{\"city\":\"Paris\"}"), call("call_b", "{\"city\":\"Rom\\u00e9\"}")],
        }}],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
            "prompt_tokens_details": { "cached_tokens": 64 }, "completion_tokens_details": { "reasoning_tokens": 5 } },
    })
}

fn chat_stream() -> String {
    let chunk = |delta: Json, finish: Json| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "qwen3-32b", "choices": [choice] })
    };
    let call = |index: u64, rest: Json| json!({ "tool_calls": [with(json!({ "index": index }), rest)] });
    let begun = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "weather__now", "arguments": "" } });
    let more = |text: &str| json!({ "function": { "arguments": text } });
    let mut events = vec![
        chunk(json!({ "role": "assistant", "content": "" }), Json::Null),
        chunk(json!({ "reasoning_content": "Both " }), Json::Null),
        chunk(json!({ "reasoning_content": "at once." }), Json::Null),
        chunk(json!({ "content": "Einen Mo" }), Json::Null),
        chunk(json!({ "content": "ment: ☀" }), Json::Null),
        chunk(call(0, begun("call_a")), Json::Null),
        chunk(call(0, more("{\"city\":")), Json::Null),
        chunk(call(0, more("\"Paris\"}")), Json::Null),
        chunk(call(1, begun("call_b")), Json::Null),
        chunk(call(1, more("{\"city\":\"Rom\\u00e9\"}")), Json::Null),
        chunk(json!({}), json!("tool_calls")),
    ];
    let mut last = chunk(json!({}), Json::Null);
    last["choices"] = json!([]);
    last["usage"] = chat_whole()["usage"].clone();
    events.push(last);
    format!(": OPENROUTER PROCESSING\n\n{}data: [DONE]\n\n", sse(&events))
}

fn with(mut json: Json, more: Json) -> Json {
    if let (Json::Object(json), Json::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    json
}

fn responses_whole() -> Json {
    let call = |id: &str, arguments: &str| {
        json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "weather__now",
            "arguments": arguments, "status": "completed" })
    };
    let text = json!({ "type": "output_text", "text": "Einen Moment: ☀", "annotations": [], "logprobs": [] });
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "error": null, "incomplete_details": null,
        "model": "gpt-5.2-2025-12-11",
        "output": [
            { "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": [
                { "type": "summary_text", "text": "Both at once." }] },
            { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
                "content": [text] },
            call("call_a", "{\"city\":\"Paris\"}"),
            call("call_b", "{\"city\":\"Romé\"}"),
        ],
        "usage": { "input_tokens": 100, "input_tokens_details": { "cached_tokens": 64 }, "output_tokens": 20,
            "output_tokens_details": { "reasoning_tokens": 5 }, "total_tokens": 120 },
    })
}

fn responses_stream() -> String {
    let whole = responses_whole();
    let mut begun = whole.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Json::Null;
    let delta = |kind: &str, item: &str, delta: &str| json!({ "type": format!("response.{kind}.delta"), "item_id": item, "output_index": 0, "delta": delta });
    let added = |at: usize| {
        let item = &whole["output"][at];
        json!({ "type": "response.output_item.added", "output_index": at, "item": with(item.clone(), json!({ "arguments": "" })) })
    };
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        delta("reasoning_summary_text", "rs_1", "Both at once."),
        delta("output_text", "msg_1", "Einen Mo"),
        delta("output_text", "msg_1", "ment: ☀"),
        added(2),
        delta("function_call_arguments", "fc_call_a", "{\"city\":"),
        delta("function_call_arguments", "fc_call_a", "\"Paris\"}"),
        added(3),
        delta("function_call_arguments", "fc_call_b", "{\"city\":\"Romé\"}"),
    ];
    for at in 0..4 {
        let item = &whole["output"][at];
        events.push(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
    }
    events.push(json!({ "type": "response.completed", "response": whole }));
    let named = |event: &Json| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(named).collect()
}

fn anthropic_whole() -> Json {
    let call = |id: &str, city: &str| json!({ "type": "tool_use", "id": id, "name": "weather__now", "input": { "city": city } });
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "stop_reason": "tool_use",
        "stop_sequence": null,
        "content": [
            { "type": "thinking", "thinking": "Both at once.", "signature": "EqQB" },
            { "type": "redacted_thinking", "data": "EmwK" },
            { "type": "text", "text": "Einen Moment: ☀", "citations": null },
            call("call_a", "Paris"),
            call("call_b", "Romé"),
        ],
        "usage": { "input_tokens": 30, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6,
            "output_tokens": 20, "output_tokens_details": { "thinking_tokens": 5 } },
    })
}

fn anthropic_stream() -> String {
    let start =
        |at: u64, block: Json| json!({ "type": "content_block_start", "index": at, "content_block": block });
    let delta = |at: u64, delta: Json| json!({ "type": "content_block_delta", "index": at, "delta": delta });
    let text = |at: u64, text: &str| delta(at, json!({ "type": "text_delta", "text": text }));
    let input = |at: u64, text: &str| delta(at, json!({ "type": "input_json_delta", "partial_json": text }));
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "weather__now", "input": {} });
    let usage = json!({ "input_tokens": 30, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8",
        "content": [], "stop_reason": null, "usage": usage });
    let end = json!({ "output_tokens": 20, "output_tokens_details": { "thinking_tokens": 5 } });
    let events = [
        json!({ "type": "message_start", "message": message }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        json!({ "type": "ping" }),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Both " })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "at once." })),
        delta(0, json!({ "type": "signature_delta", "signature": "EqQB" })),
        json!({ "type": "content_block_stop", "index": 0 }),
        start(1, json!({ "type": "redacted_thinking", "data": "EmwK" })),
        start(2, json!({ "type": "text", "text": "" })),
        text(2, "Einen Mo"),
        text(2, "ment: ☀"),
        start(3, call("call_a")),
        input(3, ""),
        input(3, "{\"city\":"),
        input(3, "\"Paris\"}"),
        start(4, call("call_b")),
        input(4, "{\"city\":\"Romé\"}"),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use", "stop_sequence": null }, "usage": end }),
        json!({ "type": "message_stop" }),
    ];
    let named = |event: &Json| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap());
    events.iter().map(named).collect()
}

fn gemini_whole() -> Json {
    let call = |id: &str, city: &str| json!({ "id": id, "name": "weather__now", "args": { "city": city } });
    json!({
        "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [
            { "text": "Both at once.", "thought": true },
            { "text": "Einen Moment: ☀" },
            { "functionCall": call("call_a", "Paris"), "thoughtSignature": "EqQB" },
            { "functionCall": call("call_b", "Romé") },
        ]}}],
        "usageMetadata": { "promptTokenCount": 100, "cachedContentTokenCount": 64, "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5, "totalTokenCount": 120 },
        "modelVersion": "gemini-3-pro", "responseId": "r-1",
    })
}

fn gemini_stream() -> String {
    let whole = gemini_whole();
    let chunk = |parts: Json| {
        let candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        json!({ "candidates": [candidate], "usageMetadata": { "promptTokenCount": 100, "totalTokenCount": 100 },
            "modelVersion": "gemini-3-pro", "responseId": "r-1" })
    };
    let parts = &whole["candidates"][0]["content"]["parts"];
    let mut last = chunk(json!([parts[2], parts[3]]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = whole["usageMetadata"].clone();
    sse(&[
        chunk(json!([{ "text": "Both ", "thought": true }])),
        chunk(json!([{ "text": "at once.", "thought": true }])),
        chunk(json!([{ "text": "Einen Mo" }])),
        chunk(json!([{ "text": "ment: ☀" }])),
        last,
    ])
}

pub(crate) fn question(wire: Wire) -> Request {
    Request { tools: vec![weather()], stream: true, ..ask(wire) }
}

fn check(reply: &Reply, wire: Wire) {
    assert_eq!(reply.text, "Einen Moment: ☀", "{wire}");
    assert_eq!(reply.reasoning(), "Both at once.", "{wire}");
    assert_eq!(reply.finish_reason, FinishReason::ToolCalls, "{wire}");
    let calls: Vec<String> = reply.tool_calls().map(|call| call.to_value().to_string()).collect();
    let expected = [
        r#"{"arguments":{"city":"Paris"},"id":"call_a","tool":"weather/now"}"#,
        r#"{"arguments":{"city":"Romé"},"id":"call_b","tool":"weather/now"}"#,
    ];
    assert_eq!(calls, expected, "{wire}");
    let usage = Usage {
        input_tokens: 100,
        cached_input_tokens: 64,
        cache_write_tokens: if wire == Wire::Anthropic { 6 } else { 0 },
        output_tokens: 20,
        reasoning_tokens: 5,
    };
    assert_eq!(reply.usage, Some(usage), "{wire}");
    assert!(reply.model.as_deref().unwrap().contains('-'), "{wire}");
}

#[test]
fn streamed_and_unstreamed_answers_are_the_same_reply() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let (whole, stream) = fixture(one.1);
        let whole = answered(&exchange, 200, &whole.to_string()).unwrap();
        check(&whole, one.1);
        let (deltas, reply) = streamed(&exchange, [stream.as_bytes()]);
        let reply = reply.unwrap();
        check(&reply, one.1);
        assert_eq!(reply.message, whole.message, "{}", one.1);
        assert_eq!(reply.request_id.as_deref(), Some("req_7"));
        let text: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        assert_eq!(text, reply.text);
        let calls = deltas
            .iter()
            .filter(|delta| matches!(delta, Delta::ToolCall { tool, .. } if &**tool == "weather/now"));
        assert_eq!(calls.count(), 2, "{}", one.1);
        let of = |wanted: usize| -> String {
            deltas
                .iter()
                .filter_map(|delta| match delta {
                    Delta::Arguments { index, text } if *index == wanted => Some(&**text),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(value(&of(0)).to_string(), r#"{"city":"Paris"}"#, "{}", one.1);
        assert_eq!(value(&of(1)).to_string(), r#"{"city":"Romé"}"#, "{}", one.1);
    }
}

/// What a provider signed goes back as it was; of another it gets the words alone.
#[test]
fn signed_reasoning_goes_back_unchanged_to_its_own_and_to_nobody_else() {
    for from in ALL {
        let (whole, _) = fixture(from.1);
        let reply = answered(&exchange(&question(from.1), from), 200, &whole.to_string()).unwrap();
        // By way of the form in which it is stored.
        let message = wonder_models::Message::from_value(&reply.message.to_value(), "m").unwrap();
        assert_eq!(message, reply.message);
        for to in ALL {
            let mut request = question(to.1);
            request.messages.push(message.clone());
            for call in reply.tool_calls() {
                request.messages.push(wonder_models::Message::tool_result(call, "ok", false));
            }
            let sent = body(&exchange(&request, to));
            let said = match to.1 {
                Wire::Chat => json!([sent["messages"][1]]),
                Wire::Responses => Json::Array(sent["input"].as_array().unwrap()[1..].to_vec()),
                Wire::Anthropic => sent["messages"][1]["content"].clone(),
                Wire::Gemini => sent["contents"][1]["parts"].clone(),
            };
            let has = |text: &str| said.to_string().contains(text);
            assert!(has("Einen Moment: ☀") && has("Paris"), "{} to {}", from.1, to.1);
            if from == to {
                assert_eq!(own(&said, to.1), own_of(&whole, to.1));
            } else {
                for secret in ["EqQB", "EmwK", "gAAA", "Both at once."] {
                    assert!(!has(secret), "{} to {}: {said}", from.1, to.1);
                }
            }
        }
    }
}

/// What a format sends of its own turn, to be compared with what it had said.
fn own(said: &Json, wire: Wire) -> Json {
    match wire {
        Wire::Chat => said[0]["reasoning_content"].clone(),
        Wire::Responses => {
            json!([said[0], said[1]["id"], said[1]["phase"], said[2]["id"], said[3]["call_id"]])
        }
        Wire::Anthropic => json!([said[0], said[1]]),
        Wire::Gemini => said.clone(),
    }
}

fn own_of(whole: &Json, wire: Wire) -> Json {
    let said = match wire {
        Wire::Chat => json!([whole["choices"][0]["message"]]),
        Wire::Responses => whole["output"].clone(),
        Wire::Anthropic => whole["content"].clone(),
        Wire::Gemini => whole["candidates"][0]["content"]["parts"].clone(),
    };
    own(&said, wire)
}

/// Gemini insists on signatures for calls of its own time; for others' calls it has a word.
#[test]
fn gemini_is_told_which_calls_nobody_signed() {
    let (whole, _) = fixture(Wire::Anthropic);
    let one = (Provider::Anthropic, Wire::Anthropic);
    let reply = answered(&exchange(&question(one.1), one), 200, &whole.to_string()).unwrap();
    for (model, signature) in
        [("gemini-3-pro", json!("skip_thought_signature_validator")), ("gemini-2.5-pro", Json::Null)]
    {
        let mut request = Request { model: model.to_owned(), ..question(Wire::Gemini) };
        request.messages.push(reply.message.clone());
        for call in reply.tool_calls() {
            request.messages.push(wonder_models::Message::tool_result(call, "ok", false));
        }
        let sent = body(&exchange(&request, (Provider::Gemini, Wire::Gemini)));
        let calls = &sent["contents"][1]["parts"];
        assert_eq!(calls[1]["thoughtSignature"], signature);
        assert_eq!(calls[2]["thoughtSignature"], Json::Null);
    }
}

#[test]
fn gemini_calls_without_ids_get_them_from_us_and_results_go_back_without() {
    let one = (Provider::Gemini, Wire::Gemini);
    let mut whole = gemini_whole();
    for at in [2, 3] {
        whole["candidates"][0]["content"]["parts"][at]["functionCall"].as_object_mut().unwrap().remove("id");
    }
    let reply = answered(&exchange(&question(one.1), one), 200, &whole.to_string()).unwrap();
    let ids: Vec<&str> = reply.tool_calls().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_r-1_0", "call_r-1_1"]);
    let mut request = question(one.1);
    request.messages.push(reply.message.clone());
    for call in reply.tool_calls() {
        request.messages.push(wonder_models::Message::tool_result(call, "ok", true));
    }
    let sent = body(&exchange(&request, one));
    assert_eq!(sent["contents"][1]["parts"], whole["candidates"][0]["content"]["parts"]);
    let result = json!({ "functionResponse": { "name": "weather__now", "response": { "error": "ok" } } });
    assert_eq!(sent["contents"][2]["parts"], json!([result, result]));
}

#[test]
fn arguments_are_read_strictly_or_kept() {
    let one = (Provider::OpenAi, Wire::Chat);
    let exchange = exchange(&question(one.1), one);
    let arguments = |written: &str| {
        let call = json!({ "id": "c", "type": "function", "function": { "name": "weather__now", "arguments": written } });
        let choice = json!({ "message": { "tool_calls": [call] }, "finish_reason": "tool_calls" });
        let reply = answered(&exchange, 200, &json!({ "choices": [choice] }).to_string()).unwrap();
        let arguments = reply.tool_calls().next().unwrap().arguments.clone();
        (arguments, reply)
    };
    assert_eq!(arguments("").0, Arguments::Read(value("{}")));
    assert_eq!(arguments(r#" {"a": 1.0} "#).0, Arguments::Read(value(r#"{"a":1.0}"#)));
    for (written, why) in [
        (r#"{"city":"Par"#, "EOF"),
        (r#"{"a":1}{"a":1}"#, "trailing"),
        (r#"{"a":1,"a":2}"#, "the key `a` comes twice"),
        (r#"{"a":{"b":1,"b":1}}"#, "the key `b` comes twice"),
        (r#"{"id":9223372036854775808}"#, "9223372036854775808 at line 1"),
        ("null", "a map was expected, not a null"),
        ("[1]", "a map was expected, not a list"),
        ("{'a': 1}", "key must be a string"),
    ] {
        let (arguments, reply) = arguments(written);
        let Arguments::Unreadable { raw, error } = arguments else { panic!("{written} was read") };
        assert_eq!(&*raw, written);
        assert!(error.contains(why), "{error}");
        // And the model sees what it wrote.
        let mut request = question(one.1);
        request.messages.push(reply.message.clone());
        let call = reply.tool_calls().next().unwrap();
        request.messages.push(wonder_models::Message::tool_result(call, &*error, true));
        let sent = body(&crate::support::exchange(&request, one));
        assert_eq!(sent["messages"][1]["tool_calls"][0]["function"]["arguments"], written);
        for other in &ALL[..] {
            let sent = String::from_utf8(crate::support::exchange(&request, *other).call.body).unwrap();
            assert!(sent.contains("unreadable_arguments") || other.1 == Wire::Responses, "{sent}");
        }
    }
}

#[test]
fn an_empty_answer_is_an_answer() {
    let one = (Provider::Anthropic, Wire::Anthropic);
    let exchange = exchange(&ask(one.1), one);
    let reply = answered(
        &exchange,
        200,
        r#"{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}"#,
    );
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.finish_reason), ("", FinishReason::Stop));
    // It cannot be sent back, and is not.
    let mut request = ask(one.1);
    request.messages.push(reply.message);
    request.messages.push(wonder_models::Message::user("Well?"));
    let sent = body(&crate::support::exchange(&request, one));
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    assert_eq!(sent["messages"][0]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn plain_text_may_be_cut() {
    let one = (Provider::OpenAiCompatible, Wire::Chat);
    let cut = r#"{"choices":[{"message":{"content":"Once upon"},"finish_reason":"length"}]}"#;
    let reply = answered(&exchange(&ask(one.1), one), 200, cut).unwrap();
    assert_eq!((&*reply.text, reply.finish_reason, reply.usage), ("Once upon", FinishReason::Length, None));
    assert_eq!(reply.to_value().get("usage"), Some(&wonder_lang::Value::Null));
    assert_eq!(reply.message.content, [Part::text("Once upon")]);
}

/// Reasoning that came without its content lies nowhere: a reference to it would be refused.
#[test]
fn reasoning_that_did_not_come_encrypted_is_not_sent_back() {
    let one = (Provider::OpenAi, Wire::Responses);
    let mut whole = responses_whole();
    whole["output"][0]["encrypted_content"] = Json::Null;
    let reply = answered(&exchange(&question(one.1), one), 200, &whole.to_string()).unwrap();
    let mut request = question(one.1);
    request.messages.push(reply.message.clone());
    for call in reply.tool_calls() {
        request.messages.push(wonder_models::Message::tool_result(call, "ok", false));
    }
    let sent = body(&exchange(&request, one));
    let kinds: Vec<&str> =
        sent["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    let expected = [
        "message",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
}

/// Some gateways send the items once, and not again with the end.
#[test]
fn items_count_as_they_were_done() {
    let one = (Provider::OpenAi, Wire::Responses);
    let mut last = responses_whole();
    last["output"] = json!([]);
    let stream = responses_stream();
    let begun = &stream[..stream.rfind("event: response.completed").unwrap()];
    let stream = format!("{begun}{}", sse(&[json!({ "type": "response.completed", "response": last })]));
    check(&streamed(&exchange(&question(one.1), one), [stream.as_bytes()]).1.unwrap(), one.1);
}

/// Claude with a budget refuses to think on after calls that were made without thinking.
#[test]
fn claude_does_not_think_on_what_another_began() {
    let thinking = |from: (Provider, Wire)| {
        let (whole, _) = fixture(from.1);
        let reply = answered(&exchange(&question(from.1), from), 200, &whole.to_string()).unwrap();
        let effort = Some(wonder_models::Effort::Low);
        let mut request =
            Request { model: "claude-sonnet-4-5".to_owned(), reasoning: effort, ..question(Wire::Anthropic) };
        request.messages.push(reply.message.clone());
        for call in reply.tool_calls() {
            request.messages.push(wonder_models::Message::tool_result(call, "ok", false));
        }
        body(&exchange(&request, (Provider::Anthropic, Wire::Anthropic)))["thinking"].is_object()
    };
    assert!(thinking((Provider::Anthropic, Wire::Anthropic)));
    assert!(!thinking((Provider::Gemini, Wire::Gemini)));
}

/// An image that a provider cannot fetch or understand is a problem before anything is sent.
#[test]
fn images_go_as_each_provider_takes_them() {
    let picture = |url: &str| {
        let image = wonder_models::Image::Url { url: url.into(), media_type: None };
        let content = vec![Part::text("What is it?"), Part::Image(image)];
        vec![wonder_models::Message { role: wonder_models::Role::User, content }]
    };
    let sent = |provider, wire, url: &str| {
        let request = Request { messages: picture(url), ..ask(wire) };
        wonder_models::encode(&request, &crate::support::target(provider, wire))
            .map(|exchange| body(&exchange))
    };
    let url = "https://h/a.png?x=1";
    let gemini = sent(Provider::Gemini, Wire::Gemini, url).unwrap();
    assert_eq!(
        gemini["contents"][0]["parts"][1]["fileData"],
        json!({ "mimeType": "image/png", "fileUri": url })
    );
    let anthropic = sent(Provider::Anthropic, Wire::Anthropic, url).unwrap();
    assert_eq!(anthropic["messages"][0]["content"][1]["source"], json!({ "type": "url", "url": url }));
    assert!(sent(Provider::Gemini, Wire::Gemini, "https://h/a").unwrap_err().message.contains("media_type"));
    assert!(sent(Provider::Ollama, Wire::Chat, url).unwrap_err().message.contains("fetches no images"));
}
