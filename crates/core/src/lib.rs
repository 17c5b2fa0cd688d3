//! The coordinator of Wonder: a value and a few functions that decide what a workflow does next.
//!
//! It has no clock, no randomness, no IO and no async. Time is an argument, the seed of all jitter is in the
//! first event, ids come from counters, and hosts supply the rest: the embedded host with tokio and SQLite,
//! the Temporal host, and the simulator, which drives this crate on virtual time.
//!
//! Three alphabets. A host says [`Input`]s. The run records [`Event`]s, which alone change it and alone are
//! stored. It asks for [`Command`]s, which a host performs once the events are durable. An input that does
//! not fit is a [`Rejection`] and changes nothing.
//!
//! A complete toy host, which keeps its log in a vector and its clock in a variable:
//!
//! ```
//! use std::sync::Arc;
//! use wonder_core::execution::{ExecutionRules, Next, TaskExecution, Try, TryFailure};
//! use wonder_core::graph::{Graph, Work};
//! use wonder_core::{Command, Event, Input, Run, StartRun, Time, Value, mock, reserve};
//!
//! // A reader makes this from a file; here it is written out: one node that greets.
//! let bundle = serde_json::from_str(r#"{
//!     "workflow": {"name": "hello", "nodes": [{"ref": "greet", "task": "greet"}]},
//!     "tasks": {"greet": {"name": "greet", "steps": [{"ref": "say", "action": "say"}]}},
//!     "actions": {"say": {"name": "say", "kind": "mock", "implementation":
//!         {"outcomes": [{"output": {"text": "Hello, {{ input.name }}"}}]}}}
//! }"#).unwrap();
//! let (graph, _warnings) = Graph::build(Arc::new(bundle)).unwrap();
//!
//! let mut run = Run::new(Arc::new(graph));
//! let mut log: Vec<Event> = Vec::new();
//! let mut now = Time(0);
//! let input = Value::map([("name", Value::from("world"))]);
//! let mut inbox = vec![Input::StartRun(Box::new(StartRun::new("run-1", input)))];
//!
//! while let Some(input) = inbox.pop() {
//!     let step = run.handle(input, now).unwrap();
//!     log.extend(step.events); // first durable ...
//!     for command in step.commands { // ... then performed
//!         let Command::RunTask(order) = command else { continue };
//!         let task = run.graph().tasks[&order.task].clone();
//!         let mut task = TaskExecution::start(&order, task, ExecutionRules::of_worker(&order, 0, None));
//!         let outcome = loop {
//!             let (result, spend) = match task.next(|call| reserve::worst_try(&call.action)) {
//!                 Next::Done(outcome) => break outcome,
//!                 Next::Try(Try { call, number, .. }) => {
//!                     let Some(Work::Mock(script)) = &call.action.work else {
//!                         panic!("this host can only mock");
//!                     };
//!                     let answer = mock::outcome(script, number, &call.scope);
//!                     (answer.result.map_err(TryFailure::answered), answer.spend)
//!                 }
//!             };
//!             if let Some(again) = task.tried(result, &spend) {
//!                 now = now.plus(again.delay_ms);
//!             }
//!         };
//!         let report = task.report(outcome, 0);
//!         inbox.push(Input::TaskFinished { token: order.token, attempt: order.attempt, report });
//!     }
//!     now = now.plus(1);
//!     if inbox.is_empty() && run.next_deadline().is_some_and(|at| at <= now) {
//!         inbox.push(Input::Wake);
//!     }
//! }
//!
//! assert_eq!(run.output().unwrap().to_string(), r#"{"text":"Hello, world"}"#);
//! // After a crash: the same events give the same run.
//! assert_eq!(Run::replay(run.graph().clone(), &log).unwrap().state(), run.state());
//! ```

pub mod backoff;
mod child_start;
pub mod command;
mod decide;
pub mod default_rules;
pub mod event;
pub mod execution;
pub mod input;
pub mod lifecycle;
pub mod mock;
pub mod reserve;
pub mod run;
mod scope;
pub mod state;
pub mod task;

// What a run speaks and what it runs on, so that a host needs to name one crate only.
pub use wonder_graph as graph;
pub use wonder_graph::schedule;
pub use wonder_lang::{
    artifact, command_line, cost, def, diff, error, expr, foreign, limits, path, problem, schema,
    strict_json, template, terms, time, value, visible,
};

pub use child_start::{child_id, child_input, child_refused, child_start, child_unknown, is_within};
pub use command::Command;
pub use error::{ErrorKind, Failure};
pub use event::Event;
pub use input::{Input, Rejection, StartRun};
pub use lifecycle::{RunStatus, TokenStatus};
pub use run::{Fork, Move, ReplayError, Run, Step};
pub use time::Time;
pub use value::Value;
