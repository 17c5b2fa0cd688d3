//! Tokens: made, moved, ended.

use crate::command::Overrides;
use crate::cost::Allowance;
use crate::def::Name;
use crate::error::Failure;
use crate::event::{CancelReason, NewToken, Patch, Report, TakenPart, TaskRetry, Then, TokenId};
use crate::expr::Scope;
use crate::graph::{NodeIx, Perform};
use crate::lifecycle::{TokenStatus, is_legal};
use crate::run::{Move, Run};
use crate::scope::View;
use crate::state::{Out, Place, Straggler, Timer, Token};
use crate::value::Value;

/// What a token's work came to.
pub(super) struct Done<'a> {
    pub(super) result: &'a Value,
    pub(super) patches: &'a [Patch],
    pub(super) then: Then,
    pub(super) unmapped: bool,
    pub(super) skipped: bool,
}

impl Run {
    pub(super) fn token_created(&mut self, new: &NewToken) {
        let NewToken { token, node, parent, via, branch, counts, last_error, feedback, carried } = new;
        let node = self.graph.find_node(node).expect("a token is created at a node of the graph");
        let id = *token;
        self.state.tokens_minted = self.state.tokens_minted.max(id.0);
        self.state.token_counts.live += 1;
        let token = Token {
            id,
            node: node.0,
            parent: *parent,
            via: via.clone(),
            branch: *branch,
            counts: counts.clone(),
            last_error: last_error.clone(),
            feedback: feedback.clone(),
            carried: carried.clone(),
            attempt: 0,
            generation: 0,
            tries: 0,
            overrides: Overrides::default(),
            answered: Default::default(),
            straggler: None,
            created_at: self.state.now,
            place: Place::Pending,
        };
        self.state.tokens.insert(id, token);
        self.line_up(id, node);
        if let Some(at) = branch {
            self.join_branch(*at, id);
        }
        if let Some(unit) = self.graph.node(node).unit.filter(|unit| self.graph.unit(*unit).head == node) {
            self.state.units[unit.0 as usize].status = crate::state::UnitStatus::Started;
        }
    }

    /// Puts a pending token where the pump will find it.
    fn line_up(&mut self, id: TokenId, node: NodeIx) {
        let performed = self.graph.node(node);
        if matches!(performed.perform, Perform::Worker(_)) {
            let rank = self.rank(node);
            self.state.ready.insert((rank, id));
        } else if performed.calls_workflow() {
            self.state.calling.insert(id);
        } else {
            self.state.entering.insert(id);
        }
    }

    fn rank(&self, node: NodeIx) -> u32 {
        self.state.ranks.get(node.0 as usize).copied().unwrap_or(0)
    }

    /// The one place where a token moves. Keeps everything that follows from where tokens are.
    pub(super) fn place(&mut self, id: TokenId, place: Place) {
        let token = self.state.tokens.get_mut(&id).expect("only tokens that exist move");
        let node = NodeIx(token.node);
        let from = token.status();
        let counted = token.straggler.is_none();
        let old = std::mem::replace(&mut token.place, place);
        let to = token.status();
        assert!(is_legal(from, to), "token {id} cannot move from {from} to {to}");
        self.moves.push(Move { token: id, from, to });
        match old {
            Place::Pending => {
                let rank = self.rank(node);
                if !self.state.ready.remove(&(rank, id)) && !self.state.calling.remove(&id) {
                    self.state.entering.remove(&id);
                }
            }
            Place::WaitingForSiblings { group } => {
                if let Some(group) = self.state.groups.get_mut(&group) {
                    group.waiting.remove(&id);
                }
            }
            _ => {
                if let Some(at) = old.deadline() {
                    self.state.timers.remove(&(at, Timer::Token(id)));
                }
            }
        }
        let place = &self.state.tokens[&id].place;
        if let Some(at) = place.deadline() {
            self.state.timers.insert((at, Timer::Token(id)));
        }
        match *place {
            Place::Pending => self.line_up(id, node),
            Place::WaitingForSiblings { group } => {
                self.state.groups.get_mut(&group).expect("a fan-in has its group").waiting.insert(id);
            }
            _ => {}
        }
        if counted {
            self.recount(from, to);
        }
    }

    fn recount(&mut self, from: TokenStatus, to: TokenStatus) {
        let counts = &mut self.state.token_counts;
        if from.is_idle() {
            counts.idle -= 1;
        }
        if to.is_idle() {
            counts.idle += 1;
        }
        if from == TokenStatus::WaitingForSiblings {
            counts.at_fan_ins -= 1;
        }
        if to == TokenStatus::WaitingForSiblings {
            counts.at_fan_ins += 1;
        }
        match (from.is_end(), to.is_end()) {
            (false, true) => counts.live -= 1,
            (true, false) => counts.live += 1,
            _ => {}
        }
    }

