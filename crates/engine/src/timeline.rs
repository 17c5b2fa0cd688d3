//! A run as its events tell it: every visit of every node with its times, attempts and cost.
//!
//! A fold over events, for whoever shows a run: the live tree, `show`, the timeline. The run itself forgets
//! what has ended; this remembers it. It decides nothing and is stored nowhere.

use std::collections::BTreeMap;

use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::event::{BranchRef, Event, EventKind, GateId, GateKind, GroupId, Report, Then, TokenId};
use wonder_core::{RunStatus, Time, TokenStatus, Value};

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub seq: u64,
    pub workflow: Option<Name>,
    pub status: RunStatus,
    pub started_at: Time,
    pub last_at: Time,
    pub ended_at: Option<Time>,
    pub visits: BTreeMap<TokenId, Visit>,
    pub groups: BTreeMap<GroupId, GroupView>,
    pub gates: BTreeMap<GateId, OpenGate>,
    pub spend: Spend,
    pub mutations: Vec<String>,
}

/// One token: one visit of one node.
#[derive(Clone, Debug)]
pub struct Visit {
    pub token: TokenId,
    pub node: Name,
    pub parent: Option<TokenId>,
    pub branch: Option<BranchRef>,
    pub status: TokenStatus,
    pub attempts: u32,
    /// Tries of its actions beyond the first of each.
    pub tries: u32,
    pub created_at: Time,
    /// When its first attempt was dispatched, or its wait began.
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub spend: Spend,
    pub child: Option<Name>,
    pub gate: Option<GateId>,
    /// The end of a backoff or a sleep.
    pub wakes_at: Option<Time>,
    pub failure: Option<String>,
    /// The fan-in it waits or waited at.
    at: Option<GroupId>,
    /// It has no end of its own: the run ended with it in the air.
    ended_with_run: bool,
}

/// One firing of a fan-out.
#[derive(Clone, Debug)]
pub struct GroupView {
    pub node: Name,
    pub origin: TokenId,
    pub total: u32,
    pub arrived: u32,
    pub joins_at: Option<Name>,
    pub items: Value,
    pub closed: bool,
}

#[derive(Clone, Debug)]
pub struct OpenGate {
    pub kind: GateKind,
    pub title: String,
    pub token: Option<TokenId>,
    pub opened_at: Time,
}

impl Timeline {
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Timeline {
        let mut timeline = Timeline::default();
        events.into_iter().for_each(|event| timeline.learn(event));
        timeline
    }

    /// The next event. One that is known already changes nothing.
    pub fn learn(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        (self.seq, self.last_at) = (event.seq, event.at);
        let at = event.at;
        match &event.kind {
            EventKind::TokenCreated { token, node, parent, branch, .. } => {
                self.visits.insert(*token, Visit::new(*token, node.clone(), *parent, *branch, at));
            }
            EventKind::FanOut { group, token, node, total, joins_at, items, .. } => {
                let view = GroupView {
                    node: node.clone(),
                    origin: *token,
                    total: *total,
                    arrived: 0,
                    joins_at: joins_at.clone(),
                    items: items.clone(),
                    closed: false,
                };
                self.groups.insert(*group, view);
            }
            EventKind::GateOpened { gate, token, record, report } => {
                let open =
                    OpenGate { kind: record.kind, title: record.title.clone(), token: *token, opened_at: at };
                self.gates.insert(*gate, open);
                let waits = if record.kind == GateKind::Node {
                    TokenStatus::WaitingForHuman
                } else {
                    TokenStatus::Escalated
                };
                if let Some(visit) = token.and_then(|token| self.reported(token, report)) {
                    visit.gate = Some(*gate);
                    visit.to(waits, at);
                }
            }
            EventKind::GateAnswered { gate, closes: true, .. } | EventKind::GateClosed { gate, .. } => {
                self.gates.remove(gate);
            }
            EventKind::RunMutated { reason, .. } => self.mutations.push(reason.clone()),
            EventKind::LateReport { token, report, .. } => {
                let report = Some(report.clone());
                self.reported(*token, &report);
            }
            kind if self.learn_of_run(kind, at) || self.learn_of_group(kind, at) => {}
            kind => self.learn_of_token(kind, at),
        }
    }

