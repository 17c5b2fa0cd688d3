//! Holds a tree against the table of shapes and says what does not fit.
//!
//! It reports everything it finds, once. It builds nothing and knows no meaning beyond the table's.

use wonder_core::error::ErrorKind;
use wonder_core::foreign::{Place, foreign};
use wonder_core::problem::nearest;

use crate::codes;
use crate::diagnostics::{Diagnostic, PROBLEMS_MAX};
use crate::place::Span;
use crate::scalar::{MoneyError, duration_ms, micros, permille};
use crate::shape::{Choice, Form, Found, Key, Shape, Word, all_shapes, kind_key, stored_kinds};
use crate::tree::{Data, Entry, Node};

pub(crate) struct Checker<'p> {
    pub source: &'p str,
    pub problems: &'p mut Vec<Diagnostic>,
    /// Something is wrong with nodes or transitions themselves: who leads where is not known.
    pub broken: bool,
    pub support: Support,
}

/// What whoever reads a file can do with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Support {
    /// What this version does; the rest of the format is refused.
    ThisVersion,
    /// All of the format, as the simulator does, which performs nothing.
    Everything,
}

/// Shapes that say where tokens go.
const ROUTING: [&str; 12] = [
    "workflow",
    "node",
    "listed_node",
    "transition",
    "listed_transition",
    "synchronization",
    "strategy",
    "foreach",
    "merge",
    "rule",
    "response",
    "loop_with_feedback",
];

