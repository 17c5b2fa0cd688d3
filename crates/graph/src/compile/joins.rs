//! Fan-ins: which group each one closes, and what it does with it.

use std::collections::BTreeMap;

use super::nodes::facts;
use super::{CannotCompile, Compiled, Compiler};
use crate::shape::{Arrow, Written};
use crate::{Join, JoinTimeout, Merge, MergeInto, Node, Response, Rule, Source, TransitionIx};
use wonder_lang::def::{EarlyComplete, Foreach, Strategy, SyncTimeout, Synchronization};
use wonder_lang::path::Target;

/// What the fan-in needs to know of the nodes in a branch.
#[derive(Clone, Debug, Default)]
pub(super) struct BranchFacts {
    /// One of them can wait for a human, an event or a child.
    pub(super) waits: bool,
    pub(super) longest_action_ms: Option<u64>,
}

impl BranchFacts {
    fn fold(&mut self, other: &BranchFacts) {
        self.waits |= other.waits;
        self.longest_action_ms = self.longest_action_ms.max(other.longest_action_ms);
    }

    fn timeout(&self) -> JoinTimeout {
        if self.waits {
            JoinTimeout::Never
        } else {
            JoinTimeout::Computed { longest_action_ms: self.longest_action_ms }
        }
    }
}

impl Compiler<'_, '_> {
    pub(super) fn joins(&mut self, nodes: &[Node], on_error: &[Rule]) -> Compiled<BTreeMap<Source, Join>> {
        // The workflow's responses apply to every node, so a human among them can be met in every branch.
        let waits_anywhere = on_error
            .iter()
            .any(|rule| matches!(rule.response, Response::Escalate | Response::AddReview | Response::Pause));
        let fact = |at: usize| {
            let mut facts = facts(&nodes[at]);
            facts.waits |= waits_anywhere;
            facts
        };
        let by_group = self.flow.by_group(&fact, &|a: &mut BranchFacts, b| a.fold(b));
        let mut joins = BTreeMap::new();
        for (source, arrows) in self.flow.closers() {
            let facts = by_group.get(&source).cloned().unwrap_or_default();
            joins.insert(source, self.join(&arrows, &facts)?);
        }
        Ok(joins)
    }

    /// The fan-in that these transitions describe together.
    fn join(&mut self, arrows: &[TransitionIx], facts: &BranchFacts) -> Compiled<Join> {
        let shape = self.shape;
        let arrow_of = |ix: &TransitionIx| &shape.arrows[ix.0 as usize];
        let Some(first) = arrows.first().map(arrow_of) else {
            return Err(CannotCompile::new("a fan-in without a transition"));
        };
        if let Written::Gather(node) = first.written {
            return Ok(gather(first, node.foreach.as_ref(), facts));
        }
        // One of them writes it, the others may say `synchronization: {}`.
        let to_target = arrows.iter().map(arrow_of).filter(|arrow| arrow.to == first.to);
        let told = to_target.filter_map(Arrow::synchronization).find(|sync| !sync.is_reference());
        let bare = Synchronization::default();
        let sync = told.or(first.synchronization()).unwrap_or(&bare);
        Ok(Join {
            target: first.to,
            strategy: sync.strategy.unwrap_or_default(),
            timeout: sync.timeout_ms.map_or_else(|| facts.timeout(), JoinTimeout::Fixed),
            on_timeout: sync.on_timeout.unwrap_or_default(),
            on_early_complete: sync.on_early_complete.unwrap_or_default(),
            on_branch_failure: sync.on_branch_failure.unwrap_or_default(),
            merge: self.merge(sync)?,
        })
    }

    fn merge(&mut self, sync: &Synchronization) -> Compiled<Option<Merge>> {
        let Some(merge) = &sync.merge else { return Ok(None) };
        let source = self.optional_expr(merge.source.as_ref())?;
        let target = Target::parse(&merge.target.text).map_err(|error| CannotCompile::new(error.message))?;
        let into = MergeInto::Context { target, strategy: merge.strategy };
        Ok(Some(Merge { source, into, keep_failed: merge.keep_failed }))
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
