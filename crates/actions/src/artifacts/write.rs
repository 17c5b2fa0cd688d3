//! `artifact_write`: a text, a value, or a file of the working directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use wonder_artifacts::open_beneath;
use wonder_core::artifact::is_json;
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{ArtifactSpec, ArtifactTypeSpec};
use wonder_core::task::violated;
use wonder_core::value::Value;

use super::{ARTIFACT_READ_BYTES_MAX, Content, NewArtifact, too_large};
use crate::context::ActionContext;
use crate::handler::TryResult;
use crate::json;
use crate::settings::Settings;
use crate::shell::is_hidden;
use crate::texts::{bad_field, render};

const JSON: &str = "application/json";

pub(super) async fn perform(
    settings: &Settings,
    context: &mut ActionContext<'_>,
    spec: &ArtifactSpec,
) -> TryResult {
    let name = render(&spec.name, "name", context.scope)?;
    let named = spec.artifact_type.as_ref().map(|of| render(of, "type", context.scope)).transpose()?;
    let of_type = match &named {
        None => None,
        Some(named) => Some(spec.types.get(named.as_str()).ok_or_else(|| unknown_type(named, spec))?),
    };
    let (content, is_value) = match (&spec.content, &spec.path) {
        (Some(tree), _) => {
            let value = tree.render_values(context.scope);
            let value = value.map_err(|error| bad_field("content", &error.message))?;
            let is_value = value.as_str().is_none();
            (text_of(context, value), is_value)
        }
        (None, Some(path)) => {
            let path = render(path, "path", context.scope)?;
            (Content::File(open(settings, context.workdir(), &path)?), false)
        }
        (None, None) => return Err(bad_field("content", "neither `content` nor `path` is there").into()),
    };
    let content = check(&name, of_type, content)?;
    let media_type = of_type.and_then(|of| of.media_type.clone());
    let is_json_type = is_value || of_type.is_some_and(|of| of.schema.is_some());
    let media_type = media_type.or_else(|| is_json_type.then(|| JSON.into()));
    let new = NewArtifact { name, artifact_type: named.map(Name::from), media_type };
    Ok(context.keep_artifact(new, content).await?.reference())
}

/// A text as it is; anything else as JSON. A value is hidden as a value, so that it stays JSON.
fn text_of(context: &ActionContext<'_>, value: Value) -> Content {
    Content::Bytes(match context.secrets.redactor().hide_in(value) {
        Value::String(text) => text.as_bytes().to_vec(),
        value => value.to_string().into_bytes(),
    })
}

fn unknown_type(named: &str, spec: &ArtifactSpec) -> Failure {
    let known: Vec<&str> = spec.types.keys().map(|name| &**name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let message = format!("`type`: there is no artifact type {named:?}; known are {known}");
    Failure::new(ErrorKind::ContractViolation, message)
}

/// What has a schema must be JSON that fits it. It is read for that, so it must not be large.
fn check(name: &str, of: Option<&ArtifactTypeSpec>, content: Content) -> Result<Content, Failure> {
    let Some(of) = of else { return Ok(content) };
    let must_be_json = of.schema.is_some() || of.media_type.as_deref().is_some_and(is_json);
    if !must_be_json {
        return Ok(content);
    }
    let bytes = match content {
        Content::Bytes(bytes) => bytes,
        Content::File(file) => {
            let mut bytes = Vec::new();
            let read = file.take(ARTIFACT_READ_BYTES_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|error| bad_field("path", &format!("it cannot be read: {error}")))?;
            bytes
        }
    };
    if bytes.len() as u64 > ARTIFACT_READ_BYTES_MAX {
        return Err(too_large(name, "artifact_read_bytes_max", ARTIFACT_READ_BYTES_MAX));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| no_json(name, &error.to_string()))?;
    let value = json::read(text).map_err(|why| no_json(name, &why))?;
    if let Some(schema) = &of.schema {
        violated(&format!("the artifact {name:?}"), schema.check(&value))?;
    }
    Ok(Content::Bytes(bytes))
}

pub(super) fn no_json(name: &str, why: &str) -> Failure {
    let message = format!("the artifact {name:?} is no JSON, and its type says that it is: {why}");
    Failure::new(ErrorKind::ContractViolation, message)
}

/// A file of the working directory. Links may lead within it, not out of it; and what is hidden from isolated commands
/// is hidden from texts too.
fn open(settings: &Settings, workdir: &Path, path: &str) -> Result<File, Failure> {
    let wrong = |why: &str| bad_field("path", &format!("{path:?} {why}"));
    let unreadable = |error: std::io::Error| wrong(&format!("cannot be read: {error}"));
    if path.is_empty() || path.contains('\0') {
        return Err(wrong("is no path"));
    }
    let base = workdir.canonicalize().map_err(unreadable)?;
    let real = base.join(path).canonicalize().map_err(unreadable)?;
    let Ok(inside) = real.strip_prefix(&base) else {
        return Err(wrong("lies outside the working directory: only files in it can be kept"));
    };
    if is_hidden(settings, &real) {
        return Err(wrong("lies where wonder or a person keeps what nobody else may read"));
    }
    open_beneath(&base, inside).map_err(unreadable)
}
