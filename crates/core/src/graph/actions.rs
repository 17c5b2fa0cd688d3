//! Actions, compiled once however many steps name them.

use std::sync::Arc;

use super::check::Check;
use super::codes;
use super::scope::{Items, Scope, Use};
use super::texts::{ActionText, TextKind, Texts};
use super::work::{
    ArtifactSpec, CommandSpec, HttpSpec, McpCall, MockErrorSpec, MockOutcomeSpec, MockSpec, ModelCall,
    ModelTable, PromptUse, ShellSpec, Work,
};
use super::{
    Action, Assertion, AssertionTest, CallSpec, CalleeSpec, Coordinated, GateSpec, SleepSpec, WaitSpec,
};
use crate::def::{
    self, ActionDef, Assert, Callee, ChildFailure, CommandLine, Effect, EventTimeout, HttpRequest, HumanGate,
    Implementation, LlmCall, Mock, Name, Shell, Sleep, Spot, Text, WaitEvent, WorkflowCall,
};
use crate::expr::Read;
use crate::problem::Problem;
use crate::value::Value;

/// One path that one of an action's texts reads. Whether it may is for each place that uses the action.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) read: Read,
    text: Name,
    spot: Spot,
    pub(super) kind: TextKind,
    prompt: Option<Name>,
}

impl Reading {
    pub(super) fn as_use(&self) -> Use<'_> {
        Use {
            read: &self.read,
            text: &self.text,
            spot: self.spot,
            template: matches!(self.kind, TextKind::Template | TextKind::CalleeTemplate),
            prompt: self.prompt.as_deref(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct KnownAction {
    pub(super) action: Arc<Action>,
    pub(super) readings: Arc<Vec<Reading>>,
}

impl Check<'_> {
    pub(super) fn action(&mut self, name: &Name, def: &Arc<ActionDef>) -> KnownAction {
        self.fields(def);
        let mut texts = Texts::new(self);
        let work = texts.work(def);
        let coordinated = texts.coordinated(name, def);
        let (secrets, found) = (texts.secrets(), texts.found);
        self.secrets(&found);
        let requires = self.schema(def.requires.as_ref(), "`requires`");
        let produces = self.schema(def.produces.as_ref(), "`produces`");
        let effect = self.effect(def, work.as_ref());
        let (name, def) = (name.clone(), def.clone());
        let action = Action { name, def, requires, produces, effect, coordinated, work, secrets };
        KnownAction {
            action: Arc::new(action),
            readings: Arc::new(found.iter().flat_map(readings).collect()),
        }
    }

    /// What the action says, or its kind; with tools, the strongest of it and of all that may be offered.
    fn effect(&self, def: &ActionDef, work: Option<&Work>) -> Effect {
        let Some(Work::LlmCall(call)) = work else { return def.effect() };
        let may_be_offered = call.offered.iter().chain(&self.changed_tools);
        let tools = may_be_offered.filter_map(|name| call.table.tools.get(name));
        tools.map(|tool| tool.effect).fold(def.effect(), Effect::max)
    }

    /// What the model calls of the workflow share; made for the first of them.
    fn model_table(&mut self) -> Arc<ModelTable> {
        if let Some(table) = &self.model_table {
            return table.clone();
        }
        let bundle = self.bundle;
        let is_tool = |def: &ActionDef| matches!(def.implementation, Implementation::McpTool(_));
        let tools = bundle.actions.iter().filter(|(_, def)| is_tool(def));
        let tools = tools.map(|(name, def)| (name.clone(), self.action(name, def).action)).collect();
        let rules = bundle.workflow.nodes.iter().flat_map(|node| &node.on_error);
        let changes = rules.chain(&bundle.workflow.on_error).filter_map(|rule| match &rule.response {
            def::Response::Change(change) => change.tools.as_ref(),
            _ => None,
        });
        self.changed_tools = changes.flatten().map(|tool| tool.text.clone()).collect();
        let table = Arc::new(ModelTable { profiles: bundle.models.clone(), tools });
        self.model_table = Some(table.clone());
        table
    }
}

/// What a text reads, path by path.
fn readings(text: &ActionText) -> impl Iterator<Item = Reading> {
    text.reads.iter().map(|read| Reading {
        read: read.clone(),
        text: text.text.text.clone(),
        spot: text.prompt.as_ref().map_or(text.text.spot, |name| name.spot),
        kind: text.kind,
        prompt: text.prompt.as_ref().map(|name| name.text.clone()),
    })
}

impl Texts<'_, '_> {
    /// What a worker needs of the action; None for the coordinator's.
    fn work(&mut self, def: &ActionDef) -> Option<Work> {
        Some(match &def.implementation {
            Implementation::LlmCall(call) => Work::LlmCall(Box::new(self.model_call(call)?)),
            Implementation::McpTool(tool) => {
                let (server, name) =
                    (self.template("server", &tool.server), self.template("tool", &tool.tool));
                let arguments = self.tree("arguments", tool.arguments.as_ref());
                Work::McpTool(McpCall { server: server?, tool: name?, arguments })
            }
            Implementation::HttpRequest(http) => Work::HttpRequest(Box::new(self.http(http)?)),
            Implementation::Shell(shell) => Work::Shell(Box::new(self.shell(shell)?)),
            Implementation::ArtifactWrite(write) => {
                let artifact_type = self.optional("type", write.artifact_type.as_ref());
                let name = self.template("name", &write.name);
                let path = self.optional("path", write.path.as_ref());
                let content = self.tree("content", write.content.as_ref());
                Work::ArtifactWrite(ArtifactSpec { artifact_type, name: name?, content, path })
            }
            Implementation::ArtifactRead(read) => {
                Work::ArtifactRead { reference: self.template("ref", &read.reference)? }
            }
            Implementation::Mock(mock) => Work::Mock(self.mock(mock)),
            _ => return None,
        })
    }

    fn model_call(&mut self, call: &LlmCall) -> Option<ModelCall> {
        let prompt = self.optional("prompt", call.prompt.as_ref());
        let system = self.optional("system", call.system.as_ref());
        let messages = self.tree("messages", call.messages.as_ref());
        let output_schema = self.check.schema(call.output_schema.as_ref(), "`output_schema`");
        let bundle = self.check.bundle;
        let spec = call.prompt_spec.as_ref().and_then(|name| Some((name, bundle.prompts.get(&name.text)?)));
        let (spec_system, spec_prompt) = spec.map_or((None, None), |(name, spec)| {
            self.of_prompt(name, |texts| {
                (texts.optional("system", spec.system.as_ref()), texts.template("template", &spec.template))
            })
        });
        let prompt_spec = spec.map(|(name, spec)| PromptUse {
            name: name.text.clone(),
            requires: self.check.schema(spec.requires.as_ref(), "`requires`"),
            produces: self.check.schema(spec.produces.as_ref(), "`produces`"),
            examples: spec.examples.clone(),
        });
        Some(ModelCall {
            model: call.model.as_ref().map(|model| model.text.clone()),
            table: self.check.model_table(),
            system: system.or(spec_system),
            prompt: prompt.or(spec_prompt),
            prompt_spec,
            messages,
            output_schema,
            offered: call.tools.iter().map(|tool| tool.text.clone()).collect(),
            max_turns: call.max_turns,
            max_tokens: call.max_tokens,
            temperature: call.temperature,
            stop: call.stop.clone(),
            stream: call.stream,
        })
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
            Implementation::HumanGate(gate) => Coordinated::HumanGate(self.gate(name, gate, def.spot)?),
            Implementation::WorkflowCall(call) => Coordinated::WorkflowCall(self.call(call, def)?),
            Implementation::WaitEvent(wait) => Coordinated::WaitEvent(self.wait(wait)?),
            Implementation::Sleep(sleep) => Coordinated::Sleep(self.sleep(sleep)?),
            _ => return None,
        })
    }

