//! Text as it is produced, for whoever watches: bounded and never kept. Sending never waits; a reader that is
//! slower than the text misses some of it and is told how much.

use std::borrow::Cow;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::job::TextDelta;
use crate::redact::{HIDDEN, Redactor};
use crate::secrets::KnownSecrets;

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
/// beginning of a secret is held back until the next piece shows whether it is. It holds less than the longest form of
/// a secret has.
#[derive(Debug)]
pub(crate) struct StreamRedactor<'a> {
    secrets: &'a KnownSecrets,
    held: Vec<u8>,
    /// So much at the beginning of `held` belongs to a secret in whose place `***` was shown.
    hidden: usize,
    /// What stood before `held`, as far as folds of lines depend on it.
    run: usize,
}

impl<'a> StreamRedactor<'a> {
    pub(crate) fn new(secrets: &'a KnownSecrets) -> StreamRedactor<'a> {
        StreamRedactor { secrets, held: Vec::new(), hidden: 0, run: 0 }
    }

    /// What of the text so far may be shown now.
    pub(crate) fn push<'t>(&mut self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let redactor = self.secrets.redactor();
        if redactor.is_idle() && self.held.is_empty() {
            return Cow::Borrowed(text);
        }
        self.held.extend_from_slice(text);
        let end = redactor.may_begin(&self.held, self.run);
        Cow::Owned(self.show(&redactor, end))
    }

    /// What was held back, when nothing more comes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let end = self.held.len();
        self.show(&self.secrets.redactor(), end)
    }

    /// The same where the text was cut off: what was held back may be the first half of a secret, and is not shown.
    pub(crate) fn cut_off(&mut self) -> Vec<u8> {
        let half = self.held.len() > self.hidden;
        self.held.clear();
        self.hidden = 0;
        if half { HIDDEN.as_bytes().to_vec() } else { Vec::new() }
    }

    /// Takes what is held up to a place, with `***` for every secret that begins before it.
    fn show(&mut self, redactor: &Redactor, end: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(end);
        let mut shown = self.hidden;
        for span in redactor.spans(&self.held, self.run).into_iter().filter(|span| span.start < end) {
            if span.start >= shown {
                out.extend_from_slice(&self.held[shown..span.start]);
                out.extend_from_slice(HIDDEN.as_bytes());
            }
            shown = shown.max(span.end);
        }
        out.extend_from_slice(self.held.get(shown..end).unwrap_or_default());
        self.run = redactor.run_after(&self.held[..end], self.run);
        self.held.drain(..end);
        self.hidden = shown.saturating_sub(end);
        out
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

    /// The text as it is shown when it comes in pieces of so many bytes.
    fn shown(known: &KnownSecrets, text: &str, bytes: usize) -> String {
        let mut stream = StreamRedactor::new(known);
        let mut shown: Vec<u8> =
            text.as_bytes().chunks(bytes).flat_map(|piece| stream.push(piece).into_owned()).collect();
        shown.extend(stream.finish());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_is_split() {
        let known = KnownSecrets::of(["sk-123456", "päss wörd", "abab-abab"]);
        let text = "key sk-123456, päss wörd; sk-12345 is not one, nor abab-aba. abab-abab sk-";
        let whole = "key ***, ***; sk-12345 is not one, nor abab-aba. *** sk-";
        for bytes in 1..=text.len() {
            assert_eq!(shown(&known, text, bytes), whole, "in pieces of {bytes}");
        }
    }

    #[test]
    fn a_stream_hides_what_the_whole_text_hides() {
        let known = KnownSecrets::of(["aba-aba", "a-abacus", "-----BEGIN-----\nQUJD\nRA==\n-----END-----\n"]);
        let folded = format!("{}\r\n{}\n", "x".repeat(70), "2d6162612d");
        let texts = [
            "aba-aba-aba-aba-abacus aba-abaaba-aba",
            "so:\n-----BEGIN-----\nQUJD\nRA==\n-----END-----\nthat was it; -----BEGIN-----",
            "YWJhLWFiYQ== and 6162612d616261",
            &folded.replace("xx2d", "6162612d61\n6261"),
            &format!("{}YWJhLW\nFiYQ==\nend", "x".repeat(60)),
        ];
        for text in texts {
            let whole = known.redactor().hide(text.to_owned());
            for bytes in 1..=text.len() {
                assert_eq!(shown(&known, text, bytes), whole, "{text:?} in pieces of {bytes}");
            }
        }
    }

    #[test]
    fn what_cannot_become_a_secret_is_shown_at_once_and_little_is_held_back() {
        let known = KnownSecrets::of(["aba-aba"]);
        let mut stream = StreamRedactor::new(&known);
        assert_eq!(*stream.push(b"no secret\n"), *b"no secret\n");
        assert_eq!(*stream.push(b"so ab"), *b"so ");
        assert_eq!(*stream.push(b"out"), *b"about");
        for _ in 0..10_000 {
            stream.push(b"aba-");
            assert!(stream.held.len() < 100, "{} bytes are held", stream.held.len());
        }
    }

    #[test]
    fn what_is_cut_off_does_not_show_the_first_half_of_a_secret() {
        let known = KnownSecrets::of(["sk-123456"]);
        let mut stream = StreamRedactor::new(&known);
        assert_eq!(*stream.push(b"key sk-123"), *b"key ");
        assert_eq!(stream.cut_off(), b"***");
        assert_eq!(*stream.push(b"key sk-123456"), *b"key ***");
        assert_eq!(stream.cut_off(), b"");
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
