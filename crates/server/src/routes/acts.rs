//! What can be done to a run. `by` is the token's name.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use wonder_core::Value;
use wonder_engine::json::Outcome;
use wonder_engine::{Act, EngineError, Fork, Request, Signal, Tell, Workflow};

use super::json;
use super::start::{KEY, derived, key, of_project};
use crate::access::Caller;
use crate::app::App;
use crate::body::{Fields, Json};
use crate::problem::Problem;

/// Asks for a change of a run that the caller may see; under a key it is done once.
async fn asked(app: &App, request: Request) -> Result<Response, Problem> {
    match app.engine().ask(request).await? {
        wonder_engine::Response::Run(view) => Ok(json(&Outcome::of(&view))),
        other => Err(EngineError::internal(format!("asked for a change and was given {other:?}")).into()),
    }
}

fn request_id(headers: &HeaderMap, caller: &Caller) -> Result<Option<String>, Problem> {
    Ok(key(headers)?.map(|key| derived("act", caller, &key)))
}

struct Asking<'a> {
    app: &'a App,
    caller: &'a Caller,
    run: &'a str,
    headers: &'a HeaderMap,
}

impl Asking<'_> {
    async fn act(&self, act: Act) -> Result<Response, Problem> {
        let run = self.app.run(self.caller, self.run).await?.row.run;
        let request_id = request_id(self.headers, self.caller)?;
        asked(self.app, Request::Act { request_id, run, act }).await
    }
}

fn reason(fields: &Fields, caller: &Caller) -> Result<String, Problem> {
    Ok(match fields.text("reason")? {
        Some(reason) => format!("{reason} (by {})", caller.name),
        None => format!("asked by {}", caller.name),
    })
}

fn definition(app: &App, caller: &Caller, fields: &Fields) -> Result<Vec<Workflow>, Problem> {
    let Some(text) = fields.text("definition")? else { return Ok(Vec::new()) };
    let reading = app.read(&text)?;
    let both = reading.bundles.iter().zip(&reading.graphs);
    let mut workflows: Vec<Workflow> =
        both.map(|(bundle, graph)| Workflow { bundle: bundle.clone(), graph: Some(graph.clone()) }).collect();
    for workflow in &mut workflows {
        of_project(workflow, caller, None)?;
    }
    Ok(workflows)
}

