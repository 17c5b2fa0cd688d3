//! What runs cost, as data: one run with those it called, node by node, or all runs together. Every list sums up
//! to its total, in integers. Nothing here decides what may be spent.

mod bill;
mod budget;
mod totals;

pub use bill::{AttemptBill, Bill, RunBill};
pub use budget::{Bound, BudgetBill, Raise, Unit, Whose, budgets};
use serde::Serialize;
pub use totals::{GroupBy, Total, Totals};
use wonder_core::cost::Spend;

/// What some attempts came to.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Sum {
    pub visits: u64,
    pub attempts: u64,
    /// Attempts that are tasks, not child runs.
    pub tasks: u64,
    /// Of actions, beyond the first of each.
    pub tries: u64,
    pub spend: Spend,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.visits += other.visits;
        self.attempts += other.attempts;
        self.tasks += other.tasks;
        self.tries += other.tries;
        self.spend.add(&other.spend);
    }
}
