//! Functions on lists and maps.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::EvalError;
use super::eval::{Evaluated, Work};
use super::funcs::wrong;
use super::ops::{compare, total_order};
use super::text::string;
use crate::value::Value;

fn list(value: &Value) -> Result<&[Value], EvalError> {
    value.as_list().ok_or_else(|| wrong("a list", value))
}

pub(super) fn size(work: &mut Work, args: &[Value]) -> Evaluated {
    let size = match &args[0] {
        Value::String(text) => {
            work.spend_bytes(text.len())?;
            text.chars().count()
        }
        Value::List(items) => items.len(),
        Value::Map(map) => map.len(),
        other => return Err(wrong("a string, list or map", other)),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

pub(super) fn first(_: &mut Work, args: &[Value]) -> Evaluated {
    list(&args[0])?.first().cloned().ok_or_else(|| EvalError::new("the list is empty"))
}

pub(super) fn last(_: &mut Work, args: &[Value]) -> Evaluated {
    list(&args[0])?.last().cloned().ok_or_else(|| EvalError::new("the list is empty"))
}

/// From one place up to another, not with it; below zero they count from the end. What lies outside is left out.
pub(super) fn slice(work: &mut Work, args: &[Value]) -> Evaluated {
    let items = list(&args[0])?;
    let place = |value: &Value| {
        let at = value.as_i64().ok_or_else(|| wrong("an int", value))?;
        let from_end = items.len().saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX));
        let at = if at < 0 { from_end } else { usize::try_from(at).unwrap_or(usize::MAX) };
        Ok::<usize, EvalError>(at.min(items.len()))
    };
    let from = place(&args[1])?;
    let to = args.get(2).map_or(Ok(items.len()), place)?;
    let kept = items.get(from..to).unwrap_or_default();
    work.spend(kept.len())?;
    Ok(Value::list(kept.iter().cloned()))
}

/// All numbers, all strings or all booleans, in rising order; equal elements keep theirs.
pub(super) fn sort(work: &mut Work, args: &[Value]) -> Evaluated {
    let mut items = list(&args[0])?.to_vec();
    work.spend(items.len())?;
    if let Some(odd) = items.iter().find(|item| compare(&items[0], item).is_none()) {
        return Err(wrong("only numbers, only strings or only booleans", odd));
    }
    items.sort_by(total_order);
    Ok(Value::from(items))
}

/// The first of each group of equal elements, in their order.
pub(super) fn unique(work: &mut Work, args: &[Value]) -> Evaluated {
    let items = list(&args[0])?;
    // Elements are compared to the bottom, several times each.
    if !args[0].fits(work.bytes_left()) {
        work.spend(usize::MAX)?;
    }
    work.spend_bytes(args[0].size())?;
    let mut seen = BTreeSet::new();
    Ok(Value::list(items.iter().filter(|item| seen.insert(Ordered(item))).cloned()))
}

struct Ordered<'a>(&'a Value);

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        total_order(self.0, other.0)
    }
}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered<'_> {}

/// `get(value, 'a.b[0].c', default)`: the default, or null, where any part is absent.
pub(super) fn get(_: &mut Work, args: &[Value]) -> Evaluated {
    let path = string(&args[1])?;
    let found = parts(path).ok_or_else(|| wrong("a path such as 'a.b[0]'", &args[1]))?.into_iter().try_fold(
        &args[0],
        |value, part| match part {
            Part::Key(key) => value.get(key),
            Part::Index(at) => value.as_list()?.get(at),
        },
    );
    Ok(found.or(args.get(2)).cloned().unwrap_or_default())
}

enum Part<'a> {
    Key(&'a str),
    Index(usize),
}

fn parts(path: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    for (at, segment) in path.split('.').enumerate() {
        let (key, indexes) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
        if !key.is_empty() {
            parts.push(Part::Key(key));
        } else if at > 0 || indexes.is_empty() {
            return None;
        }
        if !indexes.is_empty() {
            for index in indexes.strip_prefix('[')?.strip_suffix(']')?.split("][") {
                parts.push(Part::Index(index.parse().ok()?));
            }
        }
    }
    Some(parts)
}

/// The keys before the first index: what `get` with this path reads of a map.
pub(super) fn leading_keys(path: &str) -> Vec<Arc<str>> {
    let keys = parts(path).unwrap_or_default().into_iter().map_while(|part| match part {
        Part::Key(key) => Some(Arc::from(key)),
        Part::Index(_) => None,
    });
    keys.collect()
}
