//! Reading: rows as they are, events with their blobs put back. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use wonder_blobs::DecodeError;
use wonder_core::artifact::Artifact;
use wonder_core::def::Name;
use wonder_core::event::TokenId;
use wonder_core::state::State;
use wonder_core::{Event, Time};
use wonder_engine::{
    EngineError, ErrorCode, Filter, GateView, LogLine, LogStream, Reply, RunRow, Status, StoredStep,
};

use super::parts::Blobs;
use super::rows::{gate_view, log_line, stored_run, unreadable};
use super::write::NodeSamples;
use crate::project::Spent;

const RUN: &str = "SELECT no, id, workflow, version, status, root, parent, started_at, ended_at, usd_micros, \
                   tokens, labels, definition, callable, workdir, evidence, forked_from, copied_usd_micros, \
                   copied_tokens, project, wake_at, file, closed_ms FROM runs";
/// In the words of the index on statuses, so that it is used.
const NOT_COMPLETED: &str = "status != 'completed'";
/// What a list shows if nobody says how much.
const LIST_MAX: u32 = 50;
/// How much one answer holds at most.
const LINES_MAX: u32 = 10_000;
const ANSWER_BYTES_MAX: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Reader<'c> {
    connection: &'c Connection,
    path: &'c Path,
}

/// A run's row, with what only the host needs.
#[derive(Clone, Debug)]
pub(crate) struct StoredRun {
    pub(crate) no: i64,
    pub(crate) row: RunRow,
    pub(crate) definition: i64,
    pub(crate) callable: BTreeMap<Name, i64>,
    pub(crate) workdir: String,
    pub(crate) evidence: Option<String>,
    pub(crate) wake_at: Option<i64>,
}

/// An artifact, and who kept it when.
#[derive(Clone, Debug)]
pub(crate) struct StoredArtifact {
    pub(crate) artifact: Artifact,
    pub(crate) run: String,
    pub(crate) token: TokenId,
    pub(crate) at: Time,
}

fn artifact(row: &Row<'_>) -> rusqlite::Result<Artifact> {
    let name = |at: usize| row.get::<_, String>(at).map(Name::from);
    Ok(Artifact {
        name: name(0)?,
        artifact_type: row.get::<_, Option<String>>(1)?.map(Name::from),
        media_type: name(2)?,
        bytes: row.get::<_, i64>(3)? as u64,
        hash: name(4)?,
    })
}

/// What a query asks for, put together from what is wanted: SQLite plans with what is there, and no index is
/// lost to a condition that is not.
#[derive(Default)]
struct Conditions {
    text: String,
    values: Vec<rusqlite::types::Value>,
}

impl Conditions {
    fn and(&mut self, condition: &str) {
        self.text.push_str(if self.text.is_empty() { " WHERE " } else { " AND " });
        self.text.push_str(condition);
    }

    fn add<T: Into<rusqlite::types::Value>>(&mut self, condition: &str, value: Option<T>) {
        if let Some(value) = value {
            self.and(condition);
            self.values.push(value.into());
        }
    }
}

