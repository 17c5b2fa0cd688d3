//! A server on the loopback, for workflows that make requests: it answers as a test says, in the order asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct Server {
    pub port: u16,
    /// `METHOD /path` and the body of each request so far.
    pub asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    /// `answer` is given the request line and how often that was asked before; it gives a status and a JSON body.
    pub(crate) fn start(answer: fn(&str, usize) -> (u16, String)) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = talk(stream, &log, answer);
            }
        });
        Server { port, asked }
    }
}

fn talk(
    stream: TcpStream,
    log: &Mutex<Vec<(String, String)>>,
    answer: fn(&str, usize) -> (u16, String),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let request = line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut log = log.lock().unwrap();
    let before = log.iter().filter(|(known, _)| *known == request).count();
    log.push((request.clone(), String::from_utf8_lossy(&body).into_owned()));
    let (status, body) = answer(&request, before);
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
