//! The document: it is OpenAPI 3.1 in its structure, complete in itself, and what routes answer is what it says.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::server::{ASKS, HELLO, Server, answer};

#[test]
fn it_is_openapi_and_names_only_what_it_has() {
    let document = wonder_server::document();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(path.starts_with('/'), "{path}");
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            assert!(["get", "post", "delete"].contains(&method.as_str()), "{name}");
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{name} has another's id"
            );
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_path: BTreeSet<&str> = parameters
                .iter()
                .filter(|p| p["in"] == "path")
                .map(|p| p["name"].as_str().unwrap())
                .collect();
            let written: BTreeSet<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(in_path, written, "{name}");
            for parameter in &parameters {
                assert!(parameter["schema"].is_object(), "{name}: {parameter}");
                assert_eq!(parameter["required"] == true, parameter["in"] == "path", "{name}: {parameter}");
            }
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with('2')), "{name}");
            for (status, response) in responses {
                assert!(response["description"].is_string(), "{name} {status}");
            }
        }
    }
    let text = document.to_string();
    for part in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(document["components"]["schemas"][name].is_object(), "there is no schema {name}");
    }
    // Every schema is one.
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let whole =
            json!({"components": document["components"], "$ref": format!("#/components/schemas/{name}")});
        assert!(jsonschema::validator_for(&whole).is_ok(), "{name}: {schema}");
    }
}

/// What the document says of an answer, or that it says nothing.
fn check(document: &Json, (method, route): (&str, &str), status: u16, body: &Json) {
    let response = &document["paths"][route][method]["responses"][status.to_string()];
    assert!(response.is_object(), "{method} {route} answered {status}, which is not in the document");
    let Some((_, content)) = response["content"].as_object().and_then(|content| content.iter().next()) else {
        return;
    };
    let schema = json!({"components": document["components"], "allOf": [content["schema"]]});
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {route} {status}: {}\n{body}", errors.join("\n"));
}

#[tokio::test]
async fn answers_are_as_the_document_says() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.body;
    let asks = server.post("/api/v1/runs?wait=30s", &json!({"file": ASKS})).await;
    check(&document, ("post", "/api/v1/runs"), asks.status.as_u16(), &asks.body);
    let run = asks.body["run"].as_str().unwrap().to_owned();
    let hello = server.post("/api/v1/runs?wait=30s", &json!({"file": HELLO, "input": {"who": "x"}})).await;
    let done = hello.body["run"].as_str().unwrap().to_owned();
    for (route, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            for id in [&run, &done] {
                let path =
                    route.replace("{run}", id).replace("{gate}", &format!("{id}:1")).replace("{token}", "1");
                let path = path.replace("{artifact}", "none").replace("{name}", "nobody");
                let asked =
                    server.request(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &path);
                let mut asked = asked.bearer_auth(&server.token);
                if method == "post" {
                    asked = asked.header("content-type", "application/json").body("{}");
                }
                let answer = answer(asked).await;
                assert!(answer.status.as_u16() < 500, "{method} {path}: {}", answer.body);
                check(&document, (method, route), answer.status.as_u16(), &answer.body);
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn the_pages_work_without_a_network() {
    let server = Server::start().await;
    for path in ["/", "/docs"] {
        let page = answer(server.request(Method::GET, path)).await;
        assert_eq!(page.status, 200);
        assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        let text = page.body.as_str().unwrap();
        assert!(
            !text.contains("http://") && !text.contains("https://") && !text.contains("<script"),
            "{path}"
        );
    }
    let unknown = server.get("/api/v1/nothing").await;
    assert_eq!((unknown.status.as_u16(), unknown.body["code"].as_str()), (404, Some("no_such_route")));
    let method = answer(server.request(Method::DELETE, "/api/v1/runs").bearer_auth(&server.token)).await;
    assert_eq!((method.status.as_u16(), method.body["code"].as_str()), (405, Some("wrong_method")));
    server.stop().await;
}
