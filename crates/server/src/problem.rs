//! Refusals as RFC 9457 problem details, with our codes and what to do now.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value as Json, json};
use wonder_engine::{Cause, EngineError, ErrorCode};

/// How soon to come again when there was no room.
const AGAIN_SECONDS: u64 = 1;

#[derive(Debug)]
pub(crate) struct Problem {
    pub status: StatusCode,
    /// Stable: programs branch on it.
    pub code: &'static str,
    pub detail: String,
    pub help: Option<String>,
    pub retry_after: Option<u64>,
    /// What more is known as data: `cause`, `problems`.
    pub more: Map<String, Json>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into(), help: None, retry_after: None, more: Map::new() }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn with(mut self, key: &str, value: Json) -> Problem {
        self.more.insert(key.to_owned(), value);
        self
    }

    /// What was asked is not understood.
    pub(crate) fn usage(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "usage", detail)
    }

    pub(crate) fn unauthorized(detail: &str) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
            .help("Send `Authorization: Bearer TOKEN`; `wonder token create` makes one.")
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn no_such_route(path: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "no_such_route", format!("there is nothing at {path}"))
            .help("/docs lists what there is.")
    }

    pub(crate) fn wrong_method() -> Problem {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "this route has no such method")
            .help("The header `allow` names those that it has.")
    }

    pub(crate) fn too_large(most: usize) -> Problem {
        let detail = format!("the body of a request has at most {most} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub(crate) fn full(what: &str, most: usize) -> Problem {
        let detail = format!("there are {most} {what} under way, which is all that are taken at once");
        let mut problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).help("Ask again.");
        problem.retry_after = Some(AGAIN_SECONDS);
        problem
    }

    pub(crate) fn too_fast(caller: &str, seconds: u64) -> Problem {
        let detail = format!("{caller} asks faster than it may");
        let mut problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_fast", detail)
            .help("Wait for as long as `retry-after` says.");
        problem.retry_after = Some(seconds);
        problem
    }
}

fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Ambiguous | ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::BadInput | ErrorCode::BadDefinition | ErrorCode::Unsupported => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorCode::Storage | ErrorCode::Busy | ErrorCode::Closing | ErrorCode::Disconnected => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::NewerVersion | ErrorCode::Quarantined | ErrorCode::Internal => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

/// A way out over HTTP that the error itself does not say.
fn way_out(cause: Option<&Cause>) -> Option<&'static str> {
    match cause? {
        Cause::NoSuchRun { .. } => Some("GET /api/v1/runs lists those that there are."),
        Cause::NoSuchGate { .. } | Cause::NoOpenGate { .. } => {
            Some("GET /api/v1/gates lists those that are open.")
        }
        Cause::BadAnswer { .. } => Some("GET /api/v1/gates shows the form."),
        Cause::NobodyWaits { .. } => Some("GET /api/v1/runs/{run}/why says what it waits for."),
        _ => None,
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Problem {
        let status = status_of(error.code);
        let ways: Vec<String> =
            error.help.into_iter().chain(way_out(error.cause.as_deref()).map(str::to_owned)).collect();
        let mut problem = Problem::new(status, error.code.as_str(), error.message);
        problem.help = (!ways.is_empty()).then(|| ways.join(" "));
        problem.retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(AGAIN_SECONDS);
        match error.cause {
            Some(cause) => problem.with("cause", serde_json::to_value(cause).unwrap_or_default()),
            None => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": format!("urn:wonder:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        if let Some(fields) = body.as_object_mut() {
            fields.extend(self.help.map(|help| ("help".to_owned(), Json::String(help))));
            fields.extend(self.more);
        }
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
