//! Starting runs. A key makes it once: the run's id comes from the key, and what was asked is kept with the run, so that
//! the same key with another body is noticed, also by a server that was started since.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use wonder_core::Value;
use wonder_engine::json::Outcome;
use wonder_engine::{EngineError, ErrorCode, RunOptions, RunView, Start, Workflow};

use super::json_with;
use crate::access::Caller;
use crate::app::App;
use crate::body::{Fields, Json, Params};
use crate::problem::Problem;

const FIELDS: [&str; 6] = ["file", "input", "labels", "project", "id", "max_parallel"];
pub(super) const KEY: &str = "idempotency-key";
const KEY_CHARS_MAX: usize = 255;
/// The label that a run keeps what it was asked with under: a hash, nothing of the body.
pub(crate) const REQUEST_LABEL: &str = "wonder.request";
/// The longest that an answer is held back.
const WAIT_MS_MAX: u64 = 300_000;
/// The letters of a ULID.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_CHARS: usize = 26;

/// Start a run
#[utoipa::path(post, path = "/api/v1/runs", operation_id = "start_run",
    params(
        ("wait" = Option<String>, Query, description = "Answer when the run has ended or waits, or after so long: 30s, at most 5m"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and body again: the same run. Another body: 409"),
    ),
    request_body(content = ref("#/components/schemas/Start"), content_type = "application/json"),
    responses((status = 201, description = "Started; `location` is the run", body = ref("#/components/schemas/Outcome")),
        (status = 200, description = "Started before, under the same key or id", body = ref("#/components/schemas/Outcome")),
        (status = 409, description = "the key or id was used for something else", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 422, description = "the file or the input is refused", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Json,
) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["wait"])?;
    let wait_ms = params.duration_ms("wait")?.unwrap_or(0).min(WAIT_MS_MAX);
    let asked = blake3::hash(body.0.to_string().as_bytes()).to_hex()[..32].to_owned();
    let fields = Fields::of(body, &FIELDS)?;
    let id = match (key(&headers)?, fields.text("id")?) {
        (Some(_), Some(_)) => {
            return Err(Problem::usage("an Idempotency-Key and an `id`: one of them says it"));
        }
        (Some(key), None) => Some(derived("start", &caller, &key)),
        (None, Some(id)) => Some(checked_id(id)?),
        (None, None) => None,
    };
    let before = match &id {
        Some(id) => known(&app, id).await?,
        None => None,
    };
    let again = before.is_some();
    if let Some(view) = before {
        same_request(&caller, &view, &asked)?;
    }
    let start = prepared(&app, &caller, &fields, (id.clone(), asked.clone()))?;
    let view = app.engine().start(start).await?;
    if id.is_some() {
        // Two may have come at once: one of them made it.
        same_request(&caller, &view, &asked)?;
    }
    let view = waited(&app, view, wait_ms).await?;
    let mut response =
        json_with(if again { StatusCode::OK } else { StatusCode::CREATED }, &Outcome::of(&view));
    if let Ok(place) = HeaderValue::from_str(&format!("/api/v1/runs/{}", view.row.run)) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

fn prepared(
    app: &App,
    caller: &Caller,
    fields: &Fields,
    (id, asked): (Option<String>, String),
) -> Result<Start, Problem> {
    let reading = app.read(&fields.required("file")?)?;
    let both = reading.bundles.iter().zip(&reading.graphs);
    let mut workflows: Vec<Workflow> =
        both.map(|(bundle, graph)| Workflow { bundle: bundle.clone(), graph: Some(graph.clone()) }).collect();
    if workflows.is_empty() {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, ErrorCode::BadDefinition.as_str(), "`file` defines no workflow")
            .help("A workflow has a `name` and `nodes`."));
    }
    let asked_project = fields.text("project")?;
    for workflow in &mut workflows {
        of_project(workflow, caller, asked_project.as_deref())?;
    }
    let workflow = workflows.remove(0);
    let input = match fields.value("input") {
        Value::Null => Value::empty_map(),
        input => input,
    };
    let labels = fields.texts("labels")?;
    if labels.iter().any(|(key, _)| key == REQUEST_LABEL) {
        return Err(Problem::usage(format!("the label {REQUEST_LABEL} is the server's own")));
    }
    let own = id.is_some().then(|| (REQUEST_LABEL.to_owned(), asked));
    Ok(Start {
        id,
        workflow,
        callable: workflows,
        input,
        workdir: app.options.workdir.clone(),
        file: None,
        max_parallel: fields.number("max_parallel", 1)?,
        options: RunOptions::default(),
        labels: labels.into_iter().chain(own).collect(),
        wait_ms: 0,
    })
}

