//! The core stays pure because these lists are short and a machine reads them.

use std::collections::BTreeSet;

use crate::{read, root};

/// Everything the core may lean on, and why. A new line here is a decision: write an ADR.
const CORE_MAY_USE: [(&str, &str); 7] = [
    ("cel", "parses expressions"),
    ("jiff", "writes and reads times, without its clock"),
    ("jsonschema", "checks values, without fetching"),
    ("minijinja", "fills templates"),
    ("regex", "matches, in linear time"),
    ("serde", "events are our file format"),
    ("serde_json", "and JSON is its text"),
];

/// Who may know whom.
const MAY_KNOW: [(&str, &[&str]); 8] = [
    ("blobs", &[]),
    ("core", &[]),
    ("spec", &["wonder-core"]),
    ("sim", &["wonder-core", "wonder-engine", "wonder-spec"]),
    ("engine", &["wonder-core"]),
    ("actions", &["wonder-core"]),
    ("host", &["wonder-actions", "wonder-blobs", "wonder-core", "wonder-engine"]),
    ("cli", &["wonder-actions", "wonder-core", "wonder-engine", "wonder-host", "wonder-spec"]),
];

/// What acts; none of it may be in the tree of a crate that only decides or reads.
const ACTS: [&str; 6] = ["tokio", "reqwest", "rusqlite", "hyper", "mio", "rustix"];

/// The keys of one section of a Cargo.toml.
fn keys(manifest: &str, section: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| *line != format!("[{section}]")).skip(1);
    let entries = lines.take_while(|line| !line.starts_with('['));
    entries
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_core_depends_on_nothing_that_acts() {
    let manifest = read(&root().join("crates/core/Cargo.toml"));
    let allowed: Vec<&str> = CORE_MAY_USE.iter().map(|(name, _)| *name).collect();
    assert_eq!(keys(&manifest, "dependencies"), allowed);
}

#[test]
fn what_the_core_leans_on_cannot_reach_out() {
    let workspace = read(&root().join("Cargo.toml"));
    for name in ["cel", "jiff", "jsonschema", "minijinja"] {
        let line = workspace
            .lines()
            .find(|line| line.starts_with(&format!("{name} =")))
            .expect("a workspace dependency");
        assert!(
            line.contains("default-features = false"),
            "{name}: defaults bring clocks and fetching\n{line}"
        );
        for feature in ["chrono", "clock", "resolve", "loader", "tzdb", "std\""] {
            assert!(!line.contains(feature), "{name} must not have {feature}\n{line}");
        }
    }
    let lock = read(&root().join("Cargo.lock"));
    let tree = tree_of("wonder-core", &lock);
    assert!(tree.contains("cel") && tree.contains("serde_json"), "the lockfile was not understood: {tree:?}");
    for name in ACTS {
        assert!(!tree.contains(name), "{name} is in the tree of the core, which must not act");
    }
}

/// Every package that one leans on, directly or not, by the lockfile.
fn tree_of(package: &str, lock: &str) -> BTreeSet<String> {
    let needs = |name: &str| -> Vec<String> {
        let of = lock.split("[[package]]").filter(|part| part.contains(&format!("name = \"{name}\"\n")));
        let lists = of.filter_map(|part| part.split_once("dependencies = [")).map(|(_, list)| list);
        let names = lists.flat_map(|list| list.lines().take_while(|line| *line != "]"));
        names
            .filter_map(|line| line.trim().trim_matches([',', '"']).split(' ').next())
            .map(str::to_owned)
            .collect()
    };
    let mut tree = BTreeSet::new();
    let mut open = vec![package.to_owned()];
    while let Some(name) = open.pop() {
        open.extend(needs(&name).into_iter().filter(|need| !need.is_empty() && tree.insert(need.clone())));
    }
    tree
}

#[test]
fn crates_know_only_whom_they_may() {
    for (name, known) in MAY_KNOW {
        let manifest = read(&root().join(format!("crates/{name}/Cargo.toml")));
        let wonders: Vec<String> =
            keys(&manifest, "dependencies").into_iter().filter(|k| k.starts_with("wonder-")).collect();
        assert_eq!(wonders, known, "dependencies of {name}");
    }
    let listed: Vec<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates/ is there") {
        let name = entry.expect("an entry of crates/").file_name();
        assert!(listed.contains(&&*name.to_string_lossy()), "{name:?} is not in the table of who knows whom");
    }
}
