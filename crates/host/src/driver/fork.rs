//! `fork`: a run of its own that begins with the events of another, up to the last dispatch of a node.
//!
//! The copied events are stored again under the new run, so that it needs nothing of the old one; what they
//! hold above 4 KiB is shared by hash. The fork's sums include what was copied, its row says how much.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::event::Event;
use wonder_core::graph::Graph;
use wonder_core::run::Step;
use wonder_core::{Run, Time, run};
use wonder_engine::{EngineError, Fork, Forked, Reply, Workflow};

use super::ask::refused;
use super::statistics::NodeStatistics;
use super::{Driver, Hosted, Refusal, Turn, panic_text};
use crate::embedded::Drive;
use crate::store::StoredRun;

/// Copied events in one row.
const ROW_EVENTS: usize = 200;

impl Driver {
    /// Everything about the run to be forked is committed: see `gather`.
    pub(super) fn fork(&mut self, turn: &mut Turn, fork: Fork, drive: Drive) -> Reply<Name> {
        let id: Name = fork.id.clone().unwrap_or_else(|| ulid::Ulid::generate().to_string()).into();
        if self.is_known(turn, &id)? {
            return self.carry_on_again(turn, id, drive);
        }
        let mut source = self.source(turn, &fork.run.as_str().into())?;
        let graph = self.forked_graph(turn, &mut source, &fork.definition)?;
        self.refuse_secrets("the input", &fork.input)?;
        let asked = run::Fork {
            run: id.clone(),
            node: fork.node.as_str().into(),
            branch: fork.branch,
            input: fork.input,
        };
        let events = self.store.reader().events(source.no, 0, usize::MAX)?;
        let (run, copied, step) = forked(graph, &events, &asked, self.clock.now())?;
        if drive == Drive::On {
            self.shared.drive(&id);
        }
        self.insert_fork(turn, &id, source, run, &copied);
        self.follow_up(turn, &id, step);
        Ok(id)
    }

    /// The row of the run to be forked: of a child's, its root's.
    fn source(&mut self, turn: &mut Turn, id: &Name) -> Reply<StoredRun> {
        self.hosted(turn, id)?;
        let root = self.runs[id].root.clone();
        self.stored(&root)
    }

    pub(super) fn stored(&self, id: &Name) -> Reply<StoredRun> {
        self.store.reader().run(id)?.ok_or_else(|| EngineError::no_such_run(id))
    }

    /// The graph the fork goes on with: its own, or the new one that was brought along.
    fn forked_graph(
        &mut self,
        turn: &mut Turn,
        source: &mut StoredRun,
        brought: &[Workflow],
    ) -> Reply<Arc<Graph>> {
        for (at, workflow) in brought.iter().enumerate() {
            let name = workflow.bundle.workflow.name.text.clone();
            if at == 0 && *name != *source.row.workflow {
                return Err(EngineError::other_workflow(&name, &source.row.workflow));
            }
            let (definition, _) = self.register(turn, workflow.clone())?;
            source.callable.insert(name, definition);
            if at == 0 {
                source.definition = definition;
            }
        }
        self.definitions.graph(source.definition, &self.store.reader())
    }

    /// Its row and its events.
    fn insert_fork(&mut self, turn: &mut Turn, id: &Name, source: StoredRun, run: Run, copied: &[Event]) {
        let graph = run.graph().clone();
        let input = run.state().start.as_ref().map(|start| start.input.clone()).unwrap_or_default();
        let spend = run.spend();
        let forked = Forked {
            from: source.row.run,
            copied_usd_micros: spend.usd_micros,
            copied_tokens: spend.tokens(),
        };
        let hosted = Hosted {
            run,
            callable: Arc::new(source.callable),
            workdir: Arc::new(source.workdir.into()),
            file: source.row.file,
            labels: source.row.labels,
            project: source.row.project.into(),
            forked: Some(forked),
            ..self.new_hosted(source.definition, graph.clone(), id.clone())
        };
        self.insert(id, hosted);
        copied.chunks(ROW_EVENTS).for_each(|events| self.record(turn, id, events));
        // What the copied events show was counted where they happened.
        self.runs.get_mut(id).expect("it was just put in").statistics = NodeStatistics::of(&graph);
        if self.shared.is_driven(id) {
            // Without a place its tasks wait for one; it cannot be queued any more.
            self.join_limit(id, &graph, &input);
        }
    }
}

fn forked(
    graph: Arc<Graph>,
    events: &[Event],
    asked: &run::Fork,
    now: Time,
) -> Reply<(Run, Vec<Event>, Step)> {
    let forked = catch_unwind(AssertUnwindSafe(|| Run::fork(graph, events, asked, now)));
    match forked {
        Ok(Ok(forked)) => Ok(forked),
        Ok(Err(rejection)) => Err(refused(Refusal::Rejected(rejection))),
        Err(panic) => Err(EngineError::internal(panic_text(&*panic))),
    }
}
