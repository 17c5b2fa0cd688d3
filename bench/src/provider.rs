//! The model provider of the agents: the scripted one, as a process of its own, so that what it costs is not ours. And
//! the raw limit beside an agent: a bare client that sends the same conversations and reads the same answers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use serde_json::{Value as Json, json};

pub(crate) const KEY: &str = "sk-bench-0123456789abcdef";
/// What a turn of the long conversation says: about 2 000 tokens.
const LONG_BYTES: usize = 8_000;
/// Turns of each of many agents, the last of which answers; the first asks for four calls and the others for two.
pub(crate) const SHORT_TURNS: usize = 10;

/// The script of an agent that makes one cheap call a turn, so many times, and says so much more each time.
pub(crate) fn long_script(turns: usize) -> String {
    let line =
        "It went on, and then \"it\" said what a page of text would say at this place, more or less.\n";
    let text = format!("{{turn}}: {}", line.repeat(LONG_BYTES / line.len()));
    let call = json!({"tool": "note", "arguments": {"text": "so far"}});
    script(&[
        json!({"when": {"turn": turns + 1}, "text": "That is all."}),
        json!({"text": text, "chunk_chars": 400, "tool_calls": [call]}),
    ])
}

/// The script of an agent of ten turns and twenty calls.
pub(crate) fn short_script() -> String {
    let text = "What is known so far is this, and what is to be done next follows from it. ".repeat(3);
    let calls = |count: usize| {
        let call = |at: usize| json!({"tool": "note", "arguments": {"text": format!("note {at}")}});
        (0..count).map(call).collect::<Vec<Json>>()
    };
    script(&[
        json!({"when": {"turn": 1}, "text": text, "tool_calls": calls(4)}),
        json!({"when": {"turn": SHORT_TURNS}, "text": text}),
        json!({"text": text, "tool_calls": calls(2)}),
    ])
}

/// The script of an agent whose text says when it was sent. The delay lets whoever listens be there again.
pub(crate) fn stamped_script(turns: usize) -> String {
    let call = json!({"tool": "note", "arguments": {"text": "so far"}});
    script(&[
        json!({"when": {"turn": turns}, "text": "{now} it was", "delay_ms": 5}),
        json!({"text": "{now} it was", "delay_ms": 5, "tool_calls": [call]}),
    ])
}

fn script(turns: &[Json]) -> String {
    json!({"key": KEY, "turns": turns}).to_string()
}

/// A provider that serves until it is dropped.
pub(crate) struct Provider {
    child: Child,
    pub(crate) url: String,
}

impl Provider {
    pub(crate) fn start(dir: &Path, script: &str) -> Provider {
        let own = std::env::current_exe().expect("this is a file");
        let path = own.with_file_name("wonder-modelserver");
        assert!(path.exists(), "build it first: cargo build --release -p wonder-modelserver");
        let file = tempfile::NamedTempFile::new_in(dir).expect("a file");
        std::fs::write(file.path(), script).expect("a file");
        let mut command = Command::new(path);
        command.arg("--script").arg(file.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut url).expect("its address");
        Provider { child, url: url.trim().to_owned() }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The least that an agent costs: a conversation in memory, sent whole each turn and appended to. Nothing is stored.
pub(crate) struct Bare {
    client: reqwest::Client,
    url: String,
    messages: Vec<Said>,
}

#[derive(Clone, Serialize)]
#[serde(untagged)]
enum Said {
    User { role: &'static str, content: String },
    Model { role: &'static str, content: String, tool_calls: Vec<Json> },
    Tool { role: &'static str, content: &'static str, tool_call_id: Json },
}

#[derive(Serialize)]
struct Body<'b> {
    model: &'static str,
    messages: &'b [Said],
    tools: &'b [Json],
    tool_choice: &'static str,
    stream: bool,
    stream_options: Json,
}

pub(crate) fn client() -> reqwest::Client {
    // A provider that is there already is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

impl Bare {
    pub(crate) fn new(client: &reqwest::Client, url: &str) -> Bare {
        let messages = vec![Said::User { role: "user", content: crate::agents::PROMPT.to_owned() }];
        Bare { client: client.clone(), url: format!("{url}/v1/chat/completions"), messages }
    }

    /// One request, its answer read to the end, its calls answered at once. False if there were none.
    pub(crate) async fn turn(&mut self) -> bool {
        let schema =
            json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
        let function = json!({"name": "note", "description": "Notes it.", "parameters": schema});
        let body = Body {
            model: "scripted",
            messages: &self.messages,
            tools: &[json!({"type": "function", "function": function})],
            tool_choice: "auto",
            stream: true,
            stream_options: json!({"include_usage": true}),
        };
        let sent = self.client.post(&self.url).bearer_auth(KEY).header("content-type", "application/json");
        let sent = sent.body(serde_json::to_vec(&body).expect("JSON")).send().await;
        let mut response = sent.expect("it answers");
        assert!(response.status().is_success(), "{}", response.status());
        let (mut heard, mut rest) = (Heard::default(), Vec::new());
        while let Some(bytes) = response.chunk().await.expect("all of it") {
            rest.extend_from_slice(&bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                heard.line(&line);
            }
        }
        let calls = heard.calls;
        let ids: Vec<Json> = calls.iter().map(|call| call["id"].clone()).collect();
        self.messages.push(Said::Model { role: "assistant", content: heard.text, tool_calls: calls });
        let answers =
            ids.iter().map(|id| Said::Tool { role: "tool", content: "noted", tool_call_id: id.clone() });
        self.messages.extend(answers);
        !ids.is_empty()
    }
}

/// What a streamed answer says, put together.
#[derive(Default)]
struct Heard {
    text: String,
    calls: Vec<Json>,
}

impl Heard {
    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data: ") else { return };
        let Ok(event) = serde_json::from_slice::<Json>(data) else { return };
        let delta = &event["choices"][0]["delta"];
        self.text.push_str(delta["content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            if call.get("id").is_some() {
                let mut begun = call.clone();
                begun.as_object_mut().map(|begun| begun.remove("index"));
                self.calls.push(begun);
            } else if let Some(last) = self.calls.last_mut() {
                let more = call["function"]["arguments"].as_str().unwrap_or_default();
                let so_far = last["function"]["arguments"].as_str().unwrap_or_default();
                last["function"]["arguments"] = json!(format!("{so_far}{more}"));
            }
        }
    }
}
