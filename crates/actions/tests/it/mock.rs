//! Mocks: which outcome of the script a try gets, and the delay as real time.

use wonder_actions::{Settings, Stream, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;
use wonder_core::input::TaskReport;

use crate::support::{assert_failed, failure, job, perform, result};

const SCRIPT: &str =
    r#"{mock: {outcomes: [{output: {n: 0}}, {output: {n: 1}}, {output: {n: 2}}, {output: {n: 3}}]}}"#;

/// The number of the outcome that an order gets which has so many tries before it.
async fn number(worker: &Worker, tries_before: u32) -> i64 {
    let (mut job, _output) = job(SCRIPT, "{}");
    job.order.tries_before = tries_before;
    result(worker.perform(job).await).get("n").and_then(Value::as_i64).unwrap()
}

#[tokio::test]
async fn outcomes_are_counted_by_the_order_and_not_by_the_worker() {
    let worker = Worker::new(Settings::default());
    assert_eq!(number(&worker, 0).await, 0);
    assert_eq!(number(&worker, 2).await, 2, "tries that another worker made count");
    assert_eq!(number(&worker, 2).await, 2, "the same attempt, dispatched again after a crash");
    assert_eq!(number(&Worker::new(Settings::default()), 9).await, 3, "the last repeats");
}

fn retrying(error: &str, policy: &str) -> String {
    format!(
        r#"{{mock: {{outcomes: [{{error: {error}}}, {{error: {error}}}, {{output: {{ok: true}}}}],
                     execution: {{retry_policy: {{initial_delay: 1ms{policy}}}}}}}}}"#
    )
}

#[tokio::test]
async fn what_the_world_breaks_is_tried_again_within_the_action() {
    for error in ["network", "rate_limited", "provider_error"] {
        let (job, mut output) = job(&retrying(error, ", max_attempts: 3"), "{}");
        let report = Worker::new(Settings::default()).perform(job).await;
        assert_eq!(report.tries, 2, "{error}");
        assert_eq!(report.spend.calls, 1, "a call and its tries are one call");
        result(report);
        let notes = output.rest(Stream::Note);
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("try 2 of 3 in ") && notes[0].ends_with("ms: as scripted"), "{notes:?}");
    }
}

#[tokio::test]
async fn tries_end_where_the_policy_says_and_go_on_with_the_next_attempt() {
    let node = retrying("network", ", max_attempts: 2");
    let worker = Worker::new(Settings::default());
    let (first, _output) = job(&node, "{}");
    let report = worker.perform(first).await;
    assert_eq!(report.tries, 1);
    assert_failed(report, ErrorKind::Network, "as scripted");
    let (mut second, _output) = job(&node, "{}");
    second.order.attempt = 2;
    second.order.tries_before = 2;
    result(worker.perform(second).await);
    let report = perform(&retrying("network", ", max_attempts: 1"), "{}").await;
    assert_eq!(report.tries, 0, "max_attempts: 1 turns tries off");
    assert_failed(report, ErrorKind::Network, "");
}

#[tokio::test]
async fn all_other_failures_are_the_tasks_to_answer() {
    let again = [ErrorKind::Network, ErrorKind::RateLimited, ErrorKind::ProviderError, ErrorKind::Overloaded];
    for kind in ErrorKind::ALL.into_iter().filter(|kind| !again.contains(kind)) {
        let report = perform(&retrying(kind.as_str(), ", max_attempts: 3"), "{}").await;
        assert_eq!(report.tries, 0, "{kind}");
        assert_failed(report, kind, "as scripted");
    }
}

#[tokio::test]
async fn what_must_happen_once_is_not_tried_twice() {
    let node = r#"{mock: {outcomes: [{error: network}, {output: {}}], effects: once}}"#;
    let report = perform(node, "{}").await;
    assert_eq!(report.tries, 0);
    assert_failed(report, ErrorKind::Network, "");
}

#[tokio::test]
async fn usage_is_summed_over_steps_and_tries() {
    let usage = "usage: {input_tokens: 3, output_tokens: 2, cost_usd: 0.5}";
    let node = format!(
        r#"{{steps: [{{ref: a, mock: {{output: {{}}, {usage}}}}}, {{ref: b, mock: {{output: {{}}, {usage}, delay: 20ms}}}}]}}"#
    );
    let TaskReport { spend, .. } = perform(&node, "{}").await;
    assert_eq!(
        (spend.calls, spend.input_tokens, spend.output_tokens, spend.usd_micros),
        (2, 6, 4, 1_000_000)
    );
    assert!(spend.duration_ms >= 20, "{spend:?}");
}

#[tokio::test]
async fn a_mock_takes_as_long_as_it_says_and_no_longer_than_it_may() {
    let failed = failure(perform("{mock: {output: {}, delay: 1h, timeout: 50ms}}", "{}").await);
    assert_eq!(failed.kind, ErrorKind::Timeout);
    assert_eq!(failed.message, "mock took longer than 50 ms");
    assert_eq!(failed.details.to_string(), r#"{"layer":"action","timeout_ms":50}"#);
}
