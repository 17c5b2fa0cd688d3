//! Responses to a failure: what each row of the table does. A response that cannot be given here (no next
//! model, mutations used up, tries used up) says so, and the next rule is asked.

use crate::backoff::delay_ms;
use crate::command::{Command, Overrides};
use crate::def::{Backoff, Implementation, Name};
use crate::error::{ErrorKind, Failure};
use crate::event::{
    EventKind, GateKind, GateRecord, PauseReason, RuleRef, RunChange, TaskRetry, Then, TimeoutPolicy, TokenId,
};
use crate::graph::{Graph, MapTree, Mutation, NodeIx, Response, Rule};
use crate::time::Time;
use crate::value::Value;

use super::Decision;
use super::complete::How;
use super::fail::Failed;
use super::route::Lineage;

/// The next attempt, before it is recorded.
pub(super) struct Again {
    pub(super) generation: u32,
    pub(super) overrides: Overrides,
    pub(super) feedback: Value,
}

impl Decision<'_> {
    /// True if the failure is taken care of.
    pub(super) fn respond(&mut self, id: TokenId, reference: RuleRef, rule: &Rule, failed: &Failed) -> bool {
        if self.is_used_up(id, reference, rule) {
            return false;
        }
        match &rule.response {
            Response::Retry => self.try_again(id, failed, reference, &rule.backoff, |_| {}),
            Response::SwitchModel => return self.switch_model(id, reference, rule, failed),
            Response::StricterPrompt { append } => {
                return self.stricter(id, reference, rule, failed, append.as_ref());
            }
            Response::Change { .. } => return self.change(id, reference, rule, failed),
            Response::LoopWithFeedback { to: None } => return self.feed_back(id, reference, rule, failed),
            Response::LoopWithFeedback { to: Some(to) } => {
                if !self.may_mutate() {
                    return false;
                }
                self.mutate(id, failed, RunChange::Feedback);
                self.go_to(id, *to, reference, failed, failed.failure.to_value());
            }
            Response::AddValidator { task } => {
                let task = task.name.clone();
                return self.put_behind(id, reference, rule, failed, |node, added| Mutation::Validator {
                    node,
                    added,
                    task,
                });
            }
            Response::AddReview => {
                return self
                    .put_behind(id, reference, rule, failed, |node, added| Mutation::Review { node, added });
            }
            Response::DowngradeModel => {
                if !self.can_downgrade() {
                    return false;
                }
                self.mutate(id, failed, RunChange::Downgrade);
                self.try_again(id, failed, reference, &rule.backoff, |again| again.generation += 1);
            }
            Response::Pause => {
                let gate = self.open_review(id, failed);
                self.pause_for(PauseReason::Response(gate), "on_error: pause");
            }
            Response::Goto(to) => self.go_to(id, *to, reference, failed, Value::Null),
            Response::Skip { output } => {
                self.say_timed_out(id, failed, TimeoutPolicy::Default);
                let (output, report) = (output.clone(), failed.report.clone());
                self.complete(id, output, report, How::Skipped(Some(failed.failure.clone())));
            }
            Response::Escalate => {
                self.open_review(id, failed);
            }
            Response::Fail => return false,
        }
        true
    }

    /// Extra tries are counted per token and rule; moves to another node per lineage, for they make new
    /// tokens. What asks a human is bounded by the human.
    fn is_used_up(&self, id: TokenId, reference: RuleRef, rule: &Rule) -> bool {
        let token = self.token(id);
        match &rule.response {
            Response::Escalate | Response::Pause | Response::Skip { .. } | Response::Fail => false,
            Response::Goto(_) | Response::LoopWithFeedback { to: Some(_) } => {
                token.counts.get(&self.rule_key(id, reference)).copied().unwrap_or(0) >= rule.max
            }
            _ => token.answered.get(&reference).copied().unwrap_or(0) >= rule.max,
        }
    }

    fn rule_key(&self, id: TokenId, reference: RuleRef) -> Name {
        let node = &self.run.graph().node(self.node_of(id)).reference;
        let rule = match reference {
            RuleRef::Node(i) => format!("{node}!on_error.{i}"),
            RuleRef::Workflow(i) => format!("!on_error.{i}"),
            RuleRef::Task | RuleRef::Action | RuleRef::Default(_) => format!("{node}!default"),
        };
        rule.into()
    }

    pub(super) fn try_again(
        &mut self,
        id: TokenId,
        failed: &Failed,
        rule: RuleRef,
        backoff: &Backoff,
        change: impl FnOnce(&mut Again),
    ) {
        let token = self.token(id);
        let (generation, feedback) = (token.generation, token.feedback.clone());
        let mut again = Again { generation, overrides: token.overrides.clone(), feedback };
        change(&mut again);
        let tried = token.answered.get(&rule).copied().unwrap_or(0) + 1;
        let seed = self.state().start.as_ref().map_or(0, |start| start.seed);
        let wake_at: Time = self.now.plus(delay_ms(backoff, tried, seed, id.0));
        self.say_timed_out(id, failed, TimeoutPolicy::Retry);
        self.record(EventKind::TaskRetrying(TaskRetry {
            token: id,
            failure: failed.failure.clone(),
            wake_at,
            rule,
            generation: again.generation,
            overrides: again.overrides,
            feedback: again.feedback,
            report: failed.report.clone(),
        }));
        if wake_at <= self.now {
            self.back_from_backoff(id);
        }
    }

    /// The backoff is over: out at once if a worker's place is free, else in line.
    pub(super) fn back_from_backoff(&mut self, id: TokenId) {
        if self.dispatch_waiting(id) {
            return;
        }
        let token = self.token(id);
        let (generation, overrides) = (token.generation, token.overrides.clone());
        self.record(EventKind::TokenReleased { token: id, generation, overrides, resumed: false });
    }

    pub(super) fn may_mutate(&self) -> bool {
        self.state().metrics.mutations_applied < self.run.graph().mutations_max
    }

    fn mutate(&mut self, id: TokenId, failed: &Failed, what: RunChange) {
        let reason = failed.failure.to_string();
        self.record(EventKind::RunMutated { token: Some(id), reason, what });
    }

    fn switch_model(&mut self, id: TokenId, reference: RuleRef, rule: &Rule, failed: &Failed) -> bool {
        let Some(model) = self.next_model(id).filter(|_| self.may_mutate()) else { return false };
        self.mutate(id, failed, RunChange::SwitchModel { model: model.clone() });
        self.try_again(id, failed, reference, &rule.backoff, |again| {
            again.generation += 1;
            again.overrides.model = Some(model);
        });
        true
    }

    /// The profile after the one in use, in the `fallbacks` of the written one.
    fn next_model(&self, id: TokenId) -> Option<Name> {
        let graph = self.run.graph();
        let written = written_model(graph, self.node_of(id))?;
        let fallbacks = &graph.models.get(&written)?.fallbacks;
        let Some(used) = &self.token(id).overrides.model else {
            return fallbacks.first().map(|f| f.text.clone());
        };
        match fallbacks.iter().position(|f| f.text == *used) {
            Some(at) => fallbacks.get(at + 1).map(|f| f.text.clone()),
            // A response changed the model to one outside the list: its own come next.
            None => graph.models.get(used)?.fallbacks.first().map(|f| f.text.clone()),
        }
    }

    fn stricter(
        &mut self,
        id: TokenId,
        reference: RuleRef,
        rule: &Rule,
        failed: &Failed,
        append: Option<&Name>,
    ) -> bool {
        if !self.may_mutate() || !self.has_worker(id) {
            return false;
        }
        self.mutate(id, failed, RunChange::StricterPrompt);
        let violation =
            format!("Your last answer was refused: {}. Answer exactly as asked.", failed.failure.message);
        let schema = self
            .answer_schema(id, failed)
            .map(|schema| format!("It must fit this JSON Schema: {schema}").into());
        let texts = [Some(violation.into()), schema, append.cloned()];
        self.try_again(id, failed, reference, &rule.backoff, |again| {
            again.generation += 1;
            again.overrides.append.extend(texts.into_iter().flatten());
        });
        true
    }

    /// The schema that the refused answer had to fit, if one is written.
    fn answer_schema(&self, id: TokenId, failed: &Failed) -> Option<Value> {
        let task = self.run.graph().node(self.node_of(id)).task()?;
        let step = task.steps.iter().find(|step| failed.step.as_ref() == Some(&step.reference));
        let of_call = step.and_then(|step| match &step.action.def.implementation {
            Implementation::LlmCall(call) => call.output_schema.as_ref().map(|schema| schema.doc.clone()),
            _ => None,
        });
        let of_action = || Some(step?.action.produces.as_ref()?.doc().clone());
        of_call.or_else(of_action).or_else(|| Some(task.output_schema.as_ref()?.doc().clone()))
    }

    fn has_worker(&self, id: TokenId) -> bool {
        matches!(self.run.graph().node(self.node_of(id)).perform, crate::graph::Perform::Worker(_))
    }

    fn change(&mut self, id: TokenId, reference: RuleRef, rule: &Rule, failed: &Failed) -> bool {
        let Response::Change { model, system, tools, input } = &rule.response else { return false };
        let Some(input) =
            self.changed_input(id, input.as_ref(), &failed.failure).filter(|_| self.may_mutate())
        else {
            return false;
        };
        self.mutate(id, failed, RunChange::Change);
        self.try_again(id, failed, reference, &rule.backoff, |again| {
            again.generation += 1;
            let overrides = &mut again.overrides;
            overrides.model = model.clone().or(overrides.model.take());
            overrides.system = system.clone().or(overrides.system.take());
            overrides.tools = tools.clone().or(overrides.tools.take());
            if !input.is_null() {
                overrides.input = input;
            }
        });
        true
    }

    fn changed_input(&self, id: TokenId, tree: Option<&MapTree>, failure: &Failure) -> Option<Value> {
        let Some(tree) = tree else { return Some(Value::Null) };
        let error = failure.to_value();
        tree.eval(&self.view(id).with_error(&error)).ok()
    }

    fn feed_back(&mut self, id: TokenId, reference: RuleRef, rule: &Rule, failed: &Failed) -> bool {
        if !self.may_mutate() {
            return false;
        }
        self.mutate(id, failed, RunChange::Feedback);
        let judgement = failed.failure.to_value();
        self.try_again(id, failed, reference, &rule.backoff, |again| {
            again.generation += 1;
            again.feedback = judgement;
        });
        true
    }

    /// The node counts as skipped; a token goes on at another one.
    fn go_to(&mut self, id: TokenId, to: NodeIx, reference: RuleRef, failed: &Failed, feedback: Value) {
        self.say_timed_out(id, failed, TimeoutPolicy::Default);
        let mut lineage = Lineage { last_error: Some(failed.failure.clone()), feedback, ..self.lineage(id) };
        *lineage.counts.entry(self.rule_key(id, reference)).or_insert(0) += 1;
        self.record(EventKind::TokenSkipped {
            token: id,
            output: Value::Null,
            patches: vec![],
            then: Then::Routes,
            unmapped: false,
            failure: Some(failed.failure.clone()),
            report: failed.report.clone(),
        });
        self.create_token(&lineage, to, None);
    }

    fn put_behind(
        &mut self,
        id: TokenId,
        reference: RuleRef,
        rule: &Rule,
        failed: &Failed,
        mutation: impl FnOnce(Name, Name) -> Mutation,
    ) -> bool {
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        if !self.may_mutate() {
            return false;
        }
        // Once per node: the second failure only runs it again.
        if node.behind.is_none() && node.stands_for.is_none() {
            let added = free_ref(&graph, &node.reference);
            let mutation = mutation(node.reference.clone(), added);
            if graph.extended(&mutation).is_err() {
                return false;
            }
            self.mutate(id, failed, RunChange::Graph(mutation));
        }
        self.try_again(id, failed, reference, &rule.backoff, |_| {});
        true
    }

    /// A cheaper profile exists for some node that may still start.
    pub(super) fn can_downgrade(&self) -> bool {
        let graph = self.run.graph();
        let deep = self.state().downgrades as usize;
        let cheaper = |name: &Name| graph.cheaper(name, deep) != graph.cheaper(name, deep + 1);
        self.may_mutate() && graph.models.keys().any(cheaper)
    }

    /// A review gate; the token is escalated. Unknown outcomes ask their own question, and so does a task that wants
    /// to know something.
    pub(super) fn open_review(&mut self, id: TokenId, failed: &Failed) -> crate::event::GateId {
        let node = self.graph().written_ref(self.node_of(id)).clone();
        let failure = &failed.failure;
        let text = |key: &str| failure.details.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = || Some(failure.message.clone());
        let (kind, title, body) = match failure.kind {
            ErrorKind::OutcomeUnknown => {
                (GateKind::Outcome, format!("Did {node} take effect before it was lost?"), message())
            }
            ErrorKind::InputRequired => {
                (GateKind::Input, text("title").unwrap_or_else(|| failure.message.clone()), text("body"))
            }
            kind => (GateKind::Review, format!("{node} failed: {kind}"), message()),
        };
        let form = match kind {
            GateKind::Input => super::gate::form_asked(&failure.details),
            kind => super::gate::form(kind),
        };
        self.say_timed_out(id, failed, TimeoutPolicy::Escalate);
        let gate = self.next_gate();
        let record =
            GateRecord { body, form, failure: Some(failed.failure.clone()), ..GateRecord::new(kind, title) };
        let report = failed.report.clone();
        self.record(EventKind::GateOpened {
            gate,
            token: Some(id),
            record: Box::new(record),
            report,
            opened_with: None,
        });
        self.request(Command::OpenGate { gate });
        gate
    }
}

/// The profile that a node's model calls name.
pub(super) fn written_model(graph: &Graph, node: NodeIx) -> Option<Name> {
    let task = graph.node(node).task()?;
    task.steps.iter().find_map(|step| match &step.action.def.implementation {
        Implementation::LlmCall(call) => call.model.as_ref().map(|m| m.text.clone()),
        _ => None,
    })
}

fn free_ref(graph: &Graph, node: &Name) -> Name {
    let mut name = format!("{node}_check");
    while graph.find_node(&name).is_some() {
        name.push('_');
    }
    name.into()
}
