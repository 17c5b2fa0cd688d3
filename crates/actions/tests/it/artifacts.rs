//! Artifacts: what is kept, what is read back, and what is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use wonder_actions::{
    ActionContext, ActionHandler, ArtifactCatalog, Artifacts, Content, Finding, NewArtifact, Performing,
    Secrets, Settings, Worker,
};
use wonder_artifacts::{Hash, Store};
use wonder_core::Value;
use wonder_core::artifact::Artifact;
use wonder_core::error::ErrorKind;
use wonder_core::input::TaskReport;

use crate::support::{failure, job, job_of, json, result, task_with};

/// A home with a store, and what earlier tasks of the run are said to have kept.
pub(crate) struct Keeper {
    folder: tempfile::TempDir,
    store: Store,
    kept: Arc<Kept>,
}

#[derive(Debug, Default)]
struct Kept(Mutex<BTreeMap<String, Artifact>>);

impl ArtifactCatalog for Kept {
    fn newest<'c>(&'c self, _run: &'c str, name: &'c str) -> Finding<'c> {
        let found = self.0.lock().unwrap().get(name).cloned();
        Box::pin(async move { Ok(found) })
    }
}

#[derive(Debug)]
struct OneSecret;

impl Secrets for OneSecret {
    fn find(&self, name: &str) -> Option<String> {
        (name == "KEY").then(|| "s3cr3t-value".to_owned())
    }

    fn known(&self) -> Vec<String> {
        vec!["s3cr3t-value".to_owned()]
    }
}

impl Keeper {
    pub(crate) fn new() -> Keeper {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let store = Store::at(folder.path().join("home/artifacts"));
        Keeper { folder, store, kept: Arc::default() }
    }

