//! A task from its order to its outcome: the loop that every worker goes through, without time or IO.
//!
//! It drives a [`TaskMachine`], says which action to try now, decides whether a failed try is made again and
//! after how long, stops at what was reserved for the task, and sums what was spent. Whoever holds it
//! performs single tries and keeps the clock: the real worker with processes and connections, the simulator
//! with scripted outcomes.

use std::sync::Arc;

use crate::backoff::{TRIES, delay_ms};
use crate::command::TaskOrder;
use crate::cost::{Allowance, Spend};
use crate::def::{Effect, Retry};
use crate::error::{ErrorKind, Failure};
use crate::graph::Task;
use crate::input::{ContinuedStep, TaskOutcome, TaskReport};
use crate::task::{ActionCall, Ask, TaskMachine, mutations_at};
use crate::value::Value;

/// The longest `Retry-After` that is waited for.
const RETRY_AFTER_MS_MAX: u64 = 600_000;

/// Reads what a planning task adds to its graph into the stored form, or says what is wrong with it.
pub type ReadMutations = fn(&Value) -> Result<Value, String>;

/// What differs between those who execute tasks.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionRules {
    /// How an action is tried whose file does not say.
    pub unwritten: Retry,
    /// Of the jitter in the waits between tries.
    pub seed: u64,
    pub salt: u64,
    /// None: only the stored form of mutations is understood.
    pub read_mutations: Option<ReadMutations>,
}

impl ExecutionRules {
    /// Those of a worker: three tries if nothing is written, and waits that differ by token and attempt.
    pub fn of_worker(order: &TaskOrder, seed: u64, read_mutations: Option<ReadMutations>) -> ExecutionRules {
        let salt = order.token.0.rotate_left(32) ^ u64::from(order.attempt);
        ExecutionRules { unwritten: TRIES, seed, salt, read_mutations }
    }
}

/// How far a failed try came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// Nothing went out: trying again cannot do anything twice.
    NotSent,
    /// It ended in a way that says what happened.
    Answered,
    /// It went out, and what became of it is not known.
    Unknown,
}

/// A try that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct TryFailure {
    pub failure: Failure,
    pub delivery: Delivery,
}

impl TryFailure {
    pub fn answered(failure: Failure) -> TryFailure {
        TryFailure { failure, delivery: Delivery::Answered }
    }

    pub fn unknown(failure: Failure) -> TryFailure {
        TryFailure { failure, delivery: Delivery::Unknown }
    }
}

/// A failure before anything went out.
impl From<Failure> for TryFailure {
    fn from(failure: Failure) -> TryFailure {
        TryFailure { failure, delivery: Delivery::NotSent }
    }
}

/// What to do now.
#[derive(Debug)]
pub enum Next<'e> {
    /// Try this action once, and say how it went.
    Try(Try<'e>),
    Done(TaskOutcome),
}

#[derive(Clone, Copy, Debug)]
pub struct Try<'e> {
    pub call: &'e ActionCall,
    /// The first of this action in this attempt: its own time starts now.
    pub first: bool,
    /// How many tries the token has made before, in this attempt and in earlier ones: which outcome of a
    /// script this try gets. It follows from the order alone, so every host counts the same.
    pub number: u32,
}

/// The action is tried again, after a wait.
#[derive(Clone, Debug, PartialEq)]
pub struct AnotherTry {
    pub delay_ms: u64,
    /// Which try comes next, from 1, and of how many at most.
    pub next: u32,
    pub max: u32,
    /// Why the last one failed.
    pub reason: String,
}

#[derive(Debug)]
pub struct TaskExecution {
    machine: TaskMachine,
    rules: ExecutionRules,
    allowance: Allowance,
    tries_before: u32,
    may_mutate: bool,
    /// Of the actions that have ended.
    spend: Spend,
    tries: u32,
    action: Option<ActionTries>,
    stopped: Option<TaskOutcome>,
}

