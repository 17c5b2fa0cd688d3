//! Filters on lists, which take the keys of a map and the letters of a text for one as well.

use std::cmp::Ordering;

use super::super::budget::{Evaluated, fail};
use super::super::compare::compare;
use super::super::eval::Rendering;
use super::super::exprs::Call;
use super::super::is;
use super::super::value::{ListKind, ListOf, MapOf, Val};
use super::find;
use super::maps::{found, under};
use crate::value::Value;

pub(super) fn length<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    call.value.defined()?;
    if let Some(text) = call.value.as_str() {
        rendering.budget.read(text.len())?;
        return Ok(Val::int(text.chars().count()));
    }
    let len = call.value.list().map(|items| items.len()).or(call.value.map_len());
    len.map_or_else(|| fail(format!("a {} has no length", call.value.type_name())), |len| Ok(Val::int(len)))
}

pub(super) fn first<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    end_of(rendering, call, |text| text.chars().next(), |len| (len > 0).then_some(0))
}

pub(super) fn last<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    end_of(rendering, call, |text| text.chars().next_back(), |len| len.checked_sub(1))
}

fn end_of<'t>(
    rendering: &mut Rendering<'t>,
    call: Call<'t>,
    letter: fn(&str) -> Option<char>,
    position: fn(usize) -> Option<usize>,
) -> Evaluated<Val<'t>> {
    call.done()?;
    call.value.defined()?;
    let item = match call.value.as_str() {
        Some(text) => {
            letter(text).map(|letter| rendering.text(letter.encode_utf8(&mut [0; 4]))).transpose()?
        }
        None if call.value.is_list() || call.value.map_len().is_some() => {
            let items = rendering.items(&call.value)?;
            position(items.len()).and_then(|at| items.get(at))
        }
        None => return fail(format!("a {} has no items", call.value.type_name())),
    };
    Ok(item.unwrap_or(Val::Undefined(None)))
}

pub(super) fn list<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    let items = rendering.items(&call.value)?;
    collect(rendering, items.iter())
}

fn collect<'t>(rendering: &mut Rendering<'t>, items: impl Iterator<Item = Val<'t>>) -> Evaluated<Val<'t>> {
    let mut list = ListOf::default();
    for item in items {
        rendering.budget.steps(1)?;
        list.push(&mut rendering.budget, item)?;
    }
    list.done(&mut rendering.budget)
}

pub(super) fn reverse<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    if let Some(text) = call.value.as_str() {
        rendering.budget.text(text.len())?;
        let text: String = text.chars().rev().collect();
        return Ok(match call.value {
            Val::Safe(_) => Val::Safe(text.into()),
            _ => Val::Data(Value::from(text)),
        });
    }
    if call.value.is_undefined() || call.value.is_null() {
        return Ok(call.value);
    }
    let items = rendering.items(&call.value)?;
    collect(rendering, items.iter().rev())
}

fn count(call: &mut Call<'_>) -> Evaluated<usize> {
    match call.required(0, "count")?.as_int().and_then(|count| usize::try_from(count).ok()) {
        Some(count) if count > 0 => Ok(count),
        _ => fail("`count` must be a whole number above 0"),
    }
}

pub(super) fn batch<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let count = count(&mut call)?;
    let fill = call.option(1, "fill_with");
    call.done()?;
    let items = rendering.items(&call.value)?;
    let budget = &mut rendering.budget;
    let (mut batches, mut batch) = (ListOf::default(), ListOf::default());
    for item in items.iter() {
        budget.steps(1)?;
        if batch.len() == count {
            let full = std::mem::take(&mut batch).done(budget)?;
            batches.push(budget, full)?;
        }
        batch.push(budget, item)?;
    }
    if batch.len() > 0 {
        while let Some(fill) = fill.as_ref().filter(|_| batch.len() < count) {
            budget.steps(1)?;
            batch.push(budget, fill.clone())?;
        }
        let rest = batch.done(budget)?;
        batches.push(budget, rest)?;
    }
    batches.done(budget)
}

pub(super) fn slice<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let count = count(&mut call)?;
    let fill = call.option(1, "fill_with");
    call.done()?;
    let items = rendering.items(&call.value)?;
    let budget = &mut rendering.budget;
    let (each, longer) = (items.len() / count, items.len() % count);
    let mut slices = ListOf::default();
    let mut rest = items.iter();
    for at in 0..count {
        budget.steps(1)?;
        let mut slice = ListOf::default();
        for item in rest.by_ref().take(each + usize::from(at < longer)) {
            budget.steps(1)?;
            slice.push(budget, item)?;
        }
        if let Some(fill) = fill.as_ref().filter(|_| at >= longer) {
            slice.push(budget, fill.clone())?;
        }
        let slice = slice.done(budget)?;
        slices.push(budget, slice)?;
    }
    slices.done(budget)
}

