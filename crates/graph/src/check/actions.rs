//! Actions by themselves: their fields, texts, schemas. What they read is looked at where they are used.

use std::sync::Arc;

use super::Check;
use crate::codes;
use crate::readings::{self, Reading};
use crate::scope::{Items, Scope};
use crate::texts::{self, TextKind};
use wonder_lang::def::{ActionDef, HumanGate, Implementation, LlmCall, Spot};
use wonder_lang::problem::Problem;
use wonder_lang::schema::Schema;

/// What the places that use an action need to know of it.
pub(super) struct CheckedAction {
    pub(super) def: Arc<ActionDef>,
    pub(super) requires: Option<Schema>,
    pub(super) readings: Vec<Reading>,
}

impl Check<'_> {
    pub(super) fn actions(&mut self) {
        for (name, def) in &self.bundle.actions {
            let checked = self.action(def);
            self.actions.insert(name.clone(), Arc::new(checked));
        }
    }

    fn action(&mut self, def: &Arc<ActionDef>) -> CheckedAction {
        self.fields(def);
        texts::each(def, &mut |kind, text| match kind {
            TextKind::Template | TextKind::CalleeTemplate => drop(self.template(text)),
            TextKind::Expr | TextKind::Callee => drop(self.expr(text)),
        });
        let readings = readings::of_action(def, self.bundle, &mut self.parsed);
        let requires = self.schema(def.requires.as_ref(), "`requires`");
        self.schema(def.produces.as_ref(), "`produces`");
        match &def.implementation {
            Implementation::LlmCall(LlmCall { output_schema, .. }) => {
                self.schema(output_schema.as_ref(), "`output_schema`");
            }
            Implementation::Assert(assert) => {
                self.schema(assert.schema.as_ref(), "`schema`");
            }
            Implementation::HumanGate(gate) => self.form(gate, def.spot),
            Implementation::UpdateContext(update) => {
                let anything = Scope { anything: true, ..Scope::default() };
                self.writes(&update.set, &anything, &Items::default());
            }
            _ => {}
        }
        self.secrets(def);
        CheckedAction { def: def.clone(), requires, readings }
    }

    fn form(&mut self, gate: &HumanGate, spot: Spot) {
        let form = self.schema(gate.form.as_ref(), "`form`");
        let (Some(form), Some(default)) = (form, &gate.default) else { return };
        if let Err(violations) = form.check(default) {
            let why = violations.first().map_or("", |violation| &violation.message);
            let message = format!("the gate's `default` does not fit its `form`: {why}");
            self.report(
                Problem::error(codes::SCHEMA_FORBIDS, spot, message)
                    .label("expected an answer that the form allows"),
            );
        }
    }
}
