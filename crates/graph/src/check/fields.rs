//! Fields of an action that must be there, or must not be there together, and names it may not invent.

use super::Check;
use crate::codes;
use wonder_lang::def::{
    ActionDef, Assert, CommandLine, EventTimeout, GateTimeout, HttpRequest, HumanGate, Implementation,
    Isolation, LlmCall, Mock, Shell, Sleep, Spot, Text, ToolUse, WaitEvent,
};
use wonder_lang::problem::Problem;
use wonder_lang::value::Value;

impl Check<'_> {
    pub(super) fn fields(&mut self, action: &ActionDef) {
        let spot = action.spot;
        self.zero(action.execution.timeout_ms, spot, "the timeout of an action");
        let tries = action.execution.retry_policy.map(|retry| u64::from(retry.max_attempts));
        self.zero(tries, spot, "`max_attempts`");
        match &action.implementation {
            Implementation::LlmCall(call) => self.model_fields(call, spot),
            Implementation::HttpRequest(http) => self.http_fields(http, spot),
            Implementation::Shell(shell) => self.shell_fields(shell, spot),
            Implementation::Assert(assert) => self.assert_fields(assert, spot),
            Implementation::ArtifactWrite(write) => self.artifact_fields(write, spot),
            Implementation::HumanGate(gate) => self.gate_fields(gate, spot),
            Implementation::WaitEvent(wait) => self.wait_fields(wait, spot),
            Implementation::Sleep(sleep) => self.sleep_fields(sleep, spot),
            Implementation::Mock(mock) => self.mock_fields(mock, spot),
            Implementation::UpdateContext(update) => {
                if update.set.0.is_empty() {
                    self.bad_fields(
                        spot,
                        "`update_context` sets nothing",
                        "expected `set: {path: expression}`",
                    );
                }
            }
            Implementation::McpTool(tool) => self.known_server(&tool.server),
            Implementation::ArtifactRead(_) | Implementation::WorkflowCall(_) => {}
        }
    }

    pub(super) fn bad_fields(&mut self, spot: Spot, message: &str, label: &str) {
        self.report(Problem::error(codes::BAD_FIELDS, spot, message).label(label));
    }

    fn model_fields(&mut self, call: &LlmCall, spot: Spot) {
        let given = [call.prompt.is_some(), call.prompt_spec.is_some(), call.messages.is_some()];
        if given == [false; 3] {
            self.bad_fields(
                spot,
                "`llm_call` has nothing to say",
                "expected `prompt`, `prompt_spec` or `messages`",
            );
        } else if call.prompt.is_some() && call.prompt_spec.is_some() {
            self.bad_fields(spot, "`llm_call` has a `prompt` and a `prompt_spec`", "expected one of the two");
        }
        self.zero(call.max_tokens, spot, "`max_tokens`");
        if let Some(model) = &call.model {
            self.known_model(model);
        }
        if let Some(prompt) =
            call.prompt_spec.as_ref().filter(|name| !self.bundle.prompts.contains_key(&name.text))
        {
            let known = self.bundle.prompts.keys().map(|name| &**name);
            self.unknown(codes::UNKNOWN_PROMPT, prompt, "prompt", known);
        }
        for tool in &call.tools {
            match tool {
                ToolUse::Action(name) => self.known_tool(name),
                ToolUse::Server { mcp, .. } => self.known_server(mcp),
                ToolUse::Workflow { .. } | ToolUse::Ask { .. } => {}
            }
        }
    }

    pub(super) fn known_model(&mut self, model: &Text) {
        if !self.bundle.models.contains_key(&model.text) {
            let known = self.bundle.models.keys().map(|name| &**name);
            self.unknown(codes::UNKNOWN_MODEL, model, "model profile", known);
        }
    }

    pub(super) fn known_tool(&mut self, tool: &Text) {
        let actions = &self.bundle.actions;
        let Some(action) = actions.get(&tool.text) else {
            let known = actions.keys().map(|name| &**name).filter(|name| !name.contains(':'));
            return self.unknown(codes::UNKNOWN_TOOL, tool, "tool", known);
        };
        if action.description.is_none() {
            let message = format!("the tool `{tool}` does not say what it does");
            let problem = Problem::warning(codes::UNDESCRIBED_TOOL, tool.spot, message);
            let help = format!("write `description: …` on `{tool}`: a model chooses by it");
            self.report(problem.label("expected a `description` on it").help(help));
        }
    }

    fn http_fields(&mut self, http: &HttpRequest, spot: Spot) {
        if http.json.is_some() && http.body.is_some() {
            self.bad_fields(spot, "`http_request` has `json` and `body`", "expected one of the two");
        }
        self.address(&http.url);
        http.method.iter().for_each(|method| self.method(method));
        self.zero(http.max_bytes, spot, "`max_bytes`");
        for expected in http.expect.iter().filter(|expected| !is_status(expected)) {
            let message = format!("`expect` has {expected}, which is no status");
            self.bad_fields(spot, &message, "expected a status such as 204, or a class such as 2xx");
        }
    }

    fn shell_fields(&mut self, shell: &Shell, spot: Spot) {
        let empty = match &shell.command {
            CommandLine::Line(line) => line.as_str().trim().is_empty(),
            CommandLine::Arguments(list) => list.first().is_none_or(|program| program.as_str().is_empty()),
        };
        if empty {
            self.bad_fields(spot, "`shell` has no command", "expected a command line or a list of arguments");
        }
        if (shell.isolation == Isolation::Container) != shell.image.is_some() {
            self.bad_fields(
                spot,
                "`image` and `isolation: container` go together",
                "expected both or neither",
            );
        }
        let limits = shell.limits;
        for (value, what) in [
            (limits.cpu, "`limits.cpu`"),
            (limits.memory, "`limits.memory`"),
            (limits.files, "`limits.files`"),
            (limits.output_bytes, "`limits.output_bytes`"),
        ] {
            self.zero(value, spot, what);
        }
    }

    fn assert_fields(&mut self, assert: &Assert, spot: Spot) {
        let that = assert.that.is_some();
        let fits = (assert.value.is_some(), assert.schema.is_some());
        let scores = (assert.score.is_some(), assert.score_at_least.is_some());
        let forms = [that, fits.0 || fits.1, scores.0 || scores.1].iter().filter(|given| **given).count();
        if forms != 1 || fits.0 != fits.1 || scores.0 != scores.1 {
            self.bad_fields(
                spot,
                "`assert` needs exactly one test",
                "expected `that`, or `value` and `schema`, or `score` and `score_at_least`",
            );
        }
    }

    fn gate_fields(&mut self, gate: &HumanGate, spot: Spot) {
        self.zero(gate.timeout_ms, spot, "the timeout of a gate");
        self.zero(gate.remind_every_ms, spot, "`remind_every`");
        if gate.quorum == Some(0) {
            self.bad_fields(spot, "`quorum: 0` asks nobody", "expected 1 or more");
        }
        match gate.on_timeout {
            GateTimeout::Default if gate.default.is_none() => {
                self.bad_fields(spot, "`on_timeout: default` without a `default`", "expected `default: …`");
            }
            GateTimeout::Escalate if gate.escalate.is_empty() => {
                self.bad_fields(
                    spot,
                    "`on_timeout: escalate` without assignees",
                    "expected `escalate: [who]`",
                );
            }
            _ => {}
        }
    }

    fn wait_fields(&mut self, wait: &WaitEvent, spot: Spot) {
        self.zero(wait.timeout_ms, spot, "the timeout of a wait");
        if wait.event.as_str().trim().is_empty() {
            self.bad_fields(spot, "`wait_event` waits for nothing", "expected the name of an event");
        }
        if wait.on_timeout == EventTimeout::Default && wait.default.is_none() {
            self.bad_fields(spot, "`on_timeout: default` without a `default`", "expected `default: …`");
        }
    }

    fn sleep_fields(&mut self, sleep: &Sleep, spot: Spot) {
        if sleep.duration.is_some() == sleep.until.is_some() {
            self.bad_fields(spot, "`sleep` needs `for` or `until`, and not both", "expected one of the two");
        }
        let plain = sleep.duration.as_ref().filter(|text| !text.as_str().contains('{'));
        if let Some(text) = plain.filter(|text| wonder_lang::time::parse_duration_ms(&text.text).is_none()) {
            let message = format!("`{text}` is not a duration");
            self.bad_fields(text.spot, &message, "expected a duration such as `30s`, `5m` or `2d`");
        }
    }

    fn mock_fields(&mut self, mock: &Mock, spot: Spot) {
        if mock.outcomes.is_empty() {
            self.bad_fields(
                spot,
                "`mock` has no outcomes",
                "expected `output`, `error` or a list of `outcomes`",
            );
        }
        if mock.outcomes.iter().any(|outcome| outcome.output.is_some() && outcome.error.is_some()) {
            self.bad_fields(
                spot,
                "an outcome of `mock` has an `output` and an `error`",
                "expected one of the two",
            );
        }
    }
}

/// `204` or `2xx`.
fn is_status(expected: &Value) -> bool {
    match expected {
        Value::Int(status) => (100..=599).contains(status),
        Value::String(text) => match text.as_bytes() {
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => class.is_ascii_digit(),
            _ => text.parse::<u16>().is_ok_and(|status| (100..=599).contains(&status)),
        },
        _ => false,
    }
}
