//! A workflow by index: every ref resolved, every text parsed, every group's fan-in found.
//!
//! Two things that are never mixed. **Compiling** ([`Graph::compile`]) says what a definition means; it judges
//! nothing and is total on everything that was ever accepted, so a stored run can always be gone on with.
//! **Checking** says what is wrong with new text, all of it at once. [`Graph::build`] does both, for new text.
//!
//! Both kinds of workflow are in one form. A dag's node is a [`Unit`]: usually one node, and with `foreach`
//! three (spread, items, gather) joined by the same fan-out and fan-in that a graph uses.

mod check;
pub mod codes;
mod compile;
mod evaluate;
mod flow;
mod known;
mod mutate;
pub mod names;
mod parsed;
mod readings;
pub mod schedule;
mod scope;
mod shape;
mod task;
#[cfg(test)]
mod tests;
mod texts;
pub mod tools;
mod work;

pub use compile::CannotCompile;
pub use compile::actions::model_table;
pub use task::*;
pub use work::*;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wonder_lang::def::{
    Backoff, BranchFailure, Budget, Bundle, EarlyComplete, Estimate, FanOut, Kind, MayMutate, MergeStrategy,
    ModelProfile, Name, NodeTimeout, On, Strategy, SyncTimeout, WorkflowTimeout,
};
use wonder_lang::expr::{Expr, Read};
use wonder_lang::path::Target;
use wonder_lang::problem::{Problem, Severity};
use wonder_lang::schema::Schema;
use wonder_lang::value::Value;

use self::compile::Compiler;
use self::flow::Flow;
use self::scope::Scopes;
use self::shape::Shape;

/// Index of a node in its graph. Stable while a run lasts: mutations only append.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeIx(pub u32);

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TransitionIx(pub u32);

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UnitIx(pub u32);

/// What made a group: a node with `fan_out: all`, or a transition with `spawn_count` or `foreach`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Source {
    Node(NodeIx),
    Transition(TransitionIx),
}

#[derive(Clone, Debug)]
pub struct Graph {
    /// What this was built from.
    pub bundle: Arc<Bundle>,
    /// What a run added to it, in order.
    pub mutations: Vec<Mutation>,
    pub name: Name,
    pub version: u32,
    pub kind: Kind,
    pub nodes: Vec<Node>,
    pub transitions: Vec<Transition>,
    /// Lookup only; nothing iterates it.
    pub(crate) node_by_ref: HashMap<Name, NodeIx>,
    pub(crate) transition_by_ref: HashMap<Name, TransitionIx>,
    /// Where a run starts; of a dag, its units without needs do.
    pub initial: NodeIx,
    /// The fan-in of each group source that has one.
    pub joins: BTreeMap<Source, Join>,
    /// Dag only: what the author calls nodes.
    pub units: Vec<Unit>,
    /// Every task by name, those included that no node uses: mutations may.
    pub tasks: BTreeMap<Name, Arc<Task>>,
    pub models: BTreeMap<Name, ModelProfile>,
    pub input_schema: Option<Schema>,
    pub context_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub output_mapping: Option<MapTree>,
    pub on_error: Vec<Rule>,
    pub timeout_ms: u64,
    pub on_timeout: WorkflowTimeout,
    pub budget: Option<Budget>,
    pub max_parallel: Option<u32>,
    /// How many runs of it may be under way at once; the host's to keep.
    pub concurrency: Option<Concurrency>,
    pub mutations_max: u32,
    pub nodes_max: u32,
    /// The first failure that nobody takes care of ends the run. Of a dag that goes on with what does not need the
    /// failed node it is false.
    pub fail_fast: bool,
}

#[derive(Clone, Debug)]
pub struct Concurrency {
    pub limit: u32,
    /// Runs with the same value share the limit; all of them if absent. Sees `input`.
    pub key: Option<Expr>,
    pub hold_while_waiting: bool,
}

#[derive(Clone, Debug)]
pub struct Node {
    /// As written; the inner nodes of a dag's `foreach` are `ref[]` (items) and `ref[=]` (gather).
    pub reference: Name,
    pub perform: Perform,
    pub input: NodeInput,
    /// None: the default (`state.<ref> = result`, in a branch `_branch.output = result`).
    pub output: Option<Vec<WriteTo>>,
    /// No output mapping, and none wanted: `update_context`, `assert`, `sleep`, and inner nodes of a dag.
    pub writes_nothing: bool,
    /// Outgoing transitions, lowest priority first, ties as written.
    pub out: Vec<TransitionIx>,
    pub fan_out: FanOut,
    /// Written responses; `on_timeout: retry` is in it as the rule that it is short for.
    pub on_error: Vec<Rule>,
    /// Node's, else the task's.
    pub timeout_ms: Option<u64>,
    pub timeout_adaptive: bool,
    /// What is written on the node, else on the action that is all its task. None: nothing.
    pub on_timeout: Option<NodeTimeout>,
    pub budget: Option<Budget>,
    pub may_mutate: Option<MayMutate>,
    pub estimate: Option<Estimate>,
    /// How often a lineage may come here.
    pub max_visits: Option<Bound>,
    /// The dag unit it belongs to.
    pub unit: Option<UnitIx>,
    /// A validator or review that a mutation put behind this node: completed tokens go there first.
    pub behind: Option<NodeIx>,
    /// This is that validator or review: it routes as the node it stands behind.
    pub stands_for: Option<NodeIx>,
}

