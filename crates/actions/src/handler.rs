//! Who performs which kind of action. A handler makes one try of a call; tries, timeouts and reports are the
//! worker's business. Hosts add handlers of their own through [`crate::Settings::handlers`].

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use wonder_core::command::TaskOrder;
use wonder_core::cost::Allowance;
use wonder_core::def::Implementation;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::{Delivery, TryFailure};
use wonder_core::graph::Action;
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::cassette::{Asked, Asking};
use crate::context::ActionContext;
use crate::deadline::Stopped;

/// Performs actions of one or more kinds.
pub trait ActionHandler: Send + Sync + fmt::Debug {
    /// The kinds that it performs, as people write them: `shell`.
    fn kinds(&self) -> &[&'static str];

    /// Makes one try. It may be dropped at any point, and stops what it has started then.
    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c>;

    /// What the call asks of the outside, for a cassette: the fields of the action with their texts filled in, as the try
    /// fills them in, but without secrets and without what differs from run to run. Unless a handler says otherwise, all
    /// of its input.
    fn asked(&self, asking: &Asking<'_>) -> Result<Asked, Failure> {
        Ok(Asked::Outside(Value::map([("input", asking.call.input.clone())])))
    }

    /// A result as a cassette has it: without what nobody else may have, though no secret is known to be in it.
    fn for_cassette(&self, result: Value) -> Value {
        result
    }

    /// The most that one try of the call may cost: the task stops where that may break its allowance.
    fn worst_case(&self, _order: &TaskOrder, _call: &ActionCall) -> Allowance {
        Allowance::default()
    }
}

/// How a try ended.
pub type TryResult = Result<Value, TryError>;

/// How a try ended without a result.
#[derive(Clone, Debug, PartialEq)]
pub enum TryError {
    Failed(TryFailure),
    /// There was reason to stop: see [`crate::Deadline`].
    Stopped(Stopped),
}

impl TryError {
    /// It ended in a way that says what happened.
    pub fn answered(failure: Failure) -> TryError {
        TryError::Failed(TryFailure::answered(failure))
    }

    /// It went out, and what became of it is not known.
    pub fn unknown(failure: Failure) -> TryError {
        TryError::Failed(TryFailure::unknown(failure))
    }

    /// The same for a try of which something had gone out before: it is not a failure before that.
    pub(crate) fn after(self, delivery: Delivery) -> TryError {
        match self {
            TryError::Failed(TryFailure { failure, delivery: Delivery::NotSent }) => {
                TryError::Failed(TryFailure { failure, delivery })
            }
            error => error,
        }
    }
}

/// A failure before anything went out.
impl From<Failure> for TryError {
    fn from(failure: Failure) -> TryError {
        TryError::Failed(failure.into())
    }
}

impl From<Stopped> for TryError {
    fn from(stopped: Stopped) -> TryError {
        TryError::Stopped(stopped)
    }
}

/// A try under way. What needs no waiting is done at once, and costs no future of its own.
pub enum Performing<'c> {
    Done(TryResult),
    Pending(Pin<Box<dyn Future<Output = TryResult> + Send + 'c>>),
}

impl<'c> Performing<'c> {
    pub fn pending(work: impl Future<Output = TryResult> + Send + 'c) -> Performing<'c> {
        Performing::Pending(Box::pin(work))
    }

    pub(crate) async fn result(self) -> TryResult {
        match self {
            Performing::Done(result) => result,
            Performing::Pending(work) => work.await,
        }
    }
}

impl fmt::Debug for Performing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Performing::Done(result) => f.debug_tuple("Done").field(result).finish(),
            Performing::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// The handlers of a worker, by kind.
#[derive(Debug, Default)]
pub(crate) struct Registry(BTreeMap<&'static str, Arc<dyn ActionHandler>>);

impl Registry {
    /// For each of its kinds, it takes the place of the handler that was there.
    pub(crate) fn add(&mut self, handler: Arc<dyn ActionHandler>) {
        for kind in handler.kinds() {
            self.0.insert(kind, handler.clone());
        }
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    pub(crate) fn find(&self, implementation: &Implementation) -> Option<&dyn ActionHandler> {
        self.0.get(implementation.kind()).map(|handler| &**handler)
    }

    pub(crate) fn worst_case(&self, order: &TaskOrder, call: &ActionCall) -> Allowance {
        let handler = self.find(&call.action.def.implementation);
        handler.map_or_else(Allowance::default, |handler| handler.worst_case(order, call))
    }

    /// What a try of this action gives that nobody performs.
    pub(crate) fn unable(&self, action: &Action) -> Failure {
        let kind = action.def.implementation.kind();
        let known: Vec<String> = self.kinds().map(|kind| format!("`{kind}`")).collect();
        let message = format!(
            "this worker cannot perform `{kind}`: it knows {}; run this with a host that has a worker for \
             `{kind}`",
            known.join(", ")
        );
        Failure::new(ErrorKind::Internal, message)
    }
}
