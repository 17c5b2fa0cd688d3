//! Words for what is wrong with a text as YAML or JSON. The parser's own messages speak of tokens and
//! productions; these speak of what people do wrong.

use saphyr_parser::Tag;

use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::place::Span;
use crate::tree::{Entry, Node};

/// What the parser said (a part of it), what we say, and what to do about it.
const SAID: [(&str, &str, &str); 20] = [
    ("mapping values are not allowed", "a `:` is not expected here", ""),
    ("tab", "a tab cannot indent a line", "indent with spaces"),
    ("unexpected end of stream", "a quoted text is not closed", "add the closing quote"),
    ("document indicator in quoted", "a quoted text is not closed", "add the closing quote"),
    ("end of stream", "the file ends in the middle of a value", "close what is open"),
    (
        "invalid indentation in quoted scalar",
        "a quoted text is not closed",
        "add the closing quote; further lines of a text are indented deeper than its key",
    ),
    (
        "Unicode character escape",
        "an escape that stands for no character",
        "write the character itself, or as `\\U0001f600`",
    ),
    (
        "expected ',' or ']'",
        "a list is not closed",
        "write `,` before the next item, or `]` to close the list",
    ),
    ("expected ',' or '}'", "a map is not closed", "write `,` before the next key, or `}` to close the map"),
    (
        "illegal placement of ':'",
        "a list or map before this is not closed",
        "look for a `[` or `{` without its partner",
    ),
    ("misplaced bracket", "a closing bracket that nothing opened", "remove it, or open it before"),
    ("expect ':'", "a key without a `:`", "write `key: value`; a text of several lines begins with `|`"),
    ("expected ':'", "a key without a `:`", "write `key: value`; a text of several lines begins with `|`"),
    ("expected key", "the indentation does not fit", "keys of one map begin in the same column"),
    ("invalid indentation", "the indentation does not fit", "indent it deeper than the key it belongs to"),
    ("expected '-' indicator", "the indentation does not fit", "items of one list begin in the same column"),
    ("unknown anchor", "an alias names no anchor", "write `&name` before the value that `*name` repeats"),
    ("unexpected character", "a text cannot begin with this character", "put the text in quotes"),
    (
        "escape",
        "an escape that YAML does not know",
        "known are `\\n`, `\\t`, `\\\"`, `\\\\`, `\\u00e9` and `\\U0001f600`",
    ),
    ("recursion limit", "lists and maps nest too deep", "the bound is 64 levels"),
];

/// The parser's error, in words for the person who wrote the file.
pub(crate) fn explain(source: &str, at: usize, info: &str) -> Diagnostic {
    let at = source.floor_char_boundary(at);
    let line = source[..at].rsplit('\n').next().unwrap_or("");
    let said = SAID.iter().find(|(part, ..)| info.contains(part));
    let colon = said.filter(|(part, _, help)| help.is_empty() || part.contains("expect"));
    if let Some(problem) = colon.and_then(|_| too_deep(source, at).or_else(|| no_colon(source, at))) {
        return problem;
    }
    let (message, help) = match said {
        Some((_, message, "")) => (*message, colon_help(line)),
        Some((_, message, help)) => (*message, *help),
        None => ("this is neither YAML nor JSON", "check indentation, quotes and brackets around here"),
    };
    let help = if line.contains("{{") { "a text with `{{ ... }}` goes in quotes" } else { help };
    let said = format!("the parser says: {info}");
    Diagnostic::error(codes::SYNTAX, visible(source, at), message).label(said).help(help)
}

/// A key that is indented deeper than the key above it, which has its value already.
fn too_deep(source: &str, at: usize) -> Option<Diagnostic> {
    let start = source[..at].rfind('\n')? + 1;
    let line = source[start..].lines().next()?;
    let above = source[..start].lines().rev().find(|line| !line.trim().is_empty())?;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (key, _) = line.trim_start().trim_start_matches("- ").split_once(':')?;
    let (owner, value) = above.trim_start().trim_start_matches("- ").split_once(": ")?;
    let name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    if indent(line) <= indent(above) || value.trim().is_empty() || !name(key) || !name(owner) {
        return None;
    }
    let span = Span::new(start + indent(line), start + indent(line) + key.len());
    let message = format!(
        "the indentation does not fit: `{key}` is indented deeper than `{owner}`, which has its value already"
    );
    let problem =
        Diagnostic::error(codes::INDENTATION, span, message).label("expected in the column of the key above");
    Some(problem.help(format!(
        "begin `{key}` in the same column as `{owner}`; a text of several lines begins with `|`"
    )))
}

