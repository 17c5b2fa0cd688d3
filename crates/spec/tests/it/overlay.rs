//! A run drawn into its graph: what it added is marked, what has become of nodes is coloured, and a picture
//! without a run is as it was.

use std::collections::BTreeMap;

use wonder_core::graph::{Graph, Mutation};
use wonder_spec::{Mark, Overlay, Stand, dot_of_run, mermaid_of_run};

const GRAPH: &str = r#"
wonder: 1
name: answers
nodes:
  plan: {task: think, may_mutate: {max_nodes: 3}, next: [{to: draft}]}
  draft:
    task: think
    next:
      - {to: send, condition: "result.ok"}
      - {to: sorry, on: failure}
  send: {mock: {output: {}}}
  sorry: {mock: {output: {}}}
tasks:
  think: {steps: [{ref: a, mock: {output: {ok: true}}}]}
  check: {steps: [{ref: a, assert: {that: "input.result.ok"}}]}
"#;

const DAG: &str = r#"
wonder: 1
name: build
nodes:
  fetch: {mock: {output: {parts: [x]}}}
  compile: {needs: [fetch], foreach: {items: needs.fetch.parts, as: part}, mock: {output: {}}}
  pack: {needs: [compile], mock: {output: {}}}
tasks:
  check: {steps: [{ref: a, assert: {that: "input.result != null"}}]}
"#;

fn graph(text: &str) -> Graph {
    let reading = wonder_spec::read(text, "test.yaml").unwrap_or_else(|p| panic!("{}", p.render(false)));
    Graph::clone(&reading.graphs[0])
}

fn mark(stand: Stand, note: &str) -> Mark {
    Mark { stand, note: note.to_owned() }
}

#[test]
fn a_check_behind_a_node_stands_between_it_and_what_followed() {
    let before = graph(GRAPH);
    let check =
        Mutation::Validator { node: "draft".into(), added: "draft_check".into(), task: "check".into() };
    let nodes: serde_json::Value = serde_json::json!({
        "change": "nodes", "by": "plan",
        "nodes": [{"ref": "more", "task": "think"}],
        "transitions": [{"ref": "t1", "from": "plan", "to": "more"},
                        {"ref": "t2", "from": "more", "to": "draft"}],
    });
    let nodes: Mutation = serde_json::from_value(nodes).unwrap();
    let now = before.extended(&check).unwrap().extended(&nodes).unwrap();
    let marks = BTreeMap::from([
        ("plan".to_owned(), mark(Stand::Completed, "1 visit")),
        ("draft".to_owned(), mark(Stand::Running, "2 visits")),
        ("draft_check".to_owned(), mark(Stand::Failed, "1 visit")),
    ]);
    let run = Overlay { before: &before, marks };
    insta::assert_snapshot!("run_mermaid", mermaid_of_run(&now, &run));
    insta::assert_snapshot!("run_dot", dot_of_run(&now, &run));
}

#[test]
fn what_follows_a_unit_follows_the_check_behind_it() {
    let before = graph(DAG);
    let check =
        Mutation::Validator { node: "fetch".into(), added: "fetch_check".into(), task: "check".into() };
    let now = before.extended(&check).unwrap();
    let marks = BTreeMap::from([("fetch".to_owned(), mark(Stand::Completed, ""))]);
    insta::assert_snapshot!("run_dag_mermaid", mermaid_of_run(&now, &Overlay { before: &before, marks }));
}

#[test]
fn a_run_that_added_nothing_marks_nothing_as_new() {
    let before = graph(GRAPH);
    let drawn = mermaid_of_run(&before, &Overlay { before: &before, marks: BTreeMap::new() });
    assert!(drawn.starts_with(&wonder_spec::mermaid(&before)), "{drawn}");
    assert!(!drawn.contains("added") && !drawn.contains("linkStyle"), "{drawn}");
}
