//! What a run can come to at worst: the dearest way where a token takes one of several, all of them where it
//! takes all, as often as fan-outs and `max_iterations` allow. Conditions are not asked.
//!
//! A fan-in belongs to whoever fanned out: a branch that arrives has come to its end, and what follows is
//! counted once for each firing. A loop without a written bound counts as often as the plan expects it to go
//! round, and says so.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::def::{FanOut, Name, On};
use wonder_core::graph::{Bound, Graph, NodeIx, Response, Rule, Source, Transition, Unit};
use wonder_core::limits::Limits;
use wonder_core::schedule::longest_paths;

use super::fan_outs::{at_once, branches, spread_of};
use super::play::Played;
use super::report::{Branches, CostPlan, DurationPlan, LoopPlan, Total};
use super::walk::Walk;
use super::work::Work;

/// A number of one place or of all that follows it; `open` if it has no bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Amount {
    known: u64,
    open: bool,
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
    /// How often a lineage can go back in it; none: nothing written bounds it.
    turns_max: Option<u64>,
    passes: u64,
    /// One node to which the workflow's `on_error` leads from everywhere, and so from itself: it counts, but
    /// nobody would call it a loop.
    by_rule: bool,
}

/// A workflow laid out to be counted: the nodes of a graph, the units of a dag one after the other.
pub(super) struct Bounds<'b> {
    graph: &'b Graph,
    works: &'b [Work],
    /// Of a dag, the items of each unit.
    items: Vec<Option<Copies>>,
    places: Vec<Place>,
    first: usize,
    walk: Walk,
    /// By the number of their component.
    cycles: BTreeMap<usize, Cycle>,
}

