//! Operators on values: arithmetic, equality, order, membership.

use std::cmp::Ordering;
use std::sync::Arc;

use super::EvalError;
use super::eval::{Evaluated, Work};
use super::node::Op;
use crate::value::Value;

/// A value as a message shows it: its type, and itself if it is short.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::List(items) => format!("a list of {}", items.len()),
        Value::Map(map) => format!("a map of {}", map.len()),
        Value::String(text) if text.len() > 40 => format!("a string of {} bytes", text.len()),
        other => format!("the {} {other}", other.type_name()),
    }
}

pub(super) fn mismatch(op: Op, left: &Value, right: &Value) -> EvalError {
    let symbol = op.symbol();
    let hint = match (left, right) {
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => {
            ": they do not mix, write double(x) around the int"
        }
        (Value::String(_), _) | (_, Value::String(_)) if op == Op::Add => {
            ": write string(x) around the other"
        }
        (Value::Null, _) | (_, Value::Null) => ": one side is null",
        _ => "",
    };
    EvalError::new(format!("cannot apply `{symbol}` to {} and {}{hint}", brief(left), brief(right)))
}

pub(super) fn negate(value: &Value) -> Evaluated {
    match value {
        Value::Int(number) => number.checked_neg().map(Value::Int).ok_or_else(|| overflow("-")),
        Value::Float(number) => Ok(Value::Float(-number)),
        other => Err(EvalError::new(format!("cannot negate {}", brief(other)))),
    }
}

pub(super) fn arithmetic(work: &mut Work, op: Op, left: &Value, right: &Value) -> Evaluated {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => ints(op, *a, *b),
        (Value::Float(a), Value::Float(b)) => finite(match op {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div if *b == 0.0 => return Err(EvalError::new("division by zero")),
            Op::Div => a / b,
            _ => return Err(EvalError::new("`%` is for ints: write int(x)")),
        }),
        (Value::String(a), Value::String(b)) if op == Op::Add => {
            work.spend_bytes(a.len() + b.len())?;
            Ok(Value::from([&**a, &**b].concat()))
        }
        (Value::List(a), Value::List(b)) if op == Op::Add => {
            work.spend(a.len() + b.len())?;
            Ok(Value::from([a.as_slice(), b.as_slice()].concat()))
        }
        _ => Err(mismatch(op, left, right)),
    }
}

fn ints(op: Op, a: i64, b: i64) -> Evaluated {
    if b == 0 && matches!(op, Op::Div | Op::Rem) {
        return Err(EvalError::new("division by zero"));
    }
    let result = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    result.map(Value::Int).ok_or_else(|| overflow(op.symbol()))
}

fn overflow(symbol: &str) -> EvalError {
    EvalError::new(format!("the result of `{symbol}` does not fit an int"))
}

/// JSON has no infinities: a run that kept one in memory would differ from its own replay.
pub(super) fn finite(number: f64) -> Evaluated {
    if number.is_finite() {
        Ok(Value::Float(number))
    } else {
        Err(EvalError::new("the result is no finite number"))
    }
}

/// CEL equality: numbers by value whatever their type, other types never equal each other.
pub(super) fn equal(work: &mut Work, a: &Value, b: &Value) -> Result<bool, EvalError> {
    work.spend(1)?;
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            if Arc::ptr_eq(a, b) || a.len() != b.len() {
                return Ok(a.len() == b.len());
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(work, a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(a), Value::Map(b)) => {
            if Arc::ptr_eq(a, b) || a.len() != b.len() {
                return Ok(a.len() == b.len());
            }
            for ((a_key, a), (b_key, b)) in a.iter().zip(b.iter()) {
                if a_key != b_key || !equal(work, a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Null, Value::Null) => Ok(true),
        _ => Ok(compare(a, b) == Some(Ordering::Equal)),
    }
}

/// The order of two values of one kind: numbers, strings or booleans.
pub(super) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Float(b)) => compare_mixed(*a, *b),
        (Value::Float(a), Value::Int(b)) => compare_mixed(*b, *a).map(Ordering::reverse),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Compares exactly: converting either side to the other's type would round it.
fn compare_mixed(int: i64, float: f64) -> Option<Ordering> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= LIMIT {
        return Some(Ordering::Less);
    }
    if float < -LIMIT {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(int.cmp(&(whole as i64)).then(whole.partial_cmp(&float)?))
}

pub(super) fn contains(work: &mut Work, container: &Value, item: &Value) -> Result<bool, EvalError> {
    match container {
        Value::List(items) => {
            for other in items.iter() {
                if equal(work, other, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => Ok(item.as_str().is_some_and(|key| map.contains_key(key))),
        Value::String(_) => {
            Err(EvalError::new("`in` looks into lists and maps: for text write text.contains(part)"))
        }
        other => Err(EvalError::new(format!("`in` looks into lists and maps, not {}", brief(other)))),
    }
}

/// A total order over all values, with equal numbers equal: for `sort` and `unique`.
pub(super) fn total_order(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::String(_) => 3,
        Value::List(_) => 4,
        Value::Map(_) => 5,
    };
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            let inner = a.iter().zip(b.iter()).map(|(a, b)| total_order(a, b)).find(|order| order.is_ne());
            inner.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let pairs = a.iter().zip(b.iter());
            let inner = pairs.map(|((ak, a), (bk, b))| ak.cmp(bk).then_with(|| total_order(a, b)));
            inner.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => compare(a, b).unwrap_or_else(|| rank(a).cmp(&rank(b))),
    }
}
