//! Tasks and their steps. What a step sees depends on where its task was written: by itself, as steps on a
//! node, or as one action on a node.

use std::sync::Arc;

use super::actions::{KnownAction, named};
use super::{CannotCompile, Compiled, Compiler};
use crate::scope::{OF_TASK, Scope, of_steps};
use crate::texts::TextKind;
use crate::{MapTree, Step, StepCondition, StepInput, Task};
use wonder_lang::def::{Effect, Inline, Name, NodeDef, StepDef, TaskDef};
use wonder_lang::expr::Read;

/// Where a task was written.
#[derive(Clone, Copy)]
pub(super) enum Place<'s> {
    /// By itself: it sees nothing but its own input, state and output.
    Apart,
    /// One action on a node, which sees what the node sees, or what the node maps.
    Action { node: &'s Scope, mapped: bool },
    /// Steps on a node: as by itself, and what only the node knows (its branch, its needs, the run).
    Steps { node: &'s Scope },
}

/// A task, and what it reads of the node it was written on.
pub(super) struct BuiltTask {
    pub(super) task: Arc<Task>,
    pub(super) reads: Vec<Read>,
}

/// Whether a task is one action that was written directly on its node.
pub(crate) fn is_lone_action(node: &NodeDef, task: &TaskDef) -> bool {
    match &task.steps[..] {
        [only] => {
            let bare =
                only.input_mapping.is_none() && only.output_mapping.is_none() && only.condition.is_none();
            bare && node.inline == Inline::Action
        }
        _ => false,
    }
}

impl Compiler<'_, '_> {
    pub(super) fn task(&mut self, name: &Name, def: &TaskDef, place: Place<'_>) -> Compiled<BuiltTask> {
        let (mut steps, mut reads, mut effect) =
            (Vec::with_capacity(def.steps.len()), Vec::new(), Effect::None);
        for step in &def.steps {
            let Some(known) = self.actions.get(&step.action.text).cloned() else {
                return Err(CannotCompile::new(format!("there is no action `{}`", step.action)));
            };
            effect = effect.max(known.action.effect);
            steps.push(match place {
                Place::Action { node, mapped } => {
                    reads.extend(named(&known.readings, node, &self.scopes.items));
                    lone_step(step, &known, mapped)
                }
                Place::Apart => self.step(step, &known, &Scope::of(OF_TASK), &mut reads)?,
                Place::Steps { node } => self.step(step, &known, &of_steps(node), &mut reads)?,
            });
        }
        let task = Task {
            name: name.clone(),
            version: def.version,
            input_schema: self.schema(def.input_schema.as_ref())?,
            output_schema: self.schema(def.output_schema.as_ref())?,
            retry: def.retry,
            retry_on: def.retry_on,
            timeout_ms: def.timeout_ms,
            steps,
            effect,
        };
        Ok(BuiltTask { task: Arc::new(task), reads: wonder_lang::expr::minimal(reads) })
    }

    /// A step among others, or of a task by itself.
    fn step(
        &mut self,
        step: &StepDef,
        known: &KnownAction,
        scope: &Scope,
        reads: &mut Vec<Read>,
    ) -> Compiled<Step> {
        let mut all = Vec::new();
        let input = match &step.input_mapping {
            Some(mapping) => {
                let tree = self.tree(mapping)?;
                reads_of(&tree, &mut all);
                StepInput::Mapped(tree)
            }
            None => StepInput::Named(named(&known.readings, scope, &self.scopes.items)),
        };
        // A mapped step's templates read what was mapped, which is none of the node's business.
        let outward = known.readings.iter().filter(|reading| {
            step.input_mapping.is_none() || matches!(reading.kind, TextKind::Expr | TextKind::Callee)
        });
        all.extend(outward.map(|reading| reading.read.clone()));
        let output = step.output_mapping.as_ref().map(|writes| self.writes(writes)).transpose()?;
        output.iter().flatten().for_each(|write| reads_of(&write.value, &mut all));
        let condition = match &step.condition {
            None => None,
            Some(condition) => {
                let test = self.expr(&condition.test)?;
                all.extend_from_slice(test.reads());
                Some(StepCondition { test, then: condition.then, otherwise: condition.otherwise })
            }
        };
        let inner = ["state", "output", "result", "secret"];
        let is_node =
            |read: &Read| !inner.contains(&&*read.root) && scope.sees(&self.scopes.items, &read.root);
        reads.extend(all.into_iter().filter(is_node));
        Ok(Step {
            reference: step.reference.text.clone(),
            action: known.action.clone(),
            input,
            output,
            on_failure: step.on_failure,
            condition,
            artifact_above: step.artifact_above,
        })
    }
}

/// The only step of a task that is an action written on a node.
fn lone_step(step: &StepDef, known: &KnownAction, mapped: bool) -> Step {
    Step {
        reference: step.reference.text.clone(),
        action: known.action.clone(),
        input: StepInput::Whole { mapped },
        output: None,
        on_failure: step.on_failure,
        condition: None,
        artifact_above: step.artifact_above,
    }
}

/// Every path a mapping reads.
fn reads_of(tree: &MapTree, into: &mut Vec<Read>) {
    match tree {
        MapTree::Expr(expr) => into.extend_from_slice(expr.reads()),
        MapTree::Literal(_) => {}
        MapTree::List(list) => list.iter().for_each(|tree| reads_of(tree, into)),
        MapTree::Map(map) => map.iter().for_each(|(_, tree)| reads_of(tree, into)),
    }
}
