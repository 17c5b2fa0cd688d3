//! What every request passes before a route sees it: by which name the server was reached and from which page, who
//! asks, how often, and whether they may.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::{Caller, Role, needed};
use crate::app::{Access, App};
use crate::audit::Entry;
use crate::body::BodyMax;
use crate::problem::Problem;

pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match passed(&app, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn passed(app: &Arc<App>, mut request: Request, next: Next) -> Result<Response, Problem> {
    known_host(request.headers(), request.uri(), &app.options.hosts)?;
    own_origin(request.headers(), request.uri())?;
    let Some(role) = needed(request.method(), request.uri().path()) else {
        return Ok(next.run(request).await);
    };
    let caller = caller(app, request.headers())?;
    app.meter.rate(&caller.name, Instant::now())?;
    caller.may(role)?;
    let _place = app.meter.request()?;
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let by = caller.name.clone();
    request.extensions_mut().insert(BodyMax(app.options.limits.body_bytes_max));
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    if changes {
        app.audit.write(&Entry { at: crate::now(), by, method, path, status: response.status().as_u16() });
    }
    Ok(response)
}

fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    if app.options.access == Access::Open {
        return Ok(Caller { name: "anybody".to_owned(), role: Role::Admin, project: None, token: None });
    }
    let said =
        headers.get(header::AUTHORIZATION).ok_or_else(|| Problem::unauthorized("this needs a token"))?;
    let said = said.to_str().unwrap_or_default();
    let bearer = said.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, text) =
        bearer.ok_or_else(|| Problem::unauthorized("the header `authorization` has no bearer token"))?;
    let found = app.tokens.holder(text.trim()).map_err(tokens_unreadable)?;
    let (token, hash) =
        found.ok_or_else(|| Problem::unauthorized("there is no such token, or it was revoked"))?;
    if token.expires_at.is_some_and(|end| end <= crate::now()) {
        return Err(Problem::unauthorized("the token has expired"));
    }
    Ok(Caller { name: token.name, role: token.role, project: token.project, token: Some(hash) })
}

/// Whether what let a caller in still does.
pub(crate) fn still_holds(app: &App, caller: &Caller) -> bool {
    let Some(hash) = &caller.token else { return true };
    match app.tokens.by_hash(hash) {
        Ok(Some(token)) => token.expires_at.is_none_or(|end| end > crate::now()),
        _ => false,
    }
}

pub(crate) fn tokens_unreadable(error: crate::TokenError) -> Problem {
    let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
    Problem::new(
        status,
        wonder_engine::ErrorCode::Storage.as_str(),
        format!("the tokens cannot be read: {error}"),
    )
}

/// A page of somebody else can point a name of its own at this machine (DNS rebinding): only names that are ours are
/// answered. An address is nobody's name.
fn known_host(headers: &HeaderMap, uri: &Uri, own: &[String]) -> Result<(), Problem> {
    let said = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = said.or(uri.host()).map(name_of).unwrap_or_default();
    let is_address = host.parse::<IpAddr>().is_ok()
        || host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
    let is_own =
        host.eq_ignore_ascii_case("localhost") || own.iter().any(|name| name.eq_ignore_ascii_case(host));
    if is_address || is_own {
        return Ok(());
    }
    let status = axum::http::StatusCode::MISDIRECTED_REQUEST;
    Err(Problem::new(status, "unknown_host", format!("this server is not called {host:?}"))
        .help("Name it when it starts: wonder serve --host NAME."))
}

/// Without the port.
fn name_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}

/// A browser says which page a request comes from; only our own may ask.
fn own_origin(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let host =
        headers.get(header::HOST).and_then(|host| host.to_str().ok()).or(uri.authority().map(|a| a.as_str()));
    let from =
        origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    match (from, host) {
        (Some(from), Some(host)) if from.eq_ignore_ascii_case(host) => Ok(()),
        _ => Err(Problem::new(
            axum::http::StatusCode::FORBIDDEN,
            "foreign_origin",
            "pages of other servers may not ask here",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn names_of_others_are_not_answered() {
        let (uri, own) = (Uri::from_static("/health"), ["wonder.example".to_owned()]);
        let said = |host| known_host(&headers(&[("host", host)]), &uri, &own).is_ok();
        for host in
            ["localhost:4747", "127.0.0.1:4747", "[::1]:4747", "10.0.0.7", "LOCALHOST", "Wonder.example:80"]
        {
            assert!(said(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:4747",
            "",
            "127.0.0.1.evil.example",
            "wonder.example.org",
        ] {
            assert!(!said(host), "{host}");
        }
        assert!(known_host(&HeaderMap::new(), &uri, &own).is_err(), "without any name");
    }

    #[test]
    fn pages_of_others_may_not_ask() {
        let uri = Uri::from_static("/api/v1/runs");
        let from =
            |origin| own_origin(&headers(&[("host", "localhost:4747"), ("origin", origin)]), &uri).is_ok();
        assert!(from("http://localhost:4747") && from("https://localhost:4747"));
        for origin in ["http://localhost:3000", "null", "https://evil.example", "http://127.0.0.1:4747"] {
            assert!(!from(origin), "{origin}");
        }
        assert!(own_origin(&headers(&[("host", "localhost:4747")]), &uri).is_ok(), "no page at all");
    }
}
