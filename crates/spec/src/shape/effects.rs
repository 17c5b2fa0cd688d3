//! No key without effect: every key of the table is refused for now, describes something for people, or is read by
//! a crate that acts on it.

use std::path::{Path, PathBuf};

use super::{Form, Key, Shape, all_shapes};

/// Keys that are there for people and programs that read definitions, and change nothing in a run.
const DESCRIBE: [&str; 6] = ["id", "description", "tags", "created_at", "updated_at", "examples"];

/// Keys that the reader itself acts on: nothing of them is left behind it.
const READERS_OWN: [&str; 14] = [
    "wonder",
    "kind",
    "next",
    "ordinal",
    "steps",
    "nodes",
    "actions",
    "execution",
    "outcomes",
    "implementation",
    "file",
    "task_version",
    "action_version",
    "agent",
];

/// Objects that the reader writes out as others: their keys are read in `build/agent.rs`.
const WRITTEN_OUT: [&str; 2] = ["agent", "compact"];

/// Keys whose stored field has another name.
const STORED_AS: [(&str, &str); 23] = [
    ("as", "item_name"),
    ("if", "test"),
    ("else", "otherwise"),
    ("for", "duration"),
    ("ref", "reference"),
    ("do", "response"),
    ("usd", "usd_micros"),
    ("cost_usd", "usd_micros"),
    ("wall", "wall_ms"),
    ("warn_at", "warn_at_permille"),
    ("delay", "delay_ms"),
    ("timeout", "timeout_ms"),
    ("wait", "wait_ms"),
    ("remind_every", "remind_every_ms"),
    ("initial_delay", "initial_delay_ms"),
    ("max_delay", "max_delay_ms"),
    ("m_of_n", "MOfN"),
    ("add_validator", "AddValidator"),
    ("loop_with_feedback", "LoopWithFeedback"),
    ("stricter_prompt", "StricterPrompt"),
    ("goto", "Goto"),
    ("skip", "Skip"),
    ("change", "Change"),
];

/// The kinds of action are variants of what performs them.
const KINDS: [(&str, &str); 14] = [
    ("mcp_tool", "McpTool"),
    ("llm_call", "LlmCall"),
    ("http_request", "HttpRequest"),
    ("shell", "Shell"),
    ("update_context", "UpdateContext"),
    ("assert", "Assert"),
    ("artifact_write", "ArtifactWrite"),
    ("artifact_read", "ArtifactRead"),
    ("human_gate", "HumanGate"),
    ("workflow_call", "WorkflowCall"),
    ("wait_event", "WaitEvent"),
    ("sleep", "Sleep"),
    ("mock", "Mock"),
    ("backoff", "kind"),
];

/// The code that acts: not the reader, and not the definitions themselves.
fn acting_code() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // What tokens cost is reckoned beside the definitions.
    let mut code = std::fs::read_to_string(crates.join("lang/src/cost.rs")).unwrap();
    for name in ["graph", "core", "actions", "host", "engine"] {
        let mut folders: Vec<PathBuf> = vec![crates.join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.to_string_lossy().contains("tests") {
                    code.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
    }
    code
}

/// Shapes that can be reached without a key that is refused.
fn reached() -> Vec<&'static Shape> {
    fn visit(form: &'static Form, found: &mut Vec<&'static Shape>) {
        match form {
            Form::List(inner) | Form::OneOrList(inner) | Form::Map(inner) | Form::NameMap(inner) => {
                visit(inner, found)
            }
            Form::Either(forms) => forms.iter().for_each(|form| visit(form, found)),
            Form::Object(shape) if !found.iter().any(|known| known.name == shape.name) => {
                found.push(shape);
                shape.all_keys().filter(|key| !key.not_yet).for_each(|key| visit(&key.form, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for document in
        all_shapes().into_iter().filter(|shape| shape.name.ends_with("_document") || shape.name == "workflow")
    {
        found.push(document);
        document.all_keys().filter(|key| !key.not_yet).for_each(|key| visit(&key.form, &mut found));
    }
    found
}

fn is_read(key: &Key, code: &str) -> bool {
    let stored = STORED_AS.iter().chain(&KINDS).find(|(name, _)| *name == key.name);
    let name = stored.map_or(key.name, |(_, stored)| *stored);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        // A field that is read, or a variant that is matched: not a word in a sentence.
        matches!(before, Some('.' | ':' | '{' | ' ' | '&'))
            && !after.is_some_and(is_part)
            && after != Some('`')
    })
}

#[test]
fn every_key_has_an_effect_or_is_refused() {
    let code = acting_code();
    let mut idle = Vec::new();
    for shape in reached().into_iter().filter(|shape| !WRITTEN_OUT.contains(&shape.name)) {
        for key in shape.all_keys().filter(|key| !key.not_yet) {
            let known = DESCRIBE.contains(&key.name) || READERS_OWN.contains(&key.name);
            if !known && !is_read(key, &code) {
                idle.push(format!("{}.{}", shape.name, key.name));
            }
        }
    }
    assert!(idle.is_empty(), "read and without effect: {}", idle.join(", "));
}

#[test]
fn every_key_of_an_agent_is_written_out() {
    let code = include_str!("../build/agent.rs");
    let shapes = all_shapes().into_iter().filter(|shape| WRITTEN_OUT.contains(&shape.name));
    let keys: Vec<&Key> = shapes.flat_map(Shape::all_keys).collect();
    assert!(keys.len() > 10, "{}", keys.len());
    for key in keys {
        assert!(code.contains(&format!("\"{}\"", key.name)), "`{}` is read and written nowhere", key.name);
    }
}

#[test]
fn what_has_no_effect_yet_is_refused() {
    let refused: Vec<&str> = all_shapes()
        .into_iter()
        .flat_map(Shape::all_keys)
        .filter(|key| key.not_yet)
        .map(|key| key.name)
        .collect();
    for key in ["triggers", "context_tables", "library_id"] {
        assert!(refused.contains(&key), "{key} is accepted and does nothing");
    }
}
