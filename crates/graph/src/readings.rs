//! What the texts of an action read. Whether each may is for the place that uses the action to say.

use crate::texts::{ActionText, TextKind};
use wonder_lang::def::{Name, Spot, Text};
use wonder_lang::expr::Read;

/// One path that one text of an action reads.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) read: Read,
    text: Name,
    spot: Spot,
    pub(super) kind: TextKind,
    prompt: Option<Name>,
    minds_absence: bool,
}

/// One path that a text reads, and where that text stands.
pub(super) struct Use<'t> {
    pub(super) read: &'t Read,
    pub(super) text: &'t str,
    pub(super) spot: Spot,
    pub(super) template: bool,
    /// The prompt it stands in, when that is named from elsewhere.
    pub(super) prompt: Option<&'t str>,
    /// The text deals with what may be absent.
    pub(super) minds_absence: bool,
}

impl<'t> Use<'t> {
    pub(super) fn expr(read: &'t Read, text: &'t Text, minds_absence: bool) -> Use<'t> {
        Use { read, text: &text.text, spot: text.spot, template: false, prompt: None, minds_absence }
    }
}

impl Reading {
    pub(super) fn as_use(&self) -> Use<'_> {
        Use {
            read: &self.read,
            text: &self.text,
            spot: self.spot,
            template: matches!(self.kind, TextKind::Template | TextKind::CalleeTemplate),
            prompt: self.prompt.as_deref(),
            minds_absence: self.minds_absence,
        }
    }
}

/// What the texts of an action read, path by path.
pub(super) fn of_texts(texts: &[ActionText]) -> Vec<Reading> {
    texts.iter().flat_map(of_text).collect()
}

fn of_text(text: &ActionText) -> impl Iterator<Item = Reading> {
    text.reads.iter().map(|read| Reading {
        read: read.clone(),
        text: text.text.text.clone(),
        spot: text.prompt.as_ref().map_or(text.text.spot, |name| name.spot),
        kind: text.kind,
        prompt: text.prompt.as_ref().map(|name| name.text.clone()),
        minds_absence: text.minds_absence,
    })
}
