//! Budgets: whether there is room for what a dispatch may cost at worst, and what happens if not. Checked
//! before the call, in integers.

use crate::backoff::TRIES;
use crate::command::Command;
use crate::cost::{self, Allowance, Spend};
use crate::def::{Backoff, Budget, Name, OnExceeded};
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, GateKind, GateRecord, NewChild, PauseReason, RuleRef, RunChange, TokenId};
use crate::graph::Node;
use crate::lifecycle::TokenStatus;
use crate::state::{NodeSpend, Raised};

use super::Decision;
use super::dispatch::Sent;
use super::fail::Failed;

pub(super) enum Room {
    Fits,
    /// Not now: other reservations are out and may come back smaller.
    Later,
    LaterInNode,
    Never(Over),
}

/// A budget that cannot take what is asked.
pub(super) struct Over {
    /// A node's own budget, else the run's.
    node: Option<Name>,
    /// It is what the parent run allows.
    of_parent: bool,
    on_exceeded: OnExceeded,
    message: String,
}

/// What bounds a run's spending: its own budget, or what its parent allows.
struct Bound {
    budget: Budget,
    of_parent: bool,
}

impl Bound {
    fn over(self, message: &str) -> Over {
        let whose = if self.of_parent { "allowed by the parent run: " } else { "" };
        Over {
            node: None,
            of_parent: self.of_parent,
            on_exceeded: self.budget.on_exceeded,
            message: format!("{whose}{message}"),
        }
    }
}

