//! What a mock gives, in the shape that such an action has: a case says what matters of it, and the rest is filled in
//! as the real one would.

use wonder_core::cost::{Spend, TokenCounts, price_usd_micros};
use wonder_core::def::{Implementation, Name, OnViolation};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::Work;
use wonder_core::graph::tools::{Offer, Tool, with_unique_names};
use wonder_core::input::ChildOutcome;
use wonder_core::value::{Map, Value};
use wonder_models::{Arguments, Message, Part, Reply, Role, ToolCall};
use wonder_sim::executor::shaped;
use wonder_sim::outcomes::{ActionRequest, ChildAnswer};
use wonder_spec::cases::{Given, Outcome, ToolCall as WrittenCall, Usage};

type Result = std::result::Result<Value, Failure>;

pub(crate) fn of_action(request: &ActionRequest<'_>, outcome: &Outcome) -> (Result, Spend) {
    let is_model = matches!(request.action.def.implementation, Implementation::LlmCall(_));
    let result = match &outcome.result {
        Given::Error(failure) => Err(failure.clone()),
        Given::Output(value) if is_model => answered(request, value, outcome.usage),
        Given::Output(value) => Ok(filled(request, value)),
        Given::Said { text, json, tool_calls } if is_model => {
            let said = text.clone().or_else(|| json.as_ref().map(written)).unwrap_or_default();
            replied(request, said, json.as_ref(), tool_calls, outcome.usage)
        }
        Given::Said { text, json, .. } => {
            let said = json.clone().or_else(|| text.as_ref().map(|text| Value::str(text.as_str())));
            Ok(shaped(request.action, said.unwrap_or_else(|| Value::str(""))))
        }
    };
    let spend =
        if is_model { spend(request, outcome.usage) } else { told(outcome.usage.unwrap_or_default()) };
    (result, spend)
}

pub(crate) fn of_child(outcome: &Outcome) -> ChildAnswer {
    let output = match &outcome.result {
        Given::Error(failure) => Err(failure.clone()),
        Given::Output(value) => Ok(value.clone()),
        Given::Said { text, json, .. } => {
            let text = || text.as_ref().map(|text| Value::str(text.as_str()));
            Ok(json.clone().or_else(text).unwrap_or_else(Value::empty_map))
        }
    };
    let outcome_of = match output {
        Ok(output) => ChildOutcome::Completed { output },
        Err(failure) => ChildOutcome::Failed { failure },
    };
    let spend = told(outcome.usage.unwrap_or_default());
    ChildAnswer { outcome: outcome_of, delay_ms: outcome.delay_ms, spend }
}

/// A document as a model would write it.
fn written(json: &Value) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

/// A written result of a model: either some of what one has, or the document it gives.
fn answered(request: &ActionRequest<'_>, value: &Value, usage: Option<Usage>) -> Result {
    const OWN: [&str; 6] = ["text", "json", "tool_calls", "message", "finish_reason", "model"];
    let own = value.as_map().filter(|map| OWN.iter().any(|key| map.contains_key(*key)));
    let Some(own) = own else { return replied(request, written(value), Some(value), &[], usage) };
    let text = own.get("text").map(written).or_else(|| own.get("json").map(written)).unwrap_or_default();
    let calls = own.get("tool_calls").and_then(Value::as_list).unwrap_or_default().iter();
    let text_of = |call: &Value, key: &str| call.get(key).and_then(Value::as_str).map(Into::into);
    let calls: Vec<WrittenCall> = calls
        .map(|call| WrittenCall {
            tool: text_of(call, "tool").unwrap_or_else(|| "".into()),
            arguments: call.get("arguments").cloned().unwrap_or_else(Value::empty_map),
            id: text_of(call, "id"),
        })
        .collect();
    let full = replied(request, text, own.get("json"), &calls, usage)?;
    let mut own = own.clone();
    // They are in it already, each with what is known of its tool.
    own.remove("tool_calls");
    Ok(overlaid(full, &own))
}

