//! What an answer means: a result if its status is expected, a failure by its status if not. It is read up
//! to a limit, and no further.

use std::time::SystemTime;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::HttpSpec;
use wonder_core::limits::Limits;
use wonder_core::value::Value;

use super::request::Request;
use super::{as_map, broken_network};
use crate::context::ActionContext;
use crate::handler::{TryError, TryResult};
use crate::json;
use crate::texts::tail;

const BYTES_MAX: u64 = 8 << 20;
/// How much of an unexpected answer a failure carries.
const TAIL_BYTES: usize = 4 << 10;

pub(super) async fn read(
    context: &ActionContext<'_>,
    http: &HttpSpec,
    request: &Request,
    response: Response,
) -> TryResult {
    let (status, headers) = (response.status(), response.headers().clone());
    let expected = is_expected(&http.expect, status);
    let read = body(http, request, response).await;
    // A failure that says its status is worth more than one about its body.
    let body = if expected { read? } else { read.unwrap_or_default() };
    if !expected {
        // Only the end of it is told: what is cut must have no secrets any more.
        let failure = unexpected(request, status, &headers, &context.hide(body));
        // A server that broke may have done it before it broke.
        return Err(if status.is_server_error() {
            TryError::unknown(failure)
        } else {
            TryError::answered(failure)
        });
    }
    let json = json::value_of(&body);
    Ok(Value::map([
        ("status", Value::Int(status.as_u16().into())),
        ("headers", as_map(&headers)),
        ("body", Value::from(body)),
        ("json", json),
    ]))
}

/// Whether `expect` of an action, 2xx if empty, has this status.
pub(super) fn is_expected(expect: &[Value], status: StatusCode) -> bool {
    if expect.is_empty() {
        return status.is_success();
    }
    let code = i64::from(status.as_u16());
    expect.iter().any(|expected| match expected {
        Value::Int(number) => *number == code,
        Value::String(text) => match text.as_bytes() {
            [class, b'x' | b'X', b'x' | b'X'] => i64::from(*class) - i64::from(b'0') == code / 100,
            _ => text.trim().parse() == Ok(code),
        },
        _ => false,
    })
}

async fn body(http: &HttpSpec, request: &Request, mut response: Response) -> Result<String, TryError> {
    let of_result = Limits::default().result_bytes_max;
    let written = http.max_bytes.unwrap_or(BYTES_MAX);
    // No larger answer could be a result, so none is read.
    let bytes_max = written.min(of_result);
    let limit = if written > of_result { "result_bytes_max" } else { "max_bytes" };
    let mut bytes = Vec::new();
    loop {
        let chunk = response
            .chunk()
            .await
            .map_err(|error| TryError::unknown(broken_network(request, "read", &error)))?;
        let Some(chunk) = chunk else { break };
        if (bytes.len() + chunk.len()) as u64 > bytes_max {
            return Err(TryError::unknown(too_large(request, limit, bytes_max)));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn too_large(request: &Request, limit: &str, bytes_max: u64) -> Failure {
    let message = format!("{}: the answer has more than {bytes_max} bytes (`{limit}`)", request.shown());
    let max = Value::Int(i64::try_from(bytes_max).unwrap_or(i64::MAX));
    Failure::new(ErrorKind::LimitExceeded, message)
        .with_details(Value::map([("limit", Value::str(limit)), ("max", max)]))
}

fn unexpected(request: &Request, status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let kind =
        if status == StatusCode::TOO_MANY_REQUESTS { ErrorKind::RateLimited } else { ErrorKind::HttpStatus };
    let details = [("headers", as_map(headers)), ("body", Value::str(tail(body, TAIL_BYTES)))];
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let message = format!("{} answered {status}", request.shown());
    let failure = Failure::new(kind, message).with_details(Value::map(details)).with_status(status.as_u16());
    match asked.and_then(|text| retry_after_ms(text, SystemTime::now())) {
        Some(ms) => failure.with_retry_after_ms(ms),
        None => failure,
    }
}

/// Seconds, or a date that has not come yet.
fn retry_after_ms(text: &str, now: SystemTime) -> Option<u64> {
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(seconds.saturating_mul(1_000));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(u64::try_from(i128::from(at.as_millisecond()) - i128::try_from(now.as_millis()).ok()?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
        for (text, ms) in [
            ("120", Some(120_000)),
            ("0", Some(0)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
        ] {
            assert_eq!(retry_after_ms(text, now), ms, "{text}");
        }
    }

    #[test]
    fn statuses_are_expected_by_number_and_by_class() {
        let fits = |expect: &[Value], status: u16| is_expected(expect, StatusCode::from_u16(status).unwrap());
        assert!(fits(&[], 204) && !fits(&[], 302));
        assert!(fits(&[Value::Int(404), Value::str("2xx")], 404));
        assert!(fits(&[Value::Int(404), Value::str("2XX")], 201));
        assert!(!fits(&[Value::str("4xx")], 200));
        assert!(fits(&[Value::str("418")], 418));
    }
}
