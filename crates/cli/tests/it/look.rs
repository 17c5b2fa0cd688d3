//! `list`, `show`, `watch`, `logs`, `events`.

use insta::assert_snapshot;

use crate::home::Home;
use crate::mask::mask_field;
use crate::run::GREET;

#[test]
fn a_run_can_be_looked_at_from_all_sides() {
    let home = Home::with(GREET);
    let run = home.json(&["run", "flow.yaml", "-i", "who=world", "-o", "json"])["run"].clone();
    let run = run.as_str().unwrap();
    assert_snapshot!("list", home.wonder(&["list"]));
    assert_snapshot!("show", home.wonder(&["show", &run[18..]]));
    assert_snapshot!("watch_ended", home.wonder(&["watch", &run[..20]]));
    assert_snapshot!("logs", home.wonder(&["logs"]));
    assert_snapshot!("logs_of_a_silent_node", home.wonder(&["logs", run, "--node", "ask"]));
    assert_snapshot!("events", by_lot(&home.wonder(&["events", "last"])));
    assert_snapshot!("events_follow", by_lot(&home.wonder(&["events", "last", "--after", "6", "--follow"])));
    assert_snapshot!("why_ended", home.wonder(&["why", "last"]));
    assert_snapshot!("graph_of_a_run", home.wonder(&["graph", "last"]));
}

/// Without what is drawn by lot, and without how long a command took.
fn by_lot(text: &str) -> String {
    let text = mask_field(text, "duration_ms");
    let Some(at) = text.find("seed=") else { return text };
    let end = at + 5 + text[at + 5..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    format!("{}seed=[N]{}", &text[..at], &text[end..])
}

#[test]
fn programs_read_what_people_read() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=world"]);
    let ran = home.json(&["run", "flow.yaml", "-i", "who=you", "-o", "json"]);
    let shown = home.json(&["show", "last", "-o", "json"]);
    for (key, value) in ran.as_object().unwrap() {
        assert_eq!(&shown[key], value, "`show` has the fields of `run`: {key}");
    }
    assert_eq!(shown["nodes"][1]["node"], "say");
    assert_eq!(home.json(&["list", "--status", "completed", "-o", "json"]).as_array().unwrap().len(), 2);
    assert_eq!(home.json(&["list", "--workflow", "other", "-o", "json"]).as_array().unwrap().len(), 0);
    assert_eq!(home.json(&["why", "last", "-o", "json"]), serde_json::json!([]));
    let events = home.text(&["events", "last", "-o", "json"]);
    let first: serde_json::Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["seq"], &first["kind"], &first["run"]),
        (&1.into(), &"run_started".into(), &ran["run"])
    );
    let log: serde_json::Value = serde_json::from_str(&home.text(&["logs", "last", "-o", "json"])).unwrap();
    assert_eq!((&log["node"], &log["text"]), (&"say".into(), &"said Hello, you".into()));
    let list = home.wonder(&["list", "-n", "1", "-o", "json"]);
    assert_snapshot!("list_json", list);
}

#[test]
fn what_other_tools_call_it_works_too() {
    let home = Home::with(GREET);
    home.wonder(&["run", "flow.yaml", "-i", "who=world"]);
    assert_eq!(home.wonder(&["ps"]), home.wonder(&["list"]));
    assert_eq!(home.wonder(&["status", "last"]), home.wonder(&["show", "last"]));
    assert!(home.wonder(&["status"]).contains("last is run"), "it says which run it chose");
}

#[test]
fn an_empty_home_has_nothing_to_show() {
    let home = Home::new();
    assert_snapshot!("list_nothing", home.wonder(&["list"]));
    assert_snapshot!("list_nothing_fits", home.wonder(&["list", "--status", "waiting"]));
    assert_snapshot!("show_nothing", home.wonder(&["show"]));
    assert_eq!(home.json(&["gates", "-o", "json"]), serde_json::json!([]));
    assert!(!home.database().exists(), "looking makes nothing");
}
