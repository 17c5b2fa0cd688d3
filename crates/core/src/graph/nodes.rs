//! Nodes: who performs each, what goes in and what comes out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::actions::KnownAction;
use super::check::Check;
use super::flow::Flow;
use super::joins::BranchFacts;
use super::scope::{BRANCH, ERROR, Items, NEEDS, NeedsOf, OF_RUN, RESULT, Scope};
use super::shape::{Part, Shape, Slot};
use super::tasks::{Parts, Place, is_lone_action};
use super::types::Written;
use super::{Coordinated, Node, NodeInput, Perform, Response, Step, Task, WriteTo, codes};
use crate::def::{Effect, FanOut, Implementation, Inline, Kind, Name, NodeDef, NodeTimeout, TaskDef, Text};
use crate::problem::Problem;

/// The compiler of one graph: the checker, the bones, and what has been compiled so far.
pub(super) struct Compiler<'a, 's> {
    pub(super) check: Check<'a>,
    pub(super) shape: &'s Shape<'a>,
    pub(super) flow: &'s Flow,
    pub(super) items: Items,
    pub(super) actions: HashMap<Name, KnownAction>,
    /// What the expressions of each node see.
    pub(super) scopes: Vec<Scope>,
    /// Tasks as nodes refer to them.
    apart: HashMap<Name, Arc<Task>>,
    /// Tasks as they were written on their nodes, by the task's name.
    on_nodes: BTreeMap<Name, Arc<Task>>,
}

impl<'a, 's> Compiler<'a, 's> {
    pub(super) fn new(mut check: Check<'a>, shape: &'s Shape<'a>, flow: &'s Flow) -> Compiler<'a, 's> {
        let mut items = Items::default();
        let visible = visible_items(shape, &mut items, &mut check);
        let scopes = scopes(shape, flow, &visible);
        let mut actions = HashMap::new();
        let bundle = check.bundle;
        for (name, def) in &bundle.actions {
            let known = check.action(name, def);
            actions.insert(name.clone(), known);
        }
        bundle.prompts.values().for_each(|prompt| check.prompt(prompt));
        Compiler {
            check,
            shape,
            flow,
            items,
            actions,
            scopes,
            apart: HashMap::new(),
            on_nodes: BTreeMap::new(),
        }
    }

    /// The task of this name as something by itself.
    pub(super) fn task_apart(&mut self, text: &Text) -> Option<Arc<Task>> {
        if let Some(task) = self.apart.get(&text.text) {
            return Some(task.clone());
        }
        let bundle = self.check.bundle;
        let Some(def) = bundle.tasks.get(&text.text) else {
            self.check.unknown(codes::UNKNOWN_TASK, text, "task", bundle.tasks.keys().map(|name| &**name));
            return None;
        };
        let parts = Parts { actions: &self.actions, items: &self.items };
        let task = self.check.task(&text.text, def, Place::Apart, &parts).task;
        self.apart.insert(text.text.clone(), task.clone());
        Some(task)
    }

    /// Every task of the bundle by name. One that was written on a node is as it is there.
    pub(super) fn all_tasks(&mut self) -> BTreeMap<Name, Arc<Task>> {
        let mut all = std::mem::take(&mut self.on_nodes);
        let bundle = self.check.bundle;
        for name in bundle.tasks.keys() {
            if !all.contains_key(name) {
                let task = self.task_apart(&Text::new(name.clone()));
                all.extend(task.map(|task| (name.clone(), task)));
            }
        }
        all
    }

    pub(super) fn node(&mut self, at: usize, schemas: Written<'_>) -> Node {
        let shape = self.shape;
        let slot = &shape.slots[at];
        let mut node = blank(slot);
        node.out.clone_from(&shape.out[at]);
        let Some(def) = slot.def else {
            self.behind(slot, &mut node);
            return node;
        };
        let bundle = self.check.bundle;
        let task = bundle.tasks.get(&def.task.text).map(|task| &**task);
        if matches!(slot.part, Part::Whole | Part::Head) {
            self.kind_keys(def);
        }
        match slot.part {
            Part::Whole | Part::Items => self.performed(at, def, task, &mut node),
            Part::Head => {
                node.writes_nothing = true;
                node.input = NodeInput::Empty;
                node.estimate = def.estimate;
            }
            _ => {}
        }
        if matches!(slot.part, Part::Whole | Part::Gather) {
            self.output(at, (def, task), schemas, &mut node);
        }
        node
    }

