//! Renders the tree of a template: its tags. What its expressions give is in `exprs.rs`.
//!
//! Everything a rendering does is paid for from its [`Budget`], and it is never deeper in tags, operators and recursive
//! loops than [`DEPTH_MAX`]: whatever a template says, it ends in bounded time, memory and stack.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::budget::{Budget, DEPTH_MAX, Evaluated, fail};
use super::lower::Lowered;
use super::node::{Block, For, Node, Stmt, Target};
use super::show::{Output, json};
use super::value::{ListOf, Loop, Seq, Val, depth_inside};
use super::{Escape, OUTPUT_BYTES_MAX};
use crate::value::Value;

pub(super) struct Rendering<'t> {
    pub(super) scope: &'t Value,
    pub(super) budget: Budget,
    pub(super) output: Output,
    pub(super) captured: Option<Val<'t>>,
    escape: Option<Escape>,
    /// Whether captured text counts as escaped.
    pub(super) auto_escape: bool,
    /// What each numbered name was assigned, with the frame that did; the innermost last.
    names: Vec<Vec<(usize, Val<'t>)>>,
    /// The names that each frame has assigned; what is assigned outside of all stays.
    frames: Vec<Vec<usize>>,
    loop_name: Option<usize>,
    pub(super) depth: usize,
}

/// The text; what it took is taken from the budget.
pub(super) fn render(
    template: &Lowered,
    scope: &Value,
    escape: Option<Escape>,
    budget: &mut Budget,
) -> Evaluated<String> {
    let mut rendering = Rendering {
        scope,
        budget: std::mem::take(budget),
        output: Output::default(),
        captured: None,
        escape,
        auto_escape: false,
        names: vec![Vec::new(); template.names],
        frames: Vec::new(),
        loop_name: template.loop_name,
        depth: 0,
    };
    let result = rendering.block(&template.body);
    *budget = rendering.budget;
    result.and_then(|()| rendering.output.done())
}

