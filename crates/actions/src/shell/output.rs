//! What a command writes: kept up to a limit, and shown line by line as it comes, without secrets. Bytes that are no
//! UTF-8 are replaced; nothing is trimmed.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::context::ActionContext;
use crate::job::Stream;
use crate::stream::StreamRedactor;

pub(super) const BYTES_MAX: u64 = 1 << 20;
const CHUNK_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Capture<'a, R> {
    /// None when it has ended.
    pipe: Option<R>,
    stream: Stream,
    kept: Vec<u8>,
    /// What is shown goes through it as a whole, so that a secret is found wherever it is split.
    redactor: StreamRedactor<'a>,
    /// The line that is not yet complete.
    line: Vec<u8>,
    bytes_max: usize,
    chunk: Box<[u8]>,
    /// There was more than may be kept.
    pub(super) overflown: bool,
}

impl<'a, R: AsyncRead + Unpin> Capture<'a, R> {
    pub(super) fn new(
        pipe: Option<R>,
        stream: Stream,
        bytes_max: u64,
        context: &ActionContext<'a>,
    ) -> Capture<'a, R> {
        Capture {
            pipe,
            stream,
            kept: Vec::new(),
            redactor: StreamRedactor::new(context.secrets),
            line: Vec::new(),
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            overflown: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    pub(super) fn name(&self) -> &'static str {
        if self.stream == Stream::Stderr { "stderr" } else { "stdout" }
    }

    /// The next bytes, or the end. May be dropped while it waits.
    pub(super) async fn read(&mut self, context: &ActionContext<'_>) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        match pipe.read(&mut self.chunk).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(count) => self.keep(count, context),
        }
    }

    fn keep(&mut self, count: usize, context: &ActionContext<'_>) {
        let room = self.bytes_max - self.kept.len();
        self.overflown |= count > room;
        let new = &self.chunk[..count.min(room)];
        self.kept.extend_from_slice(new);
        let shown = self.redactor.push(new);
        show(&mut self.line, self.stream, &shown, context);
    }

    /// All of it, once the last line is shown. `whole`: the command came to its end; if not, what it wrote last may
    /// be the first half of a secret.
    pub(super) fn finish(mut self, whole: bool, context: &ActionContext<'_>) -> String {
        let rest = if whole { self.redactor.finish() } else { self.redactor.cut_off() };
        show(&mut self.line, self.stream, &rest, context);
        if !self.line.is_empty() {
            context.line_without_secrets(self.stream, text(&self.line));
        }
        String::from_utf8(self.kept).unwrap_or_else(|error| text(error.as_bytes()))
    }
}

/// Shows what is complete, and keeps the rest.
fn show(line: &mut Vec<u8>, stream: Stream, mut shown: &[u8], context: &ActionContext<'_>) {
    while let Some(end) = shown.iter().position(|byte| *byte == b'\n') {
        line.extend_from_slice(&shown[..end]);
        context.line_without_secrets(stream, text(line));
        line.clear();
        shown = &shown[end + 1..];
    }
    line.extend_from_slice(shown);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
