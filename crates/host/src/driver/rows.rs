//! Rows that follow from what happened: events, the run's line in lists, gates, timers, snapshots.

use std::collections::BTreeSet;

use wonder_core::def::Name;
use wonder_core::event::{Event, EventKind, GateId, TokenId};
use wonder_core::graph::NodeIx;
use wonder_core::{Run, Time};
use wonder_engine::Status;

use super::{Driver, Hosted, Turn};
use crate::store::{ArtifactRow, GateRow, RunInsert, RunUpdate, Write};

/// Events between snapshots, at least. Beyond that a snapshot is written when several times as much has been
/// stored as it would take, so that snapshots are a small part of what a run writes, however large its state.
const SNAPSHOT_EVENTS: u64 = 2_000;
const SNAPSHOT_SHARE: usize = 4;

impl Driver {
    /// One step's events, and the gates that follow from them.
    pub(super) fn record(&mut self, turn: &mut Turn, id: &Name, events: &[Event]) {
        let Some(first) = events.first() else { return };
        let hosted = self.runs.get_mut(id).expect("it has just answered");
        let encoded = wonder_blobs::encode(events);
        hosted.events += events.len() as u64;
        hosted.bytes += encoded.bytes();
        turn.batch.push(Write::Events { run: hosted.no, seq: first.seq, encoded });
        for event in events {
            turn.batch.extend(gate_row(hosted, event));
            turn.batch.extend(artifact_rows(hosted.no, event));
            if let (EventKind::RunRetried { .. }, Some(stored)) = (&event.kind, &mut hosted.stored) {
                // It may end again in this very turn, and that is when it ended.
                let ended_at = stored.ended_at.take();
                hosted.closed_ms += ended_at.map_or(0, |ended_at| event.at.since(Time(ended_at)));
            }
            hosted.observe(event);
        }
    }

    /// The lines of this turn's runs, and of those that called them.
    pub(super) fn write_rows(&mut self, turn: &mut Turn) {
        let touched = std::mem::take(&mut turn.touched);
        for id in &touched {
            self.write_ancestors(turn, id, &touched);
            self.write_row(turn, id);
            self.set_timer(id);
            self.snapshot(turn, id);
        }
        turn.touched = touched;
    }

    /// A parent is quiet or not as its children are.
    fn write_ancestors(&mut self, turn: &mut Turn, id: &Name, touched: &BTreeSet<Name>) {
        let mut above = self.runs.get(id).and_then(|hosted| hosted.parent.clone());
        while let Some(parent) = above {
            if touched.contains(&parent) {
                return;
            }
            let was_quiet = !self.runs.contains_key(&parent);
            let quiet = self.is_quiet(id);
            // Out of memory it was quiet, with all below it: it has to come back only if that has changed.
            if was_quiet && (quiet || self.hosted(turn, &parent).is_err()) {
                return;
            }
            self.write_row(turn, &parent);
            above = self.runs.get(&parent).and_then(|hosted| hosted.parent.clone());
        }
    }

    fn write_row(&mut self, turn: &mut Turn, id: &Name) {
        let quiet = self.is_quiet(id);
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let update = hosted.update(quiet);
        if hosted.stored.as_ref() == Some(&update) {
            return;
        }
        let had_ended = hosted.stored.as_ref().is_some_and(|stored| stored.ended_at.is_some());
        let ends = update.ended_at.is_some() && !had_ended;
        turn.batch.push(match &hosted.stored {
            Some(_) => Write::RunUpdate(update.clone()),
            None => Write::RunInsert(Box::new(hosted.inserted(id, update.clone()))),
        });
        hosted.stored = Some(update);
        if ends && hosted.run.state().gates_opened > 0 {
            turn.batch.push(Write::GatesClosed { run: hosted.no });
        }
        if ends {
            // Statistics that cannot be kept are not worth a run.
            drop(self.keep_statistics(turn, id));
        }
    }

    /// Keeps the deadline among the driver's timers.
    fn set_timer(&mut self, id: &Name) {
        let Some(hosted) = self.runs.get(id) else { return };
        self.timers.set(id, hosted.deadline());
    }

    fn snapshot(&mut self, turn: &mut Turn, id: &Name) {
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let size = hosted.snapshot_bytes.max(hosted.run.state().context_bytes as usize);
        if hosted.events < SNAPSHOT_EVENTS || hosted.bytes < SNAPSHOT_SHARE * size {
            return;
        }
        let state = serde_json::to_string(hosted.run.state()).expect("a state is JSON");
        (hosted.events, hosted.bytes, hosted.snapshot_bytes) = (0, 0, state.len());
        turn.batch.push(Write::Snapshot { run: hosted.no, seq: hosted.run.state().seq, state });
    }
}

