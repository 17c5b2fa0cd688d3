//! What every host of Wonder offers: the [`Engine`] trait and its plain requests and answers.
//!
//! The command line and the server speak to an `Engine` and never ask which one it is: the embedded host,
//! another process that owns the database, or Temporal. Everything here is data that serialises, so that a
//! request can be passed on as it is. No IO, no async runtime: a pending answer is a boxed future.

pub mod cost;
mod error;
pub mod plan;
mod request;
pub mod run_tree;
pub mod timeline;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;

pub use error::{Cause, EngineError, ErrorCode};
pub use request::{
    Act, Answer, Filter, Follow, Fork, Request, Response, RunOptions, Signal, Start, Workflow,
};
pub use view::{
    EdgeView, Forked, GateDetails, GateView, GraphView, LogLine, LogStream, NodeKind, NodeView, Progress,
    RunRow, RunView, SpreadView, Status, StoredStep, Updates, VisitView, WaitView, Why, WhyReason, extended,
};

use run_tree::RunTree;
use wonder_core::def::{Estimate, Name};
use wonder_core::event::{Event, TokenId};

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
    act(run: String, act: Act) -> Box<RunView> = Request::Act { run, act } => Run;
    #[doc = "A new run that goes on from the last dispatch of a node of another."]
    fork(fork: Fork) -> Box<RunView> = Request::Fork(Box::new(fork)) => Run;
    #[doc = "Answers a gate."]
    answer(answer: Answer) -> Box<RunView> = Request::Answer(answer) => Run;
    #[doc = "Tells a run of an outside event."]
    signal(signal: Signal) -> Box<RunView> = Request::Signal(signal) => Run;
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
    #[doc = "What each live token of a run, and of its children, waits for."]
    why(run: String) -> Vec<Why> = Request::Why { run } => Why;
    #[doc = "Waits until a run has ended, or only waits for people or outside events; or until the time is over."]
    wait(run: String, wait_ms: u64) -> Box<RunView> = Request::Wait { run, wait_ms } => Run;
    #[doc = "What past runs of a workflow taught of its nodes; empty if there were none."]
    learnt(workflow: String) -> BTreeMap<Name, Estimate> = Request::Learnt { workflow } => Learnt;
    #[doc = "The definition a run was started with."]
    definition(run: String) -> Workflow = Request::Definition { run } => Definition;
}

/// How much of a run's events is asked for at once.
const EVENTS_AT_ONCE: u32 = 5_000;

impl dyn Engine + '_ {
    /// A run and those it called, from all their events.
    pub async fn tree(&self, run: &str) -> Reply<RunTree> {
        let mut tree = RunTree::new(run);
        loop {
            let events = self.events_after(tree.positions()).await?;
            if events.is_empty() {
                return Ok(tree);
            }
            events.iter().for_each(|(run, event)| tree.learn(run, event));
        }
    }

    /// The same as it was after one of the run's events: what had happened in the others by that time.
    pub async fn tree_at(&self, run: &str, seq: u64) -> Reply<RunTree> {
        let mut tree = RunTree::new(run);
        while tree.root().seq < seq {
            let events = self.events_after(vec![(run.to_owned(), tree.root().seq)]).await?;
            if events.is_empty() {
                break;
            }
            events
                .iter()
                .filter(|(_, event)| event.seq <= seq)
                .for_each(|(run, event)| tree.learn(run, event));
        }
        let then = tree.root().last_at;
        let mut read = BTreeSet::from([run.to_owned()]);
        loop {
            let mut open = tree.positions();
            open.retain(|(run, _)| !read.contains(run));
            if open.is_empty() {
                return Ok(tree);
            }
            let asked: Vec<String> = open.iter().map(|(run, _)| run.clone()).collect();
            let events = self.events_after(open).await?;
            let told = |run: &String| events.iter().any(|(of, event)| of == run && event.at <= then);
            read.extend(asked.into_iter().filter(|run| !told(run)));
            read.extend(events.iter().filter(|(_, event)| event.at > then).map(|(run, _)| run.clone()));
            let by_then = events.iter().filter(|(_, event)| event.at <= then);
            by_then.for_each(|(run, event)| tree.learn(run, event));
        }
    }

    async fn events_after(&self, events_after: Vec<(String, u64)>) -> Reply<Vec<(String, Event)>> {
        let follow = Follow { events_after, limit: Some(EVENTS_AT_ONCE), ..Follow::default() };
        Ok(self.follow(follow).await?.events)
    }
}
