//! From minijinja's syntax tree, which borrows the text, to a tree of our own; and what the template reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value as Literal;
use minijinja::machinery::ast::{self, BinOpKind, CompareOpKind, Expr, UnaryOpKind};

use super::node::{Arg, Block, Comparison, For, Node, Op, Stmt, Target};
use super::{filters, functions, is};
use crate::expr::Read;
use crate::value::{Map, Value};

/// The name a loop goes by in its body; nothing else can have it.
pub(super) const LOOP: &str = "loop";

pub(super) struct Lowered {
    pub(super) body: Block,
    /// How many names are assigned, and thus numbered.
    pub(super) names: usize,
    /// Where `loop` is among them.
    pub(super) loop_name: usize,
    pub(super) reads: Vec<Read>,
}

pub(super) fn lower(template: &ast::Stmt<'_>) -> Lowered {
    let mut names = Names::default();
    let loop_name = names.number(LOOP);
    names.collect(std::slice::from_ref(template));
    let assigned = vec![0; names.0.len()];
    let mut lower = Lower { names, assigned, scopes: vec![Vec::new()], reads: Vec::new() };
    let body = match template {
        ast::Stmt::Template(template) => lower.block(&template.children),
        _ => Block::new(),
    };
    Lowered { body, names: lower.names.0.len(), loop_name, reads: lower.reads }
}

/// Every name that is assigned anywhere, with its number.
#[derive(Default)]
struct Names(BTreeMap<Arc<str>, usize>);

impl Names {
    fn number(&mut self, name: &str) -> usize {
        let next = self.0.len();
        *self.0.entry(name.into()).or_insert(next)
    }

    fn collect(&mut self, block: &[ast::Stmt<'_>]) {
        for stmt in block {
            match stmt {
                ast::Stmt::Template(of) => self.collect(&of.children),
                ast::Stmt::ForLoop(of) => {
                    self.target(&of.target);
                    self.collect(&of.body);
                    self.collect(&of.else_body);
                }
                ast::Stmt::IfCond(of) => {
                    self.collect(&of.true_body);
                    self.collect(&of.false_body);
                }
                ast::Stmt::WithBlock(of) => {
                    of.assignments.iter().for_each(|(target, _)| self.target(target));
                    self.collect(&of.body);
                }
                ast::Stmt::Set(of) => self.target(&of.target),
                ast::Stmt::SetBlock(of) => {
                    self.target(&of.target);
                    self.collect(&of.body);
                }
                ast::Stmt::AutoEscape(of) => self.collect(&of.body),
                ast::Stmt::FilterBlock(of) => self.collect(&of.body),
                ast::Stmt::EmitExpr(_) | ast::Stmt::EmitRaw(_) | ast::Stmt::Do(_) => {}
            }
        }
    }

    fn target(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(name) => drop(self.number(name.id)),
            Expr::List(items) => items.items.iter().for_each(|item| self.target(item)),
            _ => {}
        }
    }
}

struct Lower {
    names: Names,
    /// In how many of the scopes we are in each name is assigned.
    assigned: Vec<usize>,
    scopes: Vec<Vec<usize>>,
    reads: Vec<Read>,
}

