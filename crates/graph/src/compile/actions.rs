//! Actions, compiled once however many steps name them.

use std::sync::Arc;

use super::{CannotCompile, Compiled, Compiler};
use crate::readings::{self, Reading};
use crate::scope::{Items, Scope};
use crate::{
    Action, Assertion, AssertionTest, CallSpec, CalleeSpec, Coordinated, GateSpec, SleepSpec, WaitSpec,
};
use wonder_lang::def::{
    ActionDef, Assert, Callee, ChildFailure, EventTimeout, HumanGate, Implementation, Name, Sleep, Text,
    WaitEvent, WorkflowCall,
};
use wonder_lang::expr::Read;
use wonder_lang::template::Template;
use wonder_lang::value::Value;

#[derive(Clone, Debug)]
pub(super) struct KnownAction {
    pub(super) action: Arc<Action>,
    pub(super) readings: Arc<Vec<Reading>>,
}

impl Compiler<'_, '_> {
    pub(super) fn action(&mut self, name: &Name, def: &Arc<ActionDef>) -> Compiled<KnownAction> {
        let readings = readings::of_action(def, self.bundle, &mut self.parsed);
        let requires = self.schema(def.requires.as_ref())?;
        let produces = self.schema(def.produces.as_ref())?;
        let coordinated = self.coordinated(name, def)?;
        let action = Action { name: name.clone(), def: def.clone(), requires, produces, coordinated };
        Ok(KnownAction { action: Arc::new(action), readings: Arc::new(readings) })
    }

    fn coordinated(&mut self, name: &Name, def: &ActionDef) -> Compiled<Option<Coordinated>> {
        Ok(Some(match &def.implementation {
            Implementation::UpdateContext(update) => {
                Coordinated::UpdateContext { set: self.writes(&update.set)? }
            }
            Implementation::Assert(assert) => Coordinated::Assert(self.assertion(assert)?),
            Implementation::HumanGate(gate) => Coordinated::HumanGate(self.gate(name, gate)?),
            Implementation::WorkflowCall(call) => Coordinated::WorkflowCall(self.call(call, def)?),
            Implementation::WaitEvent(wait) => Coordinated::WaitEvent(self.wait(wait)?),
            Implementation::Sleep(sleep) => Coordinated::Sleep(self.sleep(sleep)?),
            _ => return Ok(None),
        }))
    }

    fn assertion(&mut self, assert: &Assert) -> Compiled<Assertion> {
        let message = self.optional_template(assert.message.as_ref())?;
        let schema = self.schema(assert.schema.as_ref())?;
        let test = match (&assert.that, (&assert.value, schema), (&assert.score, &assert.score_at_least)) {
            (Some(that), _, _) => AssertionTest::That(self.expr(that)?),
            (_, (Some(value), Some(schema)), _) => AssertionTest::Fits { value: self.expr(value)?, schema },
            (_, _, (Some(score), Some(at_least))) => {
                AssertionTest::Scores { score: self.expr(score)?, at_least: self.tree(at_least)? }
            }
            _ => return Err(CannotCompile::new("an `assert` has no test")),
        };
        Ok(Assertion { test, message })
    }

    fn gate(&mut self, name: &Name, gate: &HumanGate) -> Compiled<GateSpec> {
        let title = gate.title.clone().unwrap_or_else(|| Text::new(name.clone()));
        Ok(GateSpec {
            title: self.template(&title)?,
            body: self.optional_template(gate.body.as_ref())?,
            form: self.schema(gate.form.as_ref())?,
            assignees: self.templates(&gate.assignees)?,
            quorum: gate.quorum,
            timeout_ms: gate.timeout_ms,
            on_timeout: gate.on_timeout,
            default: gate.default.clone().unwrap_or(Value::Null),
            escalate: self.templates(&gate.escalate)?,
            remind_every_ms: gate.remind_every_ms,
        })
    }

    fn call(&mut self, call: &WorkflowCall, def: &ActionDef) -> Compiled<CallSpec> {
        let workflow = match &call.workflow {
            Callee::Named(name) => CalleeSpec::Named(self.template(name)?),
            Callee::FromContext { from_context } => CalleeSpec::FromContext(self.expr(from_context)?),
        };
        Ok(CallSpec {
            workflow,
            catch: call.on_failure == ChildFailure::Catch,
            inherit_timeout: call.inherit_timeout,
            inherit_artifacts: call.inherit_artifacts,
            timeout_ms: def.execution.timeout_ms,
        })
    }

    fn wait(&mut self, wait: &WaitEvent) -> Compiled<WaitSpec> {
        let key = self.optional_expr(wait.key.as_ref())?;
        let default = wait.default.clone().filter(|_| wait.on_timeout == EventTimeout::Default);
        Ok(WaitSpec { event: self.template(&wait.event)?, key, timeout_ms: wait.timeout_ms, default })
    }

    fn sleep(&mut self, sleep: &Sleep) -> Compiled<SleepSpec> {
        match (&sleep.duration, &sleep.until) {
            (Some(text), _) => self.template(text).map(SleepSpec::For),
            (None, Some(text)) => self.expr(text).map(SleepSpec::Until),
            (None, None) => Err(CannotCompile::new("a `sleep` says neither how long nor until when")),
        }
    }

    fn templates(&mut self, texts: &[Text]) -> Compiled<Vec<Template>> {
        texts.iter().map(|text| self.template(text)).collect()
    }
}

/// What a lone action reads, for the default mapping of its node or step.
pub(super) fn named(readings: &[Reading], scope: &Scope, items: &Items) -> Vec<Read> {
    let seen = readings.iter().map(|reading| &reading.read);
    let named = seen.filter(|read| &*read.root != "secret" && scope.sees(items, &read.root));
    wonder_lang::expr::minimal(named.cloned().collect())
}
