//! A dag: its batches, the order in which units go when places are short, and when each is likely to run,
//! by playing it through with the estimates. Everything completes in this play; nothing is skipped.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound;

use wonder_core::def::{Estimate, Name, Strategy};
use wonder_core::graph::{Graph, Unit};
use wonder_core::schedule::{self, batches};

/// A unit as the play sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) duration_ms: u64,
    /// It takes a place.
    pub(super) is_task: bool,
    /// As long as a person or an event takes: whoever wants only some of its needs does not count on it.
    pub(super) waits: bool,
    /// Of its `foreach`, or one.
    pub(super) items: u64,
    pub(super) at_once: Option<u32>,
}

/// When each unit starts and ends, and whose end let it start.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) starts_ms: Vec<u64>,
    pub(super) ends_ms: Vec<u64>,
    let_go_by: Vec<Option<usize>>,
}

/// Units by Kahn's batches: for each unit its batch, from 0.
pub(super) fn batch_of(graph: &Graph) -> Vec<u32> {
    let mut of = vec![0; graph.units.len()];
    for (number, batch) in batches(graph).iter().enumerate() {
        batch.iter().for_each(|unit| of[unit.0 as usize] = number as u32);
    }
    of
}

/// The core's ready order: longest estimated path to a sink, most units unblocked, cheapest, as written.
pub(super) fn ready_order(graph: &Graph, learnt: &BTreeMap<Name, Estimate>) -> Vec<usize> {
    schedule::ready_order(graph, learnt).into_iter().map(|unit| unit.0 as usize).collect()
}

impl Play {
    /// Plays the dag with so many places; none: as many as are wanted.
    pub(super) fn of(graph: &Graph, jobs: &[Job], order: &[usize], places: Option<u32>) -> Play {
        let len = graph.units.len();
        let mut rank = vec![0; len];
        order.iter().enumerate().for_each(|(at, unit)| rank[*unit] = at);
        let mut stage = Stage {
            graph,
            jobs,
            rank,
            free: places.map_or(u64::MAX, u64::from),
            now: 0,
            ready: BTreeSet::new(),
            out: BinaryHeap::new(),
            left: jobs.iter().map(|job| (job.items, 0)).collect(),
            needs_done: vec![0; len],
            play: Play { starts_ms: vec![0; len], ends_ms: vec![0; len], let_go_by: vec![None; len] },
        };
        let roots = (0..len).rev().filter(|at| graph.units[*at].needs.is_empty());
        stage.begin(roots.map(|at| (at, None)).collect());
        stage.dispatch();
        while let Some(Reverse((at_ms, _, unit))) = stage.out.pop() {
            stage.now = at_ms;
            stage.came_back(unit);
            // Whatever else ends at this moment is seen before anything goes out again.
            if stage.out.peek().is_none_or(|Reverse((next_ms, ..))| *next_ms > at_ms) {
                stage.dispatch();
            }
        }
        stage.play
    }

    pub(super) fn makespan_ms(&self) -> u64 {
        self.ends_ms.iter().copied().max().unwrap_or(0)
    }

    /// From a first unit to the one that ends last, each let go by the one before it.
    pub(super) fn path(&self, graph: &Graph) -> Vec<usize> {
        let is_sink = |at: &usize| graph.units[*at].dependents.is_empty();
        let last = (0..self.ends_ms.len()).max_by_key(|at| (self.ends_ms[*at], is_sink(at), Reverse(*at)));
        let mut path: Vec<usize> = std::iter::successors(last, |at| self.let_go_by[*at]).collect();
        path.reverse();
        path
    }
}

struct Stage<'s> {
    graph: &'s Graph,
    jobs: &'s [Job],
    rank: Vec<usize>,
    free: u64,
    now: u64,
    /// Units with something to send out, by rank.
    ready: BTreeSet<(usize, usize)>,
    /// What is out: when it ends, its rank, its unit.
    out: BinaryHeap<Reverse<(u64, usize, usize)>>,
    /// Of each unit: items not sent out yet, items out.
    left: Vec<(u64, u64)>,
    needs_done: Vec<usize>,
    play: Play,
}

