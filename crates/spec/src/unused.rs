//! Definitions that no workflow of the file names: they are checked as well, by a workflow that is made up to
//! carry them and that does nothing itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wonder_core::def::{
    ActionDef, Bundle, Implementation, Inline, Mock, MockOutcome, Name, NodeDef, Spot, StepDef, TaskDef,
    Text, WorkflowDef,
};

use crate::build::Parts;
use crate::resolve::{Library, complete};

/// Names that workflows of the file have used.
#[derive(Default)]
pub(crate) struct Used {
    tasks: BTreeSet<Name>,
    actions: BTreeSet<Name>,
    prompts: BTreeSet<Name>,
    models: BTreeSet<Name>,
    artifact_types: BTreeSet<Name>,
}

impl Used {
    pub(crate) fn add(&mut self, bundle: &Bundle) {
        self.tasks.extend(bundle.tasks.keys().cloned());
        self.actions.extend(bundle.actions.keys().cloned());
        self.prompts.extend(bundle.prompts.keys().cloned());
        self.models.extend(bundle.models.keys().cloned());
        self.artifact_types.extend(bundle.artifact_types.keys().cloned());
    }
}

/// A workflow with everything of the file that nobody used. None: there is nothing.
pub(crate) fn bundle(parts: &Parts, used: &Used, library: &Library) -> Option<Bundle> {
    let mut bundle = Bundle {
        tasks: left(&parts.tasks, &used.tasks),
        actions: left(&parts.actions, &used.actions),
        prompts: left(&parts.prompts, &used.prompts),
        models: left(&parts.models, &used.models),
        artifact_types: left(&parts.artifact_types, &used.artifact_types),
        ..Bundle::default()
    };
    let no_work = bundle.tasks.is_empty() && bundle.actions.is_empty();
    let no_parts = bundle.prompts.is_empty() && bundle.models.is_empty() && bundle.artifact_types.is_empty();
    if no_work && no_parts {
        return None;
    }
    // An action is checked where a step uses it.
    let steps = bundle.tasks.values().flat_map(|task| &task.steps);
    let named: BTreeSet<Name> = steps.map(|step| step.action.text.clone()).collect();
    let alone: Vec<Name> = bundle.actions.keys().filter(|name| !named.contains(*name)).cloned().collect();
    for action in alone {
        let name: Name = format!("check:{action}").into();
        bundle.tasks.insert(name.clone(), Arc::new(task(name, action)));
    }
    let name: Name = "check:nothing".into();
    bundle.actions.insert(name.clone(), Arc::new(nothing_to_do(&name)));
    bundle.tasks.insert(name.clone(), Arc::new(task(name.clone(), name.clone())));
    let node = NodeDef {
        reference: Text::new("node"),
        task: Text::new(name),
        inline: Inline::Steps,
        ..NodeDef::default()
    };
    bundle.workflow = WorkflowDef { name: Text::new("check"), nodes: vec![node], ..WorkflowDef::default() };
    complete(&mut bundle, parts, library);
    Some(bundle)
}

fn left<T: Clone>(all: &BTreeMap<Name, T>, used: &BTreeSet<Name>) -> BTreeMap<Name, T> {
    let left = all.iter().filter(|(name, _)| !used.contains(*name));
    left.map(|(name, definition)| (name.clone(), definition.clone())).collect()
}

fn task(name: Name, action: Name) -> TaskDef {
    let step = StepDef {
        id: None,
        reference: Text::new("step"),
        action: Text::new(action),
        action_version: None,
        input_mapping: None,
        output_mapping: None,
        on_failure: Default::default(),
        condition: None,
        artifact_above: None,
        spot: Spot::NOWHERE,
    };
    TaskDef { name: Text::new(name), steps: vec![step], ..TaskDef::default() }
}

fn nothing_to_do(name: &Name) -> ActionDef {
    ActionDef {
        id: None,
        version: None,
        name: Text::new(name.clone()),
        description: None,
        implementation: Implementation::Mock(Mock { outcomes: vec![MockOutcome::default()] }),
        requires: None,
        produces: None,
        execution: Default::default(),
        effects: None,
        spot: Spot::NOWHERE,
    }
}
