//! Actions: a kind, and how it is run.

use wonder_core::def::{ActionDef, Execution, Implementation, Name, Text};

use super::Build;
use super::implementation::placeholder;
use crate::shape::is_kind;
use crate::tree::{Entry, Node};

impl Build {
    /// An action that is written in place, under a generated name.
    pub(super) fn inline_action(&mut self, name: &Name, entry: &Entry<'_>) -> ActionDef {
        let name = self.spots.text(name, entry.key_span);
        let mut action = self.action_of(name, &entry.key, entry);
        self.common(&mut action, &entry.value);
        action
    }

    /// Something to stand for an action that could not be read.
    pub(super) fn no_action(&mut self, name: Text) -> ActionDef {
        ActionDef {
            id: None,
            version: None,
            spot: name.spot,
            name,
            description: None,
            implementation: placeholder(),
            requires: None,
            produces: None,
            execution: Execution::default(),
            effects: None,
        }
    }

    /// An action with a name, as under `actions` or in a document of its own.
    pub(super) fn action(&mut self, name: Text, node: &Node<'_>) -> ActionDef {
        let short = node.entries().iter().find(|entry| is_kind(&entry.key)).map(|entry| (&*entry.key, entry));
        // As it is stored: `kind: shell` beside `implementation: {…}`.
        let stored = || Some((node.get("kind")?.text()?, node.entry("implementation")?));
        let Some((kind, entry)) = short.or_else(stored) else { return self.no_action(name) };
        let mut action = self.action_of(name, kind, entry);
        action.id = self.name(node, "id");
        action.version = self.count(node, "version");
        action.description = self.name(node, "description");
        self.common(&mut action, node);
        self.common(&mut action, &entry.value);
        action
    }

    fn action_of(&mut self, name: Text, kind: &str, entry: &Entry<'_>) -> ActionDef {
        let mut action = self.no_action(name);
        action.spot = self.spots.add(entry.key_span);
        self.taint(action.spot, entry.value.span);
        action.implementation = self.implementation(kind, &entry.value);
        action
    }

    /// The keys that every kind has; what is written nearer to the kind wins.
    fn common(&mut self, action: &mut ActionDef, node: &Node<'_>) {
        action.requires = self.schema(node, "requires").or(action.requires.take());
        action.produces = self.schema(node, "produces").or(action.produces.take());
        action.effects = self.word(node, "effects").or(action.effects);
        let timeout = self.duration(node, "timeout");
        match &mut action.implementation {
            // Its own field, which has been read.
            Implementation::HumanGate(gate) => gate.timeout_ms = gate.timeout_ms.or(timeout),
            Implementation::WaitEvent(wait) => wait.timeout_ms = wait.timeout_ms.or(timeout),
            _ => action.execution.timeout_ms = timeout.or(action.execution.timeout_ms),
        }
        if let Some(execution) = node.get("execution") {
            let own = &mut action.execution;
            own.timeout_ms = self.duration(execution, "timeout").or(own.timeout_ms);
            own.on_timeout = self.word(execution, "on_timeout").or(own.on_timeout);
            own.retry_policy = self.retry(execution, "retry_policy").or(own.retry_policy);
        }
    }
}
