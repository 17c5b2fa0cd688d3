//! Screens over runs on virtual time: every one of them is a snapshot.

mod money;
mod walks;

use std::sync::Arc;

use wonder_core::def::Estimate;
use wonder_core::event::GateId;
use wonder_core::{Input, Time, Value};
use wonder_engine::ahead::taught;
use wonder_engine::json::{Outcome, RunJson, ShowJson};
use wonder_engine::{RunRow, RunView, Status};

use super::events::{event_line, log_line};
use super::frame::{Canvas, Output, frame};
use super::list::{self, Page};
use super::paint::Paint;
use super::plain::Narrator;
use super::result::{failure, remedies, summary, waits};
use super::show;
use super::tree::Background;
use super::why;
use crate::stage::{ROOT, START, Stage};
use crate::text::{Text, text};

const PANEL: &str = r#"
name: judge_panel
nodes:
  draft:
    mock: {output: {text: "An answer to {{ input.question }}"}, delay: 800ms, usage: {cost_usd: 0.0012}}
    output_mapping: {state.answer: result.text}
    next: [{to: judge, spawn_count: 5}]
  judge:
    task: judge_answer
    input_mapping: {seat: _branch.index}
    next:
      - to: decide
        synchronization: {strategy: {m_of_n: 3}, timeout: 2m, merge: {target: state.votes}}
  decide:
    update_context: {set: {state.count: size(state.votes)}}
    next: [{to: sign_off}]
  sign_off:
    human_gate:
      title: Publish anyway?
      body: "There are votes.\nThey differ."
      form: {type: object, required: [ok], properties: {ok: {type: boolean}, comment: {type: string}}}
    next: [{to: publish}]
  publish: {mock: {output: {url: "https://example.com/1"}, delay: 150ms}}
output_mapping: {answer: state.answer, votes: state.count}
tasks:
  judge_answer:
    retry: {max_attempts: 3, backoff: none}
    steps:
      - ref: ask
        mock:
          outcomes:
            - {error: {kind: rate_limited, message: "slow down"}, delay: 100ms}
            - {output: {score: 7}, delay: 350ms, usage: {cost_usd: 0.0004, input_tokens: 120, output_tokens: 8}}
        on_failure: retry
"#;

const EACH: &str = r#"
name: review_files
nodes:
  files:
    mock: {output: {names: [a.rs, b.rs, c.rs]}, delay: 20ms}
    next: [{to: review, foreach: {items: result.names, as: file, max_parallel: 2}}]
  review:
    mock: {output: {ok: true}, delay: 2s}
    next: [{to: report, synchronization: {on_branch_failure: continue, merge: {target: state.all}}}]
  report: {mock: {error: {kind: shell_exit, message: "exit code 2\nmake: *** [all] Error 2"}, delay: 30ms}}
"#;

const MANY: &str = r#"
name: sweep
nodes:
  start:
    mock: {output: {}, delay: 5ms}
    next: [{to: probe, spawn_count: 50}]
  probe:
    mock: {outcomes: [{output: {ok: true}, delay: 1s}]}
    next: [{to: done, synchronization: {}}]
  done: {mock: {output: {done: true}}}
max_parallel: 12
"#;

const FAMILY: &str = r#"
name: outer
nodes:
  prepare: {mock: {output: {n: 1}, delay: 10ms}, next: [{to: call}]}
  call: {workflow_call: {workflow: inner}, next: [{to: finish}]}
  finish: {mock: {output: {all: good}, delay: 10ms}}
---
name: inner
nodes:
  think: {mock: {output: {}, delay: 500ms, usage: {cost_usd: 0.02}}, next: [{to: nap}]}
  nap: {sleep: {for: 3s}, next: [{to: ask}]}
  ask: {human_gate: {title: "Is that right?", assignees: [ann, bob]}}
"#;

