//! What a run may add to its own graph. Names and texts are checked with the file's; here is who may add what.

use super::Check;
use crate::shape::Shape;
use crate::{Mutation, codes};
use wonder_lang::def::{Inline, MayMutate, Name, NodeDef, Spot, TransitionDef};
use wonder_lang::problem::Problem;

impl<'a> Check<'a> {
    pub(super) fn mutations(&mut self, shape: &Shape<'a>, mutations: &'a [Mutation]) {
        for (at, mutation) in mutations.iter().enumerate() {
            let Mutation::Nodes { by, nodes, transitions } = mutation else { continue };
            self.may_add(shape, by, nodes, &mutations[..at]);
            nodes.iter().for_each(|node| self.added_node(node));
            for transition in transitions {
                let from = &*transition.from.text;
                if from != &**by && !nodes.iter().any(|node| node.reference.as_str() == from) {
                    self.foreign_transition(transition, by);
                }
                if shape.is_dag {
                    self.only_a_need(transition);
                }
            }
        }
    }

    fn may_add(&mut self, shape: &Shape<'a>, by: &Name, nodes: &[NodeDef], before: &[Mutation]) {
        let found = shape.node_by_ref.get(by).map(|ix| shape.node_of(*ix));
        let allowed = found.and_then(|slot| slot.def).and_then(|def| def.may_mutate);
        let Some(MayMutate { max_nodes }) = allowed else {
            let message = format!("`{by}` may not add nodes");
            return self.report(
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
            self.report(
                Problem::error(codes::MUTATION_NOT_ALLOWED, Spot::NOWHERE, message)
                    .label(format!("expected at most {max_nodes} in one run"))
                    .help("raise `may_mutate.max_nodes`"),
            );
        }
    }

    fn only_a_need(&mut self, def: &TransitionDef) {
        let plain = TransitionDef {
            id: def.id.clone(),
            reference: def.reference.clone(),
            from: def.from.clone(),
            to: def.to.clone(),
            spot: def.spot,
            ..TransitionDef::default()
        };
        if *def != plain {
            self.graph_only(
                def.from.spot,
                "a transition with conditions",
                "in a dag it only says what is needed",
            );
        }
    }

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
