//! Tables that fit: columns as wide as they need to be, the last one cut at the edge of the screen.

use console::{measure_text_width, pad_str, truncate_str};
use std::borrow::Cow;

use super::paint::{Paint, Tone};

/// Rows of cells under a head. A cell has one line.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(Tone, String)>>,
}

const GAP: &str = "  ";

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Table {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<(Tone, String)>) {
        assert_eq!(cells.len(), self.head.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// `width`: of the screen; none: nothing is cut.
    pub(crate) fn render(&self, paint: Paint, width: Option<usize>) -> String {
        let widths = self.widths();
        let mut out = String::new();
        let head: Vec<(Tone, String)> =
            self.head.iter().map(|title| (Tone::Dim, (*title).to_owned())).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let line = line(row, &widths, paint);
            out.push_str(&fit(line.trim_end(), width));
            out.push('\n');
        }
        out
    }

    /// How wide the table is when nothing is cut.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let cell = |row: &Vec<(Tone, String)>, at: usize| measure_text_width(&row[at].1);
        (0..self.head.len())
            .map(|at| self.rows.iter().map(|row| cell(row, at)).max().unwrap_or(0).max(self.head[at].len()))
            .collect()
    }
}

fn line(row: &[(Tone, String)], widths: &[usize], paint: Paint) -> String {
    let mut line = String::new();
    for (at, ((tone, text), width)) in row.iter().zip(widths).enumerate() {
        if at > 0 {
            line.push_str(GAP);
        }
        let last = at + 1 == row.len();
        let padded = if last { Cow::Borrowed(text.as_str()) } else { pad(text, *width) };
        line.push_str(&paint.tone(*tone, &padded));
    }
    line
}

/// Filled up with blanks to a width on the screen.
pub(crate) fn pad(text: &str, width: usize) -> Cow<'_, str> {
    pad_str(text, width, console::Alignment::Left, None)
}

/// Filled up from the left: numbers end where numbers end.
pub(crate) fn pad_left(text: &str, width: usize) -> Cow<'_, str> {
    pad_str(text, width, console::Alignment::Right, None)
}

/// Cut to a width on the screen.
pub(crate) fn fit(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => truncate_str(text, width, "…"),
        None => Cow::Borrowed(text),
    }
}