    pub(super) fn task_dispatched(
        &mut self,
        id: TokenId,
        attempt: u32,
        generation: u32,
        input: Value,
        reserved: Allowance,
    ) {
        self.place(id, Place::Dispatched { input });
        let token = self.state.tokens.get_mut(&id).expect("it was just placed");
        token.attempt = attempt;
        token.generation = generation;
        let node = token.node;
        let downgrades = self.state.downgrades;
        let wall_left_ms = self.wall_left_ms(node);
        self.goes_out(id, attempt, Out { node, reserved, child: None, downgrades, wall_left_ms });
    }

    /// The whole input of a task: what the event holds, and what it says to take from the context.
    pub(super) fn with_taken(&self, id: TokenId, input: &Value, taken: &[TakenPart]) -> Value {
        let mut input = input.clone();
        let view = View::of_token(&self.state, &self.graph, &self.state.tokens[&id]);
        for part in taken {
            let (root, path) = part.from.split_first().expect("a part is taken from somewhere");
            let value = view.read(root, path).expect("what is taken was there when it was recorded");
            input.set_path(&part.at, value);
        }
        input
    }

    fn wall_left_ms(&self, node: u32) -> Option<u64> {
        let node = &self.graph.nodes[node as usize];
        let wall = node.budget?.wall_ms?;
        let spent = self.state.node_spend.get(&node.reference)?;
        Some(wall.saturating_mul(spent.raised.times + 1).saturating_sub(spent.spend.duration_ms))
    }

    pub(super) fn goes_out(&mut self, id: TokenId, attempt: u32, out: Out) {
        self.state.reserved.add(&out.reserved);
        if let Some(spend) = self.state.node_spend.get_mut(&self.graph.nodes[out.node as usize].reference) {
            spend.reserved.add(&out.reserved);
        }
        if out.child.is_none() {
            self.state.token_counts.tasks_out += 1;
        }
        let before = self.state.out.insert((id, attempt), out);
        assert!(before.is_none(), "attempt {attempt} of token {id} is out already");
    }

    /// A report: what was out is back, and what it cost is known.
    pub(super) fn reported(&mut self, id: TokenId, attempt: u32, report: &Report) {
        let Some(out) = self.state.out.remove(&(id, attempt)) else { return };
        if out.child.is_none() {
            self.state.token_counts.tasks_out -= 1;
        }
        self.state.reserved.subtract(&out.reserved);
        self.state.spend.add(&report.spend);
        if let Some(token) = self.state.tokens.get_mut(&id).filter(|_| report.tries > 0) {
            token.tries += report.tries;
        }
        if let Some(spend) = self.state.node_spend.get_mut(&self.graph.nodes[out.node as usize].reference) {
            spend.reserved.subtract(&out.reserved);
            spend.spend.add(&report.spend);
        }
    }

    /// A report that came with the event is on the attempt the token is at.
    pub(super) fn maybe_reported(&mut self, id: TokenId, report: &Option<Report>) {
        if let Some(report) = report {
            self.reported(id, self.state.tokens[&id].attempt, report);
        }
    }

    pub(super) fn task_retrying(&mut self, new: &TaskRetry) {
        let TaskRetry { token: id, failure, wake_at, rule, generation, overrides, feedback, report } = new;
        self.maybe_reported(*id, report);
        self.place(*id, Place::Retrying { wake_at: *wake_at });
        self.state.metrics.retries += 1;
        let token = self.state.tokens.get_mut(id).expect("it was just placed");
        *token.answered.entry(*rule).or_insert(0) += 1;
        token.generation = *generation;
        token.overrides = overrides.clone();
        token.feedback = feedback.clone();
        token.last_error = Some(failure.clone());
    }

    /// Completed or skipped: the result, its writes, and where the token goes.
    pub(super) fn work_done(&mut self, id: TokenId, done: Done<'_>, report: &Option<Report>) {
        self.maybe_reported(id, report);
        let token = &self.state.tokens[&id];
        let (node, branch) = (NodeIx(token.node), token.branch);
        let reference = self.graph.node(node).reference.clone();
        self.patch(branch, done.patches, done.result);
        if let Some(at) = branch {
            self.keep_result(at, done.unmapped.then_some(&reference), done.result);
        }
        self.count_done(done.skipped);
        let end = if done.skipped { TokenStatus::Skipped } else { TokenStatus::Completed };
        match done.then {
            // It counts as come when `branch_arrived` says so, which follows.
            Then::Arrives(group) if !done.skipped => {
                self.place(id, Place::WaitingForSiblings { group });
                self.leave_branch(branch, id);
            }
            Then::Routes | Then::Arrives(_) => {
                self.end(id, end, false, None);
                self.leave_branch(branch, id);
            }
            Then::Ends => {
                self.end(id, end, false, None);
                self.leave_branch(branch, id);
                self.ended_terminally(branch, &reference, done.result);
                self.settle_branch(branch);
            }
        }
        self.unit_done(node, done.result, done.skipped);
    }

    fn count_done(&mut self, skipped: bool) {
        if skipped {
            self.state.metrics.nodes_skipped += 1;
        } else {
            self.state.metrics.nodes_completed += 1;
        }
    }

