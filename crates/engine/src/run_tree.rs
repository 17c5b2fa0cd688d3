//! A run and the runs it called, as far as their events have been seen: who called whom, and what each visit is
//! called when it is shown.

use std::collections::{BTreeMap, BTreeSet};

use crate::timeline::{Timeline, Visit};
use crate::{Engine, Follow, Reply};
use wonder_core::cost::Spend;
use wonder_core::event::{BranchRef, Event, EventKind, NewChild, TokenId};
use wonder_core::graph::names::{DagPart, dag_part};
use wonder_core::{TokenStatus, Value};

/// How much of a run's events is asked for at once.
const EVENTS_AT_ONCE: u32 = 5_000;

#[derive(Clone, Debug)]
pub struct RunTree {
    pub root: String,
    pub runs: BTreeMap<String, Timeline>,
    /// Who called each child: run and token.
    callers: BTreeMap<String, (String, TokenId)>,
}

impl RunTree {
    pub fn new(root: &str) -> RunTree {
        let runs = BTreeMap::from([(root.to_owned(), Timeline::default())]);
        RunTree { root: root.to_owned(), runs, callers: BTreeMap::new() }
    }

    /// The next event of a run; a child that it starts belongs to the tree from now on.
    pub fn learn(&mut self, run: &str, event: &Event) {
        if let EventKind::ChildStarted(NewChild { child, token, .. }) = &event.kind {
            self.runs.entry(child.to_string()).or_default();
            self.callers.insert(child.to_string(), (run.to_owned(), *token));
        }
        if let Some(timeline) = self.runs.get_mut(run) {
            timeline.learn(event);
        }
        if let EventKind::RunForked(_) = &event.kind {
            self.called_again(run);
        }
    }

    /// The nodes that called, from the root down to the one that called this run.
    pub fn way_to(&self, run: &str) -> Vec<String> {
        let mut way = Vec::new();
        let mut run = run.to_owned();
        while let Some((parent, token)) = self.callers.get(&run) {
            let visit = self.runs.get(parent).and_then(|timeline| timeline.visits.get(token));
            way.extend(visit.map(|visit| visit.node.to_string()));
            run = parent.clone();
        }
        way.reverse();
        way
    }

    /// Children that were out when a run was forked are called again, under the fork's name.
    fn called_again(&mut self, run: &str) {
        let Some(timeline) = self.runs.get(run) else { return };
        let out = |visit: &&Visit| visit.place() == TokenStatus::WaitingForSubworkflow;
        let again: Vec<(String, TokenId)> = timeline
            .visits
            .values()
            .filter(out)
            .filter_map(|visit| Some((visit.child.as_ref()?.to_string(), visit.token)))
            .collect();
        for (child, token) in again {
            // What became of the one that was out there is no business of the fork.
            let old = self.callers.iter().find(|(_, caller)| **caller == (run.to_owned(), token));
            if let Some(old) = old.map(|(old, _)| old.clone()) {
                self.callers.remove(&old);
                self.runs.remove(&old);
            }
            self.runs.entry(child.clone()).or_default();
            self.callers.insert(child, (run.to_owned(), token));
        }
    }

    pub fn root(&self) -> &Timeline {
        &self.runs[&self.root]
    }

    /// What a run has spent so far, with what those have that it called and has not heard the end of.
    pub fn spend(&self, run: &str) -> Spend {
        let Some(timeline) = self.runs.get(run) else { return Spend::default() };
        let mut spend = timeline.spend.clone();
        for visit in timeline.visits.values().filter(|visit| visit.child.is_some()) {
            spend.add(&self.spend_out(visit));
        }
        spend
    }

    /// The same of one visit.
    pub fn spend_at(&self, visit: &Visit) -> Spend {
        let mut spend = visit.spend.clone();
        spend.add(&self.spend_out(visit));
        spend
    }

    /// Of runs that it called and that have not told what they spent.
    fn spend_out(&self, visit: &Visit) -> Spend {
        let mut spend = Spend::default();
        let out = visit.history.iter().filter(|attempt| attempt.ended_at.is_none());
        out.filter_map(|attempt| attempt.child.as_ref()).for_each(|child| spend.add(&self.spend(child)));
        spend
    }

    /// How far each run has been read.
    pub fn positions(&self) -> Vec<(String, u64)> {
        self.runs.iter().map(|(run, timeline)| (run.clone(), timeline.seq)).collect()
    }

    /// `judge[2]`, in a child `call/judge[2]`; a token that nobody has seen is a number.
    pub fn label(&self, run: &str, token: TokenId) -> String {
        let own = match self.runs.get(run).and_then(|timeline| Some((timeline, timeline.visits.get(&token)?)))
        {
            Some((timeline, visit)) => visit_label(timeline, visit),
            None => format!("#{token}"),
        };
        format!("{}{own}", self.prefix(run))
    }

