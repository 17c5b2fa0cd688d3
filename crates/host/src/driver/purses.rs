//! Budgets of projects: what tasks report is added up by project and day, and a task whose worst case does
//! not fit is held until something comes back.
//!
//! A task that can cost nothing is never held. If nothing of the project is out and what waits still does
//! not fit, its runs only wait: for another budget, or another day.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wonder_core::Command;
use wonder_core::command::TaskOrder;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Name;
use wonder_core::{RunStatus, Time, TokenStatus};
use wonder_engine::{Reply, Status, WaitView};

use super::{Driver, TaskKey};
use crate::project::{self, ProjectBudget, Spent};
use crate::store::{Reader, Write};

#[derive(Debug, Default)]
pub(crate) struct Purses(BTreeMap<Name, Purse>);

#[derive(Debug)]
struct Purse {
    budget: ProjectBudget,
    /// Of the period that began on this day.
    first_day: i64,
    spent: Spent,
    /// The most that tasks which are out may spend, and the sum of that.
    out: BTreeMap<TaskKey, Allowance>,
    reserved: Allowance,
    /// What does not fit now, the oldest first. Who was told not to begin is only taken out of `held`.
    line: VecDeque<Box<TaskOrder>>,
    held: BTreeSet<TaskKey>,
}

impl Purse {
    fn new(budget: ProjectBudget, first_day: i64, spent: Spent) -> Purse {
        let (out, reserved) = (BTreeMap::new(), Allowance::default());
        Purse { budget, first_day, spent, out, reserved, line: VecDeque::new(), held: BTreeSet::new() }
    }

    /// A new period begins with nothing spent.
    fn turn_over(&mut self, now: Time) {
        let first_day = self.budget.per.first_day(now);
        if first_day > self.first_day {
            (self.first_day, self.spent) = (first_day, Spent::default());
        }
    }

    fn fits(&self, more: &Allowance) -> bool {
        let within = |bound: u64, spent: u64, out: u64, more: u64| {
            bound == 0 || more == 0 || spent.saturating_add(out).saturating_add(more) <= bound
        };
        let ProjectBudget { usd_micros, tokens, .. } = self.budget;
        within(usd_micros, self.spent.usd_micros, self.reserved.usd_micros, more.usd_micros)
            && within(tokens, self.spent.tokens, self.reserved.tokens, more.tokens)
    }

    fn take(&mut self, key: TaskKey, worst: Allowance) {
        if self.out.insert(key, worst).is_none() {
            self.reserved.add(&worst);
        }
    }

    fn give_back(&mut self, key: &TaskKey) {
        self.held.remove(key);
        if let Some(worst) = self.out.remove(key) {
            self.reserved.subtract(&worst);
        }
    }

    fn hold(&mut self, key: TaskKey, order: Box<TaskOrder>) {
        if self.held.insert(key) {
            self.line.push_back(order);
        }
    }

    /// Where a worker has to stop: at what was reserved, if the project is bounded there.
    fn allowance(&self, worst: &Allowance, own: Allowance) -> Allowance {
        let bounded = |bound: u64, worst: u64, own: u64| if bound > 0 && own == 0 { worst } else { own };
        let ProjectBudget { usd_micros, tokens, .. } = self.budget;
        Allowance {
            usd_micros: bounded(usd_micros, worst.usd_micros, own.usd_micros),
            tokens: bounded(tokens, worst.tokens, own.tokens),
            ..own
        }
    }
}

impl Purses {
    pub(crate) fn new(
        budgets: &BTreeMap<String, ProjectBudget>,
        reader: &Reader<'_>,
        now: Time,
    ) -> Reply<Purses> {
        let mut purses = BTreeMap::new();
        for (name, budget) in budgets {
            let first_day = budget.per.first_day(now);
            let purse = Purse::new(*budget, first_day, reader.spent(name, first_day)?);
            purses.insert(name.as_str().into(), purse);
        }
        Ok(Purses(purses))
    }

    pub(super) fn holds_any(&self) -> bool {
        self.0.values().any(|purse| !purse.held.is_empty())
    }
}

impl Driver {
    /// What a task reported is its project's spending, wherever it is summed up besides.
    pub(super) fn spend(&mut self, project: &Name, spend: &Spend) {
        let spent = Spent::of(spend);
        if spent.is_nothing() {
            return;
        }
        let now = self.clock.now();
        let day = project::day(now);
        self.batch.push(Write::Spent { project: project.clone(), day, spent });
        if let Some(purse) = self.purses.0.get_mut(project) {
            purse.turn_over(now);
            purse.spent.add(spent);
        }
    }

    /// The worst case of a task, whether or not a budget of its run bounds it.
    fn worst(&self, order: &TaskOrder) -> Allowance {
        let out = self.runs.get(&order.run).map(|hosted| &hosted.run.state().out);
        out.and_then(|out| out.get(&(order.token, order.attempt))).map(|out| out.reserved).unwrap_or_default()
    }

