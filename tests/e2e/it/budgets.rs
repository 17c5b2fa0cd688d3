//! Money in real runs: a budget is never overspent by more than the calls already out, whatever dies when;
//! and what is spent stays spent. The sums here are made from events and from what the calls themselves
//! wrote down, not from what the run says it cost.

use std::collections::BTreeMap;
use std::process::Child;

use serde_json::{Value, json};

use crate::place::{Dice, Place, Told, until};

/// What one call costs, in millionths of a dollar.
const CALL: u64 = 50_000;
const DOLLAR: u64 = 1_000_000;

/// A hundred calls, eight at a time. Each says that it was made.
fn hundred(budget: &str) -> String {
    let items: Vec<String> = (0..100).map(|item| item.to_string()).collect();
    format!(
        "
budget: {budget}
nodes:
  spread: {{update_context: {{set: {{all: '[{}]'}}}}, next: [{{to: call, foreach: {{items: state.all, as: item, max_parallel: 8}}}}]}}
  call:
    task: calls
    next: [{{to: join, synchronization: {{merge: {{source: _branch.index, target: state.done}}}}}}]
  join: {{update_context: {{set: {{output.made: size(state.done)}}}}}}
{CALLS}",
        items.join(", ")
    )
}

const CALLS: &str = "
tasks:
  calls:
    steps:
      - {ref: say, shell: {command: 'echo $WONDER_IDEMPOTENCY_KEY >> calls.txt', timeout: 30s}}
      - {ref: pay, mock: {output: {}, delay: 20ms, usage: {cost_usd: 0.05}}}
";

/// How many calls were made, those included that nobody heard of again.
fn calls(place: &Place) -> u64 {
    std::fs::read_to_string(place.dir.path().join("calls.txt")).map_or(0, |text| text.lines().count() as u64)
}

/// A run's money, added up from its events.
#[derive(Debug, Default)]
struct Ledger {
    spent: u64,
    /// What is out, and what was set aside for it.
    out: BTreeMap<u64, u64>,
}

impl Ledger {
    /// At no moment may what is spent and what is out be more than the budget as it then was.
    fn of(events: &[Value], mut budget: u64) -> Ledger {
        let mut ledger = Ledger::default();
        for event in events {
            let token = event["token"].as_u64().unwrap_or(0);
            match event["kind"].as_str().expect("a kind") {
                "task_dispatched" => {
                    ledger.out.insert(token, event["reserved"]["usd_micros"].as_u64().unwrap_or(0));
                }
                "child_started" => {
                    ledger.out.insert(token, event["allowance"]["usd_micros"].as_u64().unwrap_or(0));
                }
                "child_completed" => ledger.paid(token, &event["spend"]),
                "budget_raised" => budget += event["usd_micros"].as_u64().expect("an amount"),
                _ if event["report"].is_object() => ledger.paid(token, &event["report"]["spend"]),
                _ => {}
            }
            let committed = ledger.spent + ledger.out.values().sum::<u64>();
            assert!(committed <= budget, "{committed} of {budget} at {event:#}");
        }
        ledger
    }

    fn paid(&mut self, token: u64, spend: &Value) {
        self.out.remove(&token);
        self.spent += spend["usd_micros"].as_u64().unwrap_or(0);
    }
}

fn ledger(told: &Told, budget: u64) -> Ledger {
    let ledger = Ledger::of(&told.place.events(&told.run), budget);
    let shown = told.show()["cost_usd"].as_f64().expect("a number");
    assert!((shown * 1e6 - ledger.spent as f64).abs() < 0.5, "{shown} and {ledger:?}");
    ledger
}

// The run's budget.

