//! Who provides models, which formats they speak, where they are and whose key is for whom.

use std::fmt;

use wonder_lang::Value;

use crate::problem::Problem;
use crate::url::BaseUrl;

/// As files name them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
    OpenAiCompatible,
}

impl Provider {
    pub const ALL: [Provider; 5] = [
        Provider::OpenAi,
        Provider::Anthropic,
        Provider::Gemini,
        Provider::Ollama,
        Provider::OpenAiCompatible,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
            Provider::Gemini => "gemini",
            Provider::Ollama => "ollama",
            Provider::OpenAiCompatible => "openai_compatible",
        }
    }

    pub fn parse(text: &str) -> Result<Provider, Problem> {
        Provider::ALL.into_iter().find(|provider| provider.as_str() == text).ok_or_else(|| {
            let known = Provider::ALL.map(Provider::as_str).join(", ");
            Problem::new("provider", format!("`{text}` is not known; known are {known}"))
        })
    }

    /// The formats it can be asked in, the usual one first. OpenAI's reasoning goes from turn to turn only by
    /// way of Responses.
    pub fn wires(self) -> &'static [Wire] {
        match self {
            Provider::OpenAi => &[Wire::Responses, Wire::Chat],
            Provider::Anthropic => &[Wire::Anthropic],
            Provider::Gemini => &[Wire::Gemini],
            Provider::Ollama => &[Wire::Chat],
            Provider::OpenAiCompatible => &[Wire::Chat, Wire::Responses],
        }
    }

    /// Where it is, if it is in one place.
    pub fn base_url(self) -> Option<&'static str> {
        match self {
            Provider::OpenAi => Some("https://api.openai.com/v1"),
            Provider::Anthropic => Some("https://api.anthropic.com/v1"),
            Provider::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Provider::Ollama => Some("http://127.0.0.1:11434/v1"),
            Provider::OpenAiCompatible => None,
        }
    }

    /// The variables in which its key usually is, the first that is set counts.
    pub fn key_variables(self) -> &'static [&'static str] {
        wonder_lang::def::key_variables(self.as_str())
    }

    /// The version that a base URL without one means; compatible servers are taken at their word.
    pub(crate) fn version_path(self) -> Option<&'static str> {
        match self {
            Provider::OpenAi | Provider::Anthropic | Provider::Ollama => Some("v1"),
            Provider::Gemini => Some("v1beta"),
            Provider::OpenAiCompatible => None,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A format of requests and replies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Wire {
    /// OpenAI's chat completions, which most others imitate.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's generateContent and streamGenerateContent.
    Gemini,
}

impl Wire {
    pub const ALL: [Wire; 4] = [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Gemini];

    pub fn as_str(self) -> &'static str {
        match self {
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
        }
    }

    /// The profile's `parameters.wire`, if it says one that its provider speaks.
    pub fn of_parameter(provider: Provider, written: &Value) -> Result<Wire, Problem> {
        let known = provider.wires();
        let found = known.iter().find(|wire| written.as_str() == Some(wire.as_str()));
        found.copied().ok_or_else(|| {
            let known = known.iter().map(|wire| wire.as_str()).collect::<Vec<_>>().join(", ");
            Problem::new(
                "parameters.wire",
                format!("{written} is not spoken by {provider}; it speaks {known}"),
            )
        })
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A key. It does not show itself.
#[derive(Clone, Eq, PartialEq)]
pub struct Key(String);

impl Key {
    pub fn new(text: impl Into<String>) -> Key {
        Key(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Whether a request carries a key, and why not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyChoice {
    /// The profile's own `api_key`: it is for the profile's own base URL.
    OfProfile(Key),
    /// From the provider's usual variable, for the provider's usual place.
    OfVariable { key: Key, variable: &'static str },
    /// The provider needs none.
    NotNeeded,
    /// The variable is set, but the base URL is not the one that its key is for.
    Withheld { variable: &'static str },
}

impl KeyChoice {
    pub fn key(&self) -> Option<&Key> {
        match self {
            KeyChoice::OfProfile(key) | KeyChoice::OfVariable { key, .. } => Some(key),
            KeyChoice::NotNeeded | KeyChoice::Withheld { .. } => None,
        }
    }
}

/// Which key a profile sends. **A key goes only where it was given for**: one of a variable to the provider's
/// own server, one of the profile to the profile's base URL, and no key of one to the other.
pub fn key_for(
    provider: Provider,
    base_url: Option<&str>,
    api_key: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<KeyChoice, Problem> {
    if let Some(key) = api_key {
        if key.trim().is_empty() {
            return Err(Problem::new("api_key", "is empty; leave it out, or say `{{ secret.NAME }}`"));
        }
        return Ok(KeyChoice::OfProfile(Key::new(key)));
    }
    let own = provider.base_url().map(BaseUrl::parse).transpose()?;
    let asked = base_url.map(BaseUrl::parse).transpose()?;
    let at_home = match (&own, &asked) {
        (Some(own), Some(asked)) => own.same_server(asked),
        (Some(_), None) => true,
        (None, _) => false,
    };
    let known = provider.key_variables();
    let set = known.iter().find_map(|name| {
        variable(name).filter(|value| !value.trim().is_empty()).map(|value| (*name, Key::new(value)))
    });
    match (known.first(), set) {
        (None, _) => Ok(KeyChoice::NotNeeded),
        (_, Some((variable, key))) if at_home => Ok(KeyChoice::OfVariable { key, variable }),
        (_, Some((variable, _))) => Ok(KeyChoice::Withheld { variable }),
        (_, None) if !at_home => Ok(KeyChoice::NotNeeded),
        (Some(usual), None) => {
            let message = format!("{provider} needs a key: set {usual}, or `api_key` in the profile");
            Err(Problem::new("api_key", message))
        }
    }
}
