//! Budgets of projects: what all runs of a project spend together stays inside, whoever runs them and whatever
//! dies; and raising the budget lets them go on.

use serde_json::{Value, json};

use crate::place::{Dice, Place, until};

/// Twenty calls of five cents, eight at a time.
const PAYER: &str = "wonder: 1
name: payer
project_id: lab
nodes:
  spread: {update_context: {set: {all: '[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]'}}, next: [{to: call, foreach: {items: state.all, as: item, max_parallel: 8}}]}
  call:
    task: calls
    next: [{to: join, synchronization: {merge: {source: _branch.index, target: state.done}}}]
  join: {update_context: {set: {output.made: size(state.done)}}}
tasks:
  calls:
    steps:
      - {ref: say, shell: {command: 'echo x >> calls.txt', timeout: 30s}}
      - {ref: pay, mock: {output: {}, delay: 10ms, usage: {cost_usd: 0.05}}}
";

fn allow(place: &Place, usd: f64) {
    place.file("wonder.toml", &format!("[projects.lab]\nbudget_usd = {usd:?}\n"));
}

fn calls(place: &Place) -> usize {
    std::fs::read_to_string(place.dir.path().join("calls.txt")).map_or(0, |text| text.lines().count())
}

fn spent_cents(place: &Place) -> u64 {
    let cost = place.json(&["cost", "--by", "project"], 0);
    let lab: &Value = cost["groups"].as_array().and_then(|all| all.first()).unwrap_or(&Value::Null);
    (lab["cost_usd"].as_f64().unwrap_or(0.0) * 100.0).round() as u64
}

#[test]
fn runs_of_a_project_share_its_budget() {
    let place = Place::new();
    allow(&place, 1.5);
    let file = place.file("payer.yaml", PAYER);
    assert_eq!(place.json(&["run", &file], 0)["cost_usd"], json!(1.0));
    let held = place.json(&["run", &file], 6);
    assert_eq!((&held["status"], &held["cost_usd"]), (&json!("waiting"), &json!(0.5)));
    assert_eq!(
        held["waiting"][0]["message"],
        "project lab has spent $1.50 of $1.50, and the next call does not fit"
    );
    assert_eq!((calls(&place), spent_cents(&place)), (30, 150));
    let run = held["run"].as_str().expect("an id");
    // What is not in the project is not held, and looking from another process tells the same.
    let free = place.file("free.yaml", &PAYER.replace("project_id: lab\n", ""));
    assert_eq!(place.json(&["run", &free], 0)["cost_usd"], json!(1.0));
    assert_eq!(place.json(&["show", run], 0)["waiting"], held["waiting"]);
    assert!(place.run(&["why", run]).out.contains("project lab has spent $1.50 of $1.50"));
    // Resuming without another budget changes nothing; with one it goes on.
    assert_eq!(place.json(&["resume", run], 6)["cost_usd"], json!(0.5));
    allow(&place, 2.0);
    let ended = place.json(&["resume", run], 0);
    assert_eq!((&ended["output"], &ended["cost_usd"]), (&json!({"made": 20}), &json!(1.0)));
}

#[test]
fn a_project_is_not_overspent_by_more_than_what_was_out_when_its_owner_died() {
    let mut dice = Dice(11);
    let place = Place::new();
    allow(&place, 1.2);
    let file = place.file("payer.yaml", PAYER);
    let mut lost = 0;
    for _ in 0..3 {
        let before = calls(&place);
        let mut child = place.spawn(&["run", &file]);
        let more = before + 1 + dice.below(6) as usize;
        until("some calls", || calls(&place) >= more || matches!(child.try_wait(), Ok(Some(_))));
        child.kill().expect("it dies");
        child.wait().expect("it is dead");
        // At most eight were out and will be made again.
        lost += 8;
    }
    for run in place.json(&["list"], 0).as_array().expect("runs") {
        let run = run["run"].as_str().expect("an id");
        let ended = place.run(&["resume", run]);
        assert!(matches!(ended.code, Some(0 | 6)), "{ended:#?}");
    }
    assert_eq!(spent_cents(&place), 120, "all that was allowed, and no more");
    assert!((24..=24 + lost).contains(&calls(&place)), "{}", calls(&place));
}
