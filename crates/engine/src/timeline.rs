//! A run as its events tell it: every visit of every node with its moves, attempts and cost, what the run
//! changed in how it goes on, what became of its budget.
//!
//! A fold over events, for whoever shows a run: the live tree, `show`, `cost`, the timeline. The run itself
//! forgets what has ended; this remembers it. It decides nothing and is stored nowhere.

mod axis;
mod gate;
mod group;
mod token;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

pub use axis::Axis;
pub use gate::{GateAnswer, GateEnd, GateHistory};
pub use group::GroupView;
use serde::Serialize;
use token::Done;
use visit::Now;
pub use visit::{Attempt, FailedStep, Move, Visit};
use wonder_core::command::Overrides;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Name;
use wonder_core::event::{
    BranchRef, Event, EventKind, EventWait, GateId, GroupId, PauseReason, Report, RunChange, TakenPart,
    TokenId,
};
use wonder_core::input::StartRun;
use wonder_core::state::{Metrics, Raised};
use wonder_core::value::Value;
use wonder_core::{RunStatus, Time, TokenStatus};

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub seq: u64,
    pub workflow: Option<Name>,
    pub status: RunStatus,
    pub started_at: Time,
    pub last_at: Time,
    pub ended_at: Option<Time>,
    /// When it was forked from another run; what came before was copied.
    pub forked_at: Option<Time>,
    pub visits: BTreeMap<TokenId, Visit>,
    pub groups: BTreeMap<GroupId, GroupView>,
    /// Every gate that was ever opened.
    pub gates: BTreeMap<GateId, GateHistory>,
    /// As the run itself sums it: of its own attempts, and of child runs as far as they have told.
    pub spend: Spend,
    /// Of that, what was copied from the run it was forked from, and was counted there.
    pub copied: Spend,
    pub metrics: Metrics,
    pub mutations: Vec<Mutated>,
    /// What a parent run lets it spend.
    pub allowance: Option<Allowance>,
    /// What became of its budget and of those of its nodes.
    pub budget: Vec<BudgetEvent>,
    /// How its own budget stands.
    pub run_budget: BudgetState,
    /// How the budgets of its nodes stand, by ref, as far as something happened to them.
    pub node_budgets: BTreeMap<Name, BudgetState>,
    pauses: BTreeSet<PauseReason>,
    /// Ended tokens that a retry of the run puts back.
    kept: BTreeSet<TokenId>,
    /// From each end to the retry after it.
    closed: Vec<(Time, Time)>,
    /// How often each node was visited so far in each branch.
    turns: BTreeMap<(Name, Option<BranchRef>), u32>,
}

/// A change to how the run goes on.
#[derive(Clone, Debug, Serialize)]
pub struct Mutated {
    pub seq: u64,
    pub at: Time,
    /// Whose failure or result led to it.
    pub token: Option<TokenId>,
    pub reason: String,
    pub what: RunChange,
    /// What the next attempt of the token is given instead of what is written.
    pub overrides: Option<Overrides>,
}

/// Something that happened to a budget.
#[derive(Clone, Debug, Serialize)]
pub struct BudgetEvent {
    pub seq: u64,
    pub at: Time,
    /// A node's own; else the run's.
    pub node: Option<Name>,
    pub what: BudgetChange,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetChange {
    Warned {
        spent: Spend,
    },
    Exceeded {
        message: String,
    },
    /// `whole`: every bound by what was written, not only the dollars.
    Raised {
        usd_micros: u64,
        whole: bool,
    },
}

/// How a budget stands: what people added to it, and whether its warning is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BudgetState {
    pub raised: Raised,
    pub warned: bool,
}

impl Timeline {
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Timeline {
        let mut timeline = Timeline::default();
        events.into_iter().for_each(|event| timeline.learn(event));
        timeline
    }

    /// The next event. One that is known already changes nothing.
    pub fn learn(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        (self.seq, self.last_at) = (event.seq, event.at);
        self.apply(&event.kind, Now { seq: event.seq, at: event.at });
    }

