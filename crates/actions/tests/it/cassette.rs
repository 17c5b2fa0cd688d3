//! What actions ask, as a cassette has it; and a worker that records and answers.

use std::path::Path;
use std::sync::Arc;

use wonder_actions::{Asked, Job, Settings, Stream, Tape, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;
use wonder_core::execution::{ExecutionRules, Next, TaskExecution};

use crate::support::{assert_failed, job, job_of, json, result, task_with};

/// What the first action of a node asks.
fn asked_with(node: &str, more: &str, input: &str) -> Result<Value, String> {
    let (job, _) = job_of(task_with(node, more), input);
    let rules = ExecutionRules::of_worker(&job.order, 0, None);
    let mut execution = TaskExecution::start(&job.order, job.task.clone(), rules);
    let Next::Try(next) = execution.next(|_| Default::default()) else { panic!("it asks nothing") };
    match Worker::new(Settings::default()).asked(next.call) {
        Ok(Asked::Outside(fields)) => Ok(fields),
        Ok(Asked::Nothing) => Ok(Value::Null),
        Err(failure) => Err(failure.message),
    }
}

fn asked(node: &str, input: &str) -> Value {
    asked_with(node, "", input).unwrap()
}

#[test]
fn a_command_is_what_is_run_and_what_it_is_given() {
    let line = asked(
        r#"{shell: {command: "echo {{ input.a }} done", env: {MODE: "{{ input.b }}", MY_TOKEN: x, OFF: null}, stdin: "in", expect_exit: [0, 3]}}"#,
        r#"{"a": "two words", "b": 7}"#,
    );
    assert_eq!(
        line,
        json(
            r#"{"command": "echo two words done", "values": ["two words"],
            "env": {"MODE": "7", "MY_TOKEN": "***", "OFF": null}, "stdin": "in", "expect_exit": [0, 3]}"#
        )
    );
    let list =
        asked(r#"{shell: {command: [ls, "{{ input.a }}"], isolation: sandbox, cwd: sub}}"#, r#"{"a": "x"}"#);
    assert_eq!(list, json(r#"{"command": ["ls", "x"], "cwd": "sub"}"#));
}

#[test]
fn a_request_has_no_credentials_and_no_key_of_its_own() {
    let request = asked(
        r#"{http_request: {method: post, url: "https://me:pass@a.example/{{ input.p }}?token=t&x=1", query: {q: [1, 2], api_key: k},
            headers: {Authorization: "Bearer {{ secret.T }}", X-Api-Key: k, X-Of: "{{ secret.T }}"}, json: {a: "{{ input.p }}"}, expect: [200]}}"#,
        r#"{"p": "a b"}"#,
    );
    assert_eq!(
        request,
        json(
            r#"{"method": "POST", "url": "https://me:***@a.example/a%20b?token=***&x=1",
            "query": {"q": ["1", "2"], "api_key": "***"},
            "headers": {"authorization": "***", "x-api-key": "***", "x-of": "secret.T"},
            "json": {"a": "a b"}, "expect": [200]}"#
        )
    );
    let whole = asked(r#"{http_request: {url: "{{ secret.BASE }}/x"}}"#, "{}");
    assert_eq!(whole, json(r#"{"method": "GET", "url": "secret.BASE/x"}"#));
}

const MODELS: &str = "models:\n  m: {provider: openai, model: gpt-5.2, base_url: 'https://u:p@llm.example/v1', \
    api_key: '{{ secret.KEY }}', parameters: {max_tokens: 9, seed: 4}}\n";

#[test]
fn a_model_call_is_the_neutral_request_whoever_is_asked_by_which_key() {
    let picture = "iVBORw0KGgo=";
    let call = format!(
        r#"{{llm_call: {{model: m, system: "Be {{{{ input.how }}}}.", images: ["https://a.example/p.png"], temperature: 0.5,
            messages: [{{role: user, content: [{{type: text, text: Hi}}, {{type: image, media_type: image/png, data: "{picture}"}}]}}],
            output_schema: {{type: object}}}}}}"#
    );
    let hash = "blake3:".to_owned() + &wonder_artifacts::Hash::of(b"\x89PNG\r\n\x1a\n").to_string();
    let expected = r#"{"profile": "m", "provider": "openai", "model": "gpt-5.2", "system": "Be kind.", "max_tokens": 9,
        "temperature": 0.5, "parameters": {"seed": 4}, "images": ["https://a.example/p.png"],
        "output_schema": {"type": "object"}, "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Hi"}, {"type": "image", "media_type": "image/png", "data": "HASH"}]}]}"#;
    assert_eq!(
        asked_with(&call, MODELS, r#"{"how": "kind"}"#).unwrap(),
        json(&expected.replace("HASH", &hash))
    );
    let path = "{llm_call: {model: m, prompt: Hi, images: [p.png]}}";
    let why = asked_with(path, MODELS, "{}").unwrap_err();
    assert!(why.contains("\"p.png\" is a file, which is not opened here"), "{why}");
}

