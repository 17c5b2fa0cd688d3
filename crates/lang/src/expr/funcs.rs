//! The table of functions, and those on numbers and whole values. Every function is pure: its result
//! depends on its arguments alone.

use super::EvalError;
use super::eval::{Evaluated, Work};
use super::ops::{brief, compare, finite};
use super::{lists, text};
use crate::value::{Map, Value};

pub(super) type Run = fn(&mut Work, &[Value]) -> Evaluated;

/// A function. A method call counts what it is called on as the first argument.
#[derive(Debug)]
pub(super) struct Func {
    pub(super) name: &'static str,
    pub(super) args_min: usize,
    pub(super) args_max: usize,
    pub(super) usage: &'static str,
    pub(super) about: &'static str,
    pub(super) example: &'static str,
    pub(super) run: Run,
}

const MANY: usize = usize::MAX;

const fn func(
    name: &'static str,
    args: (usize, usize),
    usage: &'static str,
    about: &'static str,
    example: &'static str,
    run: Run,
) -> Func {
    Func { name, args_min: args.0, args_max: args.1, usage, about, example, run }
}

/// Sorted by name: [`find`] searches by halves.
pub(super) static FUNCS: &[Func] = &[
    func("abs", (1, 1), "abs(number)", "The number without its sign.", "abs(-3)", abs),
    func(
        "avg",
        (1, MANY),
        "avg(list) or avg(a, b, …)",
        "The mean, always a double; of nothing it is an error.",
        "avg([7, 8])",
        avg,
    ),
    func(
        "bool",
        (1, 1),
        "bool(value)",
        "`true` or `false` from a boolean or its text.",
        "bool('true')",
        to_bool,
    ),
    func(
        "contains",
        (2, 2),
        "text.contains(part)",
        "Whether the part is in the text.",
        "'workflow'.contains('flow')",
        text::contains,
    ),
    func(
        "double",
        (1, 1),
        "double(value)",
        "The number as a double; also from a text.",
        "double(3) / 2.0",
        to_double,
    ),
    func(
        "dyn",
        (1, 1),
        "dyn(value)",
        "The value itself, for expressions copied from elsewhere.",
        "dyn(1)",
        |_, args| Ok(args[0].clone()),
    ),
    func(
        "endsWith",
        (2, 2),
        "text.endsWith(part)",
        "Whether the text ends with the part.",
        "'a.yaml'.endsWith('.yaml')",
        text::ends_with,
    ),
    func("first", (1, 1), "first(list)", "The first item of a list.", "first([3, 1, 2])", lists::first),
    func(
        "get",
        (2, 3),
        "get(value, 'a.b[0]', default)",
        "What stands at the path, or the default (null if none is given) where it is absent.",
        "get({'a': [1, 2]}, 'a[5]', 0)",
        lists::get,
    ),
    func(
        "indexOf",
        (2, 3),
        "text.indexOf(part)",
        "Where the part begins, from 0; -1 if it is not there.",
        "'workflow'.indexOf('flow')",
        text::index_of,
    ),
    func(
        "int",
        (1, 1),
        "int(value)",
        "The number as an int, cut at the point; also from a text.",
        "int('42')",
        to_int,
    ),
    func(
        "join",
        (1, 2),
        "list.join(separator)",
        "The items of a list as one text.",
        "['a', 'b'].join(', ')",
        text::join,
    ),
    func("json", (1, 1), "json(text)", "The value that a JSON text says.", "json('{\"a\": 1}').a", json),
    func("last", (1, 1), "last(list)", "The last item of a list.", "last([3, 1, 2])", lists::last),
    func(
        "lastIndexOf",
        (2, 2),
        "text.lastIndexOf(part)",
        "Where the part begins last, from 0; -1 if it is not there.",
        "'a.b.c'.lastIndexOf('.')",
        text::last_index_of,
    ),
    func(
        "lines",
        (1, 1),
        "lines(text)",
        "The lines of a text, as a list.",
        "lines('one\\ntwo')",
        text::lines,
    ),
    func(
        "lowerAscii",
        (1, 1),
        "text.lowerAscii()",
        "The text in small letters (a to z only).",
        "'Hello'.lowerAscii()",
        text::lower_ascii,
    ),
    func(
        "matches",
        (2, 2),
        "text.matches(pattern)",
        "Whether the regular expression is found in the text.",
        "'v1.2'.matches('^v[0-9]')",
        text::matches,
    ),
    func(
        "max",
        (1, MANY),
        "max(list) or max(a, b, …)",
        "The largest of them; of nothing it is an error.",
        "max(3, 1, 2)",
        max,
    ),
    func(
        "merge",
        (2, MANY),
        "merge(a, b)",
        "One map of both; of equal keys the later one's value wins.",
        "merge({'a': 1}, {'b': 2})",
        merge,
    ),
    func(
        "min",
        (1, MANY),
        "min(list) or min(a, b, …)",
        "The smallest of them; of nothing it is an error.",
        "min([3, 1, 2])",
        min,
    ),
    func(
        "replace",
        (3, 4),
        "text.replace(from, to)",
        "The text with every `from` replaced; a fourth argument bounds how many.",
        "'a-b-c'.replace('-', '+')",
        text::replace,
    ),
    func(
        "round",
        (1, 2),
        "round(number) or round(number, digits)",
        "The nearest whole number, or so many digits after the point.",
        "round(2.345, 1)",
        round,
    ),
    func(
        "size",
        (1, 1),
        "size(value)",
        "How many items, keys or characters there are.",
        "size([1, 2, 3])",
        lists::size,
    ),
    func(
        "slice",
        (2, 3),
        "slice(list, from, to)",
        "The items from one place up to another, from 0; below zero places count from the end.",
        "slice([1, 2, 3, 4], 1, -1)",
        lists::slice,
    ),
    func(
        "sort",
        (1, 1),
        "sort(list)",
        "The list in order: numbers, or texts.",
        "sort([3, 1, 2])",
        lists::sort,
    ),
    func(
        "split",
        (2, 3),
        "text.split(separator)",
        "The parts of a text, as a list.",
        "'a,b'.split(',')",
        text::split,
    ),
    func(
        "startsWith",
        (2, 2),
        "text.startsWith(part)",
        "Whether the text begins with the part.",
        "'E0101'.startsWith('E')",
        text::starts_with,
    ),
    func("string", (1, 1), "string(value)", "The value as a text.", "string(42)", to_string),
    func(
        "substring",
        (2, 3),
        "text.substring(start, end)",
        "The characters from `start` up to `end`, or to the end.",
        "'workflow'.substring(0, 4)",
        text::substring,
    ),
    func(
        "sum",
        (1, MANY),
        "sum(list) or sum(a, b, …)",
        "The sum: an int if all are ints, else a double; of nothing it is an error.",
        "sum([1, 2, 3])",
        sum,
    ),
    func(
        "to_json",
        (1, 1),
        "to_json(value)",
        "The value as JSON text.",
        "to_json({'a': [1, true]})",
        to_json,
    ),
    func("trim", (1, 1), "text.trim()", "The text without blanks around it.", "'  hi  '.trim()", text::trim),
    func(
        "type",
        (1, 1),
        "type(value)",
        "The type, to compare: `type(x) == string`.",
        "type('a') == string",
        |_, args| Ok(Value::str(args[0].type_name())),
    ),
    func(
        "unique",
        (1, 1),
        "unique(list)",
        "The list without repetitions, in the order of the first ones.",
        "unique([1, 2, 1])",
        lists::unique,
    ),
    func(
        "upperAscii",
        (1, 1),
        "text.upperAscii()",
        "The text in capital letters (a to z only).",
        "'Hello'.upperAscii()",
        text::upper_ascii,
    ),
];

