//! Ending things: one token, or the whole run, by failure, by an operator, or because nothing is left.

use crate::command::Command;
use crate::error::{ErrorKind, Failure};
use crate::event::{CancelReason, EventKind, GateId, TokenId};
use crate::expr::Scope;
use crate::input::{Operation, Rejection};
use crate::lifecycle::RunStatus;
use crate::limits::CANCEL_GRACE_MS;
use crate::scope::View;
use crate::state::{Closing, Place, Straggler};
use crate::task::{expression_error, violated};
use crate::value::Value;

use super::Decision;

impl Decision<'_> {
    /// Ends a token that is not wanted any more, and calls back what it had sent out.
    pub(super) fn cancel_token(&mut self, id: TokenId, reason: CancelReason) {
        let Some(token) = self.state().tokens.get(&id).filter(|token| token.is_live()) else { return };
        let (attempt, is_out) = (token.attempt, token.awaits(token.attempt));
        let gate = match token.place {
            Place::WaitingForHuman { gate, .. } | Place::Escalated { gate, .. } => Some(gate),
            _ => None,
        };
        if is_out {
            self.call_back(id, attempt);
        }
        if let Some(gate) = gate {
            self.close_gate(gate, "a cancelled node");
        }
        self.record(EventKind::TokenCancelled { token: id, reason, report: None });
    }

    /// Asks the host to stop a task or child, if it is out.
    pub(super) fn call_back(&mut self, id: TokenId, attempt: u32) {
        let Some(out) = self.state().out.get(&(id, attempt)) else { return };
        self.commands.push(match &out.child {
            Some(child) => Command::CancelChild { token: id, child: child.clone() },
            None => Command::CancelTask { token: id, attempt },
        });
    }

    pub(super) fn close_gate(&mut self, gate: GateId, by: &str) {
        if self.state().gates.contains_key(&gate) {
            self.record(EventKind::GateClosed { gate, by: by.into() });
            // A gate that opens and closes within one step is never shown.
            match self.commands.iter().position(|c| *c == Command::OpenGate { gate }) {
                Some(opening) => drop(self.commands.remove(opening)),
                None => self.request(Command::CloseGate { gate }),
            }
        }
    }

    /// Calls back everything that is out and closes every gate: the run is about to end.
    pub(super) fn call_everything_back(&mut self) {
        let out: Vec<(TokenId, u32)> = self.state().out.keys().copied().collect();
        for (id, attempt) in out {
            // What belongs to an ended token has been called back already.
            if self.state().tokens.get(&id).is_some_and(|t| t.awaits(attempt)) {
                self.call_back(id, attempt);
            }
        }
        let gates: Vec<GateId> = self.state().gates.keys().copied().collect();
        for gate in gates {
            self.close_gate(gate, "the end of the run");
        }
    }

    pub(super) fn fail_run(&mut self, failure: Failure) {
        self.call_everything_back();
        self.record(EventKind::RunFailed { failure });
    }

    pub(super) fn cancel(&mut self, reason: String, grace_ms: Option<u64>) -> Result<(), Rejection> {
        self.must_be(Operation::Cancel, &[RunStatus::Queued, RunStatus::Running, RunStatus::Paused])?;
        self.begin_cancelling(reason, grace_ms);
        Ok(())
    }

    pub(super) fn begin_cancelling(&mut self, reason: String, grace_ms: Option<u64>) {
        let deadline = self.now.plus(grace_ms.unwrap_or(CANCEL_GRACE_MS));
        self.call_everything_back();
        self.record(EventKind::RunCancelling { reason, deadline });
        self.finish_cancelling();
    }

    pub(super) fn kill(&mut self, reason: String) -> Result<(), Rejection> {
        self.must_be(
            Operation::Kill,
            &[RunStatus::Queued, RunStatus::Running, RunStatus::Paused, RunStatus::Cancelling],
        )?;
        self.call_everything_back();
        self.record(EventKind::RunCancelled { reason });
        Ok(())
    }

    pub(super) fn must_be(&self, operation: Operation, allowed: &[RunStatus]) -> Result<(), Rejection> {
        let status = self.state().status;
        if allowed.contains(&status) { Ok(()) } else { Err(Rejection::WrongStatus { status, operation }) }
    }

    /// A run on its way out is gone when the last live token is.
    pub(super) fn finish_cancelling(&mut self) {
        let counts = &self.state().token_counts;
        let left = counts.live + counts.abandoned + counts.late;
        if self.state().status == RunStatus::Cancelling && left == 0 {
            self.record(EventKind::RunCancelled { reason: self.cancel_reason() });
        }
    }

    /// What was said when the cancelling began.
    pub(super) fn cancel_reason(&self) -> String {
        match &self.state().closing {
            Some(Closing::Cancelled(reason)) => reason.clone(),
            _ => String::new(),
        }
    }

    /// Nothing is live: the run is complete, or was it?
    pub(super) fn finish_if_done(&mut self) {
        let counts = &self.state().token_counts;
        if !self.is_open() || counts.live > 0 || counts.abandoned > 0 {
            return;
        }
        let late: Vec<TokenId> =
            self.run.tokens().filter(|t| t.straggler == Some(Straggler::Late)).map(|t| t.id).collect();
        for id in late {
            self.cancel_token(id, CancelReason::Straggler);
        }
        if let Some(failure) = self.state().failed_with.clone() {
            return self.fail_run(failure);
        }
        match self.run_output() {
            Ok(output) => {
                self.call_everything_back();
                self.record(EventKind::RunCompleted { output });
            }
            Err(failure) => self.fail_run(failure),
        }
    }

    /// `output_mapping` laid over `output`; else the results of the nodes that ended it.
    fn run_output(&self) -> Result<Value, Failure> {
        let graph = self.run.graph();
        let view = View::of_run(self.state(), graph);
        let written = &self.state().output;
        let output = match &graph.output_mapping {
            Some(mapping) => {
                let mapped = mapping.eval(&view).map_err(|error| {
                    let mut failure = expression_error(error);
                    failure.message = format!("output mapping of the workflow: {}", failure.message);
                    failure
                })?;
                lay_over(written, mapped)
            }
            None if !written.is_null() => written.clone(),
            None => self.default_output(),
        };
        if let Some(schema) = &graph.output_schema {
            violated("the output of the run", schema.check(&output))?;
        }
        if let Some(schema) = &graph.context_schema {
            violated(
                "the state at the end of the run",
                schema.check(&view.read("state", &[]).unwrap_or_default()),
            )?;
        }
        Ok(output)
    }

    fn default_output(&self) -> Value {
        let (graph, state) = (self.run.graph(), self.state());
        if graph.is_dag() {
            let units = graph.units.iter().zip(&state.units);
            let sinks = units.filter(|(unit, _)| unit.dependents.is_empty());
            return Value::map(sinks.map(|(unit, state)| (unit.reference.clone(), state.result.clone())));
        }
        if state.ends.by_ref.is_empty() {
            return state.ends.last.clone();
        }
        Value::from(state.ends.by_ref.clone())
    }

    /// The workflow's own time is over, by `cancel_all`.
    pub(super) fn time_out_run(&mut self, message: String) {
        self.call_everything_back();
        self.record(EventKind::RunTimedOut { failure: Failure::new(ErrorKind::Timeout, message) });
    }
}

fn lay_over(below: &Value, above: Value) -> Value {
    match (below.as_map(), above.as_map()) {
        (Some(below), Some(above)) => {
            let mut all = below.clone();
            all.extend(above.iter().map(|(key, value)| (key.clone(), value.clone())));
            Value::from(all)
        }
        _ => above,
    }
}
