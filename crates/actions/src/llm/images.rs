//! Pictures that a call shows to its model: URLs, which the provider fetches, and files and artifacts, which are read
//! here. What is no picture is not sent, so that a path from outside cannot lead to any other file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::AsyncReadExt;
use wonder_core::artifact::{BY_HASH, BY_NAME, Wanted, wanted};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::template::{Budget, Template};
use wonder_core::value::Value;
use wonder_models::{Image, Part};

use crate::context::ActionContext;
use crate::handler::TryError;
use crate::texts::bad_field;

pub(crate) const BYTES_MAX: u64 = 20 << 20;
const NO_PICTURE: &str = "is no PNG, JPEG, GIF or WebP";

/// A picture as it is written: where it is to be found.
#[derive(Debug)]
pub(super) enum Named {
    Url(String),
    Artifact(Wanted),
    /// In the working directory, unless it says otherwise.
    File(String),
}

pub(super) fn named(scope: &Value, images: &[Template]) -> Result<Vec<Named>, Failure> {
    let mut budget = Budget::default();
    let each = images.iter().map(|template| {
        let value = template.render_value_within(scope, &mut budget);
        let value = value.map_err(|error| bad_field("images", &error.message))?;
        let text = value.as_str().unwrap_or_default().trim();
        let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| text.starts_with(beginning));
        Ok(if begins(&["https://", "http://"]) {
            Named::Url(text.to_owned())
        } else if value.as_map().is_some() || begins(&[BY_NAME, BY_HASH]) {
            Named::Artifact(wanted(&value).map_err(|why| bad_field("images", &why))?)
        } else {
            Named::File(text.to_owned())
        })
    });
    each.collect()
}

pub(super) async fn read(context: &ActionContext<'_>, images: &[Template]) -> Result<Vec<Part>, TryError> {
    let mut parts = Vec::with_capacity(images.len());
    for picture in named(context.scope, images)? {
        parts.push(Part::Image(match picture {
            Named::Url(url) => Image::Url { url: url.into(), media_type: None },
            Named::Artifact(wanted) => artifact(context, &wanted).await?,
            Named::File(path) => file(context, &path).await?,
        }));
    }
    Ok(parts)
}

async fn artifact(context: &ActionContext<'_>, wanted: &Wanted) -> Result<Image, TryError> {
    let opened = context.read_artifact(wanted, BYTES_MAX).await?;
    let media_type = picture_type(&opened.bytes);
    let media_type =
        media_type.ok_or_else(|| bad_field("images", &format!("{:?} {NO_PICTURE}", opened.name)))?;
    Ok(shown(media_type, &opened.bytes))
}

/// What is wrong with a picture.
pub(super) fn wrong(path: &str, why: &str) -> Failure {
    bad_field("images", &format!("{path:?} {why}"))
}

fn shown(media_type: &str, bytes: &[u8]) -> Image {
    Image::Data { media_type: media_type.into(), data: STANDARD.encode(bytes).into() }
}

async fn file(context: &ActionContext<'_>, path: &str) -> Result<Image, Failure> {
    let wrong = |why: &str| wrong(path, why);
    let unreadable = |error: std::io::Error| wrong(&format!("cannot be read: {error}"));
    let place = context.workdir().join(path);
    let is_file = tokio::fs::metadata(&place).await.map_err(unreadable)?.is_file();
    if !is_file {
        return Err(wrong("is no file"));
    }
    let opened = tokio::fs::File::open(&place).await.map_err(unreadable)?;
    let mut bytes = Vec::new();
    opened.take(BYTES_MAX + 1).read_to_end(&mut bytes).await.map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        let message = format!("`images`: {path:?} has more than {BYTES_MAX} bytes");
        return Err(Failure::new(ErrorKind::LimitExceeded, message));
    }
    let media_type = picture_type(&bytes).ok_or_else(|| wrong(NO_PICTURE))?;
    Ok(shown(media_type, &bytes))
}

/// By its first bytes: a name can say anything.
pub(crate) fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_one_by_its_first_bytes() {
        assert_eq!(picture_type(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(picture_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(picture_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(picture_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(picture_type(b"-----BEGIN PRIVATE KEY-----"), None);
        assert_eq!(picture_type(b""), None);
    }
}
