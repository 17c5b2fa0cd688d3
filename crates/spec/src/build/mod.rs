//! From a tree to definitions: every short form is expanded here, every layer filled in.
//!
//! Shapes have been checked before. Whatever does not fit is read as absent, or as something harmless, so
//! that the rest can still be checked; nothing is reported twice.

mod action;
mod agent;
mod document;
mod implementation;
mod node;
mod policy;
mod task;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use wonder_core::def::{ActionDef, Bound, Name, SchemaDef, Spot, TaskDef, Text, Tree, Write, Writes};

use crate::diagnostics::{Diagnostic, Source};
use crate::place::{Span, Spots};
use crate::scalar::{duration_ms, micros};
use crate::tree::{Data, Entry, Node};

pub(crate) use document::{Built, DocumentKind, Parts};

/// `workflow_call: {file: …}`: the file, and which of its workflows if not the first.
#[derive(Clone, Debug)]
pub(crate) struct FileCall {
    pub path: Text,
    pub workflow: Option<Name>,
}

/// A definition that is named with a version: `summarise@3`.
#[derive(Clone, Debug)]
pub(crate) struct Versioned {
    pub kind: DocumentKind,
    pub name: Text,
    pub version: u32,
}

/// What reading collects.
pub(crate) struct Build {
    pub source: Arc<Source>,
    pub spots: Spots,
    pub problems: Vec<Diagnostic>,
    /// Where the reader found errors, sorted.
    errors: Vec<u32>,
    /// Spots of things with errors inside: what core says of their fields is a consequence.
    pub tainted: HashSet<Spot>,
    /// Where the `strategy` of a fan-in stands, by the spot of its `synchronization`.
    pub strategies: HashMap<Spot, Span>,
    /// Spots of actions whose time limit is written and cannot be read: that there is none is a consequence.
    pub untimed: HashSet<Spot>,
    /// Calls of workflows in other files, by the spot of what is called.
    pub file_calls: HashMap<Spot, FileCall>,
    /// Names that ask for a version.
    pub versioned: Vec<Versioned>,
    /// Names that `foreach` gives to items, wherever.
    pub item_names: HashSet<Name>,
    /// Tasks and actions written in place, under names that cannot be written.
    tasks: BTreeMap<Name, Arc<TaskDef>>,
    actions: BTreeMap<Name, Arc<ActionDef>>,
}

impl Build {
    pub(crate) fn new(source: Arc<Source>, found: &[Diagnostic]) -> Build {
        let mut errors: Vec<u32> = found.iter().filter_map(|problem| Some(problem.span?.start)).collect();
        errors.sort_unstable();
        Build {
            source,
            spots: Spots::new(),
            problems: Vec::new(),
            errors,
            tainted: HashSet::new(),
            strategies: HashMap::new(),
            untimed: HashSet::new(),
            file_calls: HashMap::new(),
            versioned: Vec::new(),
            item_names: HashSet::new(),
            tasks: BTreeMap::new(),
            actions: BTreeMap::new(),
        }
    }

    /// Marks a spot as one whose insides the reader has complained about, if it has.
    fn taint(&mut self, spot: Spot, inside: Span) {
        let at = self.errors.partition_point(|start| *start < inside.start);
        if self.errors.get(at).is_some_and(|start| *start <= inside.end) {
            self.tainted.insert(spot);
        }
    }

    /// A scalar as the text it was written as.
    fn scalar<'n>(&self, node: &'n Node<'_>) -> Option<Cow<'n, str>> {
        match &node.data {
            Data::Text(text) => Some(Cow::Borrowed(text)),
            Data::Bool(_) | Data::Int(_) | Data::Float(_) => {
                Some(Cow::Owned(node.span.of(&self.source.text).to_owned()))
            }
            _ => None,
        }
    }

    fn text_of(&mut self, node: &Node<'_>) -> Option<Text> {
        let text = self.scalar(node)?;
        Some(self.spots.text(&text, node.span))
    }

    fn text(&mut self, map: &Node<'_>, key: &str) -> Option<Text> {
        self.text_of(map.get(key)?)
    }

    /// An absent text is an empty one: its absence has been reported.
    fn text_or_empty(&mut self, map: &Node<'_>, key: &str) -> Text {
        self.text(map, key).unwrap_or_default()
    }

    fn name(&self, map: &Node<'_>, key: &str) -> Option<Name> {
        Some(self.scalar(map.get(key)?)?.as_ref().into())
    }

    fn names(&self, map: &Node<'_>, key: &str) -> Vec<Name> {
        let Some(node) = map.get(key) else { return Vec::new() };
        one_or_list(node).iter().filter_map(|item| Some(self.scalar(item)?.as_ref().into())).collect()
    }

    fn texts(&mut self, map: &Node<'_>, key: &str) -> Vec<Text> {
        let Some(node) = map.get(key) else { return Vec::new() };
        one_or_list(node).iter().filter_map(|item| self.text_of(item)).collect()
    }

    /// The name of a definition without its version, and the version, which the reader will look for.
    fn name_at(&mut self, kind: DocumentKind, node: &Node<'_>) -> Option<(Text, Option<u32>)> {
        let written = node.text()?;
        let (name, version) = crate::check::split_version(written);
        let name = self.spots.text(name, node.span);
        let version = version.and_then(|version| version.parse().ok());
        self.version_of(kind, &name, version);
        Some((name, version))
    }

    fn version_of(&mut self, kind: DocumentKind, name: &Text, version: Option<u32>) {
        self.versioned.extend(version.map(|version| Versioned { kind, name: name.clone(), version }));
    }

