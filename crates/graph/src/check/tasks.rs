//! Tasks and their steps: what each step may read, which depends on where its task was written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::actions::CheckedAction;
use super::types::Written;
use super::{Check, Checker};
use crate::codes;
use crate::known::{Known, KnownRoots};
use crate::scope::{INPUT, Items, OF_TASK, SECRET, Scope};
use crate::texts::TextKind;
use wonder_lang::def::{Effect, Implementation, Name, OnFailure, RetryOn, StepDef, TaskDef, Text, Tree};
use wonder_lang::problem::Problem;

/// Where a task was written.
pub(super) enum Place<'s> {
    /// Among the tasks, or as steps on a node: its steps see the task's scope, and of the node what a task has
    /// not.
    Steps(Scope),
    /// One action on a node, which sees what the node sees, or what the node maps.
    Action { node: &'s Scope, mapping: Option<&'s Tree> },
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
        // Which input an expression sees beside the mapped keys is for the run to say.
        let known = KnownRoots { input: Arc::default(), ..outer.known.clone() };
        let both = outer.with_keys(mapping).knowing(known);
        let known = Known::of_mapping(mapping, "the input_mapping").with("feedback");
        let known = KnownRoots { input: Arc::new(known), ..KnownRoots::default() };
        let templates =
            if on_context { both.clone() } else { Scope::of(INPUT).with_keys(mapping).knowing(known) };
        Views { exprs: both.clone(), templates, callee: both }
    }
}

impl Checker<'_, '_> {
    /// A task as something by itself. It sees nothing but its own input, state and output.
    pub(super) fn task_apart(&mut self, text: &Text) {
        let bundle = self.check.bundle;
        let Some(def) = bundle.tasks.get(&text.text) else {
            let known = bundle.tasks.keys().map(|name| &**name);
            return self.check.unknown(codes::UNKNOWN_TASK, text, "task", known);
        };
        if self.check.tasks_apart.insert(text.text.clone()) {
            let schema = def.input_schema.as_ref();
            let input =
                schema.map_or(Known::Anything, |s| Known::of_schema(&s.doc, "the task's input_schema"));
            let known = KnownRoots { input: Arc::new(input.with("feedback")), ..KnownRoots::default() };
            let place = Place::Steps(Scope::of(OF_TASK).knowing(known));
            self.check.task(&text.text, def, &place, &self.scopes.items);
        }
    }
}

