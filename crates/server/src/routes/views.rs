//! What can be seen of one run beside its events.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use serde::Serialize;
use serde_json::json as object;
use wonder_core::event::TokenId;
use wonder_core::graph::Graph;
use wonder_engine::cost::{Bill, budgets};
use wonder_engine::json::{BillJson, changes, visits as visits_json};
use wonder_engine::run_tree::node_name;
use wonder_engine::{ArtifactPiece, EngineError, Follow, GraphView, NodeView, extended};
use wonder_spec::Stand;

use super::{Page, json};
use crate::access::Caller;
use crate::app::App;
use crate::body::{Params, cursor};
use crate::problem::Problem;

/// The graph as the run has it now, and where the run stands in it
#[utoipa::path(get, path = "/api/v1/runs/{run}/graph", operation_id = "graph_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique")),
    responses((status = 200, description = "Nodes, edges, and what the run changed", body = ref("#/components/schemas/Graph")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn graph(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let view = app.run(&caller, &run).await?;
    let definition = app.engine().definition(view.row.run.clone()).await?;
    let before = match definition.graph {
        Some(graph) => graph,
        None => Arc::new(
            Graph::compile(&definition.bundle).map_err(|error| EngineError::internal(error.to_string()))?,
        ),
    };
    let tree = app.engine().tree(&view.row.run).await?;
    let misfit = || EngineError::internal("what the run added does not fit its stored definition");
    let now = extended(&before, tree.root()).ok_or_else(misfit)?;
    let graph = GraphView::of_run(&before, &now, tree.root());
    let nodes: Vec<NodeJson<'_>> = graph.nodes.iter().map(NodeJson::of).collect();
    Ok(json(&object!({
        "run": view.row.run, "workflow": view.row.workflow, "version": view.row.version, "status": view.row.status,
        "nodes": nodes, "edges": graph.edges, "mutations": changes::json(tree.root()),
    })))
}

/// As in `show --graph -o json`.
#[derive(Serialize)]
struct NodeJson<'v> {
    node: &'v str,
    state: &'static str,
    #[serde(flatten)]
    view: &'v NodeView,
}

impl<'v> NodeJson<'v> {
    fn of(view: &'v NodeView) -> NodeJson<'v> {
        NodeJson { node: &view.id, state: Stand::of(view.status).as_str(), view }
    }
}

/// Every visit of every node of the run
#[utoipa::path(get, path = "/api/v1/runs/{run}/visits", operation_id = "visits_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique")),
    responses((status = 200, description = "All of them, in the order in which they began", body = ref("#/components/schemas/Visits")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn visits(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let view = app.run(&caller, &run).await?;
    let tree = app.engine().tree(&view.row.run).await?;
    Ok(Page::whole(visits_json(&view.row.run, tree.root())))
}

/// One visit with its moves, attempts, input and result
#[utoipa::path(get, path = "/api/v1/runs/{run}/visits/{token}", operation_id = "visit_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("token" = u64, Path, description = "`token` of the visit")),
    responses((status = 200, description = "The visit", body = ref("#/components/schemas/VisitDetails")),
        (status = 404, description = "no such run or visit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn visit(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((run, token)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let run = app.run(&caller, &run).await?.row.run;
    let token = token.parse().map_err(|_| Problem::usage("a visit is a number, its `token`"))?;
    Ok(json(&app.engine().visit(run, TokenId(token)).await?))
}

/// The run's input, state and output
#[utoipa::path(get, path = "/api/v1/runs/{run}/context", operation_id = "context_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("at" = Option<u64>, Query, description = "As it was after this event; the first is 1")),
    responses((status = 200, description = "What expressions see", body = ref("#/components/schemas/Context")),
        (status = 404, description = "no such run or event", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn context(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["at"])?;
    let mut view = app.run(&caller, &run).await?;
    if let Some(seq) = params.number("at")? {
        view = app.engine().find_at(view.row.run, seq).await?;
    }
    Ok(json(&object!({
        "run": view.row.run, "seq": view.seq, "input": view.input, "state": view.state, "output": view.output,
    })))
}

/// What the run and those it called cost
#[utoipa::path(get, path = "/api/v1/runs/{run}/cost", operation_id = "cost_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("attempts" = Option<bool>, Query, description = "Each attempt too")),
    responses((status = 200, description = "By node, model and run, with budgets", body = ref("#/components/schemas/Cost")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn cost(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["attempts"])?;
    let view = app.run(&caller, &run).await?;
    let definition = app.engine().definition(view.row.run.clone()).await?;
    let tree = app.engine().tree(&view.row.run).await?;
    let now = crate::now();
    let bill = Bill::of(&tree, now);
    let budgets = budgets(&definition.bundle, tree.root(), now);
    Ok(json(&BillJson::of(&view, &bill, &budgets, params.flag("attempts")?)))
}

/// Why the run does not go on, or did not complete
#[utoipa::path(get, path = "/api/v1/runs/{run}/why", operation_id = "why_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique")),
    responses((status = 200, description = "Reasons, of those it called too", body = ref("#/components/schemas/Reasons")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn why(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let run = app.run(&caller, &run).await?.row.run;
    Ok(Page::whole(app.engine().why(run).await?))
}

/// What the run's tasks said, those of runs that it called included
#[utoipa::path(get, path = "/api/v1/runs/{run}/logs", operation_id = "logs_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("after" = Option<u64>, Query, description = "Only lines after this `number`"),
        ("node" = Option<String>, Query, description = "Only lines of this node"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("limit" = Option<u32>, Query, description = "At most so many are looked at; 100 unless said, 1000 at most")),
    responses((status = 200, description = "A page of lines", body = ref("#/components/schemas/Lines")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["after", "node", "cursor", "limit"])?;
    let limit = params.limit()?;
    let run = app.run(&caller, &run).await?.row.run;
    let after = match params.cursor()? {
        Some(text) => text.parse().map_err(|_| Problem::usage("the cursor is none that an answer gave"))?,
        None => params.number("after")?.unwrap_or(0),
    };
    let asked = Follow {
        logs_after: Some((run, after)),
        limit: Some(u32::try_from(limit + 1).unwrap_or(u32::MAX)),
        ..Follow::default()
    };
    let mut lines = app.engine().follow(asked).await?.logs;
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(|last| cursor(&last.number.to_string()));
    if let Some(node) = params.text("node") {
        lines.retain(|line| node_name(&line.node) == node);
    }
    Ok(json(&Page { items: lines, next }))
}

/// What the run and those it called have kept
#[utoipa::path(get, path = "/api/v1/runs/{run}/artifacts", operation_id = "artifacts_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique")),
    responses((status = 200, description = "All of them, the oldest first", body = ref("#/components/schemas/Artifacts")),
        (status = 404, description = "no such run", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn artifacts(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let run = app.run(&caller, &run).await?.row.run;
    Ok(Page::whole(app.engine().artifacts(run).await?))
}

/// What is in an artifact
#[utoipa::path(get, path = "/api/v1/runs/{run}/artifacts/{artifact}", operation_id = "artifact_of_run",
    params(("run" = String, Path, description = "Its id, or as much of it as is unique"),
        ("artifact" = String, Path, description = "Its name, of which the newest is meant, or its address: `blake3:…`")),
    responses((status = 200, description = "Its bytes, under its own media type", content_type = "application/octet-stream", body = Vec<u8>),
        (status = 404, description = "no such run or artifact", content_type = "application/problem+json", body = ref("#/components/schemas/Problem")),
        (status = 409, description = "several runs fit", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn artifact(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((run, artifact)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    let run = app.run(&caller, &run).await?.row.run;
    let first = app.engine().artifact_piece(run, artifact, 0).await?;
    let (kind, length) = (HeaderValue::from_str(&first.artifact.media_type), first.artifact.bytes);
    let reading = Reading { app, read: 0, next: Some(first) };
    let pieces = stream::unfold(reading, |mut reading| async move {
        let piece = reading.piece().await.transpose()?;
        Some((piece, reading))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers
        .insert(header::CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    // A run wrote it: a browser must not take it for a page of ours.
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    Ok(response)
}

/// An artifact on its way, a piece at a time.
struct Reading {
    app: Arc<App>,
    read: u64,
    /// The piece that is to be sent, or whose artifact is read on.
    next: Option<Box<ArtifactPiece>>,
}

impl Reading {
    async fn piece(&mut self) -> std::io::Result<Option<Bytes>> {
        let Some(piece) = self.next.take() else { return Ok(None) };
        let broken = |error: String| std::io::Error::other(error);
        let bytes = STANDARD.decode(&piece.base64).map_err(|error| broken(error.to_string()))?;
        self.read += bytes.len() as u64;
        if self.read < piece.artifact.bytes {
            if bytes.is_empty() {
                return Err(broken("the file was changed".to_owned()));
            }
            let (run, address) = (piece.artifact.run, piece.artifact.artifact);
            let next = self.app.engine().artifact_piece(run, address, self.read).await;
            self.next = Some(next.map_err(|error| broken(error.message))?);
        }
        Ok((!bytes.is_empty()).then(|| Bytes::from(bytes)))
    }
}
