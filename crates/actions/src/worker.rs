//! The worker: drives a task from its order to its one report. It keeps the time, tries again what the world
//! broke, and always answers; what an action does is the action's module's business, and what follows from
//! the report is the core's.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::Implementation;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::reserve::worst_action;
use wonder_core::task::{ActionCall, Ask, TaskMachine, mutations_at};
use wonder_core::value::Value;

use crate::errand::Errand;
use crate::http::{self, Clients};
use crate::job::{Job, Stream};
use crate::leash::{Halt, Leash};
use crate::mock;
use crate::reaper::Reaper;
use crate::secrets::Known;
use crate::settings::Settings;
use crate::shell::{self, Runtimes};
use crate::tried::{Broken, Tried, Tries};

/// Cheap to clone; one per host.
#[derive(Clone, Debug)]
pub struct Worker(Arc<Shared>);

/// What the tasks of one worker have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) mocks: mock::Counts,
    pub(crate) clients: Clients,
    pub(crate) runtimes: Runtimes,
    pub(crate) reaper: Arc<Reaper>,
}

/// What a task has used so far; it counts however the task ends.
#[derive(Debug, Default)]
struct Tally {
    spend: Spend,
    tries: u32,
}

impl Worker {
    pub fn new(settings: Settings) -> Worker {
        let reaper = Arc::new(Reaper::new(settings.reaper.clone()));
        let (mocks, clients, runtimes) = Default::default();
        Worker(Arc::new(Shared { settings, mocks, clients, runtimes, reaper }))
    }

    /// Takes a task from its start to its one report. Always answers: a panic is a failure of kind
    /// `internal`. A future that is dropped kills what it started.
    pub async fn perform(&self, job: Job) -> TaskReport {
        let started = Instant::now();
        let mut tally = Tally::default();
        let outcome = match caught(self.0.drive(&job, started, &mut tally)).await {
            Ok(outcome) => outcome,
            Err(panic) => TaskOutcome::Failed { failure: panicked(panic), retry: false, step: None },
        };
        tally.spend.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        TaskReport { outcome, spend: tally.spend, tries: tally.tries }
    }

    /// Whether a task may have such a step here. `update_context` and `assert` are the task's own.
    pub fn can_perform(kind: &Implementation) -> bool {
        matches!(
            kind,
            Implementation::Shell(_)
                | Implementation::HttpRequest(_)
                | Implementation::Mock(_)
                | Implementation::UpdateContext(_)
                | Implementation::Assert(_)
        )
    }

    /// Forgets what is only kept for the sake of a run that has ended.
    pub fn forget(&self, run: &str) {
        self.0.mocks.forget(run);
    }
}

impl Shared {
    async fn drive(&self, job: &Job, started: Instant, tally: &mut Tally) -> TaskOutcome {
        let order = &job.order;
        let known = Known::of(&job.task, &*self.settings.secrets);
        let leash = Leash::of_task(&job.cancel, started, order.timeout_ms);
        let mut machine = TaskMachine::start(
            job.task.clone(),
            order.input.clone(),
            order.feedback.clone(),
            order.overrides.clone(),
        );
        let outcome = loop {
            let call = match machine.ask() {
                Ask::Done(outcome) => break self.with_plan(job, outcome),
                Ask::Perform(call) => call,
            };
            if let Some(failure) = order.allowance.stops(&tally.spend, &worst(&call), None) {
                break stopped(failure, &call);
            }
            match self.act(job, &call, (&known, &leash), tally).await {
                Ok(Err(failure)) if failure.is_at_allowance() => break stopped(failure, &call),
                Ok(result) => machine.answer(result),
                Err(Halt::Cancelled) => break TaskOutcome::Cancelled,
                Err(_) => break TaskOutcome::TimedOut { after_ms: order.timeout_ms.unwrap_or_default() },
            }
        };
        if known.redactor.is_idle() { outcome } else { known.redactor.hide_outcome(outcome) }
    }

    /// A planning task says what it adds as people write it; the core takes what is stored.
    fn with_plan(&self, job: &Job, outcome: TaskOutcome) -> TaskOutcome {
        let TaskOutcome::Completed { mut result } = outcome else { return outcome };
        let path = job.order.may_mutate.then(|| mutations_at(&result)).flatten();
        let asked = path.as_ref().and_then(|path| result.get_path(path));
        match (path.as_ref(), self.settings.mutations.zip(asked).map(|(read, asked)| read(asked))) {
            (Some(path), Some(Ok(stored))) => result.set_path(path, stored),
            (_, Some(Err(why))) => {
                let failure = Failure::new(ErrorKind::MutationRefused, why);
                return TaskOutcome::Failed { failure, retry: false, step: None };
            }
            _ => {}
        }
        TaskOutcome::Completed { result }
    }

