//! How far commands are kept apart. The sandbox is real; a container is
//! played by a script that writes down what it was asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use wonder_actions::{Settings, Worker};
use wonder_core::Value;
use wonder_core::error::ErrorKind;
use wonder_core::input::{TaskOutcome, TaskReport};

use crate::support::{assert_failed, failure, job, perform, read, result, write_program};

fn with_environment(pairs: &[(&str, &str)]) -> Settings {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings { environment: pairs.collect::<BTreeMap<_, _>>(), ..Settings::default() }
}

async fn perform_in(folder: &Path, settings: Settings, node: &str) -> TaskReport {
    let (mut job, _output) = job(node, r#"{"x": "a b"}"#);
    job.workdir = folder.to_owned();
    Worker::new(settings).perform(job).await
}

fn stdout(report: TaskReport) -> String {
    result(report).get("stdout").and_then(Value::as_str).unwrap().to_owned()
}

/// The names of the variables that a command under this isolation sees.
async fn sees(settings: Settings, isolation: &str) -> Vec<String> {
    let node = format!("{{shell: {{command: [env, '-0'], env: {{OWN: x}}, isolation: {isolation}}}}}");
    let printed = stdout(perform_in(Path::new("/tmp"), settings, &node).await);
    let names = printed.split('\0').filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned());
    names.collect()
}

#[tokio::test]
async fn a_command_without_isolation_sees_what_is_ordinary_and_what_was_named() {
    let settings = with_environment(&[
        ("OPENAI_API_KEY", "sk-1"),
        ("WONDER_TOKEN", "t"),
        ("SSH_AUTH_SOCK", "/s"),
        ("MY_OWN", "1"),
        ("DB_PASSWORD", "p"),
        ("HTTPS_PROXY", "http://me:word@proxy"),
        ("http_proxy", "http://proxy"),
        ("LC_ALL", "C"),
        ("CARGO_HOME", "/c"),
    ]);
    let names = sees(settings.clone(), "none").await;
    for name in ["PATH", "HOME", "LC_ALL", "CARGO_HOME", "http_proxy", "OWN", "WONDER_RUN"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
    for name in ["OPENAI_API_KEY", "WONDER_TOKEN", "SSH_AUTH_SOCK", "MY_OWN", "DB_PASSWORD", "HTTPS_PROXY"] {
        assert!(!names.iter().any(|found| found == name), "{name} got through");
    }
    // The test itself is started by cargo, with variables that are nobody's business.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name == "CARGO_MANIFEST_DIR"));
    let passed = Settings { pass_env: vec!["MY_*".to_owned(), "DB_PASSWORD".to_owned()], ..settings };
    let names = sees(passed.clone(), "none").await;
    assert!(["MY_OWN", "DB_PASSWORD"].iter().all(|name| names.iter().any(|found| found == name)));
    let names = sees(passed, "process").await;
    assert!(!names.iter().any(|name| name == "MY_OWN"), "with isolation only a file can name it");
}

#[tokio::test]
async fn the_client_of_a_container_finds_its_daemon_and_sees_no_keys() {
    let docker = docker("env > seen; exit 0");
    let settings = only(docker.path());
    let more = [("DOCKER_CONTEXT", "here"), ("CONTAINER_HOST", "there"), ("OPENAI_API_KEY", "sk-1")];
    let mut environment = settings.environment.clone();
    environment.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let work = tempfile::tempdir().unwrap();
    perform_in(work.path(), Settings { environment, ..settings }, IN_A_CONTAINER).await;
    let seen = read(&docker.path().join("seen"));
    assert!(seen.contains("DOCKER_CONTEXT=here\n") && seen.contains("CONTAINER_HOST=there\n"), "{seen}");
    assert!(!seen.contains("sk-1") && !seen.contains("CARGO_MANIFEST_DIR"), "{seen}");
}

#[tokio::test]
async fn a_process_sees_a_clean_environment() {
    let settings = with_environment(&[("LEAK", "leaked"), ("LANG", "C"), ("TMPDIR", "/tmp")]);
    let node = r#"{shell: {command: ["env"], env: {OWN: "{{ input.x }}"}, isolation: process}}"#;
    let printed = stdout(perform_in(Path::new("/tmp"), settings, node).await);
    let names: Vec<&str> =
        printed.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let known = ["PATH", "HOME", "LANG", "TMPDIR", "OWN"];
    for name in &names {
        assert!(known.contains(name) || name.starts_with("WONDER_"), "{name} got through");
    }
    assert!(names.contains(&"PATH") && names.contains(&"WONDER_RUN") && printed.contains("OWN=a b\n"));
}

#[tokio::test]
async fn a_process_has_the_limits_it_is_given_and_some_it_is_not() {
    let show = r#""ulimit -t; ulimit -v; ulimit -n; ulimit -c""#;
    let node =
        format!("{{shell: {{command: {show}, isolation: process, limits: {{cpu: 5, memory: 1073741824}}}}}}");
    let printed = stdout(perform(&node, "{}").await);
    let files: Vec<&str> = printed.lines().collect();
    assert_eq!((files[0], files[1], files[3]), ("5", "1048576", "0"));
    assert!(files[2].parse::<u64>().unwrap() <= 1_024);
    let node = format!("{{shell: {{command: {show}, limits: {{files: 50}}}}}}");
    assert!(
        stdout(perform(&node, "{}").await).contains("\n50\n"),
        "a written limit holds without isolation too"
    );
}

#[tokio::test]
async fn too_much_memory_or_processor_time_ends_a_process() {
    // Hands a process more than it may hold.
    let node = r#"{shell: {command: "head -c 400000000 /dev/zero | tail -c 300000000 | wc -c",
                   isolation: process, limits: {memory: 100000000}}}"#;
    let printed = perform(node, "{}").await;
    match printed.outcome {
        TaskOutcome::Completed { result } => {
            assert_ne!(result.get("stdout"), Some(&Value::str("300000000\n")))
        }
        outcome => assert!(matches!(outcome, TaskOutcome::Failed { .. }), "{outcome:?}"),
    }
    let failed = failure(
        perform(r#"{shell: {command: "while :; do :; done", isolation: process, limits: {cpu: 1}}}"#, "{}")
            .await,
    );
    assert_eq!(failed.kind, ErrorKind::ShellExit);
    assert!(failed.details.get("signal").is_some(), "{failed}");
}