/// An action under way.
#[derive(Debug)]
struct ActionTries {
    call: Box<ActionCall>,
    /// The most that one try may cost.
    worst: Allowance,
    made: u32,
    spend: Spend,
}

impl TaskExecution {
    pub fn start(order: &TaskOrder, task: Arc<Task>, rules: ExecutionRules) -> TaskExecution {
        let (input, feedback) = (order.input.clone(), order.feedback.clone());
        TaskExecution {
            machine: TaskMachine::start(task, input, feedback, order.overrides.clone()),
            rules,
            allowance: order.allowance,
            tries_before: order.tries_before,
            may_mutate: order.may_mutate,
            spend: Spend::default(),
            tries: 0,
            action: None,
            stopped: None,
        }
    }

    /// What to do now. `worst` is the most that one try of an action may cost.
    pub fn next(&mut self, worst: impl Fn(&ActionCall) -> Allowance) -> Next<'_> {
        if let Some(outcome) = &self.stopped {
            return Next::Done(outcome.clone());
        }
        if self.action.is_none() {
            let call = match self.machine.ask() {
                Ask::Done(outcome) => return Next::Done(self.with_mutations(outcome)),
                Ask::Perform(call) => call,
            };
            let worst = worst(&call);
            if let Some(failure) = self.allowance.stops(&self.spend, &worst, None) {
                let outcome = stopped(failure, &call);
                self.stopped = Some(outcome.clone());
                return Next::Done(outcome);
            }
            self.action = Some(ActionTries { call, worst, made: 0, spend: Spend::default() });
        }
        let action = self.action.as_ref().expect("an action is under way");
        self.tries += u32::from(action.made > 0);
        let number = self.tries_before + action.made;
        Next::Try(Try { call: &action.call, first: action.made == 0, number })
    }

    /// How a try ended, and what it spent. Says whether there is another one, and when.
    pub fn tried(&mut self, result: Result<Value, TryFailure>, spend: &Spend) -> Option<AnotherTry> {
        let mut action = self.action.take().expect("a result follows a try");
        action.made += 1;
        let TryFailure { failure, delivery } = match result {
            Ok(result) => {
                action.spend.add(spend);
                self.finish(action, Ok(result));
                return None;
            }
            Err(failed) => failed,
        };
        let Some(delay_ms) = self.again_after_ms(&action, &failure, delivery) else {
            action.spend.add(spend);
            let failure = verdict(action.call.action.effect, failure, delivery);
            self.finish(action, Err(failure));
            return None;
        };
        // A call and its tries are one call: that is what was reserved for it.
        action.spend.add(&Spend { calls: 0, unpriced_calls: 0, ..spend.clone() });
        let mut spent = self.spend.clone();
        spent.add(&action.spend);
        if let Some(stopped) = self.allowance.stops(&spent, &action.worst, Some(&failure)) {
            action.spend.calls += spend.calls;
            action.spend.unpriced_calls += spend.unpriced_calls;
            self.finish(action, Err(stopped));
            return None;
        }
        let (next, max) = (action.made + 1, self.retry_of(&action).max_attempts);
        self.action = Some(action);
        Some(AnotherTry { delay_ms, next, max, reason: failure.message })
    }

    /// How the action under way ended, whatever its tries were.
    pub fn answered(&mut self, result: Result<Value, Failure>, spend: &Spend) {
        let mut action = self.action.take().expect("an answer follows a try");
        action.spend.add(spend);
        self.finish(action, result);
    }

    /// The own time of the action under way is over; `spend` is what its last try used until then.
    pub fn action_timed_out(&mut self, spend: &Spend) {
        let call = &self.action.as_ref().expect("an action is under way").call;
        let timeout_ms = call.action.def.execution.timeout_ms.unwrap_or_default();
        let message = format!("{} took longer than {timeout_ms} ms", call.action.def.implementation.kind());
        let failure = Failure::new(ErrorKind::Timeout, message)
            .with_details(Value::map([("layer", Value::str("action"))]))
            .with_timeout_ms(timeout_ms);
        self.answered(Err(failure), spend);
    }

    /// The task ends here: it is cancelled, or its time is over. `spend` is what the last try used.
    pub fn stop(&mut self, outcome: TaskOutcome, spend: &Spend) {
        if let Some(action) = self.action.take() {
            self.spend.add(&action.spend);
        }
        self.spend.add(spend);
        self.stopped = Some(outcome);
    }

    /// What the actions that have ended spent, and how often they were tried beyond the first time.
    pub fn report(self, outcome: TaskOutcome, duration_ms: u64) -> TaskReport {
        let (spend, continued) = (Spend { duration_ms, ..self.spend }, self.machine.into_continued());
        TaskReport { outcome, spend, tries: self.tries, continued, artifacts: Vec::new() }
    }

    /// Steps that failed, and the task went on.
    pub fn into_continued(self) -> Vec<ContinuedStep> {
        self.machine.into_continued()
    }

    /// Failures of steps that the task went on after, for a worker that hides what they may hold.
    pub fn continued_failures(&mut self) -> impl Iterator<Item = &mut Failure> {
        self.machine.continued_mut().iter_mut().map(|continued| &mut continued.failure)
    }

    pub fn tries(&self) -> u32 {
        self.tries
    }

    fn finish(&mut self, action: ActionTries, result: Result<Value, Failure>) {
        self.spend.add(&action.spend);
        match result {
            // Whatever its step does about failures of its own: the coordinator may have more.
            Err(failure) if failure.is_at_allowance() => {
                self.stopped = Some(stopped(failure, &action.call));
            }
            result => self.machine.answer(result),
        }
    }

    fn retry_of(&self, action: &ActionTries) -> Retry {
        action.call.action.def.execution.retry_policy.unwrap_or(self.rules.unwritten)
    }

    /// How long to wait before another try; None: that was the last.
    fn again_after_ms(&self, action: &ActionTries, failure: &Failure, delivery: Delivery) -> Option<u64> {
        let retry = self.retry_of(action);
        let twice = action.call.action.effect == Effect::Once && delivery != Delivery::NotSent;
        if action.made >= retry.max_attempts || twice || !failure.is_infrastructural() {
            return None;
        }
        let asked = failure.retry_after_ms().unwrap_or(0).min(RETRY_AFTER_MS_MAX);
        Some(delay_ms(&retry.backoff, action.made, self.rules.seed, self.rules.salt).max(asked))
    }

    /// A planning task says what it adds as people write it; the coordinator takes what is stored.
    fn with_mutations(&self, outcome: TaskOutcome) -> TaskOutcome {
        let TaskOutcome::Completed { mut result } = outcome else { return outcome };
        let path = self.may_mutate.then(|| mutations_at(&result)).flatten();
        let asked = path.as_ref().and_then(|path| result.get_path(path));
        let read = self.rules.read_mutations.zip(asked).map(|(read, asked)| read(asked));
        match (path, read) {
            (Some(path), Some(Ok(stored))) => result.set_path(&path, stored),
            (_, Some(Err(why))) => {
                let failure = Failure::new(ErrorKind::MutationRefused, why);
                return TaskOutcome::Failed { failure, retry: false, step: None };
            }
            _ => {}
        }
        TaskOutcome::Completed { result }
    }
}

fn stopped(failure: Failure, call: &ActionCall) -> TaskOutcome {
    TaskOutcome::Failed { failure, retry: false, step: Some(call.step.clone()) }
}

/// What to report: an effect that must happen once, and may have, is nobody's to repeat.
fn verdict(effect: Effect, failure: Failure, delivery: Delivery) -> Failure {
    if effect != Effect::Once || delivery != Delivery::Unknown {
        return failure;
    }
    let message = format!("it may have taken effect before it broke: {}", failure.message);
    Failure::new(ErrorKind::OutcomeUnknown, message).because_of(failure)
}

#[cfg(test)]
mod tests;
