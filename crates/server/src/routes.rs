//! The routes: each asks the engine one thing, or a few, and says what it answered.

mod acts;
mod admin;
mod events;
mod gates;
mod runs;
mod start;
mod views;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// Every route there is.
pub(crate) fn all() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(start::start, runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(events::events))
        .routes(routes!(views::graph))
        .routes(routes!(views::visits))
        .routes(routes!(views::visit))
        .routes(routes!(views::context))
        .routes(routes!(views::cost))
        .routes(routes!(views::why))
        .routes(routes!(views::logs))
        .routes(routes!(views::artifacts))
        .routes(routes!(views::artifact))
        .routes(routes!(acts::cancel))
        .routes(routes!(acts::kill))
        .routes(routes!(acts::pause))
        .routes(routes!(acts::resume))
        .routes(routes!(acts::retry))
        .routes(routes!(acts::fork))
        .routes(routes!(acts::signal))
        .routes(routes!(acts::tell))
        .routes(routes!(gates::list))
        .routes(routes!(gates::show))
        .routes(routes!(gates::answer))
        .routes(routes!(admin::tokens, admin::create))
        .routes(routes!(admin::revoke))
        .routes(routes!(admin::audit))
        .routes(routes!(admin::health))
        .routes(routes!(admin::ready))
}

/// An answer in JSON.
fn json(value: &impl Serialize) -> Response {
    json_with(StatusCode::OK, value)
}

fn json_with(status: StatusCode, value: &impl Serialize) -> Response {
    let Ok(text) = serde_json::to_vec(value) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// One page of a list.
#[derive(Serialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

impl<T: Serialize> Page<T> {
    /// A list that has one page.
    fn whole(items: Vec<T>) -> Response {
        json(&Page { items, next: None })
    }
}
