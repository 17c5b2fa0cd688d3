//! What an expression sees at a node or a transition: the run's context, the branch on top of it, and the
//! writes that are about to be made. Nothing is copied but what is read.

use std::sync::Arc;

use crate::def::Name;
use crate::error::Failure;
use crate::event::BranchRef;
use crate::expr::{Read, Scope};
use crate::graph::Graph;
use crate::path::{Root, Target, Way};
use crate::state::{Base, Group, State, Token};
use crate::value::{Map, Value};

/// A write that has been worked out and not yet recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    pub(crate) to: Target,
    pub(crate) value: Value,
}

/// Maps that are laid over the run's state, as writes: keys that they do not have stay as they are.
pub(crate) fn laid_over_state(set: &Value) -> Vec<Pending> {
    fn collect(value: &Value, path: &mut Vec<Arc<str>>, writes: &mut Vec<Pending>) {
        match value {
            Value::Map(map) if !map.is_empty() || path.is_empty() => {
                for (key, value) in map.iter() {
                    path.push(key.clone());
                    collect(value, path, writes);
                    path.pop();
                }
            }
            value => writes.push(Pending { to: Target::state(path.clone()), value: value.clone() }),
        }
    }
    let mut writes = Vec::new();
    if !set.is_null() {
        collect(set, &mut Vec::new(), &mut writes);
    }
    writes
}

#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) graph: &'a Graph,
    pub(crate) branch: Option<BranchRef>,
    pub(crate) last_error: Option<&'a Failure>,
    pub(crate) feedback: Option<&'a Value>,
    pub(crate) result: Option<&'a Value>,
    pub(crate) error: Option<&'a Value>,
    pub(crate) pending: &'a [Pending],
}

