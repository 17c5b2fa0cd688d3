//! What a model is offered to call.

use serde::{Deserialize, Serialize};

use super::{Name, SchemaDef, Text};

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
