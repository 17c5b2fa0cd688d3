//! Every code, raised by the least that raises it and nothing else.

use serde_json::{Value as Json, json};

use super::{Draft, show};
use crate::codes;

fn one(kind: &str, implementation: Json) -> Draft {
    Draft::graph().act("a", kind, implementation, json!({}))
}

pub(super) fn mock(keys: Json) -> Draft {
    Draft::graph().mock("a", keys)
}

/// `a -spread-> b -sync-> c`.
fn spread(out: Json, sync: Json) -> Draft {
    Draft::graph().mocks(&["a", "b", "c"]).next("a", "b", out).next(
        "b",
        "c",
        json!({"synchronization": sync}),
    )
}

fn task(steps: Json) -> Draft {
    Draft::graph()
        .action("m", json!({"kind": "mock", "implementation": {"outcomes": [{}]}}))
        .action("gate", json!({"kind": "human_gate", "implementation": {}}))
        .action("pay", json!({"kind": "mock", "implementation": {"outcomes": [{}]}, "effects": "once"}))
        .task(
            "t",
            json!({"steps": steps, "input_schema": {"type": "object", "required": ["q"],
            "properties": {"q": {"type": "string"}}, "additionalProperties": false}}),
        )
        .node("a", json!({"task": "t"}))
}

/// A task of one step that says how often it is tried.
fn tried(mut keys: Json, action: &str) -> Draft {
    keys["steps"] = json!([{"ref": "x", "action": action}]);
    task(json!([{"ref": "x", "action": "m"}]))
        .task("u", keys)
        .node("b", json!({"task": "u"}))
        .nexts(&[("a", "b")])
}

pub(super) fn model(call: Json) -> Draft {
    Draft::graph().act("a", "llm_call", call, json!({"timeout_ms": 1000}))
}

fn get(request: Json) -> Draft {
    Draft::graph().act("a", "http_request", request, json!({"timeout_ms": 9}))
}

fn shell(command: &str) -> Draft {
    Draft::graph().act("a", "shell", json!({"command": command}), json!({"timeout_ms": 9}))
}

fn references() -> Vec<(&'static str, Draft)> {
    let known = || json!({"models": {"fast": {"name": "fast", "model": "m"}}});
    vec![
        ("E0101", Draft::graph().mocks(&["a", "a"])),
        (
            "E0101",
            Draft::graph()
                .mocks(&["a", "b"])
                .next("a", "b", json!({"ref": "x", "condition": "result.ok"}))
                .next("a", "b", json!({"ref": "x"})),
        ),
        ("E0101", task(json!([{"ref": "x", "action": "m"}, {"ref": "x", "action": "m"}]))),
        ("E0102", Draft::graph().mocks(&["in"])),
        ("E0102", Draft::graph().mocks(&["draft-2"])),
        ("E0103", mock(json!({})).next("a", "b", json!({}))),
        ("E0103", mock(json!({"on_error": [{"do": {"goto": "b"}}]}))),
        ("E0103", Draft::dag().mock("a", json!({"needs": ["b"]}))),
        ("E0103", mock(json!({})).workflow(json!({"initial_node": "b"}))),
        ("E0104", Draft::graph().node("a", json!({"task": "t"}))),
        ("E0104", mock(json!({"on_error": [{"do": {"add_validator": {"task": "t"}}}]}))),
        ("E0105", task(json!([{"ref": "x", "action": "none"}]))),
        ("E0106", model(json!({"prompt_spec": "p"}))),
        ("E0107", model(json!({"prompt": "x", "model": "fst"})).with(known())),
        (
            "E0107",
            mock(json!({})).with(json!({"models": {"m": {"name": "m", "model": "m", "fallbacks": ["n"]}}})),
        ),
        ("E0108", model(json!({"prompt": "x", "tools": ["t"]}))),
        ("E0108", mock(json!({"on_error": [{"do": {"change": {"tools": ["t"]}}}]}))),
    ]
}

