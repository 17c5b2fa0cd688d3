//! Groups and branches. A branch is done when nothing in it is live; it has arrived if it is done, did not
//! fail, and a token of it came to the fan-in. Readiness follows from these; there is no counter to trust
//! but those kept here, next to what they count.

use std::sync::Arc;

use crate::def::Name;
use crate::error::Failure;
use crate::event::{BranchRef, GroupId, NewGroup, Patch, TokenId};
use crate::graph::NodeIx;
use crate::lifecycle::TokenStatus;
use crate::run::Run;
use crate::state::{Base, Branch, Group, Place, Timer};
use crate::value::Value;

impl Run {
    pub(super) fn fanned_out(&mut self, new: &NewGroup) {
        let NewGroup {
            group: id,
            token,
            node,
            transition,
            outer,
            total,
            items,
            item_name,
            max_parallel,
            joins_at,
            timeout_ms,
            counts,
            last_error,
        } = new;
        let node = self.graph.find_node(node).expect("a node of the graph fanned out");
        let target =
            joins_at.as_ref().map(|at| self.graph.find_node(at).expect("a fan-in's target is a node").0);
        self.state.groups_made = self.state.groups_made.max(id.0);
        if let Some(at) = outer {
            self.open_branch(*at);
        }
        if target.is_none() && *total == 0 {
            // Nothing to run and nobody to wait: it was over before it began.
            self.settle_branch(*outer);
            return;
        }
        let group = Group {
            id: *id,
            origin: *token,
            node: node.0,
            transition: transition.clone(),
            outer: *outer,
            counts: counts.clone(),
            last_error: last_error.clone(),
            items: items.clone(),
            item_name: item_name.clone(),
            total: *total,
            max_parallel: *max_parallel,
            target,
            timeout_ms: *timeout_ms,
            base: Arc::new(self.base(*outer)),
            branches: Vec::new(),
            waiting: Default::default(),
            arrived: 0,
            done: 0,
            failed: 0,
            failure: None,
            last_failure: None,
            first_arrival: None,
            warned: false,
            kept: false,
            closed: false,
        };
        self.state.groups.insert(*id, group);
        if let Some(at) = outer {
            self.branch_mut(*at).groups.push(*id);
        }
        self.touched.push(*id);
    }

    /// What lies around a new group, shared, not copied.
    fn base(&self, outer: Option<BranchRef>) -> Base {
        match outer {
            None => Base { state: self.state.state.clone(), output: self.state.output.clone(), up: None },
            Some(at) => {
                let group = &self.state.groups[&at.group];
                let branch = group.branch(at.branch);
                let output = branch.output.clone().unwrap_or_default();
                Base { state: branch.local.clone(), output, up: Some(group.base.clone()) }
            }
        }
    }

    pub(super) fn branch_mut(&mut self, at: BranchRef) -> &mut Branch {
        let group = self.state.groups.get_mut(&at.group).expect("a branch has its group");
        &mut group.branches[at.branch as usize]
    }

    /// A token begins or goes on in a branch; branches start in order.
    pub(super) fn join_branch(&mut self, at: BranchRef, id: TokenId) {
        self.open_branch(at);
        self.branch_mut(at).tokens.push(id);
    }

    /// A branch begins with a token, or (`fan_out: all` into a spread) with a group of its own.
    fn open_branch(&mut self, at: BranchRef) {
        let group = self.state.groups.get_mut(&at.group).expect("a branch has its group");
        if group.branches.len() == at.branch as usize {
            group.branches.push(Branch::default());
        }
    }

    pub(super) fn leave_branch(&mut self, branch: Option<BranchRef>, id: TokenId) {
        let Some(at) = branch else { return };
        if self.state.groups.contains_key(&at.group) {
            self.branch_mut(at).tokens.retain(|t| *t != id);
        }
    }

