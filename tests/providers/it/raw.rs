//! A server that answers with the bytes it is told to, as providers do in ways that no double can be scripted to: whole
//! replies where a stream was asked for, broken bytes, silence. Whatever it has no answer for it hands on to aimock,
//! byte by byte. It keeps what it was sent (aimock's own journal has it in another form), and sees when it is left.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use wonder_models::Wire;

/// What is sent back for one request.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: String,
    /// Nothing more comes, and the connection stays until the other side goes.
    pub(crate) hangs: bool,
}

impl Raw {
    pub(crate) fn json(status: u16, body: &Json) -> Raw {
        let headers = vec![("content-type", "application/json")];
        Raw { status, headers, body: body.to_string(), hangs: false }
    }

    pub(crate) fn stream(body: String) -> Raw {
        let headers = vec![("content-type", "text/event-stream"), ("x-request-id", "req_raw")];
        Raw { status: 200, headers, body, hangs: false }
    }

    pub(crate) fn hanging(self) -> Raw {
        Raw { hangs: true, ..self }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Raw {
        self.headers.push((name, value));
        self
    }
}

#[derive(Debug)]
pub(crate) struct RawServer {
    pub(crate) url: String,
    journal: Arc<Mutex<Vec<Json>>>,
    /// How many were left by the other side in the middle of an answer.
    left: watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

type Answers = fn(&str, Wire) -> Option<Raw>;

impl RawServer {
    /// Answers `/CASE/PROVIDER/…` as `answers` has it for the case and the format of the path; else asks `behind`.
    pub(crate) async fn start(answers: Answers, behind: Option<String>) -> RawServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let journal = Arc::new(Mutex::new(Vec::new()));
        let (leave, left) = watch::channel(0);
        let kept = journal.clone();
        let served = Arc::new(Served { answers, behind, journal: kept, leave });
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let served = served.clone();
                tokio::spawn(async move {
                    // A connection that breaks is what some of these are about.
                    let _ = served.serve(connection).await;
                });
            }
        });
        RawServer { url, journal, left, task }
    }

    pub(crate) fn journal(&self) -> Vec<Json> {
        self.journal.lock().expect("no test panics with it").clone()
    }

    /// Waits until so many connections were closed by the other side in the middle of an answer.
    pub(crate) async fn left_by(&self, count: usize) {
        let mut left = self.left.clone();
        left.wait_for(|left| *left >= count).await.expect("the server runs");
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Served {
    answers: Answers,
    behind: Option<String>,
    journal: Arc<Mutex<Vec<Json>>>,
    leave: watch::Sender<usize>,
}

impl Served {
    async fn serve(&self, mut connection: TcpStream) -> io::Result<()> {
        let Some((head, body)) = message(&mut connection).await? else { return Ok(()) };
        let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let json: Json = serde_json::from_slice(&body).unwrap_or_default();
        self.journal.lock().expect("no test panics with it").push(json!({ "path": path, "body": json }));
        let (case, inner) = split(&path);
        let answer = match (wire_of(&path).and_then(|wire| (self.answers)(case, wire)), &self.behind) {
            (Some(answer), _) => answer,
            (None, Some(behind)) => {
                let mut other = TcpStream::connect(behind).await?;
                let head = once(&head.replacen(&path, inner, 1));
                other.write_all(head.as_bytes()).await?;
                other.write_all(&body).await?;
                let Some((head, begun)) = message(&mut other).await? else { return Ok(()) };
                connection.write_all(once(&head).as_bytes()).await?;
                connection.write_all(&begun).await?;
                tokio::io::copy(&mut other, &mut connection).await?;
                connection.shutdown().await?;
                return Ok(());
            }
            (None, None) => Raw::json(404, &json!({ "error": "there is nothing here" })),
        };
        let mut told = format!("HTTP/1.1 {} Told\r\nconnection: close\r\n", answer.status);
        for (name, value) in &answer.headers {
            told.push_str(&format!("{name}: {value}\r\n"));
        }
        connection.write_all(format!("{told}\r\n{}", answer.body).as_bytes()).await?;
        if answer.hangs {
            // Whoever has enough closes the connection, and that is what is read.
            while connection.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
            self.leave.send_modify(|left| *left += 1);
        }
        connection.shutdown().await
    }
}

/// The head of a message, for a connection that is used once: so no request goes by unseen.
fn once(head: &str) -> String {
    let stays = |line: &&str| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("connection:") && !line.starts_with("keep-alive:") && !line.is_empty()
    };
    let lines: Vec<&str> = head.split("\r\n").filter(stays).collect();
    format!("{}\r\nconnection: close\r\n\r\n", lines.join("\r\n"))
}

/// The head of a message, and its body as far as its length is told; None if the other side went before that.
async fn message(connection: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut taken = Vec::new();
    loop {
        let end = taken.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&taken[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if taken.len() >= end + length.unwrap_or(0) {
                return Ok(Some((head, taken.split_off(end))));
            }
        }
        if connection.read_buf(&mut taken).await? == 0 {
            return Ok(None);
        }
    }
}

/// `/CASE/PROVIDER/REST` to `CASE` and `/REST`.
fn split(path: &str) -> (&str, &str) {
    let mut parts = path.splitn(4, '/').skip(1);
    let case = parts.next().unwrap_or_default();
    let rest = parts.nth(1).map_or(path, |rest| &path[path.len() - rest.len() - 1..]);
    (case, rest)
}

/// The format that is asked for at this path.
pub(crate) fn wire_of(path: &str) -> Option<Wire> {
    let path = path.split('?').next().unwrap_or_default();
    match path.to_ascii_lowercase() {
        path if path.ends_with("/chat/completions") => Some(Wire::Chat),
        path if path.ends_with("/responses") => Some(Wire::Responses),
        path if path.ends_with("/messages") => Some(Wire::Anthropic),
        path if path.ends_with("generatecontent") => Some(Wire::Gemini),
        _ => None,
    }
}
