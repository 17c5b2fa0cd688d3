//! What is wrong with model profiles, tools and servers, and with budgets in dollars over them.

use serde_json::{Value as Json, json};

use super::Draft;
use super::codes::{mock, model};

/// A model profile with these fields.
fn profile(mut fields: Json) -> Json {
    fields["name"] = json!("m");
    fields["model"] = json!("gpt");
    json!({"models": {"m": fields}})
}

pub(super) fn codes() -> Vec<(&'static str, Draft)> {
    let cheaper = |name: &str, other: &str| json!({"name": name, "model": "m", "cheaper": other});
    vec![
        (
            "E0163",
            mock(json!({})).with(
                json!({"models": {"a": cheaper("a", "b"), "b": cheaper("b", "c"), "c": cheaper("c", "b")}}),
            ),
        ),
        (
            "E0163",
            mock(json!({})).with(json!({"models": {"a": {"name": "a", "model": "m", "fallbacks": ["a"]}}})),
        ),
        (
            "E0164",
            model(json!({"prompt": "x", "model": "m"}))
                .workflow(json!({"budget": {"usd_micros": 5}}))
                .with(json!({"models": {"m": {"name": "m", "provider": "openai", "model": "gpt"}}})),
        ),
        (
            "E0164",
            model(json!({"prompt": "x", "model": "m"})).workflow(json!({"budget": {"usd_micros": 5}})).with(
                json!({"models": {
                    "m": {"name": "m", "provider": "ollama", "model": "l", "fallbacks": ["n"]},
                    "n": {"name": "n", "provider": "ollama", "model": "l", "cheaper": "o"},
                    "o": {"name": "o", "model": "gpt"},
                }}),
            ),
        ),
        (
            "E0166",
            Draft::graph()
                .act("a", "mcp_tool", json!({"server": "fils", "tool": "t"}), json!({"timeout_ms": 1_000}))
                .with(json!({"mcp_servers": {"files": {"name": "files", "command": ["node"]}}})),
        ),
        // The action of the node itself, which says nothing of what it does.
        ("W0207", model(json!({"prompt": "x", "tools": ["a"]}))),
        ("E0167", mock(json!({})).with(json!({"mcp_servers": {"files": {"name": "files"}}}))),
        (
            "E0167",
            mock(json!({})).with(
                json!({"mcp_servers": {"files": {"name": "files", "url": "https://a", "env": {"A": "b"}}}}),
            ),
        ),
        (
            "E0143",
            mock(json!({}))
                .with(json!({"mcp_servers": {"files": {"name": "files", "url": "https://{{ input.a }}"}}})),
        ),
        (
            "E0107",
            mock(json!({})).with(
                json!({"mcp_servers": {"f": {"name": "f", "command": ["x"], "sampling": {"model": "none"}}}}),
            ),
        ),
        ("E0165", mock(json!({})).with(profile(json!({"provider": "opneai"})))),
        ("E0165", mock(json!({})).with(profile(json!({"provider": "openai_compatible"})))),
        ("E0165", mock(json!({})).with(profile(json!({"base_url": "llm.example/v1"})))),
        ("E0143", mock(json!({})).with(profile(json!({"api_key": "{{ input.key }}"})))),
        ("E0143", mock(json!({})).with(profile(json!({"headers": {"X-A": "{{ secret }}"}})))),
        ("E0142", mock(json!({})).with(profile(json!({"api_key": "{{ secret."})))),
        ("W0203", mock(json!({})).with(profile(json!({"api_key": "plain"})))),
        ("E0161", mock(json!({})).with(profile(json!({"rate": {"rpm": 0}})))),
    ]
}
