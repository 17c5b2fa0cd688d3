//! The engine as this process has it: requests that change go to the driver, the rest is read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wonder_artifacts::Store;
use wonder_core::def::Name;
use wonder_core::event::{GateId, TokenId};
use wonder_engine::timeline::Timeline;
use wonder_engine::{
    Answer, Engine, EngineError, ErrorCode, Filter, Follow, GateDetails, Listen, Pending, Progress, Reply,
    Request, Response, RunRow, RunView, Status, Updates, VisitView, WaitView, Why, WhyReason, Workflow,
};

use crate::artifacts;
use crate::driver::{
    Definitions, Queue, estimate, gates_and_events, load, not_loaded, quiet_alone, refuse_quarantined, view,
};
use crate::embedded::{Drive, Embedded};
use crate::project::{self, ProjectBudget};
use crate::readers::Readers;
use crate::shared::{ALL_RUNS, Shared, Trouble, Watcher};
use crate::store::{self, Reader, StoredRun};
use crate::{Clock, Options};

/// Without a driver in this process nobody is told of changes: read again so often.
const POLL: Duration = Duration::from_millis(200);
/// Even with one: another wait may have taken the run out of memory meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Events of one answer, about.
const FOLLOW_STEPS: usize = 2_000;

#[derive(Clone, Debug)]
pub(crate) struct Host(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    path: PathBuf,
    projects: BTreeMap<String, ProjectBudget>,
    /// None: this process only reads.
    driver: Option<Queue>,
    shared: Shared,
    clock: Clock,
    readers: Readers,
    artifacts: Store,
    definitions: Mutex<Definitions>,
}

impl Engine for Host {
    fn ask(&self, request: Request) -> Pending<'_, Response> {
        Box::pin(self.asked(request.into()))
    }
}

impl Host {
    pub(crate) fn new(options: &Options, driver: Option<Queue>, shared: Shared) -> Host {
        Host(Arc::new(Parts {
            path: store::database(&options.home),
            projects: options.projects.clone(),
            driver,
            shared,
            clock: options.clock.clone(),
            readers: Readers::new(&options.home),
            artifacts: options.artifacts.clone(),
            definitions: Mutex::new(Definitions::new(i64::MAX)),
        }))
    }

    pub(crate) async fn asked(&self, asked: Embedded) -> Reply<Response> {
        match asked {
            Embedded::Ask { request, drive } => self.answer(request, drive).await,
            Embedded::Hello => Err(EngineError::internal("the socket answers this")),
            Embedded::Adopt { run } => {
                let run = self.resolve(run).await?;
                self.found(Embedded::Adopt { run: run.clone() }, run).await
            }
        }
    }

