//! Reads of what is never there: found before the run, not in it. A text that deals with absence itself (`has`,
//! `get`, `in`, `default`, `is defined`) is left alone.

use super::reads::{at, list};
use super::{Check, brief};
use crate::codes;
use crate::known::{Known, KnownMap, KnownState, Lack};
use crate::readings::Use;
use crate::scope::Scope;
use wonder_lang::def::Name;
use wonder_lang::problem::{Problem, Severity, nearest};
use wonder_lang::terms;

/// How many names a label lists.
const LISTED_MAX: usize = 8;

impl Check<'_> {
    /// Reports a read of something that can never be there, or that looks like a slip.
    pub(super) fn absent(&mut self, used: &Use<'_>, scope: &Scope) {
        let path = &used.read.path[..];
        if used.minds_absence || path.is_empty() {
            return;
        }
        match &*used.read.root {
            "state" => {
                if let Some(state) = scope.known.state.clone() {
                    self.absent_state(used, &state);
                }
            }
            "input" => {
                let known = scope.known.input.clone();
                self.lacks(used, &known, 0);
            }
            "result" => {
                let known = scope.known.result.clone();
                self.lacks(used, &known, 0);
            }
            "needs" => {
                let known = scope.known.needs.clone();
                self.lacks(used, &known, 0);
            }
            root => self.fixed(used, root),
        }
    }

    /// Roots that always have the same fields.
    fn fixed(&mut self, used: &Use<'_>, root: &str) {
        let Some(fields) = terms::root(root).map(|root| root.fields).filter(|fields| !fields.is_empty())
        else {
            return;
        };
        let known = Known::fields(fields.iter().map(|(name, _)| *name), &format!("`{root}`"));
        let parents =
            used.read.path.iter().take_while(|key| root == "_branch" && &***key == "parent").count();
        self.lacks(used, &known, parents);
    }

    /// Whether the path leads to something, from its `skipped`-th key on.
    fn lacks(&mut self, used: &Use<'_>, known: &Known, skipped: usize) {
        let Some(lack) = known.lack(&used.read.path[skipped..]) else { return };
        match lack {
            Lack::Absent(place, map) => self.no_key(used, skipped + place, map),
            Lack::Undeclared(place, map) => self.maybe_slip(used, skipped + place, map),
            Lack::NoMap(place, what) => {
                let (before, key) = (shown(used, skipped + place), &used.read.path[skipped + place]);
                let help = match what {
                    "a list" => {
                        format!("an item is `{before}[0].{key}`; of all of them, `{before}.map(x, x.{key})`")
                    }
                    _ => format!("there is nothing in it: leave `{before}.{key}` out"),
                };
                let problem = Problem::error(
                    codes::NO_SUCH_FIELD,
                    used.spot,
                    format!("`{before}` is {what}, and `{key}` is read of it"),
                );
                self.report(at(problem.label(format!("`{before}` is {what}")).help(help), used, key));
            }
        }
    }

    fn no_key(&mut self, used: &Use<'_>, place: usize, map: &KnownMap) {
        let key = &used.read.path[place];
        let input = &*used.read.root == "input";
        let code = if input { codes::NO_SUCH_INPUT } else { codes::NO_SUCH_FIELD };
        let message = format!("`{}` is never there: {} has no `{key}`", shown(used, place + 1), map.whose);
        let near = nearest(key, map.keys.keys().map(|known| &**known));
        // `code` of what has an `exit_code`.
        let part = || map.keys.keys().find(|known| known.contains(&**key)).map(|known| &**known);
        let help = match near.or_else(part) {
            Some(near) => format!("did you mean `{}.{near}`?", shown(used, place)),
            None if input => format!("add `{key}` to {}, or read what is there", map.whose),
            None => "read what is there; `has(...)` or `default` where it may be absent".to_owned(),
        };
        let problem = Problem::error(code, used.spot, message).label(it_has(map)).help(help);
        self.report(at(problem, used, key));
    }

    /// A key that nobody declared and that is nearly one that somebody did.
    fn maybe_slip(&mut self, used: &Use<'_>, place: usize, map: &KnownMap) {
        let key = &used.read.path[place];
        let Some(near) = nearest(key, map.keys.keys().map(|known| &**known)) else { return };
        let before = shown(used, place);
        let message = format!("`{before}.{key}` is read, and {} does not declare `{key}`", map.whose);
        let problem = Problem::warning(codes::UNDECLARED_FIELD, used.spot, message)
            .label(it_has(map))
            .help(format!("did you mean `{before}.{near}`? Otherwise declare `{key}`"));
        self.report(at(problem, used, key));
    }

    fn absent_state(&mut self, used: &Use<'_>, state: &KnownState) {
        let key = &used.read.path[0];
        if let Some(known) = state.keys.get(key) {
            let Some(lack) = known.lack(&used.read.path[1..]) else { return };
            // What is known of a key is the result of the one node that writes it.
            if !matches!(lack, Lack::Undeclared(..)) {
                self.lacks(used, known, 1);
            }
            return;
        }
        if state.anything || &**key == "_last_error" || &**key == "_errors" {
            return;
        }
        let who = if state.of_task { "step of this task" } else { "node" };
        let (severity, why) = match () {
            () if state.declared.contains(key) => {
                (Severity::Warning, "context_schema declares it, and a declaration is no value")
            }
            () if state.grows => (Severity::Warning, "only what a run adds to itself could"),
            () => (Severity::Error, ""),
        };
        let message = match why {
            "" => format!("`state.{key}` is read, and no {who} writes it"),
            why => format!("`state.{key}` is read, and no {who} of the file writes it; {why}"),
        };
        let code =
            if severity == Severity::Error { codes::NEVER_WRITTEN } else { codes::PERHAPS_NEVER_WRITTEN };
        let problem = Problem { severity, ..Problem::error(code, used.spot, message) };
        // Looking through all that is written takes time with its number: a file full of these gets no list for each.
        let problem = if self.suggestions_left == 0 {
            problem.label("nobody writes it")
        } else {
            self.suggestions_left -= 1;
            let written = state.written();
            let label = match written.len() {
                0 => "nothing is written".to_owned(),
                _ => format!("written are {}", some(written.iter().map(|name| &***name))),
            };
            problem.label(label).help(self.who_could(key, state))
        };
        self.report(at(problem, used, key));
    }

    fn who_could(&self, key: &Name, state: &KnownState) -> String {
        if state.mapped.contains(key) {
            return format!(
                "`{key}` has an output_mapping, so its result goes only where that says: add `state.{key}: result`"
            );
        }
        if let Some(near) = nearest(key, state.written().into_iter().map(|name| &**name)) {
            return format!("did you mean `state.{near}`?");
        }
        let declared = self.bundle.workflow.input_schema.as_ref();
        let of_input = declared.and_then(|schema| schema.doc.get("properties")?.get(key)).is_some();
        match (of_input, state.of_task) {
            (true, false) => format!("`{key}` is part of the input: `input.{key}`"),
            (_, true) => format!(
                "a task has a state of its own: map it in, `input_mapping: {{{key}: state.{key}}}` on the node, and read `input.{key}`"
            ),
            _ => format!(
                "let a node write it: `output_mapping: {{state.{key}: result}}`; where it may be absent, `has(state.{key})`"
            ),
        }
    }
}

fn it_has(map: &KnownMap) -> String {
    match map.keys.len() {
        0 => "it has nothing".to_owned(),
        _ => format!("it has {}", some(map.keys.keys().map(|key| &**key).filter(|key| *key != "feedback"))),
    }
}

fn some<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.len().checked_sub(LISTED_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", list(names[..LISTED_MAX].iter().copied())),
        _ => list(names),
    }
}

/// The path as written, up to a place.
fn shown(used: &Use<'_>, place: usize) -> String {
    let mut read = used.read.clone();
    read.path.truncate(place);
    brief(&read.to_string())
}
