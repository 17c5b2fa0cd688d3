//! Child runs: `workflow_call` and `ChildFinished`.

use crate::child_start::child_id;
use crate::command::{ChildOrder, Command};
use crate::cost::Spend;
use crate::def::Name;
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, NewChild, OpenedWith, Report, TimeoutType, TokenId};
use crate::graph::{CallSpec, CalleeSpec, Coordinated, Node, Perform};
use crate::input::{ChildOutcome, Rejection};
use crate::scope::{Around, named};
use crate::state::Place;
use crate::task::{ActionCall, expression_error};
use crate::value::Value;

use super::Decision;
use super::budget::Room;
use super::dispatch::LINE_LOOKED_AT_MAX;
use super::fail::Failed;

impl Decision<'_> {
    pub(super) fn start_child(
        &mut self,
        id: TokenId,
        node: &Node,
        spec: &CallSpec,
        call: &ActionCall,
        opened_with: OpenedWith,
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
        let workflow = self.callee(id, spec, &call.scope)?;
        let input = match &spec.with {
            None => call.input.clone(),
            Some(with) => with.render_values(&call.scope).map_err(expression_error)?,
        };
        let attempt = self.token(id).attempt + 1;
        let child = child_id(&start.id, id, attempt);
        let own = node.timeout_ms.or(spec.timeout_ms);
        let left = self.state().clock.limit_ms.saturating_sub(self.state().clock.elapsed_ms(self.now));
        let timeout_ms = if spec.inherit_timeout { Some(own.map_or(left, |own| own.min(left))) } else { own };
        let (allowance, on_exceeded) = self.allowance_for_child(&workflow, node);
        self.record(EventKind::ChildStarted(NewChild {
            token: id,
            attempt,
            child,
            allowance,
            on_exceeded,
            workflow,
            input,
            timeout_ms,
            inherit_artifacts: spec.inherit_artifacts,
            deadline: own.map(|ms| self.now.plus(ms)),
            opened_with: Some(opened_with),
        }));
        let order = self.run.child_order(id, attempt).expect("a child that was just started is owed");
        self.request(Command::StartChild(order));
        if self.state().status == crate::lifecycle::RunStatus::Paused {
            self.pause_children();
        }
        Ok(())
    }

    /// Starts the first child run in line that the budgets have room for. False when none can go.
    pub(super) fn call_next(&mut self) -> bool {
        let graph = self.graph();
        let mut from = TokenId(0);
        for _ in 0..LINE_LOOKED_AT_MAX {
            let Some(id) = self.state().calling.range(from..).next().copied() else { return false };
            if self.held_back(id) {
                return true;
            }
            match self.room_for_child(graph.node(self.node_of(id))) {
                Room::Fits => self.enter(id),
                Room::Later => return false,
                Room::LaterInNode => {
                    from = TokenId(id.0 + 1);
                    continue;
                }
                Room::Never(over) => {
                    self.over_budget(id, over);
                }
            }
            return true;
        }
        false
    }

    /// Which workflow to call. On the node itself that is said in the run's scope, whatever the child gets.
    fn callee(&self, id: TokenId, spec: &CallSpec, scope: &Value) -> Result<Name, Failure> {
        let around = Around { near: scope, far: self.view(id) };
        let name = match &spec.workflow {
            CalleeSpec::Named(name) => {
                name.render(&named(name.reads(), &around)).map_err(expression_error)?
            }
            CalleeSpec::FromContext(expr) => {
                let value = expr.eval(&around).map_err(expression_error)?;
                let Some(name) = value.as_str() else {
                    let message =
                        format!("`{}` must give a workflow's name, not a {}", expr.text(), value.type_name());
                    return Err(Failure::new(ErrorKind::ExpressionError, message));
                };
                name.to_owned()
            }
        };
        Ok(name.into())
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
        self.raise_by_child(id, attempt, &spend);
        if !self.is_awaited(id, attempt) {
            self.late(id, attempt, Report { spend, ..Report::default() });
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
                let message = format!("child run {child} failed: {failure}");
                Failure::new(ErrorKind::SubworkflowFailed, message).because_of(failure)
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
        self.call_spec(id).is_some_and(|call| call.catch)
    }

    fn call_timeout_ms(&self, id: TokenId) -> Option<u64> {
        self.run.graph().node(self.node_of(id)).timeout_ms.or(self.call_spec(id)?.timeout_ms)
    }

    fn call_spec(&self, id: TokenId) -> Option<&CallSpec> {
        let Perform::Coordinator { task, .. } = &self.run.graph().node(self.node_of(id)).perform else {
            return None;
        };
        match task.steps.first()?.action.coordinated.as_ref()? {
            Coordinated::WorkflowCall(call) => Some(call),
            _ => None,
        }
    }

    /// The node's own time for its child is over.
    pub(super) fn child_expired(&mut self, id: TokenId) {
        let Place::WaitingForSubworkflow { child, .. } = &self.token(id).place else { return };
        let (child, attempt) = (child.clone(), self.token(id).attempt);
        let after_ms = self.call_timeout_ms(id).unwrap_or(0);
        self.call_back(id, attempt);
        let failure = Failure::new(ErrorKind::Timeout, format!("child run {child} did not end in time"));
        let failed = Failed { expired: Some((TimeoutType::Task, after_ms)), ..Failed::of(failure) };
        self.waited(id, Err(failed));
    }
}

impl crate::run::Run {
    pub(crate) fn child_order(&self, id: TokenId, attempt: u32) -> Option<Box<ChildOrder>> {
        let new = self.state().child_orders.get(&(id, attempt))?;
        let parent = self.state().start.as_ref()?.parent.as_ref();
        Some(Box::new(ChildOrder {
            token: new.token,
            attempt: new.attempt,
            child: new.child.clone(),
            workflow: new.workflow.clone(),
            input: new.input.clone(),
            depth: parent.map_or(0, |parent| parent.depth) + 1,
            allowance: new.allowance,
            on_exceeded: new.on_exceeded,
            timeout_ms: new.timeout_ms,
            inherit_artifacts: new.inherit_artifacts,
        }))
    }
}
