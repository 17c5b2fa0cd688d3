//! An `agent` written out: the node becomes a call of a child workflow, and the child is made here, as the document that
//! somebody could have written by hand. Nothing behind the reader knows of agents.
//!
//! ```text
//! begin → listen → think ─ calls → admit → [approve] → the tool ┐      (one branch a call, joined at `listen`)
//!           ↑                └ none → [repair] → check → answered │
//!           └───────────────────────────────────────────────────┘
//! ```
//!
//! It only rearranges text: what the author wrote keeps its place, so that a mistake in it is shown where it is.

use std::borrow::Cow;

use wonder_core::def::{ToolUse, as_key};
use wonder_core::limits::{AGENT_TURNS_MAX, TOOL_RESULT_BYTES_MAX};

use super::Build;
use crate::place::Span;
use crate::tree::{Data, Entries, Entry, Node};

/// How long a turn may take if nobody says.
const TURN_TIMEOUT: &str = "10m";
/// The child has no time limit of its own: its parent has one.
const TIMEOUT: &str = "365d";
/// Nodes of the child; a tool that is called as one of them is gets another node.
const OWN: [&str; 13] = [
    "begin",
    "listen",
    "think",
    "admit",
    "approve",
    "refused",
    "failed",
    "repair",
    "check",
    "compact",
    "answered",
    "out_of_turns",
    "told",
];

/// What the conversation holds about a call: whether it was approved with other arguments.
const EDITED: &str =
    "has(state.decision) && has(state.decision.arguments) ? state.decision.arguments : call.arguments";

/// What a person is asked to decide about a call.
const APPROVAL: &str = r#"{"type":"object","required":["action"],"additionalProperties":false,"properties":{
    "action":{"enum":["approve","refuse","always"]},"arguments":{"type":"object"},"reason":{"type":"string"}}}"#;
const ANSWER: &str = r#"{"type":"object","required":["answer"],"properties":{"answer":{"type":"string"}}}"#;

const SUMMARISE: &str = "You summarise the beginning of a conversation between a model, its tools and people, so that it \
can go on from the summary alone. Keep what was asked for, what was found out, what was done and with what effect, what \
was decided, and what is still open. Leave out what is of no use any more.";

/// A child workflow, and the node of its parent that calls it.
pub(super) struct Agent<'s> {
    pub child: Node<'s>,
    pub caller: Node<'s>,
}

impl Build {
    /// The node with its `agent` written out; None if it has none.
    pub(super) fn agent<'s>(
        &mut self,
        workflow: &str,
        reference: &str,
        node: &Node<'s>,
    ) -> Option<Agent<'s>> {
        let entry = node.entry("agent")?;
        let written = Written { agent: &entry.value, span: entry.key_span };
        let tools = self.tools(&entry.value);
        let name = format!("{workflow}.{reference}");
        let child = written.child(&name, reference, workflow, &tools);
        let mut caller = node.clone();
        if let Data::Map(entries) = &mut caller.data {
            for own in entries.list.iter_mut().filter(|own| own.key == "agent") {
                own.key = "workflow_call".into();
                own.value = written.call(&name);
            }
        }
        Some(Agent { child, caller })
    }
}

/// What the author wrote, and where.
struct Written<'n, 's> {
    agent: &'n Node<'s>,
    span: Span,
}

