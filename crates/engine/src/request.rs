//! What can be asked of an engine, and the shapes of its answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wonder_core::def::{Bundle, Estimate, Name};
use wonder_core::event::TokenId;
use wonder_core::graph::{Coordinated, Graph, Node};
use wonder_core::limits::Limits;
use wonder_core::{Time, Value};

use crate::view::{
    ArtifactPiece, ArtifactView, GateDetails, GateView, Heard, RunRow, RunView, Status, Updates, VisitView,
    Why,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Start(Box<Start>),
    Act {
        /// See [`Request::id_mut`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        run: String,
        act: Act,
    },
    Fork(Box<Fork>),
    Answer(Answer),
    Signal(Signal),
    Tell(Tell),
    Find {
        run: String,
    },
    /// A run as it was after one of its events.
    FindAt {
        run: String,
        seq: u64,
    },
    /// One visit with its input and result.
    Visit {
        run: String,
        token: TokenId,
    },
    List(Filter),
    Gates {
        run: Option<String>,
    },
    /// One gate, open or closed, with its history.
    Gate {
        gate: String,
    },
    Follow(Follow),
    /// Text of models as it comes.
    Listen(Listen),
    Why {
        run: String,
    },
    Wait {
        run: String,
        wait_ms: u64,
    },
    Definition {
        run: String,
    },
    /// Whether the workflows of a file are those that a run has.
    SameDefinition {
        run: String,
        workflows: Vec<Workflow>,
    },
    /// What past runs of a workflow taught of its nodes.
    Learnt {
        workflow: String,
    },
    /// What a run and those it called have kept.
    Artifacts {
        run: String,
    },
    /// Some bytes of an artifact, from a place on.
    ArtifactPiece {
        run: String,
        /// A name, of which the newest is meant, or an address: `blake3:` and a hash.
        artifact: String,
        offset: u64,
    },
}

