//! What the documentation shows can be read: the README's workflow, and every example.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn reads(text: &str, name: &str) {
    if let Err(problems) = crate::read_here(text, name) {
        panic!("{}", problems.render(false));
    }
}

#[test]
fn the_workflow_in_the_readme_reads() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let blocks: Vec<&str> =
        readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty(), "the README shows a workflow");
    blocks.iter().for_each(|block| reads(block, "README.md"));
}

#[test]
fn every_example_reads() {
    let mut seen = 0;
    for dir in ["examples", "examples/patterns"] {
        for entry in std::fs::read_dir(root().join(dir)).expect("examples/ is there") {
            let path = entry.expect("an entry of examples/").path();
            let name = path.to_string_lossy().into_owned();
            let aside = [".scenario.yaml", ".test.yaml"].iter().any(|kind| name.ends_with(kind));
            if name.ends_with(".yaml") && !aside {
                reads(&std::fs::read_to_string(&path).expect("an example"), &name);
                seen += 1;
            }
        }
    }
    assert!(seen >= 40, "only {seen} examples were found");
}
