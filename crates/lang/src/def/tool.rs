//! What a model is offered to call, and the servers that have tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Isolation, Name, SchemaDef, Spot, Text, is_default};

/// An MCP server: a program that is started, or an address. Its texts are templates that read secrets and nothing else.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    pub name: Text,
    /// The program and its arguments; empty for a server with a `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<Text>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<Name, Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub isolation: Isolation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Name, Text>,
    /// How long one request to it may take, its start included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether, and how much, it may ask a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    #[serde(skip)]
    pub spot: Spot,
}

impl McpServer {
    /// Every text of it, which may read secrets.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        let own = self.command.iter().chain(&self.cwd).chain(&self.image).chain(&self.url);
        own.chain(self.env.values()).chain(self.headers.values())
    }
}

/// What a server may ask of a model while it performs a call.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// The name of a model profile.
    pub model: Text,
    /// Of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// While it performs one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
}

impl Sampling {
    /// How often it may ask while it performs one call.
    pub fn calls_max(&self) -> u32 {
        self.max_calls.unwrap_or(crate::limits::SAMPLING_CALLS_MAX)
    }
}

/// One entry of `tools`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolUse {
    /// An action by its name.
    Action(Text),
    /// The tools of an MCP server: all of them, or those named.
    Server {
        mcp: Text,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<Name>,
    },
    /// A workflow: calling it is a child run. What it says of itself is put here when the file is read.
    Workflow {
        workflow: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requires: Option<SchemaDef>,
    },
    /// A person, who is asked by a gate.
    Ask { ask: Text },
}

impl ToolUse {
    /// What the model calls it by; None for a server, whose tools have names of their own.
    pub fn name(&self) -> Option<Name> {
        match self {
            ToolUse::Action(name) => Some(name.text.clone()),
            ToolUse::Server { .. } => None,
            ToolUse::Workflow { workflow, .. } => Some(workflow.text.clone()),
            ToolUse::Ask { ask } => Some(format!("ask_{}", as_key(&ask.text)).into()),
        }
    }

    /// Where it is written.
    pub fn text(&self) -> &Text {
        match self {
            ToolUse::Action(text)
            | ToolUse::Server { mcp: text, .. }
            | ToolUse::Workflow { workflow: text, .. }
            | ToolUse::Ask { ask: text } => text,
        }
    }
}

/// A name as it can stand in a ref.
pub fn as_key(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}
