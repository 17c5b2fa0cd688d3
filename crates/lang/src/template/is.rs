//! The tests of templates: `value is test`. What they are for is in `words.rs`.

use super::budget::{Evaluated, fail};
use super::compare::{Number, equal, same};
use super::eval::Rendering;
use super::exprs::Call;
use super::filters;
use super::node::Comparison;
use super::value::Val;
use crate::value::Value;

pub(super) type Test = for<'r, 't> fn(&'r mut Rendering<'t>, Call<'t>) -> Evaluated<bool>;

pub(super) fn find(name: &str) -> Option<Test> {
    Some(match name {
        "boolean" => |_, call| kind(&call, |value| matches!(value, Val::Data(Value::Bool(_)))),
        "defined" => |_, call| kind(&call, |value| !value.is_undefined()),
        "divisibleby" => divisible_by,
        "endingwith" => |rendering, call| ends(rendering, call, |text, part| text.ends_with(part)),
        "eq" | "equalto" | "==" => |rendering, call| compared(rendering, call, Comparison::Eq),
        "escaped" | "safe" => |_, call| kind(&call, |value| matches!(value, Val::Safe(_))),
        "even" => |_, call| kind(&call, |value| value.as_int().is_some_and(|number| number % 2 == 0)),
        "false" => |_, call| kind(&call, |value| matches!(value, Val::Data(Value::Bool(false)))),
        "filter" => {
            |_, call| kind(&call, |value| value.as_str().is_some_and(|name| filters::find(name).is_some()))
        }
        "float" => |_, call| kind(&call, |value| matches!(value, Val::Data(Value::Float(_)))),
        "ge" | ">=" => |rendering, call| compared(rendering, call, Comparison::Ge),
        "greaterthan" | "gt" | ">" => |rendering, call| compared(rendering, call, Comparison::Gt),
        "in" => is_in,
        "int" | "integer" => |_, call| kind(&call, |value| matches!(value, Val::Data(Value::Int(_)))),
        "iterable" => |_, call| kind(&call, has_items),
        "le" | "<=" => |rendering, call| compared(rendering, call, Comparison::Le),
        "lessthan" | "lt" | "<" => |rendering, call| compared(rendering, call, Comparison::Lt),
        "lower" => |rendering, call| cased(rendering, &call, char::is_lowercase, char::is_uppercase),
        "mapping" => |_, call| kind(&call, Val::is_map),
        "ne" | "!=" => |rendering, call| compared(rendering, call, Comparison::Ne),
        "none" => |_, call| kind(&call, Val::is_null),
        "number" => |_, call| kind(&call, |value| Number::of(value).is_some()),
        "odd" => |_, call| kind(&call, |value| value.as_int().is_some_and(|number| number % 2 != 0)),
        "sameas" => same_as,
        "sequence" => |_, call| kind(&call, |value| value.is_list() || value.is_undefined()),
        "startingwith" => |rendering, call| ends(rendering, call, |text, part| text.starts_with(part)),
        "string" => |_, call| kind(&call, |value| value.as_str().is_some()),
        "test" => |_, call| kind(&call, |value| value.as_str().is_some_and(|name| find(name).is_some())),
        "true" => |_, call| kind(&call, |value| matches!(value, Val::Data(Value::Bool(true)))),
        "undefined" => |_, call| kind(&call, Val::is_undefined),
        "upper" => |rendering, call| cased(rendering, &call, char::is_uppercase, char::is_lowercase),
        _ => return None,
    })
}

/// A test that takes no parameters.
fn kind<'t>(call: &Call<'t>, is: impl Fn(&Val<'t>) -> bool) -> Evaluated<bool> {
    call.done()?;
    Ok(is(&call.value))
}

fn has_items(value: &Val<'_>) -> bool {
    let whole = value.as_str().is_some() || value.is_list() || value.is_map();
    whole || value.is_undefined() || value.is_null()
}

fn other<'t>(call: &mut Call<'t>) -> Evaluated<Val<'t>> {
    let other = call.given(0, "other");
    call.done()?;
    other.map_or_else(|| fail("the test needs something to compare with"), Ok)
}

fn compared<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>, how: Comparison) -> Evaluated<bool> {
    let other = other(&mut call)?;
    rendering.compared(how, &call.value, &other)
}

fn is_in<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<bool> {
    let other = other(&mut call)?;
    other.defined()?;
    let holds = other.as_str().is_some() || other.is_list() || other.is_map();
    Ok(holds && rendering.contains(&other, &call.value)?)
}

fn same_as<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<bool> {
    let other = other(&mut call)?;
    let whole = |value: &Val<'_>| value.is_list() || value.is_map() || matches!(value, Val::Function(_));
    if whole(&call.value) || whole(&other) {
        return Ok(same(&call.value, &other));
    }
    let kinds = call.value.type_name() == other.type_name();
    Ok(kinds && equal(&mut rendering.budget, &call.value, &other)?)
}

fn divisible_by<'t>(_: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<bool> {
    let other = other(&mut call)?;
    Ok(match (Number::of(&call.value), Number::of(&other)) {
        (Some(Number::Int(_)), Some(Number::Int(0))) => return fail("nothing is divisible by 0"),
        (Some(Number::Int(a)), Some(Number::Int(b))) => a.wrapping_rem(b) == 0,
        (Some(a), Some(b)) => a.as_f64() % b.as_f64() == 0.0,
        _ => false,
    })
}

fn ends<'t>(
    rendering: &mut Rendering<'t>,
    mut call: Call<'t>,
    is: fn(&str, &str) -> bool,
) -> Evaluated<bool> {
    let part = other(&mut call)?;
    call.value.defined()?;
    part.defined()?;
    let (text, part) = (rendering.shown(&call.value)?, rendering.shown(&part)?);
    rendering.budget.read(part.len())?;
    Ok(is(&text, &part))
}

/// Some letters of one case and none of the other.
fn cased<'t>(
    rendering: &mut Rendering<'t>,
    call: &Call<'t>,
    wanted: fn(char) -> bool,
    other: fn(char) -> bool,
) -> Evaluated<bool> {
    call.done()?;
    let Some(text) = call.value.as_str() else { return Ok(false) };
    rendering.budget.steps(text.len() / 8)?;
    let changes = |letter: char| !letter.to_lowercase().eq([letter]) || !letter.to_uppercase().eq([letter]);
    let mut some = false;
    for letter in text.chars() {
        if other(letter) || !wanted(letter) && changes(letter) {
            return Ok(false);
        }
        some |= wanted(letter);
    }
    Ok(some)
}
