//! Tasks without workers: an order goes through the same [`TaskMachine`] that a worker drives, and how long
//! it would take is counted instead of waited for. A scripted outcome is how the action went after all its
//! tries; an action's own `mock` is tried as its `retry_policy` says, and once without one: the tries that a
//! worker makes by default would only blur what a scenario is about.

use std::collections::BTreeMap;

use wonder_core::backoff;
use wonder_core::command::TaskOrder;
use wonder_core::cost::{Allowance, Spend, price_usd_micros};
use wonder_core::def::{Effect, Implementation, Mock, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::TokenId;
use wonder_core::graph::{Action, Graph};
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::mock;
use wonder_core::reserve::worst_action;
use wonder_core::task::{ActionCall, Ask, TaskMachine, mutations_at};
use wonder_core::value::Value;

use crate::outcomes::{Act, ActionRequest, At, OnCancel, Outcomes};

/// Steps of one task, a bound that no real one comes near.
const STEPS_MAX: usize = 10_000;

/// One attempt from its start to its report.
#[derive(Clone, Debug)]
pub struct Performance {
    pub outcome: TaskOutcome,
    pub duration_ms: u64,
    /// What each action spent, and when it was done, from the start.
    pub spent: Vec<(u64, Spend)>,
    /// Tries of its actions beyond the first of each.
    pub tries: u32,
    pub on_cancel: OnCancel,
}

impl Performance {
    pub fn report(&self) -> TaskReport {
        TaskReport {
            outcome: self.outcome.clone(),
            spend: self.spend_until(self.duration_ms),
            tries: self.tries,
        }
    }

    /// What a task reports that was stopped so long after its start.
    pub fn cancelled_after(&self, elapsed_ms: u64) -> TaskReport {
        TaskReport { outcome: TaskOutcome::Cancelled, spend: self.spend_until(elapsed_ms), tries: 0 }
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
        on_cancel: outcomes.on_cancel(at),
    };
    let lost = outcomes.lost_worker(at);
    let Some(task) = graph.tasks.get(&order.task) else {
        let failure = Failure::new(ErrorKind::Internal, format!("the host knows no task {}", order.task));
        done.outcome = TaskOutcome::Failed { failure, retry: false, step: None };
        return done;
    };
    let mut machine = TaskMachine::start(
        task.clone(),
        order.input.clone(),
        order.feedback.clone(),
        order.overrides.clone(),
    );
    for _ in 0..STEPS_MAX {
        let call = match machine.ask() {
            Ask::Done(outcome) => {
                done.outcome = if order.may_mutate { with_plan(outcome) } else { outcome };
                break;
            }
            Ask::Perform(call) => call,
        };
        let asked = ActionRequest {
            at: *at,
            step: &call.step,
            action: &call.action,
            try_number: tries.number(order, &call.step),
        };
        let spent = done.spend_until(done.duration_ms);
        if let Some(failure) = order.allowance.stops(&spent, &worst(&call), None) {
            done.outcome = TaskOutcome::Failed { failure, retry: false, step: Some(call.step.clone()) };
            break;
        }
        let act = within_own_time(&call, act(&call, &asked, outcomes, (&order.allowance, &spent)));
        let ends_ms = done.duration_ms + act.delay_ms;
        if let Some(timeout_ms) = order.timeout_ms.filter(|limit| ends_ms > *limit) {
            done.outcome = TaskOutcome::TimedOut { after_ms: timeout_ms };
            done.duration_ms = timeout_ms;
            break;
        }
        tries.tried(order, &call.step, act.tries + 1);
        done.tries += act.tries;
        done.duration_ms = ends_ms;
        done.spent.push((ends_ms, priced(act.spend, &call.action, graph)));
        match act.result {
            Err(failure) if failure.is_at_allowance() => {
                done.outcome = TaskOutcome::Failed { failure, retry: false, step: Some(call.step.clone()) };
                break;
            }
            result => machine.answer(result),
        }
    }
    if let Some((after_ms, failure)) = lost {
        done.duration_ms = after_ms;
        done.outcome = TaskOutcome::Failed { failure, retry: false, step: None };
    }
    done
}

/// What a planning task adds, as a worker reads it.
fn with_plan(outcome: TaskOutcome) -> TaskOutcome {
    let TaskOutcome::Completed { mut result } = outcome else { return outcome };
    let Some(path) = mutations_at(&result) else { return TaskOutcome::Completed { result } };
    match result.get_path(&path).map(wonder_spec::mutations) {
        Some(Ok(stored)) => result.set_path(&path, stored),
        Some(Err(why)) => {
            let failure = Failure::new(ErrorKind::MutationRefused, why);
            return TaskOutcome::Failed { failure, retry: false, step: None };
        }
        None => {}
    }
    TaskOutcome::Completed { result }
}

/// How an action went, complete.
struct Acted {
    result: Result<Value, Failure>,
    delay_ms: u64,
    spend: Spend,
    tries: u32,
}

/// What the task may spend, and what it has spent before this action.
type Purse<'a> = (&'a Allowance, &'a Spend);

fn act(call: &ActionCall, asked: &ActionRequest<'_>, outcomes: &dyn Outcomes, purse: Purse<'_>) -> Acted {
    match outcomes.outcome(asked) {
        None => usual(call, asked, purse),
        Some(Act { result: Some(result), delay_ms, spend }) => Acted { result, delay_ms, spend, tries: 0 },
        Some(Act { result: None, delay_ms, spend }) => Acted { delay_ms, spend, ..usual(call, asked, purse) },
    }
}

/// The action's own timeout, as a worker keeps it.
fn within_own_time(call: &ActionCall, act: Acted) -> Acted {
    match call.action.def.execution.timeout_ms {
        Some(limit_ms) if act.delay_ms > limit_ms => {
            let message = format!("{} took longer than {limit_ms} ms", call.action.def.implementation.kind());
            let failure = Failure::new(ErrorKind::Timeout, message)
                .with_details(Value::map([("layer", Value::str("action"))]));
            Acted { result: Err(failure), delay_ms: limit_ms, ..act }
        }
        _ => act,
    }
}

/// What an action gives when nobody scripted it: its own `mock`, or something of the right shape.
fn usual(call: &ActionCall, asked: &ActionRequest<'_>, purse: Purse<'_>) -> Acted {
    if let Implementation::Mock(script) = &call.action.def.implementation {
        return tried(script, call, asked.try_number, purse);
    }
    Acted {
        result: Ok(shaped(&call.action, Value::str("ok"))),
        delay_ms: 0,
        spend: Spend::default(),
        tries: 0,
    }
}

/// A mock as a worker tries it: again, by its policy, while the world is to blame.
fn tried(script: &Mock, call: &ActionCall, first: u32, (allowance, before): Purse<'_>) -> Acted {
    let def = &call.action.def;
    let policy = def.execution.retry_policy;
    let (mut delay_ms, mut spend, mut made) = (0, Spend::default(), 0);
    loop {
        let answer = mock::outcome(script, first + made, &call.scope);
        made += 1;
        delay_ms += answer.delay_ms;
        spend.add(&answer.spend);
        let again = policy.filter(|retry| made < retry.max_attempts && def.effect() != Effect::Once);
        match (answer.result, again) {
            (Err(failure), Some(retry)) if failure.is_infrastructural() => {
                // A call and its tries are one call.
                spend.calls -= answer.spend.calls;
                let mut spent = before.clone();
                spent.add(&spend);
                if let Some(stopped) = allowance.stops(&spent, &worst(call), Some(&failure)) {
                    spend.calls += answer.spend.calls;
                    return Acted { result: Err(stopped), delay_ms, spend, tries: made - 1 };
                }
                delay_ms += backoff::delay_ms(&retry.backoff, made, 0, 0);
            }
            (result, _) => return Acted { result, delay_ms, spend, tries: made - 1 },
        }
    }
}

/// The most that one try of an action may cost, as a worker counts it.
fn worst(call: &ActionCall) -> Allowance {
    worst_action(&call.action.def.implementation, |_| Allowance::default())
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

/// A model call counts as one, and costs what its profile says if the script does not.
fn priced(mut spend: Spend, action: &Action, graph: &Graph) -> Spend {
    let Implementation::LlmCall(call) = &action.def.implementation else { return spend };
    spend.calls = spend.calls.max(1);
    let profile = call.model.as_ref().and_then(|model| graph.models.get(&model.text));
    if let Some(profile) = profile.filter(|_| spend.usd_micros == 0) {
        spend.usd_micros =
            price_usd_micros(&profile.prices, spend.input_tokens, spend.cached_tokens, spend.output_tokens);
    }
    spend
}
