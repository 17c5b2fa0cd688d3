//! Filters that give texts, or take them apart.

use std::fmt::Write;
use std::sync::Arc;

use minijinja::Value as Jinja;
use minijinja::formatting::{FormatStyle, format as printf};

use super::super::budget::{Evaluated, fail};
use super::super::eval::Rendering;
use super::super::exprs::Call;
use super::super::show::{Shown, json, pretty};
use super::super::value::{ListOf, Val};
use super::maps::under;
use crate::expr::EvalError;
use crate::value::Value;

/// How many letters of a number a conversion of `format` may need beside its width and precision.
const DIGITS_MAX: usize = 512;

/// The value as a text, whatever it is; it has to be there.
fn text<'t>(rendering: &mut Rendering<'t>, value: &Val<'t>) -> Evaluated<Arc<str>> {
    value.defined()?;
    rendering.shown(value)
}

/// A text of our own making, as safe as the one it is made from.
fn like<'t>(of: &Val<'t>, text: String) -> Val<'t> {
    match of {
        Val::Safe(_) => Val::Safe(text.into()),
        _ => Val::Data(Value::from(text)),
    }
}

fn changed<'t>(
    rendering: &mut Rendering<'t>,
    call: &Call<'t>,
    change: fn(&str) -> String,
) -> Evaluated<Val<'t>> {
    call.done()?;
    let text = text(rendering, &call.value)?;
    // A letter may become up to three.
    rendering.budget.text(text.len().saturating_mul(3))?;
    Ok(like(&call.value, change(&text)))
}

pub(super) fn upper<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    changed(rendering, &call, str::to_uppercase)
}

pub(super) fn lower<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    changed(rendering, &call, str::to_lowercase)
}

pub(super) fn capitalize<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    changed(rendering, &call, |text| {
        let mut letters = text.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        first + &letters.as_str().to_lowercase()
    })
}

pub(super) fn title<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    if let Val::Safe(text) = &call.value {
        call.value = Val::Data(Value::String(text.clone()));
    }
    changed(rendering, &call, |text| {
        let mut title = String::with_capacity(text.len());
        let mut large = true;
        for letter in text.chars() {
            if matches!(letter, '-' | '(' | '{' | '[' | '<') || letter.is_whitespace() {
                title.push(letter);
                large = true;
            } else if std::mem::take(&mut large) {
                title.extend(letter.to_uppercase());
            } else {
                title.extend(letter.to_lowercase());
            }
        }
        title
    })
}

pub(super) fn trim<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let letters = call.option(0, "chars");
    call.done()?;
    let text = text(rendering, &call.value)?;
    rendering.budget.text(text.len())?;
    let trimmed = match letters {
        None => text.trim(),
        Some(letters) => {
            let letters = rendering.shown(&letters)?;
            // Every letter at the ends is looked for among them.
            rendering.budget.steps((text.len() / 64 + 1).saturating_mul(letters.len() / 8 + 1))?;
            text.trim_matches(|letter| letters.contains(letter))
        }
    };
    Ok(like(&call.value, trimmed.to_owned()))
}

pub(super) fn safe<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    text(rendering, &call.value).map(Val::Safe)
}

pub(super) fn string<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    match call.value {
        value @ Val::Safe(_) => Ok(value),
        value => text(rendering, &value).map(|text| Val::Data(Value::String(text))),
    }
}

pub(super) fn escape<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    if let Val::Safe(_) = call.value {
        return Ok(call.value);
    }
    let text = rendering.shown(&call.value)?;
    let mut escaped = String::new();
    for piece in text.split_inclusive(['<', '>', '&', '"', '\'', '/']) {
        let plain = piece.trim_end_matches(['<', '>', '&', '"', '\'', '/']);
        let mark = match &piece[plain.len()..] {
            "<" => "&lt;",
            ">" => "&gt;",
            "&" => "&amp;",
            "\"" => "&quot;",
            "'" => "&#x27;",
            "/" => "&#x2f;",
            _ => "",
        };
        rendering.budget.make(plain.len() + mark.len())?;
        escaped += plain;
        escaped += mark;
    }
    rendering.budget.text(escaped.len())?;
    Ok(Val::Safe(escaped.into()))
}

