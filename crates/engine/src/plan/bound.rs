//! What a run can come to at worst: the dearest way where a token takes one of several, all of them where it
//! takes all, as often as fan-outs and `max_iterations` allow. Conditions are not asked.
//!
//! A fan-in belongs to whoever fanned out: a branch that arrives has come to its end, and what follows is
//! counted once for each firing. A loop without a written bound counts as often as the plan expects it to go
//! round, and says so.

use std::collections::BTreeMap;

use wonder_core::def::{FanOut, On};
use wonder_core::graph::{Graph, NodeIx, Response, Rule, Source, Unit};
use wonder_core::limits::Limits;
use wonder_core::schedule::longest_paths;

use super::fan_outs::{at_once, branches, spread_of};
use super::play::Played;
use super::report::{Branches, LoopPlan, Total};
use super::walk::Walk;
use super::work::Work;

/// A number of one place or of all that follows it; `open` if it has no bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Amount {
    pub(super) known: u64,
    pub(super) open: bool,
}

impl Amount {
    /// None has no bound.
    fn maybe(known: Option<u64>) -> Amount {
        Amount { known: known.unwrap_or(0), open: known.is_none() }
    }

    fn plus(self, other: Amount) -> Amount {
        Amount { known: self.known.saturating_add(other.known), open: self.open || other.open }
    }

    fn or(self, other: Amount) -> Amount {
        Amount { known: self.known.max(other.known), open: self.open || other.open }
    }

    fn times(self, times: u64) -> Amount {
        Amount { known: self.known.saturating_mul(times), ..self }
    }

    fn is_something(self) -> bool {
        self.open || self.known > 0
    }
}

/// What everything comes to.
pub(super) struct Sums {
    pub(super) usd: Total,
    pub(super) tokens: Total,
    pub(super) calls: Total,
    pub(super) waiting: Total,
    /// Without the workflow's own timeout.
    pub(super) running: Amount,
}

/// Copies of a branch.
struct Copies {
    branches: Branches,
    at_once: Option<u32>,
    after: Option<usize>,
}

impl Copies {
    /// All of them: one after the other for a sum, and abreast for a time.
    fn of(&self, inner: Amount, abreast: bool) -> Amount {
        let by_data = self.branches.by_data && inner.is_something();
        let count = if self.branches.by_data { 1 } else { self.branches.at_most };
        let count = match (abreast, self.at_once) {
            (false, _) => count,
            (true, None) => count.min(1),
            (true, Some(at_once)) => count.div_ceil(u64::from(at_once.max(1))),
        };
        Amount { open: inner.open || by_data, ..inner.times(count) }
    }
}

/// Bounds how often one lineage goes a way; ways with the same number share the count.
type Counter = (u32, u32);

struct Way {
    to: usize,
    on: On,
    copies: Option<Copies>,
    /// It ends the branch at a fan-in; what follows belongs to whoever fanned out.
    arrives: bool,
    counter: Option<Counter>,
}

struct Place {
    ways: Vec<Way>,
    /// Takes all ways that fit, as one group that goes on at `after`.
    splits: bool,
    after: Option<usize>,
}

impl Place {
    /// Every place that what this one brings depends on, and what bounds going there.
    fn links(&self) -> impl Iterator<Item = (usize, Option<Counter>)> + '_ {
        let ways = self.ways.iter().filter(|way| !way.arrives).map(|way| (way.to, way.counter));
        let afters = self.ways.iter().filter_map(|way| way.copies.as_ref()?.after).chain(self.after);
        ways.chain(afters.map(|after| (after, None)))
    }
}

/// Places that lead to each other.
struct Cycle {
    members: Vec<usize>,
    /// How often a lineage can go back in it; none: nothing written bounds it.
    turns_max: Option<u64>,
    passes: u64,
    /// One node to which the workflow's `on_error` leads from everywhere, and so from itself: it counts, but
    /// nobody would call it a loop.
    by_rule: bool,
}

/// A workflow laid out to be counted.
pub(super) struct Bounds<'b> {
    graph: &'b Graph,
    works: &'b [Work],
    /// Of a dag, the items of each unit.
    items: Vec<Option<Copies>>,
    places: Vec<Place>,
    walk: Walk,
    cycles: BTreeMap<usize, Cycle>,
}

