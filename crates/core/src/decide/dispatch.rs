//! Sending tasks to workers: their input, their reservation, their turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::command::{Command, TaskOrder};
use crate::def::{Name, Prices};
use crate::error::Failure;
use crate::event::{EventKind, TakenPart, TokenId};
use crate::expr::{Read, Scope};
use crate::graph::{MapTree, Node, NodeInput, Perform, Task, Work};
use crate::lifecycle::{RunStatus, TokenStatus};
use crate::scope::{View, named};
use crate::task::{expression_error, violated};
use crate::value::Value;

use super::Decision;
use super::budget::Room;
use super::fail::Failed;

/// How far down the line to look for a task that fits when the first does not.
pub(super) const LINE_LOOKED_AT_MAX: usize = 1_000;

impl Decision<'_> {
    /// The first in line that can go. False when nobody can.
    pub(super) fn dispatch_next(&mut self) -> bool {
        if !self.has_free_place() {
            return false;
        }
        let mut after = None;
        // Nodes whose tokens have no room now: what costs less may still go, within reach of the first.
        let mut held = BTreeSet::new();
        for _ in 0..LINE_LOOKED_AT_MAX {
            let ready = &self.state().ready;
            let next = match after {
                None => ready.first(),
                Some(last) => {
                    ready.range((std::ops::Bound::Excluded(last), std::ops::Bound::Unbounded)).next()
                }
            };
            let Some(entry) = next.copied() else { return false };
            after = Some(entry);
            let node = self.node_of(entry.1);
            if held.contains(&node) {
                continue;
            }
            match self.dispatch(entry.1) {
                Sent::Moved => return true,
                Sent::Held => held.insert(node),
            };
        }
        false
    }

    pub(super) fn has_free_place(&self) -> bool {
        let told = self.state().start.as_ref().and_then(|start| start.max_parallel);
        let max = told.or(self.run.graph().max_parallel);
        max.is_none_or(|max| self.state().token_counts.tasks_out < u64::from(max))
    }

    /// A token that comes back from a backoff or a review: out at once, if it can.
    pub(super) fn dispatch_waiting(&mut self, id: TokenId) -> bool {
        let node = self.node_of(id);
        let is_worker = matches!(self.run.graph().node(node).perform, Perform::Worker(_));
        let can = is_worker && self.state().status == RunStatus::Running && self.has_free_place();
        can && matches!(self.dispatch(id), Sent::Moved)
    }

    fn dispatch(&mut self, id: TokenId) -> Sent {
        if self.is_pending(id) && self.held_back(id) {
            return Sent::Moved;
        }
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let Perform::Worker(task) = &node.perform else { return Sent::Held };
        let input = match self.task_input(id, node) {
            Ok(input) => input,
            Err(_) if !self.is_pending(id) => return Sent::Held,
            Err(failure) => {
                self.fail(id, Failed::of(failure));
                return Sent::Moved;
            }
        };
        let reserved = self.worst_case(id, task, &input);
        match self.room_for(node, &reserved) {
            Room::Fits => {}
            Room::LaterInNode | Room::Later => return Sent::Held,
            Room::Never(_) if !self.is_pending(id) => return Sent::Held,
            Room::Never(over) => return self.over_budget(id, over),
        }
        let token = self.token(id);
        let (attempt, generation) = (token.attempt + 1, token.generation);
        let (input, taken) = self.by_reference(id, node, input);
        self.record(EventKind::TaskDispatched { token: id, attempt, generation, input, taken, reserved });
        let order = self.run.order(id).expect("a token that was just dispatched is owed a task");
        self.request(Command::RunTask(order));
        Sent::Moved
    }

    /// A token on its way back to a worker cannot fail on the way: it lines up first.
    fn is_pending(&self, id: TokenId) -> bool {
        self.token(id).status() == TokenStatus::Pending
    }

    /// What the node's mapping gives its task, with overrides laid over, checked.
    pub(super) fn task_input(&self, id: TokenId, node: &Node) -> Result<Value, Failure> {
        let token = self.token(id);
        let mut input = if node.stands_for.is_some() {
            Value::map([("result", token.carried.clone())])
        } else {
            self.mapped_input(node, self.view(id))?
        };
        match (token.overrides.input.as_map(), input.as_map().is_some()) {
            (Some(over), true) => {
                let by_roots = matches!(node.input, NodeInput::Named(_)) && node.stands_for.is_none();
                for (key, value) in over {
                    lay_over(&mut input, key, value, by_roots);
                }
            }
            _ if !token.overrides.input.is_null() => input = token.overrides.input.clone(),
            _ => {}
        }
        if let Some(schema) = node.task().and_then(|task| task.input_schema.as_ref()) {
            violated("the input of the task", schema.check(&input))?;
        }
        Ok(input)
    }

    /// The input as it is recorded: large parts that are in the context as they are, are named.
    fn by_reference(&self, id: TokenId, node: &Node, mut input: Value) -> (Value, Vec<TakenPart>) {
        let token = self.token(id);
        if node.stands_for.is_some() || !token.overrides.input.is_null() {
            return (input, Vec::new());
        }
        let mut taken = Vec::new();
        match &node.input {
            NodeInput::Named(reads) => {
                // Most parts are small: nothing is made for those.
                let is_large = |read: &Read| {
                    let value = input.get(&read.root).and_then(|root| root.get_path(&read.path));
                    value.is_some_and(|value| !value.fits(TAKEN_BYTES_MIN))
                };
                let large: Vec<&Read> = reads.iter().filter(|read| is_large(read)).collect();
                for read in large {
                    let at = std::iter::once(&read.root).chain(&read.path).cloned().collect();
                    take_out(&mut input, at, read, &mut taken);
                }
            }
            NodeInput::Mapped(tree) => taken_by_mapping(tree, &mut Vec::new(), &mut input, &mut taken),
            NodeInput::NamedInput(_) | NodeInput::RunInput | NodeInput::Needs | NodeInput::Empty => {}
        }
        (input, taken)
    }

    fn mapped_input(&self, node: &Node, view: View<'_>) -> Result<Value, Failure> {
        Ok(match &node.input {
            NodeInput::Mapped(tree) => tree.eval(&view).map_err(|error| {
                let mut failure = expression_error(error);
                let written = self.run.graph().written(node);
                failure.message = format!("input mapping of {written}: {}", failure.message);
                failure
            })?,
            NodeInput::Named(reads) => named(reads, &view),
            NodeInput::NamedInput(reads) => {
                let all = named(reads, &view);
                let mut input = all.get("input").cloned().unwrap_or_else(Value::empty_map);
                for (key, value) in all.as_map().into_iter().flatten().filter(|(key, _)| &***key != "input") {
                    input.set_path(std::slice::from_ref(key), value.clone());
                }
                input
            }
            NodeInput::RunInput => view.read("input", &[]).unwrap_or_else(Value::empty_map),
            NodeInput::Needs => {
                let graph = self.run.graph();
                let needs = node.unit.map(|unit| graph.unit(unit).needs.as_slice()).unwrap_or_default();
                let results = needs.iter().map(|need| {
                    (graph.unit(*need).reference.clone(), self.state().units[need.0 as usize].result.clone())
                });
                Value::map(results)
            }
            NodeInput::Empty => Value::empty_map(),
        })
    }
}

