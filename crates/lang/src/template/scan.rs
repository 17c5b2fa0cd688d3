//! A template as a row of pieces: what is written, what is put in, and tags; and the filters, tests and functions
//! that it names. Read by letter, for checks before anything is rendered; what a template means is in `lower.rs` and
//! `eval.rs`.

/// A part of a template, with where its text begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece<'t> {
    /// Text that stands for itself.
    Written(&'t str),
    /// `{{ … }}`
    Value(&'t str, usize),
    /// `{% … %}`
    Tag(&'t str, usize),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NamedKind {
    Filter,
    Test,
    Function,
}

/// A filter, test or function where a template names it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Named<'t> {
    pub kind: NamedKind,
    pub name: &'t str,
    /// In bytes, into the template.
    pub offset: usize,
}

/// The pieces in order. Comments are left out; what a tag repeats or leaves out is there once.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut at, mut raw, mut trim) = (0, false, false);
    while at < text.len() {
        let rest = &text[at..];
        let mark = ["{{", "{%", "{#"].iter().filter_map(|mark| rest.find(mark)).min();
        let written = &rest[..mark.unwrap_or(rest.len())];
        let open = mark.map(|mark| &rest[mark..]);
        let cut_end = open.is_some_and(|open| open[2..].starts_with('-'));
        let shown = if trim { written.trim_start() } else { written };
        let shown = if cut_end { shown.trim_end() } else { shown };
        if !shown.is_empty() {
            pieces.push(Piece::Written(shown));
        }
        let Some(open) = open else { break };
        let start = at + written.len();
        let (close, comment) = match &open[..2] {
            "{{" => ("}}", false),
            "{%" => ("%}", false),
            _ => ("#}", true),
        };
        let Some(len) = (if comment { open.find(close) } else { end_of(open, close) }) else { break };
        let inside = &open[2..len];
        trim = inside.ends_with('-');
        at = start + len + 2;
        let word = inside.trim_matches(['-', '+', ' ', '\n', '\t']);
        match close {
            "%}" if word == "endraw" => raw = false,
            _ if raw => pieces.push(Piece::Written(&text[start..at])),
            "%}" if word == "raw" => raw = true,
            "%}" => pieces.push(Piece::Tag(inside, start + 2)),
            "}}" => pieces.push(Piece::Value(inside, start + 2)),
            _ => {}
        }
    }
    pieces
}

/// Where `close` begins, outside quotes.
fn end_of(open: &str, close: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in open.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if open[at..].starts_with(close) => return Some(at),
            None => {}
        }
    }
    None
}

/// Every filter, test and function that is named, in order.
pub(super) fn named(text: &str) -> Vec<Named<'_>> {
    let mut found = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Value(inside, offset) | Piece::Tag(inside, offset) => named_in(inside, offset, &mut found),
            Piece::Written(_) => {}
        }
    }
    found
}

/// Words and signs of one tag, quoted texts left out.
fn named_in<'t>(inside: &'t str, offset: usize, found: &mut Vec<Named<'t>>) {
    let words = words(inside);
    for (at, (start, word)) in words.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).map_or("", |at| words[at].1);
        let after = words.get(at + 1).map_or("", |(_, word)| word);
        if !word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            continue;
        }
        let kind = match (before(1), before(2)) {
            ("|", _) => NamedKind::Filter,
            ("filter", "") => NamedKind::Filter,
            ("is", _) if *word != "not" => NamedKind::Test,
            ("not", "is") => NamedKind::Test,
            (previous, _) if after == "(" && previous != "." && !KEYWORDS.contains(word) => {
                NamedKind::Function
            }
            _ => continue,
        };
        found.push(Named { kind, name: word, offset: offset + start });
    }
}

/// Words that a bracket may follow without a call.
const KEYWORDS: [&str; 14] =
    ["if", "elif", "else", "for", "in", "and", "or", "not", "is", "set", "with", "do", "filter", "recursive"];

fn words(inside: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut chars = inside.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if c == '\'' || c == '"' {
            let mut escaped = false;
            let mut end = inside.len();
            for (at, next) in chars.by_ref() {
                if !escaped && next == c {
                    end = at + 1;
                    break;
                }
                escaped = !escaped && next == '\\';
            }
            words.push((start, &inside[start..end]));
        } else if c.is_alphanumeric() || c == '_' {
            let mut end = start + c.len_utf8();
            while let Some((at, next)) =
                chars.peek().copied().filter(|(_, c)| c.is_alphanumeric() || *c == '_')
            {
                end = at + next.len_utf8();
                chars.next();
            }
            words.push((start, &inside[start..end]));
        } else if !c.is_whitespace() && !matches!(c, '-' | '+') {
            words.push((start, &inside[start..start + c.len_utf8()]));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_in_order() {
        assert_eq!(
            pieces("a {{ x }}\n{%- if y -%} b {# {{ no }} #}{% endif %}{% raw %}{{ z }}{% endraw %}"),
            [
                Piece::Written("a "),
                Piece::Value(" x ", 4),
                Piece::Tag("- if y -", 12),
                Piece::Written("b "),
                Piece::Tag(" endif ", 41),
                Piece::Written("{{ z }}"),
            ]
        );
        assert_eq!(pieces("{{ '}}' }}!"), [Piece::Value(" '}}' ", 2), Piece::Written("!")]);
        assert_eq!(pieces("{{ open"), []);
    }

    #[test]
    fn filters_tests_and_functions_are_found_and_nothing_else() {
        let text = "{{ x|upper|default('a|b') }}{% if y is not defined and z is odd %}{% for i in range(3) %}\
                    {{ loop.cycle(1) if (a) }}{% endfor %}{% filter trim %}{% endfilter %}{{ f (1) }}";
        let found: Vec<(NamedKind, &str)> =
            named(text).iter().map(|named| (named.kind, named.name)).collect();
        assert_eq!(
            found,
            [
                (NamedKind::Filter, "upper"),
                (NamedKind::Filter, "default"),
                (NamedKind::Test, "defined"),
                (NamedKind::Test, "odd"),
                (NamedKind::Function, "range"),
                (NamedKind::Filter, "trim"),
                (NamedKind::Function, "f"),
            ]
        );
        let named = named(text)[1];
        assert_eq!(&text[named.offset..named.offset + 7], "default");
    }
}
