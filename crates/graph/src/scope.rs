//! What a text sees where it stands: the roots, the items of `foreach`, what a dag's node needs.

use std::collections::BTreeMap;

use super::flow::Flow;
use super::known::KnownRoots;
use super::shape::{Shape, Slot};
use wonder_lang::def::{Name, Tree};

pub(super) const INPUT: u16 = 1;
pub(super) const STATE: u16 = 1 << 1;
pub(super) const OUTPUT: u16 = 1 << 2;
pub(super) const RUN: u16 = 1 << 3;
pub(super) const LAST_ERROR: u16 = 1 << 4;
pub(super) const BRANCH: u16 = 1 << 5;
pub(super) const NEEDS: u16 = 1 << 6;
pub(super) const RESULT: u16 = 1 << 7;
pub(super) const ERROR: u16 = 1 << 8;
pub(super) const SECRET: u16 = 1 << 9;

/// Of the run, wherever it is.
pub(super) const OF_RUN: u16 = INPUT | STATE | OUTPUT | RUN | LAST_ERROR;
/// Of a task, in its steps.
pub(super) const OF_TASK: u16 = INPUT | STATE | OUTPUT | RESULT;

const ROOTS: [(u16, &str); 10] = [
    (INPUT, "input"),
    (STATE, "state"),
    (OUTPUT, "output"),
    (RESULT, "result"),
    (ERROR, "error"),
    (BRANCH, "_branch"),
    (NEEDS, "needs"),
    (RUN, "run"),
    (LAST_ERROR, "_last_error"),
    (SECRET, "secret"),
];

/// The names given by `foreach … as`, each with a bit. Beyond 63 they share the last one: then a name may
/// be taken for visible where it is not, and the run says so instead.
#[derive(Debug, Default)]
pub(super) struct Items(BTreeMap<Name, u64>);

impl Items {
    pub(super) fn add(&mut self, name: &Name) -> u64 {
        let next = 1u64 << self.0.len().min(63);
        *self.0.entry(name.clone()).or_insert(next)
    }

