//! The tools that a model call offers, and what is to be said of the calls that a model makes of them: which may be
//! made, with what effect, and why not. Nothing is called here.

use std::collections::BTreeMap;

use wonder_lang::def::{Bundle, Effect, Name, ToolUse};
use wonder_lang::problem::nearest;
use wonder_lang::schema::Schema;
use wonder_lang::value::{Map, Value};

/// A tool, as far as a model and whoever judges its calls need to know it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What the model calls it by: unique among those offered.
    pub name: Name,
    pub description: Option<Name>,
    /// Of its arguments: a map.
    pub schema: Schema,
    pub effect: Effect,
    /// The MCP server that has it, and its name there.
    pub server: Option<(Name, Name)>,
}

impl Tool {
    /// A tool of a server that says nothing of it: it takes anything, and must not be called twice.
    pub fn of_server(server: &Name, name: Name) -> Tool {
        let schema = Schema::compile(&any_map()).expect("any map is a schema");
        let server = Some((server.clone(), name.clone()));
        Tool { name, description: None, schema, effect: Effect::Once, server }
    }
}

/// What a call offers, in the order written.
#[derive(Clone, Debug)]
pub enum Offer {
    Tool(Box<Tool>),
    /// What a server has is known when it is asked.
    Server {
        server: Name,
        only: Vec<Name>,
    },
}

impl Offer {
    pub(crate) fn of(tool: &ToolUse, bundle: &Bundle) -> Option<Offer> {
        let name = tool.name();
        Some(match tool {
            ToolUse::Action(action) => Offer::Tool(Box::new(of_action(&action.text, bundle)?)),
            ToolUse::Server { mcp, only } => Offer::Server { server: mcp.text.clone(), only: only.clone() },
            ToolUse::Workflow { description, requires, .. } => {
                let doc = requires.as_ref().map_or_else(any_map, |schema| schema.doc.clone());
                // A child run can be started again: what it does has effects of its own.
                Offer::Tool(Box::new(tool_of(name?, description.clone(), doc, Effect::None)?))
            }
            ToolUse::Ask { ask } => {
                let description = format!("Asks {ask}, a person, and gives back what they answer.");
                let doc = Value::from_json_str(QUESTION).expect("the schema below is JSON");
                Offer::Tool(Box::new(tool_of(name?, Some(description.into()), doc, Effect::None)?))
            }
        })
    }
}

/// The arguments of a tool that asks a person.
const QUESTION: &str = r#"{"type":"object","required":["question"],"additionalProperties":false,
    "properties":{"question":{"type":"string","description":"What to ask, in one or two sentences."}}}"#;

fn of_action(name: &Name, bundle: &Bundle) -> Option<Tool> {
    let def = bundle.actions.get(name)?;
    let doc = def.requires.as_ref().map_or_else(any_map, |schema| schema.doc.clone());
    tool_of(name.clone(), def.description.clone(), doc, def.effect())
}

fn tool_of(name: Name, description: Option<Name>, doc: Value, effect: Effect) -> Option<Tool> {
    Some(Tool { name, description, schema: Schema::compile(&doc).ok()?, effect, server: None })
}

fn any_map() -> Value {
    Value::map([("type", Value::from("object"))])
}

/// Every action of a bundle that has a name of its own, as a tool: a response to a failure may offer others.
pub(crate) fn all(bundle: &Bundle) -> BTreeMap<Name, Tool> {
    let named = bundle.actions.keys().filter(|name| !name.contains(':'));
    named.filter_map(|name| Some((name.clone(), of_action(name, bundle)?))).collect()
}

/// Names that are different from each other: a server's tool that is called as another one is gets its server's name
/// in front.
pub fn with_unique_names(tools: Vec<Tool>) -> Vec<Tool> {
    let mut counts: BTreeMap<Name, usize> = BTreeMap::new();
    tools.iter().for_each(|tool| *counts.entry(tool.name.clone()).or_default() += 1);
    let unique = tools.into_iter().map(|mut tool| {
        if let (Some((server, own)), true) = (&tool.server, counts[&tool.name] > 1) {
            tool.name = format!("{server}/{own}").into();
        }
        tool
    });
    unique.collect()
}

/// The calls of a reply, each with what is known of its tool: `effects`, the `server` and the tool's `name` there, and
/// an `error` where it cannot be made. All keys are always there, so that conditions can read them.
pub fn judged(calls: &Value, tools: &[Tool]) -> Value {
    Value::list(calls.as_list().unwrap_or_default().iter().map(|call| judge(call, tools)))
}

