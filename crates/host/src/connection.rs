//! The way in: this process owns the database, reaches the process that does, or only reads.
//!
//! When the owner that it reached leaves, a connection takes over or finds the next owner, and asks for its
//! own runs to be carried on. Whoever holds it sees an engine that goes on.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wonder_actions::Worker;
use wonder_artifacts::Collected;
use wonder_engine::{Cause, Engine, EngineError, ErrorCode, Pending, Reply, Request, Response, RunView};

use crate::artifacts;
use crate::driver::{Driver, DriverSetup, HostEvent, Inbox, ProjectBudgets, Queue, Settled, closing, queue};
use crate::embedded::{Drive, Embedded};
use crate::executor::{Executor, ExecutorSetup};
use crate::host::Host;
use crate::lock::{self, Claim, Commands, Owner, Ownership};
use crate::private;
use crate::shared::Shared;
use crate::socket::{self, Remote, SocketServer};
use crate::store::{Counters, Writer};
use crate::{Leaving, Options, Purpose};

/// How long an owner may take to answer, and how often it is tried.
const OWNER_ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const TRY_EVERY: Duration = Duration::from_millis(10);

/// Opens the database directory. If another process owns it, requests go there.
pub async fn open(options: Options, purpose: Purpose) -> Reply<Connection> {
    let access = RwLock::new(enter(&options, purpose).await?);
    let (mine, reconnecting) = (Mutex::default(), tokio::sync::Mutex::default());
    Ok(Connection(Arc::new(Inner { options, purpose, access, mine, reconnecting })))
}

#[derive(Debug)]
pub struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    purpose: Purpose,
    /// Locked for as long as it takes to look, never while something is waited for: whoever waits may not be polled
    /// before somebody else has got on.
    access: RwLock<Access>,
    /// Runs that this process asked for, and wants carried on whoever owns the database.
    mine: Mutex<BTreeSet<String>>,
    /// Who finds another way does it alone.
    reconnecting: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Access {
    Owning(Box<Owned>),
    Asking(Arc<Remote>, Owner),
    Reading(Host),
    Gone,
}

/// Who answers now.
enum Way {
    Here(Host),
    There(Arc<Remote>),
    Nowhere,
}

impl Way {
    async fn asked(&self, asked: Embedded, purpose: Purpose) -> Reply<Response> {
        match self {
            Way::Here(host) => host.asked(asked).await,
            Way::There(remote) => remote.asked(asked, purpose).await,
            Way::Nowhere => Err(left()),
        }
    }
}

/// Everything an owner has going.
#[derive(Debug)]
struct Owned {
    host: Host,
    driver: Queue,
    thread: JoinHandle<()>,
    server: SocketServer,
    shared: Shared,
    counters: Arc<Counters>,
    ownership: Ownership,
}

/// How much this process has written, and how often it read a run to carry it on, for tests that count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Written {
    pub commits: u64,
    pub rows: u64,
    pub bytes: u64,
    pub runs_loaded: u64,
}

impl Engine for Connection {
    fn ask(&self, request: Request) -> Pending<'_, Response> {
        Box::pin(self.0.asked(request.into()))
    }
}

/// A connection whose requests are recorded, and carried on or not.
#[derive(Debug)]
pub struct Driving<'c> {
    connection: &'c Connection,
    drive: Drive,
}

impl Driving<'_> {
    pub fn engine(&self) -> &dyn Engine {
        self
    }
}

impl Engine for Driving<'_> {
    fn ask(&self, request: Request) -> Pending<'_, Response> {
        Box::pin(self.connection.0.asked(Embedded::Ask { request, drive: self.drive }))
    }
}

impl Connection {
    pub fn engine(&self) -> &dyn Engine {
        self
    }

