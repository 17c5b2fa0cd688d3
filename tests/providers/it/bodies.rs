//! What was sent, and the golden bodies of the codecs, against the types of the providers' own Python libraries: every
//! field known, every value of its type.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value as Json;

use crate::page::root;
use crate::raw::wire_of;

pub(crate) fn fit_the_types_of_the_providers(sent: &[Json]) {
    let folder = root().join("target").join(format!("provider-bodies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("target can be written to");
    // What is tried again is sent again.
    let mut files = BTreeMap::new();
    for request in sent {
        let path = request["path"].as_str().expect("a path");
        let wire = wire_of(path).unwrap_or_else(|| panic!("{path} is of no format"));
        let name: Vec<&str> = path.split('/').skip(1).take(2).collect();
        files.insert(format!("{}.{wire}.json", name.join("-")), request.to_string());
    }
    for (name, text) in &files {
        std::fs::write(folder.join(name), text).expect("target can be written to");
    }
    let python = root().join("target/model-bodies/bin/python");
    assert!(python.exists(), "{} is not there: `make tools` installs it", python.display());
    let golden = root().join("crates/models/tests/it/golden");
    let count = files.len() + std::fs::read_dir(&golden).expect("golden bodies").count();
    let mut command = Command::new(python);
    command.arg("-B").arg(root().join("scripts/check-model-bodies.py")).arg(&folder).arg(&golden);
    let output = command.output().expect("python runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong: Vec<&str> = said.lines().filter(|line| !line.starts_with("ok ")).collect();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{error}", wrong.join("\n"));
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), count, "{said}");
    std::fs::remove_dir_all(&folder).expect("it was there");
}
