//! `Pause`, `Resume` and `Retry`.

use crate::command::Command;
use crate::def::Name;
use crate::event::{EventKind, PauseReason, TokenId};
use crate::input::{Operation, Rejection};
use crate::lifecycle::RunStatus;

use super::Decision;

impl Decision<'_> {
    pub(super) fn pause(&mut self, by: Name) -> Result<(), Rejection> {
        self.must_be(Operation::Pause, &[RunStatus::Running, RunStatus::Paused])?;
        if self.state().pauses.contains(&PauseReason::Operator) {
            return Err(Rejection::WrongStatus { status: RunStatus::Paused, operation: Operation::Pause });
        }
        self.record(EventKind::RunPaused { reason: PauseReason::Operator, by });
        self.pause_children();
        Ok(())
    }

    pub(super) fn pause_for(&mut self, reason: PauseReason, by: &str) {
        self.record(EventKind::RunPaused { reason, by: by.into() });
        self.pause_children();
    }

    pub(super) fn pause_children(&mut self) {
        for (token, child) in self.children_out() {
            self.request(Command::PauseChild { token, child });
        }
    }

    fn children_out(&self) -> Vec<(TokenId, Name)> {
        let wanted =
            |id: &TokenId, attempt: u32| self.state().tokens.get(id).is_some_and(|t| t.awaits(attempt));
        let out = self.state().out.iter().filter(|((id, attempt), _)| wanted(id, *attempt));
        out.filter_map(|((id, _), out)| Some((*id, out.child.clone()?))).collect()
    }

    pub(super) fn resume(&mut self, by: Name) -> Result<(), Rejection> {
        self.must_be(Operation::Resume, &[RunStatus::Paused])?;
        if !self.state().pauses.contains(&PauseReason::Operator) {
            // What a gate paused, an answer to the gate resumes.
            return Err(Rejection::WrongStatus {
                status: RunStatus::Paused,
                operation: Operation::ResumeAtGate,
            });
        }
        self.resume_after(PauseReason::Operator, by);
        Ok(())
    }

    /// Takes one reason away; the run goes on if it was the last.
    pub(super) fn resume_after(&mut self, reason: PauseReason, by: Name) {
        if !self.state().pauses.contains(&reason) {
            return;
        }
        self.record(EventKind::RunResumed { reason, by });
        if self.state().status == RunStatus::Running {
            for (token, child) in self.children_out() {
                self.request(Command::ResumeChild { token, child });
            }
        }
    }

    pub(super) fn retry(&mut self, by: Name, version: Option<u32>) -> Result<(), Rejection> {
        self.must_be(Operation::Retry, &[RunStatus::Failed, RunStatus::TimedOut, RunStatus::Cancelled])?;
        self.record(EventKind::RunRetried { by, version });
        Ok(())
    }
}
