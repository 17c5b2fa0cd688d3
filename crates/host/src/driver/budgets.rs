//! Budgets of projects: what tasks report is added up by project and period, and a task whose worst case does
//! not fit is held until something comes back.
//!
//! A task that can cost nothing is never held. If nothing of the project is out and what is held still does
//! not fit, its runs only wait: for another budget, or another day.
//!
//! Only decisions are made here; the driver acts on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wonder_core::Time;
use wonder_core::command::TaskOrder;
use wonder_core::cost::Allowance;
use wonder_core::def::Name;

use super::TaskKey;
use crate::project::{ProjectBudget, Spent};

#[derive(Debug, Default)]
pub(crate) struct ProjectBudgets(BTreeMap<Name, Account>);

#[derive(Debug)]
struct Account {
    budget: ProjectBudget,
    /// The day on which the period began that `spent` is of.
    first_day: i64,
    spent: Spent,
    /// The most that tasks which are out may spend, and the sum of that.
    out: BTreeMap<TaskKey, Allowance>,
    reserved: Allowance,
    /// Tasks that do not fit now and their worst cases, the oldest first. A task that was cancelled is only
    /// taken out of `held`.
    queue: VecDeque<(Box<TaskOrder>, Allowance)>,
    held: BTreeSet<TaskKey>,
}

impl Account {
    fn new(budget: ProjectBudget, spent: Spent, now: Time) -> Account {
        Account {
            budget,
            first_day: budget.per.first_day(now),
            spent,
            out: BTreeMap::new(),
            reserved: Allowance::default(),
            queue: VecDeque::new(),
            held: BTreeSet::new(),
        }
    }

