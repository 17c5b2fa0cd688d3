//! Every example says how it is run and how it ends; it is run so, and has to end so.

use crate::place::{Place, root};

/// A line `# Run it: wonder run FILE ARGUMENTS   # exit N`.
struct Promise {
    file: String,
    arguments: Vec<String>,
    code: i32,
}

fn promises() -> Vec<Promise> {
    let mut all = Vec::new();
    for folder in ["examples", "examples/patterns"] {
        let folder = root().join(folder);
        let mut files: Vec<_> = std::fs::read_dir(&folder).expect("examples").flatten().collect();
        files.sort_by_key(|entry| entry.path());
        for entry in files {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            let aside = [".scenario.yaml", ".test.yaml"].iter().any(|kind| name.ends_with(kind));
            if !name.ends_with(".yaml") || aside {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("an example");
            let line = text.lines().find_map(|line| line.strip_prefix("# Run it: wonder run "));
            let line = line.unwrap_or_else(|| panic!("{name} does not say how it is run"));
            let (command, code) =
                line.split_once("# exit ").unwrap_or_else(|| panic!("{name}: no exit code"));
            let code = code.split([':', ' ']).next().and_then(|code| code.parse().ok());
            let mut words = words(command);
            let file = words.remove(0);
            assert!(name.ends_with(&file), "{name} names {file}");
            all.push(Promise { file: name, arguments: words, code: code.expect("a number") });
        }
    }
    all
}

/// As a shell splits them, as far as examples need it: single quotes keep a word together.
fn words(command: &str) -> Vec<String> {
    let quoted = command.split('\'').enumerate();
    quoted
        .flat_map(|(index, part)| {
            let whole = index % 2 == 1;
            let split: Vec<&str> = if whole { vec![part] } else { part.split_whitespace().collect() };
            split.into_iter().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_example_ends_as_it_says() {
    let place = Place::new();
    let children: Vec<_> = promises()
        .into_iter()
        .map(|promise| {
            let mut arguments = vec!["run", &promise.file];
            arguments.extend(promise.arguments.iter().map(String::as_str));
            let child = place.spawn(&arguments);
            (promise, child)
        })
        .collect();
    let mut wrong = Vec::new();
    for (promise, child) in children {
        let ended = crate::place::ended(child.wait_with_output().expect("it ends"));
        if ended.code != Some(promise.code) {
            wrong.push(format!("{} promises {}: {ended:#?}", promise.file, promise.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_release_waits_for_its_answer() {
    let place = Place::new();
    let file = root().join("examples/release.yaml");
    let waiting = place.json(&["run", &file.to_string_lossy(), "--input", "version=1.4.0"], 3);
    assert_eq!(waiting["status"], "waiting");
    let done = place.json(&["answer", "last", "approve=true"], 0);
    assert_eq!((&done["status"], &done["output"]["published"]), (&"completed".into(), &true.into()));
}

/// Without a key, a network or a wait: agents and all.
#[test]
fn the_tests_beside_examples_hold() {
    let place = Place::new();
    let told = place.json(&["test", &root().join("examples").to_string_lossy()], 0);
    assert_eq!(told["failed"], 0, "{told:#}");
    let file = |name: &str| format!("agents/{name}.test.yaml");
    for name in [
        "judge_panel",
        "extraction",
        "planner",
        "research",
        "code_edit",
        "release",
        "team",
        "long_conversation",
    ] {
        let files = told["files"].as_array().expect("files");
        let is_it =
            |tested: &&serde_json::Value| tested["file"].as_str().is_some_and(|at| at.ends_with(&file(name)));
        let cases = files.iter().find(is_it).and_then(|tested| tested["cases"].as_array());
        assert!(cases.is_some_and(|cases| cases.len() > 2), "{name} is not tested");
    }
}
