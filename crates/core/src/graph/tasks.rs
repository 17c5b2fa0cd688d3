//! Tasks and their steps. What a step sees depends on where its task was written: by itself, as steps on a
//! node, or as one action on a node.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::actions::{KnownAction, named};
use super::check::Check;
use super::mapping::reads_of;
use super::scope::{BRANCH, INPUT, Items, NEEDS, OF_TASK, RUN, SECRET, Scope};
use super::texts::TextKind;
use super::types::Written;
use super::{Step, StepCondition, StepInput, Task, codes};
use crate::def::{Effect, Implementation, Inline, Name, NodeDef, OnFailure, StepDef, TaskDef, Tree};
use crate::expr::Read;
use crate::problem::Problem;

/// Where a task was written.
#[derive(Clone, Copy)]
pub(super) enum Place<'s> {
    /// By itself: it sees nothing but its own input, state and output.
    Apart,
    /// One action on a node, which sees what the node sees, or what the node maps.
    Action { node: &'s Scope, mapping: Option<&'s Tree> },
    /// Steps on a node: as by itself, and what only the node knows (its branch, its needs, the run).
    Steps { node: &'s Scope },
}

/// A task, and what it reads of the node it was written on.
pub(super) struct BuiltTask {
    pub(super) task: Arc<Task>,
    pub(super) reads: Vec<Read>,
}

/// What compiling tasks needs beside the checker.
pub(super) struct Parts<'p> {
    pub(super) actions: &'p HashMap<Name, KnownAction>,
    pub(super) items: &'p Items,
}

/// What the texts of one action see.
struct Views {
    exprs: Scope,
    templates: Scope,
    callee: Scope,
}

impl Views {
    fn all(scope: &Scope) -> Views {
        Views { exprs: scope.clone(), templates: scope.clone(), callee: scope.clone() }
    }

    /// With an input mapping, templates see its keys; what works on a context goes on seeing that too.
    fn mapped(outer: &Scope, mapping: &Tree, on_context: bool) -> Views {
        let both = outer.with_keys(mapping);
        let templates = if on_context { both.clone() } else { Scope::of(INPUT).with_keys(mapping) };
        Views { exprs: both.clone(), templates, callee: both }
    }
}

/// Whether a task is one action that was written directly on its node.
pub(super) fn is_lone_action(node: &NodeDef, task: &TaskDef) -> bool {
    match &task.steps[..] {
        [only] => {
            let bare =
                only.input_mapping.is_none() && only.output_mapping.is_none() && only.condition.is_none();
            bare && node.inline == Inline::Action
        }
        _ => false,
    }
}

