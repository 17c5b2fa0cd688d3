//! Twenty secrets, put wherever a workflow can put one, said back in every form; then everything that was stored and
//! everything that is shown is searched for them.

pub(crate) mod forms;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aho_corasick::AhoCorasick;
use serde_json::{Value, json};

use crate::models::{KEY, Provider};
use crate::place::{Ended, Place, binary, ended};
use forms::{base64, forms};
use server::Server;

/// It is no secret: what does not find it does not look.
const MARK: &str = "plainly-visible-to-all";

const PEM: &str = "-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu
Qw==
-----END PRIVATE KEY-----
";
const LONG: &str = "L0ngWx7Rk2Pz9QvT4mB8cYh3Jd6FsN1gKaEu5XoZiVlMtCbHyDwGpSrIqOfUnAjE-L0ngx8Sl3Qa0RwU5nC9dZi4Ke7GtO2hLbFv6YpAjWmNuDcIzExHqTsJrPgVoBkF";

/// Beside `.env` and the file: in the environment.
const ENVIRONMENT: [(&str, &str); 10] = [
    ("SHORT", "q7#x"),
    ("PLAIN", "tok_9fK2mQ8vLx4Zr7"),
    ("QUOTES", "it's \"so\" \\quoted\\"),
    ("BEYOND_ASCII", "pässwörd-日本-🔑"),
    ("PERCENT", "100%25 sure%&more=1+1"),
    ("PEM", PEM),
    ("OPENAI_API_KEY", "sk-proj-Zx81mQw92Lk37Vb64Nc55Td"),
    ("ANTHROPIC_API_KEY", "sk-ant-api03-Hy72jUi98Kd12Pq34"),
    ("GEMINI_API_KEY", "AIzaSyA7bC8dE9fG0hI1jK2lM3nO4pQ5rS6tU"),
    ("WONDER_TOKEN", "wndr_5rTg6Yh7Uj8Ik9Ol0P"),
];
const DOTENV: [(&str, &str); 5] = [
    ("DOT", "dotenv/With+Slash=9Kd"),
    ("BLANKS", "two words and more"),
    ("TAGS", "<a href=\"x\">&b</a>"),
    ("DIGITS", "4815162342"),
    ("DATABASE_URL", "postgres://app:s3cr3t/p@ss@db.example/x?y=1"),
];
const FILE: [(&str, &str); 5] = [
    ("LONG", LONG),
    ("SLASHES", "a/b+c/d==Zq81"),
    ("SIX", "z9Y8x7"),
    ("DOLLAR", "$HOME`id`$(id)!*"),
    ("OBJECT", "{\"k\": [\"v-secret-9\"]}"),
];
/// Nothing of the workflow names these; they come from a file that lies about.
const NEVER_NAMED: [&str; 3] = ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "WONDER_TOKEN"];

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ENVIRONMENT.into_iter().chain(DOTENV).chain(FILE)
}

fn named() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| name).filter(|name| !NEVER_NAMED.contains(name))
}

/// All forms of all secrets, one after the other, and what folds lines into them.
fn said() -> String {
    let mut said = format!("{MARK}\n");
    for (_, secret) in all() {
        forms(secret).values().for_each(|form| said.push_str(&format!("<{form}>\n")));
        for (width, line_break) in [(64, "\n"), (76, "\n"), (76, "\r\n"), (64, "\\n")] {
            for before in ["", "u", "user:"] {
                let whole = base64(format!("{before}{secret}").as_bytes(), "+/");
                said.push_str(&folded(&whole, width, line_break));
            }
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            said.push_str(&folded(&hex, width, line_break));
        }
    }
    said
}

fn folded(text: &str, width: usize, line_break: &str) -> String {
    let lines = text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned());
    format!("{}\n\n", lines.collect::<Vec<_>>().join(line_break))
}

/// `{{ secret.NAME }}`
fn secret(name: &str) -> String {
    format!("{{{{ secret.{name} }}}}")
}

/// A place with the secrets in `.env`, in the secrets file, and in files that commands read.
fn planted() -> Place {
    let place = Place::new();
    let lines = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect::<String>()
    };
    place.file(".env", &lines(&DOTENV));
    let file = place.file("keys", &lines(&FILE));
    place.file("wonder.toml", &format!("secrets_file = {file:?}\ngrace = \"1s\"\n"));
    place.file("said.txt", &said());
    place.file("long.txt", LONG);
    let plain: String = all().map(|(_, value)| format!("{value}\n")).collect();
    place.file("plain.txt", &plain);
    let keys: serde_json::Map<String, Value> = all()
        .map(|(name, value)| (value.to_owned(), json!({"of": name, "as": [value, 4_815_162_342_u64]})))
        .collect();
    place.file("data.json", &json!({"keys": keys, "mark": MARK, "number": 4_815_162_342_u64}).to_string());
    place
}

