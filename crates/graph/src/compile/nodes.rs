//! Nodes: who performs each, what goes in and what comes out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::actions::KnownAction;
use super::joins::BranchFacts;
use super::tasks::{Place, is_lone_action};
use super::{CannotCompile, Compiled, Compiler};
use crate::scope::Scope;
use crate::shape::{Part, Slot};
use crate::{Coordinated, Node, NodeInput, Perform, Response, Task};
use wonder_lang::def::{Effect, FanOut, Implementation, Inline, Name, NodeDef, NodeTimeout, TaskDef};

impl<'a> Compiler<'a, '_> {
    /// The task of this name as something by itself.
    pub(super) fn task_apart(&mut self, name: &Name) -> Compiled<Arc<Task>> {
        if let Some(task) = self.apart.get(name) {
            return Ok(task.clone());
        }
        let Some(def) = self.bundle.tasks.get(name) else {
            return Err(CannotCompile::new(format!("there is no task `{name}`")));
        };
        let task = self.task(name, def, Place::Apart)?.task;
        self.apart.insert(name.clone(), task.clone());
        Ok(task)
    }

    /// Every task of the bundle by name. One that was written on a node is as it is there.
    pub(super) fn all_tasks(&mut self) -> Compiled<BTreeMap<Name, Arc<Task>>> {
        let mut all = std::mem::take(&mut self.on_nodes);
        for name in self.bundle.tasks.keys() {
            if !all.contains_key(name) {
                all.insert(name.clone(), self.task_apart(name)?);
            }
        }
        Ok(all)
    }

    pub(super) fn node(&mut self, at: usize) -> Compiled<Node> {
        let shape = self.shape;
        let slot = &shape.slots[at];
        let mut node = blank(slot);
        node.out.clone_from(&shape.out[at]);
        let Some(def) = slot.def else {
            self.behind(slot, &mut node)?;
            return Ok(node);
        };
        let task = self.bundle.tasks.get(&def.task.text).map(|task| &**task);
        match slot.part {
            Part::Whole | Part::Items => self.performed(at, def, task, &mut node)?,
            Part::Head => {
                node.writes_nothing = true;
                node.input = NodeInput::Empty;
                node.estimate = def.estimate;
            }
            _ => {}
        }
        if matches!(slot.part, Part::Whole | Part::Gather) {
            self.output(def, task, &mut node)?;
        }
        Ok(node)
    }

    fn performed(
        &mut self,
        at: usize,
        def: &'a NodeDef,
        task_def: Option<&'a TaskDef>,
        node: &mut Node,
    ) -> Compiled<()> {
        node.fan_out = def.fan_out;
        node.timeout_ms = def.timeout_ms.or(task_def.and_then(|task| task.timeout_ms));
        node.timeout_adaptive = def.timeout_adaptive;
        node.budget = def.budget;
        node.may_mutate = def.may_mutate;
        node.estimate = def.estimate;
        node.max_visits = self.bound(def.max_visits.as_ref())?;
        node.on_timeout = on_timeout(def, task_def, &self.actions);
        node.on_error = self.rules(&def.on_error)?;
        let mapped = match &def.input_mapping {
            Some(mapping) => Some(NodeInput::Mapped(self.tree(mapping)?)),
            None => None,
        };
        let (task, default) = match task_def.filter(|_| def.inline != Inline::No) {
            Some(task_def) => self.inline(def, task_def, at)?,
            None => (self.task_apart(&def.task.text)?, None),
        };
        let lone = task_def.is_some_and(|task| is_lone_action(def, task));
        let shape = self.shape;
        let has_needs = node.unit.is_some_and(|unit| !shape.units[unit.0 as usize].needs.is_empty());
        node.input = match (mapped, default) {
            (Some(mapped), _) => mapped,
            _ if calls_with_mapped_input(&task) => NodeInput::Empty,
            (None, Some(default)) => default,
            (None, None) if has_needs => NodeInput::Needs,
            (None, None) => NodeInput::RunInput,
        };
        node.perform = perform(task, lone);
        if node.leads_with_timeout_rule() {
            // A task's own timeout follows `on_timeout`, then what is written.
            node.on_error.insert(0, self.retry_on_timeout()?);
        }
        Ok(())
    }

    /// A task written on its node, and what it gets without a mapping.
    fn inline(
        &mut self,
        def: &'a NodeDef,
        task_def: &TaskDef,
        at: usize,
    ) -> Compiled<(Arc<Task>, Option<NodeInput>)> {
        let scopes = self.scopes;
        let node: &Scope = &scopes.of[at];
        let lone = is_lone_action(def, task_def);
        let mapped = def.input_mapping.is_some();
        let place = match mapped {
            _ if lone => Place::Action { node, mapped },
            true => Place::Apart,
            false => Place::Steps { node },
        };
        let built = self.task(&def.task.text, task_def, place)?;
        self.on_nodes.entry(def.task.text.clone()).or_insert_with(|| built.task.clone());
        let input = if lone { NodeInput::Named(built.reads) } else { NodeInput::NamedInput(built.reads) };
        Ok((built.task, Some(input)))
    }

    fn output(&mut self, def: &'a NodeDef, task: Option<&'a TaskDef>, node: &mut Node) -> Compiled<()> {
        if let Some(writes) = &def.output_mapping {
            node.output = Some(self.writes(writes)?);
            return Ok(());
        }
        let only = task.and_then(|task| match &task.steps[..] {
            [only] => self.actions.get(&only.action.text),
            _ => None,
        });
        node.writes_nothing = match only.map(|known| &known.action.def.implementation) {
            Some(Implementation::UpdateContext(_)) => task.is_some_and(|task| is_lone_action(def, task)),
            Some(Implementation::Assert(_) | Implementation::Sleep(_)) => true,
            _ => false,
        };
        Ok(())
    }

    /// What a mutation put behind a node. Its input is handed to it by the coordinator.
    fn behind(&mut self, slot: &Slot<'a>, node: &mut Node) -> Compiled<()> {
        node.writes_nothing = true;
        node.input = NodeInput::Empty;
        match slot.part {
            Part::Validator { task } => {
                let task = self.task_apart(task)?;
                node.timeout_ms = task.timeout_ms;
                node.perform = perform(task, false);
            }
            _ => node.perform = Perform::Review,
        }
        Ok(())
    }
}

