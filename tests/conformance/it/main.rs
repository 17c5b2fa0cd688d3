//! Every scenario file that exists, on the simulator and on the embedded host with a real database: the same
//! events in the same order, refusals, outputs, failures, costs, gates and views. `WONDER_CASE` picks cases by a
//! part of their name; `WONDER_SEEDS` says how many random workflows are tried after them.

mod compare;
mod embedded;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;
use wonder_core::graph::Graph;
use wonder_sim::checks::guarded;
use wonder_sim::scenario::{Case, Scenario};
use wonder_sim::seeds;
use wonder_sim::world::{Library, Setting, World};

use embedded::Embedded;

/// Files at a time: two cores are what CI has.
const SHARES: usize = 2;
/// Random workflows.
const SEEDS: u64 = 100;

#[test]
fn every_scenario_comes_out_the_same_on_the_embedded_host() {
    let files = files();
    assert!(files.len() > 50, "only {} scenario files were found", files.len());
    let only = std::env::var("WONDER_CASE").ok();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let shares: Vec<_> = (0..SHARES)
            .map(|share| {
                let (files, only) = (&files, only.as_deref());
                scope.spawn(move || {
                    let runtime = Arc::new(Runtime::new().expect("a runtime"));
                    let own = files.iter().skip(share).step_by(SHARES);
                    own.flat_map(|file| check(file, only, &runtime)).collect::<Vec<String>>()
                })
            })
            .collect();
        shares.into_iter().flat_map(|share| share.join().expect("what breaks is caught")).collect()
    });
    assert!(wrong.is_empty(), "{} cases differ\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Random workflows find what nobody thought of; a seed that differs here is told as `--seed N` tells it.
#[test]
fn random_workflows_come_out_the_same_on_the_embedded_host() {
    let seeds = std::env::var("WONDER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let differs = |seed: u64| {
        let found = guarded(|| seed_differences(seed, &runtime)).unwrap_or_else(|panic| vec![panic]);
        (!found.is_empty()).then(|| format!("seed {seed}\n{}", found.join("\n")))
    };
    let wrong: Vec<String> = (0..seeds).filter_map(differs).collect();
    assert!(wrong.is_empty(), "{} of {seeds} seeds differ\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn seed_differences(seed: u64, runtime: &Arc<Runtime>) -> Vec<String> {
    let setting = match seeds::setting(seed) {
        Ok(setting) => Setting { shuffle: None, ..setting },
        Err(problem) => return vec![problem],
    };
    if learns(&setting.library) {
        return Vec::new();
    }
    let mut simulated = World::new(setting.clone());
    simulated.run_on();
    let mut embedded = World::on(Embedded::new(runtime.clone()), setting);
    embedded.run_on();
    compare::differences(&simulated, &mut embedded)
}

fn check(file: &Path, only: Option<&str>, runtime: &Arc<Runtime>) -> Vec<String> {
    let scenario = match Scenario::load(file) {
        Ok(scenario) => scenario,
        Err(problem) => return vec![problem],
    };
    let wanted = |case: &&Case| only.is_none_or(|only| case.name.contains(only));
    let differs = |case: &Case| {
        let found = guarded(|| differences(case, runtime)).unwrap_or_else(|panic| vec![panic]);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        (!found.is_empty()).then(|| format!("{name}: {}\n{}", case.name, found.join("\n")))
    };
    scenario.cases.iter().filter(wanted).filter_map(differs).collect()
}

/// The case as it is, and its run forked at one of the nodes it has been to.
fn differences(case: &Case, runtime: &Arc<Runtime>) -> Vec<String> {
    let simulated = case.run();
    let mut embedded = World::on(Embedded::new(runtime.clone()), case.setting());
    embedded.run_on();
    let found = compare::differences(&simulated, &mut embedded);
    if learns(&case.library) {
        return found;
    }
    let nodes = simulated.visited();
    // Another one in each case, so that all sorts are tried.
    let Some(node) = nodes.get(case.mark.line % nodes.len().max(1)).filter(|_| found.is_empty()) else {
        return found;
    };
    let found = match (simulated.forked(node), embedded.forked(node)) {
        (Ok(mut simulated), Ok(mut embedded)) => {
            simulated.run_on();
            embedded.run_on();
            compare::differences(&simulated, &mut embedded)
        }
        (Err(expected), Err(why)) if expected == why => Vec::new(),
        (Err(expected), Err(why)) => vec![format!("refused: {why}\nand not: {expected}")],
        (Ok(_), Err(why)) => vec![format!("refused: {why}")],
        (Err(expected), Ok(_)) => vec![format!("not refused: {expected}")],
    };
    found.into_iter().map(|what| format!("forked at {node}: {what}")).collect()
}

/// Whether runs may be started of workflows of which an earlier run has taught something: a database keeps
/// durations for the ready order of dags and for adaptive timeouts. The simulator has no past.
fn learns(library: &Library) -> bool {
    let mut graphs = library.values().map(|definition| &definition.graph);
    let uses = |graph: &Arc<Graph>| graph.is_dag() || graph.nodes.iter().any(|node| node.timeout_adaptive);
    library.len() > 1 && graphs.any(uses)
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    find(&root.join("examples"), &mut files);
    find(&root.join("crates/sim/scenarios"), &mut files);
    files.sort();
    files
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