    fn performed(&mut self, at: usize, def: &'a NodeDef, task_def: Option<&'a TaskDef>, node: &mut Node) {
        let scope = self.scopes[at].clone();
        node.fan_out = def.fan_out;
        node.timeout_ms = def.timeout_ms.or(task_def.and_then(|task| task.timeout_ms));
        node.timeout_adaptive = def.timeout_adaptive;
        node.budget = def.budget;
        node.may_mutate = def.may_mutate;
        node.estimate = def.estimate;
        node.on_timeout = on_timeout(def, task_def, &self.actions);
        node.on_error = self.rules(&def.on_error, &scope.with(ERROR));
        if node.on_timeout == NodeTimeout::Retry {
            // A task's own timeout follows `on_timeout`, then what is written.
            let written = std::mem::take(&mut node.on_error);
            node.on_error = self.retry_on_timeout().into_iter().chain(written).collect();
        }
        self.check.node_times(def, task_def, &Parts { actions: &self.actions, items: &self.items });
        let mapped = def.input_mapping.as_ref().map(|mapping| {
            self.check.mapping_secrets(mapping);
            NodeInput::Mapped(self.check.tree(mapping, &scope, &self.items))
        });
        let (task, default) = match task_def.filter(|_| def.inline != Inline::No) {
            Some(task_def) => self.inline(def, task_def, &scope),
            None => (self.task_apart(&def.task), None),
        };
        let Some(task) = task else { return };
        let spot = def.reference.spot;
        if let (Some(mapping), Some(schema)) = (&def.input_mapping, &task.input_schema) {
            self.check.input_fits(mapping, schema, &format!("task `{}`", task.name), spot);
        }
        if let (Some(mapping), Some(schema), true) =
            (&def.input_mapping, requires(&task), def.inline != Inline::No)
        {
            self.check.input_fits(mapping, schema, &format!("action `{}`", task.name), spot);
        }
        let lone = task_def.is_some_and(|task| is_lone_action(def, task));
        let shape = self.shape;
        let has_needs = node.unit.is_some_and(|unit| !shape.units[unit.0 as usize].needs.is_empty());
        node.input = match (mapped, default) {
            (Some(mapped), _) => mapped,
            _ if calls_workflow(&task) => NodeInput::Empty,
            (None, Some(default)) => default,
            (None, None) if has_needs => NodeInput::Needs,
            (None, None) => NodeInput::RunInput,
        };
        node.perform = perform(task, lone);
    }

    /// A task written on its node, and what it gets without a mapping.
    fn inline(
        &mut self,
        def: &'a NodeDef,
        task_def: &TaskDef,
        scope: &Scope,
    ) -> (Option<Arc<Task>>, Option<NodeInput>) {
        let lone = is_lone_action(def, task_def);
        let mapping = def.input_mapping.as_ref();
        let place = match mapping {
            _ if lone => Place::Action { node: scope, mapping },
            Some(_) => Place::Apart,
            None => Place::Steps { node: scope },
        };
        let parts = Parts { actions: &self.actions, items: &self.items };
        let built = self.check.task(&def.task.text, task_def, place, &parts);
        self.on_nodes.entry(def.task.text.clone()).or_insert_with(|| built.task.clone());
        let input = if lone { NodeInput::Named(built.reads) } else { NodeInput::NamedInput(built.reads) };
        (Some(built.task), Some(input))
    }

