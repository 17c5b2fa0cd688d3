//! What can be looked up: every object, action, key and word of the format, every function, filter, test and root
//! of its language, every kind of failure. All of it comes from the tables that checks, the JSON Schema and the
//! language itself use; nothing is said here that they do not know.
//!
//! Settings and variables are the program's, which adds them as topics of the same form.

mod examples;
mod format;
mod ideas;
mod language;

pub use examples::{EXAMPLES, Example};

use std::fmt::Write as _;

/// One meaning of one name. A name may have several.
#[derive(Clone, Debug)]
pub struct Topic {
    pub group: Group,
    pub name: String,
    /// Where it stands, in a sentence: "a key of a node".
    pub place: String,
    /// The plain names of those places, as in `node.timeout`; of what stands in no object, what it is: `root.error`.
    pub inside: Vec<String>,
    pub about: String,
    /// One line each: form, default, other ways to write it.
    pub facts: Vec<String>,
    pub lists: Vec<List>,
    pub sample: Sample,
}

/// Parts, each with what it means.
#[derive(Clone, Debug)]
pub struct List {
    pub title: &'static str,
    pub items: Vec<(String, String)>,
}

/// Something to try.
#[derive(Clone, Debug)]
pub enum Sample {
    None,
    /// A whole file.
    File(&'static Example),
    /// A line, and what it gives if that is known.
    Line(String, Option<String>),
}

/// What kind of thing a topic is, in the order of the list.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Group {
    Idea,
    Object,
    Action,
    Key,
    Word,
    Root,
    Function,
    Filter,
    Test,
    TemplateFunction,
    Failure,
    Setting,
    Variable,
}

impl Group {
    pub const ALL: [Group; 13] = [
        Group::Idea,
        Group::Object,
        Group::Action,
        Group::Key,
        Group::Word,
        Group::Root,
        Group::Function,
        Group::Filter,
        Group::Test,
        Group::TemplateFunction,
        Group::Failure,
        Group::Setting,
        Group::Variable,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Group::Idea => "Ideas",
            Group::Object => "Objects of a file",
            Group::Action => "Actions: what a node or a step does",
            Group::Key => "Keys",
            Group::Word => "Words: strategies, responses and other choices",
            Group::Root => "Roots: what expressions and templates read",
            Group::Function => "Functions of expressions",
            Group::Filter => "Filters of templates",
            Group::Test => "Tests of templates",
            Group::TemplateFunction => "Functions of templates",
            Group::Failure => "Kinds of failure",
            Group::Setting => "Settings",
            Group::Variable => "Environment variables",
        }
    }

    /// What one of them is called; keys and words are called by where they stand.
    fn one(self) -> Option<&'static str> {
        Some(match self {
            Group::Idea => "idea",
            Group::Object => "object",
            Group::Action => "action",
            Group::Key | Group::Word => return None,
            Group::Root => "root",
            Group::Function => "function",
            Group::Filter => "filter",
            Group::Test => "test",
            Group::TemplateFunction => "template_function",
            Group::Failure => "failure",
            Group::Setting => "setting",
            Group::Variable => "variable",
        })
    }

    /// The page of `docs/reference/` that has them.
    pub fn page(self) -> &'static str {
        match self {
            Group::Idea => "ideas",
            Group::Object => "objects",
            Group::Action => "actions",
            Group::Key => "keys",
            Group::Word => "words",
            Group::Root => "roots",
            Group::Function => "functions",
            Group::Filter | Group::Test | Group::TemplateFunction => "templates",
            Group::Failure => "failures",
            Group::Setting => "settings",
            Group::Variable => "variables",
        }
    }
}

/// Everything that the format and its language know, by group.
pub fn topics() -> Vec<Topic> {
    let mut all = format::topics();
    all.extend(ideas::topics());
    all.extend(language::topics());
    all.sort_by(|a, b| a.group.cmp(&b.group).then_with(|| by_name(a).cmp(&by_name(b))));
    all
}

/// Objects and actions stay in the order of the format, outermost first.
fn by_name(topic: &Topic) -> String {
    match topic.group {
        Group::Idea | Group::Object | Group::Action | Group::Root | Group::Failure => String::new(),
        _ => topic.name.to_lowercase(),
    }
}

impl Topic {
    pub(crate) fn new(group: Group, name: &str, about: impl Into<String>) -> Topic {
        Topic {
            group,
            name: name.to_owned(),
            place: String::new(),
            inside: group.one().map(str::to_owned).into_iter().collect(),
            about: about.into(),
            facts: Vec::new(),
            lists: Vec::new(),
            sample: Sample::None,
        }
    }

    /// Of something that the program knows: a setting, a variable.
    pub fn of_program(group: Group, name: &str, about: &str, facts: Vec<String>, line: &str) -> Topic {
        let sample = if line.is_empty() { Sample::None } else { Sample::Line(line.to_owned(), None) };
        Topic { facts, sample, ..Topic::new(group, name, about) }
    }

    /// `node.timeout`: this meaning and no other.
    pub fn address(&self) -> String {
        let place = self.inside.first().map_or(String::new(), |place| format!("{place}."));
        format!("{place}{}", self.name)
    }

    /// The page, which reads as well on a terminal as in a browser.
    pub fn page(&self) -> String {
        let mut text = format!("# {}\n\n", self.name);
        if !self.place.is_empty() {
            let _ = writeln!(text, "{}.\n", capital(&self.place));
        }
        text.push_str(&self.body());
        match &self.sample {
            Sample::None => {}
            Sample::File(example) => {
                let _ = write!(text, "\nExample ({}):\n\n{}", example.file(), indented(example.text));
            }
            Sample::Line(line, value) => {
                let value = value.as_ref().map_or(String::new(), |value| format!("  →  {value}"));
                let _ = write!(text, "\nExample:\n\n{}", indented(&format!("{line}{value}")));
            }
        }
        text
    }

    /// What is to be said, without heading and example.
    pub fn body(&self) -> String {
        let mut text = format!("{}\n", self.about);
        if !self.facts.is_empty() {
            let _ = writeln!(text, "\n{}", self.facts.join(" "));
        }
        for List { title, items } in self.lists.iter().filter(|list| !list.items.is_empty()) {
            let _ = writeln!(text, "\n{title}:\n");
            for (name, about) in items {
                let _ = writeln!(text, "- `{name}`{about}");
            }
        }
        text
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// As Markdown writes code, and terminals show it.
fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
    text.lines().map(line).collect()
}
