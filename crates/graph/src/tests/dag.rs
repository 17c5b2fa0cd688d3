//! Dags: units, needs, and the three nodes of a `foreach`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Draft, ix};
use crate::{MergeInto, NodeInput, Perform, Source, Spread, TransitionIx, UnitIx};
use wonder_lang::def::{BranchFailure, Estimate, Strategy};

#[test]
fn foreach_becomes_three_nodes_and_one_unit() {
    let graph = Draft::dag()
        .mocks(&["list"])
        .act("each", "shell", json!({"command": ["run", "{{ file.name }}", "{{ _branch.index }}"]}), json!({
            "needs": ["list"], "when": "needs.list != null", "timeout_ms": 5000,
            "foreach": {"items": "needs.list.files", "as": "file", "on_branch_failure": "continue", "keep_failed": true},
            "output_mapping": {"state.done": "result"},
        }))
        .mock("after", json!({"needs": ["each"]}))
        .ok();
    let refs: Vec<&str> = graph.nodes.iter().map(|node| &*node.reference).collect();
    assert_eq!(refs, ["list", "each", "each[]", "each[=]", "after"]);
    let unit = graph.unit(UnitIx(1));
    assert_eq!((unit.head, unit.tail), (ix(&graph, "each"), ix(&graph, "each[=]")));
    assert_eq!((&unit.needs[..], &unit.dependents[..]), (&[UnitIx(0)][..], &[UnitIx(2)][..]));
    assert!(unit.when.is_some());
    let [head, items, gather] = ["each", "each[]", "each[=]"].map(|name| graph.node(ix(&graph, name)));
    assert!(matches!(head.perform, Perform::Pass) && head.writes_nothing && head.output.is_none());
    assert!(matches!(items.perform, Perform::Worker(_)) && items.output.is_none() && !items.writes_nothing);
    assert_eq!((items.timeout_ms, head.timeout_ms), (Some(5000), None));
    let NodeInput::Named(reads) = &items.input else { panic!("{:?}", items.input) };
    let reads: Vec<String> = reads.iter().map(ToString::to_string).collect();
    assert_eq!(reads, ["_branch.index", "file.name"]);
    assert!(matches!(gather.perform, Perform::Pass) && gather.output.as_ref().unwrap().len() == 1);
    let Some(Spread::Each { item_name, .. }) = &graph.transitions[0].spread else { panic!("no spread") };
    assert_eq!(item_name.as_deref(), Some("file"));
    assert!(graph.transitions[1].sync.is_some());
    let join = &graph.joins[&Source::Transition(TransitionIx(0))];
    assert_eq!((join.target, join.strategy), (unit.tail, Strategy::All));
    assert_eq!(join.on_branch_failure, BranchFailure::Continue);
    let merge = join.merge.as_ref().unwrap();
    assert!(matches!(merge.into, MergeInto::Carried) && merge.keep_failed);
}

#[test]
fn a_referenced_task_gets_its_needs_and_a_root_the_runs_input() {
    let graph = Draft::dag()
        .action("ask", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .task("ask", json!({"steps": [{"ref": "only", "action": "ask"}]}))
        .node("a", json!({"task": "ask"}))
        .node("b", json!({"task": "ask", "needs": ["a"]}))
        .ok();
    assert!(matches!(graph.nodes[0].input, NodeInput::RunInput));
    assert!(matches!(graph.nodes[1].input, NodeInput::Needs));
    assert_eq!(graph.initial, ix(&graph, "a"));
}

#[test]
fn what_is_written_of_an_estimate_wins_and_what_is_learnt_fills_the_rest() {
    let graph = Draft::dag()
        .mock("quick", json!({"estimate": {"duration_ms": 10}}))
        .mock("priced", json!({"estimate": {"usd_micros": 5}}))
        .ok();
    let learnt =
        |duration_ms, usd_micros| Estimate { duration_ms: Some(duration_ms), usd_micros: Some(usd_micros) };
    let known = |quick, priced| BTreeMap::from([("quick".into(), quick), ("priced".into(), priced)]);
    let ranks = |known| crate::schedule::ranks(&graph, Some(&known));
    // Longest first: a second is only what is taken when nobody knows.
    assert_eq!(ranks(known(learnt(9_000, 0), learnt(1, 0))), [0, 1]);
    assert_eq!(ranks(known(learnt(1, 0), learnt(11, 0))), [1, 0]);
    // As long: the cheaper first, by what is written.
    assert_eq!(ranks(known(learnt(1, 4), learnt(10, 0))), [0, 1]);
    assert_eq!(ranks(known(learnt(1, 6), learnt(10, 0))), [1, 0]);
}

#[test]
fn cycles_are_printed() {
    let problems = Draft::dag()
        .mock("a", json!({"needs": ["c"]}))
        .mock("b", json!({"needs": ["a"]}))
        .mock("c", json!({"needs": ["b"]}))
        .build()
        .unwrap_err();
    assert!(problems[0].message.contains("a -> b -> c -> a"), "{}", problems[0].message);
    let own = Draft::dag().mock("a", json!({"needs": ["a"]})).build().unwrap_err();
    assert!(own[0].message.contains("a -> a"), "{}", own[0].message);
}
