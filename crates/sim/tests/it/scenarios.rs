//! Every scenario file, every case of it, with all checks. `WONDER_BLESS=1` rewrites the traces,
//! `WONDER_BLESS=gates` only those of files with that in their name; `WONDER_CASE` picks cases likewise.

use std::path::{Path, PathBuf};

use wonder_sim::checks::{self, Effort};
use wonder_sim::scenario::{self, Case, Scenario};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_examples_run_as_they_say() {
    run_all(&root().join("examples"));
}

#[test]
fn every_area_of_the_specification_runs_as_it_says() {
    run_all(&root().join("crates/sim/scenarios"));
}

fn run_all(folder: &Path) {
    let mut files = Vec::new();
    find(folder, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no scenario under {}", folder.display());
    let only = std::env::var("WONDER_CASE").ok();
    let blessed = std::env::var("WONDER_BLESS").ok();
    let is_blessed = |file: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        blessed.as_ref().is_some_and(|wanted| wanted == "1" || name.contains(wanted.as_str()))
    };
    let mut wrong = Vec::new();
    for file in files {
        match Scenario::load(&file) {
            Err(problem) => wrong.push(problem),
            Ok(scenario) if is_blessed(&file) => wrong.extend(bless(&scenario)),
            Ok(_) if blessed.is_some() => {}
            Ok(scenario) => {
                let wanted =
                    |case: &&Case| only.as_ref().is_none_or(|only| case.name.contains(only.as_str()));
                for case in scenario.cases.iter().filter(wanted) {
                    let place = format!("{}: {}", file.display(), case.name);
                    wrong.extend(check(case).into_iter().map(|what| format!("{place}\n{what}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} mistakes\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn check(case: &Case) -> Vec<String> {
    let world = match checks::guarded(|| case.run()) {
        Ok(world) => world,
        Err(panic) => return vec![panic],
    };
    let wrong = case.mismatches(&world);
    if wrong.is_empty() { checks::all(&world, Effort::SCENARIO) } else { wrong }
}

fn bless(scenario: &Scenario) -> Option<String> {
    let traces: Vec<String> = scenario
        .cases
        .iter()
        .map(|case| checks::guarded(|| case.run().trace()).unwrap_or_else(|panic| panic))
        .collect();
    match scenario::bless(scenario, &traces) {
        Err(problem) => Some(problem),
        Ok(text) if text == scenario.text => None,
        Ok(text) => std::fs::write(&scenario.path, text).err().map(|error| error.to_string()),
    }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, files);
        } else if path.to_string_lossy().ends_with(".scenario.yaml") {
            files.push(path);
        }
    }
}
