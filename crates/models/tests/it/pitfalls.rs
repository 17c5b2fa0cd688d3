//! What libraries got wrong when they were tried (ADR 0027), one test a row that has none elsewhere.

use serde_json::{Value as Json, json};
use wonder_models::{FailureKind, FinishReason, Header, Message, Provider, Request, Wire, encode};

use crate::answers::question;
use crate::support::{ALL, answered, ask, body, exchange, sse, streamed, target};

#[test]
fn base_url_and_headers_are_those_of_the_call() {
    for (provider, wire) in ALL {
        let mut target = target(provider, wire);
        target.base_url = Some("http://127.0.0.1:8081/v1".to_owned());
        target.headers = vec![Header::new("x-team", "a")];
        let call = encode(&ask(wire), &target).unwrap().call;
        assert!(call.url.starts_with("http://127.0.0.1:8081/v1/"), "{}", call.url);
        assert!(call.headers.contains(&Header::new("x-team", "a")));
    }
}

#[test]
fn a_model_name_is_sent_untouched() {
    for name in ["coder-max", "o3-high", "anthropic/claude:thinking", "a b/c?d#e%f"] {
        for (provider, wire) in ALL {
            let exchange = exchange(&Request { model: name.to_owned(), ..ask(wire) }, (provider, wire));
            if wire == Wire::Gemini {
                assert!(!exchange.call.url.contains([' ', '#']) && !exchange.call.url.contains("c?d"));
            } else {
                assert_eq!(body(&exchange)["model"], name);
            }
        }
    }
    let odd = exchange(&Request { model: "a/b c?d".to_owned(), ..ask(Wire::Gemini) }, ALL[3]);
    assert!(odd.call.url.ends_with("/models/a%2Fb%20c%3Fd:generateContent"), "{}", odd.call.url);
    let tuned = exchange(&Request { model: "tunedModels/x".to_owned(), ..ask(Wire::Gemini) }, ALL[3]);
    assert!(tuned.call.url.ends_with("/v1beta/tunedModels/x:generateContent"), "{}", tuned.call.url);
}

#[test]
fn openai_refusals_are_refusals() {
    let usage = json!({ "prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10 });
    let message = json!({ "role": "assistant", "content": null, "refusal": "I can't help with that." });
    let chat = json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage });
    let content = json!([{ "type": "refusal", "refusal": "I can't help with that." }]);
    let output = json!([{ "type": "message", "id": "m", "role": "assistant", "content": content }]);
    let responses = json!({ "status": "completed", "output": output, "usage": { "input_tokens": 8, "output_tokens": 2 } });
    let deltas =
        ["I can't ", "help with that."].map(|more| json!({ "choices": [{ "delta": { "refusal": more } }] }));
    let last = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }], "usage": usage });
    let streams = [
        (Wire::Chat, format!("{}{}data: [DONE]\n\n", sse(&deltas), sse(&[last]))),
        (Wire::Responses, sse(&[json!({ "type": "response.completed", "response": responses })])),
    ];
    let wholes = [(Wire::Chat, chat), (Wire::Responses, responses)];
    let mut failures = Vec::new();
    for (wire, whole) in wholes {
        failures.push(answered(
            &exchange(&question(wire), (Provider::OpenAi, wire)),
            200,
            &whole.to_string(),
        ));
    }
    for (wire, stream) in streams {
        let (deltas, reply) =
            streamed(&exchange(&question(wire), (Provider::OpenAi, wire)), [stream.as_bytes()]);
        assert_eq!(deltas, [], "a refusal is not shown as an answer");
        failures.push(reply);
    }
    for failure in failures {
        let failure = failure.unwrap_err();
        assert_eq!(failure.kind, FailureKind::ModelRefused);
        assert!(failure.message.contains("I can't help with that."), "{failure}");
        assert_eq!(failure.usage.unwrap().output_tokens, 2);
        let reply = failure.reply.unwrap();
        assert_eq!(
            (reply.finish_reason, reply.message),
            (FinishReason::Refusal, Message::assistant("I can't help with that."))
        );
    }
}

#[test]
fn a_filtered_response_is_not_a_long_one() {
    let reply = |reason: &str| {
        let response =
            json!({ "status": "incomplete", "incomplete_details": { "reason": reason }, "output": [] });
        let stream = sse(&[json!({ "type": "response.incomplete", "response": response })]);
        streamed(&exchange(&question(Wire::Responses), ALL[1]), [stream.as_bytes()]).1.unwrap_err().kind
    };
    assert_eq!(reply("content_filter"), FailureKind::ContentFiltered);
    assert_eq!(reply("max_output_tokens"), FailureKind::OutputTruncated);
}

