//! Times, money and counts as people read them. No clock: the time is an argument.

use wonder_core::{Time, Value, visible};
pub(crate) use wonder_engine::json::{brief, dollars_as_number};

/// `812ms`, `1.2s`, `3m12s`, `2h05m`, `3d4h`: two units at most, none of them padded away.
pub(crate) fn duration(ms: u64) -> String {
    let (seconds, minutes, hours, days) = (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", seconds, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{minutes}m{:02}s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

/// `+1.204s`: the time since something, to the millisecond.
pub(crate) fn offset(ms: u64) -> String {
    format!("+{}.{:03}s", ms / 1_000, ms % 1_000)
}

/// `just now`, `12s ago`, `3m ago`, `2h ago`, `5d ago`.
pub(crate) fn ago(at: Time, now: Time) -> String {
    let seconds = now.since(at) / 1_000;
    match seconds {
        0..2 => "just now".to_owned(),
        2..60 => format!("{seconds}s ago"),
        60..3_600 => format!("{}m ago", seconds / 60),
        3_600..86_400 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// `3m left`, or that the time is over.
pub(crate) fn until(at: Time, now: Time) -> String {
    match at.since(now) {
        0 => "overdue".to_owned(),
        left => format!("{} left", duration(left)),
    }
}

/// `$0.0042`: four places, six where four would show nothing, two from ten dollars on.
pub(crate) fn dollars(micros: u64) -> String {
    let whole = micros / 1_000_000;
    match micros {
        0 => "$0".to_owned(),
        1..50 => format!("$0.{micros:06}"),
        50..10_000_000 => {
            let rounded = (micros + 50) / 100;
            format!("${}.{:04}", rounded / 10_000, rounded % 10_000)
        }
        _ => format!("${whole}.{:02}", micros % 1_000_000 / 10_000),
    }
}

/// What something cost, as far as that is known: None if there is nothing to say. `unpriced`: calls of models that
/// nobody knows the price of.
pub(crate) fn cost(usd_micros: u64, unpriced: u64) -> Option<String> {
    match (usd_micros, unpriced) {
        (0, 0) => None,
        (0, _) => Some("cost not known".to_owned()),
        (_, 0) => Some(dollars(usd_micros)),
        _ => Some(format!("{} and more", dollars(usd_micros))),
    }
}

/// `812 tokens`, `12.3k tokens`, `1.2M tokens`.
pub(crate) fn tokens(number: u64) -> String {
    match number {
        0..1_000 => count(number, "token"),
        1_000..1_000_000 => format!("{}.{}k tokens", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M tokens", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// `1 node`, `14 nodes`, `2 retries`.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 {
        return format!("1 {what}");
    }
    match what.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o'])) {
        Some(stem) => format!("{number} {stem}ies"),
        None if what.ends_with("ch") => format!("{number} {what}es"),
        None => format!("{number} {what}s"),
    }
}

/// Lines of at most so many characters, broken between words; those after the first are set in.
pub(crate) fn wrapped(text: &str, chars_max: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        let used = line.chars().count();
        if used > 0 && !line.trim().is_empty() && used + 1 + word.chars().count() > chars_max {
            lines.push(format!("{}{word}", " ".repeat(indent)));
            continue;
        }
        if used > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

/// A value on one line: texts without quotes where nothing is lost by it.
pub(crate) fn brief_value(value: &Value, chars_max: usize) -> String {
    match value {
        Value::String(text) if !text.is_empty() => brief(text, chars_max),
        other => brief(&other.to_string(), chars_max),
    }
}

/// The tail of an id that is enough to type: engines find runs by a unique end. A child keeps its path.
pub(crate) fn short_id(id: &str) -> &str {
    const TAIL: usize = 8;
    let root = id.find(['.', ':']).unwrap_or(id.len());
    match id.get(root.saturating_sub(TAIL)..) {
        Some(tail) => tail,
        None => id,
    }
}

/// One word as a shell takes it, exactly: what could not be seen in it is written as bash and zsh write it.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.chars().all(visible::is_plain) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let spelt = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        c if visible::is_plain(c) => c.to_string(),
        c if c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("$'{}'", text.chars().map(spelt).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_two_units_at_most() {
        let cases = [
            (0, "0ms"),
            (812, "812ms"),
            (1_290, "1.2s"),
            (59_999, "59.9s"),
            (192_000, "3m12s"),
            (7_500_000, "2h05m"),
            (273_600_000, "3d4h"),
        ];
        for (ms, text) in cases {
            assert_eq!(duration(ms), text);
        }
        assert_eq!(offset(1_204), "+1.204s");
    }

    #[test]
    fn money_never_shows_nothing_for_something() {
        let cases = [
            (0, "$0"),
            (7, "$0.000007"),
            (4_200, "$0.0042"),
            (999_950, "$1.0000"),
            (1_234_567, "$1.2346"),
            (12_345_678, "$12.34"),
        ];
        for (micros, text) in cases {
            assert_eq!(dollars(micros), text);
        }
    }

    #[test]
    fn what_is_not_known_is_never_nothing() {
        assert_eq!(cost(0, 0), None);
        assert_eq!(cost(0, 2).as_deref(), Some("cost not known"));
        assert_eq!(cost(4_200, 0).as_deref(), Some("$0.0042"));
        assert_eq!(cost(4_200, 1).as_deref(), Some("$0.0042 and more"));
        let number = wonder_engine::json::cost_as_number;
        assert_eq!((number(0, 0), number(0, 1)), (Some(0.0), None));
        assert_eq!(
            [tokens(1), tokens(12_345), tokens(3_456_789)],
            ["1 token", "12.3k tokens", "3.4M tokens"]
        );
    }

    #[test]
    fn words_are_counted_as_people_do() {
        assert_eq!(count(1, "retry"), "1 retry");
        assert_eq!(count(2, "retry"), "2 retries");
        assert_eq!(count(0, "node"), "0 nodes");
        assert_eq!(count(3, "branch"), "3 branches");
    }

    #[test]
    fn texts_from_outside_cannot_paint() {
        assert_eq!(brief("a\u{1b}[31mred\u{1b}[0m\nb\u{7}c", 40), "ared b␇c");
        assert_eq!(brief("abcdef", 4), "abc…");
        assert_eq!(shell_word("ok=true"), "ok=true");
        assert_eq!(shell_word(r#"{"who":"it's me"}"#), r#"'{"who":"it'\''s me"}'"#);
        assert_eq!(shell_word("a'b\n\u{1b}[2J\u{202e}\\"), r"$'a\'b\x0a\x1b[2J\U0000202e\\'");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three four", 9, 2), ["one two", "  three", "  four"]);
        assert_eq!(wrapped("incomprehensible", 5, 2), ["incomprehensible"]);
        assert_eq!(wrapped("", 5, 2), [""]);
    }

    #[test]
    fn a_short_id_is_the_end_of_the_long_one() {
        assert_eq!(short_id("01JD0000000000000000000000"), "00000000");
        assert_eq!(short_id("01JD00000000000000ABCDEFGH.3.1"), "ABCDEFGH.3.1");
        assert_eq!(short_id("run"), "run");
    }
}
