//! The published JSON Schema (draft 2020-12), made from the table of shapes, so that editors complete and
//! check what the reader reads. It is no stricter than the reader.

use serde_json::{Map, Value as Json, json};
use wonder_core::error::ErrorKind;

use crate::shape::{Choice, Form, Key, Shape, TEST_DOCUMENT, Word, all_shapes, shapes_of, stored_kinds};

/// The JSON Schema of one document of a file.
pub fn schema() -> Json {
    let definitions = definitions(all_shapes());
    let documents = [
        "workflow",
        "task_document",
        "action_document",
        "prompt_document",
        "model_document",
        "artifact_type_document",
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://wonder.run/schema/v1.json",
        "title": "Wonder",
        "description": "One document of a Wonder file. It is a workflow if it has `nodes`, a task if it has `steps`, \
                        an action if it has a kind of action, a prompt if it has `template`, a model if it has `model`, else a type of artifacts.",
        "type": "object",
        "if": {"anyOf": [{"required": ["nodes"]}, kind_is(&["workflow", "graph", "dag"])]},
        "then": reference(documents[0]),
        "else": {
            "if": {"anyOf": [{"required": ["steps"]}, kind_is(&["task"])]},
            "then": reference(documents[1]),
            "else": {
                "if": {"anyOf": [{"required": ["template"]}, kind_is(&["prompt"])]},
                "then": reference(documents[3]),
                "else": {
                    "if": {"anyOf": [{"required": ["model"]}, kind_is(&["model"])]},
                    "then": reference(documents[4]),
                    "else": {
                        "if": {"anyOf": [{"required": ["media_type"]}, kind_is(&["artifact_type"])]},
                        "then": reference(documents[5]),
                        "else": reference(documents[2]),
                    }
                }
            }
        },
        "$defs": definitions,
    })
}

/// The JSON Schema of a `*.test.yaml`.
pub fn test_schema() -> Json {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://wonder.run/schema/test-v1.json",
        "title": "Wonder test",
        "$ref": format!("#/$defs/{}", TEST_DOCUMENT.name),
        "$defs": definitions(shapes_of(&[TEST_DOCUMENT])),
    })
}

fn definitions(shapes: Vec<&'static Shape>) -> Map<String, Json> {
    shapes.into_iter().map(|shape| (shape.name.to_owned(), object(shape))).collect()
}

fn kind_is(words: &[&str]) -> Json {
    json!({"required": ["kind"], "properties": {"kind": {"enum": words}}})
}

fn reference(name: &str) -> Json {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn object(shape: &Shape) -> Json {
    let mut properties = Map::new();
    for key in shape.all_keys() {
        properties.insert(key.name.to_owned(), described(form(&key.form), key));
        if key.form.has_millis() {
            let about = format!("{} In milliseconds.", key.about);
            properties.insert(
                format!("{}_ms", key.name),
                json!({"type": "integer", "minimum": 0, "description": about}),
            );
        }
    }
    let required: Vec<&str> = shape.all_keys().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": shape.about,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let choices: Vec<Json> = shape.choices.iter().map(choice).collect();
    if !choices.is_empty() {
        schema["allOf"] = Json::Array(choices);
    }
    schema
}

fn described(mut schema: Json, key: &Key) -> Json {
    let about = match key.default {
        "" => key.about.to_owned(),
        default => format!("{} Default: {default}.", key.about),
    };
    schema["description"] = about.into();
    schema
}

fn choice(choice: &Choice) -> Json {
    let required = |key: &&str| json!({"required": [key]});
    let pairs = |keys: &[&str]| -> Vec<Json> {
        let pair = |(at, first): (usize, &&str)| {
            let rest = keys[at + 1..].iter();
            rest.map(|second| json!({"not": {"required": [first, second]}})).collect::<Vec<_>>()
        };
        keys.iter().enumerate().flat_map(pair).collect()
    };
    match choice {
        Choice::ExactlyOne(_, keys) => json!({"oneOf": keys.iter().map(required).collect::<Vec<_>>()}),
        // A bound in milliseconds is a bound as well.
        Choice::AtLeastOne(_, keys) => {
            let mut any: Vec<Json> = keys.iter().map(required).collect();
            any.extend(keys.iter().map(|key| json!({"required": [format!("{key}_ms")]})));
            json!({"anyOf": any})
        }
        Choice::AtMostOne(keys) => json!({"allOf": pairs(keys)}),
        Choice::With(key, other) => json!({"dependentRequired": {*key: [other]}}),
    }
}

const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+$";
const NAME: &str = r"^(node:|task:)?[\p{L}\p{N}_.-]+(/[\p{L}\p{N}_.-]+)*$";
const NAME_AT: &str = r"^(node:|task:)?[\p{L}\p{N}_.-]+(/[\p{L}\p{N}_.-]+)*(@[1-9][0-9]*)?$";

fn form(form: &Form) -> Json {
    match form {
        Form::Text | Form::Template | Form::Expression => json!({"type": ["string", "number", "boolean"]}),
        Form::Name => json!({"type": "string", "pattern": NAME}),
        Form::NameAt => json!({"type": "string", "pattern": NAME_AT}),
        Form::Ref => json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}),
        Form::Format => json!({"const": 1}),
        Form::Bool => json!({"type": "boolean"}),
        Form::Count(min, max) => {
            let mut schema = json!({"type": "integer"});
            if *min != i64::MIN {
                schema["minimum"] = json!(min);
            }
            if *max != i64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        Form::Number => json!({"type": "number"}),
        Form::Duration => json!({"type": "string", "pattern": DURATION, "examples": ["30s", "5m", "1h30m"]}),
        Form::DurationOr(also) => json!({"anyOf": [{"type": "string", "pattern": DURATION}, words(also)]}),
        Form::Money => json!({"type": "number", "minimum": 0}),
        Form::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Form::Words(all) => words(all),
        Form::ErrorKind => {
            json!({"enum": ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()})
        }
        Form::JsonSchema => json!({"type": ["object", "boolean"]}),
        Form::Json | Form::Templates => json!({}),
        Form::DurationTemplate => json!({"type": "string"}),
        Form::Implementation => json!({}),
        Form::ActionKind => json!({"enum": stored_kinds().collect::<Vec<_>>()}),
        Form::Mapping => json!({"type": "object"}),
        Form::Writes => json!({"type": "object"}),
        Form::List(inner) => json!({"type": "array", "items": self::form(inner)}),
        Form::OneOrList(inner) => {
            json!({"anyOf": [self::form(inner), {"type": "array", "items": self::form(inner)}]})
        }
        Form::Map(inner) => json!({"type": "object", "additionalProperties": self::form(inner)}),
        Form::NameMap(inner) => {
            json!({"type": "object", "propertyNames": {"pattern": NAME}, "additionalProperties": self::form(inner)})
        }
        Form::Object(shape) => reference(shape.name),
        Form::Either(forms) => json!({"anyOf": forms.iter().map(self::form).collect::<Vec<_>>()}),
    }
}

/// Each word with its meaning, which editors show.
fn words(all: &[Word]) -> Json {
    let each = all.iter().map(|word| json!({"const": word.word, "description": word.about}));
    json!({"oneOf": each.collect::<Vec<_>>()})
}
