//! Databases that older versions wrote: every run in them can be shown and gone on with, also where today's
//! checks would refuse the file it was started from.

use serde_json::{Value, json};

use crate::place::{Place, root};

/// A copy of a golden database to work on, and the folder of its files.
fn golden(format: &str) -> (Place, String) {
    let (place, folder) = (Place::new(), root().join("tests/e2e/golden").join(format));
    std::fs::create_dir_all(place.home()).expect("a home");
    std::fs::copy(folder.join("wonder.db"), place.database()).expect("a golden database");
    (place, folder.to_string_lossy().into_owned())
}

/// The run of a workflow, by its list row.
fn run_of(place: &Place, workflow: &str) -> String {
    let runs = place.json(&["list"], 0);
    let rows = runs.as_array().expect("rows");
    let row = rows.iter().find(|row| row["workflow"] == workflow).unwrap_or_else(|| panic!("{runs:#}"));
    row["run"].as_str().expect("an id").to_owned()
}

fn gates(place: &Place, run: &str) -> Vec<String> {
    let gates = place.json(&["gates", run], 0);
    gates
        .as_array()
        .expect("gates")
        .iter()
        .map(|gate| gate["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// Every screen that looks at a run works.
fn look(place: &Place, run: &str) {
    for verb in ["show", "events", "why", "cost", "logs"] {
        let ended = place.run(&[verb, run]);
        assert_eq!(ended.code, Some(0), "{verb}: {ended:#?}");
    }
    assert_eq!(place.run(&["show", run, "--graph"]).code, Some(0));
}

/// The file that a run was started from is refused today, with this code.
fn refused(place: &Place, file: &str, code: &str) {
    let ended = place.run(&["validate", file]);
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert!((ended.out + &ended.err).contains(code), "{file} is not refused with {code}");
}

fn answered(place: &Place, gate: &str, code: i32) -> Value {
    place.json(&["answer", gate, "ok=true"], code)
}

#[test]
fn a_run_whose_file_is_refused_today_is_shown_answered_and_finished() {
    let (place, folder) = golden("format-1");
    refused(&place, &format!("{folder}/never_taken.yaml"), "E0119");
    let run = run_of(&place, "never_taken");
    look(&place, &run);
    let done = answered(&place, &format!("{run}:1"), 0);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["output"], json!({"went": "b"}));
    look(&place, &run);
}

#[test]
fn a_run_that_changed_its_graph_goes_on_though_its_file_is_refused_today() {
    let (place, folder) = golden("format-1");
    refused(&place, &format!("{folder}/growing.yaml"), "E0119");
    let run = run_of(&place, "growing");
    look(&place, &run);
    let done = answered(&place, &format!("{run}:1"), 0);
    assert_eq!(done["output"], json!({"went": "b"}));
    assert_eq!(place.json(&["show", &run], 0)["metrics"]["mutations_applied"], 1);
}

#[test]
fn waits_that_do_not_say_what_they_were_opened_with_are_answered() {
    let (place, _) = golden("format-1");
    let run = run_of(&place, "waiting");
    look(&place, &run);
    let open = gates(&place, &run);
    assert_eq!(open.len(), 2, "{open:?}");
    open.iter().for_each(|gate| drop(answered(&place, gate, 3)));
    let done = place.json(&["signal", &run, "go", r#"{"n": 1}"#], 0);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["output"]["all"].as_array().map(Vec::len), Some(4), "{done:#}");
}

#[test]
fn what_ended_is_shown_and_what_failed_is_retried() {
    let (place, _) = golden("format-1");
    let finished = run_of(&place, "finished");
    look(&place, &finished);
    let shown = place.json(&["show", &finished], 0);
    assert_eq!(shown["output"], json!({"all": [{"got": "1"}, {"got": "2"}, {"got": "3"}]}));
    let failed = run_of(&place, "failed");
    look(&place, &failed);
    let done = place.json(&["retry", &failed], 0);
    assert_eq!(done["output"], json!({"fine": true}));
}

#[test]
fn a_run_whose_file_has_keys_that_are_refused_today_goes_on() {
    let (place, folder) = golden("format-1");
    refused(&place, &format!("{folder}/ignored.yaml"), "E0033");
    let run = run_of(&place, "ignored");
    look(&place, &run);
    let done = answered(&place, &format!("{run}:1"), 0);
    assert_eq!(done["output"], json!({"fine": true}));
}

#[test]
fn branches_that_ask_are_answered_and_what_was_found_by_label_still_is() {
    let (place, _) = golden("format-5");
    let listed = place.json(&["list", "--label", "team=docs"], 0);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed:#}");
    let run = run_of(&place, "labelled");
    look(&place, &run);
    let open = gates(&place, &run);
    assert_eq!(open.len(), 2, "{open:?}");
    open.iter().for_each(|gate| drop(answered(&place, gate, 3)));
    let waiting = place.json(&["show", &run], 0);
    let child = waiting["waiting"][0]["run"].as_str().unwrap_or_else(|| panic!("{waiting:#}")).to_owned();
    let done = place.json(&["signal", &child, "go", "{}"], 0);
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!({"answers": 2})));
    let broken = run_of(&place, "broken");
    look(&place, &broken);
    assert_eq!(place.json(&["retry", &broken], 0)["output"], json!({"fine": true}));
}