fn shapes() -> Vec<(&'static str, Draft)> {
    let bounded = || json!({"max_iterations": 3, "on": "any"});
    let loop_of =
        |keys: Json| Draft::graph().mocks(&["a", "b"]).next("a", "b", json!({})).next("b", "a", keys);
    vec![
        ("E0110", Draft::graph()),
        ("E0111", Draft::graph().mocks(&["a", "b"]).nexts(&[("a", "b")]).workflow(json!({"nodes_max": 1}))),
        ("E0112", Draft::graph().mocks(&["a", "b"])),
        ("E0112", Draft::graph().mocks(&["a", "b", "c"]).nexts(&[("b", "c")])),
        (
            "E0113",
            Draft::graph()
                .mocks(&["a", "b"])
                .nexts(&[("a", "a"), ("b", "b")])
                .next("a", "b", bounded())
                .next("b", "a", bounded()),
        ),
        ("E0114", Draft::dag().mock("a", json!({"needs": ["b"]})).mock("b", json!({"needs": ["a"]}))),
        ("E0115", loop_of(json!({}))),
        ("E0115", mock(json!({})).nexts(&[("a", "a")])),
        ("E0116", mock(json!({"when": "true"}))),
        ("E0116", mock(json!({"needs": ["a"]}))),
        ("E0116", mock(json!({"foreach": {"items": "input.x"}}))),
        ("E0116", mock(json!({})).workflow(json!({"fail_fast": false}))),
        ("E0117", Draft::dag().mocks(&["a", "b"]).nexts(&[("a", "b")])),
        ("E0117", Draft::dag().mock("a", json!({"fan_out": "all"}))),
        ("E0117", Draft::dag().mock("a", json!({"on_error": [{"do": {"loop_with_feedback": {"to": "a"}}}]}))),
        ("E0118", Draft::dag().mocks(&["a"]).mock("b", json!({"needs": ["a"], "join": {"m_of_n": 2}}))),
        ("E0118", Draft::dag().mock("a", json!({"join": "any"}))),
        ("E0119", Draft::graph().mocks(&["a", "b", "c"]).nexts(&[("a", "b"), ("a", "c")])),
        (
            "E0119",
            Draft::graph()
                .mocks(&["a", "b", "c", "d"])
                .nexts(&[("a", "b")])
                .next("a", "c", json!({"on": "failure"}))
                .next("a", "d", json!({"on": "any"})),
        ),
        (
            "E0119",
            Draft::graph()
                .mocks(&["a", "b", "c", "d"])
                .nexts(&[("a", "b")])
                .next("a", "c", json!({"on": "failure"}))
                .next("a", "d", json!({"on": "failure"})),
        ),
    ]
}

fn groups() -> Vec<(&'static str, Draft)> {
    let all = |keys: Json| {
        Draft::graph()
            .mock("a", json!({"fan_out": "all"}))
            .mocks(&["b", "c", "d"])
            .nexts(&[("a", "b"), ("a", "c")])
            .next("b", "d", json!({"synchronization": keys}))
            .next("c", "d", json!({"synchronization": {}}))
    };
    let writes = || json!({"output_mapping": {"x": "result"}});
    vec![
        ("E0109", spread(json!({"spawn_count": 2}), json!({"sibling_group": "nobody"}))),
        ("E0109", spread(json!({"spawn_count": 2}), json!({"sibling_group": "b"}))),
        ("E0120", spread(json!({}), json!({}))),
        (
            "E0121",
            spread(json!({"spawn_count": 2}), json!({}))
                .mocks(&["d"])
                .next("b", "d", json!({"synchronization": {}, "priority": -1, "condition": "result.ok"}))
                .next("c", "d", json!({})),
        ),
        (
            "E0122",
            all(json!({"strategy": "any"})).next(
                "b",
                "d",
                json!({"synchronization": {"strategy": {"m_of_n": 2}}, "priority": -1, "condition": "result.ok"}),
            ),
        ),
        (
            "E0123",
            spread(json!({"spawn_count": 2}), json!({"sibling_group": "c"})).mocks(&["d"]).next(
                "c",
                "d",
                json!({"spawn_count": 2}),
            ),
        ),
        ("E0124", spread(json!({"spawn_count": 2}), json!({"strategy": {"m_of_n": 3}}))),
        ("E0124", spread(json!({"foreach": {"items": "input.x"}}), json!({"strategy": {"m_of_n": 0}}))),
        ("E0124", all(json!({"strategy": {"m_of_n": 3}}))),
        ("E0125", Draft::graph().mock("a", json!({"fan_out": "all"})).mocks(&["b"]).nexts(&[("a", "b")])),
        ("E0126", spread(json!({"spawn_count": 0}), json!({}))),
        ("E0127", spread(json!({"spawn_count": 2, "foreach": {"items": "input.x"}}), json!({}))),
        ("W0201", Draft::graph().mocks(&["a", "b"]).next("a", "b", json!({"condition": "result.ok"}))),
        ("W0202", Draft::graph().mocks(&["a"]).mock("b", writes()).next("a", "b", json!({"spawn_count": 2}))),
    ]
}

