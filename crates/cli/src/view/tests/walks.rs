//! Walks, changes and graphs of runs that did not go straight.

use wonder_core::event::GateId;
use wonder_core::{Input, Value};
use wonder_engine::json::ShowJson;

use super::{BUDGET, EACH, FAMILY, MANY, json, page, panel, shown};
use crate::args::Drawing;
use crate::stage::Stage;
use crate::view::graph::{GraphJson, RunGraph};

/// Tries again after a while, asks a human, grows a check and nodes of its own.
const CAREFUL: &str = r#"
name: careful
nodes:
  fetch:
    mock:
      outcomes:
        - {error: {kind: timeout, message: "no answer within 100 ms"}, delay: 100ms}
        - {error: {kind: shell_exit, message: "exit code 2\nfatal: not found"}, delay: 50ms}
        - {output: {v: 1}, delay: 30ms, usage: {cost_usd: 0.001}}
    on_error:
      - {when: "error.kind == 'timeout'", do: retry, max: 1, backoff: linear, initial_delay: 200ms}
      - {do: escalate}
    next: [{to: draft}]
  draft:
    mock:
      outcomes:
        - {error: {kind: assertion_failed, message: "no sources"}, delay: 40ms}
        - {output: {text: short}, delay: 40ms}
    on_error: [{do: {add_validator: check}, backoff: none}]
    next: [{to: plan}, {to: sorry, on: failure}]
  plan:
    may_mutate: {max_nodes: 2}
    mock:
      output:
        _mutations:
          nodes: [{ref: more, task: work}]
          transitions: [{from: plan, to: more}, {from: more, to: send}]
    next: [{to: send}]
  send: {human_gate: {title: "Send it?"}}
  sorry: {mock: {output: {}}}
tasks:
  work: {steps: [{ref: go, mock: {output: {did: work}, delay: 10ms}}]}
  check: {steps: [{ref: ask, mock: {output: {fine: true}, delay: 10ms}}]}
"#;

/// Every change that leaves the graph as it is.
pub(super) const MODELS: &str = r#"
name: answers
nodes:
  draft: {llm_call: {model: shy, prompt: Write}, next: [{to: score}]}
  score: {llm_call: {model: sloppy, prompt: Score}, on_error: [{do: stricter_prompt, backoff: none}], next: [{to: polish}]}
  polish:
    mock: {outcomes: [{error: {kind: quality_below_threshold, message: dull}}, {output: {text: lively}}]}
    on_error: [{do: loop_with_feedback, backoff: none}]
    next: [{to: retell}]
  retell:
    llm_call: {model: shy, prompt: Again}
    on_error:
      - {do: downgrade_model, backoff: none}
      - {do: {change: {model: bold, system: "You are bold.", input: {tone: "'firm'"}}}, backoff: none}
models:
  shy: {provider: openai, model: s, prices: {input: 1.0, output: 2.0}, fallbacks: [bold], cheaper: shy2, max_output_tokens: 500}
  shy2: {provider: openai, model: s2, prices: {input: 0.5, output: 1.0}, max_output_tokens: 500}
  bold: {provider: openai, model: b, prices: {input: 3.0, output: 15.0, cached_input: 0.3}, max_output_tokens: 500}
  sloppy: {provider: openai, model: l, prices: {input: 0.15, output: 0.6}, max_output_tokens: 500}
"#;

/// So many branches, each of which fails once.
const FLAKY: &str = r#"
name: flaky
max_parallel: 500
nodes:
  start: {mock: {output: {}}, next: [{to: probe, spawn_count: COUNT}]}
  probe:
    mock: {outcomes: [{error: {kind: network, message: reset}, delay: 5ms}, {output: {ok: true}, delay: 5ms}]}
    on_error: [{do: retry, backoff: none}]
    next: [{to: done, synchronization: {}}]
  done: {mock: {output: {done: true}}}
"#;

fn escalated() -> Stage {
    Stage::open(CAREFUL, "{}").play(5_000)
}

