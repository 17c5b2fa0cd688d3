//! A scenario file, read: every mistake says its line.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::GateKind;
use wonder_core::value::Value;

use super::{Case, Expect, Scenario, Trace};
use crate::inputs::{GateFilter, Operation, OutsideInput, ScriptedInput, When};
use crate::outcomes::OnCancel;
use crate::script::{Entry, Script};
use crate::world::{Definition, Library, start_of};
use crate::yaml::{self, Node, Read};

pub(super) fn scenario(path: &Path, text: String) -> Result<Scenario, String> {
    let cases = file(path, &text).map_err(|mistake| format!("{}:{mistake}", path.display()))?;
    Ok(Scenario { path: path.to_owned(), text, cases })
}

fn file(path: &Path, text: &str) -> Read<Vec<Case>> {
    let root = yaml::parse(text)?;
    root.map(&["workflow", "inline", "start", "cases"])?;
    let shared = workflows(&root, path)?;
    let start = root.get("start").map(Node::text).transpose()?;
    let cases = root.get("cases").ok_or_else(|| root.mark.mistake("`cases` is missing"))?;
    cases.items().into_iter().map(|node| case(node, path, shared.as_ref(), start.as_deref())).collect()
}

/// Workflows by name, and the one that starts if nobody says.
pub type Workflows = (Library, Name);

fn workflows(node: &Node, path: &Path) -> Read<Option<Workflows>> {
    let (at, source, file) = match (node.get("workflow"), node.get("inline")) {
        (Some(at), None) => {
            let file = path.parent().unwrap_or(Path::new(".")).join(at.text()?);
            let source = std::fs::read_to_string(&file)
                .map_err(|error| at.mark.mistake(format!("{}: {error}", file.display())))?;
            (at, source, file.display().to_string())
        }
        (None, Some(at)) => (at, at.text()?, format!("{} (inline)", path.display())),
        (None, None) => return Ok(None),
        (Some(_), Some(at)) => return Err(at.mark.mistake("either `workflow` or `inline`")),
    };
    match library(&source, &file) {
        Ok(workflows) => Ok(Some(workflows)),
        Err(message) => Err(at.mark.mistake(format!("the workflow is not valid:\n{message}"))),
    }
}

/// Reads workflows from text: all of them by name, and the first.
pub fn library(source: &str, file: &str) -> Result<Workflows, String> {
    let reading = wonder_spec::read_everything(source, file).map_err(|problems| problems.render(false))?;
    let first = reading.graphs.first().map(|graph| graph.name.clone());
    let both = reading.bundles.into_iter().zip(reading.graphs);
    let library = both.map(|(bundle, graph)| (graph.name.clone(), Definition { bundle, graph })).collect();
    Ok((library, first.ok_or("no workflow in it")?))
}

fn case(node: &Node, path: &Path, shared: Option<&Workflows>, start: Option<&str>) -> Read<Case> {
    node.map(&[
        "name",
        "workflow",
        "inline",
        "start",
        "input",
        "seed",
        "queued",
        "timeout",
        "max_parallel",
        "limits",
        "on_cancel",
        "script",
        "inputs",
        "expect",
    ])?;
    let own = workflows(node, path)?;
    let (library, first) = own
        .as_ref()
        .or(shared)
        .ok_or_else(|| node.mark.mistake("neither the case nor the file has a workflow"))?;
    let named = node.get("start").map(Node::text).transpose()?;
    let named = named.or_else(|| start.filter(|_| own.is_none()).map(str::to_owned));
    let workflow = named.map_or_else(|| first.clone(), Name::from);
    let seed = node.get("seed").map(Node::number).transpose()?.unwrap_or(0);
    let mut start = start_of(node.get("input").map_or_else(Value::empty_map, Node::value), seed);
    start.queued = node.get("queued").map(Node::flag).transpose()?.unwrap_or(false);
    start.timeout_ms = node.get("timeout").map(Node::duration_ms).transpose()?;
    start.max_parallel = node.get("max_parallel").map(Node::number).transpose()?.map(|n| n as u32);
    if let Some(at) = node.get("limits") {
        start.limits = serde_json::from_value(at.value().to_json())
            .map_err(|error| at.mark.mistake(error.to_string()))?;
    }
    let mut script = node.get("script").map(script).transpose()?.unwrap_or_default();
    if let Some(at) = node.get("on_cancel") {
        script.on_cancel = on_cancel(at)?;
    }
    let inputs = node
        .get("inputs")
        .map(|at| at.items().into_iter().map(scripted_input).collect::<Read<Vec<ScriptedInput>>>());
    let expect = node.get("expect").ok_or_else(|| node.mark.mistake("`expect` is missing"))?;
    Ok(Case {
        name: node.get("name").ok_or_else(|| node.mark.mistake("`name` is missing"))?.text()?,
        library: library.clone(),
        workflow,
        start,
        script: Arc::new(script),
        inputs: inputs.transpose()?.unwrap_or_default(),
        mark: expect.mark,
        expect: expectations(expect)?,
    })
}

