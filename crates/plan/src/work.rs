//! One node by itself: what it does, how long one visit takes, what it costs, what it waits for. How often
//! it is visited is not known here.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::backoff::TRIES;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::{Estimate, GateTimeout, Implementation, Name};
use wonder_core::error::Failure;
use wonder_core::graph::{
    Action, CallSpec, CalleeSpec, Coordinated, GateSpec, Node, Perform, Response, SleepSpec, Step, Task,
};
use wonder_core::schedule::{self, DURATION_MS_UNKNOWN};
use wonder_core::time::parse_duration_ms;

use super::report::{CallPlan, Callee, Guess, Origin, Outline, Total, WaitKind, WaitPlan};
use super::reserve::{Attempts, Priced, waits_ms};

/// One visit.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) actions: Vec<Name>,
    /// A worker does it, so that `max_parallel` counts it.
    pub(super) is_task: bool,
    pub(super) duration: Guess,
    pub(super) cost: Guess,
    /// By the file or past runs, whatever a mock would take.
    pub(super) estimate: Estimate,
    pub(super) attempts_max: u64,
    /// What one attempt reserves.
    pub(super) attempt: Allowance,
    /// All attempts.
    pub(super) worst: Allowance,
    pub(super) open: Open,
    /// Time that the workflow's clock counts, all attempts; none: no timeout bounds it.
    pub(super) running_ms: Option<u64>,
    /// Time that it waits for people, events and the morning; none: nothing bounds it.
    pub(super) waiting_ms: Option<u64>,
    pub(super) wait: Option<WaitPlan>,
    pub(super) call: Option<CallPlan>,
}

/// Why a cost is not known or has no bound, for each way to count it.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) expected_usd: Vec<String>,
    pub(super) usd: Vec<String>,
    pub(super) tokens: Vec<String>,
    pub(super) calls: Vec<String>,
}

/// What is known beside the node itself.
pub(super) struct Setting<'s> {
    pub(super) priced: Priced<'s>,
    pub(super) learnt: &'s BTreeMap<Name, Estimate>,
    /// What the author calls the node.
    pub(super) reference: &'s Name,
}

impl Work {
    /// `called`: whom it calls, and the plan of that.
    pub(super) fn of(node: &Node, setting: &Setting<'_>, called: Option<(Callee, Option<&Outline>)>) -> Work {
        let mut work = Work { running_ms: Some(0), waiting_ms: Some(0), ..Work::default() };
        work.may_grow(node, setting);
        let attempts = Attempts::of(setting.priced.graph, node);
        work.attempts_max = attempts.max;
        match &node.perform {
            Perform::Worker(task) => work.task(node, task, setting, &attempts),
            Perform::Coordinator { task, .. } => {
                work.actions = kinds(task);
                work.coordinated(node, &task.steps[0].action, setting, called);
            }
            Perform::Pass => {}
            Perform::Review => work.wait = Some(person(node, "Review the result".to_owned(), None)),
        }
        work.running_ms = work.running_ms.map(|ms| ms.saturating_add(attempts.backoff_ms));
        work.by_estimate(node, setting);
        work
    }

    /// What one attempt is expected to report.
    pub(super) fn spend(&self) -> Spend {
        Spend { usd_micros: self.cost.amount, duration_ms: self.duration.amount, ..Spend::default() }
    }

    /// Why its wait has no bound.
    pub(super) fn waits_forever(&self) -> Option<String> {
        let wait = self.wait.as_ref().filter(|wait| wait.at_most_ms.is_none())?;
        Some(match wait.kind {
            WaitKind::Person => format!("`{}` waits for a person, without a timeout", wait.node),
            WaitKind::Event => format!("`{}` waits for an event, without a timeout", wait.node),
            WaitKind::Sleep => format!("the run decides how long `{}` sleeps", wait.node),
        })
    }

    /// What the file or past runs say is more than what can be guessed.
    fn by_estimate(&mut self, node: &Node, setting: &Setting<'_>) {
        let written = node.estimate.unwrap_or_default();
        let estimate = schedule::estimate(node.estimate, setting.learnt.get(setting.reference));
        let origin = |written: Option<u64>| if written.is_some() { Origin::Written } else { Origin::Learnt };
        self.estimate = estimate;
        if let Some(amount) = estimate.duration_ms {
            self.duration = Guess { amount, origin: origin(written.duration_ms) };
        }
        if let Some(amount) = estimate.usd_micros {
            self.cost = Guess { amount, origin: origin(written.usd_micros) };
            // Whoever says what it costs need not be told that it is not known.
            self.open.expected_usd.clear();
        }
    }

    fn task(&mut self, node: &Node, task: &Task, setting: &Setting<'_>, attempts: &Attempts) {
        self.actions = kinds(task);
        self.is_task = true;
        self.guess(task);
        let (allowance, unpriced) = setting.priced.task(node, task);
        self.attempt = allowance;
        self.worst = times(allowance, attempts.max);
        let calls_model = |step: &Step| matches!(step.action.def.implementation, Implementation::LlmCall(_));
        if task.steps.iter().any(calls_model) {
            let origin = if unpriced.is_empty() { Origin::Worst } else { Origin::Unknown };
            self.cost = Guess { amount: allowance.usd_micros, origin };
        }
        self.open.unpriced(&unpriced);
        let own = node.timeout_ms.filter(|_| !node.timeout_adaptive);
        let one = own.or_else(|| steps_ms(task));
        self.running_ms = one.map(|ms| ms.saturating_mul(attempts.max));
    }

