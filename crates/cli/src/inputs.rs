//! Values as they are typed: a JSON text, `@file`, `-` for stdin, `key=text` or `key:=JSON`. Several are laid
//! over each other, the later over the earlier. What the text of a pair becomes is for the schema to say.

use std::path::Path;
use std::sync::Arc;

use wonder_core::limits::Limits;
use wonder_core::strict_json::Why;
use wonder_core::time::parse_duration_ms;
use wonder_core::value::Map;
use wonder_core::{Time, Value, strict_json};

use crate::fault::Fault;
use crate::form;
use crate::reading::{self, Bounded};
use crate::typing::{self, Key};

/// What something is typed for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'w> {
    /// The flag, or the name that stands in the usage.
    pub name: &'static str,
    /// A JSON Schema; null says nothing.
    pub schema: &'w Value,
    /// Whose schema that is, in an error.
    pub by: &'static str,
}

impl<'w> Wanted<'w> {
    pub(crate) fn input(schema: &'w Value) -> Wanted<'w> {
        Wanted { name: "--input", schema, by: "the workflow's input_schema" }
    }

    pub(crate) fn answer(form: &'w Value) -> Wanted<'w> {
        Wanted { name: "ANSWER", schema: form, by: "the gate's form" }
    }

    /// Nobody says what it has to be.
    pub(crate) fn free(name: &'static str) -> Wanted<'static> {
        Wanted { name, schema: &Value::Null, by: "" }
    }

    /// Of an argument that is a flag's, with the flag before it.
    fn typed(&self, text: &str) -> String {
        if self.name.starts_with('-') { format!("{} {text}", self.name) } else { text.to_owned() }
    }
}

/// An object, as a run's input is; nothing typed is an empty one. All that does not fit is said at once.
pub(crate) fn object(wanted: &Wanted<'_>, texts: &[String]) -> Result<Value, Fault> {
    let mut whole = Value::empty_map();
    let mut problems = Vec::new();
    for text in texts {
        match one(wanted, text) {
            Ok(value) if value.as_map().is_some() => lay_over(&mut whole, value),
            Ok(value) => {
                let message = format!("{}: expected a JSON object, found {}", wanted.name, found(&value));
                let help =
                    format!("write {0}, or {1}", wanted.typed("key=value"), wanted.typed("'{\"key\": …}'"));
                problems.push((message, help));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(whole) } else { Err(said(problems)) }
}

/// Any value, as an answer or an event's payload is; none if nothing is typed.
pub(crate) fn any(wanted: &Wanted<'_>, texts: &[String]) -> Result<Option<Value>, Fault> {
    match texts {
        [] => Ok(None),
        [text] => match as_a_whole(wanted, text) {
            Some(value) => Ok(Some(value)),
            None => one(wanted, text).map(Some).map_err(|problem| said(vec![problem])),
        },
        many => object(wanted, many).map(Some),
    }
}

/// A text for a form that is no object: JSON if that fits the form, else the text itself if the form takes one.
fn as_a_whole(wanted: &Wanted<'_>, text: &str) -> Option<Value> {
    let takes = typing::takes(wanted.schema, wanted.schema);
    let is_whole = !takes.anything && !takes.types.iter().any(|kind| kind == "object");
    let fits = |value: &Value| form::violations(wanted.schema, value).is_empty();
    let is_elsewhere = text == "-" || text.starts_with('@');
    if !is_whole || is_elsewhere || strict_json::read(text).is_ok_and(|value| fits(&value)) {
        return None;
    }
    takes.value(text).ok()
}

/// One text that is JSON behind `:=`, else itself.
pub(crate) fn key(flag: &'static str, text: &str) -> Result<Value, Fault> {
    match text.strip_prefix(":=") {
        Some(json) => parse(&format!("{flag} {text}"), json).map_err(|problem| said(vec![problem])),
        None => Ok(Value::str(text)),
    }
}

/// `key=value`, for labels.
pub(crate) fn pair(flag: &str, text: &str) -> Result<(String, String), Fault> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Fault::usage(format!("{flag} {text}: expected KEY=VALUE"))),
    }
}

/// What is wrong, and what to do now.
type Problem = (String, String);

fn said(mut problems: Vec<Problem>) -> Fault {
    if problems.len() == 1 {
        let (message, help) = problems.remove(0);
        return Fault::usage(message).help(help);
    }
    let lines: Vec<String> =
        problems.iter().map(|(message, help)| format!("\n  {message}\n    {help}")).collect();
    Fault::usage(format!("{} things that were typed do not fit:{}", problems.len(), lines.concat()))
}

fn one(wanted: &Wanted<'_>, text: &str) -> Result<Value, Problem> {
    let name = wanted.name;
    if text == "-" {
        let read = reading::stdin(bytes_max()).map_err(|error| {
            (format!("{name} -: cannot read stdin: {error}"), "pipe JSON into it".to_owned())
        })?;
        return parse_bounded(&format!("{name} - (stdin)"), read);
    }
    if let Some(path) = text.strip_prefix('@') {
        let read = reading::file(Path::new(path), bytes_max()).map_err(|error| {
            let message = format!("{name} @{path}: cannot read the file: {error}");
            (message, "the path is relative to the working directory".to_owned())
        })?;
        return parse_bounded(path, read);
    }
    match strict_json::read(text) {
        Ok(value) => return Ok(value),
        Err(error) if error.why == Why::NotJson => {}
        Err(error) => return Err((format!("{name}: {error}"), error.help().to_owned())),
    }
    match text.split_once('=') {
        Some((key, json)) if key.strip_suffix(':').is_some_and(is_path) => {
            let value = strict_json::read(json).map_err(|error| {
                let help = match error.why {
                    Why::NotJson => {
                        format!("behind := stands JSON; a text is written {}", key.replace(':', "=text"))
                    }
                    Why::KeyTwice | Why::TooLarge => error.help().to_owned(),
                };
                (format!("{}: {error}", wanted.typed(text)), help)
            })?;
            Ok(nested(&key[..key.len() - 1], value))
        }
        Some((key, value)) if is_path(key) => paired(wanted, key, value),
        _ if text.trim_start().starts_with(['{', '[', '"']) => parse(name, text),
        _ => Err((
            format!("{name}: `{text}` is neither JSON nor KEY=VALUE"),
            "a text in JSON has quotes: '\"text\"'".to_owned(),
        )),
    }
}

/// `key=text`, by what the schema says of the key.
fn paired(wanted: &Wanted<'_>, key: &str, text: &str) -> Result<Value, Problem> {
    let typed = wanted.typed(&format!("{key}={text}"));
    let path: Vec<Arc<str>> = key.split('.').map(Arc::from).collect();
    let value = match typing::key(wanted.schema, &path) {
        Key::Free => Value::str(text),
        Key::At(schema) => typing::takes(wanted.schema, schema).value(text).map_err(|misfit| {
            let message = format!("{typed}: `{key}` is {} by {}", misfit.expected, wanted.by);
            (message, format!("type {}", wanted.typed(&format!("{key}{}", misfit.instead))))
        })?,
        Key::Unknown { known, near } => {
            let message = format!("{typed}: there is no key `{key}` by {}", wanted.by);
            let help = match near {
                Some(near) => format!("did you mean {near}? The keys are {}", known.join(", ")),
                None if known.is_empty() => "it has no keys".to_owned(),
                None => format!("the keys are {}", known.join(", ")),
            };
            return Err((message, help));
        }
    };
    Ok(nested(key, value))
}

fn parse(place: &str, text: &str) -> Result<Value, Problem> {
    strict_json::read(text).map_err(|error| (format!("{place}: {error}"), error.help().to_owned()))
}

fn parse_bounded(place: &str, read: Bounded) -> Result<Value, Problem> {
    match read {
        Bounded::Whole(text) => parse(place, &text),
        Bounded::TooLong => {
            let message =
                format!("{place}: it has more than {} bytes, the limit result_bytes_max", bytes_max());
            Err((message, "keep what is large in a file, and give its path to the run".to_owned()))
        }
    }
}

/// Of a run's input, an answer or a payload.
fn bytes_max() -> usize {
    usize::try_from(Limits::default().result_bytes_max).unwrap_or(usize::MAX)
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
        typed_for(&Value::Null, texts)
    }

    fn typed_for(schema: &Value, texts: &[&str]) -> Result<String, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        match object(&Wanted::input(schema), &texts) {
            Ok(value) => Ok(value.to_string()),
            Err(fault) => Err(fault.render(crate::view::paint::Paint::NONE).to_string()),
        }
    }

