//! What an action does, by kind, short forms included.

use wonder_core::def::{
    ArtifactRead, ArtifactWrite, Assert, Callee, CommandLine, HttpRequest, HumanGate, Implementation,
    LlmCall, McpTool, Mock, MockError, MockOutcome, MockUsage, Shell, ShellLimits, Sleep, Text, ToolUse,
    Tree, UpdateContext, WaitEvent, WorkflowCall,
};
use wonder_core::error::ErrorKind;

use super::{Build, DocumentKind, FileCall, one_or_list, word};
use crate::tree::{Data, Node};

impl Build {
    /// Whatever cannot be read becomes an action that does nothing.
    pub(super) fn implementation(&mut self, kind: &str, node: &Node<'_>) -> Implementation {
        match kind {
            "llm_call" => Implementation::LlmCall(self.llm_call(node)),
            "mcp_tool" => Implementation::McpTool(McpTool {
                server: self.text_or_empty(node, "server"),
                tool: self.text_or_empty(node, "tool"),
                arguments: self.tree(node, "arguments"),
            }),
            "http_request" => Implementation::HttpRequest(self.http_request(node)),
            "shell" => Implementation::Shell(self.shell(node)),
            "update_context" => Implementation::UpdateContext(UpdateContext {
                set: self.writes(node, "set").unwrap_or_default(),
            }),
            "assert" => Implementation::Assert(self.assert(node)),
            "artifact_write" => Implementation::ArtifactWrite(ArtifactWrite {
                artifact_type: self.text(node, "type"),
                name: self.text_or_empty(node, "name"),
                content: self.tree(node, "content"),
                path: self.text(node, "path"),
            }),
            "artifact_read" => {
                Implementation::ArtifactRead(ArtifactRead { reference: self.short(node, "ref") })
            }
            "human_gate" => Implementation::HumanGate(self.human_gate(node)),
            "workflow_call" => Implementation::WorkflowCall(self.workflow_call(node)),
            "wait_event" => Implementation::WaitEvent(WaitEvent {
                event: self.short(node, "event"),
                key: self.text(node, "key"),
                take: self.word(node, "take").unwrap_or_default(),
                timeout_ms: self.duration(node, "timeout"),
                on_timeout: self.word(node, "on_timeout").unwrap_or_default(),
                default: node.get("default").map(Node::value),
            }),
            "sleep" => Implementation::Sleep(self.sleep(node)),
            "mock" => Implementation::Mock(self.mock(node)),
            _ => placeholder(),
        }
    }

    /// The value itself if it is a short form, else what is under `key`; empty if neither is there.
    fn short(&mut self, node: &Node<'_>, key: &str) -> Text {
        self.text_of(node).unwrap_or_else(|| self.text_or_empty(node, key))
    }

    fn llm_call(&mut self, node: &Node<'_>) -> LlmCall {
        let prompt_spec = node.get("prompt_spec").and_then(|name| self.name_at(DocumentKind::Prompt, name));
        LlmCall {
            model: self.text(node, "model"),
            prompt: self.text(node, "prompt"),
            prompt_spec: prompt_spec.map(|(name, _)| name),
            system: self.text(node, "system"),
            messages: self.tree(node, "messages"),
            output_schema: self.schema(node, "output_schema"),
            tools: self.tools(node),
            tool_choice: self.text(node, "tool_choice"),
            on_violation: self.word(node, "on_violation").unwrap_or_default(),
            max_turns: None,
            max_tokens: self.count(node, "max_tokens"),
            temperature: match node.get("temperature").map(|node| &node.data) {
                Some(Data::Int(number)) => Some(*number as f64),
                Some(Data::Float(number)) => Some(*number),
                _ => None,
            },
            stop: self.names(node, "stop"),
            reasoning: self.word(node, "reasoning"),
            cache: self.word(node, "cache").unwrap_or_default(),
            images: self.texts(node, "images"),
            stream: None,
        }
    }

    /// Names of actions, and maps that say what else a model may call.
    pub(super) fn tools(&mut self, map: &Node<'_>) -> Vec<ToolUse> {
        let Some(list) = map.get("tools") else { return Vec::new() };
        one_or_list(list).iter().filter_map(|tool| self.tool(tool)).collect()
    }

    fn tool(&mut self, node: &Node<'_>) -> Option<ToolUse> {
        if node.text().is_some() {
            return Some(ToolUse::Action(self.name_at(DocumentKind::Action, node)?.0));
        }
        if let Some(mcp) = self.text(node, "mcp") {
            return Some(ToolUse::Server { mcp, only: self.names(node, "only") });
        }
        if let Some(workflow) = node.get("workflow") {
            let workflow = self.name_at(DocumentKind::Workflow, workflow)?.0;
            let (description, requires) = (self.name(node, "description"), self.schema(node, "requires"));
            return Some(ToolUse::Workflow { workflow, description, requires });
        }
        Some(ToolUse::Ask { ask: self.text(node, "ask")? })
    }

    fn http_request(&mut self, node: &Node<'_>) -> HttpRequest {
        HttpRequest {
            method: self.text(node, "method"),
            url: self.short(node, "url"),
            query: self.tree(node, "query"),
            headers: self.tree(node, "headers"),
            json: self.tree(node, "json"),
            body: self.text(node, "body"),
            expect: node
                .get("expect")
                .map_or_else(Vec::new, |e| one_or_list(e).iter().map(Node::value).collect()),
            max_bytes: self.count(node, "max_bytes"),
            allow_private: self.flag(node, "allow_private"),
        }
    }

