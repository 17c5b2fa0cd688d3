//! The worker: takes a task from its order to its one report. What to do next is the core's
//! [`TaskExecution`]'s to say, and how to do it a handler's; the worker keeps the time, gives out secrets and
//! hides them again, and always answers.

use std::any::Any;
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wonder_core::artifact::Artifact;
use wonder_core::cost::Spend;
use wonder_core::def::{Bundle, Implementation, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::{AnotherTry, ExecutionRules, Next, TaskExecution, Try};
use wonder_core::graph::{Graph, Work, model_table};
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::limits::TOOL_RESULT_BYTES_MAX;
use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::artifacts::{ArtifactHandler, TaskArtifacts, put_aside};
use crate::cassette::{self, Asked, Asking, Stopping, Tape, placeholders};
use crate::context::{ActionContext, Caller};
use crate::deadline::{Deadline, Stopped};
use crate::handler::{Registry, TryError, TryResult};
use crate::http::HttpHandler;
use crate::job::{Job, OutputLine, Sink, Stream};
use crate::llm::LlmHandler;
use crate::mcp::{ListedTool, McpHandler, Pool, lone_call};
use crate::mock::MockHandler;
use crate::secrets::{KnownSecrets, TaskSecrets};
use crate::settings::Settings;
use crate::shell::ShellHandler;
use crate::stream::StreamRedactor;

/// Cheap to clone; one per host.
#[derive(Clone, Debug)]
pub struct Worker(Arc<Shared>);

/// What the tasks of one worker have in common.
#[derive(Debug)]
struct Shared {
    settings: Arc<Settings>,
    handlers: Registry,
    secrets: Arc<KnownSecrets>,
    servers: Arc<Pool>,
}

impl Worker {
    /// With handlers for `shell`, `http_request`, `llm_call`, `mcp_tool`, artifacts and `mock`, and those of the settings.
    pub fn new(settings: Settings) -> Worker {
        let settings = Arc::new(settings);
        let mut handlers = Registry::default();
        let shell = Arc::new(ShellHandler::new(settings.clone()));
        let servers = Arc::new(Pool::new(settings.clone(), shell.clone()));
        let models = Arc::new(LlmHandler::new(settings.clone(), servers.clone()));
        handlers.add(shell);
        handlers.add(Arc::new(HttpHandler::new(settings.clone())));
        handlers.add(models.clone());
        handlers.add(Arc::new(McpHandler::new(servers.clone(), models)));
        handlers.add(Arc::new(MockHandler));
        handlers.add(Arc::new(ArtifactHandler::new(settings.clone())));
        settings.handlers.iter().for_each(|handler| handlers.add(handler.clone()));
        let secrets = Arc::new(KnownSecrets::new(settings.secrets.clone()));
        Worker(Arc::new(Shared { settings, handlers, secrets, servers }))
    }

    /// Whether a task may have such a step here. `update_context` and `assert` are the task's own.
    pub fn can_perform(&self, implementation: &Implementation) -> bool {
        let own = matches!(implementation, Implementation::UpdateContext(_) | Implementation::Assert(_));
        own || self.0.handlers.find(implementation).is_some()
    }

    /// Why this machine cannot perform such an action, and what to do about it. What the coordinator performs is not
    /// a worker's to judge.
    pub fn unable(&self, implementation: &Implementation) -> Option<(String, String)> {
        let kind = implementation.kind();
        if !implementation.is_coordinated() && !self.can_perform(implementation) {
            let help = "write `mock` in its place to try the rest".to_owned();
            return Some((format!("this build performs no `{kind}`"), help));
        }
        match implementation {
            Implementation::Shell(shell) => crate::shell::missing_program(&self.0.settings, shell.isolation),
            _ => None,
        }
    }

    /// The tools of an MCP server that a definition has, as the server lists them now; it is started for that.
    pub async fn mcp_tools(
        &self,
        bundle: &Bundle,
        server: &Name,
        workdir: &Path,
    ) -> Result<Vec<ListedTool>, Failure> {
        let table = model_table(bundle);
        let never = CancellationToken::new();
        let deadline = Deadline::of_task(&never, Instant::now(), None);
        let caller = Caller { secrets: &self.0.secrets, deadline, workdir, sink: None };
        match self.0.servers.tools(&caller, &table, server).await {
            Ok(tools) => Ok(tools.listed()),
            Err(TryError::Failed(failed)) => Err(self.0.secrets.redactor().hide_failure(failed.failure)),
            Err(TryError::Stopped(_)) => Err(Failure::new(ErrorKind::Cancelled, "nobody waits any more")),
        }
    }

    /// Calls a tool of an MCP server that a definition has, by hand: there is no run, and nothing is kept of it.
    pub async fn mcp_call(
        &self,
        bundle: &Bundle,
        call: (&Name, &str, Value),
        workdir: &Path,
        sink: Arc<dyn Sink>,
    ) -> Result<Value, Failure> {
        let (server, tool, arguments) = call;
        let job = lone_call(model_table(bundle), (server, tool), arguments);
        let report = self.perform(Job { workdir: workdir.to_owned(), sink, ..job }).await;
        match report.outcome {
            TaskOutcome::Completed { result, .. } => Ok(result),
            TaskOutcome::Failed { failure, .. } => Err(failure),
            other => Err(Failure::new(ErrorKind::Cancelled, format!("it ended as {other:?}"))),
        }
    }

    /// What a call asks of the outside, as a cassette has it, where nobody may open files.
    pub fn asked(&self, call: &ActionCall) -> Result<Asked, Failure> {
        let Some(handler) = self.0.handlers.find(&call.action.def.implementation) else {
            return Err(self.0.handlers.unable(&call.action));
        };
        handler.asked(&Asking { call, scope: &placeholders(call), workdir: None })
    }

    /// Looks up the secrets that a definition names, so that they are hidden wherever they come from, also in tasks
    /// that do not name them. To be told of every definition before a task of it is performed.
    pub fn learn_secrets(&self, graph: &Graph) {
        // Whoever provides them may panic; the task that needs one reports it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.0.secrets.learn_names(graph)));
    }

    /// Whether what somebody typed has a secret in it. It cannot be hidden, for it is needed as it is; so it is not to
    /// be taken.
    pub fn shows_secret(&self, typed: &Value) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.0.secrets.is_in(typed))).unwrap_or_default()
    }

    /// Takes a task from its start to its one report. Always answers: a panic is a failure of kind
    /// `internal`. A future that is dropped stops what it started.
    pub async fn perform(&self, job: Job) -> TaskReport {
        let started = Instant::now();
        let shared = &*self.0;
        let rules = ExecutionRules::of_worker(&job.order, job.seed, shared.settings.mutations);
        let mut execution = TaskExecution::start(&job.order, job.task.clone(), rules);
        let mut kept = Vec::new();
        let outcome = match caught(shared.drive(&job, started, &mut execution, &mut kept)).await {
            Ok(outcome) => outcome,
            Err(panic) => {
                let failure = shared.secrets.redactor_so_far().hide_failure(panicked(panic));
                TaskOutcome::Failed { failure, retry: false, step: None }
            }
        };
        let completed = matches!(outcome, TaskOutcome::Completed { .. });
        let artifacts = if completed { kept } else { Vec::new() };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        TaskReport { artifacts, ..execution.report(outcome, duration_ms) }
    }
}

