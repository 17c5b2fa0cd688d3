//! What the expressions of a template give.

use std::cmp::Ordering;
use std::sync::Arc;

use super::budget::{Evaluated, fail};
use super::compare::{compare, equal};
use super::eval::Rendering;
use super::filters::Filter;
use super::functions;
use super::is::Test;
use super::lower::LOOP;
use super::node::{Arg, Comparison, Node, Op};
use super::value::{ListKind, ListOf, MapOf, Val};
use crate::expr::Read;
use crate::value::Value;

/// What a filter, test or function is called with. Each parameter can be given by its place or by its name.
pub(super) struct Call<'t> {
    /// What a filter or test is applied to; nothing for a function.
    pub(super) value: Val<'t>,
    pub(super) positional: Vec<Val<'t>>,
    pub(super) named: Vec<(Arc<str>, Val<'t>)>,
    taken: usize,
}

impl<'t> Call<'t> {
    pub(super) fn new(value: Val<'t>) -> Call<'t> {
        Call { value, positional: Vec::new(), named: Vec::new(), taken: 0 }
    }

    /// The parameter at a place or with a name, if it was given.
    pub(super) fn given(&mut self, at: usize, name: &str) -> Option<Val<'t>> {
        self.taken = self.taken.max(at + 1);
        if let Some(value) = self.positional.get(at) {
            return Some(value.clone());
        }
        let at = self.named.iter().position(|(given, _)| **given == *name)?;
        Some(self.named.swap_remove(at).1)
    }

    /// As [`given`](Self::given), where null says as much as nothing.
    pub(super) fn option(&mut self, at: usize, name: &str) -> Option<Val<'t>> {
        self.given(at, name).filter(|value| !value.is_undefined() && !value.is_null())
    }

    pub(super) fn required(&mut self, at: usize, name: &str) -> Evaluated<Val<'t>> {
        match self.given(at, name) {
            Some(value) => value.defined().map(|()| value),
            None => fail(format!("`{name}` is missing")),
        }
    }

    pub(super) fn flag(&mut self, at: usize, name: &str) -> Evaluated<bool> {
        match self.option(at, name) {
            None => Ok(false),
            Some(Val::Data(Value::Bool(flag))) => Ok(flag),
            Some(value) => fail(format!("`{name}` must be true or false, not a {}", value.type_name())),
        }
    }

    /// A path of keys, such as `attribute='a.b'`.
    pub(super) fn path(&mut self, at: usize, name: &str) -> Evaluated<Option<Arc<str>>> {
        match self.option(at, name) {
            None => Ok(None),
            Some(Val::Data(Value::String(path)) | Val::Safe(path)) => Ok(Some(path)),
            Some(value) => fail(format!("`{name}` must be a text, not a {}", value.type_name())),
        }
    }

    /// Every further parameter.
    pub(super) fn rest(&mut self, from: usize) -> Vec<Val<'t>> {
        self.taken = self.positional.len();
        self.positional.drain(from.min(self.taken)..).collect()
    }

    /// That nothing was given which is not known.
    pub(super) fn done(&self) -> Evaluated<()> {
        match self.named.first() {
            Some((name, _)) => fail(format!("there is no parameter `{name}`")),
            None if self.positional.len() > self.taken => fail("too many parameters"),
            None => Ok(()),
        }
    }
}

impl<'t> Rendering<'t> {
    pub(super) fn eval(&mut self, node: &'t Node) -> Evaluated<Val<'t>> {
        self.budget.steps(1)?;
        match node {
            Node::Const(value) => Ok(Val::Data(value.clone())),
            Node::Path(read) => self.path(node, read),
            Node::Local(name, text) => Ok(self.local(*name).unwrap_or_else(|| self.global(text, node))),
            Node::Captured => Ok(self.captured.take().unwrap_or(Val::Nothing)),
            Node::Unknown(message) => fail(message.as_str()),
            node => {
                self.enter()?;
                let value = self.compound(node);
                self.depth -= 1;
                value
            }
        }
    }

    /// Each arm is a call: what one of them needs on the stack is not there for the others.
    fn compound(&mut self, node: &'t Node) -> Evaluated<Val<'t>> {
        match node {
            Node::Attr(of, name) => self.attr(node, of, name),
            Node::Index(pair) => self.index(node, pair),
            Node::Slice(parts) => self.sliced(parts),
            Node::Not(of) => self.not(of),
            Node::Negate(of) => self.negated(of),
            Node::Binary(op, pair) => self.calculated(*op, pair),
            Node::Concat(parts) => self.joined(parts),
            Node::And(pair) => self.either(pair, false),
            Node::Or(pair) => self.either(pair, true),
            Node::Compare(first, rest) => self.comparisons(first, rest),
            Node::If(parts) => self.conditional(parts),
            Node::Filter(filter, value, args) => self.filter(*filter, value, args),
            Node::Test(test, value, args) => self.test(*test, value, args),
            Node::Call(callee, args) => self.function(callee, args),
            Node::Method(of, name, args) => self.method(of, name, args),
            Node::List(items) => self.list(items, ListKind::List),
            Node::Tuple(items) => self.list(items, ListKind::Tuple),
            Node::Map(pairs) => self.map(pairs),
            _ => fail("this cannot be rendered"),
        }
    }

    fn attr(&mut self, node: &'t Node, of: &'t Node, name: &str) -> Evaluated<Val<'t>> {
        let of = self.eval(of)?;
        of.defined()?;
        self.budget.lookup(name)?;
        Ok(of.attr(name).unwrap_or(Val::Undefined(Some(node))))
    }

    fn index(&mut self, node: &'t Node, pair: &'t (Node, Node)) -> Evaluated<Val<'t>> {
        let of = self.eval(&pair.0)?;
        let key = self.eval(&pair.1)?;
        of.defined()?;
        Ok(self.item(&of, &key)?.unwrap_or(Val::Undefined(Some(node))))
    }

