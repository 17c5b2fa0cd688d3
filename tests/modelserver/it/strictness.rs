//! What providers refuse is refused here, so that a codec that sends it fails in a test and not in production.

use serde_json::{Value as Json, json};

use crate::client::{Connection, server};

const HEADERS: &str =
    "authorization: Bearer k\r\nx-api-key: k\r\nx-goog-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

async fn post(url: &str, headers: &str, body: &Json) -> (u16, String) {
    let connection =
        Connection::send("POST", url, headers.to_owned(), body.to_string().as_bytes()).await.unwrap();
    (connection.status, connection.text().await)
}

fn with(body: &Json, change: Json) -> Json {
    let mut body = body.clone();
    if let (Json::Object(body), Json::Object(change)) = (&mut body, change) {
        for (key, value) in change {
            if value.is_null() {
                body.remove(&key);
            } else {
                body.insert(key, value);
            }
        }
    }
    body
}

async fn refused(path: &str, good: Json, bad: Vec<(Json, &str)>) {
    let server = server("turns: [{text: ok}]").await;
    let url = format!("{}/{path}", server.url());
    let (status, answer) = post(&url, HEADERS, &good).await;
    assert_eq!(status, 200, "{answer}");
    for (change, why) in bad {
        let (status, answer) = post(&url, HEADERS, &with(&good, change.clone())).await;
        assert!(status == 400 && answer.contains(why), "{change}: {status} {answer}");
    }
    assert_eq!(post(&url, "anthropic-version: 2023-06-01\r\n", &good).await.0, 401);
}

#[tokio::test]
async fn chat() {
    let user = json!({ "role": "user", "content": "x" });
    let call = json!({ "id": "c", "type": "function", "function": { "name": "t", "arguments": "{}" } });
    let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "r" });
    let tool = |name: &str, strict: bool| {
        json!([{ "type": "function", "function": { "name": name, "strict": strict,
        "parameters": { "type": "object", "properties": { "a": { "type": "string" } } } } }])
    };
    let bad = vec![
        (json!({ "model": null }), "model"),
        (json!({ "messages": [] }), "messages"),
        (json!({ "wonder": 1 }), "not permitted"),
        (json!({ "messages": [user, result] }), "no call before answers"),
        (json!({ "messages": [user, calls] }), "without a response"),
        (json!({ "messages": [user, calls, user] }), "without a response"),
        (json!({ "messages": [{ "role": "human", "content": "x" }] }), "no role"),
        (json!({ "messages": [user, { "role": "assistant", "content": null }] }), "content or tool_calls"),
        (json!({ "tools": tool("a/b", false) }), "no name of a tool"),
        (json!({ "tools": tool("a", true) }), "additionalProperties"),
        (json!({ "tool_choice": "auto" }), "needs tools"),
        (json!({ "stream_options": {} }), "needs stream"),
    ];
    let good = json!({ "model": "m", "messages": [user, calls, result] });
    refused("v1/chat/completions", good, bad).await;
}

