//! What the coordinator performs itself: a pending token at such a node is moved on here, without a worker.

use std::sync::Arc;

use crate::command::Command;
use crate::def::OnFailure;
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, GateKind, GateRecord, OpenedWith, TimeoutPolicy, TimeoutType, TokenId};
use crate::graph::{Coordinated, GateSpec, Node, Perform, SleepSpec, Task, WriteTo};
use crate::input::{ContinuedStep, TaskOutcome};
use crate::path::Root;
use crate::schema::Schema;
use crate::scope::{Around, Pending};
use crate::state::Place;
use crate::task::{ActionCall, Ask, TaskMachine, check, expression_error};
use crate::template::{Budget, Template};
use crate::time::{Time, parse_duration_ms};
use crate::value::Value;

use super::Decision;
use super::complete::How;
use super::fail::Failed;

impl Decision<'_> {
    pub(super) fn enter(&mut self, id: TokenId) {
        if self.held_back(id) {
            return;
        }
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let done = match &node.perform {
            Perform::Worker(_) => Ok(()),
            Perform::Pass => {
                let carried = self.token(id).carried.clone();
                self.complete(id, carried, None, How::Completed);
                Ok(())
            }
            Perform::Review => {
                self.open_result_review(id, node);
                Ok(())
            }
            Perform::Coordinator { task, inline } => self.perform(id, node, task, *inline),
        };
        if let Err(failed) = done {
            self.fail(id, failed);
        }
    }

    #[expect(
        clippy::result_large_err,
        reason = "a failure on its way to be recorded; it is made once and moved"
    )]
    fn perform(&mut self, id: TokenId, node: &Node, task: &Arc<Task>, inline: bool) -> Result<(), Failed> {
        match task.steps.first().and_then(|step| step.action.coordinated.as_ref()) {
            Some(Coordinated::UpdateContext { set }) if inline => return self.update_context(id, set),
            Some(Coordinated::Assert(assertion)) if inline => {
                // The message is a template over the same scope as the test.
                let reads = assertion.message.as_ref().map(|m| m.reads().to_vec()).unwrap_or_default();
                let texts = crate::scope::named(&reads, &self.view(id));
                check(assertion, &self.view(id), &texts).map_err(Failed::of)?;
                self.complete(id, Value::Null, None, How::Completed);
                return Ok(());
            }
            _ => {}
        }
        let input = self.task_input(id, node).map_err(Failed::of)?;
        let mut machine = self.machine(id, task, input.clone());
        match machine.ask() {
            Ask::Done(outcome) => {
                self.say_continued(id, machine.into_continued());
                self.task_ended(id, outcome)
            }
            Ask::Perform(call) => {
                if let Err(failure) = self.begin(id, node, &call, OpenedWith { input: input.clone() }) {
                    self.wait_failed(id, OpenedWith { input }, Failed::of(failure));
                }
                Ok(())
            }
        }
    }

    fn machine(&self, id: TokenId, task: &Arc<Task>, input: Value) -> TaskMachine {
        let token = self.token(id);
        TaskMachine::start(task.clone(), input, token.feedback.clone(), token.overrides.clone())
    }

    #[expect(
        clippy::result_large_err,
        reason = "a failure on its way to be recorded; it is made once and moved"
    )]
    fn task_ended(&mut self, id: TokenId, outcome: TaskOutcome) -> Result<(), Failed> {
        match outcome {
            TaskOutcome::Completed { result } => {
                self.complete(id, result, None, How::Completed);
                Ok(())
            }
            TaskOutcome::Failed { failure, retry, step } => {
                Err(Failed { retry, step, ..Failed::of(failure) })
            }
            TaskOutcome::TimedOut { .. } | TaskOutcome::NotTaken { .. } | TaskOutcome::Cancelled => {
                let message = "a pure task can neither time out nor be cancelled";
                Err(Failed::of(Failure::new(ErrorKind::Internal, message)))
            }
        }
    }

    /// What a coordinated action waited for has come: the rest of its task, then the node.
    pub(super) fn waited(&mut self, id: TokenId, result: Result<Value, Failed>) {
        let opened_with = match self.token(id).place.opened_with() {
            Some(opened_with) => opened_with.clone(),
            None => self.mapped_now(id),
        };
        match result {
            Ok(result) => self.answer_wait(id, opened_with, Ok(result)),
            Err(failed) => self.wait_failed(id, opened_with, failed),
        }
    }

    /// A wait failed: its step says what that means for the task.
    fn wait_failed(&mut self, id: TokenId, opened_with: OpenedWith, failed: Failed) {
        let graph = self.graph();
        let task = graph.node(self.node_of(id)).task();
        let Some(step) = task.and_then(|task| task.steps.first()) else { return self.fail(id, failed) };
        match step.on_failure {
            OnFailure::Abort => self.fail(id, failed),
            OnFailure::Retry => {
                self.fail(id, Failed { retry: true, step: Some(step.reference.clone()), ..failed });
            }
            OnFailure::Continue => {
                self.say_timed_out(id, &failed, TimeoutPolicy::Continue);
                self.answer_wait(id, opened_with, Err(failed.failure));
            }
        }
    }

    /// For a wait in a log that does not say what it was opened with. What cannot be mapped any more is null:
    /// an answer that was accepted is not lost for that.
    fn mapped_now(&self, id: TokenId) -> OpenedWith {
        let graph = self.graph();
        let input = self.task_input(id, graph.node(self.node_of(id))).unwrap_or_default();
        OpenedWith { input }
    }

    /// How a wait ended meets what it was opened with. Nothing here asks again whether to wait.
    pub(super) fn answer_wait(&mut self, id: TokenId, with: OpenedWith, answer: Result<Value, Failure>) {
        let graph = self.graph();
        let Perform::Coordinator { task, .. } = &graph.node(self.node_of(id)).perform else {
            return match answer {
                Ok(answer) => self.complete(id, answer, None, How::Completed),
                Err(failure) => self.fail(id, Failed::of(failure)),
            };
        };
        let token = self.token(id);
        let (feedback, overrides) = (token.feedback.clone(), token.overrides.clone());
        let mut machine = TaskMachine::answered(task.clone(), with.input, feedback, overrides, answer);
        let ended = match machine.ask() {
            Ask::Done(outcome) => outcome,
            Ask::Perform(_) => {
                let message = "a task with a wait in it has more steps";
                let failure = Failure::new(ErrorKind::Internal, message);
                TaskOutcome::Failed { failure, retry: false, step: None }
            }
        };
        for ContinuedStep { step, failure } in machine.into_continued() {
            self.say_step_failed(id, step, failure);
        }
        if let Err(failed) = self.task_ended(id, ended) {
            self.fail(id, failed);
        }
    }

    /// `update_context` on the node itself: the run's scope, in order, each seeing those before it.
    #[expect(
        clippy::result_large_err,
        reason = "a failure on its way to be recorded; it is made once and moved"
    )]
    fn update_context(&mut self, id: TokenId, set: &[WriteTo]) -> Result<(), Failed> {
        let mut pending: Vec<Pending> = Vec::new();
        let mut values = Value::empty_map();
        for write in set {
            let value = write.value.eval(&self.view(id).with_pending(&pending)).map_err(|error| {
                let mut failure = expression_error(error);
                failure.message = format!("set {}: {}", write.target, failure.message);
                Failed::of(failure)
            })?;
            let key: Vec<_> = match write.target.root {
                Root::State | Root::Branch => write.target.path.clone(),
                Root::Output => {
                    std::iter::once("output".into()).chain(write.target.path.iter().cloned()).collect()
                }
            };
            values.set_path(&key, value.clone());
            pending.push(Pending { to: write.target.clone(), value });
        }
        self.check_writes(self.token(id).branch, &pending).map_err(Failed::of)?;
        let patches = pending
            .into_iter()
            .map(|p| crate::event::Patch { to: p.to, value: crate::event::PatchValue::Value(p.value) })
            .collect();
        self.record(EventKind::ContextUpdated { token: id, patches });
        self.complete(id, values, None, How::Completed);
        Ok(())
    }

    /// Starts a wait: a gate, a sleep, an event, a child.
    fn begin(
        &mut self,
        id: TokenId,
        node: &Node,
        call: &ActionCall,
        with: OpenedWith,
    ) -> Result<(), Failure> {
        match &call.action.coordinated {
            Some(Coordinated::HumanGate(gate)) => {
                let form = self.gate_form(id, gate, &call.scope)?;
                let record = GateRecord { form, ..gate_record(node, gate, &call.scope)? };
                self.ask(id, record, Some(with));
                Ok(())
            }
            Some(Coordinated::Sleep(sleep)) => self.sleep(id, node, (sleep, call), with),
            Some(Coordinated::WaitEvent(wait)) => self.await_event(id, node, wait, &call.scope, with),
            Some(Coordinated::WorkflowCall(child)) => self.start_child(id, node, child, call, with),
            _ => Err(Failure::new(ErrorKind::Internal, "this action is a worker's")),
        }
    }

    /// What an answer has to fit: as it is written, or as an expression says it now. What is no schema is refused here,
    /// before anybody is asked.
    fn gate_form(&self, id: TokenId, gate: &GateSpec, scope: &Value) -> Result<Value, Failure> {
        let Some(expr) = &gate.form_from else {
            return Ok(gate.form.as_ref().map_or(Value::Null, |form| form.doc().clone()));
        };
        let around = Around { near: scope, far: self.view(id) };
        let form = expr.eval(&around).map_err(expression_error)?;
        if !form.is_null() {
            Schema::compile(&form).map_err(|why| {
                let message = format!("`form`: `{}` gives no JSON Schema: {why}", expr.text());
                Failure::new(ErrorKind::ContractViolation, message)
            })?;
        }
        Ok(form)
    }

    fn open_result_review(&mut self, id: TokenId, node: &Node) {
        let about = node.stands_for.map(|n| self.graph().node(n).reference.clone());
        let about = about.unwrap_or_else(|| node.reference.clone());
        let record = GateRecord {
            body: Some(self.token(id).carried.to_string()),
            form: super::gate::review_form(),
            ..GateRecord::new(GateKind::Node, format!("Review the result of {about}"))
        };
        self.ask(id, record, None);
    }

    fn ask(&mut self, id: TokenId, record: GateRecord, opened_with: Option<OpenedWith>) {
        let (gate, record) = (self.next_gate(), Box::new(record));
        self.record(EventKind::GateOpened { gate, token: Some(id), record, report: None, opened_with });
        self.request(Command::OpenGate { gate });
    }

    fn sleep(
        &mut self,
        id: TokenId,
        node: &Node,
        (sleep, call): (&SleepSpec, &ActionCall),
        with: OpenedWith,
    ) -> Result<(), Failure> {
        let scope = &call.scope;
        let until = match sleep {
            SleepSpec::For(template) => {
                let text = template.render(scope).map_err(expression_error)?;
                let Some(ms) = parse_duration_ms(&text) else {
                    let message = format!("sleep for `{text}`: expected a duration such as 30s or 1h30m");
                    return Err(Failure::new(ErrorKind::ExpressionError, message));
                };
                self.now.plus(ms)
            }
            SleepSpec::Until(expr) => {
                let around = Around { near: scope, far: self.view(id) };
                time_of(&expr.eval(&around).map_err(expression_error)?)?
            }
        };
        if until <= self.now {
            self.answer_wait(id, with, Ok(Value::Null));
        } else {
            let given = node.timeout_ms.or(call.action.def.execution.timeout_ms);
            let deadline = given.map(|ms| self.now.plus(ms)).filter(|deadline| *deadline < until);
            let opened_with = Some(with);
            self.record(EventKind::SleepStarted { token: id, until, deadline, opened_with });
        }
        Ok(())
    }

    /// A sleep is over, or the time that its node gives it.
    pub(super) fn slept(&mut self, id: TokenId) {
        let Place::Sleeping { deadline: Some(_), .. } = self.token(id).place else {
            return self.waited(id, Ok(Value::Null));
        };
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let of_action = || node.task()?.steps.first()?.action.def.execution.timeout_ms;
        let after_ms = node.timeout_ms.or_else(of_action).unwrap_or(0);
        let message = format!("it would have slept longer than {after_ms} ms");
        let failure = Failure::new(ErrorKind::Timeout, message).with_timeout_ms(after_ms);
        self.waited(id, Err(Failed { expired: Some((TimeoutType::Task, after_ms)), ..Failed::of(failure) }));
    }
}

