//! `wonder-bench dags DIR [--seconds S]`: recorded shapes (`{"seconds": […], "edges": [[from, to], …]}`) as dag
//! workflows of mocks on the real engine, each scaled to a lower bound of S seconds. Prints how long they took
//! beside that bound, first-come order and the ready order without an engine.

use std::path::Path;

use serde_json::Value;
use wonder_sim::shape::Shape;

use crate::bench_host::{BenchHost, workflow};
use crate::median;

const SLOTS: [usize; 3] = [4, 8, 16];

pub(crate) async fn run(dir: &Path, base: &Path, seconds: f64) {
    println!("each shape scaled to a lower bound of {seconds} s; times as multiples of that bound");
    println!(
        "{:<46} {:>6} {:>6} {:>10} {:>10} {:>10}",
        "shape", "tasks", "slots", "first-come", "order", "measured"
    );
    let mut measured: [Vec<f64>; 3] = Default::default();
    for (name, shape) in shapes(dir) {
        for (slots, all) in SLOTS.into_iter().zip(&mut measured) {
            let scaled = shape.scaled(slots, seconds * 1_000.0);
            let bound = scaled.lower_bound_ms(slots) as f64;
            let first_come = scaled.first_come_ms(slots) as f64 / bound;
            let order = scaled.ordered_ms(slots).expect("it completes") as f64 / bound;
            let took = took_ms(base, &scaled, slots).await / bound;
            let tasks = scaled.durations_ms.len();
            println!("{name:<46} {tasks:>6} {slots:>6} {first_come:>10.3} {order:>10.3} {took:>10.3}");
            all.push(took);
        }
    }
    for (slots, all) in SLOTS.into_iter().zip(measured) {
        let worst = all.iter().copied().fold(0.0, f64::max);
        println!("{slots:>2} slots: median {:.3}, worst {worst:.3}", median(all));
    }
}

async fn took_ms(base: &Path, shape: &Shape, slots: usize) -> f64 {
    let host = BenchHost::new(base).await;
    let file = workflow(&shape.workflow(slots));
    let view = host.run(&file).await;
    let took = view.duration_ms as f64;
    host.close().await;
    took
}

fn shapes(dir: &Path) -> Vec<(String, Shape)> {
    let files = std::fs::read_dir(dir).expect("a directory of shapes").flatten();
    let mut paths: Vec<_> = files.map(|file| file.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().map(|path| (stem(path), shape(path))).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn shape(path: &Path) -> Shape {
    let text = std::fs::read_to_string(path).expect("a file");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let list = |key: &str| recorded[key].as_array().cloned().unwrap_or_default();
    let seconds = list("seconds");
    let micros = seconds.iter().map(|s| (s.as_f64().unwrap_or(0.0) * 1e6) as u64).collect();
    let at = |edge: &Value, end: usize| edge[end].as_u64().expect("an index") as usize;
    let edges: Vec<(usize, usize)> = list("edges").iter().map(|edge| (at(edge, 0), at(edge, 1))).collect();
    Shape::new(micros, &edges)
}
