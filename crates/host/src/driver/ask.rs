//! Requests that change a run, or want to know when one is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wonder_core::def::Name;
use wonder_core::event::GateId;
use wonder_core::input::StartRun;
use wonder_core::{Input, RunStatus};
use wonder_engine::{Act, Answer, Drive, EngineError, ErrorCode, Reply, Request, Response, Signal, Start};

use super::children::{Birth, seed};
use super::hosted::DEFAULT_PROJECT;
use super::{Asker, Driver, Refusal, Waiter, closing};
use crate::Leaving;

impl Driver {
    pub(super) fn ask(&mut self, request: Request, reply: Asker) {
        if matches!(self.leaving, Some((Leaving::Now, _))) {
            drop(reply.send(Err(closing())));
            return;
        }
        let stays_ms = match &request {
            Request::Start(start) => start.wait_ms,
            _ => 0,
        };
        let done = match request {
            Request::Start(start) => self.start(*start),
            Request::Act { run, act, drive } => self.act(&run.into(), act, drive),
            Request::Fork(fork) => self.fork(*fork),
            Request::Answer(answer) => self.answer(answer),
            Request::Signal(signal) => self.signal(signal),
            Request::Adopt { run } => {
                let run: Name = run.into();
                self.adopt(&run).map(|()| run)
            }
            Request::Wait { run, wait_ms } => return self.wait(run.into(), wait_ms, reply),
            Request::Find { run } if self.runs.contains_key(&*run) => Ok(run.into()),
            // Whoever asks these reads for himself.
            _ => return drop(reply.send(Ok(None))),
        };
        // What follows from it belongs to the answer, and nothing is told before it is committed.
        match done {
            // It may have been asked for before, and be over.
            Ok(run) if stays_ms > 0 => self.wait(run, stays_ms, reply),
            done => self.replies.push((reply, done)),
        }
    }

    /// What a run that is in memory looks like; None if it has to be read.
    pub(super) fn shown(&self, run: &Name) -> Option<Response> {
        self.view(run).map(|view| Response::Run(Box::new(view)))
    }

    fn start(&mut self, start: Start) -> Reply<Name> {
        let id: Name = start.id.unwrap_or_else(|| ulid::Ulid::generate().to_string()).into();
        if self.hosted(&id).is_ok() {
            // Asked twice, because the first answer was lost.
            self.adopt(&id)?;
            return Ok(id);
        }
        let mut callable = BTreeMap::new();
        let name = start.workflow.bundle.workflow.name.text.clone();
        let project = start.workflow.bundle.workflow.project_id.clone();
        let (definition, graph) =
            self.definitions.register(start.workflow, &self.store.reader(), &mut self.batch)?;
        callable.insert(name, definition);
        for workflow in start.callable {
            let name = workflow.bundle.workflow.name.text.clone();
            let (definition, _) =
                self.definitions.register(workflow, &self.store.reader(), &mut self.batch)?;
            callable.insert(name, definition);
        }
        let mut core = StartRun::new(id.clone(), start.input);
        core.seed = seed(&id);
        core.max_parallel = start.max_parallel;
        if start.drive == Drive::On {
            self.shared.drive(&id);
        }
        let birth = Birth {
            definition,
            graph,
            callable: Arc::new(callable),
            root: id.clone(),
            project: project.unwrap_or_else(|| DEFAULT_PROJECT.into()),
            workdir: Arc::new(start.workdir.into()),
            labels: start.labels,
            start: core,
        };
        self.bear(birth).map_err(refused)?;
        Ok(id)
    }

    fn act(&mut self, id: &Name, act: Act, drive: Drive) -> Reply<Name> {
        self.hosted(id)?;
        // Pausing, resuming and retrying a child is its root's business.
        let root = self.runs[id].root.clone();
        let whole = matches!(act, Act::Pause { .. } | Act::Resume { .. } | Act::Retry { .. });
        let id = if whole { root } else { id.clone() };
        self.hosted(&id)?;
        let status = self.runs[&id].run.status();
        let input = match act {
            Act::Cancel { reason, grace_ms } => Some(Input::Cancel { reason, grace_ms }),
            Act::Kill { reason } => Some(Input::Kill { reason }),
            Act::Pause { by } => Some(Input::Pause { by: by.into() }),
            // A run that nobody drives is not paused, only left alone.
            Act::Resume { .. } if matches!(status, RunStatus::Running | RunStatus::Cancelling) => None,
            Act::Resume { by } => Some(Input::Resume { by: by.into() }),
            Act::Retry { by } => Some(Input::Retry { by: by.into() }),
        };
        if let Some(input) = input {
            self.deliver(&id, input).map_err(refused)?;
        }
        if drive == Drive::On {
            self.adopt(&id)?;
        }
        Ok(id)
    }

    fn answer(&mut self, answer: Answer) -> Reply<Name> {
        let no_gate = || {
            EngineError::new(ErrorCode::NotFound, format!("there is no gate {}", answer.gate))
                .help("wonder gates shows those that are open.")
        };
        let (run, number) = answer.gate.rsplit_once(':').ok_or_else(no_gate)?;
        let (run, gate) = (Name::from(run), GateId(number.parse().map_err(|_| no_gate())?));
        let input = Input::GateAnswered { gate, answer: answer.answer, by: answer.by.into() };
        self.said_to(run, input, answer.drive)
    }

    fn signal(&mut self, signal: Signal) -> Reply<Name> {
        let Signal { run, event, key, payload, keep, drive } = signal;
        let input = Input::EventArrived { name: event.into(), key, payload, keep };
        self.said_to(run.into(), input, drive)
    }

    /// Tells a run something and carries its tree on; the answer is about the root.
    fn said_to(&mut self, run: Name, input: Input, drive: Drive) -> Reply<Name> {
        self.deliver(&run, input).map_err(refused)?;
        let root = self.runs.get(&run).map_or(run.clone(), |hosted| hosted.root.clone());
        if drive == Drive::On {
            self.adopt(&root)?;
        }
        self.hosted(&root)?;
        self.touched.insert(root.clone());
        Ok(root)
    }

    fn wait(&mut self, run: Name, wait_ms: u64, reply: Asker) {
        let over = match self.runs.get(&run) {
            None => return drop(reply.send(Ok(None))),
            Some(hosted) => hosted.run.status().is_end() || self.is_quiet(&run),
        };
        if over {
            return self.replies.push((reply, Ok(run)));
        }
        let until = Instant::now() + Duration::from_millis(wait_ms);
        self.waiters.entry(run).or_default().push(Waiter { until, reply });
    }

    /// Those who wait for a run that is over now, or quiet.
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
                drop(waiter.reply.send(Ok(self.shown(id))));
            }
        }
    }

    /// Those who have waited as long as they wanted to.
    pub(super) fn let_waiters_go(&mut self) {
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
            self.replies.extend(gone.into_iter().map(|waiter| (waiter.reply, Ok(id.clone()))));
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
