//! A graph: when its nodes are likely to run, which way is the longest, and what it comes to in all.

use std::collections::BTreeSet;

use wonder_core::def::{Name, On};
use wonder_core::graph::{Graph, NodeIx, Source, TransitionIx};
use wonder_core::limits::Limits;

use super::fold::{Abreast, Amount, Fold, Folded, Mode, awaited};
use super::parts::{Sums, Timing, fan_in, once_for_each, total, with_places};
use super::report::{Branches, FanOutPlan, LoopPlan, Total};
use super::ways::{Knot, Walk, Way, Ways};
use super::work::Work;

/// A graph laid out to be folded.
pub(super) struct Layout<'l> {
    graph: &'l Graph,
    works: &'l [Work],
    ways: Ways,
    /// Over what depends on what; and over everything that leads anywhere.
    walk: Walk,
    walk_all: Walk,
}

impl<'l> Layout<'l> {
    pub(super) fn of(graph: &'l Graph, works: &'l [Work], limits: &Limits) -> Layout<'l> {
        let ways = Ways::of(graph, limits);
        let (walk, walk_all) = (ways.walk(), ways.walk_all());
        Layout { graph, works, ways, walk, walk_all }
    }

    fn name(&self, at: usize) -> Name {
        self.graph.nodes[at].reference.clone()
    }

    fn fold(&self, mode: Mode, abreast: bool) -> Fold<'_> {
        let abreast = abreast.then_some(Abreast { places: self.graph.max_parallel });
        Fold { ways: &self.ways, walk: &self.walk, mode, abreast }
    }

    fn each(&self, of: impl Fn(&Work) -> Amount) -> Vec<Amount> {
        self.works.iter().map(of).collect()
    }

    /// For each node its distance from the first.
    pub(super) fn batch_of(&self) -> Vec<u32> {
        self.ways.distances(&self.walk_all).into_iter().map(|distance| distance as u32).collect()
    }

    /// For each node those that lead to it.
    pub(super) fn needs(&self) -> Vec<Vec<Name>> {
        let mut needs = vec![BTreeSet::new(); self.works.len()];
        for transition in &self.graph.transitions {
            needs[transition.to.0 as usize].insert(transition.from.0 as usize);
        }
        needs.into_iter().map(|from| from.into_iter().map(|at| self.name(at)).collect()).collect()
    }

    pub(super) fn sums(&self) -> Sums {
        let (expected, worst) = (self.fold(Mode::Expected, false), self.fold(Mode::Worst, false));
        let cost = self.each(|work| Amount::of(work.cost.amount));
        let expected_usd = self.first(&expected.over(&cost)).known;
        let waiting = self.each(|work| Amount::maybe(work.waiting_ms));
        let count = |of: fn(&Work) -> u64, why: fn(&Work) -> &Vec<String>| {
            let each = self.each(|work| Amount { known: of(work), open: !why(work).is_empty() });
            self.bounded(&worst.over(&each), self.works.iter().flat_map(why))
        };
        let waits: Vec<String> = self.works.iter().filter_map(Work::waits_forever).collect();
        Sums {
            expected_usd: total(expected_usd, self.works.iter().flat_map(|work| &work.open.expected_usd)),
            usd: count(|work| work.worst.usd_micros, |work| &work.open.usd),
            tokens: count(|work| work.worst.tokens, |work| &work.open.tokens),
            calls: count(|work| work.worst.calls, |work| &work.open.calls),
            waiting: self.bounded(&worst.over(&waiting), &waits),
            running: self.running(),
        }
    }

    /// The running time at worst: the longest way, and all the work if places are short.
    fn running(&self) -> Amount {
        let of = |work: &Work| Amount::maybe(work.running_ms);
        let abreast = Fold { abreast: Some(Abreast { places: None }), ..self.fold(Mode::Worst, false) };
        let way = self.first(&abreast.over(&self.each(of)));
        let tasks = self.each(|work| if work.is_task { of(work) } else { Amount::default() });
        let work = self.first(&self.fold(Mode::Worst, false).over(&tasks));
        Amount {
            known: with_places(self.graph, self.works, way.known, work.known),
            open: way.open || work.open,
        }
    }

    fn first(&self, folded: &Folded) -> Amount {
        folded.amounts[self.ways.first]
    }

    fn bounded<'w>(&self, folded: &Folded, why: impl IntoIterator<Item = &'w String>) -> Total {
        let mut sum = total(self.first(folded).known, why);
        for (at, nth) in &folded.by_data {
            let way = &self.ways.places[*at].ways[*nth];
            let each_of = way.spread.as_ref().and_then(|copies| copies.branches.each_of.as_deref());
            sum.unbounded.push(once_for_each(&self.name(way.to), each_of.unwrap_or_default()));
        }
        for knot in self.ways.knots(&self.walk) {
            let Some(first) = knot.first().filter(|first| folded.endless.contains(first)) else { continue };
            let turns = Knot::of(&self.ways, &knot).and_then(|knot| knot.turns_max());
            sum.unbounded.push(match turns {
                Some(turns) => format!(
                    "the loop of `{}` may go round {turns} times, more than is worked out",
                    self.name(*first)
                ),
                None => format!("nothing bounds the loop of `{}`", self.round(&knot)),
            });
        }
        sum
    }

    /// The places of a loop in the order in which they come.
    fn round(&self, knot: &[usize]) -> String {
        let names: Vec<Name> = self.in_order(knot).into_iter().map(|at| self.name(at)).collect();
        names.join("`, `")
    }

    fn in_order(&self, knot: &[usize]) -> Vec<usize> {
        let inside = self.walk.order.iter().rev().filter(|at| knot.binary_search(at).is_ok());
        inside.copied().collect()
    }

    pub(super) fn loops(&self) -> Vec<LoopPlan> {
        let mut loops: Vec<(usize, LoopPlan)> = Vec::new();
        for members in self.ways.knots(&self.walk) {
            let Some(knot) = Knot::of(&self.ways, &members).filter(|knot| !self.is_rule_of_all(knot)) else {
                continue;
            };
            let nodes = self.in_order(&members).into_iter().map(|at| self.name(at)).collect();
            loops.push((members[0], LoopPlan { nodes, turns_max: knot.turns_max() }));
        }
        loops.sort_by_key(|(first, _)| *first);
        loops.into_iter().map(|(_, found)| found).collect()
    }

    /// One node to which the workflow's `on_error` leads from everywhere, and so from itself: it counts, but
    /// nobody would call it a loop.
    fn is_rule_of_all(&self, knot: &Knot<'_>) -> bool {
        let first = self.graph.transitions.len();
        let of_all = first..first + self.graph.on_error.len();
        let [only] = knot.members else { return false };
        let mut links = self.ways.places[*only].links().filter(|(to, _)| to == only);
        links.all(|(_, counter)| counter.is_some_and(|counter| of_all.contains(&(counter.id as usize))))
    }

    pub(super) fn fan_outs(&self) -> Vec<FanOutPlan> {
        let mut found = Vec::new();
        for (at, place) in self.ways.places.iter().enumerate() {
            let node = &self.graph.nodes[at];
            if place.splits {
                let ways: Vec<&Way> = place.ways.iter().filter(|way| way.on != On::Failure).collect();
                let free = node.out.iter().all(|ix| self.graph.transition(*ix).condition.is_none());
                let at_most = ways.len() as u64;
                let branches =
                    Branches { exact: free.then_some(at_most), at_most, by_data: false, each_of: None };
                found.push(FanOutPlan {
                    node: self.name(at),
                    to: ways.iter().map(|way| self.name(way.to)).collect(),
                    fan_in: fan_in(self.graph, Source::Node(NodeIx(at as u32)), &branches),
                    branches,
                    max_parallel: None,
                });
            }
            for (way, ix) in place.ways.iter().zip(&node.out) {
                found.extend(self.copies(at, way, *ix));
            }
        }
        found
    }

    fn copies(&self, at: usize, way: &Way, ix: TransitionIx) -> Option<FanOutPlan> {
        let copies = way.spread.as_ref()?;
        Some(FanOutPlan {
            node: self.name(at),
            to: vec![self.name(way.to)],
            branches: copies.branches.clone(),
            max_parallel: copies.max_parallel,
            fan_in: fan_in(self.graph, Source::Transition(ix), &copies.branches),
        })
    }

    /// When each node is likely to run, by the longest way to it.
    pub(super) fn timing(&self) -> Timing {
        let fold = self.fold(Mode::Expected, true);
        let each = self.each(Work::expected);
        let folded = fold.over(&each);
        let mut clock = Clock::new(self.works.len());
        for at in self.walk.order.iter().rev() {
            clock.place(&fold, *at, (&each, &folded.amounts));
        }
        let tasks = self.each(|work| Amount::of(if work.is_task { work.duration.amount } else { 0 }));
        let work = self.first(&self.fold(Mode::Expected, false).over(&tasks)).known;
        let shared = self.graph.max_parallel.map_or(0, |places| work.div_ceil(u64::from(places.max(1))));
        let whole = self.first(&folded).known;
        let free = Fold { abreast: Some(Abreast { places: None }), ..fold };
        let unhindered = self.first(&free.over(&each)).known;
        Timing {
            path: self.path(&fold, &folded.amounts),
            path_ms: whole,
            expected_ms: whole.max(shared),
            lower_bound_ms: unhindered.max(shared),
            starts_ms: clock.starts.into_iter().map(Option::unwrap_or_default).collect(),
            ends_ms: clock.ends,
        }
    }

    /// The longest way, each branch that a fan-in waits for, and on from there.
    fn path(&self, fold: &Fold<'_>, amounts: &[Amount]) -> Vec<usize> {
        let (mut path, mut seen, mut next) = (Vec::new(), BTreeSet::new(), vec![self.ways.first]);
        while let Some(at) = next.pop() {
            if !seen.insert(at) {
                continue;
            }
            path.push(at);
            let place = &self.ways.places[at];
            let get = fold.open_ways(at, amounts);
            let ways = place.ways.iter().filter(|way| way.on != On::Failure);
            let ways: Vec<(Amount, &Way)> =
                ways.filter_map(|way| Some((fold.way(way, Amount::default(), &get)?, way))).collect();
            let strategy = place.after.filter(|_| place.splits).map(|after| after.strategy);
            let picked = awaited(ways, strategy).map(|(_, way)| way);
            let afters = place.after.into_iter().chain(picked.and_then(|way| way.spread.as_ref()?.after));
            next.extend(afters.map(|after| after.node).filter(|to| get(*to, None).is_some()));
            next.extend(picked.filter(|way| !way.arrives).map(|way| way.to));
        }
        path
    }
}

