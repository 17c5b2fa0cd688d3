//! What a worker does about failed tries, the time and the money of a task.

use super::*;
use crate::command::{Command, Overrides};
use crate::event::TokenId;
use crate::graph::Graph;
use crate::{Input, Run, StartRun, Time};

/// The task of a workflow with one mock that has this policy and these effects.
fn task(action: serde_json::Value) -> Arc<Task> {
    let mut whole = serde_json::json!({
        "name": "a", "kind": "mock", "implementation": {"outcomes": [{"output": {}}]},
    });
    whole.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
    let bundle = serde_json::json!({
        "workflow": {"name": "w", "nodes": [{"ref": "n", "task": "t"}]},
        "tasks": {"t": {"name": "t", "steps": [{"ref": "s", "action": "a"}]}},
        "actions": {"a": whole},
    });
    let (graph, _) = Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())).unwrap();
    graph.tasks["t"].clone()
}

fn order(allowance: Allowance, tries_before: u32) -> TaskOrder {
    TaskOrder {
        run: "r".into(),
        token: TokenId(1),
        attempt: 1,
        node: "n".into(),
        task: "t".into(),
        version: None,
        input: Value::Null,
        feedback: Value::Null,
        overrides: Overrides::default(),
        generation: 0,
        tries_before,
        prices: Default::default(),
        allowance,
        may_mutate: false,
        timeout_ms: None,
        rank: 0,
    }
}

fn started(action: serde_json::Value) -> TaskExecution {
    let order = order(Allowance::default(), 0);
    TaskExecution::start(&order, task(action), ExecutionRules::of_worker(&order, 7, None))
}

fn network() -> Failure {
    Failure::new(ErrorKind::Network, "it broke")
}

/// The wait before another try of an action that failed like this, as often as it is tried.
fn waits(action: serde_json::Value, failed: &TryFailure) -> Vec<u64> {
    let mut execution = started(action);
    let mut waits = Vec::new();
    while let Next::Try(_) = execution.next(|_| Allowance::default()) {
        waits.extend(execution.tried(Err(failed.clone()), &Spend::default()).map(|again| again.delay_ms));
    }
    waits
}

fn outcome(execution: &mut TaskExecution) -> TaskOutcome {
    match execution.next(|_| Allowance::default()) {
        Next::Done(outcome) => outcome,
        Next::Try(next) => panic!("{next:?}"),
    }
}

