//! A run in memory, how it gets there, and when it leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::graph::Graph;
use wonder_core::{Run, RunStatus, Time, TokenStatus};
use wonder_engine::{EngineError, ErrorCode, Forked, Reply, Status};

use super::learn::Lessons;
use super::{Driver, panic_text, quarantined, quiet_alone};
use crate::clock;
use crate::store::{Reader, RunUpdate, StoredRun};

/// A sleeper leaves memory if it sleeps longer than this.
const NAP_MS: u64 = 60_000;
/// Ended runs that stay for a while, if they are small: whoever started one is about to ask how it went.
const LINGERING_MAX: usize = 256;
const LINGERING_BYTES_MAX: u64 = 16 << 10;

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
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) project: Name,
    pub(crate) started_at: Time,
    pub(crate) forked: Option<Forked>,
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
    pub(crate) told: bool,
    /// What it teaches later runs.
    pub(crate) lessons: Lessons,
}

impl Hosted {
    /// A run that has been told nothing yet.
    pub(crate) fn new(no: i64, definition: i64, graph: Arc<Graph>, root: Name) -> Hosted {
        Hosted {
            no,
            definition,
            version: graph.version,
            lessons: Lessons::of(&graph),
            run: Run::new(graph),
            root,
            parent: None,
            callable: Arc::default(),
            workdir: Arc::default(),
            labels: BTreeMap::new(),
            project: DEFAULT_PROJECT.into(),
            started_at: clock::now(),
            forked: None,
            children: Vec::new(),
            started: BTreeSet::new(),
            stored: None,
            events: 0,
            bytes: 0,
            snapshot_bytes: 0,
            told: false,
        }
    }

    /// Children that have not reported.
    pub(crate) fn children_out(&self) -> impl Iterator<Item = &Name> {
        self.run.state().out.values().filter_map(|out| out.child.as_ref())
    }

    fn naps(&self) -> bool {
        let now = clock::now();
        self.run.next_deadline().is_some_and(|at| at.since(now) < NAP_MS)
    }
}

/// The run that wrote these rows.
pub(crate) fn load(reader: &Reader<'_>, graph: Arc<Graph>, stored: &StoredRun) -> Reply<(Run, u64)> {
    let damaged = |why: String| quarantined(&stored.row.run, &why);
    let replay = || -> Result<(Run, u64), EngineError> {
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
        return Err(damaged("it has no events".to_owned()));
    }
    Ok((run, events))
}

impl Driver {
    /// Makes sure that a run is in memory.
    pub(super) fn hosted(&mut self, id: &Name) -> Reply<()> {
        if self.runs.contains_key(id) {
            return Ok(());
        }
        let reader = self.store.reader();
        let Some(stored) = reader.run(id)? else {
            return Err(EngineError::new(ErrorCode::NotFound, format!("there is no run {id}")));
        };
        if stored.row.status == Status::Quarantined {
            return Err(quarantined(id, stored.evidence.as_deref().unwrap_or("its events are damaged")));
        }
        let loaded = self
            .definitions
            .graph(stored.definition, &reader)
            .and_then(|graph| load(&reader, graph, &stored))
            .and_then(|run| Ok((run, reader.started(stored.no)?, reader.called_by(&stored.row)?)));
        match loaded {
            Ok(((run, events), started, children)) => {
                let hosted = resumed(stored, run, events);
                self.runs.insert(id.clone(), Hosted { started, children, ..hosted });
                Ok(())
            }
            Err(error) if error.code == ErrorCode::Quarantined => {
                let graph = self.definitions.graph(stored.definition, &self.store.reader());
                if let Ok(graph) = graph {
                    self.runs.insert(
                        id.clone(),
                        Hosted {
                            stored: Some(update_of(&stored)),
                            ..Hosted::new(stored.no, stored.definition, graph, id.clone())
                        },
                    );
                }
                Err(self.quarantine(id, error.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Runs that have ended or only wait leave memory; whatever comes for them loads them again.
    pub(super) fn park(&mut self, touched: impl IntoIterator<Item = Name>) {
        for id in touched {
            let Some(hosted) = self.runs.get(&id) else { continue };
            let ended = hosted.run.status().is_end();
            let waits = !ended && quiet_alone(&hosted.run) && self.is_quiet(&id);
            let sleeps = !ended && !waits && self.only_sleeps(hosted);
            if !(ended || waits || sleeps) || self.waiters.contains_key(&id) && !ended {
                continue;
            }
            // Its parent has not heard of its end yet: tasks of it still stop.
            if ended && hosted.parent.is_some() && !hosted.told {
                continue;
            }
            if ended {
                // Its children have ended with it; a retry would ask for it again.
                self.shared.leave_alone(&id);
                if self.lingers(&id) {
                    continue;
                }
            }
            self.runs.remove(&id);
        }
    }

    fn lingers(&mut self, id: &Name) -> bool {
        let state = self.runs[id].run.state();
        if state.context_bytes > LINGERING_BYTES_MAX
            || state.tokens.len() > 100
            || self.runs[id].parent.is_some()
        {
            return false;
        }
        if !self.lingering.contains(id) {
            self.lingering.push_back(id.clone());
        }
        if self.lingering.len() > LINGERING_MAX
            && let Some(oldest) = self.lingering.pop_front()
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
            && !hosted.naps()
            && hosted.run.tokens().all(|token| asleep(token.status()))
    }

    /// Nothing will happen to it, or to what it called, until somebody says something.
    pub(super) fn is_quiet(&self, id: &str) -> bool {
        let Some(hosted) = self.runs.get(id) else { return self.was_left_quiet(id) };
        // A child that has ended is about to be reported: its caller will move.
        let ended = |child: &Name| self.runs.get(child).is_some_and(|hosted| hosted.run.status().is_end());
        let alone = quiet_alone(&hosted.run) || self.is_starved(id);
        alone && hosted.children_out().all(|child| !ended(child) && self.is_quiet(child))
    }

    /// Of a run out of memory its row tells: nothing about it is uncommitted.
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
    let lessons = Lessons::of(run.graph());
    let row = stored.row;
    Hosted {
        no: stored.no,
        definition: stored.definition,
        told: run.status().is_end(),
        run,
        root: row.root.into(),
        parent: row.parent.map(Into::into),
        version: row.version,
        callable: Arc::new(stored.callable),
        workdir: Arc::new(stored.workdir.into()),
        labels: row.labels,
        project: row.project.into(),
        started_at: row.started_at,
        forked: row.forked,
        children: Vec::new(),
        started: BTreeSet::new(),
        stored: Some(update),
        events,
        bytes: 0,
        snapshot_bytes: 0,
        lessons,
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
    }
}
