//! Text that models are still producing, as far as it was heard: the last of it, for the live tree.

use std::collections::BTreeMap;

use wonder_core::TokenStatus;
use wonder_core::event::TokenId;
use wonder_engine::TextPiece;
use wonder_engine::run_tree::RunTree;

use crate::text::Text;

/// What is remembered of one text.
const BYTES_MAX: usize = 8 << 10;
/// Lines of a text that comes alone; of several, each has one.
const LINES_MAX: usize = 6;
/// Stands for what was lost.
const LOST: &str = " … ";

/// A visit of a node of a run.
pub(crate) type Place = (String, TokenId);

#[derive(Clone, Debug, Default)]
pub(crate) struct Streaming(BTreeMap<Place, Stream>);

#[derive(Clone, Debug)]
struct Stream {
    /// Attempt, step and tries before: with another one a text begins anew.
    of: (u32, String, u32),
    next: u64,
    text: String,
}

impl Streaming {
    pub(crate) fn hear(&mut self, piece: &TextPiece) {
        let of = (piece.attempt, piece.step.clone(), piece.tries_before);
        let place = (piece.run.clone(), TokenId(piece.token));
        let stream =
            self.0.entry(place).or_insert_with(|| Stream { of: of.clone(), next: 0, text: String::new() });
        if stream.of != of {
            // Its pieces are numbered on from those of the try before.
            *stream = Stream { of, next: piece.number, text: String::new() };
        }
        if piece.number > stream.next {
            stream.text.push_str(LOST);
        }
        stream.next = piece.number + 1;
        stream.text.push_str(&piece.text);
        if stream.text.len() > 2 * BYTES_MAX {
            let end = stream.text.len() - BYTES_MAX;
            let end = (end..stream.text.len()).find(|at| stream.text.is_char_boundary(*at)).unwrap_or(0);
            stream.text.drain(..end);
        }
    }

    /// What is over is shown by its result.
    pub(crate) fn forget_ended(&mut self, run_tree: &RunTree) {
        self.0.retain(|(run, token), stream| {
            let visit = run_tree.runs.get(run).and_then(|timeline| timeline.visits.get(token));
            // One that is not known yet is about to be.
            visit.is_none_or(|visit| {
                visit.attempts < stream.of.0
                    || (visit.attempts == stream.of.0 && visit.status == TokenStatus::Dispatched)
            })
        });
    }

    /// The last lines of each text, so wide at most; a text that comes alone has more of them.
    pub(crate) fn lines(&self, lines_max: usize, width: usize) -> BTreeMap<&Place, Vec<Text>> {
        let some = self.0.iter().filter(|(_, stream)| !stream.text.trim().is_empty());
        let some: Vec<(&Place, &Stream)> = some.collect();
        let each = if some.len() == 1 { lines_max.min(LINES_MAX) } else { lines_max.min(1) };
        some.into_iter().map(|(place, stream)| (place, stream.last(each, width))).collect()
    }
}

impl Stream {
    /// The last lines, as they are wrapped: what has come stands where it stood when more comes.
    fn last(&self, lines_max: usize, width: usize) -> Vec<Text> {
        let mut lines: Vec<Text> = Vec::new();
        for line in self.text.trim_end().lines().rev() {
            if lines.len() >= lines_max {
                break;
            }
            let wrapped = wrapped(line, width.max(8));
            lines.extend(wrapped.iter().rev().map(|line| Text::from(line.as_str())));
        }
        lines.truncate(lines_max);
        lines.reverse();
        lines
    }
}

/// Lines of at most so many characters, broken between words; a word that is longer is broken too.
pub(crate) fn wrapped(line: &str, chars_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let used = lines.last().map_or(0, |last| last.chars().count());
        if used > 0 && used + word.trim_end().chars().count() > chars_max {
            lines.push(String::new());
        }
        for c in word.chars() {
            if lines.last().is_some_and(|last| last.chars().count() >= chars_max) {
                lines.push(String::new());
            }
            lines.iter_mut().next_back().into_iter().for_each(|last| last.push(c));
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u64, text: &str) -> TextPiece {
        TextPiece {
            run: "R".to_owned(),
            node: "think".to_owned(),
            token: 1,
            attempt: 1,
            step: "think".to_owned(),
            tries_before: 0,
            number,
            text: text.to_owned(),
        }
    }

    fn shown(streaming: &Streaming, lines_max: usize, width: usize) -> Vec<String> {
        let lines = streaming.lines(lines_max, width);
        lines.values().flatten().map(|line| line.as_str().to_owned()).collect()
    }

    #[test]
    fn a_text_is_wrapped_and_its_end_is_shown() {
        let mut streaming = Streaming::default();
        streaming.hear(&piece(0, "one two three\nfour\u{1b}[2J "));
        streaming.hear(&piece(1, "five incomprehensible"));
        assert_eq!(
            shown(&streaming, 9, 10),
            ["one two", "three", "four␛[2J", "five", "incomprehe", "nsible"]
        );
        assert_eq!(shown(&streaming, 2, 10), ["incomprehe", "nsible"]);
        streaming.hear(&TextPiece { token: 2, ..piece(0, "other text") });
        assert_eq!(shown(&streaming, 9, 40), ["four␛[2J five incomprehensible", "other text"]);
    }

    #[test]
    fn what_was_lost_is_marked_and_another_try_begins_anew() {
        let mut streaming = Streaming::default();
        streaming.hear(&piece(3, "b"));
        streaming.hear(&piece(4, "c"));
        streaming.hear(&piece(9, "d"));
        assert_eq!(shown(&streaming, 9, 40), [" … bc … d"]);
        streaming.hear(&TextPiece { tries_before: 1, ..piece(10, "again") });
        assert_eq!(shown(&streaming, 9, 40), ["again"]);
        let long = "x".repeat(BYTES_MAX);
        (11..99).for_each(|number| streaming.hear(&TextPiece { tries_before: 1, ..piece(number, &long) }));
        assert!(streaming.0.values().all(|stream| stream.text.len() <= 2 * BYTES_MAX));
    }
}
