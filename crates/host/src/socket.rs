//! The way in for a second process: requests and answers as lines of JSON over a Unix socket. A connection
//! carries one request at a time; who asks keeps it for the next.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use wonder_engine::{Engine, EngineError, ErrorCode, Pending, Reply, Request, Response};

use crate::host::Host;
use crate::store::unreachable_file;

/// One request or answer: a definition of 100 000 nodes fits many times.
const MESSAGE_BYTES_MAX: u64 = 512 << 20;

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Ok(Response),
    Err(EngineError),
}

pub(crate) fn bind(path: &Path) -> Reply<UnixListener> {
    UnixListener::bind(path).map_err(|error| unreachable_file(path, &error.to_string()))
}

/// Serves until the task is dropped.
pub(crate) async fn serve(listener: UnixListener, host: Host) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let host = host.clone();
                // A client that goes away takes its question with it.
                tokio::spawn(async move { drop(converse(stream, &host).await) });
            }
            // Out of file handles: others will be let go.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
}

async fn converse(stream: UnixStream, host: &Host) -> std::io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reader = BufReader::new(reading);
    loop {
        let mut line = String::new();
        if (&mut reader).take(MESSAGE_BYTES_MAX).read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let Some(answer) = answer(&line, host, &mut reader).await else { return Ok(()) };
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
    let request = match serde_json::from_str::<Request>(line) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the owner does not understand the request: {error}");
            let help = "Both processes must be the same version of wonder.";
            return Some(Answered::Err(EngineError::new(ErrorCode::Unsupported, message).help(help)));
        }
    };
    let mut gone = [0; 1];
    tokio::select! {
        answer = host.ask(request) => Some(match answer {
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
    /// Connections that nobody uses just now.
    idle: Mutex<Vec<BufReader<UnixStream>>>,
}

impl Engine for Remote {
    fn ask(&self, request: Request) -> Pending<'_, Response> {
        Box::pin(self.exchange(request))
    }
}

impl Remote {
    pub(crate) fn new(socket: PathBuf) -> Remote {
        Remote { socket, idle: Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<BufReader<UnixStream>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(&self, request: Request) -> Reply<Response> {
        let mut text = serde_json::to_vec(&request).map_err(|e| EngineError::internal(e.to_string()))?;
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
        match answer {
            Answered::Ok(response) => Ok(response),
            Answered::Err(error) => Err(error),
        }
    }
}

fn lost(error: std::io::Error) -> EngineError {
    let message = format!("the process that owns the database does not answer: {error}");
    EngineError::new(ErrorCode::Disconnected, message)
}
