//! JSON Schema, compiled once (draft 2020-12 unless the document says otherwise).
//!
//! Never fetches anything: a `$ref` stays inside its document. Patterns are of the kind that matches
//! in linear time, so look-around and back-references are refused.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;

use crate::value::{Map, Value};

const VIOLATIONS_MAX: usize = 20;
const MESSAGE_CHARS_MAX: usize = 300;
const PATTERN_BYTES_MAX: usize = 1 << 20;
const REFS_MAX: usize = 16;

/// A compiled schema. Clones share it.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    doc: Value,
    validator: Validator,
    /// The same schema with nothing but what it says about single properties.
    properties: Option<Validator>,
}

/// What a value breaks, and where in the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer: `/a/0`, empty for the whole value.
    pub path: String,
    pub message: String,
}

/// What a schema says about an object as a whole. The rest of it judges one property at a time.
const WHOLE: [&str; 17] = [
    "required",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "const",
    "enum",
];

impl Schema {
    pub fn compile(doc: &Value) -> Result<Schema, String> {
        if !matches!(doc, Value::Map(_) | Value::Bool(_)) {
            return Err(format!("a schema is a map, not a {}", doc.type_name()));
        }
        local_refs_only(doc)?;
        let validator = build(&doc.to_json())?;
        let properties = top(doc).map(|top| {
            let mut part = top.clone();
            part.retain(|key, _| !WHOLE.contains(&&**key));
            // What the document defines stays reachable when the top itself is a reference.
            for key in ["$defs", "definitions", "$schema"] {
                if let Some(value) = doc.get(key) {
                    part.entry(key.into()).or_insert_with(|| value.clone());
                }
            }
            Value::from(part).to_json()
        });
        // A reference into what was left out does not compile: then only the whole check can judge.
        let properties = properties.and_then(|part| build(&part).ok());
        Ok(Schema(Arc::new(Compiled { doc: doc.clone(), validator, properties })))
    }

    pub fn doc(&self) -> &Value {
        &self.0.doc
    }

    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        violations(&self.0.validator, &value.to_json())
    }

    /// Checks a value that is about to become the property `name`, as far as the schema says anything
    /// about that property alone. The paths of violations start with the property.
    pub fn check_property(&self, name: &str, value: &Value) -> Result<(), Vec<Violation>> {
        let Some(properties) = &self.0.properties else { return Ok(()) };
        violations(properties, &Json::Object([(name.to_owned(), value.to_json())].into_iter().collect()))
    }

    /// The declared JSON types of a top-level property, if it declares any.
    pub fn property_types(&self, name: &str) -> Option<Vec<String>> {
        let property = top(&self.0.doc)?.get("properties")?.get(name)?;
        match resolve(&self.0.doc, property)?.get("type")? {
            Value::String(one) => Some(vec![one.to_string()]),
            Value::List(many) => many.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
            _ => None,
        }
    }

    /// Whether no value at all may stand under `name`.
    pub fn forbids_property(&self, name: &str) -> bool {
        let Some(top) = top(&self.0.doc) else { return false };
        let declared = |key: &str| top.get(key).and_then(Value::as_map);
        let patterns = declared("patternProperties").is_some_and(|patterns| !patterns.is_empty());
        let closed = top.get("additionalProperties") == Some(&Value::Bool(false));
        closed && !patterns && declared("properties").is_none_or(|properties| !properties.contains_key(name))
    }
}

fn build(doc: &Json) -> Result<Validator, String> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
    jsonschema::options().offline().with_pattern_options(patterns).build(doc).map_err(|error| {
        let path = error.instance_path().to_string();
        let at = if path.is_empty() { String::new() } else { format!(" at {path}") };
        format!("invalid schema{at}: {}", shorten(&error.to_string()))
    })
}

fn violations(validator: &Validator, value: &Json) -> Result<(), Vec<Violation>> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let found = validator.iter_errors(value).take(VIOLATIONS_MAX).map(|error| Violation {
        path: error.instance_path().to_string(),
        message: shorten(&error.to_string()),
    });
    Err(found.collect())
}

/// The library quotes the offending value in full, however long it is.
fn shorten(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_owned(),
        Some(_) => {
            let chars: Vec<char> = message.chars().collect();
            let half = MESSAGE_CHARS_MAX / 2;
            let (head, tail) = (&chars[..half], &chars[chars.len() - half..]);
            head.iter().chain(&[' ', '…', ' ']).chain(tail).collect()
        }
    }
}

