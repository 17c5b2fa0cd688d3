//! Fan-outs and fan-ins: which group each fan-in closes.

use serde_json::{Value as Json, json};

use super::{Draft, group, ix};
use crate::flow::Flow;
use crate::shape::Shape;
use crate::{Graph, JoinTimeout, MergeInto, Source};
use wonder_lang::def::{FanOut, MergeStrategy, Strategy};

fn sync() -> Json {
    json!({"synchronization": {"merge": {"target": "state.all"}}})
}

fn spawn(count: u32) -> Json {
    json!({"spawn_count": count})
}

/// The stacks of a node as text: `[a.0 b] []`.
fn stacks(graph: &Graph, reference: &str) -> String {
    let shape = Shape::of(&graph.bundle, &graph.mutations);
    let flow = Flow::of(&shape, &shape.starts());
    let name = |source: &Source| match source {
        Source::Node(ix) => graph.node(*ix).reference.to_string(),
        Source::Transition(ix) => graph.transition(*ix).reference.to_string(),
    };
    let stacks = flow.stacks_of(ix(graph, reference).0 as usize);
    let texts: Vec<String> = stacks
        .iter()
        .map(|stack| format!("[{}]", stack.iter().map(name).collect::<Vec<_>>().join(" ")))
        .collect();
    texts.join(" ")
}

#[test]
fn a_fan_in_closes_the_innermost_group() {
    let graph = Draft::graph()
        .mocks(&["start", "outer", "inner", "join_inner", "end"])
        .next("start", "outer", spawn(2))
        .next("outer", "inner", spawn(3))
        .next("inner", "join_inner", sync())
        .next("join_inner", "end", sync())
        .ok();
    assert_eq!(stacks(&graph, "inner"), "[start.0 outer.0]");
    assert_eq!(stacks(&graph, "join_inner"), "[start.0]");
    assert_eq!(stacks(&graph, "end"), "[]");
    assert_eq!(graph.joins[&group(&graph, "outer.0")].target, ix(&graph, "join_inner"));
    assert_eq!(graph.joins[&group(&graph, "start.0")].target, ix(&graph, "end"));
}

#[test]
fn sibling_group_names_a_node_or_a_transition() {
    for name in ["far", "start"] {
        let mut named = sync();
        named["synchronization"]["sibling_group"] = name.into();
        let graph = Draft::graph()
            .mocks(&["start", "outer", "inner", "end"])
            .next("start", "outer", json!({"ref": "far", "spawn_count": 2}))
            .next("outer", "inner", spawn(3))
            .next("inner", "end", named)
            .ok();
        assert_eq!(stacks(&graph, "end"), "[]", "{name}");
        assert_eq!(graph.joins.keys().copied().collect::<Vec<_>>(), [group(&graph, "far")]);
        let sync = graph.transitions[2].sync.unwrap();
        assert_eq!(sync.group, Some(group(&graph, "far")));
    }
}

#[test]
fn fan_out_all_is_a_group_of_its_node_and_failures_leave_it() {
    let graph = Draft::graph()
        .mock("start", json!({"fan_out": "all"}))
        .mocks(&["a", "b", "end", "rescue"])
        .nexts(&[("start", "a"), ("start", "b")])
        .next("start", "rescue", json!({"on": "failure"}))
        .next("a", "end", sync())
        .next("b", "end", json!({"synchronization": {}}))
        .ok();
    assert_eq!(graph.node(ix(&graph, "start")).fan_out, FanOut::All);
    assert_eq!(stacks(&graph, "a"), "[start]");
    assert_eq!(stacks(&graph, "rescue"), "[]");
    assert_eq!(stacks(&graph, "end"), "[]");
    let join = &graph.joins[&group(&graph, "start")];
    assert_eq!((join.target, join.strategy), (ix(&graph, "end"), Strategy::All));
    let MergeInto::Context { target, strategy } = &join.merge.as_ref().unwrap().into else {
        panic!("no merge")
    };
    assert_eq!((target.to_string().as_str(), *strategy), ("state.all", MergeStrategy::Append));
}

