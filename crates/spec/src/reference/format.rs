//! Topics of the format, from the table of shapes: objects, actions, keys and the words that keys take.

use wonder_core::terms::{result_about, result_fields};

use super::examples::{Use, showing};
use super::{Group, List, Sample, Topic};
use crate::shape::{Form, Key, Shape, Word, all_shapes, is_kind};

const NOT_YET: &str =
    "Not in this version yet: `validate` and `run` refuse it (E0033), `plan` and `graph` show it.";

pub(super) fn topics() -> Vec<Topic> {
    let mut found = Found::default();
    for shape in all_shapes() {
        found.shape(shape);
    }
    // Only now is it known in how many places a key or a word stands.
    found.keys.iter_mut().for_each(|key| key.sample = sample_of_key(key));
    found.words.iter_mut().for_each(|word| word.sample = sample_of_word(word));
    found.objects.into_iter().chain(found.actions).chain(found.keys).chain(found.words).collect()
}

fn sample_of_key(topic: &Topic) -> Sample {
    let here = |used: &Use| used.key == topic.name && topic.inside.iter().any(|place| place == used.place);
    let place = topic.inside.first().map_or("", String::as_str);
    sample(place, here)
}

/// Where the word is chosen, else where another is.
fn sample_of_word(topic: &Topic) -> Sample {
    let here = |used: &Use| topic.inside.iter().any(|place| *place == format!("{}.{}", used.place, used.key));
    // `do: {goto: sorry}`: a response with what it needs is a key.
    let as_key =
        |used: &Use| used.place == "response" && used.key == topic.name && topic.inside == ["rule.do"];
    let chosen = |used: &Use| here(used) && used.word.as_deref() == Some(&topic.name);
    match sample(&topic.name, |used| chosen(used) || as_key(used)) {
        Sample::None => sample(&topic.name, here),
        chosen => chosen,
    }
}

/// What has been seen so far; the same thing in another place is the same topic.
#[derive(Default)]
struct Found {
    objects: Vec<Topic>,
    actions: Vec<Topic>,
    keys: Vec<Topic>,
    words: Vec<Topic>,
}

impl Found {
    fn shape(&mut self, shape: &'static Shape) {
        let known = self.objects.iter_mut().find(|topic| topic.name == shape.plain_name());
        match known {
            // A node in a list, a task as a document: the same with a key more.
            Some(topic) => {
                let more: Vec<(String, String)> = keys_of(shape)
                    .filter(|(name, _)| !topic.lists[0].items.iter().any(|(known, _)| known == name))
                    .collect();
                topic.lists[0].items.extend(more);
            }
            None if is_kind(shape.name) => self.actions.push(action(shape)),
            None => self.objects.push(object(shape)),
        }
        for key in shape.all_keys().filter(|key| !is_kind(key.name)) {
            self.key(shape, key);
            self.words_of(shape, key, &key.form);
        }
    }

    fn key(&mut self, shape: &'static Shape, key: &'static Key) {
        let place = shape.plain_name().to_owned();
        let facts = facts(key);
        let same =
            |topic: &&mut Topic| topic.name == key.name && topic.about == key.about && topic.facts == facts;
        if let Some(known) = self.keys.iter_mut().find(same) {
            if !known.inside.contains(&place) {
                known.place = format!("{}, {}", known.place, shape.called());
                known.inside.push(place);
            }
            return;
        }
        let lists = vec![List { title: "Values", items: values(&key.form) }];
        self.keys.push(Topic {
            place: format!("a key of {}", shape.called()),
            inside: vec![place],
            facts,
            lists,
            ..Topic::new(Group::Key, key.name, key.about)
        });
    }

    fn words_of(&mut self, shape: &'static Shape, key: &'static Key, form: &'static Form) {
        for word in words(form) {
            let place = format!("`{}` of {}", key.name, shape.called());
            let inside = format!("{}.{}", shape.plain_name(), key.name);
            let same = |topic: &&mut Topic| topic.name == word.word && topic.about == word.about;
            if let Some(known) = self.words.iter_mut().find(same) {
                if !known.inside.contains(&inside) {
                    known.place = format!("{}, {place}", known.place);
                    known.inside.push(inside);
                }
                continue;
            }
            self.words.push(Topic {
                place: format!("a value of {place}"),
                inside: vec![inside],
                ..Topic::new(Group::Word, word.word, word.about)
            });
        }
    }
}

fn object(shape: &'static Shape) -> Topic {
    let facts = shape.example().map(|example| format!("The smallest: `{example}`.")).into_iter().collect();
    Topic {
        facts,
        lists: vec![List { title: "Keys", items: keys_of(shape).collect() }],
        sample: sample(shape.plain_name(), |used| used.place == shape.plain_name()),
        ..Topic::new(Group::Object, shape.plain_name(), shape.about)
    }
}

