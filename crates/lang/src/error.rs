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
    HttpStatus,
    ShellExit,
    ModelRefused,
    ContentFiltered,
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
    Cancelled,
    Internal,
}

impl ErrorKind {
    pub const ALL: [ErrorKind; 22] = [
        ErrorKind::Timeout,
        ErrorKind::Network,
        ErrorKind::RateLimited,
        ErrorKind::ProviderError,
        ErrorKind::HttpStatus,
        ErrorKind::ShellExit,
        ErrorKind::ModelRefused,
        ErrorKind::ContentFiltered,
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
        ErrorKind::Cancelled,
        ErrorKind::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Timeout => "timeout",
            ErrorKind::Network => "network",
            ErrorKind::RateLimited => "rate_limited",
            ErrorKind::ProviderError => "provider_error",
            ErrorKind::HttpStatus => "http_status",
            ErrorKind::ShellExit => "shell_exit",
            ErrorKind::ModelRefused => "model_refused",
            ErrorKind::ContentFiltered => "content_filtered",
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
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure: `{kind, message, node, attempt, details}`, as `_last_error` and `error` show it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Failure {
    pub kind: ErrorKind,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// Among the details of a failure: it is a worker's stop at its allowance.
pub(crate) const AT_ALLOWANCE: &str = "at_allowance";

impl Failure {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), node: None, attempt: None, details: Value::Null }
    }

    pub fn with_details(mut self, details: Value) -> Failure {
        self.details = details;
        self
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
            ErrorKind::Network | ErrorKind::RateLimited | ErrorKind::ProviderError => true,
            ErrorKind::HttpStatus => {
                self.details.get("status").and_then(Value::as_i64).is_some_and(|status| status >= 500)
            }
            _ => false,
        }
    }

    /// A task that stopped at what was reserved for it; its budget may have more.
    pub fn is_at_allowance(&self) -> bool {
        self.kind == ErrorKind::BudgetExceeded && self.details.get(AT_ALLOWANCE).is_some()
    }

    /// What expressions see.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("kind".into(), self.kind.as_str().into());
        map.insert("message".into(), self.message.as_str().into());
        map.insert("node".into(), self.node.clone().map_or(Value::Null, Value::String));
        map.insert("attempt".into(), self.attempt.map_or(Value::Null, |a| Value::Int(a.into())));
        map.insert("details".into(), self.details.clone());
        Value::from(map)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}
