//! `serve` and `token`: the process that stays, found by the other verbs, and the tokens of its home.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use insta::assert_snapshot;
use serde_json::Value;

use crate::home::Home;

const QUICK: &str = "name: quick\nnodes: {a: {mock: {output: {quick: true}}}}\n";

/// A server on a free port; what it said of itself first.
fn serve(home: &Home) -> (Child, Value) {
    let mut child = home.start(&mut home.command(&["serve", "--listen", "127.0.0.1:0", "-o", "json"]));
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let said = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    (child, said)
}

fn get(said: &Value, path: &str, token: &str) -> String {
    let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Asks it to leave as a service manager does; its exit code.
fn terminate(child: Child) -> Option<i32> {
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    child.wait_with_output().unwrap().status.code()
}

#[test]
fn a_server_carries_on_what_others_start_and_what_it_finds() {
    let home = Home::with(QUICK);
    // Recorded, and nobody there to carry it on.
    let before = home.text(&["run", "flow.yaml", "--detach"]);
    let (server, said) = serve(&home);
    let token = said["token"].as_str().unwrap().to_owned();
    assert!(home.wonder(&["watch", &before]).starts_with("exit 0"));
    let beside = home.text(&["run", "flow.yaml", "--detach"]);
    assert!(home.wonder(&["watch", &beside]).starts_with("exit 0"));
    let list = get(&said, "/api/v1/runs", &token);
    assert!(list.starts_with("HTTP/1.1 200") && list.contains(&before) && list.contains(&beside), "{list}");
    // A token that is made and revoked beside it counts at once.
    let made = home.text(&["token", "create", "--role", "viewer", "--name", "vera"]);
    assert!(get(&said, "/api/v1/runs", &made).starts_with("HTTP/1.1 200"));
    home.wonder(&["token", "revoke", "vera"]);
    assert!(get(&said, "/api/v1/runs", &made).starts_with("HTTP/1.1 401"));
    assert_eq!(terminate(server), Some(0));
    let (again, said) = serve(&home);
    assert_eq!(said["token"], Value::Null, "a token is shown once");
    assert!(get(&said, "/api/v1/runs", &token).starts_with("HTTP/1.1 200"), "and goes on to hold");
    assert_eq!(terminate(again), Some(0));
}

#[test]
fn a_server_that_leaves_in_the_middle_loses_nothing() {
    let home = Home::with(
        "name: holds\nnodes:\n  hold: {shell: {command: \"touch began; until test -e go; do sleep 0.02; done\"}, timeout: 60s}\n",
    );
    let (server, _) = serve(&home);
    let run = home.text(&["run", "flow.yaml", "--detach"]);
    while !home.work().join("began").exists() {
        std::thread::yield_now();
    }
    assert_eq!(terminate(server), Some(0));
    home.write("go", "");
    let (server, _) = serve(&home);
    assert!(home.wonder(&["watch", &run]).starts_with("exit 0"));
    assert_eq!(terminate(server), Some(0));
}

#[test]
fn what_a_server_refuses_to_do() {
    let home = Home::new();
    assert_snapshot!("serve_open", home.wonder(&["serve", "--no-auth", "--listen", "0.0.0.0:0"]));
    assert_snapshot!(
        "serve_without_key",
        home.wonder(&["serve", "--tls-cert", "no.pem", "--tls-key", "no.pem"])
    );
}

#[test]
fn tokens_are_made_listed_and_revoked_without_a_server() {
    let home = Home::new();
    assert_snapshot!("token_none", home.wonder(&["token", "list"]));
    let text = home.text(&["token", "create", "--role", "operator", "--name", "ci", "--project", "docs"]);
    assert!(text.starts_with("wonder_") && text.len() == 50 && !text.contains(char::is_whitespace), "{text}");
    home.text(&["token", "create", "--role", "viewer", "--expires", "30d"]);
    assert_snapshot!("token_list", home.wonder(&["token", "list"]));
    assert_snapshot!("token_taken", home.wonder(&["token", "create", "--role", "viewer", "--name", "ci"]));
    assert_snapshot!("token_revoke", home.wonder(&["token", "revoke", "ci"]));
    assert_snapshot!("token_unknown", home.wonder(&["token", "revoke", "ci"]));
    assert_eq!(home.json(&["token", "list", "-o", "json"]).as_array().unwrap().len(), 1);
}
