//! `retry` with another version of the definition, in the same run.

use wonder_engine::{Act, ErrorCode, Start, Status, Workflow};

use crate::test_host::{TestHost, json, start};

/// `first` completes, `second` fails, until it is mended.
fn file(second: &str, more: &str) -> String {
    format!(
        "wonder: 1\nname: mended\nnodes:\n  first: {{mock: {{output: {{n: 1}}}}, next: [{{to: second}}]}}\n  \
         second: {{{second}}}\n{more}"
    )
}

const BROKEN: &str = "mock: {error: {kind: shell_exit, message: broken}}";
const MENDED: &str = "mock: {output: {n: \"{{ state.first.n }}\"}}";

fn definition(file: &str) -> Vec<Workflow> {
    let Start { workflow, callable, .. } = start(file, "{}");
    std::iter::once(workflow).chain(callable).collect()
}

fn retry(definition: Vec<Workflow>) -> Act {
    Act::Retry { by: "ann".to_owned(), definition }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_retried_with_a_mended_definition_and_repeats_nothing_that_completed() {
    let host = TestHost::new().await;
    let failed = host.run(&file(BROKEN, ""), "{}").await;
    assert_eq!(failed.row.status, Status::Failed);
    let run = failed.row.run;
    assert!(host.engine().same_definition(run.clone(), definition(&file(BROKEN, ""))).await.unwrap());
    assert!(!host.engine().same_definition(run.clone(), definition(&file(MENDED, ""))).await.unwrap());

    host.engine().act(run.clone(), retry(definition(&file(MENDED, "")))).await.unwrap();
    let mended = host.settled(&run).await;
    assert_eq!((mended.row.status, mended.row.version), (Status::Completed, 2));
    assert_eq!(mended.output, Some(json(r#"{"n": "1"}"#)));
    let events = host.events(&run).await;
    let dispatched = events.iter().filter(|name| **name == "task_dispatched").count();
    assert_eq!(dispatched, 3, "first once, second twice");

    // The next owner replays the same events on the same definition.
    let host = host.reopen().await;
    let again = host.engine().find(run).await.unwrap();
    assert_eq!((again.output, again.row.version), (Some(json(r#"{"n": "1"}"#)), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_in_which_the_past_could_not_have_happened_is_refused_and_changes_nothing() {
    let host = TestHost::new().await;
    let run = host.run(&file(BROKEN, ""), "{}").await.row.run;
    let renamed = file(MENDED, "").replace("first", "begin");
    let refused = host.engine().act(run.clone(), retry(definition(&renamed))).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(refused.message.contains("first"), "{refused:?}");
    let other = file(MENDED, "").replace("name: mended", "name: other");
    let refused = host.engine().act(run.clone(), retry(definition(&other))).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadInput);
    let same = host.engine().find(run.clone()).await.unwrap();
    assert_eq!((same.row.status, same.row.version), (Status::Failed, 1));

    let mended = definition(&file(MENDED, ""));
    host.engine().act(run.clone(), retry(mended.clone())).await.unwrap();
    assert_eq!(host.settled(&run).await.row.status, Status::Completed);
    let done = host.engine().act(run, retry(mended)).await.unwrap_err();
    assert_eq!(done.code, ErrorCode::Conflict, "what completed is not retried: {done:?}");
}
