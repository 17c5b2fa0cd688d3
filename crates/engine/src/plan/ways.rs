//! Where tokens can go in a graph: ways out of each node with the groups they make, cycles, and distances.
//! Plain graph theory over indices; costs and times are folded over it elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::def::{FanOut, Name, On, SchemaDef, Strategy};
use wonder_core::expr::{Expr, Scope};
use wonder_core::graph::{Graph, Response, Rule, Source, Spread, Transition, TransitionIx};
use wonder_core::limits::Limits;
use wonder_core::value::Value;

use super::report::Branches;

/// Bounds how often one lineage goes this way; ways with the same `id` share the count.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Counter {
    pub(super) id: u32,
    pub(super) max: u32,
}

/// Where a fan-in goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    pub(super) node: usize,
    pub(super) strategy: Strategy,
}

/// One transition.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) to: usize,
    pub(super) on: On,
    /// Its own fan-out.
    pub(super) spread: Option<Copies>,
    /// It ends the branch at a fan-in; what follows belongs to whoever fanned out.
    pub(super) arrives: bool,
    pub(super) counter: Option<Counter>,
}

#[derive(Debug)]
pub(super) struct Copies {
    pub(super) branches: Branches,
    pub(super) max_parallel: Option<u32>,
    pub(super) after: Option<After>,
}

/// A node and everything that may follow it.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) ways: Vec<Way>,
    /// Takes all ways that fit, as one group.
    pub(super) splits: bool,
    pub(super) after: Option<After>,
    /// By `on_error`.
    pub(super) jumps: Vec<(usize, Counter)>,
}

impl Place {
    /// Every place that what this one brings depends on, and what bounds going there.
    pub(super) fn links(&self) -> impl Iterator<Item = (usize, Option<Counter>)> + '_ {
        let ways = self.ways.iter().filter(|way| !way.arrives).map(|way| (way.to, way.counter));
        let afters = self.ways.iter().filter_map(|way| way.spread.as_ref()?.after).chain(self.after);
        let jumps = self.jumps.iter().map(|(to, counter)| (*to, Some(*counter)));
        ways.chain(afters.map(|after| (after.node, None))).chain(jumps)
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) places: Vec<Place>,
    pub(super) first: usize,
}

impl Ways {
    pub(super) fn of(graph: &Graph, limits: &Limits) -> Ways {
        let mut ways =
            Ways { places: Vec::with_capacity(graph.nodes.len()), first: graph.initial.0 as usize };
        let after = |source: Source| {
            let join = graph.joins.get(&source)?;
            Some(After { node: join.target.0 as usize, strategy: join.strategy })
        };
        // Transitions count for themselves; rules come after them, those of the workflow first.
        let first_rule = graph.transitions.len() as u32;
        let mut next_rule = first_rule + graph.on_error.len() as u32;
        for (at, node) in graph.nodes.iter().enumerate() {
            let way = |ix: &TransitionIx| {
                let transition = graph.transition(*ix);
                let spread = transition.spread.as_ref().map(|spread| Copies {
                    branches: branches(graph, spread, limits),
                    max_parallel: max_parallel(spread),
                    after: after(Source::Transition(*ix)),
                });
                way(transition, *ix, spread)
            };
            let mut jumps = jumps(&graph.on_error, first_rule);
            jumps.extend(self::jumps(&node.on_error, next_rule));
            next_rule += node.on_error.len() as u32;
            ways.places.push(Place {
                ways: node.out.iter().map(way).collect(),
                splits: node.fan_out == FanOut::All,
                after: after(Source::Node(wonder_core::graph::NodeIx(at as u32))),
                jumps,
            });
        }
        ways
    }

    /// The ways of a loop are marked by where they close it, as a first visit finds them.
    pub(super) fn walk(&self) -> Walk {
        Walk::of(self.places.len(), self.first, &|at| self.places[at].links().map(|(to, _)| to).collect())
    }

