//! What is over a limit is refused, with when to come again.

use futures_util::StreamExt;
use reqwest::Method;
use serde_json::json;
use wonder_server::Limits;

use crate::server::{HELLO, Server, WAITS, with};

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let server = Server::with(Limits { body_bytes_max: 1_000, ..Limits::default() }).await;
    let answer = server.post("/api/v1/runs", &json!({"file": "x".repeat(2_000)})).await;
    assert_eq!(answer.status, 413);
    insta::assert_json_snapshot!("too_large", answer.body);
    assert_eq!(server.post("/api/v1/runs", &json!({"file": HELLO, "input": {"who": "x"}})).await.status, 201);
    server.stop().await;
}

#[tokio::test]
async fn who_asks_too_fast_is_told_when_to_come_again() {
    let server = Server::with(Limits { rate_per_second: 0.01, rate_burst: 2.0, ..Limits::default() }).await;
    assert_eq!(server.get("/api/v1/runs").await.status, 200);
    assert_eq!(server.get("/api/v1/runs").await.status, 200);
    let refused = server.get("/api/v1/runs").await;
    assert_eq!((refused.status.as_u16(), refused.body["code"].as_str()), (429, Some("too_fast")));
    let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=100).contains(&seconds), "{seconds}");
    server.stop().await;
}

#[tokio::test]
async fn streams_and_requests_have_so_many_places() {
    let server = Server::with(Limits { streams_max: 1, requests_max: 1, ..Limits::default() }).await;
    let run = server.run(WAITS).await;
    let open = || {
        let request =
            server.request(Method::GET, &format!("/api/v1/runs/{run}/events")).bearer_auth(&server.token);
        with(request, &[("accept", "text/event-stream")]).send()
    };
    let mut first = open().await.unwrap().bytes_stream();
    assert!(first.next().await.is_some());
    let second = open().await.unwrap();
    assert_eq!((second.status().as_u16(), &second.headers()["retry-after"] == "1"), (503, true));
    // One that waits has the only place of a request.
    let naps = json!({"file": "wonder: 1\nname: naps\nnodes:\n  nap: {sleep: 1h}\n"});
    let mut waits = Box::pin(server.post("/api/v1/runs?wait=5m", &naps));
    let refused = loop {
        tokio::select! {
            answer = &mut waits => panic!("answered early: {}", answer.body),
            answer = server.get("/api/v1/runs") => if answer.status == 503 { break answer },
        }
    };
    assert_eq!(refused.body["code"], "busy");
    server.leave();
    assert_eq!(waits.as_mut().await.status, 201);
    drop(waits);
    server.stop().await;
}

#[tokio::test]
async fn answers_are_small_for_those_who_take_them_so() {
    let server = Server::start().await;
    server.run(HELLO).await;
    let request = server.request(Method::GET, "/openapi.json");
    let answer = with(request, &[("accept-encoding", "gzip")]).send().await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    server.stop().await;
}