impl Check<'_> {
    pub(super) fn task(&mut self, name: &Name, def: &TaskDef, place: &Place<'_>, items: &Items) {
        self.schema(def.input_schema.as_ref(), "`input_schema`");
        let output_schema = self.schema(def.output_schema.as_ref(), "`output_schema`");
        self.task_shape(name, def);
        self.task_retry(name, def);
        self.task_times(name, def);
        let state = Arc::new(self.state_of_task(def));
        for step in &def.steps {
            let Some(known) = self.actions.get(&step.action.text).cloned() else {
                let known = self.bundle.actions.keys().map(|name| &**name);
                self.unknown(codes::UNKNOWN_ACTION, &step.action, "action", known);
                continue;
            };
            match place {
                Place::Action { node, mapping } => {
                    let views = match mapping {
                        Some(mapping) => Views::mapped(node, mapping, works_on_context(&known)),
                        None => Views::all(node),
                    };
                    self.action_reads(&known, &views, items);
                }
                Place::Steps(scope) => {
                    let known_roots = KnownRoots { state: Some(state.clone()), ..scope.known.clone() };
                    self.step(step, &known, &scope.clone().knowing(known_roots), items);
                }
            }
            if let Some(writes) = &step.output_mapping {
                let schemas = Written { state: None, output: output_schema.as_ref() };
                writes.0.iter().for_each(|write| self.write_fits(write, schemas));
            }
        }
    }

    /// What is wrong with the steps of a task whoever uses it.
    fn task_shape(&mut self, name: &Name, def: &TaskDef) {
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
            let Some(action) = self.actions.get(&step.action.text).map(|known| known.action.clone()) else {
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

    /// A `retry` that no step asks for, a step that asks where there is none, and a node that would do again what may
    /// happen only once.
    fn task_retry(&mut self, name: &Name, def: &TaskDef) {
        let asks = def.steps.iter().find(|step| step.on_failure == OnFailure::Retry);
        // What may not be tried again at all has been said.
        let once = |step: &StepDef| {
            self.actions.get(&step.action.text).is_some_and(|known| known.action.effect == Effect::Once)
        };
        let mut before_once = def.steps.iter().take_while(|step| !once(step));
        let asks_in_vain = before_once.find(|step| step.on_failure == OnFailure::Retry);
        let more = def.retry.is_some_and(|retry| retry.max_attempts > 1);
        match (def.retry_on, asks_in_vain) {
            (RetryOn::AnyFailure, _) if more => self.retry_of_once(def),
            (RetryOn::Request, _) if more && asks.is_none() => self.report(
                Problem::warning(
                    codes::IDLE_RETRY,
                    def.spot,
                    format!("no step of task `{name}` asks for its `retry`: it is tried once"),
                )
                .label("nothing can trigger its `retry`")
                .help("write `on_failure: retry` on the steps whose failure tries the whole task again"),
            ),
            (_, Some(step)) if def.retry.is_none() => self.report(
                Problem::warning(
                    codes::NO_RETRY,
                    step.reference.spot,
                    format!("`{}` says `on_failure: retry`, and nothing says how often", step.reference),
                )
                .label("tried once, as with `abort`")
                .help("write `retry: 3` beside `steps`: three attempts, the first included"),
            ),
            _ => {}
        }
    }

    /// The node's own `retry` goes as far as the first step that may happen only once; there it has to have begun.
    fn retry_of_once(&mut self, def: &TaskDef) {
        let Some(first) = def.steps.first() else { return };
        let known = self.actions.get(&first.action.text);
        if known.is_none_or(|known| known.action.effect != Effect::Once) {
            return;
        }
        let message = format!("`retry` would run `{}` again, which may happen only once", first.reference);
        self.report(
            Problem::error(codes::RETRY_AFTER_ONCE, first.reference.spot, message)
                .label("expected no `retry` here")
                .help(
                    "leave `retry` out: a failure goes to `on_error`, and a person is asked when the outcome is not \
                     known; or write `effects: idempotent` if twice does no harm",
                ),
        );
    }

    /// A step among others, or of a task by itself.
    fn step(&mut self, step: &StepDef, known: &CheckedAction, scope: &Scope, items: &Items) {
        match &step.input_mapping {
            Some(mapping) => {
                self.tree(mapping, scope, items);
                if let Some(requires) = &known.action.requires {
                    let whose = format!("action `{}`", step.action);
                    self.input_fits(mapping, requires, &whose, step.reference.spot);
                }
                self.action_reads(known, &Views::mapped(scope, mapping, works_on_context(known)), items);
            }
            None => self.action_reads(known, &Views::all(scope), items),
        }
        if let Some(writes) = &step.output_mapping {
            let result = Arc::new(Known::of_action(&known.action.def));
            let after = scope.clone().knowing(KnownRoots { result, ..scope.known.clone() });
            self.writes(writes, &after, items);
        }
        if let Some(condition) = &step.condition {
            self.expr_in(&condition.test, scope, items);
        }
    }

    fn action_reads(&mut self, known: &CheckedAction, views: &Views, items: &Items) {
        let worker = !known.action.def.implementation.is_coordinated();
        let templates = if worker { views.templates.with(SECRET) } else { views.templates.clone() };
        for reading in &known.readings {
            let scope = match reading.kind {
                TextKind::Template => &templates,
                TextKind::Expr => &views.exprs,
                TextKind::Callee | TextKind::CalleeTemplate => &views.callee,
            };
            self.read(&reading.as_use(), scope, items);
        }
    }
}

/// `update_context` and `assert` are about a context, mapped input or not.
fn works_on_context(known: &CheckedAction) -> bool {
    matches!(known.action.def.implementation, Implementation::UpdateContext(_) | Implementation::Assert(_))
}
