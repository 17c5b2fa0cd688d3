//! What a scalar means: YAML's core schema, durations, exact amounts of money.
//!
//! Money is never rounded: an amount that is no whole number of micro-dollars is refused.

use wonder_core::time::parse_duration_ms;

/// A plain scalar by the YAML 1.2 core schema. `on`, `yes` and `no` are words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A whole number that no 64-bit integer is, so that as a float it would be another.
    TooLarge,
    Word,
}

pub(crate) fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::Float(f64::NAN),
        _ => {}
    }
    let first = text.as_bytes()[0];
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) {
        return Plain::Word;
    }
    number(text)
}

fn number(text: &str) -> Plain {
    let radix = |digits: &str, radix: u32| match i64::from_str_radix(digits, radix) {
        _ if digits.starts_with(['+', '-']) => Plain::Word,
        Ok(number) => Plain::Int(number),
        Err(_) if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) => Plain::Word,
        Err(_) => Plain::TooLarge,
    };
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Plain::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_or(Plain::TooLarge, Plain::Int);
    }
    if is_float(unsigned) { float(text) } else { Plain::Word }
}

fn float(text: &str) -> Plain {
    text.parse().map_or(Plain::Word, Plain::Float)
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

/// Milliseconds of `30s`, `5m`, `1h30m`, `1.5s`. A bare number has no unit, so it is none.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let bare = text.trim().bytes().all(|byte| byte.is_ascii_digit());
    if bare { None } else { parse_duration_ms(text) }
}

/// Why a number is no amount of money.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MoneyError {
    NotANumber,
    Negative,
    TooFine,
    TooMuch,
}

/// Micro-dollars of a decimal text in dollars, exactly.
pub(crate) fn micros(text: &str) -> Result<u64, MoneyError> {
    shifted(text, 6)
}

/// Thousandths of a decimal text, exactly.
pub(crate) fn permille(text: &str) -> Result<u64, MoneyError> {
    shifted(text, 3)
}

/// `text × 10^places` as a whole number.
fn shifted(text: &str, places: i32) -> Result<u64, MoneyError> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Some(rest) = unsigned.strip_prefix('-') {
        return Err(if is_float(rest) { MoneyError::Negative } else { MoneyError::NotANumber });
    }
    if !is_float(unsigned) {
        return Err(MoneyError::NotANumber);
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| MoneyError::TooFine)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let places_of = |len: usize| i32::try_from(len).unwrap_or(i32::MAX);
    let dropped = places_of(digits.len() - significant.len());
    let power = exponent
        .checked_sub(places_of(fraction.len()))
        .and_then(|power| power.checked_add(dropped)?.checked_add(places))
        .ok_or(MoneyError::TooMuch)?;
    let power = u32::try_from(power).map_err(|_| MoneyError::TooFine)?;
    let scale = 10u64.checked_pow(power).ok_or(MoneyError::TooMuch)?;
    significant.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or(MoneyError::TooMuch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_schema_and_nothing_beyond_it() {
        for word in [
            "on", "yes", "no", "off", "y", "1_000", "0b1", "1:30", "-", ".", "+", "1e", "e1", "0x", "0o8",
            "0x+1",
        ] {
            assert_eq!(plain(word), Plain::Word, "{word}");
        }
        assert_eq!(plain("~"), Plain::Null);
        assert_eq!(plain("True"), Plain::Bool(true));
        assert_eq!(plain("-012"), Plain::Int(-12));
        assert_eq!(plain("+7"), Plain::Int(7));
        assert_eq!(plain("0o17"), Plain::Int(15));
        assert_eq!(plain("0xfF"), Plain::Int(255));
        assert_eq!(plain("1."), Plain::Float(1.0));
        assert_eq!(plain("-.5e3"), Plain::Float(-500.0));
        assert_eq!(plain("9223372036854775807"), Plain::Int(i64::MAX));
        for text in ["9223372036854775808", "-9223372036854775809", "0xffffffffffffffff"] {
            assert_eq!(plain(text), Plain::TooLarge, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration_ms("1h30m"), Some(5_400_000));
        assert_eq!(duration_ms("200ms"), Some(200));
        for text in ["", "5", "m", "30 s", "-1s", "1y"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn money_is_exact() {
        assert_eq!(micros("0.3"), Ok(300_000));
        assert_eq!(micros("15"), Ok(15_000_000));
        assert_eq!(micros("1.5e-3"), Ok(1_500));
        assert_eq!(micros("2e3"), Ok(2_000_000_000));
        assert_eq!(micros("0.0000010"), Ok(1));
        assert_eq!(micros("0.0000001"), Err(MoneyError::TooFine));
        assert_eq!(micros("-1"), Err(MoneyError::Negative));
        assert_eq!(micros("1e99"), Err(MoneyError::TooMuch));
        assert_eq!(micros("1e-99999999999"), Err(MoneyError::TooFine));
        assert_eq!(micros("ten"), Err(MoneyError::NotANumber));
        assert_eq!(permille("0.8"), Ok(800));
    }
}