fn judge(call: &Value, tools: &[Tool]) -> Value {
    let mut judged: Map = call.as_map().cloned().unwrap_or_default();
    let name = call.get("tool").and_then(Value::as_str).unwrap_or_default();
    // `server/name` is the same tool, whether or not it needed the prefix.
    let is_meant = |tool: &&Tool| {
        *tool.name == *name
            || tool.server.as_ref().is_some_and(|(server, own)| {
                name.strip_prefix(&**server).and_then(|rest| rest.strip_prefix('/')) == Some(own)
            })
    };
    let tool = tools.iter().find(is_meant);
    let error = match (call.get("error").and_then(Value::as_str), tool) {
        (Some(error), _) if !error.is_empty() => format!("its arguments cannot be read: {error}"),
        (_, None) => unknown(name, tools),
        (_, Some(tool)) => {
            let arguments = call.get("arguments").cloned().unwrap_or_else(Value::empty_map);
            let checked = tool.schema.check(&arguments);
            let violations = checked.err().unwrap_or_default();
            let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
            if all.is_empty() {
                String::new()
            } else {
                format!("its arguments do not fit: {}", all.join("; "))
            }
        }
    };
    let (server, own) = tool.and_then(|tool| tool.server.clone()).unwrap_or_default();
    let effect = tool.map_or("once", |tool| tool.effect.as_str());
    judged.entry("arguments".into()).or_insert_with(Value::empty_map);
    if let Some(tool) = tool {
        judged.insert("tool".into(), Value::String(tool.name.clone()));
    }
    judged.insert("effects".into(), Value::from(effect));
    judged.insert("server".into(), Value::String(server));
    judged.insert("name".into(), Value::String(own));
    judged.insert("error".into(), Value::from(error));
    Value::from(judged)
}

fn unknown(name: &str, tools: &[Tool]) -> String {
    let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("there is no tool `{name}`; did you mean `{near}`?"),
        None => format!("there is no tool `{name}`; there are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, server: Option<(&str, &str)>) -> Tool {
        let doc = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}}"#;
        let schema = Schema::compile(&Value::from_json_str(doc).unwrap()).unwrap();
        let server = server.map(|(server, own)| (server.into(), own.into()));
        Tool { name: name.into(), description: None, schema, effect: Effect::None, server }
    }

    fn judge_text(call: &str, tools: &[Tool]) -> String {
        let calls = Value::from_json_str(&format!("[{call}]")).unwrap();
        let judged = judged(&calls, tools);
        let call = judged.as_list().unwrap()[0].clone();
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or("absent").to_owned();
        format!("{}|{}|{}|{}", text("tool"), text("server"), text("effects"), text("error"))
    }

    #[test]
    fn a_call_says_what_it_may_do_or_why_it_cannot() {
        let tools = [tool("read", None), tool("files/list", Some(("files", "list")))];
        let said = |call: &str| judge_text(call, &tools);
        assert_eq!(said(r#"{"tool":"read","arguments":{"path":"a"}}"#), "read||none|");
        assert_eq!(said(r#"{"tool":"files/list","arguments":{"path":"a"}}"#), "files/list|files|none|");
        assert!(
            said(r#"{"tool":"reed","arguments":{}}"#)
                .ends_with("there is no tool `reed`; did you mean `read`?")
        );
        assert!(said(r#"{"tool":"zzz"}"#).contains("there are: read, files/list"));
        let wrong = said(r#"{"tool":"read","arguments":{}}"#);
        assert!(wrong.contains("its arguments do not fit") && wrong.contains("path"), "{wrong}");
        let raw = said(r#"{"tool":"read","raw":"{","error":"EOF"}"#);
        assert!(raw.contains("cannot be read: EOF"), "{raw}");
    }

    #[test]
    fn tools_of_two_servers_that_are_called_alike_get_their_server_in_front() {
        let named = |tools: Vec<Tool>| -> Vec<Name> {
            with_unique_names(tools).into_iter().map(|tool| tool.name).collect()
        };
        let both = vec![
            tool("read", Some(("a", "read"))),
            tool("read", Some(("b", "read"))),
            tool("list", Some(("a", "list"))),
        ];
        assert_eq!(named(both), ["a/read".into(), "b/read".into(), Name::from("list")]);
        let with_own = vec![tool("read", None), tool("read", Some(("b", "read")))];
        assert_eq!(
            named(with_own),
            ["read".into(), Name::from("b/read")],
            "what the file names keeps its name"
        );
    }
}
