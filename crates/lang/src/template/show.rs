//! How values are written: strings as they are and all else as JSON where a template puts them in, and as the
//! language shows them (`None`, `True`, `['a']`) where it makes a text of them: `~`, `join`, `string`, `pprint`.

use std::fmt;
use std::io;
use std::mem;

use super::OUTPUT_BYTES_MAX;
use super::budget::{Budget, Evaluated, fail};
use super::value::{ListKind, Quoted, Val};
use crate::expr::EvalError;
use crate::value::Value;

/// As JSON it is a few times as much at most.
const SMALL_BYTES: usize = 4 << 10;

/// The text as it grows, and those that are captured on the way, the innermost last.
#[derive(Default)]
pub(super) struct Output {
    text: Vec<u8>,
    captures: Vec<Vec<u8>>,
}

impl Output {
    pub(super) fn write(&mut self, budget: &mut Budget, bytes: &[u8]) -> Evaluated<()> {
        match self.captures.last_mut() {
            Some(capture) => {
                budget.make(bytes.len())?;
                capture.extend_from_slice(bytes);
            }
            None if self.text.len() + bytes.len() > OUTPUT_BYTES_MAX => {
                return fail(format!("the text grows beyond {OUTPUT_BYTES_MAX} bytes"));
            }
            None => self.text.extend_from_slice(bytes),
        }
        Ok(())
    }

    pub(super) fn capture(&mut self) {
        self.captures.push(Vec::new());
    }

    pub(super) fn captured(&mut self) -> Evaluated<String> {
        text(self.captures.pop().unwrap_or_default())
    }

    pub(super) fn done(self) -> Evaluated<String> {
        text(self.text)
    }

    /// Writes what a formatter or serialiser produces, bit by bit, until it is done or may not go on.
    pub(super) fn stream<E>(
        &mut self,
        budget: &mut Budget,
        produce: impl FnOnce(&mut Sink<'_>) -> Result<(), E>,
    ) -> Evaluated<()> {
        let mut sink = Sink { output: self, budget, failed: None };
        match produce(&mut sink) {
            Ok(()) => Ok(()),
            Err(_) => Err(sink.failed.unwrap_or_else(|| EvalError::new("a function has no text of its own"))),
        }
    }
}

fn text(bytes: Vec<u8>) -> Evaluated<String> {
    String::from_utf8(bytes).map_err(|error| EvalError::new(error.to_string()))
}

/// Where formatters and serialisers write to.
pub(super) struct Sink<'a> {
    output: &'a mut Output,
    budget: &'a mut Budget,
    failed: Option<EvalError>,
}

impl Sink<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), fmt::Error> {
        self.output.write(self.budget, bytes).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Sink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes())
    }
}

pub(super) fn json(sink: &mut Sink<'_>, value: &Val<'_>) -> io::Result<()> {
    use io::Write;
    match value {
        Val::Undefined(_) | Val::Nothing => sink.write_all(b"null"),
        // What is small is written at once, which is faster; all else bit by bit, as far as it may go.
        Val::Data(value) if value.fits(SMALL_BYTES) => sink.write_all(&serde_json::to_vec(value)?),
        Val::Data(value) => serde_json::to_writer(sink, value).map_err(io::Error::from),
        Val::Safe(text) => serde_json::to_writer(sink, text).map_err(io::Error::from),
        Val::List(_) | Val::Range(_) => {
            let Some(items) = value.list() else { return Ok(()) };
            let mut mark: &[u8] = b"[";
            for item in items.iter() {
                sink.write_all(mem::replace(&mut mark, b","))?;
                json(sink, &item)?;
            }
            sink.write_all(if mark == b"[" { b"[]" } else { b"]" })
        }
        Val::Map(map) => json_map(sink, &map.entries),
        Val::Namespace(entries) => json_map(sink, &entries.borrow()),
        Val::Loop(_) | Val::Function(_) => Err(io::Error::other(fmt::Error)),
    }
}

fn json_map(sink: &mut Sink<'_>, entries: &super::value::Entries<'_>) -> io::Result<()> {
    use io::Write;
    let mut mark: &[u8] = b"{";
    for (key, value) in entries {
        sink.write_all(mem::replace(&mut mark, b","))?;
        serde_json::to_writer(&mut *sink, key).map_err(io::Error::from)?;
        sink.write_all(b":")?;
        json(sink, value)?;
    }
    sink.write_all(if mark == b"{" { b"{}" } else { b"}" })
}

