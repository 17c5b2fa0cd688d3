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
    /// Where `loop` is among them, if there is one.
    pub(super) loop_name: Option<usize>,
    pub(super) reads: Vec<Read>,
}

pub(super) fn lower(template: &ast::Stmt<'_>) -> Lowered {
    let mut names = Names::default();
    names.collect(std::slice::from_ref(template));
    let loop_name = names.0.get(LOOP).copied();
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
                    self.number(LOOP);
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
            ast::Stmt::EmitExpr(of) => self.emit(&of.expr),
            ast::Stmt::ForLoop(of) => self.for_loop(of),
            ast::Stmt::IfCond(of) => self.conditions(of),
            ast::Stmt::WithBlock(of) => self.with(of),
            ast::Stmt::Set(of) => self.set(of),
            ast::Stmt::SetBlock(of) => self.set_block(of),
            ast::Stmt::AutoEscape(of) => self.auto_escape(of),
            ast::Stmt::FilterBlock(of) => self.filter_block(of),
            ast::Stmt::Do(of) => Stmt::Do(self.call(&of.call)),
        }
    }

    fn emit(&mut self, expr: &Expr<'_>) -> Stmt {
        match recursion(expr) {
            Some(items) => Stmt::Recurse(self.expr(items)),
            None => Stmt::Emit(self.expr(expr)),
        }
    }

    fn with(&mut self, of: &ast::WithBlock<'_>) -> Stmt {
        self.scopes.push(Vec::new());
        let mut assignments = Vec::with_capacity(of.assignments.len());
        for (target, expr) in &of.assignments {
            let value = self.expr(expr);
            assignments.push((self.target(target), value));
        }
        let body = self.block(&of.body);
        self.leave();
        Stmt::With(assignments, body)
    }

    fn set(&mut self, of: &ast::Set<'_>) -> Stmt {
        let value = self.expr(&of.expr);
        Stmt::Set(self.target(&of.target), value)
    }

    fn set_block(&mut self, of: &ast::SetBlock<'_>) -> Stmt {
        let body = self.scoped(&of.body);
        let filter = of.filter.as_ref().map(|filter| self.expr(filter));
        Stmt::SetBlock(self.target(&of.target), filter, body)
    }

    fn auto_escape(&mut self, of: &ast::AutoEscape<'_>) -> Stmt {
        let enabled = self.expr(&of.enabled);
        Stmt::AutoEscape(enabled, self.scoped(&of.body))
    }

    fn filter_block(&mut self, of: &ast::FilterBlock<'_>) -> Stmt {
        let body = self.scoped(&of.body);
        Stmt::Filter(self.expr(&of.filter), body)
    }

    fn for_loop(&mut self, of: &ast::ForLoop<'_>) -> Stmt {
        let over = self.expr(&of.iter);
        self.scopes.push(Vec::new());
        self.assign(LOOP);
        let target = self.target(&of.target);
        let filter = of.filter_expr.as_ref().map(|filter| self.expr(filter));
        let body = self.block(&of.body);
        self.leave();
        let otherwise = self.scoped(&of.else_body);
        Stmt::For(Box::new(For { target, over, filter, recursive: of.recursive, body, otherwise }))
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

    /// Each arm is a call: what one of them needs on the stack is not there for the others.
    fn expr(&mut self, expr: &Expr<'_>) -> Node {
        match expr {
            Expr::Var(name) => self.path(name.id, Vec::new()),
            Expr::Const(of) => Node::Const(literal(&of.value)),
            Expr::Slice(of) => self.slice(of),
            Expr::UnaryOp(of) => self.unary(of),
            Expr::BinOp(of) => self.binary(of),
            Expr::Compare(of) => self.compare(of),
            Expr::IfExpr(of) => self.conditional(of),
            Expr::Filter(of) => self.filter(of),
            Expr::Test(of) => self.test(of),
            Expr::GetAttr(of) => self.attr(of),
            Expr::GetItem(of) => self.item(of),
            Expr::Call(of) => self.call(of),
            Expr::List(of) => self.list(&of.items),
            Expr::Tuple(of) => Node::Tuple(self.exprs(&of.items)),
            Expr::Map(of) => self.map(of),
        }
    }

    fn exprs(&mut self, exprs: &[Expr<'_>]) -> Vec<Node> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &Expr<'_>) -> Box<Node> {
        Box::new(self.expr(expr))
    }

    fn slice(&mut self, of: &ast::Slice<'_>) -> Node {
        let value = self.expr(&of.expr);
        let bounds = [&of.start, &of.stop, &of.step];
        Node::Slice(Box::new((value, bounds.map(|bound| bound.as_ref().map(|bound| self.expr(bound))))))
    }

    fn compare(&mut self, of: &ast::Compare<'_>) -> Node {
        let first = self.boxed(&of.expr);
        Node::Compare(first, of.ops.iter().map(|op| (comparison(op.op), self.expr(&op.expr))).collect())
    }

    fn conditional(&mut self, of: &ast::IfExpr<'_>) -> Node {
        let (test, then) = (self.expr(&of.test_expr), self.expr(&of.true_expr));
        let otherwise = of.false_expr.as_ref().map(|otherwise| self.expr(otherwise));
        Node::If(Box::new((test, then, otherwise)))
    }

    fn filter(&mut self, of: &ast::Filter<'_>) -> Node {
        let value = of.expr.as_ref().map_or_else(|| Box::new(Node::Captured), |value| self.boxed(value));
        let args = self.args(&of.args);
        match filters::find(of.name) {
            Some(filter) => Node::Filter(filter, value, args),
            None => Node::Unknown(format!("there is no filter `{}`", of.name)),
        }
    }

    fn test(&mut self, of: &ast::Test<'_>) -> Node {
        let value = self.boxed(&of.expr);
        let args = self.args(&of.args);
        match is::find(of.name) {
            Some(test) => Node::Test(test, value, args),
            None => Node::Unknown(format!("there is no test `{}`", of.name)),
        }
    }

    fn item(&mut self, of: &ast::GetItem<'_>) -> Node {
        let value = self.expr(&of.expr);
        Node::Index(Box::new((value, self.expr(&of.subscript_expr))))
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
        let left = self.expr(&of.left);
        binary(of.op, left, self.expr(&of.right))
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
        let items = self.exprs(items);
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

fn binary(op: BinOpKind, left: Node, right: Node) -> Node {
    let compare = |how, left, right| Node::Compare(Box::new(left), vec![(how, right)]);
    let calculate = |op, left, right| Node::Binary(op, Box::new((left, right)));
    match op {
        BinOpKind::Eq => compare(Comparison::Eq, left, right),
        BinOpKind::Ne => compare(Comparison::Ne, left, right),
        BinOpKind::Lt => compare(Comparison::Lt, left, right),
        BinOpKind::Lte => compare(Comparison::Le, left, right),
        BinOpKind::Gt => compare(Comparison::Gt, left, right),
        BinOpKind::Gte => compare(Comparison::Ge, left, right),
        BinOpKind::In => compare(Comparison::In, left, right),
        BinOpKind::ScAnd => Node::And(Box::new((left, right))),
        BinOpKind::ScOr => Node::Or(Box::new((left, right))),
        BinOpKind::Add => calculate(Op::Add, left, right),
        BinOpKind::Sub => calculate(Op::Sub, left, right),
        BinOpKind::Mul => calculate(Op::Mul, left, right),
        BinOpKind::Div => calculate(Op::Div, left, right),
        BinOpKind::FloorDiv => calculate(Op::FloorDiv, left, right),
        BinOpKind::Rem => calculate(Op::Rem, left, right),
        BinOpKind::Pow => calculate(Op::Pow, left, right),
        BinOpKind::Concat => match left {
            Node::Concat(mut parts) => {
                parts.push(right);
                Node::Concat(parts)
            }
            left => Node::Concat(vec![left, right]),
        },
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