    fn names_at(&mut self, kind: DocumentKind, map: &Node<'_>, key: &str) -> Vec<Text> {
        let Some(node) = map.get(key) else { return Vec::new() };
        one_or_list(node).iter().filter_map(|item| Some(self.name_at(kind, item)?.0)).collect()
    }

    /// Whether the reader has complained about the value of this key.
    fn is_wrong(&self, map: &Node<'_>, key: &str) -> bool {
        let found =
            map.entries().iter().find(|entry| entry.key == key || entry.key.strip_suffix("_ms") == Some(key));
        let Some(entry) = found else { return false };
        let at = self.errors.partition_point(|start| *start < entry.key_span.start);
        self.errors.get(at).is_some_and(|start| *start <= entry.value.span.end)
    }

    fn flag(&self, map: &Node<'_>, key: &str) -> bool {
        matches!(map.get(key).map(|node| &node.data), Some(Data::Bool(true)))
    }

    fn maybe_flag(&self, map: &Node<'_>, key: &str) -> Option<bool> {
        match map.get(key)?.data {
            Data::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    fn count<T: TryFrom<i64>>(&self, map: &Node<'_>, key: &str) -> Option<T> {
        match map.get(key)?.data {
            Data::Int(number) => number.try_into().ok(),
            _ => None,
        }
    }

    /// A count of which zero is an error that has been reported.
    fn positive(&self, map: &Node<'_>, key: &str) -> Option<u32> {
        self.count(map, key).filter(|count| *count > 0)
    }

    /// A count from 1, or an expression.
    fn bound(&mut self, map: &Node<'_>, key: &str) -> Option<Bound> {
        self.positive(map, key).map(Bound::Count).or_else(|| self.expression(map, key).map(Bound::Expr))
    }

    /// An expression where something else may stand as well: it is a text.
    fn expression(&mut self, map: &Node<'_>, key: &str) -> Option<Text> {
        let node = map.get(key).filter(|node| matches!(node.data, Data::Text(_)))?;
        self.text_of(node)
    }

    /// `key` as a duration, or `key_ms` as milliseconds.
    fn duration(&self, map: &Node<'_>, key: &str) -> Option<u64> {
        match map.get(key) {
            Some(node) => duration_ms(node.text()?),
            None => {
                let long = map.entries().iter().find(|entry| entry.key.strip_suffix("_ms") == Some(key))?;
                match long.value.data {
                    Data::Int(number) => number.try_into().ok(),
                    _ => None,
                }
            }
        }
    }

    fn money(&self, map: &Node<'_>, key: &str) -> Option<u64> {
        let node = map.get(key)?;
        matches!(node.data, Data::Int(_) | Data::Float(_))
            .then(|| micros(node.span.of(&self.source.text)).ok())?
    }

    /// One of a set of words, as the enum that it names.
    fn word<T: for<'de> Deserialize<'de>>(&self, map: &Node<'_>, key: &str) -> Option<T> {
        word(map.get(key)?.text()?)
    }

    fn schema(&mut self, map: &Node<'_>, key: &str) -> Option<SchemaDef> {
        let entry = map.entry(key)?;
        if !matches!(entry.value.data, Data::Map(_) | Data::Bool(_)) {
            return None;
        }
        Some(SchemaDef { doc: entry.value.value(), spot: self.spot_of(entry) })
    }

    /// Where to point for something as a whole: at it if it is on one line, at its key if not.
    fn spot_of(&mut self, entry: &Entry<'_>) -> Spot {
        let one_line = !entry.value.span.of(&self.source.text).contains('\n');
        self.spots.add(if one_line && !entry.value.span.is_empty() {
            entry.value.span
        } else {
            entry.key_span
        })
    }

    fn tree(&mut self, map: &Node<'_>, key: &str) -> Option<Tree> {
        map.get(key).filter(|node| !node.is_bad()).map(|node| self.tree_of(node))
    }

    /// A mapping that is always a map.
    fn mapping(&mut self, map: &Node<'_>, key: &str) -> Option<Tree> {
        map.get(key).filter(|node| matches!(node.data, Data::Map(_))).map(|node| self.tree_of(node))
    }

    /// A mapping: a map of expressions, or one expression that gives all of it.
    fn input_mapping(&mut self, map: &Node<'_>) -> Option<Tree> {
        let node = map.get("input_mapping")?;
        matches!(node.data, Data::Map(_) | Data::Text(_)).then(|| self.tree_of(node))
    }

    fn tree_of(&mut self, node: &Node<'_>) -> Tree {
        match &node.data {
            Data::Text(text) => Tree::Text(self.spots.text(text, node.span)),
            Data::List(items) => Tree::List(items.iter().map(|item| self.tree_of(item)).collect()),
            Data::Map(entries) => {
                let entries = entries.list.iter();
                Tree::Map(
                    entries.map(|entry| (entry.key.as_ref().into(), self.tree_of(&entry.value))).collect(),
                )
            }
            _ => Tree::Literal(node.value()),
        }
    }

    fn writes(&mut self, map: &Node<'_>, key: &str) -> Option<Writes> {
        let node = map.get(key).filter(|node| matches!(node.data, Data::Map(_)))?;
        let write = |entry: &Entry<'_>| {
            let to = self.spots.text(&entry.key, entry.key_span);
            Write { to, value: self.tree_of(&entry.value) }
        };
        Some(Writes(node.entries().iter().map(write).collect()))
    }
}

pub(crate) fn one_or_list<'n, 's>(node: &'n Node<'s>) -> &'n [Node<'s>] {
    match &node.data {
        Data::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

pub(crate) fn word<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    let deserializer: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(deserializer).ok()
}