impl Shared {
    /// `kept`: the artifacts of the steps so far, in order.
    async fn drive(
        &self,
        job: &Job,
        started: Instant,
        execution: &mut TaskExecution,
        kept: &mut Vec<Artifact>,
    ) -> TaskOutcome {
        let secrets = TaskSecrets::find(&job.task, &self.secrets);
        let of_task = Deadline::of_task(&job.cancel, started, job.order.timeout_ms);
        let mut deadline = of_task;
        let outcome = loop {
            let next = match execution.next(|call| self.handlers.worst_case(&job.order, call)) {
                Next::Done(outcome) => break outcome,
                Next::Try(next) => next,
            };
            if next.first {
                deadline = of_task.of_action(next.call.action.def.execution.timeout_ms);
            }
            let step = next.call.step.clone();
            let tried = self.tape_of(job).map(|tape| (tape, next.call.clone(), next.number));
            let (result, spend) = self.attempt(job, next, deadline, (&secrets, &mut *kept)).await;
            let result = match result {
                Ok(result) => Ok(result),
                Err(TryError::Failed(failure)) => Err(failure),
                Err(TryError::Stopped(stopped)) => {
                    stop(execution, stopped, job, &spend);
                    continue;
                }
            };
            let Some(again) = execution.tried(result, &spend) else { continue };
            let text = self.secrets.redactor().hide(note(&again));
            job.sink.line(OutputLine { step, stream: Stream::Note, text });
            // What is not performed needs no rest.
            let delay_ms = if self.replay_of(job).is_some() { 0 } else { again.delay_ms };
            if let Err(stopped) = deadline.wait(delay_ms).await {
                if let Some((tape, call, number)) = &tried
                    && let Some(handler) = self.handlers.find(&call.action.def.implementation)
                {
                    let of = Stopping { job, call, number: number + 1, secrets: &self.secrets };
                    cassette::record_stop(tape, handler, of, stopped).await;
                }
                stop(execution, stopped, job, &Spend::default());
            }
        };
        let redactor = self.secrets.redactor();
        if redactor.is_idle() {
            return outcome;
        }
        for failure in execution.continued_failures() {
            *failure = redactor.hide_failure(failure.clone());
        }
        redactor.hide_outcome(outcome)
    }

