//! One visit of one node as its events tell it: the moves of its token, its attempts, what they spent. It is
//! told what happened and works nothing out.

use serde::{Deserialize, Serialize};
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::event::{BranchRef, GateId, GroupId, Report, TokenId};
use wonder_core::{Time, TokenStatus, Value};

/// One token: one visit of one node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Visit {
    pub token: TokenId,
    pub node: Name,
    pub parent: Option<TokenId>,
    /// The transition that led here.
    pub via: Option<Name>,
    pub branch: Option<BranchRef>,
    /// The how manieth visit of its node in its branch: more than 1 in a loop.
    #[serde(default = "first_turn")]
    pub turn: u32,
    pub status: TokenStatus,
    pub attempts: u32,
    /// Tries of its actions beyond the first of each.
    pub tries: u32,
    pub created_at: Time,
    /// When its first attempt was dispatched, or its wait began.
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Of its attempts, and of the child runs it called.
    pub spend: Spend,
    pub child: Option<Name>,
    pub gate: Option<GateId>,
    /// The end of a backoff or a sleep.
    pub wakes_at: Option<Time>,
    pub failure: Option<String>,
    /// The same with all that is known of it.
    #[serde(skip)]
    pub broke_with: Option<Failure>,
    /// What its work came to; null while there is none.
    pub result: Value,
    /// Every move of the token, the first being its creation.
    pub walk: Vec<Move>,
    /// Every attempt, in the order they went out; none where the coordinator does the work.
    pub history: Vec<Attempt>,
    /// Steps that failed and whose `on_failure: continue` let the task go on.
    #[serde(default)]
    pub steps_failed: Vec<FailedStep>,
    /// The fan-in it waits or waited at.
    pub at: Option<GroupId>,
    /// Abandoned by its fan-in: it is in no branch any more, and a retry does not want it back.
    pub straggler: bool,
    /// Who answered its gate just now: it moves because of that.
    #[serde(skip)]
    pub(super) answered_by: Option<Name>,
}

fn first_turn() -> u32 {
    1
}

/// One move of a token, with what is known of its cause.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Move {
    /// The event that moved it.
    pub seq: u64,
    pub at: Time,
    pub to: TokenStatus,
    /// The attempt that goes out.
    pub attempt: Option<u32>,
    pub failure: Option<String>,
    /// The end of the backoff or the sleep that begins.
    pub wakes_at: Option<Time>,
    /// The gate it waits at from now on.
    pub gate: Option<GateId>,
    /// Who answered the gate it waited at.
    pub by: Option<Name>,
}

/// One attempt: a task or a child run that went out, and what came back.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Attempt {
    pub number: u32,
    /// What its task or child run was given.
    pub input: Value,
    pub began_at: Time,
    /// When its report came; absent while it is out.
    pub ended_at: Option<Time>,
    pub reserved: Allowance,
    /// What it reported: of a child run, all that the child has told.
    pub spend: Spend,
    pub tries: u32,
    /// What the token came to by it: `retrying` is a failure that is tried again, `escalated` one that a human
    /// is asked about, `waiting_for_siblings` a success.
    pub outcome: Option<TokenStatus>,
    pub failure: Option<String>,
    /// The run it called, if that is what it does.
    pub child: Option<Name>,
}

/// A step that failed, and its task went on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FailedStep {
    pub at: Time,
    pub attempt: u32,
    pub step: Name,
    pub failure: String,
}

/// The event that is being learnt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) seq: u64,
    pub(super) at: Time,
}

impl Visit {
    pub(super) fn new(token: TokenId, node: Name, parent: Option<TokenId>, now: Now) -> Visit {
        Visit {
            token,
            node,
            parent,
            via: None,
            branch: None,
            turn: first_turn(),
            status: TokenStatus::Pending,
            attempts: 0,
            tries: 0,
            created_at: now.at,
            started_at: None,
            ended_at: None,
            spend: Spend::default(),
            child: None,
            gate: None,
            wakes_at: None,
            failure: None,
            broke_with: None,
            result: Value::Null,
            walk: vec![Move::new(TokenStatus::Pending, now)],
            history: Vec::new(),
            steps_failed: Vec::new(),
            at: None,
            straggler: false,
            answered_by: None,
        }
    }