impl Lower {
    fn block(&mut self, block: &[ast::Stmt<'_>]) -> Block {
        block.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    /// A block whose assignments end with it, as far as reads are concerned.
    fn scoped(&mut self, block: &[ast::Stmt<'_>]) -> Block {
        self.scopes.push(Vec::new());
        let block = self.block(block);
        self.leave();
        block
    }

    fn leave(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            self.assigned[name] -= 1;
        }
    }

    fn assign(&mut self, name: &str) -> usize {
        let number = self.names.number(name);
        self.assigned[number] += 1;
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(number);
        }
        number
    }

    fn stmt(&mut self, stmt: &ast::Stmt<'_>) -> Stmt {
        match stmt {
            ast::Stmt::Template(of) => Stmt::If(Vec::new(), self.block(&of.children)),
            ast::Stmt::EmitRaw(of) => Stmt::Raw(of.raw.into()),
            ast::Stmt::EmitExpr(of) => match recursion(&of.expr) {
                Some(items) => Stmt::Recurse(self.expr(items)),
                None => Stmt::Emit(self.expr(&of.expr)),
            },
            ast::Stmt::ForLoop(of) => Stmt::For(Box::new(self.for_loop(of))),
            ast::Stmt::IfCond(of) => self.conditions(of),
            ast::Stmt::WithBlock(of) => {
                self.scopes.push(Vec::new());
                let assignments = of.assignments.iter();
                let assignments = assignments
                    .map(|(target, expr)| {
                        let value = self.expr(expr);
                        (self.target(target), value)
                    })
                    .collect();
                let body = self.block(&of.body);
                self.leave();
                Stmt::With(assignments, body)
            }
            ast::Stmt::Set(of) => {
                let value = self.expr(&of.expr);
                Stmt::Set(self.target(&of.target), value)
            }
            ast::Stmt::SetBlock(of) => {
                let body = self.scoped(&of.body);
                let filter = of.filter.as_ref().map(|filter| self.expr(filter));
                Stmt::SetBlock(self.target(&of.target), filter, body)
            }
            ast::Stmt::AutoEscape(of) => Stmt::AutoEscape(self.expr(&of.enabled), self.scoped(&of.body)),
            ast::Stmt::FilterBlock(of) => {
                let body = self.scoped(&of.body);
                Stmt::Filter(self.expr(&of.filter), body)
            }
            ast::Stmt::Do(of) => Stmt::Do(self.call(&of.call)),
        }
    }

    fn for_loop(&mut self, of: &ast::ForLoop<'_>) -> For {
        let over = self.expr(&of.iter);
        self.scopes.push(Vec::new());
        self.assign(LOOP);
        let target = self.target(&of.target);
        let filter = of.filter_expr.as_ref().map(|filter| self.expr(filter));
        let body = self.block(&of.body);
        self.leave();
        let otherwise = self.scoped(&of.else_body);
        For { target, over, filter, recursive: of.recursive, body, otherwise }
    }

    /// `if`, `elif` and `else` side by side, however long the row.
    fn conditions(&mut self, of: &ast::IfCond<'_>) -> Stmt {
        let mut arms = Vec::new();
        let mut of = of;
        loop {
            let condition = self.expr(&of.expr);
            arms.push((condition, self.scoped(&of.true_body)));
            match of.false_body.as_slice() {
                [ast::Stmt::IfCond(next)] => of = next,
                rest => return Stmt::If(arms, self.scoped(rest)),
            }
        }
    }

    fn target(&mut self, target: &Expr<'_>) -> Target {
        match target {
            Expr::Var(name) => Target::Name(self.assign(name.id)),
            Expr::List(items) => Target::Many(items.items.iter().map(|item| self.target(item)).collect()),
            Expr::GetAttr(attr) => Target::Key(self.expr(&attr.expr), attr.name.into()),
            other => Target::Key(self.expr(other), "".into()),
        }
    }

    fn expr(&mut self, expr: &Expr<'_>) -> Node {
        match expr {
            Expr::Var(name) => self.path(name.id, Vec::new()),
            Expr::Const(of) => Node::Const(literal(&of.value)),
            Expr::Slice(of) => {
                let bounds = [&of.start, &of.stop, &of.step];
                let of = self.expr(&of.expr);
                Node::Slice(Box::new((of, bounds.map(|bound| bound.as_ref().map(|bound| self.expr(bound))))))
            }
            Expr::UnaryOp(of) => self.unary(of),
            Expr::BinOp(of) => self.binary(of),
            Expr::Compare(of) => {
                let first = self.expr(&of.expr);
                let rest = of.ops.iter().map(|op| (comparison(op.op), self.expr(&op.expr)));
                Node::Compare(Box::new(first), rest.collect())
            }
            Expr::IfExpr(of) => {
                let (test, then) = (self.expr(&of.test_expr), self.expr(&of.true_expr));
                let otherwise = of.false_expr.as_ref().map(|otherwise| self.expr(otherwise));
                Node::If(Box::new((test, then, otherwise)))
            }
            Expr::Filter(of) => {
                let value = of.expr.as_ref().map_or(Node::Captured, |value| self.expr(value));
                let args = self.args(&of.args);
                match filters::find(of.name) {
                    Some(filter) => Node::Filter(filter, Box::new(value), args),
                    None => Node::Unknown(format!("there is no filter `{}`", of.name)),
                }
            }
            Expr::Test(of) => {
                let value = self.expr(&of.expr);
                let args = self.args(&of.args);
                match is::find(of.name) {
                    Some(test) => Node::Test(test, Box::new(value), args),
                    None => Node::Unknown(format!("there is no test `{}`", of.name)),
                }
            }
            Expr::GetAttr(of) => self.attr(of),
            Expr::GetItem(of) => Node::Index(Box::new((self.expr(&of.expr), self.expr(&of.subscript_expr)))),
            Expr::Call(of) => self.call(of),
            Expr::List(of) => self.list(&of.items),
            Expr::Tuple(of) => Node::Tuple(of.items.iter().map(|item| self.expr(item)).collect()),
            Expr::Map(of) => self.map(of),
        }
    }

    /// `a.b.c` as far as it is a path from a variable; what it reads is noted.
    fn attr(&mut self, of: &ast::GetAttr<'_>) -> Node {
        let mut path = vec![of.name];
        let mut base = &of.expr;
        while let Expr::GetAttr(next) = base {
            path.push(next.name);
            base = &next.expr;
        }
        path.reverse();
        match base {
            Expr::Var(name) => self.path(name.id, path),
            base => {
                let base = self.expr(base);
                path.iter().fold(base, |base, name| Node::Attr(Box::new(base), (*name).into()))
            }
        }
    }

    fn path(&mut self, root: &str, path: Vec<&str>) -> Node {
        let path: Vec<Arc<str>> = path.into_iter().map(Arc::from).collect();
        let read = Read { root: root.into(), path };
        let number = self.names.0.get(root);
        let assigned = number.is_some_and(|number| self.assigned[*number] > 0);
        if !assigned && root != "self" && functions::find(root).is_none() {
            self.reads.push(read.clone());
        }
        match number {
            None => Node::Path(read),
            Some(number) => {
                let base = Node::Local(*number, read.root);
                read.path.into_iter().fold(base, |base, name| Node::Attr(Box::new(base), name))
            }
        }
    }

    fn unary(&mut self, of: &ast::UnaryOp<'_>) -> Node {
        let operand = self.expr(&of.expr);
        match (&of.op, operand) {
            (UnaryOpKind::Not, operand) => Node::Not(Box::new(operand)),
            (UnaryOpKind::Neg, Node::Const(Value::Int(number))) if number != i64::MIN => {
                Node::Const(Value::Int(-number))
            }
            (UnaryOpKind::Neg, Node::Const(Value::Float(number))) => Node::Const(Value::Float(-number)),
            (UnaryOpKind::Neg, operand) => Node::Negate(Box::new(operand)),
        }
    }

    fn binary(&mut self, of: &ast::BinOp<'_>) -> Node {
        let (left, right) = (self.expr(&of.left), self.expr(&of.right));
        let compare = |how, left, right| Node::Compare(Box::new(left), vec![(how, right)]);
        let pair = |left, right| Box::new((left, right));
        match of.op {
            BinOpKind::Eq => compare(Comparison::Eq, left, right),
            BinOpKind::Ne => compare(Comparison::Ne, left, right),
            BinOpKind::Lt => compare(Comparison::Lt, left, right),
            BinOpKind::Lte => compare(Comparison::Le, left, right),
            BinOpKind::Gt => compare(Comparison::Gt, left, right),
            BinOpKind::Gte => compare(Comparison::Ge, left, right),
            BinOpKind::In => compare(Comparison::In, left, right),
            BinOpKind::ScAnd => Node::And(pair(left, right)),
            BinOpKind::ScOr => Node::Or(pair(left, right)),
            BinOpKind::Add => Node::Binary(Op::Add, pair(left, right)),
            BinOpKind::Sub => Node::Binary(Op::Sub, pair(left, right)),
            BinOpKind::Mul => Node::Binary(Op::Mul, pair(left, right)),
            BinOpKind::Div => Node::Binary(Op::Div, pair(left, right)),
            BinOpKind::FloorDiv => Node::Binary(Op::FloorDiv, pair(left, right)),
            BinOpKind::Rem => Node::Binary(Op::Rem, pair(left, right)),
            BinOpKind::Pow => Node::Binary(Op::Pow, pair(left, right)),
            BinOpKind::Concat => match left {
                Node::Concat(mut parts) => {
                    parts.push(right);
                    Node::Concat(parts)
                }
                left => Node::Concat(vec![left, right]),
            },
        }
    }

    fn call(&mut self, of: &ast::Call<'_>) -> Node {
        match &of.expr {
            Expr::GetAttr(method) => {
                let base = self.expr(&method.expr);
                Node::Method(Box::new(base), method.name.into(), self.args(&of.args))
            }
            callee => {
                let callee = self.expr(callee);
                Node::Call(Box::new(callee), self.args(&of.args))
            }
        }
    }

    fn args(&mut self, args: &[ast::CallArg<'_>]) -> Vec<Arg> {
        let lower = |arg: &ast::CallArg<'_>| match arg {
            ast::CallArg::Pos(value) => Arg::Positional(self.expr(value)),
            ast::CallArg::Kwarg(name, value) => Arg::Named((*name).into(), self.expr(value)),
            ast::CallArg::PosSplat(value) => Arg::Spread(self.expr(value)),
            ast::CallArg::KwargSplat(value) => Arg::SpreadNamed(self.expr(value)),
        };
        args.iter().map(lower).collect()
    }

    /// A list of constants is one constant.
    fn list(&mut self, items: &[Expr<'_>]) -> Node {
        let items: Vec<Node> = items.iter().map(|item| self.expr(item)).collect();
        let constant = |item: &Node| match item {
            Node::Const(value) => Some(value.clone()),
            _ => None,
        };
        match items.iter().map(constant).collect::<Option<Vec<Value>>>() {
            Some(values) => Node::Const(Value::from(values)),
            None => Node::List(items),
        }
    }

    fn map(&mut self, of: &ast::Map<'_>) -> Node {
        let pairs = of.keys.iter().zip(&of.values);
        let pairs: Vec<(Node, Node)> = pairs.map(|(key, value)| (self.expr(key), self.expr(value))).collect();
        let constant = |(key, value): &(Node, Node)| match (key, value) {
            (Node::Const(Value::String(key)), Node::Const(value)) => Some((key.clone(), value.clone())),
            _ => None,
        };
        match pairs.iter().map(constant).collect::<Option<Map>>() {
            Some(map) => Node::Const(Value::from(map)),
            None => Node::Map(pairs),
        }
    }
}

/// What `{{ loop(…) }}` goes on with.
fn recursion<'a, 's>(expr: &'a Expr<'s>) -> Option<&'a Expr<'s>> {
    let Expr::Call(call) = expr else { return None };
    match (&call.expr, call.args.as_slice()) {
        (Expr::Var(name), [ast::CallArg::Pos(items)]) if name.id == LOOP => Some(items),
        _ => None,
    }
}

fn comparison(op: CompareOpKind) -> Comparison {
    match op {
        CompareOpKind::Eq => Comparison::Eq,
        CompareOpKind::Ne => Comparison::Ne,
        CompareOpKind::Lt => Comparison::Lt,
        CompareOpKind::Lte => Comparison::Le,
        CompareOpKind::Gt => Comparison::Gt,
        CompareOpKind::Gte => Comparison::Ge,
        CompareOpKind::In => Comparison::In,
        CompareOpKind::NotIn => Comparison::NotIn,
    }
}

/// A text, number, boolean or null as it is written. A whole number that is too large is a double, as in JSON.
fn literal(value: &Literal) -> Value {
    if let Some(text) = value.as_str() {
        return Value::str(text);
    }
    if value.is_none() {
        return Value::Null;
    }
    match bool::try_from(value.clone()) {
        Ok(flag) => Value::Bool(flag),
        Err(_) => match value.as_i64().filter(|_| value.is_integer()) {
            Some(number) => Value::Int(number),
            None => f64::try_from(value.clone()).map_or(Value::Null, Value::Float),
        },
    }
}
