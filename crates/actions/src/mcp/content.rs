//! What a tool gave, as the result of the action: its structured content, else its text, else its parts. What is no text
//! is kept as an artifact.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::value::Value;

use crate::artifacts::{Content, NewArtifact};
use crate::context::ActionContext;
use crate::handler::{TryError, TryResult};
use crate::json;
use crate::texts::tail;

/// How much of a tool's own words a failure carries.
const ERROR_BYTES_MAX: usize = 4 << 10;

pub(super) async fn result(
    context: &mut ActionContext<'_>,
    server: &Name,
    tool: &str,
    result: Box<CallToolResult>,
) -> TryResult {
    if result.is_error == Some(true) {
        let told: Vec<&str> = result.content.iter().filter_map(text_of).collect();
        // Only a part of it is told: what is cut must have no secrets any more.
        let told = context.hide(told.join("\n"));
        let told = if told.is_empty() { "it does not say why" } else { tail(&told, ERROR_BYTES_MAX) };
        let message = format!("the tool `{tool}` of `{server}` failed: {told}");
        return Err(TryError::answered(Failure::new(ErrorKind::ToolFailed, message)));
    }
    if let Some(structured) = &result.structured_content {
        return Ok(json::value_of(&structured.to_string()));
    }
    match &result.content[..] {
        [] => Ok(Value::Null),
        [ContentBlock::Text(text)] => Ok(Value::str(&*text.text)),
        parts => {
            let mut list = Vec::with_capacity(parts.len());
            for (at, block) in parts.iter().enumerate() {
                list.push(part(context, (tool, at + 1), block).await?);
            }
            Ok(Value::list(list))
        }
    }
}

fn text_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

async fn part(
    context: &mut ActionContext<'_>,
    named: (&str, usize),
    block: &ContentBlock,
) -> Result<Value, TryError> {
    let kind = |kind: &str| ("type", Value::from(kind));
    match block {
        ContentBlock::Text(text) => Ok(Value::map([kind("text"), ("text", Value::str(&*text.text))])),
        ContentBlock::Image(image) => {
            binary(context, named, ("image", &image.data, Some(&image.mime_type)), None).await
        }
        ContentBlock::Audio(audio) => {
            binary(context, named, ("audio", &audio.data, Some(&audio.mime_type)), None).await
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let media_type = mime_type.as_deref().map_or(Value::Null, Value::str);
                let uri = ("uri", Value::str(&**uri));
                Ok(Value::map([
                    kind("resource"),
                    uri,
                    ("media_type", media_type),
                    ("text", Value::str(&**text)),
                ]))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                binary(context, named, ("resource", blob, mime_type.as_deref()), Some(uri)).await
            }
            other => Ok(as_it_came(other)),
        },
        ContentBlock::ResourceLink(link) => {
            let mut value = as_it_came(link);
            value.set_path(&["type".into()], Value::from("resource_link"));
            Ok(value)
        }
        other => Ok(as_it_came(other)),
    }
}

/// What a later protocol may bring.
fn as_it_came(part: &impl serde::Serialize) -> Value {
    json::value_of(&serde_json::to_string(part).unwrap_or_default())
}

/// Bytes: kept as an artifact. Where nothing is kept they stand there as they came.
async fn binary(
    context: &mut ActionContext<'_>,
    (tool, number): (&str, usize),
    (kind, data, media_type): (&str, &str, Option<&str>),
    uri: Option<&str>,
) -> Result<Value, TryError> {
    let mut value =
        vec![("type", Value::from(kind)), ("media_type", media_type.map_or(Value::Null, Value::str))];
    value.extend(uri.map(|uri| ("uri", Value::str(uri))));
    if !context.artifacts.are_kept() {
        value.push(("data", Value::str(data)));
        return Ok(Value::map(value));
    }
    let bytes = STANDARD.decode(data.trim()).map_err(|error| {
        let message = format!("part {number} of what `{tool}` gave is no base64: {error}");
        TryError::answered(Failure::new(ErrorKind::ToolFailed, message))
    })?;
    let ending = media_type.and_then(|media_type| media_type.split(['/', ';']).nth(1)).unwrap_or("bin");
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
    };
    let name = format!("{}-{number}.{}", plain(tool), plain(ending));
    let new = NewArtifact { media_type: media_type.map(Name::from), ..NewArtifact::named(name) };
    let kept = context.keep_artifact(new, Content::Bytes(bytes)).await?;
    value.push(("artifact", kept.reference()));
    Ok(Value::map(value))
}
