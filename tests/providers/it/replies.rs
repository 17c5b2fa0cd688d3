//! Replies as the providers document them, for what aimock cannot say or says otherwise than they do.

use serde_json::{Value as Json, json};
use wonder_models::Wire;

use crate::raw::Raw;

/// The answer to a case in a format; None: aimock's will do.
pub(crate) fn reply(case: &str, wire: Wire) -> Option<Raw> {
    Some(match case {
        "plain" => Raw::json(200, &whole(wire)).with_header("x-request-id", "req_raw"),
        "tool" | "parallel_tools" | "wrong_arguments" | "unknown_tool" if wire == Wire::Gemini => {
            gemini_calls(case)
        }
        "unreadable_arguments" if wire == Wire::Gemini => {
            Raw::stream(gemini_end("MALFORMED_FUNCTION_CALL", None))
        }
        // aimock mends what its model is told to break here.
        "unreadable_arguments" if wire == Wire::Anthropic => anthropic_unreadable(),
        "refused" => refused(wire)?,
        "filtered_answer" => filtered_answer(wire)?,
        "filtered_question" => filtered_question(wire),
        "truncated" if wire == Wire::Responses => incomplete("max_output_tokens", "Half of"),
        "truncated_document" if wire == Wire::Responses => incomplete("max_output_tokens", "{\"score\":"),
        "context_too_long" => too_long(wire),
        "no_key" if wire == Wire::Gemini => gemini_no_key(),
        "no_money" => no_money(wire),
        "rate_limited" if wire == Wire::Gemini => gemini_rate(),
        "overloaded" if wire == Wire::Gemini => {
            Raw::json(503, &gemini_error(503, "UNAVAILABLE", "The model is overloaded."))
        }
        "error_in_stream" => Raw::stream(format!("{}{}", begun(wire), error_event(wire))),
        "malformed_stream" => Raw::stream(format!("{}data: {{\"half\n\n", begun(wire))),
        "unknown_end" => unknown_end(wire),
        "timeout" | "stopped" => Raw::stream(begun(wire)).hanging(),
        _ => return None,
    })
}

/// Events without a name.
fn data(events: &[Json]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Events that are named as their `type` is.
fn named(events: &[Json]) -> String {
    let name = |event: &Json| event["type"].as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", name(event))).collect()
}

/// An unstreamed reply, most of its input out of a cache.
fn whole(wire: Wire) -> Json {
    match wire {
        Wire::Chat => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null,
                "message": {"role": "assistant", "content": "Fine.", "refusal": null, "annotations": []}}],
            "usage": {"prompt_tokens": 120, "completion_tokens": 5, "total_tokens": 125,
                "prompt_tokens_details": {"cached_tokens": 100, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0}},
        }),
        Wire::Responses => json!({
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
            "error": null, "incomplete_details": null, "parallel_tool_calls": true,
            "output": [message("completed", &json!({"type": "output_text", "text": "Fine.", "annotations": []}))],
            "usage": {"input_tokens": 120, "input_tokens_details": {"cached_tokens": 100},
                "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 125},
        }),
        Wire::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "Fine."}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 20, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0,
                "output_tokens": 5},
        }),
        Wire::Gemini => json!({
            "candidates": [{"index": 0, "finishReason": "STOP",
                "content": {"role": "model", "parts": [{"text": "Fine."}]}}],
            "usageMetadata": {"promptTokenCount": 120, "cachedContentTokenCount": 100,
                "candidatesTokenCount": 5, "totalTokenCount": 125},
            "modelVersion": "m", "responseId": "r1",
        }),
    }
}

fn message(status: &str, content: &Json) -> Json {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": [content]})
}