impl Stage<'_> {
    /// Units that may start, with whose end let them. Those without items end as they begin.
    fn begin(&mut self, mut units: Vec<(usize, Option<usize>)>) {
        while let Some((unit, let_go_by)) = units.pop() {
            self.play.starts_ms[unit] = self.now;
            self.play.let_go_by[unit] = let_go_by;
            match self.jobs[unit] {
                Job { items: 0, .. } => units.extend(self.end(unit)),
                Job { is_task: true, .. } => _ = self.ready.insert((self.rank[unit], unit)),
                Job { is_task: false, .. } => self.send((self.rank[unit], unit)),
            }
        }
    }

    /// Sends out tasks as long as there are places.
    fn dispatch(&mut self) {
        let mut next = self.ready.first().copied();
        while let Some(entry) = next.filter(|_| self.free > 0) {
            self.send(entry);
            next = self.ready.range((Bound::Excluded(entry), Bound::Unbounded)).next().copied();
        }
    }

    fn send(&mut self, (rank, unit): (usize, usize)) {
        let job = self.jobs[unit];
        while self.left[unit].0 > 0 {
            let (waiting, out) = self.left[unit];
            let full = job.at_once.is_some_and(|max| out >= u64::from(max));
            if full || (job.is_task && self.free == 0) {
                return;
            }
            if waiting == job.items {
                self.play.starts_ms[unit] = self.now;
            }
            self.left[unit] = (waiting - 1, out + 1);
            self.free -= u64::from(job.is_task);
            self.out.push(Reverse((self.now.saturating_add(job.duration_ms), rank, unit)));
        }
        self.ready.remove(&(rank, unit));
    }

    fn came_back(&mut self, unit: usize) {
        let is_task = self.jobs[unit].is_task;
        self.free = self.free.saturating_add(u64::from(is_task));
        self.left[unit].1 -= 1;
        if self.left[unit] == (0, 0) {
            let let_go = self.end(unit);
            self.begin(let_go);
        } else if !is_task {
            self.send((self.rank[unit], unit));
        }
    }

    /// Units that this end lets go.
    fn end(&mut self, unit: usize) -> Vec<(usize, Option<usize>)> {
        self.play.ends_ms[unit] = self.now;
        let mut let_go = Vec::new();
        for dependent in &self.graph.units[unit].dependents {
            let at = dependent.0 as usize;
            if self.jobs[unit].waits && self.can_do_without_waits(at) {
                continue;
            }
            self.needs_done[at] += 1;
            if self.needs_done[at] == wanted(&self.graph.units[at]) {
                let_go.push((at, Some(unit)));
            }
        }
        let_go
    }

    /// Enough of its needs come without waiting for anybody.
    fn can_do_without_waits(&self, at: usize) -> bool {
        let unit = &self.graph.units[at];
        let needs = unit.needs.iter().filter(|need| !self.jobs[need.0 as usize].waits);
        unit.join != Strategy::All && needs.count() >= wanted(unit)
    }
}

/// How many of its needs a unit waits for.
fn wanted(unit: &Unit) -> usize {
    match unit.join {
        Strategy::All => unit.needs.len(),
        Strategy::Any => 1,
        Strategy::MOfN(wanted) => wanted as usize,
    }
}

/// The work for the places, at least: `max_parallel` counts tasks only.
pub(super) fn shared_ms(jobs: &[Job], places: Option<u32>) -> u64 {
    let Some(places) = places else { return 0 };
    let work = jobs.iter().filter(|job| job.is_task);
    let work = work.map(|job| job.duration_ms.saturating_mul(job.items)).fold(0, u64::saturating_add);
    work.div_ceil(u64::from(places.max(1)))
}
