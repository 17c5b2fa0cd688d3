//! One turn of the driver as a value: what it leads to, and what becomes of that.
//!
//! Inputs are delivered to runs, runs tell each other things until nobody has anything to say, the rows that
//! follow are committed, and only then is anything answered, published or performed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::graph::Graph;
use wonder_core::run::Step;
use wonder_core::{Command, Input, Time, child_input};
use wonder_engine::{EngineError, Reply, Workflow};

use super::children::ChildStart;
use super::{Asker, Driver, Go, Refusal, Settled, TaskKey, panic_text};
use crate::failpoint;
use crate::store::{StoredRun, Write};

/// What one turn leads to: rows to be committed, then answers, then work.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Rows to be committed, all or none.
    pub(super) batch: Vec<Write>,
    /// Runs that something happened to: their rows are written, and their followers told.
    pub(super) touched: BTreeSet<Name>,
    /// What runs say to each other; all of it is said before the commit.
    pub(super) messages: VecDeque<RunMessage>,
    /// What was asked in this turn and changes something, by its id.
    pub(super) requested: BTreeMap<String, ([u8; 32], Name)>,
    /// Who asked, and about which run the answer is.
    pub(super) replies: Vec<(Asker, Reply<Name>)>,
    /// Tasks that begin as soon as it is committed that they do.
    pub(super) starting: Vec<(TaskKey, Go)>,
    /// Tasks to begin or to call back.
    pub(super) orders: Vec<(Name, Command)>,
}

/// What one run makes happen to another, within a turn.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few wait at once, and none for longer than a turn")]
pub(super) enum RunMessage {
    Start(Box<ChildStart>),
    Tell { run: Name, input: Input },
}

impl Turn {
    /// Nothing is left to be done: everything was committed and performed.
    fn is_empty(&self) -> bool {
        self.batch.is_empty()
            && self.touched.is_empty()
            && self.messages.is_empty()
            && self.replies.is_empty()
            && self.starting.is_empty()
            && self.orders.is_empty()
    }

    pub(super) fn tell(&mut self, run: Name, input: Input) {
        self.messages.push_back(RunMessage::Tell { run, input });
    }
}

impl Driver {
    /// One input to one run.
    pub(super) fn deliver(&mut self, turn: &mut Turn, id: &Name, input: Input) -> Result<(), Refusal> {
        self.hosted(turn, id).map_err(Refusal::Engine)?;
        let hosted = self.runs.get_mut(id).expect("it was just loaded");
        let now = self.clock.now();
        // A run that breaks an invariant is set aside with its evidence; the others go on.
        let handled = catch_unwind(AssertUnwindSafe(|| hosted.run.handle(input, now)));
        let step = match handled {
            Ok(Ok(step)) => step,
            Ok(Err(rejection)) => return Err(Refusal::Rejected(rejection)),
            Err(panic) => {
                let why = panic_text(&*panic);
                return Err(Refusal::Engine(self.quarantine(turn, id, why)));
            }
        };
        self.follow_up(turn, id, step);
        Ok(())
    }

    /// What a run decided: its events go into the batch, its commands wait for the commit.
    pub(super) fn follow_up(&mut self, turn: &mut Turn, id: &Name, step: Step) {
        turn.touched.insert(id.clone());
        self.record(turn, id, &step.events);
        for command in step.commands {
            self.command(turn, id, command);
        }
    }

    pub(super) fn command(&mut self, turn: &mut Turn, id: &Name, command: Command) {
        match command {
            Command::RunTask(_) | Command::CancelTask { .. } => turn.orders.push((id.clone(), command)),
            // Gates are rows that follow from events.
            Command::OpenGate { .. } | Command::CloseGate { .. } | Command::RemindGate { .. } => {}
            Command::StartChild(order) => {
                let start = ChildStart { parent: id.clone(), order: *order };
                turn.messages.push_back(RunMessage::Start(Box::new(start)));
            }
            Command::CancelChild { .. } | Command::PauseChild { .. } | Command::ResumeChild { .. } => {
                if let Some((child, input)) = child_input(&command) {
                    turn.tell(child, input);
                }
            }
        }
    }

    /// Passes on what runs say to each other until nobody has anything to say; then the rows that follow.
    pub(super) fn settle(&mut self, turn: &mut Turn) {
        loop {
            self.pass_messages(turn);
            self.tell_ends(turn);
            self.free_places(turn);
            if turn.messages.is_empty() {
                break;
            }
        }
        self.write_rows(turn);
    }

