//! The timeline and the run tell the same: whoever shows a run from its events shows what the run itself knows.

use std::collections::BTreeMap;

use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::event::{RunChange, TokenId};
use wonder_core::graph::NodeIx;
use wonder_core::state::{NodeSpend, Place, Token};
use wonder_core::{Run, Time};
use wonder_engine::timeline::{BudgetState, GateHistory, GroupView, Timeline, Visit};

/// What the timeline says otherwise than the run.
pub(super) fn differences(timeline: &Timeline, run: &Run) -> Vec<String> {
    let mut found = Differences(Vec::new());
    found.of_run(timeline, run);
    found.of_visits(timeline, run);
    found.of_attempts(timeline, run);
    found.of_groups(timeline, run);
    found.of_gates(timeline, run);
    found.of_budgets(timeline, run);
    found.of_mutations(timeline, run);
    found.0
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: impl FnOnce() -> String, told: T, is: T) {
        if told != is {
            self.0.push(format!("the timeline says {} is {told:?}, the run says {is:?}", what()));
        }
    }

    fn of_run(&mut self, timeline: &Timeline, run: &Run) {
        let state = run.state();
        self.compare(|| "the last event".to_owned(), timeline.seq, state.seq);
        self.compare(|| "the status".to_owned(), timeline.status, run.status());
        // A queued run shows since when it waits; the run's own clock begins when it is released.
        if state.started_at != Time::default() {
            self.compare(|| "the start".to_owned(), timeline.started_at, state.started_at);
        }
        self.compare(|| "the spend".to_owned(), &timeline.spend, run.spend());
        self.compare(|| "the reservation".to_owned(), timeline.reserved(), state.reserved);
        self.compare(|| "the metrics".to_owned(), &timeline.metrics, run.metrics());
        self.compare(|| "the reasons of the pause".to_owned(), timeline.pauses(), &state.pauses);
        self.compare(|| "having ended".to_owned(), timeline.ended_at.is_some(), run.status().is_end());
    }

    /// Every token that the run has in memory, and no other visit is live.
    fn of_visits(&mut self, timeline: &Timeline, run: &Run) {
        for token in run.tokens() {
            match timeline.visits.get(&token.id) {
                Some(visit) => self.of_visit(visit, token, run),
                None => self.0.push(format!("the timeline does not know token {}", token.id)),
            }
        }
        let live = timeline.visits.values().filter(|visit| !visit.place().is_end());
        let live: Vec<TokenId> = live.map(|visit| visit.token).collect();
        let is: Vec<TokenId> = run.tokens().filter(|token| token.is_live()).map(|token| token.id).collect();
        self.compare(|| "the set of live tokens".to_owned(), live, is);
        let kept: Vec<TokenId> = timeline.reopenable().iter().copied().collect();
        let is: Vec<TokenId> = run.tokens().filter(|token| !token.is_live()).map(|token| token.id).collect();
        self.compare(|| "what a retry would reopen".to_owned(), kept, is);
    }

    fn of_visit(&mut self, visit: &Visit, token: &Token, run: &Run) {
        let what = |of: &str| format!("{of} of token {}", token.id);
        self.compare(|| what("the place"), visit.place(), token.status());
        if token.is_live() {
            self.compare(|| what("the status"), visit.status, token.status());
        }
        self.compare(|| what("the node"), &visit.node, &run.graph().node(NodeIx(token.node)).reference);
        self.compare(|| what("the parent"), visit.parent, token.parent);
        self.compare(|| what("the transition"), &visit.via, &token.via);
        self.compare(|| what("the attempt"), visit.attempts, token.attempt);
        self.compare(|| what("being abandoned"), visit.straggler, token.straggler.is_some());
        self.compare(|| what("the creation"), visit.created_at, token.created_at);
        if !visit.straggler {
            self.compare(|| what("the branch"), visit.branch, token.branch);
        }
        match &token.place {
            Place::Retrying { wake_at: at } | Place::Sleeping { until: at, .. } => {
                self.compare(|| what("the time to wake"), visit.wakes_at, Some(*at));
            }
            Place::Escalated { gate, .. } | Place::WaitingForHuman { gate, .. } => {
                self.compare(|| what("the gate"), visit.gate, Some(*gate));
            }
            Place::WaitingForSubworkflow { child, .. } => {
                self.compare(|| what("the child"), visit.child.as_ref(), Some(child));
            }
            Place::WaitingForSiblings { group } => {
                self.compare(|| what("the fan-in"), visit.at, Some(*group));
            }
            Place::Dispatched { .. }
            | Place::Pending
            | Place::WaitingForEvent { .. }
            | Place::Ended { .. } => {}
        }
    }

    /// What is out is what has not reported, with what is reserved for it.
    fn of_attempts(&mut self, timeline: &Timeline, run: &Run) {
        let attempts = timeline.visits.values().flat_map(|visit| {
            let out = visit.history.iter().filter(|attempt| attempt.ended_at.is_none());
            out.map(|attempt| ((visit.token, attempt.number), (attempt.reserved, attempt.child.clone())))
        });
        let is = run.state().out.iter().map(|(key, out)| (*key, (out.reserved, out.child.clone())));
        let (told, is): (BTreeMap<_, _>, BTreeMap<_, _>) = (attempts.collect(), is.collect());
        self.compare(|| "the set of attempts that are out".to_owned(), told, is);
        let mut spend = Spend::default();
        timeline.visits.values().for_each(|visit| spend.add(&visit.spend));
        self.compare(|| "the sum of all visits".to_owned(), spend.usd_micros, run.spend().usd_micros);
        self.compare(|| "the tokens of all visits".to_owned(), spend.tokens(), run.spend().tokens());
    }

    fn of_groups(&mut self, timeline: &Timeline, run: &Run) {
        let groups = &run.state().groups;
        for (id, group) in groups {
            let Some(view) = timeline.groups.get(id).filter(|view| view.is_kept()) else {
                self.0.push(format!("the timeline does not have group {id} any more"));
                continue;
            };
            let GroupView { origin, outer, total, arrived, closed, .. } = view;
            let told = (*origin, *outer, *total, *arrived, *closed, view.done());
            let is = (group.origin, group.outer, group.total, group.arrived, group.closed, group.done);
            self.compare(|| format!("group {id} (origin, outer, total, arrived, closed, done)"), told, is);
            let joins_at = group.target.map(|ix| run.graph().node(NodeIx(ix)).reference.clone());
            self.compare(|| format!("the fan-in of group {id}"), &view.joins_at, &joins_at);
        }
        let kept = timeline.groups.iter().filter(|(_, view)| view.is_kept()).map(|(id, _)| *id);
        let kept: Vec<_> = kept.collect();
        self.compare(|| "the set of groups".to_owned(), kept, groups.keys().copied().collect());
    }

    fn of_gates(&mut self, timeline: &Timeline, run: &Run) {
        let told: Vec<_> = timeline.open_gates().map(|(id, _)| id).collect();
        self.compare(|| "the set of open gates".to_owned(), told, run.gates().map(|(id, _)| id).collect());
        for (id, gate) in run.gates() {
            let Some(view) = timeline.gates.get(&id) else { continue };
            let GateHistory { kind, token, opened_at, assignees, deadline, .. } = view;
            let told = (*kind, *token, *opened_at, assignees, *deadline);
            let is = (gate.record.kind, gate.token, gate.opened_at, &gate.assignees, gate.deadline);
            self.compare(|| format!("gate {id}"), told, is);
            let answers = view.answers.iter().map(|answer| (answer.by.clone(), answer.answer.clone()));
            self.compare(|| format!("the answers of gate {id}"), answers.collect(), gate.answers.clone());
        }
        let closed = timeline.gates.iter().filter_map(|(id, gate)| Some((*id, gate.closed.as_ref()?)));
        let told: Vec<_> = closed.map(|(id, end)| (id, end.by.clone(), end.at)).collect();
        let closed = run.state().gates_closed.iter();
        let is = closed.map(|(id, closing)| (*id, closing.by.clone(), closing.at)).collect();
        self.compare(|| "the set of closed gates".to_owned(), told, is);
    }

    fn of_budgets(&mut self, timeline: &Timeline, run: &Run) {
        let state = run.state();
        let is = BudgetState { raised: state.raised, warned: state.budget_warned };
        self.compare(|| "the run's budget".to_owned(), timeline.run_budget, is);
        let allowed = state.start.as_ref().and_then(|start| start.allowance).map(|mut allowed| {
            allowed.add(&state.granted);
            allowed
        });
        self.compare(|| "what the parent allows".to_owned(), timeline.allowance, allowed);
        for (node, is) in &state.node_spend {
            self.of_node_budget(node, timeline, is);
        }
    }

    fn of_node_budget(&mut self, node: &Name, timeline: &Timeline, is: &NodeSpend) {
        let told = timeline.node_budgets.get(node).copied().unwrap_or_default();
        let state = BudgetState { raised: is.raised, warned: is.warned };
        self.compare(|| format!("the budget of node {node}"), told, state);
        let reserved = timeline.reserved_by(|visit| visit.node == *node);
        self.compare(|| format!("what is reserved for node {node}"), reserved, is.reserved);
        let mut spend = Spend::default();
        let visits = timeline.visits.values().filter(|visit| visit.node == *node);
        visits.for_each(|visit| spend.add(&visit.spend));
        self.compare(|| format!("the cost of node {node}"), spend.usd_micros, is.spend.usd_micros);
    }

    fn of_mutations(&mut self, timeline: &Timeline, run: &Run) {
        let changes = timeline.mutations.iter().map(|mutated| &mutated.what);
        let of_graph = changes.clone().filter_map(|what| match what {
            RunChange::Graph(mutation) => Some(mutation.clone()),
            _ => None,
        });
        let told: Vec<_> = of_graph.collect();
        self.compare(|| "the changes of the graph".to_owned(), &told, &run.state().mutations);
        let downgrades = changes.filter(|what| **what == RunChange::Downgrade).count();
        let is = run.state().downgrades as usize;
        self.compare(|| "the number of downgrades".to_owned(), downgrades, is);
    }
}
