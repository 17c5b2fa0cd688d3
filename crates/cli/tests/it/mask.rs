//! What differs from day to day, replaced: ids, durations, times, bars, paths, process ids.

use std::path::Path;

pub(crate) fn mask(text: &str, dir: &Path) -> String {
    let text = text.replace(&*dir.to_string_lossy(), "[DIR]");
    let mut out: String = text.lines().map(|line| format!("{}\n", masked(line))).collect();
    out.truncate(out.trim_end().len());
    out
}

fn masked(line: &str) -> String {
    let head = line.starts_with("RUN ") || line.starts_with("GATE ");
    let changes = head || line.contains(['━', '─']) || line.split(' ').any(|word| masked_word(word) != word);
    if !changes {
        return line.replace("just now", "[AGO]");
    }
    let bare: String = line.chars().map(|c| if "━─".contains(c) { ' ' } else { c }).collect();
    let indent = bare.len() - bare.trim_start().len();
    // Columns are as wide as what was masked in them.
    let mut text = String::new();
    let mut gap = 0;
    for word in bare.trim().split(' ') {
        if word.is_empty() {
            gap += 1;
            continue;
        }
        text.push_str(match (text.is_empty(), gap) {
            (true, _) => "",
            (false, 0) => " ",
            (false, _) => "  ",
        });
        gap = 0;
        text.push_str(&masked_word(word));
    }
    for words in ["just now", "[N]s ago", "[TIME] ago"] {
        text = text.replace(words, "[AGO]");
    }
    // The place of a time at the beginning of a line moves with its length.
    let indent = if text.starts_with("+[TIME]") { 2 } else { indent };
    format!("{}{text}", " ".repeat(indent))
}

fn masked_word(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let fresh = !out.ends_with(|c: char| c.is_ascii_alphanumeric());
        let found = if fresh { special(rest) } else { None };
        match found {
            Some((length, name)) => {
                out.push_str(name);
                rest = &rest[length..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// What a text begins with, if that differs from day to day.
fn special(text: &str) -> Option<(usize, &'static str)> {
    let taken = |fits: fn(char) -> bool| text.find(|c| !fits(c)).unwrap_or(text.len());
    let id = taken(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    if id == 26 && text.starts_with('0') {
        return Some((id, "[RUN]"));
    }
    if id == 8 && !["WORKFLOW", "ATTEMPTS"].contains(&&text[..id]) {
        return Some((id, "[SHORT]"));
    }
    let time = taken(|c| c.is_ascii_digit() || "-T:.Z".contains(c));
    if (text.starts_with("20") && time > 18) || (time == 12 && text[..time].matches(':').count() == 2) {
        return Some((time, "[WHEN]"));
    }
    if let Some(length) = duration(text) {
        return Some((length, "[TIME]"));
    }
    let digits = taken(|c| c.is_ascii_digit());
    // Milliseconds since 1970.
    (digits == 13).then_some((digits, "[WHEN]"))
}

/// `12ms`, `1.204s`, `3m12s`: numbers with units, to the end of a word.
fn duration(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let number = text[at..].find(|c: char| !c.is_ascii_digit() && c != '.').filter(|length| *length > 0);
        let Some(number) = number else { break };
        let unit_at = at + number;
        let unit = text[unit_at..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len() - unit_at);
        if !["ms", "s", "m", "h", "d"].contains(&&text[unit_at..unit_at + unit]) {
            break;
        }
        at = unit_at + unit;
    }
    (at > 0 && !text[at..].starts_with(|c: char| c.is_alphanumeric())).then_some(at)
}

/// A number behind a key of JSON, which no word tells apart from another.
pub(crate) fn mask_field(text: &str, key: &str) -> String {
    let mark = format!("\"{key}\":");
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&mark) {
        let value = at + mark.len();
        let blanks = rest[value..].len() - rest[value..].trim_start().len();
        out.push_str(&rest[..value + blanks]);
        out.push_str("[N]");
        rest = rest[value + blanks..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    }
    out + rest
}

#[test]
fn masks_cover_what_changes_and_nothing_else() {
    let shown = "  +1.204s  run 01KDTXS6001JD7Q2M4K1ZABCDE started (2s ago) at 2026-01-01T00:00:00.12Z in E0101 3m12s";
    assert_eq!(masked(shown), "  +[TIME]  run [RUN] started ([AGO]) at [WHEN] in E0101 [TIME]");
    assert_eq!(masked("  ✓ a   12ms  ━━━   1/2 nodes"), "  ✓ a  [TIME]  1/2 nodes");
    assert_eq!(mask_field(r#"{"a": 12, "b":3}"#, "a"), r#"{"a": [N], "b":3}"#);
}
