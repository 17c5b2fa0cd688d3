//! The run as a whole: started, paused for a budget, ended, reopened.

use std::collections::BTreeSet;

use crate::cost::Allowance;
use crate::def::Name;
use crate::error::Failure;
use crate::event::{NewChild, NewFork, Report, TokenId};
use crate::input::{Parent, StartRun};
use crate::lifecycle::{RunStatus, TokenStatus};
use crate::run::Run;
use crate::scope::{Pending, laid_over_state};
use crate::state::{Closing, Place, Timer, UnitState};
use crate::time::Time;
use crate::value::Value;

impl Run {
    pub(super) fn queued(&mut self, start: &StartRun) {
        self.state.start = Some(Box::new(start.clone()));
        self.state.status = RunStatus::Queued;
        self.set_up();
    }

    pub(super) fn started(&mut self, start: &StartRun) {
        self.state.start = Some(Box::new(start.clone()));
        self.set_up();
        self.released();
    }

    fn set_up(&mut self) {
        self.state.state = Value::empty_map();
        self.state.output = Value::Null;
        self.state.units = vec![UnitState::default(); self.graph.units.len()];
        self.open_accounts();
        self.rank_nodes();
    }

    /// What is spent at a node is counted where the node has a budget.
    pub(super) fn open_accounts(&mut self) {
        for node in self.graph.nodes.iter().filter(|node| node.budget.is_some()) {
            self.state.node_spend.entry(node.reference.clone()).or_default();
        }
    }

    pub(super) fn released(&mut self) {
        self.state.status = RunStatus::Running;
        self.state.started_at = self.state.now;
        let own = self.state.start.as_ref().and_then(|s| s.timeout_ms);
        self.state.clock.limit_ms = own.unwrap_or(self.graph.timeout_ms);
        self.start_wall();
    }

    pub(super) fn yielded(&mut self) {
        self.state.timers.insert((self.state.now, Timer::Continue));
    }

    /// Which groups were still to be judged is not stored: all that are open may be.
    pub(super) fn continued(&mut self) {
        self.state.timers.retain(|(_, timer)| *timer != Timer::Continue);
        self.touched.extend(self.state.groups.values().filter(|group| !group.closed).map(|group| group.id));
    }

    /// The ready order: worked out once, and again when the graph grows.
    pub(super) fn rank_nodes(&mut self) {
        let estimates = self.state.start.as_ref().map(|s| &s.estimates);
        let ranks = crate::schedule::ranks(&self.graph, estimates);
        self.state.ready = std::mem::take(&mut self.state.ready)
            .into_iter()
            .map(|(_, id)| (ranks.get(self.state.tokens[&id].node as usize).copied().unwrap_or(0), id))
            .collect();
        self.state.ranks = ranks;
    }

    pub(super) fn budget_warned(&mut self, node: Option<&Name>) {
        match node {
            None => {
                self.state.budget_warned = true;
                self.state.timers.retain(|(_, timer)| *timer != Timer::WallWarning);
            }
            Some(node) => self.state.node_spend.entry(node.clone()).or_default().warned = true,
        }
    }

    /// Without a token it is the time that is spent; that comes once until somebody raises it.
    pub(super) fn budget_exceeded(&mut self, token: Option<TokenId>) {
        if token.is_none() {
            self.state.timers.retain(|(_, timer)| !matches!(timer, Timer::Wall | Timer::WallWarning));
        }
    }

    pub(super) fn granted(&mut self, by: &Allowance) {
        self.state.granted.add(by);
    }

    pub(super) fn budget_raised(&mut self, node: Option<&Name>, by: &Allowance, whole: bool) {
        let raised = match node {
            None => {
                self.state.budget_warned = false;
                &mut self.state.raised
            }
            Some(node) => {
                let spend = self.state.node_spend.entry(node.clone()).or_default();
                spend.warned = false;
                &mut spend.raised
            }
        };
        raised.usd_micros = raised.usd_micros.saturating_add(by.usd_micros);
        raised.tokens = raised.tokens.saturating_add(by.tokens);
        raised.calls = raised.calls.saturating_add(by.calls);
        raised.times += u64::from(whole);
        // Time that was spent starts anew, whatever else was raised.
        if node.is_none() && !self.state.timers.iter().any(|(_, timer)| *timer == Timer::Wall) {
            self.start_wall();
        }
    }

    fn start_wall(&mut self) {
        if let Some(budget) = self.graph.budget
            && let Some(wall) = budget.wall_ms
        {
            let warning = u64::try_from(u128::from(wall) * u128::from(budget.warn_at_permille) / 1_000);
            self.state.timers.insert((self.state.now.plus(wall), Timer::Wall));
            self.state.timers.insert((self.state.now.plus(warning.unwrap_or(wall)), Timer::WallWarning));
        }
    }

    /// Ends every token that is not out; those that are have the grace.
    pub(super) fn cancelling(&mut self, reason: &str, deadline: Time) {
        self.state.closing = Some(Closing::Cancelled(reason.to_owned()));
        self.state.status = RunStatus::Cancelling;
        let out: BTreeSet<TokenId> = self.state.out.keys().map(|(id, _)| *id).collect();
        self.end_live(TokenStatus::Cancelled, |id| !out.contains(&id));
        self.close_everything();
        self.state.timers.insert((deadline, Timer::CancelGrace));
    }

    pub(super) fn completed(&mut self, output: &Value) {
        self.close_everything();
        self.state.status = RunStatus::Completed;
        self.state.closing = Some(Closing::Output(output.clone()));
    }

