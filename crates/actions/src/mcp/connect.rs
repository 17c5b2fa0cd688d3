//! A connection to a server: a program with its pipes, or a guarded HTTP client. It is either whole or broken, and a
//! broken one is never mended: the pool makes another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
    ServiceError,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::NeverRetry;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::sync::Mutex;
use wonder_core::error::{ErrorKind, Failure};

use super::calls::Calls;
use super::filled::{Filled, Reach};
use super::listen::Listener;
use super::pool::Pool;
use super::tools::Tools;
use crate::deadline::Deadline;
use crate::handler::TryError;
use crate::http::{Refused, guard};
use crate::job::Stream;
use crate::shell::{Opened, Stays, StaysSpec};
use crate::texts::bad_field;

/// The longest line or event that is read from a server.
const MESSAGE_BYTES_MAX: usize = 128 << 20;
/// The longest line of what it says beside.
const LINE_BYTES_MAX: u64 = 16 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) calls: Arc<Calls>,
    pub(super) tools: Mutex<Option<Arc<Tools>>>,
    broken: AtomicBool,
    is_http: bool,
    process: Mutex<Option<Stays>>,
    /// Dropping it ends the connection; before that its process, if it has one, is gone.
    _service: RunningService<RoleClient, Listener>,
}

impl Connection {
    pub(super) async fn open(
        pool: &Pool,
        filled: &Filled,
        deadline: Deadline<'_>,
    ) -> Result<Connection, TryError> {
        let calls = Arc::new(Calls::default());
        let listener = Listener { calls: calls.clone(), samples: filled.samples };
        let opening = async {
            match &filled.reach {
                Reach::Command { .. } => by_pipes(pool, filled, listener, deadline).await,
                Reach::Address { url, headers } => {
                    let transport = || transport(pool, url, headers);
                    let (service, process) = by_address(transport, &listener).await?;
                    Ok((service, process))
                }
            }
        };
        let within = filled.start_within();
        let opened = deadline.limit(tokio::time::timeout(within, opening)).await?;
        let (service, process) = opened.map_err(|_| {
            let said = calls.last_line().map(|line| format!("; it said: {line}")).unwrap_or_default();
            let message =
                format!("the MCP server `{}` was not ready within {} s{said}", filled.name, within.as_secs());
            Failure::new(ErrorKind::Network, message)
        })??;
        Ok(Connection {
            peer: service.peer().clone(),
            calls,
            tools: Mutex::default(),
            broken: AtomicBool::new(false),
            is_http: process.is_none(),
            process: Mutex::new(process),
            _service: service,
        })
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || self.peer.is_transport_closed()
    }

    pub(super) fn is_broken_now(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Nothing came in time. Over HTTP nobody knows whether anything ever will.
    pub(super) fn is_silent(&self) {
        if self.is_http {
            self.is_broken_now();
        }
    }

    /// How its program ended, for people.
    pub(super) async fn how_it_ended(&self) -> String {
        let mut process = self.process.lock().await;
        let status = match process.as_mut() {
            Some(process) => process.ended().await,
            None => None,
        };
        let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
        let said = self.calls.last_line().map(|line| format!("; it said: {line}")).unwrap_or_default();
        format!("{status}{said}")
    }
}

type Served = (RunningService<RoleClient, Listener>, Option<Stays>);

async fn by_pipes(
    pool: &Pool,
    filled: &Filled,
    listener: Listener,
    deadline: Deadline<'_>,
) -> Result<Served, TryError> {
    let Reach::Command { command, env, workdir, cwd, isolation, image, network } = filled.reach.clone()
    else {
        unreachable!("only programs come here")
    };
    let spec = StaysSpec { command, env, workdir, cwd, isolation, image, network };
    let Opened { mut process, stdin, stdout, stderr } = Stays::start(&pool.shell, spec, deadline).await?;
    let calls = listener.calls.clone();
    tokio::spawn(follow(stderr, calls.clone()));
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MESSAGE_BYTES_MAX);
    match serve(listener, transport, both()).await {
        Ok(service) => Ok((service, Some(process))),
        Err(error) => {
            let status =
                process.ended().await.map(|status| format!(", it ended ({status})")).unwrap_or_default();
            let said = calls.last_line().map(|line| format!("; it said: {line}")).unwrap_or_default();
            let message =
                format!("the MCP server `{}` did not start: {}{status}{said}", filled.name, greeted(&error));
            Err(Failure::new(ErrorKind::Network, message).into())
        }
    }
}

