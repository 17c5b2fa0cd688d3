//! The worker itself: time, cancellation, panics, and what it cannot do.

use std::sync::Arc;

use wonder_actions::{OutputLine, Secrets, Settings, Sink, Stream, Worker};
use wonder_core::Value;
use wonder_core::cost::Allowance;
use wonder_core::error::ErrorKind;
use wonder_core::input::{TaskOutcome, TaskReport};

use crate::support::{assert_failed, failure, job, json, perform, result, task};

#[tokio::test]
async fn steps_see_what_came_before_them() {
    let node = r#"{steps: [
        {ref: a, shell: "echo {{ input.x }}"},
        {ref: b, shell: "printf %s {{ state.a.stdout }}", output_mapping: {output.said: result.stdout}}]}"#;
    let (mut job, _output) = job(node, "{}");
    job.order.input = json(r#"{"x": "hello"}"#);
    let report = Worker::new(Settings::default()).perform(job).await;
    assert_eq!(result(report), json(r#"{"said":"hello\n"}"#));
}

#[tokio::test]
async fn the_time_of_a_task_covers_all_its_steps() {
    let node = "{steps: [{ref: a, mock: {output: {}}}, {ref: b, mock: {output: {}, delay: 1h}}]}";
    let (mut job, _output) = job(node, "{}");
    job.order.timeout_ms = Some(100);
    let report = Worker::new(Settings::default()).perform(job).await;
    assert_eq!(report.outcome, TaskOutcome::TimedOut { after_ms: 100 });
    assert_eq!(report.spend.calls, 1, "what was spent before counts");
    assert!(report.spend.duration_ms >= 100);
}

#[tokio::test]
async fn an_action_with_more_time_than_its_task_ends_with_the_task() {
    let (mut job, _output) =
        job("{mock: {output: {}, delay: 1h, timeout: 100ms}, on_error: [{do: skip}]}", "{}");
    job.order.timeout_ms = Some(100);
    let report = Worker::new(Settings::default()).perform(job).await;
    assert_eq!(report.outcome, TaskOutcome::TimedOut { after_ms: 100 });
}

#[tokio::test]
async fn an_actions_time_covers_its_tries_and_the_waits_between_them() {
    let node = "{mock: {error: network, timeout: 100ms, execution: {retry_policy: {max_attempts: 9, initial_delay: 1h, max_delay: 1h}}}}";
    assert_failed(perform(node, "{}").await, ErrorKind::Timeout, "mock took longer than 100 ms");
}

#[tokio::test]
async fn a_step_that_may_fail_does_not_end_the_task() {
    let node = r#"{steps: [
        {ref: a, mock: {output: {}, delay: 1h, timeout: 50ms}, on_failure: continue},
        {ref: b, mock: {output: {why: "{{ state._errors.a.kind }}"}}}]}"#;
    assert_eq!(result(perform(node, "{}").await).get("why"), Some(&Value::str("timeout")));
}

#[tokio::test]
async fn a_cancelled_task_says_so_and_starts_nothing() {
    let (job, _output) = job("{mock: {output: {}}}", "{}");
    job.cancel.cancel();
    let report = Worker::new(Settings::default()).perform(job).await;
    assert_eq!((report.outcome, report.spend.calls), (TaskOutcome::Cancelled, 0));
}

#[tokio::test]
async fn a_wait_between_tries_can_be_cancelled() {
    let node = "{mock: {error: network, execution: {retry_policy: {max_attempts: 2, initial_delay: 1h, max_delay: 1h}}}}";
    let (job, mut output) = job(node, "{}");
    let cancel = job.cancel.clone();
    let task = tokio::spawn(async move { Worker::new(Settings::default()).perform(job).await });
    output.line_with("try 2 of 2").await;
    cancel.cancel();
    let report = task.await.unwrap();
    assert_eq!((report.outcome, report.tries), (TaskOutcome::Cancelled, 0));
}

/// A task that may spend so many dollars' millionths, and what it reports.
async fn allowed(usd_micros: u64, node: &str) -> TaskReport {
    let (mut job, _output) = job(node, "{}");
    job.order.allowance = Allowance { usd_micros, ..Allowance::default() };
    Worker::new(Settings::default()).perform(job).await
}

#[tokio::test]
async fn tries_stop_where_the_next_may_cost_more_than_was_reserved() {
    let node = "{mock: {outcomes: [{error: network, usage: {cost_usd: 0.02}}, {output: {}, usage: {cost_usd: 0.01}}], execution: {retry_policy: {max_attempts: 3, backoff: none}}}}";
    let report = allowed(39_999, node).await;
    assert_eq!((report.spend.usd_micros, report.spend.calls, report.tries), (20_000, 1, 0));
    let failed = failure(report);
    assert_eq!(failed.kind, ErrorKind::BudgetExceeded);
    assert!(failed.message.contains("$0.02 of $0.039999 are spent"), "{}", failed.message);
    assert_eq!(failed.cause.map(|cause| cause.kind), Some(ErrorKind::Network));
    // What fits is tried, and without a bound everything is.
    for enough in [40_000, 0] {
        let report = allowed(enough, node).await;
        assert_eq!((report.spend.usd_micros, report.tries), (30_000, 1), "{enough}");
        assert_eq!(result(report), json("{}"));
    }
}

