//! Topics of the language inside files: roots, functions, filters, tests, kinds of failure. What an example gives
//! is worked out, not written down.

use std::sync::Arc;

use wonder_core::error::ErrorKind;
use wonder_core::expr::{self, Expr, Scope};
use wonder_core::template::{self, Template};
use wonder_core::terms::{ROOTS, Root, Term};
use wonder_core::value::Value;

use super::examples::EXAMPLES;
use super::{Group, List, Sample, Topic};

pub(super) fn topics() -> Vec<Topic> {
    let roots = ROOTS.iter().map(root);
    let functions = expr::functions().map(|word| word_topic(Group::Function, &word));
    let in_templates = |group, words: &'static [Term]| words.iter().map(move |word| word_topic(group, word));
    let failures = ErrorKind::ALL.into_iter().map(failure);
    roots
        .chain(functions)
        .chain(in_templates(Group::Filter, template::FILTERS))
        .chain(in_templates(Group::Test, template::TESTS))
        .chain(in_templates(Group::TemplateFunction, template::FUNCTIONS))
        .chain(failures)
        .collect()
}

fn root(root: &Root) -> Topic {
    // The page about roots first, then whoever is shortest.
    let shows = EXAMPLES.iter().filter(|example| example.names(root.name));
    let example =
        shows.min_by_key(|example| (example.name != root.name, example.name != "scope", example.text.len()));
    Topic {
        place: "a root: what an expression or a template may begin with".to_owned(),
        facts: vec![format!("Read it {}.", root.visible)],
        lists: vec![List { title: "Parts", items: root.fields.iter().map(part).collect() }],
        sample: example.map_or(Sample::None, Sample::File),
        ..Topic::new(Group::Root, root.name, root.about)
    }
}

fn part((name, about): &(&str, &str)) -> (String, String) {
    ((*name).to_owned(), format!(": {about}"))
}

fn word_topic(group: Group, word: &Term) -> Topic {
    let (place, value) = match group {
        Group::Function => ("a function of expressions", evaluated(word.example)),
        Group::Filter => ("a filter of templates", rendered(word.example)),
        Group::Test => ("a test of templates", rendered(word.example)),
        _ => ("a function of templates", rendered(word.example)),
    };
    Topic {
        place: place.to_owned(),
        facts: vec![format!("Written `{}`.", word.usage)],
        sample: Sample::Line(word.example.to_owned(), value),
        ..Topic::new(group, word.name, word.about)
    }
}

fn failure(kind: ErrorKind) -> Topic {
    let line = format!("on_error: [{{when: \"error.kind == '{kind}'\", do: retry, max: 2}}]");
    Topic {
        place: "a kind of failure: `error.kind` in `on_error`, `kind` of a `mock`".to_owned(),
        sample: Sample::Line(line, None),
        ..Topic::new(Group::Failure, kind.as_str(), kind.about())
    }
}

struct Nothing;

impl Scope for Nothing {
    fn read(&self, _root: &str, _path: &[Arc<str>]) -> Option<Value> {
        None
    }
}

fn evaluated(text: &str) -> Option<String> {
    Some(Expr::compile(text).ok()?.eval(&Nothing).ok()?.to_string())
}

fn rendered(text: &str) -> Option<String> {
    Template::compile(text).ok()?.render(&Value::empty_map()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_value_and_every_root_an_example() {
        for topic in topics() {
            match (&topic.sample, topic.group) {
                (Sample::Line(_, Some(_)) | Sample::File(_), _) | (_, Group::Failure) => {}
                other => panic!("{}: {other:?}", topic.name),
            }
        }
    }
}