impl Decision<'_> {
    pub(super) fn room_for(&self, node: &Node, wanted: &Allowance) -> Room {
        let state = self.state();
        let over_run = self.bounds().into_iter().find_map(|bound| {
            let message = over(&bound.budget, &state.spend, &state.reserved, wanted)?;
            Some(bound.over(&message))
        });
        if let Some(over) = over_run {
            return if state.reserved == Allowance::default() { Room::Never(over) } else { Room::Later };
        }
        let Some((budget, spent)) = self.node_budget(node) else { return Room::Fits };
        match over(&budget, &spent.spend, &spent.reserved, wanted)
            .or_else(|| out_of_time(&budget, &spent.spend))
        {
            None => Room::Fits,
            Some(_) if spent.reserved != Allowance::default() => Room::LaterInNode,
            Some(message) => Room::Never(self.over_node(node, &budget, &message)),
        }
    }

    /// What bounds the run's spending. What a parent allows comes with what the parent's budget says to do.
    fn bounds(&self) -> Vec<Bound> {
        let state = self.state();
        let start = state.start.as_ref();
        let told = |amount: u64, granted: u64| (amount > 0).then(|| amount.saturating_add(granted));
        let by_parent = start.and_then(|start| start.allowance).map(|allowed| Budget {
            usd_micros: told(allowed.usd_micros, state.granted.usd_micros),
            tokens: told(allowed.tokens, state.granted.tokens),
            calls: told(allowed.calls, state.granted.calls),
            on_exceeded: start.and_then(|start| start.on_exceeded).unwrap_or(OnExceeded::Fail),
            ..Budget::default()
        });
        let own = self.run_budget().map(|budget| Bound { budget, of_parent: false });
        own.into_iter().chain(by_parent.map(|budget| Bound { budget, of_parent: true })).collect()
    }

    fn over_node(&self, node: &Node, budget: &Budget, message: &str) -> Over {
        let message = format!("node {}: {message}", self.run.graph().written(node));
        let node = Some(node.reference.clone());
        Over { node, of_parent: false, on_exceeded: budget.on_exceeded, message }
    }

    /// The run's budget as it now is: raised by people, perhaps more than once.
    pub(super) fn run_budget(&self) -> Option<Budget> {
        self.run.graph().budget.map(|budget| raise(budget, &self.state().raised))
    }

    fn node_budget(&self, node: &Node) -> Option<(Budget, &NodeSpend)> {
        let spent = self.state().node_spend.get(&node.reference)?;
        Some((raise(node.budget?, &spent.raised), spent))
    }

    /// Whether there is anything left that a child could spend, in the run's budgets and in its node's.
    pub(super) fn room_for_child(&self, node: &Node) -> Room {
        let state = self.state();
        let spent = |bound: &Bound| nothing_left(&bound.budget, &state.spend, &state.reserved);
        let message = "nothing is left for a child run";
        if let Some(bound) = self.bounds().into_iter().find(spent) {
            if state.reserved != Allowance::default() {
                return Room::Later;
            }
            return Room::Never(bound.over(message));
        }
        match self.node_budget(node) {
            Some((own, spent)) if nothing_left(&own, &spent.spend, &spent.reserved) => {
                if spent.reserved != Allowance::default() {
                    return Room::LaterInNode;
                }
                Room::Never(self.over_node(node, &own, message))
            }
            _ => Room::Fits,
        }
    }

    /// What a child may spend: the smaller of its own budget and what is left; and what the budgets that
    /// leave it so little say to do when it is spent, the strictest of them. None without a bound.
    pub(super) fn allowance_for_child(
        &self,
        workflow: &str,
        node: &Node,
    ) -> (Option<Allowance>, Option<OnExceeded>) {
        let state = self.state();
        let start = state.start.as_ref();
        let own = start.and_then(|start| start.child_budgets.get(workflow)).copied().unwrap_or_default();
        let of_run = self.bounds().into_iter().map(|bound| (bound.budget, &state.spend, &state.reserved));
        let of_node = self.node_budget(node).map(|(bound, spent)| (bound, &spent.spend, &spent.reserved));
        let bounds: Vec<_> = of_run.chain(of_node).collect();
        let mut policies = Vec::new();
        let mut least = |left: fn(&Budget, &Spend, &Allowance) -> Option<u64>, own: u64| {
            let left =
                bounds.iter().filter_map(|(b, spent, out)| Some((left(b, spent, out)?, b.on_exceeded)));
            let left: Vec<(u64, OnExceeded)> = left.collect();
            let least = left.iter().map(|(left, _)| *left).min()?;
            policies.extend(left.iter().filter(|(left, _)| *left == least).map(|(_, policy)| *policy));
            Some(if own > 0 { least.min(own) } else { least })
        };
        let usd =
            least(|b, s, r| Some(b.usd_micros?.saturating_sub(s.usd_micros + r.usd_micros)), own.usd_micros);
        let tokens = least(|b, s, r| Some(b.tokens?.saturating_sub(s.tokens() + r.tokens)), own.tokens);
        let calls = least(|b, s, r| Some(b.calls?.saturating_sub(s.calls + r.calls)), own.calls);
        let any = usd.or(tokens).or(calls).is_some();
        let allowance = any.then(|| Allowance {
            usd_micros: usd.unwrap_or(0),
            tokens: tokens.unwrap_or(0),
            calls: calls.unwrap_or(0),
        });
        let strictest = [OnExceeded::Fail, OnExceeded::Pause, OnExceeded::Downgrade];
        (allowance, strictest.into_iter().find(|policy| policies.contains(policy)))
    }

    /// Somebody raises a budget: by so many dollars, or every bound by what is written.
    pub(super) fn raise_budget(&mut self, node: Option<Name>, of_parent: bool, asked: Option<u64>) {
        let graph = self.graph();
        if of_parent {
            let allowed = self.state().start.as_ref().and_then(|start| start.allowance).unwrap_or_default();
            let by = asked.map_or(allowed, |usd_micros| Allowance { usd_micros, ..Allowance::default() });
            return self.record(raised(None, true, &by));
        }
        let budget = match &node {
            Some(node) => graph.find_node(node).and_then(|node| graph.node(node).budget),
            None => graph.budget,
        };
        let own = budget.and_then(|budget| budget.usd_micros).unwrap_or(0);
        let (usd_micros, whole) = (asked.unwrap_or(own), asked.is_none());
        let (tokens, calls, of_parent) = (0, 0, false);
        self.record(EventKind::BudgetRaised { node, usd_micros, tokens, calls, whole, of_parent });
    }

    /// What a child spent beyond its allowance, somebody granted there: here it counts as raised, as far as
    /// it would not have fitted.
    pub(super) fn raise_by_child(&mut self, id: TokenId, attempt: u32, spend: &Spend) {
        let Some(out) = self.state().out.get(&(id, attempt)) else { return };
        let asks = matches!(
            self.state().child_orders.get(&(id, attempt)),
            Some(NewChild { on_exceeded: Some(OnExceeded::Pause | OnExceeded::Downgrade), .. })
        );
        if !asks || !self.is_open() {
            return;
        }
        let (graph, reserved) = (self.graph(), out.reserved);
        let node = graph.node(crate::graph::NodeIx(out.node));
        let state = self.state();
        let lacking = |budget: &Budget, spent: &Spend, out: &Allowance| {
            let mut used = Allowance::of(spent);
            used.add(out);
            used.subtract(&reserved);
            used.add(&Allowance::of(spend));
            let mut beyond = Allowance::of(spend);
            beyond.subtract(&reserved);
            let lack = |limit: Option<u64>, reserved: u64, used: u64, beyond: u64| {
                limit.filter(|_| reserved > 0).map_or(0, |limit| used.saturating_sub(limit).min(beyond))
            };
            Allowance {
                usd_micros: lack(budget.usd_micros, reserved.usd_micros, used.usd_micros, beyond.usd_micros),
                tokens: lack(budget.tokens, reserved.tokens, used.tokens, beyond.tokens),
                calls: lack(budget.calls, reserved.calls, used.calls, beyond.calls),
            }
        };
        let of_run = self
            .bounds()
            .into_iter()
            .map(|bound| (None, bound.of_parent, lacking(&bound.budget, &state.spend, &state.reserved)));
        let of_node = self.node_budget(node).map(|(budget, spent)| {
            (Some(node.reference.clone()), false, lacking(&budget, &spent.spend, &spent.reserved))
        });
        let all: Vec<_> = of_run.chain(of_node).filter(|(_, _, by)| *by != Allowance::default()).collect();
        for (node, of_parent, by) in all {
            self.record(raised(node, of_parent, &by));
        }
    }

    pub(super) fn over_budget(&mut self, id: TokenId, over: Over) -> Sent {
        let Over { node, of_parent, on_exceeded, message } = over;
        self.say_exceeded(Some(id), node.clone(), message.clone());
        let exceeded = Some(Exceeded { node, of_parent, on_exceeded });
        self.fail(id, Failed { exceeded, ..Failed::of(Failure::new(ErrorKind::BudgetExceeded, message)) });
        Sent::Moved
    }

    /// A budget is exceeded. Whoever follows it hears a warning first, though a reservation may go beyond both
    /// marks at once.
    pub(super) fn say_exceeded(&mut self, token: Option<TokenId>, node: Option<Name>, message: String) {
        let state = self.state();
        let of_node = node.as_ref().and_then(|node| state.node_spend.get(node));
        let (warned, spent) = match of_node {
            Some(of_node) => (of_node.warned, of_node.spend.clone()),
            None => (state.budget_warned, state.spend.clone()),
        };
        if !warned {
            self.record(EventKind::BudgetWarning { node: node.clone(), spent });
        }
        self.record(EventKind::BudgetExceeded { token, node, message });
    }

    /// A task was stopped because the time of its node's budget is over.
    pub(super) fn say_out_of_time(&mut self, id: TokenId, after_ms: u64) -> (Failure, Exceeded) {
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let message = format!("the time that the node's budget allows is over after {after_ms} ms");
        let name = Some(node.reference.clone());
        self.say_exceeded(Some(id), name.clone(), message.clone());
        let on_exceeded = node.budget.map_or(OnExceeded::Fail, |budget| budget.on_exceeded);
        let exceeded = Exceeded { node: name, of_parent: false, on_exceeded };
        (Failure::new(ErrorKind::BudgetExceeded, message), exceeded)
    }

    /// The default for `budget_exceeded`: what the budget says. False: it says to fail.
    pub(super) fn by_budget(&mut self, id: TokenId, failed: &Failed) -> bool {
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let of = |node: Option<Name>, budget: Budget| Exceeded {
            node,
            of_parent: false,
            on_exceeded: budget.on_exceeded,
        };
        let own = node.budget.map(|budget| of(Some(node.reference.clone()), budget));
        let known = failed.exceeded.clone().or(own).or_else(|| Some(of(None, graph.budget?)));
        let Some(exceeded) = known else { return false };
        // What must happen once is not done again for the sake of what comes after it.
        if self.token(id).status() != TokenStatus::Pending && self.has_reached_once(id, failed.step.as_ref())
        {
            return false;
        }
        match exceeded.on_exceeded {
            OnExceeded::Fail => return false,
            OnExceeded::Downgrade if self.can_downgrade() => {
                let (reason, what) = (failed.failure.message.clone(), RunChange::Downgrade);
                self.record(EventKind::RunMutated { token: Some(id), reason, what });
            }
            OnExceeded::Downgrade | OnExceeded::Pause => {
                self.ask_for_budget(Some(id), Some(exceeded), failed.failure.message.clone());
            }
        }
        // A worker that stopped at its allowance tries again; a token that never went out is in line still.
        if self.token(id).status() != TokenStatus::Pending {
            self.try_again(id, failed, RuleRef::Default(5), &Backoff::NONE, |_| {});
        }
        true
    }

    /// A worker stopped at what was reserved for it, though the budget may have more. That is no failure
    /// yet: the task is tried as often as the action would have been, and each time it lines up for a new
    /// reservation, where the budget says whether there is room. Then the cause is what failed it.
    pub(super) fn stopped_at_allowance(&mut self, id: TokenId, mut failed: Failed) {
        if self.has_reached_once(id, failed.step.as_ref()) {
            return self.fail(id, failed);
        }
        let graph = self.graph();
        let task = graph.node(self.node_of(id)).task();
        let step =
            task.and_then(|task| task.steps.iter().find(|s| failed.step.as_ref() == Some(&s.reference)));
        let tries = step.and_then(|step| step.action.def.execution.retry_policy).unwrap_or(TRIES);
        let made = self.token(id).answered.get(&AT_ALLOWANCE).copied().unwrap_or(0) + 1;
        let cause = failed.failure.cause.clone();
        if made < if cause.is_some() { tries } else { TRIES }.max_attempts {
            failed.failure = failed.failure.at(graph.written_ref(self.node_of(id)), self.token(id).attempt);
            return self.try_again(id, &failed, AT_ALLOWANCE, &tries.backoff, |_| {});
        }
        failed.failure = cause.map_or(failed.failure, |cause| *cause);
        self.fail(id, failed);
    }

    pub(super) fn ask_for_budget(
        &mut self,
        token: Option<TokenId>,
        exceeded: Option<Exceeded>,
        message: String,
    ) {
        let gate = self.next_gate();
        let of_parent = exceeded.as_ref().is_some_and(|exceeded| exceeded.of_parent);
        let budget_of = exceeded.and_then(|exceeded| exceeded.node);
        let record = GateRecord {
            body: Some(message),
            form: super::gate::form(GateKind::Budget),
            budget_of,
            of_parent,
            ..GateRecord::new(GateKind::Budget, "The budget is spent")
        };
        self.record(EventKind::GateOpened {
            gate,
            token,
            record: Box::new(record),
            report: None,
            opened_with: None,
        });
        self.request(Command::OpenGate { gate });
        self.pause_for(PauseReason::Budget(gate), "budget");
    }

    /// After every input: budgets that have come to their warning mark.
    pub(super) fn warn_of_budgets(&mut self) {
        if !self.is_open() {
            return;
        }
        if let Some(budget) = self.run_budget()
            && !self.state().budget_warned
            && warns(&budget, &self.state().spend)
        {
            let spent = self.state().spend.clone();
            self.record(EventKind::BudgetWarning { node: None, spent });
        }
        let graph = self.graph();
        let due: Vec<(Name, Spend)> = self
            .state()
            .node_spend
            .iter()
            .filter(|(name, spent)| {
                let budget = graph.find_node(name).and_then(|node| self.node_budget(graph.node(node)));
                !spent.warned
                    && budget.is_some_and(|(budget, _)| {
                        warns(&budget, &spent.spend)
                            || marks(&budget, budget.wall_ms, spent.spend.duration_ms)
                    })
            })
            .map(|(name, spent)| (name.clone(), spent.spend.clone()))
            .collect();
        for (node, spent) in due {
            self.record(EventKind::BudgetWarning { node: Some(node), spent });
        }
    }
}

