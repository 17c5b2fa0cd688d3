//! `fork` of real runs: a new run with the past of another, under its own name; what the past cost counts in
//! it, and is counted once.

use serde_json::{Value, json};

use crate::place::{Place, Told};

/// Counts how often each node really ran.
const STEPS: &str = "
tasks:
  says:
    steps:
      - {ref: say, shell: {command: 'echo $WONDER_RUN $WONDER_NODE >> ran.txt', timeout: 30s}}
      - {ref: pay, mock: {output: {}, usage: {cost_usd: 0.2}}}
";

fn ran(place: &Place, run: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.dir.path().join("ran.txt")).unwrap_or_default();
    let of = |line: &str| line.strip_prefix(&format!("{run} ")).map(str::to_owned);
    text.lines().filter_map(of).collect()
}

fn micros(place: &Place, arguments: &[&str]) -> u64 {
    let usd = place.json(arguments, 0)["total"]["cost_usd"].as_f64().expect("a cost");
    (usd * 1_000_000.0).round() as u64
}

#[test]
fn a_fork_has_the_past_and_runs_only_what_follows() {
    let told = Told::of(
        &format!(
            "nodes:\n  a: {{task: says, next: [{{to: b}}]}}\n  b: {{task: says, next: [{{to: c}}]}}\n  c: {{task: says}}\n{STEPS}"
        ),
        0,
    );
    let before = told.place.events(&told.run);
    let fork = told.place.json(&["fork", &told.run, "--from", "b"], 0);
    let id = fork["run"].as_str().expect("an id");
    assert_ne!(id, told.run);
    assert_eq!(ran(&told.place, &told.run), ["a", "b", "c"]);
    assert_eq!(ran(&told.place, id), ["b", "c"]);
    assert_eq!(told.place.events(&told.run), before, "the old run stays as it is");
    let shown = told.place.json(&["show", id], 0);
    assert_eq!((&shown["forked_from"], &shown["cost_usd"]), (&json!(told.run), &json!(0.6)));
    // Copied spend counts in the fork, not again in the project.
    assert_eq!(micros(&told.place, &["cost", id]), 600_000);
    assert_eq!(micros(&told.place, &["cost"]), 1_000_000);
}

#[test]
fn a_budget_holds_across_a_fork() {
    let told = Told::of(
        &format!(
            "budget: {{usd: 0.5, on_exceeded: fail}}\nnodes:\n  a: {{task: says, next: [{{to: b}}]}}\n  b: {{task: says, next: [{{to: ask}}]}}\n  ask: {{human_gate: {{title: Well?}}, next: [{{to: c}}]}}\n  c: {{task: says}}\n{STEPS}"
        ),
        3,
    );
    // Forked before its second call it has room for one more; forked after it, for none.
    let early = told.place.json(&["fork", &told.run, "--from", "b"], 3);
    assert_eq!((early["cost_usd"].clone(), early["status"].clone()), (json!(0.4), json!("waiting")));
    let late = told.place.json(&["fork", &told.run, "--from", "ask"], 3);
    let (gate, id) = (&late["waiting"][0]["gate"], late["run"].as_str().expect("an id"));
    assert_eq!(gate, &json!(format!("{id}:1")), "the gate is open again, under the fork's name");
    let ended = told.place.json(&["answer", gate.as_str().expect("a gate"), "ok=true"], 6);
    assert_eq!((&ended["error"]["kind"], &ended["cost_usd"]), (&json!("budget_exceeded"), &json!(0.4)));
    assert!(ran(&told.place, id).is_empty());
}

#[test]
fn a_fork_may_bring_an_input_and_another_version() {
    let flow = |last: &str| {
        format!(
            "input_schema: {{type: object, properties: {{n: {{type: integer}}}}}}\nnodes:\n  a: {{mock: {{output: {{}}}}, next: [{{to: b}}]}}\n  b: {{mock: {{output: {{got: '{{{{ input.n }}}}'}}}}, input_mapping: {{n: input.n}}, output_mapping: {{state.got: result.got}}, next: [{{to: {last}}}]}}\n  {last}: {{update_context: {{set: {{output.got: state.got, output.by: \"'{last}'\"}}}}}}\n"
        )
    };
    let place = Place::new();
    let file = place.file("told.yaml", &format!("wonder: 1\nname: told\n{}", flow("old")));
    let run = place.json(&["run", &file, "--input", "n=1"], 0);
    assert_eq!(run["output"], json!({"got": "1", "by": "old"}));
    let id = run["run"].as_str().expect("an id");
    let newer = place.file("newer.yaml", &format!("wonder: 1\nname: told\n{}", flow("new")));
    let fork = place.json(&["fork", id, "--from", "b", "--input", "n=2", "--definition", &newer], 0);
    assert_eq!((&fork["output"], &fork["version"]), (&json!({"got": "2", "by": "new"}), &json!(2)));
    // What does not fit changes nothing.
    let other = place.file("other.yaml", "wonder: 1\nname: told\nnodes:\n  z: {mock: {output: {}}}\n");
    let before: Value = place.json(&["list"], 0);
    for (arguments, why) in [
        (vec!["--from", "nowhere"], "has no such node"),
        (vec!["--from", "b", "--branch", "3"], "cannot fork"),
        (vec!["--from", "b", "--definition", &other], "cannot fork"),
    ] {
        let refused = place.run(&[&["fork", id], arguments.as_slice()].concat());
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:#?}");
        assert!(refused.err.contains(why), "{refused:#?}");
    }
    assert_eq!(place.json(&["list"], 0), before);
}

#[test]
fn what_was_out_runs_again_in_the_fork() {
    let place = Place::new();
    let file = place.file(
        "told.yaml",
        "wonder: 1\nname: told\nnodes:\n  spread: {mock: {output: {}}, next: [{to: call, spawn_count: 2}]}\n  call:\n    workflow_call: {workflow: child}\n    next: [{to: join, synchronization: {merge: {target: state.all}}}]\n  join: {update_context: {set: {output.all: size(state.all)}}}\n---\nwonder: 1\nname: child\nnodes:\n  ask: {human_gate: {title: Well?}, next: [{to: done}]}\n  done: {mock: {output: {}}}\n",
    );
    let run = place.json(&["run", &file], 3);
    let id = run["run"].as_str().expect("an id");
    let fork = place.json(&["fork", id, "--from", "call", "--branch", "1"], 3);
    let fork = fork["run"].as_str().expect("an id");
    let gates = place.json(&["gates", fork], 0);
    let gates = gates.as_array().expect("gates");
    assert_eq!(gates.len(), 2, "both children were out");
    let answer = |at: usize, code: i32| {
        let gate = gates[at]["id"].as_str().expect("an id");
        assert!(gate.starts_with(&format!("{fork}.")), "{gate}");
        place.json(&["answer", gate, "ok=true"], code)
    };
    answer(0, 3);
    assert_eq!(answer(1, 0)["output"], json!({"all": 2}));
    assert_eq!(place.json(&["show", id], 0)["status"], "waiting");
}
