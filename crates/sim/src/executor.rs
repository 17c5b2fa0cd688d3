//! Tasks without workers: an order goes through the same [`TaskExecution`] that a worker drives, and how long
//! it would take is counted instead of waited for. A scripted outcome is how the action went after all its
//! tries; an action's own `mock` is tried as its `retry_policy` says, and once without one: the tries that a
//! worker makes by default would only blur what a scenario is about.

use std::collections::BTreeMap;

use wonder_core::command::TaskOrder;
use wonder_core::cost::{Spend, TokenCounts, price_usd_micros};
use wonder_core::def::{Backoff, Implementation, Name, Retry};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::TokenId;
use wonder_core::execution::{Delivery, ExecutionRules, Next, TaskExecution, Try, TryFailure};
use wonder_core::graph::{Action, Graph, Work};
use wonder_core::input::{ContinuedStep, TaskOutcome, TaskReport};
use wonder_core::mock::{self, MockAnswer};
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::outcomes::{Act, ActionRequest, At, OnCancel, Outcomes};

/// Tries of one task, a bound that no real one comes near.
const TRIES_MAX: usize = 10_000;

/// One attempt from its start to its report.
#[derive(Clone, Debug)]
pub struct Performance {
    pub outcome: TaskOutcome,
    pub duration_ms: u64,
    /// What each action spent, and when it was done, from the start.
    pub spent: Vec<(u64, Spend)>,
    /// Tries of its actions beyond the first of each.
    pub tries: u32,
    /// Steps that failed, and the task went on.
    pub continued: Vec<ContinuedStep>,
    pub on_cancel: OnCancel,
}

impl Performance {
    pub fn report(&self) -> TaskReport {
        TaskReport {
            outcome: self.outcome.clone(),
            spend: self.spend_until(self.duration_ms),
            tries: self.tries,
            continued: self.continued.clone(),
            artifacts: Vec::new(),
        }
    }

    /// What a task reports that was stopped so long after its start.
    pub fn cancelled_after(&self, elapsed_ms: u64) -> TaskReport {
        TaskReport::new(TaskOutcome::Cancelled, self.spend_until(elapsed_ms))
    }

    fn spend_until(&self, elapsed_ms: u64) -> Spend {
        let mut sum = Spend::default();
        self.spent.iter().filter(|(at, _)| *at <= elapsed_ms).for_each(|(_, spend)| sum.add(spend));
        sum.duration_ms = elapsed_ms.min(self.duration_ms);
        sum
    }
}

/// How often each attempt has tried a step: a try's number counts those of earlier attempts, so that a
/// repeated dispatch of the same attempt makes the same tries.
#[derive(Clone, Debug, Default)]
pub struct Tries(BTreeMap<(Name, TokenId, Name), BTreeMap<u32, u32>>);

impl Tries {
    fn number(&mut self, order: &TaskOrder, step: &Name) -> u32 {
        let attempts = self.0.entry((order.run.clone(), order.token, step.clone())).or_default();
        attempts.entry(order.attempt).or_insert(1);
        attempts.range(..order.attempt).map(|(_, tries)| *tries).sum()
    }

    fn tried(&mut self, order: &TaskOrder, step: &Name, tries: u32) {
        if let Some(attempts) = self.0.get_mut(&(order.run.clone(), order.token, step.clone())) {
            attempts.insert(order.attempt, tries);
        }
    }
}

pub fn perform(
    order: &TaskOrder,
    graph: &Graph,
    at: &At<'_>,
    outcomes: &dyn Outcomes,
    tries: &mut Tries,
) -> Performance {
    let mut done = Performance {
        outcome: TaskOutcome::Cancelled,
        duration_ms: 0,
        spent: Vec::new(),
        tries: 0,
        continued: Vec::new(),
        on_cancel: outcomes.on_cancel(at),
    };
    let by_host = outcomes.reported_by_host(at);
    let Some(task) = graph.tasks.get(&order.task) else {
        let failure = Failure::new(ErrorKind::Internal, format!("the host knows no task {}", order.task));
        done.outcome = TaskOutcome::Failed { failure, retry: false, step: None };
        return done;
    };
    let mut execution = TaskExecution::start(order, task.clone(), outcomes.rules(order));
    let mut play = Play { order, graph, at, outcomes, tries, done, action: Elapsed::default() };
    let outcome = (0..TRIES_MAX).find_map(|_| play.next(&mut execution));
    let mut done = play.done;
    done.outcome = outcome.unwrap_or(TaskOutcome::Cancelled);
    done.continued = execution.into_continued();
    if let Some((after_ms, outcome)) = by_host {
        done.duration_ms = after_ms;
        done.outcome = outcome;
        done.continued.clear();
    }
    done
}

