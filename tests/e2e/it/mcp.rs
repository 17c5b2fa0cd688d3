//! MCP servers by the real binary: servers that others wrote, over pipes and over HTTP, killed, timed out, asking people
//! and models. `make tools` installs them.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::models::Provider;
use crate::place::{Place, Told, ended, root, until};

/// The program of a server from npm.
fn server(name: &str) -> String {
    let path = root().join(format!("tests/e2e/npm/node_modules/.bin/mcp-server-{name}"));
    assert!(path.exists(), "{} is not there: run `make tools`", path.display());
    path.to_string_lossy().into_owned()
}

/// `mcp_servers` with `all`, which has a tool of every kind; its processes carry a mark.
fn all(mark: &str, more: &str) -> String {
    let program = server("everything");
    format!("mcp_servers:\n  all: {{command: [node, '{program}'], env: {{MARK: '{mark}'}}{more}}}\n")
}

/// A word that no other test has.
fn mark(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// The processes that carry a mark.
fn marked(mark: &str) -> Vec<u32> {
    let variable = format!("MARK={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a /proc").flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        let carries = environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes());
        let number = entry.file_name().to_string_lossy().parse::<u32>().ok();
        found.extend(number.filter(|_| carries));
    }
    found
}

fn end(process: u32) {
    let killed = Command::new("kill").args(["-9", &process.to_string()]).status().expect("kill runs");
    assert!(killed.success());
}

fn logs(place: &Place) -> String {
    place.run(&["logs", "last"]).out
}

fn failure(told: &Told) -> (String, String) {
    let text = |key: &str| told.view["error"][key].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("message"))
}

const LONG: &str = "mcp_tool: {server: all, tool: trigger-long-running-operation, timeout: 1m, arguments: ";

#[test]
fn a_tool_gives_structured_content_or_text_and_pictures_are_kept() {
    let nodes = "nodes:\n  sum: {mcp_tool: {server: all, tool: get-sum, arguments: {a: 2, b: 3}, timeout: 1m}, \
        output_mapping: {output.sum: result}, next: [{to: weather}]}\n  \
        weather: {mcp_tool: {server: all, tool: get-structured-content, arguments: {location: Chicago}, timeout: 1m}, \
        output_mapping: {output.sky: result.conditions}, next: [{to: picture}]}\n  \
        picture: {mcp_tool: {server: all, tool: get-tiny-image, timeout: 1m}, output_mapping: {output.parts: result}}\n";
    let told = Told::of(&format!("{nodes}{}", all("kinds", "")), 0);
    let output = &told.view["output"];
    assert!(output["sum"].as_str().is_some_and(|text| text.contains('5')), "{output:#}");
    assert!(output["sky"].is_string(), "{output:#}");
    let picture = &output["parts"][1];
    assert_eq!(
        (&picture["type"], &picture["media_type"]),
        (&"image".into(), &"image/png".into()),
        "{output:#}"
    );
    let name = picture["artifact"]["name"].as_str().expect("a name");
    let saved = told.place.dir.path().join("saved.png");
    let kept = told.place.run(&["artifacts", &told.run, name, "--to", &saved.to_string_lossy()]);
    assert_eq!(kept.code, Some(0), "{kept:#?}");
    assert!(std::fs::read(saved).expect("a file").starts_with(b"\x89PNG"));
    assert_eq!(logs(&told.place).matches("started").count(), 1, "three calls, one server");
}

#[test]
fn a_server_of_python_answers_too_and_is_reached_by_hand() {
    let program = root().join("target/mcp-servers/bin/mcp-server-time");
    assert!(program.exists(), "{} is not there: run `make tools`", program.display());
    let place = Place::new();
    place.file("wonder.toml", &format!("[mcp_servers.time]\ncommand = [\"{}\"]\n", program.display()));
    let time = place.json(&["mcp", "call", "time", "get_current_time", "timezone=Europe/Berlin"], 0);
    assert_eq!(time["timezone"], "Europe/Berlin", "{time:#}");
    let servers = place.json(&["mcp", "servers"], 0);
    assert_eq!((&servers[0]["name"], &servers[0]["tools"]["Ok"]), (&"time".into(), &2.into()), "{servers:#}");
    let tools = place.json(&["mcp", "tools", "time"], 0);
    assert!(tools.as_array().expect("a list").iter().any(|tool| tool["name"] == "convert_time"), "{tools:#}");
    let told = Told::at(
        place,
        "nodes:\n  now: {mcp_tool: {server: time, tool: get_current_time, arguments: {timezone: UTC}, timeout: 1m}}\n",
        0,
    );
    assert!(
        told.view.to_string().contains("UTC"),
        "what the settings define need only be named: {:#}",
        told.view
    );
}