    async fn answer(&self, request: Request, drive: Drive) -> Reply<Response> {
        let driven = |request: Request| Embedded::Ask { request, drive };
        match request {
            Request::List(filter) => self.list(filter).await,
            Request::Gates { run } => self.gates(run).await,
            Request::Follow(follow) => self.follow(follow).await,
            Request::Listen(listen) => self.heard(listen).await,
            Request::FindAt { run, seq } => {
                let run = self.resolve(run).await?;
                let id = run.clone();
                let view = self.read(move |parts, reader| parts.view_at(reader, &id, seq)).await;
                self.set_aside(run, view).await
            }
            Request::Visit { run, token } => self.read(move |_, reader| visit(reader, &run, token)).await,
            Request::Gate { gate } => self.read(move |_, reader| gate_details(reader, &gate)).await,
            Request::Why { run } => {
                let run = self.resolve(run).await?;
                let id = run.clone();
                let why = self.read(move |parts, reader| parts.why(reader, &id)).await;
                self.set_aside(run, why).await
            }
            Request::Definition { run } => {
                self.read(move |_, reader| {
                    let stored = reader.find(&run)?;
                    let (bundle, _) = crate::driver::stored_bundle(stored.definition, reader)
                        .map_err(|error| not_loaded(&stored.row.run, error))?;
                    Ok(Response::Definition(Workflow { bundle: Arc::new(bundle), graph: None }))
                })
                .await
            }
            Request::SameDefinition { run, workflows } => {
                self.read(move |_, reader| {
                    let stored = reader.find(&run)?;
                    crate::driver::are_those_of(&stored, &workflows, reader).map(Response::Same)
                })
                .await
            }
            Request::Learnt { workflow } => self.learnt(workflow).await,
            Request::Artifacts { run } => {
                self.read(move |_, reader| {
                    let run = reader.find(&run)?.row.run;
                    artifacts::list(reader, &run).map(Response::Artifacts)
                })
                .await
            }
            Request::ArtifactPiece { run, artifact, offset } => {
                self.read(move |parts, reader| {
                    let run = reader.find(&run)?.row.run;
                    let piece = artifacts::piece(reader, &parts.artifacts, (&run, &artifact), offset)?;
                    Ok(Response::ArtifactPiece(Box::new(piece)))
                })
                .await
            }
            Request::Wait { run, wait_ms } => self.wait(run, wait_ms).await,
            Request::Find { run } => {
                if let Some(response) = self.told(driven(Request::Find { run: run.clone() })).await? {
                    return Ok(response);
                }
                let run = self.resolve(run).await?;
                self.found(driven(Request::Find { run: run.clone() }), run).await
            }
            Request::Start(mut start) => {
                let id = start.id.get_or_insert_with(|| ulid::Ulid::generate().to_string()).clone();
                self.found(driven(Request::Start(start)), id).await
            }
            Request::Fork(mut fork) => {
                fork.run = self.resolve(fork.run).await?;
                let id = fork.id.get_or_insert_with(|| ulid::Ulid::generate().to_string()).clone();
                self.found(driven(Request::Fork(fork)), id).await
            }
            Request::Act { request_id, run, act } => {
                let run = self.resolve(run).await?;
                self.found(driven(Request::Act { request_id, run: run.clone(), act }), run).await
            }
            Request::Signal(mut signal) => {
                signal.run = self.resolve(signal.run).await?;
                let run = signal.run.clone();
                self.found(driven(Request::Signal(signal)), run).await
            }
            Request::Tell(mut tell) => {
                // `RUN/node`: only the run may be shortened.
                let (run, node) = tell.run.split_once('/').map_or((&*tell.run, None), |(r, n)| (r, Some(n)));
                let (run, node) = (self.resolve(run.to_owned()).await?, node.map(|node| format!("/{node}")));
                tell.run = format!("{run}{}", node.unwrap_or_default());
                self.found(driven(Request::Tell(tell)), run).await
            }
            Request::Answer(answer) if is_whole(&answer.gate) => {
                let run = answer.gate.rsplit_once(':').map(|(run, _)| run.to_owned()).unwrap_or_default();
                self.found(driven(Request::Answer(answer)), run).await
            }
            Request::Answer(mut answer) => {
                let gate = match self.gate(std::mem::take(&mut answer.gate)).await {
                    Ok(gate) => gate,
                    // It may be this very answer that closed it.
                    Err(error) => return self.done_before(answer.request_id, drive).await?.ok_or(error),
                };
                let run = gate.rsplit_once(':').map(|(run, _)| run.to_owned()).unwrap_or_default();
                self.found(driven(Request::Answer(Answer { gate, ..answer })), run).await
            }
        }
    }

    /// The answer to something that was asked before, if it was done.
    async fn done_before(&self, request_id: Option<String>, drive: Drive) -> Reply<Option<Response>> {
        let Some(id) = request_id else { return Ok(None) };
        let Some((_, run)) = self.read(move |_, reader| reader.request(&id)).await? else { return Ok(None) };
        let run = run.to_string();
        match drive {
            Drive::On => self.found(Embedded::Adopt { run: run.clone() }, run).await.map(Some),
            Drive::Off => self.view(run).await.map(Some),
        }
    }

    /// What the driver says of a run; if that is out of memory, what the database says.
    async fn found(&self, asked: Embedded, run: String) -> Reply<Response> {
        match self.told(asked).await? {
            Some(response) => Ok(response),
            None => self.view(run).await,
        }
    }

