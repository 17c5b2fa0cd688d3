//! `concurrency` across runs: runs of one workflow and key share a limit of so many places.
//!
//! A run takes a place when it starts, or waits for one as `queued`. While it only waits for people or events
//! it gives its place away, unless its workflow says to hold on to it, and tasks it is dispatched after that
//! wait until it has a place again. A run that another run of the same limit called shares its caller's
//! place. A run that nobody carries on holds nobody up, unless its workflow says to hold on: then it has its place
//! from its start to its end, whoever carries it on, and a new owner finds it there.
//!
//! Only decisions are made here; the driver acts on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wonder_core::Value;
use wonder_core::command::TaskOrder;
use wonder_core::def::Name;
use wonder_core::expr::Scope;
use wonder_core::graph::Graph;

/// A workflow's name and the value of its key.
type LimitKey = (Name, String);

#[derive(Debug, Default)]
pub(crate) struct ConcurrencyLimits {
    limits: BTreeMap<LimitKey, Limit>,
    members: BTreeMap<Name, Member>,
    /// Workflows whose runs of earlier owners are members, if they hold on to their places.
    looked_for: BTreeSet<Name>,
}

#[derive(Debug, Default)]
struct Limit {
    places: usize,
    holders: BTreeSet<Name>,
    /// Runs that wait for a place, the first first.
    waiting: VecDeque<Name>,
}

#[derive(Debug)]
struct Member {
    limit: LimitKey,
    hold_while_waiting: bool,
    /// Tasks that begin when it has a place.
    #[expect(clippy::vec_box, reason = "an order is boxed wherever it goes")]
    held: Vec<Box<TaskOrder>>,
}

/// The limit that a run is under.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    key: LimitKey,
    places: usize,
    hold_while_waiting: bool,
}

struct OnlyInput<'v>(&'v Value);

impl Scope for OnlyInput<'_> {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        (root == "input").then(|| self.0.get_path(path).cloned()).flatten()
    }
}

impl Membership {
    /// Of a run with this input; None if its workflow has no limit.
    pub(super) fn of(graph: &Graph, input: &Value) -> Option<Membership> {
        let concurrency = graph.concurrency.as_ref()?;
        // A key that cannot be evaluated is a key of its own: it must not let a run past the others.
        let key = concurrency.key.as_ref().map(|key| match key.eval(&OnlyInput(input)) {
            Ok(value) => value.to_string(),
            Err(error) => error.message,
        });
        Some(Membership {
            key: (graph.name.clone(), key.unwrap_or_default()),
            places: concurrency.limit as usize,
            hold_while_waiting: concurrency.hold_while_waiting,
        })
    }
}

impl ConcurrencyLimits {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A run that is carried on comes under its limit. True if it may go on at once; else it waits for a place.
    pub(super) fn join(&mut self, run: &Name, membership: Membership) -> bool {
        if self.members.contains_key(run) {
            return self.takes_place(run);
        }
        if self.shares_callers_place(run, &membership.key) {
            return true;
        }
        let Membership { key, places, hold_while_waiting } = membership;
        self.limits.entry(key.clone()).or_default().places = places;
        self.members.insert(run.clone(), Member { limit: key, hold_while_waiting, held: Vec::new() });
        self.takes_place(run)
    }

    /// A run that an earlier owner left, and that holds on to its place, has it.
    pub(super) fn keep_place(&mut self, run: &Name, membership: Membership) {
        let Membership { key, places, hold_while_waiting } = membership;
        if !hold_while_waiting || self.members.contains_key(run) || self.shares_callers_place(run, &key) {
            return;
        }
        let limit = self.limits.entry(key.clone()).or_default();
        limit.places = places;
        limit.holders.insert(run.clone());
        self.members.insert(run.clone(), Member { limit: key, hold_while_waiting, held: Vec::new() });
    }

    /// Whether those that were left with a place have been looked for; from now on they have.
    pub(super) fn looked_for(&mut self, workflow: &Name) -> bool {
        !self.looked_for.insert(workflow.clone())
    }

    /// A caller of it is under the same limit: waiting for its own caller's place it would wait for ever.
    fn shares_callers_place(&self, run: &Name, key: &LimitKey) -> bool {
        let mut above = run.rsplitn(3, '.').nth(2);
        while let Some(caller) = above {
            if self.members.get(caller).is_some_and(|member| member.limit == *key) {
                return true;
            }
            above = caller.rsplitn(3, '.').nth(2);
        }
        false
    }

    /// True if it may go on at once: it has a place, or needs none. Else it waits for one from now on.
    fn takes_place(&mut self, run: &Name) -> bool {
        let Some(member) = self.members.get(run) else { return true };
        let limit = self.limits.entry(member.limit.clone()).or_default();
        if limit.holders.contains(run) {
            return true;
        }
        let first = limit.waiting.front().is_none_or(|next| next == run);
        if first && limit.holders.len() < limit.places {
            limit.waiting.retain(|waiting| waiting != run);
            limit.holders.insert(run.clone());
            return true;
        }
        if !limit.waiting.contains(run) {
            limit.waiting.push_back(run.clone());
        }
        false
    }

