//! `GateAnswered`, and what each sort of gate does with its answer.

use crate::command::{Command, InputAnswer};
use crate::def::{GateTimeout, Name};
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, GateId, GateKind, PauseReason, TimeoutPolicy, TimeoutType, TokenId};
use crate::graph::{Coordinated, GateSpec, Perform};
use crate::input::{Limit, Rejection};
use crate::schema::Schema;
use crate::value::Value;

use super::Decision;
use super::complete::How;
use super::fail::Failed;

impl Decision<'_> {
    pub(super) fn gate_answered(&mut self, id: GateId, answer: Value, by: Name) -> Result<(), Rejection> {
        let Some(gate) = self.state().gates.get(&id) else {
            return Err(match self.state().gates_closed.get(&id) {
                Some(closing) => Rejection::GateClosed { gate: id, by: closing.by.clone(), at: closing.at },
                None => Rejection::NoSuchGate { gate: id },
            });
        };
        check_form(&gate.record.form, &answer)
            .map_err(|violations| Rejection::BadAnswer { gate: id, violations })?;
        if gate.answers.iter().any(|(who, _)| *who == by) {
            return Err(Rejection::AnsweredAlready { gate: id, by });
        }
        let max = self.state().start.as_ref().map_or(u64::MAX, |start| start.limits.result_bytes_max);
        if self.check_size(&answer).is_err() {
            return Err(Rejection::LimitExceeded { limit: Limit::ResultBytesMax, max });
        }
        let (kind, token) = (gate.record.kind, gate.token);
        let of = (gate.record.budget_of.clone(), gate.record.of_parent);
        let mut answers: Vec<Value> = gate.answers.iter().map(|(_, answer)| answer.clone()).collect();
        answers.push(answer.clone());
        let quorum = gate.record.quorum;
        let closes = quorum.is_none_or(|quorum| answers.len() >= quorum as usize);
        self.record(EventKind::GateAnswered { gate: id, by: by.clone(), answer: answer.clone(), closes });
        if !closes {
            return Ok(());
        }
        self.request(Command::CloseGate { gate: id });
        match (kind, token) {
            (GateKind::Node, Some(token)) => {
                let result = if quorum.is_some() { Value::from(answers) } else { answer };
                self.node_gate_answered(token, result);
            }
            (GateKind::Review, Some(token)) => self.review_answered(id, token, &answer, by),
            (GateKind::Outcome, Some(token)) => self.outcome_answered(token, &answer),
            (GateKind::Input, Some(token)) => self.input_answered(id, token, answer, by),
            (GateKind::Timeout, _) => self.timeout_answered(id, &answer, by),
            (GateKind::Budget, _) => self.budget_answered(id, of, &answer, by),
            (GateKind::Node | GateKind::Review | GateKind::Outcome | GateKind::Input, None) => {}
        }
        Ok(())
    }

    fn node_gate_answered(&mut self, token: TokenId, answer: Value) {
        let is_review = matches!(self.graph().node(self.node_of(token)).perform, Perform::Review);
        if is_review && answer.get("ok") == Some(&Value::Bool(false)) {
            let said =
                answer.get("comment").and_then(Value::as_str).unwrap_or("no reason was given").to_owned();
            let failure = Failure::new(ErrorKind::AssertionFailed, format!("refused in review: {said}"));
            return self.waited(token, Err(Failed::of(failure)));
        }
        self.waited(token, Ok(answer));
    }

    fn review_answered(&mut self, gate: GateId, token: TokenId, answer: &Value, by: Name) {
        match answer.get("action").and_then(Value::as_str) {
            Some("skip") => {
                let output = answer.get("output").cloned().unwrap_or_default();
                self.resume_after(PauseReason::Response(gate), by);
                self.complete(token, output, None, How::Skipped(self.escalated_failure(token)));
            }
            Some("retry") => {
                let state = self.token(token);
                let (mut generation, mut overrides) = (state.generation, state.overrides.clone());
                if let Some(input) = answer.get("input").filter(|input| !input.is_null()) {
                    overrides.input = input.clone();
                    generation += 1;
                }
                self.resume_after(PauseReason::Response(gate), by);
                self.record(EventKind::TokenReleased { token, generation, overrides, resumed: false });
            }
            // The form allows only these three: a human who cancels a node aborts the run.
            _ => self.begin_cancelling(format!("cancelled in review by {by}"), None),
        }
    }

    /// The task runs again and means the same, so that its generation stays.
    fn input_answered(&mut self, gate: GateId, token: TokenId, answer: Value, by: Name) {
        let asked = self.escalated_failure(token).map(|failure| failure.details).unwrap_or_default();
        let state = self.token(token);
        let (generation, mut overrides) = (state.generation, state.overrides.clone());
        overrides.answers.push(InputAnswer { asked, answer });
        self.resume_after(PauseReason::Response(gate), by);
        self.record(EventKind::TokenReleased { token, generation, overrides, resumed: false });
    }

    fn escalated_failure(&self, token: TokenId) -> Option<Failure> {
        match &self.token(token).place {
            crate::state::Place::Escalated { failure, .. } => Some(failure.clone()),
            _ => None,
        }
    }

    fn outcome_answered(&mut self, token: TokenId, answer: &Value) {
        let state = self.token(token);
        let (generation, overrides) = (state.generation, state.overrides.clone());
        let failure = self.escalated_failure(token);
        let action = answer.get("action").and_then(Value::as_str).unwrap_or("fail").to_owned();
        let resumed = action != "again";
        self.record(EventKind::TokenReleased { token, generation, overrides, resumed });
        match action.as_str() {
            "again" => {}
            "done" => {
                let output = answer.get("output").cloned().unwrap_or_default();
                self.complete(token, output, None, How::Completed);
            }
            _ => {
                let unknown = Failure::new(ErrorKind::OutcomeUnknown, "somebody said that it failed");
                self.fail_unhandled(token, Failed::of(failure.unwrap_or(unknown)));
            }
        }
    }

    fn timeout_answered(&mut self, gate: GateId, answer: &Value, by: Name) {
        if answer.get("action").and_then(Value::as_str) != Some("extend") {
            return self.time_out_run(format!("the workflow's time was over and {by} did not extend it"));
        }
        let asked = match answer.get("by") {
            Some(Value::Int(ms)) => u64::try_from(*ms).ok(),
            Some(Value::String(text)) => crate::time::parse_duration_ms(text),
            _ => None,
        };
        let by_ms = asked.filter(|ms| *ms > 0).unwrap_or(self.graph().timeout_ms);
        self.record(EventKind::WorkflowExtended { by_ms });
        self.resume_after(PauseReason::Timeout(gate), by);
    }

    fn budget_answered(
        &mut self,
        gate: GateId,
        (node, of_parent): (Option<Name>, bool),
        answer: &Value,
        by: Name,
    ) {
        if answer.get("action").and_then(Value::as_str) != Some("raise") {
            let message = format!("the budget was spent and {by} did not raise it");
            return self.fail_run(Failure::new(ErrorKind::BudgetExceeded, message));
        }
        let asked = answer.get("usd").and_then(Value::as_f64).filter(|usd| *usd > 0.0);
        // Dollars with cents and less are far inside what a double holds exactly enough.
        let asked = asked.map(|usd| (usd * 1_000_000.0).round() as u64);
        self.raise_budget(node, of_parent, asked);
        self.resume_after(PauseReason::Budget(gate), by);
    }

    /// A gate's own time is over.
    pub(super) fn gate_expired(&mut self, id: GateId) {
        let gate = &self.state().gates[&id];
        let (token, timeout_ms, escalated) =
            (gate.token, gate.record.timeout_ms.unwrap_or(0), gate.escalated);
        let to = gate.record.escalate.clone();
        let Some(token) = token else { return self.close_gate(id, "its timeout") };
        let (policy, default) = self.gate_policy(token);
        let failure = Failure::new(ErrorKind::Timeout, format!("nobody answered within {timeout_ms} ms"));
        let failed = Failed { expired: Some((TimeoutType::Execution, timeout_ms)), ..Failed::of(failure) };
        match policy {
            GateTimeout::Escalate if !escalated && !to.is_empty() => {
                self.say_timed_out(token, &failed, TimeoutPolicy::Escalate);
                self.record(EventKind::GateReassigned { gate: id, assignees: to });
                self.request(Command::OpenGate { gate: id });
            }
            GateTimeout::Default => {
                self.say_timed_out(token, &failed, TimeoutPolicy::Default);
                self.close_gate(id, "its timeout");
                self.waited(token, Ok(default));
            }
            GateTimeout::Fail | GateTimeout::Escalate => {
                self.close_gate(id, "its timeout");
                self.waited(token, Err(failed));
            }
        }
    }

    fn gate_policy(&self, token: TokenId) -> (GateTimeout, Value) {
        let spec: Option<&GateSpec> = match &self.run.graph().node(self.node_of(token)).perform {
            Perform::Coordinator { task, .. } => {
                match task.steps.first().and_then(|s| s.action.coordinated.as_ref()) {
                    Some(Coordinated::HumanGate(spec)) => Some(spec),
                    _ => None,
                }
            }
            _ => None,
        };
        spec.map_or((GateTimeout::Fail, Value::Null), |spec| (spec.on_timeout, spec.default.clone()))
    }
}