fn actions() -> Vec<(&'static str, Draft)> {
    vec![
        ("E0130", task(json!([{"ref": "x", "action": "m"}, {"ref": "y", "action": "gate"}]))),
        (
            "E0131",
            task(json!([{"ref": "x", "action": "pay"}, {"ref": "y", "action": "m", "on_failure": "retry"}])),
        ),
        ("E0132", one("assert", json!({}))),
        ("E0132", one("assert", json!({"that": "true", "score": "1", "score_at_least": 2}))),
        ("E0132", one("assert", json!({"value": "input.x"}))),
        ("E0132", one("sleep", json!({}))),
        ("E0132", one("sleep", json!({"for": "soon"}))),
        ("E0132", model(json!({}))),
        (
            "E0132",
            Draft::graph().act(
                "a",
                "http_request",
                json!({"url": "http://x", "json": 1, "body": "x"}),
                json!({"timeout_ms": 9}),
            ),
        ),
        ("E0132", one("mock", json!({"outcomes": []}))),
        ("E0132", one("artifact_write", json!({"name": "x"}))),
        ("E0190", one("artifact_write", json!({"name": "x", "type": "reprot", "content": "x"}))),
        ("E0191", one("artifact_write", json!({"name": "../x", "content": "x"}))),
        (
            "E0191",
            one("artifact_write", json!({"name": "x", "type": "t", "content": "x"}))
                .with(json!({"artifact_types": {"t": {"name": "t", "media_type": "markdown"}}})),
        ),
        ("E0132", one("human_gate", json!({"on_timeout": "default", "timeout_ms": 5}))),
        ("E0132", one("human_gate", json!({"on_timeout": "escalate", "timeout_ms": 5}))),
        ("E0132", one("human_gate", json!({"quorum": 0}))),
        ("E0132", one("wait_event", json!({"event": "e", "on_timeout": "default"}))),
        ("E0133", task(json!([]))),
        ("E0135", get(json!({"url": "example.org/x"}))),
        ("E0135", get(json!({"url": "//{{ input.host }}/x"}))),
        ("E0135", get(json!({"url": "ftp://example.org"}))),
        ("E0135", get(json!({"url": " "}))),
        ("E0136", get(json!({"url": "https://example.org", "method": "GTE"}))),
        ("E0137", shell("cat <<'EOF'\n{{ input.x }}\nEOF\n")),
        ("E0137", shell("echo \\{{ input.x }}")),
        ("E0137", shell("eval \"echo {{ input.x }}\"")),
        ("E0137", shell("trap 'rm -f {{ input.x }}' EXIT")),
        ("E0137", shell("sh -c 'echo {{ input.x }}'")),
        ("E0149", model(json!({"prompt": "{{ input.x|len }}"}))),
        ("E0149", model(json!({"prompt": "{% if input.x is empty %}{% endif %}"}))),
        ("E0149", model(json!({"prompt": "{{ now() }}"}))),
        (
            "W0203",
            Draft::graph().act(
                "a",
                "shell",
                json!({"command": "x", "env": {"API_TOKEN": "abc"}}),
                json!({"timeout_ms": 9}),
            ),
        ),
        ("W0203", model(json!({"prompt": "use sk-abcdefghij0123456789"}))),
        ("W0204", one("shell", json!({"command": "make"}))),
        ("E0131", tried(json!({"retry": {"max_attempts": 2}, "retry_on": "any_failure"}), "pay")),
        ("W0210", tried(json!({"retry": {"max_attempts": 2}}), "m")),
        ("W0211", task(json!([{"ref": "x", "action": "m", "on_failure": "retry"}]))),
    ]
}

