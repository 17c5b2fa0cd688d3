//! The bones of a workflow: which nodes and transitions there are, at which index, and what leads where.
//! Nothing is compiled yet; whatever cannot be resolved is left out and kept as a [`Fault`], which the checker
//! turns into a problem and the compiler into a refusal.
//!
//! Indices follow the order of writing, and what a run adds comes after the file, mutation by mutation, so
//! that an index keeps its meaning when a graph is built again with one more mutation.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::names;
use super::{Mutation, NodeIx, Source, TransitionIx, UnitIx};
use wonder_lang::def::{
    Bundle, FanOut, Foreach, Kind, Name, NodeDef, On, Rule, Synchronization, Text, TransitionDef,
};

/// Which part of what an author calls a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part<'a> {
    /// All of it.
    Whole,
    /// The three of a dag's `foreach`.
    Head,
    Items,
    Gather,
    /// Put behind another by a mutation.
    Validator {
        task: &'a Name,
    },
    Review,
}

#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub(super) reference: Name,
    pub(super) part: Part<'a>,
    /// None for what a mutation put behind a node.
    pub(super) def: Option<&'a NodeDef>,
    pub(super) unit: Option<UnitIx>,
    pub(super) stands_for: Option<NodeIx>,
    pub(super) behind: Option<NodeIx>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Written<'a> {
    Transition(&'a TransitionDef),
    /// Of a dag's `foreach`: from its head to the items, and on to the gather.
    Spread(&'a NodeDef),
    Gather(&'a NodeDef),
}

#[derive(Debug)]
pub(super) struct Arrow<'a> {
    pub(super) reference: Name,
    pub(super) written: Written<'a>,
    pub(super) from: NodeIx,
    pub(super) to: NodeIx,
    /// 0 for the file, then one for each mutation.
    pub(super) layer: u32,
    pub(super) priority: i64,
    /// What `sibling_group` names.
    pub(super) group: Option<Source>,
}

impl<'a> Arrow<'a> {
    pub(super) fn def(&self) -> Option<&'a TransitionDef> {
        match self.written {
            Written::Transition(def) => Some(def),
            Written::Spread(_) | Written::Gather(_) => None,
        }
    }

    pub(super) fn on(&self) -> On {
        self.def().map_or(On::Success, |def| def.on)
    }

    pub(super) fn foreach(&self) -> Option<&'a Foreach> {
        match self.written {
            Written::Transition(def) => def.foreach.as_ref(),
            Written::Spread(node) => node.foreach.as_ref(),
            Written::Gather(_) => None,
        }
    }

    pub(super) fn spreads(&self) -> bool {
        self.foreach().is_some() || self.def().is_some_and(|def| def.spawn_count.is_some())
    }

    pub(super) fn synchronization(&self) -> Option<&'a Synchronization> {
        self.def().and_then(|def| def.synchronization.as_ref())
    }

    pub(super) fn joins(&self) -> bool {
        matches!(self.written, Written::Gather(_)) || self.synchronization().is_some()
    }
}

#[derive(Debug)]
pub(super) struct UnitShape<'a> {
    pub(super) def: &'a NodeDef,
    pub(super) head: NodeIx,
    pub(super) tail: NodeIx,
    pub(super) needs: Vec<UnitIx>,
}

/// A name that leads nowhere, or two things of one name.
#[derive(Clone, Debug)]
pub(super) enum Fault<'a> {
    UnknownNode(Text),
    DuplicateNode(&'a NodeDef),
    DuplicateTransition(&'a Text),
    UnknownGroup {
        name: &'a Text,
        why: &'static str,
    },
    /// A mutation puts something behind a node that has something behind it.
    BehindTwice(Name),
    /// A mutation adds a node under a name that is taken.
    NameTaken(Name),
}

#[derive(Debug, Default)]
pub(super) struct Shape<'a> {
    pub(super) slots: Vec<Slot<'a>>,
    pub(super) node_by_ref: HashMap<Name, NodeIx>,
    pub(super) arrows: Vec<Arrow<'a>>,
    pub(super) transition_by_ref: HashMap<Name, TransitionIx>,
    /// Outgoing transitions of each node in the order they are looked at.
    pub(super) out: Vec<Vec<TransitionIx>>,
    pub(super) units: Vec<UnitShape<'a>>,
    /// `goto` and `to` in the `on_error` of each node.
    pub(super) jumps: Vec<Vec<NodeIx>>,
    /// The same in the workflow's: from every node.
    pub(super) jumps_of_all: Vec<NodeIx>,
    pub(super) initial: Option<NodeIx>,
    pub(super) faults: Vec<Fault<'a>>,
    pub(super) is_dag: bool,
    /// What authors call nodes, added ones included.
    pub(super) nodes_written: usize,
}

