//! From the `cel` crate's syntax tree to ours: resolves variables and functions, recognises macros by
//! the loops they expand to, and reports what would fail on every evaluation.

use std::sync::Arc;

use cel::ParseErrors;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr as Ast, IdedExpr, LiteralValue, MapExpr, SourceInfo,
    operators,
};
use cel::parser::Parser;

use super::funcs::{self, Func};
use super::node::{Loop, LoopKind, Node, Op};
use super::{ExprError, LOOPS_NESTED_MAX, Read, lists, text};
use crate::foreign::{Place, foreign};
use crate::problem::nearest;
use crate::terms::{Term, term};
use crate::value::Value;

/// The macros, and how each is written.
#[rustfmt::skip]
pub(super) const MACROS: &[Term] = &[
    term("has", "has(a.b)", "Whether the path is there.",
        "has({'a': 1}.b)"),
    term("all", "list.all(x, condition)", "Whether the condition holds for every item.",
        "[2, 4].all(n, n % 2 == 0)"),
    term("exists", "list.exists(x, condition)", "Whether it holds for one of them at least.",
        "[1, 2].exists(n, n > 1)"),
    term("exists_one", "list.exists_one(x, condition)", "Whether it holds for exactly one.",
        "[1, 2, 3].exists_one(n, n > 2)"),
    term("existsOne", "list.existsOne(x, condition)", "The same as `exists_one`.",
        "[1, 2, 3].existsOne(n, n > 1)"),
    term("map", "list.map(x, value) or list.map(x, condition, value)", "A list of values, one per item (that fits).",
        "[1, 2].map(n, n * 10)"),
    term("filter", "list.filter(x, condition)", "The items for which it holds.",
        "[5, 8, 9].filter(n, n >= 7)"),
];

const TYPES: [(&str, &str); 7] = [
    ("null_type", "null"),
    ("bool", "bool"),
    ("int", "int"),
    ("double", "double"),
    ("string", "string"),
    ("list", "list"),
    ("map", "map"),
];

type Lowered = Result<Node, ExprError>;

pub(super) fn lower(text: &str) -> Result<(Node, Vec<Read>), ExprError> {
    if text.trim().is_empty() {
        return Err(ExprError::at("an expression is missing", None));
    }
    // One level of brackets costs the parser one level of its own limit, a `? :` chain another.
    let parser = Parser::new().max_recursion_depth(64);
    let (tree, source) = parser.parse_with_source_info(text).map_err(|errors| syntax_error(text, errors))?;
    let mut lowering = Lowering { text, source, locals: Vec::new(), reads: Vec::new() };
    let node = lowering.node(&tree)?;
    Ok((node, lowering.reads))
}

fn syntax_error(text: &str, errors: ParseErrors) -> ExprError {
    let Some(first) = errors.errors.into_iter().next() else {
        return ExprError::at("this is no CEL expression", None);
    };
    if first.msg.contains("Recursion limit") {
        return ExprError::at("the expression nests too deeply", None);
    }
    let place = usize::try_from(first.pos.0 - 1).ok().and_then(|line| {
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let column = usize::try_from(first.pos.1 - 1).ok()?;
        let found = text.get(start..)?.char_indices().nth(column);
        Some(found.map_or((text.len(), 0), |(at, char)| (start + at, char.len_utf8())))
    });
    ExprError::at(format!("syntax error: {}{}", plainer(&first.msg), way_out(text, &first.msg)), place)
}

/// What was probably meant: words of other languages, and a comma that YAML took for its own.
fn way_out(text: &str, message: &str) -> &'static str {
    let open = text.matches(['(', '[']).count() > text.matches([')', ']']).count();
    match () {
        () if message.contains("'<EOF>'") && open => {
            "; inside `{ }` of YAML a comma ends a value: put the expression in quotes"
        }
        () if message.contains("'and'") => ": write `&&`",
        () if message.contains("'or'") => ": write `||`",
        () if message.contains("'not'") || text.starts_with("not ") => ": write `!x`",
        () => "",
    }
}

