//! Actions, compiled once however many steps name them: for the compiler, and for the checker, which wants to
//! know what their texts are, what they read and which of them are none.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::parsed::Parsed;
use crate::readings::Reading;
use crate::scope::{Items, Scope};
use crate::texts::{ActionText, BadText, SECRET, Texts};
use crate::tools::Offer;
use crate::{
    Action, ArtifactSpec, ArtifactTypeSpec, Assertion, AssertionTest, CallSpec, CalleeSpec, CommandSpec,
    Coordinated, GateSpec, HttpSpec, McpCall, McpServerSpec, MockErrorSpec, MockOutcomeSpec, MockSpec,
    ModelCall, ModelTable, ProfileTexts, PromptUse, ShellSpec, SleepSpec, WaitSpec, Work,
};
use wonder_lang::def::{
    ActionDef, ArtifactWrite, Assert, Bundle, Callee, ChildFailure, CommandLine, EventTimeout, HttpRequest,
    HumanGate, Implementation, LlmCall, McpServer, Mock, ModelProfile, Name, Shell, Sleep, Text, WaitEvent,
    WorkflowCall,
};
use wonder_lang::expr::Read;
use wonder_lang::template::Template;
use wonder_lang::value::Value;

#[derive(Clone, Debug)]
pub(super) struct KnownAction {
    pub(super) action: Arc<Action>,
    pub(super) readings: Arc<Vec<Reading>>,
}

/// One action, and what was found on the way.
pub(crate) struct CompiledAction {
    pub(crate) action: Arc<Action>,
    pub(crate) texts: Vec<ActionText>,
    /// If there is any, the action is not whole.
    pub(crate) bad: Vec<BadText>,
}

/// Every action of a bundle by name.
pub(crate) fn actions(bundle: &Bundle, parsed: &mut Parsed) -> BTreeMap<Name, CompiledAction> {
    let table = Arc::new(table(bundle, parsed));
    let compiled = bundle.actions.iter().map(|(name, def)| {
        let compiled = action(name, def, bundle, &table, parsed);
        (name.clone(), compiled)
    });
    compiled.collect()
}

/// What the model calls and the calls of MCP tools of a bundle share.
pub fn model_table(bundle: &Bundle) -> ModelTable {
    table(bundle, &mut Parsed::default())
}

fn table(bundle: &Bundle, parsed: &mut Parsed) -> ModelTable {
    let texts = bundle.models.iter().map(|(name, profile)| (name.clone(), profile_texts(profile, parsed)));
    let texts = texts.collect();
    let tools = crate::tools::all(bundle);
    let servers = bundle.mcp_servers.iter();
    let servers = servers.map(|(name, server)| (name.clone(), server_texts(server, parsed))).collect();
    let (profiles, project) = (bundle.models.clone(), bundle.project().into());
    ModelTable { profiles, tools, texts, servers, project }
}

/// The texts of a profile. Those that do not compile are not there; the checks say so.
fn profile_texts(profile: &ModelProfile, parsed: &mut Parsed) -> ProfileTexts {
    let api_key = profile.api_key.as_ref().and_then(|text| parsed.template(text).ok());
    let headers =
        profile.headers.iter().filter_map(|(name, text)| Some((name.clone(), parsed.template(text).ok()?)));
    let headers: Vec<(Name, Template)> = headers.collect();
    let all = api_key.iter().chain(headers.iter().map(|(_, template)| template));
    let reads = all.flat_map(Template::reads).filter(|read| &*read.root == SECRET);
    let secrets = reads.filter_map(|read| read.path.first().cloned()).collect();
    ProfileTexts { api_key, headers, secrets }
}