fn failure(outcome: TaskOutcome) -> Failure {
    match outcome {
        TaskOutcome::Failed { failure, .. } => failure,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn only_the_worlds_faults_are_tried_again() {
    let again = [ErrorKind::Network, ErrorKind::RateLimited, ErrorKind::ProviderError, ErrorKind::Overloaded];
    for kind in ErrorKind::ALL {
        let failed = TryFailure::answered(Failure::new(kind, "it broke"));
        let tried = !waits(serde_json::json!({}), &failed).is_empty();
        assert_eq!(tried, again.contains(&kind), "{kind}");
    }
    for (status, tried) in [(400, false), (401, false), (404, false), (500, true), (503, true)] {
        let failed =
            TryFailure::answered(Failure::new(ErrorKind::HttpStatus, "it broke").with_status(status));
        assert_eq!(!waits(serde_json::json!({}), &failed).is_empty(), tried, "{status}");
    }
}

#[test]
fn nothing_written_means_three_tries_a_second_and_two_apart() {
    let waits = waits(serde_json::json!({}), &TryFailure::unknown(network()));
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert!((500..=1_000).contains(&waits[0]) && (1_000..=2_000).contains(&waits[1]), "{waits:?}");
}

#[test]
fn a_server_that_says_when_is_heard_up_to_ten_minutes() {
    for (asked, waited) in [(30_000, 30_000), (3_600_000, 600_000)] {
        let failed = Failure::new(ErrorKind::RateLimited, "busy").with_retry_after_ms(asked);
        assert_eq!(waits(serde_json::json!({}), &TryFailure::answered(failed)), [waited, waited]);
    }
}

#[test]
fn what_must_happen_once_is_repeated_only_if_nothing_went_out() {
    let once = || serde_json::json!({"effects": "once"});
    assert_eq!(waits(once(), &TryFailure::from(network())).len(), 2);
    assert_eq!(waits(once(), &TryFailure::answered(network())).len(), 0);
    for (effects, kind) in [("once", ErrorKind::OutcomeUnknown), ("idempotent", ErrorKind::Network)] {
        let mut execution = started(serde_json::json!({"effects": effects}));
        while let Next::Try(_) = execution.next(|_| Allowance::default()) {
            execution.tried(Err(TryFailure::unknown(network())), &Spend::default());
        }
        let failed = failure(outcome(&mut execution));
        assert_eq!(failed.kind, kind);
        assert_eq!(failed.cause.is_some(), effects == "once", "what broke it is told");
    }
}

#[test]
fn tries_are_numbered_on_from_the_order_and_are_one_call() {
    let order = order(Allowance::default(), 4);
    let rules = ExecutionRules::of_worker(&order, 7, None);
    let mut execution = TaskExecution::start(&order, task(serde_json::json!({})), rules);
    let one = Spend { calls: 1, usd_micros: 10, ..Spend::default() };
    for (number, first) in [(4, true), (5, false)] {
        let Next::Try(next) = execution.next(|_| Allowance::default()) else { panic!("it is to be tried") };
        assert_eq!((next.number, next.first), (number, first));
        let result = if first { Err(TryFailure::answered(network())) } else { Ok(Value::Null) };
        assert_eq!(execution.tried(result, &one).is_some(), first);
    }
    let outcome = outcome(&mut execution);
    let report = execution.report(outcome, 9);
    assert_eq!((report.spend.calls, report.spend.usd_micros, report.tries), (1, 20, 1));
    assert_eq!(report.spend.duration_ms, 9);
}

#[test]
fn no_try_is_made_that_may_cost_more_than_is_left() {
    let order = order(Allowance { usd_micros: 15, ..Allowance::default() }, 0);
    let rules = ExecutionRules::of_worker(&order, 7, None);
    let mut execution = TaskExecution::start(&order, task(serde_json::json!({})), rules);
    let worst = |_: &ActionCall| Allowance { usd_micros: 10, ..Allowance::default() };
    assert!(matches!(execution.next(worst), Next::Try(_)));
    let spend = Spend { usd_micros: 10, calls: 1, ..Spend::default() };
    assert_eq!(execution.tried(Err(TryFailure::answered(network())), &spend), None);
    let failed = failure(outcome(&mut execution));
    assert!(failed.is_at_allowance());
    assert_eq!(failed.cause.map(|cause| cause.kind), Some(ErrorKind::Network));
}

#[test]
fn a_task_that_is_stopped_keeps_what_it_spent() {
    let mut execution = started(serde_json::json!({"execution": {"timeout_ms": 50}}));
    let spend = Spend { usd_micros: 3, ..Spend::default() };
    assert!(matches!(execution.next(|_| Allowance::default()), Next::Try(_)));
    assert!(execution.tried(Err(TryFailure::answered(network())), &spend).is_some());
    execution.stop(TaskOutcome::Cancelled, &spend);
    assert_eq!(outcome(&mut execution), TaskOutcome::Cancelled);
    assert_eq!(execution.report(TaskOutcome::Cancelled, 0).spend.usd_micros, 6);

    let mut execution = started(serde_json::json!({"execution": {"timeout_ms": 50}}));
    assert!(matches!(execution.next(|_| Allowance::default()), Next::Try(_)));
    execution.action_timed_out(&spend);
    let failed = failure(outcome(&mut execution));
    assert_eq!((failed.kind, failed.timeout_ms()), (ErrorKind::Timeout, Some(50)));
}

/// The one order among these commands.
fn ordered(commands: Vec<Command>) -> TaskOrder {
    let orders = commands.into_iter().filter_map(|command| match command {
        Command::RunTask(order) => Some(*order),
        _ => None,
    });
    orders.last().expect("a task is ordered")
}

#[test]
fn the_tries_of_earlier_attempts_are_in_the_log_and_so_in_every_later_order() {
    let bundle = serde_json::json!({
        "workflow": {"name": "w", "nodes": [{"ref": "n", "task": "t", "on_error": [{"do": "retry", "max": 1}]}]},
        "tasks": {"t": {"name": "t", "steps": [{"ref": "s", "action": "a"}]}},
        "actions": {"a": {"name": "a", "kind": "mock", "implementation": {"outcomes": [{"output": {}}]}}},
    });
    let (graph, _) = Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())).unwrap();
    let graph = Arc::new(graph);
    let mut run = Run::new(graph.clone());
    let started = run.handle(Input::StartRun(Box::new(StartRun::new("r", Value::Null))), Time(0)).unwrap();
    let mut log = started.events;
    let first = ordered(started.commands);
    assert_eq!((first.attempt, first.tries_before), (1, 0));
    let outcome = TaskOutcome::Failed { failure: network(), retry: false, step: None };
    let report = TaskReport { tries: 2, ..TaskReport::new(outcome, Spend::default()) };
    let failed = Input::TaskFinished { token: first.token, attempt: 1, report };
    let failed = run.handle(failed, Time(1)).unwrap();
    let mut commands = failed.commands;
    log.extend(failed.events);
    if let Some(at) = run.next_deadline().filter(|_| commands.is_empty()) {
        let woken = run.handle(Input::Wake, at).unwrap();
        commands = woken.commands;
        log.extend(woken.events);
    }
    let second = ordered(commands);
    assert_eq!((second.attempt, second.tries_before), (2, 3), "three tries, of one attempt");
    let replayed = Run::replay(graph, &log).unwrap();
    assert_eq!(ordered(replayed.owed()), second, "after a crash it is the same order");
}
