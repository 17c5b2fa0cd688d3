//! `wait_event` and `EventArrived`: the first that fits, whichever comes first.

use crate::def::{Name, Take};
use crate::error::{ErrorKind, Failure};
use crate::event::{EventKind, EventWait, OpenedWith, TimeoutPolicy, TimeoutType, TokenId};
use crate::graph::{Coordinated, Node, Perform, WaitSpec};
use crate::input::{Limit, Operation, Rejection};
use crate::lifecycle::RunStatus;
use crate::scope::Around;
use crate::state::Place;
use crate::task::expression_error;
use crate::value::Value;

use super::Decision;
use super::fail::Failed;

impl Decision<'_> {
    pub(super) fn await_event(
        &mut self,
        id: TokenId,
        node: &Node,
        wait: &WaitSpec,
        scope: &Value,
        opened_with: OpenedWith,
    ) -> Result<(), Failure> {
        let event: Name = wait.event.render(scope).map_err(expression_error)?.into();
        let key = match &wait.key {
            None => Value::Null,
            Some(key) => key.eval(&Around { near: scope, far: self.view(id) }).map_err(expression_error)?,
        };
        if wait.take == Take::Kept {
            self.take_kept(id, &event, &key, opened_with);
            return Ok(());
        }
        let kept = self.state().events_kept.iter().find(|kept| kept.event == event && fits(&key, &kept.key));
        if let Some((received, payload)) = kept.map(|kept| (kept.seq, kept.payload.clone())) {
            self.record(EventKind::EventTaken { token: id, received });
            self.answer_wait(id, opened_with, Ok(payload));
            return Ok(());
        }
        let deadline = wait.timeout_ms.or(node.timeout_ms).map(|ms| self.now.plus(ms));
        let opened_with = Some(opened_with);
        self.record(EventKind::EventAwaited(EventWait { token: id, event, key, deadline, opened_with }));
        Ok(())
    }

    /// All that have come so far; it waits for none.
    fn take_kept(&mut self, id: TokenId, event: &Name, key: &Value, opened_with: OpenedWith) {
        let kept = self.state().events_kept.iter();
        let kept = kept.filter(|kept| kept.event == *event && fits(key, &kept.key));
        let taken: Vec<(u64, Value)> = kept.map(|kept| (kept.seq, kept.payload.clone())).collect();
        for (received, _) in &taken {
            self.record(EventKind::EventTaken { token: id, received: *received });
        }
        let payloads = taken.into_iter().map(|(_, payload)| payload);
        self.answer_wait(id, opened_with, Ok(Value::list(payloads)));
    }

    pub(super) fn event_arrived(
        &mut self,
        event: Name,
        key: Value,
        payload: Value,
        keep: bool,
    ) -> Result<(), Rejection> {
        self.must_be(Operation::SendEvent, &[RunStatus::Queued, RunStatus::Running, RunStatus::Paused])?;
        let limits = &self.state().start.as_ref().expect("handle looks first").limits;
        if self.check_size(&payload).is_err() {
            return Err(Rejection::LimitExceeded {
                limit: Limit::ResultBytesMax,
                max: limits.result_bytes_max,
            });
        }
        let waiter = self.run.tokens().find(|token| match &token.place {
            Place::WaitingForEvent { event: wanted, key: with, .. } => *wanted == event && fits(with, &key),
            _ => false,
        });
        let token = waiter.map(|token| token.id);
        if token.is_none() {
            if !keep {
                return Err(Rejection::NobodyWaits { event });
            }
            let max = limits.events_kept_max;
            if self.state().events_kept.len() >= max as usize {
                return Err(Rejection::LimitExceeded { limit: Limit::EventsKeptMax, max: max.into() });
            }
        }
        self.record(EventKind::EventReceived { event, key, payload: payload.clone(), token });
        if let Some(token) = token {
            self.waited(token, Ok(payload));
        }
        Ok(())
    }

    /// Nothing came in time.
    pub(super) fn event_expired(&mut self, id: TokenId) {
        let Place::WaitingForEvent { event, .. } = &self.token(id).place else { return };
        let message = format!("event {event} did not come in time");
        let default = self.default_payload(id);
        let node = self.run.graph().node(self.node_of(id));
        let waited = self.wait_spec(id).and_then(|wait| wait.timeout_ms).or(node.timeout_ms).unwrap_or(0);
        let expired = Some((TimeoutType::Execution, waited));
        let failed = Failed { expired, ..Failed::of(Failure::new(ErrorKind::Timeout, message)) };
        match default {
            Some(default) => {
                self.say_timed_out(id, &failed, TimeoutPolicy::Default);
                self.waited(id, Ok(default));
            }
            None => self.waited(id, Err(failed)),
        }
    }

    fn default_payload(&self, id: TokenId) -> Option<Value> {
        self.wait_spec(id)?.default.clone()
    }

    fn wait_spec(&self, id: TokenId) -> Option<&WaitSpec> {
        let Perform::Coordinator { task, .. } = &self.run.graph().node(self.node_of(id)).perform else {
            return None;
        };
        match task.steps.first()?.action.coordinated.as_ref()? {
            Coordinated::WaitEvent(wait) => Some(wait),
            _ => None,
        }
    }
}

/// A wait without a key takes any.
fn fits(wanted: &Value, key: &Value) -> bool {
    wanted.is_null() || wanted == key
}
