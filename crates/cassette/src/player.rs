//! Answers from a cassette: each exchange once, found by its content. Of several that asked the same, the one that was
//! made at the same place of the run is taken, then the first that is left. One that was cancelled goes last: it may only
//! have been given up for a while, when the process that recorded it left.

use std::collections::{BTreeMap, BTreeSet};

use crate::exchange::{Exchange, Key, Outcome, Place, Request, Stop};
use crate::missing::{Missing, nearest};
use crate::written::Contents;

#[derive(Clone, Debug)]
pub struct Player {
    exchanges: Vec<(String, Exchange)>,
    by_key: BTreeMap<Key, Vec<usize>>,
    given: BTreeSet<usize>,
}

impl Player {
    pub fn new(contents: Contents) -> Player {
        let exchanges = contents.exchanges;
        let mut by_key: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for (at, (_, exchange)) in exchanges.iter().enumerate() {
            by_key.entry(exchange.request.key()).or_default().push(at);
        }
        Player { exchanges, by_key, given: BTreeSet::new() }
    }

    /// What came of this request when it was recorded.
    pub fn answer(&mut self, request: &Request, place: &Place) -> Result<&Exchange, Box<Missing>> {
        let same: &[usize] = self.by_key.get(&request.key()).map_or(&[], Vec::as_slice);
        let left = same.iter().filter(|at| !self.given.contains(at));
        let chosen = left.min_by_key(|at| {
            let exchange = &self.exchanges[**at].1;
            let is_cancelled = exchange.outcome == Outcome::Stopped(Stop::Cancelled);
            (exchange.place != *place, is_cancelled, **at)
        });
        match chosen.copied() {
            Some(at) => {
                self.given.insert(at);
                Ok(&self.exchanges[at].1)
            }
            None => Err(Box::new(Missing {
                request: request.clone(),
                place: place.clone(),
                recorded: same.iter().map(|at| self.exchanges[*at].0.clone()).collect(),
                nearest: if same.is_empty() { nearest(&self.exchanges, request, place) } else { None },
            })),
        }
    }
}
