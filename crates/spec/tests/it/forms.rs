//! Short forms and what they stand for.

use std::path::PathBuf;

use serde_json::Value as Json;
use wonder_spec::{Definition, expand, from_stored, read_everything as read, stored};

use crate::files;

#[test]
fn good_files_read_and_their_stored_form_reads_back() {
    for (name, text) in files("good") {
        let reading = read(&text, &name).unwrap_or_else(|problems| panic!("{}", problems.render(false)));
        assert_eq!(reading.bundles.len(), reading.graphs.len());
        for bundle in &reading.bundles {
            let kept = stored(bundle);
            let back = from_stored(&kept).unwrap();
            assert_eq!(stored(&back), kept, "{name}");
            assert_eq!(from_stored(&stored(&back)).unwrap(), back, "{name}");
        }
        let snapshot = name.replace('.', "_");
        let all: String = reading.bundles.iter().map(|bundle| expand(bundle)).collect();
        insta::assert_snapshot!(format!("{snapshot}_expanded"), all);
        insta::assert_snapshot!(format!("{snapshot}_warnings"), reading.warnings.render(false));
        insta::assert_snapshot!(format!("{snapshot}_mermaid"), wonder_spec::mermaid(&reading.graphs[0]));
        insta::assert_snapshot!(format!("{snapshot}_dot"), wonder_spec::dot(&reading.graphs[0]));
    }
}

