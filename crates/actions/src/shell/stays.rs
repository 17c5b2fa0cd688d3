//! A program that stays: it is started once and spoken to through its pipes, kept apart as any other command, and ended as
//! a whole when its guard is dropped, or by the reaper when we are killed. What it says is for others to understand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use wonder_core::def::{Isolation, ShellLimits};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{CommandSpec, ShellSpec};
use wonder_core::template::Template;
use wonder_core::value::Value;

use super::plan::Plan;
use super::process::{Group, command, unstarted};
use super::{NOT_RUN, ShellHandler, isolation, not_started};
use crate::deadline::Deadline;
use crate::handler::TryError;
use crate::reaper::SERVER_VARIABLE;

/// How long a program that closed its pipes may take to end.
const END_WITHIN: Duration = Duration::from_millis(500);

/// What to start, with its texts filled in.
#[derive(Clone, Debug)]
pub(crate) struct StaysSpec {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) workdir: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) isolation: Isolation,
    pub(crate) image: Option<String>,
    pub(crate) network: Option<bool>,
}

/// A program that runs; it ends with this.
#[derive(Debug)]
pub(crate) struct Stays {
    /// Before `child`: see `process.rs`.
    group: Group,
    child: Child,
}

/// Its pipes.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) process: Stays,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Stays {
    pub(crate) async fn start(
        shell: &Arc<ShellHandler>,
        spec: StaysSpec,
        deadline: Deadline<'_>,
    ) -> Result<Opened, TryError> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let key = format!("{}/{number}", std::process::id());
        let StaysSpec { command: words, env, workdir, cwd, isolation, image, network } = spec;
        let image = image.map(|image| Template::compile(&image)).transpose();
        let image = image.map_err(|error| Failure::new(ErrorKind::ExpressionError, error.message))?;
        let way = ShellSpec {
            command: CommandSpec::Arguments(Vec::new()),
            cwd: None,
            env: None,
            stdin: None,
            expect_exit: Vec::new(),
            isolation,
            limits: ShellLimits::default(),
            image,
            network,
        };
        let mut variables = env;
        variables.insert(SERVER_VARIABLE.to_owned(), key.clone());
        let stdin = Some(String::new());
        let plan = Plan { command: words, workdir, cwd, stdin, variables, unset: Vec::new(), out: None };
        let launch = isolation::launch(shell, (&Value::Null, deadline), &way, plan).await?;
        if !launch.cwd.is_dir() {
            let message = format!("the working directory {} is not there", launch.cwd.display());
            return Err(not_started(NOT_RUN, message).into());
        }
        // Without a reaper it would only outlive us if we are killed: whoever runs commands is told so then.
        let _ = shell.reaper.ready();
        shell.reaper.begins(&key);
        let program = launch.command[0].to_string_lossy().into_owned();
        let started = command(&launch).spawn().map_err(|error| unstarted(&program, &error));
        let opened = started.and_then(|mut child| {
            let missing = || Failure::new(ErrorKind::Internal, "a program without an id or pipes");
            let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            let leader = leader.ok_or_else(missing)?;
            let group = Group::new(leader, shell.reaper.clone(), launch.container.clone());
            let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
            let ((stdin, stdout), stderr) = pipes.ok_or_else(missing)?;
            Ok(Opened { process: Stays { group, child }, stdin, stdout, stderr })
        });
        shell.reaper.has_begun(&key);
        Ok(opened?)
    }

    /// How it ended, if it did just now.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        let status = tokio::time::timeout(END_WITHIN, self.child.wait()).await.ok()?.ok()?;
        self.group.leader_ended(status);
        Some(status)
    }
}