fn wonder(place: &Place, arguments: &[&str]) -> Ended {
    let mut command = place.command(arguments);
    command.envs(ENVIRONMENT);
    ended(command.output().expect("the binary starts"))
}

/// The nodes, one after the other; one that fails is skipped.
fn workflow(name: &str, nodes: Vec<(&str, Value)>) -> String {
    let follow: Vec<&str> = nodes.iter().skip(1).map(|(name, _)| *name).collect();
    let mut written = format!("wonder: 1\nname: {name}\ntimeout: 10m\nnodes:\n");
    for (at, (name, mut node)) in nodes.into_iter().enumerate() {
        if let Some(next) = follow.get(at) {
            node["on_error"] = json!([{"do": "skip"}]);
            node["next"] = json!([{"to": next}]);
        }
        written.push_str(&format!("  {name}: {node}\n"));
    }
    written
}

fn shell(command: &str) -> Value {
    json!({"shell": {"command": command, "timeout": "60s", "limits": {"output_bytes": 4_000_000}}})
}

/// Commands that are given them, by every way there is.
fn given() -> Vec<(&'static str, Value)> {
    let variables: BTreeMap<String, String> =
        named().map(|name| (format!("V_{name}"), secret(name))).collect();
    let words: Vec<String> = named().map(secret).collect();
    let forms = "for v in $(env | grep -o '^V_[A-Z_]*'); do eval \"x=\\$$v\"; printf '%s\\n' \"$x\"; \
                 printf %s \"$x\" | od -An -tx1 | tr -d ' \\n'; echo; printf %s \"$x\" | base64; \
                 printf 'user:%s' \"$x\" | base64 -w 64; printf %s \"$x\" | wc -c >> counts.txt; \
                 printf '%s\\n' \"$x\" >> kept.txt; done";
    let line = format!("echo {MARK}; env; set -x; printf '%s\\n' {}; set +x; cat; {forms}", words.join(" "));
    let quoted: String = named().map(|name| format!("echo \"{}\" '{0}'; ", secret(name))).collect();
    let mut list = vec!["printf".to_owned(), "%s\n".to_owned()];
    list.extend(words.clone());
    vec![
        (
            "given",
            json!({"shell": {"command": line, "env": variables, "stdin": words.join("\n"), "timeout": "60s"}}),
        ),
        ("as_words", json!({"shell": {"command": list, "timeout": "20s"}})),
        ("in_quotes", json!({"shell": {"command": quoted, "timeout": "20s"}})),
        ("as_program", json!({"shell": {"command": [secret("LONG")], "timeout": "20s"}})),
        ("as_directory", json!({"shell": {"command": "true", "cwd": secret("QUOTES"), "timeout": "20s"}})),
        (
            "handed_on",
            json!({"steps": [
                {"ref": "one", "mock": {"output": {"all": words}}},
                {"ref": "two", "shell": {"command": "echo {{ state.one.all | tojson }}", "timeout": "20s"}},
                {"ref": "three", "mock": {"error": {"kind": "shell_exit", "message": secret("LONG")}},
                 "on_failure": "continue"},
            ]}),
        ),
        (
            "noted",
            json!({"mock": {"error": {"kind": "network", "message": words.join(" ")},
                "execution": {"retry_policy": {"max_attempts": 2, "initial_delay": "1ms"}}}}),
        ),
    ]
}

