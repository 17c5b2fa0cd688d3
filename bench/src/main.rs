//! `wonder-bench [WORKLOAD …] [--dir DIR] [--json FILE]`: what the engine costs, beside the raw limits of the
//! same run. Each figure is the median of five; the machine is shared, so only the ratios mean anything.

mod agents;
mod bench_host;
#[cfg(test)]
mod counts;
mod dags;
mod machine;
mod process;
mod provider;
mod raw;
mod report;
mod report_agents;
mod work;

use std::path::PathBuf;

use report::Report;

/// The disk is shared: the middle one of five says more than that of three.
const TIMES: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let dir = value("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let named = |argument: &&String| argument.starts_with('w') || ["start", "text"].contains(&&***argument);
    let wanted: Vec<String> = arguments.iter().filter(named).cloned().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    if arguments.first().is_some_and(|argument| argument == "part") {
        return runtime.block_on(agents::perform(&arguments[1..]));
    }
    if let Some(shapes) = value("dags") {
        let seconds = value("--seconds").and_then(|text| text.parse().ok()).unwrap_or(5.0);
        return runtime.block_on(dags::run(shapes.as_ref(), &dir, seconds));
    }
    let mut report = Report::new(raw::measure(&dir), &dir);
    for (name, workload) in report::WORKLOADS {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            runtime.block_on(workload(&mut report));
        }
    }
    if let Some(file) = value("--json") {
        std::fs::write(&file, report.json()).expect("a file");
    }
}

/// The middle one.
pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
