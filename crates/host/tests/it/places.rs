//! The machine's own limit: who begins first when there is no place for all, and how long one waits for a place.

use tempfile::TempDir;
use wonder_core::event::EventKind;
use wonder_engine::{Follow, Status};
use wonder_host::{Options, Purpose, open};

use crate::test_host::{TestHost, start};

async fn host(options: impl FnOnce(&mut Options)) -> TestHost {
    let home = TempDir::new().unwrap();
    let mut chosen = Options::new(home.path());
    options(&mut chosen);
    let connection = open(chosen, Purpose::Act).await.unwrap();
    TestHost { home, connection }
}

/// Each task appends its name to a file: the order in which they ran.
fn shape(max_parallel: &str, log: &str) -> String {
    let node = |name: &str, keys: &str| {
        let command = format!("{{command: [sh, -c, \"echo {name} >> {log}\"]}}");
        // What is written wins over what the run before taught.
        format!("  {name}: {{shell: {command}{keys}, estimate: {{duration: 1s}}}}\n")
    };
    // The short ones are written first; the long path is what the ready order puts first.
    let nodes = [
        node("short_a", ", needs: []"),
        node("short_b", ", needs: []"),
        node("long_a", ", needs: []"),
        node("long_b", ", needs: [long_a]"),
        node("long_c", ", needs: [long_b]"),
    ];
    format!("wonder: 1\nname: shape\nkind: dag\n{max_parallel}nodes:\n{}", nodes.concat())
}

async fn ran(host: &TestHost, max_parallel: &str) -> Vec<String> {
    let log = host.home.path().join(format!("log{}", max_parallel.len()));
    let view = host.run(&shape(max_parallel, &log.to_string_lossy()), "{}").await;
    assert_eq!(view.row.status, Status::Completed, "{view:?}");
    std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ready_order_is_the_same_under_the_machines_limit_as_under_the_workflows() {
    let host = host(|options| options.tasks_max = 1).await;
    let by_workflow = ran(&host, "max_parallel: 1\n").await;
    assert_eq!(by_workflow, ["long_a", "long_b", "short_a", "short_b", "long_c"]);
    assert_eq!(ran(&host, "").await, by_workflow);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_taken_in_the_order_of_dispatch() {
    let host = host(|options| options.tasks_max = 1).await;
    let log = host.home.path().join("log");
    let log = log.to_string_lossy();
    let names: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
    let mut file = "wonder: 1\nname: many\nkind: dag\nnodes:\n".to_owned();
    for name in &names {
        file += &format!("  {name}: {{shell: {{command: [sh, -c, \"echo {name} >> {log}\"]}}, needs: []}}\n");
    }
    assert_eq!(host.run(&file, "{}").await.row.status, Status::Completed);
    let ran: Vec<String> = std::fs::read_to_string(&*log).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(ran, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_too_long_for_a_place_fails_once_and_says_how_long_it_waited() {
    let host = host(|options| {
        options.tasks_max = 1;
        options.queue_timeout_ms = Some(50);
    })
    .await;
    let file = "wonder: 1\nname: crowded\nkind: dag\nnodes:\n  \
                busy: {mock: {output: {}, delay: 1s}, needs: []}\n  \
                late: {mock: {output: {}}, needs: [], on_timeout: retry}\n";
    let view = host.run(file, "{}").await;
    assert_eq!(view.row.status, Status::Failed);
    let follow = Follow { events_after: vec![(view.row.run.clone(), 0)], ..Follow::default() };
    let events = host.engine().follow(follow).await.unwrap().events;
    let expired: Vec<_> = events
        .iter()
        .filter_map(|(_, event)| match &event.kind {
            EventKind::TokenTimedOut { node, timeout_duration_ms, policy_applied, .. } => {
                Some((node.as_deref(), *timeout_duration_ms >= 50, format!("{policy_applied:?}")))
            }
            _ => None,
        })
        .collect();
    assert_eq!(expired, [(Some("late"), true, "Fail".to_owned())]);
    assert!(!events.iter().any(|(_, event)| event.kind.name() == "task_retrying"), "it is not tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_place_can_be_cancelled() {
    let one_place = host(|options| options.tasks_max = 1).await;
    let file = "wonder: 1\nname: crowded\nkind: dag\nnodes:\n  \
                busy: {mock: {output: {}, delay: 1h}, needs: []}\n  late: {mock: {output: {}}, needs: []}\n";
    let run = one_place.engine().start(start(file, "{}")).await.unwrap().row.run.clone();
    let act = wonder_engine::Act::Cancel { reason: "enough".to_owned(), grace_ms: None };
    one_place.engine().act(run.clone(), act).await.unwrap();
    assert_eq!(one_place.settled(&run).await.row.status, Status::Cancelled);
}
