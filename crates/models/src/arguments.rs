//! The arguments of a tool call, as a model wrote them. Read strictly: a model that says a key twice, two
//! values where one belongs, or half a value has not said what to do, and guessing would be doing something
//! that nobody asked for.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use wonder_lang::Value;
use wonder_lang::value::Map;

use crate::message::Arguments;

/// No text at all is no arguments: that is how providers write a call that has none.
pub(crate) fn read(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::Read(Value::empty_map());
    }
    match serde_json::from_str::<Strict>(text) {
        Ok(Strict(map @ Value::Map(_))) => Arguments::Read(map),
        Ok(Strict(other)) => unreadable(text, &format!("a map was expected, not a {}", other.type_name())),
        Err(error) => unreadable(text, &error.to_string()),
    }
}

fn unreadable(raw: &str, error: &str) -> Arguments {
    Arguments::Unreadable { raw: raw.into(), error: error.into() }
}

/// A value none of whose maps says a key twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(Reading).map(Strict)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::from(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Strict(value))) = access.next_entry::<Arc<str>, Strict>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` is there twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::from(map))
    }
}