impl Checker<'_> {
    /// `outer` is the key under which the value stands, for values that have nothing to underline.
    pub(crate) fn object(&mut self, node: &Node<'_>, shape: &'static Shape, outer: Span) {
        let before = self.problems.len();
        if node.is_bad() {
            return;
        }
        let Data::Map(entries) = &node.data else {
            return self.wrong(node, &Form::Object(shape), outer);
        };
        let mut guessed = Vec::new();
        for entry in &entries.list {
            match shape.find(&entry.key) {
                Some(Found::Own(key)) if matches!(key.form, Form::Implementation) => {
                    self.implementation(node, entry);
                }
                Some(Found::Own(key)) => {
                    self.supported(key, entry);
                    self.form(&entry.value, &key.form, entry.key_span);
                }
                Some(Found::Millis(key)) => self.millis(entry, key, node),
                None => guessed.extend(self.unknown_key(entry, shape)),
            }
        }
        // Beyond so many nothing is guessed, so that nothing can be said to be missing.
        if !entries.partial && self.problems.len() <= PROBLEMS_MAX {
            self.missing(node, shape, &guessed, outer);
        }
        self.broken |= self.problems.len() > before && ROUTING.contains(&shape.name);
    }

    /// `kind: shell` beside `implementation: {…}`: the same as `shell: {…}`.
    fn implementation(&mut self, node: &Node<'_>, entry: &Entry<'_>) {
        let Some(key) = node.get("kind").and_then(Node::text).and_then(kind_key) else { return };
        self.supported(key, entry);
        self.form(&entry.value, &key.form, entry.key_span);
    }

    fn report(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    /// A key that is part of the format and does nothing yet says so, instead of being ignored.
    fn supported(&mut self, key: &Key, entry: &Entry<'_>) {
        if key.not_yet && self.support == Support::ThisVersion {
            let message = format!("`{}` is not supported by this version yet", key.name);
            self.report(
                Diagnostic::error(codes::NOT_YET, entry.key_span, message)
                    .label("this would have no effect")
                    .help("leave it out until a version of Wonder has it"),
            );
        }
    }

    /// The key it was taken for, if any.
    fn unknown_key(&mut self, entry: &Entry<'_>, shape: &'static Shape) -> Option<&'static str> {
        let what = shape.called();
        let message = format!("{what} has no key `{}`", entry.key);
        // Of so many most are counted, not shown: what each could have meant is not worth the time.
        if self.problems.len() > PROBLEMS_MAX {
            self.report(Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message));
            return None;
        }
        let known = shape.all_keys().map(|key| key.name);
        let meant = foreign(Place::Key(shape.plain_name()), &entry.key);
        let near = nearest(&entry.key, known);
        let help = match (meant, near) {
            (Some(meant), _) => format!("here {}", meant.say),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => elsewhere(&entry.key).unwrap_or_else(|| known_keys(shape)),
        };
        self.report(
            Diagnostic::error(codes::UNKNOWN_KEY, entry.key_span, message)
                .label(format!("not a key of {what}"))
                .help(help),
        );
        meant.map_or(near, |meant| meant.ours)
    }

    fn missing(&mut self, node: &Node<'_>, shape: &'static Shape, guessed: &[&str], outer: Span) {
        let has = |name: &str| node.entry(name).is_some() || node.entry(&format!("{name}_ms")).is_some();
        for key in shape.all_keys().filter(|key| key.required) {
            if !has(key.name) && !guessed.contains(&key.name) {
                self.missing_key(node, shape, key, outer);
            }
        }
        for choice in shape.choices {
            self.choice(node, shape, choice, guessed, outer);
        }
    }

    fn missing_key(&mut self, node: &Node<'_>, shape: &'static Shape, key: &Key, outer: Span) {
        let message = format!("{} needs `{}`", shape.called(), key.name);
        self.report(
            Diagnostic::error(codes::MISSING_KEY, start_of(node, outer), message)
                .label(format!("`{}` is missing", key.name))
                .help(format!("add `{}: ...`. {}", key.name, key.about)),
        );
    }

    fn choice(
        &mut self,
        node: &Node<'_>,
        shape: &'static Shape,
        choice: &Choice,
        guessed: &[&str],
        outer: Span,
    ) {
        let what = shape.called();
        // A bound in milliseconds is a bound as well.
        let is = |key: &str, keys: &[&str]| {
            keys.contains(&key) || key.strip_suffix("_ms").is_some_and(|short| keys.contains(&short))
        };
        let found = |keys: &[&str]| node.entries().iter().filter(|e| is(&e.key, keys)).collect::<Vec<_>>();
        match choice {
            Choice::ExactlyOne(about, keys) | Choice::AtLeastOne(about, keys) => {
                let found = found(keys);
                let exactly = matches!(choice, Choice::ExactlyOne(..));
                if found.is_empty() && !guessed.iter().any(|key| keys.contains(key)) {
                    let many = if exactly { "exactly" } else { "at least" };
                    self.report(
                        Diagnostic::error(
                            codes::CHOICE,
                            start_of(node, outer),
                            format!("{what} needs a {about}"),
                        )
                        .label(format!("{many} one {about} is expected here"))
                        .help(format!("write one of {}", list(keys))),
                    );
                } else if exactly && found.len() > 1 {
                    self.too_many(&found, &format!("{what} has one {about}"));
                }
            }
            Choice::AtMostOne(keys) => {
                let found = found(keys);
                if found.len() > 1 {
                    self.too_many(&found, &format!("{} exclude each other", list(keys)));
                }
            }
            Choice::With(key, other) => {
                if let (Some(entry), None) = (node.entry(key), node.entry(other)) {
                    self.report(
                        Diagnostic::error(
                            codes::MISSING_KEY,
                            entry.key_span,
                            format!("`{key}` needs `{other}`"),
                        )
                        .label(format!("`{other}` is missing"))
                        .help(format!("add `{other}: ...` beside it, or leave `{key}` out")),
                    );
                }
            }
        }
    }

    fn too_many(&mut self, found: &[&Entry<'_>], message: &str) {
        let [first, again, ..] = found else { return };
        self.report(
            Diagnostic::error(codes::CHOICE, again.key_span, message)
                .label(format!("`{}` as well", again.key))
                .also(first.key_span, format!("`{}` is here", first.key))
                .help("keep one of them"),
        );
    }

    fn millis(&mut self, entry: &Entry<'_>, key: &Key, node: &Node<'_>) {
        self.count(&entry.value, 0, i64::MAX, entry.key_span);
        if let Some(short) = node.entry(key.name).filter(|short| !is_word(&short.value, &key.form)) {
            let message = format!("`{}` and `{}` say the same thing", short.key, entry.key);
            self.too_many(&[short, entry], &message);
        }
    }

    pub(crate) fn form(&mut self, node: &Node<'_>, form: &'static Form, outer: Span) {
        if node.is_bad() {
            return;
        }
        match (form, &node.data) {
            (
                Form::Text | Form::Template | Form::Expression,
                Data::Text(_) | Data::Int(_) | Data::Float(_) | Data::Bool(_),
            ) => {}
            (Form::Name, Data::Text(text)) => self.name(text, node.span, false),
            (Form::NameAt, Data::Text(text)) => self.name(text, node.span, true),
            (Form::Ref, Data::Text(text)) => self.reference(text, node.span),
            (Form::Format, _) => {}
            (Form::Bool, Data::Bool(_)) => {}
            (Form::Count(min, max), Data::Int(_)) => self.count(node, *min, *max, outer),
            (Form::Number, Data::Int(_) | Data::Float(_)) => {}
            (Form::Duration, Data::Text(text)) => self.duration(text, node.span, form),
            (Form::DurationOr(words), Data::Text(text)) if words.iter().any(|word| word.word == text) => {}
            (Form::DurationOr(_), Data::Text(text)) => self.duration(text, node.span, form),
            (Form::Duration | Form::DurationOr(_), Data::Int(_) | Data::Float(_)) => {
                self.bare_duration(node, "the same key with `_ms` behind it takes plain milliseconds");
            }
            (Form::DurationTemplate, Data::Int(_) | Data::Float(_)) => {
                self.bare_duration(node, "plain milliseconds are written with their unit too: `500ms`");
            }
            // What a template gives is known in the run only.
            (Form::DurationTemplate, Data::Text(text)) if text.contains("{{") || text.contains("{%") => {}
            (Form::DurationTemplate, Data::Text(text)) => self.duration(text, node.span, form),
            (Form::Money, Data::Int(_) | Data::Float(_)) => self.money(node),
            (Form::Share, Data::Int(_) | Data::Float(_)) => self.share(node),
            (Form::Words(words), Data::Text(text)) => self.word(text, node.span, words, outer),
            (Form::ErrorKind, Data::Text(text)) => self.error_kind(text, node.span, outer),
            (Form::ActionKind, Data::Text(text)) => {
                let known: Vec<&str> = stored_kinds().collect();
                self.one_of(text, node.span, &known, (outer, "expected a kind of action"));
            }
            (Form::JsonSchema, Data::Map(_) | Data::Bool(_)) => {}
            (Form::Json, _) => {}
            (Form::Mapping, Data::Map(_)) => {}
            (Form::Writes, Data::Map(_)) => {}
            (Form::Templates, _) => {}
            (Form::List(inner) | Form::OneOrList(inner), Data::List(items)) => {
                self.items(items, inner, outer)
            }
            (Form::OneOrList(inner), _) if accepts(inner, node) => self.form(node, inner, outer),
            (Form::Map(inner), Data::Map(entries)) => {
                for entry in &entries.list {
                    self.form(&entry.value, inner, entry.key_span);
                }
            }
            (Form::NameMap(inner), Data::Map(entries)) => {
                for entry in &entries.list {
                    self.name(&entry.key, entry.key_span, false);
                    self.form(&entry.value, inner, entry.key_span);
                }
            }
            (Form::Object(shape), _) => self.object(node, shape, outer),
            (Form::Either(forms), _) => match forms.iter().find(|form| accepts(form, node)) {
                Some(form) => self.form(node, form, outer),
                None => self.wrong(node, form, outer),
            },
            _ => self.wrong(node, form, outer),
        }
    }

    fn items(&mut self, items: &[Node<'_>], form: &'static Form, outer: Span) {
        for item in items {
            // What is missing in an item is missing there, not at the list's key.
            let map = matches!(&item.data, Data::Map(entries) if !entries.list.is_empty());
            self.form(item, form, if map { Span::default() } else { outer });
        }
    }

    /// The key above a value, for a message.
    fn key_of(&self, outer: Span) -> Option<&str> {
        let key = outer.of(self.source).trim_matches(['"', '\'']);
        (!key.is_empty()).then_some(key)
    }

    fn wrong(&mut self, node: &Node<'_>, form: &Form, outer: Span) {
        let expected = form.expected();
        let span = if node.span.is_empty() || matches!(node.data, Data::Null) { outer } else { node.span };
        let help = match (&node.data, form) {
            (Data::Text(text), Form::Bool) if matches!(&**text, "yes" | "on") => {
                Some("write `true`".to_owned())
            }
            (Data::Text(text), Form::Bool) if matches!(&**text, "no" | "off") => {
                Some("write `false`".to_owned())
            }
            (Data::Null, _) => Some("give it a value, or leave the key out".to_owned()),
            (Data::Text(text), Form::Count(..) | Form::Number | Form::Money | Form::Share)
                if text.parse::<f64>().is_ok() =>
            {
                Some(format!("write {text} without quotes"))
            }
            _ => None,
        };
        let message = format!("expected {expected}, found {}", node.kind());
        let label = match &node.data {
            Data::Null => "nothing is written here".to_owned(),
            _ => format!("this is {}", node.kind()),
        };
        self.report(Diagnostic::error(codes::WRONG_FORM, span, message).label(label).maybe_help(help));
    }

    fn count(&mut self, node: &Node<'_>, min: i64, max: i64, outer: Span) {
        let Data::Int(number) = node.data else {
            if !node.is_bad() {
                self.wrong(node, &Form::Count(min, max), outer);
            }
            return;
        };
        if (min..=max).contains(&number) {
            return;
        }
        let bound = match (number < min, min == max) {
            (_, true) => format!("expected {min}"),
            (true, _) => format!("expected {min} or more"),
            (false, _) => format!("expected {max} or less"),
        };
        let message = match self.key_of(outer) {
            Some(key) => format!("`{key}` cannot be {number}"),
            None => format!("{number} is out of range"),
        };
        self.report(Diagnostic::error(codes::OUT_OF_RANGE, node.span, message).label(bound));
    }

    fn duration(&mut self, text: &str, span: Span, form: &Form) {
        if duration_ms(text).is_some() {
            return;
        }
        let near = match form {
            Form::DurationOr(words) => nearest(text, words.iter().map(|word| word.word)),
            _ => None,
        };
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "numbers with units from long to short: `200ms`, `30s`, `5m`, `1h30m`, `2d`".to_owned(),
        };
        self.report(
            Diagnostic::error(codes::BAD_DURATION, span, format!("`{text}` is no duration"))
                .label(format!("expected {}", form.expected()))
                .help(help),
        );
    }

    fn bare_duration(&mut self, node: &Node<'_>, help: &str) {
        let number = node.span.of(self.source);
        let message = format!("{number} of what? A duration needs a unit");
        self.report(
            Diagnostic::error(codes::BAD_DURATION, node.span, message)
                .label(format!("expected `{number}s`, `{number}m` or the like"))
                .help(help),
        );
    }

    fn money(&mut self, node: &Node<'_>) {
        let text = node.span.of(self.source);
        let (message, label) = match micros(text) {
            Ok(_) => return,
            Err(MoneyError::Negative) => (format!("{text} is a negative amount"), "expected 0 or more"),
            Err(MoneyError::TooFine) => {
                (format!("{text} is finer than a micro-dollar"), "expected at most 6 decimals")
            }
            Err(MoneyError::TooMuch) => (format!("{text} is more than can be counted"), "expected less"),
            Err(MoneyError::NotANumber) => {
                (format!("{text} is no decimal number"), "expected dollars such as `1.5`")
            }
        };
        self.report(Diagnostic::error(codes::BAD_MONEY, node.span, message).label(label));
    }

    fn share(&mut self, node: &Node<'_>) {
        let text = node.span.of(self.source);
        if !permille(text).is_ok_and(|share| share <= 1_000) {
            let message = format!("{text} is no share");
            let problem = Diagnostic::error(codes::OUT_OF_RANGE, node.span, message);
            self.report(problem.label("expected a number from 0 to 1, with at most 3 decimals"));
        }
    }

    fn word(&mut self, text: &str, span: Span, words: &[Word], outer: Span) {
        let known: Vec<&str> = words.iter().map(|word| word.word).collect();
        self.one_of(text, span, &known, (outer, "expected one of the known words"));
    }

    fn error_kind(&mut self, text: &str, span: Span, outer: Span) {
        let known: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
        self.one_of(text, span, &known, (outer, "expected a kind of error"));
    }

    fn one_of(&mut self, text: &str, span: Span, known: &[&str], (outer, expected): (Span, &str)) {
        if known.contains(&text) {
            return;
        }
        let message = match self.key_of(outer) {
            Some(key) => format!("`{key}` cannot be `{text}`"),
            None => format!("`{text}` is not known here"),
        };
        let few = known.len() <= 5;
        let label = if few { format!("expected {}", list_or(known)) } else { expected.to_owned() };
        let help = match nearest(text, known.iter().copied()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if few => None,
            None => Some(format!("known are {}", list(known))),
        };
        self.report(Diagnostic::error(codes::UNKNOWN_WORD, span, message).label(label).maybe_help(help));
    }

    fn reference(&mut self, text: &str, span: Span) {
        if !is_ref(text) {
            self.report(
                Diagnostic::error(codes::BAD_NAME, span, format!("`{text}` cannot be a ref"))
                    .label("expected letters, digits and `_`, not beginning with a digit"),
            );
        }
    }

    fn name(&mut self, text: &str, span: Span, at: bool) {
        let (name, version) = split_version(text);
        let version_fits = match version {
            Some(version) => at && version.parse::<u32>().is_ok_and(|version| version > 0),
            None => true,
        };
        // What was written in place has a name that only `validate --expand` prints.
        let written = name.strip_prefix("node:").or_else(|| name.strip_prefix("task:")).unwrap_or(name);
        if written.split('/').all(is_name_part) && version_fits {
            return;
        }
        let label = match at {
            true => "expected a name such as `summarise`, `lib/summarise` or `summarise@3`",
            false => "expected letters, digits, `_`, `-` and `.`",
        };
        self.report(
            Diagnostic::error(codes::BAD_NAME, span, format!("`{text}` cannot be a name")).label(label),
        );
    }
}

