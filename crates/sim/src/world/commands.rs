//! Performing what a run asks for: tasks go to the executor, children become runs of this world, gates are
//! shown to whoever answers.

use wonder_core::command::{ChildOrder, Command, TaskOrder};
use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::event::{Event, EventKind, GateId, TokenId};
use wonder_core::input::{ChildOutcome, Input, StartRun, TaskOutcome};
use wonder_core::value::Value;
use wonder_core::{child_id, child_input, child_refused, child_start, child_unknown};

use super::{Hosted, QueueItem, QueuePosition, Rank, TaskKey, TaskOut, World};
use crate::executor;
use crate::host::{LostTask, ScenarioHost};
use crate::inputs::{GateFilter, OutsideInput};
use crate::names::TokenName;
use crate::outcomes::{At, ChildAnswer, GateRequest, OnCancel, Stop};

impl<H: ScenarioHost> World<H> {
    pub(super) fn perform(&mut self, id: &Name, command: Command) {
        match command {
            Command::RunTask(order) => self.run_task(&order),
            Command::CancelTask { token, attempt } => self.cancel_task(id, token, attempt),
            // People see gates when they are recorded.
            Command::OpenGate { .. } | Command::CloseGate { .. } | Command::RemindGate { .. } => {}
            Command::StartChild(order) => self.order_child(id, *order),
            Command::CancelChild { .. } | Command::PauseChild { .. } | Command::ResumeChild { .. } => {
                if let Some((child, input)) = child_input(&command) {
                    self.tell_child(child, input);
                }
            }
        }
    }

    pub(super) fn enqueue(&mut self, after_ms: u64, item: QueueItem) {
        let same = format!("{item:?}");
        if self.recover(|lost| format!("{lost:?}") == same) {
            return;
        }
        let rank = match &item {
            QueueItem::Report { .. } | QueueItem::Outside { .. } => Rank::FromOutside,
            _ => Rank::BetweenRuns,
        };
        let position = self.position(after_ms, rank);
        self.queue.insert(position, item);
    }

    /// The next place among what happens so long from now.
    pub(super) fn position(&mut self, after_ms: u64, rank: Rank) -> QueuePosition {
        self.order += 1;
        (self.now.plus(after_ms), rank, self.order)
    }

    /// After a crash: a child that was to be cancelled before it began begins first, what it was told before
    /// that it is told, and one that has ended says so again.
    fn recover_child(&mut self, child: &Name) {
        let is_about = |lost: &QueueItem| match lost {
            QueueItem::StartChild { child: lost, .. } | QueueItem::TellChild { child: lost, .. } => {
                lost == child
            }
            QueueItem::ChildReport { parent, token, attempt, .. } => {
                *child == child_id(parent, *token, *attempt)
            }
            QueueItem::Report { .. } | QueueItem::Outside { .. } => false,
        };
        while self.recover(is_about) {}
    }

    /// What a crash lost and is asked for again keeps its place.
    fn recover(&mut self, is_it: impl Fn(&QueueItem) -> bool) -> bool {
        let Some(at) = self.lost.iter().position(|(_, item)| is_it(item)) else { return false };
        let (due, item) = self.lost.remove(at);
        self.queue.insert(due, item);
        true
    }

    /// A task that was ordered before (a host that crashed orders it again) reports when it would have.
    fn run_task(&mut self, order: &TaskOrder) {
        let key = (order.run.clone(), order.token, order.attempt);
        if !self.tasks.contains_key(&key) {
            let performance = self.performance(order);
            let due = self.position(performance.duration_ms, Rank::FromOutside);
            let out = TaskOut {
                started: self.now,
                order: due.2,
                due: Some(due),
                report: performance.report(),
                performance,
                cancelled: false,
                reported: false,
                lost: false,
            };
            self.tasks.insert(key.clone(), out);
        }
        self.queue_report(&key);
    }

    fn queue_report(&mut self, key: &TaskKey) {
        let known = &self.tasks[key];
        if let Some(due) = known.due.filter(|_| !known.reported) {
            self.queue.insert(due, QueueItem::Report { task: key.clone(), report: known.report.clone() });
        }
    }

