//! What an expression of a template gives: a value of the scope as it is, or what the rendering made of it.
//!
//! What is made knows how deep it nests and never holds a namespace or a loop: no value is deeper than the stack
//! allows, none contains itself.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::budget::{Budget, Evaluated, VALUE_DEPTH_MAX, fail};
use super::functions::Function;
use super::node::{For, Node};
use crate::value::Value;

pub(super) type Entries<'t> = BTreeMap<Arc<str>, Val<'t>>;

#[derive(Clone)]
pub(super) enum Val<'t> {
    /// What is not there, with the path that was asked for if it has one. To use it is an error.
    Undefined(Option<&'t Node>),
    /// The missing `else` of an inline `if`: written as nothing.
    Nothing,
    Data(Value),
    /// A text that `escape` leaves as it is.
    Safe(Arc<str>),
    List(Rc<List<'t>>),
    Map(Rc<Map<'t>>),
    Range(Range),
    Namespace(Rc<RefCell<Entries<'t>>>),
    Loop(Rc<Loop<'t>>),
    Function(Function),
}

pub(super) struct List<'t> {
    pub(super) items: Vec<Val<'t>>,
    pub(super) kind: ListKind,
    depth: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ListKind {
    List,
    Tuple,
    /// What `groupby` gives: a tuple whose parts also go by `grouper` and `list`.
    Group,
}

pub(super) struct Map<'t> {
    pub(super) entries: Entries<'t>,
    depth: usize,
}

/// Numbers that are counted, not kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) len: usize,
}

pub(super) struct Loop<'t> {
    pub(super) of: &'t For,
    pub(super) items: Seq<'t>,
    pub(super) at: Cell<usize>,
    pub(super) depth: usize,
    /// What `loop.changed` was told last.
    pub(super) changed: RefCell<Option<Val<'t>>>,
}

/// Items in order, wherever they are.
pub(super) enum Seq<'t> {
    Data(Arc<Vec<Value>>),
    Made(Rc<List<'t>>),
    Range(Range),
}

impl<'t> Val<'t> {
    pub(super) fn str(text: &str) -> Val<'t> {
        Val::Data(Value::str(text))
    }

    pub(super) fn int(number: usize) -> Val<'t> {
        Val::Data(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    pub(super) fn bool(flag: bool) -> Val<'t> {
        Val::Data(Value::Bool(flag))
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Val::Data(Value::String(text)) | Val::Safe(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number, also where it is written as a double or a boolean.
    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Val::Data(Value::Int(number)) => Some(*number),
            Val::Data(Value::Bool(flag)) => Some(i64::from(*flag)),
            Val::Data(Value::Float(number)) if *number as i64 as f64 == *number => Some(*number as i64),
            _ => None,
        }
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self, Val::Undefined(_) | Val::Nothing)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Val::Data(Value::Null))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Val::Data(Value::List(_)) | Val::List(_) | Val::Range(_))
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Val::Data(Value::Map(_)) | Val::Map(_) | Val::Namespace(_) | Val::Loop(_))
    }

    pub(super) fn is_tuple(&self) -> bool {
        matches!(self, Val::List(list) if list.kind == ListKind::Tuple)
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Undefined(_) | Val::Nothing => "undefined",
            Val::Data(value) => value.type_name(),
            Val::Safe(_) => "string",
            Val::List(_) | Val::Range(_) => "list",
            Val::Map(_) => "map",
            Val::Namespace(_) => "namespace",
            Val::Loop(_) => "loop",
            Val::Function(_) => "function",
        }
    }

    /// That it is there; what is not is named.
    pub(super) fn defined(&self) -> Evaluated<()> {
        match self {
            Val::Undefined(Some(node)) => fail(format!("`{node}` is undefined")),
            Val::Undefined(None) => fail("the value is undefined"),
            _ => Ok(()),
        }
    }

    /// Whether it counts as true, wherever it comes from: not empty, not 0, not null, there at all.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Val::Undefined(_) | Val::Nothing | Val::Data(Value::Null) => false,
            Val::Data(Value::Bool(flag)) => *flag,
            Val::Data(Value::Int(number)) => *number != 0,
            Val::Data(Value::Float(number)) => *number != 0.0,
            Val::Data(Value::String(text)) | Val::Safe(text) => !text.is_empty(),
            Val::Data(Value::List(items)) => !items.is_empty(),
            Val::Data(Value::Map(map)) => !map.is_empty(),
            Val::List(list) => !list.items.is_empty(),
            Val::Map(map) => !map.entries.is_empty(),
            Val::Range(range) => range.len > 0,
            Val::Namespace(entries) => !entries.borrow().is_empty(),
            Val::Loop(_) | Val::Function(_) => true,
        }
    }

    /// What stands under a key of a map, if this is one that has it.
    pub(super) fn attr(&self, key: &str) -> Option<Val<'t>> {
        match self {
            Val::Data(value) => value.get(key).cloned().map(Val::Data),
            Val::Map(map) => map.entries.get(key).cloned(),
            Val::Namespace(entries) => entries.borrow().get(key).cloned(),
            Val::Loop(of) => of.attr(key),
            Val::List(list) if list.kind == ListKind::Group => match key {
                "grouper" => list.items.first().cloned(),
                "list" => list.items.get(1).cloned(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The items of a list; None if it is none.
    pub(super) fn list(&self) -> Option<Seq<'t>> {
        match self {
            Val::Data(Value::List(items)) => Some(Seq::Data(items.clone())),
            Val::List(list) => Some(Seq::Made(list.clone())),
            Val::Range(range) => Some(Seq::Range(*range)),
            _ => None,
        }
    }

    /// How many keys it has, if it is a map.
    pub(super) fn map_len(&self) -> Option<usize> {
        match self {
            Val::Data(Value::Map(map)) => Some(map.len()),
            Val::Map(map) => Some(map.entries.len()),
            Val::Namespace(entries) => Some(entries.borrow().len()),
            _ => None,
        }
    }

    /// The entries of a map, by key; none if it is no map.
    pub(super) fn pairs(&self, budget: &mut Budget) -> Evaluated<Vec<(Arc<str>, Val<'t>)>> {
        budget.steps(self.map_len().unwrap_or(0))?;
        let made = |(key, value): (&Arc<str>, &Val<'t>)| (key.clone(), value.clone());
        Ok(match self {
            Val::Data(Value::Map(map)) => {
                map.iter().map(|(key, value)| (key.clone(), Val::Data(value.clone()))).collect()
            }
            Val::Map(map) => map.entries.iter().map(made).collect(),
            Val::Namespace(entries) => entries.borrow().iter().map(made).collect(),
            _ => Vec::new(),
        })
    }

    fn depth(&self) -> usize {
        match self {
            Val::List(list) => list.depth,
            Val::Map(map) => map.depth,
            _ => 0,
        }
    }
}

impl<'t> Seq<'t> {
    pub(super) fn len(&self) -> usize {
        match self {
            Seq::Data(items) => items.len(),
            Seq::Made(list) => list.items.len(),
            Seq::Range(range) => range.len,
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<Val<'t>> {
        match self {
            Seq::Data(items) => items.get(at).cloned().map(Val::Data),
            Seq::Made(list) => list.items.get(at).cloned(),
            Seq::Range(range) => range.get(at),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Val<'t>> + ExactSizeIterator {
        (0..self.len()).map(|at| self.get(at).unwrap_or(Val::Nothing))
    }
}

impl Range {
    pub(super) fn get<'t>(&self, at: usize) -> Option<Val<'t>> {
        let at = i64::try_from(at).ok().filter(|_| at < self.len)?;
        Some(Val::Data(Value::Int(self.start + at * self.step)))
    }
}

impl<'t> Loop<'t> {
    fn attr(&self, key: &str) -> Option<Val<'t>> {
        let (at, len) = (self.at.get(), self.items.len());
        Some(match key {
            "index" => Val::int(at + 1),
            "index0" => Val::int(at),
            "revindex" => Val::int(len.saturating_sub(at)),
            "revindex0" => Val::int(len.saturating_sub(at + 1)),
            "length" => Val::int(len),
            "first" => Val::bool(at == 0),
            "last" => Val::bool(at + 1 >= len),
            "depth" => Val::int(self.depth + 1),
            "depth0" => Val::int(self.depth),
            "previtem" => at.checked_sub(1).and_then(|at| self.items.get(at)).unwrap_or(Val::Undefined(None)),
            "nextitem" => self.items.get(at + 1).unwrap_or(Val::Undefined(None)),
            _ => return None,
        })
    }
}

/// A list in the making: each item is paid for before it is kept.
#[derive(Default)]
pub(super) struct ListOf<'t> {
    items: Vec<Val<'t>>,
    depth: usize,
}

impl<'t> ListOf<'t> {
    pub(super) fn push(&mut self, budget: &mut Budget, item: Val<'t>) -> Evaluated<()> {
        budget.item()?;
        self.depth = self.depth.max(depth_inside(&item)?);
        self.items.push(item);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn done(self, budget: &mut Budget) -> Evaluated<Val<'t>> {
        self.done_as(budget, ListKind::List)
    }

    pub(super) fn done_as(self, budget: &mut Budget, kind: ListKind) -> Evaluated<Val<'t>> {
        budget.container()?;
        Ok(Val::List(Rc::new(List { items: self.items, kind, depth: self.depth })))
    }
}

/// A map in the making, paid for in the same way.
#[derive(Default)]
pub(super) struct MapOf<'t> {
    entries: Entries<'t>,
    depth: usize,
}

