//! A task as a pure machine: the steps of one worker, without the worker.
//!
//! It keeps `{input, state, output}` in memory, decides conditions, maps in and out, performs
//! `update_context` and `assert` itself, and asks for every other action. Whoever drives it performs the
//! actions, keeps the clock and counts the tries: a worker, the simulator, or the coordinator for a task
//! that is one gate, sleep, wait or call. It retries nothing: a retry is a new machine.

use std::sync::Arc;

use crate::command::Overrides;
use crate::def::{ModelProfile, Name, OnFailure, StepVerdict};
use crate::error::{ErrorKind, Failure};
use crate::expr::{EvalError, Scope};
use crate::graph::tools::Offer;
use crate::graph::{Action, Assertion, AssertionTest, Coordinated, Step, StepInput, Task, Work, WriteTo};
use crate::input::{ContinuedStep, TaskOutcome};
use crate::path::Root;
use crate::schema::{Schema, Violation};
use crate::scope::{Roots, named};
use crate::value::{Map, Value};

#[derive(Clone, Debug)]
pub struct TaskMachine {
    task: Arc<Task>,
    step: usize,
    /// The roots that expressions see: `input`, `state`, `output`, `result`.
    context: Value,
    overrides: Overrides,
    wrote_output: bool,
    asked: bool,
    /// Steps that failed, and the task went on.
    continued: Vec<ContinuedStep>,
    done: Option<TaskOutcome>,
}

#[derive(Clone, Debug)]
pub enum Ask {
    Perform(Box<ActionCall>),
    Done(TaskOutcome),
}

#[derive(Clone, Debug)]
pub struct ActionCall {
    pub step: Name,
    /// Which of the calls that its step makes: 0 is the step's own, further ones are those of its tools.
    pub number: u32,
    pub action: Arc<Action>,
    pub input: Value,
    /// What the action's templates and expressions see: the keys of its input, and `input`.
    pub scope: Value,
    pub overrides: Overrides,
}

impl ActionCall {
    /// The model profile that the call uses, with what responses to failures changed; None if it names
    /// none, or is no model call.
    pub fn profile(&self) -> Option<(&Name, &ModelProfile)> {
        let Some(Work::LlmCall(call)) = &self.action.work else { return None };
        call.profile(self.overrides.model.as_ref(), self.overrides.downgrades)
    }

    /// What the call offers its model, with what responses to failures changed.
    pub fn offers(&self) -> Vec<Offer> {
        let Some(Work::LlmCall(call)) = &self.action.work else { return Vec::new() };
        call.offers(self.overrides.tools.as_deref())
    }
}

impl TaskMachine {
    pub fn start(task: Arc<Task>, input: Value, feedback: Value, overrides: Overrides) -> TaskMachine {
        let mut machine = TaskMachine::new(task, input, feedback, overrides);
        machine.advance();
        machine
    }

    /// At its first step, whose condition has not been asked.
    fn new(task: Arc<Task>, input: Value, feedback: Value, overrides: Overrides) -> TaskMachine {
        let mut context = Map::new();
        context.insert("input".into(), with_feedback(input, &task, feedback));
        context.insert("state".into(), Value::empty_map());
        context.insert("output".into(), Value::empty_map());
        context.insert("result".into(), Value::Null);
        TaskMachine {
            task,
            step: 0,
            context: Value::from(context),
            overrides,
            wrote_output: false,
            asked: false,
            continued: Vec::new(),
            done: None,
        }
    }

    /// A task that is one wait, which has ended: with its answer, or by failing. Its condition was asked when the
    /// wait was opened; here the answer is mapped, and whatever becomes of that, it is not dropped.
    pub fn answered(
        task: Arc<Task>,
        input: Value,
        feedback: Value,
        overrides: Overrides,
        answer: Result<Value, Failure>,
    ) -> TaskMachine {
        let mut machine = TaskMachine::new(task, input, feedback, overrides);
        machine.asked = true;
        machine.answer(answer);
        machine
    }

