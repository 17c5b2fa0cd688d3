//! Tests of planning: definitions in, numbers out.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wonder_core::event::EventKind;
use wonder_core::graph::Graph;
use wonder_core::{Input, Run, StartRun, Time, Value};

use super::*;

/// Everything is there and can be done; or nothing is, and all but model calls can.
#[derive(Debug)]
enum Here {
    Everything,
    Bare,
}

use Here::{Bare, Everything};

impl Around for Here {
    fn has_variable(&self, _name: &str) -> bool {
        matches!(self, Everything)
    }

    fn has_program(&self, _name: &str) -> bool {
        matches!(self, Everything)
    }

    fn can_perform(&self, implementation: &Implementation) -> bool {
        matches!(self, Everything) || !matches!(implementation, Implementation::LlmCall(_))
    }
}

/// A node over a task of its own with one action, and more keys of the node.
struct Draft(&'static str, &'static str, Json, Json);

fn mock(reference: &'static str, seconds: u64, keys: Json) -> Draft {
    let outcome = json!({"delay_ms": seconds * 1_000, "usage": {"usd_micros": 100}});
    Draft(reference, "mock", json!({"outcomes": [outcome]}), keys)
}

fn built(workflow: Json, nodes: Vec<Draft>, more: Json) -> Graph {
    let (mut tasks, mut actions) = (json!({}), json!({}));
    let mut workflow = workflow;
    workflow["name"] = json!(workflow.get("name").and_then(Json::as_str).unwrap_or("test"));
    workflow["nodes"] = json!([]);
    for Draft(reference, kind, implementation, keys) in nodes {
        actions[reference] = json!({"name": reference, "kind": kind, "implementation": implementation});
        let task = keys.get("own_task").cloned().unwrap_or(json!({}));
        let step = json!({"ref": "only", "action": reference});
        tasks[reference] = lay(json!({"name": reference, "steps": [step]}), task);
        let mut node = lay(json!({"ref": reference, "task": reference, "inline": "action"}), keys);
        node.as_object_mut().unwrap().remove("own_task");
        workflow["nodes"].as_array_mut().unwrap().push(node);
    }
    let bundle = lay(json!({"workflow": workflow, "tasks": tasks, "actions": actions}), more);
    match Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())) {
        Ok((graph, _)) => graph,
        Err(problems) => panic!("{problems:?}"),
    }
}

fn lay(mut under: Json, over: Json) -> Json {
    for (key, value) in over.as_object().unwrap() {
        under[key] = value.clone();
    }
    under
}

fn known(around: &dyn Around) -> Known<'_> {
    Known {
        estimates: BTreeMap::new(),
        prices: BTreeMap::new(),
        callable: BTreeMap::new(),
        limits: Limits::default(),
        around,
    }
}

fn planned(graph: &Graph) -> Plan {
    plan(graph, &known(&Everything))
}

fn names(list: &[Name]) -> Vec<&str> {
    list.iter().map(|name| &**name).collect()
}

fn diamond(workflow: Json) -> Graph {
    let nodes = vec![
        mock("a", 1, json!({})),
        mock("b", 2, json!({"needs": ["a"]})),
        mock("c", 5, json!({"needs": ["a"], "estimate": {"duration_ms": 4_000}})),
        mock("d", 1, json!({"needs": ["b", "c"]})),
    ];
    built(lay(json!({"kind": "dag"}), workflow), nodes, json!({}))
}

