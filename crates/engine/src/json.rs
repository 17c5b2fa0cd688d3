//! What programs are shown of runs: the objects of `-o json` and of the server, whose keys are the same and stable.
//! People's screens are made elsewhere, from the same views.

mod bill;
mod budget;
pub mod changes;
mod show;

use std::collections::BTreeMap;

pub use bill::BillJson;
use serde::Serialize;
pub use show::{NodeJson, ShowJson, budget_micros, visits};
use wonder_core::error::Failure;
use wonder_core::{Time, Value, visible};

use crate::{RunRow, RunView, Status, WaitView};

/// `{run, workflow, version, status, output, error, waiting, cost_usd, tokens, duration_ms}`, in this order.
#[derive(Debug, Serialize)]
pub struct Outcome<'v> {
    run: &'v str,
    workflow: &'v str,
    version: u32,
    status: Status,
    output: Option<&'v Value>,
    error: Option<&'v Failure>,
    waiting: &'v [WaitView],
    cost_usd: Option<f64>,
    tokens: u64,
    duration_ms: u64,
}

impl<'v> Outcome<'v> {
    pub fn of(view: &'v RunView) -> Outcome<'v> {
        Outcome {
            run: &view.row.run,
            workflow: &view.row.workflow,
            version: view.row.version,
            status: view.row.status,
            output: view.output.as_ref(),
            error: view.error.as_ref(),
            waiting: &view.waiting,
            cost_usd: cost_as_number(view.row.usd_micros, view.unpriced_calls),
            tokens: view.row.tokens,
            duration_ms: view.duration_ms,
        }
    }
}

/// One run of `list -o json`.
#[derive(Debug, Serialize)]
pub struct RunJson<'r> {
    run: &'r str,
    workflow: &'r str,
    version: u32,
    status: Status,
    root: &'r str,
    parent: Option<&'r str>,
    started_at: Time,
    ended_at: Option<Time>,
    cost_usd: f64,
    tokens: u64,
    project: &'r str,
    driven: bool,
    labels: &'r BTreeMap<String, String>,
}

impl<'r> RunJson<'r> {
    pub fn of(row: &'r RunRow) -> RunJson<'r> {
        RunJson {
            run: &row.run,
            workflow: &row.workflow,
            version: row.version,
            status: row.status,
            root: &row.root,
            parent: row.parent.as_deref(),
            started_at: row.started_at,
            ended_at: row.ended_at,
            cost_usd: dollars_as_number(row.usd_micros),
            tokens: row.tokens,
            project: &row.project,
            driven: row.driven,
            labels: &row.labels,
        }
    }
}

/// On one line and at most so many characters; what is cut is marked. What cannot be seen counts as it is shown.
pub fn brief(text: &str, chars_max: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let flat = visible::line(&flat);
    if flat.chars().count() <= chars_max {
        return flat.into_owned();
    }
    flat.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

/// The same for programs: null where it is not known.
pub fn cost_as_number(usd_micros: u64, unpriced: u64) -> Option<f64> {
    (usd_micros > 0 || unpriced == 0).then(|| dollars_as_number(usd_micros))
}

/// Dollars as a decimal number, for programs.
pub fn dollars_as_number(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}
