//! The functions of templates.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::budget::{Evaluated, fail};
use super::eval::Rendering;
use super::exprs::Call;
use super::value::{MapOf, Range, Val};

/// How many numbers a range may have.
const RANGE_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Function {
    Dict,
    Namespace,
    Range,
}

pub(super) fn find(name: &str) -> Option<Function> {
    match name {
        "dict" => Some(Function::Dict),
        "namespace" => Some(Function::Namespace),
        "range" => Some(Function::Range),
        _ => None,
    }
}

pub(super) fn call<'t>(
    rendering: &mut Rendering<'t>,
    function: Function,
    call: Call<'t>,
) -> Evaluated<Val<'t>> {
    match function {
        Function::Dict => entries(rendering, call)?.done(&mut rendering.budget),
        Function::Namespace => {
            let entries = entries(rendering, call)?.into_entries();
            rendering.budget.container()?;
            Ok(Val::Namespace(Rc::new(RefCell::new(entries))))
        }
        Function::Range => range(call),
    }
}

/// The map that is given, and what is given by name over it.
fn entries<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<MapOf<'t>> {
    let mut map = MapOf::default();
    let budget = &mut rendering.budget;
    if let Some(value) = call.positional.first() {
        if !value.is_map() && !value.is_undefined() {
            return fail(format!("a map is expected, not a {}", value.type_name()));
        }
        for (key, value) in value.pairs(budget)? {
            map.insert(budget, key, value)?;
        }
    }
    if call.positional.len() > 1 {
        return fail("too many parameters");
    }
    for (key, value) in call.named.drain(..) {
        map.insert(budget, key, value)?;
    }
    Ok(map)
}

fn range(mut call: Call<'_>) -> Evaluated<Val<'_>> {
    let first = number(call.required(0, "lower")?)?;
    let second = call.option(1, "upper").map(number).transpose()?;
    let step = call.option(2, "step").map_or(Ok(1), number)?;
    call.done()?;
    let (start, end) = second.map_or((0, first), |second| (first, second));
    if step == 0 {
        return fail("the step of a range cannot be 0");
    }
    let distance = (i128::from(end) - i128::from(start)) * i128::from(step.signum());
    let step_size = i128::from(step).abs();
    let len = if distance <= 0 { 0 } else { (distance + step_size - 1) / step_size };
    match usize::try_from(len) {
        Ok(len) if len <= RANGE_MAX => Ok(Val::Range(Range { start, step, len })),
        _ => fail(format!("a range has at most {RANGE_MAX} numbers")),
    }
}

fn number(value: Val<'_>) -> Evaluated<i64> {
    value.defined()?;
    let kind = value.type_name();
    value.as_int().map_or_else(|| fail(format!("a range is made of whole numbers, not of a {kind}")), Ok)
}

/// A key of a map: a text, or a whole number or boolean as JSON writes it.
pub(super) fn key(value: &Val<'_>) -> Option<Arc<str>> {
    use crate::value::Value;
    match value {
        Val::Data(Value::String(text)) | Val::Safe(text) => Some(text.clone()),
        Val::Data(number @ (Value::Int(_) | Value::Bool(_))) => Some(number.to_string().into()),
        _ => None,
    }
}
