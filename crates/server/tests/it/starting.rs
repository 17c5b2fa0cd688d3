//! Starting runs: once under a key, also across a restart; for a project; and waiting for the end.

use serde_json::json;
use wonder_server::{Limits, Role};

use crate::server::{ASKS, HELLO, Server};

const RUNS: &str = "/api/v1/runs";

#[tokio::test]
async fn a_key_starts_one_run_also_across_a_restart() {
    let server = Server::start().await;
    let body = json!({"file": HELLO, "input": {"who": "ann"}, "labels": {"team": "docs"}});
    let key = [("idempotency-key", "order-7")];
    let first = server.post_with("/api/v1/runs?wait=30s", &body, &key).await;
    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(first.body["output"], json!({"said": "hi ann"}));
    let run = first.body["run"].as_str().unwrap().to_owned();
    assert_eq!(first.headers["location"].to_str().unwrap(), format!("/api/v1/runs/{run}"));
    // Its keys in another order are the same body.
    let same = json!({"labels": {"team": "docs"}, "input": {"who": "ann"}, "file": HELLO});
    let again = server.post_with(RUNS, &same, &key).await;
    assert_eq!((again.status.as_u16(), again.body["run"].as_str()), (200, Some(&*run)));
    let server = server.again().await;
    let later = server.post_with(RUNS, &body, &key).await;
    assert_eq!((later.status.as_u16(), later.body["run"].as_str()), (200, Some(&*run)));
    let other = json!({"file": HELLO, "input": {"who": "bob"}});
    let refused = server.post_with(RUNS, &other, &key).await;
    assert_eq!((refused.status.as_u16(), refused.body["code"].as_str()), (409, Some("conflict")));
    let listed = server.get(RUNS).await;
    assert_eq!(listed.body["items"].as_array().unwrap().len(), 1, "{}", listed.body);
    server.stop().await;
}

