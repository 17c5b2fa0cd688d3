//! What was measured, as lines for people and JSON for machines: each figure beside its raw limit and target.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use serde_json::{Value, json};

use crate::raw::{self, Raw};
use crate::{TIMES, median, process, report_agents, work};

type Workload = for<'r> fn(&'r mut Report) -> Pin<Box<dyn Future<Output = ()> + 'r>>;

/// W5 first: what it adds to the memory shows only in a process that has not used much before.
pub(crate) const WORKLOADS: [(&str, Workload); 11] = [
    ("w5", |report| Box::pin(w5(report))),
    ("w1", |report| Box::pin(w1(report))),
    ("w2", |report| Box::pin(w2(report))),
    ("w3", |report| Box::pin(w3(report))),
    ("w4", |report| Box::pin(w4(report))),
    ("w6", |report| Box::pin(w6(report))),
    ("w7", |report| Box::pin(w7(report))),
    ("w8", |report| Box::pin(w8(report))),
    ("w10", |report| Box::pin(report_agents::w10(report))),
    ("text", |report| Box::pin(report_agents::first_text(report))),
    ("start", |report| Box::pin(start(report))),
];

pub(crate) struct Report {
    pub(crate) dir: PathBuf,
    figures: Vec<Value>,
}

/// A RAM disk shows the engine's own cost.
pub(crate) const RAM: &str = "/dev/shm";

impl Report {
    pub(crate) fn new(raw: Raw, dir: &Path) -> Report {
        println!("raw limits in {}", dir.display());
        println!("  one row a commit, FULL   {:9.3} ms  ({:.0}/s)", raw.commit_ms, 1_000.0 / raw.commit_ms);
        println!(
            "  asked for two, a socket  {:9.3} ms  (p99 {:.3})",
            raw.round_trip_ms, raw.round_trip_p99_ms
        );
        println!("  64 rows a commit, FULL   {:9.0} rows/s", raw.rows_per_s);
        println!("  fdatasync                {:9.0} /s", raw.fdatasync_per_s);
        println!();
        let raw_figures = json!({"name": "raw", "commit_ms": raw.commit_ms,
                                 "round_trip_ms": raw.round_trip_ms, "round_trip_p99_ms": raw.round_trip_p99_ms, "rows_per_s": raw.rows_per_s,
                                 "fdatasync_per_s": raw.fdatasync_per_s});
        Report { dir: dir.to_owned(), figures: vec![raw_figures] }
    }

    pub(crate) fn line(&mut self, name: &str, value: f64, unit: &str, target: &str, holds: bool) {
        let mark = if holds { "ok  " } else { "MISS" };
        println!("{mark} {name:<44} {value:12.3} {unit:<14} target {target}");
        let figure = json!({"name": name, "value": value, "unit": unit, "target": target, "holds": holds});
        self.figures.push(figure);
    }

    pub(crate) fn json(&self) -> String {
        format!("{:#}\n", Value::Array(self.figures.clone()))
    }
}

/// The median of one figure.
async fn typical<F: Future<Output = f64>>(mut measure: impl FnMut() -> F) -> f64 {
    let mut all = Vec::new();
    for _ in 0..TIMES {
        all.push(measure().await);
    }
    median(all)
}

/// Several times, each beside the raw limits just before and after it: the disk is shared and changes.
async fn beside_raw<T, F: Future<Output = T>>(dir: &Path, mut measure: impl FnMut() -> F) -> Vec<(Raw, T)> {
    let mut all = Vec::new();
    let mut before = raw::measure(dir);
    for _ in 0..TIMES {
        let measured = measure().await;
        let after = raw::measure(dir);
        all.push((before.between(after), measured));
        before = after;
    }
    all
}

pub(crate) fn median_of<T>(all: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    median(all.iter().map(figure).collect())
}

