//! Artifacts of runs: who sees which, what a fork has, what is collected.

use std::time::Duration;

use wonder_core::artifact::BY_HASH;
use wonder_engine::{ErrorCode, Fork, Status};

use crate::test_host::{TestHost, json, start};

const FAMILY: &str = "
wonder: 1
name: parent
nodes:
  first: {artifact_write: {name: note, content: first}, next: [{to: second}]}
  second: {artifact_write: {name: note, content: second}, next: [{to: heir}]}
  heir: {workflow_call: {workflow: reads, inherit_artifacts: true}, next: [{to: stranger}]}
  stranger: {workflow_call: {workflow: reads, on_failure: catch}, next: [{to: mine}]}
  mine: {artifact_read: note}
output_mapping: {heir: state.heir, stranger: state.stranger.error.message, mine: state.mine}
---
wonder: 1
name: reads
nodes:
  nested: {workflow_call: {workflow: reads_deep, inherit_artifacts: true}, next: [{to: own}]}
  own: {artifact_write: {name: note, content: of the child}}
output_mapping: {note: state.nested.note}
---
wonder: 1
name: reads_deep
nodes: {read: {artifact_read: note}}
output_mapping: {note: state.read}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_the_newest_that_a_run_sees() {
    let host = TestHost::new().await;
    let view = host.run(FAMILY, "{}").await;
    assert_eq!(view.row.status, Status::Completed, "{view:?}");
    let output = view.output.unwrap();
    let text = |key: &str| output.get(key).map(ToString::to_string).unwrap_or_default();
    assert_eq!(text("heir"), r#"{"note":"second"}"#, "through two that inherit");
    assert!(text("stranger").contains("has no artifact"), "{}", text("stranger"));
    assert_eq!(text("mine"), r#""second""#, "what a child keeps is the child's");

    let host = host.reopen().await;
    let listed = host.engine().artifacts(view.row.run.clone()).await.unwrap();
    let shown: Vec<(&str, &str, u64)> =
        listed.iter().map(|a| (a.name.as_str(), a.node.as_str(), a.bytes)).collect();
    assert_eq!(shown, [("note", "first", 5), ("note", "second", 6), ("note", "own", 12)]);
    assert!(listed[2].run.starts_with(&format!("{}.", view.row.run)), "{listed:?}");

    let piece = async |artifact: &str, offset: u64| {
        let piece = host.engine().artifact_piece(view.row.run.clone(), artifact.to_owned(), offset).await;
        piece.map(|piece| piece.base64)
    };
    assert_eq!(piece("note", 0).await.unwrap(), "c2Vjb25k", "the newest of its own");
    assert_eq!(piece("note", 6).await.unwrap(), "");
    assert_eq!(piece(&listed[0].artifact, 0).await.unwrap(), "Zmlyc3Q=");
    let elsewhere = format!("{BY_HASH}{}", "00".repeat(32));
    for unknown in ["none", &elsewhere, "../../wonder.db"] {
        assert_eq!(piece(unknown, 0).await.unwrap_err().code, ErrorCode::NotFound, "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_what_was_kept_before_it_and_a_retry_finds_it() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: forked
nodes:
  keep: {artifact_write: {name: note, content: kept}, next: [{to: read}]}
  read: {artifact_read: note}
output_mapping: {note: state.read}
";
    let view = host.run(file, "{}").await;
    let fork = Fork {
        id: None,
        run: view.row.run.clone(),
        node: "read".to_owned(),
        branch: None,
        visit: None,
        input: Default::default(),
        set: Default::default(),
        definition: Vec::new(),
    };
    let forked = host.engine().fork(fork).await.unwrap();
    let forked = host.settled(&forked.row.run).await;
    assert_eq!(forked.output, Some(json(r#"{"note": "kept"}"#)));
    let listed = host.engine().artifacts(forked.row.run.clone()).await.unwrap();
    assert_eq!((listed.len(), listed[0].run.as_str()), (1, forked.row.run.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_kept_that_failed_is_nobodys_and_collected() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: fails
nodes:
  keep: {artifact_write: {name: kept, content: kept}, next: [{to: lose}]}
  lose:
    steps:
      - {ref: write, artifact_write: {name: lost, content: lost}}
      - {ref: fail, assert: 'false'}
";
    let view = host.run(file, "{}").await;
    assert_eq!(view.row.status, Status::Failed, "{view:?}");
    let listed = host.engine().artifacts(view.row.run.clone()).await.unwrap();
    assert_eq!(listed.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["kept"]);
    let young = host.connection.collect_artifacts(wonder_host::COLLECT_GRACE).await.unwrap();
    assert_eq!(young.files, 0, "a task that has not reported may need it");
    let old = host.connection.collect_artifacts(Duration::ZERO).await.unwrap();
    assert_eq!((old.files, old.bytes), (1, 4));
    let kept = host.engine().artifact_piece(view.row.run.clone(), "kept".to_owned(), 0).await.unwrap();
    assert_eq!(kept.base64, "a2VwdA==");
    assert_eq!(host.connection.collect_artifacts(Duration::ZERO).await.unwrap().files, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_keeps_nothing_lists_nothing_and_writes_no_directory() {
    let host = TestHost::new().await;
    let view = host.engine().start(start("wonder: 1\nname: a\nnodes: {a: {mock: {output: {}}}}", "{}")).await;
    let run = view.unwrap().row.run;
    host.settled(&run).await;
    assert_eq!(host.engine().artifacts(run).await.unwrap(), []);
    assert!(!host.home.path().join("artifacts").exists());
}
