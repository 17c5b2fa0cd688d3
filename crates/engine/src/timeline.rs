//! A run as its events tell it: every visit of every node with its moves, attempts and cost, what the run
//! changed in how it goes on, what became of its budget.
//!
//! A fold over events, for whoever shows a run: the live tree, `show`, `cost`, the timeline. The run itself
//! forgets what has ended; this remembers it. It decides nothing and is stored nowhere.

mod group;
mod token;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

use visit::Now;
pub use visit::{Attempt, Move, Visit};
use wonder_core::command::Overrides;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Name;
use wonder_core::event::{
    BranchRef, Event, EventKind, GateId, GateKind, GroupId, PauseReason, Report, RunChange, TokenId,
};
use wonder_core::{RunStatus, Time, TokenStatus, Value};

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub seq: u64,
    pub workflow: Option<Name>,
    pub status: RunStatus,
    pub started_at: Time,
    pub last_at: Time,
    pub ended_at: Option<Time>,
    pub visits: BTreeMap<TokenId, Visit>,
    pub groups: BTreeMap<GroupId, GroupView>,
    pub gates: BTreeMap<GateId, OpenGate>,
    /// As the run itself sums it: of its own attempts, and of child runs as far as they have told.
    pub spend: Spend,
    /// Of that, what was copied from the run it was forked from, and was counted there.
    pub copied: Spend,
    pub mutations: Vec<Mutated>,
    /// What a parent run lets it spend.
    pub allowance: Option<Allowance>,
    /// What became of its budget and of those of its nodes.
    pub budget: Vec<BudgetNews>,
    pauses: BTreeSet<PauseReason>,
    /// Who waits at which fan-in.
    waiting: BTreeMap<GroupId, Vec<TokenId>>,
    /// Ended tokens that a retry of the run puts back.
    kept: BTreeSet<TokenId>,
}

/// One firing of a fan-out.
#[derive(Clone, Debug)]
pub struct GroupView {
    pub node: Name,
    pub origin: TokenId,
    pub outer: Option<BranchRef>,
    pub total: u32,
    pub arrived: u32,
    pub joins_at: Option<Name>,
    pub items: Value,
    pub closed: bool,
}

#[derive(Clone, Debug)]
pub struct OpenGate {
    pub kind: GateKind,
    pub title: String,
    pub token: Option<TokenId>,
    pub opened_at: Time,
}

/// A change to how the run goes on.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct BudgetNews {
    pub seq: u64,
    pub at: Time,
    /// A node's own; else the run's.
    pub node: Option<Name>,
    pub what: BudgetChange,
}

