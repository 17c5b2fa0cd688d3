//! Runs from their start to their end, with people, children, timers and a host that leaves.

use std::time::Duration;

use wonder_engine::{Act, ErrorCode, Signal, Start, Status, WaitView};

use crate::test_host::{TestHost, chain, json, start};

const GATE: &str = "
wonder: 1
name: ask
nodes:
  draft: {mock: {output: {text: hello}}, next: [{to: check}]}
  check:
    human_gate:
      title: 'Publish {{ state.draft.text }}?'
      form: {type: object, required: [ok], properties: {ok: {type: boolean}}}
    next: [{to: publish, when: result.ok}, {to: drop}]
  publish: {mock: {output: {published: true}}}
  drop: {mock: {output: {published: false}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_its_answer_across_hosts() {
    let host = TestHost::new().await;
    let view = host.run(GATE, "{}").await;
    assert_eq!(view.row.status, Status::Waiting);
    let [WaitView::Gate { gate, title, .. }] = view.waiting.as_slice() else { panic!("{view:?}") };
    assert_eq!(title, "Publish hello?");
    let gate = gate.clone();

    let host = host.reopen().await;
    let listed = host.engine().gates(None).await.unwrap();
    assert_eq!(listed[0].id, gate);
    let view = host.answer(&gate, r#"{"ok": true}"#).await;
    assert_eq!(view.row.status, Status::Completed);
    assert_eq!(view.output.unwrap().to_string(), r#"{"published":true}"#);
    assert!(host.engine().gates(None).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_fit_changes_nothing() {
    let host = TestHost::new().await;
    let view = host.run(GATE, "{}").await;
    let answer = |text: &str| wonder_engine::Answer {
        request_id: None,
        gate: view.row.run.clone(),
        answer: json(text),
        by: "ann".to_owned(),
    };
    let refused = host.engine().answer(answer("{}")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadInput);
    assert!(refused.message.contains("the gate stays open"), "{refused}");
    let seq = host.engine().find(view.row.run.clone()).await.unwrap().seq;
    assert_eq!(seq, view.seq);
    host.engine().answer(answer(r#"{"ok": false}"#)).await.unwrap();
    host.settled(&view.row.run).await;
    let late = wonder_engine::Answer { gate: format!("{}:1", view.row.run), ..answer(r#"{"ok": true}"#) };
    let refused = host.engine().answer(late).await.unwrap_err();
    assert!(refused.message.contains("closed by ann"), "{refused}");
}

const FAMILY: &str = "
wonder: 1
name: parent
nodes:
  call: {workflow_call: {workflow: child}, input_mapping: {who: input.who}, next: [{to: done}]}
  done: {update_context: {set: {output.said: state.call.said}}}
---
wonder: 1
name: child
nodes:
  ask: {human_gate: {title: 'Say something'}, next: [{to: say}]}
  say: {update_context: {set: {output.said: state.ask.words}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_childs_gate_makes_the_whole_tree_wait() {
    let host = TestHost::new().await;
    let view = host.run(FAMILY, r#"{"who": "x"}"#).await;
    assert_eq!(view.row.status, Status::Waiting);
    let [WaitView::Gate { gate, .. }] = view.waiting.as_slice() else { panic!("{view:?}") };
    assert_eq!(*gate, format!("{}.1.1:1", view.row.run));
    let gate = gate.clone();

    let host = host.reopen().await;
    let found = host.engine().find("last".to_owned()).await.unwrap();
    assert_eq!((found.row.status, found.waiting.len(), found.quiet), (Status::Waiting, 1, true));
    let view = host.answer(&gate, r#"{"words": "hi"}"#).await;
    assert_eq!(view.row.parent, None, "the answer is about the root");
    assert_eq!(view.output.unwrap().to_string(), r#"{"said":"hi"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_early_is_kept() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: hear
nodes:
  first: {human_gate: {title: Go}, next: [{to: hear}]}
  hear: {wait_event: {event: news}, next: [{to: done}]}
  done: {update_context: {set: {output.news: state.hear.text}}}
";
    let view = host.run(file, "{}").await;
    let signal = Signal {
        request_id: None,
        run: view.row.run.clone(),
        event: "news".to_owned(),
        key: json("null"),
        payload: json(r#"{"text": "early"}"#),
        keep: true,
    };
    host.engine().signal(signal).await.unwrap();
    let view = host.answer(&view.row.run, "{}").await;
    assert_eq!(view.output.unwrap().to_string(), r#"{"news":"early"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_fire_and_backoffs_end() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: slow
nodes:
  nap: {sleep: {for: 30ms}, next: [{to: flaky}]}
  flaky:
    task: flaky
tasks:
  flaky:
    retry: {max_attempts: 3, backoff: exponential, initial_delay: 10ms}
    steps:
      - ref: try
        mock: {outcomes: [{error: {kind: assertion_failed, message: no}}, {output: {ok: true}}]}
        on_failure: retry
";
    let view = host.run(file, "{}").await;
    assert_eq!(view.row.status, Status::Completed, "{view:?}");
    assert_eq!(view.metrics.retries, 1);
    let events = host.events(&view.row.run).await;
    assert!(events.contains(&"sleep_started") && events.contains(&"task_retrying"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_stops_what_is_out() {
    let host = TestHost::new().await;
    let file = "wonder: 1\nname: long\nnodes:\n  wait: {mock: {output: {}, delay: 1h}}\n";
    let view = host.engine().start(start(file, "{}")).await.unwrap();
    let cancel = Act::Cancel { reason: "enough".to_owned(), grace_ms: None };
    host.engine().act(view.row.run.clone(), cancel).await.unwrap();
    let view = host.settled(&view.row.run).await;
    assert_eq!(view.row.status, Status::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_out_when_the_host_left_is_owed() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: long
nodes:
  wait: {mock: {outcomes: [{output: {n: 1}, delay: 200ms}]}, next: [{to: done}]}
  done: {mock: {output: {done: true}}}
";
    let view = host.engine().start(start(file, "{}")).await.unwrap();
    let run = view.row.run.clone();
    let (home, connection) = (host.home, host.connection);
    connection.close(wonder_host::Leaving::Now).await;
    let connection = crate::test_host::enter(home.path()).await;
    let host = TestHost { home, connection };
    let left = host.engine().find(run.clone()).await.unwrap();
    assert_eq!((left.row.status, left.row.driven), (Status::Running, false), "nobody carries it on unasked");
    let resume = Act::Resume { by: "ann".to_owned() };
    host.engine().act(run.clone(), resume).await.unwrap();
    let view = host.settled(&run).await;
    assert_eq!(view.row.status, Status::Completed);
    let events = host.events(&run).await;
    assert_eq!(events.iter().filter(|name| **name == "task_dispatched").count(), 2, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_starts_nothing() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: strict
input_schema: {type: object, required: [n], properties: {n: {type: integer}}}
nodes:
  one: {mock: {output: {}}}
";
    let refused = host.engine().start(start(file, r#"{"n": "x"}"#)).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadInput);
    assert!(host.engine().list(Default::default()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_content_is_the_same_version() {
    let host = TestHost::new().await;
    let file = "wonder: 1\nname: one\nnodes:\n  one: {mock: {output: {n: 1}}}\n";
    assert_eq!(host.run(file, "{}").await.row.version, 1);
    assert_eq!(host.run(file, "{}").await.row.version, 1);
    assert_eq!(host.run(&file.replace("n: 1}", "n: 2}"), "{}").await.row.version, 2);
    let host = host.reopen().await;
    assert_eq!(host.run(file, "{}").await.row.version, 1);
    assert_eq!(host.run(&file.replace("n: 1}", "n: 3}"), "{}").await.row.version, 3);
}

/// One node that asks, so that the run leaves memory and has to be read again.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_run_is_set_aside_and_the_others_go_on() {
    let host = TestHost::new().await;
    let (damaged, sound) = (host.run(GATE, "{}").await, host.run(GATE, "{}").await);
    let database = host.home.path().join("wonder.db");
    let connection = rusqlite::Connection::open(database).unwrap();
    let spoil = "UPDATE events SET body = replace(body, 'token_created', 'token_cremated') \
                 WHERE run = (SELECT no FROM runs WHERE id = ?)";
    assert!(connection.execute(spoil, [&damaged.row.run]).unwrap() > 0);
    let answer = wonder_engine::Answer {
        request_id: None,
        gate: format!("{}:1", damaged.row.run),
        answer: json(r#"{"ok": true}"#),
        by: "ann".to_owned(),
    };
    let refused = host.engine().answer(answer).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Quarantined, "{refused}");
    assert!(refused.message.contains("token_cremated"), "the evidence is told: {refused}");
    let done = host.answer(&sound.row.run, r#"{"ok": true}"#).await;
    assert_eq!(done.row.status, Status::Completed);
    let rows = host.engine().list(Default::default()).await.unwrap();
    let status = |run: &str| rows.iter().find(|row| row.run == run).unwrap().status;
    assert_eq!(status(&damaged.row.run), Status::Quarantined);
    let evidence: String = connection
        .query_row("SELECT evidence FROM runs WHERE id = ?", [&damaged.row.run], |row| row.get(0))
        .unwrap();
    assert!(evidence.contains("token_cremated"), "{evidence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_starts_a_run_may_wait_for_its_end_in_one_question() {
    let host = TestHost::new().await;
    let ended = Start { wait_ms: 60_000, ..start(&chain(3), "{}") };
    let view = host.engine().start(ended).await.unwrap();
    assert_eq!((view.row.status.as_str(), view.quiet), ("completed", true));
    let again = Start { id: Some(view.row.run), wait_ms: 60_000, ..start(&chain(3), "{}") };
    let view = tokio::time::timeout(Duration::from_secs(20), host.engine().start(again)).await;
    assert_eq!(view.expect("it is over already").unwrap().row.status.as_str(), "completed");
    let asks = "wonder: 1\nname: asks\nnodes:\n  ask: {human_gate: {title: Well?}}\n";
    let waits = Start { wait_ms: 60_000, ..start(asks, "{}") };
    let view = host.engine().start(waits).await.unwrap();
    assert_eq!((view.row.status.as_str(), view.waiting.len()), ("waiting", 1));
    // What it calls first has not begun when it has started.
    let calls = "wonder: 1\nname: calls\nnodes:\n  call: {workflow_call: {workflow: inner}}\n---\n\
                 wonder: 1\nname: inner\nnodes:\n  work: {mock: {outcomes: [{output: {}, delay: 20ms}]}}\n";
    let calls = Start { wait_ms: 60_000, ..start(calls, "{}") };
    let view = host.engine().start(calls).await.unwrap();
    assert_eq!((view.row.status.as_str(), view.quiet), ("completed", true));
    let sleeps = "wonder: 1\nname: sleeps\nnodes:\n  nap: {sleep: 1h}\n";
    let late = Start { wait_ms: 1, ..start(sleeps, "{}") };
    let view = host.engine().start(late).await.unwrap();
    assert_eq!((view.row.status.as_str(), view.quiet), ("running", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_written_back_when_nobody_asks() {
    let host = TestHost::new().await;
    let database = host.home.path().join("wonder.db");
    let before = std::fs::metadata(&database).unwrap().len();
    host.run(&chain(300), "{}").await;
    let written_back = async {
        while std::fs::metadata(&database).unwrap().len() < before + 100_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written_back).await.expect("nobody asks, so it is");
}
