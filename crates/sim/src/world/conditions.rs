//! Inputs from outside that wait for a condition: a gate is open, an event was recorded, nothing is left to do.

use std::collections::BTreeSet;

use wonder_core::def::Name;
use wonder_core::event::{EventKind, GateId, TokenId};
use wonder_core::input::Input;
use wonder_core::run::WaitsFor;
use wonder_core::value::Value;
use wonder_engine::{TELL_EVENT, takes_event};

use super::{Hosted, QueueItem, Rank, World};
use crate::host::ScenarioHost;
use crate::inputs::{GateFilter, OutsideInput, ScriptedInput, When};

/// An input that waits for its condition, and what it has been sent to already.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    input: ScriptedInput,
    done: bool,
    gates: BTreeSet<(Name, GateId)>,
    /// How far each run's log has been looked at.
    looked: std::collections::BTreeMap<Name, usize>,
}

pub(super) fn of(inputs: &[ScriptedInput]) -> Vec<Condition> {
    let new = |input: &ScriptedInput| Condition {
        input: input.clone(),
        done: false,
        gates: BTreeSet::new(),
        looked: Default::default(),
    };
    inputs.iter().map(new).collect()
}

impl<H: ScenarioHost> World<H> {
    /// Queues what waits for something that is now the case. Not while a message between runs is under way: a
    /// real host delivers those in the step that led to them, and nobody sees how it stands before.
    pub(super) fn meet_conditions(&mut self) {
        let mut due = self.queue.keys().take_while(|position| position.0 <= self.now);
        if due.any(|position| position.1 == Rank::BetweenRuns) {
            return;
        }
        let mut conditions = std::mem::take(&mut self.conditions);
        for condition in conditions.iter_mut().filter(|condition| !condition.done) {
            for (run, gate) in self.met(condition) {
                self.queue_input(condition, run, gate);
                if condition.done {
                    break;
                }
            }
        }
        self.conditions = conditions;
    }

    /// Nothing else is left to happen. True if an input waited for that.
    pub(super) fn idle_conditions(&mut self) -> bool {
        let mut conditions = std::mem::take(&mut self.conditions);
        let waiting = conditions.iter_mut().find(|c| !c.done && matches!(c.input.when, When::Idle));
        let found = waiting.is_some();
        if let Some(condition) = waiting {
            let run = condition.input.run.clone().unwrap_or_else(|| self.setting.start.id.clone());
            self.queue_input(condition, run, None);
            condition.done = true;
        }
        self.conditions = conditions;
        found
    }

    fn queue_input(&mut self, condition: &mut Condition, run: Name, gate: Option<GateId>) {
        let input = &condition.input;
        // They are first looked at when the run has just started.
        let (after_ms, once) = match input.when {
            When::At(ms) => (ms, true),
            _ => (input.after_ms, !input.each),
        };
        condition.done = once;
        let what = input.what.clone();
        self.enqueue(after_ms, QueueItem::Outside { run, what, gate });
    }

    /// The runs, and gates, for which the condition has become true since it was last looked at.
    fn met(&self, condition: &mut Condition) -> Vec<(Name, Option<GateId>)> {
        let mut met = Vec::new();
        let root = &self.setting.start.id;
        if let When::At(_) = condition.input.when {
            return vec![(condition.input.run.clone().unwrap_or_else(|| root.clone()), None)];
        }
        let anywhere = matches!(condition.input.when, When::Awaited(_)) && condition.input.run.is_none();
        for (id, hosted) in &self.runs {
            if !anywhere && !is_for(condition.input.run.as_ref(), id, hosted, root) {
                continue;
            }
            match &condition.input.when {
                When::Awaited(name) if awaits(hosted, name) => met.push((id.clone(), None)),
                When::Gate(filter) => {
                    let gates =
                        hosted.run.gates().map(|(gate, _)| gate).filter(|gate| fits(hosted, *gate, filter));
                    let new: Vec<GateId> =
                        gates.filter(|gate| condition.gates.insert((id.clone(), *gate))).collect();
                    met.extend(new.into_iter().map(|gate| (id.clone(), Some(gate))));
                }
                When::Event { name, node } => {
                    let from = condition.looked.insert(id.clone(), hosted.log.len()).unwrap_or(0);
                    let recorded = hosted.log[from..].iter().filter(|event| {
                        *event.kind.name() == **name
                            && node.as_ref().is_none_or(|node| is_of(hosted, &event.kind, node))
                    });
                    met.extend(recorded.map(|_| (id.clone(), None)));
                }
                When::End if hosted.run.status().is_end() => met.push((id.clone(), None)),
                _ => {}
            }
        }
        met
    }

