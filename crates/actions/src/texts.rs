//! Texts of actions: every template an action of ours has, and filling them in. What core cannot fill is an
//! `expression_error` that says which field it stands in.

use wonder_core::def::{CommandLine, HttpRequest, Implementation, Mock, Shell, Text, Tree};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::mock::fill;
use wonder_core::template::Template;
use wonder_core::value::Value;

/// Every text that is a template, of the kinds that a worker performs.
pub(crate) fn each<'a>(implementation: &'a Implementation, visit: &mut dyn FnMut(&'a Text)) {
    match implementation {
        Implementation::Shell(shell) => of_shell(shell, visit),
        Implementation::HttpRequest(http) => of_http(http, visit),
        Implementation::Mock(mock) => of_mock(mock, visit),
        _ => {}
    }
}

fn of_shell<'a>(shell: &'a Shell, visit: &mut dyn FnMut(&'a Text)) {
    match &shell.command {
        CommandLine::Line(line) => visit(line),
        CommandLine::Arguments(list) => list.iter().for_each(&mut *visit),
    }
    shell.cwd.iter().chain(&shell.stdin).chain(&shell.image).for_each(&mut *visit);
    in_tree(shell.env.as_ref(), visit);
}

fn of_http<'a>(http: &'a HttpRequest, visit: &mut dyn FnMut(&'a Text)) {
    http.method.iter().chain([&http.url]).chain(&http.body).for_each(&mut *visit);
    for tree in [&http.query, &http.headers, &http.json] {
        in_tree(tree.as_ref(), visit);
    }
}

fn of_mock<'a>(mock: &'a Mock, visit: &mut dyn FnMut(&'a Text)) {
    for outcome in &mock.outcomes {
        in_tree(outcome.output.as_ref(), visit);
        outcome.error.iter().flat_map(|error| &error.message).for_each(&mut *visit);
    }
}

fn in_tree<'a>(tree: Option<&'a Tree>, visit: &mut dyn FnMut(&'a Text)) {
    match tree {
        None | Some(Tree::Literal(_)) => {}
        Some(Tree::Text(text)) => visit(text),
        Some(Tree::List(list)) => list.iter().for_each(|tree| in_tree(Some(tree), visit)),
        Some(Tree::Map(map)) => map.values().for_each(|tree| in_tree(Some(tree), visit)),
    }
}

pub(crate) fn compile(text: &Text, field: &str) -> Result<Template, Failure> {
    Template::compile(text.as_str()).map_err(|error| unfilled(field, &error.message))
}

pub(crate) fn render(text: &Text, field: &str, scope: &Value) -> Result<String, Failure> {
    compile(text, field)?.render(scope).map_err(|error| unfilled(field, &error.message))
}

/// A name with its texts: a list has several, and `null` is none.
pub(crate) type Pair = (String, Vec<Option<String>>);

/// A map of texts, as headers and variables are.
pub(crate) fn pairs(tree: Option<&Tree>, field: &str, scope: &Value) -> Result<Vec<Pair>, Failure> {
    let Some(tree) = tree else { return Ok(Vec::new()) };
    let filled = fill(tree, scope).map_err(|error| unfilled(field, &error.message))?;
    let Some(map) = filled.as_map() else {
        return Err(unfilled(field, &format!("expected a map, found {}", filled.type_name())));
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

pub(crate) fn unfilled(field: &str, why: &str) -> Failure {
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