/// A value laid out to be read: an item a line. (Rust's own `{:#?}` would pass each of them through every level.)
pub(super) fn pretty(sink: &mut Sink<'_>, value: &Val<'_>, level: usize) -> fmt::Result {
    use fmt::Write;
    let indent = "    ".repeat(level + 1);
    let laid_out = !matches!(value, Val::List(list) if list.kind != ListKind::List);
    if let Some(items) = value.list().filter(|items| laid_out && items.len() > 0) {
        sink.put(b"[\n")?;
        for item in items.iter() {
            sink.put(indent.as_bytes())?;
            pretty(sink, &item, level + 1)?;
            sink.put(b",\n")?;
        }
        return write!(sink, "{}]", &indent[4..]);
    }
    if value.map_len().is_some_and(|len| len > 0) {
        let pairs = value.pairs(sink.budget).map_err(|error| {
            sink.failed = Some(error);
            fmt::Error
        })?;
        sink.put(b"{\n")?;
        for (key, value) in pairs {
            write!(sink, "{indent}{}: ", Quoted(&key))?;
            pretty(sink, &value, level + 1)?;
            sink.put(b",\n")?;
        }
        return write!(sink, "{}}}", &indent[4..]);
    }
    write!(sink, "{:?}", Shown(value))
}

/// A value as the language shows it: by itself (`Display`), or as a part of another (`Debug`).
pub(super) struct Shown<'a, 't>(pub(super) &'a Val<'t>);

impl fmt::Display for Shown<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Val::Undefined(_) | Val::Nothing => Ok(()),
            Val::Data(Value::Float(number)) if number.is_nan() => f.write_str("NaN"),
            Val::Data(Value::Float(number)) if number.is_infinite() => write!(f, "{number}"),
            Val::Data(Value::Float(number)) => {
                let text = number.to_string();
                f.write_str(&text)?;
                if text.contains('.') { Ok(()) } else { f.write_str(".0") }
            }
            value => match value.as_str() {
                Some(text) => f.write_str(text),
                None => fmt::Debug::fmt(self, f),
            },
        }
    }
}

impl fmt::Debug for Shown<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Val::Undefined(_) | Val::Nothing => f.write_str("undefined"),
            Val::Data(value) => fmt::Debug::fmt(&ShownData(value), f),
            Val::Safe(text) => write!(f, "{}", Quoted(text)),
            Val::List(list) if list.kind != ListKind::List => {
                f.write_str("(")?;
                for (at, item) in list.items.iter().enumerate() {
                    write!(f, "{}{:?}", if at > 0 { ", " } else { "" }, Shown(item))?;
                }
                f.write_str(if list.items.len() == 1 { ",)" } else { ")" })
            }
            Val::List(list) => f.debug_list().entries(list.items.iter().map(Shown)).finish(),
            Val::Range(range) => {
                let items = (0..range.len).map(|at| range.start.wrapping_add(at as i64 * range.step));
                f.debug_list().entries(items).finish()
            }
            Val::Map(map) => {
                let entries = map.entries.iter().map(|(key, value)| (ShownKey(key), Shown(value)));
                f.debug_map().entries(entries).finish()
            }
            Val::Namespace(entries) => {
                let entries = entries.borrow();
                let entries = entries.iter().map(|(key, value)| (ShownKey(key), Shown(value)));
                f.debug_map().entries(entries).finish()
            }
            Val::Loop(_) | Val::Function(_) => Err(fmt::Error),
        }
    }
}

struct ShownData<'a>(&'a Value);

impl fmt::Debug for ShownData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("None"),
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number:?}"),
            Value::String(text) => write!(f, "{}", Quoted(text)),
            Value::List(items) => f.debug_list().entries(items.iter().map(ShownData)).finish(),
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| (ShownKey(key), ShownData(value)));
                f.debug_map().entries(entries).finish()
            }
        }
    }
}

struct ShownKey<'a>(&'a str);

impl fmt::Debug for ShownKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Quoted(self.0))
    }
}
