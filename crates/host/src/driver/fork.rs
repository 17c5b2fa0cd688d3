//! `fork`: a run of its own that begins with the events of another, up to the dispatch of a node. If that is a node of a
//! run that the other one called, both are forked, and the new ones belong together as the old ones do.
//!
//! The copied events are stored again under the new run, so that it needs nothing of the old one; what they
//! hold above 4 KiB is shared by hash. The fork's sums include what was copied, its row says how much.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::event::{Event, EventKind};
use wonder_core::graph::Graph;
use wonder_core::run::Step;
use wonder_core::{Run, Time, child_id, run};
use wonder_engine::{EngineError, Fork, Forked, Reply, Workflow};

use super::ask::refused;
use super::statistics::NodeStatistics;
use super::{Driver, Hosted, Refusal, Turn, panic_text};
use crate::embedded::Drive;
use crate::store::StoredRun;

/// Copied events in one row.
const ROW_EVENTS: usize = 200;

/// A run that a fork makes, before it is among the others.
struct NewRun {
    run: Name,
    source: StoredRun,
    parent: Option<Name>,
    forked: (Run, Vec<Event>, Step),
}

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
        self.refuse_secrets("what is set", &fork.set)?;
        let forks = self.forks((id.clone(), source, graph), &fork)?;
        if drive == Drive::On {
            self.shared.drive(&id);
        }
        let mut steps = Vec::new();
        for NewRun { run, source, parent, forked: (state, copied, step) } in forks {
            if let Some(above) = parent.as_ref().and_then(|parent| self.runs.get_mut(parent)) {
                above.children.push(run.clone());
            }
            self.insert_fork(turn, (&run, parent, &id), source, (state, &copied));
            steps.push((run, step));
        }
        for (run, step) in steps {
            self.follow_up(turn, &run, step);
        }
        Ok(id)
    }

    /// All runs that a fork makes, the root first, before any of them is: a place that cannot be forked at changes
    /// nothing.
    fn forks(
        &mut self,
        (mut id, mut source, mut graph): (Name, StoredRun, Arc<Graph>),
        fork: &Fork,
    ) -> Reply<Vec<NewRun>> {
        let (mut forks, mut parent) = (Vec::new(), None);
        let mut nodes = fork.node.split('/').peekable();
        while let Some(node) = nodes.next() {
            let mut asked = run::Fork { parent: parent.clone(), ..run::Fork::new(id.clone(), node.into()) };
            asked.inside = nodes.peek().is_some();
            if !asked.inside {
                (asked.branch, asked.visit) = (fork.branch, fork.visit);
                (asked.input, asked.set) = (fork.input.clone(), fork.set.clone());
            }
            let events = self.store.reader().events(source.no, 0, usize::MAX)?;
            let forked = forked(graph.clone(), &events, &asked, self.clock.now())?;
            let called = forked.1.last().filter(|_| asked.inside).map(|event| event.kind.clone());
            let new = NewRun { run: id.clone(), source: source.clone(), parent, forked };
            forks.push(new);
            let Some(EventKind::ChildStarted(call)) = called else { break };
            parent = Some(id.clone());
            id = child_id(&id, call.token, call.attempt);
            // What a fork called is its own, what was called before it was one is not.
            let own = child_id(&source.row.run.as_str().into(), call.token, call.attempt);
            let reader = self.store.reader();
            let child = match reader.run(&own)? {
                Some(child) => child,
                None => self.stored(&call.child)?,
            };
            let definition = source.callable.get(&*child.row.workflow).copied();
            let definition = definition.unwrap_or(child.definition);
            graph = self.definitions.graph(definition, &self.store.reader())?;
            source = StoredRun { definition, callable: source.callable, ..child };
        }
        Ok(forks)
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
    fn insert_fork(
        &mut self,
        turn: &mut Turn,
        (id, parent, root): (&Name, Option<Name>, &Name),
        source: StoredRun,
        (run, copied): (Run, &[Event]),
    ) {
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
            parent,
            ..self.new_hosted(source.definition, graph.clone(), root.clone())
        };
        self.insert(id, hosted);
        copied.chunks(ROW_EVENTS).for_each(|events| self.record(turn, id, events));
        // What the copied events show was counted where they happened.
        self.runs.get_mut(id).expect("it was just put in").statistics = NodeStatistics::of(&graph);
        if self.shared.is_driven(root) {
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
