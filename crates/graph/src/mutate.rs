//! What a run adds to its own graph. Indices stay: what is added comes after everything that was there.

use super::compile::CannotCompile;
use super::shape::{Fault, Part, Shape, Slot};
use super::{Graph, Mutation, NodeIx};
use wonder_lang::def::{Name, TransitionDef};
use wonder_lang::problem::{Problem, Severity};

impl Graph {
    /// A run's own copy with one more change, checked as if it had been written in the file. Only the change is
    /// new: what today's checks find in the definition it comes to is none of its business.
    pub fn extended(&self, mutation: &Mutation) -> Result<Graph, Vec<Problem>> {
        let problems = match super::checked(&self.bundle, self.and(mutation)) {
            Ok((graph, _)) => return Ok(graph),
            Err(problems) => problems,
        };
        let known = match super::checked(&self.bundle, self.mutations.clone()) {
            Ok((_, warnings)) => warnings,
            Err(problems) => problems,
        };
        let new = problems.into_iter().filter(|problem| !known.contains(problem));
        let new: Vec<Problem> = new.filter(|problem| problem.severity == Severity::Error).collect();
        if new.is_empty() { self.grown(mutation).map_err(|error| vec![error.into()]) } else { Err(new) }
    }

    /// The same of a change that was accepted once: compiled and not judged again.
    pub fn grown(&self, mutation: &Mutation) -> Result<Graph, CannotCompile> {
        super::compile::compile(&self.bundle, self.and(mutation))
    }

    fn and(&self, mutation: &Mutation) -> Vec<Mutation> {
        self.mutations.iter().chain([mutation]).cloned().collect()
    }
}

impl<'a> Shape<'a> {
    pub(super) fn add_mutation(&mut self, mutation: &'a Mutation, layer: u32) {
        match mutation {
            Mutation::Nodes { nodes, transitions, .. } => {
                let first_unit = self.units.len();
                for node in nodes {
                    self.add_node(node);
                }
                self.add_needs(first_unit);
                if self.is_dag {
                    self.add_needs_by_transition(transitions);
                } else {
                    self.add_transitions(transitions, layer);
                }
            }
            Mutation::Validator { node, added, task } => {
                self.add_behind(node, added, Part::Validator { task });
            }
            Mutation::Review { node, added } => self.add_behind(node, added, Part::Review),
        }
    }

    fn add_needs_by_transition(&mut self, transitions: &'a [TransitionDef]) {
        for def in transitions {
            let (from, to) = (self.resolve(&def.from), self.resolve(&def.to));
            let (Some(from), Some(to)) = (from, to) else { continue };
            let (Some(from), Some(to)) = (self.node_of(from).unit, self.node_of(to).unit) else { continue };
            let needs = &mut self.units[to.0 as usize].needs;
            if !needs.contains(&from) {
                needs.push(from);
            }
        }
    }

    fn add_behind(&mut self, node: &Name, added: &'a Name, part: Part<'a>) {
        self.nodes_written += 1;
        let ix = NodeIx(self.slots.len() as u32);
        let Some(before) = self.node_by_ref.get(node).copied() else {
            return self.faults.push(Fault::UnknownNode((&**node).into()));
        };
        let slot = self.node_of(before);
        if slot.behind.is_some() || slot.stands_for.is_some() {
            return self.faults.push(Fault::BehindTwice(node.clone()));
        }
        if self.node_by_ref.contains_key(added) {
            return self.faults.push(Fault::NameTaken(added.clone()));
        }
        let unit = slot.unit;
        self.slots[before.0 as usize].behind = Some(ix);
        self.slots.push(Slot {
            reference: added.clone(),
            part,
            def: None,
            unit,
            stands_for: Some(before),
            behind: None,
        });
        self.node_by_ref.insert(added.clone(), ix);
        if let Some(unit) =
            unit.map(|unit| &mut self.units[unit.0 as usize]).filter(|unit| unit.tail == before)
        {
            unit.tail = ix;
        }
    }
}
