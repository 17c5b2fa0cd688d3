//! Equality and order over all values. Each value looked at costs a step: a small one may unfold to a huge one.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::budget::{Budget, Evaluated};
use super::value::{Seq, Val};
use crate::value::Value;

pub(super) fn equal<'t>(budget: &mut Budget, a: &Val<'t>, b: &Val<'t>) -> Evaluated<bool> {
    budget.steps(1)?;
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return Ok(a.cmp(b) == Ordering::Equal);
    }
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        budget.read(a.len().min(b.len()))?;
        return Ok(a == b);
    }
    if same(a, b) || a.is_undefined() && b.is_undefined() {
        return Ok(true);
    }
    if let (Some(x), Some(y)) = (a.list(), b.list()) {
        if a.is_tuple() != b.is_tuple() || x.len() != y.len() {
            return Ok(false);
        }
        return all(x.iter().zip(y.iter()), |(x, y)| equal(budget, &x, &y));
    }
    if a.map_len().is_some() && a.map_len() == b.map_len() {
        let (a, b) = (a.pairs(budget)?, b.pairs(budget)?);
        return all(a.iter().zip(&b), |((x, a), (y, b))| {
            budget.read(x.len().min(y.len()))?;
            Ok(x == y && equal(budget, a, b)?)
        });
    }
    Ok(a.is_null() && b.is_null())
}

fn all<T>(items: impl IntoIterator<Item = T>, mut is: impl FnMut(T) -> Evaluated<bool>) -> Evaluated<bool> {
    for item in items {
        if !is(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// First by kind, then within it; lists and maps item by item.
pub(super) fn compare<'t>(budget: &mut Budget, a: &Val<'t>, b: &Val<'t>) -> Evaluated<Ordering> {
    budget.steps(1)?;
    let by_kind = rank(a).cmp(&rank(b));
    if by_kind != Ordering::Equal || same(a, b) {
        return Ok(by_kind);
    }
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return Ok(a.cmp(b));
    }
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        budget.read(a.len().min(b.len()))?;
        return Ok(a.cmp(b));
    }
    if let (Some(x), Some(y)) = (a.list(), b.list()) {
        return lists(budget, (a, x), (b, y));
    }
    let (a, b) = (a.pairs(budget)?, b.pairs(budget)?);
    for ((x, a), (y, b)) in a.iter().zip(&b) {
        budget.read(x.len().min(y.len()))?;
        let order = x.cmp(y).then(compare(budget, a, b)?);
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(a.len().cmp(&b.len()))
}

fn lists<'t>(budget: &mut Budget, a: (&Val<'t>, Seq<'t>), b: (&Val<'t>, Seq<'t>)) -> Evaluated<Ordering> {
    let by_shape = a.0.is_tuple().cmp(&b.0.is_tuple());
    if by_shape != Ordering::Equal {
        return Ok(by_shape);
    }
    for (x, y) in a.1.iter().zip(b.1.iter()) {
        let order = compare(budget, &x, &y)?;
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(a.1.len().cmp(&b.1.len()))
}

/// Whether it is one and the same thing, which needs no look inside.
pub(super) fn same<'t>(a: &Val<'t>, b: &Val<'t>) -> bool {
    match (a, b) {
        (Val::Data(Value::List(a)), Val::Data(Value::List(b))) => Arc::ptr_eq(a, b),
        (Val::Data(Value::Map(a)), Val::Data(Value::Map(b))) => Arc::ptr_eq(a, b),
        (Val::List(a), Val::List(b)) => Rc::ptr_eq(a, b),
        (Val::Map(a), Val::Map(b)) => Rc::ptr_eq(a, b),
        (Val::Namespace(a), Val::Namespace(b)) => Rc::ptr_eq(a, b),
        (Val::Loop(a), Val::Loop(b)) => Rc::ptr_eq(a, b),
        (Val::Function(a), Val::Function(b)) => a == b,
        _ => false,
    }
}

fn rank(value: &Val<'_>) -> u8 {
    match value {
        Val::Undefined(_) | Val::Nothing => 0,
        Val::Data(Value::Null) => 1,
        Val::Data(Value::Bool(_)) => 2,
        Val::Data(Value::Int(_) | Value::Float(_)) => 3,
        Val::Data(Value::String(_)) | Val::Safe(_) => 4,
        Val::Data(Value::List(_)) | Val::List(_) | Val::Range(_) => 5,
        Val::Data(Value::Map(_)) | Val::Map(_) | Val::Namespace(_) => 6,
        Val::Loop(_) | Val::Function(_) => 7,
    }
}

/// A number to calculate with; a boolean is 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(super) fn of(value: &Val<'_>) -> Option<Number> {
        match value {
            Val::Data(Value::Bool(flag)) => Some(Number::Int(i64::from(*flag))),
            Val::Data(Value::Int(number)) => Some(Number::Int(*number)),
            Val::Data(Value::Float(number)) => Some(Number::Float(*number)),
            _ => None,
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Float(number) => number,
        }
    }

    /// By exact value: no int is rounded to a double to be compared with one.
    fn cmp(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Float(a), Number::Float(b)) => floats(a, b),
            (Number::Float(a), Number::Int(b)) => float_to_int(a, b),
            (Number::Int(a), Number::Float(b)) => float_to_int(b, a).reverse(),
        }
    }
}

fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b))
}

fn float_to_int(float: f64, int: i64) -> Ordering {
    match floats(float, int as f64) {
        Ordering::Equal => (float as i128).cmp(&i128::from(int)),
        order => order,
    }
}
