//! Actions, compiled once however many steps name them.

use std::sync::Arc;

use super::check::Check;
use super::codes;
use super::scope::{Items, Scope, Use};
use super::texts::{self, TextKind};
use super::{
    Action, Assertion, AssertionTest, CallSpec, CalleeSpec, Coordinated, GateSpec, MapTree, SleepSpec,
    WaitSpec, WriteTo,
};
use wonder_lang::def::{
    ActionDef, Assert, Callee, ChildFailure, EventTimeout, HumanGate, Implementation, LlmCall, Name, Sleep,
    Spot, Text, Tree, WaitEvent, WorkflowCall, Writes,
};
use wonder_lang::expr::{Expr, Read};
use wonder_lang::problem::Problem;
use wonder_lang::template::Template;
use wonder_lang::value::Value;

/// One path that one of an action's texts reads. Whether it may is for each place that uses the action.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) read: Read,
    text: Name,
    spot: Spot,
    pub(super) kind: TextKind,
    prompt: Option<Name>,
}

impl Reading {
    pub(super) fn as_use(&self) -> Use<'_> {
        Use {
            read: &self.read,
            text: &self.text,
            spot: self.spot,
            template: matches!(self.kind, TextKind::Template | TextKind::CalleeTemplate),
            prompt: self.prompt.as_deref(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct KnownAction {
    pub(super) action: Arc<Action>,
    pub(super) readings: Arc<Vec<Reading>>,
}

impl Check<'_> {
    pub(super) fn action(&mut self, name: &Name, def: &Arc<ActionDef>) -> KnownAction {
        self.fields(def);
        let readings = self.readings(def);
        let requires = self.schema(def.requires.as_ref(), "`requires`");
        let produces = self.schema(def.produces.as_ref(), "`produces`");
        if let Implementation::LlmCall(LlmCall { output_schema, .. }) = &def.implementation {
            self.schema(output_schema.as_ref(), "`output_schema`");
        }
        let coordinated = self.coordinated(name, def);
        let action = Action { name: name.clone(), def: def.clone(), requires, produces, coordinated };
        KnownAction { action: Arc::new(action), readings: Arc::new(readings) }
    }

    /// What the texts of an action read, those of its prompt included.
    fn readings(&mut self, def: &ActionDef) -> Vec<Reading> {
        let mut found = Vec::new();
        texts::each(def, &mut |kind, text| self.readings_of(kind, text, None, &mut found));
        let Implementation::LlmCall(LlmCall { prompt_spec: Some(name), .. }) = &def.implementation else {
            return found;
        };
        if let Some(prompt) = self.bundle.prompts.get(&name.text) {
            for text in prompt.system.iter().chain([&prompt.template]) {
                self.readings_of(TextKind::Template, text, Some(name), &mut found);
            }
        }
        found
    }

    fn readings_of(&mut self, kind: TextKind, text: &Text, prompt: Option<&Text>, found: &mut Vec<Reading>) {
        let mut add = |reads: &[Read]| {
            found.extend(reads.iter().map(|read| Reading {
                read: read.clone(),
                text: text.text.clone(),
                spot: prompt.map_or(text.spot, |name| name.spot),
                kind,
                prompt: prompt.map(|name| name.text.clone()),
            }));
        };
        match kind {
            TextKind::Template | TextKind::CalleeTemplate => {
                if let Some(template) = self.template(text) {
                    add(template.reads());
                }
            }
            TextKind::Expr | TextKind::Callee => {
                if let Some(expr) = self.expr(text) {
                    add(expr.reads());
                }
            }
        }
    }

    fn coordinated(&mut self, name: &Name, def: &ActionDef) -> Option<Coordinated> {
        Some(match &def.implementation {
            Implementation::UpdateContext(update) => {
                Coordinated::UpdateContext { set: self.unscoped_writes(&update.set) }
            }
            Implementation::Assert(assert) => Coordinated::Assert(self.assertion(assert)?),
            Implementation::HumanGate(gate) => Coordinated::HumanGate(self.gate(name, gate, def.spot)?),
            Implementation::WorkflowCall(call) => Coordinated::WorkflowCall(self.call(call, def)?),
            Implementation::WaitEvent(wait) => Coordinated::WaitEvent(self.wait(wait)?),
            Implementation::Sleep(sleep) => Coordinated::Sleep(self.sleep(sleep)?),
            _ => return None,
        })
    }

    /// Writes whose reads are looked at where the action is used.
    fn unscoped_writes(&mut self, writes: &Writes) -> Vec<WriteTo> {
        self.writes(writes, &unscoped(), &Items::default())
    }

    fn unscoped_tree(&mut self, tree: &Tree) -> MapTree {
        self.tree(tree, &unscoped(), &Items::default())
    }

    fn assertion(&mut self, assert: &Assert) -> Option<Assertion> {
        let message = self.optional_template(assert.message.as_ref());
        let schema = self.schema(assert.schema.as_ref(), "`schema`");
        let mut expr =
            |text: &Option<Text>| -> Option<Expr> { text.as_ref().and_then(|text| self.expr(text)) };
        let test = if let Some(that) = expr(&assert.that) {
            AssertionTest::That(that)
        } else if let Some(value) = expr(&assert.value) {
            AssertionTest::Fits { value, schema: schema? }
        } else {
            let score = expr(&assert.score)?;
            AssertionTest::Scores { score, at_least: self.unscoped_tree(assert.score_at_least.as_ref()?) }
        };
        Some(Assertion { test, message })
    }

    fn gate(&mut self, name: &Name, gate: &HumanGate, spot: Spot) -> Option<GateSpec> {
        let form = self.schema(gate.form.as_ref(), "`form`");
        if let (Some(form), Some(default)) = (&form, &gate.default)
            && let Err(violations) = form.check(default)
        {
            let why = violations.first().map_or("", |violation| &violation.message);
            let message = format!("the gate's `default` does not fit its `form`: {why}");
            self.report(
                Problem::error(codes::SCHEMA_FORBIDS, spot, message)
                    .label("expected an answer that the form allows"),
            );
        }
        let title = gate.title.clone().unwrap_or_else(|| Text::new(name.clone()));
        Some(GateSpec {
            title: self.template(&title)?,
            body: self.optional_template(gate.body.as_ref()),
            form,
            assignees: self.templates(&gate.assignees),
            quorum: gate.quorum,
            timeout_ms: gate.timeout_ms,
            on_timeout: gate.on_timeout,
            default: gate.default.clone().unwrap_or(Value::Null),
            escalate: self.templates(&gate.escalate),
            remind_every_ms: gate.remind_every_ms,
        })
    }

    fn call(&mut self, call: &WorkflowCall, def: &ActionDef) -> Option<CallSpec> {
        let workflow = match &call.workflow {
            Callee::Named(name) => CalleeSpec::Named(self.template(name)?),
            Callee::FromContext { from_context } => CalleeSpec::FromContext(self.expr(from_context)?),
        };
        Some(CallSpec {
            workflow,
            catch: call.on_failure == ChildFailure::Catch,
            inherit_timeout: call.inherit_timeout,
            inherit_artifacts: call.inherit_artifacts,
            timeout_ms: def.execution.timeout_ms,
        })
    }

    fn wait(&mut self, wait: &WaitEvent) -> Option<WaitSpec> {
        let key = wait.key.as_ref().and_then(|text| self.expr(text));
        let default = wait.default.clone().filter(|_| wait.on_timeout == EventTimeout::Default);
        Some(WaitSpec { event: self.template(&wait.event)?, key, timeout_ms: wait.timeout_ms, default })
    }

    fn sleep(&mut self, sleep: &Sleep) -> Option<SleepSpec> {
        match (&sleep.duration, &sleep.until) {
            (Some(text), _) => self.template(text).map(SleepSpec::For),
            (None, Some(text)) => self.expr(text).map(SleepSpec::Until),
            (None, None) => None,
        }
    }

    fn optional_template(&mut self, text: Option<&Text>) -> Option<Template> {
        text.and_then(|text| self.template(text))
    }

    fn templates(&mut self, texts: &[Text]) -> Vec<Template> {
        texts.iter().filter_map(|text| self.template(text)).collect()
    }
}

fn unscoped() -> Scope {
    Scope { anything: true, ..Scope::default() }
}

/// What a lone action reads, for the default mapping of its node or step.
pub(super) fn named(readings: &[Reading], scope: &Scope, items: &Items) -> Vec<Read> {
    let seen = readings.iter().map(|reading| &reading.read);
    let named = seen.filter(|read| &*read.root != "secret" && scope.sees(items, &read.root));
    wonder_lang::expr::minimal(named.cloned().collect())
}
