//! What a provider's own account of an error means: by its status, its code, and where those say too little, by
//! its words.

use serde_json::Value as Json;
use wonder_lang::time::parse_duration_ms;

use crate::decode::Reading;
use crate::failure::{CallFailure, FailureKind, bounded};
use crate::provider::KeyChoice;

/// An answer that is not a success.
pub(crate) fn failure(reading: &Reading, status: u16, body: &[u8]) -> CallFailure {
    match serde_json::from_slice::<Json>(body) {
        Ok(Json::Array(list)) if !list.is_empty() => failure_of(reading, Some(status), &list[0]),
        Ok(json @ (Json::Object(_) | Json::String(_))) => failure_of(reading, Some(status), &json),
        _ => {
            let text = String::from_utf8_lossy(body);
            failure_of(reading, Some(status), &Json::String(text.trim().to_owned()))
        }
    }
}

/// An error as JSON. Without a status, it was told within a stream that had begun well.
pub(crate) fn failure_of(reading: &Reading, status: Option<u16>, json: &Json) -> CallFailure {
    let error = match json.get("error") {
        Some(error) if !error.is_null() => error,
        _ => json,
    };
    let words = Words {
        message: message(error).unwrap_or_default(),
        code: word(error, &["code", "status"]),
        kind: word(error, &["type"]),
    };
    let status = status.unwrap_or_else(|| words.status(error));
    let kind = words.meaning(status, error);
    let told = if words.message.is_empty() {
        words.name().to_owned()
    } else {
        bounded(&reading.without_key(words.message))
    };
    let mut sentence = format!("{} answered {status}: {told}", reading.provider);
    if let (FailureKind::Auth, KeyChoice::Withheld { variable }) = (kind, &reading.key) {
        sentence = format!(
            "{sentence} ({variable} was not sent, because it is not for this base URL; give the profile an `api_key`)"
        );
    }
    let mut failure = CallFailure::new(kind, sentence).with_status(status);
    failure.retry_after_ms = retry_info_ms(error);
    failure.request_id = json.get("request_id").and_then(Json::as_str).map(Into::into);
    failure
}

/// What a provider calls an error.
struct Words<'j> {
    message: &'j str,
    code: &'j str,
    kind: &'j str,
}

impl Words<'_> {
    fn name(&self) -> &str {
        if self.code.is_empty() { self.kind } else { self.code }
    }

    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.code) || names.contains(&self.kind)
    }

    /// The status that an error would have had, had it come before the stream.
    fn status(&self, error: &Json) -> u16 {
        let number = error.get("code").and_then(Json::as_u64).and_then(|code| u16::try_from(code).ok());
        if let Some(status) = number.filter(|status| (400..600).contains(status)) {
            return status;
        }
        match (self.kind, self.code) {
            ("overloaded_error", _) => 529,
            (_, "server_is_overloaded" | "slow_down") => 503,
            ("rate_limit_error", _) | (_, "rate_limit_exceeded" | "insufficient_quota") => 429,
            ("authentication_error", _) => 401,
            ("billing_error", _) => 402,
            ("permission_error", _) => 403,
            ("not_found_error", _) => 404,
            ("request_too_large", _) => 413,
            ("invalid_request_error", _) | (_, "invalid_prompt" | "context_length_exceeded") => 400,
            ("timeout_error", _) => 504,
            _ => 500,
        }
    }

    fn meaning(&self, status: u16, error: &Json) -> FailureKind {
        let says = |texts: &[&str]| {
            let message = self.message.to_ascii_lowercase();
            texts.iter().any(|text| message.contains(text))
        };
        let too_long = ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
        let filtered = [
            "content_filter",
            "content_policy_violation",
            "image_content_policy_violation",
            "invalid_prompt",
            "bio_policy",
            "misalignment_policy_violation",
        ];
        let unpaid =
            ["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"];
        match status {
            // Waiting does not help those who are out of money.
            _ if self.is(&unpaid) || says(&["credit balance is too low"]) => FailureKind::Auth,
            401..=403 => FailureKind::Auth,
            400 if has_reason(error, "API_KEY_INVALID") => FailureKind::Auth,
            429 => FailureKind::RateLimited,
            503 | 529 => FailureKind::Overloaded,
            _ if self.is(&["overloaded_error", "UNAVAILABLE", "server_is_overloaded", "slow_down"]) => {
                FailureKind::Overloaded
            }
            _ if self.is(&filtered) => FailureKind::ContentFiltered,
            // Anthropic has no code for it.
            400 if says(&["content filtering policy"]) => FailureKind::ContentFiltered,
            413 => FailureKind::ContextTooLong,
            _ if self.is(&too_long) => FailureKind::ContextTooLong,
            400 | 422
                if says(&[
                    "prompt is too long",
                    "maximum context length",
                    "input token count",
                    "exceed context limit",
                    "exceeds the context window",
                ]) =>
            {
                FailureKind::ContextTooLong
            }
            _ => FailureKind::HttpStatus,
        }
    }
}

/// The sentence in an error, wherever it stands.
fn message(error: &Json) -> Option<&str> {
    let said = ["message", "detail", "error"].iter().find_map(|key| error.get(key)?.as_str());
    error.as_str().or(said)
}

fn word<'j>(error: &'j Json, keys: &[&str]) -> &'j str {
    keys.iter().find_map(|key| error.get(key)?.as_str()).unwrap_or_default()
}

/// Google's details: a list of typed objects.
fn details(error: &Json) -> impl Iterator<Item = &Json> {
    error.get("details").and_then(Json::as_array).into_iter().flatten()
}

fn has_reason(error: &Json, reason: &str) -> bool {
    details(error).any(|detail| detail["reason"] == reason)
}

fn retry_info_ms(error: &Json) -> Option<u64> {
    let info = details(error).find(|detail| {
        detail.get("@type").and_then(Json::as_str).is_some_and(|kind| kind.ends_with("google.rpc.RetryInfo"))
    })?;
    parse_duration_ms(info.get("retryDelay")?.as_str()?)
}
