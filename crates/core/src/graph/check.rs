//! What every part of the checker shares: the list of problems, and texts compiled once however often they
//! are written.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::codes;
use super::work::ModelTable;
use crate::def::{Bundle, Name, SchemaDef, Spot, Text};
use crate::expr::{Expr, ExprError};
use crate::problem::{Code, Problem, Severity, nearest};
use crate::schema::Schema;
use crate::template::{Template, TemplateError};
use crate::value::Value;

/// Looking for the nearest name takes time with the number of names: a file full of unknown ones gets no
/// suggestion for each.
const SUGGESTIONS_MAX: u32 = 40;

/// Words that a ref would hide: CEL's own, and the roots of expressions.
const RESERVED: [&str; 36] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "input",
    "state",
    "output",
    "result",
    "run",
    "needs",
    "error",
    "secret",
    "_branch",
    "_last_error",
    "_errors",
    "_mutations",
    "has",
    "and",
    "not",
];

pub(super) struct Check<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) problems: Vec<Problem>,
    exprs: HashMap<Name, Result<Expr, ExprError>>,
    templates: HashMap<Name, Result<Template, TemplateError>>,
    suggestions_left: u32,
    /// What model calls share, once there is one.
    pub(super) model_table: Option<Arc<ModelTable>>,
    /// The tools that responses put in place of the written ones.
    pub(super) changed_tools: Vec<Name>,
}

impl<'a> Check<'a> {
    pub(super) fn new(bundle: &'a Bundle) -> Check<'a> {
        Check {
            bundle,
            problems: Vec::new(),
            exprs: HashMap::new(),
            templates: HashMap::new(),
            suggestions_left: SUGGESTIONS_MAX,
            model_table: None,
            changed_tools: Vec::new(),
        }
    }

    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Parses an expression, or says why it is none.
    pub(super) fn expr(&mut self, text: &Text) -> Option<Expr> {
        let known = self.exprs.entry(text.text.clone()).or_insert_with(|| Expr::compile(&text.text));
        match known {
            Ok(expr) => Some(expr.clone()),
            Err(error) => {
                let mut problem = Problem::error(
                    codes::BAD_EXPRESSION,
                    text.spot,
                    format!("`{}` is not an expression: {}", brief(&text.text), error.message),
                )
                .label("expected a CEL expression");
                if let Some(offset) = error.offset {
                    problem = problem.within(offset, error.len.unwrap_or(1));
                }
                if text.text.contains("{{") {
                    problem = problem.help("this is an expression, not a template: leave out `{{` and `}}`");
                } else if looks_like_prose(&text.text) {
                    problem =
                        problem.help(format!("a literal text is written in two quotes: \"'{}'\"", text.text));
                }
                self.problems.push(problem);
                None
            }
        }
    }

    /// Parses a template, or says why it is none.
    pub(super) fn template(&mut self, text: &Text) -> Option<Template> {
        let known = self.templates.entry(text.text.clone()).or_insert_with(|| Template::compile(&text.text));
        match known {
            Ok(template) => Some(template.clone()),
            Err(error) => {
                let mut problem = Problem::error(
                    codes::BAD_TEMPLATE,
                    text.spot,
                    format!("not a template: {}", error.message),
                )
                .label("expected text with `{{ value }}` in it");
                if let Some(offset) = error.offset {
                    problem = problem.within(offset, 1);
                }
                self.problems.push(problem);
                None
            }
        }
    }

    pub(super) fn schema(&mut self, def: Option<&SchemaDef>, what: &str) -> Option<Schema> {
        let def = def?;
        if let Some(address) = remote_ref(&def.doc) {
            self.report(
                Problem::error(codes::REMOTE_REF, def.spot, format!("{what} refers to `{address}`"))
                    .label("only references within this schema (`#/…`) are followed")
                    .help("copy what it refers to into `$defs` and refer to `#/$defs/…`"),
            );
            return None;
        }
        match Schema::compile(&def.doc) {
            Ok(schema) => Some(schema),
            Err(message) => {
                self.report(
                    Problem::error(
                        codes::BAD_SCHEMA,
                        def.spot,
                        format!("{what} is no JSON Schema: {message}"),
                    )
                    .label("expected a valid JSON Schema"),
                );
                None
            }
        }
    }

    /// A ref must be usable as a name in expressions.
    pub(super) fn reference(&mut self, text: &Text, what: &str) {
        let label = "a ref is a letter or `_`, then letters, digits and `_`";
        if !crate::path::is_key(&text.text) {
            let message = format!("`{text}` cannot be the ref of a {what}");
            let problem = Problem::error(codes::BAD_REF, text.spot, message).label(label);
            let repaired: String =
                text.text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            self.report(if crate::path::is_key(&repaired) {
                problem.help(format!("write `{repaired}`"))
            } else {
                problem
            });
        } else if RESERVED.contains(&text.as_str()) {
            let message =
                format!("`{text}` cannot be the ref of a {what}: it means something else in expressions");
            self.report(
                Problem::error(codes::BAD_REF, text.spot, message)
                    .label("expected a name of its own")
                    .help(format!("write `{text}_{}` or another name", what.replace(' ', "_"))),
            );
        }
    }

    pub(super) fn unknown<'n>(
        &mut self,
        code: Code,
        text: &Text,
        what: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let mut problem = Problem::error(code, text.spot, format!("there is no {what} `{text}`"))
            .label(format!("expected the name of a {what}"));
        if self.suggestions_left > 0 {
            self.suggestions_left -= 1;
            let mut known = known.into_iter().peekable();
            problem.help = Some(match known.peek() {
                None => format!("this workflow has no {what}s"),
                Some(_) => match nearest(&text.text, known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("define a {what} `{text}`, or name one that exists"),
                },
            });
        }
        self.report(problem);
    }

    pub(super) fn zero(&mut self, value: Option<u64>, spot: Spot, what: &str) {
        if value == Some(0) {
            self.report(
                Problem::error(codes::ZERO_LIMIT, spot, format!("{what} is 0"))
                    .label("expected more than 0")
                    .help("leave it out for no limit of your own"),
            );
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Everything found, each problem once: what several nodes share is still one mistake.
    pub(super) fn finish(self) -> Vec<Problem> {
        let mut seen = BTreeSet::new();
        let mut problems = self.problems;
        problems.retain(|p| seen.insert((p.code, p.spot, p.within, p.message.clone())));
        problems
    }
}

/// Words with spaces between them and nothing that an expression would have.
fn looks_like_prose(text: &str) -> bool {
    text.contains(' ') && text.chars().all(|c| c.is_alphanumeric() || " ,;.!'’-".contains(c))
}

/// The start of a text, for a message.
pub(super) fn brief(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut short: String = text.chars().take(CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The first `$ref` in a schema that leaves it.
fn remote_ref(doc: &Value) -> Option<Arc<str>> {
    match doc {
        Value::Map(map) => map.iter().find_map(|(key, value)| match value {
            Value::String(address) if &**key == "$ref" && !address.starts_with('#') => Some(address.clone()),
            _ => remote_ref(value),
        }),
        Value::List(items) => items.iter().find_map(remote_ref),
        _ => None,
    }
}