/// Whether bubblewrap may do here what it does. `make test` installs it; where the machine forbids it, a
/// sandboxed command has to say so.
async fn may_sandbox() -> bool {
    let output = Command::new("bwrap").args(["--ro-bind", "/", "/", "--unshare-pid", "true"]).output();
    let allowed = output.expect("bubblewrap is here: make tools").status.success();
    if !allowed {
        let node = r#"{shell: {command: "true", isolation: sandbox}}"#;
        let report = perform_in(Path::new("/tmp"), Settings::default(), node).await;
        assert_failed(report, ErrorKind::Internal, "user namespaces");
    }
    allowed
}

#[tokio::test]
async fn a_sandbox_can_write_only_its_directory_and_reach_nobody() {
    if !may_sandbox().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let line = format!(
        "echo in > inside; (echo out > {}) 2>/dev/null || echo kept; ls -A /tmp | wc -l; \
         cat /proc/net/dev | grep -c -v -e lo: -e face -e Inter; echo $$; cat",
        outside.path().display()
    );
    let node =
        format!(r#"{{shell: {{command: "{line}", stdin: "fed {{{{ input.x }}}}", isolation: sandbox}}}}"#);
    let printed = stdout(perform_in(folder.path(), Settings::default(), &node).await);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines[0], lines[1], lines[2]), ("kept", "1", "0"), "{printed}");
    assert!(lines[3].parse::<u32>().unwrap() < 10, "it has process numbers of its own: {printed}");
    assert_eq!(lines[4], "fed a b");
    assert_eq!(read(&folder.path().join("inside")), "in\n");
    assert_eq!(read(outside.path()), "");
}