impl<'t> Rendering<'t> {
    fn block(&mut self, block: &'t [Stmt]) -> Evaluated<()> {
        self.enter()?;
        for stmt in block {
            self.stmt(stmt)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// One level deeper, if there still is one.
    pub(super) fn enter(&mut self) -> Evaluated<()> {
        if self.depth >= DEPTH_MAX {
            return fail(format!("the template recurses too deep (limit {DEPTH_MAX} levels)"));
        }
        self.depth += 1;
        Ok(())
    }

    /// Each arm is a call: what one of them needs on the stack is not there for the others.
    fn stmt(&mut self, stmt: &'t Stmt) -> Evaluated<()> {
        self.budget.steps(1)?;
        match stmt {
            Stmt::Raw(text) => self.output.write(&mut self.budget, text.as_bytes()),
            Stmt::Emit(node) => self.emit(node),
            Stmt::Recurse(items) => self.recurse_over(items),
            Stmt::For(of) => self.for_loop(of),
            Stmt::If(arms, otherwise) => self.condition(arms, otherwise),
            Stmt::With(assignments, body) => self.with(assignments, body),
            Stmt::Set(target, value) => self.set_to(target, value),
            Stmt::SetBlock(target, filter, body) => self.set_block(target, filter.as_ref(), body),
            Stmt::Filter(filter, body) => self.filter_block(filter, body),
            Stmt::AutoEscape(enabled, body) => self.with_auto_escape(enabled, body),
            Stmt::Do(call) => self.eval(call).map(drop),
        }
    }

    fn recurse_over(&mut self, items: &'t Node) -> Evaluated<()> {
        let items = self.eval(items)?;
        self.recurse(&items)
    }

    fn condition(&mut self, arms: &'t [(Node, Block)], otherwise: &'t [Stmt]) -> Evaluated<()> {
        for (condition, body) in arms {
            if self.truth(condition)? {
                return self.block(body);
            }
        }
        self.block(otherwise)
    }

    fn set_to(&mut self, target: &'t Target, value: &'t Node) -> Evaluated<()> {
        let value = self.eval(value)?;
        self.assign(target, value)
    }

    fn set_block(&mut self, target: &'t Target, filter: Option<&'t Node>, body: &'t [Stmt]) -> Evaluated<()> {
        self.output.capture();
        self.block(body)?;
        let mut value = self.captured()?;
        if let Some(filter) = filter {
            self.captured = Some(value);
            value = self.eval(filter)?;
        }
        self.assign(target, value)
    }

    fn filter_block(&mut self, filter: &'t Node, body: &'t [Stmt]) -> Evaluated<()> {
        self.output.capture();
        self.block(body)?;
        self.captured = Some(self.captured()?);
        let value = self.eval(filter)?;
        self.write(&value)
    }

    fn emit(&mut self, node: &'t Node) -> Evaluated<()> {
        // By far the most frequent: a text of the scope, which need not even be counted as shared.
        if let (Node::Path(read), None) = (node, self.escape)
            && let Some(Value::String(text)) =
                self.scope.get(&read.root).and_then(|of| of.get_path(&read.path))
        {
            read.path.iter().try_for_each(|key| self.budget.lookup(key))?;
            return self.output.write(&mut self.budget, text.as_bytes());
        }
        let value = self.eval(node)?;
        self.write(&value)
    }

    /// Writes a value where it is put in.
    fn write(&mut self, value: &Val<'t>) -> Evaluated<()> {
        value.defined()?;
        match (self.escape, value.as_str()) {
            _ if value.is_undefined() => Ok(()),
            (None, Some(text)) => self.output.write(&mut self.budget, text.as_bytes()),
            (None, None) => self.output.stream(&mut self.budget, |sink| json(sink, value)),
            (Some(escape), _) => {
                let data = self.data(value)?;
                // An escape may make a few bytes of one: that one does not begin with too many is seen to here.
                let short = match &data {
                    Value::String(text) => text.len() <= OUTPUT_BYTES_MAX,
                    data => serde_json::to_writer(Count(0), data).is_ok(),
                };
                if !short {
                    return fail(format!("the text grows beyond {OUTPUT_BYTES_MAX} bytes"));
                }
                self.output.write(&mut self.budget, escape(&data).as_bytes())
            }
        }
    }

    fn for_loop(&mut self, of: &'t For) -> Evaluated<()> {
        let items = self.eval(&of.over)?;
        let mut items = self.items(&items)?;
        if let Some(filter) = &of.filter {
            items = self.filtered(of, filter, &items)?;
        }
        if items.len() == 0 {
            return self.block(&of.otherwise);
        }
        self.turns(of, items, 0)
    }

    fn filtered(&mut self, of: &'t For, filter: &'t Node, items: &Seq<'t>) -> Evaluated<Seq<'t>> {
        let mut kept = ListOf::default();
        self.frames.push(Vec::new());
        for item in items.iter() {
            self.budget.steps(1)?;
            self.forget();
            self.assign(&of.target, item.clone())?;
            if self.truth(filter)? {
                kept.push(&mut self.budget, item)?;
            }
        }
        self.leave();
        let kept = kept.done(&mut self.budget)?;
        self.items(&kept)
    }

    /// The body once for each item. What a turn assigns is forgotten after it.
    fn turns(&mut self, of: &'t For, items: Seq<'t>, depth: usize) -> Evaluated<()> {
        let (at, changed) = (Cell::new(0), RefCell::new(None));
        let state = Rc::new(Loop { of, items, at, depth, changed });
        self.frames.push(Vec::new());
        if let Some(name) = self.loop_name {
            self.set(name, Val::Loop(state.clone()));
        }
        self.frames.push(Vec::new());
        for (at, item) in state.items.iter().enumerate() {
            self.budget.steps(1)?;
            state.at.set(at);
            self.forget();
            self.assign(&of.target, item)?;
            self.block(&of.body)?;
        }
        self.leave();
        self.leave();
        Ok(())
    }

    /// The innermost loop once more, over other items.
    pub(super) fn recurse(&mut self, items: &Val<'t>) -> Evaluated<()> {
        let Some(Val::Loop(outer)) = self.loop_name.and_then(|name| self.local(name)) else {
            return fail("`loop` is only there inside a loop");
        };
        if !outer.of.recursive {
            return fail("only a loop that says `recursive` can call `loop(…)`");
        }
        let items = self.items(items)?;
        self.turns(outer.of, items, outer.depth + 1)
    }

    fn with(&mut self, assignments: &'t [(Target, Node)], body: &'t [Stmt]) -> Evaluated<()> {
        self.frames.push(Vec::new());
        for (target, value) in assignments {
            let value = self.eval(value)?;
            self.assign(target, value)?;
        }
        self.block(body)?;
        self.leave();
        Ok(())
    }

    fn with_auto_escape(&mut self, enabled: &'t Node, body: &'t [Stmt]) -> Evaluated<()> {
        let enabled = match self.eval(enabled)? {
            Val::Data(Value::Bool(flag)) => flag,
            value => match value.as_str() {
                Some("html") => true,
                Some("none") => false,
                None => false,
                Some(_) => return fail("autoescape is true, false, 'html' or 'none'"),
            },
        };
        let before = std::mem::replace(&mut self.auto_escape, enabled);
        self.block(body)?;
        self.auto_escape = before;
        Ok(())
    }

    /// What is written meanwhile, as a text.
    pub(super) fn capture(&mut self, act: impl FnOnce(&mut Self) -> Evaluated<()>) -> Evaluated<Val<'t>> {
        self.output.capture();
        act(self)?;
        self.captured()
    }

    /// What was written since the last capture began.
    fn captured(&mut self) -> Evaluated<Val<'t>> {
        let text = self.output.captured()?;
        self.budget.text(text.len())?;
        Ok(if self.auto_escape { Val::Safe(text.into()) } else { Val::Data(Value::from(text)) })
    }

    fn assign(&mut self, target: &'t Target, value: Val<'t>) -> Evaluated<()> {
        match target {
            Target::Name(name) => self.set(*name, value),
            Target::Many(targets) => {
                let Some(parts) = value.list() else {
                    value.defined()?;
                    return fail(format!("a {} cannot be taken apart", value.type_name()));
                };
                if parts.len() != targets.len() {
                    let (wanted, got) = (targets.len(), parts.len());
                    return fail(format!("a list of {got} items cannot be taken apart into {wanted} names"));
                }
                for (target, part) in targets.iter().zip(parts.iter()) {
                    self.assign(target, part)?;
                }
            }
            Target::Key(of, key) => {
                let of = self.eval(of)?;
                of.defined()?;
                let Val::Namespace(entries) = of else {
                    return fail(format!("only a namespace can be assigned to, not a {}", of.type_name()));
                };
                depth_inside(&value)?;
                if !entries.borrow().contains_key(key) {
                    self.budget.entry()?;
                }
                entries.borrow_mut().insert(key.clone(), value);
            }
        }
        Ok(())
    }

    fn set(&mut self, name: usize, value: Val<'t>) {
        let frame = self.frames.len();
        match self.names[name].last_mut() {
            Some((by, old)) if *by == frame => *old = value,
            _ => {
                self.names[name].push((frame, value));
                if let Some(assigned) = self.frames.last_mut() {
                    assigned.push(name);
                }
            }
        }
    }

    pub(super) fn local(&self, name: usize) -> Option<Val<'t>> {
        self.names[name].last().map(|(_, value)| value.clone())
    }