/// Commands that name none of them.
fn found() -> Vec<(&'static str, Value)> {
    // Where the end of what is told of a failure, 4 096 bytes of output and 400 of a message, falls into the secret.
    let cut =
        |pad: usize| shell(&format!("printf '%s%{pad}s' \"$(cat long.txt)\" x | tee /dev/stderr; exit 9"));
    let overflown = |room: usize| {
        let line = format!("printf '%1000s'; head -c {room} long.txt; tail -c +{} long.txt; yes", room + 1);
        json!({"shell": {"command": line, "timeout": "60s", "limits": {"output_bytes": 1_000 + room}}})
    };
    vec![
        ("read", shell("cat said.txt; cat said.txt >&2; cat kept.txt plain.txt")),
        ("read_failing", shell("cat plain.txt; cat said.txt >&2; exit 7")),
        ("read_json", shell("cat data.json")),
        ("bytewise", shell("dd if=plain.txt bs=1 status=none; dd if=plain.txt bs=7 status=none >&2")),
        ("line_by_line", shell("while IFS= read -r line; do echo \"$line\"; done < plain.txt")),
        ("in_one_line", shell("tr '\\n' ' ' < said.txt; printf '%8100s' ' '; cat long.txt")),
        ("cut_1", cut(4_096 - 20)),
        ("cut_2", cut(4_096 - LONG.len() + 20)),
        ("cut_3", cut(400 - 20)),
        ("cut_4", cut(400 - LONG.len() + 20)),
        ("overflown_1", overflown(20)),
        ("overflown_2", overflown(LONG.len() - 1)),
        ("environment", shell("env; cat /proc/$PPID/cmdline; exit 4")),
    ]
}

/// Requests that carry them, and answers that bring them back.
fn asked(port: u16, nobody: u16) -> Vec<(&'static str, Value)> {
    let here = format!("http://127.0.0.1:{port}");
    let one_line: Vec<&str> = named().filter(|name| *name != "PEM").collect();
    let headers: BTreeMap<String, String> =
        one_line.iter().map(|name| (format!("X-{}", name.replace('_', "-")), secret(name))).collect();
    let query: BTreeMap<&str, String> = named().map(|name| (name, secret(name))).collect();
    let path: Vec<String> = named().map(secret).collect();
    let path = path.join("/");
    let request = |url: String, more: Value| {
        let mut request = json!({"url": url, "allow_private": true, "timeout": "20s",
            "execution": {"retry_policy": {"max_attempts": 1}}});
        request.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        json!({"http_request": request})
    };
    let everything = json!({"method": "POST", "headers": headers, "query": query, "json": query});
    vec![
        ("asked", request(format!("{here}/fine/{path}"), everything.clone())),
        ("asked_text", request(format!("{here}/fine"), json!({"method": "PUT", "body": path}))),
        ("failing", request(format!("{here}/fail/{path}"), everything)),
        ("refused", request(format!("{here}/refuse/{path}"), json!({"query": query}))),
        ("led_away", request(format!("{here}/lead/{path}"), json!({"headers": headers}))),
        ("unanswered", request(format!("http://127.0.0.1:{nobody}/{path}"), json!({}))),
        ("no_address", request(secret("TAGS"), json!({}))),
        ("no_method", request(here.clone(), json!({"method": secret("QUOTES")}))),
        ("no_header", request(here, json!({"headers": {"X-Key": secret("PEM")}}))),
    ]
}

/// Everything that a person or a program can see of the runs of a place.
fn shown(place: &Place, runs: &[String]) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    let mut see = |arguments: &[&str]| {
        let Ended { out, err, .. } = wonder(place, arguments);
        seen.push((arguments.join(" "), format!("{out}\n{err}")));
    };
    for format in ["text", "json"] {
        for run in runs {
            for verb in ["show", "events", "logs", "why", "cost", "gates", "watch"] {
                see(&[verb, run, "-o", format]);
            }
        }
        for verb in ["list", "cost", "gates"] {
            see(&[verb, "-o", format]);
        }
    }
    seen
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    files.retain(|path| path.is_file());
    files.extend(folders.iter().flat_map(|folder| files_below(folder)));
    files
}

/// Every file of the home, and every cell of every table.
fn stored(place: &Place) -> Vec<(String, String)> {
    let files = files_below(&place.home());
    assert!(files.iter().any(|path| path.ends_with("wonder.db")), "{files:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut stored: Vec<(String, String)> = files
        .iter()
        .map(|path| (path.display().to_string(), text(&std::fs::read(path).expect("a file"))))
        .collect();
    let database = rusqlite::Connection::open(place.database()).expect("a database");
    let mut tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("tables");
    let names: Vec<String> =
        tables.query_map([], |row| row.get(0)).expect("names").map(|name| name.expect("a name")).collect();
    for name in names {
        let mut rows = database.prepare(&format!("SELECT * FROM \"{name}\"")).expect("a table");
        let columns = rows.column_count();
        let mut cells = String::new();
        let mut rows = rows.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            for column in 0..columns {
                match row.get_ref(column).expect("a cell") {
                    rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => {
                        cells.push_str(&text(bytes));
                    }
                    other => cells.push_str(&format!("{other:?}")),
                }
                cells.push('\n');
            }
        }
        stored.push((format!("the table {name}"), cells));
    }
    stored
}