pub(super) fn replace<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let (from, to) = (call.required(0, "from")?, call.required(1, "to")?);
    call.done()?;
    let of = text(rendering, &call.value)?;
    let (from, to) = (text(rendering, &from)?, text(rendering, &to)?);
    rendering.budget.read(of.len() + from.len())?;
    // Paid for before it is made: a short text can be replaced by a huge one.
    let count = of.matches(&*from).count();
    rendering.budget.text((count.saturating_mul(to.len())).saturating_add(of.len()))?;
    Ok(Val::Data(Value::from(of.replace(&*from, &to))))
}

pub(super) fn join<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let separator = call.option(0, "d");
    let path = call.path(1, "attribute")?;
    call.done()?;
    let separator = separator.map_or(Ok("".into()), |separator| text(rendering, &separator))?;
    let items = rendering.items_if_any(&call.value)?;
    rendering.capture(|rendering| {
        for (at, item) in items.iter().enumerate() {
            rendering.budget.steps(1)?;
            let item = under(rendering, item, path.as_deref())?;
            let Rendering { output, budget, .. } = rendering;
            if at > 0 {
                output.write(budget, separator.as_bytes())?;
            }
            match item.as_str() {
                Some(text) => output.write(budget, text.as_bytes())?,
                None => output.stream(budget, |sink| write!(sink, "{}", Shown(&item)))?,
            }
        }
        Ok(())
    })
}

pub(super) fn split<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let separator = call.path(0, "split")?;
    let most = call.option(1, "maxsplits").map(|most| most.as_int());
    call.done()?;
    let Some(most) = most.unwrap_or(Some(-1)) else { return fail("`maxsplits` must be a whole number") };
    let most = usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1));
    let of = a_text(&call)?;
    match separator {
        None if most == usize::MAX => parts(rendering, &call, of.split_whitespace()),
        None => {
            let words = split_words(&of, most);
            parts(rendering, &call, words)
        }
        Some(separator) => {
            rendering.budget.read(of.len() + separator.len())?;
            parts(rendering, &call, of.splitn(most, &*separator))
        }
    }
}

/// At most so many words, the last holding the rest.
fn split_words(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    let mut left = most;
    std::iter::from_fn(move || {
        if rest.is_empty() || left == 0 {
            return None;
        }
        left -= 1;
        let end = if left == 0 { None } else { rest.find(char::is_whitespace) };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
        Some(word)
    })
}

pub(super) fn lines<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    let of = a_text(&call)?;
    parts(rendering, &call, of.lines())
}

fn a_text(call: &Call<'_>) -> Evaluated<Arc<str>> {
    call.value.defined()?;
    match &call.value {
        Val::Data(Value::String(text)) | Val::Safe(text) => Ok(text.clone()),
        other => fail(format!("a text is expected, not a {}", other.type_name())),
    }
}

fn parts<'t, 'a>(
    rendering: &mut Rendering<'t>,
    call: &Call<'t>,
    parts: impl Iterator<Item = &'a str>,
) -> Evaluated<Val<'t>> {
    let mut list = ListOf::default();
    for part in parts {
        rendering.budget.steps(1)?;
        rendering.budget.text(part.len())?;
        list.push(&mut rendering.budget, like(&call.value, part.to_owned()))?;
    }
    list.done(&mut rendering.budget)
}

