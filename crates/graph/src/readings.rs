//! What the texts of an action read. Whether each may is for the place that uses the action to say.

use crate::parsed::Parsed;
use crate::texts::{self, TextKind};
use wonder_lang::def::{ActionDef, Bundle, Implementation, LlmCall, Name, Spot, Text};
use wonder_lang::expr::Read;

/// One path that one text of an action reads.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) read: Read,
    text: Name,
    spot: Spot,
    pub(super) kind: TextKind,
    prompt: Option<Name>,
}

/// One path that a text reads, and where that text stands.
pub(super) struct Use<'t> {
    pub(super) read: &'t Read,
    pub(super) text: &'t str,
    pub(super) spot: Spot,
    pub(super) template: bool,
    /// The prompt it stands in, when that is named from elsewhere.
    pub(super) prompt: Option<&'t str>,
}

impl<'t> Use<'t> {
    pub(super) fn expr(read: &'t Read, text: &'t Text) -> Use<'t> {
        Use { read, text: &text.text, spot: text.spot, template: false, prompt: None }
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
        }
    }
}

/// What the texts of an action read, those of its prompt included. A text that does not parse reads nothing.
pub(super) fn of_action(def: &ActionDef, bundle: &Bundle, parsed: &mut Parsed) -> Vec<Reading> {
    let mut found = Vec::new();
    texts::each(def, &mut |kind, text| of_text(kind, text, None, parsed, &mut found));
    let Implementation::LlmCall(LlmCall { prompt_spec: Some(name), .. }) = &def.implementation else {
        return found;
    };
    if let Some(prompt) = bundle.prompts.get(&name.text) {
        for text in prompt.system.iter().chain([&prompt.template]) {
            of_text(TextKind::Template, text, Some(name), parsed, &mut found);
        }
    }
    found
}

fn of_text(
    kind: TextKind,
    text: &Text,
    prompt: Option<&Text>,
    parsed: &mut Parsed,
    found: &mut Vec<Reading>,
) {
    let mut add = |reads: &[Read]| {
        found.extend(reads.iter().map(|read| Reading {
            read: read.clone(),
            text: text.text.clone(),
            spot: prompt.map_or(text.spot, |name| name.spot),
            kind,
            prompt: prompt.map(|name| name.text.clone()),
        }));
    };
    match kind {
        TextKind::Template | TextKind::CalleeTemplate => {
            parsed.template(text).iter().for_each(|template| add(template.reads()));
        }
        TextKind::Expr | TextKind::Callee => parsed.expr(text).iter().for_each(|expr| add(expr.reads())),
    }
}
