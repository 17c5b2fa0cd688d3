//! What one attempt of a node can cost at worst, as the core reserves it before a dispatch, and how many
//! attempts the policies allow. Only the run knows a call's input, so a size is assumed for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wonder_core::cost::Allowance;
use wonder_core::def::{Backoff, BackoffKind, Implementation, LlmCall, Name, NodeTimeout, OnFailure, Prices};
use wonder_core::error::ErrorKind;
use wonder_core::graph::{Graph, MapTree, Node, NodeInput, Perform, Response, Rule, Task};
use wonder_core::mock;
use wonder_core::reserve::{worst_call, written_bytes};

/// What a call's input is taken to have where only the run can tell.
pub(super) const INPUT_BYTES_ASSUMED: u64 = 4_096;
/// `{}`.
const EMPTY_BYTES: u64 = 2;
/// Providers that send no bill.
const FREE: [&str; 3] = ["ollama", "mock", "local"];
/// Waits that are summed one by one; the rest are as long as they may be.
const WAITS_SUMMED_MAX: u64 = 64;

/// A graph and what is known of prices beyond it.
#[derive(Clone, Copy)]
pub(super) struct Priced<'p> {
    pub(super) graph: &'p Graph,
    pub(super) prices: &'p BTreeMap<Name, Prices>,
}

/// The reservation of one attempt, and the models without a price in it.
#[derive(Default)]
pub(super) struct Reserve {
    pub(super) allowance: Allowance,
    pub(super) unpriced: BTreeSet<Name>,
}

impl Priced<'_> {
    pub(super) fn task(self, node: &Node, task: &Task) -> Reserve {
        let mut reserve = Reserve::default();
        let input_bytes = input_bytes(node);
        for step in &task.steps {
            match &step.action.def.implementation {
                Implementation::LlmCall(call) => self.call(node, call, input_bytes, &mut reserve),
                Implementation::Mock(mock) => reserve.allowance.add(&mock::worst(mock)),
                _ => {}
            }
        }
        reserve
    }

    /// By the dearest of the models that a response may switch to.
    fn call(self, node: &Node, call: &LlmCall, input_bytes: u64, reserve: &mut Reserve) {
        let mut worst = Allowance::default();
        for model in self.models(node, call) {
            let profile = self.graph.models.get(&model);
            let prices = self.prices(&model);
            if prices.is_none() {
                reserve.unpriced.insert(model.clone());
            }
            let bytes = written_bytes(self.graph, call).saturating_add(input_bytes);
            let one = worst_call(call, profile, &prices.unwrap_or_default(), bytes);
            worst.usd_micros = worst.usd_micros.max(one.usd_micros);
            worst.tokens = worst.tokens.max(one.tokens);
            worst.calls = worst.calls.max(one.calls);
        }
        reserve.allowance.add(&worst);
    }

    /// None: nobody has said what it costs.
    pub(super) fn prices(self, model: &Name) -> Option<Prices> {
        let profile = self.graph.models.get(model);
        let written = profile.map(|profile| profile.prices).filter(|prices| *prices != Prices::default());
        let free = profile.and_then(|profile| profile.provider.as_deref()).is_some_and(is_free);
        self.prices.get(model).copied().or(written).or(free.then(Prices::default))
    }

    /// The model that a call names, and those that a response may put in its place.
    pub(super) fn models(self, node: &Node, call: &LlmCall) -> BTreeSet<Name> {
        let mut models: BTreeSet<Name> = call.model.iter().map(|model| model.text.clone()).collect();
        let rules = node.on_error.iter().chain(&self.graph.on_error);
        models.extend(rules.filter_map(|rule| match &rule.response {
            Response::Change { model, .. } => model.clone(),
            _ => None,
        }));
        let fallbacks = models.iter().filter_map(|model| self.graph.models.get(model));
        let fallbacks: Vec<Name> =
            fallbacks.flat_map(|profile| &profile.fallbacks).map(|model| model.text.clone()).collect();
        models.extend(fallbacks);
        models
    }
}

pub(super) fn is_free(provider: &str) -> bool {
    FREE.contains(&provider)
}

/// The size of a task's input: nothing to speak of if it reads nothing.
fn input_bytes(node: &Node) -> u64 {
    match &node.input {
        NodeInput::Empty => EMPTY_BYTES,
        NodeInput::Named(reads) | NodeInput::NamedInput(reads) if reads.is_empty() => EMPTY_BYTES,
        NodeInput::Mapped(tree) => literal_bytes(tree).unwrap_or(INPUT_BYTES_ASSUMED),
        _ => INPUT_BYTES_ASSUMED,
    }
}

fn literal_bytes(tree: &MapTree) -> Option<u64> {
    match tree {
        MapTree::Expr(_) => None,
        MapTree::Literal(value) => Some(value.size() as u64),
        MapTree::Map(entries) => {
            entries.iter().map(|(key, tree)| Some(literal_bytes(tree)? + key.len() as u64)).sum()
        }
        MapTree::List(items) => items.iter().map(literal_bytes).sum(),
    }
}

/// What a node says about failure.
struct Asked<'a> {
    rules: &'a [Rule],
    /// Nothing about timeouts.
    silent: bool,
    is_worker: bool,
}