/// Who does the work of a node, and what it is.
#[derive(Clone, Debug)]
pub enum Perform {
    /// A worker, by the core's `TaskMachine`.
    Worker(Arc<Task>),
    /// The coordinator: the task is one coordinated action. Inline `update_context` and `assert` work on
    /// the run's scope, all else on the task's.
    Coordinator { task: Arc<Task>, inline: bool },
    /// Nothing: the result is what the token carries (the gather of a dag's `foreach`, or nothing at all).
    Pass,
    /// A review gate that a mutation put behind a node.
    Review,
}

/// Where a task's input comes from.
#[derive(Clone, Debug)]
pub enum NodeInput {
    /// `input_mapping`.
    Mapped(MapTree),
    /// What the node's own texts name, under their roots; what is absent is left out.
    Named(Vec<Read>),
    /// An inline multi-step task: what its steps name under `input`, without the root, and under
    /// `_branch`, `needs`, `run` and the item's name, with it.
    NamedInput(Vec<Read>),
    /// A referenced task: the run's input.
    RunInput,
    /// A referenced task in a dag: `{ref: result}` of its needs.
    Needs,
    /// `workflow_call` without a mapping.
    Empty,
}

/// A mapping, compiled.
#[derive(Clone, Debug)]
pub enum MapTree {
    Expr(Expr),
    Literal(Value),
    Map(Vec<(Name, MapTree)>),
    List(Vec<MapTree>),
}

#[derive(Clone, Debug)]
pub struct WriteTo {
    pub target: Target,
    pub value: MapTree,
}

#[derive(Clone, Debug)]
pub struct Transition {
    pub reference: Name,
    pub from: NodeIx,
    pub to: NodeIx,
    pub priority: i64,
    pub on: On,
    pub condition: Option<Expr>,
    pub spread: Option<Spread>,
    pub max_iterations: Option<Bound>,
    /// Arrives at the fan-in of a group: the innermost, or the one named.
    pub sync: Option<Sync>,
}

/// How often something may be: a count, or what an expression gives when it is asked for.
#[derive(Clone, Debug)]
pub enum Bound {
    Count(u32),
    Expr(Expr),
}

impl Bound {
    /// Where it is the same in every run.
    pub fn count(&self) -> Option<u32> {
        match self {
            Bound::Count(count) => Some(*count),
            Bound::Expr(_) => None,
        }
    }
}

