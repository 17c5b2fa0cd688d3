//! Who writes what, before anything runs: the run's `state`, the state of a task, the results of nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Check;
use crate::Mutation;
use crate::known::{Known, KnownMap, KnownRoots, KnownState};
use crate::shape::{Part, Shape, Slot};
use wonder_lang::def::{
    Implementation, Inline, Name, NodeDef, Response, Rule, StepDef, TaskDef, Tree, Write, Writes,
};
use wonder_lang::path::{Root, Target, Way};

/// What is known of the run as a whole.
#[derive(Debug, Default)]
pub(super) struct KnownRun {
    pub(super) input: Arc<Known>,
    pub(super) state: Arc<KnownState>,
    /// Of each node.
    pub(super) results: Vec<Arc<Known>>,
    /// Of all units of a dag, by ref.
    pub(super) needs: Arc<Known>,
}

impl KnownRun {
    /// What is known where a node stands, before it did anything.
    pub(super) fn roots(&self) -> KnownRoots {
        KnownRoots {
            input: self.input.clone(),
            state: Some(self.state.clone()),
            needs: self.needs.clone(),
            result: Arc::default(),
        }
    }

    /// The same after it, in its output mapping and its transitions.
    pub(super) fn roots_after(&self, node: usize) -> KnownRoots {
        KnownRoots { result: self.results[node].clone(), ..self.roots() }
    }
}

impl<'a> Check<'a> {
    pub(super) fn known_run(&self, shape: &Shape<'a>, mutations: &[Mutation]) -> KnownRun {
        let workflow = &self.bundle.workflow;
        let input = match &workflow.input_schema {
            Some(schema) => Known::of_schema(&schema.doc, "input_schema").with("feedback"),
            None => Known::Anything,
        };
        let results: Vec<Arc<Known>> =
            shape.slots.iter().map(|slot| Arc::new(self.result_of(slot))).collect();
        let units = shape.units.iter();
        let needs =
            units.map(|unit| (unit.def.reference.text.clone(), (*results[unit.tail.0 as usize]).clone()));
        let needs = KnownMap { keys: needs.collect(), closed: false, whose: "needs".into() };
        let mut state = KnownState { grows: !mutations.is_empty(), ..KnownState::default() };
        self.state_of_run(shape, &results, &mut state);
        KnownRun {
            input: Arc::new(input),
            state: Arc::new(state),
            results,
            needs: Arc::new(if shape.is_dag { Known::Map(needs) } else { Known::Anything }),
        }
    }

    fn state_of_run(&self, shape: &Shape<'a>, results: &[Arc<Known>], state: &mut KnownState) {
        let workflow = &self.bundle.workflow;
        let adds = |rules: &[Rule]| {
            rules
                .iter()
                .any(|rule| matches!(rule.response, Response::AddValidator { .. } | Response::AddReview))
        };
        state.grows |= adds(&workflow.on_error);
        if let Some(Known::Map(schema)) =
            workflow.context_schema.as_ref().map(|s| Known::of_schema(&s.doc, ""))
        {
            state.declared = schema.keys.into_keys().collect();
        }
        for (slot, result) in shape.slots.iter().zip(results) {
            let Some(def) = slot.def.filter(|_| matches!(slot.part, Part::Whole | Part::Gather)) else {
                continue;
            };
            state.grows |= def.may_mutate.is_some() || adds(&def.on_error);
            let task = self.bundle.tasks.get(&def.task.text);
            if let Some(update) = task.and_then(|task| self.sets(def, task)) {
                state.writes(update);
            }
            match &def.output_mapping {
                Some(writes) => {
                    state.mapped.insert(def.reference.text.clone());
                    state.output_mapping(writes, result);
                }
                None if task.is_some_and(|task| self.keeps_nothing(def, task)) => {}
                None => state.write(def.reference.text.clone(), (**result).clone()),
            }
        }
        for merge in shape.arrows.iter().filter_map(|arrow| arrow.synchronization()?.merge.as_ref()) {
            state.target(&merge.target.text, None, Known::Anything);
        }
    }

    /// `update_context`, `assert` and `sleep` write nothing beyond what they set.
    fn keeps_nothing(&self, def: &NodeDef, task: &TaskDef) -> bool {
        let [only] = &task.steps[..] else { return false };
        let action = self.bundle.actions.get(&only.action.text).map(|action| &action.implementation);
        match action {
            Some(Implementation::UpdateContext(_)) => def.inline == Inline::Action,
            Some(Implementation::Assert(_) | Implementation::Sleep(_)) => true,
            _ => false,
        }
    }