fn action(shape: &'static Shape) -> Topic {
    let key = all_shapes().into_iter().flat_map(Shape::all_keys).find(|key| key.name == shape.name);
    let mut facts = Vec::new();
    let mut lists = vec![List { title: "Keys", items: keys_of(shape).collect() }];
    let fields = result_fields(shape.name).iter();
    let fields = fields.map(|(name, about)| ((*name).to_owned(), format!(": {about}")));
    lists.push(List { title: "Result", items: fields.collect() });
    facts.extend(result_about(shape.name).map(|what| format!("Result: {what}.")));
    if key.is_some_and(|key| key.not_yet) {
        facts.push(NOT_YET.to_owned());
    }
    Topic {
        place: "an action: a key of a node, a step or an action".to_owned(),
        facts,
        lists,
        sample: sample(shape.name, |used| used.key == shape.name),
        ..Topic::new(Group::Action, shape.name, key.map_or(shape.about, |key| key.about))
    }
}

fn sample(name: &str, fits: impl Fn(&Use) -> bool) -> Sample {
    showing(name, fits).map_or(Sample::None, Sample::File)
}

/// Each key on one line. The kinds of action are one line together.
fn keys_of(shape: &'static Shape) -> impl Iterator<Item = (String, String)> {
    let kinds: Vec<&str> = shape.all_keys().map(|key| key.name).filter(|name| is_kind(name)).collect();
    let own = shape.all_keys().filter(|key| !is_kind(key.name));
    let own = own.map(|key| (key.name.to_owned(), format!(" ({}): {}", remarks(key), key.about)));
    let kinds = (kinds.len() > 1).then(|| {
        (kinds.join("`, `"), ": the action itself, one of them; each has a page of its own.".to_owned())
    });
    own.chain(kinds)
}

fn remarks(key: &Key) -> String {
    let mut remarks = vec![key.form.expected()];
    if key.required {
        remarks.push("required".to_owned());
    }
    if !key.default.is_empty() {
        remarks.push(format!("default: {}", key.default));
    }
    if key.not_yet {
        remarks.push("not in this version yet".to_owned());
    }
    remarks.join("; ")
}

fn facts(key: &Key) -> Vec<String> {
    let mut facts = vec![format!("Form: {}.", key.form.expected())];
    if key.required {
        facts.push("Required.".to_owned());
    }
    if !key.default.is_empty() {
        facts.push(format!("Default: {}.", key.default));
    }
    if key.form.has_millis() {
        facts.push(format!("In milliseconds: `{}_ms: 1500`.", key.name));
    }
    if key.not_yet {
        facts.push(NOT_YET.to_owned());
    }
    facts
}

fn values(form: &'static Form) -> Vec<(String, String)> {
    words(form).into_iter().map(|word| (word.word.to_owned(), format!(": {}", word.about))).collect()
}

/// The words that may stand there, not those inside an object.
fn words(form: &'static Form) -> Vec<&'static Word> {
    match form {
        Form::Words(words) | Form::DurationOr(words) => words.iter().collect(),
        Form::List(inner) | Form::OneOrList(inner) => words(inner),
        Form::Either(forms) => forms.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that come with stored definitions; nobody writes them by hand.
    const STORED: [&str; 4] = ["id", "version", "created_at", "updated_at"];

    #[test]
    fn every_object_action_and_key_is_shown_by_an_example() {
        let mut missing = Vec::new();
        for topic in topics() {
            let excused = topic.facts.iter().any(|fact| fact == NOT_YET) || STORED.contains(&&*topic.name);
            let shown = matches!(topic.sample, Sample::File(_));
            if !shown && !excused && topic.group != Group::Word {
                missing.push(topic.address());
            }
        }
        assert!(missing.is_empty(), "in no file of examples/reference: {}", missing.join(", "));
    }

    /// A strategy or a response is a decision: one wants to see it made.
    #[test]
    fn every_strategy_and_response_is_shown_by_an_example() {
        let mut missing = Vec::new();
        for topic in topics().into_iter().filter(|topic| topic.group == Group::Word) {
            let decision = topic.inside.iter().any(|place| place.ends_with("strategy") || place == "rule.do");
            let Sample::File(example) = topic.sample else {
                missing.push(topic.name);
                continue;
            };
            if decision && !example.names(&topic.name) {
                missing.push(topic.name);
            }
        }
        assert!(missing.is_empty(), "in no file of examples/reference: {}", missing.join(", "));
    }
}
