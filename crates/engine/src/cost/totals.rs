//! All runs together, by what people sort them by. It sums rows of runs that nobody called: what they called is
//! in their sums already, but for child runs that have not ended.

use std::collections::BTreeMap;

use serde::Serialize;
use wonder_core::Time;

use crate::view::{RunRow, Status};

/// What all runs are put together by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    Workflow,
    /// The `project_id` of its workflow, else `default`.
    Project,
    /// Of its start, in UTC.
    Day,
    Status,
}

impl GroupBy {
    pub fn as_str(self) -> &'static str {
        match self {
            GroupBy::Workflow => "workflow",
            GroupBy::Project => "project",
            GroupBy::Day => "day",
            GroupBy::Status => "status",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    pub by: GroupBy,
    /// Of runs that were started since then.
    pub since: Option<Time>,
    pub total: Total,
    /// The dearest workflow first, the newest day first, statuses as a run goes through them.
    pub groups: Vec<(String, Total)>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Total {
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

impl Totals {
    /// `rows`: of all runs and of those they called.
    pub fn of(rows: &[RunRow], by: GroupBy, since: Option<Time>) -> Totals {
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
            GroupBy::Workflow | GroupBy::Project => {
                groups.sort_by_key(|(_, total)| std::cmp::Reverse(total.usd_micros))
            }
            GroupBy::Day => groups.reverse(),
            GroupBy::Status => groups.sort_by_key(|(status, _)| place(status)),
        }
        Totals { by, since, total, groups }
    }
}

fn key(row: &RunRow, by: GroupBy) -> String {
    match by {
        GroupBy::Workflow => row.workflow.clone(),
        GroupBy::Project => row.project.clone(),
        GroupBy::Day => row.started_at.to_text().chars().take(10).collect(),
        GroupBy::Status => row.status.as_str().to_owned(),
    }
}

fn place(status: &str) -> Option<usize> {
    Status::ALL.iter().position(|known| known.as_str() == status)
}