async fn w1(report: &mut Report) {
    let dir = report.dir.clone();
    let all = beside_raw(&dir, || work::chained(&dir, 1_000)).await;
    let ratio = median_of(&all, |(raw, ms)| ms / raw.commit_ms);
    report.line("W1 raw commit beside it", median_of(&all, |(raw, _)| raw.commit_ms), "ms", "-", true);
    report.line("W1 chain of 1 000, a node", median_of(&all, |(_, ms)| *ms), "ms", "-", true);
    report.line("W1 against the raw commit", ratio, "x", "<= 1.3", ratio <= 1.3);
    let ram = typical(|| work::chained(Path::new(RAM), 1_000)).await;
    report.line("W1 on a RAM disk, a node", ram, "ms", "<= 0.06", ram <= 0.06);
}

async fn w2(report: &mut Report) {
    let dir = report.dir.clone();
    let all = beside_raw(&dir, || work::throughput(&dir, 500)).await;
    let share = median_of(&all, |(raw, one)| one.nodes_per_s / raw.rows_per_s);
    let cpu = median_of(&all, |(_, one)| one.cpu_s_per_1000);
    report.line("W2 raw rows beside it", median_of(&all, |(raw, _)| raw.rows_per_s), "rows/s", "-", true);
    report.line("W2 500 runs x 10", median_of(&all, |(_, one)| one.nodes_per_s), "nodes/s", "-", true);
    report.line("W2 share of the raw rows", share, "", ">= 0.2", share >= 0.2);
    report.line("W2 CPU a thousand nodes", cpu, "s", "<= 0.08", cpu <= 0.08);
    report.line("W2 commits for 5 000 nodes", median_of(&all, |(_, one)| one.commits as f64), "", "-", true);
    let mut ram = Vec::new();
    for _ in 0..TIMES {
        ram.push(work::throughput(Path::new(RAM), 500).await);
    }
    let ram_cpu = median_of(&ram, |one| one.cpu_s_per_1000);
    report.line("W2 on a RAM disk", median_of(&ram, |one| one.nodes_per_s), "nodes/s", "-", true);
    report.line("W2 CPU on a RAM disk", ram_cpu, "s", "<= 1.5 x the disk's", ram_cpu <= 1.5 * cpu);
}

async fn w3(report: &mut Report) {
    let dir = report.dir.clone();
    let ms = typical(|| work::fanned(&dir, 1_000)).await;
    report.line("W3 fan-out of 1 000 with its merge", ms, "ms", "<= 60", ms <= 60.0);
}

async fn w4(report: &mut Report) {
    let dir = report.dir.clone();
    let all = beside_raw(&dir, || work::latencies(&dir, 200)).await;
    for (name, at, most) in [("p50", 100, 3.0), ("p99", 197, 10.0)] {
        let ms = median_of(&all, |(_, sorted)| sorted[at]);
        let ratio = median_of(&all, |(raw, sorted)| sorted[at] / raw.commit_ms);
        report.line(&format!("W4 one-node run over the socket, {name}"), ms, "ms", "-", true);
        let target = format!("<= {most}");
        report.line(&format!("W4 {name} against the raw commit"), ratio, "x", &target, ratio <= most);
    }
    let trip = median_of(&all, |(raw, sorted)| sorted[100] / raw.round_trip_ms);
    report.line("W4 p50 against that of two raw commits asked for", trip, "x", "-", true);
    let trip = median_of(&all, |(raw, sorted)| sorted[197] / raw.round_trip_p99_ms);
    report.line("W4 p99 against that of two raw commits asked for", trip, "x", "-", true);
    let mut within = Vec::new();
    for _ in 0..TIMES {
        within.push(work::latencies_within(&dir, 200).await);
    }
    let ms = median_of(&within, |sorted| sorted[100]);
    report.line("W4 within the process, p50", ms, "ms", "-", true);
}

