//! `run`: what it prints, how it leaves.

use insta::assert_snapshot;

use crate::home::Home;
use crate::mask::mask_field;

pub(crate) const GREET: &str = r#"
name: greet
input_schema: {type: object, required: [who], properties: {who: {type: string}}}
nodes:
  ask: {mock: {output: {text: "Hello, {{ input.who }}"}, usage: {cost_usd: 0.0042, input_tokens: 10, output_tokens: 2}}, next: [{to: say}]}
  say: {shell: {command: "echo said {{ state.ask.text }}"}, timeout: 20s}
output_mapping: {text: state.ask.text, exit: state.say.exit_code}
"#;

#[test]
fn a_run_prints_its_output_and_what_happened() {
    let home = Home::with(GREET);
    assert_snapshot!("run", home.wonder(&["run", "flow.yaml", "--input", "who=world"]));
    let json = home.wonder(&["run", "flow.yaml", "--input", r#"{"who":"you"}"#, "-o", "json"]);
    assert_snapshot!("run_json", mask_field(&json, "duration_ms"));
}

#[test]
fn inputs_come_from_everywhere() {
    let home = Home::with("name: echo\nnodes: {a: {update_context: {set: {output: input}}}}\n");
    home.write("in.json", r#"{"a": {"b": 1, "c": 2}, "list": [1]}"#);
    let args = ["run", "flow.yaml", "-i", "@in.json", "-i", "-", "-i", "a.c=three", "-o", "json"];
    let shot = home.wonder_fed(&args, r#"{"d": null}"#);
    assert!(shot.contains(r#""output":{"a":{"b":1,"c":"three"},"d":null,"list":[1]}"#), "{shot}");
}

#[test]
fn what_is_typed_is_typed_by_the_schema() {
    let echo = "nodes: {a: {update_context: {set: {output: input}}}}\n";
    let free = Home::with(&format!("name: echo\n{echo}"));
    let given = |home: &Home, inputs: &[&str]| -> serde_json::Value {
        let inputs = inputs.iter().flat_map(|text| ["-i", *text]);
        let args: Vec<&str> = ["run", "flow.yaml", "-o", "json"].into_iter().chain(inputs).collect();
        home.json(&args)["output"].clone()
    };
    let text = given(&free, &["version=1.10", "n=7", "ok=true", "list=[1]"]);
    assert_eq!(text, serde_json::json!({"version": "1.10", "n": "7", "ok": "true", "list": "[1]"}));
    let json = given(&free, &["version:=1.10", "n:=7", "ok:=true", "list:=[1]", r#"{"z": null}"#]);
    assert_eq!(json, serde_json::json!({"version": 1.1, "n": 7, "ok": true, "list": [1], "z": null}));

    let schema = "input_schema: {type: object, additionalProperties: false, properties: {version: {type: string}, \
                  n: {type: integer}, ok: {type: boolean}, list: {type: array}, level: {enum: [low, high]}}}\n";
    let typed = Home::with(&format!("name: echo\n{schema}{echo}"));
    let output = given(&typed, &["version=1.10", "n=7", "ok=true", "list=[1]", "level=low"]);
    let expected = serde_json::json!({"version": "1.10", "n": 7, "ok": true, "list": [1], "level": "low"});
    assert_eq!(output, expected);
    let wrong = ["run", "flow.yaml", "-i", "n=seven", "-i", "ok=yes", "-i", "level=mid", "-i", "nn=1"];
    assert_snapshot!("inputs_do_not_fit", typed.wonder(&wrong));
    assert_snapshot!("input_does_not_fit", typed.wonder(&["run", "flow.yaml", "-i", "n=seven"]));
}

#[test]
fn a_run_that_fails_says_why_and_what_to_do() {
    let home = Home::with(
        r#"
name: breaks
nodes:
  try:
    shell: {command: "echo trying; echo no such thing >&2; exit 3"}
    timeout: 20s
    on_error: [{do: retry, max: 1}]
"#,
    );
    assert_snapshot!("run_failed", home.wonder(&["run", "flow.yaml"]));
    let json = home.json(&["run", "flow.yaml", "-o", "json"]);
    assert_eq!((&json["status"], &json["error"]["kind"]), (&"failed".into(), &"shell_exit".into()));
}

#[test]
fn fan_outs_and_children_are_told() {
    let home = Home::with(
        r#"
name: outer
max_parallel: 1
nodes:
  list: {mock: {output: {names: [a, b]}}, next: [{to: each, foreach: {items: result.names, as: name}}]}
  each: {mock: {output: {ok: true}}, next: [{to: call, synchronization: {merge: {target: state.all}}}]}
  call: {workflow_call: {workflow: inner}}
---
name: inner
nodes: {work: {mock: {output: {done: true}}}}
"#,
    );
    assert_snapshot!("run_family", home.wonder(&["run", "flow.yaml"]));
    assert_snapshot!("show_family", home.wonder(&["show", "last"]));
    assert_snapshot!("list_children", home.wonder(&["list", "--all"]));
}

#[test]
fn each_end_has_its_exit_code() {
    let timed_out =
        "name: late\ntimeout: 20ms\non_timeout: cancel_all\nnodes: {a: {shell: {command: sleep 30}}}\n";
    let home = Home::with(timed_out);
    assert_snapshot!("run_timed_out", home.wonder(&["run", "flow.yaml"]));

    let budget = |response: &str| {
        format!(
            "name: spends\nbudget: {{usd: 0.01, on_exceeded: {response}}}\nnodes:\n  \
             one: {{mock: {{output: {{}}, usage: {{cost_usd: 0.02}}}}}}\n"
        )
    };
    assert_snapshot!("run_budget_gate", Home::with(&budget("pause")).wonder(&["run", "flow.yaml"]));
    assert_snapshot!("run_budget_failed", Home::with(&budget("fail")).wonder(&["run", "flow.yaml"]));
}

#[test]
fn warnings_are_short_and_nothing_stops() {
    let home = Home::with("name: bare\nnodes: {a: {shell: {command: echo hi}}}\n");
    assert_snapshot!("run_warns", home.wonder(&["run", "flow.yaml"]));
}

#[test]
fn what_of_dotenv_is_passed_on_reaches_commands_and_secrets_stay_secret() {
    let home = Home::with(
        r#"
name: secretive
nodes:
  a: {shell: {command: "echo $FROM_DOTENV; echo ${KEPT-kept}; echo {{ secret.TOKEN }}"}, timeout: 20s}
output_mapping: {said: state.a.stdout}
"#,
    );
    home.write(".env", "FROM_DOTENV=hello\nKEPT=from-commands\n");
    home.write("wonder.toml", "secrets_file = \"keys\"\npass_env = [\"FROM_*\"]\n");
    home.write("keys", "TOKEN=s3cr3t-value\n");
    let shot = home.wonder(&["run", "flow.yaml"]);
    assert!(shot.contains("a | hello") && shot.contains("a | kept") && !shot.contains("s3cr3t"), "{shot}");
}

#[test]
fn a_run_left_alone_waits_for_somebody() {
    let home = Home::with(GREET);
    let shot = home.wonder(&["run", "flow.yaml", "-i", "who=me", "--detach", "--label", "team=docs"]);
    assert_snapshot!("run_detached", shot);
    assert_snapshot!("list_interrupted", home.wonder(&["list"]));
    assert_snapshot!("resume", home.wonder(&["resume", "last"]));
    let json = home.json(&["run", "flow.yaml", "-i", "who=me", "-d", "-o", "json"]);
    assert_eq!((&json["status"], &json["output"]), (&"running".into(), &serde_json::Value::Null));
}

#[test]
fn what_nobody_wrote_has_its_default() {
    let home = Home::with(
        r#"
name: absent
nodes:
  a: {shell: {command: "echo {{ state.n | default(7) }} {{ input.x | default('none') }} {{ state.m is defined }}", timeout: 20s}}
"#,
    );
    let json = home.json(&["run", "flow.yaml", "-o", "json"]);
    assert_eq!(json["output"]["stdout"], "7 none false\n", "{json}");
}
