//! One row of the tree as one line: mark, node, time, cost, and what is to be said about it.

use wonder_core::Time;
use wonder_engine::timeline::Axis;

use super::paint::{Paint, Tone, token_mark, token_tone};
use super::tree::{Mark, Row};
use super::words::{brief, dollars, duration};
use crate::text::{Text, text};

const TIME_WIDTH: usize = 7;
const BAR_WIDTH: usize = 24;
const NOTE_CHARS_MAX: usize = 400;

/// Where the columns of a list of rows stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    width: usize,
    label: usize,
    cost: usize,
    /// Of the bars that show when; none if there is no room.
    pub bars: usize,
    /// Turns the spinner; none: nothing moves.
    turn: Option<usize>,
    pub paint: Paint,
}

impl Columns {
    pub(crate) fn of(rows: &[Row], width: usize, paint: Paint) -> Columns {
        let tokens = || rows.iter().filter(|row| !matches!(row.mark, Mark::Group { .. }));
        let label = tokens().map(|row| Text::from(label(row)).width()).max().unwrap_or(0);
        let cost = tokens().filter(|row| row.usd_micros > 0).map(|row| dollars(row.usd_micros).len());
        let cost = cost.max().map_or(0, |widest| widest + 1);
        Columns { width, label: label.clamp(12, (width / 2).max(12)), cost, bars: 0, turn: None, paint }
    }

    /// Makes room for bars, if there is some.
    pub(crate) fn with_bars(mut self) -> Columns {
        let used = self.label + 1 + TIME_WIDTH + self.cost + 2;
        let room = self.width.saturating_sub(used);
        self.bars = if room >= 12 { (room / 2).clamp(12, 40) } else { 0 };
        self
    }

    pub(crate) fn turning(mut self, turn: Option<usize>) -> Columns {
        self.turn = turn;
        self
    }

    /// Where the bars begin.
    pub(crate) fn bars_at(&self) -> usize {
        self.label + 1 + TIME_WIDTH + self.cost + 2
    }
}

/// What the bars are drawn on: the time of the run's own work, up to its end or to now.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub axis: Axis,
    pub to: Time,
}

impl Span {
    pub(crate) fn whole_ms(&self) -> u64 {
        self.axis.ms(self.to)
    }
}

pub(crate) fn line(row: &Row, at: &Columns, span: Option<&Span>) -> Text {
    let text = match row.mark {
        Mark::Ahead => {
            let name = text!("· {}", row.label).fit(Some(at.label));
            let gap = Text::blanks(TIME_WIDTH + at.cost);
            at.paint.dim(text!("{} {}  {}", name.pad(at.label), gap, row.note))
        }
        Mark::Earlier => {
            let name = text!("{}⋯ {}", indent(row), row.label).fit(Some(at.label));
            let time = Text::from(row.took_ms.map_or(String::new(), duration)).pad_left(TIME_WIDTH);
            let cost = Text::from(if row.usd_micros > 0 { dollars(row.usd_micros) } else { String::new() });
            let bar = span.filter(|_| at.bars > 0).map(|span| when(row, at, span)).unwrap_or_default();
            let rest = text!("{}{}{}  {}", time, cost.pad_left(at.cost), bar, row.note);
            at.paint.dim(text!("{} {}", name.pad(at.label), rest))
        }
        Mark::Token(status) => {
            let mark = at.paint.tone(token_tone(status), token_mark(status, at.turn));
            let quiet = matches!(token_tone(status), Tone::Dim);
            let tone = if quiet { Tone::Dim } else { Tone::Plain };
            let (label, item) = (at.paint.tone(tone, &row.label), at.paint.dim(item(row)));
            let name = text!("{}{} {}{}", indent(row), mark, label, item).fit(Some(at.label));
            let time = Text::from(row.took_ms.map_or(String::new(), duration));
            let cost = Text::from(if row.usd_micros > 0 { dollars(row.usd_micros) } else { String::new() });
            let bar = span.filter(|_| at.bars > 0).map(|span| when(row, at, span)).unwrap_or_default();
            let note = at.paint.tone(note_tone(row.mark), brief(&row.note, NOTE_CHARS_MAX));
            text!(
                "{} {}{}{}  {}",
                name.pad(at.label),
                time.pad_left(TIME_WIDTH),
                at.paint.dim(cost.pad_left(at.cost)),
                bar,
                note
            )
        }
        Mark::Group { done, total, closed, .. } => {
            let bar = match closed {
                true => Text::EMPTY,
                false => text!(" {}", progress_bar(done, total, at.paint)),
            };
            let note = if row.note.is_empty() { String::new() } else { format!(" · {}", row.note) };
            let text = text!("{}{} {}/{}{}", row.label, bar, done, total, note);
            text!("{}{}", indent(row), if closed { at.paint.dim(text) } else { text })
        }
    };
    text.trim_end().fit(Some(at.width))
}

fn label(row: &Row) -> String {
    format!("{}x {}{}", indent(row), row.label, item(row))
}

fn item(row: &Row) -> String {
    if row.item.is_empty() { String::new() } else { format!(" {}", row.item) }
}

fn indent(row: &Row) -> String {
    "  ".repeat(row.depth)
}

fn note_tone(mark: Mark) -> Tone {
    match mark {
        Mark::Token(status) => match token_tone(status) {
            tone @ (Tone::Bad | Tone::Attention) => tone,
            _ => Tone::Dim,
        },
        Mark::Group { .. } | Mark::Ahead | Mark::Earlier => Tone::Dim,
    }
}

/// `━━━━━━━━━────────`
fn progress_bar(done: u32, total: u32, paint: Paint) -> Text {
    let filled = if total == 0 { BAR_WIDTH } else { BAR_WIDTH * done as usize / total as usize };
    let (full, rest) = ("━".repeat(filled), "─".repeat(BAR_WIDTH - filled));
    text!("{}{}", paint.tone(Tone::Active, full), paint.dim(rest))
}

/// When it worked, as a bar between the run's start and its end; nothing for what was copied from another run.
fn when(row: &Row, at: &Columns, span: &Span) -> Text {
    let nothing = || Text::blanks(at.bars + 2);
    let Some(began) = row.began else { return nothing() };
    let ended = row.ended.unwrap_or(span.to);
    if ended < span.axis.from {
        return nothing();
    }
    let whole = span.whole_ms().max(1);
    let cell = |time: Time| {
        (u128::from(span.axis.ms(time).min(whole)) * at.bars as u128 / u128::from(whole)) as usize
    };
    let first = cell(began).min(at.bars - 1);
    let last = cell(ended).clamp(first + 1, at.bars);
    let tone = match row.mark {
        Mark::Token(status) => token_tone(status),
        Mark::Group { .. } | Mark::Ahead | Mark::Earlier => Tone::Dim,
    };
    let bar = at.paint.tone(tone, "━".repeat(last - first));
    text!("  {}{}{}", Text::blanks(first), bar, Text::blanks(at.bars - last))
}
