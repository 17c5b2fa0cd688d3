//! The tree a template is compiled to. Filters and tests are looked up and names are resolved: rendering never searches.

use std::fmt;
use std::sync::Arc;

use super::filters::Filter;
use super::is::Test;
use super::value::Quoted;
use crate::expr::Read;
use crate::value::Value;

pub(super) type Block = Vec<Stmt>;

pub(super) enum Stmt {
    /// Text that stands for itself.
    Raw(Box<str>),
    Emit(Node),
    /// `{{ loop(…) }}`: the loop once more, straight into the output.
    Recurse(Node),
    For(Box<For>),
    /// Conditions with what they guard, and what is left.
    If(Vec<(Node, Block)>, Block),
    With(Vec<(Target, Node)>, Block),
    Set(Target, Node),
    /// `{% set x | filter %}…{% endset %}`
    SetBlock(Target, Option<Node>, Block),
    Filter(Node, Block),
    AutoEscape(Node, Block),
    Do(Node),
}

pub(super) struct For {
    pub(super) target: Target,
    pub(super) over: Node,
    pub(super) filter: Option<Node>,
    pub(super) recursive: bool,
    pub(super) body: Block,
    pub(super) otherwise: Block,
}

/// What is assigned to.
pub(super) enum Target {
    Name(usize),
    Many(Vec<Target>),
    /// A key of a namespace.
    Key(Node, Arc<str>),
}

pub(super) enum Node {
    Const(Value),
    /// A path from a variable of the scope that the template never assigns: read directly, whatever its length.
    Path(Read),
    /// A name that is assigned somewhere, by its number: what was assigned last, or else the scope's.
    Local(usize, Arc<str>),
    Attr(Box<Node>, Arc<str>),
    Index(Box<(Node, Node)>),
    Slice(Box<(Node, [Option<Node>; 3])>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Op, Box<(Node, Node)>),
    /// `a ~ b ~ c`, as one.
    Concat(Vec<Node>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    /// `a < b < c`
    Compare(Box<Node>, Vec<(Comparison, Node)>),
    If(Box<(Node, Node, Option<Node>)>),
    Filter(Filter, Box<Node>, Vec<Arg>),
    /// The text that a block has captured, which its filters are applied to.
    Captured,
    Test(Test, Box<Node>, Vec<Arg>),
    Call(Box<Node>, Vec<Arg>),
    Method(Box<Node>, Arc<str>, Vec<Arg>),
    List(Vec<Node>),
    Tuple(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// What was compiled although it cannot be rendered: a filter or test that there is not.
    Unknown(String),
}

pub(super) enum Arg {
    Positional(Node),
    Named(Arc<str>, Node),
    /// `*list`
    Spread(Node),
    /// `**map`
    SpreadNamed(Node),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
}

impl Op {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::FloorDiv => "//",
            Op::Rem => "%",
            Op::Pow => "**",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

/// How messages name a node: the path as written, as far as it is one.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Path(read) => {
                f.write_str(&read.root)?;
                read.path.iter().try_for_each(|key| write!(f, ".{key}"))
            }
            Node::Local(_, name) => f.write_str(name),
            Node::Attr(of, name) => write!(f, "{of}.{name}"),
            Node::Index(pair) => match &pair.1 {
                Node::Const(Value::String(key)) => write!(f, "{}[{}]", pair.0, Quoted(key)),
                Node::Const(key) => write!(f, "{}[{key}]", pair.0),
                _ => write!(f, "{}[...]", pair.0),
            },
            _ => f.write_str("(...)"),
        }
    }
}
