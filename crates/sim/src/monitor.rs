//! What must hold after every input, whatever the workflow. Kept from events, moves and commands alone and
//! compared with the run, so that the run's own bookkeeping is checked and not believed.

mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::Run;
use wonder_core::command::Command;
use wonder_core::cost::Allowance;
use wonder_core::event::{Event, EventKind, GateId, GroupId, NewToken, TokenId};
use wonder_core::input::{Input, Rejection};
use wonder_core::lifecycle::{ROWS, RunStatus, TokenStatus};
use wonder_core::run::Step;
use wonder_core::time::Time;
use wonder_engine::timeline::Timeline;

/// How often each row of the lifecycle was walked.
#[derive(Clone, Debug, Default)]
pub struct Walked(BTreeMap<(TokenStatus, TokenStatus), u64>);

impl Walked {
    pub fn add(&mut self, other: &Walked) {
        other.0.iter().for_each(|(row, times)| *self.0.entry(*row).or_default() += times);
    }

    pub fn times(&self, row: (TokenStatus, TokenStatus)) -> u64 {
        self.0.get(&row).copied().unwrap_or(0)
    }

    /// Rows that nobody has walked.
    pub fn missing(&self) -> Vec<(TokenStatus, TokenStatus)> {
        ROWS.iter().copied().filter(|row| self.times(*row) == 0).collect()
    }

    /// Every row with its count, as in the table.
    pub fn report(&self) -> String {
        let rows = ROWS.iter().map(|row| format!("{:>10}  {} → {}\n", self.times(*row), row.0, row.1));
        rows.collect()
    }
}

/// One attempt of one token.
type Attempt = (TokenId, u32);

/// Whether what was asked for has been called back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OrderState {
    Wanted,
    CalledBack,
}

#[derive(Clone, Debug, Default)]
pub struct Monitor {
    /// Every token that was ever made.
    tokens: BTreeMap<TokenId, TokenStatus>,
    tasks: BTreeMap<Attempt, OrderState>,
    children: BTreeMap<Attempt, OrderState>,
    gates: BTreeSet<GateId>,
    fired: BTreeSet<GroupId>,
    failed: BTreeSet<GroupId>,
    arrived: BTreeMap<GroupId, BTreeSet<u32>>,
    seq: u64,
    now: Time,
    ended: bool,
    walked: Walked,
    /// What whoever shows the run knows of it.
    timeline: Timeline,
}

impl Monitor {
    /// Takes over a run that others have brought to here.
    pub fn of(run: &Run, log: &[Event]) -> Monitor {
        let mut monitor =
            Monitor { now: run.state().now, ended: run.status().is_end(), ..Monitor::default() };
        for event in log {
            monitor.event(event, event.at, &mut Vec::new());
        }
        // Of the tokens that have ended only those are known that a retry may want.
        monitor.tokens.values_mut().for_each(|status| *status = TokenStatus::Completed);
        monitor.tokens.extend(run.tokens().map(|token| (token.id, token.status())));
        for command in run.owed() {
            match command {
                Command::RunTask(order) => {
                    monitor.tasks.insert((order.token, order.attempt), OrderState::Wanted);
                }
                Command::StartChild(order) => {
                    monitor.children.insert((order.token, order.attempt), OrderState::Wanted);
                }
                _ => {}
            }
        }
        monitor
    }

    pub fn walked(&self) -> &Walked {
        &self.walked
    }

    /// What is wrong after this step; nothing, one hopes.
    pub fn after(&mut self, run: &Run, input: &Input, step: &Step, now: Time) -> Vec<String> {
        let mut wrong = Vec::new();
        let retried = step.events.iter().any(|event| matches!(event.kind, EventKind::RunRetried { .. }));
        if self.ended && !retried {
            self.late_reports(step, &mut wrong);
        }
        if retried {
            self.ended = false;
        }
        self.answered(input);
        for event in &step.events {
            self.event(event, now, &mut wrong);
        }
        self.moves(step, retried, &mut wrong);
        self.commands(step, &mut wrong);
        self.token_counts(run, &mut wrong);
        self.owed(run, &mut wrong);
        self.ending(run, &mut wrong);
        wrong.extend(timeline::differences(&self.timeline, run));
        wrong
    }

    /// A refusal is the host's mistake or a person's, never that of a task which was wanted.
    pub fn refused(&self, run: &Run, input: &Input, rejection: &Rejection) -> Vec<String> {
        let wanted = match input {
            Input::TaskFinished { token, attempt, .. } => self.tasks.get(&(*token, *attempt)),
            Input::ChildFinished { token, attempt, .. } => self.children.get(&(*token, *attempt)),
            _ => None,
        };
        match wanted {
            Some(OrderState::Wanted) if !run.status().is_end() => {
                vec![format!("a report that was wanted is refused: {rejection}")]
            }
            _ => Vec::new(),
        }
    }

