//! One task to perform, and where its words go while it runs. What it says is for people: it is streamed,
//! never part of the run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wonder_core::command::TaskOrder;
use wonder_core::def::Name;
use wonder_core::graph::Task;

#[derive(Clone)]
pub struct Job {
    pub order: Box<TaskOrder>,
    pub task: Arc<Task>,
    /// Where relative paths and commands start.
    pub workdir: PathBuf,
    pub cancel: CancellationToken,
    pub sink: Arc<dyn Sink>,
    /// For backoff jitter.
    pub seed: u64,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("order", &self.order)
            .field("workdir", &self.workdir)
            .field("cancelled", &self.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Where what an action says while it runs goes: lines of output, progress. Must not block.
pub trait Sink: Send + Sync {
    fn say(&self, line: Said);
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Said {
    pub step: Name,
    pub stream: Stream,
    /// One line, without its end, and without secrets.
    pub text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// The worker's own words: "try 2 of 3 in 800 ms: connection refused".
    Note,
}
