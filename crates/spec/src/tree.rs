//! The text as a tree with places: YAML 1.2 by the core schema, JSON as the part of YAML that it is.
//!
//! Aliases are put in by value and within bounds; merge keys and custom tags are refused. The tree knows
//! nothing of workflows. What is wrong locally becomes [`Data::Bad`], which nobody complains about again.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use wonder_core::value::{Map as ValueMap, Value};

use crate::codes;
use crate::diagnostics::{Diagnostic, PROBLEMS_MAX};
use crate::place::{Marks, Span, join_surrogates};
use crate::scalar::{Plain, plain};
use crate::syntax;

/// The largest file that is read.
pub const FILE_BYTES_MAX: usize = 32 << 20;
/// How deeply lists and maps may nest.
pub const DEPTH_MAX: usize = 64;
/// How many values a file may have.
pub const NODES_MAX: usize = 5_000_000;
/// How many of them may come out of anchors and aliases; 32 bytes of text count as one more.
pub const COPIES_MAX: usize = 1_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Node<'s> {
    pub data: Data<'s>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Data<'s> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'s, str>),
    List(Vec<Node<'s>>),
    Map(Entries<'s>),
    /// Something that has been complained about.
    Bad,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Entries<'s> {
    pub list: Vec<Entry<'s>>,
    /// Some keys could not be read, so nothing can be said to be missing.
    pub partial: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<'s> {
    pub key: Cow<'s, str>,
    pub key_span: Span,
    pub value: Node<'s>,
}

impl<'s> Node<'s> {
    pub(crate) fn entries(&self) -> &[Entry<'s>] {
        match &self.data {
            Data::Map(entries) => &entries.list,
            _ => &[],
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry<'s>> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node<'s>> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn items(&self) -> &[Node<'s>] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_bad(&self) -> bool {
        matches!(self.data, Data::Bad)
    }

    /// As the JSON value it is.
    pub(crate) fn value(&self) -> Value {
        match &self.data {
            Data::Null | Data::Bad => Value::Null,
            Data::Bool(flag) => Value::Bool(*flag),
            Data::Int(number) => Value::Int(*number),
            Data::Float(number) => Value::Float(*number),
            Data::Text(text) => Value::str(&**text),
            Data::List(items) => Value::list(items.iter().map(Node::value)),
            Data::Map(entries) => {
                let entries = entries.list.iter();
                Value::from(entries.map(|e| (e.key.as_ref().into(), e.value.value())).collect::<ValueMap>())
            }
        }
    }

    /// What a person would call it.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "nothing",
            Data::Bool(_) => "a boolean",
            Data::Int(_) | Data::Float(_) => "a number",
            Data::Text(_) => "a text",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
            Data::Bad => "something unreadable",
        }
    }

    /// What copying it costs.
    fn weight(&self) -> usize {
        let text = |text: &str| 1 + text.len() / 32;
        match &self.data {
            Data::Text(own) => text(own),
            Data::List(items) => items.iter().fold(1, |sum, item| sum + item.weight()),
            Data::Map(entries) => {
                entries.list.iter().fold(1, |sum, entry| sum + text(&entry.key) + entry.value.weight())
            }
            _ => 1,
        }
    }
}

/// The documents of a file, and what is wrong with the text of it.
pub(crate) struct Forest<'s> {
    pub documents: Vec<Node<'s>>,
    pub problems: Vec<Diagnostic>,
    /// The rest of the text could not be read.
    pub stopped: bool,
}

/// The text to hand to [`parse`]: as it is, or with surrogate pairs joined if it is JSON.
pub(crate) fn prepare(source: &str) -> Cow<'_, str> {
    let json = source.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    match json.then(|| join_surrogates(source)).flatten() {
        Some(joined) => Cow::Owned(joined),
        None => Cow::Borrowed(source),
    }
}

/// Reads all documents. `prepared` is what [`prepare`] made of `source`; spans are of `source`.
pub(crate) fn parse<'s>(source: &'s str, prepared: &'s str) -> Forest<'s> {
    let marks = Marks::new(source, prepared.len() != source.len());
    let mut builder = Builder {
        source,
        marks,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        copies: 0,
        forest: Forest { documents: Vec::new(), problems: Vec::new(), stopped: false },
    };
    if let Err(Stop(problem)) = builder.run(prepared) {
        // After a template without quotes the parser stumbles over the rest of the line: one mistake.
        let stumbled =
            builder.forest.problems.last().is_some_and(|last| syntax::same_line(source, last, &problem));
        builder.forest.stopped = true;
        if !stumbled {
            builder.forest.problems.push(*problem);
        }
    }
    builder.forest
}

/// Reading cannot go on.
struct Stop(Box<Diagnostic>);

fn stop(problem: Diagnostic) -> Stop {
    Stop(Box::new(problem))
}

struct Builder<'s> {
    source: &'s str,
    marks: Marks<'s>,
    open: Vec<Open<'s>>,
    anchors: HashMap<usize, Node<'s>>,
    nodes: usize,
    copies: usize,
    forest: Forest<'s>,
}