impl Request {
    /// The id under which asking twice does it once and gets the same answer, chosen by whoever asks; of a start and
    /// a fork it is the id of the run that they make. None for what changes nothing.
    pub fn id_mut(&mut self) -> Option<&mut Option<String>> {
        match self {
            Request::Start(start) => Some(&mut start.id),
            Request::Fork(fork) => Some(&mut fork.id),
            Request::Act { request_id, .. } => Some(request_id),
            Request::Answer(answer) => Some(&mut answer.request_id),
            Request::Signal(signal) => Some(&mut signal.request_id),
            Request::Tell(tell) => Some(&mut tell.request_id),
            Request::Find { .. }
            | Request::FindAt { .. }
            | Request::Visit { .. }
            | Request::List(_)
            | Request::Gates { .. }
            | Request::Gate { .. }
            | Request::Follow(_)
            | Request::Listen(_)
            | Request::Why { .. }
            | Request::Wait { .. }
            | Request::Definition { .. }
            | Request::SameDefinition { .. }
            | Request::Learnt { .. }
            | Request::Artifacts { .. }
            | Request::ArtifactPiece { .. } => None,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    Run(Box<RunView>),
    Runs(Vec<RunRow>),
    Visit(Box<VisitView>),
    Gates(Vec<GateView>),
    Gate(Box<GateDetails>),
    Updates(Updates),
    Heard(Heard),
    Why(Vec<Why>),
    Definition(Workflow),
    Same(bool),
    Learnt(BTreeMap<Name, Estimate>),
    Artifacts(Vec<ArtifactView>),
    ArtifactPiece(Box<ArtifactPiece>),
}

/// A workflow with all it names: what a definition is when it travels.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Workflow {
    pub bundle: Arc<Bundle>,
    /// The same, already checked and compiled, if it comes from this process.
    #[serde(skip)]
    pub graph: Option<Arc<Graph>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Start {
    /// Chosen by whoever asks, so that asking twice starts one run; else the engine chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub workflow: Workflow,
    /// Workflows it may call by name, beside itself: those of the same file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callable: Vec<Workflow>,
    pub input: Value,
    /// Where relative paths and commands start; kept with the run.
    pub workdir: String,
    /// The file it comes from, if there is one: an absolute path, kept with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    #[serde(default, skip_serializing_if = "RunOptions::is_default")]
    pub options: RunOptions,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Answer when the run has ended or only waits, or after so long; 0: as soon as it is recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
}

/// What one run is given instead of what the engine gives every run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct RunOptions {
    /// For backoff jitter; from the run's id if absent.
    pub seed: Option<u64>,
    pub limits: Option<Limits>,
    /// Instead of the workflow's own timeout.
    pub timeout_ms: Option<u64>,
    /// Begin when it is released, not before.
    pub queued: bool,
}

impl RunOptions {
    fn is_default(&self) -> bool {
        *self == RunOptions::default()
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A new run from the events of another, up to the last dispatch of a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Fork {
    /// Chosen by whoever asks, so that asking twice makes one run; else the engine chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The run to fork; of a child its root is forked.
    pub run: String,
    /// A node of the root, or with `/` between them the nodes that called and the one in the run that was called last:
    /// `fix/think`.
    pub node: String,
    /// Which branch of a fan-out the node is in; the last dispatched of all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<u32>,
    /// Which visit of the node, the first being 1; the last that was dispatched if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<u32>,
    /// Laid over the node's input; null changes nothing.
    pub input: Value,
    /// Laid over the state of the run that the node is in; null changes nothing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub set: Value,
    /// Another version of the workflow to go on with, and what it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub definition: Vec<Workflow>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Cancel {
        reason: String,
        grace_ms: Option<u64>,
    },
    Kill {
        reason: String,
    },
    Pause {
        by: String,
    },
    /// Ends a pause; carries on a run that nobody drives.
    Resume {
        by: String,
    },
    Retry {
        by: String,
        /// Another version of the workflow to go on with, and what it may call; empty: its own.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        definition: Vec<Workflow>,
    },
    /// Lets a queued run begin.
    Release,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Answer {
    /// See [`Request::id_mut`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// `RUN:NUMBER`, or as much of it as is unique.
    pub gate: String,
    pub answer: Value,
    pub by: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Signal {
    /// See [`Request::id_mut`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    pub run: String,
    pub event: String,
    pub key: Value,
    pub payload: Value,
    /// False: lost, and refused, if nobody waits for it.
    pub keep: bool,
}

/// A message to whoever works in a run: the event `tell`, to the run itself if it takes that, else to the one live run
/// below it that does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Tell {
    /// See [`Request::id_mut`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// A run, or `RUN/node`: the run that this node of it has called.
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It is to stop with what it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
    pub by: String,
}

/// The event that a message is.
pub const TELL_EVENT: &str = "tell";

impl Tell {
    /// What the event carries: `{text, by}`, and `stop` if it is to stop.
    pub fn payload(&self) -> Value {
        let text = self.text.as_deref().map(|text| ("text", Value::str(text)));
        let stop = self.stop.then_some(("stop", Value::Bool(true)));
        Value::map(text.into_iter().chain(stop).chain([("by", Value::str(&*self.by))]))
    }
}

/// Whether runs of a workflow take an event: a node of it awaits that by its name.
pub fn takes_event(graph: &Graph, event: &str) -> bool {
    let mut actions = graph.nodes.iter().filter_map(Node::task).flat_map(|task| &task.steps);
    actions.any(|step| match &step.action.coordinated {
        Some(Coordinated::WaitEvent(wait)) => wait.event.is_plain() && wait.event.text() == event,
        _ => false,
    })
}

/// Which runs to list, the newest first. What is absent does not matter.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Filter {
    pub workflow: Option<String>,
    /// `waiting` included, which is derived.
    pub status: Option<Status>,
    /// Only those that are not over and wait for nobody, and that no engine carries on.
    pub interrupted: bool,
    pub project: Option<String>,
    /// Runs that this one called itself.
    pub parent: Option<String>,
    /// Runs that have all of these.
    pub labels: BTreeMap<String, String>,
    /// Started then or later.
    pub since: Option<Time>,
    /// Started before then.
    pub until: Option<Time>,
    /// Child runs too; those of a parent are child runs anyway.
    pub children: bool,
    /// The cursor: a run; those that come after it in the list, so the older ones.
    pub after: Option<String>,
    pub limit: Option<u32>,
}

/// Where a reader stands, and how long it is willing to wait for more.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Follow {
    /// Run and the number of the last event seen.
    pub events_after: Vec<(String, u64)>,
    /// Run and the number of the last line seen; its children's lines included.
    pub logs_after: Option<(String, u64)>,
    /// The cursor of a reader of all runs: what was committed after it, 0 being the beginning.
    pub all_after: Option<u64>,
    pub wait_ms: u64,
    /// At most so many events, so many lines and so many steps.
    pub limit: Option<u32>,
}

/// Where a listener stands. What nobody listens to is kept nowhere; what came faster than it was asked for is lost.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Listen {
    /// Text of this run and of those it called.
    pub run: String,
    /// The cursor of the last answer; 0 at first.
    pub after: u64,
    pub wait_ms: u64,
}
