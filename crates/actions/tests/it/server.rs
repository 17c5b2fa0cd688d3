//! A small HTTP server that answers as it is told, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How to treat one request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Status, extra headers (`Name: value\r\n` each), body.
    Send(u16, String, String),
    /// Takes the request and hangs up.
    HangUp,
    /// Promises more than it sends.
    Break,
    /// Never answers.
    Stall,
}

impl Answer {
    pub(crate) fn ok(body: &str) -> Answer {
        Answer::Send(200, String::new(), body.to_owned())
    }

    pub(crate) fn status(status: u16) -> Answer {
        Answer::Send(status, String::new(), format!("said {status}"))
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Answer {
        Answer::Send(status, format!("Location: {to}\r\n"), String::new())
    }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// The answers in order; the last repeats.
    pub(crate) async fn start(answers: Vec<Answer>) -> Server {
        Server::at("127.0.0.1:0", answers).await
    }

    /// On every address that there is: only for a network of its own.
    pub(crate) async fn everywhere(answers: Vec<Answer>) -> Server {
        let any = if std::path::Path::new("/proc/net/if_inet6").exists() { "[::]:0" } else { "0.0.0.0:0" };
        Server::at(any, answers).await
    }

    async fn at(address: &str, answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let output = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answers.clone(), output.clone()));
            }
        });
        Server { port, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests so far, whole.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answers: Vec<Answer>, asked: Arc<Mutex<Vec<String>>>) {
    let Some(request) = receive(&mut stream).await else { return };
    let number = {
        let mut asked = asked.lock().unwrap();
        asked.push(request);
        asked.len() - 1
    };
    match answers[number.min(answers.len() - 1)].clone() {
        Answer::Send(status, headers, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n"
            );
            let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Answer::Break => {
            let _ = stream.write_all(b"HTTP/1.1 200 Said\r\nContent-Length: 100\r\n\r\nhalf").await;
            let _ = stream.shutdown().await;
        }
        Answer::HangUp => {}
        Answer::Stall => std::future::pending().await,
    }
}

/// The head and the body that it announces.
async fn receive(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