    /// What is written of a mock, nothing for what the task does itself, else a second for all of it.
    fn guess(&mut self, task: &Task) {
        for step in &task.steps {
            match &step.action.def.implementation {
                Implementation::Mock(mock) => {
                    let first = mock.outcomes.first().cloned().unwrap_or_default();
                    self.duration.amount = self.duration.amount.saturating_add(first.delay_ms.unwrap_or(0));
                    self.cost.amount = self.cost.amount.saturating_add(first.usage.usd_micros);
                }
                Implementation::UpdateContext(_) | Implementation::Assert(_) => {}
                _ => self.duration.origin = Origin::Unknown,
            }
        }
        if self.duration.origin == Origin::Unknown {
            self.duration.amount = self.duration.amount.max(DURATION_MS_UNKNOWN);
        }
    }

    /// What a run may add to itself has no bound before it does.
    fn may_grow(&mut self, node: &Node, setting: &Setting<'_>) {
        let reference = &node.reference;
        let added = node
            .may_mutate
            .map(|may| format!("`{reference}` may add up to {} nodes to its run", may.max_nodes));
        let rules = node.on_error.iter().chain(&setting.priced.graph.on_error);
        let behind = rules.filter_map(|rule| match &rule.response {
            Response::AddValidator { task } => {
                Some(format!("`{}` may be put behind `{reference}`", task.name))
            }
            _ => None,
        });
        for why in added.into_iter().chain(behind.filter(|_| node.task().is_some())) {
            for open in [&mut self.open.usd, &mut self.open.tokens, &mut self.open.calls] {
                open.push(why.clone());
            }
        }
    }

    fn coordinated(
        &mut self,
        node: &Node,
        action: &Action,
        setting: &Setting<'_>,
        called: Option<(Callee, Option<&Outline>)>,
    ) {
        let attempts = self.attempts_max;
        match &action.coordinated {
            Some(Coordinated::HumanGate(gate)) => {
                self.wait = Some(person(node, gate.title.text().to_owned(), gate_ms(gate, node)));
            }
            Some(Coordinated::WaitEvent(wait)) => {
                let what = wait.event.text().to_owned();
                let at_most_ms = wait.timeout_ms.or(node.timeout_ms);
                let node = node.reference.clone();
                self.wait = Some(WaitPlan { node, kind: WaitKind::Event, what, at_most_ms });
            }
            Some(Coordinated::Sleep(sleep)) => self.sleep(node, sleep),
            Some(Coordinated::WorkflowCall(spec)) => self.call(node, spec, setting, called),
            _ => {}
        }
        if let Some(wait) = &self.wait {
            // A sleep cannot fail.
            let attempts = if wait.kind == WaitKind::Sleep { 1 } else { attempts };
            self.waiting_ms = wait.at_most_ms.map(|ms| ms.saturating_mul(attempts));
            if wait.kind != WaitKind::Sleep {
                self.duration.origin = Origin::Waits;
            }
        }
    }

    fn sleep(&mut self, node: &Node, sleep: &SleepSpec) {
        let (what, ms) = match sleep {
            SleepSpec::For(text) => {
                let ms = parse_duration_ms(text.text()).filter(|_| text.is_plain());
                (format!("for {}", text.text()), ms)
            }
            SleepSpec::Until(expr) => (format!("until {}", expr.text()), None),
        };
        let origin = if ms.is_some() { Origin::Written } else { Origin::Unknown };
        self.duration = Guess { amount: ms.unwrap_or(DURATION_MS_UNKNOWN), origin };
        let node = node.reference.clone();
        self.wait = Some(WaitPlan { node, kind: WaitKind::Sleep, what, at_most_ms: ms });
    }

    fn call(
        &mut self,
        node: &Node,
        spec: &CallSpec,
        setting: &Setting<'_>,
        called: Option<(Callee, Option<&Outline>)>,
    ) {
        let workflow: Name = match &spec.workflow {
            CalleeSpec::Named(name) => name.text().into(),
            CalleeSpec::FromContext(expr) => expr.text().into(),
        };
        let (callee, child) = called.unwrap_or((Callee::Unknown, None));
        let own = node.timeout_ms.or(spec.timeout_ms);
        self.running_ms = own.map(|ms| ms.saturating_mul(self.attempts_max));
        if let Some(child) = child {
            let cost = &child.cost;
            self.duration = Guess { amount: child.duration.expected_ms, origin: Origin::Planned };
            self.cost = Guess { amount: cost.expected_usd_micros.known, origin: Origin::Planned };
            self.worst = Allowance {
                usd_micros: cost.worst_usd_micros.known.saturating_mul(self.attempts_max),
                tokens: cost.worst_tokens.known.saturating_mul(self.attempts_max),
                calls: cost.worst_calls.known.saturating_mul(self.attempts_max),
            };
            self.open.of_child(child);
            let inner = child.duration.worst.bound().map(|ms| ms.saturating_mul(self.attempts_max));
            self.running_ms = self.running_ms.or(inner);
        } else {
            self.duration = Guess { amount: DURATION_MS_UNKNOWN, origin: Origin::Unknown };
            self.cost = Guess { amount: 0, origin: Origin::Unknown };
            let why = match callee {
                Callee::Recursive => calls_itself(&workflow),
                Callee::TooDeep => format!("`{workflow}` is called deeper than runs may nest"),
                Callee::ByData => format!("the run decides whom `{}` calls", setting.reference),
                Callee::Planned | Callee::Unknown => format!("workflow `{workflow}` is not defined here"),
            };
            self.open.everywhere(&why);
        }
        self.call = Some(CallPlan { node: node.reference.clone(), workflow, callee });
    }
}

