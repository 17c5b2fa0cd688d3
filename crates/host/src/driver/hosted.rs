//! A run in memory, how it gets there, and when it leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wonder_core::def::Name;
use wonder_core::graph::Graph;
use wonder_core::{Run, RunStatus, Time, TokenStatus};
use wonder_engine::{EngineError, ErrorCode, Forked, Reply, Status};

use super::statistics::NodeStatistics;
use super::{Driver, HostEvent, Turn, panic_text, quiet_alone};
use crate::store::{Reader, RunUpdate, StoredRun};

/// A run that sleeps longer than this leaves memory.
const SHORT_SLEEP_MS: u64 = 60_000;
/// Ended runs that stay for a while, if they are small: whoever started one is about to ask how it went.
const ENDED_KEPT_MAX: usize = 256;
const ENDED_KEPT_BYTES_MAX: u64 = 16 << 10;

/// Of workflows that name none.
pub(crate) const DEFAULT_PROJECT: &str = "default";

/// A run as its host keeps it.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) no: i64,
    pub(crate) definition: i64,
    pub(crate) run: Run,
    pub(crate) root: Name,
    pub(crate) parent: Option<Name>,
    pub(crate) version: u32,
    pub(crate) callable: Arc<BTreeMap<Name, i64>>,
    pub(crate) workdir: Arc<PathBuf>,
    /// The file it was started from.
    pub(crate) file: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) project: Name,
    pub(crate) started_at: Time,
    pub(crate) forked: Option<Forked>,
    /// How long it lay ended before it was retried.
    pub(crate) closed_ms: u64,
    /// Runs it called, in order.
    pub(crate) children: Vec<Name>,
    /// Tasks with effect `once` that were begun.
    pub(crate) started: BTreeSet<(u64, u32)>,
    /// What of its row changes, as it was last written; None: it has no row yet.
    pub(crate) stored: Option<RunUpdate>,
    /// Events and bytes since the last snapshot, and the size of that one.
    pub(crate) events: u64,
    pub(crate) bytes: usize,
    pub(crate) snapshot_bytes: usize,
    /// Its end has been told to its parent.
    pub(crate) end_told: bool,
    /// What later runs are told of its nodes.
    pub(crate) statistics: NodeStatistics,
}

impl Hosted {
    /// A run that has been told nothing yet.
    pub(crate) fn new(no: i64, definition: i64, graph: Arc<Graph>, root: Name, now: Time) -> Hosted {
        Hosted {
            no,
            definition,
            version: graph.version,
            statistics: NodeStatistics::of(&graph),
            run: Run::new(graph),
            root,
            parent: None,
            callable: Arc::default(),
            workdir: Arc::default(),
            file: None,
            labels: BTreeMap::new(),
            project: DEFAULT_PROJECT.into(),
            started_at: now,
            forked: None,
            closed_ms: 0,
            children: Vec::new(),
            started: BTreeSet::new(),
            stored: None,
            events: 0,
            bytes: 0,
            snapshot_bytes: 0,
            end_told: false,
        }
    }

    /// Children that have not reported.
    pub(crate) fn children_out(&self) -> impl Iterator<Item = &Name> {
        self.run.state().out.values().filter_map(|out| out.child.as_ref())
    }

    fn wakes_soon(&self, now: Time) -> bool {
        self.run.next_deadline().is_some_and(|at| at.since(now) < SHORT_SLEEP_MS)
    }
}

/// The run that wrote these rows, and how many events came after its snapshot. An error of code `quarantined`
/// says only why: whoever asked names the run.
pub(crate) fn load(reader: &Reader<'_>, graph: Arc<Graph>, stored: &StoredRun) -> Reply<(Run, u64)> {
    let replay = || -> Reply<(Run, u64)> {
        let mut run = match reader.snapshot(stored.no)? {
            // A snapshot that does not fit is only a shortcut lost.
            Some(state) => Run::restore(graph.clone(), state).unwrap_or_else(|_| Run::new(graph.clone())),
            None => Run::new(graph.clone()),
        };
        let after = run.state().seq;
        let events = reader.events(stored.no, after, usize::MAX)?;
        run.replay_more(&events).map_err(|error| damaged(error.to_string()))?;
        Ok((run, events.len() as u64))
    };
    let replayed = catch_unwind(AssertUnwindSafe(replay));
    let (run, events) = replayed.unwrap_or_else(|panic| Err(damaged(panic_text(&*panic))))?;
    if run.state().start.is_none() {
        return Err(damaged("it has no events"));
    }
    Ok((run, events))
}