const BUDGET: &str = r#"
name: spender
budget: {usd: 0.01, on_exceeded: pause}
nodes:
  one: {mock: {output: {}, usage: {cost_usd: 0.02}}, next: [{to: two}]}
  two: {mock: {output: {}}}
"#;

const DAG: &str = r#"
name: build
nodes:
  fetch: {mock: {output: {parts: [x, y]}, delay: 100ms}}
  compile: {needs: [fetch], foreach: {items: needs.fetch.parts, as: part}, mock: {output: {ok: true}, delay: 200ms}}
  lint: {needs: [fetch], when: "false", mock: {output: {}}}
  pack: {needs: [compile, lint], mock: {output: {size: 3}, delay: 50ms}}
"#;

const REVIEWS: &str = r#"
name: reviews
nodes:
  files:
    mock: {output: {names: [a.rs, b.rs]}, delay: 20ms}
    next: [{to: review, foreach: {items: result.names, as: file}}]
  review:
    human_gate:
      title: "Is {{ file }} fine?"
      timeout: 2h
      form: {type: object, required: [verdict], properties: {verdict: {enum: [keep, drop]}, score: {type: integer}}}
    next: [{to: report, synchronization: {merge: {target: state.all}}}]
  report: {mock: {output: {ok: true}}}
"#;

const BREAKS_IN_DAG: &str = r#"
name: breaks_in_dag
nodes:
  fetch: {mock: {output: {}, delay: 10ms}}
  lint: {needs: [fetch], mock: {error: {kind: shell_exit, message: "exit code 1"}, delay: 10ms}}
  pack: {needs: [lint], mock: {output: {}}}
  ship: {needs: [pack], mock: {output: {}}}
"#;

const LOOP: &str = r#"
name: polish
nodes:
  draft:
    mock: {output: {}, delay: 100ms}
    next: [{to: judge}]
  judge:
    update_context: {set: {state.rounds: "has(state.rounds) ? state.rounds + 1 : 1"}}
    next: [{to: draft, when: state.rounds < 3, max_iterations: 5}, {to: done}]
  done: {mock: {output: {done: true}}}
"#;

const BREAKS_ONE: &str = r#"
name: breaks_one
nodes:
  list: {mock: {output: {names: [a, b, c]}}, next: [{to: each, foreach: {items: result.names, as: name}}]}
  each:
    task: each
    input_mapping: {delay: _branch.index}
    next: [{to: end, synchronization: {}}]
  end: {mock: {output: {}}}
tasks:
  each:
    steps:
      - {ref: work, mock: {output: {}, delay: 100ms}}
      - {ref: check, assert: {that: "input.delay != 2", message: "it is two"}}
      - {ref: rest, mock: {output: {}, delay: 100ms}, condition: "input.delay > 2"}
"#;

const BREAKS: &str = r#"
name: breaks
nodes:
  list: {mock: {output: {}}, next: [{to: each, spawn_count: 2}]}
  each: {mock: {error: {kind: shell_exit, message: "exit code 1"}}, next: [{to: end, synchronization: {}}]}
  end: {mock: {output: {}}}
"#;

/// What the file of an agent comes to: turns of a model in a child run, with a branch for each call.
const AGENT: &str = r#"
name: mend
budget: {usd: 2.5}
nodes:
  fix: {workflow_call: {workflow: turns}, budget: {usd: 1}}
---
name: turns
nodes:
  think:
    mock:
      output:
        text: "Let me look at the parser.\nThen I write."
        tool_calls:
          - {id: c1, tool: search, arguments: {query: "parse error", limit: 3}}
          - {id: c2, tool: search, arguments: {query: "fn parse\u001b[2J"}}
      delay: 400ms
      usage: {cost_usd: 0.02, input_tokens: 1200, output_tokens: 80}
    next: [{to: search, foreach: {items: result.tool_calls, as: call}}]
  search:
    mock: {output: {text: "3 hits: src/parser.rs, src/lexer.rs"}, delay: 100ms}
    next: [{to: gather, synchronization: {}}]
  gather:
    mock: {output: {}}
    next: [{to: think, when: "!has(state.done)", max_iterations: 40}, {to: end}]
  end: {mock: {output: {}}}
