//! Prompts, model profiles and types of artifacts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Name, SchemaDef, Spot, Text};
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
    /// Where it is, if not at its provider's usual place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Text>,
    /// A template that reads secrets and nothing else; without it the key is the provider's usual variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Text>,
    /// Templates, as `api_key` is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Name, Text>,
    /// Shared by all runs of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<Name, Value>,
    /// Profiles to switch to, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Text>,
    /// The profile to downgrade to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheaper: Option<Text>,
    /// None: nobody has said, which is not nothing. See [`ModelProfile::known_prices`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The most tokens it can answer with; what a call without `max_tokens` reserves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip)]
    pub spot: Spot,
}

/// Who can be asked, and the variables in which the key usually is: the first that is set counts.
pub const PROVIDERS: [(&str, &[&str]); 5] = [
    ("openai", &["OPENAI_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("ollama", &[]),
    ("openai_compatible", &[]),
];

/// The variables in which the key of a provider usually is.
pub fn key_variables(provider: &str) -> &'static [&'static str] {
    PROVIDERS.iter().find(|(name, _)| *name == provider).map_or(&[], |(_, variables)| variables)
}

/// Providers that send no bill.
const FREE: [&str; 3] = ["ollama", "mock", "local"];

/// Whose models are called so.
const FAMILIES: [(&str, &str); 7] = [
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude", "anthropic"),
    ("gemini", "gemini"),
];

impl ModelProfile {
    /// Who serves it: as written, else by the model's name. None: neither says.
    pub fn served_by(&self) -> Option<&str> {
        let by_name = || FAMILIES.iter().find(|(family, _)| self.model.starts_with(family));
        self.provider.as_deref().or_else(|| by_name().map(|(_, provider)| *provider))
    }

    /// What its tokens cost, as written; nothing where the provider sends no bill. None: it is not known.
    pub fn known_prices(&self) -> Option<Prices> {
        let is_free = self.served_by().is_some_and(|provider| FREE.contains(&provider));
        self.prices.or(is_free.then(Prices::default))
    }

    /// The most tokens of an answer, where the call itself does not say: those that every call asks for, else those
    /// that the model can give.
    pub fn answer_tokens(&self) -> Option<u64> {
        let asked = self.parameters.get("max_tokens").and_then(Value::as_i64);
        let asked = asked.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        asked.or(self.max_output_tokens)
    }
}

/// How much may be asked of a model in a minute.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rate {
    /// Requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u64>,
    /// Tokens, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpm: Option<u64>,
}

/// Micro-dollars per million tokens (files say dollars per million tokens).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// Tokens in that the provider puts into its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

/// What artifacts of one kind are: how to read them, and what must hold for those that are JSON.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactType {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub name: Text,
    /// Of what is in it: such an artifact is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<Name>,
    #[serde(skip)]
    pub spot: Spot,
}