    /// Steps that failed so far, and the task went on.
    pub fn continued(&self) -> &[ContinuedStep] {
        &self.continued
    }

    /// The same, for whoever has to change what failures say before they are told.
    pub fn continued_mut(&mut self) -> &mut [ContinuedStep] {
        &mut self.continued
    }

    pub fn into_continued(self) -> Vec<ContinuedStep> {
        self.continued
    }

    /// What to do now. Asking again gives the same answer.
    pub fn ask(&mut self) -> Ask {
        loop {
            if let Some(outcome) = &self.done {
                return Ask::Done(outcome.clone());
            }
            let task = self.task.clone();
            let step = &task.steps[self.step];
            match self.call(step) {
                Err(failure) => self.failed(step, failure),
                Ok(call) => match &step.action.coordinated {
                    Some(Coordinated::UpdateContext { set }) => {
                        let result = self.set(set);
                        self.finish(step, result);
                    }
                    Some(Coordinated::Assert(assertion)) => {
                        let result =
                            check(assertion, &Roots(&self.context), &self.context).map(|()| Value::Null);
                        self.finish(step, result);
                    }
                    _ => {
                        self.asked = true;
                        return Ask::Perform(Box::new(call));
                    }
                },
            }
        }
    }

    /// The outcome of the action that was asked for.
    pub fn answer(&mut self, result: Result<Value, Failure>) {
        assert!(self.asked, "an answer follows a question");
        self.asked = false;
        let task = self.task.clone();
        self.finish(&task.steps[self.step], result);
    }

    fn call(&self, step: &Step) -> Result<ActionCall, Failure> {
        let roots = Roots(&self.context);
        let (input, mapped) = match &step.input {
            StepInput::Whole { mapped } => (self.context.get("input").cloned().unwrap_or_default(), *mapped),
            StepInput::Mapped(tree) => (tree.eval(&roots).map_err(expression_error)?, true),
            StepInput::Named(reads) => (named(reads, &TaskRoots(&self.context)), false),
        };
        if let Some(schema) = &step.action.requires {
            violated("the input of the action", check_input(schema, &input))?;
        }
        let scope = template_scope(&input, mapped);
        let (action, overrides) = (step.action.clone(), self.overrides.clone());
        Ok(ActionCall { step: step.reference.clone(), number: 0, action, input, scope, overrides })
    }

    fn finish(&mut self, step: &Step, result: Result<Value, Failure>) {
        let result = result.and_then(|result| {
            if let Some(schema) = &step.action.produces {
                violated("the result of the action", schema.check(&result))?;
            }
            self.write_out(step, &result)?;
            Ok(result)
        });
        match result {
            Ok(_) => {
                self.step += 1;
                self.advance();
            }
            Err(failure) => self.failed(step, failure),
        }
    }