    /// Where the token is, by its moves. What is shown as its status may be kinder: a node that has arrived
    /// at a fan-in has done its work, whatever becomes of the run.
    pub fn place(&self) -> TokenStatus {
        self.walk.last().map_or(self.status, |last| last.to)
    }

    /// The innermost branch it counts in.
    pub(super) fn current_branch(&self) -> Option<BranchRef> {
        self.branch.filter(|_| !self.straggler)
    }

    /// What its latest attempt was given; null before there is one.
    pub fn input(&self) -> &Value {
        self.history.last().map_or(&Value::Null, |attempt| &attempt.input)
    }

    /// An attempt of it has not reported.
    pub fn is_out(&self) -> bool {
        self.history.iter().any(|attempt| attempt.ended_at.is_none())
    }

    /// A human was asked what to do about a failure of it.
    pub fn was_escalated(&self) -> bool {
        self.walk.iter().any(|step| step.to == TokenStatus::Escalated)
    }

    /// Moves the token, and shows it there.
    pub(super) fn to(&mut self, status: TokenStatus, now: Now) -> &mut Move {
        self.shows(status, now);
        self.moved(status, now)
    }

    /// Shows it there; the token stays where it is.
    pub(super) fn shows(&mut self, status: TokenStatus, now: Now) {
        self.status = status;
        if self.started_at.is_none() && status != TokenStatus::Pending {
            self.started_at = Some(now.at);
        }
        // Arriving at a fan-in is the end of a node's work, though not of its token.
        let done = status.is_end() || status == TokenStatus::WaitingForSiblings;
        self.ended_at = if done { self.ended_at.or(Some(now.at)) } else { None };
    }

    /// Moves the token; what is shown of it stays.
    pub(super) fn moved(&mut self, to: TokenStatus, now: Now) -> &mut Move {
        let by = self.answered_by.take();
        let goes_on =
            matches!(to, TokenStatus::Pending | TokenStatus::Dispatched | TokenStatus::WaitingForSubworkflow);
        if let Some(attempt) = self.history.last_mut().filter(|_| !goes_on) {
            attempt.outcome = attempt.outcome.or(Some(to));
        }
        self.walk.push(Move { by, ..Move::new(to, now) });
        self.walk.last_mut().expect("a move was just put there")
    }

    /// It came to no good end.
    pub fn has_failed(&self) -> bool {
        matches!(self.status, TokenStatus::Failed | TokenStatus::TimedOut)
    }

    /// Moves it because of a failure.
    pub(super) fn broke(&mut self, to: TokenStatus, failure: Option<&Failure>, now: Now) -> &mut Move {
        let text = failure.map(ToString::to_string);
        if let Some(attempt) = self.history.last_mut().filter(|attempt| attempt.outcome.is_none()) {
            attempt.failure.clone_from(&text);
        }
        self.failure.clone_from(&text);
        self.broke_with = failure.cloned();
        let step = self.to(to, now);
        step.failure = text;
        step
    }

    pub(super) fn goes_out(&mut self, attempt: Attempt, status: TokenStatus, now: Now) {
        let number = attempt.number;
        self.attempts = number;
        self.wakes_at = None;
        self.to(status, now).attempt = Some(number);
        self.history.push(attempt);
    }

    /// False if nobody waits for a report on this attempt.
    pub(super) fn reported(&mut self, attempt: u32, report: &Report, at: Time) -> bool {
        let out = |known: &&mut Attempt| known.number == attempt && known.ended_at.is_none();
        let Some(attempt) = self.history.iter_mut().rev().find(out) else { return false };
        attempt.spend.add(&report.spend);
        attempt.tries += report.tries;
        attempt.ended_at = Some(at);
        self.spend.add(&report.spend);
        self.tries += report.tries;
        true
    }
}

impl Move {
    fn new(to: TokenStatus, now: Now) -> Move {
        let Now { seq, at } = now;
        Move { seq, at, to, attempt: None, failure: None, wakes_at: None, gate: None, by: None }
    }
}

impl Attempt {
    pub(super) fn new(number: u32, reserved: Allowance, child: Option<Name>, now: Now) -> Attempt {
        Attempt {
            number,
            input: Value::Null,
            began_at: now.at,
            ended_at: None,
            reserved,
            spend: Spend::default(),
            tries: 0,
            outcome: None,
            failure: None,
            child,
        }
    }
}