    /// A new period begins with nothing spent.
    fn begin_period(&mut self, now: Time) {
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

    fn reserve(&mut self, key: TaskKey, worst: Allowance) {
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

    fn hold(&mut self, order: Box<TaskOrder>, worst: Allowance) {
        if self.held.insert(TaskKey::of(&order)) {
            self.queue.push_back((order, worst));
        }
    }

    fn next_fitting(&mut self) -> Option<Box<TaskOrder>> {
        while self.queue.front().is_some_and(|(order, _)| !self.held.contains(&TaskKey::of(order))) {
            self.queue.pop_front();
        }
        let (order, worst) = self.queue.front()?;
        if !self.fits(worst) {
            return None;
        }
        self.held.remove(&TaskKey::of(order));
        self.queue.pop_front().map(|(order, _)| order)
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

impl ProjectBudgets {
    /// A project that may spend so much, and has spent so much since its period began.
    pub(crate) fn insert(&mut self, project: Name, budget: ProjectBudget, spent: Spent, now: Time) {
        self.0.insert(project, Account::new(budget, spent, now));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn projects(&self) -> Vec<Name> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn holds_any(&self) -> bool {
        self.0.values().any(|account| !account.held.is_empty())
    }

    pub(super) fn spend(&mut self, project: &Name, spent: Spent, now: Time) {
        if let Some(account) = self.0.get_mut(project) {
            account.begin_period(now);
            account.spent.add(spent);
        }
    }

    /// A task that fits is given back with what it may spend, to begin now; another is held.
    pub(super) fn admit(
        &mut self,
        project: &Name,
        mut order: Box<TaskOrder>,
        worst: Allowance,
        now: Time,
    ) -> Option<Box<TaskOrder>> {
        let Some(account) = self.0.get_mut(project) else { return Some(order) };
        account.begin_period(now);
        if !account.fits(&worst) {
            account.hold(order, worst);
            return None;
        }
        account.reserve(TaskKey::of(&order), worst);
        order.allowance = account.allowance(&worst, order.allowance);
        Some(order)
    }

    /// A task is out no more, or was told not to begin.
    pub(super) fn give_back(&mut self, key: &TaskKey) {
        self.0.values_mut().for_each(|account| account.give_back(key));
    }

    /// The oldest task that is held, if it fits now.
    pub(super) fn next_fitting(&mut self, project: &Name, now: Time) -> Option<Box<TaskOrder>> {
        let account = self.0.get_mut(project)?;
        account.begin_period(now);
        account.next_fitting()
    }

    /// Nothing of the project is out that could make room, and something is held.
    pub(super) fn is_exhausted(&self, project: &Name) -> bool {
        self.0.get(project).is_some_and(|account| account.out.is_empty() && !account.held.is_empty())
    }

    pub(super) fn holds(&self, project: &Name, key: &TaskKey) -> bool {
        self.0.get(project).is_some_and(|account| account.held.contains(key))
    }

    /// Runs of a project that have tasks held.
    pub(super) fn runs_held(&self, project: &Name) -> BTreeSet<Name> {
        let held = self.0.get(project).into_iter().flat_map(|account| &account.held);
        held.map(|key| key.run.clone()).collect()
    }

    /// What a project may spend, and has spent.
    pub(super) fn balance(&self, project: &Name) -> Option<(&ProjectBudget, Spent)> {
        self.0.get(project).map(|account| (&account.budget, account.spent))
    }
}

#[cfg(test)]
mod tests {
    use super::super::orders::test_order;
    use super::*;
    use crate::Period;

    const NOW: Time = Time(1_767_225_600_000);
    const TOMORROW: Time = Time(NOW.0 + 86_400_000);

    fn dollars(usd_micros: u64) -> Allowance {
        Allowance { usd_micros, ..Allowance::default() }
    }

    fn budgets(per: Period, spent: Spent) -> (ProjectBudgets, Name) {
        let mut budgets = ProjectBudgets::default();
        let project: Name = "project".into();
        budgets.insert(project.clone(), ProjectBudget { usd_micros: 100, tokens: 10, per }, spent, NOW);
        (budgets, project)
    }

    fn key(token: u64) -> TaskKey {
        TaskKey::of(&test_order("run", token))
    }

    #[test]
    fn what_is_out_counts_at_its_worst_until_it_comes_back() {
        let (mut budgets, project) = budgets(Period::Ever, Spent { usd_micros: 40, tokens: 10 });
        let mut admit = |token, worst| budgets.admit(&project, test_order("run", token), worst, NOW);
        assert_eq!(admit(1, dollars(50)).expect("it fits").allowance.usd_micros, 50);
        assert!(admit(2, dollars(11)).is_none() && admit(3, dollars(10)).is_some());
        // What costs nothing of it goes on, also where nothing is left.
        assert!(admit(4, dollars(0)).is_some() && admit(5, Allowance { tokens: 1, ..dollars(0) }).is_none());
        assert!(budgets.holds(&project, &key(2)) && !budgets.is_exhausted(&project));
        assert!(budgets.next_fitting(&project, NOW).is_none());
        budgets.give_back(&key(1));
        budgets.give_back(&key(1));
        assert_eq!(budgets.next_fitting(&project, NOW).expect("there is room").token, key(2).token);
        assert_eq!(budgets.runs_held(&project).len(), 1, "its tokens are spent");
    }

    #[test]
    fn a_new_day_begins_with_nothing_spent() {
        let full = |per, now| {
            let (mut budgets, project) = budgets(per, Spent { usd_micros: 100, tokens: 0 });
            budgets.admit(&project, test_order("run", 1), dollars(1), now).is_none()
        };
        assert!(full(Period::Day, NOW) && !full(Period::Day, TOMORROW));
        assert!(full(Period::Ever, TOMORROW));
    }

    #[test]
    fn a_task_that_was_cancelled_while_it_was_held_never_begins() {
        let (mut budgets, project) = budgets(Period::Day, Spent { usd_micros: 100, tokens: 0 });
        for token in [1, 2] {
            assert!(budgets.admit(&project, test_order("run", token), dollars(60), NOW).is_none());
        }
        assert!(budgets.is_exhausted(&project));
        budgets.give_back(&key(1));
        assert_eq!(budgets.next_fitting(&project, TOMORROW).expect("it is a new day").token, key(2).token);
        assert!(budgets.next_fitting(&project, TOMORROW).is_none() && !budgets.holds_any());
    }
}