async fn w5(report: &mut Report) {
    let dir = report.dir.clone();
    let mut all = Vec::new();
    for _ in 0..TIMES {
        all.push(work::parked(&dir, 10_000).await);
    }
    let park = median_of(&all, |one| one.park_s);
    let grown = all.iter().map(|one| one.growth_mb).fold(0.0, f64::max);
    let answer = median_of(&all, |one| one.answer_s);
    report.line("W5 10 000 runs parked", park, "s", "<= 2", park <= 2.0);
    report.line("W5 memory for them", grown, "MB", "<= 30", grown <= 30.0);
    report.line("W5 all answered", answer, "s", "<= 3", answer <= 3.0);
}

async fn w6(report: &mut Report) {
    let dir = report.dir.clone();
    let all: Vec<process::Crash> = (0..TIMES).map(|_| process::crash(&dir)).collect();
    let begin = median_of(&all, |one| one.begin_s);
    let twice: usize = all.iter().map(|one| one.twice).sum();
    report.line("W6 restart to the next completed node", begin, "s", "<= 0.3", begin <= 0.3);
    report.line("W6 restart to the end", median_of(&all, |one| one.finish_s), "s", "-", true);
    report.line("W6 nodes completed twice", twice as f64, "", "0", twice == 0);
}

async fn w7(report: &mut Report) {
    let dir = PathBuf::from(RAM);
    let mut nodes = Vec::new();
    for size in [100, 1_000, 10_000, 100_000] {
        let ms = typical(|| work::chained(&dir, size)).await;
        report.line(&format!("W7 chain of {size}, a node (RAM disk)"), ms, "ms", "-", true);
        nodes.push(ms);
    }
    flat(report, "W7 chain", &nodes);
    let mut branches = Vec::new();
    for size in [10, 1_000, 10_000, 100_000] {
        let ms = typical(|| work::fanned(&dir, size)).await / size as f64;
        report.line(&format!("W7 fan-out of {size}, a branch (RAM disk)"), ms, "ms", "-", true);
        branches.push(ms);
    }
    let last = branches[3];
    report.line("W7 fan-out of 100 000, a branch", last, "ms", "<= 0.1", last <= 0.1);
    flat(report, "W7 fan-out", &branches);
    let mut states = Vec::new();
    for bytes in [1 << 10, 1 << 20, 10 << 20] {
        // What a node more costs: the state itself is read and stored once, however many nodes there are.
        let short = typical(|| work::with_state(&dir, bytes, 1_000)).await;
        let long = typical(|| work::with_state(&dir, bytes, 6_000)).await;
        let ms = (long - short) / 5_000.0;
        report.line(&format!("W7 a state of {} KB, a node (RAM disk)", bytes >> 10), ms, "ms", "-", true);
        states.push(ms);
    }
    flat(report, "W7 state", &states);
}

/// The largest against the smallest, which also carries what a run costs at all; and against the next, which
/// does not.
fn flat(report: &mut Report, name: &str, costs: &[f64]) {
    let last = costs[costs.len() - 1];
    let ratio = last / costs[0];
    report.line(&format!("{name}, largest against smallest"), ratio, "x", "<= 1.3", ratio <= 1.3);
    report.line(&format!("{name}, largest against the next"), last / costs[1], "x", "-", true);
}

async fn w8(report: &mut Report) {
    let bytes = work::conversation(Path::new(RAM), 100).await;
    let ratio = bytes[99] as f64 / bytes[0] as f64;
    report.line("W8 bytes of the first turn", bytes[0] as f64, "bytes", "-", true);
    report.line("W8 bytes of the 100th against the first", ratio, "x", "<= 1.2", ratio <= 1.2);
    report_agents::w8(report);
}

async fn start(report: &mut Report) {
    let dir = report.dir.clone();
    let before = raw::measure(&dir);
    let ms = process::start(&dir);
    let most = 30.0 + 2.0 * before.between(raw::measure(&dir)).commit_ms;
    report.line("start: wonder run of one node", ms, "ms", "<= 30 + 2 commits", ms <= most);
    let idle = process::idle_mb(&dir);
    report.line("start: memory of an idle owner", idle, "MB", "<= 25", idle <= 25.0);
    let size = process::binary_mb();
    report.line("start: size of the binary", size, "MB", "<= 60", size <= 60.0);
}
