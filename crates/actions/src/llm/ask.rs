//! A model call with its texts filled in: which profile, whose key, what is asked. Nothing has been sent yet, and a
//! profile that is not used is not looked at.

use wonder_core::cost::Allowance;
use wonder_core::def::{Caching, ModelProfile, Name, Reasoning, Sampling};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::tools::{Offer, Tool, with_unique_names};
use wonder_core::graph::{ModelCall, ModelTable, ProfileTexts};
use wonder_core::limits::OUTPUT_TOKENS_RESERVED;
use wonder_core::task::ActionCall;
use wonder_core::template::Template;
use wonder_core::value::Value;
use wonder_models::{
    Cache, Effort, Header, KeyChoice, Message, Part, Problem, Provider, Request, Role, Target, ToolChoice,
    Wire, key_for,
};

use super::images;
use crate::context::ActionContext;
use crate::handler::TryError;
use crate::mcp::Pool;
use crate::settings::Settings;
use crate::texts::{bad_field, render, with_secrets};

#[derive(Debug)]
pub(super) struct Asked<'c> {
    /// Of the profile.
    pub(super) name: Name,
    pub(super) profile: &'c ModelProfile,
    pub(super) request: Request,
    pub(super) target: Target,
    /// What was offered, for judging the calls that come back.
    pub(super) tools: Vec<Tool>,
}

impl<'c> Asked<'c> {
    pub(super) async fn of(
        (settings, servers): (&Settings, &Pool),
        context: &ActionContext<'c>,
        call: &ModelCall,
    ) -> Result<Asked<'c>, TryError> {
        let (name, profile) = profile_of(context.call)?;
        let provider = provider(name, profile)?;
        let target = target(settings, context, (provider, profile), call.table.texts.get(name))?;
        let tools = offered(servers, context, call).await?;
        let mut request = Request {
            tools: tools.iter().map(as_sent).collect(),
            stream: true,
            idempotency_key: Some(context.key()),
            ..filled(context.call, context.scope, call)?
        };
        // What was reserved is what it may answer at most.
        let bounded = context.order().allowance != Allowance::default();
        let reserved = profile.max_output_tokens.or(bounded.then_some(OUTPUT_TOKENS_RESERVED));
        request.max_tokens = request.max_tokens.or(reserved);
        let shown = images::read(context, &call.images).await?;
        put_behind(&mut request.messages, shown);
        Ok(Asked { name: name.clone(), profile, request, target, tools })
    }

    /// What an MCP server asks of the model that its definition names.
    pub(super) fn by_server(
        settings: &Settings,
        context: &ActionContext<'c>,
        table: &'c ModelTable,
        (sampling, request): (&Sampling, Request),
    ) -> Result<Asked<'c>, Failure> {
        let Some((name, profile)) = table.profile(&sampling.model.text, context.call.overrides.downgrades)
        else {
            return Err(bad_field(
                "sampling.model",
                &format!("there is no model profile `{}`", sampling.model),
            ));
        };
        let provider = provider(name, profile)?;
        let target = target(settings, context, (provider, profile), table.texts.get(name))?;
        let request = Request { model: profile.model.to_string(), stream: true, ..request };
        let request = request.with_parameters(&profile.parameters).map_err(|problem| refused(&problem))?;
        let most = [sampling.max_tokens, profile.answer_tokens(), request.max_tokens];
        let max_tokens = most.into_iter().flatten().min();
        let request = Request { max_tokens: max_tokens.or(Some(OUTPUT_TOKENS_RESERVED)), ..request };
        Ok(Asked { name: name.clone(), profile, request, target, tools: Vec::new() })
    }
}

fn provider(name: &Name, profile: &ModelProfile) -> Result<Provider, Failure> {
    let provider = profile.served_by().ok_or_else(|| {
        let why = format!("profile `{name}` has no `provider`, and its model's name tells none");
        bad_field("model", &why)
    })?;
    Provider::parse(provider).map_err(|problem| refused(&problem))
}

fn profile_of(call: &ActionCall) -> Result<(&Name, &ModelProfile), Failure> {
    let why = "no model profile is named: write `model: NAME`, and define it under `models`";
    call.profile().ok_or_else(|| bad_field("model", why))
}

/// What the texts of a call and its profile's parameters ask, whoever is asked: neither tools nor pictures yet.
pub(super) fn filled(call: &ActionCall, scope: &Value, work: &ModelCall) -> Result<Request, Failure> {
    let (_, profile) = profile_of(call)?;
    let request = Request {
        model: profile.model.to_string(),
        system: system(call, scope, work)?,
        messages: messages(call, scope, work)?,
        max_tokens: work.max_tokens,
        temperature: work.temperature,
        stop: work.stop.iter().map(ToString::to_string).collect(),
        reasoning: work.reasoning.map(effort),
        cache: if work.cache == Caching::Off { Cache::Off } else { Cache::Auto },
        output_schema: schema(call, work)?,
        tool_choice: tool_choice(scope, work)?,
        ..Request::default()
    };
    request.with_parameters(&profile.parameters).map_err(|problem| refused(&problem))
}

