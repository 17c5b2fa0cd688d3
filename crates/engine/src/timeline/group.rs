//! Groups and gates as events tell of them: who arrived where, who is asked, what a retry will want back.

use wonder_core::TokenStatus;
use wonder_core::event::{BranchRef, EventKind, GateId, GateKind, GateRecord, GroupId, TokenId};

use super::visit::{Now, Visit};
use super::{GroupView, OpenGate, Timeline};

impl Timeline {
    pub(super) fn learn_of_group(&mut self, kind: &EventKind, now: Now) -> bool {
        match kind {
            EventKind::FanOut { group, token, node, outer, total, joins_at, items, .. } => {
                let view = GroupView {
                    node: node.clone(),
                    origin: *token,
                    outer: *outer,
                    total: *total,
                    arrived: 0,
                    joins_at: joins_at.clone(),
                    items: items.clone(),
                    closed: false,
                };
                self.groups.insert(*group, view);
            }
            EventKind::BranchArrived { token, group, .. } => {
                if let Some(view) = self.groups.get_mut(group) {
                    view.arrived += 1;
                }
                let pending = |visit: &&mut Visit| visit.place() == TokenStatus::Pending;
                if self.visits.get_mut(token).filter(pending).is_some() {
                    self.arrive(*token, *group, now);
                }
            }
            EventKind::FanIn { group, .. } => {
                self.close_group(*group, TokenStatus::Completed, now);
                self.forget_within(*group);
            }
            EventKind::FanInFailed { group, handled, .. } => {
                let waited = self.close_group(*group, TokenStatus::Failed, now);
                if *handled {
                    self.forget_within(*group);
                } else {
                    self.kept.extend(waited);
                }
            }
            EventKind::GroupClosed { group, kept } => {
                self.close_group(*group, TokenStatus::Cancelled, now);
                if !kept {
                    self.forget_within(*group);
                }
            }
            _ => return false,
        }
        true
    }

    pub(super) fn arrive(&mut self, token: TokenId, group: GroupId, now: Now) {
        let Some(visit) = self.visits.get_mut(&token) else { return };
        visit.at = Some(group);
        visit.to(TokenStatus::WaitingForSiblings, now);
        self.waiting.entry(group).or_default().push(token);
    }

    /// Gives those who waited there.
    fn close_group(&mut self, group: GroupId, status: TokenStatus, now: Now) -> Vec<TokenId> {
        if let Some(view) = self.groups.get_mut(&group) {
            view.closed = true;
        }
        let mut waited = self.waiting.remove(&group).unwrap_or_default();
        waited.retain(|token| {
            let here = |visit: &&mut Visit| visit.place() == TokenStatus::WaitingForSiblings;
            let visit = self.visits.get_mut(token).filter(here);
            visit.map(|visit| visit.to(status, now)).is_some()
        });
        waited
    }

    /// No retry can want what has ended within a group that is gone.
    fn forget_within(&mut self, gone: GroupId) {
        let within = |mut next: Option<BranchRef>| {
            while let Some(at) = next {
                if at.group == gone {
                    return true;
                }
                next = self.groups.get(&at.group).and_then(|view| view.outer);
            }
            false
        };
        self.kept.retain(|token| !self.visits.get(token).is_some_and(|visit| within(visit.branch)));
    }

    pub(super) fn learn_of_gate(&mut self, kind: &EventKind, now: Now) -> bool {
        match kind {
            EventKind::GateOpened { gate, token, record, report, .. } => {
                let (kind, title, token) = (record.kind, record.title.clone(), *token);
                self.gates.insert(*gate, OpenGate { kind, title, token, opened_at: now.at });
                if let Some(visit) = token.and_then(|token| self.reported(token, None, report.as_ref(), now))
                {
                    visit.gate = Some(*gate);
                    wait_at_gate(visit, *gate, record, now);
                }
            }
            EventKind::GateAnswered { gate, by, closes: true, .. } => {
                let open = self.gates.remove(gate);
                let visit = open.and_then(|open| self.visits.get_mut(&open.token?));
                if let Some(visit) = visit {
                    visit.answered_by = Some(by.clone());
                }
            }
            EventKind::GateClosed { gate, .. } => {
                self.gates.remove(gate);
            }
            _ => return false,
        }
        true
    }
}

/// A budget's gate asks about the run: the token that hit the bound stays in line, pending.
fn wait_at_gate(visit: &mut Visit, gate: GateId, record: &GateRecord, now: Now) {
    match record.kind {
        GateKind::Node => visit.to(TokenStatus::WaitingForHuman, now).gate = Some(gate),
        GateKind::Review | GateKind::Outcome => {
            let failure = record.failure.as_ref().map(ToString::to_string);
            visit.broke(TokenStatus::Escalated, failure, now).gate = Some(gate);
        }
        GateKind::Budget | GateKind::Timeout => {}
    }
}