#[test]
fn errors_of_tools_are_marked() {
    let call = Message::list_from_value(&crate::support::value(
        r#"[{"role":"user","content":"x"},
            {"role":"assistant","content":[{"type":"tool_call","id":"a","tool":"t","arguments":{}}]},
            {"role":"tool","content":[{"type":"tool_result","id":"a","tool":"t","content":"broken","is_error":true}]}]"#,
    ));
    let messages = call.unwrap();
    let sent: Vec<Json> = ALL
        .into_iter()
        .map(|one| body(&exchange(&Request { messages: messages.clone(), ..ask(one.1) }, one)))
        .collect();
    assert_eq!(sent[0]["messages"][2]["content"], "ERROR: broken");
    assert_eq!(sent[1]["input"][2]["output"], "ERROR: broken");
    assert_eq!(sent[2]["messages"][2]["content"][0]["is_error"], json!(true));
    assert_eq!(
        sent[3]["contents"][2]["parts"][0]["functionResponse"]["response"],
        json!({ "error": "broken" })
    );
}

/// One bad call does not lose the answer, and is not run with a part of what it says.
#[test]
fn bad_arguments_in_a_stream_are_kept_beside_good_ones() {
    let one = (Provider::Anthropic, Wire::Anthropic);
    let start = |at: u64, id: &str| json!({ "type": "content_block_start", "index": at, "content_block": { "type": "tool_use", "id": id, "name": "weather__now", "input": {} } });
    let input = |at: u64, text: &str| json!({ "type": "content_block_delta", "index": at, "delta": { "type": "input_json_delta", "partial_json": text } });
    let stream = sse(&[
        json!({ "type": "message_start", "message": { "id": "m", "model": "c", "usage": { "input_tokens": 1 } } }),
        start(0, "a"),
        input(0, "{\"city\": \"Par"),
        start(1, "b"),
        input(1, "{\"city\": \"Rome\"}"),
        start(2, "c"),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ]);
    let reply = streamed(&exchange(&question(one.1), one), [stream.as_bytes()]).1.unwrap();
    let calls: Vec<String> = reply.tool_calls().map(|call| call.to_value().to_string()).collect();
    assert!(calls[0].contains(r#""raw":"{\"city\": \"Par""#) && calls[0].contains("error"), "{}", calls[0]);
    assert_eq!(calls[1], r#"{"arguments":{"city":"Rome"},"id":"b","tool":"weather/now"}"#);
    assert_eq!(calls[2], r#"{"arguments":{},"id":"c","tool":"weather/now"}"#);
}

/// Servers that imitate OpenAI do so in their own ways.
#[test]
fn imitations_are_understood() {
    let one = (Provider::OpenAiCompatible, Wire::Chat);
    let exchange = exchange(&question(one.1), one);
    let delta = |delta: Json| json!({ "choices": [{ "delta": delta }] });
    // No numbers, the name with every piece, arguments as a map, `stop` beside calls.
    let call = |id: &str, arguments: Json| json!({ "tool_calls": [{ "id": id, "function": { "name": "weather__now", "arguments": arguments } }] });
    let stream = sse(&[
        delta(call("a", json!("{\"city\":"))),
        delta(call("a", json!("\"Paris\"}"))),
        delta(call("b", json!({ "city": "Rome" }))),
        json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
    ]) + "data: [DONE]";
    let (_, reply) = streamed(&exchange, [stream.as_bytes()]);
    let reply = reply.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
    let calls: Vec<String> =
        reply.tool_calls().map(|call| format!("{} {:?}", call.tool, call.arguments)).collect();
    assert!(calls[0].contains("Paris") && calls[1].contains("Rome") && calls.len() == 2, "{calls:?}");
    assert!(calls.iter().all(|call| call.starts_with("weather/now ")), "{calls:?}");
    // An error with status 200.
    let failure = answered(&exchange, 200, r#"{"error":{"message":"upstream","code":502}}"#).unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::HttpStatus, Some(502)));
    // Ids that are missing or come twice.
    let calls = json!([{ "id": "", "function": { "name": "x", "arguments": "{}" } }, { "id": "d", "function": { "name": "x" } }, { "id": "d", "function": { "name": "x" } }]);
    let whole = json!({ "id": "r", "choices": [{ "message": { "tool_calls": calls }, "finish_reason": "tool_calls" }] });
    let reply = answered(&exchange, 200, &whole.to_string()).unwrap();
    let ids: Vec<&str> = reply.tool_calls().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_r_0", "d", "call_r_2"]);
}

/// Reasoning that is not counted in the completion is paid all the same.
#[test]
fn all_output_is_counted() {
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40,
        "completion_tokens_details": { "reasoning_tokens": 25 } });
    let whole =
        json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": "stop" }], "usage": usage });
    let reply = answered(&exchange(&ask(Wire::Chat), ALL[0]), 200, &whole.to_string()).unwrap();
    assert_eq!(reply.usage.unwrap().output_tokens, 30);
}
