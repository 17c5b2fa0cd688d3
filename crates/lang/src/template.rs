//! Texts with placeholders, compiled once and rendered many times.
//!
//! The `minijinja` crate parses; rendering is ours, over our own values, because a template is a stranger's program in
//! the process that owns all runs: the crate bounds how many steps it takes, not what each of them makes. Here all of
//! it is bounded: the text, how deep it nests, steps, bytes made on the way, output.
//!
//! A template sees the variables it is given and nothing else: no other templates, no macros, no clock, no files. An
//! undefined variable is an error that names it, and every value that is put in can be sent through an escape (shell
//! quoting, URLs). Where we differ from minijinja, on purpose, is in `docs/adr/0024`.

#[cfg(test)]
mod against_minijinja;
mod budget;
mod compare;
mod eval;
mod exprs;
mod filters;
mod functions;
mod is;
mod limits;
mod lower;
mod node;
mod ops;
#[cfg(test)]
mod oracle;
mod scan;
mod show;
#[cfg(test)]
mod tests;
mod value;
mod words;

use std::fmt;
use std::sync::Arc;

use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

use crate::expr::{EvalError, Read, minimal};
use crate::problem::nearest;
use crate::terms::Term;
use crate::value::Value;
use lower::{Lowered, lower};

pub use budget::Budget;
pub use limits::{BRACKETS_MAX, OPERATORS_NESTED_MAX, TAGS_NESTED_MAX};
pub use scan::{Named, NamedKind, Piece};
pub use words::{FILTERS, FUNCTIONS, TESTS};

pub const TEXT_BYTES_MAX: usize = 1 << 20;
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How a value is written where it is put in. What it makes of a value must be in proportion to it.
pub type Escape = fn(&Value) -> String;

/// A compiled template. Clones share it.
#[derive(Clone)]
pub struct Template(Arc<Compiled>);

struct Compiled {
    text: String,
    /// None if the text has no placeholders.
    tree: Option<Lowered>,
    reads: Vec<Read>,
}

/// Why a text is no template, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    pub message: String,
    pub line: Option<usize>,
    pub offset: Option<usize>,
}

impl Template {
    pub fn compile(text: &str) -> Result<Template, TemplateError> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("a template has at most {TEXT_BYTES_MAX} bytes");
            return Err(TemplateError { message, line: None, offset: None });
        }
        let plain = !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark));
        let mut tree = if plain { None } else { Some(tree(text)?) };
        let reads = tree.as_mut().map(|tree| std::mem::take(&mut tree.reads)).unwrap_or_default();
        Ok(Template(Arc::new(Compiled { text: text.to_owned(), tree, reads: minimal(reads) })))
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether the text stands for itself.
    pub fn is_plain(&self) -> bool {
        self.0.tree.is_none()
    }

    /// Every path read, sorted; a path covers those under it.
    pub fn reads(&self) -> &[Read] {
        &self.0.reads
    }

    /// What is written and what is put in, in order.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        scan::pieces(&self.0.text)
    }

    /// The filters, tests and functions that it names and that there are not; rendering would fail at them.
    pub fn unknown(&self) -> Vec<Named<'_>> {
        if self.is_plain() {
            return Vec::new();
        }
        let known = |named: &Named<'_>| {
            terms(named.kind).iter().any(|term| term.name == named.name)
                || named.kind == NamedKind::Function && words::CALLED.contains(&named.name)
        };
        scan::named(&self.0.text).into_iter().filter(|named| !known(named)).collect()
    }

    /// Whether it deals with what may be absent: `default`, `is defined` and the like.
    pub fn minds_absence(&self) -> bool {
        let minds = |named: &Named<'_>| matches!(named.name, "default" | "d" | "defined" | "undefined");
        !self.is_plain() && scan::named(&self.0.text).iter().any(minds)
    }

    /// Renders with the keys of `scope` as variables. Strings appear as they are, all else as JSON.
    pub fn render(&self, scope: &Value) -> Result<String, EvalError> {
        self.render_with(scope, None)
    }

    /// As [`render_within`](Self::render_within); but a list or a map that is all there is in the text,
    /// `{{ state.history }}`, is given as it is.
    pub fn render_value_within(&self, scope: &Value, budget: &mut Budget) -> Result<Value, EvalError> {
        let whole = self.lone_path().and_then(|path| scope.get_path(&path));
        match whole {
            Some(value @ (Value::List(_) | Value::Map(_))) => Ok(value.clone()),
            _ => self.render_within(scope, budget).map(Value::from),
        }
    }

    /// The path of a text that is one placeholder and nothing else.
    fn lone_path(&self) -> Option<Vec<Arc<str>>> {
        let [Piece::Value(inside, _)] = self.pieces()[..] else { return None };
        let is_name = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let parts: Vec<&str> = inside.trim_matches(['-', '+', ' ', '\n', '\t']).split('.').collect();
        parts.iter().all(|part| is_name(part)).then(|| parts.into_iter().map(Arc::from).collect())
    }

    /// As [`render`](Self::render), with every substituted value written as `escape` says.
    pub fn render_with(&self, scope: &Value, escape: Option<Escape>) -> Result<String, EvalError> {
        match &self.0.tree {
            None => Ok(self.0.text.clone()),
            Some(tree) => eval::render(tree, scope, escape, &mut Budget::default()),
        }
    }

    /// As [`render`](Self::render), with what is left of a budget that several texts share. What they give counts as
    /// made: a list of a thousand texts is bounded like one.
    pub fn render_within(&self, scope: &Value, budget: &mut Budget) -> Result<String, EvalError> {
        let text = match &self.0.tree {
            None => self.0.text.clone(),
            Some(tree) => eval::render(tree, scope, None, budget)?,
        };
        budget.text(text.len())?;
        Ok(text)
    }
}

/// The words of one kind that there are.
pub fn terms(kind: NamedKind) -> &'static [Term] {
    match kind {
        NamedKind::Filter => FILTERS,
        NamedKind::Test => TESTS,
        NamedKind::Function => FUNCTIONS,
    }
}

/// The known word of its kind that an unknown one is a slip of.
pub fn nearest_term(named: &Named<'_>) -> Option<&'static str> {
    nearest(named.name, terms(named.kind).iter().map(|term| term.name))
}

fn tree(text: &str) -> Result<Lowered, TemplateError> {
    // A final newline belongs to the text: it may be the input of a command.
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    let parsed = syntax.and_then(|syntax| match limits::check(text, &syntax) {
        Ok(()) => parse(text, "template", syntax).map(Ok),
        Err(deep) => Ok(Err(deep)),
    });
    match parsed {
        Ok(parsed) => parsed.map(|parsed| lower(&parsed)),
        Err(error) => Err(TemplateError {
            message: match error.detail() {
                Some(detail) => format!("{}: {detail}", error.kind()),
                None => error.kind().to_string(),
            },
            line: error.line(),
            offset: error.range().map(|range| range.start),
        }),
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.text).finish()
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Template {}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}
