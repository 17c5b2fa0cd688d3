//! What is done about a failure, in real runs: each cell of the matrix with its default and the other ways,
//! and the order in which rules are asked.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::place::{Place, Told, until};

/// A server that takes connections and never says a word.
fn silent_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for connection in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            held.push(connection);
        }
    });
    (url, calls)
}

/// Which rule answered each failure.
fn rules(told: &Told) -> Vec<Value> {
    told.events("task_retrying").iter().map(|event| event["rule"].clone()).collect()
}

// API timeout.

#[test]
fn an_api_that_times_out_is_called_three_times_more_with_doubled_waits() {
    let (url, calls) = silent_server();
    let workflow = format!(
        "nodes:\n  call: {{http_request: {{url: '{url}', allow_private: true, timeout: 50ms}}}}\n  \
         after: {{mock: {{}}, needs: [call]}}\n"
    );
    let told = Told::of(&workflow, 1);
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    assert_eq!((&told.view["status"], &told.view["error"]["kind"]), (&json!("failed"), &json!("timeout")));
    assert_eq!(told.visit("call")["attempts"], 4);
    assert_eq!(rules(&told), vec![json!({"default": 0}); 3]);
    for (tries, event) in (0..).zip(told.events("task_retrying")) {
        let waits = event["wake_at"].as_u64().zip(event["at"].as_u64()).map(|(wake, at)| wake - at);
        let whole = 1_000 << tries;
        assert!(waits.is_some_and(|ms| (whole / 2..=whole).contains(&ms)), "{event:#}");
    }
    let policies: Vec<Value> =
        told.events("token_timed_out").iter().map(|event| event["policy_applied"].clone()).collect();
    assert_eq!(policies, ["retry", "retry", "retry", "fail"]);
}

#[test]
fn a_timeout_may_be_skipped_and_stands_in_for_a_result() {
    let told = Told::of(
        "
nodes:
  call: {mock: {error: timeout}, on_error: {when: error.kind == 'timeout', do: skip, output: {v: cached}}}
  after: {mock: {output: {got: '{{ needs.call.v }}'}}, needs: [call]}
",
        0,
    );
    assert_eq!(told.view["output"], json!({"after": {"got": "cached"}}));
    assert_eq!(
        (&told.visit("call")["status"], &told.visit("call")["attempts"]),
        (&json!("skipped"), &json!(1))
    );
    assert_eq!((told.metric("nodes_skipped"), told.metric("mutations_applied")), (1, 0));
}

#[test]
fn what_needs_only_a_skipped_node_is_skipped_too() {
    let told = Told::of(
        "
nodes:
  call: {mock: {error: timeout}, on_error: {do: skip}}
  after: {mock: {}, needs: [call]}
  other: {mock: {output: {there: true}}}
",
        0,
    );
    assert_eq!(told.visit("after")["status"], "skipped");
    assert_eq!(told.view["output"]["other"], json!({"there": true}));
}

#[test]
fn a_timeout_may_be_escalated() {
    let mut told = Told::of(
        "
nodes:
  call: {mock: {outcomes: [{error: timeout}, {output: {v: 1}}]}, on_error: {do: escalate}}
  after: {mock: {output: {got: '{{ needs.call.v }}'}}, needs: [call]}
",
        3,
    );
    assert_eq!(told.gate()["title"], "call failed: timeout");
    assert_eq!(told.events("token_timed_out")[0]["policy_applied"], "escalate");
    told.then(&["answer", "action=retry"], 0);
    assert_eq!(told.view["output"], json!({"after": {"got": "1"}}));
    assert_eq!(told.visit("call")["attempts"], 2);
}

// Model refused. This build has no model: the call is there for its profile, and is never made.

