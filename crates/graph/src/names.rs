//! What people call a node. A dag's `foreach` is three nodes of the graph and one of the file; only this module
//! knows how the three are named.

use super::{Graph, Node, NodeIx};
use wonder_lang::def::Name;

impl Graph {
    /// The name that the file has for it: what is shown, and what an error says.
    pub fn written<'g>(&'g self, node: &'g Node) -> &'g Name {
        match node.unit.filter(|_| node.stands_for.is_none()) {
            Some(unit) => &self.unit(unit).reference,
            None => &node.reference,
        }
    }

    pub fn written_ref(&self, ix: NodeIx) -> &Name {
        self.written(self.node(ix))
    }
}

/// Which part of what an author calls a node a node of the graph is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DagPart {
    /// All of it, or what spreads the items of a `foreach`.
    Whole,
    Items,
    Gather,
}

const ITEMS: &str = "[]";
const GATHER: &str = "[=]";

/// The node in which the items of a `foreach` are worked on.
pub fn items_of(unit: &str) -> Name {
    format!("{unit}{ITEMS}").into()
}

/// The node that gathers their results.
pub fn gather_of(unit: &str) -> Name {
    format!("{unit}{GATHER}").into()
}

/// The name that the file has, and which part of it this is. In a graph every node is its own whole.
pub fn dag_part(reference: &str) -> (&str, DagPart) {
    if let Some(unit) = reference.strip_suffix(GATHER) {
        return (unit, DagPart::Gather);
    }
    match reference.strip_suffix(ITEMS) {
        Some(unit) => (unit, DagPart::Items),
        None => (reference, DagPart::Whole),
    }
}