    async fn view(&self, run: String) -> Reply<Response> {
        let id = run.clone();
        let view = self.read(move |parts, reader| parts.view(reader, &id)).await;
        self.set_aside(run, view).await
    }

    /// A run that turned out to be damaged while it was read is set aside, so that lists say so too.
    async fn set_aside<T>(&self, run: String, read: Reply<T>) -> Reply<T> {
        let damaged = matches!(&read, Err(error) if error.code == ErrorCode::Quarantined);
        if damaged && self.0.driver.is_some() {
            // What is told is what was read: the run is damaged.
            drop(self.told(Request::Why { run }.into()).await);
        }
        read
    }

    async fn told(&self, asked: Embedded) -> Reply<Option<Response>> {
        let trouble = self.0.shared.trouble();
        if let Some(Trouble { error, lasts: true }) = trouble {
            return Err(error);
        }
        let finds = matches!(asked, Embedded::Ask { request: Request::Find { .. }, .. });
        if finds && trouble.is_some() {
            // The driver waits for the disk; what is stored can be read.
            return Ok(None);
        }
        let Some(driver) = &self.0.driver else {
            let reads = finds || matches!(asked, Embedded::Ask { request: Request::Wait { .. }, .. });
            return if reads { Ok(None) } else { Err(EngineError::internal("this process only reads")) };
        };
        driver.ask(asked).await
    }

