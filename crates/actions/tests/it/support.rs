//! A task out of a few lines of YAML, a job for it, and what it puts out.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use wonder_actions::{Job, OutputLine, Sink, Stream, Worker};
use wonder_core::Value;
use wonder_core::command::{Overrides, TaskOrder};
use wonder_core::cost::Allowance;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::TokenId;
use wonder_core::graph::Task;
use wonder_core::input::{TaskOutcome, TaskReport};

/// The task of a workflow with one node, written as YAML.
pub(crate) fn task(node: &str) -> Arc<Task> {
    task_with(node, "")
}

/// The same, with more of the workflow: its models, say.
pub(crate) fn task_with(node: &str, more: &str) -> Arc<Task> {
    let text = format!("wonder: 1\nname: test\nnodes:\n  node: {node}\n{more}");
    let reading =
        wonder_spec::read_everything(&text, "test.yaml").unwrap_or_else(|p| panic!("{}", p.render(false)));
    let graph = &reading.graphs[0];
    graph.nodes[0].task().expect("a node that a worker performs").clone()
}

pub(crate) fn json(text: &str) -> Value {
    Value::from_json_str(text).unwrap()
}

#[derive(Debug)]
struct LineSender(UnboundedSender<OutputLine>);

impl Sink for LineSender {
    fn line(&self, line: OutputLine) {
        // Nobody listening any more is fine.
        let _ = self.0.send(line);
    }
}

/// The lines that a job puts out.
pub(crate) struct Output(UnboundedReceiver<OutputLine>);

impl Output {
    /// The next line that has this in it.
    pub(crate) async fn line_with(&mut self, part: &str) -> String {
        loop {
            let line = self.0.recv().await.unwrap_or_else(|| panic!("no line has {part:?}"));
            if line.text.contains(part) {
                return line.text;
            }
        }
    }

    /// The lines of this stream that are there and were not yet taken.
    pub(crate) fn rest(&mut self, stream: Stream) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(line) = self.0.try_recv() {
            if line.stream == stream {
                lines.push(line.text);
            }
        }
        lines
    }
}

/// A job for this node with this `input`, in a directory of its own choosing.
pub(crate) fn job(node: &str, input: &str) -> (Job, Output) {
    job_of(task(node), input)
}

pub(crate) fn job_of(task: Arc<Task>, input: &str) -> (Job, Output) {
    let (sender, output) = unbounded_channel();
    let order = TaskOrder {
        run: "run-1".into(),
        token: TokenId(7),
        attempt: 1,
        node: "node".into(),
        task: task.name.clone(),
        version: None,
        input: Value::map([("input", json(input))]),
        feedback: Value::Null,
        overrides: Overrides::default(),
        generation: 0,
        tries_before: 0,
        prices: Default::default(),
        allowance: Allowance::default(),
        may_mutate: false,
        rank: 0,
        timeout_ms: None,
    };
    let job = Job {
        order: Box::new(order),
        task,
        workdir: PathBuf::from("/tmp"),
        cancel: CancellationToken::new(),
        sink: Arc::new(LineSender(sender)),
        seed: 1,
    };
    (job, Output(output))
}

/// What a fresh worker reports on this node.
pub(crate) async fn perform(node: &str, input: &str) -> TaskReport {
    Worker::new(wonder_actions::Settings::default()).perform(job(node, input).0).await
}

pub(crate) fn result(report: TaskReport) -> Value {
    match report.outcome {
        TaskOutcome::Completed { result } => result,
        outcome => panic!("not completed: {outcome:?}"),
    }
}

pub(crate) fn failure(report: TaskReport) -> Failure {
    match report.outcome {
        TaskOutcome::Failed { failure, .. } => failure,
        outcome => panic!("not failed: {outcome:?}"),
    }
}

/// The kind and what is said in the message.
pub(crate) fn assert_failed(report: TaskReport, kind: ErrorKind, part: &str) {
    let failure = failure(report);
    assert_eq!(failure.kind, kind, "{failure}");
    assert!(failure.message.contains(part), "{:?} lacks {part:?}", failure.message);
}

/// In a network of its own that has nothing but a loopback, with these addresses on it: what would reach another machine
/// reaches us, and we see it.
const NETWORK: &str = "ip link set lo up && for a in 10.1.2.3 192.168.0.1 169.254.169.254; do ip addr add $a/32 dev lo; done; \
                       ip -6 addr add fd00::1/128 dev lo 2>/dev/null; exec \"$@\"";
const IN_NETWORK: &str = "WONDER_TEST_IN_OWN_NETWORK";

/// Does the rest of a test where nothing can be sent to any other machine: in this program, started once more in a
/// network of its own. Where there can be none the test fails, for it must not run elsewhere.
pub(crate) fn in_own_network<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    if std::env::var_os(IN_NETWORK).is_some() {
        let interfaces = read(Path::new("/proc/net/dev"));
        assert_eq!(interfaces.lines().skip(2).count(), 1, "there is more than a loopback:\n{interfaces}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(test());
    }
    // `it::guard::name_of_the_test::{{closure}}`
    let name = std::any::type_name_of_val(&test).split("::{{").next().unwrap();
    let name = name.split_once("::").unwrap().1;
    let mut command = std::process::Command::new("unshare");
    let root = rustix::process::geteuid().is_root();
    command.args(if root { &["--net"][..] } else { &["--net", "--user", "--map-root-user"] });
    command.args(["--", "sh", "-c", NETWORK, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(IN_NETWORK, "1");
    let output = command.output().expect("unshare is here (util-linux)");
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "the test failed in a network of its own, or there can be none here: it needs `ip` (make tools), and to be root \
         or to be allowed user namespaces\n{said}"
    );
}

/// Whether a process runs. One that has ended and that nobody has asked about yet does not.
pub(crate) fn runs(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    !matches!(state, Some("Z" | "X"))
}

/// Waits until a process has ended, which may be a moment after it was killed.
pub(crate) async fn ends(pid: &str) {
    for _ in 0..1_000 {
        if !runs(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} still runs");
}

/// Writes a script that can be run. Another process does it: a file that we have open for writing cannot be
/// run, and whatever any thread of ours starts meanwhile may hold it open for a moment longer.
pub(crate) fn write_program(path: &Path, text: &str) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).arg(text);
    assert!(command.status().unwrap().success());
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
