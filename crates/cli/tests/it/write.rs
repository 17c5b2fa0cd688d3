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
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.text(&["completions", shell]).contains("__complete"), "{shell}");
    }
    for shell in ["powershell", "elvish"] {
        let text = home.text(&["completions", shell]);
        assert!(text.contains("validate") && !text.contains("__"), "{shell}");
    }
    assert!(home.text(&["explain", "e0020"]).starts_with("# E0020"));
    assert!(home.text(&["explain"]).lines().count() > 50);
    assert_snapshot!("explain_unknown", home.wonder(&["explain", "E0019"]));
    assert!(!home.path().join("runs").exists(), "none of this makes a home");
}

/// What can stand at the end of a line, without what it is.
fn completed(home: &Home, line: &str) -> Vec<String> {
    let words: Vec<&str> = ["__complete", "--"].into_iter().chain(line.split(' ')).collect();
    let said = home.text(&words);
    said.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn shells_complete_what_is_there() {
    let home = Home::with(
        "name: asks\nnodes: {first: {mock: {output: {}}, next: [{to: ask}]}, ask: {human_gate: {title: Sure?}}}\n",
    );
    assert_eq!(completed(&home, "show "), [""; 0], "where there is nothing, nothing is offered");
    let run = home.json(&["run", "flow.yaml", "-o", "json"])["run"].as_str().unwrap().to_owned();
    assert_eq!(completed(&home, "show "), ["last", &run]);
    assert_eq!(completed(&home, &format!("show {}", &run[..5])), [run.as_str()]);
    assert_eq!(completed(&home, "answer "), [format!("{run}:1")]);
    assert_eq!(completed(&home, "logs last --node "), ["ask", "first"]);
    assert_eq!(completed(&home, "fork last --from f"), ["first"]);
    assert_eq!(completed(&home, "list --workflow "), ["asks"]);
    assert_eq!(completed(&home, "explain E0020"), ["E0020"]);
    assert_eq!(completed(&home, "res"), ["resume"]);
    assert_eq!(completed(&home, "__"), [""; 0], "internal verbs are hidden");
    assert_eq!(completed(&home, "run fl"), [""; 0], "files are left to the shell");
}

#[test]
fn bash_asks_for_candidates() {
    let home = Home::with("name: asks\nnodes: {ask: {human_gate: {title: Sure?}}}\n");
    let run = home.json(&["run", "flow.yaml", "-o", "json"])["run"].as_str().unwrap().to_owned();
    let wonder = env!("CARGO_BIN_EXE_wonder");
    let line = |typed: &str| format!("{wonder} {typed}");
    let reply = |typed: &str| {
        let script = r#"source <("$0" completions bash); COMP_LINE=$1; COMP_POINT=${#1}; _wonder; echo "${COMPREPLY[*]}""#;
        let mut bash = std::process::Command::new("bash");
        let bash =
            bash.args(["-c", script, wonder, &line(typed)]).env("WONDER_HOME", home.path().join("runs"));
        String::from_utf8(bash.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    assert_eq!(reply("resu"), "resume");
    assert_eq!(reply("answer "), format!("{run}:1"));
    assert_eq!(reply(&format!("answer {run}:")), "1", "to bash the word begins behind the colon");
    assert_eq!(reply("list --status=inter"), "interrupted");
}

const CALLER: &str = "name: caller\nnodes:\n  call: {workflow_call: {file: ./parts/greet.yaml}}\n";
const CALLED: &str = "wonder: 1\nname: greet\nnodes: {hi: {mock: {output: {said: hello}}}}\n";

#[test]
fn a_workflow_of_another_file_is_called() {
    let home = Home::with(CALLER);
    // Missing: said at its line, and nothing starts.
    assert_snapshot!("called_file_missing", home.wonder(&["run", "flow.yaml"]));
    assert!(!home.path().join("runs").exists(), "nothing is recorded");
    std::fs::create_dir(home.work().join("parts")).unwrap();
    home.write("parts/greet.yaml", CALLED);
    assert_eq!(home.json(&["run", "flow.yaml", "-o", "json"])["output"]["said"], "hello");
    assert!(home.text(&["validate", "flow.yaml"]).contains("workflow caller with 1 node"));
    // A circle of files, and a problem in the file that is called.
    home.write(
        "parts/greet.yaml",
        "wonder: 1\nname: greet\nnodes: {hi: {workflow_call: {file: ../flow.yaml}}}\n",
    );
    assert_snapshot!("called_file_circle", home.wonder(&["validate", "flow.yaml"]));
    home.write("parts/greet.yaml", "wonder: 1\nname: greet\nnodes: {hi: {mok: {}}}\n");
    assert_snapshot!("called_file_bad", home.wonder(&["plan", "flow.yaml"]));
}

#[test]
fn several_files_call_each_other_by_name() {
    let home = Home::with("name: caller\nnodes: {call: {workflow_call: greet}}\n");
    home.write("greet.yaml", CALLED);
    assert_snapshot!("called_name_missing", home.wonder(&["run", "flow.yaml"]));
    assert_eq!(home.json(&["run", "flow.yaml", "greet.yaml", "-o", "json"])["output"]["said"], "hello");
    assert!(home.wonder(&["validate", "flow.yaml", "greet.yaml"]).starts_with("exit 0"));
    assert!(home.wonder(&["plan", "flow.yaml", "greet.yaml"]).starts_with("exit 0"));
}

#[test]
fn a_file_may_come_from_stdin() {
    let home = Home::with(GREET);
    for (verb, part) in [
        ("run - -i who=me < flow.yaml", "Hello, me"),
        ("validate - < flow.yaml", "(stdin): workflow greet"),
        ("plan - < flow.yaml", "greet"),
        ("graph - < flow.yaml", "flowchart"),
    ] {
        let output = home.shell(&format!("wonder {verb}")).output().unwrap();
        let said = home.shot(&output);
        assert!(output.status.success() && said.contains(part), "{verb}\n{said}");
    }
    let twice = home.shell("wonder run - -i - < flow.yaml").output().unwrap();
    assert_eq!(twice.status.code(), Some(2));
}

#[test]
fn what_short_forms_stand_for_is_printed_and_reads_back() {
    let home = Home::with(GREET);
    let long = home.text(&["validate", "flow.yaml", "--expand"]);
    assert_snapshot!("validate_expand", long);
    home.write("long.yaml", &long);
    assert_eq!(home.text(&["validate", "long.yaml", "--expand"]), long);
    assert!(home.json(&["validate", "flow.yaml", "--expand", "-o", "json"])[0]["workflow"].is_object());
}
