//! Problems as people see them: all of a file's, in file order, underlined, with a way out.
//!
//! Rendering never fails and never prints more than a screenful per problem, however long a line is; and nothing of
//! what a file holds can paint on the screen.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use wonder_core::problem::{Code, Severity};
use wonder_core::visible;

use crate::place::{Lines, Span};
use crate::snippet::Snippet;

/// How many problems are kept; those after are counted.
pub const PROBLEMS_MAX: usize = 1_000;
/// How many of them are rendered. JSON has all that are kept.
const RENDERED_MAX: usize = 50;
/// Columns of a rendered report.
const WIDTH: usize = 100;
/// Characters of a message, a label, a help, or of the text that a problem is about.
const SAID_CHARS_MAX: usize = 1_000;

/// One problem, with its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    /// None: about the file as a whole.
    pub span: Option<Span>,
    pub message: String,
    /// What stands under the underline.
    pub label: String,
    pub help: Option<String>,
    /// Other places that matter, each with its own label.
    pub also: Vec<(Span, String)>,
    /// Which of the files that were read it is in, from 0.
    pub file: u32,
}

impl Diagnostic {
    pub(crate) fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            span: Some(span),
            message: message.into(),
            label: String::new(),
            help: None,
            also: Vec::new(),
            file: 0,
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.or(self.help);
        self
    }

    /// What it says may hold what the file holds, which may be long.
    fn shorten(&mut self) {
        let texts = [&mut self.message, &mut self.label].into_iter().chain(&mut self.help);
        for text in texts.chain(self.also.iter_mut().map(|(_, label)| label)) {
            if let Cow::Owned(short) = cut(text) {
                *text = short;
            }
        }
    }

    pub(crate) fn also(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.also.push((span, label.into()));
        self
    }
}

/// A file that was read: its name and text, for those who show problems in it.
#[derive(Debug)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
    pub lines: Lines,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Arc<Source> {
        Arc::new(Source { name: name.to_owned(), text: text.to_owned(), lines: Lines::new(text) })
    }

    /// The part of a span that is on its first line.
    pub(crate) fn first_line(&self, span: Span) -> Span {
        let text = span.of(&self.text);
        let line = text.split('\n').next().unwrap_or("").trim_end();
        Span::new(span.start as usize, span.start as usize + line.len())
    }
}

/// Errors and warnings of one file and of those it calls, in order.
#[derive(Clone)]
pub struct Diagnostics {
    sources: Vec<Arc<Source>>,
    list: Vec<Diagnostic>,
    /// How many were found beyond those that are kept.
    more: usize,
}

impl Diagnostics {
    /// The first problem, for those who have no place to point at.
    pub(crate) fn into_first(self) -> Box<Diagnostic> {
        let first = self.list.into_iter().next();
        Box::new(first.expect("a file that is refused has a problem"))
    }

    /// There is at least one source.
    pub(crate) fn new(sources: Vec<Arc<Source>>, mut list: Vec<Diagnostic>) -> Diagnostics {
        list.sort_by_key(|problem| {
            let (start, end) = problem.span.map_or((0, 0), |span| (span.start, span.end));
            (problem.file, start, end)
        });
        let mut kept: Vec<Diagnostic> = Vec::with_capacity(list.len());
        for problem in list {
            let same = |earlier: &&Diagnostic| (earlier.file, earlier.span) == (problem.file, problem.span);
            if !kept.iter().rev().take_while(same).any(|earlier| *earlier == problem) {
                kept.push(problem);
            }
        }
        let more = kept.len().saturating_sub(PROBLEMS_MAX);
        kept.truncate(PROBLEMS_MAX);
        kept.iter_mut().for_each(Diagnostic::shorten);
        Diagnostics { sources, list: kept, more }
    }

