//! Rows that follow from what happened: events, the run's line in lists, gates, timers, snapshots.

use wonder_core::Run;
use wonder_core::def::Name;
use wonder_core::event::{Event, EventKind, GateId};
use wonder_core::graph::NodeIx;
use wonder_engine::Status;

use super::{Driver, Hosted};
use crate::store::{self, GateRow, RunUpdate, Write};

/// Events between snapshots, at least. Beyond that a snapshot is written when as much has been stored as it
/// would take, so that snapshots never cost more than the events do.
const SNAPSHOT_EVENTS: u64 = 2_000;

impl Driver {
    /// One step's events, and the gates that follow from them.
    pub(super) fn record(&mut self, id: &Name, events: &[Event]) {
        let Some(first) = events.first() else { return };
        let hosted = self.runs.get_mut(id).expect("it has just answered");
        let encoded = store::encode(events);
        hosted.events += events.len() as u64;
        hosted.bytes += encoded.bytes();
        self.batch.push(Write::Events { run: hosted.no, seq: first.seq, encoded });
        for event in events {
            self.batch.extend(gate_row(hosted, event));
            hosted.observe(event);
        }
    }

    /// The lines of this turn's runs, and of those that called them.
    pub(super) fn write_rows(&mut self) {
        for id in self.touched.clone() {
            self.write_ancestors(&id);
            self.write_row(&id);
            self.time(&id);
            self.snapshot(&id);
        }
    }

    /// A parent is quiet or not as its children are.
    fn write_ancestors(&mut self, id: &Name) {
        let mut above = self.runs.get(id).and_then(|hosted| hosted.parent.clone());
        while let Some(parent) = above {
            if self.touched.contains(&parent) {
                return;
            }
            let was_quiet = !self.runs.contains_key(&parent);
            let quiet = self.is_quiet(id);
            // Out of memory it was quiet, with all below it: it has to come back only if that has changed.
            if was_quiet && (quiet || self.hosted(&parent).is_err()) {
                return;
            }
            self.write_row(&parent);
            above = self.runs.get(&parent).and_then(|hosted| hosted.parent.clone());
        }
    }

    fn write_row(&mut self, id: &Name) {
        let quiet = self.is_quiet(id);
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let state = hosted.run.state();
        let ended = state.status.is_end();
        let status = Status::of(state.status, quiet && !ended);
        let ended_at = hosted.ended_at().map(|at| at.0);
        let update = RunUpdate {
            no: hosted.no,
            status,
            ended_at,
            usd_micros: state.spend.usd_micros,
            tokens: state.spend.tokens(),
        };
        if hosted.stored == update {
            return;
        }
        hosted.stored = update.clone();
        self.batch.push(Write::RunUpdate(update));
        if ended && state.gates_opened > 0 {
            self.batch.push(Write::GatesClosed { run: hosted.no });
        }
        if ended {
            // What cannot be learnt is not worth a run.
            drop(self.learn(id));
        }
    }

    /// Keeps the deadline among the driver's timers, and in the database while the run waits.
    fn time(&mut self, id: &Name) {
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let deadline = hosted.run.next_deadline().filter(|_| !hosted.run.status().is_end());
        self.timers.set(id, deadline);
        // While tasks are out, whoever carries the run on after a crash has to load it anyway.
        let first = hosted.stored_timer.is_none();
        let works = !hosted.run.state().out.is_empty();
        if hosted.stored_timer != deadline && (first || !works || deadline.is_none()) {
            hosted.stored_timer = deadline;
            self.batch.push(Write::Timer { run: hosted.no, at: deadline.map(|at| at.0) });
        }
    }

    fn snapshot(&mut self, id: &Name) {
        let Some(hosted) = self.runs.get_mut(id) else { return };
        if hosted.events < SNAPSHOT_EVENTS || hosted.bytes < hosted.snapshot_bytes {
            return;
        }
        let state = serde_json::to_string(hosted.run.state()).expect("a state is JSON");
        (hosted.events, hosted.bytes, hosted.snapshot_bytes) = (0, 0, state.len());
        self.batch.push(Write::Snapshot { run: hosted.no, seq: hosted.run.state().seq, state });
    }
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

fn deadline(run: &Run, gate: GateId) -> Option<i64> {
    run.state().gates.get(&gate)?.deadline.map(|at| at.0)
}