impl<'t> MapOf<'t> {
    pub(super) fn insert(&mut self, budget: &mut Budget, key: Arc<str>, value: Val<'t>) -> Evaluated<()> {
        budget.entry()?;
        budget.lookup(&key)?;
        self.depth = self.depth.max(depth_inside(&value)?);
        self.entries.insert(key, value);
        Ok(())
    }

    pub(super) fn done(self, budget: &mut Budget) -> Evaluated<Val<'t>> {
        budget.container()?;
        Ok(Val::Map(Rc::new(Map { entries: self.entries, depth: self.depth })))
    }

    pub(super) fn into_entries(self) -> Entries<'t> {
        self.entries
    }
}

/// How deep something is that holds this value.
pub(super) fn depth_inside(value: &Val<'_>) -> Evaluated<usize> {
    match value {
        Val::Namespace(_) | Val::Loop(_) | Val::Function(_) => {
            fail(format!("a {} cannot be kept in a list, a map or a namespace", value.type_name()))
        }
        value if value.depth() >= VALUE_DEPTH_MAX => {
            fail(format!("lists and maps that a template makes nest at most {VALUE_DEPTH_MAX} deep"))
        }
        value => Ok(value.depth() + 1),
    }
}

/// A text in quotes, as it is shown inside a list.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.0.contains('\'') && !self.0.contains('"') { '"' } else { '\'' };
        let mut plain = 0;
        write!(f, "{quote}")?;
        for (at, c) in self.0.char_indices() {
            if c != quote && c != '\\' && !c.is_control() {
                continue;
            }
            f.write_str(&self.0[plain..at])?;
            plain = at + c.len_utf8();
            match (c, u32::from(c)) {
                ('\n', _) => f.write_str("\\n")?,
                ('\r', _) => f.write_str("\\r")?,
                ('\t', _) => f.write_str("\\t")?,
                (c, _) if !c.is_control() => write!(f, "\\{c}")?,
                (_, code @ ..=0xff) => write!(f, "\\x{code:02x}")?,
                (_, code) => write!(f, "\\u{code:04x}")?,
            }
        }
        write!(f, "{}{quote}", &self.0[plain..])
    }
}