fn texts() -> Vec<(&'static str, Draft)> {
    let closed =
        || json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let only = || json!([{"ref": "x", "action": "m"}]);
    let call = |mapping: Json| {
        let mut draft = task(only());
        draft.nodes[0]["input_mapping"] = mapping;
        draft
    };
    vec![
        ("E0140", mock(json!({"output_mapping": {"x": "1 +"}}))),
        ("E0141", mock(json!({"input_mapping": {"x": "result.y"}}))),
        ("E0141", mock(json!({"output_mapping": {"x": "error.kind"}}))),
        ("E0141", mock(json!({"output_mapping": {"x": "needs.b"}}))),
        ("E0141", mock(json!({"output_mapping": {"x": "_branch.index"}}))),
        ("E0141", mock(json!({})).workflow(json!({"output_mapping": {"x": "plan.y"}}))),
        ("E0141", task(json!([{"ref": "x", "action": "m", "condition": {"if": "run.id == '1'"}}]))),
        ("E0142", model(json!({"prompt": "{{ input.x "}))),
        ("E0143", model(json!({"prompt": "{{ topic }}"}))),
        ("E0143", Draft::graph().act("a", "human_gate", json!({"title": "{{ secret.x }}"}), json!({}))),
        (
            "E0143",
            Draft::graph().act(
                "a",
                "llm_call",
                json!({"prompt": "{{ state.x }}"}),
                json!({"input_mapping": {"x": "input.x"}, "timeout_ms": 9}),
            ),
        ),
        (
            "E0143",
            model(json!({"prompt_spec": "p"}))
                .with(json!({"prompts": {"p": {"name": "p", "template": "{{ topic }}"}}})),
        ),
        ("E0144", Draft::dag().mocks(&["a", "b"]).mock("c", json!({"needs": ["a"], "when": "needs.b.ok"}))),
        ("E0144", Draft::dag().mocks(&["a"]).workflow(json!({"output_mapping": {"x": "needs.b"}}))),
        ("E0145", mock(json!({"output_mapping": {"input.x": "1"}}))),
        ("E0146", mock(json!({"output_mapping": {"a-b": "1"}}))),
        (
            "E0147",
            mock(json!({"output_mapping": {"n": "'text'"}})).workflow(json!({"context_schema": closed()})),
        ),
        ("E0147", mock(json!({"output_mapping": {"m": "1"}})).workflow(json!({"context_schema": closed()}))),
        ("E0147", mock(json!({})).workflow(json!({"context_schema": closed()}))),
        (
            "E0147",
            mock(json!({})).workflow(json!({"output_schema": closed(), "output_mapping": {"n": true}})),
        ),
        (
            "E0147",
            spread(json!({"spawn_count": 2}), json!({"merge": {"target": "state.n"}}))
                .workflow(json!({"context_schema": {"properties": {"n": {"type": "integer"}}}})),
        ),
        ("E0147", call(json!({"q": 1}))),
        ("E0147", call(json!({"q": "input.q", "other": 1}))),
        (
            "E0147",
            one(
                "human_gate",
                json!({"form": {"type": "object"}, "on_timeout": "default", "default": 1, "timeout_ms": 1}),
            ),
        ),
        ("E0148", call(json!({}))),
        ("E0150", mock(json!({})).workflow(json!({"input_schema": {"type": "text"}}))),
        ("E0151", mock(json!({})).workflow(json!({"input_schema": {"$ref": "https://example.org/x.json"}}))),
    ]
}