/// The parser generator's messages in words for authors.
fn plainer(message: &str) -> String {
    let message = message.trim_start_matches("Syntax error: ");
    if message.contains("'<EOF>'") {
        return "the expression ends too early".to_owned();
    }
    if let Some(text) = message.strip_prefix("token recognition error at: ") {
        let hint = if text.starts_with("'=") { ": compare with `==`" } else { "" };
        return format!("unexpected {text}{hint}");
    }
    // The list of every token that could follow helps nobody.
    let message = message.split(" expecting ").next().unwrap_or(message);
    message.replace("mismatched input", "unexpected").replace("extraneous input", "unexpected")
}

struct Lowering<'a> {
    text: &'a str,
    source: SourceInfo,
    locals: Vec<Arc<str>>,
    reads: Vec<Read>,
}

impl Lowering<'_> {
    fn node(&mut self, ast: &IdedExpr) -> Lowered {
        let node = self.quiet(ast)?;
        self.note(&node);
        Ok(node)
    }

    /// Lowers without noting a path as read: for those that are only the start of a longer one.
    fn quiet(&mut self, ast: &IdedExpr) -> Lowered {
        match &ast.expr {
            Ast::Literal(literal) => self.literal(ast, literal),
            Ast::Ident(name) => Ok(self.ident(name)),
            Ast::Select(select) => {
                let operand = self.quiet(&select.operand)?;
                let field = Arc::from(select.field.as_str());
                if select.test {
                    self.reads.extend(whole_path(&operand, &field));
                    return Ok(Node::Has(Box::new(operand), field));
                }
                Ok(extend(operand, field))
            }
            Ast::Call(call) => self.call(ast, call),
            Ast::Comprehension(comprehension) => self.comprehension(ast, comprehension),
            Ast::List(list) => {
                Ok(Node::List(list.elements.iter().map(|e| self.node(e)).collect::<Result<_, _>>()?))
            }
            Ast::Map(map) => self.map(ast, map),
            Ast::Struct(_) => {
                self.refuse(ast, "typed messages are not supported: write a map, {'key': value}")
            }
            Ast::Unspecified => self.refuse(ast, "this is no CEL expression"),
        }
    }

    fn note(&mut self, node: &Node) {
        if let Node::Path(read) = node {
            self.reads.push(read.clone());
        }
    }

    fn literal(&self, ast: &IdedExpr, literal: &LiteralValue) -> Lowered {
        Ok(Node::Const(match literal {
            LiteralValue::Boolean(flag) => Value::Bool(*flag.inner()),
            LiteralValue::Int(number) => Value::Int(*number.inner()),
            LiteralValue::UInt(number) => match i64::try_from(*number.inner()) {
                Ok(number) => Value::Int(number),
                Err(_) => return self.refuse(ast, "this number is too large"),
            },
            LiteralValue::Double(number) if number.inner().is_finite() => Value::Float(*number.inner()),
            LiteralValue::Double(_) => return self.refuse(ast, "this number is too large"),
            LiteralValue::String(text) => Value::str(text.inner()),
            LiteralValue::Null => Value::Null,
            LiteralValue::Bytes(_) => return self.refuse(ast, "bytes are not supported: values are JSON"),
        }))
    }

    fn ident(&self, name: &str) -> Node {
        match self.locals.iter().rposition(|local| &**local == name) {
            Some(slot) => Node::Local(slot, self.locals[slot].clone()),
            // A leading dot asks for the outermost scope: ours has one level of roots only.
            None => Node::Path(Read { root: name.trim_start_matches('.').into(), path: Vec::new() }),
        }
    }

    fn map(&mut self, ast: &IdedExpr, map: &MapExpr) -> Lowered {
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return self.refuse(ast, "this is no map");
            };
            let key = self.node(&entry.key)?;
            if matches!(&key, Node::Const(key) if key.as_str().is_none()) {
                return self.refuse(&entry.key, "map keys are strings");
            }
            entries.push((key, self.node(&entry.value)?));
        }
        Ok(Node::Map(entries))
    }

    fn call(&mut self, ast: &IdedExpr, call: &CallExpr) -> Lowered {
        if call.target.is_none()
            && let Some(node) = self.operator(call)
        {
            return node;
        }
        let name = call.func_name.as_str();
        let Some(func) = funcs::find(name) else {
            return self.unknown(ast, name, call.target.is_some());
        };
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in call.target.as_deref().into_iter().chain(&call.args) {
            args.push(self.quiet(arg)?);
        }
        if args.len() < func.args_min || args.len() > func.args_max {
            return self.refuse(ast, &format!("write {}", func.usage));
        }
        self.note_args(func, &args);
        if func.name == "matches"
            && let Some(pattern) = constant(&args[1])
        {
            let regex = text::regex(pattern).map_err(|message| self.error(ast, &message))?;
            return Ok(Node::Matches(Box::new(args.swap_remove(0)), regex));
        }
        Ok(Node::Call(func, args))
    }

    /// Notes what the arguments read. `get(state, 'a.b', 0)` reads `state.a.b`, not all of `state`.
    fn note_args(&mut self, func: &Func, args: &[Node]) {
        let mut rest = args;
        if func.name == "get"
            && let [Node::Path(read), path, others @ ..] = args
            && let Some(path) = constant(path)
        {
            let mut read = read.clone();
            read.path.extend(lists::leading_keys(path));
            self.reads.push(read);
            rest = others;
        }
        rest.iter().for_each(|arg| self.note(arg));
    }

    fn operator(&mut self, call: &CallExpr) -> Option<Lowered> {
        Some(match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [test, yes, no]) => self.conditional(test, yes, no),
            (operators::LOGICAL_AND, [a, b]) => self.pair(a, b).map(Node::And),
            (operators::LOGICAL_OR, [a, b]) => self.pair(a, b).map(Node::Or),
            (operators::LOGICAL_NOT, [a]) => self.node(a).map(|a| Node::Not(Box::new(a))),
            (operators::NEGATE, [a]) => self.node(a).map(|a| Node::Negate(Box::new(a))),
            (operators::INDEX, [operand, index]) => self.index(operand, index),
            (name, [a, b]) => {
                let op = binary(name)?;
                if matches!(op, Op::Eq | Op::Ne)
                    && let Some(node) = self.type_test(op, a, b)
                {
                    return Some(node);
                }
                self.pair(a, b).map(|pair| Node::Binary(op, pair))
            }
            _ => return None,
        })
    }

    fn pair(&mut self, a: &IdedExpr, b: &IdedExpr) -> Result<Box<(Node, Node)>, ExprError> {
        Ok(Box::new((self.node(a)?, self.node(b)?)))
    }

    fn conditional(&mut self, test: &IdedExpr, yes: &IdedExpr, no: &IdedExpr) -> Lowered {
        Ok(Node::If(Box::new((self.node(test)?, self.node(yes)?, self.node(no)?))))
    }

    fn index(&mut self, operand: &IdedExpr, index: &IdedExpr) -> Lowered {
        let operand = self.quiet(operand)?;
        let index = self.node(index)?;
        if let Some(key) = constant(&index) {
            return Ok(extend(operand, key.into()));
        }
        self.note(&operand);
        Ok(Node::Index(Box::new((operand, index))))
    }

    /// `type(x) == string`: the name is a type only beside a call of `type`, so that a variable may
    /// be called `list`.
    fn type_test(&mut self, op: Op, a: &IdedExpr, b: &IdedExpr) -> Option<Lowered> {
        let is_type_call = |ast: &IdedExpr| matches!(&ast.expr, Ast::Call(call) if call.func_name == "type");
        let type_named = |ast: &IdedExpr| match &ast.expr {
            Ast::Ident(name) => TYPES.iter().find(|(known, _)| known == name).map(|(_, ours)| *ours),
            _ => None,
        };
        let (call, name) = match () {
            _ if is_type_call(a) => (a, type_named(b)?),
            _ if is_type_call(b) => (b, type_named(a)?),
            _ => return None,
        };
        Some(self.node(call).map(|call| Node::Binary(op, Box::new((call, Node::Const(Value::str(name)))))))
    }

    fn comprehension(&mut self, ast: &IdedExpr, loop_: &ComprehensionExpr) -> Lowered {
        if self.locals.len() >= LOOPS_NESTED_MAX {
            return self.refuse(ast, &format!("macros over lists nest at most {LOOPS_NESTED_MAX} deep"));
        }
        let range = self.node(&loop_.iter_range)?;
        self.locals.push(loop_.iter_var.as_str().into());
        let kind = self.loop_kind(loop_);
        self.locals.pop();
        match kind? {
            Some(kind) => Ok(Node::Loop(Box::new(Loop { range, kind }))),
            None => self.refuse(ast, "this macro is not supported"),
        }
    }

    /// Recognises the steps the standard macros expand to. `@result` cannot be written by an author.
    fn loop_kind(&mut self, loop_: &ComprehensionExpr) -> Result<Option<LoopKind>, ExprError> {
        let is_accu = |ast: &IdedExpr| matches!(&ast.expr, Ast::Ident(name) if *name == loop_.accu_var);
        let Ast::Call(step) = &loop_.loop_step.expr else { return Ok(None) };
        Ok(match (step.func_name.as_str(), step.args.as_slice()) {
            (operators::LOGICAL_AND, [accu, body]) if is_accu(accu) => Some(LoopKind::All(self.node(body)?)),
            (operators::LOGICAL_OR, [accu, body]) if is_accu(accu) => {
                Some(LoopKind::Exists(self.node(body)?))
            }
            (operators::ADD, [accu, added]) if is_accu(accu) => match &added.expr {
                Ast::List(list) if list.elements.len() == 1 => {
                    Some(LoopKind::Collect { filter: None, item: self.node(&list.elements[0])? })
                }
                _ => None,
            },
            (operators::CONDITIONAL, [test, then, accu]) if is_accu(accu) => {
                let Ast::Call(then) = &then.expr else { return Ok(None) };
                match then.args.get(1).map(|added| &added.expr) {
                    Some(Ast::List(list)) if list.elements.len() == 1 => Some(LoopKind::Collect {
                        filter: Some(self.node(test)?),
                        item: self.node(&list.elements[0])?,
                    }),
                    Some(Ast::Literal(_)) => Some(LoopKind::ExistsOne(self.node(test)?)),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    fn unknown(&self, ast: &IdedExpr, name: &str, method: bool) -> Lowered {
        if let Some(known) = MACROS.iter().find(|known| known.name == name) {
            return self.refuse(ast, &format!("write {}", known.usage));
        }
        let what = if method { "method" } else { "function" };
        let known = super::functions().map(|term| term.name);
        let hint = match (foreign(Place::Function, name), nearest(name, known)) {
            (Some(foreign), _) => format!(": here {}", foreign.say),
            (None, Some(near)) => format!(": did you mean `{near}`?"),
            (None, None) => String::new(),
        };
        self.refuse(ast, &format!("unknown {what} `{name}`{hint}"))
    }

    fn refuse<T>(&self, ast: &IdedExpr, message: &str) -> Result<T, ExprError> {
        Err(self.error(ast, message))
    }

    fn error(&self, ast: &IdedExpr, message: &str) -> ExprError {
        ExprError::at(message, self.place(ast))
    }

    /// Byte offset and length of a node. The parser counts characters, and the last one inclusively.
    fn place(&self, ast: &IdedExpr) -> Option<(usize, usize)> {
        let (start, stop) = self.source.offset_for(ast.id)?;
        let byte = |at: usize| self.text.char_indices().nth(at).map_or(self.text.len(), |(byte, _)| byte);
        let (start, end) = (byte(start as usize), byte(stop as usize + 1));
        Some((start, end.saturating_sub(start).max(1)))
    }
}

fn constant(node: &Node) -> Option<&str> {
    match node {
        Node::Const(value) => value.as_str(),
        _ => None,
    }
}

/// `operand.field`: a longer path if the operand is one.
fn extend(operand: Node, field: Arc<str>) -> Node {
    match operand {
        Node::Path(mut read) => {
            read.path.push(field);
            Node::Path(read)
        }
        operand => Node::Select(Box::new(operand), field),
    }
}

fn whole_path(operand: &Node, field: &Arc<str>) -> Option<Read> {
    match operand {
        Node::Path(read) => {
            let mut read = read.clone();
            read.path.push(field.clone());
            Some(read)
        }
        _ => None,
    }
}

fn binary(name: &str) -> Option<Op> {
    Some(match name {
        operators::ADD => Op::Add,
        operators::SUBSTRACT => Op::Sub,
        operators::MULTIPLY => Op::Mul,
        operators::DIVIDE => Op::Div,
        operators::MODULO => Op::Rem,
        operators::EQUALS => Op::Eq,
        operators::NOT_EQUALS => Op::Ne,
        operators::LESS => Op::Lt,
        operators::LESS_EQUALS => Op::Le,
        operators::GREATER => Op::Gt,
        operators::GREATER_EQUALS => Op::Ge,
        operators::IN => Op::In,
        _ => return None,
    })
}
