//! Colours and marks. Everything can be read without colour: a mark or a word says it too.

use console::Style;
use wonder_core::TokenStatus;
use wonder_engine::Status;

use crate::text::Text;

/// What the spinner of a running node looks like, turn by turn.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Paints, or does not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paint {
    pub color: bool,
}

/// What a piece of text means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
    /// Wants attention, such as a gate.
    Attention,
    /// Going on.
    Active,
    Dim,
    Strong,
}

impl Paint {
    #[cfg(test)]
    pub(crate) const NONE: Paint = Paint { color: false };

    pub(crate) fn tone(self, tone: Tone, text: impl Into<Text>) -> Text {
        let text = text.into();
        if !self.color || text.is_empty() {
            return text;
        }
        let style = Style::new().force_styling(true);
        let style = match tone {
            Tone::Plain => return text,
            Tone::Good => style.green(),
            Tone::Bad => style.red(),
            Tone::Attention => style.yellow(),
            Tone::Active => style.cyan(),
            Tone::Dim => style.dim(),
            Tone::Strong => style.bold(),
        };
        text.styled(&style)
    }

    pub(crate) fn dim(self, text: impl Into<Text>) -> Text {
        self.tone(Tone::Dim, text)
    }

    pub(crate) fn strong(self, text: impl Into<Text>) -> Text {
        self.tone(Tone::Strong, text)
    }
}

/// The mark of a token; `turn` turns the spinner, without one the mark stands still.
pub(crate) fn token_mark(status: TokenStatus, turn: Option<usize>) -> &'static str {
    match status {
        TokenStatus::Pending => "○",
        TokenStatus::Dispatched | TokenStatus::WaitingForSubworkflow => match turn {
            Some(turn) => SPINNER[turn % SPINNER.len()],
            None => "●",
        },
        TokenStatus::Retrying => "↻",
        TokenStatus::Escalated | TokenStatus::WaitingForHuman => "?",
        TokenStatus::WaitingForEvent | TokenStatus::Sleeping => "◌",
        TokenStatus::WaitingForSiblings | TokenStatus::Completed => "✓",
        TokenStatus::Failed | TokenStatus::TimedOut => "✗",
        TokenStatus::Skipped => "-",
        TokenStatus::Cancelled => "×",
    }
}

pub(crate) fn token_tone(status: TokenStatus) -> Tone {
    match status {
        TokenStatus::Pending | TokenStatus::Skipped | TokenStatus::Cancelled => Tone::Dim,
        TokenStatus::Dispatched | TokenStatus::WaitingForSubworkflow => Tone::Active,
        TokenStatus::Retrying
        | TokenStatus::Escalated
        | TokenStatus::WaitingForHuman
        | TokenStatus::WaitingForEvent
        | TokenStatus::Sleeping => Tone::Attention,
        TokenStatus::WaitingForSiblings | TokenStatus::Completed => Tone::Good,
        TokenStatus::Failed | TokenStatus::TimedOut => Tone::Bad,
    }
}

pub(crate) fn run_mark(status: Status) -> &'static str {
    match status {
        Status::Queued => "○",
        Status::Running | Status::Cancelling => "●",
        Status::Waiting => "?",
        Status::Paused => "‖",
        Status::Completed => "✓",
        Status::Failed | Status::TimedOut | Status::Quarantined => "✗",
        Status::Cancelled => "×",
    }
}

pub(crate) fn run_tone(status: Status) -> Tone {
    match status {
        Status::Queued | Status::Cancelled => Tone::Dim,
        Status::Running => Tone::Active,
        Status::Waiting | Status::Paused | Status::Cancelling => Tone::Attention,
        Status::Completed => Tone::Good,
        Status::Failed | Status::TimedOut | Status::Quarantined => Tone::Bad,
    }
}

/// A status in the words of a sentence.
pub(crate) fn spoken(status: Status) -> &'static str {
    match status {
        Status::TimedOut => "timed out",
        other => other.as_str(),
    }
}
