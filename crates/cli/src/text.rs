//! Text that may be shown. A [`Text`] is made of our own literals and colours and of text from outside that was
//! cleaned on its way in, and the screen takes nothing else: a `String` cannot be printed as it is. What is cleaned,
//! and how, is `visible`'s to say; why, is in `docs/adr/0025-text-from-outside.md`.

use std::borrow::Cow;
use std::sync::Arc;

use console::{Alignment, measure_text_width, pad_str, truncate_str};
use wonder_core::Time;
use wonder_core::visible;

/// There is no `Display`: whoever wants to put one into a sentence uses [`text!`], which keeps its colours.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Text(String);

/// `text!("{} of {}", done, total)`: our own words, with pieces that are cleaned unless they are [`Text`] already.
/// A name in the braces is refused, since nobody could see whether it was cleaned.
macro_rules! text {
    ($own:literal $(, $piece:expr)* $(,)?) => {{
        const {
            let pieces: &[&str] = &[$(stringify!($piece)),*];
            assert!($crate::text::has_holes($own, pieces.len()), "there is not one piece for each hole");
        }
        $crate::text::Text::filled($own, &[$($crate::text::Shown::shown(&$piece)),*])
    }};
}
pub(crate) use text;

/// Whether a literal has so many `{}`, and no other braces.
pub(crate) const fn has_holes(own: &'static str, pieces: usize) -> bool {
    let bytes = own.as_bytes();
    let (mut at, mut holes) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' if at + 1 < bytes.len() && bytes[at + 1] == b'}' => {
                holes += 1;
                at += 1;
            }
            b'{' | b'}' => return false,
            _ => {}
        }
        at += 1;
    }
    holes == pieces
}

impl Text {
    pub(crate) const EMPTY: Text = Text(String::new());

    /// Text from outside, on as many lines as it has.
    pub(crate) fn block(outside: &str) -> Text {
        Text(visible::block(outside).into_owned())
    }

    /// What a library drew with colours from text that was clean: the colours stay, whatever else could be obeyed is
    /// shown.
    pub(crate) fn drawn(drawing: &str) -> Text {
        let mut out = Text::EMPTY;
        let mut rest = drawing;
        while let Some(at) = rest.find('\u{1b}') {
            let colour = visible::colour_len(&rest[at..]);
            let end = at + colour.max(1);
            out.push(Text::block(&rest[..if colour > 0 { at } else { end }]));
            out.0.push_str(if colour > 0 { &rest[at..end] } else { "" });
            rest = &rest[end..];
        }
        out.push(Text::block(rest));
        out
    }

    /// For [`text!`]: the literal is ours, and there is no way to make a piece but by [`Shown`].
    pub(crate) fn filled(own: &'static str, pieces: &[Piece<'_>]) -> Text {
        let mut parts = own.split("{}");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for (Piece(piece), part) in pieces.iter().zip(parts) {
            out.push_str(piece);
            out.push_str(part);
        }
        Text(out)
    }

    pub(crate) fn blanks(number: usize) -> Text {
        Text(" ".repeat(number))
    }

    pub(crate) fn push(&mut self, more: impl Into<Text>) {
        self.0.push_str(&more.into().0);
    }

    pub(crate) fn push_line(&mut self, line: impl Into<Text>) {
        self.push(line);
        self.0.push('\n');
    }

    pub(crate) fn joined<T: Shown>(texts: impl IntoIterator<Item = T>, between: &'static str) -> Text {
        let mut out = String::new();
        for (at, text) in texts.into_iter().enumerate() {
            out.push_str(if at == 0 { "" } else { between });
            out.push_str(&text.shown().0);
        }
        Text(out)
    }

    /// Each on its line.
    pub(crate) fn of_lines(lines: impl IntoIterator<Item = Text>) -> Text {
        let mut out = Text::EMPTY;
        lines.into_iter().for_each(|line| out.push_line(line));
        out
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = Text> + '_ {
        self.0.lines().map(|line| Text(line.to_owned()))
    }

    pub(crate) fn trim_end(&self) -> Text {
        Text(self.0.trim_end().to_owned())
    }

    /// Columns on a screen.
    pub(crate) fn width(&self) -> usize {
        measure_text_width(&self.0)
    }

    /// Filled up with blanks to a width on the screen.
    pub(crate) fn pad(&self, width: usize) -> Text {
        Text(pad_str(&self.0, width, Alignment::Left, None).into_owned())
    }

    /// Filled up from the left: numbers end where numbers end.
    pub(crate) fn pad_left(&self, width: usize) -> Text {
        Text(pad_str(&self.0, width, Alignment::Right, None).into_owned())
    }

    /// Cut to a width on the screen.
    pub(crate) fn fit(&self, width: Option<usize>) -> Text {
        match width {
            Some(width) => Text(truncate_str(&self.0, width, "…").into_owned()),
            None => self.clone(),
        }
    }

    /// The same with a style around it, which is ours.
    pub(crate) fn styled(&self, style: &console::Style) -> Text {
        Text(style.apply_to(&self.0).to_string())
    }
}