/// The reply of a model that says this, and the failure of one that does not say what it was asked for.
fn replied(
    request: &ActionRequest<'_>,
    text: String,
    json: Option<&Value>,
    calls: &[WrittenCall],
    usage: Option<Usage>,
) -> Result {
    let mut content: Vec<Part> = (!text.is_empty()).then(|| Part::text(text)).into_iter().collect();
    content.extend(calls.iter().enumerate().map(|(at, call)| {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{}", request.at.token, at + 1).into());
        let arguments = Arguments::Read(call.arguments.clone());
        Part::ToolCall(ToolCall { id, tool: call.tool.clone(), arguments, item: None })
    }));
    let Some(Work::LlmCall(call)) = &request.action.work else { unreachable!("only model calls reply") };
    let message = Message { role: Role::Assistant, content };
    let mut violations = Vec::new();
    let mut reply = Reply::said(message.clone(), call.answer_schema()).or_else(|why| {
        let why = format!("the mock: {why}");
        if call.on_violation == OnViolation::Fail {
            return Err(Failure::new(ErrorKind::ContractViolation, why));
        }
        violations.push(why);
        Ok(Reply::said(message, None).expect("without a schema there is nothing to break"))
    })?;
    if violations.is_empty() {
        reply.json = reply.json.or_else(|| json.cloned());
    }
    reply.model = request.call.profile().map(|(_, profile)| profile.model.clone());
    let usage = usage.unwrap_or_default();
    reply.usage = Some(wonder_models::Usage {
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        output_tokens: usage.output_tokens,
        reasoning_tokens: usage.reasoning_tokens,
    });
    Ok(call.result(reply.to_value(), &offered(request, calls), violations))
}

/// The tools that the model was offered. Nobody asks a server for its own here, so what a case calls `files/read` is
/// taken to be a tool of `files`, one with an effect.
fn offered(request: &ActionRequest<'_>, calls: &[WrittenCall]) -> Vec<Tool> {
    let tools = request.call.offers().into_iter().flat_map(|offer| match offer {
        Offer::Tool(tool) => vec![*tool],
        Offer::Server { server, only } => {
            let names = calls.iter().filter_map(|call| call.tool.strip_prefix(&*server)?.strip_prefix('/'));
            let mut names: Vec<Name> = names.map(Name::from).collect();
            names.retain(|name| only.is_empty() || only.contains(name));
            names.into_iter().map(|name| Tool::of_server(&server, name)).collect()
        }
    });
    with_unique_names(tools.collect())
}

/// A written result of something else: what it lacks is as if nothing had been said.
fn filled(request: &ActionRequest<'_>, value: &Value) -> Value {
    let as_is = shaped(request.action, value.clone());
    match value.as_map() {
        // It has keys of such a result, so that nothing was made of it.
        Some(own) if as_is == *value => {
            let usual = shaped(request.action, Value::str(""));
            if usual.as_map().is_some() { overlaid(usual, own) } else { as_is }
        }
        _ => as_is,
    }
}

fn overlaid(base: Value, over: &Map) -> Value {
    let mut all = base.as_map().cloned().unwrap_or_default();
    all.extend(over.iter().map(|(key, value)| (key.clone(), value.clone())));
    Value::from(all)
}

/// What is said to have been used.
fn told(usage: Usage) -> Spend {
    Spend {
        usd_micros: usage.usd_micros.unwrap_or(0),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_input_tokens,
        ..Spend::default()
    }
}

/// The same of a model, at the prices that the run has for its profile.
fn spend(request: &ActionRequest<'_>, usage: Option<Usage>) -> Spend {
    let usage = usage.unwrap_or_default();
    let name = request.call.profile().map(|(name, _)| name.clone());
    let prices = name.as_ref().and_then(|name| request.order.prices.get(name));
    let counts = TokenCounts {
        input: usage.input_tokens,
        cached: usage.cached_input_tokens,
        cache_write: usage.cache_write_tokens,
        output: usage.output_tokens,
    };
    let by_price = |prices| price_usd_micros(prices, counts);
    Spend {
        usd_micros: usage.usd_micros.unwrap_or_else(|| prices.map_or(0, by_price)),
        calls: 1,
        unpriced_calls: u64::from(prices.is_none() && usage.usd_micros.is_none()),
        model_used: name,
        ..told(usage)
    }
}