pub(super) fn find(name: &str) -> Option<&'static Func> {
    FUNCS.binary_search_by(|func| func.name.cmp(name)).ok().map(|at| &FUNCS[at])
}

pub(super) fn wrong(expected: &str, got: &Value) -> EvalError {
    EvalError::new(format!("expected {expected}, got {}", brief(got)))
}

/// The numbers of the one list, or of the several arguments; none is an error.
fn numbers<'a>(work: &mut Work, args: &'a [Value]) -> Result<&'a [Value], EvalError> {
    let numbers = match args {
        [Value::List(items)] => items.as_slice(),
        args => args,
    };
    work.spend(numbers.len())?;
    if numbers.is_empty() {
        return Err(EvalError::new("there are no numbers"));
    }
    match numbers.iter().find(|number| number.as_f64().is_none()) {
        Some(other) => Err(wrong("numbers", other)),
        None => Ok(numbers),
    }
}

/// An int if all are ints, else a double.
fn sum(work: &mut Work, args: &[Value]) -> Evaluated {
    let numbers = numbers(work, args)?;
    let ints = numbers.iter().try_fold(0i64, |sum, number| sum.checked_add(number.as_i64()?));
    match ints {
        Some(sum) => Ok(Value::Int(sum)),
        None if numbers.iter().all(|number| number.as_i64().is_some()) => {
            Err(EvalError::new("the sum does not fit an int"))
        }
        None => finite(numbers.iter().filter_map(Value::as_f64).sum()),
    }
}

fn avg(work: &mut Work, args: &[Value]) -> Evaluated {
    let numbers = numbers(work, args)?;
    finite(numbers.iter().filter_map(Value::as_f64).sum::<f64>() / numbers.len() as f64)
}

