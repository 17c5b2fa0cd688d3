//! The bill of one run for programs.

use serde::Serialize;
use wonder_core::cost::Spend;
use wonder_core::{Time, TokenStatus};

use super::budget::BudgetJson;
use super::dollars_as_number;
use crate::cost::{AttemptBill, Bill, BudgetBill, Sum};
use crate::{RunView, Status};

#[derive(Debug, Serialize)]
pub struct BillJson<'v> {
    run: &'v str,
    workflow: &'v str,
    version: u32,
    status: Status,
    cost_usd: f64,
    usd_micros: u64,
    total: SumJson,
    /// What the run's own sum has: children tell when they end.
    settled_usd_micros: u64,
    /// What a fork copied, and was counted where it was spent.
    copied_usd_micros: u64,
    wall_ms: u64,
    task_ms: u64,
    /// How many tasks ran at once on average.
    parallelism: f64,
    nodes: Vec<NodeJson<'v>>,
    models: Vec<ModelJson<'v>>,
    runs: Vec<RunJson<'v>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<AttemptJson<'v>>>,
    budgets: Vec<BudgetJson>,
}

#[derive(Debug, Serialize)]
struct NodeJson<'v> {
    node: &'v str,
    #[serde(flatten)]
    sum: SumJson,
}

#[derive(Debug, Serialize)]
struct ModelJson<'v> {
    model: Option<&'v str>,
    #[serde(flatten)]
    sum: SumJson,
}

#[derive(Debug, Serialize)]
struct RunJson<'v> {
    run: &'v str,
    workflow: &'v str,
    #[serde(flatten)]
    sum: SumJson,
}

#[derive(Debug, Serialize)]
struct AttemptJson<'v> {
    run: &'v str,
    node: &'v str,
    token: u64,
    attempt: u32,
    began_at: Time,
    ended_at: Option<Time>,
    /// What the token came to by it; null while it is out.
    outcome: Option<TokenStatus>,
    failure: Option<&'v str>,
    child: Option<&'v str>,
    model: Option<&'v str>,
    tries: u64,
    #[serde(flatten)]
    spend: SpendJson,
}

impl<'v> BillJson<'v> {
    pub fn of(view: &'v RunView, bill: &'v Bill, budgets: &[BudgetBill], attempts: bool) -> Self {
        let spend = &bill.total.spend;
        BillJson {
            run: &view.row.run,
            workflow: &view.row.workflow,
            version: view.row.version,
            status: view.row.status,
            cost_usd: dollars_as_number(spend.usd_micros),
            usd_micros: spend.usd_micros,
            total: SumJson::of(&bill.total),
            settled_usd_micros: bill.settled.usd_micros,
            copied_usd_micros: bill.copied.usd_micros,
            wall_ms: bill.wall_ms,
            task_ms: spend.duration_ms,
            parallelism: bill.parallelism(),
            nodes: named(&bill.nodes, |node, sum| NodeJson { node, sum }),
            models: bill.models.iter().map(|(model, sum)| ModelJson::of(model.as_deref(), sum)).collect(),
            runs: bill
                .runs
                .iter()
                .map(|run| RunJson { run: &run.run, workflow: &run.workflow, sum: SumJson::of(&run.sum) })
                .collect(),
            attempts: attempts.then(|| bill.attempts.iter().map(AttemptJson::of).collect()),
            budgets: budgets.iter().map(BudgetJson::of).collect(),
        }
    }
}

fn named<'v, T>(sums: &'v [(String, Sum)], of: impl Fn(&'v str, SumJson) -> T) -> Vec<T> {
    sums.iter().map(|(name, sum)| of(name, SumJson::of(sum))).collect()
}

impl<'v> ModelJson<'v> {
    fn of(model: Option<&'v str>, sum: &Sum) -> ModelJson<'v> {
        ModelJson { model, sum: SumJson::of(sum) }
    }
}

impl<'v> AttemptJson<'v> {
    fn of(attempt: &'v AttemptBill) -> AttemptJson<'v> {
        let spend = &attempt.sum.spend;
        AttemptJson {
            run: &attempt.run,
            node: &attempt.label,
            token: attempt.token,
            attempt: attempt.number,
            began_at: attempt.began_at,
            ended_at: attempt.ended_at,
            outcome: attempt.outcome,
            failure: attempt.failure.as_deref(),
            child: attempt.child.as_deref(),
            model: spend.model_used.as_deref(),
            tries: attempt.sum.tries,
            spend: SpendJson::of(spend),
        }
    }
}

/// What was spent, for programs. Dollars twice: as a number to read, and as the integer that sums are made of.
#[derive(Debug, Serialize)]
struct SpendJson {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost_usd: f64,
    usd_micros: u64,
    /// Calls of models without prices: what they cost is not known, and is in no sum.
    #[serde(skip_serializing_if = "is_zero")]
    unpriced_calls: u64,
    task_ms: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SpendJson {
    fn of(spend: &Spend) -> SpendJson {
        SpendJson {
            calls: spend.calls,
            input_tokens: spend.input_tokens,
            output_tokens: spend.output_tokens,
            cached_tokens: spend.cached_tokens,
            cost_usd: dollars_as_number(spend.usd_micros),
            usd_micros: spend.usd_micros,
            unpriced_calls: spend.unpriced_calls,
            task_ms: spend.duration_ms,
        }
    }
}

/// A sum for programs.
#[derive(Debug, Serialize)]
struct SumJson {
    visits: u64,
    attempts: u64,
    tries: u64,
    #[serde(flatten)]
    spend: SpendJson,
}

impl SumJson {
    fn of(sum: &Sum) -> SumJson {
        let Sum { visits, attempts, tries, spend, .. } = sum;
        SumJson { visits: *visits, attempts: *attempts, tries: *tries, spend: SpendJson::of(spend) }
    }
}
