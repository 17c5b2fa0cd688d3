//! Time as a number that a host hands in. The core never asks what time it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    pub fn plus(self, ms: u64) -> Time {
        Time(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds since `earlier`; nothing if that is later.
    pub fn since(self, earlier: Time) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// RFC 3339, as expressions see it.
    pub fn to_text(self) -> String {
        jiff::Timestamp::from_millisecond(self.0).map_or_else(|_| self.0.to_string(), |t| t.to_string())
    }

    /// An RFC 3339 text.
    pub fn parse(text: &str) -> Option<Time> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Time(t.as_millisecond()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// `1h30m`, `200ms`, `2d`, or plain milliseconds. The one place that knows how people write durations.
pub fn parse_duration_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(ms) = text.parse::<u64>() {
        return Some(ms);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|at| *at > 0)?;
        let amount: f64 = rest[..digits].parse().ok()?;
        let unit_len = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let unit_ms = match &rest[digits..digits + unit_len] {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            "w" => 604_800_000.0,
            _ => return None,
        };
        // A float is exact here far beyond any duration that makes sense; the cast saturates.
        total = total.saturating_add((amount * unit_ms).round() as u64);
        rest = &rest[digits + unit_len..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        let cases = [
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("200ms", 200),
            ("1.5s", 1_500),
            ("2d", 172_800_000),
            ("7", 7),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "s", "5 minutes", "-1s", "1x", "1h-3m"] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }
}
