//! The parts that blocks and dags are made of: nodes of every kind, conditions, responses, policies.

use std::fmt::Write;

use super::Draft;

pub(super) const MODELS: &str = "\
models:
  fast: {provider: mock, model: fast-1, fallbacks: [big], cheaper: tiny, max_output_tokens: 200, prices: {input: 1, output: 2}}
  big: {provider: mock, model: big-1, max_output_tokens: 400, prices: {input: 10, output: 20}}
  tiny: {provider: mock, model: tiny-1, max_output_tokens: 100, prices: {input: 0.1, output: 0.2}}
";

/// The task that `add_validator` puts behind a node.
pub(super) fn validator() -> String {
    "  validate: {steps: [{ref: judge, mock: {output: {v: 1}}}]}\n".to_owned()
}

/// A task that no node uses: a mutation may.
pub(super) fn spare() -> String {
    "  spare: {steps: [{ref: only, mock: {output: {v: 2}}}]}\n".to_owned()
}

/// What the workflow says of itself.
pub(super) fn settings(draft: &mut Draft, text: &mut String) {
    let rng = &mut draft.rng;
    if rng.percent(45) {
        let policy = ["human_gate", "cancel_all", "cancel_all", "fail"][rng.below(4) as usize];
        let _ = writeln!(text, "timeout: {}s\non_timeout: {policy}", rng.between(15, 30));
    }
    if rng.percent(30) {
        let _ = writeln!(text, "max_parallel: {}", rng.between(1, 3));
    }
    if rng.percent(25) {
        let bound = match rng.below(4) {
            0 => format!("usd: 0.00{}", rng.between(1, 9)),
            1 => format!("tokens: {}", rng.between(200, 900)),
            2 => format!("calls: {}", rng.between(1, 5)),
            _ => format!("wall: {}s", rng.between(5, 30)),
        };
        let policy = ["pause", "downgrade", "fail"][rng.below(3) as usize];
        let _ = writeln!(text, "budget: {{{bound}, on_exceeded: {policy}}}");
    }
    if rng.percent(12) {
        let _ = writeln!(text, "mutations_max: {}", rng.between(0, 3));
    }
    if rng.percent(15) {
        let rules = on_error(draft);
        let _ = writeln!(text, "on_error: [{rules}]");
    }
}

/// A node that does something at once: by a worker, or by the coordinator.
pub(super) fn work(draft: &mut Draft) -> usize {
    let at = draft.nodes.len();
    let mut keys = Vec::new();
    match draft.rng.below(14) {
        0..=4 => keys.push(format!(
            "mock: {{output: {{v: {}, ok: true, items: [1, 2]}}{}}}",
            draft.rng.below(9),
            action_keys(draft)
        )),
        5 => keys.push(format!("shell: {{command: [\"do\"]{}}}", action_keys(draft))),
        6 | 7 => keys.push(format!(
            "llm_call: {{model: fast, prompt: \"say {at}\", max_tokens: 50{}}}",
            action_keys(draft)
        )),
        8 | 9 => {
            let task = task(draft, at);
            keys.push(format!("task: {task}"));
        }
        10 | 11 => keys.push(format!(
            "update_context: {{set: {{state.u{at}: \"{at}\", output.o{at}: \"get(state, 'u{at}', 0)\"}}}}"
        )),
        12 => keys.push(format!("assert: \"{}\"", rarely_false(draft))),
        _ => keys.push(format!("assert: {{score: \"{}\", score_at_least: 2}}", draft.rng.between(1, 20))),
    }
    policies(draft, &mut keys, at);
    draft.node(keys)
}