/// The tools that the model is offered, with names that are different from each other.
async fn offered(
    servers: &Pool,
    context: &ActionContext<'_>,
    call: &ModelCall,
) -> Result<Vec<Tool>, TryError> {
    let mut tools = Vec::new();
    for offer in context.call.offers() {
        match offer {
            Offer::Tool(tool) => tools.push(*tool),
            Offer::Server { server, only } => {
                tools.extend(servers.offered(&context.caller(), &call.table, &server, &only).await?);
            }
        }
    }
    Ok(with_unique_names(tools))
}

pub(super) fn as_sent(tool: &Tool) -> wonder_models::Tool {
    let (name, description) = (tool.name.clone(), tool.description.clone());
    wonder_models::Tool { name, description, schema: tool.schema.doc().clone() }
}

fn tool_choice(scope: &Value, work: &ModelCall) -> Result<ToolChoice, Failure> {
    let Some(template) = &work.tool_choice else { return Ok(ToolChoice::default()) };
    Ok(ToolChoice::parse(render(template, "tool_choice", scope)?.trim()))
}

/// What no provider should see, as a failure of the action.
pub(super) fn refused(problem: &Problem) -> Failure {
    bad_field(&problem.place, &problem.message)
}

fn effort(reasoning: Reasoning) -> Effort {
    match reasoning {
        Reasoning::Low => Effort::Low,
        Reasoning::Medium => Effort::Medium,
        Reasoning::High => Effort::High,
    }
}

fn target(
    settings: &Settings,
    context: &ActionContext<'_>,
    (provider, profile): (Provider, &ModelProfile),
    texts: Option<&ProfileTexts>,
) -> Result<Target, Failure> {
    let base_url = profile.base_url.as_ref().map(|url| url.text.to_string());
    let api_key = texts.and_then(|texts| texts.api_key.as_ref());
    let api_key = api_key.map(|template| with_secrets(context.secrets, template, "api_key")).transpose()?;
    let variable = |name: &str| {
        let set = || settings.variable(name)?.into_string().ok();
        context.secret(name).or_else(set)
    };
    let key = key_for(provider, base_url.as_deref(), api_key.as_deref(), variable)
        .map_err(|problem| Failure::new(ErrorKind::Auth, problem.message))?;
    if let Some(key) = KeyChoice::key(&key) {
        context.learn_secret(key.expose());
    }
    let mut headers = Vec::new();
    for (name, template) in texts.map_or(&[][..], |texts| &texts.headers) {
        let value = with_secrets(context.secrets, template, &format!("headers.{name}"))?;
        let is_secret = !template.reads().is_empty();
        headers.push(Header { name: name.to_string(), value, is_secret });
    }
    let wire = profile.parameters.get("wire").map(|wire| Wire::of_parameter(provider, wire)).transpose();
    Ok(Target { provider, wire: wire.map_err(|problem| refused(&problem))?, base_url, key, headers })
}

fn system(call: &ActionCall, scope: &Value, work: &ModelCall) -> Result<Option<String>, Failure> {
    let changed = call.overrides.system.as_ref().map(|text| Template::compile(text));
    let changed = changed.transpose().map_err(|error| bad_field("system", &error.message))?;
    let template = changed.as_ref().or(work.system.as_ref());
    template.map(|template| render(template, "system", scope)).transpose()
}

/// Earlier messages, then the prompt, then what responses to failures put behind it.
fn messages(call: &ActionCall, scope: &Value, work: &ModelCall) -> Result<Vec<Message>, Failure> {
    let mut messages = match &work.messages {
        None => Vec::new(),
        Some(tree) => {
            let list = tree.render_values(scope).map_err(|error| bad_field("messages", &error.message))?;
            Message::list_from_value(&list).map_err(|problem| refused(&problem))?
        }
    };
    if let Some(prompt) = &work.prompt {
        messages.push(Message::user(render(prompt, "prompt", scope)?));
    }
    let added = call.overrides.append.iter().map(|text| Part::text(format!("\n\n{text}")));
    put_behind(&mut messages, added.collect());
    Ok(messages)
}

/// Adds to what the user said last, or says it.
fn put_behind(messages: &mut Vec<Message>, parts: Vec<Part>) {
    if parts.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.content.extend(parts),
        _ => messages.push(Message { role: Role::User, content: parts }),
    }
}

/// What the answer has to fit. What its prompt spec requires is checked with it.
fn schema(call: &ActionCall, work: &ModelCall) -> Result<Option<wonder_core::schema::Schema>, Failure> {
    let spec = work.prompt_spec.as_ref();
    if let Some((spec, requires)) = spec.and_then(|spec| Some((spec, spec.requires.as_ref()?))) {
        let input = call.scope.get("input").unwrap_or(&call.scope);
        requires.check(input).map_err(|violations| {
            let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let message =
                format!("the input of prompt `{}` breaks its schema: {}", spec.name, all.join("; "));
            Failure::new(ErrorKind::ContractViolation, message)
        })?;
    }
    Ok(work.answer_schema().cloned())
}