impl<'b> Bounds<'b> {
    pub(super) fn of(graph: &'b Graph, works: &'b [Work], played: &Played, limits: &Limits) -> Bounds<'b> {
        let items = graph.units.iter().map(|unit| {
            let (_, spread) = spread_of(graph, graph.node(unit.head))?;
            Some(Copies { branches: branches(graph, spread, limits), at_once: at_once(spread), after: None })
        });
        let places = if graph.is_dag() { Vec::new() } else { places(graph, limits) };
        let next: Vec<Vec<usize>> =
            places.iter().map(|place| place.links().map(|(to, _)| to).collect()).collect();
        let walk = Walk::of(graph.initial.0 as usize, &next);
        let mut bounds =
            Bounds { graph, works, items: items.collect(), places, walk, cycles: BTreeMap::new() };
        for (number, members) in bounds.walk.components.iter().enumerate() {
            if let Some(cycle) = bounds.cycle(members, played) {
                bounds.cycles.insert(number, cycle);
            }
        }
        bounds
    }

    /// None if it is one place that does not lead to itself.
    fn cycle(&self, members: &[usize], played: &Played) -> Option<Cycle> {
        let inside = |at: &usize| {
            self.places[*at].links().filter(|(to, _)| members.binary_search(to).is_ok()).collect::<Vec<_>>()
        };
        if members.iter().all(|at| inside(at).is_empty()) {
            return None;
        }
        let counters: BTreeMap<u32, u32> =
            members.iter().flat_map(inside).filter_map(|(_, counter)| counter).collect();
        // What is left when the counted links are cut must lead nowhere twice.
        let free: Vec<Vec<usize>> = members
            .iter()
            .map(|at| {
                let free = inside(at).into_iter().filter(|(_, counter)| counter.is_none());
                free.filter_map(|(to, _)| members.binary_search(&to).ok()).collect()
            })
            .collect();
        let bounded = Walk::of(0, &free).back.is_empty();
        let turns_max = bounded.then(|| counters.values().map(|max| u64::from(*max)).sum());
        let closers = members
            .iter()
            .filter(|at| inside(at).iter().any(|(to, _)| self.walk.back.contains(&(**at, *to))));
        let passes = closers.map(|at| played.of_row(*at).count() as u64).sum();
        let first = self.graph.transitions.len() as u32;
        let of_all = first..first + self.graph.on_error.len() as u32;
        let by_rule = members.len() == 1 && counters.keys().all(|id| of_all.contains(id)) && bounded;
        Some(Cycle { members: members.to_vec(), turns_max, passes, by_rule })
    }

    pub(super) fn sums(&self) -> Sums {
        let count = |of: fn(&Work) -> u64, why: fn(&Work) -> &Vec<String>| {
            let each: Vec<Amount> = self
                .works
                .iter()
                .map(|work| Amount { known: of(work), open: !why(work).is_empty() })
                .collect();
            self.total(&each, self.works.iter().flat_map(why).cloned().collect())
        };
        let waiting: Vec<Amount> = self.works.iter().map(|work| Amount::maybe(work.waiting_ms)).collect();
        Sums {
            usd: count(|work| work.worst.usd_micros, |work| &work.open.usd),
            tokens: count(|work| work.worst.tokens, |work| &work.open.tokens),
            calls: count(|work| work.worst.calls, |work| &work.open.calls),
            waiting: self.total(&waiting, self.works.iter().filter_map(Work::waits_forever).collect()),
            running: self.running(),
        }
    }

    /// The longest way, and all the work if places are short: while one is free the longest way goes on, and
    /// while none is, all of them are at work (Graham's bound).
    fn running(&self) -> Amount {
        let each: Vec<Amount> = self.works.iter().map(|work| Amount::maybe(work.running_ms)).collect();
        let longest = self.whole(&each, true);
        let task = |(work, amount): (&Work, &Amount)| if work.is_task { *amount } else { Amount::default() };
        let tasks: Vec<Amount> = self.works.iter().zip(&each).map(task).collect();
        let Some(places) = self.graph.max_parallel else { return longest };
        let work = self.whole(&tasks, false);
        // What the longest way does without a place is no part of the work.
        let only_tasks = self.works.iter().all(|work| work.is_task || work.running_ms == Some(0));
        let rest = if only_tasks { work.known.saturating_sub(longest.known) } else { work.known };
        let known = longest.known.saturating_add(rest.div_ceil(u64::from(places.max(1))));
        Amount { known, open: longest.open || work.open }
    }

    /// A sum, and each reason why it is none once.
    fn total(&self, each: &[Amount], mut unbounded: Vec<String>) -> Total {
        let amounts = self.amounts(each, false);
        for (at, copies) in self.items.iter().enumerate() {
            let copies = copies.as_ref().filter(|copies| copies.branches.by_data && each[at].is_something());
            unbounded.extend(copies.map(|copies| once_for_each(&self.graph.units[at].reference, copies)));
        }
        for way in self.places.iter().flat_map(|place| &place.ways).filter(|way| !way.arrives) {
            let copies = way.copies.as_ref().filter(|copies| copies.branches.by_data);
            let copies = copies.filter(|_| amounts[way.to].is_something());
            unbounded.extend(copies.map(|copies| once_for_each(&self.graph.nodes[way.to].reference, copies)));
        }
        for cycle in self.cycles.values() {
            let (round, _, multiplies) = self.round(cycle, each, &amounts, false);
            let names = self.names(cycle).join("`, `");
            if multiplies && round.is_something() {
                unbounded.push(format!("branches multiply in the loop of `{names}`"));
            } else if cycle.turns_max.is_none() && round.is_something() {
                let passes = cycle.passes.max(1);
                let passes = if passes == 1 { "1 pass".to_owned() } else { format!("{passes} passes") };
                unbounded.push(format!("the loop of `{names}`: {passes} expected; no bound is written"));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        unbounded.retain(|why| seen.insert(why.clone()));
        Total { known: self.first(&amounts).known, unbounded }
    }

    fn whole(&self, each: &[Amount], abreast: bool) -> Amount {
        self.first(&self.amounts(each, abreast))
    }

    fn first(&self, amounts: &[Amount]) -> Amount {
        match self.graph.is_dag() {
            true => amounts.iter().copied().fold(Amount::default(), Amount::plus),
            false => amounts[self.graph.initial.0 as usize],
        }
    }

    /// Each place and what follows it; of a dag, each unit by itself, or for a time the longest path as one.
    fn amounts(&self, each: &[Amount], abreast: bool) -> Vec<Amount> {
        if self.graph.is_dag() {
            let item = |(at, copies): (usize, &Option<Copies>)| {
                copies.as_ref().map_or(each[at], |copies| copies.of(each[at], abreast))
            };
            let units: Vec<Amount> = self.items.iter().enumerate().map(item).collect();
            if !abreast {
                return units;
            }
            let index = |unit: &Unit| self.graph.node(unit.head).unit.map_or(0, |unit| unit.0 as usize);
            let paths = longest_paths(self.graph, |unit| units[index(unit)].known);
            let open = units.iter().any(|unit| unit.open);
            return vec![Amount { known: paths.into_iter().max().unwrap_or(0), open }];
        }
        let mut amounts = vec![Amount::default(); self.places.len()];
        for (number, members) in self.walk.components.iter().enumerate() {
            match self.cycles.get(&number) {
                None => amounts[members[0]] = self.amount(members[0], each, &amounts, abreast),
                Some(cycle) => {
                    let (round, exit, multiplies) = self.round(cycle, each, &amounts, abreast);
                    let times = cycle.turns_max.map_or(cycle.passes.max(1), |turns| turns.saturating_add(1));
                    let endless = (multiplies || cycle.turns_max.is_none()) && round.is_something();
                    let all = round.times(times).plus(exit);
                    let all = Amount { open: all.open || endless, ..all };
                    members.iter().for_each(|at| amounts[*at] = all);
                }
            }
        }
        amounts
    }

    /// One place that leads nowhere twice, and what follows it.
    fn amount(&self, at: usize, each: &[Amount], amounts: &[Amount], abreast: bool) -> Amount {
        let place = &self.places[at];
        let after = |at: Option<usize>| at.map_or(Amount::default(), |at| amounts[at]);
        let way = |way: &Way, failed: Amount| {
            let inner = if way.arrives { Amount::default() } else { amounts[way.to] };
            let copies = way.copies.as_ref();
            copies.map_or(inner, |copies| copies.of(inner, abreast).plus(after(copies.after).or(failed)))
        };
        let on = |other: On, failed: Amount| {
            place.ways.iter().filter(move |way| way.on != other).map(move |of| way(of, failed))
        };
        let failed = on(On::Success, Amount::default()).reduce(Amount::or).unwrap_or_default();
        let all = if abreast { Amount::or } else { Amount::plus };
        let routed = on(On::Failure, failed);
        let routed = match place.splits {
            true => routed.reduce(all).unwrap_or_default().plus(after(place.after).or(failed)),
            false => routed.reduce(Amount::or).unwrap_or_default().or(failed),
        };
        each[at].plus(routed)
    }

    /// What one round of a loop brings, what follows when it is left, and whether branches go round in it.
    fn round(
        &self,
        cycle: &Cycle,
        each: &[Amount],
        amounts: &[Amount],
        abreast: bool,
    ) -> (Amount, Amount, bool) {
        let is_member = |at: usize| cycle.members.binary_search(&at).is_ok();
        let outside = |at: usize| if is_member(at) { Amount::default() } else { amounts[at] };
        let (mut round, mut exit, mut multiplies) = (Amount::default(), Amount::default(), false);
        for at in &cycle.members {
            let place = &self.places[*at];
            round = round.plus(each[*at]);
            let mut beside = 0;
            for way in place.ways.iter().filter(|way| !way.arrives) {
                match &way.copies {
                    Some(copies) => {
                        multiplies |= is_member(way.to) && copies.branches.at_most > 1;
                        round = round.plus(copies.of(outside(way.to), abreast));
                        exit = exit.or(copies.after.map_or(Amount::default(), outside));
                    }
                    None if place.splits && way.on != On::Failure => {
                        beside += u32::from(is_member(way.to));
                        round = round.plus(outside(way.to));
                    }
                    None => exit = exit.or(outside(way.to)),
                }
            }
            exit = exit.or(place.after.map_or(Amount::default(), outside));
            multiplies |= beside > 1;
        }
        (round, exit, multiplies)
    }

    /// The places of a loop in the order in which they come.
    fn names(&self, cycle: &Cycle) -> Vec<wonder_core::def::Name> {
        let inside = self.walk.order.iter().rev().filter(|at| cycle.members.binary_search(at).is_ok());
        inside.map(|at| self.graph.nodes[*at].reference.clone()).collect()
    }

    pub(super) fn loops(&self) -> Vec<LoopPlan> {
        let mut cycles: Vec<&Cycle> = self.cycles.values().filter(|cycle| !cycle.by_rule).collect();
        cycles.sort_by_key(|cycle| cycle.members[0]);
        let plan = |cycle: &&Cycle| LoopPlan {
            nodes: self.names(cycle),
            turns_max: cycle.turns_max,
            passes_expected: cycle.passes,
        };
        cycles.iter().map(plan).collect()
    }
}

fn once_for_each(node: &str, copies: &Copies) -> String {
    format!("`{node}` runs once for each of `{}`", copies.branches.each_of.as_deref().unwrap_or_default())
}

fn places(graph: &Graph, limits: &Limits) -> Vec<Place> {
    let after = |source: Source| Some(graph.joins.get(&source)?.target.0 as usize);
    // Transitions count for themselves; rules come after them, those of the workflow first.
    let first = graph.transitions.len() as u32;
    let mut next_rule = first + graph.on_error.len() as u32;
    let mut places = Vec::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        let way = |ix: &wonder_core::graph::TransitionIx| {
            let transition = graph.transition(*ix);
            Way {
                to: transition.to.0 as usize,
                on: transition.on,
                copies: transition.spread.as_ref().map(|spread| Copies {
                    branches: branches(graph, spread, limits),
                    at_once: at_once(spread),
                    after: after(Source::Transition(*ix)),
                }),
                arrives: transition.sync.is_some(),
                counter: transition.max_iterations.map(|max| (ix.0, max)),
            }
        };
        let mut ways: Vec<Way> = node.out.iter().map(way).collect();
        ways.extend(jumps(&graph.on_error, first));
        ways.extend(jumps(&node.on_error, next_rule));
        next_rule += node.on_error.len() as u32;
        let after = after(Source::Node(NodeIx(at as u32)));
        places.push(Place { ways, splits: node.fan_out == FanOut::All, after });
    }
    places
}

/// Where rules send a token on when a node fails.
fn jumps(rules: &[Rule], first: u32) -> impl Iterator<Item = Way> + '_ {
    rules.iter().enumerate().filter_map(move |(at, rule)| match &rule.response {
        Response::Goto(to) | Response::LoopWithFeedback { to: Some(to) } => Some(Way {
            to: to.0 as usize,
            on: On::Failure,
            copies: None,
            arrives: false,
            counter: Some((first + at as u32, rule.max)),
        }),
        _ => None,
    })
}
