//! What tokens and runs wait for: gates, events, sleeps, children.

use crate::cost::Spend;
use crate::def::Name;
use crate::event::{EventWait, GateId, GateKind, GateRecord, NewChild, OpenedWith, Report, TokenId};
use crate::run::Run;
use crate::state::{Gate, GateClosing, KeptEvent, Out, Place, Timer};
use crate::time::Time;
use crate::value::Value;

impl Run {
    pub(super) fn gate_opened(
        &mut self,
        id: GateId,
        token: Option<TokenId>,
        record: &GateRecord,
        report: &Option<Report>,
        opened_with: &Option<OpenedWith>,
    ) {
        self.state.gates_opened = self.state.gates_opened.max(id.0);
        if let Some(token) = token {
            self.maybe_reported(token, report);
            let place = match (&record.failure, record.kind) {
                (Some(failure), GateKind::Review | GateKind::Outcome | GateKind::Input) => {
                    Some(Place::Escalated { gate: id, failure: failure.clone() })
                }
                (_, GateKind::Node) => {
                    Some(Place::WaitingForHuman { gate: id, opened_with: opened_with.clone() })
                }
                // A budget gate asks about the run; the token that hit the bound stays where it is.
                _ => None,
            };
            if let Some(place) = place {
                self.place(token, place);
            }
            if let (Some(failure), Some(token)) = (&record.failure, self.state.tokens.get_mut(&token)) {
                token.last_error = Some(failure.clone());
            }
        }
        let gate = Gate {
            record: record.clone(),
            token,
            opened_at: self.state.now,
            assignees: record.assignees.clone(),
            answers: Vec::new(),
            deadline: None,
            escalated: false,
        };
        self.state.gates.insert(id, gate);
        self.start_gate_clock(id);
        if let Some(every) = record.remind_every_ms {
            self.state.timers.insert((self.state.now.plus(every), Timer::Reminder(id)));
        }
    }

    pub(super) fn start_gate_clock(&mut self, id: GateId) {
        let now = self.state.now;
        let gate = self.state.gates.get_mut(&id).expect("only an open gate has a clock");
        if let Some(timeout) = gate.record.timeout_ms {
            let deadline = now.plus(timeout);
            gate.deadline = Some(deadline);
            self.state.timers.insert((deadline, Timer::Gate(id)));
            self.state.timers.insert((now.plus(timeout.saturating_mul(4) / 5), Timer::GateWarning(id)));
        }
    }

    pub(super) fn stop_gate_clock(&mut self, id: GateId) {
        let of_gate = |timer: &Timer| matches!(timer, Timer::Gate(g) | Timer::GateWarning(g) if *g == id);
        self.state.timers.retain(|(_, timer)| !of_gate(timer));
    }

    pub(super) fn gate_answered(&mut self, id: GateId, by: &Name, answer: &Value, closes: bool) {
        let gate = self.state.gates.get_mut(&id).expect("only an open gate is answered");
        gate.answers.push((by.clone(), answer.clone()));
        if closes {
            self.gate_closed(id, by);
        }
    }

    pub(super) fn gate_closed(&mut self, id: GateId, by: &Name) {
        self.stop_gate_clock(id);
        self.state.timers.retain(|(_, timer)| *timer != Timer::Reminder(id));
        self.state.gates.remove(&id);
        self.state.gates_closed.insert(id, GateClosing { by: by.clone(), at: self.state.now });
    }

    pub(super) fn gate_reminded(&mut self, id: GateId) {
        self.state.timers.retain(|(_, timer)| *timer != Timer::Reminder(id));
        if let Some(every) = self.state.gates[&id].record.remind_every_ms {
            self.state.timers.insert((self.state.now.plus(every), Timer::Reminder(id)));
        }
    }

    pub(super) fn gate_reassigned(&mut self, id: GateId, assignees: &[Name]) {
        self.stop_gate_clock(id);
        let gate = self.state.gates.get_mut(&id).expect("only an open gate is passed on");
        gate.assignees = assignees.to_vec();
        gate.escalated = true;
        self.start_gate_clock(id);
    }

    pub(super) fn sleep_started(
        &mut self,
        token: TokenId,
        until: Time,
        deadline: Option<Time>,
        opened_with: &Option<OpenedWith>,
    ) {
        self.place(token, Place::Sleeping { until, deadline, opened_with: opened_with.clone() });
    }

    pub(super) fn event_awaited(&mut self, new: &EventWait) {
        let EventWait { token, event, key, deadline, opened_with } = new;
        let (event, key, opened_with) = (event.clone(), key.clone(), opened_with.clone());
        self.place(*token, Place::WaitingForEvent { event, key, deadline: *deadline, opened_with });
    }

    pub(super) fn event_received(
        &mut self,
        seq: u64,
        event: &Name,
        key: &Value,
        payload: &Value,
        token: Option<TokenId>,
    ) {
        if token.is_none() {
            let kept = KeptEvent { seq, event: event.clone(), key: key.clone(), payload: payload.clone() };
            self.state.events_kept.push_back(kept);
        }
    }

    pub(super) fn event_taken(&mut self, received: u64) {
        self.state.events_kept.retain(|kept| kept.seq != received);
    }

    pub(super) fn child_started(&mut self, new: &NewChild) {
        let NewChild { token, attempt, child, allowance, deadline, opened_with, .. } = new;
        let (child_id, opened_with) = (child.clone(), opened_with.clone());
        self.place(
            *token,
            Place::WaitingForSubworkflow { child: child_id, deadline: *deadline, opened_with },
        );
        let waiting = self.state.tokens.get_mut(token).expect("it was just placed");
        waiting.attempt = *attempt;
        let (node, reserved) = (waiting.node, allowance.unwrap_or_default());
        let out = Out { node, reserved, child: Some(child.clone()), downgrades: 0, wall_left_ms: None };
        self.state.child_orders.insert((*token, *attempt), new.clone());
        self.goes_out(*token, *attempt, out);
    }

    pub(super) fn child_completed(&mut self, token: TokenId, attempt: u32, spend: &Spend) {
        self.state.child_orders.remove(&(token, attempt));
        self.reported(token, attempt, &Report { spend: spend.clone(), ..Report::default() });
    }
}
