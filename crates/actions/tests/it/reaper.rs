//! A host that is killed leaves no command behind. The host and the reaper of this test are this test's own
//! executable, started again with a variable set.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use wonder_actions::{Settings, Worker};

use crate::support::{ends, job, read, result, runs};

const ROLE: &str = "WONDER_TEST_ROLE";

fn plays(role: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|found| found == role)
}

/// How to start this executable so that it runs one of the roles below and nothing else.
fn role(name: &str) -> Vec<OsString> {
    let variable = format!("{ROLE}={name}");
    let test = format!("reaper::{name}");
    let mut words: Vec<OsString> = vec!["env".into(), variable.into()];
    words.push(std::env::current_exe().unwrap().into());
    words.extend(["--exact", &test, "--nocapture", "--quiet"].map(OsString::from));
    words
}

/// Not a test of its own: what the reaper's process does.
#[test]
fn as_reaper() {
    if plays("as_reaper") {
        wonder_actions::reaper::main_loop();
    }
}

/// Not a test of its own: what the host's process does, until it is killed.
#[test]
fn as_host() {
    if !plays("as_host") {
        return;
    }
    let folder = std::env::current_dir().unwrap();
    let line =
        "trap '' TERM; echo $$ > parent; (trap '' TERM; exec sleep 1000) & echo $! > child; echo ready; wait";
    let (mut job, mut output) = job(&format!(r#"{{shell: "{line}"}}"#), "{}");
    job.workdir = folder;
    let settings = Settings { reaper: Some(role("as_reaper")), ..Settings::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let task = tokio::spawn(async move { Worker::new(settings).perform(job).await });
        output.line_with("ready").await;
        std::io::stderr().write_all(b"the host is ready\n").unwrap();
        task.await.unwrap();
    });
}

async fn start_host(folder: &std::path::Path) -> Child {
    let words = role("as_host");
    let mut host = Command::new(&words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stderr.take().unwrap()).lines();
    while lines.next_line().await.unwrap().expect("the host lives") != "the host is ready" {}
    host
}

#[tokio::test]
async fn a_killed_host_leaves_no_command_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = start_host(folder.path()).await;
    let [parent, child] = ["parent", "child"].map(|name| read(&folder.path().join(name)));
    assert!(runs(&parent) && runs(&child));
    // SIGKILL: the host has no say in it. `env` has become the host, so this is its process.
    host.kill().await.unwrap();
    ends(&parent).await;
    ends(&child).await;
}

/// Waits until a process handles SIGTERM, SIGINT and SIGHUP itself.
async fn handles_signals(pid: u32) {
    let wanted = (1 << 14) | (1 << 1) | 1;
    loop {
        let status = read(Path::new(&format!("/proc/{pid}/status")));
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & wanted == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn sleeper() -> Child {
    Command::new("sleep").arg("1000").process_group(0).kill_on_drop(true).spawn().unwrap()
}

#[tokio::test]
async fn a_reaper_ends_what_it_was_told_of_whatever_it_is_sent_itself() {
    let words = role("as_reaper");
    let mut reaper = Command::new(&words[0]);
    let mut reaper = reaper.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let (mut named, taken_back) = (sleeper(), sleeper());
    let (named_id, other_id) = (named.id().unwrap(), taken_back.id().unwrap());
    let mut pipe = reaper.stdin.take().unwrap();
    let lines = format!("+{named_id}\n+{other_id}\n-{other_id}\n+1\n");
    pipe.write_all(lines.as_bytes()).await.unwrap();
    let id = reaper.id().unwrap();
    handles_signals(id).await;
    let id = Pid::from_raw(id.try_into().unwrap()).unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(id, signal).unwrap();
    }
    drop(pipe);
    assert!(reaper.wait().await.unwrap().success());
    assert_eq!(
        named.wait().await.unwrap().signal(),
        Some(15),
        "it was asked before it would have been killed"
    );
    assert!(runs(&other_id.to_string()));
}

#[tokio::test]
async fn a_reaper_that_does_not_start_is_mentioned_and_the_command_runs() {
    let (job, mut output) = job(r#"{shell: "echo fine"}"#, "{}");
    let settings = Settings { reaper: Some(vec!["/no/such/reaper".into()]), ..Settings::default() };
    result(Worker::new(settings).perform(job).await);
    output.line_with("no reaper: /no/such/reaper").await;
    output.line_with("fine").await;
}
