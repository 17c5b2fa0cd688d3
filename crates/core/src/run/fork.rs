//! `fork`: a new run from the events of another, up to where a node was dispatched; or up to where it called a run, if
//! that is forked too.

use std::sync::Arc;

use super::{Run, Step};
use crate::command::Command;
use crate::def::{Effect, Name};
use crate::error::{ErrorKind, Failure};
use crate::event::{Event, EventKind, EventWait, NewChild, NewFork, NewToken, TokenId};
use crate::graph::{Graph, NodeIx};
use crate::input::Rejection;
use crate::time::Time;
use crate::value::Value;

/// Where and how to fork.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// The id of the new run.
    pub run: Name,
    pub node: Name,
    /// The branch to fork in, if the node is in a fan-out.
    pub branch: Option<u32>,
    /// Which visit of the node, the first being 1; absent: the last that was dispatched.
    pub visit: Option<u32>,
    /// In the run that the node called: the log is cut behind the call, which is then its last event.
    pub inside: bool,
    /// The fork of the run that called this one, if that is forked too.
    pub parent: Option<Name>,
    /// Laid over the node's input; null changes nothing.
    pub input: Value,
    /// Laid over the run's state; null changes nothing.
    pub set: Value,
}

impl Fork {
    /// Before the last dispatch of a node, with nothing changed.
    pub fn new(run: Name, node: Name) -> Fork {
        let (input, set) = (Value::Null, Value::Null);
        Fork { run, node, branch: None, visit: None, inside: false, parent: None, input, set }
    }
}

impl Run {
    /// A new run that goes on from just before the last dispatch of a node. `graph` may be another version
    /// of the definition if it has every live ref. The copied events come first in the new run's log; the
    /// step has those that follow.
    pub fn fork(
        graph: Arc<Graph>,
        events: &[Event],
        fork: &Fork,
        now: Time,
    ) -> Result<(Run, Vec<Event>, Step), Rejection> {
        let cannot = |reason: String| Rejection::CannotFork { reason };
        let (cut, token) = cut(events, fork)
            .ok_or_else(|| cannot(format!("{} was never {}", visited(fork), begun(fork))))?;
        let copied = events[..cut].to_vec();
        let mut run = Run::replay(graph, &copied).map_err(|error| cannot(error.to_string()))?;
        let from = run.state.start.as_ref().map(|start| start.id.clone()).unwrap_or_else(|| "".into());
        let new = NewFork {
            run: fork.run.clone(),
            from,
            parent: fork.parent.clone(),
            node: fork.node.clone(),
            token,
            input: fork.input.clone(),
            set: fork.set.clone(),
        };
        let now = now.max(copied.last().map_or(now, |event| event.at));
        let step = crate::decide::fork(&mut run, new, now).map_err(|failure| cannot(failure.message))?;
        Ok((run, copied, step))
    }

    /// Whether a task that was out when the log was cut may simply run again.
    pub(crate) fn is_repeatable(&self, token: TokenId) -> bool {
        let node = self.graph.node(NodeIx(self.state.tokens[&token].node));
        node.task().is_none_or(|task| task.effect != Effect::Once)
    }
}

fn visited(fork: &Fork) -> String {
    match fork.visit {
        None => fork.node.to_string(),
        Some(visit) => format!("visit {visit} of {}", fork.node),
    }
}

fn begun(fork: &Fork) -> &'static str {
    if fork.inside { "a call of a workflow" } else { "dispatched" }
}

/// The index of the event that last set the node's work going, and its token.
fn cut(events: &[Event], fork: &Fork) -> Option<(usize, TokenId)> {
    let created = |event: &&Event| match &event.kind {
        EventKind::TokenCreated(NewToken { token, node, branch, .. }) if *node == fork.node => {
            let fits = fork.branch.is_none() || fork.branch == branch.map(|at| at.branch);
            fits.then_some(*token)
        }
        _ => None,
    };
    let mut tokens: Vec<TokenId> = events.iter().filter_map(|event| created(&event)).collect();
    if let Some(visit) = fork.visit {
        let at = usize::try_from(visit).ok()?.checked_sub(1)?;
        tokens = vec![*tokens.get(at)?];
    }
    if fork.inside {
        let calls = |event: &Event| match &event.kind {
            EventKind::ChildStarted(NewChild { token, .. }) => tokens.contains(token).then_some(*token),
            _ => None,
        };
        let at = events.iter().rposition(|event| calls(event).is_some())?;
        return calls(&events[at]).map(|token| (at + 1, token));
    }
    let begins = |event: &Event| match &event.kind {
        EventKind::TaskDispatched { token, .. }
        | EventKind::ChildStarted(NewChild { token, .. })
        | EventKind::SleepStarted { token, .. }
        | EventKind::EventAwaited(EventWait { token, .. })
        | EventKind::GateOpened { token: Some(token), .. }
        | EventKind::ContextUpdated { token, .. }
        | EventKind::TaskCompleted { token, .. } => tokens.contains(token).then_some(*token),
        _ => None,
    };
    let last = events
        .iter()
        .rposition(|event| begins(event).is_some() && !matches!(event.kind, EventKind::TaskCompleted { .. }));
    let at = last.or_else(|| events.iter().rposition(|event| begins(event).is_some()))?;
    begins(&events[at]).map(|token| (at, token))
}

pub(crate) fn lost_in_fork() -> Failure {
    Failure::new(ErrorKind::OutcomeUnknown, "the task was out in the run this was forked from")
}

/// Commands that a fork starts with: what was out then is out again, under the new run's keys.
pub(crate) fn restarted(run: &Run) -> Vec<Command> {
    run.owed()
        .into_iter()
        .filter(|command| !matches!(command, Command::CancelTask { .. } | Command::CancelChild { .. }))
        .collect()
}