impl Open {
    fn everywhere(&mut self, why: &str) {
        for open in [&mut self.expected_usd, &mut self.usd, &mut self.tokens, &mut self.calls] {
            open.push(why.to_owned());
        }
    }

    fn unpriced(&mut self, models: &BTreeSet<Name>) {
        for model in models {
            let why = format!("model `{model}` has no price");
            self.expected_usd.push(why.clone());
            self.usd.push(why);
        }
    }

    fn of_child(&mut self, child: &Outline) {
        let cost = &child.cost;
        let told = |total: &Total| -> Vec<String> {
            // What was said of a child of the child has its name on it already.
            let of = &child.workflow;
            let name = |why: &String| match why.starts_with("in `") {
                true => why.clone(),
                false => format!("in `{of}`: {why}"),
            };
            total.unbounded.iter().map(name).collect()
        };
        self.expected_usd.extend(told(&cost.expected_usd_micros));
        self.usd.extend(told(&cost.worst_usd_micros));
        self.tokens.extend(told(&cost.worst_tokens));
        self.calls.extend(told(&cost.worst_calls));
    }
}

/// Why a workflow that comes back to itself has no bound.
pub(super) fn calls_itself(workflow: &str) -> String {
    format!("`{workflow}` calls itself")
}

fn times(allowance: Allowance, times: u64) -> Allowance {
    Allowance {
        usd_micros: allowance.usd_micros.saturating_mul(times),
        tokens: allowance.tokens.saturating_mul(times),
        calls: allowance.calls.saturating_mul(times),
    }
}

fn kinds(task: &Task) -> Vec<Name> {
    task.steps.iter().map(|step| step.action.def.implementation.kind().into()).collect()
}

/// All actions of a task, one after the other.
fn steps_ms(task: &Task) -> Option<u64> {
    task.steps
        .iter()
        .map(|step| action_ms(&step.action))
        .try_fold(0, |sum: u64, ms| Some(sum.saturating_add(ms?)))
}

/// The longest that one action may take with all its tries; none if nothing says.
fn action_ms(action: &Action) -> Option<u64> {
    let execution = &action.def.execution;
    let unlimited = match &action.def.implementation {
        Implementation::UpdateContext(_) | Implementation::Assert(_) => Some(0),
        Implementation::Mock(mock) => {
            let retry = execution.retry_policy.unwrap_or(TRIES);
            let errors = mock.outcomes.iter().flat_map(|outcome| &outcome.error);
            let broken = errors.map(|error| Failure::new(error.kind, "")).any(|f| f.is_infrastructural());
            let tries = if broken { u64::from(retry.max_attempts.max(1)) } else { 1 };
            let longest = mock.outcomes.iter().filter_map(|outcome| outcome.delay_ms).max().unwrap_or(0);
            Some(longest.saturating_mul(tries).saturating_add(waits_ms(&retry.backoff, tries - 1)))
        }
        _ => None,
    };
    match (execution.timeout_ms, unlimited) {
        (Some(timeout), Some(ms)) => Some(ms.min(timeout)),
        (timeout, ms) => timeout.or(ms),
    }
}

fn person(node: &Node, what: String, at_most_ms: Option<u64>) -> WaitPlan {
    WaitPlan { node: node.reference.clone(), kind: WaitKind::Person, what, at_most_ms }
}

/// Escalating asks others, once, with the same time again.
fn gate_ms(gate: &GateSpec, node: &Node) -> Option<u64> {
    let again = gate.on_timeout == GateTimeout::Escalate && !gate.escalate.is_empty();
    Some(gate.timeout_ms.or(node.timeout_ms)?.saturating_mul(if again { 2 } else { 1 }))
}

/// The workflow that a node calls, if it is written plainly.
pub(super) fn callee(node: &Node) -> Option<Result<Name, ()>> {
    let Perform::Coordinator { task, .. } = &node.perform else { return None };
    let Some(Coordinated::WorkflowCall(spec)) = &task.steps.first()?.action.coordinated else { return None };
    Some(match &spec.workflow {
        CalleeSpec::Named(name) if name.is_plain() => Ok(name.text().into()),
        _ => Err(()),
    })
}