    /// The same over everything that leads anywhere, fan-ins included.
    pub(super) fn walk_all(&self) -> Walk {
        Walk::of(self.places.len(), self.first, &|at| self.next_of(at))
    }

    /// Where one can get to from here, the target of a fan-in included.
    pub(super) fn next_of(&self, at: usize) -> Vec<usize> {
        let place = &self.places[at];
        place.links().map(|(to, _)| to).chain(place.ways.iter().map(|way| way.to)).collect()
    }

    /// The longest distance from the first place, loops cut.
    pub(super) fn distances(&self, walk: &Walk) -> Vec<usize> {
        let mut distances = vec![0; self.places.len()];
        for at in walk.order.iter().rev() {
            for to in self.next_of(*at).into_iter().filter(|to| !walk.closes.contains(&(*at, *to))) {
                distances[to] = distances[to].max(distances[*at] + 1);
            }
        }
        distances
    }

    /// Places that can be reached from each other, so that whatever follows a knot comes before it.
    pub(super) fn knots(&self, walk: &Walk) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.places.len()];
        for (at, place) in self.places.iter().enumerate() {
            place.links().for_each(|(to, _)| before[to].push(at));
        }
        let mut knots = Vec::new();
        let mut seen = vec![false; self.places.len()];
        for start in walk.order.iter().rev() {
            if std::mem::replace(&mut seen[*start], true) {
                continue;
            }
            let (mut knot, mut at) = (vec![*start], 0);
            while at < knot.len() {
                for from in &before[knot[at]] {
                    if !std::mem::replace(&mut seen[*from], true) {
                        knot.push(*from);
                    }
                }
                at += 1;
            }
            knot.sort_unstable();
            knots.push(knot);
        }
        knots.reverse();
        knots
    }
}

fn way(transition: &Transition, ix: TransitionIx, spread: Option<Copies>) -> Way {
    Way {
        to: transition.to.0 as usize,
        on: transition.on,
        spread,
        arrives: transition.sync.is_some(),
        counter: transition.max_iterations.map(|max| Counter { id: ix.0, max }),
    }
}

fn jumps(rules: &[Rule], first: u32) -> Vec<(usize, Counter)> {
    let jump = |(at, rule): (usize, &Rule)| match &rule.response {
        Response::Goto(to) | Response::LoopWithFeedback { to: Some(to) } => {
            Some((to.0 as usize, Counter { id: first + at as u32, max: rule.max }))
        }
        _ => None,
    };
    rules.iter().enumerate().filter_map(jump).collect()
}

fn max_parallel(spread: &Spread) -> Option<u32> {
    match spread {
        Spread::Count(_) => None,
        Spread::Each { max_parallel, .. } => *max_parallel,
    }
}

/// How many branches a fan-out makes: as written, as many as a literal list has, or by data, where a schema
/// may still bound it.
pub(super) fn branches(graph: &Graph, spread: &Spread, limits: &Limits) -> Branches {
    let items = match spread {
        Spread::Count(count) => {
            let count = u64::from(*count);
            return Branches { exact: Some(count), at_most: count, by_data: false, each_of: None };
        }
        Spread::Each { items, .. } => items,
    };
    let each_of = Some(items.text().to_owned());
    if let Some(count) = literal_len(items) {
        return Branches { exact: Some(count), at_most: count, by_data: false, each_of };
    }
    let limit = u64::from(limits.branches_max);
    let written = items_max(graph, items);
    let at_most = written.unwrap_or(limit).min(limit);
    Branches { exact: None, at_most, by_data: written.is_none(), each_of }
}

/// The length of a list that reads nothing.
fn literal_len(items: &Expr) -> Option<u64> {
    struct Nothing;
    impl Scope for Nothing {
        fn read(&self, _root: &str, _path: &[Name]) -> Option<Value> {
            None
        }
    }
    if !items.reads().is_empty() {
        return None;
    }
    Some(items.eval(&Nothing).ok()?.as_list()?.len() as u64)
}

