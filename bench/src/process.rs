//! The real binary, from its start to its exit: `start` and W6.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bench_host::chain;
use crate::machine::rss_mb;

/// The release binary beside this one.
fn binary() -> PathBuf {
    let own = std::env::current_exe().expect("this is a file");
    let path = own.with_file_name("wonder");
    assert!(path.exists(), "build it first: cargo build --release -p wonder-cli");
    path
}

fn wonder(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).env("WONDER_HOME", home).current_dir(home.parent().unwrap_or(home));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Milliseconds of `wonder run` of a one-node file, the database being there.
pub(crate) fn start(base: &Path) -> f64 {
    let dir = tempfile::TempDir::new_in(base).expect("a directory");
    let (home, file) = (dir.path().join("home"), dir.path().join("one.yaml"));
    std::fs::write(&file, chain(1)).expect("a file");
    let file = file.to_string_lossy().into_owned();
    let once = || {
        let began = Instant::now();
        let status = wonder(&home, &["run", &file, "-o", "json"]).status().expect("it starts");
        assert!(status.success());
        began.elapsed().as_secs_f64() * 1_000.0
    };
    once();
    crate::median((0..9).map(|_| once()).collect())
}

/// Megabytes of a process that owns a database in which one run sleeps.
pub(crate) fn idle_mb(base: &Path) -> f64 {
    let dir = tempfile::TempDir::new_in(base).expect("a directory");
    let (home, file) = (dir.path().join("home"), dir.path().join("sleep.yaml"));
    std::fs::write(&file, "wonder: 1\nname: sleeper\nnodes:\n  nap: {sleep: 1h}\n").expect("a file");
    let mut child = wonder(&home, &["run", &file.to_string_lossy()]).spawn().expect("it starts");
    while events(&home, "sleep_started") == 0 {
        std::thread::yield_now();
    }
    let mb = rss_mb(&child.id().to_string());
    child.kill().expect("it dies");
    child.wait().expect("it is dead");
    mb
}

pub(crate) fn binary_mb() -> f64 {
    binary().metadata().expect("it is there").len() as f64 / f64::from(1 << 20)
}

pub(crate) struct Crash {
    /// From the restart to the first node that completes, and to the end.
    pub(crate) begin_s: f64,
    pub(crate) finish_s: f64,
    pub(crate) twice: usize,
}

/// W6: `kill -9` in the middle of a chain of 1 000, then `resume`.
pub(crate) fn crash(base: &Path) -> Crash {
    let dir = tempfile::TempDir::new_in(base).expect("a directory");
    let (home, file) = (dir.path().join("home"), dir.path().join("chain.yaml"));
    std::fs::write(&file, chain(1_000)).expect("a file");
    let mut child = wonder(&home, &["run", &file.to_string_lossy()]).spawn().expect("it starts");
    while completed(&home) < 400 {
        std::thread::yield_now();
    }
    child.kill().expect("it dies");
    child.wait().expect("it is dead");
    let done = completed(&home);
    let began = Instant::now();
    let mut child = wonder(&home, &["resume", "last"]).spawn().expect("it starts");
    while completed(&home) == done {
        std::thread::yield_now();
    }
    let begin_s = began.elapsed().as_secs_f64();
    assert!(child.wait().expect("it ends").success());
    Crash { begin_s, finish_s: began.elapsed().as_secs_f64(), twice: completed(&home) - 1_000 }
}

/// How many nodes the events say are completed.
fn completed(home: &Path) -> usize {
    events(home, "task_completed")
}

/// How many events of a kind there are, read from the database alone.
fn events(home: &Path, kind: &str) -> usize {
    let Ok(connection) = rusqlite::Connection::open_with_flags(
        home.join("wonder.db"),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE,
    ) else {
        return 0;
    };
    let sql = "SELECT count(*) FROM events, json_each(body) WHERE json_extract(value, '$.kind') = ?";
    connection.query_row(sql, [kind], |row| row.get::<_, i64>(0)).unwrap_or(0) as usize
}
