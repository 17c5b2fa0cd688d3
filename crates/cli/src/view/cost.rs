//! What runs cost, as it is shown: one run with its children, node by node, or all runs together. The engine's
//! sums are integers until they are printed here.

mod budget;
mod page;
mod totals;

use wonder_core::cost::{Spend, dollars};

pub(crate) use page::page;
pub(crate) use totals::{TotalsJson, totals_page};
use wonder_engine::cost::Sum;

use super::paint::Tone;
use super::table::Table;
use super::words::duration;
use crate::text::Text;

type Cell = (Tone, String);

/// Nothing where there is nothing: a column of nothing is left out.
fn some(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}

fn money(spend: &Spend) -> String {
    match (spend.usd_micros, spend.unpriced_calls) {
        (0, 0) => String::new(),
        (0, _) => "?".to_owned(),
        (usd_micros, 0) => dollars(usd_micros),
        (usd_micros, _) => format!("{} + ?", dollars(usd_micros)),
    }
}

/// `IN OUT CACHED COST TIME`, as every table of a bill ends.
fn spend_cells(sum: &Sum, tone: Tone) -> Vec<Cell> {
    let spend = &sum.spend;
    vec![
        (tone, some(spend.input_tokens)),
        (tone, some(spend.output_tokens)),
        (tone, some(spend.cached_tokens)),
        (if tone == Tone::Plain { Tone::Strong } else { tone }, money(spend)),
        (tone, if sum.tasks == 0 { String::new() } else { duration(spend.duration_ms) }),
    ]
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What a table can do without on a small screen.
const DISPENSABLE: [&str; 5] = ["CACHED", "TRIES", "AT", "VISITS", "BEGAN"];

/// As lines of a section.
fn rendered(table: Table, paint: super::paint::Paint, width: usize) -> Vec<Text> {
    let width = width.saturating_sub(2);
    table.without_empty().narrowed(width, &DISPENSABLE).render(paint, Some(width)).lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
    }
}
