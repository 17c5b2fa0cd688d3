//! What begins: tokens, groups, child runs, waits, further attempts. Each is an event by itself; its fields are the file format.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{BranchRef, Counts, GroupId, OpenedWith, Report, RuleRef, TokenId};
use crate::command::Overrides;
use crate::cost::Allowance;
use crate::def::{Name, OnExceeded, is_default};
use crate::error::Failure;
use crate::time::Time;
use crate::value::Value;

/// A token, where it is and what it came with.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NewToken {
    pub token: TokenId,
    pub node: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TokenId>,
    /// The transition that led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRef>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: Counts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub feedback: Value,
    /// A result handed on to a node that a mutation put in, or to the gather of a dag's `foreach`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub carried: Value,
}

/// A group: one firing of a fan-out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NewGroup {
    pub group: GroupId,
    /// The token that fanned out.
    pub token: TokenId,
    pub node: Name,
    /// The transition, if one made the group; else the node did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer: Option<BranchRef>,
    pub total: u32,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub items: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_name: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// The target of its fan-in, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_at: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: Counts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
}

/// A child run, as its parent asked for it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NewChild {
    pub token: TokenId,
    pub attempt: u32,
    pub child: Name,
    pub workflow: Name,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Allowance>,
    /// What to do when the allowance is spent; absent: fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exceeded: Option<OnExceeded>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub inherit_artifacts: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_with: Option<OpenedWith>,
}

/// A wait for an outside event.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EventWait {
    pub token: TokenId,
    pub event: Name,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub key: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_with: Option<OpenedWith>,
}

/// Another attempt of a task, after a wait that survives a crash.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TaskRetry {
    pub token: TokenId,
    pub failure: Failure,
    pub wake_at: Time,
    pub rule: RuleRef,
    #[serde(default, skip_serializing_if = "is_default")]
    pub generation: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub overrides: Overrides,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub feedback: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}
