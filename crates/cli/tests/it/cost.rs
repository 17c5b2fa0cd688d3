//! `cost`, `show` of a run that did not go straight, and `show --graph`.

use insta::assert_snapshot;
use serde_json::Value as Json;

use crate::home::Home;

/// Tries again, asks a human, puts a check behind a node, calls a child.
const CAREFUL: &str = r#"
name: careful
budget: {usd: 0.02}
nodes:
  fetch:
    mock:
      outcomes:
        - {error: {kind: timeout, message: no answer}}
        - {error: {kind: shell_exit, message: exit code 2}}
        - {output: {v: 1}, usage: {cost_usd: 0.0042, input_tokens: 1200, output_tokens: 30}}
    on_error: [{when: "error.kind == 'timeout'", do: retry, max: 1, backoff: none}, {do: escalate}]
    next: [{to: draft}]
  draft:
    mock:
      outcomes:
        - {error: {kind: assertion_failed, message: no sources}, usage: {cost_usd: 0.001}}
        - {output: {text: fine}, usage: {cost_usd: 0.002}}
    on_error: [{do: {add_validator: check}, backoff: none}]
    next: [{to: call}]
  call: {workflow_call: {workflow: inner}}
tasks:
  check: {steps: [{ref: ask, mock: {output: {fine: true}}}]}
---
name: inner
nodes: {think: {mock: {output: {done: true}, usage: {cost_usd: 0.003, input_tokens: 10}}}}
"#;

/// Columns are as wide as the times in them, and how many tasks ran at once is nobody's promise.
fn steady(shot: &str) -> String {
    let lines = shot.lines().map(|line| match line.split_once(" of task time: ") {
        Some((before, _)) => format!("{before} of task time: [N] at once on average"),
        None if line.ends_with("TIME") => {
            format!("  {}", line.split_whitespace().collect::<Vec<_>>().join("  "))
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_that_asked_a_human_shows_its_walk_and_its_bill() {
    let home = Home::with(CAREFUL);
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("show_escalated", home.wonder(&["show"]));
    home.wonder(&["answer", "last:1", "action=retry"]);
    assert_snapshot!("show_careful", home.wonder(&["show", "last"]));
    assert_snapshot!("cost_run", steady(&home.wonder(&["cost", "last"])));
    assert_snapshot!("cost_attempts", steady(&home.wonder(&["cost", "last", "--attempts"])));
    assert_snapshot!("show_graph", home.wonder(&["show", "last", "--graph"]));
    assert_snapshot!("show_graph_dot", home.wonder(&["show", "--graph", "--format", "dot"]));
    let graph = home.json(&["show", "last", "--graph", "-o", "json"]);
    let added: Vec<&Json> =
        graph["nodes"].as_array().unwrap().iter().filter(|node| node["added"] == true).collect();
    assert_eq!(
        (added.len(), &added[0]["node"], &added[0]["state"]),
        (1, &"draft_check".into(), &"completed".into())
    );
    let shown = home.json(&["show", "last", "-o", "json"]);
    let walk: Vec<&str> = shown["nodes"][0]["walk"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["status"].as_str().unwrap())
        .collect();
    let expected = [
        "pending",
        "dispatched",
        "retrying",
        "dispatched",
        "escalated",
        "pending",
        "dispatched",
        "completed",
    ];
    assert_eq!(walk, expected);
    assert_eq!(shown["mutations"][0]["change"], "add_validator");
}

#[test]
fn all_runs_are_summed() {
    let home = Home::with(CAREFUL);
    home.write("greet.yaml", &format!("wonder: 1\n{}", crate::run::GREET));
    home.wonder(&["run", "flow.yaml"]);
    home.wonder(&["answer", "last:1", "action=retry"]);
    home.wonder(&["run", "greet.yaml", "-i", "who=you"]);
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("cost", home.wonder(&["cost"]));
    assert_snapshot!("cost_by_status", home.wonder(&["cost", "--by", "status", "--since", "1h"]));
    let json = home.wonder(&["cost", "-o", "json"]);
    assert_snapshot!("cost_json", json);
    let days = home.json(&["cost", "--by", "day", "-o", "json"]);
    let by_day: u64 =
        days["groups"].as_array().unwrap().iter().map(|day| day["usd_micros"].as_u64().unwrap()).sum();
    assert_eq!(days["total"]["usd_micros"].as_u64(), Some(by_day));
    let nobody = home.json(&["cost", "--since", "2999-01-01", "-o", "json"]);
    assert_eq!(nobody["total"]["runs"], 0);
}

/// What the rows of the database say, what every event says, what `cost` says of each run and of all.
#[test]
fn rows_and_events_sum_up_to_the_same() {
    let home = Home::with(CAREFUL);
    home.wonder(&["run", "flow.yaml"]);
    home.wonder(&["answer", "last:1", "action=retry"]);
    let list = home.json(&["list", "--all", "-o", "json"]);
    let (mut by_events, mut by_bill) = (0, 0);
    for run in list.as_array().unwrap() {
        let id = run["run"].as_str().unwrap();
        let events = home.text(&["events", id, "-o", "json"]);
        for event in events.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()) {
            // The events of a child come with those of the run that called it.
            if event["run"] == run["run"] {
                by_events += event["report"]["spend"]["usd_micros"].as_u64().unwrap_or(0);
            }
        }
        if run["parent"].is_null() {
            let bill = home.json(&["cost", id, "-o", "json"]);
            by_bill += bill["total"]["usd_micros"].as_u64().unwrap();
        }
    }
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let sql = "SELECT sum(usd_micros) FROM runs WHERE parent IS NULL";
    let by_rows: u64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
    let by_project = home.json(&["cost", "-o", "json"])["total"]["usd_micros"].as_u64().unwrap();
    assert_eq!((by_events, by_bill, by_rows, by_project), (10_200, 10_200, 10_200, 10_200));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let home = Home::new();
    assert_snapshot!("cost_nothing", home.wonder(&["cost"]));
    assert_snapshot!("cost_no_run", home.wonder(&["cost", "last"]));
    assert_snapshot!("cost_bad_since", home.wonder(&["cost", "--since", "yesterday"]));
    assert_snapshot!("cost_run_by_day", home.wonder(&["cost", "last", "--by", "day"]));
    assert_snapshot!("show_format_alone", home.wonder(&["show", "--format", "dot"]));
}
