//! Whether the names in a file of cases are known to the workflow that it tests: a mock of a node that is not there
//! would never be used, and nobody would notice.

use std::collections::BTreeSet;
use std::sync::Arc;

use wonder_core::def::{Callee, Implementation};
use wonder_core::graph::names::{DagPart, dag_part};
use wonder_core::graph::{Graph, Node};
use wonder_core::problem::nearest;

use super::{Part, Place, TestFile, Wanted, Written};
use crate::codes;
use crate::diagnostics::Diagnostic;

pub(super) fn check(file: &mut TestFile, graphs: &[Arc<Graph>]) {
    let root = match &file.start {
        None => graphs.first(),
        Some(start) => graphs.iter().find(|graph| graph.name == *start),
    };
    let mut problems = Vec::new();
    for name in &file.names {
        problems.extend(problem(name, root.map(|graph| &**graph), graphs));
    }
    file.problems.append(&mut problems);
}

fn problem(name: &Written, root: Option<&Graph>, graphs: &[Arc<Graph>]) -> Option<Diagnostic> {
    let text = &*name.text;
    match name.what {
        Wanted::Workflow => None,
        Wanted::Start => {
            let known: Vec<&str> = graphs.iter().map(|graph| &*graph.name).collect();
            unknown(name, "workflow", &known, codes::UNKNOWN_WORKFLOW)
        }
        Wanted::Model => {
            let known: BTreeSet<&str> =
                graphs.iter().flat_map(|graph| graph.models.keys()).map(|name| &**name).collect();
            unknown(name, "model profile", &known.into_iter().collect::<Vec<_>>(), codes::UNKNOWN_WORD)
        }
        Wanted::Tool => {
            let known: BTreeSet<&str> = graphs.iter().flat_map(|graph| written_nodes(graph)).collect();
            unknown(
                name,
                "node of a called workflow",
                &known.into_iter().collect::<Vec<_>>(),
                codes::UNKNOWN_WORD,
            )
        }
        Wanted::Mock | Wanted::Node => {
            let Some(place) = Place::parse(text) else {
                let message = format!("`{text}` is no way to a node");
                let problem = Diagnostic::error(codes::BAD_NAME, name.span, message);
                return Some(problem.label("expected such as `build`, `fix/think` or `judge[1]`"));
            };
            misplaced(name, &place.0, root?, graphs)
        }
    }
}

fn unknown(
    name: &Written,
    what: &str,
    known: &[&str],
    code: wonder_core::problem::Code,
) -> Option<Diagnostic> {
    let text = &*name.text;
    if known.contains(&text) {
        return None;
    }
    let problem = Diagnostic::error(code, name.span, format!("there is no {what} `{text}`"));
    Some(problem.label("not in the workflow").help(suggestion(text, known)))
}

fn suggestion(text: &str, known: &[&str]) -> String {
    match (nearest(text, known.iter().copied()), known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "there is none".to_owned(),
        (None, known) => {
            let some: Vec<String> = known.iter().take(12).map(|name| format!("`{name}`")).collect();
            format!("known are {}{}", some.join(", "), if known.len() > 12 { " and others" } else { "" })
        }
    }
}

/// The names that the file has for the nodes of a graph.
fn written_nodes(graph: &Graph) -> impl Iterator<Item = &str> {
    let whole = |node: &&Node| dag_part(&node.reference).1 == DagPart::Whole;
    graph.nodes.iter().filter(whole).map(|node| &*node.reference)
}

/// Follows the way from the first workflow through those it calls.
fn misplaced(name: &Written, parts: &[Part], graph: &Graph, graphs: &[Arc<Graph>]) -> Option<Diagnostic> {
    let (part, rest) = parts.split_first()?;
    let of = |node: &&Node| dag_part(&node.reference) == (&*part.name, work_part(graph, &part.name));
    let Some(node) = graph.nodes.iter().find(of) else {
        // A run may add nodes that no file has.
        if graph.nodes.iter().any(|node| node.may_mutate.is_some()) {
            return None;
        }
        let known: Vec<&str> = written_nodes(graph).collect();
        let message = format!("`{}` has no node `{}`", graph.name, part.name);
        let problem = Diagnostic::error(codes::UNKNOWN_WORD, name.span, message);
        return Some(problem.label("no such node").help(suggestion(&part.name, &known)));
    };
    let task = node.task()?;
    let first = task.steps.first().map(|step| &step.action.def.implementation);
    match (first, rest) {
        (Some(Implementation::WorkflowCall(call)), [_, ..]) => match &call.workflow {
            Callee::Named(workflow) => {
                let callee = graphs.iter().find(|graph| graph.name == workflow.text)?;
                misplaced(name, rest, callee, graphs)
            }
            Callee::FromContext { .. } => None,
        },
        (Some(first), []) if name.what == Wanted::Mock => unmockable(name, first),
        (_, []) => None,
        (_, [step, more @ ..]) => {
            let known: Vec<&str> = task.steps.iter().map(|step| &*step.reference).collect();
            if more.is_empty() && known.contains(&&*step.name) {
                return None;
            }
            let message =
                format!("the node `{}` calls no workflow, and has no step `{}`", part.name, step.name);
            let problem = Diagnostic::error(codes::UNKNOWN_WORD, name.span, message);
            Some(problem.label("leads nowhere").help(suggestion(&step.name, &known)))
        }
    }
}

/// The part of a dag's node that does its work.
fn work_part(graph: &Graph, name: &str) -> DagPart {
    let has_items = graph.nodes.iter().any(|node| dag_part(&node.reference) == (name, DagPart::Items));
    if has_items { DagPart::Items } else { DagPart::Whole }
}

/// What does not reach out needs no mock, and is not to be replaced by one.
fn unmockable(name: &Written, action: &Implementation) -> Option<Diagnostic> {
    let help = match action {
        Implementation::HumanGate(_) => format!("answer it: `gates: {{{}: {{answer: ...}}}}`", name.text),
        Implementation::WaitEvent(wait) => {
            format!("let the event come: `signals: [{{event: {}, payload: ...}}]`", wait.event.text)
        }
        Implementation::Sleep(_) => "leave it out: time is virtual, and no sleep takes any".to_owned(),
        Implementation::UpdateContext(_) | Implementation::Assert(_) => {
            "leave it out: it reaches nothing, so it does in a test what it does in a run".to_owned()
        }
        _ => return None,
    };
    let message = format!("`{}` is a `{}`, which has no mock", name.text, action.kind());
    let problem = Diagnostic::error(codes::CHOICE, name.span, message);
    Some(problem.label("needs no mock").help(help))
}
