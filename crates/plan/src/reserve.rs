//! What one attempt of a node can cost at worst, as the core reserves it before a dispatch, and how many
//! attempts the policies allow. Only the run knows a call's input, so a size is assumed for it.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::backoff::longest_ms;
use wonder_core::cost::Allowance;
use wonder_core::def::{Backoff, Implementation, LlmCall, Name, OnFailure, Prices};
use wonder_core::default_rules::{Happened, action_timeout_rule, default_rule};
use wonder_core::error::ErrorKind;
use wonder_core::graph::{Graph, MapTree, Node, NodeInput, Perform, Response, Rule, Step, Task};
use wonder_core::reserve::{worst_call, worst_task, written_bytes};

/// What a call's input is taken to have where only the run can tell.
pub(super) const INPUT_BYTES_ASSUMED: u64 = 4_096;
/// `{}`.
const EMPTY_BYTES: u64 = 2;
/// Waits that are summed one by one; the rest are as long as they may be.
const WAITS_SUMMED_MAX: u64 = 64;

/// A graph and what is known of prices beyond it.
#[derive(Clone, Copy)]
pub(super) struct Priced<'p> {
    pub(super) graph: &'p Graph,
    pub(super) prices: &'p BTreeMap<Name, Prices>,
}

impl Priced<'_> {
    /// The reservation of one attempt, and the models without a price in it.
    pub(super) fn task(self, node: &Node, task: &Task) -> (Allowance, BTreeSet<Name>) {
        let (bytes, mut unpriced) = (input_bytes(node), BTreeSet::new());
        let allowance =
            worst_task(task, |call, more| self.call(node, call, bytes.saturating_add(more), &mut unpriced));
        (allowance, unpriced)
    }

    /// By the dearest of the models that a response may switch to.
    fn call(self, node: &Node, call: &LlmCall, input_bytes: u64, unpriced: &mut BTreeSet<Name>) -> Allowance {
        let mut worst = Allowance::default();
        for model in self.models(node, call) {
            let profile = self.graph.models.get(&model);
            let prices = self.prices(&model);
            if prices.is_none() {
                unpriced.insert(model.clone());
            }
            let bytes = written_bytes(self.graph, call).saturating_add(input_bytes);
            let one = worst_call(call, profile, &prices.unwrap_or_default(), bytes);
            worst.usd_micros = worst.usd_micros.max(one.usd_micros);
            worst.tokens = worst.tokens.max(one.tokens);
            worst.calls = worst.calls.max(one.calls);
        }
        worst
    }

    /// None: nobody has said what it costs.
    pub(super) fn prices(self, model: &Name) -> Option<Prices> {
        let of_profile = || self.graph.models.get(model)?.known_prices();
        self.prices.get(model).copied().or_else(of_profile)
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

/// How often a node may be attempted, and all the waits between that, at their longest.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) max: u64,
    pub(super) backoff_ms: u64,
}

impl Attempts {
    /// By the task's own retry, the node's and the workflow's rules and the defaults, as far as their order
    /// lets them be asked. What people decide to try again is theirs to count.
    pub(super) fn of(graph: &Graph, node: &Node) -> Attempts {
        let mut attempts = Attempts { max: 1, backoff_ms: 0 };
        let Some(task) = node.task() else { return attempts };
        let asks =
            task.retries_any_failure() || task.steps.iter().any(|step| step.on_failure == OnFailure::Retry);
        if let Some(retry) = task.retry.filter(|_| asks) {
            attempts.more(retry.max_attempts.saturating_sub(1), &retry.backoff);
        }
        if let Some(rule) = task.steps.iter().find_map(|step| written_on_action(node, step)) {
            attempts.more(rule.max, &rule.backoff);
        }
        for rule in node.on_error.iter().chain(&graph.on_error) {
            match &rule.response {
                Response::SwitchModel => attempts.more(rule.max.min(fallbacks(graph, task)), &rule.backoff),
                Response::Goto(_) | Response::LoopWithFeedback { to: Some(_) } => {}
                Response::Escalate | Response::Pause | Response::Skip { .. } | Response::Fail => {
                    if rule.when.is_none() {
                        return attempts;
                    }
                }
                _ => attempts.more(rule.max, &rule.backoff),
            }
        }
        if let Perform::Worker(task) = &node.perform {
            attempts.defaults(graph, node, task);
        }
        attempts
    }

    /// What is done when nobody wrote anything, about each kind of failure that can come.
    fn defaults(&mut self, graph: &Graph, node: &Node, task: &Task) {
        let mut rules = BTreeMap::new();
        for step in &task.steps {
            for kind in failures(step) {
                let happened = Happened { kind, step: Some(&step.reference), expired: false };
                rules.extend(default_rule(node, &happened));
            }
        }
        for rule in rules.values().filter(|rule| rule.response.runs_again()) {
            let times = match rule.response {
                Response::SwitchModel => rule.max.min(fallbacks(graph, task)),
                _ => rule.max,
            };
            self.more(times, &rule.backoff);
        }
    }

    fn more(&mut self, times: u32, backoff: &Backoff) {
        self.max = self.max.saturating_add(times.into());
        self.backoff_ms = self.backoff_ms.saturating_add(waits_ms(backoff, times.into()));
    }
}

/// What is written on the action of a step about its timeout, if it has one.
fn written_on_action(node: &Node, step: &Step) -> Option<Rule> {
    step.action.def.execution.timeout_ms?;
    let happened = Happened { kind: ErrorKind::Timeout, step: Some(&step.reference), expired: false };
    action_timeout_rule(node, &happened)
}

/// The kinds of failure of a step that the defaults may have an answer to.
fn failures(step: &Step) -> Vec<ErrorKind> {
    let action = &step.action;
    let mut kinds = Vec::new();
    if action.def.execution.timeout_ms.is_some() {
        kinds.push(ErrorKind::Timeout);
    }
    match &action.def.implementation {
        Implementation::LlmCall(call) => {
            kinds.push(ErrorKind::ModelRefused);
            if call.output_schema.is_some() || action.produces.is_some() {
                kinds.push(ErrorKind::ContractViolation);
            }
        }
        Implementation::Mock(mock) => {
            kinds.extend(mock.outcomes.iter().flat_map(|outcome| &outcome.error).map(|error| error.kind));
            if action.produces.is_some() {
                kinds.push(ErrorKind::ContractViolation);
            }
        }
        Implementation::Assert(assert) if assert.score.is_some() => {
            kinds.push(ErrorKind::QualityBelowThreshold);
        }
        _ => {}
    }
    kinds
}

/// How often another model can be asked.
fn fallbacks(graph: &Graph, task: &Task) -> u32 {
    let calls = task.steps.iter().filter_map(|step| match &step.action.def.implementation {
        Implementation::LlmCall(call) => call.model.as_ref(),
        _ => None,
    });
    let profiles = calls.filter_map(|model| graph.models.get(&model.text));
    profiles.map(|profile| profile.fallbacks.len() as u32).max().unwrap_or(0)
}

/// All the waits of so many tries at their longest.
pub(super) fn waits_ms(backoff: &Backoff, times: u64) -> u64 {
    let summed = times.min(WAITS_SUMMED_MAX);
    let first = (1..=summed as u32).map(|k| longest_ms(backoff, k)).fold(0, u64::saturating_add);
    first.saturating_add(longest_ms(backoff, u32::MAX).saturating_mul(times - summed))
}
