//! Why a model call did not give a reply, as files can branch on it, and what is known besides: how long the
//! provider wants to be left alone, what was paid all the same, what was said until then.

use std::fmt;

use wonder_lang::def::Name;
use wonder_lang::{ErrorKind, Failure, Time, Value};

use crate::reply::{Reply, Usage};

/// How much of a provider's own words a failure carries.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    RateLimited,
    Overloaded,
    ModelRefused,
    ContentFiltered,
    /// The answer does not fit its schema, or the model called tools in a way that cannot be read.
    ContractViolation,
    ContextTooLong,
    /// The key is wrong, may not do this, or is out of money.
    Auth,
    /// The answer broke off. Also what callers say when nothing came at all.
    Network,
    /// What callers say when they stop waiting. Codecs have no clock.
    Timeout,
    /// Any other refusal, and any reply that cannot be understood: with its status.
    HttpStatus,
    OutputTruncated,
}

impl FailureKind {
    pub const ALL: [FailureKind; 11] = [
        FailureKind::RateLimited,
        FailureKind::Overloaded,
        FailureKind::ModelRefused,
        FailureKind::ContentFiltered,
        FailureKind::ContractViolation,
        FailureKind::ContextTooLong,
        FailureKind::Auth,
        FailureKind::Network,
        FailureKind::Timeout,
        FailureKind::HttpStatus,
        FailureKind::OutputTruncated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Overloaded => "overloaded",
            FailureKind::ModelRefused => "model_refused",
            FailureKind::ContentFiltered => "content_filtered",
            FailureKind::ContractViolation => "contract_violation",
            FailureKind::ContextTooLong => "context_too_long",
            FailureKind::Auth => "auth",
            FailureKind::Network => "network",
            FailureKind::Timeout => "timeout",
            FailureKind::HttpStatus => "http_status",
            FailureKind::OutputTruncated => "output_truncated",
        }
    }

    /// The language's word for it.
    pub fn error_kind(self) -> ErrorKind {
        match self {
            FailureKind::RateLimited => ErrorKind::RateLimited,
            FailureKind::Overloaded => ErrorKind::Overloaded,
            FailureKind::ModelRefused => ErrorKind::ModelRefused,
            FailureKind::ContentFiltered => ErrorKind::ContentFiltered,
            FailureKind::ContractViolation => ErrorKind::ContractViolation,
            FailureKind::ContextTooLong => ErrorKind::ContextTooLong,
            FailureKind::Auth => ErrorKind::Auth,
            FailureKind::Network => ErrorKind::Network,
            FailureKind::Timeout => ErrorKind::Timeout,
            FailureKind::HttpStatus => ErrorKind::HttpStatus,
            FailureKind::OutputTruncated => ErrorKind::OutputTruncated,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CallFailure {
    pub kind: FailureKind,
    /// A sentence; a provider's own words in it are cut.
    pub message: String,
    /// The status of the answer; for an error within a stream, the one it would have had before it.
    pub status: Option<u16>,
    pub retry_after_ms: Option<u64>,
    pub request_id: Option<Name>,
    /// What was paid all the same, if it is known.
    pub usage: Option<Usage>,
    /// What was answered, where something was: a refusal, a cut answer, one that does not fit.
    pub reply: Option<Box<Reply>>,
}

impl CallFailure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> CallFailure {
        CallFailure {
            kind,
            message: bounded(&message.into()),
            status: None,
            retry_after_ms: None,
            request_id: None,
            usage: None,
            reply: None,
        }
    }

    pub(crate) fn with_status(mut self, status: u16) -> CallFailure {
        self.status = Some(status);
        self
    }

    pub(crate) fn with_reply(mut self, reply: Reply) -> CallFailure {
        self.usage = reply.usage;
        self.request_id.clone_from(&reply.request_id);
        self.reply = Some(Box::new(reply));
        self
    }

    /// The failure of an action.
    pub fn to_failure(&self) -> Failure {
        let mut details = Vec::new();
        if let Some(id) = &self.request_id {
            details.push(("request_id", Value::String(id.clone())));
        }
        if let Some(usage) = self.usage {
            details.push(("usage", usage.to_value()));
        }
        if let Some(reply) = &self.reply {
            details.push(("text", Value::str(bounded(&reply.text))));
            details.push(("message", reply.message.to_value()));
        }
        let details = if details.is_empty() { Value::Null } else { Value::map(details) };
        let failure = Failure::new(self.kind.error_kind(), &*self.message).with_details(details);
        let failure = match self.status {
            Some(status) => failure.with_status(status),
            None => failure,
        };
        match self.retry_after_ms {
            Some(ms) => failure.with_retry_after_ms(ms),
            None => failure,
        }
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for CallFailure {}

/// The head of a text, cut between characters.
pub(crate) fn bounded(text: &str) -> String {
    if text.len() <= MESSAGE_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// The headers of an answer that matter here, by lower-case name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn new<'h>(headers: impl IntoIterator<Item = (&'h str, &'h str)>) -> Headers {
        let kept = |name: &str| {
            let known = ["content-type", "request-id", "x-request-id", "retry-after", "retry-after-ms"];
            known.contains(&name) || name.starts_with("x-ratelimit-")
        };
        let headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Headers(headers.filter(|(name, _)| kept(name)).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim())
    }

    pub(crate) fn request_id(&self) -> Option<Name> {
        self.get("x-request-id").or(self.get("request-id")).filter(|id| !id.is_empty()).map(Name::from)
    }

    /// How long the provider asks to be left alone: milliseconds, seconds, or a date that has not come yet; else
    /// when the limit that was reached is reset.
    pub(crate) fn retry_after_ms(&self, now: Time) -> Option<u64> {
        let number = |text: &str, unit: f64| {
            let number: f64 = text.parse().ok()?;
            // A cast saturates; what is no number of seconds is no answer.
            (number >= 0.0 && number.is_finite()).then(|| (number * unit).ceil() as u64)
        };
        if let Some(ms) = self.get("retry-after-ms").and_then(|text| number(text, 1.0)) {
            return Some(ms);
        }
        if let Some(text) = self.get("retry-after") {
            let seconds = number(text, 1_000.0);
            return seconds.or_else(|| {
                let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
                Some(Time(at.as_millisecond()).since(now))
            });
        }
        let used_up = |what: &str| self.get(&format!("x-ratelimit-remaining-{what}")) == Some("0");
        let reset = |what: &str| {
            let text = self.get(&format!("x-ratelimit-reset-{what}"))?;
            // Seconds if it is a plain number; `6m0s` and the like if not.
            number(text, 1_000.0).or_else(|| wonder_lang::time::parse_duration_ms(text))
        };
        ["requests", "tokens"].into_iter().filter(|what| used_up(what)).filter_map(reset).max()
    }
}