fn script(node: &Node) -> Read<Script> {
    let mut nodes = BTreeMap::new();
    for at in node.entries()? {
        let entries = at.value.items().into_iter().map(entry).collect::<Read<Vec<Entry>>>()?;
        nodes.insert(at.key.clone(), entries);
    }
    Ok(Script { nodes, ..Script::default() })
}

fn entry(node: &Node) -> Read<Entry> {
    let mut entry = Entry::default();
    let known = [
        "run",
        "branch",
        "item",
        "attempt",
        "step",
        "result",
        "error",
        "delay",
        "usage",
        "task_error",
        "not_taken",
        "on_cancel",
    ];
    for at in node.map(&known)? {
        let value = &at.value;
        match at.key.as_str() {
            "run" => entry.run = Some(value.text()?),
            "branch" => entry.branch = Some(value.number()? as u32),
            "item" => entry.item = Some(value.value()),
            "attempt" => entry.attempt = Some(value.number()? as u32),
            "step" => entry.step = Some(value.text()?.into()),
            "result" => entry.result = Some(value.value()),
            "error" => entry.error = Some(failure(value)?),
            "delay" => entry.delay_ms = value.duration_ms()?,
            "usage" => entry.usage = usage(value)?,
            "task_error" => entry.task_error = Some(failure(value)?),
            "not_taken" => entry.not_taken = value.value().as_bool() == Some(true),
            _ => entry.on_cancel = Some(on_cancel(value)?),
        }
    }
    Ok(entry)
}

/// `timeout`, or `{kind: timeout, message: …, details: …}`.
fn failure(node: &Node) -> Read<Failure> {
    let (kind, message, details) = match node.get("kind") {
        None => (node.text()?, None, None),
        Some(kind) => {
            node.map(&["kind", "message", "details"])?;
            (
                kind.text()?,
                node.get("message").map(Node::text).transpose()?,
                node.get("details").map(Node::value),
            )
        }
    };
    let known = ErrorKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let known = known.ok_or_else(|| node.mark.mistake(format!("`{kind}` is no kind of failure")))?;
    Ok(Failure::new(known, message.unwrap_or_else(|| "scripted".to_owned()))
        .with_details(details.unwrap_or_default()))
}

fn usage(node: &Node) -> Read<Spend> {
    node.map(&["input_tokens", "output_tokens", "cached_tokens", "cost_usd", "calls"])?;
    let number = |key: &str| node.get(key).map(Node::number).transpose().map(Option::unwrap_or_default);
    let dollars = node.get("cost_usd").map_or(0.0, |at| at.value().as_f64().unwrap_or(0.0));
    Ok(Spend {
        // A scripted amount is a handful of dollars: a float holds its millionths exactly enough.
        usd_micros: (dollars * 1_000_000.0).round() as u64,
        input_tokens: number("input_tokens")?,
        output_tokens: number("output_tokens")?,
        cached_tokens: number("cached_tokens")?,
        calls: number("calls")?,
        ..Spend::default()
    })
}

fn on_cancel(node: &Node) -> Read<OnCancel> {
    match node.text()?.as_str() {
        "never" => Ok(OnCancel::Never),
        "finishes" => Ok(OnCancel::Finishes),
        _ => node.duration_ms().map(OnCancel::ReportsAfter),
    }
}