/// The map that describes the value itself, found through references.
fn top(doc: &Value) -> Option<&Map> {
    resolve(doc, doc)?.as_map()
}

/// Follows references inside the document; none if one leads nowhere.
pub fn resolve<'a>(doc: &'a Value, mut schema: &'a Value) -> Option<&'a Value> {
    for _ in 0..REFS_MAX {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
        let pointer = reference.strip_prefix('#')?;
        schema = pointer.split('/').skip(1).try_fold(doc, |value, part| {
            let key = part.replace("~1", "/").replace("~0", "~");
            match value {
                Value::List(items) => items.get(key.parse::<usize>().ok()?),
                value => value.get(&key),
            }
        })?;
    }
    None
}

fn local_refs_only(schema: &Value) -> Result<(), String> {
    match schema {
        Value::List(items) => items.iter().try_for_each(local_refs_only),
        Value::Map(map) => map.iter().try_for_each(|(key, value)| match (&**key, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) if !to.starts_with('#') => {
                Err(format!("`{to}` lies outside the schema: only references that start with # are followed"))
            }
            // Data, not schemas.
            ("const" | "enum" | "default" | "examples", _) => Ok(()),
            (_, value) => local_refs_only(value),
        }),
        _ => Ok(()),
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.doc.to_string()).finish()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.0.doc == other.0.doc
    }
}

impl Eq for Schema {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::from_json_str(text).unwrap()
    }

    fn schema(text: &str) -> Schema {
        Schema::compile(&value(text)).unwrap()
    }

    #[test]
    fn violations_say_where() {
        let schema = schema(
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"array","items":{"type":"integer"}}}}"#,
        );
        assert_eq!(schema.check(&value(r#"{"a":[1,2.0]}"#)), Ok(()));
        let violations = schema.check(&value(r#"{"a":[1,"x"]}"#)).unwrap_err();
        assert_eq!(violations[0].to_string(), r#"/a/1: "x" is not of type "integer""#);
        assert_eq!(schema.check(&value("{}")).unwrap_err()[0].path, "");
        let long = Value::map([("a", Value::from("é".repeat(5000)))]);
        assert!(schema.check(&long).unwrap_err()[0].message.chars().count() < 310);
    }

    #[test]
    fn one_property_is_judged_without_the_others() {
        let schema = schema(
            r##"{"required":["a","b"],"minProperties":2,"additionalProperties":false,"$defs":{"n":{"type":"integer"}},
               "properties":{"a":{"$ref":"#/$defs/n"},"b":{"type":["string","null"]}}}"##,
        );
        assert_eq!(schema.check_property("a", &Value::Int(1)), Ok(()));
        assert_eq!(schema.check_property("a", &Value::str("x")).unwrap_err()[0].path, "/a");
        assert!(schema.check_property("c", &Value::Null).is_err());
        assert!(schema.forbids_property("c") && !schema.forbids_property("a"));
        assert_eq!(schema.property_types("a"), Some(vec!["integer".to_owned()]));
        assert_eq!(schema.property_types("b"), Some(vec!["string".to_owned(), "null".to_owned()]));
        assert_eq!(schema.property_types("c"), None);
    }

    #[test]
    fn a_top_that_is_a_reference_is_followed() {
        let schema = schema(r##"{"$ref":"#/$defs/s","$defs":{"s":{"properties":{"a":{"type":"string"}}}}}"##);
        assert!(schema.check_property("a", &Value::Int(1)).is_err());
        assert_eq!(schema.property_types("a"), Some(vec!["string".to_owned()]));
        assert!(!schema.forbids_property("zz"));
    }

    #[test]
    fn what_is_no_local_schema_is_refused() {
        for text in [
            "3",
            r#"{"type":"wrong"}"#,
            r#"{"$ref":"https://example.com/s.json"}"#,
            r#"{"properties":{"a":{"$ref":"other.json#/x"}}}"#,
            r##"{"$ref":"#/$defs/absent"}"##,
            r#"{"pattern":"(?=x)y"}"#,
            r#"{"pattern":"("}"#,
        ] {
            assert!(Schema::compile(&value(text)).is_err(), "{text}");
        }
        assert!(schema(r#"{"const":{"$ref":"https://x"}}"#).check(&Value::Null).is_err());
    }
}