/// For people: `3`, or the expression.
impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Count(count) => count.fmt(f),
            Bound::Expr(expr) => f.write_str(expr.text()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Sync {
    pub group: Option<Source>,
}

#[derive(Clone, Debug)]
pub enum Spread {
    Count(u32),
    Each { items: Expr, item_name: Option<Name>, max_parallel: Option<u32> },
}

/// The fan-in of a group.
#[derive(Clone, Debug)]
pub struct Join {
    pub target: NodeIx,
    pub strategy: Strategy,
    pub timeout: JoinTimeout,
    pub on_timeout: SyncTimeout,
    pub on_early_complete: EarlyComplete,
    pub on_branch_failure: BranchFailure,
    pub merge: Option<Merge>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JoinTimeout {
    Fixed(u64),
    /// Nothing written: min(longest action timeout × branches × 1.5, 30 min).
    Computed {
        longest_action_ms: Option<u64>,
    },
    /// Nothing written, and something in the branch can wait for a human, an event or a child.
    Never,
}

#[derive(Clone, Debug)]
pub struct Merge {
    /// None: `_branch.output`.
    pub source: Option<Expr>,
    pub into: MergeInto,
    pub keep_failed: bool,
}

#[derive(Clone, Debug)]
pub enum MergeInto {
    /// Written one level out.
    Context { target: Target, strategy: MergeStrategy },
    /// A dag's `foreach`: one slot per item (null where a branch did not arrive), carried by the continuation.
    Carried,
}

/// What a dag's author calls a node.
#[derive(Clone, Debug)]
pub struct Unit {
    pub reference: Name,
    /// Where its token is made: the node itself, or the spread of its `foreach`.
    pub head: NodeIx,
    /// Whose completion completes the unit: the node itself, or the gather of its `foreach`.
    pub tail: NodeIx,
    pub needs: Vec<UnitIx>,
    pub dependents: Vec<UnitIx>,
    pub join: Strategy,
    pub when: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub when: Option<Expr>,
    /// Its condition names `outcome_unknown`: it means to repeat an effect that may have happened already.
    pub repeats_unknown: bool,
    pub response: Response,
    pub max: u32,
    pub backoff: Backoff,
}

#[derive(Clone, Debug)]
pub enum Response {
    Retry,
    SwitchModel,
    StricterPrompt { append: Option<Name> },
    Change { model: Option<Name>, system: Option<Name>, tools: Option<Vec<Name>>, input: Option<MapTree> },
    LoopWithFeedback { to: Option<NodeIx> },
    AddValidator { task: Arc<Task> },
    AddReview,
    DowngradeModel,
    Pause,
    Goto(NodeIx),
    Skip { output: Value },
    Escalate,
    Fail,
}

impl Response {
    /// The same task is dispatched again, without a human's word.
    pub fn runs_again(&self) -> bool {
        match self {
            Response::Retry
            | Response::SwitchModel
            | Response::StricterPrompt { .. }
            | Response::Change { .. }
            | Response::LoopWithFeedback { .. }
            | Response::AddValidator { .. }
            | Response::AddReview
            | Response::DowngradeModel => true,
            Response::Pause
            | Response::Goto(_)
            | Response::Skip { .. }
            | Response::Escalate
            | Response::Fail => false,
        }
    }
}

/// What a run added to its graph. Stored in `run_mutated`; its meaning is frozen.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Mutation {
    /// `may_mutate`: nodes over known tasks, and transitions among them, from the node that asked, and to
    /// any node. In a dag a transition adds a need to a unit that has not started. Those from the node that
    /// asked are looked at before the ones it had.
    Nodes {
        by: Name,
        nodes: Vec<wonder_lang::def::NodeDef>,
        transitions: Vec<wonder_lang::def::TransitionDef>,
    },
    /// `add_validator`: a node over this task behind `node`.
    Validator { node: Name, added: Name, task: Name },
    /// `add_review`: a gate behind `node`.
    Review { node: Name, added: Name },
}

impl Graph {
    /// Checks new text and compiles it. All problems at once; `Ok` may come with warnings.
    pub fn build(bundle: Arc<Bundle>) -> Result<(Graph, Vec<Problem>), Vec<Problem>> {
        checked(&bundle, Vec::new())
    }

    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.0 as usize]
    }

    pub fn transition(&self, ix: TransitionIx) -> &Transition {
        &self.transitions[ix.0 as usize]
    }

    pub fn unit(&self, ix: UnitIx) -> &Unit {
        &self.units[ix.0 as usize]
    }

    pub fn find_node(&self, reference: &str) -> Option<NodeIx> {
        self.node_by_ref.get(reference).copied()
    }

    pub fn find_transition(&self, reference: &str) -> Option<TransitionIx> {
        self.transition_by_ref.get(reference).copied()
    }

    /// The node whose transitions a token at `node` follows: itself, or the one that it stands behind.
    pub fn routes_as(&self, node: NodeIx) -> NodeIx {
        self.node(node).stands_for.unwrap_or(node)
    }

    /// The profile reached by following `cheaper` so many times, or as far as it goes.
    pub fn cheaper(&self, model: &Name, times: usize) -> Name {
        work::cheaper(&self.models, model, times).clone()
    }

    pub fn is_dag(&self) -> bool {
        self.kind == Kind::Dag
    }
}

impl Node {
    pub fn calls_workflow(&self) -> bool {
        let Perform::Coordinator { task, .. } = &self.perform else { return false };
        let action = task.steps.first().and_then(|step| step.action.coordinated.as_ref());
        matches!(action, Some(Coordinated::WorkflowCall(_)))
    }

    /// The first of its rules is what `on_timeout: retry` is short for. Where its `retry` says how often its work is
    /// tried, timeouts are counted there.
    pub fn leads_with_timeout_rule(&self) -> bool {
        let bounded = self.task().is_some_and(|task| task.retries_any_failure());
        self.on_timeout == Some(NodeTimeout::Retry) && !bounded
    }

    /// What the author wrote about a timeout of this step: on the node, else on the step's action. None: nothing,
    /// so that the default holds.
    pub fn written_on_timeout(&self, step: Option<&Name>) -> Option<NodeTimeout> {
        let of_action = || self.task()?.step(step?)?.action.def.execution.on_timeout;
        self.on_timeout.or_else(of_action)
    }

    pub fn task(&self) -> Option<&Arc<Task>> {
        match &self.perform {
            Perform::Worker(task) | Perform::Coordinator { task, .. } => Some(task),
            Perform::Pass | Perform::Review => None,
        }
    }
}

/// Checks a bundle with what a run adds to it, and compiles both if nothing is wrong.
fn checked(bundle: &Arc<Bundle>, mutations: Vec<Mutation>) -> Result<(Graph, Vec<Problem>), Vec<Problem>> {
    let shape = Shape::of(bundle, &mutations);
    let flow = Flow::of(&shape, &shape.starts());
    let scopes = Scopes::new(&shape, &flow);
    let (mut problems, parsed) = check::check(bundle, &mutations, &shape, &flow, &scopes);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(problems);
    }
    let compiled = Compiler::new(bundle, &shape, &flow, &scopes, parsed).and_then(Compiler::whole);
    match compiled {
        Ok(whole) => Ok((whole.graph(bundle, mutations), problems)),
        // A check is missing for this: it is said all the same, if not where it stands.
        Err(error) => {
            problems.push(error.into());
            Err(problems)
        }
    }
}
