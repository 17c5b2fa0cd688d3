//! `on_error` lists, transitions and units: that they lead somewhere, and can be met.

use super::Checker;
use crate::codes;
use crate::scope::{RESULT, Scope};
use crate::shape::{Arrow, Shape, UnitShape};
use wonder_lang::def::{self, BranchFailure, FanOut, On, Strategy};
use wonder_lang::problem::Problem;

impl<'a> Checker<'a, '_> {
    pub(super) fn rules(&mut self, rules: &'a [def::Rule], scope: &Scope) {
        let items = &self.scopes.items;
        for rule in rules {
            rule.when.iter().for_each(|text| drop(self.check.expr_in(text, scope, items)));
            match &rule.response {
                def::Response::Change(change) => {
                    change.model.iter().for_each(|model| self.check.known_model(model));
                    change.tools.iter().flatten().for_each(|tool| self.check.known_tool(tool));
                    change.input.iter().for_each(|tree| self.check.tree(tree, scope, items));
                }
                def::Response::AddValidator { task } => self.task_apart(task),
                _ => {}
            }
        }
    }

    pub(super) fn transition(&mut self, arrow: &Arrow<'a>) {
        let (scopes, written) = (self.scopes, arrow.def());
        let from = arrow.from.0 as usize;
        // After a failure nothing came back.
        let known = if arrow.on() == On::Failure { self.known.roots() } else { self.known.roots_after(from) };
        let from = scopes.of[from].clone().knowing(known);
        // What a dag's `foreach` spreads is known before its node did anything.
        let scope = if written.is_some() { from.with(RESULT) } else { from };
        if let Some(def) = written {
            let bound = def.max_iterations.as_ref().and_then(def::Bound::expr);
            let bound = bound.into_iter().chain(shape_bound(self.shape, arrow));
            for text in def.condition.iter().chain(bound) {
                self.check.expr_in(text, &scope, &scopes.items);
            }
            self.spread_fields(def);
        }
        if let Some(foreach) = arrow.foreach() {
            let parallel = foreach.max_parallel.map(u64::from);
            self.check.zero(parallel, foreach.items.spot, "`foreach.max_parallel`");
            self.check.expr_in(&foreach.items, &scope, &scopes.items);
        }
    }

    fn spread_fields(&mut self, def: &def::TransitionDef) {
        let check = &mut self.check;
        let count = def.max_iterations.as_ref().and_then(def::Bound::count);
        check.zero(count.map(u64::from), def.spot, "`max_iterations`");
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
        if def.fan_out == FanOut::FirstMatch {
            self.never_taken(at);
        }
        let arrows = out.iter().map(|ix| &shape.arrows[ix.0 as usize]);
        let written = arrows.filter_map(|arrow| Some((arrow, arrow.def()?)));
        let mut after_success = written.filter(|(_, def)| def.on != On::Failure).peekable();
        if after_success.peek().is_none() {
            return;
        }
        if after_success.all(|(arrow, def)| def.condition.is_some() || shape.is_bounded(arrow)) {
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

    /// Transitions behind one that always fits: the first that fits is taken, so these never are. What a run
    /// adds stands before what the file has, on purpose.
    fn never_taken(&mut self, at: usize) {
        let shape = self.shape;
        let arrows = shape.out[at].iter().map(|ix| &shape.arrows[ix.0 as usize]);
        // The first that always fits: after a success, and after a failure.
        let (mut success, mut failure): (Option<&Arrow<'_>>, Option<&Arrow<'_>>) = (None, None);
        for arrow in arrows.filter(|arrow| arrow.layer == 0) {
            let Some(def) = arrow.def() else { continue };
            let before = match def.on {
                On::Success => success,
                On::Failure => failure,
                On::Any => success.and(failure),
            };
            if let Some(first) = before {
                let name = |arrow: &Arrow<'_>| shape.node_of(arrow.to).reference.clone();
                let message = format!(
                    "the transition to `{}` can never be taken: the one to `{}` always fits and comes first",
                    name(arrow),
                    name(first)
                );
                self.check.report(
                    Problem::error(codes::NEVER_TAKEN, def.to.spot, message)
                        .label("expected a condition on the one before")
                        .help(format!(
                            "to take both, write `fan_out: all` on `{}`; to choose, give the first a condition: `{{to: {}, when: …}}`",
                            shape.slots[at].reference,
                            name(first)
                        )),
                );
                continue;
            }
            if def.condition.is_none() && !shape.is_bounded(arrow) {
                success = success.or((def.on != On::Failure).then_some(arrow));
                failure = failure.or((def.on != On::Success).then_some(arrow));
            }
        }
    }

    pub(super) fn unit(&mut self, shape: &UnitShape<'a>) {
        let (scopes, def) = (self.scopes, shape.def);
        let scope = scopes.of[shape.head.0 as usize].clone().knowing(self.known.roots());
        def.when.iter().for_each(|text| drop(self.check.expr_in(text, &scope, &scopes.items)));
        let needs = shape.needs.len() as u64;
        let bad = match def.join {
            Some(Strategy::MOfN(0)) => Some("`m_of_n: 0` waits for nobody".to_owned()),
            Some(Strategy::MOfN(wanted)) if u64::from(wanted) > needs => {
                Some(format!("`m_of_n: {wanted}` can never be met: `{}` needs {needs}", def.reference))
            }
            Some(_) if needs == 0 => Some(format!("`{}` has a `join` and needs nothing", def.reference)),
            _ => None,
        };
        if let Some(message) = bad.filter(|_| !self.shape.is_broken()) {
            self.check.report(
                Problem::error(codes::BAD_DAG_JOIN, def.reference.spot, message)
                    .label("expected a join that the needs can meet")
                    .help(format!("ask for between 1 and {needs}, or leave `join` out for all")),
            );
        }
    }
}

/// The bound of the node that a transition leads to, as an expression: it is asked for where the transition leaves.
fn shape_bound<'s>(shape: &'s Shape<'_>, arrow: &Arrow<'_>) -> Option<&'s def::Text> {
    shape.node_of(arrow.to).def?.max_visits.as_ref()?.expr()
}