    /// What an `update_context` on the node itself sets.
    fn sets(&self, def: &NodeDef, task: &TaskDef) -> Option<&'a Writes> {
        let only = task.steps.first().filter(|_| def.inline == Inline::Action && task.steps.len() == 1)?;
        match &self.bundle.actions.get(&only.action.text)?.implementation {
            Implementation::UpdateContext(update) => Some(&update.set),
            _ => None,
        }
    }

    fn result_of(&self, slot: &Slot<'a>) -> Known {
        let Some(def) = slot.def else { return Known::Anything };
        match slot.part {
            Part::Gather => return Known::List,
            Part::Whole | Part::Items => {}
            _ => return Known::Anything,
        }
        // A rule may put its own result in place of the node's.
        let rules = def.on_error.iter().chain(&self.bundle.workflow.on_error);
        let mut rules = rules.filter(|rule| matches!(rule.response, Response::Skip { output: Some(_) }));
        if rules.next().is_some() {
            return Known::Anything;
        }
        self.bundle.tasks.get(&def.task.text).map_or(Known::Anything, |task| self.result_of_task(task))
    }

    fn result_of_task(&self, task: &TaskDef) -> Known {
        if let Some(schema) = &task.output_schema {
            return Known::of_schema(&schema.doc, "the task's output_schema");
        }
        let into_output =
            |write: &Write| Target::parse(&write.to.text).is_ok_and(|to| to.root == Root::Output);
        let writes_output = |step: &StepDef| {
            let action = self.bundle.actions.get(&step.action.text).map(|action| &action.implementation);
            let sets = match action {
                Some(Implementation::UpdateContext(update)) => update.set.0.iter().any(into_output),
                _ => false,
            };
            sets || step.output_mapping.as_ref().is_some_and(|writes| writes.0.iter().any(into_output))
        };
        let Some(last) = task.steps.last() else { return Known::Anything };
        if last.condition.is_some() || task.steps.iter().any(writes_output) {
            return Known::Anything;
        }
        let goes_on = last.on_failure == wonder_lang::def::OnFailure::Continue;
        let action = self.bundle.actions.get(&last.action.text).filter(|_| !goes_on);
        action.map_or(Known::Anything, |action| Known::of_action(action))
    }

    /// The state of a task: what its steps write.
    pub(super) fn state_of_task(&self, task: &TaskDef) -> KnownState {
        let mut state = KnownState { of_task: true, ..KnownState::default() };
        state.write("_errors".into(), Known::Anything);
        for step in &task.steps {
            let action = self.bundle.actions.get(&step.action.text);
            if let Some(Implementation::UpdateContext(update)) = action.map(|action| &action.implementation) {
                state.writes(&update.set);
            }
            let result = action.map_or(Known::Anything, |action| Known::of_action(action));
            match &step.output_mapping {
                Some(writes) => {
                    state.mapped.insert(step.reference.text.clone());
                    state.output_mapping(writes, &result);
                }
                None => state.write(step.reference.text.clone(), result),
            }
        }
        state
    }
}

impl KnownState {
    fn writes(&mut self, writes: &Writes) {
        for write in &writes.0 {
            self.target(&write.to.text, Some(&write.value), Known::Anything);
        }
    }

    fn output_mapping(&mut self, writes: &Writes, result: &Known) {
        for write in &writes.0 {
            let whole = matches!(&write.value, Tree::Text(text) if text.as_str().trim() == "result");
            let value = if whole { result.clone() } else { Known::Anything };
            self.target(&write.to.text, Some(&write.value), value);
        }
    }

    /// In a branch every target is the branch's own, and is read under `state`: so whatever its root, its first key
    /// counts.
    fn target(&mut self, target: &str, value: Option<&Tree>, known: Known) {
        let Ok(target) = Target::parse(target) else { return };
        match (&target.path[..], value) {
            ([key], _) if target.way == Way::Replace => self.write(key.clone(), known),
            ([key, ..], _) => self.write(key.clone(), Known::Anything),
            ([], Some(Tree::Map(map))) => {
                map.keys().for_each(|key| self.write(key.clone(), Known::Anything));
            }
            // The whole of the output says nothing of `state` outside a branch, but a branch may be here.
            ([], _) => self.anything = true,
        }
    }

    /// What somebody writes, for a message.
    pub(super) fn written(&self) -> BTreeSet<&Name> {
        self.keys.keys().filter(|key| !key.starts_with('_')).collect()
    }
}
