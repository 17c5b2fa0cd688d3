//! People are asked last: what they see of a node that failed, and what each of their answers does, in real
//! runs.

use serde_json::json;

use crate::place::{Place, Told, processes_of, until};

/// The mark beside a node's name on the page.
fn mark(told: &Told, node: &str) -> Option<char> {
    let page = told.page();
    let line = page.lines().find(|line| line.split_whitespace().nth(1) == Some(node))?;
    line.trim().chars().next()
}

#[test]
fn the_whole_walk_of_a_node_is_to_be_seen() {
    let place = Place::new();
    let file = place.file(
        "walk.yaml",
        "
wonder: 1
name: walk
max_parallel: 1
nodes:
  first: {shell: {command: 'until test -e go0; do sleep 0.01; done', timeout: 1m}}
  shaky:
    shell: {command: 'until test -e go$WONDER_ATTEMPT; do sleep 0.01; done; test $WONDER_ATTEMPT -gt 2', timeout: 1m}
    on_error: [{do: retry, initial_delay: 2s}, {do: escalate}]
  last: {mock: {output: {}}, needs: [shaky, first]}
",
    );
    let running = place.spawn(&["run", &file]);
    until("the run to be there", || place.json(&["list"], 0)[0]["run"].is_string());
    let told = Told::left(place);
    let go = |step: &str| told.place.file(step, "");
    let seen = |status: &str| {
        until(status, || {
            let shown = told.show();
            let visits = shown["nodes"].as_array().expect("nodes");
            visits.iter().any(|visit| visit["node"] == "shaky" && visit["status"] == status)
        });
        mark(&told, "shaky").expect("a line on the page")
    };
    let mut marks = vec![seen("pending")];
    go("go0");
    marks.push(seen("dispatched"));
    go("go1");
    marks.push(seen("retrying"));
    assert!(told.page().contains("again in"), "{}", told.page());
    go("go2");
    marks.push(seen("escalated"));
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(3));
    for text in ["attempt 2", "gate 1: shaky failed", "action=retry", "the command ended with exit code 1"] {
        assert!(told.page().contains(text), "{text}: {}", told.page());
    }
    let answering = told.place.spawn(&["answer", &told.run, "action=retry"]);
    marks.push(seen("dispatched"));
    go("go3");
    marks.push(seen("completed"));
    assert_eq!(answering.wait_with_output().expect("it ends").status.code(), Some(0));
    assert_eq!(marks, ['○', '●', '↻', '?', '●', '✓']);
    assert_eq!((&told.visit("shaky")["attempts"], &told.show()["status"]), (&json!(3), &json!("completed")));
}

