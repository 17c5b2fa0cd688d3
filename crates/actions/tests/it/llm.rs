//! Model calls over real HTTP: in each of the formats, what is asked, what comes back, what it costs, what is tried
//! again, and what is never let out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wonder_actions::{Job, OutputLine, Secrets, Settings, Sink, Stream, TextDelta, Worker};
use wonder_core::Value;
use wonder_core::cost::Allowance;
use wonder_core::def::Prices;
use wonder_core::error::ErrorKind;
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_modelserver::{Script, Server};

use crate::artifacts::Keeper;
use crate::support::{Output, assert_failed, failure, job_of, json, result, task_with};

const KEY: &str = "sk-test-0123456789";
/// A profile of each format: its provider, its model, and the version in its path.
const FORMATS: [(&str, &str, &str); 4] = [
    ("openai_compatible", "qwen3", "v1"),
    ("openai", "gpt-5.2", "v1"),
    ("anthropic", "claude-opus-4-8", "v1"),
    ("gemini", "gemini-3-pro", "v1beta"),
];
const QUICK: &str = "execution: {retry_policy: {max_attempts: 3, initial_delay: 1ms}}";

#[derive(Debug)]
struct Keys;

impl Secrets for Keys {
    fn find(&self, name: &str) -> Option<String> {
        (name == "KEY").then(|| KEY.to_owned())
    }
}

async fn serve(turns: &str) -> Server {
    let script = format!("key: {KEY}\nturns:\n{turns}");
    Server::start(Script::read(&script).unwrap()).await.unwrap()
}

fn profile(server: &Server, (provider, model, version): (&str, &str, &str), more: &str) -> String {
    let url = format!("{}/{version}", server.url());
    format!(
        "models:\n  m: {{provider: {provider}, model: {model}, base_url: '{url}', \
         api_key: '{{{{ secret.KEY }}}}', prices: {{input: 1, output: 10, cached_input: 0.1}}{more}}}\n"
    )
}

/// A job that asks by this profile; `fields` are those of the call beside `model`.
fn asking(profile: &str, fields: &str, input: &str) -> (Job, Output) {
    let task = task_with(&format!("{{llm_call: {{model: m, {fields}}}}}"), profile);
    let (mut job, output) = job_of(task, input);
    let prices =
        Prices { input: 1_000_000, output: 10_000_000, cached_input: Some(100_000), cache_write: None };
    job.order.prices = [("m".into(), prices)].into();
    (job, output)
}

fn worker(server: &Server) -> Worker {
    let allow_hosts = vec![server.address.to_string()];
    Worker::new(Settings { secrets: Arc::new(Keys), allow_hosts, ..Settings::default() })
}

