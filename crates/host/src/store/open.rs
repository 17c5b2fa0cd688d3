//! Opening the database file, and saying clearly why it cannot be opened.

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
const BUSY: Duration = Duration::from_secs(30);

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
    let pragmas = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA temp_store = MEMORY; \
         PRAGMA journal_size_limit = 67108864;"
    );
    connection.execute_batch(&pragmas).map_err(|error| broken(&error))?;
    if version < schema::VERSION {
        schema::migrate(connection, version).map_err(|error| broken(&error))?;
    }
    Ok(())
}

/// A connection that only reads. None if there is no database yet.
pub(crate) fn reader(home: &Path) -> Reply<Option<Connection>> {
    let path = database(home);
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => return Err(unreachable_file(&path, &error.to_string())),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Reading a file in WAL mode wants to write its index; without the right to, plain reading may do.
    let connection = Connection::open_with_flags(&path, flags)
        .or_else(|_| Connection::open_with_flags(&path, read_only))
        .map_err(|error| storage_error(&path, "opened", &error))?;
    make_ready(&connection).map_err(|error| storage_error(&path, "opened", &error))?;
    if check_version(&connection, &path)? < schema::VERSION {
        return Ok(None);
    }
    connection.pragma_update(None, "query_only", true).map_err(|e| storage_error(&path, "opened", &e))?;
    Ok(Some(connection))
}

/// There is a database, and an older version wrote it: before it can be read it has to be brought forward.
pub(crate) fn is_older(home: &Path) -> Reply<bool> {
    let path = database(home);
    if !path.try_exists().unwrap_or(false) {
        return Ok(false);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(&path, flags).map_err(|error| storage_error(&path, "opened", &error))?;
    make_ready(&connection).map_err(|error| storage_error(&path, "opened", &error))?;
    let version = check_version(&connection, &path)?;
    Ok(0 < version && version < schema::VERSION)
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
        Some(Sqlite::ReadOnly | Sqlite::PermissionDenied | Sqlite::CannotOpen) => {
            error.because(Cause::StorageUnusable)
        }
        _ => error,
    }
}

/// Another directory would do.
fn unusable(code: ErrorCode, message: String) -> EngineError {
    EngineError::new(code, message).because(Cause::StorageUnusable)
}

pub(crate) fn unreachable_file(path: &Path, why: &str) -> EngineError {
    let message = format!("{} cannot be used: {why}", path.display());
    unusable(ErrorCode::Storage, message).help("Check who owns the directory.")
}
