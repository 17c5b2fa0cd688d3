//! The reference on the screen, and what it promises: every example ends as it says, results and roots have the
//! parts that are listed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;
use wonder_core::terms::{result_fields, root};

use crate::home::Home;
use crate::server::Server;

pub(crate) fn repository(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below)
}

#[test]
fn every_example_ends_as_it_says() {
    let server = Server::start(|_, _| (200, "{}".to_owned()));
    let mut ran = 0;
    let entries = std::fs::read_dir(repository("examples/reference")).unwrap();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let home = Home::new();
        // One may call another.
        for file in &paths {
            let name = file.file_name().unwrap().to_string_lossy();
            home.write(&name, &std::fs::read_to_string(file).unwrap());
        }
        for (command, exit) in promises(&text) {
            let command = command.replace("port=8000", &format!("port={}", server.port));
            let output = home.shell(&command).output().unwrap();
            let said = home.shot(&output);
            assert_eq!(output.status.code(), Some(exit), "{}: {command}\n{said}", path.display());
            ran += 1;
        }
    }
    assert!(ran > 35, "only {ran} commands were found");
    let asked = server.asked.lock().unwrap();
    assert!(
        asked.iter().any(|(request, body)| request == "POST /items" && body.contains("a thing")),
        "{asked:?}"
    );
}

/// Lines such as `# Run it: wonder run FILE   # exit 0`, in order.
pub(crate) fn promises(text: &str) -> Vec<(String, i32)> {
    let lines = text.lines().filter_map(|line| {
        let line = line.strip_prefix("# Run it:").or_else(|| line.strip_prefix("# Then:"))?;
        let (command, exit) = line.split_once("# exit ")?;
        Some((command.trim().to_owned(), exit.trim().parse().ok()?))
    });
    lines.collect()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

#[test]
fn results_and_roots_have_the_parts_that_are_listed() {
    let server = Server::start(|_, _| (200, "{}".to_owned()));
    let home = Home::with(
        r#"
name: parts
nodes:
  shell: {shell: "true", timeout: 20s, next: [http_request]}
  http_request:
    http_request: {url: "http://127.0.0.1:{{ input.port }}/", allow_private: true, timeout: 20s}
    next: [fails]
  fails: {mock: {error: internal}, on_error: [{do: {goto: each}}], next: [each]}
  each: {update_context: {set: {output.run: run, output._last_error: _last_error}}, next: [{to: branch, spawn_count: 1}]}
  branch:
    update_context: {set: {b: _branch}}
    next: [{to: done, synchronization: {merge: {source: _branch.output.b, target: output.branches}}}]
  done: {update_context: {set: {output.shell: state.shell, output.http_request: state.http_request}}}
"#,
    );
    let json = home.json(&["run", "flow.yaml", "-i", &format!("port={}", server.port), "-o", "json"]);
    let output = &json["output"];
    for kind in ["shell", "http_request"] {
        // A command that leaves nothing behind has no artifacts.
        let always = result_fields(kind).iter().map(|(name, _)| *name).filter(|name| *name != "artifacts");
        assert_eq!(keys(&output[kind]), always.collect(), "{kind}");
    }
    let branch = &output["branches"][0];
    for (name, value) in
        [("run", &output["run"]), ("_last_error", &output["_last_error"]), ("_branch", branch)]
    {
        assert_eq!(
            keys(value),
            root(name).unwrap().fields.iter().map(|(name, _)| *name).collect(),
            "{name}: {json}"
        );
    }
}

#[test]
fn a_topic_is_explained_with_what_one_needs_to_write_it() {
    let home = Home::new();
    let shell = home.text(&["explain", "shell"]);
    for part in
        ["# shell", "`command`", "default: none", "Result:", "`exit_code`", "# Run it: wonder run shell.yaml"]
    {
        assert!(shell.contains(part), "{part} is missing:\n{shell}");
    }
    let timeout = home.text(&["explain", "timeout"]);
    for part in ["A key of a workflow.", "A key of a node.", "A key of `synchronization`.", "Default: 1h."] {
        assert!(timeout.contains(part), "{part} is missing:\n{timeout}");
    }
    assert_snapshot!("explain_one_meaning", home.wonder(&["explain", "merge.strategy"]));
    assert_snapshot!("explain_function", home.wonder(&["explain", "size"]));
    assert_snapshot!("explain_setting", home.wonder(&["explain", "$WONDER_GRACE"]));
    let all = home.text(&["explain"]);
    for name in [
        "human_gate",
        "on_timeout",
        "proceed_with_available",
        "upperAscii",
        "_last_error",
        "allow_hosts",
        "E0101",
    ] {
        assert!(all.contains(name), "{name} is not listed");
    }
    let example = home.text(&["explain", "foreach", "--example"]);
    home.write("try.yaml", &example);
    assert!(home.wonder(&["run", "try.yaml"]).starts_with("exit 0"), "{example}");
    let json = home.json(&["explain", "shell", "-o", "json"]);
    assert_eq!((&json[0]["name"], &json[0]["group"]), (&"shell".into(), &"actions".into()));
}

#[test]
fn what_is_not_known_is_answered_with_what_may_be_meant() {
    let home = Home::new();
    assert_snapshot!("explain_slip", home.wonder(&["explain", "tiemout"]));
    assert_snapshot!("explain_slip_in_place", home.wonder(&["explain", "nodes.tiemout"]));
    assert_snapshot!("explain_foreign", home.wonder(&["explain", "depends_on"]));
    assert_snapshot!("explain_nothing", home.wonder(&["explain", "list_of_runs"]));
    assert_snapshot!("explain_a_verb", home.wonder(&["explain", "validate"]));
    assert_snapshot!("explain_no_example", home.wonder(&["explain", "NO_COLOR", "--example"]));
}