    pub(super) fn bit(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Which `needs.x` can be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum NeedsOf {
    #[default]
    Any,
    /// Sorted.
    These(Vec<Name>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) roots: u16,
    /// Bits of [`Items`].
    pub(super) items: u64,
    pub(super) needs: NeedsOf,
    /// Keys of a mapped input, which its texts see by themselves.
    pub(super) keys: Vec<Name>,
    /// The input is mapped by an expression: its keys are not known before the run.
    pub(super) anything: bool,
    /// What is known of the roots before the run; only checks ask.
    pub(super) known: KnownRoots,
}

impl Scope {
    pub(super) fn of(roots: u16) -> Scope {
        Scope { roots, ..Scope::default() }
    }

    pub(super) fn with(&self, roots: u16) -> Scope {
        Scope { roots: self.roots | roots, ..self.clone() }
    }

    pub(super) fn knowing(self, known: KnownRoots) -> Scope {
        Scope { known, ..self }
    }

    /// The keys of a mapped input as well.
    pub(super) fn with_keys(&self, mapping: &Tree) -> Scope {
        let mut scope = self.clone();
        match mapping {
            Tree::Map(map) => scope.keys = map.keys().cloned().collect(),
            _ => scope.anything = true,
        }
        scope
    }

    pub(super) fn sees(&self, items: &Items, root: &str) -> bool {
        self.anything
            || ROOTS.iter().any(|(bit, name)| *name == root && self.roots & bit != 0)
            || self.keys.iter().any(|key| &**key == root)
            || self.items & items.bit(root) != 0
    }

    pub(super) fn visible<'s>(&'s self, items: &'s Items) -> Vec<&'s str> {
        let roots = ROOTS.iter().filter(|(bit, _)| self.roots & bit != 0).map(|(_, name)| *name);
        let named = items.0.iter().filter(|(_, bit)| self.items & **bit != 0).map(|(name, _)| &**name);
        let mut all: Vec<&str> = roots.chain(named).collect();
        all.extend(
            self.keys.iter().map(|key| &**key).filter(|key| !ROOTS.iter().any(|(_, root)| root == key)),
        );
        all
    }
}

/// What the texts of a whole workflow see.
#[derive(Debug)]
pub(super) struct Scopes {
    pub(super) items: Items,
    /// Of each node, and last of the workflow's `on_error`.
    pub(super) of: Vec<Scope>,
    is_dag: bool,
    units: Vec<Name>,
}

impl Scopes {
    pub(super) fn new(shape: &Shape<'_>, flow: &Flow) -> Scopes {
        let mut items = Items::default();
        let visible = visible_items(shape, &mut items);
        let mut units: Vec<Name> = shape.units.iter().map(|unit| unit.def.reference.text.clone()).collect();
        units.sort();
        Scopes { of: of_nodes(shape, flow, &visible), items, is_dag: shape.is_dag, units }
    }

    /// Of the workflow's output mapping. In a dag, `needs` has every node there.
    pub(super) fn of_output(&self) -> Scope {
        let roots = if self.is_dag { OF_RUN | NEEDS } else { OF_RUN };
        Scope { needs: NeedsOf::These(self.units.clone()), ..Scope::of(roots) }
    }

    /// Of the workflow's own `on_error`.
    pub(super) fn of_rules(&self) -> Scope {
        self.of.last().cloned().unwrap_or_default().with(ERROR)
    }
}

/// Steps written on a node see the task's scope, and of the node what a task has not.
pub(super) fn of_steps(node: &Scope) -> Scope {
    Scope { roots: OF_TASK | node.roots & (BRANCH | NEEDS | RUN), ..node.clone() }
}

/// Which `foreach` names can be read at each node: those of every `foreach` that leads to it.
fn visible_items(shape: &Shape<'_>, items: &mut Items) -> Vec<u64> {
    let bits: Vec<u64> = shape
        .arrows
        .iter()
        .map(|arrow| arrow.foreach().and_then(|foreach| foreach.item_name.as_ref()))
        .map(|name| name.map_or(0, |name| items.add(&name.text)))
        .collect();
    let hub = shape.slots.len();
    let mut visible = vec![0u64; hub + 1];
    let mut todo: Vec<usize> = shape
        .arrows
        .iter()
        .zip(&bits)
        .filter(|(_, bit)| **bit != 0)
        .map(|(arrow, _)| arrow.from.0 as usize)
        .collect();
    let give = |visible: &mut Vec<u64>, to: usize, bits: u64, todo: &mut Vec<usize>| {
        if visible[to] | bits != visible[to] {
            visible[to] |= bits;
            todo.push(to);
        }
    };
    while let Some(at) = todo.pop() {
        let here = visible[at];
        if at == hub {
            shape.jumps_of_all.iter().for_each(|to| give(&mut visible, to.0 as usize, here, &mut todo));
            continue;
        }
        for ix in &shape.out[at] {
            give(
                &mut visible,
                shape.arrows[ix.0 as usize].to.0 as usize,
                here | bits[ix.0 as usize],
                &mut todo,
            );
        }
        shape.jumps[at].iter().for_each(|to| give(&mut visible, to.0 as usize, here, &mut todo));
        if !shape.jumps_of_all.is_empty() {
            give(&mut visible, hub, here, &mut todo);
        }
    }
    visible
}

/// What the expressions of each node see, and last those of the workflow's `on_error`.
fn of_nodes(shape: &Shape<'_>, flow: &Flow, visible: &[u64]) -> Vec<Scope> {
    let of_unit = |slot: &Slot<'_>| {
        let unit = slot.unit.map(|unit| &shape.units[unit.0 as usize])?;
        let mut names: Vec<Name> =
            unit.needs.iter().map(|need| shape.units[need.0 as usize].def.reference.text.clone()).collect();
        names.sort();
        Some(names)
    };
    let kind = if shape.is_dag { OF_RUN | NEEDS } else { OF_RUN };
    let mut scopes: Vec<Scope> = (0..shape.slots.len())
        .map(|at| Scope {
            roots: if flow.in_branch(at) || shape.is_broken() { kind | BRANCH } else { kind },
            items: visible[at],
            needs: of_unit(&shape.slots[at]).map_or(NeedsOf::Any, NeedsOf::These),
            ..Scope::default()
        })
        .collect();
    scopes.push(Scope { roots: kind | BRANCH, items: u64::MAX, ..Scope::default() });
    scopes
}
