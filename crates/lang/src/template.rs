//! Texts with placeholders, compiled once (minijinja).
//!
//! A template sees the variables it is given and nothing else: no other templates, no macros, no clock,
//! no files. An undefined variable is an error that names it. What it may do is limited in steps and
//! in output, and every value it substitutes can be sent through an escape (shell quoting, URLs).

mod scan;
mod words;

use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value as Jinja,
};

use crate::expr::{EvalError, Read, minimal};
use crate::problem::nearest;
use crate::terms::Term;
use crate::value::Value;

pub use scan::{Named, NamedKind, Piece};
pub use words::{FILTERS, FUNCTIONS, TESTS};

pub const TEXT_BYTES_MAX: usize = 1 << 20;
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Steps of minijinja's machine: a loop costs a handful per turn.
const FUEL: u64 = 1_000_000;

/// The name the rendering finds its escape under; no template can write it.
const ESCAPE: &str = "@escape";
const NAME: &str = "template";

/// A compiled template. Clones share it.
#[derive(Clone)]
pub struct Template(Arc<Compiled>);

struct Compiled {
    text: String,
    /// None if the text has no placeholders.
    env: Option<Environment<'static>>,
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
        let (env, reads) = if plain {
            (None, Vec::new())
        } else {
            let env = environment(text).map_err(|error| TemplateError {
                message: message(&error),
                line: error.line(),
                offset: error.range().map(|range| range.start),
            })?;
            let reads = reads(&env);
            (Some(env), reads)
        };
        Ok(Template(Arc::new(Compiled { text: text.to_owned(), env, reads })))
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether the text stands for itself.
    pub fn is_plain(&self) -> bool {
        self.0.env.is_none()
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

    /// As [`render`](Self::render), with every substituted value written as `escape` says.
    pub fn render_with(
        &self,
        scope: &Value,
        escape: Option<fn(&Value) -> String>,
    ) -> Result<String, EvalError> {
        let Some(env) = &self.0.env else { return Ok(self.0.text.clone()) };
        let mut out = Bounded(Vec::new());
        let root = Jinja::from_object(Top { scope: scope.clone(), escape });
        let rendered =
            env.get_template(NAME).and_then(|template| template.render_captured_to(root, &mut out).map(drop));
        rendered.map_err(|error| EvalError::new(message(&error)))?;
        String::from_utf8(out.0).map_err(|error| EvalError::new(error.to_string()))
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

fn environment(text: &str) -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_fuel(Some(FUEL));
    // Debug mode is what makes errors name the undefined variable.
    env.set_debug(true);
    env.set_formatter(format);
    env.add_filter("tojson", |value: &Jinja| from_jinja(value).to_string());
    env.remove_global("debug");
    // A final newline belongs to the text: it may be the input of a command.
    env.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build()?);
    env.add_template_owned(NAME, text.to_owned())?;
    Ok(env)
}

fn reads(env: &Environment<'_>) -> Vec<Read> {
    let Ok(template) = env.get_template(NAME) else { return Vec::new() };
    let undeclared = template.undeclared_variables(true);
    let reads = undeclared.iter().map(|path| Read::parse(path));
    minimal(reads.filter(|read| env.globals().all(|(name, _)| name != &*read.root)).collect())
}

fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Jinja) -> Result<(), Error> {
    let escape = state.lookup(ESCAPE);
    let escape = escape.as_ref().and_then(|escape| escape.downcast_object_ref::<Escape>());
    let written = match (escape, value.as_str()) {
        // Nothing: the missing `else` of an inline `if`.
        (_, None) if value.is_undefined() => Ok(()),
        (Some(escape), _) => out.write_str(&(escape.0)(&from_jinja(value))),
        (None, Some(text)) => out.write_str(text),
        (None, None) => out.write_str(&from_jinja(value).to_string()),
    };
    written.map_err(|_| Error::from(ErrorKind::WriteFailure))
}

fn message(error: &Error) -> String {
    let limit = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match (error.kind(), error.detail(), limit) {
        (ErrorKind::OutOfFuel, ..) => format!("the template does too much work (limit {FUEL} steps)"),
        (_, _, Some(limit)) => limit.to_string(),
        (ErrorKind::UndefinedError, Some(detail), _) => detail.to_owned(),
        (kind, Some(detail), _) => format!("{kind}: {detail}"),
        (kind, None, _) => kind.to_string(),
    }
}

/// The output, up to its limit.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other(format!("the text grows beyond {OUTPUT_BYTES_MAX} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The variables, and the escape beside them.
#[derive(Debug)]
struct Top {
    scope: Value,
    escape: Option<fn(&Value) -> String>,
}

impl Object for Top {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        if key == ESCAPE {
            self.escape.map(|escape| Jinja::from_object(Escape(escape)))
        } else {
            self.scope.get(key).map(to_jinja)
        }
    }
}

#[derive(Debug)]
struct Escape(fn(&Value) -> String);

impl Object for Escape {}

/// A list or map of ours, seen by minijinja part by part: nothing is converted that is not looked at.
#[derive(Debug)]
struct Shared(Value);