    fn write_out(&mut self, step: &Step, result: &Value) -> Result<(), Failure> {
        let silent = matches!(
            step.action.coordinated,
            Some(Coordinated::UpdateContext { .. } | Coordinated::Assert(_) | Coordinated::Sleep(_))
        );
        if !silent {
            self.context.set_path(&["result".into()], result.clone());
        }
        match &step.output {
            None if silent => {}
            None => self.context.set_path(&["state".into(), step.reference.clone()], result.clone()),
            Some(writes) => {
                let mut scope = self.context.clone();
                scope.set_path(&["result".into()], result.clone());
                for write in writes {
                    let value = write.value.eval(&Roots(&scope)).map_err(expression_error)?;
                    self.write(write, value)?;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, write: &WriteTo, value: Value) -> Result<(), Failure> {
        let root = if write.target.root == Root::State { "state" } else { "output" };
        self.wrote_output |= root == "output";
        let path: Vec<Name> = std::iter::once(root.into()).chain(write.target.path.iter().cloned()).collect();
        if write.target.add(self.context.entry_mut(&path), value) {
            return Ok(());
        }
        let message = format!("{}: only a list can be appended to, and with `[*]` only a list", write.target);
        Err(Failure::new(ErrorKind::ContractViolation, message))
    }

    /// `update_context` in a task: in order, each seeing those before it.
    fn set(&mut self, set: &[WriteTo]) -> Result<Value, Failure> {
        let mut values = Value::empty_map();
        for write in set {
            let value = write.value.eval(&Roots(&self.context)).map_err(expression_error)?;
            values.set_path(&write.target.path, value.clone());
            self.write(write, value)?;
        }
        Ok(values)
    }

    fn failed(&mut self, step: &Step, failure: Failure) {
        // Who asks has not failed: the task runs again from its start with the answer.
        let on_failure = match failure.kind {
            ErrorKind::InputRequired => OnFailure::Abort,
            _ => step.on_failure,
        };
        match on_failure {
            OnFailure::Continue => {
                let path = ["state".into(), "_errors".into(), step.reference.clone()];
                self.context.set_path(&path, failure.to_value());
                self.continued.push(ContinuedStep { step: step.reference.clone(), failure });
                self.step += 1;
                self.advance();
            }
            on_failure => {
                let (retry, step) = (on_failure == OnFailure::Retry, Some(step.reference.clone()));
                self.done = Some(TaskOutcome::Failed { failure, retry, step });
            }
        }
    }

    /// Past steps whose condition says so, to the next one that runs or to the end.
    fn advance(&mut self) {
        let task = self.task.clone();
        while let Some(step) = task.steps.get(self.step) {
            let Some(condition) = &step.condition else { return };
            let verdict = match condition.test.eval_bool(&Roots(&self.context)) {
                Ok(true) => condition.then,
                Ok(false) => condition.otherwise,
                Err(error) => return self.failed(step, expression_error(error)),
            };
            match verdict {
                StepVerdict::Continue => return,
                StepVerdict::Skip => self.step += 1,
                StepVerdict::Succeed => break,
                StepVerdict::Fail => {
                    let message = format!("the condition of step {} says fail", step.reference);
                    let failure = Failure::new(ErrorKind::AssertionFailed, message);
                    self.done = Some(TaskOutcome::Failed {
                        failure,
                        retry: false,
                        step: Some(step.reference.clone()),
                    });
                    return;
                }
            }
        }
        self.complete();
    }

    fn complete(&mut self) {
        let root = if self.wrote_output { "output" } else { "result" };
        let result = self.context.get(root).cloned().unwrap_or_default();
        let fits = self
            .task
            .output_schema
            .as_ref()
            .map_or(Ok(()), |schema| violated("the output of the task", schema.check(&result)));
        self.done = Some(match fits {
            Ok(()) => TaskOutcome::Completed { result },
            Err(failure) => TaskOutcome::Failed { failure, retry: false, step: None },
        });
    }
}

/// `input.feedback` is always defined: null, or the judgement. In an inline node without a mapping the
/// task's input has the roots as keys, and the feedback belongs under `input` there.
/// A child gets what was mapped, and feedback only if there is some.
fn with_feedback(mut input: Value, task: &Task, feedback: Value) -> Value {
    let calls = task
        .steps
        .first()
        .is_some_and(|s| matches!(s.action.coordinated, Some(Coordinated::WorkflowCall(_))));
    if calls && feedback.is_null() {
        return input;
    }
    let unmapped =
        !calls && task.steps.first().is_some_and(|s| matches!(s.input, StepInput::Whole { mapped: false }));
    let path: &[Name] = if unmapped { &["input".into(), "feedback".into()] } else { &["feedback".into()] };
    if input.as_map().is_some() && input.get_path(path).is_none() {
        input.set_path(path, feedback);
    } else if input.is_null() {
        input = Value::empty_map();
        input.set_path(path, feedback);
    }
    input
}

/// `input.feedback` is there whether or not the author of a schema has thought of it: it may be left out of the check.
fn check_input(schema: &Schema, input: &Value) -> Result<(), Vec<Violation>> {
    let checked = schema.check(input);
    match input.as_map().filter(|map| checked.is_err() && map.contains_key("feedback")) {
        None => checked,
        Some(map) => {
            let own = map.iter().filter(|(key, _)| &***key != "feedback");
            schema.check(&Value::map(own.map(|(key, value)| (key.clone(), value.clone()))))
        }
    }
}

/// The keys of the action's input, and `input`: the mapped object itself, or the enclosing scope's.
fn template_scope(input: &Value, mapped: bool) -> Value {
    let mut scope = if input.as_map().is_some() { input.clone() } else { Value::empty_map() };
    if mapped {
        scope.set_path(&["input".into()], input.clone());
    }
    scope
}

/// In an inline task the roots `_branch`, `needs`, `run` and the item come in under the task's input.
struct TaskRoots<'a>(&'a Value);

impl Scope for TaskRoots<'_> {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        let at = self.0.get(root).or_else(|| self.0.get("input")?.get(root))?;
        at.get_path(path).cloned()
    }
}