pub(super) fn chain<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let others = call.rest(0);
    call.done()?;
    let all = || std::iter::once(&call.value).chain(&others);
    if all().all(|value| value.map_len().is_some()) {
        let mut map = MapOf::default();
        for value in all() {
            for (key, value) in value.pairs(&mut rendering.budget)? {
                map.insert(&mut rendering.budget, key, value)?;
            }
        }
        return map.done(&mut rendering.budget);
    }
    let mut list = ListOf::default();
    for value in all() {
        for item in rendering.items_if_any(value)?.iter() {
            rendering.budget.steps(1)?;
            list.push(&mut rendering.budget, item)?;
        }
    }
    list.done(&mut rendering.budget)
}

pub(super) fn zip<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let others = call.rest(0);
    call.done()?;
    let mut all = vec![rendering.items_if_any(&call.value)?];
    for other in &others {
        all.push(rendering.items_if_any(other)?);
    }
    let len = all.iter().map(|items| items.len()).min().unwrap_or(0);
    let budget = &mut rendering.budget;
    let mut list = ListOf::default();
    for at in 0..len {
        let mut together = ListOf::default();
        for item in all.iter().filter_map(|items| items.get(at)) {
            budget.steps(1)?;
            together.push(budget, item)?;
        }
        let together = together.done_as(budget, ListKind::Tuple)?;
        list.push(budget, together)?;
    }
    list.done(budget)
}

pub(super) fn map<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let mut list = ListOf::default();
    if call.positional.is_empty() {
        let attribute = call.required(0, "attribute")?;
        let default = call.given(1, "default").filter(|default| !default.is_undefined());
        call.done()?;
        for item in rendering.items(&call.value)?.iter() {
            rendering.budget.steps(1)?;
            let part = match (attribute.as_str(), &default) {
                (Some(path), None) => found(rendering, item, path)?,
                (Some(path), Some(_)) => under(rendering, item, Some(path))?,
                (None, _) => rendering.item(&item, &attribute)?.unwrap_or(Val::Undefined(None)),
            };
            let part = if part.is_undefined() { default.clone().unwrap_or(part) } else { part };
            list.push(&mut rendering.budget, part)?;
        }
        return list.done(&mut rendering.budget);
    }
    let name = call.required(0, "filter")?;
    let Some(filter) = name.as_str().and_then(find) else {
        return fail(match name.as_str() {
            Some(name) => format!("there is no filter `{name}`"),
            None => "the name of a filter must be a text".to_owned(),
        });
    };
    for item in rendering.items(&call.value)?.iter() {
        let each = applied_to(rendering, &call, item, 1)?;
        // A filter may be this one again.
        rendering.enter()?;
        let item = filter(rendering, each)?;
        rendering.depth -= 1;
        list.push(&mut rendering.budget, item)?;
    }
    list.done(&mut rendering.budget)
}

/// The same call for one item, without the parameters that say what is called.
fn applied_to<'t>(
    rendering: &mut Rendering<'t>,
    call: &Call<'t>,
    item: Val<'t>,
    skip: usize,
) -> Evaluated<Call<'t>> {
    rendering.budget.steps(1 + call.positional.len() + call.named.len())?;
    let mut each = Call::new(item);
    each.positional = call.positional.iter().skip(skip).cloned().collect();
    each.named = call.named.clone();
    Ok(each)
}

pub(super) fn select<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    chosen(rendering, call, None, true)
}

pub(super) fn reject<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    chosen(rendering, call, None, false)
}

pub(super) fn selectattr<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    chosen_by_attribute(rendering, call, true)
}

pub(super) fn rejectattr<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    chosen_by_attribute(rendering, call, false)
}

fn chosen_by_attribute<'t>(
    rendering: &mut Rendering<'t>,
    mut call: Call<'t>,
    wanted: bool,
) -> Evaluated<Val<'t>> {
    let attribute = call.required(0, "attr")?;
    let path = rendering.shown(&attribute)?;
    call.positional.remove(0);
    chosen(rendering, call, Some(&path), wanted)
}

/// The items, or what stands under their path, that pass a test or fail it.
fn chosen<'t>(
    rendering: &mut Rendering<'t>,
    mut call: Call<'t>,
    path: Option<&str>,
    wanted: bool,
) -> Evaluated<Val<'t>> {
    let test = match call.option(0, "test") {
        None => None,
        Some(name) => {
            let name = rendering.shown(&name)?;
            let Some(test) = is::find(&name) else { return fail(format!("there is no test `{name}`")) };
            Some(test)
        }
    };
    let mut list = ListOf::default();
    for item in rendering.items(&call.value)?.iter() {
        let looked_at = match path {
            Some(path) => found(rendering, item.clone(), path)?,
            None => item.clone(),
        };
        let each = applied_to(rendering, &call, looked_at, 1)?;
        let passes = match test {
            Some(test) => test(rendering, each)?,
            None => each.value.is_true(),
        };
        if passes == wanted {
            list.push(&mut rendering.budget, item)?;
        }
    }
    list.done(&mut rendering.budget)
}

