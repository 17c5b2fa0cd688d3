//! What every host of Wonder offers: the [`Engine`] trait and its plain requests and answers.
//!
//! The command line and the server speak to an `Engine` and never ask which one it is: the embedded host,
//! another process that owns the database, or Temporal. Everything here is data that serialises, so that a
//! request can be passed on as it is. No IO, no async runtime: a pending answer is a boxed future.

pub mod ahead;
pub mod cost;
mod error;
pub mod json;
mod request;
pub mod run_tree;
pub mod timeline;
mod view;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

pub use error::{Cause, EngineError, ErrorCode};
pub use request::{
    Act, Answer, Filter, Follow, Fork, Listen, Request, Response, RunOptions, Signal, Start, TELL_EVENT,
    Tell, Workflow, takes_event,
};
pub use view::{
    ArtifactPiece, ArtifactView, EdgeView, Forked, GateDetails, GateView, GraphView, Heard, LogLine,
    LogStream, NodeKind, NodeView, Progress, RunRow, RunView, SpreadView, Status, StoredStep, TextPiece,
    Updates, VisitView, WaitView, Why, WhyReason, extended,
};

use wonder_core::def::{Estimate, Name};
use wonder_core::event::TokenId;

pub type Reply<T> = Result<T, EngineError>;
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Reply<T>> + Send + 'a>>;

/// Runs workflows durably. What it has acknowledged is committed.
pub trait Engine: Send + Sync {
    /// The one way in. The typed methods below only wrap and unwrap.
    fn ask(&self, request: Request) -> Pending<'_, Response>;
}

macro_rules! typed {
    ($(#[doc = $doc:literal] $name:ident($($arg:ident: $ty:ty),*) -> $answer:ty = $request:expr => $response:ident;)*) => {
        impl dyn Engine + '_ {
            $(
                #[doc = $doc]
                pub async fn $name(&self, $($arg: $ty),*) -> Reply<$answer> {
                    match self.ask($request).await? {
                        Response::$response(answer) => Ok(answer),
                        other => Err(EngineError::internal(format!(
                            "asked for {} and was given {other:?}", stringify!($name)
                        ))),
                    }
                }
            )*
        }
    };
}

typed! {
    #[doc = "Starts a run; when this returns it will not be lost."]
    start(start: Start) -> Box<RunView> = Request::Start(Box::new(start)) => Run;
    #[doc = "Cancels, kills, pauses, resumes or retries a run."]
    act(run: String, act: Act) -> Box<RunView> = Request::Act { request_id: None, run, act } => Run;
    #[doc = "A new run that goes on from the last dispatch of a node of another."]
    fork(fork: Fork) -> Box<RunView> = Request::Fork(Box::new(fork)) => Run;
    #[doc = "Answers a gate."]
    answer(answer: Answer) -> Box<RunView> = Request::Answer(answer) => Run;
    #[doc = "Tells a run of an outside event."]
    signal(signal: Signal) -> Box<RunView> = Request::Signal(signal) => Run;
    #[doc = "Gives whoever works in a run a message."]
    tell(tell: Tell) -> Box<RunView> = Request::Tell(tell) => Run;
    #[doc = "A run as it is now."]
    find(run: String) -> Box<RunView> = Request::Find { run } => Run;
    #[doc = "A run as it was after one of its events; the first is number 1."]
    find_at(run: String, seq: u64) -> Box<RunView> = Request::FindAt { run, seq } => Run;
    #[doc = "One visit of a node with its moves, its attempts, its input and its result."]
    visit(run: String, token: TokenId) -> Box<VisitView> = Request::Visit { run, token } => Visit;
    #[doc = "Runs, the newest first."]
    list(filter: Filter) -> Vec<RunRow> = Request::List(filter) => Runs;
    #[doc = "Open gates, the oldest first; those of one run and its children, or all."]
    gates(run: Option<String>) -> Vec<GateView> = Request::Gates { run } => Gates;
    #[doc = "One gate, open or closed: who was asked, who answered when and what."]
    gate(gate: String) -> Box<GateDetails> = Request::Gate { gate } => Gate;
    #[doc = "Events and lines of output after the given places; waits for the first of them if told to."]
    follow(follow: Follow) -> Updates = Request::Follow(follow) => Updates;
    #[doc = "Text of models as it comes, of a run and those it called; waits for the first of it if told to."]
    listen(listen: Listen) -> Heard = Request::Listen(listen) => Heard;
    #[doc = "What each live token of a run, and of its children, waits for."]
    why(run: String) -> Vec<Why> = Request::Why { run } => Why;
    #[doc = "Waits until a run has ended, or only waits for people or outside events; or until the time is over."]
    wait(run: String, wait_ms: u64) -> Box<RunView> = Request::Wait { run, wait_ms } => Run;
    #[doc = "What past runs of a workflow taught of its nodes; empty if there were none."]
    learnt(workflow: String) -> BTreeMap<Name, Estimate> = Request::Learnt { workflow } => Learnt;
    #[doc = "The definition a run was started with."]
    definition(run: String) -> Workflow = Request::Definition { run } => Definition;
    #[doc = "Whether the workflows of a file are those that a run goes by."]
    same_definition(run: String, workflows: Vec<Workflow>) -> bool =
        Request::SameDefinition { run, workflows } => Same;
    #[doc = "What a run and those it called have kept, the oldest first."]
    artifacts(run: String) -> Vec<ArtifactView> = Request::Artifacts { run } => Artifacts;
    #[doc = "Some bytes of an artifact of a run or of those it called, by name or address; none at its end."]
    artifact_piece(run: String, artifact: String, offset: u64) -> Box<ArtifactPiece> =
        Request::ArtifactPiece { run, artifact, offset } => ArtifactPiece;
}
