//! One try of one action: what it is, what it may use, and how it speaks.

use std::path::Path;
use std::sync::Arc;

use wonder_core::command::TaskOrder;
use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::artifacts::TaskArtifacts;
use crate::deadline::Deadline;
use crate::job::{Job, OutputLine, Sink, Stream, TextDelta};
use crate::secrets::KnownSecrets;
use crate::stream::{StreamRedactor, pieces};

/// What a handler is given.
#[derive(Debug)]
pub struct ActionContext<'a> {
    pub(crate) job: &'a Job,
    pub(crate) secrets: &'a Arc<KnownSecrets>,
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
    pub(crate) artifacts: TaskArtifacts<'a>,
}

impl ActionContext<'_> {
    pub fn order(&self) -> &TaskOrder {
        &self.job.order
    }

    /// Where relative paths and commands start.
    pub fn workdir(&self) -> &Path {
        &self.job.workdir
    }

    /// What a shared server needs to know of it.
    pub(crate) fn caller(&self) -> Caller<'_> {
        let sink = Some((&*self.job.sink, &self.call.step));
        Caller { secrets: self.secrets, deadline: self.deadline, workdir: self.workdir(), sink }
    }

    /// The idempotency key of what it does.
    pub fn key(&self) -> String {
        self.job.order.key(&self.call.step, self.call.number)
    }

    /// A line for people to read and to be kept, without secrets.
    pub fn line(&self, stream: Stream, text: String) {
        self.line_without_secrets(stream, self.hide(text));
    }

    pub(crate) fn line_without_secrets(&self, stream: Stream, text: String) {
        self.job.sink.line(OutputLine { step: self.call.step.clone(), stream, text });
    }

    /// For whoever asks why it takes so long; None: it goes on.
    pub(crate) fn waits_for_rate(&self, profile: Option<&Name>) {
        self.job.sink.waits_for_rate(profile);
    }

    /// A piece of text as it comes, for whoever watches. It is not kept, it may be dropped, and it never
    /// waits. What may be the beginning of a secret is shown when the next piece tells that it is none.
    pub fn delta(&mut self, text: &str) {
        let text = self.stream.push(text.as_bytes());
        self.send_deltas(&text);
    }

    /// No more text comes: what was held back is shown.
    pub(crate) fn finish_stream(&mut self) {
        let text = self.stream.finish();
        self.send_deltas(&text);
    }

    fn send_deltas(&self, text: &[u8]) {
        for piece in pieces(&String::from_utf8_lossy(text)) {
            let (step, text) = (self.call.step.clone(), piece.to_owned());
            self.job.sink.delta(TextDelta { step, tries_before: self.number, text });
        }
    }

    /// A secret by its name, which is hidden from now on wherever it comes from.
    pub(crate) fn secret(&self, name: &str) -> Option<String> {
        self.secrets.find(name)
    }

    /// From now on this is hidden wherever it comes from.
    pub(crate) fn learn_secret(&self, value: &str) {
        self.secrets.learn(vec![value.to_owned()]);
    }

    /// The text with every known secret in it replaced. A text is cut after that, never before.
    pub fn hide(&self, text: String) -> String {
        self.secrets.redactor().hide(text)
    }
}

/// Whoever needs a shared server: what it may know, how long it waits, and where it hears of what happens.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) secrets: &'a Arc<KnownSecrets>,
    pub(crate) deadline: Deadline<'a>,
    pub(crate) workdir: &'a Path,
    pub(crate) sink: Option<(&'a dyn Sink, &'a Name)>,
}

impl Caller<'_> {
    /// A line for people to read and to be kept, without secrets.
    pub(crate) fn line(&self, stream: Stream, text: String) {
        if let Some((sink, step)) = self.sink {
            let text = self.secrets.redactor().hide(text);
            sink.line(OutputLine { step: step.clone(), stream, text });
        }
    }
}
