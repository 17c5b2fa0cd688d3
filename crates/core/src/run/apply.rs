//! The only code that changes a run. Each event has one meaning, for ever; nothing here decides.
//!
//! An assertion that fails here is a mistake in the rules, or a log that was tampered with: a host
//! quarantines that run and goes on with the others.

mod clock;
mod context;
mod graph;
mod group;
mod run_level;
mod token;
mod wait;

use std::sync::Arc;

use super::Run;
use crate::cost::Allowance;
use crate::def::Name;
use crate::event::{BranchRef, Event, EventKind, NewGroup, NewToken};
use crate::graph::{CannotCompile, Graph};

/// Whether the event can be applied at all: what it names is there. For logs from outside.
pub(super) fn check(run: &Run, event: &Event) -> Result<(), String> {
    if run.state.start.is_none() {
        return match &event.kind {
            EventKind::RunStarted { .. } | EventKind::RunQueued { .. } => Ok(()),
            other => Err(format!("a log begins with run_started or run_queued, not {}", other.name())),
        };
    }
    let missing = |node: &Name| {
        let known = run.graph.find_node(node).is_some();
        (!known).then(|| format!("the workflow has no node {node}: this log belongs to another definition"))
    };
    match &event.kind {
        EventKind::TokenCreated(NewToken { node, .. }) => missing(node).map_or(Ok(()), Err),
        EventKind::FanOut(NewGroup { node, joins_at, .. }) => {
            missing(node).or_else(|| missing(joins_at.as_ref()?)).map_or(Ok(()), Err)
        }
        _ => Ok(()),
    }
}

/// The graph as this event leaves it, if it changes it: compiled, not judged. An error is a log of another
/// definition.
pub(super) fn grown(run: &Run, kind: &EventKind) -> Result<Option<Arc<Graph>>, CannotCompile> {
    match kind {
        EventKind::RunMutated { what: crate::event::RunChange::Graph(mutation), .. } => {
            run.graph.grown(mutation).map(|graph| Some(Arc::new(graph)))
        }
        _ => Ok(None),
    }
}

/// One event, one change. A flat table: the work is in the modules by subject.
pub(super) fn apply(run: &mut Run, event: &Event, grown: Option<Arc<Graph>>) {
    assert_eq!(event.seq, run.state.seq + 1, "events are applied in order, without gaps");
    run.state.seq = event.seq;
    let before = run.state.now;
    run.state.now = run.state.now.max(event.at);
    match &event.kind {
        EventKind::RunQueued { start, .. } => run.queued(start),
        EventKind::RunStarted { start, .. } => run.started(start),
        EventKind::RunReleased => run.released(),
        EventKind::RunYielded => run.yielded(),
        EventKind::RunContinued => run.continued(),
        EventKind::TokenCreated(new) => run.token_created(new),
        EventKind::TaskDispatched { token, attempt, generation, input, taken, reserved } => {
            let input = run.with_taken(*token, input, taken);
            run.task_dispatched(*token, *attempt, *generation, input, *reserved);
        }
        EventKind::TaskRetrying(new) => run.task_retrying(new),
        EventKind::TaskCompleted { token, result, patches, then, unmapped, report } => {
            run.work_done(
                *token,
                token::Done { result, patches, then: *then, unmapped: *unmapped, skipped: false },
                report,
            );
        }
        EventKind::TokenSkipped { token, output, patches, then, unmapped, report, .. } => {
            let done =
                token::Done { result: output, patches, then: *then, unmapped: *unmapped, skipped: true };
            run.work_done(*token, done, report);
        }
        // What the task makes of it comes with its outcome.
        EventKind::StepFailed { .. } => {}
        EventKind::TaskFailed { token, failure, timed_out, handled, report } => {
            run.task_failed(*token, failure, *timed_out, *handled, report);
        }
        EventKind::TokenCancelled { token, reason, report } => run.token_cancelled(*token, *reason, report),
        EventKind::TokenAbandoned { token, late } => run.token_abandoned(*token, *late),
        EventKind::TokenTimedOut { token, ends, .. } => run.token_timed_out(*token, *ends),
        EventKind::TimeoutWarning { of, .. } => run.warned(*of),
        EventKind::LateReport { token, attempt, report } => run.reported(*token, *attempt, report),
        EventKind::ContextUpdated { token, patches } => run.context_updated(*token, patches),
        EventKind::SleepStarted { token, until, deadline, opened_with } => {
            run.sleep_started(*token, *until, *deadline, opened_with);
        }
        EventKind::EventAwaited(new) => run.event_awaited(new),
        EventKind::EventReceived { event: name, key, payload, token } => {
            run.event_received(event.seq, name, key, payload, *token);
        }
        EventKind::EventTaken { received, .. } => run.event_taken(*received),
        EventKind::FanOut(new) => run.fanned_out(new),
        EventKind::BranchArrived { token, group, branch, within } => {
            run.branch_arrived(*token, BranchRef { group: *group, branch: *branch }, *within);
        }
        EventKind::FanIn { group, patches, .. } => run.fanned_in(*group, patches),
        EventKind::FanInFailed { group, failure, handled } => run.fan_in_failed(*group, failure, *handled),
        EventKind::GroupClosed { group, kept } => run.group_closed(*group, *kept),
        EventKind::GateOpened { gate, token, record, report, opened_with } => {
            run.gate_opened(*gate, *token, record, report, opened_with)
        }
        EventKind::GateAnswered { gate, by, answer, closes } => run.gate_answered(*gate, by, answer, *closes),
        EventKind::GateClosed { gate, by } => run.gate_closed(*gate, by),
        EventKind::GateReminded { gate } => run.gate_reminded(*gate),
        EventKind::GateReassigned { gate, assignees } => run.gate_reassigned(*gate, assignees),
        EventKind::TokenReleased { token, generation, overrides, resumed } => {
            run.token_released(*token, *generation, overrides, *resumed);
        }
        EventKind::ChildStarted(new) => run.child_started(new),
        EventKind::ChildCompleted { token, attempt, spend, .. } => {
            run.child_completed(*token, *attempt, spend)
        }
        EventKind::RunMutated { what, .. } => run.mutated(what, grown),
        EventKind::BudgetWarning { node, .. } => run.budget_warned(node.as_ref()),
        EventKind::BudgetExceeded { token, .. } => run.budget_exceeded(*token),
        EventKind::BudgetRaised { node, usd_micros, tokens, calls, whole, of_parent } => {
            let by = Allowance { usd_micros: *usd_micros, tokens: *tokens, calls: *calls };
            if *of_parent {
                run.granted(&by);
            } else {
                run.budget_raised(node.as_ref(), &by, *whole);
            }
        }
        EventKind::WorkflowExtended { by_ms } => run.extended(*by_ms),
        EventKind::RunPaused { reason, .. } => run.paused(*reason),
        EventKind::RunResumed { reason, .. } => run.resumed(*reason),
        EventKind::RunCancelling { reason, deadline } => run.cancelling(reason, *deadline),
        EventKind::RunCompleted { output } => run.completed(output),
        EventKind::RunFailed { failure } => run.failed(failure),
        EventKind::RunCancelled { reason } => run.cancelled(reason),
        EventKind::RunTimedOut { failure } => run.timed_out(failure),
        EventKind::RunRetried { .. } => run.retried(),
        EventKind::RunForked(new) => run.forked(new, before),
    }
    run.tick();
}