"#;

fn panel() -> Stage {
    Stage::open(PANEL, r#"{"question":"why?"}"#)
}

fn page(stage: &Stage, width: usize) -> Page {
    Page { now: stage.now, width: Some(width), paint: Paint::NONE }
}

fn plain(stage: &Stage) -> String {
    Text::joined(Narrator::new(ROOT, None, Paint::NONE).lines(&stage.updates()), "\n").to_string()
}

fn background(stage: &Stage) -> Background {
    Background { graph: Some(Arc::clone(stage.definition())), ..Background::default() }
}

fn live(stage: &Stage, width: usize, height: usize) -> String {
    let mut output = Output::default();
    stage.updates().logs.iter().for_each(|line| output.push(line));
    stage.texts.iter().for_each(|piece| output.streaming.hear(piece));
    output.streaming.forget_ended(&stage.run_tree());
    let canvas = Canvas { width, height, now: stage.now, turn: Some(0), paint: Paint::NONE };
    let lines = frame(&stage.run_tree(), &background(stage), &output, canvas);
    assert!(lines.len() < height, "a frame leaves room for the cursor");
    assert!(lines.iter().all(|line| line.width() <= width), "{lines:#?}");
    Text::joined(lines, "\n").to_string()
}

fn shown(stage: &Stage, width: usize) -> String {
    let graph = Some(stage.definition()).filter(|_| !stage.row().status.is_end());
    show::page(&stage.view(), &stage.run_tree(), graph, &stage.gates(), page(stage, width)).to_string()
}

fn end(stage: &Stage) -> String {
    let view = stage.view();
    let mut lines = vec![summary(&view, Paint::NONE)];
    lines.extend(failure(&view).iter().map(|line| text!("  {}", line)));
    lines.extend(remedies(&view));
    lines.extend(waits(&view, &stage.gates(), Paint::NONE));
    Text::joined(lines, "\n").to_string()
}

fn answered(stage: Stage) -> Stage {
    let answer = Value::from_json_str(r#"{"ok":true}"#).unwrap();
    stage.say(Input::GateAnswered { gate: GateId(1), answer, by: "ann".into() })
}

#[test]
fn plain_lines_tell_what_a_person_cares_about() {
    let done =
        answered(panel().play(1_000).print("judge", "thinking\u{1b}[31m hard").play(60_000)).play(61_000);
    insta::assert_snapshot!("plain_panel", plain(&done));
    insta::assert_snapshot!("plain_each", plain(&Stage::open(EACH, "{}").play(60_000)));
    insta::assert_snapshot!("plain_family", plain(&Stage::open(FAMILY, "{}").play(5_000)));
    insta::assert_snapshot!("plain_budget", plain(&Stage::open(BUDGET, "{}").play(5_000)));
    insta::assert_snapshot!("plain_dag", plain(&Stage::open(DAG, "{}").play(5_000)));
    let cancelled = Stage::open(EACH, "{}")
        .play(500)
        .say(Input::Cancel { reason: "wrong files".to_owned(), grace_ms: None });
    insta::assert_snapshot!("plain_cancelled", plain(&cancelled.play(600)));
}

#[test]
fn what_happened_before_is_learnt_and_not_told() {
    let waits = panel().play(60_000);
    let since = waits.now;
    let done = answered(waits).play(61_000);
    let told = Narrator::new(ROOT, Some(since), Paint::NONE).lines(&done.updates());
    insta::assert_snapshot!(Text::joined(told, "\n"));
}

#[test]
fn a_live_frame_shows_what_goes_on() {
    let judging = panel().play(850).print("judge", "reading the draft").print("judge", "scoring");
    insta::assert_snapshot!("live_80", live(&judging, 79, 24));
    insta::assert_snapshot!("live_120", live(&judging, 119, 40));
    insta::assert_snapshot!("live_waits", live(&panel().play(60_000), 79, 24));
    insta::assert_snapshot!("live_each", live(&Stage::open(EACH, "{}").play(2_500), 79, 24));
    insta::assert_snapshot!("live_family", live(&Stage::open(FAMILY, "{}").play(1_500), 79, 24));
    insta::assert_snapshot!("live_dag", live(&Stage::open(DAG, "{}").play(250), 79, 24));
}

#[test]
fn a_frame_fits_a_small_screen() {
    insta::assert_snapshot!("small_panel", live(&panel().play(850), 60, 8));
    insta::assert_snapshot!("live_many", live(&Stage::open(MANY, "{}").play(2_500), 79, 24));
    insta::assert_snapshot!("live_retries", live(&panel().play(1_000), 79, 24));
    insta::assert_snapshot!("small_many", live(&Stage::open(MANY, "{}").play(2_500), 60, 10));
    for height in 4..12 {
        for width in [20, 40, 200] {
            live(&panel().play(850).print("judge", "a"), width, height);
            live(&Stage::open(FAMILY, "{}").play(1_500), width, height);
        }
    }
}

#[test]
fn a_page_shows_one_run() {
    let done = answered(panel().play(60_000)).play(61_000);
    insta::assert_snapshot!("show_80", shown(&done, 80));
    insta::assert_snapshot!("show_120", shown(&done, 120));
    insta::assert_snapshot!("show_waits", shown(&panel().play(60_000), 100));
    insta::assert_snapshot!("show_failed", shown(&Stage::open(EACH, "{}").play(60_000), 100));
    insta::assert_snapshot!("show_failed_branch", shown(&Stage::open(BREAKS_ONE, "{}").play(60_000), 100));
    insta::assert_snapshot!("show_many", shown(&Stage::open(MANY, "{}").play(2_500), 100));
    insta::assert_snapshot!("show_family", shown(&Stage::open(FAMILY, "{}").play(9_000), 100));
    insta::assert_snapshot!("show_dag", shown(&Stage::open(DAG, "{}").play(5_000), 100));
    insta::assert_snapshot!("show_budget", shown(&Stage::open(BUDGET, "{}").play(5_000), 100));
}

#[test]
fn the_end_says_what_to_type() {
    insta::assert_snapshot!("end_completed", end(&answered(panel().play(60_000)).play(61_000)));
    insta::assert_snapshot!("end_waits", end(&panel().play(60_000)));
    insta::assert_snapshot!("end_failed", end(&Stage::open(EACH, "{}").play(60_000)));
    insta::assert_snapshot!("end_failed_branch", end(&Stage::open(BREAKS, "{}").play(60_000)));
    insta::assert_snapshot!("end_budget", end(&Stage::open(BUDGET, "{}").play(5_000)));
    let paused = Stage::open(EACH, "{}").play(500).say(Input::Pause { by: "ann".into() }).play(9_000);
    insta::assert_snapshot!("end_paused", end(&paused));
}

#[test]
fn programs_get_the_same_as_people() {
    let done = answered(panel().play(60_000)).play(61_000);
    insta::assert_snapshot!("outcome_json", json(&Outcome::of(&done.view())));
    insta::assert_snapshot!("outcome_waits_json", json(&Outcome::of(&panel().play(60_000).view())));
    let failed = Stage::open(EACH, "{}").play(60_000);
    insta::assert_snapshot!("outcome_failed_json", json(&Outcome::of(&failed.view())));
    let (view, run_tree, gates) = (failed.view(), failed.run_tree(), failed.gates());
    insta::assert_snapshot!("show_json", json(&ShowJson::of(&view, &run_tree, &gates)));
    insta::assert_snapshot!("list_json", json(&vec![RunJson::of(&failed.row())]));
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn lists_fit_the_screen() {
    let (panel, each) = (panel().play(60_000), Stage::open(EACH, "{}").play(60_000));
    let other = |row: RunRow, id: &str| RunRow { run: id.to_owned(), root: id.to_owned(), ..row };
    let interrupted = RunRow {
        status: Status::Running,
        ended_at: None,
        driven: false,
        ..other(each.row(), "01KDTXS6001JD7Q2M4K1ZVWXYZ")
    };
    let rows = [panel.row(), other(each.row(), "01KDTXS6001JD7Q2M4K1ZFGHIJ"), interrupted];
    let later = Time(START.0 + 7_300_000);
    let page = |width: Option<usize>| Page { now: later, width, paint: Paint::NONE };
    insta::assert_snapshot!("list_80", list::runs(&rows, &panel.gates(), page(Some(80))));
    insta::assert_snapshot!("list_120", list::runs(&rows, &panel.gates(), page(Some(120))));
    insta::assert_snapshot!("list_piped", list::runs(&rows, &panel.gates(), page(None)));
    let gates = [panel.gates(), Stage::open(FAMILY, "{}").play(9_000).gates()].concat();
    let gates = [gates, Stage::open(REVIEWS, "{}").play(100).gates()].concat();
    insta::assert_snapshot!("gates_80", list::gates(&gates, page(Some(80))));
    insta::assert_snapshot!("gates_120", list::gates(&gates, page(Some(120))));
}

#[test]
fn events_have_a_line_each() {
    let stage = Stage::open(EACH, "{}").play(60_000);
    let run_tree = stage.run_tree();
    let updates = stage.updates();
    let lines = updates.events.iter().map(|(run, event)| event_line(&run_tree, run, event, Paint::NONE));
    insta::assert_snapshot!("events", Text::joined(lines, "\n"));
    let said = Stage::open(EACH, "{}").play(500).print("review", "compiling").print("review", "");
    let (run_tree, updates) = (said.run_tree(), said.updates());
    let lines = updates.logs.iter().map(|line| log_line(&run_tree, line, Paint::NONE));
    insta::assert_snapshot!("logs", Text::joined(lines, "\n"));
}

#[test]
fn why_names_what_is_waited_for() {
    let said =
        |stage: &Stage| Text::joined(why::lines(&stage.why(), (&stage.run_tree(), true), stage.now), "\n");
    insta::assert_snapshot!("why", said(&panel().play(850)));
    insta::assert_snapshot!("why_many", said(&Stage::open(MANY, "{}").play(2_500)));
    insta::assert_snapshot!("why_gates", said(&Stage::open(REVIEWS, "{}").play(100)));
    insta::assert_snapshot!("why_failed", said(&Stage::open(BREAKS, "{}").play(60_000)));
    insta::assert_snapshot!("why_failed_dag", said(&Stage::open(BREAKS_IN_DAG, "{}").play(60_000)));
    let cancel = Input::Cancel { reason: "wrong files".to_owned(), grace_ms: None };
    insta::assert_snapshot!("why_cancelled", said(&Stage::open(EACH, "{}").play(500).say(cancel).play(600)));
    let failed = Stage::open(BREAKS, "{}").play(60_000);
    insta::assert_snapshot!("why_failed_json", json(&failed.why()));
}

#[test]
fn a_retried_run_counts_only_its_own_work() {
    let failed = Stage::open(EACH, "{}").play(60_000);
    let day = 86_400_000;
    let retried = failed.play(day).say(Input::Retry { by: "ann".into(), version: None }).play(day + 500);
    insta::assert_snapshot!("show_retried", shown(&retried, 100));
    assert_eq!(retried.row().took_ms(retried.now), 4_050 + 30);
}

#[test]
fn a_loop_numbers_its_turns() {
    let stage = Stage::open(LOOP, "{}").play(60_000);
    insta::assert_snapshot!("show_loop", shown(&stage, 100));
    insta::assert_snapshot!("plain_loop", plain(&stage));
}

#[test]
fn the_time_that_is_left_comes_from_past_runs() {
    let past = answered(panel().play(60_000)).play(61_000);
    let learnt = taught(past.run_tree().root());
    assert!(!learnt.contains_key("sign_off"), "who waits for a person teaches nothing");
    let stage = panel().play(850);
    let head = |stage: &Stage| {
        let canvas = Canvas { width: 119, height: 24, now: stage.now, turn: None, paint: Paint::NONE };
        let background = Background { learnt: learnt.clone(), ..background(stage) };
        frame(&stage.run_tree(), &background, &Output::default(), canvas).remove(0)
    };
    insta::assert_snapshot!("head_left", head(&stage));
    let mut slow = answered(panel().play(60_000)).play(60_100);
    insta::assert_snapshot!("head_left_at_the_end", head(&slow));
    slow.now = slow.now.plus(5_000);
    insta::assert_snapshot!("head_longer_than_usual", head(&slow));
    let dag = Stage::open(DAG, "{}").play(250);
    let estimate = |ms: u64| Estimate { duration_ms: Some(ms), usd_micros: None };
    let learnt = [("fetch", 100), ("compile", 4_000), ("pack", 2_000)];
    let learnt = learnt.map(|(node, ms)| (node.into(), estimate(ms))).into();
    let background = Background { learnt, ..background(&dag) };
    let canvas = Canvas { width: 79, height: 24, now: dag.now, turn: Some(0), paint: Paint::NONE };
    let lines = frame(&dag.run_tree(), &background, &Output::default(), canvas);
    insta::assert_snapshot!("live_left", Text::joined(lines, "\n"));
}

#[test]
fn an_interrupted_run_says_how_to_go_on() {
    let stage = Stage::open(EACH, "{}").play(500);
    let mut view: RunView = stage.view();
    view.row.driven = false;
    insta::assert_snapshot!(
        "show_interrupted",
        show::page(&view, &stage.run_tree(), None, &[], page(&stage, 100))
    );
}

#[test]
fn an_agent_is_seen_turn_by_turn_with_what_it_says() {
    let child = format!("{ROOT}.1.1");
    let said = "First I read the whole of the parser, then I look at how the lexer gives it its tokens. \
                The failing test calls parse() with an empty input.\nSo the first thing is";
    let speaks =
        |stage: Stage| stage.stream(&child, "think", said).stream(&child, "think", " to mend\u{1b}[2J that");
    let second = speaks(Stage::open(AGENT, "{}").play(700));
    insta::assert_snapshot!("live_agent_80", live(&second, 79, 24));
    insta::assert_snapshot!("live_agent_120", live(&second, 119, 40));
    let later = speaks(Stage::open(AGENT, "{}").play(4_200));
    insta::assert_snapshot!("live_agent_later", live(&later, 79, 30));
    insta::assert_snapshot!("show_agent_later", shown(&later, 100));
    insta::assert_snapshot!("plain_agent", plain(&Stage::open(AGENT, "{}").play(700)));
    for height in 4..16 {
        live(&later, 40, height);
    }
    // What is over is not said any more.
    let over = speaks(Stage::open(AGENT, "{}").play(700)).play(1_000);
    assert!(!live(&over, 79, 24).contains("lexer gives"));
}

#[test]
fn of_several_texts_each_has_its_last_line() {
    let stage = panel().play(850);
    let tokens: Vec<u64> = stage.run_tree().root().visits.values().map(|visit| visit.token.0).collect();
    let mut stage = stage.stream(ROOT, "judge", "one\ntwo");
    let piece = stage.texts[0].clone();
    let other = tokens.iter().copied().filter(|token| *token != piece.token).max().unwrap();
    stage.texts.push(wonder_engine::TextPiece { token: other, text: "three\nfour".to_owned(), ..piece });
    insta::assert_snapshot!("live_texts", live(&stage, 79, 24));
}
