//! Every scenario file that exists, on the simulator and on the embedded host with a real database: the same
//! events, refusals, outputs, failures, costs, gates and views. `WONDER_CASE` picks cases by a part of their
//! name.

mod compare;
mod embedded;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;
use wonder_core::graph::Graph;
use wonder_sim::checks::guarded;
use wonder_sim::scenario::{Case, Scenario};
use wonder_sim::world::World;

use embedded::Embedded;

/// Files at a time: two cores are what CI has.
const SHARES: usize = 2;

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
    if learns(case) {
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

/// Whether a fork may start runs of workflows of which the first run has taught something: a database keeps
/// durations for the ready order of dags and for adaptive timeouts. The simulator has no past.
fn learns(case: &Case) -> bool {
    let mut graphs = case.library.values().map(|definition| &definition.graph);
    let uses = |graph: &Arc<Graph>| graph.is_dag() || graph.nodes.iter().any(|node| node.timeout_adaptive);
    case.library.len() > 1 && graphs.any(uses)
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