    /// The same engine, told whether to carry on what it is asked to set going.
    pub fn with(&self, drive: Drive) -> Driving<'_> {
        Driving { connection: self, drive }
    }

    /// Carries on a run that nobody drives, if it is live; changes nothing else.
    pub async fn adopt(&self, run: &str) -> Reply<Box<RunView>> {
        match self.0.asked(Embedded::Adopt { run: run.to_owned() }).await? {
            Response::Run(view) => Ok(view),
            other => Err(EngineError::internal(format!("asked to adopt a run and was given {other:?}"))),
        }
    }

    /// The process that owns the database, if it is another one.
    pub fn owner(&self) -> Option<u32> {
        match &*self.0.access() {
            Access::Asking(_, owner) => owner.pid,
            _ => None,
        }
    }

    /// Whether runs are carried on here that others asked for.
    pub fn serves_others(&self) -> bool {
        let mine = self.0.mine().clone();
        match &*self.0.access() {
            Access::Owning(owned) => owned.shared.driven().iter().any(|root| !mine.contains(&**root)),
            _ => false,
        }
    }

    pub fn written(&self) -> Written {
        match &*self.0.access() {
            Access::Owning(owned) => Written {
                commits: owned.counters.commits.load(Ordering::Relaxed),
                rows: owned.counters.rows.load(Ordering::Relaxed),
                bytes: owned.counters.bytes.load(Ordering::Relaxed),
                runs_loaded: owned.counters.runs_loaded.load(Ordering::Relaxed),
            },
            _ => Written::default(),
        }
    }

    /// Waits until the driver has nothing more to do: everything it was told before is committed and
    /// performed, and no deadline is due. What it waits for then are reports, deadlines and requests.
    ///
    /// Only the process that owns the database can tell.
    pub async fn settled(&self) -> Reply<Settled> {
        let (reply, settled) = oneshot::channel();
        match &*self.0.access() {
            Access::Owning(owned) => owned.driver.send(HostEvent::Settle(reply)),
            _ => {
                let message =
                    "another process owns the database, and only that one knows when it has settled";
                return Err(EngineError::new(ErrorCode::Unsupported, message));
            }
        };
        settled.await.map_err(|_| closing())
    }

    /// Removes the files of artifacts that no run refers to any more, unless they are younger than the grace: see
    /// [`crate::COLLECT_GRACE`]. Only the process that owns the database can know that.
    pub async fn collect_artifacts(&self, grace: Duration) -> Reply<Collected> {
        if !matches!(&*self.0.access(), Access::Owning(_)) {
            let message = "another process owns the database, and only that one collects artifacts";
            return Err(EngineError::new(ErrorCode::Unsupported, message));
        }
        let (home, store) = (self.0.options.home.clone(), self.0.options.artifacts.clone());
        let collected = tokio::task::spawn_blocking(move || artifacts::collect(&home, &store, grace)).await;
        collected.map_err(|error| EngineError::internal(format!("collecting broke: {error}")))?
    }

    pub async fn close(self, leaving: Leaving) {
        let access = std::mem::replace(&mut *self.0.access_mut(), Access::Gone);
        if let Access::Owning(owned) = access {
            owned.close(leaving).await;
        }
    }
}

