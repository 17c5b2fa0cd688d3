//! Cassettes by the real binary: an agent is recorded against a scripted provider and played again with the provider gone,
//! the key gone and the commands not run; what has changed is told; no secret is in what was written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::models::Provider;
use crate::place::{Place, ended};
use crate::secrets::forms::forms;

const TURNS: &str = "  - {when: {turn: 1}, text: On., tool_calls: [{tool: note, arguments: {text: one}}, \
    {tool: note, arguments: {text: two}}]}\n  \
    - {error: {status: 503}, times: 1}\n  \
    - {when: {turn: 2}, json: {summary: noted}, usage: {input_tokens: 100, output_tokens: 10}}\n";

fn workflow(provider: &Provider, log: &Path) -> String {
    let log = log.display();
    format!(
        "wonder: 1\nname: noting\nnodes:\n  work:\n    agent: {{model: m, system: You note things., \
         prompt: 'Note {{{{ input.what }}}}.', tools: [note], max_turns: 5, \
         output_schema: {{type: object, required: [summary]}}}}\n\
         tools:\n  note: {{description: Notes., requires: {{type: object, required: [text]}}, \
         shell: {{command: 'echo {{{{ text }}}} | tee -a {log}; echo {{{{ text }}}} > $WONDER_ARTIFACTS/{{{{ text }}}}.txt'}}}}\n\
         models:\n  m: {{provider: openai, model: gpt-5.2, base_url: '{}/v1', \
         api_key: '{{{{ secret.MODEL_KEY }}}}', prices: {{input: 1, output: 2}}}}\n",
        provider.url()
    )
}

/// An agent that was recorded in a place of its own.
struct Recorded {
    place: Place,
    file: String,
    tape: String,
    view: Value,
}

impl Recorded {
    fn new(provider: &Provider) -> Recorded {
        let place = provider.place();
        let file = place.file("noting.yaml", &workflow(provider, &place.log()));
        let tape = place.dir.path().join("tape").display().to_string();
        let view = place.json(&["run", &file, "-i", "what=it", "--record", &tape], 0);
        Recorded { place, file, tape, view }
    }

    /// Another home on a machine that has neither the key nor a provider.
    fn elsewhere(&self) -> Place {
        let place = Place::new();
        place.file("wonder.toml", "");
        place
    }

    fn files(&self) -> Vec<PathBuf> {
        files_in(Path::new(&self.tape))
    }
}

fn files_in(tape: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(tape).expect("a cassette").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.is_file() && !path.ends_with("cassette.json")).collect();
    files.sort();
    files
}

/// Events as far as two runs of the same have to agree: not when, not how long, not under which id.
fn comparable(place: &Place, run: &str) -> Vec<String> {
    let mut all = Vec::new();
    for id in [run.to_owned(), format!("{run}.1.1")] {
        for mut event in place.events(&id) {
            without_times(&mut event);
            all.push(event.to_string().replace(run, "RUN"));
        }
    }
    // Commands that are out at once end in any order.
    all.sort();
    all
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| {
                !["at", "seq", "seed", "duration_ms", "deadline", "workdir", "file", "cursor"]
                    .contains(&key.as_str())
            });
            map.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn a_recorded_agent_is_played_again_without_a_network_a_key_or_a_command() {
    let provider = Provider::start(TURNS);
    let recorded = Recorded::new(&provider);
    assert_eq!(recorded.view["output"]["json"]["summary"], "noted", "{:#}", recorded.view);
    assert_eq!(provider.count(), 3);
    drop(provider);
    let effects = recorded.place.effects();
    let place = recorded.elsewhere();
    let view = place.json(&["run", &recorded.file, "-i", "what=it", "--replay", &recorded.tape], 0);
    assert_eq!(view["output"], recorded.view["output"]);
    assert_eq!(view["cost_usd"], recorded.view["cost_usd"], "{view:#}");
    assert_eq!(recorded.place.effects(), effects, "no command ran");
    let (was, is) = (recorded.view["run"].as_str().expect("an id"), view["run"].as_str().expect("an id"));
    assert_eq!(comparable(&place, is), comparable(&recorded.place, was));
    let kept = place.json(&["artifacts", is], 0);
    let names: Vec<&str> =
        kept.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!((names.len(), names.contains(&"one.txt")), (2, true), "{kept:#}");
}

