//! What a text may read where it stands, and what to say when it reads something else.

use std::collections::BTreeMap;

use super::check::{Check, brief};
use super::codes;
use wonder_lang::def::{Name, Spot, Text, Tree};
use wonder_lang::expr::Read;
use wonder_lang::problem::{Problem, nearest};

pub(super) const INPUT: u16 = 1;
pub(super) const STATE: u16 = 1 << 1;
pub(super) const OUTPUT: u16 = 1 << 2;
pub(super) const RUN: u16 = 1 << 3;
pub(super) const LAST_ERROR: u16 = 1 << 4;
pub(super) const BRANCH: u16 = 1 << 5;
pub(super) const NEEDS: u16 = 1 << 6;
pub(super) const RESULT: u16 = 1 << 7;
pub(super) const ERROR: u16 = 1 << 8;
pub(super) const SECRET: u16 = 1 << 9;

/// Of the run, wherever it is.
pub(super) const OF_RUN: u16 = INPUT | STATE | OUTPUT | RUN | LAST_ERROR;
/// Of a task, in its steps.
pub(super) const OF_TASK: u16 = INPUT | STATE | OUTPUT | RESULT;

const ROOTS: [(u16, &str); 10] = [
    (INPUT, "input"),
    (STATE, "state"),
    (OUTPUT, "output"),
    (RESULT, "result"),
    (ERROR, "error"),
    (BRANCH, "_branch"),
    (NEEDS, "needs"),
    (RUN, "run"),
    (LAST_ERROR, "_last_error"),
    (SECRET, "secret"),
];

/// The names given by `foreach … as`, each with a bit. Beyond 63 they share the last one: then a name may
/// be taken for visible where it is not, and the run says so instead.
#[derive(Debug, Default)]
pub(super) struct Items(BTreeMap<Name, u64>);

impl Items {
    pub(super) fn add(&mut self, name: &Name) -> u64 {
        let next = 1u64 << self.0.len().min(63);
        *self.0.entry(name.clone()).or_insert(next)
    }

    fn bit(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Which `needs.x` can be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum NeedsOf {
    #[default]
    Any,
    /// Sorted.
    These(Vec<Name>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) roots: u16,
    /// Bits of [`Items`].
    pub(super) items: u64,
    pub(super) needs: NeedsOf,
    /// Keys of a mapped input, which its texts see by themselves.
    pub(super) keys: Vec<Name>,
    /// The input is mapped by an expression: its keys are not known before the run.
    pub(super) anything: bool,
}

impl Scope {
    pub(super) fn of(roots: u16) -> Scope {
        Scope { roots, ..Scope::default() }
    }

    pub(super) fn with(&self, roots: u16) -> Scope {
        Scope { roots: self.roots | roots, ..self.clone() }
    }

    /// The keys of a mapped input as well.
    pub(super) fn with_keys(&self, mapping: &Tree) -> Scope {
        let mut scope = self.clone();
        match mapping {
            Tree::Map(map) => scope.keys = map.keys().cloned().collect(),
            _ => scope.anything = true,
        }
        scope
    }

    pub(super) fn sees(&self, items: &Items, root: &str) -> bool {
        self.anything
            || ROOTS.iter().any(|(bit, name)| *name == root && self.roots & bit != 0)
            || self.keys.iter().any(|key| &**key == root)
            || self.items & items.bit(root) != 0
    }

    fn visible<'s>(&'s self, items: &'s Items) -> Vec<&'s str> {
        let roots = ROOTS.iter().filter(|(bit, _)| self.roots & bit != 0).map(|(_, name)| *name);
        let named = items.0.iter().filter(|(_, bit)| self.items & **bit != 0).map(|(name, _)| &**name);
        let mut all: Vec<&str> = roots.chain(named).collect();
        all.extend(
            self.keys.iter().map(|key| &**key).filter(|key| !ROOTS.iter().any(|(_, root)| root == key)),
        );
        all
    }
}

/// One path that a text reads, and where that text stands.
pub(super) struct Use<'t> {
    pub(super) read: &'t Read,
    pub(super) text: &'t str,
    pub(super) spot: Spot,
    pub(super) template: bool,
    /// The prompt it stands in, when that is named from elsewhere.
    pub(super) prompt: Option<&'t str>,
}

impl<'t> Use<'t> {
    pub(super) fn expr(read: &'t Read, text: &'t Text) -> Use<'t> {
        Use { read, text: &text.text, spot: text.spot, template: false, prompt: None }
    }
}

impl Check<'_> {
    /// Reports a read of something that is not visible here.
    pub(super) fn read(&mut self, used: &Use<'_>, scope: &Scope, items: &Items) {
        let root = &*used.read.root;
        if !scope.sees(items, root) {
            return self.undeclared(used, scope, items);
        }
        if root != "needs" || scope.roots & NEEDS == 0 {
            return;
        }
        let (NeedsOf::These(known), Some(wanted)) = (&scope.needs, used.read.path.first()) else { return };
        if known.binary_search(wanted).is_ok() {
            return;
        }
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
                None if scope.roots & STATE != 0 => {
                    format!("what a node wrote is under `state`: `state.{root}`")
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

/// Underlines the word itself, if it can be found.
fn at(problem: Problem, used: &Use<'_>, word: &str) -> Problem {
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

pub(super) fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
