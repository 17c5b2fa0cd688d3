//! An engine in a directory, and the workflows that are run on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use wonder_core::Value;
use wonder_engine::{RunView, Start, Workflow};
use wonder_host::{Connection, Leaving, Options, Purpose, open};

pub(crate) struct BenchHost {
    pub(crate) dir: TempDir,
    pub(crate) engine: Arc<Connection>,
}

impl BenchHost {
    pub(crate) async fn new(base: &Path) -> BenchHost {
        let dir = TempDir::new_in(base).expect("a directory");
        let engine = Arc::new(open(Options::new(dir.path()), Purpose::Act).await.expect("an engine"));
        BenchHost { dir, engine }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Runs to its end, or until it only waits.
    pub(crate) async fn run(&self, file: &Start) -> RunView {
        run(&self.engine, file).await
    }

    pub(crate) async fn close(self) {
        if let Some(engine) = Arc::into_inner(self.engine) {
            engine.close(Leaving::Drain).await;
        }
    }
}

pub(crate) async fn run(engine: &Connection, file: &Start) -> RunView {
    let view = engine.engine().start(Start { wait_ms: 600_000, ..file.clone() }).await.expect("it ends");
    assert!(view.quiet, "{view:?}");
    *view
}

/// A workflow, read and checked once.
pub(crate) fn workflow(text: &str) -> Start {
    let reading = wonder_spec::read(text, "bench.yaml").map_err(|problems| problems.render(false));
    let reading = reading.unwrap_or_else(|problems| panic!("{problems}"));
    let mut all = reading
        .bundles
        .into_iter()
        .zip(reading.graphs)
        .map(|(bundle, graph)| Workflow { bundle, graph: Some(graph) });
    Start {
        id: None,
        workflow: all.next().expect("a workflow"),
        callable: all.collect(),
        input: Value::empty_map(),
        workdir: "/".to_owned(),
        file: None,
        max_parallel: None,
        options: Default::default(),
        labels: Default::default(),
        wait_ms: 0,
    }
}

/// About 100 bytes, as the workloads ask.
const RESULT: &str =
    "{text: 'a result of about a hundred bytes, as a small step of an agent would return it here', n: 7}";

pub(crate) fn chain(nodes: usize) -> String {
    let mut text = "wonder: 1\nname: chain\ntimeout: 10h\nnodes:\n".to_owned();
    for node in 0..nodes {
        let next = if node + 1 < nodes { format!(", next: [{{to: n{}}}]", node + 1) } else { String::new() };
        // Each result in the same place: a state that grew with the chain would be another measurement.
        text.push_str(&format!(
            "  n{node}: {{mock: {{output: {RESULT}}}, output_mapping: {{state.last: result}}{next}}}\n"
        ));
    }
    text
}

pub(crate) fn fan_out(branches: usize) -> String {
    format!(
        "wonder: 1\nname: wide\ntimeout: 10h\nnodes:\n  spread: {{mock: {{output: {{}}}}, next: [{{to: work, spawn_count: {branches}}}]}}\n  \
         work:\n    mock: {{output: {RESULT}}}\n    next:\n      - to: join\n        synchronization: {{strategy: all, merge: {{target: state.all, strategy: append}}}}\n  \
         join: {{update_context: {{set: {{output.count: size(state.all)}}}}}}\n"
    )
}

pub(crate) const GATE: &str = "wonder: 1\nname: parked\nnodes:\n  ask: {human_gate: {title: Well?}, next: [{to: done}]}\n  done: {mock: {output: {ok: true}}}\n";