    /// Keeps an order that does not fit its project's budget now. None: it was kept.
    pub(super) fn within_budget(&mut self, mut order: Box<TaskOrder>) -> Option<Box<TaskOrder>> {
        if self.purses.0.is_empty() {
            return Some(order);
        }
        let (project, worst) = (&self.runs.get(&order.run)?.project, self.worst(&order));
        let Some(purse) = self.purses.0.get_mut(project) else { return Some(order) };
        purse.turn_over(self.clock.now());
        let key = TaskKey::of(&order);
        if !purse.fits(&worst) {
            purse.hold(key, order);
            return None;
        }
        purse.take(key, worst);
        order.allowance = purse.allowance(&worst, order.allowance);
        Some(order)
    }

    /// A task is out no more, or was told not to begin.
    pub(super) fn give_back(&mut self, key: &TaskKey) {
        self.purses.0.values_mut().for_each(|purse| purse.give_back(key));
    }

    /// What was held is ordered as far as it fits now, the oldest first.
    pub(super) fn release_held(&mut self) {
        if !self.purses.holds_any() {
            return;
        }
        for project in self.purses.0.keys().cloned().collect::<Vec<_>>() {
            while let Some(order) = self.next_held(&project) {
                let run = order.run.clone();
                self.order(&run, Command::RunTask(order));
            }
            self.tell_starved(&project);
        }
    }

    fn next_held(&mut self, project: &Name) -> Option<Box<TaskOrder>> {
        let purse = self.purses.0.get_mut(project)?;
        purse.turn_over(self.clock.now());
        while purse.line.front().is_some_and(|order| !purse.held.contains(&TaskKey::of(order))) {
            purse.line.pop_front();
        }
        let next = self.purses.0[project].line.front()?;
        let (key, worst) = (TaskKey::of(next), self.worst(next));
        let purse = self.purses.0.get_mut(project).filter(|purse| purse.fits(&worst))?;
        purse.held.remove(&key);
        purse.line.pop_front()
    }

    /// Runs that only wait now are looked at once more: their rows are to say so.
    fn tell_starved(&mut self, project: &Name) {
        let purse = &self.purses.0[project];
        if !purse.out.is_empty() {
            return;
        }
        let waiting: BTreeSet<Name> = purse.held.iter().map(|key| key.run.clone()).collect();
        for run in waiting {
            let told = self.runs.get(&run).is_some_and(|hosted| hosted.is_stored_as(Status::Waiting));
            if !told && self.is_quiet(&run) {
                self.touched.insert(run);
            }
        }
    }

    /// All that this run has out is held, and nothing that is out of its project can make room.
    pub(super) fn is_starved(&self, id: &str) -> bool {
        let Some(hosted) = self.runs.get(id) else { return false };
        let Some(purse) = self.purses.0.get(&hosted.project) else { return false };
        if purse.held.is_empty() || !purse.out.is_empty() || hosted.run.status() != RunStatus::Running {
            return false;
        }
        let mut tasks = hosted.run.state().out.iter().filter(|(_, out)| out.child.is_none());
        let held = |(token, attempt)| purse.held.contains(&TaskKey { run: id.into(), token, attempt });
        let moves = |status: TokenStatus| {
            matches!(status, TokenStatus::Pending | TokenStatus::Retrying | TokenStatus::Sleeping)
        };
        tasks.all(|(task, _)| held(*task)) && !hosted.run.tokens().any(|token| moves(token.status()))
    }

    /// What a starved run waits for.
    pub(super) fn hunger(&self, id: &str) -> Option<WaitView> {
        let hosted = self.runs.get(id).filter(|_| self.is_starved(id))?;
        let works = hosted.run.state().out.values().any(|out| out.child.is_none());
        let purse = self.purses.0.get(&hosted.project).filter(|_| works)?;
        Some(project::held(id, &hosted.project, Some(&purse.budget), purse.spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;
    use wonder_core::event::TokenId;

    fn key(token: u64) -> TaskKey {
        TaskKey { run: "run".into(), token: TokenId(token), attempt: 1 }
    }

    fn dollars(usd_micros: u64) -> Allowance {
        Allowance { usd_micros, ..Allowance::default() }
    }

    #[test]
    fn what_is_out_counts_at_its_worst_until_it_comes_back() {
        let budget = ProjectBudget { usd_micros: 100, tokens: 10, per: Period::Ever };
        let mut purse = Purse::new(budget, i64::MIN, Spent { usd_micros: 40, tokens: 10 });
        purse.take(key(1), dollars(50));
        assert!(purse.fits(&dollars(10)) && !purse.fits(&dollars(11)));
        // What costs nothing of it goes on, also where nothing is left.
        assert!(purse.fits(&dollars(0)) && !purse.fits(&Allowance { tokens: 1, ..dollars(0) }));
        purse.take(key(1), dollars(50));
        purse.give_back(&key(1));
        purse.give_back(&key(1));
        assert!(purse.fits(&dollars(60)) && !purse.fits(&dollars(61)));
    }

    #[test]
    fn a_new_day_begins_with_nothing_spent() {
        let now = Time(1_767_225_600_000);
        let today = Period::Day.first_day(now);
        let spent = Spent { usd_micros: 100, tokens: 0 };
        let full = |per, first_day| {
            let mut purse = Purse::new(ProjectBudget { usd_micros: 100, tokens: 0, per }, first_day, spent);
            purse.turn_over(now);
            !purse.fits(&dollars(1))
        };
        assert!(!full(Period::Day, today - 1));
        assert!(full(Period::Ever, i64::MIN));
    }
}
