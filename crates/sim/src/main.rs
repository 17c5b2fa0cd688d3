//! `wonder-sim`: one seed in full, many seeds in short, scenario files, or growth.

mod scale;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use wonder_sim::monitor::Walked;
use wonder_sim::scenario::Scenario;
use wonder_sim::{checks, seeds};

const USAGE: &str = "\
usage: wonder-sim --seed N               one seed: its workflow, its trace, the verdict
       wonder-sim --seeds N [--from M]   many seeds: a summary and the lifecycle report
       wonder-sim scenario FILE...       scenario files: traces and mismatches
       wonder-sim scale [SIZE_MAX]       what a node costs as runs grow
";

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = given.iter().map(String::as_str).collect();
    let passed = match arguments.as_slice() {
        ["--seed", seed] => seed.parse().ok().map(one_seed),
        ["--seeds", count] => count.parse().ok().map(|count| many_seeds(0, count)),
        ["--seeds", count, "--from", from] => {
            count.parse().ok().zip(from.parse().ok()).map(|(count, from)| many_seeds(from, count))
        }
        ["scenario", files @ ..] if !files.is_empty() => Some(scenarios(files)),
        ["scale"] => Some(scale::run(usize::MAX)),
        ["scale", most] => most.parse().ok().map(scale::run),
        _ => None,
    };
    match passed {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn one_seed(seed: u64) -> bool {
    let verdict = seeds::run(seed);
    println!("{}\n{}", verdict.text, verdict.trace);
    verdict.wrong.iter().for_each(|what| println!("WRONG {what}"));
    println!(
        "seed {seed}: {}, {} events, {}",
        verdict.status,
        verdict.events,
        verdict_text(verdict.wrong.is_empty())
    );
    verdict.wrong.is_empty()
}

fn many_seeds(from: u64, count: u64) -> bool {
    let mut walked = Walked::default();
    let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
    let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut events = 0;
    for seed in from..from + count {
        let verdict = seeds::run(seed);
        walked.add(&verdict.walked);
        events += verdict.events;
        *statuses.entry(verdict.status).or_default() += 1;
        if let Some(what) = verdict.wrong.first() {
            println!("seed {seed}: {what}");
            kinds.entry(kind_of_mistake(what)).or_default().push(seed);
        }
    }
    println!("{}", walked.report());
    let statuses: Vec<String> = statuses.iter().map(|(status, times)| format!("{times} {status}")).collect();
    println!("{count} seeds from {from}: {}; {events} events", statuses.join(", "));
    let missing = walked.missing();
    missing.iter().for_each(|(from, to)| println!("never walked: {from} → {to}"));
    kinds
        .iter()
        .for_each(|(kind, seeds)| println!("{:>5}  {kind}  {:?}", seeds.len(), &seeds[..seeds.len().min(8)]));
    println!("{} seeds failed", kinds.values().map(Vec::len).sum::<usize>());
    kinds.is_empty() && missing.is_empty()
}

/// The first line of what is wrong without its numbers: mistakes of one kind look alike.
fn kind_of_mistake(what: &str) -> String {
    let line = what.lines().next().unwrap_or_default();
    let line: String = line.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    line.replace("##", "#").replace("##", "#").chars().take(110).collect()
}

fn scenarios(files: &[&str]) -> bool {
    let results = files.iter().map(|file| match Scenario::load(Path::new(file)) {
        Err(problem) => {
            println!("{problem}");
            false
        }
        Ok(scenario) => scenario.cases.iter().fold(true, |well, case| {
            let world = case.run();
            let mut wrong = case.mismatches(&world);
            wrong.extend(checks::all(&world, checks::Effort::SCENARIO));
            println!("{} ({})\n{}", case.name, verdict_text(wrong.is_empty()), world.trace());
            wrong.iter().for_each(|what| println!("WRONG {what}"));
            wrong.is_empty() && well
        }),
    });
    // Every file is run, whatever came of those before it.
    results.filter(|well| !well).count() == 0
}

fn verdict_text(well: bool) -> &'static str {
    if well { "as it should be" } else { "NOT as it should be" }
}
