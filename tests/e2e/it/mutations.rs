//! Runs that change themselves: validators and reviews put behind a node, nodes that a plan adds, all of it
//! refused where it would not be allowed in a file, bounded, and still there after the host was killed.

use serde_json::{Value, json};

use crate::place::{Dice, Place, Told, until};

const CHECKS: &str = "
tasks:
  check: {steps: [{ref: only, mock: {output: {fine: true}}}]}
";

fn nodes_of(told: &Told) -> Vec<String> {
    let shown = told.show();
    let visits = shown["nodes"].as_array().expect("nodes").clone();
    visits.iter().map(|visit| visit["node"].as_str().expect("a name").to_owned()).collect()
}

// Validators.

#[test]
fn a_validator_judges_the_result_that_then_goes_on_unchanged() {
    let told = Told::of(
        "
nodes:
  write:
    mock: {outcomes: [{error: {kind: assertion_failed, message: wrong}}, {output: {v: 2}}]}
    on_error: {do: {add_validator: check}, initial_delay: 10ms}
    output_mapping: {seen: result.v}
    next: [{to: done}]
  done: {update_context: {set: {output.seen: state.seen}}}
tasks:
  check: {steps: [{ref: judge, shell: {command: 'test {{ input.result.v }} = 2', timeout: 10s}}]}
",
        0,
    );
    assert_eq!(told.view["output"], json!({"seen": 2}));
    let mutated = &told.events("run_mutated")[0];
    let added =
        json!({"graph": {"change": "validator", "node": "write", "added": "write_check", "task": "check"}});
    assert_eq!((&mutated["what"], &mutated["reason"]), (&added, &json!("assertion_failed: wrong")));
    assert_eq!((nodes_of(&told), told.metric("mutations_applied")), (words("write write_check done"), 1));
    assert!(told.page().contains("assertion_failed: wrong"), "people see why: {}", told.page());
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_validator_that_says_no_fails_where_the_node_would() {
    let told = Told::of(
        "
nodes:
  write:
    mock: {outcomes: [{error: assertion_failed}, {output: {v: 1}}]}
    on_error: {do: {add_validator: check}, initial_delay: 10ms}
    next: [{to: done}, {to: drop, on: failure}]
  done: {mock: {}}
  drop: {update_context: {set: {output.said: _last_error.message}}}
tasks:
  check: {steps: [{ref: judge, assert: {that: input.result.v == 2, message: not two}}, {ref: more, mock: {}}]}
",
        0,
    );
    assert_eq!(told.view["output"], json!({"said": "not two"}));
    assert_eq!(
        (&told.visit("write")["status"], &told.visit("write_check")["status"]),
        (&json!("completed"), &json!("failed"))
    );
}

#[test]
fn a_validator_is_added_once_and_stands_behind_every_later_branch() {
    let told = Told::of(
        &format!(
            "
nodes:
  each:
    mock: {{outcomes: [{{error: assertion_failed}}, {{output: {{v: '{{{{ item }}}}'}}}}]}}
    foreach: {{items: '[1, 2, 3]', as: item, max_parallel: 1}}
    on_error: {{do: {{add_validator: check}}, initial_delay: 10ms}}
  all: {{update_context: {{set: {{output.all: 'needs.each.map(one, one.v)'}}}}, needs: [each]}}
{CHECKS}"
        ),
        0,
    );
    assert_eq!(told.view["output"], json!({"all": ["1", "2", "3"]}));
    assert_eq!((told.changes().len(), told.metric("mutations_applied")), (1, 1));
    let judged =
        told.events("task_dispatched").iter().filter(|event| !event["input"]["result"].is_null()).count();
    assert_eq!(judged, 3);
}

#[test]
fn what_was_added_is_still_there_when_a_run_is_retried() {
    let mut told = Told::of(
        "
nodes:
  write: {mock: {outcomes: [{error: internal}, {output: {v: 1}}]}, on_error: {do: {add_validator: check}, initial_delay: 10ms}}
  after: {mock: {output: {got: '{{ needs.write.v }}'}}, needs: [write]}
tasks:
  check: {steps: [{ref: only, mock: {outcomes: [{error: internal}, {output: {}}]}}]}
",
        1,
    );
    assert_eq!(told.view["error"]["node"], "write_check");
    told.then(&["retry"], 0);
    assert_eq!(told.view["output"], json!({"after": {"got": "1"}}));
    assert_eq!(
        (&told.visit("write")["attempts"], &told.visit("write_check")["attempts"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(told.metric("mutations_applied"), 1);
}

// Reviews.

#[test]
fn a_review_that_refuses_fails_where_the_node_would() {
    let mut told = Told::of(
        "
nodes:
  write:
    mock: {outcomes: [{error: internal}, {output: {v: 2}}]}
    on_error: {when: error.kind == 'internal', do: add_review, initial_delay: 10ms}
    next: [{to: done}, {to: drop, on: failure}]
  done: {mock: {}}
  drop: {update_context: {set: {output.kind: _last_error.kind, output.said: _last_error.message}}}
",
        3,
    );
    assert_eq!(told.gate()["body"], r#"{"v":2}"#);
    told.then(&["answer", r#"{"ok": false, "comment": "too short"}"#], 0);
    assert_eq!(
        told.view["output"],
        json!({"kind": "assertion_failed", "said": "refused in review: too short"})
    );
}

#[test]
fn a_refused_review_in_a_dag_fails_the_run() {
    let mut told = Told::of(
        "
nodes:
  write: {mock: {outcomes: [{error: internal}, {output: {v: 2}}]}, on_error: {do: add_review, initial_delay: 10ms}}
  after: {mock: {}, needs: [write]}
",
        3,
    );
    told.then(&["answer", "ok=false"], 1);
    assert_eq!(
        (&told.view["error"]["kind"], nodes_of(&told)),
        (&json!("assertion_failed"), words("write write_check"))
    );
}

#[test]
fn the_definition_stays_as_it_was() {
    let told = Told::of(
        &format!(
            "
nodes:
  write: {{mock: {{outcomes: [{{error: internal}}, {{output: {{}}}}]}}, on_error: {{do: {{add_validator: check}}, initial_delay: 10ms}}}}
{CHECKS}"
        ),
        0,
    );
    let file = told.place.dir.path().join("told.yaml");
    let again = told.place.json(&["run", &file.to_string_lossy()], 0);
    assert_eq!(again["version"], told.view["version"]);
    let drawn = told.place.run(&["graph", &file.to_string_lossy()]);
    assert!(!drawn.out.contains("write_check"), "{}", drawn.out);
}

// Plans.

const PLAN: &str = r#"{"ok": true, "_mutations": {"nodes": [{"ref": "x", "task": "work"}, {"ref": "y", "task": "work", "input_mapping": {"n": "state.x.n"}}], "transitions": [{"from": "plan", "to": "x"}, {"from": "x", "to": "y"}, {"from": "y", "to": "done"}]}}"#;

fn planned(plan: &str) -> String {
    format!(
        "
nodes:
  plan:
    may_mutate: {{max_nodes: 2}}
    {plan}
    next: [{{to: done}}]
  done: {{update_context: {{set: {{output.plan: state.plan, output.n: state.y.n}}}}}}
tasks:
  work: {{steps: [{{ref: only, update_context: {{set: {{output.n: \"has(input.n) ? input.n + 1 : 1\"}}}}}}, {{ref: more, mock: {{}}}}]}}
"
    )
}

#[test]
fn a_plan_adds_nodes_over_known_tasks_and_ways_back() {
    let told = Told::of(&planned(&format!("mock: {{output: {PLAN}}}")), 0);
    assert_eq!(told.view["output"], json!({"plan": {"ok": true}, "n": 2}));
    assert_eq!((nodes_of(&told), told.metric("mutations_applied")), (words("plan x y done"), 1));
    let mutated = &told.events("run_mutated")[0];
    assert_eq!(
        (&mutated["reason"], &mutated["what"]["graph"]["by"]),
        (&json!("plan asked for it"), &json!("plan"))
    );
}

#[test]
fn a_command_plans_in_json() {
    let place = Place::new();
    place.file("plan.json", PLAN);
    let steps = "steps: [{ref: think, shell: {command: cat plan.json, timeout: 10s}, output_mapping: {output: result.json}}]";
    let told = Told::at(place, &planned(steps), 0);
    assert_eq!(told.view["output"], json!({"plan": {"ok": true}, "n": 2}));
}

#[test]
fn in_a_dag_what_is_added_may_stand_between() {
    let told = Told::of(
        &format!(
            "
nodes:
  plan: {{may_mutate: {{}}, mock: {{output: {{_mutations: {{nodes: [{{ref: x, task: check}}], transitions: [{{from: plan, to: x}}, {{from: x, to: last}}]}}}}}}}}
  last: {{mock: {{output: {{}}}}, needs: [plan]}}
{CHECKS}"
        ),
        0,
    );
    assert_eq!(nodes_of(&told), words("plan x last"));
}

/// A plan, and what is said against it.
const REFUSED: &[(&str, &str)] = &[
    ("nodes: [{ref: x, task: unheard}], transitions: [{from: plan, to: x}]", "there is no task `unheard`"),
    (
        "nodes: [{ref: done, task: check}], transitions: [{from: plan, to: done}]",
        "there are two nodes `done`",
    ),
    (
        "nodes: [{ref: x, task: check}, {ref: y, task: check}, {ref: z, task: check}]",
        "adds 3 nodes, and may add 2",
    ),
    (
        "nodes: [{ref: x, task: check}, {ref: y, task: check}], transitions: [{from: plan, to: x}]",
        "`y` cannot be reached",
    ),
    (
        "nodes: [{ref: x, task: check}], transitions: [{from: plan, to: x}, {from: done, to: x}]",
        "neither new nor `plan`",
    ),
    (
        "nodes: [{ref: x, task: check}], transitions: [{from: plan, to: x}, {from: x, to: x}]",
        "can never leave it",
    ),
    ("nodes: [{ref: x, task: check}], transitions: [{from: plan, to: x, condition: '1 +'}]", "1 +"),
    ("nodes: [{ref: x, shell: {command: id}}], transitions: [{from: plan, to: x}]", "shell"),
    ("nodez: []", "nodez"),
];

#[test]
fn a_plan_that_no_file_could_hold_is_refused_and_changes_nothing() {
    for (plan, against) in REFUSED {
        let told = Told::of(
            &format!(
                "
nodes:
  plan: {{may_mutate: {{max_nodes: 2}}, mock: {{output: {{_mutations: {{{plan}}}}}}}, next: [{{to: done}}]}}
  done: {{mock: {{}}}}
{CHECKS}"
            ),
            1,
        );
        assert_eq!(told.view["error"]["kind"], "mutation_refused", "{plan}: {:#}", told.view);
        let said = told.view["error"]["message"].as_str().expect("words");
        assert!(said.contains(against), "{plan}: {said}");
        assert_eq!((told.changes().len(), nodes_of(&told)), (0, words("plan")), "{plan}");
    }
}

/// A program that plans prints what a person would write in the file.
#[test]
fn a_command_plans_in_the_form_of_a_file() {
    let told = Told::of(
        &format!(
            "
nodes:
  plan:
    may_mutate: {{max_nodes: 2}}
    shell: {{command: 'cat plan.json', timeout: 10s}}
    next: [{{to: done}}]
  done: {{mock: {{output: {{end: true}}}}}}
{CHECKS}"
        ),
        1,
    );
    let place = &told.place;
    let plan = json!({"_mutations": {
        "nodes": {"x": {"task": "check", "budget": {"usd": 0.5}, "timeout": "5s", "next": [{"to": "done", "when": "1 == 1"}]}},
        "transitions": [{"from": "plan", "to": "x"}],
    }});
    std::fs::write(place.dir.path().join("plan.json"), plan.to_string()).expect("a plan");
    let mut told = told;
    told.then(&["retry"], 0);
    assert_eq!((nodes_of(&told), &told.view["output"]), (words("plan x done"), &json!({"end": true})));
    let added = &told.changes()[0]["graph"]["nodes"][0];
    assert_eq!((&added["budget"]["usd_micros"], &added["timeout_ms"]), (&json!(500_000), &json!(5_000)));
}

#[test]
fn a_plan_that_is_refused_may_be_made_again() {
    let told = Told::of(
        &format!(
            "
nodes:
  plan:
    may_mutate: {{}}
    mock: {{outcomes: [{{output: {{_mutations: {{nodes: [{{ref: x, task: no}}]}}}}}}, {{output: {{_mutations: {{nodes: [{{ref: x, task: check}}], transitions: [{{from: plan, to: x}}]}}}}}}]}}
    on_error: {{when: error.kind == 'mutation_refused', do: loop_with_feedback, initial_delay: 10ms}}
{CHECKS}"
        ),
        0,
    );
    assert_eq!(told.view["output"], json!({"fine": true}));
    let whats: Vec<Value> = told
        .changes()
        .iter()
        .map(|what| what.get("graph").map_or(what.clone(), |graph| graph["change"].clone()))
        .collect();
    assert_eq!(whats, ["feedback", "nodes"]);
}

#[test]
fn only_a_node_that_may_plan_plans() {
    let told = Told::of("nodes:\n  a: {mock: {output: {_mutations: {nodes: []}}}}\n", 0);
    assert_eq!((told.changes().len(), &told.view["output"]), (0, &json!({"_mutations": {"nodes": []}})));
}

// Bounds.

#[test]
fn a_run_changes_twenty_times_and_no_more() {
    let dull = "mock: {error: quality_below_threshold}\n    on_error: [{do: loop_with_feedback, max: 99, backoff: none}, {do: skip, output: {enough: true}}]";
    let told = Told::of(&format!("nodes:\n  a:\n    {dull}\n"), 0);
    assert_eq!((told.changes().len(), told.metric("mutations_applied")), (20, 20));
    assert_eq!((&told.visit("a")["attempts"], &told.view["output"]), (&json!(21), &json!({"enough": true})));
    let told = Told::of(&format!("mutations_max: 3\nnodes:\n  a:\n    {dull}\n"), 0);
    assert_eq!(told.metric("mutations_applied"), 3);
    // None allowed: the defaults change nothing either.
    let told = Told::of("mutations_max: 0\nnodes:\n  a: {mock: {error: quality_below_threshold}}\n", 1);
    assert_eq!((told.changes().len(), &told.visit("a")["attempts"]), (0, &json!(1)));
}

#[test]
fn a_run_grows_to_its_bound_and_no_further() {
    let grows = |bound: &str, code: i32| {
        Told::of(
            &format!(
                "
{bound}
nodes:
  write: {{mock: {{outcomes: [{{error: internal}}, {{output: {{}}}}]}}, on_error: [{{do: {{add_validator: check}}, initial_delay: 10ms}}, {{do: skip, output: {{full: true}}}}], next: [{{to: plan}}]}}
  plan: {{may_mutate: {{max_nodes: 1}}, mock: {{output: {{_mutations: {{nodes: [{{ref: x, task: check}}], transitions: [{{from: plan, to: x}}]}}}}}}}}
{CHECKS}"
            ),
            code,
        )
    };
    assert_eq!(nodes_of(&grows("nodes_max: 4", 0)), words("write write_check plan x"));
    let told = grows("nodes_max: 3", 1);
    assert_eq!(told.view["error"]["message"], "4 nodes, and at most 3 are allowed");
    let told = grows("nodes_max: 2", 1);
    assert_eq!((&told.show()["state"]["write"], told.changes().len()), (&json!({"full": true}), 0));
    let told = grows("mutations_max: 1", 1);
    assert_eq!(told.view["error"]["kind"], "mutation_refused");
}

// Crashes.

/// A validator, a review and a plan one after the other; each added node says that it ran.
const ALL: &str = "
wonder: 1
name: all
nodes:
  write:
    mock: {outcomes: [{error: internal}, {output: {v: 1}}]}
    on_error: {do: {add_validator: check}, initial_delay: 10ms}
    next: [{to: draw}]
  draw:
    mock: {outcomes: [{error: internal}, {output: {v: 2}}]}
    on_error: {do: add_review, initial_delay: 10ms}
    next: [{to: plan}]
  plan:
    may_mutate: {max_nodes: 1}
    mock: {output: {_mutations: {nodes: [{ref: x, task: check}], transitions: [{from: plan, to: x}, {from: x, to: done}]}}}
    next: [{to: done}]
  done: {update_context: {set: {output.write: state.write.v, output.draw: state.draw.v, output.x: has(state.x)}}}
tasks:
  check:
    steps:
      - {ref: only, shell: {command: 'echo $WONDER_IDEMPOTENCY_KEY >> ran.txt', timeout: 10s}}
";

/// From wherever it stands to its end.
fn finish(place: Place, file: &str) -> Told {
    if place.json(&["list"], 0) == json!([]) {
        place.json(&["run", file], 3);
    }
    let mut told = Told::left(place);
    let stands = told.show()["status"].as_str().expect("a status").to_owned();
    if stands == "running" {
        let resumed = told.place.run(&["resume", &told.run]);
        assert!(matches!(resumed.code, Some(0 | 3)), "{resumed:#?}");
    }
    if told.show()["status"] == "waiting" {
        told.then(&["answer", "ok=true"], 0);
    }
    told
}

fn changed_once(told: &Told) {
    let shown = told.show();
    assert_eq!(
        (&shown["status"], &shown["output"]),
        (&json!("completed"), &json!({"write": 1, "draw": 2, "x": true})),
        "{shown:#}"
    );
    let changes: Vec<Value> = told.changes().iter().map(|what| what["graph"]["change"].clone()).collect();
    assert_eq!(changes, ["validator", "review", "nodes"]);
    assert_eq!(nodes_of(told), words("write write_check draw draw_check plan x done"));
    let ran = std::fs::read_to_string(told.place.dir.path().join("ran.txt")).expect("checks ran");
    let mut keys: Vec<&str> = ran.lines().collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 2, "a check for write, one for x, each under one key: {ran}");
}

/// Lets a command die where the dice say; it may also come to its end before.
fn die(place: &Place, arguments: &[&str], at: u64) {
    let point = format!("any:{at}");
    let died = place.command(arguments).env("WONDER_FAILPOINT", &point).output().expect("it starts");
    assert!(matches!(died.status.code(), None | Some(0 | 3)), "{point}: {died:#?}");
}

#[test]
fn dying_anywhere_it_changes_once_and_goes_on_with_what_was_added() {
    let mut dice = Dice(20_261_116);
    for round in 0..8 {
        let place = Place::new();
        let file = place.file("all.yaml", ALL);
        // Before the review is answered, and after.
        if round % 2 == 0 {
            die(&place, &["run", &file], 1 + dice.below(46));
        } else {
            place.json(&["run", &file], 3);
            die(&place, &["answer", "last", "ok=true"], 1 + dice.below(20));
        }
        changed_once(&finish(place, &file));
    }
}

#[test]
fn killed_while_the_added_node_works_it_works_again_and_only_it() {
    let place = Place::new();
    let file = place
        .file("all.yaml", &ALL.replace("ran.txt'", "ran.txt; test -e go || sleep 60'").replace("10s", "2m"));
    let mut child = place.spawn(&["run", &file]);
    let ran = place.dir.path().join("ran.txt");
    until("the validator to work", || ran.exists());
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    place.file("go", "");
    let told = finish(place, &file);
    changed_once(&told);
    let dispatched = told.events("task_dispatched");
    let attempts: Vec<&Value> = dispatched.iter().map(|event| &event["attempt"]).collect();
    assert_eq!(attempts, [1, 2, 1, 1, 2, 1, 1], "the same attempt, not another: {dispatched:#?}");
}
