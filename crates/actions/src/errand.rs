//! One action of one task under way: what it is, what it may use, and how it speaks.

use wonder_core::cost::Spend;
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::job::{Job, Said, Stream};
use crate::leash::Leash;
use crate::redact::Redactor;
use crate::worker::Shared;

pub(crate) struct Errand<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) job: &'a Job,
    pub(crate) call: &'a ActionCall,
    /// What the action's texts see, its secrets included.
    pub(crate) scope: Value,
    pub(crate) leash: Leash<'a>,
    pub(crate) redactor: &'a Redactor,
    pub(crate) spend: Spend,
}

impl Errand<'_> {
    pub(crate) fn say(&self, stream: Stream, text: String) {
        let text = self.redactor.hide(text);
        self.job.sink.say(Said { step: self.call.step.clone(), stream, text });
    }

    /// The idempotency key of what it does.
    pub(crate) fn key(&self) -> String {
        self.job.order.key(&self.call.step)
    }
}
