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
fn an_answer_is_typed_by_its_form() {
    let home = Home::with(
        r#"
name: ask
nodes:
  ask:
    human_gate:
      title: Which version?
      form:
        type: object
        required: [version]
        properties: {version: {type: string}, copies: {type: integer}, ok: {type: boolean}}
    next: [{to: say}]
  say: {human_gate: {title: "In a word?", form: {type: string}}}
output_mapping: {answer: state.ask, word: state.say}
"#,
    );
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("answer_misfit", home.wonder(&["answer", "last", "version=1.10", "copies=two"]));
    home.wonder(&["answer", "last", "version=1.10", "copies=2", "ok=true"]);
    let done = home.json(&["answer", "last", "-o", "json", "1.10"]);
    let answer = serde_json::json!({"version": "1.10", "copies": 2, "ok": true});
    assert_eq!(done["output"], serde_json::json!({"answer": answer, "word": "1.10"}));
}

#[test]
fn gates_say_where_until_when_and_what_can_be_answered() {
    let home = Home::with(
        r#"
name: reviews
nodes:
  files:
    mock: {output: {names: [a.rs, b.rs]}}
    next: [{to: review, foreach: {items: result.names, as: file}}]
  review:
    human_gate: {title: "Is {{ file }} fine?", timeout: 2h, form: {type: object, required: [verdict], properties: {verdict: {enum: [keep, drop]}}}}
    next: [{to: report, synchronization: {merge: {target: state.all}}}]
  report: {mock: {output: {ok: true}}}
"#,
    );
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("gates_of_branches", home.wonder(&["gates"]));
    let gates = home.json(&["gates", "-o", "json"]);
    assert_eq!((&gates[1]["visit"], &gates[1]["item"]), (&"review[1]".into(), &"b.rs".into()));
    let runs = home.json(&["list", "-o", "json"]);
    assert_eq!(gates[0]["run"], runs[0]["run"], "one key for a run's id");
    home.wonder(&["answer", "last:1", "verdict=keep", "--by", "bob"]);
    home.wonder(&["answer", "last:2", "verdict=drop", "--by", "eve"]);
    assert_snapshot!("show_gate_history", home.wonder(&["show"]));
    let history = home.json(&["show", "-o", "json"])["gate_history"].clone();
    assert_eq!((&history[1]["answers"][0]["by"], &history[1]["at"]), (&"eve".into(), &"review[1]".into()));
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
    assert_snapshot!("signal", home.wonder(&["signal", "last", "paid", "amount:=12", "--key", "order-7"]));
    assert_snapshot!("signal_late", home.wonder(&["signal", "last", "paid"]));
}

#[test]
fn the_key_of_an_event_is_a_text_unless_the_run_waits_for_another() {
    let home = Home::with(
        r#"
name: waits
nodes:
  number: {wait_event: {event: paid, key: "7"}, next: [{to: text}]}
  text: {wait_event: {event: paid, key: "'1.10'"}}
output_mapping: {first: state.number, second: state.text}
"#,
    );
    home.wonder(&["run", "flow.yaml"]);
    home.wonder(&["signal", "last", "paid", "version=1.10", "--key", "7"]);
    let done = home.json(&["signal", "last", "paid", "n:=2", "--key", "1.10", "-o", "json"]);
    assert_eq!(done["output"], serde_json::json!({"first": {"version": "1.10"}, "second": {"n": 2}}));
}

#[test]
fn a_message_is_told_to_whoever_takes_it() {
    let home = Home::with(
        r#"
name: outer
nodes: {fix: {workflow_call: {workflow: inner}}}
output_mapping: {heard: state.fix}
---
name: inner
nodes: {hear: {wait_event: {event: tell}}}
output_mapping: {all: state.hear}
"#,
    );
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("tell_nothing", home.wonder(&["tell", "last"]));
    assert_snapshot!("tell_nobody", home.wonder(&["tell", "last/other", "hello"]));
    assert_snapshot!("tell", home.wonder(&["tell", "last/fix", "only the parser", "--by", "bob"]));
    assert_snapshot!("tell_late", home.wonder(&["tell", "last", "hello"]));
}