pub(super) fn indent<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let width = call.option(0, "width").map_or(Some(4), |width| width.as_int());
    let Some(width) = width.and_then(|width| usize::try_from(width).ok()) else {
        return fail("`width` must be a whole number");
    };
    let (first, blank) = (call.flag(1, "first")?, call.flag(2, "blank")?);
    call.done()?;
    let of = text(rendering, &call.value)?;
    let of = of.strip_suffix('\n').unwrap_or(&of);
    let of = of.strip_suffix('\r').unwrap_or(of);
    rendering.budget.read(of.len())?;
    let wanted = |(at, line): &(usize, &str)| match (*at, *line) {
        (0, _) if !first => false,
        (_, "" | "\r") => blank,
        _ => true,
    };
    let indented = of.split('\n').enumerate().filter(wanted).count();
    rendering.budget.text(indented.saturating_mul(width).saturating_add(of.len()))?;
    let mut text = String::with_capacity(of.len() + indented * width);
    let blanks = " ".repeat(if indented > 0 { width } else { 0 });
    for (at, line) in of.split('\n').enumerate() {
        if at > 0 {
            text.push('\n');
        }
        if wanted(&(at, line)) {
            text += &blanks;
        }
        text += line;
    }
    let kept = text.strip_suffix('\r').unwrap_or(&text).len();
    text.truncate(kept);
    Ok(like(&call.value, text))
}

pub(super) fn tojson<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    rendering
        .capture(|rendering| rendering.output.stream(&mut rendering.budget, |sink| json(sink, &call.value)))
}

pub(super) fn pprint<'t>(rendering: &mut Rendering<'t>, call: Call<'t>) -> Evaluated<Val<'t>> {
    call.done()?;
    rendering.capture(|rendering| {
        rendering.output.stream(&mut rendering.budget, |sink| pretty(sink, &call.value, 0))
    })
}

/// minijinja's conversions, once it is known that what they make is not too long.
pub(super) fn format<'t>(rendering: &mut Rendering<'t>, mut call: Call<'t>) -> Evaluated<Val<'t>> {
    let pattern = a_text(&call)?;
    let mut values = call.rest(0);
    if !call.named.is_empty() {
        let mut map = super::super::value::MapOf::default();
        for (key, value) in call.named.drain(..) {
            map.insert(&mut rendering.budget, key, value)?;
        }
        values.push(map.done(&mut rendering.budget)?);
    }
    values.iter().try_for_each(Val::defined)?;
    let conversions = pattern.matches('%').count();
    let mut most = conversions.saturating_mul(DIGITS_MAX).saturating_add(pattern.len());
    let mut converted = Vec::with_capacity(values.len());
    for value in &values {
        converted.push(match value.map_len() {
            // Each is used once, the entries of a map as often as they are named.
            None => conversion(rendering, value, &mut most)?,
            Some(_) => {
                let (mut map, mut all) = (Vec::new(), 0);
                for (key, value) in value.pairs(&mut rendering.budget)? {
                    rendering.budget.entry()?;
                    map.push((key.to_string(), conversion(rendering, &value, &mut all)?));
                }
                most = most.saturating_add(conversions.saturating_mul(all));
                Jinja::from_pairs(map)
            }
        });
    }
    let numbers = pattern.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let padding = numbers.map(|digits| digits.parse().unwrap_or(usize::MAX));
    most = padding.fold(most, |most, padding: usize| most.saturating_add(padding.saturating_mul(3)));
    rendering.budget.read(pattern.len())?;
    rendering.budget.may_make(most)?;
    let text = printf(FormatStyle::Printf, &pattern, &converted);
    let text = text.map_err(|error| EvalError::new(error.detail().unwrap_or("the format is wrong")))?;
    rendering.budget.text(text.len())?;
    Ok(like(&call.value, text))
}

/// What a conversion is given, and by how many bytes that can make the text longer.
fn conversion<'t>(rendering: &mut Rendering<'t>, value: &Val<'t>, most: &mut usize) -> Evaluated<Jinja> {
    Ok(match value {
        Val::Data(Value::Bool(flag)) => Jinja::from(*flag),
        Val::Data(Value::Int(number)) => Jinja::from(*number),
        Val::Data(Value::Float(number)) => Jinja::from(*number),
        value => {
            let text = rendering.shown(value)?;
            *most = most.saturating_add(text.len());
            Jinja::from(text)
        }
    })
}