    /// Makes a branch done if nothing in it is live, and what follows from that outward.
    pub(super) fn settle_branch(&mut self, branch: Option<BranchRef>) {
        let mut next = branch;
        while let Some(at) = next.take() {
            let now = self.state.now;
            let Some(group) = self.state.groups.get_mut(&at.group) else { return };
            let branch = &mut group.branches[at.branch as usize];
            if branch.done || !branch.tokens.is_empty() || !branch.groups.is_empty() {
                return;
            }
            branch.done = true;
            group.done += 1;
            if branch.came && branch.failure.is_none() {
                group.arrived += 1;
                branch.arrival = Some(group.arrived);
                if group.first_arrival.is_none() {
                    group.first_arrival = Some(now);
                    self.start_fan_in_clock(at.group);
                }
            }
            self.touched.push(at.group);
            let group = &self.state.groups[&at.group];
            if group.target.is_none() && group.done == group.total {
                next = group.outer;
                if group.kept {
                    self.close_group(at.group);
                } else {
                    self.drop_group(at.group);
                }
            }
        }
    }

    /// A token that `retry` may reopen keeps the groups around it.
    pub(super) fn keep_groups_of(&mut self, id: TokenId) {
        let mut next = self.state.tokens[&id].branch;
        while let Some(group) = next.and_then(|at| self.state.groups.get_mut(&at.group)) {
            group.kept = true;
            next = group.outer;
        }
    }

    /// Takes a group out of its branch and out of memory.
    fn drop_group(&mut self, id: GroupId) {
        self.stop_fan_in_clock(id);
        let outer = self.state.groups.remove(&id).and_then(|group| group.outer);
        if let Some(outer) = outer.filter(|outer| self.state.groups.contains_key(&outer.group)) {
            self.branch_mut(outer).groups.retain(|g| *g != id);
        }
    }

    pub(super) fn branch_arrived(&mut self, id: TokenId, at: BranchRef, within: Option<BranchRef>) {
        let innermost = within.unwrap_or(at);
        if self.state.tokens.get(&id).is_some_and(|t| t.status() == TokenStatus::Pending) {
            self.place(id, Place::WaitingForSiblings { group: at.group });
            self.leave_branch(Some(innermost), id);
        }
        self.branch_mut(at).came = true;
        self.settle_branch(Some(innermost));
    }

    pub(super) fn fail_branch(&mut self, branch: Option<BranchRef>, failure: &Failure) {
        let Some(at) = branch.and_then(|at| self.state.judged_branch(at)) else { return };
        let group = self.state.groups.get_mut(&at.group).expect("it was just found");
        let branch = &mut group.branches[at.branch as usize];
        if branch.failure.is_none() {
            branch.failure = Some(failure.clone());
            group.failed += 1;
            group.failure.get_or_insert_with(|| failure.clone());
            group.last_failure = Some(failure.clone());
            // A branch that came, waits, and fails all the same has not arrived.
            if branch.arrival.take().is_some() {
                group.arrived -= 1;
            }
        }
        self.touched.push(at.group);
    }

    pub(super) fn fanned_in(&mut self, id: GroupId, patches: &[Patch]) {
        for token in self.state.groups[&id].waiting.clone() {
            self.end(token, TokenStatus::Completed, false, None);
        }
        if self.state.groups[&id].kept {
            self.forget_ended_in(id);
        }
        let outer = self.state.groups[&id].outer;
        self.drop_group(id);
        self.patch(outer, patches, &Value::Null);
    }

    pub(super) fn fan_in_failed(&mut self, id: GroupId, failure: &Failure, handled: bool) {
        for token in self.state.groups[&id].waiting.clone() {
            self.end(token, TokenStatus::Failed, !handled, Some(failure));
        }
        let outer = self.state.groups[&id].outer;
        if handled {
            self.forget_ended_in(id);
            self.drop_group(id);
            return;
        }
        let node = NodeIx(self.state.groups[&id].node);
        self.close_group(id);
        if outer.is_some_and(|at| self.state.judged_branch(at).is_some()) {
            self.fail_branch(outer, failure);
            self.settle_branch(outer);
        } else {
            self.unit_failed(node, failure);
        }
    }

