//! Commands: what they are given, what they give back, and what counts as their failure.

use std::collections::BTreeMap;

use wonder_actions::{Settings, Stream, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;

use crate::support::{assert_failed, failure, job, json, perform, read, result, write_program};

#[tokio::test]
async fn a_command_gives_its_exit_code_output_and_json() {
    let done = result(perform(r#"{shell: "echo '{\"a\": [1]}'; echo oops >&2"}"#, "{}").await);
    let expected = r#"{"exit_code":0,"json":{"a":[1]},"stderr":"oops\n","stdout":"{\"a\": [1]}\n"}"#;
    assert_eq!(done, json(expected));
    let done = result(perform(r#"{shell: "printf plain"}"#, "{}").await);
    assert_eq!(done.get("json"), Some(&Value::Null), "no JSON is null, not absent");
}

#[tokio::test]
async fn a_value_in_a_command_line_is_one_word_and_never_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let pwned = folder.path().join("pwned");
    let hostile = [
        format!("$(touch {})", pwned.display()),
        format!("`touch {}`", pwned.display()),
        format!("'; touch {}; '", pwned.display()),
        format!("\"; touch {}; \"", pwned.display()),
        format!("x\ntouch {}\n", pwned.display()),
        "-e *  two".to_owned(),
    ];
    let lines =
        ["printf '%s' {{ input.x }}", "printf '%s' \\\"{{ input.x }}\\\"", "printf '%s' '{{ input.x }}'"];
    for line in lines {
        for value in &hostile {
            let input = Value::map([("x", Value::str(value.as_str()))]).to_string();
            let done = result(perform(&format!("{{shell: \"{line}\"}}"), &input).await);
            assert_eq!(done.get("stdout"), Some(&Value::str(value.as_str())), "{line}");
            assert!(!pwned.exists(), "{line} ran {value}");
        }
    }
}

#[tokio::test]
async fn a_list_is_a_program_and_its_arguments_without_a_shell() {
    let node = r#"{shell: ["printf", "<%s>", "{{ input.x }}", "$HOME", ";", ""]}"#;
    let done = result(perform(node, r#"{"x": "$(id) 'a b'"}"#).await);
    assert_eq!(done.get("stdout"), Some(&Value::str("<$(id) 'a b'><$HOME><;><>")));
}

#[tokio::test]
async fn a_value_is_no_part_of_a_program_that_another_shell_reads() {
    // A check finds these too; a definition of an older version was not checked for them.
    for node in [
        r#"{shell: ["sh", "-c", "echo {{ input.x }}"]}"#,
        r#"{shell: ["sudo", "bash", "-lc", "echo {{ input.x }}"]}"#,
    ] {
        let text = format!("wonder: 1\nname: test\nnodes:\n  node: {node}\n");
        let problems = wonder_spec::read_everything(&text, "test.yaml").unwrap_err().render(false);
        assert!(problems.contains("E0137") && problems.contains("as an argument"), "{problems}");
    }
    let fine = r#"{shell: ["sh", "-c", "printf %s \"$1\"", "sh", "{{ input.x }}"]}"#;
    let done = result(perform(fine, r#"{"x": "$(id)"}"#).await);
    assert_eq!(done.get("stdout"), Some(&Value::str("$(id)")));
}

#[tokio::test]
async fn a_nul_character_is_refused_before_anything_runs() {
    for node in [
        r#"{shell: "echo {{ input.x }}"}"#,
        r#"{shell: ["echo", "{{ input.x }}"]}"#,
        r#"{shell: {command: "true", env: {A: "{{ input.x }}"}}}"#,
    ] {
        assert_failed(perform(node, r#"{"x": "a\u0000b"}"#).await, ErrorKind::ExpressionError, "NUL");
    }
}

#[tokio::test]
async fn a_command_gets_its_directory_environment_and_input() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let node = r#"{shell: {command: "pwd; echo $A $B $FROM_SETTINGS ${GONE-unset}; cat", cwd: "{{ input.d }}",
                  env: {A: "{{ input.x }} b", B: 3, GONE: null}, stdin: "in {{ input.x }}\n"}}"#;
    let (mut job, _output) = job(node, r#"{"x": "v", "d": "sub"}"#);
    job.workdir = folder.path().to_owned();
    let environment = [("FROM_SETTINGS", "s"), ("GONE", "here")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let pass_env = vec!["FROM_*".to_owned(), "GONE".to_owned()];
    let settings = Settings { environment: BTreeMap::from(environment), pass_env, ..Settings::default() };
    let done = result(Worker::new(settings).perform(job).await);
    let expected = format!("{}/sub\nv b 3 s unset\nin v\n", folder.path().canonicalize().unwrap().display());
    assert_eq!(done.get("stdout").and_then(Value::as_str), Some(expected.as_str()));
}

#[tokio::test]
async fn a_command_knows_which_run_it_belongs_to_and_its_key() {
    let node = r#"{shell: "echo $WONDER_RUN $WONDER_NODE $WONDER_ATTEMPT $WONDER_IDEMPOTENCY_KEY"}"#;
    let (mut job, _output) = job(node, "{}");
    (job.order.attempt, job.order.generation) = (3, 2);
    let key = job.order.key(&job.task.steps[0].reference, 0);
    let done = result(Worker::new(Settings::default()).perform(job).await);
    assert_eq!(done.get("stdout"), Some(&Value::from(format!("run-1 node 3 {key}\n"))));
    assert!(key.ends_with("/2"));
}

#[tokio::test]
async fn an_unexpected_exit_code_is_a_failure_with_the_last_words() {
    let failed =
        failure(perform(r#"{shell: "echo out; echo one >&2; echo two >&2; echo >&2; exit 3"}"#, "{}").await);
    assert_eq!(failed.kind, ErrorKind::ShellExit);
    assert_eq!(failed.message, "the command ended with exit code 3: two");
    assert_eq!(failed.details, json(r#"{"exit_code":3,"stderr":"one\ntwo\n\n","stdout":"out\n"}"#));
    let expected = result(perform(r#"{shell: {command: "exit 3", expect_exit: [0, 3]}}"#, "{}").await);
    assert_eq!(expected.get("exit_code"), Some(&Value::Int(3)));
}

#[tokio::test]
async fn a_failure_carries_the_end_of_long_output() {
    let failed = failure(perform(r#"{shell: "seq 1 5000; exit 1"}"#, "{}").await);
    let tail = failed.details.get("stdout").and_then(Value::as_str).unwrap();
    assert!(tail.len() <= 4096 && tail.ends_with("4999\n5000\n"), "{} bytes", tail.len());
}

#[tokio::test]
async fn a_command_ended_by_a_signal_says_which() {
    let failed = failure(perform(r#"{shell: "kill -9 $$"}"#, "{}").await);
    assert_eq!((failed.kind, failed.details.get("signal")), (ErrorKind::ShellExit, Some(&Value::Int(9))));
    assert_eq!(failed.details.get("exit_code"), Some(&Value::Null));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_exit_code_127() {
    for isolation in ["none", "process"] {
        let node = format!(r#"{{shell: {{command: ["no-such-program-here"], isolation: {isolation}}}}}"#);
        let failed = failure(perform(&node, "{}").await);
        assert_eq!(failed.kind, ErrorKind::ShellExit);
        assert_eq!(failed.details.get("exit_code"), Some(&Value::Int(127)), "{isolation}");
        assert!(failed.message.contains("no program no-such-program-here"), "{}", failed.message);
    }
    let node = r#"{shell: {command: "true", cwd: nowhere}}"#;
    assert_failed(perform(node, "{}").await, ErrorKind::ShellExit, "nowhere is not there");
}

#[tokio::test]
async fn a_program_may_be_given_by_its_path_from_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    write_program(&folder.path().join("tool.sh"), "#!/bin/sh\necho \"tool $1\"\n");
    for isolation in ["none", "process"] {
        let node =
            format!(r#"{{shell: {{command: ["./tool.sh", "{{{{ input.x }}}}"], isolation: {isolation}}}}}"#);
        let (mut job, _output) = job(&node, r#"{"x": "a b"}"#);
        job.workdir = folder.path().to_owned();
        let done = result(Worker::new(Settings::default()).perform(job).await);
        assert_eq!(done.get("stdout"), Some(&Value::str("tool a b\n")), "{isolation}");
    }
}

#[tokio::test]
async fn output_is_shown_line_by_line_while_it_comes() {
    let (job, mut output) = job(r#"{shell: "echo one; cat; printf end; echo err >&2"}"#, "{}");
    result(Worker::new(Settings::default()).perform(job).await);
    assert_eq!(output.rest(Stream::Stdout), ["one", "end"]);
}

#[tokio::test]
async fn a_line_is_shown_before_the_command_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (mut job, mut output) = job(r#"{shell: "mkfifo f; echo ready; cat f"}"#, "{}");
    job.workdir = folder.path().to_owned();
    let task = tokio::spawn(async move { Worker::new(Settings::default()).perform(job).await });
    output.line_with("ready").await;
    // It waits for this before it ends.
    let fifo = folder.path().join("f");
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "go")).await.unwrap().unwrap();
    assert_eq!(result(task.await.unwrap()).get("stdout"), Some(&Value::str("ready\ngo")));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let done = result(perform(r#"{shell: ["printf", "a\\377b"]}"#, "{}").await);
    assert_eq!(done.get("stdout"), Some(&Value::str("a\u{fffd}b")));
}

#[tokio::test]
async fn too_much_output_ends_the_command() {
    for (redirect, stream) in [("", "stdout"), (">&2", "stderr")] {
        let folder = tempfile::tempdir().unwrap();
        let line = format!("echo $$ > pid; yes {redirect}");
        let node = format!(r#"{{shell: {{command: "{line}", limits: {{output_bytes: 5000}}}}}}"#);
        let (mut job, _output) = job(&node, "{}");
        job.workdir = folder.path().to_owned();
        let failed = failure(Worker::new(Settings::default()).perform(job).await);
        assert_eq!(failed.kind, ErrorKind::LimitExceeded);
        assert!(failed.message.starts_with(stream) && failed.message.contains("5000"), "{}", failed.message);
        crate::support::ends(&read(&folder.path().join("pid"))).await;
    }
    let done =
        result(perform(r#"{shell: {command: "printf 12345", limits: {output_bytes: 5}}}"#, "{}").await);
    assert_eq!(done.get("stdout"), Some(&Value::str("12345")), "the limit itself is fine");
}

#[tokio::test]
async fn a_program_that_is_just_being_written_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tool");
    write_program(&path, "#!/bin/sh\necho done\n");
    let writing = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let retry = "execution: {retry_policy: {max_attempts: 50, initial_delay: 10ms, max_delay: 50ms}}";
    let (mut job, mut output) =
        job(&format!(r#"{{shell: {{command: ["./tool"], effects: once, {retry}}}}}"#), "{}");
    job.workdir = folder.path().to_owned();
    let task = tokio::spawn(async move { Worker::new(Settings::default()).perform(job).await });
    output.line_with("could not start ./tool now").await;
    drop(writing);
    assert_eq!(result(task.await.unwrap()).get("stdout"), Some(&Value::str("done\n")));
}

#[tokio::test]
async fn a_whole_number_that_is_printed_keeps_all_its_digits() {
    let done = result(perform(r#"{shell: "echo '[9007199254740993, 18446744073709551616]'"}"#, "{}").await);
    assert_eq!(done.get("json"), Some(&json(r#"[9007199254740993,"18446744073709551616"]"#)));
}

#[tokio::test]
async fn a_command_need_not_read_its_input() {
    let (mut job, _output) = job(r#"{shell: {command: "exec true", stdin: "{{ input.x }}"}}"#, "{}");
    let long = Value::map([("x", Value::from("x".repeat(900_000)))]);
    job.order.input = Value::map([("input", long)]);
    result(Worker::new(Settings::default()).perform(job).await);
}

#[tokio::test]
async fn a_missing_value_says_which_field_wants_it() {
    let report = perform(r#"{shell: {command: "true", stdin: "{{ input.nothing }}"}}"#, "{}").await;
    assert_failed(report, ErrorKind::ExpressionError, "`stdin`");
}