#[test]
fn eight_at_a_time_spend_a_dollar_and_not_a_cent_more() {
    let mut told = Told::of(&hundred("{usd: 1}"), 6);
    assert_eq!((&told.view["status"], &told.gate()["kind"]), (&json!("paused"), &json!("budget")));
    assert_eq!(told.gate()["body"], "$1.00 of $1.00 are spent, and the next call may need $0.05");
    assert_eq!((ledger(&told, DOLLAR).spent, calls(&told.place)), (DOLLAR, 20));
    let warned = told.events("budget_warning");
    assert_eq!((warned.len(), &warned[0]["spent"]["usd_micros"]), (1, &json!(800_000)));
    assert!(told.page().contains("$1.0000 of $1.0000 spent"), "{}", told.page());
    // More money, more calls: exactly as many as it pays for.
    told.then(&["answer", "action=raise", "usd=0.5"], 6);
    assert_eq!((ledger(&told, DOLLAR).spent, calls(&told.place)), (1_500_000, 30));
    told.then(&["answer", "action=raise", "usd=3.5"], 0);
    assert_eq!((ledger(&told, DOLLAR).spent, &told.view["output"]), (100 * CALL, &json!({"made": 100})));
    assert_eq!(calls(&told.place), 100);
}

#[test]
fn a_person_may_end_what_has_become_too_expensive() {
    let mut told = Told::of(&hundred("{usd: 0.2}"), 6);
    let refused = told.place.run(&["resume", &told.run]);
    assert_eq!(refused.code, Some(2), "only an answer goes on: {refused:#?}");
    told.then(&["answer", "action=abort"], 6);
    assert_eq!(
        (&told.view["status"], &told.view["error"]["kind"]),
        (&json!("failed"), &json!("budget_exceeded"))
    );
    assert_eq!((ledger(&told, DOLLAR / 5).spent, calls(&told.place)), (4 * CALL, 4));
}

#[test]
fn why_names_the_gate_of_the_budget() {
    let told = Told::of(&hundred("{usd: 0.2}"), 6);
    let why = told.place.run(&["why", &told.run]).out;
    let gate = format!("gate {}:1: The budget is spent", told.run);
    assert!(why.contains(&gate) && !why.contains("resumed"), "{why}");
    // It has been nowhere: it stands in line, and the page says what for.
    let shown = told.show();
    let held = shown["nodes"].as_array().expect("nodes").iter().find(|visit| visit["status"] == "pending");
    let walk: Vec<&Value> = held.expect("one in line")["walk"].as_array().expect("a walk").iter().collect();
    assert_eq!((walk.len(), &walk[0]["status"]), (1, &json!("pending")));
    assert!(shown["nodes"].as_array().expect("nodes").iter().all(|visit| visit["status"] != "escalated"));
    assert!(told.page().contains("gate 1: The budget is spent"), "{}", told.page());
}

const LOOP: &str = "
nodes:
  call: {task: calls, next: [{to: call, max_iterations: 9}, {to: done}]}
  done: {update_context: {set: {output.done: 'true'}}}
";

/// One call after the other, over and over.
fn chain(budget: &str) -> String {
    format!("budget: {budget}\n{LOOP}{CALLS}")
}

#[test]
fn a_budget_that_says_fail_fails_and_stays_spent_when_tried_again() {
    let mut told = Told::of(&chain("{usd: 0.25, on_exceeded: fail}"), 6);
    for _ in 0..2 {
        assert_eq!(
            (&told.view["status"], &told.view["error"]["kind"]),
            (&json!("failed"), &json!("budget_exceeded"))
        );
        assert_eq!((ledger(&told, DOLLAR / 4).spent, calls(&told.place)), (5 * CALL, 5));
        told.then(&["retry"], 6);
    }
}

#[test]
fn tokens_and_calls_are_budgets_too_and_grow_by_what_is_written() {
    let chain = |budget: &str| {
        format!(
            "budget: {budget}\nnodes:\n  call: {{mock: {{output: {{}}, usage: {{input_tokens: 30, output_tokens: 10}}}}, next: [{{to: call, max_iterations: 5}}, {{to: done}}]}}\n  done: {{update_context: {{set: {{output.done: 'true'}}}}}}\n"
        )
    };
    let mut told = Told::of(&chain("{tokens: 100}"), 6);
    assert_eq!(told.view["tokens"], 80);
    told.then(&["answer", "action=raise"], 6);
    assert_eq!(told.view["tokens"], 200);
    told.then(&["answer", "action=raise"], 0);
    let mut told = Told::of(&chain("{calls: 4, warn_at: 0.5}"), 6);
    assert_eq!((told.visit("call")["token"].clone(), told.events("budget_warning").len()), (json!(5), 1));
    told.then(&["answer", "action=raise"], 0);
}

