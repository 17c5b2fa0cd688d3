//! Runs that runs call: starting them, and telling their ends. All within a turn, committed together.

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::command::ChildOrder;
use wonder_core::cost::Allowance;
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::Graph;
use wonder_core::input::{ChildOutcome, StartRun};
use wonder_core::{Input, child_refused, child_start, child_unknown};
use wonder_engine::{EngineError, Reply};

use super::{Driver, Hosted, Refusal, RunMessage, Turn};

/// A child to be started, as its parent ordered it.
#[derive(Debug)]
pub(crate) struct ChildStart {
    pub(super) parent: Name,
    pub(super) order: ChildOrder,
}

/// A run to be created, with all that only the host knows of it.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) definition: i64,
    pub(crate) graph: Arc<Graph>,
    pub(crate) callable: Arc<BTreeMap<Name, i64>>,
    pub(crate) root: Name,
    pub(crate) project: Name,
    pub(crate) workdir: Arc<std::path::PathBuf>,
    pub(crate) file: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) start: StartRun,
}

impl Driver {
    pub(super) fn start_child(&mut self, turn: &mut Turn, ChildStart { parent, order }: ChildStart) {
        let known = self.is_known(turn, &order.child);
        if let Ok(true) = known {
            // Asked for again after a crash. If it has ended, its parent has not heard.
            let child = self.runs.get_mut(&order.child).expect("it was just found");
            child.end_told = false;
            turn.touched.insert(order.child);
            return;
        }
        let (child, token, attempt) = (order.child.clone(), order.token, order.attempt);
        let created = known.map_err(internal).and_then(|_| self.create_child(turn, &parent, order));
        if let Err(failure) = created {
            let outcome = ChildOutcome::Failed { failure };
            let input = Input::ChildFinished { token, attempt, outcome, spend: Default::default() };
            turn.tell(parent, input);
        } else if let Some(hosted) = self.runs.get_mut(&parent) {
            hosted.children.push(child);
        }
    }

    fn create_child(&mut self, turn: &mut Turn, parent: &Name, order: ChildOrder) -> Result<(), Failure> {
        self.hosted(turn, parent).map_err(internal)?;
        let above = &self.runs[parent];
        let Some(definition) = above.callable.get(&order.workflow).copied() else {
            let known: Vec<&str> = above.callable.keys().map(|name| &**name).collect();
            return Err(child_unknown(&order.workflow, &known));
        };
        let graph = self.definitions.graph(definition, &self.store.reader()).map_err(internal)?;
        let workflow = order.workflow.clone();
        let start = child_start(&above.run, order);
        let new = NewRun {
            definition,
            graph,
            callable: above.callable.clone(),
            root: above.root.clone(),
            project: above.project.clone(),
            workdir: above.workdir.clone(),
            file: None,
            labels: BTreeMap::new(),
            start,
        };
        self.create_run(turn, new).map_err(|refusal| match refusal {
            Refusal::Engine(error) => internal(error),
            Refusal::Rejected(rejection) => child_refused(&workflow, &rejection.to_string()),
        })
    }

    /// Starts a run: its row and its first events. If it is refused nothing is left of it.
    pub(super) fn create_run(&mut self, turn: &mut Turn, new: NewRun) -> Result<(), Refusal> {
        let NewRun { definition, graph, callable, root, project, workdir, file, labels, mut start } = new;
        // A child has its parent's: what can be called is the same for the whole tree.
        if start.parent.is_none() {
            start.child_budgets = self.child_budgets(&callable).map_err(Refusal::Engine)?;
        }
        let id = start.id.clone();
        self.add_estimates(&graph, &mut start).map_err(Refusal::Engine)?;
        if self.shared.is_driven(&root) {
            start.queued |= !self.join_limit(&id, &graph, &start.input);
        }
        let parent = start.parent.as_ref().map(|parent| parent.run.clone());
        let new = self.new_hosted(definition, graph, root);
        let before = turn.batch.len();
        self.insert(&id, Hosted { callable, workdir, parent, file, labels, project, ..new });
        let started = self.deliver(turn, &id, Input::StartRun(Box::new(start)));
        if started.is_err() {
            self.runs.remove(&id);
            // It may have taken a place, or wait for one.
            turn.touched.insert(id);
            turn.batch.truncate(before);
        }
        started
    }

    /// A run that has been told nothing yet, with the next number.
    pub(super) fn new_hosted(&self, definition: i64, graph: Arc<Graph>, root: Name) -> Hosted {
        Hosted::new(self.next_run, definition, graph, root, self.clock.now())
    }

    /// Puts a new run among the others; its row follows when this turn is over.
    pub(super) fn insert(&mut self, id: &Name, hosted: Hosted) {
        self.runs.insert(id.clone(), hosted);
        self.next_run += 1;
    }

    /// What a call of each workflow reserves at most.
    fn child_budgets(&mut self, callable: &BTreeMap<Name, i64>) -> Reply<BTreeMap<Name, Allowance>> {
        let mut budgets = BTreeMap::new();
        for (name, definition) in callable {
            let graph = self.definitions.graph(*definition, &self.store.reader())?;
            if let Some(budget) = graph.budget {
                budgets.insert(name.clone(), budget.allowance());
            }
        }
        Ok(budgets)
    }

    /// Runs of this turn that have ended tell whoever called them.
    pub(super) fn tell_ends(&mut self, turn: &mut Turn) {
        for id in &turn.touched {
            let Some(hosted) = self.runs.get_mut(id) else { continue };
            let Some(outcome) = hosted.run.outcome() else {
                // A retry has opened it again.
                hosted.end_told = false;
                continue;
            };
            // What was called back may still cost: until it has reported, nobody knows how much.
            if hosted.parent.is_some() && self.executor.has_tasks_of(id) {
                continue;
            }
            if std::mem::replace(&mut hosted.end_told, true) {
                continue;
            }
            let parent = hosted.run.state().start.as_ref().and_then(|start| start.parent.clone());
            let Some(parent) = parent else { continue };
            let spend = hosted.run.spend().clone();
            let input = Input::ChildFinished { token: parent.token, attempt: parent.attempt, outcome, spend };
            turn.messages.push_back(RunMessage::Tell { run: parent.run, input });
        }
    }
}

fn internal(error: EngineError) -> Failure {
    Failure::new(ErrorKind::Internal, error.message)
}

/// For backoff jitter: from the id, so that a run asked for twice is the same run.
pub(super) fn seed(id: &str) -> u64 {
    let hash = blake3::hash(id.as_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}