/// Asks for the newest protocol; what does not know it is greeted the old way.
fn both() -> ClientLifecycleMode {
    let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version }
}

async fn serve<T, E, A>(
    listener: Listener,
    transport: T,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Listener>, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    listener.serve_with_lifecycle(transport, lifecycle).await
}

type HttpTransport = StreamableHttpClientTransport<reqwest::Client>;

/// Older servers may hang up on a request that they do not know: then they are asked again, the old way.
async fn by_address(
    transport: impl Fn() -> Result<HttpTransport, Failure>,
    listener: &Listener,
) -> Result<Served, TryError> {
    let first = serve(listener.clone(), transport()?, both()).await;
    let error = match first {
        Ok(service) => return Ok((service, None)),
        Err(error) => error,
    };
    if let Some(failure) = hopeless(&error) {
        return Err(failure.into());
    }
    let second = serve(listener.clone(), transport()?, ClientLifecycleMode::Initialize).await;
    match second {
        Ok(service) => Ok((service, None)),
        Err(error) => Err(hopeless(&error).unwrap_or_else(|| unreached(&error)).into()),
    }
}

fn unreached(error: &ClientInitializeError) -> Failure {
    Failure::new(ErrorKind::Network, format!("the MCP server cannot be reached: {}", greeted(error)))
}

/// What no other greeting would change.
fn hopeless(error: &ClientInitializeError) -> Option<Failure> {
    let text = greeted(error);
    if error.is_authorization_required() || text.contains("401") || text.contains("403") {
        let message = format!("the MCP server does not accept who asks: {text}; check its `headers`");
        return Some(Failure::new(ErrorKind::Auth, message));
    }
    // The refusal of an address is an error below that of the client.
    let refused = text.contains("may not reach");
    refused.then(|| Failure::new(ErrorKind::ContractViolation, text))
}

/// Why a greeting failed, without the names of what is in between.
fn greeted(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => chain(&*error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => greeted(fallback),
        error => chain(error),
    }
}

/// The same of a request.
pub(super) fn asked(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportClosed => "it is gone".to_owned(),
        ServiceError::TransportSend(error) => chain(&*error.error),
        error => chain(error),
    }
}

/// An error with all that is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(source) = at {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        at = source.source();
    }
    text
}

fn transport(
    pool: &Pool,
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HttpTransport, Failure> {
    let address =
        Url::parse(url).map_err(|error| bad_field("url", &format!("{url:?} is no address: {error}")))?;
    let permitted = guard::is_listed(&address, &pool.settings.allow_hosts);
    guard::check(&address, permitted).map_err(|refused| not_allowed(&refused, &address))?;
    let client = if permitted { pool.clients.open() } else { pool.clients.guarded() };
    let client = client.map_err(|why| Failure::new(ErrorKind::Internal, why))?.clone();
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let (Ok(name), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        else {
            return Err(bad_field("headers", &format!("{name:?} is no name of a header, or its value none")));
        };
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(NeverRetry::default());
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

fn not_allowed(refused: &Refused, url: &Url) -> Failure {
    let message = match refused {
        Refused::Scheme { scheme } => format!("an MCP server is reached by http and https, not {scheme}"),
        Refused::Address { host, address, why } => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!(
                "MCP may not reach {host}: {address} is {why}; the setting `allow_hosts = [\"{host}{port}\"]` permits it"
            )
        }
    };
    Failure::new(ErrorKind::ContractViolation, message)
}

/// What a program says beside its messages.
async fn follow(stderr: ChildStderr, calls: Arc<Calls>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => calls.line(Stream::Stderr, String::from_utf8_lossy(&line).trim_end()),
        }
    }
}
