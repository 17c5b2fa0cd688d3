//! JSON from outside, read exactly or not at all: a key that comes twice and a whole number that would lose digits are
//! refused, with their place. Everything else is as [`Value`] reads it.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::value::{Map, Value};

/// Why a text is no value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    NotJson,
    /// It is JSON, but one of two values under one key would be lost.
    KeyTwice,
    /// It is JSON, but a number would be another.
    TooLarge,
}

/// What is wrong with a text, with line and column.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotRead {
    pub why: Why,
    message: String,
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NotRead {}

impl NotRead {
    /// What to do now.
    pub fn help(&self) -> &'static str {
        match self.why {
            Why::NotJson => "JSON wants double quotes around keys and texts, and no comma at the end",
            Why::KeyTwice => "keep one of them",
            Why::TooLarge => {
                "if its digits matter, write it as a text, in quotes; if not, with an exponent: 1e19"
            }
        }
    }
}

/// The value of a text, or why it is none.
pub fn read(text: &str) -> Result<Value, NotRead> {
    let Strict(value) = serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => NotRead { why: Why::KeyTwice, message: error.to_string() },
        false => NotRead { why: Why::NotJson, message: format!("this is not JSON: {error}") },
    })?;
    match inexact(text) {
        None => Ok(value),
        Some(at) => Err(NotRead { why: Why::TooLarge, message: too_large(text, at) }),
    }
}

/// Where the first whole number stands that is no 64-bit integer. The text is valid JSON.
fn inexact(text: &str) -> Option<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_text(bytes, at),
            b'-' | b'0'..=b'9' => {
                let of_number = |b: &&u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(of_number).count();
                let number = &text[at..end];
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() {
                    return Some(at..end);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

/// Behind the quote that closes what the quote at `start` opens.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn too_large(text: &str, place: std::ops::Range<usize>) -> String {
    let before = &text[..place.start];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let number: String = text[place.clone()].chars().take(40).collect();
    let cut = if place.len() > 40 { "…" } else { "" };
    format!(
        "{number}{cut} at line {line} column {column} is beyond the whole numbers that are kept exactly ({} to {})",
        i64::MIN,
        i64::MAX
    )
}

/// A value in which no key came twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Strict, E> {
        Ok(Strict(Value::Bool(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Strict, E> {
        Ok(Strict(Value::Int(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Strict, E> {
        // One that does not fit is refused by its text.
        Ok(Strict(i64::try_from(number).map_or(Value::Null, Value::Int)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Strict, E> {
        Ok(Strict(Value::Float(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Strict, E> {
        Ok(Strict(Value::str(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Strict(Value::from(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Strict, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<Arc<str>>()? {
            if map.contains_key(&key) {
                let key: String = key.chars().take(80).collect();
                return Err(A::Error::custom(format_args!("the key `{key}` comes twice in one object")));
            }
            let Strict(value) = access.next_value()?;
            map.insert(key, value);
        }
        Ok(Strict(Value::from(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exact_is_read_as_it_is() {
        for text in [
            "null",
            r#"{"a":[1,-2.5,"x",true],"b":{"a":1}}"#,
            "9223372036854775807",
            "-9223372036854775808",
            "9007199254740993",
            r#"{"99999999999999999999":"\"9","a":"99999999999999999999"}"#,
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("1e19").unwrap(), Value::Float(1e19));
        assert_eq!(read("18446744073709551616.0").unwrap(), Value::Float(18446744073709551616.0));
    }

    #[test]
    fn what_would_be_changed_is_refused_with_its_place() {
        let cases = [
            ("{\"a\": 1,\n \"n\": 9223372036854775808}", "9223372036854775808 at", "line 2 column 7"),
            ("[-9223372036854775809]", "-9223372036854775809 at", "line 1 column 2"),
            ("[\"\\\"\", 123456789012345678901234567890]", "is beyond", "line 1 column 8"),
            (r#"{"a":1,"b":2,"a":3}"#, "the key `a` comes twice", "line 1 column 16"),
            (r#"{"x":[{"é":1,"\u00e9":2}]}"#, "the key `é` comes twice", "line 1"),
            ("{a: 1}", "key must be a string", "line 1 column 2"),
        ];
        for (text, what, place) in cases {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains(place), "{text}: {said}");
        }
        let long = "9".repeat(1_000_000);
        assert!(read(&long).unwrap_err().to_string().len() < 400, "a long number is not said back whole");
    }
}