    /// One kind, one meaning: a flat table, so that a new kind cannot be forgotten here.
    fn apply(&mut self, kind: &EventKind, now: Now) {
        match kind {
            EventKind::RunQueued { workflow, start, .. } => self.queued(workflow, start, now),
            EventKind::RunStarted { workflow, start, .. } => {
                self.queued(workflow, start, now);
                self.status = RunStatus::Running;
            }
            EventKind::RunReleased => (self.status, self.started_at) = (RunStatus::Running, now.at),
            EventKind::TokenCreated(new) => self.token_created(new, now),
            EventKind::TaskDispatched { token, attempt, reserved, input, taken, .. } => {
                self.dispatched(*token, *attempt, *reserved, shown_input(input, taken), now);
            }
            EventKind::TaskRetrying(new) => self.retrying(new, now),
            EventKind::TaskCompleted { token, result, then, report, .. } => {
                let done = Done { result, then: *then, skipped: false, failure: None };
                self.work_done(*token, &done, report.as_ref(), now);
            }
            EventKind::TokenSkipped { token, output, then, failure, report, .. } => {
                let done = Done { result: output, then: *then, skipped: true, failure: failure.as_ref() };
                self.work_done(*token, &done, report.as_ref(), now);
            }
            EventKind::StepFailed { token, attempt, step, failure } => {
                self.step_failed(*token, *attempt, step, failure, now);
            }
            EventKind::TaskFailed { .. } => self.task_failed(kind, now),
            EventKind::TokenCancelled { token, reason, report } => {
                self.token_cancelled(*token, *reason, report.as_ref(), now);
            }
            EventKind::TokenAbandoned { token, .. } => self.token_abandoned(*token),
            EventKind::TokenTimedOut { token, ends, .. } => self.token_timed_out(*token, *ends, now),
            EventKind::LateReport { token, attempt, report } => self.reported(*token, *attempt, report, now),
            EventKind::SleepStarted { token, until, .. } => self.sleep_started(*token, *until, now),
            EventKind::EventAwaited(EventWait { token, .. }) => self.event_awaited(*token, now),
            EventKind::FanOut(new) => self.fanned_out(new),
            EventKind::BranchArrived { token, group, branch, within } => {
                self.branch_arrived(*token, BranchRef { group: *group, branch: *branch }, *within, now);
            }
            EventKind::FanIn { group, .. } => self.fanned_in(*group, now),
            EventKind::FanInFailed { group, handled, .. } => self.fan_in_failed(*group, *handled, now),
            EventKind::GroupClosed { group, kept } => self.group_closed(*group, *kept),
            EventKind::GateOpened { gate, token, record, report, .. } => {
                self.gate_opened(*gate, *token, record, report.as_ref(), now);
            }
            EventKind::GateAnswered { gate, by, answer, closes } => {
                self.gate_answered(*gate, by, answer, *closes, now);
            }
            EventKind::GateClosed { gate, by } => self.gate_closed(*gate, by, now),
            EventKind::GateReminded { gate } => self.gate_reminded(*gate, now),
            EventKind::GateReassigned { gate, assignees } => self.gate_reassigned(*gate, assignees, now),
            EventKind::TokenReleased { token, resumed, .. } => self.token_released(*token, *resumed, now),
            EventKind::ChildStarted(new) => self.child_started(new, now),
            EventKind::ChildCompleted { token, attempt, spend, .. } => {
                self.reported(*token, *attempt, &Report { spend: spend.clone(), ..Report::default() }, now);
            }
            EventKind::RunMutated { token, reason, what } => self.mutated(*token, reason, what, now),
            EventKind::BudgetWarning { node, spent } => {
                self.budget_of(node.as_ref()).warned = true;
                self.budget_event(node.as_ref(), BudgetChange::Warned { spent: spent.clone() }, now);
            }
            EventKind::BudgetExceeded { node, message, .. } => {
                self.budget_event(node.as_ref(), BudgetChange::Exceeded { message: message.clone() }, now);
            }
            EventKind::BudgetRaised { .. } => self.budget_raised(kind, now),
            EventKind::RunPaused { reason, .. } => self.paused(*reason),
            EventKind::RunResumed { reason, .. } => self.resumed(*reason),
            EventKind::RunCancelling { .. } => {
                self.status = RunStatus::Cancelling;
                self.pauses.clear();
                // What is out has a grace.
                self.close(TokenStatus::Cancelled, now, |visit| !visit.is_out());
            }
            EventKind::RunCompleted { .. } => self.end(RunStatus::Completed, TokenStatus::Cancelled, now),
            EventKind::RunFailed { .. } => self.end(RunStatus::Failed, TokenStatus::Cancelled, now),
            EventKind::RunCancelled { .. } => self.end(RunStatus::Cancelled, TokenStatus::Cancelled, now),
            EventKind::RunTimedOut { .. } => self.end(RunStatus::TimedOut, TokenStatus::TimedOut, now),
            EventKind::RunRetried { .. } => self.reopen(now),
            EventKind::RunForked(new) => self.forked(&new.run, now),
            // They change what a run reads, waits for or is warned of, and nothing that is shown here.
            EventKind::RunYielded
            | EventKind::RunContinued
            | EventKind::TimeoutWarning { .. }
            | EventKind::ContextUpdated { .. }
            | EventKind::EventReceived { .. }
            | EventKind::EventTaken { .. }
            | EventKind::WorkflowExtended { .. } => {}
        }
    }

    /// What is reserved for tasks and child runs that are out.
    pub fn reserved(&self) -> Allowance {
        self.reserved_by(|_| true)
    }