fn scripted_input(node: &Node) -> Read<ScriptedInput> {
    node.map(&[
        "at", "when", "after", "run", "each", "node", "kind", "branch", "event", "answer", "by", "do",
        "reason", "grace",
    ])?;
    let name = |key: &str| node.get(key).map(|at| at.text().map(Name::from)).transpose();
    let by = name("by")?.unwrap_or_else(|| "operator".into());
    let gate = GateFilter {
        node: name("node")?,
        kind: node.get("kind").map(gate_kind).transpose()?,
        branch: node.get("branch").map(Node::number).transpose()?.map(|n| n as u32),
    };
    let when = match (node.get("at"), name("when")?.as_deref()) {
        (Some(at), None) => When::At(at.duration_ms()?),
        (None, Some("gate")) => When::Gate(gate.clone()),
        (None, Some("idle")) => When::Idle,
        (None, Some("end")) => When::End,
        (None, Some(event)) => When::Event { name: event.into(), node: gate.node.clone() },
        _ => return Err(node.mark.mistake("either `at: DURATION` or `when: gate|idle|end|EVENT`")),
    };
    let what = match (node.get("event"), node.get("answer"), node.get("do")) {
        (Some(event), None, None) => event_of(event)?,
        (None, Some(answer), None) => OutsideInput::Answer { gate, answer: answer.value(), by },
        (None, None, Some(operation)) => OutsideInput::Operate {
            operation: operation_of(operation)?,
            by,
            reason: node.get("reason").map(Node::text).transpose()?.unwrap_or_else(|| "asked for".to_owned()),
            grace_ms: node.get("grace").map(Node::duration_ms).transpose()?,
        },
        _ => return Err(node.mark.mistake("one of `event`, `answer`, `do`")),
    };
    Ok(ScriptedInput {
        when,
        after_ms: node.get("after").map(Node::duration_ms).transpose()?.unwrap_or(0),
        run: name("run")?,
        what,
        each: node.get("each").map(Node::flag).transpose()?.unwrap_or(false),
    })
}

fn event_of(node: &Node) -> Read<OutsideInput> {
    node.map(&["name", "key", "payload", "keep"])?;
    let name = node.get("name").ok_or_else(|| node.mark.mistake("`name` is missing"))?;
    Ok(OutsideInput::Event {
        name: name.text()?.into(),
        key: node.get("key").map(Node::value).unwrap_or_default(),
        payload: node.get("payload").map(Node::value).unwrap_or_default(),
        keep: node.get("keep").map(Node::flag).transpose()?.unwrap_or(true),
    })
}

fn operation_of(node: &Node) -> Read<Operation> {
    let text = node.text()?;
    let known = Operation::ALL.iter().find(|(name, _)| *name == text);
    known
        .map(|(_, operation)| *operation)
        .ok_or_else(|| node.mark.mistake(format!("`{text}` is no operation")))
}

fn gate_kind(node: &Node) -> Read<GateKind> {
    let text = node.text()?;
    serde_json::from_value(text.clone().into())
        .map_err(|_| node.mark.mistake(format!("`{text}` is no kind of gate")))
}

fn expectations(node: &Node) -> Read<Expect> {
    let mut expect = Expect::default();
    for at in node.map(&["status", "output", "state", "error", "message", "waiting", "trace"])? {
        let value = &at.value;
        match at.key.as_str() {
            "status" => expect.status = Some(value.text()?),
            "output" => expect.output = Some(value.value()),
            "state" => expect.state = Some(value.value()),
            "error" => expect.error = Some(value.text()?),
            "message" => expect.message = Some(value.text()?),
            "waiting" => {
                expect.waiting = Some(value.items().into_iter().map(Node::text).collect::<Read<_>>()?)
            }
            _ => {
                expect.trace = match value.value() {
                    Value::Bool(false) => Trace::Off,
                    Value::Null => Trace::Written(String::new(), at.mark),
                    _ => Trace::Written(value.text()?, at.mark),
                }
            }
        }
    }
    Ok(expect)
}
