//! What a project may spend, over all its runs, and how that is told. The driver holds tasks that do not fit.

use wonder_core::Time;
use wonder_core::cost::{Spend, dollars};
use wonder_engine::WaitView;

const DAY_MS: i64 = 86_400_000;

/// What all runs of a project may spend together. Zero is no bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProjectBudget {
    pub usd_micros: u64,
    pub tokens: u64,
    pub per: Period,
}

/// How long a project's budget has to last. Days and months are those of UTC.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Period {
    Day,
    Month,
    /// For ever: what was spent stays spent.
    #[default]
    Ever,
}

impl Period {
    /// The day on which the period began that this time is in, counted from 1970.
    pub(crate) fn first_day(self, now: Time) -> i64 {
        let today = day(now);
        match self {
            Period::Day => today,
            Period::Month => {
                let of_month: Option<i64> = now.to_text().get(8..10).and_then(|text| text.parse().ok());
                today + 1 - of_month.unwrap_or(1)
            }
            Period::Ever => i64::MIN,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Period::Day => " today",
            Period::Month => " this month",
            Period::Ever => "",
        }
    }
}

pub(crate) fn day(at: Time) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// What a project has spent since its period began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Spent {
    pub(crate) usd_micros: u64,
    pub(crate) tokens: u64,
}

impl Spent {
    pub(crate) fn of(spend: &Spend) -> Spent {
        Spent { usd_micros: spend.usd_micros, tokens: spend.tokens() }
    }

    pub(crate) fn add(&mut self, more: Spent) {
        self.usd_micros = self.usd_micros.saturating_add(more.usd_micros);
        self.tokens = self.tokens.saturating_add(more.tokens);
    }

    pub(crate) fn is_nothing(self) -> bool {
        self == Spent::default()
    }
}

/// Why a run of this project does not go on, for people. Without a budget: nobody here knows of one.
pub(crate) fn held(run: &str, project: &str, budget: Option<&ProjectBudget>, spent: Spent) -> WaitView {
    let message = match budget {
        Some(budget) => {
            let mut parts = Vec::new();
            if budget.usd_micros > 0 {
                parts.push(format!("{} of {}", dollars(spent.usd_micros), dollars(budget.usd_micros)));
            }
            if budget.tokens > 0 {
                parts.push(format!("{} of {} tokens", spent.tokens, budget.tokens));
            }
            let period = budget.per.in_words();
            format!(
                "project {project} has spent {}{period}, and the next call does not fit",
                parts.join(" and ")
            )
        }
        None => format!("the budget of project {project} was spent"),
    };
    WaitView::Project { run: run.to_owned(), project: project.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_begins_on_its_first_day() {
        let at = |text: &str| Time::parse(text).unwrap();
        let now = at("2026-03-17T23:59:59.999Z");
        let first = |text: &str| day(at(&format!("{text}T00:00:00Z")));
        assert_eq!(Period::Day.first_day(now), first("2026-03-17"));
        assert_eq!(Period::Month.first_day(now), first("2026-03-01"));
        assert!(Period::Ever.first_day(now) < first("1970-01-01"));
    }
}
