//! Model calls by the real binary, against a scripted provider: what is done about an answer that is of no use, what it
//! costs, what a killed host does again, and that no key is left anywhere.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use serde_json::Value;
use wonder_modelserver::{Script, Server};

use crate::place::{Place, Told, ended, until};

pub(crate) const KEY: &str = "sk-planted-0123456789abcdef";

/// A provider that serves until it is dropped.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
    _server: Server,
}

impl Provider {
    pub(crate) fn start(turns: &str) -> Provider {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let script = Script::read(&format!("key: {KEY}\nturns:\n{turns}")).expect("a script");
        let server = runtime.block_on(Server::start(script)).expect("a port");
        Provider { address: server.address, _runtime: runtime, _server: server }
    }

    pub(crate) fn journal(&self) -> Value {
        let mut connection = TcpStream::connect(self.address).expect("it listens");
        let head = b"GET /journal HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
        connection.write_all(head).expect("it listens");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers");
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    }

    pub(crate) fn count(&self) -> u64 {
        self.journal()["count"].as_u64().expect("a number")
    }

    /// Where its models are allowed and its key is found.
    pub(crate) fn place(&self) -> Place {
        let place = Place::new();
        place.file("wonder.toml", &format!("allow_hosts = [\"{}\"]\n", self.address));
        place.file(".env", &format!("MODEL_KEY={KEY}\n"));
        place
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn models(&self) -> String {
        let url = format!("{}/v1", self.url());
        let more = format!(
            "base_url: '{url}', api_key: '{{{{ secret.MODEL_KEY }}}}', prices: {{input: 1, output: 10, cached_input: 0.1}}"
        );
        format!(
            "models:\n  first: {{provider: anthropic, model: claude-opus-4-8, fallbacks: [second], {more}}}\n  \
             second: {{provider: openai_compatible, model: qwen3, {more}}}\n"
        )
    }
}

#[test]
fn a_refusal_goes_to_the_next_model_and_a_bad_answer_is_asked_for_again_and_all_of_it_is_paid() {
    let usage = "usage: {input_tokens: 100, cached_input_tokens: 50, output_tokens: 10}";
    let provider = Provider::start(&format!(
        "  - {{when: {{model: claude-opus-4-8}}, refusal: I would rather not., {usage}}}\n  \
         - {{when: {{contains: must fit this JSON Schema}}, json: {{score: 8}}, {usage}}}\n  \
         - {{json: {{points: 8}}, {usage}}}\n"
    ));
    let nodes = "nodes:\n  judge: {llm_call: {model: first, prompt: Score it., timeout: 1m, \
        output_schema: {type: object, required: [score], properties: {score: {type: integer}}}}, \
        output_mapping: {output.score: result.json.score}}\n";
    let told = Told::at(provider.place(), &format!("{nodes}{}", provider.models()), 0);
    assert_eq!(told.view["output"]["score"], 8, "{:#}", told.view);
    let changes: Vec<String> = told.changes().iter().map(|what| what.to_string().to_lowercase()).collect();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[0].contains("second") && changes[1].contains("stricter"), "{changes:?}");
    assert_eq!(provider.count(), 3);
    // 50 fresh at 1, 50 cached at 0.1, 10 out at 10: 155 millionths, three times.
    let cost = told.place.json(&["cost", &told.run], 0);
    assert!(cost.to_string().contains("465"), "{cost:#}");
    let page = told.place.run(&["cost", &told.run]).out;
    assert!(page.contains("first") && page.contains("second"), "{page}");
    assert_eq!(told.show()["metrics"]["mutations_applied"], 2);
}

#[test]
fn a_killed_host_asks_again_what_was_out_with_the_same_key_and_never_what_was_answered() {
    let provider = Provider::start(
        "  - {when: {contains: One}, text: first}\n  \
         - {when: {contains: Two}, text: A longer answer, chunk_chars: 3, hang_after: 2, times: 1}\n  \
         - {when: {contains: Two}, text: second}\n",
    );
    let place = provider.place();
    let url = format!("http://{}/v1", provider.address);
    let workflow = format!(
        "wonder: 1\nname: two\nnodes:\n  one: {{llm_call: {{model: m, prompt: One, timeout: 1m}}, next: [two]}}\n  \
         two: {{llm_call: {{model: m, prompt: Two, timeout: 1m}}, output_mapping: {{output.text: result.text}}}}\n\
         models:\n  m: {{provider: openai, model: gpt-5.2, base_url: '{url}', api_key: '{{{{ secret.MODEL_KEY }}}}'}}\n"
    );
    let file = place.file("two.yaml", &workflow);
    let mut owner = place.spawn(&["run", &file, "-o", "json"]);
    until("the second call is out", || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        provider.count() == 2
    });
    owner.kill().expect("it runs");
    let _ = owner.wait();
    let resumed = place.run(&["resume", "last", "-o", "json"]);
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    let view: Value = serde_json::from_str(&resumed.out).expect("JSON");
    assert_eq!(view["output"]["text"], "second", "{view:#}");
    let cost = place.run(&["cost", "last"]).out;
    assert!(cost.contains("not known: no prices are written"), "{cost}");
    assert_eq!(place.json(&["cost", "last"], 0)["total"]["unpriced_calls"], 2);
    let journal = provider.journal();
    assert_eq!(journal["count"], 3, "{journal:#}");
    let asked = journal["requests"].as_array().expect("requests");
    let key = |at: usize| asked[at]["headers"]["idempotency-key"].as_str().expect("a key").to_owned();
    assert_ne!(key(0), key(1));
    assert_eq!(key(1), key(2), "the same call has the same key");
}