#[test]
fn what_has_changed_since_is_told_by_the_nearest_recording() {
    let provider = Provider::start(TURNS);
    let recorded = Recorded::new(&provider);
    let text = std::fs::read_to_string(&recorded.file).expect("the file");
    let place = recorded.elsewhere();
    let file = place.file("noting.yaml", &text.replace("You note things.", "You note all things."));
    let drifted = place.run(&["run", &file, "-i", "what=it", "--replay", &recorded.tape]);
    assert_eq!(drifted.code, Some(1), "{drifted:#?}");
    assert!(drifted.err.contains("not_recorded at think"), "{drifted:#?}");
    let told = drifted.err.split("error[not_recorded]").nth(1).expect("it is told at the end");
    let nearest = format!("the nearest is {}", name_of(&recorded.files()[0]));
    for line in [&*nearest, "- system: You note things.", "+ system: You note all things."] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(provider.count(), 3, "nobody was asked");
    // A tool that has no recording is told to the model, and yet it is the first that is told to the person.
    let file = place.file("noting.yaml", &text.replace("| tee -a", "| tee  -a"));
    let drifted = place.run(&["run", &file, "-i", "what=it", "--replay", &recorded.tape]);
    let told = drifted.err.split("error[not_recorded]").nth(1).expect("it is told at the end");
    assert!(told.contains("`shell` of `note") && told.contains("more requests after it"), "{told}");
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn a_recording_that_was_killed_goes_on_with_the_run() {
    let provider = Provider::start(TURNS);
    for point in ["committed:5", "committed:9", "ordered:2", "ordered:4", "write:7"] {
        let place = provider.place();
        let file = place.file("noting.yaml", &workflow(&provider, &place.log()));
        let tape = place.dir.path().join("tape").display().to_string();
        let run = ["run", &file, "-i", "what=it", "--record", &tape, "-o", "json"];
        let died = ended(place.command(&run).env("WONDER_FAILPOINT", point).output().expect("it starts"));
        assert!(matches!(died.code, None | Some(0)), "{point}: {died:#?}");
        let listed = place.json(&["list"], 0);
        let Some(id) = listed[0]["run"].as_str() else { continue };
        if listed[0]["status"] != "completed" {
            let resumed = place.run(&["resume", id, "--record", &tape, "-o", "json"]);
            assert_eq!(resumed.code, Some(0), "{point}: {resumed:#?}");
        }
        let view = place.json(&["show", id], 0);
        let replayed = Place::new().json(&["run", &file, "-i", "what=it", "--replay", &tape], 0);
        assert_eq!(replayed["output"], view["output"], "{point}");
        let other = place.run(&["run", &file, "-i", "what=it", "--record", &tape]);
        assert_eq!(other.code, Some(2), "{other:#?}");
        assert!(other.err.contains(&format!("has a recording of run {id}")), "{other:#?}");
    }
}

#[test]
fn a_gate_is_answered_between_two_recordings_and_two_replays() {
    let place = Place::new();
    let log = place.log().display().to_string();
    // The same command twice, with different answers.
    let count = format!("shell: {{command: 'echo x >> {log}; wc -l < {log}'}}");
    let workflow = format!(
        "wonder: 1\nname: gated\nnodes:\n  one: {{{count}, next: [ask]}}\n  ask: {{human_gate: {{title: Go on?}}, next: [two]}}\n  \
         two: {{{count}, output_mapping: {{output.lines: result.json}}}}\n"
    );
    let file = place.file("gated.yaml", &workflow);
    let tape = place.dir.path().join("tape").display().to_string();
    place.json(&["run", &file, "--record", &tape], 3);
    let done = place.json(&["answer", "last", "ok=true", "--record", &tape], 0);
    assert_eq!(done["output"]["lines"], 2, "{done:#}");
    let elsewhere = Place::new();
    elsewhere.json(&["run", &file, "--replay", &tape], 3);
    let done = elsewhere.json(&["answer", "last", "ok=true", "--replay", &tape], 0);
    assert_eq!((&done["output"]["lines"], place.effects()), (&json!(2), 2), "{done:#}");
}

#[test]
fn a_process_that_performs_nothing_records_nothing() {
    let place = Place::new();
    let slow = place.file(
        "slow.yaml",
        "wonder: 1\nname: slow\nnodes:\n  a: {shell: {command: 'sleep 60', timeout: 2m}}\n",
    );
    let mut owner = place.spawn(&["run", &slow]);
    crate::place::until("it runs", || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        place.run(&["why", "last"]).code == Some(0)
    });
    let tape = place.dir.path().join("tape").display().to_string();
    let refused = place.run(&["run", &slow, "--record", &tape]);
    owner.kill().expect("it runs");
    let _ = owner.wait();
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.err.contains("owns the database"), "{refused:#?}");
    assert!(!Path::new(&tape).exists(), "nothing was written");
}

/// A conversation of 100 turns.
#[test]
fn a_long_conversation_takes_as_much_room_a_turn_as_a_short_one() {
    let turns = "  - {when: {turn: 101}, text: Done.}\n  - {tool_calls: [{tool: note, arguments: {text: 'turn {turn}'}}]}\n";
    let provider = Provider::start(turns);
    let place = provider.place();
    let text = workflow(&provider, &place.log()).replace("max_turns: 5", "max_turns: 110");
    let text = text.replace(", output_schema: {type: object, required: [summary]}", "");
    let file = place.file("noting.yaml", &text);
    let tape = place.dir.path().join("tape").display().to_string();
    let view = place.json(&["run", &file, "-i", "what=it", "--record", &tape], 0);
    assert_eq!(view["output"]["turns"], 101, "{view:#}");
    let files = files_in(Path::new(&tape));
    let thoughts: Vec<u64> = files
        .iter()
        .filter(|path| name_of(path).contains("-llm_call-"))
        .map(|path| path.metadata().expect("a file").len())
        .collect();
    assert_eq!(thoughts.len(), 101);
    let (tenth, last) = (thoughts[9], thoughts[99]);
    assert!(last < tenth + 200, "bytes a turn: {thoughts:?}");
    let replayed = Place::new().json(&["run", &file, "-i", "what=it", "--replay", &tape], 0);
    assert_eq!(replayed["output"], view["output"]);
}