    /// A node that is named without a token.
    pub fn node_label(&self, run: &str, node: &str) -> String {
        format!("{}{}", self.prefix(run), node_name(node))
    }

    /// What a child is called: the visit that called it; nothing for the root.
    pub fn run_label(&self, run: &str) -> String {
        self.callers.get(run).map_or(String::new(), |(parent, token)| self.label(parent, *token))
    }

    /// `call/`, of a child's child `call/again/`; nothing for the root.
    fn prefix(&self, run: &str) -> String {
        match self.callers.get(run) {
            Some((parent, token)) => format!("{}/", self.label(parent, *token)),
            None => String::new(),
        }
    }
}

impl dyn Engine + '_ {
    /// A run and those it called, from all their events.
    pub async fn tree(&self, run: &str) -> Reply<RunTree> {
        let mut tree = RunTree::new(run);
        loop {
            let events = self.events_after(tree.positions()).await?;
            if events.is_empty() {
                return Ok(tree);
            }
            events.iter().for_each(|(run, event)| tree.learn(run, event));
        }
    }

    /// The same as it was after one of the run's events: what had happened in the others by that time.
    pub async fn tree_at(&self, run: &str, seq: u64) -> Reply<RunTree> {
        let mut tree = RunTree::new(run);
        while tree.root().seq < seq {
            let events = self.events_after(vec![(run.to_owned(), tree.root().seq)]).await?;
            if events.is_empty() {
                break;
            }
            events
                .iter()
                .filter(|(_, event)| event.seq <= seq)
                .for_each(|(run, event)| tree.learn(run, event));
        }
        let then = tree.root().last_at;
        let mut read = BTreeSet::from([run.to_owned()]);
        loop {
            let mut open = tree.positions();
            open.retain(|(run, _)| !read.contains(run));
            if open.is_empty() {
                return Ok(tree);
            }
            let asked: Vec<String> = open.iter().map(|(run, _)| run.clone()).collect();
            let events = self.events_after(open).await?;
            let told = |run: &String| events.iter().any(|(of, event)| of == run && event.at <= then);
            read.extend(asked.into_iter().filter(|run| !told(run)));
            read.extend(events.iter().filter(|(_, event)| event.at > then).map(|(run, _)| run.clone()));
            let by_then = events.iter().filter(|(_, event)| event.at <= then);
            by_then.for_each(|(run, event)| tree.learn(run, event));
        }
    }

    async fn events_after(&self, events_after: Vec<(String, u64)>) -> Reply<Vec<(String, Event)>> {
        let follow = Follow { events_after, limit: Some(EVENTS_AT_ONCE), ..Follow::default() };
        Ok(self.follow(follow).await?.events)
    }
}

/// The node and, in a fan-out, the numbers of its branches from the outermost in: `judge[2]`, `vote[0.3]`; from
/// its second visit on, in a loop, which one it is: `draft (turn 2)`.
pub fn visit_label(timeline: &Timeline, visit: &Visit) -> String {
    let place = place_label(timeline, visit);
    if visit.turn > 1 { format!("{place} (turn {})", visit.turn) } else { place }
}

/// The same without the turn: where, not when.
pub fn place_label(timeline: &Timeline, visit: &Visit) -> String {
    let mut path = Vec::new();
    let mut next = visit.branch;
    while let Some(BranchRef { group, branch }) = next {
        path.push(branch.to_string());
        let origin = timeline.groups.get(&group).and_then(|group| timeline.visits.get(&group.origin));
        next = origin.and_then(|origin| origin.branch);
    }
    path.reverse();
    let name = node_name(&visit.node);
    if path.is_empty() { name.to_owned() } else { format!("{name}[{}]", path.join(".")) }
}

/// What the visit's branch works on; null outside of a `foreach`.
pub fn item_of<'t>(timeline: &'t Timeline, visit: &Visit) -> &'t Value {
    let group = visit.branch.and_then(|at| Some((timeline.groups.get(&at.group)?, at.branch)));
    let item = group.and_then(|(group, branch)| group.items.as_list()?.get(branch as usize));
    item.unwrap_or(&Value::Null)
}

/// As it is written in the file: the inner nodes of a dag's `foreach` carry marks behind their ref.
pub fn node_name(node: &str) -> &str {
    dag_part(node).0
}

/// The node that gathers what a dag's `foreach` made: nobody wrote it, so nobody wants to see it.
pub fn is_gather(node: &str) -> bool {
    dag_part(node).1 == DagPart::Gather
}
