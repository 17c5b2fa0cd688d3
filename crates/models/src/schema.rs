//! JSON Schema as far as each provider can hold a model to it.
//!
//! What a provider's dialect cannot say about a single value (a length, a pattern) becomes part of the
//! description, so that the model hears of it; we check it afterwards in any case. What it cannot say about the
//! shape (maps with free keys, values of any kind, optional keys where all must be there) cannot be narrowed
//! without changing what is asked for: then there is no strict form, and the caller takes a weaker one.

use serde_json::{Map as JsonMap, Value as Json, json};

/// How an output schema is put to a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// None is asked for.
    Free,
    /// The provider holds the model to it.
    Strict(Json),
    /// The provider shows it to the model.
    Loose(Json),
    /// We tell the model.
    Told(Json),
}

pub(crate) struct Dialect {
    /// What it says about single values beside types, enums and descriptions.
    keeps: &'static [&'static str],
    /// The `format`s that it knows; None: all.
    formats: Option<&'static [&'static str]>,
    /// Keys may be missing.
    optional: bool,
    /// Maps may have any keys, lists anything in them.
    free: bool,
    /// Schemas may contain themselves.
    recursive: bool,
    all_of: bool,
}

pub(crate) const OPENAI: Dialect = Dialect {
    keeps: &[
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ],
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    optional: false,
    free: false,
    recursive: true,
    all_of: false,
};

pub(crate) const ANTHROPIC: Dialect = Dialect {
    keeps: &[],
    formats: Some(&[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ]),
    optional: true,
    free: false,
    recursive: false,
    all_of: true,
};

pub(crate) const GEMINI: Dialect = Dialect {
    keeps: &["minItems", "maxItems", "minimum", "maximum", "propertyOrdering"],
    formats: None,
    optional: true,
    free: true,
    recursive: true,
    all_of: false,
};

