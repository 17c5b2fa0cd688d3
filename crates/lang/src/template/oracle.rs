//! minijinja's own interpreter, as templates were rendered before. Tests hold ours against it.

use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value as Jinja,
};

use super::OUTPUT_BYTES_MAX;
use crate::value::Value;

const FUEL: u64 = 1_000_000;
const ESCAPE: &str = "@escape";
const NAME: &str = "template";

/// What minijinja makes of a template.
pub(super) fn render(
    text: &str,
    scope: &Value,
    escape: Option<fn(&Value) -> String>,
) -> Result<String, String> {
    let env = environment(text).map_err(|error| message(&error))?;
    let mut out = Bounded(Vec::new());
    let root = Jinja::from_object(Top { scope: scope.clone(), escape });
    let rendered =
        env.get_template(NAME).and_then(|template| template.render_captured_to(root, &mut out).map(drop));
    rendered.map_err(|error| message(&error))?;
    String::from_utf8(out.0).map_err(|error| error.to_string())
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
