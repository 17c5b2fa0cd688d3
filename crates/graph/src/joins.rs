//! Fan-ins: which group each one closes, and what it does with it.

use std::collections::BTreeMap;

use super::check::Check;
use super::codes;
use super::flow::{DEPTH_MAX, Flow};
use super::scope::{BRANCH, Items, Scope};
use super::shape::{Arrow, Shape, Written};
use super::types;
use super::{Join, JoinTimeout, Merge, MergeInto, Source, TransitionIx};
use wonder_lang::def::{
    EarlyComplete, Foreach, MergeStrategy, On, Spot, Strategy, SyncTimeout, Synchronization, Text,
};
use wonder_lang::problem::Problem;

/// What the fan-in and its checks need to know of the nodes in a branch.
#[derive(Clone, Debug, Default)]
pub(super) struct BranchFacts {
    /// One of them can wait for a human, an event or a child.
    pub(super) waits: bool,
    pub(super) longest_action_ms: Option<u64>,
    /// The first of them, by index, that writes on purpose.
    pub(super) writer: Option<usize>,
}

impl BranchFacts {
    pub(super) fn fold(&mut self, other: &BranchFacts) {
        self.waits |= other.waits;
        self.longest_action_ms = self.longest_action_ms.max(other.longest_action_ms);
        self.writer = match (self.writer, other.writer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn timeout(&self) -> JoinTimeout {
        if self.waits {
            JoinTimeout::Never
        } else {
            JoinTimeout::Computed { longest_action_ms: self.longest_action_ms }
        }
    }
}

/// What [`Check::joins`] works on.
pub(super) struct JoinsOf<'s, 'a> {
    pub(super) shape: &'s Shape<'a>,
    pub(super) flow: &'s Flow,
    pub(super) facts: &'s BTreeMap<Source, BranchFacts>,
    /// What each node's expressions see.
    pub(super) scopes: &'s [Scope],
    pub(super) items: &'s Items,
    pub(super) schemas: types::Written<'s>,
}

impl Check<'_> {
    pub(super) fn joins(&mut self, of: &JoinsOf<'_, '_>) -> BTreeMap<Source, Join> {
        let mut closers: BTreeMap<Source, Vec<TransitionIx>> = BTreeMap::new();
        for (ix, groups) in &of.flow.closes {
            groups.keys().for_each(|source| closers.entry(*source).or_default().push(*ix));
        }
        let mut joins = BTreeMap::new();
        for (source, arrows) in &closers {
            if let Some(join) = self.join(of, *source, arrows) {
                joins.insert(*source, join);
            }
        }
        let known = !of.shape.broken && !of.flow.gave_up && of.flow.too_deep.is_none();
        if known {
            self.unfed(of);
            self.unjoined(of, &joins);
        }
        if let Some(node) = of.flow.too_deep {
            let slot = of.shape.node_of(node);
            let message =
                format!("the fan-out of `{}` would be the {}th within others", slot.reference, DEPTH_MAX + 1);
            self.report(
                Problem::error(
                    codes::NESTED_TOO_DEEP,
                    slot.def.map(|def| def.reference.spot).unwrap_or_default(),
                    message,
                )
                .label(format!("expected at most {DEPTH_MAX} groups within groups"))
                .help("join branches before fanning out again, or call a workflow"),
            );
        }
        joins
    }

    /// The fan-in that these transitions describe together.
    fn join(&mut self, of: &JoinsOf<'_, '_>, source: Source, arrows: &[TransitionIx]) -> Option<Join> {
        let arrow_of = |ix: &TransitionIx| &of.shape.arrows[ix.0 as usize];
        let first = arrow_of(arrows.first()?);
        let facts = of.facts.get(&source).cloned().unwrap_or_default();
        if let Written::Gather(node) = first.written {
            return Some(gather(first, node.foreach.as_ref(), &facts));
        }
        for other in arrows.iter().map(arrow_of).filter(|arrow| arrow.to != first.to).take(1) {
            self.two_targets(of.shape, source, first, other);
        }
        let mut told: Option<&Synchronization> = None;
        for (arrow, sync) in
            arrows.iter().map(arrow_of).filter_map(|arrow| Some((arrow, arrow.synchronization()?)))
        {
            match told {
                _ if sync.is_reference() || arrow.to != first.to => {}
                None => told = Some(sync),
                Some(known) if same(known, sync) => {}
                Some(_) => self.conflict(of.shape, source, arrow, sync),
            }
        }
        let bare = Synchronization::default();
        let sync = told.or(first.synchronization()).unwrap_or(&bare);
        let strategy = sync.strategy.unwrap_or_default();
        self.zero(sync.timeout_ms, sync.spot, "the timeout of a fan-in");
        self.m_of_n(of.shape, source, strategy, spot_of(first, sync));
        let outside = arrows
            .iter()
            .any(|ix| of.flow.closes.get(ix).and_then(|groups| groups.get(&source)) == Some(&true));
        Some(Join {
            target: first.to,
            strategy,
            timeout: sync.timeout_ms.map_or_else(|| facts.timeout(), JoinTimeout::Fixed),
            on_timeout: sync.on_timeout.unwrap_or_default(),
            on_early_complete: sync.on_early_complete.unwrap_or_default(),
            on_branch_failure: sync.on_branch_failure.unwrap_or_default(),
            merge: self.merge(of, first, sync, outside),
        })
    }

    fn merge(
        &mut self,
        of: &JoinsOf<'_, '_>,
        arrow: &Arrow<'_>,
        sync: &Synchronization,
        outside: bool,
    ) -> Option<Merge> {
        let merge = sync.merge.as_ref()?;
        let scope = of.scopes[arrow.from.0 as usize].with(BRANCH);
        let source = merge.source.as_ref().and_then(|text| self.expr_in(text, &scope, of.items));
        let target = self.target(&merge.target)?;
        if outside {
            let kind = match merge.strategy {
                MergeStrategy::Append => Some("array"),
                MergeStrategy::MergeObject | MergeStrategy::KeyedByBranch => Some("object"),
                MergeStrategy::LastWins => None,
            };
            self.merge_fits(&target, kind, merge.target.spot, of.schemas);
        }
        let into = MergeInto::Context { target, strategy: merge.strategy };
        Some(Merge { source, into, keep_failed: merge.keep_failed })
    }

    fn m_of_n(&mut self, shape: &Shape<'_>, source: Source, strategy: Strategy, spot: Spot) {
        let Strategy::MOfN(wanted) = strategy else { return };
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
        self.report(problem.label("expected a number between 1 and the number of branches"));
    }

    fn two_targets(&mut self, shape: &Shape<'_>, source: Source, first: &Arrow<'_>, other: &Arrow<'_>) {
        let name = |arrow: &Arrow<'_>| shape.node_of(arrow.to).reference.clone();
        let message = format!(
            "the branches of {} are joined at `{}` and at `{}`",
            named(shape, source),
            name(first),
            name(other)
        );
        self.report(
            Problem::error(codes::TWO_TARGETS, sync_spot(other), message)
                .label(format!("expected `{}`, where the other fan-in of this group is", name(first)))
                .help("a group has one fan-in: lead all its branches to one node, and route from there"),
        );
    }

    fn conflict(&mut self, shape: &Shape<'_>, source: Source, arrow: &Arrow<'_>, sync: &Synchronization) {
        let message = format!(
            "the fan-in of {} at `{}` is described twice, and differently",
            named(shape, source),
            shape.node_of(arrow.to).reference
        );
        self.report(
            Problem::error(codes::CONFLICTING_FAN_IN, spot_of(arrow, sync), message)
                .label("expected the same as on the other transition")
                .help("write it on one transition, and `synchronization: {}` on the others"),
        );
    }

    /// Fan-ins that are never reached from inside a group that they could close.
    fn unfed(&mut self, of: &JoinsOf<'_, '_>) {
        for (at, arrow) in of.shape.arrows.iter().enumerate() {
            let closed = of.flow.closes.contains_key(&TransitionIx(at as u32));
            let Some(sync) = arrow.synchronization() else { continue };
            if closed || of.flow.at[arrow.from.0 as usize].is_empty() {
                continue;
            }
            let from = &of.shape.node_of(arrow.from).reference;
            let spot = spot_of(arrow, sync);
            self.report(match &sync.sibling_group {
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

    fn unjoined(&mut self, of: &JoinsOf<'_, '_>, joins: &BTreeMap<Source, Join>) {
        for (source, facts) in of.facts {
            let Some(writer) = facts.writer.filter(|_| !joins.contains_key(source)) else { continue };
            let spot = match source {
                Source::Node(ix) => of.shape.node_of(*ix).def.map(|def| def.reference.spot),
                Source::Transition(ix) => of.shape.arrows[ix.0 as usize].def().map(|def| def.spot),
            };
            let message = format!(
                "nothing joins the branches of {}, so what `{}` writes stays in its branch",
                named(of.shape, *source),
                of.shape.slots[writer].reference
            );
            self.report(
                Problem::warning(codes::UNJOINED_WRITES, spot.unwrap_or_default(), message)
                    .label("expected a fan-in for this fan-out")
                    .help("add `synchronization: {merge: {target: state.x}}` to the transition that ends the branches"),
            );
        }
    }
}

/// The fan-in of a dag's `foreach`.
fn gather(arrow: &Arrow<'_>, foreach: Option<&Foreach>, facts: &BranchFacts) -> Join {
    Join {
        target: arrow.to,
        strategy: Strategy::All,
        timeout: facts.timeout(),
        on_timeout: SyncTimeout::default(),
        on_early_complete: EarlyComplete::default(),
        on_branch_failure: foreach.map(|foreach| foreach.on_branch_failure).unwrap_or_default(),
        merge: Some(Merge {
            source: None,
            into: MergeInto::Carried,
            keep_failed: foreach.is_some_and(|foreach| foreach.keep_failed),
        }),
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
