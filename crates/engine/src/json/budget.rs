//! Budgets as numbers for programs.

use serde::Serialize;
use wonder_core::Time;
use wonder_core::def::OnExceeded;

use super::dollars_as_number;
use crate::cost::{Bound, BudgetBill, Unit, Whose};

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