/// A task under way.
struct Play<'p> {
    order: &'p TaskOrder,
    graph: &'p Graph,
    at: &'p At<'p>,
    outcomes: &'p dyn Outcomes,
    tries: &'p mut Tries,
    done: Performance,
    action: Elapsed,
}

impl Play<'_> {
    /// Plays the next try, or says how the task ended.
    fn next(&mut self, execution: &mut TaskExecution) -> Option<TaskOutcome> {
        let Try { call, first, number } =
            match execution.next(|call| wonder_core::reserve::worst_try(&call.action)) {
                Next::Done(outcome) => return Some(outcome),
                Next::Try(next) => next,
            };
        if first {
            self.action = Elapsed { since_ms: self.done.duration_ms, ..Elapsed::default() };
        }
        self.action.tries += 1;
        let (step, try_number) = (call.step.clone(), self.tries.number(self.order, &call.step));
        let (at, order) = (*self.at, self.order);
        let asked = ActionRequest { at, step: &step, action: &call.action, call, order, try_number, number };
        let played = Played::of(call, &asked, number, self.outcomes);
        let spend = priced(played.spend, &call.action, self.graph);
        let ends_ms = self.done.duration_ms + played.delay_ms;
        let own_ms = call.action.def.execution.timeout_ms.map(|own_ms| self.action.since_ms + own_ms);
        let again = match (Limit::broken(own_ms, self.order.timeout_ms, ends_ms), played.last) {
            (Some(Limit::Task(timeout_ms)), _) => return Some(self.timed_out(timeout_ms)),
            (Some(Limit::Own(end_ms)), _) => {
                execution.action_timed_out(&spend);
                self.done.duration_ms = end_ms;
                None
            }
            (None, last) => {
                self.done.duration_ms = ends_ms;
                if last {
                    execution.answered(played.result, &spend);
                    None
                } else {
                    let delivery = played.delivery;
                    let result = played.result.map_err(|failure| TryFailure { failure, delivery });
                    execution.tried(result, &spend)
                }
            }
        };
        // The simulator's own sum is by time, so that a task that is stopped has spent what it had by then.
        self.action.spend.add(&Spend { calls: if again.is_some() { 0 } else { spend.calls }, ..spend });
        self.done.tries = execution.tries();
        if let Some(again) = again {
            let at_ms = self.done.duration_ms + again.delay_ms;
            match Limit::broken(own_ms, self.order.timeout_ms, at_ms) {
                None => {
                    self.done.duration_ms = at_ms;
                    return None;
                }
                Some(Limit::Task(timeout_ms)) => return Some(self.timed_out(timeout_ms)),
                Some(Limit::Own(end_ms)) => {
                    execution.action_timed_out(&Spend::default());
                    self.done.duration_ms = end_ms;
                }
            }
        }
        self.tries.tried(self.order, &step, self.action.tries);
        self.done.spent.push((self.done.duration_ms, std::mem::take(&mut self.action.spend)));
        None
    }

    fn timed_out(&mut self, after_ms: u64) -> TaskOutcome {
        self.done.duration_ms = after_ms;
        TaskOutcome::TimedOut { after_ms }
    }
}

/// An action with a script of its own is tried as its policy says and once without one, with waits that do
/// not differ by token; plans are read as people write them.
pub(crate) fn rules() -> ExecutionRules {
    let unwritten = Retry { max_attempts: 1, backoff: Backoff::default() };
    ExecutionRules { unwritten, seed: 0, salt: 0, read_mutations: Some(wonder_spec::mutations) }
}