/// The form that a task brought which wants to know something; one that is no schema would take no answer at all.
pub(super) fn form_asked(asked: &Value) -> Value {
    let form = asked.get("form").cloned().unwrap_or_default();
    if Schema::compile(&form).is_ok() { form } else { Value::Null }
}

fn check_form(form: &Value, answer: &Value) -> Result<(), Vec<String>> {
    if form.is_null() {
        return Ok(());
    }
    // A form was compiled when its definition was checked; gates are answered seldom enough to do it again.
    let schema = Schema::compile(form).map_err(|error| vec![error])?;
    schema.check(answer).map_err(|violations| violations.iter().map(ToString::to_string).collect())
}

/// The forms of the gates that the core opens by itself.
pub(super) fn form(kind: GateKind) -> Value {
    let form = match kind {
        GateKind::Node | GateKind::Input => return Value::Null,
        GateKind::Review => {
            r#"{"type":"object","required":["action"],"additionalProperties":false,"properties":{
                "action":{"enum":["retry","skip","cancel"]},"input":{},"output":{}}}"#
        }
        GateKind::Timeout => {
            r#"{"type":"object","required":["action"],"additionalProperties":false,"properties":{
                "action":{"enum":["extend","abort"]},"by":{"type":["string","integer"]}}}"#
        }
        GateKind::Budget => {
            r#"{"type":"object","required":["action"],"additionalProperties":false,"properties":{
                "action":{"enum":["raise","abort"]},"usd":{"type":"number","exclusiveMinimum":0}}}"#
        }
        GateKind::Outcome => {
            r#"{"type":"object","required":["action"],"additionalProperties":false,"properties":{
                "action":{"enum":["done","again","fail"]},"output":{}}}"#
        }
    };
    Value::from_json_str(form).expect("the form above is JSON")
}

pub(super) fn review_form() -> Value {
    let form = r#"{"type":"object","required":["ok"],"additionalProperties":false,"properties":{
        "ok":{"type":"boolean"},"comment":{"type":"string"}}}"#;
    Value::from_json_str(form).expect("the form above is JSON")
}
