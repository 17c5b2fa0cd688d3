//! One try of one action: what it is, what it may use, and how it speaks.

use std::path::Path;

use wonder_core::command::TaskOrder;
use wonder_core::cost::Spend;
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::deadline::Deadline;
use crate::job::{Job, OutputLine, Stream, TextDelta};
use crate::redact::Redactor;
use crate::stream::{StreamRedactor, pieces};

/// What a handler is given.
#[derive(Debug)]
pub struct ActionContext<'a> {
    pub(crate) job: &'a Job,
    pub(crate) redactor: &'a Redactor,
    pub call: &'a ActionCall,
    /// What the action's texts see, its secrets included.
    pub scope: &'a Value,
    /// When to stop.
    pub deadline: Deadline<'a>,
    /// How many tries the token has made before, in this attempt and in earlier ones.
    pub number: u32,
    /// What this try has used. It counts however the try ends.
    pub spend: Spend,
    pub(crate) stream: StreamRedactor<'a>,
}

impl ActionContext<'_> {
    pub fn order(&self) -> &TaskOrder {
        &self.job.order
    }

    /// Where relative paths and commands start.
    pub fn workdir(&self) -> &Path {
        &self.job.workdir
    }

    /// The idempotency key of what it does.
    pub fn key(&self) -> String {
        self.job.order.key(&self.call.step, self.call.number)
    }

    /// A line for people to read and to be kept, without secrets.
    pub fn line(&self, stream: Stream, text: String) {
        let text = self.hide(text);
        self.job.sink.line(OutputLine { step: self.call.step.clone(), stream, text });
    }

    /// A piece of text as it comes, for whoever watches. It is not kept, it may be dropped, and it never
    /// waits. What may be the beginning of a secret is shown when the next piece tells that it is none.
    pub fn delta(&mut self, text: &str) {
        let text = self.stream.push(text);
        self.send_deltas(&text);
    }

    /// No more text comes: what was held back is shown.
    pub(crate) fn finish_stream(&mut self) {
        let text = self.stream.finish();
        self.send_deltas(&text);
    }

    fn send_deltas(&self, text: &str) {
        for piece in pieces(text) {
            self.job.sink.delta(TextDelta { step: self.call.step.clone(), text: piece.to_owned() });
        }
    }

    /// The text with every known secret in it replaced.
    pub fn hide(&self, text: String) -> String {
        self.redactor.hide(text)
    }
}