impl Hosted {
    pub(super) fn is_stored_as(&self, status: Status) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.status == status)
    }

    fn deadline(&self) -> Option<Time> {
        self.run.next_deadline().filter(|_| !self.run.status().is_end())
    }

    /// What its row says of it now.
    pub(super) fn update(&self, quiet: bool) -> RunUpdate {
        let state = self.run.state();
        let ended = state.status.is_end();
        let deadline = self.deadline().map(|at| at.0);
        // While tasks are out, whoever carries the run on after a crash has to load it anyway: the deadline
        // that is stored is good enough.
        let works = !state.out.is_empty() && deadline.is_some();
        let stored = self.stored.as_ref().and_then(|stored| stored.wake_at).filter(|_| works);
        RunUpdate {
            no: self.no,
            status: Status::of(state.status, quiet && !ended),
            ended_at: self.ended_at().map(|at| at.0),
            usd_micros: state.spend.usd_micros,
            tokens: state.spend.tokens(),
            wake_at: stored.or(deadline),
            closed_ms: self.closed_ms,
        }
    }

    fn inherits_artifacts(&self) -> bool {
        let parent = self.run.state().start.as_ref().and_then(|start| start.parent.as_ref());
        parent.is_some_and(|parent| parent.inherit_artifacts)
    }

    pub(super) fn inserted(&self, id: &Name, now: RunUpdate) -> RunInsert {
        RunInsert {
            no: self.no,
            id: id.clone(),
            workflow: self.run.graph().name.clone(),
            version: self.version,
            definition: self.definition,
            callable: json(&*self.callable),
            root: self.root.clone(),
            parent: self.parent.clone(),
            workdir: self.workdir.to_string_lossy().into_owned(),
            file: self.file.clone(),
            labels: self.labels.clone(),
            started_at: self.started_at.0,
            forked: self.forked.clone(),
            project: self.project.clone(),
            inherits_artifacts: self.inherits_artifacts(),
            now,
        }
    }
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("maps of texts are JSON")
}

/// What a completed task has kept. Only such an event names artifacts.
fn artifact_rows(run: i64, event: &Event) -> impl Iterator<Item = Write> + '_ {
    let completed = match &event.kind {
        EventKind::TaskCompleted { token, report: Some(report), .. } => Some((token.0, &report.artifacts)),
        _ => None,
    };
    completed.into_iter().flat_map(move |(token, artifacts)| {
        artifacts.iter().cloned().enumerate().map(move |(place, artifact)| {
            let (seq, at) = (event.seq, event.at.0);
            Write::Artifact(Box::new(ArtifactRow { run, seq, place, token, at, artifact }))
        })
    })
}

fn gate_row(hosted: &Hosted, event: &Event) -> Option<Write> {
    let run = hosted.no;
    match &event.kind {
        EventKind::GateOpened { gate, token, record, .. } => {
            let kind = serde_json::to_value(record.kind).expect("a kind is a word");
            let node = token.and_then(|token| hosted.run.state().tokens.get(&token)).map(|token| {
                let graph = hosted.run.graph();
                graph.written_ref(NodeIx(token.node)).clone()
            });
            let place = token.and_then(|token| place(&hosted.run, token));
            let (visit, item) = place.map_or((None, None), |(visit, item)| (Some(visit), item));
            Some(Write::GateOpened(Box::new(GateRow {
                run,
                gate: gate.0,
                node: node.or_else(|| record.budget_of.clone()),
                kind: kind.as_str().unwrap_or_default().to_owned(),
                title: record.title.clone(),
                body: record.body.clone(),
                form: record.form.to_string(),
                assignees: serde_json::to_string(&record.assignees).expect("names are JSON"),
                opened_at: event.at.0,
                deadline: deadline(&hosted.run, *gate),
                visit,
                item,
            })))
        }
        EventKind::GateAnswered { gate, closes: true, .. } | EventKind::GateClosed { gate, .. } => {
            Some(Write::GateClosed { run, gate: gate.0 })
        }
        EventKind::GateReassigned { gate, assignees } => {
            let assignees = serde_json::to_string(assignees).expect("names are JSON");
            let deadline = deadline(&hosted.run, *gate);
            Some(Write::GateAssigned { run, gate: gate.0, assignees, deadline })
        }
        _ => None,
    }
}

/// Where a token is, with the numbers of its branches from the outermost in, and what its branch works on.
fn place(run: &Run, token: TokenId) -> Option<(String, Option<String>)> {
    let token = run.state().tokens.get(&token)?;
    let node = run.graph().written_ref(NodeIx(token.node));
    let (mut path, mut next) = (Vec::new(), token.branch);
    while let Some(at) = next {
        path.push(at.branch.to_string());
        next = run.state().groups.get(&at.group).and_then(|group| group.outer);
    }
    path.reverse();
    let visit = if path.is_empty() { node.to_string() } else { format!("{node}[{}]", path.join(".")) };
    let group = token.branch.and_then(|at| Some((run.state().groups.get(&at.group)?, at.branch)));
    let item = group.and_then(|(group, branch)| group.items.as_list()?.get(branch as usize));
    Some((visit, item.map(ToString::to_string)))
}

fn deadline(run: &Run, gate: GateId) -> Option<i64> {
    run.state().gates.get(&gate)?.deadline.map(|at| at.0)
}