    /// Runs a query on a connection of its own, off the async threads.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Parts, &Reader<'_>) -> Reply<T> + Send + 'static,
    ) -> Reply<T> {
        let parts = self.0.clone();
        let turn = self.0.readers.turn().await?;
        let read = move || {
            let Some(connection) = parts.readers.connection()? else {
                return Err(EngineError::no_run_yet());
            };
            let answer = query(&parts, &Reader::new(&connection, &parts.path));
            parts.readers.give_back(connection);
            drop(turn);
            answer
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|error| EngineError::internal(format!("a query broke: {error}")))?
    }

    async fn resolve(&self, run: String) -> Reply<String> {
        self.read(move |_, reader| Ok(reader.find(&run)?.row.run)).await
    }

    /// `RUN:NUMBER` with a shortened run, or a run that has one open gate.
    async fn gate(&self, text: String) -> Reply<String> {
        self.read(move |_, reader| {
            if let Some((run, number)) = text.rsplit_once(':') {
                return Ok(format!("{}:{number}", reader.find(run)?.row.run));
            }
            let stored = reader.find(&text)?;
            refuse_quarantined(&stored)?;
            let run = stored.row.run;
            let open = reader.gates(Some(&run))?;
            match open.as_slice() {
                [gate] => Ok(gate.id.clone()),
                [] => Err(EngineError::no_open_gate(&run)),
                several => {
                    let ids = several.iter().map(|gate| gate.id.clone()).collect();
                    Err(EngineError::several_gates(&run, ids))
                }
            }
        })
        .await
    }

    async fn list(&self, filter: Filter) -> Reply<Response> {
        if !self.has_database()? {
            return Ok(Response::Runs(Vec::new()));
        }
        self.read(move |parts, reader| {
            let driven = parts.shared.driven();
            let runs = reader.list(&filter, &driven)?;
            let shown = runs.into_iter().map(|stored| {
                let mut row = stored.row;
                row.driven = row.ended_at.is_none() && driven.contains(row.root.as_str());
                row
            });
            Ok(Response::Runs(shown.collect()))
        })
        .await
    }

    async fn gates(&self, run: Option<String>) -> Reply<Response> {
        if !self.has_database()? {
            return Ok(Response::Gates(Vec::new()));
        }
        let Some(run) = run else {
            return self.read(|_, reader| Ok(Response::Gates(reader.gates(None)?))).await;
        };
        let run = self.resolve(run).await?;
        let id = run.clone();
        let gates = self
            .read(move |parts, reader| {
                // Gates of a run that cannot be loaded cannot be answered.
                parts.loaded(reader, &reader.find(&id)?)?;
                Ok(Response::Gates(reader.gates(Some(&id))?))
            })
            .await;
        self.set_aside(run, gates).await
    }

    async fn learnt(&self, workflow: String) -> Reply<Response> {
        if !self.has_database()? {
            return Ok(Response::Learnt(Default::default()));
        }
        self.read(move |_, reader| {
            let learnt = reader.learnt(&workflow)?;
            Ok(Response::Learnt(learnt.iter().map(|(node, known)| (node.clone(), estimate(known))).collect()))
        })
        .await
    }

    fn has_database(&self) -> Reply<bool> {
        let connection = self.0.readers.connection()?;
        let there = connection.is_some();
        connection.into_iter().for_each(|connection| self.0.readers.give_back(connection));
        Ok(there)
    }

    async fn wait(&self, run: String, wait_ms: u64) -> Reply<Response> {
        // In memory under its whole id, which is how whoever started it asks.
        if let Some(answer) = self.told(Request::Wait { run: run.clone(), wait_ms }.into()).await? {
            return Ok(answer);
        }
        let run = self.resolve(run).await?;
        let until = Instant::now() + Duration::from_millis(wait_ms);
        let watcher = self.0.shared.watch([Name::from(run.as_str())]);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let request = Request::Wait { run: run.clone(), wait_ms: left.as_millis() as u64 };
            if let Some(answer) = self.told(request.into()).await? {
                return Ok(answer);
            }
            let answer = self.view(run.clone()).await?;
            let over = matches!(&answer, Response::Run(view) if view.quiet);
            if over || Instant::now() >= until {
                return Ok(answer);
            }
            self.listen(&watcher, until).await;
        }
    }

    async fn listen(&self, watcher: &Watcher, until: Instant) {
        let patience = if self.0.driver.is_some() { LOOK_AGAIN } else { POLL };
        let left = until.saturating_duration_since(Instant::now()).min(patience);
        // Whether something happened or the time is over, the reader looks again.
        drop(tokio::time::timeout(left, watcher.changed()).await);
    }

    /// Reads nothing once a run is known: text is passed on as it comes.
    async fn heard(&self, listen: Listen) -> Reply<Response> {
        let text = self.0.shared.text();
        let run = if text.is_known(&listen.run) { listen.run } else { self.resolve(listen.run).await? };
        let wait = Duration::from_millis(listen.wait_ms);
        Ok(Response::Heard(text.listen(&run, listen.after, wait).await))
    }

    async fn follow(&self, mut follow: Follow) -> Reply<Response> {
        for (run, _) in follow.events_after.iter_mut().chain(&mut follow.logs_after) {
            // A whole id of a child is taken as it is: it may be about to start.
            if !run.contains('.') {
                *run = self.resolve(std::mem::take(run)).await?;
            }
        }
        let names = follow.events_after.iter().chain(&follow.logs_after);
        let names = names.map(|(run, _)| Name::from(run.as_str()));
        let all = follow.all_after.map(|_| ALL_RUNS.into());
        let watcher = self.0.shared.watch(names.chain(all));
        let until = Instant::now() + Duration::from_millis(follow.wait_ms);
        loop {
            let asked = follow.clone();
            let updates = self.read(move |_, reader| updates(reader, &asked)).await?;
            let news = !updates.events.is_empty() || !updates.logs.is_empty() || !updates.steps.is_empty();
            let over = !updates.runs.is_empty() && updates.runs.iter().all(|run| run.status.is_end());
            if news || over || Instant::now() >= until {
                return Ok(Response::Updates(updates));
            }
            if let Some(trouble) = self.0.shared.trouble() {
                return Err(trouble.error);
            }
            self.listen(&watcher, until).await;
        }
    }
}

/// A gate's whole id, which need not be looked up.
fn is_whole(gate: &str) -> bool {
    const ULID: usize = 26;
    gate.rsplit_once(':').is_some_and(|(run, _)| run.len() >= ULID)
}

