//! Times and amounts: in the right order, and not nothing.

use std::sync::Arc;

use super::Check;
use crate::codes;
use wonder_lang::def::{ActionDef, Budget, Implementation, Name, NodeDef, Rule, Spot, TaskDef, WorkflowDef};
use wonder_lang::limits::WORKFLOW_TIMEOUT_MS;
use wonder_lang::problem::Problem;

impl Check<'_> {
    pub(super) fn workflow_times(&mut self, workflow: &WorkflowDef) {
        self.zero(workflow.timeout_ms, workflow.spot, "the timeout of the workflow");
        self.zero(workflow.max_parallel.map(u64::from), workflow.spot, "`max_parallel`");
        self.zero(workflow.nodes_max.map(u64::from), workflow.spot, "`nodes_max`");
        let limit = workflow.concurrency.as_ref().map(|concurrency| u64::from(concurrency.limit));
        self.zero(limit, workflow.spot, "`concurrency.limit`");
        self.budget(workflow.budget.as_ref(), workflow.spot);
        self.dollars(workflow.budget.as_ref(), workflow.spot, None);
        self.rule_limits(&workflow.on_error);
    }

    pub(super) fn node_times(&mut self, node: &NodeDef, task: Option<&TaskDef>) {
        let spot = node.reference.spot;
        self.zero(node.timeout_ms, spot, "the timeout of a node");
        self.zero(node.may_mutate.map(|may| u64::from(may.max_nodes)), spot, "`may_mutate.max_nodes`");
        self.budget(node.budget.as_ref(), spot);
        self.dollars(node.budget.as_ref(), spot, Some(&node.task));
        self.rule_limits(&node.on_error);
        let Some(task) = task else { return };
        let actions = self.actions_of(task);
        if let Some(own) = node.timeout_ms {
            for action in &actions {
                self.no_longer(
                    action.execution.timeout_ms,
                    own,
                    ["action", "node"],
                    &action.name.text,
                    action.spot,
                );
            }
        }
        // The workflow's clock stands still while a run only waits.
        let stands = |action: &Arc<ActionDef>| {
            matches!(
                action.implementation,
                Implementation::HumanGate(_) | Implementation::WaitEvent(_) | Implementation::Sleep(_)
            )
        };
        if actions.iter().any(stands) {
            return;
        }
        let whole = self.bundle.workflow.timeout_ms.unwrap_or(WORKFLOW_TIMEOUT_MS);
        self.no_longer(node.timeout_ms, whole, ["node", "workflow"], &node.reference.text, spot);
        if node.timeout_ms.is_none() {
            self.no_longer(task.timeout_ms, whole, ["task", "workflow"], &task.name.text, task.spot);
        }
        for action in &actions {
            self.no_longer(
                action.execution.timeout_ms,
                whole,
                ["action", "workflow"],
                &action.name.text,
                action.spot,
            );
        }
        let limited = node.timeout_ms.or(task.timeout_ms).is_some() || node.timeout_adaptive;
        for action in actions.iter().filter(|action| !limited && action.execution.timeout_ms.is_none()) {
            self.suggest_timeout(action);
        }
    }

    pub(super) fn task_times(&mut self, name: &Name, task: &TaskDef) {
        self.zero(task.timeout_ms, task.spot, "the timeout of a task");
        self.zero(task.retry.map(|retry| u64::from(retry.max_attempts)), task.spot, "`max_attempts`");
        let Some(own) = task.timeout_ms else { return };
        for action in self.actions_of(task) {
            self.no_longer(action.execution.timeout_ms, own, ["action", "task"], name, action.spot);
        }
    }

    fn no_longer(&mut self, inner: Option<u64>, outer: u64, layers: [&str; 2], name: &str, spot: Spot) {
        let Some(inner) = inner.filter(|inner| *inner > outer) else { return };
        let [small, large] = layers;
        let message = format!(
            "the timeout of {small} `{name}` ({}) is longer than that of its {large} ({})",
            duration(inner),
            duration(outer)
        );
        self.report(
            Problem::error(codes::TIMEOUT_ORDER, spot, message)
                .label("expected action < task < workflow")
                .help(format!(
                    "shorten it to {} or less, or raise the timeout of the {large}",
                    duration(outer)
                )),
        );
    }

    fn suggest_timeout(&mut self, action: &ActionDef) {
        if !action.implementation.is_external() {
            return;
        }
        let kind = action.implementation.kind();
        let usual = match &action.implementation {
            Implementation::LlmCall(_) => "2 to 5 minutes",
            Implementation::McpTool(_) | Implementation::HttpRequest(_) => "30 seconds to 2 minutes",
            _ => "a little more than the command takes",
        };
        self.report(
            Problem::warning(
                codes::NO_TIMEOUT,
                action.spot,
                format!("`{kind}` (`{}`) has no timeout", action.name),
            )
            .label("expected a timeout on the action, its task or its node")
            .help(format!("write `timeout: …`; usual for `{kind}` is {usual}")),
        );
    }

    fn budget(&mut self, budget: Option<&Budget>, spot: Spot) {
        let Some(budget) = budget else { return };
        let limits = [budget.usd_micros, budget.tokens, budget.calls, budget.wall_ms];
        if limits.iter().all(Option::is_none) || limits.contains(&Some(0)) {
            self.report(
                Problem::error(codes::EMPTY_BUDGET, spot, "this budget limits nothing, or allows nothing")
                    .label("expected `usd`, `tokens`, `calls` or `wall`, each more than 0"),
            );
        }
        if !(1..=1000).contains(&budget.warn_at_permille) {
            self.report(
                Problem::error(codes::EMPTY_BUDGET, spot, "`warn_at` is a share of the budget")
                    .label("expected more than 0 and at most 1"),
            );
        }
    }

    /// What is known of the actions of a task.
    fn actions_of(&self, task: &TaskDef) -> Vec<Arc<ActionDef>> {
        let known = task.steps.iter().filter_map(|step| self.actions.get(&step.action.text));
        known.map(|known| known.action.def.clone()).collect()
    }

    fn rule_limits(&mut self, rules: &[Rule]) {
        for rule in rules {
            self.zero(rule.max.map(u64::from), rule.spot, "`max`");
        }
    }
}

/// A time as people write it.
fn duration(ms: u64) -> String {
    for (unit_ms, unit) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms >= unit_ms && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}
