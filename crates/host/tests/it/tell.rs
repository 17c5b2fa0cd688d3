//! Messages: they reach the run that takes them, however deep it is, and nobody else.

use wonder_engine::{Cause, ErrorCode, Status, Tell};

use crate::test_host::TestHost;

fn tell(run: &str, text: &str) -> Tell {
    Tell {
        request_id: None,
        run: run.to_owned(),
        text: Some(text.to_owned()),
        stop: false,
        by: "ann".to_owned(),
    }
}

/// Nodes that call one that calls one that hears, all at once.
fn nested(nodes: &[&str]) -> String {
    let calls = |node: &&str| format!("  {node}: {{workflow_call: {{workflow: middle}}}}\n");
    let ways: Vec<String> = nodes.iter().map(|node| format!("{{to: {node}}}")).collect();
    format!(
        "
wonder: 1
name: outer
nodes:
  begin: {{mock: {{output: {{}}}}{}, next: [{}]}}
{}---
wonder: 1
name: middle
nodes:
  deep: {{workflow_call: {{workflow: hears}}}}
---
wonder: 1
name: hears
nodes:
  hear: {{wait_event: {{event: tell}}}}
output_mapping: {{heard: state.hear}}
",
        if nodes.len() > 1 { ", fan_out: all" } else { "" },
        ways.join(", "),
        nodes.iter().map(calls).collect::<String>()
    )
}

/// What the run with this id came to.
async fn output(host: &TestHost, run: &str) -> String {
    host.engine().find(run.to_owned()).await.unwrap().output.unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_reaches_the_one_run_below_that_takes_it() {
    let host = TestHost::new().await;
    let run = host.run(&nested(&["one"]), "{}").await.row.run;
    let message = Tell { request_id: Some("once".to_owned()), ..tell(&run, "look at the docs") };
    host.engine().tell(message.clone()).await.unwrap();
    let view = host.settled(&run).await;
    assert_eq!(view.row.status, Status::Completed);
    let heard = output(&host, &format!("{run}.2.1.1.1")).await;
    assert_eq!(heard, r#"{"heard":{"by":"ann","text":"look at the docs"}}"#);
    // Asked again because the answer was lost: the same answer, although nobody takes messages any more.
    assert_eq!(host.engine().tell(message).await.unwrap().row.run, run);
    let late = host.engine().tell(tell(&run, "too late")).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::Conflict);
    assert_eq!(late.cause.as_deref(), Some(&Cause::TakesNoMessage { run }));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_one_is_named() {
    let host = TestHost::new().await;
    let run = host.run(&nested(&["one", "two"]), "{}").await.row.run;
    let refused = host.engine().tell(tell(&run, "who?")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Ambiguous);
    let Some(Cause::SeveralTakeMessages { takers, .. }) = refused.cause.as_deref() else {
        panic!("{refused}")
    };
    let nodes: Vec<&str> = takers.iter().map(|(node, _)| node.as_str()).collect();
    assert_eq!(nodes, ["one/deep", "two/deep"]);
    assert!(refused.message.contains(&format!("{run}/one/deep")), "{refused}");
    let nobody = host.engine().tell(tell(&format!("{run}/three"), "x")).await.unwrap_err();
    assert_eq!(nobody.code, ErrorCode::NotFound);
    assert!(nobody.message.contains("live runs were called at one, two"), "{nobody}");

    let stop = Tell { text: None, stop: true, ..tell(&format!("{run}/one"), "") };
    host.engine().tell(stop).await.unwrap();
    host.engine().tell(tell(&takers[1].1, "by its id")).await.unwrap();
    assert_eq!(host.settled(&run).await.row.status, Status::Completed);
    assert_eq!(output(&host, &takers[0].1).await, r#"{"heard":{"by":"ann","stop":true}}"#);
    assert_eq!(output(&host, &takers[1].1).await, r#"{"heard":{"by":"ann","text":"by its id"}}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_awaits_another_event_takes_no_message() {
    let host = TestHost::new().await;
    let file = "wonder: 1\nname: other\nnodes:\n  hear: {wait_event: {event: news}}\n";
    let view = host.run(file, "{}").await;
    let refused = host.engine().tell(tell(&view.row.run, "hello")).await.unwrap_err();
    assert!(refused.message.contains("takes no message"), "{refused}");
    assert_eq!(host.engine().find(view.row.run).await.unwrap().seq, view.seq, "nothing was changed");
}
