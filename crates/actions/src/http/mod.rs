//! The `http_request` action: one request, its redirects, and an answer of bounded size.
//!
//! It reaches private addresses only if told so (see [`guard`]), speaks http and https and nothing else,
//! uses no proxy and keeps no cookies. A body is text: bytes that are no UTF-8 are replaced.

mod answer;
mod client;
pub(crate) mod guard;
mod request;

use std::error::Error as _;
use std::sync::Arc;

use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use reqwest::{Method, Response, StatusCode, Url};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::Delivery;
use wonder_core::graph::{HttpSpec, Work};
use wonder_core::value::Value;

pub(crate) use client::Clients;
pub(crate) use guard::Refused;
use request::Request;

use crate::cassette::{Asked, Asking};
use crate::context::ActionContext;
use crate::handler::{ActionHandler, Performing, TryError, TryResult};
use crate::redact::HIDDEN;
use crate::settings::Settings;

const REDIRECTS_MAX: u32 = 5;

#[derive(Debug)]
pub(crate) struct HttpHandler {
    settings: Arc<Settings>,
    clients: Clients,
}

impl HttpHandler {
    pub(crate) fn new(settings: Arc<Settings>) -> HttpHandler {
        HttpHandler { settings, clients: Clients::default() }
    }

    async fn request(&self, context: &ActionContext<'_>, http: &HttpSpec) -> TryResult {
        let request = Request::of(context, http)?;
        context.deadline.limit(exchange(self, context, http, request)).await?
    }
}

impl ActionHandler for HttpHandler {
    fn kinds(&self) -> &[&'static str] {
        &["http_request"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        let Some(Work::HttpRequest(http)) = &context.call.action.work else {
            unreachable!("only requests come here")
        };
        Performing::pending(self.request(context, http))
    }

    fn asked(&self, asking: &Asking<'_>) -> Result<Asked, Failure> {
        let Some(Work::HttpRequest(http)) = &asking.call.action.work else {
            unreachable!("only requests come here")
        };
        request::asked(asking.scope, http).map(Asked::Outside)
    }

    /// A cookie is what a server knows its asker by.
    fn for_cassette(&self, mut result: Value) -> Value {
        let cookies = ["headers".into(), SET_COOKIE.as_str().into()];
        if result.get_path(&cookies).is_some() {
            result.set_path(&cookies, Value::str(HIDDEN));
        }
        result
    }
}

/// Sends, follows redirects, and reads the answer.
async fn exchange(
    handler: &HttpHandler,
    context: &ActionContext<'_>,
    http: &HttpSpec,
    mut request: Request,
) -> TryResult {
    let mut hops = 0;
    loop {
        // From the first answer on, something has happened, whatever becomes of the rest.
        let delivery = if hops == 0 { Delivery::NotSent } else { Delivery::Unknown };
        let response = send(handler, http, &request).await.map_err(|error| error.after(delivery))?;
        let next = if answer::is_expected(&http.expect, response.status()) {
            None
        } else {
            next(&request, &response)
        };
        let Some(next) = next else { return answer::read(context, http, &request, response).await };
        hops += 1;
        if hops > REDIRECTS_MAX {
            return Err(TryError::answered(too_many(&request, response.status())));
        }
        let next = next.map_err(|failure| TryError::from(failure).after(Delivery::Unknown))?;
        request.redirect(response.status(), next);
    }
}

async fn send(handler: &HttpHandler, http: &HttpSpec, request: &Request) -> Result<Response, TryError> {
    let permitted = http.allow_private || guard::is_listed(&request.url, &handler.settings.allow_hosts);
    guard::check(&request.url, permitted).map_err(|refused| refusal(&refused))?;
    let clients = &handler.clients;
    let client = if permitted { clients.open() } else { clients.guarded() };
    let client = client.map_err(|why| Failure::new(ErrorKind::Internal, why))?;
    let mut sending =
        client.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
    if let Some(body) = &request.body {
        sending = sending.body(body.clone());
    }
    sending.send().await.map_err(|error| unsent(request, error))
}

/// What a failed sending means. Only what broke while connecting has surely not gone out.
fn unsent(request: &Request, error: reqwest::Error) -> TryError {
    if let Some(refused) = causes(&error).find_map(|cause| cause.downcast_ref::<Refused>()) {
        return refusal(refused).into();
    }
    if error.is_builder() {
        let message = format!("{}: {}", request.shown(), root_cause(&error));
        return Failure::new(ErrorKind::ExpressionError, message).into();
    }
    if error.is_connect() {
        return broken_network(request, "connect", &error).into();
    }
    TryError::unknown(broken_network(request, "send", &error))
}

fn broken_network(request: &Request, phase: &str, error: &reqwest::Error) -> Failure {
    let cause = if error.is_timeout() { "no answer in time".to_owned() } else { root_cause(error) };
    Failure::new(ErrorKind::Network, format!("{}: {cause}", request.shown()))
        .with_details(Value::map([("phase", Value::str(phase))]))
}

/// The sentence at the bottom of the pile, which is the one that says something.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "it broke".to_owned(), ToString::to_string)
}

pub(crate) fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn std::error::Error + 'static)| (*cause).source())
}

fn refusal(refused: &Refused) -> Failure {
    Failure::new(ErrorKind::ContractViolation, refused.to_string())
}

/// Where a redirect leads; None if this is none.
fn next(request: &Request, response: &Response) -> Option<Result<Url, Failure>> {
    let leads = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| leads)?;
    let location = String::from_utf8_lossy(location.as_bytes());
    Some(request.url.join(&location).map_err(|error| {
        let message =
            format!("{} was redirected to {location:?}, which is no address: {error}", request.shown());
        Failure::new(ErrorKind::HttpStatus, message)
    }))
}

fn too_many(request: &Request, status: StatusCode) -> Failure {
    let message = format!("{} was redirected more than {REDIRECTS_MAX} times", request.shown());
    Failure::new(ErrorKind::HttpStatus, message).with_status(status.as_u16())
}

/// Whether two addresses are of one server, so that what is for the one is for the other.
fn same_server(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// Whether a request of this kind asks for nothing but an answer.
fn is_safe(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Headers as a map by lower-case name; what came several times is joined.
fn as_map(headers: &HeaderMap) -> Value {
    let all = headers.keys().map(|name| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        (name.as_str().to_owned(), Value::from(values.collect::<Vec<_>>().join(", ")))
    });
    Value::map(all)
}