/// The project of a run is its workflow's. A file that names none takes the one that is asked for, or the caller's: in
/// all its workflows, because what a workflow may use goes by its project.
pub(super) fn of_project(
    workflow: &mut Workflow,
    caller: &Caller,
    asked: Option<&str>,
) -> Result<(), Problem> {
    let written = workflow.bundle.workflow.project_id.as_ref().map(ToString::to_string);
    if let (Some(written), Some(asked)) = (&written, asked)
        && written != asked
    {
        let detail = format!("the file is of the project {written}, and {asked} was asked for");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::BadInput.as_str(), detail));
    }
    let project = written.clone().or(asked.map(str::to_owned)).or_else(|| caller.project.clone());
    if let (Some(project), None) = (&project, &written) {
        if project.is_empty() {
            return Err(Problem::usage("`project` is a name"));
        }
        Arc::make_mut(&mut workflow.bundle).workflow.project_id = Some(project.as_str().into());
        // It was compiled for another project.
        workflow.graph = None;
    }
    match (&caller.project, project) {
        (Some(own), Some(project)) if *own != project => {
            let detail = format!("{} is limited to the project {own}, and this is of {project}", caller.name);
            Err(Problem::forbidden(detail))
        }
        _ => Ok(()),
    }
}

/// What a key says, if there is one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(KEY) else { return Ok(None) };
    let fits = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_CHARS_MAX);
    let wrong = || Problem::usage(format!("an Idempotency-Key has 1 to {KEY_CHARS_MAX} visible characters"));
    fits.map(|key| Some(key.to_owned())).ok_or_else(wrong)
}

/// The id that a key stands for: always the same, and another one for each project that tokens are limited to.
pub(super) fn derived(what: &str, caller: &Caller, key: &str) -> String {
    let project = caller.project.as_deref().unwrap_or_default();
    let text = format!("wonder idempotency\0{what}\0{}\0{project}\0{key}", project.len());
    let hash = blake3::hash(text.as_bytes());
    let mut bits = u128::from_le_bytes(hash.as_bytes()[..16].try_into().unwrap_or_default());
    let mut id = [0; ULID_CHARS];
    for letter in id.iter_mut().rev() {
        *letter = CROCKFORD[(bits & 31) as usize];
        bits >>= 5;
    }
    String::from_utf8_lossy(&id).into_owned()
}

fn checked_id(id: String) -> Result<String, Problem> {
    let fits = id.len() == ULID_CHARS && id.bytes().all(|letter| CROCKFORD.contains(&letter));
    let wrong = || {
        Problem::usage(format!("`id` is a ULID: {ULID_CHARS} digits and capital letters without I, L, O, U"))
    };
    if fits { Ok(id) } else { Err(wrong()) }
}

/// The run of exactly this id.
async fn known(app: &App, id: &str) -> Result<Option<Box<RunView>>, Problem> {
    match app.engine().find(id.to_owned()).await {
        Ok(view) => Ok(Some(view).filter(|view| view.row.run == id)),
        Err(EngineError { code: ErrorCode::NotFound | ErrorCode::Ambiguous, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn same_request(caller: &Caller, view: &RunView, asked: &str) -> Result<(), Problem> {
    let same = view.row.labels.get(REQUEST_LABEL).is_some_and(|before| before == asked);
    if same && caller.sees(&view.row.project) {
        return Ok(());
    }
    let detail = "a run was started under this key or id with another request";
    Err(Problem::new(StatusCode::CONFLICT, ErrorCode::Conflict.as_str(), detail)
        .help("Nothing was changed. A key is for one request: choose another for this one."))
}

/// The run when it has ended or waits, or as it is when the time is over or the server leaves.
pub(super) async fn waited(app: &App, view: Box<RunView>, wait_ms: u64) -> Result<Box<RunView>, Problem> {
    if wait_ms == 0 || view.quiet {
        return Ok(view);
    }
    let run = view.row.run.clone();
    tokio::select! {
        waited = app.engine().wait(run.clone(), wait_ms) => Ok(waited?),
        () = app.closing.cancelled() => Ok(view),
        // An engine that does not answer in time does not hold the caller.
        () = tokio::time::sleep(Duration::from_millis(wait_ms) + Duration::from_secs(5)) => Ok(view),
    }
}
