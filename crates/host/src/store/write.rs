//! Writing: everything that one turn of the driver leads to, in one transaction.
//!
//! A transaction is a list of [`Write`]s, so that one which failed (the disk was full) can be tried again as
//! it is. Nothing is published or performed before it is committed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, params};
use wonder_blobs::Encoded;
use wonder_core::artifact::Artifact;
use wonder_core::def::Name;
use wonder_engine::{Forked, LogLine, Reply, Status};

use super::log::Log;
use super::open::{self, FileIdentity, storage_error};
use super::parts::Blobs;
use super::read::{Reader, stream_name};
use crate::project::Spent;
use crate::{Durability, failpoint};

/// One row to be written.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Definition(Arc<StoredDefinition>),
    RunInsert(Box<RunInsert>),
    RunUpdate(RunUpdate),
    Events {
        run: i64,
        seq: u64,
        encoded: Encoded,
    },
    GateOpened(Box<GateRow>),
    GateClosed {
        run: i64,
        gate: u64,
    },
    /// All of a run that has ended.
    GatesClosed {
        run: i64,
    },
    GateAssigned {
        run: i64,
        gate: u64,
        assignees: String,
        deadline: Option<i64>,
    },
    Snapshot {
        run: i64,
        seq: u64,
        state: String,
    },
    /// It goes on with another definition; a snapshot is one of the old.
    Redefined {
        run: i64,
        definition: i64,
        version: u32,
        callable: String,
    },
    Started {
        run: i64,
        token: u64,
        attempt: u32,
    },
    Quarantine {
        run: i64,
        evidence: String,
        at: i64,
    },
    Request(Box<StoredRequest>),
    /// Requests are remembered for so long.
    ForgetRequests {
        until: i64,
    },
    Log {
        run: i64,
        line: Box<LogLine>,
    },
    /// Added to what the project has spent on that day.
    Spent {
        project: Name,
        day: i64,
        spent: Spent,
    },
    Learnt {
        workflow: Name,
        node: Name,
        learnt: NodeSamples,
    },
    Artifact(Box<ArtifactRow>),
}

/// What a completed task has kept.
#[derive(Clone, Debug)]
pub(crate) struct ArtifactRow {
    pub(crate) run: i64,
    /// The event that names it, and which of its artifacts it is.
    pub(crate) seq: u64,
    pub(crate) place: usize,
    pub(crate) token: u64,
    pub(crate) at: i64,
    pub(crate) artifact: Artifact,
}

/// Something that was asked, once, and the run that the answer is about.
#[derive(Clone, Debug)]
pub(crate) struct StoredRequest {
    pub(crate) id: String,
    /// Of what was asked.
    pub(crate) hash: [u8; 32],
    pub(crate) run: Name,
    pub(crate) at: i64,
}

/// The last durations and costs of a node that completed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeSamples {
    pub(crate) durations_ms: Vec<u64>,
    pub(crate) usd_micros: Vec<u64>,
}

