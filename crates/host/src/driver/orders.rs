//! What runs have ordered, once it is committed: tasks begin, wait for a place among runs or for their
//! project's budget, or are called back.

use wonder_core::command::TaskOrder;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::{EventKind, TokenId};
use wonder_core::graph::Graph;
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::{Command, Input, RunStatus, TokenStatus, Value};
use wonder_engine::{Status, WaitView};

use super::concurrency::Membership;
use super::{Driver, HostEvent, RunMessage, TaskKey, Turn};
use crate::project::{self, Spent};
use crate::store::Write;

impl Driver {
    pub(super) fn order(&mut self, id: &Name, command: Command) {
        match command {
            Command::RunTask(order) => self.order_task(order),
            Command::CancelTask { token, attempt } => self.cancel_task(id, token, attempt),
            _ => unreachable!("only tasks are ordered after a commit"),
        }
    }

    /// Begins a task, unless nobody carries its run on, or it has to wait for a place or a budget.
    fn order_task(&mut self, order: Box<TaskOrder>) {
        let Some(hosted) = self.runs.get(&order.run) else { return };
        if !self.shared.is_driven(&hosted.root) {
            return;
        }
        let admitted = self.concurrency.admit(order);
        if admitted.is_none() {
            self.tell_who_waits();
        }
        let Some(order) = admitted.and_then(|order| self.within_budget(order)) else { return };
        let Some(hosted) = self.runs.get(&order.run) else { return };
        let begun = match hosted.run.graph().tasks.get(&order.task).cloned() {
            Some(task) => self.executor.start(order, task, hosted.workdir.clone()),
            None => Some(no_definition(&order)),
        };
        self.backlog.extend(begun);
    }

    fn cancel_task(&mut self, id: &Name, token: TokenId, attempt: u32) {
        let key = TaskKey { run: id.clone(), token, attempt };
        self.budgets.give_back(&key);
        if !self.executor.cancel(&key) {
            // It is not running here, so it has ended: every dispatched task is answered.
            let report = unbegun(TaskOutcome::Cancelled);
            self.backlog.push_back(HostEvent::Report { key, report });
        }
    }

    /// What a task reported is its project's spending, wherever it is summed up besides.
    pub(super) fn spend(&mut self, turn: &mut Turn, project: &Name, spend: &Spend) {
        let spent = Spent::of(spend);
        if spent.is_nothing() {
            return;
        }
        let now = self.clock.now();
        turn.batch.push(Write::Spent { project: project.clone(), day: project::day(now), spent });
        self.budgets.spend(project, spent, now);
    }

    fn within_budget(&mut self, order: Box<TaskOrder>) -> Option<Box<TaskOrder>> {
        if self.budgets.is_empty() {
            return Some(order);
        }
        let hosted = self.runs.get(&order.run)?;
        // The worst case of the task, whether or not a budget of its run bounds it.
        let out = hosted.run.state().out.get(&(order.token, order.attempt));
        let worst = out.map_or_else(Allowance::default, |out| out.reserved);
        self.budgets.admit(&hosted.project, order, worst, self.clock.now())
    }

    /// Tasks that budgets held begin as far as they fit now, the oldest first.
    pub(super) fn release_held(&mut self, turn: &mut Turn) {
        if !self.budgets.holds_any() {
            return;
        }
        for project in self.budgets.projects() {
            while let Some(order) = self.budgets.next_fitting(&project, self.clock.now()) {
                self.order_task(order);
            }
            self.show_budget_waits(turn, &project);
        }
    }

    /// Runs that only wait now are looked at once more: their rows are to say so.
    fn show_budget_waits(&mut self, turn: &mut Turn, project: &Name) {
        if !self.budgets.is_exhausted(project) {
            return;
        }
        for run in self.budgets.runs_held(project) {
            let shown = self.runs.get(&run).is_some_and(|hosted| hosted.is_stored_as(Status::Waiting));
            if !shown && self.is_quiet(&run) {
                turn.touched.insert(run);
            }
        }
    }

    /// All that this run has out is held, and nothing that is out of its project can make room.
    pub(super) fn waits_for_budget(&self, id: &str) -> bool {
        let Some(hosted) = self.runs.get(id) else { return false };
        if !self.budgets.is_exhausted(&hosted.project) || hosted.run.status() != RunStatus::Running {
            return false;
        }
        let mut tasks = hosted.run.state().out.iter().filter(|(_, out)| out.child.is_none());
        let held = |(token, attempt)| {
            self.budgets.holds(&hosted.project, &TaskKey { run: id.into(), token, attempt })
        };
        let moves = |status: TokenStatus| {
            matches!(status, TokenStatus::Pending | TokenStatus::Retrying | TokenStatus::Sleeping)
        };
        tasks.all(|(task, _)| held(*task)) && !hosted.run.tokens().any(|token| moves(token.status()))
    }

    /// What a run that waits for its project's budget is shown to wait for.
    pub(super) fn budget_wait(&self, id: &str) -> Option<WaitView> {
        let hosted = self.runs.get(id).filter(|_| self.waits_for_budget(id))?;
        let works = hosted.run.state().out.values().any(|out| out.child.is_none());
        let (budget, spent) = self.budgets.balance(&hosted.project).filter(|_| works)?;
        Some(project::held(id, &hosted.project, Some(budget), spent))
    }

