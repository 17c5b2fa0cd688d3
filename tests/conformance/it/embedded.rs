//! The embedded host as a host of scenarios: a real database, a clock that the world moves, and tasks that
//! are performed by nobody until the world reports them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use wonder_core::RunStatus;
use wonder_core::command::Command;
use wonder_core::def::Name;
use wonder_core::event::{Event, EventKind, GateId};
use wonder_core::input::{Input, StartRun};
use wonder_engine::{
    Act, Answer, Filter, Follow, GateView, Reply, Request, RunOptions, RunView, Signal, Start, WhyReason,
    Workflow,
};
use wonder_host::{
    Clock, Connection, Durability, Leaving, Options, OrderedTask, Purpose, TaskPerformer, VirtualClock, open,
};
use wonder_sim::host::{ForkRequest, Handled, HostInput, LostTask, ScenarioHost};
use wonder_sim::world::{Definition, Hosted, Runs, START, Setting, TaskKey};

/// More runs than a scenario has.
const RUNS_MAX: u32 = 10_000;

/// What the host has asked for, in order: the beginning and the end of tasks.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<TaskNews>>);

#[derive(Debug)]
enum TaskNews {
    Ordered(Box<Task>),
    Cancelled(TaskKey),
}

/// A task that is out, and what notices that it is called back.
struct Task {
    ordered: OrderedTask,
    #[expect(dead_code, reason = "as long as it lives it notices")]
    notices: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.ordered.fmt(f)
    }
}

impl Asked {
    fn push(&self, news: TaskNews) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(news);
    }

    fn take(&self) -> Vec<TaskNews> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Put into the place of the host's worker.
#[derive(Debug)]
struct Performer(Arc<Asked>);

impl TaskPerformer for Performer {
    fn begin(&self, ordered: OrderedTask) {
        // The driver wakes who waits for a cancellation before it goes on: so that is noticed in order.
        let waker = Waker::from(Arc::new(CallBack { task: key_of(&ordered), asked: self.0.clone() }));
        let mut notices: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(ordered.cancelled.clone().cancelled_owned());
        let cancelled = notices.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let key = key_of(&ordered);
        self.0.push(TaskNews::Ordered(Box::new(Task { ordered, notices })));
        if cancelled {
            self.0.push(TaskNews::Cancelled(key));
        }
    }
}

struct CallBack {
    task: TaskKey,
    asked: Arc<Asked>,
}

impl Wake for CallBack {
    fn wake(self: Arc<Self>) {
        self.asked.push(TaskNews::Cancelled(self.task.clone()));
    }
}

fn key_of(ordered: &OrderedTask) -> TaskKey {
    (ordered.order.run.clone(), ordered.order.token, ordered.order.attempt)
}

#[derive(Debug)]
pub(crate) struct Embedded {
    runtime: Arc<Runtime>,
    /// None once it is closed.
    connection: Option<Connection>,
    clock: VirtualClock,
    asked: Arc<Asked>,
    tasks: BTreeMap<TaskKey, Box<Task>>,
    violations: Vec<String>,
    /// How far what was committed has been read.
    cursor: u64,
    #[expect(dead_code, reason = "it holds the directory")]
    home: TempDir,
}

impl Embedded {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Embedded {
        let home = TempDir::new().expect("a directory for a database");
        let clock = VirtualClock::new(START);
        let asked = Arc::new(Asked::default());
        let options = Options {
            durability: Durability::Normal,
            clock: Clock::Virtual(clock.clone()),
            performer: Some(Arc::new(Performer(asked.clone()))),
            ..Options::new(home.path())
        };
        let connection = runtime.block_on(open(options, Purpose::Act)).expect("a database that is ours");
        let connection = Some(connection);
        let (tasks, violations) = (BTreeMap::new(), Vec::new());
        Embedded { runtime, connection, clock, asked, tasks, violations, cursor: 0, home }
    }

    pub(crate) fn view(&self, run: &Name) -> Reply<RunView> {
        Ok(*self.wait(self.connection().engine().find(run.to_string()))?)
    }

    /// Open gates of a run and of those it called.
    pub(crate) fn gates(&self, run: &Name) -> Reply<Vec<GateView>> {
        self.wait(self.connection().engine().gates(Some(run.to_string())))
    }

