//! `Wake`: deadlines that have passed, in order of deadline, the workflow's first, then by token.

use crate::command::Command;
use crate::def::{OnExceeded, WorkflowTimeout};
use crate::error::{ErrorKind, Failure};
use crate::event::{
    Clocked, EventKind, GateKind, GateRecord, PauseReason, TimeoutPolicy, TimeoutType, TokenId,
};
use crate::input::Rejection;
use crate::lifecycle::TokenStatus;
use crate::state::Timer;

use super::Decision;

impl Decision<'_> {
    pub(super) fn wake(&mut self) -> Result<(), Rejection> {
        if self.due().is_none() {
            return Err(Rejection::NothingDue { next: self.run.next_deadline() });
        }
        while let Some((at, timer)) = self.due() {
            self.expire(timer);
            // Every expiry moves something that takes its timer with it.
            assert!(!self.state().timers.contains(&(at, timer)), "{timer:?} is still due after it expired");
            // A fan-in that this made ready comes before the next deadline.
            while let Some(group) = self.run.take_touched() {
                if self.is_open() {
                    self.judge(group);
                }
            }
        }
        Ok(())
    }

    fn due(&self) -> Option<(crate::time::Time, Timer)> {
        self.state().timers.first().copied().filter(|(at, _)| *at <= self.now)
    }

    fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::Workflow => self.workflow_expired(),
            Timer::WorkflowWarning => {
                let clock = &self.state().clock;
                let (elapsed_ms, timeout_ms) = (clock.elapsed_ms(self.now), clock.limit_ms);
                self.record(EventKind::TimeoutWarning { of: Clocked::Workflow, elapsed_ms, timeout_ms });
            }
            Timer::Wall => self.wall_expired(),
            Timer::WallWarning => {
                let spent = self.state().spend.clone();
                self.record(EventKind::BudgetWarning { node: None, spent });
            }
            Timer::CancelGrace => self.record(EventKind::RunCancelled { reason: self.cancel_reason() }),
            Timer::Continue => self.record(EventKind::RunContinued),
            Timer::Token(id) => self.token_expired(id),
            Timer::FanIn(group) => self.fan_in_expired(group),
            Timer::FanInWarning(group) => {
                let state = &self.state().groups[&group];
                let elapsed_ms = state.first_arrival.map_or(0, |first| self.now.since(first));
                let timeout_ms = state.timeout_ms.unwrap_or(0);
                self.record(EventKind::TimeoutWarning { of: Clocked::FanIn(group), elapsed_ms, timeout_ms });
            }
            Timer::Gate(gate) => self.gate_expired(gate),
            Timer::GateWarning(gate) => {
                let state = &self.state().gates[&gate];
                let timeout_ms = state.record.timeout_ms.unwrap_or(0);
                let left = state.deadline.map_or(0, |deadline| deadline.since(self.now));
                let elapsed_ms = timeout_ms.saturating_sub(left);
                self.record(EventKind::TimeoutWarning { of: Clocked::Gate(gate), elapsed_ms, timeout_ms });
            }
            Timer::Reminder(gate) => {
                self.record(EventKind::GateReminded { gate });
                self.request(Command::RemindGate { gate });
            }
        }
    }

    fn token_expired(&mut self, id: TokenId) {
        match self.token(id).status() {
            TokenStatus::Retrying => self.back_from_backoff(id),
            TokenStatus::Sleeping => self.slept(id),
            TokenStatus::WaitingForEvent => self.event_expired(id),
            TokenStatus::WaitingForSubworkflow => self.child_expired(id),
            status => unreachable!("a token that is {status} has no deadline"),
        }
    }

    fn workflow_expired(&mut self) {
        let graph = self.graph();
        let timeout_ms = self.state().clock.limit_ms;
        let policy_applied = match graph.on_timeout {
            WorkflowTimeout::HumanGate => TimeoutPolicy::HumanGate,
            WorkflowTimeout::CancelAll => TimeoutPolicy::CancelAll,
            WorkflowTimeout::Fail => TimeoutPolicy::Fail,
        };
        let live: Vec<TokenId> = self.run.tokens().filter(|token| token.is_live()).map(|t| t.id).collect();
        for token in live {
            let node = graph.written_ref(self.node_of(token)).clone();
            self.record(EventKind::TokenTimedOut {
                token: Some(token),
                workflow_run_id: self.run_id(),
                node: Some(node),
                timeout_type: TimeoutType::Workflow,
                timeout_duration_ms: timeout_ms,
                policy_applied,
                ends: false,
            });
        }
        let message = format!("the workflow did not end within {timeout_ms} ms");
        match graph.on_timeout {
            WorkflowTimeout::HumanGate => self.ask_to_extend(message),
            WorkflowTimeout::CancelAll => self.time_out_run(message),
            WorkflowTimeout::Fail => self.fail_run(Failure::new(ErrorKind::Timeout, message)),
        }
    }

    fn ask_to_extend(&mut self, message: String) {
        let gate = self.next_gate();
        let record = GateRecord {
            body: Some(message),
            form: super::gate::form(GateKind::Timeout),
            ..GateRecord::new(GateKind::Timeout, "The workflow's time is over")
        };
        self.record(EventKind::GateOpened {
            gate,
            token: None,
            record: Box::new(record),
            report: None,
            opened_with: None,
        });
        self.request(Command::OpenGate { gate });
        self.pause_for(PauseReason::Timeout(gate), "timeout");
    }

    fn wall_expired(&mut self) {
        let message = "the time that the budget allows is over".to_owned();
        self.say_exceeded(None, None, message.clone());
        match self.graph().budget.map(|budget| budget.on_exceeded) {
            Some(OnExceeded::Fail) => self.fail_run(Failure::new(ErrorKind::BudgetExceeded, message)),
            _ => self.ask_for_budget(None, None, message),
        }
    }
}