#[test]
fn what_fails_costs_too() {
    let told = Told::of(
        "
budget: {usd: 0.15, on_exceeded: fail}
nodes:
  a:
    mock: {error: internal, usage: {cost_usd: 0.05}}
    on_error: {when: error.kind == 'internal', do: retry, max: 9, initial_delay: 10ms}
",
        6,
    );
    assert_eq!((ledger(&told, 3 * CALL).spent, &told.visit("a")["attempts"]), (3 * CALL, &json!(3)));
}

/// Tries that fail by the world's fault cost as well; a worker makes no try that was not paid for.
#[test]
fn tries_of_an_action_cannot_overspend() {
    let failing = |budget: &str| {
        format!(
            "
{budget}
nodes:
  a: {{mock: {{outcomes: [{{error: network, usage: {{cost_usd: 0.05}}}}, {{error: network, usage: {{cost_usd: 0.05}}}}, {{output: {{}}, usage: {{cost_usd: 0.05}}}}], execution: {{retry_policy: {{max_attempts: 3, initial_delay: 10ms}}}}}}}}
"
        )
    };
    let told = Told::of(&failing("budget: {usd: 0.1, on_exceeded: fail}"), 6);
    assert_eq!(
        (ledger(&told, 2 * CALL).spent, &told.view["error"]["kind"]),
        (2 * CALL, &json!("budget_exceeded"))
    );
    let told = Told::of(&failing("budget: {usd: 0.15}"), 0);
    assert_eq!((ledger(&told, 3 * CALL).spent, &told.visit("a")["attempts"]), (3 * CALL, &json!(3)));
    // Nobody bounds it, so nobody stops it.
    let told = Told::of(&failing(""), 0);
    assert_eq!((ledger(&told, 3 * CALL).spent, &told.visit("a")["attempts"]), (3 * CALL, &json!(1)));
}

#[test]
fn a_written_response_goes_before_the_budgets_own() {
    let over = |response: &str| {
        format!(
            "budget: {{usd: 0.05}}\nnodes:\n  a: {{task: calls}}\n  b: {{task: calls, needs: [a], on_error: {{when: error.kind == 'budget_exceeded', {response}}}}}\n{CALLS}"
        )
    };
    let told = Told::of(&over("do: skip, output: {cheap: true}"), 0);
    assert_eq!((&told.view["output"], ledger(&told, CALL).spent), (&json!({"b": {"cheap": true}}), CALL));
    let mut told = Told::of(&over("do: escalate"), 3);
    assert_eq!(
        (&told.gate()["kind"], &told.gate()["title"]),
        (&json!("review"), &json!("b failed: budget_exceeded"))
    );
    told.then(&["answer", "action=skip"], 0);
    assert_eq!(ledger(&told, CALL).spent, CALL);
}

// Downgrade. This build has no model: the call is there for what it would cost, and is never made.

fn downgrades(cheaper: &str, rest: &str) -> String {
    format!(
        "
budget: {{usd: 0.0021, on_exceeded: downgrade}}
nodes:
  a: {{mock: {{usage: {{cost_usd: 0.001}}}}, next: [{{to: b}}]}}
  b: {{task: asks{rest}}}
tasks:
  asks:
    steps:
      - {{ref: asked, mock: {{outcomes: [{{error: rate_limited}}, {{output: {{v: 1}}}}]}}, output_mapping: {{output: result}}}}
      - {{ref: real, condition: 'false', llm_call: {{model: big, prompt: Hi, max_tokens: 1000, timeout: 1m}}}}
models:
  big: {{provider: openai, model: b{cheaper}, prices: {{output: 2}}}}
  small: {{provider: openai, model: s, prices: {{output: 1}}}}
"
    )
}