/// A node that waits: for a person, an event, a time or a child.
pub(super) fn wait(draft: &mut Draft) -> usize {
    let at = draft.nodes.len();
    let mut keys = Vec::new();
    match draft.rng.below(if draft.called.is_empty() { 9 } else { 14 }) {
        0..=2 => keys.push(gate(draft, at)),
        3..=5 => keys.push(wait_event(draft, at)),
        6..=8 => {
            let rng = &mut draft.rng;
            keys.push(match rng.below(12) {
                // Nobody's idea of a duration: the node fails.
                0 => "sleep: {for: \"{{ run.id }}\"}".to_owned(),
                1 => "sleep: {until: \"'2026-01-01T00:00:07Z'\"}".to_owned(),
                _ => format!("sleep: {}s", rng.between(1, 12)),
            });
        }
        _ => keys.push(call(draft)),
    }
    policies(draft, &mut keys, at);
    draft.node(keys)
}

/// How the refs of nodes begin that may add nodes: the outcomes know them by it.
pub const MUTATOR: &str = "grow_";

/// A node that may add nodes; whether it does is for the outcome to say.
pub(super) fn mutator(draft: &mut Draft) -> usize {
    let keys = vec!["mock: {output: {v: 1}}".to_owned(), "may_mutate: {max_nodes: 2}".to_owned()];
    let at = draft.node(keys);
    draft.nodes[at].reference = format!("{MUTATOR}{at}");
    at
}

fn gate(draft: &mut Draft, at: usize) -> String {
    let rng = &mut draft.rng;
    let mut keys = format!("title: \"Gate {at}?\"");
    if rng.percent(70) {
        keys += ", form: {type: object, required: [ok], properties: {ok: {type: boolean}}}";
    }
    if rng.percent(20) {
        keys += ", quorum: 2";
    }
    if rng.percent(55) {
        let _ = write!(keys, ", timeout: {}s", rng.between(3, 12));
        match rng.below(3) {
            0 => keys += ", on_timeout: default, default: {ok: true, v: 3}",
            1 => keys += ", on_timeout: escalate, escalate: [boss]",
            _ => {}
        }
    }
    if rng.percent(20) {
        keys += ", remind_every: 2s";
    }
    format!("human_gate: {{{keys}}}")
}

fn wait_event(draft: &mut Draft, at: usize) -> String {
    let rng = &mut draft.rng;
    let mut keys = format!("event: {}", ["paid", "shipped", "paid"][at % 3]);
    if rng.percent(30) {
        let _ = write!(keys, ", key: \"{}\"", rng.below(2));
    }
    if rng.percent(70) {
        let _ = write!(keys, ", timeout: {}s", rng.between(3, 12));
        if rng.percent(50) {
            keys += ", on_timeout: default, default: {v: 4}";
        }
    }
    format!("wait_event: {{{keys}}}")
}

fn call(draft: &mut Draft) -> String {
    let at = draft.rng.below(draft.called.len() as u64) as usize;
    let name = draft.called[at].clone();
    let rng = &mut draft.rng;
    let mut keys = match rng.below(12) {
        0 => "workflow: {from_context: \"'nobody'\"}".to_owned(),
        1 => format!("workflow: {{from_context: \"'{name}'\"}}"),
        _ => format!("workflow: {name}"),
    };
    if rng.percent(40) {
        keys += ", on_failure: catch";
    }
    if rng.percent(20) {
        keys += ", inherit_timeout: true";
    }
    format!("workflow_call: {{{keys}}}")
}

/// What an action says beside its work.
fn action_keys(draft: &mut Draft) -> String {
    let rng = &mut draft.rng;
    let mut keys = String::new();
    if rng.percent(25) {
        let _ = write!(keys, ", timeout: {}s", rng.between(1, 4));
    }
    if rng.percent(15) {
        keys += ", effects: once";
    }
    keys
}

/// A task of its own, with steps that may retry, go on or be left out.
fn task(draft: &mut Draft, at: usize) -> String {
    let rng = &mut draft.rng;
    let name = format!("t{at}");
    let mut text = format!("  {name}:\n");
    if rng.percent(60) {
        let backoff = ["none", "linear", "exponential"][rng.below(3) as usize];
        let _ = writeln!(
            text,
            "    retry: {{max_attempts: {}, backoff: {backoff}, initial_delay: 500ms}}",
            rng.between(2, 3)
        );
    }
    if rng.percent(30) {
        let _ = writeln!(text, "    timeout: {}s", rng.between(5, 9));
    }
    text.push_str("    steps:\n");
    for step in 0..rng.between(1, 3) {
        let mut keys = format!("ref: s{step}, mock: {{output: {{v: {}, ok: true}}}}", rng.below(9));
        match rng.below(5) {
            0 | 1 => keys += ", on_failure: retry",
            2 => keys += ", on_failure: continue",
            _ => {}
        }
        if step > 0 && rng.percent(30) {
            keys += ", when: \"has(state.s0)\"";
        }
        let _ = writeln!(text, "      - {{{keys}}}");
    }
    draft.tasks.push(text);
    name
}

