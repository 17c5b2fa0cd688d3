//! Text of a task reaches those who listen before the task is over, here and in another process's place; who is slow
//! loses text, never events.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::Notify;
use wonder_actions::{ActionContext, ActionHandler, Performing};
use wonder_core::Value;
use wonder_engine::{Engine, Follow, Listen, Status};
use wonder_host::{Connection, Leaving, Options, Purpose, open};

use crate::test_host::{enter, start};

/// Stands in for mocks: says something, waits until it is told to go on, says the rest.
#[derive(Debug, Default)]
struct Speaks {
    goes_on: Arc<Notify>,
}

impl ActionHandler for Speaks {
    fn kinds(&self) -> &[&'static str] {
        &["mock"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        Performing::pending(async move {
            context.delta("first ");
            self.goes_on.notified().await;
            (0..10_000).for_each(|number| context.delta(&format!("{number} ")));
            Ok(Value::str("done"))
        })
    }
}

const FAMILY: &str = "
wonder: 1
name: parent
nodes:
  call: {workflow_call: {workflow: child}}
---
wonder: 1
name: child
nodes:
  think: {mock: {output: {}}}
";

struct Spoken {
    home: TempDir,
    owner: Connection,
    goes_on: Arc<Notify>,
}

async fn spoken() -> Spoken {
    let (home, speaks) = (TempDir::new().unwrap(), Speaks::default());
    let goes_on = speaks.goes_on.clone();
    let mut options = Options::new(home.path());
    options.worker.handlers.push(Arc::new(speaks));
    let owner = open(options, Purpose::Act).await.unwrap();
    Spoken { home, owner, goes_on }
}

fn listen(run: &str, after: u64) -> Listen {
    Listen { run: run.to_owned(), after, wait_ms: 60_000 }
}

/// Until something is heard: one question is not held for ever.
async fn heard(engine: &dyn Engine, run: &str) -> wonder_engine::Heard {
    loop {
        let heard = engine.listen(listen(run, 0)).await.unwrap();
        if !heard.pieces.is_empty() {
            return heard;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_child_reaches_the_roots_listeners_before_its_task_is_over() {
    let Spoken { home, owner, goes_on } = spoken().await;
    let run = ulid();
    // Listening begins before there is a run to speak: nothing of it is missed.
    let mut start = start(FAMILY, "{}");
    start.id = Some(run.clone());
    start.options.queued = true;
    owner.engine().start(start).await.unwrap();
    let other = enter(home.path()).await;
    assert!(other.owner().is_some(), "it is asked over the socket");
    let silent = Listen { wait_ms: 0, ..listen(&run, 0) };
    assert!(other.engine().listen(silent.clone()).await.unwrap().pieces.is_empty());
    owner.engine().act(run.clone(), wonder_engine::Act::Release).await.unwrap();
    for engine in [owner.engine(), other.engine()] {
        let heard = heard(engine, &run).await;
        let piece = &heard.pieces[0];
        assert_eq!((piece.text.as_str(), piece.number, piece.node.as_str()), ("first ", 0, "think"));
        assert_eq!((piece.run.clone(), piece.attempt), (format!("{run}.1.1"), 1));
    }
    let events = owner.engine().tree(&run).await.unwrap();
    assert!(events.root().ended_at.is_none(), "its task is not over");

    goes_on.notify_one();
    let view = other.engine().wait(run.clone(), 60_000).await.unwrap();
    assert_eq!(view.row.status, Status::Completed);
    let rest = other.engine().listen(listen(&run, 1)).await.unwrap();
    let numbers: Vec<u64> = rest.pieces.iter().map(|piece| piece.number).collect();
    assert!(numbers.len() < 10_000 && numbers[0] > 1, "who is slow has lost some, and sees that");
    assert_eq!(numbers.last(), Some(&10_000));
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    // None of it is in the log, and none of the log is lost.
    let child = format!("{run}.1.1");
    let follow = Follow { events_after: vec![(child, 0)], logs_after: Some((run, 0)), ..Follow::default() };
    let updates = other.engine().follow(follow).await.unwrap();
    let seqs: Vec<u64> = updates.events.iter().map(|(_, event)| event.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<u64>>());
    let stored = std::fs::read(home.path().join("wonder.db")).unwrap();
    assert!(!stored.windows(6).any(|bytes| bytes == b"first "), "text is stored nowhere");
    other.close(Leaving::Now).await;
    owner.close(Leaving::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_listens_to_no_run_is_told_so_and_nobody_waits_for_nothing() {
    let Spoken { home: _home, owner, goes_on } = spoken().await;
    let refused = owner.engine().listen(listen("nothing", 0)).await.unwrap_err();
    assert_eq!(refused.code, wonder_engine::ErrorCode::NotFound);
    goes_on.notify_one();
    let run = owner.engine().start(start(FAMILY, "{}")).await.unwrap().row.run;
    owner.engine().wait(run.clone(), 60_000).await.unwrap();
    let quiet = Listen { wait_ms: 0, ..listen(&run, 0) };
    let nothing = tokio::time::timeout(Duration::from_secs(60), owner.engine().listen(quiet)).await;
    assert!(nothing.unwrap().unwrap().pieces.is_empty(), "what nobody listened to is kept nowhere");
    owner.close(Leaving::Drain).await;
}

fn ulid() -> String {
    "01KDTXS6001JD7Q2M4K1ZABCDE".to_owned()
}