    fn shell(&mut self, node: &Node<'_>) -> Shell {
        let command = if matches!(node.data, Data::Map(_)) { node.get("command") } else { Some(node) };
        let limits = node.get("limits");
        let limit = |key: &str| limits.and_then(|limits| self.count(limits, key));
        let limits = ShellLimits {
            cpu: limit("cpu"),
            memory: limit("memory"),
            files: limit("files"),
            output_bytes: limit("output_bytes"),
        };
        let exits = node.get("expect_exit").map_or(&[][..], one_or_list);
        let exits = exits.iter().filter_map(|exit| match exit.data {
            Data::Int(code) => i32::try_from(code).ok(),
            _ => None,
        });
        Shell {
            expect_exit: exits.collect(),
            command: self.command(command),
            cwd: self.text(node, "cwd"),
            env: self.tree(node, "env"),
            stdin: self.text(node, "stdin"),
            isolation: self.word(node, "isolation").unwrap_or_default(),
            limits,
            image: self.text(node, "image"),
            network: self.maybe_flag(node, "network"),
        }
    }

    fn command(&mut self, node: Option<&Node<'_>>) -> CommandLine {
        match node.map(|node| (node, &node.data)) {
            Some((_, Data::List(items))) => {
                CommandLine::Arguments(items.iter().filter_map(|item| self.text_of(item)).collect())
            }
            Some((node, _)) => CommandLine::Line(self.text_of(node).unwrap_or_default()),
            None => CommandLine::Line(Text::default()),
        }
    }

    fn assert(&mut self, node: &Node<'_>) -> Assert {
        let at_least = node
            .get("score_at_least")
            .filter(|node| matches!(node.data, Data::Int(_) | Data::Float(_) | Data::Text(_)));
        Assert {
            that: self.text_of(node).or_else(|| self.text(node, "that")),
            message: self.text(node, "message"),
            value: self.text(node, "value"),
            schema: self.schema(node, "schema"),
            score: self.text(node, "score"),
            score_at_least: at_least.map(|node| self.tree_of(node)),
        }
    }

    fn human_gate(&mut self, node: &Node<'_>) -> HumanGate {
        HumanGate {
            title: self.text_of(node).or_else(|| self.text(node, "title")),
            body: self.text(node, "body"),
            form: self.schema(node, "form"),
            form_from: self.expression(node, "form"),
            assignees: self.texts(node, "assignees"),
            quorum: self.positive(node, "quorum"),
            timeout_ms: self.duration(node, "timeout"),
            on_timeout: self.word(node, "on_timeout").unwrap_or_default(),
            default: node.get("default").map(Node::value),
            escalate: self.texts(node, "escalate"),
            remind_every_ms: self.duration(node, "remind_every"),
        }
    }

    fn workflow_call(&mut self, node: &Node<'_>) -> WorkflowCall {
        let from_context = node.get("workflow").and_then(|workflow| self.text(workflow, "from_context"));
        let callee = self.callee(node);
        WorkflowCall {
            workflow: match from_context {
                Some(from_context) => Callee::FromContext { from_context },
                None => Callee::Named(callee),
            },
            with: self.tree(node, "with"),
            on_failure: self.word(node, "on_failure").unwrap_or_default(),
            inherit_timeout: self.flag(node, "inherit_timeout"),
            inherit_artifacts: self.flag(node, "inherit_artifacts"),
        }
    }

    /// The name of a workflow, perhaps with a version, or a template; of a file, what the reader will find in it.
    fn callee(&mut self, node: &Node<'_>) -> Text {
        if let Some(path) = self.text(node, "file") {
            let name = self.text(node, "workflow");
            let callee = Text {
                text: path.text.clone(),
                spot: self.spots.add(self.spots.span(path.spot).unwrap_or_default()),
            };
            self.file_calls.insert(callee.spot, FileCall { path, workflow: name.map(|name| name.text) });
            return callee;
        }
        let written = self.short(node, "workflow");
        match crate::check::split_version(&written.text) {
            (name, Some(version)) if !written.text.contains('{') => {
                let name = Text { text: name.into(), spot: written.spot };
                self.version_of(DocumentKind::Workflow, &name, version.parse().ok());
                name
            }
            _ => written,
        }
    }

    fn sleep(&mut self, node: &Node<'_>) -> Sleep {
        Sleep {
            duration: self.text_of(node).or_else(|| self.text(node, "for")),
            until: self.text(node, "until"),
        }
    }

    fn mock(&mut self, node: &Node<'_>) -> Mock {
        let outcomes = match node.get("outcomes") {
            Some(list) => list.items().iter().map(|outcome| self.outcome(outcome)).collect(),
            None => vec![self.outcome(node)],
        };
        Mock { outcomes }
    }

    fn outcome(&mut self, node: &Node<'_>) -> MockOutcome {
        let usage = node.get("usage");
        let number = |key: &str| usage.and_then(|usage| self.count(usage, key)).unwrap_or(0);
        let usage = MockUsage {
            input_tokens: number("input_tokens"),
            output_tokens: number("output_tokens"),
            usd_micros: usage.and_then(|usage| self.money(usage, "cost_usd")).unwrap_or(0),
        };
        let error = node.get("error").and_then(|error| self.mock_error(error));
        let delay_ms = self.duration(node, "delay");
        MockOutcome { output: self.output(node), error, delay_ms, usage }
    }

    /// `output: null` is a result as good as any.
    fn output(&mut self, node: &Node<'_>) -> Option<Tree> {
        self.tree(node, "output")
    }

    fn mock_error(&mut self, node: &Node<'_>) -> Option<MockError> {
        let kind: ErrorKind = word(node.text().or_else(|| node.get("kind")?.text())?)?;
        Some(MockError { kind, message: self.text(node, "message") })
    }
}

/// Stands for an action that could not be read.
pub(super) fn placeholder() -> Implementation {
    Implementation::Mock(Mock { outcomes: vec![MockOutcome::default()] })
}
