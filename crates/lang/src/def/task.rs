//! Tasks and their steps.

use serde::{Deserialize, Serialize};

use super::{Backoff, Name, SchemaDef, Spot, Text, Tree, Writes, is_default};

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TaskDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Which failures `retry` is about.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_on: RetryOn,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// In the order of their ordinals.
    pub steps: Vec<StepDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Name>,
    #[serde(skip)]
    pub spot: Spot,
}

/// `retry` of a task and `retry_policy` of an action: tries in all, and the wait between them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    pub max_attempts: u32,
    #[serde(default)]
    pub backoff: Backoff,
}

/// Which failures of a task its `retry` is about.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// Those of steps that say `on_failure: retry`.
    #[default]
    Request,
    /// Every one: `retry` was written on a node, beside its work.
    AnyFailure,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StepDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(rename = "ref")]
    pub reference: Text,
    /// A key of [`super::Bundle::actions`].
    pub action: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mapping: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mapping: Option<Writes>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_failure: OnFailure,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<StepCondition>,
    /// A result of more bytes goes to an artifact, and its beginning and the reference stand in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_above: Option<u64>,
    #[serde(skip)]
    pub spot: Spot,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    Abort,
    Retry,
    Continue,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StepCondition {
    #[serde(rename = "if")]
    pub test: Text,
    #[serde(default, rename = "then")]
    pub then: StepVerdict,
    #[serde(default = "StepVerdict::skip", rename = "else")]
    pub otherwise: StepVerdict,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepVerdict {
    #[default]
    Continue,
    Skip,
    Succeed,
    Fail,
}

impl StepVerdict {
    pub fn skip() -> StepVerdict {
        StepVerdict::Skip
    }
}
