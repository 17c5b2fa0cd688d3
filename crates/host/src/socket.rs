//! The way in for a second process: requests and answers as lines of JSON over a Unix socket. A connection
//! carries one request at a time; who asks keeps it for the next.

use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use wonder_engine::{Cause, EngineError, ErrorCode, Reply, Response};

use crate::Purpose;
use crate::embedded::Embedded;
use crate::host::Host;
use crate::lock::Owner;
use crate::private;
use crate::store::unreachable_file;

/// One request or answer: a definition of 100 000 nodes fits many times.
const MESSAGE_BYTES_MAX: u64 = 512 << 20;

/// How long an owner may take to say that it is there.
const HELLO_WITHIN: Duration = Duration::from_secs(2);
/// How long it may take over an answer, beside the time that it was asked to wait: a disk may be slow.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The same for somebody who only looks, and can read the database instead.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// How long answers that are on their way are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Ok(Response),
    Err(EngineError),
    /// To somebody who only wanted to know whether anybody answers.
    Here,
}

pub(crate) fn bind(path: &Path) -> Reply<StdListener> {
    let listener = StdListener::bind(path).map_err(|error| unreachable_file(path, &error.to_string()))?;
    private::tighten_file(path)?;
    Ok(listener)
}

/// Where other processes are answered: a thread with an event loop of its own, which has nobody to wake before
/// it reads a question or writes an answer.
#[derive(Debug)]
pub(crate) struct SocketServer {
    /// Dropped, it closes.
    closing: DropGuard,
    thread: JoinHandle<()>,
}

impl SocketServer {
    pub(crate) fn open(listener: StdListener, host: Host) -> Reply<SocketServer> {
        let failed =
            |error: std::io::Error| EngineError::internal(format!("no thread for the socket: {error}"));
        listener.set_nonblocking(true).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let closing = CancellationToken::new();
        let closed = closing.clone();
        let serve = move || {
            runtime.block_on(async {
                if let Ok(listener) = UnixListener::from_std(listener) {
                    serve(listener, host, closed).await;
                }
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("wonder-socket".to_owned());
        Ok(SocketServer { closing: closing.drop_guard(), thread: thread.spawn(serve).map_err(failed)? })
    }

    /// Answers that are on their way still arrive.
    pub(crate) async fn close(self) {
        drop(self.closing);
        drop(tokio::task::spawn_blocking(move || self.thread.join()).await);
    }
}

async fn serve(listener: UnixListener, host: Host, closing: CancellationToken) {
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // Its file keeps others out; so does this, should somebody have changed that.
                Ok((stream, _)) if !stream.peer_cred().is_ok_and(|peer| private::may_ask(peer.uid())) => {}
                Ok((stream, _)) => drop(conversations.spawn(converse(stream, host.clone(), closing.clone()))),
                // Out of file handles: others will be let go.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = conversations.join_next() => {}
            () = closing.cancelled() => break,
        }
    }
    let last = async { while conversations.join_next().await.is_some() {} };
    drop(tokio::time::timeout(LAST_ANSWERS, last).await);
}

/// An error is a client that went away, and took its question with it.
async fn converse(stream: UnixStream, host: Host, closing: CancellationToken) -> std::io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reader = BufReader::new(reading);
    loop {
        let mut line = String::new();
        let mut message = (&mut reader).take(MESSAGE_BYTES_MAX);
        let read = tokio::select! {
            read = message.read_line(&mut line) => read?,
            () = closing.cancelled() => 0,
        };
        if read == 0 {
            return Ok(());
        }
        let Some(answer) = answer(&line, &host, &mut reader).await else { return Ok(()) };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        writing.write_all(&text).await?;
        if !line.ends_with('\n') {
            // Longer than a message may be: the rest of it is no message.
            return Ok(());
        }
    }
}

/// None if whoever asked has gone meanwhile: nobody sends anything before the answer is there.
async fn answer(line: &str, host: &Host, reader: &mut BufReader<OwnedReadHalf>) -> Option<Answered> {
    let asked = match serde_json::from_str::<Embedded>(line) {
        Ok(asked) => asked,
        Err(error) => {
            let message = format!("the owner does not understand the request: {error}");
            let error = EngineError::new(ErrorCode::Unsupported, message)
                .help("Both processes must be of the same version.")
                .because(Cause::OtherVersion);
            return Some(Answered::Err(error));
        }
    };
    if matches!(asked, Embedded::Hello) {
        return Some(Answered::Here);
    }
    let mut gone = [0; 1];
    tokio::select! {
        answer = host.asked(asked) => Some(match answer {
            Ok(response) => Answered::Ok(response),
            Err(error) => Answered::Err(error),
        }),
        _ = reader.read(&mut gone) => None,
    }
}

/// An engine that is another process.
#[derive(Debug)]
pub(crate) struct Remote {
    socket: PathBuf,
    process: Option<u32>,
    /// Connections that nobody uses just now.
    idle: Mutex<Vec<BufReader<UnixStream>>>,
}

impl Remote {
    pub(crate) fn new(owner: &Owner) -> Remote {
        Remote { socket: owner.socket.clone(), process: owner.pid, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<BufReader<UnixStream>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its process, if that answers at all: one that is stopped is there and does not.
    pub(crate) async fn find_process(&mut self) -> Option<u32> {
        // An owner of another version does not know the question; that is an answer too.
        let asked = self.exchange(&Embedded::Hello);
        tokio::time::timeout(HELLO_WITHIN, asked).await.ok()?.ok()?;
        let peer = self.idle().last().and_then(|stream| stream.get_ref().peer_cred().ok()?.pid());
        self.process = peer.and_then(|pid| u32::try_from(pid).ok()).or(self.process);
        self.process
    }

    pub(crate) async fn asked(&self, asked: Embedded, purpose: Purpose) -> Reply<Response> {
        let within = if purpose == Purpose::Look { LOOK_WITHIN } else { ANSWER_WITHIN };
        let patience = within + Duration::from_millis(asked.wait_ms());
        match tokio::time::timeout(patience, self.exchange(&asked)).await {
            Ok(Ok(Answered::Ok(response))) => Ok(response),
            Ok(Ok(Answered::Err(error))) | Ok(Err(error)) => Err(error),
            Ok(Ok(Answered::Here)) => Err(EngineError::internal("the owner answered another question")),
            Err(_) => Err(EngineError::owner_silent(self.process, patience.as_secs())),
        }
    }

    async fn exchange(&self, asked: &Embedded) -> Reply<Answered> {
        let mut text = serde_json::to_vec(asked).map_err(|e| EngineError::internal(e.to_string()))?;
        text.push(b'\n');
        let kept = self.idle().pop();
        let mut stream = match kept {
            Some(stream) => stream,
            None => BufReader::new(UnixStream::connect(&self.socket).await.map_err(lost)?),
        };
        stream.write_all(&text).await.map_err(lost)?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await.map_err(lost)?;
        let Ok(answer) = serde_json::from_str(&answer) else {
            let message = "the process that owned the database left in the middle of an answer";
            return Err(EngineError::new(ErrorCode::Disconnected, message));
        };
        // Dropped in the middle of a question, a connection is closed: the owner notices.
        self.idle().push(stream);
        Ok(answer)
    }
}

fn lost(error: std::io::Error) -> EngineError {
    let message = format!("the process that owns the database does not answer: {error}");
    EngineError::new(ErrorCode::Disconnected, message)
}