impl<'a> View<'a> {
    /// The run's own scope, outside any branch.
    pub(crate) fn of_run(state: &'a State, graph: &'a Graph) -> View<'a> {
        View {
            state,
            graph,
            branch: None,
            last_error: None,
            feedback: None,
            result: None,
            error: None,
            pending: &[],
        }
    }

    pub(crate) fn of_token(state: &'a State, graph: &'a Graph, token: &'a Token) -> View<'a> {
        View {
            branch: token.branch,
            last_error: token.last_error.as_ref(),
            feedback: Some(&token.feedback),
            ..View::of_run(state, graph)
        }
    }

    pub(crate) fn in_branch(self, branch: Option<BranchRef>) -> View<'a> {
        View { branch, ..self }
    }

    pub(crate) fn with_result(self, result: &'a Value) -> View<'a> {
        View { result: Some(result), ..self }
    }

    pub(crate) fn with_error(self, error: &'a Value) -> View<'a> {
        View { error: Some(error), ..self }
    }

    pub(crate) fn with_pending<'b>(self, pending: &'b [Pending]) -> View<'b>
    where
        'a: 'b,
    {
        View { pending, ..self }
    }

    fn group(&self, branch: BranchRef) -> &'a Group {
        &self.state.groups[&branch.group]
    }

    /// A top-level key of `state`, innermost branch first.
    fn state_key(&self, key: &str) -> Option<&'a Value> {
        match self.branch {
            None => self.state.state.get(key),
            Some(at) => {
                let group = self.group(at);
                let own = group.branch(at.branch).local.get(key);
                own.or_else(|| outward(&group.base, |base| base.state.get(key)))
            }
        }
    }

    fn output_key(&self, key: &str) -> Option<&'a Value> {
        match self.branch {
            None => self.state.output.get(key),
            Some(at) => {
                let group = self.group(at);
                let own = group.branch(at.branch).output.as_ref().and_then(|o| o.get(key));
                own.or_else(|| outward(&group.base, |base| base.output.get(key)))
            }
        }
    }

    /// The whole of `state` or `output`, layer on layer: only for an expression that asks for all of it.
    fn whole(&self, root: Root) -> Value {
        let Some(at) = self.branch else {
            return if root == Root::State { self.state.state.clone() } else { self.state.output.clone() };
        };
        let group = self.group(at);
        let mut layers = vec![];
        let branch = group.branch(at.branch);
        layers.push(if root == Root::State {
            branch.local.clone()
        } else {
            branch.output.clone().unwrap_or_default()
        });
        let mut base = Some(&group.base);
        while let Some(layer) = base {
            layers.push(if root == Root::State { layer.state.clone() } else { layer.output.clone() });
            base = layer.up.as_ref();
        }
        let mut all = Map::new();
        for layer in layers.iter().rev() {
            for (key, value) in layer.as_map().into_iter().flatten() {
                all.insert(key.clone(), value.clone());
            }
        }
        Value::from(all)
    }

    fn read_context(&self, root: Root, path: &[Arc<str>]) -> Option<Value> {
        if root == Root::State && path.first().is_some_and(|k| &**k == "_last_error") {
            return self.last_error_value().get_path(&path[1..]).cloned();
        }
        let before = match path.split_first() {
            None => Some(self.whole(root)),
            Some((key, rest)) => {
                let at = if root == Root::State { self.state_key(key) } else { self.output_key(key) };
                at.and_then(|v| v.get_path(rest)).cloned()
            }
        };
        let landed = self.pending.iter().filter(|p| self.branch.is_some() || p.to.root == root);
        let mut value = landed.fold(before, |value, pending| overlay(value, path, pending));
        if root == Root::State && path.is_empty() && self.last_error.is_some() {
            value
                .get_or_insert_with(Value::empty_map)
                .set_path(&["_last_error".into()], self.last_error_value());
        }
        value
    }

    fn last_error_value(&self) -> Value {
        self.last_error.map_or(Value::Null, Failure::to_value)
    }

    fn read_branch(&self, path: &[Arc<str>]) -> Option<Value> {
        let mut at = self.branch?;
        let mut path = path;
        let mut innermost = true;
        while path.first().is_some_and(|k| &**k == "parent") {
            at = self.group(at).outer?;
            path = &path[1..];
            innermost = false;
        }
        let group = self.group(at);
        let Some((key, rest)) = path.split_first() else {
            return Some(self.branch_object(at, innermost));
        };
        match &**key {
            "index" => Some(Value::Int(at.branch.into())),
            "total" => Some(Value::Int(group.total.into())),
            "item" => self.item(at).get_path(rest).cloned(),
            "fan_out_node_id" => Some(Value::String(self.graph.nodes[group.node as usize].reference.clone())),
            "output" => self.branch_output(at, innermost).get_path(rest).cloned(),
            _ => None,
        }
    }

    fn branch_object(&self, at: BranchRef, innermost: bool) -> Value {
        let mut map = Map::new();
        for key in ["index", "total", "item", "fan_out_node_id"] {
            let read = self.in_branch(Some(at)).read_branch(&[key.into()]);
            map.insert(key.into(), read.unwrap_or_default());
        }
        map.insert("output".into(), self.branch_output(at, innermost));
        let parent = self.group(at).outer.map_or(Value::Null, |outer| self.branch_object(outer, false));
        map.insert("parent".into(), parent);
        Value::from(map)
    }

    fn branch_output(&self, at: BranchRef, innermost: bool) -> Value {
        let branch = self.group(at).branch(at.branch);
        let pending = if innermost { self.pending } else { &[] };
        if pending.is_empty() {
            return branch.shown_output().clone();
        }
        let written = pending.iter().fold(branch.output.clone(), |value, p| overlay(value, &[], p));
        written.unwrap_or_default()
    }

    fn item(&self, at: BranchRef) -> Value {
        let items = self.group(at).items.as_list();
        items.and_then(|items| items.get(at.branch as usize)).cloned().unwrap_or_default()
    }

    fn named_item(&self, name: &str) -> Option<Value> {
        let mut at = self.branch;
        while let Some(here) = at {
            let group = self.group(here);
            if group.item_name.as_deref() == Some(name) {
                return Some(self.item(here));
            }
            at = group.outer;
        }
        None
    }

    fn read_needs(&self, path: &[Arc<str>]) -> Option<Value> {
        let Some((key, rest)) = path.split_first() else {
            let all = self.graph.units.iter().zip(&self.state.units);
            return Some(Value::map(all.map(|(unit, state)| (unit.reference.clone(), state.result.clone()))));
        };
        let unit = self.graph.node(self.graph.find_node(key)?).unit?;
        self.state.units[unit.0 as usize].result.get_path(rest).cloned()
    }

    fn read_run(&self, path: &[Arc<str>]) -> Option<Value> {
        let id = self.state.start.as_ref().map(|s| s.id.clone()).unwrap_or_else(|| "".into());
        let run = Value::map([
            ("id", Value::String(id)),
            ("workflow", Value::String(self.graph.name.clone())),
            ("version", Value::Int(self.graph.version.into())),
            ("started_at", Value::from(self.state.started_at.to_text())),
        ]);
        run.get_path(path).cloned()
    }

    fn read_input(&self, path: &[Arc<str>]) -> Option<Value> {
        let input = &self.state.start.as_ref()?.input;
        let found = input.get_path(path).cloned();
        if found.is_none() && path.first().is_some_and(|k| &**k == "feedback") {
            return self.feedback.unwrap_or(&Value::Null).get_path(&path[1..]).cloned();
        }
        found
    }
}

