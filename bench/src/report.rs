//! What was measured, as lines for people and JSON for machines: each figure beside its raw limit and target.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use serde_json::{Value, json};

use crate::raw::Raw;
use crate::{TIMES, median, process, work};

type Workload = for<'r> fn(&'r mut Report) -> Pin<Box<dyn Future<Output = ()> + 'r>>;

pub(crate) const WORKLOADS: [(&str, Workload); 9] = [
    ("w1", |report| Box::pin(w1(report))),
    ("w2", |report| Box::pin(w2(report))),
    ("w3", |report| Box::pin(w3(report))),
    ("w4", |report| Box::pin(w4(report))),
    ("w5", |report| Box::pin(w5(report))),
    ("w6", |report| Box::pin(w6(report))),
    ("w7", |report| Box::pin(w7(report))),
    ("w8", |report| Box::pin(w8(report))),
    ("start", |report| Box::pin(start(report))),
];

pub(crate) struct Report {
    raw: Raw,
    dir: PathBuf,
    figures: Vec<Value>,
}

/// A RAM disk shows the engine's own cost.
const RAM: &str = "/dev/shm";

impl Report {
    pub(crate) fn new(raw: Raw, dir: &Path) -> Report {
        println!("raw limits in {}", dir.display());
        println!("  one row a commit, FULL   {:9.3} ms  ({:.0}/s)", raw.commit_ms, 1_000.0 / raw.commit_ms);
        println!("  64 rows a commit, FULL   {:9.0} rows/s", raw.rows_per_s);
        println!("  fdatasync                {:9.0} /s", raw.fdatasync_per_s);
        println!();
        let raw_figures = json!({"name": "raw", "commit_ms": raw.commit_ms, "rows_per_s": raw.rows_per_s,
                                 "fdatasync_per_s": raw.fdatasync_per_s});
        Report { raw, dir: dir.to_owned(), figures: vec![raw_figures] }
    }

    fn line(&mut self, name: &str, value: f64, unit: &str, target: &str, holds: bool) {
        let mark = if holds { "ok  " } else { "MISS" };
        println!("{mark} {name:<44} {value:12.3} {unit:<14} target {target}");
        let figure = json!({"name": name, "value": value, "unit": unit, "target": target, "holds": holds});
        self.figures.push(figure);
    }

    pub(crate) fn json(&self) -> String {
        format!("{:#}\n", Value::Array(self.figures.clone()))
    }
}

/// The median of three of one figure.
async fn thrice<F: Future<Output = f64>>(mut measure: impl FnMut() -> F) -> f64 {
    let mut all = Vec::new();
    for _ in 0..TIMES {
        all.push(measure().await);
    }
    median(all)
}

async fn w1(report: &mut Report) {
    let dir = report.dir.clone();
    let ms = thrice(|| work::chained(&dir, 1_000)).await;
    let ratio = ms / report.raw.commit_ms;
    report.line("W1 chain of 1 000, a node", ms, "ms", "-", true);
    report.line("W1 against the raw commit", ratio, "x", "<= 1.3", ratio <= 1.3);
    let ram = thrice(|| work::chained(Path::new(RAM), 1_000)).await;
    report.line("W1 on a RAM disk, a node", ram, "ms", "<= 0.06", ram <= 0.06);
}

async fn w2(report: &mut Report) {
    for (name, dir) in [("disk", report.dir.clone()), ("RAM disk", PathBuf::from(RAM))] {
        let (mut rates, mut cpu, mut commits) = (Vec::new(), Vec::new(), 0);
        for _ in 0..TIMES {
            let one = work::throughput(&dir, 500).await;
            rates.push(one.nodes_per_s);
            cpu.push(one.cpu_s_per_1000);
            commits = one.commits;
        }
        let (rate, cpu) = (median(rates), median(cpu));
        let share = rate / report.raw.rows_per_s;
        let wanted = if name == "disk" { (">= 0.2", share >= 0.2) } else { ("-", true) };
        report.line(&format!("W2 500 runs x 10, {name}"), rate, "nodes/s", "-", true);
        report.line(&format!("W2 share of the raw rows, {name}"), share, "", wanted.0, wanted.1);
        report.line(&format!("W2 CPU a thousand nodes, {name}"), cpu, "s", "<= 0.08", cpu <= 0.08);
        report.line(&format!("W2 commits for 5 000 nodes, {name}"), commits as f64, "", "-", true);
    }
}

