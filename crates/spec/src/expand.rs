//! The five layers as text, for people who want to see what their short forms stand for. It is a file like any other:
//! read again, it gives the same definitions.

use wonder_core::def::Bundle;
use wonder_core::visible;

use crate::scalar::{Plain, plain};
use crate::tree::{self, Data, Node};

/// The bundle as it is stored: JSON, without places.
pub fn stored(bundle: &Bundle) -> String {
    // A bundle has text keys and no number that JSON lacks, so this cannot fail; an empty text would tell.
    let mut text = serde_json::to_string_pretty(bundle).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads back what [`stored`] wrote, or what a store kept.
pub fn from_stored(json: &str) -> Result<Bundle, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// The bundle as a document of a file, every layer written out.
pub fn expand(bundle: &Bundle) -> String {
    let mut text = String::new();
    document(bundle).block(0, &mut text);
    text
}

/// JSON whose maps keep their order, which matters where one thing is set after the other.
enum Item {
    /// A number, a boolean or null, as it is written.
    Plain(String),
    Text(String),
    List(Vec<Item>),
    Map(Object),
}

#[derive(Default)]
struct Object(Vec<(String, Item)>);

impl Object {
    fn get_mut(&mut self, key: &str) -> Option<&mut Item> {
        self.0.iter_mut().find(|(known, _)| known == key).map(|(_, item)| item)
    }

    fn object_mut(&mut self, key: &str) -> Option<&mut Object> {
        match self.get_mut(key)? {
            Item::Map(object) => Some(object),
            _ => None,
        }
    }

    fn objects_mut(&mut self, key: &str) -> impl Iterator<Item = &mut Object> {
        let items = match self.get_mut(key) {
            Some(Item::List(items)) => &mut items[..],
            _ => &mut [],
        };
        items.iter_mut().filter_map(|item| match item {
            Item::Map(object) => Some(object),
            _ => None,
        })
    }

    fn remove(&mut self, key: &str) -> Option<Item> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1)
    }

    fn number(&mut self, key: &str) -> Option<u64> {
        match self.remove(key)? {
            Item::Plain(number) => number.parse().ok(),
            _ => None,
        }
    }

    fn insert(&mut self, key: &str, item: Item) {
        self.0.push((key.to_owned(), item));
    }
}

fn read(node: &Node<'_>, source: &str) -> Item {
    match &node.data {
        Data::Text(text) => Item::Text(text.to_string()),
        Data::List(items) => Item::List(items.iter().map(|item| read(item, source)).collect()),
        Data::Map(entries) => {
            let entries = entries.list.iter();
            Item::Map(Object(entries.map(|e| (e.key.to_string(), read(&e.value, source))).collect()))
        }
        _ => Item::Plain(node.span.of(source).to_owned()),
    }
}

fn document(bundle: &Bundle) -> Item {
    let source = stored(bundle);
    let prepared = tree::prepare(&source);
    let forest = tree::parse(&source, &prepared);
    let Some(Item::Map(mut whole)) = forest.documents.first().map(|node| read(node, &source)) else {
        return Item::Map(Object::default());
    };
    let Some(Item::Map(mut workflow)) = whole.remove("workflow") else { return Item::Map(whole) };
    let mut document = Object::default();
    document.insert("wonder", Item::Plain("1".to_owned()));
    in_dollars(&mut workflow);
    rules(&mut workflow);
    workflow.objects_mut("nodes").for_each(node);
    document.0.extend(workflow.0);
    for (part, rewrite) in PARTS {
        let Some(Item::Map(mut definitions)) = whole.remove(part) else { continue };
        for (_, definition) in &mut definitions.0 {
            if let Item::Map(definition) = definition {
                // It stands under its name.
                definition.remove("name");
                rewrite(definition);
            }
        }
        document.insert(part, Item::Map(definitions));
    }
    Item::Map(document)
}

type Rewrite = fn(&mut Object);

/// What stands by name beside a workflow, and how it is written in a file.
const PARTS: [(&str, Rewrite); 6] = [
    ("tasks", task),
    ("actions", action),
    ("prompts", |_| {}),
    ("models", model),
    ("artifact_types", |_| {}),
    ("mcp_servers", |_| {}),
];

/// What a retry is about follows from where the task was written, which its name says.
fn task(task: &mut Object) {
    task.remove("retry_on");
    retry(task, "retry");
}