/// `maxItems` of what is read, where a schema of the workflow says so.
fn items_max(graph: &Graph, items: &Expr) -> Option<u64> {
    let read = items.as_path()?;
    let workflow = &graph.bundle.workflow;
    let schema: &SchemaDef = match &*read.root {
        "input" => workflow.input_schema.as_ref()?,
        "state" => workflow.context_schema.as_ref()?,
        _ => return None,
    };
    let mut at = &schema.doc;
    for key in &read.path {
        at = at.get("properties")?.get(key)?;
    }
    u64::try_from(at.get("maxItems")?.as_i64()?).ok()
}

/// A visit of every place from a first one, deep before wide.
#[derive(Debug)]
pub(super) struct Walk {
    /// Places in the order they were left: what follows a place comes before it, loops cut.
    pub(super) order: Vec<usize>,
    /// Links that lead back to where the walk still was.
    pub(super) closes: BTreeSet<(usize, usize)>,
}

impl Walk {
    /// With a stack of its own: a chain of 100 000 places must not be one of calls.
    fn of(len: usize, first: usize, next: &dyn Fn(usize) -> Vec<usize>) -> Walk {
        let mut walk = Walk { order: Vec::with_capacity(len), closes: BTreeSet::new() };
        let (mut seen, mut open) = (vec![false; len], vec![false; len]);
        for start in std::iter::once(first).chain(0..len) {
            if seen[start] {
                continue;
            }
            (seen[start], open[start]) = (true, true);
            let mut stack = vec![(start, next(start).into_iter())];
            while let Some((at, left)) = stack.last_mut() {
                match left.next() {
                    Some(to) if open[to] => _ = walk.closes.insert((*at, to)),
                    Some(to) if seen[to] => {}
                    Some(to) => {
                        (seen[to], open[to]) = (true, true);
                        stack.push((to, next(to).into_iter()));
                    }
                    None => {
                        open[*at] = false;
                        walk.order.push(*at);
                        stack.pop();
                    }
                }
            }
        }
        walk
    }
}

/// A loop: places that lead to each other.
#[derive(Debug)]
pub(super) struct Knot<'w> {
    pub(super) members: &'w [usize],
    /// What bounds going round, each count once.
    pub(super) counters: BTreeMap<u32, u32>,
    /// Members so that what follows one comes before it, ways that are counted cut; none if a cycle is left.
    pub(super) order: Option<Vec<usize>>,
}

impl<'w> Knot<'w> {
    /// None if it is one place that does not lead to itself.
    pub(super) fn of(ways: &Ways, members: &'w [usize]) -> Option<Knot<'w>> {
        let is_member = |at: &usize| members.binary_search(at).is_ok();
        let mut counters = BTreeMap::new();
        let mut waits_for = BTreeMap::new();
        let mut before: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in members {
            let inside = ways.places[*at].links().filter(|(to, _)| is_member(to));
            let mut free = 0;
            for (to, counter) in inside {
                match counter {
                    Some(counter) => _ = counters.insert(counter.id, counter.max),
                    None => {
                        free += 1;
                        before.entry(to).or_default().push(*at);
                    }
                }
            }
            waits_for.insert(*at, free);
        }
        if members.len() == 1 && counters.is_empty() && before.is_empty() {
            return None;
        }
        let mut order: Vec<usize> = members.iter().copied().filter(|at| waits_for[at] == 0).collect();
        let mut done = 0;
        while done < order.len() {
            for from in before.get(&order[done]).into_iter().flatten() {
                let left = waits_for.get_mut(from).expect("a member");
                *left -= 1;
                if *left == 0 {
                    order.push(*from);
                }
            }
            done += 1;
        }
        let order = (order.len() == members.len()).then_some(order);
        Some(Knot { members, counters, order })
    }

    /// How often a lineage can go back in it; none: nothing bounds it.
    pub(super) fn turns_max(&self) -> Option<u64> {
        self.order.as_ref()?;
        Some(self.counters.values().map(|max| u64::from(*max)).sum())
    }
}
