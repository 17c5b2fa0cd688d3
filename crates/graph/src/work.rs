//! What a worker needs of an action: its fields with their texts compiled, and for a model call the
//! profiles, the prompt and the tools that it may use. With its order, a worker needs nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wonder_lang::def::{
    Caching, Isolation, McpServer, MockUsage, ModelProfile, Name, OnViolation, Reasoning, Sampling,
    ShellLimits,
};
use wonder_lang::error::ErrorKind;
use wonder_lang::expr::EvalError;
use wonder_lang::schema::Schema;
use wonder_lang::template::{Budget, Template};
use wonder_lang::value::{Map, Value};

use crate::tools::{Offer, Tool, judged};

/// The action of a worker, by kind.
#[derive(Clone, Debug)]
pub enum Work {
    LlmCall(Box<ModelCall>),
    McpTool(McpCall),
    HttpRequest(Box<HttpSpec>),
    Shell(Box<ShellSpec>),
    ArtifactWrite(ArtifactSpec),
    ArtifactRead { reference: Template },
    Mock(MockSpec),
}

/// JSON whose texts are templates.
#[derive(Clone, Debug)]
pub enum TemplateTree {
    Text(Template),
    Literal(Value),
    List(Vec<TemplateTree>),
    Map(Vec<(Name, TemplateTree)>),
}

impl TemplateTree {
    /// The JSON with every text rendered, all from one budget. The one way to fill such a field.
    pub fn render(&self, scope: &Value) -> Result<Value, EvalError> {
        let mut budget = Budget::default();
        self.filled(&mut |template| template.render_within(scope, &mut budget).map(Value::from))
    }

    /// The same for a field that is not all texts: a list or a map that a text names, and that is all there is in
    /// it, stands there as it is.
    pub fn render_values(&self, scope: &Value) -> Result<Value, EvalError> {
        let mut budget = Budget::default();
        self.filled(&mut |template| template.render_value_within(scope, &mut budget))
    }

    /// Whether every text in it stands for itself.
    pub fn is_plain(&self) -> bool {
        match self {
            TemplateTree::Text(template) => template.is_plain(),
            TemplateTree::Literal(_) => true,
            TemplateTree::List(items) => items.iter().all(TemplateTree::is_plain),
            TemplateTree::Map(entries) => entries.iter().all(|(_, tree)| tree.is_plain()),
        }
    }

    fn filled(&self, fill: &mut Fill<'_>) -> Result<Value, EvalError> {
        match self {
            TemplateTree::Text(template) => fill(template),
            TemplateTree::Literal(value) => Ok(value.clone()),
            TemplateTree::List(items) => {
                let items = items.iter().map(|item| item.filled(fill));
                Ok(Value::from(items.collect::<Result<Vec<_>, _>>()?))
            }
            TemplateTree::Map(entries) => {
                let mut map = Map::new();
                for (key, tree) in entries {
                    map.insert(key.clone(), tree.filled(fill)?);
                }
                Ok(Value::from(map))
            }
        }
    }
}

/// What becomes of a text.
type Fill<'f> = dyn FnMut(&Template) -> Result<Value, EvalError> + 'f;

#[derive(Clone, Debug)]
pub struct ShellSpec {
    pub command: CommandSpec,
    pub cwd: Option<Template>,
    pub env: Option<TemplateTree>,
    pub stdin: Option<Template>,
    /// `[0]` if empty.
    pub expect_exit: Vec<i32>,
    pub isolation: Isolation,
    pub limits: ShellLimits,
    pub image: Option<Template>,
    pub network: Option<bool>,
}

#[derive(Clone, Debug)]
pub enum CommandSpec {
    /// Through a shell, every substituted value quoted.
    Line(Template),
    /// One argument each, no shell.
    Arguments(Vec<Template>),
}