impl<'s> Written<'_, 's> {
    fn text(&self, text: impl Into<String>) -> Node<'s> {
        Node { data: Data::Text(Cow::Owned(text.into())), span: self.span }
    }

    fn int(&self, number: i64) -> Node<'s> {
        Node { data: Data::Int(number), span: self.span }
    }

    fn list(&self, items: Vec<Node<'s>>) -> Node<'s> {
        Node { data: Data::List(items), span: self.span }
    }

    fn map<K: Into<String>>(&self, entries: impl IntoIterator<Item = (K, Node<'s>)>) -> Node<'s> {
        let entry =
            |(key, value): (K, Node<'s>)| Entry { key: Cow::Owned(key.into()), key_span: self.span, value };
        let list = entries.into_iter().map(entry).collect();
        Node { data: Data::Map(Entries { list, partial: false }), span: self.span }
    }

    /// Texts by key: expressions, mostly.
    fn texts<const N: usize>(&self, entries: [(&str, &str); N]) -> Node<'s> {
        self.map(entries.map(|(key, text)| (key, self.text(text))))
    }

    fn json(&self, text: &str) -> Node<'s> {
        let value = wonder_core::value::Value::from_json_str(text).expect("what stands above is JSON");
        self.value(&value)
    }

    fn value(&self, value: &wonder_core::value::Value) -> Node<'s> {
        use wonder_core::value::Value;
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(flag) => Data::Bool(*flag),
            Value::Int(number) => Data::Int(*number),
            Value::Float(number) => Data::Float(*number),
            Value::String(text) => Data::Text(Cow::Owned(text.to_string())),
            Value::List(items) => return self.list(items.iter().map(|item| self.value(item)).collect()),
            Value::Map(map) => {
                return self.map(map.iter().map(|(key, value)| (key.to_string(), self.value(value))));
            }
        };
        Node { data, span: self.span }
    }

    fn own(&self, key: &str) -> Option<Node<'s>> {
        self.agent.get(key).filter(|node| !node.is_bad()).cloned()
    }

    fn count(&self, key: &str) -> Option<i64> {
        match self.agent.get(key)?.data {
            Data::Int(number) => Some(number),
            _ => None,
        }
    }

    /// What the node of the parent does: the texts of the agent are filled in there, where they see what they read.
    fn call(&self, name: &str) -> Node<'s> {
        let given =
            ["system", "prompt", "messages"].into_iter().filter_map(|key| Some((key, self.own(key)?)));
        let with = self.map(given.collect::<Vec<_>>());
        self.map([("workflow", self.text(name)), ("with", with)])
    }

    fn child(&self, name: &str, reference: &str, workflow: &str, tools: &[ToolUse]) -> Node<'s> {
        let mut nodes = vec![
            ("begin".to_owned(), self.begin()),
            ("listen".to_owned(), self.listen()),
            ("think".to_owned(), self.think(!tools.is_empty())),
        ];
        if !tools.is_empty() {
            nodes.push(("admit".to_owned(), self.admit(tools)));
            if self.may_ask() {
                nodes.push(("approve".to_owned(), self.approve(tools)));
            }
            tools.iter().for_each(|tool| self.tool(tool, &mut nodes));
            nodes.push(("refused".to_owned(), self.refused()));
            nodes.push(("failed".to_owned(), self.failed()));
        }
        if self.agent.get("output_schema").is_some() {
            if self.repairs() > 0 {
                nodes.push(("repair".to_owned(), self.repair()));
            }
            nodes.push(("check".to_owned(), self.check()));
        }
        if self.agent.get("compact").is_some() {
            nodes.push(("compact".to_owned(), self.compact()));
        }
        for (end, stopped) in [("answered", "'answer'"), ("out_of_turns", "'max_turns'"), ("told", "'told'")]
        {
            let set = self.map([("set", self.texts([("stopped", stopped)]))]);
            nodes.push((end.to_owned(), self.map([("update_context", set)])));
        }
        let output = self.texts([
            ("text", "state.text"),
            ("json", "state.json"),
            ("turns", "state.turns"),
            ("usage", "state.usage"),
            ("stopped", "state.stopped"),
        ]);
        self.map([
            ("name", self.text(name)),
            ("description", self.text(format!("The agent `{reference}` of `{workflow}`, written out."))),
            ("timeout", self.text(TIMEOUT)),
            ("nodes", self.map(nodes)),
            ("output_mapping", output),
        ])
    }

    fn begin(&self) -> Node<'s> {
        let messages = match self.agent.get("messages") {
            Some(_) => self.text("input.messages"),
            None => self.list(vec![self.texts([("role", "'user'"), ("content", "input.prompt")])]),
        };
        let set = self.map([
            ("messages", messages),
            ("results", self.list(Vec::new())),
            ("allowed", self.list(Vec::new())),
            ("starts", self.list(Vec::new())),
            ("turns", self.int(0)),
            ("tokens", self.int(0)),
            ("usage", self.map(USAGE.map(|key| (key, self.int(0))))),
            ("text", self.text("''")),
            ("json", self.text("null")),
        ]);
        let next = self.list(vec![self.texts([("to", "listen")])]);
        self.map([("update_context", self.map([("set", set)])), ("next", next)])
    }

    /// Where branches are joined, and what somebody told the agent is heard.
    fn listen(&self) -> Node<'s> {
        let heard = "state.results.map(r, r.message) + result.filter(t, get(t, 'text', '') != '')\
                     .map(t, {'role': 'user', 'content': t.text})";
        let allowed = "state.results.filter(r, r.always).map(r, r.tool)";
        let output = self.map([
            ("messages[*]", self.text(heard)),
            ("allowed[*]", self.text(allowed)),
            ("results", self.list(Vec::new())),
        ]);
        let mut next =
            vec![self.texts([("to", "told"), ("when", "result.exists(t, get(t, 'stop', false) == true)")])];
        if let Some(compact) = self.agent.get("compact") {
            let above = number(compact, "above_tokens").unwrap_or(i64::MAX);
            let can = format!("state.tokens > {above} && {}.size() > 0", self.cuts());
            next.push(self.map([("to", self.text("compact")), ("when", self.text(can))]));
        }
        let turns = self.count("max_turns").unwrap_or(AGENT_TURNS_MAX.into());
        next.push(self.map([("to", self.text("think")), ("max_iterations", self.int(turns))]));
        next.push(self.texts([("to", "out_of_turns")]));
        self.map([
            ("wait_event", self.texts([("event", "tell"), ("take", "kept")])),
            ("output_mapping", output),
            ("next", self.list(next)),
        ])
    }

    fn think(&self, has_tools: bool) -> Node<'s> {
        let mut call = vec![("messages", self.text("{{ state.messages }}"))];
        for key in ["model", "tools", "max_tokens", "temperature", "reasoning", "output_schema"] {
            call.extend(self.own(key).map(|value| (key, value)));
        }
        if self.agent.get("system").is_some() {
            call.push(("system", self.text("{{ input.system }}")));
        }
        call.push(("timeout", self.own("timeout").unwrap_or_else(|| self.text(TURN_TIMEOUT))));
        let is_checked = self.agent.get("output_schema").is_some();
        if is_checked {
            call.push(("on_violation", self.text("return")));
        }
        let usage = USAGE.map(|key| (key, self.text(added(key))));
        let mut output = vec![
            ("messages[]", self.text("result.message")),
            ("starts[]", self.text("size(state.messages)")),
            ("turns", self.text("state.turns + 1")),
            (
                "tokens",
                self.text("get(result, 'usage.input_tokens', 0) + get(result, 'usage.output_tokens', 0)"),
            ),
            ("usage", self.map(usage)),
            ("text", self.text("result.text")),
            ("json", self.text("result.json")),
        ];
        let mut next = Vec::new();
        if has_tools {
            let mut each = vec![("items", self.text("result.tool_calls")), ("as", self.text("call"))];
            each.extend(self.own("max_parallel").map(|most| ("max_parallel", most)));
            next.push(self.map([
                ("to", self.text("admit")),
                ("when", self.text("size(result.tool_calls) > 0")),
                ("foreach", self.map(each)),
            ]));
        }
        if is_checked {
            output.push(("violations", self.text("result.violations")));
            if self.repairs() > 0 {
                next.push(self.map([
                    ("to", self.text("repair")),
                    ("when", self.text("size(result.violations) > 0")),
                    ("max_iterations", self.int(self.repairs())),
                ]));
            }
        }
        next.push(self.texts([("to", if is_checked { "check" } else { "answered" })]));
        self.map([
            ("llm_call", self.map(call)),
            ("output_mapping", self.map(output)),
            ("next", self.list(next)),
        ])
    }

    fn repairs(&self) -> i64 {
        self.count("repair").unwrap_or(2)
    }

    /// Whether a person has to be asked, then the way to the tool.
    fn admit(&self, tools: &[ToolUse]) -> Node<'s> {
        let mut next = vec![self.texts([("to", "refused"), ("when", "get(call, 'error', '') != ''")])];
        let mut set = Vec::new();
        if self.may_ask() {
            set.push(("ask", self.text(format!("!(call.tool in state.allowed) && ({})", self.asks()))));
            next.push(self.texts([("to", "approve"), ("when", "state.ask")]));
        } else {
            set.push(("ask", self.text("false")));
        }
        next.extend(self.ways(tools));
        let update = self.map([("set", self.map(set))]);
        self.map([("update_context", update), ("next", self.list(next))])
    }

    fn approve(&self, tools: &[ToolUse]) -> Node<'s> {
        let body =
            "{{ call.tool }} {{ call.arguments | tojson }}{% if state.text %}\n\n{{ state.text }}{% endif %}";
        let gate = self.map([
            ("title", self.text("Run {{ call.tool }}?")),
            ("body", self.text(body)),
            ("form", self.json(APPROVAL)),
        ]);
        let mut next = vec![self.texts([("to", "refused"), ("when", "result.action == 'refuse'")])];
        next.extend(self.ways(tools));
        self.map([
            ("human_gate", gate),
            ("output_mapping", self.texts([("decision", "result")])),
            ("next", self.list(next)),
        ])
    }

    /// From a call to the node that makes it; what no node makes is refused.
    fn ways(&self, tools: &[ToolUse]) -> Vec<Node<'s>> {
        let mut ways = Vec::new();
        for tool in tools {
            let node = node_of(tool);
            match tool {
                ToolUse::Server { mcp, .. } => {
                    let of = format!("get(call, 'server', '') == {}", quoted(&mcp.text));
                    let again = format!("{of} && get(call, 'effects', 'once') != 'once'");
                    ways.push(self.texts([("to", &*repeatable(&node)), ("when", &*again)]));
                    ways.push(self.texts([("to", &*node), ("when", &*of)]));
                }
                _ => {
                    let name = tool.name().unwrap_or_default();
                    let when = format!("call.tool == {}", quoted(&name));
                    ways.push(self.texts([("to", &*node), ("when", &*when)]));
                }
            }
        }
        ways.push(self.texts([("to", "refused")]));
        ways
    }

    fn tool(&self, tool: &ToolUse, nodes: &mut Vec<(String, Node<'s>)>) {
        let node = node_of(tool);
        match tool {
            ToolUse::Action(name) => {
                let large = i64::try_from(TOOL_RESULT_BYTES_MAX).unwrap_or(i64::MAX);
                let step = self.map([
                    ("ref", self.text("call")),
                    ("action", self.text(&*name.text)),
                    ("input_mapping", self.text("input")),
                    ("artifact_above", self.int(large)),
                ]);
                let work = [("steps", self.list(vec![step])), ("input_mapping", self.text(EDITED))];
                nodes.push((node, self.called(work, "result")));
            }
            ToolUse::Workflow { workflow, .. } => {
                let call = self.texts([("workflow", &*workflow.text)]);
                let work = [("workflow_call", call), ("input_mapping", self.text(EDITED))];
                nodes.push((node, self.called(work, "result")));
            }
            ToolUse::Ask { ask } => {
                let gate = self.map([
                    ("title", self.text("{{ call.arguments.question }}")),
                    ("form", self.json(ANSWER)),
                    ("assignees", self.list(vec![self.text(&*ask.text)])),
                ]);
                nodes.push((node, self.called([("human_gate", gate)], "result.answer")));
            }
            ToolUse::Server { mcp, .. } => {
                // What may be repeated is another node, for a node has one effect.
                for (node, effects) in [(repeatable(&node), "idempotent"), (node, "once")] {
                    let call = self.texts([
                        ("server", &*mcp.text),
                        ("tool", "{{ name }}"),
                        ("arguments", "{{ arguments }}"),
                        ("effects", effects),
                        ("timeout", TURN_TIMEOUT),
                    ]);
                    let input = self.texts([("name", "call.name"), ("arguments", EDITED)]);
                    nodes.push((node, self.called([("mcp_tool", call), ("input_mapping", input)], "result")));
                }
            }
        }
    }

    /// A node that makes a call: what it gives goes to the model, and so does a failure.
    fn called<const N: usize>(&self, work: [(&str, Node<'s>); N], content: &str) -> Node<'s> {
        let output = self.texts([("message", &*result_message(content, "false"))]);
        let next = self.list(vec![self.joined(), self.texts([("to", "failed"), ("on", "failure")])]);
        let rest = [("output_mapping", output), ("next", next)];
        self.map(work.into_iter().chain(rest))
    }

    fn joined(&self) -> Node<'s> {
        let source = "{'message': _branch.output.message, 'tool': call.tool, \
                      'always': has(state.decision) && state.decision.action == 'always'}";
        let source = if self.may_ask() {
            source
        } else {
            "{'message': _branch.output.message, 'tool': call.tool, 'always': false}"
        };
        let merge = self.texts([("source", source), ("target", "state.results"), ("strategy", "append")]);
        let join = self.map([("strategy", self.text("all")), ("merge", merge)]);
        self.map([("to", self.text("listen")), ("synchronization", join)])
    }

    /// The model is told why its call was not made.
    fn refused(&self) -> Node<'s> {
        let by_person =
            "'a person refused this call' + (has(state.decision.reason) ? ': ' + state.decision.reason : '')";
        let unknown = "get(call, 'error', '') != '' ? call.error : 'there is no tool ' + call.tool";
        let why = match self.may_ask() {
            true => format!(
                "has(state.decision) && state.decision.action == 'refuse' ? {by_person} : ({unknown})"
            ),
            false => unknown.to_owned(),
        };
        self.told_model(&why)
    }

    fn failed(&self) -> Node<'s> {
        let why = "_last_error.message + (get(_last_error, 'details', null) == null ? '' \
                   : '\\n' + to_json(_last_error.details))";
        self.told_model(why)
    }

    fn told_model(&self, why: &str) -> Node<'s> {
        let set = self.texts([("message", &*result_message(why, "true"))]);
        let next = self.list(vec![self.joined()]);
        self.map([("update_context", self.map([("set", set)])), ("next", next)])
    }

    fn repair(&self) -> Node<'s> {
        let content = "'That answer does not fit what was asked for: ' + state.violations.join('; ') + \
                       '. Answer again, with JSON that fits, and nothing else.'";
        let message = self.texts([("role", "'user'"), ("content", content)]);
        let set = self.map([("messages[]", message)]);
        let next = self.list(vec![self.texts([("to", "listen")])]);
        self.map([("update_context", self.map([("set", set)])), ("next", next)])
    }

    fn check(&self) -> Node<'s> {
        let schema = self.own("output_schema").unwrap_or_else(|| self.map::<String>([]));
        let assert = self.map([
            ("value", self.text("state.json")),
            ("schema", schema),
            ("message", self.text("the agent's answer does not fit: {{ state.violations | join('; ') }}")),
        ]);
        let next = self.list(vec![self.texts([("to", "answered")])]);
        self.map([("assert", assert), ("next", next)])
    }

    /// Where the conversation may be cut: before a turn, with as many messages behind it as are to be kept.
    fn cuts(&self) -> String {
        let keep = self.agent.get("compact").and_then(|compact| number(compact, "keep_last")).unwrap_or(8);
        format!("state.starts.filter(s, s > 1 && s <= size(state.messages) - {keep})")
    }

    fn compact(&self) -> Node<'s> {
        let model = self.agent.get("compact").and_then(|compact| compact.get("model").cloned());
        let mut call = vec![
            ("system", self.text(SUMMARISE)),
            ("prompt", self.text("The conversation so far, as JSON:\n\n{{ messages | tojson }}")),
            ("timeout", self.own("timeout").unwrap_or_else(|| self.text(TURN_TIMEOUT))),
        ];
        call.extend(model.or_else(|| self.own("model")).map(|model| ("model", model)));
        let cut = format!("last({})", self.cuts());
        let input = self.map([("messages", self.text(format!("slice(state.messages, 0, {cut})")))]);
        let messages = format!(
            "[state.messages[0], {{'role': 'user', 'content': 'What happened so far, in short: ' + result.text}}] \
             + slice(state.messages, {cut})"
        );
        let starts = format!("state.starts.filter(t, t >= {cut}).map(t, t - {cut} + 2)");
        let usage = USAGE.map(|key| (key, self.text(added(key))));
        let output = self.map([
            ("messages", self.text(messages)),
            ("starts", self.text(starts)),
            ("tokens", self.int(0)),
            ("usage", self.map(usage)),
        ]);
        let next = self.list(vec![self.texts([("to", "listen")])]);
        self.map([
            ("llm_call", self.map(call)),
            ("input_mapping", input),
            ("output_mapping", output),
            ("next", next),
        ])
    }

    /// Whether some call may need a person's word.
    fn may_ask(&self) -> bool {
        let policies = self.agent.get("approve").map_or(&[][..], Node::entries);
        let says_default = policies.iter().any(|entry| entry.key == "default");
        !says_default || policies.iter().any(|entry| entry.value.text() != Some("never"))
    }

    /// The policies as one condition: the first that is about the tool counts, else `default`, else `auto`.
    fn asks(&self) -> String {
        let policies = self.agent.get("approve").map_or(&[][..], Node::entries);
        let default = policies.iter().find(|entry| entry.key == "default");
        let mut condition = policy(default.and_then(|entry| entry.value.text()).unwrap_or("auto"));
        for entry in policies.iter().rev().filter(|entry| entry.key != "default") {
            let said = policy(entry.value.text().unwrap_or("auto"));
            let name = quoted(&entry.key);
            let is_it = match entry.key.split_once('/') {
                Some((server, tool)) => format!(
                    "call.tool == {name} || (get(call, 'server', '') == {} && get(call, 'name', '') == {})",
                    quoted(server),
                    quoted(tool)
                ),
                None => format!("call.tool == {name} || get(call, 'server', '') == {name}"),
            };
            condition = format!("({is_it}) ? ({said}) : ({condition})");
        }
        condition
    }
}

