//! Groups and their branches as events tell of them. A branch is done when nothing in it is live; it has arrived
//! if it is done, did not fail, and a token of it came to the fan-in. That is what the run keeps too, and the
//! simulator holds the two against each other after every step.

use std::collections::BTreeSet;

use serde::Serialize;
use wonder_core::def::Name;
use wonder_core::event::{BranchRef, GroupId, NewGroup, TokenId};
use wonder_core::{TokenStatus, Value};

use super::Timeline;
use super::visit::{Now, Visit};

/// One firing of a fan-out.
#[derive(Clone, Debug, Serialize)]
pub struct GroupView {
    pub node: Name,
    pub origin: TokenId,
    pub outer: Option<BranchRef>,
    pub total: u32,
    /// Branches that have arrived at the fan-in.
    pub arrived: u32,
    pub joins_at: Option<Name>,
    pub items: Value,
    /// Its fan-in has decided, or it ended with what is around it.
    pub closed: bool,
    /// Closed for good: no retry of the run can open it again.
    #[serde(skip)]
    gone: bool,
    /// Something in it has ended that a retry may reopen.
    #[serde(skip)]
    kept: bool,
    #[serde(skip)]
    done: u32,
    #[serde(skip)]
    branches: Vec<Branch>,
    /// Tokens at the fan-in.
    #[serde(skip)]
    waiting: BTreeSet<TokenId>,
}

#[derive(Clone, Debug, Default)]
struct Branch {
    /// Live tokens whose innermost branch this is, those at a fan-in apart.
    tokens: BTreeSet<TokenId>,
    /// Open groups directly within.
    groups: BTreeSet<GroupId>,
    /// A token of it came to the fan-in.
    came: bool,
    arrived: bool,
    done: bool,
    failed: bool,
}

impl GroupView {
    /// A retry of the run can open it again, or it is open.
    pub fn is_kept(&self) -> bool {
        !self.gone
    }

    /// Branches in which nothing is live any more.
    pub fn done(&self) -> u32 {
        self.done
    }
}

impl Timeline {
    pub(super) fn fanned_out(&mut self, new: &NewGroup) {
        let NewGroup { group, token, node, outer, total, joins_at, items, .. } = new;
        if let Some(at) = outer {
            self.open_branch(*at);
        }
        // Nothing to run and nobody to wait: it was over before it began.
        let over = joins_at.is_none() && *total == 0;
        let view = GroupView {
            node: node.clone(),
            origin: *token,
            outer: *outer,
            total: *total,
            arrived: 0,
            joins_at: joins_at.clone(),
            items: items.clone(),
            closed: over,
            gone: over,
            kept: false,
            done: 0,
            branches: Vec::new(),
            waiting: BTreeSet::new(),
        };
        self.groups.insert(*group, view);
        if over {
            self.settle_branch(*outer);
        } else if let Some(branch) = outer.and_then(|at| self.branch_mut(at)) {
            branch.groups.insert(*group);
        }
    }

    /// A group that a retry may still want, or that is open.
    fn group_mut(&mut self, id: GroupId) -> Option<&mut GroupView> {
        self.groups.get_mut(&id).filter(|group| !group.gone)
    }

    fn branch_mut(&mut self, at: BranchRef) -> Option<&mut Branch> {
        self.group_mut(at.group)?.branches.get_mut(at.branch as usize)
    }

    fn open_branch(&mut self, at: BranchRef) {
        if let Some(group) = self.group_mut(at.group)
            && group.branches.len() == at.branch as usize
        {
            group.branches.push(Branch::default());
        }
    }

    pub(super) fn join_branch(&mut self, at: BranchRef, token: TokenId) {
        self.open_branch(at);
        if let Some(branch) = self.branch_mut(at) {
            branch.tokens.insert(token);
        }
    }

    pub(super) fn leave_branch(&mut self, branch: Option<BranchRef>, token: TokenId) {
        if let Some(branch) = branch.and_then(|at| self.branch_mut(at)) {
            branch.tokens.remove(&token);
        }
    }

    /// Makes a branch done if nothing in it is live, and what follows from that outward.
    pub(super) fn settle_branch(&mut self, branch: Option<BranchRef>) {
        let mut next = branch;
        while let Some(at) = next.take() {
            let Some(group) = self.group_mut(at.group) else { return };
            let Some(branch) = group.branches.get_mut(at.branch as usize) else { return };
            if branch.done || !branch.tokens.is_empty() || !branch.groups.is_empty() {
                return;
            }
            branch.done = true;
            group.done += 1;
            if branch.came && !branch.failed {
                branch.arrived = true;
                group.arrived += 1;
            }
            if group.joins_at.is_none() && group.done == group.total {
                next = group.outer;
                let gone = !group.kept;
                self.close_group(at.group, gone);
            }
        }
    }

    /// The nearest branch outward that a fan-in will judge.
    pub(super) fn judged_branch(&self, from: Option<BranchRef>) -> Option<BranchRef> {
        let mut next = from;
        while let Some(at) = next {
            let group = self.groups.get(&at.group).filter(|group| !group.gone)?;
            if group.joins_at.is_some() {
                return Some(at);
            }
            next = group.outer;
        }
        None
    }

    pub(super) fn fail_branch(&mut self, branch: Option<BranchRef>) {
        let Some(at) = self.judged_branch(branch) else { return };
        let Some(group) = self.group_mut(at.group) else { return };
        let Some(branch) = group.branches.get_mut(at.branch as usize) else { return };
        branch.failed = true;
        // A branch that came, waits, and fails all the same has not arrived.
        if std::mem::take(&mut branch.arrived) {
            group.arrived -= 1;
        }
    }

