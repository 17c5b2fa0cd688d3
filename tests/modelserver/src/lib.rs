//! A model provider that answers by a script: OpenAI chat (`/v1/chat/completions`), OpenAI Responses
//! (`/v1/responses`), Anthropic (`/v1/messages`) and Gemini (`/v1beta/models/…:generateContent`), streamed and not,
//! over HTTP on the loopback. It refuses what the providers refuse, so that a codec that is wrong fails here.
//!
//! `GET /journal` shows what was asked, `GET /count` how often, `DELETE /journal` forgets it. For tests, demos and
//! benchmarks only; it shares no code with the codecs.

mod journal;
mod script;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use http_body::Frame;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use journal::Journal;
pub use script::{Call, Fault, Script, Turn, Usage, When};
use wire::{Answer, Asked, Refusal, Wire};

/// In a streamed text: the microseconds since 1970 when this piece of it is sent.
const NOW: &str = "{now}";
const BODY_BYTES_MAX: usize = 64 << 20;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// On a port that is free.
    pub async fn start(script: Script) -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // It serves until it is dropped; nobody is there to hear of a failure.
            let _ = serve(listener, script).await;
        });
        Ok(Server { address, task })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub async fn serve(listener: TcpListener, script: Script) -> io::Result<()> {
    let used = vec![0; script.turns.len()];
    let served = Arc::new(Served { script, used: Mutex::new(used), journal: Mutex::default() });
    let router = Router::new()
        .route("/journal", get(journal).delete(forget))
        .route("/count", get(count))
        .fallback(ask)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(served);
    // A piece of text is on its way when it is said, as with the real ones, and waits for nobody's acknowledgement.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    axum::serve(listener, router).await
}

struct Served {
    script: Script,
    /// How often each turn was used.
    used: Mutex<Vec<u64>>,
    journal: Mutex<Journal>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn journal(State(served): State<Arc<Served>>) -> Response {
    answer_json(200, &[], &lock(&served.journal).all())
}

async fn count(State(served): State<Arc<Served>>) -> Response {
    answer_json(200, &[], &lock(&served.journal).counts())
}

async fn forget(State(served): State<Arc<Served>>) -> StatusCode {
    lock(&served.journal).clear();
    StatusCode::NO_CONTENT
}

/// A request that is under way; it counts as open until its answer is through or its asker is gone.
struct Open(Arc<Served>);

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.0.journal).end();
    }
}

async fn ask(
    State(served): State<Arc<Served>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let number = lock(&served.journal).begin();
    let open = Open(served.clone());
    let Some(wire) = Wire::of_path(uri.path()).filter(|_| method == Method::POST) else {
        let error = json!({ "error": { "message": format!("there is no {method} {}", uri.path()) } });
        return answer_json(404, &[], &error);
    };
    let parsed = serde_json::from_slice::<Json>(&body);
    let asked = match &parsed {
        Ok(json) => wire.asked(&uri, &headers, json, &served.script),
        Err(error) => Err(Refusal::invalid(format!("the body is no JSON: {error}"))),
    };
    let found = asked.and_then(|asked| match served.turn(&asked) {
        Some(at) => Ok((asked, at)),
        None => Err(Refusal::new(500, "no turn of the script fits this request")),
    });
    let (status, turn) = match &found {
        Ok((_, at)) => (served.script.turns[*at].status(), Some(*at)),
        Err(refusal) => (refusal.status, None),
    };
    let shown = headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), Json::String(String::from_utf8_lossy(value.as_bytes()).into_owned()))
    });
    let entry = json!({
        "number": number, "wire": wire.as_str(), "path": uri.to_string(), "status": status, "turn": turn,
        "headers": Json::Object(shown.collect()),
        "refused": found.as_ref().err().map(|refusal| &refusal.message),
    });
    lock(&served.journal).note(body, entry);
    match found {
        Err(refusal) => wire.refuse(&refusal, number),
        Ok((asked, at)) => perform(open, wire, asked, at, number).await,
    }
}

impl Served {
    /// The first turn that fits and is not used up, used once more.
    fn turn(&self, asked: &Asked) -> Option<usize> {
        let mut used = lock(&self.used);
        let fits = |at: &usize| {
            let turn = &self.script.turns[*at];
            turn.times.is_none_or(|times| used[*at] < times) && asked.fits(&turn.when)
        };
        let at = (0..self.script.turns.len()).find(fits)?;
        used[at] += 1;
        Some(at)
    }
}

impl Turn {
    fn status(&self) -> u16 {
        match &self.error {
            Some(fault) if self.fault_after.is_none() => fault.status,
            _ => 200,
        }
    }
}

async fn perform(open: Open, wire: Wire, asked: Asked, at: usize, number: u64) -> Response {
    let served = open.0.clone();
    let turn = &served.script.turns[at];
    if turn.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(turn.delay_ms)).await;
    }
    if let Some(fault) = turn.error.as_ref().filter(|_| turn.fault_after.is_none()) {
        return wire.refuse(&Refusal::of(fault), number);
    }
    let answer = Answer::new(turn, asked, number);
    let id = format!("req_{number}");
    if !answer.asked.stream {
        if turn.hang_after.is_some() {
            std::future::pending::<()>().await;
        }
        let body = match &turn.raw {
            Some(raw) => raw.clone(),
            None => wire.whole(&answer),
        };
        if turn.cut_after.is_some() {
            let whole = body.to_string();
            let half = whole.chars().take(whole.chars().count() / 2).collect();
            return stream(open, at, &[("content-type", "application/json")], vec![half]);
        }
        return answer_json(200, &[(wire.id_header(), &id)], &body);
    }
    let mut events = wire.events(&answer);
    if let (Some(after), Some(fault)) = (turn.fault_after, &turn.error) {
        events.truncate(after);
        events.push(wire.fault_event(&Refusal::of(fault)));
    }
    events.truncate(turn.cut_after.unwrap_or(events.len()));
    let headers = [("content-type", "text/event-stream"), (wire.id_header(), &*id)];
    stream(open, at, &headers, events)
}

/// Sends events one after the other, up to where the script breaks them off.
fn stream(open: Open, at: usize, headers: &[(&'static str, &str)], events: Vec<String>) -> Response {
    let (pieces, receiver) = mpsc::channel::<io::Result<Bytes>>(16);
    tokio::spawn(async move {
        let turn = &open.0.script.turns[at];
        for (index, event) in events.into_iter().enumerate() {
            if turn.hang_after == Some(index) {
                pieces.closed().await;
                return;
            }
            if turn.chunk_delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(turn.chunk_delay_ms)).await;
            }
            if pieces.send(Ok(Bytes::from(stamped(event)))).await.is_err() {
                return;
            }
        }
        if turn.cut_after.is_some() {
            let _ = pieces.send(Err(io::Error::other("cut by the script"))).await;
        }
    });
    with_headers(Body::new(Pieces(receiver)).into_response(), headers)
}

/// An event with the time in it at which it is sent, if its text asks for that.
fn stamped(event: String) -> String {
    if !event.contains(NOW) {
        return event;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    event.replace(NOW, &since.as_micros().to_string())
}

struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

fn answer_json(status: u16, headers: &[(&'static str, &str)], body: &Json) -> Response {
    let mut response = Body::from(body.to_string()).into_response();
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_headers(with_headers(response, &[("content-type", "application/json")]), headers)
}

fn with_headers(mut response: Response, headers: &[(&'static str, &str)]) -> Response {
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(*name, value);
        }
    }
    response
}