/// Smaller parts are recorded where they are used: a log is read by people.
const TAKEN_BYTES_MIN: usize = 1_024;

fn taken_by_mapping(tree: &MapTree, at: &mut Vec<Name>, input: &mut Value, taken: &mut Vec<TakenPart>) {
    match tree {
        MapTree::Expr(expr) => {
            if let Some(read) = expr.as_path() {
                take_out(input, at.clone(), read, taken);
            }
        }
        MapTree::Map(entries) => {
            for (key, tree) in entries {
                at.push(key.clone());
                taken_by_mapping(tree, at, input, taken);
                at.pop();
            }
        }
        MapTree::List(_) | MapTree::Literal(_) => {}
    }
}

/// Takes a large part of the input out of it, if it stands in the context by this name.
fn take_out(input: &mut Value, at: Vec<Name>, read: &Read, taken: &mut Vec<TakenPart>) {
    let in_context = matches!(&*read.root, "state" | "output" | "input");
    // One part lies within another where a text names both a value and something in it.
    let overlaps = |part: &TakenPart| part.at.starts_with(&at) || at.starts_with(&part.at);
    if !in_context || at.is_empty() || taken.iter().any(overlaps) {
        return;
    }
    if input.get_path(&at).is_some_and(|value| !value.fits(TAKEN_BYTES_MIN)) {
        input.set_path(&at, Value::Null);
        let from = std::iter::once(&read.root).chain(&read.path).map(Clone::clone).collect();
        taken.push(TakenPart { at, from });
    }
}

