//! What a command leaves in `WONDER_ARTIFACTS`: a fresh directory, whose files become artifacts when it has ended well.

use std::io;
use std::path::Path;

use wonder_artifacts::{TempDir, files_in, open_beneath};
use wonder_core::artifact::name_problem;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::Delivery;
use wonder_core::value::Value;

use super::{ARTIFACTS_PER_TRY_MAX, Content, NewArtifact, storage_failure};
use crate::context::ActionContext;
use crate::handler::TryError;
use crate::job::Stream;

/// The directory of one command, gone with it.
#[derive(Debug)]
pub(crate) struct OutFolder(TempDir);

impl OutFolder {
    /// None: this host keeps no artifacts.
    pub(crate) fn fresh(context: &ActionContext<'_>) -> Result<Option<OutFolder>, Failure> {
        let Ok(place) = context.artifacts.place() else { return Ok(None) };
        let made = place.store.fresh_directory();
        made.map(|folder| Some(OutFolder(folder))).map_err(|error| storage_failure("prepared", &error))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Keeps what was left, in the order of the names: the references. What is no plain file is named in the log; a name
/// that no artifact can have is a failure.
pub(crate) async fn keep_left(
    context: &mut ActionContext<'_>,
    folder: &OutFolder,
) -> Result<Vec<Value>, TryError> {
    let found = files_in(folder.path(), ARTIFACTS_PER_TRY_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::QuotaExceeded => {
            let message = format!(
                "the command left more in WONDER_ARTIFACTS than artifacts_per_try_max ({ARTIFACTS_PER_TRY_MAX})"
            );
            TryError::answered(Failure::new(ErrorKind::LimitExceeded, message))
        }
        _ => TryError::answered(storage_failure("found", &error)),
    })?;
    for other in found.others {
        context.line(Stream::Note, format!("{other:?} in WONDER_ARTIFACTS is no plain file and is not kept"));
    }
    let mut references = Vec::with_capacity(found.files.len());
    for name in found.files {
        let opened = match name_problem(&name) {
            None => open_beneath(folder.path(), Path::new(&name)).map_err(|error| error.to_string()),
            Some(why) => Err(why),
        };
        let file = opened.map_err(|why| {
            let message = format!("{name:?} in WONDER_ARTIFACTS cannot be kept: {why}");
            TryError::answered(Failure::new(ErrorKind::ContractViolation, message))
        })?;
        let kept = context.keep_artifact(NewArtifact::named(name), Content::File(file)).await;
        // The command has run.
        references.push(kept.map_err(|error| error.after(Delivery::Answered))?.reference());
    }
    Ok(references)
}