/// Why a stored run cannot be loaded.
pub(crate) fn damaged(why: impl Into<String>) -> EngineError {
    EngineError::new(ErrorCode::Quarantined, why)
}

/// An error of loading a run, with the run's name.
pub(crate) fn not_loaded(id: &str, error: EngineError) -> EngineError {
    if error.code == ErrorCode::Quarantined { EngineError::set_aside(id, &error.message) } else { error }
}

/// Refuses a run that was set aside before.
pub(crate) fn refuse_quarantined(stored: &StoredRun) -> Reply<()> {
    if stored.row.status != Status::Quarantined {
        return Ok(());
    }
    let why = stored.evidence.as_deref().unwrap_or("its events are damaged");
    Err(EngineError::set_aside(&stored.row.run, why))
}

impl Driver {
    /// Makes sure that a run is in memory. One that cannot be loaded is set aside with its evidence.
    pub(super) fn hosted(&mut self, turn: &mut Turn, id: &Name) -> Reply<()> {
        if self.runs.contains_key(id) {
            return Ok(());
        }
        let Some(stored) = self.store.reader().run(id)? else {
            return Err(EngineError::no_such_run(id));
        };
        refuse_quarantined(&stored)?;
        self.store.counters.runs_loaded.fetch_add(1, Ordering::Relaxed);
        let loaded = self.loaded(&stored).and_then(|loaded| {
            let reader = self.store.reader();
            Ok((loaded, reader.started(stored.no)?, reader.called_by(&stored.row)?))
        });
        match loaded {
            Ok(((run, events), started, children)) => {
                let hosted = resumed(stored, run, events);
                self.runs.insert(id.clone(), Hosted { started, children, ..hosted });
                Ok(())
            }
            Err(error) if error.code == ErrorCode::Quarantined => {
                Err(self.quarantine_stored(turn, &stored, &error.message))
            }
            Err(error) => Err(error),
        }
    }

    fn loaded(&mut self, stored: &StoredRun) -> Reply<(Run, u64)> {
        let reader = self.store.reader();
        let graph = self.definitions.graph(stored.definition, &reader)?;
        load(&reader, graph, stored)
    }

