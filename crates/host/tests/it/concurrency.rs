//! `concurrency`: how many runs of a workflow may be under way at once, and what they learn from each other.

use wonder_engine::{Follow, Status, WhyReason};

use crate::test_host::{TestHost, start};

fn limited(concurrency: &str, nodes: &str) -> String {
    format!("wonder: 1\nname: limited\nconcurrency: {concurrency}\nnodes:\n{nodes}")
}

const WORK: &str = "  a: {mock: {output: {}, delay: 100ms}, next: [{to: b}]}\n  b: {mock: {output: {}}}\n";
const ASK: &str =
    "  ask: {human_gate: {title: Well?}, next: [{to: b}]}\n  b: {mock: {output: {}, delay: 50ms}}\n";

async fn begin(host: &TestHost, file: &str, input: &str) -> String {
    host.engine().start(start(file, input)).await.unwrap().row.run.clone()
}

async fn status(host: &TestHost, run: &str) -> Status {
    host.engine().find(run.to_owned()).await.unwrap().row.status
}

/// When an event of this kind happened, by the run's own record.
async fn at(host: &TestHost, run: &str, kind: &str) -> i64 {
    let follow = Follow { events_after: vec![(run.to_owned(), 0)], ..Follow::default() };
    let updates = host.engine().follow(follow).await.unwrap();
    let found = updates.events.iter().find(|(_, event)| event.kind.name() == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {run}")).1.at.0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_waits_in_line_for_the_first() {
    let host = TestHost::new().await;
    let file = limited("{limit: 1}", WORK);
    let (first, second) = (begin(&host, &file, "{}").await, begin(&host, &file, "{}").await);
    assert_eq!(status(&host, &second).await, Status::Queued);
    let why = host.engine().why(second.clone()).await.unwrap();
    assert_eq!(why[0].reason, WhyReason::Concurrency { holders: vec![first.clone()] });
    assert_eq!(host.settled(&second).await.row.status, Status::Completed);
    assert_eq!(status(&host, &first).await, Status::Completed);
    assert!(at(&host, &second, "run_released").await >= at(&host, &first, "run_completed").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_different_keys_do_not_wait_for_each_other() {
    let host = TestHost::new().await;
    let file = limited("{limit: 1, key: input.customer}", WORK);
    let ann = begin(&host, &file, r#"{"customer": "ann"}"#).await;
    let bob = begin(&host, &file, r#"{"customer": "bob"}"#).await;
    let ann_again = begin(&host, &file, r#"{"customer": "ann"}"#).await;
    assert_eq!(status(&host, &bob).await, Status::Running);
    assert_eq!(status(&host, &ann_again).await, Status::Queued);
    for run in [ann, bob, ann_again] {
        assert_eq!(host.settled(&run).await.row.status, Status::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_people_gives_its_place_away_and_takes_it_back() {
    let host = TestHost::new().await;
    let file = limited("{limit: 1}", ASK);
    let asking = host.run(&file, "{}").await.row.run;
    assert_eq!(status(&host, &asking).await, Status::Waiting);
    // The place is free: another may come to its own question.
    let other = host.run(&file, "{}").await.row.run;
    assert_eq!(status(&host, &other).await, Status::Waiting);
    let (one, two) = tokio::join!(host.answer(&asking, "{}"), host.answer(&other, "{}"));
    assert_eq!((one.row.status, two.row.status), (Status::Completed, Status::Completed));
    let ends = [at(&host, &asking, "run_completed").await, at(&host, &other, "run_completed").await];
    assert!(ends[0].abs_diff(ends[1]) >= 50, "the tasks behind the gates took turns: {ends:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_may_hold_on_to_its_place_while_it_waits() {
    let host = TestHost::new().await;
    let file = limited("{limit: 1, hold_while_waiting: true}", ASK);
    let asking = host.run(&file, "{}").await.row.run;
    let other = begin(&host, &file, "{}").await;
    assert_eq!(status(&host, &other).await, Status::Queued);
    assert_eq!(host.answer(&asking, "{}").await.row.status, Status::Completed);
    assert_eq!(host.settled(&other).await.row.status, Status::Waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_calls_itself_does_not_wait_for_itself() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: deep
concurrency: {limit: 1}
nodes:
  look: {assert: {that: 'true'}, next: [{to: call, when: input.n > 0}, {to: done}]}
  call: {workflow_call: {workflow: deep}, input_mapping: {n: input.n - 1}, next: [{to: done}]}
  done: {mock: {output: {}}}
";
    assert_eq!(host.run(file, r#"{"n": 3}"#).await.row.status, Status::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_outlives_its_owner() {
    let host = TestHost::new().await;
    let file = limited("{limit: 1, hold_while_waiting: true}", ASK);
    let asking = host.run(&file, "{}").await.row.run;
    let queued = begin(&host, &file, "{}").await;
    let host = host.reopen().await;
    assert_eq!(status(&host, &queued).await, Status::Queued);
    host.connection.adopt(&asking).await.unwrap();
    host.connection.adopt(&queued).await.unwrap();
    assert_eq!(status(&host, &queued).await, Status::Queued, "the first holds its place");
    assert_eq!(host.answer(&asking, "{}").await.row.status, Status::Completed);
    assert_eq!(host.settled(&queued).await.row.status, Status::Waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dag_learns_how_long_its_nodes_take() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: learns
nodes:
  slow: {mock: {output: {}, delay: 30ms, usage: {cost_usd: 0.002}}, timeout: adaptive}
  quick: {mock: {output: {}}}
  known: {mock: {output: {}}, estimate: {duration: 5s, usd: 0.1}}
  priced: {mock: {output: {}, delay: 10ms}, estimate: {usd: 0.1}}
  last: {mock: {output: {}}, needs: [slow, quick, known, priced]}
";
    let told = async |run: &str| {
        let follow = Follow { events_after: vec![(run.to_owned(), 0)], limit: Some(1), ..Follow::default() };
        let updates = host.engine().follow(follow).await.unwrap();
        serde_json::to_value(&updates.events[0].1).unwrap()
    };
    let first = host.run(file, "{}").await.row.run;
    assert!(told(&first).await["estimates"].is_null());
    let second = host.run(file, "{}").await.row.run;
    let estimates = told(&second).await["estimates"].clone();
    assert!(estimates["slow"]["duration_ms"].as_u64().is_some_and(|ms| ms >= 30), "{estimates}");
    assert_eq!(estimates["slow"]["usd_micros"], 2_000);
    assert!(estimates["known"].is_null(), "what the file says wins");
    assert!(estimates["priced"]["duration_ms"].as_u64().is_some_and(|ms| ms >= 10), "{estimates}");
    for _ in 0..18 {
        host.run(file, "{}").await;
    }
    let late = host.run(file, "{}").await.row.run;
    let timeout = told(&late).await["timeouts_ms"]["slow"].clone();
    assert!(timeout.as_u64().is_some_and(|ms| ms >= 90), "p99 × 3 after 20 runs: {timeout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_holds_on_to_its_place_has_it_while_nobody_carries_it_on() {
    let host = TestHost::new().await;
    let file = limited("{limit: 1, key: input.customer, hold_while_waiting: true}", ASK);
    let first = host.run(&file, r#"{"customer": "ann"}"#).await;
    assert_eq!(first.row.status, Status::Waiting);
    let host = host.reopen().await;
    let second = begin(&host, &file, r#"{"customer": "ann"}"#).await;
    let other = host.run(&file, r#"{"customer": "bob"}"#).await;
    assert_eq!(status(&host, &second).await, Status::Queued, "the place is taken, though its owner has left");
    assert_eq!(other.row.status, Status::Waiting, "another key has places of its own");
    let why = host.engine().why(second.clone()).await.unwrap();
    assert_eq!(why[0].reason, WhyReason::Concurrency { holders: vec![first.row.run.clone()] });
    let act = wonder_engine::Act::Cancel { reason: "enough".to_owned(), grace_ms: None };
    host.engine().act(first.row.run.clone(), act).await.unwrap();
    assert_eq!(host.settled(&second).await.row.status, Status::Waiting, "it has the place now");
}
