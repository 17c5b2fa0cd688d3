//! The arguments of a tool call, as a model wrote them. Read strictly: a model that says a key twice, two
//! values where one belongs, a number too large to be kept, or half a value has not said what to do, and guessing would be doing something
//! that nobody asked for.

use wonder_lang::{Value, strict_json};

use crate::message::Arguments;

/// No text at all is no arguments: that is how providers write a call that has none.
pub(crate) fn read(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::Read(Value::empty_map());
    }
    match strict_json::read(text) {
        Ok(map @ Value::Map(_)) => Arguments::Read(map),
        Ok(other) => unreadable(text, &format!("a map was expected, not a {}", other.type_name())),
        Err(error) => unreadable(text, &error.to_string()),
    }
}

fn unreadable(raw: &str, error: &str) -> Arguments {
    Arguments::Unreadable { raw: raw.into(), error: error.into() }
}
