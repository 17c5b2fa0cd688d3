//! What the server answers: a list of turns, each with what it waits for and what it says.
//!
//! ```yaml
//! key: sk-test                       # only this key is accepted; any if absent
//! turns:
//!   - when: {contains: weather, turn: 1}     # the first turn whose conditions all fit and that is not used up
//!     tool_calls: [{tool: weather/now, arguments: {city: Paris}}]
//!     usage: {input_tokens: 100, cached_input_tokens: 64, output_tokens: 12}
//!   - when: {last: tool}
//!     reasoning: "Sunny, then."
//!     text: "It is {last}."                  # `{last}`: the text of the last message; `{turn}`: its number
//!   - {text: "{now} and on", chunk_chars: 5}   # `{now}`: when it is sent, if streamed: microseconds since 1970
//!   - {error: {status: 429, retry_after: 2}, times: 1}
//!   - {text: "A longer answer", chunk_chars: 5, chunk_delay_ms: 10, cut_after: 3}
//! ```

use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The only key that is accepted; any if absent, but one there must be.
    pub key: Option<String>,
    pub turns: Vec<Turn>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub when: When,
    /// How often it is used; as often as it fits if absent.
    pub times: Option<u64>,
    pub text: String,
    /// An answer by schema: its text.
    pub json: Option<Json>,
    pub reasoning: String,
    pub tool_calls: Vec<Call>,
    pub refusal: Option<String>,
    /// `length`, `content_filter`, or the provider's own word.
    pub finish: Option<String>,
    pub usage: Option<Usage>,
    /// The body as it is, whatever the format.
    pub raw: Option<Json>,
    pub error: Option<Fault>,
    /// Before anything is answered.
    pub delay_ms: u64,
    /// Characters of text in an event; 20 if absent.
    pub chunk_chars: Option<usize>,
    pub chunk_delay_ms: u64,
    /// The connection breaks after so many events.
    pub cut_after: Option<usize>,
    /// Nothing more comes after so many events, and the connection stays.
    pub hang_after: Option<usize>,
    /// An error is told within the stream, after so many events. Needs `error`.
    pub fault_after: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The number of the turn: one more than the model has answered already.
    pub turn: Option<usize>,
    /// Somewhere in what was asked, the system's words included.
    pub contains: Option<String>,
    /// In the text of the last message.
    pub last_contains: Option<String>,
    /// Who spoke last: `user` or `tool`.
    pub last: Option<String>,
    pub model: Option<String>,
    pub stream: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    pub id: Option<String>,
    /// As Wonder names it: slashes are what the codec makes of them.
    pub tool: String,
    pub arguments: Json,
    /// In place of the arguments: whatever the model may have written.
    pub raw: Option<String>,
}

/// As Wonder counts: all input, all output.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    pub status: u16,
    pub message: Option<String>,
    /// The provider's own type or code; by status if absent.
    pub code: Option<String>,
    /// Seconds, or a date, as the header has it.
    pub retry_after: Option<Json>,
}

impl Script {
    /// Reads YAML or JSON.
    pub fn read(text: &str) -> Result<Script, String> {
        let documents = wonder_spec::documents(text, "script").map_err(|problems| problems.render(false))?;
        match documents.into_iter().next() {
            Some(Json::Null) | None => Err("the script is empty: say `turns:`".to_owned()),
            Some(document) => Script::deserialize(document).map_err(|error| error.to_string()),
        }
    }

    pub fn load(path: &Path) -> Result<Script, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Script::read(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Call {
    pub(crate) fn name(&self) -> String {
        self.tool.replace('/', "__")
    }

    /// The arguments as text, as a model writes them.
    pub(crate) fn written(&self) -> String {
        match (&self.raw, &self.arguments) {
            (Some(raw), _) => raw.clone(),
            (None, Json::Null) => "{}".to_owned(),
            (None, arguments) => arguments.to_string(),
        }
    }
}
