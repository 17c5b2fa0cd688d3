//! Tasks and their steps.

use std::sync::Arc;

use wonder_core::def::{Name, RetryOn, Spot, StepCondition, StepDef, StepVerdict, TaskDef, Text};

use super::{Build, DocumentKind};
use crate::shape::is_kind;
use crate::tree::{Data, Entry, Node};

impl Build {
    /// A task with a name. Actions written in its steps become `task:NAME/REF`.
    pub(super) fn task(&mut self, name: Text, node: &Node<'_>) -> TaskDef {
        let within = format!("task:{name}");
        self.taint(name.spot, node.span);
        let steps = self.steps(node, &within);
        let retry = self.retry(node, "retry");
        // A task that was written on its node, in the form that `validate --expand` prints.
        let of_node = retry.is_some() && name.text.starts_with("node:");
        let retry_on = if of_node { RetryOn::AnyFailure } else { RetryOn::Request };
        if self.is_wrong(node, "timeout") {
            self.untimed_steps(&steps);
        }
        TaskDef {
            id: self.name(node, "id"),
            version: self.count(node, "version"),
            spot: name.spot,
            description: self.name(node, "description"),
            project_id: self.name(node, "project_id"),
            library_id: self.name(node, "library_id"),
            tags: self.names(node, "tags"),
            input_schema: self.schema(node, "input_schema"),
            output_schema: self.schema(node, "output_schema"),
            retry,
            retry_on,
            timeout_ms: self.duration(node, "timeout"),
            steps,
            created_at: self.name(node, "created_at"),
            updated_at: self.name(node, "updated_at"),
            name,
        }
    }

    /// Nothing is said of the missing time limits of these: one is written, and could not be read.
    pub(super) fn untimed_steps(&mut self, steps: &[StepDef]) {
        let actions = steps.iter().filter_map(|step| self.actions.get(&step.action.text));
        let spots: Vec<Spot> = actions.map(|action| action.spot).collect();
        self.untimed.extend(spots);
    }

    pub(super) fn steps(&mut self, node: &Node<'_>, within: &str) -> Vec<StepDef> {
        let items = node.get("steps").map_or(&[][..], Node::items);
        let mut steps: Vec<(i64, StepDef)> = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let place = i64::try_from(at).unwrap_or(i64::MAX);
            let ordinal = self.count(item, "ordinal").unwrap_or(place);
            steps.push((ordinal, self.step(item, at, within)));
        }
        steps.sort_by_key(|(ordinal, _)| *ordinal);
        steps.into_iter().map(|(_, step)| step).collect()
    }

    fn step(&mut self, node: &Node<'_>, at: usize, within: &str) -> StepDef {
        let work = node.entries().iter().find(|entry| is_kind(&entry.key) || entry.key == "action");
        let place = work.map_or(node.span, |entry| entry.key_span);
        let written = self.text(node, "ref");
        let reference = written.unwrap_or_else(|| self.spots.text(&format!("step_{}", at + 1), place));
        let (action, version) = self.step_action(work, &reference, within);
        let spot = reference.spot;
        self.taint(spot, node.span);
        let asked = self.count(node, "action_version");
        self.version_of(DocumentKind::Action, &action, asked);
        StepDef {
            id: self.name(node, "id"),
            action_version: asked.or(version),
            input_mapping: self.input_mapping(node),
            output_mapping: self.writes(node, "output_mapping"),
            on_failure: self.word(node, "on_failure").unwrap_or_default(),
            condition: self.condition(node),
            artifact_above: self.count(node, "artifact_above"),
            reference,
            action,
            spot,
        }
    }

    fn step_action(
        &mut self,
        work: Option<&Entry<'_>>,
        reference: &Text,
        within: &str,
    ) -> (Text, Option<u32>) {
        if let Some(entry) = work.filter(|entry| entry.key == "action")
            && let Some((name, version)) = self.name_at(DocumentKind::Action, &entry.value)
        {
            return (name, version);
        }
        let name: Name = format!("{within}/{reference}").into();
        let kind = work.filter(|entry| entry.key != "action");
        let action = match kind {
            Some(entry) => self.inline_action(&name, entry),
            None => self.no_action(Text::new(name.clone())),
        };
        let text = Text { text: name.clone(), spot: action.spot };
        self.actions.insert(name, Arc::new(action));
        (text, None)
    }

    fn condition(&mut self, node: &Node<'_>) -> Option<StepCondition> {
        let written = node.get("condition").or_else(|| node.get("when"))?;
        if matches!(written.data, Data::Map(_)) {
            return Some(StepCondition {
                test: self.text(written, "if")?,
                then: self.word(written, "then").unwrap_or_default(),
                otherwise: self.word(written, "else").unwrap_or(StepVerdict::Skip),
            });
        }
        let test = self.text_of(written)?;
        Some(StepCondition { test, then: StepVerdict::Continue, otherwise: StepVerdict::Skip })
    }

    /// The only step of a task that is written as a kind of action on its node; it is called by the kind.
    pub(super) fn lone_step(&mut self, action: Name, kind: &str, spot: Spot) -> StepDef {
        StepDef {
            id: None,
            reference: Text { text: kind.into(), spot },
            action: Text { text: action, spot },
            action_version: None,
            input_mapping: None,
            output_mapping: None,
            on_failure: Default::default(),
            condition: None,
            artifact_above: None,
            spot,
        }
    }
}
