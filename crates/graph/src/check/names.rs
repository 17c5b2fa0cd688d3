//! Names: refs that can be used in expressions, and names that lead somewhere.

use super::Check;
use crate::shape::{Fault, Shape};
use crate::{Mutation, codes};
use wonder_lang::def::{FanOut, NodeDef, Rule, Spot, Text, TransitionDef};
use wonder_lang::problem::{Problem, nearest};

impl<'a> Check<'a> {
    pub(super) fn names(&mut self, shape: &Shape<'a>, mutations: &'a [Mutation]) {
        let workflow = &self.bundle.workflow;
        self.refs(&workflow.nodes, &workflow.transitions);
        for mutation in mutations {
            if let Mutation::Nodes { nodes, transitions, .. } = mutation {
                self.refs(nodes, transitions);
            }
        }
        for name in shape.arrows.iter().filter_map(|arrow| arrow.foreach()?.item_name.as_ref()) {
            self.reference(name, "foreach item");
        }
        shape.faults.iter().for_each(|fault| self.fault(shape, fault));
        if shape.is_dag {
            self.graph_only_keys(shape);
        }
    }

    fn refs(&mut self, nodes: &[NodeDef], transitions: &[TransitionDef]) {
        nodes.iter().for_each(|node| self.reference(&node.reference, "node"));
        let named = transitions.iter().filter_map(|transition| transition.reference.as_ref());
        named.for_each(|reference| self.reference(reference, "transition"));
    }

    fn fault(&mut self, shape: &Shape<'_>, fault: &Fault<'_>) {
        let message = fault.to_string();
        let problem = match fault {
            Fault::UnknownNode(name) => {
                let known = shape.slots.iter().filter_map(|slot| slot.def).map(|def| def.reference.as_str());
                return self.unknown(codes::UNKNOWN_NODE, name, "node", known);
            }
            Fault::DuplicateNode(def) => Problem::error(codes::DUPLICATE_REF, def.reference.spot, message)
                .label("expected a ref that no other node has")
                .help(format!("call one of them `{}_2`, or what it does", def.reference)),
            Fault::DuplicateTransition(name) => Problem::error(codes::DUPLICATE_REF, name.spot, message)
                .label("expected a ref that no other transition has"),
            Fault::UnknownGroup { name, .. } => Problem::error(codes::UNKNOWN_GROUP, name.spot, message)
                .label("expected the ref of a node or transition that fans out")
                .help(group_help(shape, name)),
            Fault::BehindTwice(_) => Problem::error(codes::MUTATION_TWICE, Spot::NOWHERE, message)
                .label("expected a node that has none")
                .help("add one only once; let a second failure take another response"),
            Fault::NameTaken(_) => {
                Problem::error(codes::DUPLICATE_REF, Spot::NOWHERE, message).label("expected a new ref")
            }
        };
        self.report(problem);
    }

    fn graph_only_keys(&mut self, shape: &Shape<'a>) {
        let workflow = &self.bundle.workflow;
        for def in &workflow.transitions {
            let help = "write what `to` waits for: `needs: [from]`";
            self.graph_only(def.from.spot, "a transition", help);
        }
        if let Some(text) = &workflow.initial_node {
            self.graph_only(text.spot, "`initial_node`", "a dag starts at every node that needs nothing");
        }
        for unit in &shape.units {
            if unit.def.fan_out == FanOut::All {
                let help = "in a dag every node that needs this one follows it";
                self.graph_only(unit.def.reference.spot, "`fan_out`", help);
            }
            self.no_jumps(&unit.def.on_error);
        }
        self.no_jumps(&workflow.on_error);
    }

    fn no_jumps(&mut self, rules: &[Rule]) {
        for rule in rules {
            let Some(to) = rule.response.leads_to() else { continue };
            let key =
                if matches!(rule.response, wonder_lang::def::Response::Goto(_)) { "`goto`" } else { "`to`" };
            self.graph_only(to.spot, key, "in a dag the order of nodes is fixed by their `needs`");
        }
    }

    pub(super) fn graph_only(&mut self, spot: Spot, what: &str, help: &str) {
        self.report(
            Problem::error(codes::GRAPH_ONLY, spot, format!("{what} has no place in a dag"))
                .label("only a graph has this")
                .help(help),
        );
    }
}

fn group_help(shape: &Shape<'_>, text: &Text) -> String {
    let nodes = shape.slots.iter().filter(|slot| slot.def.is_some_and(|def| def.fan_out == FanOut::All));
    let arrows = shape.arrows.iter().filter(|arrow| arrow.spreads());
    let mut known: Vec<&str> = nodes.map(|slot| &*slot.reference).collect();
    known.extend(arrows.flat_map(|arrow| [&*arrow.reference, &*shape.node_of(arrow.from).reference]));
    match nearest(&text.text, known.iter().copied()) {
        Some(name) if name != text.as_str() => format!("did you mean `{name}`?"),
        _ => "give the transition with `spawn_count` or `foreach` a `ref` and name that".to_owned(),
    }
}
