//! Whether every node can be reached, an end too, and every cycle left.

use std::collections::{HashMap, VecDeque};

use super::Check;
use crate::codes;
use crate::shape::{Arrow, Shape};
use wonder_lang::def::On;
use wonder_lang::problem::Problem;

/// More than this of a cycle is not printed.
const CYCLE_PRINTED_MAX: usize = 12;

/// Where one can go from each of `0..len()`; targets are indices as well.
struct Ways {
    next: Vec<Vec<u32>>,
}

impl Shape<'_> {
    /// It stops fitting by itself, sooner or later.
    pub(super) fn is_bounded(&self, arrow: &Arrow<'_>) -> bool {
        let of_node = self.node_of(arrow.to).def.and_then(|def| def.max_visits.as_ref());
        let of_arrow = arrow.def().and_then(|def| def.max_iterations.as_ref());
        of_node.or(of_arrow).is_some()
    }

    /// Every way from node to node, with one more index at the end for "any node that fails", through which
    /// the workflow's own `on_error` leads. `bounded` tells whether transitions with `max_iterations` count.
    fn ways(&self, bounded: bool) -> Ways {
        let hub = self.slots.len() as u32;
        let mut next: Vec<Vec<u32>> = Vec::with_capacity(self.slots.len() + 1);
        for (at, slot) in self.slots.iter().enumerate() {
            let arrows = self.out[at].iter().map(|ix| &self.arrows[ix.0 as usize]);
            let counted = arrows.filter(|arrow| bounded || !self.is_bounded(arrow));
            let mut to: Vec<u32> = counted.map(|arrow| arrow.to.0).collect();
            to.extend(self.jumps[at].iter().map(|ix| ix.0));
            to.extend(slot.behind.map(|ix| ix.0));
            if !self.jumps_of_all.is_empty() {
                to.push(hub);
            }
            next.push(to);
        }
        next.push(self.jumps_of_all.iter().map(|ix| ix.0).collect());
        Ways { next }
    }

    /// No transition after a success: the token ends here.
    fn is_terminal(&self, at: usize) -> bool {
        self.slots[at].stands_for.is_none()
            && self.out[at].iter().all(|ix| self.arrows[ix.0 as usize].on() == On::Failure)
    }
}

impl Check<'_> {
    /// The checks of a graph.
    pub(super) fn reach(&mut self, shape: &Shape<'_>) {
        let Some(initial) = shape.initial.filter(|_| !shape.is_broken()) else { return };
        let ways = shape.ways(true);
        let reached = ways.reached(initial.0);
        self.unreachable(shape, &ways, &reached);
        let left_forever = self.endless(shape, &reached);
        let ends = (0..shape.slots.len()).any(|at| reached[at] && shape.is_terminal(at));
        if !ends && !left_forever {
            let node = shape.node_of(initial);
            self.report(
                Problem::error(
                    codes::NO_END,
                    node.def.map(|def| def.reference.spot).unwrap_or_default(),
                    format!("from `{}` no node can be reached at which the run would end", node.reference),
                )
                .label("expected a way to a node without transitions")
                .help("let one of the nodes have no `next`, or add a transition to a last node"),
            );
        }
    }

    fn unreachable(&mut self, shape: &Shape<'_>, ways: &Ways, reached: &[bool]) {
        if reached[..shape.slots.len()].iter().all(|reached| *reached) {
            return;
        }
        let before = ways.reversed();
        for (at, slot) in shape.slots.iter().enumerate().filter(|(at, _)| !reached[*at]) {
            let Some(def) = slot.def else { continue };
            let reference = &slot.reference;
            let ways_in = before.next[at].iter().map(|from| *from as usize);
            let others: Vec<&str> = ways_in
                .filter(|from| *from != at && *from < shape.slots.len())
                .map(|from| &*shape.slots[from].reference)
                .take(4)
                .collect();
            let initial = shape.initial.map_or("", |ix| &*shape.node_of(ix).reference);
            let help = if others.is_empty() {
                format!(
                    "nothing leads to it: add `{{to: {reference}}}` to the `next` of another node, or remove it"
                )
            } else {
                format!("only {} leads to it, which cannot be reached either", super::reads::list(others))
            };
            self.report(
                Problem::error(
                    codes::UNREACHABLE,
                    def.reference.spot,
                    format!("node `{reference}` cannot be reached from `{initial}`"),
                )
                .label("expected a transition, a `goto` or a `to` that leads here")
                .help(help),
            );
        }
    }

    /// Cycles that nothing leaves. One that goes through a transition with `max_iterations` ends by itself.
    fn endless(&mut self, shape: &Shape<'_>, reached: &[bool]) -> bool {
        let (all, unbounded) = (shape.ways(true), shape.ways(false));
        let groups = unbounded.components();
        let mut left = vec![false; groups.count];
        let mut cyclic = vec![false; groups.count];
        for (at, to) in all.next.iter().enumerate() {
            let ends = at < shape.slots.len() && shape.is_terminal(at);
            left[groups.of[at]] |= ends || to.iter().any(|to| groups.of[*to as usize] != groups.of[at]);
        }
        for (at, to) in unbounded.next.iter().enumerate() {
            cyclic[groups.of[at]] |= to.iter().any(|to| groups.of[*to as usize] == groups.of[at]);
        }
        let mut found = false;
        for (at, slot) in shape.slots.iter().enumerate() {
            let group = groups.of[at];
            if !reached[at] || left[group] || !cyclic[group] {
                continue;
            }
            (left[group], found) = (true, true);
            let names = |at: u32| shape.slots.get(at as usize).map_or("(on_error)", |slot| &*slot.reference);
            let cycle = unbounded.cycle(at as u32, &groups.of, &names);
            self.report(
                Problem::error(
                    codes::ENDLESS_CYCLE,
                    slot.def.map(|def| def.reference.spot).unwrap_or_default(),
                    format!("once in the cycle {cycle}, a run can never leave it"),
                )
                .label("expected a way out of the cycle")
                .help("add a transition that leads elsewhere, or `max_iterations` to one in the cycle"),
            );
        }
        found
    }

    /// Cycles among the `needs` of a dag.
    pub(super) fn dag_cycles(&mut self, shape: &Shape<'_>) -> bool {
        let mut next = vec![Vec::new(); shape.units.len()];
        for (at, unit) in shape.units.iter().enumerate() {
            unit.needs.iter().for_each(|need| next[need.0 as usize].push(at as u32));
        }
        let ways = Ways { next };
        let groups = ways.components();
        let mut reported = vec![false; groups.count];
        for at in 0..ways.next.len() {
            let group = groups.of[at];
            let cyclic = ways.next[at].iter().any(|to| groups.of[*to as usize] == group);
            if !cyclic || reported[group] {
                continue;
            }
            reported[group] = true;
            let def = shape.units[at].def;
            let names = |at: u32| shape.units[at as usize].def.reference.as_str();
            let cycle = ways.cycle(at as u32, &groups.of, &names);
            let mut inside = shape.units[at].needs.iter().filter(|need| groups.of[need.0 as usize] == group);
            let need = inside.find_map(|unit| def.needs.iter().find(|need| need.as_str() == names(unit.0)));
            self.report(
                Problem::error(
                    codes::DAG_CYCLE,
                    need.map_or(def.reference.spot, |need| need.spot),
                    format!("these nodes wait for each other: {cycle}"),
                )
                .label("expected needs without a cycle")
                .help("remove one of these needs, or write the workflow as a graph with `next`"),
            );
        }
        reported.contains(&true)
    }
}