/// How often a node may be attempted, and what that brings with it.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) max: u64,
    /// All the waits between them, at their longest.
    pub(super) backoff_ms: u64,
    /// What a response may put behind the node.
    pub(super) validators: Vec<Arc<Task>>,
}

impl Attempts {
    pub(super) fn of(graph: &Graph, node: &Node) -> Attempts {
        let Some(task) = node.task() else {
            return Attempts { max: 1, backoff_ms: 0, validators: Vec::new() };
        };
        let silent = node.on_timeout == NodeTimeout::Fail;
        let asked =
            Asked { rules: &node.on_error, silent, is_worker: matches!(node.perform, Perform::Worker(_)) };
        Attempts::asked(graph, task, asked)
    }

    /// Of a validator that a response put behind a node: it has no rules of its own.
    pub(super) fn of_validator(graph: &Graph, task: &Task) -> Attempts {
        Attempts::asked(graph, task, Asked { rules: &[], silent: true, is_worker: true })
    }

    /// By the task's own retry, the node's and the workflow's rules and the defaults, as far as their order
    /// lets them be asked. What people decide to try again is theirs to count.
    fn asked(graph: &Graph, task: &Task, asked: Asked<'_>) -> Attempts {
        let mut attempts = Attempts { max: 1, backoff_ms: 0, validators: Vec::new() };
        let asks = task.steps.iter().any(|step| step.on_failure == OnFailure::Retry);
        if let Some(retry) = task.retry.filter(|_| asks) {
            attempts.more(retry.max_attempts.saturating_sub(1), &retry.backoff);
        }
        for rule in asked.rules.iter().chain(&graph.on_error) {
            match &rule.response {
                Response::SwitchModel if !has_fallbacks(graph, task) => {}
                Response::Goto(_) | Response::LoopWithFeedback { to: Some(_) } => {}
                Response::Escalate | Response::Pause | Response::Skip { .. } | Response::Fail => {
                    if rule.when.is_none() {
                        return attempts;
                    }
                }
                response => {
                    attempts.more(rule.max, &rule.backoff);
                    if let Response::AddValidator { task } = response {
                        attempts.validators.push(Arc::clone(task));
                    }
                }
            }
        }
        if asked.is_worker {
            attempts.defaults(graph, task, asked.silent && task.retry.is_none());
        }
        attempts
    }

    /// What is done when nobody wrote anything.
    fn defaults(&mut self, graph: &Graph, task: &Task, silent: bool) {
        let any = |test: fn(&Implementation) -> bool| {
            task.steps.iter().any(|step| test(&step.action.def.implementation))
        };
        let scripted = |kind: ErrorKind| {
            task.steps.iter().any(|step| match &step.action.def.implementation {
                Implementation::Mock(mock) => {
                    mock.outcomes.iter().flat_map(|outcome| &outcome.error).any(|error| error.kind == kind)
                }
                _ => false,
            })
        };
        let timed = task.steps.iter().any(|step| step.action.def.execution.timeout_ms.is_some());
        let answers = task.steps.iter().any(|step| match &step.action.def.implementation {
            Implementation::LlmCall(call) => call.output_schema.is_some() || step.action.produces.is_some(),
            Implementation::Mock(_) => step.action.produces.is_some(),
            _ => false,
        });
        let scores = any(|kind| matches!(kind, Implementation::Assert(assert) if assert.score.is_some()));
        let tries = [
            (silent && (timed || scripted(ErrorKind::Timeout)), 3),
            (has_fallbacks(graph, task), 1),
            (answers || scripted(ErrorKind::ContractViolation), 1),
            (scores || scripted(ErrorKind::QualityBelowThreshold), 2),
        ];
        for (_, times) in tries.into_iter().filter(|(can, _)| *can) {
            self.more(times, &Backoff::default());
        }
    }

    fn more(&mut self, times: u32, backoff: &Backoff) {
        self.max = self.max.saturating_add(times.into());
        self.backoff_ms = self.backoff_ms.saturating_add(waits_ms(backoff, times.into()));
    }
}

fn has_fallbacks(graph: &Graph, task: &Task) -> bool {
    let calls = task.steps.iter().filter_map(|step| match &step.action.def.implementation {
        Implementation::LlmCall(call) => call.model.as_ref(),
        _ => None,
    });
    calls.filter_map(|model| graph.models.get(&model.text)).any(|profile| !profile.fallbacks.is_empty())
}

/// All the waits of so many tries, without the luck of a jitter.
pub(super) fn waits_ms(backoff: &Backoff, times: u64) -> u64 {
    let wait = |k: u64| {
        let whole = match backoff.kind {
            BackoffKind::None => 0,
            BackoffKind::Linear => backoff.initial_delay_ms.saturating_mul(k),
            BackoffKind::Exponential => backoff.initial_delay_ms.saturating_mul(1 << (k - 1).min(40)),
        };
        whole.min(backoff.max_delay_ms)
    };
    if backoff.kind == BackoffKind::None {
        return 0;
    }
    let summed = times.min(WAITS_SUMMED_MAX);
    let first = (1..=summed).map(wait).fold(0, u64::saturating_add);
    first.saturating_add(backoff.max_delay_ms.saturating_mul(times - summed))
}
