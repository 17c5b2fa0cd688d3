//! Line breaks that an encoder puts into what it writes: base64 and hex dumps are folded every 60 to 76 characters,
//! wherever that falls in a secret. A text is unfolded to be searched, and what is found is told by its place in the
//! text as it stands.

use std::ops::Range;

/// A break is a fold if so many characters of an encoder stand before it on its line.
const RUN_MIN: usize = 16;

/// How line breaks are written: as they are, and in JSON.
const BREAKS: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];

/// A text without its folds.
#[derive(Debug)]
pub(super) struct Unfolded {
    pub(super) text: Vec<u8>,
    /// Where folds were in `text`, and how many bytes were left out up to there.
    folds: Vec<(usize, usize)>,
}

impl Unfolded {
    /// None if it has no folds. `run` is how many characters of an encoder stood right before the text; what may be
    /// the beginning of a break at its end counts as one.
    pub(super) fn of(text: &[u8], mut run: usize) -> Option<Unfolded> {
        let mut unfolded = Unfolded { text: Vec::new(), folds: Vec::new() };
        let (mut kept, mut at) = (0, 0);
        while at < text.len() {
            if is_encoded(text[at]) {
                (run, at) = (run + 1, at + 1);
                continue;
            }
            let fold = break_at(&text[at..]).filter(|_| run >= RUN_MIN);
            run = 0;
            let Some(bytes) = fold else {
                at += 1;
                continue;
            };
            unfolded.text.extend_from_slice(&text[kept..at]);
            at += bytes;
            kept = at;
            unfolded.folds.push((unfolded.text.len(), at - unfolded.text.len()));
        }
        if unfolded.folds.is_empty() {
            return None;
        }
        unfolded.text.extend_from_slice(&text[kept..]);
        Some(unfolded)
    }

    /// Where a stretch of the unfolded text is in the text itself, if there is a fold in it.
    pub(super) fn across_fold(&self, found: Range<usize>) -> Option<Range<usize>> {
        let (start, end) = (self.place(found.start), self.place(found.end - 1) + 1);
        (end - start > found.len()).then_some(start..end)
    }

    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.folds.partition_point(|(fold, _)| *fold <= at);
        at + before.checked_sub(1).map_or(0, |last| self.folds[last].1)
    }

    /// Where the text after the last fold begins.
    pub(super) fn last_fold(&self) -> usize {
        self.folds.last().map_or(0, |(at, _)| *at)
    }
}

/// The characters of base64 and hex, and of most keys.
pub(super) fn is_encoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte)
}

/// How many characters of an encoder stand at the end of a text that such a run came before.
pub(super) fn run_at_end(text: &[u8], run: usize) -> usize {
    let own = text.iter().rev().take(RUN_MIN).take_while(|byte| is_encoded(**byte)).count();
    if own == text.len() { (own + run).min(RUN_MIN) } else { own }
}

/// How long the break is that begins here, as far as the text goes.
fn break_at(text: &[u8]) -> Option<usize> {
    BREAKS.iter().find_map(|known| {
        let common = known.len().min(text.len());
        (text[..common] == known[..common]).then_some(common)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_breaks_after_a_run_are_folds() {
        let run = "A".repeat(RUN_MIN);
        assert!(Unfolded::of(b"a line\nand another\n", 0).is_none());
        assert!(Unfolded::of(format!("{}\nB", &run[1..]).as_bytes(), 0).is_none());
        for line_break in ["\n", "\r\n", "\\n", "\\r\\n", "\r", "\\"] {
            let text = format!("x {run}{line_break}");
            let unfolded = Unfolded::of(text.as_bytes(), 0).unwrap();
            assert_eq!(unfolded.text, format!("x {run}").as_bytes(), "{line_break:?}");
        }
        let text = format!("{run}\nBC\nD {run}\r\nE");
        let unfolded = Unfolded::of(text.as_bytes(), 0).unwrap();
        assert_eq!(unfolded.text, format!("{run}BC\nD {run}E").as_bytes());
        assert_eq!(unfolded.across_fold(RUN_MIN - 1..RUN_MIN + 1), Some(RUN_MIN - 1..RUN_MIN + 2));
        assert_eq!(unfolded.across_fold(RUN_MIN..RUN_MIN + 2), None);
        assert_eq!(unfolded.place(unfolded.text.len() - 1), text.len() - 1);
        // What came before counts.
        assert!(Unfolded::of(b"AB\nCD", RUN_MIN - 2).is_some());
        assert_eq!((run_at_end(b"AB", 3), run_at_end(b" AB", 3), run_at_end(b"AB ", 3)), (5, 2, 0));
    }
}
