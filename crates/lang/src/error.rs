//! Failures as the run sees them: a kind that responses branch on, a sentence, and where it came from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::def::Name;
use crate::value::{Map, Value};

/// Every way a node, a fan-in or a run can fail. Stable: files match on these words.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    Timeout,
    Network,
    RateLimited,
    ProviderError,
    Overloaded,
    Auth,
    HttpStatus,
    ShellExit,
    ToolFailed,
    ModelRefused,
    ContentFiltered,
    ContextTooLong,
    OutputTruncated,
    ContractViolation,
    QualityBelowThreshold,
    AssertionFailed,
    BudgetExceeded,
    ExpressionError,
    LimitExceeded,
    NoTransition,
    FanInFailed,
    SubworkflowFailed,
    MutationRefused,
    WorkerLost,
    OutcomeUnknown,
    InputRequired,
    Cancelled,
    NotRecorded,
    Internal,
}

impl ErrorKind {
    pub const ALL: [ErrorKind; 29] = [
        ErrorKind::Timeout,
        ErrorKind::Network,
        ErrorKind::RateLimited,
        ErrorKind::ProviderError,
        ErrorKind::Overloaded,
        ErrorKind::Auth,
        ErrorKind::HttpStatus,
        ErrorKind::ShellExit,
        ErrorKind::ToolFailed,
        ErrorKind::ModelRefused,
        ErrorKind::ContentFiltered,
        ErrorKind::ContextTooLong,
        ErrorKind::OutputTruncated,
        ErrorKind::ContractViolation,
        ErrorKind::QualityBelowThreshold,
        ErrorKind::AssertionFailed,
        ErrorKind::BudgetExceeded,
        ErrorKind::ExpressionError,
        ErrorKind::LimitExceeded,
        ErrorKind::NoTransition,
        ErrorKind::FanInFailed,
        ErrorKind::SubworkflowFailed,
        ErrorKind::MutationRefused,
        ErrorKind::WorkerLost,
        ErrorKind::OutcomeUnknown,
        ErrorKind::InputRequired,
        ErrorKind::Cancelled,
        ErrorKind::NotRecorded,
        ErrorKind::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Timeout => "timeout",
            ErrorKind::Network => "network",
            ErrorKind::RateLimited => "rate_limited",
            ErrorKind::ProviderError => "provider_error",
            ErrorKind::Overloaded => "overloaded",
            ErrorKind::Auth => "auth",
            ErrorKind::HttpStatus => "http_status",
            ErrorKind::ShellExit => "shell_exit",
            ErrorKind::ToolFailed => "tool_failed",
            ErrorKind::ModelRefused => "model_refused",
            ErrorKind::ContentFiltered => "content_filtered",
            ErrorKind::ContextTooLong => "context_too_long",
            ErrorKind::OutputTruncated => "output_truncated",
            ErrorKind::ContractViolation => "contract_violation",
            ErrorKind::QualityBelowThreshold => "quality_below_threshold",
            ErrorKind::AssertionFailed => "assertion_failed",
            ErrorKind::BudgetExceeded => "budget_exceeded",
            ErrorKind::ExpressionError => "expression_error",
            ErrorKind::LimitExceeded => "limit_exceeded",
            ErrorKind::NoTransition => "no_transition",
            ErrorKind::FanInFailed => "fan_in_failed",
            ErrorKind::SubworkflowFailed => "subworkflow_failed",
            ErrorKind::MutationRefused => "mutation_refused",
            ErrorKind::WorkerLost => "worker_lost",
            ErrorKind::OutcomeUnknown => "outcome_unknown",
            ErrorKind::InputRequired => "input_required",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::NotRecorded => "not_recorded",
            ErrorKind::Internal => "internal",
        }
    }

    /// What it means, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            ErrorKind::Timeout => "It took longer than its timeout.",
            ErrorKind::Network => "No connection, or it broke.",
            ErrorKind::RateLimited => "A server asked to be called less often (429).",
            ErrorKind::ProviderError => "A model's provider failed, or answered what cannot be understood.",
            ErrorKind::Overloaded => "A model's provider, or this machine, has too much to do.",
            ErrorKind::Auth => "A model's provider does not accept the key, or there is none.",
            ErrorKind::HttpStatus => "A server answered with a status that `expect` does not have.",
            ErrorKind::ShellExit => {
                "A command ended with an exit code that `expect_exit` does not have, or could not be started."
            }
            ErrorKind::ToolFailed => "A tool of an MCP server says that it failed.",
            ErrorKind::ModelRefused => "A model declined to answer.",
            ErrorKind::ContentFiltered => "A provider's filter held the answer back.",
            ErrorKind::ContextTooLong => "More was sent to a model than it can read at once.",
            ErrorKind::OutputTruncated => "A model's answer ended at `max_tokens` before it was whole.",
            ErrorKind::ContractViolation => "A value does not fit its schema.",
            ErrorKind::QualityBelowThreshold => "A score is below `score_at_least`.",
            ErrorKind::AssertionFailed => "What `assert` says is not so, or a step's condition said `fail`.",
            ErrorKind::BudgetExceeded => "The budget is used up.",
            ErrorKind::ExpressionError => {
                "An expression or a template has no value: something is missing, or of the wrong type."
            }
            ErrorKind::LimitExceeded => "Something grew beyond one of the limits in docs/limits.md.",
            ErrorKind::NoTransition => "No transition of the node fits.",
            ErrorKind::FanInFailed => "Too few branches arrived; the failure behind it is the cause.",
            ErrorKind::SubworkflowFailed => "A child run did not complete.",
            ErrorKind::MutationRefused => "What a node wanted to add to the run is not allowed.",
            ErrorKind::WorkerLost => "What performed the task is gone.",
            ErrorKind::OutcomeUnknown => {
                "An action with `effects: once` may or may not have happened; a person has to say."
            }
            ErrorKind::InputRequired => {
                "A tool wants to know something that only a person can say; a gate asks."
            }
            ErrorKind::Cancelled => "It was cancelled.",
            ErrorKind::NotRecorded => "A cassette that is replayed has no answer to this request.",
            ErrorKind::Internal => "A mistake of Wonder itself.",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure: `{kind, message, node, attempt, details}`, as `_last_error` and `error` show it and as it is
