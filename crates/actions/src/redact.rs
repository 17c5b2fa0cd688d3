//! Keeping secrets in: wherever a known secret comes back, in one of the forms that `forms` knows, `***` stands instead.
//! Forms that overlap are hidden together, so that no part of one is left beside another; those that an encoder has
//! folded into lines are found across the lines.
//!
//! Values shorter than four bytes are left alone: they would hide half of every text.

mod fold;
mod forms;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::input::TaskOutcome;
use wonder_core::limits::Limits;
use wonder_core::value::Value;

use fold::Unfolded;
pub(crate) use forms::percent_encoded;

pub(crate) const HIDDEN: &str = "***";
const SECRET_BYTES_MIN: usize = 4;
/// So much of a form must stand before a line break to be held back until the next line shows what it is; else every
/// line would wait for the next.
const HELD_BEFORE_BREAK_MIN: usize = 4;

/// How much of a form goes into the automaton.
const INDEXED_BYTES_MAX: usize = 64;

/// Finds every form of a set of secrets in one pass.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    forms: BTreeSet<Arc<str>>,
    search: Option<Search>,
}

#[derive(Clone)]
struct Search {
    all: Index,
    /// Of the forms that an encoder may fold.
    folded: Index,
    /// In order, to be found by how they begin.
    sorted: Vec<Arc<str>>,
    /// The first two bytes of each.
    beginnings: Beginnings,
    longest: usize,
    /// Whether one may lie within a number.
    numbers: bool,
}

/// Says how many there are: a secret must not end up in a log.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

impl Redactor {
    #[cfg(test)]
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        Redactor::default().with(secrets)
    }

    /// One that knows these secrets too.
    pub(crate) fn with<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut new = BTreeSet::new();
        for secret in secrets.into_iter().filter(|secret| is_hidden(secret)) {
            forms::forms_of(secret, &mut new);
        }
        let mut forms = self.forms.clone();
        forms.extend(new.into_iter().map(Arc::from));
        let search = (!forms.is_empty()).then(|| Search::new(&forms));
        Redactor { forms, search }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.search.is_none()
    }

    pub(crate) fn hide(&self, text: String) -> String {
        match self.hidden(text.as_bytes()) {
            None => text,
            Some(bytes) => lossless(bytes),
        }
    }

    /// The text without secrets; None if it has none.
    fn hidden(&self, text: &[u8]) -> Option<Vec<u8>> {
        let spans = self.spans(text, 0);
        if spans.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(text.len());
        let mut shown = 0;
        for span in spans {
            out.extend_from_slice(&text[shown..span.start]);
            out.extend_from_slice(HIDDEN.as_bytes());
            shown = span.end;
        }
        out.extend_from_slice(&text[shown..]);
        Some(out)
    }

    /// The value without secrets. What has none is not copied.
    pub(crate) fn hide_in(&self, value: Value) -> Value {
        if self.shows_in(&value) { self.rebuilt(&value) } else { value }
    }

    fn rebuilt(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Int(_) | Value::Float(_) if self.shows_in(value) => Value::str(HIDDEN),
            Value::Int(_) | Value::Float(_) => value.clone(),
            Value::String(text) => match self.hidden(text.as_bytes()) {
                Some(bytes) => Value::from(lossless(bytes)),
                None => value.clone(),
            },
            Value::List(items) => Value::list(items.iter().map(|item| self.rebuilt(item))),
            Value::Map(map) => {
                Value::map(map.iter().map(|(key, value)| (self.hide(key.to_string()), self.rebuilt(value))))
            }
        }
    }

    pub(crate) fn shows_in(&self, value: &Value) -> bool {
        let Some(search) = &self.search else { return false };
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Int(_) | Value::Float(_) => search.numbers && search.shows(value.to_string().as_bytes()),
            Value::String(text) => search.shows(text.as_bytes()),
            Value::List(items) => items.iter().any(|item| self.shows_in(item)),
            Value::Map(map) => {
                map.iter().any(|(key, value)| search.shows(key.as_bytes()) || self.shows_in(value))
            }
        }
    }

    pub(crate) fn hide_failure(&self, failure: Failure) -> Failure {
        let details = if is_bounded(&failure.details) { failure.details } else { Value::Null };
        Failure {
            message: self.hide(failure.message),
            details: self.hide_in(details),
            cause: failure.cause.map(|cause| Box::new(self.hide_failure(*cause))),
            ..failure
        }
    }

    pub(crate) fn hide_outcome(&self, outcome: TaskOutcome) -> TaskOutcome {
        match outcome {
            TaskOutcome::Completed { result } if is_bounded(&result) => {
                TaskOutcome::Completed { result: self.hide_in(result) }
            }
            // It may unfold to more than can be searched, and would be refused where it is reported.
            TaskOutcome::Completed { .. } => {
                TaskOutcome::Failed { failure: too_large(), retry: false, step: None }
            }
            TaskOutcome::Failed { failure, retry, step } => {
                TaskOutcome::Failed { failure: self.hide_failure(failure), retry, step }
            }
            outcome => outcome,
        }
    }

    /// Where secrets lie in a text, in order and apart. `run`: see [`fold::run_at_end`].
    pub(crate) fn spans(&self, text: &[u8], run: usize) -> Vec<Range<usize>> {
        let Some(search) = &self.search else { return Vec::new() };
        let mut spans = Vec::new();
        search.all.find(text).for_each(|found| add(&mut spans, found));
        let across = search.across_folds(text, run);
        if across.is_empty() {
            return spans;
        }
        spans.extend(across);
        spans.sort_by_key(|span| (span.end, span.start));
        let mut apart = Vec::new();
        spans.into_iter().for_each(|span| add(&mut apart, span));
        apart
    }

    /// From where a text that goes on has to be held back: what stands there may be the beginning of a form that the
    /// next text completes.
    pub(crate) fn may_begin(&self, text: &[u8], run: usize) -> usize {
        let Some(search) = &self.search else { return text.len() };
        let plain = search.may_begin(text, text.len(), 1).unwrap_or(text.len());
        let Some(unfolded) = Unfolded::of(text, run) else { return plain };
        let folded = search.may_begin(&unfolded.text, unfolded.last_fold(), HELD_BEFORE_BREAK_MIN);
        folded.map_or(plain, |at| unfolded.place(at).min(plain))
    }

    /// What comes before the text that follows this one: see [`fold::run_at_end`].
    pub(crate) fn run_after(&self, text: &[u8], run: usize) -> usize {
        fold::run_at_end(text, run)
    }
}