    fn source(&self, problem: &Diagnostic) -> &Source {
        &self.sources[(problem.file as usize).min(self.sources.len() - 1)]
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// How many there are, those that are only counted too.
    pub fn len(&self) -> usize {
        self.list.len() + self.more
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The file that was read first.
    pub fn file_name(&self) -> &str {
        &self.sources[0].name
    }

    /// The text that a problem underlines.
    pub fn text_at(&self, problem: &Diagnostic) -> &str {
        problem.span.map_or("", |span| span.of(&self.source(problem).text))
    }

    /// For people. Without colour the drawing is plain ASCII.
    pub fn render(&self, color: bool) -> String {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::none() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(WIDTH)
            .with_links(false)
            .with_context_lines(1)
            .without_cause_chain();
        let mut out = String::new();
        for problem in self.list.iter().take(RENDERED_MAX) {
            let report = Report { snippet: Snippet::of(self.source(problem), problem), problem };
            if handler.render_report(&mut out, &report).is_err() {
                out.push_str(&format!("{}: {}\n", problem.code, visible::block(&problem.message)));
            }
            out.push('\n');
        }
        out.push_str(&visible::line(&self.summary()));
        out.push('\n');
        let first = self.list.iter().find(|problem| problem.severity == Severity::Error);
        if let Some(first) = first.or(self.list.first()) {
            out.push_str(&format!("`wonder explain {}` says more\n", first.code));
        }
        out
    }

    /// `2 errors and 1 warning in judge.yaml`, and how many of them are not shown.
    pub fn summary(&self) -> String {
        let errors = self.list.iter().filter(|p| p.severity == Severity::Error).count();
        let warnings = self.list.len() - errors;
        let more = if self.more > 0 { format!(", and {} more", self.more) } else { String::new() };
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let found = match (errors, warnings) {
            (0, 0) => "no problems".to_owned(),
            (0, warnings) => count(warnings, "warning"),
            (errors, 0) => count(errors, "error"),
            (errors, warnings) => format!("{} and {}", count(errors, "error"), count(warnings, "warning")),
        };
        let mut files: Vec<&str> = self.list.iter().map(|problem| &*self.source(problem).name).collect();
        files.dedup();
        let files = if files.is_empty() { self.file_name().to_owned() } else { files.join(", ") };
        match self.len().checked_sub(RENDERED_MAX) {
            Some(hidden @ 1..) => format!("{found}{more} in {files} ({hidden} not shown)"),
            _ => format!("{found} in {files}"),
        }
    }

    /// For programs: a list with every field, lines and columns from 1, offsets in bytes. Where there are more than
    /// are kept, the last entry says how many.
    pub fn to_json(&self) -> serde_json::Value {
        let message = format!("there are {} more problems", self.more);
        let more = (self.more > 0).then(|| {
            serde_json::json!({"file": self.file_name(), "code": "more", "severity": "error", "message": message})
        });
        self.list.iter().map(|problem| self.problem_to_json(problem)).chain(more).collect()
    }

    fn problem_to_json(&self, problem: &Diagnostic) -> serde_json::Value {
        let Source { name, text, lines } = self.source(problem);
        let place = |span: Span| {
            let (line, column) = lines.position(span.start as usize, text);
            let (end_line, end_column) = lines.position(span.end as usize, text);
            serde_json::json!({
                "line": line, "column": column, "end_line": end_line, "end_column": end_column,
                "offset": span.start, "length": span.end - span.start,
            })
        };
        let also = problem.also.iter().map(|(span, label)| {
            let mut at = place(*span);
            at["label"] = label.as_str().into();
            at
        });
        let mut json = problem.span.map_or_else(|| serde_json::json!({}), place);
        json["file"] = name.as_str().into();
        json["code"] = problem.code.0.into();
        json["severity"] = severity_word(problem.severity).into();
        json["message"] = problem.message.as_str().into();
        json["label"] = problem.label.as_str().into();
        json["help"] = problem.help.clone().into();
        let underlined = self.source(problem).first_line(problem.span.unwrap_or_default());
        json["text"] = cut(underlined.of(text)).into();
        json["also"] = also.collect();
        json
    }
}

impl<'d> IntoIterator for &'d Diagnostics {
    type Item = &'d Diagnostic;
    type IntoIter = std::slice::Iter<'d, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostics").field("file", &self.file_name()).field("list", &self.list).finish()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// What `miette` draws.
#[derive(Debug)]
struct Report<'d> {
    /// None: it is about the file as a whole.
    snippet: Option<Snippet>,
    problem: &'d Diagnostic,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible::block(&self.problem.message))
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("{}[{}]", severity_word(self.problem.severity), self.problem.code)))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.problem.help.as_ref()?;
        Some(Box::new(visible::block(help)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.snippet.as_ref().map(|snippet| snippet as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.snippet.as_ref()?.labels()))
    }
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SAID_CHARS_MAX) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}