/// What a node says beside its work.
fn policies(draft: &mut Draft, keys: &mut Vec<String>, at: usize) {
    let is_plain = !keys[0].starts_with("assert") && !keys[0].starts_with("update_context");
    let rng = &mut draft.rng;
    if is_plain && rng.percent(15) {
        keys.push(format!("timeout: {}s", rng.between(5, 12)));
        if rng.percent(50) {
            keys.push("on_timeout: retry".to_owned());
        }
    }
    written_attempts(draft, keys);
    let rng = &mut draft.rng;
    // Waits fail in no other way: more of them map what is not there.
    let waits =
        ["human_gate", "wait_event", "sleep", "workflow_call"].iter().any(|kind| keys[0].starts_with(kind));
    match rng.below(if waits { 8 } else { 20 }) {
        // What is not there cannot be mapped: the node fails after its work is done.
        0 => {
            keys.push(format!("output_mapping: {{state.m{at}: \"json('{{}}').nobody.has.this\"}}"));
            if rng.percent(70) {
                let response = ["skip", "skip", "escalate", "retry"][rng.below(4) as usize];
                keys.push(format!("on_error: [{{do: {response}}}]"));
                return;
            }
        }
        1..=3 => keys.push(format!("output_mapping: {{state.m{at}: result}}")),
        4 => keys.push(format!("output_mapping: {{output.m{at}: result, state.w: \"{at}\"}}")),
        _ => {}
    }
    if rng.percent(6) {
        let policy = ["pause", "downgrade", "fail"][rng.below(3) as usize];
        keys.push(format!("budget: {{calls: 1, on_exceeded: {policy}}}"));
    }
    if rng.percent(40) {
        let rules = on_error(draft);
        keys.push(format!("on_error: [{rules}]"));
    }
}

/// How often a node's own work is tried, and what a timeout means, where somebody wrote it. Drawn apart, so that all
/// else stays as it was drawn before.
fn written_attempts(draft: &mut Draft, keys: &mut Vec<String>) {
    let rng = &mut draft.attempts;
    let named = keys[0].starts_with("task:");
    // A task of one step that may happen only once cannot be tried again.
    let once = keys[0].contains("effects: once");
    if !named && !once && rng.percent(15) {
        keys.push(format!("retry: {{max_attempts: {}, initial_delay: 700ms}}", rng.between(1, 3)));
    }
    if rng.percent(15) && !keys.iter().any(|key| key.starts_with("on_timeout")) {
        keys.push(format!("on_timeout: {}", ["fail", "retry"][rng.below(2) as usize]));
    }
}

fn on_error(draft: &mut Draft) -> String {
    let rules = draft.rng.between(1, 2);
    (0..rules).map(|_| rule(draft)).collect::<Vec<_>>().join(", ")
}

fn rule(draft: &mut Draft) -> String {
    let rng = &mut draft.rng;
    let response = match rng.below(15) {
        0..=2 => "do: retry",
        3 => "do: switch_model",
        4 => "do: stricter_prompt, append: please",
        5 => "do: {change: {model: big, system: be good, input: {more: \"1\"}}}",
        6 => "do: loop_with_feedback",
        7 => "do: add_validator, task: validate",
        8 => "do: add_review",
        9 => "do: downgrade_model",
        10 => "do: pause",
        11 => "do: skip, output: {v: 5}",
        12 => "do: skip",
        13 => "do: escalate",
        _ => "do: fail",
    };
    let mut keys = response.to_owned();
    if rng.percent(30) {
        let kind = ["timeout", "network", "expression_error", "worker_lost"][rng.below(4) as usize];
        let _ = write!(keys, ", when: \"error.kind == '{kind}'\"");
    }
    if rng.percent(40) {
        let _ = write!(keys, ", max: {}", rng.between(1, 3));
    }
    if rng.percent(30) {
        keys += ", backoff: linear, initial_delay: 1s";
    }
    format!("{{{keys}}}")
}