#[tokio::test]
async fn a_sandbox_sees_nothing_of_the_machine_but_what_commands_need() {
    if !may_sandbox().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("data/wonder");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("wonder.db"), "rows").unwrap();
    std::fs::write(folder.path().join("work.txt"), "work").unwrap();
    std::fs::create_dir(folder.path().join(".ssh")).unwrap();
    std::fs::write(folder.path().join(".ssh/id"), "key").unwrap();
    std::fs::write(folder.path().join(".netrc"), "password").unwrap();
    let person = folder.path().to_str().unwrap();
    let sees =
        |path: &str| format!("(cat {path} || ls -A {path}/) 2>/dev/null | head -c 20; echo \"<{path}\"");
    let places = [
        "work.txt",
        "data/wonder",
        "data/wonder/wonder.db",
        ".ssh",
        ".netrc",
        "/etc/shadow",
        "/root",
        "/home",
        "/var",
        "/run",
        "/sys",
        "/etc/ssh",
    ];
    let line = places.map(sees).join("; ");
    let node = format!(r#"{{shell: {{command: {line:?}, isolation: sandbox}}}}"#);
    let settings = Settings { hidden: vec![home.clone()], ..with_environment(&[("HOME", person)]) };
    let printed = stdout(perform_in(folder.path(), settings.clone(), &node).await);
    let expected: String = places
        .iter()
        .map(|place| if *place == "work.txt" { format!("work<{place}\n") } else { format!("<{place}\n") })
        .collect();
    assert_eq!(printed, expected);

    let inside = home.join("work");
    std::fs::create_dir(&inside).unwrap();
    let node = r#"{shell: {command: "true", isolation: sandbox}}"#;
    let report = perform_in(&inside, settings.clone(), node).await;
    assert_failed(report, ErrorKind::ShellExit, "lies in wonder's own directory");
    let report = perform_in(Path::new("/"), settings, node).await;
    assert_failed(report, ErrorKind::ShellExit, "the working directory is `/`");
}

#[tokio::test]
async fn a_program_that_a_sandbox_does_not_see_is_named_with_the_way_out() {
    if !may_sandbox().await {
        return;
    }
    let (tools, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_program(&tools.path().join("own-tool"), "#!/bin/sh\necho it runs\n");
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let settings = with_environment(&[("PATH", &path)]);
    let node = r#"{shell: {command: ["own-tool"], isolation: sandbox}}"#;
    assert_failed(
        perform_in(work.path(), settings.clone(), node).await,
        ErrorKind::ShellExit,
        "sandbox_read",
    );
    let shown = Settings { sandbox_read: vec![tools.path().to_owned()], ..settings };
    assert_eq!(stdout(perform_in(work.path(), shown, node).await), "it runs\n");
}

#[tokio::test]
async fn a_sandbox_is_stopped_with_all_that_is_in_it() {
    if !may_sandbox().await {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Out there, the name is how to find it.
    let mark = format!("sleep-{}", std::process::id());
    assert!(Command::new("cp").arg("/bin/sleep").arg(folder.path().join(&mark)).status().unwrap().success());
    let line = format!("setsid ./{mark} 1000 & echo ready; trap '' TERM; sleep 1000");
    let (mut job, mut output) =
        job(&format!(r#"{{shell: {{command: "{line}", isolation: sandbox}}}}"#), "{}");
    job.workdir = folder.path().to_owned();
    let cancel = job.cancel.clone();
    let task = tokio::spawn(async move {
        Worker::new(Settings { grace_ms: 200, ..Settings::default() }).perform(job).await
    });
    output.line_with("ready").await;
    cancel.cancel();
    assert_eq!(task.await.unwrap().outcome, TaskOutcome::Cancelled);
    for pid in pids_of(&mark) {
        crate::support::ends(&pid).await;
    }
}

/// Who runs a program whose path ends so.
fn pids_of(name: &str) -> Vec<String> {
    let all =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let numbers = all.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let runs = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(name))
    };
    numbers.filter(runs).collect()
}

#[tokio::test]
async fn without_bubblewrap_the_failure_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let settings = with_environment(&[("PATH", folder.path().to_str().unwrap())]);
    let report =
        perform_in(folder.path(), settings, r#"{shell: {command: "true", isolation: sandbox}}"#).await;
    assert_failed(report, ErrorKind::Internal, "apt install bubblewrap");
}

#[tokio::test]
async fn a_machine_that_forbids_sandboxes_is_told_from_a_failing_command() {
    let folder = tempfile::tempdir().unwrap();
    write_program(
        &folder.path().join("bwrap"),
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n",
    );
    let report =
        perform_in(folder.path(), only(folder.path()), r#"{shell: {command: "true", isolation: sandbox}}"#)
            .await;
    assert_failed(report, ErrorKind::Internal, "user namespaces");
}

const IN_A_CONTAINER: &str = r#"{shell: {command: ["tool", "{{ input.x }}"], isolation: container, image: "img:1",
    cwd: sub, env: {OWN: "{{ input.x }}", DOCKER_HOST: here}, limits: {cpu: 9, memory: 1000000, files: 77}, stdin: "fed"}}"#;

/// A folder with a `docker` that does this when it is asked to run something.
fn docker(run: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ncase $1 in\ninfo) exit 0;;\nkill) echo \"$2\" >> killed;;\n\
         run) printf '%s\\n' \"$@\" > asked; echo \"$OWN\" > own; {run};;\nesac\n"
    );
    let file = folder.path().join("docker");
    write_program(&file, &script);
    folder
}

