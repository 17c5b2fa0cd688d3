//! What a number of each node comes to for a whole graph: the dearest way where a token takes one of
//! several, all of them where it takes all, as often as fan-outs and loops allow. Time is folded so that
//! branches run side by side, everything else is summed.
//!
//! A fan-in belongs to whoever fanned out: a branch that arrives has come to its end, and what follows is
//! counted once for each firing.

use std::collections::BTreeSet;

use wonder_core::def::{On, Strategy};

use super::ways::{After, Copies, Counter, Knot, Walk, Way, Ways};

/// Rounds of loops that are worked out, counted in places; beyond it a bound is as good as none.
const STEPS_MAX: u64 = 250_000;

/// A number of one place or of all that follows it; `open` if it has no bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Amount {
    pub(super) known: u64,
    pub(super) open: bool,
}

impl Amount {
    pub(super) fn of(known: u64) -> Amount {
        Amount { known, open: false }
    }

    /// None has no bound.
    pub(super) fn maybe(known: Option<u64>) -> Amount {
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

    /// By how soon it is over: what waits without a bound comes last.
    pub(super) fn patience(self) -> (bool, u64) {
        (self.open, self.known)
    }

    fn is_something(self) -> bool {
        self.open || self.known > 0
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    /// What is likely: no failures, each loop once, one branch where data decides how many.
    Expected,
    /// What can happen.
    Worst,
}

/// What is folded, over what, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold<'f> {
    pub(super) ways: &'f Ways,
    pub(super) walk: &'f Walk,
    pub(super) mode: Mode,
    /// Side by side, with so many places at most; none: one after the other, a sum.
    pub(super) abreast: Option<Abreast>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Abreast {
    pub(super) places: Option<u32>,
}

/// What came of it, for each place and all that follows.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) amounts: Vec<Amount>,
    /// Transitions, as a place and a position, that make as many branches as data says.
    pub(super) by_data: Vec<(usize, usize)>,
    /// Loops without a bound, by one of their places.
    pub(super) endless: BTreeSet<usize>,
}

type Lookup<'l> = &'l dyn Fn(usize, Option<Counter>) -> Option<Amount>;

impl Fold<'_> {
    pub(super) fn over(&self, each: &[Amount]) -> Folded {
        let len = self.ways.places.len();
        let mut folded =
            Folded { amounts: vec![Amount::default(); len], by_data: Vec::new(), endless: BTreeSet::new() };
        match self.mode {
            Mode::Expected => {
                for at in &self.walk.order {
                    let amount = self.amount(*at, each, &self.open_ways(*at, &folded.amounts));
                    folded.amounts[*at] = amount;
                }
            }
            Mode::Worst => {
                for members in self.ways.knots(self.walk) {
                    self.untie(&members, each, &mut folded);
                }
                self.find_by_data(&mut folded);
            }
        }
        folded
    }

