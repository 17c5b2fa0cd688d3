//! Text from outside, made safe to show: what could move a cursor, paint, forge a line, turn the direction of reading
//! or hide is replaced by something that can be seen. Letters, marks, emoji and their joiners stay as they are. Doing
//! it twice is doing it once. What is shown this way is for people to read; data stays as it is.

use std::borrow::Cow;

/// On one line: a line's end is shown as a mark, a tab as a blank.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, |c| match c {
        '\n' => Some(Shown::Char('␊')),
        '\t' => Some(Shown::Char(' ')),
        c => mark(c),
    })
}

/// On as many lines as it has: line ends and tabs stay.
pub fn block(text: &str) -> Cow<'_, str> {
    let text = match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    let keep = |c| if matches!(c, '\n' | '\t') { None } else { mark(c) };
    match replaced(&text, keep) {
        Cow::Owned(changed) => Cow::Owned(changed),
        Cow::Borrowed(_) => text,
    }
}

/// Whether a character is shown as it is on one line.
pub fn is_plain(c: char) -> bool {
    mark(c).is_none() && !matches!(c, '\n' | '\t')
}

enum Shown {
    Char(char),
    /// By its number.
    Code(u32),
}

fn replaced(text: &str, shown: impl Fn(char) -> Option<Shown>) -> Cow<'_, str> {
    let Some(first) = text.find(|c| shown(c).is_some()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(c) = rest.chars().next() {
        // Programs colour what they print: a colour says nothing, so it is left out.
        let colour = colour_len(rest);
        if colour > 0 {
            rest = &rest[colour..];
            continue;
        }
        match shown(c) {
            None => out.push(c),
            Some(Shown::Char(mark)) => out.push(mark),
            Some(Shown::Code(code)) => out.push_str(&format!("<U+{code:04X}>")),
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// Bytes of the colour sequence that a text begins with: `ESC [`, numbers, `m`.
pub fn colour_len(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = rest.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b';' | b':')).count();
    if rest[numbers..].starts_with('m') { numbers + 3 } else { 0 }
}

/// What a character is shown as, if not as itself.
fn mark(c: char) -> Option<Shown> {
    match c {
        // Each has a picture: ␛ for ESC.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).map(Shown::Char),
        '\u{7f}' => Some(Shown::Char('␡')),
        c if is_hidden(c) => Some(Shown::Code(u32::from(c))),
        _ => None,
    }
}

/// C1 controls, marks and overrides of direction, separators of lines, and characters of no width that join nothing.
/// The joiners U+200C and U+200D and the variation selectors of emoji are letters' business and stay.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e007f}')
}

/// JSON in which nothing is hidden: the same value, with such characters as escapes. `json` is valid JSON, where they
/// can only stand in texts.
pub fn json(json: &str) -> Cow<'_, str> {
    escaped(json, |c, out| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
    })
}

/// The same for a text in the double quotes of YAML, which knows no pairs.
pub fn yaml(quoted: &str) -> Cow<'_, str> {
    escaped(quoted, |c, out| match u32::from(c) {
        code @ 0..=0xffff => out.push_str(&format!("\\u{code:04x}")),
        code => out.push_str(&format!("\\U{code:08x}")),
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let hidden = |c: char| c == '\u{7f}' || is_hidden(c);
    let Some(first) = text.find(hidden) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if hidden(c) {
            escape(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_obeyed_is_shown() {
        let cases = [
            ("plain", "plain"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("\u{1b}[2J", "␛[2J"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("a\rb\u{8}c\u{7f}", "a␍b␈c␡"),
            ("one\ntwo\tthree", "one␊two three"),
            ("\u{202e}gpj\u{202c}", "<U+202E>gpj<U+202C>"),
            ("\u{e0041}", "<U+E0041>"),
        ];
        for (text, shown) in cases {
            assert_eq!(line(text), shown);
        }
        assert_eq!(block("a\r\nb\tc\rd\u{1b}"), "a\nb\tc␍d␛");
    }

    #[test]
    fn colours_of_programs_are_left_out_and_leave_nothing_behind() {
        assert_eq!(line("\u{1b}[1;31mred\u{1b}[0m"), "red");
        assert_eq!(line("\u{1b}[38:2::1:2:3mred"), "red");
        assert_eq!(line("\u{1b}[\u{1b}[31m31mred"), "␛[31mred");
        assert_eq!(line("\u{1b}[31"), "␛[31");
    }

    #[test]
    fn what_people_write_stays() {
        for text in [
            "👩‍👩‍👧‍👦 ❤️ 🏳️‍🌈 👍🏽",
            "می‌خواهم السلام عليكم שלום",
            "e\u{301} ñ 漢字 한국어 ไทย हिन्दी",
            "a\u{a0}b … → ✓ ⠋",
        ] {
            assert_eq!(line(text), text);
            assert_eq!(json(&format!("{text:?}")), format!("{text:?}"));
        }
    }

    #[test]
    fn doing_it_twice_is_doing_it_once() {
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        for text in [all.as_str(), "\u{1b}[\u{1b}[31m31m", "\r\r\n\n"] {
            let (once, of_block) = (line(text), block(text));
            assert_eq!(line(&once), once);
            assert_eq!(block(&of_block), of_block);
            assert!(once.chars().all(is_plain));
        }
    }

    #[test]
    fn json_with_escapes_is_the_same_value() {
        let text = "\u{9b}\u{202e}\u{e0041}\u{7f}é";
        let written = serde_json::to_string(text).unwrap();
        let shown = json(&written);
        assert!(shown.is_ascii() || shown.ends_with("é\""), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