    /// The nearest live runs, from this one down, that take messages: as hosts find them.
    pub(super) fn takers(&self, run: &Name) -> Vec<Name> {
        let Some(hosted) = self.runs.get(run).filter(|hosted| !hosted.run.status().is_end()) else {
            return Vec::new();
        };
        if takes_event(&hosted.graph, TELL_EVENT) {
            return vec![run.clone()];
        }
        let children = hosted.run.state().out.values().filter_map(|out| out.child.as_ref());
        children.flat_map(|child| self.takers(child)).collect()
    }

    /// An input from outside as the run takes it; nothing if it is an answer and no gate is open.
    pub(super) fn input_of(&mut self, run: &Name, what: OutsideInput, gate: Option<GateId>) -> Option<Input> {
        Some(match what {
            OutsideInput::Event { name, key, payload, keep } => {
                Input::EventArrived { name, key, payload, keep }
            }
            OutsideInput::Tell { payload } => {
                Input::EventArrived { name: TELL_EVENT.into(), key: Value::Null, payload, keep: true }
            }
            OutsideInput::Operate { operation, by, reason, grace_ms } => {
                operation.input(&by, &reason, grace_ms)
            }
            OutsideInput::Answer { gate: filter, answer, by } => {
                let open = || {
                    let hosted = self.runs.get(run)?;
                    hosted.run.gates().map(|(gate, _)| gate).find(|gate| fits(hosted, *gate, &filter))
                };
                match gate.or_else(open) {
                    Some(gate) => Input::GateAnswered { gate, answer, by },
                    None => {
                        self.note(run, format!("refused answer by {by}: no such gate is open"));
                        return None;
                    }
                }
            }
        })
    }
}

fn is_for(named: Option<&Name>, id: &Name, hosted: &Hosted, root: &Name) -> bool {
    match named {
        None => id == root,
        Some(named) => id == named || hosted.graph.name == *named,
    }
}

fn fits(hosted: &Hosted, gate: GateId, filter: &GateFilter) -> bool {
    let name = hosted.names.gate_node(gate);
    let record = hosted.run.gates().find(|(open, _)| *open == gate).map(|(_, gate)| &gate.record);
    let node = filter.node.as_ref().is_none_or(|node| name.is_some_and(|name| name.node == *node));
    let kind = filter.kind.is_none_or(|kind| record.is_some_and(|record| record.kind == kind));
    let branch = filter.branch.is_none_or(|at| name.is_some_and(|name| name.path.last() == Some(&at)));
    node && kind && branch
}

/// Whether a run waits for an event of this name.
fn awaits(hosted: &Hosted, name: &Name) -> bool {
    let waits = hosted.run.why();
    waits.iter().any(|waiting| matches!(&waiting.on, WaitsFor::Event { event, .. } if event == name))
}

/// Whether an event is about a token at this node.
fn is_of(hosted: &Hosted, kind: &EventKind, node: &Name) -> bool {
    let json = serde_json::to_value(kind).unwrap_or_default();
    let by_ref = json.get("node").or_else(|| json.get("node_id")).and_then(|v| v.as_str());
    let token = json.get("token").or_else(|| json.get("token_id")).and_then(serde_json::Value::as_u64);
    let by_token = token.and_then(|id| hosted.names.get(TokenId(id))).map(|name| &*name.node);
    by_token.or(by_ref) == Some(&**node)
}
