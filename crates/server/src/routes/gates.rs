//! Gates: who is asked what, and answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use wonder_engine::json::Outcome;
use wonder_engine::{Answer, EngineError, GateView, Request};

use super::start::{derived, key};
use super::{Page, json};
use crate::access::Caller;
use crate::app::App;
use crate::body::{Json, Params};
use crate::problem::Problem;

/// Open gates, the oldest first
#[utoipa::path(get, path = "/api/v1/gates", operation_id = "list_gates",
    params(("run" = Option<String>, Query, description = "Only of this run and those it called")),
    responses((status = 200, description = "All of them", body = ref("#/components/schemas/Gates")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["run"])?;
    let run = match params.text("run") {
        Some(run) => Some(app.run(&caller, &run).await?.row.run),
        None => None,
    };
    let gates = app.engine().gates(run).await?;
    Ok(Page::whole(seen(&app, &caller, gates).await?))
}

/// A gate is of its run's project.
async fn seen(app: &App, caller: &Caller, gates: Vec<GateView>) -> Result<Vec<GateView>, Problem> {
    if caller.project.is_none() {
        return Ok(gates);
    }
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut own = Vec::new();
    for gate in gates {
        let sees = match known.get(&gate.root) {
            Some(sees) => *sees,
            None => app.run(caller, &gate.root).await.is_ok(),
        };
        known.insert(gate.root.clone(), sees);
        own.extend(sees.then_some(gate));
    }
    Ok(own)
}

/// One gate, open or closed, with its history
#[utoipa::path(get, path = "/api/v1/gates/{gate}", operation_id = "show_gate",
    params(("gate" = String, Path, description = "RUN:NUMBER")),
    responses((status = 200, description = "The gate", body = ref("#/components/schemas/GateDetails")),
        (status = 404, description = "no such gate", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(gate): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let gate = whole(&app, &caller, &gate).await?;
    Ok(json(&app.engine().gate(gate).await?))
}

/// Answer a gate
#[utoipa::path(post, path = "/api/v1/gates/{gate}/answer", operation_id = "answer_gate",
    params(("gate" = String, Path, description = "RUN:NUMBER"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same again is done once")),
    request_body(content = ref("#/components/schemas/Answer"), content_type = "application/json"),
    responses((status = 200, description = "Answered; the run as it is now", body = ref("#/components/schemas/Outcome")),
        (status = 404, description = "no such gate", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "somebody has answered, or the gate was closed", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 422, description = "the answer does not fit the form; `cause` says why", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(gate): Path<String>,
    headers: HeaderMap,
    body: Json,
) -> Result<Response, Problem> {
    let gate = whole(&app, &caller, &gate).await?;
    let request_id = key(&headers)?.map(|key| derived("act", &caller, &key));
    let answer = Answer { request_id, gate, answer: body.0, by: caller.name.clone() };
    match app.engine().ask(Request::Answer(answer)).await? {
        wonder_engine::Response::Run(view) => Ok(json(&Outcome::of(&view))),
        other => Err(EngineError::internal(format!("answered a gate and was given {other:?}")).into()),
    }
}

/// The gate's whole id, of a run that the caller may see.
async fn whole(app: &App, caller: &Caller, gate: &str) -> Result<String, Problem> {
    let (run, number) = gate.rsplit_once(':').ok_or_else(|| EngineError::no_such_gate(gate))?;
    let run = app.run(caller, run).await?.row.run;
    Ok(format!("{run}:{number}"))
}
