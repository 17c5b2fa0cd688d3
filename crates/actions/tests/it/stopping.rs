//! Stopping a command means stopping everything it started, however it was asked to stop.

use std::path::Path;
use std::time::Duration;

use wonder_actions::{Job, Settings, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;
use wonder_core::input::TaskOutcome;

use crate::support::{Output, assert_failed, ends, job, read, result, runs};

/// A shell whose child ignores SIGTERM, and which does so itself: only SIGKILL ends them. Both write down
/// who they are before they say so.
const STUBBORN: &str = "trap '' TERM; echo $$ > parent; (trap '' TERM; echo started; exec sleep 1000) & \
                        echo $! > child; echo ready; wait; sleep 1000";

fn stubborn(extra: &str, folder: &Path) -> (Job, Output) {
    let (mut job, output) = job(&format!(r#"{{shell: {{command: "{STUBBORN}"{extra}}}}}"#), "{}");
    job.workdir = folder.to_owned();
    (job, output)
}

fn impatient() -> Worker {
    Worker::new(Settings { grace_ms: 100, ..Settings::default() })
}

/// Both are gone.
async fn gone(folder: &Path) {
    for name in ["parent", "child"] {
        ends(&read(&folder.join(name))).await;
    }
}

#[tokio::test]
async fn an_action_out_of_time_takes_its_whole_family_along() {
    let folder = tempfile::tempdir().unwrap();
    let (job, _output) = stubborn(", timeout: 1s", folder.path());
    let report = impatient().perform(job).await;
    assert_failed(report, ErrorKind::Timeout, "shell took longer than 1000 ms");
    gone(folder.path()).await;
}

#[tokio::test]
async fn a_task_out_of_time_takes_its_whole_family_along() {
    let folder = tempfile::tempdir().unwrap();
    let (mut job, _output) = stubborn("", folder.path());
    job.order.timeout_ms = Some(1_000);
    let report = impatient().perform(job).await;
    assert_eq!(report.outcome, TaskOutcome::TimedOut { after_ms: 1_000 });
    gone(folder.path()).await;
}

#[tokio::test]
async fn a_cancelled_command_takes_its_whole_family_along() {
    let folder = tempfile::tempdir().unwrap();
    let (job, mut output) = stubborn("", folder.path());
    let cancel = job.cancel.clone();
    let task = tokio::spawn(async move { impatient().perform(job).await });
    output.line_with("ready").await;
    cancel.cancel();
    assert_eq!(task.await.unwrap().outcome, TaskOutcome::Cancelled);
    gone(folder.path()).await;
}

#[tokio::test]
async fn a_dropped_future_takes_the_whole_family_along() {
    let folder = tempfile::tempdir().unwrap();
    let (job, mut output) = stubborn("", folder.path());
    let task = tokio::spawn(async move { impatient().perform(job).await });
    output.line_with("ready").await;
    assert!(runs(&read(&folder.path().join("child"))));
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    gone(folder.path()).await;
}

#[tokio::test]
async fn a_command_has_time_to_tidy_up() {
    let folder = tempfile::tempdir().unwrap();
    // The shell dies of SIGTERM at once; its child, which holds the pipe, tidies up first.
    let line = "(trap 'echo tidy > tidied; exit 0' TERM; echo ready; while :; do sleep 0.01; done); true";
    let (mut job, mut output) = job(&format!(r#"{{shell: "{line}"}}"#), "{}");
    job.workdir = folder.path().to_owned();
    let cancel = job.cancel.clone();
    let worker = Worker::new(Settings { grace_ms: 60_000, ..Settings::default() });
    let task = tokio::spawn(async move { worker.perform(job).await });
    output.line_with("ready").await;
    cancel.cancel();
    let report =
        tokio::time::timeout(Duration::from_secs(30), task).await.expect("well before SIGKILL").unwrap();
    assert_eq!(report.outcome, TaskOutcome::Cancelled);
    assert_eq!(read(&folder.path().join("tidied")), "tidy\n");
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    // It holds the pipes, and it would for a quarter of an hour.
    let (mut job, _output) = job(r#"{shell: "sleep 1000 & echo $! > child; echo done"}"#, "{}");
    job.workdir = folder.path().to_owned();
    let done = result(impatient().perform(job).await);
    assert_eq!(done.get("stdout"), Some(&Value::str("done\n")));
    ends(&read(&folder.path().join("child"))).await;
}

#[tokio::test]
async fn what_has_left_the_family_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    // A daemon in a session of its own keeps the pipe open; it says when it has left.
    let line = "mkfifo f; setsid sh -c 'echo $$ > daemon; echo > f; exec sleep 1000' & read x < f; echo done";
    let (mut job, _output) = job(&format!(r#"{{shell: "{line}"}}"#), "{}");
    job.workdir = folder.path().to_owned();
    let done = result(impatient().perform(job).await);
    assert_eq!(done.get("stdout"), Some(&Value::str("done\n")));
    let daemon = read(&folder.path().join("daemon"));
    assert!(runs(&daemon), "it was not ours to end");
    let daemon: i32 = daemon.trim().parse().unwrap();
    let daemon = rustix::process::Pid::from_raw(daemon).unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
}
