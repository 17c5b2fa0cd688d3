//! The server itself: whether it is up, its tokens, and who asked for what.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::json as object;
use wonder_engine::{EngineError, Filter};

use super::{Page, json, json_with};
use crate::access::Role;
use crate::app::App;
use crate::body::{Fields, Json, Params, cursor};
use crate::guard::tokens_unreadable;
use crate::problem::Problem;
use crate::tokens::{NewToken, TokenError};

/// Whether the server answers
#[utoipa::path(get, path = "/health", operation_id = "health",
    responses((status = 200, description = "It does", body = ref("#/components/schemas/Up"))))]
pub(crate) async fn health() -> Response {
    json(&object!({"status": "up"}))
}

/// Whether the engine behind it answers too
#[utoipa::path(get, path = "/ready", operation_id = "ready",
    responses((status = 200, description = "It does", body = ref("#/components/schemas/Up")),
        (status = 503, description = "it does not, or the server is leaving", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if app.closing.is_cancelled() {
        return Err(EngineError::new(wonder_engine::ErrorCode::Closing, "the server is leaving").into());
    }
    app.engine().list(Filter { limit: Some(1), ..Filter::default() }).await?;
    Ok(json(&object!({"status": "up"})))
}

/// Tokens, without their secrets
#[utoipa::path(get, path = "/api/v1/tokens", operation_id = "list_tokens",
    responses((status = 200, description = "All of them", body = ref("#/components/schemas/Tokens"))))]
pub(crate) async fn tokens(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    Params::read(&uri, &[])?;
    Ok(Page::whole(app.tokens.list().map_err(tokens_unreadable)?))
}

/// Make a token; its secret is said here and nowhere else
#[utoipa::path(post, path = "/api/v1/tokens", operation_id = "create_token",
    request_body(content = ref("#/components/schemas/NewToken"), content_type = "application/json"),
    responses((status = 201, description = "The token", body = ref("#/components/schemas/MadeToken")),
        (status = 422, description = "the name is taken, or is none", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn create(State(app): State<Arc<App>>, body: Json) -> Result<Response, Problem> {
    let fields = Fields::of(body, &["name", "role", "project", "expires"])?;
    let role = fields.required("role")?;
    let role = Role::parse(&role).ok_or_else(|| {
        Problem::usage(format!("`role`: there is {}", Role::ALL.map(Role::as_str).join(", ")))
    })?;
    let (name, project) = (fields.text("name")?, fields.text("project")?);
    let new = NewToken { name, role, project, expires_in_ms: fields.duration_ms("expires")? };
    let (token, text) = app.tokens.create(new, crate::now()).map_err(refused)?;
    let mut made = serde_json::to_value(&token).unwrap_or_default();
    made["token"] = text.into();
    Ok(json_with(StatusCode::CREATED, &made))
}

/// Revoke a token: it is refused from now on
#[utoipa::path(delete, path = "/api/v1/tokens/{name}", operation_id = "revoke_token",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "The token that was", body = ref("#/components/schemas/Token")),
        (status = 404, description = "no such token", content_type = "application/problem+json", body = ref("#/components/schemas/Problem"))))]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    Ok(json(&app.tokens.revoke(&name).map_err(refused)?))
}

fn refused(error: TokenError) -> Problem {
    match error {
        TokenError::Refused(why) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_input", why),
        TokenError::Unknown(_) => Problem::new(StatusCode::NOT_FOUND, "not_found", error.to_string()),
        other => tokens_unreadable(other),
    }
}

/// Who asked for what, the newest first
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "audit",
    params(("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("limit" = Option<u32>, Query, description = "At most so many; 100 unless said, 1000 at most")),
    responses((status = 200, description = "A page of requests that may have changed something", body = ref("#/components/schemas/Audit"))))]
pub(crate) async fn audit(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::read(&uri, &["cursor", "limit"])?;
    let limit = params.limit()?;
    let before = match params.cursor()? {
        Some(text) => {
            Some(text.parse().map_err(|_| Problem::usage("the cursor is none that an answer gave"))?)
        }
        None => None,
    };
    let read = tokio::task::spawn_blocking(move || app.audit.read(before, limit)).await;
    let read = read.map_err(|error| EngineError::internal(format!("reading broke: {error}")))?;
    let (items, next) = read.map_err(|error| {
        EngineError::new(wonder_engine::ErrorCode::Storage, format!("the audit list: {error}"))
    })?;
    Ok(json(&Page { items, next: next.map(|place| cursor(&place.to_string())) }))
}
