//! Whether a text may read what it reads where it stands, and what to say when it may not.

use super::{Check, brief};
use crate::codes;
use crate::readings::Use;
use crate::scope::{Items, NEEDS, NeedsOf, STATE, Scope};
use wonder_lang::problem::{Problem, nearest};
use wonder_lang::template::{Named, NamedKind, Template};

impl Check<'_> {
    /// Reports a read of something that is not visible here.
    pub(super) fn read(&mut self, used: &Use<'_>, scope: &Scope, items: &Items) {
        let root = &*used.read.root;
        if !scope.sees(items, root) {
            return self.undeclared(used, scope, items);
        }
        // A key of a mapped input hides the root of that name.
        if scope.keys.iter().any(|key| &**key == root) {
            return;
        }
        let unneeded = match (&scope.needs, used.read.path.first()) {
            (NeedsOf::These(known), Some(wanted)) if root == "needs" && scope.roots & NEEDS != 0 => {
                known.binary_search(wanted).is_err().then_some((known, wanted))
            }
            _ => None,
        };
        let Some((known, wanted)) = unneeded else { return self.absent(used, scope) };
        let problem = Problem::error(
            codes::NOT_NEEDED,
            used.spot,
            format!("`needs.{wanted}` is read, but this node does not need `{wanted}`"),
        )
        .label(match known.len() {
            0 => "this node needs nothing".to_owned(),
            _ => format!("it needs {}", list(known.iter().map(|name| &**name))),
        });
        let help = match nearest(wanted, known.iter().map(|name| &**name)) {
            Some(name) => format!("did you mean `needs.{name}`? Otherwise add `{wanted}` to `needs`"),
            None => format!("add `{wanted}` to `needs`"),
        };
        self.report(at(problem.help(help), used, wanted));
    }

    fn undeclared(&mut self, used: &Use<'_>, scope: &Scope, items: &Items) {
        let root = &*used.read.root;
        if used.template && calls_unknown(used.text, root) {
            // Said of the template: it is no variable but a function that there is not.
            return;
        }
        let visible = scope.visible(items);
        let code =
            if used.template { codes::UNDECLARED_IN_TEMPLATE } else { codes::UNDECLARED_IN_EXPRESSION };
        let message = match used.prompt {
            Some(prompt) => format!(
                "prompt `{prompt}` reads `{}`, and nothing called `{root}` is visible here",
                used.read
            ),
            None => format!("`{}` reads `{root}`, which is not visible here", brief(used.text)),
        };
        let help = match root {
            "result" => {
                "`result` is what just came back: it is visible in an output mapping and in transitions"
                    .to_owned()
            }
            "error" => "`error` is visible in `on_error` only; elsewhere read `_last_error`".to_owned(),
            "needs" => {
                "`needs` is visible in a dag only, at nodes and in the workflow's `output_mapping`".to_owned()
            }
            "_branch" => "no fan-out leads here, so there is no branch to read".to_owned(),
            "secret" => "secrets are readable in the templates of actions that a worker performs".to_owned(),
            _ if items.bit(root) != 0 => {
                format!("`{root}` is visible only in nodes that its `foreach` leads to")
            }
            _ => match nearest(root, visible.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None if scope.roots & STATE != 0 && used.template => {
                    format!("what a node wrote is under `state`: `state.{root}`")
                }
                None if scope.roots & STATE != 0 => {
                    format!(
                        "a text is in quotes: `'{root}'`; what a node wrote is under `state`: `state.{root}`"
                    )
                }
                None => format!("map it: `input_mapping: {{{root}: …}}`"),
            },
        };
        let problem = Problem::error(code, used.spot, message)
            .label(format!("visible are {}", list(visible)))
            .help(help);
        let problem = if used.prompt.is_some() { problem } else { at(problem, used, root) };
        self.report(problem);
    }
}

/// Whether a template calls this as a function, and there is none of that name.
fn calls_unknown(text: &str, name: &str) -> bool {
    let called = |named: &Named<'_>| named.kind == NamedKind::Function && named.name == name;
    Template::compile(text).is_ok_and(|template| template.unknown().iter().any(called))
}

/// Underlines the word itself, if it can be found.
pub(super) fn at(problem: Problem, used: &Use<'_>, word: &str) -> Problem {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let found = used.text.match_indices(word).find(|(offset, _)| {
        let before = used.text[..*offset].chars().next_back();
        let after = used.text[offset + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    });
    match found {
        Some((offset, _)) => problem.within(offset, word.len()),
        None => problem,
    }
}

pub(crate) fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
