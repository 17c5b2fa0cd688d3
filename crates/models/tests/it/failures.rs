//! What a provider's refusal means, with what is known besides.

use serde_json::{Value as Json, json};
use wonder_lang::{ErrorKind, Time};
use wonder_models::{FailureKind, FinishReason, KeyChoice, Provider, Wire, encode};

use crate::answers::question;
use crate::support::{ALL, KEY, answered, answered_with, ask, exchange, target};

fn one(wire: Wire) -> (Provider, Wire) {
    ALL.into_iter().find(|one| one.1 == wire).unwrap()
}

#[test]
fn statuses_and_codes_have_a_meaning() {
    use FailureKind::*;
    let openai = |code: &str, message: &str| json!({ "error": { "message": message, "type": "t", "param": null, "code": code } });
    let anthropic = |kind: &str, message: &str| json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_b" });
    let gemini = |status: &str, message: &str| json!([{ "error": { "code": 1, "message": message, "status": status } }]);
    let cases: Vec<(Wire, u16, Json, FailureKind)> = vec![
        (Wire::Chat, 401, openai("invalid_api_key", "Incorrect API key"), Auth),
        (Wire::Chat, 429, openai("rate_limit_exceeded", "slow down"), RateLimited),
        (Wire::Responses, 429, openai("insufficient_quota", "You exceeded your current quota"), Auth),
        (Wire::Chat, 400, openai("context_length_exceeded", "too long"), ContextTooLong),
        (
            Wire::Chat,
            400,
            json!({ "message": "This model's maximum context length is 8 tokens" }),
            ContextTooLong,
        ),
        (Wire::Chat, 400, openai("content_filter", "filtered"), ContentFiltered),
        (Wire::Responses, 400, openai("invalid_prompt", "flagged"), ContentFiltered),
        (Wire::Chat, 503, openai("", "The engine is overloaded"), Overloaded),
        (Wire::Chat, 500, openai("", "oops"), HttpStatus),
        (Wire::Chat, 404, json!({ "error": "model 'x' not found" }), HttpStatus),
        (Wire::Chat, 422, json!({ "detail": "unprocessable" }), HttpStatus),
        (Wire::Chat, 502, json!("Bad Gateway"), HttpStatus),
        (Wire::Anthropic, 401, anthropic("authentication_error", "invalid x-api-key"), Auth),
        (Wire::Anthropic, 402, anthropic("billing_error", "pay"), Auth),
        (Wire::Anthropic, 400, anthropic("invalid_request_error", "Your credit balance is too low"), Auth),
        (
            Wire::Anthropic,
            400,
            anthropic("invalid_request_error", "Output blocked by content filtering policy"),
            ContentFiltered,
        ),
        (
            Wire::Anthropic,
            400,
            anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            ContextTooLong,
        ),
        (Wire::Anthropic, 413, anthropic("request_too_large", "too large"), ContextTooLong),
        (Wire::Anthropic, 429, anthropic("rate_limit_error", "slow down"), RateLimited),
        (Wire::Anthropic, 529, anthropic("overloaded_error", "Overloaded"), Overloaded),
        (Wire::Anthropic, 400, anthropic("invalid_request_error", "messages: wrong"), HttpStatus),
        (Wire::Gemini, 429, gemini("RESOURCE_EXHAUSTED", "quota"), RateLimited),
        (Wire::Gemini, 503, gemini("UNAVAILABLE", "overloaded"), Overloaded),
        (Wire::Gemini, 403, gemini("PERMISSION_DENIED", "no"), Auth),
        (
            Wire::Gemini,
            400,
            gemini("INVALID_ARGUMENT", "The input token count (9) exceeds the maximum"),
            ContextTooLong,
        ),
        (
            Wire::Gemini,
            400,
            json!({ "error": { "code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT",
                "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID" }] } }),
            Auth,
        ),
    ];
    for (wire, status, body, kind) in cases {
        let failure = answered(&exchange(&question(wire), one(wire)), status, &body.to_string()).unwrap_err();
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{body}");
        let provider = one(wire).0;
        assert!(failure.message.starts_with(&format!("{provider} answered {status}: ")), "{failure}");
    }
}