    fn learn_of_run(&mut self, kind: &EventKind, at: Time) -> bool {
        match kind {
            EventKind::RunQueued { workflow, .. } => {
                (self.workflow, self.started_at) = (Some(workflow.clone()), at);
            }
            EventKind::RunStarted { workflow, .. } => {
                (self.workflow, self.started_at) = (Some(workflow.clone()), at);
                self.status = RunStatus::Running;
            }
            EventKind::RunReleased => self.status = RunStatus::Running,
            EventKind::RunPaused { .. } => self.status = RunStatus::Paused,
            EventKind::RunResumed { .. } => self.status = RunStatus::Running,
            EventKind::RunCancelling { .. } => {
                self.status = RunStatus::Cancelling;
                self.close(TokenStatus::Cancelled, at);
            }
            EventKind::RunCompleted { .. } => self.end(RunStatus::Completed, TokenStatus::Cancelled, at),
            EventKind::RunFailed { .. } => self.end(RunStatus::Failed, TokenStatus::Cancelled, at),
            EventKind::RunCancelled { .. } => self.end(RunStatus::Cancelled, TokenStatus::Cancelled, at),
            EventKind::RunTimedOut { .. } => self.end(RunStatus::TimedOut, TokenStatus::TimedOut, at),
            EventKind::RunRetried { .. } => self.reopen(),
            _ => return false,
        }
        true
    }

    fn end(&mut self, status: RunStatus, tokens: TokenStatus, at: Time) {
        (self.status, self.ended_at) = (status, Some(at));
        self.close(tokens, at);
        self.gates.clear();
    }

    fn close(&mut self, status: TokenStatus, at: Time) {
        for visit in self.visits.values_mut().filter(|visit| visit.ended_at.is_none()) {
            visit.to(status, at);
            visit.ended_with_run = true;
        }
    }

    /// What failed, timed out or ended with the run is open again.
    fn reopen(&mut self) {
        (self.status, self.ended_at) = (RunStatus::Running, None);
        for visit in self.visits.values_mut() {
            let failed = matches!(visit.status, TokenStatus::Failed | TokenStatus::TimedOut);
            if failed || visit.ended_with_run {
                visit.status = TokenStatus::Pending;
                (visit.ended_at, visit.ended_with_run) = (None, false);
            }
        }
    }

    fn learn_of_group(&mut self, kind: &EventKind, at: Time) -> bool {
        match kind {
            EventKind::BranchArrived { token, group, .. } => {
                if let Some(view) = self.groups.get_mut(group) {
                    view.arrived += 1;
                }
                if let Some(visit) = self.visits.get_mut(token).filter(|visit| visit.at.is_none()) {
                    visit.at = Some(*group);
                    visit.to(TokenStatus::WaitingForSiblings, at);
                }
            }
            EventKind::FanIn { group, .. } => self.close_group(*group, TokenStatus::Completed, at),
            EventKind::FanInFailed { group, .. } => self.close_group(*group, TokenStatus::Failed, at),
            EventKind::GroupClosed { group, .. } => self.close_group(*group, TokenStatus::Cancelled, at),
            _ => return false,
        }
        true
    }

    fn close_group(&mut self, group: GroupId, status: TokenStatus, at: Time) {
        if let Some(view) = self.groups.get_mut(&group) {
            view.closed = true;
        }
        let here =
            |visit: &&mut Visit| visit.at == Some(group) && visit.status == TokenStatus::WaitingForSiblings;
        // The tokens of a group were created after the group.
        self.visits.values_mut().filter(here).for_each(|visit| visit.to(status, at));
    }

