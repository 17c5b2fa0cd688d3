//! A node failed. In order: its task's own retry, the word of the action that ran out of time, the node's rules, the
//! workflow's rules, the defaults, its failure transitions, the branch it is in, and then the run.

use crate::def::{Name, NodeTimeout, On};
use crate::default_rules::{Happened, action_timeout_rule, default_rule};
use crate::error::{ErrorKind, Failure};
use crate::event::{
    BranchRef, CancelReason, EventKind, GroupId, Report, RuleRef, TimeoutPolicy, TimeoutType, TokenId,
};
use crate::graph::{Response, Rule};
use crate::input::ContinuedStep;
use crate::lifecycle::TokenStatus;
use crate::task::expression_error;

use super::Decision;
use super::budget::Exceeded;
use super::route::Lineage;

/// A failure and what is known about how it came.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    pub(super) report: Option<Report>,
    /// The failed step asks for another attempt of the task.
    pub(super) retry: bool,
    pub(super) step: Option<Name>,
    /// A time that the core or the task itself keeps was over: only written responses apply.
    pub(super) expired: Option<(TimeoutType, u64)>,
    /// The budget that had no room.
    pub(super) exceeded: Option<Exceeded>,
    /// No worker took the task in time: nothing of it has begun.
    pub(super) unbegun: bool,
}

impl Failed {
    pub(super) fn of(failure: Failure) -> Failed {
        Failed {
            failure,
            report: None,
            retry: false,
            step: None,
            expired: None,
            exceeded: None,
            unbegun: false,
        }
    }
}