    /// A task of a run that has a place is given back, to begin now; another is held until it has one.
    pub(super) fn admit(&mut self, order: Box<TaskOrder>) -> Option<Box<TaskOrder>> {
        if self.takes_place(&order.run) {
            return Some(order);
        }
        if let Some(member) = self.members.get_mut(&order.run) {
            member.held.push(order);
        }
        None
    }

    /// Tasks of a run that has got a place, to begin now.
    #[expect(clippy::vec_box, reason = "an order is boxed wherever it goes")]
    pub(super) fn take_held(&mut self, run: &Name) -> Vec<Box<TaskOrder>> {
        self.members.get_mut(run).map(|member| std::mem::take(&mut member.held)).unwrap_or_default()
    }

    /// A run under a limit that gives its place away while it only waits, and has nothing to do with it.
    pub(super) fn may_give_away(&self, run: &Name) -> bool {
        self.members.get(run).is_some_and(|member| !member.hold_while_waiting && member.held.is_empty())
    }

    pub(super) fn is_member(&self, run: &Name) -> bool {
        self.members.contains_key(run)
    }

    /// A run gives its place away; the run that has it now.
    pub(super) fn give_away(&mut self, run: &Name) -> Option<Name> {
        let member = self.members.get(run)?;
        let limit = self.limits.get_mut(&member.limit)?;
        limit.waiting.retain(|waiting| waiting != run);
        if !limit.holders.remove(run) && limit.holders.len() >= limit.places {
            return None;
        }
        let next = limit.waiting.pop_front()?;
        limit.holders.insert(next.clone());
        Some(next)
    }

    /// A run has ended; the run that has its place now.
    pub(super) fn leave(&mut self, run: &Name) -> Option<Name> {
        let next = self.give_away(run);
        if let Some(member) = self.members.remove(run)
            && self
                .limits
                .get(&member.limit)
                .is_some_and(|limit| limit.holders.is_empty() && limit.waiting.is_empty())
        {
            self.limits.remove(&member.limit);
        }
        next
    }

    /// Runs that wait for a place, and who holds the places.
    pub(super) fn waiting(&self) -> BTreeMap<Name, Vec<Name>> {
        let waiting = self.limits.values().flat_map(|limit| {
            let holders: Vec<Name> = limit.holders.iter().cloned().collect();
            limit.waiting.iter().map(move |run| (run.clone(), holders.clone()))
        });
        waiting.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(key: &str, places: usize) -> Membership {
        Membership { key: ("flow".into(), key.to_owned()), places, hold_while_waiting: false }
    }

    fn name(text: &str) -> Name {
        text.into()
    }

    #[test]
    fn a_place_goes_to_whoever_waits_longest() {
        let mut limits = ConcurrencyLimits::default();
        assert!(limits.join(&name("a"), under("", 1)));
        assert!(!limits.join(&name("b"), under("", 1)) && !limits.join(&name("c"), under("", 1)));
        assert!(limits.join(&name("other"), under("key", 1)), "another key has places of its own");
        assert_eq!(limits.waiting().get("c"), Some(&vec![name("a")]));
        assert_eq!(limits.leave(&name("a")), Some(name("b")));
        assert!(!limits.join(&name("d"), under("", 1)), "nobody passes whoever waits");
        assert_eq!(limits.leave(&name("b")), Some(name("c")));
        assert_eq!(limits.leave(&name("d")), None, "it waited and held nothing");
        assert_eq!(limits.leave(&name("c")), None);
        assert_eq!(limits.leave(&name("other")), None);
        assert!(limits.is_empty() && limits.limits.is_empty());
    }

    #[test]
    fn tasks_of_a_run_that_gave_its_place_away_wait_until_it_has_one_again() {
        let mut limits = ConcurrencyLimits::default();
        limits.join(&name("a"), under("", 1));
        assert!(limits.may_give_away(&name("a")));
        assert_eq!(limits.give_away(&name("a")), None);
        limits.join(&name("b"), under("", 1));
        assert!(limits.admit(order("a", 1)).is_none() && limits.admit(order("b", 1)).is_some());
        assert!(!limits.may_give_away(&name("a")), "it has something to do");
        assert_eq!(limits.leave(&name("b")), Some(name("a")));
        assert_eq!(limits.take_held(&name("a")).len(), 1);
        assert!(limits.admit(order("free", 1)).is_some(), "without a limit nothing is held");
    }

    #[test]
    fn a_called_run_shares_its_callers_place() {
        let mut limits = ConcurrencyLimits::default();
        assert!(limits.join(&name("a"), under("", 1)));
        assert!(limits.join(&name("a.3.1"), under("", 1)) && !limits.is_member(&name("a.3.1")));
        assert!(limits.join(&name("a.3.1.2.1"), under("", 1)));
        assert!(!limits.join(&name("b.3.1"), under("", 1)), "its caller has no place");
    }

    fn order(run: &str, token: u64) -> Box<TaskOrder> {
        super::super::orders::test_order(run, token)
    }
}
