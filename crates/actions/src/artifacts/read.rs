//! `artifact_read`, and reading for whoever else names an artifact.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wonder_artifacts::Hash;
use wonder_core::artifact::{Artifact, Wanted, is_json, wanted};
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::template::{Budget, Template};
use wonder_core::value::Value;

use super::{ARTIFACT_READ_BYTES_MAX, storage_failure, too_large, write};
use crate::context::ActionContext;
use crate::handler::{TryError, TryResult};
use crate::json;
use crate::texts::bad_field;

pub(super) async fn perform(context: &ActionContext<'_>, reference: &Template) -> TryResult {
    let value = reference.render_value_within(context.scope, &mut Budget::default());
    let value = value.map_err(|error| bad_field("ref", &error.message))?;
    let wanted = wanted(&value).map_err(|why| bad_field("ref", &why))?;
    let opened = context.read_artifact(&wanted, ARTIFACT_READ_BYTES_MAX).await?;
    Ok(opened.into_value()?)
}

/// What was read, and what is known of it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) name: Name,
    /// None: nobody says.
    pub(crate) media_type: Option<Name>,
    pub(crate) bytes: Vec<u8>,
}

impl Opened {
    /// JSON as a value if it is said to be JSON, a text as a text, and anything else in base64.
    fn into_value(self) -> Result<Value, Failure> {
        let Opened { name, media_type, bytes } = self;
        let must_be_json = media_type.as_deref().is_some_and(is_json);
        // No text has a NUL.
        match std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0')) {
            Some(text) if must_be_json => json::read(text).map_err(|why| write::no_json(&name, &why)),
            Some(text) => Ok(Value::str(text)),
            None => {
                let media_type = media_type.map_or(Value::Null, Value::String);
                let count = Value::Int(bytes.len() as i64);
                let base64 = Value::from(STANDARD.encode(&bytes));
                Ok(Value::map([("base64", base64), ("media_type", media_type), ("bytes", count)]))
            }
        }
    }
}

impl ActionContext<'_> {
    /// All that is in an artifact, if it has no more than so many bytes.
    pub(crate) async fn read_artifact(&self, wanted: &Wanted, bytes_max: u64) -> Result<Opened, TryError> {
        let place = self.artifacts.place()?;
        let (hash, name, media_type) = match wanted {
            Wanted::Hash { hash, name, media_type } => {
                (hash.clone(), name.clone().unwrap_or_else(|| hash.clone()), media_type.clone())
            }
            Wanted::Name(name) => {
                let Artifact { hash, media_type, .. } = self.newest_artifact(name).await?;
                (hash, name.clone(), Some(media_type))
            }
        };
        let hash: Hash = hash.parse().map_err(|_| bad_field("ref", &format!("{hash:?} is no hash")))?;
        let store = place.store.clone();
        let reading = tokio::task::spawn_blocking(move || store.read(&hash, bytes_max));
        let read = match self.deadline.limit(reading).await? {
            Ok(read) => read,
            Err(error) => return Err(storage_failure("read", &error).into()),
        };
        match read {
            Ok(bytes) => Ok(Opened { name, media_type, bytes }),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(too_large(&name, "artifact_read_bytes_max", bytes_max).into())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_there(&name).into()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let message = format!("the artifact {name:?} is damaged: {error}");
                Err(Failure::new(ErrorKind::Internal, message).into())
            }
            Err(error) => Err(storage_failure("read", &error).into()),
        }
    }

    async fn newest_artifact(&self, name: &Name) -> Result<Artifact, TryError> {
        if let Some(artifact) = self.artifacts.newest(name) {
            return Ok(artifact.clone());
        }
        let run = self.order().run.clone();
        let found = self.deadline.limit(self.artifacts.place()?.catalog.newest(&run, name)).await?;
        let found = found.map_err(|why| storage_failure("found", &why))?;
        found.ok_or_else(|| {
            let message = format!(
                "`ref`: the run has no artifact {name:?}: see `wonder artifacts {run}`; a child sees its parent's with \
                 `inherit_artifacts: true`"
            );
            Failure::new(ErrorKind::ExpressionError, message).into()
        })
    }
}

fn not_there(name: &str) -> Failure {
    let message = format!("what the artifact {name:?} refers to is not kept here any more");
    Failure::new(ErrorKind::ExpressionError, message)
}