    /// `handled`: a failure transition goes on; else the branch or the run will have to judge.
    pub(super) fn task_failed(
        &mut self,
        id: TokenId,
        failure: &Failure,
        timed_out: bool,
        handled: bool,
        report: &Option<Report>,
    ) {
        self.maybe_reported(id, report);
        let (branch, node) = (self.state.tokens[&id].branch, NodeIx(self.state.tokens[&id].node));
        let end = if timed_out { TokenStatus::TimedOut } else { TokenStatus::Failed };
        self.state.metrics.nodes_failed += 1;
        self.end(id, end, !handled, Some(failure));
        self.leave_branch(branch, id);
        if handled {
            return;
        }
        // Without a fan-in to judge it the run fails, and leaves its branches as they are.
        if branch.is_some_and(|at| self.state.judged_branch(at).is_some()) {
            self.fail_branch(branch, failure);
            self.settle_branch(branch);
        } else {
            self.unit_failed(node, failure);
        }
    }

    pub(super) fn token_cancelled(&mut self, id: TokenId, reason: CancelReason, report: &Option<Report>) {
        self.maybe_reported(id, report);
        let token = &self.state.tokens[&id];
        let branch = token.branch;
        let keep = matches!(reason, CancelReason::BranchFailed | CancelReason::RunCancelled)
            && token.straggler.is_none();
        let at_fan_in = matches!(token.place, Place::WaitingForSiblings { .. });
        self.end(id, TokenStatus::Cancelled, keep, None);
        if let Some(token) = self.state.tokens.get_mut(&id)
            && let Place::Ended { reason: why, .. } = &mut token.place
        {
            *why = Some(reason);
        }
        // Operators' cancels leave branches as they are: a `retry` finds everything in place.
        if reason != CancelReason::RunCancelled && !at_fan_in {
            self.leave_branch(branch, id);
            self.settle_branch(branch);
        }
    }

    pub(super) fn token_abandoned(&mut self, id: TokenId, late: bool) {
        let token = self.state.tokens.get_mut(&id).expect("an abandoned token is live");
        token.straggler = Some(if late { Straggler::Late } else { Straggler::Abandoned });
        let branch = token.branch.take();
        self.state.token_counts.live -= 1;
        if late {
            self.state.token_counts.late += 1;
        } else {
            self.state.token_counts.abandoned += 1;
        }
        self.leave_branch(branch, id);
    }

    pub(super) fn token_timed_out(&mut self, token: Option<TokenId>, ends: bool) {
        let Some(id) = token.filter(|_| ends) else { return };
        let branch = self.state.tokens[&id].branch;
        let at_fan_in = matches!(self.state.tokens[&id].place, Place::WaitingForSiblings { .. });
        self.end(id, TokenStatus::TimedOut, true, None);
        if !at_fan_in {
            self.leave_branch(branch, id);
            self.settle_branch(branch);
        }
    }

    /// Ends a token; it stays in memory only if a `retry` may reopen it.
    pub(super) fn end(&mut self, id: TokenId, status: TokenStatus, keep: bool, failure: Option<&Failure>) {
        let at = match self.state.tokens[&id].place {
            Place::WaitingForSiblings { group } => Some(group),
            _ => None,
        };
        let straggler = self.state.tokens[&id].straggler;
        self.place(id, Place::Ended { as_status: status, at, failure: failure.cloned(), reason: None });
        match straggler {
            Some(Straggler::Abandoned) => self.state.token_counts.abandoned -= 1,
            Some(Straggler::Late) => self.state.token_counts.late -= 1,
            None => {}
        }
        if keep {
            self.keep_groups_of(id);
        } else {
            self.state.tokens.remove(&id);
        }
    }

    pub(super) fn token_released(
        &mut self,
        id: TokenId,
        generation: u32,
        overrides: &Overrides,
        resumed: bool,
    ) {
        let place = if resumed { Place::Dispatched { input: Value::Null } } else { Place::Pending };
        self.place(id, place);
        let token = self.state.tokens.get_mut(&id).expect("it was just placed");
        token.generation = generation;
        token.overrides = overrides.clone();
    }

    fn ended_terminally(
        &mut self,
        branch: Option<crate::event::BranchRef>,
        reference: &Name,
        result: &Value,
    ) {
        match branch {
            None => self.state.ends.last = result.clone(),
            Some(at) if self.state.judged_branch(at).is_none() => {
                self.state.ends.by_ref.insert(reference.clone(), result.clone());
            }
            Some(_) => {}
        }
    }
}

impl Place {
    /// When something is due because a token is here.
    pub(super) fn deadline(&self) -> Option<crate::time::Time> {
        match self {
            Place::Retrying { wake_at } => Some(*wake_at),
            Place::Sleeping { until, deadline, .. } => Some(deadline.map_or(*until, |at| at.min(*until))),
            Place::WaitingForEvent { deadline, .. } | Place::WaitingForSubworkflow { deadline, .. } => {
                *deadline
            }
            _ => None,
        }
    }
}