    #[test]
    fn later_inputs_are_laid_over_earlier_ones() {
        assert_eq!(typed(&[]).unwrap(), "{}");
        assert_eq!(
            typed(&[r#"{"a":{"x":1,"y":[1]},"b":"old"}"#, "a.x:=2", "b=new text", "c:=[1,2]", "d="]).unwrap(),
            r#"{"a":{"x":2,"y":[1]},"b":"new text","c":[1,2],"d":""}"#
        );
    }

    #[test]
    fn a_text_stays_a_text_unless_it_is_written_as_json() {
        assert_eq!(
            typed(&["version=1.10", "t=01", "b=true", "e=a=b", "v:=1.10", "q:=\"1\""]).unwrap(),
            r#"{"b":"true","e":"a=b","q":"1","t":"01","v":1.1,"version":"1.10"}"#
        );
    }

    #[test]
    fn a_schema_says_what_a_text_is() {
        let schema = Value::from_json_str(
            r#"{"type":"object","additionalProperties":false,"properties":{"version":{"type":"string"},
            "n":{"type":"integer"},"at":{"properties":{"line":{"type":"number"}}},"tags":{"type":"array"}}}"#,
        )
        .unwrap();
        assert_eq!(
            typed_for(&schema, &["version=1.10", "n=7", "at.line=1.5", "tags=[\"a\"]"]).unwrap(),
            r#"{"at":{"line":1.5},"n":7,"tags":["a"],"version":"1.10"}"#
        );
        insta::assert_snapshot!(typed_for(&schema, &["n=many"]).unwrap_err());
        insta::assert_snapshot!(
            "several_misfits",
            typed_for(&schema, &["n=1.5", "tags=a,b", "vesion=1", "n:=x"]).unwrap_err()
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
            any(&Wanted::free("ANSWER"), &texts).unwrap().map(|value| value.to_string())
        };
        assert_eq!(any(&[]), None);
        assert_eq!(any(&["true"]).unwrap(), "true");
        assert_eq!(any(&["ok:=true", "why=nice work"]).unwrap(), r#"{"ok":true,"why":"nice work"}"#);
    }

    #[test]
    fn an_answer_that_is_no_object_needs_no_quotes() {
        let whole = |form: &str, text: &str| {
            let form = Value::from_json_str(form).unwrap();
            any(&Wanted::answer(&form), &[text.to_owned()]).unwrap().unwrap().to_string()
        };
        assert_eq!(whole(r#"{"type":"string"}"#, "go on"), r#""go on""#);
        assert_eq!(whole(r#"{"type":"string"}"#, "7"), r#""7""#);
        assert_eq!(whole(r#"{"type":"string"}"#, "\"go on\""), r#""go on""#);
        assert_eq!(whole(r#"{"type":"string"}"#, "a=b"), r#""a=b""#);
        assert_eq!(whole(r#"{"type":"integer"}"#, "7"), "7");
        assert_eq!(whole(r#"{"enum":["yes","no"]}"#, "no"), r#""no""#);
    }
}
