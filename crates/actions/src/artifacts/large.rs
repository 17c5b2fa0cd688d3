//! Results that are too large for where they go: kept as an artifact, with their beginning and a reference in their place.

use wonder_core::value::Value;

use super::{Content, NewArtifact};
use crate::context::ActionContext;
use crate::handler::TryResult;

/// How much of it stays.
const HEAD_BYTES: usize = 8 << 10;

/// The result, or `{head, artifact, bytes}` if it has more bytes than this. Where nothing is kept it stays as it is.
pub(crate) async fn put_aside(
    context: &mut ActionContext<'_>,
    result: TryResult,
    bytes_max: u64,
) -> TryResult {
    let value = result?;
    let fits = usize::try_from(bytes_max).map_or(true, |bytes_max| value.fits(bytes_max));
    if fits || !context.artifacts.are_kept() {
        return Ok(value);
    }
    let (text, ending) = match &value {
        Value::String(text) => (text.to_string(), "txt"),
        value => (value.to_string(), "json"),
    };
    let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
    // A text is cut after its secrets are hidden, never before.
    let text = context.hide(text);
    let head = head(&text).to_owned();
    let new = NewArtifact::named(format!("{}.result.{ending}", context.order().node));
    let kept = context.keep_artifact(new, Content::Bytes(text.into_bytes())).await?;
    let reference = kept.reference();
    Ok(Value::map([("head", Value::from(head)), ("artifact", reference), ("bytes", Value::Int(bytes))]))
}

fn head(text: &str) -> &str {
    let mut end = text.len().min(HEAD_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