/// Whether the outer form fits, so that what is wrong inside can be told.
pub(crate) fn accepts(form: &Form, node: &Node<'_>) -> bool {
    match form {
        Form::Text | Form::Template | Form::Expression => {
            matches!(node.data, Data::Text(_) | Data::Int(_) | Data::Float(_) | Data::Bool(_))
        }
        Form::Name | Form::NameAt | Form::Ref | Form::Words(_) | Form::ErrorKind | Form::ActionKind => {
            matches!(node.data, Data::Text(_))
        }
        Form::Bool => matches!(node.data, Data::Bool(_)),
        Form::Count(..) => matches!(node.data, Data::Int(_)),
        Form::Number | Form::Money | Form::Share => matches!(node.data, Data::Int(_) | Data::Float(_)),
        Form::Duration | Form::DurationOr(_) | Form::DurationTemplate => {
            matches!(node.data, Data::Text(_) | Data::Int(_) | Data::Float(_))
        }
        Form::JsonSchema => matches!(node.data, Data::Map(_) | Data::Bool(_)),
        Form::Json | Form::Templates | Form::Format | Form::Implementation => true,
        Form::Mapping | Form::Writes | Form::Map(_) | Form::NameMap(_) | Form::Object(_) => {
            matches!(node.data, Data::Map(_))
        }
        Form::List(_) => matches!(node.data, Data::List(_)),
        Form::OneOrList(inner) => matches!(node.data, Data::List(_)) || accepts(inner, node),
        Form::Either(forms) => forms.iter().any(|form| accepts(form, node)),
    }
}

