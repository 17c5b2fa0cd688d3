//! Nodes, and the transitions written under them.

use std::sync::Arc;

use wonder_core::def::{Inline, MayMutate, Name, NodeDef, RetryOn, TaskDef, Text, TransitionDef};

use super::{Build, DocumentKind, one_or_list};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::shape::is_kind;
use crate::tree::{Data, Node};

impl Build {
    pub(super) fn node(
        &mut self,
        reference: Text,
        node: &Node<'_>,
        transitions: &mut Vec<TransitionDef>,
    ) -> NodeDef {
        let (task, task_version, inline) = self.node_task(&reference, node);
        // Without `task` it has been refused: what is written in place has no version.
        let asked = node.get("task").and_then(|_| self.count(node, "task_version"));
        self.version_of(DocumentKind::Task, &task, asked);
        self.taint(reference.spot, node.span);
        if let Some(next) = node.get("next") {
            for transition in one_or_list(next) {
                transitions.extend(self.transition(transition, reference.clone()));
            }
        }
        let adaptive = node.get("timeout").and_then(Node::text) == Some("adaptive");
        NodeDef {
            id: self.name(node, "id"),
            name: self.name(node, "name"),
            task,
            task_version: asked.or(task_version),
            inline,
            input_mapping: self.input_mapping(node),
            output_mapping: self.writes(node, "output_mapping"),
            timeout_ms: if adaptive {
                self.count(node, "timeout_ms")
            } else {
                self.duration(node, "timeout")
            },
            timeout_adaptive: adaptive,
            on_timeout: self.word(node, "on_timeout"),
            fan_out: self.word(node, "fan_out").unwrap_or_default(),
            on_error: self.rules(node),
            budget: self.budget(node),
            may_mutate: self.may_mutate(node),
            estimate: self.estimate(node),
            max_visits: self.bound(node, "max_visits"),
            needs: self.texts(node, "needs"),
            join: self.strategy(node, "join"),
            when: self.text(node, "when"),
            foreach: self.foreach(node),
            spot: reference.spot,
            reference,
        }
    }

    /// The name of the node's task, its version, and whether it is written in place: then it is
    /// `node:REF`, and so is its action if a kind is written on the node itself.
    fn node_task(&mut self, reference: &Text, node: &Node<'_>) -> (Text, Option<u32>, Inline) {
        if let Some(named) = node.get("task").and_then(|task| self.name_at(DocumentKind::Task, task)) {
            self.no_retry_of(&named.0, node);
            // Only what `validate --expand` prints says so.
            return (named.0, named.1, self.word(node, "inline").unwrap_or_default());
        }
        let name: Name = format!("node:{reference}").into();
        let text = Text { text: name.clone(), spot: reference.spot };
        let (steps, inline) = match node.get("steps") {
            Some(_) => (self.steps(node, &name), Inline::Steps),
            None => {
                let kind = node.entries().iter().find(|entry| is_kind(&entry.key));
                let action = match kind {
                    Some(entry) => self.inline_action(&name, entry),
                    None => self.no_action(text.clone()),
                };
                let step = self.lone_step(name.clone(), action.implementation.kind(), action.spot);
                self.actions.insert(name.clone(), Arc::new(action));
                (vec![step], Inline::Action)
            }
        };
        if self.is_wrong(node, "timeout") {
            self.untimed_steps(&steps);
        }
        let retry = self.retry(node, "retry");
        let (spot, retry_on) = (reference.spot, RetryOn::AnyFailure);
        let retry_on = if retry.is_some() { retry_on } else { RetryOn::default() };
        let task = TaskDef { name: text.clone(), steps, retry, retry_on, spot, ..TaskDef::default() };
        self.tasks.insert(name, Arc::new(task));
        (text, None, inline)
    }

    /// How often a named task is tried is the task's own to say, for all who use it.
    fn no_retry_of(&mut self, task: &Text, node: &Node<'_>) {
        let Some(entry) = node.entry("retry") else { return };
        let message = format!("`retry` beside `task: {task}`: a named task has its own");
        self.problems.push(
            Diagnostic::error(codes::RETRY_OF_NAMED_TASK, entry.key_span, message)
                .label("not here")
                .help(format!(
                    "write `retry` on task `{task}`, and `on_failure: retry` on the steps that ask for it; or, for \
                     this node alone, `on_error: [{{do: retry, max: 2}}]`, which is three attempts"
                )),
        );
    }

    fn may_mutate(&self, map: &Node<'_>) -> Option<MayMutate> {
        let node = map.get("may_mutate")?;
        match node.data {
            Data::Bool(false) => None,
            _ => Some(MayMutate {
                max_nodes: self.positive(node, "max_nodes").unwrap_or_else(MayMutate::default_max_nodes),
            }),
        }
    }
}
