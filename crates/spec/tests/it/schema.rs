//! The published JSON Schema against the same files.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::files;

fn validator() -> jsonschema::Validator {
    jsonschema::options().build(&wonder_spec::schema()).unwrap()
}

fn complaints(validator: &jsonschema::Validator, document: &Json) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{} at {}", error, error.instance_path())).collect()
}

#[test]
fn it_is_a_schema_and_says_what_everything_means() {
    let schema = wonder_spec::schema();
    jsonschema::meta::validate(&schema).unwrap();
    for (name, shape) in schema["$defs"].as_object().unwrap() {
        for (key, property) in shape["properties"].as_object().unwrap() {
            assert!(
                property["description"].as_str().is_some_and(|about| about.ends_with('.')),
                "{name}.{key}"
            );
        }
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap());
}

#[test]
fn good_files_and_examples_fit_it() {
    let validator = validator();
    let mut all = files("good");
    collect(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples"), &mut all);
    for (name, text) in all {
        for document in wonder_spec::documents(&text, &name).unwrap() {
            assert_eq!(complaints(&validator, &document), Vec::<String>::new(), "{name}");
        }
    }
}

fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "json") {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.lines().any(|line| line.starts_with("wonder:") || line.contains("\"wonder\"")) {
                found.push((path.display().to_string(), text));
            }
        }
    }
}

#[test]
fn examples_read_without_errors() {
    let mut all = Vec::new();
    collect(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples"), &mut all);
    for (name, text) in all {
        if let Err(problems) = crate::read_here(&text, &name) {
            panic!("{}", problems.render(false));
        }
    }
}

#[test]
fn what_the_reader_refuses_by_shape_it_refuses_too() {
    let validator = validator();
    for wrong in [
        "wonder: 1\nname: x\nnodes: {a: {mok: {}}}\n",
        "wonder: 1\nname: x\nnodes: {a: {}}\n",
        "wonder: 1\nname: x\nnodes: {a: {mock: {}, task: t}}\n",
        "wonder: 1\nname: x\nnodes: {a: {mock: {}, timeout: 5}}\n",
        "wonder: 1\nname: x\nnodes: {a: {mock: {}, fan_out: al}}\n",
        "wonder: 1\nname: x\nnodes: {a: {mock: {}, next: [{priority: 1}]}}\n",
        "wonder: 1\nname: x\nnodes: {a: {mock: {error: timout}}}\n",
        "wonder: 1\nname: x\nnodes: {a: {mock: {}, budget: {}}}\n",
        "wonder: 2\nname: x\nnodes: {a: {mock: {}}}\n",
        "wonder: 1\nnodes: {a: {mock: {}}}\n",
    ] {
        assert!(wonder_spec::read(wrong, "x.yaml").is_err(), "{wrong}");
        let document = &wonder_spec::documents(wrong, "x.yaml").unwrap()[0];
        assert!(!validator.is_valid(document), "{wrong}");
    }
}