fn is_word(node: &Node<'_>, form: &Form) -> bool {
    match (form, node.text()) {
        (Form::DurationOr(words), Some(text)) => words.iter().any(|word| word.word == text),
        _ => false,
    }
}

/// What to underline where something is missing: the key above, or the first key inside.
fn start_of(node: &Node<'_>, outer: Span) -> Span {
    match node.entries().first() {
        Some(first) if outer.is_empty() => first.key_span,
        _ if outer.is_empty() => node.span,
        _ => outer,
    }
}

/// Where else the key is known.
fn elsewhere(key: &str) -> Option<String> {
    let mut others: Vec<String> =
        all_shapes().into_iter().filter(|shape| shape.find(key).is_some()).map(Shape::called).collect();
    others.dedup();
    match others.as_slice() {
        [] => None,
        [one] => Some(format!("`{key}` is a key of {one}")),
        many => Some(format!("`{key}` is a key of {}", many[..many.len().min(4)].join(", "))),
    }
}

fn known_keys(shape: &Shape) -> String {
    let keys: Vec<&str> = shape.all_keys().map(|key| key.name).collect();
    match keys.len() {
        0..=16 => format!("known are {}", list(&keys)),
        _ => format!("known are {} and others; `wonder schema` has all of them", list(&keys[..12])),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn list_or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [most @ .., last] => format!("{} or `{last}`", list(most)),
    }
}

pub(crate) fn is_ref(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_name_part(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// `summarise@3` is `summarise` and `3`.
pub(crate) fn split_version(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    }
}
