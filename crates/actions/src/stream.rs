//! Text as it is produced, for whoever watches: bounded and never kept. Sending never waits; a reader that is
//! slower than the text misses some of it and is told how much.

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::job::TextDelta;
use crate::redact::Redactor;

/// The longest piece that is passed on at once; longer ones are cut.
pub const DELTA_BYTES_MAX: usize = 4 << 10;

/// A channel of pieces of text, with any number of readers. It holds so many pieces at most.
#[derive(Clone, Debug)]
pub struct Deltas(Sender<TextDelta>);

impl Deltas {
    pub fn new(pieces_max: usize) -> Deltas {
        Deltas(broadcast::channel(pieces_max.max(1)).0)
    }

    /// Never waits. Without a reader the piece is gone.
    pub fn send(&self, delta: TextDelta) {
        // The only error is that nobody reads.
        let _ = self.0.send(delta);
    }

    /// What is sent from now on.
    pub fn reader(&self) -> DeltaReader {
        DeltaReader(self.0.subscribe())
    }
}

#[derive(Debug)]
pub struct DeltaReader(Receiver<TextDelta>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Streamed {
    Text(TextDelta),
    /// So many pieces came faster than they were read, and are gone.
    Missed(u64),
}

impl DeltaReader {
    /// The next piece; None when nothing more can come.
    pub async fn next(&mut self) -> Option<Streamed> {
        match self.0.recv().await {
            Ok(delta) => Some(Streamed::Text(delta)),
            Err(RecvError::Lagged(pieces)) => Some(Streamed::Missed(pieces)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Hides secrets in a text that comes in pieces, also where one is split between two of them: what may be the
/// beginning of a secret is held back until the next piece shows whether it is.
#[derive(Debug)]
pub(crate) struct StreamRedactor<'a> {
    redactor: &'a Redactor,
    held: String,
}

impl<'a> StreamRedactor<'a> {
    pub(crate) fn new(redactor: &'a Redactor) -> StreamRedactor<'a> {
        StreamRedactor { redactor, held: String::new() }
    }

    /// What of the text so far may be shown now.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.redactor.is_idle() {
            return text.to_owned();
        }
        self.held.push_str(text);
        let rest = self.held.split_off(self.redactor.safe_end(&self.held));
        self.redactor.hide(std::mem::replace(&mut self.held, rest))
    }

    /// What was held back, when nothing more comes.
    pub(crate) fn finish(&mut self) -> String {
        self.redactor.hide(std::mem::take(&mut self.held))
    }
}

/// The text in pieces that are not too long.
pub(crate) fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = (0..=text.len().min(DELTA_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end))?;
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text as it is shown when it comes in pieces of so many characters.
    fn shown(secrets: &[&str], text: &str, chars: usize) -> String {
        let redactor = Redactor::new(secrets.iter().copied());
        let mut stream = StreamRedactor::new(&redactor);
        let all: Vec<char> = text.chars().collect();
        let pieces = all.chunks(chars).map(|piece| stream.push(&piece.iter().collect::<String>()));
        let mut shown: String = pieces.collect();
        shown.push_str(&stream.finish());
        shown
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_is_split() {
        let secrets = ["sk-123456", "päss wörd", "abab-abab"];
        let text = "key sk-123456, päss wörd; sk-12345 is not one, nor abab-aba. abab-abab sk-";
        let whole = "key ***, ***; sk-12345 is not one, nor abab-aba. *** sk-";
        for chars in 1..=text.len() {
            assert_eq!(shown(&secrets, text, chars), whole, "in pieces of {chars}");
        }
    }

    #[test]
    fn what_cannot_become_a_secret_is_shown_at_once_and_little_is_held_back() {
        let redactor = Redactor::new(["aba-aba"]);
        let mut stream = StreamRedactor::new(&redactor);
        assert_eq!(stream.push("no secret"), "no secret");
        assert_eq!(stream.push("so ab"), "so ");
        assert_eq!(stream.push("out"), "about");
        for _ in 0..10_000 {
            stream.push("aba-");
            assert!(stream.held.len() < 100, "{} bytes are held", stream.held.len());
        }
    }

    #[test]
    fn long_pieces_are_cut_between_characters() {
        let text = "ä".repeat(DELTA_BYTES_MAX);
        let cut: Vec<&str> = pieces(&text).collect();
        assert_eq!(cut.concat(), text);
        assert!(cut.iter().all(|piece| piece.len() <= DELTA_BYTES_MAX));
        assert_eq!(pieces("").count(), 0);
    }
}
