//! `fork`: a new run from the events of another, up to where a node was last dispatched.

use std::sync::Arc;

use super::{Run, Step};
use crate::command::Command;
use crate::def::{Effect, Name};
use crate::error::{ErrorKind, Failure};
use crate::event::{Event, EventKind, EventWait, NewChild, NewToken, TokenId};
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
    /// Laid over the node's input; null changes nothing.
    pub input: Value,
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
        let (cut, token) =
            cut(events, fork).ok_or_else(|| cannot(format!("{} was never dispatched", fork.node)))?;
        let copied = events[..cut].to_vec();
        let mut run = Run::replay(graph, &copied).map_err(|error| cannot(error.to_string()))?;
        let from = run.state.start.as_ref().map(|start| start.id.clone()).unwrap_or_else(|| "".into());
        let kind = EventKind::RunForked {
            run: fork.run.clone(),
            from,
            node: fork.node.clone(),
            input: fork.input.clone(),
            token,
        };
        let step = crate::decide::fork(&mut run, kind, now.max(copied.last().map_or(now, |event| event.at)));
        Ok((run, copied, step))
    }

    /// Whether a task that was out when the log was cut may simply run again.
    pub(crate) fn is_repeatable(&self, token: TokenId) -> bool {
        let node = self.graph.node(NodeIx(self.state.tokens[&token].node));
        node.task().is_none_or(|task| task.effect != Effect::Once)
    }
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
    let tokens: Vec<TokenId> = events.iter().filter_map(|event| created(&event)).collect();
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