/// Everything that must not be seen, and what it is.
fn hidden() -> Vec<(String, String)> {
    let mut all_forms = Vec::new();
    for (name, secret) in all() {
        for (how, form) in forms(secret) {
            // Of base64 within base64 less than this could be there by chance.
            let bytes_min = if how.contains(" after ") { 6 } else { 4 };
            if form.len() >= bytes_min {
                all_forms.push((form, format!("{name} as {how}")));
            }
        }
    }
    // Nor a part of one that is long, so that it cannot be there by chance.
    for (name, secret) in all().filter(|(_, secret)| secret.len() >= 24 && !secret.contains([' ', ':'])) {
        let parts = secret.as_bytes().windows(12).map(|part| String::from_utf8_lossy(part).into_owned());
        all_forms.extend(parts.map(|part| (part, format!("a part of {name}"))));
    }
    let lines = PEM.lines().filter(|line| line.len() > 5);
    all_forms.extend(lines.map(|line| (line.to_owned(), "a line of PEM".to_owned())));
    all_forms
}

/// What of the secrets is in these texts, however it was folded.
fn leaks(texts: &[(String, String)]) -> BTreeSet<String> {
    let hidden = hidden();
    let search = AhoCorasick::new(hidden.iter().map(|(form, _)| form)).expect("they are not that many");
    let mut leaks = BTreeSet::new();
    for (place, text) in texts {
        let joined = text.replace("\\r", "").replace("\\n", "").replace(['\r', '\n'], "");
        for text in [text, &joined] {
            for found in search.find_overlapping_iter(text) {
                leaks.insert(format!("{} is in {place}", hidden[found.pattern()].1));
            }
        }
    }
    leaks
}

#[test]
fn twenty_secrets_are_nowhere_to_be_found() {
    assert_eq!(all().count(), 20);
    let place = planted();
    let one = |name: &str| forms(LONG)[name].clone();
    let server = Server::start(said(), format!("{} {}", one("base64 padded"), one("hex")));
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = free.local_addr().expect("it is bound").port();
    drop(free);
    let mut nodes = given();
    nodes.extend(found());
    nodes.extend(asked(server.port, nobody));
    nodes.push(("copied", json!({"update_context": {"set": {"output.all": "state"}}})));
    let fine = place.file("fine.yaml", &workflow("fine", nodes));
    let naming = json!({"shell": {"command": named().map(secret).collect::<Vec<_>>(), "timeout": "20s"}});
    let nodes = vec![("names", naming), ("end", shell("cat said.txt plain.txt >&2; exit 5"))];
    let broken = place.file("broken.yaml", &workflow("broken", nodes));

    let mut seen = Vec::new();
    let mut runs = Vec::new();
    for (file, code) in [(&fine, 0), (&broken, 1)] {
        for format in ["json", "text"] {
            let done = wonder(&place, &["run", file, "-o", format]);
            assert_eq!(done.code, Some(code), "{done:?}");
            if format == "json" {
                let told: Value = serde_json::from_str(&done.out).expect("JSON");
                runs.push(told["run"].as_str().expect("an id").to_owned());
            }
            seen.push((format!("run {file} -o {format}"), format!("{}\n{}", done.out, done.err)));
        }
    }
    seen.push(("retry".to_owned(), format!("{:?}", wonder(&place, &["retry", &runs[1]]))));

    // They were there: commands counted them, and the server was told.
    let counts = std::fs::read_to_string(place.dir.path().join("counts.txt")).expect("counts");
    let counts: Vec<usize> = counts.lines().map(|line| line.trim().parse().expect("a number")).collect();
    for name in named() {
        let (_, value) = all().find(|(known, _)| *known == name).expect("it is one of them");
        assert!(counts.contains(&value.len()), "{name} was not given: {counts:?}");
        let encoded = &forms(value)["URL by RFC 3986"];
        assert!(server.asked().contains(encoded), "the server was not told {name}");
    }

    seen.extend(shown(&place, &runs));
    seen.extend(stored(&place));
    for what in [
        format!("logs {} -o text", runs[0]),
        format!("events {} -o json", runs[0]),
        "the table log".to_owned(),
    ] {
        let text = seen.iter().find(|(place, _)| place.starts_with(&what)).map(|(_, text)| text.as_str());
        assert!(
            text.is_some_and(|text| text.contains(MARK) && text.contains("***")),
            "{what} was not searched"
        );
    }
    let logs = seen.iter().filter(|(place, _)| place.starts_with("logs "));
    for (name, _) in all() {
        let inherited = format!("environment | {name}=");
        assert!(!logs.clone().any(|(_, text)| text.contains(&inherited)), "a command inherited {name}");
    }
    assert!(
        logs.clone().any(|(_, text)| text.contains("environment | PATH=")),
        "what it inherits was looked at"
    );
    let found = leaks(&seen);
    assert!(found.is_empty(), "{} leaks: {found:#?}", found.len());
}

