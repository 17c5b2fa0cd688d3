//! The `mock` action: what it says instead of doing something.

use serde::{Deserialize, Serialize};

use super::{Text, Tree, is_default};

/// Scripted outcomes, one per try of the action for a token; the last repeats.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mock {
    pub outcomes: Vec<MockOutcome>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockOutcome {
    /// JSON; its texts are templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Tree>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<MockError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub usage: MockUsage,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MockError {
    pub kind: crate::error::ErrorKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub usd_micros: u64,
}