#[test]
fn a_diamond_has_three_batches_and_goes_by_its_longer_side() {
    let graph = diamond(json!({}));
    let plan = planned(&graph).outline;
    let batches: Vec<Vec<&str>> = plan.batches.iter().map(|batch| names(batch)).collect();
    assert_eq!(batches, [vec!["a"], vec!["b", "c"], vec!["d"]]);
    assert_eq!(names(&plan.critical_path.nodes), ["a", "c", "d"]);
    assert_eq!((plan.critical_path.duration_ms, plan.duration.expected_ms), (6_000, 6_000));
    assert_eq!(names(&plan.ready_order), ["a", "c", "b", "d"]);
    let origins: Vec<Origin> = plan.nodes.iter().map(|node| node.duration.origin).collect();
    assert_eq!(origins, [Origin::Written; 4]);
    assert_eq!(plan.cost.expected_usd_micros, Total { known: 400, unbounded: vec![] });

    // What past runs taught is second to what is written.
    let lesson = |ms| Estimate { duration_ms: Some(ms), usd_micros: Some(7) };
    let estimates = BTreeMap::from([("b".into(), lesson(9_000)), ("c".into(), lesson(99_000))]);
    let taught = super::plan(&graph, &Known { estimates, ..known(&Everything) }).outline;
    assert_eq!(names(&taught.critical_path.nodes), ["a", "b", "d"]);
    assert_eq!(taught.nodes[1].duration, Guess { amount: 9_000, origin: Origin::Learnt });
    assert_eq!(taught.nodes[2].duration, Guess { amount: 4_000, origin: Origin::Written });
    assert_eq!(taught.nodes[2].cost, Guess { amount: 7, origin: Origin::Learnt });
}

#[test]
fn with_two_places_the_longest_path_goes_first_and_the_work_bounds_it() {
    let mut nodes: Vec<Draft> = ["a", "b", "c"].map(|name| mock(name, 2, json!({}))).into();
    nodes.push(mock("long", 3, json!({"estimate": {"duration_ms": 3_000}})));
    nodes.push(mock("end", 1, json!({"needs": ["long"]})));
    let plan = planned(&built(json!({"kind": "dag", "max_parallel": 2}), nodes, json!({}))).outline;
    assert_eq!(names(&plan.ready_order), ["long", "a", "b", "c", "end"]);
    let starts: Vec<u64> = plan.nodes.iter().map(|node| node.starts_ms.unwrap()).collect();
    assert_eq!(starts, [0, 2_000, 3_000, 0, 4_000]);
    assert_eq!((plan.duration.expected_ms, plan.duration.lower_bound_ms), (5_000, 5_000));
    assert_eq!((plan.critical_path.duration_ms, plan.max_parallel), (4_000, Some(2)));
    assert!(plan.duration.worst.bound().unwrap() >= plan.duration.expected_ms);
}

#[test]
fn a_join_of_one_does_not_count_on_a_person() {
    let gate = Draft("ask", "human_gate", json!({"title": "Well?"}), json!({}));
    let nodes = vec![
        gate,
        mock("work", 3, json!({})),
        mock("go", 1, json!({"needs": ["ask", "work"], "join": "any"})),
    ];
    let plan = planned(&built(json!({"kind": "dag"}), nodes, json!({}))).outline;
    assert_eq!(plan.duration.expected_ms, 4_000);
    assert_eq!((plan.waits.len(), plan.nodes[0].duration.origin), (1, Origin::Waits));
    assert_eq!(plan.duration.worst.unbounded, ["`ask` waits for a person, without a timeout"]);
}

fn spread(items: &str) -> Plan {
    let nodes = vec![
        mock("list", 1, json!({})),
        mock("each", 2, json!({"needs": ["list"], "foreach": {"items": items, "max_parallel": 2}})),
    ];
    let schema = json!({"properties": {"files": {"type": "array", "maxItems": 10}}});
    planned(&built(json!({"kind": "dag", "input_schema": schema}), nodes, json!({})))
}

#[test]
fn a_foreach_is_as_many_as_its_list_or_its_schema_or_its_data() {
    let literal = spread("['a', 'b', 'c']").outline;
    assert_eq!((literal.fan_outs[0].branches.exact, literal.fan_outs[0].max_parallel), (Some(3), Some(2)));
    assert_eq!((literal.duration.expected_ms, literal.cost.expected_usd_micros.known), (5_000, 400));
    assert_eq!(literal.cost.worst_usd_micros.bound(), Some(400));

    let schema = spread("input.files").outline;
    assert_eq!((schema.fan_outs[0].branches.exact, schema.fan_outs[0].branches.at_most), (None, 10));
    assert_eq!(
        (schema.cost.expected_usd_micros.known, schema.cost.worst_usd_micros.bound()),
        (200, Some(1_100))
    );

    let data = spread("needs.list.files").outline;
    assert!(data.fan_outs[0].branches.by_data);
    assert_eq!(data.cost.worst_usd_micros.known, 200);
    assert_eq!(data.cost.worst_usd_micros.unbounded, ["`each` runs once for each of `needs.list.files`"]);
    assert!(data.duration.by_timeout, "only the workflow's timeout bounds its time");
}

