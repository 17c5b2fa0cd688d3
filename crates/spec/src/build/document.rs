//! Documents: what each defines, and the definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::def::{
    ActionDef, ArtifactType, Bundle, Kind, McpServer, ModelProfile, Name, NodeDef, Prices, PromptSpec, Rate,
    Sampling, TaskDef, Text, TransitionDef, WorkflowDef,
};

use super::Build;
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::shape::{
    ACTION_DOCUMENT, ARTIFACT_TYPE_DOCUMENT, MODEL_DOCUMENT, PROMPT_DOCUMENT, Shape, TASK_DOCUMENT,
    WORKFLOW_DOCUMENT, is_kind,
};
use crate::tree::{Data, Node};

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum DocumentKind {
    Workflow,
    Task,
    Action,
    Prompt,
    Model,
    ArtifactType,
}

impl DocumentKind {
    /// By `kind`, else by a key that only one of them has. None: nothing tells.
    pub(crate) fn of(node: &Node<'_>) -> Option<DocumentKind> {
        let has = |key: &str| node.entry(key).is_some();
        match node.get("kind").and_then(Node::text) {
            Some("workflow" | "graph" | "dag") => return Some(DocumentKind::Workflow),
            Some("task") => return Some(DocumentKind::Task),
            Some("action") => return Some(DocumentKind::Action),
            Some(kind) if is_kind(kind) => return Some(DocumentKind::Action),
            Some("prompt") => return Some(DocumentKind::Prompt),
            Some("model") => return Some(DocumentKind::Model),
            Some("artifact_type") => return Some(DocumentKind::ArtifactType),
            _ => {}
        }
        Some(match () {
            () if has("nodes") => DocumentKind::Workflow,
            () if has("steps") => DocumentKind::Task,
            () if node.entries().iter().any(|entry| is_kind(&entry.key)) => DocumentKind::Action,
            () if has("template") => DocumentKind::Prompt,
            () if has("model") => DocumentKind::Model,
            () if has("media_type") => DocumentKind::ArtifactType,
            () => return None,
        })
    }

    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            DocumentKind::Workflow => WORKFLOW_DOCUMENT,
            DocumentKind::Task => TASK_DOCUMENT,
            DocumentKind::Action => ACTION_DOCUMENT,
            DocumentKind::Prompt => PROMPT_DOCUMENT,
            DocumentKind::Model => MODEL_DOCUMENT,
            DocumentKind::ArtifactType => ARTIFACT_TYPE_DOCUMENT,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            DocumentKind::Workflow => "workflow",
            DocumentKind::Task => "task",
            DocumentKind::Action => "action",
            DocumentKind::Prompt => "prompt",
            DocumentKind::Model => "model",
            DocumentKind::ArtifactType => "artifact type",
        }
    }
}

/// A document, built.
pub(crate) enum Built {
    /// With everything written inside it.
    Workflow(Box<Bundle>),
    /// With the actions written in its steps.
    Task(TaskDef, BTreeMap<Name, Arc<ActionDef>>),
    Action(ActionDef),
    Prompt(PromptSpec),
    Model(ModelProfile),
    ArtifactType(ArtifactType),
}

/// Everything that can be named, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub tasks: BTreeMap<Name, Arc<TaskDef>>,
    pub actions: BTreeMap<Name, Arc<ActionDef>>,
    pub prompts: BTreeMap<Name, PromptSpec>,
    pub models: BTreeMap<Name, ModelProfile>,
    pub artifact_types: BTreeMap<Name, ArtifactType>,
    /// Of a workflow; no document of its own.
    pub mcp_servers: BTreeMap<Name, McpServer>,
}