impl<'c> Reader<'c> {
    pub(crate) fn new(connection: &'c Connection, path: &'c Path) -> Reader<'c> {
        Reader { connection, path }
    }

    /// While this is kept, everything that is read is of one moment.
    pub(crate) fn moment(&self) -> Reply<rusqlite::Transaction<'_>> {
        self.connection.unchecked_transaction().map_err(|error| unreadable(self.path, &error))
    }

    fn all<T, P: Params>(
        &self,
        sql: &str,
        params: P,
        of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Reply<Vec<T>> {
        let read = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(sql)?.query_map(params, of)?.collect()
        };
        read().map_err(|error| unreadable(self.path, &error))
    }

    fn one<T, P: Params>(
        &self,
        sql: &str,
        params: P,
        of: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Reply<Option<T>> {
        let read = || self.connection.prepare_cached(sql)?.query_row(params, of).optional();
        read().map_err(|error| unreadable(self.path, &error))
    }

    pub(crate) fn run(&self, id: &str) -> Reply<Option<StoredRun>> {
        self.one(&format!("{RUN} WHERE id = ?"), [id], stored_run)
    }

    /// The run meant by a whole id, `last`, or a beginning or end of an id that only one run has.
    pub(crate) fn find(&self, text: &str) -> Reply<StoredRun> {
        if text == "last" {
            let sql = format!("{RUN} WHERE parent IS NULL ORDER BY no DESC LIMIT 1");
            return self.one(&sql, [], stored_run)?.ok_or_else(EngineError::no_run_yet);
        }
        if let Some(run) = self.run(text)? {
            return Ok(run);
        }
        let pattern = text.replace(['%', '_', '\\'], "");
        let sql = format!("{RUN} WHERE id LIKE ?1 || '%' OR id LIKE '%' || ?1 ORDER BY no DESC LIMIT 6");
        let mut found = if pattern.is_empty() { Vec::new() } else { self.all(&sql, [&pattern], stored_run)? };
        // A child's id begins with its parent's: what fits a run whole fits its children only by the way.
        let roots = found.iter().filter(|run| run.row.parent.is_none()).count();
        if roots == 1 {
            found.retain(|run| run.row.parent.is_none());
        }
        match found.len() {
            0 => Err(EngineError::no_such_run(text)),
            1 => Ok(found.remove(0)),
            _ => {
                let fits = found.into_iter().take(5).map(|run| run.row.run).collect();
                Err(EngineError::several_runs(text, fits))
            }
        }
    }

    /// Runs of a workflow that have not ended, the oldest first.
    pub(crate) fn live_of(&self, workflow: &str) -> Reply<Vec<StoredRun>> {
        let sql = format!("{RUN} WHERE workflow = ? AND ended_at IS NULL ORDER BY no");
        self.all(&sql, [workflow], stored_run)
    }

    /// `driven`: the roots that an engine carries on now.
    pub(crate) fn list(&self, filter: &Filter, driven: &BTreeSet<Name>) -> Reply<Vec<StoredRun>> {
        let query = self.listed(filter, driven)?;
        let sql = format!("{RUN}{} ORDER BY no DESC LIMIT ?", query.text);
        self.all(&sql, rusqlite::params_from_iter(query.values), stored_run)
    }

    fn listed(&self, filter: &Filter, driven: &BTreeSet<Name>) -> Reply<Conditions> {
        let before = match &filter.after {
            Some(run) => Some(self.find(run)?.no),
            None => None,
        };
        let parent = filter.parent.as_deref().map(|run| self.find(run)).transpose()?.map(|found| found.row);
        let mut query = Conditions::default();
        query.add("no < ?", before);
        query.add("workflow = ?", filter.workflow.clone());
        query.add("status = ?", filter.status.map(|status| status.as_str().to_owned()));
        if filter.status.is_some_and(|status| status != Status::Completed) {
            query.and(NOT_COMPLETED);
        }
        if filter.interrupted {
            query.and(NOT_COMPLETED);
            query.and("status IN ('queued', 'running', 'cancelling')");
            let driven: Vec<&str> = driven.iter().map(|root| &**root).collect();
            let driven = serde_json::to_string(&driven).expect("names are JSON");
            query.add("root NOT IN (SELECT value FROM json_each(?))", Some(driven));
        }
        query.add("project = ?", filter.project.clone());
        // Numbers grow with time, but for clocks that were set back: the index says where to begin and to end.
        let (since, until) = (filter.since.map(|time| time.0), filter.until.map(|time| time.0));
        query.add("no >= (SELECT min(no) FROM runs INDEXED BY runs_by_start WHERE started_at >= ?)", since);
        query.add("started_at >= ?", since);
        query.add("no <= (SELECT max(no) FROM runs INDEXED BY runs_by_start WHERE started_at < ?)", until);
        query.add("started_at < ?", until);
        // The index on roots finds the children of one tree.
        query.add("root = ?", parent.as_ref().map(|row| row.root.clone()));
        query.add("parent = ?", parent.as_ref().map(|row| row.run.clone()));
        if parent.is_none() && !filter.children {
            query.and("parent IS NULL");
        }
        for (key, value) in &filter.labels {
            query.and("no IN (SELECT run FROM labels WHERE key = ? AND value = ?)");
            query.values.extend([key.clone().into(), value.clone().into()]);
        }
        query.values.push(i64::from(filter.limit.unwrap_or(LIST_MAX)).into());
        Ok(query)
    }

    /// A run and everything it called, directly or not, in the order of their starts.
    pub(crate) fn tree(&self, id: &str) -> Reply<Vec<StoredRun>> {
        let Some(top) = self.run(id)? else { return Ok(Vec::new()) };
        let below = format!("{}.", top.row.run);
        let sql = format!("{RUN} WHERE root = ? AND parent IS NOT NULL ORDER BY no");
        let called = self.all(&sql, [&top.row.root], stored_run)?.into_iter();
        let below = called.filter(|run| run.row.run.starts_with(&below));
        Ok(std::iter::once(top).chain(below).collect())
    }

    /// Runs that a run called itself, in the order of their starts.
    pub(crate) fn called_by(&self, row: &RunRow) -> Reply<Vec<Name>> {
        let sql = "SELECT id FROM runs WHERE root = ?1 AND parent = ?2 ORDER BY no";
        self.all(sql, [&row.root, &row.run], |row| Ok(row.get::<_, String>(0)?.into()))
    }

    /// Events after number `after`, about `limit` of them: whole steps.
    pub(crate) fn events(&self, no: i64, after: u64, limit: usize) -> Reply<Vec<Event>> {
        let sql = "SELECT refs, body FROM events WHERE run = ?1 AND seq >= \
                   (SELECT coalesce(max(seq), 0) FROM events WHERE run = ?1 AND seq <= ?2 + 1) ORDER BY seq";
        let read = || -> rusqlite::Result<Vec<(bool, String)>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![no, after])?;
            let (mut found, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let body: String = row.get(1)?;
                bytes += body.len();
                found.push((row.get(0)?, body));
                if found.len() >= limit || bytes > ANSWER_BYTES_MAX && limit < usize::MAX {
                    break;
                }
            }
            Ok(found)
        };
        let rows = read().map_err(|error| unreadable(self.path, &error))?;
        let mut events = Vec::new();
        for (refs, body) in rows {
            match self.decoded(&body, refs) {
                Ok(step) => events.extend(step.into_iter().filter(|event| event.seq > after)),
                // Who reads on is shown what can be read, and told of the damage where it is.
                Err(_) if limit < usize::MAX && !events.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(events)
    }

    /// Steps of all runs after a place among them, as they are encoded; about `limit` of them.
    pub(crate) fn steps(&self, after: u64, limit: usize) -> Reply<Vec<StoredStep>> {
        let sql = "SELECT events.no, id, seq, refs, body FROM events JOIN runs ON runs.no = run \
                   WHERE events.no > ? ORDER BY events.no";
        let read = || -> rusqlite::Result<Vec<(StoredStep, bool)>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([after])?;
            let (mut found, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let step = StoredStep {
                    cursor: row.get(0)?,
                    run: row.get(1)?,
                    seq: row.get(2)?,
                    events: row.get(4)?,
                };
                bytes += step.events.len();
                found.push((step, row.get(3)?));
                if found.len() >= limit || bytes > ANSWER_BYTES_MAX {
                    break;
                }
            }
            Ok(found)
        };
        let rows = read().map_err(|error| unreadable(self.path, &error))?;
        let mut steps = Vec::with_capacity(rows.len());
        for (mut step, refs) in rows {
            // Large parts lie elsewhere: only then it is read and written anew.
            if refs {
                let events = self.decoded(&step.events, true)?;
                step.events = serde_json::to_string(&events)
                    .map_err(|error| EngineError::internal(format!("an event is not JSON: {error}")))?;
            }
            steps.push(step);
        }
        Ok(steps)
    }

    fn decoded(&self, body: &str, refs: bool) -> Reply<Vec<Event>> {
        wonder_blobs::decode(body, refs, &Blobs(self.connection)).map_err(|error| match error {
            DecodeError::Store(error) => unreadable(self.path, &error),
            DecodeError::Damaged(why) => EngineError::new(ErrorCode::Quarantined, why),
        })
    }

    pub(crate) fn snapshot(&self, no: i64) -> Reply<Option<State>> {
        let sql = "SELECT state FROM snapshots WHERE run = ?";
        let text = self.one(sql, [no], |row| row.get::<_, String>(0))?;
        // A snapshot that cannot be read is a shortcut lost, nothing more.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// A stored definition and its version.
    pub(crate) fn definition(&self, id: i64) -> Reply<(String, u32)> {
        let sql = "SELECT bundle, version FROM definitions WHERE id = ?";
        let found = self.one(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let missing = || EngineError::new(ErrorCode::Quarantined, format!("definition {id} is missing"));
        found.ok_or_else(missing)
    }

    /// Id and version of a definition that is stored already.
    pub(crate) fn definition_by_hash(&self, name: &str, hash: &[u8; 32]) -> Reply<Option<(i64, u32)>> {
        let sql = "SELECT id, version FROM definitions WHERE name = ? AND hash = ?";
        self.one(sql, params![name, hash], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    pub(crate) fn latest_version(&self, name: &str) -> Reply<u32> {
        let sql = "SELECT coalesce(max(version), 0) FROM definitions WHERE name = ?";
        Ok(self.one(sql, [name], |row| row.get(0))?.unwrap_or(0))
    }

    /// The highest number of a run, a definition and a line.
    pub(crate) fn highest(&self) -> Reply<(i64, i64, u64)> {
        let sql = "SELECT (SELECT coalesce(max(no), 0) FROM runs), \
                   (SELECT coalesce(max(id), 0) FROM definitions), \
                   (SELECT coalesce(max(number), 0) FROM logs)";
        Ok(self.one(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.unwrap_or_default())
    }

    /// When runs that wait want to be woken.
    pub(crate) fn timers(&self, until: Option<Time>) -> Reply<Vec<(Time, Name)>> {
        let sql = "SELECT wake_at, id FROM runs WHERE wake_at <= ? ORDER BY wake_at";
        let until = until.map_or(i64::MAX, |time| time.0);
        // A time that is none does not keep the others: its run says when it wants to be woken once it is loaded.
        let found =
            self.all(sql, [until], |row| Ok(row.get(0).and_then(|at| Ok((at, row.get::<_, String>(1)?)))))?;
        Ok(found.into_iter().flatten().map(|(at, run)| (Time(at), run.into())).collect())
    }

    /// What a project has spent since that day.
    pub(crate) fn spent(&self, project: &str, first_day: i64) -> Reply<Spent> {
        let sql = "SELECT coalesce(sum(usd_micros), 0), coalesce(sum(tokens), 0) FROM spent \
                   WHERE project = ? AND day >= ?";
        let sum = |row: &Row<'_>, at: usize| row.get::<_, i64>(at).map(|sum| sum as u64);
        let spent = self.one(sql, params![project, first_day], |row| {
            Ok(Spent { usd_micros: sum(row, 0)?, tokens: sum(row, 1)? })
        })?;
        Ok(spent.unwrap_or_default())
    }

    /// What past runs of a workflow showed of its nodes.
    pub(crate) fn learnt(&self, workflow: &str) -> Reply<BTreeMap<Name, NodeSamples>> {
        let sql = "SELECT node, durations_ms, usd_micros FROM learnt WHERE workflow = ?";
        let list = |text: String| serde_json::from_str(&text).unwrap_or_default();
        let rows = self.all(sql, [workflow], |row| {
            let learnt = NodeSamples { durations_ms: list(row.get(1)?), usd_micros: list(row.get(2)?) };
            Ok((row.get::<_, String>(0)?.into(), learnt))
        });
        Ok(rows?.into_iter().collect())
    }

    /// What was asked under this id, as its hash, and the run that the answer was about.
    pub(crate) fn request(&self, id: &str) -> Reply<Option<([u8; 32], Name)>> {
        let sql = "SELECT hash, run FROM requests WHERE id = ?";
        self.one(sql, [id], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))
    }

    /// What a run and those it called have kept, in the order of the runs and of their events.
    pub(crate) fn artifacts(&self, run: &str) -> Reply<Vec<StoredArtifact>> {
        let sql = "SELECT name, type, media_type, bytes, hash, id, token, at FROM runs JOIN artifacts ON run = no \
                   WHERE root = (SELECT root FROM runs WHERE id = ?1) \
                   AND (id = ?1 OR substr(id, 1, length(?1) + 1) = ?1 || '.') ORDER BY at, run, seq, place";
        self.all(sql, [run], |row| {
            let token = TokenId(row.get(6)?);
            Ok(StoredArtifact { artifact: artifact(row)?, run: row.get(5)?, token, at: Time(row.get(7)?) })
        })
    }

    /// The newest artifact of this name that a run sees: of its own, else of the nearest run that it inherits from.
    pub(crate) fn newest_artifact(&self, run: &str, name: &str) -> Reply<Option<Artifact>> {
        let sql = "WITH RECURSIVE seen (no, above, depth) AS (\
                     SELECT no, CASE WHEN inherits_artifacts THEN parent END, 0 FROM runs WHERE id = ?1 \
                     UNION ALL \
                     SELECT runs.no, CASE WHEN inherits_artifacts THEN parent END, depth + 1 \
                     FROM seen JOIN runs ON id = above) \
                   SELECT name, type, media_type, bytes, hash FROM seen JOIN artifacts ON run = no \
                   WHERE name = ?2 ORDER BY depth, seq DESC, place DESC LIMIT 1";
        self.one(sql, [run, name], artifact)
    }

    /// Whether any run has kept something with this hash.
    pub(crate) fn is_artifact(&self, hash: &str) -> Reply<bool> {
        let found = self.one("SELECT 1 FROM artifacts WHERE hash = ? LIMIT 1", [hash], |_| Ok(()))?;
        Ok(found.is_some())
    }

    pub(crate) fn started(&self, no: i64) -> Reply<BTreeSet<(u64, u32)>> {
        let sql = "SELECT token, attempt FROM started WHERE run = ?";
        Ok(self.all(sql, [no], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect())
    }

    /// Open gates: of a run and those it called, or all.
    pub(crate) fn gates(&self, run: Option<&str>) -> Reply<Vec<GateView>> {
        let sql = "SELECT id, root, workflow, gate, node, kind, title, body, form, assignees, opened_at, \
                   deadline, visit, item FROM gates JOIN runs ON no = run WHERE open = 1 AND status != 'quarantined' \
                   AND (?1 IS NULL OR id = ?1 OR substr(id, 1, length(?1) + 1) = ?1 || '.') \
                   ORDER BY opened_at, run, gate";
        self.all(sql, [run], gate_view)
    }

    /// Lines of a run and those it called.
    pub(crate) fn lines(&self, run: &str, after: u64, limit: Option<u32>) -> Reply<Vec<LogLine>> {
        let sql = "SELECT number, id, at, node, token, attempt, step, stream, text FROM runs \
                   JOIN logs ON run = no WHERE root = (SELECT root FROM runs WHERE id = ?1) AND number > ?2 \
                   AND (id = ?1 OR substr(id, 1, length(?1) + 1) = ?1 || '.') ORDER BY number LIMIT ?3";
        self.all(sql, params![run, after, limit.unwrap_or(LINES_MAX).min(LINES_MAX)], log_line)
    }
}

pub(crate) fn stream_name(stream: LogStream) -> &'static str {
    match stream {
        LogStream::Stdout => "stdout",
        LogStream::Stderr => "stderr",
        LogStream::Note => "note",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema;

    /// How SQLite goes about a list.
    fn plan(connection: &Connection, filter: &Filter) -> String {
        let reader = Reader::new(connection, Path::new("test.db"));
        let query = reader.listed(filter, &BTreeSet::from(["A".into()])).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {RUN}{} ORDER BY no DESC LIMIT ?", query.text);
        let details = |row: &Row<'_>| row.get::<_, String>(3);
        reader.all(&sql, rusqlite::params_from_iter(query.values), details).unwrap().join("; ")
    }

    #[test]
    fn no_filter_reads_every_run() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection, 0).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let labels = BTreeMap::from([("team".to_owned(), "docs".to_owned())]);
        let filters = [
            ("runs_by_workflow", Filter { workflow: text("w"), ..Filter::default() }),
            ("runs_by_status", Filter { status: Some(Status::Failed), ..Filter::default() }),
            ("runs_by_status", Filter { interrupted: true, ..Filter::default() }),
            ("runs_by_start", Filter { since: Some(Time(5)), ..Filter::default() }),
            ("runs_by_start", Filter { until: Some(Time(5)), ..Filter::default() }),
            ("labels USING PRIMARY KEY", Filter { labels, ..Filter::default() }),
        ];
        for (index, filter) in filters {
            let plan = plan(&connection, &filter);
            assert!(plan.contains(index) && !plan.contains("SCAN runs"), "{filter:?}: {plan}");
        }
    }
}