    /// The same, of some visits.
    pub fn reserved_by(&self, which: impl Fn(&Visit) -> bool) -> Allowance {
        let mut all = Allowance::default();
        let attempts = self.visits.values().filter(|visit| which(visit)).flat_map(|visit| &visit.history);
        attempts.filter(|attempt| attempt.ended_at.is_none()).for_each(|out| all.add(&out.reserved));
        all
    }

    /// Ended visits that a retry of the run would open again.
    pub fn reopenable(&self) -> &BTreeSet<TokenId> {
        &self.kept
    }

    /// Why it stands still; empty unless it is paused.
    pub fn pauses(&self) -> &BTreeSet<PauseReason> {
        &self.pauses
    }

    fn queued(&mut self, workflow: &Name, start: &StartRun, now: Now) {
        (self.workflow, self.started_at) = (Some(workflow.clone()), now.at);
        self.allowance = start.allowance;
    }

    fn paused(&mut self, reason: PauseReason) {
        self.pauses.insert(reason);
        if self.status == RunStatus::Running {
            self.status = RunStatus::Paused;
        }
    }

    fn resumed(&mut self, reason: PauseReason) {
        self.pauses.remove(&reason);
        if self.pauses.is_empty() && self.status == RunStatus::Paused {
            self.status = RunStatus::Running;
        }
    }

    fn end(&mut self, status: RunStatus, tokens: TokenStatus, now: Now) {
        (self.status, self.ended_at) = (status, Some(now.at));
        self.close(tokens, now, |_| true);
        self.pauses.clear();
    }

    /// Ends tokens with the run; a retry puts them back.
    fn close(&mut self, status: TokenStatus, now: Now, which: impl Fn(&Visit) -> bool) {
        let mut kept = Vec::new();
        let live = |visit: &&mut Visit| !visit.place().is_end();
        for visit in self.visits.values_mut().filter(live).filter(|visit| which(visit)) {
            let status = if visit.straggler { TokenStatus::Cancelled } else { status };
            if !visit.straggler {
                kept.push(visit.token);
            }
            // Work that has arrived at a fan-in was done.
            match visit.ended_at {
                Some(_) => visit.moved(status, now),
                None => visit.to(status, now),
            };
        }
        for token in kept {
            if let Some(group) = self.visits.get(&token).and_then(|visit| visit.at) {
                self.leave_fan_in(group, token);
            }
            self.keep(token);
        }
    }

    /// What a retry is to mend is open again, and so are the groups around it.
    fn reopen(&mut self, now: Now) {
        self.closed.extend(self.ended_at.map(|ended_at| (ended_at, now.at)));
        (self.status, self.ended_at) = (RunStatus::Running, None);
        for token in std::mem::take(&mut self.kept) {
            self.reopen_visit(token, now);
        }
    }

    fn mutated(&mut self, token: Option<TokenId>, reason: &str, what: &RunChange, now: Now) {
        self.metrics.mutations_applied += 1;
        let (reason, what) = (reason.to_owned(), what.clone());
        self.mutations.push(Mutated { seq: now.seq, at: now.at, token, reason, what, overrides: None });
    }

    fn budget_of(&mut self, node: Option<&Name>) -> &mut BudgetState {
        match node {
            None => &mut self.run_budget,
            Some(node) => self.node_budgets.entry(node.clone()).or_default(),
        }
    }

    fn budget_event(&mut self, node: Option<&Name>, what: BudgetChange, now: Now) {
        self.budget.push(BudgetEvent { seq: now.seq, at: now.at, node: node.cloned(), what });
    }

    fn budget_raised(&mut self, kind: &EventKind, now: Now) {
        let EventKind::BudgetRaised { node, usd_micros, tokens, calls, whole, of_parent } = kind else {
            unreachable!("called with a budget_raised only");
        };
        if *of_parent {
            let by = Allowance { usd_micros: *usd_micros, tokens: *tokens, calls: *calls };
            self.allowance.as_mut().into_iter().for_each(|allowed| allowed.add(&by));
            return;
        }
        let state = self.budget_of(node.as_ref());
        state.warned = false;
        state.raised.usd_micros = state.raised.usd_micros.saturating_add(*usd_micros);
        state.raised.tokens = state.raised.tokens.saturating_add(*tokens);
        state.raised.calls = state.raised.calls.saturating_add(*calls);
        state.raised.times += u64::from(*whole);
        let what = BudgetChange::Raised { usd_micros: *usd_micros, whole: *whole };
        self.budget_event(node.as_ref(), what, now);
    }
}

/// An input for people: what was taken from the context says from where.
fn shown_input(input: &Value, taken: &[TakenPart]) -> Value {
    let mut shown = input.clone();
    for part in taken {
        shown.set_path(&part.at, Value::map([("$from", Value::from(part.from.join(".")))]));
    }
    shown
}