    fn output(
        &mut self,
        at: usize,
        written: (&'a NodeDef, Option<&'a TaskDef>),
        schemas: Written<'_>,
        node: &mut Node,
    ) {
        let (def, task) = written;
        let outside = self.flow.outside(at) && !self.flow.gave_up;
        let scope = self.scopes[at].with(RESULT);
        let action = task.and_then(|task| match &task.steps[..] {
            [only] => self.actions.get(&only.action.text).map(|known| known.action.clone()),
            _ => None,
        });
        let lone = task.is_some_and(|task| is_lone_action(def, task));
        if let Some(writes) = &def.output_mapping {
            node.output = Some(self.check.writes(writes, &scope, &self.items));
            for write in &writes.0 {
                self.check.mapping_secrets(&write.value);
                if outside {
                    self.check.write_fits(write, schemas);
                }
            }
        } else {
            node.writes_nothing = match action.as_ref().map(|action| &action.def.implementation) {
                Some(Implementation::UpdateContext(_)) => lone,
                Some(Implementation::Assert(_) | Implementation::Sleep(_)) => true,
                _ => false,
            };
            if outside && !node.writes_nothing {
                self.check.default_write_fits(&def.reference.text, def.reference.spot, schemas);
            }
        }
        let kind = action.as_ref().map(|action| &action.def.implementation);
        if let Some(Implementation::UpdateContext(update)) = kind.filter(|_| lone && outside) {
            update.set.0.iter().for_each(|write| self.check.write_fits(write, schemas));
        }
    }

    /// What a mutation put behind a node. Its input is handed to it by the coordinator.
    fn behind(&mut self, slot: &Slot<'a>, node: &mut Node) {
        node.writes_nothing = true;
        node.input = NodeInput::Empty;
        match slot.part {
            Part::Validator { task } => {
                let Some(task) = self.task_apart(&Text::new(task.clone())) else { return };
                node.timeout_ms = task.timeout_ms;
                node.perform = perform(task, false);
            }
            _ => node.perform = Perform::Review,
        }
    }