    pub(super) fn failed(&mut self, failure: &Failure) {
        self.end_live(TokenStatus::Cancelled, |_| true);
        self.close_everything();
        self.state.status = RunStatus::Failed;
        self.state.closing = Some(Closing::Failure(failure.clone()));
    }

    pub(super) fn cancelled(&mut self, reason: &str) {
        self.end_live(TokenStatus::Cancelled, |_| true);
        self.close_everything();
        self.state.status = RunStatus::Cancelled;
        self.state.closing = Some(Closing::Cancelled(reason.to_owned()));
    }

    pub(super) fn timed_out(&mut self, failure: &Failure) {
        self.end_live(TokenStatus::TimedOut, |_| true);
        self.close_everything();
        self.state.status = RunStatus::TimedOut;
        self.state.closing = Some(Closing::Failure(failure.clone()));
    }

    /// Ends tokens with the run. Branches stay as they are, so that `retry` finds everything in place.
    fn end_live(&mut self, status: TokenStatus, which: impl Fn(TokenId) -> bool) {
        let live: Vec<TokenId> = self.state.tokens.values().filter(|t| t.is_live()).map(|t| t.id).collect();
        for id in live.into_iter().filter(|id| which(*id)) {
            let straggler = self.state.tokens[&id].straggler.is_some();
            let status = if straggler { TokenStatus::Cancelled } else { status };
            self.end(id, status, !straggler, None);
        }
    }

    fn close_everything(&mut self) {
        let at = self.state.now;
        assert!(self.state.gates.is_empty(), "gates are closed before the run ends");
        self.state.timers.clear();
        self.state.pauses.clear();
        // The clock's own timers went with the rest.
        if let Some(since) = self.state.clock.since.take() {
            self.state.clock.used_ms += at.since(since);
        }
    }

    /// Everything that is still in memory and ended, ended because of what `retry` is to mend.
    pub(super) fn retried(&mut self) {
        self.state.status = RunStatus::Running;
        self.state.closing = None;
        self.state.clock.used_ms = 0;
        self.state.clock.warned = false;
        self.reopen_units();
        let ended: Vec<TokenId> = self.state.tokens.values().filter(|t| !t.is_live()).map(|t| t.id).collect();
        for id in ended {
            self.reopen(id);
        }
        let (now, groups) = (self.state.now, self.state.groups.keys().copied().collect::<Vec<_>>());
        for id in groups {
            let group = self.state.groups.get_mut(&id).expect("its id was just listed");
            if group.first_arrival.is_some() {
                group.first_arrival = Some(now);
                group.warned = false;
                self.start_fan_in_clock(id);
            }
            self.touched.push(id);
        }
    }

    fn reopen(&mut self, id: TokenId) {
        let token = self.state.tokens.get_mut(&id).expect("its id was just listed");
        token.answered.clear();
        let branch = token.branch;
        let Place::Ended { at, .. } = token.place else { return };
        match at.filter(|group| self.state.groups.contains_key(group)) {
            Some(group) => {
                self.place(id, Place::WaitingForSiblings { group });
                self.reopen_group(group);
            }
            None => {
                self.place(id, Place::Pending);
                self.reopen_branch(branch);
                if let Some(at) = branch
                    && !self.branch_mut(at).tokens.contains(&id)
                {
                    self.branch_mut(at).tokens.push(id);
                }
            }
        }
    }

    /// A fan-in that failed waits again for the branches that `retry` reopens.
    fn reopen_group(&mut self, id: crate::event::GroupId) {
        let group = self.state.groups.get_mut(&id).expect("the caller has looked");
        let reopen = std::mem::take(&mut group.closed);
        if let Some(outer) = group.outer {
            if reopen && !self.branch_mut(outer).groups.contains(&id) {
                self.branch_mut(outer).groups.push(id);
            }
            self.reopen_branch(Some(outer));
        }
    }

    /// A copy of another run's events goes on as a run of its own: what was out and is still wanted will be
    /// out again under its name, and of the rest nobody will ever report here.
    pub(super) fn forked(&mut self, new: &NewFork, left_at: Time) {
        let NewFork { run: id, parent, token, input, set, .. } = new;
        self.restart_clocks(left_at);
        if let Some(start) = &mut self.state.start {
            start.id = id.clone();
            let above = start.parent.take().zip(parent.clone());
            start.parent = above.map(|(before, run)| Parent { run, ..before });
        }
        for Pending { to, value } in laid_over_state(set) {
            super::context::write_run(&mut self.state, &to, value);
        }
        for (of, attempt) in self.state.out.keys().copied().collect::<Vec<_>>() {
            let wanted = self.state.tokens.get(&of).is_some_and(|t| t.awaits(attempt));
            if wanted {
                self.rename_child(id, of, attempt);
            } else {
                self.state.child_orders.remove(&(of, attempt));
                self.reported(of, attempt, &Report::default());
            }
        }
        if let (Some(token), false) = (self.state.tokens.get_mut(token), input.is_null()) {
            token.overrides.input = input.clone();
            token.generation += 1;
        }
    }

    /// A child's id derives from its parent's: the fork's children are its own.
    fn rename_child(&mut self, run: &Name, of: TokenId, attempt: u32) {
        let name: Name = format!("{run}.{of}.{attempt}").into();
        if let Some(NewChild { child, .. }) = self.state.child_orders.get_mut(&(of, attempt)) {
            *child = name.clone();
        }
        if let Some(Place::WaitingForSubworkflow { child, .. }) =
            self.state.tokens.get_mut(&of).map(|t| &mut t.place)
        {
            *child = name.clone();
        }
        if let Some(child) = self.state.out.get_mut(&(of, attempt)).and_then(|out| out.child.as_mut()) {
            *child = name;
        }
    }
}
