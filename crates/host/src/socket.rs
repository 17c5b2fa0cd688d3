//! The way in for a second process: requests as lines of JSON over a Unix socket, one connection each.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
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
    let mut line = String::new();
    let mut reader = BufReader::new(reading.take(MESSAGE_BYTES_MAX));
    reader.read_line(&mut line).await?;
    let answer = match serde_json::from_str::<Request>(&line) {
        Err(error) => Answered::Err(
            EngineError::new(
                ErrorCode::Unsupported,
                format!("the owner does not understand the request: {error}"),
            )
            .help("Both processes must be the same version of wonder."),
        ),
        Ok(request) => {
            let mut gone = [0; 1];
            tokio::select! {
                answer = host.ask(request) => match answer {
                    Ok(response) => Answered::Ok(response),
                    Err(error) => Answered::Err(error),
                },
                _ = reader.read(&mut gone) => return Ok(()),
            }
        }
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    writing.write_all(&text).await
}

/// An engine that is another process.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) socket: std::path::PathBuf,
}

impl Engine for Remote {
    fn ask(&self, request: Request) -> Pending<'_, Response> {
        Box::pin(self.exchange(request))
    }
}

impl Remote {
    async fn exchange(&self, request: Request) -> Reply<Response> {
        let lost = |error: std::io::Error| {
            let message = format!("the process that owns the database does not answer: {error}");
            EngineError::new(ErrorCode::Disconnected, message)
        };
        let mut stream = UnixStream::connect(&self.socket).await.map_err(lost)?;
        let mut text = serde_json::to_vec(&request).map_err(|e| EngineError::internal(e.to_string()))?;
        text.push(b'\n');
        stream.write_all(&text).await.map_err(lost)?;
        let mut answer = String::new();
        BufReader::new(&mut stream).read_line(&mut answer).await.map_err(lost)?;
        match serde_json::from_str(&answer) {
            Ok(Answered::Ok(response)) => Ok(response),
            Ok(Answered::Err(error)) => Err(error),
            Err(_) => Err(EngineError::new(
                ErrorCode::Disconnected,
                "the process that owned the database left in the middle of an answer",
            )),
        }
    }
}
