//! Asking twice under one id does it once and gets the same answer, also from the next owner.

use wonder_engine::{Act, Answer, ErrorCode, Request, Response, RunView, Signal};

use crate::test_host::{TestHost, json};

const FILE: &str = "
wonder: 1
name: listen
nodes:
  ask: {human_gate: {title: Go}, next: [{to: hear}]}
  hear: {wait_event: {event: never}}
";

async fn ask(host: &TestHost, request: &Request) -> RunView {
    match host.engine().ask(request.clone()).await.unwrap() {
        Response::Run(view) => *view,
        other => panic!("{other:?}"),
    }
}

fn signal(run: &str, payload: &str) -> Request {
    Request::Signal(Signal {
        request_id: Some("the-signal".to_owned()),
        run: run.to_owned(),
        event: "news".to_owned(),
        key: json("null"),
        payload: json(payload),
        keep: true,
    })
}

fn act(id: &str, run: &str, act: Act) -> Request {
    Request::Act { request_id: Some(id.to_owned()), run: run.to_owned(), act }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_done_once_whoever_owns_the_database() {
    let mut host = TestHost::new().await;
    let run = host.run(FILE, "{}").await.row.run;
    let by = || "ann".to_owned();
    let answer = Answer {
        request_id: Some("the-answer".to_owned()),
        // Once it is closed, the run has no open gate that could be meant.
        gate: run.clone(),
        answer: json("{}"),
        by: by(),
    };
    let cancel = Act::Cancel { reason: "enough".to_owned(), grace_ms: None };
    let asked = [
        (signal(&run, "1"), "event_received"),
        (Request::Answer(answer), "gate_answered"),
        (act("the-pause", &run, Act::Pause { by: by() }), "run_paused"),
        (act("the-resume", &run, Act::Resume { by: by() }), "run_resumed"),
        (act("the-cancel", &run, cancel), "run_cancelled"),
        (act("the-retry", &run, Act::Retry { by: by(), definition: Vec::new() }), "run_retried"),
    ];
    for (request, kind) in asked {
        let first = ask(&host, &request).await;
        let again = ask(&host, &request).await;
        assert_eq!((&first.row.run, first.seq), (&again.row.run, again.seq), "{kind}");
        host = host.reopen().await;
        let later = ask(&host, &request).await;
        assert_eq!(later.seq, first.seq, "{kind}");
        let events = host.events(&run).await;
        assert_eq!(events.iter().filter(|name| **name == kind).count(), 1, "{kind}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_for_one_request() {
    let host = TestHost::new().await;
    let run = host.run(FILE, "{}").await.row.run;
    ask(&host, &signal(&run, "1")).await;
    let refused = host.engine().ask(signal(&run, "2")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(refused.message.contains("the-signal"), "{refused}");
    let events = host.events(&run).await;
    assert_eq!(events.iter().filter(|name| **name == "event_received").count(), 1, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_judged_anew() {
    let host = TestHost::new().await;
    let run = host.run(FILE, "{}").await.row.run;
    let resume = act("early", &run, Act::Retry { by: "ann".to_owned(), definition: Vec::new() });
    assert_eq!(host.engine().ask(resume.clone()).await.unwrap_err().code, ErrorCode::Conflict);
    let cancel = Act::Cancel { reason: "enough".to_owned(), grace_ms: None };
    ask(&host, &act("cancel", &run, cancel)).await;
    ask(&host, &resume).await;
}