    /// What the run itself waits for, not those it called.
    pub(crate) fn why(&self, run: &Name) -> Reply<Vec<String>> {
        let reasons = self.wait(self.connection().engine().why(run.to_string()))?.into_iter();
        let own = reasons.filter(|why| *why.run == **run).map(|why| match why.reason {
            WhyReason::Run(waiting) => waiting.to_string(),
            other => format!("{other:?}"),
        });
        Ok(own.collect())
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is open until it is dropped")
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Tells the host, in the words it has for it. What only fits between a host and its runs is not given.
    fn tell(&mut self, given: HostInput<'_>) -> Result<(), String> {
        let run = given.run.to_string();
        let act = |act: Act| Request::Act { request_id: None, run: run.clone(), act };
        let request = match given.input {
            Input::StartRun(start) => Request::Start(Box::new(start_of(given.setting, *start))),
            Input::TaskFinished { token, attempt, report } => {
                let Some(task) = self.tasks.remove(&(given.run.clone(), token, attempt)) else {
                    return Err(format!("the host has not ordered attempt {attempt} of token {token}"));
                };
                task.ordered.report(report);
                return Ok(());
            }
            // The clock has been moved.
            Input::Wake => return Ok(()),
            Input::GateAnswered { gate, answer, by } => {
                let gate = gate_id(given.run, gate);
                Request::Answer(Answer { request_id: None, gate, answer, by: by.to_string() })
            }
            Input::EventArrived { name, key, payload, keep } => {
                let event = name.to_string();
                Request::Signal(Signal { request_id: None, run, event, key, payload, keep })
            }
            Input::Cancel { reason, grace_ms } => act(Act::Cancel { reason, grace_ms }),
            Input::Kill { reason } => act(Act::Kill { reason }),
            Input::Pause { by } => act(Act::Pause { by: by.to_string() }),
            Input::Resume { by } => act(Act::Resume { by: by.to_string() }),
            Input::Retry { by, .. } => act(Act::Retry { by: by.to_string(), definition: Vec::new() }),
            Input::Release => act(Act::Release),
            Input::ChildFinished { .. } => return Err("the host tells ends by itself".to_owned()),
        };
        let asked = self.wait(self.connection().engine().ask(request));
        asked.map(drop).map_err(|error| error.message)
    }

    /// What came of it, when the host has nothing more to do.
    fn settled(&mut self, setting: &Setting, runs: &mut Runs) -> Result<Handled, String> {
        let news = self.wait(self.connection().settled()).and_then(|_| self.news(setting, runs));
        news.map_err(|error| {
            self.violations.push(error.to_string());
            error.message
        })
    }

    /// What every run has recorded since it was last looked at, and what tasks are to begin or to stop.
    fn news(&mut self, setting: &Setting, runs: &mut Runs) -> Reply<Handled> {
        let mut handled = Handled::default();
        self.find_children(setting, runs)?;
        for (run, events) in self.committed()? {
            // A run that was forked goes on beside its fork, where nobody looks any more.
            let Some(hosted) = runs.get_mut(&run) else { continue };
            if let Err(error) = hosted.run.replay_more(&events) {
                self.violations.push(format!("what {run} recorded cannot be replayed: {error}"));
            }
            handled.steps.push((run, events));
        }
        for news in self.asked.take() {
            handled.commands.push(match news {
                TaskNews::Ordered(task) => {
                    let order = task.ordered.order.clone();
                    self.tasks.insert(key_of(&task.ordered), task);
                    (order.run.clone(), Command::RunTask(order))
                }
                TaskNews::Cancelled((run, token, attempt)) => (run, Command::CancelTask { token, attempt }),
            });
        }
        handled.commands.retain(|(run, _)| runs.contains_key(run));
        in_order_of_dispatch(&mut handled);
        Ok(handled)
    }

    /// Everything that was committed since this was last asked, in order.
    fn committed(&mut self) -> Reply<Vec<(Name, Vec<Event>)>> {
        let mut steps = Vec::new();
        loop {
            let follow = Follow { all_after: Some(self.cursor), ..Follow::default() };
            let updates = self.wait(self.connection().engine().follow(follow))?;
            self.cursor = updates.cursor.unwrap_or(self.cursor);
            if updates.steps.is_empty() {
                return Ok(steps);
            }
            for step in updates.steps {
                match step.decoded() {
                    Ok(events) => steps.push((step.run.into(), events)),
                    Err(error) => self.violations.push(format!("{} cannot be read: {error}", step.events)),
                }
            }
        }
    }

    /// Runs that the root's tree has got meanwhile. Not from events: a fork starts again what it finds out.
    fn find_children(&self, setting: &Setting, runs: &mut Runs) -> Reply<()> {
        let filter = Filter { children: true, limit: Some(RUNS_MAX), ..Filter::default() };
        for row in self.wait(self.connection().engine().list(filter))? {
            if *row.root == *setting.start.id
                && let Some(definition) = setting.library.get(&*row.workflow)
            {
                runs.entry(row.run.into()).or_insert_with(|| Hosted::new(definition.graph.clone(), None));
            }
        }
        Ok(())
    }
}

impl ScenarioHost for Embedded {
    fn handle(&mut self, runs: &mut Runs, given: HostInput<'_>) -> Result<Handled, String> {
        let (setting, now) = (given.setting, given.now);
        if let (Input::Resume { .. }, Some(hosted)) = (&given.input, runs.get(given.run))
            && matches!(hosted.run.status(), RunStatus::Running | RunStatus::Cancelling)
        {
            // To resume a run that is not paused asks the owner of a database to carry it on, and says nothing
            // to the run. What the run would say is not the host's to tell.
            let refused = hosted.run.clone().handle(given.input, now);
            return refused.map(|_| Handled::default()).map_err(|rejection| rejection.to_string());
        }
        match given.input {
            Input::Wake => self.clock.advance_to(now),
            _ => self.clock.advance_before_deadlines(now),
        }
        self.tell(given)?;
        self.settled(setting, runs)
    }

