//! Secrets get in where they are named, and out nowhere.

use std::sync::Arc;

use wonder_actions::{Secrets, Settings, Stream, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;

use crate::server::{Answer, Server};
use crate::support::{Output, assert_failed, failure, job, result};
use wonder_core::input::TaskReport;

#[derive(Debug)]
struct Safe;

impl Secrets for Safe {
    fn find(&self, name: &str) -> Option<String> {
        match name {
            "API_KEY" => Some("hunter2 & co".to_owned()),
            "PIN" => Some("123".to_owned()),
            _ => None,
        }
    }
}

async fn perform(node: &str) -> (TaskReport, Output) {
    let settings = Settings { secrets: Arc::new(Safe), ..Settings::default() };
    let (job, output) = job(node, "{}");
    (Worker::new(settings).perform(job).await, output)
}

#[tokio::test]
async fn a_secret_reaches_the_command_and_not_the_run() {
    // The count shows that the command had it.
    let node = r#"{shell: {command: "echo got $KEY; printf %s {{ secret.API_KEY }} | wc -c >&2; printf %s \"$KEY\" | base64",
                   env: {KEY: "{{ secret.API_KEY }}"}}}"#;
    let (report, mut output) = perform(node).await;
    let done = result(report);
    assert_eq!(done.get("stdout"), Some(&Value::str("got ***\n***\n")));
    assert_eq!(done.get("stderr").and_then(Value::as_str).map(str::trim), Some("12"));
    assert_eq!(output.rest(Stream::Stdout), ["got ***", "***"]);
}

#[tokio::test]
async fn a_secret_is_not_in_failures_or_notes() {
    let (report, _output) = perform(r#"{shell: "echo no {{ secret.API_KEY }} >&2; exit 1"}"#).await;
    let failed = failure(report);
    assert_eq!(failed.message, "the command ended with exit code 1: no ***");
    assert!(!failed.details.to_string().contains("hunter2"), "{}", failed.details);

    let server = Server::start(vec![Answer::status(404)]).await;
    let url = format!("{}/{{{{ secret.API_KEY }}}}", server.url());
    let (report, _output) =
        perform(&format!(r#"{{http_request: {{url: "{url}", allow_private: true}}}}"#)).await;
    assert_eq!(failure(report).message, format!("GET {}/*** answered 404 Not Found", server.url()));
    assert!(server.asked()[0].starts_with("GET /hunter2%20%26%20co "), "the server got it");

    let retry = "execution: {retry_policy: {max_attempts: 2, initial_delay: 1ms}}";
    let (_report, mut output) = perform(&format!(
        r#"{{mock: {{error: {{kind: network, message: "at {{{{ secret.API_KEY }}}}"}}, {retry}}}}}"#
    ))
    .await;
    assert!(output.rest(Stream::Note)[0].ends_with("ms: at ***"));
}

#[tokio::test]
async fn steps_hand_secrets_on_and_the_report_does_not() {
    let node = r#"{steps: [
        {ref: a, mock: {output: {key: "{{ secret.API_KEY }}"}}},
        {ref: b, shell: "printf %s {{ state.a.key }} | wc -c; echo {{ state.a.key }}"}]}"#;
    let (report, _output) = perform(node).await;
    let done = result(report);
    assert_eq!(done.get("stdout").and_then(Value::as_str).map(str::trim_start), Some("12\n***\n"));
}

#[tokio::test]
async fn a_secret_nobody_has_says_how_to_set_it() {
    let (report, _output) = perform(r#"{shell: "echo {{ secret.OTHER }}"}"#).await;
    assert_failed(
        report,
        ErrorKind::ExpressionError,
        "`OTHER` is not set: set the environment variable OTHER",
    );
    let (report, _output) = perform(r#"{shell: "echo {{ secret }}"}"#).await;
    assert_failed(report, ErrorKind::ExpressionError, "name the one it needs");
    // Not a secret at all, and too short to hide.
    let (report, _output) = perform(r#"{shell: "echo secret {{ secret.PIN }}"}"#).await;
    assert_eq!(result(report).get("stdout"), Some(&Value::str("secret 123\n")));
}
