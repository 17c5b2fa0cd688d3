//! One try with a cassette between the worker and the handler.

use std::sync::Arc;

use tokio::time::Instant;
use wonder_artifacts::Store;
use wonder_cassette::{Exchange, Outcome, Request, Stop};
use wonder_core::artifact::Artifact;
use wonder_core::cost::Spend;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::TryFailure;
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use super::asking::{Asked, Asking, placeholders};
use super::tape::Tape;
use crate::artifacts::{Content, NewArtifact};
use crate::context::ActionContext;
use crate::deadline::Stopped;
use crate::handler::{ActionHandler, TryError, TryResult};
use crate::job::Job;
use crate::secrets::KnownSecrets;

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

/// A try that was not made.
pub(crate) struct Stopping<'s> {
    pub(crate) job: &'s Job,
    pub(crate) call: &'s ActionCall,
    /// Which one it would have been.
    pub(crate) number: u32,
    pub(crate) secrets: &'s KnownSecrets,
}

/// Records that there was reason to stop before another try: where waits are not waited for, it is asked for.
pub(crate) async fn record_stop(
    tape: &Arc<Tape>,
    handler: &dyn ActionHandler,
    Stopping { job, call, number, secrets }: Stopping<'_>,
    stopped: Stopped,
) {
    let scope = placeholders(call);
    let asking = Asking { call, scope: &scope, workdir: Some(&job.workdir) };
    let Ok(Asked::Outside(fields)) = handler.asked(&asking) else { return };
    let exchange = Exchange {
        place: tape.place(&job.order, &call.step, number),
        request: request_of(fields, call, secrets),
        outcome: Outcome::Stopped(as_recorded(stopped)),
        spend: Spend::default(),
        took_ms: 0,
        artifacts: Vec::new(),
    };
    write(tape, exchange, None).await;
}

fn request_of(fields: Value, call: &ActionCall, secrets: &KnownSecrets) -> Request {
    let kind = call.action.def.implementation.kind().to_owned();
    Request { kind, fields: secrets.redactor().hide_in(fields) }
}

fn as_recorded(stopped: Stopped) -> Stop {
    match stopped {
        Stopped::ActionTimeout => Stop::ActionTimeout,
        Stopped::TaskTimeout => Stop::TaskTimeout,
        Stopped::Cancelled => Stop::Cancelled,
    }
}

async fn write(tape: &Arc<Tape>, exchange: Exchange, store: Option<Store>) {
    let tape = tape.clone();
    // It only waits: what goes wrong is the tape's to tell.
    let _ = tokio::task::spawn_blocking(move || tape.write(&exchange, store.as_ref())).await;
}

async fn record(
    tape: &Arc<Tape>,
    handler: &dyn ActionHandler,
    (fields, result, begun): (Value, &TryResult, Instant),
    context: &ActionContext<'_>,
) {
    let request = request_of(fields, context.call, context.secrets);
    // After the request, so that what the try itself has taught is hidden.
    let redactor = context.secrets.redactor();
    let outcome = match result.clone() {
        Ok(value) => Outcome::Result(redactor.hide_in(handler.for_cassette(value))),
        Err(TryError::Failed(TryFailure { failure, delivery })) => {
            Outcome::Failed(TryFailure { failure: redactor.hide_failure(failure), delivery })
        }
        Err(TryError::Stopped(stopped)) => Outcome::Stopped(as_recorded(stopped)),
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
    write(tape, exchange, store.cloned()).await;
}

async fn replayed(tape: &Tape, fields: Value, context: &mut ActionContext<'_>) -> TryResult {
    let request = request_of(fields, context.call, context.secrets);
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