#[test]
fn what_stays_within_the_host_asks_nobody() {
    assert_eq!(asked("{mock: {output: 1}}", "{}"), Value::Null);
    assert_eq!(asked("{artifact_write: {name: a, content: b}}", "{}"), Value::Null);
    let file = asked("{artifact_write: {name: a, path: 'out/{{ input.n }}'}}", r#"{"n": "x"}"#);
    assert_eq!(file, json(r#"{"name": "a", "path": "out/x"}"#));
}

fn worker(tape: Tape) -> (Worker, Arc<Tape>) {
    let tape = Arc::new(tape);
    tape.begin("run-1").unwrap();
    (Worker::new(Settings { tape: Some(tape.clone()), ..Settings::default() }), tape)
}

fn in_folder(node: &str, folder: &Path) -> Job {
    let (mut job, _) = job(node, "{}");
    job.workdir = folder.to_owned();
    job
}

#[tokio::test]
async fn a_failure_a_timeout_and_a_result_come_again_as_they_were_and_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let fails = "{shell: {command: 'echo ran >> log; echo why >&2; exit 3'}}";
    let hangs = "{shell: {command: 'echo ran >> log; sleep 60', timeout: 100ms}}";
    let (worker_, _) = worker(Tape::record(&tape).unwrap());
    let was = worker_.perform(in_folder(fails, folder.path())).await;
    let late = worker_.perform(in_folder(hangs, folder.path())).await;
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log(), "ran\nran\n");
    let (worker_, played) = worker(Tape::replay(&tape).unwrap());
    assert_eq!(worker_.perform(in_folder(fails, folder.path())).await.outcome, was.outcome);
    assert_eq!(worker_.perform(in_folder(hangs, folder.path())).await.outcome, late.outcome);
    assert_eq!((log().as_str(), played.troubles().len()), ("ran\nran\n", 0), "nothing ran again");
    assert_failed(late, ErrorKind::Timeout, "100 ms");
    let again = worker_.perform(in_folder(fails, folder.path())).await;
    assert_failed(
        again,
        ErrorKind::NotRecorded,
        "has one answer to this `shell` of `node`, and it was given before",
    );
    assert_eq!(played.troubles().len(), 1);
}

#[tokio::test]
async fn waits_between_tries_are_not_waited_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    // Nobody listens there, and the first wait is an hour.
    let node = "{http_request: {url: 'http://127.0.0.1:1/', allow_private: true, timeout: 300ms, \
        execution: {retry_policy: {max_attempts: 2, initial_delay: 1h}}}}";
    let (recording, _) = worker(Tape::record(&tape).unwrap());
    let was = recording.perform(job(node, "{}").0).await;
    // Another machine is slower, and waits for nothing all the same.
    let unhurried = node.replace("300ms", "1h");
    let (replaying, played) = worker(Tape::replay(&tape).unwrap());
    let (job, mut output) = job(&unhurried, "{}");
    let is = replaying.perform(job).await;
    assert!(output.rest(Stream::Note)[0].starts_with("try 2 of 2"), "the second try was asked for at once");
    assert_failed(was, ErrorKind::Timeout, "http_request took longer than");
    assert_failed(is, ErrorKind::Timeout, "http_request took longer than");
    assert!(played.troubles().is_empty(), "{:?}", played.troubles());
}

#[tokio::test]
async fn what_other_runs_ask_is_performed_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let (recording, tape_) = worker(Tape::record(&tape).unwrap());
    tape_.begun();
    let mut other = in_folder("{shell: {command: 'echo hi'}}", folder.path());
    other.order.run = "run-10".into();
    assert_eq!(result(recording.perform(other.clone()).await).get("stdout"), Some(&Value::str("hi\n")));
    assert_eq!(std::fs::read_dir(&tape).unwrap().count(), 1, "only that it is a cassette");
    let (replaying, _) = worker(Tape::replay(&tape).unwrap());
    assert_eq!(result(replaying.perform(other).await).get("stdout"), Some(&Value::str("hi\n")));
}
