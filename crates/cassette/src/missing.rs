//! A request that no recording fits, told so that a person sees what has changed: the recording of that kind that is
//! most like it, and the lines in which they differ.

use std::collections::BTreeMap;
use std::fmt;

use wonder_core::diff;
use wonder_core::value::Value;

use crate::exchange::{Exchange, Place, Request, shown_place};

/// So much of a difference is shown.
const LINES_MAX: usize = 60;
/// So much of a line is shown.
const LINE_CHARS_MAX: usize = 400;

#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    pub request: Request,
    pub place: Place,
    /// The files of exchanges that asked the same, all of which were given before.
    pub recorded: Vec<String>,
    /// The file that is most like it, and the difference: `-` was recorded, `+` is asked now.
    pub nearest: Option<(String, String)>,
}

impl Missing {
    /// What happened, in a sentence.
    pub fn sentence(&self) -> String {
        let who = format!("`{}` of `{}`", self.request.kind, shown_place(&self.request, &self.place));
        match (self.recorded.len(), &self.nearest) {
            (0, Some(_)) => format!("the cassette has no answer to this {who}"),
            (0, None) => format!("the cassette has no answer to this {who}, and nothing of its kind"),
            (1, _) => format!("the cassette has one answer to this {who}, and it was given before"),
            (times, _) => {
                format!("the cassette has {times} answers to this {who}, and all were given before")
            }
        }
    }
}

/// The sentence, and below it what is nearest.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sentence())?;
        match &self.nearest {
            Some((file, difference)) => {
                write!(f, "\nthe nearest is {file} (- recorded, + asked now):\n{}", difference.trim_end())
            }
            None if self.recorded.is_empty() => {
                write!(f, "\nasked now:\n{}", bounded(&readable(&self.request.fields)).trim_end())
            }
            None => write!(f, "\nit was recorded in {}", self.recorded.join(", ")),
        }
    }
}

/// The recording of that kind that shares most lines with the request; of equals, one of the same node, then the first.
pub(crate) fn nearest(
    exchanges: &[(String, Exchange)],
    request: &Request,
    place: &Place,
) -> Option<(String, String)> {
    let asked = readable(&request.fields);
    let like = exchanges.iter().filter(|(_, exchange)| exchange.request.kind == request.kind);
    let judged = like.map(|(file, exchange)| {
        let recorded = readable(&exchange.request.fields);
        let is_here = exchange.place.node == place.node && exchange.place.step == place.step;
        (likeness(&recorded, &asked), is_here, file, recorded)
    });
    // Of equals the last would be taken.
    let all: Vec<_> = judged.collect();
    let best = all.iter().rev().max_by_key(|(like, is_here, ..)| (*like, *is_here))?;
    let difference = diff::lines(&best.3, &asked).unwrap_or_default();
    Some((best.2.clone(), bounded(&difference)))
}

/// Of a thousand lines of both, how many they share.
fn likeness(a: &str, b: &str) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    a.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    let shared = b.lines().filter(|line| match counts.get_mut(line) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    });
    shared.count() * 2_000 / (a.lines().count() + b.lines().count()).max(1)
}

fn bounded(text: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…\n", &line[..at]),
        None => format!("{line}\n"),
    };
    let mut shown: String = text.lines().take(LINES_MAX).map(cut).collect();
    let more = text.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        shown.push_str(&format!("… and {more} lines more\n"));
    }
    shown
}

/// A value with every line of its texts on a line of its own.
fn readable(value: &Value) -> String {
    let mut text = String::new();
    put(value, 0, &mut text);
    text
}

fn put(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Map(map) if !map.is_empty() => {
            for (key, value) in map.iter() {
                put_named(&format!("{indent}{key}:"), value, depth, text);
            }
        }
        Value::List(items) if !items.is_empty() => {
            for item in items.iter() {
                put_named(&format!("{indent}-"), item, depth, text);
            }
        }
        value => text.push_str(&format!("{indent}{value}\n")),
    }
}

fn put_named(name: &str, value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::String(lines) if lines.contains('\n') => {
            text.push_str(&format!("{name} |\n"));
            let indent = "  ".repeat(depth + 1);
            lines.split('\n').for_each(|line| text.push_str(&format!("{indent}{line}\n")));
        }
        Value::Map(map) if !map.is_empty() => {
            text.push_str(&format!("{name}\n"));
            put(value, depth + 1, text);
        }
        Value::List(items) if !items.is_empty() => {
            text.push_str(&format!("{name}\n"));
            put(value, depth + 1, text);
        }
        Value::String(line) => text.push_str(&format!("{name} {line}\n")),
        value => text.push_str(&format!("{name} {value}\n")),
    }
}