fn min(work: &mut Work, args: &[Value]) -> Evaluated {
    pick(work, args, |next, best| compare(next, best).is_some_and(|order| order.is_lt()))
}

fn max(work: &mut Work, args: &[Value]) -> Evaluated {
    pick(work, args, |next, best| compare(next, best).is_some_and(|order| order.is_gt()))
}

fn pick(work: &mut Work, args: &[Value], better: fn(&Value, &Value) -> bool) -> Evaluated {
    let numbers = numbers(work, args)?;
    let best = numbers.iter().reduce(|best, next| if better(next, best) { next } else { best });
    Ok(best.cloned().unwrap_or_default())
}

fn abs(_: &mut Work, args: &[Value]) -> Evaluated {
    match &args[0] {
        Value::Int(number) => number
            .checked_abs()
            .map(Value::Int)
            .ok_or_else(|| EvalError::new("the result does not fit an int")),
        Value::Float(number) => Ok(Value::Float(number.abs())),
        other => Err(wrong("a number", other)),
    }
}

/// To the nearest int, halves away from zero; with digits, to a double with that many decimals.
fn round(_: &mut Work, args: &[Value]) -> Evaluated {
    match (&args[0], args.get(1)) {
        (Value::Int(number), None) => Ok(Value::Int(*number)),
        (Value::Float(number), None) => float_to_int(number.round()),
        (Value::Int(_) | Value::Float(_), Some(Value::Int(digits @ 0..=15))) => {
            let (number, scale) = (args[0].as_f64().unwrap_or_default(), 10f64.powi(*digits as i32));
            let scaled = (number * scale).round() / scale;
            finite(if scaled.is_finite() { scaled } else { number })
        }
        (Value::Int(_) | Value::Float(_), Some(digits)) => Err(wrong("0 to 15 digits", digits)),
        (other, _) => Err(wrong("a number", other)),
    }
}

fn float_to_int(number: f64) -> Evaluated {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        Ok(Value::Int(number as i64))
    } else {
        Err(EvalError::new(format!("{number} does not fit an int")))
    }
}

fn to_int(_: &mut Work, args: &[Value]) -> Evaluated {
    match &args[0] {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Float(number) => float_to_int(number.trunc()),
        Value::String(text) => text.parse().map(Value::Int).map_err(|_| wrong("an int", &args[0])),
        other => Err(wrong("a number or a string", other)),
    }
}

fn to_double(_: &mut Work, args: &[Value]) -> Evaluated {
    match &args[0] {
        Value::Int(number) => Ok(Value::Float(*number as f64)),
        Value::Float(number) => Ok(Value::Float(*number)),
        Value::String(text) => match text.parse() {
            Ok(number) => finite(number),
            Err(_) => Err(wrong("a number", &args[0])),
        },
        other => Err(wrong("a number or a string", other)),
    }
}

fn to_bool(_: &mut Work, args: &[Value]) -> Evaluated {
    match &args[0] {
        Value::Bool(flag) => Ok(Value::Bool(*flag)),
        Value::String(text) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(wrong("true or false", &args[0])),
        },
        other => Err(wrong("a bool or a string", other)),
    }
}

fn to_string(_: &mut Work, args: &[Value]) -> Evaluated {
    match &args[0] {
        Value::String(text) => Ok(Value::String(text.clone())),
        Value::Bool(flag) => Ok(Value::from(flag.to_string())),
        Value::Int(number) => Ok(Value::from(number.to_string())),
        Value::Float(number) => Ok(Value::from(number.to_string())),
        other => Err(EvalError::new(format!("{} has no text of its own: write to_json(x)", brief(other)))),
    }
}

fn json(work: &mut Work, args: &[Value]) -> Evaluated {
    let text = text::string(&args[0])?;
    work.spend_bytes(text.len())?;
    Value::from_json_str(text).map_err(EvalError::new)
}

fn to_json(work: &mut Work, args: &[Value]) -> Evaluated {
    // Measured first: parts that share memory do not share their text.
    if !args[0].fits(work.bytes_left()) {
        work.spend(usize::MAX)?;
    }
    let text = args[0].to_string();
    work.spend_bytes(text.len())?;
    Ok(Value::from(text))
}

/// Shallow; later maps win.
fn merge(work: &mut Work, args: &[Value]) -> Evaluated {
    let mut merged = Map::new();
    for arg in args {
        let map = arg.as_map().ok_or_else(|| wrong("maps", arg))?;
        work.spend(map.len())?;
        merged.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(Value::from(merged))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::FUNCS.is_sorted_by(|a, b| a.name < b.name));
    }
}
