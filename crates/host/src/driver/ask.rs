//! Requests that change a run, or want to know when one is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wonder_core::def::Name;
use wonder_core::event::GateId;
use wonder_core::input::StartRun;
use wonder_core::{Input, RunStatus, Value};
use wonder_engine::{Act, Answer, EngineError, Reply, Request, Response, Signal, Start};

use super::children::{NewRun, seed};
use super::hosted::DEFAULT_PROJECT;
use super::requests::Asked;
use super::{Asker, Driver, Refusal, Turn, Waiter, closing};
use crate::Leaving;
use crate::embedded::{Drive, Embedded};

impl Driver {
    pub(super) fn ask(&mut self, turn: &mut Turn, asked: Embedded, reply: Asker) {
        if matches!(self.leaving, Some((Leaving::Now, _))) {
            reply.answer(Err(closing()));
            return;
        }
        let (mut request, drive) = match asked {
            Embedded::Ask { request, drive } => (request, drive),
            Embedded::Hello => return reply.answer(Ok(None)),
            Embedded::Adopt { run } => {
                let run: Name = run.into();
                let adopted = self.adopt(turn, &run).map(|()| run);
                return turn.replies.push((reply, adopted));
            }
        };
        let stays_ms = match &request {
            Request::Start(start) => start.wait_ms,
            _ => 0,
        };
        let asked = Asked::of(&mut request);
        match asked.as_ref().map_or(Ok(None), |asked| self.done_before(turn, asked)) {
            Ok(None) => {}
            Ok(Some(run)) => {
                let again = self.carry_on_again(turn, run, drive);
                return turn.replies.push((reply, again));
            }
            Err(error) => return turn.replies.push((reply, Err(error))),
        }
        let done = match request {
            Request::Start(start) => self.start(turn, *start, drive),
            Request::Act { run, act, .. } => self.act(turn, &run.into(), act, drive),
            Request::Fork(fork) => self.fork(turn, *fork, drive),
            Request::Answer(answer) => self.answer(turn, answer, drive),
            Request::Signal(signal) => self.signal(turn, signal, drive),
            Request::Tell(tell) => self.tell(turn, &tell, drive),
            Request::Wait { run, wait_ms } => return self.wait(turn, run.into(), wait_ms, reply),
            Request::Find { run } if self.runs.contains_key(&*run) => Ok(run.into()),
            // Asked when a reader found the run to be damaged: if it is, it is set aside.
            Request::Why { run } => {
                let run: Name = run.into();
                self.hosted(turn, &run).map(|()| run)
            }
            // These are read from the database, without the driver.
            _ => return reply.answer(Ok(None)),
        };
        if let (Some(asked), Ok(run)) = (asked, &done) {
            self.remember(turn, asked, run);
        }
        // What follows from it belongs to the answer, and nothing is told before it is committed.
        match done {
            // Whether it is quiet is known at the end of the turn: a run that it calls first has not begun yet.
            Ok(run) if stays_ms > 0 => {
                turn.touched.insert(run.clone());
                self.stay(run, stays_ms, reply);
            }
            done => turn.replies.push((reply, done)),
        }
    }

    /// What was asked was done before: whoever asks again still wants the run carried on.
    pub(super) fn carry_on_again(&mut self, turn: &mut Turn, run: Name, drive: Drive) -> Reply<Name> {
        if drive == Drive::On {
            self.adopt(turn, &run)?;
        }
        Ok(run)
    }

    /// What a run that is in memory looks like; None if it has to be read.
    pub(super) fn shown(&self, run: &Name) -> Option<Response> {
        self.view(run).map(|view| Response::Run(Box::new(view)))
    }