/// stored. What the engine itself goes by has a field or a method of its own here, and is written among the
/// details.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "Written", into = "Written")]
pub struct Failure {
    pub kind: ErrorKind,
    pub message: String,
    pub node: Option<Name>,
    pub attempt: Option<u32>,
    /// `details.status`: what a server answered.
    pub status: Option<u16>,
    /// `details.cause`: the failure behind this one.
    pub cause: Option<Box<Failure>>,
    /// `details.at_allowance`: a worker stopped at what was reserved for its task.
    pub at_allowance: bool,
    /// Everything else that is known about it.
    pub details: Value,
}

/// A failure as it is stored.
#[derive(Deserialize, Serialize)]
struct Written {
    kind: ErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    details: Value,
}

const STATUS: &str = "status";
const RETRY_AFTER_MS: &str = "retry_after_ms";
const CAUSE: &str = "cause";
const AT_ALLOWANCE: &str = "at_allowance";
const TIMEOUT_MS: &str = "timeout_ms";

impl Failure {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Failure {
        Failure {
            kind,
            message: message.into(),
            node: None,
            attempt: None,
            status: None,
            cause: None,
            at_allowance: false,
            details: Value::Null,
        }
    }

    /// With these details. Those that have a field of their own are put there.
    pub fn with_details(mut self, details: Value) -> Failure {
        self.details = details;
        let Value::Map(map) = &self.details else { return self };
        let status = map.get(STATUS).and_then(Value::as_i64).and_then(|status| u16::try_from(status).ok());
        let at_allowance = map.get(AT_ALLOWANCE) == Some(&Value::Bool(true));
        let cause = map.get(CAUSE).and_then(Failure::from_value);
        let no_cause = at_allowance && map.get(CAUSE) == Some(&Value::Null);
        let taken =
            [(STATUS, status.is_some()), (CAUSE, cause.is_some() || no_cause), (AT_ALLOWANCE, at_allowance)];
        if taken.iter().any(|(_, taken)| *taken) {
            let is_taken = |key: &str| taken.iter().any(|(name, taken)| *taken && *name == key);
            let rest = map.iter().filter(|(key, _)| !is_taken(key));
            let rest: Vec<(Name, Value)> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
            self.details = if rest.is_empty() { Value::Null } else { Value::map(rest) };
        }
        self.status = status.or(self.status);
        self.cause = cause.map(Box::new).or(self.cause);
        self.at_allowance |= at_allowance;
        self
    }

