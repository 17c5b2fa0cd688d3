//! An agent by the real binary, killed at every failpoint of a run with 12 turns and 30 tool calls: no turn that was
//! answered is asked for again, no tool call that completed is made again, and a call that must not be repeated asks.

use crate::models::Provider;
use crate::place::{Place, Told, attacks, ended};

/// Ten turns with three calls each, an answer that does not fit, and one that does.
fn turns() -> String {
    let mut turns = String::new();
    for turn in 1..=10 {
        let call = |at: usize| format!("{{tool: note, arguments: {{text: 't{turn} {at}'}}}}");
        let calls: Vec<String> = (0..3).map(call).collect();
        turns.push_str(&format!(
            "  - {{when: {{turn: {turn}}}, text: On., tool_calls: [{}]}}\n",
            calls.join(", ")
        ));
    }
    turns.push_str(
        "  - {when: {turn: 11}, text: not JSON}\n  - {when: {turn: 12}, json: {summary: all noted}}\n",
    );
    turns
}

fn workflow(provider: &Provider, log: &str) -> String {
    let note = format!(
        r#"shell: {{command: 'echo "$WONDER_IDEMPOTENCY_KEY $PPID $(date +%s%3N)" >> {log}', timeout: 30s}}"#
    );
    format!(
        "wonder: 1\nname: noting\nnodes:\n  work:\n    agent:\n      model: m\n      prompt: Note it.\n      \
         tools: [note]\n      max_turns: 12\n      output_schema: {{type: object, required: [summary]}}\n\
         tools:\n  note: {{description: Notes., {note}, requires: {{type: object, required: [text]}}}}\n\
         models:\n  m: {{provider: openai, model: gpt-5.2, base_url: '{}/v1', api_key: '{{{{ secret.MODEL_KEY }}}}', \
         prices: {{input: 1, output: 2}}}}\n",
        provider.url()
    )
}

struct Noting {
    provider: Provider,
    place: Place,
    file: String,
}

impl Noting {
    fn new() -> Noting {
        let provider = Provider::start(&turns());
        let place = provider.place();
        let log = place.log().display().to_string();
        let file = place.file("noting.yaml", &workflow(&provider, &log));
        Noting { provider, place, file }
    }

    fn start(&self) -> [&str; 4] {
        ["run", &self.file, "-o", "json"]
    }

    /// How many turns of the model were answered, by the log of the run.
    fn turns_answered(&self) -> u64 {
        let listed = self.place.json(&["list"], 0);
        let Some(run) = listed[0]["run"].as_str() else { return 0 };
        let child = format!("{run}.1.1");
        let events = self.place.run(&["events", &child, "-o", "json"]).out;
        let events: Vec<serde_json::Value> =
            events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let thinking =
            |event: &&serde_json::Value| event["kind"] == "token_created" && event["node"] == "think";
        let tokens: Vec<&serde_json::Value> =
            events.iter().filter(thinking).map(|event| &event["token"]).collect();
        let answered = |event: &&serde_json::Value| {
            event["kind"] == "task_completed" && tokens.contains(&&event["token"])
        };
        events.iter().filter(answered).count() as u64
    }

    /// Goes on after a death, to the end; then nothing has been asked or done too often.
    fn finish(self, point: &str) {
        let asked_before = self.provider.count();
        let answered_before = self.turns_answered();
        let listed = self.place.json(&["list"], 0);
        match listed[0]["status"].as_str() {
            None => drop(self.place.json(&self.start()[..2], 0)),
            Some("completed") => {}
            Some(_) => {
                let resumed = self.place.run(&["resume", "last", "-o", "json"]);
                assert_eq!(resumed.code, Some(0), "{point}: {resumed:#?}");
            }
        }
        let shown = self.place.json(&["show", "last"], 0);
        assert_eq!(shown["output"]["json"]["summary"], "all noted", "{point}: {shown:#}");
        assert_eq!(shown["output"]["turns"], 12, "{point}");
        let after = self.provider.count() - asked_before;
        assert_eq!(after, 12 - answered_before, "{point}: a turn that was answered was asked for again");
        match wonder_checker::check(&self.place.database(), &self.place.log(), 1) {
            Ok(summary) => assert_eq!(summary.runs, 2, "{point}: {summary:?}"),
            Err(broken) => panic!("{point}: {}", broken.join("\n")),
        }
    }
}

