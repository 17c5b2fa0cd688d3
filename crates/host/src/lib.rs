//! The embedded host of Wonder: driver, SQLite store, timers, executor.
//!
//! [`open`] a directory and ask its engine. The process that opens it first owns it: it drives runs and
//! alone writes. Others that open it reach the owner over a socket and see no difference; when the owner
//! leaves or dies, one of them takes over.
//!
//! An owner carries on the runs that somebody asked it to start, answer or resume. Runs that an earlier owner
//! left stay as they are until they are resumed; only their overdue deadlines fire.
//!
//! A test may hand in a [`VirtualClock`] and a [`TaskPerformer`] with its [`Options`]: it reports tasks with
//! [`OrderedTask::report`], waits with [`Connection::settled`] until there is nothing more to do, and moves the
//! clock to the next deadline. Nothing then waits for real time.

mod artifacts;
mod clock;
mod connection;
mod driver;
mod embedded;
mod executor;
mod failpoint;
mod host;
mod live_text;
mod lock;
mod performer;
mod private;
mod project;
mod readers;
mod shared;
mod socket;
mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub use artifacts::COLLECT_GRACE;
pub use clock::{Clock, VirtualClock};
pub use connection::{Connection, Driving, Written, open};
pub use driver::Settled;
pub use embedded::Drive;
pub use performer::{OrderedTask, TaskPerformer};
pub use project::{Period, ProjectBudget};
pub use wonder_artifacts::{Collected, Store as ArtifactStore};

/// An id for a run that is to be started, for whoever has to know it before.
pub fn new_run_id() -> String {
    ulid::Ulid::generate().to_string()
}

/// How an owner of a database works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the database; made if it is not there.
    pub home: PathBuf,
    pub durability: Durability,
    /// Tasks at once, over all runs.
    pub tasks_max: usize,
    /// A task that waits for a worker longer than this fails; off if absent.
    pub queue_timeout_ms: Option<u64>,
    /// How long commits that fail are tried again before whoever waits for them is told.
    pub storage_patience_ms: u64,
    pub worker: wonder_actions::Settings,
    /// Where artifacts are kept; one home has it for itself.
    pub artifacts: ArtifactStore,
    /// What projects may spend.
    pub projects: BTreeMap<String, ProjectBudget>,
    /// Where it has its time from.
    pub clock: Clock,
    /// What performs tasks; the host's own worker if absent.
    pub performer: Option<Arc<dyn TaskPerformer>>,
}

/// Shorter than another process waits for an answer.
pub const STORAGE_PATIENCE_MS: u64 = 30_000;

impl Options {
    pub fn new(home: impl Into<PathBuf>) -> Options {
        let home = home.into();
        Options {
            artifacts: ArtifactStore::at(home.join("artifacts")),
            home,
            durability: Durability::Full,
            tasks_max: 64,
            queue_timeout_ms: None,
            storage_patience_ms: STORAGE_PATIENCE_MS,
            worker: wonder_actions::Settings::default(),
            projects: BTreeMap::new(),
            clock: Clock::System,
            performer: None,
        }
    }
}

/// What a power loss may take. A crash of the process takes nothing in either.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durability {
    /// Nothing that was acknowledged.
    #[default]
    Full,
    /// The last moments before it: commits are written, not waited for on the disk.
    Normal,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Only read. Overdue deadlines fire first, if nobody owns the database.
    Look,
    /// Own the database, or ask its owner.
    Act,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leaving {
    /// At the next moment when no task is out. Until then everything goes on, for others too.
    Drain,
    /// Tasks that are out are stopped; the next owner runs them again with the same keys.
    Now,
}