#[tokio::test]
async fn responses() {
    let user = json!({ "role": "user", "content": "x" });
    let call = json!({ "type": "function_call", "call_id": "c", "name": "t", "arguments": "{}" });
    let result = json!({ "type": "function_call_output", "call_id": "c", "output": "r" });
    let thought = json!({ "type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "forged" });
    let tool =
        json!([{ "type": "function", "name": "t", "parameters": { "type": "object", "properties": {} } }]);
    let bad = vec![
        (json!({ "input": [user, result] }), "no tool call found"),
        (json!({ "input": [user, call] }), "no tool output found"),
        (json!({ "input": [user, thought] }), "not persisted"),
        (json!({ "stop": ["x"] }), "not permitted"),
        (json!({ "max_output_tokens": 1 }), "at least 16"),
        // Strict unless it says otherwise.
        (json!({ "tools": tool }), "additionalProperties"),
    ];
    refused("v1/responses", json!({ "model": "m", "store": false, "input": [user, call, result] }), bad)
        .await;
}

#[tokio::test]
async fn anthropic() {
    let user = json!({ "role": "user", "content": "x" });
    let turn = |role: &str, block: Json| json!({ "role": role, "content": [block] });
    let call = turn("assistant", json!({ "type": "tool_use", "id": "c", "name": "t", "input": {} }));
    let result = turn("user", json!({ "type": "tool_result", "tool_use_id": "c", "content": "r" }));
    let thought = turn("assistant", json!({ "type": "thinking", "thinking": "t", "signature": "forged" }));
    let tools = json!([{ "name": "t", "input_schema": { "type": "object" } }]);
    let mark = json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
    let bad = vec![
        (json!({ "max_tokens": null }), "max_tokens"),
        (json!({ "n": 1 }), "not permitted"),
        (json!({ "messages": [call, result] }), "first message"),
        (json!({ "messages": [user, result] }), "unexpected `tool_use_id`"),
        (json!({ "messages": [user, call, user] }), "tool_result"),
        (json!({ "messages": [user, call, result, call, result] }), "unique"),
        (json!({ "messages": [user, { "role": "assistant", "content": "{" }] }), "prefill"),
        (json!({ "messages": [{ "role": "user", "content": " " }] }), "non-empty"),
        (json!({ "messages": [user, thought, user] }), "signature"),
        (
            json!({ "messages": [{ "role": "user", "content": [mark, mark, mark, mark, mark] }] }),
            "maximum of 4",
        ),
        (json!({ "thinking": { "type": "enabled", "budget_tokens": 100 } }), "budget_tokens"),
        (
            json!({ "tools": tools, "tool_choice": { "type": "any" }, "thinking": { "type": "adaptive" } }),
            "forces",
        ),
        (
            json!({ "output_config": { "format": { "type": "json_schema", "schema": { "type": "object" } } } }),
            "additionalProperties",
        ),
    ];
    let good = json!({ "model": "m", "max_tokens": 9, "messages": [user, call, result] });
    refused("v1/messages", good, bad).await;
}

#[tokio::test]
async fn gemini() {
    let turn = |role: &str, part: Json| json!({ "role": role, "parts": [part] });
    let user = turn("user", json!({ "text": "x" }));
    let unsigned = turn("model", json!({ "functionCall": { "name": "t", "args": {} } }));
    let call = turn(
        "model",
        json!({ "functionCall": { "name": "t", "args": {} },
        "thoughtSignature": "skip_thought_signature_validator" }),
    );
    let result = turn("user", json!({ "functionResponse": { "name": "t", "response": { "output": "r" } } }));
    let bad = vec![
        (json!({ "contents": [] }), "not specified"),
        (json!({ "contents": [user, result] }), "number of function response parts"),
        (json!({ "contents": [user, call] }), "followed by a function response"),
        (json!({ "contents": [user, unsigned, result] }), "thought_signature"),
        (json!({ "contents": [turn("assistant", json!({ "text": "x" }))] }), "user"),
        (json!({ "temperature": 1 }), "not permitted"),
        (json!({ "generationConfig": { "responseJsonSchema": {} } }), "responseMimeType"),
    ];
    refused("v1beta/models/gemini-3-pro:generateContent", json!({ "contents": [user, call, result] }), bad)
        .await;
}

#[tokio::test]
async fn keys_in_urls_wrong_keys_and_unknown_paths() {
    let server = server("{key: right, turns: [{text: ok}]}").await;
    let url = |path: &str| format!("{}/{path}", server.url());
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": "x" }] }] });
    let path = "v1beta/models/gemini-3-pro:generateContent";
    assert_eq!(post(&url(path), "x-goog-api-key: right\r\n", &body).await.0, 200);
    assert_eq!(post(&url(path), "x-goog-api-key: wrong\r\n", &body).await.0, 401);
    assert_eq!(post(&url(&format!("{path}?key=right")), "x-goog-api-key: right\r\n", &body).await.0, 400);
    assert_eq!(post(&url("v1/embeddings"), HEADERS, &body).await.0, 404);
}
