//! Bundles: for each workflow, itself and every definition it names, directly or through others.
//!
//! A name is looked for in the workflow, then among the file's other documents, then in the library that the
//! caller brought. What is nowhere is left out; the checker says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wonder_core::def::{
    ActionDef, ArtifactType, Bundle, Implementation, Inline, McpServer, ModelProfile, Name, PromptSpec,
    Response, Rule, TaskDef, Text, ToolUse,
};

use crate::build::Parts;

/// Definitions from outside the file, such as those pushed before, by name.
#[derive(Clone, Debug, Default)]
pub struct Library {
    pub tasks: BTreeMap<Name, Arc<TaskDef>>,
    pub actions: BTreeMap<Name, Arc<ActionDef>>,
    pub prompts: BTreeMap<Name, PromptSpec>,
    pub models: BTreeMap<Name, ModelProfile>,
    pub artifact_types: BTreeMap<Name, ArtifactType>,
    pub mcp_servers: BTreeMap<Name, McpServer>,
    /// The MCP servers that the workflows of a project may use; any, if the project is not here.
    pub mcp_allowed: BTreeMap<Name, Vec<Name>>,
    /// Workflows that can be called by name, wherever they are.
    pub workflows: BTreeSet<Name>,
}

/// Adds to `bundle` what it names.
pub(crate) fn complete(bundle: &mut Bundle, file: &Parts, library: &Library) {
    let mut names = Names::default();
    for node in &bundle.workflow.nodes {
        // A task that is written on its node is there already.
        names.tasks.extend((node.inline == Inline::No).then(|| node.task.text.clone()));
        names.rules(&node.on_error);
    }
    names.rules(&bundle.workflow.on_error);
    bundle.tasks.values().for_each(|task| names.task(task));
    bundle.actions.values().for_each(|action| names.action(action));
    bundle.models.values().for_each(|model| names.model(model));
    names.drain(bundle, file, library);
    if bundle.models.is_empty() && file.models.is_empty() && library.models.is_empty() {
        name_models(bundle);
    }
}

/// Where nobody defines a model profile, a model is named as its provider names it: `model: gpt-4o` is the
/// profile that says just that.
fn name_models(bundle: &mut Bundle) {
    let mut names = Names::default();
    bundle.actions.values().for_each(|action| names.action(action));
    bundle.workflow.nodes.iter().for_each(|node| names.rules(&node.on_error));
    names.rules(&bundle.workflow.on_error);
    for name in names.models {
        let profile =
            ModelProfile { name: Text::new(name.clone()), model: name.clone(), ..ModelProfile::default() };
        bundle.models.insert(name, profile);
    }
}

/// Names still to be looked up.
#[derive(Default)]
struct Names {
    tasks: Vec<Name>,
    actions: Vec<Name>,
    prompts: Vec<Name>,
    models: Vec<Name>,
    artifact_types: Vec<Name>,
    servers: Vec<Name>,
    /// Some text computes the name of a server: it may be any.
    any_server: bool,
    /// Some text computes the type of an artifact: it may be any.
    any_artifact_type: bool,
}

impl Names {
    fn drain(&mut self, bundle: &mut Bundle, file: &Parts, library: &Library) {
        while let Some(name) = self.tasks.pop() {
            if let Some(task) = take(&name, &mut bundle.tasks, &file.tasks, &library.tasks) {
                self.task(task);
            }
        }
        while let Some(name) = self.actions.pop() {
            if let Some(action) = take(&name, &mut bundle.actions, &file.actions, &library.actions) {
                self.action(action);
            }
        }
        while let Some(name) = self.prompts.pop() {
            take(&name, &mut bundle.prompts, &file.prompts, &library.prompts);
        }
        if self.any_server {
            self.servers.extend(library.mcp_servers.keys().cloned());
        }
        while let Some(name) = self.servers.pop() {
            take(&name, &mut bundle.mcp_servers, &file.mcp_servers, &library.mcp_servers);
        }
        let sampling = bundle.mcp_servers.values().filter_map(|server| server.sampling.as_ref());
        self.models.extend(sampling.map(|sampling| sampling.model.text.clone()));
        while let Some(name) = self.models.pop() {
            if let Some(model) = take(&name, &mut bundle.models, &file.models, &library.models) {
                self.model(model);
            }
        }
        if self.any_artifact_type {
            let all = file.artifact_types.keys().chain(library.artifact_types.keys());
            self.artifact_types.extend(all.cloned());
        }
        while let Some(name) = self.artifact_types.pop() {
            take(&name, &mut bundle.artifact_types, &file.artifact_types, &library.artifact_types);
        }
    }

    fn task(&mut self, task: &TaskDef) {
        self.actions.extend(task.steps.iter().map(|step| step.action.text.clone()));
    }

    fn action(&mut self, action: &ActionDef) {
        match &action.implementation {
            Implementation::LlmCall(call) => {
                let actions = call.tools.iter().filter_map(|tool| match tool {
                    ToolUse::Action(name) => Some(name.text.clone()),
                    _ => None,
                });
                self.actions.extend(actions);
                self.servers.extend(call.tools.iter().filter_map(|tool| match tool {
                    ToolUse::Server { mcp, .. } => Some(mcp.text.clone()),
                    _ => None,
                }));
                self.prompts.extend(texts(&call.prompt_spec));
                self.models.extend(texts(&call.model));
            }
            Implementation::McpTool(tool) => {
                self.servers.push(tool.server.text.clone());
                self.any_server |= tool.server.text.contains("{{");
            }
            Implementation::ArtifactWrite(write) => {
                self.artifact_types.extend(texts(&write.artifact_type));
                self.any_artifact_type |= write.artifact_type.as_ref().is_some_and(|t| t.text.contains('{'));
            }
            _ => {}
        }
    }

    fn model(&mut self, model: &ModelProfile) {
        self.models.extend(texts(&model.fallbacks));
        self.models.extend(texts(&model.cheaper));
    }

    fn rules(&mut self, rules: &[Rule]) {
        for rule in rules {
            match &rule.response {
                Response::AddValidator { task } => self.tasks.push(task.text.clone()),
                Response::Change(change) => {
                    self.models.extend(texts(&change.model));
                    self.actions.extend(change.tools.iter().flat_map(texts));
                }
                _ => {}
            }
        }
    }
}

fn texts<'t>(texts: impl IntoIterator<Item = &'t Text>) -> impl Iterator<Item = Name> {
    texts.into_iter().map(|text| text.text.clone())
}

/// Puts what `name` means into `own`, if it is not there yet; gives it back if it is new.
fn take<'o, T: Clone>(
    name: &Name,
    own: &'o mut BTreeMap<Name, T>,
    file: &BTreeMap<Name, T>,
    library: &BTreeMap<Name, T>,
) -> Option<&'o T> {
    if own.contains_key(name) {
        return None;
    }
    let found = file.get(name).or_else(|| library.get(name))?.clone();
    Some(own.entry(name.clone()).or_insert(found))
}