#[test]
fn what_does_not_fit_goes_on_with_a_cheaper_model_or_asks() {
    let told = Told::of(&downgrades(", cheaper: small", ""), 0);
    let mutated = told.events("run_mutated");
    assert_eq!((mutated.len(), &mutated[0]["what"]), (1, &json!("downgrade")));
    assert!(
        mutated[0]["reason"].as_str().is_some_and(|why| why.contains("of $0.0021 are spent")),
        "{mutated:#?}"
    );
    let reserved: Vec<Value> =
        told.events("task_dispatched").iter().map(|event| event["reserved"]["usd_micros"].clone()).collect();
    assert_eq!(reserved, [1_000, 1_000], "the cheaper price is set aside");
    let told = Told::of(&downgrades("", ""), 6);
    assert_eq!((told.changes().len(), &told.gate()["kind"]), (0, &json!("budget")));
}

#[test]
fn a_failure_may_downgrade_too() {
    let rule = ", on_error: {when: error.kind == 'internal', do: downgrade_model, initial_delay: 10ms}";
    let workflow = downgrades(", cheaper: small", rule)
        .replace("rate_limited", "internal")
        .replace("usd: 0.0021", "usd: 1");
    let told = Told::of(&workflow, 0);
    assert_eq!((told.changes(), told.metric("mutations_applied")), (vec![json!("downgrade")], 1));
    let reserved: Vec<Value> =
        told.events("task_dispatched").iter().map(|event| event["reserved"]["usd_micros"].clone()).collect();
    assert_eq!(reserved, [1_000, 2_000, 1_000]);
}

// Time.

#[test]
fn time_is_a_budget_of_the_run() {
    let slow = |rest: &str| {
        format!(
            "budget: {{wall: 300ms{rest}}}\nnodes:\n  a: {{shell: {{command: 'test -e go || sleep 0.6', timeout: 1m}}, next: [{{to: b}}]}}\n  b: {{mock: {{output: {{v: 1}}}}}}\n"
        )
    };
    let mut told = Told::of(&slow(""), 6);
    assert_eq!((told.events("budget_warning").len(), told.events("budget_exceeded").len()), (1, 1));
    assert_eq!((&told.gate()["kind"], &told.visit("b")["status"]), (&json!("budget"), &json!("pending")));
    told.then(&["answer", "action=raise"], 0);
    assert_eq!(told.view["output"], json!({"v": 1}));
    let told = Told::of(&slow(", on_exceeded: fail"), 6);
    assert_eq!(
        (&told.view["error"]["kind"], &told.visit("a")["status"]),
        (&json!("budget_exceeded"), &json!("cancelled"))
    );
}

#[test]
fn time_is_a_budget_of_a_node() {
    let slow = |rest: &str| {
        format!(
            "nodes:\n  a: {{shell: {{command: 'test $WONDER_ATTEMPT -gt 1 || sleep 60', timeout: 2m}}, budget: {{wall: 200ms{rest}}}}}\n  b: {{mock: {{output: {{v: 1}}}}, needs: [a]}}\n"
        )
    };
    let mut told = Told::of(&slow(""), 6);
    assert_eq!((&told.gate()["kind"], &told.gate()["node"]), (&json!("budget"), &json!("a")));
    for news in ["budget_exceeded", "budget_warning"] {
        let of: Vec<Value> = told.events(news).iter().map(|event| event["node"].clone()).collect();
        assert_eq!(of, ["a"], "{news}");
    }
    told.then(&["answer", "action=raise"], 0);
    assert_eq!(told.visit("a")["attempts"], 2);
    let told = Told::of(&slow(", on_exceeded: fail"), 6);
    assert_eq!(told.view["error"]["kind"], "budget_exceeded");
}

// Nodes and children.

#[test]
fn a_nodes_budget_holds_over_all_its_branches() {
    let told = Told::of(
        &format!(
            "
nodes:
  call: {{task: calls, foreach: {{items: '[1, 2, 3, 4, 5, 6, 7, 8]', as: item, on_branch_failure: continue, keep_failed: true}}, budget: {{usd: 0.15, on_exceeded: fail}}}}
  free: {{update_context: {{set: {{output.failed: 'size(needs.call.filter(one, has(one.error)))'}}}}, needs: [call]}}
{CALLS}"
        ),
        0,
    );
    assert_eq!((&told.view["output"], ledger(&told, 3 * CALL).spent), (&json!({"failed": 5}), 3 * CALL));
    assert_eq!(calls(&told.place), 3);
}

