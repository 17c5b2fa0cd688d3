//! Fan-ins: that each closes one group at one node, in one way, and that branches get there.

use std::collections::BTreeSet;

use super::Checker;
use super::types::Written as Schemas;
use crate::compile::is_lone_action;
use crate::flow::DEPTH_MAX;
use crate::scope::BRANCH;
use crate::shape::{Arrow, Part, Shape, Written};
use crate::{Source, TransitionIx, codes};
use wonder_lang::def::{Implementation, MergeStrategy, On, Spot, Strategy, Synchronization, Text};
use wonder_lang::problem::Problem;

impl Checker<'_, '_> {
    pub(super) fn joins(&mut self, schemas: Schemas<'_>) {
        let closers = self.flow.closers();
        for (source, arrows) in &closers {
            self.join(*source, arrows, schemas);
        }
        if !self.shape.is_broken() && !self.flow.gave_up && self.flow.too_deep.is_none() {
            self.unfed();
            self.unjoined(&closers.keys().copied().collect());
        }
        if let Some(node) = self.flow.too_deep {
            let slot = self.shape.node_of(node);
            let message =
                format!("the fan-out of `{}` would be the {}th within others", slot.reference, DEPTH_MAX + 1);
            self.check.report(
                Problem::error(
                    codes::NESTED_TOO_DEEP,
                    slot.def.map(|def| def.reference.spot).unwrap_or_default(),
                    message,
                )
                .label(format!("expected at most {DEPTH_MAX} groups within groups"))
                .help("join branches before fanning out again, or call a workflow"),
            );
        }
    }

    /// The fan-in that these transitions describe together.
    fn join(&mut self, source: Source, arrows: &[TransitionIx], schemas: Schemas<'_>) {
        let shape = self.shape;
        let arrow_of = |ix: &TransitionIx| &shape.arrows[ix.0 as usize];
        let Some(first) = arrows.first().map(arrow_of) else { return };
        if matches!(first.written, Written::Gather(_)) {
            return;
        }
        for other in arrows.iter().map(arrow_of).filter(|arrow| arrow.to != first.to).take(1) {
            self.two_targets(source, first, other);
        }
        let mut told: Option<&Synchronization> = None;
        for (arrow, sync) in
            arrows.iter().map(arrow_of).filter_map(|arrow| Some((arrow, arrow.synchronization()?)))
        {
            match told {
                _ if sync.is_reference() || arrow.to != first.to => {}
                None => told = Some(sync),
                Some(known) if same(known, sync) => {}
                Some(_) => self.conflict(source, arrow, sync),
            }
        }
        let bare = Synchronization::default();
        let sync = told.or(first.synchronization()).unwrap_or(&bare);
        self.check.zero(sync.timeout_ms, sync.spot, "the timeout of a fan-in");
        self.m_of_n(source, sync.strategy.unwrap_or_default(), spot_of(first, sync));
        let outside = arrows
            .iter()
            .any(|ix| self.flow.closes.get(ix).and_then(|groups| groups.get(&source)) == Some(&true));
        self.merge(first, sync, outside.then_some(schemas));
    }

    fn merge(&mut self, arrow: &Arrow<'_>, sync: &Synchronization, schemas: Option<Schemas<'_>>) {
        let Some(merge) = &sync.merge else { return };
        let scope = self.scopes.of[arrow.from.0 as usize].with(BRANCH).knowing(self.known.roots());
        merge.source.iter().for_each(|text| drop(self.check.expr_in(text, &scope, &self.scopes.items)));
        let Some(target) = self.check.target(&merge.target) else { return };
        if let Some(schemas) = schemas {
            let kind = match merge.strategy {
                MergeStrategy::Append => Some("array"),
                MergeStrategy::MergeObject | MergeStrategy::KeyedByBranch => Some("object"),
                MergeStrategy::LastWins => None,
            };
            self.check.merge_fits(&target, kind, merge.target.spot, schemas);
        }
    }

    fn m_of_n(&mut self, source: Source, strategy: Strategy, spot: Spot) {
        let Strategy::MOfN(wanted) = strategy else { return };
        let shape = self.shape;
        let branches = match source {
            Source::Node(ix) => {
                let out = shape.out[ix.0 as usize].iter().map(|ix| shape.arrows[ix.0 as usize].on());
                Some(out.filter(|on| *on != On::Failure).count() as u64)
            }
            Source::Transition(ix) => {
                shape.arrows[ix.0 as usize].def().and_then(|def| def.spawn_count).map(u64::from)
            }
        };
        let what = named(shape, source);
        let problem = match branches {
            _ if wanted == 0 => Problem::error(codes::BAD_M_OF_N, spot, "`m_of_n: 0` waits for nobody")
                .help("use `any` for the first to arrive"),
            Some(branches) if branches < u64::from(wanted) => Problem::error(
                codes::BAD_M_OF_N,
                spot,
                format!("`m_of_n: {wanted}` can never be met: {what} makes {branches} branches"),
            )
            .help(format!("ask for at most {branches}, or use `all`")),
            _ => return,
        };
        self.check.report(problem.label("expected a number between 1 and the number of branches"));
    }

