//! What a person sees while a run goes on: a tree that is redrawn in place on a terminal, lines otherwise,
//! nothing at all for programs.

use std::time::{Duration, Instant};

use wonder_core::Time;
use wonder_engine::{Follow, GateView, TextPiece, Updates};

use crate::screen::{Screen, now};
use crate::text::{Text, text};
use crate::view::frame::{Canvas, Output, frame};
use crate::view::paint::Paint;
use crate::view::plain::Narrator;
use crate::view::tree::Background;
use wonder_engine::run_tree::RunTree;

/// Fifteen frames a second are enough to look alive.
const FRAME: Duration = Duration::from_millis(67);
/// A frame may take this share of the time until the next: large runs are drawn less often.
const SHARE: u32 = 20;
const SPINNER_MS: i64 = 100;
/// How long an engine may hold a question for news, and how much it may answer at once.
const FOLLOW_MS: u64 = 10_000;
const FOLLOW_MAX: u32 = 5_000;

#[derive(Debug)]
pub(crate) enum Display {
    Silent,
    Plain { narrator: Box<Narrator>, logs: u64 },
    Live(Box<Live>),
}

impl Display {
    /// `since`: what happened before is known to the person already.
    pub(crate) fn new(run: &str, since: Option<Time>, background: Background, screen: &Screen) -> Display {
        if screen.json {
            Display::Silent
        } else if screen.live {
            Display::Live(Box::new(Live::new(run, background, screen.err)))
        } else {
            Display::Plain { narrator: Box::new(Narrator::new(run, since, screen.err)), logs: 0 }
        }
    }

    /// What to ask for next; nothing if nobody looks.
    pub(crate) fn question(&self) -> Option<Follow> {
        let (run_tree, logs) = match self {
            Display::Silent => return None,
            Display::Plain { narrator, logs } => (&narrator.run_tree, *logs),
            Display::Live(live) => (&live.run_tree, live.logs),
        };
        Some(Follow {
            events_after: run_tree.positions(),
            logs_after: Some((run_tree.root.clone(), logs)),
            wait_ms: FOLLOW_MS,
            limit: Some(FOLLOW_MAX),
            ..Follow::default()
        })
    }

    pub(crate) fn learn(&mut self, updates: &Updates, screen: &Screen) {
        let last = updates.logs.iter().map(|line| line.number).max().unwrap_or(0);
        match self {
            Display::Silent => {}
            Display::Plain { narrator, logs } => {
                *logs = last.max(*logs);
                narrator.lines(updates).into_iter().for_each(|line| screen.say(line));
            }
            Display::Live(live) => {
                live.logs = last.max(live.logs);
                updates.events.iter().for_each(|(run, event)| live.run_tree.learn(run, event));
                updates.logs.iter().for_each(|line| live.output.push(line));
            }
        }
    }

    /// Whether text is to be listened to as it comes; else a model's text is told when all of it is there.
    pub(crate) fn listens(&self) -> bool {
        matches!(self, Display::Live(_))
    }

    /// Text of models as it comes. The first of it is drawn at once.
    pub(crate) fn hear(&mut self, pieces: &[TextPiece], screen: &Screen) {
        let Display::Live(live) = self else { return };
        pieces.iter().for_each(|piece| live.output.streaming.hear(piece));
        if !pieces.is_empty() && live.drawn_at.elapsed() >= FRAME / 2 {
            live.draw(now(), screen);
        }
    }

    /// Gates that are open, of the run and of those it called, the oldest first.
    pub(crate) fn open_gates(&self) -> Vec<GateView> {
        let Display::Live(live) = self else { return Vec::new() };
        let tree = &live.run_tree;
        let mut open: Vec<GateView> = tree
            .runs
            .iter()
            .flat_map(|(run, timeline)| GateView::open_in(run, &tree.root, timeline))
            .collect();
        open.sort_by_key(|gate| gate.opened_at);
        open
    }

    /// What is asked below the tree, as it is now.
    pub(crate) fn ask(&mut self, question: Vec<Text>, screen: &Screen) {
        let Display::Live(live) = self else { return };
        if live.question != question {
            live.question = question;
            live.not_before = Instant::now();
            live.draw(now(), screen);
        }
    }

    /// Somebody else has the terminal: nothing is drawn until it is given back, and then below what they left.
    pub(crate) fn give_away(&mut self, away: bool) {
        if let Display::Live(live) = self {
            live.away = away;
            live.drawn.clear();
        }
    }