/// A list or map whose end has not come yet.
struct Open<'s> {
    start: usize,
    anchor: usize,
    data: OpenData<'s>,
}

enum OpenData<'s> {
    List(Vec<Node<'s>>),
    Map { entries: Entries<'s>, key: Key<'s>, bad: bool },
}

enum Key<'s> {
    Awaited,
    Read(Cow<'s, str>, Span),
    /// Refused: its value is read and dropped.
    Refused,
}

impl<'s> Builder<'s> {
    fn run(&mut self, prepared: &'s str) -> Result<(), Stop> {
        if let Some(at) = self.source.find('\0') {
            let span = Span::new(at, at + 1);
            return Err(stop(
                Diagnostic::error(codes::SYNTAX, span, "the file holds a NUL character").label("here"),
            ));
        }
        let mut parser = Parser::new_from_str(prepared);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| self.syntax(&error))?;
            self.patience()?;
            let (start, end) = (self.marks.byte(span.start.index()), self.marks.byte(span.end.index()));
            match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let span = self.trimmed(start, end);
                    self.scalar(text, style, tag.as_deref(), span, anchor)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    self.collection_tag(tag.as_deref(), "seq", start);
                    self.open(start, anchor, OpenData::List(Vec::new()))?;
                }
                Event::MappingStart(anchor, tag) => {
                    self.collection_tag(tag.as_deref(), "map", start);
                    let data = OpenData::Map { entries: Entries::default(), key: Key::Awaited, bad: false };
                    self.open(start, anchor, data)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(end)?,
                Event::Alias(anchor) => self.alias(anchor, Span::new(start, end))?,
                Event::DocumentEnd => self.anchors.clear(),
                _ => {}
            }
        }
        Ok(())
    }

    /// A text with so many problems is probably no workflow at all.
    fn patience(&self) -> Result<(), Stop> {
        let Some(last) = self.forest.problems.get(PROBLEMS_MAX) else { return Ok(()) };
        let span = last.span.unwrap_or_default();
        let message = format!("the file has more than {PROBLEMS_MAX} problems");
        Err(stop(Diagnostic::error(codes::SYNTAX, span, message).label("reading stopped here")))
    }

    fn syntax(&self, error: &ScanError) -> Stop {
        stop(syntax::explain(self.source, self.marks.byte(error.marker().index()), error.info()))
    }

    /// A span without the blanks and line ends that the parser may count in.
    fn trimmed(&self, start: usize, end: usize) -> Span {
        let text = self.source.get(start..end).unwrap_or("");
        Span::new(start, start + text.trim_end().len())
    }

    fn count(&mut self, span: Span) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes <= NODES_MAX {
            return Ok(());
        }
        let message = format!("the file has more than {NODES_MAX} values");
        Err(stop(Diagnostic::error(codes::TOO_MANY_NODES, span, message).label("reading stopped here")))
    }

    fn open(&mut self, start: usize, anchor: usize, data: OpenData<'s>) -> Result<(), Stop> {
        let span = Span::new(start, start + 1);
        self.count(span)?;
        if self.open.len() >= DEPTH_MAX {
            let message = format!("lists and maps nest more than {DEPTH_MAX} deep");
            let problem = Diagnostic::error(codes::TOO_DEEP, span, message);
            return Err(stop(problem.label(format!("this is level {}", DEPTH_MAX + 1))));
        }
        self.open.push(Open { start, anchor, data });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), Stop> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let span = self.trimmed(open.start, end);
        let data = match open.data {
            OpenData::List(items) => Data::List(items),
            OpenData::Map { bad: true, .. } => Data::Bad,
            OpenData::Map { mut entries, .. } => {
                self.duplicates(&mut entries);
                Data::Map(entries)
            }
        };
        self.finish(Node { data, span }, open.anchor)
    }

    /// A complete value: remembers it under its anchor and puts it where it belongs.
    fn finish(&mut self, node: Node<'s>, anchor: usize) -> Result<(), Stop> {
        if anchor > 0 {
            self.copied(&node, node.span)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.put(node);
        Ok(())
    }

    fn copied(&mut self, node: &Node<'s>, span: Span) -> Result<(), Stop> {
        self.copies = self.copies.saturating_add(node.weight());
        if self.copies <= COPIES_MAX {
            return Ok(());
        }
        let message = "anchors and aliases unfold to more than a million values";
        Err(stop(
            Diagnostic::error(codes::TOO_MANY_NODES, span, message).label("the bound is passed here").help(
                "an alias is read as a copy of what it names; write the parts as tasks or nodes instead",
            ),
        ))
    }

    fn put(&mut self, node: Node<'s>) {
        let Some(open) = self.open.last_mut() else {
            self.forest.documents.push(node);
            return;
        };
        match &mut open.data {
            OpenData::List(items) => items.push(node),
            OpenData::Map { entries, key, bad } => match std::mem::replace(key, Key::Awaited) {
                Key::Read(name, key_span) => entries.list.push(Entry { key: name, key_span, value: node }),
                Key::Refused => entries.partial = true,
                Key::Awaited => {
                    let outer = Span::new(open.start, node.span.end as usize);
                    *key = Key::Refused;
                    *bad = true;
                    if !node.is_bad() {
                        self.forest.problems.push(syntax::key_is_no_text(self.source, outer, &node));
                    }
                }
            },
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { data: OpenData::Map { key: Key::Awaited, .. }, .. }))
    }

    fn set_key(&mut self, read: Key<'s>) {
        if let Some(Open { data: OpenData::Map { key, .. }, .. }) = self.open.last_mut() {
            *key = read;
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'s, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
        anchor: usize,
    ) -> Result<(), Stop> {
        self.count(span)?;
        if !self.awaits_key() {
            let data = self.resolve(text, style, tag, span);
            return self.finish(Node { data, span }, anchor);
        }
        if text == "<<" && style == ScalarStyle::Plain {
            self.forest.problems.push(syntax::merge_key(span));
            self.set_key(Key::Refused);
            return Ok(());
        }
        if anchor > 0 {
            self.anchors.insert(anchor, Node { data: Data::Text(text.clone()), span });
        }
        self.set_key(Key::Read(text, span));
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let message = "an alias cannot stand inside what it names";
            let problem =
                Diagnostic::error(codes::SYNTAX, span, message).label("names a list or map around it");
            return Err(stop(problem));
        };
        self.copied(&node, span)?;
        if let Some(depth) = too_deep(&node, DEPTH_MAX - self.open.len()) {
            let message = format!("lists and maps nest more than {DEPTH_MAX} deep");
            let label = format!("the alias brings {depth} levels to here");
            return Err(stop(Diagnostic::error(codes::TOO_DEEP, span, message).label(label)));
        }
        match node.data {
            Data::Text(text) if self.awaits_key() => self.set_key(Key::Read(text, span)),
            data => self.put(Node { data, span: node.span }),
        }
        Ok(())
    }

    fn resolve(&mut self, text: Cow<'s, str>, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Data<'s> {
        let known = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
        let read = match (known, tag) {
            (Some("str"), _) => return Data::Text(text),
            (Some("null" | "bool" | "int" | "float"), _) => plain(&text),
            (_, Some(tag)) if !is_non_specific(tag) => {
                self.forest.problems.push(syntax::tag(span, tag));
                return Data::Bad;
            }
            (_, None) if style == ScalarStyle::Plain => plain(&text),
            _ => Plain::Word,
        };
        match read {
            Plain::Null => Data::Null,
            Plain::Bool(flag) => Data::Bool(flag),
            Plain::Int(number) => Data::Int(number),
            Plain::Float(number) if number.is_finite() => Data::Float(number),
            Plain::Float(_) => {
                let message = format!("`{text}` is a number that JSON cannot say");
                let problem =
                    Diagnostic::error(codes::NOT_JSON, span, message).label("expected a finite number");
                self.forest.problems.push(problem.help("if a text is meant, put it in quotes"));
                Data::Bad
            }
            Plain::TooLarge => match text.parse() {
                Ok(number) if known == Some("float") => Data::Float(number),
                _ => {
                    self.forest.problems.push(syntax::too_large(span, &text));
                    Data::Bad
                }
            },
            Plain::Word => Data::Text(text),
        }
    }

    fn collection_tag(&mut self, tag: Option<&Tag>, own: &str, start: usize) {
        let Some(tag) = tag else { return };
        let known = is_non_specific(tag) || (tag.is_yaml_core_schema() && tag.suffix == own);
        if !known {
            self.forest.problems.push(syntax::tag(Span::new(start, start + 1), tag));
        }
    }

    /// Drops every entry whose key came before, and says so.
    fn duplicates(&mut self, entries: &mut Entries<'s>) {
        let list = &entries.list;
        let again: Vec<(usize, usize)> = if list.len() <= 16 {
            let earlier = |at: usize| (0..at).find(|first| list[*first].key == list[at].key);
            (1..list.len()).filter_map(|at| Some((earlier(at)?, at))).collect()
        } else {
            let mut seen: HashMap<&str, usize> = HashMap::with_capacity(list.len());
            let mut earlier = |at: usize| {
                let first = *seen.entry(&list[at].key).or_insert(at);
                (first != at).then_some((first, at))
            };
            (0..list.len()).filter_map(&mut earlier).collect()
        };
        for (first, at) in &again {
            self.forest.problems.push(syntax::duplicate_key(&list[*first], &list[*at]));
        }
        let mut again = again.iter().map(|(_, at)| *at).peekable();
        let mut at = 0;
        entries.list.retain(|_| {
            at += 1;
            again.next_if_eq(&(at - 1)).is_none()
        });
    }
}

/// `!`: "by its form", which is what we do anyway.
fn is_non_specific(tag: &Tag) -> bool {
    tag.handle.is_empty() && tag.suffix == "!"
}

/// How deep the node nests, if deeper than `left`.
fn too_deep(node: &Node<'_>, left: usize) -> Option<usize> {
    fn depth(node: &Node<'_>) -> usize {
        match &node.data {
            Data::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Data::Map(entries) => 1 + entries.list.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
            _ => 0,
        }
    }
    let depth = depth(node);
    (depth > left).then_some(depth)
}