impl Search {
    fn new(forms: &BTreeSet<Arc<str>>) -> Search {
        let foldable =
            |form: &&Arc<str>| form.len() >= forms::PART_BYTES_MIN && form.bytes().all(fold::is_encoded);
        let sorted: Vec<Arc<str>> = forms.iter().cloned().collect();
        Search {
            all: Index::of(sorted.clone()),
            folded: Index::of(forms.iter().filter(foldable).cloned().collect()),
            beginnings: Beginnings::of(&sorted),
            longest: sorted.iter().map(|form| form.len()).max().unwrap_or(0),
            numbers: forms.iter().any(|form| form.bytes().all(|byte| b"0123456789.+-eE".contains(&byte))),
            sorted,
        }
    }

    fn shows(&self, text: &[u8]) -> bool {
        self.all.find(text).next().is_some() || !self.across_folds(text, 0).is_empty()
    }

    /// Where forms lie in a text that line breaks are folded into.
    fn across_folds(&self, text: &[u8], run: usize) -> Vec<Range<usize>> {
        let Some(unfolded) = Unfolded::of(text, run) else { return Vec::new() };
        self.folded.find(&unfolded.text).filter_map(|found| unfolded.across_fold(found)).collect()
    }

    /// The first place before `until` from which the text, at least so many bytes of it, is how a longer form begins.
    fn may_begin(&self, text: &[u8], until: usize, bytes_min: usize) -> Option<usize> {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let until = until.min((text.len() + 1).saturating_sub(bytes_min));
        (from..until).find(|at| self.is_beginning(&text[*at..]))
    }

    fn is_beginning(&self, text: &[u8]) -> bool {
        if !self.beginnings.may_have(text) {
            return false;
        }
        // Those that begin so stand together, the text itself, should it be one, before all longer ones.
        let at = self.sorted.partition_point(|form| form.as_bytes() <= text);
        self.sorted.get(at).is_some_and(|form| form.as_bytes().starts_with(text))
    }
}

/// Finds forms by how they begin, all in one pass, and looks at the rest of long ones where that is found: an automaton
/// of all of a key of several lines, in all its forms, would take longer to make than a run to start.
#[derive(Clone)]
struct Index {
    beginnings: AhoCorasick,
    forms: Vec<Arc<str>>,
}

impl Index {
    fn of(forms: Vec<Arc<str>>) -> Index {
        let beginnings = forms.iter().map(|form| &form.as_bytes()[..form.len().min(INDEXED_BYTES_MAX)]);
        let beginnings = AhoCorasick::new(beginnings);
        Index { beginnings: beginnings.expect("as many as fit into memory fit into an automaton"), forms }
    }

    /// Where forms lie in a text, by where their beginnings end.
    fn find<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        self.beginnings.find_overlapping_iter(text).filter_map(move |found| {
            let form = self.forms[found.pattern()].as_bytes();
            text[found.start()..].starts_with(form).then(|| found.start()..found.start() + form.len())
        })
    }
}

/// Most places of a text are told from the beginning of a form by two bytes.
#[derive(Clone)]
struct Beginnings(Box<[u64]>);

impl Beginnings {
    fn of(forms: &[Arc<str>]) -> Beginnings {
        let mut bits = vec![0; (1 << 16) / 64].into_boxed_slice();
        for form in forms.iter().map(|form| form.as_bytes()) {
            let number = pair(form[0], form[1]);
            bits[number / 64] |= 1 << (number % 64);
        }
        Beginnings(bits)
    }

    fn may_have(&self, text: &[u8]) -> bool {
        match text {
            [first, second, ..] => {
                let number = pair(*first, *second);
                self.0[number / 64] >> (number % 64) & 1 == 1
            }
            _ => true,
        }
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// Whether a secret is long enough to be told from other text.
fn is_hidden(secret: &str) -> bool {
    secret.trim().len() >= SECRET_BYTES_MIN
}

fn is_bounded(value: &Value) -> bool {
    value.fits(usize::try_from(Limits::default().result_bytes_max).unwrap_or(usize::MAX))
}

fn too_large() -> Failure {
    let max = Limits::default().result_bytes_max;
    let message = format!("the result is beyond the limit result_bytes_max ({max})");
    let details = [("limit", Value::str("result_bytes_max")), ("max", Value::Int(max as i64))];
    Failure::new(ErrorKind::LimitExceeded, message).with_details(Value::map(details))
}

/// Adds a span to those that lie apart, in order; those that overlap become one.
fn add(spans: &mut Vec<Range<usize>>, mut span: Range<usize>) {
    while let Some(last) = spans.last()
        && last.end > span.start
    {
        span = span.start.min(last.start)..span.end.max(last.end);
        spans.pop();
    }
    spans.push(span);
}

/// Forms begin and end where characters do, so that what is left of a text is one.
fn lossless(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