    /// Whether there is such a run; it is in memory then. One that was set aside is an error.
    pub(super) fn is_known(&mut self, turn: &mut Turn, id: &Name) -> Reply<bool> {
        match self.hosted(turn, id) {
            Ok(()) => Ok(true),
            Err(error) if error.code == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs that have ended or only wait leave memory; whatever comes for them loads them again.
    pub(super) fn unload(&mut self, touched: impl IntoIterator<Item = Name>) {
        for id in touched {
            let Some(hosted) = self.runs.get(&id) else { continue };
            let ended = hosted.run.status().is_end();
            let waits = !ended && quiet_alone(&hosted.run) && self.is_quiet(&id);
            let sleeps = !ended && !waits && self.only_sleeps(hosted);
            if !(ended || waits || sleeps) || self.waiters.contains_key(&id) && !ended {
                continue;
            }
            if ended {
                // Its children have ended with it; a retry would ask for it again.
                self.shared.leave_alone(&id);
                // Its parent has not heard of its end yet; or tasks of it still stop, and each of them will report:
                // that costs the same for every one of them only if the run is there to hear it.
                let untold = hosted.parent.is_some() && !hosted.end_told;
                if untold || self.will_hear_reports_of(&id) || self.is_kept_after_end(&id) {
                    continue;
                }
            }
            self.runs.remove(&id);
        }
    }

    /// Tasks of it are out, or their reports wait for the next turn.
    fn will_hear_reports_of(&self, id: &Name) -> bool {
        let of_run = |event: &HostEvent| matches!(event, HostEvent::Report { key, .. } if key.run == *id);
        let owed = self.runs.get(id).is_some_and(|hosted| !hosted.run.state().out.is_empty());
        owed && (self.executor.has_tasks_of(id) || self.backlog.iter().any(of_run))
    }

    fn is_kept_after_end(&mut self, id: &Name) -> bool {
        let state = self.runs[id].run.state();
        if state.context_bytes > ENDED_KEPT_BYTES_MAX
            || state.tokens.len() > 100
            || self.runs[id].parent.is_some()
        {
            return false;
        }
        if !self.ended_kept.contains(id) {
            self.ended_kept.push_back(id.clone());
        }
        if self.ended_kept.len() > ENDED_KEPT_MAX
            && let Some(oldest) = self.ended_kept.pop_front()
            // It may have been retried meanwhile.
            && self.runs.get(&oldest).is_some_and(|hosted| hosted.run.status().is_end())
        {
            self.runs.remove(&oldest);
        }
        true
    }

    /// Nothing is out, and the next thing that happens is a time far off.
    fn only_sleeps(&self, hosted: &Hosted) -> bool {
        let state = hosted.run.state();
        let asleep = |status: TokenStatus| {
            !matches!(status, TokenStatus::Pending | TokenStatus::Dispatched | TokenStatus::Retrying)
        };
        hosted.run.status() == RunStatus::Running
            && state.out.is_empty()
            && !hosted.wakes_soon(self.clock.now())
            && hosted.run.tokens().all(|token| asleep(token.status()))
    }

    /// Nothing will happen to it, or to what it called, until somebody says something.
    pub(super) fn is_quiet(&self, id: &str) -> bool {
        let Some(hosted) = self.runs.get(id) else { return self.was_left_quiet(id) };
        // A child that has ended is about to be reported: its caller will move.
        let ended = |child: &Name| self.runs.get(child).is_some_and(|hosted| hosted.run.status().is_end());
        let alone = quiet_alone(&hosted.run) || self.waits_for_budget(id);
        alone && hosted.children_out().all(|child| !ended(child) && self.is_quiet(child))
    }

    /// The row of a run that is not in memory says it: nothing about it is uncommitted.
    fn was_left_quiet(&self, id: &str) -> bool {
        let stored = self.store.reader().run(id).ok().flatten();
        stored.is_none_or(|run| {
            let status = run.row.status;
            status.is_end() || matches!(status, Status::Waiting | Status::Paused)
        })
    }
}

fn resumed(stored: StoredRun, run: Run, events: u64) -> Hosted {
    let update = update_of(&stored);
    let statistics = NodeStatistics::of(run.graph());
    let row = stored.row;
    Hosted {
        no: stored.no,
        definition: stored.definition,
        end_told: run.status().is_end(),
        run,
        root: row.root.into(),
        parent: row.parent.map(Into::into),
        version: row.version,
        callable: Arc::new(stored.callable),
        workdir: Arc::new(stored.workdir.into()),
        file: row.file,
        labels: row.labels,
        project: row.project.into(),
        started_at: row.started_at,
        forked: row.forked,
        closed_ms: row.closed_ms,
        children: Vec::new(),
        started: BTreeSet::new(),
        stored: Some(update),
        events,
        bytes: 0,
        snapshot_bytes: 0,
        statistics,
    }
}

fn update_of(stored: &StoredRun) -> RunUpdate {
    RunUpdate {
        no: stored.no,
        status: stored.row.status,
        ended_at: stored.row.ended_at.map(|at| at.0),
        usd_micros: stored.row.usd_micros,
        tokens: stored.row.tokens,
        wake_at: stored.wake_at,
        closed_ms: stored.row.closed_ms,
    }
}