/// An agent whose model is told secrets, and says them, a few letters at a time, in words and in what it wants to call;
/// whose tools read and print them, and leave them in files.
fn telling(provider: &Provider) -> String {
    let look = json!({"description": "Looks.", "effects": "once",
        "requires": {"type": "object", "required": ["what"]},
        "shell": {"command": "cat said.txt plain.txt; cp said.txt plain.txt data.json \"$WONDER_ARTIFACTS\"; echo {{ what }} | wc -c >&2",
            "env": {"KEY": secret("LONG"), "OTHER": secret("QUOTES")}, "timeout": "60s",
            "limits": {"output_bytes": 4_000_000}}});
    let fails =
        json!({"description": "Fails.", "shell": {"command": "cat plain.txt >&2; exit 4", "timeout": "60s"}});
    let headers: BTreeMap<String, String> = named()
        .filter(|name| !["PEM", "BEYOND_ASCII"].contains(name))
        .map(|name| (format!("X-{}", name.replace('_', "-")), secret(name)))
        .collect();
    let model = json!({"provider": "openai", "model": "gpt-5.2", "base_url": format!("{}/v1", provider.url()),
        "api_key": secret("MODEL_KEY"), "headers": headers, "prices": {"input": 1, "output": 2}});
    let told: Vec<String> = named().map(secret).collect();
    let ask = json!({"llm_call": {"model": "m", "prompt": told.join(" "), "system": secret("PEM"), "timeout": "60s"},
        "next": [{"to": "work"}]});
    let agent = json!({"agent": {"model": "m", "prompt": "Look at {{ state.ask.text }}.", "tools": ["look", "fails"]}});
    let nodes = json!({"ask": ask, "work": agent});
    format!(
        "wonder: 1\nname: telling\ntimeout: 10m\nnodes: {nodes}\nmodels: {}\ntools: {}\n",
        json!({"m": model}),
        json!({"look": look, "fails": fails})
    )
}

#[test]
fn what_an_agent_its_model_and_its_tools_say_shows_no_secret() {
    let plain: String = all().map(|(_, value)| format!("{value} ")).collect();
    let calls = json!([{"tool": "look", "arguments": {"what": plain, "more": said()}}, {"tool": "fails", "arguments": {}},
        {"tool": "nobody", "arguments": {"what": said()}}]);
    let turns = json!([
        {"when": {"turn": 1, "contains": "Look at"}, "text": said(), "chunk_chars": 7, "tool_calls": calls},
        {"when": {"turn": 2}, "text": format!("{plain} {MARK}"), "chunk_chars": 3},
        {"text": said(), "chunk_chars": 5},
    ]);
    let turns: String =
        turns.as_array().expect("a list").iter().map(|turn| format!("  - {turn}\n")).collect();
    let provider = Provider::start(&turns);
    let place = planted();
    place
        .file("wonder.toml", &format!("secrets_file = \"keys\"\nallow_hosts = [\"{}\"]\n", provider.address));
    let keys = std::fs::read_to_string(place.dir.path().join("keys")).expect("keys");
    place.file("keys", &format!("{keys}MODEL_KEY={KEY}\n"));
    let file = place.file("telling.yaml", &telling(&provider));

    let mut seen = Vec::new();
    let mut see = |arguments: &[&str], code: i32| {
        let done = wonder(&place, arguments);
        assert_eq!(done.code, Some(code), "{arguments:?}: {done:?}");
        seen.push((arguments.join(" "), format!("{}\n{}", done.out, done.err)));
        done.out
    };
    see(&["run", &file, "-o", "text"], 3);
    let told: Value = serde_json::from_str(&see(&["list", "-o", "json"], 0)).expect("JSON");
    let run = told[0]["run"].as_str().expect("an id").to_owned();
    see(&["gates", "-o", "json"], 0);
    see(&["show", "last"], 0);
    see(&["answer", "last", "action=approve", "-o", "text"], 0);
    see(&["fork", &run, "--from", "work/think", "-o", "text"], 0);
    let artifacts = see(&["artifacts", &run], 0);
    assert!(artifacts.contains("plain.txt"), "{artifacts}");
    let asked = provider.journal().to_string();
    assert!(
        asked.contains(MARK) && asked.contains(PEM.lines().nth(1).expect("a line")),
        "the model was told"
    );

    seen.extend(shown(&place, &[run.clone(), format!("{run}.2.1")]));
    seen.extend(stored(&place));
    let searched = seen.iter().filter(|(_, text)| text.contains(MARK) && text.contains("***")).count();
    assert!(searched >= 8, "{searched} of {} have anything to hide", seen.len());
    let found = leaks(&seen);
    assert!(found.is_empty(), "{} leaks: {found:#?}", found.len());
}