fn refused(rules: &str, outcomes: &str) -> String {
    format!(
        "
nodes:
  ask: {{task: asks, input_mapping: {{tone: \"'rude'\"}}{rules}}}
  after: {{mock: {{output: {{got: '{{{{ needs.ask.v }}}}'}}}}, needs: [ask]}}
tasks:
  asks:
    steps:
      - {{ref: asked, mock: {{outcomes: [{outcomes}]}}, output_mapping: {{output: result}}}}
      - {{ref: real, condition: 'false', llm_call: {{model: big, prompt: Hi, timeout: 1m}}}}
models:
  big: {{provider: openai, model: b, fallbacks: [mid, small]}}
  mid: {{provider: openai, model: m}}
  small: {{provider: openai, model: s}}
"
    )
}

const REFUSED: &str = "{error: {kind: model_refused, message: no}}";

#[test]
fn a_model_that_refuses_is_replaced_by_the_next_profile() {
    let told = Told::of(&refused("", &format!("{REFUSED}, {{output: {{v: 1}}}}")), 0);
    assert_eq!(told.view["output"], json!({"after": {"got": "1"}}));
    let mutated = &told.events("run_mutated")[0];
    assert_eq!(mutated["what"], json!({"switch_model": {"model": "mid"}}));
    assert_eq!(mutated["reason"], "model_refused: no");
    assert_eq!(told.events("task_retrying")[0]["overrides"]["model"], "mid");
    assert_eq!((rules(&told), told.metric("mutations_applied")), (vec![json!({"default": 1})], 1));
}

#[test]
fn every_profile_in_line_is_asked_once_and_then_the_next_rule() {
    let written =
        ", on_error: [{do: switch_model, max: 9, initial_delay: 10ms}, {do: skip, output: {v: none}}]";
    let told = Told::of(&refused(written, REFUSED), 0);
    let models: Vec<Value> =
        told.changes().iter().map(|change| change["switch_model"]["model"].clone()).collect();
    assert_eq!(models, ["mid", "small"]);
    assert_eq!(
        (&told.view["output"]["after"]["got"], &told.visit("ask")["attempts"]),
        (&json!("none"), &json!(3))
    );
}

#[test]
fn a_refusal_may_be_rephrased() {
    let change = ", on_error: {do: {change: {system: Be kind, input: {tone: \"'kind after ' + error.kind\"}}}, initial_delay: 10ms}";
    let told =
        Told::of(&refused(change, &format!("{REFUSED}, {{output: {{v: '{{{{ input.tone }}}}'}}}}")), 0);
    assert_eq!(told.view["output"]["after"]["got"], "kind after model_refused");
    assert_eq!(told.changes(), ["change"]);
    assert_eq!(told.events("task_retrying")[0]["overrides"]["system"], "Be kind");

    let stricter = ", on_error: {do: stricter_prompt, append: Please., initial_delay: 10ms}";
    let told = Told::of(&refused(stricter, &format!("{REFUSED}, {{output: {{v: 1}}}}")), 0);
    assert_eq!(told.changes(), ["stricter_prompt"]);
    let append = told.events("task_retrying")[0]["overrides"]["append"].clone();
    assert_eq!(append, json!(["Your last answer was refused: no. Answer exactly as asked.", "Please."]));
}

#[test]
fn a_refusal_may_be_escalated() {
    let mut told = Told::of(&refused(", on_error: {do: escalate}", REFUSED), 3);
    assert_eq!(
        (&told.gate()["title"], &told.gate()["body"]),
        (&json!("ask failed: model_refused"), &json!("no"))
    );
    told.then(&["answer", r#"{"action": "skip", "output": {"v": "by hand"}}"#], 0);
    assert_eq!(told.view["output"]["after"]["got"], "by hand");
}

// Output contract violation. A mock stands in for a model.

const CONTRACT: &str = "produces: {type: object, required: [score], properties: {score: {type: integer}}}";

#[test]
fn an_answer_that_breaks_its_contract_is_asked_for_once_more_with_the_schema() {
    let told = Told::of(
        &format!(
            "nodes:\n  judge: {{mock: {{outcomes: [{{output: {{score: high}}}}], {CONTRACT}}}}}\n  after: {{mock: {{}}, needs: [judge]}}\n"
        ),
        1,
    );
    assert_eq!(told.view["error"]["kind"], "contract_violation");
    assert_eq!((told.changes(), told.metric("mutations_applied")), (vec![json!("stricter_prompt")], 1));
    assert_eq!(
        (rules(&told), told.visit("judge")["attempts"].clone()),
        (vec![json!({"default": 2})], json!(2))
    );
    let append = told.events("task_retrying")[0]["overrides"]["append"].to_string();
    assert!(append.contains(r#"/score: \"high\" is not of type"#), "{append}");
    assert!(append.contains("It must fit this JSON Schema") && append.contains("required"), "{append}");
}

#[test]
fn a_broken_contract_may_change_what_the_node_is_given() {
    let told = Told::of(
        &format!(
            "
nodes:
  judge:
    mock: {{outcomes: [{{output: {{score: high}}}}, {{output: {{score: 7, from: '{{{{ how }}}}'}}}}], {CONTRACT}}}
    input_mapping: {{how: \"'words'\", topic: \"'cats'\"}}
    on_error: {{when: error.kind == 'contract_violation', do: {{change: {{input: {{how: \"'numbers'\"}}}}}}, initial_delay: 10ms}}
  after: {{update_context: {{set: {{output.judged: needs.judge}}}}, needs: [judge]}}
"
        ),
        0,
    );
    assert_eq!(told.view["output"]["judged"], json!({"score": 7, "from": "numbers"}));
    assert_eq!(told.changes(), ["change"]);
    let inputs: Vec<Value> =
        told.events("task_dispatched").iter().map(|event| event["input"].clone()).collect();
    assert_eq!(
        inputs,
        [json!({"how": "words", "topic": "cats"}), json!({"how": "numbers", "topic": "cats"})]
    );
}

#[test]
fn a_broken_contract_may_be_escalated() {
    let mut told = Told::of(
        &format!(
            "nodes:\n  judge: {{mock: {{outcomes: [{{output: {{}}}}, {{output: {{score: 1}}}}], {CONTRACT}}}, on_error: {{do: escalate}}}}\n"
        ),
        3,
    );
    assert_eq!(told.gate()["title"], "judge failed: contract_violation");
    told.then(&["answer", "action=retry"], 0);
    assert_eq!(told.view["output"], json!({"score": 1}));
}

#[test]
fn a_command_that_breaks_its_contract_is_nobody_to_reason_with() {
    let told = Told::of(
        &format!("nodes:\n  judge: {{shell: {{command: 'echo 7', timeout: 10s, {CONTRACT}}}}}\n"),
        1,
    );
    assert_eq!((told.changes().len(), told.visit("judge")["attempts"].clone()), (0, json!(1)));
}

// Quality below the threshold.

#[test]
fn dull_work_is_sent_back_twice_and_then_it_is_a_failure() {
    let told = Told::of(
        "
nodes:
  write:
    mock: {outcomes: [{error: {kind: quality_below_threshold, message: dull}}, {error: {kind: quality_below_threshold, message: long}}, {error: {kind: quality_below_threshold, message: never}}]}
    next: [{to: publish}, {to: drop, on: failure}]
  publish: {mock: {}}
  drop: {update_context: {set: {output.last: _last_error, output.same: state._last_error == _last_error}}}
",
        0,
    );
    assert_eq!(told.changes(), ["feedback", "feedback"]);
    assert_eq!(rules(&told), vec![json!({"default": 3}); 2]);
    let heard: Vec<Value> =
        told.events("task_retrying").iter().map(|event| event["feedback"]["message"].clone()).collect();
    assert_eq!(heard, ["dull", "long"]);
    let last = json!({"kind": "quality_below_threshold", "message": "never", "node": "write", "attempt": 3, "details": null});
    assert_eq!(told.view["output"], json!({"last": last, "same": true}));
    assert_eq!((told.metric("mutations_applied"), told.metric("retries")), (2, 2));
}

#[test]
fn who_is_sent_back_hears_why() {
    let told = Told::of(
        "
nodes:
  write: {task: writes, on_error: {do: loop_with_feedback, max: 2, initial_delay: 10ms}}
tasks:
  writes:
    input_schema: {type: object, additionalProperties: false}
    steps:
      - {ref: draft, shell: {command: 'echo {{ heard }} >> heard.txt', timeout: 10s}, input_mapping: {heard: \"input.feedback == null ? 'nothing' : input.feedback.message\"}}
      - {ref: judge, mock: {outcomes: [{error: {kind: quality_below_threshold, message: dull}}, {error: {kind: quality_below_threshold, message: long}}, {output: {fine: true}}]}}
",
        0,
    );
    let heard = std::fs::read_to_string(told.place.dir.path().join("heard.txt")).expect("it wrote");
    assert_eq!(heard, "nothing\ndull\nlong\n");
    assert_eq!(told.view["output"], json!({"fine": true}));
}

#[test]
fn a_judge_may_send_work_back_to_where_it_came_from() {
    let told = Told::of(
        "
nodes:
  write: {mock: {output: {draft: '{{ input.feedback }}'}}, next: [{to: judge}]}
  judge:
    mock: {error: {kind: quality_below_threshold, message: dull}}
    on_error: [{do: loop_with_feedback, to: write, max: 2}, {do: skip, output: {enough: true}}]
",
        0,
    );
    let visits = told.show()["nodes"].as_array().map(Vec::len);
    assert_eq!((visits, &told.view["output"]), (Some(6), &json!({"enough": true})));
    assert_eq!(told.changes(), ["feedback", "feedback"]);
    assert!(told.show()["state"]["write"]["draft"].to_string().contains("dull"));
}

#[test]
fn dull_work_may_get_a_review_behind_it() {
    let mut told = Told::of(
        "
nodes:
  write: {mock: {outcomes: [{error: quality_below_threshold}, {output: {draft: good}}]}, on_error: {do: add_review, initial_delay: 10ms}}
  after: {mock: {output: {got: '{{ needs.write.draft }}'}}, needs: [write]}
",
        3,
    );
    assert_eq!(
        (&told.gate()["kind"], &told.gate()["title"]),
        (&json!("node"), &json!("Review the result of write"))
    );
    told.then(&["answer", "ok=true"], 0);
    assert_eq!(told.view["output"], json!({"after": {"got": "good"}}));
    assert_eq!(
        told.changes(),
        [json!({"graph": {"change": "review", "node": "write", "added": "write_check"}})]
    );
}

#[test]
fn dull_work_may_be_escalated() {
    let told =
        Told::of("nodes:\n  write: {mock: {error: quality_below_threshold}, on_error: {do: escalate}}\n", 3);
    assert_eq!(told.gate()["title"], "write failed: quality_below_threshold");
    assert_eq!(told.metric("mutations_applied"), 0);
}

// Circular dependency.

#[test]
fn needs_in_a_circle_are_refused_before_anything_is_recorded() {
    let place = Place::new();
    let circle = "wonder: 1\nname: circle\nnodes:\n  a: {mock: {}, needs: [c]}\n  b: {mock: {}, needs: [a]}\n  c: {mock: {}, needs: [b]}\n";
    let file = place.file("circle.yaml", circle);
    let refused = place.run(&["run", &file]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    for word in ["a -> b -> c -> a", "remove one of these needs", "circle.yaml:4"] {
        assert!(refused.err.contains(word), "{word}: {refused:#?}");
    }
    let told = place.json(&["run", &file], 2);
    assert_eq!(told["error"]["code"], "bad_definition");
    assert_eq!(place.json(&["list", "--all"], 0), json!([]));
    // Without the offending edge it runs.
    place.file("circle.yaml", &circle.replace(", needs: [c]", ""));
    assert_eq!(place.json(&["run", &file], 0)["status"], "completed");
}

// Rules: their order, their caps, and what comes after them.

#[test]
fn rules_are_asked_from_the_inside_out() {
    let told = Told::of(
        "
nodes:
  flaky:
    task: works
    on_error: {when: error.kind == 'network', do: retry, initial_delay: 10ms}
    next: [{to: fine}, {to: saved, on: failure}]
  fine: {mock: {}}
  saved: {update_context: {set: {output.kind: _last_error.kind, output.attempt: _last_error.attempt, output.node: _last_error.node}}}
on_error:
  - {when: error.kind == 'network', do: retry, initial_delay: 10ms}
tasks:
  works:
    retry: {max_attempts: 2, initial_delay: 10ms}
    steps: [{ref: only, action: act, on_failure: retry}]
actions:
  act:
    execution: {retry_policy: {max_attempts: 2, initial_delay: 10ms}}
    mock: {outcomes: [{error: network}, {error: network}, {error: network}, {error: network}, {error: network}, {error: network}, {error: quality_below_threshold}, {error: internal}]}
",
        0,
    );
    // The action's own tries, the task's retry, the node's rule, the workflow's, a default, a transition.
    assert_eq!(
        rules(&told),
        [json!("task"), json!({"node": 0}), json!({"workflow": 0}), json!({"default": 3})]
    );
    let tries: Vec<Value> =
        told.events("task_retrying").iter().map(|event| event["report"]["tries"].clone()).collect();
    assert_eq!(tries, [json!(1), json!(1), json!(1), Value::Null]);
    assert_eq!(told.events("task_failed")[0]["handled"], true);
    assert_eq!(told.view["output"], json!({"kind": "internal", "attempt": 5, "node": "flaky"}));
    assert_eq!((&told.visit("flaky")["attempts"], &told.visit("flaky")["tries"]), (&json!(5), &json!(3)));
}

#[test]
fn a_rule_answers_as_often_as_it_says_and_then_the_next_one_does() {
    let told = Told::of(
        "
nodes:
  a:
    mock: {error: internal}
    on_error:
      - {when: error.kind == 'timeout', do: fail}
      - {do: retry, max: 2, initial_delay: 10ms}
      - {when: error.attempt < 9, do: retry, initial_delay: 10ms}
  b: {mock: {}, needs: [a]}
on_error: {do: skip, output: {by: workflow}}
",
        0,
    );
    assert_eq!(rules(&told), [json!({"node": 1}), json!({"node": 1}), json!({"node": 2})]);
    assert_eq!(
        (&told.visit("a")["attempts"], &told.show()["state"]["a"]),
        (&json!(4), &json!({"by": "workflow"}))
    );
    assert_eq!(told.metric("retries"), 3);
}

#[test]
fn fail_jumps_over_every_other_rule_to_the_transitions() {
    let told = Told::of(
        "
nodes:
  a:
    mock: {error: {kind: quality_below_threshold, message: dull}}
    on_error: [{do: fail}, {do: skip, output: {by: node}}]
    next: [{to: fine}, {to: saved, on: failure}]
  fine: {mock: {}}
  saved: {update_context: {set: {output.said: _last_error.message}}}
on_error: {do: skip, output: {by: workflow}}
",
        0,
    );
    assert_eq!(told.view["output"], json!({"said": "dull"}));
    assert_eq!((&told.visit("a")["status"], &told.visit("a")["attempts"]), (&json!("failed"), &json!(1)));
    assert_eq!((told.metric("nodes_failed"), told.changes().len()), (1, 0));
}

#[test]
fn goto_moves_a_token_and_ends_after_as_often_as_it_says() {
    let told = Told::of(
        "
nodes:
  a: {mock: {output: {}}, next: [{to: b}]}
  b:
    mock: {error: {kind: shell_exit, message: gone}}
    on_error: [{do: {goto: a}, max: 2}, {do: {goto: rescue}}]
  rescue: {update_context: {set: {output.from: _last_error.node, output.said: _last_error.message}}}
",
        0,
    );
    assert_eq!(told.view["output"], json!({"from": "b", "said": "gone"}));
    let visits: Vec<Value> =
        told.show()["nodes"].as_array().expect("nodes").iter().map(|visit| visit["node"].clone()).collect();
    assert_eq!(visits, ["a", "b", "a", "b", "a", "b", "rescue"]);
}

#[test]
fn a_rule_that_breaks_is_an_expression_error_with_its_cause() {
    let told = Told::of(
        "
nodes:
  a: {mock: {error: internal}, on_error: [{when: error.details.nothing.there, do: retry}, {do: skip}]}
",
        1,
    );
    assert_eq!(told.view["error"]["kind"], "expression_error");
    assert_eq!(told.view["error"]["details"]["cause"]["kind"], "internal");
}

#[test]
fn the_last_error_is_null_first_known_after_a_retry_and_gone_after_a_fan_in() {
    let told = Told::of(
        "
nodes:
  start: {update_context: {set: {output.first: _last_error == null}}, next: [{to: work, spawn_count: 2}]}
  work:
    mock: {outcomes: [{error: {kind: internal, message: oops}}, {output: {}}]}
    on_error: {do: retry, initial_delay: 10ms}
    next: [{to: note}]
  note:
    update_context: {set: {said: _last_error.message, attempt: _last_error.attempt}}
    next: [{to: join, synchronization: {merge: {target: output.all}}}]
  join: {update_context: {set: {output.last: _last_error == null}}}
",
        0,
    );
    let branch = json!({"said": "oops", "attempt": 1});
    assert_eq!(told.view["output"], json!({"first": true, "all": [branch, branch], "last": true}));
}

#[test]
fn a_run_that_is_retried_asks_its_rules_anew_and_goes_on_counting() {
    let mut told = Told::of(
        "
nodes:
  a:
    mock: {outcomes: [{error: internal}, {error: internal}, {error: internal}, {output: {ok: true}}]}
    on_error: {do: retry, initial_delay: 10ms}
  b: {mock: {output: {done: true}}, needs: [a]}
",
        1,
    );
    assert_eq!(told.view["error"]["attempt"], 2);
    told.then(&["retry"], 0);
    assert_eq!((told.view["output"].clone(), rules(&told).len()), (json!({"b": {"done": true}}), 2));
    let attempts: Vec<Value> =
        told.events("task_dispatched").iter().map(|event| event["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 1]);
}

#[test]
fn a_backoff_survives_a_crash() {
    let place = Place::new();
    let file = place.file(
        "backoff.yaml",
        "
wonder: 1
name: backoff
nodes:
  a:
    shell: {command: 'echo $WONDER_ATTEMPT >> attempts.txt; test $WONDER_ATTEMPT -gt 1', timeout: 10s}
    on_error: {do: retry, initial_delay: 2s}
",
    );
    let mut child = place.spawn(&["run", &file]);
    let retrying = || place.run(&["events", "-o", "json"]).out.contains("task_retrying");
    until("the backoff to begin", retrying);
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    let mut told = Told::left(place);
    assert_eq!(told.visit("a")["status"], "retrying");
    told.then(&["resume"], 0);
    let wake_at = told.events("task_retrying")[0]["wake_at"].as_u64();
    let again = told.events("task_dispatched")[1].clone();
    assert!(again["at"].as_u64() >= wake_at && again["attempt"] == 2, "{again:#}");
    let attempts = std::fs::read_to_string(told.place.dir.path().join("attempts.txt")).expect("it ran");
    assert_eq!(attempts, "1\n2\n");
}
