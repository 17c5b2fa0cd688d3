//! Budgets and what became of them: what is spent, reserved for what is out, and left; warnings and raises. Read
//! from events as the core counts them. A bound that is not written is not shown.

use serde::Serialize;
use wonder_core::Time;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::{Budget, Bundle, OnExceeded};

use crate::timeline::{BudgetChange, BudgetEvent, Timeline};

/// One budget: of the run, of a node, or what a parent allows.
#[derive(Clone, Debug, Serialize)]
pub struct BudgetBill {
    pub whose: Whose,
    pub bounds: Vec<Bound>,
    pub warn_at_permille: u32,
    pub on_exceeded: OnExceeded,
    /// The event and its time.
    pub warnings: Vec<(u64, Time)>,
    pub exceeded: Vec<(u64, Time, String)>,
    pub raises: Vec<Raise>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Run,
    Parent,
    Node(String),
}

#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    pub unit: Unit,
    /// As it is now: raised by people, perhaps more than once.
    pub limit: u64,
    pub spent: u64,
    pub reserved: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Dollars,
    Tokens,
    Calls,
    Time,
}

#[derive(Clone, Debug, Serialize)]
pub struct Raise {
    pub event: u64,
    pub at: Time,
    pub usd_micros: u64,
    /// Every bound by what was written.
    pub whole: bool,
}

/// What is counted against a budget.
struct Used {
    spend: Spend,
    reserved: Allowance,
    wall_ms: u64,
}

/// The run's own, a parent's, and those of nodes, in this order.
pub fn budgets(bundle: &Bundle, timeline: &Timeline, now: Time) -> Vec<BudgetBill> {
    let wall_ms = timeline.ended_at.unwrap_or(now).since(timeline.started_at);
    let used = || Used { spend: timeline.spend.clone(), reserved: timeline.reserved(), wall_ms };
    let mut all = Vec::new();
    if let Some(budget) = &bundle.workflow.budget {
        all.push(BudgetBill::of(Whose::Run, budget, &used(), timeline));
    }
    if let Some(allowed) = timeline.allowance {
        let some = |amount: u64| (amount > 0).then_some(amount);
        let budget = Budget {
            usd_micros: some(allowed.usd_micros),
            tokens: some(allowed.tokens),
            calls: some(allowed.calls),
            on_exceeded: OnExceeded::Fail,
            ..Budget::default()
        };
        all.push(BudgetBill::of(Whose::Parent, &budget, &used(), timeline));
    }
    for node in &bundle.workflow.nodes {
        let Some(budget) = &node.budget else { continue };
        let name = node.reference.as_str();
        let mut spend = Spend::default();
        timeline.visits.values().filter(|visit| &*visit.node == name).for_each(|v| spend.add(&v.spend));
        let reserved = timeline.reserved_by(|visit| &*visit.node == name);
        let used = Used { wall_ms: spend.duration_ms, spend, reserved };
        all.push(BudgetBill::of(Whose::Node(name.to_owned()), budget, &used, timeline));
    }
    all
}

impl BudgetBill {
    fn of(whose: Whose, budget: &Budget, used: &Used, timeline: &Timeline) -> BudgetBill {
        let mut bill = BudgetBill {
            bounds: Vec::new(),
            warn_at_permille: budget.warn_at_permille,
            on_exceeded: budget.on_exceeded,
            warnings: Vec::new(),
            exceeded: Vec::new(),
            raises: Vec::new(),
            whose,
        };
        timeline.budget.iter().for_each(|news| bill.learn(news));
        // Dollars are raised by what people say, or all of it by as much again.
        let usd = bill.raises.iter().fold(0_u64, |sum, raise| sum.saturating_add(raise.usd_micros));
        let times = bill.raises.iter().filter(|raise| raise.whole).count() as u64 + 1;
        let (spend, reserved) = (&used.spend, &used.reserved);
        let rows = [
            (Unit::Dollars, budget.usd_micros, spend.usd_micros, reserved.usd_micros),
            (Unit::Tokens, budget.tokens, spend.tokens(), reserved.tokens),
            (Unit::Calls, budget.calls, spend.calls, reserved.calls),
            (Unit::Time, budget.wall_ms, used.wall_ms, 0),
        ];
        for (unit, written, spent, reserved) in rows {
            let Some(written) = written else { continue };
            let limit = match unit {
                Unit::Dollars => written.saturating_add(usd),
                _ => written.saturating_mul(times),
            };
            bill.bounds.push(Bound { unit, limit, spent, reserved });
        }
        bill
    }

    fn learn(&mut self, news: &BudgetEvent) {
        let ours = match &self.whose {
            Whose::Run => news.node.is_none(),
            Whose::Node(name) => news.node.as_deref() == Some(name),
            Whose::Parent => false,
        };
        let (event, at) = (news.seq, news.at);
        match &news.what {
            _ if !ours => {}
            BudgetChange::Warned { .. } => self.warnings.push((event, at)),
            BudgetChange::Exceeded { message } => self.exceeded.push((event, at, message.clone())),
            BudgetChange::Raised { usd_micros, whole } => {
                self.raises.push(Raise { event, at, usd_micros: *usd_micros, whole: *whole });
            }
        }
    }
}

impl Bound {
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// In tenths of a percent; nothing to divide by is all of it.
    pub fn permille(&self) -> u64 {
        let share = u128::from(self.spent) * 1_000 / u128::from(self.limit.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}
