//! What a text becomes at a place of a JSON Schema. The schema decides; where it says nothing, or takes a text
//! among other things, a text stays a text: `1.10` is never made a number by its looks.

use std::sync::Arc;

use wonder_core::problem::nearest;
use wonder_core::schema::resolve;
use wonder_core::{Value, strict_json};

/// How deep `anyOf` and its like are followed.
const DEPTH_MAX: usize = 8;

/// What a schema takes at one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Takes {
    /// It says nothing that could be told from a text.
    pub anything: bool,
    /// Values that it names one by one.
    pub choices: Vec<Value>,
    /// JSON types.
    pub types: Vec<String>,
}

/// A text that cannot be a value there: what is expected, and what to type instead.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Misfit {
    pub expected: String,
    /// Behind the key, with its `=` or `:=`.
    pub instead: String,
}

/// What a schema says of a key.
pub(crate) enum Key<'s> {
    At(&'s Value),
    /// Nothing is said of it.
    Free,
    /// There can be no such key; those that there are, and the nearest of them.
    Unknown {
        known: Vec<&'s str>,
        near: Option<&'s str>,
    },
}

/// What the schema says of the key at the end of a path. A schema of null says nothing.
pub(crate) fn key<'s>(doc: &'s Value, path: &[Arc<str>]) -> Key<'s> {
    let mut here = doc;
    for name in path {
        let Some(schema) = resolve(doc, here) else { return Key::Free };
        let properties = schema.get("properties").and_then(Value::as_map);
        if let Some(next) = properties.and_then(|properties| properties.get(name)) {
            here = next;
            continue;
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        match schema.get("additionalProperties") {
            Some(next @ Value::Map(_)) => here = next,
            _ if closed && schema.get("patternProperties").is_none() => {
                let known: Vec<&str> =
                    properties.into_iter().flat_map(|map| map.keys().map(|k| &**k)).collect();
                let near = nearest(name, known.iter().copied());
                return Key::Unknown { known, near };
            }
            _ => return Key::Free,
        }
    }
    if doc.is_null() { Key::Free } else { Key::At(here) }
}

/// What a schema takes; `doc` is what its references lead into.
pub(crate) fn takes(doc: &Value, schema: &Value) -> Takes {
    let mut takes = Takes::default();
    gather(doc, schema, &mut takes, 0);
    takes
}

fn gather(doc: &Value, schema: &Value, takes: &mut Takes, depth: usize) {
    let Some(schema) = resolve(doc, schema).filter(|_| depth < DEPTH_MAX) else {
        takes.anything = true;
        return;
    };
    if let Some(only) = schema.get("const") {
        takes.choices.push(only.clone());
    } else if let Some(choices) = schema.get("enum").and_then(Value::as_list) {
        takes.choices.extend_from_slice(choices);
    } else if let Some(types) = schema.get("type") {
        let one = types.as_str().into_iter();
        let many = types.as_list().into_iter().flatten().filter_map(Value::as_str);
        takes.types.extend(one.chain(many).map(str::to_owned));
    } else if let Some(several) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_list)
    {
        several.iter().for_each(|one| gather(doc, one, takes, depth + 1));
    } else if schema.get("properties").is_some() {
        takes.types.push("object".to_owned());
    } else {
        takes.anything = true;
    }
}

impl Takes {
    fn takes(&self, kind: &str) -> bool {
        self.types.iter().any(|taken| taken == kind)
    }

    /// A text can stand there as it is.
    pub(crate) fn takes_text(&self) -> bool {
        self.anything || self.takes("string")
    }

    /// The value that a text is there.
    pub(crate) fn value(&self, text: &str) -> Result<Value, Misfit> {
        if let Some(choice) = self.choices.iter().find(|choice| spoken(choice) == text) {
            return Ok(choice.clone());
        }
        if self.takes_text() {
            return Ok(Value::str(text));
        }
        let whole = || text.parse().ok().map(Value::Int);
        let json = |kind: &str| strict_json::read(text).ok().filter(|value| value.type_name() == kind);
        let read = |kind: &String| match kind.as_str() {
            "boolean" => text.parse().ok().map(Value::Bool),
            "integer" => whole(),
            "number" => number(text),
            "null" => (text == "null").then_some(Value::Null),
            "array" => json("list"),
            "object" => json("map"),
            _ => None,
        };
        self.types.iter().find_map(read).ok_or_else(|| self.misfit())
    }

