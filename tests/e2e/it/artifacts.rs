//! Artifacts and `kill -9`: a name never leads to nothing; and no way out of the working directory, no secret, no flood.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::place::{Place, ended};

const KEEPS: &str = r#"wonder: 1
name: keeps
nodes:
  a: {artifact_write: {name: a.txt, content: "of a"}, next: [{to: b}]}
  b:
    shell: {command: 'echo of b > "$WONDER_ARTIFACTS/b.txt"', timeout: 30s}
    next: [{to: c}]
  c: {artifact_read: a.txt, next: [{to: d}]}
  d: {artifact_write: {name: d.json, content: {c: "{{ state.c }}"}}}
"#;

fn files(place: &Place) -> BTreeSet<String> {
    fn below(folder: PathBuf, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => below(entry.path(), found),
                false => drop(found.insert(entry.file_name().to_string_lossy().into_owned())),
            }
        }
    }
    let mut found = BTreeSet::new();
    below(place.home().join("artifacts/files"), &mut found);
    found
}

/// Every artifact that a run names can be read.
fn nothing_dangles(place: &Place) -> Vec<Value> {
    let listed = place.json(&["artifacts", "last"], 0);
    let files = files(place);
    for artifact in listed.as_array().unwrap() {
        let hash = artifact["artifact"].as_str().unwrap().trim_start_matches("blake3:");
        assert!(files.contains(hash), "{artifact}: {files:?}");
    }
    listed.as_array().unwrap().clone()
}

#[test]
fn killed_between_a_file_and_its_event_a_run_names_nothing_that_is_not_there() {
    let mut deaths = 0;
    for point in
        (1..=12).flat_map(|n| [format!("begin:{n}"), format!("write:{}", 3 * n), format!("committed:{n}")])
    {
        let place = Place::new();
        let file = place.file("keeps.yaml", KEEPS);
        let mut command = place.command(&["run", &file]);
        let died = ended(command.env("WONDER_FAILPOINT", &point).output().expect("it starts"));
        if died.code == Some(0) {
            continue;
        }
        deaths += 1;
        let there = place.json(&["list"], 0).as_array().is_some_and(|runs| !runs.is_empty());
        if there {
            nothing_dangles(&place);
            let view = place.json(&["show", "last"], 0);
            if view["status"] != "completed" {
                assert_eq!(place.run(&["resume", "last"]).code, Some(0), "{point}");
            }
        } else {
            assert_eq!(place.run(&["run", &file]).code, Some(0), "{point}");
        }
        let listed = nothing_dangles(&place);
        let names: Vec<&str> = listed.iter().filter_map(|artifact| artifact["name"].as_str()).collect();
        assert_eq!(names, ["a.txt", "b.txt", "d.json"], "{point}");
        assert_eq!(place.run(&["artifacts", "last", "d.json"]).out, r#"{"c":"of a"}"#, "{point}");
    }
    assert!(deaths > 10, "{deaths}");
}

#[test]
fn a_name_and_a_path_from_a_model_lead_nowhere_else() {
    let place = Place::new();
    let file = place.file(
        "evil.yaml",
        r#"wonder: 1
name: evil
input_schema: {type: object, properties: {path: {type: string}, name: {type: string}}}
nodes:
  keep: {artifact_write: {name: "{{ input.name }}", path: "{{ input.path }}"}}
"#,
    );
    let secret = place.dir.path().parent().unwrap().join("outside-of-the-place");
    std::os::unix::fs::symlink("/etc/passwd", place.dir.path().join("link")).unwrap();
    place.file("fine", "fine");
    for (name, path) in [
        ("x", "/etc/passwd"),
        ("x", "link"),
        ("x", "../../../../../../etc/passwd"),
        ("x", "home/wonder.db"),
        ("x", secret.to_str().unwrap()),
        ("../../../x", "fine"),
        ("/tmp/x", "fine"),
    ] {
        let input = serde_json::json!({"name": name, "path": path}).to_string();
        let ran = place.run(&["run", &file, "--input", &input]);
        assert_eq!(ran.code, Some(1), "{name} {path}: {ran:#?}");
        assert_eq!(place.json(&["artifacts", "last"], 0), serde_json::json!([]));
    }
    assert!(files(&place).is_empty());
}

#[test]
fn a_saved_file_is_what_was_kept_and_a_file_that_is_there_stays() {
    let place = Place::new();
    let big: Vec<u8> = (0..3 << 20).map(|n: u32| (n % 251) as u8).collect();
    std::fs::write(place.dir.path().join("big"), &big).unwrap();
    let file = place.file(
        "big.yaml",
        "wonder: 1\nname: big\nnodes: {keep: {artifact_write: {name: plots/big, path: big}}}\n",
    );
    assert_eq!(place.run(&["run", &file]).code, Some(0));
    let saved = place.dir.path().join("saved");
    let save = |to: &Path| place.run(&["artifacts", "last", "plots/big", "--to", to.to_str().unwrap()]);
    assert_eq!(save(&saved).code, Some(0));
    assert!(std::fs::read(&saved).unwrap() == big, "in pieces and whole again");
    let again = save(&saved);
    assert_eq!(again.code, Some(2), "{again:#?}");
    let piped = place.command(&["artifacts", "last", "plots/big"]).output().unwrap();
    assert!(piped.stdout == big, "byte for byte");
}