    /// The nodes that called the workflow a token is in, outermost first, and the token's own.
    pub fn route(&self, run: &Name, token: TokenId) -> Vec<Stop> {
        let Some(hosted) = self.runs.get(run) else { return Vec::new() };
        let parent = hosted.parent.as_ref();
        let mut route = parent.map_or_else(Vec::new, |(parent, token, _)| self.route(parent, *token));
        let stop = |name: &TokenName| Stop { node: name.node.clone(), path: name.path.clone() };
        route.extend(hosted.names.get(token).map(stop));
        route
    }

    fn performance(&mut self, order: &TaskOrder) -> executor::Performance {
        let setting = self.setting.clone();
        let hosted = &self.runs[&order.run];
        let name = hosted.names.get(order.token);
        let route = self.route(&order.run, order.token);
        let at = At {
            workflow: &hosted.graph.name,
            run: &order.run,
            node: &order.node,
            route: &route,
            token: order.token,
            attempt: order.attempt,
            path: name.map_or(&[], |name| &name.path),
            item: name.map_or(&Value::Null, |name| &name.item),
        };
        let graph = hosted.run.graph();
        let mut performance = executor::perform(order, graph, &at, &*setting.outcomes, &mut self.tries);
        let key = (order.run.clone(), order.token, order.attempt);
        if let Some(failing) = setting.failing.as_ref().filter(|failing| failing.task == key) {
            let failure = Failure::new(failing.kind, "made to fail");
            performance.outcome = TaskOutcome::Failed { failure, retry: false, step: None };
        }
        performance
    }

    fn cancel_task(&mut self, id: &Name, token: TokenId, attempt: u32) {
        let key = (id.clone(), token, attempt);
        let Some(known) = self.tasks.get(&key) else {
            self.violations
                .push(format!("{id} cancels attempt {attempt} of token {token}, which was never ordered"));
            return;
        };
        if !known.cancelled && !known.reported {
            let (due, on_cancel) = (known.due, known.performance.on_cancel);
            let new = match on_cancel {
                OnCancel::Finishes => due,
                OnCancel::Never => None,
                OnCancel::ReportsAfter(grace_ms) => Some(self.position(grace_ms, Rank::FromOutside)),
            };
            if new != due {
                due.and_then(|due| self.queue.remove(&due));
            }
            let now = self.now;
            let known = self.tasks.get_mut(&key).expect("it was just found");
            (known.cancelled, known.due) = (true, new);
            if let OnCancel::ReportsAfter(_) = on_cancel {
                known.report = known.performance.cancelled_after(now.since(known.started));
            }
        }
        self.queue_report(&key);
    }

    /// A run that has ended waits for no report that will never come.
    pub(super) fn lose_tasks_of(&mut self, id: &Name) {
        if !self.runs.get(id).is_some_and(|hosted| hosted.run.status().is_end()) {
            return;
        }
        let of_run = self.tasks.range((id.clone(), TokenId(0), 0)..).take_while(|((run, ..), _)| run == id);
        let silent = of_run.filter(|(_, out)| !out.reported && !out.lost && out.due.is_none());
        let silent: Vec<TaskKey> = silent.map(|(key, _)| key.clone()).collect();
        let setting = self.setting.clone();
        for task in &silent {
            self.tasks.get_mut(task).expect("it was just found").lost = true;
            match self.host.lose(&mut self.runs, LostTask { setting: &setting, task }) {
                Ok(handled) => self.follow(handled),
                Err(why) => self.violations.push(format!("{id} cannot do without a report: {why}")),
            }
        }
    }

    /// Gates are shown to whoever answers.
    pub(super) fn open_gates(&mut self, id: &Name, events: &[Event]) {
        for event in events {
            if let EventKind::GateOpened { gate, .. } = event.kind {
                self.open_gate(id, gate);
            }
        }
    }

