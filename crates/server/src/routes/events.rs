//! A run's events: a page of them, or all as they come.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use wonder_engine::Follow;

use super::{Page, json};
use crate::access::Caller;
use crate::app::App;
use crate::body::{Params, cursor};
use crate::problem::Problem;
use crate::streams::{EventJson, Watcher};

/// A run's events: a page, or with `Accept: text/event-stream` all as they come
#[utoipa::path(get, path = "/api/v1/runs/{run}/events", operation_id = "events_of_run",
    params(
        ("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("after" = Option<u64>, Query, description = "Only events after this one"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before; not for a stream"),
        ("limit" = Option<u32>, Query, description = "At most so many on a page; 100 unless said, 1000 at most"),
        ("Last-Event-ID" = Option<u64>, Header, description = "Of a stream: go on after this event; stronger than `after`"),
    ),
    responses((status = 200, description = "A page; or a stream with `id` the event's number and `event` its kind, and without `id` the events `log` and `text`",
            content((ref("#/components/schemas/Events") = "application/json"), (String = "text/event-stream"))),
        (status = 204, description = "A stream of a run that has ended, after its last event: do not come again"),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    if wants_stream(&headers) {
        stream(app, caller, run, &headers, &uri).await
    } else {
        page(&app, &caller, run, &uri).await
    }
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
}

async fn page(app: &App, caller: &Caller, run: String, uri: &Uri) -> Result<Response, Problem> {
    let params = Params::read(uri, &["after", "cursor", "limit"])?;
    let limit = params.limit()?;
    let run = app.run(caller, &run).await?.row.run;
    let after = match params.cursor()? {
        Some(text) => text.parse().map_err(|_| Problem::usage("the cursor is none that an answer gave"))?,
        None => params.number("after")?.unwrap_or(0),
    };
    // One more than is said tells whether there are more.
    let asked = Follow {
        events_after: vec![(run.clone(), after)],
        limit: Some(u32::try_from(limit + 1).unwrap_or(u32::MAX)),
        ..Follow::default()
    };
    let mut events = app.engine().follow(asked).await?.events;
    let more = events.len() > limit;
    events.truncate(limit);
    let next = events.last().filter(|_| more).map(|(_, last)| cursor(&last.seq.to_string()));
    let items = events.iter().map(|(run, event)| EventJson { run, event }).collect();
    Ok(json(&Page { items, next }))
}

async fn stream(
    app: Arc<App>,
    caller: Caller,
    run: String,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response, Problem> {
    let params = Params::read(uri, &["after"])?;
    let last = headers.get("last-event-id").map(|id| {
        let number = id.to_str().ok().and_then(|id| id.trim().parse::<u64>().ok());
        number.ok_or_else(|| Problem::usage("the header `last-event-id` is the number of an event"))
    });
    let after = match last.transpose()? {
        Some(last) => last,
        None => params.number("after")?.unwrap_or(0),
    };
    let view = app.run(&caller, &run).await?;
    if view.row.status.is_end() && after >= view.seq {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let place = app.meter.stream()?;
    let watcher = Watcher::new(&app, caller, (view.row.run, view.seq), after, place);
    let frames = stream::unfold(watcher, |mut watcher| async move {
        let bytes = watcher.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), watcher))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Whoever is between us must not hold lines back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