/// The same for an MCP server.
fn server_texts(server: &McpServer, parsed: &mut Parsed) -> McpServerSpec {
    let mut one = |text: &Text| parsed.template(text).ok();
    let command = server.command.iter().filter_map(&mut one).collect();
    let (cwd, image) = (server.cwd.as_ref().and_then(&mut one), server.image.as_ref().and_then(&mut one));
    let url = server.url.as_ref().and_then(&mut one);
    let mut named = |texts: &BTreeMap<Name, Text>| -> Vec<(Name, Template)> {
        texts.iter().filter_map(|(name, text)| Some((name.clone(), one(text)?))).collect()
    };
    let (env, headers) = (named(&server.env), named(&server.headers));
    let templates: Vec<Template> = server.texts().filter_map(|text| parsed.template(text).ok()).collect();
    let reads = templates.iter().flat_map(Template::reads).filter(|read| &*read.root == SECRET);
    let secrets = reads.filter_map(|read| read.path.first().cloned()).collect();
    McpServerSpec { def: server.clone(), command, env, cwd, image, url, headers, secrets }
}

fn action(
    name: &Name,
    def: &Arc<ActionDef>,
    bundle: &Bundle,
    models: &Arc<ModelTable>,
    parsed: &mut Parsed,
) -> CompiledAction {
    let mut texts = Texts::new(parsed);
    let work = texts.work(def, bundle, models);
    let coordinated = texts.coordinated(name, def);
    let requires = texts.schema(def.requires.as_ref(), "`requires`");
    let produces = texts.schema(def.produces.as_ref(), "`produces`");
    let effect = def.effect();
    let (secrets, found, bad) = (texts.secrets(), texts.found, texts.bad);
    let (name, def) = (name.clone(), def.clone());
    let action = Action { name, def, requires, produces, effect, coordinated, work, secrets };
    CompiledAction { action: Arc::new(action), texts: found, bad }
}