    fn two_targets(&mut self, source: Source, first: &Arrow<'_>, other: &Arrow<'_>) {
        let name = |arrow: &Arrow<'_>| self.shape.node_of(arrow.to).reference.clone();
        let message = format!(
            "the branches of {} are joined at `{}` and at `{}`",
            named(self.shape, source),
            name(first),
            name(other)
        );
        self.check.report(
            Problem::error(codes::TWO_TARGETS, sync_spot(other), message)
                .label(format!("expected `{}`, where the other fan-in of this group is", name(first)))
                .help("a group has one fan-in: lead all its branches to one node, and route from there"),
        );
    }

    fn conflict(&mut self, source: Source, arrow: &Arrow<'_>, sync: &Synchronization) {
        let message = format!(
            "the fan-in of {} at `{}` is described twice, and differently",
            named(self.shape, source),
            self.shape.node_of(arrow.to).reference
        );
        self.check.report(
            Problem::error(codes::CONFLICTING_FAN_IN, spot_of(arrow, sync), message)
                .label("expected the same as on the other transition")
                .help("write it on one transition, and `synchronization: {}` on the others"),
        );
    }

    /// Fan-ins that are never reached from inside a group that they could close.
    fn unfed(&mut self) {
        let (shape, flow) = (self.shape, self.flow);
        for (at, arrow) in shape.arrows.iter().enumerate() {
            let closed = flow.closes.contains_key(&TransitionIx(at as u32));
            let Some(sync) = arrow.synchronization() else { continue };
            if closed || flow.at[arrow.from.0 as usize].is_empty() {
                continue;
            }
            let from = &shape.node_of(arrow.from).reference;
            let spot = spot_of(arrow, sync);
            self.check.report(match &sync.sibling_group {
                Some(Text { text, spot }) => Problem::error(
                    codes::GROUP_NOT_OPEN,
                    *spot,
                    format!("no branch of `{text}` can be at `{from}`, so this fan-in cannot close it"),
                )
                .label("expected a group that is open here")
                .help("leave `sibling_group` out to close the innermost group, or name an enclosing one"),
                None => Problem::error(
                    codes::UNFED_FAN_IN,
                    spot,
                    format!("`{from}` joins branches here, but no fan-out leads to it"),
                )
                .label("expected a fan-out before this")
                .help(
                    "fan out with `spawn_count`, `foreach` or `fan_out: all`, or leave `synchronization` out",
                ),
            });
        }
    }

    /// Groups that nothing joins, although something in their branches writes on purpose.
    fn unjoined(&mut self, joined: &BTreeSet<Source>) {
        let first_writer = |a: &mut Option<usize>, b: &Option<usize>| {
            *a = [*a, *b].into_iter().flatten().min();
        };
        let writer = |at: usize| self.writes_on_purpose(at).then_some(at);
        for (source, writer) in self.flow.by_group(&writer, &first_writer) {
            let Some(writer) = writer.filter(|_| !joined.contains(&source)) else { continue };
            let spot = match source {
                Source::Node(ix) => self.shape.node_of(ix).def.map(|def| def.reference.spot),
                Source::Transition(ix) => self.shape.arrows[ix.0 as usize].def().map(|def| def.spot),
            };
            let message = format!(
                "nothing joins the branches of {}, so what `{}` writes stays in its branch",
                named(self.shape, source),
                self.shape.slots[writer].reference
            );
            self.check.report(
                Problem::warning(codes::UNJOINED_WRITES, spot.unwrap_or_default(), message)
                    .label("expected a fan-in for this fan-out")
                    .help("add `synchronization: {merge: {target: state.x}}` to the transition that ends the branches"),
            );
        }
    }

    /// Whether the author made this node write: a mapping, or an `update_context` on the node itself.
    fn writes_on_purpose(&self, at: usize) -> bool {
        let slot = &self.shape.slots[at];
        let Some(def) = slot.def else { return false };
        let maps = def.output_mapping.as_ref().is_some_and(|writes| !writes.0.is_empty());
        let task = self.check.bundle.tasks.get(&def.task.text);
        let sets = task.is_some_and(|task| {
            let action = task.steps.first().and_then(|step| self.check.bundle.actions.get(&step.action.text));
            is_lone_action(def, task)
                && action
                    .is_some_and(|action| matches!(action.implementation, Implementation::UpdateContext(_)))
        });
        (maps && matches!(slot.part, Part::Whole | Part::Gather))
            || (sets && matches!(slot.part, Part::Whole | Part::Items))
    }
}

/// The same but for how they name the group.
fn same(a: &Synchronization, b: &Synchronization) -> bool {
    let bare =
        |sync: &Synchronization| Synchronization { sibling_group: None, spot: Spot::NOWHERE, ..sync.clone() };
    bare(a) == bare(b)
}

fn spot_of(arrow: &Arrow<'_>, sync: &Synchronization) -> Spot {
    if sync.spot != Spot::NOWHERE { sync.spot } else { sync_spot(arrow) }
}

fn sync_spot(arrow: &Arrow<'_>) -> Spot {
    arrow.def().map(|def| def.synchronization.as_ref().map_or(def.spot, |sync| sync.spot)).unwrap_or_default()
}

/// A group as an author would say it.
fn named(shape: &Shape<'_>, source: Source) -> String {
    match source {
        Source::Node(ix) => format!("`{}`", shape.node_of(ix).reference),
        Source::Transition(ix) => {
            let arrow = &shape.arrows[ix.0 as usize];
            let (from, to) = (shape.node_of(arrow.from), shape.node_of(arrow.to));
            format!("`{}` to `{}`", from.reference, to.reference)
        }
    }
}
