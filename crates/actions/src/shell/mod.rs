//! The `shell` action: a command with its directory, environment and input, kept apart as far as its
//! `isolation` says, and stopped as a whole with everything it started.
//!
//! It does not interpret what a command does: an exit code that is not expected is a failure of kind
//! `shell_exit`, and nothing here is ever tried twice.

mod container;
mod hidden;
mod isolation;
mod output;
mod plan;
mod process;
mod quote;
mod sandbox;
mod stays;

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use wonder_core::def::Isolation;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{ShellSpec, Work};
use wonder_core::value::{Map, Value};

use container::Runtimes;
pub(crate) use hidden::is_hidden;
pub(crate) use isolation::missing_program;
pub use plan::COMMAND_VARIABLES;
use plan::Plan;
use process::Ended;
pub(crate) use stays::{Opened, Stays, StaysSpec};

use crate::artifacts::{OutFolder, keep_left};
use crate::cassette::{Asked, Asking};
use crate::context::ActionContext;
use crate::handler::{ActionHandler, Performing, TryError, TryResult};
use crate::json;
use crate::reaper::Reaper;
use crate::settings::Settings;
use crate::texts::tail;

/// How much of its output a failure carries.
const TAIL_BYTES: usize = 4 << 10;
/// What a shell says when it does not find the command, and when it cannot run it.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;
/// The processor time is over.
const SIGXCPU: i32 = 24;

#[derive(Debug)]
pub(crate) struct ShellHandler {
    settings: Arc<Settings>,
    runtimes: Runtimes,
    reaper: Arc<Reaper>,
}

impl ShellHandler {
    pub(crate) fn new(settings: Arc<Settings>) -> ShellHandler {
        let reaper = Arc::new(Reaper::new(settings.reaper.clone(), settings.reaper_keeps.clone()));
        ShellHandler { settings, runtimes: Runtimes::default(), reaper }
    }

    async fn run(&self, context: &mut ActionContext<'_>, shell: &ShellSpec) -> TryResult {
        let out = OutFolder::fresh(context)?;
        let plan = Plan::of(context, shell, out.as_ref())?;
        let launch = isolation::launch(self, (context.scope, context.deadline), shell, plan).await?;
        let ended = process::run(self, context, launch, shell.limits.output_bytes).await?;
        let mut result = result_of(context, shell, ended)?;
        let Some(out) = out else { return Ok(result) };
        let left = keep_left(context, &out).await?;
        if !left.is_empty() {
            result.set_path(&["artifacts".into()], Value::list(left));
        }
        Ok(result)
    }
}

impl ActionHandler for ShellHandler {
    fn kinds(&self) -> &[&'static str] {
        &["shell"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        let Some(Work::Shell(shell)) = &context.call.action.work else {
            unreachable!("only commands come here")
        };
        Performing::pending(self.run(context, shell))
    }

    fn asked(&self, asking: &Asking<'_>) -> Result<Asked, Failure> {
        let Some(Work::Shell(shell)) = &asking.call.action.work else {
            unreachable!("only commands come here")
        };
        plan::asked(asking.scope, shell).map(Asked::Outside)
    }
}

/// What a command that has ended gives: a result if its exit code is expected.
fn result_of(context: &ActionContext<'_>, shell: &ShellSpec, ended: Ended) -> TryResult {
    let Ended { status, stdout, stderr } = ended;
    let expected = if shell.expect_exit.is_empty() { &[0][..] } else { &shell.expect_exit };
    match status.code() {
        Some(code) if expected.contains(&code) => {
            let json = json::value_of(&stdout);
            Ok(Value::map([
                ("exit_code", Value::Int(code.into())),
                ("stdout", Value::from(stdout)),
                ("stderr", Value::from(stderr)),
                ("json", json),
            ]))
        }
        Some(1) if shell.isolation == Isolation::Sandbox && stdout.is_empty() => {
            let refused = isolation::sandbox_refused(&stderr).map(TryError::from);
            Err(refused.unwrap_or_else(|| {
                TryError::answered(unexpected((Some(1), None), &stdout, &context.hide(stderr)))
            }))
        }
        code => {
            // Only the end of it is told: what is cut must have no secrets any more.
            let (stdout, stderr) = (context.hide(stdout), context.hide(stderr));
            Err(TryError::answered(unexpected((code, status.signal()), &stdout, &stderr)))
        }
    }
}

fn unexpected((code, signal): (Option<i32>, Option<i32>), stdout: &str, stderr: &str) -> Failure {
    let what = match (code, signal) {
        (Some(code), _) => format!("the command ended with exit code {code}"),
        (None, Some(SIGXCPU)) => "the command was ended: its processor time is over (limits.cpu)".to_owned(),
        (None, signal) => format!("the command was ended by signal {}", signal.unwrap_or_default()),
    };
    let message = match last_line(stderr) {
        Some(line) => format!("{what}: {line}"),
        None => what,
    };
    let mut details = Map::new();
    let number = |number: Option<i32>| number.map_or(Value::Null, |n| Value::Int(n.into()));
    details.insert("exit_code".into(), number(code));
    details.insert("stdout".into(), Value::str(tail(stdout, TAIL_BYTES)));
    details.insert("stderr".into(), Value::str(tail(stderr, TAIL_BYTES)));
    if signal.is_some() {
        details.insert("signal".into(), number(signal));
    }
    Failure::new(ErrorKind::ShellExit, message).with_details(Value::from(details))
}

/// The last line that says something, as far as it fits a message.
fn last_line(stderr: &str) -> Option<&str> {
    const LINE_BYTES_MAX: usize = 400;
    stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).map(|line| tail(line, LINE_BYTES_MAX))
}

/// A command that was never started, as the exit code with which a shell would have said so.
fn not_started(code: i32, message: String) -> Failure {
    let details =
        [("exit_code", Value::Int(code.into())), ("stdout", Value::str("")), ("stderr", Value::str(""))];
    Failure::new(ErrorKind::ShellExit, message).with_details(Value::map(details))
}
