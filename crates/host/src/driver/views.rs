//! Runs as they are shown, from the run itself.

use wonder_core::def::Name;
use wonder_core::graph::NodeIx;
use wonder_core::state::Place;
use wonder_core::{Run, RunStatus, Time};
use wonder_engine::{RunRow, RunView, Status, WaitView};

use super::{Driver, Hosted};

/// Quiet by itself; whether what it called is quiet too is another question.
pub(crate) fn quiet_alone(run: &Run) -> bool {
    run.is_quiet(|_, _| false, |_| true)
}

/// What a run itself waits for from outside.
pub(crate) fn gates_and_events(id: &str, run: &Run) -> Vec<WaitView> {
    let node_of = |ix: u32| run.graph().written_ref(NodeIx(ix)).to_string();
    let mut waits: Vec<WaitView> = run
        .gates()
        .map(|(gate, open)| WaitView::Gate {
            gate: format!("{id}:{gate}"),
            kind: open.record.kind,
            node: open
                .token
                .and_then(|token| run.state().tokens.get(&token))
                .map(|token| node_of(token.node)),
            title: open.record.title.clone(),
        })
        .collect();
    for token in run.tokens() {
        if let Place::WaitingForEvent { event, key, .. } = &token.place {
            let node = node_of(token.node);
            let (run, event) = (id.to_owned(), event.to_string());
            waits.push(WaitView::Event { run, node, event, key: key.clone() });
        }
    }
    if run.status() == RunStatus::Paused && waits.is_empty() {
        waits.push(WaitView::Resume { run: id.to_owned() });
    }
    waits
}

/// A run and what its tree waits for.
pub(crate) fn view(
    row: RunRow,
    run: &Run,
    children: Vec<String>,
    waiting: Vec<WaitView>,
    now: Time,
) -> RunView {
    let state = run.state();
    let ended = run.status().is_end();
    RunView {
        seq: state.seq,
        input: state.start.as_ref().map(|start| start.input.clone()).unwrap_or_default(),
        state: state.state.clone(),
        output: run.output().cloned(),
        error: run.failure().cloned(),
        waiting: if ended { Vec::new() } else { waiting },
        quiet: ended || matches!(row.status, Status::Waiting),
        metrics: state.metrics.clone(),
        duration_ms: row.took_ms(now),
        unpriced_calls: state.spend.unpriced_calls,
        budget_usd_micros: run.graph().budget.and_then(|budget| budget.usd_micros),
        children,
        row,
    }
}

impl Hosted {
    pub(super) fn row(&self, quiet: bool, driven: bool) -> RunRow {
        let state = self.run.state();
        let ended = state.status.is_end();
        RunRow {
            run: self.id().to_string(),
            workflow: self.run.graph().name.to_string(),
            version: self.version,
            status: Status::of(state.status, quiet && !ended),
            root: self.root.to_string(),
            parent: self.parent.as_ref().map(ToString::to_string),
            started_at: self.started_at,
            ended_at: self.ended_at(),
            usd_micros: state.spend.usd_micros,
            tokens: state.spend.tokens(),
            forked: self.forked.clone(),
            project: self.project.to_string(),
            driven,
            labels: self.labels.clone(),
            file: self.file.clone(),
            closed_ms: self.closed_ms,
        }
    }

    /// When it ended. Reports that come after that do not move it.
    pub(super) fn ended_at(&self) -> Option<Time> {
        let state = self.run.state();
        let stored = self.stored.as_ref().and_then(|stored| stored.ended_at);
        state.status.is_end().then(|| stored.map_or(state.now, Time))
    }

    fn id(&self) -> Name {
        self.run.state().start.as_ref().map_or_else(|| "".into(), |start| start.id.clone())
    }
}

impl Driver {
    /// A run that is in memory.
    pub(super) fn view(&self, id: &Name) -> Option<RunView> {
        let hosted = self.runs.get(id)?;
        let quiet = self.is_quiet(id);
        let row = hosted.row(quiet, self.shared.is_driven(&hosted.root));
        let waiting = if quiet { self.waits(id)? } else { Vec::new() };
        let children = hosted.children.iter().map(ToString::to_string).collect();
        Some(RunView { quiet, ..view(row, &hosted.run, children, waiting, self.clock.now()) })
    }

    /// What a tree waits for; None if a part of it is out of memory, and has to be read.
    fn waits(&self, id: &Name) -> Option<Vec<WaitView>> {
        let hosted = self.runs.get(id)?;
        let mut all = gates_and_events(id, &hosted.run);
        all.extend(self.budget_wait(id));
        for child in hosted.children_out() {
            all.extend(self.waits(child)?);
        }
        Some(all)
    }
}
