//! The workloads, each once. What they measure is in the specification's performance page: engine overhead
//! only, tasks are mocks, every node durable before the next starts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use wonder_engine::{Answer, Start};
use wonder_host::Drive;

use crate::bench_host::{BenchHost, GATE, chain, fan_out, run, workflow};
use crate::machine::{cpu_seconds, rss_mb};

/// W1: milliseconds a node of a chain.
pub(crate) async fn chained(base: &Path, nodes: usize) -> f64 {
    let host = BenchHost::new(base).await;
    let file = workflow(&chain(nodes));
    let began = Instant::now();
    host.run(&file).await;
    let ms = began.elapsed().as_secs_f64() * 1_000.0 / nodes as f64;
    host.close().await;
    ms
}

pub(crate) struct Throughput {
    pub(crate) nodes_per_s: f64,
    pub(crate) cpu_s_per_1000: f64,
    pub(crate) commits: u64,
}

/// W2: many runs of ten nodes, 64 in flight.
pub(crate) async fn throughput(base: &Path, runs: usize) -> Throughput {
    let host = BenchHost::new(base).await;
    let file = Arc::new(workflow(&chain(10)));
    let (began, cpu) = (Instant::now(), cpu_seconds());
    in_flight(&host, runs, move |engine| {
        let file = file.clone();
        async move { run(&engine, &file).await.seq }
    })
    .await;
    let nodes = (runs * 10) as f64;
    let measured = Throughput {
        nodes_per_s: nodes / began.elapsed().as_secs_f64(),
        cpu_s_per_1000: (cpu_seconds() - cpu) / nodes * 1_000.0,
        commits: host.engine.written().commits,
    };
    host.close().await;
    measured
}

/// W3: milliseconds of a fan-out with its merge.
pub(crate) async fn fanned(base: &Path, branches: usize) -> f64 {
    let host = BenchHost::new(base).await;
    let file = workflow(&fan_out(branches));
    let began = Instant::now();
    host.run(&file).await;
    let ms = began.elapsed().as_secs_f64() * 1_000.0;
    host.close().await;
    ms
}

/// W4: from submit to result of a one-node run, over the owner's socket; sorted milliseconds.
pub(crate) async fn latencies(base: &Path, runs: usize) -> Vec<f64> {
    let host = BenchHost::new(base).await;
    let options = wonder_host::Options::new(host.home());
    // Whoever asks has a thread and an event loop of its own, as another process would.
    let client = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let client = wonder_host::open(options, wonder_host::Purpose::Act).await.expect("it attaches");
            let all = one_by_one(&client, runs).await;
            client.close(wonder_host::Leaving::Drain).await;
            all
        })
    });
    let all = client.await.expect("it ends");
    host.close().await;
    all
}

/// The same by calls within the process.
pub(crate) async fn latencies_within(base: &Path, runs: usize) -> Vec<f64> {
    let host = BenchHost::new(base).await;
    let all = one_by_one(&host.engine, runs).await;
    host.close().await;
    all
}