#[derive(Clone, Debug)]
pub struct HttpSpec {
    pub method: Option<Template>,
    pub url: Template,
    pub query: Option<TemplateTree>,
    pub headers: Option<TemplateTree>,
    pub json: Option<TemplateTree>,
    pub body: Option<Template>,
    /// Status codes (`204`) and classes (`"2xx"`); 2xx if empty.
    pub expect: Vec<Value>,
    pub max_bytes: Option<u64>,
    pub allow_private: bool,
}

#[derive(Clone, Debug)]
pub struct MockSpec {
    pub outcomes: Vec<MockOutcomeSpec>,
}

impl MockSpec {
    /// Whether to play it is to render nothing.
    pub fn is_plain(&self) -> bool {
        self.outcomes.iter().all(|outcome| {
            let message = outcome.error.as_ref().and_then(|error| error.message.as_ref());
            outcome.output.as_ref().is_none_or(TemplateTree::is_plain)
                && message.is_none_or(Template::is_plain)
        })
    }
}

#[derive(Clone, Debug, Default)]
pub struct MockOutcomeSpec {
    pub output: Option<TemplateTree>,
    pub error: Option<MockErrorSpec>,
    pub delay_ms: Option<u64>,
    pub usage: MockUsage,
}

#[derive(Clone, Debug)]
pub struct MockErrorSpec {
    pub kind: ErrorKind,
    pub message: Option<Template>,
}

#[derive(Clone, Debug)]
pub struct McpCall {
    pub server: Template,
    pub tool: Template,
    pub arguments: Option<TemplateTree>,
    /// What its names stand for.
    pub table: Arc<ModelTable>,
}

impl McpCall {
    /// What the server that it names may ask of a model; of those that it may name, if a value tells, the most.
    pub fn sampling(&self) -> Option<&Sampling> {
        let all = || self.table.servers.values().filter_map(|server| server.def.sampling.as_ref());
        match self.server.is_plain() {
            true => {
                self.table.servers.get(self.server.text()).and_then(|server| server.def.sampling.as_ref())
            }
            false => all().max_by_key(|sampling| sampling.calls_max()),
        }
    }
}

/// An MCP server with its texts compiled: they read secrets, and nothing else is there for them.
#[derive(Clone, Debug)]
pub struct McpServerSpec {
    pub def: McpServer,
    pub command: Vec<Template>,
    pub env: Vec<(Name, Template)>,
    pub cwd: Option<Template>,
    pub image: Option<Template>,
    pub url: Option<Template>,
    pub headers: Vec<(Name, Template)>,
    /// Those that they read. Looked up when the server is used.
    pub secrets: BTreeSet<Name>,
}

#[derive(Clone, Debug)]
pub struct ArtifactSpec {
    pub artifact_type: Option<Template>,
    /// Those that it may name, by name.
    pub types: BTreeMap<Name, ArtifactTypeSpec>,
    pub name: Template,
    pub content: Option<TemplateTree>,
    pub path: Option<Template>,
}

/// A type of artifacts, compiled.
#[derive(Clone, Debug)]
pub struct ArtifactTypeSpec {
    pub media_type: Option<Name>,
    pub schema: Option<Schema>,
}

/// A model call with everything its names stand for.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The profile it names; a response to a failure may put another in its place.
    pub model: Option<Name>,
    /// What its names, and those that responses give it, stand for.
    pub table: Arc<ModelTable>,
    /// Its own, else its prompt spec's.
    pub system: Option<Template>,
    /// Its own, else its prompt spec's.
    pub prompt: Option<Template>,
    pub prompt_spec: Option<PromptUse>,
    pub messages: Option<TemplateTree>,
    pub output_schema: Option<Schema>,
    /// The tools it offers, in the order written.
    pub offered: Vec<Offer>,
    pub tool_choice: Option<Template>,
    pub on_violation: OnViolation,
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub stop: Vec<Name>,
    pub reasoning: Option<Reasoning>,
    pub cache: Caching,
    /// Paths, URLs and artifacts.
    pub images: Vec<Template>,
}

