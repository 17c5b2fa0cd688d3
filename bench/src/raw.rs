//! The limits of the machine itself, measured in the same run and the same directory: what one commit, one
//! row in a shared commit, and one fdatasync cost without an engine.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// How long each limit is measured.
const FOR: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    /// Milliseconds of one `FULL` commit of one row.
    pub(crate) commit_ms: f64,
    /// The same after a millisecond of rest: what a commit costs that does not follow the last one at once.
    pub(crate) rested_commit_ms: f64,
    /// Rows a second with 64 rows a commit.
    pub(crate) rows_per_s: f64,
    pub(crate) fdatasync_per_s: f64,
}

impl Raw {
    /// Between two moments: what lay between them had about this.
    pub(crate) fn between(self, after: Raw) -> Raw {
        let mean = |one: f64, other: f64| (one + other) / 2.0;
        Raw {
            commit_ms: mean(self.commit_ms, after.commit_ms),
            rested_commit_ms: mean(self.rested_commit_ms, after.rested_commit_ms),
            rows_per_s: mean(self.rows_per_s, after.rows_per_s),
            fdatasync_per_s: mean(self.fdatasync_per_s, after.fdatasync_per_s),
        }
    }
}

pub(crate) fn measure(dir: &Path) -> Raw {
    let rate = |rows: usize| rows_per_second(dir, rows, Duration::ZERO);
    Raw {
        commit_ms: 1_000.0 / rate(1),
        rested_commit_ms: 1_000.0 / rows_per_second(dir, 1, Duration::from_millis(1)),
        rows_per_s: rate(64),
        fdatasync_per_s: syncs_per_second(dir),
    }
}

/// Of the time that is spent on commits; the rest between them is not counted.
fn rows_per_second(dir: &Path, rows: usize, rest: Duration) -> f64 {
    let path = dir.join(format!("raw-{rows}.db"));
    let connection = Connection::open(&path).expect("a database");
    let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                   CREATE TABLE t (a INTEGER, b INTEGER, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;";
    connection.execute_batch(pragmas).expect("pragmas");
    let body = "x".repeat(300);
    let (began, mut busy, mut written) = (Instant::now(), Duration::ZERO, 0usize);
    while began.elapsed() < FOR {
        std::thread::sleep(rest);
        let turn = Instant::now();
        connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
        let mut insert = connection.prepare_cached("INSERT INTO t VALUES (1, ?, ?)").expect("a statement");
        for _ in 0..rows {
            insert.execute(rusqlite::params![written as i64, body]).expect("a row");
            written += 1;
        }
        connection.execute_batch("COMMIT").expect("commit");
        busy += turn.elapsed();
    }
    let rate = written as f64 / busy.as_secs_f64();
    drop(std::fs::remove_file(path));
    rate
}

fn syncs_per_second(dir: &Path) -> f64 {
    let path = dir.join("raw.bin");
    let mut file = File::create(&path).expect("a file");
    let (began, mut syncs) = (Instant::now(), 0);
    while began.elapsed() < FOR {
        file.write_all(&[7; 512]).expect("a write");
        file.sync_data().expect("a sync");
        syncs += 1;
    }
    let rate = f64::from(syncs) / began.elapsed().as_secs_f64();
    drop(std::fs::remove_file(path));
    rate
}