/// Where a planning node's result says what to add: at its top, else in the JSON of its action's result, for
/// that is where what a command prints and what a model answers ends up.
pub fn mutations_at(result: &Value) -> Option<Vec<Name>> {
    let top = || vec!["_mutations".into()];
    let within = || vec!["json".into(), "_mutations".into()];
    [top(), within()].into_iter().find(|path| result.get_path(path).is_some_and(|asked| !asked.is_null()))
}

pub(crate) fn expression_error(error: EvalError) -> Failure {
    Failure::new(ErrorKind::ExpressionError, error.message)
}

/// A failed check as a `contract_violation` that says what broke which rule.
/// A value that breaks its schema, as a failure.
pub fn violated(what: &str, checked: Result<(), Vec<Violation>>) -> Result<(), Failure> {
    checked.map_err(|violations| {
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let details = Value::map([("violations", Value::list(all.iter().map(|v| Value::from(v.as_str()))))]);
        let message = format!("{what} breaks its schema: {}", all.join("; "));
        Failure::new(ErrorKind::ContractViolation, message).with_details(details)
    })
}

/// `assert`, in whichever scope it stands.
pub(crate) fn check(assertion: &Assertion, scope: &dyn Scope, texts: &Value) -> Result<(), Failure> {
    let said = |otherwise: String| match &assertion.message {
        None => otherwise,
        Some(message) => message.render(texts).unwrap_or(otherwise),
    };
    match &assertion.test {
        AssertionTest::That(that) => {
            let holds = that.eval_bool(scope).map_err(expression_error)?;
            let message = || said(format!("`{}` does not hold", that.text()));
            if holds { Ok(()) } else { Err(Failure::new(ErrorKind::AssertionFailed, message())) }
        }
        AssertionTest::Fits { value, schema } => {
            fits(&value.eval(scope).map_err(expression_error)?, schema, said)
        }
        AssertionTest::Scores { score, at_least } => {
            let score = score.eval(scope).map_err(expression_error)?;
            let bound = at_least.eval(scope).map_err(expression_error)?;
            let (Some(got), Some(least)) = (score.as_f64(), bound.as_f64()) else {
                return Err(Failure::new(
                    ErrorKind::ExpressionError,
                    "score and score_at_least must be numbers",
                ));
            };
            if got >= least {
                return Ok(());
            }
            let details = Value::map([("score", score), ("score_at_least", bound)]);
            let message = said(format!("the score {got} is below {least}"));
            Err(Failure::new(ErrorKind::QualityBelowThreshold, message).with_details(details))
        }
    }
}

fn fits(value: &Value, schema: &Schema, said: impl Fn(String) -> String) -> Result<(), Failure> {
    violated("the value", schema.check(value)).map_err(|failure| {
        let message = said(failure.message);
        Failure { message, ..Failure::new(failure.kind, "").with_details(failure.details) }
    })
}
