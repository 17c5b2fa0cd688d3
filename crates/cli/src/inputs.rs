//! Values as they are typed: a JSON text, `@file`, `-` for stdin, or `key=value`. Several are laid over each
//! other, the later over the earlier.

use std::io::Read;
use std::sync::Arc;

use wonder_core::time::parse_duration_ms;
use wonder_core::value::Map;
use wonder_core::{Time, Value};

use crate::fault::Fault;

/// An object, as a run's input is; nothing typed is an empty one.
pub(crate) fn object(flag: &str, texts: &[String]) -> Result<Value, Fault> {
    let mut whole = Value::empty_map();
    for text in texts {
        let value = one(flag, text)?;
        if value.as_map().is_none() {
            let message = format!("{flag}: expected a JSON object, found {}", found(&value));
            return Err(
                Fault::usage(message).help(format!("write {flag} key=value, or {flag} '{{\"key\": …}}'"))
            );
        }
        lay_over(&mut whole, value);
    }
    Ok(whole)
}

/// Any value, as an answer or an event's payload is; none if nothing is typed.
pub(crate) fn any(name: &str, texts: &[String]) -> Result<Option<Value>, Fault> {
    match texts {
        [] => Ok(None),
        [one_text] => one(name, one_text).map(Some),
        many => object(name, many).map(Some),
    }
}

/// One text that is JSON if it reads as JSON, else itself.
pub(crate) fn json_or_text(text: &str) -> Value {
    Value::from_json_str(text).unwrap_or_else(|_| Value::str(text))
}

/// `key=value`, for labels.
pub(crate) fn pair(flag: &str, text: &str) -> Result<(String, String), Fault> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Fault::usage(format!("{flag} {text}: expected KEY=VALUE"))),
    }
}

fn one(name: &str, text: &str) -> Result<Value, Fault> {
    if text == "-" {
        let mut read = String::new();
        let done = std::io::stdin().lock().read_to_string(&mut read);
        done.map_err(|error| Fault::usage(format!("{name} -: cannot read stdin: {error}")))?;
        return parse(&format!("{name} - (stdin)"), &read);
    }
    if let Some(path) = text.strip_prefix('@') {
        let read = std::fs::read_to_string(path).map_err(|error| {
            Fault::usage(format!("{name} @{path}: cannot read the file: {error}"))
                .help("the path is relative to the working directory")
        })?;
        return parse(path, &read);
    }
    if let Ok(value) = Value::from_json_str(text) {
        return Ok(value);
    }
    match text.split_once('=') {
        Some((key, value)) if is_path(key) => Ok(nested(key, json_or_text(value))),
        _ if text.trim_start().starts_with(['{', '[', '"']) => parse(name, text),
        _ => Err(Fault::usage(format!("{name}: `{text}` is neither JSON nor KEY=VALUE"))
            .help("a text in JSON has quotes: '\"text\"'")),
    }
}

fn parse(place: &str, text: &str) -> Result<Value, Fault> {
    Value::from_json_str(text).map_err(|error| {
        Fault::usage(format!("{place}: this is not JSON: {error}"))
            .help("JSON wants double quotes around keys and texts, and no comma at the end")
    })
}

/// `a.b.c`: names between dots.
fn is_path(key: &str) -> bool {
    let name =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || "{}[]\"'".contains(c));
    key.split('.').all(name)
}

fn nested(path: &str, value: Value) -> Value {
    let keys: Vec<Arc<str>> = path.split('.').map(Arc::from).collect();
    let mut whole = Value::empty_map();
    whole.set_path(&keys, value);
    whole
}

fn lay_over(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Map(under), Value::Map(over)) => {
            let under: &mut Map = Arc::make_mut(under);
            for (key, value) in over.iter() {
                lay_over(under.entry(key.clone()).or_default(), value.clone());
            }
        }
        (under, over) => *under = over,
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "an object",
    }
}

/// `7d`, `24h`, `2026-01-31` or a whole time.
pub(crate) fn time(flag: &str, text: &str, now: Time) -> Result<Time, Fault> {
    let ago = parse_duration_ms(text).filter(|_| !text.chars().all(|c| c.is_ascii_digit()));
    let ago = ago.map(|ms| Time(now.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX))));
    let day = || Time::parse(&format!("{text}T00:00:00Z"));
    ago.or_else(|| Time::parse(text)).or_else(day).ok_or_else(|| {
        let message = format!("{flag} {text}: neither a duration nor a day");
        Fault::usage(message).help("7d, 24h, 2026-01-31 and 2026-01-31T12:00:00Z are some")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_said_in_several_ways() {
        let now = Time::parse("2026-02-01T00:00:00Z").unwrap();
        for text in ["24h", "1d", "2026-01-31", "2026-01-31T00:00:00Z"] {
            assert_eq!(
                time("--since", text, now).unwrap(),
                Time::parse("2026-01-31T00:00:00Z").unwrap(),
                "{text}"
            );
        }
        for text in ["", "7", "yesterday", "2026-13-01"] {
            assert!(time("--since", text, now).is_err(), "{text}");
        }
    }

    fn typed(texts: &[&str]) -> Result<String, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        match object("--input", &texts) {
            Ok(value) => Ok(value.to_string()),
            Err(fault) => Err(fault.render(crate::view::paint::Paint::NONE)),
        }
    }

    #[test]
    fn later_inputs_are_laid_over_earlier_ones() {
        assert_eq!(typed(&[]).unwrap(), "{}");
        assert_eq!(
            typed(&[r#"{"a":{"x":1,"y":[1]},"b":"old"}"#, "a.x=2", "b=new text", "c=[1,2]", "d="]).unwrap(),
            r#"{"a":{"x":2,"y":[1]},"b":"new text","c":[1,2],"d":""}"#
        );
        assert_eq!(
            typed(&["n=1", "t=01", "q=\"1\"", "e=a=b"]).unwrap(),
            r#"{"e":"a=b","n":1,"q":"1","t":"01"}"#
        );
    }

    #[test]
    fn what_is_no_input_is_said_to_be_none() {
        insta::assert_snapshot!(typed(&["[1]"]).unwrap_err(), @r#"
        error: --input: expected a JSON object, found a list
        help: write --input key=value, or --input '{"key": …}'
        "#);
        insta::assert_snapshot!(typed(&["{a: 1}"]).unwrap_err(), @"
        error: --input: this is not JSON: key must be a string at line 1 column 2
        help: JSON wants double quotes around keys and texts, and no comma at the end
        ");
        insta::assert_snapshot!(typed(&["hello"]).unwrap_err(), @r#"
        error: --input: `hello` is neither JSON nor KEY=VALUE
        help: a text in JSON has quotes: '"text"'
        "#);
        insta::assert_snapshot!(typed(&["@no/such.json"]).unwrap_err(), @"
        error: --input @no/such.json: cannot read the file: No such file or directory (os error 2)
        help: the path is relative to the working directory
        ");
    }

    #[test]
    fn an_answer_may_be_anything() {
        let any = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            any("ANSWER", &texts).unwrap().map(|value| value.to_string())
        };
        assert_eq!(any(&[]), None);
        assert_eq!(any(&["true"]).unwrap(), "true");
        assert_eq!(any(&["ok=true", "why=nice work"]).unwrap(), r#"{"ok":true,"why":"nice work"}"#);
    }
}
