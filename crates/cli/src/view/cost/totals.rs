//! All runs together, as they are shown: a table for people, an object for programs.

use serde::Serialize;
use wonder_core::Time;
use wonder_core::cost::dollars;
use wonder_engine::cost::{GroupBy, Total, Totals};

use super::super::list::Page;
use super::super::paint::Tone;
use super::super::table::Table;
use super::super::words::dollars_as_number;
use super::{grouped, some};
use crate::text::Text;

pub(crate) fn totals_page(totals: &Totals, page: Page) -> Text {
    if totals.groups.is_empty() {
        return Text::EMPTY;
    }
    let title = match totals.by {
        GroupBy::Workflow => "WORKFLOW",
        GroupBy::Project => "PROJECT",
        GroupBy::Day => "DAY (UTC)",
        GroupBy::Status => "STATUS",
    };
    let mut table = Table::new(&[title, "RUNS", "COST", "TOKENS"]).with_numbers(1..4);
    let mut row = |name: &str, total: &Total, tone: Tone| {
        let strong = if tone == Tone::Plain { Tone::Strong } else { tone };
        table.row(vec![
            (tone, name.to_owned()),
            (tone, grouped(total.runs)),
            (strong, dollars(total.usd_micros)),
            (tone, some(total.tokens)),
        ]);
    };
    totals.groups.iter().for_each(|(name, total)| row(name, total, Tone::Plain));
    row("total", &totals.total, Tone::Dim);
    table.render(page.paint, page.width)
}

#[derive(Debug, Serialize)]
pub(crate) struct TotalsJson<'p> {
    by: &'static str,
    since: Option<Time>,
    total: TotalJson,
    groups: Vec<GroupJson<'p>>,
}

#[derive(Debug, Serialize)]
struct GroupJson<'p> {
    key: &'p str,
    #[serde(flatten)]
    total: TotalJson,
}

#[derive(Debug, Serialize)]
struct TotalJson {
    runs: u64,
    cost_usd: f64,
    usd_micros: u64,
    tokens: u64,
}

impl<'p> TotalsJson<'p> {
    pub(crate) fn of(totals: &'p Totals) -> TotalsJson<'p> {
        TotalsJson {
            by: totals.by.as_str(),
            since: totals.since,
            total: TotalJson::of(&totals.total),
            groups: totals
                .groups
                .iter()
                .map(|(key, total)| GroupJson { key, total: TotalJson::of(total) })
                .collect(),
        }
    }
}

impl TotalJson {
    fn of(total: &Total) -> TotalJson {
        let Total { runs, usd_micros, tokens } = *total;
        TotalJson { runs, cost_usd: dollars_as_number(usd_micros), usd_micros, tokens }
    }
}