    /// Forgets what the innermost frame has assigned.
    fn forget(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            for name in frame.drain(..) {
                self.names[name].pop();
            }
        }
    }

    fn leave(&mut self) {
        self.forget();
        self.frames.pop();
    }

    /// A value as others know it: without what only a template has.
    fn data(&mut self, value: &Val<'t>) -> Evaluated<Value> {
        Ok(match value {
            Val::Undefined(_) | Val::Nothing => Value::Null,
            Val::Data(value) => value.clone(),
            Val::Safe(text) => Value::String(text.clone()),
            Val::List(_) | Val::Range(_) => {
                let Some(items) = value.list() else { return Ok(Value::Null) };
                let mut list = Vec::new();
                for item in items.iter() {
                    self.budget.item()?;
                    list.push(self.data(&item)?);
                }
                Value::from(list)
            }
            Val::Map(_) | Val::Namespace(_) => {
                let mut map = crate::value::Map::new();
                for (key, value) in value.pairs(&mut self.budget)? {
                    self.budget.entry()?;
                    map.insert(key, self.data(&value)?);
                }
                Value::from(map)
            }
            Val::Loop(_) | Val::Function(_) => {
                return fail(format!("a {} has no text of its own", value.type_name()));
            }
        })
    }

    /// A text of our own making.
    pub(super) fn text(&mut self, text: &str) -> Evaluated<Val<'t>> {
        self.budget.text(text.len())?;
        Ok(Val::str(text))
    }

    /// The letters of a text.
    pub(super) fn letters(&mut self, text: &str) -> Evaluated<Val<'t>> {
        let mut letters = ListOf::default();
        for letter in text.chars() {
            self.budget.steps(1)?;
            let letter = self.text(letter.encode_utf8(&mut [0; 4]))?;
            letters.push(&mut self.budget, letter)?;
        }
        letters.done(&mut self.budget)
    }

    pub(super) fn keys(&mut self, of: &Val<'t>) -> Evaluated<Val<'t>> {
        let mut keys = ListOf::default();
        for (key, _) in of.pairs(&mut self.budget)? {
            keys.push(&mut self.budget, Val::Data(Value::String(key)))?;
        }
        keys.done(&mut self.budget)
    }

    /// What can be looped over: a list, the keys of a map, the letters of a text; null is empty.
    pub(super) fn items(&mut self, value: &Val<'t>) -> Evaluated<Seq<'t>> {
        value.defined()?;
        self.items_if_any(value)
    }

    /// The same, with nothing where there is no value.
    pub(super) fn items_if_any(&mut self, value: &Val<'t>) -> Evaluated<Seq<'t>> {
        let made = match value {
            value if value.is_list() => None,
            Val::Undefined(_) | Val::Nothing | Val::Data(Value::Null) => {
                return Ok(Seq::Data(Arc::default()));
            }
            Val::Data(Value::Map(_)) | Val::Map(_) | Val::Namespace(_) => Some(self.keys(value)?),
            Val::Data(Value::String(text)) | Val::Safe(text) => Some(self.letters(text)?),
            value => return fail(format!("a {} has no items", value.type_name())),
        };
        Ok(made.as_ref().unwrap_or(value).list().unwrap_or_else(|| Seq::Data(Arc::default())))
    }
}

/// Counts what would be written, up to the limit of a text.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > OUTPUT_BYTES_MAX { Err(io::Error::other("too long")) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
