//! Short forms and what they stand for.

use wonder_spec::{Definition, expand, from_stored, read_everything as read};

use crate::files;

#[test]
fn good_files_read_and_their_stored_form_reads_back() {
    for (name, text) in files("good") {
        let reading = read(&text, &name).unwrap_or_else(|problems| panic!("{}", problems.render(false)));
        assert_eq!(reading.bundles.len(), reading.graphs.len());
        for bundle in &reading.bundles {
            let stored = expand(bundle);
            let back = from_stored(&stored).unwrap();
            assert_eq!(expand(&back), stored, "{name}");
            assert_eq!(from_stored(&expand(&back)).unwrap(), back, "{name}");
        }
        let snapshot = name.replace('.', "_");
        let all: String = reading.bundles.iter().map(|bundle| expand(bundle)).collect();
        insta::assert_snapshot!(format!("{snapshot}_expanded"), all);
        insta::assert_snapshot!(format!("{snapshot}_warnings"), reading.warnings.render(false));
        insta::assert_snapshot!(format!("{snapshot}_mermaid"), wonder_spec::mermaid(&reading.graphs[0]));
        insta::assert_snapshot!(format!("{snapshot}_dot"), wonder_spec::dot(&reading.graphs[0]));
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