/// Runs as somebody who may not look into what root owns.
fn as_nobody(folder: &Path, arguments: &[&str]) -> Ended {
    let own = Command::new("chown").args(["-R", "65534:65534"]).arg(folder).status().expect("chown runs");
    assert!(own.success(), "only root can become somebody else: run the tests as root, as CI does");
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(folder.join("wonder"))
        .args(arguments);
    command.current_dir(folder).env("WONDER_HOME", folder.join("home")).env("HOME", folder);
    command.env("OPENAI_API_KEY", "sk-canary-0123456789").stdin(Stdio::null());
    ended(command.output().expect("setpriv is here: make tools"))
}

#[test]
fn a_command_cannot_read_the_environment_of_the_process_that_started_it() {
    let place = Place::new();
    std::fs::copy(binary(), place.dir.path().join("wonder")).expect("a copy of the binary");
    let look = "tr '\\0' '\\n' < /proc/$PPID/environ | grep -c OPENAI; head -c 1 /proc/$PPID/mem | wc -c; env | grep -c OPENAI; id -u";
    for isolation in ["none", "process"] {
        let node = json!({"shell": {"command": look, "isolation": isolation, "timeout": "20s", "expect_exit": [0, 1]}});
        let file = format!(
            "wonder: 1\nname: look\nnodes: {{look: {node}}}\noutput_mapping: {{said: state.look.stdout}}\n"
        );
        place.file("look.yaml", &file);
        let done = as_nobody(place.dir.path(), &["run", "look.yaml", "-o", "json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let told: Value = serde_json::from_str(&done.out).expect("JSON");
        assert_eq!(told["output"]["said"], "0\n0\n0\n65534\n", "{isolation}: {done:?}");
    }
}

/// What is typed is stored as it is: with a secret in it, it is not taken.
#[test]
fn a_secret_that_is_typed_is_refused_and_stored_nowhere() {
    let place = planted();
    // The last node never runs: it is enough that the file names them.
    let naming = json!({"shell": {"command": named().map(secret).collect::<Vec<_>>(), "timeout": "20s"}});
    let waits = format!(
        "wonder: 1\nname: waits\nnodes:\n  ask: {{human_gate: {{title: Go on?}}, next: [{{to: hear}}]}}\n  \
         hear: {{wait_event: {{event: news}}, next: [{{to: names}}]}}\n  names: {naming}\n"
    );
    let file = place.file("waits.yaml", &waits);
    assert_eq!(wonder(&place, &["run", &file]).code, Some(3));
    let long: Vec<&str> = all().map(|(_, value)| value).filter(|value| value.len() >= 12).collect();
    assert!(long.len() > 12, "{long:?}");
    for secret in &long {
        let (typed, json) = (format!("text=before {secret} after"), json!({"text": secret}).to_string());
        for arguments in [
            &["run", &file, "--input", &typed][..],
            &["run", &file, "--input", &json, "--label", &format!("a={secret}")],
            &["answer", "last", &typed],
            &["answer", "last", &json],
            &["signal", "last", "news", &json],
            &["signal", "last", "news", "{}", "--key", &json!(secret).to_string()],
        ] {
            let refused = wonder(&place, arguments);
            assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
            assert!(refused.err.contains("has a secret in it"), "{arguments:?}: {refused:?}");
        }
    }
    let found = leaks(&stored(&place));
    assert!(found.is_empty(), "{} leaks: {found:#?}", found.len());
}