async fn w3(report: &mut Report) {
    let dir = report.dir.clone();
    let ms = thrice(|| work::fanned(&dir, 1_000)).await;
    report.line("W3 fan-out of 1 000 with its merge", ms, "ms", "<= 60", ms <= 60.0);
}

async fn w4(report: &mut Report) {
    let all = work::latencies(&report.dir.clone(), 200).await;
    let (p50, p99) = (all[100], all[197]);
    let commit = report.raw.commit_ms;
    report.line("W4 one-node run over the socket, p50", p50, "ms", "<= 3 commits", p50 <= 3.0 * commit);
    report.line("W4 one-node run over the socket, p99", p99, "ms", "<= 10 commits", p99 <= 10.0 * commit);
}

async fn w5(report: &mut Report) {
    let one = work::parked(&report.dir.clone(), 10_000).await;
    report.line("W5 10 000 runs parked", one.park_s, "s", "<= 2", one.park_s <= 2.0);
    report.line("W5 memory for them", one.growth_mb, "MB", "<= 30", one.growth_mb <= 30.0);
    report.line("W5 all answered", one.answer_s, "s", "<= 3", one.answer_s <= 3.0);
}

async fn w6(report: &mut Report) {
    let dir = report.dir.clone();
    let one = process::crash(&dir);
    report.line("W6 restart to the next completed node", one.begin_s, "s", "<= 0.3", one.begin_s <= 0.3);
    report.line("W6 restart to the end", one.finish_s, "s", "-", true);
    report.line("W6 nodes completed twice", one.twice as f64, "", "0", one.twice == 0);
}

async fn w7(report: &mut Report) {
    let dir = PathBuf::from(RAM);
    let mut nodes = Vec::new();
    for size in [100, 1_000, 10_000, 100_000] {
        let ms = if size < 100_000 {
            thrice(|| work::chained(&dir, size)).await
        } else {
            work::chained(&dir, size).await
        };
        report.line(&format!("W7 chain of {size}, a node (RAM disk)"), ms, "ms", "-", true);
        nodes.push(ms);
    }
    flat(report, "W7 chain, largest against 1 000", nodes[3] / nodes[1]);
    let mut branches = Vec::new();
    for size in [10, 1_000, 10_000, 100_000] {
        let ms = work::fanned(&dir, size).await / size as f64;
        report.line(&format!("W7 fan-out of {size}, a branch (RAM disk)"), ms, "ms", "-", true);
        branches.push(ms);
    }
    let last = branches[3];
    report.line("W7 fan-out of 100 000, a branch", last, "ms", "<= 0.1", last <= 0.1);
    flat(report, "W7 fan-out, largest against 1 000", last / branches[1]);
    let mut states = Vec::new();
    for bytes in [1 << 10, 1 << 20, 10 << 20] {
        let ms = work::with_state(&dir, bytes, 1_000).await;
        report.line(&format!("W7 a state of {} KB, a node (RAM disk)", bytes >> 10), ms, "ms", "-", true);
        states.push(ms);
    }
    flat(report, "W7 state, largest against smallest", states[2] / states[0]);
}

fn flat(report: &mut Report, name: &str, ratio: f64) {
    report.line(name, ratio, "x", "<= 1.3", ratio <= 1.3);
}

async fn w8(report: &mut Report) {
    let bytes = work::conversation(Path::new(RAM), 100).await;
    let ratio = bytes[99] as f64 / bytes[0] as f64;
    report.line("W8 bytes of the first turn", bytes[0] as f64, "bytes", "-", true);
    report.line("W8 bytes of the 100th against the first", ratio, "x", "<= 1.2", ratio <= 1.2);
}

async fn start(report: &mut Report) {
    let ms = process::start(&report.dir.clone());
    let most = 30.0 + 2.0 * report.raw.commit_ms;
    report.line("start: wonder run of one node", ms, "ms", "<= 30 + 2 commits", ms <= most);
}
