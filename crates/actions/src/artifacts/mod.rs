//! Artifacts: files that are kept with a run. `artifact_write` and `artifact_read`, what a command leaves in
//! `WONDER_ARTIFACTS`, and what any other handler wants to keep.
//!
//! What is kept has no known secret in it: it is hidden on the way, piece by piece. It is on the disk before the report
//! that names it; a task that fails names none, and what it wrote is collected some day. Which artifacts a run has is
//! the host's to know: here a name is looked up, and never a run changed.

mod keep;
mod large;
mod left;
mod media;
mod read;
mod write;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use wonder_artifacts::Store;
use wonder_core::artifact::Artifact;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{ArtifactSpec, Work};
use wonder_core::value::{Map, Value};

pub use keep::{Content, NewArtifact};
pub(crate) use large::put_aside;
pub(crate) use left::{OutFolder, keep_left};

use crate::cassette::{Asked, Asking};
use crate::context::ActionContext;
use crate::handler::{ActionHandler, Performing};
use crate::settings::Settings;
use crate::texts::render;

/// The most that one artifact may have.
pub(crate) const ARTIFACT_BYTES_MAX: u64 = 2 << 30;
/// The most that is read into a result, and that is checked against a schema.
pub(crate) const ARTIFACT_READ_BYTES_MAX: u64 = 8 << 20;
/// The most that one try of an action may keep.
pub(crate) const ARTIFACTS_PER_TRY_MAX: usize = 1_000;

/// Where a worker keeps artifacts, and who knows those of a run.
#[derive(Clone, Debug)]
pub struct Artifacts {
    pub store: Store,
    pub catalog: Arc<dyn ArtifactCatalog>,
}

/// Knows which artifacts runs have.
pub trait ArtifactCatalog: Send + Sync + fmt::Debug {
    /// The newest artifact of this name that the run sees: of its own, else of the runs that it inherits from.
    fn newest<'c>(&'c self, run: &'c str, name: &'c str) -> Finding<'c>;
}

/// An artifact, if there is one; why that cannot be known.
pub type Finding<'c> = Pin<Box<dyn Future<Output = Result<Option<Artifact>, String>> + Send + 'c>>;

/// What a try knows of artifacts: those that earlier steps of its task kept, and those that it keeps itself.
#[derive(Debug)]
pub(crate) struct TaskArtifacts<'a> {
    place: Option<&'a Artifacts>,
    before: &'a [Artifact],
    new: Vec<Artifact>,
}

impl<'a> TaskArtifacts<'a> {
    pub(crate) fn new(place: Option<&'a Artifacts>, before: &'a [Artifact]) -> TaskArtifacts<'a> {
        TaskArtifacts { place, before, new: Vec::new() }
    }

    /// Whether this host keeps any.
    pub(crate) fn are_kept(&self) -> bool {
        self.place.is_some()
    }

    pub(crate) fn into_new(self) -> Vec<Artifact> {
        self.new
    }

    /// Those that the try has kept so far, and where they are.
    pub(crate) fn kept(&self) -> Option<(&'a Store, &[Artifact])> {
        Some((&self.place?.store, &self.new))
    }

    fn place(&self) -> Result<&'a Artifacts, Failure> {
        let none = || Failure::new(ErrorKind::Internal, "this host keeps no artifacts");
        self.place.ok_or_else(none)
    }

    /// The newest of this name within the task.
    fn newest(&self, name: &str) -> Option<&Artifact> {
        self.before.iter().chain(&self.new).rfind(|artifact| &*artifact.name == name)
    }
}

/// Performs `artifact_write` and `artifact_read`.
#[derive(Debug)]
pub(crate) struct ArtifactHandler {
    settings: Arc<Settings>,
}

impl ArtifactHandler {
    pub(crate) fn new(settings: Arc<Settings>) -> ArtifactHandler {
        ArtifactHandler { settings }
    }
}

impl ActionHandler for ArtifactHandler {
    fn kinds(&self) -> &[&'static str] {
        &["artifact_write", "artifact_read"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        match &context.call.action.work {
            Some(Work::ArtifactWrite(spec)) => {
                Performing::pending(write::perform(&self.settings, context, spec))
            }
            Some(Work::ArtifactRead { reference }) => Performing::pending(read::perform(context, reference)),
            _ => unreachable!("only artifacts come here"),
        }
    }

    /// What is kept and read is the host's own. Only a file of the working directory is not: a command that is not run
    /// leaves none.
    fn asked(&self, asking: &Asking<'_>) -> Result<Asked, Failure> {
        match &asking.call.action.work {
            Some(Work::ArtifactWrite(ArtifactSpec {
                content: None,
                path: Some(path),
                name,
                artifact_type,
                ..
            })) => {
                let texts = [("name", Some(name)), ("type", artifact_type.as_ref()), ("path", Some(path))];
                let mut fields = Map::new();
                for (field, template) in texts {
                    if let Some(template) = template {
                        fields.insert(field.into(), Value::from(render(template, field, asking.scope)?));
                    }
                }
                Ok(Asked::Outside(Value::from(fields)))
            }
            _ => Ok(Asked::Nothing),
        }
    }
}

/// A failure to do with the place where artifacts are kept: another try may find it well again.
fn storage_failure(what: &str, error: &dyn fmt::Display) -> Failure {
    Failure::new(ErrorKind::Network, format!("the artifact could not be {what}: {error}"))
}

fn too_large(name: &str, limit: &str, bytes_max: u64) -> Failure {
    let message = format!("the artifact {name:?} has more than {bytes_max} bytes, the limit {limit}");
    Failure::new(ErrorKind::LimitExceeded, message)
}
