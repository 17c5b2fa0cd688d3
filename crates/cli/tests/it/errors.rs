//! What goes wrong, and what is said about it.

use insta::assert_snapshot;
use std::process::Stdio;

use crate::home::Home;
use crate::run::GREET;

#[test]
fn what_is_typed_wrong_is_a_usage_error() {
    let home = Home::with(GREET);
    assert_snapshot!("usage_nothing", home.wonder(&[]));
    assert_snapshot!("usage_unknown_verb", home.wonder(&["runn", "flow.yaml"]));
    assert_snapshot!("usage_unknown_flag", home.wonder(&["run", "flow.yaml", "--imput", "a=1"]));
    assert_snapshot!("usage_bad_status", home.wonder(&["list", "--status", "wating"]));
    assert_snapshot!("input_no_file", home.wonder(&["run", "flow.yaml", "-i", "@none.json"]));
    assert_snapshot!("input_not_json", home.wonder(&["run", "flow.yaml", "-i", "{who: me}"]));
    assert_snapshot!("label_bad", home.wonder(&["run", "flow.yaml", "--label", "team"]));
    assert!(!home.path().join("runs").exists(), "nothing is recorded");
}

#[test]
fn an_input_that_does_not_fit_starts_nothing() {
    let home = Home::with(GREET);
    assert_snapshot!("input_bad", home.wonder(&["run", "flow.yaml", "-i", "who:=7"]));
    assert_snapshot!("input_bad_json", home.wonder(&["run", "flow.yaml", "-o", "json"]));
    assert_eq!(home.json(&["list", "-o", "json"]), serde_json::json!([]));
}

#[test]
fn a_home_that_is_not_there_is_a_mistake_unless_a_run_makes_it() {
    let home = Home::with(GREET);
    for verb in ["list", "show", "gates", "cost", "resume", "retry"] {
        let args: &[&str] = if ["list", "gates", "cost"].contains(&verb) { &[verb] } else { &[verb, "last"] };
        let shot = home.wonder(&[&["--home", "nowhere"], args].concat());
        assert!(shot.starts_with("exit 2") && shot.contains("--home"), "{shot}");
    }
    assert_snapshot!("home_nowhere", home.wonder(&["--home", "nowhere", "list"]));
    assert!(!home.work().join("nowhere").exists());
    assert!(home.wonder(&["--home", "nowhere", "run", "flow.yaml", "-i", "who=me"]).starts_with("exit 0"));
    assert!(home.wonder(&["--home", "nowhere", "list"]).contains("greet"));
}

#[test]
fn a_node_that_is_not_there_is_named() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=me"]);
    assert_snapshot!("logs_no_such_node", home.wonder(&["logs", "--node", "sai"]));
    assert_snapshot!("fork_no_such_node", home.wonder(&["fork", "last", "--from", "sai"]));
}

#[test]
fn a_file_with_problems_starts_nothing() {
    let home = Home::with("name: bad\nnods: {}\n");
    assert_snapshot!("run_bad_file", home.wonder(&["run", "flow.yaml"]));
    let json = home.json(&["run", "flow.yaml", "-o", "json"]);
    assert_eq!(json["error"]["code"], "bad_definition");
    assert_eq!(json["error"]["problems"][0]["code"], "E0020");
    assert_snapshot!("run_no_file", home.wonder(&["run", "none.yaml"]));
    home.write("task.yaml", "wonder: 1\ntask: t\nsteps: []\n");
    home.write("only_model.yaml", "wonder: 1\nkind: model\nname: m\nprovider: openai\nmodel: x\n");
    assert!(!home.path().join("runs").exists(), "nothing is recorded");
}

#[test]
fn a_run_that_is_not_there_is_named() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=me"]);
    home.wonder(&["run", "flow.yaml", "-i", "who=you"]);
    assert_snapshot!("unknown_run", home.wonder(&["show", "nope"]));
    assert_snapshot!("unknown_run_json", home.wonder(&["show", "nope", "-o", "json"]));
    assert_snapshot!("ambiguous_run", home.wonder(&["show", "01"]));
    assert_snapshot!("unknown_gate", home.wonder(&["answer", "last:9", "ok=true"]));
}

#[test]
fn settings_that_are_wrong_are_named_with_their_file() {
    let home = Home::with(GREET);
    home.write("wonder.toml", "durabilty = \"full\"\n");
    assert_snapshot!("config_unknown_key", home.wonder(&["list"]));
    assert_snapshot!("config_unknown_key_json", home.wonder(&["list", "-o", "json"]));
    // Whoever needs no engine needs no settings.
    assert!(home.wonder(&["validate", "flow.yaml"]).starts_with("exit 0"));
    home.write("wonder.toml", "secrets_file = \"none\"\n");
    assert_snapshot!("config_no_secrets", home.wonder(&["run", "flow.yaml", "-i", "who=me"]));
}

#[test]
fn a_database_that_cannot_be_used_is_left_alone() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=me"]);
    let database = rusqlite::Connection::open(home.database()).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert_snapshot!("database_newer", home.wonder(&["list"]));
    assert_snapshot!("database_newer_run", home.wonder(&["run", "flow.yaml", "-i", "who=me", "-o", "json"]));

    let damaged = Home::with(GREET);
    std::fs::create_dir(damaged.path().join("runs")).unwrap();
    std::fs::write(
        damaged.database(),
        "this is no database, and it is long enough to be taken for one".repeat(99),
    )
    .unwrap();
    assert_snapshot!("database_damaged", damaged.wonder(&["list"]));
    assert_snapshot!(
        "home_unusable",
        damaged.wonder(&["--home", "/dev/null/runs", "run", "flow.yaml", "-i", "who=me"])
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = Home::with(GREET);
    let run = home.json(&["run", "flow.yaml", "-i", "who=me", "-o", "json"])["run"].clone();
    for args in [&["schema"][..], &["events", run.as_str().unwrap()], &["list"], &["explain"]] {
        let mut child = home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{args:?}");
    }
}
