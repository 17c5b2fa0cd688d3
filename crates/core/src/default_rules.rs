//! What is done about a kind of failure when nobody wrote anything, after all written rules. The run goes by
//! it, and a plan counts attempts by it.

use crate::def::{Backoff, Implementation, Name, NodeTimeout};
use crate::error::ErrorKind;
use crate::graph::{Node, Perform, Response, Rule};

/// A failure, as far as the defaults ask.
#[derive(Clone, Copy, Debug)]
pub struct Happened<'h> {
    pub kind: ErrorKind,
    pub step: Option<&'h Name>,
    /// A time that the core or the task itself keeps was over: only written responses apply.
    pub expired: bool,
}

/// The default for a failure, and its number, which is part of the stored format.
pub fn default_rule(node: &Node, happened: &Happened<'_>) -> Option<(u32, Rule)> {
    let rule = |response: Response, max: u32| Rule {
        when: None,
        repeats_unknown: false,
        response,
        max,
        backoff: Backoff::default(),
    };
    let is_worker = matches!(node.perform, Perform::Worker(_));
    // Who wrote `on_timeout: retry` has said how often.
    let silent = node.on_timeout == NodeTimeout::Fail && node.task().is_some_and(|task| task.retry.is_none());
    Some(match happened.kind {
        ErrorKind::Timeout if is_worker && !happened.expired && silent => (0, rule(Response::Retry, 3)),
        ErrorKind::ModelRefused => (1, rule(Response::SwitchModel, 1)),
        ErrorKind::ContractViolation if is_answer(node, happened) => {
            (2, rule(Response::StricterPrompt { append: None }, 1))
        }
        ErrorKind::QualityBelowThreshold if is_worker => {
            (3, rule(Response::LoopWithFeedback { to: None }, 2))
        }
        ErrorKind::OutcomeUnknown => (4, rule(Response::Escalate, 1)),
        _ => return None,
    })
}

/// The step that failed is one whose answer could be better: a model's, or a mock that stands in for one.
fn is_answer(node: &Node, happened: &Happened<'_>) -> bool {
    let step = happened.step.and_then(|step| node.task()?.steps.iter().find(|s| s.reference == *step));
    step.is_some_and(|step| {
        matches!(step.action.def.implementation, Implementation::LlmCall(_) | Implementation::Mock(_))
    })
}
