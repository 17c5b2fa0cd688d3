//! Child runs: `workflow_call` and `ChildFinished`.

use crate::command::{ChildOrder, Command};
use crate::cost::{Allowance, Spend};
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, Report, TimeoutType, TokenId};
use crate::graph::{CallSpec, CalleeSpec, Coordinated, Node, Perform};
use crate::input::{ChildOutcome, Rejection};
use crate::scope::Roots;
use crate::state::Place;
use crate::task::{ActionCall, expression_error};
use crate::value::Value;

use super::Decision;
use super::fail::Failed;

impl Decision<'_> {
    pub(super) fn start_child(
        &mut self,
        id: TokenId,
        node: &Node,
        spec: &CallSpec,
        call: &ActionCall,
    ) -> Result<(), Failure> {
        let start = self.state().start.as_ref().expect("a run that calls has started");
        let depth = start.parent.as_ref().map_or(0, |parent| parent.depth) + 1;
        if depth > start.limits.child_depth_max {
            let message = format!(
                "beyond the limit child_depth_max ({}): runs within runs",
                start.limits.child_depth_max
            );
            return Err(Failure::new(ErrorKind::LimitExceeded, message));
        }
        let workflow = match &spec.workflow {
            CalleeSpec::Named(name) => name.render(&call.scope).map_err(expression_error)?,
            CalleeSpec::FromContext(expr) => {
                let value = expr.eval(&Roots(&call.scope)).map_err(expression_error)?;
                let Some(name) = value.as_str() else {
                    let message =
                        format!("`{}` must give a workflow's name, not a {}", expr.text(), value.type_name());
                    return Err(Failure::new(ErrorKind::ExpressionError, message));
                };
                name.to_owned()
            }
        };
        let attempt = self.token(id).attempt + 1;
        let child = format!("{}.{id}.{attempt}", start.id);
        let own = node.timeout_ms.or(spec.timeout_ms);
        let left = self.state().clock.limit_ms.saturating_sub(self.state().clock.elapsed_ms(self.now));
        let timeout_ms = if spec.inherit_timeout { Some(own.map_or(left, |own| own.min(left))) } else { own };
        self.record(EventKind::ChildStarted {
            token: id,
            attempt,
            child: child.into(),
            workflow: workflow.into(),
            input: call.input.clone(),
            allowance: self.allowance_for_child(),
            timeout_ms,
            inherit_artifacts: spec.inherit_artifacts,
            deadline: own.map(|ms| self.now.plus(ms)),
        });
        let order = self.run.child_order(id, attempt).expect("a child that was just started is owed");
        self.request(Command::StartChild(order));
        if self.state().status == crate::lifecycle::RunStatus::Paused {
            self.pause_children();
        }
        Ok(())
    }

    /// What is left of this run's budget; the child's own may be smaller.
    fn allowance_for_child(&self) -> Option<Allowance> {
        let state = self.state();
        let told = state.start.as_ref().and_then(|start| start.allowance);
        let budget = self.run_budget();
        let left = |limit: Option<u64>, told: u64, used: u64| {
            let limit = match (limit, told) {
                (Some(limit), 0) => Some(limit),
                (Some(limit), told) => Some(limit.min(told)),
                (None, 0) => None,
                (None, told) => Some(told),
            };
            // Zero means "no bound" in an allowance, so that nothing left is one micro-dollar.
            limit.map_or(0, |limit| limit.saturating_sub(used).max(1))
        };
        let told = told.unwrap_or_default();
        let allowance = Allowance {
            usd_micros: left(
                budget.and_then(|b| b.usd_micros),
                told.usd_micros,
                state.spend.usd_micros + state.reserved.usd_micros,
            ),
            tokens: left(
                budget.and_then(|b| b.tokens),
                told.tokens,
                state.spend.tokens() + state.reserved.tokens,
            ),
            calls: left(budget.and_then(|b| b.calls), told.calls, state.spend.calls + state.reserved.calls),
        };
        (allowance != Allowance::default()).then_some(allowance)
    }

    pub(super) fn child_finished(
        &mut self,
        id: TokenId,
        attempt: u32,
        outcome: ChildOutcome,
        spend: Spend,
    ) -> Result<(), Rejection> {
        let out = self.state().out.get(&(id, attempt));
        let Some(child) = out.and_then(|out| out.child.clone()) else {
            return Err(Rejection::NotOut { token: id, attempt });
        };
        if !self.is_awaited(id, attempt) {
            self.late(id, attempt, Report { spend, tries: 0 });
            return Ok(());
        }
        let name = match &outcome {
            ChildOutcome::Completed { .. } => "completed",
            ChildOutcome::Failed { .. } => "failed",
            ChildOutcome::TimedOut => "timed_out",
            ChildOutcome::Cancelled => "cancelled",
        };
        self.record(EventKind::ChildCompleted {
            token: id,
            attempt,
            child: child.clone(),
            outcome: name.into(),
            spend,
        });
        let failure = match outcome {
            ChildOutcome::Completed { output } => {
                self.waited(id, Ok(output));
                return Ok(());
            }
            ChildOutcome::Failed { failure } => {
                let details = Value::map([("cause", failure.to_value())]);
                let message = format!("child run {child} failed: {failure}");
                Failure::new(ErrorKind::SubworkflowFailed, message).with_details(details)
            }
            ChildOutcome::TimedOut | ChildOutcome::Cancelled => {
                Failure::new(ErrorKind::SubworkflowFailed, format!("child run {child} was {name}"))
            }
        };
        if self.catches(id) {
            self.waited(id, Ok(Value::map([("error", failure.to_value())])));
        } else {
            self.waited(id, Err(Failed::of(failure)));
        }
        Ok(())
    }

    fn catches(&self, id: TokenId) -> bool {
        let Perform::Coordinator { task, .. } = &self.run.graph().node(self.node_of(id)).perform else {
            return false;
        };
        let coordinated = task.steps.first().and_then(|step| step.action.coordinated.as_ref());
        matches!(coordinated, Some(Coordinated::WorkflowCall(CallSpec { catch: true, .. })))
    }

    /// The node's own time for its child is over.
    pub(super) fn child_expired(&mut self, id: TokenId) {
        let Place::WaitingForSubworkflow { child, .. } = &self.token(id).place else { return };
        let (child, attempt, since) = (child.clone(), self.token(id).attempt, self.token(id).created_at);
        let after_ms = self.now.since(since);
        self.call_back(id, attempt);
        let failure = Failure::new(ErrorKind::Timeout, format!("child run {child} did not end in time"));
        let failed = Failed { expired: Some((TimeoutType::Task, after_ms)), ..Failed::of(failure) };
        self.waited(id, Err(failed));
    }
}

impl crate::run::Run {
    pub(crate) fn child_order(&self, id: TokenId, attempt: u32) -> Option<Box<ChildOrder>> {
        let EventKind::ChildStarted {
            token,
            attempt,
            child,
            workflow,
            input,
            allowance,
            timeout_ms,
            inherit_artifacts,
            ..
        } = self.state().child_orders.get(&(id, attempt))?
        else {
            return None;
        };
        let parent = self.state().start.as_ref()?.parent.as_ref();
        Some(Box::new(ChildOrder {
            token: *token,
            attempt: *attempt,
            child: child.clone(),
            workflow: workflow.clone(),
            input: input.clone(),
            depth: parent.map_or(0, |parent| parent.depth) + 1,
            allowance: *allowance,
            timeout_ms: *timeout_ms,
            inherit_artifacts: *inherit_artifacts,
        }))
    }
}
