//! Tokens and their attempts as events tell of them.

use wonder_core::command::Overrides;
use wonder_core::cost::Allowance;
use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::event::{
    BranchRef, CancelReason, EventKind, NewChild, NewToken, Report, TaskRetry, Then, TokenId,
};
use wonder_core::{Time, TokenStatus, Value, child_id};

use super::Timeline;
use super::visit::{Attempt, FailedStep, Now, Visit};

/// What a token's work came to: completed or skipped.
pub(super) struct Done<'e> {
    pub(super) result: &'e Value,
    pub(super) then: Then,
    pub(super) skipped: bool,
    pub(super) failure: Option<&'e Failure>,
}

impl Timeline {
    pub(super) fn token_created(&mut self, new: &NewToken, now: Now) {
        let NewToken { token, node, parent, via, branch, .. } = new;
        let turn = self.turns.entry((node.clone(), *branch)).or_default();
        *turn += 1;
        let visit = Visit::new(*token, node.clone(), *parent, now);
        self.visits.insert(*token, Visit { branch: *branch, via: via.clone(), turn: *turn, ..visit });
        if let Some(at) = branch {
            self.join_branch(*at, *token);
        }
    }

    pub(super) fn dispatched(
        &mut self,
        token: TokenId,
        attempt: u32,
        reserved: Allowance,
        input: Value,
        now: Now,
    ) {
        let Some(visit) = self.visits.get_mut(&token) else { return };
        let attempt = Attempt { input, ..Attempt::new(attempt, reserved, None, now) };
        visit.goes_out(attempt, TokenStatus::Dispatched, now);
    }

    pub(super) fn retrying(&mut self, new: &TaskRetry, now: Now) {
        let TaskRetry { token, failure, wake_at, overrides, report, .. } = new;
        self.metrics.retries += 1;
        self.overridden(*token, overrides);
        self.reported_now(*token, report.as_ref(), now);
        let Some(visit) = self.visits.get_mut(token) else { return };
        visit.wakes_at = Some(*wake_at);
        visit.broke(TokenStatus::Retrying, Some(failure), now).wakes_at = Some(*wake_at);
    }

    /// A change is recorded just before the attempt that it is for.
    fn overridden(&mut self, token: TokenId, overrides: &Overrides) {
        let last = self.mutations.last_mut().filter(|last| last.token == Some(token));
        let last = last.filter(|last| last.overrides.is_none() && *overrides != Overrides::default());
        if let Some(last) = last {
            last.overrides = Some(overrides.clone());
        }
    }

    pub(super) fn work_done(&mut self, token: TokenId, done: &Done<'_>, report: Option<&Report>, now: Now) {
        self.reported_now(token, report, now);
        match done.skipped {
            true => self.metrics.nodes_skipped += 1,
            false => self.metrics.nodes_completed += 1,
        }
        let Some(visit) = self.visits.get_mut(&token) else { return };
        visit.result = done.result.clone();
        let branch = visit.current_branch();
        match done.then {
            Then::Arrives(group) if !done.skipped => self.wait_for_siblings(token, group, now),
            _ if done.skipped => drop(visit.broke(TokenStatus::Skipped, done.failure, now)),
            _ => drop(visit.to(TokenStatus::Completed, now)),
        }
        self.leave_branch(branch, token);
        if done.then == Then::Ends {
            self.settle_branch(branch);
        }
    }

    pub(super) fn step_failed(
        &mut self,
        token: TokenId,
        attempt: u32,
        step: &Name,
        failure: &Failure,
        now: Now,
    ) {
        if let Some(visit) = self.visits.get_mut(&token) {
            let (step, failure) = (step.clone(), failure.to_string());
            visit.steps_failed.push(FailedStep { at: now.at, attempt, step, failure });
        }
    }

    /// `handled`: a failure transition goes on; else the branch or the run will have to judge.
    pub(super) fn task_failed(&mut self, kind: &EventKind, now: Now) {
        let EventKind::TaskFailed { token, failure, timed_out, handled, report } = kind else {
            unreachable!("called with a task_failed only");
        };
        self.reported_now(*token, report.as_ref(), now);
        self.metrics.nodes_failed += 1;
        let Some(visit) = self.visits.get_mut(token) else { return };
        let end = if *timed_out { TokenStatus::TimedOut } else { TokenStatus::Failed };
        visit.broke(end, Some(failure), now);
        let branch = visit.current_branch();
        if !handled {
            self.keep(*token);
        }
        self.leave_branch(branch, *token);
        if !handled && self.judged_branch(branch).is_some() {
            self.fail_branch(branch);
            self.settle_branch(branch);
        }
    }