async fn one_by_one(engine: &wonder_host::Connection, runs: usize) -> Vec<f64> {
    let file = workflow(&chain(1));
    let mut all = Vec::new();
    for _ in 0..runs {
        let began = Instant::now();
        run(engine, &file).await;
        all.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    all.sort_by(f64::total_cmp);
    all
}

pub(crate) struct Parked {
    pub(crate) park_s: f64,
    pub(crate) growth_mb: f64,
    pub(crate) answer_s: f64,
}

/// W5: so many runs at a gate, then all answered; 64 clients.
pub(crate) async fn parked(base: &Path, runs: usize) -> Parked {
    let host = BenchHost::new(base).await;
    let file = Arc::new(workflow(GATE));
    run(&host.engine, &file).await;
    let (before, began) = (rss_mb("self"), Instant::now());
    let ids = in_flight(&host, runs, move |engine| {
        let file = file.clone();
        async move { engine.engine().start(Start::clone(&file)).await.expect("it starts").row.run }
    })
    .await;
    let (park_s, growth_mb) = (began.elapsed().as_secs_f64(), rss_mb("self") - before);
    let began = Instant::now();
    let ids = Arc::new(std::sync::Mutex::new(ids));
    in_flight(&host, runs, move |engine| {
        let ids = ids.clone();
        async move {
            let run = ids.lock().expect("whole").pop().expect("one each");
            let gate = format!("{run}:1");
            let answer =
                Answer { request_id: None, gate, answer: Default::default(), by: "bench".to_owned() };
            let view = engine.engine().answer(answer).await.expect("it is answered");
            let view = engine.engine().wait(view.row.run, 60_000).await.expect("it ends");
            assert!(view.row.status.is_end(), "{view:?}");
            run
        }
    })
    .await;
    let answer_s = began.elapsed().as_secs_f64();
    host.close().await;
    Parked { park_s, growth_mb, answer_s }
}

/// So many calls, 64 at a time.
pub(crate) async fn in_flight<F, C, T>(host: &BenchHost, calls: usize, call: F) -> Vec<T>
where
    F: Fn(Arc<wonder_host::Connection>) -> C + Send + Sync + 'static,
    C: Future<Output = T> + Send,
    T: Send + 'static,
{
    let (call, next) = (Arc::new(call), Arc::new(AtomicUsize::new(0)));
    let clients = (0..64).map(|_| {
        let (engine, call, next) = (host.engine.clone(), call.clone(), next.clone());
        tokio::spawn(async move {
            let mut done = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < calls {
                done.push(call(engine.clone()).await);
            }
            done
        })
    });
    let mut all = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        all.extend(client.await.expect("it runs"));
    }
    all
}

/// W7: milliseconds of a chain with a state of so many bytes beside it.
pub(crate) async fn with_state(base: &Path, bytes: usize, nodes: usize) -> f64 {
    let host = BenchHost::new(base).await;
    let items = bytes / 100;
    let text = chain(nodes).replace(
        "nodes:\n",
        "nodes:\n  fill: {update_context: {set: {state.big: input.big}}, next: [{to: n0}]}\n",
    );
    let mut file = workflow(&text);
    let item = wonder_core::Value::from("y".repeat(97));
    let big = wonder_core::Value::list(std::iter::repeat_n(item, items));
    file.input = wonder_core::Value::map([("big", big)]);
    let view = host.engine.with(Drive::Off).engine().start(file).await.expect("it starts");
    let run = view.row.run;
    let began = Instant::now();
    host.engine.adopt(&run).await.expect("it goes on");
    let view = host.engine.engine().wait(run, 600_000).await.expect("it ends");
    assert!(view.row.status.is_end(), "{:?}", view.row);
    let ms = began.elapsed().as_secs_f64() * 1_000.0;
    host.close().await;
    ms
}

/// W8: bytes stored for each turn of a conversation that grows by 8 000 bytes a turn.
pub(crate) async fn conversation(base: &Path, turns: usize) -> Vec<u64> {
    let host = BenchHost::new(base).await;
    let text = "wonder: 1\nname: agent\nnodes:\n  begin: {update_context: {set: {state.messages: '[]'}}, next: [{to: turn}]}\n  \
                turn:\n    mock: {output: {role: assistant, content: '{{ state.filler }}'}}\n    input_mapping: {state: {filler: \"input.filler + string(size(state.messages))\"}}\n    \
                output_mapping: {state.messages: 'state.messages + [result]'}\n    next: [{to: wait}]\n  \
                wait: {wait_event: next, next: [{to: turn, max_iterations: 1000}, {to: end}]}\n  end: {mock: {output: {}}}\n";
    let mut file = workflow(text);
    let filler = wonder_core::Value::from("z".repeat(8_000));
    file.input = wonder_core::Value::map([("filler", filler)]);
    let run = host.run(&file).await.row.run;
    let mut bytes = Vec::new();
    for _ in 0..turns {
        let before = host.engine.written().bytes;
        let signal = wonder_engine::Signal {
            request_id: None,
            run: run.clone(),
            event: "next".to_owned(),
            key: Default::default(),
            payload: Default::default(),
            keep: true,
        };
        host.engine.engine().signal(signal).await.expect("it hears");
        host.engine.engine().wait(run.clone(), 60_000).await.expect("it waits");
        bytes.push(host.engine.written().bytes - before);
    }
    host.close().await;
    bytes
}
