//! Tables that fit: columns as wide as they need to be, the last one cut at the edge of the screen.

use super::paint::{Paint, Tone};
use crate::text::Text;

/// Rows of cells under a head. A cell has one line.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(Tone, Text)>>,
    /// Columns of numbers.
    numbers: Vec<usize>,
}

const GAP: &str = "  ";
/// What names of a first column keep before anything else is left out.
const NAME_MIN: usize = 20;
/// And of that, how much from their ends: a branch's number is there.
const NAME_END: usize = 5;

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Table {
        Table { head: head.to_vec(), rows: Vec::new(), numbers: Vec::new() }
    }

    /// Numbers end where numbers end.
    pub(crate) fn with_numbers(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        self.numbers.extend(columns);
        self
    }

    /// Without the columns that have nothing in any row.
    pub(crate) fn without_empty(mut self) -> Table {
        let empty = |at: usize| !self.rows.is_empty() && self.rows.iter().all(|row| row[at].1.is_empty());
        for at in (0..self.head.len()).rev().filter(|at| empty(*at)).collect::<Vec<_>>() {
            self.remove(at);
        }
        self
    }

    pub(crate) fn row(&mut self, cells: Vec<(Tone, impl Into<Text>)>) {
        assert_eq!(cells.len(), self.head.len(), "a row has a cell for each column");
        self.rows.push(cells.into_iter().map(|(tone, text)| (tone, text.into())).collect());
    }

    /// So that it fits: names of the first column are cut, then these columns are left out one by one, then
    /// names are cut still more.
    pub(crate) fn narrowed(mut self, width: usize, without: &[&str]) -> Table {
        self.cut_names(width, NAME_MIN);
        for title in without {
            let at = self.head.iter().position(|head| head == title);
            if let Some(at) = at.filter(|_| self.width() > width) {
                self.remove(at);
            }
        }
        self.cut_names(width, NAME_MIN / 2);
        self
    }

    fn cut_names(&mut self, width: usize, least: usize) {
        let surplus = self.width().saturating_sub(width);
        let room = self.widths().first().map_or(0, |first| first.saturating_sub(surplus).max(least));
        if surplus > 0 {
            self.rows.iter_mut().for_each(|row| row[0].1 = cut_within(row[0].1.as_str(), room));
        }
    }

    fn remove(&mut self, at: usize) {
        self.head.remove(at);
        self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        self.numbers.retain(|number| *number != at);
        self.numbers.iter_mut().filter(|number| **number > at).for_each(|number| *number -= 1);
    }

    /// `width`: of the screen; none: nothing is cut.
    pub(crate) fn render(&self, paint: Paint, width: Option<usize>) -> Text {
        let widths = self.widths();
        let mut out = Text::EMPTY;
        let head: Vec<(Tone, Text)> = self.head.iter().map(|title| (Tone::Dim, Text::from(*title))).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            out.push_line(self.line(row, &widths, paint).trim_end().fit(width));
        }
        out
    }

    /// How wide the table is when nothing is cut.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
    }

    fn line(&self, row: &[(Tone, Text)], widths: &[usize], paint: Paint) -> Text {
        let mut line = Text::EMPTY;
        for (at, ((tone, text), width)) in row.iter().zip(widths).enumerate() {
            if at > 0 {
                line.push(GAP);
            }
            let last = at + 1 == row.len();
            let padded = match self.numbers.contains(&at) {
                true => text.pad_left(*width),
                false if last => text.clone(),
                false => text.pad(*width),
            };
            line.push(paint.tone(*tone, padded));
        }
        line
    }

    fn widths(&self) -> Vec<usize> {
        let cell = |row: &Vec<(Tone, Text)>, at: usize| row[at].1.width();
        (0..self.head.len())
            .map(|at| self.rows.iter().map(|row| cell(row, at)).max().unwrap_or(0).max(self.head[at].len()))
            .collect()
    }
}

/// Cut to so many characters, with both ends kept.
fn cut_within(text: &str, chars_max: usize) -> Text {
    let chars = text.chars().count();
    if chars <= chars_max {
        return Text::from(text);
    }
    let first = text.chars().take(chars_max.saturating_sub(NAME_END + 1));
    Text::from(first.chain(['…']).chain(text.chars().skip(chars - NAME_END)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_keeps_its_last_column_and_the_ends_of_names() {
        let cells = |texts: [&str; 3]| texts.map(|text| (Tone::Plain, Text::from(text))).to_vec();
        let mut table = Table::new(&["NODE", "TRIES", "COST"]).with_numbers(1..3);
        table.row(cells(["summarise_each_source[12]", "+7", "$0.0042"]));
        table.row(cells(["write", "", "$1.00"]));
        let shown = |width| {
            let text = table.clone().narrowed(width, &["TRIES"]).render(Paint::NONE, Some(width));
            text.as_str().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let cut = [
            "NODE                  TRIES     COST",
            "summarise_each…e[12]     +7  $0.0042",
            "write                          $1.00",
        ];
        assert_eq!(shown(36), cut);
        let left_out =
            ["NODE                 COST", "summarise_…e[12]  $0.0042", "write               $1.00"];
        assert_eq!(shown(25), left_out);
    }
}
