//! The `mock` action for real: the core's script, with the delay waited for.

use wonder_core::command::TaskOrder;
use wonder_core::cost::Allowance;
use wonder_core::error::Failure;
use wonder_core::graph::Work;
use wonder_core::mock;
use wonder_core::task::ActionCall;

use crate::cassette::{Asked, Asking};
use crate::context::ActionContext;
use crate::handler::{ActionHandler, Performing, TryError, TryResult};

#[derive(Debug)]
pub(crate) struct MockHandler;

impl ActionHandler for MockHandler {
    fn kinds(&self) -> &[&'static str] {
        &["mock"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        let Some(Work::Mock(script)) = &context.call.action.work else {
            unreachable!("only mocks come here")
        };
        let answer = mock::outcome(script, context.number, context.scope);
        // The script says what happened, so nothing is in doubt.
        let result: TryResult = answer.result.map_err(TryError::answered);
        if answer.delay_ms == 0 {
            context.spend.add(&answer.spend);
            return Performing::Done(result);
        }
        Performing::pending(async move {
            context.deadline.wait(answer.delay_ms).await?;
            context.spend.add(&answer.spend);
            result
        })
    }

    /// It reaches nobody.
    fn asked(&self, _asking: &Asking<'_>) -> Result<Asked, Failure> {
        Ok(Asked::Nothing)
    }

    fn worst_case(&self, _order: &TaskOrder, call: &ActionCall) -> Allowance {
        wonder_core::reserve::worst_try(&call.action)
    }
}
