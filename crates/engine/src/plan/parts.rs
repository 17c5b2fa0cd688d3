//! How sums and times become a report. What they are is worked out elsewhere.

use wonder_core::def::Budget;
use wonder_core::graph::Graph;

use super::bound::Sums;
use super::report::{BudgetPlan, CostPlan, DurationPlan, Total};
use super::work::Work;

/// What the expected run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) expected_ms: u64,
    pub(super) lower_bound_ms: u64,
}

/// The running time ends at the workflow's timeout at the latest; its waits come on top, for its clock
/// stands still while it only waits.
pub(super) fn duration(graph: &Graph, timing: Timing, sums: &Sums) -> DurationPlan {
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
