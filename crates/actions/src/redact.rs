//! Keeping secrets in: every form a known secret is likely to come back in is replaced by `***`.
//!
//! It knows the value itself, its lines, and the value as JSON, a URL, a shell and base64 write it, within a
//! longer base64 text too (`Basic` headers). It cannot know what a program makes of a secret beyond that,
//! and values shorter than four bytes are left alone: they would hide half of every text.

use std::collections::BTreeSet;

use wonder_core::error::Failure;
use wonder_core::input::TaskOutcome;
use wonder_core::value::Value;

const HIDDEN: &str = "***";
const SECRET_BYTES_MIN: usize = 4;
/// A part of a secret on its own, a line or a stretch of base64, must be this long to be told from chance.
const PART_BYTES_MIN: usize = 6;

#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that no part of a longer one is left.
    forms: Vec<String>,
}

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut forms = BTreeSet::new();
        for secret in secrets.into_iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN) {
            forms_of(secret, &mut forms);
        }
        let mut forms: Vec<String> = forms.into_iter().collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        Redactor { forms }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.forms.is_empty()
    }

    pub(crate) fn hide(&self, mut text: String) -> String {
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = text.replace(form.as_str(), HIDDEN);
            }
        }
        text
    }

    pub(crate) fn hide_in(&self, value: &Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Int(_) | Value::Float(_) if !self.shows(&value.to_string()) => value.clone(),
            Value::Int(_) | Value::Float(_) => Value::str(HIDDEN),
            Value::String(text) if !self.shows(text) => value.clone(),
            Value::String(text) => Value::from(self.hide(text.to_string())),
            Value::List(items) => Value::list(items.iter().map(|item| self.hide_in(item))),
            Value::Map(map) => {
                Value::map(map.iter().map(|(key, value)| (self.hide(key.to_string()), self.hide_in(value))))
            }
        }
    }

    pub(crate) fn hide_failure(&self, failure: Failure) -> Failure {
        Failure {
            message: self.hide(failure.message),
            details: self.hide_in(&failure.details),
            cause: failure.cause.map(|cause| Box::new(self.hide_failure(*cause))),
            ..failure
        }
    }

    pub(crate) fn hide_outcome(&self, outcome: TaskOutcome) -> TaskOutcome {
        match outcome {
            TaskOutcome::Completed { result } => TaskOutcome::Completed { result: self.hide_in(&result) },
            TaskOutcome::Failed { failure, retry, step } => {
                TaskOutcome::Failed { failure: self.hide_failure(failure), retry, step }
            }
            outcome => outcome,
        }
    }

    /// Up to where a text that goes on can be hidden and shown: no secret lies across the end, and none may
    /// begin before it that the next text completes.
    pub(crate) fn safe_end(&self, text: &str) -> usize {
        let longest = self.forms.first().map_or(0, String::len);
        let from = text.len().saturating_sub(longest);
        let may_begin = |at: &usize| self.forms.iter().any(|form| form.starts_with(&text[*at..]));
        let mut starts = (from..text.len()).filter(|at| text.is_char_boundary(*at));
        let mut end = starts.find(may_begin).unwrap_or(text.len());
        // A text that repeats itself could hold back more and more: then what is known is hidden and shown.
        let least = text.len().saturating_sub(longest * 4);
        while let Some(start) = self.across(text, end).map(|(start, _)| start).min() {
            if start < least {
                return self.across(text, end).map(|(_, end)| end).max().unwrap_or(end);
            }
            end = start;
        }
        end
    }

    /// Where forms of secrets lie that begin before a place and end after it.
    fn across<'t>(&'t self, text: &'t str, at: usize) -> impl Iterator<Item = (usize, usize)> + 't {
        self.forms.iter().flat_map(move |form| {
            let starts =
                (at.saturating_sub(form.len() - 1)..at).filter(|start| text.is_char_boundary(*start));
            let found = starts.filter(move |start| text[*start..].starts_with(form.as_str()));
            found.map(move |start| (start, start + form.len())).filter(move |(_, end)| *end > at)
        })
    }

    fn shows(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form.as_str()))
    }
}