    /// What is known of whatever follows a place, ways that close a loop left out.
    pub(super) fn open_ways<'a>(
        &'a self,
        at: usize,
        amounts: &'a [Amount],
    ) -> impl Fn(usize, Option<Counter>) -> Option<Amount> + 'a {
        move |to, _| (!self.walk.closes.contains(&(at, to))).then(|| amounts[to])
    }

    /// One place and what follows it.
    fn amount(&self, at: usize, each: &[Amount], get: Lookup<'_>) -> Amount {
        let place = &self.ways.places[at];
        let failed = self.failed(at, get);
        let ways = place.ways.iter().filter(|way| way.on != On::Failure);
        let routed = ways.filter_map(|way| self.way(way, failed, get));
        let routed = if place.splits {
            let branches = self.split(routed.collect(), place.after.map(|after| after.strategy));
            branches.plus(then(place.after, failed, get))
        } else {
            routed.reduce(Amount::or).unwrap_or_default()
        };
        each[at].plus(routed.or(failed))
    }

    /// What follows if the place fails; nothing is expected to.
    fn failed(&self, at: usize, get: Lookup<'_>) -> Amount {
        if self.mode == Mode::Expected {
            return Amount::default();
        }
        let place = &self.ways.places[at];
        let ways = place.ways.iter().filter(|way| way.on != On::Success);
        let ways = ways.filter_map(|way| self.way(way, Amount::default(), get));
        let jumps = place.jumps.iter().filter_map(|(to, counter)| get(*to, Some(*counter)));
        ways.chain(jumps).reduce(Amount::or).unwrap_or_default()
    }

    /// All that follows on one way; none if it is closed.
    pub(super) fn way(&self, way: &Way, failed: Amount, get: Lookup<'_>) -> Option<Amount> {
        let inner = self.branch(way, get)?;
        Some(match &way.spread {
            None => inner,
            Some(copies) => self.copied(inner, copies).plus(then(copies.after, failed, get)),
        })
    }

    /// One branch of it.
    pub(super) fn branch(&self, way: &Way, get: Lookup<'_>) -> Option<Amount> {
        if way.arrives { Some(Amount::default()) } else { get(way.to, way.counter) }
    }

    /// All branches of a fan-out that makes copies.
    pub(super) fn copied(&self, inner: Amount, copies: &Copies) -> Amount {
        let branches = &copies.branches;
        let (count, open) = match self.mode {
            Mode::Expected => (branches.exact.unwrap_or(1), false),
            Mode::Worst if branches.by_data => (1, inner.is_something()),
            Mode::Worst => (branches.at_most, false),
        };
        let count = match self.abreast {
            None => count,
            Some(abreast) => self.waves(count, copies, abreast),
        };
        Amount { open: inner.open || open, ..inner.times(count) }
    }

    /// How often as many as may run at once do.
    pub(super) fn waves(&self, count: u64, copies: &Copies, abreast: Abreast) -> u64 {
        let strategy = copies.after.map(|after| after.strategy);
        let awaited = match strategy {
            Some(Strategy::Any) if self.mode == Mode::Expected => count.min(1),
            Some(Strategy::MOfN(wanted)) if self.mode == Mode::Expected => count.min(wanted.into()),
            _ => count,
        };
        let at_once = [copies.max_parallel, abreast.places].into_iter().flatten().min();
        at_once.map_or(awaited.min(1), |at_once| awaited.div_ceil(u64::from(at_once.max(1))))
    }

    /// All branches of a place that takes all its ways: the one that its fan-in waits for, or their sum.
    fn split(&self, branches: Vec<Amount>, strategy: Option<Strategy>) -> Amount {
        if self.abreast.is_none() {
            return branches.into_iter().reduce(Amount::plus).unwrap_or_default();
        }
        if self.mode == Mode::Worst {
            return branches.into_iter().reduce(Amount::or).unwrap_or_default();
        }
        let branches = branches.into_iter().map(|branch| (branch, ())).collect();
        awaited(branches, strategy).map(|(branch, ())| branch).unwrap_or_default()
    }

    /// The amounts of places that lead to each other, or of one that stands alone.
    fn untie(&self, members: &[usize], each: &[Amount], folded: &mut Folded) {
        let Some(knot) = Knot::of(self.ways, members) else {
            let amounts = &folded.amounts;
            let amount = self.amount(members[0], each, &|to, _| Some(amounts[to]));
            folded.amounts[members[0]] = amount;
            return;
        };
        let turns = knot.turns_max().filter(|turns| turns.saturating_mul(members.len() as u64) <= STEPS_MAX);
        match (turns, &knot.order) {
            (Some(turns), Some(order)) => self.go_round(&knot, turns, (order, each), folded),
            _ => self.endless(&knot, each, folded),
        }
    }

    /// So many turns: each is worked out from what can follow it with one turn less.
    fn go_round(
        &self,
        knot: &Knot<'_>,
        turns: u64,
        (order, each): (&[usize], &[Amount]),
        folded: &mut Folded,
    ) {
        let mut last: Option<Vec<Amount>> = None;
        for _ in 0..=turns {
            let mut now = vec![Amount::default(); knot.members.len()];
            for at in order {
                let amount = self.amount(*at, each, &|to, counter| match knot.members.binary_search(&to) {
                    Err(_) => Some(folded.amounts[to]),
                    Ok(at) if counter.is_some() => last.as_ref().map(|last| last[at]),
                    Ok(at) => Some(now[at]),
                });
                let at = knot.members.binary_search(at).expect("a member");
                now[at] = amount;
            }
            if last.as_ref() == Some(&now) {
                break;
            }
            last = Some(now);
        }
        for (at, amount) in knot.members.iter().zip(last.into_iter().flatten()) {
            folded.amounts[*at] = amount;
        }
    }

    /// Nothing bounds it: it counts once, and has no bound if a turn brings anything.
    fn endless(&self, knot: &Knot<'_>, each: &[Amount], folded: &mut Folded) {
        let is_member = |to: &usize| knot.members.binary_search(to).is_ok();
        let (mut inside, mut outside, mut grows) = (Amount::default(), Amount::default(), false);
        for at in knot.members {
            let amounts = &folded.amounts;
            let left = self.amount(*at, each, &|to, _| (!is_member(&to)).then(|| amounts[to]));
            let place = &self.ways.places[*at];
            let comes_back = |way: &Way| {
                way.spread
                    .as_ref()
                    .and_then(|copies| copies.after)
                    .is_some_and(|after| is_member(&after.node))
            };
            let each_turn = place.splits || place.ways.iter().any(comes_back);
            grows |= each[*at].is_something() || (each_turn && left.is_something());
            inside = inside.plus(each[*at]);
            outside = outside.or(Amount { known: left.known.saturating_sub(each[*at].known), ..left });
        }
        let mut amount = inside.plus(outside);
        if grows {
            amount.open = true;
            folded.endless.insert(knot.members[0]);
        }
        for at in knot.members {
            folded.amounts[*at] = amount;
        }
    }

    fn find_by_data(&self, folded: &mut Folded) {
        for (at, place) in self.ways.places.iter().enumerate() {
            for (nth, way) in place.ways.iter().enumerate() {
                let by_data = way.spread.as_ref().is_some_and(|copies| copies.branches.by_data);
                if by_data && !way.arrives && folded.amounts[way.to].is_something() {
                    folded.by_data.push((at, nth));
                }
            }
        }
    }
}

/// What follows a fan-in, or its failure.
fn then(after: Option<After>, failed: Amount, get: Lookup<'_>) -> Amount {
    after.and_then(|after| get(after.node, None)).unwrap_or_default().or(failed)
}

/// The branch that a fan-in goes on with: of those that it waits for, the quickest ones, the longest.
pub(super) fn awaited<T>(mut branches: Vec<(Amount, T)>, strategy: Option<Strategy>) -> Option<(Amount, T)> {
    let wanted = match strategy {
        Some(Strategy::Any) => 1,
        Some(Strategy::MOfN(wanted)) => wanted as usize,
        Some(Strategy::All) | None => branches.len(),
    };
    branches.sort_by_key(|(branch, _)| branch.patience());
    branches.truncate(wanted);
    let open = branches.iter().any(|(branch, _)| branch.open);
    let longest = branches.into_iter().rev().max_by_key(|(branch, _)| branch.known);
    longest.map(|(branch, of)| (Amount { open, ..branch }, of))
}