/// Strongly connected components: which one each index is in, numbered from 0.
struct Components {
    of: Vec<usize>,
    count: usize,
}

impl Ways {
    fn reached(&self, from: u32) -> Vec<bool> {
        let mut reached = vec![false; self.next.len()];
        let mut todo = vec![from];
        reached[from as usize] = true;
        while let Some(at) = todo.pop() {
            for to in &self.next[at as usize] {
                if !std::mem::replace(&mut reached[*to as usize], true) {
                    todo.push(*to);
                }
            }
        }
        reached
    }

    fn reversed(&self) -> Ways {
        let mut next = vec![Vec::new(); self.next.len()];
        for (at, to) in self.next.iter().enumerate() {
            to.iter().for_each(|to| next[*to as usize].push(at as u32));
        }
        Ways { next }
    }

    /// Tarjan's algorithm with a stack of our own: a chain of 100 000 nodes must not be one of calls.
    fn components(&self) -> Components {
        const NEW: u32 = u32::MAX;
        let len = self.next.len();
        let (mut order, mut low) = (vec![NEW; len], vec![0u32; len]);
        let (mut of, mut count, mut clock) = (vec![usize::MAX; len], 0, 0);
        let (mut open, mut calls): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        for start in 0..len as u32 {
            if order[start as usize] != NEW {
                continue;
            }
            calls.push((start, 0));
            while let Some((at, tried)) = calls.pop() {
                let a = at as usize;
                if tried == 0 {
                    (order[a], low[a]) = (clock, clock);
                    clock += 1;
                    open.push(at);
                }
                if let Some(to) = self.next[a].get(tried) {
                    calls.push((at, tried + 1));
                    let t = *to as usize;
                    if order[t] == NEW {
                        calls.push((*to, 0));
                    } else if of[t] == usize::MAX {
                        low[a] = low[a].min(order[t]);
                    }
                    continue;
                }
                if low[a] == order[a] {
                    while let Some(member) = open.pop() {
                        of[member as usize] = count;
                        if member == at {
                            break;
                        }
                    }
                    count += 1;
                }
                if let Some((caller, _)) = calls.last() {
                    let c = *caller as usize;
                    low[c] = low[c].min(low[a]);
                }
            }
        }
        Components { of, count }
    }

    /// The shortest cycle through `start` within its component, printed.
    fn cycle<'n>(&self, start: u32, of: &[usize], name: &dyn Fn(u32) -> &'n str) -> String {
        let mut came_from: HashMap<u32, u32> = HashMap::new();
        let mut todo = VecDeque::from([start]);
        'search: while let Some(at) = todo.pop_front() {
            for to in self.next[at as usize].iter().filter(|to| of[**to as usize] == of[start as usize]) {
                came_from.entry(*to).or_insert_with(|| {
                    todo.push_back(*to);
                    at
                });
                if *to == start {
                    break 'search;
                }
            }
        }
        let mut path = vec![start];
        while let Some(before) = path.last().and_then(|at| came_from.get(at)) {
            path.push(*before);
            if *before == start {
                break;
            }
        }
        path.reverse();
        let mut names: Vec<&str> = path.into_iter().map(name).collect();
        if names.len() > CYCLE_PRINTED_MAX {
            let last = names.pop().unwrap_or_default();
            names.truncate(CYCLE_PRINTED_MAX - 1);
            names.extend(["…", last]);
        }
        names.join(" -> ")
    }
}
