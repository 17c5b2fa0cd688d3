//! Bills: what they say, and that every list of them sums up to the same.

use wonder_core::event::{EventKind, GateId, TaskRetry};
use wonder_core::{Input, Time, Value};
use wonder_engine::cost::{Bill, GroupBy, Sum, Totals, budgets};
use wonder_engine::json::BillJson;
use wonder_engine::{RunRow, Status};

use super::walks::{MODELS, careful};
use super::{BUDGET, DAG, EACH, FAMILY, MANY, json, page, panel, shown};
use crate::stage::{START, Stage};
use crate::text::Text;
use crate::view::cost::{self, TotalsJson, totals_page};
use crate::view::list::Page;
use crate::view::paint::Paint;

/// Warned, raised, and with something out.
const BUDGETED: &str = r#"
name: frugal
budget: {usd: 0.05, tokens: 2000, wall: 10m, on_exceeded: pause}
nodes:
  one: {mock: {output: {}, delay: 1s, usage: {cost_usd: 0.045, input_tokens: 900, output_tokens: 50}}, next: [{to: two}]}
  two:
    budget: {usd: 0.02}
    mock: {output: {}, delay: 2s, usage: {cost_usd: 0.015, input_tokens: 100}}
    next: [{to: call}]
  call: {workflow_call: {workflow: inner}}
---
name: inner
nodes:
  think: {mock: {output: {}, delay: 500ms, usage: {cost_usd: 0.001}}, next: [{to: more}]}
  more: {mock: {output: {}, delay: 500ms, usage: {cost_usd: 0.002}}}
"#;

fn bill(stage: &Stage) -> Bill {
    Bill::of(&stage.run_tree(), stage.now)
}

fn billed(stage: &Stage, width: usize, attempts: bool) -> String {
    let run_tree = stage.run_tree();
    let budgets = budgets(&stage.definition().bundle, run_tree.root(), stage.now);
    cost::page(&stage.view(), &bill(stage), &budgets, (page(stage, width), attempts)).to_string()
}

fn raised(stage: Stage) -> Stage {
    let answer = Value::from_json_str(r#"{"action":"raise","usd":0.1}"#).unwrap();
    stage.say(Input::GateAnswered { gate: GateId(1), answer, by: "ann".into() })
}

#[test]
fn a_bill_says_where_the_money_went() {
    insta::assert_snapshot!("cost_80", billed(&panel().play(60_000), 80, false));
    insta::assert_snapshot!("cost_120", billed(&panel().play(60_000), 120, true));
    let models = Stage::open(MODELS, "{}").play(60_000);
    insta::assert_snapshot!("cost_models_80", billed(&models, 80, false));
    insta::assert_snapshot!("cost_models_120", billed(&models, 120, true));
    insta::assert_snapshot!("cost_family", billed(&Stage::open(FAMILY, "{}").play(9_000), 80, false));
    insta::assert_snapshot!("cost_dag", billed(&Stage::open(DAG, "{}").play(5_000), 80, false));
    insta::assert_snapshot!("cost_nothing", billed(&Stage::open(EACH, "{}").play(10), 80, false));
}

#[test]
fn a_budget_says_what_is_left() {
    let asks = Stage::open(BUDGETED, "{}").play(5_000);
    insta::assert_snapshot!("cost_budget_asks", billed(&asks, 80, false));
    let out = raised(asks).play(6_000);
    insta::assert_snapshot!("cost_budget_out", billed(&out, 80, false));
    assert!(shown(&out, 80).contains("$0.0450 of $0.1500 spent"), "`show` knows of the raise");
    let child = out.play(7_600);
    insta::assert_snapshot!("cost_budget_child", billed(&child, 80, false));
    insta::assert_snapshot!("cost_budget_done", billed(&child.play(30_000), 80, false));
    insta::assert_snapshot!("cost_budget_spent", billed(&Stage::open(BUDGET, "{}").play(5_000), 80, false));
}

#[test]
fn programs_get_the_same_bill() {
    let stage = raised(Stage::open(BUDGETED, "{}").play(5_000)).play(6_000);
    let (view, run_tree) = (stage.view(), stage.run_tree());
    let budgets = budgets(&stage.definition().bundle, run_tree.root(), stage.now);
    insta::assert_snapshot!("cost_json", json(&BillJson::of(&view, &bill(&stage), &budgets, true)));
}

/// What rows say, what events say, and every list of a bill.
#[test]
fn sums_over_rows_and_over_events_agree() {
    let done = raised(Stage::open(BUDGETED, "{}").play(5_000)).play(30_000);
    let stages = [
        done,
        careful(),
        panel().play(60_000),
        Stage::open(MODELS, "{}").play(60_000),
        Stage::open(FAMILY, "{}").play(2_000),
        Stage::open(FAMILY, "{}").play(9_000),
        Stage::open(DAG, "{}").play(5_000),
        Stage::open(MANY, "{}").play(2_500),
    ];
    for stage in stages {
        let bill = bill(&stage);
        let (usd, tokens) = spent_by_events(&stage);
        let spend = &bill.total.spend;
        assert_eq!((spend.usd_micros, spend.tokens()), (usd, tokens));
        let project = Totals::of(&stage.rows(), GroupBy::Workflow, None);
        assert_eq!((project.total.usd_micros, project.total.tokens), (usd, tokens));
        let attempts = bill.attempts.iter().map(|attempt| &attempt.sum);
        for sum in [summed(bill.nodes.iter().map(|(_, sum)| sum)), summed(attempts.clone())] {
            assert_eq!((sum.0, sum.1, sum.2), (usd, tokens, bill.total.attempts));
        }
        let of_models = summed(bill.models.iter().map(|(_, sum)| sum));
        assert_eq!((of_models.0, of_models.1), (usd, tokens));
        assert_eq!(summed(bill.runs.iter().map(|run| &run.sum)).0, usd);
        if bill.runs.len() == 1 {
            assert_eq!(bill.settled.usd_micros, stage.row().usd_micros);
        }
    }
}

fn summed<'s>(sums: impl Iterator<Item = &'s Sum>) -> (u64, u64, u64) {
    sums.fold((0, 0, 0), |(usd, tokens, attempts), sum| {
        (usd + sum.spend.usd_micros, tokens + sum.spend.tokens(), attempts + sum.attempts)
    })
}