    /// How often it wants to be drawn anew.
    pub(crate) fn period(&self) -> Duration {
        if matches!(self, Display::Live(_)) { FRAME } else { Duration::from_secs(3_600) }
    }

    pub(crate) fn tick(&mut self, screen: &Screen) {
        if let Display::Live(live) = self {
            live.draw(now(), screen);
        }
    }

    /// The last frame stays on the screen.
    pub(crate) fn finish(&mut self, screen: &Screen) {
        if let Display::Live(live) = self {
            live.finish(now(), screen);
        }
    }
}

/// A tree on a terminal.
#[derive(Debug)]
pub(crate) struct Live {
    run_tree: RunTree,
    background: Background,
    output: Output,
    logs: u64,
    paint: Paint,
    /// What is on the screen.
    drawn: Vec<Text>,
    not_before: Instant,
    drawn_at: Instant,
    /// Below the tree.
    question: Vec<Text>,
    /// Somebody else has the terminal.
    away: bool,
}

impl Live {
    fn new(run: &str, background: Background, paint: Paint) -> Live {
        Live {
            run_tree: RunTree::new(run),
            background,
            output: Output::default(),
            logs: 0,
            paint,
            drawn: Vec::new(),
            not_before: Instant::now(),
            drawn_at: Instant::now(),
            question: Vec::new(),
            away: false,
        }
    }

    fn draw(&mut self, at: Time, screen: &Screen) {
        let begun = Instant::now();
        if self.away || begun < self.not_before || self.run_tree.root().seq == 0 {
            return;
        }
        let turn = usize::try_from(at.0 / SPINNER_MS).unwrap_or(0);
        self.put((at, Some(turn)), screen);
        self.drawn_at = begun;
        self.not_before = begun + begun.elapsed() * SHARE;
    }

    fn finish(&mut self, at: Time, screen: &Screen) {
        self.question.clear();
        if self.run_tree.root().seq > 0 {
            self.put((at, None), screen);
        }
    }

    fn put(&mut self, (now, turn): (Time, Option<usize>), screen: &Screen) {
        let (height, width) = screen.size();
        // A line that fills the screen would make the terminal wrap: one column stays free.
        let width = width.saturating_sub(1).max(20);
        // What is asked comes first: the tree has what room it leaves.
        let question = &self.question[self.question.len().saturating_sub(height.saturating_sub(4))..];
        let height = height.saturating_sub(question.len()).max(4);
        let canvas = Canvas { width, height, now, turn, paint: self.paint };
        self.output.streaming.forget_ended(&self.run_tree);
        let mut lines = frame(&self.run_tree, &self.background, &self.output, canvas);
        lines.extend(question.iter().map(|line| line.fit(Some(width))));
        if lines == self.drawn {
            return;
        }
        screen.draw(&redraw(&self.drawn, &lines, width + 1));
        self.drawn = lines;
    }
}

/// From one frame to the next in one piece: back to its first line, each line over the old one, what is left
/// of the old frame erased. Nothing is blank in between, so nothing flickers; terminals that know
/// synchronised updates show the whole at once.
fn redraw(old: &[Text], new: &[Text], width: usize) -> Text {
    // A terminal that was made narrower has wrapped what was drawn wider.
    let rows = |line: &Text| line.width().max(1).div_ceil(width);
    let up: usize = old.iter().map(rows).sum();
    let back = if up > 0 { text!("\x1b[{}A\r", up) } else { Text::EMPTY };
    let lines = Text::joined(new.iter().map(|line| text!("{}\x1b[K\n", line)), "");
    text!("\x1b[?2026h{}{}\x1b[J\x1b[?2026l", back, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_one_before() {
        let lines = |texts: &[&str]| texts.iter().map(|text| Text::from(*text)).collect::<Vec<_>>();
        assert_eq!(redraw(&[], &lines(&["a"]), 80).as_str(), "\x1b[?2026ha\x1b[K\n\x1b[J\x1b[?2026l");
        let next = redraw(&lines(&["a", "a line of twenty-four ch"]), &lines(&["b"]), 12);
        assert_eq!(next.as_str(), "\x1b[?2026h\x1b[3A\rb\x1b[K\n\x1b[J\x1b[?2026l");
    }
}
