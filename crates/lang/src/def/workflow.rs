//! Workflows, nodes and transitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    ActionDef, ArtifactType, Budget, McpServer, ModelProfile, Name, PromptSpec, Rule, Spot, TaskDef, Text,
    Tree, Writes, is_default,
};
use crate::value::Value;

/// Everything one workflow needs to run: itself and what it names, by name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    pub workflow: WorkflowDef,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<Name, Arc<TaskDef>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<Name, Arc<ActionDef>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<Name, PromptSpec>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<Name, ModelProfile>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifact_types: BTreeMap<Name, ArtifactType>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<Name, McpServer>,
}

impl Bundle {
    /// The project that its runs belong to.
    pub fn project(&self) -> &str {
        self.workflow.project_id.as_deref().unwrap_or(DEFAULT_PROJECT)
    }
}

/// The project of a workflow that names none.
pub const DEFAULT_PROJECT: &str = "default";

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Graph,
    Dag,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<Name>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Name>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<SchemaDef>,
    /// Of `state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_schema: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<SchemaDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mapping: Option<Tree>,
    /// The first node if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_node: Option<Text>,
    pub nodes: Vec<NodeDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<TransitionDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: WorkflowTimeout,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_error: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutations_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_max: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Name, Name>,
    /// Read and kept; acted on by a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Value>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub context_tables: bool,
    /// Of a dag: whether the first failure cancels the rest. The reader always says which; a definition that does
    /// not was stored when that was all there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Name>,
    #[serde(skip)]
    pub spot: Spot,
}

/// A JSON Schema and where it was written.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct SchemaDef {
    pub doc: Value,
    #[serde(skip)]
    pub spot: Spot,
}

impl PartialEq for SchemaDef {
    fn eq(&self, other: &SchemaDef) -> bool {
        self.doc == other.doc
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowTimeout {
    #[default]
    HumanGate,
    CancelAll,
    Fail,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    pub limit: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub hold_while_waiting: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    #[serde(rename = "ref")]
    pub reference: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// A key of [`Bundle::tasks`].
    pub task: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_version: Option<u32>,
    /// The task was written on the node itself, so that no mapping means "what it names".
    #[serde(default, skip_serializing_if = "is_default")]
    pub inline: Inline,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mapping: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_mapping: Option<Writes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// `timeout: adaptive`: resolved by the host when the run starts, never under `timeout_ms`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_adaptive: bool,
    /// None: nobody wrote anything here, so that the action's word holds, else the default. `fail` is stored since
    /// it means something else than nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<NodeTimeout>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub fan_out: FanOut,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_error: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_mutate: Option<MayMutate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// How often a lineage may come here: then transitions that lead here stop fitting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<Bound>,
    /// Dag only, as are the three below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Strategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Foreach>,
    #[serde(skip)]
    pub spot: Spot,
}

/// How a node came to its task.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Inline {
    /// By name.
    #[default]
    No,
    /// One action kind on the node: `update_context` and `assert` then work on the run's scope.
    Action,
    /// `steps:` on the node: a task of its own, with its own scope.
    Steps,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeTimeout {
    Fail,
    Retry,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FanOut {
    #[default]
    FirstMatch,
    All,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MayMutate {
    #[serde(default = "MayMutate::default_max_nodes")]
    pub max_nodes: u32,
}

impl MayMutate {
    pub fn default_max_nodes() -> u32 {
        10
    }
}

/// What a node is expected to take. Money is integer micro-dollars everywhere in the core; files say dollars.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TransitionDef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    /// `from.n` (the n-th of its node, from 0) if absent.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<Text>,
    pub from: Text,
    pub to: Text,
    /// Lower is looked at first; declaration order if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on: On,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn_count: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreach: Option<Foreach>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<Bound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronization: Option<Synchronization>,
    #[serde(skip)]
    pub spot: Spot,
}

/// A count, or an expression that gives one when it is asked for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Bound {
    Count(u32),
    Expr(Text),
}

impl Bound {
    /// Where it is the same in every run.
    pub fn count(&self) -> Option<u32> {
        match self {
            Bound::Count(count) => Some(*count),
            Bound::Expr(_) => None,
        }
    }

    pub fn expr(&self) -> Option<&Text> {
        match self {
            Bound::Count(_) => None,
            Bound::Expr(text) => Some(text),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    #[default]
    Success,
    Failure,
    Any,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Foreach {
    pub items: Text,
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub item_name: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// On a dag node only (in a graph the fan-in has these two).
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_branch_failure: BranchFailure,
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_failed: bool,
}

/// Every field is optional so that `synchronization: {}` can mean "as written on the other transition".
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Synchronization {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling_group: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<SyncTimeout>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_early_complete: Option<EarlyComplete>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_branch_failure: Option<BranchFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    #[serde(skip)]
    pub spot: Spot,
}

impl Synchronization {
    /// Nothing but (perhaps) the group it joins: the rest is written on another transition.
    pub fn is_reference(&self) -> bool {
        let bare = Synchronization {
            sibling_group: self.sibling_group.clone(),
            spot: self.spot,
            ..Default::default()
        };
        *self == bare
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    #[default]
    All,
    Any,
    MOfN(u32),
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncTimeout {
    #[default]
    Fail,
    ProceedWithAvailable,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyComplete {
    #[default]
    Cancel,
    Abandon,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchFailure {
    #[default]
    Fail,
    Continue,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// An expression over one branch; `_branch.output` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Text>,
    pub target: Text,
    #[serde(default, skip_serializing_if = "is_default")]
    pub strategy: MergeStrategy,
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_failed: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    #[default]
    Append,
    MergeObject,
    KeyedByBranch,
    LastWins,
}
