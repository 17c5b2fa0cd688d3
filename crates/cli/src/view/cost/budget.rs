//! Budgets and what became of them: what is spent, reserved for what is out, and left; warnings and raises. Read
//! from events as the core counts them. A bound that is not written is not shown.

use serde::Serialize;
use wonder_core::Time;
use wonder_core::cost::{Allowance, Spend, dollars};
use wonder_core::def::{Budget, Bundle, OnExceeded};
use wonder_engine::timeline::{BudgetChange, BudgetNews, Timeline};

use super::super::words::{count, dollars_as_number, duration, offset};
use super::grouped;

/// One budget: of the run, of a node, or what a parent allows.
#[derive(Debug)]
pub(crate) struct BudgetBill {
    pub whose: Whose,
    pub bounds: Vec<Bound>,
    warn_at_permille: u32,
    on_exceeded: OnExceeded,
    warnings: Vec<(u64, Time)>,
    exceeded: Vec<(u64, Time, String)>,
    raises: Vec<Raise>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Whose {
    Run,
    Parent,
    Node(String),
}

#[derive(Debug)]
pub(crate) struct Bound {
    unit: Unit,
    /// As it is now: raised by people, perhaps more than once.
    limit: u64,
    spent: u64,
    reserved: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    Dollars,
    Tokens,
    Calls,
    Time,
}

#[derive(Debug)]
struct Raise {
    event: u64,
    at: Time,
    usd_micros: u64,
    whole: bool,
}

/// What is counted against a budget.
struct Used {
    spend: Spend,
    reserved: Allowance,
    wall_ms: u64,
}

/// The run's own, a parent's, and those of nodes, in this order.
pub(crate) fn budgets(bundle: &Bundle, timeline: &Timeline, now: Time) -> Vec<BudgetBill> {
    let wall_ms = timeline.ended_at.unwrap_or(now).since(timeline.started_at);
    let used = || Used { spend: timeline.spend.clone(), reserved: timeline.reserved(), wall_ms };
    let mut all = Vec::new();
    if let Some(budget) = &bundle.workflow.budget {
        all.push(BudgetBill::of(Whose::Run, budget, &used(), timeline));
    }
    if let Some(allowed) = timeline.allowance {
        let told = |amount: u64| (amount > 0).then_some(amount);
        let budget = Budget {
            usd_micros: told(allowed.usd_micros),
            tokens: told(allowed.tokens),
            calls: told(allowed.calls),
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

    fn learn(&mut self, news: &BudgetNews) {
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

    /// `$0.04 of $0.05 (80 %) · $0.01 reserved · $0 left`, then what has happened to it.
    pub(crate) fn lines(&self, began: Time) -> Vec<String> {
        let mut lines: Vec<String> = self.bounds.iter().map(Bound::line).collect();
        if self.bounds.is_empty() {
            lines.push("no bound".to_owned());
        }
        let when = |event: u64, at: Time| format!("{}, event {event}", offset(at.since(began)));
        if let Some((event, at)) = self.warnings.last() {
            let share = self.warn_at_permille / 10;
            let times = count(self.warnings.len() as u64, "warning");
            lines.push(format!("{times} at {share} %, the last {}", when(*event, *at)));
        }
        if let Some((event, at, message)) = self.exceeded.last() {
            lines.push(format!("stopped at it ({}): {message}", when(*event, *at)));
        }
        for raise in &self.raises {
            let by = if raise.whole { "as much again".to_owned() } else { dollars(raise.usd_micros) };
            lines.push(format!("raised by {by} ({})", when(raise.event, raise.at)));
        }
        lines
    }
}

impl Bound {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// In tenths of a percent; nothing to divide by is all of it.
    fn permille(&self) -> u64 {
        let share = u128::from(self.spent) * 1_000 / u128::from(self.limit.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    fn line(&self) -> String {
        let shown = |amount: u64| match self.unit {
            Unit::Dollars => dollars(amount),
            Unit::Tokens | Unit::Calls => grouped(amount),
            Unit::Time => duration(amount),
        };
        let unit = match self.unit {
            Unit::Dollars => "",
            Unit::Tokens => " tokens",
            Unit::Calls => " calls",
            Unit::Time => " of time",
        };
        let (spent, limit) = (shown(self.spent), shown(self.limit));
        let mut text = format!("{spent} of {limit}{unit} ({} %)", self.permille() / 10);
        if self.reserved > 0 {
            text.push_str(&format!(" · {} reserved", shown(self.reserved)));
        }
        format!("{text} · {} left", shown(self.left()))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct BudgetJson {
    /// `run`, `parent` or `node`.
    of: &'static str,
    node: Option<String>,
    on_exceeded: OnExceeded,
    warn_at: f64,
    bounds: Vec<BoundJson>,
    warnings: Vec<NewsJson>,
    exceeded: Vec<NewsJson>,
    raises: Vec<RaiseJson>,
}

/// Integers; dollars also as numbers to read.
#[derive(Debug, Serialize)]
struct BoundJson {
    /// `usd_micros`, `tokens`, `calls` or `ms`.
    unit: &'static str,
    #[serde(flatten)]
    amounts: Amounts<u64>,
    /// Of the limit that is spent.
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<Amounts<f64>>,
}

#[derive(Debug, Serialize)]
struct Amounts<T> {
    limit: T,
    spent: T,
    reserved: T,
    left: T,
}

#[derive(Debug, Serialize)]
struct NewsJson {
    event: u64,
    at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct RaiseJson {
    event: u64,
    at: Time,
    by_usd: f64,
    by_usd_micros: u64,
    /// Every bound by what was written.
    whole: bool,
}

impl BudgetJson {
    pub(super) fn of(bill: &BudgetBill) -> BudgetJson {
        let (of, node) = match &bill.whose {
            Whose::Run => ("run", None),
            Whose::Parent => ("parent", None),
            Whose::Node(name) => ("node", Some(name.clone())),
        };
        let news = |event: u64, at: Time, message: Option<String>| NewsJson { event, at, message };
        BudgetJson {
            of,
            node,
            on_exceeded: bill.on_exceeded,
            warn_at: f64::from(bill.warn_at_permille) / 1_000.0,
            bounds: bill.bounds.iter().map(BoundJson::of).collect(),
            warnings: bill.warnings.iter().map(|(event, at)| news(*event, *at, None)).collect(),
            exceeded: bill.exceeded.iter().map(|(e, at, text)| news(*e, *at, Some(text.clone()))).collect(),
            raises: bill
                .raises
                .iter()
                .map(|raise| RaiseJson {
                    event: raise.event,
                    at: raise.at,
                    by_usd: dollars_as_number(raise.usd_micros),
                    by_usd_micros: raise.usd_micros,
                    whole: raise.whole,
                })
                .collect(),
        }
    }
}

impl BoundJson {
    fn of(bound: &Bound) -> BoundJson {
        let Bound { unit, limit, spent, reserved } = *bound;
        let left = bound.left();
        let usd = Amounts {
            limit: dollars_as_number(limit),
            spent: dollars_as_number(spent),
            reserved: dollars_as_number(reserved),
            left: dollars_as_number(left),
        };
        BoundJson {
            unit: match unit {
                Unit::Dollars => "usd_micros",
                Unit::Tokens => "tokens",
                Unit::Calls => "calls",
                Unit::Time => "ms",
            },
            amounts: Amounts { limit, spent, reserved, left },
            share: bound.permille() as f64 / 1_000.0,
            usd: (unit == Unit::Dollars).then_some(usd),
        }
    }
}