impl<'b> Bounds<'b> {
    pub(super) fn of(graph: &'b Graph, works: &'b [Work], played: &Played, limits: &Limits) -> Bounds<'b> {
        let items = graph.units.iter().map(|unit| {
            let (_, spread) = spread_of(graph, graph.node(unit.head))?;
            Some(Copies { branches: branches(graph, spread, limits), at_once: at_once(spread), after: None })
        });
        let places = if graph.is_dag() { in_a_row(works.len()) } else { places(graph, limits) };
        let first = if graph.is_dag() { 0 } else { graph.initial.0 as usize };
        let next = |counted: bool| -> Vec<Vec<usize>> {
            let of = |place: &Place| {
                let links = place.links().filter(|(_, counter)| counted || counter.is_none());
                links.map(|(to, _)| to).collect()
            };
            places.iter().map(of).collect()
        };
        let (walk, uncounted) = (Walk::of(first, &next(true)), Walk::of(first, &next(false)));
        let cycles = BTreeMap::new();
        let mut bounds = Bounds { graph, works, items: items.collect(), places, first, walk, cycles };
        for (number, members) in bounds.walk.components.iter().enumerate() {
            let cycle = bounds.cycle(members, &uncounted, played);
            bounds.cycles.extend(cycle.map(|cycle| (number, cycle)));
        }
        bounds
    }

    /// None if it is one place that does not lead to itself.
    fn cycle(&self, members: &[usize], uncounted: &Walk, played: &Played) -> Option<Cycle> {
        let inside: Vec<(usize, usize, Option<Counter>)> = members
            .iter()
            .flat_map(|at| self.places[*at].links().map(|(to, counter)| (*at, to, counter)))
            .filter(|(_, to, _)| members.binary_search(to).is_ok())
            .collect();
        let counters: BTreeMap<u32, u32> = inside.iter().filter_map(|(_, _, counter)| *counter).collect();
        let bounded = !uncounted.back.iter().any(|(from, _)| members.binary_search(from).is_ok());
        let back = inside.iter().filter(|(from, to, _)| self.walk.back.contains(&(*from, *to)));
        let closers: BTreeSet<usize> = back.map(|(from, ..)| *from).collect();
        let first_rule = self.graph.transitions.len();
        let is_of_all =
            |id: &u32| (first_rule..first_rule + self.graph.on_error.len()).contains(&(*id as usize));
        (!inside.is_empty()).then(|| Cycle {
            turns_max: bounded.then(|| counters.values().map(|max| u64::from(*max)).sum()),
            passes: closers.iter().map(|at| played.of_row(*at).count() as u64).sum(),
            by_rule: bounded && members.len() == 1 && counters.keys().all(is_of_all),
        })
    }

    pub(super) fn cost(&self, expected_usd_micros: Total, cannot_start: Vec<Name>) -> CostPlan {
        let count = |of: fn(&Work) -> u64, why: fn(&Work) -> &Vec<String>| {
            let one = |work: &Work| Amount { known: of(work), open: !why(work).is_empty() };
            let each: Vec<Amount> = self.works.iter().map(one).collect();
            self.total(&each, self.works.iter().flat_map(why).cloned().collect())
        };
        CostPlan {
            expected_usd_micros,
            worst_usd_micros: count(|work| work.worst.usd_micros, |work| &work.open.usd),
            worst_tokens: count(|work| work.worst.tokens, |work| &work.open.tokens),
            worst_calls: count(|work| work.worst.calls, |work| &work.open.calls),
            cannot_start,
        }
    }

    /// The running time ends at the workflow's timeout at the latest; its waits come on top, for its clock
    /// stands still while it only waits.
    pub(super) fn duration(&self, expected_ms: u64, lower_bound_ms: u64) -> DurationPlan {
        let each: Vec<Amount> = self.works.iter().map(|work| Amount::maybe(work.waiting_ms)).collect();
        let waiting = self.total(&each, self.works.iter().filter_map(Work::waits_forever).collect());
        let (running, timeout_ms) = (self.running(), self.graph.timeout_ms);
        let by_timeout = running.open || running.known > timeout_ms;
        let known = if by_timeout { timeout_ms } else { running.known }.saturating_add(waiting.known);
        let (worst, on_timeout) = (Total { known, ..waiting }, self.graph.on_timeout);
        DurationPlan { expected_ms, lower_bound_ms, worst, timeout_ms, on_timeout, by_timeout }
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
        let units = self
            .items
            .iter()
            .enumerate()
            .map(|(at, copies)| (&self.graph.units[at].reference, copies, each[at]));
        let ways = self.places.iter().flat_map(|place| &place.ways).filter(|way| !way.arrives);
        let ways = ways.filter(|way| way.copies.is_some());
        let ways = ways.map(|way| (&self.graph.nodes[way.to].reference, &way.copies, amounts[way.to]));
        for (node, copies, inner) in units.chain(ways) {
            let copies = copies.as_ref().filter(|copies| copies.branches.by_data && inner.is_something());
            let each_of = copies.map(|copies| copies.branches.each_of.as_deref().unwrap_or_default());
            unbounded.extend(each_of.map(|list| format!("`{node}` runs once for each of `{list}`")));
        }
        for (number, cycle) in &self.cycles {
            let (round, _, multiplies) = self.round(*number, each, &amounts, false);
            let (names, passes) = (self.names(*number).join("`, `"), cycle.passes.max(1));
            if multiplies && round.is_something() {
                unbounded.push(format!("branches multiply in the loop of `{names}`"));
            } else if cycle.turns_max.is_none() && round.is_something() {
                let passes = if passes == 1 { "1 pass".to_owned() } else { format!("{passes} passes") };
                unbounded.push(format!("the loop of `{names}`: {passes} expected; no bound is written"));
            }
        }
        let mut seen = BTreeSet::new();
        unbounded.retain(|why| seen.insert(why.clone()));
        Total { known: amounts[self.first].known, unbounded }
    }

    /// All of it: a sum, or of a time the longest way.
    fn whole(&self, each: &[Amount], abreast: bool) -> Amount {
        if !(abreast && self.graph.is_dag()) {
            return self.amounts(each, abreast)[self.first];
        }
        let units = self.with_items(each, true);
        let index = |unit: &Unit| self.graph.node(unit.head).unit.map_or(0, |unit| unit.0 as usize);
        let paths = longest_paths(self.graph, |unit| units[index(unit)].known);
        let known = paths.into_iter().max().unwrap_or(0);
        Amount { known, open: units.iter().any(|unit| unit.open) }
    }

    fn with_items(&self, each: &[Amount], abreast: bool) -> Vec<Amount> {
        let items = |at: usize| self.items.get(at).and_then(Option::as_ref);
        let of = |(at, one): (usize, &Amount)| items(at).map_or(*one, |copies| copies.of(*one, abreast));
        each.iter().enumerate().map(of).collect()
    }

    /// Each place and what follows it.
    fn amounts(&self, each: &[Amount], abreast: bool) -> Vec<Amount> {
        let each = self.with_items(each, abreast);
        let mut amounts = vec![Amount::default(); self.places.len()];
        for (number, members) in self.walk.components.iter().enumerate() {
            let (round, exit, multiplies) = self.round(number, &each, &amounts, abreast);
            let turns = self.cycles.get(&number).map_or(Some(0), |cycle| cycle.turns_max);
            let passes = self.cycles.get(&number).map_or(1, |cycle| cycle.passes.max(1));
            let all = round.times(turns.map_or(passes, |turns| turns.saturating_add(1))).plus(exit);
            let endless = (multiplies || turns.is_none()) && round.is_something();
            members.iter().for_each(|at| amounts[*at] = Amount { open: all.open || endless, ..all });
        }
        amounts
    }

    /// What going once through places that lead to each other brings, what follows when they are left, and
    /// whether branches go round in them.
    fn round(
        &self,
        number: usize,
        each: &[Amount],
        amounts: &[Amount],
        abreast: bool,
    ) -> (Amount, Amount, bool) {
        let members = &self.walk.components[number];
        let is_member = |at: usize| members.binary_search(&at).is_ok();
        let outside = |at: usize| if is_member(at) { Amount::default() } else { amounts[at] };
        let (mut round, mut exit, mut multiplies) = (Amount::default(), Amount::default(), false);
        for at in members {
            let place = &self.places[*at];
            let (mut branches, mut beside) = (Amount::default(), 0);
            for way in &place.ways {
                let inner = if way.arrives { Amount::default() } else { outside(way.to) };
                let is_branch = place.splits && way.on != On::Failure;
                let goes_round = !way.arrives && is_member(way.to);
                let inner = match &way.copies {
                    None if is_branch => inner,
                    None => {
                        exit = exit.or(inner);
                        continue;
                    }
                    Some(copies) => {
                        multiplies |= goes_round && copies.branches.at_most > 1;
                        exit = exit.or(copies.after.map_or(Amount::default(), outside));
                        copies.of(inner, abreast)
                    }
                };
                beside += u32::from(goes_round);
                branches = if is_branch && !abreast { branches.plus(inner) } else { branches.or(inner) };
            }
            round = round.plus(each[*at]).plus(branches);
            exit = exit.or(place.after.map_or(Amount::default(), outside));
            multiplies |= beside > 1;
        }
        (round, exit, multiplies)
    }

    /// The places of a loop in the order in which they come.
    fn names(&self, number: usize) -> Vec<Name> {
        let inside = self.walk.order.iter().rev().filter(|at| self.walk.component_of[**at] == number);
        inside.map(|at| self.graph.nodes[*at].reference.clone()).collect()
    }

    pub(super) fn loops(&self) -> Vec<LoopPlan> {
        let mut cycles: Vec<(&usize, &Cycle)> =
            self.cycles.iter().filter(|(_, cycle)| !cycle.by_rule).collect();
        cycles.sort_by_key(|(number, _)| self.walk.components[**number][0]);
        let plan = |(number, cycle): (&usize, &Cycle)| LoopPlan {
            nodes: self.names(*number),
            turns_max: cycle.turns_max,
            passes_expected: cycle.passes,
        };
        cycles.into_iter().map(plan).collect()
    }
}

/// Each leads to the next.
fn in_a_row(len: usize) -> Vec<Place> {
    let way = |to| Way { to, on: On::Success, copies: None, arrives: false, counter: None };
    let place = |at| Place {
        ways: (at + 1 < len).then(|| way(at + 1)).into_iter().collect(),
        splits: false,
        after: None,
    };
    (0..len).map(place).collect()
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
                counter: bound(graph, transition).map(|max| (ix.0, max)),
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

/// How often one lineage can take a transition, where that is written.
fn bound(graph: &Graph, transition: &Transition) -> Option<u32> {
    let of_node = graph.node(transition.to).max_visits.as_ref();
    let bounds = transition.max_iterations.as_ref().into_iter().chain(of_node);
    bounds.filter_map(Bound::count).min()
}