/// Reads of what is never there.
fn absences() -> Vec<(&'static str, Draft)> {
    let closed = || json!({"type": "object", "properties": {"who": {"type": "object", "additionalProperties": false, "properties": {"name": {}}}}, "additionalProperties": false});
    let open = || json!({"type": "object", "properties": {"question": {}}});
    let says = |text: &str| one("assert", json!({"that": text}));
    let shell = |keys: Json| Draft::graph().act("a", "shell", json!({"command": "x"}), keys);
    let read = |path: &str| shell(json!({"timeout_ms": 9, "output_mapping": {"x": path}}));
    let twice = |text: &str| {
        Draft::graph()
            .action("m", json!({"kind": "mock", "implementation": {"outcomes": [{"output": {"v": 1}}]}}))
            .action("t", json!({"kind": "assert", "implementation": {"that": text}}))
            .task("t", json!({"steps": [{"ref": "one", "action": "m"}, {"ref": "two", "action": "t"}]}))
            .node("a", json!({"task": "t"}))
    };
    vec![
        ("E0152", says("input.x").workflow(json!({"input_schema": closed()}))),
        ("E0152", says("input.who.nam == 'x'").workflow(json!({"input_schema": closed()}))),
        (
            "E0152",
            Draft::graph().act(
                "a",
                "http_request",
                json!({"url": "https://x.org/{{ input.q }}"}),
                json!({"timeout_ms": 9, "input_mapping": {"p": "input.q"}}),
            ),
        ),
        ("E0153", says("state.x")),
        ("E0153", says("state.a.b")),
        ("E0153", twice("state.three.v == 1")),
        ("E0154", read("result.stdot")),
        (
            "E0154",
            shell(json!({"timeout_ms": 9}))
                .mocks(&["b"])
                .next("a", "b", json!({"condition": "result.code == 0"}))
                .next("a", "b", json!({})),
        ),
        ("E0154", shell(json!({"timeout_ms": 9})).workflow(json!({"output_mapping": {"x": "state.a.out"}}))),
        ("E0154", twice("state.one.w == 1")),
        ("E0154", says("run.name == 'x'")),
        ("E0154", mock(json!({"on_error": [{"when": "error.type == 'timeout'", "do": "retry"}]}))),
        (
            "E0154",
            Draft::dag()
                .act("a", "shell", json!({"command": "x"}), json!({"timeout_ms": 9}))
                .mock("b", json!({"needs": ["a"], "when": "needs.a.ok"})),
        ),
        (
            "E0154",
            Draft::dag()
                .mock("a", json!({"foreach": {"items": "[1, 2]"}}))
                .mock("b", json!({"needs": ["a"], "when": "needs.a.ok"})),
        ),
        ("W0205", says("state.x").workflow(json!({"context_schema": {"properties": {"x": {}}}}))),
        ("W0205", Draft::graph().mock("a", json!({"may_mutate": {}, "output_mapping": {"y": "state.x"}}))),
        ("W0206", says("input.qestion == ''").workflow(json!({"input_schema": open()}))),
    ]
}

#[test]
fn what_may_be_there_is_let_be() {
    let closed = || json!({"type": "object", "properties": {}, "additionalProperties": false});
    for text in [
        "has(state.x) && state.x",
        "get(state, 'x', false)",
        "'x' in state",
        "input.feedback == null",
        "get(input, 'y', true)",
        "state._last_error == null",
        "size(state) > 0",
    ] {
        let draft = one("assert", json!({"that": text})).workflow(json!({"input_schema": closed()}));
        assert_eq!(draft.codes(), [""; 0], "{text}");
    }
    for text in
        ["{{ state.x|default('') }}", "{% if state.x is defined %}{{ state.x }}{% endif %}", "{{ input }}"]
    {
        assert_eq!(model(json!({"prompt": text})).codes(), [""; 0], "{text}");
    }
    // Written in a branch, by a merge, by a rule's own result, by the whole of `state`.
    let group = spread(json!({"spawn_count": 2}), json!({"merge": {"target": "state.votes"}}))
        .workflow(json!({"output_mapping": {"x": "state.votes", "y": "state.c"}}));
    assert_eq!(group.codes(), [""; 0]);
    let skipped = Draft::graph().act(
        "a",
        "shell",
        json!({"command": "x"}),
        json!({"timeout_ms": 9, "on_error": [{"do": {"skip": {"output": {"ok": false}}}}], "output_mapping": {"x": "result.ok"}}),
    );
    assert_eq!(skipped.codes(), [""; 0]);
    let whole = mock(json!({"output_mapping": {"state": "result"}}))
        .workflow(json!({"output_mapping": {"x": "state.x"}}));
    assert_eq!(whole.codes(), [""; 0]);
}

