//! A dag as its author sees it: units, some of them with items. What they come to, and when they run.

use std::collections::BTreeMap;

use wonder_core::def::{Estimate, Name};
use wonder_core::graph::{Graph, Node, NodeIx, Spread, Unit, UnitIx};
use wonder_core::limits::Limits;
use wonder_core::schedule::longest_paths;

use super::dag::{self, Job, Play};
use super::fold::Amount;
use super::parts::{Sums, Timing, once_for_each, total, with_places};
use super::report::{Branches, FanOutPlan, Total};
use super::ways::branches;
use super::work::Work;

/// A dag, as what its author calls nodes.
pub(super) struct Units<'u> {
    pub(super) graph: &'u Graph,
    pub(super) works: &'u [Work],
    pub(super) each: Vec<Option<Branches>>,
    pub(super) order: Vec<usize>,
}

/// The node that does the work of a unit: the one within its `foreach`, if it has one.
pub(super) fn worker_of(graph: &Graph, unit: UnitIx) -> &Node {
    let head = graph.node(graph.unit(unit).head);
    spread_of(graph, head).map_or(head, |(to, _)| graph.node(to))
}

fn spread_of<'g>(graph: &'g Graph, head: &Node) -> Option<(NodeIx, &'g Spread)> {
    let transition = graph.transition(*head.out.first()?);
    Some((transition.to, transition.spread.as_ref()?))
}

impl<'u> Units<'u> {
    pub(super) fn of(
        graph: &'u Graph,
        works: &'u [Work],
        learnt: &BTreeMap<Name, Estimate>,
        limits: &Limits,
    ) -> Units<'u> {
        let each = graph.units.iter().map(|unit| {
            let (_, spread) = spread_of(graph, graph.node(unit.head))?;
            Some(branches(graph, spread, limits))
        });
        Units { graph, works, each: each.collect(), order: dag::ready_order(graph, learnt) }
    }

    fn at_once(&self, at: usize) -> Option<u32> {
        match spread_of(self.graph, self.graph.node(self.graph.units[at].head))?.1 {
            Spread::Each { max_parallel, .. } => *max_parallel,
            Spread::Count(_) => None,
        }
    }

    pub(super) fn timing(&self) -> Timing {
        let job = |(at, work): (usize, &Work)| Job {
            duration_ms: work.duration.amount,
            is_task: work.is_task,
            waits: work.expected().open,
            items: self.items(at),
            at_once: self.at_once(at),
        };
        let jobs: Vec<Job> = self.works.iter().enumerate().map(job).collect();
        let free = Play::of(self.graph, &jobs, &self.order, None);
        let places = self.graph.max_parallel;
        let play = places.map(|_| Play::of(self.graph, &jobs, &self.order, places));
        let (path, path_ms) = (free.path(self.graph), free.makespan_ms());
        let play = play.unwrap_or(free);
        Timing {
            path,
            path_ms,
            expected_ms: play.makespan_ms(),
            lower_bound_ms: path_ms.max(dag::shared_ms(&jobs, places)),
            starts_ms: play.starts_ms,
            ends_ms: play.ends_ms,
        }
    }

    /// As many as are expected: one where data decides.
    fn items(&self, at: usize) -> u64 {
        self.each[at].as_ref().map_or(1, |branches| branches.exact.unwrap_or(1))
    }

    pub(super) fn sums(&self) -> Sums {
        let expected =
            self.works.iter().enumerate().map(|(at, work)| work.cost.amount.saturating_mul(self.items(at)));
        let waits: Vec<String> = self.works.iter().filter_map(Work::waits_forever).collect();
        Sums {
            expected_usd: total(
                expected.fold(0, u64::saturating_add),
                self.works.iter().flat_map(|work| &work.open.expected_usd),
            ),
            usd: self.sum(|work| work.worst.usd_micros, self.works.iter().flat_map(|work| &work.open.usd)),
            tokens: self.sum(|work| work.worst.tokens, self.works.iter().flat_map(|work| &work.open.tokens)),
            calls: self.sum(|work| work.worst.calls, self.works.iter().flat_map(|work| &work.open.calls)),
            waiting: self.sum(|work| work.waiting_ms.unwrap_or(0), &waits),
            running: self.running(),
        }
    }

    fn sum<'w>(&self, of: fn(&Work) -> u64, why: impl IntoIterator<Item = &'w String>) -> Total {
        let mut sum = total(0, why);
        for (at, work) in self.works.iter().enumerate() {
            let (amount, times) = (of(work), self.times(at));
            if let Some(each) = self.each[at].as_ref().filter(|each| each.by_data && amount > 0) {
                let each_of = each.each_of.as_deref().unwrap_or_default();
                sum.unbounded.push(once_for_each(&self.graph.units[at].reference, each_of));
            }
            sum.known = sum.known.saturating_add(amount.saturating_mul(times));
        }
        sum
    }

    /// As many as there can be; one if nothing bounds that.
    fn times(&self, at: usize) -> u64 {
        self.each[at].as_ref().map_or(1, |each| if each.by_data { 1 } else { each.at_most })
    }

    /// The longest path, and all the work if places are short.
    fn running(&self) -> Amount {
        let mut open = false;
        let mut one = Vec::with_capacity(self.works.len());
        let mut all = 0u64;
        for (at, work) in self.works.iter().enumerate() {
            let by_data = self.each[at].as_ref().is_some_and(|each| each.by_data);
            let ms = work.running_ms.unwrap_or(0);
            open |= work.running_ms.is_none() || (by_data && ms > 0);
            let waves = self.at_once(at).map_or(1, |max| self.times(at).div_ceil(u64::from(max.max(1))));
            one.push(ms.saturating_mul(waves));
            if work.is_task {
                all = all.saturating_add(ms.saturating_mul(self.times(at)));
            }
        }
        let index = |unit: &Unit| self.graph.node(unit.head).unit.map_or(0, |unit| unit.0 as usize);
        let paths = longest_paths(self.graph, |unit| one[index(unit)]);
        let longest = paths.into_iter().max().unwrap_or(0);
        Amount { known: with_places(self.graph, self.works, longest, all), open }
    }

    pub(super) fn fan_outs(&self) -> Vec<FanOutPlan> {
        let unit = |(at, each): (usize, &Option<Branches>)| {
            let node = self.graph.units[at].reference.clone();
            Some(FanOutPlan {
                to: vec![node.clone()],
                node,
                branches: each.clone()?,
                max_parallel: self.at_once(at),
                fan_in: None,
            })
        };
        self.each.iter().enumerate().filter_map(unit).collect()
    }
}