impl Decision<'_> {
    pub(super) fn fail(&mut self, id: TokenId, mut failed: Failed) {
        let graph = self.graph();
        let at = self.node_of(id);
        failed.failure = failed.failure.at(graph.written_ref(at), self.token(id).attempt);
        if self.retry_task(id, &failed) {
            return;
        }
        let node = graph.node(at);
        let happened = Happened {
            kind: failed.failure.kind,
            step: failed.step.as_ref(),
            expired: failed.expired.is_some(),
        };
        let (of_action, default) = (action_timeout_rule(node, &happened), default_rule(node, &happened));
        // `on_timeout: retry` stands before the written rules, and speaks of work that began.
        let passed_over = usize::from(failed.unbegun && node.leads_with_timeout_rule());
        let written = node.on_error.iter().enumerate().skip(passed_over);
        let rules = (of_action.iter().map(|rule| (RuleRef::Action, rule)))
            .chain(written.map(|(i, rule)| (RuleRef::Node(i as u32), rule)))
            .chain(graph.on_error.iter().enumerate().map(|(i, rule)| (RuleRef::Workflow(i as u32), rule)))
            .chain(default.iter().map(|(i, rule)| (RuleRef::Default(*i), rule)));
        for (reference, rule) in rules {
            match self.applies(id, rule, &failed.failure) {
                Ok(false) => {}
                Ok(true) => {
                    if matches!(rule.response, Response::Fail) {
                        return self.fail_unhandled(id, failed);
                    }
                    if self.respond(id, reference, rule, &failed) {
                        return;
                    }
                }
                Err(broken) => {
                    let broken = broken.because_of(failed.failure.clone());
                    failed.failure = broken.at(graph.written_ref(at), self.token(id).attempt);
                    return self.fail_unhandled(id, failed);
                }
            }
        }
        if failed.failure.kind == ErrorKind::BudgetExceeded && self.by_budget(id, &failed) {
            return;
        }
        self.fail_unhandled(id, failed);
    }

    fn applies(&self, id: TokenId, rule: &Rule, failure: &Failure) -> Result<bool, Failure> {
        // An effect that must happen once, and may have, is repeated only by a rule that says it means that.
        let repeats = rule.response.runs_again() && !rule.repeats_unknown;
        if failure.kind == ErrorKind::OutcomeUnknown && repeats {
            return Ok(false);
        }
        let Some(when) = &rule.when else { return Ok(true) };
        let error = failure.to_value();
        when.eval_bool(&self.view(id).with_error(&error)).map_err(|e| {
            let mut broken = expression_error(e);
            broken.message = format!("`when` of an on_error rule: {}", broken.message);
            broken
        })
    }

    /// Another attempt by the task's own `retry`: a step asks for it, or the node says that its work is tried so
    /// often whatever way it failed.
    fn retry_task(&mut self, id: TokenId, failed: &Failed) -> bool {
        let graph = self.graph();
        let node = graph.node(self.node_of(id));
        let Some(retry) = node.task().and_then(|task| task.retry) else { return false };
        let used = self.token(id).answered.get(&RuleRef::Task).copied().unwrap_or(0);
        if used + 1 >= retry.max_attempts || !(failed.retry || self.retries_unasked(id, failed)) {
            return false;
        }
        // An attempt that broke off may have had its effect: the next one means the same and has the same key.
        let broke_off = failed.failure.broke_off() && !failed.retry;
        let generation = self.token(id).generation + u32::from(!broke_off);
        self.try_again(id, failed, RuleRef::Task, &retry.backoff, |again| again.generation = generation);
        true
    }

    /// The node's own `retry` answers this failure. Not one of a budget, which no further attempt mends; not of work
    /// that no worker took; not a timeout where somebody wrote that it fails; and never what may happen only once.
    fn retries_unasked(&self, id: TokenId, failed: &Failed) -> bool {
        let node = self.run.graph().node(self.node_of(id));
        let any = node.task().is_some_and(|task| task.retries_any_failure());
        let answered = match failed.failure.kind {
            ErrorKind::OutcomeUnknown | ErrorKind::InputRequired | ErrorKind::BudgetExceeded => false,
            ErrorKind::Timeout => node.written_on_timeout(failed.step.as_ref()) != Some(NodeTimeout::Fail),
            _ => true,
        };
        let began = self.token(id).status() != TokenStatus::Pending;
        any && answered && !failed.unbegun && !(began && self.has_reached_once(id, failed.step.as_ref()))
    }

    /// Says which clock ran out, once it is clear what is done about it.
    pub(super) fn say_timed_out(&mut self, id: TokenId, failed: &Failed, policy: TimeoutPolicy) {
        if failed.failure.kind != ErrorKind::Timeout && failed.expired.is_none() {
            return;
        }
        let node = self.graph().written_ref(self.node_of(id)).clone();
        let (timeout_type, ms) =
            failed.expired.unwrap_or_else(|| (TimeoutType::Execution, self.action_timeout_ms(id, failed)));
        self.record(EventKind::TokenTimedOut {
            token: Some(id),
            workflow_run_id: self.run_id(),
            node: Some(node),
            timeout_type,
            timeout_duration_ms: ms,
            policy_applied: policy,
            ends: false,
        });
    }

    /// Steps that failed and whose task went on, each with the time that was over for it.
    pub(super) fn say_continued(&mut self, id: TokenId, continued: Vec<ContinuedStep>) {
        for ContinuedStep { step, failure } in continued {
            let failed = Failed { step: Some(step.clone()), ..Failed::of(failure) };
            self.say_timed_out(id, &failed, TimeoutPolicy::Continue);
            self.say_step_failed(id, step, failed.failure);
        }
    }

    pub(super) fn say_step_failed(&mut self, id: TokenId, step: Name, failure: Failure) {
        let attempt = self.token(id).attempt;
        let failure = failure.at(self.graph().written_ref(self.node_of(id)), attempt);
        self.record(EventKind::StepFailed { token: id, attempt, step, failure });
    }

    /// What the worker says it was, else what is written on the step that failed.
    pub(super) fn action_timeout_ms(&self, id: TokenId, failed: &Failed) -> u64 {
        let task = self.run.graph().node(self.node_of(id)).task();
        let written = || task?.step(failed.step.as_ref()?)?.action.def.execution.timeout_ms;
        failed.failure.timeout_ms().or_else(written).unwrap_or(0)
    }

    pub(super) fn run_id(&self) -> Name {
        self.state().start.as_ref().map_or_else(|| "".into(), |start| start.id.clone())
    }

    /// No response takes care of it: failure transitions, then the branch, then the run.
    pub(super) fn fail_unhandled(&mut self, id: TokenId, mut failed: Failed) {
        let graph = self.graph();
        let token = self.token(id);
        failed.failure = failed.failure.at(graph.written_ref(self.node_of(id)), token.attempt);
        if token.status() == TokenStatus::Escalated {
            // A human's word did not help: the attempt that was under review has failed after all.
            let (generation, overrides) = (token.generation, token.overrides.clone());
            self.record(EventKind::TokenReleased { token: id, generation, overrides, resumed: true });
        }
        let at = graph.routes_as(self.node_of(id));
        let error = failed.failure.to_value();
        let lineage = Lineage { last_error: Some(failed.failure.clone()), ..self.lineage(id) };
        let view =
            crate::scope::View { last_error: Some(&failed.failure), ..self.view(id) }.with_error(&error);
        // A condition that breaks here has nothing left to fail: the first failure is the one to show.
        let plan = self.plan(&lineage, graph.node(at), view, On::Failure).unwrap_or(None);
        self.say_timed_out(id, &failed, TimeoutPolicy::Fail);
        let Failed { failure, report, expired, .. } = failed;
        let (handled, branch) = (plan.is_some(), lineage.branch);
        let timed_out = matches!(expired, Some((TimeoutType::Task | TimeoutType::Execution, _)));
        self.record(EventKind::TaskFailed {
            token: id,
            failure: failure.clone(),
            timed_out,
            handled,
            report,
        });
        match plan {
            Some(plan) => self.follow(plan, id, at, lineage),
            None => self.fail_outward(branch, failure),
        }
    }

    /// The branch has failed: its fan-in will judge. Without one the run fails: at once, or, as a dag that is to
    /// go on with what does not need the failed node, when all else is done.
    pub(super) fn fail_outward(&mut self, branch: Option<BranchRef>, failure: Failure) {
        match branch.and_then(|at| self.state().judged_branch(at)) {
            Some(at) => self.cancel_branch(at, CancelReason::BranchFailed),
            None if !self.run.graph().fail_fast => {}
            None => self.fail_run(failure),
        }
    }

    /// Ends everything that is live in a branch.
    pub(super) fn cancel_branch(&mut self, at: BranchRef, reason: CancelReason) {
        let Some(group) = self.state().groups.get(&at.group) else { return };
        let branch = group.branch(at.branch);
        let (tokens, groups) = (branch.tokens.clone(), branch.groups.clone());
        for token in tokens {
            self.cancel_token(token, reason);
        }
        for inner in groups {
            self.cancel_group(inner, reason);
        }
    }

    fn cancel_group(&mut self, id: GroupId, reason: CancelReason) {
        let Some(group) = self.state().groups.get(&id) else { return };
        let (branches, waiting) = (group.branches.len() as u32, group.waiting.clone());
        for branch in 0..branches {
            self.cancel_branch(BranchRef { group: id, branch }, reason);
        }
        for token in waiting {
            self.cancel_token(token, reason);
        }
        if self.state().groups.contains_key(&id) {
            self.record(EventKind::GroupClosed { group: id, kept: reason == CancelReason::BranchFailed });
        }
    }
}
