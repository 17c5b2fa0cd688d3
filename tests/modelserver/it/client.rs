//! A plain HTTP/1.1 client: one request, one connection, the answer piece by piece.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wonder_lang::Time;
use wonder_models::{
    CallFailure, Delta, FailureKind, HttpCall, Key, KeyChoice, Provider, Reply, Request, Target, Wire, encode,
};
use wonder_modelserver::{Script, Server};

pub(crate) const ALL: [(Provider, Wire); 4] = [
    (Provider::OpenAiCompatible, Wire::Chat),
    (Provider::OpenAi, Wire::Responses),
    (Provider::Anthropic, Wire::Anthropic),
    (Provider::Gemini, Wire::Gemini),
];

pub(crate) async fn server(script: &str) -> Server {
    Server::start(Script::read(script).unwrap()).await.unwrap()
}

pub(crate) fn target(server: &Server, (provider, wire): (Provider, Wire)) -> Target {
    let version = if wire == Wire::Gemini { "v1beta" } else { "v1" };
    let base_url = Some(format!("{}/{version}", server.url()));
    let key = KeyChoice::OfProfile(Key::new("sk-test"));
    Target { provider, wire: Some(wire), base_url, key, headers: Vec::new() }
}

pub(crate) fn model(wire: Wire) -> String {
    match wire {
        Wire::Chat => "qwen3",
        Wire::Responses => "gpt-5.2",
        Wire::Anthropic => "claude-opus-4-8",
        Wire::Gemini => "gemini-3-pro",
    }
    .to_owned()
}

/// Asks a model, as a worker would.
pub(crate) async fn ask(request: &Request, target: &Target) -> (Vec<Delta>, Result<Reply, CallFailure>) {
    let exchange = encode(request, target).unwrap();
    let mut connection = Connection::open(&exchange.call).await.unwrap();
    let headers = connection.headers.clone();
    let headers = headers.iter().map(|(name, value)| (&**name, &**value));
    let mut decoder = exchange.decoder(connection.status, headers, 1 << 20);
    let mut deltas = Vec::new();
    while !decoder.is_complete() {
        match connection.piece().await {
            Ok(Some(bytes)) => deltas.extend(decoder.push(&bytes)),
            Ok(None) => break,
            Err(error) => return (deltas, Err(CallFailure::new(FailureKind::Network, error.to_string()))),
        }
    }
    (deltas, decoder.finish(Time(0)))
}

pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    buffer: Vec<u8>,
    /// What is left of the body; None: it comes in chunks.
    left: Option<usize>,
}

impl Connection {
    pub(crate) async fn open(call: &HttpCall) -> io::Result<Connection> {
        let headers =
            call.headers.iter().map(|header| format!("{}: {}\r\n", header.name, header.value)).collect();
        Connection::send(call.method, &call.url, headers, &call.body).await
    }

    pub(crate) async fn send(
        method: &str,
        url: &str,
        headers: String,
        body: &[u8],
    ) -> io::Result<Connection> {
        let (server, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
        let mut stream = TcpStream::connect(server).await?;
        let length = body.len();
        let head = format!(
            "{method} /{path} HTTP/1.1\r\nhost: {server}\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut buffer = Vec::new();
        let end = loop {
            if let Some(end) = find(&buffer, b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Err(io::Error::other("closed before an answer"));
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
        buffer.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let left = length.map(|(_, length)| length.parse().unwrap());
        Ok(Connection { stream, status, headers, buffer, left })
    }

    /// More of the body; None at its end. A connection that closes before is an error.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(left) = &mut self.left {
                if *left == 0 {
                    return Ok(None);
                }
                if !self.buffer.is_empty() {
                    *left -= self.buffer.len();
                    return Ok(Some(std::mem::take(&mut self.buffer)));
                }
            } else if let Some(end) = find(&self.buffer, b"\r\n") {
                let size = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
                if size == 0 {
                    return Ok(None);
                }
                if self.buffer.len() >= end + 2 + size + 2 {
                    let piece = self.buffer[end + 2..end + 2 + size].to_vec();
                    self.buffer.drain(..end + 2 + size + 2);
                    return Ok(Some(piece));
                }
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::other("the connection closed within the answer"));
            }
        }
    }

    pub(crate) async fn text(mut self) -> String {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await.unwrap() {
            all.extend(piece);
        }
        String::from_utf8(all).unwrap()
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

pub(crate) async fn get(url: &str) -> serde_json::Value {
    let connection = Connection::send("GET", url, String::new(), b"").await.unwrap();
    serde_json::from_str(&connection.text().await).unwrap()
}
