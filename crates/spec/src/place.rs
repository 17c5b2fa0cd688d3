//! Places in a source text: spans in bytes, lines and columns, and the table behind core's [`Spot`]s.
//!
//! The YAML parser counts characters; everything behind it counts bytes. The translation costs the same
//! for every mark, however long the text and whatever its script. Nothing here knows what a text means,
//! beyond how YAML writes a scalar.

use wonder_core::def::{Spot, Text};

/// A part of the source, in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Span {
        // The reader refuses texts of 4 GiB and more long before this.
        let cut = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: cut(start), end: cut(end.max(start)) }
    }

    pub(crate) fn of<'s>(&self, source: &'s str) -> &'s str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// Spans by [`Spot`]. Spot 0 is nowhere.
#[derive(Clone, Debug)]
pub(crate) struct Spots(Vec<Span>);

impl Spots {
    pub(crate) fn new() -> Spots {
        Spots(vec![Span::default()])
    }

    pub(crate) fn add(&mut self, span: Span) -> Spot {
        self.0.push(span);
        Spot(u32::try_from(self.0.len() - 1).unwrap_or(0))
    }

    pub(crate) fn text(&mut self, text: &str, span: Span) -> Text {
        Text { text: text.into(), spot: self.add(span) }
    }

    /// None for "nowhere", and for a spot of some other table.
    pub(crate) fn span(&self, spot: Spot) -> Option<Span> {
        match spot {
            Spot::NOWHERE => None,
            Spot(at) => self.0.get(at as usize).copied(),
        }
    }
}

/// How many characters lie between two known byte offsets.
const STRIDE: usize = 64;

/// Translates the parser's character counts to bytes.
pub(crate) struct Marks<'s> {
    source: &'s str,
    /// The byte offset of every `STRIDE`-th character; empty if characters are bytes.
    known: Vec<u32>,
    /// Surrogate pairs were joined before parsing: a pair of escapes counts as one character.
    joined: bool,
}

impl<'s> Marks<'s> {
    pub(crate) fn new(source: &'s str, joined: bool) -> Marks<'s> {
        let mut marks = Marks { source, known: Vec::new(), joined };
        if source.is_ascii() && !joined {
            return marks;
        }
        let (mut at, mut count) = (0, 0);
        while at < source.len() {
            if count % STRIDE == 0 {
                marks.known.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
            at += marks.step(at);
            count += 1;
        }
        marks
    }

    pub(crate) fn byte(&self, index: usize) -> usize {
        if self.known.is_empty() {
            return index.min(self.source.len());
        }
        let Some(known) = self.known.get(index / STRIDE) else { return self.source.len() };
        let mut at = *known as usize;
        for _ in 0..index % STRIDE {
            at += self.step(at);
        }
        at.min(self.source.len())
    }

    /// Bytes of what the parser saw as one character.
    fn step(&self, at: usize) -> usize {
        let rest = &self.source.as_bytes()[at.min(self.source.len())..];
        match rest.first() {
            None => 0,
            Some(b'\\') if self.joined => match escape_len(rest) {
                PAIR => PAIR,
                _ => 1,
            },
            Some(first) => utf8_len(*first),
        }
    }
}

/// Bytes of `\uD83D\uDE00`.
const PAIR: usize = 12;

/// The text with each JSON surrogate pair as the one character it means, if there is any; YAML has no
/// such escapes. A backslash that is itself escaped begins none.
pub(crate) fn join_surrogates(source: &str) -> Option<String> {
    let mut joined = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = source[at..].find('\\') {
        at += found;
        let rest = &source.as_bytes()[at..];
        let len = escape_len(rest);
        if let Some(character) = (len == PAIR).then(|| pair_char(rest)).flatten() {
            joined.push_str(&source[copied..at]);
            joined.push(character);
            copied = at + PAIR;
        }
        at += len;
    }
    if copied == 0 {
        return None;
    }
    joined.push_str(&source[copied..]);
    Some(joined)
}

/// Bytes of the escape that `rest` begins with: a surrogate pair, or the backslash and what it escapes.
fn escape_len(rest: &[u8]) -> usize {
    if pair_char(rest).is_some() {
        return PAIR;
    }
    1 + rest.get(1).map_or(0, |byte| utf8_len(*byte))
}

fn pair_char(rest: &[u8]) -> Option<char> {
    let unit = |at: usize| -> Option<u16> {
        let digits = rest.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (high, low) = (unit(0)?, unit(6)?);
    char::decode_utf16([high, low]).next()?.ok().filter(|character| character.len_utf16() == 2)
}

fn utf8_len(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

/// Where each line begins, for lines and columns in logarithmic time.
#[derive(Clone, Debug)]
pub(crate) struct Lines(Vec<u32>);

impl Lines {
    pub(crate) fn new(source: &str) -> Lines {
        let starts = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = starts.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX));
        Lines(std::iter::once(0).chain(starts).collect())
    }

    /// The line a byte is in, from 0.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start as usize <= at).saturating_sub(1)
    }

    /// Where a line begins; where the text ends, for a line beyond it.
    pub(crate) fn start(&self, line: usize, source: &str) -> usize {
        self.0.get(line).map_or(source.len(), |start| *start as usize)
    }

    /// Line and column of a byte as people count: from 1, in characters.
    pub(crate) fn position(&self, at: usize, source: &str) -> (usize, usize) {
        let line = self.line(at);
        let before = source.get(self.start(line, source)..at).unwrap_or("");
        (line + 1, before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_become_bytes_in_any_script() {
        let text = "aé漢😀".repeat(100);
        let marks = Marks::new(&text, false);
        for (index, (at, _)) in text.char_indices().enumerate() {
            assert_eq!(marks.byte(index), at);
        }
        assert_eq!(marks.byte(400), text.len());
        assert_eq!(marks.byte(9999), text.len());
    }

    #[test]
    fn surrogate_pairs_count_once() {
        let source = r#"{"a": "\uD83D\uDE00x", "b": "\\uD83D\\uDE00", "c": "\uD83D"}"#;
        let joined = join_surrogates(source).unwrap();
        assert_eq!(joined, r#"{"a": "😀x", "b": "\\uD83D\\uDE00", "c": "\uD83D"}"#);
        let marks = Marks::new(source, true);
        let index = joined.chars().position(|c| c == 'x').unwrap();
        assert_eq!(marks.byte(index), source.find('x').unwrap());
        assert_eq!(marks.byte(joined.chars().count()), source.len());
    }

    #[test]
    fn positions_count_characters() {
        let source = "é: 1\nb: 2\n";
        let lines = Lines::new(source);
        assert_eq!(lines.position(2, source), (1, 2));
        assert_eq!(lines.position(6, source), (2, 1));
        assert_eq!(lines.position(11, source), (3, 1));
    }
}
