//! Budgets: what a dispatch may cost at worst, whether there is room for it, and what happens if not.
//! Checked before the call, in integers.

use crate::command::Command;
use crate::cost::{Allowance, Spend, price_usd_micros};
use crate::def::{Budget, Implementation, LlmCall, Name, OnExceeded};
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, GateKind, GateRecord, PauseReason, RunChange, TokenId};
use crate::graph::{Node, Task};
use crate::limits::{MODEL_TURNS_MAX, OUTPUT_TOKENS_RESERVED};
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
                Implementation::Mock(mock) => {
                    let of = |what: fn(&crate::def::MockUsage) -> u64| {
                        mock.outcomes.iter().map(|o| what(&o.usage)).max().unwrap_or(0)
                    };
                    worst.add(&Allowance {
                        usd_micros: of(|usage| usage.usd_micros),
                        tokens: of(|usage| usage.input_tokens + usage.output_tokens),
                        calls: 1,
                    });
                }
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
        let texts = [&call.prompt, &call.system].into_iter().flatten().map(|t| t.text.len()).sum::<usize>();
        let prompt = (texts + input.size()) as u64;
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
        let others_out = state.reserved != Allowance::default();
        if let Some((message, on_exceeded)) = self.over_run(wanted) {
            if others_out {
                return Room::Later;
            }
            return Room::Never(Over { node: None, on_exceeded, message });
        }
        let spent = node.budget.and_then(|budget| Some((budget, state.node_spend.get(&node.reference)?)));
        if let Some((budget, spent)) = spent
            && let Some(message) = over(&budget, &spent.spend, &spent.reserved, wanted)
        {
            if spent.reserved != Allowance::default() {
                return Room::LaterInNode;
            }
            let message = format!("node {}: {message}", node.reference);
            return Room::Never(Over {
                node: Some(node.reference.clone()),
                on_exceeded: budget.on_exceeded,
                message,
            });
        }
        Room::Fits
    }

    fn over_run(&self, wanted: &Allowance) -> Option<(String, OnExceeded)> {
        let state = self.state();
        let own = self.run_budget().and_then(|budget| {
            Some((over(&budget, &state.spend, &state.reserved, wanted)?, budget.on_exceeded))
        });
        own.or_else(|| {
            // What a parent allows is the parent's to raise: here it fails.
            let allowed = state.start.as_ref()?.allowance?;
            let bound = Budget {
                usd_micros: (allowed.usd_micros > 0).then_some(allowed.usd_micros),
                tokens: (allowed.tokens > 0).then_some(allowed.tokens),
                calls: (allowed.calls > 0).then_some(allowed.calls),
                ..Budget::default()
            };
            let message = over(&bound, &state.spend, &state.reserved, wanted)?;
            Some((format!("allowed by the parent run: {message}"), OnExceeded::Fail))
        })
    }

    /// The run's budget as it now is: raised by people, perhaps more than once.
    pub(super) fn run_budget(&self) -> Option<Budget> {
        let budget = self.run.graph().budget?;
        let times = self.state().budget_raises + 1;
        Some(Budget {
            usd_micros: budget
                .usd_micros
                .map(|usd| usd.saturating_add(self.state().budget_raised_usd_micros)),
            tokens: budget.tokens.map(|tokens| tokens.saturating_mul(times)),
            calls: budget.calls.map(|calls| calls.saturating_mul(times)),
            ..budget
        })
    }

    pub(super) fn over_budget(&mut self, id: TokenId, over: Over) -> Sent {
        let Over { node, on_exceeded, message } = over;
        self.record(EventKind::BudgetExceeded { token: Some(id), node, message: message.clone() });
        match on_exceeded {
            OnExceeded::Fail => {
                self.fail(id, Failed::of(Failure::new(ErrorKind::BudgetExceeded, message)));
            }
            OnExceeded::Downgrade if self.can_downgrade() => {
                let what = RunChange::Downgrade;
                self.record(EventKind::RunMutated { token: Some(id), reason: message, what });
            }
            OnExceeded::Downgrade | OnExceeded::Pause => self.ask_for_budget(Some(id), message),
        }
        Sent::Moved
    }

    pub(super) fn ask_for_budget(&mut self, token: Option<TokenId>, message: String) {
        let gate = self.next_gate();
        let record = GateRecord {
            kind: GateKind::Budget,
            title: "The budget is spent".to_owned(),
            body: Some(message),
            form: super::gate::form(GateKind::Budget),
            assignees: vec![],
            quorum: None,
            timeout_ms: None,
            remind_every_ms: None,
            escalate: vec![],
            failure: None,
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
                let budget = graph.find_node(name).and_then(|node| graph.node(node).budget);
                !spent.warned && budget.is_some_and(|budget| warns(&budget, &spent.spend))
            })
            .map(|(name, spent)| (name.clone(), spent.spend.clone()))
            .collect();
        for (node, spent) in due {
            self.record(EventKind::BudgetWarning { node: Some(node), spent });
        }
    }
}

/// Which bound would be broken, in words; None if it fits.
fn over(budget: &Budget, spent: &Spend, reserved: &Allowance, wanted: &Allowance) -> Option<String> {
    let lines = [
        ("micro-dollars", budget.usd_micros, spent.usd_micros, reserved.usd_micros, wanted.usd_micros),
        ("tokens", budget.tokens, spent.tokens(), reserved.tokens, wanted.tokens),
        ("calls", budget.calls, spent.calls, reserved.calls, wanted.calls),
    ];
    lines.into_iter().find_map(|(unit, limit, spent, reserved, wanted)| {
        let limit = limit?;
        let total = spent.saturating_add(reserved).saturating_add(wanted);
        let breaks = wanted > 0 && total > limit;
        breaks.then(|| format!("{spent} of {limit} {unit} are spent, and the next call may need {wanted}"))
    })
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
