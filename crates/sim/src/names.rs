//! What people call the tokens of a run: `judge#3[1]` is token 3, at node `judge`, in branch 1. Learnt from
//! the events alone, as anyone who reads a log would.

use std::collections::BTreeMap;

use wonder_core::def::Name;
use wonder_core::event::{BranchRef, EventKind, GateId, GroupId, NewGroup, NewToken, TokenId};
use wonder_core::value::Value;

#[derive(Clone, Debug, Default)]
pub struct Names {
    tokens: BTreeMap<TokenId, TokenName>,
    groups: BTreeMap<GroupId, GroupName>,
    gates: BTreeMap<GateId, Option<TokenId>>,
}

#[derive(Clone, Debug)]
pub struct TokenName {
    pub node: Name,
    /// Branch numbers, outermost first.
    pub path: Vec<u32>,
    /// The innermost branch's item, null if the group has none.
    pub item: Value,
    /// `judge#3[1]`.
    pub label: String,
}

#[derive(Clone, Debug)]
struct GroupName {
    path: Vec<u32>,
    items: Value,
}

impl Names {
    pub fn learn(&mut self, event: &EventKind) {
        match event {
            EventKind::TokenCreated(NewToken { token, node, branch, .. }) => {
                let (path, item) = branch.map(|at| self.branch(at)).unwrap_or_default();
                let label = format!("{node}#{token}{}", bracketed(&path));
                self.tokens.insert(*token, TokenName { node: node.clone(), path, item, label });
            }
            EventKind::FanOut(NewGroup { group, outer, items, .. }) => {
                let path = outer.map(|at| self.branch(at).0).unwrap_or_default();
                self.groups.insert(*group, GroupName { path, items: items.clone() });
            }
            EventKind::GateOpened { gate, token, .. } => {
                self.gates.insert(*gate, *token);
            }
            _ => {}
        }
    }

    fn branch(&self, at: BranchRef) -> (Vec<u32>, Value) {
        let Some(group) = self.groups.get(&at.group) else { return (vec![at.branch], Value::Null) };
        let mut path = group.path.clone();
        path.push(at.branch);
        let items = group.items.as_list().unwrap_or_default();
        (path, items.get(at.branch as usize).cloned().unwrap_or_default())
    }

    pub fn get(&self, token: TokenId) -> Option<&TokenName> {
        self.tokens.get(&token)
    }

    /// The node of every token, in order of tokens.
    pub fn nodes(&self) -> impl Iterator<Item = &Name> {
        self.tokens.values().map(|name| &name.node)
    }

    pub fn label(&self, token: TokenId) -> String {
        self.get(token).map_or_else(|| format!("?#{token}"), |name| name.label.clone())
    }

    /// The node whose gate this is; nothing for a gate of the run itself.
    pub fn gate_node(&self, gate: GateId) -> Option<&TokenName> {
        self.get(self.gate_token(gate)?)
    }

    /// The token that a gate asks for; nothing for a gate of the run itself.
    pub fn gate_token(&self, gate: GateId) -> Option<TokenId> {
        *self.gates.get(&gate)?
    }
}

fn bracketed(path: &[u32]) -> String {
    match path {
        [] => String::new(),
        path => format!("[{}]", path.iter().map(u32::to_string).collect::<Vec<_>>().join(".")),
    }
}
