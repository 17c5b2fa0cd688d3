//! What a node costs as a run grows: chains, fan-outs, dags, and chains beside a large state. A bare host, so
//! that the core is measured and not the simulator. The cost per node must stay flat.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wonder_core::Run;
use wonder_core::command::Command;
use wonder_core::cost::Spend;
use wonder_core::event::Event;
use wonder_core::graph::Graph;
use wonder_core::input::{Input, StartRun, TaskOutcome, TaskReport};
use wonder_core::time::Time;
use wonder_core::value::Value;

/// Nodes of a chain beside a large state.
const BESIDE_STATE: usize = 5_000;

pub(crate) fn run(most: usize) -> bool {
    println!(
        "{:28} {:>9} {:>12} {:>12} {:>12} {:>14}",
        "case", "nodes", "build µs/n", "run µs/n", "replay µs/n", "events"
    );
    let mut well = true;
    for size in [100, 1_000, 20_000, 100_000] {
        well &= case("chain", size, most, &chain(size, "state.first"), text_of(100));
    }
    for size in [100, 1_000, 10_000, 100_000] {
        well &= case("fan-out, append", size, most, &fan_out(size), text_of(100));
    }
    for size in [100, 1_000, 20_000] {
        well &= case("dag", size, most, &dag(size), text_of(100));
    }
    for (name, bytes) in
        [("state of 1 KB", 1 << 10), ("state of 1 MB", 1 << 20), ("state of 10 MB", 10 << 20)]
    {
        well &= case(name, BESIDE_STATE, most, &chain(BESIDE_STATE, "state.first"), text_of(bytes));
    }
    for (name, keys) in [("state of 100 keys", 100), ("state of 100 000 keys", 100_000)] {
        let many = Value::map((0..keys).map(|key| (format!("k{key}"), text_of(80))));
        well &= case(name, BESIDE_STATE, most, &chain(BESIDE_STATE, "state"), many);
    }
    well
}

fn case(name: &str, size: usize, most: usize, text: &str, first: Value) -> bool {
    if size > most {
        return true;
    }
    let started = Instant::now();
    let graph = match wonder_sim::scenario::library(text, name) {
        Ok((mut library, first)) => {
            library.remove(&first).expect("the first workflow is in the library").graph
        }
        Err(problem) => {
            println!("{name}: {problem}");
            return false;
        }
    };
    let build = started.elapsed();
    let started = Instant::now();
    let (run, log) = drive(&graph, first);
    let driven = started.elapsed();
    let started = Instant::now();
    let replayed = Run::replay(graph, &log);
    let replay = started.elapsed();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / size as f64;
    let figures = (each(build), each(driven), each(replay));
    println!(
        "{name:28} {size:>9} {:>12.1} {:>12.1} {:>12.1} {:>14}",
        figures.0,
        figures.1,
        figures.2,
        log.len()
    );
    let same = replayed.is_ok_and(|replayed| replayed.state() == run.state());
    if !run.status().is_end() || !same {
        println!("{name}: {} and {}", run.status(), if same { "replayed" } else { "NOT replayed" });
    }
    run.status() == wonder_core::run::RunStatus::Completed && same
}

/// Answers every task at once, first come, first served. `result` is what the first gives.
fn drive(graph: &Arc<Graph>, mut result: Value) -> (Run, Vec<Event>) {
    let mut run = Run::new(graph.clone());
    let mut log = Vec::new();
    let mut now = Time(1_767_225_600_000);
    let mut start = StartRun::new("scale", Value::empty_map());
    start.timeout_ms = Some(u64::MAX / 4);
    start.limits.moves_per_input_max = u32::MAX;
    let mut inputs = VecDeque::from([Input::StartRun(Box::new(start))]);
    let small = Value::map([("text", Value::from("x".repeat(80)))]);
    while let Some(input) = inputs.pop_front() {
        now = now.plus(1);
        let step = match run.handle(input, now) {
            Ok(step) => step,
            Err(rejection) => {
                println!("refused: {rejection}");
                break;
            }
        };
        log.extend(step.events);
        for command in step.commands {
            if let Command::RunTask(order) = command {
                let outcome =
                    TaskOutcome::Completed { result: std::mem::replace(&mut result, small.clone()) };
                let report = TaskReport::new(outcome, Spend::default());
                inputs.push_back(Input::TaskFinished { token: order.token, attempt: order.attempt, report });
            }
        }
    }
    (run, log)
}

const HEAD: &str = "wonder: 1\nname: scale\nnodes:\n";

fn text_of(bytes: usize) -> Value {
    Value::map([("text", Value::from("x".repeat(bytes)))])
}

/// The first node keeps its result; the others write over one small place.
fn chain(size: usize, first: &str) -> String {
    let mut text = HEAD.to_owned();
    for at in 0..size {
        let target = if at == 0 { first } else { "state.last" };
        let _ = write!(text, "  n{at}: {{mock: {{}}, output_mapping: {{{target}: result}}");
        let next = if at + 1 < size { format!(", next: [{{to: n{}}}]", at + 1) } else { String::new() };
        let _ = writeln!(text, "{next}}}");
    }
    text
}

fn fan_out(size: usize) -> String {
    format!(
        "{HEAD}  spread: {{mock: {{}}, next: [{{to: work, spawn_count: {size}}}]}}\n  work:\n    mock: {{}}\n    next:\n      \
         - {{to: done, synchronization: {{merge: {{target: state.all, strategy: append}}}}}}\n  \
         done: {{update_context: {{set: {{output.count: \"size(state.all)\"}}}}}}\n"
    )
}

/// Layers of fifty; each node needs two of the layer before.
fn dag(size: usize) -> String {
    const WIDTH: usize = 50;
    let mut text = HEAD.to_owned();
    for at in 0..size {
        let needs = match at.checked_sub(WIDTH) {
            Some(above) if above % WIDTH > 0 => format!("[n{above}, n{}]", above - 1),
            Some(above) => format!("[n{above}]"),
            None => "[]".to_owned(),
        };
        let _ = writeln!(text, "  n{at}: {{mock: {{}}, needs: {needs}}}");
    }
    text.push_str("output_mapping: {done: \"true\"}\n");
    text
}
