//! What can be told of a mapping and a schema before anything runs: keys that are forbidden or missing, and
//! constants of the wrong type.

use super::Check;
use super::mapping::{literal, spot_of};
use crate::codes;
use wonder_lang::def::{Name, Spot, Tree, Write};
use wonder_lang::path::{Root, Target, Way};
use wonder_lang::problem::{Problem, nearest};
use wonder_lang::schema::Schema;
use wonder_lang::value::Value;

/// The schemas of what a node outside any branch writes to.
#[derive(Clone, Copy)]
pub(super) struct Written<'s> {
    pub(super) state: Option<&'s Schema>,
    pub(super) output: Option<&'s Schema>,
}

impl<'s> Written<'s> {
    fn schema(self, root: Root) -> Option<(&'s Schema, &'static str)> {
        match root {
            Root::State => self.state.map(|schema| (schema, "context_schema")),
            Root::Output => self.output.map(|schema| (schema, "output_schema")),
            Root::Branch => None,
        }
    }
}

impl Check<'_> {
    /// One write of an output mapping or `set`.
    pub(super) fn write_fits(&mut self, write: &Write, schemas: Written<'_>) {
        let Ok(target) = Target::parse(&write.to.text) else { return };
        let Some((schema, whose)) = schemas.schema(target.root) else { return };
        match &target.path[..] {
            [] => {
                if let Tree::Map(map) = &write.value {
                    for (key, value) in map {
                        self.property_fits(schema, whose, key, Some(value), write.to.spot);
                    }
                }
            }
            [key] if target.way != Way::Replace => {
                if !self.property_fits(schema, whose, key, None, write.to.spot) {
                    self.must_be(schema, whose, key, "array", write.to.spot);
                }
            }
            [key] => {
                self.property_fits(schema, whose, key, Some(&write.value), write.to.spot);
            }
            [key, ..] => {
                if !self.property_fits(schema, whose, key, None, write.to.spot) {
                    self.must_be(schema, whose, key, "object", write.to.spot);
                }
            }
        }
    }

    /// The write that a node makes when it has no mapping: `state.<ref> = result`.
    pub(super) fn default_write_fits(&mut self, reference: &Name, spot: Spot, schemas: Written<'_>) {
        let Some(schema) = schemas.state else { return };
        if !schema.forbids_property(reference) {
            return;
        }
        let message = format!(
            "node `{reference}` has no output_mapping, so it writes `state.{reference}`, which context_schema forbids"
        );
        self.report(
            Problem::error(codes::SCHEMA_FORBIDS, spot, message)
                .label("expected an output_mapping")
                .help("write `output_mapping: {}` to keep nothing, or map to a declared property"),
        );
    }

    /// What a fan-in's merge writes.
    pub(super) fn merge_fits(
        &mut self,
        target: &Target,
        kind: Option<&str>,
        spot: Spot,
        schemas: Written<'_>,
    ) {
        let Some((schema, whose)) = schemas.schema(target.root) else { return };
        let [key, rest @ ..] = &target.path[..] else { return };
        if self.property_fits(schema, whose, key, None, spot) {
            return;
        }
        let kind = if target.way == Way::Replace { kind } else { Some("array") };
        match kind {
            _ if !rest.is_empty() => self.must_be(schema, whose, key, "object", spot),
            Some(kind) => self.must_be(schema, whose, key, kind, spot),
            None => {}
        }
    }

    /// The workflow's own output mapping.
    pub(super) fn output_fits(&mut self, mapping: &Tree, schema: &Schema) {
        let Tree::Map(map) = mapping else { return };
        for (key, value) in map {
            self.property_fits(schema, "output_schema", key, Some(value), spot_of(value));
        }
    }

    /// An input mapping against what the task or action requires.
    pub(super) fn input_fits(&mut self, mapping: &Tree, schema: &Schema, whose: &str, spot: Spot) {
        let Tree::Map(map) = mapping else { return };
        for (key, value) in map {
            let written = Some(spot_of(value)).filter(|at| *at != Spot::NOWHERE).unwrap_or(spot);
            self.property_fits(schema, whose, key, Some(value), written);
        }
        let required = schema.doc().get("required").and_then(Value::as_list).unwrap_or_default();
        for key in required.iter().filter_map(Value::as_str).filter(|key| !map.contains_key(*key)) {
            let problem = Problem::error(
                codes::MISSING_INPUT,
                spot,
                format!("{whose} requires `{key}`, which the input_mapping does not give"),
            )
            .label(format!("expected `{key}` in the input_mapping"));
            let spare = map.keys().map(|known| &**known).filter(|known| !names(schema, known));
            let help = match nearest(key, spare) {
                Some(near) => format!("is `{near}` meant to be `{key}`?"),
                None => format!("add `{key}: …` to the input_mapping"),
            };
            self.report(problem.help(help));
        }
    }

    /// Reports a property that may not be there or not have this value; tells whether it did.
    fn property_fits(
        &mut self,
        schema: &Schema,
        whose: &str,
        key: &str,
        value: Option<&Tree>,
        spot: Spot,
    ) -> bool {
        if schema.forbids_property(key) {
            let declared = schema.doc().get("properties").and_then(Value::as_map);
            let known = declared.into_iter().flat_map(|map| map.keys().map(|name| &**name));
            let help = match nearest(key, known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("declare `{key}` in {whose}, or write elsewhere"),
            };
            self.report(
                Problem::error(
                    codes::SCHEMA_FORBIDS,
                    spot,
                    format!("{whose} has no property `{key}` and allows no others"),
                )
                .label("expected a declared property")
                .help(help),
            );
            return true;
        }
        let Some(value) = value.and_then(literal) else { return false };
        let Err(violations) = schema.check_property(key, &value) else { return false };
        let why = violations.first().map_or_else(String::new, |violation| format!(": {}", violation.message));
        let mut problem =
            Problem::error(codes::SCHEMA_FORBIDS, spot, format!("`{key}` can never fit {whose}{why}")).label(
                match schema.property_types(key) {
                    Some(types) => format!("expected {}", types.join(" or ")),
                    None => "expected what the schema allows".to_owned(),
                },
            );
        if value.as_str().is_some() {
            problem = problem.help(
                "a text in two kinds of quotes is a literal; without the inner quotes it is an expression",
            );
        }
        self.report(problem);
        true
    }

    fn must_be(&mut self, schema: &Schema, whose: &str, key: &str, kind: &str, spot: Spot) {
        let Some(types) = schema.property_types(key) else { return };
        if types.iter().any(|known| known == kind) {
            return;
        }
        let article = if kind == "string" { "a" } else { "an" };
        self.report(
            Problem::error(
                codes::SCHEMA_FORBIDS,
                spot,
                format!("this makes `{key}` {article} {kind}, and {whose} says it is {}", types.join(" or ")),
            )
            .label(format!("expected {}", types.join(" or "))),
        );
    }
}

fn names(schema: &Schema, key: &str) -> bool {
    schema.doc().get("properties").and_then(|properties| properties.get(key)).is_some()
}
