//! Agents on the scripted provider: what one costs a turn as its conversation grows, what five hundred cost at once,
//! and how soon a watcher sees what a model says. The tool is a `mock`, which costs least: what is measured is the loop.
//!
//! Each is a process of its own (`wonder-bench part NAME …`), so that memory and processor time are those of this work.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use wonder_actions::{ActionContext, ActionHandler, Performing, Secrets};
use wonder_core::Value;
use wonder_engine::{Listen, Start};
use wonder_host::{Connection, Leaving, Options, Purpose, open};

use crate::bench_host::{BenchHost, run, workflow};
use crate::machine::{cpu_ms, peak_mb, rss_mb};
use crate::provider::{Bare, KEY, SHORT_TURNS, client, long_script, short_script};

pub(crate) const PROMPT: &str = "Look at what there is, note what matters, and say what is to be done.";

/// A workflow of one agent that may make so many turns.
pub(crate) fn agent(url: &str, turns: usize) -> Start {
    workflow(&format!(
        "wonder: 1\nname: bench\nnodes:\n  work:\n    agent: {{model: m, prompt: '{PROMPT}', tools: [note], \
         approve: {{default: never}}, max_turns: {turns}}}\n\
         tools:\n  note: {{description: Notes it., mock: {{output: noted}}, \
         requires: {{type: object, required: [text], properties: {{text: {{type: string}}}}}}}}\n\
         models:\n  m: {{provider: openai_compatible, model: scripted, base_url: '{url}/v1', \
         api_key: '{{{{ secret.MODEL_KEY }}}}'}}\n"
    ))
}

#[derive(Debug)]
struct Key;

impl Secrets for Key {
    fn find(&self, name: &str) -> Option<String> {
        (name == "MODEL_KEY").then(|| KEY.to_owned())
    }
}

/// An engine that may ask this provider, in a directory of its own.
pub(crate) async fn host(base: &Path, url: &str, marker: Option<Arc<Marker>>) -> BenchHost {
    let dir = TempDir::new_in(base).expect("a directory");
    let mut options = Options::new(dir.path());
    // Every agent's turn may be out at once: what is measured is not a line of them.
    options.tasks_max = 512;
    options.worker.secrets = Arc::new(Key);
    options.worker.allow_hosts = vec![url.trim_start_matches("http://").to_owned()];
    options.worker.handlers.extend(marker.clone().map(|marker| marker as Arc<dyn ActionHandler>));
    let engine = Arc::new(open(options, Purpose::Act).await.expect("an engine"));
    if let Some(marker) = marker {
        drop(marker.engine.set(Arc::downgrade(&engine)));
    }
    BenchHost { dir, engine }
}

/// Where things stand when a turn has been heard and its tool is called.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Mark {
    pub(crate) cpu_ms: f64,
    pub(crate) at_ms: f64,
    pub(crate) bytes: u64,
    pub(crate) commits: u64,
}

/// Performs mocks, and notes each time what has been used so far: the exact ends of turns, without looking for them.
#[derive(Debug)]
pub(crate) struct Marker {
    engine: OnceLock<Weak<Connection>>,
    began: Instant,
    marks: Mutex<Vec<Mark>>,
}

impl Marker {
    pub(crate) fn new() -> Arc<Marker> {
        let marks = Mutex::default();
        Arc::new(Marker { engine: OnceLock::new(), began: Instant::now(), marks })
    }

    pub(crate) fn marks(&self) -> Vec<Mark> {
        self.marks.lock().expect("whole").clone()
    }

    fn mark(&self) {
        let Some(engine) = self.engine.get().and_then(Weak::upgrade) else { return };
        let written = engine.written();
        let at_ms = self.began.elapsed().as_secs_f64() * 1_000.0;
        let mark = Mark { cpu_ms: cpu_ms(), at_ms, bytes: written.bytes, commits: written.commits };
        self.marks.lock().expect("whole").push(mark);
    }
}

impl ActionHandler for Marker {
    fn kinds(&self) -> &[&'static str] {
        &["mock"]
    }

    fn perform<'c>(&'c self, _context: &'c mut ActionContext<'_>) -> Performing<'c> {
        self.mark();
        Performing::Done(Ok(Value::from("noted")))
    }
}

/// One agent of so many turns, and where things stood at each.
pub(crate) async fn conversation(base: &Path, url: &str, turns: usize) -> Vec<Mark> {
    let marker = Marker::new();
    let host = host(base, url, Some(marker.clone())).await;
    let view = host.run(&agent(url, turns + 1)).await;
    assert_eq!(view.row.status.to_string(), "completed", "{view:?}");
    host.close().await;
    marker.marks()
}

/// The same without an engine.
pub(crate) async fn bare_conversation(url: &str, turns: usize) -> Vec<Mark> {
    let (client, began) = (client(), Instant::now());
    let mut bare = Bare::new(&client, url);
    let mut marks = Vec::new();
    for _ in 0..turns {
        assert!(bare.turn().await, "it goes on");
        let at_ms = began.elapsed().as_secs_f64() * 1_000.0;
        marks.push(Mark { cpu_ms: cpu_ms(), at_ms, bytes: 0, commits: 0 });
    }
    marks
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Crowd {
    pub(crate) seconds: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) growth_mb: f64,
    pub(crate) commits: u64,
}

impl Crowd {
    pub(crate) fn turns_per_s(&self, agents: usize) -> f64 {
        (agents * SHORT_TURNS) as f64 / self.seconds
    }

