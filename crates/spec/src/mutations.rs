//! What a planning node returns, as people write it: nodes and transitions in the form of a file, read into
//! the stored form that the core takes. Whether they fit the workflow is the core's to say.

use serde::{Deserialize, Serialize};
use wonder_core::Value;
use wonder_core::def::{Inline, NodeDef, TransitionDef};
use wonder_core::problem::Severity;

use crate::build::{Build, Built, DocumentKind};
use crate::check::Checker;
use crate::diagnostics::{Diagnostic, Source};
use crate::place::Span;
use crate::tree::{self, FILE_BYTES_MAX};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default)]
    nodes: Vec<NodeDef>,
    #[serde(default)]
    transitions: Vec<TransitionDef>,
}

/// Reads `_mutations`: as a file would have it (`budget: {usd: 0.5}`, `timeout: 5s`, `next`, nodes by ref),
/// or as it is stored. Gives the stored form; the error says all that is wrong with it.
pub fn mutations(asked: &Value) -> Result<Value, String> {
    let json = asked.to_json();
    if json.is_object() && serde_json::from_value::<Stored>(json.clone()).is_ok() {
        return Ok(asked.clone());
    }
    let stored =
        read(json).map_err(|why| format!("_mutations does not read as nodes and transitions: {why}"))?;
    let json = serde_json::to_value(stored).map_err(|error| error.to_string())?;
    Ok(Value::from_json(&json))
}

fn read(asked: serde_json::Value) -> Result<Stored, String> {
    let serde_json::Value::Object(mut document) = asked else {
        return Err("expected a map with `nodes` and `transitions`".to_owned());
    };
    if let Some(other) = document.keys().find(|key| !matches!(key.as_str(), "nodes" | "transitions")) {
        return Err(format!("unknown key `{other}`; known are `nodes` and `transitions`"));
    }
    document.insert("name".to_owned(), "plan".into());
    document.entry("nodes").or_insert_with(|| serde_json::json!({}));
    let source = serde_json::Value::from(document).to_string();
    if source.len() > FILE_BYTES_MAX {
        return Err(format!("it has {} bytes; at most {FILE_BYTES_MAX} are read", source.len()));
    }
    let prepared = tree::prepare(&source);
    let forest = tree::parse(&source, &prepared);
    let mut problems = forest.problems;
    let Some(document) = forest.documents.first().filter(|_| !forest.stopped) else {
        return Err(said(&problems));
    };
    let mut checker = Checker {
        source: &source,
        problems: &mut problems,
        broken: false,
        support: crate::check::Support::ThisVersion,
    };
    checker.object(document, DocumentKind::Workflow.shape(), Span::default());
    let mut build = Build::new(Source::new("_mutations", &source), &problems);
    let built = build.document(DocumentKind::Workflow, document);
    problems.append(&mut build.problems);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(said(&problems));
    }
    // An agent comes first as what calls it, which is an action of the node's own: refused below.
    let Some(Built::Workflow(bundle)) = built.into_iter().next() else {
        return Err("expected nodes".to_owned());
    };
    let (nodes, transitions) = (bundle.workflow.nodes, bundle.workflow.transitions);
    if let Some(own) = nodes.iter().find(|node| node.inline != Inline::No) {
        let what = bundle.actions.values().next().map_or("steps", |action| action.implementation.kind());
        let name = &own.reference;
        return Err(format!(
            "node `{name}` has an action of its own (`{what}`); a plan names tasks that the workflow knows: \
             write `task: ...`"
        ));
    }
    Ok(Stored { nodes, transitions })
}

fn said(problems: &[Diagnostic]) -> String {
    let all = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let all: Vec<String> = all
        .map(|problem| match &problem.help {
            Some(help) => format!("{} ({help})", problem.message),
            None => problem.message.clone(),
        })
        .collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<String, String> {
        mutations(&Value::from_json_str(text).unwrap()).map(|stored| stored.to_string())
    }

    #[test]
    fn what_a_file_would_have_becomes_what_is_stored() {
        let short = r#"{"nodes": {"x": {"task": "spare", "budget": {"usd": 0.5}, "timeout": "5s",
            "next": [{"to": "end", "when": "state.ok"}]}}, "transitions": [{"from": "plan", "to": "x"}]}"#;
        let stored = r#"{"nodes": [{"ref": "x", "task": "spare", "timeout_ms": 5000, "budget":
            {"usd_micros": 500000, "on_exceeded": "pause", "warn_at_permille": 800}}],
            "transitions": [{"from": "x", "to": "end", "condition": "state.ok"}, {"from": "plan", "to": "x"}]}"#;
        let read: Stored = serde_json::from_str(&plan(short).unwrap()).unwrap();
        let expected: Stored = serde_json::from_str(stored).unwrap();
        assert_eq!((read.nodes, read.transitions), (expected.nodes, expected.transitions));
        // In a list, with refs, as well.
        let listed = r#"{"nodes": [{"ref": "x", "task": "spare", "budget": {"usd": 0.5}, "timeout": "5s"}]}"#;
        let read: Stored = serde_json::from_str(&plan(listed).unwrap()).unwrap();
        let budget = read.nodes[0].budget.unwrap();
        assert_eq!((budget.usd_micros, read.nodes[0].timeout_ms), (Some(500_000), Some(5_000)));
    }

    #[test]
    fn what_is_stored_goes_through_as_it_is() {
        let stored = r#"{"nodes":[{"budget":{"usd_micros":500000},"ref":"x","task":"spare"}],"transitions":[{"from":"plan","to":"x"}]}"#;
        assert_eq!(plan(stored).unwrap(), stored);
    }

    #[test]
    fn what_no_file_could_hold_is_said() {
        for (text, part) in [
            (r#"[]"#, "expected a map"),
            (r#"{"nodez": []}"#, "`nodez`"),
            (r#"{"nodes": {"x": {"tusk": "spare"}}}"#, "did you mean `task`?"),
            (r#"{"nodes": {"x": {"task": "spare", "timeout": "5 parsecs"}}}"#, "5 parsecs"),
            (r#"{"nodes": {"x": {"task": "spare", "budget": {"usd_micros": 5}}}}"#, "usd_micros"),
            (r#"{"nodes": {"x": {"shell": {"command": "id"}}}}"#, "`x` has an action of its own (`shell`)"),
            (
                r#"{"nodes": {"x": {"task": "spare", "needs": ["plan"]}}, "transitions": [{"from": "plan", "to": "x"}]}"#,
                "not both",
            ),
            (r#"{"nodes": [{"ref": "x", "task": "spare"}], "tasks": {}}"#, "`tasks`"),
        ] {
            let said = plan(text).unwrap_err();
            assert!(said.starts_with("_mutations does not read"), "{said}");
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