impl Scope for View<'_> {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        match root {
            "input" => self.read_input(path),
            "state" => self.read_context(Root::State, path),
            "output" => self.read_context(Root::Output, path),
            "_branch" => self.read_branch(path),
            "needs" => self.read_needs(path),
            "run" => self.read_run(path),
            "_last_error" => self.last_error_value().get_path(path).cloned(),
            "result" => self.result?.get_path(path).cloned(),
            "error" => self.error?.get_path(path).cloned(),
            name => self.named_item(name)?.get_path(path).cloned(),
        }
    }
}

/// The nearest layer that has it.
fn outward<'a>(base: &'a Arc<Base>, find: impl Fn(&'a Base) -> Option<&'a Value>) -> Option<&'a Value> {
    let mut layer = Some(base);
    while let Some(base) = layer {
        if let Some(found) = find(base) {
            return Some(found);
        }
        layer = base.up.as_ref();
    }
    None
}

/// What stands at `path` once `pending` is written over `before`.
fn overlay(before: Option<Value>, path: &[Arc<str>], pending: &Pending) -> Option<Value> {
    let to = &pending.to.path;
    if pending.to.way == Way::Replace && path.starts_with(to) {
        return pending.value.get_path(&path[to.len()..]).cloned();
    }
    if to.starts_with(path) {
        let mut value = before.unwrap_or_default();
        pending.to.add(value.entry_mut(&to[path.len()..]), pending.value.clone());
        return Some(value);
    }
    before
}

/// A plain object as a scope: its keys are the roots.
pub(crate) struct Roots<'a>(pub(crate) &'a Value);

impl Scope for Roots<'_> {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        self.0.get(root)?.get_path(path).cloned()
    }
}

/// What an action on a node sees: the keys of its input first, then what the node sees.
pub(crate) struct Around<'a> {
    pub(crate) near: &'a Value,
    pub(crate) far: View<'a>,
}

impl Scope for Around<'_> {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        match self.near.get(root) {
            Some(value) => value.get_path(path).cloned(),
            None => self.far.read(root, path),
        }
    }
}

/// `{root: {path: value}}` of everything named; what is absent is left out, so that `has` and `default` work. Its
/// root is there even so: of `state.n` only `n` is absent.
pub(crate) fn named(reads: &[Read], scope: &dyn Scope) -> Value {
    let mut all = Value::empty_map();
    for read in reads {
        let root = std::iter::once(read.root.clone());
        match scope.read(&read.root, &read.path) {
            Some(value) => {
                let path: Vec<Name> = root.chain(read.path.iter().cloned()).collect();
                all.set_path(&path, value);
            }
            None if !read.path.is_empty() && all.get(&read.root).is_none() => {
                all.set_path(&root.collect::<Vec<Name>>(), Value::empty_map());
            }
            None => {}
        }
    }
    all
}
