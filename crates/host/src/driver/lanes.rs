//! `concurrency` across runs: runs of one workflow and key share a lane with so many places.
//!
//! A run takes a place when it starts, or waits in line as `queued`. While it only waits for people or
//! events it gives its place away, unless it holds on to it, and what it is dispatched after that waits until
//! it has one again. A run that another run of the lane called goes along on its caller's place. Lanes are
//! this owner's: a run that nobody carries on holds nobody up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::expr::Scope;
use wonder_core::graph::Graph;
use wonder_core::{Command, Input, RunStatus, Value};

use super::{Driver, Word};

/// A workflow's name and the value of its key.
type LaneId = (Name, String);

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<LaneId, Lane>,
    members: BTreeMap<Name, Member>,
}

#[derive(Debug, Default)]
struct Lane {
    limit: usize,
    holders: BTreeSet<Name>,
    line: VecDeque<Name>,
}

#[derive(Debug)]
struct Member {
    lane: LaneId,
    holds_on: bool,
    /// What it may do when it has a place.
    held: Vec<Command>,
}

struct OnlyInput<'v>(&'v Value);

impl Scope for OnlyInput<'_> {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        (root == "input").then(|| self.0.get_path(path).cloned()).flatten()
    }
}

/// The lane of a run with this input; None if its workflow has no limit.
fn lane_of(graph: &Graph, input: &Value) -> Option<(LaneId, usize, bool)> {
    let concurrency = graph.concurrency.as_ref()?;
    // A key that cannot be had is a key of its own: it must not let a run past the others.
    let key = concurrency.key.as_ref().map(|key| match key.eval(&OnlyInput(input)) {
        Ok(value) => value.to_string(),
        Err(error) => error.message,
    });
    let lane = (graph.name.clone(), key.unwrap_or_default());
    Some((lane, concurrency.limit as usize, concurrency.hold_while_waiting))
}

impl Lanes {
    /// True if it may go on at once: it has a place, or needs none.
    fn has_place(&mut self, run: &Name) -> bool {
        let Some(member) = self.members.get(run) else { return true };
        let lane = self.lanes.entry(member.lane.clone()).or_default();
        if lane.holders.contains(run) {
            return true;
        }
        let first = lane.line.front().is_none_or(|next| next == run);
        if first && lane.holders.len() < lane.limit {
            lane.line.retain(|waiting| waiting != run);
            lane.holders.insert(run.clone());
            return true;
        }
        if !lane.line.contains(run) {
            lane.line.push_back(run.clone());
        }
        false
    }

    /// Gives its place away; whoever has one now.
    fn give_away(&mut self, run: &Name) -> Option<Name> {
        let member = self.members.get(run)?;
        let lane = self.lanes.get_mut(&member.lane)?;
        lane.line.retain(|waiting| waiting != run);
        if !lane.holders.remove(run) && lane.holders.len() >= lane.limit {
            return None;
        }
        let next = lane.line.pop_front()?;
        lane.holders.insert(next.clone());
        Some(next)
    }

    fn leave(&mut self, run: &Name) -> Option<Name> {
        let next = self.give_away(run);
        if let Some(member) = self.members.remove(run)
            && self
                .lanes
                .get(&member.lane)
                .is_some_and(|lane| lane.holders.is_empty() && lane.line.is_empty())
        {
            self.lanes.remove(&member.lane);
        }
        next
    }

    /// Who holds the places that a run in line waits for.
    fn holders(&self) -> BTreeMap<Name, Vec<Name>> {
        let in_line = self.lanes.values().flat_map(|lane| {
            lane.line.iter().map(|run| (run.clone(), lane.holders.iter().cloned().collect()))
        });
        in_line.collect()
    }
}

impl Driver {
    /// A run that is carried on joins its lane. True if it may go on at once.
    pub(super) fn join_lane(&mut self, run: &Name, graph: &Graph, input: &Value) -> bool {
        let Some((lane, limit, holds_on)) = lane_of(graph, input) else { return true };
        if self.lanes.members.contains_key(run) {
            return self.lanes.has_place(run);
        }
        if self.rides_along(run, &lane) {
            return true;
        }
        self.lanes.lanes.entry(lane.clone()).or_default().limit = limit;
        self.lanes.members.insert(run.clone(), Member { lane, holds_on, held: Vec::new() });
        let placed = self.lanes.has_place(run);
        self.tell_who_waits();
        placed
    }

    /// A caller of it is in the same lane: waiting for its own caller's place it would wait for ever.
    fn rides_along(&self, run: &Name, lane: &LaneId) -> bool {
        let mut above = run.rsplitn(3, '.').nth(2);
        while let Some(caller) = above {
            if self.lanes.members.get(caller).is_some_and(|member| member.lane == *lane) {
                return true;
            }
            above = caller.rsplitn(3, '.').nth(2);
        }
        false
    }

    /// After recovery, and for a run that was queued: its lane, and what it is owed there.
    pub(super) fn rejoin_lane(&mut self, id: &Name) {
        let run = &self.runs[id].run;
        let graph = run.graph().clone();
        let input = run.state().start.as_ref().map(|start| start.input.clone()).unwrap_or_default();
        let queued = run.status() == RunStatus::Queued;
        if self.join_lane(id, &graph, &input) && queued {
            self.words.push_back(Word::Say { run: id.clone(), input: Input::Release });
        }
    }

    /// Runs of this turn that have ended, or only wait, make room for others.
    pub(super) fn make_room(&mut self) {
        if self.lanes.members.is_empty() {
            return;
        }
        for id in self.touched.clone() {
            let Some(member) = self.lanes.members.get(&id) else { continue };
            let ended = self.runs.get(&id).is_none_or(|hosted| hosted.run.status().is_end());
            let next = if ended {
                self.lanes.leave(&id)
            } else if !member.holds_on && member.held.is_empty() && self.is_quiet(&id) {
                self.lanes.give_away(&id)
            } else {
                continue;
            };
            if let Some(next) = next {
                self.let_in(next);
            }
            self.tell_who_waits();
        }
    }

    fn let_in(&mut self, id: Name) {
        if self.hosted(&id).is_err() {
            return;
        }
        if self.runs[&id].run.status() == RunStatus::Queued {
            self.words.push_back(Word::Say { run: id, input: Input::Release });
        } else if let Some(member) = self.lanes.members.get_mut(&id) {
            let held = std::mem::take(&mut member.held);
            self.orders.extend(held.into_iter().map(|command| (id.clone(), command)));
        }
    }

    /// Keeps an order of a run that has no place just now. None: it was kept.
    pub(super) fn in_place(&mut self, id: &Name, command: Command) -> Option<Command> {
        if self.lanes.has_place(id) {
            return Some(command);
        }
        self.lanes.members.get_mut(id)?.held.push(command);
        self.tell_who_waits();
        None
    }

    fn tell_who_waits(&self) {
        self.shared.in_line(self.lanes.holders());
    }
}
