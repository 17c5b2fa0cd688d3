//! What a command writes: kept up to a limit, and shown line by line as it comes. Bytes that are no UTF-8 are
//! replaced; nothing is trimmed.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::context::ActionContext;
use crate::job::Stream;

pub(super) const BYTES_MAX: u64 = 1 << 20;
const CHUNK_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Capture<R> {
    /// None when it has ended.
    pipe: Option<R>,
    stream: Stream,
    kept: Vec<u8>,
    /// Where the line that is not yet complete begins.
    line: usize,
    bytes_max: usize,
    chunk: Box<[u8]>,
    /// There was more than may be kept.
    pub(super) overflown: bool,
}

impl<R: AsyncRead + Unpin> Capture<R> {
    pub(super) fn new(pipe: Option<R>, stream: Stream, bytes_max: Option<u64>) -> Capture<R> {
        let bytes_max = usize::try_from(bytes_max.unwrap_or(BYTES_MAX)).unwrap_or(usize::MAX);
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        Capture { pipe, stream, kept: Vec::new(), line: 0, bytes_max, chunk, overflown: false }
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
        let mut from = self.kept.len();
        self.kept.extend_from_slice(&self.chunk[..count.min(room)]);
        while let Some(end) = self.kept[from..].iter().position(|byte| *byte == b'\n') {
            context.line(self.stream, text(&self.kept[self.line..from + end]));
            from += end + 1;
            self.line = from;
        }
    }

    /// All of it, once the last line is shown.
    pub(super) fn finish(self, context: &ActionContext<'_>) -> String {
        if self.line < self.kept.len() {
            context.line(self.stream, text(&self.kept[self.line..]));
        }
        String::from_utf8(self.kept).unwrap_or_else(|error| text(error.as_bytes()))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