/// The beginning of a stream, with some text in it.
fn begun(wire: Wire) -> String {
    match wire {
        Wire::Chat => data(&[
            chat_chunk(&json!({"role": "assistant", "content": ""}), &Json::Null),
            chat_chunk(&json!({"content": "Half of"}), &Json::Null),
        ]),
        Wire::Responses => named(&[
            json!({"type": "response.created", "sequence_number": 0,
                "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
            json!({"type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1",
                "output_index": 0, "content_index": 0, "delta": "Half of"}),
        ]),
        Wire::Anthropic => named(&[
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
                "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 3, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half of"}}),
        ]),
        Wire::Gemini => data(&[json!({
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Half of"}]}}],
            "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}, "modelVersion": "m",
        })]),
    }
}

fn chat_chunk(delta: &Json, finish: &Json) -> Json {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    })
}

fn gemini_end(reason: &str, parts: Option<Json>) -> String {
    let mut candidate = json!({"index": 0, "finishReason": reason});
    if let Some(parts) = parts {
        candidate["content"] = json!({"role": "model", "parts": parts});
    }
    data(&[json!({"candidates": [candidate], "modelVersion": "m", "responseId": "r1",
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}})])
}

/// Gemini ends with `STOP` where it calls tools; aimock has a word for it that does not exist.
fn gemini_calls(case: &str) -> Raw {
    let call = |name: &str, args: Json| json!({"functionCall": {"name": name, "args": args}, "thoughtSignature": "c2ln"});
    let parts = match case {
        "parallel_tools" => json!([
            call("weather", json!({"city": "Paris"})), {"functionCall": {"name": "weather", "args": {"city": "Rome"}}},
        ]),
        "wrong_arguments" => json!([call("weather", json!({"town": "Paris"}))]),
        "unknown_tool" => json!([call("wether", json!({"city": "Paris"}))]),
        _ => json!([call("weather", json!({"city": "Paris"}))]),
    };
    Raw::stream(gemini_end("STOP", Some(parts)))
}

fn anthropic_unreadable() -> Raw {
    let piece = |json: &str| {
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": json}})
    };
    Raw::stream(named(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}}),
        piece(""),
        piece("{\"city\": "),
        piece("Par"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]))
}

fn refused(wire: Wire) -> Option<Raw> {
    let words = "I'm sorry, I can't help with that.";
    Some(match wire {
        Wire::Chat => {
            let events = data(&[
                chat_chunk(&json!({"role": "assistant", "content": null, "refusal": ""}), &Json::Null),
                chat_chunk(&json!({"refusal": words}), &Json::Null),
                chat_chunk(&json!({}), &json!("stop")),
            ]);
            Raw::stream(format!("{events}data: [DONE]\n\n"))
        }
        Wire::Responses => {
            let said = message("completed", &json!({"type": "refusal", "refusal": words}));
            Raw::stream(named(&[json!({"type": "response.completed", "response": {
                "id": "resp_1", "status": "completed", "model": "m", "output": [said],
                "usage": {"input_tokens": 3, "output_tokens": 9, "total_tokens": 12}}})]))
        }
        Wire::Anthropic | Wire::Gemini => return None,
    })
}