/// Every workflow in the examples and the scenarios, as text.
fn everything_written() -> Vec<(String, String)> {
    fn inside(name: &str, json: &Json, found: &mut Vec<(String, String)>) {
        match json {
            Json::String(text) if text.contains("wonder: 1") => found.push((name.to_owned(), text.clone())),
            Json::Array(items) => items.iter().for_each(|item| inside(name, item, found)),
            Json::Object(map) => map.values().for_each(|item| inside(name, item, found)),
            _ => {}
        }
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("examples"), root.join("crates/sim/scenarios")];
    let mut found = files("good");
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".scenario.yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let documents = wonder_spec::documents(&text, &name).unwrap();
                documents.iter().for_each(|document| inside(&name, document, &mut found));
            } else if name.ends_with(".yaml") {
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn what_expand_prints_reads_back_as_the_same() {
    let mut workflows = 0;
    for (name, text) in everything_written() {
        // A scenario may be about a file that is refused, or about several files.
        let Ok(reading) = read(&text, &name) else { continue };
        let printed: Vec<String> = reading.bundles.iter().map(|bundle| expand(bundle)).collect();
        let printed = printed.join("---\n");
        let again = read(&printed, &name)
            .unwrap_or_else(|problems| panic!("{name}\n{printed}\n{}", problems.render(false)));
        let kept =
            |bundles: &[std::sync::Arc<_>]| bundles.iter().map(|bundle| stored(bundle)).collect::<Vec<_>>();
        assert_eq!(kept(&again.bundles), kept(&reading.bundles), "{name}\n{printed}");
        workflows += reading.bundles.len();
    }
    assert!(workflows > 150, "only {workflows} workflows were found");
}

#[test]
fn an_action_may_be_written_as_it_is_stored() {
    let short = "wonder: 1\nname: x\nnodes: {a: {task: t}}\ntasks: {t: {steps: [{ref: s, action: greet}]}}\nactions:\n  greet: {shell: {command: echo hi}, execution: {timeout_ms: 5000}, effects: none, requires: {type: object}}\n";
    let long = short.replace("shell: {command: echo hi}", "kind: shell, implementation: {command: echo hi}");
    assert_eq!(
        stored(&read(&long, "x.yaml").unwrap().bundles[0]),
        stored(&read(short, "x.yaml").unwrap().bundles[0])
    );
    let document = "wonder: 1\nname: greet\nkind: http_request\nimplementation: {url: https://example.org}\nexecution: {timeout_ms: 5000}\n";
    assert!(matches!(&read(document, "x.yaml").unwrap().definitions[..], [Definition::Action(_)]));
    for (wrong, code) in [
        (long.replace("command: echo", "comand: echo"), "E0020"),
        (long.replace("kind: shell, ", ""), "E0021"),
        (long.replace("kind: shell", "kind: shel"), "E0023"),
        (long.replace("kind: shell, implementation: {command: echo hi}", "kind: shell"), "E0025"),
    ] {
        let found = read(&wrong, "x.yaml").unwrap_err();
        let codes: Vec<&str> = found.iter().map(|problem| problem.code.0).collect();
        assert_eq!(codes, [code], "{}", found.render(false));
    }
}

#[test]
fn a_version_is_there_or_it_is_refused() {
    let text = |named: &str, defined: &str| {
        format!(
            "wonder: 1\nname: x\nnodes: {{a: {{{named}}}}}\ntasks: {{t: {{{defined}steps: [{{ref: s, mock: {{}}}}]}}}}\n"
        )
    };
    for (named, defined) in [
        ("task: t", ""),
        ("task: t", "version: 3, "),
        ("task: t@3", "version: 3, "),
        ("task: t, task_version: 3", "version: 3, "),
    ] {
        read(&text(named, defined), "x.yaml").unwrap_or_else(|p| panic!("{}", p.render(false)));
    }
    let call = |named: &str, head: &str| {
        format!(
            "wonder: 1\nname: x\nnodes: {{a: {{workflow_call: {named}}}}}\n---\nname: y\n{head}nodes: {{a: {{mock: {{}}}}}}\n"
        )
    };
    read(&call("y@2", "version: 2\n"), "x.yaml").unwrap_or_else(|p| panic!("{}", p.render(false)));
    let action = |named: &str| {
        format!(
            "wonder: 1\nname: x\nnodes: {{a: {{steps: [{{{named}}}]}}}}\nactions: {{c: {{mock: {{}}}}}}\n"
        )
    };
    for (text, code) in [
        (text("task: t@7", ""), "E0038"),
        (text("task: t@7", "version: 3, "), "E0038"),
        (text("task: t, task_version: 7", ""), "E0038"),
        (text("task: lib/t@3", "version: 3, "), "E0104"),
        (action("action: c@2"), "E0038"),
        (action("action: c, action_version: 2"), "E0038"),
        (call("y@3", "version: 2\n"), "E0038"),
        (call("y@3", ""), "E0038"),
        (call("lib/y", ""), "E0034"),
    ] {
        let found = wonder_spec::read(&text, "x.yaml").err().unwrap_or_else(|| panic!("accepted: {text}"));
        let codes: Vec<&str> = found.iter().map(|problem| problem.code.0).collect();
        assert_eq!(codes, [code], "{}", found.render(false));
    }
}

#[test]
fn json_strings_mean_what_they_mean_in_json() {
    let (name, text) = files("good").into_iter().find(|(name, _)| name == "plain.json").unwrap();
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(wonder_spec::documents(&text, &name).unwrap(), [expected]);
}

#[test]
fn documents_are_kept_in_order_and_checked_even_if_nobody_names_them() {
    let (name, text) = files("good").into_iter().find(|(name, _)| name == "dag_forms.yaml").unwrap();
    let reading = read(&text, &name).unwrap();
    let kinds: Vec<&str> = reading
        .definitions
        .iter()
        .map(|definition| match definition {
            Definition::Workflow(_) => "workflow",
            Definition::Task(..) => "task",
            Definition::Action(_) => "action",
            Definition::Prompt(_) => "prompt",
            Definition::Model(_) => "model",
            Definition::ArtifactType(_) => "artifact type",
        })
        .collect();
    assert_eq!(kinds, ["workflow", "task", "action", "prompt", "workflow"]);
    let text = "wonder: 1\nname: lonely\nsteps: [{ref: a, assert: \"1 +\"}]\n---\nname: other\nmock: {output: \"{{ x\"}\n";
    let found = read(text, "x.yaml").unwrap_err();
    let codes: Vec<&str> = found.iter().map(|problem| problem.code.0).collect();
    assert_eq!(codes, ["E0140", "E0142"]);
}

#[test]
fn names_come_from_the_workflow_then_the_file_then_the_library() {
    let library = {
        let text = "wonder: 1\nname: far\nsteps: [{ref: a, mock: {output: far}}]\n";
        let reading = read(text, "library.yaml").unwrap();
        let mut library = wonder_spec::Library::default();
        for definition in reading.definitions {
            if let Definition::Task(task, actions) = definition {
                library.tasks.insert(task.name.text.clone(), std::sync::Arc::new(task));
                library.actions.extend(actions);
            }
        }
        library
    };
    let text = "wonder: 1\nname: x\nnodes: {a: {task: far}}\n";
    assert!(read(text, "x.yaml").unwrap_err().render(false).contains("E0104"));
    let reading = wonder_spec::read_with(text, "x.yaml", &library).unwrap();
    let names: Vec<&str> = reading.bundles[0].actions.keys().map(|name| &**name).collect();
    assert_eq!(names, ["task:far/a"]);
}
