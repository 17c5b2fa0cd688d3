//! Sends a request and reads its answer as it comes: guarded as `http_request` is, bounded in bytes, and given up
//! when nothing comes for too long.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use wonder_core::Time;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::Delivery;
use wonder_models::{CallFailure, Delta, Exchange, FailureKind, HttpCall, Reply};

use super::LlmHandler;
use crate::context::ActionContext;
use crate::handler::TryError;
use crate::http::{Refused, causes, guard, root_cause};

/// The longest answer that is read, with all that stands around its text.
const BYTES_MAX: usize = 32 << 20;
/// How long nothing may come before the provider counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(600);

type Answer = Result<Reply, CallFailure>;

pub(super) async fn send(
    handler: &LlmHandler,
    context: &mut ActionContext<'_>,
    mut exchange: Exchange,
) -> Result<Answer, TryError> {
    let body = std::mem::take(&mut exchange.call.body);
    let sending = in_time(post(handler, &exchange.call, body)).await;
    let mut response = match sending {
        Ok(response) => response?,
        Err(failure) => return Ok(Err(failure)),
    };
    let headers = response.headers().clone();
    let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let mut decoder = exchange.decoder(response.status().as_u16(), headers, BYTES_MAX);
    while !decoder.is_complete() {
        match in_time(response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                for delta in decoder.push(&bytes) {
                    if let Delta::Text(text) = delta {
                        context.delta(&text);
                    }
                }
            }
            // What broke off is for the decoder to tell from what ended.
            Ok(Ok(None) | Err(_)) => break,
            Err(failure) => return Ok(Err(failure)),
        }
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(decoder.finish(Time(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))))
}

async fn in_time<F: Future>(work: F) -> Result<F::Output, CallFailure> {
    tokio::time::timeout(SILENCE_MAX, work).await.map_err(|_| {
        let message = format!("nothing came from the provider for {} s", SILENCE_MAX.as_secs());
        CallFailure::new(FailureKind::Network, message)
    })
}

async fn post(handler: &LlmHandler, call: &HttpCall, body: Vec<u8>) -> Result<Response, TryError> {
    let url = Url::parse(&call.url).map_err(|error| {
        Failure::new(ErrorKind::ExpressionError, format!("`base_url`: {:?} is no address: {error}", call.url))
    })?;
    let permitted = guard::is_listed(&url, &handler.settings.allow_hosts);
    guard::check(&url, permitted).map_err(|refused| refusal(&refused, &url))?;
    let clients = &handler.clients;
    let client = if permitted { clients.open() } else { clients.guarded() };
    let client = client.map_err(|why| Failure::new(ErrorKind::Internal, why))?;
    let sending = client.post(url.clone()).headers(headers(call)?).body(body);
    sending.send().await.map_err(|error| unsent(&url, &error))
}

fn headers(call: &HttpCall) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for header in &call.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(&header.value)) else {
            let message = format!("`headers.{}`: no name or value of a header", header.name.escape_debug());
            return Err(Failure::new(ErrorKind::ExpressionError, message));
        };
        value.set_sensitive(header.is_secret);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// What a failed sending means. Only what broke while connecting has surely not gone out.
fn unsent(url: &Url, error: &reqwest::Error) -> TryError {
    if let Some(refused) = causes(error).find_map(|cause| cause.downcast_ref::<Refused>()) {
        return refusal(refused, url).into();
    }
    let place = url.host_str().unwrap_or_default();
    let failure = Failure::new(ErrorKind::Network, format!("{place}: {}", root_cause(error)));
    if error.is_connect() { failure.into() } else { TryError::unknown(failure) }
}

fn refusal(refused: &Refused, url: &Url) -> Failure {
    let place = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let message = match refused {
        Refused::Scheme { scheme } => format!("`base_url`: models are asked by http and https, not {scheme}"),
        Refused::Address { host, address, why } => format!(
            "llm_call may not reach {host}: {address} is {why}; the setting `allow_hosts = [\"{place}\"]` permits it"
        ),
    };
    Failure::new(ErrorKind::ContractViolation, message)
}

pub(super) fn is_unsent(error: &TryError) -> bool {
    matches!(error, TryError::Failed(failed) if failed.delivery == Delivery::NotSent)
}

/// The failure of the try. A provider that broke may have answered before it broke.
pub(super) fn failed(failure: &CallFailure) -> TryError {
    let broke = failure.kind == FailureKind::Network || failure.status.is_some_and(|status| status >= 500);
    if broke { TryError::unknown(failure.to_failure()) } else { TryError::answered(failure.to_failure()) }
}