fn escalates(rest: &str) -> String {
    format!(
        "
nodes:
  a:
    task: paths
    input_mapping: {{path: \"'old'\", mode: \"'fast'\"}}
    on_error: {{do: escalate}}
    next: [{{to: b}}]
  b: {{update_context: {{set: {{output.a: \"has(state.a) ? state.a : null\", output.after: _last_error.kind}}}}}}
tasks:
  paths:
    input_schema: {{type: object, properties: {{path: {{type: string}}}}}}
    steps:
      - {{ref: look, shell: {{command: 'test {{{{ input.path }}}} = new', timeout: 10s}}}}
      - {{ref: say, update_context: {{set: {{output.used: \"input.path + ' ' + input.mode\"}}}}}}
{rest}"
    )
}

#[test]
fn a_person_may_edit_the_input_and_try_again() {
    let mut told = Told::of(&escalates(""), 3);
    // What does not help is asked about again, as often as it takes.
    told.then(&["answer", r#"{"action": "retry", "input": {"path": 7}}"#, "--by", "ann"], 3);
    assert_eq!(told.gate()["title"], "a failed: contract_violation");
    told.then(&["answer", r#"{"action": "retry", "input": {"path": "new"}}"#, "--by", "ann"], 0);
    assert_eq!(told.view["output"], json!({"a": {"used": "new fast"}, "after": "contract_violation"}));
    assert!(told.events("gate_answered").iter().all(|event| event["by"] == "ann"));
    let dispatched = told.events("task_dispatched");
    assert_eq!(dispatched[1]["input"], json!({"path": "new", "mode": "fast"}));
    assert!(dispatched[1]["generation"].as_u64() > dispatched[0]["generation"].as_u64(), "{dispatched:#?}");
}

#[test]
fn a_person_may_skip_with_or_without_an_output() {
    let mut told = Told::of(&escalates(""), 3);
    told.then(&["answer", r#"{"action": "skip", "output": {"used": "by hand"}}"#], 0);
    assert_eq!(told.view["output"], json!({"a": {"used": "by hand"}, "after": "shell_exit"}));
    assert_eq!((&told.visit("a")["status"], told.metric("nodes_skipped")), (&json!("skipped"), 1));
    let mut told = Told::of(&escalates(""), 3);
    told.then(&["answer", "action=skip"], 0);
    assert_eq!(told.view["output"], json!({"a": null, "after": "shell_exit"}));
}

#[test]
fn a_person_may_cancel_and_nothing_is_left_over() {
    let place = Place::new();
    let file = place.file(
        "cancel.yaml",
        "
wonder: 1
name: cancel
nodes:
  a: {mock: {error: internal}, on_error: {do: escalate}}
  b: {shell: {command: 'sleep 60', timeout: 2m}}
  c: {mock: {}, needs: [a, b]}
",
    );
    let running = place.spawn(&["run", &file]);
    until("the gate and the sleep", || place.run(&["events", "-o", "json"]).out.contains("gate_opened"));
    let mut told = Told::left(place);
    until("the sleep", || processes_of(&told.run).iter().any(|line| line.starts_with("sleep")));
    told.then(&["answer", "action=cancel"], 4);
    assert_eq!(running.wait_with_output().expect("it ends").status.code(), Some(4));
    assert_eq!(told.view["status"], "cancelled");
    assert_eq!(processes_of(&told.run), Vec::<String>::new());
    assert_eq!(
        (&told.visit("a")["status"], &told.visit("b")["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

#[test]
fn an_answer_that_does_not_fit_is_refused_and_the_gate_stays_open() {
    let mut told = Told::of(&escalates(""), 3);
    for bad in ["action=maybe", r#"{"action": "retry", "extra": 1}"#, "{}"] {
        let refused = told.place.run(&["answer", &told.run, bad]);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
    }
    let id = told.gate()["id"].as_str().expect("an id").to_owned();
    told.then(&["answer", "action=skip", "--by", "ann"], 0);
    let late = told.place.run(&["answer", &id, "action=retry"]);
    assert_eq!(late.code, Some(2), "{late:#?}");
    assert!(late.err.contains("ann"), "who closed it: {late:#?}");
}

#[test]
fn pause_holds_the_whole_run_until_its_gate_is_answered() {
    let mut told = Told::of(
        "
nodes:
  start: {mock: {}, fan_out: all, next: [{to: a}, {to: b}]}
  a: {mock: {outcomes: [{error: internal}, {output: {}}]}, on_error: {do: pause}}
  b: {mock: {output: {}, delay: 50ms}, next: [{to: c}]}
  c: {mock: {output: {}}}
",
        3,
    );
    assert_eq!((&told.view["status"], &told.visit("c")["status"]), (&json!("paused"), &json!("pending")));
    let resumed = told.place.run(&["resume", &told.run]);
    assert_eq!(resumed.code, Some(2), "a gate wants an answer: {resumed:#?}");
    told.then(&["answer", "action=retry"], 0);
    assert_eq!(told.visit("c")["status"], "completed");
}

#[test]
fn a_question_survives_the_death_of_the_host() {
    let place = Place::new();
    let file = place.file(
        "asked.yaml",
        "
wonder: 1
name: asked
nodes:
  a: {mock: {outcomes: [{error: internal}, {output: {v: 1}}]}, on_error: {do: escalate}}
  b: {shell: {command: 'test -e go || sleep 60', timeout: 2m}}
  c: {mock: {output: {got: '{{ needs.a.v }}'}}, needs: [a, b]}
",
    );
    let mut child = place.spawn(&["run", &file]);
    until("the gate", || place.run(&["events", "-o", "json"]).out.contains("gate_opened"));
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    place.file("go", "");
    let mut told = Told::left(place);
    assert_eq!(told.gate()["title"], "a failed: internal");
    told.then(&["answer", "action=retry"], 0);
    assert_eq!(told.view["output"], json!({"c": {"got": "1"}}));
}

#[test]
fn a_question_in_a_child_is_answered_from_the_parents_side() {
    let family = "
nodes:
  call: {workflow_call: {workflow: child}, next: [{to: done}, {to: saved, on: failure}]}
  done: {update_context: {set: {output.got: state.call.v}}}
  saved: {update_context: {set: {output.got: _last_error.kind}}}
---
wonder: 1
name: child
nodes:
  x: {mock: {outcomes: [{error: internal}, {output: {v: 1}, delay: 5ms}]}, on_error: {do: escalate}}
";
    for (action, got) in [("retry", json!(1)), ("cancel", json!("subworkflow_failed"))] {
        let mut told = Told::of(family, 3);
        let gate = told.gate();
        assert_eq!((&gate["root"], &gate["workflow"]), (&json!(told.run), &json!("child")));
        // It stays until the parent has heard of it.
        told.then(&["answer", &format!("action={action}")], 0);
        assert_eq!(told.view["output"], json!({"got": got}));
    }
}

#[test]
fn who_edits_the_input_says_only_what_is_to_be_another() {
    let place = Place::new();
    let file = place.file(
        "edited.yaml",
        "
wonder: 1
name: edited
nodes:
  a: {update_context: {set: {n: '7', m: '8'}}, next: [{to: b}]}
  b: {shell: {command: 'test {{ input.x }} = good && echo {{ state.n }}{{ state.m }}', timeout: 30s}, on_error: {do: escalate}, output_mapping: {output.said: result.stdout}}
",
    );
    let run = place.json(&["run", &file, "--input", "x=bad"], 3);
    let id = run["run"].as_str().expect("an id");
    // What the node reads of the run's input, and one key of the state: the other stays.
    let ended = place.json(&["answer", id, "action=retry", "input.x=good", "input.state.m=9"], 0);
    assert_eq!(ended["output"]["said"], json!("79\n"));
}