impl NodeSamples {
    pub(crate) fn keep_last(&mut self, max: usize) {
        for all in [&mut self.durations_ms, &mut self.usd_micros] {
            all.drain(..all.len().saturating_sub(max));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StoredDefinition {
    pub(crate) id: i64,
    pub(crate) name: Name,
    pub(crate) version: u32,
    pub(crate) hash: [u8; 32],
    pub(crate) bundle: String,
    pub(crate) created_at: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct RunInsert {
    pub(crate) no: i64,
    pub(crate) id: Name,
    pub(crate) workflow: Name,
    pub(crate) version: u32,
    pub(crate) definition: i64,
    /// Which definitions it may call: a JSON object of name and id.
    pub(crate) callable: String,
    pub(crate) root: Name,
    pub(crate) parent: Option<Name>,
    pub(crate) workdir: String,
    pub(crate) file: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) started_at: i64,
    pub(crate) forked: Option<Forked>,
    pub(crate) project: Name,
    /// It reads its parent's artifacts by name too.
    pub(crate) inherits_artifacts: bool,
    pub(crate) now: RunUpdate,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunUpdate {
    pub(crate) no: i64,
    pub(crate) status: Status,
    pub(crate) ended_at: Option<i64>,
    pub(crate) usd_micros: u64,
    pub(crate) tokens: u64,
    /// When it wants to be woken, while it waits.
    pub(crate) wake_at: Option<i64>,
    /// How long it lay ended before it was retried.
    pub(crate) closed_ms: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct GateRow {
    pub(crate) run: i64,
    pub(crate) gate: u64,
    pub(crate) node: Option<Name>,
    pub(crate) kind: String,
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) form: String,
    pub(crate) assignees: String,
    pub(crate) opened_at: i64,
    pub(crate) deadline: Option<i64>,
    /// The visit that waits there, with its branch.
    pub(crate) visit: Option<String>,
    /// What that branch works on, as JSON.
    pub(crate) item: Option<String>,
}

/// How much has been written, and how often a run was read, for tests that count and for `doctor`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) runs_loaded: AtomicU64,
}

/// The only connection that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    log: Log,
    path: PathBuf,
    identity: Option<FileIdentity>,
    pub(crate) counters: Arc<Counters>,
}

impl Writer {
    pub(crate) fn open(home: &std::path::Path, durability: Durability) -> Reply<Writer> {
        let path = open::database(home);
        let left = Log::is_left(&path);
        let mut connection = open::writer(home, durability)?;
        let log = Log::of(&mut connection, &path).map_err(|error| storage_error(&path, "opened", &error))?;
        if left {
            // While there is room for it, what it holds goes where it belongs.
            log.write_back(&connection);
        }
        let identity = FileIdentity::of(&path);
        Ok(Writer { connection, log, path, identity, counters: Arc::default() })
    }

    /// Reads on the writing connection: what is committed, for the driver's own use.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.connection, &self.path)
    }

    /// All or nothing.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> Reply<()> {
        if FileIdentity::of(&self.path) != self.identity {
            return Err(open::gone(&self.path));
        }
        let mut bytes = 0;
        let result = self.transact(writes, &mut bytes);
        result.map_err(|error| storage_error(&self.path, "written", &error))?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.rows.fetch_add(writes.len() as u64, Ordering::Relaxed);
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn transact(&mut self, writes: &[Write], bytes: &mut u64) -> rusqlite::Result<()> {
        failpoint::hit("begin");
        self.execute("BEGIN IMMEDIATE")?;
        self.log.make_room();
        let written = self.write_all(writes, bytes).and_then(|()| self.execute("COMMIT"));
        if written.is_err() && !self.connection.is_autocommit() {
            // Nothing of it stays; what was wrong is told, not how tidying up went.
            drop(self.execute("ROLLBACK"));
        }
        written?;
        failpoint::hit("committed");
        Ok(())
    }

    fn write_all(&self, writes: &[Write], bytes: &mut u64) -> rusqlite::Result<()> {
        for write in writes {
            write_row(&self.connection, write, bytes)?;
            failpoint::hit("write");
        }
        Ok(())
    }

    /// Kept prepared: parsing `BEGIN` and `COMMIT` anew takes as long as a row does.
    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Whether there is housekeeping to be done when nobody asks for anything.
    pub(crate) fn is_behind(&self) -> bool {
        self.log.is_behind()
    }

    /// Whether it should not wait for that.
    pub(crate) fn is_far_behind(&self) -> bool {
        self.log.is_long()
    }

    pub(crate) fn write_back(&self) {
        self.log.write_back(&self.connection);
    }

    /// Makes what room it can on a full disk.
    pub(crate) fn give_back_room(&mut self) {
        drop(self.connection.busy_timeout(Duration::ZERO));
        self.log.give_back_room(&self.connection);
        drop(self.connection.busy_timeout(open::BUSY));
    }

    /// Leaves one file without a log beside it, if nobody reads just now.
    pub(crate) fn close(self) {
        // Everything is committed: a checkpoint that fails now happens at the next opening. Nobody who reads
        // is waited for.
        drop(self.connection.busy_timeout(Duration::ZERO));
        drop(self.connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);"));
    }
}

fn write_row(connection: &Connection, write: &Write, bytes: &mut u64) -> rusqlite::Result<()> {
    let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<()> {
        connection.prepare_cached(sql)?.execute(params).map(drop)
    };
    match write {
        Write::Events { run: no, seq, encoded } => {
            *bytes += encoded.body.len() as u64 + encoded.keep_parts(&Blobs(connection))?;
            run("INSERT INTO events VALUES (NULL, ?, ?, ?, ?)", params![no, seq, encoded.refs, encoded.body])
        }
        Write::Definition(d) => run(
            "INSERT INTO definitions VALUES (?, ?, ?, ?, ?, ?)",
            params![d.id, &*d.name, d.version, d.hash, d.bundle, d.created_at],
        ),
        Write::RunInsert(r) => insert_run(connection, r),
        Write::RunUpdate(r) => update_run(connection, r),
        Write::GateOpened(g) => open_gate(connection, g),
        Write::GateClosed { run: no, gate } => {
            run("UPDATE gates SET open = 0 WHERE run = ? AND gate = ?", params![no, gate])
        }
        Write::GatesClosed { run: no } => {
            run("UPDATE gates SET open = 0 WHERE run = ? AND open = 1", params![no])
        }
        Write::GateAssigned { run: no, gate, assignees, deadline } => run(
            "UPDATE gates SET assignees = ?3, deadline = ?4 WHERE run = ?1 AND gate = ?2",
            params![no, gate, assignees, deadline],
        ),
        Write::Snapshot { run: no, seq, state } => {
            *bytes += state.len() as u64;
            run("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", params![no, seq, state])
        }
        Write::Redefined { run: no, definition, version, callable } => {
            run("DELETE FROM snapshots WHERE run = ?", params![no])?;
            run(
                "UPDATE runs SET definition = ?2, version = ?3, callable = ?4 WHERE no = ?1",
                params![no, definition, version, callable],
            )
        }
        Write::Started { run: no, token, attempt } => {
            run("INSERT OR IGNORE INTO started VALUES (?, ?, ?)", params![no, token, attempt])
        }
        Write::Quarantine { run: no, evidence, at } => run(
            "UPDATE runs SET status = 'quarantined', evidence = ?2, ended_at = ?3, wake_at = NULL WHERE no = ?1",
            params![no, evidence, at],
        ),
        Write::Request(r) => {
            run("INSERT INTO requests VALUES (NULL, ?, ?, ?, ?)", params![r.id, r.hash, &*r.run, r.at])
        }
        Write::ForgetRequests { until } => {
            // Only the old end is read.
            let sql = "DELETE FROM requests WHERE no < coalesce(\
                       (SELECT no FROM requests WHERE at >= ?1 ORDER BY no LIMIT 1), (SELECT max(no) + 1 FROM requests))";
            run(sql, params![until])
        }
        Write::Log { run: no, line } => insert_line(connection, *no, line),
        Write::Spent { project, day, spent } => run(
            "INSERT INTO spent VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE \
             SET usd_micros = usd_micros + excluded.usd_micros, tokens = tokens + excluded.tokens",
            params![&**project, day, spent.usd_micros as i64, spent.tokens as i64],
        ),
        Write::Learnt { workflow, node, learnt } => {
            let list = |all: &[u64]| serde_json::to_string(all).expect("numbers are JSON");
            run(
                "INSERT OR REPLACE INTO learnt VALUES (?, ?, ?, ?)",
                params![&**workflow, &**node, list(&learnt.durations_ms), list(&learnt.usd_micros)],
            )
        }
        Write::Artifact(row) => insert_artifact(connection, row),
    }
}

fn insert_run(connection: &Connection, r: &RunInsert) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, ?)";
    let from = r.forked.as_ref().map(|forked| forked.from.as_str());
    let copied = r.forked.as_ref().map_or((0, 0), |f| (f.copied_usd_micros, f.copied_tokens));
    connection.prepare_cached(sql)?.execute(params![
        r.no,
        &*r.id,
        &*r.workflow,
        r.version,
        r.definition,
        r.callable,
        &*r.root,
        r.parent.as_deref(),
        r.now.status.as_str(),
        r.workdir,
        serde_json::to_string(&r.labels).expect("a map of texts is JSON"),
        r.started_at,
        r.now.ended_at,
        r.now.usd_micros as i64,
        r.now.tokens as i64,
        from,
        copied.0 as i64,
        copied.1 as i64,
        &*r.project,
        r.now.wake_at,
        r.file,
        r.now.closed_ms as i64,
        r.inherits_artifacts
    ])?;
    let mut label = connection.prepare_cached("INSERT INTO labels VALUES (?, ?, ?)")?;
    r.labels.iter().try_for_each(|(key, value)| label.execute(params![key, value, r.no]).map(drop))
}