    pub fn with_status(mut self, status: u16) -> Failure {
        self.status = Some(status);
        self
    }

    /// The same failure, with the one that led to it.
    pub fn because_of(mut self, cause: Failure) -> Failure {
        self.cause = Some(Box::new(cause));
        self
    }

    /// A worker's stop at what was reserved for its task.
    pub(crate) fn stopped_at_allowance(message: String, cause: Option<&Failure>) -> Failure {
        Failure {
            at_allowance: true,
            cause: cause.map(|cause| Box::new(cause.clone())),
            ..Failure::new(ErrorKind::BudgetExceeded, message)
        }
    }

    /// With the time that was over, where that is what failed.
    pub fn with_timeout_ms(self, timeout_ms: u64) -> Failure {
        self.with_ms(TIMEOUT_MS, timeout_ms)
    }

    /// How long something was given that took longer.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.ms(TIMEOUT_MS)
    }

    /// With how long a server asks to be left alone.
    pub fn with_retry_after_ms(self, retry_after_ms: u64) -> Failure {
        self.with_ms(RETRY_AFTER_MS, retry_after_ms)
    }

    /// How long a server asks to be left alone.
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.ms(RETRY_AFTER_MS)
    }

    fn with_ms(self, key: &str, ms: u64) -> Failure {
        let mut details = if self.details.is_null() { Value::empty_map() } else { self.details };
        details.set_path(&[key.into()], Value::Int(i64::try_from(ms).unwrap_or(i64::MAX)));
        Failure { details, ..self }
    }

    fn ms(&self, key: &str) -> Option<u64> {
        self.details.get(key).and_then(Value::as_i64).and_then(|ms| u64::try_from(ms).ok())
    }

    /// The same failure, said to have happened at this attempt of this node unless it already says where.
    pub fn at(mut self, node: &Name, attempt: u32) -> Failure {
        if self.node.is_none() {
            self.node = Some(node.clone());
            self.attempt = Some(attempt);
        }
        self
    }

    /// Whether the world broke it, so that the same action may do better later: what workers try again by
    /// themselves. A mistake in the request, an exit code or a timeout is none of these.
    pub fn is_infrastructural(&self) -> bool {
        match self.kind {
            ErrorKind::Network
            | ErrorKind::RateLimited
            | ErrorKind::ProviderError
            | ErrorKind::Overloaded => true,
            ErrorKind::HttpStatus => self.status.is_some_and(|status| status >= 500),
            _ => false,
        }
    }

    /// Nobody answered: what failed may have had its effect all the same, and trying again means the same effect.
    pub fn broke_off(&self) -> bool {
        let lost = matches!(self.kind, ErrorKind::Timeout | ErrorKind::WorkerLost | ErrorKind::Cancelled);
        lost || self.is_infrastructural()
    }

    /// A task that stopped at what was reserved for it; its budget may have more.
    pub fn is_at_allowance(&self) -> bool {
        self.kind == ErrorKind::BudgetExceeded && self.at_allowance
    }

    /// Everything that is known about it, as `details` shows it and as it is stored.
    pub fn all_details(&self) -> Value {
        let mut typed: Vec<(&str, Value)> = Vec::new();
        if let Some(status) = self.status {
            typed.push((STATUS, Value::Int(status.into())));
        }
        if let Some(cause) = &self.cause {
            typed.push((CAUSE, cause.to_value()));
        }
        if self.at_allowance {
            typed.push((AT_ALLOWANCE, Value::Bool(true)));
            if self.cause.is_none() {
                typed.push((CAUSE, Value::Null));
            }
        }
        if typed.is_empty() {
            return self.details.clone();
        }
        let mut details = if self.details.is_null() { Value::empty_map() } else { self.details.clone() };
        for (key, value) in typed {
            details.set_path(&[key.into()], value);
        }
        details
    }

    /// What expressions see.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("kind".into(), self.kind.as_str().into());
        map.insert("message".into(), self.message.as_str().into());
        map.insert("node".into(), self.node.clone().map_or(Value::Null, Value::String));
        map.insert("attempt".into(), self.attempt.map_or(Value::Null, |a| Value::Int(a.into())));
        map.insert("details".into(), self.all_details());
        Value::from(map)
    }

    /// The failure that expressions see as this value; None if it is not exactly that.
    fn from_value(value: &Value) -> Option<Failure> {
        let kind = value.get("kind").and_then(Value::as_str);
        let kind = ErrorKind::ALL.into_iter().find(|known| Some(known.as_str()) == kind)?;
        let mut failure = Failure::new(kind, value.get("message").and_then(Value::as_str)?);
        failure.node = value.get("node").and_then(Value::as_str).map(Name::from);
        let attempt = value.get("attempt").and_then(Value::as_i64);
        failure.attempt = attempt.and_then(|attempt| u32::try_from(attempt).ok());
        let failure = failure.with_details(value.get("details").cloned().unwrap_or_default());
        (failure.to_value() == *value).then_some(failure)
    }
}

