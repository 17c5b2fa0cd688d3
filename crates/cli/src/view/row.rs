//! One row of the tree as one line: mark, node, time, cost, and what is to be said about it.

use console::measure_text_width;
use wonder_core::Time;
use wonder_engine::timeline::Axis;

use super::paint::{Paint, Tone, token_mark, token_tone};
use super::table::{fit, pad, pad_left};
use super::tree::{Mark, Row};
use super::words::{brief, dollars, duration};

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
        let label = tokens().map(|row| measure_text_width(&label(row))).max().unwrap_or(0);
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

pub(crate) fn line(row: &Row, at: &Columns, span: Option<&Span>) -> String {
    let text = match row.mark {
        Mark::Ahead => {
            let name = fit(&format!("· {}", row.label), Some(at.label)).into_owned();
            at.paint.dim(&format!(
                "{} {}  {}",
                pad(&name, at.label),
                " ".repeat(TIME_WIDTH + at.cost),
                row.note
            ))
        }
        Mark::Token(status) => {
            let mark = at.paint.tone(token_tone(status), token_mark(status, at.turn));
            let quiet = matches!(token_tone(status), Tone::Dim);
            let tone = if quiet { Tone::Dim } else { Tone::Plain };
            let name = format!("{} {}", mark, at.paint.tone(tone, &row.label));
            let name = format!("{}{name}{}", indent(row), at.paint.dim(&item(row)));
            let name = fit(&name, Some(at.label)).into_owned();
            let time = row.took_ms.map_or(String::new(), duration);
            let cost = if row.usd_micros > 0 { dollars(row.usd_micros) } else { String::new() };
            let bar = span.filter(|_| at.bars > 0).map(|span| when(row, at, span)).unwrap_or_default();
            let note = at.paint.tone(note_tone(row.mark), &brief(&row.note, NOTE_CHARS_MAX));
            format!(
                "{} {}{}{bar}  {note}",
                pad(&name, at.label),
                pad_left(&time, TIME_WIDTH),
                at.paint.dim(&pad_left(&cost, at.cost)),
            )
        }
        Mark::Group { done, total, closed, .. } => {
            let bar =
                if closed { String::new() } else { format!(" {}", progress_bar(done, total, at.paint)) };
            let note = if row.note.is_empty() { String::new() } else { format!(" · {}", row.note) };
            let text = format!("{}{bar} {done}/{total}{note}", row.label);
            format!("{}{}", indent(row), if closed { at.paint.dim(&text) } else { text })
        }
    };
    fit(text.trim_end(), Some(at.width)).into_owned()
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
        Mark::Group { .. } | Mark::Ahead => Tone::Dim,
    }
}

/// `━━━━━━━━━────────`
fn progress_bar(done: u32, total: u32, paint: Paint) -> String {
    let filled = if total == 0 { BAR_WIDTH } else { BAR_WIDTH * done as usize / total as usize };
    let (full, rest) = ("━".repeat(filled), "─".repeat(BAR_WIDTH - filled));
    format!("{}{}", paint.tone(Tone::Active, &full), paint.dim(&rest))
}

/// When it worked, as a bar between the run's start and its end; nothing for what was copied from another run.
fn when(row: &Row, at: &Columns, span: &Span) -> String {
    let nothing = || " ".repeat(at.bars + 2);
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
        Mark::Group { .. } | Mark::Ahead => Tone::Dim,
    };
    let bar = at.paint.tone(tone, &"━".repeat(last - first));
    format!("  {}{bar}{}", " ".repeat(first), " ".repeat(at.bars - last))
}
