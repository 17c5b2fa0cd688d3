//! A part of a scalar: from an offset in the text it means to the place in the file that says it.
//!
//! Escapes, doubled quotes, folded lines and the indentation of blocks lie between the two. Where a folded
//! block holds deeper-indented lines the place may be a character off, never outside the scalar.

use crate::place::Span;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    /// A `|` block and how far its lines are indented.
    Literal(usize),
    Folded(usize),
}

/// The span of `len` bytes at `offset` of the text that the scalar at `whole` means.
pub(crate) fn part(source: &str, whole: Span, offset: usize, len: usize) -> Span {
    let (start, end) = (whole.start as usize, whole.end as usize);
    let Some(text) = source.get(start..end) else { return whole };
    let style = style(source, start, text);
    let inside = match style {
        Style::Single | Style::Double => 1..text.len().saturating_sub(1).max(1),
        _ => 0..text.len(),
    };
    let Some(raw) = text.get(inside.clone()) else { return whole };
    let (mut at, mut meant) = (0, 0);
    let (mut from, mut to) = (None, None);
    while at < raw.len() && to.is_none() {
        let (raw_len, meant_len) = unit(&raw[at..], style);
        if from.is_none() && meant + meant_len > offset {
            from = Some(at);
        }
        if meant + meant_len >= offset + len.max(1) {
            to = Some(at + raw_len);
        }
        at += raw_len;
        meant += meant_len;
    }
    let base = start + inside.start;
    match (from, to) {
        (Some(from), to) => Span::new(base + from, base + to.unwrap_or(raw.len())),
        // Beyond the end: something is missing there.
        (None, _) => Span::new(base + raw.trim_end().len(), base + raw.trim_end().len()),
    }
}

fn style(source: &str, start: usize, text: &str) -> Style {
    if text.starts_with('"') {
        return Style::Double;
    }
    if text.starts_with('\'') {
        return Style::Single;
    }
    let before = &source[..start];
    let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]);
    let Some(header) = before.strip_suffix(line).filter(|_| line.trim().is_empty()) else {
        return Style::Plain;
    };
    let header = header.trim_end().rsplit('\n').next().unwrap_or("");
    let header = header.rsplit_once(" #").map_or(header, |(header, _)| header).trim_end();
    let bare = header.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
    match bare.chars().next_back() {
        Some('|') => Style::Literal(line.len()),
        Some('>') => Style::Folded(line.len()),
        _ => Style::Plain,
    }
}

/// Bytes of the next thing in the file, and of what it means.
fn unit(rest: &str, style: Style) -> (usize, usize) {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    match style {
        Style::Double if rest.starts_with('\\') => escape(rest),
        Style::Single if rest.starts_with("''") => (2, 1),
        Style::Literal(indent) => match line_end(rest) {
            Some(end) => (end + indentation(&rest[end..], indent), 1),
            None => (first, first),
        },
        Style::Folded(indent) => match line_end(rest) {
            Some(_) => {
                let blank = rest.len() - rest.trim_start_matches(['\n', '\r', ' ', '\t']).len();
                let last = rest[..blank].rfind('\n').map_or(blank, |at| at + 1);
                let lines = rest[..blank].matches('\n').count();
                (last + indentation(&rest[last..], indent), lines.saturating_sub(1).max(1))
            }
            None => (first, first),
        },
        _ => {
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            match rest[..blank].matches('\n').count() {
                0 => (first, first),
                lines => (blank, lines.saturating_sub(1).max(1)),
            }
        }
    }
}

fn line_end(rest: &str) -> Option<usize> {
    match rest.as_bytes() {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n', ..] => Some(1),
        _ => None,
    }
}

fn indentation(line: &str, most: usize) -> usize {
    line.bytes().take(most).take_while(|byte| *byte == b' ').count()
}

fn escape(rest: &str) -> (usize, usize) {
    let code = |digits: usize| {
        let value = rest.get(2..2 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        (2 + digits, value.and_then(char::from_u32))
    };
    let (len, meant) = match rest.as_bytes().get(1) {
        Some(b'x') => code(2),
        Some(b'u') => match code(4) {
            // Half of a surrogate pair: both halves mean one character of four bytes.
            (_, None) if rest.len() >= 12 => return (12, 4),
            read => read,
        },
        Some(b'U') => code(8),
        Some(b'N' | b'_') => return (2, 2),
        Some(b'L' | b'P') => return (2, 3),
        Some(b'\n' | b'\r') => {
            let blank = rest[1..].len() - rest[1..].trim_start().len();
            return (1 + blank, 0);
        }
        Some(_) => return (1 + rest[1..].chars().next().map_or(0, char::len_utf8), 1),
        None => return (1, 0),
    };
    (len.min(rest.len()), meant.map_or(1, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of `scalar` (as it stands in `source`) that says the bytes `offset..offset + len`.
    fn found(source: &str, scalar: &str, offset: usize, len: usize) -> String {
        let start = source.find(scalar).unwrap();
        part(source, Span::new(start, start + scalar.len()), offset, len).of(source).to_owned()
    }

    #[test]
    fn a_part_is_found_in_every_style() {
        assert_eq!(found("a: state.x + y", "state.x + y", 10, 1), "y");
        assert_eq!(found("a: 'it''s @ x'", "'it''s @ x'", 5, 1), "@");
        assert_eq!(found(r#"a: "é\n\u00e9 @ x""#, r#""é\n\u00e9 @ x""#, 6, 1), "@");
        assert_eq!(found(r#"a: "\ud83d\ude00@ x""#, r#""\ud83d\ude00@ x""#, 4, 1), "@");
        assert_eq!(found("a: |\n  one\n  two @ x\n", "one\n  two @ x", 8, 1), "@");
        assert_eq!(found("a: >-\n  one\n  two\n\n  @ x\n", "one\n  two\n\n  @ x", 8, 1), "@");
        assert_eq!(found("a: one\n  two\n  @\n", "one\n  two\n  @", 8, 1), "@");
        assert_eq!(found("a: one", "one", 3, 1), "");
        assert_eq!(found("a: \"\"", "\"\"", 0, 1), "");
        assert_eq!(found("a: one", "one", 0, 99), "one");
    }
}
