//! The life of a token and of a run, as tables. A move that is not in the table is a bug in the rules, and
//! `apply` refuses to make it.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    Pending,
    Dispatched,
    Retrying,
    Escalated,
    WaitingForSubworkflow,
    WaitingForHuman,
    WaitingForEvent,
    Sleeping,
    WaitingForSiblings,
    Completed,
    Failed,
    TimedOut,
    Skipped,
    Cancelled,
}

use TokenStatus::{
    Cancelled, Completed, Dispatched, Escalated, Failed, Pending, Retrying, Skipped, Sleeping, TimedOut,
    WaitingForEvent, WaitingForHuman, WaitingForSiblings, WaitingForSubworkflow,
};

impl TokenStatus {
    pub fn is_end(self) -> bool {
        matches!(self, Completed | Failed | TimedOut | Skipped | Cancelled)
    }

    /// Waits for a human, an event or a time: the workflow's clock stands still if every live token does.
    pub fn is_idle(self) -> bool {
        matches!(self, WaitingForHuman | WaitingForEvent | Sleeping | Escalated)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Pending => "pending",
            Dispatched => "dispatched",
            Retrying => "retrying",
            Escalated => "escalated",
            WaitingForSubworkflow => "waiting_for_subworkflow",
            WaitingForHuman => "waiting_for_human",
            WaitingForEvent => "waiting_for_event",
            Sleeping => "sleeping",
            WaitingForSiblings => "waiting_for_siblings",
            Completed => "completed",
            Failed => "failed",
            TimedOut => "timed_out",
            Skipped => "skipped",
            Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TokenStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Every move a token can make, and no others. `retry` of a run adds the ways back at the foot.
pub const ROWS: &[(TokenStatus, TokenStatus)] = &[
    (Pending, Dispatched),
    (Dispatched, Completed),
    (Dispatched, Failed),
    (Dispatched, TimedOut),
    (Dispatched, Retrying),
    (Dispatched, Escalated),
    (Dispatched, Skipped),
    (Retrying, Dispatched),
    (Escalated, Dispatched),
    (Escalated, Skipped),
    (Escalated, Cancelled),
    // Decided by the coordinator.
    (Pending, Skipped),
    (Pending, Completed),
    (Pending, Failed),
    // What the coordinator decided failed, and a response takes care of it (docs/adr/0003).
    (Pending, Retrying),
    (Pending, Escalated),
    (Retrying, Pending),
    (Escalated, Pending),
    // Waits that the coordinator keeps.
    (Pending, WaitingForSubworkflow),
    (WaitingForSubworkflow, Completed),
    (WaitingForSubworkflow, Failed),
    (WaitingForSubworkflow, TimedOut),
    (WaitingForSubworkflow, Retrying),
    (WaitingForSubworkflow, Escalated),
    (WaitingForSubworkflow, Skipped),
    (Pending, WaitingForHuman),
    (WaitingForHuman, Completed),
    (WaitingForHuman, Failed),
    (WaitingForHuman, TimedOut),
    (WaitingForHuman, Retrying),
    (WaitingForHuman, Escalated),
    (WaitingForHuman, Skipped),
    (Pending, WaitingForEvent),
    (WaitingForEvent, Completed),
    (WaitingForEvent, Failed),
    (WaitingForEvent, TimedOut),
    (WaitingForEvent, Retrying),
    (WaitingForEvent, Escalated),
    (WaitingForEvent, Skipped),
    (Pending, Sleeping),
    (Sleeping, Completed),
    (Sleeping, Failed),
    (Sleeping, TimedOut),
    (Sleeping, Retrying),
    (Sleeping, Escalated),
    (Sleeping, Skipped),
    // Arrived at a fan-in.
    (Pending, WaitingForSiblings),
    (Dispatched, WaitingForSiblings),
    (WaitingForSubworkflow, WaitingForSiblings),
    (WaitingForHuman, WaitingForSiblings),
    (WaitingForEvent, WaitingForSiblings),
    (Sleeping, WaitingForSiblings),
    (WaitingForSiblings, Completed),
    (WaitingForSiblings, Failed),
    (WaitingForSiblings, TimedOut),
    // Any that is not an end.
    (Pending, Cancelled),
    (Dispatched, Cancelled),
    (Retrying, Cancelled),
    (WaitingForSubworkflow, Cancelled),
    (WaitingForHuman, Cancelled),
    (WaitingForEvent, Cancelled),
    (Sleeping, Cancelled),
    (WaitingForSiblings, Cancelled),
    // The workflow's own timeout ends what is live.
    (Pending, TimedOut),
    (Retrying, TimedOut),
    (Escalated, TimedOut),
    // `retry` of a run: back to where the node begins, or to the fan-in it had come to.
    (Failed, Pending),
    (TimedOut, Pending),
    (Cancelled, Pending),
    (Failed, WaitingForSiblings),
    (TimedOut, WaitingForSiblings),
    (Cancelled, WaitingForSiblings),
];

pub fn is_legal(from: TokenStatus, to: TokenStatus) -> bool {
    ROWS.contains(&(from, to))
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    #[default]
    Queued,
    Running,
    Paused,
    Cancelling,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
}

impl RunStatus {
    pub fn is_end(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Paused => "paused",
            RunStatus::Cancelling => "cancelling",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::TimedOut => "timed_out",
            RunStatus::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