impl Inner {
    fn mine(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn access(&self) -> RwLockReadGuard<'_, Access> {
        self.access.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn access_mut(&self) -> RwLockWriteGuard<'_, Access> {
        self.access.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn way(&self) -> Way {
        match &*self.access() {
            Access::Owning(owned) => Way::Here(owned.host.clone()),
            Access::Reading(host) => Way::Here(host.clone()),
            Access::Asking(remote, _) => Way::There(remote.clone()),
            Access::Gone => Way::Nowhere,
        }
    }

    async fn asked(self: &Arc<Inner>, mut asked: Embedded) -> Reply<Response> {
        // Named here, so that asking twice does it once.
        if let Embedded::Ask { request, .. } = &mut asked
            && let Some(id) = request.id_mut()
        {
            id.get_or_insert_with(|| ulid::Ulid::generate().to_string());
        }
        loop {
            let way = self.way();
            match way.asked(asked.clone(), self.purpose).await {
                Err(error) if is_lost(&error) => self.find_another(way).await?,
                Err(error) if self.purpose == Purpose::Look && is_silent(&error) => {
                    // It was there a moment ago, and is stopped now.
                    *self.access_mut() = reading(&self.options);
                }
                Ok(response) => {
                    self.remember(&asked, &response);
                    return Ok(response);
                }
                refused => return refused,
            }
        }
    }

    fn remember(&self, asked: &Embedded, response: &Response) {
        if let Response::Run(view) = response
            && asked.drives()
        {
            self.mine().insert(view.row.root.clone());
        }
    }

    /// The owner is leaving or gone: take over, or find the next. A task of its own, which gets on whether or not
    /// whoever asked is polled.
    async fn find_another(self: &Arc<Inner>, lost: Way) -> Reply<()> {
        let inner = self.clone();
        let found = tokio::spawn(async move { inner.reconnect(lost).await }).await;
        found.map_err(|error| EngineError::internal(format!("finding the next owner broke: {error}")))?
    }

    async fn reconnect(&self, lost: Way) -> Reply<()> {
        let _alone = self.reconnecting.lock().await;
        match (&*self.access(), &lost) {
            (Access::Asking(now, _), Way::There(lost)) if Arc::ptr_eq(now, lost) => {}
            // We leave ourselves.
            (Access::Owning(owned), _) if owned.thread.is_finished() => return Err(left()),
            (Access::Gone, _) => return Err(left()),
            // Somebody else of this process has found another way meanwhile.
            _ => return Ok(()),
        }
        tokio::time::sleep(TRY_EVERY).await;
        *self.access_mut() = enter(&self.options, self.purpose).await?;
        let mine = self.mine().clone();
        for run in mine {
            if !matches!(&*self.access(), Access::Owning(_) | Access::Asking(..)) {
                break;
            }
            match self.way().asked(Embedded::Adopt { run }, self.purpose).await {
                // It is leaving too: the next request tries again.
                Err(error) if is_lost(&error) => break,
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

fn left() -> EngineError {
    EngineError::new(ErrorCode::Closing, "the database was left")
}

fn is_silent(error: &EngineError) -> bool {
    matches!(error.cause.as_deref(), Some(Cause::OwnerSilent { .. }))
}

fn reading(options: &Options) -> Access {
    Access::Reading(Host::new(options, None, Shared::default()))
}

fn is_lost(error: &EngineError) -> bool {
    matches!(error.code, ErrorCode::Disconnected | ErrorCode::Closing)
}

async fn enter(options: &Options, purpose: Purpose) -> Reply<Access> {
    match purpose {
        Purpose::Act => act(options).await,
        Purpose::Look => look(options).await,
    }
}

async fn act(options: &Options) -> Reply<Access> {
    private::directory(&options.home)?;
    let until = Instant::now() + OWNER_ANSWERS_WITHIN;
    let mut last = None;
    while Instant::now() < until {
        match lock::claim(&options.home)? {
            Claim::Mine(ownership) => {
                return own(options, ownership).map(|owned| Access::Owning(Box::new(owned)));
            }
            Claim::Taken(owner) => {
                last = owner.or(last);
                if let Some(owner) = &last
                    && let Some((remote, owner)) = reached(owner).await
                {
                    return Ok(Access::Asking(Arc::new(remote), owner));
                }
            }
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
    let process = last.as_ref().and_then(|owner| owner.pid);
    let who = last.as_ref().map_or_else(|| "another process".to_owned(), Owner::name);
    let message = format!("{who} owns {} but does not answer", options.home.display());
    Err(EngineError::new(ErrorCode::Storage, message)
        .help("Nothing was changed. If it is stopped, let it go on or end it; its runs are safe.")
        .because(Cause::OwnerSilent { process }))
}

/// The owner, if it answers: a process that is stopped holds its lock and its socket, and says nothing.
async fn reached(owner: &Owner) -> Option<(Remote, Owner)> {
    private::refuse_link(&owner.socket).ok()?;
    let mut remote = Remote::new(owner);
    let pid = remote.find_process().await?;
    Some((remote, Owner { pid: Some(pid), ..owner.clone() }))
}

async fn look(options: &Options) -> Reply<Access> {
    if let Some(owner) = lock::owner(&options.home)
        && let Some((remote, owner)) = reached(&owner).await
    {
        return Ok(Access::Asking(Arc::new(remote), owner));
    }
    bring_forward(options)?;
    fire_overdue(options)?;
    Ok(reading(options))
}

/// A database that an older version wrote becomes today's also for those who only look: nothing in it may seem to
/// be gone.
fn bring_forward(options: &Options) -> Reply<()> {
    if !crate::store::is_older(&options.home)? {
        return Ok(());
    }
    // Whoever owns it by now has done it.
    let claim = lock::claim(&options.home).map_err(|error| {
        error.help("An older version wrote it, and it is brought forward first: let somebody look who may write there.")
    })?;
    let Claim::Mine(ownership) = claim else { return Ok(()) };
    Writer::open(&options.home, options.durability)?.close();
    drop(ownership);
    Ok(())
}

/// Deadlines that passed while nobody owned the database fire now. What they lead to is left to whoever
/// carries the run on.
fn fire_overdue(options: &Options) -> Reply<()> {
    let Some(connection) = crate::store::open_reader(&options.home)? else { return Ok(()) };
    let path = crate::store::database(&options.home);
    let due = crate::store::Reader::new(&connection, &path).timers(Some(options.clock.now()))?;
    drop(connection);
    if due.is_empty() {
        return Ok(());
    }
    // Somebody else may own it by now, or the directory cannot be written: then they do not fire here.
    let Ok(Claim::Mine(ownership)) = lock::claim(&options.home) else { return Ok(()) };
    let Ok(store) = Writer::open(&options.home, options.durability) else { return Ok(()) };
    let mut driver = driver(options, store, Shared::default(), (queue(), None))?;
    driver.fire_overdue();
    driver.store.close();
    drop(ownership);
    Ok(())
}

fn own(options: &Options, ownership: Ownership) -> Reply<Owned> {
    let listener = socket::bind(&ownership.socket)?;
    let store = Writer::open(&options.home, options.durability)?;
    let counters = store.counters.clone();
    let shared = Shared::default();
    let (queue, inbox) = queue();
    let commands = lock::commands(&options.home)?;
    let driver = driver(options, store, shared.clone(), ((queue.clone(), inbox), Some(commands)))?;
    let host = Host::new(options, Some(queue.clone()), shared.clone());
    let moved = queue.clone();
    options.clock.on_move(move || {
        moved.send(HostEvent::ClockMoved);
    });
    let thread = std::thread::Builder::new().name("wonder-driver".to_owned());
    let thread = thread
        .spawn(move || driver.drive())
        .map_err(|error| EngineError::internal(format!("no thread for the driver: {error}")))?;
    let server = SocketServer::open(listener, host.clone())?;
    Ok(Owned { host, driver: queue, thread, server, shared, counters, ownership })
}

/// `commands`: the file that says whether any live, for who begins some.
fn driver(
    options: &Options,
    store: Writer,
    shared: Shared,
    ((queue, inbox), commands): ((Queue, Inbox), Option<(File, Commands)>),
) -> Reply<Driver> {
    let mut worker = options.worker.clone();
    let mut waits_for_commands = false;
    if let Some((file, commands)) = commands {
        let file = Arc::new(file);
        waits_for_commands = commands == Commands::MayLive;
        if waits_for_commands {
            tell_when_gone(file.clone(), queue.clone())?;
        }
        worker.reaper_keeps = Some(file);
    }
    // Through its socket any workflow could be started, in its database all of them can be read.
    let home = std::path::absolute(&options.home).unwrap_or_else(|_| options.home.clone());
    let artifacts = options.artifacts.directory().to_owned();
    worker.hidden.extend([home, lock::socket_path(&options.home)?, artifacts]);
    worker.artifacts = Some(crate::artifacts::for_worker(options));
    let executor = Executor::new(ExecutorSetup {
        runtime: tokio::runtime::Handle::current(),
        grace: Duration::from_millis(options.worker.grace_ms),
        worker: Worker::new(worker),
        tasks_max: options.tasks_max,
        queue_timeout: options.queue_timeout_ms.map(Duration::from_millis),
        driver: queue,
        clock: options.clock.clone(),
        shared: shared.clone(),
        performer: options.performer.clone(),
        waits_for_commands,
    });
    let (clock, now) = (options.clock.clone(), options.clock.now());
    let mut budgets = ProjectBudgets::default();
    for (project, budget) in &options.projects {
        let spent = store.reader().spent(project, budget.per.first_day(now))?;
        budgets.insert(project.as_str().into(), *budget, spent, now);
    }
    let storage_patience = Duration::from_millis(options.storage_patience_ms);
    Driver::new(DriverSetup { store, executor, shared, inbox, budgets, clock, storage_patience })
}

fn tell_when_gone(commands: Arc<File>, driver: Queue) -> Reply<()> {
    let wait = move || {
        // An error is as good as an end: there is nothing to wait for then.
        drop(commands.lock());
        driver.send(HostEvent::CommandsGone);
    };
    let thread = std::thread::Builder::new().name("wonder-commands".to_owned()).spawn(wait);
    thread.map(drop).map_err(|error| EngineError::internal(format!("no thread to wait on: {error}")))
}

impl Owned {
    async fn close(self, leaving: Leaving) {
        let (done, closed) = oneshot::channel();
        if self.driver.send(HostEvent::Close { leaving, done }) {
            // An error means that the driver ended by itself, which is as good.
            drop(closed.await);
        }
        self.server.close().await;
        drop(self.thread.join());
        drop(self.ownership);
    }
}
