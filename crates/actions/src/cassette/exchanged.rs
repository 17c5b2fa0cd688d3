//! One try with a cassette between the worker and the handler.

use std::sync::Arc;

use tokio::time::Instant;
use wonder_cassette::{Exchange, Outcome, Request, Stop};
use wonder_core::artifact::Artifact;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::TryFailure;
use wonder_core::value::Value;

use super::asking::{Asked, Asking, placeholders};
use super::tape::Tape;
use crate::artifacts::{Content, NewArtifact};
use crate::context::ActionContext;
use crate::deadline::Stopped;
use crate::handler::{ActionHandler, TryError, TryResult};

/// Performs a try and records it, or answers it from what was recorded. What asks nothing of the outside is performed.
pub(crate) async fn perform(
    tape: &Arc<Tape>,
    handler: &dyn ActionHandler,
    context: &mut ActionContext<'_>,
) -> TryResult {
    let scope = placeholders(context.call);
    let asking = Asking { call: context.call, scope: &scope, workdir: Some(context.workdir()) };
    let asked = handler.asked(&asking);
    match asked {
        Ok(Asked::Outside(fields)) if tape.is_replay() => replayed(tape, fields, context).await,
        Ok(Asked::Outside(fields)) => {
            let begun = Instant::now();
            let result = handler.perform(context).result().await;
            record(tape, handler, (fields, &result, begun), context).await;
            result
        }
        Ok(Asked::Nothing) => handler.perform(context).result().await,
        // A request that cannot be put together is none.
        Err(failure) if tape.is_replay() => Err(failure.into()),
        Err(_) => handler.perform(context).result().await,
    }
}

fn request_of(fields: Value, context: &ActionContext<'_>) -> Request {
    let kind = context.call.action.def.implementation.kind().to_owned();
    Request { kind, fields: context.secrets.redactor().hide_in(fields) }
}

async fn record(
    tape: &Arc<Tape>,
    handler: &dyn ActionHandler,
    (fields, result, begun): (Value, &TryResult, Instant),
    context: &ActionContext<'_>,
) {
    let request = request_of(fields, context);
    // After the request, so that what the try itself has taught is hidden.
    let redactor = context.secrets.redactor();
    let outcome = match result.clone() {
        Ok(value) => Outcome::Result(redactor.hide_in(handler.for_cassette(value))),
        Err(TryError::Failed(TryFailure { failure, delivery })) => {
            Outcome::Failed(TryFailure { failure: redactor.hide_failure(failure), delivery })
        }
        Err(TryError::Stopped(stopped)) => Outcome::Stopped(match stopped {
            Stopped::ActionTimeout => Stop::ActionTimeout,
            Stopped::TaskTimeout => Stop::TaskTimeout,
            Stopped::Cancelled => Stop::Cancelled,
        }),
    };
    let (store, artifacts) = context.artifacts.kept().unzip();
    let artifacts: Vec<Artifact> = artifacts.filter(|_| result.is_ok()).unwrap_or_default().to_vec();
    let exchange = Exchange {
        place: tape.place(context.order(), &context.call.step, context.number),
        request,
        outcome,
        spend: context.spend.clone(),
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        artifacts,
    };
    let (tape, store) = (tape.clone(), store.cloned());
    // It only waits: what goes wrong is the tape's to tell.
    let _ = tokio::task::spawn_blocking(move || tape.write(&exchange, store.as_ref())).await;
}

async fn replayed(tape: &Tape, fields: Value, context: &mut ActionContext<'_>) -> TryResult {
    let request = request_of(fields, context);
    let place = tape.place(context.order(), &context.call.step, context.number);
    let exchange = tape.answer(&request, &place)?;
    context.spend = exchange.spend;
    for artifact in exchange.artifacts {
        let bytes = tape.kept(&artifact).map_err(|why| Failure::new(ErrorKind::NotRecorded, why))?;
        let Artifact { name, artifact_type, media_type, .. } = artifact;
        let new = NewArtifact { name: name.to_string(), artifact_type, media_type: Some(media_type) };
        context.keep_artifact(new, Content::Bytes(bytes)).await?;
    }
    match exchange.outcome {
        Outcome::Result(value) => Ok(value),
        Outcome::Failed(failed) => Err(TryError::Failed(failed)),
        Outcome::Stopped(Stop::ActionTimeout) => Err(Stopped::ActionTimeout.into()),
        Outcome::Stopped(Stop::TaskTimeout) => Err(Stopped::TaskTimeout.into()),
        // It had not ended when nobody wanted it any more.
        Outcome::Stopped(Stop::Cancelled) => Err(context.deadline.reached().await.into()),
    }
}