impl<'a> Shape<'a> {
    pub(super) fn of(bundle: &'a Bundle, mutations: &'a [Mutation]) -> Shape<'a> {
        let workflow = &bundle.workflow;
        let mut shape = Shape { is_dag: workflow.kind == Kind::Dag, ..Shape::default() };
        for node in &workflow.nodes {
            shape.add_node(node);
        }
        shape.add_needs(0);
        if !shape.is_dag {
            shape.add_transitions(&workflow.transitions, 0);
        }
        for (at, mutation) in mutations.iter().enumerate() {
            shape.add_mutation(mutation, at as u32 + 1);
        }
        shape.find_initial(bundle);
        shape.find_jumps(bundle);
        shape.find_groups();
        shape.sort_out();
        shape
    }

    /// Where a run starts.
    pub(super) fn starts(&self) -> Vec<NodeIx> {
        if self.is_dag {
            return self.units.iter().map(|unit| unit.head).collect();
        }
        self.initial.into_iter().collect()
    }

    /// Something could not be resolved: what can be reached is not known.
    pub(super) fn is_broken(&self) -> bool {
        !self.faults.is_empty()
    }

    pub(super) fn node_of(&self, ix: NodeIx) -> &Slot<'a> {
        &self.slots[ix.0 as usize]
    }

    pub(super) fn add_node(&mut self, def: &'a NodeDef) {
        self.nodes_written += 1;
        let reference = &def.reference.text;
        let unit = self.is_dag.then_some(UnitIx(self.units.len() as u32));
        let expanded = self.is_dag && def.foreach.is_some();
        let head = NodeIx(self.slots.len() as u32);
        let mut push = |reference: Name, part| {
            self.slots.push(Slot { reference, part, def: Some(def), unit, stands_for: None, behind: None });
        };
        if expanded {
            push(reference.clone(), Part::Head);
            push(names::items_of(reference), Part::Items);
            push(names::gather_of(reference), Part::Gather);
        } else {
            push(reference.clone(), Part::Whole);
        }
        let tail = NodeIx(self.slots.len() as u32 - 1);
        if self.node_by_ref.contains_key(reference) {
            self.faults.push(Fault::DuplicateNode(def));
        } else {
            for ix in head.0..=tail.0 {
                self.node_by_ref.insert(self.slots[ix as usize].reference.clone(), NodeIx(ix));
            }
        }
        if self.is_dag {
            self.units.push(UnitShape { def, head, tail, needs: Vec::new() });
        }
        if expanded {
            let items = NodeIx(head.0 + 1);
            self.add_arrow(Written::Spread(def), head, items, 0);
            self.add_arrow(Written::Gather(def), items, tail, 0);
        }
    }

    /// The `needs` of the units from `first` on: after all of them are known, since they may look ahead.
    pub(super) fn add_needs(&mut self, first: usize) {
        for at in first..self.units.len() {
            let def = self.units[at].def;
            let mut seen = BTreeSet::new();
            for need in &def.needs {
                let found = self.node_by_ref.get(&need.text).and_then(|ix| self.node_of(*ix).unit);
                match found {
                    Some(unit) if seen.insert(unit) => self.units[at].needs.push(unit),
                    Some(_) => {}
                    None => self.faults.push(Fault::UnknownNode(need.clone())),
                }
            }
        }
    }

    pub(super) fn add_transitions(&mut self, defs: &'a [TransitionDef], layer: u32) {
        for def in defs {
            let (from, to) = (self.resolve(&def.from), self.resolve(&def.to));
            let (Some(from), Some(to)) = (from, to) else { continue };
            let ix = self.add_arrow(Written::Transition(def), from, to, layer);
            if let Some(reference) = &def.reference {
                let known = *self.transition_by_ref.entry(reference.text.clone()).or_insert(ix);
                if known != ix {
                    self.faults.push(Fault::DuplicateTransition(reference));
                }
            }
        }
    }

    fn add_arrow(&mut self, written: Written<'a>, from: NodeIx, to: NodeIx, layer: u32) -> TransitionIx {
        let ix = TransitionIx(self.arrows.len() as u32);
        self.out.resize(self.slots.len(), Vec::new());
        let nth = self.out[from.0 as usize].len();
        let default: Name = format!("{}.{nth}", self.node_of(from).reference).into();
        let priority = nth as i64;
        let mut arrow = Arrow { reference: default.clone(), written, from, to, layer, priority, group: None };
        if let Some(def) = arrow.def() {
            arrow.priority = def.priority.unwrap_or(priority);
            arrow.reference =
                def.reference.as_ref().map_or(arrow.reference, |reference| reference.text.clone());
        }
        if arrow.reference == default {
            self.transition_by_ref.insert(default, ix);
        }
        self.out[from.0 as usize].push(ix);
        self.arrows.push(arrow);
        ix
    }

    pub(super) fn resolve(&mut self, text: &Text) -> Option<NodeIx> {
        let found = self.node_by_ref.get(&text.text).copied();
        if found.is_none() {
            self.faults.push(Fault::UnknownNode(text.clone()));
        }
        found
    }

    /// A dag starts at every unit that needs nothing; the first of them stands for all.
    fn find_initial(&mut self, bundle: &'a Bundle) {
        self.initial = match &bundle.workflow.initial_node {
            _ if self.is_dag => self.units.iter().find(|unit| unit.needs.is_empty()).map(|unit| unit.head),
            Some(text) => self.resolve(text),
            None => (!self.slots.is_empty()).then_some(NodeIx(0)),
        };
    }

    fn find_jumps(&mut self, bundle: &'a Bundle) {
        self.jumps = vec![Vec::new(); self.slots.len()];
        if self.is_dag {
            return;
        }
        for at in 0..self.slots.len() {
            if let Some(def) = self.slots[at].def {
                self.jumps[at] = self.jumps_in(&def.on_error);
            }
        }
        self.jumps_of_all = self.jumps_in(&bundle.workflow.on_error);
    }

    fn jumps_in(&mut self, rules: &'a [Rule]) -> Vec<NodeIx> {
        rules.iter().filter_map(|rule| rule.response.leads_to()).filter_map(|to| self.resolve(to)).collect()
    }

    /// What each `sibling_group` names: a node with `fan_out: all`, a transition that spreads, or the node
    /// that has one such transition.
    fn find_groups(&mut self) {
        for at in 0..self.arrows.len() {
            let Some(text) = self.arrows[at].synchronization().and_then(|sync| sync.sibling_group.as_ref())
            else {
                continue;
            };
            self.arrows[at].group = match self.group_named(&text.text) {
                Ok(source) => Some(source),
                Err(why) => {
                    self.faults.push(Fault::UnknownGroup { name: text, why });
                    None
                }
            };
        }
    }

    fn group_named(&self, name: &str) -> Result<Source, &'static str> {
        let by_transition =
            self.transition_by_ref.get(name).filter(|ix| self.arrows[ix.0 as usize].spreads());
        let Some(node) = self.node_by_ref.get(name) else {
            return match by_transition {
                Some(ix) => Ok(Source::Transition(*ix)),
                None if self.transition_by_ref.contains_key(name) => {
                    Err("names a transition that does not fan out")
                }
                None => Err("names no node and no transition"),
            };
        };
        if self.node_of(*node).def.is_some_and(|def| def.fan_out == FanOut::All) {
            return Ok(Source::Node(*node));
        }
        if let Some(ix) = by_transition {
            return Ok(Source::Transition(*ix));
        }
        let out = self.out.get(node.0 as usize).map_or(&[][..], Vec::as_slice);
        let mut spreads = out.iter().filter(|ix| self.arrows[ix.0 as usize].spreads());
        match (spreads.next(), spreads.next()) {
            (Some(only), None) => Ok(Source::Transition(*only)),
            (Some(_), Some(_)) => Err("names a node that fans out in several ways"),
            _ => Err("names a node that does not fan out"),
        }
    }

    /// Lowest priority first, ties as written; what a mutation added before what was there.
    fn sort_out(&mut self) {
        self.out.resize(self.slots.len(), Vec::new());
        let arrows = &self.arrows;
        for out in &mut self.out {
            out.sort_by_key(|ix| {
                let arrow = &arrows[ix.0 as usize];
                (Reverse(arrow.layer), arrow.priority, *ix)
            });
        }
    }
}