/// Every model profile and every action of a workflow that could be a tool, by name. The calls of a workflow share one.
#[derive(Clone, Debug, Default)]
pub struct ModelTable {
    pub profiles: BTreeMap<Name, ModelProfile>,
    pub tools: BTreeMap<Name, Tool>,
    /// The texts of the profiles that have any.
    pub texts: BTreeMap<Name, ProfileTexts>,
    /// The MCP servers that may be named.
    pub servers: BTreeMap<Name, McpServerSpec>,
    /// The project that the workflow belongs to.
    pub project: Name,
}

impl ModelTable {
    /// A profile by its name, downgraded so many times. None: it is not known.
    pub fn profile(&self, named: &Name, downgrades: u32) -> Option<(&Name, &ModelProfile)> {
        let name = cheaper(&self.profiles, named, downgrades as usize);
        self.profiles.get_key_value(name)
    }
}

/// The texts of a model profile: they read secrets, and nothing else is there for them.
#[derive(Clone, Debug, Default)]
pub struct ProfileTexts {
    pub api_key: Option<Template>,
    pub headers: Vec<(Name, Template)>,
    /// Those that they read. Looked up when the profile is used, so that one that is not used needs none.
    pub secrets: BTreeSet<Name>,
}

/// What a prompt spec says beside its texts.
#[derive(Clone, Debug)]
pub struct PromptUse {
    pub name: Name,
    pub requires: Option<Schema>,
    pub produces: Option<Schema>,
    pub examples: Vec<Value>,
}

impl ModelCall {
    /// The profile to call: the one put in place of the written one, if any, downgraded so many times.
    /// None: none is named, or it is not known.
    pub fn profile(&self, instead: Option<&Name>, downgrades: u32) -> Option<(&Name, &ModelProfile)> {
        let named = instead.or(self.model.as_ref())?;
        self.table.profile(named, downgrades)
    }

    /// What the answer has to fit: what the call says, else its prompt spec.
    pub fn answer_schema(&self) -> Option<&Schema> {
        let of_spec = || self.prompt_spec.as_ref().and_then(|spec| spec.produces.as_ref());
        self.output_schema.as_ref().or_else(of_spec)
    }

    /// What to offer: what was put in place of what is written, if anything.
    pub fn offers(&self, instead: Option<&[Name]>) -> Vec<Offer> {
        let Some(names) = instead else { return self.offered.clone() };
        let tools = names.iter().filter_map(|name| self.table.tools.get(name));
        tools.map(|tool| Offer::Tool(Box::new(tool.clone()))).collect()
    }

    /// The result of the call: what was said, with what is known of the tools that are called, and where it asks for
    /// them the violations of its schema.
    pub fn result(&self, said: Value, tools: &[Tool], violations: Vec<String>) -> Value {
        let mut result = said;
        let calls = result.get("tool_calls").cloned().unwrap_or_default();
        result.set_path(&["tool_calls".into()], judged(&calls, tools));
        if self.on_violation == OnViolation::Return {
            let violations = Value::list(violations.into_iter().map(Value::from));
            result.set_path(&["violations".into()], violations);
        }
        result
    }
}

/// The profile reached by following `cheaper` so many times, or as far as it goes.
pub(super) fn cheaper<'m>(
    models: &'m BTreeMap<Name, ModelProfile>,
    name: &'m Name,
    times: usize,
) -> &'m Name {
    let mut name = name;
    for _ in 0..times {
        match models.get(name).and_then(|profile| profile.cheaper.as_ref()) {
            Some(cheaper) => name = &cheaper.text,
            None => break,
        }
    }
    name
}

/// The secrets that the texts of an action read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SecretReads {
    pub names: BTreeSet<Name>,
    /// A text reads `secret` itself, which names none.
    pub whole: bool,
}

impl SecretReads {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.whole
    }
}