    fn start(&mut self, turn: &mut Turn, start: Start, drive: Drive) -> Reply<Name> {
        let id: Name = start.id.unwrap_or_else(|| ulid::Ulid::generate().to_string()).into();
        if self.is_known(turn, &id)? {
            return self.carry_on_again(turn, id, drive);
        }
        let mut callable = BTreeMap::new();
        let name = start.workflow.bundle.workflow.name.text.clone();
        let project = start.workflow.bundle.workflow.project_id.clone();
        // The file's own, and over them what whoever starts the run says.
        let written = &start.workflow.bundle.workflow.labels;
        let mut labels: BTreeMap<String, String> =
            written.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        labels.extend(start.labels);
        let (definition, graph) = self.register(turn, start.workflow)?;
        callable.insert(name, definition);
        for workflow in start.callable {
            let name = workflow.bundle.workflow.name.text.clone();
            let (definition, _) = self.register(turn, workflow)?;
            callable.insert(name, definition);
        }
        self.refuse_secrets("the input", &start.input)?;
        for (key, value) in &labels {
            self.refuse_secrets("a label", &Value::from(format!("{key}={value}")))?;
        }
        let mut core = StartRun::new(id.clone(), start.input);
        core.seed = start.options.seed.unwrap_or_else(|| seed(&id));
        core.limits = start.options.limits.unwrap_or_default();
        core.timeout_ms = start.options.timeout_ms;
        core.queued = start.options.queued;
        core.max_parallel = start.max_parallel;
        if drive == Drive::On {
            self.shared.drive(&id);
        }
        let new = NewRun {
            definition,
            graph,
            callable: Arc::new(callable),
            root: id.clone(),
            project: project.unwrap_or_else(|| DEFAULT_PROJECT.into()),
            workdir: Arc::new(start.workdir.into()),
            file: start.file,
            labels,
            start: core,
        };
        self.create_run(turn, new).map_err(refused)?;
        Ok(id)
    }

    fn act(&mut self, turn: &mut Turn, id: &Name, act: Act, drive: Drive) -> Reply<Name> {
        self.hosted(turn, id)?;
        // Pausing, resuming and retrying a child does the same to its root.
        let root = self.runs[id].root.clone();
        let whole = matches!(act, Act::Pause { .. } | Act::Resume { .. } | Act::Retry { .. });
        let id = if whole { root } else { id.clone() };
        self.hosted(turn, &id)?;
        let status = self.runs[&id].run.status();
        let input = match act {
            Act::Cancel { reason, grace_ms } => Some(Input::Cancel { reason, grace_ms }),
            Act::Kill { reason } => Some(Input::Kill { reason }),
            Act::Pause { by } => Some(Input::Pause { by: by.into() }),
            // A run that nobody drives is not paused, only left alone.
            Act::Resume { .. } if matches!(status, RunStatus::Running | RunStatus::Cancelling) => None,
            Act::Resume { by } => Some(Input::Resume { by: by.into() }),
            Act::Retry { by, definition } if definition.is_empty() => {
                Some(Input::Retry { by: by.into(), version: None })
            }
            Act::Retry { by, definition } => Some(self.redefined(turn, &id, &definition, by.into())?),
            Act::Release => Some(Input::Release),
        };
        if let Some(input) = input {
            self.deliver(turn, &id, input).map_err(refused)?;
        }
        if drive == Drive::On {
            self.adopt(turn, &id)?;
        }
        Ok(id)
    }

    fn answer(&mut self, turn: &mut Turn, answer: Answer, drive: Drive) -> Reply<Name> {
        let no_gate = || EngineError::no_such_gate(&answer.gate);
        let (run, number) = answer.gate.rsplit_once(':').ok_or_else(no_gate)?;
        let (run, gate) = (Name::from(run), GateId(number.parse().map_err(|_| no_gate())?));
        self.hosted(turn, &run)?;
        self.refuse_secrets("the answer", &answer.answer)?;
        let input = Input::GateAnswered { gate, answer: answer.answer, by: answer.by.into() };
        self.tell_and_drive(turn, run, input, drive)
    }