/// Straight from the events, without a fold in between: reports of workers only.
fn spent_by_events(stage: &Stage) -> (u64, u64) {
    let (mut usd, mut tokens) = (0, 0);
    for (_, event) in &stage.updates().events {
        let report = match &event.kind {
            EventKind::TaskRetrying(TaskRetry { report, .. })
            | EventKind::TaskCompleted { report, .. }
            | EventKind::TaskFailed { report, .. }
            | EventKind::TokenSkipped { report, .. }
            | EventKind::TokenCancelled { report, .. }
            | EventKind::GateOpened { report, .. } => report.clone(),
            EventKind::LateReport { report, .. } => Some(report.clone()),
            _ => None,
        };
        usd += report.as_ref().map_or(0, |report| report.spend.usd_micros);
        tokens += report.as_ref().map_or(0, |report| report.spend.tokens());
    }
    (usd, tokens)
}

#[test]
fn a_project_is_summed_by_what_people_ask_for() {
    const DAY_MS: i64 = 86_400_000;
    let row = panel().play(60_000).row();
    let rows: Vec<RunRow> = [
        ("01KDTXS6001JD7Q2M4K1ZABCD1", "judge_panel", Status::Completed, 0, 12_345_678),
        ("01KDTXS6001JD7Q2M4K1ZABCD2", "sweep", Status::Failed, 1, 4_200),
        ("01KDTXS6001JD7Q2M4K1ZABCD3", "judge_panel", Status::Waiting, 1, 1),
        ("01KDTXS6001JD7Q2M4K1ZABCD4", "hello", Status::Completed, 2, 0),
    ]
    .map(|(run, workflow, status, day, usd_micros)| RunRow {
        closed_ms: 0,
        run: run.to_owned(),
        root: run.to_owned(),
        workflow: workflow.to_owned(),
        status,
        usd_micros,
        tokens: usd_micros / 10,
        started_at: Time(START.0 + day * DAY_MS),
        ..row.clone()
    })
    .to_vec();
    let page = Page { now: START, width: Some(80), paint: Paint::NONE };
    for (name, by) in [("workflow", GroupBy::Workflow), ("day", GroupBy::Day), ("status", GroupBy::Status)] {
        let project = Totals::of(&rows, by, None);
        insta::assert_snapshot!(format!("cost_by_{name}"), totals_page(&project, page));
    }
    let since = Totals::of(&rows, GroupBy::Day, Some(Time(START.0 + DAY_MS)));
    insta::assert_snapshot!("cost_since_json", json(&TotalsJson::of(&since)));
    assert_eq!(totals_page(&Totals::of(&[], GroupBy::Day, None), page), Text::EMPTY);
}