    /// What records or answers the tasks of this run.
    fn tape_of(&self, job: &Job) -> Option<&Arc<Tape>> {
        self.settings.tape.as_ref().filter(|tape| tape.covers(&job.order.run))
    }

    fn replay_of(&self, job: &Job) -> Option<&Arc<Tape>> {
        self.tape_of(job).filter(|tape| tape.is_replay())
    }

    /// One try, and what it spent. A panic in it is an answer like any other.
    async fn attempt(
        &self,
        job: &Job,
        Try { call, number, .. }: Try<'_>,
        deadline: Deadline<'_>,
        (secrets, kept): (&TaskSecrets, &mut Vec<Artifact>),
    ) -> (TryResult, Spend) {
        let scope = match self.replay_of(job) {
            // No secret is needed where nothing is performed.
            Some(_) => Ok(Cow::Owned(placeholders(call))),
            None => secrets.scope(&call.action, &call.scope),
        };
        let scope = match ready(deadline, scope) {
            Ok(scope) => scope,
            Err(error) => return (Err(error), Spend::default()),
        };
        let Some(handler) = self.handlers.find(&call.action.def.implementation) else {
            return (Err(self.handlers.unable(&call.action).into()), Spend::default());
        };
        let (spend, stream) = (Spend::default(), StreamRedactor::new(&self.secrets));
        let (scope, secrets, artifacts) = (&*scope, &self.secrets, self.settings.artifacts.as_ref());
        let artifacts = TaskArtifacts::new(artifacts, kept);
        let mut context =
            ActionContext { job, secrets, call, scope, deadline, number, spend, stream, artifacts };
        let result = caught(async {
            match self.tape_of(job) {
                Some(tape) => cassette::perform(tape, handler, &mut context).await,
                None => handler.perform(&mut context).result().await,
            }
        });
        let mut result = result.await.unwrap_or_else(|panic| Err(panicked(panic).into()));
        context.finish_stream();
        if let Some(bytes_max) = artifact_above(job, call) {
            result = put_aside(&mut context, result, bytes_max).await;
        }
        let (spend, new) = (context.spend, context.artifacts.into_new());
        // What a try kept that failed is nobody's.
        kept.extend(new.into_iter().filter(|_| result.is_ok()));
        (result, spend)
    }
}

/// How many bytes of a result its step takes as they are; None: all.
fn artifact_above(job: &Job, call: &ActionCall) -> Option<u64> {
    let step = job.task.steps.iter().find(|step| step.reference == call.step)?;
    let of_kind = matches!(step.action.work, Some(Work::McpTool(_))).then_some(TOOL_RESULT_BYTES_MAX);
    step.artifact_above.or(of_kind)
}

/// What a try starts with, unless there is reason to stop already.
fn ready<'s>(
    deadline: Deadline<'_>,
    scope: Result<Cow<'s, Value>, Failure>,
) -> Result<Cow<'s, Value>, TryError> {
    deadline.check()?;
    Ok(scope?)
}

fn stop(execution: &mut TaskExecution, stopped: Stopped, job: &Job, spend: &Spend) {
    match stopped {
        Stopped::ActionTimeout => execution.action_timed_out(spend),
        Stopped::Cancelled => execution.stop(TaskOutcome::Cancelled, spend),
        Stopped::TaskTimeout => {
            let after_ms = job.order.timeout_ms.unwrap_or_default();
            execution.stop(TaskOutcome::TimedOut { after_ms }, spend);
        }
    }
}

fn note(again: &AnotherTry) -> String {
    let AnotherTry { delay_ms, next, max, reason } = again;
    format!("try {next} of {max} in {delay_ms} ms: {reason}")
}

/// Does `work`; a panic in it is an answer like any other, and what it holds is dropped as usual.
async fn caught<F: Future>(work: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(panic)),
    })
    .await
}

fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no message".to_owned());
    let message = format!("the worker panicked: {text}; this is a bug in Wonder, please report it");
    Failure::new(ErrorKind::Internal, message)
}
