//! Opening the database file, and saying clearly why it cannot be opened.

use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode as Sqlite, OpenFlags};
use wonder_engine::{Cause, EngineError, ErrorCode, Reply};

use super::schema;
use crate::{Durability, private};

/// Statements of the hot path and of every query together.
const STATEMENTS: usize = 64;
/// Readers of other processes hold the file for moments only.
pub(super) const BUSY: Duration = Duration::from_secs(30);

pub(crate) fn database(home: &Path) -> PathBuf {
    home.join("wonder.db")
}

/// The one connection that writes. Makes the file if it is not there.
pub(crate) fn writer(home: &Path, durability: Durability) -> Reply<Connection> {
    let path = database(home);
    // What SQLite puts beside it has the same permissions.
    private::file_to_be_opened(&path)?;
    let mut connection = Connection::open(&path).map_err(|error| storage_error(&path, "opened", &error))?;
    prepare_writer(&mut connection, durability, &path)?;
    Ok(connection)
}

fn prepare_writer(connection: &mut Connection, durability: Durability, path: &Path) -> Reply<()> {
    let broken = |error: &rusqlite::Error| storage_error(path, "opened", error);
    make_ready(connection).map_err(|error| broken(&error))?;
    let version = check_version(connection, path)?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    // A new file gets its mode through a journal, whose end has to be on the disk as well: after a loss of power it
    // would take the file back to nothing.
    let pragmas = format!(
        "PRAGMA synchronous = EXTRA; PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA temp_store = MEMORY; \
         PRAGMA journal_size_limit = 67108864;"
    );
    connection.execute_batch(&pragmas).map_err(|error| broken(&error))?;
    if version < schema::VERSION {
        schema::migrate(connection, version).map_err(|error| broken(&error))?;
    }
    Ok(())
}

/// A connection that only reads.
#[derive(Debug)]
pub(crate) struct Reading {
    connection: Connection,
    /// It shows the file as it was when it was opened, and is for one query: the directory cannot be written, and
    /// without that SQLite does not notice what others do.
    pub(crate) is_snapshot: bool,
}

impl Deref for Reading {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

/// None if there is no database yet, or one that has to be brought forward first.
pub(crate) fn reader(home: &Path) -> Reply<Option<Reading>> {
    let path = database(home);
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => return Err(unreachable_file(&path, &error.to_string())),
    }
    let (reading, version) = reading(&path)?;
    if version < schema::VERSION {
        return Ok(None);
    }
    reading.pragma_update(None, "query_only", true).map_err(|e| storage_error(&path, "opened", &e))?;
    Ok(Some(reading))
}

/// There is a database, and an older version wrote it: before it can be read it has to be brought forward.
pub(crate) fn is_older(home: &Path) -> Reply<bool> {
    let path = database(home);
    if !path.try_exists().unwrap_or(false) {
        return Ok(false);
    }
    let (_, version) = reading(&path)?;
    Ok(0 < version && version < schema::VERSION)
}

/// Whoever may only read has no index of the log to share with others, and cannot make one: then the file is read as
/// it is, by somebody who writes nothing anyway.
fn reading(path: &Path) -> Reply<(Reading, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let opened = |uri: &str, mode: OpenFlags, is_snapshot: bool| -> rusqlite::Result<Reading> {
        let connection = Connection::open_with_flags(uri, flags | mode)?;
        make_ready(&connection)?;
        if is_snapshot {
            // Its index of the log is in memory.
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        // SQLite looks into the file only when something is asked of it.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(Reading { connection, is_snapshot })
    };
    let file = uri_of(path);
    let may_write = opened(&file, OpenFlags::SQLITE_OPEN_READ_WRITE, false);
    let reading = may_write.or_else(|error| {
        let kept_out = matches!(
            error.sqlite_error_code(),
            Some(Sqlite::CannotOpen | Sqlite::ReadOnly | Sqlite::PermissionDenied)
        );
        if !kept_out {
            return Err(error);
        }
        // What cannot be read in this way either is told as it was at first.
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let has_log =
            PathBuf::from(format!("{}-wal", path.display())).metadata().is_ok_and(|log| log.len() > 0);
        let way = if has_log { "vfs=unix-none" } else { "immutable=1" };
        opened(&file, read_only, false)
            .or_else(|_| opened(&format!("{file}?{way}"), read_only, true))
            .map_err(|_| error)
    });
    let reading = reading.map_err(|error| storage_error(path, "opened", &error))?;
    let version = check_version(&reading, path)?;
    Ok((reading, version))
}

/// What means something in a URI is written as its number.
fn uri_of(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte))
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri
}

