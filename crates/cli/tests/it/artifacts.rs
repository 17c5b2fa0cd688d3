//! What a run has kept, on the screen.

use insta::assert_snapshot;

use crate::home::Home;

const KEEPS: &str = r##"
name: keeps
artifact_types: {report: {media_type: text/markdown}}
nodes:
  write: {artifact_write: {type: report, name: report.md, content: "# Report\n\nAll is well."}, next: [{to: build}]}
  build:
    shell: {command: 'cd "$WONDER_ARTIFACTS" && mkdir logs && printf "\033[2Jgone\n" > logs/build.log && printf "\377\376" > raw', timeout: 10s}
    next: [{to: child}]
  child: {workflow_call: {workflow: inner}}
---
wonder: 1
name: inner
nodes: {note: {artifact_write: {name: note, content: {ok: true}}}}
"##;

#[test]
fn artifacts_are_listed_printed_and_saved() {
    let home = Home::with(KEEPS);
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("artifacts", home.wonder(&["artifacts"]));
    assert_snapshot!("artifact", home.wonder(&["artifacts", "last", "report.md"]));
    assert_snapshot!("artifact_json", home.wonder(&["artifacts", "last", "note", "-o", "json"]));
    assert_snapshot!("artifact_saved", home.wonder(&["artifacts", "last", "raw", "--to", "raw.bin"]));
    assert_eq!(std::fs::read(home.work().join("raw.bin")).unwrap(), b"\xff\xfe");
    assert_snapshot!("artifact_saved_again", home.wonder(&["artifacts", "last", "raw", "--to", "raw.bin"]));
    assert_snapshot!("artifact_unknown", home.wonder(&["artifacts", "last", "reprot.md"]));
    let listed = home.json(&["artifacts", "-o", "json"]);
    for key in ["run", "name", "type", "media_type", "bytes", "artifact", "node", "at"] {
        assert!(!listed[0][key].is_null(), "{key} is there: {listed}");
    }
}

#[test]
fn a_run_that_kept_nothing_says_so() {
    let home = Home::with("name: none\nnodes: {a: {mock: {output: {}}}}\n");
    home.wonder(&["run", "flow.yaml"]);
    assert_snapshot!("artifacts_none", home.wonder(&["artifacts"]));
    assert_eq!(home.json(&["artifacts", "-o", "json"]), serde_json::json!([]));
}

#[test]
fn a_store_elsewhere_is_a_directory() {
    let home = Home::with(KEEPS);
    home.write("wonder.toml", "artifact_store = \"kept\"\n");
    home.wonder(&["run", "flow.yaml"]);
    assert!(home.work().join("kept/files").is_dir());
    assert_eq!(home.text(&["artifacts", "last", "note"]), r#"{"ok":true}"#);
    home.write("wonder.toml", "artifact_store = \"s3://bucket/runs\"\n");
    assert_snapshot!("artifact_store_url", home.wonder(&["artifacts"]));
}
