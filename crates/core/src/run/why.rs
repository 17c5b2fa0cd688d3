//! Why a run is where it is: what each live token waits for, as data, and the words for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Run;
use crate::cost::{Allowance, dollars};
use crate::def::Name;
use crate::event::{BranchRef, GateId, PauseReason, TokenId};
use crate::graph::NodeIx;
use crate::lifecycle::RunStatus;
use crate::state::Place;
use crate::time::Time;
use crate::value::Value;

/// One live token, or the run itself, and what it waits for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Waiting {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRef>,
    pub on: WaitsFor,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitsFor {
    Task {
        attempt: u32,
    },
    Gate {
        gate: GateId,
        title: String,
    },
    Child {
        child: Name,
        until: Option<Time>,
    },
    Event {
        event: Name,
        key: Value,
        until: Option<Time>,
    },
    Sleep {
        until: Time,
    },
    Backoff {
        until: Time,
    },
    /// At a fan-in: how many have arrived, and which branches have not.
    Siblings {
        arrived: u32,
        total: u32,
        missing: Vec<u32>,
    },
    /// All places under `max_parallel` are taken by these tokens.
    Place {
        holders: Vec<TokenId>,
    },
    /// The budget has no room until a reservation comes back.
    Budget {
        reserved: Allowance,
    },
    /// The run is paused.
    Resume {
        reasons: Vec<PauseReason>,
    },
    /// A queued run waits for the host to release it.
    Release,
    /// A cancelled run waits for these to report.
    Reports {
        tokens: Vec<TokenId>,
    },
}

impl Run {
    /// What each live token waits for. Empty only for a run that has ended.
    pub fn why(&self) -> Vec<Waiting> {
        let whole = |on: WaitsFor| Waiting { token: None, node: None, branch: None, on };
        match self.status() {
            status if status.is_end() => return vec![],
            RunStatus::Queued => return vec![whole(WaitsFor::Release)],
            RunStatus::Cancelling => {
                let tokens = self.state.out.keys().map(|(id, _)| *id).collect();
                return vec![whole(WaitsFor::Reports { tokens })];
            }
            _ => {}
        }
        let mut all: Vec<Waiting> = self
            .tokens()
            .filter(|token| token.is_live())
            .map(|token| Waiting {
                token: Some(token.id),
                node: Some(self.graph.written_ref(NodeIx(token.node)).clone()),
                branch: token.branch,
                on: self.waits_for(token.id),
            })
            .collect();
        if all.is_empty() || self.status() == RunStatus::Paused {
            let gates = self.state.gates.iter().filter(|(_, gate)| gate.token.is_none());
            all.extend(
                gates.map(|(id, gate)| whole(WaitsFor::Gate { gate: *id, title: gate.record.title.clone() })),
            );
        }
        all
    }

    fn waits_for(&self, id: TokenId) -> WaitsFor {
        let token = &self.state.tokens[&id];
        match &token.place {
            Place::Pending => self.pending_waits_for(),
            Place::Dispatched { .. } => WaitsFor::Task { attempt: token.attempt },
            Place::Retrying { wake_at } => WaitsFor::Backoff { until: *wake_at },
            Place::Escalated { gate, .. } | Place::WaitingForHuman { gate, .. } => {
                let title = self.state.gates.get(gate).map(|g| g.record.title.clone()).unwrap_or_default();
                WaitsFor::Gate { gate: *gate, title }
            }
            Place::WaitingForSubworkflow { child, deadline, .. } => {
                WaitsFor::Child { child: child.clone(), until: *deadline }
            }
            Place::WaitingForEvent { event, key, deadline, .. } => {
                WaitsFor::Event { event: event.clone(), key: key.clone(), until: *deadline }
            }
            Place::Sleeping { until, .. } => WaitsFor::Sleep { until: *until },
            Place::WaitingForSiblings { group } => {
                let group = &self.state.groups[group];
                let done = |ix: &u32| group.branches.get(*ix as usize).is_some_and(|b| b.done);
                let missing = (0..group.total).filter(|ix| !done(ix)).collect();
                WaitsFor::Siblings { arrived: group.arrived, total: group.total, missing }
            }
            Place::Ended { .. } => unreachable!("only live tokens wait"),
        }
    }

    fn pending_waits_for(&self) -> WaitsFor {
        if self.status() == RunStatus::Paused {
            return self.paused_waits_for();
        }
        let told = self.state.start.as_ref().and_then(|start| start.max_parallel);
        let full = told
            .or(self.graph.max_parallel)
            .is_some_and(|max| self.state.token_counts.tasks_out >= u64::from(max));
        if full {
            return WaitsFor::Place { holders: self.state.out.keys().map(|(id, _)| *id).collect() };
        }
        WaitsFor::Budget { reserved: self.state.reserved }
    }

    /// A gate that paused the run wants an answer; `resume` would be refused.
    fn paused_waits_for(&self) -> WaitsFor {
        let gate = self.state.pauses.iter().find_map(|reason| match reason {
            PauseReason::Operator => None,
            PauseReason::Timeout(gate) | PauseReason::Budget(gate) | PauseReason::Response(gate) => {
                Some(*gate)
            }
        });
        match gate.and_then(|gate| Some((gate, self.state.gates.get(&gate)?))) {
            Some((gate, open)) => WaitsFor::Gate { gate, title: open.record.title.clone() },
            None => WaitsFor::Resume { reasons: self.state.pauses.iter().copied().collect() },
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(node), Some(token)) = (&self.node, self.token) {
            write!(f, "{node}#{token}")?;
            if let Some(at) = self.branch {
                write!(f, "[{}]", at.branch)?;
            }
            f.write_str(" waits for ")?;
        } else {
            f.write_str("the run waits for ")?;
        }
        self.on.fmt(f)
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = |until: &Option<Time>| until.map_or(String::new(), |at| format!(" until {at}"));
        match self {
            WaitsFor::Task { attempt } => write!(f, "its task (attempt {attempt})"),
            WaitsFor::Gate { gate, title } => write!(f, "gate {gate}: {title}"),
            WaitsFor::Child { child, until: at } => write!(f, "child run {child}{}", until(at)),
            WaitsFor::Event { event, key, until: at } if key.is_null() => {
                write!(f, "event {event}{}", until(at))
            }
            WaitsFor::Event { event, key, until: at } => {
                write!(f, "event {event} with key {key}{}", until(at))
            }
            WaitsFor::Sleep { until } => write!(f, "the time {until}"),
            WaitsFor::Backoff { until } => write!(f, "the end of its backoff at {until}"),
            WaitsFor::Siblings { arrived, total, missing } => {
                let shown: Vec<String> = missing.iter().take(10).map(u32::to_string).collect();
                let more = if missing.len() > 10 { ", …" } else { "" };
                write!(
                    f,
                    "its siblings: {arrived} of {total} arrived, branches {}{more} have not",
                    shown.join(", ")
                )
            }
            WaitsFor::Place { holders } => {
                write!(f, "a place under max_parallel: {} tasks are out", holders.len())
            }
            WaitsFor::Budget { reserved } => {
                write!(
                    f,
                    "room in the budget: {} are reserved by tasks that are out",
                    dollars(reserved.usd_micros)
                )
            }
            WaitsFor::Resume { .. } => write!(f, "the run to be resumed"),
            WaitsFor::Release => write!(f, "a free slot among runs"),
            WaitsFor::Reports { tokens } => {
                write!(f, "the last reports of {} tasks or children", tokens.len())
            }
        }
    }
}