    fn fork(
        &mut self,
        source: &Hosted,
        runs: &mut Runs,
        request: ForkRequest<'_>,
    ) -> Result<Handled, String> {
        let ForkRequest { setting, fork, now } = request;
        self.clock.advance_before_deadlines(now);
        let from = source.run.state().start.as_ref().map(|start| start.id.to_string());
        let asked = Request::Fork(Box::new(wonder_engine::Fork {
            id: Some(fork.run.to_string()),
            run: from.unwrap_or_default(),
            node: fork.node.to_string(),
            branch: fork.branch,
            visit: fork.visit,
            set: fork.set.clone(),
            input: fork.input.clone(),
            definition: Vec::new(),
        }));
        self.wait(self.connection().engine().ask(asked)).map_err(|error| error.message)?;
        runs.insert(fork.run.clone(), Hosted::new(source.graph.clone(), None));
        self.settled(setting, runs)
    }

    fn lose(&mut self, runs: &mut Runs, lost: LostTask<'_>) -> Result<Handled, String> {
        if let Some(task) = self.tasks.remove(lost.task) {
            task.ordered.lose();
        }
        self.settled(lost.setting, runs)
    }

    fn violations(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // Before the tasks that are out: dropped, each would report that it was.
        if let Some(connection) = self.connection.take() {
            self.runtime.block_on(connection.close(Leaving::Now));
        }
    }
}

/// A task with effect `once` begins when that is recorded, after others that were dispatched later. Those that
/// take equally long report in the order in which they were dispatched.
fn in_order_of_dispatch(handled: &mut Handled) {
    let mut dispatched = BTreeMap::new();
    for (run, events) in &handled.steps {
        for event in events {
            if let EventKind::TaskDispatched { token, attempt, .. } = event.kind {
                dispatched.insert((run.clone(), token, attempt), dispatched.len());
            }
        }
    }
    let place = |command: &Command| match command {
        Command::RunTask(order) => {
            Some(dispatched.get(&(order.run.clone(), order.token, order.attempt)).copied())
        }
        _ => None,
    };
    let slots: Vec<usize> =
        (0..handled.commands.len()).filter(|at| place(&handled.commands[*at].1).is_some()).collect();
    let mut tasks: Vec<(Name, Command)> = slots.iter().map(|at| handled.commands[*at].clone()).collect();
    tasks.sort_by_key(|(_, command)| place(command));
    slots.into_iter().zip(tasks).for_each(|(at, task)| handled.commands[at] = task);
}

pub(crate) fn gate_id(run: &Name, gate: GateId) -> String {
    format!("{run}:{gate}")
}

fn start_of(setting: &Setting, start: StartRun) -> Start {
    let workflow =
        |known: &Definition| Workflow { bundle: known.bundle.clone(), graph: Some(known.graph.clone()) };
    let others = setting.library.iter().filter(|(name, _)| **name != setting.workflow);
    Start {
        id: Some(start.id.to_string()),
        workflow: workflow(&setting.library[&setting.workflow]),
        callable: others.map(|(_, known)| workflow(known)).collect(),
        input: start.input,
        workdir: "/".to_owned(),
        file: None,
        max_parallel: start.max_parallel,
        options: RunOptions {
            seed: Some(start.seed),
            limits: Some(start.limits),
            timeout_ms: start.timeout_ms,
            queued: start.queued,
        },
        labels: BTreeMap::new(),
        wait_ms: 0,
    }
}
