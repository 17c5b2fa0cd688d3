//! Exit codes, stable: scripts branch on them.

use std::process::ExitCode;

use wonder_core::event::GateKind;
use wonder_core::{ErrorKind, Failure};
use wonder_engine::{EngineError, RunView, Status, WaitView};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// Completed, or done as asked.
    Fine = 0,
    Failed = 1,
    /// A usage or definition error.
    Usage = 2,
    /// For a human or an outside event; the run is safe.
    Waiting = 3,
    Cancelled = 4,
    TimedOut = 5,
    Budget = 6,
    /// The engine or its storage is at fault.
    Engine = 7,
    /// The run is safe and can be resumed.
    Interrupted = 130,
}

impl Exit {
    /// How `run` and its kin leave, by how the run stands.
    pub(crate) fn of_run(view: &RunView) -> Exit {
        let budget = |wait: &WaitView| {
            matches!(wait, WaitView::Gate { kind: GateKind::Budget, .. } | WaitView::Project { .. })
        };
        let over_budget = || view.error.as_ref().is_some_and(was_over_budget);
        match view.row.status {
            Status::Completed => Exit::Fine,
            Status::Failed if over_budget() => Exit::Budget,
            Status::Failed => Exit::Failed,
            Status::Cancelled => Exit::Cancelled,
            Status::TimedOut => Exit::TimedOut,
            Status::Quarantined => Exit::Engine,
            _ if view.waiting.iter().any(budget) => Exit::Budget,
            _ if view.quiet => Exit::Waiting,
            // Live, and nobody carries it on.
            _ => Exit::Interrupted,
        }
    }

    pub(crate) fn of_error(error: &EngineError) -> Exit {
        if error.code.is_engine_fault() { Exit::Engine } else { Exit::Usage }
    }
}

/// The failure, or what lies under it: a fan-in or a child run that the budget stopped.
fn was_over_budget(failure: &Failure) -> bool {
    let budget_exceeded = ErrorKind::BudgetExceeded.as_str();
    let mut cause = failure.details.get("cause");
    let mut kind = Some(failure.kind.as_str());
    while kind != Some(budget_exceeded) {
        let Some(under) = cause else { return false };
        kind = under.get("kind").and_then(|kind| kind.as_str());
        cause = under.get("details").and_then(|details| details.get("cause"));
    }
    true
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
