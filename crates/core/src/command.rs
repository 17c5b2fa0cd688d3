//! What a run may ask of its host. Orders, never questions; performed only after the events that led to
//! them are durable. What is still owed after a crash is derived from the state: [`crate::Run::owed`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cost::Allowance;
use crate::def::{Name, OnExceeded, Prices, is_default};
use crate::event::{GateId, TokenId};
use crate::value::Value;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    RunTask(Box<TaskOrder>),
    CancelTask {
        token: TokenId,
        attempt: u32,
    },
    /// Show this gate to people; its record is in the run.
    OpenGate {
        gate: GateId,
    },
    CloseGate {
        gate: GateId,
    },
    RemindGate {
        gate: GateId,
    },
    StartChild(Box<ChildOrder>),
    CancelChild {
        token: TokenId,
        child: Name,
    },
    PauseChild {
        token: TokenId,
        child: Name,
    },
    ResumeChild {
        token: TokenId,
        child: Name,
    },
}

/// One dispatch of one task, complete: a worker needs nothing else but the definition.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TaskOrder {
    pub run: Name,
    pub token: TokenId,
    pub attempt: u32,
    pub node: Name,
    pub task: Name,
    pub version: Option<u32>,
    pub input: Value,
    /// The judgement of `loop_with_feedback`, else null.
    pub feedback: Value,
    pub overrides: Overrides,
    pub generation: u32,
    /// Tries of its actions before this attempt: one for each earlier attempt, and those beyond the first
    /// that they reported. A script's outcomes are counted on from here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tries_before: u32,
    /// What the models cost that its calls may use, as pinned when the run started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<Name, Prices>,
    /// What the worker stops at: what is reserved for it, where a budget bounds it.
    pub allowance: Allowance,
    /// Its result may say what to add to the graph.
    pub may_mutate: bool,
    pub timeout_ms: Option<u64>,
    /// Its place in the run's ready order, for a host that has no place for all at once: the lowest goes first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rank: u32,
}

impl TaskOrder {
    /// The idempotency key of one call: the same after a crash, another where another effect is meant. A
    /// step's own call has the number 0; each further call that it makes, as of a tool, has one of its own.
    pub fn key(&self, step: &str, number: u32) -> String {
        let (run, token, generation) = (&self.run, self.token, self.generation);
        match number {
            0 => format!("{run}/{token}/{step}/{generation}"),
            number => format!("{run}/{token}/{step}/{generation}/{number}"),
        }
    }
}

/// What responses changed for the attempts to come.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Overrides {
    /// The profile to use instead of the written one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Name>>,
    /// Texts put behind the prompt, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<Name>,
    /// Laid over the mapped input.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// How often every profile is replaced by its `cheaper`.
    #[serde(skip_serializing_if = "is_default")]
    pub downgrades: u32,
    /// What people said to what earlier attempts asked, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<InputAnswer>,
}

/// What an attempt wanted to know that ended as `input_required`, and what somebody said.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct InputAnswer {
    /// The details of the failure.
    pub asked: Value,
    pub answer: Value,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ChildOrder {
    pub token: TokenId,
    pub attempt: u32,
    /// The id of the run to start: derived from parent, token and attempt, so that asking twice starts one.
    pub child: Name,
    pub workflow: Name,
    pub input: Value,
    pub depth: u32,
    pub allowance: Option<Allowance>,
    /// What the child does when the allowance is spent; absent: it fails.
    pub on_exceeded: Option<OnExceeded>,
    pub timeout_ms: Option<u64>,
    pub inherit_artifacts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> TaskOrder {
        TaskOrder {
            run: "r".into(),
            token: TokenId(3),
            attempt: 2,
            node: "n".into(),
            task: "t".into(),
            version: None,
            input: Value::map([("x", Value::Int(1))]),
            feedback: Value::Null,
            overrides: Overrides::default(),
            generation: 1,
            tries_before: 4,
            prices: [("m".into(), Prices { input: 1, output: 2, ..Prices::default() })].into(),
            allowance: Allowance::default(),
            may_mutate: false,
            timeout_ms: Some(5),
            rank: 0,
        }
    }

    #[test]
    fn every_call_has_a_key_of_its_own_and_a_steps_own_keeps_the_one_it_had() {
        let keys = [0, 1, 2].map(|number| order().key("s", number));
        assert_eq!(keys, ["r/3/s/1", "r/3/s/1/1", "r/3/s/1/2"]);
    }

    #[test]
    fn an_order_goes_to_another_process_and_is_the_same_there() {
        let command = Command::RunTask(Box::new(order()));
        let sent = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<Command>(&sent).unwrap(), command);
    }
}