#[tokio::test]
async fn many_who_ask_at_once_under_one_key_get_one_run() {
    let server = Server::start().await;
    let body = json!({"file": HELLO, "input": {"who": "ann"}});
    let key = [("idempotency-key", "all at once")];
    let asked = (0..8).map(|_| server.post_with(RUNS, &body, &key));
    let answers = futures_util::future::join_all(asked).await;
    let run = answers[0].body["run"].clone();
    assert!(answers.iter().all(|answer| answer.status.is_success() && answer.body["run"] == run));
    assert_eq!(server.get(RUNS).await.body["items"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn an_id_of_ones_own_is_taken_and_a_key_beside_it_is_not() {
    let server = Server::start().await;
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let body = json!({"file": HELLO, "input": {"who": "ann"}, "id": id});
    assert_eq!(server.post(RUNS, &body).await.body["run"], id);
    assert_eq!(server.post(RUNS, &body).await.status, 200);
    let both = server.post_with(RUNS, &body, &[("idempotency-key", "k")]).await;
    assert_eq!(both.status, 400);
    for bad in ["short", "01arz3ndektsv4rrffq69g5fav", "01ARZ3NDEKTSV4RRFFQ69G5F.1"] {
        assert_eq!(server.post(RUNS, &json!({"file": HELLO, "id": bad})).await.status, 400, "{bad}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_refused_says_where_and_what() {
    let server = Server::start().await;
    let bad = server.post(RUNS, &json!({"file": "wonder: 1\nname: x\nnods: {}\n"})).await;
    assert_eq!((bad.status.as_u16(), bad.body["code"].as_str()), (422, Some("bad_definition")));
    assert!(bad.body["problems"][0]["line"].is_number(), "{}", bad.body);
    let schema = format!("{HELLO}input_schema: {{type: object, required: [who]}}\n");
    let input = server.post(RUNS, &json!({"file": schema, "input": {}})).await;
    assert_eq!(input.status, 422);
    assert_eq!(input.body["cause"]["reason"], "bad_run_input", "{}", input.body);
    let unknown = server.post(RUNS, &json!({"file": HELLO, "inputs": {}})).await;
    insta::assert_json_snapshot!("an_unknown_key", unknown.body);
    let missing = server.get("/api/v1/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV").await;
    insta::assert_json_snapshot!("no_such_run", missing.body);
    insta::assert_json_snapshot!(
        "no_token",
        crate::server::answer(server.request(reqwest::Method::GET, RUNS)).await.body
    );
    server.stop().await;
}

#[tokio::test]
async fn runs_are_of_a_project_and_a_key_is_too() {
    let mut server = Server::start().await;
    let admin = server.token.clone();
    let body = json!({"file": HELLO, "input": {"who": "ann"}});
    let key = [("idempotency-key", "k")];
    let own = server.post_with(RUNS, &body, &key).await.body["run"].clone();
    server.token = server.made("docs", Role::Operator, Some("docs"));
    let docs = server.post_with(RUNS, &body, &key).await;
    assert_eq!(docs.status, 201, "another project's key is another key");
    let items = server.get(RUNS).await.body["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!((&items[0]["run"], items[0]["project"].as_str()), (&docs.body["run"], Some("docs")));
    let hidden = server.get(&format!("/api/v1/runs/{}", own.as_str().unwrap())).await;
    assert_eq!(hidden.status, 404);
    let foreign = format!("{HELLO}project_id: ops\n");
    assert_eq!(server.post(RUNS, &json!({"file": foreign})).await.status, 403);
    let beside = format!("{HELLO}---\n{}project_id: ops\n", HELLO.replace("name: hello", "name: other"));
    assert_eq!(server.post(RUNS, &json!({"file": beside})).await.status, 403);
    assert_eq!(server.get("/api/v1/runs?project=default").await.body["items"], json!([]));
    // Under an id that another project has.
    let taken = json!({"file": HELLO, "input": {"who": "ann"}, "id": own});
    assert_eq!(server.post(RUNS, &taken).await.status, 409);
    server.token = admin;
    let all = server.get(RUNS).await.body["items"].as_array().unwrap().len();
    assert_eq!(all, 2);
    server.stop().await;
}

#[tokio::test]
async fn who_waits_is_answered_when_the_server_leaves() {
    let server = Server::start().await;
    let flow = "wonder: 1\nname: naps\nnodes:\n  nap: {sleep: 1h}\n";
    let (body, limits) = (json!({"file": flow}), Limits::default());
    let mut waits = Box::pin(server.post("/api/v1/runs?wait=5m", &body));
    let url = server.url.clone();
    // The run is there, and its starter waits.
    let run = loop {
        tokio::select! {
            answer = &mut waits => panic!("answered early: {}", answer.body),
            listed = server.get(RUNS) => if let Some(run) = listed.body["items"][0]["run"].as_str() { break run.to_owned() },
        }
    };
    let (home, token) = (server.home.clone(), server.token.clone());
    server.leave();
    let answer = waits.as_mut().await;
    drop(waits);
    assert_eq!((answer.status.as_u16(), answer.body["run"].as_str()), (201, Some(&*run)), "{url}");
    server.stop().await;
    let server = Server::open(home, token, limits).await;
    assert_eq!(server.get(&format!("/api/v1/runs/{run}")).await.body["status"], "running");
    server.stop().await;
}

#[tokio::test]
async fn a_gate_is_answered_once_by_the_tokens_name() {
    let mut server = Server::start().await;
    let started = server.post("/api/v1/runs?wait=30s", &json!({"file": ASKS})).await;
    assert_eq!(started.body["status"], "waiting", "{}", started.body);
    let gate = server.get("/api/v1/gates").await.body["items"][0]["id"].as_str().unwrap().to_owned();
    server.token = server.made("ann", Role::Operator, None);
    let path = format!("/api/v1/gates/{gate}/answer");
    let refused = server.post(&path, &json!({"ok": "perhaps"})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.body["cause"]["reason"].as_str()),
        (422, Some("bad_answer"))
    );
    let done = server.post_with(&path, &json!({"ok": true}), &[("idempotency-key", "a1")]).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let same = server.post_with(&path, &json!({"ok": true}), &[("idempotency-key", "a1")]).await;
    assert_eq!(same.status, 200, "the same answer again: {}", same.body);
    assert_eq!(server.post(&path, &json!({"ok": false})).await.status, 409);
    let details = server.get(&format!("/api/v1/gates/{gate}")).await.body;
    assert!(details.to_string().contains("\"by\":\"ann\""), "{details}");
    server.stop().await;
}
