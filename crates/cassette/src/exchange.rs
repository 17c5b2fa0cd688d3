//! One exchange: who asked, what was asked, what came of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use wonder_core::artifact::Artifact;
use wonder_core::cost::Spend;
use wonder_core::execution::TryFailure;
use wonder_core::value::Value;

/// What an action asked, without secrets and without anything that differs from run to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Of the action: `llm_call`.
    pub kind: String,
    /// A map: the fields of the action with their texts filled in.
    pub fields: Value,
}

impl Request {
    pub fn key(&self) -> Key {
        let mut hasher = blake3::Hasher::new();
        // Maps are sorted, so equal requests have equal bytes; no kind has a line break.
        hasher.update(self.kind.as_bytes()).update(b"\n").update(self.fields.to_string().as_bytes());
        Key(hasher.finalize().to_hex().to_string())
    }
}

/// What a request is found by: the hash of its content.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    /// As much as tells it from others at a glance.
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where in a run a try was made. It only decides between exchanges that asked the same.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The run, by its place below the one that was started; empty for that one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    pub node: String,
    pub step: String,
    pub token: u64,
    pub attempt: u32,
    /// How many tries the token had made before.
    #[serde(default, rename = "try")]
    pub number: u32,
}

/// What came of a try.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Result(Value),
    Failed(TryFailure),
    Stopped(Stop),
}

/// Why a try did not come to its end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    ActionTimeout,
    TaskTimeout,
    /// Nobody wanted its result any more.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    pub place: Place,
    pub request: Request,
    pub outcome: Outcome,
    pub spend: Spend,
    pub took_ms: u64,
    /// What it kept; the content lies beside the exchange, by its hash.
    pub artifacts: Vec<Artifact>,
}
