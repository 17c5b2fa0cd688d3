//! When runs want to be woken: one time for each run, in the order of the times.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::Time;
use wonder_core::def::Name;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Time, Name)>,
    of: BTreeMap<Name, Time>,
}

impl Timers {
    pub(crate) fn set(&mut self, run: &Name, at: Option<Time>) {
        if self.of.get(run).copied() == at {
            return;
        }
        if let Some(before) = self.of.remove(run) {
            self.by_time.remove(&(before, run.clone()));
        }
        if let Some(at) = at {
            self.of.insert(run.clone(), at);
            self.by_time.insert((at, run.clone()));
        }
    }

    pub(crate) fn first(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Runs whose time has come, in the order of their times.
    pub(crate) fn due(&self, now: Time) -> Vec<Name> {
        self.by_time.iter().take_while(|(at, _)| *at <= now).map(|(_, run)| run.clone()).collect()
    }
}
