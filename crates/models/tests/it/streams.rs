//! Streams, however they are split, whatever stands between, and wherever they break.

use serde_json::json;
use wonder_lang::Time;
use wonder_models::{FailureKind, Provider, Wire};

use crate::answers::{fixture, question};
use crate::support::{ALL, BYTES_MAX, exchange, sse, streamed};

#[test]
fn a_split_anywhere_changes_nothing() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let (_, stream) = fixture(one.1);
        let bytes = stream.as_bytes();
        let (deltas, whole) = streamed(&exchange, [bytes]);
        let whole = whole.unwrap();
        for at in 0..=bytes.len() {
            let (split, reply) = streamed(&exchange, [&bytes[..at], &bytes[at..]]);
            assert_eq!(reply.as_ref(), Ok(&whole), "{} at {at}", one.1);
            assert_eq!(split, deltas, "{} at {at}", one.1);
        }
        let (single, reply) = streamed(&exchange, bytes.chunks(1));
        assert_eq!((single, reply), (deltas, Ok(whole)));
    }
}

#[test]
fn line_ends_do_not_matter() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let (_, stream) = fixture(one.1);
        let plain = stream.replace("\r\n", "\n");
        let (_, expected) = streamed(&exchange, [plain.as_bytes()]);
        for end in ["\r\n", "\r"] {
            let ended = format!("\u{feff}: hello{end}{end}retry: 5{end}{}", plain.replace('\n', end));
            assert_eq!(streamed(&exchange, ended.as_bytes().chunks(3)).1, expected, "{} {end:?}", one.1);
        }
    }
}

#[test]
fn data_over_several_lines_is_one_event() {
    let one = (Provider::OpenAiCompatible, Wire::Chat);
    let lines = [
        r#"data: {"choices":[{"delta":{"content":"a"},"#,
        r#"data:"finish_reason":"stop"}]}"#,
        "",
        "data: [DONE]",
        "",
        "",
    ];
    for end in ["\n", "\r\n", "\r"] {
        let stream = lines.join(end);
        for size in [1, 2, stream.len()] {
            let (_, reply) = streamed(&exchange(&question(one.1), one), stream.as_bytes().chunks(size));
            assert_eq!(reply.unwrap().text, "a", "{end:?} {size}");
        }
    }
}

/// Every place at which a connection can break, up to the end mark: told, never a normal end.
#[test]
fn a_stream_that_breaks_off_is_told() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let (_, stream) = fixture(one.1);
        let mark = match one.1 {
            Wire::Chat => "[DONE]",
            Wire::Responses => {
                "data: {\"response\":{\"error\":null,\"id\":\"resp_1\",\"incomplete_details\":null,\"model\":\"gpt-5.2-2025-12-11\",\"object\":\"response\",\"output\":[{"
            }
            Wire::Anthropic => "data: {\"type\":\"message_stop\"}",
            Wire::Gemini => "\"finishReason\"",
        };
        let end = stream.rfind(mark).unwrap();
        for at in (0..end).filter(|at| stream.is_char_boundary(*at)) {
            let failure = streamed(&exchange, [&stream.as_bytes()[..at]]).1.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Network, "{} at {at}: {failure}", one.1);
            assert!(failure.message.contains("broke off"), "{failure}");
        }
        // What was told to be paid until then is known.
        let failure = streamed(&exchange, [&stream.as_bytes()[..end]]).1.unwrap_err();
        assert_eq!(failure.usage.is_some(), one.1 != Wire::Responses, "{}", one.1);
    }
}

#[test]
fn the_end_need_not_be_waited_for() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let (_, stream) = fixture(one.1);
        let mut decoder = exchange.decoder(200, [("content-type", "text/event-stream")], BYTES_MAX);
        assert!(!decoder.is_complete());
        decoder.push(stream.as_bytes());
        // Gemini has no mark: what it cost may come later.
        assert_eq!(decoder.is_complete(), one.1 != Wire::Gemini);
    }
}

#[test]
fn errors_within_a_stream_are_failures() {
    let cases = [
        (Wire::Chat, json!({ "error": { "message": "busy", "code": 503 } }), FailureKind::Overloaded, 503),
        (
            Wire::Chat,
            json!({ "error": { "message": "no", "type": "server_error" } }),
            FailureKind::HttpStatus,
            500,
        ),
        (
            Wire::Responses,
            json!({ "type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null }),
            FailureKind::RateLimited,
            429,
        ),
        (
            Wire::Responses,
            json!({ "type": "response.failed", "response": { "id": "r", "status": "failed", "output": [],
                "error": { "code": "server_error", "message": "sorry" }, "usage": null } }),
            FailureKind::HttpStatus,
            500,
        ),
        (
            Wire::Anthropic,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            FailureKind::Overloaded,
            529,
        ),
        (
            Wire::Anthropic,
            json!({ "type": "error", "error": { "type": "api_error", "message": "Internal" } }),
            FailureKind::HttpStatus,
            500,
        ),
        (
            Wire::Gemini,
            json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "overloaded" } }),
            FailureKind::Overloaded,
            503,
        ),
    ];
    for (wire, error, kind, status) in cases {
        let one = ALL.into_iter().find(|one| one.1 == wire).unwrap();
        let exchange = exchange(&question(wire), one);
        let (_, stream) = fixture(wire);
        // In the middle of what would have been a good answer.
        let middle = stream[..stream.len() / 2]
            .rfind("\n\n")
            .or(stream[..stream.len() / 2].rfind("\r\n\r\n"))
            .unwrap();
        let broken =
            format!("{}\n\n{}{}", &stream[..middle], sse(std::slice::from_ref(&error)), &stream[middle..]);
        let failure = streamed(&exchange, [broken.as_bytes()]).1.unwrap_err();
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{error}");
        assert_eq!(failure.request_id.as_deref(), Some("req_7"));
    }
}

#[test]
fn what_is_no_json_is_no_answer() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let failure = streamed(&exchange, [b"data: <html>\n\n".as_slice()]).1.unwrap_err();
        assert_eq!(failure.kind, FailureKind::HttpStatus);
        let failure = crate::support::answered(&exchange, 200, "<html>").unwrap_err();
        assert_eq!((failure.kind, failure.status), (FailureKind::HttpStatus, Some(200)));
        let failure = crate::support::answered(&exchange, 200, "{\"a\":").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Network);
    }
}

/// A server that was asked for a stream may answer without, and say or not say so.
#[test]
fn an_answer_is_read_as_what_it_is() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        let (whole, stream) = fixture(one.1);
        let (whole, stream) = (format!(" \n{whole}"), format!("\n{stream}"));
        for text in [&whole, &stream] {
            let mut decoder = exchange.decoder(200, [], BYTES_MAX);
            for byte in text.as_bytes().chunks(1) {
                decoder.push(byte);
            }
            assert_eq!(decoder.finish(Time(0)).unwrap().text, "Einen Moment: ☀");
        }
        assert!(crate::support::answered(&exchange, 200, &whole).is_ok());
    }
}

#[test]
fn an_answer_without_end_is_cut_by_us() {
    for one in ALL {
        let exchange = exchange(&question(one.1), one);
        for headers in [[("content-type", "text/event-stream")], [("content-type", "application/json")]] {
            let mut decoder = exchange.decoder(200, headers, 10_000);
            for _ in 0..100 {
                decoder.push(&[b'x'; 1_000]);
            }
            assert!(decoder.is_complete());
            let failure = decoder.finish(Time(0)).unwrap_err();
            assert_eq!(failure.kind, FailureKind::OutputTruncated);
            assert!(failure.message.contains("more than 10000 bytes"), "{failure}");
        }
    }
}
