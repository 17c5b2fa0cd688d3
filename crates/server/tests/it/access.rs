//! Who may ask what: every route of the document, with every kind of caller. A new route is tried by being there.

use reqwest::Method;
use serde_json::{Value as Json, json};
use wonder_server::{NewToken, Role, TokenStore};

use crate::server::{ASKS, Answer, Server, answer, with};

struct Route {
    method: Method,
    path: String,
    /// None: everybody may ask.
    role: Option<Role>,
    /// Of a run or a gate: those of another project are not there.
    of_run: bool,
}

/// The routes as the document has them, about one run.
fn routes(document: &Json, run: &str) -> Vec<Route> {
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["x-role"].as_str().map(|role| Role::parse(role).unwrap());
            let of_run = path.contains("{run}") || path.contains("{gate}");
            let path = path.replace("{run}", run).replace("{gate}", &format!("{run}:1"));
            let path = path.replace("{token}", "1").replace("{artifact}", "none").replace("{name}", "nobody");
            assert!(!path.contains('{'), "{path}: say here what stands for this");
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            routes.push(Route { method, path, role, of_run });
        }
    }
    assert!(routes.len() >= 28, "{}", routes.len());
    routes
}

async fn asked(server: &Server, route: &Route, token: Option<&str>, headers: &[(&str, &str)]) -> Answer {
    let mut request = server.request(route.method.clone(), &route.path);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if route.method == Method::POST {
        request = request.header("content-type", "application/json").body("{}");
    }
    answer(with(request, headers)).await
}

#[tokio::test]
async fn every_route_asks_who_it_is() {
    let server = Server::start().await;
    let run = server.run(ASKS).await;
    let viewer = server.made("vera", Role::Viewer, None);
    let other = server.made("otto", Role::Operator, Some("elsewhere"));
    let expired =
        NewToken { name: Some("old".to_owned()), role: Role::Admin, project: None, expires_in_ms: Some(1) };
    let expired = TokenStore::at(server.home()).create(expired, wonder_core::Time(0)).unwrap().1;
    let document = server.get("/openapi.json").await.body;
    for route in routes(&document, &run) {
        let name = format!("{} {}", route.method, route.path);
        let tried = async |token: Option<&str>, headers: &[(&str, &str)]| {
            let answer = asked(&server, &route, token, headers).await;
            (answer.status.as_u16(), answer.body)
        };
        let foreign_host = tried(Some(&server.token), &[("host", "evil.example")]).await;
        assert_eq!((foreign_host.0, foreign_host.1["code"].as_str()), (421, Some("unknown_host")), "{name}");
        let foreign_page = tried(Some(&server.token), &[("origin", "https://evil.example")]).await;
        assert_eq!(
            (foreign_page.0, foreign_page.1["code"].as_str()),
            (403, Some("foreign_origin")),
            "{name}"
        );
        let Some(role) = route.role else {
            assert_eq!(tried(None, &[]).await.0, 200, "{name}");
            continue;
        };
        for token in [None, Some("wonder_nonsense"), Some(&*expired)] {
            let refused = tried(token, &[]).await;
            assert_eq!(
                (refused.0, refused.1["code"].as_str()),
                (401, Some("unauthorized")),
                "{name} with {token:?}"
            );
        }
        let seen = tried(Some(&viewer), &[]).await;
        match role {
            Role::Viewer => assert!(!matches!(seen.0, 401 | 403), "{name}: {}", seen.1),
            _ => assert_eq!((seen.0, seen.1["code"].as_str()), (403, Some("forbidden")), "{name}"),
        }
        let elsewhere = tried(Some(&other), &[]).await;
        match (role, route.of_run) {
            (Role::Admin, _) => assert_eq!(elsewhere.0, 403, "{name}"),
            (_, true) => {
                assert_eq!((elsewhere.0, elsewhere.1["code"].as_str()), (404, Some("not_found")), "{name}")
            }
            (_, false) => assert!(!elsewhere.1.to_string().contains(&run), "{name}: {}", elsewhere.1),
        }
    }
    // Nobody of those has changed anything.
    assert_eq!(server.get(&format!("/api/v1/runs/{run}")).await.body["status"], "waiting");
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_admins_make_others() {
    let mut server = Server::start().await;
    let made =
        server.post("/api/v1/tokens", &json!({"role": "operator", "name": "ci", "expires": "30d"})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let admin = std::mem::replace(&mut server.token, made.body["token"].as_str().unwrap().to_owned());
    assert_eq!(server.get("/api/v1/runs").await.status, 200);
    assert_eq!(server.get("/api/v1/tokens").await.status, 403);
    let gone = answer(server.request(Method::DELETE, "/api/v1/tokens/ci").bearer_auth(&admin)).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    assert_eq!(server.get("/api/v1/runs").await.status, 401);
    server.token = admin;
    let list = server.get("/api/v1/tokens").await.body;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert!(!list.to_string().contains("hash") && !list.to_string().contains(&server.token));
    let twice = server.post("/api/v1/tokens", &json!({"role": "viewer", "name": "admin"})).await;
    assert_eq!(twice.status, 422);
    server.stop().await;
}

#[tokio::test]
async fn what_was_asked_for_is_listed_with_who_did() {
    let mut server = Server::start().await;
    let admin = server.token.clone();
    server.token = server.made("ann", Role::Operator, None);
    let run = server.run(ASKS).await;
    let cancelled = server.post(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "enough"})).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    server.token = admin;
    let audit = server.get("/api/v1/audit?limit=1").await.body;
    let entry = &audit["items"][0];
    assert_eq!((entry["by"].as_str(), entry["status"].as_u64()), (Some("ann"), Some(200)));
    assert_eq!(entry["path"], format!("/api/v1/runs/{run}/cancel"));
    let next = audit["next"].as_str().unwrap();
    let before = server.get(&format!("/api/v1/audit?cursor={next}")).await.body;
    assert_eq!((before["items"][0]["path"].as_str(), &before["next"]), (Some("/api/v1/runs"), &Json::Null));
    let events = server.get(&format!("/api/v1/runs/{run}/events")).await.body.to_string();
    assert!(events.contains("enough (by ann)"), "{events}");
    server.stop().await;
}