impl Texts<'_> {
    /// What a worker needs of the action; None for the coordinator's.
    fn work(&mut self, def: &ActionDef, bundle: &Bundle, models: &Arc<ModelTable>) -> Option<Work> {
        Some(match &def.implementation {
            Implementation::LlmCall(call) => Work::LlmCall(Box::new(self.model_call(call, bundle, models))),
            Implementation::McpTool(tool) => {
                let (server, name) =
                    (self.template("server", &tool.server), self.template("tool", &tool.tool));
                let arguments = self.tree("arguments", tool.arguments.as_ref());
                let table = models.clone();
                Work::McpTool(McpCall { server: server?, tool: name?, arguments, table })
            }
            Implementation::HttpRequest(http) => Work::HttpRequest(Box::new(self.http(http)?)),
            Implementation::Shell(shell) => Work::Shell(Box::new(self.shell(shell)?)),
            Implementation::ArtifactWrite(write) => Work::ArtifactWrite(self.artifact(write, bundle)?),
            Implementation::ArtifactRead(read) => {
                Work::ArtifactRead { reference: self.template("ref", &read.reference)? }
            }
            Implementation::Mock(mock) => Work::Mock(self.mock(mock)),
            _ => return None,
        })
    }

    fn artifact(&mut self, write: &ArtifactWrite, bundle: &Bundle) -> Option<ArtifactSpec> {
        let artifact_type = self.optional("type", write.artifact_type.as_ref());
        let name = self.template("name", &write.name);
        let path = self.optional("path", write.path.as_ref());
        let content = self.tree("content", write.content.as_ref());
        let named =
            |name: &Name| artifact_type.as_ref().is_some_and(|of| !of.is_plain() || of.text() == &**name);
        let types = bundle.artifact_types.iter().filter(|(name, _)| named(name));
        let types = types.map(|(name, of)| {
            let schema = self.schema(of.schema.as_ref(), "`schema`");
            (name.clone(), ArtifactTypeSpec { media_type: of.media_type.clone(), schema })
        });
        let types = types.collect();
        Some(ArtifactSpec { artifact_type, types, name: name?, content, path })
    }

    fn model_call(&mut self, call: &LlmCall, bundle: &Bundle, models: &Arc<ModelTable>) -> ModelCall {
        let prompt = self.optional("prompt", call.prompt.as_ref());
        let system = self.optional("system", call.system.as_ref());
        let messages = self.tree("messages", call.messages.as_ref());
        let output_schema = self.schema(call.output_schema.as_ref(), "`output_schema`");
        let spec = call.prompt_spec.as_ref().and_then(|name| Some((name, bundle.prompts.get(&name.text)?)));
        let (spec_system, spec_prompt) = spec.map_or((None, None), |(name, spec)| {
            self.of_prompt(name, |texts| {
                (texts.optional("system", spec.system.as_ref()), texts.template("template", &spec.template))
            })
        });
        let prompt_spec = spec.map(|(name, spec)| PromptUse {
            name: name.text.clone(),
            requires: self.schema(spec.requires.as_ref(), "`requires`"),
            produces: self.schema(spec.produces.as_ref(), "`produces`"),
            examples: spec.examples.clone(),
        });
        ModelCall {
            model: call.model.as_ref().map(|model| model.text.clone()),
            table: models.clone(),
            system: system.or(spec_system),
            prompt: prompt.or(spec_prompt),
            prompt_spec,
            messages,
            output_schema,
            offered: call.tools.iter().filter_map(|tool| Offer::of(tool, bundle)).collect(),
            tool_choice: self.optional("tool_choice", call.tool_choice.as_ref()),
            on_violation: call.on_violation,
            max_tokens: call.max_tokens,
            temperature: call.temperature,
            stop: call.stop.clone(),
            reasoning: call.reasoning,
            cache: call.cache,
            images: self.list("images", &call.images),
        }
    }

    fn http(&mut self, http: &HttpRequest) -> Option<HttpSpec> {
        let method = self.optional("method", http.method.as_ref());
        let url = self.template("url", &http.url);
        Some(HttpSpec {
            method,
            body: self.optional("body", http.body.as_ref()),
            query: self.tree("query", http.query.as_ref()),
            headers: self.tree("headers", http.headers.as_ref()),
            json: self.tree("json", http.json.as_ref()),
            url: url?,
            expect: http.expect.clone(),
            max_bytes: http.max_bytes,
            allow_private: http.allow_private,
        })
    }

    fn shell(&mut self, shell: &Shell) -> Option<ShellSpec> {
        let command = match &shell.command {
            CommandLine::Line(line) => self.template("command", line).map(CommandSpec::Line),
            CommandLine::Arguments(list) => Some(CommandSpec::Arguments(self.list("command", list))),
        };
        Some(ShellSpec {
            cwd: self.optional("cwd", shell.cwd.as_ref()),
            stdin: self.optional("stdin", shell.stdin.as_ref()),
            image: self.optional("image", shell.image.as_ref()),
            env: self.tree("env", shell.env.as_ref()),
            command: command?,
            expect_exit: shell.expect_exit.clone(),
            isolation: shell.isolation,
            limits: shell.limits,
            network: shell.network,
        })
    }

    fn mock(&mut self, mock: &Mock) -> MockSpec {
        let outcomes = mock.outcomes.iter().map(|outcome| MockOutcomeSpec {
            output: self.tree("output", outcome.output.as_ref()),
            error: outcome.error.as_ref().map(|error| MockErrorSpec {
                kind: error.kind,
                message: self.optional("message", error.message.as_ref()),
            }),
            delay_ms: outcome.delay_ms,
            usage: outcome.usage,
        });
        MockSpec { outcomes: outcomes.collect() }
    }

    /// What the coordinator needs of the action; None for a worker's.
    fn coordinated(&mut self, name: &Name, def: &ActionDef) -> Option<Coordinated> {
        Some(match &def.implementation {
            Implementation::UpdateContext(update) => {
                Coordinated::UpdateContext { set: self.writes("set", &update.set) }
            }
            Implementation::Assert(assert) => Coordinated::Assert(self.assertion(assert)?),
            Implementation::HumanGate(gate) => Coordinated::HumanGate(self.gate(name, gate)?),
            Implementation::WorkflowCall(call) => Coordinated::WorkflowCall(self.call(call, def)?),
            Implementation::WaitEvent(wait) => Coordinated::WaitEvent(self.wait(wait)?),
            Implementation::Sleep(sleep) => Coordinated::Sleep(self.sleep(sleep)?),
            _ => return None,
        })
    }

    fn assertion(&mut self, assert: &Assert) -> Option<Assertion> {
        let message = self.optional("message", assert.message.as_ref());
        let schema = self.schema(assert.schema.as_ref(), "`schema`");
        let that = self.expr("that", assert.that.as_ref());
        let value = self.expr("value", assert.value.as_ref());
        let score = self.expr("score", assert.score.as_ref());
        let at_least = assert.score_at_least.as_ref().map(|tree| self.mapping("score_at_least", tree));
        let test = match (that, (value, schema), (score, at_least)) {
            (Some(that), _, _) => AssertionTest::That(that),
            (_, (Some(value), Some(schema)), _) => AssertionTest::Fits { value, schema },
            (_, _, (Some(score), Some(at_least))) => AssertionTest::Scores { score, at_least },
            _ => {
                self.bad.push(BadText::Missing("an `assert` has no test"));
                return None;
            }
        };
        Some(Assertion { test, message })
    }

    fn gate(&mut self, name: &Name, gate: &HumanGate) -> Option<GateSpec> {
        let form = self.schema(gate.form.as_ref(), "`form`");
        let title = match &gate.title {
            Some(title) => self.template("title", title),
            None => self.template("title", &Text::new(name.clone())),
        };
        Some(GateSpec {
            body: self.optional("body", gate.body.as_ref()),
            form,
            form_from: self.expr("form", gate.form_from.as_ref()),
            assignees: self.list("assignees", &gate.assignees),
            quorum: gate.quorum,
            timeout_ms: gate.timeout_ms,
            on_timeout: gate.on_timeout,
            default: gate.default.clone().unwrap_or(Value::Null),
            escalate: self.list("escalate", &gate.escalate),
            remind_every_ms: gate.remind_every_ms,
            title: title?,
        })
    }

    fn call(&mut self, call: &WorkflowCall, def: &ActionDef) -> Option<CallSpec> {
        let workflow = match &call.workflow {
            Callee::Named(name) => CalleeSpec::Named(self.callee_template("workflow", name)?),
            Callee::FromContext { from_context } => {
                CalleeSpec::FromContext(self.callee_expr("from_context", from_context)?)
            }
        };
        Some(CallSpec {
            workflow,
            with: self.tree("with", call.with.as_ref()),
            catch: call.on_failure == ChildFailure::Catch,
            inherit_timeout: call.inherit_timeout,
            inherit_artifacts: call.inherit_artifacts,
            timeout_ms: def.execution.timeout_ms,
        })
    }

    fn wait(&mut self, wait: &WaitEvent) -> Option<WaitSpec> {
        let event = self.template("event", &wait.event);
        let key = self.expr("key", wait.key.as_ref());
        let default = wait.default.clone().filter(|_| wait.on_timeout == EventTimeout::Default);
        Some(WaitSpec { event: event?, key, take: wait.take, timeout_ms: wait.timeout_ms, default })
    }

    fn sleep(&mut self, sleep: &Sleep) -> Option<SleepSpec> {
        let duration = self.optional("for", sleep.duration.as_ref());
        let until = self.expr("until", sleep.until.as_ref());
        let spec = duration.map(SleepSpec::For).or(until.map(SleepSpec::Until));
        if spec.is_none() {
            self.bad.push(BadText::Missing("a `sleep` says neither how long nor until when"));
        }
        spec
    }
}

/// What a lone action reads, for the default mapping of its node or step.
pub(super) fn named(readings: &[Reading], scope: &Scope, items: &Items) -> Vec<Read> {
    let seen = readings.iter().map(|reading| &reading.read);
    let named = seen.filter(|read| &*read.root != "secret" && scope.sees(items, &read.root));
    wonder_lang::expr::minimal(named.cloned().collect())
}
