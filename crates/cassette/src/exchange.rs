//! One exchange: who asked, what was asked, what came of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use wonder_core::artifact::Artifact;
use wonder_core::command::TaskOrder;
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

impl Place {
    /// `root`: the run that was set going. `number`: how many tries the token had made before.
    pub fn of(root: &str, order: &TaskOrder, step: &str, number: u32) -> Place {
        let below = order.run.strip_prefix(root).unwrap_or(&order.run).trim_start_matches('.');
        Place {
            run: below.to_owned(),
            node: order.node.to_string(),
            step: step.to_owned(),
            token: order.token.0,
            attempt: order.attempt,
            number,
        }
    }
}

/// `think`, or `build.compile` where a node has steps of its own making: an action that is all its node does is a step
/// that is called as its kind is.
pub(crate) fn shown_place(request: &Request, place: &Place) -> String {
    let Place { node, step, .. } = place;
    let is_all = step.is_empty() || step == node || *step == request.kind;
    if is_all { node.clone() } else { format!("{node}.{step}") }
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
