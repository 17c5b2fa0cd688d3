//! A run: give it one input, make the events durable, perform the commands, give it the next.
//!
//! `Run` is a value. [`Run::handle`] decides and records, [`Run::replay`] only applies. Everything that
//! changes it is in `run/apply`, the child of this module; the rules in [`crate::decide`] see a shared
//! reference and can change nothing, by the compiler's word.

mod apply;
mod fork;
mod owed;
mod why;

use std::fmt;
use std::sync::Arc;

pub use fork::Fork;
pub(crate) use fork::{lost_in_fork, restarted};
pub use why::{Waiting, WaitsFor};

use crate::command::Command;
use crate::cost::Spend;
use crate::def::Name;
use crate::error::{ErrorKind, Failure};
use crate::event::{Event, EventKind, GateId, GroupId, TokenId};
use crate::graph::Graph;
use crate::input::{ChildOutcome, Input, Rejection};
pub use crate::lifecycle::RunStatus;
use crate::lifecycle::TokenStatus;
use crate::state::{Closing, Gate, Metrics, Out, Place, State, Timer, Token};
use crate::time::Time;
use crate::value::Value;

/// One run of one workflow.
///
/// Drive it so: tell it one input with [`handle`](Run::handle); store the events of the [`Step`] that comes
/// back; perform its commands; sleep until [`next_deadline`](Run::next_deadline) at most; tell it the next.
/// After a crash: [`replay`](Run::replay) the stored events and perform what is [`owed`](Run::owed).
#[derive(Clone, Debug)]
pub struct Run {
    graph: Arc<Graph>,
    state: State,
    /// Moves and groups touched since they were last taken; empty between inputs.
    moves: Vec<Move>,
    touched: Vec<GroupId>,
    /// No task and no child is sent out for now. A host's wish, not a fact: not recorded, seen by nobody.
    holds_dispatch: bool,
}

/// What came of one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// To be made durable, first.
    pub events: Vec<Event>,
    /// To be performed, after that.
    pub commands: Vec<Command>,
    /// How tokens moved, for whoever wants to watch; follows from the events.
    pub moves: Vec<Move>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Move {
    pub token: TokenId,
    pub from: TokenStatus,
    pub to: TokenStatus,
}

/// A stored log that this run cannot have written.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayError {
    /// The event that does not fit.
    pub seq: u64,
    pub message: String,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: {}", self.seq, self.message)
    }
}

impl std::error::Error for ReplayError {}

impl Run {
    /// A run that has been told nothing yet.
    pub fn new(graph: Arc<Graph>) -> Run {
        let (moves, touched) = (Vec::new(), Vec::new());
        Run { graph, state: State::default(), moves, touched, holds_dispatch: false }
    }

    /// The only way in. On a rejection nothing has changed.
    pub fn handle(&mut self, input: Input, now: Time) -> Result<Step, Rejection> {
        // Time never goes back within a run, whatever the host's clock does.
        let now = now.max(self.state.now);
        crate::decide::handle(self, input, now)
    }

    /// Sends out nothing more until [`release_dispatch`](Run::release_dispatch): for a host that wants what is out
    /// to come back before it hands the run over. Results, answers and deadlines still count, clocks go on, and
    /// nothing of it shows: what is ready stays pending.
    pub fn hold_dispatch(&mut self) {
        self.holds_dispatch = true;
    }

    /// Ends a hold, and sends out what had become ready.
    pub fn release_dispatch(&mut self, now: Time) -> Step {
        self.holds_dispatch = false;
        crate::decide::go_on(self, now.max(self.state.now))
    }

    pub fn holds_dispatch(&self) -> bool {
        self.holds_dispatch
    }

    /// The run that wrote these events. Applies them; no rule is asked.
    pub fn replay<'e>(
        graph: Arc<Graph>,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<Run, ReplayError> {
        let mut run = Run::new(graph);
        run.replay_more(events)?;
        Ok(run)
    }

    /// Goes on from a snapshot: the graph the run started with, and its state.
    pub fn restore(graph: Arc<Graph>, state: State) -> Result<Run, ReplayError> {
        let mut run = Run::new(graph);
        for mutation in &state.mutations {
            let seq = state.seq;
            let message = |error| format!("the snapshot's changes to the graph do not fit: {error}");
            let grown =
                run.graph.grown(mutation).map_err(|error| ReplayError { seq, message: message(error) })?;
            run.graph = Arc::new(grown);
        }
        run.state = state;
        Ok(run)
    }

