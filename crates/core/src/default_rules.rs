//! What is done about a kind of failure when nobody wrote anything, after all written rules; and what is written on
//! an action rather than on a node. The run goes by it, and a plan counts attempts by it.

use crate::def::{Backoff, Implementation, Name, NodeTimeout};
use crate::error::ErrorKind;
use crate::graph::{Node, Perform, Response, Rule};

/// More attempts after the timeout of an action, where nobody wrote how many.
const TIMEOUT_RETRIES: u32 = 3;

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
    let is_worker = matches!(node.perform, Perform::Worker(_));
    // Whoever wrote `on_timeout`, or how often the task is tried, has said what happens.
    let silent = node.written_on_timeout(happened.step).is_none()
        && node.task().is_some_and(|task| task.retry.is_none());
    Some(match happened.kind {
        ErrorKind::Timeout if is_worker && !happened.expired && silent => {
            (0, rule(Response::Retry, TIMEOUT_RETRIES))
        }
        // As often as there is another profile, and without a wait: it is not the one that refused.
        ErrorKind::ModelRefused => {
            (1, Rule { backoff: Backoff::NONE, ..rule(Response::SwitchModel, u32::MAX) })
        }
        ErrorKind::ContractViolation if is_answer(node, happened) => {
            (2, rule(Response::StricterPrompt { append: None }, 1))
        }
        ErrorKind::QualityBelowThreshold if is_worker => {
            (3, rule(Response::LoopWithFeedback { to: None }, 2))
        }
        ErrorKind::OutcomeUnknown => (4, rule(Response::Escalate, 1)),
        ErrorKind::InputRequired => (5, rule(Response::Escalate, 1)),
        _ => return None,
    })
}

/// `on_timeout: retry` of an action among the steps of a task, unless its node says otherwise. One that is all its
/// task is among the node's rules.
pub fn action_timeout_rule(node: &Node, happened: &Happened<'_>) -> Option<Rule> {
    let expires = happened.kind == ErrorKind::Timeout && !happened.expired && node.on_timeout.is_none();
    let bounded = node.task().is_some_and(|task| task.retries_any_failure());
    let written = node.written_on_timeout(happened.step).filter(|_| expires && !bounded);
    (written == Some(NodeTimeout::Retry)).then(|| rule(Response::Retry, TIMEOUT_RETRIES))
}

fn rule(response: Response, max: u32) -> Rule {
    Rule { when: None, repeats_unknown: false, response, max, backoff: Backoff::default() }
}

/// The step that failed is one whose answer could be better: a model's, or a mock that stands in for one.
fn is_answer(node: &Node, happened: &Happened<'_>) -> bool {
    let step = happened.step.and_then(|step| node.task()?.step(step));
    step.is_some_and(|step| {
        matches!(step.action.def.implementation, Implementation::LlmCall(_) | Implementation::Mock(_))
    })
}