async fn ask(server: &Server, format: (&str, &str, &str), fields: &str) -> TaskReport {
    let (job, _output) = asking(&profile(server, format, ""), fields, r#"{"q": "What is a token?"}"#);
    worker(server).perform(job).await
}

/// What the server was asked, as it tells.
async fn journal(server: &Server) -> Json {
    let mut connection = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = "GET /journal HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn count(journal: &Json, what: &str) -> u64 {
    journal[what].as_u64().unwrap()
}

#[derive(Debug, Default)]
struct Shown(Mutex<Vec<String>>);

impl Sink for Shown {
    fn line(&self, line: OutputLine) {
        self.0.lock().unwrap().push(format!("line: {}", line.text));
    }

    fn delta(&self, delta: TextDelta) {
        self.0.lock().unwrap().push(delta.text);
    }
}

#[tokio::test]
async fn a_model_answers_in_every_format_and_its_text_is_shown_as_it_comes() {
    for format in FORMATS {
        let usage = "{input_tokens: 100, cached_input_tokens: 40, output_tokens: 7}";
        let server =
            serve(&format!("  - {{text: 'A small piece of text.', chunk_chars: 6, usage: {usage}}}")).await;
        let fields = "system: Be brief., prompt: 'Say: {{ input.q }}', max_tokens: 500";
        let (mut job, _output) =
            asking(&profile(&server, format, ""), fields, r#"{"q": "What is a token?"}"#);
        let shown = Arc::new(Shown::default());
        job.sink = shown.clone();
        let key = job.order.key(&job.task.steps[0].reference, 0);
        let report = worker(&server).perform(job).await;
        let spend = report.spend.clone();
        let answer = result(report);
        assert_eq!(answer.get("text"), Some(&Value::str("A small piece of text.")), "{format:?}");
        assert_eq!(answer.get("finish_reason"), Some(&Value::str("stop")));
        assert_eq!(answer.get("usage").unwrap().get("cached_input_tokens"), Some(&Value::Int(40)));
        assert!(answer.get("request_id").unwrap().as_str().is_some());
        let pieces = shown.0.lock().unwrap().clone();
        assert!(pieces.len() > 1 && pieces.concat() == "A small piece of text.", "{pieces:?}");
        assert_eq!(
            (spend.input_tokens, spend.cached_tokens, spend.output_tokens),
            (100, 40, 7),
            "{format:?}"
        );
        assert_eq!((spend.usd_micros, spend.calls), (60 + 4 + 70, 1));
        assert_eq!(spend.model_used.as_deref(), Some("m"));
        let asked = &journal(&server).await["requests"][0];
        let told = asked["body"].to_string();
        assert!(told.contains("Say: What is a token?") && told.contains("Be brief."), "{told}");
        let sent = asked["headers"]["idempotency-key"].as_str();
        assert_eq!(sent, (format.0 == "openai").then_some(&*key), "{format:?}");
    }
}

#[tokio::test]
async fn an_answer_fits_its_schema_or_is_a_violation_that_was_paid_for() {
    let schema = "output_schema: {type: object, required: [score], properties: {score: {type: integer}}, additionalProperties: false}";
    for format in FORMATS {
        let turns = "  - {json: {score: 7}, times: 1}\n  - {json: {points: 7}, usage: {input_tokens: 50, output_tokens: 5}}";
        let server = serve(turns).await;
        let fields = format!("prompt: Score it., {schema}");
        let answer = result(ask(&server, format, &fields).await);
        assert_eq!(answer.get("json"), Some(&json(r#"{"score": 7}"#)), "{format:?}");
        let report = ask(&server, format, &fields).await;
        assert_eq!((report.spend.usd_micros, report.spend.calls, report.tries), (100, 1, 0), "{format:?}");
        assert_failed(report, ErrorKind::ContractViolation, "does not fit its schema");
    }
}

#[tokio::test]
async fn what_a_response_changed_is_what_is_asked() {
    let server = serve("  - {text: ok}").await;
    let models = format!(
        "{}  other: {{provider: openai_compatible, model: other-1, base_url: '{}/v1', api_key: '{{{{ secret.KEY }}}}'}}\n  \
         unused: {{provider: openai, model: gpt-5.2, api_key: '{{{{ secret.NOT_SET }}}}'}}\n",
        profile(&server, FORMATS[0], ", fallbacks: [other, unused]"),
        server.url()
    );
    let (mut job, _output) = asking(&models, "prompt: Hello.", "{}");
    job.order.overrides.model = Some("other".into());
    job.order.overrides.system = Some("Be kind.".into());
    job.order.overrides.append = vec!["Answer in JSON.".into()];
    result(worker(&server).perform(job).await);
    let asked = &journal(&server).await["requests"][0]["body"];
    assert_eq!(asked["model"], "other-1");
    let told = asked.to_string();
    assert!(
        told.contains("Be kind.") && told.contains("Hello.") && told.contains("Answer in JSON."),
        "{told}"
    );
}

#[tokio::test]
async fn failures_have_their_kinds_and_only_what_the_world_broke_is_tried_again() {
    for format in FORMATS {
        let tried = |turns: &'static str, fields: &'static str| async move {
            let server = serve(turns).await;
            let report = ask(&server, format, &format!("prompt: Hi, {fields}")).await;
            (report, count(&journal(&server).await, "count"))
        };
        let (report, asked) =
            tried("  - {error: {status: 429, retry_after: 0}, times: 1}\n  - {text: ok}", QUICK).await;
        assert_eq!((report.tries, asked, report.spend.calls), (1, 2, 1), "{format:?}");
        result(report);
        let (report, asked) = tried("  - {error: {status: 529}, times: 2}\n  - {text: ok}", QUICK).await;
        assert_eq!((report.tries, asked), (2, 3), "{format:?}");
        result(report);
        let (report, asked) = tried(
            "  - {text: A longer answer than that, chunk_chars: 3, cut_after: 3, times: 1}\n  - {text: ok}",
            QUICK,
        )
        .await;
        assert_eq!((report.tries, asked), (1, 2), "{format:?}: a cut answer is not a whole one");
        assert_eq!(result(report).get("text"), Some(&Value::str("ok")));
        let (report, asked) = tried("  - {error: {status: 401}}", QUICK).await;
        assert_eq!((asked, failure(report).kind), (1, ErrorKind::Auth), "{format:?}");
        let (report, asked) = tried("  - {error: {status: 400}}", QUICK).await;
        assert_eq!((asked, failure(report).kind), (1, ErrorKind::HttpStatus), "{format:?}");
        let (report, asked) = tried("  - {error: {status: 404}}", QUICK).await;
        assert_eq!((asked, failure(report).status), (1, Some(404)), "{format:?}");
        let (report, asked) =
            tried("  - {refusal: I would rather not., usage: {input_tokens: 20, output_tokens: 4}}", QUICK)
                .await;
        assert_eq!((asked, report.spend.output_tokens), (1, 4), "{format:?}: a refusal is paid for");
        // Gemini has no refusals: what it does not say, a filter held back.
        let kind = if format.0 == "gemini" { ErrorKind::ContentFiltered } else { ErrorKind::ModelRefused };
        assert_eq!(failure(report).kind, kind, "{format:?}");
        let (report, asked) =
            tried("  - {json: {a: 1}, finish: length}", "max_tokens: 50, output_schema: {type: object}")
                .await;
        assert_eq!((asked, failure(report).kind), (1, ErrorKind::OutputTruncated), "{format:?}");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_and_its_connection_closed() {
    for format in FORMATS {
        let server = serve("  - {text: A longer answer than that, chunk_chars: 3, hang_after: 2}").await;
        let report = ask(&server, format, "prompt: Hi, timeout: 300ms").await;
        assert_eq!(report.spend.calls, 1);
        assert_failed(report, ErrorKind::Timeout, "llm_call took longer than 300 ms");
        for _ in 0..500 {
            // The one that asks is open itself.
            if count(&journal(&server).await, "open") == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(count(&journal(&server).await, "open"), 0, "{format:?}");
    }
}

#[tokio::test]
async fn a_key_goes_only_where_it_was_given_for_and_no_private_address_is_reached_unasked() {
    let server = serve("  - {text: ok}").await;
    let bare =
        format!("models:\n  m: {{provider: openai, model: gpt-5.2, base_url: '{}/v1'}}\n", server.url());
    let environment = [("OPENAI_API_KEY".to_owned(), "sk-of-openai-itself".to_owned())];
    let settings = Settings {
        allow_hosts: vec![server.address.to_string()],
        environment: environment.into(),
        ..Settings::default()
    };
    let report = Worker::new(settings).perform(asking(&bare, "prompt: Hi", "{}").0).await;
    assert_failed(report, ErrorKind::Auth, "OPENAI_API_KEY was not sent");
    let all = journal(&server).await;
    assert!(count(&all, "count") == 1 && !all.to_string().contains("sk-of-openai"), "{all}");
    let mine = profile(&server, FORMATS[0], "");
    let settings = Settings { secrets: Arc::new(Keys), ..Settings::default() };
    let report = Worker::new(settings).perform(asking(&mine, "prompt: Hi", "{}").0).await;
    assert_eq!(report.spend.calls, 0);
    assert_failed(report, ErrorKind::ContractViolation, "the setting `allow_hosts");
    let home = "models:\n  m: {provider: anthropic, model: claude-opus-4-8}\n";
    let report = Worker::new(Settings::default()).perform(asking(home, "prompt: Hi", "{}").0).await;
    assert_failed(report, ErrorKind::Auth, "set ANTHROPIC_API_KEY");
    let unset = mine.replace("secret.KEY", "secret.OTHER");
    let report = worker(&server).perform(asking(&unset, "prompt: Hi", "{}").0).await;
    assert_failed(report, ErrorKind::Auth, "the secret `OTHER` is not set");
}

#[tokio::test]
async fn a_key_that_comes_back_is_shown_nowhere() {
    for format in FORMATS {
        let turns = format!(
            "  - {{text: 'Your key is {KEY}.', chunk_chars: 7, times: 1}}\n  - {{error: {{status: 400, message: 'bad {KEY}'}}}}"
        );
        let server = serve(&turns).await;
        let more = ", headers: {X-Also: 'for {{ secret.KEY }}'}";
        for failing in [false, true] {
            let (mut job, _output) =
                asking(&profile(&server, format, more), "prompt: 'Is it {{ secret.KEY }}?'", "{}");
            let shown = Arc::new(Shown::default());
            job.sink = shown.clone();
            let report = worker(&server).perform(job).await;
            let told = format!("{report:?} {:?}", shown.0.lock().unwrap());
            assert!(!told.contains(KEY), "{told}");
            assert_eq!(matches!(report.outcome, TaskOutcome::Failed { .. }), failing, "{told}");
        }
        let asked = &journal(&server).await["requests"][0];
        assert_eq!(asked["headers"]["x-also"], format!("for {KEY}"), "it was sent all the same");
    }
}

#[tokio::test]
async fn a_conversation_is_a_list_that_a_text_names_and_images_are_sent_with_it() {
    let server = serve("  - {text: ok}").await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    std::fs::write(folder.path().join("id_rsa"), b"-----BEGIN").unwrap();
    let history = r#"{"history": [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "Two."}], "file": "id_rsa"}"#;
    let fields = "messages: '{{ input.history }}', prompt: And this?, images: [a.png]";
    let (mut job, _output) = asking(&profile(&server, FORMATS[0], ""), fields, history);
    job.workdir = folder.path().to_owned();
    result(worker(&server).perform(job).await);
    let asked = journal(&server).await["requests"][0]["body"]["messages"].clone();
    assert_eq!(asked.as_array().map(Vec::len), Some(3), "{asked:#}");
    assert_eq!((&asked[0]["content"], &asked[1]["role"]), (&Json::from("One?"), &Json::from("assistant")));
    assert!(asked[2].to_string().contains("data:image/png;base64,iVBORw0KGgpyZXN0"), "{asked:#}");
    let fields = "prompt: And this?, images: '{{ input.file }}'";
    let (mut job, _output) = asking(&profile(&server, FORMATS[0], ""), fields, history);
    job.workdir = folder.path().to_owned();
    assert_failed(
        worker(&server).perform(job).await,
        ErrorKind::ExpressionError,
        "is no PNG, JPEG, GIF or WebP",
    );
}

#[tokio::test]
async fn an_artifact_is_shown_by_its_name_and_by_its_reference() {
    let server = serve("  - {text: ok}").await;
    let keeper = Keeper::new();
    std::fs::write(keeper.work().join("shot"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    let reference = result(keeper.perform("{artifact_write: {name: shot, path: shot}}").await);
    keeper.perform("{artifact_write: {name: note, content: plain}}").await;
    let settings = || Settings {
        secrets: Arc::new(Keys),
        allow_hosts: vec!["127.0.0.1".to_owned()],
        ..keeper.settings()
    };
    let input = format!(r#"{{"shot": {reference}}}"#);
    for image in ["'artifact:shot'", "'{{ input.shot }}'", "'{{ input.shot.artifact }}'"] {
        let fields = format!("prompt: What is it?, images: [{image}]");
        let (job, _output) = asking(&profile(&server, FORMATS[0], ""), &fields, &input);
        result(Worker::new(settings()).perform(job).await);
    }
    let asked = journal(&server).await["requests"].clone();
    for request in asked.as_array().unwrap() {
        let shown = request["body"]["messages"].to_string();
        assert!(shown.contains("data:image/png;base64,iVBORw0KGgpyZXN0"), "{shown}");
    }
    for (image, why) in [("'artifact:note'", "is no PNG"), ("'artifact:none'", "has no artifact")] {
        let fields = format!("prompt: What is it?, images: [{image}]");
        let (job, _output) = asking(&profile(&server, FORMATS[0], ""), &fields, &input);
        assert_failed(Worker::new(settings()).perform(job).await, ErrorKind::ExpressionError, why);
    }
}

#[tokio::test]
async fn a_profile_says_what_every_call_has_and_a_budget_bounds_the_answer() {
    let server = serve("  - {text: ok}").await;
    let more = ", parameters: {temperature: 0.5, seed: 7, wire: chat}, max_output_tokens: 900";
    let (job, _output) = asking(&profile(&server, ("openai", "gpt-4o", "v1"), more), "prompt: Hi", "{}");
    result(worker(&server).perform(job).await);
    let (mut job, _output) = asking(&profile(&server, FORMATS[0], ""), "prompt: Hi", "{}");
    job.order.allowance = Allowance { usd_micros: 100_000, tokens: 9_000, calls: 1 };
    result(worker(&server).perform(job).await);
    let (mut job, _output) = asking(&profile(&server, FORMATS[0], ""), "prompt: Hi", "{}");
    job.order.prices.clear();
    let spend = worker(&server).perform(job).await.spend;
    assert_eq!((spend.usd_micros, spend.unpriced_calls, spend.calls), (0, 1, 1), "not known is not nothing");
    let asked = journal(&server).await["requests"].clone();
    assert_eq!((&asked[0]["wire"], &asked[0]["body"]["seed"]), (&Json::from("chat"), &Json::from(7)));
    assert_eq!(
        (&asked[0]["body"]["temperature"], &asked[0]["body"]["max_completion_tokens"]),
        (&Json::from(0.5), &Json::from(900))
    );
    assert!(asked[1]["body"].to_string().contains("8192"), "what was reserved is what it may answer");
}

#[tokio::test]
async fn a_provider_that_does_not_say_what_it_used_is_estimated() {
    for format in FORMATS {
        let server =
            serve("  - {text: A longer answer than that, usage: {input_tokens: 0, output_tokens: 0}}").await;
        let (job, mut output) = asking(&profile(&server, format, ""), "prompt: Hi", "{}");
        let spend = worker(&server).perform(job).await.spend;
        assert!(
            spend.input_tokens > 0 && spend.output_tokens > 0 && spend.usd_micros > 0,
            "{format:?}: {spend:?}"
        );
        output.line_with("does not say what it used").await;
    }
}

#[tokio::test]
async fn a_call_waits_for_its_rate_says_so_and_can_be_stopped() {
    let server = serve("  - {text: ok, usage: {input_tokens: 1, output_tokens: 1}}").await;
    let profile = profile(&server, FORMATS[0], ", rate: {rpm: 1}");
    let worker = worker(&server);
    result(worker.perform(asking(&profile, "prompt: Hi", "{}").0).await);
    let (job, mut output) = asking(&profile, "prompt: Hi", "{}");
    let cancel = job.cancel.clone();
    let waiting = tokio::spawn({
        let worker = worker.clone();
        async move { worker.perform(job).await }
    });
    output.line_with("for its `rate`").await;
    cancel.cancel();
    let report = waiting.await.unwrap();
    assert!(matches!(report.outcome, TaskOutcome::Cancelled), "{report:?}");
    assert_eq!((report.spend.calls, count(&journal(&server).await, "count")), (0, 1));
    assert!(output.rest(Stream::Note).is_empty(), "it is said once");
}
