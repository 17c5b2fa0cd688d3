//! The tree an expression is compiled to. Names are resolved and functions are looked up: evaluating
//! it never searches.

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use super::Read;
use super::funcs::Func;
use crate::path::is_key;
use crate::value::Value;

#[derive(Debug)]
pub(super) enum Node {
    Const(Value),
    /// A path from a root of the scope: read directly, whatever its length.
    Path(Read),
    /// A variable bound by a macro, and its place on the stack of such variables.
    Local(usize, Arc<str>),
    Select(Box<Node>, Arc<str>),
    Index(Box<(Node, Node)>),
    /// `has(operand.field)`; the operand may itself be a path that is absent.
    Has(Box<Node>, Arc<str>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    If(Box<(Node, Node, Node)>),
    Binary(Op, Box<(Node, Node)>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Call(&'static Func, Vec<Node>),
    /// `matches` with a literal pattern.
    Matches(Box<Node>, Regex),
    Loop(Box<Loop>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
}

impl Op {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::Rem => "%",
            Op::Eq => "==",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
            Op::In => "in",
        }
    }
}

#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: Node,
    pub(super) kind: LoopKind,
}

#[derive(Debug)]
pub(super) enum LoopKind {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    /// `map` and `filter`: the items, of those that pass the condition if there is one.
    Collect {
        filter: Option<Node>,
        item: Node,
    },
}

impl Node {
    /// Whether it, or anything in it, is so.
    pub(super) fn any(&self, is: &dyn Fn(&Node) -> bool) -> bool {
        is(self)
            || match self {
                Node::Const(_) | Node::Path(_) | Node::Local(..) => false,
                Node::Select(of, _)
                | Node::Has(of, _)
                | Node::Not(of)
                | Node::Negate(of)
                | Node::Matches(of, _) => of.any(is),
                Node::Index(pair) | Node::And(pair) | Node::Or(pair) | Node::Binary(_, pair) => {
                    pair.0.any(is) || pair.1.any(is)
                }
                Node::If(three) => three.0.any(is) || three.1.any(is) || three.2.any(is),
                Node::List(items) | Node::Call(_, items) => items.iter().any(|item| item.any(is)),
                Node::Map(pairs) => pairs.iter().any(|(key, value)| key.any(is) || value.any(is)),
                Node::Loop(of) => {
                    of.range.any(is)
                        || match &of.kind {
                            LoopKind::All(test) | LoopKind::Exists(test) | LoopKind::ExistsOne(test) => {
                                test.any(is)
                            }
                            LoopKind::Collect { filter, item } => {
                                filter.as_ref().is_some_and(|filter| filter.any(is)) || item.any(is)
                            }
                        }
                }
            }
    }
}

/// How messages name a node: the path as written, as far as it is one.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Const(value) if !matches!(value, Value::List(_) | Value::Map(_)) => value.fmt(f),
            Node::Path(read) => read.fmt(f),
            Node::Local(_, name) => f.write_str(name),
            Node::Select(operand, field) | Node::Has(operand, field) if is_key(field) => {
                write!(f, "{operand}.{field}")
            }
            Node::Select(operand, field) | Node::Has(operand, field) => write!(f, "{operand}[{field:?}]"),
            Node::Index(pair) => write!(f, "{}[{}]", pair.0, pair.1),
            Node::Call(func, _) => write!(f, "{}(…)", func.name),
            _ => f.write_str("(…)"),
        }
    }
}
