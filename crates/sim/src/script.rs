//! A scenario's script: what each node's tasks answer, by branch, item and attempt.
//!
//! Of the entries that fit, those that name a run, a branch, an item or a step go before those that do not.
//! Among them the one that names the attempt is taken, else they are used up one per try, and the last repeats.

use std::collections::BTreeMap;

use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::execution::Delivery;
use wonder_core::input::TaskOutcome;
use wonder_core::value::Value;

use crate::executor::shaped;
use crate::outcomes::{Act, ActionRequest, At, GateAnswer, GateRequest, OnCancel, Outcomes};

#[derive(Clone, Debug)]
pub struct Script {
    /// By node ref, or `workflow/ref`.
    pub nodes: BTreeMap<String, Vec<Entry>>,
    pub on_cancel: OnCancel,
}

#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The id of the run.
    pub run: Option<String>,
    /// The innermost branch.
    pub branch: Option<u32>,
    pub item: Option<Value>,
    pub attempt: Option<u32>,
    pub step: Option<Name>,
    pub result: Option<Value>,
    pub error: Option<Failure>,
    pub delay_ms: u64,
    pub usage: Spend,
    /// The host speaks for the task: its worker is lost, or the like.
    pub task_error: Option<Failure>,
    /// The same: no worker took it for as long as `delay` says.
    pub not_taken: bool,
    pub on_cancel: Option<OnCancel>,
}

impl Default for Script {
    fn default() -> Script {
        Script { nodes: BTreeMap::new(), on_cancel: OnCancel::ReportsAfter(10) }
    }
}

impl Script {
    fn entry(&self, at: &At<'_>, step: Option<&str>, try_number: u32) -> Option<&Entry> {
        let full = format!("{}/{}", at.workflow, at.node);
        let entries = self.nodes.get(&full).or_else(|| self.nodes.get(at.node))?;
        let fits = |entry: &&Entry| {
            entry.run.as_ref().is_none_or(|run| run == at.run)
                && entry.branch.is_none_or(|branch| at.path.last() == Some(&branch))
                && entry.item.as_ref().is_none_or(|item| item == at.item)
                && (step.is_none() || entry.step.is_none() || entry.step.as_deref() == step)
        };
        let fitting: Vec<&Entry> = entries.iter().filter(fits).collect();
        let narrow: Vec<&Entry> = fitting
            .iter()
            .copied()
            .filter(|e| e.run.is_some() || e.branch.is_some() || e.item.is_some() || e.step.is_some())
            .collect();
        let chosen = if narrow.is_empty() { fitting } else { narrow };
        if let Some(exact) = chosen.iter().find(|entry| entry.attempt == Some(at.attempt)) {
            return Some(exact);
        }
        let in_turn: Vec<&Entry> = chosen.into_iter().filter(|entry| entry.attempt.is_none()).collect();
        in_turn.get(try_number as usize).or(in_turn.last()).copied()
    }
}

impl Outcomes for Script {
    fn outcome(&self, request: &ActionRequest<'_>) -> Option<Act> {
        let entry = self.entry(&request.at, Some(request.step), request.try_number)?;
        let result = match (&entry.error, &entry.result) {
            (Some(failure), _) => Some(Err(failure.clone())),
            (None, Some(result)) => Some(Ok(shaped(request.action, result.clone()))),
            (None, None) => None,
        };
        let (delay_ms, spend) = (entry.delay_ms, entry.usage.clone());
        Some(Act { result, delivery: Delivery::Answered, delay_ms, spend, one_try: false })
    }

    fn reported_by_host(&self, at: &At<'_>) -> Option<(u64, TaskOutcome)> {
        let entry = self.entry(at, None, at.attempt.saturating_sub(1))?;
        let outcome = match entry.task_error.clone() {
            Some(failure) => TaskOutcome::Failed { failure, retry: false, step: None },
            None if entry.not_taken => TaskOutcome::NotTaken { waited_ms: entry.delay_ms },
            None => return None,
        };
        Some((entry.delay_ms, outcome))
    }

    fn on_cancel(&self, at: &At<'_>) -> OnCancel {
        let entry = self.entry(at, None, at.attempt.saturating_sub(1));
        entry.and_then(|entry| entry.on_cancel).unwrap_or(self.on_cancel)
    }

    fn gate_answers(&self, _asked: &GateRequest<'_>) -> Vec<GateAnswer> {
        Vec::new()
    }
}
