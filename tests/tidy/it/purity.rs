//! The core stays pure because these lists are short and a machine reads them.

use std::collections::BTreeSet;

use crate::{read, root};

/// Everything the crates that decide may lean on, and why. A new line here is a decision: write an ADR.
const MAY_USE: [(&str, &[(&str, &str)]); 4] = [
    (
        "lang",
        &[
            ("cel", "parses expressions"),
            ("jiff", "writes and reads times, without its clock"),
            ("jsonschema", "checks values, without fetching"),
            ("minijinja", "parses templates"),
            ("regex", "matches, in linear time"),
            ("serde", "definitions are stored"),
            ("serde_json", "and JSON is their text"),
        ],
    ),
    ("graph", &[("serde", "what a run adds to its graph is stored"), ("wonder-lang", "what it is made of")]),
    (
        "core",
        &[
            ("serde", "events are our file format"),
            ("serde_json", "and JSON is its text"),
            ("wonder-graph", "what a run runs on"),
            ("wonder-lang", "what it speaks"),
        ],
    ),
    (
        "models",
        &[
            ("jiff", "reads the dates of headers, without its clock"),
            ("serde", "arguments of tools are read strictly"),
            ("serde_json", "and JSON is what providers speak"),
            ("wonder-lang", "what it translates from and to"),
        ],
    ),
];

/// Who may know whom.
const MAY_KNOW: [(&str, &[&str]); 16] = [
    ("blobs", &[]),
    ("cassette", &["wonder-core"]),
    ("lang", &[]),
    ("graph", &["wonder-lang"]),
    ("core", &["wonder-graph", "wonder-lang"]),
    ("models", &["wonder-lang"]),
    ("spec", &["wonder-core"]),
    ("sim", &["wonder-core", "wonder-engine", "wonder-spec"]),
    ("engine", &["wonder-core"]),
    ("plan", &["wonder-core"]),
    ("artifacts", &[]),
    ("actions", &["wonder-artifacts", "wonder-cassette", "wonder-core", "wonder-models"]),
    ("trial", &["wonder-core", "wonder-models", "wonder-sim", "wonder-spec"]),
    ("host", &["wonder-actions", "wonder-artifacts", "wonder-blobs", "wonder-core", "wonder-engine"]),
    ("server", &["wonder-core", "wonder-engine", "wonder-spec"]),
    (
        "cli",
        &[
            "wonder-actions",
            "wonder-cassette",
            "wonder-core",
            "wonder-engine",
            "wonder-host",
            "wonder-plan",
            "wonder-server",
            "wonder-spec",
            "wonder-trial",
        ],
    ),
];

/// The same for tests that are crates of their own: the checker shares no code with what it checks, only the
/// conformance suite knows both the simulator and a host, and the model server meets the codecs in its tests alone.
const TESTS_MAY_KNOW: [(&str, &[&str]); 4] = [
    ("checker", &[]),
    ("conformance", &["wonder-core", "wonder-engine", "wonder-host", "wonder-sim"]),
    ("modelserver", &["wonder-spec", "wonder-lang", "wonder-models"]),
    ("providers", &["wonder-actions", "wonder-core", "wonder-models", "wonder-spec"]),
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
fn what_decides_depends_on_nothing_that_acts() {
    for (name, allowed) in MAY_USE {
        let manifest = read(&root().join(format!("crates/{name}/Cargo.toml")));
        let allowed: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
        assert_eq!(keys(&manifest, "dependencies"), allowed, "{name}");
    }
}

/// What the core must not do, its language and its graph must not do either.
#[test]
fn the_same_is_banned_in_all_that_decides() {
    let banned = read(&root().join("crates/core/clippy.toml"));
    for name in ["lang", "graph", "models", "cassette"] {
        assert_eq!(read(&root().join(format!("crates/{name}/clippy.toml"))), banned, "{name}");
    }
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
    for (name, known) in TESTS_MAY_KNOW {
        let manifest = read(&root().join(format!("tests/{name}/Cargo.toml")));
        let sections = ["dependencies", "dev-dependencies"];
        let wonders: Vec<String> = sections
            .into_iter()
            .flat_map(|section| keys(&manifest, section))
            .filter(|key| key.starts_with("wonder-"))
            .collect();
        assert_eq!(wonders, known, "dependencies of tests/{name}");
    }
    let listed: Vec<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates/ is there") {
        let name = entry.expect("an entry of crates/").file_name();
        assert!(listed.contains(&&*name.to_string_lossy()), "{name:?} is not in the table of who knows whom");
    }
}
