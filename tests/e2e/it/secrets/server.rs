//! A server on the loopback that says back whatever it is told, and more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<String>>,
}

impl Server {
    /// Answers every request with `said` and the request itself. The path says how: `/fail` with status 500, `/refuse`
    /// with 403, `/lead` as a redirect to what no address is, anything else with 200; a header carries `header`.
    pub(crate) fn start(said: String, header: String) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::new(Mutex::new(String::new()));
        let heard = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = receive(&stream).unwrap_or_default();
                heard.lock().expect("nobody panicked").push_str(&request);
                let _ = answer(stream, &request, &said, &header);
            }
        });
        Server { port, asked }
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> String {
        self.asked.lock().expect("nobody panicked").clone()
    }
}

fn answer(mut stream: TcpStream, request: &str, said: &str, header: &str) -> std::io::Result<()> {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, more) = match path {
        path if path.starts_with("/fail") => ("500 Broken", String::new()),
        path if path.starts_with("/refuse") => ("403 No", String::new()),
        path if path.starts_with("/lead") => ("302 There", format!("Location: http://[{header}]/\r\n")),
        _ => ("200 Fine", String::new()),
    };
    let body = format!("{request}\n{said}");
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nX-Said: {header}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// The head and the body that it announces.
fn receive(mut stream: &TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok(text);
            }
        }
        let mut chunk = [0; 4_096];
        match stream.read(&mut chunk)? {
            0 => return Ok(text),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