    pub(super) fn branch_arrived(
        &mut self,
        token: TokenId,
        at: BranchRef,
        within: Option<BranchRef>,
        now: Now,
    ) {
        let innermost = within.unwrap_or(at);
        if self.visits.get(&token).is_some_and(|visit| visit.place() == TokenStatus::Pending) {
            self.wait_for_siblings(token, at.group, now);
            self.leave_branch(Some(innermost), token);
        }
        if let Some(branch) = self.branch_mut(at) {
            branch.came = true;
        }
        self.settle_branch(Some(innermost));
    }

    pub(super) fn wait_for_siblings(&mut self, token: TokenId, group: GroupId, now: Now) {
        let Some(visit) = self.visits.get_mut(&token) else { return };
        visit.at = Some(group);
        visit.to(TokenStatus::WaitingForSiblings, now);
        if let Some(group) = self.group_mut(group) {
            group.waiting.insert(token);
        }
    }

    pub(super) fn leave_fan_in(&mut self, group: GroupId, token: TokenId) {
        if let Some(group) = self.group_mut(group) {
            group.waiting.remove(&token);
        }
    }

    /// Ends those who wait at a fan-in.
    fn end_waiting(&mut self, group: GroupId, status: TokenStatus, keep: bool, now: Now) {
        let waiting = self.group_mut(group).map(|group| std::mem::take(&mut group.waiting));
        for token in waiting.unwrap_or_default() {
            if let Some(visit) = self.visits.get_mut(&token) {
                // Its own work was done, whatever became of the others.
                match status {
                    TokenStatus::Failed => visit.moved(status, now),
                    _ => visit.to(status, now),
                };
            }
            if keep {
                self.keep(token);
            }
        }
    }

    pub(super) fn fanned_in(&mut self, group: GroupId, now: Now) {
        self.end_waiting(group, TokenStatus::Completed, false, now);
        if self.groups.get(&group).is_some_and(|group| group.kept) {
            self.forget_within(group);
        }
        self.close_group(group, true);
    }

    pub(super) fn fan_in_failed(&mut self, id: GroupId, handled: bool, now: Now) {
        self.end_waiting(id, TokenStatus::Failed, !handled, now);
        if handled {
            self.forget_within(id);
        }
        let outer = self.groups.get(&id).and_then(|group| group.outer);
        self.close_group(id, handled);
        if !handled && self.judged_branch(outer).is_some() {
            self.fail_branch(outer);
            self.settle_branch(outer);
        }
    }

    pub(super) fn group_closed(&mut self, group: GroupId, kept: bool) {
        if !kept {
            self.forget_within(group);
        }
        self.close_group(group, !kept);
    }

    /// `gone`: no retry of the run can want it back.
    fn close_group(&mut self, id: GroupId, gone: bool) {
        let Some(group) = self.group_mut(id) else { return };
        (group.closed, group.gone) = (true, gone);
        let outer = group.outer;
        if let Some(branch) = outer.and_then(|at| self.branch_mut(at)) {
            branch.groups.remove(&id);
        }
    }

    /// A retry of the run puts this token back, and needs the groups around it.
    pub(super) fn keep(&mut self, token: TokenId) {
        self.kept.insert(token);
        let mut next = self.visits.get(&token).and_then(Visit::current_branch);
        while let Some(group) = next.and_then(|at| self.group_mut(at.group)) {
            group.kept = true;
            next = group.outer;
        }
    }

    /// No retry can want what has ended within a group that is gone.
    fn forget_within(&mut self, gone: GroupId) {
        let groups = &self.groups;
        let within = |mut next: Option<BranchRef>| {
            while let Some(at) = next {
                if at.group == gone {
                    return true;
                }
                next = groups.get(&at.group).and_then(|group| group.outer);
            }
            false
        };
        let visits = &self.visits;
        self.kept.retain(|token| !visits.get(token).is_some_and(|visit| within(visit.current_branch())));
        let closed = groups.iter().filter(|(_, group)| group.closed && within(group.outer));
        for id in closed.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(group) = self.groups.get_mut(&id) {
                group.gone = true;
            }
        }
    }

    /// Puts back a token that a retry of the run is to mend, and opens what is around it.
    pub(super) fn reopen_visit(&mut self, token: TokenId, now: Now) {
        let Some(visit) = self.visits.get(&token) else { return };
        let (branch, at) = (visit.current_branch(), visit.at);
        match at.filter(|group| self.groups.get(group).is_some_and(GroupView::is_kept)) {
            Some(group) => {
                self.wait_for_siblings(token, group, now);
                self.reopen_group(group);
            }
            None => {
                if let Some(visit) = self.visits.get_mut(&token) {
                    visit.at = None;
                    visit.to(TokenStatus::Pending, now);
                }
                self.reopen_branch(branch);
                if let Some(branch) = branch.and_then(|at| self.branch_mut(at)) {
                    branch.tokens.insert(token);
                }
            }
        }
    }

    fn reopen_group(&mut self, id: GroupId) {
        let Some(group) = self.group_mut(id) else { return };
        let (reopens, outer) = (std::mem::take(&mut group.closed), group.outer);
        let Some(outer) = outer else { return };
        if reopens && let Some(branch) = self.branch_mut(outer) {
            branch.groups.insert(id);
        }
        self.reopen_branch(Some(outer));
    }

    fn reopen_branch(&mut self, branch: Option<BranchRef>) {
        let Some(at) = branch else { return };
        let Some(group) = self.group_mut(at.group) else { return };
        let Some(branch) = group.branches.get_mut(at.branch as usize) else { return };
        if std::mem::take(&mut branch.done) {
            group.done -= 1;
        }
        if std::mem::take(&mut branch.arrived) {
            group.arrived -= 1;
        }
        branch.failed = false;
        self.reopen_group(at.group);
    }
}