    pub(crate) fn cpu_ms_per_turn(&self, agents: usize) -> f64 {
        self.cpu_ms / (agents * SHORT_TURNS) as f64
    }
}

/// So many agents at once, each of ten turns and twenty calls.
pub(crate) async fn crowd(base: &Path, url: &str, agents: usize) -> Crowd {
    let host = host(base, url, None).await;
    let file = Arc::new(agent(url, SHORT_TURNS));
    // The workflow is known, and a connection open, as in a server that has been up for a while.
    run(&host.engine, &file).await;
    let (began, cpu, before) = (Instant::now(), cpu_ms(), rss_mb("self"));
    let commits = host.engine.written().commits;
    let all: Vec<_> = (0..agents)
        .map(|_| {
            let (engine, file) = (host.engine.clone(), file.clone());
            tokio::spawn(async move {
                let view = run(&engine, &file).await;
                assert_eq!(view.row.status.to_string(), "completed", "{view:?}");
            })
        })
        .collect();
    for one in all {
        one.await.expect("it ends");
    }
    let crowd = Crowd {
        seconds: began.elapsed().as_secs_f64(),
        cpu_ms: cpu_ms() - cpu,
        growth_mb: peak_mb() - before,
        commits: host.engine.written().commits - commits,
    };
    host.close().await;
    crowd
}

pub(crate) async fn bare_crowd(url: &str, agents: usize) -> Crowd {
    let client = client();
    Bare::new(&client, url).turn().await;
    let (began, cpu, before) = (Instant::now(), cpu_ms(), rss_mb("self"));
    let all: Vec<_> = (0..agents)
        .map(|_| {
            let mut bare = Bare::new(&client, url);
            tokio::spawn(async move { while bare.turn().await {} })
        })
        .collect();
    for one in all {
        one.await.expect("it ends");
    }
    let growth_mb = peak_mb() - before;
    Crowd { seconds: began.elapsed().as_secs_f64(), cpu_ms: cpu_ms() - cpu, growth_mb, commits: 0 }
}

/// Milliseconds from when the provider sent a text to when a watcher had it, sorted: in the process that owns the
/// database, and in another.
pub(crate) async fn first_texts(base: &Path, url: &str, turns: usize) -> [Vec<f64>; 2] {
    let host = host(base, url, None).await;
    let view = host.engine.engine().start(agent(url, turns)).await.expect("it starts");
    let id = view.row.run.clone();
    let mut other = part("listen", &[&host.home().display().to_string(), &id, &turns.to_string()]);
    let other = tokio::task::spawn_blocking(move || output(&mut other));
    let within = heard(&host.engine, &id, turns).await;
    let over = other.await.expect("it ends");
    host.engine.engine().wait(id, 60_000).await.expect("it ends");
    host.close().await;
    [within, over]
}

/// Listens until so many turns were heard, or no more come.
async fn heard(engine: &Connection, run: &str, turns: usize) -> Vec<f64> {
    let (mut all, mut after) = (Vec::new(), 0);
    while all.len() < turns {
        let listen = Listen { run: run.to_owned(), after, wait_ms: 2_000 };
        let heard = engine.engine().listen(listen).await.expect("it listens");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_micros();
        if heard.pieces.is_empty() {
            break;
        }
        after = heard.cursor;
        let sent = heard.pieces.iter().filter_map(|piece| piece.text.split_once(' ')?.0.parse::<u128>().ok());
        all.extend(sent.map(|sent| now.saturating_sub(sent) as f64 / 1_000.0));
    }
    all.sort_by(f64::total_cmp);
    all
}

/// This program again, for one part of the work.
pub(crate) fn part(name: &str, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().expect("this is a file"));
    command.arg("part").arg(name).args(arguments).stderr(std::process::Stdio::inherit());
    command
}

pub(crate) fn output<T: for<'d> Deserialize<'d>>(command: &mut std::process::Command) -> T {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?} failed");
    serde_json::from_slice(&output.stdout).expect("what a part says")
}

/// What `wonder-bench part …` does: prints what it measured as JSON.
pub(crate) async fn perform(arguments: &[String]) {
    let text = |at: usize| arguments.get(at).map_or("", String::as_str);
    let count = |at: usize| text(at).parse::<usize>().expect("a number");
    let base = || PathBuf::from(text(3));
    let measured = match text(0) {
        "conversation" => serde_json::to_string(&conversation(&base(), text(1), count(2)).await),
        "bare-conversation" => serde_json::to_string(&bare_conversation(text(1), count(2)).await),
        "crowd" => serde_json::to_string(&crowd(&base(), text(1), count(2)).await),
        "bare-crowd" => serde_json::to_string(&bare_crowd(text(1), count(2)).await),
        "texts" => serde_json::to_string(&first_texts(&base(), text(1), count(2)).await),
        // For peers, who are asked the same by the same provider.
        "script" if text(1) == "short" => return println!("{}", short_script()),
        "script" => return println!("{}", long_script(count(2))),
        "listen" => {
            let engine = open(Options::new(text(1)), Purpose::Act).await.expect("it attaches");
            let heard = heard(&engine, text(2), count(3)).await;
            engine.close(Leaving::Drain).await;
            serde_json::to_string(&heard)
        }
        other => panic!("there is no part {other}"),
    };
    println!("{}", measured.expect("JSON"));
}
