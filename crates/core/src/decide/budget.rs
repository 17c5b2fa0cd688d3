//! Budgets: what a dispatch may cost at worst, whether there is room for it, and what happens if not.
//! Checked before the call, in integers.

use crate::backoff::TRIES;
use crate::command::Command;
use crate::cost::{self, Allowance, Spend, price_usd_micros};
use crate::def::{Backoff, BackoffKind, Budget, Implementation, LlmCall, Name, OnExceeded};
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, GateKind, GateRecord, PauseReason, RuleRef, RunChange, TokenId};
use crate::graph::{Graph, Node, Task};
use crate::lifecycle::TokenStatus;
use crate::limits::{MODEL_TURNS_MAX, OUTPUT_TOKENS_RESERVED};
use crate::state::{NodeSpend, Raised, Token};
use crate::value::Value;

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
    on_exceeded: OnExceeded,
    message: String,
}

impl Decision<'_> {
    /// The most that the calls of a task can cost. A prompt has at most as many tokens as bytes.
    pub(super) fn worst_case(&self, id: TokenId, task: &Task, input: &Value) -> Allowance {
        let mut worst = Allowance::default();
        for step in &task.steps {
            match &step.action.def.implementation {
                Implementation::LlmCall(call) => worst.add(&self.worst_call(id, call, input)),
                Implementation::Mock(mock) => worst.add(&crate::mock::worst(mock)),
                _ => {}
            }
        }
        worst
    }

    fn worst_call(&self, id: TokenId, call: &LlmCall, input: &Value) -> Allowance {
        let graph = self.run.graph();
        let overrides = &self.token(id).overrides;
        let written = overrides.model.clone().or_else(|| call.model.as_ref().map(|m| m.text.clone()));
        let model = written.map(|name| graph.cheaper(&name, self.state().downgrades as usize));
        let profile = model.as_ref().and_then(|name| graph.models.get(name));
        let start = self.state().start.as_ref();
        let prices = model.as_ref().and_then(|name| start?.prices.get(name)).copied().unwrap_or_default();
        let turns =
            if call.tools.is_empty() { 1 } else { u64::from(call.max_turns.unwrap_or(MODEL_TURNS_MAX)) };
        let answer =
            call.max_tokens.or(profile.and_then(|p| p.max_output_tokens)).unwrap_or(OUTPUT_TOKENS_RESERVED);
        let prompt = prompt_bytes(graph, call, self.token(id)) + input.size() as u64;
        // Each turn of a tool loop sends what came before it again.
        let sent = prompt
            .saturating_mul(turns)
            .saturating_add(answer.saturating_mul(turns.saturating_mul(turns - 1) / 2));
        let answered = answer.saturating_mul(turns);
        Allowance {
            usd_micros: price_usd_micros(&prices, sent, 0, answered),
            tokens: sent.saturating_add(answered),
            calls: turns,
        }
    }

    pub(super) fn room_for(&self, node: &Node, wanted: &Allowance) -> Room {
        let state = self.state();
        if let Some((message, on_exceeded)) = self.over_run(wanted) {
            if state.reserved != Allowance::default() {
                return Room::Later;
            }
            return Room::Never(Over { node: None, on_exceeded, message });
        }
        let Some((budget, spent)) = self.node_budget(node) else { return Room::Fits };
        match over(&budget, &spent.spend, &spent.reserved, wanted)
            .or_else(|| out_of_time(&budget, &spent.spend))
        {
            None => Room::Fits,
            Some(_) if spent.reserved != Allowance::default() => Room::LaterInNode,
            Some(message) => {
                let message = format!("node {}: {message}", node.reference);
                Room::Never(Over {
                    node: Some(node.reference.clone()),
                    on_exceeded: budget.on_exceeded,
                    message,
                })
            }
        }
    }

    fn over_run(&self, wanted: &Allowance) -> Option<(String, OnExceeded)> {
        let state = self.state();
        self.bounds().into_iter().find_map(|(bound, whose)| {
            let message = over(&bound, &state.spend, &state.reserved, wanted)?;
            Some((format!("{whose}{message}"), bound.on_exceeded))
        })
    }

    /// What bounds the run's spending: its own budget, and what a parent allows. That is the parent's to
    /// raise, so here it fails.
    fn bounds(&self) -> Vec<(Budget, &'static str)> {
        let allowed = self.state().start.as_ref().and_then(|start| start.allowance);
        let told = |amount: u64| (amount > 0).then_some(amount);
        let by_parent = allowed.map(|allowed| Budget {
            usd_micros: told(allowed.usd_micros),
            tokens: told(allowed.tokens),
            calls: told(allowed.calls),
            on_exceeded: OnExceeded::Fail,
            ..Budget::default()
        });
        let own = self.run_budget().map(|budget| (budget, ""));
        own.into_iter().chain(by_parent.map(|budget| (budget, "allowed by the parent run: "))).collect()
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
        let spent = |(bound, _): &(Budget, &str)| nothing_left(bound, &state.spend, &state.reserved);
        let message = "nothing is left for a child run";
        if let Some((bound, whose)) = self.bounds().into_iter().find(spent) {
            if state.reserved != Allowance::default() {
                return Room::Later;
            }
            let message = format!("{whose}{message}");
            return Room::Never(Over { node: None, on_exceeded: bound.on_exceeded, message });
        }
        match self.node_budget(node) {
            Some((own, spent)) if nothing_left(&own, &spent.spend, &spent.reserved) => {
                if spent.reserved != Allowance::default() {
                    return Room::LaterInNode;
                }
                let message = format!("node {}: {message}", node.reference);
                Room::Never(Over {
                    node: Some(node.reference.clone()),
                    on_exceeded: own.on_exceeded,
                    message,
                })
            }
            _ => Room::Fits,
        }
    }

    /// What a child may spend: the smaller of its own budget and what is left. None without a bound.
    pub(super) fn allowance_for_child(&self, workflow: &str, node: &Node) -> Option<Allowance> {
        let state = self.state();
        let own = state
            .start
            .as_ref()
            .and_then(|start| start.child_budgets.get(workflow))
            .copied()
            .unwrap_or_default();
        let of_run = self.bounds().into_iter().map(|(bound, _)| (bound, &state.spend, &state.reserved));
        let of_node = self.node_budget(node).map(|(bound, spent)| (bound, &spent.spend, &spent.reserved));
        let bounds: Vec<_> = of_run.chain(of_node).collect();
        let least = |left: fn(&Budget, &Spend, &Allowance) -> Option<u64>, own: u64| {
            let left = bounds.iter().filter_map(|(bound, spent, out)| left(bound, spent, out)).min()?;
            Some(if own > 0 { left.min(own) } else { left })
        };
        let usd =
            least(|b, s, r| Some(b.usd_micros?.saturating_sub(s.usd_micros + r.usd_micros)), own.usd_micros);
        let tokens = least(|b, s, r| Some(b.tokens?.saturating_sub(s.tokens() + r.tokens)), own.tokens);
        let calls = least(|b, s, r| Some(b.calls?.saturating_sub(s.calls + r.calls)), own.calls);
        let any = usd.or(tokens).or(calls).is_some();
        any.then(|| Allowance {
            usd_micros: usd.unwrap_or(0),
            tokens: tokens.unwrap_or(0),
            calls: calls.unwrap_or(0),
        })
    }

    pub(super) fn over_budget(&mut self, id: TokenId, over: Over) -> Sent {
        let Over { node, on_exceeded, message } = over;
        self.record(EventKind::BudgetExceeded {
            token: Some(id),
            node: node.clone(),
            message: message.clone(),
        });
        let exceeded = Some(Exceeded { node, on_exceeded });
        self.fail(id, Failed { exceeded, ..Failed::of(Failure::new(ErrorKind::BudgetExceeded, message)) });
        Sent::Moved
    }

    /// The default for `budget_exceeded`: what the budget says. False: it says to fail.
    pub(super) fn by_budget(&mut self, id: TokenId, failed: &Failed) -> bool {
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let own = node.budget.map(|b| (Some(node.reference.clone()), b.on_exceeded));
        let known = failed.exceeded.clone().map(|e| (e.node, e.on_exceeded));
        let Some((of, policy)) = known.or(own).or(graph.budget.map(|b| (None, b.on_exceeded))) else {
            return false;
        };
        // What must happen once is not done again for the sake of what comes after it.
        if self.token(id).status() != TokenStatus::Pending && self.has_reached_once(id, failed.step.as_ref())
        {
            return false;
        }
        match policy {
            OnExceeded::Fail => return false,
            OnExceeded::Downgrade if self.can_downgrade() => {
                let (reason, what) = (failed.failure.message.clone(), RunChange::Downgrade);
                self.record(EventKind::RunMutated { token: Some(id), reason, what });
            }
            OnExceeded::Downgrade | OnExceeded::Pause => {
                self.ask_for_budget(Some(id), of, failed.failure.message.clone());
            }
        }
        // A worker that stopped at its allowance tries again; a token that never went out is in line still.
        if self.token(id).status() != TokenStatus::Pending {
            let at_once = Backoff { kind: BackoffKind::None, ..Backoff::default() };
            self.try_again(id, failed, RuleRef::Default(5), &at_once, |_| {});
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
        let cause = failed.failure.details.get("cause").filter(|cause| !cause.is_null());
        let cause = cause.and_then(|cause| serde_json::from_value::<Failure>(cause.to_json()).ok());
        if made < if cause.is_some() { tries } else { TRIES }.max_attempts {
            failed.failure =
                failed.failure.at(&graph.node(self.node_of(id)).reference, self.token(id).attempt);
            return self.try_again(id, &failed, AT_ALLOWANCE, &tries.backoff, |_| {});
        }
        failed.failure = cause.unwrap_or(failed.failure);
        self.fail(id, failed);
    }

    pub(super) fn ask_for_budget(
        &mut self,
        token: Option<TokenId>,
        budget_of: Option<Name>,
        message: String,
    ) {
        let gate = self.next_gate();
        let record = GateRecord {
            body: Some(message),
            form: super::gate::form(GateKind::Budget),
            budget_of,
            ..GateRecord::new(GateKind::Budget, "The budget is spent")
        };
        self.record(EventKind::GateOpened { gate, token, record: Box::new(record), report: None });
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
                !spent.warned && budget.is_some_and(|(budget, _)| warns(&budget, &spent.spend))
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
    pub(super) on_exceeded: OnExceeded,
}

fn raise(budget: Budget, raised: &Raised) -> Budget {
    let times = raised.times + 1;
    Budget {
        usd_micros: budget.usd_micros.map(|usd| usd.saturating_add(raised.usd_micros)),
        tokens: budget.tokens.map(|tokens| tokens.saturating_mul(times)),
        calls: budget.calls.map(|calls| calls.saturating_mul(times)),
        wall_ms: budget.wall_ms.map(|wall| wall.saturating_mul(times)),
        ..budget
    }
}

/// Everything a call sends beside its input: one token per byte is more than any model counts.
fn prompt_bytes(graph: &Graph, call: &LlmCall, token: &Token) -> u64 {
    let text = |text: &Option<crate::def::Text>| text.as_ref().map_or(0, |t| t.text.len());
    let spec = call.prompt_spec.as_ref().and_then(|name| graph.bundle.prompts.get(&name.text));
    let by_name = spec.map_or(0, |spec| {
        let examples: usize = spec.examples.iter().map(Value::size).sum();
        spec.template.text.len() + text(&spec.system) + examples
    });
    let json = |tree: &crate::def::Tree| serde_json::to_string(tree).map_or(0, |text| text.len());
    let messages = call.messages.as_ref().map_or(0, json);
    let schema = call.output_schema.as_ref().map_or(0, |schema| schema.doc.size());
    let over = &token.overrides;
    let added =
        over.append.iter().map(|t| t.len()).sum::<usize>() + over.system.as_ref().map_or(0, |s| s.len());
    let written = text(&call.prompt) + text(&call.system) + by_name + messages + schema;
    let feedback = if token.feedback.is_null() { 0 } else { token.feedback.size() };
    (written + added + feedback) as u64
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

fn warns(budget: &Budget, spent: &Spend) -> bool {
    let mark = |limit: Option<u64>, spent: u64| {
        limit.is_some_and(|limit| {
            limit > 0 && u128::from(spent) * 1_000 >= u128::from(limit) * u128::from(budget.warn_at_permille)
        })
    };
    mark(budget.usd_micros, spent.usd_micros)
        || mark(budget.tokens, spent.tokens())
        || mark(budget.calls, spent.calls)
}
