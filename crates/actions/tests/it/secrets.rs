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
            "LONG" => Some(LONG.to_owned()),
            "LINES" => Some(LINES.to_owned()),
            _ => None,
        }
    }

    fn known(&self) -> Vec<String> {
        vec!["never-named-by-anybody".to_owned()]
    }
}

const LONG: &str = "the-quick-brown-fox-jumps-over-the-lazy-dog-and-is-gone-before-anybody-has-seen-it";
const LINES: &str = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nQw==\n-----END KEY-----\n";

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

/// What a worker that has been through other tasks reports on this one, and all that it said.
async fn after(before: &[&str], node: &str) -> String {
    let worker = Worker::new(Settings { secrets: Arc::new(Safe), ..Settings::default() });
    for node in before {
        worker.perform(job(node, "{}").0).await;
    }
    let (job, mut output) = job(node, "{}");
    let report = worker.perform(job).await;
    let lines = [Stream::Stdout, Stream::Stderr, Stream::Note].map(|stream| output.rest(stream).join("\n"));
    format!("{report:?}\n{}", lines.join("\n"))
}

#[tokio::test]
async fn a_secret_that_one_task_had_is_hidden_in_every_other() {
    let naming = r#"{shell: "echo {{ secret.API_KEY }}"}"#;
    let said = after(&[naming], r#"{shell: "echo hunter2 '&' co; echo 'hunter2 & co' >&2; exit 3"}"#).await;
    assert!(!said.contains("hunter2 & co"), "{said}");
    let said = after(&[], r#"{shell: "echo never-named-by-anybody"}"#).await;
    assert!(said.contains("***") && !said.contains("never-named"), "{said}");
    let said = after(&[naming], r#"{mock: {output: {"hunter2 & co": [1, "x hunter2 & co"]}}}"#).await;
    assert!(said.contains("***") && !said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn a_secret_that_a_definition_names_is_hidden_before_the_task_that_names_it_has_run() {
    let text = "wonder: 1\nname: test\nnodes:\n  a: {shell: 'echo hunter2 \"&\" co', next: [{to: b}]}\n  \
                b: {shell: 'echo {{ secret.API_KEY }}'}\n";
    let reading = wonder_spec::read_everything(text, "test.yaml").unwrap();
    let graph = &reading.graphs[0];
    let worker = Worker::new(Settings { secrets: Arc::new(Safe), ..Settings::default() });
    worker.learn_secrets(graph);
    let (mut job, _output) = job("{mock: {output: {}}}", "{}");
    job.task = graph.nodes[0].task().unwrap().clone();
    assert_eq!(result(worker.perform(job).await).get("stdout"), Some(&Value::str("***\n")));
}

#[tokio::test]
async fn what_is_cut_shows_no_half_of_a_secret() {
    // Each cut falls into the secret, wherever it stands.
    let half = &LONG[LONG.len() / 2..];
    for padding in [4_096 - LONG.len() / 2, 4_096 - 3, 400 - LONG.len() / 2] {
        let node = format!(
            r#"{{shell: "echo {{{{ secret.LONG }}}}$(printf %{padding}s x | tr ' ' y) | tee /dev/stderr; exit 1"}}"#
        );
        let (report, mut output) = perform(&node).await;
        let failed = failure(report);
        let said = format!("{failed:?} {:?} {:?}", output.rest(Stream::Stdout), output.rest(Stream::Stderr));
        assert!(!said.contains(&half[half.len() - 8..]), "{padding}: {said}");
    }
    let server =
        Server::start(vec![Answer::Send(500, String::new(), format!("{LONG}{}", "y".repeat(4_060)))]).await;
    let node = format!(
        r#"{{http_request: {{url: "{}", allow_private: true, headers: {{a: "{{{{ secret.LONG }}}}"}},
            execution: {{retry_policy: {{max_attempts: 1}}}}}}}}"#,
        server.url()
    );
    let failed = failure(perform(&node).await.0);
    assert!(!failed.details.to_string().contains(&half[half.len() - 8..]), "{}", failed.details);
}

#[tokio::test]
async fn output_that_is_cut_off_ends_before_a_secret() {
    for room in [1, 10, LONG.len() - 1] {
        let bytes_max = 1_000 + room;
        let node = format!(
            r#"{{shell: {{command: "printf %1000s%s '' {{{{ secret.LONG }}}}", limits: {{output_bytes: {bytes_max}}}}}}}"#
        );
        let (report, mut output) = perform(&node).await;
        assert_eq!(failure(report).kind, ErrorKind::LimitExceeded);
        let lines = output.rest(Stream::Stdout);
        assert_eq!(lines.concat().trim_start(), "***", "{room}");
    }
}

#[tokio::test]
async fn a_secret_is_hidden_however_its_output_is_split() {
    // One byte a write, so that every way to split it occurs.
    let slowly = r#"{shell: {command: "cat >/dev/null; printf %s \"$KEY\" | while IFS= read -r l || [ -n \"$l\" ]; do
        printf %s \"$l\" | fold -w 1 | tr -d '\\n'; echo; done; echo end", stdin: x, env: {KEY: "{{ secret.LINES }}"}}}"#;
    let (report, mut output) = perform(slowly).await;
    assert_eq!(result(report).get("stdout"), Some(&Value::str("***end\n")));
    assert_eq!(output.rest(Stream::Stdout), ["***end"]);

    let long = r#"{shell: {command: "printf '%16380s' ' '; echo \"$KEY\"; echo \"user:$KEY\" | base64",
        env: {KEY: "{{ secret.LONG }}"}}}"#;
    let (report, mut output) = perform(long).await;
    let stdout = result(report).get("stdout").and_then(Value::as_str).unwrap().trim_start().to_owned();
    assert_eq!(stdout, "***\ndXNlcjp***Cg==\n");
    let shown = output.rest(Stream::Stdout).join("\n");
    assert_eq!(format!("{}\n", shown.trim_start()), stdout);
}

#[tokio::test]
async fn a_panic_does_not_show_a_secret() {
    #[derive(Debug)]
    struct Loud;
    impl wonder_actions::Sink for Loud {
        fn line(&self, _line: wonder_actions::OutputLine) {
            panic!("nobody wants hunter2 & co");
        }
    }
    let settings = Settings { secrets: Arc::new(Safe), ..Settings::default() };
    let (mut job, _output) = job(r#"{shell: "echo {{ secret.API_KEY }}"}"#, "{}");
    job.sink = Arc::new(Loud);
    let failed = failure(Worker::new(settings).perform(job).await);
    assert!(failed.message.contains("nobody wants ***"), "{}", failed.message);
}
