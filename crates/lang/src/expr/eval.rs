//! The evaluator: walks the compiled tree, reads the scope as it goes, and counts its work.

use std::sync::Arc;

use super::node::{Loop, LoopKind, Node, Op};
use super::{EvalError, Read, Scope, WORK_BYTES, WORK_MAX, ops};
use crate::value::{Map, Value};

pub(super) type Evaluated = Result<Value, EvalError>;

pub(super) fn eval(node: &Node, scope: &dyn Scope) -> Evaluated {
    if let Node::Path(read) = node { read_path(scope, read) } else { eval_within(node, scope, WORK_MAX) }
}

pub(super) fn eval_within(node: &Node, scope: &dyn Scope, work_max: usize) -> Evaluated {
    let mut eval = Eval { scope, locals: Vec::new(), work: Work { left: work_max } };
    let result = eval.node(node);
    // `||` and `&&` may have passed over the error: running out of work is final.
    if eval.work.left == 0 { Err(Work::exhausted()) } else { result }
}

/// What is left of the work one evaluation may do.
#[derive(Debug)]
pub(super) struct Work {
    left: usize,
}

impl Work {
    pub(super) fn spend(&mut self, units: usize) -> Result<(), EvalError> {
        self.left = self.left.saturating_sub(units);
        if self.left == 0 { Err(Work::exhausted()) } else { Ok(()) }
    }

    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.spend(bytes / WORK_BYTES)
    }

    /// How many bytes could still be made.
    pub(super) fn bytes_left(&self) -> usize {
        self.left.saturating_mul(WORK_BYTES)
    }

    fn exhausted() -> EvalError {
        EvalError::new(format!("the expression does too much work (limit {WORK_MAX} elements)"))
    }
}

struct Eval<'a> {
    scope: &'a dyn Scope,
    locals: Vec<Value>,
    work: Work,
}

