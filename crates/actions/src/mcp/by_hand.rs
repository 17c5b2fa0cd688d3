//! A call that is made by hand: a task of one step that belongs to no run.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wonder_core::command::{Overrides, TaskOrder};
use wonder_core::cost::Allowance;
use wonder_core::def::Name;
use wonder_core::event::TokenId;
use wonder_core::graph::{Graph, ModelTable, Task, Work};
use wonder_core::value::Value;

use crate::job::{Job, OutputLine, Sink};

const NAME: &str = "call";

pub(crate) fn lone_call(table: ModelTable, (server, tool): (&Name, &str), arguments: Value) -> Job {
    let order = TaskOrder {
        run: "by-hand".into(),
        token: TokenId(1),
        attempt: 1,
        node: NAME.into(),
        task: NAME.into(),
        version: None,
        input: Value::map([("tool", Value::str(tool)), ("arguments", arguments)]),
        feedback: Value::Null,
        overrides: Overrides::default(),
        generation: 1,
        tries_before: 0,
        prices: Default::default(),
        allowance: Allowance::default(),
        may_mutate: false,
        timeout_ms: None,
        rank: 0,
    };
    let (workdir, cancel, sink) = (PathBuf::new(), CancellationToken::new(), Arc::new(Nobody));
    Job { order: Box::new(order), task: task(table, server), workdir, cancel, sink, seed: 0 }
}

/// Compiled from what a file would have stored, with the servers of this table.
fn task(table: ModelTable, server: &Name) -> Arc<Task> {
    let stored = serde_json::json!({
        "workflow": {"name": NAME, "nodes": [{"ref": NAME, "task": NAME, "inline": "action",
            "input_mapping": {"tool": "input.tool", "arguments": "input.arguments"}}]},
        "tasks": {NAME: {"name": NAME, "steps": [{"ref": NAME, "action": NAME}]}},
        "actions": {NAME: {"name": NAME, "kind": "mcp_tool", "effects": "none", "implementation":
            {"server": &**server, "tool": "{{ tool }}", "arguments": "{{ arguments }}"}}},
    });
    let bundle = serde_json::from_value(stored).expect("what stands above is a bundle");
    let graph = Graph::compile(&Arc::new(bundle)).expect("what stands above compiles");
    let mut task = Task::clone(&graph.tasks[NAME]);
    for step in &mut task.steps {
        let action = Arc::make_mut(&mut step.action);
        if let Some(Work::McpTool(call)) = &mut action.work {
            call.table = Arc::new(table.clone());
        }
    }
    Arc::new(task)
}

struct Nobody;

impl Sink for Nobody {
    fn line(&self, _line: OutputLine) {}
}
