//! Gates, answers and signals.

use insta::assert_snapshot;

use crate::home::Home;

const GATE: &str = r#"
name: ask
nodes:
  ask:
    human_gate:
      title: Ship it?
      body: All checks are green.
      form: {type: object, required: [ok], properties: {ok: {type: boolean}, why: {type: string}}}
    next: [{to: ship}]
  ship: {mock: {output: {shipped: true}}}
"#;

#[test]
fn a_gate_is_shown_answered_and_closed() {
    let home = Home::with(GATE);
    assert_snapshot!("run_waits", home.wonder(&["run", "flow.yaml"]));
    assert_snapshot!("gates", home.wonder(&["gates"]));
    assert_snapshot!("why", home.wonder(&["why", "last"]));
    assert_snapshot!("show_waits", home.wonder(&["show"]));
    let gate = home.json(&["gates", "-o", "json"])[0].clone();
    for key in ["id", "run", "node", "kind", "title", "form", "opened_at"] {
        assert!(!gate[key].is_null(), "{key} is there: {gate}");
    }

    assert_snapshot!("answer_bad", home.wonder(&["answer", "last:1", "ok=perhaps"]));
    assert_snapshot!("answer_not_typed", home.wonder(&["answer", "last:1"]));
    assert_snapshot!(
        "answer",
        home.wonder(&["answer", gate["id"].as_str().unwrap(), "ok=true", "why=it is good"])
    );
    assert_snapshot!("answer_closed", home.wonder(&["answer", "last:1", "ok=true"]));
    assert_snapshot!("gates_none", home.wonder(&["gates"]));
}

#[test]
fn an_answer_may_only_be_recorded() {
    let home = Home::with(GATE);
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!(
        "answer_detached",
        home.wonder(&["answer", "last", r#"{"ok":false}"#, "-d", "--by", "bob"])
    );
    assert_snapshot!("why_interrupted", home.wonder(&["why", "last"]));
    assert_snapshot!("resume_after_answer", home.wonder(&["resume", "last"]));
}

#[test]
fn the_gate_of_a_child_carries_the_whole_run_on() {
    let home = Home::with(
        r#"
name: outer
nodes: {call: {workflow_call: {workflow: inner}, next: [{to: end}]}, end: {mock: {output: {over: true}}}}
---
name: inner
nodes: {ask: {human_gate: {title: "Really?"}}}
"#,
    );
    assert_snapshot!("run_child_waits", home.wonder(&["run", "flow.yaml"]));
    let gates = home.json(&["gates", "last", "-o", "json"]);
    assert_snapshot!("answer_child", home.wonder(&["answer", gates[0]["id"].as_str().unwrap(), "yes=1"]));
}

#[test]
fn an_event_lets_a_run_go_on() {
    let home = Home::with(
        r#"
name: waits
nodes:
  paid: {wait_event: {event: paid, key: "'order-7'"}}
"#,
    );
    assert_snapshot!("run_waits_for_event", home.wonder(&["run", "flow.yaml"]));
    assert_snapshot!("list_waits_for_event", home.wonder(&["list"]));
    assert_snapshot!("signal", home.wonder(&["signal", "last", "paid", "amount=12", "--key", "order-7"]));
    assert_snapshot!("signal_late", home.wonder(&["signal", "last", "paid"]));
}