/// Says nothing about a value, or nothing that a model needs to hear.
const SILENT: [&str; 12] = [
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

const DEPTH_MAX: usize = 32;

/// The schema in a dialect; None if the dialect cannot say its shape.
pub(crate) fn narrowed(schema: &Json, dialect: &Dialect) -> Option<Json> {
    if !dialect.recursive && is_recursive(schema) {
        return None;
    }
    narrow(schema, dialect, DEPTH_MAX)
}

/// Whether the top of a schema is a map and nothing else.
pub(crate) fn is_object(schema: &Json) -> bool {
    schema["type"] == "object" && schema.get("anyOf").is_none() && schema.get("oneOf").is_none()
}

fn narrow(schema: &Json, dialect: &Dialect, depth: usize) -> Option<Json> {
    if depth == 0 {
        return None;
    }
    let inner = |schema: &Json| narrow(schema, dialect, depth - 1);
    let Json::Object(from) = schema else {
        return (dialect.free && *schema == Json::Bool(true)).then(|| json!({}));
    };
    let mut to = JsonMap::new();
    let mut left = from.clone();
    for key in SILENT {
        left.remove(key);
    }
    for key in ["$defs", "definitions"] {
        if let Some(Json::Object(defs)) = left.remove(key) {
            let defs: Option<JsonMap<_, _>> =
                defs.iter().map(|(name, schema)| Some((name.clone(), inner(schema)?))).collect();
            to.insert(key.to_owned(), Json::Object(defs?));
        }
    }
    if let Some(target) = left.remove("$ref") {
        to.insert("$ref".to_owned(), target);
        return Some(Json::Object(to));
    }
    for key in ["description", "title"] {
        if let Some(text @ Json::String(_)) = left.remove(key) {
            to.insert(key.to_owned(), text);
        }
    }
    choices(&mut left, &mut to, dialect, depth)?;
    if let Some(kind) = left.remove("type") {
        to.insert("type".to_owned(), kind);
    }
    let says_what = ["type", "anyOf", "allOf", "enum", "const"].iter().any(|key| to.contains_key(*key));
    if !says_what && !dialect.free {
        return None;
    }
    if is_a(&to, "object") {
        object(&mut left, &mut to, dialect, depth)?;
    }
    if is_a(&to, "array") {
        match left.remove("items") {
            Some(items) => to.insert("items".to_owned(), inner(&items)?),
            None if dialect.free => None,
            None => return None,
        };
    }
    details(left, &mut to, dialect);
    Some(Json::Object(to))
}

/// Alternatives and fixed values.
fn choices(
    left: &mut JsonMap<String, Json>,
    to: &mut JsonMap<String, Json>,
    dialect: &Dialect,
    depth: usize,
) -> Option<()> {
    // Providers know no "exactly one of"; we do, when we check.
    for (from, key) in [("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")] {
        let Some(Json::Array(list)) = left.remove(from) else { continue };
        if to.contains_key(key) || (key == "allOf" && !dialect.all_of) {
            return None;
        }
        let list: Option<Vec<Json>> = list.iter().map(|one| narrow(one, dialect, depth - 1)).collect();
        to.insert(key.to_owned(), Json::Array(list?));
    }
    if let Some(list) = left.remove("enum") {
        to.insert("enum".to_owned(), list);
    }
    if let Some(value) = left.remove("const") {
        // One value is a list of one for those who do not know `const`.
        to.insert("enum".to_owned(), json!([value]));
    }
    Some(())
}

fn object(
    left: &mut JsonMap<String, Json>,
    to: &mut JsonMap<String, Json>,
    dialect: &Dialect,
    depth: usize,
) -> Option<()> {
    let others = left.remove("additionalProperties");
    let closed = others == Some(Json::Bool(false));
    let properties = match left.remove("properties") {
        Some(Json::Object(properties)) => properties,
        _ if closed || dialect.free => JsonMap::new(),
        _ => return None,
    };
    let required = match left.remove("required") {
        Some(Json::Array(required)) => required,
        _ => Vec::new(),
    };
    let is_known = |key: &Json| key.as_str().is_some_and(|key| properties.contains_key(key));
    if !dialect.free {
        let opened = others.is_some() && !closed;
        let empty = properties.is_empty() && !closed;
        if opened || empty || left.contains_key("patternProperties") || !required.iter().all(is_known) {
            return None;
        }
    }
    if !dialect.optional && required.len() != properties.len() {
        return None;
    }
    let narrowed: Option<JsonMap<_, _>> = properties
        .iter()
        .map(|(name, schema)| Some((name.clone(), narrow(schema, dialect, depth - 1)?)))
        .collect();
    if !dialect.free || !properties.is_empty() {
        to.insert("properties".to_owned(), Json::Object(narrowed?));
    }
    if !dialect.free || !required.is_empty() {
        to.insert("required".to_owned(), Json::Array(required));
    }
    match others {
        _ if !dialect.free => to.insert("additionalProperties".to_owned(), Json::Bool(false)),
        Some(Json::Bool(flag)) => to.insert("additionalProperties".to_owned(), Json::Bool(flag)),
        Some(schema) => to.insert("additionalProperties".to_owned(), narrow(&schema, dialect, depth - 1)?),
        None => None,
    };
    Some(())
}

/// What is left: kept if the dialect has it, said in the description if not.
fn details(left: JsonMap<String, Json>, to: &mut JsonMap<String, Json>, dialect: &Dialect) {
    let mut told = Vec::new();
    for (key, value) in left {
        let known_format = || dialect.formats.is_none_or(|known| known.iter().any(|known| value == **known));
        if dialect.keeps.contains(&&*key) || (key == "format" && known_format()) {
            to.insert(key, value);
        } else {
            told.push(format!("{key}: {value}"));
        }
    }
    if !told.is_empty() {
        let told = format!("{{{}}}", told.join(", "));
        let description = match to.get("description").and_then(Json::as_str) {
            Some(text) => format!("{text}\n\n{told}"),
            None => told,
        };
        to.insert("description".to_owned(), Json::String(description));
    }
}

fn is_a(schema: &JsonMap<String, Json>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Json::String(one)) => one == kind,
        Some(Json::Array(many)) => many.iter().any(|one| one == kind),
        _ => false,
    }
}

/// Whether a schema refers to itself: following references does not come to an end.
fn is_recursive(schema: &Json) -> bool {
    fn walk<'s>(root: &'s Json, at: &'s Json, open: &mut Vec<&'s str>) -> bool {
        match at {
            Json::Array(items) => items.iter().any(|item| walk(root, item, open)),
            Json::Object(map) => {
                if let Some(target) = map.get("$ref").and_then(Json::as_str) {
                    // A chain that long is as good as endless to a provider.
                    if open.contains(&target) || open.len() >= DEPTH_MAX {
                        return true;
                    }
                    let Some(found) = root.pointer(target.trim_start_matches('#')) else { return true };
                    open.push(target);
                    let recursive = walk(root, found, open);
                    open.pop();
                    return recursive;
                }
                let parts = map.iter().filter(|(key, _)| *key != "$defs" && *key != "definitions");
                parts.into_iter().any(|(_, part)| walk(root, part, open))
            }
            _ => false,
        }
    }
    walk(schema, schema, &mut Vec::new())
}