/// The tokens that are counted over all turns.
const USAGE: [&str; 4] = ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"];

fn added(key: &str) -> String {
    format!("state.usage.{key} + get(result, 'usage.{key}', 0)")
}

/// One policy as a condition; an expression sees `tool` and `arguments`.
fn policy(word: &str) -> String {
    match word {
        "never" => "false".to_owned(),
        "always" => "true".to_owned(),
        "auto" => "get(call, 'effects', 'once') == 'once'".to_owned(),
        expr => format!("[call.tool].exists(tool, [call.arguments].exists(arguments, ({expr})))"),
    }
}

/// The message that answers a call.
fn result_message(content: &str, is_error: &str) -> String {
    format!(
        "{{'role': 'tool', 'content': [{{'type': 'tool_result', 'id': call.id, 'tool': call.tool, \
         'content': {content}, 'is_error': {is_error}}}]}}"
    )
}

/// The ref of the node that makes the calls of a tool.
fn node_of(tool: &ToolUse) -> String {
    let name = tool.name().unwrap_or_else(|| tool.text().text.clone());
    let key = as_key(&name);
    let is_taken =
        OWN.contains(&key.as_str()) || !key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_taken { format!("tool_{key}") } else { key }
}

fn repeatable(node: &str) -> String {
    format!("{node}_repeatable")
}

/// A text as a literal of an expression.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn number(map: &Node<'_>, key: &str) -> Option<i64> {
    match map.get(key)?.data {
        Data::Int(number) => Some(number),
        _ => None,
    }
}
