//! Rows as values. A row that was damaged is still shown: what cannot be read of it is left empty, a run is set aside
//! with the reason, and the rows beside it are not touched by it.

use std::cell::RefCell;
use std::path::Path;

use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::de::DeserializeOwned;
use wonder_core::Time;
use wonder_core::event::GateKind;
use wonder_engine::{EngineError, ErrorCode, Forked, GateView, LogLine, LogStream, RunRow, Status};

use super::open::storage_error;
use super::read::StoredRun;

/// Why a query gave nothing: a row that holds what it cannot hold is the row's own damage, not the disk's.
pub(super) fn unreadable(path: &Path, error: &rusqlite::Error) -> EngineError {
    match error {
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => {
            EngineError::new(ErrorCode::Quarantined, format!("a stored row is damaged: {error}"))
        }
        error => storage_error(path, "read", error),
    }
}

/// The cells of a row, and the first thing that was wrong with one of them.
struct Cells<'r, 's> {
    row: &'r Row<'s>,
    damage: RefCell<Option<String>>,
}

impl<'r, 's> Cells<'r, 's> {
    fn of(row: &'r Row<'s>) -> Cells<'r, 's> {
        Cells { row, damage: RefCell::default() }
    }

    fn at<T: FromSql + Default>(&self, at: usize) -> T {
        self.row.get(at).unwrap_or_else(|error| self.damaged(error.to_string()))
    }

    /// Numbers that are never negative, in the only form that SQLite has.
    fn count(&self, at: usize) -> u64 {
        self.at::<i64>(at) as u64
    }

    fn time(&self, at: usize) -> Time {
        Time(self.at(at))
    }

    fn json<T: DeserializeOwned + Default>(&self, at: usize) -> T {
        let text: String = self.at(at);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| self.damaged(format!("column {at} is no JSON: {error}")))
    }

    fn damaged<T: Default>(&self, why: String) -> T {
        self.damage.borrow_mut().get_or_insert(why);
        T::default()
    }

    fn damage(&self) -> Option<String> {
        self.damage.borrow().as_ref().map(|why| format!("its row is damaged: {why}"))
    }
}

pub(super) fn stored_run(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let cells = Cells::of(row);
    let no: i64 = row.get(0)?;
    let status: String = cells.at(4);
    let id: String = cells.at(1);
    let run = RunRow {
        run: if id.is_empty() { format!("damaged-{no}") } else { id },
        workflow: cells.at(2),
        version: cells.at(3),
        status: Status::parse(&status).unwrap_or_else(|| {
            cells.damaged::<()>(format!("{status:?} is no status"));
            Status::Quarantined
        }),
        root: cells.at(5),
        parent: cells.at(6),
        started_at: cells.time(7),
        ended_at: cells.at::<Option<i64>>(8).map(Time),
        usd_micros: cells.count(9),
        tokens: cells.count(10),
        forked: forked(&cells),
        project: cells.at(19),
        driven: false,
        labels: cells.json(11),
        file: cells.at(21),
        closed_ms: cells.count(22),
    };
    let (definition, callable) = (cells.at(12), cells.json(13));
    let (workdir, wake_at) = (cells.at(14), cells.at(20));
    let evidence: Option<String> = cells.at(15);
    let damage = cells.damage();
    let status = if damage.is_some() { Status::Quarantined } else { run.status };
    let (row, evidence) = (RunRow { status, ..run }, evidence.or(damage));
    Ok(StoredRun { no, row, definition, callable, workdir, evidence, wake_at })
}

fn forked(cells: &Cells<'_, '_>) -> Option<Forked> {
    let from: Option<String> = cells.at(16);
    from.map(|from| Forked { from, copied_usd_micros: cells.count(17), copied_tokens: cells.count(18) })
}

/// A gate can be answered whatever its row says: what it asks is in its run's events.
pub(super) fn gate_view(row: &Row<'_>) -> rusqlite::Result<GateView> {
    let cells = Cells::of(row);
    let (run, gate): (String, u64) = (cells.at(0), cells.at(3));
    let kind: String = cells.at(5);
    let item: Option<String> = cells.at(13);
    let mut view = GateView {
        id: format!("{run}:{gate}"),
        run,
        root: cells.at(1),
        workflow: cells.at(2),
        node: cells.at(4),
        kind: serde_json::from_value(kind.clone().into()).unwrap_or_else(|_| {
            cells.damaged::<()>(format!("{kind:?} is no kind of gate"));
            GateKind::Node
        }),
        title: cells.at(6),
        body: cells.at(7),
        form: cells.json(8),
        assignees: cells.json(9),
        opened_at: cells.time(10),
        deadline: cells.at::<Option<i64>>(11).map(Time),
        visit: cells.at(12),
        item: item.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    };
    if let Some(damage) = cells.damage() {
        view.title = format!("{} ({damage})", view.title).trim_start().to_owned();
    }
    Ok(view)
}

pub(super) fn log_line(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    let cells = Cells::of(row);
    let stream: String = cells.at(7);
    let mut line = LogLine {
        number: cells.at(0),
        run: cells.at(1),
        at: cells.time(2),
        node: cells.at(3),
        token: cells.at(4),
        attempt: cells.at(5),
        step: cells.at(6),
        stream: match stream.as_str() {
            "stdout" => LogStream::Stdout,
            "stderr" => LogStream::Stderr,
            _ => LogStream::Note,
        },
        text: cells.at(8),
    };
    if let Some(damage) = cells.damage() {
        line.text = format!("{} ({damage})", line.text).trim_start().to_owned();
    }
    Ok(line)
}