    fn assertion(&mut self, assert: &Assert) -> Option<Assertion> {
        let message = self.optional("message", assert.message.as_ref());
        let schema = self.check.schema(assert.schema.as_ref(), "`schema`");
        let that = self.expr("that", assert.that.as_ref());
        let value = self.expr("value", assert.value.as_ref());
        let score = self.expr("score", assert.score.as_ref());
        let at_least = assert.score_at_least.as_ref().map(|tree| self.mapping("score_at_least", tree));
        let test = if let Some(that) = that {
            AssertionTest::That(that)
        } else if let Some(value) = value {
            AssertionTest::Fits { value, schema: schema? }
        } else {
            AssertionTest::Scores { score: score?, at_least: at_least? }
        };
        Some(Assertion { test, message })
    }

    fn gate(&mut self, name: &Name, gate: &HumanGate, spot: Spot) -> Option<GateSpec> {
        let form = self.check.schema(gate.form.as_ref(), "`form`");
        if let (Some(form), Some(default)) = (&form, &gate.default)
            && let Err(violations) = form.check(default)
        {
            let why = violations.first().map_or("", |violation| &violation.message);
            let message = format!("the gate's `default` does not fit its `form`: {why}");
            self.check.report(
                Problem::error(codes::SCHEMA_FORBIDS, spot, message)
                    .label("expected an answer that the form allows"),
            );
        }
        let title = match &gate.title {
            Some(title) => self.template("title", title),
            None => self.check.template(&Text::new(name.clone())),
        };
        Some(GateSpec {
            body: self.optional("body", gate.body.as_ref()),
            form,
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
        Some(WaitSpec { event: event?, key, timeout_ms: wait.timeout_ms, default })
    }

    fn sleep(&mut self, sleep: &Sleep) -> Option<SleepSpec> {
        let duration = self.optional("for", sleep.duration.as_ref());
        let until = self.expr("until", sleep.until.as_ref());
        duration.map(SleepSpec::For).or(until.map(SleepSpec::Until))
    }
}

/// What a lone action reads, for the default mapping of its node or step.
pub(super) fn named(readings: &[Reading], scope: &Scope, items: &Items) -> Vec<Read> {
    let seen = readings.iter().map(|reading| &reading.read);
    let named = seen.filter(|read| &*read.root != "secret" && scope.sees(items, &read.root));
    crate::expr::minimal(named.cloned().collect())
}
