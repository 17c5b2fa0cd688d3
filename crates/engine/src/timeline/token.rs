//! Tokens and their attempts as events tell of them.

use wonder_core::TokenStatus;
use wonder_core::command::Overrides;
use wonder_core::event::{CancelReason, EventKind, Report, Then, TokenId};

use super::Timeline;
use super::visit::{Attempt, Now, Visit};

impl Timeline {
    pub(super) fn learn_of_token(&mut self, kind: &EventKind, now: Now) {
        if let EventKind::TokenCreated { token, node, parent, branch, .. } = kind {
            let visit = Visit { branch: *branch, ..Visit::new(*token, node.clone(), *parent, now) };
            self.visits.insert(*token, visit);
            return;
        }
        if let EventKind::TaskRetrying { token, overrides, .. } = kind {
            self.overridden(*token, overrides);
        }
        let Some(word) = word(kind) else { return };
        let Some(visit) = self.reported(word.token, word.attempt, word.report.as_ref(), now) else { return };
        match kind {
            EventKind::TaskCompleted { then: Then::Arrives(group), .. } => {
                self.arrive(word.token, *group, now);
            }
            EventKind::TaskCompleted { .. } => {
                visit.to(TokenStatus::Completed, now);
            }
            EventKind::TaskFailed { failure, timed_out, handled, .. } => {
                let end = if *timed_out { TokenStatus::TimedOut } else { TokenStatus::Failed };
                visit.broke(end, Some(failure.to_string()), now);
                if !handled {
                    self.kept.insert(word.token);
                }
            }
            EventKind::TokenCancelled { reason, .. } => {
                visit.to(TokenStatus::Cancelled, now);
                let wanted = matches!(reason, CancelReason::BranchFailed | CancelReason::RunCancelled);
                if wanted && !visit.straggler {
                    self.kept.insert(word.token);
                }
            }
            EventKind::TokenTimedOut { ends: true, .. } => {
                visit.to(TokenStatus::TimedOut, now);
                self.kept.insert(word.token);
            }
            kind => moved(visit, kind, now),
        }
    }

    /// A change is recorded just before the attempt that it is for.
    fn overridden(&mut self, token: TokenId, overrides: &Overrides) {
        let last = self.mutations.last_mut().filter(|last| last.token == Some(token));
        let last = last.filter(|last| last.overrides.is_none() && *overrides != Overrides::default());
        if let Some(last) = last {
            last.overrides = Some(overrides.clone());
        }
    }
}

/// What an event alone says about where its token goes.
fn moved(visit: &mut Visit, kind: &EventKind, now: Now) {
    match kind {
        EventKind::TaskDispatched { attempt, reserved, .. } => {
            visit.goes_out(Attempt::new(*attempt, *reserved, None, now), TokenStatus::Dispatched, now);
        }
        EventKind::TaskRetrying { failure, wake_at, .. } => {
            visit.wakes_at = Some(*wake_at);
            visit.broke(TokenStatus::Retrying, Some(failure.to_string()), now).wakes_at = Some(*wake_at);
        }
        EventKind::TokenSkipped { failure, .. } => {
            let failure = failure.as_ref().map(ToString::to_string);
            visit.broke(TokenStatus::Skipped, failure, now);
        }
        EventKind::TokenAbandoned { .. } => visit.straggler = true,
        EventKind::SleepStarted { until, .. } => {
            visit.wakes_at = Some(*until);
            visit.to(TokenStatus::Sleeping, now).wakes_at = Some(*until);
        }
        EventKind::EventAwaited { .. } => {
            visit.to(TokenStatus::WaitingForEvent, now);
        }
        EventKind::TokenReleased { resumed, .. } => {
            visit.to(if *resumed { TokenStatus::Dispatched } else { TokenStatus::Pending }, now);
        }
        EventKind::ChildStarted { child, attempt, allowance, .. } => {
            visit.child = Some(child.clone());
            let reserved = allowance.unwrap_or_default();
            let attempt = Attempt::new(*attempt, reserved, Some(child.clone()), now);
            visit.goes_out(attempt, TokenStatus::WaitingForSubworkflow, now);
        }
        _ => {}
    }
}

/// What an event says of a token's attempt.
struct Word {
    token: TokenId,
    attempt: Option<u32>,
    report: Option<Report>,
}

fn word(kind: &EventKind) -> Option<Word> {
    let (token, attempt, report) = match kind {
        EventKind::TaskRetrying { token, report, .. }
        | EventKind::TaskCompleted { token, report, .. }
        | EventKind::TaskFailed { token, report, .. }
        | EventKind::TokenSkipped { token, report, .. }
        | EventKind::TokenCancelled { token, report, .. } => (*token, None, report.clone()),
        EventKind::LateReport { token, attempt, report } => (*token, Some(*attempt), Some(report.clone())),
        EventKind::ChildCompleted { token, attempt, spend, .. } => {
            (*token, Some(*attempt), Some(Report { spend: spend.clone(), tries: 0 }))
        }
        EventKind::TaskDispatched { token, .. }
        | EventKind::TokenTimedOut { token: Some(token), .. }
        | EventKind::TokenAbandoned { token, .. }
        | EventKind::SleepStarted { token, .. }
        | EventKind::EventAwaited { token, .. }
        | EventKind::TokenReleased { token, .. }
        | EventKind::ChildStarted { token, .. } => (*token, None, None),
        _ => return None,
    };
    Some(Word { token, attempt, report })
}
