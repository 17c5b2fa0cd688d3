//! Scenario files as a tree that knows its lines, so that a mistake can be pointed at and a trace can be
//! rewritten in place. YAML 1.2 by the core schema; aliases and tags have no use here and are refused.

use std::fmt;

use saphyr_parser::{Event, Parser, ScalarStyle};
use wonder_core::time::parse_duration_ms;
use wonder_core::value::Value;

/// Where something stands: line and column, both from 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Mark {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub mark: Mark,
    pub data: Data,
}

#[derive(Clone, Debug)]
pub enum Data {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub mark: Mark,
    pub value: Node,
}

/// What is wrong with a scenario file, and where.
#[derive(Clone, Debug)]
pub struct Mistake {
    pub mark: Mark,
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.mark.line + 1, self.mark.column + 1, self.message)
    }
}

pub type Read<T> = Result<T, Mistake>;

enum Open {
    List(Mark, Vec<Node>),
    Map(Mark, Vec<Entry>, Option<(String, Mark)>),
}

/// The one document of a file.
pub fn parse(text: &str) -> Read<Node> {
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| {
            let mark = Mark { line: error.marker().line().saturating_sub(1), column: error.marker().col() };
            Mistake { mark, message: error.info().to_owned() }
        })?;
        let mark = Mark { line: span.start.line().saturating_sub(1), column: span.start.col() };
        let complete = match event {
            Event::SequenceStart(..) => {
                open.push(Open::List(mark, Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(mark, Vec::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(close),
            Event::Scalar(text, style, ..) => match open.last_mut() {
                Some(Open::Map(_, _, key @ None)) => {
                    *key = Some((text.into_owned(), mark));
                    None
                }
                _ => Some(Node { mark, data: Data::Scalar(scalar(&text, style)) }),
            },
            Event::Alias(_) => return Err(mark.mistake("aliases are not read here")),
            _ => None,
        };
        if let Some(node) = complete {
            put(&mut open, &mut root, node)?;
        }
    }
    root.ok_or_else(|| Mark::default().mistake("the file is empty"))
}

fn close(open: Open) -> Node {
    match open {
        Open::List(mark, items) => Node { mark, data: Data::List(items) },
        Open::Map(mark, entries, _) => Node { mark, data: Data::Map(entries) },
    }
}

fn put(open: &mut [Open], root: &mut Option<Node>, node: Node) -> Read<()> {
    match open.last_mut() {
        None if root.is_some() => return Err(node.mark.mistake("one document a file")),
        None => *root = Some(node),
        Some(Open::List(_, items)) => items.push(node),
        Some(Open::Map(_, entries, key)) => {
            let Some((key, mark)) = key.take() else { return Err(node.mark.mistake("a key is a text")) };
            if entries.iter().any(|entry| entry.key == key) {
                return Err(mark.mistake(format!("`{key}` is written twice")));
            }
            entries.push(Entry { key, mark, value: node });
        }
    }
    Ok(())
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::str(text);
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => Value::str(text),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) if number.is_finite() => Value::Float(number),
            _ => Value::str(text),
        },
    }
}

impl Mark {
    pub fn mistake(self, message: impl Into<String>) -> Mistake {
        Mistake { mark: self, message: message.into() }
    }
}

impl Node {
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entries of a map whose keys are all among `known`.
    pub fn map(&self, known: &[&str]) -> Read<&[Entry]> {
        let entries = self.entries()?;
        match entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            Some(entry) => Err(entry.mark.mistake(format!(
                "unknown key `{}`; known are {}",
                entry.key,
                known.join(", ")
            ))),
            None => Ok(entries),
        }
    }

    pub fn entries(&self) -> Read<&[Entry]> {
        match &self.data {
            Data::Map(entries) => Ok(entries),
            _ => Err(self.mark.mistake("expected a map")),
        }
    }

    /// The items of a list; what is no list is a list of one.
    pub fn items(&self) -> Vec<&Node> {
        match &self.data {
            Data::List(items) => items.iter().collect(),
            _ => vec![self],
        }
    }

    pub fn value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(items) => Value::list(items.iter().map(Node::value)),
            Data::Map(entries) => Value::map(entries.iter().map(|e| (e.key.as_str(), e.value.value()))),
        }
    }

    pub fn text(&self) -> Read<String> {
        match &self.data {
            Data::Scalar(Value::String(text)) => Ok(text.to_string()),
            Data::Scalar(value @ (Value::Int(_) | Value::Float(_))) => Ok(value.to_string()),
            _ => Err(self.mark.mistake("expected a text")),
        }
    }

    pub fn flag(&self) -> Read<bool> {
        self.value().as_bool().ok_or_else(|| self.mark.mistake("expected true or false"))
    }

    pub fn number(&self) -> Read<u64> {
        let number = self.value().as_i64().and_then(|n| u64::try_from(n).ok());
        number.ok_or_else(|| self.mark.mistake("expected a whole number"))
    }

    pub fn duration_ms(&self) -> Read<u64> {
        let text = self.text()?;
        parse_duration_ms(&text).ok_or_else(|| self.mark.mistake(format!("`{text}` is no duration")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_knows_its_lines_and_reads_the_core_schema() {
        let node = parse("a: 1\nb:\n  - {c: on, d: 2.5}\n  - |\n    text\n    more\n").unwrap();
        assert_eq!(node.value().to_string(), r#"{"a":1,"b":[{"c":"on","d":2.5},"text\nmore\n"]}"#);
        assert_eq!(node.entry("b").unwrap().mark, Mark { line: 1, column: 0 });
        assert_eq!(node.get("b").unwrap().items()[0].entry("d").unwrap().mark.line, 2);
        assert!(parse("a: 1\na: 2\n").unwrap_err().to_string().starts_with("2:1: `a` is written twice"));
        assert!(node.map(&["a"]).unwrap_err().message.contains("unknown key `b`"));
    }
}