    fn misfit(&self) -> Misfit {
        let mut expected: Vec<String> = Vec::new();
        if !self.choices.is_empty() {
            let choices: Vec<String> = self.choices.iter().map(spoken).collect();
            let one = if choices.len() == 1 { "" } else { "one of " };
            expected.push(format!("{one}{}", choices.join(", ")));
        }
        expected.extend(self.types.iter().map(|kind| in_words(kind).to_owned()));
        let instead = match (self.choices.first(), self.types.first().map(String::as_str)) {
            (Some(choice), _) => format!("={}", spoken(choice)),
            (None, Some("boolean")) => "=true".to_owned(),
            (None, Some("integer")) => "=7".to_owned(),
            (None, Some("number")) => "=1.5".to_owned(),
            (None, Some("array")) => ":='[…]'".to_owned(),
            (None, Some("object")) => ":='{…}'".to_owned(),
            (None, _) => ":=null".to_owned(),
        };
        Misfit { expected: expected.join(" or "), instead }
    }

    /// What can be typed behind `key=`, for people: `true|false`, `TEXT`.
    pub(crate) fn spelt(&self) -> String {
        let mut parts: Vec<String> = self.choices.iter().map(spoken).collect();
        if self.anything {
            parts.push("JSON".to_owned());
        }
        parts.extend(self.types.iter().map(|kind| {
            let word = match kind.as_str() {
                "boolean" => "true|false",
                "integer" => "WHOLE-NUMBER",
                "number" => "NUMBER",
                "string" => "TEXT",
                "null" => "null",
                _ => "JSON",
            };
            word.to_owned()
        }));
        parts.dedup();
        parts.join("|")
    }
}

/// A number as it is written, exactly: a whole one that no 64-bit integer is would be another as a float.
pub(crate) fn number(text: &str) -> Option<Value> {
    let float = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float);
    text.parse().ok().map(Value::Int).or_else(|| float().filter(|_| text.contains(['.', 'e', 'E'])))
}

/// A value as it is said: a text without its quotes.
pub(crate) fn spoken(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn in_words(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list in JSON",
        "object" => "an object in JSON",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Value {
        Value::from_json_str(text).unwrap()
    }

    fn typed(doc: &str, text: &str) -> Result<String, String> {
        let doc = schema(doc);
        takes(&doc, &doc).value(text).map(|value| value.to_string()).map_err(|misfit| misfit.expected)
    }

    #[test]
    fn a_text_is_what_the_schema_says_it_is() {
        let cases = [
            ("{}", "1.10", Ok(r#""1.10""#)),
            (r#"{"type":"string"}"#, "1.10", Ok(r#""1.10""#)),
            (r#"{"type":"string"}"#, "null", Ok(r#""null""#)),
            (r#"{"type":["string","number"]}"#, "1.10", Ok(r#""1.10""#)),
            (r#"{"type":"number"}"#, "1.10", Ok("1.1")),
            (r#"{"type":"number"}"#, "7", Ok("7")),
            (r#"{"type":"number"}"#, "NaN", Err("a number")),
            (r#"{"type":"number"}"#, "9223372036854775808", Err("a number")),
            (r#"{"type":"number"}"#, "1e19", Ok("1e+19")),
            (r#"{"type":"integer"}"#, "7", Ok("7")),
            (r#"{"type":"integer"}"#, "7.5", Err("a whole number")),
            (r#"{"type":"boolean"}"#, "true", Ok("true")),
            (r#"{"type":"boolean"}"#, "yes", Err("true or false")),
            (r#"{"type":["integer","null"]}"#, "null", Ok("null")),
            (r#"{"type":["integer","null"]}"#, "x", Err("a whole number or null")),
            (r#"{"type":"array"}"#, "[1]", Ok("[1]")),
            (r#"{"type":"array"}"#, "a,b", Err("a list in JSON")),
            (r#"{"enum":["7",8]}"#, "7", Ok(r#""7""#)),
            (r#"{"enum":["7",8]}"#, "8", Ok("8")),
            (r#"{"enum":["raise","abort"]}"#, "rise", Err("one of raise, abort")),
            (r#"{"anyOf":[{"type":"integer"},{"const":"all"}]}"#, "all", Ok(r#""all""#)),
            (r#"{"anyOf":[{"type":"integer"},{"const":"all"}]}"#, "3", Ok("3")),
            (r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}"##, "3", Ok("3")),
        ];
        for (doc, text, expected) in cases {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(typed(doc, text), expected, "{text} by {doc}");
        }
    }

    #[test]
    fn a_key_is_found_where_it_is_written() {
        let doc = schema(
            r##"{"additionalProperties":false,"properties":{"who":{"type":"string"},
               "at":{"$ref":"#/$defs/at"}},"$defs":{"at":{"properties":{"line":{"type":"integer"}}}}}"##,
        );
        let path = |text: &str| -> Vec<Arc<str>> { text.split('.').map(Arc::from).collect() };
        assert!(
            matches!(key(&doc, &path("at.line")), Key::At(found) if found == &schema(r#"{"type":"integer"}"#))
        );
        assert!(matches!(key(&doc, &path("at.column")), Key::Free));
        assert!(matches!(key(&doc, &path("whom")), Key::Unknown { near: Some("who"), .. }));
        assert!(matches!(key(&Value::Null, &path("who")), Key::Free));
    }
}