impl Build {
    /// What a document defines: one thing, and for a workflow the agents in it as workflows of their own.
    pub(crate) fn document(&mut self, kind: DocumentKind, node: &Node<'_>) -> Vec<Built> {
        let name = self.text(node, "name").unwrap_or_else(|| self.spots.text("unnamed", node.span));
        vec![match kind {
            DocumentKind::Workflow => {
                let bundles = self.with_agents(name, node);
                return bundles.into_iter().map(|bundle| Built::Workflow(Box::new(bundle))).collect();
            }
            DocumentKind::Task => {
                let task = self.task(name, node);
                Built::Task(task, std::mem::take(&mut self.actions))
            }
            DocumentKind::Action => Built::Action(self.action(name, node)),
            DocumentKind::Prompt => Built::Prompt(self.prompt(name, node)),
            DocumentKind::Model => Built::Model(self.model(name, node)),
            DocumentKind::ArtifactType => Built::ArtifactType(self.artifact_type(name, node)),
        }]
    }

    /// A workflow, and its agents written out. They know what it knows by name.
    fn with_agents(&mut self, name: Text, node: &Node<'_>) -> Vec<Bundle> {
        let mut agents = Vec::new();
        let parent = self.workflow(name, node, &mut agents);
        let mut bundles = vec![parent];
        for agent in agents {
            let name = self.text_or_empty(&agent, "name");
            let mut child = self.workflow(name, &agent, &mut Vec::new());
            let parent = &bundles[0];
            child.models.clone_from(&parent.models);
            child.prompts.clone_from(&parent.prompts);
            child.artifact_types.clone_from(&parent.artifact_types);
            child.mcp_servers.clone_from(&parent.mcp_servers);
            let named = parent.actions.iter().filter(|(name, _)| !name.contains(':'));
            child.actions.extend(named.map(|(name, action)| (name.clone(), action.clone())));
            child.workflow.project_id.clone_from(&parent.workflow.project_id);
            bundles.push(child);
        }
        bundles
    }