fn blank(slot: &Slot<'_>) -> Node {
    Node {
        reference: slot.reference.clone(),
        perform: Perform::Pass,
        input: NodeInput::Empty,
        output: None,
        writes_nothing: false,
        out: Vec::new(),
        fan_out: FanOut::FirstMatch,
        on_error: Vec::new(),
        timeout_ms: None,
        timeout_adaptive: false,
        on_timeout: None,
        budget: None,
        may_mutate: None,
        estimate: None,
        max_visits: None,
        unit: slot.unit,
        behind: slot.behind,
        stands_for: slot.stands_for,
    }
}

/// The coordinator performs a task that is one coordinated action; `lone` says it was written on the node.
fn perform(task: Arc<Task>, lone: bool) -> Perform {
    match &task.steps[..] {
        [only] if only.action.coordinated.is_some() => Perform::Coordinator { task, inline: lone },
        _ => Perform::Worker(task),
    }
}

/// It calls a workflow, whose input is what is mapped: what its texts name is nothing of the child's.
fn calls_with_mapped_input(task: &Task) -> bool {
    let [only] = &task.steps[..] else { return false };
    matches!(&only.action.coordinated, Some(Coordinated::WorkflowCall(call)) if call.with.is_none())
}

/// The node's, or that of the action which is all its task.
fn on_timeout(
    def: &NodeDef,
    task: Option<&TaskDef>,
    actions: &HashMap<Name, KnownAction>,
) -> Option<NodeTimeout> {
    let only = task.and_then(|task| match &task.steps[..] {
        [only] => actions.get(&only.action.text),
        _ => None,
    });
    def.on_timeout.or_else(|| only.and_then(|known| known.action.def.execution.on_timeout))
}

/// What a fan-in must know of this node.
pub(super) fn facts(node: &Node) -> BranchFacts {
    let asks = |rule: &crate::Rule| {
        matches!(rule.response, Response::Escalate | Response::AddReview | Response::Pause)
    };
    // A task that must run once asks a human when it is lost.
    let waits = matches!(node.perform, Perform::Review)
        || node.task().is_some_and(|task| task.effect == Effect::Once)
        || node.on_error.iter().any(asks);
    let mut facts = BranchFacts { waits, longest_action_ms: None };
    for step in node.task().iter().flat_map(|task| &task.steps) {
        let action = &step.action;
        facts.waits |= matches!(
            action.coordinated,
            Some(Coordinated::HumanGate(_) | Coordinated::WorkflowCall(_) | Coordinated::WaitEvent(_))
        );
        facts.longest_action_ms = facts.longest_action_ms.max(action.def.execution.timeout_ms);
    }
    facts
}