    pub(crate) fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            secrets: Arc::new(OneSecret),
            hidden: vec![self.folder.path().join("home"), self.work().join("hidden")],
            artifacts: Some(Artifacts { store: self.store.clone(), catalog: self.kept.clone() }),
            ..Settings::default()
        }
    }

    pub(crate) async fn perform(&self, node: &str) -> TaskReport {
        self.perform_with(self.settings(), node).await
    }

    /// What it kept is there for the next.
    async fn perform_with(&self, settings: Settings, node: &str) -> TaskReport {
        let (mut job, _output) = job(node, "{}");
        job.workdir = self.work();
        let report = Worker::new(settings).perform(job).await;
        for artifact in &report.artifacts {
            self.kept.0.lock().unwrap().insert(artifact.name.to_string(), artifact.clone());
        }
        report
    }

    fn read(&self, artifact: &Artifact) -> String {
        let hash: Hash = artifact.hash.parse().unwrap();
        String::from_utf8(self.store.read(&hash, 1 << 20).unwrap()).unwrap()
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn a_text_and_a_value_are_kept_and_read_back() {
    let keeper = Keeper::new();
    let report = keeper.perform(r##"{artifact_write: {name: report.md, content: "# Report"}}"##).await;
    let kept = report.artifacts.clone();
    let reference = result(report);
    assert_eq!(keeper.read(&kept[0]), "# Report");
    assert_eq!(text(&reference, "artifact"), format!("blake3:{}", Hash::of(b"# Report")));
    assert_eq!((text(&reference, "name"), text(&reference, "media_type")), ("report.md", "text/markdown"));
    assert_eq!(reference.get("bytes"), Some(&Value::Int(8)));
    assert_eq!(reference, kept[0].reference());

    let report = keeper.perform("{artifact_write: {name: data, content: {a: [1, true]}}}").await;
    assert_eq!(&*report.artifacts[0].media_type, "application/json");
    let by_address = format!("{{artifact_read: '{}'}}", text(&reference, "artifact"));
    for (node, expected) in [
        ("{artifact_read: report.md}", Value::str("# Report")),
        ("{artifact_read: {ref: 'artifact:report.md'}}", Value::str("# Report")),
        (by_address.as_str(), Value::str("# Report")),
        ("{artifact_read: data}", json(r#"{"a": [1, true]}"#)),
    ] {
        assert_eq!(result(keeper.perform(node).await), expected, "{node}");
    }
}

#[tokio::test]
async fn steps_see_what_those_before_them_kept_and_a_task_that_fails_keeps_nothing() {
    let keeper = Keeper::new();
    let steps = r#"steps:
      - {ref: keep, artifact_write: {name: note, content: hello}}
      - {ref: read, artifact_read: "{{ state.keep }}"}
      - {ref: again, artifact_read: note}"#;
    let report = keeper.perform(&format!("\n    {steps}")).await;
    assert_eq!(report.artifacts.len(), 1);
    assert_eq!(result(report), Value::str("hello"));
    let report = keeper.perform(&format!("\n    {steps}\n      - {{ref: no, shell: 'exit 3'}}")).await;
    assert!(report.artifacts.is_empty(), "{:?}", report.artifacts);
    assert_eq!(failure(report).kind, ErrorKind::ShellExit);
}

#[tokio::test]
async fn a_file_of_the_working_directory_is_kept_and_no_other() {
    let keeper = Keeper::new();
    let work = keeper.work();
    std::fs::create_dir(work.join("build")).unwrap();
    std::fs::write(work.join("build/log"), "fine").unwrap();
    std::fs::write(keeper.folder.path().join("outside"), "private").unwrap();
    std::fs::create_dir(work.join("hidden")).unwrap();
    std::fs::write(work.join("hidden/db"), "private").unwrap();
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, work.join(at)).unwrap();
    link("build/log", "near");
    link("../outside", "far");
    link("..", "up");
    link("hidden/db", "sly");
    for path in ["build/log", "near", "./build/../build/log"] {
        let report = keeper.perform(&format!("{{artifact_write: {{name: x, path: {path}}}}}")).await;
        assert_eq!(keeper.read(&report.artifacts[0]), "fine", "{path}");
    }
    let outside = keeper.folder.path().join("outside");
    let outside = outside.to_str().unwrap();
    for path in ["far", "up/outside", "../outside", outside, "hidden/db", "sly", "build", "none", "/dev/zero"]
    {
        let report = keeper.perform(&format!("{{artifact_write: {{name: x, path: '{path}'}}}}")).await;
        let failed = failure(report);
        assert_eq!(failed.kind, ErrorKind::ExpressionError, "{path}: {}", failed.message);
        assert!(failed.message.contains("path"), "{}", failed.message);
    }
}

#[tokio::test]
async fn names_that_lead_somewhere_are_refused() {
    let keeper = Keeper::new();
    for name in ["../x", "/etc/x", "a//b", "", "..", "artifact:x"] {
        // Not as it is written, which the check sees, but as it is filled in.
        let node = format!("{{artifact_write: {{name: \"{{{{ '{name}' }}}}\", content: x}}}}");
        let failed = failure(keeper.perform(&node).await);
        assert_eq!(failed.kind, ErrorKind::ExpressionError, "{name}: {}", failed.message);
    }
    for reference in ["none", "blake3:00", "../x", "blake3:../../../etc/passwd"] {
        let failed = failure(keeper.perform(&format!("{{artifact_read: '{reference}'}}")).await);
        assert_eq!(failed.kind, ErrorKind::ExpressionError, "{reference}: {}", failed.message);
    }
}

#[tokio::test]
async fn secrets_are_hidden_in_texts_values_files_and_names() {
    let keeper = Keeper::new();
    // Across the border of what is read at once.
    let long = format!("{}s3cr3t-value{}", "x".repeat((64 << 10) - 5), "y".repeat(100));
    std::fs::write(keeper.work().join("long"), &long).unwrap();
    for (node, expected) in [
        (r#"{artifact_write: {name: a, content: "key {{ secret.KEY }}"}}"#, "key ***".to_owned()),
        (r#"{artifact_write: {name: a, content: {k: ["{{ secret.KEY }}"]}}}"#, r#"{"k":["***"]}"#.to_owned()),
        ("{artifact_write: {name: a, path: long}}", long.replace("s3cr3t-value", "***")),
        (r#"{shell: 'printf s3cr3t-value > "$WONDER_ARTIFACTS/a"'}"#, "***".to_owned()),
    ] {
        let report = keeper.perform(node).await;
        assert_eq!(keeper.read(&report.artifacts[0]), expected, "{node}");
    }
    let report = keeper.perform(r#"{artifact_write: {name: "{{ secret.KEY }}.txt", content: x}}"#).await;
    assert_eq!(&*report.artifacts[0].name, "***.txt");
}

#[tokio::test]
async fn what_a_command_leaves_becomes_artifacts() {
    let keeper = Keeper::new();
    let node = r#"
    shell:
      command: |
        cd "$WONDER_ARTIFACTS" && mkdir plots && echo one > plots/first.txt && printf 'a\0b' > raw
        ln -s /etc/passwd link && mkfifo pipe && echo done"#;
    let report = keeper.perform(node).await;
    let names: Vec<&str> = report.artifacts.iter().map(|artifact| &*artifact.name).collect();
    assert_eq!(names, ["plots/first.txt", "raw"]);
    assert_eq!(&*report.artifacts[1].media_type, "application/octet-stream");
    let kept: Vec<Value> = report.artifacts.iter().map(Artifact::reference).collect();
    assert_eq!(result(report).get("artifacts"), Some(&Value::list(kept)));
    let raw = result(keeper.perform("{artifact_read: raw}").await);
    assert_eq!((text(&raw, "base64"), text(&raw, "media_type")), ("YQBi", "application/octet-stream"));

    let report = keeper.perform(r#"{shell: 'echo x > "$WONDER_ARTIFACTS/x"; exit 3'}"#).await;
    assert!(report.artifacts.is_empty(), "it failed");
    let done = result(keeper.perform("{shell: 'ls -A \"$WONDER_ARTIFACTS\"'}").await);
    assert_eq!((text(&done, "stdout"), done.get("artifacts")), ("", None), "it is fresh, and none is none");
    let out = keeper.folder.path().join("home/artifacts/out");
    assert_eq!(std::fs::read_dir(out).unwrap().count(), 0, "nothing stays behind");
}

#[tokio::test]
async fn isolated_commands_leave_artifacts_too() {
    let keeper = Keeper::new();
    for isolation in ["process", "sandbox"] {
        let node = format!(
            "{{shell: {{command: 'echo {isolation} > \"$WONDER_ARTIFACTS/it\"', isolation: {isolation}}}}}"
        );
        let report = keeper.perform(&node).await;
        if isolation == "sandbox" && report.artifacts.is_empty() {
            let failed = failure(report);
            assert!(failed.message.contains("bwrap") || failed.message.contains("sandbox"), "{failed}");
            continue;
        }
        assert_eq!(keeper.read(&report.artifacts[0]), format!("{isolation}\n"));
    }
}

#[tokio::test]
async fn a_type_says_what_must_hold() {
    let keeper = Keeper::new();
    let types = "artifact_types:\n  scores: {schema: {type: object, required: [total]}}\n  feed: {media_type: application/json}\n";
    let write = async |fields: &str| {
        let (job, _output) = job_of(task_with(&format!("{{artifact_write: {{{fields}}}}}"), types), "{}");
        Worker::new(keeper.settings()).perform(job).await
    };
    let report = write("name: a, type: scores, content: {total: 3}").await;
    assert_eq!(report.artifacts[0].artifact_type.as_deref(), Some("scores"));
    assert_eq!(&*report.artifacts[0].media_type, "application/json");
    assert_eq!(write("name: a, type: scores, content: '{\"total\": 3}'").await.artifacts.len(), 1);
    for bad in [
        "name: a, type: scores, content: {sum: 3}",
        "name: a, type: scores, content: plain",
        "name: a, type: feed, content: '{'",
        "name: a, type: \"{{ 'other' }}\", content: x",
    ] {
        let report = write(bad).await;
        assert!(report.artifacts.is_empty());
        assert_eq!(failure(report).kind, ErrorKind::ContractViolation, "{bad}");
    }
}

/// Keeps what it made, as a handler of a host does.
#[derive(Debug)]
struct Makes;

impl ActionHandler for Makes {
    fn kinds(&self) -> &[&'static str] {
        &["mcp_tool"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        Performing::pending(async move {
            let content = Content::Bytes(b"a large result".to_vec());
            Ok(context.keep_artifact(NewArtifact::named("tool/result"), content).await?.reference())
        })
    }
}

#[tokio::test]
async fn any_handler_can_keep_something() {
    let keeper = Keeper::new();
    let settings = Settings { handlers: vec![Arc::new(Makes)], ..keeper.settings() };
    let report = keeper.perform_with(settings, "{mcp_tool: {server: s, tool: t}}").await;
    assert_eq!(keeper.read(&report.artifacts[0]), "a large result");
    assert_eq!(result(report), keeper.kept.0.lock().unwrap()["tool/result"].reference());
    let nowhere = Settings { handlers: vec![Arc::new(Makes)], ..Settings::default() };
    let failed = failure(keeper.perform_with(nowhere, "{mcp_tool: {server: s, tool: t}}").await);
    assert!(failed.message.contains("keeps no artifacts"), "{failed}");
}

#[tokio::test]
async fn what_was_changed_or_is_too_large_to_read_is_not_given_out() {
    let keeper = Keeper::new();
    let big = std::fs::File::create(keeper.work().join("big")).unwrap();
    big.set_len((8 << 20) + 1).unwrap();
    assert_eq!(keeper.perform("{artifact_write: {name: big, path: big}}").await.artifacts.len(), 1);
    let failed = failure(keeper.perform("{artifact_read: big}").await);
    assert_eq!(failed.kind, ErrorKind::LimitExceeded);
    assert!(failed.message.contains("artifact_read_bytes_max"), "{failed}");

    let report = keeper.perform("{artifact_write: {name: a, content: abc}}").await;
    let hash = report.artifacts[0].hash.to_string();
    let file = keeper.folder.path().join("home/artifacts/files").join(&hash[..2]).join(&hash);
    std::fs::write(&file, "abd").unwrap();
    assert!(failure(keeper.perform("{artifact_read: a}").await).message.contains("damaged"));
    std::fs::remove_file(&file).unwrap();
    assert!(failure(keeper.perform("{artifact_read: a}").await).message.contains("not kept here"));
}

#[tokio::test]
async fn a_cancelled_task_stops_keeping() {
    let keeper = Keeper::new();
    std::fs::write(keeper.work().join("file"), "x").unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let node = "{artifact_write: {name: a, path: file}}";
    let (mut job, _output) = job(node, "{}");
    (job.workdir, job.cancel) = (keeper.work(), cancel);
    let report = Worker::new(keeper.settings()).perform(job).await;
    assert!(report.artifacts.is_empty());
    assert!(!Path::new(&keeper.folder.path().join("home/artifacts/files")).exists());
}
