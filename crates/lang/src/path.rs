//! Target paths: where a mapping writes.
//!
//! A target is parsed once, from `state.x`, `output.x`, `_branch.output.x` or bare `x`. It only names
//! map keys: it never indexes lists, and it never names what a run may read but not write.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a target is under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    State,
    Output,
    /// `_branch.output`: what a branch hands to its fan-in.
    Branch,
}

impl Root {
    pub fn as_str(self) -> &'static str {
        match self {
            Root::State => "state",
            Root::Output => "output",
            Root::Branch => "_branch.output",
        }
    }
}

/// A place to write to. An empty path replaces the whole root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub root: Root,
    pub path: Vec<Arc<str>>,
}

/// Why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError {
    pub message: String,
    /// The target lies under `input`, which has a diagnostic of its own.
    pub into_input: bool,
}

const KEYS_MAX: usize = 64;

/// Names that are read, never written. `_last_error` is kept by the engine, under `state` as well.
const READ_ONLY: [&str; 5] = ["run", "needs", "result", "_last_error", "secret"];

impl Target {
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let keys: Vec<&str> = text.split('.').collect();
        if let Some(key) = keys.iter().find(|key| !is_key(key)) {
            return refuse(match *key {
                "" if text.is_empty() => "a target path is missing".to_owned(),
                "" => format!("`{text}` has an empty segment"),
                key => format!("`{key}` in `{text}` is no key: keys are letters, digits and `_`"),
            });
        }
        if keys.len() > KEYS_MAX {
            return refuse(format!("a target path has at most {KEYS_MAX} keys"));
        }
        let (root, path) = match keys[0] {
            "state" => (Root::State, &keys[1..]),
            "output" => (Root::Output, &keys[1..]),
            "_branch" if keys.get(1) == Some(&"output") => (Root::Branch, &keys[2..]),
            "_branch" => {
                return refuse(format!("`{text}` cannot be written; of `_branch` only `_branch.output` can"));
            }
            "input" => {
                let message = format!("`{text}` cannot be written: `input` never changes");
                return Err(TargetError { message, into_input: true });
            }
            _ => (Root::State, &keys[..]),
        };
        let bare = path.len() == keys.len();
        let reserved = match path.first() {
            Some(first) if bare => READ_ONLY.contains(first),
            Some(first) => root == Root::State && *first == "_last_error",
            None => false,
        };
        if reserved {
            return refuse(format!("`{text}` can be read, not written"));
        }
        Ok(Target { root, path: path.iter().map(|key| Arc::from(*key)).collect() })
    }
}

fn refuse(message: String) -> Result<Target, TargetError> {
    Err(TargetError { message, into_input: false })
}

/// Whether `text` can be written after a dot: `[A-Za-z_][A-Za-z0-9_]*`.
pub fn is_key(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.as_str())?;
        self.path.iter().try_for_each(|key| write!(f, ".{key}"))
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TargetError {}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Target, D::Error> {
        let text = String::deserialize(deserializer)?;
        Target::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_print_in_full() {
        for (text, full) in [
            ("x", "state.x"),
            ("x.y", "state.x.y"),
            ("state.x", "state.x"),
            ("state.run", "state.run"),
            ("state", "state"),
            ("output", "output"),
            ("output.a_1", "output.a_1"),
            ("_branch.output", "_branch.output"),
            ("_branch.output.y", "_branch.output.y"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.to_string(), full);
            let stored = serde_json::to_string(&target).unwrap();
            assert_eq!(serde_json::from_str::<Target>(&stored).unwrap(), target);
        }
        assert!(Target::parse("state").unwrap().path.is_empty());
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        for text in [
            "",
            ".",
            "a..b",
            "a.",
            "1a",
            "a-b",
            "a[0]",
            "é",
            "_branch",
            "_branch.index",
            "run.id",
            "needs",
            "result.x",
            "_last_error",
            "state._last_error",
        ] {
            assert!(!Target::parse(text).unwrap_err().into_input, "{text}");
        }
        assert!(Target::parse("input.x").unwrap_err().into_input);
        assert!(Target::parse("input").unwrap_err().into_input);
    }
}