/// A line above that was meant as a key: without a `:`, or without the blank behind it.
fn no_colon(source: &str, at: usize) -> Option<Diagnostic> {
    let start = source[..at].rfind('\n')? + 1;
    let above = source[..start].lines().rev().find(|line| !line.trim().is_empty())?;
    let written = above.trim().trim_start_matches("- ");
    let place = above.as_ptr() as usize - source.as_ptr() as usize + above.find(written)?;
    let name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    let (message, help) = match written.split_once(':') {
        None if name(written) => (format!("the key `{written}` has no `:`"), format!("write `{written}:`")),
        Some((key, value)) if name(key) && !value.is_empty() && !value.starts_with([' ', ':', '/']) => {
            (format!("the `:` behind `{key}` needs a blank"), format!("write `{key}: {value}`"))
        }
        _ => return None,
    };
    let span = Span::new(place, place + written.len());
    Some(Diagnostic::error(codes::SYNTAX, span, message).label("expected `key: value`").help(help))
}

fn colon_help(line: &str) -> &'static str {
    if line.contains(':') {
        "if it belongs to a text, put the text in quotes"
    } else {
        "is this line indented like its neighbours, and does the line above have its own `:`?"
    }
}

/// The character at `at`, or the last one before it that can be seen.
fn visible(source: &str, at: usize) -> Span {
    let here = source[at..].chars().next().filter(|c| !c.is_whitespace());
    if let Some(c) = here {
        return Span::new(at, at + c.len_utf8());
    }
    let before = source[..at].trim_end();
    let last = before.chars().next_back().map_or(0, char::len_utf8);
    Span::new(before.len() - last, before.len())
}

/// Whether both problems stand on one line.
pub(crate) fn same_line(source: &str, first: &Diagnostic, second: &Diagnostic) -> bool {
    let (Some(first), Some(second)) = (first.span, second.span) else { return false };
    let between = first.start.min(second.start) as usize..first.start.max(second.start) as usize;
    source.get(between).is_some_and(|text| !text.contains('\n'))
}

/// A list or a map where a key should be: nearly always a template without quotes.
pub(crate) fn key_is_no_text(source: &str, outer: Span, key: &Node<'_>) -> Diagnostic {
    let template = source.get(outer.start as usize..).is_some_and(|rest| rest.starts_with("{{"));
    if template {
        let end = source[outer.start as usize..].find("}}").map(|len| outer.start as usize + len + 2);
        let span = Span::new(outer.start as usize, end.unwrap_or(outer.end as usize));
        let text = span.of(source).lines().next().unwrap_or("");
        return Diagnostic::error(codes::KEY_NOT_TEXT, span, "a template needs quotes")
            .label("without quotes YAML reads `{` as a map")
            .help(format!("write \"{text}\", quotes around the whole text"));
    }
    Diagnostic::error(codes::KEY_NOT_TEXT, key.span, "a key must be a text")
        .label(format!("found {} as a key", key.kind()))
}

pub(crate) fn merge_key(span: Span) -> Diagnostic {
    Diagnostic::error(codes::MERGE_KEY, span, "merge keys are not part of the format")
        .label("`<<` belongs to YAML 1.1")
        .help("write the keys out, or share them as a task, an action or a model")
}

pub(crate) fn tag(span: Span, tag: &Tag) -> Diagnostic {
    let name = format!("{}{}", tag.handle, tag.suffix);
    Diagnostic::error(codes::TAG, span, format!("the tag `{name}` is not known"))
        .label("only `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!seq` and `!!map` are")
        .help("leave the tag out; to make a text of a number, quote it")
}

pub(crate) fn duplicate_key(first: &Entry<'_>, again: &Entry<'_>) -> Diagnostic {
    Diagnostic::error(codes::DUPLICATE_KEY, again.key_span, format!("`{}` is written twice", again.key))
        .label("again here")
        .also(first.key_span, "first here")
        .help("keep one of them")
}

/// As a float it would silently be another number.
pub(crate) fn too_large(span: Span, text: &str) -> Diagnostic {
    let message = format!("`{text}` is beyond the whole numbers that are kept exactly");
    Diagnostic::error(codes::NOT_JSON, span, message)
        .label(format!("expected a number from {} to {}", i64::MIN, i64::MAX))
        .help("if its digits matter, put it in quotes, as a text; if not, write it with an exponent: 1e19")
}
