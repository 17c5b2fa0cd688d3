//! A model call as a cassette has it: our neutral request, with the name of the profile and without whose key it is asked
//! with and where. Pictures are there by what is in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wonder_artifacts::Hash;
use wonder_core::artifact::{BY_HASH, Wanted};
use wonder_core::def::OnViolation;
use wonder_core::error::Failure;
use wonder_core::graph::ModelCall;
use wonder_core::graph::tools::{Offer, with_unique_names};
use wonder_core::value::{Map, Value};
use wonder_models::{Request, ToolChoice};

use super::ask::{as_sent, filled};
use super::images;
use crate::cassette::Asking;

/// The field of a part of a message that holds a picture.
const DATA: &str = "data";

pub(super) fn asked(asking: &Asking<'_>, call: &ModelCall) -> Result<Value, Failure> {
    let request = filled(asking.call, asking.scope, call)?;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() && value.as_list().is_none_or(|list| !list.is_empty()) {
            fields.insert(name.into(), value);
        }
    };
    if let Some((name, profile)) = asking.call.profile() {
        put("profile", Value::String(name.clone()));
        put("provider", profile.served_by().map_or(Value::Null, Value::str));
    }
    put("tools", Value::list(tools(asking)));
    put("images", Value::list(pictures(asking, call)?));
    if call.on_violation == OnViolation::Return {
        put("on_violation", Value::str("return"));
    }
    neutral(request, &mut put);
    Ok(Value::from(fields))
}

fn neutral(request: Request, put: &mut dyn FnMut(&str, Value)) {
    let number = |count: u64| i64::try_from(count).map_or(Value::Null, Value::Int);
    put("model", Value::from(request.model));
    put("system", request.system.map_or(Value::Null, Value::from));
    put("messages", Value::list(request.messages.iter().map(|message| by_hash(message.to_value()))));
    put("max_tokens", request.max_tokens.map_or(Value::Null, number));
    put("temperature", request.temperature.map_or(Value::Null, Value::Float));
    put("stop", Value::list(request.stop.into_iter().map(Value::from)));
    put("reasoning", request.reasoning.map_or(Value::Null, |effort| Value::str(effort.as_str())));
    put("output_schema", request.output_schema.map_or(Value::Null, |schema| schema.doc().clone()));
    if !request.parameters.is_empty() {
        put("parameters", Value::from(request.parameters));
    }
    let choice = match request.tool_choice {
        ToolChoice::Auto => Value::Null,
        ToolChoice::None => Value::str("none"),
        ToolChoice::Required => Value::str("required"),
        ToolChoice::Tool(name) => Value::map([("tool", Value::String(name))]),
    };
    put("tool_choice", choice);
}

/// What is offered. What a server has is known when it is asked, and nobody asks one where a cassette answers.
fn tools(asking: &Asking<'_>) -> Vec<Value> {
    let (mut own, mut servers) = (Vec::new(), Vec::new());
    for offer in asking.call.offers() {
        match offer {
            Offer::Tool(tool) => own.push(*tool),
            Offer::Server { server, only } => {
                let only = Value::list(only.into_iter().map(Value::String));
                servers.push(Value::map([("mcp", Value::String(server)), ("only", only)]));
            }
        }
    }
    let own = with_unique_names(own).into_iter().map(|tool| {
        let wonder_models::Tool { name, description, schema } = as_sent(&tool);
        let description = description.map_or(Value::Null, Value::String);
        Value::map([("name", Value::String(name)), ("description", description), ("schema", schema)])
    });
    own.chain(servers).collect()
}

fn pictures(asking: &Asking<'_>, call: &ModelCall) -> Result<Vec<Value>, Failure> {
    let named = images::named(asking.scope, &call.images)?;
    let shown = named.into_iter().map(|picture| match picture {
        images::Named::Url(url) => Ok(Value::from(url)),
        images::Named::Artifact(Wanted::Hash { hash, .. }) => Ok(Value::from(format!("{BY_HASH}{hash}"))),
        images::Named::Artifact(Wanted::Name(name)) => Ok(Value::from(format!("artifact:{name}"))),
        images::Named::File(path) => {
            let bytes = asking.file(&path).map_err(|why| images::wrong(&path, &why))?;
            Ok(Value::from(format!("{BY_HASH}{}", Hash::of(&bytes))))
        }
    });
    shown.collect()
}

/// The message with every picture in it by its hash.
fn by_hash(value: Value) -> Value {
    match &value {
        Value::List(items) => Value::list(items.iter().cloned().map(by_hash)),
        Value::Map(map) => {
            let is_picture = map.get("type").and_then(Value::as_str) == Some("image");
            let each = map.iter().map(|(key, value)| match value.as_str() {
                Some(data) if is_picture && &**key == DATA => {
                    let bytes = STANDARD.decode(data).unwrap_or_else(|_| data.as_bytes().to_vec());
                    (key.clone(), Value::from(format!("{BY_HASH}{}", Hash::of(&bytes))))
                }
                _ => (key.clone(), by_hash(value.clone())),
            });
            Value::map(each.collect::<Vec<_>>())
        }
        _ => value,
    }
}