    /// One action with all its tries. What ends the task as a whole is an error here.
    async fn act(
        &self,
        job: &Job,
        call: &ActionCall,
        (known, leash): (&Known, &Leash<'_>),
        tally: &mut Tally,
    ) -> Result<Result<Value, Failure>, Halt> {
        leash.check()?;
        let def = &call.action.def;
        let scope = match known.scope(&def.implementation, &call.scope) {
            Ok(scope) => scope,
            Err(failure) => return Ok(Err(failure)),
        };
        let leash = leash.of_action(def.execution.timeout_ms);
        let (redactor, spend) = (&known.redactor, Spend::default());
        let mut errand = Errand { shared: self, job, call, scope, leash, redactor, spend };
        let tried = match caught(tries(&mut errand, tally)).await {
            Ok(tried) => tried,
            Err(panic) => Err(panicked(panic).into()),
        };
        tally.spend.add(&errand.spend);
        match tried {
            Ok(result) => Ok(Ok(result)),
            Err(Broken::Failed { failure, .. }) => Ok(Err(failure)),
            Err(Broken::Halted(Halt::ActionTime)) => Ok(Err(out_of_time(call))),
            Err(Broken::Halted(halt)) => Err(halt),
        }
    }
}

/// Tries until it works, another try cannot help, or there is reason to stop.
async fn tries(errand: &mut Errand<'_>, tally: &mut Tally) -> Tried {
    let (job, def) = (errand.job, &errand.call.action.def);
    let salt = job.order.token.0.rotate_left(32) ^ u64::from(job.order.attempt);
    let tries = Tries::new(def.execution.retry_policy, def.effect(), job.seed, salt);
    let mut made = 0;
    loop {
        let calls = errand.spend.calls;
        let broken = match once(errand).await {
            Err(Broken::Failed { failure, reach }) => (failure, reach),
            ended => return ended,
        };
        made += 1;
        let (failure, reach) = broken;
        let Some(delay_ms) = tries.again_after_ms(&failure, reach, made) else {
            return Err(Broken::Failed { failure: tries.verdict(failure, reach), reach });
        };
        // A call and its tries are one call: that is what was reserved for it.
        let used = std::mem::replace(&mut errand.spend.calls, calls);
        let mut spent = tally.spend.clone();
        spent.add(&errand.spend);
        if let Some(stopped) = job.order.allowance.stops(&spent, &worst(errand.call), Some(&failure)) {
            errand.spend.calls = used;
            return Err(Broken::known(stopped));
        }
        let (next, max) = (made + 1, tries.max());
        errand.say(Stream::Note, format!("try {next} of {max} in {delay_ms} ms: {}", failure.message));
        errand.leash.wait(delay_ms).await?;
        tally.tries += 1;
    }
}

/// One try. What takes a process or a connection has a future of its own: a mock need not carry its weight.
async fn once(errand: &mut Errand<'_>) -> Tried {
    let call = errand.call;
    match &call.action.def.implementation {
        Implementation::Mock(script) => mock::perform(errand, script).await,
        Implementation::Shell(shell) => Box::pin(shell::perform(errand, shell)).await,
        Implementation::HttpRequest(request) => Box::pin(http::perform(errand, request)).await,
        other => Err(unable(other).into()),
    }
}

/// The most that one try of an action may cost. A model call is bounded by whoever makes it.
fn worst(call: &ActionCall) -> Allowance {
    worst_action(&call.action.def.implementation, |_| Allowance::default())
}

/// The task ends here, whatever its step does about failures of its own: the coordinator may have more.
fn stopped(failure: Failure, call: &ActionCall) -> TaskOutcome {
    TaskOutcome::Failed { failure, retry: false, step: Some(call.step.clone()) }
}

fn unable(implementation: &Implementation) -> Failure {
    let kind = implementation.kind();
    let message = format!(
        "this worker cannot perform `{kind}`: it knows `shell`, `http_request` and `mock`; run this with a \
         host that has a worker for `{kind}`"
    );
    Failure::new(ErrorKind::Internal, message)
}

/// The action's own time is over, in the simulator's words.
fn out_of_time(call: &ActionCall) -> Failure {
    let def = &call.action.def;
    let timeout_ms = def.execution.timeout_ms.unwrap_or_default();
    let message = format!("{} took longer than {timeout_ms} ms", def.implementation.kind());
    let shown_ms = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
    Failure::new(ErrorKind::Timeout, message)
        .with_details(Value::map([("layer", Value::str("action")), ("timeout_ms", Value::Int(shown_ms))]))
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
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    let said = said.unwrap_or_else(|| "no message".to_owned());
    let message = format!("the worker panicked: {said}; this is a bug in Wonder, please report it");
    Failure::new(ErrorKind::Internal, message)
}
