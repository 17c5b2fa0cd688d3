//! Filters that give numbers and booleans.

use minijinja::Value as Jinja;
use minijinja::value::Kwargs;

use super::super::budget::{Evaluated, fail};
use super::super::compare::Number;
use super::super::eval::Rendering;
use super::super::exprs::Call;
use super::super::node::Op;
use super::super::value::Val;
use super::maps::under;
use crate::expr::EvalError;
use crate::value::Value;

pub(super) fn abs<'t>(_: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    call.value.defined()?;
    match &call.value {
        Val::Data(Value::Int(number)) => match number.checked_abs() {
            Some(number) => Ok(Val::Data(Value::Int(number))),
            None => fail(format!("{number} without its sign is beyond what an int can hold")),
        },
        Val::Data(Value::Float(number)) => Ok(Val::Data(Value::Float(number.abs()))),
        other => fail(format!("a {} has no sign", other.type_name())),
    }
}

pub(super) fn truth<'t>(_: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    call.value.defined()?;
    Ok(Val::bool(call.value.is_true()))
}

pub(super) fn int<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let default = call.option(0, "default");
    let base = call.option(1, "base").map_or(Some(10), |base| base.as_int());
    call.done()?;
    call.value.defined()?;
    let whole = |number: f64| (number.abs() < 9.3e18).then_some(number as i64);
    let number = match &call.value {
        Val::Nothing | Val::Data(Value::Null) => return Ok(default.unwrap_or(Val::int(0))),
        Val::Data(Value::Bool(flag)) => Some(i64::from(*flag)),
        Val::Data(Value::Int(number)) => Some(*number),
        Val::Data(Value::Float(number)) => whole(*number),
        value => match value.as_str() {
            Some(text) => {
                rendering.budget.read(text.len())?;
                parsed(text, base).or_else(|| text.parse().ok().and_then(whole))
            }
            None => None,
        },
    };
    let failed = || fail(format!("this {} is no int", call.value.type_name()));
    number.map(|number| Val::Data(Value::Int(number))).or(default).map_or_else(failed, Ok)
}

/// A whole number as it is written in a base, with the prefix that goes with it or without.
fn parsed(text: &str, base: Option<i64>) -> Option<i64> {
    let base = u32::try_from(base?).ok().filter(|base| (2..=36).contains(base))?;
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let has_prefix = digits.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let digits = if has_prefix { &digits[prefix.len()..] } else { digits };
    // More digits than any int has: not worth a copy.
    if digits.len() > 256 || digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

pub(super) fn float<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let default = call.option(0, "default");
    call.done()?;
    call.value.defined()?;
    let number = match &call.value {
        Val::Nothing | Val::Data(Value::Null) => {
            return Ok(default.unwrap_or(Val::Data(Value::Float(0.0))));
        }
        value => match (Number::of(value), value.as_str()) {
            (Some(number), _) => Some(number.as_f64()),
            (None, Some(text)) => {
                rendering.budget.read(text.len())?;
                text.parse().ok()
            }
            (None, None) => None,
        },
    };
    let failed = || fail(format!("this {} is no number", call.value.type_name()));
    number.map(|number| Val::Data(Value::Float(number))).or(default).map_or_else(failed, Ok)
}

/// minijinja's own: it looks at one number and makes one.
pub(super) fn round<'t>(_: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let precision = call.option(0, "precision").map_or(Some(0), |precision| precision.as_int());
    let Some(precision) = precision.and_then(|precision| i32::try_from(precision).ok()) else {
        return fail("`precision` must be a whole number");
    };
    let method = call.option(1, "method");
    let method = method.as_ref().map_or("common", |method| method.as_str().unwrap_or_default());
    call.value.defined()?;
    let number = match &call.value {
        Val::Data(Value::Int(number)) => Jinja::from(*number),
        Val::Data(Value::Float(number)) => Jinja::from(*number),
        other => return fail(format!("a {} cannot be rounded", other.type_name())),
    };
    let rounded = minijinja::filters::round(
        number,
        Some(precision),
        Some(method),
        std::iter::empty::<(String, Jinja)>().collect::<Kwargs>(),
    );
    let rounded = rounded.map_err(|error| EvalError::new(error.detail().unwrap_or_default()))?;
    let value = match rounded.as_i64().filter(|_| rounded.is_integer()) {
        Some(number) => Some(Value::Int(number)),
        None if rounded.is_integer() => None,
        None => f64::try_from(rounded).ok().map(Value::Float),
    };
    value.map_or_else(
        || fail("the rounded number is beyond what an int can hold"),
        |value| Ok(Val::Data(value)),
    )
}

pub(super) fn sum<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let path = call.path(0, "attribute")?;
    let mut sum = call.option(1, "start").unwrap_or(Val::int(0));
    call.done()?;
    for item in rendering.items(&call.value)?.iter() {
        rendering.budget.steps(1)?;
        let item = under(rendering, item, path.as_deref())?;
        if item.is_undefined() {
            continue;
        }
        if Number::of(&sum).is_some() && Number::of(&item).is_none() {
            return fail(format!("a {} cannot be summed up", item.type_name()));
        }
        sum = rendering.calculate(Op::Add, &sum, &item)?;
    }
    Ok(sum)
}