    fn sliced(&mut self, parts: &'t (Node, [Option<Node>; 3])) -> Evaluated<Val<'t>> {
        let of = self.eval(&parts.0)?;
        let mut bounds = [None; 3];
        for (bound, node) in bounds.iter_mut().zip(&parts.1) {
            *bound = node.as_ref().map_or(Ok(None), |node| self.bound(node))?;
        }
        self.slice(&of, bounds)
    }

    fn not(&mut self, of: &'t Node) -> Evaluated<Val<'t>> {
        Ok(Val::bool(!self.truth(of)?))
    }

    fn negated(&mut self, of: &'t Node) -> Evaluated<Val<'t>> {
        let of = self.eval(of)?;
        self.negate(&of)
    }

    fn calculated(&mut self, op: Op, pair: &'t (Node, Node)) -> Evaluated<Val<'t>> {
        let left = self.eval(&pair.0)?;
        let right = self.eval(&pair.1)?;
        self.calculate(op, &left, &right)
    }

    fn joined(&mut self, parts: &'t [Node]) -> Evaluated<Val<'t>> {
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            values.push(self.eval(part)?);
        }
        self.concat(&values)
    }

    /// `and` and `or`: the first if it decides, else the second.
    fn either(&mut self, pair: &'t (Node, Node), decides: bool) -> Evaluated<Val<'t>> {
        let left = self.eval(&pair.0)?;
        left.defined()?;
        if left.is_true() == decides { Ok(left) } else { self.eval(&pair.1) }
    }

    fn conditional(&mut self, parts: &'t (Node, Node, Option<Node>)) -> Evaluated<Val<'t>> {
        match (self.truth(&parts.0)?, &parts.2) {
            (true, _) => self.eval(&parts.1),
            (false, Some(otherwise)) => self.eval(otherwise),
            (false, None) => Ok(Val::Nothing),
        }
    }

    fn filter(&mut self, filter: Filter, value: &'t Node, args: &'t [Arg]) -> Evaluated<Val<'t>> {
        let value = self.eval(value)?;
        let call = self.call(value, args)?;
        filter(self, call)
    }

    fn test(&mut self, test: Test, value: &'t Node, args: &'t [Arg]) -> Evaluated<Val<'t>> {
        let value = self.eval(value)?;
        let call = self.call(value, args)?;
        test(self, call).map(Val::bool)
    }

    fn map(&mut self, pairs: &'t [(Node, Node)]) -> Evaluated<Val<'t>> {
        let mut map = MapOf::default();
        for (key, value) in pairs {
            let key = self.eval(key)?;
            let key = self.key(&key)?;
            let value = self.eval(value)?;
            map.insert(&mut self.budget, key, value)?;
        }
        map.done(&mut self.budget)
    }

    fn list(&mut self, items: &'t [Node], kind: ListKind) -> Evaluated<Val<'t>> {
        let mut list = ListOf::default();
        for item in items {
            let item = self.eval(item)?;
            list.push(&mut self.budget, item)?;
        }
        list.done_as(&mut self.budget, kind)
    }

    /// A path is read without a stop on its way; only its last part may be absent.
    fn path(&mut self, node: &'t Node, read: &'t Read) -> Evaluated<Val<'t>> {
        let Some(mut value) = self.scope.get(&read.root) else {
            let root = self.global(&read.root, node);
            return match &root {
                Val::Undefined(_) if !read.path.is_empty() => fail(format!("`{}` is undefined", read.root)),
                _ if !read.path.is_empty() => Ok(Val::Undefined(Some(node))),
                _ => Ok(root),
            };
        };
        for (at, key) in read.path.iter().enumerate() {
            self.budget.lookup(key)?;
            value = match value.get(key) {
                Some(value) => value,
                None if at + 1 == read.path.len() => return Ok(Val::Undefined(Some(node))),
                None => {
                    let read = Read { root: read.root.clone(), path: read.path[..=at].to_vec() };
                    return fail(format!("`{}` is undefined", Node::Path(read)));
                }
            };
        }
        Ok(Val::Data(value.clone()))
    }

    /// What a name stands for that nothing has assigned.
    fn global(&self, name: &str, node: &'t Node) -> Val<'t> {
        let scope = self.scope.get(name).cloned().map(Val::Data);
        scope.or_else(|| functions::find(name).map(Val::Function)).unwrap_or(Val::Undefined(Some(node)))
    }

    pub(super) fn truth(&mut self, node: &'t Node) -> Evaluated<bool> {
        let value = self.eval(node)?;
        value.defined()?;
        Ok(value.is_true())
    }

    fn bound(&mut self, node: &'t Node) -> Evaluated<Option<i64>> {
        let value = self.eval(node)?;
        value.defined()?;
        match value.as_int() {
            None if !value.is_null() => {
                fail(format!("a bound of a slice must be a whole number, not a {}", value.type_name()))
            }
            bound => Ok(bound),
        }
    }

    fn comparisons(&mut self, first: &'t Node, rest: &'t [(Comparison, Node)]) -> Evaluated<Val<'t>> {
        let mut left = self.eval(first)?;
        for (how, right) in rest {
            let right = self.eval(right)?;
            left.defined()?;
            right.defined()?;
            if !self.compared(*how, &left, &right)? {
                return Ok(Val::bool(false));
            }
            left = right;
        }
        Ok(Val::bool(true))
    }

    pub(super) fn compared(&mut self, how: Comparison, left: &Val<'t>, right: &Val<'t>) -> Evaluated<bool> {
        let budget = &mut self.budget;
        Ok(match how {
            Comparison::Eq => equal(budget, left, right)?,
            Comparison::Ne => !equal(budget, left, right)?,
            Comparison::Lt => compare(budget, left, right)? == Ordering::Less,
            Comparison::Le => compare(budget, left, right)? != Ordering::Greater,
            Comparison::Gt => compare(budget, left, right)? == Ordering::Greater,
            Comparison::Ge => compare(budget, left, right)? != Ordering::Less,
            Comparison::In => self.contains(right, left)?,
            Comparison::NotIn => !self.contains(right, left)?,
        })
    }

    fn call(&mut self, value: Val<'t>, args: &'t [Arg]) -> Evaluated<Call<'t>> {
        let mut call = Call::new(value);
        for arg in args {
            match arg {
                Arg::Positional(node) => {
                    let value = self.eval(node)?;
                    call.positional.push(value);
                }
                Arg::Named(name, node) => {
                    let value = self.eval(node)?;
                    call.named.push((name.clone(), value));
                }
                Arg::Spread(node) => {
                    let list = self.eval(node)?;
                    for item in self.items(&list)?.iter() {
                        self.budget.item()?;
                        call.positional.push(item);
                    }
                }
                Arg::SpreadNamed(node) => {
                    let map = self.eval(node)?;
                    map.defined()?;
                    for pair in map.pairs(&mut self.budget)? {
                        self.budget.entry()?;
                        call.named.push(pair);
                    }
                }
            }
        }
        Ok(call)
    }

    fn function(&mut self, callee: &'t Node, args: &'t [Arg]) -> Evaluated<Val<'t>> {
        let function = self.eval(callee)?;
        let call = self.call(Val::Nothing, args)?;
        match function {
            Val::Function(function) => functions::call(self, function, call),
            Val::Loop(_) => match call.positional.as_slice() {
                [items] if call.named.is_empty() => self.capture(|this| this.recurse(items)),
                _ => fail(format!("`{LOOP}` takes one parameter")),
            },
            Val::Undefined(_) => fail(format!("there is no function `{callee}`")),
            value => fail(format!("a {} cannot be called", value.type_name())),
        }
    }

    fn method(&mut self, of: &'t Node, name: &str, args: &'t [Arg]) -> Evaluated<Val<'t>> {
        let of = self.eval(of)?;
        of.defined()?;
        let call = self.call(Val::Nothing, args)?;
        let Val::Loop(state) = &of else {
            return fail(format!("a {} has no method `{name}`", of.type_name()));
        };
        match name {
            "cycle" => {
                let of = call.positional;
                let at = state.at.get().checked_rem(of.len());
                Ok(at.and_then(|at| of.get(at).cloned()).unwrap_or(Val::Undefined(None)))
            }
            "changed" => {
                let mut told = ListOf::default();
                for value in call.positional {
                    told.push(&mut self.budget, value)?;
                }
                let told = told.done(&mut self.budget)?;
                let before = state.changed.borrow().clone();
                let same = before.map_or(Ok(false), |before| equal(&mut self.budget, &before, &told))?;
                *state.changed.borrow_mut() = Some(told);
                Ok(Val::bool(!same))
            }
            _ => fail(format!("a loop has no method `{name}`")),
        }
    }
}