impl Object for Shared {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.0.as_list().is_some() { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        match &self.0 {
            Value::List(items) => items.get(key.as_usize()?).map(to_jinja),
            value => value.get(key.as_str()?).map(to_jinja),
        }
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        self.0.get(key).map(to_jinja)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &self.0 {
            Value::List(items) => Enumerator::Seq(items.len()),
            Value::Map(map) => Enumerator::Values(map.keys().map(|key| Jinja::from(key.clone())).collect()),
            _ => Enumerator::NonEnumerable,
        }
    }
}

fn to_jinja(value: &Value) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(flag) => Jinja::from(*flag),
        Value::Int(number) => Jinja::from(*number),
        Value::Float(number) => Jinja::from(*number),
        Value::String(text) => Jinja::from(text.clone()),
        Value::List(_) | Value::Map(_) => Jinja::from_object(Shared(value.clone())),
    }
}

fn from_jinja(value: &Jinja) -> Value {
    if let Some(shared) = value.downcast_object_ref::<Shared>() {
        return shared.0.clone();
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Value::Null,
        ValueKind::String => Value::str(value.as_str().unwrap_or_default()),
        // What minijinja made itself: numbers of any width, lists, maps.
        _ => match serde_json::to_value(value) {
            Ok(json) => Value::from_json(&json),
            Err(_) => Value::from(value.to_string()),
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Value {
        Value::from_json_str(
            r#"{"name":"Ada <b>","n":3,"f":2.0,"none":null,"state":{"plan":{"title":"T"},"xs":[1,{"a":"é"}]}}"#,
        )
        .unwrap()
    }

    fn render(text: &str) -> Result<String, String> {
        let template = Template::compile(text).map_err(|error| error.message)?;
        template.render(&scope()).map_err(|error| error.message)
    }

    #[test]
    fn strings_are_written_as_they_are_and_the_rest_as_json() {
        assert_eq!(render("plain\n").unwrap(), "plain\n");
        assert_eq!(render("Hi {{ name }}\n").unwrap(), "Hi Ada <b>\n");
        assert_eq!(render("{{ n }} {{ f }} {{ none }} {{ n > 2 }}").unwrap(), "3 2.0 null true");
        assert_eq!(
            render("{{ state.xs }} {{ state }}").unwrap(),
            r#"[1,{"a":"é"}] {"plan":{"title":"T"},"xs":[1,{"a":"é"}]}"#
        );
        assert_eq!(
            render("{{ state.xs[1].a }}{{ [1, 'x'] }}{{ state.plan|tojson }}").unwrap(),
            r#"é[1,"x"]{"title":"T"}"#
        );
        assert_eq!(
            render("{% for k, v in state.plan|items %}{{ k }}={{ v }}{% endfor %}").unwrap(),
            "title=T"
        );
        assert_eq!(
            render("{% for x in state.xs %}{{ loop.index }}{% endfor %}{{ state.xs|length }}").unwrap(),
            "122"
        );
        assert_eq!(render("{{ 'x' if n > 5 }}").unwrap(), "");
    }

    #[test]
    fn undefined_variables_are_named() {
        assert!(render("{{ missing }}").unwrap_err().contains("missing"));
        assert!(render("{{ state.plan.missing }}").unwrap_err().contains("state.plan.missing"));
        assert!(render("{{ state.missing.title }}").unwrap_err().contains("state.missing"));
        assert_eq!(render("{{ missing|default('d') }}{{ missing is defined }}").unwrap(), "dfalse");
    }

    #[test]
    fn mistakes_are_found_when_compiling_with_their_place() {
        let error = Template::compile("a\n{{ name").unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(
            Template::compile("{{ x|nofilter }}").is_ok_and(|template| template.render(&scope()).is_err())
        );
        for tag in [
            "{% include 'x' %}",
            "{% extends 'x' %}",
            "{% import 'x' as y %}",
            "{% macro f() %}{% endmacro %}",
        ] {
            assert!(Template::compile(tag).is_err(), "{tag}");
        }
    }

    #[test]
    fn reads_are_maximal_paths() {
        let template = Template::compile(
            "{{ state.plan.title }}{{ input.q|upper }}{% for x in state.xs %}{{ x.a }}{% endfor %}{{ range(3) }}{{ item }}",
        )
        .unwrap();
        let reads: Vec<String> = template.reads().iter().map(Read::to_string).collect();
        assert_eq!(reads, ["input.q", "item", "state.plan.title", "state.xs"]);
    }

    #[test]
    fn every_substituted_value_is_escaped() {
        let quote = |value: &Value| format!("'{}'", value.as_str().map_or(value.to_string(), str::to_owned));
        let template =
            Template::compile("echo {{ name }} {{ state.xs }} {{ name|safe }} {{ n + 1 }}").unwrap();
        let text = template.render_with(&scope(), Some(quote)).unwrap();
        assert_eq!(text, r#"echo 'Ada <b>' '[1,{"a":"é"}]' 'Ada <b>' '4'"#);
        let absent = Template::compile("ls {{ '-l' if n > 9 }}").unwrap();
        assert_eq!(absent.render_with(&scope(), Some(quote)).unwrap(), "ls ");
    }

    #[test]
    fn output_and_work_are_limited() {
        let long = "{% for i in range(90000) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}";
        assert!(render(long).unwrap_err().contains("grows beyond"));
        let busy = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
        assert!(render(busy).unwrap_err().contains("too much work"));
    }
}