/// For snapshots.
#[cfg(test)]
impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// On one line.
impl From<&str> for Text {
    fn from(outside: &str) -> Text {
        Text(visible::line(outside).into_owned())
    }
}

impl From<String> for Text {
    fn from(outside: String) -> Text {
        Text::from(outside.as_str())
    }
}

impl From<&String> for Text {
    fn from(outside: &String) -> Text {
        Text::from(outside.as_str())
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Text {
        text.clone()
    }
}

/// A part of a [`Text`].
#[derive(Debug)]
pub(crate) struct Piece<'p>(Cow<'p, str>);

/// What can be a piece of a text: a text as it is, all else cleaned.
pub(crate) trait Shown {
    fn shown(&self) -> Piece<'_>;
}

impl Shown for Text {
    fn shown(&self) -> Piece<'_> {
        Piece(Cow::Borrowed(&self.0))
    }
}

impl Shown for str {
    fn shown(&self) -> Piece<'_> {
        Piece(visible::line(self))
    }
}

impl<T: Shown + ?Sized> Shown for &T {
    fn shown(&self) -> Piece<'_> {
        (**self).shown()
    }
}

macro_rules! shown {
    (texts: $($text:ty),*; written: $($written:ty),*) => {
        $(impl Shown for $text {
            fn shown(&self) -> Piece<'_> {
                (**self).shown()
            }
        })*
        $(impl Shown for $written {
            fn shown(&self) -> Piece<'_> {
                Piece(Cow::Owned(visible::line(&self.to_string()).into_owned()))
            }
        })*
    };
}

shown! {
    texts: String, Arc<str>, Cow<'_, str>;
    written: u32, u64, usize, Time, wonder_core::event::GateId, wonder_core::error::ErrorKind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cleaned_and_texts_keep_their_colours() {
        let red = Text::from("red").styled(&console::Style::new().force_styling(true).red());
        let shown = text!("{}: {} ({})", "a\u{1b}[2J\n", red, 7u32);
        assert_eq!(shown.as_str(), "a␛[2J␊: \u{1b}[31mred\u{1b}[0m (7)");
        assert_eq!(text!("\x1b[{}A", 3usize).as_str(), "\u{1b}[3A");
    }

    #[test]
    fn of_a_drawing_only_colours_stay() {
        let drawing = "\u{1b}[31;1mx\u{1b}[0m \u{1b}]0;t\u{7} \u{9b}2J\n\u{1b}[2K\u{1b}";
        assert_eq!(Text::drawn(drawing).as_str(), "\u{1b}[31;1mx\u{1b}[0m ␛]0;t␇ <U+009B>2J\n␛[2K␛");
    }
}
