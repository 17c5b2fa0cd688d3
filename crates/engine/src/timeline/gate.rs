//! Gates as events tell of them: who was asked, who answered when and what, who is asked now.

use serde::{Deserialize, Serialize};
use wonder_core::def::Name;
use wonder_core::event::{GateId, GateKind, GateRecord, Report, TokenId};
use wonder_core::{Time, TokenStatus, Value};

use super::Timeline;
use super::visit::{Now, Visit};

/// One gate with all that became of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GateHistory {
    pub kind: GateKind,
    pub title: String,
    pub body: Option<String>,
    /// A JSON Schema that an answer must fit; null takes anything.
    pub form: Value,
    pub token: Option<TokenId>,
    pub opened_at: Time,
    /// Who was asked when it was opened.
    #[serde(default)]
    pub asked: Vec<Name>,
    /// Who is asked: those it was opened for, or was passed on to.
    pub assignees: Vec<Name>,
    pub deadline: Option<Time>,
    /// How many must answer, if more than one.
    pub quorum: Option<u32>,
    pub answers: Vec<GateAnswer>,
    pub reminded_at: Vec<Time>,
    /// When it was passed on, and to whom.
    pub passed_on: Vec<(Time, Vec<Name>)>,
    pub closed: Option<GateEnd>,
    #[serde(skip)]
    timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GateAnswer {
    pub by: Name,
    pub at: Time,
    pub answer: Value,
}

/// Who closed it when: with the last answer, or without one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GateEnd {
    pub by: Name,
    pub at: Time,
    pub answered: bool,
}

impl GateHistory {
    fn new(token: Option<TokenId>, record: &GateRecord, at: Time) -> GateHistory {
        GateHistory {
            kind: record.kind,
            title: record.title.clone(),
            body: record.body.clone(),
            form: record.form.clone(),
            token,
            opened_at: at,
            asked: record.assignees.clone(),
            assignees: record.assignees.clone(),
            deadline: record.timeout_ms.map(|ms| at.plus(ms)),
            quorum: record.quorum,
            answers: Vec::new(),
            reminded_at: Vec::new(),
            passed_on: Vec::new(),
            closed: None,
            timeout_ms: record.timeout_ms,
        }
    }

    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Its time begins anew.
    pub(super) fn restart(&mut self, at: Time) {
        self.deadline = self.timeout_ms.map(|ms| at.plus(ms));
    }
}

impl Timeline {
    /// Gates that wait for an answer.
    pub fn open_gates(&self) -> impl Iterator<Item = (GateId, &GateHistory)> {
        self.gates.iter().filter(|(_, gate)| gate.is_open()).map(|(id, gate)| (*id, gate))
    }

    pub(super) fn gate_opened(
        &mut self,
        gate: GateId,
        token: Option<TokenId>,
        record: &GateRecord,
        report: Option<&Report>,
        now: Now,
    ) {
        self.gates.insert(gate, GateHistory::new(token, record, now.at));
        let Some(token) = token else { return };
        self.reported_now(token, report, now);
        if let Some(visit) = self.visits.get_mut(&token) {
            visit.gate = Some(gate);
            wait_at_gate(visit, gate, record, now);
        }
    }

    pub(super) fn gate_answered(&mut self, gate: GateId, by: &Name, answer: &Value, closes: bool, now: Now) {
        let Some(open) = self.gates.get_mut(&gate) else { return };
        open.answers.push(GateAnswer { by: by.clone(), at: now.at, answer: answer.clone() });
        if closes {
            open.closed = Some(GateEnd { by: by.clone(), at: now.at, answered: true });
            let token = open.token;
            if let Some(visit) = token.and_then(|token| self.visits.get_mut(&token)) {
                visit.answered_by = Some(by.clone());
            }
        }
    }

    pub(super) fn gate_closed(&mut self, gate: GateId, by: &Name, now: Now) {
        if let Some(open) = self.gates.get_mut(&gate) {
            open.closed = Some(GateEnd { by: by.clone(), at: now.at, answered: false });
        }
    }

    pub(super) fn gate_reminded(&mut self, gate: GateId, now: Now) {
        if let Some(open) = self.gates.get_mut(&gate) {
            open.reminded_at.push(now.at);
        }
    }

    pub(super) fn gate_reassigned(&mut self, gate: GateId, assignees: &[Name], now: Now) {
        if let Some(open) = self.gates.get_mut(&gate) {
            open.assignees = assignees.to_vec();
            open.passed_on.push((now.at, assignees.to_vec()));
            open.restart(now.at);
        }
    }
}

/// A budget's gate asks about the run: the token that hit the bound stays in line, pending.
fn wait_at_gate(visit: &mut Visit, gate: GateId, record: &GateRecord, now: Now) {
    match (record.kind, &record.failure) {
        (GateKind::Node, _) => visit.to(TokenStatus::WaitingForHuman, now).gate = Some(gate),
        (GateKind::Review | GateKind::Outcome | GateKind::Input, Some(failure)) => {
            visit.broke(TokenStatus::Escalated, Some(failure), now).gate = Some(gate);
        }
        (
            GateKind::Review | GateKind::Outcome | GateKind::Input | GateKind::Budget | GateKind::Timeout,
            _,
        ) => {}
    }
}