    pub(super) fn token_cancelled(
        &mut self,
        token: TokenId,
        reason: CancelReason,
        report: Option<&Report>,
        now: Now,
    ) {
        self.reported_now(token, report, now);
        let wanted = matches!(reason, CancelReason::BranchFailed | CancelReason::RunCancelled);
        let leaves = reason != CancelReason::RunCancelled;
        let keep = wanted && self.visits.get(&token).is_some_and(|visit| !visit.straggler);
        self.end_visit(token, TokenStatus::Cancelled, keep, now);
        if let Some(branch) = self.ended_in(token).filter(|_| leaves) {
            self.leave_branch(Some(branch), token);
            self.settle_branch(Some(branch));
        }
    }

    /// A deadline passed; what becomes of the token is told by another event, unless `ends`.
    pub(super) fn token_timed_out(&mut self, token: Option<TokenId>, ends: bool, now: Now) {
        let Some(token) = token.filter(|_| ends) else { return };
        self.end_visit(token, TokenStatus::TimedOut, true, now);
        if let Some(branch) = self.ended_in(token) {
            self.leave_branch(Some(branch), token);
            self.settle_branch(Some(branch));
        }
    }

    /// Ends a visit as an event says.
    fn end_visit(&mut self, token: TokenId, status: TokenStatus, keep: bool, now: Now) {
        let Some(visit) = self.visits.get_mut(&token) else { return };
        visit.to(status, now);
        let at = visit.at;
        if let Some(group) = at {
            self.leave_fan_in(group, token);
        }
        if keep {
            self.keep(token);
        }
    }

    /// The branch that a token which has just ended was in, unless it had come to the branch's fan-in.
    fn ended_in(&self, token: TokenId) -> Option<BranchRef> {
        self.visits.get(&token).filter(|visit| visit.at.is_none()).and_then(Visit::current_branch)
    }

    pub(super) fn token_abandoned(&mut self, token: TokenId) {
        let Some(visit) = self.visits.get_mut(&token) else { return };
        let branch = visit.current_branch();
        visit.straggler = true;
        self.leave_branch(branch, token);
    }

    pub(super) fn token_released(&mut self, token: TokenId, resumed: bool, now: Now) {
        if let Some(visit) = self.visits.get_mut(&token) {
            visit.to(if resumed { TokenStatus::Dispatched } else { TokenStatus::Pending }, now);
        }
    }

    pub(super) fn sleep_started(&mut self, token: TokenId, until: Time, now: Now) {
        if let Some(visit) = self.visits.get_mut(&token) {
            visit.wakes_at = Some(until);
            visit.to(TokenStatus::Sleeping, now).wakes_at = Some(until);
        }
    }

    pub(super) fn event_awaited(&mut self, token: TokenId, now: Now) {
        if let Some(visit) = self.visits.get_mut(&token) {
            visit.to(TokenStatus::WaitingForEvent, now);
        }
    }

    pub(super) fn child_started(&mut self, new: &NewChild, now: Now) {
        let NewChild { token, attempt, child, allowance, input, .. } = new;
        let Some(visit) = self.visits.get_mut(token) else { return };
        visit.child = Some(child.clone());
        let reserved = allowance.unwrap_or_default();
        let attempt = Attempt::new(*attempt, reserved, Some(child.clone()), now);
        let attempt = Attempt { input: input.clone(), ..attempt };
        visit.goes_out(attempt, TokenStatus::WaitingForSubworkflow, now);
    }

    /// A report on the attempt that the token is at.
    pub(super) fn reported_now(&mut self, token: TokenId, report: Option<&Report>, now: Now) {
        let Some(report) = report else { return };
        let attempt = self.visits.get(&token).map_or(0, |visit| visit.attempts);
        self.reported(token, attempt, report, now);
    }

    /// A report: what was out is back, and what it cost is known. One that nobody waits for changes nothing.
    pub(super) fn reported(&mut self, token: TokenId, attempt: u32, report: &Report, now: Now) {
        let Some(visit) = self.visits.get_mut(&token) else { return };
        if visit.reported(attempt, report, now.at) {
            self.spend.add(&report.spend);
        }
    }

    /// What was out in the run that this is a copy of is out again under this run's name if it is still
    /// wanted; of the rest nobody will ever report here.
    pub(super) fn forked(&mut self, run: &Name, now: Now) {
        self.copied = self.spend.clone();
        self.forked_at = Some(now.at);
        for gate in self.gates.values_mut().filter(|gate| gate.is_open()) {
            gate.restart(now.at);
        }
        for visit in self.visits.values_mut() {
            let awaits =
                matches!(visit.place(), TokenStatus::Dispatched | TokenStatus::WaitingForSubworkflow);
            let (token, current) = (visit.token, visit.attempts);
            for attempt in visit.history.iter_mut().filter(|attempt| attempt.ended_at.is_none()) {
                if !(awaits && attempt.number == current) {
                    attempt.ended_at = Some(now.at);
                } else if attempt.child.is_some() {
                    let name = child_id(run, token, current);
                    attempt.child = Some(name.clone());
                    visit.child = Some(name);
                }
            }
        }
    }
}
