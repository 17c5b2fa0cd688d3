//! Requests as a server sees them, answers as a task sees them, and what is tried again.

use tokio::io::AsyncWriteExt;
use wonder_actions::{Settings, Stream, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;
use wonder_core::input::{TaskOutcome, TaskReport};

use crate::server::{Answer, Server};
use crate::support::{assert_failed, failure, job, json, result};

/// What a worker reports on a request to this server; `fields` stand beside `url`.
async fn ask(server: &Server, path: &str, fields: &str) -> TaskReport {
    let node = format!(r#"{{http_request: {{url: "{}{path}", allow_private: true{fields}}}}}"#, server.url());
    let (job, _output) = job(&node, r#"{"x": "a/b?c&d é", "n": 3, "h": "two\r\nX-Evil: 1"}"#);
    Worker::new(Settings::default()).perform(job).await
}

const QUICK: &str = ", execution: {retry_policy: {max_attempts: 3, initial_delay: 1ms}}";

#[tokio::test]
async fn an_answer_has_status_headers_body_and_json() {
    let headers = "X-Mixed: One\r\nx-mixed: Two\r\n".to_owned();
    let server = Server::start(vec![Answer::Send(201, headers, r#"{"ok": true}"#.to_owned())]).await;
    let done = result(ask(&server, "/", "").await);
    assert_eq!(done.get("status"), Some(&Value::Int(201)));
    assert_eq!(done.get("json"), Some(&json(r#"{"ok":true}"#)));
    assert_eq!(done.get("body"), Some(&Value::str(r#"{"ok": true}"#)));
    assert_eq!(done.get("headers").unwrap().get("x-mixed"), Some(&Value::str("One, Two")));
    let server = Server::start(vec![Answer::ok("plain")]).await;
    assert_eq!(result(ask(&server, "/", "").await).get("json"), Some(&Value::Null));
}

#[tokio::test]
async fn a_request_is_what_the_file_says_with_values_kept_in_their_places() {
    let server = Server::start(vec![Answer::ok("")]).await;
    let fields = r#", method: post, query: {q: "{{ input.x }}", many: [1, "{{ input.n }}"], none: null},
        headers: {X-Own: "v {{ input.n }}"}, json: {a: ["{{ input.x }}", 1, true]}"#;
    result(ask(&server, "/p/{{ input.x }}?z={{ input.x }}", fields).await);
    let asked = server.asked().remove(0);
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let path = "/p/a%2Fb%3Fc%26d%20%C3%A9?z=a%2Fb%3Fc%26d%20%C3%A9&many=1&many=3&q=a%2Fb%3Fc%26d+%C3%A9";
    assert_eq!(head.lines().next().unwrap(), format!("POST {path} HTTP/1.1"));
    assert_eq!(body, r#"{"a":["a/b?c&d é",1,true]}"#);
    for line in ["x-own: v 3", "content-type: application/json", "user-agent: wonder/0.1.0"] {
        assert!(head.lines().any(|found| found.eq_ignore_ascii_case(line)), "{line} is not in {head}");
    }
    assert!(head.contains("idempotency-key: run-1/7/"), "{head}");
}

#[tokio::test]
async fn reading_has_no_key_and_a_written_key_wins() {
    let server = Server::start(vec![Answer::ok("")]).await;
    result(ask(&server, "/", "").await);
    result(ask(&server, "/", ", method: DELETE, headers: {Idempotency-Key: mine}").await);
    let asked = server.asked();
    assert!(!asked[0].contains("idempotency-key"));
    assert_eq!(asked[1].matches("idempotency-key: mine").count(), 1);
}

#[tokio::test]
async fn a_value_cannot_smuggle_a_header() {
    let server = Server::start(vec![Answer::ok("")]).await;
    let report = ask(&server, "/", r#", headers: {X-Own: "{{ input.h }}"}"#).await;
    assert_failed(report, ErrorKind::ExpressionError, "line break");
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn an_unexpected_status_is_a_failure_with_what_was_answered() {
    let server = Server::start(vec![Answer::status(404)]).await;
    let failed = failure(ask(&server, "/x?token=1", QUICK).await);
    assert_eq!(failed.kind, ErrorKind::HttpStatus);
    assert_eq!(failed.message, format!("GET {}/x answered 404 Not Found", server.url()));
    assert_eq!(failed.status, Some(404));
    assert_eq!(failed.details.get("body"), Some(&Value::str("said 404")));
    let done = result(ask(&server, "/", ", expect: [4xx]").await);
    assert_eq!(done.get("status"), Some(&Value::Int(404)));
}

#[tokio::test]
async fn mistakes_of_the_request_are_never_tried_again() {
    for status in [400, 401, 403, 404, 409, 422] {
        let server = Server::start(vec![Answer::status(status)]).await;
        let report = ask(&server, "/", QUICK).await;
        assert_eq!(report.tries, 0);
        assert_failed(report, ErrorKind::HttpStatus, &status.to_string());
        assert_eq!(server.asked().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn what_the_server_or_the_network_breaks_is_tried_again() {
    for broken in
        [Answer::status(500), Answer::status(503), Answer::status(429), Answer::HangUp, Answer::Break]
    {
        let server = Server::start(vec![broken.clone(), broken.clone(), Answer::ok("at last")]).await;
        let report = ask(&server, "/", QUICK).await;
        assert_eq!(report.tries, 2, "{broken:?}");
        assert_eq!(result(report).get("body"), Some(&Value::str("at last")));
        let keys: Vec<String> = server.asked();
        assert_eq!(keys.len(), 3);
    }
}

#[tokio::test]
async fn the_last_try_says_what_was_wrong() {
    let server = Server::start(vec![Answer::HangUp]).await;
    let report = ask(&server, "/", QUICK).await;
    assert_eq!((report.tries, server.asked().len()), (2, 3));
    let failed = failure(report);
    assert_eq!((failed.kind, failed.details.get("phase")), (ErrorKind::Network, Some(&Value::str("send"))));
    let server = Server::start(vec![Answer::Break]).await;
    assert_eq!(failure(ask(&server, "/", QUICK).await).details.get("phase"), Some(&Value::str("read")));
}

/// A port that nobody listens on.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_even_if_it_must_happen_once() {
    for effects in ["", ", effects: once"] {
        let node = format!(
            r#"{{http_request: {{url: "{}", method: POST, allow_private: true{effects}{QUICK}}}}}"#,
            nobody().await
        );
        let (job, mut output) = job(&node, "{}");
        let report = Worker::new(Settings::default()).perform(job).await;
        assert_eq!(report.tries, 2);
        let failed = failure(report);
        assert_eq!(
            (failed.kind, failed.details.get("phase")),
            (ErrorKind::Network, Some(&Value::str("connect")))
        );
        let notes = output.rest(Stream::Note);
        assert!(notes[0].starts_with("try 2 of 3 in ") && notes[0].contains("refused"), "{notes:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_a_network_failure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"220 this is not what you are looking for\r\n").await;
        }
    });
    let (job, _output) =
        job(&format!(r#"{{http_request: {{url: "{url}", allow_private: true{QUICK}}}}}"#), "{}");
    let failed = failure(Worker::new(Settings::default()).perform(job).await);
    assert_eq!(
        (failed.kind, failed.details.get("phase")),
        (ErrorKind::Network, Some(&Value::str("connect"))),
        "{failed}"
    );
}

#[tokio::test]
async fn what_must_happen_once_and_broke_on_the_way_is_not_known() {
    let once = format!(", method: POST, effects: once{QUICK}");
    for broken in [Answer::HangUp, Answer::Break, Answer::status(500), Answer::status(502)] {
        let server = Server::start(vec![broken.clone(), Answer::ok("")]).await;
        let report = ask(&server, "/", &once).await;
        assert_eq!((report.tries, server.asked().len()), (0, 1), "{broken:?}");
        assert_failed(report, ErrorKind::OutcomeUnknown, "it may have taken effect");
    }
    for (status, kind) in [(400, ErrorKind::HttpStatus), (429, ErrorKind::RateLimited)] {
        let server = Server::start(vec![Answer::status(status)]).await;
        let report = ask(&server, "/", &once).await;
        assert_eq!(server.asked().len(), 1);
        assert_failed(report, kind, "");
    }
    let server = Server::start(vec![Answer::ok("done")]).await;
    result(ask(&server, "/", &once).await);
}

#[tokio::test]
async fn a_server_that_says_when_to_come_back_is_obeyed() {
    let limited = Answer::Send(429, "Retry-After: 120\r\n".to_owned(), String::new());
    let server = Server::start(vec![limited]).await;
    let node = format!(r#"{{http_request: {{url: "{}", allow_private: true{QUICK}}}}}"#, server.url());
    let (job, mut output) = job(&node, "{}");
    let cancel = job.cancel.clone();
    let task = tokio::spawn(async move { Worker::new(Settings::default()).perform(job).await });
    output.line_with("try 2 of 3 in 120000 ms").await;
    cancel.cancel();
    assert_eq!(task.await.unwrap().outcome, TaskOutcome::Cancelled);

    let limited = Answer::Send(429, "Retry-After: 7\r\n".to_owned(), String::new());
    let server = Server::start(vec![limited]).await;
    let failed = failure(ask(&server, "/", ", execution: {retry_policy: {max_attempts: 1}}").await);
    assert_eq!((failed.kind, failed.retry_after_ms()), (ErrorKind::RateLimited, Some(7_000)));
}

#[tokio::test]
async fn a_server_that_never_answers_is_left_when_time_is_over() {
    let server = Server::start(vec![Answer::Stall]).await;
    let report = ask(&server, "/", ", timeout: 200ms").await;
    assert_eq!(report.tries, 0, "the action's own time is never tried again");
    assert_failed(report, ErrorKind::Timeout, "http_request took longer than 200 ms");
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let server = Server::start(vec![Answer::ok(&"x".repeat(1_001))]).await;
    let report = ask(&server, "/", ", max_bytes: 1000").await;
    assert_failed(report, ErrorKind::LimitExceeded, "more than 1000 bytes");
    result(ask(&server, "/", ", max_bytes: 1001").await);
}

#[tokio::test]
async fn no_larger_answer_is_read_than_a_result_may_have() {
    // It says that it will send more than that, and nobody waits for it.
    let huge = Answer::ok(&"x".repeat((16 << 20) + 1));
    let server = Server::start(vec![huge]).await;
    let report = ask(&server, "/", ", max_bytes: 1000000000").await;
    assert_failed(report, ErrorKind::LimitExceeded, "more than 16777216 bytes (`result_bytes_max`)");
}

#[tokio::test]
async fn a_value_does_not_leave_its_part_of_the_path() {
    let server = Server::start(vec![Answer::ok("")]).await;
    for way in ["..", ".", "%2e%2e"] {
        let node = format!(
            r#"{{http_request: {{url: "{}/a/{{{{ input.x }}}}/b", allow_private: true}}}}"#,
            server.url()
        );
        let (job, _output) = job(&node, &format!(r#"{{"x": "{way}"}}"#));
        let report = Worker::new(Settings::default()).perform(job).await;
        assert_failed(report, ErrorKind::ExpressionError, "another path");
    }
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn a_whole_number_keeps_all_its_digits() {
    let server = Server::start(vec![Answer::ok(r#"{"id": 12345678901234567890, "n": 7}"#)]).await;
    let done = result(ask(&server, "/", "").await);
    assert_eq!(done.get("json"), Some(&json(r#"{"id":"12345678901234567890","n":7}"#)));
}

#[tokio::test]
async fn redirects_are_followed_but_not_forever() {
    let end = Server::start(vec![Answer::ok("here")]).await;
    let server = Server::start(vec![Answer::redirect(302, "/two"), Answer::redirect(307, &end.url())]).await;
    let done =
        result(ask(&server, "/one", r#", headers: {Authorization: "Bearer x", Accept: text/plain}"#).await);
    assert_eq!(done.get("body"), Some(&Value::str("here")));
    assert!(
        server.asked()[1].starts_with("GET /two ") && server.asked()[1].contains("authorization: Bearer x")
    );
    assert!(!end.asked()[0].contains("Bearer"), "another server gets no credentials");
    assert!(end.asked()[0].contains("accept: text/plain"));

    let circle = Server::start(vec![Answer::redirect(302, "/again")]).await;
    assert_failed(ask(&circle, "/", QUICK).await, ErrorKind::HttpStatus, "more than 5 times");
    assert_eq!(circle.asked().len(), 6);

    let wanted = Server::start(vec![Answer::redirect(302, "/elsewhere")]).await;
    let done = result(ask(&wanted, "/", ", expect: [302]").await);
    assert_eq!(done.get("headers").unwrap().get("location"), Some(&Value::str("/elsewhere")));
}

#[tokio::test]
async fn an_address_may_come_as_a_value() {
    let server = Server::start(vec![Answer::ok("")]).await;
    let node = r#"{http_request: {url: "{{ input.base }}/v1/{{ input.id }}", allow_private: true}}"#;
    let (job, _output) = job(node, &format!(r#"{{"base": "{}", "id": "a/b"}}"#, server.url()));
    result(Worker::new(Settings::default()).perform(job).await);
    assert!(server.asked()[0].starts_with("GET /v1/a%2Fb "));
}
