//! Runs: the list, and one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use wonder_engine::json::{RunJson, ShowJson};
use wonder_engine::{Filter, GateView, Status};

use super::{Page, json};
use crate::access::Caller;
use crate::app::App;
use crate::body::{Params, cursor};
use crate::problem::Problem;

const FILTERS: [&str; 10] =
    ["workflow", "status", "label", "project", "since", "until", "parent", "children", "cursor", "limit"];

/// Runs, the newest first
#[utoipa::path(get, path = "/api/v1/runs", operation_id = "list_runs",
    params(
        ("workflow" = Option<String>, Query, description = "Only runs of this workflow"),
        ("status" = Option<String>, Query, description = "Only runs that are so"),
        ("label" = Option<String>, Query, description = "KEY=VALUE; may be repeated: runs that have all of them"),
        ("project" = Option<String>, Query, description = "Only runs of this project"),
        ("since" = Option<String>, Query, description = "Started then or later"),
        ("until" = Option<String>, Query, description = "Started before then"),
        ("parent" = Option<String>, Query, description = "Runs that this one called"),
        ("children" = Option<bool>, Query, description = "Child runs too"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("limit" = Option<u32>, Query, description = "At most so many; 100 unless said, 1000 at most"),
    ),
    responses((status = 200, description = "A page of runs", body = ref("#/components/schemas/Rows")),
        (status = 404, description = "no such parent", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, uri: Uri) -> Result<Response, Problem> {
    let params = Params::read(&uri, &FILTERS)?;
    let limit = params.limit()?;
    let filter = filter(&params, limit)?;
    if let Some(parent) = &filter.parent {
        app.run(&caller, parent).await?;
    }
    let project = match (&caller.project, filter.project.clone()) {
        // What it may not see is not there.
        (Some(own), Some(asked)) if *own != asked => return Ok(Page::<RunJson<'_>>::whole(Vec::new())),
        (own, asked) => own.clone().or(asked),
    };
    let mut rows = app.engine().list(Filter { project, ..filter }).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| cursor(&last.run));
    Ok(json(&Page { items: rows.iter().map(RunJson::of).collect(), next }))
}

fn filter(params: &Params, limit: usize) -> Result<Filter, Problem> {
    let status = params.text("status");
    let parsed = status.as_deref().map(|text| {
        let known = Status::ALL.map(Status::as_str).join(", ");
        Status::parse(text).ok_or_else(|| Problem::usage(format!("status={text}: there is {known}")))
    });
    let label = |text: &str| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| Problem::usage(format!("label={text}: this is no KEY=VALUE")))
    };
    Ok(Filter {
        workflow: params.text("workflow"),
        status: parsed.transpose()?,
        project: params.text("project"),
        parent: params.text("parent"),
        labels: params.all("label").map(label).collect::<Result<BTreeMap<_, _>, _>>()?,
        since: params.time("since")?,
        until: params.time("until")?,
        children: params.flag("children")?,
        after: params.cursor()?,
        // One more than is said tells whether there are more.
        limit: Some(u32::try_from(limit + 1).unwrap_or(u32::MAX)),
        ..Filter::default()
    })
}

/// One run, with its visits, gates and changes
#[utoipa::path(get, path = "/api/v1/runs/{run}", operation_id = "show_run",
    params(
        ("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("at" = Option<u64>, Query, description = "As it was after this event; the first is 1"),
    ),
    responses((status = 200, description = "The run", body = ref("#/components/schemas/Run")),
        (status = 404, description = "no such run or event", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["at"])?;
    let view = app.run(&caller, &run).await?;
    let (engine, run) = (app.engine(), view.row.run.clone());
    if let Some(seq) = params.number("at")? {
        let mut view = engine.find_at(run.clone(), seq).await?;
        // Whether somebody carries it on now says nothing of then.
        view.row.driven = true;
        let tree = engine.tree_at(&run, seq).await?;
        let gates = GateView::open_in(&view.row.run, &view.row.root, tree.root());
        return Ok(json(&ShowJson::of(&view, &tree, &gates)));
    }
    let tree = engine.tree(&run).await?;
    let gates = if view.row.status.is_end() { Vec::new() } else { engine.gates(Some(run)).await? };
    Ok(json(&ShowJson::of(&view, &tree, &gates)))
}