fn make_ready(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A statement is planned once, not anew for every value that is bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// The version of the file: 0 if it is new. A newer one, or somebody else's, is left alone.
fn check_version(connection: &Connection, path: &Path) -> Reply<i64> {
    let number = |pragma: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, pragma, |row| row.get(0))
    };
    let read = || -> rusqlite::Result<(i64, i64, i64)> {
        Ok((
            number("application_id")?,
            number("user_version")?,
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?,
        ))
    };
    let (application, version, tables) = read().map_err(|error| storage_error(path, "read", &error))?;
    if version > schema::VERSION && application == schema::APPLICATION_ID {
        let message = format!(
            "{} was written by a newer version of wonder (format {version}; this one knows {})",
            path.display(),
            schema::VERSION
        );
        let help = "Nothing was changed. Use the newer version.";
        return Err(unusable(ErrorCode::NewerVersion, message).help(help));
    }
    if application != schema::APPLICATION_ID && tables > 0 {
        let message = format!("{} is a database, but not one of wonder's", path.display());
        return Err(unusable(ErrorCode::Storage, message).help("Nothing was changed."));
    }
    Ok(version)
}

/// What SQLite says, in words that tell what to do.
pub(crate) fn storage_error(path: &Path, what: &str, error: &rusqlite::Error) -> EngineError {
    let code = error.sqlite_error_code();
    let (why, help) = match code {
        Some(Sqlite::NotADatabase | Sqlite::DatabaseCorrupt) => (
            "the file is damaged".to_owned(),
            "It was left as it is. Put a backup in its place, or save what can be read: \
             sqlite3 wonder.db .recover > saved.sql"
                .to_owned(),
        ),
        Some(Sqlite::DiskFull) => {
            ("the disk is full".to_owned(), "Nothing that was acknowledged is lost. Make room.".to_owned())
        }
        Some(Sqlite::ReadOnly | Sqlite::PermissionDenied | Sqlite::CannotOpen) => (
            "it cannot be written".to_owned(),
            "Check who owns the directory and whether it is mounted read-only.".to_owned(),
        ),
        Some(Sqlite::SystemIoFailure) => (
            "the disk does not work".to_owned(),
            "Nothing that was acknowledged is lost. See the system's log for the disk's errors.".to_owned(),
        ),
        _ => (error.to_string(), "Nothing that was acknowledged is lost.".to_owned()),
    };
    let detail = if code.is_some() { format!(" ({error})") } else { String::new() };
    let message = format!("{} could not be {what}: {why}{detail}", path.display());
    let error = EngineError::new(ErrorCode::Storage, message).help(help);
    match code {
        Some(Sqlite::DiskFull) => error.because(Cause::DiskFull),
        Some(Sqlite::NotADatabase | Sqlite::DatabaseCorrupt) => error.because(Cause::StorageDamaged),
        Some(Sqlite::ReadOnly | Sqlite::PermissionDenied | Sqlite::CannotOpen) => {
            error.because(Cause::StorageUnusable)
        }
        _ => error,
    }
}

/// Whether what was tried may succeed by itself after a while: there may be room again, or the disk may come back.
pub(crate) fn may_pass(error: &EngineError) -> bool {
    let lasts = matches!(error.cause.as_deref(), Some(Cause::StorageDamaged | Cause::StorageGone));
    error.code == ErrorCode::Storage && !lasts
}

/// Which file a path leads to: a deleted one goes on taking what is written, for nobody to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Option<FileIdentity> {
        path.metadata().ok().map(|found| FileIdentity(found.dev(), found.ino()))
    }
}

pub(super) fn gone(path: &Path) -> EngineError {
    let message = format!("{} was deleted or replaced while it was in use", path.display());
    EngineError::new(ErrorCode::Storage, message)
        .help("Nothing more was written. What its runs had recorded is where the file is now, if it is anywhere.")
        .because(Cause::StorageGone)
}

/// Another directory would do.
fn unusable(code: ErrorCode, message: String) -> EngineError {
    EngineError::new(code, message).because(Cause::StorageUnusable)
}

pub(crate) fn unreachable_file(path: &Path, why: &str) -> EngineError {
    let message = format!("{} cannot be used: {why}", path.display());
    unusable(ErrorCode::Storage, message).help("Check who owns the directory.")
}