/// How tries after a stop at the allowance are counted. The number is part of the format.
const AT_ALLOWANCE: RuleRef = RuleRef::Default(6);

/// What the run's spending is bounded by, for whoever is to stop there.
impl crate::run::Run {
    /// What a worker stops at: what was reserved for it, as far as a budget bounds it at all.
    pub(crate) fn allowance(&self, node: &Node, reserved: &Allowance) -> Allowance {
        let by_parent = self.state().start.as_ref().and_then(|start| start.allowance).unwrap_or_default();
        let budgets = [self.graph().budget, node.budget];
        let bounded = |by_parent: u64, limit: fn(&Budget) -> Option<u64>| {
            by_parent > 0 || budgets.iter().flatten().any(|budget| limit(budget).is_some())
        };
        let kept = |bounded: bool, amount: u64| if bounded { amount } else { 0 };
        Allowance {
            usd_micros: kept(bounded(by_parent.usd_micros, |b| b.usd_micros), reserved.usd_micros),
            tokens: kept(bounded(by_parent.tokens, |b| b.tokens), reserved.tokens),
            calls: kept(bounded(by_parent.calls, |b| b.calls), reserved.calls),
        }
    }
}

/// A budget that could not take what was asked, and what it says to do.
#[derive(Clone, Debug)]
pub(super) struct Exceeded {
    pub(super) node: Option<Name>,
    pub(super) of_parent: bool,
    pub(super) on_exceeded: OnExceeded,
}

