//! `on_error` lists, transitions and units: the rest of what a run follows.

use super::{CannotCompile, Compiled, Compiler};
use crate::shape::{Arrow, UnitShape};
use crate::{Bound, NodeIx, Response, Rule, Spread, Sync, Transition, Unit, UnitIx};
use wonder_lang::def::{self, Backoff, Foreach, Name, Text};
use wonder_lang::error::ErrorKind;
use wonder_lang::value::Value;

/// What `on_timeout: retry` is short for.
const TIMEOUT_RETRIES: u32 = 3;
/// Extra tries of a rule that does not say how many.
const RULE_MAX: u32 = 1;

impl<'a> Compiler<'a, '_> {
    pub(super) fn rules(&mut self, rules: &'a [def::Rule]) -> Compiled<Vec<Rule>> {
        rules.iter().map(|rule| self.rule(rule)).collect()
    }

    fn rule(&mut self, rule: &'a def::Rule) -> Compiled<Rule> {
        let when = self.optional_expr(rule.when.as_ref())?;
        // Another model is not the one that has to recover: nobody waits for it unless it is written.
        let unwritten = if rule.response.changes_model() { Backoff::NONE } else { Backoff::default() };
        let unknown = ErrorKind::OutcomeUnknown.as_str();
        Ok(Rule {
            repeats_unknown: when.as_ref().is_some_and(|when| when.has_constant(unknown)),
            when,
            response: self.response(&rule.response)?,
            max: rule.max.unwrap_or(RULE_MAX),
            backoff: rule.backoff.unwrap_or(unwritten),
        })
    }

    pub(super) fn retry_on_timeout(&mut self) -> Compiled<Rule> {
        let when = self.expr(&Text::new("error.kind == 'timeout'"))?;
        let backoff = Backoff::default();
        let (response, max) = (Response::Retry, TIMEOUT_RETRIES);
        Ok(Rule { when: Some(when), repeats_unknown: false, response, max, backoff })
    }

    fn response(&mut self, response: &'a def::Response) -> Compiled<Response> {
        Ok(match response {
            def::Response::Retry => Response::Retry,
            def::Response::SwitchModel => Response::SwitchModel,
            def::Response::StricterPrompt { append } => Response::StricterPrompt { append: append.clone() },
            def::Response::Change(change) => self.change(change)?,
            def::Response::LoopWithFeedback { to } => {
                Response::LoopWithFeedback { to: to.as_ref().map(|to| self.node_named(to)).transpose()? }
            }
            def::Response::AddValidator { task } => {
                Response::AddValidator { task: self.task_apart(&task.text)? }
            }
            def::Response::AddReview => Response::AddReview,
            def::Response::DowngradeModel => Response::DowngradeModel,
            def::Response::Pause => Response::Pause,
            def::Response::Goto(to) => Response::Goto(self.node_named(to)?),
            def::Response::Skip { output } => {
                Response::Skip { output: output.clone().unwrap_or(Value::Null) }
            }
            def::Response::Escalate => Response::Escalate,
            def::Response::Fail => Response::Fail,
        })
    }

    fn node_named(&self, text: &Text) -> Compiled<NodeIx> {
        let found = self.shape.node_by_ref.get(&text.text).copied();
        found.ok_or_else(|| CannotCompile::new(format!("there is no node `{text}`")))
    }

    fn change(&mut self, change: &'a def::Change) -> Compiled<Response> {
        let plain = |text: &Text| text.text.clone();
        Ok(Response::Change {
            model: change.model.as_ref().map(plain),
            system: change.system.as_ref().map(plain),
            tools: change.tools.as_ref().map(|tools| tools.iter().map(plain).collect::<Vec<Name>>()),
            input: change.input.as_ref().map(|tree| self.tree(tree)).transpose()?,
        })
    }

    pub(super) fn transition(&mut self, arrow: &Arrow<'a>) -> Compiled<Transition> {
        let written = arrow.def();
        let count = written.and_then(|def| def.spawn_count).map(Spread::Count);
        let spread = match (count, arrow.foreach()) {
            (None, Some(foreach)) => Some(self.each(foreach)?),
            (count, _) => count,
        };
        Ok(Transition {
            reference: arrow.reference.clone(),
            from: arrow.from,
            to: arrow.to,
            priority: arrow.priority,
            on: arrow.on(),
            condition: self.optional_expr(written.and_then(|def| def.condition.as_ref()))?,
            spread,
            max_iterations: self.bound(written.and_then(|def| def.max_iterations.as_ref()))?,
            sync: arrow.joins().then_some(Sync { group: arrow.group }),
        })
    }

    pub(super) fn bound(&mut self, bound: Option<&'a def::Bound>) -> Compiled<Option<Bound>> {
        Ok(match bound {
            None => None,
            Some(def::Bound::Count(count)) => Some(Bound::Count(*count)),
            Some(def::Bound::Expr(text)) => Some(Bound::Expr(self.expr(text)?)),
        })
    }

    fn each(&mut self, foreach: &'a Foreach) -> Compiled<Spread> {
        Ok(Spread::Each {
            items: self.expr(&foreach.items)?,
            item_name: foreach.item_name.as_ref().map(|name| name.text.clone()),
            max_parallel: foreach.max_parallel,
        })
    }

    pub(super) fn unit(&mut self, shape: &UnitShape<'a>) -> Compiled<Unit> {
        Ok(Unit {
            reference: shape.def.reference.text.clone(),
            head: shape.head,
            tail: shape.tail,
            needs: shape.needs.clone(),
            dependents: Vec::new(),
            join: shape.def.join.unwrap_or_default(),
            when: self.optional_expr(shape.def.when.as_ref())?,
        })
    }
}

/// The other side of `needs`.
pub(super) fn add_dependents(units: &mut [Unit]) {
    for at in 0..units.len() {
        let needs = std::mem::take(&mut units[at].needs);
        for need in &needs {
            units[need.0 as usize].dependents.push(UnitIx(at as u32));
        }
        units[at].needs = needs;
    }
}
