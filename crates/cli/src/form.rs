//! A gate's form, which is a JSON Schema: the fields a person is asked for, and an answer that fits it.
//!
//! It reads the parts of a schema that forms are made of. What it does not understand it asks for as JSON;
//! whether an answer fits is for the schema alone to say.

use wonder_core::Value;
use wonder_core::schema::Schema;
use wonder_core::value::Map;

use crate::typing::{self, Key, Takes, spoken};
use crate::view::words::shell_word;

/// How deep an example follows a schema.
const DEPTH_MAX: usize = 8;

/// One thing to ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub about: String,
    pub required: bool,
    pub kind: FieldKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    YesNo,
    Choice(Vec<Value>),
    Integer,
    Number,
    Text,
    /// Anything else: typed as JSON.
    Json,
}

/// The fields of a form, those that must be there first; none if it is not a form of fields.
pub(crate) fn fields(form: &Value) -> Option<Vec<Field>> {
    let properties = form.get("properties")?.as_map()?;
    let mut fields: Vec<Field> = properties
        .iter()
        .map(|(name, schema)| Field {
            name: name.to_string(),
            about: about(schema),
            required: is_required(form, name),
            kind: kind(form, schema),
        })
        .collect();
    fields.sort_by_key(|field| !field.required);
    Some(fields)
}

fn is_required(form: &Value, name: &str) -> bool {
    let required = form.get("required").and_then(Value::as_list).unwrap_or(&[]);
    required.iter().any(|one| one.as_str() == Some(name))
}

fn about(schema: &Value) -> String {
    let text = schema.get("description").or_else(|| schema.get("title")).and_then(Value::as_str);
    text.unwrap_or("").to_owned()
}

fn kind(form: &Value, schema: &Value) -> FieldKind {
    let takes = typing::takes(form, schema);
    if !takes.choices.is_empty() && takes.types.is_empty() && !takes.anything {
        return FieldKind::Choice(takes.choices);
    }
    match takes.types.as_slice() {
        _ if takes.anything => FieldKind::Json,
        [one] if one == "boolean" => FieldKind::YesNo,
        [one] if one == "integer" => FieldKind::Integer,
        [one] if one == "number" => FieldKind::Number,
        [one] if one == "string" => FieldKind::Text,
        _ => FieldKind::Json,
    }
}

/// All that can be typed behind `wonder answer GATE`: `ok=true|false [comment=TEXT]`.
pub(crate) fn choices(form: &Value) -> String {
    if form.is_null() {
        return "anything: key=text, key:=JSON, or JSON".to_owned();
    }
    let Some(fields) = fields(form) else { return typing::takes(form, form).spelt() };
    let spelt = |field: &Field| {
        let text = match key_takes(form, &field.name).spelt() {
            json if json == "JSON" => format!("{}:=JSON", field.name),
            text => format!("{}={text}", field.name),
        };
        if field.required { text } else { format!("[{text}]") }
    };
    fields.iter().map(spelt).collect::<Vec<_>>().join(" ")
}

fn key_takes(form: &Value, name: &str) -> Takes {
    match typing::key(form, &[name.into()]) {
        Key::At(schema) => typing::takes(form, schema),
        Key::Free | Key::Unknown { .. } => Takes { anything: true, ..Takes::default() },
    }
}

/// Why an answer does not fit; empty if it does. A form of null takes anything.
pub(crate) fn violations(form: &Value, answer: &Value) -> Vec<String> {
    if form.is_null() {
        return Vec::new();
    }
    let Ok(schema) = Schema::compile(form) else { return Vec::new() };
    let found = schema.check(answer).err().unwrap_or_default();
    found
        .into_iter()
        .map(|v| if v.path.is_empty() { v.message } else { format!("{}: {}", v.path, v.message) })
        .collect()
}

/// An answer that fits the form, if one is easily found: the least of it, else all of it.
pub(crate) fn example(form: &Value) -> Option<Value> {
    if form.is_null() {
        return Some(Value::map([("ok", Value::Bool(true))]));
    }
    let fits = |answer: &Value| violations(form, answer).is_empty();
    [Amount::Required, Amount::All].into_iter().map(|amount| made_up(form, amount, 0)).find(fits)
}

#[derive(Clone, Copy, PartialEq)]
enum Amount {
    Required,
    All,
}

fn made_up(schema: &Value, amount: Amount, depth: usize) -> Value {
    let first = |key: &str| schema.get(key).and_then(Value::as_list).and_then(|list| list.first()).cloned();
    let given = schema.get("const").or_else(|| schema.get("default")).cloned();
    if let Some(value) = given.or_else(|| first("examples")).or_else(|| first("enum")) {
        return value;
    }
    if let Some(one) = first("anyOf").or_else(|| first("oneOf")).filter(|_| depth < DEPTH_MAX) {
        return made_up(&one, amount, depth + 1);
    }
    let types = schema.get("type");
    let kind = types.and_then(Value::as_str).or_else(|| types?.as_list()?.first()?.as_str());
    match kind {
        Some("boolean") => Value::Bool(true),
        Some("integer") => Value::Int(least(schema).ceil() as i64),
        Some("number") => number(least(schema)),
        Some("string") => Value::str(example_text(schema)),
        Some("null") => Value::Null,
        Some("array") => items(schema, amount, depth),
        Some("object") => object(schema, amount, depth),
        _ if schema.get("properties").is_some() => object(schema, amount, depth),
        _ => Value::str("..."),
    }
}

