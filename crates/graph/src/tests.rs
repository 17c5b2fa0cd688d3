//! Tests of building and checking: definitions in, graph or problems out.

mod codes;
mod dag;
mod extend;
mod groups;
mod nodes;
mod profiles;

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{Graph, NodeIx, Source};
use wonder_lang::def::Bundle;
use wonder_lang::problem::Problem;

/// A bundle from short forms: a node is `(ref, action kind, implementation, more keys of the node)`.
pub(super) struct Draft {
    workflow: Map<String, Json>,
    nodes: Vec<Json>,
    transitions: Vec<Json>,
    tasks: Map<String, Json>,
    actions: Map<String, Json>,
    more: Map<String, Json>,
}

impl Draft {
    pub(super) fn graph() -> Draft {
        let mut draft = Draft {
            workflow: Map::new(),
            nodes: Vec::new(),
            transitions: Vec::new(),
            tasks: Map::new(),
            actions: Map::new(),
            more: Map::new(),
        };
        draft.workflow.insert("name".into(), "test".into());
        draft
    }

    pub(super) fn dag() -> Draft {
        Draft::graph().workflow(json!({"kind": "dag"}))
    }

    pub(super) fn workflow(mut self, keys: Json) -> Draft {
        lay(&mut self.workflow, keys);
        self
    }

    /// `prompts`, `models`.
    pub(super) fn with(mut self, keys: Json) -> Draft {
        lay(&mut self.more, keys);
        self
    }

    /// An action written on a node.
    pub(super) fn act(self, reference: &str, kind: &str, implementation: Json, keys: Json) -> Draft {
        let action = json!({"name": reference, "kind": kind, "implementation": implementation});
        let step = json!({"ref": "only", "action": reference});
        let draft = self.action(reference, action).task(reference, json!({"steps": [step]}));
        let mut node = json!({"task": reference, "inline": "action"});
        lay(node.as_object_mut().unwrap(), keys);
        draft.node(reference, node)
    }

    /// A node that does nothing of interest and writes nothing on purpose.
    pub(super) fn mock(self, reference: &str, keys: Json) -> Draft {
        self.act(reference, "mock", json!({"outcomes": [{"output": {}}]}), keys)
    }

    pub(super) fn mocks(self, references: &[&str]) -> Draft {
        references.iter().fold(self, |draft, reference| draft.mock(reference, json!({})))
    }

    pub(super) fn node(mut self, reference: &str, keys: Json) -> Draft {
        let mut node = json!({"ref": reference});
        lay(node.as_object_mut().unwrap(), keys);
        self.nodes.push(node);
        self
    }

    pub(super) fn action(mut self, name: &str, mut keys: Json) -> Draft {
        keys["name"] = name.into();
        self.actions.insert(name.into(), keys);
        self
    }

    pub(super) fn task(mut self, name: &str, mut keys: Json) -> Draft {
        keys["name"] = name.into();
        self.tasks.insert(name.into(), keys);
        self
    }

    /// `from -> to`, with more keys.
    pub(super) fn next(mut self, from: &str, to: &str, keys: Json) -> Draft {
        let mut transition = json!({"from": from, "to": to});
        lay(transition.as_object_mut().unwrap(), keys);
        self.transitions.push(transition);
        self
    }

    /// `a b`, `b c`: plain transitions.
    pub(super) fn nexts(self, pairs: &[(&str, &str)]) -> Draft {
        pairs.iter().fold(self, |draft, (from, to)| draft.next(from, to, json!({})))
    }

    pub(super) fn bundle(mut self) -> Arc<Bundle> {
        self.workflow.insert("nodes".into(), self.nodes.into());
        if !self.transitions.is_empty() {
            self.workflow.insert("transitions".into(), self.transitions.into());
        }
        let mut whole = json!({"workflow": self.workflow, "tasks": self.tasks, "actions": self.actions});
        lay(whole.as_object_mut().unwrap(), self.more.into());
        Arc::new(serde_json::from_value(whole).unwrap())
    }

    pub(super) fn build(self) -> Result<(Graph, Vec<Problem>), Vec<Problem>> {
        Graph::build(self.bundle())
    }

    #[track_caller]
    pub(super) fn ok(self) -> Graph {
        self.build().unwrap_or_else(|problems| panic!("{}", show(&problems))).0
    }

    /// The codes of everything found, warnings too, each once, in order.
    pub(super) fn codes(self) -> Vec<&'static str> {
        let problems = match self.build() {
            Ok((_, warnings)) => warnings,
            Err(problems) => problems,
        };
        codes_of(&problems)
    }
}

pub(super) fn codes_of(problems: &[Problem]) -> Vec<&'static str> {
    let mut codes: Vec<&str> = problems.iter().map(|problem| problem.code.0).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

pub(super) fn show(problems: &[Problem]) -> String {
    let line =
        |p: &Problem| format!("{} {} [{}] {}\n", p.code, p.message, p.label, p.help.as_deref().unwrap_or(""));
    problems.iter().map(line).collect()
}

pub(super) fn ix(graph: &Graph, reference: &str) -> NodeIx {
    graph.find_node(reference).unwrap()
}

/// A group by the ref of its node or transition.
pub(super) fn group(graph: &Graph, reference: &str) -> Source {
    match graph.find_transition(reference) {
        Some(ix) => Source::Transition(ix),
        None => Source::Node(ix(graph, reference)),
    }
}

fn lay(onto: &mut Map<String, Json>, keys: Json) {
    if let Json::Object(keys) = keys {
        onto.extend(keys);
    }
}
