//! A host with a clock and a performer of tasks that the test hands in: nothing here waits for real time.

use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use wonder_core::Time;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_engine::{Act, RunView, Start, Status};
use wonder_host::{
    Clock, Connection, Leaving, Options, OrderedTask, Purpose, Settled, TaskPerformer, VirtualClock, open,
};

use crate::test_host::{json, start};

const BEGIN: Time = Time(1_767_225_600_000);

/// Keeps what was ordered until the test reports it.
#[derive(Debug, Default)]
struct Script(Mutex<Vec<OrderedTask>>);

impl TaskPerformer for Script {
    fn begin(&self, task: OrderedTask) {
        self.0.lock().unwrap().push(task);
    }
}

impl Script {
    fn ordered(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|task| task.order.node.to_string()).collect()
    }

    fn take(&self, node: &str) -> OrderedTask {
        let mut ordered = self.0.lock().unwrap();
        let at = ordered.iter().position(|task| &*task.order.node == node).expect("it was ordered");
        ordered.remove(at)
    }

    fn report(&self, node: &str, result: &str) {
        let outcome = TaskOutcome::Completed { result: json(result) };
        self.take(node).report(TaskReport::new(outcome, Default::default()));
    }
}

struct Stage {
    home: TempDir,
    connection: Connection,
    clock: VirtualClock,
    script: Arc<Script>,
}

async fn enter(home: TempDir, clock: VirtualClock) -> Stage {
    let script = Arc::new(Script::default());
    let options = Options {
        clock: Clock::Virtual(clock.clone()),
        performer: Some(script.clone()),
        ..Options::new(home.path())
    };
    let connection = open(options, Purpose::Act).await.unwrap();
    Stage { home, connection, clock, script }
}

impl Stage {
    async fn new() -> Stage {
        enter(TempDir::new().unwrap(), VirtualClock::new(BEGIN)).await
    }

    async fn start(&self, file: &str) -> Settled {
        let start = Start { id: Some("run".to_owned()), ..start(file, "{}") };
        self.connection.engine().start(start).await.unwrap();
        self.settled().await
    }

    async fn settled(&self) -> Settled {
        self.connection.settled().await.unwrap()
    }

    async fn view(&self) -> RunView {
        *self.connection.engine().find("run".to_owned()).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_passes_when_the_test_says_so() {
    let stage = Stage::new().await;
    let file = "
wonder: 1
name: slow
nodes:
  nap: {sleep: {for: 24h}, next: [{to: work}]}
  work: {shell: {command: 'never run'}}
";
    let day = Time(BEGIN.0 + 86_400_000);
    assert_eq!(stage.start(file).await, Settled { next_deadline: Some(day), tasks_out: 0 });
    stage.clock.advance_before_deadlines(day);
    assert_eq!(stage.settled().await, Settled { next_deadline: Some(day), tasks_out: 0 });
    stage.clock.advance_to(day);
    assert_eq!(stage.settled().await.tasks_out, 1);
    assert_eq!(stage.script.ordered(), ["work"]);
    stage.script.report("work", r#"{"done": true}"#);
    assert_eq!(stage.settled().await, Settled::default());
    let view = stage.view().await;
    assert_eq!(
        (view.row.status, view.row.started_at, view.row.ended_at),
        (Status::Completed, BEGIN, Some(day))
    );
    assert_eq!(view.output.unwrap().to_string(), r#"{"done":true}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_must_not_run_twice_is_recorded_before_it_begins() {
    let stage = Stage::new().await;
    let file = "
wonder: 1
name: pay
nodes:
  pay: {shell: {command: pay, effects: once}}
";
    assert_eq!(stage.start(file).await.tasks_out, 1);
    assert_eq!(stage.script.ordered(), ["pay"]);
    stage.connection.close(Leaving::Now).await;
    let stage = enter(stage.home, stage.clock).await;
    let resume = Act::Resume { by: "ann".to_owned() };
    stage.connection.engine().act("run".to_owned(), resume).await.unwrap();
    stage.settled().await;
    assert_eq!(stage.script.ordered(), [""; 0], "what became of it is not known, so a person is asked");
    assert_eq!(stage.view().await.waiting.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_performer_that_forgets_a_task_fails_it() {
    let stage = Stage::new().await;
    stage.start("wonder: 1\nname: one\nnodes:\n  work: {shell: {command: x}}\n").await;
    drop(stage.script.take("work"));
    stage.settled().await;
    let view = stage.view().await;
    assert_eq!(view.row.status, Status::Failed);
    assert!(view.error.unwrap().message.contains("dropped it without a report"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_cancels_the_task_and_its_report_is_still_taken() {
    let stage = Stage::new().await;
    let file = "
wonder: 1
name: late
timeout: 1h
on_timeout: cancel_all
nodes:
  work: {shell: {command: x}}
";
    stage.start(file).await;
    stage.clock.advance_to(Time(BEGIN.0 + 3_600_000));
    stage.settled().await;
    let task = stage.script.take("work");
    assert!(task.cancelled.is_cancelled());
    let failure = Failure::new(ErrorKind::Internal, "killed");
    let outcome = TaskOutcome::Failed { failure, retry: false, step: None };
    task.report(TaskReport::new(outcome, Default::default()));
    assert_eq!(stage.settled().await.tasks_out, 0);
    assert_eq!(stage.view().await.row.status, Status::TimedOut);
}

/// The end of a wide run calls its tasks back, and each of them reports that it has stopped. The run is there to hear
/// them all: what one of them costs does not grow with what the run has been through.
#[tokio::test(flavor = "multi_thread")]
async fn late_reports_find_the_run_in_memory_and_then_it_leaves() {
    const TASKS: usize = 300;
    let stage = Stage::new().await;
    let file = "
wonder: 1
name: wide
nodes:
  spread: {assert: 'true', next: [{to: work, spawn_count: 300}]}
  work: {shell: {command: work}}
";
    assert_eq!(stage.start(file).await.tasks_out, TASKS);
    let failure = Failure::new(ErrorKind::Internal, "broken");
    let outcome = TaskOutcome::Failed { failure, retry: false, step: None };
    stage.script.take("work").report(TaskReport::new(outcome, Default::default()));
    assert_eq!(stage.settled().await.tasks_out, TASKS - 1);
    assert_eq!(stage.view().await.row.status, Status::Failed);
    let before = stage.connection.written();
    for _ in 1..TASKS {
        stage.script.take("work").report(TaskReport::new(TaskOutcome::Cancelled, Default::default()));
        stage.settled().await;
    }
    let after = stage.connection.written();
    assert_eq!(after.runs_loaded, before.runs_loaded, "no report reads the run from the database");
    assert_eq!(after.rows - before.rows, TASKS as u64 - 1, "one row a report");
    stage
        .connection
        .engine()
        .act("run".to_owned(), Act::Retry { by: "ann".to_owned(), definition: Vec::new() })
        .await
        .unwrap();
    assert_eq!(stage.connection.written().runs_loaded, after.runs_loaded + 1, "it had left memory");
}