#[tokio::test]
async fn steps_stop_there_too_even_those_that_may_fail() {
    let node = r#"{steps: [
        {ref: a, mock: {outcomes: [{error: network, usage: {cost_usd: 0.01}}, {output: {}, usage: {cost_usd: 0.01}}], execution: {retry_policy: {max_attempts: 2, backoff: none}}}},
        {ref: b, mock: {output: {}, usage: {cost_usd: 0.01}}, on_failure: continue},
        {ref: c, mock: {output: {done: true}}}]}"#;
    let report = allowed(20_000, node).await;
    assert_eq!((report.spend.usd_micros, report.spend.calls), (20_000, 1));
    let TaskOutcome::Failed { failure, retry, step } = report.outcome else { panic!("{report:?}") };
    assert_eq!((failure.kind, retry, step.as_deref()), (ErrorKind::BudgetExceeded, false, Some("b")));
}

#[tokio::test]
async fn a_plan_is_read_as_people_write_it_where_there_may_be_one() {
    let settings = Settings { mutations: Some(wonder_spec::mutations), ..Settings::default() };
    let print = |plan: &str| format!("{{shell: {{command: [echo, '{plan}']}}}}");
    let performed = async |plan: &str, may_mutate: bool| {
        let (mut job, _output) = job(&print(plan), "{}");
        job.order.may_mutate = may_mutate;
        Worker::new(settings.clone()).perform(job).await
    };
    let short = r#"{"_mutations": {"nodes": {"x": {"task": "t", "budget": {"usd": 0.5}}}}}"#;
    let found = |result: Value| result.get("json").and_then(|json| json.get("_mutations").cloned()).unwrap();
    let read = found(result(performed(short, true).await)).to_string();
    assert!(read.contains(r#""usd_micros":500000"#) && read.contains(r#""ref":"x""#), "{read}");
    let kept = found(result(performed(short, false).await));
    assert_eq!(kept, *json(short).get("_mutations").unwrap(), "it is nobody's plan");
    let bad = r#"{"_mutations": {"nodes": {"x": {"tusk": "t"}}}}"#;
    assert_failed(performed(bad, true).await, ErrorKind::MutationRefused, "did you mean `task`?");
}

#[derive(Debug)]
struct Broken;

impl Secrets for Broken {
    fn find(&self, _name: &str) -> Option<String> {
        panic!("the safe is jammed")
    }
}

impl Sink for Broken {
    fn line(&self, line: OutputLine) {
        if line.stream == Stream::Stdout {
            panic!("nobody listens");
        }
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_like_any_other() {
    let settings = Settings { secrets: Arc::new(Broken), ..Settings::default() };
    let (secretive, _output) = job(r#"{shell: "echo {{ secret.KEY }}"}"#, "{}");
    let failed = failure(Worker::new(settings).perform(secretive).await);
    assert_eq!(failed.kind, ErrorKind::Internal);
    assert!(failed.message.contains("the safe is jammed"), "{}", failed.message);

    let node = r#"{steps: [{ref: a, shell: "echo x; sleep 1000", on_failure: continue}, {ref: b, mock: {output: {ok: true}}}]}"#;
    let (mut loud, _output) = job(node, "{}");
    loud.sink = Arc::new(Broken);
    let done = result(Worker::new(Settings::default()).perform(loud).await);
    assert_eq!(done.get("ok"), Some(&Value::Bool(true)), "only the step failed");
}

#[tokio::test]
async fn kinds_it_does_not_know_are_refused_by_name() {
    let node = "{human_gate: Well?}";
    let failed = failure(perform(node, "{}").await);
    assert_eq!(failed.kind, ErrorKind::Internal);
    assert!(failed.message.contains("cannot perform `human_gate`"), "{}", failed.message);
    let worker = Worker::new(Settings::default());
    for (node, can) in [
        (node, false),
        ("{mcp_tool: {server: s, tool: t}}", true),
        ("{artifact_read: a}", true),
        ("{mock: {output: {}}}", true),
        ("{shell: ls}", true),
        ("{http_request: 'http://a.example'}", true),
    ] {
        let kind = &task(node).steps[0].action.def.implementation;
        assert_eq!(worker.can_perform(kind), can, "{node}");
    }
}
