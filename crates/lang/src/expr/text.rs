//! Functions on text, after CEL's string extension. Positions count characters, not bytes.

use regex::{Regex, RegexBuilder};

use super::EvalError;
use super::eval::{Evaluated, Work};
use super::funcs::wrong;
use crate::value::Value;

const REGEX_BYTES_MAX: usize = 1 << 20;

pub(super) fn string(value: &Value) -> Result<&str, EvalError> {
    value.as_str().ok_or_else(|| wrong("a string", value))
}

/// The text a function works on, paid for.
fn text<'a>(work: &mut Work, args: &'a [Value]) -> Result<&'a str, EvalError> {
    let text = string(&args[0])?;
    work.spend_bytes(text.len())?;
    Ok(text)
}

fn position(value: &Value, len: usize) -> Result<usize, EvalError> {
    let Value::Int(at) = value else { return Err(wrong("an int", value)) };
    match usize::try_from(*at) {
        Ok(at) if at <= len => Ok(at),
        _ => Err(EvalError::new(format!("position {at} is outside the {len} characters"))),
    }
}

/// The byte offset of the character at `at`.
fn byte(text: &str, at: usize) -> usize {
    text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte)
}

/// A count argument: negative or absent means no limit.
fn limit(value: Option<&Value>) -> Result<usize, EvalError> {
    match value {
        None => Ok(usize::MAX),
        Some(Value::Int(limit)) => Ok(usize::try_from(*limit).unwrap_or(usize::MAX)),
        Some(other) => Err(wrong("an int", other)),
    }
}

pub(super) fn contains(work: &mut Work, args: &[Value]) -> Evaluated {
    if args[0].as_list().is_some() {
        return Err(EvalError::new("it looks into text: for a list write `x in list`"));
    }
    Ok(Value::Bool(text(work, args)?.contains(string(&args[1])?)))
}

pub(super) fn starts_with(_: &mut Work, args: &[Value]) -> Evaluated {
    Ok(Value::Bool(string(&args[0])?.starts_with(string(&args[1])?)))
}

pub(super) fn ends_with(_: &mut Work, args: &[Value]) -> Evaluated {
    Ok(Value::Bool(string(&args[0])?.ends_with(string(&args[1])?)))
}

pub(super) fn trim(work: &mut Work, args: &[Value]) -> Evaluated {
    Ok(Value::str(text(work, args)?.trim()))
}

pub(super) fn lower_ascii(work: &mut Work, args: &[Value]) -> Evaluated {
    Ok(Value::from(text(work, args)?.to_ascii_lowercase()))
}

pub(super) fn upper_ascii(work: &mut Work, args: &[Value]) -> Evaluated {
    Ok(Value::from(text(work, args)?.to_ascii_uppercase()))
}

pub(super) fn lines(work: &mut Work, args: &[Value]) -> Evaluated {
    let lines: Vec<Value> = text(work, args)?.lines().map(Value::from).collect();
    work.spend(lines.len())?;
    Ok(Value::from(lines))
}

/// At most `limit` parts, the last holding the rest; an empty separator splits characters.
pub(super) fn split(work: &mut Work, args: &[Value]) -> Evaluated {
    let (text, separator, limit) = (text(work, args)?, string(&args[1])?, limit(args.get(2))?);
    let mut parts: Vec<Value> = Vec::new();
    let mut rest = Some(text).filter(|text| limit > 0 && !(text.is_empty() && separator.is_empty()));
    while let Some(left) = rest {
        work.spend(1)?;
        let cut = match separator {
            "" => {
                left.chars().next().map(char::len_utf8).filter(|len| *len < left.len()).map(|len| (len, len))
            }
            separator => left.find(separator).map(|at| (at, at + separator.len())),
        };
        match cut.filter(|_| parts.len() + 1 < limit) {
            Some((end, next)) => {
                parts.push(Value::str(&left[..end]));
                rest = Some(&left[next..]);
            }
            None => {
                parts.push(Value::str(left));
                rest = None;
            }
        }
    }
    Ok(Value::from(parts))
}

pub(super) fn join(work: &mut Work, args: &[Value]) -> Evaluated {
    let items = args[0].as_list().ok_or_else(|| wrong("a list", &args[0]))?;
    let separator = args.get(1).map_or(Ok(""), string)?;
    work.spend(items.len())?;
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        let part = string(item)?;
        work.spend_bytes(part.len() + separator.len())?;
        parts.push(part);
    }
    Ok(Value::from(parts.join(separator)))
}

pub(super) fn replace(work: &mut Work, args: &[Value]) -> Evaluated {
    let (text, from, to) = (text(work, args)?, string(&args[1])?, string(&args[2])?);
    let limit = limit(args.get(3))?;
    // Paid for before it is made: a short text can be replaced by a huge one.
    let count = text.matches(from).take(limit).count();
    work.spend_bytes(count.saturating_mul(to.len()))?;
    Ok(Value::from(text.replacen(from, to, limit)))
}

pub(super) fn substring(work: &mut Work, args: &[Value]) -> Evaluated {
    let text = text(work, args)?;
    let len = text.chars().count();
    let start = position(&args[1], len)?;
    let end = args.get(2).map_or(Ok(len), |end| position(end, len))?;
    if start > end {
        return Err(EvalError::new(format!("the start {start} lies behind the end {end}")));
    }
    Ok(Value::str(&text[byte(text, start)..byte(text, end)]))
}

pub(super) fn index_of(work: &mut Work, args: &[Value]) -> Evaluated {
    let (text, part) = (text(work, args)?, string(&args[1])?);
    let start = args.get(2).map_or(Ok(0), |start| position(start, text.chars().count()))?;
    let start = byte(text, start);
    Ok(index(text, text[start..].find(part).map(|at| start + at)))
}

pub(super) fn last_index_of(work: &mut Work, args: &[Value]) -> Evaluated {
    let (text, part) = (text(work, args)?, string(&args[1])?);
    Ok(index(text, text.rfind(part)))
}

/// A byte offset as a character position, -1 if there is none.
fn index(text: &str, at: Option<usize>) -> Value {
    let count = at.map(|at| text[..at].chars().count());
    Value::Int(count.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1))
}

/// A pattern of bounded size, of the kind that matches in linear time.
pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => format!("the pattern {pattern:?} is too large"),
        _ => format!("{pattern:?} is no pattern the `regex` crate knows"),
    })
}

pub(super) fn matches(work: &mut Work, args: &[Value]) -> Evaluated {
    let (text, pattern) = (text(work, args)?, string(&args[1])?);
    // Compiling is the dear part, and this pattern is not known beforehand.
    work.spend(10_000)?;
    Ok(Value::Bool(regex(pattern).map_err(EvalError::new)?.is_match(text)))
}
