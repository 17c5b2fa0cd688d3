//! What both kinds of workflow have: sums and times, and how these become a report. What they are is worked
//! out elsewhere.

use std::collections::BTreeSet;

use wonder_core::def::{Budget, Name};
use wonder_core::graph::{Graph, Source};
use wonder_core::schedule::fan_in_timeout_ms;

use super::fold::Amount;
use super::report::{Branches, BudgetPlan, CostPlan, DurationPlan, FanInPlan, PlannedNode, Total};
use super::work::Work;

/// What everything comes to.
pub(super) struct Sums {
    pub(super) expected_usd: Total,
    pub(super) usd: Total,
    pub(super) tokens: Total,
    pub(super) calls: Total,
    pub(super) waiting: Total,
    /// Without the workflow's own timeout.
    pub(super) running: Amount,
}

/// When nodes are likely to run.
pub(super) struct Timing {
    pub(super) path: Vec<usize>,
    pub(super) path_ms: u64,
    pub(super) expected_ms: u64,
    pub(super) lower_bound_ms: u64,
    pub(super) starts_ms: Vec<u64>,
    pub(super) ends_ms: Vec<u64>,
}

pub(super) fn once_for_each(node: &str, each_of: &str) -> String {
    format!("`{node}` runs once for each of `{each_of}`")
}

/// A sum, and each reason once.
pub(super) fn total<'w>(known: u64, why: impl IntoIterator<Item = &'w String>) -> Total {
    let mut seen = BTreeSet::new();
    let unbounded = why.into_iter().filter(|why| seen.insert(*why)).cloned().collect();
    Total { known, unbounded }
}

/// The longest that it can take when places are short: while one is free the longest way goes on, and while
/// none is, all of them are at work (Graham's bound).
pub(super) fn with_places(graph: &Graph, works: &[Work], longest_ms: u64, work_ms: u64) -> u64 {
    let Some(places) = graph.max_parallel else { return longest_ms };
    // What the longest way does without a place is no part of the work.
    let only_tasks = works.iter().all(|work| work.is_task || work.running_ms == Some(0));
    let rest = if only_tasks { work_ms.saturating_sub(longest_ms) } else { work_ms };
    longest_ms.saturating_add(rest.div_ceil(u64::from(places.max(1))))
}

/// The fan-in of a group.
pub(super) fn fan_in(graph: &Graph, source: Source, branches: &Branches) -> Option<FanInPlan> {
    let join = graph.joins.get(&source)?;
    let timeout_ms = fan_in_timeout_ms(join.timeout, branches.at_most);
    let node = graph.node(join.target).reference.clone();
    Some(FanInPlan { node, strategy: join.strategy, timeout_ms, on_timeout: join.on_timeout })
}

/// The running time ends at the workflow's timeout at the latest; its waits come on top, for its clock
/// stands still while it only waits.
pub(super) fn duration(graph: &Graph, timing: &Timing, sums: &Sums) -> DurationPlan {
    let by_timeout = sums.running.open || sums.running.known > graph.timeout_ms;
    let running = if by_timeout { graph.timeout_ms } else { sums.running.known };
    DurationPlan {
        expected_ms: timing.expected_ms,
        lower_bound_ms: timing.lower_bound_ms,
        worst: Total {
            known: running.saturating_add(sums.waiting.known),
            unbounded: sums.waiting.unbounded.clone(),
        },
        timeout_ms: graph.timeout_ms,
        on_timeout: graph.on_timeout,
        by_timeout,
    }
}

/// Whether a budget is enough.
pub(super) fn budget(budget: Budget, cost: &CostPlan, duration: &DurationPlan) -> BudgetPlan {
    let within = |limit: Option<u64>, bound: Option<u64>| {
        limit.is_none_or(|limit| bound.is_some_and(|bound| bound <= limit))
    };
    BudgetPlan {
        expected_fits: within(budget.usd_micros, Some(cost.expected_usd_micros.known))
            && within(budget.wall_ms, Some(duration.expected_ms)),
        worst_fits: within(budget.usd_micros, cost.worst_usd_micros.bound())
            && within(budget.tokens, cost.worst_tokens.bound())
            && within(budget.calls, cost.worst_calls.bound())
            && within(budget.wall_ms, duration.worst.bound()),
        budget,
    }
}

/// Whether one attempt reserves more than a budget has in all.
pub(super) fn cannot_start(work: &Work, budgets: [Option<Budget>; 2]) -> bool {
    let over = |limit: Option<u64>, wanted: u64| limit.is_some_and(|limit| wanted > limit);
    let wanted = &work.attempt;
    budgets.into_iter().flatten().any(|budget| {
        over(budget.usd_micros, wanted.usd_micros)
            || over(budget.tokens, wanted.tokens)
            || over(budget.calls, wanted.calls)
    })
}

/// What one row of the report needs beside the work itself.
pub(super) struct RowOf {
    pub(super) node: Name,
    pub(super) batch: u32,
    pub(super) needs: Vec<Name>,
    pub(super) at: usize,
}

pub(super) fn row(of: RowOf, work: &Work, timing: &Timing) -> PlannedNode {
    PlannedNode {
        node: of.node,
        batch: of.batch + 1,
        needs: of.needs,
        actions: work.actions.clone(),
        duration: work.duration,
        cost: work.cost,
        attempts_max: work.attempts_max,
        worst_usd_micros: work.open.usd.is_empty().then_some(work.worst.usd_micros),
        worst_ms: work.running_ms,
        starts_ms: timing.starts_ms[of.at],
        ends_ms: timing.ends_ms[of.at],
    }
}