fn only(folder: &Path) -> Settings {
    let path = format!("{}:/usr/bin:/bin", folder.display());
    with_environment(&[("PATH", &path)])
}

#[tokio::test]
async fn a_container_gets_its_directory_limits_and_variables_and_no_network() {
    let docker = docker("cat; echo; exit 0");
    let work = tempfile::tempdir().unwrap();
    let printed = stdout(perform_in(work.path(), only(docker.path()), IN_A_CONTAINER).await);
    assert_eq!(printed, "fed\n");
    let asked = read(&docker.path().join("asked"));
    let words: Vec<&str> = asked.lines().collect();
    let mount = format!("type=bind,source={},target=/workspace", work.path().display());
    for pair in [
        ["--network", "none"],
        ["--workdir", "/workspace/sub"],
        ["--mount", &mount],
        ["--env", "OWN"],
        ["--env", "WONDER_RUN"],
    ] {
        assert!(words.windows(2).any(|found| found == pair), "{pair:?} is not in {words:?}");
    }
    for word in
        ["--rm", "-i", "--memory=1000000", "--ulimit=cpu=9:9", "--ulimit=nofile=77:77", "DOCKER_HOST=here"]
    {
        assert!(words.contains(&word), "{word} is not in {words:?}");
    }
    assert_eq!(words[words.len() - 3..], ["img:1", "tool", "a b"]);
    assert_eq!(
        read(&docker.path().join("own")),
        "a b\n",
        "values go by the environment, not the command line"
    );
    assert!(!docker.path().join("killed").exists());
}

#[tokio::test]
async fn a_container_does_not_see_the_hosts_own_files() {
    let docker = docker("exit 0");
    let work = tempfile::tempdir().unwrap();
    let home = work.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let settings = Settings { hidden: vec![home.clone()], ..only(docker.path()) };
    let report = perform_in(work.path(), settings.clone(), IN_A_CONTAINER).await;
    assert!(matches!(report.outcome, TaskOutcome::Completed { .. }), "{report:?}");
    let asked = read(&docker.path().join("asked"));
    assert!(asked.lines().any(|word| word == "type=tmpfs,target=/workspace/home"), "{asked}");
    let report = perform_in(&home, settings, IN_A_CONTAINER).await;
    assert_failed(report, ErrorKind::ShellExit, "lies in wonder's own directory");
}

#[tokio::test]
async fn a_stopped_container_is_killed_by_name() {
    let docker = docker("trap '' TERM; echo ready; sleep 1000");
    let (mut job, mut output) = job(IN_A_CONTAINER, r#"{"x": 1}"#);
    let work = tempfile::tempdir().unwrap();
    job.workdir = work.path().to_owned();
    let cancel = job.cancel.clone();
    let settings = Settings { grace_ms: 100, ..only(docker.path()) };
    let task = tokio::spawn(async move { Worker::new(settings).perform(job).await });
    output.line_with("ready").await;
    cancel.cancel();
    assert_eq!(task.await.unwrap().outcome, TaskOutcome::Cancelled);
    let name = read(&docker.path().join("asked"))
        .lines()
        .skip_while(|word| *word != "--name")
        .nth(1)
        .unwrap()
        .to_owned();
    let killed = docker.path().join("killed");
    // The order to kill is given, not waited for.
    while std::fs::read_to_string(&killed).unwrap_or_default() != format!("{name}\n") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn without_a_container_runtime_the_failure_says_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("docker");
    write_program(&file, "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n");
    let settings = with_environment(&[("PATH", folder.path().to_str().unwrap())]);
    let failed = failure(perform_in(folder.path(), settings, IN_A_CONTAINER).await);
    assert_eq!(failed.kind, ErrorKind::Internal);
    for part in
        ["docker: Cannot connect to the Docker daemon", "podman: not on the PATH", "isolation: process"]
    {
        assert!(failed.message.contains(part), "{}", failed.message);
    }
}
