//! What a worker finds in its task: texts compiled, names resolved, the secrets to ask for, and what may
//! happen in the world.

use std::sync::Arc;

use serde_json::json;

use wonder_core::command::Overrides;
use wonder_core::def::Effect;
use wonder_core::graph::tools::Offer;
use wonder_core::graph::{Graph, Task, Work};
use wonder_core::task::{ActionCall, Ask, TaskMachine};
use wonder_core::value::Value;

fn tool(name: &str, tool: &str, keys: serde_json::Value) -> serde_json::Value {
    let mut whole =
        json!({"name": name, "kind": "mcp_tool", "implementation": {"server": "files", "tool": tool}});
    whole.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    whole
}

/// The task of a node that makes this model call, in a workflow with tools, prompts and profiles.
fn task(call: serde_json::Value, on_error: serde_json::Value) -> Arc<Task> {
    let send = json!({"requires": {"type": "object", "required": ["to"]}, "description": "Sends"});
    let node = json!({"ref": "n", "task": "n", "inline": "action", "input_mapping": {"q": "input.q", "tone": "'kind'"}});
    let bundle = json!({
        "workflow": {"name": "test", "nodes": [node], "on_error": on_error},
        "tasks": {"n": {"name": "n", "steps": [{"ref": "only", "action": "n"}]}},
        "actions": {
            "n": {"name": "n", "kind": "llm_call", "implementation": call},
            "read": tool("read", "read", json!({"effects": "none"})),
            "keep": tool("keep", "keep", json!({"effects": "idempotent"})),
            "send": tool("send", "send", send),
        },
        "models": {
            "smart": {"name": "smart", "model": "big", "cheaper": "fast", "fallbacks": ["local"]},
            "fast": {"name": "fast", "model": "small"},
            "local": {"name": "local", "model": "own"},
        },
        "prompts": {"ask": {
            "name": "ask", "system": "Be {{ tone }}.", "template": "{{ q }} {{ secret.SALT }}",
            "examples": [1],
        }},
    });
    let (graph, _) = Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())).unwrap();
    graph.tasks["n"].clone()
}

fn call(task: &Arc<Task>, overrides: Overrides) -> Box<ActionCall> {
    let input = Value::map([("q", Value::str("why?")), ("tone", Value::str("kind"))]);
    match TaskMachine::start(task.clone(), input, Value::Null, overrides).ask() {
        Ask::Perform(call) => call,
        Ask::Done(outcome) => panic!("{outcome:?}"),
    }
}

fn tools(call: &ActionCall) -> Vec<String> {
    let offers = call.offers().into_iter();
    let named = offers.map(|offer| match offer {
        Offer::Tool(tool) => tool.name.to_string(),
        Offer::Server { server, .. } => format!("all of {server}"),
    });
    named.collect()
}

#[test]
fn a_model_call_carries_everything_its_names_stand_for() {
    let task = task(json!({"model": "smart", "prompt_spec": "ask", "tools": ["read"]}), json!([]));
    let plain = call(&task, Overrides::default());
    let Some(Work::LlmCall(model)) = &plain.action.work else { panic!("{:?}", plain.action.work) };
    let scope = &mut plain.scope.clone();
    scope.set_path(&["secret".into(), "SALT".into()], Value::str("s"));
    assert_eq!(model.system.as_ref().unwrap().render(scope).unwrap(), "Be kind.");
    assert_eq!(model.prompt.as_ref().unwrap().render(scope).unwrap(), "why? s");
    assert_eq!(model.prompt_spec.as_ref().map(|spec| spec.examples.len()), Some(1));
    assert_eq!(plain.action.secrets.names.iter().map(|name| &**name).collect::<Vec<_>>(), ["SALT"]);
    assert_eq!(plain.profile().map(|(name, profile)| (&**name, &*profile.model)), Some(("smart", "big")));
    assert_eq!(tools(&plain), ["read"]);

    let downgraded = call(&task, Overrides { downgrades: 2, ..Overrides::default() });
    assert_eq!(downgraded.profile().map(|(name, _)| &**name), Some("fast"), "as far as it goes");
    let changed: Overrides = Overrides {
        model: Some("local".into()),
        tools: Some(vec!["send".into(), "keep".into()]),
        ..Overrides::default()
    };
    let changed = call(&task, changed);
    assert_eq!(changed.profile().map(|(name, _)| &**name), Some("local"));
    assert_eq!(tools(&changed), ["send", "keep"]);
}

#[test]
fn a_call_that_offers_tools_has_no_effect_for_it_calls_none() {
    let call = json!({"model": "fast", "prompt": "{{ q }}", "tools": ["keep", "send", {"mcp": "files"}]});
    let task = task(call, json!([]));
    assert_eq!(task.effect, Effect::None);
    assert_eq!(tools(&self::call(&task, Overrides::default())), ["keep", "send", "all of files"]);
}

#[test]
fn a_schema_that_forbids_other_keys_does_not_forbid_the_feedback_that_is_always_there() {
    let requires = json!({"type": "object", "required": ["q"], "additionalProperties": false,
        "properties": {"q": {"type": "string"}}});
    let node = json!({"ref": "n", "task": "n", "inline": "action", "input_mapping": {"q": "input.q"}});
    let bundle = json!({
        "workflow": {"name": "test", "nodes": [node]},
        "tasks": {"n": {"name": "n", "steps": [{"ref": "only", "action": "n"}]}},
        "actions": {"n": tool("n", "n", json!({"requires": requires}))},
    });
    let (graph, _) = Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())).unwrap();
    let start = |input: Value, feedback: Value| {
        TaskMachine::start(graph.tasks["n"].clone(), input, feedback, Overrides::default()).ask()
    };
    let good = || Value::map([("q", Value::str("why?"))]);
    assert!(matches!(start(good(), Value::Null), Ask::Perform(_)));
    assert!(matches!(start(good(), Value::str("shorter")), Ask::Perform(_)));
    let more = Value::map([("q", Value::str("why?")), ("more", Value::Null)]);
    let Ask::Done(outcome) = start(more, Value::Null) else { panic!("it is performed") };
    let told = format!("{outcome:?}");
    assert!(told.contains("'more' was unexpected") && !told.contains("feedback"), "{told}");
}
