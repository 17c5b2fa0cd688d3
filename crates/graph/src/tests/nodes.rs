//! Nodes, tasks and large workflows.

use serde_json::json;

use super::{Draft, ix};
use crate::{Coordinated, NodeInput, Perform, Response, StepInput};
use wonder_lang::def::NodeTimeout;

fn texts(reads: &[wonder_lang::expr::Read]) -> Vec<String> {
    reads.iter().map(ToString::to_string).collect()
}

#[test]
fn an_action_on_a_node_gets_what_it_names() {
    let graph = Draft::graph()
        .act(
            "ask",
            "llm_call",
            json!({"prompt": "{{ input.q }} {{ state.plan.title }} {{ secret.key }}"}),
            json!({"timeout_ms": 9}),
        )
        .mocks(&["plan"])
        .nexts(&[("ask", "plan")])
        .ok();
    let NodeInput::Named(reads) = &graph.nodes[0].input else { panic!("{:?}", graph.nodes[0].input) };
    assert_eq!(texts(reads), ["input.q", "state.plan.title"]);
    let task = graph.nodes[0].task().unwrap();
    assert!(matches!(task.steps[0].input, StepInput::Whole { mapped: false }));
}

#[test]
fn steps_on_a_node_get_what_they_name_of_it() {
    let graph = Draft::graph()
        .action("one", json!({"kind": "mock", "implementation": {"outcomes": [{"output": "{{ input.q }} {{ run.id }}"}]}}))
        .action("two", json!({"kind": "assert", "implementation": {"that": "state.one != input.bad"}}))
        .task("work", json!({"steps": [{"ref": "one", "action": "one"}, {"ref": "two", "action": "two"}]}))
        .node("work", json!({"task": "work", "inline": "steps"}))
        .ok();
    let NodeInput::NamedInput(reads) = &graph.nodes[0].input else { panic!("{:?}", graph.nodes[0].input) };
    assert_eq!(texts(reads), ["input.bad", "input.q", "run.id"]);
    assert!(matches!(graph.nodes[0].perform, Perform::Worker(_)));
}

#[test]
fn a_lone_coordinated_action_is_the_coordinators() {
    let graph = Draft::graph()
        .act("set", "update_context", json!({"set": {"x": "1", "output.y": "state.x + 1"}}), json!({}))
        .act("call", "workflow_call", json!({"workflow": {"from_context": "state.x"}}), json!({}))
        .nexts(&[("set", "call")])
        .ok();
    let set = &graph.nodes[0];
    let Perform::Coordinator { task, inline: true } = &set.perform else { panic!("{:?}", set.perform) };
    let Some(Coordinated::UpdateContext { set: writes }) = &task.steps[0].action.coordinated else {
        panic!("no set")
    };
    assert_eq!(
        writes.iter().map(|write| write.target.to_string()).collect::<Vec<_>>(),
        ["output.y", "state.x"]
    );
    assert!(set.writes_nothing);
    assert!(matches!(graph.nodes[1].input, NodeInput::Empty) && !graph.nodes[1].writes_nothing);
}

#[test]
fn transitions_are_looked_at_by_priority() {
    let graph = Draft::graph()
        .mocks(&["a", "b", "c", "d"])
        .next("a", "b", json!({"condition": "has(state.x)"}))
        .next("a", "c", json!({"priority": -1, "condition": "result.y"}))
        .next("a", "d", json!({"ref": "last"}))
        .ok();
    let order: Vec<&str> = graph.nodes[0].out.iter().map(|ix| &*graph.transition(*ix).reference).collect();
    assert_eq!(order, ["a.1", "a.0", "last"]);
}

#[test]
fn on_timeout_retry_is_a_rule_that_comes_before_the_written_ones() {
    let graph =
        Draft::graph().mock("a", json!({"on_timeout": "retry", "on_error": [{"do": "escalate"}]})).ok();
    let node = graph.node(ix(&graph, "a"));
    assert_eq!(node.on_timeout, Some(NodeTimeout::Retry));
    let [first, second] = &node.on_error[..] else { panic!("{:?}", node.on_error) };
    assert!(matches!(first.response, Response::Retry) && first.max == 3);
    assert_eq!(first.when.as_ref().unwrap().text(), "error.kind == 'timeout'");
    assert!(matches!(second.response, Response::Escalate) && second.max == 1);
}

#[test]
fn a_chain_of_100_000_nodes_builds() {
    let len = 100_000;
    let mut draft = Draft::graph()
        .action("ask", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .task("ask", json!({"steps": [{"ref": "only", "action": "ask"}]}));
    for at in 0..len {
        draft = draft.node(&format!("n{at}"), json!({"task": "ask", "output_mapping": {"last": "result"}}));
    }
    for at in 1..len {
        draft = draft.next(&format!("n{}", at - 1), &format!("n{at}"), json!({}));
    }
    let graph = draft.ok();
    assert_eq!(graph.nodes.len(), len);
}

#[test]
fn a_dag_of_100_000_nodes_on_one_builds() {
    let len = 100_000;
    let mut draft = Draft::dag()
        .action("ask", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .task("ask", json!({"steps": [{"ref": "only", "action": "ask"}]}));
    let needs: Vec<String> = (0..len).map(|at| format!("n{at}")).collect();
    for name in &needs {
        draft = draft.node(name, json!({"task": "ask"}));
    }
    let graph = draft.node("end", json!({"task": "ask", "needs": needs})).ok();
    assert_eq!(graph.units[len].needs.len(), len);
}
