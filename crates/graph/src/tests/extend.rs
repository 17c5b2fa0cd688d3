//! What a run adds: checked like the file, and behind it.

use serde_json::{Value as Json, json};

use super::{Draft, codes_of, ix};
use crate::{Graph, Mutation, NodeIx, Perform, UnitIx};

fn added(by: &str, nodes: Json, transitions: Json) -> Mutation {
    serde_json::from_value(json!({"change": "nodes", "by": by, "nodes": nodes, "transitions": transitions}))
        .unwrap()
}

fn planner() -> Draft {
    Draft::graph()
        .action("ask", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .task("ask", json!({"steps": [{"ref": "only", "action": "ask"}]}))
        .mock("plan", json!({"may_mutate": {"max_nodes": 2}}))
        .mocks(&["end"])
        .nexts(&[("plan", "end")])
}

fn refs(graph: &Graph) -> Vec<String> {
    graph.nodes.iter().map(|node| node.reference.to_string()).collect()
}

#[test]
fn added_nodes_come_after_what_was_there() {
    let graph = planner().ok();
    let nodes = json!([{"ref": "x", "task": "ask"}, {"ref": "y", "task": "ask"}]);
    let ways = json!([{"from": "plan", "to": "x"}, {"from": "x", "to": "y"}, {"from": "y", "to": "end"}]);
    let longer = graph.extended(&added("plan", nodes, ways)).unwrap();
    assert_eq!(refs(&longer), ["plan", "end", "x", "y"]);
    for (at, transition) in graph.transitions.iter().enumerate() {
        let same = &longer.transitions[at];
        assert_eq!(
            (&same.reference, same.from, same.to),
            (&transition.reference, transition.from, transition.to)
        );
    }
    let first = longer.node(ix(&longer, "plan")).out[0];
    assert_eq!(longer.transition(first).to, ix(&longer, "x"), "what was added is looked at first");
    assert_eq!(&*longer.transition(first).reference, "plan.1");
    assert_eq!(longer.mutations.len(), 1);
    let reviewed = longer.extended(&Mutation::Review { node: "x".into(), added: "x_review".into() }).unwrap();
    assert_eq!(refs(&reviewed), ["plan", "end", "x", "y", "x_review"]);
    assert_eq!(reviewed.node(ix(&reviewed, "x")).behind, Some(NodeIx(4)));
}

#[test]
fn what_may_not_be_added_is_refused() {
    let graph = planner().ok();
    let one = |keys: Json| {
        let mut node = json!({"ref": "x", "task": "ask"});
        node.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        json!([node])
    };
    let there = || json!([{"from": "plan", "to": "x"}]);
    let refused = |mutation: Mutation| codes_of(&graph.extended(&mutation).unwrap_err());
    assert_eq!(refused(added("end", one(json!({})), json!([{"from": "end", "to": "x"}]))), ["E0170"]);
    let three =
        json!([{"ref": "x", "task": "ask"}, {"ref": "y", "task": "ask"}, {"ref": "z", "task": "ask"}]);
    let ways = json!([{"from": "plan", "to": "x"}, {"from": "x", "to": "y"}, {"from": "y", "to": "z"}]);
    assert_eq!(refused(added("plan", three, ways)), ["E0170"]);
    assert_eq!(refused(added("plan", one(json!({"inline": "action"})), there())), ["E0171"]);
    assert_eq!(refused(added("plan", one(json!({})), json!([{"from": "end", "to": "x"}]))), ["E0172"]);
    assert_eq!(refused(added("plan", one(json!({})), json!([]))), ["E0112"]);
    assert_eq!(refused(added("plan", one(json!({"task": "asc"})), there())), ["E0104"]);
    assert_eq!(refused(added("plan", one(json!({"ref": "end"})), json!([]))), ["E0101"]);
}

#[test]
fn a_validator_stands_behind_its_node_once() {
    let graph = Draft::dag()
        .action("ask", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .task("ask", json!({"steps": [{"ref": "only", "action": "ask"}]}))
        .mocks(&["a"])
        .mock("b", json!({"needs": ["a"]}))
        .ok();
    let validator = Mutation::Validator { node: "a".into(), added: "a_check".into(), task: "ask".into() };
    let checked = graph.extended(&validator).unwrap();
    assert_eq!(checked.unit(UnitIx(0)).tail, ix(&checked, "a_check"));
    let node = checked.node(ix(&checked, "a_check"));
    assert_eq!((node.stands_for, node.unit), (Some(NodeIx(0)), Some(UnitIx(0))));
    assert!(matches!(node.perform, Perform::Worker(_)));
    let again = Mutation::Review { node: "a".into(), added: "a_again".into() };
    assert_eq!(codes_of(&checked.extended(&again).unwrap_err()), ["E0173"]);
}

#[test]
fn in_a_dag_a_transition_adds_a_need() {
    let graph = Draft::dag()
        .action("ask", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .task("ask", json!({"steps": [{"ref": "only", "action": "ask"}]}))
        .mock("a", json!({"may_mutate": {}}))
        .mock("b", json!({"needs": ["a"]}))
        .ok();
    let nodes = || json!([{"ref": "x", "task": "ask", "needs": ["a"]}]);
    let longer = graph.extended(&added("a", nodes(), json!([{"from": "x", "to": "b"}]))).unwrap();
    assert_eq!(longer.unit(UnitIx(1)).needs, [UnitIx(0), UnitIx(2)]);
    assert_eq!(longer.unit(UnitIx(2)).dependents, [UnitIx(1)]);
    let round =
        added("a", json!([{"ref": "x", "task": "ask", "needs": ["b"]}]), json!([{"from": "x", "to": "b"}]));
    assert_eq!(codes_of(&graph.extended(&round).unwrap_err()), ["E0114"]);
}