    fn workflow<'s>(&mut self, name: Text, node: &Node<'s>, agents: &mut Vec<Node<'s>>) -> Bundle {
        let mut transitions = Vec::new();
        let nodes = self.nodes(&name, node, &mut transitions, agents);
        for transition in node.get("transitions").map_or(&[][..], Node::items) {
            if let Some(from) = self.text(transition, "from") {
                transitions.extend(self.transition(transition, from));
            }
        }
        let kind = self.kind(node, &nodes, &mut transitions);
        let named = self.named(node);
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.extend(named.tasks);
        let mut actions = std::mem::take(&mut self.actions);
        actions.extend(named.actions);
        let workflow = self.workflow_def(name, node, kind, nodes, transitions);
        let Parts { prompts, models, artifact_types, mcp_servers, .. } = named;
        Bundle { workflow, tasks, actions, prompts, models, artifact_types, mcp_servers }
    }

    fn workflow_def(
        &mut self,
        name: Text,
        node: &Node<'_>,
        kind: Kind,
        nodes: Vec<NodeDef>,
        transitions: Vec<TransitionDef>,
    ) -> WorkflowDef {
        let labels = node.get("labels").map_or(&[][..], Node::entries);
        let label = |entry: &crate::tree::Entry<'_>| {
            Some((entry.key.as_ref().into(), self.scalar(&entry.value)?.as_ref().into()))
        };
        WorkflowDef {
            labels: labels.iter().filter_map(label).collect(),
            id: self.name(node, "id"),
            version: self.count(node, "version"),
            spot: name.spot,
            name,
            description: self.name(node, "description"),
            project_id: self.name(node, "project_id"),
            library_id: self.name(node, "library_id"),
            tags: self.names(node, "tags"),
            kind,
            input_schema: self.schema(node, "input_schema"),
            context_schema: self.schema(node, "context_schema"),
            output_schema: self.schema(node, "output_schema"),
            output_mapping: self.mapping(node, "output_mapping"),
            initial_node: self.text(node, "initial_node"),
            nodes,
            transitions,
            timeout_ms: self.duration(node, "timeout"),
            on_timeout: self.word(node, "on_timeout").unwrap_or_default(),
            on_error: self.rules(node),
            budget: self.budget(node),
            concurrency: self.concurrency(node),
            max_parallel: self.positive(node, "max_parallel"),
            mutations_max: self.count(node, "mutations_max"),
            nodes_max: self.positive(node, "nodes_max"),
            triggers: node.get("triggers").map(Node::value),
            context_tables: self.flag(node, "context_tables"),
            fail_fast: self.maybe_flag(node, "fail_fast").or((kind == Kind::Dag).then_some(false)),
            created_at: self.name(node, "created_at"),
            updated_at: self.name(node, "updated_at"),
        }
    }

    /// As a map by ref, in the order written, or as a list.
    fn nodes<'s>(
        &mut self,
        workflow: &Text,
        node: &Node<'s>,
        transitions: &mut Vec<TransitionDef>,
        agents: &mut Vec<Node<'s>>,
    ) -> Vec<NodeDef> {
        let written: Vec<(Text, &Node<'s>)> = match node.get("nodes").map(|nodes| &nodes.data) {
            Some(Data::Map(entries)) => {
                let spots = &mut self.spots;
                let entries = entries.list.iter();
                entries.map(|entry| (spots.text(&entry.key, entry.key_span), &entry.value)).collect()
            }
            Some(Data::List(items)) => {
                items.iter().filter_map(|item| Some((self.text(item, "ref")?, item))).collect()
            }
            _ => Vec::new(),
        };
        let mut nodes = Vec::with_capacity(written.len());
        for (reference, node) in written {
            let agent = self.agent(&workflow.text, &reference.text, node);
            let caller = agent.map(|agent| {
                agents.push(agent.child);
                agent.caller
            });
            nodes.push(self.node(reference, caller.as_ref().unwrap_or(node), transitions));
        }
        nodes
    }

    /// As written, else a dag if a node has `needs`. A dag with transitions is reported once, and loses them.
    fn kind(&mut self, node: &Node<'_>, nodes: &[NodeDef], transitions: &mut Vec<TransitionDef>) -> Kind {
        let needs = nodes.iter().find_map(|node| node.needs.first());
        let written = node.get("kind").and_then(Node::text);
        let kind = match written {
            Some("graph") => Kind::Graph,
            Some("dag") => Kind::Dag,
            _ if needs.is_some() => Kind::Dag,
            _ => Kind::Graph,
        };
        if kind == Kind::Dag
            && let Some(first) = transitions.first()
        {
            let span = self.spots.span(first.to.spot).unwrap_or_default();
            let message = "a workflow has transitions or `needs`, not both";
            let problem = Diagnostic::error(codes::GRAPH_AND_DAG, span, message)
                .label("a transition here")
                .help("keep `next` and `transitions` for a graph, `needs` for a dag");
            self.problems.push(match needs.and_then(|need| self.spots.span(need.spot)) {
                Some(need) => problem.also(need, "`needs` here makes it a dag"),
                None => problem,
            });
            transitions.clear();
        }
        kind
    }

    /// `tasks`, `actions`, `prompts`, `models`, `artifact_types` and `mcp_servers` of a workflow.
    fn named(&mut self, node: &Node<'_>) -> Parts {
        let mut parts = Parts::default();
        let each = |key: &str| node.get(key).map_or(&[][..], Node::entries);
        for entry in each("tasks") {
            let name = self.spots.text(&entry.key, entry.key_span);
            parts.tasks.insert(name.text.clone(), Arc::new(self.task(name, &entry.value)));
        }
        for entry in each("actions").iter().chain(each("tools")) {
            let name = self.spots.text(&entry.key, entry.key_span);
            parts.actions.insert(name.text.clone(), Arc::new(self.action(name, &entry.value)));
        }
        for entry in each("prompts") {
            let name = self.spots.text(&entry.key, entry.key_span);
            parts.prompts.insert(name.text.clone(), self.prompt(name, &entry.value));
        }
        for entry in each("models") {
            let name = self.spots.text(&entry.key, entry.key_span);
            parts.models.insert(name.text.clone(), self.model(name, &entry.value));
        }
        for entry in each("artifact_types") {
            let name = self.spots.text(&entry.key, entry.key_span);
            parts.artifact_types.insert(name.text.clone(), self.artifact_type(name, &entry.value));
        }
        for entry in each("mcp_servers") {
            let name = self.spots.text(&entry.key, entry.key_span);
            parts.mcp_servers.insert(name.text.clone(), self.mcp_server(name, &entry.value));
        }
        parts
    }

    fn prompt(&mut self, name: Text, node: &Node<'_>) -> PromptSpec {
        PromptSpec {
            id: self.name(node, "id"),
            version: self.count(node, "version"),
            spot: name.spot,
            name,
            system: self.text(node, "system"),
            template: self.text_or_empty(node, "template"),
            requires: self.schema(node, "requires"),
            produces: self.schema(node, "produces"),
            examples: node.get("examples").map_or(&[][..], Node::items).iter().map(Node::value).collect(),
        }
    }

    fn model(&mut self, name: Text, node: &Node<'_>) -> ModelProfile {
        let parameters = node.get("parameters").map_or(&[][..], Node::entries).iter();
        let price = |key: &str| node.get("prices").and_then(|prices| self.money(prices, key));
        let prices = node.get("prices").map(|_| Prices {
            input: price("input").unwrap_or(0),
            output: price("output").unwrap_or(0),
            cached_input: price("cached_input"),
            cache_write: price("cache_write"),
        });
        let rate = node.get("rate");
        let rate = rate.map(|rate| Rate { rpm: self.count(rate, "rpm"), tpm: self.count(rate, "tpm") });
        let headers = self.texts_by_name(node, "headers");
        ModelProfile {
            id: self.name(node, "id"),
            version: self.count(node, "version"),
            spot: name.spot,
            name,
            provider: self.name(node, "provider"),
            model: self.name(node, "model").unwrap_or_default(),
            base_url: self.text(node, "base_url"),
            api_key: self.text(node, "api_key"),
            headers,
            rate,
            parameters: parameters.map(|entry| (entry.key.as_ref().into(), entry.value.value())).collect(),
            fallbacks: self.names_at(DocumentKind::Model, node, "fallbacks"),
            cheaper: node.get("cheaper").and_then(|name| Some(self.name_at(DocumentKind::Model, name)?.0)),
            prices,
            max_output_tokens: self.count(node, "max_output_tokens"),
        }
    }

    fn texts_by_name(&mut self, node: &Node<'_>, key: &str) -> BTreeMap<Name, Text> {
        let entries = node.get(key).map_or(&[][..], Node::entries).iter();
        let texts =
            entries.filter_map(|entry| Some((entry.key.as_ref().into(), self.text_of(&entry.value)?)));
        texts.collect()
    }

    fn mcp_server(&mut self, name: Text, node: &Node<'_>) -> McpServer {
        let command = node.get("command").map_or(&[][..], Node::items).iter();
        let command = command.filter_map(|item| self.text_of(item)).collect();
        let sampling = node.get("sampling").and_then(|sampling| {
            let model = self.text(sampling, "model")?;
            let (max_tokens, max_calls) =
                (self.count(sampling, "max_tokens"), self.count(sampling, "max_calls"));
            Some(Sampling { model, max_tokens, max_calls })
        });
        McpServer {
            spot: name.spot,
            name,
            command,
            env: self.texts_by_name(node, "env"),
            cwd: self.text(node, "cwd"),
            isolation: self.word(node, "isolation").unwrap_or_default(),
            image: self.text(node, "image"),
            network: self.maybe_flag(node, "network"),
            url: self.text(node, "url"),
            headers: self.texts_by_name(node, "headers"),
            timeout_ms: self.duration(node, "timeout"),
            sampling,
        }
    }

    fn artifact_type(&mut self, name: Text, node: &Node<'_>) -> ArtifactType {
        ArtifactType {
            id: self.name(node, "id"),
            version: self.count(node, "version"),
            spot: name.spot,
            name,
            schema: self.schema(node, "schema"),
            media_type: self.name(node, "media_type"),
        }
    }
}
