//! An independent reader of what a crash left behind.
//!
//! It knows the tables and the words of events from `docs/storage.md`, and no code of Wonder's: what it
//! finds right is right because of what is on the disk. Beside the database it reads a log that commands
//! wrote themselves: one line per execution, `KEY HOST MILLISECONDS`.

mod effects;
mod log;

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

pub use effects::{Execution, executions};

/// What a checked database holds.
#[derive(Debug, Default)]
pub struct Summary {
    pub runs: usize,
    pub events: usize,
    /// Completed visits of nodes.
    pub completed: usize,
    pub executions: usize,
    /// Keys that were executed twice, because a host died in between.
    pub repeated: usize,
}

/// A run as its rows tell.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) bundle: Value,
    pub(crate) events: Vec<Value>,
}

/// Every promise that is broken, in words; or what there was to check.
/// `deaths`: how many hosts were killed, each of which may have had the same command out.
pub fn check(database: &Path, effects: &Path, deaths: usize) -> Result<Summary, Vec<String>> {
    let runs = read(database).map_err(|error| vec![format!("{}: {error}", database.display())])?;
    let executions = executions(effects).map_err(|error| vec![error])?;
    let mut broken = Vec::new();
    let mut summary = Summary { runs: runs.len(), executions: executions.len(), ..Summary::default() };
    for run in runs.values() {
        summary.events += run.events.len();
        summary.completed += log::check(run, &mut broken);
    }
    let mut check = effects::Check { runs: &runs, deaths, broken: Vec::new() };
    summary.repeated = check.executions(&executions);
    broken.append(&mut check.broken);
    if broken.is_empty() { Ok(summary) } else { Err(broken) }
}

fn read(database: &Path) -> Result<BTreeMap<String, Run>, String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(database, flags).map_err(|e| e.to_string())?;
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(|e| e.to_string())?;
    if sound != "ok" {
        return Err(format!("integrity_check says {sound}"));
    }
    let sql = "SELECT no, runs.id, status, bundle FROM runs JOIN definitions d ON d.id = definition";
    let mut statement = connection.prepare(sql).map_err(|e| e.to_string())?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get::<_, String>(3)?))
    });
    let mut runs = BTreeMap::new();
    for row in rows.map_err(|e| e.to_string())? {
        let (no, id, status, bundle) = row.map_err(|e| e.to_string())?;
        let bundle = serde_json::from_str(&bundle).map_err(|e| format!("definition of {id}: {e}"))?;
        let events = events(&connection, no).map_err(|e| format!("run {id}: {e}"))?;
        runs.insert(id.clone(), Run { id, status, bundle, events });
    }
    Ok(runs)
}

/// Rows hold steps: the key is the number of the first event. Large parts of an event are elsewhere; what an
/// event is and whom it is about never is.
fn events(connection: &Connection, no: i64) -> Result<Vec<Value>, String> {
    let sql = "SELECT seq, body FROM events WHERE run = ? ORDER BY seq";
    let mut statement = connection.prepare(sql).map_err(|e| e.to_string())?;
    let rows = statement
        .query_map([no], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .map_err(|e| e.to_string())?;
    let mut all: Vec<Value> = Vec::new();
    for row in rows {
        let (seq, body) = row.map_err(|e| e.to_string())?;
        let step: Vec<Value> = serde_json::from_str(&body).map_err(|e| format!("row {seq}: {e}"))?;
        if step.first().map(|event| &event["seq"]) != Some(&Value::from(seq)) {
            return Err(format!("row {seq} does not begin with event {seq}"));
        }
        all.extend(step);
    }
    Ok(all)
}

pub(crate) fn word<'v>(event: &'v Value, key: &str) -> &'v str {
    event[key].as_str().unwrap_or_default()
}

pub(crate) fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_default()
}