/// All of it as of one moment: no line comes before the event that its task began with.
fn updates(reader: &Reader<'_>, follow: &Follow) -> Reply<Updates> {
    let _moment = reader.moment()?;
    let mut updates = Updates::default();
    let limit = follow.limit.map_or(FOLLOW_STEPS, |limit| limit as usize);
    for (run, after) in &follow.events_after {
        // A child that was refused at its start never was.
        let Some(stored) = reader.run(run)? else { continue };
        let events = reader.events(stored.no, *after, limit).map_err(|error| not_loaded(run, error))?;
        let seq = events.last().map_or(*after, |event| event.seq);
        updates.events.extend(events.into_iter().map(|event| (run.clone(), event)));
        updates.runs.push(Progress { run: run.clone(), seq, status: stored.row.status });
    }
    if let Some((run, after)) = &follow.logs_after {
        updates.logs = reader.lines(run, *after, follow.limit)?;
        if follow.events_after.iter().all(|(other, _)| other != run) {
            let status = reader.find(run)?.row.status;
            updates.runs.push(Progress { run: run.clone(), seq: 0, status });
        }
    }
    if let Some(after) = follow.all_after {
        updates.steps = reader.steps(after, limit)?;
        updates.cursor = Some(updates.steps.last().map_or(after, |step| step.cursor));
    }
    Ok(updates)
}

/// A run's timeline, from all its events.
fn folded(reader: &Reader<'_>, run: &str) -> Reply<(RunRow, Timeline)> {
    let stored = reader.find(run)?;
    let events = reader.events(stored.no, 0, usize::MAX);
    let events = events.map_err(|error| not_loaded(&stored.row.run, error))?;
    Ok((stored.row, Timeline::of(&events)))
}

fn visit(reader: &Reader<'_>, run: &str, token: TokenId) -> Reply<Response> {
    let (row, timeline) = folded(reader, run)?;
    let visit = VisitView::of(&row.run, &timeline, token);
    let visit = visit.ok_or_else(|| EngineError::no_such_visit(&row.run, token.0))?;
    Ok(Response::Visit(Box::new(visit)))
}

fn gate_details(reader: &Reader<'_>, gate: &str) -> Reply<Response> {
    let unknown = || EngineError::no_such_gate(gate);
    let (run, number) = gate.rsplit_once(':').ok_or_else(unknown)?;
    let (row, timeline) = folded(reader, run)?;
    let number = number.parse().map(GateId).map_err(|_| unknown())?;
    let details = GateDetails::of(&row.run, &row.root, &timeline, number).ok_or_else(unknown)?;
    Ok(Response::Gate(Box::new(details)))
}

impl Parts {
    fn loaded(&self, reader: &Reader<'_>, stored: &StoredRun) -> Reply<wonder_core::Run> {
        refuse_quarantined(stored)?;
        let graph = held(&self.definitions).graph(stored.definition, reader);
        let loaded = graph.and_then(|graph| load(reader, graph, stored));
        Ok(loaded.map_err(|error| not_loaded(&stored.row.run, error))?.0)
    }

    fn view(&self, reader: &Reader<'_>, id: &str) -> Reply<Response> {
        let stored = reader.find(id)?;
        let run = self.loaded(reader, &stored)?;
        let tree = reader.tree(&stored.row.run)?;
        let direct = tree.iter().filter(|child| child.row.parent.as_deref() == Some(&stored.row.run));
        let children = direct.map(|child| child.row.run.clone()).collect();
        let quiet = match stored.row.status {
            Status::Paused => quiet_alone(&run),
            status => status == Status::Waiting || status.is_end(),
        };
        let mut waiting = Vec::new();
        for live in tree.iter().filter(|run| quiet && !run.row.status.is_end()) {
            let run = self.loaded(reader, live)?;
            waiting.extend(gates_and_events(&live.row.run, &run));
            waiting.extend(self.budget_wait(reader, &live.row, &run)?);
        }
        let mut row = stored.row;
        row.driven = row.ended_at.is_none() && self.shared.is_driven(&row.root);
        (row.usd_micros, row.tokens) = (run.spend().usd_micros, run.spend().tokens());
        let view = RunView { quiet, ..view(row, &run, children, waiting, self.clock.now()) };
        Ok(Response::Run(Box::new(view)))
    }