fn amounts() -> Vec<(&'static str, Draft)> {
    let timed = |action: u64, task: u64| {
        Draft::graph()
            .action("m", json!({"kind": "mock", "implementation": {"outcomes": [{}]}, "execution": {"timeout_ms": action}}))
            .task("t", json!({"steps": [{"ref": "x", "action": "m"}], "timeout_ms": task}))
            .node("a", json!({"task": "t"}))
    };
    vec![
        ("E0160", timed(5_000, 4_000)),
        ("E0160", timed(5_000, 9_000_000)),
        ("E0160", mock(json!({"timeout_ms": 10})).workflow(json!({"timeout_ms": 5}))),
        ("E0161", mock(json!({"timeout_ms": 0}))),
        ("E0161", mock(json!({})).workflow(json!({"max_parallel": 0}))),
        ("E0161", mock(json!({"on_error": [{"do": "retry", "max": 0}]}))),
        ("E0162", mock(json!({"budget": {}}))),
        ("E0162", mock(json!({})).workflow(json!({"budget": {"tokens": 0}}))),
    ]
}

#[test]
fn every_code_is_raised_alone() {
    let all = [
        references(),
        shapes(),
        groups(),
        actions(),
        texts(),
        absences(),
        amounts(),
        super::profiles::codes(),
    ];
    // Raised by long chains and by mutations, which have tests of their own.
    let mut seen = vec!["E0128", "E0170", "E0171", "E0172", "E0173"];
    let mut wrong = String::new();
    for (at, (code, draft)) in all.into_iter().flatten().enumerate() {
        let problems = match draft.build() {
            Ok((_, warnings)) => warnings,
            Err(problems) => problems,
        };
        let found = super::codes_of(&problems);
        if found != [code] || problems.iter().any(|problem| problem.label.is_empty()) {
            wrong += &format!("case {at}, {code}:\n{}", show(&problems));
        }
        seen.push(code);
    }
    assert!(wrong.is_empty(), "{wrong}");
    seen.sort_unstable();
    seen.dedup();
    // What no check found and the compiler cannot do is a check of ours that is missing: no draft raises it.
    let raised = codes::ALL.iter().map(|(code, _)| *code).filter(|code| *code != codes::NOT_COMPILED);
    assert_eq!(seen, raised.map(|code| code.0).collect::<Vec<_>>());
}

#[test]
fn messages_name_the_nearest_and_the_place() {
    let problems = mock(json!({})).next("a", "aa", json!({})).build().unwrap_err();
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `a`?"));
    let problems = mock(json!({"output_mapping": {"x": "1 + stat.y"}})).build().unwrap_err();
    assert_eq!(problems[0].within, Some((4, 4)));
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `state`?"));
    assert!(problems[0].label.contains("`result`"), "{}", problems[0].label);
    let problems = Draft::graph().mocks(&["a", "b", "c"]).nexts(&[("b", "c")]).build().unwrap_err();
    assert!(problems[1].help.as_deref().unwrap().contains("only `b` leads to it"), "{}", show(&problems));
    let all = mock(json!({"output_mapping": {"input.x": "1 +", "y": "nope"}})).next("a", "b", json!({}));
    assert_eq!(all.codes(), ["E0103", "E0140", "E0141", "E0145"]);
}

#[test]
fn what_is_fine_has_no_warnings() {
    let rescued = Draft::graph().mocks(&["a", "b"]).next("a", "b", json!({"on": "failure"}));
    assert!(rescued.codes().is_empty());
    let looped = Draft::graph()
        .mocks(&["a", "b"])
        .next("a", "a", json!({"condition": "result.again", "max_iterations": 3}))
        .nexts(&[("a", "b")]);
    assert!(looped.codes().is_empty());
    let item = Draft::graph()
        .mocks(&["a"])
        .act("b", "shell", json!({"command": ["x", "{{ file }}"]}), json!({"timeout_ms": 5, "on_error": [{"when": "error.kind == 'x' && file != ''", "do": {"skip": {}}}]}))
        .mocks(&["c"])
        .next("a", "b", json!({"foreach": {"items": "result.files", "as": "file"}}))
        .next("b", "c", json!({"synchronization": {"merge": {"source": "_branch.output.x", "target": "state.x"}}}));
    assert!(item.codes().is_empty());
}