    /// A run that is carried on comes under its workflow's limit. True if it may go on at once.
    pub(super) fn join_limit(&mut self, run: &Name, graph: &Graph, input: &Value) -> bool {
        let Some(membership) = Membership::of(graph, input) else { return true };
        if !self.concurrency.looked_for(&graph.name) {
            self.find_holders(&graph.name);
        }
        let placed = self.concurrency.join(run, membership);
        self.tell_who_waits();
        placed
    }

    /// Runs that earlier owners left and that hold on to their places. What cannot be read holds nobody up.
    fn find_holders(&mut self, workflow: &Name) {
        let reader = self.store.reader();
        for stored in reader.live_of(workflow).unwrap_or_default() {
            if stored.row.status == Status::Queued {
                continue;
            }
            let Ok(graph) = self.definitions.graph(stored.definition, &reader) else { continue };
            let Ok(first) = reader.events(stored.no, 0, 1) else { continue };
            let input = first.first().and_then(|event| match &event.kind {
                EventKind::RunStarted { start, .. } => Some(&start.input),
                _ => None,
            });
            if let Some(membership) = input.and_then(|input| Membership::of(&graph, input)) {
                self.concurrency.keep_place(&stored.row.run.into(), membership);
            }
        }
    }

    /// After recovery: a run that was queued goes on if it has a place.
    pub(super) fn rejoin_limit(&mut self, turn: &mut Turn, id: &Name) {
        let run = &self.runs[id].run;
        let graph = run.graph().clone();
        let input = run.state().start.as_ref().map(|start| start.input.clone()).unwrap_or_default();
        let queued = run.status() == RunStatus::Queued;
        if self.join_limit(id, &graph, &input) && queued {
            turn.messages.push_back(RunMessage::Tell { run: id.clone(), input: Input::Release });
        }
    }

    /// Runs of this turn that have ended, or only wait, give their places to others.
    pub(super) fn free_places(&mut self, turn: &mut Turn) {
        if self.concurrency.is_empty() {
            return;
        }
        for id in turn.touched.clone() {
            if !self.concurrency.is_member(&id) {
                continue;
            }
            let ended = self.runs.get(&id).is_none_or(|hosted| hosted.run.status().is_end());
            let next = if ended {
                self.concurrency.leave(&id)
            } else if self.concurrency.may_give_away(&id) && self.is_quiet(&id) {
                self.concurrency.give_away(&id)
            } else {
                continue;
            };
            if let Some(next) = next {
                self.use_place(turn, next);
            }
            self.tell_who_waits();
        }
    }

    /// A run has got a place: it starts, or its tasks that were held begin.
    pub(super) fn use_place(&mut self, turn: &mut Turn, id: Name) {
        if self.hosted(turn, &id).is_err() {
            return;
        }
        if self.runs[&id].run.status() == RunStatus::Queued {
            turn.messages.push_back(RunMessage::Tell { run: id, input: Input::Release });
        } else {
            let held = self.concurrency.take_held(&id);
            turn.orders.extend(held.into_iter().map(|order| (id.clone(), Command::RunTask(order))));
        }
    }

    fn tell_who_waits(&self) {
        self.shared.waiting_for_places(self.concurrency.waiting());
    }
}

/// A task whose definition is not known cannot begin, and its run is told so: a task that was dispatched is
/// always answered.
fn no_definition(order: &TaskOrder) -> HostEvent {
    let message = format!("the run has no definition of task {}", order.task);
    let failure = Failure::new(ErrorKind::Internal, message);
    let report = unbegun(TaskOutcome::Failed { failure, retry: false, step: None });
    HostEvent::Report { key: TaskKey::of(order), report }
}

/// The report of a task that nobody has begun.
pub(crate) fn unbegun(outcome: TaskOutcome) -> TaskReport {
    TaskReport::new(outcome, Default::default())
}

/// The order of a task, as a run gives it.
#[cfg(test)]
pub(super) fn test_order(run: &str, token: u64) -> Box<TaskOrder> {
    let mut order = tests::ordered(run);
    order.token = TokenId(token);
    order
}

#[cfg(test)]
mod tests {
    use wonder_core::input::StartRun;
    use wonder_core::{Run, Time};

    use super::*;

    pub(super) fn ordered(run: &str) -> Box<TaskOrder> {
        let file = "wonder: 1\nname: one\nnodes:\n  work: {mock: {output: {}}}\n";
        let reading = wonder_spec::read(file, "test.yaml").expect("a sound file");
        let start = Input::StartRun(Box::new(StartRun::new(run, Value::default())));
        let step = Run::new(reading.graphs[0].clone()).handle(start, Time(0)).expect("it starts");
        let orders = step.commands.into_iter().filter_map(|command| match command {
            Command::RunTask(order) => Some(order),
            _ => None,
        });
        orders.last().expect("its first node is dispatched")
    }

    #[test]
    fn a_task_without_a_definition_is_answered_as_our_mistake() {
        let mut order = test_order("run", 3);
        order.task = "unknown".into();
        let HostEvent::Report { key, report } = no_definition(&order) else { panic!("not answered") };
        assert_eq!(key, TaskKey::of(&order));
        let TaskOutcome::Failed { failure, retry: false, .. } = report.outcome else { panic!("{report:?}") };
        assert_eq!(failure.kind, ErrorKind::Internal);
        assert!(failure.message.contains("unknown"), "{failure:?}");
    }
}
