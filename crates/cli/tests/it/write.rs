//! `validate`, `graph`, `schema`, `explain`, `completions`: no engine, no home.

use insta::assert_snapshot;

use crate::home::Home;
use crate::run::GREET;

const BAD: &str = "wonder: 1\nname: bad\nnodes:\n  a: {shell: {comand: ls}, next: [{to: b}]}\n";

#[test]
fn every_problem_of_every_file_is_shown() {
    let home = Home::with(GREET);
    home.write("bad.yaml", BAD);
    assert_snapshot!("validate", home.wonder(&["validate", "flow.yaml"]));
    assert_snapshot!("validate_bad", home.wonder(&["validate", "flow.yaml", "bad.yaml", "none.yaml"]));
    assert_eq!(home.json(&["validate", "flow.yaml", "-o", "json"]), serde_json::json!([]));
    let problems = home.json(&["validate", "bad.yaml", "none.yaml", "-o", "json"]);
    let codes: Vec<&str> = problems.as_array().unwrap().iter().map(|p| p["code"].as_str().unwrap()).collect();
    assert!(codes.len() >= 3 && codes.contains(&"unreadable"), "{codes:?}");
}

#[test]
fn a_workflow_is_drawn() {
    let home = Home::with(GREET);
    assert_snapshot!("graph", home.wonder(&["graph", "flow.yaml"]));
    assert_snapshot!("graph_dot", home.wonder(&["graph", "flow.yaml", "--format", "dot"]));
    assert_eq!(home.json(&["graph", "flow.yaml", "-o", "json"])["workflow"], "greet");
    assert_snapshot!("graph_no_file", home.wonder(&["graph", "none.yaml"]));
}

#[test]
fn what_editors_and_shells_want_is_printed() {
    let home = Home::new();
    assert_eq!(home.json(&["schema"])["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(home.text(&["completions", shell]).contains("validate"), "{shell}");
    }
    assert!(home.text(&["explain", "e0020"]).starts_with("# E0020"));
    assert!(home.text(&["explain"]).lines().count() > 50);
    assert_snapshot!("explain_unknown", home.wonder(&["explain", "E0019"]));
    assert!(!home.path().join("runs").exists(), "none of this makes a home");
}