impl Eval<'_> {
    fn node(&mut self, node: &Node) -> Evaluated {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Path(read) => read_path(self.scope, read),
            Node::Local(slot, name) => self
                .locals
                .get(*slot)
                .cloned()
                .ok_or_else(|| EvalError::new(format!("no such variable: {name}"))),
            Node::Select(operand, field) => select(self.node(operand)?, field, node),
            Node::Index(pair) => self.index(node, &pair.0, &pair.1),
            Node::Has(operand, field) => {
                Ok(Value::Bool(self.try_path(operand)?.is_some_and(|value| value.get(field).is_some())))
            }
            Node::And(pair) => self.logical(&pair.0, &pair.1, false),
            Node::Or(pair) => self.logical(&pair.0, &pair.1, true),
            Node::Not(operand) => Ok(Value::Bool(!self.boolean(operand, "!")?)),
            Node::Negate(operand) => ops::negate(&self.node(operand)?),
            Node::If(parts) => {
                if self.boolean(&parts.0, "? :")? {
                    self.node(&parts.1)
                } else {
                    self.node(&parts.2)
                }
            }
            Node::Binary(op, pair) => self.binary(*op, &pair.0, &pair.1),
            Node::List(items) => {
                let items: Vec<Value> = items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?;
                Ok(Value::from(items))
            }
            Node::Map(entries) => self.map(entries),
            Node::Call(func, args) => {
                let args: Vec<Value> = args.iter().map(|arg| self.node(arg)).collect::<Result<_, _>>()?;
                self.work.spend(1)?;
                (func.run)(&mut self.work, &args)
                    .map_err(|error| EvalError::new(format!("{}: {}", func.name, error.message)))
            }
            Node::Matches(operand, regex) => match self.node(operand)? {
                Value::String(text) => {
                    self.work.spend_bytes(text.len())?;
                    Ok(Value::Bool(regex.is_match(&text)))
                }
                other => {
                    Err(EvalError::new(format!("matches: expected a string, got {}", ops::brief(&other))))
                }
            },
            Node::Loop(loop_) => self.iterate(loop_),
        }
    }

    fn boolean(&mut self, node: &Node, operator: &str) -> Result<bool, EvalError> {
        match self.node(node)? {
            Value::Bool(flag) => Ok(flag),
            other => Err(EvalError::new(format!(
                "`{operator}` needs true or false, but `{node}` is {}",
                ops::brief(&other)
            ))),
        }
    }

    /// `&&` and `||`: the side that decides wins, even over an error on the other side.
    fn logical(&mut self, a: &Node, b: &Node, decides: bool) -> Evaluated {
        let operator = if decides { "||" } else { "&&" };
        let left = self.boolean(a, operator);
        if left == Ok(decides) {
            return Ok(Value::Bool(decides));
        }
        match (left, self.boolean(b, operator)) {
            (_, Ok(right)) if right == decides => Ok(Value::Bool(decides)),
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(_), Ok(_)) => Ok(Value::Bool(!decides)),
        }
    }

    /// The value of a path that may be absent; errors only if what the path starts from does.
    fn try_path(&mut self, node: &Node) -> Result<Option<Value>, EvalError> {
        match node {
            Node::Path(read) => Ok(self.scope.read(&read.root, &read.path)),
            Node::Select(operand, field) => {
                Ok(self.try_path(operand)?.and_then(|value| value.get(field).cloned()))
            }
            node => self.node(node).map(Some),
        }
    }

    fn index(&mut self, whole: &Node, operand: &Node, index: &Node) -> Evaluated {
        let (value, index) = (self.node(operand)?, self.node(index)?);
        match (&value, &index) {
            (Value::Map(_), Value::String(key)) => select(value, key, whole),
            (Value::List(items), Value::Int(at)) => {
                usize::try_from(*at).ok().and_then(|at| items.get(at)).cloned().ok_or_else(|| {
                    EvalError::new(format!("no such index: {operand}[{at}] of {} elements", items.len()))
                })
            }
            _ => Err(EvalError::new(format!(
                "`{operand}` is {}: it has no element {}",
                ops::brief(&value),
                ops::brief(&index)
            ))),
        }
    }

    fn binary(&mut self, op: Op, a: &Node, b: &Node) -> Evaluated {
        let (left, right) = (self.node(a)?, self.node(b)?);
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem => {
                ops::arithmetic(&mut self.work, op, &left, &right)
            }
            Op::Eq => Ok(Value::Bool(ops::equal(&mut self.work, &left, &right)?)),
            Op::Ne => Ok(Value::Bool(!ops::equal(&mut self.work, &left, &right)?)),
            Op::In => ops::contains(&mut self.work, &right, &left).map(Value::Bool),
            Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let order = ops::compare(&left, &right).ok_or_else(|| ops::mismatch(op, &left, &right))?;
                Ok(Value::Bool(match op {
                    Op::Lt => order.is_lt(),
                    Op::Le => order.is_le(),
                    Op::Gt => order.is_gt(),
                    _ => order.is_ge(),
                }))
            }
        }
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Evaluated {
        let mut map = Map::new();
        for (key, value) in entries {
            let key = match self.node(key)? {
                Value::String(key) => key,
                other => {
                    return Err(EvalError::new(format!("map keys are strings, not {}", ops::brief(&other))));
                }
            };
            let value = self.node(value)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(EvalError::new(format!("the map has the key {key:?} twice")));
            }
        }
        Ok(Value::from(map))
    }

    fn iterate(&mut self, loop_: &Loop) -> Evaluated {
        let items = match self.node(&loop_.range)? {
            Value::List(items) => items,
            Value::Map(map) => Arc::new(map.keys().cloned().map(Value::String).collect()),
            other => {
                return Err(EvalError::new(format!(
                    "`{}` is {}: only a list or a map can be gone through",
                    loop_.range,
                    ops::brief(&other)
                )));
            }
        };
        match &loop_.kind {
            LoopKind::All(test) => self.decide(&items, test, false),
            LoopKind::Exists(test) => self.decide(&items, test, true),
            LoopKind::ExistsOne(test) => {
                let mut count = 0;
                for item in items.iter() {
                    count += usize::from(self.with(item, |eval| eval.boolean(test, "exists_one"))?);
                }
                Ok(Value::Bool(count == 1))
            }
            LoopKind::Collect { filter, item: body } => {
                let mut out = Vec::with_capacity(if filter.is_none() { items.len() } else { 0 });
                for item in items.iter() {
                    out.extend(self.with(item, |eval| match filter {
                        Some(filter) if !eval.boolean(filter, "filter")? => Ok(None),
                        _ => eval.node(body).map(Some),
                    })?);
                }
                Ok(Value::from(out))
            }
        }
    }

    /// `all` and `exists`: an element that decides wins over errors of other elements.
    fn decide(&mut self, items: &[Value], test: &Node, decides: bool) -> Evaluated {
        let operator = if decides { "exists" } else { "all" };
        let mut failed = None;
        for item in items {
            match self.with(item, |eval| eval.boolean(test, operator)) {
                Ok(flag) if flag == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(error) if self.work.left == 0 => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    /// Runs `body` with `item` bound to the loop's variable.
    fn with<T>(
        &mut self,
        item: &Value,
        body: impl FnOnce(&mut Self) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        self.work.spend(1)?;
        self.locals.push(item.clone());
        let result = body(self);
        self.locals.pop();
        result
    }
}

fn read_path(scope: &dyn Scope, read: &Read) -> Evaluated {
    scope.read(&read.root, &read.path).ok_or_else(|| {
        // Say which part is missing: `state.plan.title` may fail because there is no plan.
        let missing = (0..read.path.len()).find(|len| scope.read(&read.root, &read.path[..*len]).is_none());
        EvalError::new(match missing {
            Some(len) => {
                let prefix = Read { root: read.root.clone(), path: read.path[..len].to_vec() };
                format!("no such key: {read} ({prefix} is absent)")
            }
            None => format!("no such key: {read}"),
        })
    })
}

fn select(value: Value, field: &str, whole: &Node) -> Evaluated {
    match value.get(field) {
        Some(found) => Ok(found.clone()),
        None if value.as_map().is_some() => Err(EvalError::new(format!("no such key: {whole}"))),
        None => Err(EvalError::new(format!("no such key: {whole} (it is under {})", ops::brief(&value)))),
    }
}
