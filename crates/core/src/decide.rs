//! The rules. One file per input or subject; each checks first, then records, and after the first record
//! nothing can fail. A rule reads the run and never writes it: [`Decision::record`] applies an event, which
//! is the only way to change anything.

mod budget;
mod cancel;
mod child;
mod complete;
mod dag;
mod dispatch;
mod enter;
mod fail;
mod fan_in;
mod gate;
mod operate;
mod reserve;
mod respond;
mod route;
mod start;
mod task_finished;
mod wait_event;
mod wake;

use std::sync::Arc;

use crate::command::Command;
use crate::error::Failure;
use crate::event::{Event, EventKind, GateId, GroupId, NewFork, TokenId};
use crate::graph::{Graph, NodeIx};
use crate::input::{Input, Rejection};
use crate::run::{Run, Step};
use crate::scope::{View, laid_over_state};
use crate::state::{State, Token};
use crate::time::Time;

/// One input being decided.
pub(crate) struct Decision<'r> {
    run: &'r mut Run,
    now: Time,
    events: Vec<Event>,
    commands: Vec<Command>,
    /// What is left of the moves the coordinator may make on its own.
    moves_left: u32,
}

pub(crate) fn handle(run: &mut Run, input: Input, now: Time) -> Result<Step, Rejection> {
    if run.state().start.is_none() && !matches!(input, Input::StartRun(_)) {
        return Err(Rejection::NotStarted);
    }
    let moves_left = run.state().start.as_ref().map_or(u32::MAX, |start| start.limits.moves_per_input_max);
    let mut decision = Decision { run, now, events: Vec::new(), commands: Vec::new(), moves_left };
    decision.decide(input)?;
    decision.settle();
    let Decision { run, events, commands, .. } = decision;
    Ok(Step { events, commands, moves: run.take_moves() })
}

/// What is ready goes on, though nothing was said: the host held it until now.
pub(crate) fn go_on(run: &mut Run, now: Time) -> Step {
    let Some(start) = &run.state().start else { return Step::default() };
    let moves_left = start.limits.moves_per_input_max;
    let mut decision = Decision { run, now, events: Vec::new(), commands: Vec::new(), moves_left };
    decision.settle();
    let Decision { run, events, commands, .. } = decision;
    Step { events, commands, moves: run.take_moves() }
}

/// A fork is no input: it is how a run begins that has another's past.
pub(crate) fn fork(run: &mut Run, forked: NewFork, now: Time) -> Result<Step, Failure> {
    let moves_left = run.state().start.as_ref().map_or(u32::MAX, |start| start.limits.moves_per_input_max);
    let mut decision = Decision { run, now, events: Vec::new(), commands: Vec::new(), moves_left };
    decision.check_writes(None, &laid_over_state(&forked.set))?;
    decision.record(EventKind::RunForked(forked));
    let out: Vec<TokenId> = decision.state().out.keys().map(|(id, _)| *id).collect();
    for id in out {
        let Some(token) = decision.state().tokens.get(&id).filter(|token| token.is_live()) else { continue };
        let report = Some(crate::event::Report::default());
        if token.straggler.is_some() {
            // It was to finish its task and go no further; here it has none.
            let reason = crate::event::CancelReason::Straggler;
            decision.record(EventKind::TokenCancelled { token: id, reason, report });
        } else if !decision.run.is_repeatable(id) {
            let failed = fail::Failed { report, ..fail::Failed::of(crate::run::lost_in_fork()) };
            decision.fail(id, failed);
        }
    }
    decision.commands = crate::run::restarted(decision.run);
    decision.settle();
    let Decision { run, events, commands, .. } = decision;
    Ok(Step { events, commands, moves: run.take_moves() })
}

impl Decision<'_> {
    fn decide(&mut self, input: Input) -> Result<(), Rejection> {
        match input {
            Input::StartRun(start) => self.start(*start),
            Input::Release => self.release(),
            Input::TaskFinished { token, attempt, report } => self.task_finished(token, attempt, report),
            Input::Wake => self.wake(),
            Input::GateAnswered { gate, answer, by } => self.gate_answered(gate, answer, by),
            Input::EventArrived { name, key, payload, keep } => self.event_arrived(name, key, payload, keep),
            Input::ChildFinished { token, attempt, outcome, spend } => {
                self.child_finished(token, attempt, outcome, spend)
            }
            Input::Cancel { reason, grace_ms } => self.cancel(reason, grace_ms),
            Input::Kill { reason } => self.kill(reason),
            Input::Pause { by } => self.pause(by),
            Input::Resume { by } => self.resume(by),
            Input::Retry { by, version } => self.retry(by, version),
        }
    }

    /// After every input: judges fan-ins that may be ready and moves pending tokens on, until nothing is
    /// left that needs no host. One input makes a bounded number of moves; then the run yields, and goes on
    /// when the host, having made all this durable, wakes it at once.
    fn settle(&mut self) {
        while self.is_open() {
            if self.moves_left == 0 {
                self.record(EventKind::RunYielded);
                break;
            }
            self.moves_left -= 1;
            if let Some(group) = self.run.take_touched() {
                self.judge(group);
            } else if !self.pump() {
                self.finish_if_done();
                break;
            }
        }
        while self.run.take_touched().is_some() {}
        self.warn_of_budgets();
    }

    /// Moves one pending token on. False when all of them wait for something.
    fn pump(&mut self) -> bool {
        if self.state().status != crate::lifecycle::RunStatus::Running {
            return false;
        }
        if let Some(token) = self.state().entering.first().copied() {
            self.enter(token);
            return true;
        }
        !self.run.holds_dispatch() && (self.call_next() || self.dispatch_next())
    }

    /// Running or paused: fan-ins fire and results route in both.
    fn is_open(&self) -> bool {
        use crate::lifecycle::RunStatus;
        matches!(self.state().status, RunStatus::Running | RunStatus::Paused)
    }

    fn record(&mut self, kind: EventKind) {
        let event = self.run.record(self.now, kind);
        self.events.push(event);
    }

    fn request(&mut self, command: Command) {
        self.commands.push(command);
    }

    fn state(&self) -> &State {
        self.run.state()
    }

    fn graph(&self) -> Arc<Graph> {
        self.run.graph().clone()
    }

    fn token(&self, id: TokenId) -> &Token {
        &self.state().tokens[&id]
    }

    fn node_of(&self, id: TokenId) -> NodeIx {
        NodeIx(self.token(id).node)
    }

    fn view(&self, id: TokenId) -> View<'_> {
        View::of_token(self.state(), self.run.graph(), self.token(id))
    }

    fn next_token(&self) -> TokenId {
        TokenId(self.state().tokens_minted + 1)
    }

    fn next_group(&self) -> GroupId {
        GroupId(self.state().groups_made + 1)
    }

    fn next_gate(&self) -> GateId {
        GateId(self.state().gates_opened + 1)
    }
}