/// Every run in a place, children too, with what their events add up to.
fn spent_in(place: &Place) -> u64 {
    let listed = place.json(&["list", "--all"], 0);
    let runs = listed.as_array().expect("runs").iter();
    let own = |run: &Value| {
        let events = place.events(run["run"].as_str().expect("an id"));
        let reports = events.iter().map(|event| event["report"]["spend"]["usd_micros"].as_u64().unwrap_or(0));
        reports.sum::<u64>()
    };
    runs.map(own).sum()
}

fn family(parent: &str, child: &str) -> String {
    format!(
        "
{parent}
nodes:
  first: {{task: calls, fan_out: all, next: [{{to: left}}, {{to: right}}]}}
  left: {{workflow_call: {{workflow: child, on_failure: catch}}}}
  right: {{workflow_call: {{workflow: child, on_failure: catch}}}}
{CALLS}---
wonder: 1
name: child
{child}
{LOOP}{CALLS}"
    )
}

#[test]
fn children_together_spend_what_their_parent_has_left() {
    let told = Told::of(&family("budget: {usd: 0.5, on_exceeded: fail}", ""), 6);
    assert_eq!(told.view["error"]["message"], "nothing is left for a child run");
    assert_eq!(ledger(&told, DOLLAR / 2).spent, DOLLAR / 2);
    assert_eq!((spent_in(&told.place), calls(&told.place)), (DOLLAR / 2, 10));
}

#[test]
fn a_child_keeps_to_its_own_budget_where_that_is_smaller() {
    let told = Told::of(&family("budget: {usd: 1}", "budget: {usd: 0.1, on_exceeded: fail}"), 0);
    let allowed: Vec<Value> =
        told.events("child_started").iter().map(|event| event["allowance"]["usd_micros"].clone()).collect();
    assert_eq!(allowed, [2 * CALL, 2 * CALL], "both go at once");
    assert_eq!((spent_in(&told.place), ledger(&told, DOLLAR).spent), (5 * CALL, 5 * CALL));
}

#[test]
fn the_question_of_a_child_is_answered_where_it_is_asked() {
    let mut told = Told::of(
        &format!(
            "nodes:\n  left: {{workflow_call: {{workflow: child}}}}\n---\nwonder: 1\nname: child\nbudget: {{usd: 0.1}}\n{LOOP}{CALLS}"
        ),
        6,
    );
    let gate = told.gate();
    assert_eq!((&gate["kind"], &gate["root"]), (&json!("budget"), &json!(told.run)));
    assert_eq!((&told.view["waiting"][0]["gate"], calls(&told.place)), (&gate["id"], 2));
    told.then(&["answer", "action=abort"], 6);
    assert_eq!(
        (&told.view["error"]["kind"], spent_in(&told.place)),
        (&json!("subworkflow_failed"), 2 * CALL)
    );
}

/// What a child is short of is its parent's, and so is the say in it. What was granted there counts above.
#[test]
fn a_child_that_runs_short_does_as_its_parents_budget_says() {
    let one = |budget: &str| {
        format!(
            "budget: {budget}\nnodes:\n  first: {{task: calls, next: [{{to: left}}]}}\n  left: {{workflow_call: {{workflow: child}}}}\n{CALLS}---\nwonder: 1\nname: child\n{LOOP}{CALLS}"
        )
    };
    let mut told = Told::of(&one("{usd: 0.2}"), 6);
    let gate = told.gate();
    assert_eq!((&gate["kind"], &gate["root"]), (&json!("budget"), &json!(told.run)));
    assert_eq!(
        gate["body"],
        "allowed by the parent run: $0.15 of $0.15 are spent, and the next call may need $0.05"
    );
    assert_eq!(calls(&told.place), 4);
    told.then(&["answer", "action=raise", "usd=0.1"], 6);
    assert_eq!(calls(&told.place), 6);
    told.then(&["answer", "action=raise", "usd=1"], 0);
    // Ten calls of the child and one of the parent: raised by what was beyond, not by what was offered.
    assert_eq!((ledger(&told, DOLLAR / 5).spent, calls(&told.place)), (11 * CALL, 11));
    assert_eq!(told.events("budget_raised")[0]["usd_micros"], 7 * CALL);
    let told = Told::of(&one("{usd: 0.2, on_exceeded: fail}"), 6);
    assert_eq!(
        (spent_in(&told.place), &told.view["error"]["kind"]),
        (4 * CALL, &json!("subworkflow_failed"))
    );
}

