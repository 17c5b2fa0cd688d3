//! What W1 to W3 cost a node and W8 costs a turn of an agent, counted and held to upper bounds: commits, rows, bytes, allocations. Counts are
//! the same on a slow machine, so these guard `main`; times are for `make bench`.

use std::alloc::System;
use std::path::Path;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use wonder_modelserver::{Script, Server};

use crate::agents::conversation;
use crate::bench_host::{BenchHost, chain, fan_out, workflow};
use crate::provider::long_script;
use crate::work::in_flight;

/// The system's allocator, counted. This binary has one test, so nobody else's allocations are in the sum.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What something took.
#[derive(Clone, Copy, Debug)]
struct Counts {
    commits: f64,
    rows: f64,
    bytes: f64,
    allocations: f64,
}

impl Counts {
    async fn now(host: &BenchHost) -> Counts {
        let written = host.engine.written();
        let heap = ALLOCATOR.stats();
        Counts {
            commits: written.commits as f64,
            rows: written.rows as f64,
            bytes: written.bytes as f64,
            allocations: (heap.allocations + heap.reallocations) as f64,
        }
    }

    fn since(self, before: Counts, nodes: usize) -> Counts {
        let each = |after: f64, before: f64| (after - before) / nodes as f64;
        Counts {
            commits: each(self.commits, before.commits),
            rows: each(self.rows, before.rows),
            bytes: each(self.bytes, before.bytes),
            allocations: each(self.allocations, before.allocations),
        }
    }

    #[track_caller]
    fn within(self, most: Counts) {
        let fits = self.commits <= most.commits
            && self.rows <= most.rows
            && self.bytes <= most.bytes
            && self.allocations <= most.allocations;
        println!("a node cost {self:?}");
        assert!(fits, "a node cost {self:?}, at most {most:?}");
    }
}

#[test]
fn a_node_costs_no_more_than_it_did() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let dir = std::env::temp_dir();
        chained(&dir).await.within(Counts { commits: 1.002, rows: 1.01, bytes: 496.0, allocations: 45.5 });
        many(&dir).await.within(Counts { commits: 0.1, rows: 1.31, bytes: 530.0, allocations: 50.0 });
        fanned(&dir).await.within(Counts { commits: 0.01, rows: 1.01, bytes: 1_085.0, allocations: 49.0 });
        // Last: the provider is in this process, and what it allocates is nobody's cost.
        a_turn_costs_no_more_than_it_did(&dir).await;
    });
}

/// W8 with a real agent of 101 turns: what its hundredth stores, and how often a turn commits. One commit has what the
/// model said and sends out its calls; one has their results, which come at once here, and sends out the next turn.
async fn a_turn_costs_no_more_than_it_did(dir: &Path) {
    let script = Script::read(&long_script(101)).expect("a script");
    let server = Server::start(script).await.expect("a port");
    let marks = conversation(dir, &server.url(), 101).await;
    let bytes = |turn: usize| (marks[turn].bytes - marks[turn - 1].bytes) as f64;
    let commits = (marks[100].commits - marks[0].commits) as f64 / 100.0;
    println!("a turn cost {commits} commits; the first stored {} bytes, the 100th {}", bytes(1), bytes(100));
    assert!(bytes(100) <= 1.2 * bytes(1), "the first stored {} bytes, the 100th {}", bytes(1), bytes(100));
    assert!(commits <= 2.0, "a turn cost {commits} commits");
}

/// W1.
async fn chained(dir: &Path) -> Counts {
    let host = BenchHost::new(dir).await;
    let file = workflow(&chain(1_000));
    let before = Counts::now(&host).await;
    host.run(&file).await;
    let counts = Counts::now(&host).await.since(before, 1_000);
    host.close().await;
    counts
}

/// W2: the workflow is known already, as it is for all but the first run.
async fn many(dir: &Path) -> Counts {
    const RUNS: usize = 500;
    let host = BenchHost::new(dir).await;
    let file = workflow(&chain(10));
    host.run(&file).await;
    let before = Counts::now(&host).await;
    in_flight(&host, RUNS, move |engine| {
        let file = file.clone();
        async move { crate::bench_host::run(&engine, &file).await }
    })
    .await;
    let counts = Counts::now(&host).await.since(before, RUNS * 10);
    host.close().await;
    counts
}

/// W3.
async fn fanned(dir: &Path) -> Counts {
    let host = BenchHost::new(dir).await;
    let file = workflow(&fan_out(1_000));
    let before = Counts::now(&host).await;
    host.run(&file).await;
    let counts = Counts::now(&host).await.since(before, 1_000);
    host.close().await;
    counts
}
