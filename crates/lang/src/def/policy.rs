//! What a workflow or a node does about failure, and what it may spend.

use serde::{Deserialize, Serialize};

use super::{Name, Spot, Text, Tree};
use crate::cost::Allowance;
use crate::value::Value;

/// One line of an `on_error` list.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// An expression over `error` and what a node sees; absent: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Text>,
    #[serde(rename = "do")]
    pub response: Response,
    /// Extra tries per token by this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Of `retry`, and of every response that tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    #[serde(skip)]
    pub spot: Spot,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    Retry,
    SwitchModel,
    StricterPrompt {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        append: Option<Name>,
    },
    Change(Change),
    LoopWithFeedback {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Text>,
    },
    AddValidator {
        task: Text,
    },
    AddReview,
    DowngradeModel,
    Pause,
    Goto(Text),
    Skip {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    Escalate,
    Fail,
}

impl Response {
    /// The next attempt asks another model.
    pub fn changes_model(&self) -> bool {
        match self {
            Response::SwitchModel | Response::DowngradeModel => true,
            Response::Change(change) => change.model.is_some(),
            _ => false,
        }
    }

    /// The node it sends a token to, if it names one.
    pub fn leads_to(&self) -> Option<&Text> {
        match self {
            Response::Goto(to) => Some(to),
            Response::LoopWithFeedback { to } => to.as_ref(),
            _ => None,
        }
    }
}

/// Overrides for the next attempt. `input` is laid over the task's input, key by key.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Text>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Tree>,
}

/// How long to wait before another try; the arithmetic is in [`crate::backoff`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    #[serde(default)]
    pub kind: BackoffKind,
    #[serde(default = "Backoff::default_initial_delay_ms")]
    pub initial_delay_ms: u64,
    #[serde(default = "Backoff::default_max_delay_ms")]
    pub max_delay_ms: u64,
}

impl Backoff {
    /// Again at once.
    pub const NONE: Backoff =
        Backoff { kind: BackoffKind::None, initial_delay_ms: 1_000, max_delay_ms: 60_000 };

    pub fn default_initial_delay_ms() -> u64 {
        1_000
    }

    pub fn default_max_delay_ms() -> u64 {
        60_000
    }
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            kind: BackoffKind::default(),
            initial_delay_ms: Backoff::default_initial_delay_ms(),
            max_delay_ms: Backoff::default_max_delay_ms(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffKind {
    None,
    Linear,
    #[default]
    Exponential,
}

/// A bound on what a run or a node may spend.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Share of the budget, in thousandths, at which to warn.
    #[serde(default = "Budget::default_warn_at_permille")]
    pub warn_at_permille: u32,
    #[serde(default)]
    pub on_exceeded: OnExceeded,
}

impl Budget {
    pub fn default_warn_at_permille() -> u32 {
        800
    }

    /// The most that it lets somebody spend, time apart.
    pub fn allowance(&self) -> Allowance {
        Allowance {
            usd_micros: self.usd_micros.unwrap_or(0),
            tokens: self.tokens.unwrap_or(0),
            calls: self.calls.unwrap_or(0),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExceeded {
    #[default]
    Pause,
    Downgrade,
    Fail,
}
