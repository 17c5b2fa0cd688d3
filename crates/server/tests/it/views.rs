//! Lists with filters and cursors, and what can be seen of a run.

use serde_json::json;

use crate::server::{ASKS, HELLO, Server, WAITS};

#[tokio::test]
async fn lists_are_filtered_and_go_on_by_cursors() {
    let server = Server::start().await;
    let mut started = Vec::new();
    for number in 0..7 {
        let body = json!({"file": WAITS, "labels": {"even": (number % 2 == 0).to_string()}});
        started.push(server.post("/api/v1/runs", &body).await.body["run"].as_str().unwrap().to_owned());
    }
    server.run(HELLO).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/api/v1/runs?workflow=waits&limit=3{cursor}")).await.body;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    started.reverse();
    assert_eq!(seen, started);
    let even = server.get("/api/v1/runs?label=even%3Dtrue").await.body;
    assert_eq!(even["items"].as_array().unwrap().len(), 4);
    assert_eq!(server.get("/api/v1/runs?since=2100-01-01T00:00:00Z").await.body["items"], json!([]));
    for (query, code) in [
        ("staus=waiting", 400),
        ("status=sleepy", 400),
        ("limit=0", 400),
        ("cursor=%21", 400),
        ("limit=1&limit=2", 400),
    ] {
        let refused = server.get(&format!("/api/v1/runs?{query}")).await;
        assert_eq!(refused.status, code, "{query}: {}", refused.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_run_is_seen_as_it_is_and_as_it_was() {
    let server = Server::start().await;
    let started = server.post("/api/v1/runs?wait=30s", &json!({"file": ASKS, "input": {"a": 1}})).await;
    let run = started.body["run"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/runs/{run}");
    let now = server.get(&path).await.body;
    assert_eq!((now["status"].as_str(), now["gates"][0]["title"].as_str()), (Some("waiting"), Some("Fine?")));
    let then = server.get(&format!("{path}?at=1")).await.body;
    assert_eq!((then["seq"].as_u64(), &then["gates"]), (Some(1), &json!([])));
    assert_eq!(server.get(&format!("{path}?at=999")).await.status, 404);
    let graph = server.get(&format!("{path}/graph")).await.body;
    assert_eq!(
        (graph["nodes"][0]["node"].as_str(), graph["nodes"][0]["state"].as_str()),
        (Some("ok"), Some("waiting"))
    );
    assert_eq!(server.get(&format!("{path}/context")).await.body["input"], json!({"a": 1}));
    assert_eq!(server.get(&format!("{path}/visits")).await.body["items"][0]["node"], "ok");
    assert!(server.get(&format!("{path}/why")).await.body["items"][0]["by"].is_string());
    assert_eq!(server.get(&format!("{path}/cost")).await.body["usd_micros"], 0);
    let short = &run[run.len() - 10..];
    assert_eq!(server.get(&format!("/api/v1/runs/{short}")).await.body["run"], run);
    server.stop().await;
}

#[tokio::test]
async fn a_run_is_paused_resumed_forked_and_ended() {
    let server = Server::start().await;
    let run = server.run(WAITS).await;
    let path = |verb: &str| format!("/api/v1/runs/{run}/{verb}");
    assert_eq!(server.post(&path("pause"), &json!({})).await.body["status"], "paused");
    assert_eq!(server.post(&path("resume"), &json!({})).await.body["status"], "waiting");
    let fork = server.post(&path("fork"), &json!({"from": "stop"})).await;
    assert_eq!(fork.status, 200, "{}", fork.body);
    assert_ne!(fork.body["run"], run);
    assert_eq!(server.post(&path("tell"), &json!({"text": "hi"})).await.status, 409);
    assert_eq!(server.post(&path("kill"), &json!({"reason": "x"})).await.body["status"], "cancelled");
    assert_eq!(server.post(&path("pause"), &json!({})).await.status, 409);
    assert_eq!(server.post(&path("retry"), &json!({})).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn what_a_run_kept_is_had_whole() {
    let server = Server::start().await;
    let flow = "wonder: 1\nname: keeps\nartifact_types:\n  page: {media_type: text/html}\nnodes:\n  keep:\n    artifact_write: {type: page, name: notes/one.html, content: \"<p>hi\"}\n";
    let done = server.post("/api/v1/runs?wait=30s", &json!({"file": flow})).await;
    assert_eq!(done.body["status"], "completed", "{}", done.body);
    let run = done.body["run"].as_str().unwrap();
    let list = server.get(&format!("/api/v1/runs/{run}/artifacts")).await.body;
    assert_eq!(list["items"][0]["name"], "notes/one.html", "{list}");
    let file = server.get(&format!("/api/v1/runs/{run}/artifacts/notes%2Fone.html")).await;
    assert_eq!((file.status.as_u16(), file.body.as_str()), (200, Some("<p>hi")));
    assert_eq!(file.headers["content-disposition"], "attachment");
    assert!(file.headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    server.stop().await;
}
