//! What a run would want and not find: secrets, keys, models, prices, actions, workflows, programs; each
//! with what to do about it. It asks whether something is there and never what it is.

use std::collections::BTreeMap;

use wonder_core::def::{Implementation, Isolation, LlmCall, ModelProfile, Name, key_variables};
use wonder_core::graph::{Action, Graph, Node, Perform, Work};
use wonder_core::template::Template;

use super::Known;
use super::report::{Callee, Missing, Need, Outline};
use super::reserve::Priced;
use wonder_core::graph::names::dag_part;

pub(super) struct Search<'s> {
    known: &'s Known<'s>,
    /// Before a node of a workflow that is called.
    prefix: Option<Name>,
    found: BTreeMap<(Need, Name), Missing>,
}

impl<'s> Search<'s> {
    pub(super) fn new(known: &'s Known<'s>) -> Search<'s> {
        Search { known, prefix: None, found: BTreeMap::new() }
    }

    pub(super) fn found(self) -> Vec<Missing> {
        self.found.into_values().collect()
    }

    /// `prefix`: the workflow's name, unless it is the one that is planned.
    pub(super) fn graph(&mut self, graph: &Graph, outline: &Outline, prefix: Option<Name>) {
        self.prefix = prefix;
        let priced = Priced { graph, prices: &self.known.prices };
        for node in &graph.nodes {
            let Perform::Worker(task) = &node.perform else { continue };
            for step in &task.steps {
                self.action(node, &step.action);
                match (&step.action.work, &step.action.def.implementation) {
                    (Some(Work::Shell(shell)), _) => self.isolation(node, shell.isolation),
                    (Some(Work::LlmCall(_)), Implementation::LlmCall(def)) => {
                        self.call(priced, node, def);
                    }
                    _ => {}
                }
            }
        }
        for call in outline.calls.iter().filter(|call| call.callee == Callee::Unknown) {
            let help = "add it to this file as another document, after a line `---`";
            self.report((Need::Workflow, call.workflow.clone()), &call.node, help);
        }
    }

    fn report(&mut self, (need, name): (Need, Name), node: &Name, help: impl Into<String>) {
        let node = match &self.prefix {
            Some(workflow) => format!("{workflow}/{node}").into(),
            None => node.clone(),
        };
        let entry = self.found.entry((need, name.clone()));
        let missing = entry.or_insert_with(|| Missing { need, name, nodes: Vec::new(), help: help.into() });
        if missing.nodes.last() != Some(&node) {
            missing.nodes.push(node);
        }
    }

    /// The secrets that an action's texts name, and whether somebody performs it.
    fn action(&mut self, node: &Node, action: &Action) {
        let reference = written(node);
        let missing = action.secrets.names.iter().filter(|name| !self.known.around.has_variable(name));
        for name in missing.cloned().collect::<Vec<_>>() {
            let help = format!("set the variable {name}, or add a line `{name}=...` to .env");
            self.report((Need::Secret, name), &reference, help);
        }
        let implementation = &action.def.implementation;
        if !self.known.around.can_perform(implementation) {
            let kind = implementation.kind();
            let help = format!("this build performs no `{kind}`: write `mock` in its place to try the rest");
            self.report((Need::Action, kind.into()), &reference, help);
        }
    }

    fn isolation(&mut self, node: &Node, isolation: Isolation) {
        let has = |name: &str| self.known.around.has_program(name);
        let (name, help) = match isolation {
            Isolation::Sandbox if !has("bwrap") => {
                ("bwrap", "install bubblewrap, or write `isolation: process`")
            }
            Isolation::Container if !has("docker") && !has("podman") => {
                ("docker", "install docker or podman, or write `isolation: process`")
            }
            _ => return,
        };
        self.report((Need::Program, name.into()), &written(node), help);
    }

    /// The model that a call names, and those it may fall back on.
    fn call(&mut self, priced: Priced<'_>, node: &Node, call: &LlmCall) {
        let reference = written(node);
        let models = priced.models(node, call);
        if models.is_empty() {
            let help = "name a profile: `model: NAME`, and define it under `models`";
            self.report((Need::Model, "(none)".into()), &reference, help);
        }
        for model in models {
            self.model(priced, &reference, model);
        }
    }

    fn model(&mut self, priced: Priced<'_>, node: &Name, model: Name) {
        let profile = priced.graph.models.get(&model);
        let Some((profile, provider)) = profile.and_then(|profile| Some((profile, profile.served_by()?)))
        else {
            let help = format!("define `{model}` under `models`, with `provider`, `model` and `prices`");
            return self.report((Need::Model, model), node, help);
        };
        let missing = missing_keys(profile, provider, |name| self.known.around.has_variable(name));
        for key in missing {
            let help = format!("set the variable {key}, or add a line `{key}=...` to .env");
            self.report((Need::Key, key), node, help);
        }
        if priced.prices(&model).is_none() {
            let help = "write its `prices`, in dollars per million tokens: {input: 3, output: 15}";
            self.report((Need::Price, model), node, help);
        }
    }
}

/// The node as its author calls it.
fn written(node: &Node) -> Name {
    dag_part(&node.reference).0.into()
}

/// The variables that a profile lacks: those that its own texts name, else its provider's usual one. A key
/// of the environment goes to the provider's own place and to no other.
fn missing_keys(profile: &ModelProfile, provider: &str, is_set: impl Fn(&str) -> bool) -> Vec<Name> {
    let texts = profile.api_key.iter().chain(profile.headers.values());
    let named = texts.filter_map(|text| Template::compile(&text.text).ok()).flat_map(|template| {
        let secrets = template.reads().iter().filter(|read| &*read.root == "secret");
        secrets.filter_map(|read| read.path.first().cloned()).collect::<Vec<Name>>()
    });
    let mut names: Vec<Name> = named.filter(|name| !is_set(name)).collect();
    let usual = key_variables(provider);
    if profile.api_key.is_none() && profile.base_url.is_none() && !usual.iter().any(|name| is_set(name)) {
        names.extend(usual.first().map(|name| Name::from(*name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_providers_usual_variables_is_enough() {
        let profile = ModelProfile::default();
        let missing = |set: &str| missing_keys(&profile, "gemini", |name| name == set);
        assert_eq!(missing("GOOGLE_API_KEY"), Vec::<Name>::new());
        assert_eq!(missing("GEMINI_API_KEY"), Vec::<Name>::new());
        assert_eq!(missing("OPENAI_API_KEY"), ["GEMINI_API_KEY".into()]);
    }
}
