//! JSON that came from outside: what a command printed, what a server answered. A whole number that does not fit 64 bits
//! is kept as a text with all its digits: a float would be another number, and nobody would notice.

use std::borrow::Cow;

use wonder_core::value::Value;

/// The value of a text; null if it is no JSON, which is not a failure.
pub(crate) fn value_of(text: &str) -> Value {
    read(text).unwrap_or_default()
}

/// The same, or why it is no JSON.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    Value::from_json_str(&with_texts_for_large_numbers(text))
}

/// The digits of 64 bits: what has fewer fits.
const DIGITS_MIN: usize = 19;

fn with_texts_for_large_numbers(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_text(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end =
                    at + bytes[at..].iter().take_while(|byte| b"+-.eE0123456789".contains(byte)).count();
                if is_large(&text[at..end]) {
                    out.push_str(&text[copied..at]);
                    out.push_str(&format!("\"{}\"", &text[at..end]));
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Behind the quote that closes the text which opens here.
fn end_of_text(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn is_large(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= DIGITS_MIN
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_all_its_digits() {
        for (text, value) in [
            ("[9223372036854775807, -9223372036854775808]", "[9223372036854775807,-9223372036854775808]"),
            ("9223372036854775808", r#""9223372036854775808""#),
            (
                "[-9223372036854775809,12345678901234567890123]",
                r#"["-9223372036854775809","12345678901234567890123"]"#,
            ),
            (
                r#"{"9223372036854775808": "at 9223372036854775808 \" 9223372036854775808"}"#,
                r#"{"9223372036854775808":"at 9223372036854775808 \" 9223372036854775808"}"#,
            ),
            ("[1e30, 1.5, 0.1234567890123456789]", "[1e+30,1.5,0.12345678901234568]"),
            ("00009223372036854775808", "null"),
            ("9223372036854775808 and more", "null"),
            ("\"open \\", "null"),
            ("plain", "null"),
        ] {
            assert_eq!(value_of(text).to_string(), value, "{text}");
        }
        assert!(matches!(with_texts_for_large_numbers("[1, 2]"), Cow::Borrowed(_)));
    }
}
