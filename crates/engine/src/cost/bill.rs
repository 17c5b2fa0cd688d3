//! The bill of one run: every attempt of the run and of its children once, summed by node, by model and by run.
//! What a child told its parent is in the child's own attempts, so it is not counted again at the node that
//! called it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wonder_core::cost::Spend;
use wonder_core::event::TokenId;
use wonder_core::{Time, TokenStatus};

use super::Sum;
use crate::run_tree::{RunTree, is_gather, node_name};
use crate::timeline::{Attempt, Timeline};

#[derive(Clone, Debug, Serialize)]
pub struct Bill {
    pub total: Sum,
    /// The dearest first, then as they were first visited.
    pub nodes: Vec<(String, Sum)>,
    /// By profile; what used none is last, under no name.
    pub models: Vec<(Option<String>, Sum)>,
    /// The run, then those it called.
    pub runs: Vec<RunBill>,
    pub attempts: Vec<AttemptBill>,
    /// What the run itself has heard of: child runs tell when they end.
    pub settled: Spend,
    /// Of that, what was copied from the run it was forked from.
    pub copied: Spend,
    /// From its start to its end, or to now, as far as it was open; of a fork since it was forked.
    pub wall_ms: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunBill {
    pub run: String,
    /// The visit that called it; nothing for the run itself.
    pub called_at: String,
    pub workflow: String,
    pub sum: Sum,
}

#[derive(Clone, Debug, Serialize)]
pub struct AttemptBill {
    pub run: String,
    pub token: u64,
    /// With its branch, and in a child with the visit that called it.
    pub label: String,
    pub number: u32,
    pub began_at: Time,
    pub ended_at: Option<Time>,
    pub outcome: Option<TokenStatus>,
    pub failure: Option<String>,
    pub child: Option<String>,
    pub sum: Sum,
}

impl Bill {
    /// Somebody said which model it was.
    pub fn has_models(&self) -> bool {
        self.models.iter().any(|(model, _)| model.is_some())
    }

    pub fn of(tree: &RunTree, now: Time) -> Bill {
        let root = tree.root();
        let mut bill = Bill {
            total: Sum::default(),
            nodes: Vec::new(),
            models: Vec::new(),
            runs: Vec::new(),
            attempts: Vec::new(),
            settled: root.spend.clone(),
            copied: root.copied.clone(),
            wall_ms: root.axis().ms(root.ended_at.unwrap_or(now)),
        };
        let mut sums = Sums::default();
        bill.count(tree, &tree.root, "", &mut sums);
        bill.nodes = sums.nodes;
        bill.nodes.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.spend.usd_micros, sum.spend.tokens())));
        let (named, nameless): (Vec<_>, Vec<_>) =
            sums.models.into_iter().partition(|(model, _)| model.is_some());
        bill.models = named;
        bill.models.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.spend.usd_micros));
        bill.models.extend(nameless.into_iter().filter(|(_, sum)| costs(&sum.spend)));
        bill
    }

    /// How many tasks ran at once on average: task time by the time on the clock.
    pub fn parallelism(&self) -> f64 {
        let tenths = u128::from(self.total.spend.duration_ms) * 10 / u128::from(self.wall_ms.max(1));
        u32::try_from(tenths).map_or(f64::INFINITY, |tenths| f64::from(tenths) / 10.0)
    }

    /// A run and what it called. `path`: the nodes that lead to it, without their branches.
    fn count(&mut self, tree: &RunTree, run: &str, path: &str, sums: &mut Sums) {
        let Some(timeline) = tree.runs.get(run) else { return };
        let workflow = timeline.workflow.as_deref().unwrap_or_default().to_owned();
        let called_at = tree.run_label(run);
        let at = self.runs.len();
        self.runs.push(RunBill { run: run.to_owned(), called_at, workflow, sum: Sum::default() });
        let spreads = spreads(timeline);
        let mut calls = Vec::new();
        for visit in timeline.visits.values() {
            let name = format!("{path}{}", node_name(&visit.node));
            let hidden = is_gather(&visit.node) || spreads.contains(&visit.token);
            let visits = u64::from(!hidden);
            let mut sum = Sum { visits, ..Sum::default() };
            for attempt in &visit.history {
                let own = own_sum(attempt);
                sums.model(&own);
                sum.add(&own);
                let label = tree.label(run, visit.token);
                self.attempts.push(AttemptBill::of(run, visit.token, label, attempt));
                calls.extend(attempt.child.as_ref().map(|child| (child.clone(), format!("{name}/"))));
            }
            sums.node(&name, &sum);
            self.runs[at].sum.add(&sum);
        }
        self.total.add(&self.runs[at].sum.clone());
        for (child, path) in calls {
            self.count(tree, &child, &path, sums);
        }
    }
}

#[derive(Default)]
struct Sums {
    nodes: Vec<(String, Sum)>,
    node_at: BTreeMap<String, usize>,
    models: BTreeMap<Option<String>, Sum>,
}

impl Sums {
    fn node(&mut self, name: &str, sum: &Sum) {
        let at = *self.node_at.entry(name.to_owned()).or_insert_with(|| {
            self.nodes.push((name.to_owned(), Sum::default()));
            self.nodes.len() - 1
        });
        self.nodes[at].1.add(sum);
    }

    fn model(&mut self, sum: &Sum) {
        let model = sum.spend.model_used.as_ref().map(ToString::to_string);
        self.models.entry(model).or_default().add(sum);
    }
}

impl AttemptBill {
    fn of(run: &str, token: TokenId, label: String, attempt: &Attempt) -> AttemptBill {
        AttemptBill {
            run: run.to_owned(),
            token: token.0,
            label,
            number: attempt.number,
            began_at: attempt.began_at,
            ended_at: attempt.ended_at,
            outcome: attempt.outcome,
            failure: attempt.failure.clone(),
            child: attempt.child.as_ref().map(ToString::to_string),
            sum: own_sum(attempt),
        }
    }
}

/// What an attempt spent itself: of a child run nothing, for that has attempts of its own.
fn own_sum(attempt: &Attempt) -> Sum {
    let tasks = u64::from(attempt.child.is_none());
    let spend = if tasks == 0 { Spend::default() } else { attempt.spend.clone() };
    Sum { visits: 0, attempts: 1, tasks, tries: attempt.tries.into(), spend }
}

/// Visits that only fan out to the items of a dag's `foreach`: people count the items.
fn spreads(timeline: &Timeline) -> BTreeSet<TokenId> {
    let gathered = timeline.groups.values().filter(|group| group.joins_at.as_deref().is_some_and(is_gather));
    gathered.map(|group| group.origin).collect()
}

/// It took money or tokens of a model.
fn costs(spend: &Spend) -> bool {
    spend.usd_micros > 0 || spend.tokens() > 0
}