#[test]
fn a_budget_stops_calls_before_they_are_made_and_needs_prices() {
    let provider = Provider::start("  - {text: ok, usage: {input_tokens: 10, output_tokens: 5}}\n");
    let node = "nodes:\n  a: {llm_call: {model: first, prompt: Hi, timeout: 1m}}\n";
    let budget = "budget: {usd: 0.000001, on_exceeded: fail}\n";
    let told = Told::at(provider.place(), &format!("{budget}{node}{}", provider.models()), 6);
    assert!(told.view.to_string().contains("budget_exceeded"), "{:#}", told.view);
    assert_eq!(provider.count(), 0, "nothing was asked");
    let told = Told::at(provider.place(), &format!("budget: {{usd: 1}}\n{node}{}", provider.models()), 0);
    assert_eq!(provider.count(), 1);
    let cost = told.place.json(&["cost", &told.run], 0).to_string();
    assert!(cost.contains("\"first\"") && told.view["cost_usd"] == 0.00006, "{cost} {:#}", told.view);
    let place = provider.place();
    let unpriced = provider.models().replace(", prices: {input: 1, output: 10, cached_input: 0.1}", "");
    let file =
        place.file("unpriced.yaml", &format!("wonder: 1\nname: u\nbudget: {{usd: 1}}\n{node}{unpriced}"));
    let refused = place.run(&["run", &file]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.err.contains("E0164"), "{refused:#?}");
    assert_eq!(provider.count(), 1);
}

#[test]
fn a_call_that_waits_for_its_rate_says_so_when_asked_why() {
    let provider = Provider::start("  - {text: ok, usage: {input_tokens: 10, output_tokens: 5}}\n");
    let place = provider.place();
    let models = provider.models().replace("fallbacks: [second],", "rate: {rpm: 1},");
    let node = "{llm_call: {model: first, prompt: Hi, timeout: 1h}";
    let workflow =
        format!("wonder: 1\nname: slow\nnodes:\n  a: {node}, next: [b]}}\n  b: {node}}}\n{models}");
    let file = place.file("slow.yaml", &workflow);
    let mut owner = place.spawn(&["run", &file]);
    until("the second call waits", || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        place.run(&["why", "last"]).out.contains("b waits for the rate of model profile first")
    });
    assert_eq!(place.json(&["why", "last"], 0)[0]["by"], "rate");
    owner.kill().expect("it runs");
    let _ = owner.wait();
    assert_eq!(provider.count(), 1);
    let why = place.run(&["why", "last"]).out;
    assert!(!why.contains("rate"), "nobody waits for it any more: {why}");
}

/// All bytes of all files below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(bytes_below(&path)),
            path => all.extend(std::fs::read(path).unwrap_or_default()),
        }
    }
    all
}

#[test]
fn a_key_that_is_planted_everywhere_is_left_nowhere() {
    let provider = Provider::start(&format!(
        "  - {{when: {{contains: fails}}, error: {{status: 400, message: 'no {KEY}'}}}}\n  \
         - {{text: 'You said {{last}}, with {KEY}', chunk_chars: 5}}\n"
    ));
    let place = provider.place();
    let models =
        provider.models().replace("fallbacks: [second],", "headers: {X-Also: '{{ secret.MODEL_KEY }}'},");
    let workflow = format!(
        "wonder: 1\nname: planted\nnodes:\n  a: {{llm_call: {{model: first, prompt: 'Is it {{{{ secret.MODEL_KEY }}}}?', timeout: 1m}}, next: [b]}}\n  \
         b: {{llm_call: {{model: first, prompt: 'It fails: {{{{ state.a.text }}}}', timeout: 1m}}}}\n{models}"
    );
    let file = place.file("planted.yaml", &workflow);
    let run = ended(place.command(&["run", &file]).output().expect("the binary starts"));
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert_eq!(provider.count(), 2);
    assert!(provider.journal().to_string().contains(KEY), "it was sent");
    let mut seen = format!("{}{}", run.out, run.err);
    for verb in ["show", "events", "logs", "why", "cost"] {
        let told = place.run(&[verb, "last"]);
        seen.push_str(&format!("{}{}", told.out, told.err));
    }
    assert!(seen.contains("***") && !seen.contains(KEY), "{seen}");
    let home = bytes_below(&place.home());
    assert!(!home.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "the key is in the home");
}
