//! Model profiles: where they are, who they lead to, what their texts may read, and that a budget in dollars has
//! prices to be held against.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Check;
use crate::codes;
use wonder_lang::def::{ActionDef, Budget, Implementation, ModelProfile, Name, PROVIDERS, Spot, Text};
use wonder_lang::problem::{Problem, nearest};

/// For plays without a model.
const NOBODY: [&str; 2] = ["mock", "local"];

impl Check<'_> {
    /// Profiles that switch or downgrade to each other must exist, and must not go round in circles.
    pub(super) fn models(&mut self) {
        let models = &self.bundle.models;
        for (name, profile) in models {
            self.profile(name, profile);
            profile.fallbacks.iter().chain(&profile.cheaper).for_each(|other| self.known_model(other));
            if let Some(own) = profile.fallbacks.iter().find(|other| other.text == *name) {
                self.model_cycle(own.spot, format!("model profile `{name}` falls back to itself"));
            }
        }
        let mut settled = BTreeSet::new();
        for name in models.keys() {
            let (mut path, mut at) = (Vec::new(), name);
            while settled.insert(at) {
                path.push(&**at);
                match models.get(at).and_then(|profile| profile.cheaper.as_ref()) {
                    Some(next) if models.contains_key(&next.text) => at = &next.text,
                    _ => break,
                }
            }
            let closes = path.iter().position(|known| *known == &**at);
            let next = models.get(at).and_then(|profile| profile.cheaper.as_ref());
            if let (Some(first), Some(next)) = (closes, next.filter(|next| models.contains_key(&next.text))) {
                let cycle = [&path[first..], &[path[first]]].concat().join(" -> ");
                self.model_cycle(next.spot, format!("`cheaper` goes round in a circle: {cycle}"));
            }
        }
    }

    fn model_cycle(&mut self, spot: Spot, message: String) {
        self.report(
            Problem::error(codes::MODEL_CYCLE, spot, message)
                .label("expected another profile")
                .help("let the last one have no `cheaper`"),
        );
    }

    fn profile(&mut self, name: &Name, profile: &ModelProfile) {
        let known = || PROVIDERS.iter().map(|(name, _)| *name).chain(NOBODY);
        let unknown = |provider: &&str| known().all(|known| known != *provider);
        if let Some(provider) = profile.provider.as_deref().filter(unknown) {
            let message = format!("model profile `{name}` has the provider `{provider}`, which is not known");
            let problem = Problem::error(codes::BAD_PROFILE, profile.spot, message)
                .label("expected one of `openai`, `anthropic`, `gemini`, `ollama` and `openai_compatible`");
            self.report(match nearest(provider, known()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => {
                    problem.help("what speaks as OpenAI does is `openai_compatible`, with its `base_url`")
                }
            });
        }
        self.base_url(name, profile);
        for (key, text) in &profile.headers {
            self.secrets_only(text, "a model profile");
            self.named_secret(key, text);
        }
        if let Some(text) = &profile.api_key {
            self.secrets_only(text, "a model profile");
            self.named_secret(&"api_key".into(), text);
        }
        if let Some(rate) = profile.rate {
            self.zero(rate.rpm, profile.spot, "`rate.rpm`");
            self.zero(rate.tpm, profile.spot, "`rate.tpm`");
        }
    }

    fn base_url(&mut self, name: &Name, profile: &ModelProfile) {
        let (spot, message) = match &profile.base_url {
            None if profile.provider.as_deref() == Some("openai_compatible") => {
                (profile.spot, format!("model profile `{name}` does not say where it is"))
            }
            Some(url) if !is_address(url) => (url.spot, format!("`{url}` is no address of a model")),
            _ => return,
        };
        let problem = Problem::error(codes::BAD_PROFILE, spot, message);
        self.report(problem.label("expected `base_url` to be an address such as `https://host/v1`"));
    }

    /// A text of a profile or a server: it is filled in wherever that is used, so that only secrets are there.
    pub(super) fn secrets_only(&mut self, text: &Text, of: &str) {
        let Some(template) = self.template(text) else { return };
        let other = template.reads().iter().find(|read| &*read.root != "secret" || read.path.is_empty());
        if let Some(read) = other {
            let message = format!("a text of {of} reads `{}`", read.root);
            self.report(
                Problem::error(codes::UNDECLARED_IN_TEMPLATE, text.spot, message)
                    .label("only secrets by name can be read here")
                    .help("write `{{ secret.NAME }}`"),
            );
        }
    }

    /// A bound in dollars over a model that nobody knows the price of would bound nothing.
    pub(super) fn dollars(&mut self, budget: Option<&Budget>, spot: Spot, task: Option<&Text>) {
        if budget.is_none_or(|budget| budget.usd_micros.is_none()) {
            return;
        }
        let bundle = self.bundle;
        let models = &bundle.models;
        let actions: Vec<&Arc<ActionDef>> = match task {
            None => bundle.actions.values().collect(),
            Some(task) => {
                let steps = bundle.tasks.get(&task.text).map_or(&[][..], |task| &task.steps);
                steps.iter().filter_map(|step| bundle.actions.get(&step.action.text)).collect()
            }
        };
        let mut open: Vec<&Name> = Vec::new();
        for action in actions {
            match &action.implementation {
                Implementation::LlmCall(call) => open.extend(call.model.iter().map(|model| &model.text)),
                Implementation::McpTool(tool) => {
                    let server = bundle.mcp_servers.get(&tool.server.text);
                    open.extend(
                        server.and_then(|server| server.sampling.as_ref()).map(|own| &own.model.text),
                    );
                }
                _ => {}
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(profile) = models.get(name).filter(|_| seen.insert(name)) else { continue };
            open.extend(profile.fallbacks.iter().chain(&profile.cheaper).map(|other| &other.text));
        }
        let unknown =
            |name: &&&Name| models.get(**name).is_some_and(|profile| profile.known_prices().is_none());
        if let Some(name) = seen.iter().find(unknown) {
            let message = format!("a budget in dollars, and nobody says what `{name}` costs");
            self.report(
                Problem::error(codes::UNPRICED_BUDGET, spot, message)
                    .label("expected prices for every model that it bounds")
                    .help(format!("write `prices: {{input: 3, output: 15}}` (dollars per million tokens) in `models.{name}`, or bound `tokens` or `calls`")),
            );
        }
    }
}

fn is_address(url: &Text) -> bool {
    let rest = url.as_str().strip_prefix("https://").or(url.as_str().strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) && !url.as_str().contains("{{")
}