/// When nodes start and end.
struct Clock {
    starts: Vec<Option<u64>>,
    /// For what only a failure leads to.
    late: Vec<Option<u64>>,
    ends: Vec<u64>,
    waves: Vec<u64>,
}

impl Clock {
    fn new(len: usize) -> Clock {
        Clock { starts: vec![None; len], late: vec![None; len], ends: vec![0; len], waves: vec![1; len] }
    }

    fn place(&mut self, fold: &Fold<'_>, at: usize, (each, amounts): (&[Amount], &[Amount])) {
        let place = &fold.ways.places[at];
        let start = *self.starts[at].get_or_insert(self.late[at].unwrap_or(0));
        let end = start.saturating_add(each[at].known);
        self.ends[at] = start.saturating_add(each[at].known.saturating_mul(self.waves[at]));
        let get = fold.open_ways(at, amounts);
        let later = |time: &mut Option<u64>, ms: u64| *time = Some(time.unwrap_or(0).max(ms));
        let mut longest = Vec::new();
        for way in place.ways.iter().filter(|way| get(way.to, None).is_some()) {
            let Some(inner) = fold.branch(way, &get) else { continue };
            let times = if way.on == On::Failure { &mut self.late } else { &mut self.starts };
            if !way.arrives {
                later(&mut times[way.to], end);
            }
            if let Some(copies) = &way.spread {
                let whole = fold.copied(inner, copies);
                if let Some(abreast) = fold.abreast {
                    self.waves[way.to] = fold.waves(copies.branches.exact.unwrap_or(1), copies, abreast);
                }
                if let Some(after) = copies.after.filter(|after| get(after.node, None).is_some()) {
                    later(&mut times[after.node], end.saturating_add(whole.known));
                }
            }
            if way.on != On::Failure {
                longest.extend(fold.way(way, Amount::default(), &get).map(|all| (all, ())));
            }
        }
        if let Some(after) = place.after.filter(|after| get(after.node, None).is_some()) {
            let branches = awaited(longest, Some(after.strategy)).map_or(0, |(branch, ())| branch.known);
            later(&mut self.starts[after.node], end.saturating_add(branches));
        }
        for (to, _) in place.jumps.iter().filter(|(to, _)| get(*to, None).is_some()) {
            later(&mut self.late[*to], end);
        }
    }
}