/// One branch fails while the other, which has cost something, takes its time to stop.
const LATE: &str = "
nodes:
  start: {mock: {}, fan_out: all, next: [{to: fails}, {to: slow}]}
  fails: {shell: {command: 'until test -e begun; do sleep 0.01; done; exit 1', timeout: 30s}}
  slow:
    steps:
      - {ref: pay, mock: {output: {}, usage: {cost_usd: 0.05}}}
      - {ref: stop, shell: {command: 'trap \"sleep 0.3; exit 0\" TERM; touch begun; sleep 60 & wait', timeout: 1m}}
";

#[test]
fn what_is_reported_late_costs_and_moves_no_end() {
    let told = Told::of(LATE, 1);
    let (failed, late) = (told.events("run_failed")[0].clone(), told.events("late_report")[0].clone());
    assert!(late["at"].as_u64() > failed["at"].as_u64(), "{late:#} after {failed:#}");
    assert_eq!((&told.show()["ended_at"], ledger(&told, DOLLAR).spent), (&failed["at"], CALL));
    assert_eq!(told.place.json(&["list", "--all"], 0)[0]["ended_at"], failed["at"]);
}

#[test]
fn what_a_child_reports_late_is_its_parents_too() {
    let told = Told::of(
        &format!(
            "budget: {{usd: 1}}\nnodes:\n  left: {{workflow_call: {{workflow: child, on_failure: catch}}, next: [{{to: done}}]}}\n  done: {{update_context: {{set: {{output.failed: has(state.left.error)}}}}}}\n---\nwonder: 1\nname: child\n{LATE}"
        ),
        0,
    );
    assert_eq!((&told.view["output"], ledger(&told, DOLLAR).spent), (&json!({"failed": true}), CALL));
    assert_eq!(spent_in(&told.place), CALL);
}

#[test]
fn the_budget_of_a_node_that_calls_holds_for_its_children() {
    let told = Told::of(
        &format!(
            "
nodes:
  left: {{workflow_call: {{workflow: child, on_failure: catch}}, budget: {{usd: 0.15, on_exceeded: fail}}, next: [{{to: left, max_iterations: 3}}, {{to: done, on: failure}}]}}
  done: {{update_context: {{set: {{output.kind: _last_error.kind}}}}}}
---
wonder: 1
name: child
nodes:
  call: {{task: calls, next: [{{to: more}}]}}
  more: {{task: calls}}
{CALLS}"
        ),
        0,
    );
    assert_eq!(
        (&told.view["output"], spent_in(&told.place)),
        (&json!({"kind": "budget_exceeded"}), 3 * CALL)
    );
}

#[test]
fn a_node_that_a_plan_adds_keeps_to_its_own_budget() {
    let told = Told::of(
        &format!(
            "
nodes:
  plan: {{may_mutate: {{}}, mock: {{output: {{_mutations: {{nodes: [{{ref: dear, task: calls, budget: {{usd_micros: 40000, on_exceeded: fail}}}}], transitions: [{{from: plan, to: dear}}]}}}}}}}}
{CALLS}"
        ),
        6,
    );
    assert_eq!((&told.view["error"]["node"], calls(&told.place)), (&json!("dear"), 0));
}

