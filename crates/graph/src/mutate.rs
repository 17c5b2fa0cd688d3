//! What a run may add to its own graph, checked as if it had been written in the file.

use super::check::Check;
use super::shape::{Part, Shape, Slot};
use super::{Graph, Mutation, NodeIx, codes};
use wonder_lang::def::{Inline, MayMutate, Name, NodeDef, Spot, TransitionDef};
use wonder_lang::problem::Problem;

impl Graph {
    /// A run's own copy with one more change, checked as if it had been written in the file. Indices stay:
    /// what is added comes after everything that was there.
    pub fn extended(&self, mutation: &Mutation) -> Result<Graph, Vec<Problem>> {
        let mut mutations = self.mutations.clone();
        mutations.push(mutation.clone());
        super::build::assemble(&self.bundle, mutations).map(|(graph, _)| graph)
    }
}

impl<'a> Shape<'a> {
    pub(super) fn add_mutation(
        &mut self,
        check: &mut Check<'a>,
        mutation: &'a Mutation,
        before: &'a [Mutation],
    ) {
        let layer = before.len() as u32 + 1;
        match mutation {
            Mutation::Nodes { by, nodes, transitions } => {
                self.may_add(check, by, nodes, before);
                let first_unit = self.units.len();
                for node in nodes {
                    check.added_node(node);
                    self.add_node(check, node);
                }
                self.add_needs(check, first_unit);
                for transition in transitions {
                    let from = &*transition.from.text;
                    if from != &**by && !nodes.iter().any(|node| node.reference.as_str() == from) {
                        check.foreign_transition(transition, by);
                    }
                }
                if self.is_dag {
                    self.add_needs_by_transition(check, transitions);
                } else {
                    self.add_transitions(check, transitions, layer);
                }
            }
            Mutation::Validator { node, added, task } => {
                self.add_behind(check, node, added, Part::Validator { task });
            }
            Mutation::Review { node, added } => self.add_behind(check, node, added, Part::Review),
        }
    }

    fn may_add(&mut self, check: &mut Check<'a>, by: &Name, nodes: &[NodeDef], before: &[Mutation]) {
        let found = self.node_by_ref.get(by).map(|ix| self.node_of(*ix));
        let allowed = found.and_then(|slot| slot.def).and_then(|def| def.may_mutate);
        let Some(MayMutate { max_nodes }) = allowed else {
            let message = format!("`{by}` may not add nodes");
            return check.report(
                Problem::error(codes::MUTATION_NOT_ALLOWED, Spot::NOWHERE, message)
                    .label("expected a node with `may_mutate`")
                    .help(format!("write `may_mutate: {{max_nodes: 10}}` on `{by}`")),
            );
        };
        let added_before = before.iter().map(|mutation| match mutation {
            Mutation::Nodes { by: other, nodes, .. } if other == by => nodes.len(),
            _ => 0,
        });
        let added = added_before.sum::<usize>() + nodes.len();
        if added > max_nodes as usize {
            let message = format!("`{by}` adds {added} nodes, and may add {max_nodes}");
            check.report(
                Problem::error(codes::MUTATION_NOT_ALLOWED, Spot::NOWHERE, message)
                    .label(format!("expected at most {max_nodes} in one run"))
                    .help("raise `may_mutate.max_nodes`"),
            );
        }
    }

    fn add_needs_by_transition(&mut self, check: &mut Check<'a>, transitions: &'a [TransitionDef]) {
        for def in transitions {
            let (from, to) = (self.resolve(check, &def.from), self.resolve(check, &def.to));
            let (Some(from), Some(to)) = (from, to) else { continue };
            let (Some(from), Some(to)) = (self.node_of(from).unit, self.node_of(to).unit) else { continue };
            let plain = TransitionDef {
                id: def.id.clone(),
                reference: def.reference.clone(),
                from: def.from.clone(),
                to: def.to.clone(),
                spot: def.spot,
                ..TransitionDef::default()
            };
            if *def != plain {
                check.graph_only(
                    def.from.spot,
                    "a transition with conditions",
                    "in a dag it only says what is needed",
                );
            }
            let needs = &mut self.units[to.0 as usize].needs;
            if !needs.contains(&from) {
                needs.push(from);
            }
        }
    }

    fn add_behind(&mut self, check: &mut Check<'a>, node: &Name, added: &'a Name, part: Part<'a>) {
        self.nodes_written += 1;
        let ix = NodeIx(self.slots.len() as u32);
        let Some(before) = self.node_by_ref.get(node).copied() else {
            let known = self.slots.iter().map(|slot| &*slot.reference);
            return check.unknown(codes::UNKNOWN_NODE, &(&**node).into(), "node", known);
        };
        let slot = self.node_of(before);
        if slot.behind.is_some() || slot.stands_for.is_some() {
            let message = format!("`{node}` has a validator or review already");
            check.report(
                Problem::error(codes::MUTATION_TWICE, Spot::NOWHERE, message)
                    .label("expected a node that has none")
                    .help("add one only once; let a second failure take another response"),
            );
            return;
        }
        if self.node_by_ref.contains_key(added) {
            let message = format!("there is a node `{added}` already");
            return check.report(
                Problem::error(codes::DUPLICATE_REF, Spot::NOWHERE, message).label("expected a new ref"),
            );
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

impl Check<'_> {
    fn added_node(&mut self, node: &NodeDef) {
        if node.inline == Inline::No {
            return;
        }
        let message = format!("`{}` brings a task of its own", node.reference);
        self.report(
            Problem::error(codes::MUTATION_BAD_NODE, node.reference.spot, message)
                .label("expected a node over a task that the workflow has")
                .help("name one of the workflow's tasks: `task: name`"),
        );
    }

    fn foreign_transition(&mut self, transition: &TransitionDef, by: &Name) {
        let message =
            format!("`{by}` adds a transition from `{}`, which is neither new nor `{by}`", transition.from);
        self.report(
            Problem::error(codes::MUTATION_BAD_TRANSITION, transition.from.spot, message)
                .label(format!("expected a transition from `{by}` or from an added node")),
        );
    }
}