#[test]
fn loops_are_finite() {
    // A loop around a whole fan-out and fan-in, and one that fans out again inside its own branch.
    let graph = Draft::graph()
        .mocks(&["start", "work", "judge", "end"])
        .next("start", "work", spawn(2))
        .next("work", "work", json!({"spawn_count": 2, "condition": "has(state.again)", "max_iterations": 2}))
        .next("work", "judge", sync())
        .next("judge", "start", json!({"condition": "has(state.again)"}))
        .next("judge", "end", json!({}))
        .ok();
    assert_eq!(stacks(&graph, "work"), "[start.0] [start.0 work.0]");
    assert_eq!(stacks(&graph, "judge"), "[] [start.0]");
    assert_eq!(graph.joins.len(), 2);
}

#[test]
fn gotos_keep_the_groups_of_their_node() {
    let graph = Draft::graph()
        .mocks(&["start"])
        .mock("work", json!({"on_error": [{"do": {"goto": "other"}}]}))
        .mocks(&["other", "end"])
        .next("start", "work", spawn(2))
        .next("work", "end", sync())
        .next("other", "end", json!({"synchronization": {}}))
        .ok();
    assert_eq!(stacks(&graph, "other"), "[start.0]");
    assert_eq!(graph.joins.len(), 1);
}

#[test]
fn a_fan_in_has_one_target_and_one_description() {
    let two = |to: &str, second: Json| {
        Draft::graph()
            .mocks(&["start", "work", "end", "other"])
            .next("start", "work", spawn(2))
            .next("work", "end", json!({"condition": "has(state.x)", "synchronization": {"strategy": "any"}}))
            .next("work", to, json!({"synchronization": second}))
            .next("end", "other", json!({}))
            .codes()
    };
    assert_eq!(two("other", json!({"strategy": "any"})), ["E0121"]);
    assert_eq!(two("end", json!({"strategy": {"m_of_n": 2}})), ["E0122"]);
    assert_eq!(two("end", json!({})), [""; 0]);
    assert_eq!(two("end", json!({"strategy": "any"})), [""; 0]);
}

#[test]
fn the_default_timeout_of_a_fan_in_follows_what_is_in_the_branch() {
    let timeout = |kind: &str, implementation: Json, keys: Json| {
        let graph = Draft::graph()
            .mocks(&["start"])
            .act("work", kind, implementation, keys)
            .mocks(&["end"])
            .next("start", "work", spawn(2))
            .next("work", "end", sync())
            .ok();
        graph.joins[&group(&graph, "start.0")].timeout
    };
    let mock = || json!({"outcomes": [{}]});
    assert_eq!(timeout("mock", mock(), json!({})), JoinTimeout::Computed { longest_action_ms: None });
    assert_eq!(timeout("human_gate", json!({}), json!({})), JoinTimeout::Never);
    assert_eq!(
        timeout("sleep", json!({"for": "1s"}), json!({})),
        JoinTimeout::Computed { longest_action_ms: None }
    );
    assert_eq!(timeout("mock", mock(), json!({"on_error": [{"do": "escalate"}]})), JoinTimeout::Never);
    let written = Draft::graph()
        .mocks(&["start", "work", "end"])
        .next("start", "work", spawn(2))
        .next("work", "end", json!({"synchronization": {"timeout_ms": 5}}))
        .ok();
    assert_eq!(written.joins[&group(&written, "start.0")].timeout, JoinTimeout::Fixed(5));
}

#[test]
fn many_nested_groups_are_refused_and_not_slow() {
    let mut draft = Draft::graph().mock("n0", json!({}));
    for at in 1..300 {
        let (from, to) = (format!("n{}", at - 1), format!("n{at}"));
        draft = draft.mock(&to, json!({})).next(&from, &to, spawn(2));
    }
    assert_eq!(draft.codes(), ["E0128"]);
}
