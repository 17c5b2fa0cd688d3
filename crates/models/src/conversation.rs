//! Whether a conversation is one: every tool call is answered once, before anybody else speaks, and nothing is
//! answered that was not called. Providers refuse anything else; here it is found before anything is sent.

use std::borrow::Cow;
use std::collections::BTreeSet;

use wonder_lang::def::Name;

use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use crate::problem::Problem;

/// The conversation, with ids that are different from each other: providers that number their calls anew in each
/// reply would otherwise be refused by those that look at all of them.
pub(crate) fn checked(messages: &[Message]) -> Result<Cow<'_, [Message]>, Problem> {
    if messages.is_empty() {
        return Err(Problem::new(
            "messages",
            "there is nothing to ask: say a `prompt` or at least one message",
        ));
    }
    let mut checked = Cow::Borrowed(messages);
    let mut seen: BTreeSet<Name> = BTreeSet::new();
    let mut open: Vec<Open> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        if message.role != Role::Tool {
            all_answered(&open, &place)?;
            open.clear();
        }
        for (index, part) in message.content.iter().enumerate() {
            let here = format!("{place}.content[{index}]");
            let renamed = match part {
                Part::ToolCall(call) => called(call, &mut open, &mut seen, &here)?,
                Part::ToolResult(result) => answered(result, &mut open, &here)?,
                _ => None,
            };
            if let Some(id) = renamed {
                rename(&mut checked.to_mut()[at].content[index], id);
            }
        }
        if message.role == Role::User && !message.content.iter().any(says_something) {
            return Err(Problem::new(place, "says nothing: there is neither text nor an image in it"));
        }
    }
    all_answered(&open, "messages")?;
    Ok(checked)
}

/// A call that waits for its result.
struct Open {
    id: Name,
    tool: Name,
    /// The id it is sent with, if another call had this one before.
    sent_as: Option<Name>,
    answered: bool,
}

fn called(
    call: &ToolCall,
    open: &mut Vec<Open>,
    seen: &mut BTreeSet<Name>,
    place: &str,
) -> Result<Option<Name>, Problem> {
    if call.id.is_empty() || open.iter().any(|other| other.id == call.id) {
        let message = format!("the call of `{}` needs an id of its own, not `{}`", call.tool, call.id);
        return Err(Problem::new(place, message));
    }
    let sent_as = seen.contains(&call.id).then(|| {
        let free = (2..).map(|n| Name::from(format!("{}_{n}", call.id)));
        free.into_iter().find(|id| !seen.contains(id)).unwrap_or_else(|| call.id.clone())
    });
    seen.insert(sent_as.clone().unwrap_or_else(|| call.id.clone()));
    let (id, tool) = (call.id.clone(), call.tool.clone());
    open.push(Open { id, tool, sent_as: sent_as.clone(), answered: false });
    Ok(sent_as)
}

fn answered(result: &ToolResult, open: &mut [Open], place: &str) -> Result<Option<Name>, Problem> {
    match open.iter_mut().find(|call| call.id == result.id) {
        Some(call) if call.answered => {
            Err(Problem::new(place, format!("the call `{}` has a result already", result.id)))
        }
        Some(call) => {
            call.answered = true;
            Ok(call.sent_as.clone())
        }
        None => {
            let message = format!("answers the call `{}`, which the message before does not make", result.id);
            Err(Problem::new(place, message))
        }
    }
}

fn all_answered(open: &[Open], place: &str) -> Result<(), Problem> {
    match open.iter().find(|call| !call.answered) {
        None => Ok(()),
        Some(call) => {
            let message = format!("the call `{}` of `{}` has no result before this", call.id, call.tool);
            Err(Problem::new(place, message))
        }
    }
}

fn rename(part: &mut Part, id: Name) {
    match part {
        Part::ToolCall(call) => {
            // What the provider said of the call has its id in it.
            call.item = None;
            call.id = id;
        }
        Part::ToolResult(result) => result.id = id,
        _ => {}
    }
}

pub(crate) fn says_something(part: &Part) -> bool {
    match part {
        Part::Text { text, .. } => !text.trim().is_empty(),
        Part::Reasoning { .. } => false,
        Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => true,
    }
}
