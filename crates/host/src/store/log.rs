//! The log beside the database (SQLite's `-wal` file): how it grows, and when it is written back.
//!
//! A commit into a part of the file that is there already takes two thirds of the time of one that makes the file
//! longer: the file system has nothing of its own to record. So the file is made longer ahead of time, with
//! zeros, many pages at once, which takes no longer than one page does. Only behind its end, and only within a
//! transaction, when SQLite's own lock keeps every other writer out. To SQLite zeros are the end of the log.
//!
//! Writing it back into the database makes whoever asks meanwhile wait, so it is done when nobody asks; only a
//! log that has become long is written back at once.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

/// Written back at once from so many pages on (16 MB).
const PAGES_MAX: u64 = 4_000;
/// Worth being written back when nobody asks for anything.
const PAGES_BEHIND: u64 = 250;
/// Made longer by so many pages, when so few are left.
const PAGES_AHEAD: u64 = 64;
const PAGES_LEFT: u64 = 16;

/// A page with its frame, and the head of the file.
const FRAME_BYTES: u64 = 4_096 + 24;
const HEAD_BYTES: u64 = 32;

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    /// In use, as the last commit said.
    pages: Arc<AtomicU64>,
    /// Where the file ends, as far as we know; the largest number if it cannot be made longer.
    end: u64,
}

impl Log {
    /// Whether an owner that died has left one.
    pub(super) fn is_left(database: &Path) -> bool {
        path_of(database).metadata().is_ok_and(|left| left.len() > 0)
    }

    /// Of the database that this connection writes.
    pub(super) fn of(connection: &mut Connection, database: &Path) -> rusqlite::Result<Log> {
        let pages = Arc::new(AtomicU64::new(0));
        let told = pages.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages: i32| {
            told.store(pages.unsigned_abs().into(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Log { path: path_of(database), file: None, pages, end: 0 })
    }

    fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(super) fn is_long(&self) -> bool {
        self.pages() >= PAGES_MAX
    }

    pub(super) fn is_behind(&self) -> bool {
        self.pages() >= PAGES_BEHIND
    }

    /// Within a transaction: sees to it that the next pages have their place. What cannot be had is no harm.
    pub(super) fn make_room(&mut self) {
        let wanted = HEAD_BYTES + (self.pages() + PAGES_LEFT) * FRAME_BYTES;
        if wanted > self.end && self.pages() < PAGES_MAX {
            self.end = self.lengthen().unwrap_or(u64::MAX);
        }
    }

    /// Where the file ends now.
    fn lengthen(&mut self) -> std::io::Result<u64> {
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().write(true).open(&self.path)?);
        }
        let Some(file) = &self.file else { return Ok(u64::MAX) };
        let end = file.metadata()?.len();
        let used = HEAD_BYTES + self.pages() * FRAME_BYTES;
        let wanted = used + PAGES_AHEAD * FRAME_BYTES;
        if wanted <= end {
            return Ok(end);
        }
        zeros(file, end, wanted).inspect_err(|_| {
            // The disk is nearly full: commits need the room more.
            drop(file.set_len(end));
        })?;
        Ok(wanted)
    }

    /// Into the database, as far as nobody reads the old; the next commit begins the log anew.
    pub(super) fn write_back(&self, connection: &Connection) {
        // What fails now is tried again after the next commit: nothing is lost, the log is only longer.
        drop(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        self.pages.store(0, Ordering::Relaxed);
    }

    /// The same, and gives back the room that the log takes: the disk is full. Nobody who reads is waited for.
    pub(super) fn give_back_room(&mut self, connection: &Connection) {
        // What fails is tried again with the commit that needs the room.
        drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        self.pages.store(0, Ordering::Relaxed);
        self.end = 0;
    }
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

fn zeros(file: &File, mut from: u64, to: u64) -> std::io::Result<()> {
    static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    while from < to {
        let bytes = (to - from).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..bytes as usize], from)?;
        from += bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(connection: &Connection, log: &mut Log) {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        log.make_room();
        connection.execute_batch("INSERT INTO t VALUES (1); COMMIT").unwrap();
    }

    fn length(log: &Log) -> u64 {
        std::fs::metadata(&log.path).unwrap().len()
    }

    #[test]
    fn what_is_ahead_of_the_log_is_not_part_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let mut connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
        let mut log = Log::of(&mut connection, &path).unwrap();
        (0..100).for_each(|_| commit(&connection, &mut log));
        assert!(length(&log) >= HEAD_BYTES + (log.pages() + 1) * FRAME_BYTES, "there is room ahead");

        // As a crash leaves them.
        let copy = dir.path().join("b.db");
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(&log.path, dir.path().join("b.db-wal")).unwrap();
        let rows = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(rows(&Connection::open(&copy).unwrap()), 100);

        let before = length(&log);
        log.write_back(&connection);
        commit(&connection, &mut log);
        assert!(log.pages() < 3, "it begins anew");
        assert_eq!(length(&log), before);
        assert_eq!(rows(&connection), 101);
    }
}
