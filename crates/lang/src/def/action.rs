//! Actions: one atomic operation each, with the fields of its kind.

use serde::{Deserialize, Serialize};

use super::{Mock, Name, Retry, SchemaDef, Spot, Text, ToolUse, Tree, Writes, is_default};
use crate::value::Value;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ActionDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Name>,
    #[serde(flatten)]
    pub implementation: Implementation,
    /// Input schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<SchemaDef>,
    /// Output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub produces: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub execution: Execution,
    /// By kind if absent: see [`ActionDef::effect`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effect>,
    #[serde(skip)]
    pub spot: Spot,
}

impl ActionDef {
    /// What happens in the world if the action runs twice. A model call only offers its tools.
    pub fn effect(&self) -> Effect {
        if let Some(effect) = self.effects {
            return effect;
        }
        match &self.implementation {
            Implementation::HttpRequest(http) if http.is_get() => Effect::None,
            Implementation::HttpRequest(_) | Implementation::Shell(_) | Implementation::ArtifactWrite(_) => {
                Effect::Idempotent
            }
            // A server that does not say what its tool does may do anything.
            Implementation::McpTool(_) => Effect::Once,
            _ => Effect::None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<super::NodeTimeout>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<Retry>,
}

/// In order of strength: a task's effect is its strongest step's.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    #[default]
    None,
    Idempotent,
    Once,
}

impl Effect {
    /// The word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::None => "none",
            Effect::Idempotent => "idempotent",
            Effect::Once => "once",
        }
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", content = "implementation", rename_all = "snake_case")]
pub enum Implementation {
    LlmCall(LlmCall),
    McpTool(McpTool),
    HttpRequest(HttpRequest),
    Shell(Shell),
    UpdateContext(UpdateContext),
    Assert(Assert),
    ArtifactWrite(ArtifactWrite),
    ArtifactRead(ArtifactRead),
    HumanGate(HumanGate),
    WorkflowCall(WorkflowCall),
    WaitEvent(WaitEvent),
    Sleep(Sleep),
    Mock(Mock),
}

impl Implementation {
    /// The key people write.
    pub fn kind(&self) -> &'static str {
        match self {
            Implementation::LlmCall(_) => "llm_call",
            Implementation::McpTool(_) => "mcp_tool",
            Implementation::HttpRequest(_) => "http_request",
            Implementation::Shell(_) => "shell",
            Implementation::UpdateContext(_) => "update_context",
            Implementation::Assert(_) => "assert",
            Implementation::ArtifactWrite(_) => "artifact_write",
            Implementation::ArtifactRead(_) => "artifact_read",
            Implementation::HumanGate(_) => "human_gate",
            Implementation::WorkflowCall(_) => "workflow_call",
            Implementation::WaitEvent(_) => "wait_event",
            Implementation::Sleep(_) => "sleep",
            Implementation::Mock(_) => "mock",
        }
    }

    /// Waits, so it must be alone in its task: tasks do not pause.
    pub fn pauses(&self) -> bool {
        matches!(
            self,
            Implementation::HumanGate(_)
                | Implementation::WorkflowCall(_)
                | Implementation::WaitEvent(_)
                | Implementation::Sleep(_)
        )
    }

    /// Performed by the coordinator when it is alone in its task.
    pub fn is_coordinated(&self) -> bool {
        self.pauses() || matches!(self, Implementation::UpdateContext(_) | Implementation::Assert(_))
    }

    /// Reaches out of the process, so that it can hang.
    pub fn is_external(&self) -> bool {
        matches!(
            self,
            Implementation::LlmCall(_)
                | Implementation::McpTool(_)
                | Implementation::HttpRequest(_)
                | Implementation::Shell(_)
        )
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlmCall {
    /// The name of a model profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// The name of a prompt spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_spec: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Tree>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<SchemaDef>,
    /// What the model is offered to call. Its calls come back; nothing is called here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// `auto`, `none`, `required`, or the name of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Text>,
    #[serde(skip_serializing_if = "is_default")]
    pub on_violation: OnViolation,
    /// Only in older definitions, which load as they are: a call is one turn.
    #[serde(skip_serializing)]
    pub max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "is_default")]
    pub cache: Caching,
    /// Paths, URLs and artifacts, shown to the model with the last message of the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Text>,
    /// Only in older definitions: every answer comes piece by piece.
    #[serde(skip_serializing)]
    pub stream: Option<bool>,
}

/// What an answer that breaks `output_schema` means.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnViolation {
    /// The call fails as `contract_violation`.
    #[default]
    Fail,
    /// It is a result, with what is wrong under `violations`.
    Return,
}

/// How much a model may think before it answers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    Low,
    Medium,
    High,
}

/// Whether what stays the same from call to call is kept by the provider.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    #[default]
    Auto,
    Off,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    pub server: Text,
    pub tool: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Tree>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    pub url: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
    /// Status codes (`204`) and classes (`"2xx"`); 2xx if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_private: bool,
}

impl HttpRequest {
    pub fn is_get(&self) -> bool {
        self.method.as_ref().is_none_or(|m| m.as_str().eq_ignore_ascii_case("get"))
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// Through a shell, every substituted value quoted.
    Line(Text),
    /// One argument each, no shell.
    Arguments(Vec<Text>),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    pub command: CommandLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Text>,
    /// `[0]` if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_exit: Vec<i32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub isolation: Isolation,
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: ShellLimits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    #[default]
    None,
    Process,
    Sandbox,
    Container,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellLimits {
    /// Seconds of processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u64>,
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Open files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateContext {
    /// In order, each seeing those before it.
    pub set: Writes,
}

/// One of three: `that`; `value` and `schema`; `score` and `score_at_least`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Assert {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub that: Option<Text>,
    /// A template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaDef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Text>,
    /// A number, or an expression giving one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_at_least: Option<Tree>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactWrite {
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<Text>,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRead {
    #[serde(rename = "ref")]
    pub reference: Text,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HumanGate {
    pub title: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
    /// A JSON Schema; any answer if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<SchemaDef>,
    /// An expression that gives the schema, in place of `form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_from: Option<Text>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assignees: Vec<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub on_timeout: GateTimeout,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalate: Vec<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remind_every_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateTimeout {
    #[default]
    Fail,
    Default,
    Escalate,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Callee {
    Named(Text),
    FromContext { from_context: Text },
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowCall {
    pub workflow: Callee,
    /// The child's input, its texts being templates; then the mapped input is only what they see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Tree>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_failure: ChildFailure,
    #[serde(default, skip_serializing_if = "is_default")]
    pub inherit_timeout: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub inherit_artifacts: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildFailure {
    #[default]
    Propagate,
    Catch,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WaitEvent {
    pub event: Text,
    /// An expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub take: Take,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: EventTimeout,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// Which events a wait takes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// The first that fits, waiting for it.
    #[default]
    First,
    /// All that have come so far, as a list, which may be empty: it never waits.
    Kept,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventTimeout {
    #[default]
    Fail,
    Default,
}

/// Exactly one of the two.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sleep {
    /// A template giving a duration (`30s`, `{{ state.minutes }}m`) or plain milliseconds.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Text>,
    /// An expression giving a time: RFC 3339 text, or milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Text>,
}
