//! Tasks that wait for a place on this machine.
//!
//! Runs take turns in the order in which their tasks were dispatched; a run whose turn it is sends the task that
//! its own ready order puts first. So one run's order is the same under the machine's limit as under its own
//! `max_parallel`, and no run passes another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use wonder_core::def::Name;
use wonder_core::event::TokenId;

use super::Ordered;
use crate::driver::TaskKey;

/// The place of a task in its run's ready order, as the core has it.
type Rank = (u32, TokenId, u32);

#[derive(Debug, Default)]
pub(super) struct Line {
    next_turn: u64,
    /// Whose turn it is, the next first: one turn for each task that waits.
    turns: BTreeMap<u64, Name>,
    runs: BTreeMap<Name, OfRun>,
    /// Since when each task waits, the longest first.
    since: BTreeSet<(Instant, Name, Rank)>,
}

/// Tasks of one run, and its turns: as many.
#[derive(Debug, Default)]
struct OfRun {
    tasks: BTreeMap<Rank, (Ordered, Instant)>,
    turns: BTreeSet<u64>,
}

impl Line {
    pub(super) fn join(&mut self, task: Ordered, since: Instant) {
        let (run, rank) = (task.key.run.clone(), rank(&task));
        self.turns.insert(self.next_turn, run.clone());
        self.since.insert((since, run.clone(), rank));
        let of_run = self.runs.entry(run).or_default();
        of_run.turns.insert(self.next_turn);
        of_run.tasks.insert(rank, (task, since));
        self.next_turn += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The task to begin next.
    pub(super) fn next(&mut self) -> Option<Ordered> {
        let (turn, run) = self.turns.first_key_value().map(|(turn, run)| (*turn, run.clone()))?;
        let rank = *self.runs.get(&run)?.tasks.keys().next()?;
        Some(self.take(&run, rank, turn)?.0)
    }

    /// Takes a task out that is not wanted any more.
    pub(super) fn remove(&mut self, key: &TaskKey) -> Option<Ordered> {
        let of_key = |rank: &&Rank| (rank.1, rank.2) == (key.token, key.attempt);
        let rank = *self.runs.get(&key.run)?.tasks.keys().find(of_key)?;
        Some(self.leave(&key.run, rank)?.0)
    }

    /// Since when the one that waits longest has waited.
    pub(super) fn longest_since(&self) -> Option<Instant> {
        self.since.first().map(|(since, ..)| *since)
    }

    /// The one that waits longest.
    pub(super) fn take_longest(&mut self) -> Option<(Ordered, Instant)> {
        let (_, run, rank) = self.since.first()?.clone();
        self.leave(&run, rank)
    }

    /// A task leaves without having had its turn: its run has one turn less, the last.
    fn leave(&mut self, run: &Name, rank: Rank) -> Option<(Ordered, Instant)> {
        let turn = *self.runs.get(run)?.turns.last()?;
        self.take(run, rank, turn)
    }

    fn take(&mut self, run: &Name, rank: Rank, turn: u64) -> Option<(Ordered, Instant)> {
        let of_run = self.runs.get_mut(run)?;
        let (task, since) = of_run.tasks.remove(&rank)?;
        of_run.turns.remove(&turn);
        if of_run.tasks.is_empty() {
            self.runs.remove(run);
        }
        self.turns.remove(&turn);
        self.since.remove(&(since, run.clone(), rank));
        Some((task, since))
    }
}

fn rank(task: &Ordered) -> Rank {
    (task.order.rank, task.key.token, task.key.attempt)
}
