//! The limits of the machine itself, measured in the same run and the same directory: what one commit, one
//! row in a shared commit, and one fdatasync cost without an engine.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

/// How long each limit is measured.
const FOR: Duration = Duration::from_millis(400);
/// Of a row: as long as the engine's.
const BODY: [u8; 300] = [b'x'; 300];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    /// Milliseconds of one `FULL` commit of one row.
    pub(crate) commit_ms: f64,
    /// A question over a Unix socket to a thread that commits one row twice and answers: what any engine
    /// needs which records that it begins and that it has ended.
    pub(crate) round_trip_ms: f64,
    /// One in a hundred of those takes longer than this: the disk's own moods.
    pub(crate) round_trip_p99_ms: f64,
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
            round_trip_ms: mean(self.round_trip_ms, after.round_trip_ms),
            round_trip_p99_ms: mean(self.round_trip_p99_ms, after.round_trip_p99_ms),
            rows_per_s: mean(self.rows_per_s, after.rows_per_s),
            fdatasync_per_s: mean(self.fdatasync_per_s, after.fdatasync_per_s),
        }
    }
}

pub(crate) fn measure(dir: &Path) -> Raw {
    let trips = round_trips(dir);
    Raw {
        commit_ms: 1_000.0 / rows_per_second(dir, 1),
        round_trip_ms: trips[trips.len() / 2],
        round_trip_p99_ms: trips[trips.len() * 99 / 100],
        rows_per_s: rows_per_second(dir, 64),
        fdatasync_per_s: syncs_per_second(dir),
    }
}

fn rows_per_second(dir: &Path, rows: usize) -> f64 {
    let table = Table::new(dir);
    let (began, mut written) = (Instant::now(), 0);
    while began.elapsed() < FOR {
        table.commit(written..written + rows);
        written += rows;
    }
    written as f64 / began.elapsed().as_secs_f64()
}

/// As many as there is time for, sorted.
fn round_trips(dir: &Path) -> Vec<f64> {
    let (mut asks, mut answers) = UnixStream::pair().expect("a socket");
    let table = Table::new(dir);
    let server = std::thread::spawn(move || {
        let mut question = [0; 512];
        for row in 0.. {
            if answers.read_exact(&mut question).is_err() {
                return;
            }
            table.commit(2 * row..2 * row + 1);
            table.commit(2 * row + 1..2 * row + 2);
            answers.write_all(&question).expect("somebody listens");
        }
    });
    let (began, mut all, mut message) = (Instant::now(), Vec::new(), [7; 512]);
    while began.elapsed() < FOR {
        let turn = Instant::now();
        asks.write_all(&message).expect("a question");
        asks.read_exact(&mut message).expect("an answer");
        all.push(turn.elapsed().as_secs_f64() * 1_000.0);
    }
    drop(asks);
    server.join().expect("it ends");
    all.sort_by(f64::total_cmp);
    all
}

/// A database with one table, as plain as it can be.
struct Table {
    connection: Connection,
    _dir: TempDir,
}

impl Table {
    fn new(dir: &Path) -> Table {
        let dir = TempDir::new_in(dir).expect("a directory");
        let connection = Connection::open(dir.path().join("raw.db")).expect("a database");
        let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                       CREATE TABLE t (a INTEGER, b INTEGER, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;";
        connection.execute_batch(pragmas).expect("pragmas");
        Table { connection, _dir: dir }
    }

    fn commit(&self, rows: Range<usize>) {
        self.connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
        let mut insert =
            self.connection.prepare_cached("INSERT INTO t VALUES (1, ?, ?)").expect("a statement");
        for row in rows {
            insert.execute(rusqlite::params![row as i64, &BODY[..]]).expect("a row");
        }
        self.connection.execute_batch("COMMIT").expect("commit");
    }
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
