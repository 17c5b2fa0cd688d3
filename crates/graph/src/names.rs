//! What people call a node. A dag's `foreach` is three nodes of the graph and one of the file.

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
