//! Handlers that a host adds: what they are given, what becomes of what they give back, and text that they
//! stream.

use std::sync::{Arc, Mutex};

use wonder_actions::{
    ActionContext, ActionHandler, Deltas, OutputLine, Performing, Secrets, Settings, Sink, Streamed,
    TextDelta, Worker,
};
use wonder_core::Value;
use wonder_core::command::TaskOrder;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::Work;
use wonder_core::task::ActionCall;

use crate::support::{assert_failed, job, result, task};

const TOOL: &str = "{mcp_tool: {server: files, tool: read, arguments: {path: '{{ input.path }}'}}}";

/// An MCP server that fails so often before it answers, and keeps the keys it was called with.
#[derive(Debug, Default)]
struct Server {
    failures: u32,
    keys: Mutex<Vec<String>>,
}

impl ActionHandler for Server {
    fn kinds(&self) -> &[&'static str] {
        &["mcp_tool"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        Performing::pending(async move {
            self.keys.lock().unwrap().push(context.key());
            context.spend.add(&Spend { usd_micros: 5, calls: 1, ..Spend::default() });
            if self.keys.lock().unwrap().len() <= self.failures as usize {
                return Err(Failure::new(ErrorKind::Network, "the server is away").into());
            }
            let Some(Work::McpTool(tool)) = &context.call.action.work else {
                return Err(Failure::new(ErrorKind::Internal, "another kind").into());
            };
            let arguments = tool.arguments.as_ref().expect("it has arguments").render(context.scope);
            let arguments =
                arguments.map_err(|error| Failure::new(ErrorKind::ExpressionError, error.message))?;
            Ok(Value::map([("read", arguments)]))
        })
    }

    fn worst_case(&self, _order: &TaskOrder, _call: &ActionCall) -> Allowance {
        Allowance { usd_micros: 5, ..Allowance::default() }
    }
}

fn with(handler: Arc<dyn ActionHandler>) -> Worker {
    Worker::new(Settings { handlers: vec![handler], ..Settings::default() })
}

#[tokio::test]
async fn a_host_can_add_a_kind_and_the_worker_does_the_rest() {
    let node = TOOL.replace("}}}", "}, execution: {retry_policy: {max_attempts: 2, backoff: none}}}}");
    let server = Arc::new(Server { failures: 1, ..Server::default() });
    let worker = with(server.clone());
    assert!(worker.can_perform(&task(&node).steps[0].action.def.implementation));
    let (job, _output) = job(&node, r#"{"path": "/a"}"#);
    let key = job.order.key(&job.task.steps[0].reference, 0);
    let report = worker.perform(job).await;
    assert_eq!((report.tries, report.spend.usd_micros, report.spend.calls), (1, 10, 1));
    assert_eq!(result(report).to_string(), r#"{"read":{"path":"/a"}}"#);
    assert_eq!(*server.keys.lock().unwrap(), [key.clone(), key], "a try again is the same effect");
}

#[tokio::test]
async fn what_a_handler_may_cost_is_kept_within_the_allowance() {
    let (mut job, _output) = job(TOOL, r#"{"path": "/a"}"#);
    job.order.allowance = Allowance { usd_micros: 4, ..Allowance::default() };
    let report = with(Arc::new(Server::default())).perform(job).await;
    assert_eq!(report.spend.usd_micros, 0, "it was not called");
    assert_failed(report, ErrorKind::BudgetExceeded, "the next call may need $0.000005");
}

/// In place of the worker's own handler for mocks: streams these texts.
#[derive(Debug)]
struct Streaming(&'static [&'static str]);

impl ActionHandler for Streaming {
    fn kinds(&self) -> &[&'static str] {
        &["mock"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        self.0.iter().for_each(|text| context.delta(text));
        Performing::Done(Ok(Value::from(self.0.concat())))
    }
}

#[derive(Debug)]
struct Shown(Deltas);

impl Sink for Shown {
    fn line(&self, _line: OutputLine) {}

    fn delta(&self, delta: TextDelta) {
        self.0.send(delta);
    }
}

#[derive(Debug)]
struct OneSecret;

impl Secrets for OneSecret {
    fn find(&self, _name: &str) -> Option<String> {
        Some("sk-hunter2".to_owned())
    }
}

/// What a reader sees that reads when all is over, with room for so many pieces; and the task's result.
async fn shown(pieces: &'static [&'static str], pieces_max: usize) -> (Vec<Streamed>, Value) {
    let (mut job, _output) = job("{mock: {output: '{{ secret.KEY }}'}}", "{}");
    let deltas = Deltas::new(pieces_max);
    let mut reader = deltas.reader();
    job.sink = Arc::new(Shown(deltas));
    let settings = Settings { secrets: Arc::new(OneSecret), ..Settings::default() };
    let worker = Worker::new(Settings { handlers: vec![Arc::new(Streaming(pieces))], ..settings });
    let result = result(worker.perform(job).await);
    let mut seen = Vec::new();
    while let Some(streamed) = reader.next().await {
        seen.push(streamed);
    }
    (seen, result)
}

fn text(seen: &[Streamed]) -> String {
    let texts = seen.iter().map(|streamed| match streamed {
        Streamed::Text(delta) => delta.text.as_str(),
        Streamed::Missed(_) => "",
    });
    texts.collect()
}

#[tokio::test]
async fn streamed_text_hides_a_secret_that_is_split_between_two_pieces() {
    let (seen, result) = shown(&["the key is sk-hun", "ter", "2, and not sk-", "hunter"], 100).await;
    assert_eq!(text(&seen), "the key is ***, and not sk-hunter");
    assert_eq!(result, Value::str("the key is ***, and not sk-hunter"), "so does what is stored");
}

#[tokio::test]
async fn a_slow_reader_misses_pieces_is_told_so_and_holds_nobody_up() {
    let (seen, _) = shown(&["1.", "2.", "3.", "4.", "5.", "6.", "7.", "8.", "9."], 4).await;
    assert_eq!(seen[0], Streamed::Missed(5));
    assert_eq!(text(&seen), "6.7.8.9.");
}