    fn learn_of_token(&mut self, kind: &EventKind, at: Time) {
        let Some((token, report)) = reporter(kind) else { return };
        let Some(visit) = self.reported(token, report) else { return };
        match kind {
            EventKind::TaskDispatched { attempt, .. } => {
                visit.attempts = *attempt;
                visit.wakes_at = None;
                visit.to(TokenStatus::Dispatched, at);
            }
            EventKind::TaskRetrying { failure, wake_at, .. } => {
                visit.failure = Some(failure.to_string());
                visit.wakes_at = Some(*wake_at);
                visit.to(TokenStatus::Retrying, at);
            }
            EventKind::TaskCompleted { then: Then::Arrives(group), .. }
            | EventKind::TokenSkipped { then: Then::Arrives(group), .. } => {
                visit.at = Some(*group);
                visit.to(TokenStatus::WaitingForSiblings, at);
            }
            EventKind::TaskCompleted { .. } => visit.to(TokenStatus::Completed, at),
            EventKind::TaskFailed { failure, timed_out, .. } => {
                visit.failure = Some(failure.to_string());
                visit.to(if *timed_out { TokenStatus::TimedOut } else { TokenStatus::Failed }, at);
            }
            EventKind::TokenSkipped { failure, .. } => {
                visit.failure = failure.as_ref().map(ToString::to_string);
                visit.to(TokenStatus::Skipped, at);
            }
            EventKind::TokenCancelled { .. } => visit.to(TokenStatus::Cancelled, at),
            EventKind::TokenTimedOut { ends: true, .. } => visit.to(TokenStatus::TimedOut, at),
            EventKind::SleepStarted { until, .. } => {
                visit.wakes_at = Some(*until);
                visit.to(TokenStatus::Sleeping, at);
            }
            EventKind::EventAwaited { .. } => visit.to(TokenStatus::WaitingForEvent, at),
            EventKind::TokenReleased { resumed, .. } => {
                visit.to(if *resumed { TokenStatus::Dispatched } else { TokenStatus::Pending }, at);
            }
            EventKind::ChildStarted { child, attempt, .. } => {
                visit.child = Some(child.clone());
                visit.attempts = *attempt;
                visit.to(TokenStatus::WaitingForSubworkflow, at);
            }
            EventKind::ChildCompleted { spend, .. } => {
                visit.spend.add(spend);
                self.spend.add(spend);
            }
            _ => {}
        }
    }

    fn reported(&mut self, token: TokenId, report: &Option<Report>) -> Option<&mut Visit> {
        if let Some(report) = report {
            self.spend.add(&report.spend);
        }
        let visit = self.visits.get_mut(&token)?;
        if let Some(report) = report {
            visit.spend.add(&report.spend);
            visit.tries += report.tries;
        }
        Some(visit)
    }
}

impl Visit {
    fn new(
        token: TokenId,
        node: Name,
        parent: Option<TokenId>,
        branch: Option<BranchRef>,
        at: Time,
    ) -> Visit {
        Visit {
            token,
            node,
            parent,
            branch,
            status: TokenStatus::Pending,
            attempts: 0,
            tries: 0,
            created_at: at,
            started_at: None,
            ended_at: None,
            spend: Spend::default(),
            child: None,
            gate: None,
            wakes_at: None,
            failure: None,
            at: None,
            ended_with_run: false,
        }
    }

    fn to(&mut self, status: TokenStatus, at: Time) {
        self.status = status;
        if self.started_at.is_none() && status != TokenStatus::Pending {
            self.started_at = Some(at);
        }
        // Arriving at a fan-in is the end of a node's work, though not of its token.
        let done = status.is_end() || status == TokenStatus::WaitingForSiblings;
        self.ended_at = if done { self.ended_at.or(Some(at)) } else { None };
    }

    /// How long it has been at it, until it ended or until `now`.
    pub fn elapsed_ms(&self, now: Time) -> u64 {
        self.ended_at.unwrap_or(now).since(self.started_at.unwrap_or(self.created_at))
    }
}

/// The token an event is about, and what a worker said with it.
fn reporter(kind: &EventKind) -> Option<(TokenId, &Option<Report>)> {
    const NOTHING: &Option<Report> = &None;
    match kind {
        EventKind::TaskRetrying { token, report, .. }
        | EventKind::TaskCompleted { token, report, .. }
        | EventKind::TaskFailed { token, report, .. }
        | EventKind::TokenSkipped { token, report, .. }
        | EventKind::TokenCancelled { token, report, .. } => Some((*token, report)),
        EventKind::TaskDispatched { token, .. }
        | EventKind::TokenTimedOut { token: Some(token), .. }
        | EventKind::SleepStarted { token, .. }
        | EventKind::EventAwaited { token, .. }
        | EventKind::TokenReleased { token, .. }
        | EventKind::ChildStarted { token, .. }
        | EventKind::ChildCompleted { token, .. } => Some((*token, NOTHING)),
        _ => None,
    }
}
