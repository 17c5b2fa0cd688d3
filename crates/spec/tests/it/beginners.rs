//! What people write in their first hour, and what they are told. One snapshot, to be read as a whole.

#[test]
fn the_mistakes_of_the_first_hour() {
    let mut screens = String::new();
    for (name, text) in MISTAKES {
        let found = match wonder_spec::read(text, "first.yaml") {
            Ok(reading) => reading.warnings,
            Err(problems) => problems,
        };
        screens += &format!("=== {name}\n{}\n", found.render(false).trim_end());
    }
    insta::assert_snapshot!(screens);
}

#[test]
fn one_mistake_gives_one_message() {
    for (name, text) in MISTAKES.iter().filter(|(name, _)| ONCE.contains(name)) {
        let found = wonder_spec::read(text, "first.yaml").unwrap_err();
        assert_eq!(found.len(), 1, "{name}: {}", found.render(false));
    }
}

/// Those of them that are one mistake.
const ONCE: &[&str] = &[
    "nodes_as_a_list_of_names",
    "steps_as_a_list_of_names",
    "body_not_indented",
    "nodes_not_indented",
    "missing_space",
    "indented_too_deep",
    "missing_colon",
    "tab",
    "misspelt_kind",
    "no_kind",
    "two_ways_out",
    "quoted_document",
    "called_workflow_is_not_there",
    "braces_without_quotes",
    "when_with_one_equals_sign",
];

const MISTAKES: &[(&str, &str)] = &[
    (
        "keys_of_other_tools",
        "wonder: 1\nname: x\njobs:\n  build:\n    run: make\n  test:\n    run: make test\n    depends_on: [build]\n",
    ),
    ("steps_on_top", "wonder: 1\nname: x\nversion: 1\nstages:\n  a: {script: make}\n"),
    (
        "node_keys_of_other_tools",
        "wonder: 1\nname: x\nnodes:\n  a: {run: make, env: {CI: 1}, retries: 3}\n  b: {shell: make test, timeout: 5m, depends_on: [a]}\n",
    ),
    (
        "nodes_as_a_list_of_names",
        "wonder: 1\nname: x\nnodes:\n  - a: {shell: {command: echo a, timeout: 5s}, next: b}\n  - b: {shell: {command: echo b, timeout: 5s}, next: c}\n  - c: {shell: {command: echo c, timeout: 5s}}\n",
    ),
    (
        "steps_as_a_list_of_names",
        "wonder: 1\nname: x\nnodes:\n  a:\n    timeout: 5m\n    steps:\n      - fetch: {shell: make fetch}\n      - build: {shell: make}\n",
    ),
    (
        "body_not_indented",
        "wonder: 1\nname: x\nnodes:\n  a:\n  shell: echo hi\n  timeout: 5s\n  next: b\n  b: {mock: {}}\n",
    ),
    ("nodes_not_indented", "wonder: 1\nname: x\nnodes:\na:\n  mock: {}\n  next: b\nb:\n  mock: {}\n"),
    (
        "indented_too_deep",
        "wonder: 1\nname: x\nnodes:\n  a:\n    shell: echo hi\n      next: b\n  b: {mock: {}}\n",
    ),
    ("indented_too_little", "wonder: 1\nname: x\nnodes:\n    a:\n      mock: {}\n   b:\n      mock: {}\n"),
    ("missing_colon", "wonder: 1\nname: x\nnodes:\n  a\n    mock: {}\n"),
    ("missing_space", "wonder: 1\nname:x\nnodes:\n  a: {mock: {}}\n"),
    ("tab", "wonder: 1\nname: x\nnodes:\n\ta: {mock: {}}\n"),
    ("text_instead_of_list", "wonder: 1\nname: x\nnodes:\n  a: {steps: make, timeout: 5s}\n"),
    (
        "list_instead_of_map",
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {}, output_mapping: [state.x]}\ntasks:\n  - t: {steps: [{mock: {}}]}\n",
    ),
    ("misspelt_kind", "wonder: 1\nname: x\nnodes:\n  a: {htp_request: {url: 'https://example.org'}}\n"),
    ("no_kind", "wonder: 1\nname: x\nnodes:\n  a: {timeout: 5s}\n"),
    (
        "when_with_quotes_missing",
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {output: {kind: good}}, next: [{to: b, when: result.kind == good}, {to: c}]}\n  b: {mock: {}}\n  c: {mock: {}}\n",
    ),
    (
        "when_with_one_equals_sign",
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {output: {n: 1}}, next: [{to: b, when: result.n = 1}, {to: c}]}\n  b: {mock: {}}\n  c: {mock: {}}\n",
    ),
    (
        "braces_in_an_expression",
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {output: {n: 1}}, next: [{to: b, when: '{{ result.n }} == 1'}, {to: c}]}\n  b: {mock: {}}\n  c: {mock: {}}\n",
    ),
    (
        "braces_without_quotes",
        "wonder: 1\nname: x\nnodes:\n  a:\n    shell:\n      command: {{ input.command }}\n",
    ),
    (
        "malformed_timeout",
        "wonder: 1\nname: x\nnodes:\n  a: {shell: make, timeout: 5 minutes}\n  b: {shell: {command: make, timeout: 30}, needs: [a]}\n  c: {sleep: 10, needs: [b]}\n",
    ),
    (
        "two_ways_out",
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {}, next: [b, c]}\n  b: {mock: {}}\n  c: {mock: {}}\n",
    ),
    (
        "unknown_function_and_filter",
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {output: {xs: [1]}}, output_mapping: {n: len(result.xs)}, next: b}\n  b: {shell: {command: 'echo {{ state.n|to_json }} {{ now() }}', timeout: 5s}}\n",
    ),
    (
        "never_there",
        "wonder: 1\nname: x\ninput_schema: {type: object, additionalProperties: false, properties: {who: {type: string}}}\nnodes:\n  a: {shell: {command: 'echo {{ input.whom }}', timeout: 5s}, next: [{to: b, when: result.code == 0}, {to: c}]}\n  b: {shell: {command: 'echo {{ state.a.stdot }}', timeout: 5s}}\n  c: {shell: {command: 'echo {{ state.answer }}', timeout: 5s}}\n",
    ),
    (
        "request_without_scheme",
        "wonder: 1\nname: x\nnodes:\n  a: {http_request: {url: 'example.org/{{ input.x }}', method: FETCH, timeout: 5s}}\n",
    ),
    (
        "quoted_document",
        "wonder: 1\nname: x\nnodes:\n  a:\n    shell:\n      timeout: 5s\n      command: |\n        cat > note.txt <<'EOF'\n        Hello {{ input.who }}\n        EOF\n",
    ),
    ("called_workflow_is_not_there", "wonder: 1\nname: x\nnodes:\n  a: {workflow_call: greet}\n"),
    ("secrets_and_env", "wonder: 1\nname: x\nsecrets: [TOKEN]\nenv: {A: b}\nnodes:\n  a: {mock: {}}\n"),
    ("cron", "wonder: 1\nname: x\non:\n  schedule: [{cron: '0 3 * * *'}]\nnodes:\n  a: {mock: {}}\n"),
];
