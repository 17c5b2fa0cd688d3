//! Actions by themselves: their fields, texts, schemas. What they read is looked at where they are used.

use std::sync::Arc;

use super::Check;
use crate::compile::{self, CompiledAction};
use crate::readings::{self, Reading};
use crate::texts::BadText;
use crate::{Action, codes};
use wonder_lang::def::{HumanGate, Implementation, Spot};
use wonder_lang::problem::Problem;
use wonder_lang::schema::Schema;

/// What the places that use an action need to know of it.
pub(super) struct CheckedAction {
    pub(super) action: Arc<Action>,
    pub(super) readings: Vec<Reading>,
}

impl Check<'_> {
    pub(super) fn actions(&mut self) {
        for (name, compiled) in compile::actions(self.bundle, &mut self.parsed) {
            let checked = self.action(compiled);
            self.actions.insert(name, Arc::new(checked));
        }
    }

    fn action(&mut self, compiled: CompiledAction) -> CheckedAction {
        let CompiledAction { action, texts, bad } = compiled;
        let def = &action.def;
        self.fields(def);
        bad.iter().for_each(|bad| self.bad_text(bad));
        if let Implementation::HumanGate(gate) = &def.implementation {
            self.form(gate, def.spot);
        }
        self.remote_schemas(def);
        self.secrets(&texts);
        self.texts_of(def, &texts);
        CheckedAction { readings: readings::of_texts(&texts), action }
    }

    fn bad_text(&mut self, bad: &BadText) {
        match bad {
            BadText::Expr(text, _) => drop(self.expr(text)),
            BadText::Template(text, _) => drop(self.template(text)),
            BadText::Target(text, _) => drop(self.target(text)),
            BadText::Schema(def, key, _) => drop(self.schema(Some(def), key)),
            // What is missing is said of the action's fields.
            BadText::Missing(_) => {}
        }
    }

    /// A schema may compile and lead outside all the same.
    fn remote_schemas(&mut self, def: &wonder_lang::def::ActionDef) {
        self.schema(def.requires.as_ref(), "`requires`");
        self.schema(def.produces.as_ref(), "`produces`");
        match &def.implementation {
            Implementation::LlmCall(call) => {
                drop(self.schema(call.output_schema.as_ref(), "`output_schema`"))
            }
            Implementation::Assert(assert) => drop(self.schema(assert.schema.as_ref(), "`schema`")),
            _ => {}
        }
    }

    fn form(&mut self, gate: &HumanGate, spot: Spot) {
        let form: Option<Schema> = self.schema(gate.form.as_ref(), "`form`");
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
