//! The shapes of bodies and answers, for the document. An answer may have more keys than are listed, never fewer: the
//! tests hold real answers against them.

use serde_json::{Value as Json, json};
use wonder_engine::Status;

pub(crate) fn all() -> Json {
    let mut all = answers();
    for more in [more_answers(), bodies()] {
        if let (Some(all), Json::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
    }
    all
}

fn object(required: &[&str], properties: Json) -> Json {
    json!({"type": "object", "required": required, "properties": properties})
}

/// An object that has these keys and no others.
fn closed(required: &[&str], properties: Json) -> Json {
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn list(of: &str) -> Json {
    let items = json!({"type": "array", "items": {"$ref": format!("#/components/schemas/{of}")}});
    object(&["items", "next"], json!({"items": items, "next": {"type": ["string", "null"]}}))
}

/// Milliseconds since 1970, UTC: as in `-o json`.
fn time() -> Json {
    json!({"type": "integer", "description": "Milliseconds since 1970, UTC"})
}

fn maybe_time() -> Json {
    json!({"type": ["integer", "null"], "description": "Milliseconds since 1970, UTC"})
}

fn status() -> Json {
    json!({"type": "string", "enum": Status::ALL.map(Status::as_str)})
}

fn text() -> Json {
    json!({"type": "string"})
}

fn maybe_text() -> Json {
    json!({"type": ["string", "null"]})
}

fn labels() -> Json {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn outcome() -> Json {
    json!({
        "run": text(), "workflow": text(), "version": {"type": "integer"}, "status": status(),
        "output": {}, "error": {"type": ["object", "null"]}, "waiting": {"type": "array", "items": {"type": "object"}},
        "cost_usd": {"type": ["number", "null"]}, "tokens": {"type": "integer"}, "duration_ms": {"type": "integer"},
    })
}

const OUTCOME: [&str; 10] = [
    "run",
    "workflow",
    "version",
    "status",
    "output",
    "error",
    "waiting",
    "cost_usd",
    "tokens",
    "duration_ms",
];

fn answers() -> Json {
    let row = json!({
        "run": text(), "workflow": text(), "version": {"type": "integer"}, "status": status(), "root": text(),
        "parent": maybe_text(), "started_at": time(), "ended_at": maybe_time(), "cost_usd": {"type": "number"},
        "tokens": {"type": "integer"}, "project": text(), "driven": {"type": "boolean"}, "labels": labels(),
    });
    let mut run = outcome();
    let more = json!({
        "root": text(), "project": text(), "started_at": time(), "ended_at": maybe_time(), "labels": labels(),
        "seq": {"type": "integer"}, "input": {}, "state": {}, "nodes": {"type": "array", "items": {"$ref": "#/components/schemas/Visit"}},
        "gates": {"type": "array", "items": {"$ref": "#/components/schemas/Gate"}}, "children": {"type": "array", "items": text()},
    });
    if let (Some(run), Json::Object(more)) = (run.as_object_mut(), more) {
        run.extend(more);
    }
    let in_run = [
        &OUTCOME[..],
        &["root", "project", "started_at", "seq", "input", "state", "nodes", "gates", "labels"],
    ]
    .concat();
    json!({
        "Problem": object(&["type", "title", "status", "detail", "code"], json!({
            "type": text(), "title": text(), "status": {"type": "integer"}, "detail": text(), "code": text(),
            "help": text(), "cause": {"type": "object"}, "problems": {"type": "array"},
        })),
        "Up": object(&["status"], json!({"status": {"const": "up"}})),
        "Outcome": object(&OUTCOME, outcome()),
        "Row": object(&["run", "workflow", "version", "status", "root", "started_at", "project", "driven", "labels"], row),
        "Rows": list("Row"),
        "Run": object(&in_run, run),
        "Event": object(&["run", "seq", "at", "kind"], json!({
            "run": text(), "seq": {"type": "integer"}, "at": time(), "kind": text(),
        })),
        "Events": list("Event"),
        "Visit": object(&["token", "node", "label", "status", "attempts"], json!({
            "token": {"type": "integer"}, "node": text(), "label": text(), "status": text(), "attempts": {"type": "integer"},
        })),
        "Visits": list("Visit"),
        "VisitDetails": {"type": "object"},
        "Graph": object(&["run", "workflow", "version", "status", "nodes", "edges", "mutations"], json!({
            "run": text(), "workflow": text(), "version": {"type": "integer"}, "status": status(),
            "nodes": {"type": "array", "items": {"type": "object"}}, "edges": {"type": "array", "items": {"type": "object"}},
            "mutations": {"type": "array", "items": {"type": "object"}},
        })),
        "Context": object(&["run", "seq", "input", "state", "output"], json!({"run": text(), "seq": {"type": "integer"}})),
        "Cost": object(&["run", "status", "cost_usd", "total", "nodes", "models", "runs", "budgets"], json!({
            "run": text(), "status": status(), "cost_usd": {"type": "number"}, "total": {"type": "object"},
        })),
        "Reason": object(&["run", "by"], json!({"run": text(), "by": text()})),
        "Reasons": list("Reason"),
        "Line": object(&["number", "run", "at", "node", "stream", "text"], json!({
            "number": {"type": "integer"}, "run": text(), "at": time(), "node": text(), "stream": text(), "text": text(),
        })),
        "Lines": list("Line"),
    })
}

fn more_answers() -> Json {
    json!({
        "Artifact": object(&["run", "name", "media_type", "bytes", "artifact", "node", "at"], json!({
            "run": text(), "name": text(), "media_type": text(), "bytes": {"type": "integer"}, "artifact": text(), "at": time(),
        })),
        "Artifacts": list("Artifact"),
        "Gate": object(&["id", "run", "node", "kind", "title", "form", "opened_at"], json!({
            "id": text(), "run": text(), "node": maybe_text(), "kind": text(), "title": text(), "form": {}, "opened_at": time(),
        })),
        "Gates": list("Gate"),
        "GateDetails": {"type": "object"},
        "Token": object(&["name", "role", "project", "created_at", "expires_at"], token()),
        "Tokens": list("Token"),
        "MadeToken": object(&["name", "role", "token"], json!({"name": text(), "role": text(), "token": text()})),
        "AuditEntry": object(&["at", "by", "method", "path", "status"], json!({
            "at": time(), "by": text(), "method": text(), "path": text(), "status": {"type": "integer"},
        })),
        "Audit": list("AuditEntry"),
    })
}

fn role() -> Json {
    json!({"type": "string", "enum": crate::Role::ALL.map(crate::Role::as_str)})
}

fn token() -> Json {
    json!({
        "name": text(), "role": role(), "project": maybe_text(), "created_at": time(), "expires_at": maybe_time(),
    })
}

fn bodies() -> Json {
    let number = json!({"type": "integer", "minimum": 1});
    json!({
        "Start": closed(&["file"], json!({
            "file": {"type": "string", "description": "The text of a file: its first workflow is started."},
            "input": {"description": "The run's input, an object unless the workflow says otherwise."},
            "labels": labels(),
            "project": {"type": "string", "description": "For a workflow that names no project."},
            "id": {"type": "string", "description": "The run's id, 26 characters of a ULID; instead of an Idempotency-Key."},
            "max_parallel": number,
        })),
        "Cancel": closed(&[], json!({
            "reason": text(), "grace": {"type": "string", "description": "How long what is out may take to end: 10s."},
        })),
        "Because": closed(&[], json!({"reason": text()})),
        "Nothing": closed(&[], json!({})),
        "Retry": closed(&[], json!({"definition": {"type": "string", "description": "The text of a file to go on with."}})),
        "Fork": closed(&["from"], json!({
            "from": {"type": "string", "description": "The node to go on from, just before it was last dispatched; CALLER/NODE in a run that was called."},
            "branch": {"type": "integer", "minimum": 0}, "visit": number,
            "input": {"description": "Laid over the node's input."}, "set": {"description": "Laid over the run's state."},
            "definition": {"type": "string", "description": "The text of a file to go on with."},
        })),
        "Signal": closed(&["name"], json!({
            "name": text(), "key": {}, "payload": {},
            "keep": {"type": "boolean", "description": "False: refused if nobody waits for it now. True unless said."},
        })),
        "Tell": closed(&[], json!({
            "text": text(), "stop": {"type": "boolean"},
            "node": {"type": "string", "description": "The node that called the run that is meant."},
        })),
        "Answer": {"description": "The answer itself, as the gate's form wants it."},
        "NewToken": closed(&["role"], json!({
            "name": text(), "role": role(), "project": text(),
            "expires": {"type": "string", "description": "After how long: 30d."},
        })),
    })
}