    fn open_gate(&mut self, id: &Name, gate: GateId) {
        let setting = self.setting.clone();
        let hosted = &self.runs[id];
        // A gate may close in the step that opened it.
        let Some((_, open)) = hosted.run.gates().find(|(open, _)| *open == gate) else { return };
        let route = hosted.names.gate_token(gate).map(|token| self.route(id, token));
        let asked = GateRequest { run: id, gate, route: route.as_deref(), record: &open.record };
        for given in setting.outcomes.gate_answers(&asked) {
            let what =
                OutsideInput::Answer { gate: GateFilter::default(), answer: given.answer, by: given.by };
            self.enqueue(given.after_ms, QueueItem::Outside { run: id.clone(), what, gate: Some(gate) });
        }
    }

    fn order_child(&mut self, parent: &Name, order: ChildOrder) {
        let (token, attempt) = (order.token, order.attempt);
        let is_its_report = |lost: &QueueItem| match lost {
            QueueItem::ChildReport { parent: to, token: t, attempt: a, .. } => {
                (to, *t, *a) == (parent, token, attempt)
            }
            _ => false,
        };
        if self.recover(is_its_report) {
            return;
        }
        if let Some(known) = self.runs.get_mut(&order.child) {
            // Asked for again after a crash: what it has to say may have been lost with the host.
            known.end_reported = false;
            let child = order.child.clone();
            self.report_end(&child);
            return;
        }
        let answer = self.setting.outcomes.child(&self.route(parent, token), &order);
        if let Some(ChildAnswer { outcome, delay_ms, spend }) = answer {
            let parent = parent.clone();
            let report = QueueItem::ChildReport { parent, token, attempt, outcome, spend };
            return self.enqueue(delay_ms, report);
        }
        let (child, workflow) = (order.child.clone(), order.workflow.clone());
        let start = Box::new(child_start(&self.runs[parent].run, order));
        self.enqueue(0, QueueItem::StartChild { child, workflow, start });
    }

    pub(super) fn start_child(&mut self, child: Name, workflow: &Name, start: StartRun) {
        let Some(parent) = start.parent.clone() else { return };
        let back = (parent.run, parent.token, parent.attempt);
        let library = &self.setting.library;
        let Some(graph) = library.get(workflow).map(|definition| definition.graph.clone()) else {
            let known: Vec<&str> = library.keys().map(|name| &**name).collect();
            let failure = child_unknown(workflow, &known);
            return self.report_child(back, ChildOutcome::Failed { failure }, Default::default());
        };
        self.runs.insert(child.clone(), Hosted::new(graph, Some(back.clone())));
        // One that is refused never was: its parent tells why.
        if let Err(why) = self.deliver(&child, Input::StartRun(Box::new(start)), true) {
            self.runs.remove(&child);
            let failure = child_refused(workflow, &why);
            self.report_child(back, ChildOutcome::Failed { failure }, Default::default());
        }
    }

    fn report_child(
        &mut self,
        (parent, token, attempt): (Name, TokenId, u32),
        outcome: ChildOutcome,
        spend: wonder_core::cost::Spend,
    ) {
        self.enqueue(0, QueueItem::ChildReport { parent, token, attempt, outcome, spend });
    }

    fn tell_child(&mut self, child: Name, input: Input) {
        if let Input::Cancel { .. } = input {
            self.recover_child(&child);
            let again = |queued: &QueueItem| match queued {
                QueueItem::TellChild { child: told, input: Input::Cancel { .. } } => *told == child,
                _ => false,
            };
            if self.queue.values().any(again) {
                return;
            }
        }
        self.enqueue(0, QueueItem::TellChild { child, input });
    }

    /// A child that has ended tells its parent, once, and not before its own tasks have stopped: what was
    /// called back may still cost.
    pub(super) fn report_end(&mut self, id: &Name) {
        if self.has_tasks_of(id) {
            return;
        }
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let Some(outcome) = hosted.run.outcome().filter(|_| !hosted.end_reported) else { return };
        hosted.end_reported = true;
        let Some(parent) = hosted.parent.clone() else { return };
        let spend = hosted.run.spend().clone();
        self.report_child(parent, outcome, spend);
    }

    /// Whether a report of one of its tasks is still to come.
    fn has_tasks_of(&self, id: &Name) -> bool {
        let mut tasks =
            self.tasks.range((id.clone(), TokenId(0), 0)..).take_while(|((run, ..), _)| run == id);
        tasks.any(|(_, out)| !out.reported && out.due.is_some())
    }
}
