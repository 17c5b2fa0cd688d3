//! `TaskFinished`: a worker's one word on one attempt.

use crate::def::{Effect, Name};
use crate::error::{ErrorKind, Failure};
use crate::event::{CancelReason, EventKind, Report, TimeoutType, TokenId};
use crate::input::{Rejection, TaskOutcome, TaskReport};
use crate::lifecycle::RunStatus;

use super::Decision;
use super::complete::How;
use super::fail::Failed;

impl Decision<'_> {
    pub(super) fn task_finished(
        &mut self,
        id: TokenId,
        attempt: u32,
        report: TaskReport,
    ) -> Result<(), Rejection> {
        let out = self.state().out.get(&(id, attempt)).filter(|out| out.child.is_none());
        if out.is_none() {
            return Err(Rejection::NotOut { token: id, attempt });
        }
        let TaskReport { outcome, spend, tries, continued, artifacts } = report;
        // Only what completes a node names artifacts: those of other attempts are nobody's.
        let completes = self.is_awaited(id, attempt) && matches!(outcome, TaskOutcome::Completed { .. });
        let report = Report { spend, tries, artifacts: if completes { artifacts } else { Vec::new() } };
        if !self.is_awaited(id, attempt) {
            self.late(id, attempt, report);
            return Ok(());
        }
        self.say_continued(id, continued);
        let report = Some(report);
        match outcome {
            TaskOutcome::Completed { result } => self.complete(id, result, report, How::Completed),
            TaskOutcome::Failed { failure, step, .. } if self.is_in_doubt(id, &failure, step.as_ref()) => {
                let failed = Failed { report, step, ..Failed::of(failure) };
                self.in_doubt(id, failed);
            }
            TaskOutcome::Failed { failure, step, .. } if failure.is_at_allowance() => {
                self.stopped_at_allowance(id, Failed { report, step, ..Failed::of(failure) });
            }
            TaskOutcome::Failed { failure, retry, step } => {
                self.fail(id, Failed { report, retry, step, ..Failed::of(failure) });
            }
            TaskOutcome::TimedOut { after_ms } => self.task_timed_out(id, after_ms, report),
            TaskOutcome::NotTaken { waited_ms } => self.task_not_taken(id, waited_ms, report),
            TaskOutcome::Cancelled => {
                let failure = Failure::new(ErrorKind::Cancelled, "the worker gave the task up");
                self.fail(id, Failed { report, ..Failed::of(failure) });
            }
        }
        Ok(())
    }

    /// The worker ended the task: its own time is over, or what its node's budget has left of it.
    fn task_timed_out(&mut self, id: TokenId, after_ms: u64, report: Option<Report>) {
        let message = format!("the task did not end within {after_ms} ms");
        let failure = Failure::new(ErrorKind::Timeout, message).with_timeout_ms(after_ms);
        let expired = Some((TimeoutType::Task, after_ms));
        let exceeded = self.is_out_of_budget(id, after_ms).then(|| self.say_out_of_time(id, after_ms));
        if self.is_in_doubt(id, &failure, None) {
            return self.in_doubt(id, Failed { report, expired, ..Failed::of(failure) });
        }
        match exceeded {
            None => self.fail(id, Failed { report, expired, ..Failed::of(failure) }),
            Some((failure, exceeded)) => {
                self.fail(id, Failed { report, exceeded: Some(exceeded), ..Failed::of(failure) });
            }
        }
    }

    /// It waited for a worker for too long. Nothing began, so nothing is in doubt; and the machine's lack of
    /// workers is not what `on_timeout` speaks of: only written rules apply.
    fn task_not_taken(&mut self, id: TokenId, waited_ms: u64, report: Option<Report>) {
        let message = format!("no worker was free for {waited_ms} ms (queue_timeout)");
        let failure = Failure::new(ErrorKind::Timeout, message).with_timeout_ms(waited_ms);
        let expired = Some((TimeoutType::Task, waited_ms));
        self.fail(id, Failed { report, expired, unbegun: true, ..Failed::of(failure) });
    }

    /// It was the node's budget that ended the task, before its own timeout.
    fn is_out_of_budget(&self, id: TokenId, after_ms: u64) -> bool {
        let token = self.token(id);
        let out = self.state().out.get(&(id, token.attempt));
        let own = self.run.graph().node(self.node_of(id)).timeout_ms.unwrap_or(u64::MAX);
        out.and_then(|out| out.wall_left_ms).is_some_and(|left| left <= after_ms && left < own)
    }

    /// A task whose effect must happen once was lost or ran out of time at or after the step that has the
    /// effect: whether it happened, only a human can find out.
    fn is_in_doubt(&self, id: TokenId, failure: &Failure, step: Option<&Name>) -> bool {
        let lost = matches!(failure.kind, ErrorKind::Timeout | ErrorKind::WorkerLost);
        lost && self.has_reached_once(id, step)
    }

    /// The task has an effect that must happen once, and failed at or after the step that has it.
    pub(super) fn has_reached_once(&self, id: TokenId, step: Option<&Name>) -> bool {
        let graph = self.run.graph();
        let Some(task) = graph.node(self.node_of(id)).task().filter(|task| task.effect == Effect::Once)
        else {
            return false;
        };
        let once = task.steps.iter().position(|s| s.action.effect == Effect::Once);
        let reached = step.and_then(|step| task.steps.iter().position(|s| s.reference == *step));
        reached.is_none_or(|reached| once.is_none_or(|once| reached >= once))
    }

    fn in_doubt(&mut self, id: TokenId, failed: Failed) {
        let of_action = || (TimeoutType::Execution, self.action_timeout_ms(id, &failed));
        let timed_out = failed.failure.kind == ErrorKind::Timeout;
        let expired = failed.expired.or_else(|| timed_out.then(of_action));
        let message = format!("it may have taken effect before it ended: {}", failed.failure);
        let failure = Failure::new(ErrorKind::OutcomeUnknown, message).because_of(failed.failure.clone());
        self.fail(id, Failed { failure, expired, ..failed });
    }

    /// Whether anybody still wants to hear of this attempt: not of an ended token, a straggler, or a run
    /// that is on its way out.
    pub(super) fn is_awaited(&self, id: TokenId, attempt: u32) -> bool {
        let open = matches!(self.state().status, RunStatus::Running | RunStatus::Paused);
        open && self
            .state()
            .tokens
            .get(&id)
            .is_some_and(|token| token.awaits(attempt) && token.straggler.is_none())
    }

    /// Word that comes too late changes cost only, and ends what had waited for it.
    pub(super) fn late(&mut self, id: TokenId, attempt: u32, report: Report) {
        let out = self.state().tokens.get(&id).filter(|token| token.awaits(attempt));
        match out.map(|token| token.straggler.is_some()) {
            None => self.record(EventKind::LateReport { token: id, attempt, report }),
            Some(straggler) => {
                let reason = if straggler { CancelReason::Straggler } else { CancelReason::RunCancelled };
                self.record(EventKind::TokenCancelled { token: id, reason, report: Some(report) });
            }
        }
        self.finish_cancelling();
    }
}