#[test]
fn two_nodes_that_are_too_expensive_ask_one_after_the_other() {
    let dear = "task: calls, budget: {usd: 0.04}";
    let workflow =
        format!("nodes:\n  a: {{{dear}}}\n  b: {{{dear}}}\n  c: {{mock: {{}}, needs: [a, b]}}\n{CALLS}");
    let mut told = Told::of(&workflow, 6);
    assert_eq!(told.gate()["node"], "a");
    told.then(&["answer", "action=raise"], 6);
    assert_eq!((&told.gate()["node"], calls(&told.place)), (&json!("b"), 1));
    told.then(&["answer", "action=raise", "usd=0.01"], 0);
    assert_eq!(ledger(&told, DOLLAR).spent, 2 * CALL);
}

// Crashes.

/// Killed when so many calls were made, and a little later. How many calls were out then.
fn kill_after(place: &Place, arguments: &[&str], made: u64, spins: u64) -> u64 {
    let mut child = place.spawn(arguments);
    let over = |child: &mut Child| child.try_wait().expect("it can be asked").is_some();
    until("the calls to be made", || calls(place) >= made || over(&mut child));
    (0..spins).for_each(|_| std::hint::spin_loop());
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    Ledger::of(&place.events("last"), DOLLAR).out.len() as u64
}

/// On from where it was left, unless it came to its end before it could be killed.
fn at_its_end(place: Place) -> Told {
    let mut told = Told::left(place);
    if told.show()["status"] == "running" {
        told.then(&["resume"], 6);
    }
    told
}

#[test]
fn killed_in_the_middle_it_never_spends_more_than_the_calls_that_were_out() {
    let mut dice = Dice(20_261_117);
    for _ in 0..4 {
        let place = Place::new();
        let workflow = format!("wonder: 1\nname: told\n{}", hundred("{usd: 1}"));
        let file = place.file("told.yaml", &workflow);
        let mut lost = kill_after(&place, &["run", &file], 1 + dice.below(8), dice.below(1_000_000));
        lost += kill_after(&place, &["resume", "last"], calls(&place) + 1, dice.below(1_000_000));
        let told = at_its_end(place);
        assert_eq!(ledger(&told, DOLLAR).spent, DOLLAR, "all that was allowed, and no more");
        let made = calls(&told.place);
        assert!((20..=20 + lost).contains(&made), "{made} calls, and {lost} were out when it was killed");
    }
}

#[test]
fn dying_at_any_point_it_adds_up() {
    let mut dice = Dice(20_261_118);
    for _ in 0..5 {
        let place = Place::new();
        let workflow = format!("wonder: 1\nname: told\n{}", chain("{usd: 0.25, on_exceeded: fail}"));
        let file = place.file("told.yaml", &workflow);
        let point = format!("any:{}", 4 + dice.below(30));
        let died =
            place.command(&["run", &file]).env("WONDER_FAILPOINT", &point).output().expect("it starts");
        assert!(matches!(died.status.code(), None | Some(6)), "{point}: {died:#?}");
        let mut told = at_its_end(place);
        told.then(&["retry"], 6);
        assert_eq!(ledger(&told, DOLLAR / 4).spent, DOLLAR / 4, "{point}");
        assert!((5..=6).contains(&calls(&told.place)), "{point}: one call at most was made twice");
    }
}

#[test]
fn dying_with_children_out_it_adds_up() {
    let mut dice = Dice(20_261_119);
    let family = family("budget: {usd: 0.5, on_exceeded: fail}", "budget: {usd: 0.2, on_exceeded: fail}");
    for _ in 0..5 {
        let place = Place::new();
        let file = place.file("told.yaml", &format!("wonder: 1\nname: told\n{family}"));
        let point = format!("any:{}", 4 + dice.below(60));
        let died =
            place.command(&["run", &file]).env("WONDER_FAILPOINT", &point).output().expect("it starts");
        assert!(matches!(died.status.code(), None | Some(0)), "{point}: {died:#?}");
        let mut told = Told::left(place);
        if told.show()["status"] == "running" {
            told.then(&["resume"], 0);
        }
        // One call of the parent, and four of each child; of the two that may be out, each once more.
        assert_eq!((ledger(&told, DOLLAR / 2).spent, spent_in(&told.place)), (9 * CALL, 9 * CALL), "{point}");
        assert!((9..=11).contains(&calls(&told.place)), "{point}: {}", calls(&told.place));
    }
}