    pub fn replay_more<'e>(
        &mut self,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<(), ReplayError> {
        for event in events {
            if event.seq != self.state.seq + 1 {
                let message = format!("expected event {}; the log has a gap or a repeat", self.state.seq + 1);
                return Err(ReplayError { seq: event.seq, message });
            }
            let refused = |message| ReplayError { seq: event.seq, message };
            apply::check(self, event).map_err(refused)?;
            let grown = apply::grown(self, &event.kind).map_err(|error| refused(error.to_string()))?;
            apply::apply(self, event, grown);
            self.moves.clear();
            self.touched.clear();
        }
        Ok(())
    }

    /// Records one event: numbers it, applies it, gives it back to be stored.
    pub(crate) fn record(&mut self, at: Time, kind: EventKind) -> Event {
        let event = Event { seq: self.state.seq + 1, at, kind };
        let grown = apply::grown(self, &event.kind).expect("a rule checks a change before it records it");
        apply::apply(self, &event, grown);
        event
    }

    pub(crate) fn take_moves(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.moves)
    }

    /// A group whose fan-in may have become ready or hopeless.
    pub(crate) fn take_touched(&mut self) -> Option<GroupId> {
        self.touched.pop()
    }

    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn status(&self) -> RunStatus {
        self.state.status
    }

    /// Nothing will happen until somebody says something: it has ended, or no task is out and nothing sleeps,
    /// backs off or is about to start. `held`: whether the host keeps back a task that is out until somebody
    /// says something. `quiet_child`: the same question about a run that it called.
    pub fn is_quiet(&self, held: impl Fn(TokenId, u32) -> bool, quiet_child: impl Fn(&Name) -> bool) -> bool {
        match self.status() {
            RunStatus::Queued | RunStatus::Cancelling => return false,
            RunStatus::Running | RunStatus::Paused => {}
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut => {
                return true;
            }
        }
        let idle = |((token, attempt), out): (&(TokenId, u32), &Out)| match &out.child {
            Some(child) => quiet_child(child),
            None => held(*token, *attempt),
        };
        let moves =
            |t: &Token| matches!(t.place, Place::Pending | Place::Retrying { .. } | Place::Sleeping { .. });
        // A pause keeps back what would start. In the middle of a step nobody may be there yet.
        let waits = || self.tokens().any(Token::is_live) && !self.tokens().any(moves);
        let stands = self.status() == RunStatus::Paused || waits();
        stands
            && self.state.out.iter().all(idle)
            && !self.state.timers.iter().any(|(_, timer)| *timer == Timer::Continue)
    }

    /// Live, and only waiting for people or outside events: quiet, and not because an operator paused it. Runs
    /// that it called and that are out are not asked: with one of them it does not wait alone.
    pub fn is_waiting(&self) -> bool {
        let waits = match self.status() {
            RunStatus::Running => true,
            RunStatus::Paused => !self.state.gates.is_empty(),
            _ => false,
        };
        waits && self.is_quiet(|_, _| false, |_| false)
    }

    pub fn output(&self) -> Option<&Value> {
        match &self.state.closing {
            Some(Closing::Output(output)) => Some(output),
            _ => None,
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        match &self.state.closing {
            Some(Closing::Failure(failure)) => Some(failure),
            _ => None,
        }
    }

    /// How it ended, as whoever called it is told; None while it goes on.
    pub fn outcome(&self) -> Option<ChildOutcome> {
        Some(match self.status() {
            RunStatus::Completed => {
                ChildOutcome::Completed { output: self.output().cloned().unwrap_or_default() }
            }
            RunStatus::TimedOut => ChildOutcome::TimedOut,
            RunStatus::Cancelled => ChildOutcome::Cancelled,
            RunStatus::Failed => {
                let unknown = || Failure::new(ErrorKind::Internal, "it failed without a failure");
                ChildOutcome::Failed { failure: self.failure().cloned().unwrap_or_else(unknown) }
            }
            _ => return None,
        })
    }

    /// When to be woken, if nothing else comes before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.state.timers.first().map(|(at, _)| *at)
    }

    /// Live tokens, and ended ones that `retry` would reopen.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.state.tokens.values()
    }

    /// Open gates.
    pub fn gates(&self) -> impl Iterator<Item = (GateId, &Gate)> {
        self.state.gates.iter().map(|(id, gate)| (*id, gate))
    }

    pub fn metrics(&self) -> &Metrics {
        &self.state.metrics
    }

    pub fn spend(&self) -> &Spend {
        &self.state.spend
    }
}
