//! `on_error` lists, transitions and units: the rest of what a run follows.

use super::nodes::Compiler;
use super::scope::{RESULT, Scope};
use super::shape::{Arrow, UnitShape};
use super::{Response, Rule, Spread, Sync, Transition, Unit, UnitIx, codes};
use wonder_lang::def::{self, Backoff, BranchFailure, FanOut, Foreach, Name, On, Strategy, Text};
use wonder_lang::problem::Problem;
use wonder_lang::value::Value;

/// What `on_timeout: retry` is short for.
const TIMEOUT_RETRIES: u32 = 3;
/// Extra tries of a rule that does not say how many.
const RULE_MAX: u32 = 1;

impl<'a> Compiler<'a, '_> {
    pub(super) fn rules(&mut self, rules: &'a [def::Rule], scope: &Scope) -> Vec<Rule> {
        rules.iter().filter_map(|rule| self.rule(rule, scope)).collect()
    }

    fn rule(&mut self, rule: &'a def::Rule, scope: &Scope) -> Option<Rule> {
        let when = rule.when.as_ref().and_then(|text| self.check.expr_in(text, scope, &self.items));
        let response = self.response(&rule.response, scope)?;
        Some(Rule {
            when,
            response,
            max: rule.max.unwrap_or(RULE_MAX),
            backoff: rule.backoff.unwrap_or_default(),
        })
    }

    pub(super) fn retry_on_timeout(&mut self) -> Option<Rule> {
        let when = self.check.expr(&Text::new("error.kind == 'timeout'"))?;
        let backoff = Backoff::default();
        Some(Rule { when: Some(when), response: Response::Retry, max: TIMEOUT_RETRIES, backoff })
    }

    /// None if it leads nowhere, which has been reported.
    fn response(&mut self, response: &'a def::Response, scope: &Scope) -> Option<Response> {
        let node = |text: &Text| self.shape.node_by_ref.get(&text.text).copied();
        Some(match response {
            def::Response::Retry => Response::Retry,
            def::Response::SwitchModel => Response::SwitchModel,
            def::Response::StricterPrompt { append } => Response::StricterPrompt { append: append.clone() },
            def::Response::Change(change) => self.change(change, scope),
            def::Response::LoopWithFeedback { to: Some(to) } => {
                Response::LoopWithFeedback { to: Some(node(to)?) }
            }
            def::Response::LoopWithFeedback { to: None } => Response::LoopWithFeedback { to: None },
            def::Response::AddValidator { task } => Response::AddValidator { task: self.task_apart(task)? },
            def::Response::AddReview => Response::AddReview,
            def::Response::DowngradeModel => Response::DowngradeModel,
            def::Response::Pause => Response::Pause,
            def::Response::Goto(to) => Response::Goto(node(to)?),
            def::Response::Skip { output } => {
                Response::Skip { output: output.clone().unwrap_or(Value::Null) }
            }
            def::Response::Escalate => Response::Escalate,
            def::Response::Fail => Response::Fail,
        })
    }

    fn change(&mut self, change: &'a def::Change, scope: &Scope) -> Response {
        let plain = |text: &Text| text.text.clone();
        change.model.iter().for_each(|model| self.check.known_model(model));
        change.tools.iter().flatten().for_each(|tool| self.check.known_tool(tool));
        Response::Change {
            model: change.model.as_ref().map(plain),
            system: change.system.as_ref().map(plain),
            tools: change.tools.as_ref().map(|tools| tools.iter().map(plain).collect::<Vec<Name>>()),
            input: change.input.as_ref().map(|tree| self.check.tree(tree, scope, &self.items)),
        }
    }

    pub(super) fn transition(&mut self, arrow: &Arrow<'a>) -> Transition {
        let from = arrow.from.0 as usize;
        let written = arrow.def();
        // What a dag's `foreach` spreads is known before its node did anything.
        let scope =
            if written.is_some() { self.scopes[from].with(RESULT) } else { self.scopes[from].clone() };
        let condition = written.and_then(|def| def.condition.as_ref());
        let condition = condition.and_then(|text| self.check.expr_in(text, &scope, &self.items));
        if let Some(def) = written {
            self.spread_fields(def);
        }
        let count = written.and_then(|def| def.spawn_count).map(Spread::Count);
        let spread = count.or_else(|| arrow.foreach().and_then(|foreach| self.each(foreach, &scope)));
        Transition {
            reference: arrow.reference.clone(),
            from: arrow.from,
            to: arrow.to,
            priority: arrow.priority,
            on: arrow.on(),
            condition,
            spread,
            max_iterations: written.and_then(|def| def.max_iterations),
            sync: arrow.joins().then_some(Sync { group: arrow.group }),
        }
    }

    fn each(&mut self, foreach: &'a Foreach, scope: &Scope) -> Option<Spread> {
        let parallel = foreach.max_parallel.map(u64::from);
        self.check.zero(parallel, foreach.items.spot, "`foreach.max_parallel`");
        Some(Spread::Each {
            items: self.check.expr_in(&foreach.items, scope, &self.items)?,
            item_name: foreach.item_name.as_ref().map(|name| name.text.clone()),
            max_parallel: foreach.max_parallel,
        })
    }

    fn spread_fields(&mut self, def: &def::TransitionDef) {
        let check = &mut self.check;
        check.zero(def.max_iterations.map(u64::from), def.spot, "`max_iterations`");
        if def.spawn_count == Some(0) {
            check.report(
                Problem::error(codes::EMPTY_SPREAD, def.spot, "`spawn_count: 0` makes no branches")
                    .label("expected 1 or more")
                    .help("use `foreach` for a number that is known only in the run"),
            );
        }
        let Some(foreach) = &def.foreach else { return };
        if def.spawn_count.is_some() {
            check.report(
                Problem::error(
                    codes::TWO_SPREADS,
                    def.spot,
                    "this transition has `spawn_count` and `foreach`",
                )
                .label("expected one of the two")
                .help("for copies of each item, fan out twice: a transition each"),
            );
        }
        if foreach.keep_failed || foreach.on_branch_failure != BranchFailure::default() {
            let message = "`on_branch_failure` and `keep_failed` of a graph belong to its fan-in";
            check.report(
                Problem::error(codes::DAG_ONLY, foreach.items.spot, message)
                    .label("only a dag has these here")
                    .help("write them in `synchronization` of the transition that joins the branches"),
            );
        }
    }

    /// A node whose transitions may all fail to fit, and one that fans out to a single one.
    pub(super) fn routes(&mut self, at: usize) {
        let shape = self.shape;
        let Some(def) = shape.slots[at].def.filter(|_| !shape.is_dag) else { return };
        let out = &shape.out[at];
        if def.fan_out == FanOut::All && out.len() == 1 {
            let message = format!("`fan_out: all` on `{}`, which has a single transition", def.reference);
            self.check.report(
                Problem::error(codes::LONE_FAN_OUT, def.reference.spot, message)
                    .label("expected at least two transitions")
                    .help("leave `fan_out` out; for copies use `spawn_count` or `foreach` on the transition"),
            );
        }
        let written = out.iter().filter_map(|ix| shape.arrows[ix.0 as usize].def());
        let mut after_success = written.filter(|def| def.on != On::Failure).peekable();
        if after_success.peek().is_none() {
            return;
        }
        if after_success.all(|def| def.condition.is_some() || def.max_iterations.is_some()) {
            let message = format!(
                "every transition of `{}` has a condition or a bound, and none may fit",
                def.reference
            );
            self.check.report(
                Problem::warning(codes::NO_DEFAULT, def.reference.spot, message)
                    .label("expected a last transition without `when`")
                    .help("add `{to: …}` without a condition at the end; otherwise the run fails with `no_transition`"),
            );
        }
    }

    pub(super) fn unit(&mut self, shape: &UnitShape<'a>) -> Unit {
        let def = shape.def;
        let scope = self.scopes[shape.head.0 as usize].clone();
        let when = def.when.as_ref().and_then(|text| self.check.expr_in(text, &scope, &self.items));
        let needs = shape.needs.len() as u64;
        let bad = match def.join {
            Some(Strategy::MOfN(0)) => Some("`m_of_n: 0` waits for nobody".to_owned()),
            Some(Strategy::MOfN(wanted)) if u64::from(wanted) > needs => {
                Some(format!("`m_of_n: {wanted}` can never be met: `{}` needs {needs}", def.reference))
            }
            Some(_) if needs == 0 => Some(format!("`{}` has a `join` and needs nothing", def.reference)),
            _ => None,
        };
        if let Some(message) = bad.filter(|_| !self.shape.broken) {
            self.check.report(
                Problem::error(codes::BAD_DAG_JOIN, def.reference.spot, message)
                    .label("expected a join that the needs can meet")
                    .help(format!("ask for between 1 and {needs}, or leave `join` out for all")),
            );
        }
        Unit {
            reference: def.reference.text.clone(),
            head: shape.head,
            tail: shape.tail,
            needs: shape.needs.clone(),
            dependents: Vec::new(),
            join: def.join.unwrap_or_default(),
            when,
        }
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