/// What a transition may ask: about the result that just came, or about nothing.
pub(super) fn condition(draft: &mut Draft) -> String {
    let rng = &mut draft.rng;
    match rng.below(6) {
        0..=2 => format!("get(result, 'v', 0) > {}", rng.below(9)),
        3 => format!("get(state, 'w', 0) >= {}", rng.below(9)),
        4 => "_last_error == null".to_owned(),
        _ => match draft.items.last() {
            Some(item) => format!("{item} != 2"),
            None => "has(result.ok)".to_owned(),
        },
    }
}

pub(super) fn dag_condition(draft: &mut Draft, need: Option<&String>) -> String {
    let limit = draft.rng.below(9);
    match need {
        Some(need) if draft.rng.percent(70) => format!("get(needs.{need}, 'v', 0) < {limit}"),
        _ => ["true", "true", "false"][draft.rng.below(3) as usize].to_owned(),
    }
}

fn rarely_false(draft: &mut Draft) -> &'static str {
    if draft.rng.percent(92) { "true" } else { "get(state, 'w', 0) > 4" }
}

/// `spawn_count` or `foreach` of a transition, and how many branches that makes, if it is known.
pub(super) fn spread(draft: &mut Draft, node: usize) -> (Vec<String>, Option<u64>) {
    if draft.rng.percent(50) {
        let count = draft.rng.between(1, 4);
        return (vec![format!("spawn_count: {count}")], Some(count));
    }
    let items =
        if draft.rng.percent(30) { "get(result, 'items', [1])".to_owned() } else { literal_items(draft) };
    let mut keys = format!("items: \"{items}\"");
    if draft.rng.percent(50) {
        let _ = write!(keys, ", as: item_{node}");
    }
    if draft.rng.percent(40) {
        let _ = write!(keys, ", max_parallel: {}", draft.rng.between(1, 2));
    }
    (vec![format!("foreach: {{{keys}}}")], None)
}

pub(super) fn literal_items(draft: &mut Draft) -> String {
    ["[]", "[1]", "[1, 2, 3]", "[2, 2, 2, 2]"][draft.rng.below(4) as usize].to_owned()
}

/// A fan-in at `target`, of so many branches.
pub(super) fn synchronization(draft: &mut Draft, branches: Option<u64>, target: usize) -> String {
    let rng = &mut draft.rng;
    let mut keys = Vec::new();
    match rng.below(4) {
        0 | 1 => keys.push("strategy: all".to_owned()),
        2 => keys.push("strategy: any".to_owned()),
        _ => keys.push(format!("strategy: {{m_of_n: {}}}", rng.between(1, branches.unwrap_or(3)))),
    }
    if rng.percent(40) {
        keys.push(format!("timeout: {}s", rng.between(1, 8)));
        if rng.percent(60) {
            keys.push("on_timeout: proceed_with_available".to_owned());
        }
    }
    if rng.percent(40) {
        keys.push("on_early_complete: abandon".to_owned());
    }
    let goes_on = rng.percent(45);
    if goes_on {
        keys.push("on_branch_failure: continue".to_owned());
    }
    if rng.percent(80) {
        let strategy = ["append", "merge_object", "keyed_by_branch", "last_wins"][rng.below(4) as usize];
        let mut merge = format!("target: state.g{target}, strategy: {strategy}");
        if rng.percent(30) {
            merge += ", source: _branch.index";
        }
        if goes_on && rng.percent(40) {
            merge += ", keep_failed: true";
        }
        keys.push(format!("merge: {{{merge}}}"));
    }
    keys.join(", ")
}
