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

use super::{Driver, Hosted, Refusal, Word};

/// A child to be started, as its parent ordered it.
#[derive(Debug)]
pub(crate) struct ChildStart {
    parent: Name,
    order: ChildOrder,
}

/// A run to be, with all that only the host knows of it.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) definition: i64,
    pub(crate) graph: Arc<Graph>,
    pub(crate) callable: Arc<BTreeMap<Name, i64>>,
    pub(crate) root: Name,
    pub(crate) project: Name,
    pub(crate) workdir: Arc<std::path::PathBuf>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) start: StartRun,
}

impl Driver {
    pub(super) fn order_child(&mut self, parent: &Name, order: ChildOrder) {
        self.words.push_back(Word::Start(Box::new(ChildStart { parent: parent.clone(), order })));
    }

    pub(super) fn start_child(&mut self, ChildStart { parent, order }: ChildStart) {
        if let Ok(()) = self.hosted(&order.child) {
            // Asked for again after a crash. If it has ended, its parent has not heard.
            let child = self.runs.get_mut(&order.child).expect("it was just found");
            child.told = false;
            self.touched.insert(order.child);
            return;
        }
        let (child, token, attempt) = (order.child.clone(), order.token, order.attempt);
        if let Err(failure) = self.bear_child(&parent, order) {
            let outcome = ChildOutcome::Failed { failure };
            let input = Input::ChildFinished { token, attempt, outcome, spend: Default::default() };
            self.words.push_back(Word::Say { run: parent, input });
        } else if let Some(hosted) = self.runs.get_mut(&parent) {
            hosted.children.push(child);
        }
    }

    fn bear_child(&mut self, parent: &Name, order: ChildOrder) -> Result<(), Failure> {
        let internal = |error: EngineError| Failure::new(ErrorKind::Internal, error.message);
        self.hosted(parent).map_err(internal)?;
        let above = &self.runs[parent];
        let Some(definition) = above.callable.get(&order.workflow).copied() else {
            let known: Vec<&str> = above.callable.keys().map(|name| &**name).collect();
            return Err(child_unknown(&order.workflow, &known));
        };
        let graph = self.definitions.graph(definition, &self.store.reader()).map_err(internal)?;
        let workflow = order.workflow.clone();
        let start = child_start(&above.run, order);
        let birth = Birth {
            definition,
            graph,
            callable: above.callable.clone(),
            root: above.root.clone(),
            project: above.project.clone(),
            workdir: above.workdir.clone(),
            labels: BTreeMap::new(),
            start,
        };
        self.bear(birth).map_err(|refusal| match refusal {
            Refusal::Engine(error) => internal(error),
            Refusal::Rejected(rejection) => child_refused(&workflow, &rejection.to_string()),
        })
    }

    /// Starts a run: its row and its first events. If it is refused nothing is left of it.
    pub(super) fn bear(&mut self, birth: Birth) -> Result<(), Refusal> {
        let Birth { definition, graph, callable, root, project, workdir, labels, mut start } = birth;
        // A child has its parent's: what can be called is the same for the whole tree.
        if start.parent.is_none() {
            start.child_budgets = self.child_budgets(&callable).map_err(Refusal::Engine)?;
        }
        let id = start.id.clone();
        self.recall(&graph, &mut start).map_err(Refusal::Engine)?;
        if self.shared.is_driven(&root) {
            start.queued |= !self.join_lane(&id, &graph, &start.input);
        }
        let parent = start.parent.as_ref().map(|parent| parent.run.clone());
        let new = self.new_hosted(definition, graph, root);
        let before = self.batch.len();
        self.insert(&id, Hosted { callable, workdir, parent, labels, project, ..new });
        let born = self.deliver(&id, Input::StartRun(Box::new(start)));
        if born.is_err() {
            self.runs.remove(&id);
            // It may have taken a place, or stand in line.
            self.touched.insert(id);
            self.batch.truncate(before);
        }
        born
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
    pub(super) fn tell_ends(&mut self) {
        for id in &self.touched {
            let Some(hosted) = self.runs.get_mut(id) else { continue };
            let Some(outcome) = hosted.run.outcome() else {
                // A retry has opened it again.
                hosted.told = false;
                continue;
            };
            // What was called back may still cost: until it has reported, nobody knows how much.
            if hosted.parent.is_some() && self.executor.has_tasks_of(id) {
                continue;
            }
            if std::mem::replace(&mut hosted.told, true) {
                continue;
            }
            let parent = hosted.run.state().start.as_ref().and_then(|start| start.parent.clone());
            let Some(parent) = parent else { continue };
            let spend = hosted.run.spend().clone();
            let input = Input::ChildFinished { token: parent.token, attempt: parent.attempt, outcome, spend };
            self.words.push_back(Word::Say { run: parent.run, input });
        }
    }
}

/// For backoff jitter: from the id, so that a run asked for twice is the same run.
pub(super) fn seed(id: &str) -> u64 {
    let hash = blake3::hash(id.as_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}