    /// A run as it was after one of its events, by replaying up to it.
    fn view_at(&self, reader: &Reader<'_>, id: &str, seq: u64) -> Reply<Response> {
        let stored = reader.find(id)?;
        let named = |error: EngineError| not_loaded(&stored.row.run, error);
        let mut events = reader.events(stored.no, 0, usize::MAX).map_err(named)?;
        let last = events.last().map_or(0, |event| event.seq);
        if seq == 0 || seq > last {
            return Err(EngineError::no_such_event(&stored.row.run, seq, last));
        }
        events.retain(|event| event.seq <= seq);
        let graph = held(&self.definitions).graph(stored.definition, reader).map_err(named)?;
        let run = wonder_core::Run::replay(graph, &events)
            .map_err(|error| EngineError::set_aside(&stored.row.run, &error.to_string()))?;
        let now = run.state().now;
        let mut children = Vec::new();
        for child in reader.tree(&stored.row.run)? {
            let direct = child.row.parent.as_deref() == Some(&stored.row.run);
            children.extend((direct && child.row.started_at <= now).then_some(child.row.run));
        }
        let ended = run.status().is_end();
        let row = RunRow {
            status: Status::of(run.status(), run.is_waiting()),
            ended_at: ended.then_some(now),
            usd_micros: run.spend().usd_micros,
            tokens: run.spend().tokens(),
            driven: false,
            closed_ms: Timeline::of(&events).closed_ms(),
            ..stored.row
        };
        let waiting = if run.is_waiting() { gates_and_events(&row.run, &run) } else { Vec::new() };
        let quiet = quiet_alone(&run);
        let view = RunView { quiet, ..view(row, &run, children, waiting, now) };
        Ok(Response::Run(Box::new(view)))
    }

    /// A run that only waits and has tasks out: its project's budget holds them.
    fn budget_wait(
        &self,
        reader: &Reader<'_>,
        row: &RunRow,
        run: &wonder_core::Run,
    ) -> Reply<Option<WaitView>> {
        let works = run.state().out.values().any(|out| out.child.is_none());
        if row.status != Status::Waiting || !works {
            return Ok(None);
        }
        let budget = self.projects.get(&row.project);
        let first_day = budget.map_or(i64::MIN, |budget| budget.per.first_day(self.clock.now()));
        let spent = reader.spent(&row.project, first_day)?;
        Ok(Some(project::held(&row.run, &row.project, budget, spent)))
    }

    fn why(&self, reader: &Reader<'_>, id: &str) -> Reply<Response> {
        let stored = reader.find(id)?;
        refuse_quarantined(&stored)?;
        if stored.row.status.is_end() {
            let run = self.loaded(reader, &stored)?;
            let events = reader.events(stored.no, 0, usize::MAX)?;
            let because = |reason| Why { run: stored.row.run.clone(), reason };
            let reasons = WhyReason::of_end(&run, &Timeline::of(&events)).into_iter().map(because);
            return Ok(Response::Why(reasons.collect()));
        }
        let mut reasons = Vec::new();
        for live in reader.tree(&stored.row.run)?.iter().filter(|run| !run.row.status.is_end()) {
            let because = |reason: WhyReason| Why { run: live.row.run.clone(), reason };
            if let Some(holders) = self.shared.held_up_by(&live.row.run) {
                let holders = holders.iter().map(ToString::to_string).collect();
                reasons.push(because(WhyReason::Concurrency { holders }));
            }
            let run = self.loaded(reader, live)?;
            if let Some(WaitView::Project { project, message, .. }) =
                self.budget_wait(reader, &live.row, &run)?
            {
                reasons.push(because(WhyReason::Project { project, message }));
            }
            reasons.extend(
                self.shared
                    .rate_waits(&live.row.run)
                    .into_iter()
                    .map(|(token, profile)| because(WhyReason::Rate { token, profile: profile.to_string() })),
            );
            reasons.extend(run.why().into_iter().map(|waiting| because(WhyReason::Run(waiting))));
        }
        Ok(Response::Why(reasons))
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Compiled graphs are whole whatever a thread was doing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