pub(super) fn careful() -> Stage {
    let answer = Value::from_json_str(r#"{"action":"retry"}"#).unwrap();
    escalated().say(Input::GateAnswered { gate: GateId(1), answer, by: "ann".into() }).play(9_000)
}

fn drawn(stage: &Stage, format: Drawing) -> String {
    let run_tree = stage.run_tree();
    RunGraph::of(stage.definition(), run_tree.root()).unwrap().text(&stage.view(), format)
}

#[test]
fn a_walk_is_shown_where_a_token_did_not_go_straight() {
    insta::assert_snapshot!("show_escalated", shown(&escalated(), 100));
    insta::assert_snapshot!("show_careful_80", shown(&careful(), 80));
    insta::assert_snapshot!("show_careful_120", shown(&careful(), 120));
    insta::assert_snapshot!("show_models", shown(&Stage::open(MODELS, "{}").play(60_000), 120));
}

#[test]
fn walks_are_in_json_with_what_the_run_changed() {
    let stage = careful();
    let (view, run_tree) = (stage.view(), stage.run_tree());
    let all = serde_json::to_value(ShowJson::of(&view, &run_tree, &[])).unwrap();
    insta::assert_snapshot!("walk_json", json(&all["nodes"][0]["walk"]));
    insta::assert_snapshot!("mutations_json", json(&all["mutations"]));
    assert_eq!(all["metrics"]["mutations_applied"], 2);
}

#[test]
fn ten_thousand_visits_fit_a_page() {
    let stage = Stage::open(&FLAKY.replace("COUNT", "10000"), "{}").play(600_000);
    let page = shown(&stage, 100);
    assert!(page.lines().count() < 80, "{page}");
    insta::assert_snapshot!("show_flaky", page);
    assert_eq!(stage.run_tree().root().visits.len(), 10_002);
}

/// The fold and the core agree on every move of every token, and on what is spent and reserved.
#[test]
fn walks_are_the_moves_that_the_core_made() {
    let cancelled = panel().play(850).say(Input::Cancel { reason: "no".to_owned(), grace_ms: Some(50) });
    let broken = Stage::open(EACH, "{}").play(60_000);
    let retried = Stage::open(EACH, "{}").play(60_000).say(Input::Retry { by: "ann".into(), version: None });
    let stages = [
        careful(),
        escalated(),
        panel().play(60_000),
        cancelled.play(5_000),
        broken,
        retried.play(90_000),
        Stage::open(MODELS, "{}").play(60_000),
        Stage::open(FAMILY, "{}").play(9_000),
        Stage::open(MANY, "{}").play(2_500),
        Stage::open(BUDGET, "{}").play(5_000),
    ];
    for stage in stages {
        let run_tree = stage.run_tree();
        for (id, run, moves) in stage.runs() {
            let timeline = &run_tree.runs[id];
            for visit in timeline.visits.values() {
                let made: Vec<_> = moves.iter().filter(|m| m.token == visit.token).map(|m| m.to).collect();
                let told: Vec<_> = visit.walk.iter().skip(1).map(|step| step.to).collect();
                assert_eq!(told, made, "token {} of {}", visit.token, run.graph().name);
            }
            assert_eq!((&timeline.spend, timeline.reserved()), (run.spend(), run.state().reserved));
            assert_eq!(timeline.mutations.len(), run.metrics().mutations_applied as usize);
        }
    }
}

#[test]
fn a_graph_shows_where_the_run_stands_and_what_it_added() {
    insta::assert_snapshot!("graph_escalated", drawn(&escalated(), Drawing::Mermaid));
    insta::assert_snapshot!("graph_careful", drawn(&careful(), Drawing::Mermaid));
    insta::assert_snapshot!("graph_careful_dot", drawn(&careful(), Drawing::Dot));
    insta::assert_snapshot!("graph_models", drawn(&Stage::open(MODELS, "{}").play(60_000), Drawing::Mermaid));
    insta::assert_snapshot!("graph_panel", drawn(&panel().play(850), Drawing::Mermaid));
    insta::assert_snapshot!("graph_dag", drawn(&Stage::open(super::DAG, "{}").play(250), Drawing::Mermaid));
    let (stage, view) = (careful(), careful().view());
    let run_tree = stage.run_tree();
    let graph = RunGraph::of(stage.definition(), run_tree.root()).unwrap();
    insta::assert_snapshot!("graph_json", json(&GraphJson::of(&view, &graph, Drawing::Dot)));
    assert_eq!(page(&stage, 80).width, Some(80));
}
