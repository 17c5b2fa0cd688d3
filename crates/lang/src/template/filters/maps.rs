//! Filters on maps, keys, and what may be absent.

use std::cmp::Ordering;

use super::super::budget::{Evaluated, fail};
use super::super::eval::Rendering;
use super::super::exprs::Call;
use super::super::value::{ListKind, ListOf, Val};
use super::lists::{Order, sorted};
use crate::value::Value;

pub(super) fn attr<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let key = call.required(0, "name")?;
    call.done()?;
    call.value.defined()?;
    Ok(rendering.item(&call.value, &key)?.unwrap_or(Val::Undefined(None)))
}

pub(super) fn default<'t>(_: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let other = call.given(0, "default_value");
    let lax = call.given(1, "boolean");
    call.done()?;
    let lax = lax.map_or(Ok(false), |lax| lax.defined().map(|()| lax.is_true()))?;
    if call.value.is_undefined() || lax && !call.value.is_true() {
        return Ok(other.unwrap_or(Val::Data(Value::str(""))));
    }
    Ok(call.value)
}

pub(super) fn items<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    let pairs = pairs(rendering, &call.value)?;
    let mut list = ListOf::default();
    for pair in pairs {
        list.push(&mut rendering.budget, pair)?;
    }
    list.done(&mut rendering.budget)
}

fn pairs<'t>(rendering: &mut Rendering<'t>, of: &Val<'t>) -> Evaluated<Vec<Val<'t>>> {
    of.defined()?;
    if of.map_len().is_none() {
        return fail(format!("a {} has no keys", of.type_name()));
    }
    let budget = &mut rendering.budget;
    let mut pairs = Vec::new();
    for (key, value) in of.pairs(budget)? {
        let mut pair = ListOf::default();
        pair.push(budget, Val::Data(Value::String(key)))?;
        pair.push(budget, value)?;
        pairs.push(pair.done_as(budget, ListKind::Tuple)?);
    }
    Ok(pairs)
}

pub(super) fn dictsort<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let case_sensitive = call.flag(0, "case_sensitive")?;
    let by_value = call.path(1, "by")?.as_deref() == Some("value");
    let reverse = call.flag(2, "reverse")?;
    call.done()?;
    let mut keyed = Vec::new();
    for pair in pairs(rendering, &call.value)? {
        let key = pair.list().and_then(|pair| pair.get(usize::from(by_value)));
        rendering.budget.item()?;
        keyed.push((key.unwrap_or(Val::Nothing), pair));
    }
    sorted(rendering, &mut keyed, Order { case_sensitive, reverse })?;
    let mut list = ListOf::default();
    for (_, pair) in keyed {
        list.push(&mut rendering.budget, pair)?;
    }
    list.done(&mut rendering.budget)
}

pub(super) fn groupby<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let Some(path) = call.path(0, "attribute")? else { return fail("`attribute` is missing") };
    let default = call.option(1, "default").unwrap_or(Val::Undefined(None));
    let order = Order { case_sensitive: call.flag(2, "case_sensitive")?, reverse: false };
    call.done()?;
    let mut keyed = Vec::new();
    for item in rendering.items_if_any(&call.value)?.iter() {
        rendering.budget.item()?;
        let key = under(rendering, item.clone(), Some(&path))?;
        keyed.push((if key.is_undefined() { default.clone() } else { key }, item));
    }
    sorted(rendering, &mut keyed, order)?;
    let mut groups = ListOf::default();
    let mut open: Option<(Val<'t>, ListOf<'t>)> = None;
    for (key, item) in keyed {
        if let Some((last, _)) = &open
            && order.compare(rendering, last, &key)? != Ordering::Equal
            && let Some((key, items)) = open.take()
        {
            close(rendering, &mut groups, key, items)?;
        }
        let (last, items) = open.get_or_insert_with(|| (key.clone(), ListOf::default()));
        *last = key;
        items.push(&mut rendering.budget, item)?;
    }
    if let Some((key, items)) = open {
        close(rendering, &mut groups, key, items)?;
    }
    groups.done(&mut rendering.budget)
}

fn close<'t>(
    rendering: &mut Rendering<'t>,
    groups: &mut ListOf<'t>,
    key: Val<'t>,
    items: ListOf<'t>,
) -> Evaluated<()> {
    let budget = &mut rendering.budget;
    let items = items.done(budget)?;
    let mut group = ListOf::default();
    group.push(budget, key)?;
    group.push(budget, items)?;
    let group = group.done_as(budget, ListKind::Group)?;
    groups.push(budget, group)
}

/// What stands under a path of keys and positions; the value itself without one. Undefined if a part is absent.
pub(super) fn under<'t>(
    rendering: &mut Rendering<'t>,
    value: Val<'t>,
    path: Option<&str>,
) -> Evaluated<Val<'t>> {
    match path {
        Some(path) => Ok(walked(rendering, value, path)?.unwrap_or(Val::Undefined(None))),
        None => Ok(value),
    }
}

/// The same where only the last part may be absent.
pub(super) fn found<'t>(rendering: &mut Rendering<'t>, value: Val<'t>, path: &str) -> Evaluated<Val<'t>> {
    match walked(rendering, value, path)? {
        Ok(value) => Ok(value),
        Err(part) => fail(format!("an item has no `{part}` on the way to `{path}`")),
    }
}

/// The value, or the part that has no parts because it is not there.
fn walked<'t, 'p>(
    rendering: &mut Rendering<'t>,
    value: Val<'t>,
    path: &'p str,
) -> Evaluated<Result<Val<'t>, &'p str>> {
    let (mut value, mut last) = (value, "");
    for part in path.split('.') {
        rendering.budget.steps(1)?;
        rendering.budget.lookup(part)?;
        if value.is_undefined() {
            return Ok(Err(last));
        }
        let next = match part.parse::<usize>() {
            Ok(at) => rendering.item(&value, &Val::int(at))?,
            Err(_) => value.attr(part),
        };
        (value, last) = (next.unwrap_or(Val::Undefined(None)), part);
    }
    Ok(Ok(value))
}
