//! Budgets as they are shown: lines for people.

use wonder_core::Time;
use wonder_core::cost::dollars;
use wonder_engine::cost::{Bound, BudgetBill, Unit};

use super::super::words::{count, duration, offset};
use super::grouped;

/// `$0.04 of $0.05 (80 %) · $0.01 reserved · $0 left`, then what has happened to it.
pub(super) fn lines(bill: &BudgetBill, began: Time) -> Vec<String> {
    let mut lines: Vec<String> = bill.bounds.iter().map(line).collect();
    if bill.bounds.is_empty() {
        lines.push("no bound".to_owned());
    }
    let when = |event: u64, at: Time| format!("{}, event {event}", offset(at.since(began)));
    if let Some((event, at)) = bill.warnings.last() {
        let share = bill.warn_at_permille / 10;
        let times = count(bill.warnings.len() as u64, "warning");
        lines.push(format!("{times} at {share} %, the last {}", when(*event, *at)));
    }
    if let Some((event, at, message)) = bill.exceeded.last() {
        lines.push(format!("stopped at it ({}): {message}", when(*event, *at)));
    }
    for raise in &bill.raises {
        let by = if raise.whole { "as much again".to_owned() } else { dollars(raise.usd_micros) };
        lines.push(format!("raised by {by} ({})", when(raise.event, raise.at)));
    }
    lines
}

fn line(bound: &Bound) -> String {
    let shown = |amount: u64| match bound.unit {
        Unit::Dollars => dollars(amount),
        Unit::Tokens | Unit::Calls => grouped(amount),
        Unit::Time => duration(amount),
    };
    let unit = match bound.unit {
        Unit::Dollars => "",
        Unit::Tokens => " tokens",
        Unit::Calls => " calls",
        Unit::Time => " of time",
    };
    let (spent, limit) = (shown(bound.spent), shown(bound.limit));
    let mut text = format!("{spent} of {limit}{unit} ({} %)", bound.permille() / 10);
    if bound.reserved > 0 {
        text.push_str(&format!(" · {} reserved", shown(bound.reserved)));
    }
    format!("{text} · {} left", shown(bound.left()))
}
