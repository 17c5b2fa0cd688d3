//! Templates that grow beyond all memory, in a process that may not have much: the run fails and says which limit it
//! met, the process lives on, and so do the runs beside it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::place::{Ended, Place, binary, ended, until};

/// KiB of address space: enough to run workflows, not to swallow what these templates ask for.
const ADDRESS_SPACE_KIB: &str = "2097152";

/// The binary with little memory.
fn starved(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" \"$@\"")]).arg(binary());
    command.args(arguments).current_dir(place.dir.path()).env("WONDER_HOME", place.home());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run_starved(place: &Place, arguments: &[&str]) -> Ended {
    ended(starved(place, arguments).output().expect("the binary starts"))
}

/// What each would take several gigabytes for, or no end of time.
fn attacks() -> Vec<String> {
    let double = |what: &str| {
        format!(
            "{{% set v = namespace(x='ab') %}}{{% for i in range(60) %}}{{% set v.x = {what} %}}{{% endfor %}}{{{{ v.x }}}}"
        )
    };
    vec![
        double("v.x ~ v.x"),
        double("v.x * 2"),
        double("[v.x, v.x]|string"),
        double("[v.x, v.x]").replace("range(60)", "range(50)"),
        "{{ [1]|batch(9999999999, 'x') }}".to_owned(),
        "{{ '%9999999999s'|format('x') }}".to_owned(),
        "{{ ('x' * 4000000)|replace('x', 'x' * 4000000) }}".to_owned(),
        "{% set y %}{% for i in range(100000) %}{% for j in range(100000) %}over and over and over{% endfor %}{% endfor %}{% endset %}".to_owned(),
        "{% for x in ['ab'] recursive %}{{ loop([x ~ x]) }}{% endfor %}".to_owned(),
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".to_owned(),
    ]
}

/// A workflow of one node.
fn workflow(node: &Value) -> String {
    format!("wonder: 1\nname: attack\nnodes:\n  a: {node}\n")
}

/// The places a template can stand in: on a worker, and in the coordinator.
fn workflows(text: &str) -> [String; 4] {
    let nodes = [
        json!({"shell": {"command": format!("true {text}")}}),
        json!({"mock": {"output": {"a": [text]}}}),
        json!({"human_gate": {"title": text}}),
        json!({"sleep": {"for": text}}),
    ];
    nodes.map(|node| workflow(&node))
}

#[track_caller]
fn failed_at_a_limit(ended: &Ended, workflow: &str) {
    assert_eq!(ended.code, Some(1), "{workflow}\n{ended:#?}");
    let view: Value = serde_json::from_str(&ended.out).expect("JSON");
    let error = &view["error"];
    assert_eq!(error["kind"], "expression_error", "{workflow}\n{error:#}");
    let message = error["message"].as_str().expect("a message");
    let limits =
        ["limit 16777216 bytes", "limit 1000000 steps", "grows beyond 1048576 bytes", "limit 300 levels"];
    assert!(limits.iter().any(|limit| message.contains(limit)), "{workflow}\n{message}");
}

#[test]
fn a_template_that_grows_without_end_fails_its_run_and_nothing_else() {
    let place = Place::new();
    let attacks = attacks();
    for text in &attacks {
        for workflow in workflows(text) {
            let file = place.file("attack.yaml", &workflow);
            failed_at_a_limit(&run_starved(&place, &["run", &file, "-o", "json"]), &workflow);
        }
    }
    failed_at_a_limit(&run_starved(&place, &["retry", "last", "-o", "json"]), "retry");
    let file =
        place.file("fine.yaml", "wonder: 1\nname: fine\nnodes:\n  a: {mock: {output: {v: '{{ 1 + 1 }}'}}}\n");
    let fine = run_starved(&place, &["run", &file, "-o", "json"]);
    assert_eq!(fine.code, Some(0), "{fine:#?}");
}

#[test]
fn many_texts_of_one_action_are_bounded_together() {
    let place = Place::new();
    let texts = vec!["{{ 'x' * 1000000 }}"; 5_000];
    let arguments = [vec!["true"], texts.clone()].concat();
    for node in [
        json!({"mock": {"output": texts}}),
        json!({"shell": {"command": arguments}}),
        json!({"human_gate": {"title": "Well?", "assignees": texts}}),
    ] {
        let file = place.file("attack.yaml", &workflow(&node));
        failed_at_a_limit(&run_starved(&place, &["run", &file, "-o", "json"]), "many texts");
    }
}

/// The process that owns all runs is attacked by those of others.
#[test]
fn the_process_that_owns_other_runs_survives() {
    let place = Place::new();
    let waits =
        "i=0; touch begun; until test -e go || test $i -gt 1200; do i=$((i+1)); sleep 0.05; done; test -e go";
    let node = json!({"shell": {"command": waits, "timeout": "2m", "cwd": place.dir.path()}});
    let file = place.file("owner.yaml", &workflow(&node));
    let owner = starved(&place, &["run", &file]).spawn().expect("the binary starts");
    until("the owner's run", || place.dir.path().join("begun").exists());
    for text in &attacks()[..4] {
        for workflow in workflows(text) {
            let file = place.file("attack.yaml", &workflow);
            failed_at_a_limit(&place.run(&["run", &file, "-o", "json"]), &workflow);
        }
    }
    let fine =
        place.file("fine.yaml", "wonder: 1\nname: fine\nnodes:\n  a: {mock: {output: {v: '{{ 1 + 1 }}'}}}\n");
    assert_eq!(place.json(&["run", &fine], 0)["output"], json!({"v": "2"}));
    place.file("go", "");
    let owner = ended(owner.wait_with_output().expect("it ends"));
    assert_eq!(owner.code, Some(0), "{owner:#?}");
}
