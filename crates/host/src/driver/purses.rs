//! Budgets of projects: what tasks report is added up by project and day, and a task whose worst case does
//! not fit is held until something comes back.
//!
//! A task that can cost nothing is never held. If nothing of the project is out and what waits still does
//! not fit, its runs only wait: for another budget, or another day.

use std::collections::BTreeMap;

use wonder_core::Command;
use wonder_core::command::TaskOrder;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Name;
use wonder_core::{RunStatus, TokenStatus};
use wonder_engine::{Reply, Status, WaitView};

use super::{Driver, TaskKey};
use crate::clock;
use crate::project::{self, ProjectBudget, Spent};
use crate::store::{Reader, Write};

#[derive(Debug, Default)]
pub(crate) struct Purses {
    purses: BTreeMap<Name, Purse>,
    held: Vec<(Name, Box<TaskOrder>)>,
}

#[derive(Debug)]
struct Purse {
    budget: ProjectBudget,
    /// Of the period that began on this day.
    first_day: i64,
    spent: Spent,
    /// The most that tasks which are out may spend.
    out: BTreeMap<TaskKey, Allowance>,
}

impl Purse {
    /// A new period begins with nothing spent.
    fn turn_over(&mut self) {
        let first_day = self.budget.per.first_day(clock::now());
        if first_day > self.first_day {
            (self.first_day, self.spent) = (first_day, Spent::default());
        }
    }

    /// Where a worker has to stop: at what was reserved, if the project is bounded there.
    fn allowance(&self, reserved: &Allowance, own: Allowance) -> Allowance {
        let bounded =
            |bound: u64, reserved: u64, own: u64| if bound > 0 && own == 0 { reserved } else { own };
        let ProjectBudget { usd_micros, tokens, .. } = self.budget;
        Allowance {
            usd_micros: bounded(usd_micros, reserved.usd_micros, own.usd_micros),
            tokens: bounded(tokens, reserved.tokens, own.tokens),
            ..own
        }
    }

    fn fits(&self, more: &Allowance) -> bool {
        let mut out = *more;
        self.out.values().for_each(|allowance| out.add(allowance));
        let within = |bound: u64, spent: u64, out: u64, more: u64| {
            bound == 0 || more == 0 || spent.saturating_add(out) <= bound
        };
        let ProjectBudget { usd_micros, tokens, .. } = self.budget;
        within(usd_micros, self.spent.usd_micros, out.usd_micros, more.usd_micros)
            && within(tokens, self.spent.tokens, out.tokens, more.tokens)
    }
}

impl Purses {
    pub(crate) fn new(budgets: &BTreeMap<String, ProjectBudget>, reader: &Reader<'_>) -> Reply<Purses> {
        let mut purses = BTreeMap::new();
        for (name, budget) in budgets {
            let first_day = budget.per.first_day(clock::now());
            let spent = reader.spent(name, first_day)?;
            let purse = Purse { budget: *budget, first_day, spent, out: BTreeMap::new() };
            purses.insert(name.as_str().into(), purse);
        }
        Ok(Purses { purses, held: Vec::new() })
    }

    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    fn holds(&self, run: &str, token: u64, attempt: u32) -> bool {
        let is = |order: &TaskOrder| *order.run == *run && order.token.0 == token && order.attempt == attempt;
        self.held.iter().any(|(_, order)| is(order))
    }
}

impl Driver {
    /// What a task reported is its project's spending, wherever it is summed up besides.
    pub(super) fn spend(&mut self, project: &Name, spend: &Spend) {
        let spent = Spent::of(spend);
        if spent.is_nothing() {
            return;
        }
        let day = project::day(clock::now());
        self.batch.push(Write::Spent { project: project.clone(), day, spent });
        if let Some(purse) = self.purses.purses.get_mut(project) {
            purse.turn_over();
            purse.spent.add(spent);
        }
    }

    /// Keeps an order that does not fit its project's budget now. None: it was kept.
    pub(super) fn within_budget(&mut self, mut order: Box<TaskOrder>) -> Option<Box<TaskOrder>> {
        if self.purses.purses.is_empty() {
            return Some(order);
        }
        let hosted = self.runs.get(&order.run)?;
        let project = hosted.project.clone();
        let Some(purse) = self.purses.purses.get_mut(&project) else { return Some(order) };
        purse.turn_over();
        // Its worst case, whether or not a budget of the run bounds it.
        let out = hosted.run.state().out.get(&(order.token, order.attempt));
        let reserved = out.map(|out| out.reserved).unwrap_or_default();
        if purse.fits(&reserved) {
            let key = TaskKey { run: order.run.clone(), token: order.token, attempt: order.attempt };
            purse.out.insert(key, reserved);
            order.allowance = purse.allowance(&reserved, order.allowance);
            return Some(order);
        }
        self.purses.held.push((project, order));
        None
    }

    /// A task is out no more, or was told not to begin.
    pub(super) fn give_back(&mut self, key: &TaskKey) {
        let is = |order: &TaskOrder| {
            order.run == key.run && order.token == key.token && order.attempt == key.attempt
        };
        self.purses.held.retain(|(_, order)| !is(order));
        for purse in self.purses.purses.values_mut() {
            purse.out.remove(key);
        }
    }

    /// What was held is ordered if it fits now. Runs that only wait are looked at again: their rows say so.
    pub(super) fn release_held(&mut self) {
        if !self.purses.holds_any() {
            return;
        }
        for (_, order) in std::mem::take(&mut self.purses.held) {
            let run = order.run.clone();
            self.order(&run, Command::RunTask(order));
        }
        let starved: Vec<Name> = self.purses.held.iter().map(|(_, order)| order.run.clone()).collect();
        for run in starved {
            let told = self.runs.get(&run).is_some_and(|hosted| hosted.is_stored_as(Status::Waiting));
            if self.is_quiet(&run) && !told {
                self.touched.insert(run);
            }
        }
    }

    /// All that this run has out is held, and nothing that is out of its project can make room.
    pub(super) fn is_starved(&self, id: &str) -> bool {
        let Some(hosted) = self.runs.get(id).filter(|_| self.purses.holds_any()) else { return false };
        let state = hosted.run.state();
        let held = |token: u64, attempt: u32| self.purses.holds(id, token, attempt);
        let mut tasks = state.out.iter().filter(|(_, out)| out.child.is_none());
        let moves = |status: TokenStatus| {
            matches!(status, TokenStatus::Pending | TokenStatus::Retrying | TokenStatus::Sleeping)
        };
        state.status == RunStatus::Running
            && self.purses.purses.get(&hosted.project).is_some_and(|purse| purse.out.is_empty())
            && tasks.all(|((token, attempt), _)| held(token.0, *attempt))
            && !hosted.run.tokens().any(|token| moves(token.status()))
    }

    /// What a starved run waits for.
    pub(super) fn hunger(&self, id: &str) -> Option<WaitView> {
        let hosted = self.runs.get(id).filter(|_| self.is_starved(id))?;
        let works = hosted.run.state().out.values().any(|out| out.child.is_none());
        let purse = self.purses.purses.get(&hosted.project).filter(|_| works)?;
        Some(project::held(id, &hosted.project, Some(&purse.budget), purse.spent))
    }
}