#[test]
fn what_cannot_be_called_says_why_and_what_there_is() {
    let files = server("filesystem");
    let servers = format!("mcp_servers:\n  files: {{command: [node, '{files}', .]}}\n");
    let call = |tool: &str, path: &str| {
        format!(
            "nodes:\n  read: {{mcp_tool: {{server: files, tool: {tool}, arguments: {path}, timeout: 1m}}}}\n{servers}"
        )
    };
    let (kind, message) = failure(&Told::of(&call("read_text_file", "{path: /etc/passwd}"), 1));
    assert_eq!(kind, "tool_failed", "{message}");
    assert!(message.contains("Access denied"), "{message}");
    let (kind, message) = failure(&Told::of(&call("read_txt_file", "{path: a}"), 1));
    assert_eq!(kind, "expression_error", "{message}");
    assert!(
        message.contains("did you mean `read_text_file`?") && message.contains("list_directory"),
        "{message}"
    );
    let (kind, message) = failure(&Told::of(&call("read_text_file", "{pth: a}"), 1));
    assert_eq!(kind, "contract_violation", "{message}");
    assert!(message.contains("path"), "{message}");
}

#[test]
fn a_server_that_nobody_has_or_that_a_project_may_not_use_is_refused_before_the_run() {
    let place = Place::new();
    let nodes = "nodes:\n  read: {mcp_tool: {server: files, tool: read_file, timeout: 1m}}\n";
    let file = place.file("a.yaml", &format!("wonder: 1\nname: a\n{nodes}"));
    let refused = place.run(&["run", &file]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.err.contains("there is no MCP server `files`"), "{}", refused.err);
    let near = format!("wonder: 1\nname: a\n{nodes}mcp_servers:\n  file: {{command: [node]}}\n");
    let refused = place.run(&["validate", &place.file("b.yaml", &near)]);
    assert!(refused.err.contains("did you mean `file`?") && refused.err.contains("E0166"), "{}", refused.err);
    place.file(
        "wonder.toml",
        "[projects.default]\nmcp = [\"other\"]\n[mcp_servers.files]\ncommand = [\"node\"]\n",
    );
    let refused = place.run(&["run", &file]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(
        refused.err.contains("may not use") && refused.err.contains("[projects.default]"),
        "{}",
        refused.err
    );
    assert_eq!(place.json(&["list"], 0), Value::Array(Vec::new()), "nothing was started");
}

#[test]
fn a_call_that_takes_too_long_is_called_off_and_the_server_goes_on() {
    let told = Told::of(
        &format!(
            "nodes:\n  slow: {{{}{{duration: 60, steps: 600}}, effects: none, execution: {{timeout: 2s}}}}, next: [{{to: sum, on: failure}}]}}\n  \
             sum: {{mcp_tool: {{server: all, tool: get-sum, arguments: {{a: 2, b: 3}}, timeout: 1m}}, \
             output_mapping: {{output.sum: result, output.why: _last_error.kind}}}}\n{}",
            LONG.replace("timeout: 1m, ", ""),
            all("slow", "")
        ),
        0,
    );
    assert_eq!(told.view["output"]["why"], "timeout", "{:#}", told.view);
    let logs = logs(&told.place);
    assert!(logs.contains("progress 1 of 600"), "{logs}");
    assert_eq!(logs.matches("started").count(), 1, "{logs}");
}

#[test]
fn what_a_server_asks_is_a_gate_and_the_answer_reaches_it_after_a_kill() {
    let place = Place::new();
    let go = place.dir.path().join("go");
    let servers = all("asks", "");
    // Both from the start: nobody needs anybody.
    let workflow = format!(
        "wonder: 1\nname: asks\nkind: dag\nnodes:\n  ask: {{mcp_tool: {{server: all, \
         tool: trigger-elicitation-request, timeout: 1m}}, output_mapping: {{output.said: result}}}}\n  \
         hold: {{shell: {{command: 'until test -e {}; do sleep 0.05; done', timeout: 5m}}}}\n{servers}",
        go.display()
    );
    let file = place.file("asks.yaml", &workflow);
    let mut owner = place.spawn(&["run", &file, "-o", "json"]);
    let mut gate = Value::Null;
    until("the gate", || {
        gate = place.json(&["gates"], 0)[0].clone();
        !gate.is_null()
    });
    assert_eq!(gate["title"], "Please provide inputs for the following fields:", "{gate:#}");
    owner.kill().expect("it runs");
    let _ = owner.wait();
    until("the servers are gone", || marked("asks").is_empty());
    std::fs::write(&go, "").expect("a file");
    let id = gate["gate"].as_str().or(gate["id"].as_str()).expect("an id").to_owned();
    let answer = r#"{"action": "accept", "content": {"name": "Ann Example", "check": true}}"#;
    let answered = place.run(&["answer", &id, answer, "-o", "json"]);
    assert_eq!(answered.code, Some(0), "{answered:#?}");
    let view: Value = serde_json::from_str(&answered.out).expect("JSON");
    assert_eq!(view["status"], "completed", "{view:#}");
    assert!(view["output"]["said"].to_string().contains("Ann Example"), "{view:#}");
}

#[test]
fn a_declined_question_is_told_to_the_server() {
    let nodes = "nodes:\n  ask: {mcp_tool: {server: all, tool: trigger-elicitation-request, timeout: 1m}, \
        output_mapping: {output.said: result}}\n";
    let mut told = Told::of(&format!("{nodes}{}", all("declined", "")), 3);
    let gate = told.gate();
    let id = gate["gate"].as_str().or(gate["id"].as_str()).expect("an id").to_owned();
    told.view = told.place.json(&["answer", &id, "action=decline"], 0);
    assert!(told.view["output"]["said"].to_string().contains("decline"), "{:#}", told.view);
}

fn sampling(provider: &Provider, budget: &str) -> String {
    let url = format!("{}/v1", provider.url());
    format!(
        "nodes:\n  ask: {{mcp_tool: {{server: all, tool: trigger-sampling-request, arguments: {{prompt: How are you?, \
         maxTokens: 50}}, timeout: 1m}}, output_mapping: {{output.said: result}}}}\n{budget}{}\
         models:\n  m: {{provider: openai_compatible, model: qwen3, base_url: '{url}', \
         api_key: '{{{{ secret.MODEL_KEY }}}}', prices: {{input: 1, output: 10}}}}\n",
        all("samples", ", sampling: {model: m, max_tokens: 100, max_calls: 2}")
    )
}

#[test]
fn a_server_may_ask_a_model_and_the_run_pays_for_it_within_its_budget() {
    let script = "  - {text: Quite well., usage: {input_tokens: 100, output_tokens: 10}}\n";
    let provider = Provider::start(script);
    let told = Told::at(provider.place(), &sampling(&provider, "budget: {usd: 1}\n"), 0);
    assert!(told.view["output"]["said"].to_string().contains("Quite well."), "{:#}", told.view);
    assert_eq!(provider.count(), 1);
    assert_eq!(told.view["cost_usd"], 0.0002, "100 in at 1 and 10 out at 10: {:#}", told.view);
    let poor =
        Told::at(provider.place(), &sampling(&provider, "budget: {usd: 0.01, on_exceeded: fail}\n"), 6);
    assert_eq!(provider.count(), 1, "what it may cost does not fit, so it does not begin: {:#}", poor.view);
}

#[test]
fn a_server_without_sampling_cannot_ask() {
    let provider = Provider::start("  - {text: Quite well.}\n");
    let text = sampling(&provider, "").replace(", sampling: {model: m, max_tokens: 100, max_calls: 2}", "");
    let (kind, message) = failure(&Told::at(provider.place(), &text, 1));
    assert_eq!(kind, "expression_error", "the tool is not even there: {message}");
    assert_eq!(provider.count(), 0);
}

/// A run that is out at a slow tool of a server with this mark.
fn slow(place: &Place, mark: &str, effects: &str) -> Child {
    let workflow = format!(
        "wonder: 1\nname: slow\nnodes:\n  slow: {{{LONG}{{duration: 3, steps: 30}}{effects}}}, \
         output_mapping: {{output.said: result}}}}\n{}",
        all(mark, "")
    );
    let file = place.file("slow.yaml", &workflow);
    let owner = place.spawn(&["run", &file, "-o", "json"]);
    until("the call is under way", || logs(place).contains("progress 2 of"));
    owner
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again_and_what_may_be_repeated_is() {
    let (place, mark) = (Place::new(), mark("dies"));
    let owner = slow(&place, &mark, ", effects: idempotent");
    marked(&mark).into_iter().for_each(end);
    let ended = ended(owner.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let logs = logs(&place);
    assert!(logs.contains("started again"), "{logs}");
    assert!(logs.contains("broke off"), "{logs}");
}

#[test]
fn a_call_that_must_not_be_repeated_asks_when_its_server_died() {
    let (place, mark) = (Place::new(), mark("once"));
    let owner = slow(&place, &mark, "");
    marked(&mark).into_iter().for_each(end);
    let ended = ended(owner.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.out.contains("may or may not") || ended.out.contains("outcome"), "{}", ended.out);
}

#[test]
fn no_server_outlives_a_host_that_is_killed() {
    let (place, mark) = (Place::new(), mark("orphan"));
    let mut owner = slow(&place, &mark, "");
    assert!(!marked(&mark).is_empty());
    owner.kill().expect("it runs");
    let _ = owner.wait();
    until("the server is gone", || marked(&mark).is_empty());
}

/// The same server over HTTP, until it is dropped.
struct Http {
    child: Child,
    port: u16,
}

impl Http {
    fn start(port: u16) -> Http {
        let mut command = Command::new("node");
        command.args([server("everything").as_str(), "streamableHttp"]).env("PORT", port.to_string());
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        let child = command.spawn().expect("node runs");
        until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Http { child, port }
    }

    fn free_port() -> u16 {
        TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("a port").port()
    }

    fn servers(&self) -> String {
        format!("mcp_servers:\n  all: {{url: 'http://127.0.0.1:{}/mcp'}}\n", self.port)
    }

    fn place(&self) -> Place {
        let place = Place::new();
        place.file("wonder.toml", &format!("allow_hosts = [\"127.0.0.1:{}\"]\n", self.port));
        place
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_over_http_is_guarded_called_asked_and_reached_again_after_it_died() {
    let http = Http::start(Http::free_port());
    let sum = format!(
        "nodes:\n  sum: {{mcp_tool: {{server: all, tool: get-sum, arguments: {{a: 2, b: 3}}, timeout: 1m}}}}\n{}",
        http.servers()
    );
    let (kind, message) = failure(&Told::of(&sum, 1));
    assert_eq!(kind, "contract_violation", "{message}");
    assert!(message.contains("allow_hosts"), "{message}");
    let told = Told::at(http.place(), &sum, 0);
    assert!(told.view["output"].to_string().contains('5'), "{:#}", told.view);
    let ask = "nodes:\n  ask: {mcp_tool: {server: all, tool: trigger-elicitation-request, timeout: 1m}, \
        output_mapping: {output.said: result}}\n";
    let mut told = Told::at(http.place(), &format!("{ask}{}", http.servers()), 3);
    let gate = told.gate();
    let id = gate["gate"].as_str().or(gate["id"].as_str()).expect("an id").to_owned();
    told.view = told.place.json(&["answer", &id, r#"{"action": "accept", "content": {"name": "Bo"}}"#], 0);
    assert!(told.view["output"]["said"].to_string().contains("Bo"), "{:#}", told.view);

    let place = http.place();
    let slow = format!(
        "wonder: 1\nname: slow\nnodes:\n  slow: {{{LONG}{{duration: 3, steps: 30}}, effects: idempotent, \
         execution: {{retry_policy: {{max_attempts: 20, backoff: linear, initial_delay: 200ms, max_delay: 500ms}}}}}}}}\n{}",
        http.servers()
    );
    let owner = place.spawn(&["run", &place.file("slow.yaml", &slow), "-o", "json"]);
    until("the call is under way", || logs(&place).contains("progress 2 of"));
    let port = http.port;
    drop(http);
    let _again = Http::start(port);
    let ended = ended(owner.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(logs(&place).contains("started again"), "{}", logs(&place));
}

#[test]
fn an_agent_calls_the_tools_of_a_server_and_reads_of_large_results_the_beginning() {
    let script = "  - {when: {turn: 1}, text: On., tool_calls: [{tool: get-sum, arguments: {a: 20, b: 22}}, \
        {tool: much, arguments: {}}, {tool: echo, arguments: {message: hi}}]}\n  \
        - {when: {turn: 2, contains: '\"head\"'}, text: It is 42.}\n";
    let provider = Provider::start(script);
    let url = format!("{}/v1", provider.url());
    let workflow = format!(
        "nodes:\n  work:\n    agent: {{model: m, prompt: Add., tools: [{{mcp: all, only: [get-sum]}}, much], \
         approve: {{default: never}}}}\n\
         tools:\n  much: {{description: Much., shell: {{command: 'yes | head -c 300000', timeout: 1m}}}}\n{}\
         models:\n  m: {{provider: openai, model: gpt-5.2, base_url: '{url}', api_key: '{{{{ secret.MODEL_KEY }}}}'}}\n",
        all("agent", "")
    );
    let told = Told::at(provider.place(), &workflow, 0);
    assert!(told.view["output"].to_string().contains("It is 42."), "{:#}", told.view);
    let sent = provider.journal().to_string();
    assert!(sent.contains("The sum of 20 and 22 is 42"), "{sent}");
    assert!(sent.contains("there is no tool `echo`"), "what `only` leaves out is not there: {sent}");
    assert!(sent.contains("artifact"), "{sent}");
    let kept = told.place.json(&["artifacts", &told.run], 0);
    assert!(kept.to_string().contains("much.result"), "{kept:#}");
}

#[test]
fn a_large_result_is_an_artifact_and_a_secret_of_a_server_stays_one() {
    let place = Place::new();
    place.file(".env", "TOKEN=very-secret-0123456789\n");
    let everything = server("everything");
    let workflow = format!(
        "nodes:\n  read: {{mcp_tool: {{server: files, tool: read_text_file, arguments: {{path: much.txt}}, timeout: 1m}}, \
         output_mapping: {{output.read: result}}, next: [{{to: env}}]}}\n  \
         env: {{mcp_tool: {{server: all, tool: get-env, timeout: 1m}}, output_mapping: {{output.env: result}}}}\n\
         mcp_servers:\n  files: {{command: [node, '{}', .]}}\n  \
         all: {{command: [node, '{everything}'], env: {{SERVICE_TOKEN: '{{{{ secret.TOKEN }}}}'}}}}\n",
        server("filesystem")
    );
    place.file("much.txt", &"All work and no play. ".repeat(20_000));
    let told = Told::at(place, &workflow, 0);
    let read = &told.view["output"]["read"];
    assert!(read["head"].as_str().is_some_and(|head| head.contains("All work")), "{read:#}");
    assert!(read["bytes"].as_u64().is_some_and(|bytes| bytes > 440_000), "{read:#}");
    let env = told.view["output"]["env"].to_string();
    assert!(env.contains("SERVICE_TOKEN") && !env.contains("very-secret"), "{env}");
    assert!(!env.contains(r#"\"TOKEN\""#), "it sees what is ordinary, and what it is given: {env}");
}

#[test]
fn expanding_and_planning_know_servers() {
    let place = Place::new();
    let nodes = "nodes:\n  sum: {mcp_tool: {server: all, tool: get-sum, timeout: 1m}}\n";
    let file = place.file("a.yaml", &format!("wonder: 1\nname: a\n{nodes}{}", all("plan", "")));
    let expanded = place.run(&["validate", &file, "--expand"]);
    assert!(expanded.out.contains("mcp_servers:") && expanded.code == Some(0), "{expanded:#?}");
    let again = place.file("b.yaml", &expanded.out);
    assert_eq!(place.run(&["validate", &again]).code, Some(0));
    for verb in ["plan", "graph"] {
        assert_eq!(place.run(&[verb, &file]).code, Some(0), "{verb}");
    }
    assert!(PathBuf::from(&file).exists() && marked("plan").is_empty(), "nothing is started for that");
}