fn node(node: &mut Object) {
    in_dollars(node);
    rules(node);
    if node.remove("timeout_adaptive").is_some() {
        node.insert("timeout", Item::Text("adaptive".to_owned()));
    }
}

fn action(action: &mut Object) {
    if let Some(execution) = action.object_mut("execution") {
        retry(execution, "retry_policy");
    }
    let Some(implementation) = action.object_mut("implementation") else { return };
    // A gate without a title of its own.
    if matches!(implementation.get_mut("title"), Some(Item::Plain(_))) {
        implementation.remove("title");
    }
    // A form is a schema, or an expression that gives one.
    if let Some(form) = implementation.remove("form_from") {
        implementation.insert("form", form);
    }
    for outcome in implementation.objects_mut("outcomes") {
        if let Some(usage) = outcome.object_mut("usage") {
            dollars(usage, "usd_micros", "cost_usd");
        }
    }
}

fn model(model: &mut Object) {
    if let Some(prices) = model.object_mut("prices") {
        for key in ["input", "output", "cached_input", "cache_write"] {
            dollars(prices, key, key);
        }
    }
}

/// Amounts of money are stored in micro-dollars, and shares in thousandths.
fn in_dollars(object: &mut Object) {
    for key in ["budget", "estimate"] {
        let Some(amounts) = object.object_mut(key) else { continue };
        dollars(amounts, "usd_micros", "usd");
        if let Some(permille) = amounts.number("warn_at_permille") {
            amounts.insert("warn_at", Item::Plain(decimal(permille, 3)));
        }
    }
}

fn dollars(object: &mut Object, stored: &str, written: &str) {
    if let Some(micros) = object.number(stored) {
        object.insert(written, Item::Plain(decimal(micros, 6)));
    }
}

/// A whole number of small units as a decimal of large ones, exactly.
fn decimal(units: u64, places: usize) -> String {
    let digits = format!("{units:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let text = format!("{whole}.{part}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn rules(object: &mut Object) {
    object.objects_mut("on_error").for_each(backoff);
}

fn retry(object: &mut Object, key: &str) {
    if let Some(retry) = object.object_mut(key) {
        backoff(retry);
    }
}

/// What is stored as one object, `backoff`, stands beside the rest in a file.
fn backoff(object: &mut Object) {
    let Some(Item::Map(mut backoff)) = object.remove("backoff") else { return };
    if let Some(kind) = backoff.remove("kind") {
        object.insert("backoff", kind);
    }
    object.0.extend(backoff.0);
}

impl Item {
    /// YAML, block by block.
    fn block(&self, indent: usize, text: &mut String) {
        let blanks = " ".repeat(indent);
        match self {
            Item::Map(map) => {
                for (key, value) in &map.0 {
                    text.push_str(&format!("{blanks}{}:", scalar(key)));
                    value.behind(indent + 2, text);
                }
            }
            Item::List(items) => {
                for item in items {
                    let start = text.len();
                    match item {
                        // The first key stands behind the dash.
                        Item::Map(map) if !map.0.is_empty() => {
                            item.block(indent + 2, text);
                            text.replace_range(start + indent..start + indent + 1, "-");
                        }
                        item => {
                            text.push_str(&format!("{blanks}-"));
                            item.behind(indent + 2, text);
                        }
                    }
                }
            }
            Item::Plain(_) | Item::Text(_) => {}
        }
    }

    /// What stands behind a key or a dash.
    fn behind(&self, indent: usize, text: &mut String) {
        match self {
            Item::Map(map) if map.0.is_empty() => text.push_str(" {}\n"),
            Item::List(items) if items.is_empty() => text.push_str(" []\n"),
            Item::Map(_) | Item::List(_) => {
                text.push('\n');
                self.block(indent, text);
            }
            Item::Text(word) => text.push_str(&format!(" {}\n", scalar(word))),
            Item::Plain(word) => text.push_str(&format!(" {word}\n")),
        }
    }
}

/// A text as it is if YAML takes it so, else in JSON's quotes, which are YAML's too, with what cannot be seen as escapes.
pub(crate) fn scalar(text: &str) -> String {
    let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && text.chars().all(simple) && plain(text) == Plain::Word {
        return text.to_owned();
    }
    visible::yaml(&serde_json::Value::from(text).to_string()).into_owned()
}