const SECRET: &str = "pl4nted/secret+\"val\\ue\" 0123456789";

#[test]
fn no_secret_is_in_a_cassette_in_any_form() {
    let provider = Provider::start(&format!(
        "  - {{when: {{contains: Is it}}, text: 'It is {SECRET}'}}\n  \
         - {{when: {{turn: 1}}, tool_calls: [{{tool: leak, arguments: {{text: '{SECRET}'}}}}]}}\n  \
         - {{text: 'You said {{last}}, and {SECRET}'}}\n"
    ));
    let place = provider.place();
    let env = std::fs::read_to_string(place.dir.path().join(".env")).expect("a file");
    place.file(".env", &format!("{env}PLANTED='{SECRET}'\n"));
    let leak = "printf '%s\\n' \"$GIVEN\" {{ text }}; printf %s \"$GIVEN\" | base64 -w0; echo; \
        printf %s \"$GIVEN\" | od -An -tx1 | tr -d ' \\n'; printf %s \"$GIVEN\" > $WONDER_ARTIFACTS/leak.txt";
    let workflow = json!({
        "name": "leaking",
        "nodes": {
            "ask": {"http_request": {
                "url": format!("{}/v1/{{{{ secret.PLANTED }}}}", provider.url()), "method": "POST",
                "query": {"q": "{{ secret.PLANTED }}", "api_key": "{{ secret.PLANTED }}"},
                "headers": {"X-Mine": "Bearer {{ secret.MODEL_KEY }}", "Authorization": "Bearer {{ secret.MODEL_KEY }}"},
                "json": {"token": "{{ secret.PLANTED }}"}, "expect": ["4xx", "2xx"]}, "next": ["say"]},
            "say": {"llm_call": {"model": "m", "prompt": "Is it {{ secret.PLANTED }}?"}, "next": ["work"]},
            "work": {"agent": {"model": "m", "prompt": "Leak.", "tools": ["leak"], "max_turns": 3}}
        },
        "tools": {"leak": {"description": "Leaks.", "requires": {"type": "object"},
            "shell": {"command": leak, "env": {"GIVEN": "{{ secret.PLANTED }}"}, "stdin": "{{ secret.PLANTED }}"}}},
        "models": {"m": {"provider": "openai", "model": "gpt-5.2", "base_url": format!("{}/v1", provider.url()),
            "api_key": "{{ secret.MODEL_KEY }}", "headers": {"X-Also": "{{ secret.PLANTED }}"}}}
    });
    let file = place.file("leaking.json", &format!("{{\"wonder\": 1, {}", &workflow.to_string()[1..]));
    let tape = place.dir.path().join("tape");
    let run = place.run(&["run", &file, "--record", &tape.display().to_string(), "-o", "json"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let mut all = Vec::new();
    for path in files_in(&tape).into_iter().chain(files_in(&tape.join("files"))) {
        all.extend(name_of(&path).into_bytes());
        all.extend(std::fs::read(path).expect("a file"));
    }
    let all = String::from_utf8_lossy(&all);
    assert!(all.contains("***") && all.contains("secret.PLANTED"), "{all}");
    for secret in [SECRET, crate::models::KEY] {
        for (name, form) in forms(secret) {
            assert!(!all.contains(&form), "{name}: {form:?} is in the cassette: {all}");
        }
    }
    let replayed = Place::new();
    let view = replayed.json(&["run", &file, "--replay", &tape.display().to_string()], 0);
    let was: Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(view["output"], was["output"]);
}

#[test]
fn a_test_case_is_answered_by_a_cassette_on_virtual_time() {
    let provider = Provider::start(TURNS);
    let recorded = Recorded::new(&provider);
    let cases = "cassette: tape\ncases:\n  - {name: noted, input: {what: it}, expect: {output: {json: {summary: noted}}}}\n  \
        - {name: other, input: {what: that}}\n";
    let tests = recorded.place.file("noting.test.yaml", cases);
    let before: Vec<Vec<u8>> =
        recorded.files().iter().map(|path| std::fs::read(path).expect("a file")).collect();
    let told = recorded.place.run(&["test", &tests, "--update"]);
    assert_eq!(told.code, Some(1), "{told:#?}");
    let said = format!("{}{}", told.out, told.err);
    assert!(said.contains("1 passed, 1 failed"), "{said}");
    assert!(said.contains("Note it.") && said.contains("Note that."), "the difference: {said}");
    let after: Vec<Vec<u8>> =
        recorded.files().iter().map(|path| std::fs::read(path).expect("a file")).collect();
    assert!(before == after, "a cassette is left alone");
    assert_eq!(provider.count(), 3, "nobody was asked");
}
