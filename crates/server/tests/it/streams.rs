//! Events as they come: whoever comes back goes on where it was, whatever happened in between.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Method;
use serde_json::json;

use crate::server::{HELLO, Server, WAITS, with};

const SIGNALS: u64 = 300;

/// Numbers from a seed, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Reads a stream from a cursor until it has seen so many events, or to its end. The numbers that it saw.
async fn read(server: &Server, run: &str, after: u64, most: u64) -> (Vec<u64>, bool) {
    let request =
        server.request(Method::GET, &format!("/api/v1/runs/{run}/events")).bearer_auth(&server.token);
    let last = after.to_string();
    let request = with(request, &[("accept", "text/event-stream"), ("last-event-id", &last)]);
    let response = request.send().await.unwrap();
    if response.status() == 204 {
        return (Vec::new(), true);
    }
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut body, mut text, mut seen) = (response.bytes_stream(), String::new(), Vec::new());
    while let Some(bytes) = body.next().await {
        text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        while let Some(end) = text.find("\n\n") {
            let frame: String = text.drain(..end + 2).collect();
            let Some(id) = frame.lines().find_map(|line| line.strip_prefix("id: ")) else { continue };
            let data: serde_json::Value =
                serde_json::from_str(frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap())
                    .unwrap();
            let kind = frame.lines().find_map(|line| line.strip_prefix("event: ")).unwrap();
            assert_eq!((data["seq"].to_string().as_str(), data["kind"].as_str()), (id, Some(kind)));
            seen.push(id.parse().unwrap());
            if seen.len() as u64 == most {
                return (seen, false);
            }
        }
    }
    (seen, true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_drops_at_random_places_sees_every_event_once_in_order() {
    let server = Server::start().await;
    let run = server.run(WAITS).await;
    let signal = format!("/api/v1/runs/{run}/signal");
    let talks = async {
        for number in 0..SIGNALS {
            let told = server.post(&signal, &json!({"name": "note", "payload": number})).await;
            assert_eq!(told.status, 200, "{}", told.body);
        }
        assert_eq!(server.post(&signal, &json!({"name": "stop"})).await.status, 200);
    };
    let watches = async |seed: u64| {
        let (mut random, mut seen, mut drops) = (Random(seed), Vec::<u64>::new(), 0);
        loop {
            let after = seen.last().copied().unwrap_or(0);
            let (more, ended) = read(&server, &run, after, 1 + random.below(40)).await;
            seen.extend(more);
            drops += 1;
            if ended {
                return (seen, drops);
            }
        }
    };
    let ((), one, two, whole) =
        tokio::join!(talks, watches(0x9E37_79B9), watches(42), read(&server, &run, 0, u64::MAX));
    let last = server.get(&format!("/api/v1/runs/{run}")).await.body["seq"].as_u64().unwrap();
    assert!(last > SIGNALS, "{last}");
    let all: Vec<u64> = (1..=last).collect();
    assert!(one.1 > 5 && two.1 > 5, "{} and {} drops", one.1, two.1);
    assert_eq!(one.0, all);
    assert_eq!(two.0, all);
    assert_eq!(whole.0, all);
    server.stop().await;
}

#[tokio::test]
async fn pages_of_events_go_on_by_their_cursors() {
    let server = Server::start().await;
    let run = server.run(WAITS).await;
    for number in 0..20 {
        server.post(&format!("/api/v1/runs/{run}/signal"), &json!({"name": "note", "payload": number})).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/api/v1/runs/{run}/events?limit=7{cursor}")).await.body;
        seen.extend(page["items"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert!(seen.len() > 20);
    let after = server.get(&format!("/api/v1/runs/{run}/events?after={}", seen.len() - 1)).await.body;
    assert_eq!(after["items"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_run_and_with_the_server() {
    let mut server = Server::start().await;
    let ended = server.post("/api/v1/runs?wait=30s", &json!({"file": HELLO, "input": {"who": "x"}})).await;
    let ended = ended.body["run"].as_str().unwrap().to_owned();
    let (seen, over) = read(&server, &ended, 0, u64::MAX).await;
    assert!(over && !seen.is_empty());
    assert_eq!(
        read(&server, &ended, seen.len() as u64, u64::MAX).await,
        (Vec::new(), true),
        "204: do not come again"
    );
    let run = server.run(WAITS).await;
    let open = server.request(Method::GET, &format!("/api/v1/runs/{run}/events")).bearer_auth(&server.token);
    let mut body = with(open, &[("accept", "text/event-stream")]).send().await.unwrap().bytes_stream();
    assert!(body.next().await.is_some());
    server.leave();
    let rest =
        tokio::time::timeout(Duration::from_secs(20), async { while body.next().await.is_some() {} }).await;
    assert!(rest.is_ok(), "a stream holds the server up");
    server = server.again().await;
    server.stop().await;
}

#[tokio::test]
async fn lines_come_without_a_number() {
    let server = Server::start().await;
    let flow = "wonder: 1\nname: says\nnodes:\n  wait: {wait_event: go, next: say}\n  say: {shell: {command: \"echo one line\"}, timeout: 1m}\n";
    let run = server.run(flow).await;
    let open = server.request(Method::GET, &format!("/api/v1/runs/{run}/events")).bearer_auth(&server.token);
    let stream = with(open, &[("accept", "text/event-stream")]).send().await.unwrap();
    assert_eq!(server.post(&format!("/api/v1/runs/{run}/signal"), &json!({"name": "go"})).await.status, 200);
    let text = stream.text().await.unwrap();
    let line =
        text.split("\n\n").find(|frame| frame.contains("event: log")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("one line") && !line.contains("id: "), "{line}");
    let logs = server.get(&format!("/api/v1/runs/{run}/logs")).await.body;
    assert_eq!(logs["items"][0]["text"], "one line", "{logs}");
    server.stop().await;
}
