//! Prompts and model profiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Name, SchemaDef, Spot, Text, is_default};
use crate::value::Value;

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Text>,
    pub template: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub produces: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Value>,
    #[serde(skip)]
    pub spot: Spot,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ModelProfile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Name>,
    pub model: Name,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<Name, Value>,
    /// Profiles to switch to, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Text>,
    /// The profile to downgrade to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheaper: Option<Text>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub prices: Prices,
    /// The most tokens it can answer with; what a call without `max_tokens` reserves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip)]
    pub spot: Spot,
}

/// Micro-dollars per million tokens (files say dollars per million tokens).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
}
