//! A database in a directory of its own, and short ways to use it.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use wonder_core::Value;
use wonder_engine::{Answer, Engine, Follow, RunView, Start, Workflow};
use wonder_host::{Connection, Leaving, Options, Purpose, open};

pub(crate) struct TestHost {
    pub(crate) home: TempDir,
    pub(crate) connection: Connection,
}

impl TestHost {
    pub(crate) async fn new() -> TestHost {
        TestHost::at(TempDir::new().unwrap()).await
    }

    pub(crate) async fn at(home: TempDir) -> TestHost {
        let connection = enter(home.path()).await;
        TestHost { home, connection }
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        self.connection.engine()
    }

    /// Leaves, and comes back.
    pub(crate) async fn reopen(self) -> TestHost {
        TestHost::at(self.leave().await).await
    }

    pub(crate) async fn leave(self) -> TempDir {
        self.connection.close(Leaving::Drain).await;
        self.home
    }

    /// Starts a workflow and waits until it is over or quiet.
    pub(crate) async fn run(&self, file: &str, input: &str) -> RunView {
        let view = self.engine().start(start(file, input)).await.unwrap();
        self.settled(&view.row.run).await
    }

    pub(crate) async fn settled(&self, run: &str) -> RunView {
        let view = *self.engine().wait(run.to_owned(), 60_000).await.unwrap();
        assert!(view.quiet, "{view:?}");
        view
    }

    pub(crate) async fn answer(&self, gate: &str, answer: &str) -> RunView {
        let answer =
            Answer { request_id: None, gate: gate.to_owned(), answer: json(answer), by: "ann".to_owned() };
        let view = self.engine().answer(answer).await.unwrap();
        self.settled(&view.row.run).await
    }

    /// The names of a run's events, in order.
    pub(crate) async fn events(&self, run: &str) -> Vec<&'static str> {
        let mut names = Vec::new();
        let mut after = 0;
        loop {
            let follow = Follow { events_after: vec![(run.to_owned(), after)], ..Follow::default() };
            let updates = self.engine().follow(follow).await.unwrap();
            if updates.events.is_empty() {
                return names;
            }
            for (_, event) in updates.events {
                assert_eq!(event.seq, after + 1, "events have no gaps");
                after = event.seq;
                names.push(event.kind.name());
            }
        }
    }
}

pub(crate) async fn enter(home: &Path) -> Connection {
    open(Options::new(home), Purpose::Act).await.unwrap()
}

pub(crate) fn start(file: &str, input: &str) -> Start {
    let reading = wonder_spec::read(file, "test.yaml").map_err(|problems| problems.render(false)).unwrap();
    let mut workflows = reading
        .bundles
        .into_iter()
        .zip(reading.graphs)
        .map(|(bundle, graph)| Workflow { bundle, graph: Some(graph) });
    Start {
        id: None,
        workflow: workflows.next().unwrap(),
        callable: workflows.collect(),
        input: json(input),
        workdir: "/".to_owned(),
        file: None,
        max_parallel: None,
        options: Default::default(),
        labels: Default::default(),
        wait_ms: 0,
    }
}

pub(crate) fn json(text: &str) -> Value {
    Value::from_json_str(text).unwrap()
}

/// A workflow of so many no-ops in a row.
pub(crate) fn chain(nodes: usize) -> String {
    let mut file = "wonder: 1\nname: chain\nnodes:\n".to_owned();
    for node in 0..nodes {
        let next = if node + 1 < nodes { format!(", next: [{{to: n{}}}]", node + 1) } else { String::new() };
        file.push_str(&format!("  n{node}: {{mock: {{output: {{ok: true}}}}{next}}}\n"));
    }
    file
}

/// Several things at once on one engine.
pub(crate) fn shared(host: TestHost) -> Arc<TestHost> {
    Arc::new(host)
}