fn update_run(connection: &Connection, r: &RunUpdate) -> rusqlite::Result<()> {
    let sql = "UPDATE runs SET status = ?2, ended_at = ?3, usd_micros = ?4, tokens = ?5, wake_at = ?6, \
             closed_ms = ?7 WHERE no = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![
            r.no,
            r.status.as_str(),
            r.ended_at,
            r.usd_micros as i64,
            r.tokens as i64,
            r.wake_at,
            r.closed_ms as i64
        ])
        .map(drop)
}

fn open_gate(connection: &Connection, g: &GateRow) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO gates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?)";
    let node = g.node.as_deref();
    connection
        .prepare_cached(sql)?
        .execute(params![
            g.run,
            g.gate,
            node,
            g.kind,
            g.title,
            g.body,
            g.form,
            g.assignees,
            g.opened_at,
            g.deadline,
            g.visit,
            g.item
        ])
        .map(drop)
}

fn insert_artifact(connection: &Connection, row: &ArtifactRow) -> rusqlite::Result<()> {
    let sql = "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let of = &row.artifact;
    connection
        .prepare_cached(sql)?
        .execute(params![
            row.run,
            row.seq,
            row.place,
            row.token,
            &*of.name,
            of.artifact_type.as_deref(),
            &*of.media_type,
            of.bytes as i64,
            &*of.hash,
            row.at
        ])
        .map(drop)
}

fn insert_line(connection: &Connection, run: i64, line: &LogLine) -> rusqlite::Result<()> {
    let sql = "INSERT INTO logs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection
        .prepare_cached(sql)?
        .execute(params![
            line.number,
            run,
            line.at.0,
            line.node,
            line.token,
            line.attempt,
            line.step,
            stream_name(line.stream),
            line.text
        ])
        .map(drop)
}