#[test]
fn a_provider_says_how_long_to_wait() {
    let wait = |headers: &[(&str, &str)], body: &Json, wire| {
        let exchange = exchange(&question(wire), one(wire));
        answered_with(&exchange, 429, headers, &body.to_string()).unwrap_err().retry_after_ms
    };
    let none = json!({});
    for (headers, expected) in [
        (vec![("Retry-After", "2")], Some(2_000)),
        (vec![("retry-after", "0.25")], Some(250)),
        (vec![("retry-after-ms", "1500"), ("retry-after", "2")], Some(1_500)),
        (vec![("retry-after", "Thu, 01 Jan 1970 00:00:30 GMT")], Some(30_000)),
        (vec![("retry-after", "soon")], None),
        (vec![("retry-after", "-1")], None),
        (
            vec![("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1m12s")],
            Some(72_000),
        ),
        (
            vec![
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "120ms"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            Some(360_000),
        ),
        (vec![("x-ratelimit-remaining-requests", "5"), ("x-ratelimit-reset-requests", "1h")], None),
        (vec![], None),
    ] {
        assert_eq!(wait(&headers, &none, Wire::Chat), expected, "{headers:?}");
    }
    let info = json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s" });
    let body = json!({ "error": { "code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [{ "@type": "x" }, info] } });
    assert_eq!(wait(&[], &body, Wire::Gemini), Some(34_500));
}

#[test]
fn ids_of_requests_are_known_on_success_and_on_failure() {
    let good =
        json!({ "id": "msg_9", "content": [{ "type": "text", "text": "x" }], "stop_reason": "end_turn" })
            .to_string();
    let bad =
        json!({ "type": "error", "error": { "type": "api_error", "message": "m" }, "request_id": "req_b" })
            .to_string();
    let exchange = exchange(&ask(Wire::Anthropic), one(Wire::Anthropic));
    let of_header = [("Request-Id", "req_h")];
    assert_eq!(
        answered_with(&exchange, 200, &of_header, &good).unwrap().request_id.as_deref(),
        Some("req_h")
    );
    assert_eq!(answered(&exchange, 200, &good).unwrap().request_id.as_deref(), Some("msg_9"));
    assert_eq!(
        answered_with(&exchange, 500, &of_header, &bad).unwrap_err().request_id.as_deref(),
        Some("req_h")
    );
    assert_eq!(answered(&exchange, 500, &bad).unwrap_err().request_id.as_deref(), Some("req_b"));
}

/// An answer of each format that ends in this way, with something said and paid.
fn ended(wire: Wire, reason: Json) -> Json {
    match wire {
        Wire::Chat => json!({ "choices": [{ "message": { "content": "Half" }, "finish_reason": reason }],
            "usage": { "prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10 } }),
        Wire::Responses => {
            let message = json!({ "type": "message", "id": "m", "content": [{ "type": "output_text", "text": "Half" }] });
            let (status, details) = match reason.as_str() {
                Some("completed" | "cancelled" | "queued" | "in_progress" | "new") | None => {
                    (reason, Json::Null)
                }
                Some(_) => (json!("incomplete"), json!({ "reason": reason })),
            };
            json!({ "status": status, "incomplete_details": details, "output": [message],
                "usage": { "input_tokens": 8, "output_tokens": 2 } })
        }
        Wire::Anthropic => json!({ "content": [{ "type": "text", "text": "Half" }], "stop_reason": reason,
            "usage": { "input_tokens": 8, "output_tokens": 2 } }),
        Wire::Gemini => {
            json!({ "candidates": [{ "content": { "parts": [{ "text": "Half" }] }, "finishReason": reason }],
            "usageMetadata": { "promptTokenCount": 8, "candidatesTokenCount": 2 } })
        }
    }
}

/// Ends that are none, and what they mean.
const BAD_ENDS: [(Wire, &[(&str, FailureKind)]); 4] = [
    (
        Wire::Chat,
        &[
            ("content_filter", FailureKind::ContentFiltered),
            ("length", FailureKind::OutputTruncated),
            ("function_call", FailureKind::HttpStatus),
            ("tool_calls", FailureKind::ContractViolation),
            ("new", FailureKind::HttpStatus),
        ],
    ),
    (
        Wire::Responses,
        &[
            ("max_output_tokens", FailureKind::OutputTruncated),
            ("content_filter", FailureKind::ContentFiltered),
            ("steered", FailureKind::HttpStatus),
            ("cancelled", FailureKind::HttpStatus),
            ("queued", FailureKind::HttpStatus),
            ("in_progress", FailureKind::HttpStatus),
            ("new", FailureKind::HttpStatus),
        ],
    ),
    (
        Wire::Anthropic,
        &[
            ("max_tokens", FailureKind::OutputTruncated),
            ("refusal", FailureKind::ModelRefused),
            ("pause_turn", FailureKind::HttpStatus),
            ("model_context_window_exceeded", FailureKind::ContextTooLong),
            ("tool_use", FailureKind::ContractViolation),
            ("new", FailureKind::HttpStatus),
        ],
    ),
    (
        Wire::Gemini,
        &[
            ("MAX_TOKENS", FailureKind::OutputTruncated),
            ("SAFETY", FailureKind::ContentFiltered),
            ("RECITATION", FailureKind::ContentFiltered),
            ("PROHIBITED_CONTENT", FailureKind::ContentFiltered),
            ("SPII", FailureKind::ContentFiltered),
            ("BLOCKLIST", FailureKind::ContentFiltered),
            ("LANGUAGE", FailureKind::ContentFiltered),
            ("MALFORMED_FUNCTION_CALL", FailureKind::ContractViolation),
            ("OTHER", FailureKind::HttpStatus),
            ("FINISH_REASON_UNSPECIFIED", FailureKind::HttpStatus),
            ("MISSING_THOUGHT_SIGNATURE", FailureKind::HttpStatus),
            ("NEW", FailureKind::HttpStatus),
        ],
    ),
];

#[test]
fn only_known_ends_are_good() {
    for (wire, ends) in BAD_ENDS {
        let exchange = exchange(&question(wire), one(wire));
        for (reason, kind) in ends {
            let failure = answered(&exchange, 200, &ended(wire, json!(reason)).to_string()).unwrap_err();
            assert_eq!(failure.kind, *kind, "{wire} {reason}: {failure}");
            // It was paid for, and what was said is there.
            let paid = failure.usage.map(|usage| (usage.input_tokens, usage.output_tokens));
            assert_eq!(paid, Some((8, 2)), "{wire} {reason}");
            assert_eq!(failure.reply.unwrap().text, "Half");
        }
        let failure = answered(&exchange, 200, &ended(wire, Json::Null).to_string()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::HttpStatus, "{wire}");
    }
    let good = [
        (Wire::Chat, "stop"),
        (Wire::Responses, "completed"),
        (Wire::Anthropic, "stop_sequence"),
        (Wire::Gemini, "STOP"),
    ];
    for (wire, reason) in good {
        let answer = ended(wire, json!(reason)).to_string();
        let reply = answered(&exchange(&question(wire), one(wire)), 200, &answer).unwrap();
        assert_eq!(reply.finish_reason, FinishReason::Stop);
    }
}

#[test]
fn gemini_blocks_a_question_without_an_answer() {
    let exchange = exchange(&question(Wire::Gemini), one(Wire::Gemini));
    let blocked =
        json!({ "promptFeedback": { "blockReason": "SAFETY" }, "usageMetadata": { "promptTokenCount": 4 } });
    let failure = answered(&exchange, 200, &blocked.to_string()).unwrap_err();
    assert_eq!((failure.kind, failure.usage.unwrap().input_tokens), (FailureKind::ContentFiltered, 4));
    let (_, streamed) = crate::support::streamed(&exchange, [format!("data: {blocked}\n\n").as_bytes()]);
    assert_eq!(streamed.unwrap_err().kind, FailureKind::ContentFiltered);
    assert_eq!(answered(&exchange, 200, "{}").unwrap_err().kind, FailureKind::HttpStatus);
    assert_eq!(answered(&exchange, 200, r#"{"candidates":[]}"#).unwrap_err().kind, FailureKind::HttpStatus);
}

#[test]
fn a_failure_says_nothing_that_is_secret_and_not_too_much() {
    let wire = Wire::Chat;
    let body = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}. {}", "x".repeat(10_000)) } });
    let failure = answered(&exchange(&question(wire), one(wire)), 401, &body.to_string()).unwrap_err();
    assert!(failure.message.contains("provided: [key].") && failure.message.len() < 2_200, "{failure}");
    assert!(!format!("{failure:?}").contains(KEY));
    // Half a key at the cut is one too.
    for before in 1_900..2_100 {
        let body = json!({ "error": { "message": format!("{}{KEY}", "x".repeat(before)) } });
        let failure = answered(&exchange(&question(wire), one(wire)), 401, &body.to_string()).unwrap_err();
        assert!(!failure.message.contains(&KEY[..5]), "{failure}");
    }
    let failure = failure.to_failure();
    assert_eq!((failure.kind, failure.status), (ErrorKind::Auth, Some(401)));
}

#[test]
fn a_withheld_key_is_named_when_it_was_missing() {
    let mut target = target(Provider::OpenAi, Wire::Chat);
    target.base_url = Some("https://gateway.example/v1".to_owned());
    target.key = KeyChoice::Withheld { variable: "OPENAI_API_KEY" };
    let exchange = encode(&ask(Wire::Chat), &target).unwrap();
    let failure = answered(&exchange, 401, "{}").unwrap_err();
    assert!(failure.message.contains("OPENAI_API_KEY was not sent"), "{failure}");
}

/// What workers try again by themselves is what the world broke, and a wait is obeyed.
#[test]
fn failures_are_tried_again_as_their_kind_deserves() {
    let failure = |kind| wonder_models::CallFailure::new(kind, "m").to_failure();
    for kind in FailureKind::ALL {
        let again = matches!(kind, FailureKind::RateLimited | FailureKind::Overloaded | FailureKind::Network);
        assert_eq!(failure(kind).is_infrastructural(), again, "{kind}");
    }
    let exchange = exchange(&question(Wire::Anthropic), one(Wire::Anthropic));
    let busy = answered_with(&exchange, 529, &[("retry-after", "3")], "{}").unwrap_err().to_failure();
    assert!(busy.is_infrastructural() && busy.retry_after_ms() == Some(3_000));
    let mut decoder = exchange.decoder(200, [("content-type", "application/json")], 100);
    decoder.push(b"{");
    assert!(decoder.finish(Time(0)).unwrap_err().to_failure().is_infrastructural());
}
