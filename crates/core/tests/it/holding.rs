//! A host may hold dispatch to drain a run before it hands it over; nothing of that is a fact of the run.

use std::sync::Arc;

use serde_json::json;
use wonder_core::graph::Graph;
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::{Command, Input, Rejection, Run, RunStatus, StartRun, Time, TokenStatus, Value};

fn chain() -> Arc<Graph> {
    let bundle = json!({
        "workflow": {
            "name": "chain",
            "nodes": [{"ref": "a", "task": "t"}, {"ref": "b", "task": "t"}],
            "transitions": [{"from": "a", "to": "b"}],
        },
        "tasks": {"t": {"name": "t", "steps": [{"ref": "s", "action": "s"}]}},
        "actions": {"s": {"name": "s", "kind": "mock", "implementation": {"outcomes": [{}]}}},
    });
    let (graph, _) = Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())).unwrap();
    Arc::new(graph)
}

fn dispatched(commands: &[Command]) -> Vec<&str> {
    let of = |command: &'_ Command| matches!(command, Command::RunTask(_));
    commands
        .iter()
        .filter(|command| of(command))
        .map(|command| match command {
            Command::RunTask(order) => &*order.node,
            _ => unreachable!("filtered"),
        })
        .collect()
}

#[test]
fn what_is_held_shows_nowhere_and_goes_out_when_released() {
    let mut run = Run::new(chain());
    let start = StartRun::new("run", Value::empty_map());
    let step = run.handle(Input::StartRun(Box::new(start)), Time(0)).unwrap();
    let Command::RunTask(order) = &step.commands[0] else { panic!("{step:?}") };
    let (token, attempt) = (order.token, order.attempt);
    let deadline = run.next_deadline();

    run.hold_dispatch();
    let outcome = TaskOutcome::Completed { result: Value::empty_map() };
    let report = TaskReport::new(outcome, Default::default());
    let step = run.handle(Input::TaskFinished { token, attempt, report }, Time(10)).unwrap();
    assert_eq!(dispatched(&step.commands), [""; 0]);
    assert_eq!(run.status(), RunStatus::Running, "it is no pause");
    assert_eq!(run.next_deadline(), deadline, "clocks go on");
    let waiting: Vec<_> = run.tokens().filter(|token| token.is_live()).map(|token| token.status()).collect();
    assert_eq!(waiting, [TokenStatus::Pending]);
    assert!(run.owed().is_empty(), "nothing is out");

    let step = run.release_dispatch(Time(20));
    assert_eq!(dispatched(&step.commands), ["b"]);
}

#[test]
fn what_goes_between_a_host_and_a_run_travels_as_json() {
    let mut run = Run::new(chain());
    let start = Input::StartRun(Box::new(StartRun::new("run", Value::empty_map())));
    let back: Input = serde_json::from_value(serde_json::to_value(&start).unwrap()).unwrap();
    assert_eq!(back, start);
    let step = run.handle(start, Time(0)).unwrap();
    for command in &step.commands {
        let back: Command = serde_json::from_value(serde_json::to_value(command).unwrap()).unwrap();
        assert_eq!(&back, command);
    }
    let again = Input::Retry { by: "ann".into(), version: None };
    let rejection = run.handle(again, Time(1)).unwrap_err();
    let back: Rejection = serde_json::from_value(serde_json::to_value(&rejection).unwrap()).unwrap();
    assert_eq!(back, rejection);
}