    /// Out of its branch, but kept: a `retry` may want it back.
    fn close_group(&mut self, id: GroupId) {
        self.stop_fan_in_clock(id);
        let group = self.state.groups.get_mut(&id).expect("only a group that exists is closed");
        group.closed = true;
        if let Some(outer) = group.outer {
            self.branch_mut(outer).groups.retain(|g| *g != id);
        }
    }

    pub(super) fn group_closed(&mut self, id: GroupId, kept: bool) {
        if kept {
            self.close_group(id);
        } else {
            self.forget_ended_in(id);
            self.drop_group(id);
        }
    }

    /// Ended tokens and closed groups within this group: no `retry` can want them any more.
    fn forget_ended_in(&mut self, id: GroupId) {
        let within = |run: &Run, mut next: Option<BranchRef>| {
            while let Some(at) = next {
                if at.group == id {
                    return true;
                }
                next = run.state.groups.get(&at.group).and_then(|g| g.outer);
            }
            false
        };
        let tokens =
            self.state.tokens.values().filter(|token| !token.is_live() && within(self, token.branch));
        let groups = self.state.groups.values().filter(|group| group.closed && within(self, group.outer));
        let (tokens, groups): (Vec<_>, Vec<_>) =
            (tokens.map(|t| t.id).collect(), groups.map(|g| g.id).collect());
        for token in tokens {
            self.state.tokens.remove(&token);
        }
        for group in groups {
            self.state.groups.remove(&group);
        }
    }

    /// The result of a branch's node: its output if nothing else is written, and `state.<ref>` there.
    pub(super) fn keep_result(&mut self, at: BranchRef, unmapped: Option<&Name>, result: &Value) {
        if result.is_null() {
            return;
        }
        let branch = self.branch_mut(at);
        branch.last = result.clone();
        if let Some(reference) = unmapped {
            branch.local.set_path(std::slice::from_ref(reference), result.clone());
        }
    }

    /// Undoes "done" and "failed" for a branch in which a `retry` reopens something.
    pub(super) fn reopen_branch(&mut self, branch: Option<BranchRef>) {
        let Some(at) = branch else { return };
        let Some(group) = self.state.groups.get_mut(&at.group) else { return };
        let branch = &mut group.branches[at.branch as usize];
        if std::mem::take(&mut branch.done) {
            group.done -= 1;
        }
        if branch.arrival.take().is_some() {
            group.arrived -= 1;
        }
        if branch.failure.take().is_some() {
            group.failed -= 1;
        }
        if group.failed == 0 {
            group.failure = None;
            group.last_failure = None;
        }
        let outer = group.outer;
        let reopen = std::mem::take(&mut group.closed);
        if let Some(outer) = outer {
            if reopen && !self.branch_mut(outer).groups.contains(&at.group) {
                self.branch_mut(outer).groups.push(at.group);
            }
            self.reopen_branch(Some(outer));
        }
    }

    pub(super) fn start_fan_in_clock(&mut self, id: GroupId) {
        let closed = self.state.groups.get(&id).is_none_or(|group| group.closed);
        if closed || self.state.status != crate::lifecycle::RunStatus::Running {
            return;
        }
        for (at, timer) in self.fan_in_timers(id) {
            self.state.timers.insert((at, timer));
        }
    }

    pub(super) fn stop_fan_in_clock(&mut self, id: GroupId) {
        for entry in self.fan_in_timers(id) {
            self.state.timers.remove(&entry);
        }
    }

    /// Deadline and warning of a fan-in whose clock has started.
    fn fan_in_timers(&self, id: GroupId) -> Vec<(crate::time::Time, Timer)> {
        let Some(group) = self.state.groups.get(&id) else { return vec![] };
        match (group.first_arrival, group.timeout_ms) {
            (Some(first), Some(timeout)) => {
                let deadline = (first.plus(timeout), Timer::FanIn(id));
                let warning = (first.plus(timeout.saturating_mul(4) / 5), Timer::FanInWarning(id));
                if group.warned { vec![deadline] } else { vec![deadline, warning] }
            }
            _ => vec![],
        }
    }
}
