//! `plan`: one snapshot per example, and what it makes of things that are missing or wrong. It needs no home.

use insta::assert_snapshot;
use std::path::{Path, PathBuf};

use crate::home::Home;

/// As it is printed: nothing in a plan differs from day to day.
fn planned(home: &Home, args: &[&str]) -> String {
    let output = home.command(&[&["plan"], args].concat()).env("PATH", "/none").output().unwrap();
    let mut text = format!("exit {}\n", output.status.code().unwrap_or(-1));
    for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !stream.is_empty() {
            text.push_str(&format!("--- {name}\n{}", String::from_utf8_lossy(stream)));
        }
    }
    text
}

fn examples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = Vec::new();
    for folder in [root.clone(), root.join("patterns")] {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_workflow = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            let is_other = name.ends_with(".scenario.yaml") || name.ends_with(".test.yaml");
            name.ends_with(".yaml") && !is_other
        };
        found.extend(files.filter(is_workflow));
    }
    found.sort();
    found
}

#[test]
fn every_example_has_a_plan_that_fits_eighty_columns() {
    let home = Home::new();
    let all = examples();
    assert!(all.len() > 40, "{all:?}");
    for path in all {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        home.write(&name, &std::fs::read_to_string(&path).unwrap());
        let plan = planned(&home, &[&name]);
        let widest = plan.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{name} is {widest:?} wide:\n{plan}");
        assert_snapshot!(format!("plan_{}", name.trim_end_matches(".yaml")), plan);
    }
    assert!(!home.path().join("runs").exists(), "nothing is written");
}

const RICH: &str = r#"name: rich
timeout: 20m
max_parallel: 2
budget: {tokens: 500000, calls: 40, on_exceeded: fail}
on_error: [{when: "error.kind == 'network'", do: retry, max: 2}]
input_schema: {type: object, properties: {files: {type: array, maxItems: 4}}}
nodes:
  list: {http_request: {url: "https://example.com", headers: {x-key: "{{ secret.TOKEN }}"}}, timeout: 30s}
  each: {needs: list, foreach: {items: "['a', 'b', 'c']", as: x, max_parallel: 2}, llm_call: {model: big, prompt: "say {{ x }}"}, timeout: 1m}
  files: {needs: list, foreach: {items: input.files, as: f}, shell: {command: "cat {{ f }}", isolation: sandbox}, timeout: 10s}
  data: {needs: list, foreach: {items: needs.list.json, as: f}, mock: {usage: {cost_usd: 0.01}}}
  write: {needs: [each, files, data], llm_call: {model: new, prompt: "sum up {{ needs.each }}"}, timeout: 1m, estimate: {usd: 0.01, duration: 20s}}
  tell: {needs: write, human_gate: {title: "Fine?", timeout: 2h}}
  kid: {needs: write, workflow_call: child}
  other: {needs: write, workflow_call: nobody}
  nap: {needs: write, sleep: {for: 10s}}
models:
  big: {provider: anthropic, model: claude, max_output_tokens: 2000, prices: {input: 3, output: 15}}
  new: {provider: openai, model: gpt, fallbacks: [big]}
---
wonder: 1
name: child
nodes:
  go: {shell: {command: "echo {{ secret.OTHER }}"}, timeout: 5s}
"#;

#[test]
fn what_is_missing_is_listed_and_strict_minds() {
    let home = Home::with(RICH);
    assert_snapshot!("plan_rich", planned(&home, &["flow.yaml"]));
    assert!(planned(&home, &["flow.yaml", "--strict"]).starts_with("exit 2\n"));

    // Secrets are found where a run finds them.
    home.write(".env", "TOKEN=in-dotenv\nANTHROPIC_API_KEY=\n");
    home.write("secrets", "OTHER=in-a-file\n");
    home.write("wonder.toml", "secrets_file = \"secrets\"\n");
    let args = ["plan", "flow.yaml", "-o", "json"];
    let output = home.command(&args).env("OPENAI_API_KEY", "in-the-environment").output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> =
        plan["missing"].as_array().unwrap().iter().map(|missing| missing["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"ANTHROPIC_API_KEY") && names.contains(&"nobody"), "{names:?}");
    for found in ["TOKEN", "OTHER", "OPENAI_API_KEY"] {
        assert!(!names.contains(&found), "{found} is set: {names:?}");
    }
    assert!(!String::from_utf8_lossy(&output.stdout).contains("in-"), "no secret is shown");
    assert_eq!((&plan["workflow"], &plan["kind"]), (&"rich".into(), &"dag".into()));
    assert_eq!(plan["called"][0]["workflow"], "child");
    assert_eq!(plan["cost"]["worst_usd_micros"]["unbounded"].as_array().unwrap().len(), 3);

    let fine = Home::with("name: fine\nnodes:\n  a: {mock: {delay: 1s}}\n");
    assert!(planned(&fine, &["flow.yaml", "--strict"]).starts_with("exit 0\n"));
}

#[test]
fn a_definition_that_is_wrong_has_no_plan() {
    let home = Home::with(
        "name: round\nnodes:\n  a: {needs: c, mock: {}}\n  b: {needs: a, mock: {}}\n  c: {needs: b, mock: {}}\n",
    );
    assert_snapshot!("plan_cycle", planned(&home, &["flow.yaml"]));
    let json = home.json(&["plan", "flow.yaml", "-o", "json"]);
    assert_eq!(json["error"]["problems"][0]["code"], "E0114");
    assert_snapshot!("plan_no_file", planned(&home, &["none.yaml"]));
    home.write("model.yaml", "wonder: 1\nkind: model\nname: m\nprovider: openai\nmodel: x\n");
    assert_snapshot!("plan_no_workflow", planned(&home, &["model.yaml"]));
    home.write("junk.yaml", "\u{0}\u{1}{{{ : - [");
    assert!(planned(&home, &["junk.yaml"]).starts_with("exit 2\n"));
}

#[test]
fn a_dag_learns_from_past_runs() {
    let home = Home::with(
        "name: taught\nnodes:\n  a: {shell: {command: \"true\"}, timeout: 5s}\n  b: {needs: a, shell: {command: \"true\"}, timeout: 5s}\n",
    );
    let origin = || home.json(&["plan", "flow.yaml", "-o", "json"])["nodes"][0]["duration"]["origin"].clone();
    assert_eq!(origin(), "unknown");
    home.wonder(&["run", "flow.yaml"]);
    assert_eq!(origin(), "learnt");
}

#[test]
fn many_nodes_are_shown_by_batch() {
    let mut flow = "name: many\nmax_parallel: 8\nnodes:\n".to_owned();
    for at in 0..2_000 {
        let needs = if at < 10 { String::new() } else { format!("needs: [n{}, n{}], ", at - 10, at - 7) };
        flow.push_str(&format!("  n{at}: {{{needs}mock: {{delay: {}ms}}}}\n", 100 + at % 7 * 50));
    }
    let home = Home::with(&flow);
    assert_snapshot!("plan_many", planned(&home, &["flow.yaml"]));
}