#[derive(Clone, Debug)]
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
        let now = Now { seq: event.seq, at: event.at };
        let kind = &event.kind;
        let known = self.learn_of_run(kind, now)
            || self.learn_of_group(kind, now)
            || self.learn_of_gate(kind, now)
            || self.learn_of_budget(kind, now);
        if !known {
            self.learn_of_token(kind, now);
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

    fn learn_of_run(&mut self, kind: &EventKind, now: Now) -> bool {
        match kind {
            EventKind::RunQueued { workflow, start, .. } => {
                (self.workflow, self.started_at) = (Some(workflow.clone()), now.at);
                self.allowance = start.allowance;
            }
            EventKind::RunStarted { workflow, start, .. } => {
                (self.workflow, self.started_at) = (Some(workflow.clone()), now.at);
                (self.status, self.allowance) = (RunStatus::Running, start.allowance);
            }
            EventKind::RunReleased => (self.status, self.started_at) = (RunStatus::Running, now.at),
            EventKind::RunPaused { reason, .. } => {
                self.pauses.insert(*reason);
                self.status = RunStatus::Paused;
            }
            EventKind::RunResumed { reason, .. } => {
                self.pauses.remove(reason);
                if self.pauses.is_empty() {
                    self.status = RunStatus::Running;
                }
            }
            EventKind::RunCancelling { .. } => {
                self.status = RunStatus::Cancelling;
                // What is out has a grace.
                self.close(TokenStatus::Cancelled, now, |visit| !visit.is_out());
            }
            EventKind::RunCompleted { .. } => self.end(RunStatus::Completed, TokenStatus::Cancelled, now),
            EventKind::RunFailed { .. } => self.end(RunStatus::Failed, TokenStatus::Cancelled, now),
            EventKind::RunCancelled { .. } => self.end(RunStatus::Cancelled, TokenStatus::Cancelled, now),
            EventKind::RunTimedOut { .. } => self.end(RunStatus::TimedOut, TokenStatus::TimedOut, now),
            EventKind::RunRetried { .. } => self.reopen(now),
            EventKind::RunForked { .. } => self.forked(now),
            EventKind::RunMutated { token, reason, what } => {
                let (token, reason, what) = (*token, reason.clone(), what.clone());
                let mutated = Mutated { seq: now.seq, at: now.at, token, reason, what, overrides: None };
                self.mutations.push(mutated);
            }
            _ => return false,
        }
        true
    }

    fn end(&mut self, status: RunStatus, tokens: TokenStatus, now: Now) {
        (self.status, self.ended_at) = (status, Some(now.at));
        self.close(tokens, now, |_| true);
        self.gates.clear();
        self.pauses.clear();
    }

    /// Ends tokens with the run; a retry puts them back.
    fn close(&mut self, status: TokenStatus, now: Now, which: impl Fn(&Visit) -> bool) {
        let live = |visit: &&mut Visit| !visit.place().is_end();
        for visit in self.visits.values_mut().filter(live).filter(|visit| which(visit)) {
            let status = if visit.straggler { TokenStatus::Cancelled } else { status };
            if !visit.straggler {
                self.kept.insert(visit.token);
            }
            // Work that has arrived at a fan-in was done.
            match visit.ended_at {
                Some(_) => visit.moved(status, now),
                None => visit.to(status, now),
            };
        }
    }

    /// What a retry is to mend is open again, and so are the groups around it.
    fn reopen(&mut self, now: Now) {
        (self.status, self.ended_at) = (RunStatus::Running, None);
        for token in std::mem::take(&mut self.kept) {
            let Some(visit) = self.visits.get_mut(&token) else { continue };
            let (mut next, at) = (visit.branch, visit.at);
            match at {
                Some(group) => {
                    visit.to(TokenStatus::WaitingForSiblings, now);
                    self.waiting.entry(group).or_default().push(token);
                    next = self.groups.get_mut(&group).and_then(|view| {
                        view.closed = false;
                        view.outer
                    });
                }
                None => {
                    visit.to(TokenStatus::Pending, now);
                }
            }
            while let Some(view) = next.and_then(|branch| self.groups.get_mut(&branch.group)) {
                view.closed = false;
                next = view.outer;
            }
        }
    }

    /// What was out in the other run and is not wanted here will never report.
    fn forked(&mut self, now: Now) {
        self.copied = self.spend.clone();
        for visit in self.visits.values_mut() {
            let awaits =
                matches!(visit.place(), TokenStatus::Dispatched | TokenStatus::WaitingForSubworkflow);
            let current = visit.attempts;
            let unwanted =
                |attempt: &&mut Attempt| attempt.ended_at.is_none() && !(awaits && attempt.number == current);
            visit.history.iter_mut().filter(unwanted).for_each(|attempt| attempt.ended_at = Some(now.at));
        }
    }

    fn learn_of_budget(&mut self, kind: &EventKind, now: Now) -> bool {
        let (node, what) = match kind {
            EventKind::BudgetWarning { node, spent } => (node, BudgetChange::Warned { spent: spent.clone() }),
            EventKind::BudgetExceeded { node, message, .. } => {
                (node, BudgetChange::Exceeded { message: message.clone() })
            }
            EventKind::BudgetRaised { usd_micros, tokens, calls, of_parent: true, .. } => {
                let by = Allowance { usd_micros: *usd_micros, tokens: *tokens, calls: *calls };
                self.allowance.as_mut().into_iter().for_each(|allowed| allowed.add(&by));
                return true;
            }
            EventKind::BudgetRaised { node, usd_micros, whole, .. } => {
                (node, BudgetChange::Raised { usd_micros: *usd_micros, whole: *whole })
            }
            _ => return false,
        };
        self.budget.push(BudgetNews { seq: now.seq, at: now.at, node: node.clone(), what });
        true
    }

    /// A report that came with an event; without a number it is on the attempt the token is at.
    fn reported(
        &mut self,
        token: TokenId,
        attempt: Option<u32>,
        report: Option<&Report>,
        now: Now,
    ) -> Option<&mut Visit> {
        if let Some(report) = report {
            self.spend.add(&report.spend);
        }
        let visit = self.visits.get_mut(&token)?;
        if let Some(report) = report {
            visit.reported(attempt.unwrap_or(visit.attempts), report, now.at);
        }
        Some(visit)
    }
}