fn forms_of(secret: &str, forms: &mut BTreeSet<String>) {
    let quoted = Value::str(secret).to_string();
    forms.insert(secret.to_owned());
    forms.insert(quoted[1..quoted.len() - 1].to_owned());
    forms.insert(secret.replace('\'', "'\\''"));
    for hex in [percent, percent_lower] {
        forms.insert(encoded(secret, hex));
        forms.insert(encoded(secret, hex).replace("%20", "+"));
    }
    let lines = secret.lines().map(str::trim);
    forms.extend(lines.filter(|line| line.len() >= PART_BYTES_MIN).map(str::to_owned));
    for alphabet in [STANDARD, URL_SAFE] {
        base64_forms(secret.as_bytes(), alphabet, forms);
    }
}

/// As it stands in a URL: everything but unreserved characters as `%XX`.
pub(crate) fn percent_encoded(text: &str) -> String {
    encoded(text, percent)
}

fn encoded(text: &str, hex: fn(u8) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&hex(byte)),
        }
    }
    out
}

fn percent(byte: u8) -> String {
    format!("%{byte:02X}")
}

fn percent_lower(byte: u8) -> String {
    format!("%{byte:02x}")
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The secret alone, and as a part of something longer: base64 takes three bytes at a time, so there are
/// three ways it can fall, and what its neighbours have a say in is left out.
fn base64_forms(secret: &[u8], alphabet: &[u8; 64], forms: &mut BTreeSet<String>) {
    let alone = base64(secret, alphabet);
    forms.insert(format!("{alone}{}", "=".repeat((4 - alone.len() % 4) % 4)));
    forms.insert(alone);
    for shift in 0..3 {
        let shifted = [&[0; 2][..shift], secret].concat();
        let text = base64(&shifted, alphabet);
        let own = &text[(shift * 8).div_ceil(6)..shifted.len() * 8 / 6];
        if own.len() >= PART_BYTES_MIN {
            forms.insert(own.to_owned());
        }
    }
}

/// Without padding.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            let six = word >> (18 - 6 * at) & 63;
            text.push(char::from(alphabet[six as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "p@ss wörd'\"9";

    fn hide(text: &str) -> String {
        Redactor::new([SECRET]).hide(text.to_owned())
    }

    #[test]
    fn base64_is_as_the_world_writes_it() {
        for (plain, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")] {
            assert_eq!(base64(plain.as_bytes(), STANDARD), text);
        }
        assert_eq!(base64(&[0xfb, 0xff], URL_SAFE), "-_8");
    }

    #[test]
    fn every_form_of_a_secret_is_hidden() {
        let forms = [
            SECRET.to_owned(),
            "p@ss wörd'\\\"9".to_owned(),
            "p@ss wörd'\\''\"9".to_owned(),
            "p%40ss%20w%C3%B6rd%27%229".to_owned(),
            "p%40ss%20w%c3%b6rd%27%229".to_owned(),
            "p%40ss+w%C3%B6rd%27%229".to_owned(),
            base64(SECRET.as_bytes(), STANDARD),
            base64(SECRET.as_bytes(), URL_SAFE),
        ];
        for form in forms {
            assert_eq!(hide(&format!("<{form}>")), "<***>", "{form}");
        }
        assert_eq!(hide("nothing here"), "nothing here");
    }

    #[test]
    fn base64_of_a_longer_text_does_not_give_it_away() {
        for before in ["", "u", "us", "use", "user:"] {
            let whole = base64(format!("{before}{SECRET}tail").as_bytes(), STANDARD);
            let hidden = hide(&whole);
            assert!(hidden.contains(HIDDEN), "{whole} became {hidden}");
            assert!(hidden.len() < whole.len() - 10, "{whole} became {hidden}");
        }
    }

    #[test]
    fn a_key_of_several_lines_is_hidden_line_by_line() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n}\n-----END KEY-----\n";
        let redactor = Redactor::new([key]);
        assert_eq!(redactor.hide("got MIIEvQIBADANBg".into()), "got ***");
        assert_eq!(redactor.hide("}".into()), "}");
    }

    #[test]
    fn values_are_searched_to_the_last_key_and_number() {
        let redactor = Redactor::new(["12345678", "tok-en"]);
        let value = Value::from_json_str(r#"{"a":[12345678,1,"x tok-en"],"tok-en":null}"#).unwrap();
        assert_eq!(redactor.hide_in(&value).to_string(), r#"{"***":null,"a":["***",1,"x ***"]}"#);
    }

    #[test]
    fn short_values_are_left_alone() {
        assert!(Redactor::new(["abc", ""]).is_idle());
    }
}
