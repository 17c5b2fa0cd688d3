//! All runs together, by what people sort them by. It sums rows of runs that nobody called: what they called is
//! in their sums already, but for child runs that have not ended.

use std::collections::BTreeMap;

use serde::Serialize;
use wonder_core::Time;
use wonder_core::cost::dollars;
use wonder_engine::{RunRow, Status};

use super::super::list::Page;
use super::super::paint::Tone;
use super::super::table::Table;
use super::super::words::dollars_as_number;
use super::{grouped, some};
use crate::args::By;

#[derive(Debug)]
pub(crate) struct Project {
    by: By,
    since: Option<Time>,
    total: Total,
    /// The dearest workflow first, the newest day first, statuses as a run goes through them.
    groups: Vec<(String, Total)>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Total {
    pub runs: u64,
    pub usd_micros: u64,
    pub tokens: u64,
}

impl Total {
    fn add(&mut self, runs: u64, row: &RunRow) {
        self.runs += runs;
        // What a fork copied was spent where it was copied from.
        let copied = row.forked.as_ref().map_or((0, 0), |f| (f.copied_usd_micros, f.copied_tokens));
        self.usd_micros = self.usd_micros.saturating_add(row.usd_micros.saturating_sub(copied.0));
        self.tokens = self.tokens.saturating_add(row.tokens.saturating_sub(copied.1));
    }
}

impl Project {
    /// `rows`: of all runs and of those they called.
    pub(crate) fn of(rows: &[RunRow], by: By, since: Option<Time>) -> Project {
        let wanted =
            |row: &&RunRow| row.parent.is_none() && since.is_none_or(|since| row.started_at >= since);
        let roots: BTreeMap<&str, &RunRow> =
            rows.iter().filter(wanted).map(|row| (row.run.as_str(), row)).collect();
        let mut total = Total::default();
        let mut groups: BTreeMap<String, Total> = BTreeMap::new();
        for row in rows {
            let Some(root) = roots.get(row.root.as_str()) else { continue };
            let is_root = row.parent.is_none();
            // A child that has ended has told whoever called it.
            if is_root || !row.status.is_end() {
                let runs = u64::from(is_root);
                total.add(runs, row);
                groups.entry(key(root, by)).or_default().add(runs, row);
            }
        }
        let mut groups: Vec<(String, Total)> = groups.into_iter().collect();
        match by {
            By::Workflow | By::Project => {
                groups.sort_by_key(|(_, total)| std::cmp::Reverse(total.usd_micros))
            }
            By::Day => groups.reverse(),
            By::Status => groups.sort_by_key(|(status, _)| place(status)),
        }
        Project { by, since, total, groups }
    }

    pub(crate) fn total(&self) -> &Total {
        &self.total
    }
}

fn key(row: &RunRow, by: By) -> String {
    match by {
        By::Workflow => row.workflow.clone(),
        By::Project => row.project.clone(),
        By::Day => row.started_at.to_text().chars().take(10).collect(),
        By::Status => row.status.as_str().to_owned(),
    }
}

fn place(status: &str) -> Option<usize> {
    Status::ALL.iter().position(|known| known.as_str() == status)
}

pub(crate) fn project_page(project: &Project, page: Page) -> String {
    if project.groups.is_empty() {
        return String::new();
    }
    let title = match project.by {
        By::Workflow => "WORKFLOW",
        By::Project => "PROJECT",
        By::Day => "DAY (UTC)",
        By::Status => "STATUS",
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
    project.groups.iter().for_each(|(name, total)| row(name, total, Tone::Plain));
    row("total", &project.total, Tone::Dim);
    table.render(page.paint, page.width)
}

#[derive(Debug, Serialize)]
pub(crate) struct ProjectJson<'p> {
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

impl<'p> ProjectJson<'p> {
    pub(crate) fn of(project: &'p Project) -> ProjectJson<'p> {
        ProjectJson {
            by: match project.by {
                By::Workflow => "workflow",
                By::Project => "project",
                By::Day => "day",
                By::Status => "status",
            },
            since: project.since,
            total: TotalJson::of(&project.total),
            groups: project
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