#[test]
fn an_agent_that_dies_at_any_failpoint_pays_no_turn_twice_and_repeats_no_call() {
    // Every passage of every failpoint in `make soak`; some of each kind for every change.
    let step = attacks(23, 1);
    let places = ["begin", "write", "committed", "answered", "ordered"];
    let points =
        places.iter().flat_map(|place| (1..120).step_by(step).map(move |count| format!("{place}:{count}")));
    for point in points {
        let noting = Noting::new();
        let mut command = noting.place.command(&noting.start());
        let died = ended(command.env("WONDER_FAILPOINT", &point).output().expect("it starts"));
        assert!(matches!(died.code, None | Some(0)), "{point}: {died:#?}");
        noting.finish(&point);
    }
}

#[test]
fn a_call_that_must_not_be_repeated_asks_what_became_of_it() {
    let provider = Provider::start(
        "  - {when: {turn: 1}, tool_calls: [{tool: pay, arguments: {}}]}\n  - {when: {turn: 2}, text: 'Paid: {last}'}\n",
    );
    let place = provider.place();
    let log = place.log().display().to_string();
    let workflow = format!(
        "wonder: 1\nname: paying\nnodes:\n  work: {{agent: {{model: m, prompt: Pay., tools: [pay], approve: {{default: never}}}}}}\n\
         tools:\n  pay: {{description: Pays., effects: once, shell: {{command: 'echo paid >> {log}; kill -9 $PPID; sleep 5', \
         timeout: 30s}}}}\n\
         models:\n  m: {{provider: openai, model: gpt-5.2, base_url: '{}/v1', api_key: '{{{{ secret.MODEL_KEY }}}}'}}\n",
        provider.url()
    );
    let file = place.file("paying.yaml", &workflow);
    let died = place.run(&["run", &file, "-o", "json"]);
    assert_eq!(died.code, None, "{died:#?}");
    let resumed = place.run(&["resume", "last", "-o", "json"]);
    assert_eq!(resumed.code, Some(3), "{resumed:#?}");
    let mut told = Told::left(place);
    told.then(&["answer", r#"{"action": "done", "output": {"receipt": 7}}"#], 0);
    let text = told.view["output"]["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with("Paid: ") && text.contains("receipt"), "{text}");
    assert_eq!(std::fs::read_to_string(told.place.log()).expect("the log").lines().count(), 1, "paid once");
    assert_eq!(provider.count(), 2);
}

#[test]
fn a_fork_goes_on_from_any_turn_and_repeats_no_call_before_it() {
    let provider = Provider::start(
        "  - {when: {turn: 1}, tool_calls: [{tool: note, arguments: {text: one}}]}\n  \
         - {when: {turn: 2}, tool_calls: [{tool: note, arguments: {text: two}}]}\n  \
         - {when: {turn: 3}, json: {summary: all noted}}\n",
    );
    let place = provider.place();
    let log = place.log().display().to_string();
    let file = place.file("noting.yaml", &workflow(&provider, &log));
    let first = place.json(&["run", &file], 0);
    let run = first["run"].as_str().expect("an id").to_owned();
    assert_eq!((provider.count(), place.effects()), (3, 2));

    // The second turn again: the first is not asked for, its call not made.
    let forked = place.json(&["fork", &run, "--from", "work/think", "--turn", "2"], 0);
    assert_eq!(forked["output"], first["output"], "{forked:#}");
    assert_ne!(forked["run"], first["run"]);
    assert_eq!((provider.count(), place.effects()), (5, 3));

    // The last one, named by the agent's own run, in a conversation that somebody has edited.
    let said = r#"{"messages": [{"role": "user", "content": "Say it in French."}]}"#;
    let child = format!("{run}.1.1");
    place.json(&["fork", &child, "--from", "think", "--set", said, "--detach"], 0);
    place.json(&["resume", "last"], 0);
    assert_eq!(
        (provider.count(), place.effects()),
        (6 + 2, 3 + 2),
        "an edited conversation is at its first turn"
    );
    let journal = provider.journal().to_string();
    assert!(journal.contains("Say it in French."), "{journal}");

    let never = place.run(&["fork", &run, "--from", "work/think", "--turn", "9"]);
    assert_eq!(never.code, Some(2), "{never:#?}");
    assert!(never.err.contains("visit 9 of think was never dispatched"), "{}", never.err);
}
