//! Rendering the texts of an action. What cannot be rendered is an `expression_error` that says which field
//! it stands in.

use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::TemplateTree;
use wonder_core::template::{Budget, Template};
use wonder_core::value::Value;

use crate::secrets::KnownSecrets;

pub(crate) fn render(template: &Template, field: &str, scope: &Value) -> Result<String, Failure> {
    template.render(scope).map_err(|error| bad_field(field, &error.message))
}

/// The texts of a list, all from one budget.
pub(crate) fn render_all(texts: &[Template], field: &str, scope: &Value) -> Result<Vec<String>, Failure> {
    let mut budget = Budget::default();
    let rendered = texts.iter().map(|text| text.render_within(scope, &mut budget));
    rendered.map(|text| text.map_err(|error| bad_field(field, &error.message))).collect()
}

pub(crate) fn render_tree(tree: &TemplateTree, field: &str, scope: &Value) -> Result<Value, Failure> {
    tree.render(scope).map_err(|error| bad_field(field, &error.message))
}

/// A name with its texts: a list has several, and `null` is none.
pub(crate) type Pair = (String, Vec<Option<String>>);

/// A map of texts, as headers and variables are.
pub(crate) fn pairs(tree: Option<&TemplateTree>, field: &str, scope: &Value) -> Result<Vec<Pair>, Failure> {
    let Some(tree) = tree else { return Ok(Vec::new()) };
    let filled = render_tree(tree, field, scope)?;
    let Some(map) = filled.as_map() else {
        return Err(bad_field(field, &format!("expected a map, found {}", filled.type_name())));
    };
    let several = |value: &Value| match value {
        Value::List(items) => items.iter().map(plain).collect(),
        value => vec![plain(value)],
    };
    Ok(map.iter().map(|(name, value)| (name.to_string(), several(value))).collect())
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.to_string()),
        value => Some(value.to_string()),
    }
}

/// A text of a model profile or an MCP server, with the secrets that it reads.
pub(crate) fn with_secrets(
    known: &KnownSecrets,
    template: &Template,
    field: &str,
) -> Result<String, Failure> {
    let mut secrets = Value::empty_map();
    for name in template.reads().iter().filter_map(|read| read.path.first()) {
        let value = known.find(name).ok_or_else(|| {
            let why = format!(
                "the secret `{name}` is not set: set the variable {name}, or add a line `{name}=...` to .env"
            );
            Failure::new(ErrorKind::Auth, format!("`{field}`: {why}"))
        })?;
        secrets.set_path(std::slice::from_ref(name), Value::from(value));
    }
    render(template, field, &Value::map([("secret", secrets)]))
}

/// What is wrong with a field of an action.
pub(crate) fn bad_field(field: &str, why: &str) -> Failure {
    Failure::new(ErrorKind::ExpressionError, format!("`{field}`: {why}"))
}

/// The end of a text, at most so many bytes of it.
pub(crate) fn tail(text: &str, bytes_max: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_never_splits_a_character() {
        assert_eq!(tail("aäb", 2), "b");
        assert_eq!(tail("aäb", 3), "äb");
        assert_eq!(tail("ab", 9), "ab");
    }
}
