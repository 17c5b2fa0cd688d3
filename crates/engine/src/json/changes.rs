//! What a run changed in how it goes on, as lines of a diff: `+` for what was added to its graph, `~` for what
//! goes on differently. For `show` and `show --graph`; the definition itself never changes.

use serde::Serialize;
use wonder_core::Time;
use wonder_core::command::Overrides;
use wonder_core::event::RunChange;
use wonder_core::graph::Mutation;

use super::brief;
use crate::run_tree::visit_label;
use crate::timeline::{Mutated, Timeline};

const REASON_CHARS_MAX: usize = 160;
const OVERRIDE_CHARS_MAX: usize = 60;

/// One change of `mutations` in JSON.
#[derive(Debug, Serialize)]
pub struct ChangeJson<'t> {
    event: u64,
    at: Time,
    /// The response, or `may_mutate`.
    change: &'static str,
    /// The node it is about, with its branch.
    node: Option<String>,
    token: Option<u64>,
    reason: &'t str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes_added: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transitions_added: Vec<Way>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overrides: Option<&'t Overrides>,
    text: String,
}

#[derive(Debug, Serialize)]
pub struct Way {
    from: String,
    to: String,
}

pub fn json(timeline: &Timeline) -> Vec<ChangeJson<'_>> {
    timeline.mutations.iter().map(|mutated| ChangeJson::of(timeline, mutated)).collect()
}

impl<'t> ChangeJson<'t> {
    fn of(timeline: &Timeline, mutated: &'t Mutated) -> ChangeJson<'t> {
        ChangeJson {
            event: mutated.seq,
            at: mutated.at,
            change: name(&mutated.what),
            node: whose(timeline, mutated),
            token: mutated.token.map(|token| token.0),
            reason: &mutated.reason,
            nodes_added: nodes(&mutated.what),
            transitions_added: ways(&mutated.what),
            overrides: mutated.overrides.as_ref(),
            text: own_lines(timeline, mutated).join("\n"),
        }
    }
}

/// One line for each thing that was added or goes on differently, in the order they came.
pub fn lines(timeline: &Timeline) -> Vec<String> {
    timeline.mutations.iter().flat_map(|mutated| own_lines(timeline, mutated)).collect()
}

fn own_lines(timeline: &Timeline, mutated: &Mutated) -> Vec<String> {
    let reason = brief(&mutated.reason, REASON_CHARS_MAX);
    let token = mutated.token.map_or(String::new(), |token| format!(", token {token}"));
    let why = format!("({}: {reason}{token}, event {})", name(&mutated.what), mutated.seq);
    let node = whose(timeline, mutated).unwrap_or_else(|| "the run".to_owned());
    match &mutated.what {
        RunChange::SwitchModel { model } => vec![format!("~ model of {node} is now {model} {why}")],
        RunChange::StricterPrompt => vec![format!("~ prompt of {node} is stricter {why}")],
        RunChange::Change => {
            let with = mutated.overrides.as_ref().map(overridden).filter(|parts| !parts.is_empty());
            let with = with.map_or("changed".to_owned(), |parts| format!("with {}", parts.join(", ")));
            vec![format!("~ {node} runs again {with} {why}")]
        }
        RunChange::Feedback => vec![format!("~ {node} goes back with feedback {why}")],
        RunChange::Downgrade => vec![format!("~ what has not started uses cheaper models {why}")],
        RunChange::Graph(Mutation::Validator { node, added, .. } | Mutation::Review { node, added }) => {
            vec![format!("+ node {added} behind {node} {why}")]
        }
        RunChange::Graph(Mutation::Nodes { nodes, transitions, .. }) => {
            let nodes = nodes.iter().map(|node| format!("+ node {}", node.reference));
            let ways = transitions.iter().map(|way| format!("+ transition {} → {}", way.from, way.to));
            // The reason is said once.
            let event = format!("(event {})", mutated.seq);
            let first = std::iter::once(why.as_str()).chain(std::iter::repeat(event.as_str()));
            nodes.chain(ways).zip(first).map(|(line, why)| format!("{line} {why}")).collect()
        }
    }
}

/// What the next attempt is given instead of what is written.
fn overridden(overrides: &Overrides) -> Vec<String> {
    let short = |text: &str| brief(text, OVERRIDE_CHARS_MAX);
    let mut parts = Vec::new();
    parts.extend(overrides.model.as_ref().map(|model| format!("model {model}")));
    parts.extend(overrides.system.as_ref().map(|system| format!("system \"{}\"", short(system))));
    parts.extend(overrides.tools.as_ref().map(|tools| {
        let names: Vec<&str> = tools.iter().map(|tool| &**tool).collect();
        format!("tools [{}]", names.join(", "))
    }));
    if !overrides.input.is_null() {
        parts.push(format!("input {}", short(&overrides.input.to_string())));
    }
    parts
}

/// The word that a file uses for it.
fn name(what: &RunChange) -> &'static str {
    match what {
        RunChange::SwitchModel { .. } => "switch_model",
        RunChange::StricterPrompt => "stricter_prompt",
        RunChange::Change => "change",
        RunChange::Feedback => "loop_with_feedback",
        RunChange::Downgrade => "downgrade_model",
        RunChange::Graph(Mutation::Validator { .. }) => "add_validator",
        RunChange::Graph(Mutation::Review { .. }) => "add_review",
        RunChange::Graph(Mutation::Nodes { .. }) => "may_mutate",
    }
}

fn whose(timeline: &Timeline, mutated: &Mutated) -> Option<String> {
    let visit = timeline.visits.get(&mutated.token?)?;
    Some(visit_label(timeline, visit))
}

fn nodes(what: &RunChange) -> Vec<String> {
    match what {
        RunChange::Graph(Mutation::Validator { added, .. } | Mutation::Review { added, .. }) => {
            vec![added.to_string()]
        }
        RunChange::Graph(Mutation::Nodes { nodes, .. }) => {
            nodes.iter().map(|node| node.reference.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

fn ways(what: &RunChange) -> Vec<Way> {
    match what {
        RunChange::Graph(Mutation::Validator { node, added, .. } | Mutation::Review { node, added }) => {
            vec![Way { from: node.to_string(), to: added.to_string() }]
        }
        RunChange::Graph(Mutation::Nodes { transitions, .. }) => {
            let way = |from: &str, to: &str| Way { from: from.to_owned(), to: to.to_owned() };
            transitions.iter().map(|found| way(found.from.as_str(), found.to.as_str())).collect()
        }
        _ => Vec::new(),
    }
}
