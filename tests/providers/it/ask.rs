//! A model call of a case, performed by the real worker over real HTTP.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;
use wonder_actions::{Job, OutputLine, Secrets, Settings, Sink, TextDelta, Worker};
use wonder_core::Value;
use wonder_core::command::{Overrides, TaskOrder};
use wonder_core::cost::Allowance;
use wonder_core::event::TokenId;
use wonder_core::graph::Graph;
use wonder_core::input::TaskReport;

use crate::cases::Case;

const KEY: &str = "sk-test-0123456789";

/// A format, by one provider that speaks it.
#[derive(Debug)]
pub(crate) struct Format {
    /// Which column of the table it is in.
    pub(crate) column: usize,
    /// How it is called in paths; unique.
    pub(crate) name: &'static str,
    pub(crate) provider: &'static str,
    model: &'static str,
    version: &'static str,
    more: &'static str,
}

pub(crate) const COLUMNS: [&str; 5] =
    ["OpenAI chat", "OpenAI Responses", "Anthropic", "Gemini", "Ollama, compatible"];

pub(crate) const FORMATS: [Format; 6] = [
    Format {
        column: 0,
        name: "chat",
        provider: "openai",
        model: "gpt-5.2",
        version: "v1",
        more: ", parameters: {wire: chat}",
    },
    Format { column: 1, name: "responses", provider: "openai", model: "gpt-5.2", version: "v1", more: "" },
    Format {
        column: 2,
        name: "anthropic",
        provider: "anthropic",
        model: "claude-opus-4-8",
        version: "v1",
        more: "",
    },
    Format {
        column: 3,
        name: "gemini",
        provider: "gemini",
        model: "gemini-3-pro",
        version: "v1beta",
        more: "",
    },
    Format { column: 4, name: "ollama", provider: "ollama", model: "llama3.2", version: "v1", more: "" },
    Format {
        column: 4,
        name: "compatible",
        provider: "openai_compatible",
        model: "qwen3",
        version: "v1",
        more: "",
    },
];

/// Two attempts, so that it can be seen what is tried again, and hardly a wait between them.
const TWICE: &str = "execution: {retry_policy: {max_attempts: 2, initial_delay: 1ms}}";

#[derive(Debug)]
struct Keys;

impl Secrets for Keys {
    fn find(&self, name: &str) -> Option<String> {
        (name == "KEY").then(|| KEY.to_owned())
    }
}

pub(crate) fn worker() -> Worker {
    let allow_hosts = vec!["127.0.0.1".to_owned()];
    Worker::new(Settings { secrets: Arc::new(Keys), allow_hosts, ..Settings::default() })
}

/// Counts the pieces in which a text comes, and stops the call at the first if it is told to.
#[derive(Debug, Default)]
struct Pieces {
    count: AtomicUsize,
    stop: Option<CancellationToken>,
}

impl Sink for Pieces {
    fn line(&self, _line: OutputLine) {}

    fn delta(&self, _delta: TextDelta) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(stop) = &self.stop {
            stop.cancel();
        }
    }
}

pub(crate) struct Call {
    job: Job,
    pieces: Arc<Pieces>,
}

impl Call {
    pub(crate) fn of(case: &Case, format: &Format, server: &str) -> Call {
        let graph = graph(case, format, server);
        let task = graph.nodes[0].task().expect("a model call is a task").clone();
        let order = TaskOrder {
            run: "run-1".into(),
            token: TokenId(1),
            attempt: 1,
            node: "node".into(),
            task: task.name.clone(),
            version: None,
            input: Value::map([("input", input())]),
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
        let pieces = Arc::new(Pieces::default());
        let job = Job {
            order: Box::new(order),
            task,
            workdir: PathBuf::from("/"),
            cancel: CancellationToken::new(),
            sink: pieces.clone(),
            seed: 1,
        };
        Call { job, pieces }
    }

    /// The same, cancelled as soon as some of its text has come.
    pub(crate) fn stopped_at_the_first_piece(mut self) -> Call {
        let stop = Some(self.job.cancel.clone());
        self.pieces = Arc::new(Pieces { stop, ..Pieces::default() });
        self.job.sink = self.pieces.clone();
        self
    }

    /// What the worker reports, and in how many pieces the text came.
    pub(crate) async fn perform(self, worker: &Worker) -> (TaskReport, usize) {
        let report = worker.perform(self.job).await;
        (report, self.pieces.count.load(Ordering::Relaxed))
    }
}

/// A workflow with the call of this case as its only node.
pub(crate) fn graph(case: &Case, format: &Format, server: &str) -> Arc<Graph> {
    let Format { provider, model, version, more, name, .. } = format;
    let text = format!(
        "wonder: 1\nname: test\nnodes:\n  node:\n    llm_call: {{model: m, {}, {TWICE}}}\n\
         models:\n  m: {{provider: {provider}, model: {model}, base_url: '{server}/{}/{name}/{version}', \
         api_key: '{{{{ secret.KEY }}}}'{more}}}\n\
         actions:\n  weather: {{description: Tells the weather, mock: {{output: sunny}}, effects: none, \
         requires: {{type: object, required: [city], properties: {{city: {{type: string}}}}}}}}\n",
        case.call(),
        case.name,
    );
    let reading = wonder_spec::read_everything(&text, "test.yaml");
    let reading = reading.unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    reading.graphs[0].clone()
}

/// What calls can read: a conversation in which a tool was called.
fn input() -> Value {
    let text = r#"{"history": [
        {"role": "user", "content": "[tool_result] What is the weather in Paris?"},
        {"role": "assistant", "content": [{"type": "tool_call", "id": "call_1", "tool": "weather",
            "arguments": {"city": "Paris"}}]},
        {"role": "tool", "content": [{"type": "tool_result", "id": "call_1", "tool": "weather",
            "content": [{"type": "text", "text": "sunny"}]}]}
    ]}"#;
    Value::from_json_str(text).expect("a conversation")
}