    /// Keys that the other kind of workflow has.
    fn kind_keys(&mut self, def: &NodeDef) {
        let spot = def.reference.spot;
        if self.check.bundle.workflow.kind == Kind::Dag {
            if def.fan_out == FanOut::All {
                self.check.graph_only(
                    spot,
                    "`fan_out`",
                    "in a dag every node that needs this one follows it",
                );
            }
            return;
        }
        let when = def.when.as_ref().map(|text| text.spot);
        let foreach = def.foreach.as_ref().map(|foreach| foreach.items.spot);
        for (key, found, help) in [
            (
                "needs",
                def.needs.first().map(|need| need.spot),
                "write `next` on the node before, or `kind: dag`",
            ),
            ("join", def.join.map(|_| spot), "a graph joins branches with `synchronization` on a transition"),
            ("when", when, "write the condition on the transitions that lead here"),
            ("foreach", foreach, "write `foreach` on the transition that leads here"),
        ] {
            let Some(found) = found else { continue };
            self.check.report(
                Problem::error(
                    codes::DAG_ONLY,
                    found,
                    format!("`{key}` on node `{}` has no place in a graph", def.reference),
                )
                .label("only a dag has this")
                .help(help),
            );
        }
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
        on_timeout: NodeTimeout::Fail,
        budget: None,
        may_mutate: None,
        estimate: None,
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

fn requires(task: &Task) -> Option<&crate::schema::Schema> {
    match &task.steps[..] {
        [only] if matches!(only.input, super::StepInput::Whole { .. }) => only.action.requires.as_ref(),
        _ => None,
    }
}

fn calls_workflow(task: &Task) -> bool {
    matches!(&task.steps[..], [only] if matches!(only.action.coordinated, Some(Coordinated::WorkflowCall(_))))
}

/// The node's, or that of the action which is all its task.
fn on_timeout(def: &NodeDef, task: Option<&TaskDef>, actions: &HashMap<Name, KnownAction>) -> NodeTimeout {
    let only = task.and_then(|task| match &task.steps[..] {
        [only] => actions.get(&only.action.text),
        _ => None,
    });
    let of_action = only.and_then(|known| known.action.def.execution.on_timeout);
    if def.on_timeout == NodeTimeout::Retry { NodeTimeout::Retry } else { of_action.unwrap_or_default() }
}

/// What a fan-in must know of this node.
pub(super) fn facts(at: usize, node: &Node, explicit_writes: bool) -> BranchFacts {
    let mut facts = BranchFacts { writer: explicit_writes.then_some(at), ..BranchFacts::default() };
    // A task that must run once asks a human when it is lost.
    facts.waits = matches!(node.perform, Perform::Review)
        || node.task().is_some_and(|task| task.effect == Effect::Once)
        || node
            .on_error
            .iter()
            .any(|rule| matches!(rule.response, Response::Escalate | Response::AddReview | Response::Pause));
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

/// Whether the author made this node write: a mapping, or an `update_context` on the node itself.
pub(super) fn writes_on_purpose(node: &Node) -> bool {
    let sets = matches!(&node.perform, Perform::Coordinator { task, inline: true }
        if matches!(task.steps[..], [Step { ref action, .. }] if matches!(action.coordinated, Some(Coordinated::UpdateContext { .. }))));
    sets || node.output.as_ref().is_some_and(|writes: &Vec<WriteTo>| !writes.is_empty())
}

/// Which `foreach` names can be read at each node: those of every `foreach` that leads to it.
fn visible_items(shape: &Shape<'_>, items: &mut Items, check: &mut Check<'_>) -> Vec<u64> {
    let bits: Vec<u64> = shape
        .arrows
        .iter()
        .map(|arrow| arrow.foreach().and_then(|foreach| foreach.item_name.as_ref()))
        .map(|name| {
            name.map_or(0, |name| {
                check.reference(name, "foreach item");
                items.add(&name.text)
            })
        })
        .collect();
    let hub = shape.slots.len();
    let mut visible = vec![0u64; hub + 1];
    let mut todo: Vec<usize> = shape
        .arrows
        .iter()
        .zip(&bits)
        .filter(|(_, bit)| **bit != 0)
        .map(|(arrow, _)| arrow.from.0 as usize)
        .collect();
    let give = |visible: &mut Vec<u64>, to: usize, bits: u64, todo: &mut Vec<usize>| {
        if visible[to] | bits != visible[to] {
            visible[to] |= bits;
            todo.push(to);
        }
    };
    while let Some(at) = todo.pop() {
        let here = visible[at];
        if at == hub {
            shape.jumps_of_all.iter().for_each(|to| give(&mut visible, to.0 as usize, here, &mut todo));
            continue;
        }
        for ix in &shape.out[at] {
            give(
                &mut visible,
                shape.arrows[ix.0 as usize].to.0 as usize,
                here | bits[ix.0 as usize],
                &mut todo,
            );
        }
        shape.jumps[at].iter().for_each(|to| give(&mut visible, to.0 as usize, here, &mut todo));
        if !shape.jumps_of_all.is_empty() {
            give(&mut visible, hub, here, &mut todo);
        }
    }
    visible
}

/// What the expressions of each node see, and last those of the workflow's `on_error`.
fn scopes(shape: &Shape<'_>, flow: &Flow, visible: &[u64]) -> Vec<Scope> {
    let of_unit = |slot: &Slot<'_>| {
        let unit = slot.unit.map(|unit| &shape.units[unit.0 as usize])?;
        let mut names: Vec<Name> =
            unit.needs.iter().map(|need| shape.units[need.0 as usize].def.reference.text.clone()).collect();
        names.sort();
        Some(names)
    };
    let kind = if shape.is_dag { OF_RUN | NEEDS } else { OF_RUN };
    let mut scopes: Vec<Scope> = (0..shape.slots.len())
        .map(|at| Scope {
            roots: if flow.in_branch(at) || shape.broken { kind | BRANCH } else { kind },
            items: visible[at],
            needs: of_unit(&shape.slots[at]).map_or(NeedsOf::Any, NeedsOf::These),
            ..Scope::default()
        })
        .collect();
    scopes.push(Scope { roots: kind | BRANCH, items: u64::MAX, ..Scope::default() });
    scopes
}
