//! The work of a node, compiled: its task, the steps of that, and the action of each.

use std::sync::Arc;

use wonder_lang::def::{ActionDef, Effect, GateTimeout, Name, OnFailure, Retry, RetryOn, StepVerdict, Take};
use wonder_lang::expr::{Expr, Read};
use wonder_lang::schema::Schema;
use wonder_lang::template::Template;
use wonder_lang::value::Value;

use crate::{MapTree, SecretReads, TemplateTree, Work, WriteTo};

/// A task, compiled. The worker and the coordinator run it by the core's `TaskMachine`.
#[derive(Clone, Debug)]
pub struct Task {
    pub name: Name,
    pub version: Option<u32>,
    pub input_schema: Option<Schema>,
    pub output_schema: Option<Schema>,
    pub retry: Option<Retry>,
    pub retry_on: RetryOn,
    pub timeout_ms: Option<u64>,
    pub steps: Vec<Step>,
    /// The strongest of its steps.
    pub effect: Effect,
}

impl Task {
    pub fn step(&self, reference: &str) -> Option<&Step> {
        self.steps.iter().find(|step| &*step.reference == reference)
    }

    /// Whatever way it failed, it is tried as often as `retry` says.
    pub fn retries_any_failure(&self) -> bool {
        self.retry.is_some() && self.retry_on == RetryOn::AnyFailure
    }
}

#[derive(Clone, Debug)]
pub struct Step {
    pub reference: Name,
    pub action: Arc<Action>,
    pub input: StepInput,
    /// None: `state.<ref> = result`, or nothing for `update_context` and `assert`.
    pub output: Option<Vec<WriteTo>>,
    pub on_failure: OnFailure,
    pub condition: Option<StepCondition>,
    /// A result of more bytes goes to an artifact.
    pub artifact_above: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct StepCondition {
    pub test: Expr,
    pub then: StepVerdict,
    pub otherwise: StepVerdict,
}

#[derive(Clone, Debug)]
pub enum StepInput {
    /// The only step of an inline node: the task's input is the action's. `mapped` tells whether the node
    /// had an `input_mapping`, so that `input` in its texts is the mapped object itself.
    Whole {
        mapped: bool,
    },
    Mapped(MapTree),
    /// What the action's texts name in the task's scope, under their roots; what is absent is left out.
    Named(Vec<Read>),
}

#[derive(Clone, Debug)]
pub struct Action {
    pub name: Name,
    pub def: Arc<ActionDef>,
    pub requires: Option<Schema>,
    pub produces: Option<Schema>,
    pub effect: Effect,
    /// What the coordinator needs of it, compiled; None for a worker's action.
    pub coordinated: Option<Coordinated>,
    /// What a worker needs of it, compiled; None for a coordinator's action.
    pub work: Option<Work>,
    pub secrets: SecretReads,
}

#[derive(Clone, Debug)]
pub enum Coordinated {
    UpdateContext { set: Vec<WriteTo> },
    Assert(Assertion),
    HumanGate(GateSpec),
    WorkflowCall(CallSpec),
    WaitEvent(WaitSpec),
    Sleep(SleepSpec),
}

#[derive(Clone, Debug)]
pub struct Assertion {
    pub test: AssertionTest,
    pub message: Option<Template>,
}

#[derive(Clone, Debug)]
pub enum AssertionTest {
    That(Expr),
    Fits { value: Expr, schema: Schema },
    Scores { score: Expr, at_least: MapTree },
}

#[derive(Clone, Debug)]
pub struct GateSpec {
    pub title: Template,
    pub body: Option<Template>,
    pub form: Option<Schema>,
    /// What gives the form, if it is not the same in every run.
    pub form_from: Option<Expr>,
    pub assignees: Vec<Template>,
    pub quorum: Option<u32>,
    pub timeout_ms: Option<u64>,
    pub on_timeout: GateTimeout,
    pub default: Value,
    pub escalate: Vec<Template>,
    pub remind_every_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct CallSpec {
    pub workflow: CalleeSpec,
    /// The child's input, if it is not the mapped one.
    pub with: Option<TemplateTree>,
    pub catch: bool,
    pub inherit_timeout: bool,
    pub inherit_artifacts: bool,
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum CalleeSpec {
    /// A template, usually a plain name.
    Named(Template),
    FromContext(Expr),
}

#[derive(Clone, Debug)]
pub struct WaitSpec {
    pub event: Template,
    pub key: Option<Expr>,
    pub take: Take,
    pub timeout_ms: Option<u64>,
    /// What the wait gives when its time is over; None: it fails.
    pub default: Option<Value>,
}

#[derive(Clone, Debug)]
pub enum SleepSpec {
    For(Template),
    Until(Expr),
}