/// Puts what somebody gave for a node's input over what it would have. Where the input is what the node's own
/// texts name, under their roots, people mean the keys of `input`, and within another root the keys of that.
fn lay_over(input: &mut Value, key: &Arc<str>, value: &Value, by_roots: bool) {
    const ROOTS: [&str; 7] = ["input", "state", "output", "needs", "run", "_branch", "_last_error"];
    let is_root = ROOTS.contains(&&**key) || input.get(key).is_some();
    match value.as_map() {
        Some(inner) if by_roots && is_root => {
            for (within, value) in inner {
                input.set_path(&[key.clone(), within.clone()], value.clone());
            }
        }
        _ if by_roots && !is_root => input.set_path(&["input".into(), key.clone()], value.clone()),
        _ => input.set_path(std::slice::from_ref(key), value.clone()),
    }
}

/// What became of a token's turn.
pub(super) enum Sent {
    /// Out, skipped or failed: it is not in line any more. Or the run was paused on its behalf.
    Moved,
    /// No room in a budget yet.
    Held,
}

/// The pinned prices of the profiles that a task's calls may use: none for a task without model calls.
fn prices(task: &Task, pinned: &BTreeMap<Name, Prices>) -> BTreeMap<Name, Prices> {
    let calls = task.steps.iter().any(|step| match &step.action.work {
        Some(Work::LlmCall(_)) => true,
        Some(Work::McpTool(call)) => call.sampling().is_some(),
        _ => false,
    });
    if calls { pinned.clone() } else { BTreeMap::new() }
}

/// Kept with the order, so that recovery sends the same one.
impl crate::run::Run {
    pub(crate) fn order(&self, id: TokenId) -> Option<Box<TaskOrder>> {
        let state = self.state();
        let token = state.tokens.get(&id)?;
        let crate::state::Place::Dispatched { input } = &token.place else { return None };
        let out = state.out.get(&(id, token.attempt))?;
        let node = self.graph().node(crate::graph::NodeIx(token.node));
        let task = node.task()?;
        let start = state.start.as_ref()?;
        let mut overrides = token.overrides.clone();
        overrides.downgrades = out.downgrades;
        Some(Box::new(TaskOrder {
            run: start.id.clone(),
            token: id,
            attempt: token.attempt,
            node: node.reference.clone(),
            task: task.name.clone(),
            version: task.version,
            input: input.clone(),
            feedback: token.feedback.clone(),
            overrides,
            generation: token.generation,
            tries_before: token.attempt.saturating_sub(1) + token.tries,
            prices: prices(task, &start.prices),
            allowance: self.allowance(node, &out.reserved),
            may_mutate: node.may_mutate.is_some(),
            rank: state.ranks.get(token.node as usize).copied().unwrap_or(0),
            timeout_ms: {
                let own = start.timeouts_ms.get(&node.reference).copied().max(node.timeout_ms);
                out.wall_left_ms.map_or(own, |left| Some(own.map_or(left, |own| own.min(left))))
            },
        }))
    }
}
