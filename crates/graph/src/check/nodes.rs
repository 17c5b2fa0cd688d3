//! Nodes: what goes in, what comes out, and whether the schemas allow it.

use std::sync::Arc;

use super::Checker;
use super::tasks::Place;
use super::types::Written;
use crate::codes;
use crate::compile::is_lone_action;
use crate::known::{Known, KnownRoots};
use crate::scope::{ERROR, OF_TASK, RESULT, Scope, of_steps};
use crate::shape::Part;
use wonder_lang::def::{Implementation, Inline, NodeDef, TaskDef, Text};
use wonder_lang::problem::Problem;
use wonder_lang::schema::Schema;

impl<'a> Checker<'a, '_> {
    pub(super) fn node(&mut self, at: usize, schemas: Written<'_>) {
        let shape = self.shape;
        let slot = &shape.slots[at];
        let Some(def) = slot.def else {
            if let Part::Validator { task } = slot.part {
                self.task_apart(&Text::new(task.clone()));
            }
            return;
        };
        let task = self.check.bundle.tasks.get(&def.task.text).map(|task| &**task);
        if !shape.is_dag {
            self.dag_keys(def);
        }
        if matches!(slot.part, Part::Whole | Part::Items) {
            self.performed(at, def, task);
        }
        if matches!(slot.part, Part::Whole | Part::Gather) {
            self.output(at, def, task, schemas);
        }
    }

    fn performed(&mut self, at: usize, def: &'a NodeDef, task_def: Option<&'a TaskDef>) {
        let scopes = self.scopes;
        let scope = &scopes.of[at].clone().knowing(self.known.roots());
        self.rules(&def.on_error, &scope.with(ERROR));
        self.check.node_times(def, task_def);
        if let Some(mapping) = &def.input_mapping {
            self.check.mapping_secrets(mapping);
            self.check.tree(mapping, scope, &scopes.items);
        }
        match task_def.filter(|_| def.inline != Inline::No) {
            Some(task_def) => self.inline(def, task_def, scope),
            None => self.task_apart(&def.task),
        }
        if let Some(task) = task_def {
            self.input(def, task);
        }
    }

    /// A task written on its node.
    fn inline(&mut self, def: &'a NodeDef, task_def: &TaskDef, scope: &Scope) {
        let mapping = def.input_mapping.as_ref();
        let place = match mapping {
            _ if is_lone_action(def, task_def) => Place::Action { node: scope, mapping },
            Some(mapping) => {
                let input = Known::of_mapping(mapping, "the input_mapping").with("feedback");
                Place::Steps(
                    Scope::of(OF_TASK)
                        .knowing(KnownRoots { input: Arc::new(input), ..KnownRoots::default() }),
                )
            }
            None => Place::Steps(of_steps(scope)),
        };
        self.check.task(&def.task.text, task_def, &place, &self.scopes.items);
    }

    /// What the node maps, against what its task or only action asks for.
    fn input(&mut self, def: &NodeDef, task: &TaskDef) {
        let Some(mapping) = &def.input_mapping else { return };
        let (name, spot) = (&def.task.text, def.reference.spot);
        let schema = task.input_schema.as_ref().and_then(|schema| Schema::compile(&schema.doc).ok());
        if let Some(schema) = schema {
            self.check.input_fits(mapping, &schema, &format!("task `{name}`"), spot);
        }
        let only = task.steps.first().filter(|_| is_lone_action(def, task));
        let known = only.and_then(|only| self.check.actions.get(&only.action.text)).cloned();
        if let Some(requires) = known.as_ref().and_then(|known| known.action.requires.as_ref()) {
            self.check.input_fits(mapping, requires, &format!("action `{name}`"), spot);
        }
    }

    fn output(&mut self, at: usize, def: &'a NodeDef, task: Option<&'a TaskDef>, schemas: Written<'_>) {
        let outside = self.flow.outside(at) && !self.flow.gave_up;
        let scope = self.scopes.of[at].with(RESULT).knowing(self.known.roots_after(at));
        let only = task.and_then(|task| match &task.steps[..] {
            [only] => self.check.actions.get(&only.action.text).cloned(),
            _ => None,
        });
        let kind = only.as_ref().map(|known| &known.action.def.implementation);
        let lone = task.is_some_and(|task| is_lone_action(def, task));
        if let Some(writes) = &def.output_mapping {
            self.check.writes(writes, &scope, &self.scopes.items);
            for write in &writes.0 {
                self.check.mapping_secrets(&write.value);
                if outside {
                    self.check.write_fits(write, schemas);
                }
            }
        } else {
            let writes_nothing = match kind {
                Some(Implementation::UpdateContext(_)) => lone,
                Some(Implementation::Assert(_) | Implementation::Sleep(_)) => true,
                _ => false,
            };
            if outside && !writes_nothing {
                self.check.default_write_fits(&def.reference.text, def.reference.spot, schemas);
            }
        }
        if let Some(Implementation::UpdateContext(update)) = kind.filter(|_| lone && outside) {
            update.set.0.iter().for_each(|write| self.check.write_fits(write, schemas));
        }
    }

    /// Keys that only a dag has.
    fn dag_keys(&mut self, def: &NodeDef) {
        let spot = def.reference.spot;
        let when = def.when.as_ref().map(|text| text.spot);
        let foreach = def.foreach.as_ref().map(|foreach| foreach.items.spot);
        for (key, found, help) in [
            (
                "needs",
                def.needs.first().map(|need| need.spot),
                "write `next` on the node before, or `kind: dag`",
            ),
            ("join", def.join.map(|_| spot), "a graph joins branches with `synchronization` on a transition"),
            ("when", when, "write the condition on the transitions that lead here"),
            ("foreach", foreach, "write `foreach` on the transition that leads here"),
        ] {
            let Some(found) = found else { continue };
            self.check.report(
                Problem::error(
                    codes::DAG_ONLY,
                    found,
                    format!("`{key}` on node `{}` has no place in a graph", def.reference),
                )
                .label("only a dag has this")
                .help(help),
            );
        }
    }
}
