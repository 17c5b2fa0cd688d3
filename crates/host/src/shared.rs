//! What the driver and those who talk to it both see: who watches which run, what is driven, what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wonder_core::def::Name;
use wonder_core::event::TokenId;
use wonder_engine::EngineError;

use crate::driver::TaskKey;
use crate::live_text::LiveText;

/// Followed instead of a run: every commit touches it. No run has this id.
pub(crate) const ALL_RUNS: &str = "*";

#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    /// Who watches which run. Nobody is in it who has gone: see [`Watcher`].
    watchers: Mutex<BTreeMap<Name, Vec<Arc<Notify>>>>,
    /// Roots of the runs that this process carries on.
    driven: Mutex<BTreeSet<Name>>,
    /// Runs that wait for a place among runs, and who holds those places.
    waiting_for_places: Mutex<BTreeMap<Name, Vec<Name>>>,
    trouble: Mutex<Option<Trouble>>,
    /// Tasks that wait for the rate of a model profile.
    rate_waits: Mutex<BTreeMap<TaskKey, Name>>,
    text: LiveText,
}

/// Why nothing can be written just now.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) error: EngineError,
    /// It has lasted so long that whoever asks for a change is told.
    pub(crate) lasts: bool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing here can be half done when a thread panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Is told of each commit that touches one of these runs, as long as it is kept.
    pub(crate) fn watch(&self, runs: impl IntoIterator<Item = Name>) -> Watcher {
        let changed = Arc::new(Notify::new());
        let runs: Vec<Name> = runs.into_iter().collect();
        let mut watchers = held(&self.0.watchers);
        for run in &runs {
            watchers.entry(run.clone()).or_default().push(changed.clone());
        }
        drop(watchers);
        Watcher { shared: self.clone(), runs, changed }
    }

    pub(crate) fn publish(&self, runs: &BTreeSet<Name>) {
        let watchers = held(&self.0.watchers);
        if watchers.is_empty() {
            return;
        }
        for run in runs.iter().map(|run| &**run).chain([ALL_RUNS]) {
            watchers.get(run).into_iter().flatten().for_each(|changed| changed.notify_one());
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

    pub(crate) fn waiting_for_places(&self, waiting: BTreeMap<Name, Vec<Name>>) {
        *held(&self.0.waiting_for_places) = waiting;
    }

    /// Who holds the places that this run waits for; None if it waits for none.
    pub(crate) fn held_up_by(&self, run: &str) -> Option<Vec<Name>> {
        held(&self.0.waiting_for_places).get(run).cloned()
    }

    /// Text of tasks, for whoever listens.
    pub(crate) fn text(&self) -> &LiveText {
        &self.0.text
    }

    /// A task waits for the rate of a model profile, or waits no more.
    pub(crate) fn waits_for_rate(&self, task: &TaskKey, profile: Option<&Name>) {
        let mut waits = held(&self.0.rate_waits);
        match profile {
            Some(profile) => drop(waits.insert(task.clone(), profile.clone())),
            None => drop(waits.remove(task)),
        }
    }

    /// Tokens of a run whose tasks wait for a rate, and the profile that it is of.
    pub(crate) fn rate_waits(&self, run: &str) -> Vec<(TokenId, Name)> {
        let waits = held(&self.0.rate_waits);
        let own = waits.iter().filter(|(task, _)| &*task.run == run);
        own.map(|(task, profile)| (task.token, profile.clone())).collect()
    }

    pub(crate) fn trouble(&self) -> Option<Trouble> {
        held(&self.0.trouble).clone()
    }

    pub(crate) fn set_trouble(&self, trouble: Option<Trouble>) {
        *held(&self.0.trouble) = trouble;
    }
}

/// Somebody who wants to know when something happens to some runs.
#[derive(Debug)]
pub(crate) struct Watcher {
    shared: Shared,
    runs: Vec<Name>,
    changed: Arc<Notify>,
}

impl Watcher {
    /// Something has happened since the last time.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut watchers = held(&self.shared.0.watchers);
        for run in &self.runs {
            let Some(of_run) = watchers.get_mut(run) else { continue };
            of_run.retain(|other| !Arc::ptr_eq(other, &self.changed));
            if of_run.is_empty() {
                watchers.remove(run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_stops_watching_leaves_nothing_behind() {
        let shared = Shared::default();
        let (one, two): (Name, Name) = ("one".into(), "two".into());
        let both = shared.watch([one.clone(), two.clone()]);
        let first = shared.watch([one.clone()]);
        shared.publish(&BTreeSet::from([one]));
        first.changed().await;
        both.changed().await;
        drop(first);
        assert_eq!(held(&shared.0.watchers).len(), 2);
        // Nothing ever happens to the second run again.
        drop(both);
        assert!(held(&shared.0.watchers).is_empty());
    }
}