#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) case_sensitive: bool,
    pub(super) reverse: bool,
}

impl Order {
    pub(super) fn compare<'t>(
        self,
        rendering: &mut Rendering<'t>,
        a: &Val<'t>,
        b: &Val<'t>,
    ) -> Evaluated<Ordering> {
        let budget = &mut rendering.budget;
        let order = match (a.as_str(), b.as_str()) {
            (Some(a), Some(b)) if !self.case_sensitive => {
                budget.steps(1)?;
                budget.read(a.len().min(b.len()))?;
                let (a, b) = (a.bytes(), b.bytes());
                a.map(|byte| byte.to_ascii_lowercase()).cmp(b.map(|byte| byte.to_ascii_lowercase()))
            }
            _ => compare(budget, a, b)?,
        };
        Ok(if self.reverse { order.reverse() } else { order })
    }
}

/// Sorts by the first of each pair; equal ones stay as they are.
pub(super) fn sorted<'t>(
    rendering: &mut Rendering<'t>,
    keyed: &mut [(Val<'t>, Val<'t>)],
    order: Order,
) -> Evaluated<()> {
    let mut result = Ok(());
    keyed.sort_by(|(a, _), (b, _)| match &result {
        // Once it has failed nothing is compared any more.
        Err(_) => Ordering::Equal,
        Ok(()) => order.compare(rendering, a, b).unwrap_or_else(|error| {
            result = Err(error);
            Ordering::Equal
        }),
    });
    result
}

pub(super) fn sort<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let reverse = call.flag(0, "reverse")?;
    let order = Order { case_sensitive: call.flag(1, "case_sensitive")?, reverse };
    let paths = call.path(2, "attribute")?;
    call.done()?;
    let paths: Vec<&str> = paths.iter().flat_map(|paths| paths.split(',')).map(str::trim).collect();
    let mut keyed = Vec::new();
    for item in rendering.items(&call.value)?.iter() {
        rendering.budget.item()?;
        let key = match paths.as_slice() {
            [] => item.clone(),
            [path] => under(rendering, item.clone(), Some(path))?,
            paths => parts(rendering, &item, paths, order)?,
        };
        keyed.push((key, item));
    }
    sorted(rendering, &mut keyed, order)?;
    collect(rendering, keyed.into_iter().map(|(_, item)| item))
}

fn parts<'t>(
    rendering: &mut Rendering<'t>,
    item: &Val<'t>,
    paths: &[&str],
    order: Order,
) -> Evaluated<Val<'t>> {
    let mut key = ListOf::default();
    for path in paths {
        let part = under(rendering, item.clone(), Some(path))?;
        let part = match part.as_str() {
            Some(text) if !order.case_sensitive => {
                rendering.budget.text(text.len())?;
                Val::Data(Value::from(text.to_ascii_lowercase()))
            }
            _ => part,
        };
        key.push(&mut rendering.budget, part)?;
    }
    key.done(&mut rendering.budget)
}

pub(super) fn min<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    extreme(rendering, call, |order| order == Ordering::Less)
}

pub(super) fn max<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    extreme(rendering, call, |order| order != Ordering::Less)
}

fn extreme<'t>(
    rendering: &mut Rendering<'t>,
    mut call: Call<'t>,
    replaces: fn(Ordering) -> bool,
) -> Evaluated<Val<'t>> {
    let order = Order { case_sensitive: call.flag(0, "case_sensitive")?, reverse: false };
    let path = call.path(1, "attribute")?;
    call.done()?;
    let mut best: Option<(Val<'t>, Val<'t>)> = None;
    for item in rendering.items(&call.value)?.iter() {
        let key = under(rendering, item.clone(), path.as_deref())?;
        let better = match &best {
            None => true,
            Some((best, _)) => replaces(order.compare(rendering, &key, best)?),
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Val::Undefined(None), |(_, item)| item))
}

pub(super) fn unique<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let case_sensitive = call.flag(0, "case_sensitive")?;
    let path = call.path(1, "attribute")?;
    call.done()?;
    // Sorted with their positions, equal ones stand side by side, the first one first.
    let order = Order { case_sensitive, reverse: false };
    let items = rendering.items(&call.value)?;
    let mut keyed = Vec::new();
    for (at, item) in items.iter().enumerate() {
        rendering.budget.item()?;
        keyed.push((under(rendering, item, path.as_deref())?, Val::int(at)));
    }
    sorted(rendering, &mut keyed, order)?;
    let mut kept = vec![false; items.len()];
    let mut last: Option<Val<'t>> = None;
    for (key, at) in keyed {
        let again = match &last {
            None => false,
            Some(last) => order.compare(rendering, last, &key)? == Ordering::Equal,
        };
        if !again && let Some(kept) = at.as_int().and_then(|at| kept.get_mut(at as usize)) {
            *kept = true;
        }
        last = Some(key);
    }
    collect(rendering, items.iter().zip(kept).filter_map(|(item, kept)| kept.then_some(item)))
}
