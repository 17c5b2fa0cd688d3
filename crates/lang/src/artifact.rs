//! Artifacts as everybody names them: what may be a name, what may be a media type, and the reference that stands for
//! an artifact in results and templates.
//!
//! Nothing here knows where they are kept.

use serde::{Deserialize, Serialize};

use crate::def::Name;
use crate::value::{Map, Value};

/// The longest name of an artifact.
pub const NAME_BYTES_MAX: usize = 255;
/// A text that begins so is a name and nothing else: `artifact:report.md`.
pub const BY_NAME: &str = "artifact:";
/// A text that begins so is an address: `blake3:` and 64 hexadecimal digits.
pub const BY_HASH: &str = "blake3:";

/// One artifact that a task has kept: its name in the run, and what is in it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Artifact {
    pub name: Name,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<Name>,
    pub media_type: Name,
    pub bytes: u64,
    /// BLAKE3 of what is in it, in 64 hexadecimal digits: its address wherever artifacts are kept.
    pub hash: Name,
}

impl Artifact {
    /// What stands for it in a result: `{artifact, name, type, media_type, bytes}`.
    pub fn reference(&self) -> Value {
        let text = |text: &Name| Value::String(text.clone());
        let mut map = Map::new();
        map.insert("artifact".into(), Value::from(format!("{BY_HASH}{}", self.hash)));
        map.insert("name".into(), text(&self.name));
        map.insert("type".into(), self.artifact_type.as_ref().map_or(Value::Null, text));
        map.insert("media_type".into(), text(&self.media_type));
        map.insert("bytes".into(), Value::Int(i64::try_from(self.bytes).unwrap_or(i64::MAX)));
        Value::from(map)
    }
}

/// Which artifact is meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// The newest of that name.
    Name(Name),
    Hash {
        hash: Name,
        /// As far as the reference says.
        name: Option<Name>,
        media_type: Option<Name>,
    },
}

/// What a reference, an address or a name means; why it means nothing.
pub fn wanted(value: &Value) -> Result<Wanted, String> {
    match value {
        Value::String(text) => match text.strip_prefix(BY_NAME) {
            Some(name) => by_name(name),
            None if text.starts_with(BY_HASH) => {
                Ok(Wanted::Hash { hash: hash(text)?, name: None, media_type: None })
            }
            None => by_name(text),
        },
        Value::Map(map) => {
            let text = |key: &str| map.get(key).and_then(Value::as_str).map(Name::from);
            let Some(address) = text("artifact") else {
                return Err("an object without `artifact` is no reference".to_owned());
            };
            Ok(Wanted::Hash { hash: hash(&address)?, name: text("name"), media_type: text("media_type") })
        }
        other => Err(format!("expected a reference or a name, found {}", other.type_name())),
    }
}

fn by_name(name: &str) -> Result<Wanted, String> {
    match name_problem(name) {
        None => Ok(Wanted::Name(name.into())),
        Some(why) => Err(format!("{name:?} is no name of an artifact: {why}")),
    }
}

fn hash(address: &str) -> Result<Name, String> {
    let digits = address.strip_prefix(BY_HASH).unwrap_or_default();
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() == 64 && digits.bytes().all(is_digit) {
        return Ok(digits.into());
    }
    Err(format!("{address:?} is no address of an artifact: expected {BY_HASH} and 64 hexadecimal digits"))
}

/// Why a text can be no name of an artifact; None: it can. A name is a relative path of plain parts, so that it can be
/// put into a directory as it is, on every system.
pub fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Some(format!("it has more than {NAME_BYTES_MAX} bytes"));
    }
    if name.starts_with(BY_HASH) || name.starts_with(BY_NAME) {
        return Some(format!("`{BY_NAME}` and `{BY_HASH}` begin references"));
    }
    if let Some(bad) = name.chars().find(|c| c.is_control() || *c == '\\') {
        return Some(format!("it has the character {bad:?}"));
    }
    if name.split('/').any(|part| part.is_empty() || part.trim() != part || part.chars().all(|c| c == '.')) {
        return Some("every part between `/` is a plain name, not empty, `.` or `..`".to_owned());
    }
    None
}

/// `type/subtype`, with parameters if there are any.
pub fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let parameters_are_visible = parameters.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let parts = essence.trim_end().split_once('/');
    parts.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype)) && parameters_are_visible
}

/// Whether what has this media type is read as JSON.
pub fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_relative_path_of_plain_parts() {
        for good in ["report.md", "plots/first.png", "a b", ".hidden", "ä", "x..y", "1", "10:30.log"] {
            assert_eq!(name_problem(good), None, "{good}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            ".",
            "..",
            "...",
            "a\\b",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "a/ b",
            "artifact:x",
            "blake3:00",
            &long,
        ] {
            assert!(name_problem(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn a_reference_means_the_artifact_that_gave_it() {
        let artifact = Artifact {
            name: "report.md".into(),
            artifact_type: Some("report".into()),
            media_type: "text/markdown".into(),
            bytes: 7,
            hash: "ab".repeat(32).into(),
        };
        let reference = artifact.reference();
        let by_hash = |name: Option<&str>| Wanted::Hash {
            hash: artifact.hash.clone(),
            name: name.map(Name::from),
            media_type: name.map(|_| artifact.media_type.clone()),
        };
        assert_eq!(wanted(&reference), Ok(by_hash(Some("report.md"))));
        let address = reference.get_path(&["artifact".into()]).unwrap();
        assert_eq!(wanted(address), Ok(by_hash(None)));
        assert_eq!(wanted(&Value::str("report.md")), Ok(Wanted::Name("report.md".into())));
        assert_eq!(wanted(&Value::str("artifact:report.md")), Ok(Wanted::Name("report.md".into())));
        for bad in [
            Value::Null,
            Value::Int(1),
            Value::str("../x"),
            Value::str("blake3:zz"),
            Value::str("blake3:../../etc/passwd"),
            Value::map([("name", Value::str("report.md"))]),
            Value::map([("artifact", Value::str("report.md"))]),
        ] {
            assert!(wanted(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn media_types_are_told_from_other_texts() {
        for good in ["text/markdown", "application/vnd.api+json", "text/plain; charset=utf-8"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["", "markdown", "text/", "/plain", "text /plain", "text/plain; a\nb", "a/b/c"] {
            assert!(!is_media_type(bad), "{bad:?}");
        }
        assert!(is_json("application/json; charset=utf-8") && is_json("Application/LD+JSON"));
        assert!(!is_json("text/json5") && !is_json("text/plain"));
    }
}
