//! The lines of a file that a problem is shown with: those it underlines and one on each side, cut to a window where
//! they are longer than a screen, with what could be obeyed by a terminal made visible. Underlines move along.

use std::collections::BTreeMap;
use std::ops::Range;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use wonder_core::visible;

use crate::diagnostics::{Diagnostic, Source};
use crate::place::Span;

/// Characters of a line that are shown, and how many of them stand before what is underlined.
const WINDOW: usize = 200;
const BEFORE: usize = 40;
const CUT: char = '…';

/// A part of a source as it is drawn: its text is not the file's, its numbers are.
#[derive(Debug)]
pub(crate) struct Snippet {
    name: String,
    text: String,
    lines: Vec<Line>,
    labels: Vec<Label>,
}

#[derive(Debug)]
struct Line {
    /// Where it begins in the text of the snippet.
    start: usize,
    /// Which line of the file it is, from 0.
    number: usize,
}

#[derive(Debug)]
struct Label {
    /// In the text of the snippet.
    at: Range<usize>,
    /// Where it begins in its line of the file, from 0.
    column: usize,
    text: String,
}

/// Something to underline, in bytes of the file.
struct Underline<'d> {
    line: usize,
    span: Range<usize>,
    text: &'d str,
}

impl Snippet {
    /// None if the problem is about the file as a whole.
    pub(crate) fn of(source: &Source, problem: &Diagnostic) -> Option<Snippet> {
        let own = (problem.span?, problem.label.as_str());
        let also = problem.also.iter().map(|(span, label)| (*span, label.as_str()));
        let underlined: Vec<Underline<'_>> =
            std::iter::once(own).chain(also).map(|(span, text)| Underline::of(source, span, text)).collect();
        let mut shown: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, underline) in underlined.iter().enumerate() {
            let around = underline.line.saturating_sub(1)..=underline.line + 1;
            // Behind the end of the last line there is none.
            let is_there = |line: &usize| source.lines.start(*line, &source.text) < source.text.len();
            around.filter(is_there).for_each(|line| {
                shown.entry(line).or_default();
            });
            shown.entry(underline.line).or_default().push(at);
        }
        let mut snippet = Snippet {
            name: visible::line(&source.name).into_owned(),
            text: String::new(),
            lines: Vec::new(),
            labels: Vec::new(),
        };
        let mut places = vec![0..0; underlined.len()];
        for (number, here) in shown {
            let here: Vec<(usize, &Underline<'_>)> = here.iter().map(|at| (*at, &underlined[*at])).collect();
            snippet.add_line(source, number, &here, &mut places);
        }
        snippet.labels = underlined
            .iter()
            .zip(places)
            .map(|(underline, at)| Label {
                at,
                column: source.lines.position(underline.span.start, &source.text).1 - 1,
                text: visible::line(underline.text).into_owned(),
            })
            .collect();
        Some(snippet)
    }

    /// Puts a line in, and notes where what is underlined in it has come to stand.
    fn add_line(
        &mut self,
        source: &Source,
        number: usize,
        here: &[(usize, &Underline<'_>)],
        places: &mut [Range<usize>],
    ) {
        let text = &source.text;
        let (start, next) = (source.lines.start(number, text), source.lines.start(number + 1, text));
        let end = start + text[start..next].trim_end_matches(['\n', '\r']).len();
        let first = here.iter().map(|(_, underline)| underline.span.start).min().unwrap_or(start);
        let shown = window(text, start..end, first.clamp(start, end));
        self.lines.push(Line { start: self.text.len(), number });
        if shown.start > start {
            self.text.push(CUT);
        }
        // Each stretch between two marks is made visible for itself, so that the marks keep their places.
        let mut marks: Vec<usize> = here.iter().flat_map(|(_, u)| [u.span.start, u.span.end]).collect();
        marks.iter_mut().for_each(|mark| *mark = (*mark).clamp(shown.start, shown.end));
        marks.extend([shown.start, shown.end]);
        marks.sort_unstable();
        let mut moved: BTreeMap<usize, usize> = BTreeMap::from([(shown.start, self.text.len())]);
        for pair in marks.windows(2) {
            self.text.push_str(&visible::block(&text[pair[0]..pair[1]]));
            moved.insert(pair[1], self.text.len());
        }
        for (at, underline) in here {
            let place = |byte: usize| moved[&byte.clamp(shown.start, shown.end)];
            places[*at] = place(underline.span.start)..place(underline.span.end);
        }
        if shown.end < end {
            self.text.push(CUT);
        }
        self.text.push('\n');
    }

    pub(crate) fn labels(&self) -> impl Iterator<Item = LabeledSpan> + '_ {
        self.labels.iter().enumerate().map(|(at, label)| {
            let text = (!label.text.is_empty()).then(|| label.text.clone());
            let range = (label.at.start, label.at.len());
            match at {
                0 => LabeledSpan::new_primary_with_span(text, range),
                _ => LabeledSpan::new_with_span(text, range),
            }
        })
    }

    /// The line of the snippet that a byte of it is in.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.start <= at).saturating_sub(1)
    }
}

impl<'d> Underline<'d> {
    /// The part of a span that is on its first line.
    fn of(source: &Source, span: Span, text: &'d str) -> Underline<'d> {
        let span = source.first_line(span);
        let start = (span.start as usize).min(source.text.len());
        let end = (span.end as usize).clamp(start, source.text.len());
        Underline { line: source.lines.line(start), span: start..end, text }
    }
}

/// So much of a line as is shown, with what is underlined in it.
fn window(text: &str, line: Range<usize>, first: usize) -> Range<usize> {
    let before = text[line.start..first].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let ends_behind =
        |start: usize| text[start..line.end].char_indices().nth(WINDOW).map(|(at, _)| start + at);
    match ends_behind(line.start) {
        None => line,
        Some(end) if first < end && text[line.start..first].chars().count() < WINDOW / 2 => line.start..end,
        Some(_) => {
            let start = line.start + before;
            start..ends_behind(start).unwrap_or(line.end)
        }
    }
}

impl SourceCode for Snippet {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (from, to) = (span.offset(), span.offset() + span.len());
        let (mut first, mut last) = (self.line(from), self.line(to));
        let follows = |line: usize| self.lines[line].number + 1 == self.lines[line + 1].number;
        for _ in 0..before {
            first -= usize::from(first > 0 && follows(first - 1));
        }
        for _ in 0..after {
            last += usize::from(last + 1 < self.lines.len() && follows(last));
        }
        let start = if before == 0 { from } else { self.lines[first].start };
        let end = self.lines.get(last + 1).map_or(self.text.len(), |line| line.start);
        let column = self.labels.iter().find(|label| before == 0 && label.at.start == from);
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            &self.text.as_bytes()[start..end],
            SourceSpan::from((start, end - start)),
            self.lines[first].number,
            column.map_or(0, |label| label.column),
            last - first + 1,
        )))
    }
}