fn incomplete(reason: &str, text: &str) -> Raw {
    let said = message("incomplete", &json!({"type": "output_text", "text": text, "annotations": []}));
    Raw::stream(named(&[json!({"type": "response.incomplete", "response": {
        "id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": reason}, "model": "m",
        "output": [said], "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}})]))
}

fn filtered_answer(wire: Wire) -> Option<Raw> {
    match wire {
        Wire::Responses => Some(incomplete("content_filter", "Half of")),
        // It has no reason to stop for it: it breaks the stream off with an error.
        Wire::Anthropic => {
            let told = json!({"type": "error", "error": {"details": null, "type": "invalid_request_error",
                "message": "Output blocked by content filtering policy"}, "request_id": "req_1"});
            Some(Raw::stream(format!("{}{}", begun(wire), named(&[told]))))
        }
        Wire::Chat | Wire::Gemini => None,
    }
}

fn filtered_question(wire: Wire) -> Raw {
    match wire {
        Wire::Chat => Raw::json(
            400,
            &json!({"error": {"type": null, "param": "prompt", "code": "content_filter",
            "status": 400, "message": "The response was filtered due to the prompt triggering the policy.",
            "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
        ),
        Wire::Responses => Raw::json(
            400,
            &json!({"error": {"type": "invalid_request_error", "param": null,
            "code": "invalid_prompt", "message": "Your prompt was flagged as potentially violating our usage policy."}}),
        ),
        Wire::Anthropic => Raw::json(
            400,
            &json!({"type": "error", "request_id": "req_1", "error": {
            "type": "invalid_request_error", "message": "Output blocked by content filtering policy"}}),
        ),
        Wire::Gemini => Raw::stream(data(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}, "modelVersion": "m"})])),
    }
}

fn too_long(wire: Wire) -> Raw {
    match wire {
        Wire::Chat | Wire::Responses => Raw::json(
            400,
            &json!({"error": {"type": "invalid_request_error",
            "param": "messages", "code": "context_length_exceeded",
            "message": "This model's maximum context length is 128000 tokens."}}),
        ),
        Wire::Anthropic => Raw::json(
            400,
            &json!({"type": "error", "request_id": "req_1", "error": {
            "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        ),
        Wire::Gemini => Raw::json(
            400,
            &gemini_error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
        ),
    }
}

fn gemini_error(code: u16, status: &str, message: &str) -> Json {
    json!({"error": {"code": code, "message": message, "status": status}})
}

/// A key that Gemini does not know is a bad request.
fn gemini_no_key() -> Raw {
    let mut body = gemini_error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.");
    body["error"]["details"] = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]);
    Raw::json(400, &body)
}

/// It says in the body when to come back.
fn gemini_rate() -> Raw {
    let mut body = gemini_error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.");
    body["error"]["details"] =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]);
    Raw::json(429, &body)
}

fn no_money(wire: Wire) -> Raw {
    match wire {
        Wire::Chat | Wire::Responses => Raw::json(
            429,
            &json!({"error": {"type": "insufficient_quota",
            "param": null, "code": "insufficient_quota", "message": "You exceeded your current quota."}}),
        ),
        Wire::Anthropic => Raw::json(
            400,
            &json!({"type": "error", "request_id": "req_1", "error": {
            "type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}}),
        ),
        Wire::Gemini => Raw::json(429, &gemini_error(429, "RESOURCE_EXHAUSTED", "Quota exceeded.")),
    }
}

fn error_event(wire: Wire) -> String {
    match wire {
        Wire::Chat => {
            data(&[json!({"error": {"message": "The server is overloaded.", "type": "server_error",
            "param": null, "code": "server_is_overloaded"}})])
        }
        Wire::Responses => named(&[json!({"type": "response.failed", "response": {"id": "resp_1",
            "status": "failed", "output": [], "usage": null,
            "error": {"code": "server_is_overloaded", "message": "The server is overloaded."}}})]),
        Wire::Anthropic => named(&[json!({"type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"}})]),
        Wire::Gemini => data(&[gemini_error(503, "UNAVAILABLE", "The model is overloaded.")]),
    }
}

fn unknown_end(wire: Wire) -> Raw {
    match wire {
        Wire::Chat => {
            let end = data(&[chat_chunk(&json!({}), &json!("bored"))]);
            Raw::stream(format!("{}{end}data: [DONE]\n\n", begun(wire)))
        }
        Wire::Responses => incomplete("bored", "Half of"),
        Wire::Anthropic => {
            let end = named(&[
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "bored", "stop_sequence": null},
                    "usage": {"output_tokens": 2}}),
                json!({"type": "message_stop"}),
            ]);
            Raw::stream(format!("{}{end}", begun(wire)))
        }
        Wire::Gemini => Raw::stream(gemini_end("BORED", Some(json!([{"text": "Half of"}])))),
    }
}
