//! What the driver and those who talk to it both see: who follows which run, what is driven, what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use wonder_core::def::Name;
use wonder_engine::EngineError;

/// Followed instead of a run: every commit touches it. No run has this id.
pub(crate) const ALL_RUNS: &str = "*";

#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    followers: Mutex<BTreeMap<Name, Vec<Weak<Notify>>>>,
    /// Roots of the runs that this process carries on.
    driven: Mutex<BTreeSet<Name>>,
    /// Runs that wait for a place among runs, and who holds those places.
    in_line: Mutex<BTreeMap<Name, Vec<Name>>>,
    /// Why nothing can be written just now.
    stalled: Mutex<Option<EngineError>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing here can be half done when a thread panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// A bell that rings after each commit that touches one of these runs.
    pub(crate) fn follow(&self, runs: impl IntoIterator<Item = Name>) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        let mut followers = held(&self.0.followers);
        for run in runs {
            followers.entry(run).or_default().push(Arc::downgrade(&bell));
        }
        bell
    }

    pub(crate) fn publish(&self, runs: &BTreeSet<Name>) {
        let mut followers = held(&self.0.followers);
        if followers.is_empty() {
            return;
        }
        for run in runs.iter().map(|run| &**run).chain([ALL_RUNS]) {
            let Some(bells) = followers.get_mut(run) else { continue };
            bells.retain(|bell| bell.upgrade().inspect(|bell| bell.notify_one()).is_some());
            if bells.is_empty() {
                followers.remove(run);
            }
        }
    }

    pub(crate) fn is_driven(&self, root: &str) -> bool {
        held(&self.0.driven).contains(root)
    }

    /// False if it was driven already.
    pub(crate) fn drive(&self, root: &Name) -> bool {
        held(&self.0.driven).insert(root.clone())
    }

    pub(crate) fn leave_alone(&self, root: &str) {
        held(&self.0.driven).remove(root);
    }

    pub(crate) fn driven(&self) -> BTreeSet<Name> {
        held(&self.0.driven).clone()
    }

    pub(crate) fn in_line(&self, in_line: BTreeMap<Name, Vec<Name>>) {
        *held(&self.0.in_line) = in_line;
    }

    /// Who holds the places that this run waits for; None if it waits for none.
    pub(crate) fn held_up_by(&self, run: &str) -> Option<Vec<Name>> {
        held(&self.0.in_line).get(run).cloned()
    }

    pub(crate) fn stalled(&self) -> Option<EngineError> {
        held(&self.0.stalled).clone()
    }

    pub(crate) fn stall(&self, why: Option<EngineError>) {
        *held(&self.0.stalled) = why;
    }
}
