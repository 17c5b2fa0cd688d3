//! `cancel`, `kill`, `pause`, `resume`, `retry`.

use insta::assert_snapshot;

use crate::home::Home;
use crate::run::GREET;

#[test]
fn what_failed_is_tried_again_in_the_same_run() {
    let home = Home::with(
        r#"
name: mends
nodes:
  first: {mock: {output: {n: 1}}, next: [{to: second}]}
  second: {shell: {command: "test -e mended"}, timeout: 20s}
"#,
    );
    let failed = home.json(&["run", "flow.yaml", "-o", "json"]);
    home.write("mended", "");
    assert_snapshot!("retry", home.wonder(&["retry", "last"]));
    let done = home.json(&["show", "last", "-o", "json"]);
    assert_eq!((&done["run"], &done["status"]), (&failed["run"], &"completed".into()));
    assert_snapshot!("retry_completed", home.wonder(&["retry", "last"]));
    assert_snapshot!("resume_completed", home.wonder(&["resume", "last"]));
}

#[test]
fn no_verb_sends_people_to_one_that_refuses_too() {
    let home = Home::with("name: fails\nnodes: {a: {shell: {command: exit 3}, timeout: 20s}}\n");
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("resume_failed", home.wonder(&["resume", "last"]));
    home.write("flow.yaml", "wonder: 1\nname: asks\nnodes: {a: {human_gate: {title: Sure?}}}\n");
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("retry_waiting", home.wonder(&["retry", "last"]));
    home.wonder(&["pause", "last"]);
    assert_snapshot!("retry_paused", home.wonder(&["retry", "last"]));
}

#[test]
fn a_run_is_ended_when_the_verb_returns() {
    let home = Home::with(GREET);
    for verb in ["cancel", "kill"] {
        home.wonder(&["run", "flow.yaml", "-i", "who=me", "-d"]);
        assert_snapshot!(verb, home.wonder(&[verb, "last", "--reason", "wrong input"]));
        let json = home.json(&["show", "last", "-o", "json"]);
        assert_eq!(json["status"], "cancelled");
    }
    assert_snapshot!("cancel_again", home.wonder(&["cancel", "last"]));
    assert_snapshot!("resume_cancelled", home.wonder(&["resume", "last"]));
}

#[test]
fn a_paused_run_stands_still_until_it_is_resumed() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=me", "-d"]);
    assert_snapshot!("pause", home.wonder(&["pause", "last", "--by", "bob"]));
    assert_snapshot!("pause_again", home.wonder(&["pause", "last"]));
    assert_snapshot!("list_paused", home.wonder(&["list"]));
    assert_snapshot!("resume_paused", home.wonder(&["resume", "last"]));
}

#[test]
fn a_retry_says_that_the_file_was_edited_and_takes_the_new_one_if_told_to() {
    let broken = r#"
name: edited
nodes:
  first: {mock: {output: {n: 1}}, next: [{to: second}]}
  second: {shell: {command: "exit 4"}, timeout: 20s}
"#;
    let home = Home::with(broken);
    home.wonder(&["run", "flow.yaml"]);
    home.write("flow.yaml", &format!("wonder: 1\n{}", broken.replace("exit 4", "echo mended")));
    assert_snapshot!("retry_edited", home.wonder(&["retry", "last"]));
    let renamed = broken.replace("first", "begin");
    home.write("renamed.yaml", &format!("wonder: 1\n{renamed}"));
    assert_snapshot!("retry_other_past", home.wonder(&["retry", "last", "--definition", "renamed.yaml"]));
    assert_snapshot!("retry_definition", home.wonder(&["retry", "last", "--definition", "flow.yaml"]));
}

#[test]
fn a_fork_counts_only_its_own_work() {
    let home = Home::with(
        r#"
name: forked
nodes:
  first: {mock: {output: {n: 1}}, next: [{to: second}]}
  second: {mock: {output: {n: 2}}}
"#,
    );
    let run = home.json(&["run", "flow.yaml", "-o", "json"])["run"].clone();
    let fork = home.json(&["fork", run.as_str().unwrap(), "--from", "second", "-o", "json"]);
    assert_snapshot!("show_fork", home.wonder(&["show", fork["run"].as_str().unwrap()]));
    let shown = home.json(&["show", fork["run"].as_str().unwrap(), "-o", "json"]);
    let (started, ended) = (shown["started_at"].as_u64().unwrap(), shown["ended_at"].as_u64().unwrap());
    assert_eq!(shown["duration_ms"].as_u64().unwrap(), ended - started);
    let copied = shown["nodes"][0]["ended_at"].as_u64().unwrap();
    assert!(copied <= started, "it begins where it was forked");
}

#[test]
fn a_retry_does_not_count_what_lay_between() {
    let home = Home::with("name: mends\nnodes: {a: {shell: {command: \"test -e mended\"}, timeout: 20s}}\n");
    home.wonder(&["run", "flow.yaml"]);
    home.write("mended", "");
    home.wonder(&["retry", "last"]);
    let shown = home.json(&["show", "-o", "json"]);
    let events = home.text(&["events", "last", "-o", "json"]);
    let at = |kind: &str| -> u64 {
        let lines = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.rev().find(|event| event["kind"] == kind).unwrap()["at"].as_u64().unwrap()
    };
    let own = (at("run_failed") - at("run_started")) + (at("run_completed") - at("run_retried"));
    assert_eq!(shown["duration_ms"].as_u64().unwrap(), own);
    assert_eq!(home.json(&["retry", "last", "-o", "json"])["error"]["code"], "conflict");
}
