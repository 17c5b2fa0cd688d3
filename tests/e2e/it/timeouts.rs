//! Every layer of timeout, in a real run: the right event, the right end, and no process left over.

use serde_json::Value;

use crate::place::{Place, processes_of};

/// Ignores the polite signal, and has a child that does too.
const STUBBORN: &str = "'trap \"\" TERM; (trap \"\" TERM; sleep 60) & sleep 60'";

struct Seen {
    place: Place,
    run: String,
    view: Value,
}

fn run(nodes: &str, code: i32) -> Seen {
    let place = Place::new();
    place.file("wonder.toml", "grace = \"100ms\"\n");
    let file = place.file("timeout.yaml", &format!("wonder: 1\nname: timeout\n{nodes}"));
    let view = place.json(&["run", &file], code);
    let run = view["run"].as_str().expect("an id").to_owned();
    assert_eq!(processes_of(&run), Vec::<String>::new(), "something is left over");
    Seen { place, run, view }
}

impl Seen {
    /// The last `token_timed_out` of this type: a timeout may be tried again first.
    fn timed_out(&self, of: &str) -> Value {
        let events = self.place.events(&self.run);
        let timed: Vec<&Value> = events
            .iter()
            .filter(|event| event["kind"] == "token_timed_out" && event["timeout_type"] == of)
            .collect();
        let last = timed.last().unwrap_or_else(|| panic!("no timeout of {of}: {events:#?}"));
        assert_eq!(last["workflow_run_id"], self.run.as_str());
        (*last).clone()
    }
}

#[test]
fn an_action_times_out_and_its_processes_with_it() {
    let seen = run(
        &format!(
            "nodes:\n  a: {{task: t}}\ntasks:\n  t:\n    steps:\n      - {{ref: s, action: slow}}\n\
             actions:\n  slow: {{shell: {{command: {STUBBORN}}}, execution: {{timeout: 200ms}}}}\n"
        ),
        1,
    );
    let event = seen.timed_out("execution");
    assert_eq!((&event["timeout_duration_ms"], &event["node_id"]), (&200.into(), &"a".into()));
    assert_eq!(seen.view["error"]["kind"], "timeout");
}

#[test]
fn a_task_times_out_and_its_processes_with_it() {
    let seen = run(&format!("nodes:\n  a: {{shell: {{command: {STUBBORN}}}, timeout: 200ms}}\n"), 1);
    let event = seen.timed_out("task");
    assert_eq!((&event["timeout_duration_ms"], &event["policy_applied"]), (&200.into(), &"fail".into()));
}

#[test]
fn a_task_that_times_out_may_be_tried_again() {
    let nodes = "nodes:\n  a:\n    shell: {command: 'test $WONDER_ATTEMPT -gt 1 || sleep 60'}\n    timeout: 300ms\n    on_timeout: retry\n";
    let seen = run(nodes, 0);
    assert_eq!(seen.timed_out("task")["policy_applied"], "retry");
}

#[test]
fn a_workflow_times_out_in_each_of_its_ways() {
    let nodes = |policy: &str| {
        format!("timeout: 300ms\non_timeout: {policy}\nnodes:\n  a: {{shell: {{command: {STUBBORN}}}}}\n")
    };
    let cancelled = run(&nodes("cancel_all"), 5);
    assert_eq!(cancelled.view["status"], "timed_out");
    assert_eq!(cancelled.timed_out("workflow")["policy_applied"], "cancel_all");
    let failed = run(&nodes("fail"), 1);
    assert_eq!(failed.view["status"], "failed");
    assert_eq!(failed.timed_out("workflow")["policy_applied"], "fail");
}

#[test]
fn a_workflow_that_times_out_may_ask() {
    // What is out when the time is over still finishes; what comes after waits for the answer.
    let nodes = "timeout: 200ms\nnodes:\n  a: {shell: {command: 'sleep 0.5'}, next: [{to: b}]}\n  b: {mock: {output: {done: true}}}\n";
    let seen = run(nodes, 3);
    assert_eq!(seen.timed_out("workflow")["policy_applied"], "human_gate");
    let gates = seen.place.json(&["gates"], 0);
    assert_eq!(gates[0]["kind"], "timeout");
    let done = seen.place.json(&["answer", &seen.run, r#"{"action": "extend", "by": "10s"}"#], 0);
    assert_eq!(done["output"]["done"], true);
}

fn fan_in(policy: &str) -> String {
    format!(
        "nodes:\n  spread: {{mock: {{output: {{}}}}, next: [{{to: work, foreach: {{items: '[0, 60, 60]', as: nap}}}}]}}\n  \
         work:\n    shell: {{command: 'sleep {{{{ nap }}}}'}}\n    next:\n      - to: join\n        \
         synchronization: {{strategy: all, timeout: 300ms, on_timeout: {policy}, merge: {{source: _branch.index, target: state.all, strategy: append}}}}\n  \
         join: {{update_context: {{set: {{output.arrived: size(state.all)}}}}}}\n"
    )
}

#[test]
fn a_fan_in_times_out_and_fails() {
    let seen = run(&fan_in("fail"), 1);
    assert_eq!(seen.timed_out("synchronization")["policy_applied"], "fail");
    assert_eq!(seen.view["error"]["kind"], "fan_in_failed");
}

#[test]
fn a_fan_in_times_out_and_goes_on_with_what_it_has() {
    let seen = run(&fan_in("proceed_with_available"), 0);
    assert_eq!(seen.timed_out("synchronization")["policy_applied"], "proceed_with_available");
    assert_eq!(seen.view["output"]["arrived"], 1);
}