/// `draft` fans out to judges, who join at `decide`, from where it may go back, or on.
fn panel(back: Json) -> Graph {
    let transitions = json!([
        {"from": "draft", "to": "judge", "spawn_count": 5},
        {"from": "judge", "to": "decide", "synchronization": {"strategy": "all"}},
        lay(json!({"from": "decide", "to": "draft", "condition": "input.bad"}), back),
        {"from": "decide", "to": "publish"},
    ]);
    let nodes = ["draft", "judge", "decide", "publish"].map(|name| mock(name, 1, json!({}))).into();
    built(json!({"transitions": transitions}), nodes, json!({}))
}

#[test]
fn a_loop_multiplies_what_is_in_it_by_its_bound() {
    let plan = planned(&panel(json!({"max_iterations": 3}))).outline;
    assert_eq!(plan.loops.len(), 1);
    assert_eq!((names(&plan.loops[0].nodes), plan.loops[0].turns_max), (vec!["draft", "decide"], Some(3)));
    // A round is a draft, five judges and a decision; four of them, and then it is published.
    assert_eq!(plan.cost.worst_usd_micros.bound(), Some(4 * 700 + 100));
    assert_eq!(plan.cost.expected_usd_micros.bound(), Some(700 + 100));
    assert_eq!(plan.duration.expected_ms, 4_000);
    assert_eq!(plan.duration.worst.bound(), Some(4 * 3_000 + 1_000));
    let fan_in = plan.fan_outs[0].fan_in.as_ref().unwrap();
    assert_eq!((&*fan_in.node, plan.fan_outs[0].branches.exact), ("decide", Some(5)));
    assert_eq!(plan.nodes.iter().map(|node| node.batch).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn a_loop_that_only_a_condition_ends_counts_as_often_as_is_expected_and_says_so() {
    let plan = planned(&panel(json!({}))).outline;
    assert_eq!((plan.loops[0].turns_max, plan.loops[0].passes_expected), (None, 1));
    // One round and then it is published, as expected; whoever reads it knows what that rests on.
    assert_eq!(plan.cost.worst_usd_micros.known, 700 + 100);
    assert_eq!(
        plan.cost.worst_usd_micros.unbounded,
        ["the loop of `draft`, `decide`: 1 pass expected; no bound is written"]
    );
    assert_eq!(plan.cost.expected_usd_micros.bound(), Some(800));
    assert!(plan.duration.by_timeout);
    assert_eq!(plan.duration.worst.bound(), Some(3_600_000));
    let choice = &plan.choices[0];
    assert_eq!((&*choice.node, names(&choice.among)), ("decide", vec!["draft", "publish"]));
    assert_eq!(names(&choice.counted), ["publish"]);
}

#[test]
fn what_mocks_answer_decides_and_the_engine_goes_round_as_often_as_that() {
    let set = |set: Json| json!({"set": set});
    let retried = json!({"outcomes": [{"error": {"kind": "timeout"}, "delay_ms": 500}, {"delay_ms": 500}]});
    let goal = json!({"outcomes": [{"output": {"rounds": 3}}]});
    let nodes = vec![
        Draft("goal", "mock", goal, json!({})),
        Draft("begin", "update_context", set(json!({"state.n": "0"})), json!({})),
        mock("ask", 1, json!({})),
        Draft("count", "update_context", set(json!({"state.n": "state.n + 1"})), json!({})),
        Draft("write", "mock", retried, json!({})),
        mock("never", 50, json!({})),
    ];
    let transitions = json!([
        {"from": "goal", "to": "begin"}, {"from": "begin", "to": "ask"}, {"from": "ask", "to": "count"},
        {"from": "count", "to": "ask", "condition": "state.n < state.goal.rounds"},
        {"from": "count", "to": "never", "condition": "state.n > 5"},
        {"from": "count", "to": "write"},
    ]);
    let plan = planned(&built(json!({"transitions": transitions}), nodes, json!({}))).outline;
    assert_eq!((plan.loops[0].passes_expected, plan.choices.len(), &plan.stops), (3, 0, &None));
    let visits: Vec<u64> = plan.nodes.iter().map(|node| node.visits).collect();
    assert_eq!(visits, [1, 1, 3, 3, 1, 0]);
    assert_eq!(plan.nodes[5].starts_ms, None, "nothing leads there");
    // Three answers, and two attempts to write: the first fails, and the default is to retry after a second
    // at most.
    let expected_ms = plan.duration.expected_ms;
    assert!((3_000 + 1_500..=3_000 + 2_000).contains(&expected_ms), "{expected_ms}");
    assert_eq!(plan.cost.expected_usd_micros.known, 300);
    assert_eq!(names(&plan.critical_path.nodes), ["goal", "begin", "ask", "count", "write"]);
}

#[test]
fn a_run_whose_mocks_fail_is_said_to_fail() {
    let broken = json!({"outcomes": [{"error": {"kind": "shell_exit", "message": "no space"}}]});
    let nodes = vec![mock("a", 1, json!({})), Draft("b", "mock", broken, json!({"needs": ["a"]}))];
    let plan = planned(&built(json!({"kind": "dag"}), nodes, json!({}))).outline;
    let stops = plan.stops.unwrap();
    assert!(stops.contains("no space"), "{stops}");
}

#[test]
fn the_body_of_a_loop_is_gone_through_once_where_only_data_knows() {
    let transitions = json!([
        {"from": "test", "to": "body", "condition": "state.body.left < input.pages"}, {"from": "test", "to": "end"},
        {"from": "body", "to": "test"},
    ]);
    let nodes = ["test", "body", "end"].map(|name| mock(name, 1, json!({}))).into();
    let plan = planned(&built(json!({"transitions": transitions}), nodes, json!({}))).outline;
    let visits: Vec<u64> = plan.nodes.iter().map(|node| node.visits).collect();
    assert_eq!((visits, plan.loops[0].passes_expected), (vec![2, 1, 1], 1));
    assert_eq!(plan.duration.expected_ms, 4_000);
    assert_eq!(names(&plan.choices[0].counted), ["body", "end"]);
}

/// One call of a model with known prices, in a node with these keys.
fn asking(keys: Json, workflow: Json) -> Plan {
    let call = json!({"model": "fast", "prompt": "Say hello.", "max_tokens": 100});
    let models = json!({"fast": {"name": "fast", "provider": "openai", "model": "fast-1",
        "prices": {"input": 1_000_000, "output": 10_000_000}}});
    planned(&built(workflow, vec![Draft("ask", "llm_call", call, keys)], json!({"models": models})))
}

#[test]
fn the_worst_of_a_call_is_what_the_core_reserves_times_all_attempts() {
    // A token for each byte of the prompt and of an empty input, and a hundred to answer.
    let one = 12 + 100 * 10;
    let plain = asking(json!({}), json!({})).outline;
    assert_eq!(plain.nodes[0].cost, Guess { amount: one, origin: Origin::Worst });
    assert_eq!((plain.nodes[0].attempts_max, plain.cost.worst_usd_micros.bound()), (1, Some(one)));

    let retried = json!({"own_task": {"retry": {"max_attempts": 3}, "steps":
        [{"ref": "only", "action": "ask", "on_failure": "retry"}]}});
    let by_rule = json!({"on_error": [{"do": "retry", "max": 2}]});
    let both = asking(lay(retried, by_rule.clone()), json!({})).outline;
    assert_eq!((both.nodes[0].attempts_max, both.cost.worst_usd_micros.bound()), (5, Some(5 * one)));

    // Written on the node itself, `retry` needs nobody to ask for it.
    let own = json!({"own_task": {"retry": {"max_attempts": 3}, "retry_on": "any_failure", "steps":
        [{"ref": "only", "action": "ask"}]}});
    assert_eq!(asking(own, json!({})).outline.nodes[0].attempts_max, 3);

    // Nothing is asked after a rule that always has an answer.
    let last = json!({"on_error": [{"do": {"skip": {}}}, {"do": "retry", "max": 9}]});
    assert_eq!(asking(last, json!({})).outline.nodes[0].attempts_max, 1);

    let budget = json!({"budget": {"usd_micros": 2 * one, "on_exceeded": "fail"}});
    let plan = asking(by_rule.clone(), budget).outline;
    let fits = plan.budget.unwrap();
    assert_eq!((fits.expected_fits, fits.worst_fits, plan.cost.cannot_start.len()), (true, false, 0));
    let tight = asking(by_rule, json!({"budget": {"usd_micros": one - 1}})).outline;
    assert_eq!(names(&tight.cost.cannot_start), ["ask"]);
}

/// What the first dispatch of a run reserves.
fn reserved(graph: Graph) -> u64 {
    let mut run = Run::new(Arc::new(graph));
    let start = Input::StartRun(Box::new(StartRun::new("run", Value::empty_map())));
    let events = run.handle(start, Time(0)).unwrap().events;
    let found = events.iter().find_map(|event| match &event.kind {
        EventKind::TaskDispatched { reserved, .. } => Some(reserved.usd_micros),
        _ => None,
    });
    found.expect("the first node is a task")
}

#[test]
fn the_core_reserves_what_the_plan_says() {
    let models = json!({"m": {"name": "m", "provider": "openai", "model": "m-1", "max_output_tokens": 300,
        "prices": {"input": 3_000_000, "output": 15_000_000}}});
    let tool = json!({"name": "look", "kind": "mcp_tool", "implementation": {"server": "s", "tool": "t"}});
    let schema = json!({"type": "object", "properties": {"score": {"type": "number"}}});
    let calls = [
        json!({"model": "m", "prompt": "One two three."}),
        json!({"model": "m", "prompt": "One.", "system": "Two.", "max_tokens": 7, "output_schema": schema}),
        json!({"model": "m", "messages": [{"role": "user", "content": "One"}], "tools": ["look"], "max_turns": 4}),
    ];
    for call in calls {
        let graph = built(
            json!({}),
            vec![Draft("ask", "llm_call", call.clone(), json!({}))],
            json!({"models": models, "actions": {"ask": {"name": "ask", "kind": "llm_call", "implementation": call}, "look": tool}}),
        );
        let said = planned(&graph).outline.nodes[0].cost.amount;
        assert_eq!(said, reserved(graph), "{call}");
    }
}

#[test]
fn of_several_ways_the_dearest_counts_and_of_all_ways_all() {
    let ways = |fan_out: &str| {
        let mut nodes: Vec<Draft> = ["a", "b", "c", "d"].map(|name| mock(name, 1, json!({}))).into();
        nodes[0].3 = json!({"fan_out": fan_out});
        let transitions = json!([{"from": "a", "to": "b", "condition": "input.x"}, {"from": "a", "to": "c"},
            {"from": "b", "to": "d"}, {"from": "c", "to": "d"}]);
        planned(&built(json!({"transitions": transitions}), nodes, json!({}))).outline
    };
    assert_eq!(ways("first_match").cost.worst_usd_micros.bound(), Some(300));
    // Both branches go through `d`, each by itself.
    assert_eq!(ways("all").cost.worst_usd_micros.bound(), Some(500));
    assert_eq!(ways("all").duration.expected_ms, 3_000);
}

#[test]
fn a_fan_in_of_all_waits_for_the_work_and_one_of_the_first_not_for_people() {
    let ways = |strategy: &str| {
        let sync = json!({"strategy": strategy});
        let transitions = json!([{"from": "a", "to": "b"}, {"from": "a", "to": "ask"},
            {"from": "b", "to": "c", "synchronization": sync}, {"from": "ask", "to": "c", "synchronization": {}}]);
        let gate = Draft("ask", "human_gate", json!({"title": "Well?"}), json!({}));
        let nodes = vec![
            mock("a", 1, json!({"fan_out": "all"})),
            mock("b", 3, json!({})),
            gate,
            mock("c", 1, json!({})),
        ];
        planned(&built(json!({"transitions": transitions}), nodes, json!({}))).outline
    };
    for strategy in ["all", "any"] {
        let plan = ways(strategy);
        assert_eq!(plan.duration.expected_ms, 5_000, "{strategy}");
        assert_eq!(names(&plan.critical_path.nodes), ["a", "b", "c"], "{strategy}");
        assert_eq!(plan.nodes[3].starts_ms, Some(4_000), "{strategy}");
    }
}

#[test]
fn what_is_called_is_planned_once_and_what_calls_itself_has_no_bound() {
    let call = |name, workflow: &str, keys| Draft(name, "workflow_call", json!({"workflow": workflow}), keys);
    let child = built(json!({"name": "child"}), vec![mock("work", 2, json!({}))], json!({}));
    let nodes = vec![
        call("one", "child", json!({})),
        call("two", "child", json!({"needs": ["one"]})),
        call("three", "nobody", json!({"needs": ["one"]})),
    ];
    let parent = built(json!({"name": "parent", "kind": "dag"}), nodes, json!({}));
    let callable = BTreeMap::from([("child".into(), &child), ("parent".into(), &parent)]);
    let whole = plan(&parent, &Known { callable, ..known(&Everything) });
    assert_eq!(whole.called.iter().map(|child| &*child.workflow).collect::<Vec<_>>(), ["child"]);
    assert_eq!(
        (whole.outline.duration.expected_ms, whole.outline.cost.expected_usd_micros.known),
        (4_000, 200)
    );
    assert_eq!(
        whole.missing.iter().map(|missing| (missing.need, &*missing.name)).collect::<Vec<_>>(),
        [(Need::Workflow, "nobody")]
    );

    let again = built(
        json!({"name": "again", "kind": "dag"}),
        vec![mock("work", 1, json!({})), call("again", "again", json!({}))],
        json!({}),
    );
    let callable = BTreeMap::from([("again".into(), &again)]);
    let endless = plan(&again, &Known { callable, ..known(&Everything) }).outline;
    assert_eq!(endless.calls[0].callee, Callee::Recursive);
    assert_eq!(endless.cost.worst_usd_micros.unbounded, ["`again` calls itself"]);
}

#[test]
fn what_is_missing_is_named_with_who_wants_it() {
    let call = json!({"model": "dear", "prompt": "{{ secret.WORD }}"});
    let shell = json!({"command": ["ls"], "isolation": "sandbox", "env": {"KEY": "{{ secret.WORD }}"}});
    let nodes = vec![
        Draft("ask", "llm_call", call, json!({})),
        Draft("list", "shell", shell, json!({"needs": ["ask"]})),
    ];
    let models = json!({"dear": {"name": "dear", "provider": "anthropic", "model": "dear-1"}});
    let graph = built(json!({"kind": "dag"}), nodes, json!({"models": models}));
    let bare = plan(&graph, &known(&Bare));
    let found: Vec<(Need, &str, Vec<&str>)> =
        bare.missing.iter().map(|missing| (missing.need, &*missing.name, names(&missing.nodes))).collect();
    assert_eq!(
        found,
        [
            (Need::Secret, "WORD", vec!["ask", "list"]),
            (Need::Key, "ANTHROPIC_API_KEY", vec!["ask"]),
            (Need::Price, "dear", vec!["ask"]),
            (Need::Action, "llm_call", vec!["ask"]),
            (Need::Program, "bwrap", vec!["list"]),
        ]
    );
    assert_eq!(bare.outline.cost.worst_usd_micros.unbounded, ["model `dear` has no price"]);
    assert_eq!(bare.outline.nodes[0].worst_usd_micros, None);
    let json = serde_json::to_value(&bare).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), bare, "a plan can be passed on");
}