fn raised(node: Option<Name>, of_parent: bool, by: &Allowance) -> EventKind {
    let Allowance { usd_micros, tokens, calls } = *by;
    EventKind::BudgetRaised { node, usd_micros, tokens, calls, whole: false, of_parent }
}

fn raise(budget: Budget, raised: &Raised) -> Budget {
    let times = raised.times + 1;
    Budget {
        usd_micros: budget.usd_micros.map(|usd| usd.saturating_add(raised.usd_micros)),
        tokens: budget.tokens.map(|tokens| tokens.saturating_mul(times).saturating_add(raised.tokens)),
        calls: budget.calls.map(|calls| calls.saturating_mul(times).saturating_add(raised.calls)),
        wall_ms: budget.wall_ms.map(|wall| wall.saturating_mul(times)),
        ..budget
    }
}

/// A node's time is what its attempts took.
fn out_of_time(budget: &Budget, spent: &Spend) -> Option<String> {
    let wall = budget.wall_ms.filter(|wall| spent.duration_ms >= *wall)?;
    Some(format!("{} of {wall} ms are spent", spent.duration_ms))
}

/// Which bound would be broken, in words; None if it fits.
fn over(budget: &Budget, spent: &Spend, reserved: &Allowance, wanted: &Allowance) -> Option<String> {
    let used = [
        spent.usd_micros.saturating_add(reserved.usd_micros),
        spent.tokens().saturating_add(reserved.tokens),
        spent.calls.saturating_add(reserved.calls),
    ];
    cost::over([budget.usd_micros, budget.tokens, budget.calls], used, wanted)
}

/// One of its bounds is reached by what is spent and what is out.
fn nothing_left(budget: &Budget, spent: &Spend, reserved: &Allowance) -> bool {
    let used = [
        (budget.usd_micros, spent.usd_micros + reserved.usd_micros),
        (budget.tokens, spent.tokens() + reserved.tokens),
        (budget.calls, spent.calls + reserved.calls),
    ];
    used.iter().any(|(limit, used)| limit.is_some_and(|limit| *used >= limit))
}

/// Time apart: of a run it has a timer, of a node it is what its attempts took.
fn warns(budget: &Budget, spent: &Spend) -> bool {
    marks(budget, budget.usd_micros, spent.usd_micros)
        || marks(budget, budget.tokens, spent.tokens())
        || marks(budget, budget.calls, spent.calls)
}

/// So much is spent that its share has come to the warning mark.
fn marks(budget: &Budget, limit: Option<u64>, spent: u64) -> bool {
    limit.is_some_and(|limit| {
        limit > 0 && u128::from(spent) * 1_000 >= u128::from(limit) * u128::from(budget.warn_at_permille)
    })
}
