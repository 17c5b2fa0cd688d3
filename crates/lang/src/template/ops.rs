//! Operators: calculating, joining, slicing, containing.

use std::sync::Arc;

use super::budget::{Evaluated, fail};
use super::compare::{Number, equal};
use super::eval::Rendering;
use super::functions;
use super::node::Op;
use super::show::Shown;
use super::value::{ListKind, ListOf, Seq, Val};
use crate::value::Value;

impl<'t> Rendering<'t> {
    pub(super) fn calculate(&mut self, op: Op, a: &Val<'t>, b: &Val<'t>) -> Evaluated<Val<'t>> {
        a.defined()?;
        b.defined()?;
        let numbers = Number::of(a).zip(Number::of(b));
        match (op, numbers) {
            (_, Some((a, b))) => numbers_of(op, a, b),
            (Op::Add, None) => self.add(a, b),
            (Op::Mul, None) => self.repeat(a, b),
            _ => unfit(op, a, b),
        }
    }

    fn add(&mut self, a: &Val<'t>, b: &Val<'t>) -> Evaluated<Val<'t>> {
        if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
            self.budget.text(x.len() + y.len())?;
            return Ok(Val::Data(Value::from([x, y].concat())));
        }
        let (Some(x), Some(y)) = (a.list(), b.list()) else { return unfit(Op::Add, a, b) };
        if a.is_tuple() != b.is_tuple() {
            return unfit(Op::Add, a, b);
        }
        let mut sum = ListOf::default();
        for item in x.iter().chain(y.iter()) {
            self.budget.steps(1)?;
            sum.push(&mut self.budget, item)?;
        }
        sum.done_as(&mut self.budget, if a.is_tuple() { ListKind::Tuple } else { ListKind::List })
    }

    /// A text or a list so many times.
    fn repeat(&mut self, a: &Val<'t>, b: &Val<'t>) -> Evaluated<Val<'t>> {
        let (of, times) = if a.as_str().is_some() || a.is_list() { (a, b) } else { (b, a) };
        let Some(times) = times.as_int().and_then(|times| usize::try_from(times).ok()) else {
            return unfit(Op::Mul, a, b);
        };
        if let Some(text) = of.as_str() {
            self.budget.text(text.len().saturating_mul(times))?;
            return Ok(Val::Data(Value::from(text.repeat(times))));
        }
        let Some(items) = of.list() else { return unfit(Op::Mul, a, b) };
        let mut list = ListOf::default();
        let times = if items.len() == 0 { 0 } else { times };
        for item in (0..times).flat_map(|_| items.iter()) {
            self.budget.steps(1)?;
            list.push(&mut self.budget, item)?;
        }
        list.done_as(&mut self.budget, if of.is_tuple() { ListKind::Tuple } else { ListKind::List })
    }

    pub(super) fn negate(&mut self, of: &Val<'t>) -> Evaluated<Val<'t>> {
        of.defined()?;
        match of {
            Val::Data(Value::Int(number)) => match number.checked_neg() {
                Some(number) => Ok(Val::Data(Value::Int(number))),
                None => fail(format!("-({number}) is beyond what an int can hold")),
            },
            Val::Data(Value::Float(number)) => Ok(Val::Data(Value::Float(-number))),
            other => fail(format!("a {} has no negative", other.type_name())),
        }
    }

    /// All as one text, made once.
    pub(super) fn concat(&mut self, parts: &[Val<'t>]) -> Evaluated<Val<'t>> {
        parts.iter().try_for_each(Val::defined)?;
        let mut texts = Vec::with_capacity(parts.len());
        for part in parts {
            texts.push(self.shown(part)?);
        }
        self.budget.text(texts.iter().map(|text| text.len()).sum())?;
        Ok(Val::Data(Value::from(texts.concat())))
    }

    /// A value as a text: itself if it is one, else as the language shows it.
    pub(super) fn shown(&mut self, value: &Val<'t>) -> Evaluated<Arc<str>> {
        use std::fmt::Write;
        if let Val::Data(Value::String(text)) | Val::Safe(text) = value {
            return Ok(text.clone());
        }
        let text = self
            .capture(|this| this.output.stream(&mut this.budget, |sink| write!(sink, "{}", Shown(value))))?;
        match text {
            Val::Data(Value::String(text)) | Val::Safe(text) => Ok(text),
            _ => Ok("".into()),
        }
    }

    pub(super) fn key(&mut self, value: &Val<'t>) -> Evaluated<Arc<str>> {
        value.defined()?;
        let key = functions::key(value);
        key.map_or_else(
            || fail(format!("a key is a text or a whole number, not a {}", value.type_name())),
            Ok,
        )
    }

    /// The item at a position or under a key.
    pub(super) fn item(&mut self, of: &Val<'t>, key: &Val<'t>) -> Evaluated<Option<Val<'t>>> {
        if let Some(items) = of.list() {
            let at = key.as_int().and_then(|at| position(at, items.len()));
            return Ok(match (at, key.as_str()) {
                (Some(at), _) => items.get(at),
                (None, Some(name)) => of.attr(name),
                (None, None) => None,
            });
        }
        if let Some(text) = of.as_str() {
            self.budget.read(text.len())?;
            let Some(at) = key.as_int() else { return Ok(None) };
            let len = if at < 0 { text.chars().count() } else { usize::MAX };
            let letter = position(at, len).and_then(|at| text.chars().nth(at));
            return letter.map(|letter| self.text(letter.encode_utf8(&mut [0; 4]))).transpose();
        }
        self.under(of, key)
    }

    fn under(&mut self, of: &Val<'t>, key: &Val<'t>) -> Evaluated<Option<Val<'t>>> {
        let Some(key) = functions::key(key) else { return Ok(None) };
        self.budget.lookup(&key)?;
        Ok(of.attr(&key))
    }

    pub(super) fn contains(&mut self, of: &Val<'t>, value: &Val<'t>) -> Evaluated<bool> {
        if let Some(text) = of.as_str() {
            let part = self.shown(value)?;
            self.budget.read(text.len() + part.len())?;
            return Ok(text.contains(&*part));
        }
        if let Some(items) = of.list() {
            for item in items.iter() {
                if equal(&mut self.budget, &item, value)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        match of {
            of if of.is_map() => Ok(self.under(of, value)?.is_some()),
            Val::Nothing | Val::Function(_) => Ok(false),
            of => fail(format!("a {} contains nothing", of.type_name())),
        }
    }

    /// `of[start:stop:step]`, with positions from the end below 0.
    pub(super) fn slice(&mut self, of: &Val<'t>, bounds: [Option<i64>; 3]) -> Evaluated<Val<'t>> {
        of.defined()?;
        let step = bounds[2].unwrap_or(1);
        if step == 0 {
            return fail("the step of a slice cannot be 0");
        }
        if let Some(text) = of.as_str() {
            self.budget.read(text.len())?;
            let len = text.chars().count();
            self.budget.text(text.len())?;
            let at = chosen(bounds[0], bounds[1], step, len);
            // In order they are met one after the other; backwards they have to be looked up.
            let chosen: String = if step > 0 {
                let end = at.end;
                let mut wanted = at.positions().peekable();
                let met = text.chars().take(end).enumerate();
                met.filter(|(at, _)| wanted.next_if_eq(at).is_some()).map(|(_, c)| c).collect()
            } else {
                self.budget.make(text.len().saturating_mul(4))?;
                let letters: Vec<char> = text.chars().collect();
                at.positions().filter_map(|at| letters.get(at)).collect()
            };
            return Ok(Val::Data(Value::from(chosen)));
        }
        let items = match of {
            Val::Nothing | Val::Data(Value::Null) => Seq::Data(Arc::default()),
            of => match of.list() {
                Some(items) => items,
                None => return fail(format!("a {} cannot be sliced", of.type_name())),
            },
        };
        let mut list = ListOf::default();
        for at in chosen(bounds[0], bounds[1], step, items.len()).positions() {
            self.budget.steps(1)?;
            list.push(&mut self.budget, items.get(at).unwrap_or(Val::Nothing))?;
        }
        list.done_as(&mut self.budget, if of.is_tuple() { ListKind::Tuple } else { ListKind::List })
    }
}

/// Positions from `start` up to `end`, every `step`th; backwards from the last one if the step is negative.
struct Chosen {
    start: usize,
    end: usize,
    step: i64,
}

impl Chosen {
    fn positions(self) -> Box<dyn Iterator<Item = usize>> {
        let by = usize::try_from(self.step.unsigned_abs()).unwrap_or(usize::MAX);
        let all = self.start..self.end;
        if self.step > 0 { Box::new(all.step_by(by)) } else { Box::new(all.rev().step_by(by)) }
    }
}

fn chosen(start: Option<i64>, stop: Option<i64>, step: i64, len: usize) -> Chosen {
    let end = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { (end.saturating_add(at)).max(-1) } else { at };
    let bounded = |at: i64| usize::try_from(at.clamp(0, end)).unwrap_or(len);
    if step > 0 {
        let (start, stop) = (from_end(start.unwrap_or(0)), from_end(stop.unwrap_or(end)));
        return Chosen { start: bounded(start), end: bounded(stop).max(bounded(start)), step };
    }
    // Backwards: from `start`, which counts, down to `stop`, which does not.
    let first = from_end(start.unwrap_or(end - 1)).min(end - 1).saturating_add(1);
    let last = stop.map_or(0, |stop| from_end(stop).saturating_add(1));
    Chosen { start: bounded(last), end: bounded(first).max(bounded(last)), step }
}

fn position(at: i64, len: usize) -> Option<usize> {
    if at >= 0 { usize::try_from(at).ok() } else { len.checked_sub(usize::try_from(at.unsigned_abs()).ok()?) }
}

fn unfit<'t>(op: Op, a: &Val<'_>, b: &Val<'_>) -> Evaluated<Val<'t>> {
    fail(format!("`{}` does not go with {} and {}", op.symbol(), a.type_name(), b.type_name()))
}

fn numbers_of<'t>(op: Op, a: Number, b: Number) -> Evaluated<Val<'t>> {
    let value = match (a, b) {
        (Number::Int(a), Number::Int(b)) => ints(op, a, b),
        (a, b) => floats(op, a.as_f64(), b.as_f64()).map(Value::Float),
    };
    let shown = |number: Number| match number {
        Number::Int(number) => Value::Int(number),
        Number::Float(number) => Value::Float(number),
    };
    let failed = || fail(format!("{} {} {} cannot be calculated", shown(a), op.symbol(), shown(b)));
    value.map_or_else(failed, |value| Ok(Val::Data(value)))
}

/// None where there is no result, or none that an int can hold.
fn ints(op: Op, a: i64, b: i64) -> Option<Value> {
    let whole = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => return floats(op, a as f64, b as f64).map(Value::Float),
        Op::FloorDiv => {
            let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
            if rest != 0 && (rest < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
        }
        Op::Rem if b == -1 => Some(0),
        Op::Rem => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        Op::Pow if b < 0 => return floats(op, a as f64, b as f64).map(Value::Float),
        Op::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
    };
    whole.map(Value::Int)
}

fn floats(op: Op, a: f64, b: f64) -> Option<f64> {
    match op {
        Op::Add => Some(a + b),
        Op::Sub => Some(a - b),
        Op::Mul => Some(a * b),
        Op::Pow if a == 0.0 && b < 0.0 => None,
        Op::Pow => Some(a.powf(b)),
        _ if b == 0.0 => None,
        Op::Div => Some(a / b),
        Op::FloorDiv => {
            Some(((a - (a % b)) / b - f64::from(a % b != 0.0 && (a % b < 0.0) != (b < 0.0))).round())
        }
        Op::Rem => {
            let rest = a % b;
            Some(match rest {
                0.0 => 0.0_f64.copysign(b),
                rest if (rest < 0.0) != (b < 0.0) => rest + b,
                rest => rest,
            })
        }
    }
}