fn object(schema: &Value, amount: Amount, depth: usize) -> Value {
    let Some(properties) = schema.get("properties").and_then(Value::as_map) else {
        return Value::empty_map();
    };
    let wanted = |name: &str| amount == Amount::All || is_required(schema, name);
    let entries = properties.iter().filter(|(name, _)| depth < DEPTH_MAX && wanted(name));
    Value::from(entries.map(|(name, part)| (name.clone(), made_up(part, amount, depth + 1))).collect::<Map>())
}

fn items(schema: &Value, amount: Amount, depth: usize) -> Value {
    let least = schema.get("minItems").and_then(Value::as_i64).unwrap_or(0).clamp(0, 8);
    let item = schema.get("items").cloned().unwrap_or(Value::Bool(true));
    Value::list((0..least).filter(|_| depth < DEPTH_MAX).map(|_| made_up(&item, amount, depth + 1)))
}

/// The smallest number that fits, or one.
fn least(schema: &Value) -> f64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    match (bound("minimum"), bound("exclusiveMinimum"), bound("maximum")) {
        (Some(least), _, _) => least,
        (None, Some(below), _) => below.floor() + 1.0,
        (None, None, Some(most)) => most.min(1.0),
        (None, None, None) => 1.0,
    }
}

/// Whole numbers without their fraction: `1`, not `1.0`.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        Value::Int(number as i64)
    } else {
        Value::Float(number)
    }
}

fn example_text(schema: &Value) -> String {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("email") => "me@example.com",
        Some("uri") => "https://example.com",
        _ => "text",
    };
    let least = schema.get("minLength").and_then(Value::as_i64).unwrap_or(0).clamp(0, 200) as usize;
    let most =
        schema.get("maxLength").and_then(Value::as_i64).map_or(usize::MAX, |most| most.max(0) as usize);
    let filled = format!("{text}{}", "x".repeat(least.saturating_sub(text.len())));
    filled.chars().take(most).collect()
}

/// An answer as it is typed behind `wonder answer GATE`, so that by the form it is read as that answer.
pub(crate) fn typed(answer: &Value, form: &Value) -> String {
    if let Value::String(text) = answer
        && !form.is_null()
        && typing::takes(form, form).takes_text()
        && Value::from_json_str(text).is_err()
    {
        return shell_word(text);
    }
    let pairs = answer.as_map().filter(|map| !map.is_empty()).and_then(|map| {
        map.iter().map(|(key, value)| pair(form, key, value)).collect::<Option<Vec<String>>>()
    });
    pairs.map_or_else(|| shell_word(&answer.to_string()), |pairs| pairs.join(" "))
}

fn pair(form: &Value, key: &str, value: &Value) -> Option<String> {
    let simple = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let text = match key_takes(form, key).value(&spoken(value)) {
        Ok(read) if read == *value => format!("{key}={}", spoken(value)),
        _ => format!("{key}:={value}"),
    };
    (!key.is_empty() && key.chars().all(simple)).then(|| shell_word(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json_str(json).unwrap()
    }

    #[test]
    fn an_example_fits_the_form_it_is_for() {
        let forms = [
            (r#"null"#, "ok:=true"),
            (r#"{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}"#, "ok=true"),
            (
                r#"{"type":"object","required":["action"],"additionalProperties":false,"properties":{
                    "action":{"enum":["raise","abort"]},"usd":{"type":"number","exclusiveMinimum":0}}}"#,
                "action=raise",
            ),
            (r#"{"type":"string","minLength":6}"#, "textxx"),
            (r#"{"type":"integer","minimum":3}"#, "3"),
            (r#"{"type":"object","minProperties":1,"properties":{"note":{"type":"string"}}}"#, "note=text"),
            (
                r#"{"type":"object","required":["tags"],"properties":{"tags":{"type":"array","minItems":1,
                    "items":{"type":"string"}}}}"#,
                r#"'tags=["text"]'"#,
            ),
            (
                r#"{"type":"object","required":["zip"],"properties":{"zip":{"enum":["0123","7"]}}}"#,
                "zip=0123",
            ),
        ];
        for (form, typed_as) in forms {
            let form = value(form);
            let answer = example(&form).unwrap_or_else(|| panic!("no example for {form}"));
            assert_eq!(typed(&answer, &form), typed_as, "{form}");
        }
        // Nothing that is made up matches a pattern: say nothing rather than something wrong.
        assert_eq!(example(&value(r#"{"type":"string","pattern":"^[0-9]{5}$"}"#)), None);
    }

    #[test]
    fn all_choices_of_a_form_are_spelt_out() {
        let cases = [
            ("null", "anything: key=text, key:=JSON, or JSON"),
            (r#"{"type":"boolean"}"#, "true|false"),
            (r#"{"enum":["ship","drop"]}"#, "ship|drop"),
            (
                r#"{"required":["action"],"properties":{"action":{"enum":["raise","abort"]},
                    "usd":{"type":"number"},"why":{"type":["string","null"]},"more":{"type":"object"}}}"#,
                "action=raise|abort [more:=JSON] [usd=NUMBER] [why=TEXT|null]",
            ),
        ];
        for (form, spelt) in cases {
            assert_eq!(choices(&value(form)), spelt, "{form}");
        }
    }

    #[test]
    fn fields_come_with_those_that_must_be_there_first() {
        let form = value(
            r#"{"required":["score"],"properties":{"comment":{"type":"string","description":"why"},
                "score":{"type":"integer"},"verdict":{"enum":["good","bad"]},"more":{"type":"object"}}}"#,
        );
        let fields = fields(&form).unwrap();
        let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["score", "comment", "more", "verdict"]);
        assert_eq!(fields[0].kind, FieldKind::Integer);
        assert_eq!(fields[1].about, "why");
        assert_eq!(fields[2].kind, FieldKind::Json);
        assert_eq!(fields[3].kind, FieldKind::Choice(vec![Value::str("good"), Value::str("bad")]));
    }
}