    /// An ended run takes late reports and asks for nothing.
    fn late_reports(&self, step: &Step, wrong: &mut Vec<String>) {
        let late = |event: &Event| {
            matches!(event.kind, EventKind::LateReport { .. } | EventKind::ChildCompleted { .. })
        };
        if let Some(event) = step.events.iter().find(|event| !late(event)) {
            wrong.push(format!("{} after the run's end", event.kind.name()));
        }
        if let Some(command) = step.commands.first() {
            wrong.push(format!("a command after the run's end: {command:?}"));
        }
    }

    fn answered(&mut self, input: &Input) {
        match input {
            Input::TaskFinished { token, attempt, .. } => drop(self.tasks.remove(&(*token, *attempt))),
            Input::ChildFinished { token, attempt, .. } => drop(self.children.remove(&(*token, *attempt))),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, now: Time, wrong: &mut Vec<String>) {
        if event.seq != self.seq + 1 {
            wrong.push(format!("event {} follows event {}", event.seq, self.seq));
        }
        if event.at < self.now || event.at > now.max(self.now) {
            wrong.push(format!(
                "event {} is of {}, it is {now}, and {} was before",
                event.seq, event.at, self.now
            ));
        }
        (self.seq, self.now) = (event.seq, self.now.max(event.at));
        self.timeline.learn(event);
        match &event.kind {
            EventKind::TokenCreated(NewToken { token, .. }) => {
                let last = self.tokens.keys().next_back().map_or(0, |last| last.0);
                if token.0 != last + 1 {
                    wrong.push(format!("token {token} is minted after token {last}"));
                }
                self.tokens.insert(*token, TokenStatus::Pending);
            }
            EventKind::FanIn { group, arrived, .. } => {
                if !self.fired.insert(*group) || self.failed.contains(group) {
                    wrong.push(format!("the fan-in of group {group} fires a second time"));
                }
                let recorded = self.arrived.get(group).map_or(0, BTreeSet::len);
                if recorded < *arrived as usize {
                    wrong
                        .push(format!("group {group} fires with {arrived} arrived, {recorded} are recorded"));
                }
            }
            EventKind::FanInFailed { group, .. } => {
                let decided = !self.failed.insert(*group) || self.fired.contains(group);
                wrong
                    .extend(decided.then(|| format!("the fan-in of group {group} is decided a second time")));
            }
            // What failed may be decided again.
            EventKind::RunRetried { .. } => self.failed.clear(),
            EventKind::BranchArrived { group, branch, .. } => {
                if self.fired.contains(group) {
                    wrong.push(format!("branch {branch} arrives at group {group}, which has fired"));
                }
                self.arrived.entry(*group).or_default().insert(*branch);
            }
            EventKind::GateOpened { gate, .. } => {
                let open = !self.gates.insert(*gate);
                wrong.extend(open.then(|| format!("gate {gate} opens a second time")));
            }
            EventKind::GateAnswered { gate, closes: true, .. } | EventKind::GateClosed { gate, .. } => {
                let closed = !self.gates.remove(gate);
                wrong.extend(closed.then(|| format!("gate {gate} closes and was not open")));
            }
            _ => {}
        }
    }

    fn moves(&mut self, step: &Step, retried: bool, wrong: &mut Vec<String>) {
        for step in &step.moves {
            *self.walked.0.entry((step.from, step.to)).or_default() += 1;
            if !ROWS.contains(&(step.from, step.to)) {
                wrong.push(format!("token {} moves from {} to {}", step.token, step.from, step.to));
            }
            if step.from.is_end() && !retried {
                wrong.push(format!("token {} had ended as {} and moves", step.token, step.from));
            }
            match self.tokens.insert(step.token, step.to) {
                Some(known) if known == step.from => {}
                known => {
                    wrong.push(format!("token {} moves from {} and was {known:?}", step.token, step.from))
                }
            }
        }
    }

    fn commands(&mut self, step: &Step, wrong: &mut Vec<String>) {
        for command in &step.commands {
            match command {
                Command::RunTask(order) => {
                    if !self.tokens.contains_key(&order.token) {
                        wrong.push(format!("a task for token {}, which does not exist", order.token));
                    }
                    let at = (order.token, order.attempt);
                    if self.tasks.insert(at, OrderState::Wanted).is_some() {
                        wrong.push(format!("attempt {} of token {} is ordered twice", at.1, at.0));
                    }
                }
                Command::StartChild(order) => {
                    let at = (order.token, order.attempt);
                    if self.children.insert(at, OrderState::Wanted).is_some() {
                        wrong.push(format!(
                            "the child of attempt {} of token {} is started twice",
                            at.1, at.0
                        ));
                    }
                }
                Command::CancelTask { token, attempt } => match self.tasks.get_mut(&(*token, *attempt)) {
                    Some(asked) => *asked = OrderState::CalledBack,
                    None => wrong
                        .push(format!("attempt {attempt} of token {token} is called back and was not out")),
                },
                Command::CancelChild { token, child } => {
                    let at = self
                        .children
                        .keys()
                        .rfind(|(of, attempt)| of == token && is_child(child, *of, *attempt));
                    match at.copied() {
                        Some(at) => drop(self.children.insert(at, OrderState::CalledBack)),
                        None => wrong
                            .push(format!("child {child} of token {token} is called back and was not out")),
                    }
                }
                Command::OpenGate { gate } if !self.gates.contains(gate) && !closes(step, *gate) => {
                    wrong.push(format!("gate {gate} is to be shown and is not open"));
                }
                _ => {}
            }
        }
    }

    /// Every token that was made is live or ended once; the run knows the same ones as live.
    fn token_counts(&self, run: &Run, wrong: &mut Vec<String>) {
        let live = self.tokens.iter().filter(|(_, status)| !status.is_end()).count();
        let mut known = 0;
        for token in run.tokens() {
            known += usize::from(token.is_live());
            let status = self.tokens.get(&token.id);
            if status != Some(&token.status()) {
                wrong.push(format!("token {} is {}, its moves say {status:?}", token.id, token.status()));
            }
        }
        if known != live {
            wrong.push(format!("{known} tokens are live in the run, {live} by their moves"));
        }
        let counted = &run.state().token_counts;
        if counted.live + counted.abandoned + counted.late != live as u64 {
            wrong.push(format!("the run counts {counted:?}, {live} tokens are live"));
        }
        let mut reserved = Allowance::default();
        run.state().out.values().for_each(|out| reserved.add(&out.reserved));
        if run.state().reserved != reserved {
            wrong.push(format!("{:?} is reserved, what is out sums to {reserved:?}", run.state().reserved));
        }
    }

    /// What is owed is what was asked for and not answered.
    fn owed(&self, run: &Run, wrong: &mut Vec<String>) {
        let wanted = |asked: &BTreeMap<Attempt, OrderState>| -> Vec<Attempt> {
            asked.iter().filter(|(_, asked)| **asked == OrderState::Wanted).map(|(at, _)| *at).collect()
        };
        let (mut tasks, mut children, mut gates) = (Vec::new(), Vec::new(), Vec::new());
        for command in run.owed() {
            match command {
                Command::RunTask(order) => tasks.push((order.token, order.attempt)),
                Command::StartChild(order) => children.push((order.token, order.attempt)),
                Command::OpenGate { gate } => gates.push(gate),
                _ => {}
            }
        }
        tasks.sort();
        children.sort();
        gates.sort();
        if tasks != wanted(&self.tasks) {
            wrong.push(format!("owed tasks {tasks:?}, asked for and not answered {:?}", wanted(&self.tasks)));
        }
        if children != wanted(&self.children) {
            wrong.push(format!(
                "owed children {children:?}, asked for and not answered {:?}",
                wanted(&self.children)
            ));
        }
        if !gates.iter().eq(&self.gates) {
            wrong.push(format!("owed gates {gates:?}, open are {:?}", self.gates));
        }
    }

    fn ending(&mut self, run: &Run, wrong: &mut Vec<String>) {
        if !run.status().is_end() {
            return;
        }
        self.ended = true;
        let live: Vec<TokenId> = run.tokens().filter(|token| token.is_live()).map(|token| token.id).collect();
        if !live.is_empty() {
            wrong.push(format!("the run is {} and tokens {live:?} are live", run.status()));
        }
        if !self.gates.is_empty() {
            wrong.push(format!("the run is {} and gates {:?} are open", run.status(), self.gates));
        }
        if let Some(deadline) = run.next_deadline() {
            wrong.push(format!("the run is {} and wants to be woken at {deadline}", run.status()));
        }
        if run.status() == RunStatus::Completed
            && self.tasks.values().any(|asked| *asked == OrderState::Wanted)
        {
            wrong.push("the run is completed and a task is out".to_owned());
        }
    }
}

/// Child ids end with the token and the attempt that they belong to.
fn is_child(child: &str, token: TokenId, attempt: u32) -> bool {
    child.ends_with(&format!(".{token}.{attempt}"))
}

/// A gate may open and close in one step.
fn closes(step: &Step, gate: GateId) -> bool {
    step.commands.contains(&Command::CloseGate { gate })
}
