//! What a node costs, counted: commits and rows, never times.

use crate::test_host::{TestHost, chain, shared, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_chain_costs_one_commit_and_one_row() {
    let host = TestHost::new().await;
    let before = host.connection.written();
    let view = host.run(&chain(200), "{}").await;
    assert_eq!(view.row.status.as_str(), "completed");
    let after = host.connection.written();
    let (commits, rows) = (after.commits - before.commits, after.rows - before.rows);
    // One to start; each of the 200 reports is one, and dispatches the next.
    assert!(commits <= 201, "{commits} commits");
    // Beside one row of events a commit: definition, run, timer, and their ends.
    assert!(rows <= 201 + 5, "{rows} rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_at_once_share_commits() {
    let host = shared(TestHost::new().await);
    let before = host.connection.written();
    let file = chain(10);
    let runs = (0..64).map(|_| {
        let (host, start) = (host.clone(), start(&file, "{}"));
        tokio::spawn(async move {
            let view = host.engine().start(start).await.unwrap();
            host.settled(&view.row.run).await
        })
    });
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap().row.status.as_str(), "completed");
    }
    let commits = host.connection.written().commits - before.commits;
    assert!(commits * 3 <= 640, "{commits} commits for 640 nodes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_dispatches_all_its_branches_in_one_commit() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: wide
nodes:
  spread: {mock: {output: {}}, next: [{to: work, spawn_count: 300}]}
  work:
    mock: {output: {n: 1}}
    next: [{to: join, synchronization: {strategy: all, merge: {target: state.all, strategy: append}}}]
  join: {update_context: {set: {output.count: size(state.all)}}}
";
    let before = host.connection.written();
    let view = host.run(file, "{}").await;
    assert_eq!(view.output.unwrap().to_string(), r#"{"count":300}"#);
    let commits = host.connection.written().commits - before.commits;
    assert!(commits <= 303, "{commits} commits");
}

/// More tasks than one turn takes were in line when their run failed, and each is answered as cancelled: no turn reads the
/// run again for it.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_never_began_are_answered_by_the_run_in_memory() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: wide
nodes:
  spread: {assert: 'true', fan_out: all, next: [{to: broken}, {to: work, spawn_count: 6000}]}
  broken: {mock: {error: internal}}
  work: {mock: {delay: 1h}}
";
    let view = host.run(file, "{}").await;
    assert_eq!(view.row.status.as_str(), "failed");
    assert_eq!(host.connection.settled().await.unwrap().tasks_out, 0);
    assert_eq!(host.connection.written().runs_loaded, 0);
}
