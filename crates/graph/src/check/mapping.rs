//! Mappings: trees of expressions that may read what they read, and targets that can be written to.

use super::Check;
use crate::codes;
use crate::readings::Use;
use crate::scope::{Items, Scope};
use wonder_lang::def::{Text, Tree, Writes};
use wonder_lang::expr::Expr;
use wonder_lang::path::Target;
use wonder_lang::problem::Problem;
use wonder_lang::value::Value;

impl Check<'_> {
    /// An expression that reads only what is visible.
    pub(super) fn expr_in(&mut self, text: &Text, scope: &Scope, items: &Items) -> Option<Expr> {
        let expr = self.expr(text)?;
        for read in expr.reads() {
            self.read(&Use::expr(read, text, expr.minds_absence()), scope, items);
        }
        Some(expr)
    }

    pub(super) fn tree(&mut self, tree: &Tree, scope: &Scope, items: &Items) {
        match tree {
            Tree::Text(text) => drop(self.expr_in(text, scope, items)),
            Tree::Literal(_) => {}
            Tree::List(list) => list.iter().for_each(|tree| self.tree(tree, scope, items)),
            Tree::Map(map) => map.values().for_each(|tree| self.tree(tree, scope, items)),
        }
    }

    pub(super) fn writes(&mut self, writes: &Writes, scope: &Scope, items: &Items) {
        for write in &writes.0 {
            self.tree(&write.value, scope, items);
            self.target(&write.to);
        }
    }

    pub(super) fn target(&mut self, text: &Text) -> Option<Target> {
        match Target::parse(&text.text) {
            Ok(target) => Some(target),
            Err(error) => {
                let (code, help) = if error.into_input {
                    (
                        codes::WRITE_TO_INPUT,
                        "write under `state` or `output`; `input` stays as the run got it",
                    )
                } else {
                    (
                        codes::BAD_TARGET,
                        "a target is `state.x`, `output.x`, `_branch.output` or bare `x`; `x[]` appends to a list",
                    )
                };
                self.report(
                    Problem::error(code, text.spot, error.message)
                        .label("expected a path to write to")
                        .help(help),
                );
                None
            }
        }
    }
}

/// The value of a mapping that is the same in every run, and where it was written.
pub(super) fn literal(tree: &Tree) -> Option<Value> {
    match tree {
        Tree::Literal(value) => Some(value.clone()),
        Tree::Text(text) => literal_text(&text.text),
        Tree::Map(map) => {
            let entries: Option<Vec<_>> =
                map.iter().map(|(key, tree)| Some((key.clone(), literal(tree)?))).collect();
            entries.map(Value::map)
        }
        Tree::List(list) => list.iter().map(literal).collect::<Option<Vec<_>>>().map(Value::list),
    }
}

/// `'text'`, `"text"`, `42`, `1.5`, `true`, `false`, `null`; nothing for what needs an evaluator.
fn literal_text(text: &str) -> Option<Value> {
    let text = text.trim();
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return (!inner.contains([quote, '\\'])).then(|| Value::str(inner));
        }
    }
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" => Some(Value::Null),
        _ if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => None,
        _ => text
            .parse()
            .map(Value::Int)
            .ok()
            .or_else(|| text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float)),
    }
}

/// The first place a mapping has.
pub(super) fn spot_of(tree: &Tree) -> wonder_lang::def::Spot {
    match tree {
        Tree::Text(text) => text.spot,
        Tree::Literal(_) => wonder_lang::def::Spot::NOWHERE,
        Tree::List(list) => list.iter().map(spot_of).find(|spot| spot.0 != 0).unwrap_or_default(),
        Tree::Map(map) => map.values().map(spot_of).find(|spot| spot.0 != 0).unwrap_or_default(),
    }
}