/// The action under way: when it began, how often it was tried, and what it spent.
#[derive(Default)]
struct Elapsed {
    since_ms: u64,
    tries: u32,
    spend: Spend,
}

/// Whose time is over, and when, from the task's start.
#[derive(Clone, Copy)]
enum Limit {
    Own(u64),
    Task(u64),
}

impl Limit {
    /// The limit that is broken first by a try that ends then.
    fn broken(own_ms: Option<u64>, task_ms: Option<u64>, ends_ms: u64) -> Option<Limit> {
        let own = own_ms.filter(|own_ms| ends_ms > *own_ms);
        let task = task_ms.filter(|task_ms| ends_ms > *task_ms);
        match (own, task) {
            (Some(own), Some(task)) if own <= task => Some(Limit::Own(own)),
            (_, Some(task)) => Some(Limit::Task(task)),
            (own, None) => own.map(Limit::Own),
        }
    }
}

/// How a try went.
struct Played {
    result: Result<Value, Failure>,
    delivery: Delivery,
    delay_ms: u64,
    spend: Spend,
    /// Whatever tries there were are over: the result is the action's.
    last: bool,
}

impl Played {
    /// As the script says; else its own `mock`, or something of the right shape.
    fn of(call: &ActionCall, asked: &ActionRequest<'_>, number: u32, outcomes: &dyn Outcomes) -> Played {
        match outcomes.outcome(asked) {
            None => Played::usual(call, number),
            Some(Act { result: Some(result), delivery, delay_ms, spend, one_try }) => {
                Played { result, delivery, delay_ms, spend, last: !one_try }
            }
            Some(Act { result: None, delay_ms, spend, .. }) => {
                Played { delay_ms, spend, ..Played::usual(call, number) }
            }
        }
    }

    fn usual(call: &ActionCall, number: u32) -> Played {
        if let Some(Work::Mock(script)) = &call.action.work {
            let MockAnswer { result, delay_ms, spend } = mock::outcome(script, number, &call.scope);
            return Played { result, delivery: Delivery::Answered, delay_ms, spend, last: false };
        }
        let result = Ok(shaped(&call.action, Value::str("ok")));
        Played { result, delivery: Delivery::Answered, delay_ms: 0, spend: Spend::default(), last: true }
    }
}

/// A scripted result in the shape that such an action gives: `{score: 9}` of a model is its `json`.
pub fn shaped(action: &Action, result: Value) -> Value {
    let has = |keys: &[&str]| keys.iter().any(|key| result.get(key).is_some());
    let text = || result.as_str().map_or_else(|| result.to_string(), str::to_owned);
    match &action.def.implementation {
        Implementation::LlmCall(_) if !has(&["text", "json"]) => Value::map([
            ("text", Value::from(text())),
            ("json", result.clone()),
            ("finish_reason", Value::str("stop")),
        ]),
        Implementation::Shell(_) if !has(&["exit_code", "stdout"]) => Value::map([
            ("exit_code", Value::Int(0)),
            ("stdout", Value::from(text())),
            ("stderr", Value::str("")),
            ("json", result.clone()),
        ]),
        Implementation::HttpRequest(_) if !has(&["status", "body"]) => Value::map([
            ("status", Value::Int(200)),
            ("headers", Value::empty_map()),
            ("body", Value::from(text())),
            ("json", result.clone()),
        ]),
        _ => result,
    }
}

/// A model call counts as one, and costs what its profile says if the script says neither that nor which model it was.
fn priced(mut spend: Spend, action: &Action, graph: &Graph) -> Spend {
    let Implementation::LlmCall(call) = &action.def.implementation else { return spend };
    spend.calls = spend.calls.max(1);
    let profile = call.model.as_ref().and_then(|model| graph.models.get(&model.text));
    if let Some(profile) = profile.filter(|_| spend.usd_micros == 0 && spend.model_used.is_none()) {
        spend.usd_micros = price_usd_micros(
            &profile.prices.unwrap_or_default(),
            TokenCounts {
                input: spend.input_tokens,
                cached: spend.cached_tokens,
                output: spend.output_tokens,
                ..TokenCounts::default()
            },
        );
    }
    spend
}