impl From<Written> for Failure {
    fn from(written: Written) -> Failure {
        let Written { kind, message, node, attempt, details } = written;
        Failure { node, attempt, ..Failure::new(kind, message) }.with_details(details)
    }
}

impl From<Failure> for Written {
    fn from(failure: Failure) -> Written {
        let details = failure.all_details();
        let Failure { kind, message, node, attempt, .. } = failure;
        Written { kind, message, node, attempt, details }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(json: &str) -> Failure {
        let failure: Failure = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&failure).unwrap(), json, "it is stored as it was");
        failure
    }

    #[test]
    fn what_was_stored_before_is_read_into_fields_and_stored_the_same() {
        let busy = stored(
            r#"{"kind":"http_status","message":"m","details":{"body":"b","retry_after_ms":5,"status":503}}"#,
        );
        assert_eq!((busy.status, busy.retry_after_ms()), (Some(503), Some(5)));
        assert_eq!(busy.details.to_string(), r#"{"body":"b","retry_after_ms":5}"#);
        assert!(busy.is_infrastructural());
        let stopped = stored(
            r#"{"kind":"budget_exceeded","message":"m","details":{"at_allowance":true,"cause":null}}"#,
        );
        assert!(stopped.is_at_allowance() && stopped.cause.is_none());
        let joined = stored(
            r#"{"kind":"fan_in_failed","message":"m","node":"j","attempt":1,"details":{"cause":{"attempt":2,"details":{"status":404},"kind":"http_status","message":"n","node":"a"}}}"#,
        );
        let cause = joined.cause.unwrap();
        assert_eq!((cause.node.as_deref(), cause.attempt, cause.status), (Some("a"), Some(2), Some(404)));
    }

    #[test]
    fn details_that_only_look_alike_stay_details() {
        for json in [
            r#"{"kind":"internal","message":"m","details":{"cause":"rust","status":"ok"}}"#,
            r#"{"kind":"internal","message":"m","details":{"cause":null,"retry_after_ms":-1}}"#,
            r#"{"kind":"internal","message":"m","details":"text"}"#,
            r#"{"kind":"internal","message":"m","details":{"cause":{"kind":"timeout","more":1}}}"#,
            r#"{"kind":"internal","message":"m"}"#,
        ] {
            let failure = stored(json);
            assert_eq!(failure.all_details(), failure.details, "{json}");
        }
    }
}
