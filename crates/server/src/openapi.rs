//! The document that says what there is: OpenAPI 3.1, made from the routes themselves. A route that is not in it does
//! not exist. What all routes have in common is added here, from the places that know it.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value as Json, json};
use utoipa_axum::router::OpenApiRouter;

use crate::access::{Role, needed};
use crate::app::App;
use crate::schemas;

const DESCRIPTION: &str = "Lists are `{items, next}`: `next` is what to send as `cursor` for the next page, or null. \
    Times in answers are milliseconds since 1970, those in a query RFC 3339. Errors are problem details (RFC 9457) with a stable `code` and, where there is one, `help`. \
    A token goes into `Authorization: Bearer`.";

/// All of it.
pub fn document() -> Json {
    split(crate::routes::all()).1
}

pub(crate) fn split(routes: OpenApiRouter<Arc<App>>) -> (Router<Arc<App>>, Json) {
    let (router, api) = routes.split_for_parts();
    let mut document = serde_json::to_value(api).unwrap_or_default();
    document["info"] = json!({
        "title": "Wonder", "version": env!("CARGO_PKG_VERSION"), "description": DESCRIPTION,
    });
    document["components"] = json!({
        "schemas": schemas::all(),
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    });
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap_or(Method::GET);
            common(operation, needed(&method, path));
        }
    }
    (router, document)
}

/// What holds for every route: who may ask, and how it is refused.
fn common(operation: &mut Json, role: Option<Role>) {
    let mut refused =
        vec![("421", "the server has another name"), ("403", "not with this token, or from this page")];
    operation["security"] = json!([]);
    if let Some(role) = role {
        operation["security"] = json!([{"token": []}]);
        operation["x-role"] = json!(role.as_str());
        refused.extend([
            ("400", "not understood"),
            ("401", "no token, or none that holds"),
            ("429", "faster than this token may ask"),
            ("500", "a mistake of the server's own, or a damaged run"),
            ("503", "no room just now, or the storage does not work"),
        ]);
    }
    if operation.get("requestBody").is_some() {
        refused.extend([("413", "the body is too large"), ("415", "the body is not JSON")]);
    }
    for (status, description) in refused {
        let problem = json!({
            "description": description,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
        operation["responses"][status] = problem;
    }
}

/// The document, a page that shows it, and the page that will be the dashboard.
pub(crate) fn pages(document: Json) -> Router<Arc<App>> {
    let page: Arc<str> = docs(&document).into();
    let text: Arc<str> = document.to_string().into();
    Router::new()
        .route("/openapi.json", get(move || async move { (json_type(), text.to_string()).into_response() }))
        .route("/docs", get(move || async move { html(&page) }))
        .route("/", get(|| async { html(ROOT) }))
}

fn json_type() -> [(header::HeaderName, HeaderValue); 1] {
    [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]
}

/// Nothing is loaded from anywhere, and nothing runs.
fn html(text: &str) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; form-action 'none'",
    );
    const KIND: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
    let headers = [(header::CONTENT_TYPE, KIND), (header::CONTENT_SECURITY_POLICY, POLICY)];
    (StatusCode::OK, headers, text.to_owned()).into_response()
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
    color-scheme:light dark}code,pre{font:13px ui-monospace,monospace}summary{cursor:pointer;padding:.3rem 0}\
    .method{display:inline-block;min-width:4rem;font-weight:600}.role{opacity:.6}pre{overflow:auto}table{border-spacing:1rem .2rem}";

const ROOT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Wonder</title>\
    <body style=\"font:15px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark\">\
    <h1>Wonder</h1><p>The server is up. The dashboard is not built yet.</p>\
    <p><a href=\"/docs\">What can be asked over HTTP</a> · <a href=\"/openapi.json\">the same for programs</a></p>";

/// Everything as plain HTML: it works without a network and without scripts.
fn docs(document: &Json) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Wonder over HTTP</title><style>{STYLE}</style>\
         <body><h1>Wonder over HTTP</h1><p>{}</p>",
        escaped(DESCRIPTION)
    );
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            page.push_str(&shown(path, method, operation));
        }
    }
    page.push_str("<h2>Shapes</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let pretty = serde_json::to_string_pretty(schema).unwrap_or_default();
        page.push_str(&format!(
            "<details id=\"{name}\"><summary><code>{name}</code></summary><pre>{}</pre></details>",
            escaped(&pretty)
        ));
    }
    page
}

fn shown(path: &str, method: &str, operation: &Json) -> String {
    let text = |value: &Json| escaped(value.as_str().unwrap_or_default());
    let mut out = format!(
        "<details><summary><span class=\"method\">{}</span> <code>{}</code> <span class=\"role\">{}</span> {}</summary><table>",
        method.to_uppercase(),
        escaped(path),
        text(&operation["x-role"]),
        text(&operation["summary"]),
    );
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        out.push_str(&format!(
            "<tr><td><code>{name}</code><td>{place}<td>{}",
            text(&parameter["description"])
        ));
    }
    let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
    for (kind, body) in bodies {
        out.push_str(&format!("<tr><td>body<td>{}<td>{}", escaped(kind), link(&body["schema"])));
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let shape = response["content"].as_object().and_then(|content| content.values().next());
        let shape = shape.map(|content| link(&content["schema"])).unwrap_or_default();
        out.push_str(&format!("<tr><td>{status}<td>{shape}<td>{}", text(&response["description"])));
    }
    out.push_str("</table></details>");
    out
}

fn link(schema: &Json) -> String {
    let name = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()).unwrap_or_default();
    if name.is_empty() { String::new() } else { format!("<a href=\"#{name}\"><code>{name}</code></a>") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