/// What a gate says, rendered here because the gate is recorded here. All its texts share one budget, so that a gate
/// holds the coordinator up no longer than one template can.
fn gate_record(node: &Node, spec: &GateSpec, scope: &Value) -> Result<GateRecord, Failure> {
    let mut budget = Budget::default();
    let mut text = |template: &Template| template.render_within(scope, &mut budget).map_err(expression_error);
    let mut names = |templates: &[Template]| {
        templates.iter().map(|t| Ok(text(t)?.into())).collect::<Result<Vec<_>, Failure>>()
    };
    let (assignees, escalate) = (names(&spec.assignees)?, names(&spec.escalate)?);
    Ok(GateRecord {
        body: spec.body.as_ref().map(&mut text).transpose()?,
        assignees,
        quorum: spec.quorum,
        timeout_ms: spec.timeout_ms.or(node.timeout_ms),
        remind_every_ms: spec.remind_every_ms,
        escalate,
        ..GateRecord::new(GateKind::Node, text(&spec.title)?)
    })
}

fn time_of(value: &Value) -> Result<Time, Failure> {
    let time = match value {
        Value::Int(ms) => Some(Time(*ms)),
        Value::String(text) => Time::parse(text),
        _ => None,
    };
    time.ok_or_else(|| {
        let message =
            format!("sleep until {value}: expected a time such as 2026-01-31T09:00:00Z, or milliseconds");
        Failure::new(ErrorKind::ExpressionError, message)
    })
}