macro_rules! acts {
    ($($(#[doc = $doc:literal])* $name:ident $path:literal $id:literal $body:literal [$($field:literal),*]
        |$app:ident, $caller:ident, $fields:ident| $act:expr;)*) => {
        $(
            $(#[doc = $doc])*
            #[utoipa::path(post, path = $path, operation_id = $id,
                params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
                    ("Idempotency-Key" = Option<String>, Header, description = "The same again is done once")),
                request_body(content = ref($body), content_type = "application/json"),
                responses((status = 200, description = "Done; the run as it is now", body = ref("#/components/schemas/Outcome")),
                    (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
                    (status = 409, description = "it does not fit how the run stands", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
                    (status = 422, description = "what came with it is refused", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
            pub(crate) async fn $name(
                State($app): State<Arc<App>>,
                $caller: Caller,
                Path(run): Path<String>,
                headers: HeaderMap,
                body: Json,
            ) -> Result<Response, Problem> {
                let $fields = Fields::of(body, &[$($field),*])?;
                let act = $act;
                Asking { app: &$app, caller: &$caller, run: &run, headers: &headers }.act(act).await
            }
        )*
    };
}

acts! {
    /// End a run: what is out may finish within its grace
    cancel "/api/v1/runs/{run}/cancel" "cancel_run" "#/components/schemas/Cancel" ["reason", "grace"]
        |app, caller, fields| Act::Cancel { reason: reason(&fields, &caller)?, grace_ms: fields.duration_ms("grace")? };
    /// End a run at once
    kill "/api/v1/runs/{run}/kill" "kill_run" "#/components/schemas/Because" ["reason"]
        |app, caller, fields| Act::Kill { reason: reason(&fields, &caller)? };
    /// Stop starting tasks; what is out finishes
    pause "/api/v1/runs/{run}/pause" "pause_run" "#/components/schemas/Nothing" []
        |app, caller, _fields| Act::Pause { by: caller.name.clone() };
    /// Go on with a run that was paused
    resume "/api/v1/runs/{run}/resume" "resume_run" "#/components/schemas/Nothing" []
        |app, caller, _fields| Act::Resume { by: caller.name.clone() };
    /// Try the failed parts of a run again, in the same run
    retry "/api/v1/runs/{run}/retry" "retry_run" "#/components/schemas/Retry" ["definition"]
        |app, caller, fields| Act::Retry { by: caller.name.clone(), definition: definition(&app, &caller, &fields)? };
}

/// Make a new run that goes on from a node of another
#[utoipa::path(post, path = "/api/v1/runs/{run}/fork", operation_id = "fork_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique")),
    request_body(content = ref("#/components/schemas/Fork"), content_type = "application/json"),
    responses((status = 200, description = "The new run", body = ref("#/components/schemas/Outcome")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "it cannot be forked there", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 422, description = "what came with it is refused", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn fork(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    body: Json,
) -> Result<Response, Problem> {
    // Whether an earlier fork was asked for with the same body is kept nowhere.
    if headers.contains_key(KEY) {
        return Err(Problem::usage("a fork takes no Idempotency-Key yet"));
    }
    let fields = Fields::of(body, &["from", "branch", "visit", "input", "set", "definition"])?;
    let view = app.run(&caller, &run).await?;
    let from = fields.required("from")?;
    // Of a child its root is forked, and the child with it.
    let (root, node) = match view.row.parent.is_some() {
        false => (view.row.run, from),
        true => {
            let tree = app.engine().tree(&view.row.root).await?;
            let way = tree.way_to(&view.row.run).into_iter().chain([from]).collect::<Vec<_>>().join("/");
            (view.row.root, way)
        }
    };
    let fork = Fork {
        id: None,
        run: root,
        node,
        branch: fields.number("branch", 0)?,
        visit: fields.number("visit", 1)?,
        input: fields.value("input"),
        set: fields.value("set"),
        definition: definition(&app, &caller, &fields)?,
    };
    asked(&app, Request::Fork(Box::new(fork))).await
}

/// Tell a run of an outside event
#[utoipa::path(post, path = "/api/v1/runs/{run}/signal", operation_id = "signal_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same again is done once")),
    request_body(content = ref("#/components/schemas/Signal"), content_type = "application/json"),
    responses((status = 200, description = "Told; the run as it is now", body = ref("#/components/schemas/Outcome")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "nobody waits for it, or the run has ended", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 422, description = "the payload is refused", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn signal(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    body: Json,
) -> Result<Response, Problem> {
    let fields = Fields::of(body, &["name", "key", "payload", "keep"])?;
    let run = app.run(&caller, &run).await?.row.run;
    let keep = fields.value("keep") == Value::Null || fields.flag("keep")?;
    let (event, key, payload) = (fields.required("name")?, fields.value("key"), fields.value("payload"));
    let request_id = request_id(&headers, &caller)?;
    asked(&app, Request::Signal(Signal { request_id, run, event, key, payload, keep })).await
}

/// Give whoever works in a run a message
#[utoipa::path(post, path = "/api/v1/runs/{run}/tell", operation_id = "tell_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same again is done once")),
    request_body(content = ref("#/components/schemas/Tell"), content_type = "application/json"),
    responses((status = 200, description = "Told; the run as it is now", body = ref("#/components/schemas/Outcome")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "nobody there takes messages, or several do", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 422, description = "the message is refused", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn tell(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    body: Json,
) -> Result<Response, Problem> {
    let fields = Fields::of(body, &["text", "stop", "node"])?;
    let run = app.run(&caller, &run).await?.row.run;
    let (text, stop) = (fields.text("text")?, fields.flag("stop")?);
    if text.is_none() && !stop {
        return Err(Problem::usage("`text` is missing: there is nothing to say"));
    }
    let run = fields.text("node")?.map_or(run.clone(), |node| format!("{run}/{node}"));
    let (request_id, by) = (request_id(&headers, &caller)?, caller.name.clone());
    asked(&app, Request::Tell(Tell { request_id, run, text, stop, by })).await
}