    fn signal(&mut self, turn: &mut Turn, signal: Signal, drive: Drive) -> Reply<Name> {
        let Signal { run, event, key, payload, keep, .. } = signal;
        // Its definition names secrets.
        let run: Name = run.into();
        self.hosted(turn, &run)?;
        self.refuse_secrets("the event", &payload)?;
        self.refuse_secrets("the key of the event", &key)?;
        let input = Input::EventArrived { name: event.into(), key, payload, keep };
        self.tell_and_drive(turn, run, input, drive)
    }

    /// What people type is stored as it is.
    pub(super) fn refuse_secrets(&self, what: &str, typed: &Value) -> Reply<()> {
        if self.executor.worker().shows_secret(typed) { Err(EngineError::secret_typed(what)) } else { Ok(()) }
    }

    /// Tells a run something and carries its tree on; the answer is about the root.
    pub(super) fn tell_and_drive(
        &mut self,
        turn: &mut Turn,
        run: Name,
        input: Input,
        drive: Drive,
    ) -> Reply<Name> {
        self.deliver(turn, &run, input).map_err(refused)?;
        let root = self.runs.get(&run).map_or(run.clone(), |hosted| hosted.root.clone());
        if drive == Drive::On {
            self.adopt(turn, &root)?;
        }
        self.hosted(turn, &root)?;
        turn.touched.insert(root.clone());
        Ok(root)
    }

    fn wait(&mut self, turn: &mut Turn, run: Name, wait_ms: u64, reply: Asker) {
        let over = match self.runs.get(&run) {
            None => return reply.answer(Ok(None)),
            Some(hosted) => hosted.run.status().is_end() || self.is_quiet(&run),
        };
        if over {
            return turn.replies.push((reply, Ok(run)));
        }
        self.stay(run, wait_ms, reply);
    }

    fn stay(&mut self, run: Name, wait_ms: u64, reply: Asker) {
        let until = Instant::now() + Duration::from_millis(wait_ms);
        self.waiters.entry(run).or_default().push(Waiter { until, reply });
    }

    /// Answers those who wait for a run that has ended, or is quiet.
    pub(super) fn answer_waiters(&mut self, touched: &BTreeSet<Name>) {
        if self.waiters.is_empty() {
            return;
        }
        let mut above = BTreeSet::new();
        for id in touched {
            let mut parent = self.runs.get(id).and_then(|hosted| hosted.parent.clone());
            while let Some(next) = parent.filter(|next| above.insert(next.clone())) {
                parent = self.runs.get(&next).and_then(|hosted| hosted.parent.clone());
            }
        }
        for id in touched.union(&above) {
            if !self.waiters.contains_key(id) || !self.is_quiet(id) {
                continue;
            }
            for waiter in self.waiters.remove(id).unwrap_or_default() {
                waiter.reply.answer(Ok(self.shown(id)));
            }
        }
    }

    /// Answers those who have waited as long as they wanted to.
    pub(super) fn answer_late_waiters(&mut self, turn: &mut Turn) {
        if self.waiters.is_empty() {
            return;
        }
        let now = Instant::now();
        let late: Vec<Name> = self
            .waiters
            .iter()
            .filter(|(_, waiters)| waiters.iter().any(|waiter| waiter.until <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            let waiters = self.waiters.remove(&id).unwrap_or_default();
            let (gone, stay): (Vec<Waiter>, Vec<Waiter>) =
                waiters.into_iter().partition(|waiter| waiter.until <= now);
            turn.replies.extend(gone.into_iter().map(|waiter| (waiter.reply, Ok(id.clone()))));
            if !stay.is_empty() {
                self.waiters.insert(id, stay);
            }
        }
    }
}

pub(super) fn refused(refusal: Refusal) -> EngineError {
    match refusal {
        Refusal::Engine(error) => error,
        Refusal::Rejected(rejection) => EngineError::rejected(&rejection),
    }
}
