//! A run at any of its events, its visits and gates with their history, lists by what people look for, and the
//! events of all runs.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::home::Home;
use crate::run::GREET;

const FAMILY: &str = r#"
name: outer
project_id: lab
nodes:
  first: {mock: {output: {n: 1}}, output_mapping: {state.n: result.n}, next: [{to: call}]}
  call: {workflow_call: {workflow: inner}, next: [{to: ask}]}
  ask:
    human_gate: {title: "Ship {{ state.n }}?", form: {type: object, required: [ok], properties: {ok: {type: boolean}}}}
    next: [{to: end}]
  end: {mock: {output: {over: true}}}
---
name: inner
nodes: {think: {mock: {output: {thought: 2}}}}
"#;

/// The number of the first event of a kind.
fn event(home: &Home, kind: &str) -> u64 {
    let events = home.text(&["events", "last", "-o", "json"]);
    let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.find(|event| event["kind"] == kind).unwrap()["seq"].as_u64().unwrap()
}

fn runs(home: &Home, flags: &[&str]) -> Vec<String> {
    let list = home.json(&[&["list", "-o", "json"], flags].concat());
    let ids = list.as_array().unwrap().iter();
    ids.map(|row| row["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_can_be_seen_as_it_was_after_any_event() {
    let home = Home::with(FAMILY);
    home.wonder(&["run", "flow.yaml"]);
    home.wonder(&["answer", "last:1", "ok=true"]);
    let at = |seq: u64| home.json(&["show", "last", "--at", &seq.to_string(), "-o", "json"]);
    let opened = event(&home, "gate_opened");

    let first = at(1);
    assert_eq!(
        (&first["status"], &first["seq"], &first["nodes"]),
        (&json!("running"), &json!(1), &json!([]))
    );
    let waits = at(opened);
    assert_eq!((&waits["status"], &waits["state"]["n"]), (&json!("waiting"), &json!(1)));
    assert_eq!(waits["gates"][0]["title"], "Ship 1?");
    assert_eq!(waits["children"].as_array().unwrap().len(), 1);
    assert!(waits["nodes"].as_array().unwrap().iter().all(|visit| visit["node"] != "end"), "{waits}");
    let last = home.json(&["show", "last", "-o", "json"]);
    let end = at(last["seq"].as_u64().unwrap());
    for key in ["status", "output", "state", "nodes", "metrics", "ended_at", "children"] {
        assert_eq!(end[key], last[key], "after the last event it is as it is now: {key}");
    }
    assert_snapshot!("show_at", home.wonder(&["show", "last", "--at", &opened.to_string()]));
    assert_snapshot!("show_at_nothing", home.wonder(&["show", "last", "--at", "0"]));
    assert_snapshot!("show_at_beyond", home.wonder(&["show", "last", "--at", "999"]));
    let error = home.json(&["show", "last", "--at", "999", "-o", "json"])["error"].clone();
    assert_eq!((&error["code"], &error["cause"]["reason"]), (&json!("not_found"), &json!("no_such_event")));
    assert_eq!(error["cause"]["last"], last["seq"]);
}

#[test]
fn a_visit_has_its_input_and_its_result() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=world"]);
    let shown = home.json(&["show", "-o", "json"]);
    assert_eq!(shown["nodes"][0]["result"], json!({"text": "Hello, world"}));
    assert_eq!(shown["nodes"][0]["input"]["input"]["who"], "world", "{shown}");
}

#[test]
fn a_gate_tells_who_answered_when_and_what() {
    let home = Home::with(FAMILY);
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("gate_open", home.wonder(&["gates", "last:1"]));
    home.wonder(&["answer", "last:1", "ok=true", "--by", "bob"]);
    assert_snapshot!("gate_answered", home.wonder(&["gates", "last:1"]));
    let gate = home.json(&["gates", "last:1", "-o", "json"]);
    assert_eq!((&gate["open"], &gate["answers"][0]["by"]), (&json!(false), &json!("bob")));
    assert_eq!(gate["answers"][0]["answer"], json!({"ok": true}));
    assert_eq!(gate["closed"]["answered"], true);
    assert_snapshot!("gate_unknown", home.wonder(&["gates", "last:7"]));
}

#[test]
fn why_is_data_for_programs() {
    let home = Home::with(FAMILY);
    home.wonder(&["run", "flow.yaml"]);
    let why = home.json(&["why", "last", "-o", "json"]);
    let run = home.json(&["show", "last", "-o", "json"])["run"].clone();
    let (by, on) = (&why[0]["by"], &why[0]["on"]);
    assert_eq!((&why[0]["run"], by, &why[0]["node"]), (&run, &json!("run"), &json!("ask")));
    assert_eq!((&on["for"], &on["gate"], &on["title"]), (&json!("gate"), &json!(1), &json!("Ship 1?")));
}

#[test]
fn runs_are_found_by_what_people_look_for() {
    let home = Home::with(GREET);
    home.write("family.yaml", &format!("wonder: 1\n{FAMILY}"));
    for label in ["team=docs", "team=code"] {
        home.wonder(&["run", "flow.yaml", "-i", "who=me", "--label", label, "--label", "by=ann"]);
    }
    home.wonder(&["run", "family.yaml"]);
    let all = runs(&home, &["--all"]);
    let roots = runs(&home, &[]);
    assert_eq!((all.len(), roots.len()), (4, 3));

    assert_eq!(runs(&home, &["--label", "team=docs"]), [roots[2].as_str()]);
    assert_eq!(runs(&home, &["--label", "team=code", "--label", "by=ann"]), [roots[1].as_str()]);
    assert_eq!(runs(&home, &["--label", "team=ann"]), [""; 0]);
    assert_eq!(runs(&home, &["--project", "lab"]), [roots[0].as_str()]);
    assert_eq!(
        runs(&home, &["--parent", "last"]),
        [all.iter().find(|run| run.contains('.')).unwrap().as_str()]
    );
    assert_eq!(runs(&home, &["--status", "waiting", "--workflow", "outer"]), [roots[0].as_str()]);

    assert_eq!(runs(&home, &["--since", "1h"]), roots);
    assert_eq!(runs(&home, &["--until", "1h"]), [""; 0]);
    assert_eq!(runs(&home, &["--since", "2020-01-01", "--until", "2021-01-01"]), [""; 0]);

    home.write(
        "labelled.yaml",
        "wonder: 1\nname: labelled\nlabels: {team: file, tier: gold}\nnodes: {a: {mock: {output: {}}}}\n",
    );
    home.wonder(&["run", "labelled.yaml", "-d", "--label", "team=mine"]);
    let last = runs(&home, &["--limit", "1"]);
    assert_eq!(runs(&home, &["--label", "tier=gold"]), last, "a file's labels reach the run");
    assert_eq!(runs(&home, &["--label", "team=mine"]), last, "and what is typed goes over them");
    assert_eq!(runs(&home, &["--label", "team=file"]), [""; 0]);
    assert_eq!(runs(&home, &["--status", "interrupted"]), last);
    assert_snapshot!("list_page", home.wonder(&["list", "--limit", "2"]));
    home.wonder(&["cancel", "last"]);
    assert_eq!(runs(&home, &["--status", "interrupted"]), [""; 0]);
    assert_eq!(runs(&home, &["--status", "cancelled"]), last);
    let roots = [last, roots].concat();

    assert_eq!(runs(&home, &["--limit", "2"]), roots[..2]);
    assert_eq!(runs(&home, &["--limit", "2", "--after", &roots[1]]), roots[2..]);
    assert_snapshot!("list_after_nothing", home.wonder(&["list", "--after", "nope"]));
    assert_snapshot!("list_bad_since", home.wonder(&["list", "--since", "yesterday"]));
}

#[test]
fn the_events_of_all_runs_come_in_one_order() {
    let home = Home::with(GREET);
    let run = |who: &str| home.json(&["run", "flow.yaml", "-i", who, "-o", "json"])["run"].clone();
    let (first, second) = (run("who=one"), run("who=two"));
    let all = |after: &str| -> Vec<Value> {
        let text = home.text(&["events", "--all", "--after", after, "-o", "json"]);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let events = all("0");
    let of = |run: &Value| -> Vec<u64> {
        let own = events.iter().filter(|event| event["run"] == *run);
        own.map(|event| event["seq"].as_u64().unwrap()).collect()
    };
    let own = home.text(&["events", first.as_str().unwrap(), "-o", "json"]).lines().count() as u64;
    assert_eq!(of(&first), (1..=own).collect::<Vec<_>>());
    assert_eq!(of(&second), (1..=own).collect::<Vec<_>>());
    let cursors: Vec<u64> = events.iter().map(|event| event["cursor"].as_u64().unwrap()).collect();
    assert!(cursors.is_sorted(), "{cursors:?}");
    let half = events.iter().rfind(|event| event["run"] == first).unwrap()["cursor"].to_string();
    assert!(all(&half).iter().all(|event| event["run"] == second));
    assert_eq!(all(&cursors.last().unwrap().to_string()), [json!(null); 0]);
    assert!(home.wonder(&["events", "--all"]).contains("run_completed"));
}