    pub(super) fn pass_messages(&mut self, turn: &mut Turn) {
        while let Some(message) = turn.messages.pop_front() {
            match message {
                RunMessage::Start(start) => self.start_child(turn, *start),
                // A run that has ended, or is told something twice, refuses; that is fine.
                RunMessage::Tell { run, input } => drop(self.deliver(turn, &run, input)),
            }
        }
    }

    /// Sets a run that is in memory aside with its evidence. What it decided in this turn is not kept.
    fn quarantine(&mut self, turn: &mut Turn, id: &Name, why: String) -> EngineError {
        if let Some(hosted) = self.runs.remove(id) {
            let run = hosted.no;
            turn.batch.retain(|write| !matches!(write, Write::Events { run: of, .. } if *of == run));
            if hosted.stored.is_none() {
                let row = hosted.inserted(id, hosted.update(false));
                turn.batch.push(Write::RunInsert(Box::new(row)));
            }
            turn.batch.push(self.set_aside(run, &why));
        }
        turn.touched.remove(id);
        self.let_go(turn, id);
        let error = EngineError::set_aside(id, &why);
        for waiter in self.waiters.remove(id).unwrap_or_default() {
            turn.replies.push((waiter.reply, Err(error.clone())));
        }
        error
    }

    /// Sets a run aside that cannot be brought into memory.
    pub(super) fn quarantine_stored(
        &mut self,
        turn: &mut Turn,
        stored: &StoredRun,
        why: &str,
    ) -> EngineError {
        turn.batch.push(self.set_aside(stored.no, why));
        self.let_go(turn, &stored.row.run.as_str().into());
        EngineError::set_aside(&stored.row.run, why)
    }

    /// A run that is set aside wants nothing any more, and what it held is for others.
    fn let_go(&mut self, turn: &mut Turn, id: &Name) {
        self.timers.set(id, None);
        self.shared.leave_alone(id);
        if let Some(next) = self.concurrency.leave(id) {
            self.use_place(turn, next);
        }
    }

    fn set_aside(&self, run: i64, why: &str) -> Write {
        Write::Quarantine { run, evidence: why.to_owned(), at: self.clock.now().0 }
    }

    /// After the commit: answers, then news, then work. What that leads to begins the next turn.
    pub(super) fn perform(&mut self, turn: &mut Turn) {
        turn.requested.clear();
        for (reply, about) in turn.replies.drain(..) {
            // Whoever asked may be gone.
            reply.answer(about.map(|run| self.shown(&run)));
        }
        for (key, go) in turn.starting.drain(..) {
            match go {
                Go::Worker(go) => go.send(()).unwrap_or_default(),
                Go::Executor => self.executor.begin(&key),
            }
        }
        failpoint::hit("answered");
        let touched = std::mem::take(&mut turn.touched);
        self.shared.publish(&touched);
        if self.lines.is_empty() && !self.runs_with_lines.is_empty() {
            self.shared.publish(&std::mem::take(&mut self.runs_with_lines));
        }
        for (run, command) in turn.orders.drain(..) {
            self.order(&run, command);
            failpoint::hit("ordered");
        }
        self.release_held(turn);
        self.executor.fill_places(&mut self.backlog);
        self.answer_waiters(&touched);
        self.unload(touched);
    }

    /// Stores a definition if it is new.
    pub(super) fn register(&mut self, turn: &mut Turn, workflow: Workflow) -> Reply<(i64, Arc<Graph>)> {
        self.definitions.register(workflow, &self.store.reader(), self.clock.now(), &mut turn.batch)
    }

    /// Answers those who want to know when there is nothing more to do, if so.
    pub(super) fn tell_settled(&mut self, turn: &Turn) {
        if self.settling.is_empty() {
            return;
        }
        // A report may have come while its task was begun.
        self.backlog.extend(self.inbox.next());
        let due = |at: Time| at <= self.clock.deadlines_until();
        let next_deadline = self.timers.first();
        let done = turn.is_empty() && self.backlog.is_empty() && self.lines.is_empty();
        if !done || next_deadline.is_some_and(due) {
            return;
        }
        let settled = Settled { next_deadline, tasks_out: self.executor.tasks_out() };
        for reply in self.settling.drain(..) {
            // Whoever asked may be gone.
            let _ = reply.send(settled);
        }
    }
}
