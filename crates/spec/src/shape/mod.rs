//! The format as a table: for each object its keys, and for each key its form, default and meaning.
//!
//! The one table drives unknown-key and missing-key errors, wrong forms, words with their nearest, and the
//! published JSON Schema. It says what a file may look like, never what it means.

mod action;
mod cases;
mod document;
#[cfg(test)]
mod effects;
mod node;
mod policy;

pub(crate) use action::{is_kind, kind_key, stored_kinds};
pub(crate) use cases::TEST_DOCUMENT;
pub(crate) use document::{
    ACTION_DOCUMENT, ARTIFACT_TYPE_DOCUMENT, MODEL_DOCUMENT, PROMPT_DOCUMENT, TASK_DOCUMENT,
    WORKFLOW_DOCUMENT,
};

/// One object of the format.
pub(crate) struct Shape {
    /// What people call it: "node". Also its name in the JSON Schema.
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [&'static [Key]],
    pub choices: &'static [Choice],
}

pub(crate) struct Key {
    pub name: &'static str,
    pub form: Form,
    pub about: &'static str,
    pub required: bool,
    pub default: &'static str,
    /// Part of the format, and without effect in this version: refused, so that no file means less than it says.
    pub not_yet: bool,
}

/// Keys of an object that depend on each other.
pub(crate) enum Choice {
    /// What the choice is about, and its keys.
    ExactlyOne(&'static str, &'static [&'static str]),
    AtMostOne(&'static [&'static str]),
    AtLeastOne(&'static str, &'static [&'static str]),
    /// The first needs the second.
    With(&'static str, &'static str),
}

pub(crate) struct Word {
    pub word: &'static str,
    pub about: &'static str,
}

/// What may stand as a value.
pub(crate) enum Form {
    /// A text as it is. A number or a boolean is taken as its text.
    Text,
    /// The name of a definition.
    Name,
    /// The name of a definition, perhaps with a version: `summarise@3`.
    NameAt,
    /// `[A-Za-z_][A-Za-z0-9_]*`
    Ref,
    /// CEL.
    Expression,
    /// A text with `{{ ... }}` in it.
    Template,
    /// The version of the format, which the reader itself looks at.
    Format,
    Bool,
    /// A whole number, at least and at most.
    Count(i64, i64),
    Number,
    /// `30s`; the key with `_ms` behind it takes milliseconds.
    Duration,
    /// The same, or one of these words.
    DurationOr(&'static [Word]),
    /// The same as a template: `{{ state.minutes }}m`.
    DurationTemplate,
    /// Dollars.
    Money,
    /// From 0 to 1.
    Share,
    Words(&'static [Word]),
    ErrorKind,
    JsonSchema,
    Json,
    /// JSON whose texts are expressions.
    Mapping,
    /// Target paths and what goes there.
    Writes,
    /// JSON whose texts are templates.
    Templates,
    List(&'static Form),
    /// One, or a list of them.
    OneOrList(&'static Form),
    /// Values by key.
    Map(&'static Form),
    /// Definitions by name.
    NameMap(&'static Form),
    Object(&'static Shape),
    /// A kind of action, as it is stored.
    ActionKind,
    /// The fields of the kind of action that the key `kind` beside it names.
    Implementation,
    /// The first whose outer form fits.
    Either(&'static [Form]),
}

/// A key as it was found: the one in the table, or its twin in milliseconds.
pub(crate) enum Found {
    Own(&'static Key),
    Millis(&'static Key),
}

pub(crate) const fn key(name: &'static str, form: Form, about: &'static str) -> Key {
    Key { name, form, about, required: false, default: "", not_yet: false }
}

pub(crate) const fn word(word: &'static str, about: &'static str) -> Word {
    Word { word, about }
}

/// Any whole number that is not negative.
pub(crate) const COUNT: Form = Form::Count(0, i64::MAX);
/// A whole number from 1 that fits 32 bits.
pub(crate) const POSITIVE: Form = Form::Count(1, u32::MAX as i64);

/// How often something may be.
pub(crate) const BOUND: Form = Form::Either(&[POSITIVE, Form::Expression]);

impl Key {
    pub(crate) const fn required(mut self) -> Key {
        self.required = true;
        self
    }

    pub(crate) const fn not_yet(mut self) -> Key {
        self.not_yet = true;
        self
    }

    pub(crate) const fn default(mut self, default: &'static str) -> Key {
        self.default = default;
        self
    }
}

impl Form {
    /// Whether `key_ms` is another way to write it.
    pub(crate) fn has_millis(&self) -> bool {
        matches!(self, Form::Duration | Form::DurationOr(_))
    }

    /// What was expected, as the middle of a sentence.
    pub(crate) fn expected(&self) -> String {
        match self {
            Form::Text => "a text".into(),
            Form::Name | Form::NameAt => "a name".into(),
            Form::Ref => "a ref (letters, digits and `_`)".into(),
            Form::Expression => "an expression such as `state.score >= 7`".into(),
            Form::Template => "a text".into(),
            Form::Format => "1".into(),
            Form::Bool => "`true` or `false`".into(),
            Form::Count(..) => "a whole number".into(),
            Form::Number => "a number".into(),
            Form::Duration | Form::DurationTemplate => "a duration such as `30s`".into(),
            Form::Implementation => "the fields of the action".into(),
            Form::ActionKind => "a kind of action such as `shell`".into(),
            Form::DurationOr(words) => format!("a duration such as `30s`, or {}", one_of(words)),
            Form::Money => "an amount in dollars such as `1.5`".into(),
            Form::Share => "a number from 0 to 1".into(),
            Form::Words(words) => one_of(words),
            Form::ErrorKind => "a kind of error such as `timeout`".into(),
            Form::JsonSchema => "a JSON Schema".into(),
            Form::Json => "a JSON value".into(),
            Form::Mapping => "a map of expressions".into(),
            Form::Writes => "a map of target paths and expressions".into(),
            Form::Templates => "a map of texts".into(),
            Form::List(_) => "a list".into(),
            Form::OneOrList(form) => format!("{}, or a list of them", form.expected()),
            Form::Map(_) | Form::NameMap(_) => "a map by name".into(),
            Form::Object(shape) => match shape.example() {
                Some(example) => format!("a map such as `{example}`"),
                None => format!("a map with the keys of {}", shape.called()),
            },
            Form::Either(forms) => {
                let mut all: Vec<String> = forms.iter().map(Form::expected).collect();
                let last = all.pop().unwrap_or_default();
                format!("{} or {last}", all.join(", "))
            }
        }
    }
}

fn one_of(words: &[Word]) -> String {
    let all: Vec<String> = words.iter().map(|word| format!("`{}`", word.word)).collect();
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

impl Shape {
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().flat_map(|part| part.iter())
    }

    /// What it is, however it is written: a node in a list is a node.
    pub(crate) fn plain_name(&self) -> &'static str {
        self.name.trim_start_matches("listed_").trim_end_matches("_document")
    }

    /// In a sentence: "a node", or the key under which it stands.
    pub(crate) fn called(&self) -> String {
        let name = self.plain_name();
        match name {
            "action" | "estimate" | "outcome" => format!("an {name}"),
            "workflow" | "node" | "transition" | "task" | "step" | "prompt" | "model" | "rule" | "budget"
            | "condition" | "response" | "strategy" | "case" | "test" | "signal" => format!("a {name}"),
            "mocked" => "a mock".to_owned(),
            "mocked_error" => "`error`".to_owned(),
            "mocked_usage" => "`usage`".to_owned(),
            "mocked_tool_call" => "a call of `tool_calls`".to_owned(),
            "gate_answer" => "an answer".to_owned(),
            "artifact_type" => "an artifact type".to_owned(),
            "mock_error" => "`error`".to_owned(),
            "mock_usage" => "`usage`".to_owned(),
            name => format!("`{name}`"),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Found> {
        if let Some(own) = self.all_keys().find(|key| key.name == name) {
            return Some(Found::Own(own));
        }
        let short = name.strip_suffix("_ms")?;
        self.all_keys().find(|key| key.name == short && key.form.has_millis()).map(Found::Millis)
    }

    /// The smallest thing one could write, if it is small enough to say in passing.
    pub(crate) fn example(&self) -> Option<&'static str> {
        match self.name {
            "strategy" => Some("{m_of_n: 3}"),
            "foreach" => Some("{items: state.files, as: file}"),
            "retry" => Some("{max_attempts: 3}"),
            "budget" => Some("{usd: 1.5}"),
            "transition" => Some("{to: publish}"),
            "merge" => Some("{target: state.votes}"),
            "estimate" => Some("{usd: 0.2, duration: 30s}"),
            "rule" => Some("{do: retry, max: 3}"),
            "concurrency" => Some("{limit: 1}"),
            _ => None,
        }
    }
}

pub(crate) fn node_shape() -> &'static Shape {
    node::NODE
}

pub(crate) fn step_shape() -> &'static Shape {
    node::STEP
}

pub(crate) fn task_shape() -> &'static Shape {
    node::TASK
}

/// Every shape that can be reached from a document of definitions, outermost first.
pub(crate) fn all_shapes() -> Vec<&'static Shape> {
    shapes_of(&[
        WORKFLOW_DOCUMENT,
        TASK_DOCUMENT,
        ACTION_DOCUMENT,
        PROMPT_DOCUMENT,
        MODEL_DOCUMENT,
        ARTIFACT_TYPE_DOCUMENT,
    ])
}

/// Every shape that can be reached from these, outermost first.
pub(crate) fn shapes_of(documents: &[&'static Shape]) -> Vec<&'static Shape> {
    fn visit(form: &'static Form, found: &mut Vec<&'static Shape>) {
        match form {
            Form::List(inner) | Form::OneOrList(inner) | Form::Map(inner) | Form::NameMap(inner) => {
                visit(inner, found)
            }
            Form::Either(forms) => forms.iter().for_each(|form| visit(form, found)),
            Form::Object(shape) => add(shape, found),
            _ => {}
        }
    }
    fn add(shape: &'static Shape, found: &mut Vec<&'static Shape>) {
        if found.iter().any(|known| known.name == shape.name) {
            return;
        }
        found.push(shape);
        shape.all_keys().for_each(|key| visit(&key.form, found));
    }
    let mut found = Vec::new();
    documents.iter().for_each(|document| add(document, &mut found));
    found
}
