//! What a plan says: plain data that serialises. Times are milliseconds, money is integer micro-dollars.
//! Nothing here works anything out.

use serde::{Deserialize, Serialize};
use wonder_core::def::{Budget, Kind, Name, Strategy, SyncTimeout, WorkflowTimeout};

/// What a workflow and everything it calls will do, as far as that can be told before it runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Plan {
    #[serde(flatten)]
    pub outline: Outline,
    /// The workflows it calls, directly or through others, each once: their totals are subtotals of its own.
    pub called: Vec<Outline>,
    pub missing: Vec<Missing>,
    /// How many bytes a model call's input is taken to have where only the run can tell.
    pub input_bytes_assumed: u64,
}

/// One workflow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Outline {
    pub workflow: Name,
    pub version: u32,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// As written.
    pub nodes: Vec<PlannedNode>,
    /// Of a dag Kahn's batches; of a graph the nodes by their longest distance from the first, loops cut.
    pub batches: Vec<Vec<Name>>,
    /// Of a dag: who goes first when places are short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready_order: Vec<Name>,
    /// Nodes that workers perform, in the order in which they are expected to be sent out first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dispatch_order: Vec<Name>,
    pub critical_path: CriticalPath,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fan_outs: Vec<FanOutPlan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopPlan>,
    /// What only the run's data can decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoicePlan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitPlan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallPlan>,
    /// Why the expected run does not complete, as far as mocks tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<String>,
    pub duration: DurationPlan,
    pub cost: CostPlan,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetPlan>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PlannedNode {
    pub node: Name,
    /// From 1.
    pub batch: u32,
    /// Of a dag what it needs; of a graph the nodes that lead to it.
    pub needs: Vec<Name>,
    /// The kinds of its actions, in order.
    pub actions: Vec<Name>,
    /// Of one visit; of a dag's `foreach`, of one item.
    pub duration: Guess,
    pub cost: Guess,
    /// The most attempts that its task's retry, the `on_error` lists and the defaults allow.
    pub attempts_max: u64,
    /// One visit with all of these attempts, each at what it reserves; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_usd_micros: Option<u64>,
    /// The same for its time; none without a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_ms: Option<u64>,
    /// How often it is expected to run.
    pub visits: u64,
    /// When it is expected to run first and to end last, from the start of the run; none: it is not.
    pub starts_ms: Option<u64>,
    pub ends_ms: Option<u64>,
}

/// A number, and where it comes from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Guess {
    pub amount: u64,
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The file says so: an `estimate`, a mock's delay or usage, a sleep, or work that takes none.
    #[default]
    Written,
    /// From past runs.
    Learnt,
    /// From the plan of the workflow that it calls.
    Planned,
    /// What one attempt reserves: it will be less.
    Worst,
    /// As long as a person or an outside event takes; counted as nothing.
    Waits,
    /// Nobody knows: a second, and no money.
    Unknown,
}

/// A bound, or what is known of it and why there is none.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Total {
    /// The bound; without one, what is known: loops count as often as is expected, all else once.
    pub known: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbounded: Vec<String>,
}

impl Total {
    pub fn bound(&self) -> Option<u64> {
        self.unbounded.is_empty().then_some(self.known)
    }
}

/// The longest way through, with places for everybody.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CriticalPath {
    pub nodes: Vec<Name>,
    pub duration_ms: u64,
}

/// How many branches a fan-out makes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Branches {
    /// None: the run's data or conditions decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<u64>,
    pub at_most: u64,
    /// Nothing but a limit of the engine bounds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_data: bool,
    /// What it is one for each of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_of: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FanOutPlan {
    pub node: Name,
    pub to: Vec<Name>,
    pub branches: Branches,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<FanInPlan>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FanInPlan {
    pub node: Name,
    pub strategy: Strategy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub on_timeout: SyncTimeout,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LoopPlan {
    pub nodes: Vec<Name>,
    /// How often a token can go back in it; none: no bound is written, a condition ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u64>,
    /// How often the expected run goes through it.
    pub passes_expected: u64,
}

/// A condition that only the run can decide.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ChoicePlan {
    pub node: Name,
    /// Where it may lead; of a dag's unit itself, whether it runs.
    pub among: Vec<Name>,
    /// Where the expected run goes: the longest way, or all of them where all that fit are taken.
    pub counted: Vec<Name>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    Person,
    Event,
    Sleep,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WaitPlan {
    pub node: Name,
    pub kind: WaitKind,
    /// The gate's title, the event's name, how long or until when.
    pub what: String,
    /// The longest it can take; none: nothing bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CallPlan {
    pub node: Name,
    /// As written: a name, or the text that gives one.
    pub workflow: Name,
    pub callee: Callee,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Callee {
    /// In [`Plan::called`].
    Planned,
    /// It is one of those that called it.
    Recursive,
    /// Runs within runs only go so deep.
    TooDeep,
    /// The run's data decides.
    ByData,
    Unknown,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DurationPlan {
    /// As the engine goes with these estimates: where only data decides, the longest way, each loop once and
    /// one branch; waits for people and events as nothing.
    pub expected_ms: u64,
    /// It cannot be less than this with these estimates: the critical path, or the work for the places.
    pub lower_bound_ms: u64,
    /// Running time as timeouts bound it, and the waits.
    pub worst: Total,
    /// The workflow's own, which bounds the running time.
    pub timeout_ms: u64,
    pub on_timeout: WorkflowTimeout,
    /// Its own timeout is what bounds the running time, not those of its nodes.
    pub by_timeout: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CostPlan {
    /// Where a model has no price, without it.
    pub expected_usd_micros: Total,
    /// Every attempt at what it reserves, for the dearest way through.
    pub worst_usd_micros: Total,
    pub worst_tokens: Total,
    pub worst_calls: Total,
    /// Nodes of which one attempt reserves more than a budget has: they cannot start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot_start: Vec<Name>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BudgetPlan {
    pub budget: Budget,
    pub expected_fits: bool,
    /// Whatever happens.
    pub worst_fits: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    Secret,
    /// A provider's key.
    Key,
    Model,
    Price,
    Action,
    Workflow,
    Program,
}

/// Something that a run would want and not find.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Missing {
    pub need: Need,
    pub name: Name,
    /// Whose it is, as `node` or, in a workflow that is called, `workflow/node`.
    pub nodes: Vec<Name>,
    pub help: String,
}
