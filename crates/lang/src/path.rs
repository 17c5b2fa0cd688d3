//! Target paths: where a mapping writes.
//!
//! A target is parsed once, from `state.x`, `output.x`, `_branch.output.x` or bare `x`. It names map keys, and it
//! may append to the list that is there: `x[]` one value, `x[*]` each of a list. It never indexes lists, and it never
//! names what a run may read but not write.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::Value;

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
    pub way: Way,
}

/// How a value comes to where it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// In place of what was there.
    #[default]
    Replace,
    /// `x[]`: behind the last of the list that is there. Nothing there counts as an empty list.
    Append,
    /// `x[*]`: each of its items, in order.
    AppendEach,
}

impl Way {
    fn as_str(self) -> &'static str {
        match self {
            Way::Replace => "",
            Way::Append => "[]",
            Way::AppendEach => "[*]",
        }
    }
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
    /// Replaces what stands at a path of the state.
    pub fn state(path: Vec<Arc<str>>) -> Target {
        Target { root: Root::State, path, way: Way::Replace }
    }

    /// What stands there once `value` has been written over `before`. None: what is there is no list to append to, or
    /// what is to be appended one by one is none.
    pub fn written(&self, before: Option<&Value>, value: Value) -> Option<Value> {
        if self.way == Way::Replace {
            return Some(value);
        }
        let mut all = before.cloned().unwrap_or_default();
        self.add(&mut all, value).then_some(all)
    }

    /// The same in place, for a target that appends: nothing is copied if nobody else holds the list.
    pub fn add(&self, list: &mut Value, value: Value) -> bool {
        match self.way {
            Way::Replace => {
                *list = value;
                true
            }
            Way::Append => list.append([value]),
            Way::AppendEach => match value {
                Value::List(items) => list.append(items.iter().cloned()),
                _ => false,
            },
        }
    }

    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let ways = [Way::Append, Way::AppendEach].into_iter();
        let mut ways = ways.filter_map(|way| Some((way, text.strip_suffix(way.as_str())?)));
        let (way, place) = ways.next().unwrap_or((Way::Replace, text));
        if way != Way::Replace && matches!(place, "state" | "output") {
            return refuse(format!("`{place}` is an object: only a list can be appended to"));
        }
        let keys: Vec<&str> = place.split('.').collect();
        if let Some(key) = keys.iter().find(|key| !is_key(key)) {
            return refuse(match *key {
                "" if text.is_empty() => "a target path is missing".to_owned(),
                "" => format!("`{text}` has an empty segment"),
                key => format!(
                    "`{key}` in `{text}` is no key: keys are letters, digits and `_`, and `[]` or `[*]` at the end appends"
                ),
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
        Ok(Target { root, path: path.iter().map(|key| Arc::from(*key)).collect(), way })
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
        self.path.iter().try_for_each(|key| write!(f, ".{key}"))?;
        f.write_str(self.way.as_str())
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
            ("x[]", "state.x[]"),
            ("output.x.y[*]", "output.x.y[*]"),
            ("_branch.output.y[]", "_branch.output.y[]"),
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
            "a[].b",
            "[]",
            "state[]",
            "output[*]",
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