impl Check<'_> {
    pub(super) fn task(
        &mut self,
        name: &Name,
        def: &TaskDef,
        place: Place<'_>,
        parts: &Parts<'_>,
    ) -> BuiltTask {
        let input_schema = self.schema(def.input_schema.as_ref(), "`input_schema`");
        let output_schema = self.schema(def.output_schema.as_ref(), "`output_schema`");
        self.task_shape(name, def, parts);
        self.task_times(name, def, parts);
        let (mut steps, mut reads, mut effect) =
            (Vec::with_capacity(def.steps.len()), Vec::new(), Effect::None);
        for step in &def.steps {
            let Some(known) = parts.actions.get(&step.action.text) else {
                let known = self.bundle.actions.keys().map(|name| &**name);
                self.unknown(codes::UNKNOWN_ACTION, &step.action, "action", known);
                continue;
            };
            effect = effect.max(known.action.effect);
            let built = match place {
                Place::Action { node, mapping } => {
                    self.lone_step(step, known, node, mapping, parts, &mut reads)
                }
                Place::Apart => self.step(step, known, &Scope::of(OF_TASK), parts, &mut reads),
                Place::Steps { node } => self.step(step, known, &of_steps(node), parts, &mut reads),
            };
            if let Some(writes) = &step.output_mapping {
                let schemas = Written { state: None, output: output_schema.as_ref() };
                writes.0.iter().for_each(|write| self.write_fits(write, schemas));
            }
            steps.push(built);
        }
        let task = Task {
            name: name.clone(),
            version: def.version,
            input_schema,
            output_schema,
            retry: def.retry,
            timeout_ms: def.timeout_ms,
            steps,
            effect,
        };
        BuiltTask { task: Arc::new(task), reads: crate::expr::minimal(reads) }
    }

    /// What is wrong with the steps of a task whoever uses it.
    fn task_shape(&mut self, name: &Name, def: &TaskDef, parts: &Parts<'_>) {
        if def.steps.is_empty() {
            self.report(
                Problem::error(codes::NO_STEPS, def.spot, format!("task `{name}` has no steps"))
                    .label("expected at least one step"),
            );
        }
        let mut refs = BTreeSet::new();
        let mut once: Option<&StepDef> = None;
        for step in &def.steps {
            self.reference(&step.reference, "step");
            if !refs.insert(&step.reference.text) {
                let message = format!("task `{name}` has two steps `{}`", step.reference);
                self.report(
                    Problem::error(codes::DUPLICATE_REF, step.reference.spot, message)
                        .label("expected a ref that no other step of the task has"),
                );
            }
            let Some(action) = parts.actions.get(&step.action.text).map(|known| &known.action) else {
                continue;
            };
            let implementation = &action.def.implementation;
            let kind = implementation.kind();
            if def.steps.len() > 1 && implementation.pauses() {
                let message =
                    format!("`{kind}` waits, and task `{name}` has other steps: tasks do not pause");
                self.report(
                    Problem::error(codes::PAUSING_STEP, step.reference.spot, message)
                        .label("expected this action to be alone in its task")
                        .help("make it a node of its own"),
                );
            }
            if action.effect == Effect::Once {
                once = once.or(Some(step));
            }
            if let (Some(once), OnFailure::Retry) = (once, step.on_failure) {
                let message = format!(
                    "`on_failure: retry` would run `{}` again, which may happen only once",
                    once.reference
                );
                self.report(
                    Problem::error(codes::RETRY_AFTER_ONCE, step.reference.spot, message)
                        .label("expected `abort` or `continue`")
                        .help("put the `once` step last, or in a node of its own"),
                );
            }
        }
    }

    /// The only step of a task that is an action written on a node.
    fn lone_step(
        &mut self,
        step: &StepDef,
        known: &KnownAction,
        node: &Scope,
        mapping: Option<&Tree>,
        parts: &Parts<'_>,
        reads: &mut Vec<Read>,
    ) -> Step {
        let views = match mapping {
            Some(mapping) => Views::mapped(node, mapping, works_on_context(known)),
            None => Views::all(node),
        };
        self.action_reads(known, views, parts);
        reads.extend(named(&known.readings, node, parts.items));
        Step {
            reference: step.reference.text.clone(),
            action: known.action.clone(),
            input: StepInput::Whole { mapped: mapping.is_some() },
            output: None,
            on_failure: step.on_failure,
            condition: None,
        }
    }

    /// A step among others, or of a task by itself.
    fn step(
        &mut self,
        step: &StepDef,
        known: &KnownAction,
        scope: &Scope,
        parts: &Parts<'_>,
        reads: &mut Vec<Read>,
    ) -> Step {
        let mut all = Vec::new();
        let input = match &step.input_mapping {
            Some(mapping) => {
                let tree = self.tree(mapping, scope, parts.items);
                if let Some(requires) = &known.action.requires {
                    self.input_fits(
                        mapping,
                        requires,
                        &format!("action `{}`", step.action),
                        step.reference.spot,
                    );
                }
                self.action_reads(known, Views::mapped(scope, mapping, works_on_context(known)), parts);
                reads_of(&tree, &mut all);
                StepInput::Mapped(tree)
            }
            None => {
                self.action_reads(known, Views::all(scope), parts);
                StepInput::Named(named(&known.readings, scope, parts.items))
            }
        };
        // A mapped step's templates read what was mapped, which is none of the node's business.
        let outward = known.readings.iter().filter(|reading| {
            step.input_mapping.is_none() || matches!(reading.kind, TextKind::Expr | TextKind::Callee)
        });
        all.extend(outward.map(|reading| reading.read.clone()));
        let output = step.output_mapping.as_ref().map(|writes| self.writes(writes, scope, parts.items));
        output.iter().flatten().for_each(|write| reads_of(&write.value, &mut all));
        let condition = step.condition.as_ref().and_then(|condition| {
            let test = self.expr_in(&condition.test, scope, parts.items)?;
            all.extend_from_slice(test.reads());
            Some(StepCondition { test, then: condition.then, otherwise: condition.otherwise })
        });
        let inner = ["state", "output", "result", "secret"];
        let is_node = |read: &Read| !inner.contains(&&*read.root) && scope.sees(parts.items, &read.root);
        reads.extend(all.into_iter().filter(is_node));
        Step {
            reference: step.reference.text.clone(),
            action: known.action.clone(),
            input,
            output,
            on_failure: step.on_failure,
            condition,
        }
    }

    fn action_reads(&mut self, known: &KnownAction, views: Views, parts: &Parts<'_>) {
        let worker = !known.action.def.implementation.is_coordinated();
        let templates = if worker { views.templates.with(SECRET) } else { views.templates };
        for reading in known.readings.iter() {
            let scope = match reading.kind {
                TextKind::Template => &templates,
                TextKind::Expr => &views.exprs,
                TextKind::Callee | TextKind::CalleeTemplate => &views.callee,
            };
            self.read(&reading.as_use(), scope, parts.items);
        }
    }
}

/// Steps written on a node see the task's scope, and of the node what a task has not.
fn of_steps(node: &Scope) -> Scope {
    Scope { roots: OF_TASK | node.roots & (BRANCH | NEEDS | RUN), ..node.clone() }
}

/// `update_context` and `assert` are about a context, mapped input or not.
fn works_on_context(known: &KnownAction) -> bool {
    matches!(known.action.def.implementation, Implementation::UpdateContext(_) | Implementation::Assert(_))
}
