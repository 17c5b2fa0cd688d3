//! CEL expressions, compiled once and evaluated many times.
//!
//! The `cel` crate parses and expands macros; evaluation is ours, over our own values, because a run is
//! replayed: the crate iterates maps in random order, converts every value it binds, and has no hook
//! to bound work. An expression has no clock, no randomness and no effects, and it cannot run for
//! long: text, nesting, loops and produced bytes are all limited.
//!
//! Where we are stricter or kinder than CEL, on purpose:
//! - arithmetic that leaves the finite doubles is an error (JSON could not store the result);
//! - map keys are strings, there are no bytes, timestamps, durations or optionals, uints are ints;
//! - `has(a.b.c)` is false as soon as a part of the path is absent, not only the last;
//! - int and double compare by exact value (`1 < 2.5`, `7 == 7.0`), but do not mix in arithmetic;
//! - every function may be written `f(x, y)` or `x.f(y)`;
//! - comprehensions over a map visit its keys in order.

mod eval;
mod funcs;
mod limits;
mod lists;
mod lower;
mod node;
mod ops;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::sync::Arc;

use crate::path::is_key;
use crate::terms::Term;
use crate::value::Value;
use node::{Node, Op};

pub const TEXT_BYTES_MAX: usize = 8 * 1024;
/// How deeply brackets may nest: the parser recurses once per level.
pub const BRACKETS_MAX: usize = 32;
/// How deeply operators, selections and calls may nest, as in `a.b.c` or `1 + 2 + 3`: 1 MiB of stack
/// is enough for the parser then, even without optimisation.
pub const DEPTH_MAX: usize = 200;
pub const LOOPS_NESTED_MAX: usize = 4;
/// One unit of work is an element visited or [`WORK_BYTES`] of text read or made.
pub const WORK_MAX: usize = 10_000_000;
const WORK_BYTES: usize = 16;

/// A compiled expression. Clones share it.
#[derive(Clone)]
pub struct Expr(Arc<Compiled>);

struct Compiled {
    text: String,
    node: Node,
    reads: Vec<Read>,
}

/// A path an expression or template reads, such as `state.plan.title`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    pub root: Arc<str>,
    pub path: Vec<Arc<str>>,
}

/// What an expression is evaluated against.
pub trait Scope {
    /// The value at `root.path`, or None if it is absent. Cheap: values share structure.
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value>;
}

/// Why a text is no expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    pub message: String,
    /// Byte offset into the text, when known.
    pub offset: Option<usize>,
    pub len: Option<usize>,
}

/// Why an expression or template has no value here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    pub message: String,
}

impl Expr {
    pub fn compile(text: &str) -> Result<Expr, ExprError> {
        limits::check(text)?;
        let (node, reads) = lower::lower(text)?;
        Ok(Expr(Arc::new(Compiled { text: text.to_owned(), node, reads: minimal(reads) })))
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Every static path read, sorted; a path covers those under it.
    pub fn reads(&self) -> &[Read] {
        &self.0.reads
    }

    /// The distinct names the paths start with, sorted.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.0.reads.chunk_by(|a, b| a.root == b.root).map(|same| &*same[0].root)
    }

    /// The path, if the expression is nothing but one.
    pub fn as_path(&self) -> Option<&Read> {
        match &self.0.node {
            Node::Path(read) => Some(read),
            _ => None,
        }
    }

    /// Whether it has this text as a constant, wherever it stands.
    pub fn has_constant(&self, text: &str) -> bool {
        self.0.node.any(&|node| match node {
            Node::Const(value) => value.as_str() == Some(text) || has_text(value, text),
            _ => false,
        })
    }

    /// Whether it deals with what may be absent: `has`, `get` and `in`.
    pub fn minds_absence(&self) -> bool {
        self.0.node.any(&|node| match node {
            Node::Has(..) | Node::Binary(Op::In, _) => true,
            Node::Call(func, _) => func.name == "get",
            _ => false,
        })
    }

    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        eval::eval(&self.0.node, scope)
    }

    pub fn eval_bool(&self, scope: &dyn Scope) -> Result<bool, EvalError> {
        match self.eval(scope)? {
            Value::Bool(flag) => Ok(flag),
            other => Err(EvalError::new(format!(
                "`{}` must be true or false, but it is {}",
                self.text(),
                ops::brief(&other)
            ))),
        }
    }
}

/// A list of constants is one constant.
fn has_text(value: &Value, text: &str) -> bool {
    value.as_list().is_some_and(|items| items.iter().any(|item| item.as_str() == Some(text)))
}

/// Every function and macro that an expression may call, functions first, each by name.
pub fn functions() -> impl Iterator<Item = Term> {
    let functions = funcs::FUNCS.iter();
    let functions = functions.map(|func| Term {
        name: func.name,
        usage: func.usage,
        about: func.about,
        example: func.example,
    });
    functions.chain(lower::MACROS.iter().copied())
}

/// Sorts, and drops every path that lies under another.
pub fn minimal(mut reads: Vec<Read>) -> Vec<Read> {
    reads.sort();
    reads.dedup_by(|next, kept| next.root == kept.root && next.path.starts_with(&kept.path));
    reads
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        self.path
            .iter()
            .try_for_each(|key| if is_key(key) { write!(f, ".{key}") } else { write!(f, "[{key:?}]") })
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.0.text).finish()
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Expr {}

impl ExprError {
    fn at(message: impl Into<String>, place: Option<(usize, usize)>) -> ExprError {
        let (offset, len) = place.unzip();
        ExprError { message: message.into(), offset, len }
    }
}

impl EvalError {
    pub fn new(message: impl Into<String>) -> EvalError {
        EvalError { message: message.into() }
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExprError {}
impl std::error::Error for EvalError {}
