//! One task to perform, and where its output goes while it runs. The output is for people: it is shown and
//! kept beside the run, never a part of it.

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

/// Where the output of an action goes while it runs. Must not block.
pub trait Sink: Send + Sync {
    /// A line to be shown and kept.
    fn line(&self, line: OutputLine);

    /// A piece of text as it comes, to be shown and never kept: what is wanted of it is in the result.
    fn delta(&self, _delta: TextDelta) {}

    /// It waits until the `rate` of this model profile lets it go on; None: it goes on.
    fn waits_for_rate(&self, _profile: Option<&Name>) {}
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutputLine {
    pub step: Name,
    pub stream: Stream,
    /// One line, without its end, and without secrets.
    pub text: String,
}

/// A piece of a text that an action is still producing, without secrets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextDelta {
    pub step: Name,
    /// How many tries the token had made before the one that says this: another try begins anew.
    pub tries_before: u32,
    /// At most [`crate::DELTA_BYTES_MAX`] bytes.
    pub text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// The worker's own words: "try 2 of 3 in 800 ms: connection refused".
    Note,
}
